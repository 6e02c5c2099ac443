"""Answers to what-if questions: the cases in order of what they cost, and the worst ones by link and demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from netctrl.core.errors import optional_import
from netctrl.core.units import format_quantity
from netctrl.model.io.display import Reported, Rows
from netctrl.model.io.provenance import Provenance
from netctrl.model.io.record_file import FileRecord, Record
from netctrl.model.network import Network

if TYPE_CHECKING:
    import pandas as pd

WHAT_IF_SCHEMA = "netctrl.what_if/1"


class WhatIfCase(Record, frozen=True):
    """Traffic of one failure, at one scale and time."""

    name: str
    """Name of the failure, or "intact"."""
    failed: tuple[str, ...]
    """Ids of the failed links."""
    time: str
    """Time of the traffic matrix; empty for the network's own demands."""
    scale: float
    """Factor on all demands."""
    offered_bit_per_s: float
    """Sum of the demands, without those from or to failed nodes [bit/s]."""
    lost_bit_per_s: float
    """Rate that is lost at overloaded links, or that max-min fair sources hold back [bit/s]."""
    cut_bit_per_s: float
    """Rate of the demands that have no way left [bit/s]."""
    utilization: float
    """Greatest rate that comes to a link over its capacity."""
    busiest: str
    """Id of that link."""
    overloaded: int
    """Number of links to which more comes than they can send."""
    hurt: int
    """Number of demands that lose more than a thousandth, cut ones included."""
    worst: str
    """Id of the demand that loses the greatest share; empty if none loses anything."""
    worst_loss: float
    """The share that it loses."""
    delay_s: float | None
    """Mean delay of what arrives: propagation, and full buffers at overloaded links [s]; null if nothing does."""

    @property
    def unmet(self) -> float:
        """Share of the offered traffic that doesn't arrive."""
        lacks = self.lost_bit_per_s + self.cut_bit_per_s
        return lacks / self.offered_bit_per_s if self.offered_bit_per_s else 0.0


class LinkFigures(Record, frozen=True):
    """One link in a case."""

    link: str
    """Id of the link."""
    rate_bit_per_s: float
    """Rate that it sends [bit/s]."""
    utilization: float
    """Rate that comes to it over its capacity; above 1 it is overloaded."""
    lost_bit_per_s: float
    """Rate that it loses [bit/s]."""


class DemandFigures(Record, frozen=True):
    """One demand in a case."""

    demand: str
    """Id of the demand."""
    mean_bit_per_s: float
    """Mean rate that is offered [bit/s]."""
    delivered_bit_per_s: float
    """Mean rate that arrives [bit/s]."""
    loss: float
    """Share that doesn't arrive."""
    delay_s: float | None
    """Mean delay of what arrives [s]; null if nothing does."""
    utilization: float
    """Greatest utilization of a link on its ways."""


class WhatIfDetail(Record, frozen=True):
    """One case by link and by demand."""

    case: WhatIfCase
    """The case."""
    links: tuple[LinkFigures, ...]
    """Links that didn't fail, in order of utilization."""
    demands: tuple[DemandFigures, ...]
    """Demands, in order of loss, then of delay."""


class WhatIf(Reported, FileRecord, frozen=True, kw_only=True):
    """Answer of `what_if`."""

    schema: str = WHAT_IF_SCHEMA
    """Format of the file."""
    network: Network
    """The network."""
    reroute: str
    """How traffic is routed: "shortest", "ecmp", "k-paths", "min-max" or "max-min"."""
    metric: str
    """What paths have least of: "delay", "hops" or "capacity" (its inverse)."""
    cases: tuple[WhatIfCase, ...]
    """All cases: those with the greatest unmet share first, then by the busiest link's utilization."""
    details: tuple[WhatIfDetail, ...]
    """The first of these by link and demand."""
    notes: tuple[str, ...]
    """What was derived, assumed or left out when files were read."""
    provenance: Provenance
    """How it was made."""

    def table(self) -> pd.DataFrame:
        """All cases, one a row."""
        with optional_import():
            import pandas as pd

        rows = [{**msgspec.to_builtins(case), "failed": " ".join(case.failed)} for case in self.cases]
        return pd.DataFrame(rows).assign(unmet=[case.unmet for case in self.cases])

    @property
    def headline(self) -> str:
        """The answer in one line."""
        worst, lossy = self.cases[0], sum(case.unmet > 0.0 for case in self.cases)
        if not lossy:
            busiest = f"the busiest link, {worst.busiest}, is at {worst.utilization:.1%} ({case_name(worst)})"
            return f"No loss in {len(self.cases)} cases; {busiest}"
        count = f"{lossy} of {len(self.cases)} cases lose traffic"
        return f"{count}; the worst is {case_name(worst)}: {worst.unmet:.3%} doesn't arrive"

    def _shown(self) -> Rows:
        return self.headline, [(case_name(case), case_text(case)) for case in self.cases[: max(1, len(self.details))]]


def case_name(case: WhatIfCase) -> str:
    """A case's failure, with its time and scale where these aren't the plain ones."""
    time = f" at {case.time}" if case.time else ""
    return f"{case.name}{time}{f' x {case.scale:g}' if case.scale != 1.0 else ''}"


def case_text(case: WhatIfCase) -> str:
    """A case's figures in one line."""
    parts = [f"{case.utilization:.1%} at {case.busiest}"]
    for what, rate in (("lost", case.lost_bit_per_s), ("cut off", case.cut_bit_per_s)):
        if rate > 0.0:
            parts.append(f"{format_quantity(rate, 'bit/s', 4)} {what}")
    if case.hurt:
        parts.append(f"{case.hurt} demands hurt, {case.worst} by {case.worst_loss:.1%}")
    if case.delay_s is not None:
        parts.append(f"delay {format_quantity(case.delay_s, 's', 3)}")
    return ", ".join(parts)


CASE_COLUMNS = ("case", "unmet", "lost", "cut off", "busiest", "over", "hurt", "worst demand", "delay")
"""Headings of `case_row`."""


def case_row(case: WhatIfCase) -> tuple[str, ...]:
    """A case's figures as texts, one for each of `CASE_COLUMNS`."""
    rates = [format_quantity(each, "bit/s", 4) if each else "-" for each in (case.lost_bit_per_s, case.cut_bit_per_s)]
    worst = f"{case.worst} {case.worst_loss:.1%}" if case.worst else "-"
    delay = "-" if case.delay_s is None else format_quantity(case.delay_s, "s", 3)
    busiest = f"{case.busiest} {case.utilization:.1%}"
    unmet = f"{case.unmet:.3%}"
    return (case_name(case), unmet, *rates, busiest, str(case.overloaded), str(case.hurt), worst, delay)
