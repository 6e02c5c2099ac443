"""Run a scenario or a Design in an engine by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from netctrl.errors import InvalidValue, checked_function
from netctrl.model.design.design import ArcDesign, MpccDesign
from netctrl.register import ENGINES
from netctrl.scenario.fabric.design import design_dumbbell
from netctrl.scenario.tcp_aqm.scenario import design_scenario

__all__ = ["Engine", "Job", "engine_for", "scenario_of", "simulate", "supports"]

Progress = Callable[[float], None]


class Job(NamedTuple):
    """How a scenario is to be run."""

    progress: Progress | None = None
    argv: tuple[str, ...] = ()
    inputs: tuple[Path, ...] = ()


class Engine(Protocol):
    """What runs scenarios; `netctrl.engines` is the group of entry points."""

    name: str

    def lacks(self, scenario: Any) -> str | None:
        """What of the scenario it doesn't have; None: it runs it."""
        ...

    def run(self, scenario: Any, job: Job) -> Any:
        """The result."""
        ...


def scenario_of(x: Any) -> Any:
    """A scenario as it is; of a Design the plant that it was made for, under its law."""
    if isinstance(x, ArcDesign):
        return design_scenario(x.inputs, x.law)
    if isinstance(x, MpccDesign):
        return design_dumbbell(x.law)
    return x


def supports(x: Any) -> dict[str, str | None]:
    """Of each engine what it lacks for a scenario or a Design; None: it runs it."""
    scenario = scenario_of(x)
    return {name: ENGINES[name].lacks(scenario) for name in ENGINES}


def engine_for(x: Any, engine: str = "auto") -> Engine:
    """The engine of a name, or with "auto" the first that runs x.

    Raises
    ------
    InvalidValue
        No such engine; one that lacks something, with those that don't.
    """
    if engine not in (*ENGINES, "auto"):
        raise InvalidValue("engine", engine, f"one of auto, {', '.join(ENGINES)}")
    lacking = supports(x)
    able = [name for name, lack in lacking.items() if lack is None]
    if engine == "auto" and able:
        return ENGINES[able[0]]
    if engine == "auto":
        raise InvalidValue("engine", engine, "a scenario that an engine runs: " + _said(lacking))
    if lacking[engine] is not None:
        others = f"{' or '.join(able)}, which has it" if able else f"no engine has it all: {_said(lacking)}"
        raise InvalidValue("engine", f"{engine}, which has no {lacking[engine]}", others)
    return ENGINES[engine]


def _said(lacking: dict[str, str | None]) -> str:
    return "; ".join(f"{name} has no {lack}" for name, lack in lacking.items() if lack is not None)


def simulate(
    scenario: Any,
    engine: str = "auto",
    *,
    progress: Progress | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Any:
    """Run a scenario, or the plant of a Design under its law.

    Parameters
    ----------
    scenario : Scenario, NetworkScenario, FabricScenario, ArcDesign or MpccDesign
    engine : str
        "fluid", "packet", "ns3", one of another package, or "auto": the first of them that has all that is asked for.
    progress : callable, optional
        Called now and then with the share that is done, from 0 to 1.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.

    Returns
    -------
    SimulationResult, NetworkResult or FabricResult

    Raises
    ------
    InvalidValue
        An engine that isn't there, or that has not what is asked for; what the engine can't hold.
    NetctrlError
        ns-3 isn't there, or its program fails.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.scenario.tcp_aqm.flows import BulkFlows
    >>> from netctrl.scenario.tcp_aqm.scenario import Link
    >>> line = Link(id="line", source="left", target="right", capacity="10Mbit", buffer="60kB")
    >>> flows = BulkFlows(id="flows", path=("line",), rtt="50ms", count=2, sender="cubic")
    >>> scenario = netctrl.Scenario(name="two flows", duration="10s", links=(line,), flows=(flows,))
    >>> result = netctrl.simulate(scenario, "packet")
    >>> 0.9 < result.summary().links[0].utilization <= 1.0
    True
    """
    if progress is not None:
        checked_function("progress", progress)
    chosen = scenario_of(scenario)
    return engine_for(chosen, engine).run(chosen, Job(progress, tuple(argv), tuple(inputs)))
