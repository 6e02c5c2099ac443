"""ARC (Aggregate Rate Control): AQM gain for TCP, with a certificate that is exact for the delay and for the epoch.

Source: Chung and Claypool, "Aggregate Rate Control for Efficient and Practical Congestion Management".
docs/explanation/arc.md derives the method and lists the paper's misprints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign, Status, checked_number, checked_word
from netctrl.core.units import long_rtt
from netctrl.design.arc.loop import (
    AIMS_DEG,
    MIN_GAIN_MARGIN_DB,
    MIN_PHASE_MARGIN_DEG,
    ROUNDING,
    Deciding,
    aimed,
    arc_gain_bands,
    decide,
    infeasible,
    nearest_equilibrium,
    paper_loop,
    reach,
    sampled,
    simulated,
)
from netctrl.design.arc.map import arc_stability_map
from netctrl.frequency.sampled_margins import SampledMargins
from netctrl.model.design.arc import (
    PLANTS,
    ArcBox,
    ArcCertificate,
    ArcInputs,
    ArcSampled,
    ArcSimulated,
    Corner,
    Plant,
    TcpOperatingPoint,
)
from netctrl.model.design.design import ArcDesign
from netctrl.model.io.record_file import taken
from netctrl.model.law import ArcLaw
from netctrl.plants.equilibrium import tcp_equilibrium
from netctrl.plants.linearize import applicable_plant, arc_arrival_rate

__all__ = ["arc", "arc_gain_bands", "arc_stability_map", "no_rest", "warnings_about"]

MIN_WINDOW, MAX_WINDOW = 1e-9, 1e10  # packets
USUAL_EPOCH_S, USUAL_RTTS_PER_EPOCH = 1.0, 20.0
MAX_EPOCHS_PER_RTT, MAX_EPOCHS_IN_RTT = 100.0, 1000

Range = float | Sequence[float]


def arc(
    flows: Range,
    rtt_s: Range = 0.5,
    capacity_bit_per_s: float = 10e6,
    *,
    packet_size_bytes: float = 1000.0,
    utilization: float = 0.98,
    epoch_s: float | None = None,
    target_queue_packets: float = 0.0,
    plant: Plant | Literal["auto"] = "auto",
    alpha_per_packet: float | None = None,
    simulation: bool = True,
    fragile_flows: float = 10.0,
    fragile_rtt_s: float = 2.0,
    accept: Literal["admissible", "stable"] = "admissible",
    argv: Sequence[str] = (),
) -> ArcDesign:
    """Design the gain of an ARC queue for N TCP flows on a link, or analyse a given gain, and certify it.

        p ← p + alpha (b − gamma (d C − (q − q0))), every epoch d

    b counts arrivals of the epoch, q is the queue, and p the probability of marking. The verdict uses the implemented
    loop: TCP's window delayed on itself, p held over each epoch, arrivals counted over it. The gain gives 45° of phase
    margin and at least 6 dB of gain margin, over a box (ranges of flows or round-trip time) at the box's worst point.
    It is lower where the nonlinear fluid doesn't come to rest there.

    Parameters
    ----------
    flows : float or (float, float)
        N, expected number of long-lived flows; a pair is a range.
    rtt_s : float or (float, float)
        tau, round-trip time in equilibrium, with queueing [s]; a pair is a range.
    capacity_bit_per_s : float
        C, rate of the link [bit/s].
    packet_size_bytes : float
        Size of a packet [byte].
    utilization : float
        gamma, target utilization, in (0, 1].
    epoch_s : float, optional
        d, time between two updates of p [s]; by default 1 s, or 20 of the shortest round-trip times if these are less.
    target_queue_packets : float
        q0, target queue [packet].
    plant : {"auto", "paper", "noq", "phys"}
        Continuous-time loop that `certificate.paper` shows; auto is the paper's eq. (7). The verdict always uses the
        plant that applies: noq without a standing queue in equilibrium, else phys.
    alpha_per_packet : float, optional
        Analyse this gain instead of designing one.
    simulation : bool
        Whether to run the nonlinear fluid too; without it limit cycles aren't found.
    fragile_flows, fragile_rtt_s : float
        N_min and tau_max [s] of the paper's minimum-stability condition, eq. (9).
    accept : {"admissible", "stable"}
        "stable" also accepts a gain that is stable but not admissible: one at which the fluid doesn't come to rest.
    argv : sequence of str
        Command line for the provenance.

    Returns
    -------
    ArcDesign

    Raises
    ------
    InvalidValue
        An argument outside its bounds, or an empty range.
    NoAdmissibleDesign
        There is no equilibrium, or the fluid comes to rest at no gain tried; the message says what would have to
        change, and the error holds the design. A given `alpha_per_packet` is only refused without an equilibrium.

    Examples
    --------
    >>> import netctrl
    >>> design = netctrl.arc(50, 0.5, 10e6)
    >>> str(design.certificate.status), round(design.certificate.sampled.phase_margin_deg, 6)
    ('admissible', 45.0)
    >>> print(design.headline.splitlines()[0])
    Safe for 50 flows at 500 ms: yes; keeps its margins down to 41.3 flows or up to 579 ms

    References
    ----------
    ARC paper, Algorithm 2; Misra, Gong, Towsley, SIGCOMM 2000, eq. (6). docs/explanation/arc.md derives the loop.
    """
    checked_word("accept", accept, ("admissible", "stable"))
    if not isinstance(plant, str) or plant not in ("auto", *PLANTS):
        raise InvalidValue("plant", plant, "auto, paper, noq or phys")
    if not isinstance(simulation, bool):
        raise InvalidValue("simulation", simulation, "True or False")
    rtts = _range("rtt", rtt_s, "a round-trip time from 1 us to 1000 s, or a range low:high", 1e-6, 1e3)
    epoch = min(USUAL_EPOCH_S, USUAL_RTTS_PER_EPOCH * rtts[0]) if epoch_s is None else epoch_s
    inputs = ArcInputs(
        flows=_range("flows", flows, "a number of flows above 0, or a range low:high of them"),
        rtt_s=rtts,
        capacity_bit_per_s=_number("capacity", capacity_bit_per_s, "a rate from 1 kbit/s to 100 Tbit/s", 1e3, 1e14),
        packet_size_bytes=_number("packet_size", packet_size_bytes, "a size from 1 byte to 1 GB", 1.0, 1e9),
        utilization=_number("utilization", utilization, "a number in (0, 1], and at least 0.001", 1e-3, 1.0),
        epoch_s=_number("epoch", epoch, "an epoch from 1 us to 1e6 s", 1e-6, 1e6),
        target_queue_packets=_number("target_queue", target_queue_packets, "0 to 1e12 packets", 0.0, 1e12),
        plant=plant,
        alpha_per_packet=None
        if alpha_per_packet is None
        else _number("alpha", alpha_per_packet, "a gain above 0 per packet, as in 1.42e-5", 1e-100, 1e12),
        fragile_flows=_number("fragile_flows", fragile_flows, "a number of flows above 0", 1e-9, 1e12),
        fragile_rtt_s=_number("fragile_rtt", fragile_rtt_s, "a time from 1 us to 1000 s", 1e-6, 1e3),
    )
    _refuse_absurd_windows(inputs)
    without = infeasible(inputs)
    judged = inputs if without is None else nearest_equilibrium(inputs)
    deciding = decide(judged)
    alpha, loop, fluid = _chosen(deciding, judged, simulation=simulation and without is None)
    certificate = _certify(alpha, deciding, loop, fluid, without, inputs)
    law = ArcLaw(
        **taken(inputs, "epoch_s", "target_queue_packets", "capacity_bit_per_s", "packet_size_bytes"),
        alpha_per_packet=alpha,
        alpha_per_byte=alpha / inputs.packet_size_bytes,
        target_utilization=inputs.utilization,
    )
    made = ArcDesign.of(inputs, law, certificate, argv=argv)
    status = certificate.status
    if without is not None:
        raise NoAdmissibleDesign(without, made)
    if alpha_per_packet is None and status is not Status.ADMISSIBLE and not (accept == "stable" and certificate.stable):
        raise NoAdmissibleDesign(no_rest(certificate), made)
    return made


def _number(argument: str, value: object, takes: str, least: float, most: float) -> float:
    return checked_number(argument, value, takes, at_least=least, at_most=most)


def _range(argument: str, value: Range, takes: str, least: float = 1e-9, most: float = 1e12) -> tuple[float, float]:
    pair = value if isinstance(value, Sequence) and not isinstance(value, str) else (value, value)
    if len(pair) != 2:
        raise InvalidValue(argument, value, takes)
    low, high = (_number(argument, end, takes, least, most) for end in pair)
    if low > high:
        raise InvalidValue(argument, f"{low:g}:{high:g}", f"{takes}; this range is empty")
    return low, high


def _refuse_absurd_windows(inputs: ArcInputs) -> None:
    """Refuse windows far outside the model's domain, for which no result is meaningful."""
    rate = float(arc_arrival_rate(inputs.setting, applicable_plant(inputs.setting)))
    (few, many), (short, long) = inputs.flows, inputs.rtt_s
    fragile = ("fragile_flows", inputs.fragile_flows, inputs.fragile_rtt_s)
    for argument, flows, rtt in (("flows", few, long), ("flows", many, short), fragile):
        least, most = (tcp_equilibrium(1.0, rtt, rate).window / window for window in (MAX_WINDOW, MIN_WINDOW))
        if not least <= flows <= most:
            takes = f"{least:.3g} to {most:.3g} at this rate and RTT {rtt:g} s (a window of 1e-9 to 1e10 packets)"
            raise InvalidValue(argument, flows, takes)
    if inputs.epoch_s < long / MAX_EPOCHS_IN_RTT:
        raise InvalidValue(
            "epoch",
            inputs.epoch_s,
            f"at least {long / MAX_EPOCHS_IN_RTT:g} s, the longest RTT over {MAX_EPOCHS_IN_RTT}",
        )
    if inputs.epoch_s > MAX_EPOCHS_PER_RTT * short:
        raise InvalidValue(
            "epoch", inputs.epoch_s, f"at most {MAX_EPOCHS_PER_RTT * short:g} s, {MAX_EPOCHS_PER_RTT:g} times the RTT"
        )


