"""Evaluation of a law: all cases of an RFC's list, with the law and with its reference, over seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isnan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, checked_flag, checked_function, checked_jobs, checked_whole, checked_word
from netctrl.core.register import ENGINES
from netctrl.engines.case import case_of
from netctrl.engines.engine import Job, engine_for
from netctrl.evaluation import rfc7928, rfc9743
from netctrl.evaluation.case import Case, Entry, Plan, plan_case
from netctrl.evaluation.metrics import METRICS, Value, measured
from netctrl.evaluation.record import (
    EVALUATION_SCHEMA,
    EvaluatedCase,
    EvaluatedLaw,
    EvaluatedSection,
    Evaluation,
    Measured,
)
from netctrl.evaluation.subject import Subject, subject_of, with_parameters
from netctrl.model.io.provenance import provenance
from netctrl.scenario.figures import estimate

if TYPE_CHECKING:
    from netctrl.core.names import EvaluationEngine

Progress = Callable[[float], None]

ENGINES_OF_CASES = ("packet", "ns3", "kernel")
"""Engines that measure what the lists ask for."""
QUICK = 0.3
"""Factor on all times of a quick evaluation."""
_SEEDS, _QUICK_SEEDS, _MAX_SEEDS = 10, 3, 1000
_FACTORS = (0.5, 2.0)
"""Factors on the parameters of a law, for Section 8.3 of RFC 7928."""
_LISTS: dict[str, tuple[int, tuple[Entry, ...]]] = {
    "aqm": (7928, rfc7928.ENTRIES),
    "congestion control": (9743, rfc9743.ENTRIES),
}
SECTIONS = {rfc: tuple(entry.section for entry in entries) for rfc, entries in _LISTS.values()}
"""RFC -> numbers of its sections."""


class _Arm(NamedTuple):
    """A law in a case's place, and its values over seeds."""

    name: str
    law: Any


class _Trial(NamedTuple):
    """A case to run with the law, and with its reference."""

    case: Case
    law: _Arm
    reference: _Arm | None
    reason: str | None = None
    """Why it can't be run."""


