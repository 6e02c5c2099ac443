"""Running of a scenario or Design in an engine chosen by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from netctrl.core.errors import InvalidValue, checked_function, checked_jobs, checked_whole, checked_word
from netctrl.core.files import made_folder
from netctrl.core.register import ENGINES
from netctrl.engines.case import Case, case_of, kind_of, words_of
from netctrl.model.io.provenance import Provenance, provenance
from netctrl.model.io.record_file import taken

if TYPE_CHECKING:
    from netctrl.core.names import EngineName, Registered
    from netctrl.model.design.design import AnyDesign
    from netctrl.scenario.result import Result
    from netctrl.scenario.scenario import Scenario

Progress = Callable[[float], None]


class Job(NamedTuple):
    """Settings of a run."""

    progress: Progress | None = None
    argv: tuple[str, ...] = ()
    inputs: tuple[Path, ...] = ()
    runs: int = 1
    """Number of runs of a scenario under demands, each with its own traffic."""
    n_jobs: int = 1
    options: Mapping[str, Any] = MappingProxyType({})
    """Options of packets under demands: `sampled_delays`; of the kernel: `pcap`, a folder."""
    first_run: int = 0
    """Number of the first run."""
    watch: bool = True
    """Whether to record the first run's time series."""

    @property
    def numbers(self) -> range:
        """Indices of the runs."""
        return range(self.first_run, self.first_run + self.runs)

    @property
    def told(self) -> dict[str, Any]:
        """Progress, command line and files, as functions that simulate take them."""
        return taken(self, "progress", "argv", "inputs")

    def provenance(self, scenario: Any, *libraries: str) -> Provenance:
        """Provenance of a result."""
        return provenance(argv=self.argv, seed=scenario.seed, inputs=self.inputs, libraries=libraries)

    def once(self, scenario: Any) -> None:
        """InvalidValue for a job with several runs."""
        if self.runs != 1:
            raise InvalidValue("runs", self.runs, f"1 for {words_of(scenario)}: use other seeds for other runs")


class Engine(Protocol):
    """Interface of an engine; other packages register theirs under the entry points `netctrl.engines`.

    "auto" never selects an engine with `auto = False`, such as one that needs a program built first."""

    name: str

    def lacks(self, case: Case) -> str | None:
        """Feature that the case needs and the engine lacks; None if the engine supports the case."""
        ...

    def run(self, case: Case, job: Job) -> Any:
        """Result with `scenario`, `simulator`, `provenance`, `summary()`, `measures()`, `table()`, `to_pandas()`."""
        ...


class Kind(NamedTuple):
    """Functions of an engine for one kind of scenario."""

    run: Callable[[Case, Job], Any]
    lacks: Callable[[Case], str | None] = lambda _: None
    left: Callable[[Case], bool] = lambda _: False
    """Whether "auto" leaves a case, although it is supported, to the next engine."""


class OwnEngine(NamedTuple):
    """An engine with a kernel or a program for each kind of scenario."""

    name: str
    kinds: Mapping[type, Kind]
    auto: bool = True

    def lacks(self, case: Case) -> str | None:
        """Feature that the case needs and the engine lacks; None if the engine supports the case."""
        kind = self.kinds.get(kind_of(case.scenario))
        if kind is None:
            return f"kernel for {words_of(case.scenario)}"
        return kind.lacks(case)

    def leaves(self, case: Case) -> bool:
        """Whether "auto" leaves a case that the engine supports to the next one."""
        return not self.auto or self.kinds[kind_of(case.scenario)].left(case)

    def run(self, case: Case, job: Job) -> Any:
        """Run a case and return its result."""
        return self.kinds[kind_of(case.scenario)].run(case, job)


def supports(x: Any) -> dict[str, str | None]:
    """For each engine the feature that it lacks for a scenario or Design; None if it supports it."""
    case = case_of(x)
    return {name: ENGINES[name].lacks(case) for name in ENGINES.usable()}


