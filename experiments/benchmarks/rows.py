"""A row of the table, and how the two ways in it are timed.

Ours and the peer take turns, so that a machine whose speed drifts slows both; each time is shown with its noise as
median (min to max). A missed target is printed, not raised. A ratio counts only where both give the same: each row
says what it compared of the two answers (`Agreement`), or why they can't be compared, and a row whose answers differ by
more than its bound shows no ratio and fails the run.
"""

import operator
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np


class Agreement(NamedTuple):
    """What was compared of the two ways' answers."""

    of: str
    difference: float
    bound: float
    """Largest difference that counts as the same answer."""

    @property
    def holds(self) -> bool:
        return self.difference <= self.bound  # False for NaN

    def __str__(self) -> str:
        return f"{self.of}: {self.difference:.0e}, at most {self.bound:.0e}"


class Row(NamedTuple):
    what: str
    ours: str
    peer: str
    theirs: str
    ratio: str
    target: str
    met: bool | None
    """None: no target."""
    same: Agreement | str = "no peer's answer"
    """What of the answers agrees; text: why there is nothing to compare."""

    @property
    def counts(self) -> bool:
        """Whether both ways give the same, as far as they can be compared."""
        return isinstance(self.same, str) or self.same.holds


def relative(ours: Any, theirs: Any, bound: float, of: str = "differ by") -> Agreement:
    """Greatest difference of two arrays in relation to the greatest number of the peer's."""
    a, b = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    if a.shape != b.shape or a.size == 0:
        return Agreement(of, np.inf, bound)
    return Agreement(of, float(np.abs(a - b).max() / max(np.abs(b).max(), np.finfo(float).tiny)), bound)


class Turns(NamedTuple):
    ours: list[float]
    theirs: list[float]
    answers: tuple[Any, Any]


def alternate(
    ours: Callable[[], Any],
    peer: Callable[[], Any],
    rounds: int,
    repeats: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Turns:
    """Seconds for one call of each, in turns, after one call of each that isn't counted but whose answers are kept.

    `time.process_time` as the clock leaves out what other processes take; only for what runs in one thread of this.
    """
    times: tuple[list[float], list[float]] = ([], [])
    answers = ours(), peer()
    for _ in range(rounds):
        for call, kept in zip((ours, peer), times, strict=True):
            start = clock()
            for _ in range(repeats):
                call()
            kept.append((clock() - start) / repeats)
    return Turns(*times, answers)


def against(what: str, peer: str, turns: Turns, target: str, same: Agreement | str) -> Row:
    """The row of two ways; a target's bounds are of the median of our seconds, or of that of peer/ours."""
    ratio = median(b / a for a, b in zip(turns.ours, turns.theirs, strict=True))
    met = is_met(target, median(turns.ours), ratio)
    return Row(what, span(turns.ours), peer, span(turns.theirs), f"{ratio:.3g}", target, met, same)


BOUND = re.compile(r"(<=|>=|<) ([\d.]+) ?(x the time|x|s|ms|us|ns)\b")
HOLDS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt}


def is_met(target: str, seconds: float, ratio: float) -> bool | None:
    """Whether all bounds in a target hold, ">= 8x" of peer/ours, "<= 3 s" of our time; None: it has none."""
    values = {"x": ratio, "x the time": 1.0 / ratio, "s": seconds}
    values |= {unit: scale * seconds for unit, scale in (("ms", 1e3), ("us", 1e6), ("ns", 1e9))}
    found = [HOLDS[relation](values[unit], float(number)) for relation, number, unit in BOUND.findall(target)]
    return all(found) if found else None


def span(times: Sequence[float]) -> str:
    units = ((1.0, "s"), (1e3, "ms"), (1e6, "us"))
    scale, unit = next((s, u) for s, u in units if median(times) * s >= 1.0 or u == "us")
    return f"{median(times) * scale:.3g} ({min(times) * scale:.3g} to {max(times) * scale:.3g}) {unit}"


def peak_gb() -> float:
    """Of this process; getrusage would count what the process was that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e9


def table(rows: Iterable[Row]) -> str:
    verdicts = {None: "", True: "met", False: "MISSED"}
    lines = [("what", "ours", "peer", "peer's time", "peer/ours", "answers", "target", "")]
    for row in rows:
        counted = (row.ratio, verdicts[row.met]) if row.counts else ("-", "DIFFERS")
        lines.append((*row[:4], counted[0], str(row.same), row.target, counted[1]))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
