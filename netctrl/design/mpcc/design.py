"""MPCC: windows of data-centre senders from a switch's queue, by the closed form of its quadratic program.

Source: the MPCC thesis, chapters 3 and 4. docs/explanation/mpcc.md derives the method and lists its misprints.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

import numpy as np

from netctrl.core.errors import InvalidValue, Status, checked_flag, checked_number, checked_whole
from netctrl.core.units import BITS_PER_BYTE, RATES, SIZES, checked_quantity
from netctrl.frequency.delayed_integrator import IntegratorMargins, integrator_margins
from netctrl.frequency.hinf_norm import CAREFUL_ALPHA
from netctrl.laws.window.explicit import decide_for_queues, decide_window
from netctrl.model.design.design import MpccDesign
from netctrl.model.design.mpcc import MpccCertificate, MpccInputs
from netctrl.model.io.record_file import taken
from netctrl.model.law import MpccLaw, MpccTable
from netctrl.mpc.explicit import (
    ack_interval,
    fair_window,
    feasible_queue,
    queue_gain,
    queue_gain_by_sinh,
    queue_input_gain,
    window_problem,
    window_table,
)
from netctrl.mpc.formulate import condensed
from netctrl.mpc.qp.program import QPSolution, QPStatus
from netctrl.mpc.qp.solve import failure, open_solver
from netctrl.plants.window import window_course

_STATES = 200
_AGREES = 1e-6
_LONGEST = 50_000  # acknowledgements for which a burst is followed
_SHOWN = 400
_MAX_STEPS = 500  # of the horizon
_UNLIKELY = 2.0  # ratio of P_BD to rate times round trip
_WEIGHTS = ("horizon", "queue_weight", "window_weight")


def mpcc(
    flows: int,
    rate_bit_per_s: float,
    rtt_s: float,
    *,
    bdp_bytes: float | None = None,
    packet_size_bytes: float = 1080.0,
    window_bytes: float | None = None,
    bottleneck_bit_per_s: float | None = None,
    horizon: int = 5,
    queue_weight: float = 1.0,
    window_weight: float = 10.0,
    delayed: bool = False,
    table: tuple[int, int] | None = None,
    argv: Sequence[str] = (),
) -> MpccDesign:
    """Design the window law of N data-centre senders through one bottleneck, and compare it with its quadratic program.

        min Σ_{k=1..P} W_Q Q_k² + W_R u_{k−1}²,  Q⁺ = Q + B u,  u = W − c,  0 ≤ W ≤ P_BD,  0 ≤ Q ≤ (N − 1) P_BD

    The first window of the program's solution is W = clip(c − K Q, 0, P_BD). The certificate describes this loop with
    a round trip between senders and queue.

    Parameters
    ----------
    flows : int
        N, at least 1.
    rate_bit_per_s : float
        R_in, rate of each sender's link [bit/s].
    rtt_s : float
        D, round-trip time without queues [s].
    bdp_bytes : float, optional
        P_BD, the largest window [byte]; by default rate times round trip.
    packet_size_bytes : float
        Size of a packet on the wire [byte].
    window_bytes : float, optional
        W of (A.1), at which acknowledgements are counted [byte]; by default P_BD.
    bottleneck_bit_per_s : float, optional
        R_out, rate of the bottleneck [bit/s]; by default R_in.
    horizon : int
        P, prediction horizon [acknowledgements].
    queue_weight, window_weight : float
        Weights W_Q, above 0, and W_R.
    delayed : bool
        Whether to act on the queue predicted from the data in flight, (3.7).
    table : (int, int), optional
        First and last number of flows for which gains are stored with the law.
    argv : sequence of str
        Command line, for the provenance.

    Returns
    -------
    MpccDesign

    Raises
    ------
    InvalidValue
        An argument out of its bounds.

    Examples
    --------
    >>> import netctrl
    >>> design = netctrl.mpcc(flows=4, rate_bit_per_s=10e9, rtt_s=10e-6)
    >>> str(design.certificate.status), round(design.certificate.gain_margin, 3)
    ('admissible', 2.582)

    References
    ----------
    MPCC thesis, (3.4), (3.7), (4.8) to (4.17). docs/explanation/mpcc.md derives the law.
    """
    N = checked_whole("flows", flows, "a whole number of flows of at least 1", at_least=1)
    rate = checked_quantity("rate_bit_per_s", rate_bit_per_s, "a rate above 0 in bit/s", RATES)
    out = rate if bottleneck_bit_per_s is None else bottleneck_bit_per_s
    out = checked_quantity("bottleneck_bit_per_s", out, "a rate above 0 in bit/s", RATES)
    rtt = checked_number("rtt_s", rtt_s, "a time from 1 ns to 10 s, in seconds", at_least=1e-9, at_most=10.0)
    filled = rate * rtt / BITS_PER_BYTE
    takes = "a size above 0 in bytes"
    bdp = checked_number("bdp_bytes", filled if bdp_bytes is None else bdp_bytes, takes, above=0.0)
    packet = checked_quantity("packet_size_bytes", packet_size_bytes, takes, SIZES)
    takes = f"a window from a packet ({packet:g} bytes) to a million of them: a round trip needs an acknowledgement"
    window = bdp if window_bytes is None else window_bytes
    window = checked_number("window_bytes", window, takes, at_least=packet, at_most=1e6 * packet)
    takes_horizon = f"a number of acknowledgements from 1 to {_MAX_STEPS}: the law's program is solved for comparison"
    requested = MpccInputs(
        flows=N,
        rate_bit_per_s=rate,
        bottleneck_bit_per_s=out,
        rtt_s=rtt,
        bdp_bytes=bdp,
        packet_size_bytes=packet,
        window_bytes=window,
        horizon=checked_whole("horizon", horizon, takes_horizon, at_least=1, at_most=_MAX_STEPS),
        queue_weight=queue_weight,
        window_weight=window_weight,
        delayed=checked_flag("delayed", delayed),
        table=None if table is None else _range(table),
    )
    law = _law(requested)
    proof = _certificate(requested, law)
    return MpccDesign.of(requested, law, proof, argv=argv, libraries=("numpy", "scipy", "daqp"))


def _range(table: tuple[int, int]) -> tuple[int, int]:
    takes = "first and last number of flows, from 1 on and rising, as in (1, 1024)"
    if not isinstance(table, Sequence) or len(table) != 2:
        raise InvalidValue("table", table, takes)
    first = checked_whole("table", table[0], takes, at_least=1)
    return first, checked_whole("table", table[1], takes, at_least=first, at_most=1_000_000)


def _law(requested: MpccInputs) -> MpccLaw:
    dt = ack_interval(requested.packet_size_bytes, requested.rtt_s, requested.window_bytes)
    B = queue_input_gain(dt, requested.flows, requested.rate_bit_per_s, requested.bdp_bytes)
    link = ("rtt_s", "rate_bit_per_s", "bottleneck_bit_per_s", "bdp_bytes", "packet_size_bytes", "flows")
    return MpccLaw(
        **taken(requested, *link, *_WEIGHTS, "delayed"),
        gain=queue_gain(B, requested.horizon, requested.queue_weight, requested.window_weight),
        fair_window=float(
            fair_window(requested.bottleneck_bit_per_s, requested.rate_bit_per_s, requested.bdp_bytes, requested.flows)
        ),
        B=float(B),
        interval_s=dt,
        delay_steps=floor(requested.window_bytes / requested.packet_size_bytes * (1.0 + 1e-12)),
        table=None if requested.table is None else _table(requested, dt, *requested.table),
    )


def _table(requested: MpccInputs, dt: float, first: int, last: int) -> MpccTable:
    made = window_table(
        **taken(requested, "bdp_bytes", *_WEIGHTS),
        rate_in_bit_per_s=requested.rate_bit_per_s,
        rate_out_bit_per_s=requested.bottleneck_bit_per_s,
        interval_s=dt,
        most_flows=last,
    )
    part = slice(first, last + 1)
    return MpccTable(
        flows=np.arange(first, last + 1),
        gain=made.gain[part],
        fair_window=made.fair_window[part],
        B=made.input_gain[part],
    )


def _certificate(requested: MpccInputs, law: MpccLaw) -> MpccCertificate:
    k = law.B * law.gain
    margins = integrator_margins(k, law.delay_steps, predicts=law.delayed)
    feasible = feasible_queue(law.B, law.fair_window, law.bdp_bytes, law.flows)[1]
    difference, residual = _beside_the_program(law, feasible)
    queue, idle = _burst(law)
    still = np.flatnonzero(queue > law.packet_size_bytes)
    last = int(still[-1]) + 1 if len(still) else 0
    least = _min_window_weight(requested, law)
    careful = margins.disc_alpha >= CAREFUL_ALPHA * (1.0 - 1e-9)
    utilization = law.flows * law.fair_window * law.rate_bit_per_s / (law.bdp_bytes * law.bottleneck_bit_per_s)
    return MpccCertificate(
        **taken(margins, "spectral_radius", "gain_margin", "disc_alpha", "phase_deg"),
        status=Status.ADMISSIBLE if careful else Status.STABLE,
        closed_loop_pole=1.0 - k,
        delay_steps=law.delay_steps,
        delay_margin_steps=margins.delay_margin,
        qp_states=_STATES,
        qp_difference=difference,
        qp_residual=residual,
        feasible_queue_bytes=feasible,
        settling_rtts=last * law.interval_s / law.rtt_s,
        idle_share=float(idle.sum()) / law.bdp_bytes,
        burst_queue_bytes=tuple(queue[: min(2 * last + 2 * law.delay_steps + 10, _SHOWN)].tolist()),
        utilization=utilization,
        least_window_weight=least,
        warnings=(*_warnings(requested, law, margins, difference, least), *_unsettled(law, queue)),
    )


def _beside_the_program(law: MpccLaw, feasible: float) -> tuple[float, float]:
    """Largest difference over P_BD, and residual, at random queues."""
    given = taken(law, "bdp_bytes", "flows", *_WEIGHTS)
    problem = window_problem(input_gain=law.B, fair_window_bytes=law.fair_window, **given)
    made = condensed(problem)
    workspace = open_solver(made.base)
    worst, residual = 0.0, 0.0
    for queue in np.random.default_rng(1).uniform(0.0, feasible, _STATES):
        theta = np.array([queue])
        program = made.program(theta)
        answer = workspace.solve(program.g.copy(), program.lower.copy(), program.upper.copy())
        if answer.status is not QPStatus.SOLVED:
            raise failure(program, answer.status, "daqp")
        solution = QPSolution(program, answer.x, answer.multipliers, answer.status, "daqp", answer.iterations)
        first = law.fair_window + float(made.first_input(solution.x, theta)[0])
        closed_form = decide_window(queue, law.gain, law.fair_window, law.B, law.flows, law.bdp_bytes)
        worst = max(worst, abs(first - closed_form) / law.bdp_bytes)
        residual = max(residual, solution.residuals.worst)
    return worst, residual


def _burst(law: MpccLaw) -> tuple[np.ndarray, np.ndarray]:
    """Queue and unused capacity [byte] after a burst of one P_BD, until it settles or a limit of time.

    The prediction is the queue at the time when the present window arrives, so the predictive loop has no delay, and
    the queue follows one round trip later.
    """

    def decide(queues: np.ndarray) -> np.ndarray:
        return decide_for_queues(queues, law.gain, law.fair_window, law.B, float(law.flows), law.bdp_bytes)

    late = law.delay_steps if law.delayed else 0
    delay = law.delay_steps - late
    steps, least = 4 * (delay + law.horizon + 10), 1e-3 * law.packet_size_bytes
    while True:
        queue, idle = window_course(
            decide, queue=law.bdp_bytes, fair_window=law.fair_window, B=law.B, delay=delay, steps=steps
        )
        if queue[-1] <= least or steps >= _LONGEST:
            return np.concatenate([np.full(late, law.bdp_bytes), queue]), np.concatenate([np.zeros(late), idle])
        steps *= 4


def _min_window_weight(requested: MpccInputs, law: MpccLaw) -> float:
    """W_R at which the law without prediction has a disk margin of 2/3: B K falls as W_R rises, and α rises."""

    def careful(weight: float) -> bool:
        k = law.B * queue_gain_by_sinh(law.B, requested.horizon, requested.queue_weight, weight)
        return integrator_margins(k, law.delay_steps, predicts=False).disc_alpha >= CAREFUL_ALPHA

    low, high = 1e-12 * requested.queue_weight, 1e-12 * requested.queue_weight
    while not careful(high):
        low, high = high, 10.0 * high
    for _ in range(50 if high > low else 0):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if careful(middle) else (middle, high)
    return high


def _unsettled(law: MpccLaw, queue: np.ndarray):
    if queue[-1] > law.packet_size_bytes:
        followed = len(queue) * law.interval_s / law.rtt_s
        yield (
            f"after a burst of one P_BD the queue is still {queue[-1]:.6g} bytes after {followed:.3g} round trips,"
            " where the simulation ends: the settling time is longer than the given one"
        )


def _warnings(requested: MpccInputs, law: MpccLaw, margins: IntegratorMargins, difference: float, least: float):
    remedy = f"take delayed (--delayed), or a window weight of at least {least:.3g}"
    if margins.spectral_radius >= 1.0:
        yield (
            f"a standing queue oscillates, since its measurement is {law.delay_steps} acknowledgements old: B K ="
            f" {law.B * law.gain:.4g} is {1.0 / margins.gain_margin:.3g} times the limit; {remedy}"
        )
    elif margins.disc_alpha < CAREFUL_ALPHA * (1.0 - 1e-9):
        yield f"disk margin {margins.disc_alpha:.3g} is below {CAREFUL_ALPHA:.3g}; {remedy}"
    if difference > _AGREES:
        yield f"closed form and quadratic program differ by {difference:.2g} of P_BD: badly scaled weights"
    filled = requested.rate_bit_per_s * requested.rtt_s / BITS_PER_BYTE
    if requested.bdp_bytes > _UNLIKELY * filled:
        yield (
            f"bdp of {requested.bdp_bytes:g} bytes is {requested.bdp_bytes / filled:.3g} times rate times round trip,"
            f" {filled:.6g} bytes: is it in bits?"
        )
    elif requested.bdp_bytes * _UNLIKELY < filled:
        yield (
            f"bdp of {requested.bdp_bytes:g} bytes is {requested.bdp_bytes / filled:.3g} of rate times round trip,"
            f" {filled:.6g} bytes: one sender can't fill its link"
        )
    if law.fair_window < law.packet_size_bytes:
        yield (
            f"the fair window, {law.fair_window:.6g} bytes, is less than a packet: a sender whose window is clocked by"
            " packets sends more"
        )
    if law.flows * requested.rate_bit_per_s < requested.bottleneck_bit_per_s:
        yield "these flows can't fill the bottleneck: the fair window is P_BD"
