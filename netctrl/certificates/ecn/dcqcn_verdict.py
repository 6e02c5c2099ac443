"""Verdict of DCQCN between two thresholds over a box: a first look, margins at the worst points, and a proof.

1. Look. The response at many frequencies gives gain and phase margins at all points of a grid at once, by straight
   lines between frequencies. It finds the points with the least of each, and how far the design rule is kept with
   longer round trips or a smaller K_max, where marks rise more steeply.
2. Margins. At the two worst points `netctrl.margins` has them exactly, with proof.
3. Proof over the box, by branch and bound. The loop is stable at one point, where its margins are certified. Where
   1 + k L isn't 0 on the imaginary axis at any point of the box and any factor k from 1 up to a value, it is stable at
   every point for all these factors, since poles move continuously with the point and with k.

Where the thresholds are equal, the equilibrium is above P_max, or the queue swings by more than K_max − K_min, there is
no slope to linearise at: the nonlinear fluid decides (`netctrl.certificates.ecn.in_time`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, isinf, log, radians
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from netctrl.certificates.box import MIN_FACTOR, MIN_GAIN_DB, MIN_PHASE_DEG, Box, Point, kept_up_to, points_of
from netctrl.certificates.ecn.dcqcn import DcqcnSubject
from netctrl.certificates.ecn.in_time import IN_TIME, beyond_at, worst_cycle
from netctrl.certificates.point_records import BeyondLoop, LinearMargins, SampledLoop
from netctrl.certificates.record import QueueReach, QueueVerdict
from netctrl.core.errors import Status
from netctrl.core.units import BITS_PER_BYTE
from netctrl.frequency.certified.disk import disk_margin
from netctrl.frequency.margins import margins
from netctrl.frequency.matrix import avoids_zero
from netctrl.frequency.records import Margins, decibel
from netctrl.frequency.sampled_stability import deciding
from netctrl.model.io.record_file import taken
from netctrl.plants.ecn.dcqcn import (
    DcqcnPolynomials,
    dcqcn_equilibrium,
    dcqcn_polynomials,
    dcqcn_response,
    dcqcn_settles,
)
from netctrl.plants.ecn.dcqcn_box import DcqcnBox
from netctrl.plants.ecn.dctcp import dcqcn_ramp_cycle

_LOOKED, _IN_TIME = (17, 7, 3), (5, 3, 2)
"""Flows, round-trip times and rates at which the loop of a box is looked at, and at which the fluid is integrated."""
_FREQUENCIES = 1500
"""Frequencies of a first look, from which the worst points are taken."""
_FAR, _FURTHER, _HALVED = 100.0, 1.5, 10
"""Factor of the longest round trip from and up to which a reach is searched, its steps, and the halvings after."""
_FLATTEST = 1e6
"""Factor by which marks may rise less than the gain margin asks for, in search of the phase margin."""
_MOST_CELLS = 80_000
_GAPS = (0.03, 0.3, 0.6)
"""Shares of the way from 1 to the attained factor that a proof gives up; the second is tried first."""


def dcqcn_verdict(subject: DcqcnSubject, box: Box) -> QueueVerdict:
    """Margins at the box's worst points, or where its thresholds make no linear loop the fluid in time; packets have to
    tell delays and utilization there, and where each flow has least."""
    size = box.inputs.packet_size_bytes
    points = points_of(box, subject.name, _LOOKED)
    fastest = max(points, key=lambda each: each.flows / each.rate)
    found = _by_fluid(subject, box, points, fastest)
    worst = found.sampled or found.cycle
    why = "marks by chance, and packets of rates that move, are not in the fluid"
    beyond = [beyond_at(fastest, subject.name, size, why)]
    if worst is not None:
        where = taken(worst, "flows", "capacity_bit_per_s", "rtt_s")
        beyond.insert(0, BeyondLoop(sender=subject.name, **where, why=why))
    return replace(found, beyond=tuple(dict.fromkeys(beyond)))


def _by_fluid(subject: DcqcnSubject, box: Box, points: list[Point], fastest: Point) -> QueueVerdict:
    """Verdict of the linear loop, or where there is none of the fluid in time."""
    size, linear = box.inputs.packet_size_bytes, None
    if not subject.steps and subject.probability(fastest, size) <= subject.pmax:
        linear = _linear_verdict(subject, points, size)
        if linear.status is not Status.UNSTABLE:
            return linear
    ends = ((subject.kmin_bytes, 0.0), (subject.kmax_bytes, subject.pmax), (subject.kmax_bytes, 1.0))
    marks = [(q / size, p) for q, p in ends]
    sender = subject.sender(size)
    cycles = {
        at: dcqcn_ramp_cycle(sender, at.flows, at.rate, at.rtt_s, marks, arriving=subject.arriving)
        for at in points_of(box, subject.name, _IN_TIME)
    }
    cycle = worst_cycle(cycles, marks, size)
    swing = cycle.fluid.highest_packets - cycle.fluid.lowest_packets
    if linear is not None and swing * size <= subject.kmax_bytes - subject.kmin_bytes:
        return linear
    looked = f"{cycle.points} points were looked at in time; between them nothing is proved"
    return QueueVerdict(
        status=Status.ADMISSIBLE if cycle.held else Status.STABLE,
        reach=None if linear is None else linear.reach,
        warnings=(*subject.notes, IN_TIME, *([looked] if cycle.points > 1 else [])),
        cycle=cycle,
    )


def _linear_verdict(subject: DcqcnSubject, points: list[Point], size: float) -> QueueVerdict:
    """The loop of one point is certified, the gain margin of a box is proved between the points, too, if it can be."""
    worst_points = points
    if len(points) > 1:
        flows, rtt, rate = (np.array(each)[:, None] for each in zip(*points, strict=True))
        factor, phase = _look(subject, _loads(subject, flows, rate, size), rtt)
        worst_points = [points[i] for i in sorted({int(np.argmin(factor)), int(np.argmin(phase))})]
    found = {at: margins(subject.loop(at, size)) for at in worst_points}
    worst = min(found, key=lambda at: (found[at].stable, found[at].gain_margin_db))
    turned = min(found, key=lambda at: found[at].phase_margin_deg)
    stable = found[worst].stable
    notes, proved = subject.notes, None
    if stable and len(points) == 1:
        proved = found[worst].gain_margin_db
    elif stable:
        factor = proved_gain(subject.over(size), points, 10.0 ** (found[worst].gain_margin_db / 20.0))
        proved = None if factor is None else decibel(factor)
    if len(points) > 1:
        what = "nothing" if proved is None else "the gain margin alone"
        notes = (*notes, f"{len(points)} points were looked at; between them {what} is proved")
    kept = all(m.gain_margin_db >= MIN_GAIN_DB and m.phase_margin_deg >= MIN_PHASE_DEG for m in found.values())
    status = Status.ADMISSIBLE if kept else Status.STABLE
    less = stable and found[turned].phase_margin_deg < found[worst].phase_margin_deg
    # As in the paper of 2016, whose delay is a constant without the queue.
    usual = margins(subject.loop(worst, size, queue=False)) if subject.arriving else found[worst]
    return QueueVerdict(
        status=status if all(each.stable for each in found.values()) else Status.UNSTABLE,
        linear=LinearMargins(
            sender=subject.name,
            rtt_s=worst.rtt_s,
            window_packets=worst.rate / worst.flows * worst.rtt_s,
            stable=usual.stable,
            gain_margin_db=usual.gain_margin_db,
            phase_margin_deg=usual.phase_margin_deg,
        ),
        sampled=_at_point(subject, worst, found[worst], size, proved),
        least_phase=_at_point(subject, turned, found[turned], size, None) if less else None,
        reach=QueueReach(
            longest_rtt_s=_longest_rtt(subject, points, size),
            fewest_flows=None,
            largest_window_packets=None,
            smallest_max_bytes=_smallest_max(subject, points, size),
        ),
        warnings=notes,
    )


def _at_point(subject: DcqcnSubject, at: Point, found: Margins, size: float, proved: float | None) -> SampledLoop:
    """Record of the loop at a point, with its margins."""
    wait = subject.wait(at, size)
    return SampledLoop(
        sender=subject.name,
        flows=at.flows,
        capacity_bit_per_s=at.rate * size * BITS_PER_BYTE,
        rtt_s=at.rtt_s,
        queue_delay_s=wait,
        windows_packets=(at.rate / at.flows * (at.rtt_s + wait),),
        probabilities=(subject.probability(at, size),),
        stable=found.stable,
        gain_margin_db=found.gain_margin_db,
        gain_margin_db_proved=proved,
        gain_reduction_db=found.gain_reduction_db if found.stable and not isinf(found.gain_reduction_db) else None,
        phase_margin_deg=found.phase_margin_deg,
        delay_margin_s=max(found.delay_margin_s, 0.0),
        disk_margin=disk_margin(subject.loop(at, size)).alpha if found.stable else 0.0,
    )


class _Loads(NamedTuple):
    """Flows and rates with their equilibria, which don't depend on the round-trip time; (k, 1)."""

    rate: np.ndarray
    """C [packet/s]."""
    slope: float
    """dp/dq [1/packet]."""
    wait: np.ndarray
    """Queue's delay in the loop [s]."""
    response: DcqcnPolynomials


