"""A statement, the number measured for it, and the verdict that follows.

A verdict is computed, never stored: `Claim.verdict` holds the measured value and its 95 % interval against the stated
number by the one rule that `RULE` puts in words. Standard library only: the docs' build reads this module.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import NamedTuple

__all__ = ["RELATIONS", "RULE", "SOURCES", "Claim", "read_claims"]

RELATIONS = ("about", "=", "<", "<=", ">", ">=", "all", "")
"""What is stated of the value; "all": of every case, the value being the share of cases in which it is so; "": nothing,
the number is measured only."""

SOURCES = ("paper", "words", "ours")
"""Who states it: the paper with a number; the paper in words, judged by a bar of ours; netctrl's authors."""

ABOUT, EXACT, SHORT, MAX = 0.10, 0.001, 0.10, 0.5
"""Relative tolerances of "about" and "="; for partly: a paper's bound may be missed so far, so many cases must hold."""

RULE = (
    "≈: within ±10 % (partly: ±20 %). =: within ±0.1 %. <, ≤, >, ≥: kept (partly: a paper's number missed by at most "
    "10 %). All cases: every one (partly: at least half). A 95 % interval must be inside as a whole; partly if it "
    "reaches both sides. *: what a paper says in words, by a bar of ours. Our own statements hold or fail; a number "
    "without a statement is measured."
)
"""The rule of all verdicts, as tables print it."""

_GRADES = {
    "paper": ("not reproduced", "partly reproduced", "reproduced"),
    "words": ("not reproduced", "partly reproduced", "reproduced"),
    "ours": ("fails", "fails", "holds"),
}
_SIGNS = {"about": "≈", "<=": "≤", ">=": "≥"}


class Claim(NamedTuple):
    """One statement of a paper, or of ours, and what became of it here."""

    id: str
    where: str
    """Figure, section, equation or algorithm of the paper."""
    claim: str
    """What is stated, or measured, in our words."""
    source: str
    """One of SOURCES."""
    relation: str
    """One of RELATIONS."""
    stated: float | None
    """The number that `relation` compares with; of words, our bar."""
    unit: str
    value: float | None
    """What we compute; None if nothing has been."""
    half_width: float | None
    """Half the width of the value's 95 % interval, where it was measured over several runs."""
    runs: int | None
    """Runs, or seeds, behind the value; None if no chance is in it, or if `why` says what there is."""
    drift: float | None
    """Relative distance from `value` that a computation on another machine may have."""
    why: str

    @property
    def verdict(self) -> str:
        """(not, partly) reproduced of a paper's statement; holds or fails of ours; measured; open without a value."""
        if self.value is None:
            return "open"
        if not self.relation:
            return "measured"
        return _GRADES[self.source][self._grade()]

    @property
    def statement(self) -> str:
        """What is stated, as in "≈ 19 Mbit/s" or "< 1*", whose star marks a bar of ours for a paper's words."""
        if not self.relation:
            return ""
        if self.relation == "all":
            return "in all cases"
        sign, unit = _SIGNS.get(self.relation, self.relation), "" if self.unit == "1" else self.unit
        return f"{sign} {self.stated:.10g} {unit}".rstrip() + "*" * (self.source == "words")

    def measured(self, value: float, half_width: float | None, runs: int | None) -> Claim:
        """The claim with what has been computed anew."""
        return self._replace(value=value, half_width=half_width, runs=runs)

    def _grade(self) -> int:
        """2: met, 1: partly, 0: not."""
        half, value = self.half_width or 0.0, float(self.value)  # ty: ignore[invalid-argument-type]
        ends = value - half, value + half
        low, high = self._band()
        if low <= ends[0] and ends[1] <= high:
            return 2
        wide_low, wide_high = self._wide(low, high)
        reaches = ends[0] <= high and low <= ends[1]
        return 1 if reaches or wide_low <= value <= wide_high else 0

    def _band(self) -> tuple[float, float]:
        """The values that meet the statement."""
        x = float(self.stated)  # ty: ignore[invalid-argument-type]
        width = abs(x) * {"about": ABOUT, "=": EXACT}.get(self.relation, 0.0)
        below = math.nextafter(x, -math.inf) if self.relation == "<" else x
        above = math.nextafter(x, math.inf) if self.relation == ">" else x
        if self.relation in ("<", "<="):
            return -math.inf, below
        return (above, math.inf) if self.relation in (">", ">=") else (x - width, x + width)

    def _wide(self, low: float, high: float) -> tuple[float, float]:
        """The values that meet it in part."""
        x = float(self.stated)  # ty: ignore[invalid-argument-type]
        if self.relation == "about":
            return x - 2.0 * ABOUT * abs(x), x + 2.0 * ABOUT * abs(x)
        if self.relation == "all":
            return MAX, 1.0
        short = SHORT * abs(x) if self.source == "paper" and self.relation != "=" else 0.0
        return low - short, high + short


def read_claims(path: Path) -> tuple[Claim, ...]:
    """All claims of a file of data/claims/."""
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(_claim(row) for row in csv.DictReader(file))


def _claim(row: dict[str, str]) -> Claim:
    numbers = {name: float(row[name]) if row[name] else None for name in ("stated", "value", "half_width", "drift")}
    return Claim(**(row | numbers | {"runs": int(row["runs"]) if row["runs"] else None}))  # ty: ignore
