"""DCQCN between two thresholds of a queue for `netctrl certify`: the law, and its loop at a point.

Marks rise from 0 at K_min to P_max at K_max, above which every packet is marked (Zhu et al., SIGCOMM 2015, Fig. 5; WRED
with ECN of switches):

    p(q) = P_max (q − K_min)/(K_max − K_min).

DCQCN's flows settle at a probability p* that depends on the rate of a flow C/N alone (`dcqcn_equilibrium`), so the
queue stands at K_min + p*/slope. The loop from the queue back to it is linearised at `netctrl.plants.ecn.dcqcn`; its
gain is proportional to the slope dp/dq. The delay of the loop is the round-trip time without the queue where packets
are marked as they leave, since a mark then overtakes the queue; else the queue's delay adds to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import signature
from math import inf

from netctrl.certificates.box import Point
from netctrl.core.errors import InvalidValue, checked_flag, checked_number
from netctrl.core.units import RATES, SIZES, TIMES, checked_quantity, packets_per_second
from netctrl.laws.targets.wred import WredLaw
from netctrl.model.open_loop import OpenLoop
from netctrl.plants.ecn.dcqcn import DcqcnSender, dcqcn_equilibrium, dcqcn_loop
from netctrl.plants.ecn.dcqcn_box import DcqcnBox

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
    """Two thresholds of a queue whose flows are DCQCN's, in the parameters of `dcqcn`."""

    kmin_bytes: float
    """K_min [byte]."""
    kmax_bytes: float
    """K_max [byte]."""
    pmax: float
    """P_max"""
    rai_bit_per_s: float
    """R_AI [bit/s]."""
    counter_bytes: float
    """B [byte]."""
    timer_s: float
    """T [s]."""
    cnp_s: float
    """tau [s]."""
    alpha_s: float
    """Interval of alpha's update [s]."""
    g: float
    """Gain of alpha's average."""
    f: int
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
    def parameters(self) -> dict[str, float | int | str | bool]:
        """Arguments of `dcqcn`."""
        return {name: getattr(self, name) for name in signature(dcqcn).parameters}

    @property
    def notes(self) -> tuple[str, ...]:
        """Effects that the loop leaves out."""
        return (*_NOTES, *self.more)

    @property
    def gains(self) -> dict[str, float]:
        """Slope of the marks, unless they make a step, and g."""
        return {"g": self.g} if self.steps else {"slope_per_byte": self.slope, "g": self.g}

    @property
    def steps(self) -> bool:
        """Whether the thresholds are equal."""
        return self.kmax_bytes == self.kmin_bytes

    @property
    def slope(self) -> float:
        """Rise of the probability [1/byte]."""
        return inf if self.steps else self.pmax / (self.kmax_bytes - self.kmin_bytes)

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
            increase=packets_per_second(self.rai_bit_per_s, packet_bytes),
            counter=self.counter_bytes / packet_bytes,
            notification_s=self.cnp_s,
            alpha_s=self.alpha_s,
            timer_s=self.timer_s,
            gain=self.g,
            stages=float(self.f),
        )

    def queue_bytes(self, probability: float) -> float:
        """Queue at a probability [byte]."""
        return self.kmin_bytes + probability / self.slope

    def loop(self, at: Point, packet_bytes: float, *, queue: bool = True) -> OpenLoop:
        """Loop at a point, 1 + L = 0; without `queue` its delay is the round-trip time alone, as in the paper of 2016.

        Parameters
        ----------
        at : Point
        packet_bytes : float
        queue : bool
            Whether the queue's delay is in the loop where packets are marked as they come.
        """
        delay = at.rtt_s + (self.wait(at, packet_bytes) if queue and self.arriving else 0.0)
        return dcqcn_loop(self.sender(packet_bytes), at.flows, at.rate, self.slope * packet_bytes, delay)

    def over(self, packet_bytes: float) -> DcqcnBox:
        """The loop over boxes."""
        threshold, slope = self.kmin_bytes / packet_bytes, self.slope * packet_bytes
        return DcqcnBox(self.sender(packet_bytes), slope, threshold, self.arriving, self.timer_s)

    def probability(self, at: Point, packet_bytes: float) -> float:
        """Share of packets that is marked in equilibrium, which the rate of a flow alone decides."""
        return float(dcqcn_equilibrium(self.sender(packet_bytes), at.rate / at.flows).probability)

    def wait(self, at: Point, packet_bytes: float) -> float:
        """Standing delay of the queue [s]."""
        return self.queue_bytes(self.probability(at, packet_bytes)) / (at.rate * packet_bytes)


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

    Parameters
    ----------
    kmin_bytes, kmax_bytes, pmax : float
        Thresholds [byte], and the probability at the upper one.
    rai_bit_per_s : float
        Step of the additive increase [bit/s].
    counter_bytes, timer_s : float
        Bytes and time after each of which a sender increases its rate [s].
    cnp_s, alpha_s : float
        Least time between two notifications, and between two updates of alpha [s].
    g : float
        Gain of alpha's average.
    f : int
        Stages of fast recovery.
    arriving : bool
        Whether packets are marked as they come, and not as they leave.

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
        kmin_bytes=low,
        kmax_bytes=high,
        pmax=most,
        rai_bit_per_s=checked_quantity("rai", rai_bit_per_s, "a rate above 0 in bit/s", RATES),
        counter_bytes=checked_quantity("byte_counter", counter_bytes, "a size above 0 in bytes", SIZES),
        timer_s=checked_quantity("timer", timer_s, "a time above 0 in seconds", TIMES),
        cnp_s=checked_quantity("cnp", cnp_s, "a time above 0 in seconds", TIMES),
        alpha_s=checked_quantity("alpha_timer", alpha_s, "a time above 0 in seconds", TIMES),
        g=checked_number("g", g, "a gain above 0 and at most 1", above=0.0, at_most=1.0),
        f=f,
        arriving=checked_flag("marked_arriving", arriving),
    )


def dcqcn_as_switch(law: WredLaw) -> DcqcnSubject:
    """DCQCN with its paper's values at the thresholds of a switch, for one colour.

    Raises
    ------
    InvalidValue
        A colour without ECN, a probability of 0, or an average of the queue.
    """
    if not law.ecn:
        raise InvalidValue("ecn", False, "ECN for this colour: DCQCN needs marks, and its packets are dropped")
    if law.weight_log:
        raise InvalidValue("weight", law.weight_log, "0: DCQCN's loop here reads the present queue, not an average")
    subject = dcqcn(kmin_bytes=law.min_bytes, kmax_bytes=law.max_bytes, pmax=law.max_percent / 100.0)
    return replace(subject, more=_SWITCH)
