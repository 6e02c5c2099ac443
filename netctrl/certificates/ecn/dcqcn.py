"""DCQCN between two thresholds of a queue for `netctrl certify`: equilibrium and margins, exact in the delay.

Marks rise from 0 at K_min to P_max at K_max, above which every packet is marked (Zhu et al., SIGCOMM 2015, Fig. 5; WRED
with ECN of switches). The delay of the loop is the round-trip time without the queue where packets are marked as they
leave, since a mark then overtakes the queue; else the queue's delay adds to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isinf

from netctrl.certificates.box import MIN_GAIN_DB, MIN_PHASE_DEG, Box
from netctrl.certificates.ecn.dcqcn_look import longest_rtt, smallest_max, worst_points
from netctrl.certificates.ecn.dcqcn_proof import proved_gain
from netctrl.certificates.ecn.points import Point, points_of
from netctrl.certificates.ecn.ramp import IN_TIME, worst_cycle
from netctrl.certificates.ecn.record import RampCycle
from netctrl.certificates.record import LinearMargins, QueueReach, QueueVerdict, SampledLoop
from netctrl.errors import InvalidValue, Status, checked_flag, checked_number
from netctrl.frequency.certified.disk import disk_margin
from netctrl.frequency.margins import margins
from netctrl.frequency.records import Margins, decibel
from netctrl.laws.targets.wred import WredLaw
from netctrl.model.open_loop import OpenLoop
from netctrl.plants.ecn.dcqcn import (
    DcqcnSender,
    dcqcn_equilibrium,
    dcqcn_loop,
)
from netctrl.plants.ecn.dcqcn_box import DcqcnBox
from netctrl.plants.ecn.dctcp import Cycle
from netctrl.plants.ecn.ramp import dcqcn_ramp_cycle
from netctrl.units import BITS_PER_BYTE, RATES, SIZES, TIMES, checked_quantity, packets_per_second

__all__ = ["DcqcnSubject", "dcqcn", "dcqcn_as_switch"]

_LOOKED, _IN_TIME = (17, 7, 3), (5, 3, 2)
"""Flows, round-trip times and rates at which the loop of a box is looked at, and at which the fluid is integrated."""
_SWITCH = (
    "senders have the values of DCQCN's paper, which the switch doesn't know",
    "the switch is taken to mark packets as they leave; if it marks them as they come, the queue's delay adds to the "
    "loop's: `netctrl certify dcqcn --marked-arriving`",
)
_NOTES = (
    "hyper increase, the line rate as a bound of R_T, PFC and single packets are not in the loop",
    "flows have equal rates: a loop that is stable doesn't say how fast unequal rates become equal",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DcqcnSubject:
    """Two thresholds of a queue whose flows are DCQCN's."""

    parameters: Mapping[str, float | int | str | bool]
    min_bytes: float
    """K_min [byte]."""
    max_bytes: float
    """K_max [byte]."""
    most: float
    """P_max"""
    increase_bit_per_s: float
    """R_AI [bit/s]."""
    counter_bytes: float
    """B [byte]."""
    timer_s: float
    """T [s]."""
    notification_s: float
    """tau [s]."""
    alpha_s: float
    """Interval of alpha's update [s]."""
    gain: float
    """g"""
    stages: int
    """F"""
    arriving: bool
    """Marks as packets come, and not as they leave."""
    implementation: str = "DCQCN's fluid in real numbers"
    name: str = "dcqcn"
    in_bytes: bool = False
    target_s: float = 0.0
    more: tuple[str, ...] = ()
    """Notes of the thresholds' source."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Effects that the loop leaves out."""
        return (*_NOTES, *self.more)

    @property
    def gains(self) -> dict[str, float]:
        """Slope of the marks, unless they make a step, and g."""
        return {"g": self.gain} if self.steps else {"slope_per_byte": self.slope, "g": self.gain}

    @property
    def steps(self) -> bool:
        """Whether the thresholds are equal."""
        return self.max_bytes == self.min_bytes

    @property
    def slope(self) -> float:
        """Rise of the probability [1/byte]."""
        return inf if self.steps else self.most / (self.max_bytes - self.min_bytes)

    @property
    def read(self) -> str:
        """Which queue the law reads, in words."""
        return f"queue as the packet {'comes' if self.arriving else 'leaves'}"

    @property
    def marked(self) -> str:
        """Place of the marks, in words."""
        return f"as packets {'come' if self.arriving else 'leave'}"

    def sender(self, packet_bytes: float) -> DcqcnSender:
        """The sender in packets and seconds."""
        return DcqcnSender(
            increase=packets_per_second(self.increase_bit_per_s, packet_bytes),
            counter=self.counter_bytes / packet_bytes,
            notification_s=self.notification_s,
            alpha_s=self.alpha_s,
            timer_s=self.timer_s,
            gain=self.gain,
            stages=float(self.stages),
        )

    def queue_bytes(self, probability: float) -> float:
        """Queue at a probability [byte]."""
        return self.min_bytes + probability / self.slope

    def loop(self, at: Point, packet_bytes: float) -> OpenLoop:
        """Loop at a point, 1 + L = 0."""
        sender, slope = self.sender(packet_bytes), self.slope * packet_bytes
        return dcqcn_loop(sender, at.flows, at.rate, slope, self._delay(at, packet_bytes))

    def over(self, packet_bytes: float) -> DcqcnBox:
        """The loop over boxes."""
        threshold, slope = self.min_bytes / packet_bytes, self.slope * packet_bytes
        return DcqcnBox(self.sender(packet_bytes), slope, threshold, self.arriving, self.timer_s)

    def verdict(self, box: Box) -> QueueVerdict:
        """Margins at the box's worst points, or where its thresholds make no linear loop the fluid in time."""
        size = box.inputs.packet_size_bytes
        points = points_of(box, self.name, _LOOKED)
        linear = None
        if not self.steps and self._served(points, size):
            linear = self._linear_verdict(points, size)
            if linear.status is not Status.UNSTABLE:
                return linear
        cycle = self._cycle(points_of(box, self.name, _IN_TIME), size)
        swing = cycle.fluid.highest_packets - cycle.fluid.lowest_packets
        if linear is not None and swing * size <= self.max_bytes - self.min_bytes:
            return linear
        looked = f"{cycle.points} points were looked at in time; between them nothing is proved"
        return QueueVerdict(
            status=Status.ADMISSIBLE if cycle.held else Status.STABLE,
            linear=None,
            sampled=None,
            reach=None if linear is None else linear.reach,
            warnings=(*self.notes, IN_TIME, *([looked] if cycle.points > 1 else [])),
            cycle=cycle,
        )

    def _cycle(self, points: list[Point], packet_bytes: float) -> RampCycle:
        ends = ((self.min_bytes, 0.0), (self.max_bytes, self.most), (self.max_bytes, 1.0))
        marks = [(q / packet_bytes, p) for q, p in ends]
        sender = self.sender(packet_bytes)

        def run(at: Point) -> Cycle:
            return dcqcn_ramp_cycle(sender, at.flows, at.rate, at.rtt_s, marks, arriving=self.arriving)

        return worst_cycle(run, points, marks, packet_bytes)

    def _linear_verdict(self, points: list[Point], size: float) -> QueueVerdict:
        """The loop of one point is certified, the gain margin of a box is proved between the points, too, if it can
        be."""
        found = {at: margins(self.loop(at, size)) for at in worst_points(self, points, size)}
        worst = min(found, key=lambda at: (found[at].stable, found[at].gain_margin_db))
        notes, proved = self.notes, None
        if found[worst].stable and len(points) == 1:
            proved = found[worst].gain_margin_db
        elif found[worst].stable:
            factor = proved_gain(self.over(size), points, 10.0 ** (found[worst].gain_margin_db / 20.0))
            proved = None if factor is None else decibel(factor)
        if len(points) > 1:
            what = "nothing" if proved is None else "the gain margin alone"
            notes = (*notes, f"{len(points)} points were looked at; between them {what} is proved")
        turned = min(found, key=lambda at: found[at].phase_margin_deg)
        less = found[worst].stable and found[turned].phase_margin_deg < found[worst].phase_margin_deg
        return QueueVerdict(
            status=_status(list(found.values())),
            linear=self._linear(worst, size, found[worst]),
            sampled=self._sampled(worst, found[worst], size, proved),
            least_phase=self._sampled(turned, found[turned], size, None) if less else None,
            reach=QueueReach(
                longest_rtt_s=longest_rtt(self, points, size),
                fewest_flows=None,
                largest_window_packets=None,
                smallest_max_bytes=smallest_max(self, points, size),
            ),
            warnings=notes,
        )

    def _probability(self, at: Point, packet_bytes: float) -> float:
        return float(dcqcn_equilibrium(self.sender(packet_bytes), at.rate / at.flows).probability)

    def _wait(self, at: Point, packet_bytes: float) -> float:
        return self.queue_bytes(self._probability(at, packet_bytes)) / (at.rate * packet_bytes)

    def _delay(self, at: Point, packet_bytes: float) -> float:
        return at.rtt_s + (self._wait(at, packet_bytes) if self.arriving else 0.0)

    def _served(self, points: list[Point], packet_bytes: float) -> bool:
        """Whether all points have an equilibrium between the thresholds."""
        return self._probability(max(points, key=lambda each: each.flows / each.rate), packet_bytes) <= self.most

    def _linear(self, at: Point, packet_bytes: float, found: Margins) -> LinearMargins:
        """The loop as in the paper of 2016: its delay is a constant without the queue."""
        if self.arriving:
            sender, slope = self.sender(packet_bytes), self.slope * packet_bytes
            found = margins(dcqcn_loop(sender, at.flows, at.rate, slope, at.rtt_s))
        return LinearMargins(
            sender=self.name,
            rtt_s=at.rtt_s,
            window_packets=at.rate / at.flows * at.rtt_s,
            stable=found.stable,
            gain_margin_db=found.gain_margin_db,
            phase_margin_deg=found.phase_margin_deg,
        )

    def _sampled(self, at: Point, found: Margins, packet_bytes: float, proved: float | None) -> SampledLoop:
        wait = self._wait(at, packet_bytes)
        return SampledLoop(
            sender=self.name,
            flows=at.flows,
            capacity_bit_per_s=at.rate * packet_bytes * BITS_PER_BYTE,
            rtt_s=at.rtt_s,
            queue_delay_s=wait,
            windows_packets=(at.rate / at.flows * (at.rtt_s + wait),),
            probabilities=(self._probability(at, packet_bytes),),
            stable=found.stable,
            gain_margin_db=found.gain_margin_db,
            gain_margin_db_proved=proved,
            gain_reduction_db=found.gain_reduction_db if found.stable and not isinf(found.gain_reduction_db) else None,
            phase_margin_deg=found.phase_margin_deg,
            delay_margin_s=max(found.delay_margin_s, 0.0),
            disk_margin=disk_margin(self.loop(at, packet_bytes)).alpha if found.stable else 0.0,
        )


