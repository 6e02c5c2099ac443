"""The queue of each link as a C++ initializer with its gains and their units (the structs are in the templates)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from netctrl.errors import InvalidValue
from netctrl.laws.aqm.records import (
    ArcQueue,
    AvqQueue,
    CodelQueue,
    DesignQueue,
    DropTailQueue,
    FastArcQueue,
    PieQueue,
    PiQueue,
    Queue,
    RateError,
    RedQueue,
    SfcQueue,
)
from netctrl.ns3.cpp import nanoseconds, real, row
from netctrl.scenario.tcp_aqm.scenario import Link

__all__ = ["queue_initializer", "settings_initializer"]

_CODEL_TICK_S = 1.024e-6
"""ns-3's CoDel counts time in units of 1024 ns, 32 bits of them."""

Field = tuple[str, str]
"""What it is with its unit, and the C++ text of its value."""


def queue_initializer(link: Link, packet_size: int) -> str:
    """The C++ initializer of a link's queue, one line a value with its unit.

    Raises
    ------
    InvalidValue
        A value, or a whole kind of queue, that ns-3's queue disc can't express; names the link's field.
    """
    queue = link.queue
    if isinstance(queue, AvqQueue) and queue.virtual_buffer is None and link.buffer is not None:
        queue = msgspec.structs.replace(queue, virtual_buffer=link.buffer)
    return settings_initializer(queue, f"links.{link.id}.queue", packet_size)


def settings_initializer(queue: Queue, where: str, packet_size: int) -> str:
    """The same of a queue by itself, whose place in a file is `where`."""
    kind, fields = _KINDS[type(queue)](queue, where, packet_size)
    lines = [f"        {text}, // {what}" for what, text in fields]
    return "\n".join([f"    {kind}{{", *lines, "    },"]) if lines else f"    {kind}{{}},"


def _arc(queue: Any, where: str, packet_size: int) -> tuple[str, list[Field]]:
    error: RateError | None = queue.rate_error
    terms = (0.0, 1.0, 0.0) if error is None else (error.amplitude, error.frequency_rad_s, error.start)
    return "ArcLaw", [
        ("alpha [1/packet]", real(queue.alpha)),
        ("epoch [s]", _seconds(f"{where}.epoch", queue.epoch)),
        ("target utilization", real(queue.target_utilization)),
        ("target queue [byte]", real(queue.target_queue)),
        ("packet size [byte]", real(packet_size)),
        ("rate error: amplitude [bit/s], frequency [rad/s], start [s]", row(map(real, terms))),
    ]


def _pi(queue: Any, where: str, packet_size: int) -> tuple[str, list[Field]]:
    return "PiLaw", [
        ("alpha [1/packet]", real(queue.alpha)),
        ("beta [1/packet]", real(queue.beta)),
        ("epoch [s], 1/frequency", _seconds(f"{where}.frequency_hz", 1.0 / queue.frequency_hz)),
        ("reference queue [byte]", real(queue.reference_queue)),
        ("packet size [byte]", real(packet_size)),
    ]


def _sfc(queue: Any, where: str, packet_size: int) -> tuple[str, list[Field]]:
    return "SfcLaw", [
        ("k1 [1/packet]", real(queue.k1)),
        ("k2", real(queue.k2)),
        ("epoch [s]", _seconds(f"{where}.epoch", queue.epoch)),
        ("target queue [byte]", real(queue.target_queue)),
        ("packet size [byte]", real(packet_size)),
    ]


def _avq(queue: Any, where: str, _: int) -> tuple[str, list[Field]]:
    if queue.virtual_buffer is None:
        raise InvalidValue(f"{where}.virtual_buffer", None, "a size: the link's own buffer is unlimited")
    return "AvqLaw", [
        ("target utilization", real(queue.target_utilization)),
        ("damping [1/s]", real(queue.damping)),
        ("virtual buffer [byte]", real(queue.virtual_buffer)),
    ]


def _red(queue: Any, _: str, __: int) -> tuple[str, list[Field]]:
    return "RedSettings", [
        ("min threshold [byte]", real(queue.min_threshold)),
        ("max threshold [byte]", real(queue.max_threshold)),
        ("max probability", real(queue.max_probability)),
        ("weight of one packet", real(queue.weight)),
    ]


def _pie(queue: Any, where: str, _: int) -> tuple[str, list[Field]]:
    return "PieSettings", [
        ("target [ns]", str(nanoseconds(f"{where}.target", queue.target))),
        ("update [ns]", str(nanoseconds(f"{where}.update", queue.update))),
        ("alpha [1/s]", real(queue.alpha)),
        ("beta [1/s]", real(queue.beta)),
        ("burst [ns]", str(nanoseconds(f"{where}.burst", queue.burst))),
    ]


def _codel(queue: Any, where: str, _: int) -> tuple[str, list[Field]]:
    for name in ("target", "interval"):
        if not _CODEL_TICK_S <= getattr(queue, name) < 2**31 * _CODEL_TICK_S:
            takes = "a time from 1.024 us to 2199 s: ns-3's CoDel counts in units of 1024 ns"
            raise InvalidValue(f"{where}.{name}", getattr(queue, name), takes)
    return "CodelSettings", [
        ("target [ns]", str(nanoseconds(f"{where}.target", queue.target))),
        ("interval [ns]", str(nanoseconds(f"{where}.interval", queue.interval))),
    ]


def _droptail(_: Any, __: str, ___: int) -> tuple[str, list[Field]]:
    return "FifoSettings", []


def _fluid_only(queue: Any, where: str, _: int) -> tuple[str, list[Field]]:
    takes = "a queue that stock ns-3 can run; FAST and its queue are for the fluid simulator only"
    raise InvalidValue(f"{where}.kind", queue.__struct_config__.tag, takes)


def _no_design(queue: Any, where: str, _: int) -> tuple[str, list[Field]]:
    takes = "a queue, or give a Design whose law goes there"
    raise InvalidValue(f"{where}.kind", queue.__struct_config__.tag, takes)


def _seconds(name: str, seconds: float) -> str:
    nanoseconds(name, seconds)
    return real(seconds)


_KINDS: dict[type, Callable[[Any, str, int], tuple[str, list[Field]]]] = {
    ArcQueue: _arc,
    PiQueue: _pi,
    AvqQueue: _avq,
    SfcQueue: _sfc,
    RedQueue: _red,
    PieQueue: _pie,
    CodelQueue: _codel,
    DropTailQueue: _droptail,
    FastArcQueue: _fluid_only,
    DesignQueue: _no_design,
}