def engine_for(x: Any, engine: str = "auto") -> Engine:
    """The engine with the given name, or with "auto" the first that supports x and need not be requested by name.

    Raises
    ------
    InvalidValue
        An unknown engine, or one that lacks a feature; the message lists the engines that have it.
    """
    known = ("auto", *ENGINES.usable())
    if isinstance(engine, str) and engine not in known and engine in ENGINES:
        ENGINES[engine]  # says what is wrong with its package
    checked_word("engine", engine, known)
    case = case_of(x)
    for name in ENGINES.usable() if engine == "auto" else (engine,):  # no more are asked, and so loaded, than need be
        each = ENGINES[name]
        if each.lacks(case) is None and not (engine == "auto" and _leaves(each, case)):
            return each
    lacking = supports(x)
    able = " or ".join(name for name, lack in lacking.items() if lack is None)
    if engine == "auto":
        takes = f"{able}, requested by name" if able else "a scenario that an engine runs"
        raise InvalidValue("engine", engine, f"{takes}: {_said(lacking)}")
    others = f"{able}, which has it" if able else f"no engine has it all: {_said(lacking)}"
    raise InvalidValue("engine", f"{engine}, which has no {lacking[engine]}", others)


def _leaves(engine: Engine, case: Case) -> bool:
    if isinstance(engine, OwnEngine):
        return engine.leaves(case)
    return not getattr(engine, "auto", True)


def _said(lacking: dict[str, str | None]) -> str:
    return "; ".join(f"{name} has no {lack}" for name, lack in lacking.items() if lack is not None)


def simulate(
    scenario: Scenario | Case | AnyDesign | str | os.PathLike[str],
    engine: EngineName | Registered | Literal["auto"] = "auto",
    *,
    design: AnyDesign | str | os.PathLike[str] | None = None,
    runs: int = 1,
    n_jobs: int = 1,
    pcap: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Result:
    """Simulate a scenario, alone or under a Design's law, or a Design on the plant that it was made for.

    Parameters
    ----------
    scenario : Scenario, Design, Case, path or str
        Scenario to simulate. A Design stands for its own plant under its law, a name for a scenario that comes with
        netctrl.
    engine : str
        "fluid", "packet", "ns3", "kernel", one of another package (to type checkers
        `netctrl.core.names.Registered("name")`), or "auto": the first that supports the scenario.
        "kernel", the Linux kernel in virtual time, is never chosen by "auto"; "fluid" is chosen for flows over links
        only where all are Reno, FAST or Web sessions over single queues.
    design : Design or path, optional
        Design whose law controls the scenario.
    runs : int
        Number of runs of a scenario under demands, each with its own.
    n_jobs : int
        Number of processes for several runs, −1: one for each core.
    pcap : path, optional
        Folder for what each link transmits, as LINK.pcap (`netctrl.kernel.scenarios.run.run_scenario`); only with the
        engine "kernel".
    progress : callable, optional
        Called from time to time with the share done, from 0 to 1.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.

    Returns
    -------
    Result
        It has `summary()`, `measures()`, `table()` and `to_pandas()`.

    Raises
    ------
    InvalidValue
        An unknown engine, an engine that doesn't support the scenario, or a Design for another kind of scenario.
    NetctrlError
        ns-3 is missing or its program fails, or the Linux kernel refuses a request.

    Examples
    --------
    Two CUBIC flows on a link of 10 Mbit/s, packet by packet:

    >>> import netctrl
    >>> line = netctrl.Link(id="line", source="left", target="right", capacity="10Mbit", buffer="60kB")
    >>> flows = netctrl.Flow(rtt="50ms", count=2, sender="cubic")
    >>> scenario = netctrl.Scenario(name="two flows", duration="10s", links=(line,), flows=(flows,))
    >>> result = netctrl.simulate(scenario, "packet")
    >>> 0.9 < result["utilization", "line"] <= 1.0
    True

    The plant of a Design, in the fluid engine:

    >>> result = netctrl.simulate(netctrl.arc(50, 0.5, 10e6))
    >>> result.simulator, round(result["utilization", "bottleneck"], 2)
    ('fluid', 0.98)
    """
    if progress is not None:
        checked_function("progress", progress)
    checked_whole("runs", runs, "a whole number from 1 to 1000000", at_least=1, at_most=1_000_000)
    case = case_of(scenario, design)
    chosen = engine_for(case, engine)
    if pcap is not None and chosen.name != "kernel":
        raise InvalidValue("pcap", str(pcap), f"nothing with the engine {chosen.name}: only the kernel's links have it")
    options = {} if pcap is None else {"pcap": made_folder("pcap", pcap)}
    return chosen.run(case, Job(progress, tuple(argv), tuple(inputs), runs, checked_jobs(n_jobs), options))
