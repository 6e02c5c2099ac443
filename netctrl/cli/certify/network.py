"""`netctrl certify network`: several links with laws of their own, from a scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from netctrl.cli.app import answer, check_files, invocation, picture, report, write_all
from netctrl.cli.cases import ScenarioName
from netctrl.cli.certify.common import CertificateJson, CertificateOutput
from netctrl.cli.options import PLOT_SUFFIXES, Kind, Report, given, option, positional, ranged
from netctrl.core.errors import FileError, InvalidValue, Status
from netctrl.core.units import parse_count, parse_duration, parse_rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from netctrl.certificates.networks.record import NetworkCertificate
    from netctrl.scenario.scenario import Scenario

_RTT_TAKES = "groups with round-trip times, each a value or a range, as in long=30ms:60ms,local=10ms"
_FLOWS_TAKES = "groups with numbers of flows, each a value or a range, as in long=5:20"
_CAPACITY_TAKES = "links with rates, each a value or a range, as in access=40Mbit:60Mbit"


_Ends = tuple[float, float]


def _by_name(metavar: str, parse: Callable[[str], float], takes: str) -> Kind:
    """Kind of options that take NAME=VALUE or NAME=LOW:HIGH with commas between, as ranges by name."""
    ends = ranged(metavar, parse, takes)

    def read(text: str) -> dict[str, _Ends]:
        found: dict[str, _Ends] = {}
        for part in text.split(","):
            name, sign, value = part.partition("=")
            if not sign or name.strip() in found:
                raise InvalidValue("", text, takes)
            found[name.strip()] = ends.read(value)
        return found

    return Kind(metavar, read)


_RTT = _by_name("NAME=TIME,...", parse_duration, _RTT_TAKES)
_FLOWS = _by_name("NAME=FLOWS,...", parse_count, _FLOWS_TAKES)
_CAPACITY = _by_name("NAME=RATE,...", parse_rate, _CAPACITY_TAKES)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Ranges:
    """Quantities of the scenario that have other values, or ranges: arguments of `netctrl.certify_network`."""

    rtt_s: Annotated[Any, _RTT(_RTT_TAKES)] = None
    flows: Annotated[Any, _FLOWS(_FLOWS_TAKES, "--N")] = None
    capacity_bit_per_s: Annotated[Any, _CAPACITY(_CAPACITY_TAKES)] = None


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
        ScenarioName, positional("SCENARIO", "scenario of links and flows: a file, or the name of a bundled one")
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
    asked, files = given(vars(ranges or _Ranges())), files or _NetworkFiles()
    check_files({"output": files.output, "plot": files.plot, "report": files.report})
    from netctrl.certificates.networks.certify import certify_network
    from netctrl.cli.cases import refused
    from netctrl.model.datasets import network_path, scenario_path
    from netctrl.scenario.read import read_scenario_file
    from netctrl.scenario.scenario import Scenario

    path = scenario_path(scenario)
    chosen = read_scenario_file(path, network_path)
    if not isinstance(chosen, Scenario):
        raise FileError(scenario, "this is a sweep, takes one scenario")
    try:
        found = certify_network(chosen, **asked, reach=files.reach, argv=invocation(), inputs=[path])
    except InvalidValue as error:
        if error.argument in asked:
            raise
        raise refused(error, scenario, None) from error
    write_all(
        {
            "plot": picture(lambda: _figure(chosen, found), files.plot),
            "report": (files.report, lambda: _page(chosen, found)),
            "output": (files.output, lambda: found.to_json().encode()),
        }
    )
    yes = found.certificate.status is Status.ADMISSIBLE
    return answer(found.to_json() if files.json else _text(found), yes, found.verdict)


def _figure(scenario: Scenario, found: NetworkCertificate) -> Figure:
    from netctrl.certificates.networks.margins import eigenloci
    from netctrl.plotting.certificates import eigenloci_figure

    return eigenloci_figure(found, eigenloci(scenario, found))


def _page(scenario: Scenario, found: NetworkCertificate) -> bytes:
    from netctrl.plotting.pages.certificates import network_page

    return network_page(found, None if found.certificate.margins is None else _figure(scenario, found)).content()


def _text(found: NetworkCertificate) -> str:
    warnings = [f"warning: {warning}" for warning in found.certificate.warnings]
    return report(found.verdict, found.rows, warnings)
