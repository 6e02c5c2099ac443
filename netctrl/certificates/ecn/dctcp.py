"""DCTCP at a threshold for `netctrl certify`: the law, and the smallest threshold that keeps a link busy.

Every packet is marked while the queue is above K. In the fluid of Alizadeh, Javanmard and Prabhakar (SIGMETRICS 2011)
all flows have one window, so only two ratios and the gain g of the sender's average count,

    b = C d/N    window of a flow that fills the link without a queue [packet],
    kappa = K/(C d)    threshold over the bandwidth-delay product,

and all times scale with d. A step has no slope: no linear loop describes it, and no equilibrium is stable. The queue
swings around K, and the link stays busy where the swing's lower end is above 0. The least kappa for that depends on b
and g alone, so the smallest threshold of a box is a search over b (`smallest_threshold`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, log
from typing import NamedTuple

from netctrl.certificates.box import MIN_WINDOW, Box, Ends, Point, between, ends, points_of
from netctrl.core.errors import InvalidValue, checked_number
from netctrl.laws.targets.red import RedLaw
from netctrl.laws.targets.wred import WredLaw
from netctrl.plants.ecn.dctcp import StepFluid, busy_threshold

LOOKED = (13, 5, 3)
"""Flows, round-trip times and rates at which the fluid of a box is integrated."""
_PRODUCTS = 13
"""Windows at which the smallest threshold is sought first."""
_NARROWED = 8
"""Steps of the search for the window that needs the largest threshold."""
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)
LARGEST_WINDOW = 1e5
"""Window of a flow, whose cycle takes thousands of round trips [packet]."""
_ROUNDING = 1e-9
"""Share of a window that counts as rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DctcpSubject:
    """Threshold of a queue whose flows are DCTCP's."""

    parameters: Mapping[str, float | int | str | bool]
    packets: float | None
    """K [packet]."""
    size_bytes: float | None
    """K [byte]."""
    delay_s: float | None
    """K/C [s]; one of the three is given."""
    gain: float
    """g"""
    name: str = "dctcp"
    implementation: str = "step threshold, DCTCP's fluid in real numbers"
    in_bytes: bool = False
    target_s: float = 0.0
    read: str = "queue at the packet's arrival"
    marked: str = "as packets come"
    notes: tuple[str, ...] = (
        "a step has no linear loop and no stable equilibrium: the verdict is that of the nonlinear fluid, integrated "
        "in time; the describing function and the sawtooth are predictions",
        "the fluid has equal flows in step: packets come one by one, and flows out of step swing less",
    )

    @property
    def gains(self) -> dict[str, float]:
        """Gain of the sender's average."""
        return {"g": self.gain}

    def threshold(self, rate: float, packet_bytes: float) -> float:
        """K at a rate in packets a second [packet]."""
        if self.packets is not None:
            return self.packets
        return self.size_bytes / packet_bytes if self.size_bytes is not None else (self.delay_s or 0.0) * rate

    def points(self, box: Box) -> list[Point]:
        """Points of a box that the verdict looks at: its corners, and values between.

        Raises
        ------
        InvalidValue
            Windows beyond what is integrated, or a box that this law doesn't have.
        """
        found = points_of(box, self.name, LOOKED)
        size = box.inputs.packet_size_bytes
        _check_window(max(self.fluid(each, size).window for each in found), box.inputs.flows)
        return found

    def fluid(self, at: Point, packet_bytes: float) -> StepFluid:
        """Numbers that the fluid depends on, at a point."""
        product = at.rate * at.rtt_s
        return StepFluid(product / at.flows, self.threshold(at.rate, packet_bytes) / product, self.gain)

    def always_marks(self, at: Point, packet_bytes: float) -> bool:
        """True where windows are below 2 packets with the queue at the threshold, so that it stays above."""
        return self.fluid(at, packet_bytes).window < MIN_WINDOW * (1.0 - _ROUNDING)


class SmallestThreshold(NamedTuple):
    """Smallest thresholds with which a queue of DCTCP's flows never runs empty."""

    packets: float
    """K [packet]."""
    delay_s: float
    """K/C, for a threshold in time [s]."""
    window_packets: float
    """C d/N of the flows that need it [packet]."""
    share: float
    """K/(C d) that they need."""


