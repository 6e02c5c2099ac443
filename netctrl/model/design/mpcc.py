"""MPCC's inputs and certificate."""

from __future__ import annotations

from netctrl.core.errors import Status
from netctrl.model.io.record_file import Record


class MpccInputs(Record, frozen=True):
    """Inputs of an MPCC design."""

    flows: int
    """N, number of flows through the bottleneck."""
    rate_bit_per_s: float
    """R_in, rate of each sender's link [bit/s]."""
    bottleneck_bit_per_s: float
    """R_out, rate of the bottleneck [bit/s]."""
    rtt_s: float
    """D, round-trip time without queues [s]."""
    bdp_bytes: float
    """P_BD, the largest window [byte]."""
    packet_size_bytes: float
    """Size of a packet on the wire [byte]."""
    window_bytes: float
    """W at which acknowledgements are counted [byte]: one arrives every packet D/W."""
    horizon: int
    """P, prediction horizon [acknowledgements]."""
    queue_weight: float
    """W_Q, weight of squared queues [1/byte²]."""
    window_weight: float
    """W_R, weight of squared deviations from the fair window [1/byte²]."""
    delayed: bool
    """Whether the law acts on the queue predicted from the data in flight."""
    table: tuple[int, int] | None
    """First and last number of flows of the law's table."""


class MpccCertificate(Record, frozen=True):
    """Certificate of an MPCC law, for N senders that act alike on one queue with a delay of whole samples.

    No window exceeds the fair one, so with the right N a queue never grows and finally empties, whatever K is. The
    margins apply to a standing queue, which remains if N is too low or other senders share the link.
    """

    status: Status
    """Verdict: admissible, stable, unstable or infeasible."""
    closed_loop_pole: float
    """1 − B K, pole of the loop without the round-trip delay, or with a correct prediction."""
    spectral_radius: float
    """Spectral radius with the round-trip delay and a standing queue; the queue oscillates from 1 on."""
    delay_steps: int
    """τ = D/Δt [acknowledgements]: the round trip."""
    gain_margin: float
    """Factor of the plant's gain B (actual over counted flows) at which a standing queue oscillates."""
    disc_alpha: float
    """Disk margin, of gain and phase together (`netctrl.frequency.hinf_norm.DiskMargin`); 0: it already oscillates."""
    phase_deg: float
    """Phase that may be lost or gained [degree]."""
    delay_margin_steps: int
    """Acknowledgements by which the round trip may be longer; with the prediction also shorter than assumed."""
    qp_states: int
    """Number of random queues at which the quadratic program was solved."""
    qp_difference: float
    """Largest difference between the program's first window and the closed form's, over P_BD."""
    qp_residual: float
    """Largest relative violation of the program's optimality conditions (`netctrl.mpc.qp.program.Residuals.worst`)."""
    feasible_queue_bytes: float
    """Largest queue for which the program, and so the closed form, has a solution; the window is 0 beyond it [byte]."""
    settling_rtts: float
    """Round trips until a burst of one P_BD has shrunk to a packet for good."""
    idle_share: float
    """Unused capacity of the bottleneck after that burst, over P_BD."""
    burst_queue_bytes: tuple[float, ...]
    """Queue after that burst, at each acknowledgement [byte]."""
    utilization: float
    """Utilization of the bottleneck at the fair window."""
    least_window_weight: float
    """Smallest W_R for which the law without prediction has a disk margin of 2/3."""
    warnings: tuple[str, ...]
    """Cautions before using the law."""
