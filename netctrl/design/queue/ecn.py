"""Threshold of a step below DCTCP's senders, designed for a box of loads: the smallest that keeps the link busy.

A point of the box needs kappa = K/(C d) above kappa*(b), with b = C d/N: time in d and the queue in C d leave only b,
kappa and g in the fluid, so this much is exact (`netctrl.plants.ecn.dctcp`). A threshold in packets must be above
C d kappa*(b) at every point of the box, and one in time above d kappa*(b).

The worst corner rests on two properties of kappa* that are observed and not proved (`tests/design/queue/test_ecn.py`:
windows b from 1 to 3000 packets, g from 1/256 to 1):

- kappa*(b) falls with b, and b kappa*(b), the packets that each flow needs, rises. As C d kappa*(C d/N) is N b kappa*,
  a threshold in packets is decided by the most flows and the largest C d, and one in time, d kappa*, by the most flows,
  the longest round trip and the **slowest** rate.
- more K never empties a queue: the shortest queue rises with kappa, or stays 0.

Nothing here relies on them without a check. `netctrl.certificates.ecn.dctcp.smallest_threshold` searches all b of the
box. Its threshold, in whole steps of the target, is judged at the corners, on a grid and at points between, raised
until it holds at all of them, and lowered as long as it does. Between these points nothing is proved.

Below W* = (C d + K)/N = 2 packets senders, which have 2 packets at least, keep the queue above the threshold. K is
2 N - C d at least, so that the threshold, and not the senders' smallest windows, decides the delay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from math import ceil
from typing import NamedTuple

import msgspec

from netctrl.certificates.box import MIN_WINDOW, Box, Ends, Point, axes, box_of, spread_points
from netctrl.certificates.certify import certify, described
from netctrl.certificates.ecn.dctcp import DctcpSubject, dctcp, smallest_threshold
from netctrl.core.errors import InvalidValue, Status, checked_number, checked_word
from netctrl.core.units import BITS_PER_BYTE, MICROSECOND, TIMES, checked_quantity, format_quantity, long_rtt
from netctrl.design.queue.ecn_record import EcnDesign, EcnInputs, EcnProof, SmallerThreshold
from netctrl.laws.targets.step import StepUnit
from netctrl.model.io.record_file import taken
from netctrl.model.law import QueueLaw
from netctrl.plants.ecn.dctcp import Cycle, fluid_cycle

UNITS = ("bytes", "packets", "time")
_BETWEEN = 100
"""Points of a box that are looked at beside those of the certificate."""
_CLOSE = 1e-9
"""Share of a step by which a threshold may be above a whole number and is still taken for it."""
_IMPLEMENTATIONS = {
    "bytes": "step threshold in bytes, whole packets",
    "packets": "step threshold in whole packets",
    "time": "step threshold in whole microseconds",
}


class _Kept(NamedTuple):
    """Queue at a point with a threshold."""

    at: Point
    each: float
    """Shortest queue over the number of flows [packet]; -1 where windows are below 2 packets."""
    cycle: Cycle


def ecn_design(
    *,
    rtt_s: float | Ends,
    flows: float | Ends,
    capacity_bit_per_s: float | Ends,
    packet_size_bytes: float = 1500.0,
    gain: float = 1.0 / 16.0,
    unit: StepUnit = "bytes",
    p99_s: float | None = None,
    argv: Iterable[str] = (),
) -> EcnDesign:
    """Smallest threshold of a step with which DCTCP's flows keep a link busy, for a range of loads, in a target's unit.

    The queue of the nonlinear fluid keeps more than a packet of each flow at every point that is looked at, as
    `netctrl.certify("dctcp", ...)` judges, and with a threshold one step smaller it doesn't. The corners of the box, a
    grid and 100 points between are looked at; between them nothing is proved.

    Parameters
    ----------
    rtt_s : float or (float, float)
        Round-trip time without the queue [s].
    flows : float or (float, float)
        Number of flows.
    capacity_bit_per_s : float or (float, float)
        Rate of the link [bit/s].
    packet_size_bytes : float
        As the queue counts it [byte]; whole with the unit "bytes".
    gain : float
        g of the senders' average of marks.
    unit : {"bytes", "packets", "time"}
        "bytes" for switches, Linux's RED and ns-3's, in steps of a packet; "packets" for ns-3's RED; "time", in steps
        of 1 us, for CoDel's and DualPI2's thresholds.
    p99_s : float, optional
        Longest delay that is asked for [s]; one with a longer delay of the fluid isn't admissible.
    argv : iterable of str
        Command line, for the provenance.

    Returns
    -------
    EcnDesign
        Its law has the name and the parameters of `netctrl.certify("dctcp", ...)`.

    Raises
    ------
    InvalidValue
        A value outside its bounds, or windows of more than 100,000 packets.

    Notes
    -----
    Alizadeh, Javanmard, Prabhakar, "Analysis of DCTCP", SIGMETRICS 2011, (3) to (5). Flows are equal and in step.

    Examples
    --------
    >>> import netctrl
    >>> found = netctrl.ecn_design(rtt_s=100e-6, flows=(2.0, 40.0), capacity_bit_per_s=10e9)
    >>> found.law.parameters["k_bytes"], found.certificate.longest_delay_s < 110e-6
    (75000, True)
    """
    g = checked_number("gain", gain, "a gain above 0 and at most 1, as in 0.0625", above=0.0, at_most=1.0)
    checked_word("unit", unit, UNITS)
    if p99_s is not None:
        checked_quantity("p99", p99_s, "a delay above 0 in seconds", TIMES)
    box = box_of(_any(g), rtt_s, flows, capacity_bit_per_s, None, packet_size_bytes, "dctcp")
    size = box.inputs.packet_size_bytes
    if unit == "bytes" and size != int(size):
        raise InvalidValue("packet_size", size, "a whole number of bytes with a threshold in bytes")
    points = list(dict.fromkeys([*_any(g).points(box), *spread_points(box, "dctcp", _BETWEEN)]))

    @cache
    def kept(steps: int) -> list[_Kept]:
        return _kept(_subject(unit, steps, size, g), points, size)

    needs = _needs(unit, box, g)
    steps = _smallest(lambda steps: _worst(kept(steps)).each > 1.0, max(ceil(max(needs) - _CLOSE), 1))
    subject, cycles, worst = _subject(unit, steps, size, g), kept(steps), _worst(kept(steps))
    verdict = certify(subject, **msgspec.structs.asdict(box.inputs)).certificate
    longest_s = max(each.cycle.highest * each.at.rtt_s for each in cycles)
    certificate = EcnProof(
        status=Status.ADMISSIBLE if p99_s is None or longest_s <= p99_s else Status.STABLE,
        flows=worst.at.flows,
        rtt_s=worst.at.rtt_s,
        capacity_bit_per_s=_bits(worst.at, size),
        shortest_queue_packets=worst.each * worst.at.flows,
        packets_of_each_flow=worst.each,
        longest_queue_packets=max(each.cycle.highest * each.at.rate * each.at.rtt_s for each in cycles),
        longest_delay_s=longest_s,
        points=len(points),
        smaller=None if steps == 1 else _smaller(_subject(unit, steps - 1, size, g), _worst(kept(steps - 1)), size),
        verdict=verdict,
        warnings=(
            *long_rtt(box.rtt[1]),
            *_warnings(box, *needs),
            *subject.notes,
            f"between the {len(points)} points that were looked at nothing is proved",
        ),
    )
    law = QueueLaw(**taken(described(subject), "name", "parameters", "gains"), implementation=_IMPLEMENTATIONS[unit])
    return EcnDesign.of(EcnInputs(unit=unit, gain=g, box=box.inputs, p99_s=p99_s), law, certificate, argv=argv)


def _any(gain: float) -> DctcpSubject:
    """The law with any threshold, for what doesn't depend on it."""
    return dctcp(k_packets=1.0, g=gain)