def smallest_threshold(
    flows: float | Ends,
    rtt_s: float | Ends,
    rate_packet_per_s: float | Ends,
    gain: float = 1.0 / 16.0,
    *,
    spare_packets: float = 0.0,
) -> SmallestThreshold:
    """Smallest threshold with which the fluid of DCTCP fills a link, for a range of flows, round-trip times and rates.

    kappa = K/(C d) depends on b = C d/N alone. It is .1664 at most, for windows of some 10 packets and g = 1/16:
    between the rules C d/7 (Alizadeh et al., SIGCOMM 2010, (13)) and .17 C d (Alizadeh, Javanmard, Prabhakar,
    SIGMETRICS 2011).

    Parameters
    ----------
    flows, rtt_s, rate_packet_per_s : float or (float, float)
        N, d without the queue [s] and C [packet/s].
    gain : float
        g of the sender's average.
    spare_packets : float
        Packets of each flow that the fluid's queue keeps at least, at least 0. With 1, flows in step kept the link busy
        on packets in all cases tried; with 0 they left up to 3 % unused where windows are below 10 packets.

    Returns
    -------
    SmallestThreshold
        The greatest that a search over b finds; windows below 2 packets with the queue at the threshold count as busy.

    Examples
    --------
    >>> found = smallest_threshold((1.0, 100.0), 1e-4, 833333.0)
    >>> round(found.packets, 1), round(found.share, 3)
    (13.9, 0.166)
    """
    given = (("flows", flows), ("rtt", rtt_s), ("capacity", rate_packet_per_s))
    N, d, C = (ends(name, value, "a number above 0, or a range") for name, value in given)
    checked_number("g", gain, "a gain above 0 and at most 1", above=0.0, at_most=1.0)
    spare = checked_number("spare", spare_packets, "a number of packets of at least 0", at_least=0.0)
    found: dict[float, float] = {}

    def share(b: float) -> float:
        if b not in found:
            found[b] = busy_threshold(b, gain, spare)
        return found[b]

    def packets(b: float) -> float:
        return share(b) * min(C[1] * d[1], b * N[1])

    def delay(b: float) -> float:
        """With the longest round trip that has this b; the rate is free."""
        return share(b) * min(d[1], b * N[1] / C[0])

    _check_window(C[1] * d[1] / N[0], flows)
    products = (C[0] * d[0] / N[1], C[1] * d[1] / N[0])
    at = _greatest(packets, products, C[1] * d[1] / N[1])
    in_time = _greatest(delay, products, C[0] * d[1] / N[1])
    return SmallestThreshold(packets(at), delay(in_time), at, share(at))


def _greatest(value: Callable[[float], float], products: Ends, bend: float) -> float:
    """Place of the maximum of a function with one maximum and a bend: on a first grid, then by golden section."""
    grid = between(products, _PRODUCTS)
    best = max(range(len(grid)), key=lambda i: value(grid[i]))
    low, high = log(grid[max(best - 1, 0)]), log(grid[min(best + 1, len(grid) - 1)])
    if low == high:
        return grid[best]
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    for _ in range(_NARROWED):
        if value(exp(inner[0])) > value(exp(inner[1])):
            high = inner[1]
            inner = [high - _GOLDEN * (high - low), inner[0]]
        else:
            low = inner[0]
            inner = [inner[1], low + _GOLDEN * (high - low)]
    return max((grid[best], exp(inner[0]), exp(inner[1]), bend), key=value)


def _check_window(window: float, flows: object) -> None:
    if window > LARGEST_WINDOW:
        takes = f"flows with windows of at most {LARGEST_WINDOW:g} packets: theirs are {window:.3g}"
        raise InvalidValue("flows", flows, f"{takes}, beyond what is integrated")


def dctcp(
    *, k_packets: float | None = None, k_bytes: float | None = None, k_s: float | None = None, g: float = 1.0 / 16.0
) -> DctcpSubject:
    """Threshold in packets, bytes or seconds, above which every packet is marked, and DCTCP with its gain g.

    Parameters
    ----------
    k_packets, k_bytes, k_s : float, optional
        The threshold [packet], [byte] or [s]; one of the three.
    g : float
        Gain of the sender's average.

    Raises
    ------
    InvalidValue
        None or several of the thresholds, or a value outside its bounds.
    """
    given = {"k_packets": k_packets, "k_bytes": k_bytes, "k_s": k_s}
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) != 1:
        raise InvalidValue("K", tuple(named) or None, "one threshold, in packets, bytes or seconds")
    for value in named.values():
        checked_number("K", value, "a threshold above 0", above=0.0)
    checked_number("g", g, "a gain above 0 and at most 1, as in 0.0625", above=0.0, at_most=1.0)
    return DctcpSubject(parameters={**named, "g": g}, packets=k_packets, size_bytes=k_bytes, delay_s=k_s, gain=g)


def dctcp_as_switch(law: WredLaw) -> DctcpSubject:
    """DCTCP at the step of a switch, for one colour with equal thresholds.

    Raises
    ------
    InvalidValue
        A colour without ECN, a threshold of 0, or a slower average than one with weight 1/2.
    """
    if not law.ecn:
        raise InvalidValue("ecn", False, "ECN for this colour: DCTCP needs marks, and its packets are dropped")
    if law.weight_log > 1:
        raise InvalidValue("weight", law.weight_log, "at most 1: with a slower average the queue isn't DCTCP's step")
    return dctcp(k_bytes=float(law.min_bytes))


def dctcp_as_linux(law: RedLaw) -> DctcpSubject:
    """DCTCP at the step of Linux's RED with equal thresholds, which marks from them on.

    Raises
    ------
    InvalidValue
        No ECN, drops above the threshold, a threshold of 0, or an average slower than tc's fastest, with weight 1/2.
    """
    if not law.ecn or law.harddrop:
        raise InvalidValue("ecn", False, "ecn without harddrop: DCTCP needs marks, and its packets are dropped")
    if law.weight_log > 1:
        takes = "ewma 1, which is nearly the present queue: with a slower average the queue isn't DCTCP's step"
        raise InvalidValue("ewma", law.weight_log, takes)
    return dctcp(k_bytes=law.min_bytes - 1.0)