def _loads(subject: DcqcnSubject, flows: np.ndarray, rate: np.ndarray, packet_bytes: float) -> _Loads:
    sender = subject.sender(packet_bytes)
    wait = np.zeros(rate.shape)
    if subject.arriving:
        probability = dcqcn_equilibrium(sender, rate / flows).probability
        wait = (subject.kmin_bytes + probability / subject.slope) / (rate * packet_bytes)
    return _Loads(rate, subject.slope * packet_bytes, wait, dcqcn_polynomials(sender, rate / flows))


def _look(subject: DcqcnSubject, loads: _Loads, rtt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gain margin as a factor and least distance from the negative axis where |L| is 1 [rad], (k,), by the response at
    many frequencies; a factor of 0 where no gain is stable, as rates don't settle at a constant probability either.

    Between two frequencies the response is taken as straight where it crosses the negative axis, and as straight in
    ln L over ln |L| where |L| passes 1, so that the angle there is the fraction of the turn between both.
    """
    delay = rtt + loads.wait
    slowest = float(delay.max()) + subject.timer_s + subject.alpha_s + subject.cnp_s
    direct = float(np.abs(loads.response.echo[0]).max())  # echo/plain is this over s at high frequencies
    frequency = np.geomspace(1e-3 / slowest, max(20.0 / float(delay.min()), 3.0 * direct), _FREQUENCIES)
    response = dcqcn_response(loads.response, loads.rate, loads.slope, delay, frequency)
    size, real, above = np.abs(response), response.real, response.imag
    with np.errstate(divide="ignore", invalid="ignore"):
        part = above[:, :-1] / (above[:, :-1] - above[:, 1:])
        crossed = -(real[:, :-1] + part * (real[:, 1:] - real[:, :-1]))
        met = np.diff(np.signbit(above), axis=1) & (crossed > 0.0)
        gains = np.where(met, 1.0 / crossed, np.inf)
    decides = deciding(gains, np.where(met, np.where(above[:, 1:] > above[:, :-1], 2, -2), 0))
    factor = np.where(dcqcn_settles(loads.response, delay, frequency), gains[np.arange(len(decides)), decides], 0.0)
    log_size, turned = np.log(size), np.angle(-response)
    step = np.diff(log_size, axis=1)
    part = -log_size[:, :-1] / np.where(step == 0.0, 1.0, step)
    between = np.abs(turned[:, :-1] + part * np.angle(response[:, 1:] / response[:, :-1]))
    return factor, np.where(np.diff(size > 1.0, axis=1), between, np.inf).min(axis=1)


def _keeps(subject: DcqcnSubject, loads: _Loads, rtt: np.ndarray) -> bool:
    """Whether the design rule is kept at all points."""
    factor, phase = _look(subject, loads, rtt)
    return bool(factor.min() >= MIN_FACTOR and phase.min() >= radians(MIN_PHASE_DEG))


def _longest_rtt(subject: DcqcnSubject, points: list[Point], packet_bytes: float) -> float | None:
    """Round-trip time up to which all flows and rates of the points keep the rule; None: not at the shortest."""
    flows, rate = (np.array(each)[:, None] for each in zip(*sorted({(p.flows, p.rate) for p in points}), strict=True))
    loads, end = _loads(subject, flows, rate, packet_bytes), max(each.rtt_s for each in points)

    def kept(rtt: float) -> bool:
        return _keeps(subject, loads, np.full(flows.shape, rtt))

    return kept_up_to(kept, end / _FAR, _FURTHER, _FAR * end, _HALVED)


def _smallest_max(subject: DcqcnSubject, points: list[Point], packet_bytes: float) -> float | None:
    """Smallest K_max, with the same K_min and P_max, at which all points keep the rule.

    The loop's gain is proportional to the slope of the marks. None where packets are marked as they come: the queue's
    delay grows with K_max then, and the margin with it at first alone; or where no such slope keeps it.
    """
    if subject.arriving:
        return None
    flows, rtt, rate = (np.array(each)[:, None] for each in zip(*points, strict=True))
    loads = _loads(subject, flows, rate, packet_bytes)
    steeper = float(_look(subject, loads, rtt)[0].min()) / MIN_FACTOR
    if not 0.0 < steeper < inf:
        return None

    def kept(factor: float) -> bool:
        return _keeps(subject, loads._replace(slope=loads.slope * factor), rtt)

    low = high = 0.999 * steeper
    while not kept(low):
        low, high = low / _FURTHER, low
        if low < steeper / _FLATTEST:
            return None
    for _ in range(_HALVED if low < high else 0):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if kept(middle) else (low, middle)
    return subject.kmin_bytes + (subject.kmax_bytes - subject.kmin_bytes) / low


def proved_gain(loop: DcqcnBox, points: Sequence[Point], attained: float) -> float | None:
    """Factor of the gain up to which the loop is stable at every point of a box; None: nothing is proved.

    Parameters
    ----------
    loop : DcqcnBox
    points : sequence of Point
        Points of the box, its corners among them; the loop is known to be stable at one of them.
    attained : float
        Least factor at these points, above 1.
    """
    flows, rtt, rate = [(min(each), max(each)) for each in zip(*points, strict=True)]
    others = tuple((log(low), log(high)) for low, high in (flows, rate, rtt))

    def held(factor: float) -> bool:
        omega = loop.beyond(flows, rate, factor)
        if not isfinite(omega):
            return False
        angle = (0.0, omega * loop.unit_s)
        return avoids_zero(loop.disc, angle=angle, gain=(1.0, factor), others=others, most_cells=_MOST_CELLS)

    best, middle, least = (attained - gap * (attained - 1.0) for gap in _GAPS)
    if held(middle):
        return best if held(best) else middle
    return least if held(least) else None