def _subject(unit: StepUnit, steps: int, packet_bytes: float, gain: float) -> DctcpSubject:
    """The law with a threshold of whole steps of its unit."""
    if unit == "packets":
        return dctcp(k_packets=steps, g=gain)
    if unit == "bytes":
        return dctcp(k_bytes=steps * int(packet_bytes), g=gain)
    return dctcp(k_s=round(steps * MICROSECOND, 6), g=gain)


def _needs(unit: StepUnit, box: Box, gain: float) -> tuple[float, float]:
    """Thresholds that swings need and that windows of 2 packets need, in steps."""
    N, d, C = axes(box, "dctcp")
    found = smallest_threshold(N, d, C, gain, spare_packets=1.0)
    if unit == "time":
        return found.delay_s / MICROSECOND, (MIN_WINDOW * N[1] / C[0] - d[0]) / MICROSECOND
    return found.packets, MIN_WINDOW * N[1] - C[0] * d[0]


def _smallest(holds: Callable[[int], bool], first: int) -> int:
    """Steps that hold, so that one less doesn't: up by doubled strides and back by bisection, then down."""
    high, stride = first, 1
    if not holds(high):
        low = high
        while not holds(high := low + stride):
            low, stride = high, 2 * stride
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
    while high > 1 and holds(high - 1):
        high -= 1
    return high


def _kept(subject: DctcpSubject, points: list[Point], packet_bytes: float) -> list[_Kept]:
    """Queue at each point."""
    found = []
    for at in points:
        fluid = subject.fluid(at, packet_bytes)
        cycle = fluid_cycle(fluid)
        marks = subject.always_marks(at, packet_bytes)
        found.append(_Kept(at, -1.0 if marks else cycle.lowest * fluid.product, cycle))
    return found


def _worst(kept: list[_Kept]) -> _Kept:
    """The point whose queue is shortest over the number of flows."""
    return min(kept, key=lambda found: found.each)


def _smaller(subject: DctcpSubject, found: _Kept, packet_bytes: float) -> SmallerThreshold:
    return SmallerThreshold(
        parameters=dict(subject.parameters),
        flows=found.at.flows,
        rtt_s=found.at.rtt_s,
        capacity_bit_per_s=_bits(found.at, packet_bytes),
        window_packets=subject.fluid(found.at, packet_bytes).window,
        shortest_queue_packets=found.cycle.lowest * found.at.rate * found.at.rtt_s,
        lost_share=found.cycle.lost,
    )


def _bits(at: Point, packet_bytes: float) -> float:
    return at.rate * BITS_PER_BYTE * packet_bytes


def _warnings(box: Box, swings: float, windows: float) -> tuple[str, ...]:
    if windows <= swings:
        return ()
    N, d, C = axes(box, "dctcp")
    return (
        f"{N[1]:.4g} flows at {format_quantity(d[0], 's')} have {C[0] * d[0] / N[1]:.3g} packets each without a queue: "
        f"the threshold is set by windows of {MIN_WINDOW:g} packets, and a smaller one wouldn't shorten the queue",
    )
