"""Queue of each link as a type of ns-3 and its attributes: netctrl's queue discs, or ns-3's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

import msgspec

from netctrl.core.errors import InvalidValue
from netctrl.core.register import QUEUE_LAWS
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.avq import AvqQueue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.fast_arc import FastArcQueue
from netctrl.laws.aqm.law import QueueLaw
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DesignQueue, DropTailQueue, Queue, law_record
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.codegen import field_texts
from netctrl.laws.l4s.dualpi2 import DualPi2Queue, DualPi2State
from netctrl.ns3.cpp import nanoseconds, real
from netctrl.ns3.laws import DUAL_DISC, attribute, dual_attributes, queue_disc
from netctrl.scenario.links import Link

_CODEL_TICK_S = 1.024e-6
"""Longest time of ns-3's CoDel, which counts 1024 ns in 32 bits."""

Attribute = tuple[str, str, str]
"""Name, value as ns-3 reads it, and a comment where the name isn't clear."""


def link_queue(link: Link, packet_size: int) -> tuple[str, list[Attribute]]:
    """ns-3's type of a link's queue, and its attributes.

    Raises
    ------
    InvalidValue
        A value, or a kind of queue, that ns-3's queue disc can't express; the message names the link's field.
    """
    queue = link.queue
    if isinstance(queue, AvqQueue) and queue.virtual_buffer is None and link.buffer is not None:
        queue = msgspec.structs.replace(queue, virtual_buffer=link.buffer)
    return queue_settings(queue, f"links.{link.id}.queue", packet_size)


def queue_settings(queue: Queue, where: str, packet_size: int) -> tuple[str, list[Attribute]]:
    """The same of a queue whose place in a file is `where`."""
    law = own_law(queue)
    if law is not None:
        return queue_disc(law), _own(queue, law, where, packet_size)
    if type(queue) in _STOCK:
        return _STOCK[type(queue)](queue, where, packet_size)
    design = isinstance(queue, DesignQueue)
    only_fluid = "a queue for stock ns-3; FAST and its queue run only in the fluid simulator"
    takes = "a queue, or a Design whose law takes its place" if design else only_fluid
    raise InvalidValue(f"{where}.kind", queue.__struct_config__.tag, takes)


def library_laws() -> list[QueueLaw]:
    """netctrl's laws that its queue discs run: those of the program that every scenario shares."""
    ours = QUEUE_LAWS.our_modules()
    return own_laws(QUEUE_LAWS[name].record() for name in QUEUE_LAWS if QUEUE_LAWS.module_of(name) in ours)


def own_laws(queues: Iterable[Queue]) -> list[QueueLaw]:
    """Laws that netctrl's queue discs run for these queues."""
    return [law for queue in queues if (law := own_law(queue)) is not None]


def own_law(queue: Queue) -> QueueLaw | None:
    """Law that netctrl's queue disc runs; None where ns-3 has its own, or no disc can run it."""
    return None if type(queue) in _STOCK or isinstance(queue, FastArcQueue) else law_record(queue)


def _own(queue: Any, law: QueueLaw, where: str, packet_size: int) -> list[Attribute]:
    try:
        values = law.read(queue, float(packet_size), inf)
    except InvalidValue as error:
        raise InvalidValue(f"{where}.{error.argument}", error.got, error.takes) from None
    texts = field_texts(law.parameters)
    found = [
        (attribute(field), real(value), texts[field])
        for field, value in zip(law.parameters._fields, values, strict=True)
    ]
    found.append(("MeanPktSize", str(packet_size), "[byte]"))
    if law.epoch is not None:
        found.append(
            ("Epoch", _time(f"{where}.{'epoch' if hasattr(queue, 'epoch') else 'frequency_hz'}", law.epoch(queue)), "")
        )
    if isinstance(queue, ArcQueue) and (error := queue.rate_error) is not None:
        terms = error.amplitude, error.frequency_rad_s, error.start
        names = ("Amplitude", "[bit/s]"), ("Frequency", "[rad/s]"), ("Start", "[s]")
        found += [(f"RateError{name}", real(value), unit) for (name, unit), value in zip(names, terms, strict=True)]
    return found


