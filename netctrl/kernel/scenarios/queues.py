"""Queues of a scenario as the kernel's queueing disciplines, with the same parameters."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, NamedTuple

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE, MICROSECOND
from netctrl.kernel.scenarios.marker import law_text, marking_law
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.codegen import Refused
from netctrl.laws.disciplines import CakeQueue, FqCodelQueue, FqPieQueue, KernelQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.targets.dualpi2 import DUALPI2_STEP, dualpi2_gain, nearest_dualpi2_steps
from netctrl.linux.kernel.queue_options import queue_options
from netctrl.scenario.links import Link

HTB_HANDLE, HTB_CLASS = 0x00010000, 0x00010001
"""Handles of a link's HTB, 1:, and of its class, 1:1, which has the link's queue."""
_UNLIMITED_BYTES, _UNLIMITED_PACKETS = 2**31 - 1, 1_000_000
_LIMITS = {"pie": 1000, "codel": 1000, "fq_codel": 10_240, "fq_pie": 10_240, "dualpi2": 10_000}
"""What holds so many packets if nothing else is said, as Linux has it; a link's buffer may hold fewer."""
_PIE_STEP, _PIE_MOST = 16.0, 32
_PIE_BURST_S = 0.15
_GAIN_BOUND = 0.01
_MICRO = 1e-6


class Discipline(NamedTuple):
    """A queueing discipline and its options."""

    kind: str
    options: bytes


def bucket_bytes(rate: float) -> int:
    """Bucket of a link's class [byte]: what is sent in a microsecond, at least a byte.

    It makes up for what late timers take, and is too small to let two packets leave at once.
    """
    return max(int(rate * MICROSECOND / BITS_PER_BYTE), 1)


def discipline_of(link: Link, packet: float) -> Discipline:
    """The discipline of a link's queue; `packet` is the size of a packet [byte].

    Raises
    ------
    InvalidValue
        A queue that the kernel doesn't have, or a value that it doesn't keep.
    """
    kind, parameters = _described(link, packet)
    return Discipline(kind, queue_options(kind, parameters, packet))


def queue_lacks(link: Link, packet: float) -> str | None:
    """What the kernel doesn't have of a link's queue; None: it has it all."""
    try:
        discipline_of(link, packet)
        law = marking_law(link.queue) if is_marked(link) else None
        if law is not None:
            law_text(law)
    except (InvalidValue, Refused) as error:
        return f"such a queue (links.{link.id}.queue: {error})"
    return None


def _described(link: Link, packet: float) -> tuple[str, Mapping[str, Any]]:
    queue, packets = link.queue, _packets(link, packet)
    if isinstance(queue, KernelQueue):
        if link.buffer is None or queue.discipline not in _LIMITS:
            return queue.discipline, queue.parameters
        given = queue.parameters.get("limit", _LIMITS[queue.discipline])
        return queue.discipline, queue.parameters | {"limit": min(given, packets)}
    if isinstance(queue, DropTailQueue) or is_marked(link):
        return "bfifo", {"limit": _UNLIMITED_BYTES if link.buffer is None else link.buffer}
    if isinstance(queue, PieQueue):
        return "pie", _pie(queue) | {"limit": packets}
    own: dict[str, float] = {"limit": packets, "ecn": 1}
    if isinstance(queue, FqCodelQueue | FqPieQueue):
        if queue.buckets == 0:
            raise InvalidValue("buckets", 0, "a number of queues: the kernel hashes flows to them")
        own |= {"flows": queue.buckets, "quantum": packet if queue.quantum is None else queue.quantum}
    if isinstance(queue, FqPieQueue):
        return "fq_pie", queue.sent | own
    if isinstance(queue, CodelQueue | FqCodelQueue):
        times = {name: _micro(name, getattr(queue, name)) for name in ("target", "interval")}
        return queue.__struct_config__.tag, times | own
    if isinstance(queue, CakeQueue):
        bandwidth = {} if queue.bandwidth is None else {"bandwidth": queue.bandwidth}
        return "cake", {"rtt": _micro("rtt", queue.rtt), "target": _micro("target", queue.asked.target)} | bandwidth
    if isinstance(queue, DualPi2Queue):
        return "dualpi2", _dualpi2(queue) | {"limit": packets}
    takes = "droptail, pie, codel, fq_codel, fq_pie, cake, dualpi2, a law that acts by epochs such as arc, or `qdisc`"
    raise InvalidValue("kind", queue.__struct_config__.tag, takes)


def is_marked(link: Link) -> bool:
    """Whether a marker in front of a buffer runs the link's law, as the kernel has no such discipline."""
    return not isinstance(link.queue, PieQueue) and marking_law(link.queue) is not None


def _packets(link: Link, packet: float) -> int:
    """Buffer in packets, in which these disciplines count."""
    return _UNLIMITED_PACKETS if link.buffer is None else max(ceil(link.buffer / packet - 1e-9), 1)


def _pie(queue: PieQueue) -> dict[str, float]:
    if abs(queue.burst - _PIE_BURST_S) > _MICRO:
        raise InvalidValue("burst", queue.burst, "0.15 s, which the kernel's pie has built in")
    gains = {name: _sixteenths(name, getattr(queue, name)) for name in ("alpha", "beta")}
    return {"target": _micro("target", queue.target), "tupdate": _micro("update", queue.update), "ecn": 1, **gains}


def _sixteenths(name: str, gain: float) -> int:
    steps = round(gain * _PIE_STEP)
    if not 0 <= steps <= _PIE_MOST or abs(gain * _PIE_STEP - steps) > 1e-6:
        raise InvalidValue(name, gain, "a whole number of sixteenths from 0 to 2 1/s, in which the kernel's pie counts")
    return steps


def _dualpi2(queue: DualPi2Queue) -> dict[str, float]:
    percent = {"coupling_factor": queue.coupling, "classic_protection": 100.0 * queue.protection}
    whole = {name: _whole_number(name, value) for name, value in percent.items()}
    gains = {name: _gain(name, getattr(queue, name)) for name in ("alpha", "beta")}
    times = {"target": queue.target, "tupdate": queue.update, "step_thresh": queue.step}
    kept = {name: _micro(name, value) for name, value in times.items()}
    return kept | gains | whole | {"min_qlen_step": queue.step_packets, "drop_on_overload": 1, "drop_enqueue": 0}


def _whole_number(name: str, value: float) -> int:
    if abs(value - round(value)) > 1e-6:
        raise InvalidValue(name, value, "a whole number, in which the kernel's dualpi2 counts")
    return round(value)


def _gain(name: str, gain: float) -> float:
    """Gain to ask for so that the kernel, which rounds, has the nearest one."""
    steps = nearest_dualpi2_steps(gain)
    if abs(dualpi2_gain(steps) - gain) > _GAIN_BOUND * gain:
        takes = f"a gain that the kernel's dualpi2 meets to 1 %; the nearest one is {dualpi2_gain(steps):g} 1/s"
        raise InvalidValue(name, gain, takes)
    return steps * DUALPI2_STEP


def _micro(name: str, seconds: float) -> float:
    if abs(seconds / _MICRO - round(seconds / _MICRO)) > 1e-6:
        raise InvalidValue(name, seconds, "a whole number of microseconds, in which the kernel counts")
    return seconds
