"""Record of an evaluation: every section of the RFC with its cases and metrics over seeds, or the reason for none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from netctrl.core.errors import optional_import
from netctrl.core.units import format_quantity
from netctrl.evaluation.metrics import METRICS
from netctrl.model.io.display import Reported, Rows
from netctrl.model.io.provenance import Provenance
from netctrl.model.io.record_file import FileRecord, Record, read_record

if TYPE_CHECKING:
    import pandas as pd

EVALUATION_SCHEMA = "netctrl.evaluation/1"
_MAX_BYTES = 2**26
_SHOWN = {
    "utilization": "used",
    "queueing delay": "queueing",
    "queueing delay 95 %": "95 %",
    "loss": "lost",
    "fairness": "fairness",
    "goodput share": "share",
    "completion time": "completion",
    "delivered": "delivered",
    "packets per round trip": "packets a round trip",
    "over TCP's rate": "of TCP's rate",
}
"""Metric in the printed table -> its short name."""


_HEADLINES = {
    7928: ("8.2.3", None, ("queueing delay", "utilization"), "Medium congestion: {} of queueing delay, {} used"),
    9743: ("5.2.1", "1 beside 1 of cubic", ("goodput share",), "Beside one flow of Cubic: {} of the goodput"),
}
"""RFC -> section, case, metrics and words of its main result."""


class EvaluatedLaw(Record, frozen=True):
    """Law that was evaluated."""

    name: str
    """As in `netctrl evaluate NAME`."""
    kind: Literal["aqm", "congestion control"]
    """What it is."""
    origin: str
    """Where its parameters come from."""
    parameters: dict[str, Any]
    """By name, in SI units, as in scenario files."""


class Measured(Record, frozen=True):
    """One metric of a case over seeds, and its paired difference from the reference's."""

    metric: str
    """Name of the metric."""
    of: str
    """Link, group of flows, or two groups of a ratio."""
    unit: str
    """Unit of the values: s, bit/s, "%" for a share from 0 to 1, or empty."""
    values: tuple[float | None, ...]
    """Value of each seed; null where nothing was measured."""
    mean: float | None
    """Mean over the seeds with a value; null without any."""
    half_width: float | None
    """Half width of the mean's 95 % interval, by Student's t; null with fewer than two values."""
    reference_mean: float | None
    """Mean of the reference; null without a reference or value."""
    difference: float | None
    """Mean over seeds of value minus the reference's value of the same seed; null without pairs."""
    difference_half_width: float | None
    """Half width of that mean's 95 % interval; null with fewer than two pairs."""

    @property
    def differs(self) -> bool:
        """Whether the interval of the difference leaves out 0."""
        low = self.difference_half_width
        return self.difference is not None and low is not None and abs(self.difference) > low


class EvaluatedCase(Record, frozen=True):
    """One simulated case of a section."""

    name: str
    """What is simulated."""
    note: str
    """Where it departs from the RFC; empty: nowhere."""
    reason: str | None
    """Why it wasn't run; null: it was."""
    reference: str | None
    """Law in the same place in the reference's runs; null: none."""
    measures: tuple[Measured, ...]
    """Metrics."""

    def measure(self, metric: str, of: str | None = None) -> Measured | None:
        """The first measure of a metric, of a link or group if one is named; None where there is none."""
        return next((each for each in self.measures if each.metric == metric and of in (None, each.of)), None)


class EvaluatedSection(Record, frozen=True):
    """One section of the RFC."""

    section: str
    """Number."""
    title: str
    """Topic."""
    metrics: tuple[str, ...]
    """Metrics of all cases that the section defines."""
    reason: str | None
    """Why it wasn't run; null: it was, or it defines metrics."""
    cases: tuple[EvaluatedCase, ...]
    """Cases of the section."""