def _status(found: list[Margins]) -> Status:
    if not all(each.stable for each in found):
        return Status.UNSTABLE
    kept = all(m.gain_margin_db >= MIN_GAIN_DB and m.phase_margin_deg >= MIN_PHASE_DEG for m in found)
    return Status.ADMISSIBLE if kept else Status.STABLE


def dcqcn(
    *,
    kmin_bytes: float = 5e3,
    kmax_bytes: float = 200e3,
    pmax: float = 0.01,
    rai_bit_per_s: float = 40e6,
    counter_bytes: float = 10e6,
    timer_s: float = 55e-6,
    cnp_s: float = 50e-6,
    alpha_s: float = 55e-6,
    g: float = 1.0 / 256.0,
    f: int = 5,
    arriving: bool = False,
) -> DcqcnSubject:
    """Thresholds of ECN with DCQCN below them, by default with the values of Zhu et al. (SIGCOMM 2015), Fig. 14.

    Raises
    ------
    InvalidValue
        A value outside its bounds.
    """
    low = checked_number("kmin", kmin_bytes, "a size of at least 0 in bytes", at_least=0.0)
    high = checked_quantity("kmax", kmax_bytes, "a size above 0 in bytes", SIZES)
    if high < low:
        raise InvalidValue("kmax", kmax_bytes, f"at least kmin, {low:g} bytes")
    most = checked_number("pmax", pmax, "a probability above 0 and at most 1", above=0.0, at_most=1.0)
    if isinstance(f, bool) or not isinstance(f, int) or not 1 <= f <= 1000:
        raise InvalidValue("F", f, "a whole number of stages from 1 to 1000")
    return DcqcnSubject(
        parameters={
            "kmin_bytes": low,
            "kmax_bytes": high,
            "pmax": most,
            "rai_bit_per_s": checked_quantity("rai", rai_bit_per_s, "a rate above 0 in bit/s", RATES),
            "counter_bytes": checked_quantity("byte_counter", counter_bytes, "a size above 0 in bytes", SIZES),
            "timer_s": checked_quantity("timer", timer_s, "a time above 0 in seconds", TIMES),
            "cnp_s": checked_quantity("cnp", cnp_s, "a time above 0 in seconds", TIMES),
            "alpha_s": checked_quantity("alpha_timer", alpha_s, "a time above 0 in seconds", TIMES),
            "g": checked_number("g", g, "a gain above 0 and at most 1", above=0.0, at_most=1.0),
            "f": f,
            "arriving": checked_flag("marked_arriving", arriving),
        },
        min_bytes=low,
        max_bytes=high,
        most=most,
        increase_bit_per_s=rai_bit_per_s,
        counter_bytes=counter_bytes,
        timer_s=timer_s,
        notification_s=cnp_s,
        alpha_s=alpha_s,
        gain=g,
        stages=f,
        arriving=arriving,
    )


def dcqcn_as_switch(law: WredLaw) -> DcqcnSubject:
    """DCQCN with its paper's values at the thresholds of a switch, for one colour.

    Raises
    ------
    InvalidValue
        A colour without ECN, or a probability of 0.
    """
    if not law.ecn:
        raise InvalidValue("ecn", False, "ECN for this colour: DCQCN needs marks, and its packets are dropped")
    subject = dcqcn(kmin_bytes=law.min_bytes, kmax_bytes=law.max_bytes, pmax=law.max_percent / 100.0)
    return replace(subject, more=_SWITCH)
