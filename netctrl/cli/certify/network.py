"""`netctrl certify network`: several links with laws of their own, from a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from netctrl.cli.app import GOOD, invocation, positional, report, say, write_all
from netctrl.cli.certify.installed import ListFiles
from netctrl.errors import FileError, InvalidValue, NoAdmissibleDesign, Status

if TYPE_CHECKING:
    from netctrl.certificates.networks.record import NetworkCertificate

__all__ = ["network"]


def network(
    scenario: Annotated[
        str, positional("SCENARIO", "scenario of links and flows: a file, or the name of a bundled one")
    ],
    /,
    files: ListFiles | None = None,
) -> int:
    """All bottlenecks of a scenario at once, with the delays of flows that cross several of them.

    Examples
    --------
    netctrl certify network parking-lot
    netctrl certify network parking-lot --json
    """
    files = files or ListFiles()
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
        found = certify_network(chosen, argv=invocation(), inputs=[path])
    except InvalidValue as error:
        raise refused(error, scenario, None) from error
    if files.output is not None:
        write_all({"output": (files.output, lambda: found.to_json().encode())})
    say(found.to_json() if files.json else _text(found))
    if found.certificate.status is not Status.ADMISSIBLE:
        raise NoAdmissibleDesign(found.verdict)
    return GOOD


def _text(found: NetworkCertificate) -> str:
    warnings = [f"warning: {warning}" for warning in found.certificate.warnings]
    return report(found.verdict, found.rows, warnings)
