"""HFTraC's inputs and certificate."""

from __future__ import annotations

from typing import Literal

from netctrl.core.errors import Status
from netctrl.core.units import format_quantity
from netctrl.model.io.record_file import Record
from netctrl.model.network import Network

_NAMED = 3

Architecture = Literal["god", "centralized", "coordinated", "myopic"]
ARCHITECTURES: tuple[Architecture, ...] = ("god", "centralized", "coordinated", "myopic")


class HftracInputs(Record, frozen=True):
    """Inputs of an HFTraC design."""

    network: Network
    """Network with its demands."""
    interval_s: float
    """tau, time between two updates of the rates [s]."""
    architecture: Architecture
    """Information pattern: god, centralized, coordinated or myopic."""
    mu: float | None
    """Weight lambda tau² of all links; null: from the links' own weights."""
    information_delay: int | None
    """Round-trip delay to a central controller [samples]; null: to the node nearest to its farthest link."""
    communication: Literal["out-of-band", "in-band"]
    """Messages over all lines (out-of-band), or with the data (in-band)."""
    horizon: int | Literal["auto", "exact", "truncated"]
    """Length of a coordinated controller, or of a myopic one's filters [samples]; auto: myopic gains are static."""
    reach: int | None
    """Largest information delay [samples] of links that help although the traffic doesn't reach them; null: all."""
    tolerance: float = 1e-3
    """Excess over the least cost that truncated columns aim at."""


class ArchitectureCost(Record, frozen=True):
    """Cost of one architecture, compared with the others at equal weights."""

    architecture: Architecture
    """Name of the architecture."""
    cost: float
    """Cost [(bit/s)²]."""
    over_god: float
    """Cost relative to the GOD architecture: cost/cost of GOD − 1."""
    note: str
    """Remark on this cost."""


class UnmetDemand(Record, frozen=True):
    """A demand of which less arrives than it sends on average."""

    demand: str
    """Id of the demand."""
    mean_bit_per_s: float
    """Mean rate that it sends [bit/s]."""
    delivered_bit_per_s: float
    """Rate that arrives at its target [bit/s]."""
    links: tuple[str, ...]
    """Ids of the overloaded links on its route."""


class HftracCertificate(Record, frozen=True):
    """Certificate of HFTraC link rates: cost, bound and stability; null where an entry doesn't apply."""

    status: Status
    """Verdict: admissible, stable, unstable or infeasible."""
    cost: float
    """Σ_l E f_l² + mu_l E b_l² of the linear network under the demands' deviations, b over tau [(bit/s)²]."""
    cost_rate: float
    """Σ_l E f_l² [(bit/s)²]."""
    cost_queue: float
    """Σ_l mu_l E b_l² [(bit/s)²]."""
    spectral_radius: float
    """Spectral radius of the closed loop over one sample, an upper bound with truncated columns; 0 where every response
    ends in finite time."""
    horizon: int | None
    """Samples after which a coordinated controller of finite length brings everything to rest, or each myopic
    controller the disturbance at its own link; samples of the longest truncated column."""
    excess_over_exact: float | None
    """Cost of a controller of finite length over the least cost with the same information, − 1; an upper bound where
    the least cost was not computed: `cost` is then an upper bound too."""
    gap_to_bound: float
    """Cost over `bound`, − 1."""
    bound: float
    """Lower bound of the cost of any controller of the architecture [(bit/s)²]."""
    residual: float | None
    """Relative residual of the Riccati equation."""
    information_delay: int | None
    """Round-trip delay to the central controller [samples]."""
    controller: str | None
    """Node of the central controller, where netctrl chose it."""
    states: int
    """Number of states of the network's model."""
    links: int
    """Number of controlled links."""
    region: int | None
    """Number of links of the largest region that one disturbance affects."""
    nominal_rate: dict[str, float]
    """f*_l of each link with traffic [bit/s]."""
    break_even_delay_s: float | None
    """Round-trip delay at which a centralized controller costs as much as a myopic one; null without a comparison."""
    comparison: tuple[ArchitectureCost, ...]
    """Costs of all architectures, if requested."""
    warnings: tuple[str, ...]
    """Cautions before using the law."""
    reach: int | None = None
    """Largest delay of data that a coordinated controller of finite length uses [samples]."""
    messages: int | None = None
    """Data of other links that all these controllers together use at each sample: one for each pair of links."""
    unmet: tuple[UnmetDemand, ...] = ()
    """Demands that the links can't carry; the design is made around the rates that they can send."""


def unmet_text(unmet: UnmetDemand) -> str:
    """A demand that can't be met, in words."""
    rates = [float(f"{rate:.4g}") for rate in (unmet.delivered_bit_per_s, unmet.mean_bit_per_s)]
    got, asked = (format_quantity(rate, "bit/s") for rate in rates)
    links = ", ".join(unmet.links[:_NAMED]) + ", ..." * (len(unmet.links) > _NAMED)
    are = "is" if len(unmet.links) == 1 else "are"
    return f"demand {unmet.demand} can't be met: {got} of its {asked} arrive, as {links} {are} overloaded"