def _chosen(
    deciding: Deciding, inputs: ArcInputs, *, simulation: bool
) -> tuple[float, tuple[ArcSampled, SampledMargins], ArcSimulated | None]:
    """The gain, the deciding loop's margins with it, and the fluid's behaviour; slower gains until it comes to rest."""
    given = inputs.alpha_per_packet
    for aim in AIMS_DEG:
        alpha = given if given is not None else aimed(aim, deciding, inputs)
        loop = sampled(alpha, deciding, inputs)
        fluid = simulated(alpha, loop[1].crossover_rad_s, deciding, inputs) if simulation else None
        if given is not None or fluid is None or fluid.settles:
            break
    return alpha, loop, fluid


def _certify(
    alpha: float,
    deciding: Deciding,
    loop: tuple[ArcSampled, SampledMargins],
    fluid: ArcSimulated | None,
    without: str | None,
    inputs: ArcInputs,
) -> ArcCertificate:
    record, found = loop
    at = deciding.worst if without is None else Corner(flows=inputs.flows[1], rtt_s=inputs.rtt_s[0])
    stable = without is None and alpha < deciding.stable_below
    in_rule = stable and alpha <= deciding.kept_below * (1.0 + ROUNDING)
    if without is not None:
        status, record = (
            Status.INFEASIBLE,
            ArcSampled(
                plant=record.plant, epoch_s=record.epoch_s, alpha_limit=None, spectral_radius=None, gain_margin_db=None
            ),
        )
    elif not stable:
        status = Status.UNSTABLE
    else:
        status = Status.ADMISSIBLE if in_rule and (fluid is None or fluid.settles) else Status.STABLE
    rate = float(arc_arrival_rate(inputs.setting, applicable_plant(inputs.setting)))
    _, window, marking = tcp_equilibrium(at.flows, at.rtt_s, rate)
    return ArcCertificate(
        status=status,
        stable=stable,
        operating_point=TcpOperatingPoint(
            flows=at.flows, rtt_s=at.rtt_s, rate_packet_per_s=rate, window_packets=window, marking_probability=marking
        ),
        sampled=record,
        simulated=fluid,
        reach=reach(alpha, deciding, inputs) if without is None else None,
        paper=paper_loop(alpha, at, inputs),
        box=None if inputs.is_point else _box(deciding),
        warnings=tuple(warnings_about(alpha, deciding, status, found, fluid, without, inputs)),
    )


