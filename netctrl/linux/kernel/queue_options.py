"""Options of the kernel's queueing disciplines by their names in tc(8), as bytes, and their own counters.

Sources: linux/pkt_sched.h for numbers and structures; net/sched for what a value means. Tests compare the numbers with
the machine's header.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache
from math import ceil, log1p, log2
from typing import Any, NamedTuple

from netctrl.core.errors import InvalidValue, checked_number, did_you_mean
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.targets.dualpi2 import DUALPI2_MAX, DUALPI2_STEP
from netctrl.laws.targets.pie_law import PIE_MAX
from netctrl.linux.kernel.messages import attribute, attributes

_U32 = 2**32 - 1
_MICROSECONDS, _NANOSECONDS = 1e6, 1e9


class _Parameter(NamedTuple):
    """A parameter of a queueing discipline."""

    number: int
    """Of its attribute."""
    steps: float
    """Its value in the kernel for 1 of tc's unit."""
    unit: str
    """Unit of the value in a scenario; "" for a number."""
    most: int = _U32
    """Largest value in the kernel."""
    layout: str = "=I"
    """Of the attribute's payload; the kernel refuses another length."""


def _count(number: int, most: int = _U32) -> _Parameter:
    return _Parameter(number, 1.0, "", most)


def _byte(number: int, most: int) -> _Parameter:
    return _Parameter(number, 1.0, "", most, "=B")


def _micro(number: int) -> _Parameter:
    return _Parameter(number, _MICROSECONDS, "s")


PARAMETERS: dict[str, dict[str, _Parameter]] = {
    "pie": {
        "target": _micro(1),
        "limit": _count(2),
        "tupdate": _micro(3),
        "alpha": _count(4, PIE_MAX),
        "beta": _count(5, PIE_MAX),
        "ecn": _count(6, 1),
        "bytemode": _count(7, 1),
        "dq_rate_estimator": _count(8, 1),
    },
    "fq_pie": {
        "limit": _count(1),
        "flows": _count(2, 65536),
        "target": _micro(3),
        "tupdate": _micro(4),
        "alpha": _count(5, PIE_MAX),
        "beta": _count(6, PIE_MAX),
        "quantum": _count(7),
        "memory_limit": _count(8),
        "ecn_prob": _count(9, 100),
        "ecn": _count(10, 1),
        "bytemode": _count(11, 1),
        "dq_rate_estimator": _count(12, 1),
    },
    "codel": {
        "target": _micro(1),
        "limit": _count(2),
        "interval": _micro(3),
        "ecn": _count(4, 1),
        "ce_threshold": _micro(5),
    },
    "fq_codel": {
        "target": _micro(1),
        "limit": _count(2),
        "interval": _micro(3),
        "ecn": _count(4, 1),
        "flows": _count(5, 65536),
        "quantum": _count(6),
        "ce_threshold": _micro(7),
        "drop_batch": _count(8),
        "memory_limit": _count(9),
    },
    "fq": {
        "limit": _count(1),
        "flow_limit": _count(2),
        "quantum": _count(3),
        "initial_quantum": _count(4),
        "pacing": _count(5, 1),
        "buckets_log": _count(8, 18),
        "refill_delay": _micro(9),
        "ce_threshold": _micro(12),
        "timer_slack": _Parameter(13, _NANOSECONDS, "s"),
        "horizon": _micro(14),
    },
    "cake": {
        "bandwidth": _Parameter(2, 1.0 / BITS_PER_BYTE, "bit/s", 2**64 - 1, "=Q"),
        "flow_mode": _count(5, 7),
        "rtt": _micro(7),
        "target": _micro(8),
        "memory": _count(10),
        "nat": _count(11, 1),
        "wash": _count(13, 1),
        "ack_filter": _count(16, 2),
        "split_gso": _count(17, 1),
    },
    "dualpi2": {
        "limit": _count(1),
        "memory_limit": _count(2),
        "target": _micro(3),
        "tupdate": _micro(4),
        "alpha": _Parameter(5, 1.0 / DUALPI2_STEP, "Hz", DUALPI2_MAX),
        "beta": _Parameter(6, 1.0 / DUALPI2_STEP, "Hz", DUALPI2_MAX),
        "step_thresh_pkts": _count(7),
        "step_thresh": _micro(8),
        "min_qlen_step": _count(9),
        "coupling_factor": _byte(10, 255),
        "drop_on_overload": _byte(11, 1),
        "drop_enqueue": _byte(12, 1),
        "classic_protection": _byte(13, 100),
        "ecn_mask": _byte(14, 3),
        "split_gso": _byte(15, 1),
    },
}
"""Of disciplines whose options are attributes: the name of each parameter in tc, its attribute and unit."""

