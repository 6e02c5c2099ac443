"""What a command line runs: names of files that come with netctrl; a scenario, a Design's file, or both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from netctrl.cli.options import RATE, kind, option, whole
from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.units import DURATION_TAKES, RATE_TAKES, parse_duration, parse_rate
from netctrl.model.datasets import models, networks, problems, scenarios, sweeps, traces

if TYPE_CHECKING:
    from netctrl.engines.case import Case
    from netctrl.model.network import Network

__all__ = [
    "RUNS",
    "SEED",
    "ModelName",
    "NetworkAdded",
    "NetworkName",
    "ProblemName",
    "References",
    "ScenarioName",
    "SweepName",
    "TraceName",
    "inputs_of",
    "read_added",
    "read_case",
    "read_reference",
    "refused",
    "with_references",
]

SCENARIO_TAKES = "a TOML file or the name of a scenario, or give --design"
REFERENCE_TAKES = (
    "values of all outputs, as in delay=0.676,jitter=0.361; semicolons separate successive references of equal length"
)
SEED = whole("N", "a whole number from 0 to 4294967295", most=2**32 - 1)
RUNS = whole("N", "a whole number from 1 to 999999", least=1, most=999_999)


_UNIT = kind("RATE", lambda text: parse_rate(text, zero=True), f"0bit, or {RATE_TAKES}")
_DELAY = kind("TIME", lambda text: parse_duration(text, zero=True), f"0s, or {DURATION_TAKES}")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NetworkAdded:
    """What a command adds to a network's file."""

    capacity: Annotated[float | None, RATE("capacity of links for which the file gives none")] = None
    capacity_unit: Annotated[float | None, RATE("rate of a capacity of 1 if the file gives no unit")] = None
    delay: Annotated[float | None, _DELAY("delay of links for which the file gives neither delay nor length")] = None
    delay_unit: Annotated[float | None, _DELAY("time of a delay of 1 if the file gives no unit")] = None
    demands: Annotated[
        str | None, option("FILE", "traffic matrices, or a folder of them, instead of the file's demands")
    ] = None
    demand_unit: Annotated[float | None, _UNIT("rate of a demand of 1 if the file gives no unit")] = None
    gravity: Annotated[float | None, RATE("demands by the gravity model, with this rate in all")] = None


def read_added(network: str, added: NetworkAdded | None) -> tuple[Network, tuple[str, ...], list[Path]]:
    """A network's file with what a command adds, notes on it, and the files that were read."""
    from netctrl.model.datasets import network_path
    from netctrl.model.network import noted_network
    from netctrl.model.networks.demands import gravity
    from netctrl.model.networks.draft import added_of

    path, given = network_path(network), dict(vars(added or NetworkAdded()))
    total, demands = given.pop("gravity"), given.pop("demands")
    found, notes = noted_network(path, demands, added_of(**given))
    files = [Path(each) for each in (path, demands) if each and Path(each).is_file()]
    return found if total is None else gravity(found, total), notes, files


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class References:
    """What a tracking law is to follow."""

    reference: Annotated[str | None, option("VALUES", f"with a Design of connet: {REFERENCE_TAKES}")] = None
    measured: Annotated[
        str | None, option("WHAT", "with a Design of connet: average (over packets) or period (means over each period)")
    ] = None
    governor: Annotated[bool, option("", "with a Design of connet: limit references to feasible ones")] = False