def _dualpi2(queue: DualPi2Queue, where: str, packet_size: int) -> tuple[str, list[Attribute]]:
    texts = field_texts(DualPi2State)
    found = [
        (attribute(field), real(value), texts[field])
        for field, value in dual_attributes(queue, float(packet_size)).items()
    ]
    return DUAL_DISC, [
        *found,
        ("MeanPktSize", str(packet_size), "[byte]"),
        ("Epoch", _time(f"{where}.update", queue.update), ""),
    ]


_MARKING = ("UseEcn", "true", "")


def _red(queue: RedQueue, where: str, packet_size: int) -> tuple[str, list[Attribute]]:
    if not queue.spaced:
        raise InvalidValue(f"{where}.spaced", False, "true for ns-3, whose RED spaces its marks")
    adaptive: list[Attribute] = [("AdaptMaxP", "true", "adaptive RED")] if queue.adaptive else []
    return "ns3::RedQueueDisc", [
        _MARKING,
        ("Gentle", "true" if queue.gentle else "false", ""),
        *adaptive,
        ("Wait", "false", "marks spread as in the paper of 1993, 2 p/(1 + p) of the packets"),
        ("MeanPktSize", str(packet_size), "[byte]"),
        ("MinTh", real(queue.min_threshold), "in the unit of MaxSize: bytes"),
        ("MaxTh", real(queue.max_threshold), ""),
        ("LInterm", real(1.0 / queue.max_probability), "over the probability at MaxTh"),
        ("QW", real(queue.weight), "of one packet in the moving average"),
    ]


def _pie(queue: PieQueue, where: str, packet_size: int) -> tuple[str, list[Attribute]]:
    return "ns3::PieQueueDisc", [
        _MARKING,
        ("MeanPktSize", str(packet_size), "[byte]"),
        ("QueueDelayReference", _time(f"{where}.target", queue.target), ""),
        ("Tupdate", _time(f"{where}.update", queue.update), ""),
        ("A", real(queue.alpha), "[1/s]"),
        ("B", real(queue.beta), "[1/s]"),
        ("MaxBurstAllowance", _time(f"{where}.burst", queue.burst), ""),
        ("MarkEcnThreshold", "0.1", "RFC 8033, Section 5.1: above it, drop"),
    ]


def _codel(queue: CodelQueue, where: str, packet_size: int) -> tuple[str, list[Attribute]]:
    for name in ("target", "interval"):
        if not _CODEL_TICK_S <= getattr(queue, name) < 2**31 * _CODEL_TICK_S:
            takes = "a time from 1.024 us to 2199 s: ns-3's CoDel counts in units of 1024 ns"
            raise InvalidValue(f"{where}.{name}", getattr(queue, name), takes)
    return "ns3::CoDelQueueDisc", [
        _MARKING,
        ("MinBytes", str(packet_size), "[byte]"),
        ("Target", _time(f"{where}.target", queue.target), ""),
        ("Interval", _time(f"{where}.interval", queue.interval), ""),
    ]


def _droptail(_: DropTailQueue, __: str, ___: int) -> tuple[str, list[Attribute]]:
    return "ns3::FifoQueueDisc", []


def _time(name: str, seconds: float) -> str:
    return f"{nanoseconds(name, seconds)}ns"


_STOCK: dict[type, Callable[[Any, str, int], tuple[str, list[Attribute]]]] = {
    RedQueue: _red,
    PieQueue: _pie,
    CodelQueue: _codel,
    DropTailQueue: _droptail,
    DualPi2Queue: _dualpi2,
}
"""Kinds that ns-3 implements itself, for comparison with netctrl's, and those with two queues."""
