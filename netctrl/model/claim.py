"""A statement, the number measured for it, and the verdict that follows.

A verdict is computed, never stored: `Claim.verdict` compares the measured value and its 95 % interval with the stated
number by one rule, which `RULE` puts in words. Standard library only, since the docs' build reads this module.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import NamedTuple

RELATIONS = ("about", "=", "<", "<=", ">", ">=", "all", "")
"""How the value relates to the stated number. "all": the value is the share of cases in which the statement holds;
"": nothing is stated, the number is only measured."""

SOURCES = ("paper", "words", "ours")
"""Who states it: the paper with a number; the paper in words, judged by netctrl's bar; netctrl's authors."""

ABOUT, EXACT, SHORT, MAX = 0.10, 0.001, 0.10, 0.5
"""Relative tolerances of "about" and "="; for partly: how far a paper's bound may be missed, and the share of cases."""

RULE = (
    "≈: within ±10 % (partly: ±20 %). =: within ±0.1 %. <, ≤, >, ≥: kept (partly: a paper's number missed by at most "
    "10 %). All cases: every one (partly: at least half). A 95 % interval must be inside as a whole; partly if it "
    "reaches both sides. *: what a paper says in words, by a bar of ours. Our own statements hold or fail; a number "
    "without a statement is measured."
)
"""The rule of all verdicts, as printed under tables."""

_GRADES = {
    "paper": ("not reproduced", "partly reproduced", "reproduced"),
    "words": ("not reproduced", "partly reproduced", "reproduced"),
    "ours": ("fails", "fails", "holds"),
}
_SIGNS = {"about": "≈", "<=": "≤", ">=": "≥"}


class Claim(NamedTuple):
    """One statement of a paper or of netctrl, with the value computed here."""

    id: str
    where: str
    """Figure, section, equation or algorithm of the paper."""
    claim: str
    """What is stated or measured, in netctrl's words."""
    source: str
    """One of SOURCES."""
    relation: str
    """One of RELATIONS."""
    stated: float | None
    """The number that `relation` compares with; for a statement in words, netctrl's bar."""
    unit: str
    value: float | None
    """The computed value; None if nothing has been computed."""
    half_width: float | None
    """Half the width of the value's 95 % interval, where it was measured over several runs."""
    runs: int | None
    """Runs or seeds behind the value; None if nothing is random, or if `why` gives them."""
    drift: float | None
    """Relative difference from `value` that another machine may show."""
    why: str

    @property
    def verdict(self) -> str:
        """Reproduced (or not, or partly) for a paper's statement; holds or fails for netctrl's; measured; or open."""
        if self.value is None:
            return "open"
        if not self.relation:
            return "measured"
        return _GRADES[self.source][self._grade()]

    @property
    def statement(self) -> str:
        """The statement as in "≈ 19 Mbit/s" or "< 1*"; the star marks netctrl's bar for a paper's words."""
        if not self.relation:
            return ""
        if self.relation == "all":
            return "in all cases"
        sign, unit = _SIGNS.get(self.relation, self.relation), "" if self.unit == "1" else self.unit
        return f"{sign} {self.stated:.10g} {unit}".rstrip() + "*" * (self.source == "words")

    def measured(self, value: float, half_width: float | None, runs: int | None) -> Claim:
        """The claim with a newly computed value."""
        return self._replace(value=value, half_width=half_width, runs=runs)

    def _grade(self) -> int:
        """2: met, 1: met in part, 0: not met."""
        half, value = self.half_width or 0.0, float(self.value)  # ty: ignore[invalid-argument-type]
        ends = value - half, value + half
        low, high = self._band()
        if low <= ends[0] and ends[1] <= high:
            return 2
        wide_low, wide_high = self._wide(low, high)
        reaches = ends[0] <= high and low <= ends[1]
        return 1 if reaches or wide_low <= value <= wide_high else 0

    def _band(self) -> tuple[float, float]:
        """Range of values that meet the statement."""
        x = float(self.stated)  # ty: ignore[invalid-argument-type]
        width = abs(x) * {"about": ABOUT, "=": EXACT}.get(self.relation, 0.0)
        below = math.nextafter(x, -math.inf) if self.relation == "<" else x
        above = math.nextafter(x, math.inf) if self.relation == ">" else x
        if self.relation in ("<", "<="):
            return -math.inf, below
        return (above, math.inf) if self.relation in (">", ">=") else (x - width, x + width)

    def _wide(self, low: float, high: float) -> tuple[float, float]:
        """Range of values that meet the statement in part."""
        x = float(self.stated)  # ty: ignore[invalid-argument-type]
        if self.relation == "about":
            return x - 2.0 * ABOUT * abs(x), x + 2.0 * ABOUT * abs(x)
        if self.relation == "all":
            return MAX, 1.0
        short = SHORT * abs(x) if self.source == "paper" and self.relation != "=" else 0.0
        return low - short, high + short


def read_claims(path: Path) -> tuple[Claim, ...]:
    """All claims of a file in data/claims/."""
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(_claim(row) for row in csv.DictReader(file))


def _claim(row: dict[str, str]) -> Claim:
    numbers = {name: float(row[name]) if row[name] else None for name in ("stated", "value", "half_width", "drift")}
    return Claim(**(row | numbers | {"runs": int(row["runs"]) if row["runs"] else None}))  # ty: ignore
