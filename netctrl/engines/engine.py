"""Run a scenario or a Design in an engine by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from netctrl.engines.case import Case, case_of
from netctrl.errors import InvalidValue, checked_function, checked_jobs, checked_whole
from netctrl.model.io.provenance import Provenance, provenance
from netctrl.register import ENGINES

__all__ = ["Engine", "Job", "Kind", "OwnEngine", "engine_for", "simulate", "supports"]

Progress = Callable[[float], None]


class Job(NamedTuple):
    """How a case is to be run."""

    progress: Progress | None = None
    argv: tuple[str, ...] = ()
    inputs: tuple[Path, ...] = ()
    runs: int = 1
    """Of a network's scenario, each with traffic of its own."""
    n_jobs: int = 1
    options: Mapping[str, Any] = MappingProxyType({})
    """Of ns-3's program of a network: `packet_size`, `sampled_delays`."""

    def provenance(self, scenario: Any, *libraries: str) -> Provenance:
        """Where a result comes from."""
        return provenance(argv=self.argv, seed=scenario.seed, inputs=self.inputs, libraries=libraries)

    def once(self, scenario: Any) -> None:
        """InvalidValue for a job of several runs."""
        if self.runs != 1:
            raise InvalidValue("runs", self.runs, f"1 of a {type(scenario).__name__}: other runs are other seeds")


class Engine(Protocol):
    """What runs cases; `netctrl.engines` is the group of entry points."""

    name: str

    def lacks(self, case: Case) -> str | None:
        """What of the case it doesn't have; None: it runs it."""
        ...

    def run(self, case: Case, job: Job) -> Any:
        """The result: `scenario`, `simulator`, `provenance`, `summary()`, `measures()`, `table()`, `to_pandas()`."""
        ...


class Kind(NamedTuple):
    """How an engine treats one kind of scenario."""

    run: Callable[[Case, Job], Any]
    lacks: Callable[[Case], str | None] = lambda _: None


class OwnEngine(NamedTuple):
    """An engine with a kernel, or a program, for each kind of scenario."""

    name: str
    kinds: Mapping[type, Kind]

    def lacks(self, case: Case) -> str | None:
        """What of the case it doesn't have; None: it runs it."""
        kind = self.kinds.get(type(case.scenario))
        if kind is None:
            return f"{type(case.scenario).__name__}, only {', '.join(each.__name__ for each in self.kinds)}"
        return kind.lacks(case)

    def run(self, case: Case, job: Job) -> Any:
        """The result."""
        return self.kinds[type(case.scenario)].run(case, job)


def supports(x: Any) -> dict[str, str | None]:
    """Of each engine what it lacks for a scenario or a Design; None: it runs it."""
    case = case_of(x)
    return {name: ENGINES[name].lacks(case) for name in ENGINES}


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
    design: Any = None,
    runs: int = 1,
    n_jobs: int = 1,
    progress: Progress | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Any:
    """Run a scenario, one under a Design's law, or the plant that a Design was made for.

    Parameters
    ----------
    scenario : Scenario, NetworkScenario, FabricScenario, AccessLinkScenario, BottleneckScenario, Case, or a Design
    engine : str
        "fluid", "packet", "ns3", one of another package, or "auto": the first of them that has all that is asked for.
    design : Design, optional
        Whose law is in force.
    runs : int
        Of a network's scenario: how many, each with demands of its own.
    n_jobs : int
        Processes for several runs, −1: one for each core.
    progress : callable, optional
        Called now and then with the share that is done, from 0 to 1.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.

    Returns
    -------
    SimulationResult, NetworkResult, FabricResult, AccessLinkTracking, AccessLinkResult or BottleneckResult
        Each with `summary()`, `measures()`, `table()` and `to_pandas()`.

    Raises
    ------
    InvalidValue
        An engine that isn't there, or that has not what is asked for; a Design that controls another kind of scenario;
        what the engine can't hold.
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
    checked_whole("runs", runs, "a whole number from 1 to 1000000", at_least=1, at_most=1_000_000)
    case = case_of(scenario, design)
    job = Job(progress, tuple(argv), tuple(inputs), runs, checked_jobs(n_jobs))
    return engine_for(case, engine).run(case, job)