_RED = struct.Struct("=IIIBBBB")  # limit, qth_min, qth_max [byte], Wlog, Plog, Scell_log, flags
_RED_PARMS, _RED_STAB, _RED_MAX_P = 1, 2, 3
_RED_ECN, _RED_ADAPTIVE = 1, 4
_RED_CELLS, _RED_LONGEST, _RED_RATE = 255, 31, 1e7
"""Last cell of RED's table of idle times, most halvings of an average, tc's rate where none is given [bit/s]."""
_TICK_S = 64e-9
_FIFOS = ("bfifo", "pfifo")


def queue_options(kind: str, parameters: Mapping[str, Any], packet: float) -> bytes:
    """Payload of TCA_OPTIONS for a queueing discipline.

    Parameters
    ----------
    kind : str
        Name in tc(8).
    parameters : mapping of str to number
        By their names in tc(8): times in seconds, sizes in bytes, `limit` in the unit of the discipline (bytes for
        bfifo and red, else packets). Missing ones are the kernel's defaults.
    packet : float
        Size of a packet [byte], which red's average needs.

    Raises
    ------
    InvalidValue
        An unknown discipline or parameter, or a value beyond what the kernel keeps.
    """
    if kind in PARAMETERS:
        _known(kind, parameters, PARAMETERS[kind])
        parts = []
        for name, value in parameters.items():
            number, steps, unit, most, layout = PARAMETERS[kind][name]
            takes = f"a number from 0 to {most / steps:g} {unit}".rstrip()
            given = checked_number(f"{kind}.{name}", value, takes, at_least=0.0, at_most=most / steps)
            parts.append(attribute(number, struct.pack(layout, round(given * steps))))
        return b"".join(parts)
    if kind in _FIFOS:
        _known(kind, parameters, ("limit",))
        return struct.pack("=I", _whole(f"{kind}.limit", parameters["limit"])) if parameters else b""
    if kind == "red":
        return _red(parameters, packet)
    known = sorted((*PARAMETERS, *_FIFOS, "red"))
    raise InvalidValue("qdisc", kind, f"one of {', '.join(known)}{did_you_mean(kind, known)}")


_NETEM_LOSS, _GILBERT_ELLIOTT = 5, 2
_NETEM_DISTRIBUTION, _DEVIATION, _PLACES = 2, 8192, 4096
"""Of a table of quantiles: the attribute, what a standard deviation is in it, and how many iproute2's has."""


@cache
def _normal_table() -> bytes:
    """The normal distribution's quantiles; `netem` draws one."""
    from statistics import NormalDist

    quantile = NormalDist().inv_cdf
    numbers = (round(_DEVIATION * quantile((k + 0.5) / _PLACES)) for k in range(_PLACES))
    return attribute(_NETEM_DISTRIBUTION, struct.pack(f"={_PLACES}h", *numbers))


def netem_options(
    delay_s: float,
    rate_bit_per_s: float | None,
    loss: float,
    limit: int,
    *,
    jitter_s: float = 0.0,
    normal: bool = False,
    run: float | None = None,
) -> bytes:
    """Payload of TCA_OPTIONS for `netem`: a delay, the time that each packet takes at a rate, random loss.

    With `jitter_s` the delay is up to so much longer, uniformly, or normal around itself with so much as its standard
    deviation, and packets overtake each other; with `run` so many are lost in a row on average, by Gilbert's model.

    Source: linux/pkt_sched.h, struct tc_netem_qopt and TCA_NETEM_*; sch_netem.c.
    """
    half = 0.5 * jitter_s  # uniform jitter has both signs
    nanoseconds = round((delay_s if normal else delay_s + half) * _NANOSECONDS)
    head = struct.pack("=IIIIII", 0, limit, 0 if run else round(loss * _U32), 0, 0, 0)
    parts = [head, attribute(10, struct.pack("=q", nanoseconds))]
    if jitter_s:
        parts.append(attribute(11, struct.pack("=q", round((jitter_s if normal else half) * _NANOSECONDS))))
        if normal:
            parts.append(_normal_table())
    if run:
        states = (round(each * _U32) for each in (loss / (run * (1.0 - loss)), 1.0 / run))
        parts.append(attribute(_NETEM_LOSS, attribute(_GILBERT_ELLIOTT, struct.pack("=IIII", *states, 0, 0))))
    if rate_bit_per_s is not None:
        rate = round(rate_bit_per_s / 8.0)
        parts.append(attribute(6, struct.pack("=IiIi", min(rate, _U32), 0, 0, 0)))
        if rate > _U32:
            parts.append(attribute(8, struct.pack("=Q", rate)))
    return b"".join(parts)


def _known(kind: str, names: Any, known: Any) -> None:
    for name in names:
        if name not in known:
            raise InvalidValue(kind, name, f"parameters: {', '.join(known)}{did_you_mean(name, known)}")


def _whole(field: str, value: Any) -> int:
    return round(checked_number(field, value, "a number from 1 to 4294967295", at_least=1.0, at_most=_U32))