def read_case(scenario: str | None, design: str | None, seed: int | None = None) -> Case:
    """The scenario of a command line, under the law of its Design and with its seed.

    Raises
    ------
    InvalidValue, FileError
        Neither is given, or the given one can't be used.
    """
    from netctrl.engines.case import case_of, with_seed
    from netctrl.model.datasets import network_path, scenario_path
    from netctrl.model.design.design import read_design
    from netctrl.scenario.network.policy import DesignPolicy, messages_of
    from netctrl.scenario.network.sweep import SweepSpec
    from netctrl.scenario.read import read_scenario_file
    from netctrl.scenario.scenario import Scenario

    if scenario is None and design is None:
        raise InvalidValue("scenario", None, SCENARIO_TAKES)
    chosen: Any = None if scenario is None else read_scenario_file(scenario_path(scenario), network_path)
    if isinstance(chosen, SweepSpec):
        raise FileError(scenario, "this is a sweep; run it with `netctrl sweep`")
    if isinstance(chosen, Scenario) and chosen.under_demands and design is not None:
        control = DesignPolicy(file=design, messages=messages_of(chosen.control))
        chosen, law = chosen.replace(control=control), None
    else:
        law = None if design is None else read_design(design)
    try:
        case = case_of(chosen, law)
    except InvalidValue as error:
        if law is not None and (error.argument, error.got) == ("design", law.method):
            raise FileError(design or "", f"this is a Design of {law.method}; expected {error.takes}") from None
        if scenario is not None and error.argument in ("design", "scenario"):
            raise
        raise FileError(design or "", _why(error, scenario)) from None
    return case if seed is None else case._replace(scenario=with_seed(case.scenario, seed))


def _why(error: InvalidValue, scenario: str | None) -> str:
    return str(error) if scenario is not None else f"its plant can't be simulated: {error}"


def with_references(case: Case, asked: References | None) -> Case:
    """The case with the references of a tracking law; InvalidValue if the law takes none or they can't be used."""
    import msgspec

    from netctrl.model.design.design import ConnetDesign, MpcDesign
    from netctrl.scenario.network.track import Track

    asked = asked or References()
    given = {name: value for name, value in vars(asked).items() if value not in (None, False)}
    tracks = isinstance(case.design, MpcDesign) and isinstance(case.scenario.control, Track)
    if not tracks and not isinstance(case.design, ConnetDesign):
        for name, value in given.items():
            raise InvalidValue(
                name, value, "a value only with a Design of connet, or one of mpc that sets flows' rates"
            )
        return case
    if asked.measured not in ("average", "period", None):
        raise InvalidValue("measured", asked.measured, "average or period")
    if asked.reference is not None:
        given["reference"] = read_reference(asked.reference, case)
    control = msgspec.structs.replace(case.scenario.control, **given)
    return case._replace(scenario=case.scenario.replace(control=control))


def read_reference(text: str, case: Case) -> Any:
    """References of all outputs, which follow each other, from the text of `--reference`."""
    outputs, periods = case.design.law.outputs, round(case.scenario.duration / case.design.law.interval_s)
    try:
        found = [dict(part.split("=") for part in each.split(",")) for each in text.split(";")]
        named = [{name.strip(): float(value) for name, value in each.items()} for each in found]
        given = [[each.pop(name) for name in outputs] for each in named]
    except (KeyError, ValueError):
        raise InvalidValue("reference", text, f"{REFERENCE_TAKES}; the outputs are {', '.join(outputs)}") from None
    if any(named):
        raise InvalidValue("reference", text, f"exactly the outputs {', '.join(outputs)}")
    if len(given) > periods:
        raise InvalidValue("reference", text, f"at most {periods} references, one a period")
    return given


def refused(error: InvalidValue, scenario: str | None, design: str | None) -> InvalidValue | FileError:
    """The error restated for the file or option that the refused key came from."""
    if design is not None and error.argument == "control.file":
        return InvalidValue("design", design, error.takes)
    return FileError(scenario or design or "", str(error))


def inputs_of(scenario: str | None, design: str | None) -> list[Path]:
    """The files that `read_case` reads."""
    from netctrl.model.datasets import scenario_path

    found = [] if scenario is None else [scenario_path(scenario)]
    return found if design is None else [*found, Path(design)]


if TYPE_CHECKING:
    ModelName = NetworkName = ProblemName = ScenarioName = SweepName = TraceName = str
else:  # any text is taken: cyclopts tries str first
    ModelName = str | Literal[models()]
    NetworkName = str | Literal[networks()]
    ProblemName = str | Literal[problems()]
    ScenarioName = str | Literal[scenarios()]
    SweepName = str | Literal[sweeps()]
    TraceName = str | Literal[traces()]