def evaluate(
    law: str | PathLike[str],
    *,
    parameters: Mapping[str, Any] | None = None,
    engine: EvaluationEngine = "packet",
    seeds: int | None = None,
    only: Sequence[str] | None = None,
    quick: bool = False,
    n_jobs: int = 1,
    progress: Progress | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Evaluation:
    """Evaluate an AQM by RFC 7928's scenarios, or a congestion control by RFC 9743's.

    Each case runs with the law and with a reference over the same seeds: drop-tail for an AQM; Cubic, or Reno for Cubic
    itself, for a congestion control. Means over seeds have 95 % intervals by Student's t, as have the means of the
    paired differences. Sections that can't be simulated are listed with the reason. Results depend on the seeds and on
    nothing else.

    Parameters
    ----------
    law : str or path
        Name of a law, as `netctrl list laws` gives it, or the Design file of arc, pacing or mpcc.
        "arc" has the gain that `netctrl.arc` finds for the list's bottleneck.
    parameters : mapping, optional
        Values of the law's parameters, with units as in scenario files.
    engine : str
        "packet", "ns3" or "kernel".
    seeds : int, optional
        Number of independent runs of each case; default 10, or 3 of a quick evaluation and of the other engines.
    only : sequence of str, optional
        Numbers of sections to run, such as "8.2" for all of Section 8.2; default all.
    quick : bool
        Whether all times of the cases are shortened to 0.3 of the list's.
    n_jobs : int
        Number of runs at a time, −1: one for each core.
    progress : callable, optional
        Called from time to time with the share done, from 0 to 1.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.

    Returns
    -------
    Evaluation

    Raises
    ------
    InvalidValue
        An unknown law, parameter, engine or section, or a law without default parameters.
    FileError
        A Design file can't be read.
    NetctrlError
        ns-3 or the kernel is missing, or its program fails.

    Examples
    --------
    >>> import netctrl
    >>> found = netctrl.evaluate("codel", only=["8.2.2"], seeds=3, quick=True)
    >>> found.sections[0].cases[0].measure("queueing delay").differs
    True
    """
    if progress is not None:
        checked_function("progress", progress)
    checked_word("engine", engine, ENGINES_OF_CASES)
    short = checked_flag("quick", quick)
    default = _SEEDS if engine == "packet" and not short else _QUICK_SEEDS
    takes = f"a whole number from 1 to {_MAX_SEEDS}"
    count = checked_whole("seeds", default if seeds is None else seeds, takes, at_least=1, at_most=_MAX_SEEDS)
    jobs = checked_jobs(n_jobs)
    subject = subject_of(law, parameters)
    rfc, _ = _LISTS[subject.kind]
    entries = sections_of(subject, only)
    factor = QUICK if short else 1.0
    reference = _reference_of(subject)
    trials = {entry.section: _trials(entry, subject, reference, engine, factor) for entry in entries}
    numbers = tuple(range(1, count + 1))
    values = _run_all([each for some in trials.values() for each in some], numbers, engine, jobs, progress)
    origin = provenance(argv=argv, seed=numbers[0], inputs=inputs, libraries=("numpy", "numba", "scipy"))
    return Evaluation(
        schema=EVALUATION_SCHEMA,
        law=EvaluatedLaw(name=subject.name, kind=subject.kind, origin=subject.origin, parameters=subject.parameters),
        rfc=rfc,
        engine=engine,
        seeds=numbers,
        time_factor=factor,
        sections=tuple(_section(entry, subject, trials[entry.section], values) for entry in entries),
        provenance=origin,
    )


def sections_of(subject: Subject, only: Sequence[str] | None = None) -> list[Entry]:
    """Sections of the list that applies to a law, or those whose number is given or begins with one that is.

    Raises
    ------
    InvalidValue
        No section has a number that is given.
    """
    _, entries = _LISTS[subject.kind]
    if only is None:
        return list(entries)
    if isinstance(only, str) or not isinstance(only, Sequence) or not only:
        raise InvalidValue("only", only, "a list of numbers of sections")
    for number in only:
        if not isinstance(number, str) or not any(_within(entry.section, number) for entry in entries):
            raise InvalidValue("only", number, f"one of {', '.join(entry.section for entry in entries)}")
    return [entry for entry in entries if any(_within(entry.section, number) for number in only)]


def _within(section: str, number: str) -> bool:
    return section == number or section.startswith((f"{number}.", f"{number} "))


def _reference_of(subject: Subject) -> _Arm | None:
    if subject.kind == "aqm":
        return None if subject.name == "droptail" else _Arm("droptail", subject_of("droptail").law)
    name = "reno" if subject.law == "cubic" else "cubic"
    return _Arm(name, name)


def _trials(entry: Entry, subject: Subject, reference: _Arm | None, engine: str, factor: float) -> list[_Trial]:
    if entry.reason_for(subject.name) is not None:
        return []
    law, cases = _Arm(subject.name, subject.law), [case.faster(factor) for case in entry.cases]
    if not entry.varied:
        return [_able(_Trial(case, law, reference), engine) for case in cases]
    return [_able(each, engine) for case in cases for each in _varied(case, subject)]


def _varied(case: Case, subject: Subject) -> Iterator[_Trial]:
    """The case with each numeric parameter of the law multiplied by each factor; the unchanged law is the reference."""
    base = _Arm(f"{subject.name} unchanged", subject.law)
    for name, value in subject.parameters.items():
        if not isinstance(value, float) or value <= 0.0:
            continue
        for factor in _FACTORS:
            trial = _Trial(case.named(f"{name} × {factor:g}"), base, base)
            try:
                changed = with_parameters(subject, {name: factor * value}).law
            except InvalidValue as error:
                yield trial._replace(reason=f"the law takes {error.takes} for {name}")
            else:
                yield trial._replace(law=_Arm(subject.name, changed))


def _able(trial: _Trial, engine: str) -> _Trial:
    """The trial, with a reason where the engine or a scenario refuses it."""
    if trial.reason is not None:
        return trial
    try:
        for arm in filter(None, (trial.law, trial.reference)):
            lack = ENGINES[engine].lacks(case_of(_plan(trial.case, arm.law, engine).scenario))
            if lack is not None:
                return trial._replace(reason=f"{engine} has no {lack}")
    except InvalidValue as error:
        return trial._replace(reason=str(error))
    return trial


def _key(trial: _Trial, arm: _Arm) -> str:
    """The same for equal runs."""
    return repr((trial.case.named(""), arm.law))


def _run_all(
    trials: list[_Trial], seeds: tuple[int, ...], engine: str, n_jobs: int, progress: Progress | None
) -> dict[str, list[list[Value]]]:
    """Run -> its metrics for each seed."""
    from joblib import Parallel, delayed

    runs: dict[str, tuple[Case, Any]] = {}
    for trial in trials:
        for arm in filter(None, (trial.law, trial.reference)):
            if trial.reason is None:
                runs.setdefault(_key(trial, arm), (trial.case, arm.law))
    work = [(key, seed) for key in runs for seed in seeds]
    tasks = (delayed(_run)(*runs[key], seed, engine) for key, seed in work)
    found: dict[str, list[list[Value]]] = {key: [] for key in runs}
    done = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(tasks)
    for number, ((key, _), values) in enumerate(zip(work, done, strict=True), 1):
        found[key].append(values)
        if progress is not None:
            progress(number / len(work))
    return found


def _plan(case: Case, law: Any, engine: str) -> Plan:
    """The case as a scenario; only the packet engine needs noise, which ns-3 lacks and the kernel has of its own."""
    return plan_case(case, law, noise=engine == "packet")


def _run(case: Case, law: Any, seed: int, engine: str) -> list[Value]:
    plan = _plan(case, law, engine)
    scenario = plan.scenario.replace(seed=seed)
    given = case_of(scenario)
    return measured(plan._replace(scenario=scenario), engine_for(given, engine).run(given, Job()))


def _section(
    entry: Entry, subject: Subject, trials: list[_Trial], values: dict[str, list[list[Value]]]
) -> EvaluatedSection:
    reason = entry.reason_for(subject.name)
    if entry.varied and not trials:
        reason = f"{subject.name} has no numeric parameter"
    return EvaluatedSection(
        section=entry.section,
        title=entry.title,
        metrics=entry.metrics,
        reason=reason,
        cases=tuple(_case(trial, values) for trial in trials),
    )


def _case(trial: _Trial, values: dict[str, list[list[Value]]]) -> EvaluatedCase:
    measures: tuple[Measured, ...] = ()
    if trial.reason is None:
        of_law = values[_key(trial, trial.law)]
        other = None if trial.reference is None else values[_key(trial, trial.reference)]
        measures = tuple(_measured(of_law, other, place) for place in range(len(of_law[0])))
    return EvaluatedCase(
        name=trial.case.name,
        note=trial.case.note,
        reason=trial.reason,
        reference=None if trial.reference is None else trial.reference.name,
        measures=measures,
    )


def _measured(of_law: list[list[Value]], other: list[list[Value]] | None, place: int) -> Measured:
    first = of_law[0][place]
    values = np.array([each[place].value for each in of_law])
    against = np.full(len(values), np.nan) if other is None else np.array([each[place].value for each in other])
    mean, width = _estimated(values)
    difference, difference_width = _estimated(values - against)
    return Measured(
        metric=first.metric,
        of=first.of,
        unit=METRICS[first.metric].unit,
        values=tuple(None if isnan(value) else float(value) for value in values),
        mean=mean,
        half_width=width,
        reference_mean=_estimated(against)[0],
        difference=difference,
        difference_half_width=difference_width,
    )


def _estimated(values: np.ndarray) -> tuple[float | None, float | None]:
    """Mean and half width over the values that aren't NaN."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None, None
    found = estimate(known)
    return found.mean, found.half_width
