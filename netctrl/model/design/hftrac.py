"""HFTraC's records: what was asked for, and why the law can be trusted."""

from __future__ import annotations

from typing import Literal

from netctrl.errors import Status
from netctrl.model.io.record_file import Record
from netctrl.model.network import Network

__all__ = ["ARCHITECTURES", "Architecture", "ArchitectureCost", "HftracCertificate", "HftracInputs"]

Architecture = Literal["god", "centralized", "coordinated", "myopic"]
ARCHITECTURES: tuple[Architecture, ...] = ("god", "centralized", "coordinated", "myopic")


class HftracInputs(Record, frozen=True):
    """What was asked for."""

    network: Network
    interval_s: float
    """tau."""
    architecture: Architecture
    mu: float | None
    """lambda tau², of all links; null: from the links' own weights."""
    information_delay: int | None
    """Round trip to a central controller [samples]; null: to the node that is nearest to the farthest link."""
    communication: Literal["out-of-band", "in-band"]
    horizon: int | Literal["auto", "exact"]
    """Of a coordinated controller, or of a myopic one's filters [samples]; auto: myopic gains are static."""
    reach: int | None
    """Greatest information delay [samples] of links that help though the fluid doesn't come to them; null: all."""


class ArchitectureCost(Record, frozen=True):
    """One architecture beside the others, all with the same weights."""

    architecture: Architecture
    cost: float
    """[(bit/s)²]"""
    over_god: float
    """Relative to the GOD architecture: cost/cost of GOD − 1."""
    note: str


class HftracCertificate(Record, frozen=True):
    """Why the law can be trusted. What doesn't apply to an architecture is null."""

    status: Status
    cost: float
    """Σ_l E f_l² + mu_l E b_l² of the linear network under the demands' deviations, b over tau [(bit/s)²]."""
    cost_rate: float
    """Σ_l E f_l² [(bit/s)²]."""
    cost_queue: float
    """Σ_l mu_l E b_l² [(bit/s)²]."""
    spectral_radius: float
    """Of the closed loop, from one sample to the next; 0 where all dies out in finite time."""
    horizon: int | None
    """Samples after which a coordinated controller of finite length has everything at rest, or each link of a myopic
    one what came to it at once."""
    excess_over_exact: float | None
    """Cost of a controller of finite length over the least for the same information, − 1; an upper bound where the
    exact one was not computed."""
    gap_to_bound: float
    """Cost over a bound that no controller of the architecture comes below, − 1."""
    bound: float
    """That bound [(bit/s)²]."""
    residual: float | None
    """Relative, of the Riccati equation."""
    information_delay: int | None
    """Round trip to the central controller [samples]."""
    controller: str | None
    """Node at which it is, where that was chosen here."""
    states: int
    links: int
    region: int | None
    """Links of the largest region that one disturbance concerns."""
    nominal_rate: dict[str, float]
    """f*_l of each link that carries something [bit/s]."""
    break_even_delay_s: float | None
    """Round trip at which a centralized controller costs as much as a myopic one; null without a comparison."""
    comparison: tuple[ArchitectureCost, ...]
    warnings: tuple[str, ...]
