"""`netctrl certify network`: several links with laws of their own, from a scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from netctrl.cli.app import (
    PLOT_SUFFIXES,
    Report,
    answer,
    check_report,
    checked_plot,
    invocation,
    option,
    picture_file,
    positional,
    report,
    write_all,
)
from netctrl.cli.certify.common import CertificateJson, CertificateOutput
from netctrl.cli.design.common import read_range
from netctrl.errors import FileError, InvalidValue, Status
from netctrl.units import parse_count, parse_duration, parse_rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from netctrl.certificates.networks.record import NetworkCertificate
    from netctrl.scenario.scenario import Scenario

__all__ = ["network"]

_RTT_TAKES = "groups with round-trip times, each a value or a range, as in long=30ms:60ms,local=10ms"
_FLOWS_TAKES = "groups with numbers of flows, each a value or a range, as in long=5:20"
_CAPACITY_TAKES = "links with rates, each a value or a range, as in access=40Mbit:60Mbit"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Ranges:
    """Quantities of the scenario that have other values, or ranges."""

    rtt: Annotated[str | None, option("NAME=TIME,...", _RTT_TAKES)] = None
    flows: Annotated[str | None, option("NAME=FLOWS,...", _FLOWS_TAKES, "--N")] = None
    capacity: Annotated[str | None, option("NAME=RATE,...", _CAPACITY_TAKES)] = None

    def arguments(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Arguments of `netctrl.certify_network`."""
        return {
            "rtt_s": _read("rtt", self.rtt, parse_duration, _RTT_TAKES),
            "flows": _read("flows", self.flows, parse_count, _FLOWS_TAKES),
            "capacity_bit_per_s": _read("capacity", self.capacity, parse_rate, _CAPACITY_TAKES),
        }


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _NetworkFiles:
    """Requested output."""

    json: CertificateJson = False
    output: CertificateOutput = None
    plot: Annotated[str | None, option("FILE", f"eigenvalues of the loop and −1 ({', '.join(PLOT_SUFFIXES)})")] = None
    report: Report = None
    reach: Annotated[bool, option("", "also search how far 6 dB are kept, with longer round trips and fewer flows")] = (
        False
    )


def network(
    scenario: Annotated[
        str, positional("SCENARIO", "scenario of links and flows: a file, or the name of a bundled one")
    ],
    /,
    ranges: _Ranges | None = None,
    files: _NetworkFiles | None = None,
) -> int:
    """All bottlenecks of a scenario at once, with the delays of flows that cross several of them.

    Examples
    --------
    netctrl certify network parking-lot
    netctrl certify network parking-lot --rtt long=40ms:60ms --json
    """
    given, files = (ranges or _Ranges()).arguments(), files or _NetworkFiles()
    picture = checked_plot(files.plot, files.output)
    check_report(files.report, plot=files.plot, output=files.output)
    from netctrl.certificates.networks.certify import certify_network
    from netctrl.cli.cases import refused
    from netctrl.datasets import network_path, scenario_path
    from netctrl.scenario.read import read_scenario_file
    from netctrl.scenario.scenario import Scenario

    path = scenario_path(scenario)
    chosen = read_scenario_file(path, network_path)
    if not isinstance(chosen, Scenario):
        raise FileError(scenario, "this is a sweep, takes one scenario")
    try:
        found = certify_network(chosen, **given, reach=files.reach, argv=invocation(), inputs=[path])
    except InvalidValue as error:
        if error.argument in given:
            raise InvalidValue(error.argument.partition("_")[0], error.got, error.takes) from error
        raise refused(error, scenario, None) from error
    desired: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if files.plot is not None and picture is not None:
        desired["plot"] = files.plot, lambda: picture_file(_figure(chosen, found), picture)
    if files.report is not None:
        from netctrl.plotting.pages.certificates import network_page

        drawn = None if found.certificate.margins is None else _figure(chosen, found)
        desired["report"] = files.report, lambda: network_page(found, drawn).content()
    if files.output is not None:
        desired["output"] = files.output, lambda: found.to_json().encode()
    write_all(desired)
    yes = found.certificate.status is Status.ADMISSIBLE
    return answer(found.to_json() if files.json else _text(found), yes, found.verdict)


def _read(argument: str, text: str | None, parse: Callable[[str], float], takes: str) -> dict[str, tuple[float, float]]:
    """NAME=VALUE or NAME=LOW:HIGH with commas between, as ranges by name."""
    found: dict[str, tuple[float, float]] = {}
    for part in [] if text is None else text.split(","):
        name, sign, value = part.partition("=")
        if not sign or name.strip() in found:
            raise InvalidValue(argument, text, takes)
        found[name.strip()] = read_range(argument, value, parse, takes)
    return found


def _figure(scenario: Scenario, found: NetworkCertificate) -> Figure:
    from netctrl.certificates.networks.margins import eigenloci
    from netctrl.plotting.certificates import eigenloci_figure

    return eigenloci_figure(found, eigenloci(scenario, found))


def _text(found: NetworkCertificate) -> str:
    warnings = [f"warning: {warning}" for warning in found.certificate.warnings]
    return report(found.verdict, found.rows, warnings)