def _red(parameters: Mapping[str, Any], packet: float) -> bytes:
    """RED's options, with the powers of two by which the kernel computes (iproute2's tc_red_eval_ewma, _P, _idle)."""
    names = ("limit", "min", "max", "probability", "weight_log", "ecn", "adaptive", "bandwidth")
    _known("red", parameters, names)
    for name in ("limit", "min", "max"):
        if name not in parameters:
            raise InvalidValue("red", f"no {name}", "limit, min and max, in bytes")
    limit, low, high = (_whole(f"red.{name}", parameters[name]) for name in ("limit", "min", "max"))
    if not low <= high <= limit:
        raise InvalidValue("red.max", high, f"a size from min ({low} bytes) to limit ({limit} bytes)")
    share = checked_number(
        "red.probability", parameters.get("probability", 0.02), "a probability", above=0.0, at_most=1.0
    )
    takes = "a whole number from 1 to 31: the weight is 2 to the power of minus it"
    weight = round(checked_number("red.weight_log", parameters.get("weight_log", 9), takes, at_least=1, at_most=31))
    # The kernel divides the range by 2^Plog in old interfaces; with max_P it computes with the probability itself.
    shift = next((k for k in range(32) if share / max(high - low, 1) * 2**k >= 1.0), 31)
    takes = "a rate above 0 in bit/s"
    rate = checked_number("red.bandwidth", parameters.get("bandwidth", _RED_RATE), takes, above=0.0)
    cell, table = _idle_table(weight, packet, rate)
    flags = (_RED_ECN if parameters.get("ecn", 1) else 0) | (_RED_ADAPTIVE if parameters.get("adaptive", 0) else 0)
    parts = (
        attribute(_RED_PARMS, _RED.pack(limit, low, high, weight, shift, cell, flags)),
        attribute(_RED_STAB, table),
        attribute(_RED_MAX_P, struct.pack("=I", min(int(share * 2**32), _U32))),
    )
    return b"".join(parts)


def _idle_table(weight_log: int, packet: float, rate_bit_per_s: float) -> tuple[int, bytes]:
    """Cell size and halvings of the average after an idle time, as tc computes them (tc_red_eval_idle_damping).

    Cell i stands for i 2^c us; the average is halved floor(i 2^c l) times there, at most 31 times, with
    l = -ln(1 - w) over a packet's transmission in ticks of 64 ns. As tc takes ticks for microseconds and e for 2, an
    idle average falls some 22 times more slowly than by one arrival per transmission (Floyd and Jacobson).
    """
    rise = -log1p(-(0.5**weight_log)) / (packet * 8.0 / rate_bit_per_s / _TICK_S)
    cell = max(ceil(log2(_RED_LONGEST / rise / 512.0)), 0)
    halvings = [min(int((i << cell) * rise), _RED_LONGEST) for i in range(_RED_CELLS)]
    return cell, bytes([*halvings, _RED_LONGEST])


class QueueCounts(NamedTuple):
    """What a discipline says of itself."""

    marked: int
    """Packets marked with ECN, since its creation."""
    probability: float
    """Its present probability of dropping or marking; 0 where it has none."""


def queue_counts(kind: str, xstats: bytes) -> QueueCounts:
    """Counters from TCA_STATS_APP (struct tc_*_xstats in linux/pkt_sched.h)."""
    read = _COUNTS.get(kind)
    return QueueCounts(0, 0.0) if read is None or not xstats else read(xstats)


def _at(xstats: bytes, *places: int) -> int:
    return sum(struct.unpack_from("=I", xstats, place)[0] for place in places if len(xstats) >= place + 4)


def _pie(xstats: bytes) -> QueueCounts:
    (probability,) = struct.unpack_from("=Q", xstats)
    return QueueCounts(_at(xstats, 36), probability / 2**64)


def _dualpi2(xstats: bytes) -> QueueCounts:
    return QueueCounts(
        _at(xstats, 24), (_at(xstats, 0) / 2**32) ** 2
    )  # it tells p', and marks classic packets with p'²


def _cake(xstats: bytes) -> QueueCounts:
    tins = attributes(attributes(xstats).get(_CAKE_TINS, b""))
    return QueueCounts(
        sum(_at(attributes(tin).get(_CAKE_MARKED, b"").ljust(4, b"\0"), 0) for tin in tins.values()), 0.0
    )


_CAKE_TINS, _CAKE_MARKED = 10, 8  # TCA_CAKE_STATS_TIN_STATS, TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS
_COUNTS: dict[str, Callable[[bytes], QueueCounts]] = {
    "pie": _pie,
    "fq_pie": lambda xstats: QueueCounts(_at(xstats, 16), 0.0),
    "codel": lambda xstats: QueueCounts(_at(xstats, 24), 0.0),
    "fq_codel": lambda xstats: QueueCounts(_at(xstats, 12), 0.0),
    "red": lambda xstats: QueueCounts(_at(xstats, 12), 0.0),
    "dualpi2": _dualpi2,
    "cake": _cake,
}
