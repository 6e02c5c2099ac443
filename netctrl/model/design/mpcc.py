"""MPCC's records: what was asked for, and why the law can be trusted."""

from __future__ import annotations

from netctrl.errors import Status
from netctrl.model.io.record_file import Record

__all__ = ["MpccCertificate", "MpccInputs"]


class MpccInputs(Record, frozen=True):
    """What was asked for."""

    flows: int
    """N through the bottleneck."""
    rate_bit_per_s: float
    """R_in, of each sender's link."""
    bottleneck_bit_per_s: float
    """R_out."""
    rtt_s: float
    """D, without queues."""
    bdp_bytes: float
    """P_BD: the greatest window."""
    packet_size_bytes: float
    """On the wire."""
    window_bytes: float
    """W at which acknowledgements are counted: one comes every packet D/W."""
    horizon: int
    """P [acknowledgements]."""
    queue_weight: float
    """W_Q of squared queues [1/byte²]."""
    window_weight: float
    """W_R of squared windows beside the fair one [1/byte²]."""
    delayed: bool
    """Whether the law acts on the queue that what is under way leads to."""
    table: tuple[int, int] | None
    """First and last number of flows of the law's table."""


class MpccCertificate(Record, frozen=True):
    """Why the law can be trusted: of N senders that act alike on one queue, a whole number of samples away.

    No window is above the fair one, so with N right a queue never grows and empties in the end, whatever K is. Margins
    are of where a queue stands, as N is counted too low or others send too.
    """

    status: Status
    closed_loop_pole: float
    """1 − B K, as the program sees the loop: without the round trip, or with the prediction right."""
    spectral_radius: float
    """With the round trip, where a queue stands; 1 or more: it swings."""
    delay_steps: int
    """τ = D/Δt [acknowledgements]: the round trip."""
    gain_margin: float
    """A standing queue swings from so many times the plant's gain B on (flows that act at once, over those counted)."""
    disc_alpha: float
    """Of gain and phase together (`netctrl.frequency.disk.DiskMargin`); 0: it swings as it is."""
    phase_deg: float
    delay_margin_steps: int
    """Acknowledgements that the round trip may be longer, with the prediction also shorter than it was taken for."""
    qp_states: int
    """Random queues at which the quadratic program was solved."""
    qp_difference: float
    """Largest difference of its first window and the closed form's, over P_BD."""
    qp_residual: float
    """Largest violation of its optimality conditions, relative (`netctrl.mpc.qp.program.Residuals.worst`)."""
    feasible_queue_bytes: float
    """Up to this queue the program has a solution, and the closed form is its; beyond it the window is 0."""
    settling_rtts: float
    """Until a burst of one P_BD is down to a packet, for good, in round trips."""
    idle_share: float
    """What the bottleneck could have sent and didn't have after that burst, over P_BD."""
    burst_queue_bytes: tuple[float, ...]
    """That burst's queue, one acknowledgement after the other."""
    utilization: float
    """Of the bottleneck at the fair window."""
    least_window_weight: float
    """W_R from which on the law without prediction has a disk margin of 2/3; less is less careful."""
    warnings: tuple[str, ...]