class Evaluation(Reported, FileRecord, frozen=True):
    """Evaluation of a law by an RFC's scenario list, saved as one file.

    Examples
    --------
    >>> import netctrl
    >>> found = netctrl.evaluate("pie", only=["8.2.3"], seeds=3, quick=True)
    >>> found.sections[0].title
    'Medium congestion (0.5 % of loss)'
    >>> delay = found.sections[0].cases[0].measure("queueing delay")
    >>> delay.mean < delay.reference_mean
    True
    """

    schema: Literal["netctrl.evaluation/1"]
    """Version of the file format."""
    law: EvaluatedLaw
    """What was evaluated."""
    rfc: int
    """Number of the RFC."""
    engine: str
    """Engine that ran the cases."""
    seeds: tuple[int, ...]
    """Seeds; each is an independent run of every case."""
    time_factor: float
    """Factor on all times of the cases; 1 unless the evaluation is a quick one."""
    sections: tuple[EvaluatedSection, ...]
    """Sections in the RFC's order, also those that aren't run."""
    provenance: Provenance
    """How it was made."""

    @property
    def verdict(self) -> str:
        """What was run, in one sentence."""
        run = [each for each in self.sections if any(case.reason is None for case in each.cases)]
        cases = sum(case.reason is None for each in run for case in each.cases)
        defined = sum(bool(each.metrics) for each in self.sections)
        left = len(self.sections) - len(run) - defined
        metrics = f" {defined} define metrics," if defined else ""
        return (
            f"{self.law.name} by RFC {self.rfc}: {_count(len(run), 'section')} run in {_count(cases, 'case')},{metrics}"
            f" {left} not run; {_seeds(len(self.seeds))}{_headline(self)}"
        )

    def rows(self) -> list[tuple[str, str]]:
        """(name, text): the main metrics of each case, and the reason of each section that isn't run."""
        return list(_rows(self))

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """Title, and rows of (name, text)."""
        return self.verdict, self.rows()

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame with one row per section, case and metric."""
        with optional_import():
            import pandas as pd

        rows = [
            {"section": section.section, "case": case.name} | msgspec.structs.asdict(each)
            for section in self.sections
            for case in section.cases
            for each in case.measures
        ]
        return pd.DataFrame(rows)

    def _shown(self) -> Rows:
        return self.table()


def measured_text(metric: str, value: float | None, half_width: float | None = None) -> str:
    """A metric's value as text with its unit and the half width of its interval; empty without a value.

    Parameters
    ----------
    metric : str
        A key of METRICS.
    value, half_width : float or None
        In the metric's unit.
    """
    if value is None:
        return ""
    width = f" ± {_text(metric, half_width, 2)}" if half_width else ""
    return _text(metric, value, 3) + width


def difference_text(measure: Measured) -> str:
    """The difference from the reference with its sign and interval; empty without one."""
    if measure.difference is None:
        return ""
    sign = "+" if measure.difference > 0.0 else ""
    return sign + measured_text(measure.metric, measure.difference, measure.difference_half_width)


def read_evaluation(path: str | os.PathLike[str]) -> Evaluation:
    """Read an evaluation's file.

    Raises
    ------
    FileError
        The file can't be read, or isn't an evaluation.
    """
    return read_record(path, Evaluation, schema=EVALUATION_SCHEMA, what="evaluation", max_bytes=_MAX_BYTES)


def _text(metric: str, value: float, digits: int) -> str:
    unit = METRICS[metric].unit
    if unit == "%":
        return f"{100.0 * value:.{digits}g} %"
    return format_quantity(value, unit, digits) if unit else f"{float(f'{value:.{digits}g}'):g}"


def _headline(found: Evaluation) -> str:
    """The main figures of the RFC's main case, as further words of the verdict; empty where that wasn't run."""
    number, name, metrics, words = _HEADLINES[found.rfc]
    cases = [case for each in found.sections if each.section == number for case in each.cases]
    case = next((case for case in cases if name in (None, case.name)), None)
    values = [] if case is None else [case.measure(metric) for metric in metrics]
    texts = [measured_text(each.metric, each.mean, each.half_width) for each in values if each is not None]
    return f". {words.format(*texts)}" if len(texts) == len(metrics) and all(texts) else ""


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _seeds(count: int) -> str:
    return "one seed, no intervals" if count == 1 else f"{count} seeds, 95 % intervals"


def _rows(found: Evaluation) -> Iterator[tuple[str, str]]:
    for section in found.sections:
        name = f"{section.section} {section.title}"
        if section.metrics:
            yield name, f"metrics of all cases: {', '.join(section.metrics)}"
        elif section.reason is not None:
            yield name, f"not run: {section.reason}"
        else:
            yield name, ""
        for case in section.cases:
            yield f"  {case.name}", _case_text(case)


def _case_text(case: EvaluatedCase) -> str:
    if case.reason is not None:
        return f"not run: {case.reason}"
    shown = []
    for metric, short in _SHOWN.items():
        measure = case.measure(metric)
        if measure is not None and measure.mean is not None:
            shown.append(f"{short} {measured_text(metric, measure.mean, measure.half_width)}")
    delay = case.measure("queueing delay")
    if delay is not None and case.reference is not None and delay.difference is not None:
        apart = measured_text(delay.metric, abs(delay.difference), delay.difference_half_width)
        shown.append(f"queueing {apart} {'above' if delay.difference > 0.0 else 'below'} {case.reference}")
    return ", ".join(shown)