def _box(deciding: Deciding) -> ArcBox:
    limit, kept = deciding.limit, deciding.kept
    return ArcBox(
        margins_kept_below=kept.proved,
        stable_below=limit.proved,
        gap=1.0 - kept.proved / kept.found,
        worst_corner=deciding.worst,
        cells=limit.cells + kept.cells,
    )


_SMALL_WINDOW = 2.0  # packets; below it TCP's minimum window and time-outs matter
_SLOW_DEG = 75.1  # above the margins that a design aims at


def warnings_about(
    alpha: float,
    deciding: Deciding,
    status: Status,
    found: SampledMargins,
    fluid: ArcSimulated | None,
    without: str | None,
    inputs: ArcInputs,
) -> Iterator[str]:
    """Warnings where the gain misses the rule, or where the model is outside its domain."""
    plant = "phys" if deciding.response.queue else "noq"
    where = "" if inputs.is_point else f" at {deciding.worst.flows:g} flows and {deciding.worst.rtt_s:.4g} s"
    yield from long_rtt(inputs.rtt_s[1])
    if without is not None:
        yield without
        return
    if status is Status.UNSTABLE:
        yield (
            f"unstable{where}: the sampled loop (plant {plant}) needs alpha < {deciding.stable_below:.6g},"
            f" got {alpha:.6g}"
        )
    elif alpha > deciding.kept_below * (1.0 + ROUNDING):
        yield (
            f"too little margin{where}: GM {found.gain_margin_db:.2f} dB, PM {found.phase_margin_deg:.2f}°; alpha <="
            f" {deciding.kept_below:.6g} keeps {MIN_GAIN_MARGIN_DB:g} dB and {MIN_PHASE_MARGIN_DEG:g}°"
        )
    if fluid is not None and not fluid.settles and status is not Status.UNSTABLE:
        yield (
            f"limit cycle: the nonlinear fluid keeps oscillating, p varies by {fluid.probability_cv:.0%} of its mean"
            f" at {fluid.utilization:.1%} utilization"
        )
    if fluid is None:
        yield "the nonlinear fluid was not simulated (--no-simulation, or windows too large): no limit cycle is found"
    if found.phase_margin_deg > _SLOW_DEG and found.stable:
        yield f"slow: phase margin {found.phase_margin_deg:.1f}°, crossover at {found.crossover_rad_s:.3g} rad/s"
    many, short = inputs.flows[1], inputs.rtt_s[0]
    rate = float(arc_arrival_rate(inputs.setting, applicable_plant(inputs.setting)))
    window = tcp_equilibrium(many, short, rate).window
    if window < _SMALL_WINDOW:
        yield (
            f"small windows: {window:.3g} packets at {many:g} flows and {short:g} s; TCPs that keep two packets in"
            f" flight send more than this model"
        )
    if inputs.plant in ("noq", "phys") and inputs.plant != plant:
        queue = "there is no standing queue" if plant == "noq" else "there is a standing queue"
        yield f"plant {inputs.plant} was requested, but {queue} in this equilibrium: the verdict uses plant {plant}"


def no_rest(certificate: ArcCertificate) -> str:
    """Message for a design that is not admissible although its loop is stable."""
    fluid = certificate.simulated
    moves = f"p still varies by {fluid.probability_cv:.0%} of its mean" if fluid is not None else "it is not stable"
    return (
        f"no gain is admissible: the nonlinear fluid does not come to rest at any phase margin tried, {moves};"
        " shorten the epoch, serve more flows, or --accept stable (accept='stable') accepts the slowest gain"
    )
