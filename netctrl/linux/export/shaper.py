"""One interface's queue as arguments for tc(8) and as a record to apply, with numbers in the kernel's steps; marking.

tc counts rates in bit/s and sizes in bytes; the kernel keeps whole bytes per second in 64 bits, and bursts in ticks of
64 ns at that rate. Both count Ethernet frames, which are 14 bytes longer than a Design's packets.
"""

from __future__ import annotations

import math
import os
import re
from typing import Literal, NamedTuple

import msgspec

from netctrl.core.errors import InvalidValue, checked_number, checked_whole
from netctrl.core.units import BITS_PER_BYTE
from netctrl.linux.export.records import (
    ETHERNET_HEADER,
    HTB_QUANTUM,
    HtbClass,
    InterfaceQueue,
    QueuePlan,
    TokenBucket,
    interface_name,
)
from netctrl.model.io.fields import number, read_fields
from netctrl.model.io.record_file import FileRecord, read_record
from netctrl.model.law import ArcLaw

HANDLE = "7c01:"
"""Handle of the queues that netctrl creates, as in `netctrl.linux`."""
_LEAF_HANDLE = "7c02:"
Shaper = Literal["htb", "tbf"]
"""Kinds of shapers: an HTB with one class, which keeps its tokens at a change of rate, or a TBF, which is refilled."""
_TICK_S = 64e-9
_RATE_BOUND, _BURST_BOUND = 1e-3, 0.1
_MAX_SIZE = 2**32 - 1
_FULL_FRAME = 1500.0 + ETHERNET_HEADER
_TIMER_S = 1e-4  # largest delay of a timer, for which the bucket has to hold packets
_TOKEN = re.compile(r"[A-Za-z0-9._:%+/-]+")
_NAME_TAKES = "a name of 1 to 15 characters that tc -batch can carry: no quotes, '#', '\\' or control characters"
_MAX_BYTES = 2**20


class QuantizedValue(msgspec.Struct, frozen=True):
    """Value as quantized by an implementation, with the requested one."""

    what: str
    requested: float
    implemented: float
    unit: str
    bound: float | None = None
    """Largest relative difference allowed; None: other criteria apply, such as margins."""

    @property
    def difference(self) -> float:
        """Relative difference; 0 where 0 was requested and implemented."""
        if self.requested == self.implemented:
            return 0.0
        return math.inf if self.requested == 0.0 else self.implemented / self.requested - 1.0


def nearest(
    what: str, requested: float, *, step: float, unit: str, least: int = 1, most: int = 2**32 - 1, bound: float | None
) -> tuple[int, QuantizedValue]:
    """Nearest whole number of steps, and the quantized value.

    Parameters
    ----------
    what : str
        Names the value in messages.
    asked : float
        Requested value in `unit`.
    step : float
        Size of a step in `unit`.
    least, most : int
        Range of steps that the implementation takes.
    bound : float or None
        Largest relative difference allowed; None: any.

    Raises
    ------
    InvalidValue
        A number of steps out of range, or a difference beyond the bound.
    """
    takes = f"{least * step:.6g} to {most * step:.6g} {unit} in steps of {step:.6g}"
    checked_number(what, requested, takes)
    steps = round(requested / step)
    if not least <= steps <= most:
        raise InvalidValue(what, requested, takes)
    figure = QuantizedValue(what, requested, steps * step, unit, bound)
    if bound is not None and abs(figure.difference) > bound:
        takes += f", within {100.0 * bound:g} %; the nearest is {figure.implemented:.6g}"
        raise InvalidValue(what, requested, takes)
    return steps, figure


class Framing(NamedTuple):
    """Conversion of a Design's bytes to the kernel's."""

    packet: float = 1500.0
    """Packet size as the Design counts it [byte]."""
    header: float = ETHERNET_HEADER
    """Bytes that the kernel counts in addition; 0: the Design counts frames."""

    @property
    def growth(self) -> float:
        """Ratio of frame length to packet length, by which rates and sizes grow."""
        return (self.packet + self.header) / self.packet


class TcSettings(NamedTuple):
    """Settings that a Design leaves open."""

    framing: Framing = Framing()
    burst: float | None = None
    """Size of each bucket [byte]; None: two frames, or 0.1 ms of the rate."""
    limit: float | None = None
    """Limit of each link's queue, as the Design counts [byte]; None: the Design's buffer."""
    dead_band: float = 0.01
    """Agents' dead-band: smaller relative changes of a rate are skipped."""
    shaper: Shaper = "htb"
    """Shaper of links whose rate changes."""


AS_DESIGNED = TcSettings()
"""Settings of the Design alone."""


class TcExport(NamedTuple):
    """Files by name, and notes for people."""

    files: dict[str, str]
    figures: tuple[QuantizedValue, ...]
    notes: tuple[str, ...]


class TcQueue(NamedTuple):
    """Configuration of one interface."""

    lines: tuple[tuple[str, ...], ...]
    """Arguments of each line of a batch file."""
    desired: InterfaceQueue | None
    """Record to apply; None if there is none."""
    figures: tuple[QuantizedValue, ...]


def checked_framing(packet: float, header: float = ETHERNET_HEADER) -> Framing:
    """Framing with checked values: packets of 64 B to 64 KiB, headers of 0 to 65535 bytes."""
    packet = checked_number("packet_size", packet, "a packet's size from 64 B to 64 KiB", at_least=64, at_most=65536)
    header = checked_number("header", header, "0 to 65535 bytes", at_least=0.0, at_most=65535)
    return Framing(packet, header)


def default_burst(rate_bit_per_s: float, framing: Framing) -> int:
    """Two full frames, or 0.1 ms of the rate; less would wait for the kernel's timer at high rates [byte]."""
    frame = max(framing.packet + framing.header, _FULL_FRAME)  # packets longer than the bucket are dropped
    return math.ceil(max(2.0 * frame, rate_bit_per_s / BITS_PER_BYTE * _TIMER_S))


def token_bucket(
    interface: str,
    rate_bit_per_s: float,
    burst: float,
    limit: float,
    *,
    framing: Framing,
    link: str | None = None,
    shaper: Shaper = "tbf",
) -> TcQueue:
    """TBF or HTB at the root of an interface, whose rate is counted as the Design counts.

    Parameters
    ----------
    interface : str
    rate_bit_per_s : float
        Rate of packets as the Design counts them [bit/s].
    burst : float
        Size of the bucket in bytes of frames; at least one frame [byte].
    limit : float
        Limit of the queue, as the Design counts [byte].
    framing : Framing
    link : str, optional
        The link's id in the Design's network.
    shaper : {"tbf", "htb"}

    Raises
    ------
    InvalidValue
        A name that the kernel or tc rejects, or a value that the kernel can't represent closely enough.
    """
    name = checked_interface(interface)
    at = f" of {interface}" + (f" ({link})" if link is not None else "")
    rate, rate_figure = nearest(
        f"rate{at}",
        rate_bit_per_s * framing.growth,
        step=float(BITS_PER_BYTE),
        unit="bit/s",
        most=2**63 - 1,
        bound=_RATE_BOUND,
    )
    frame = math.ceil(framing.packet + framing.header)
    checked_number(
        f"burst{at}", burst, f"at least a frame of {frame} bytes: longer packets are dropped", at_least=frame
    )
    size = checked_whole(f"burst{at}", round(burst), f"at most {_MAX_SIZE} bytes", at_most=_MAX_SIZE)
    bucket = _bucket(f"burst{at}", size, rate)
    waiting, limit_figure = nearest(f"limit{at}", limit * framing.growth, step=1.0, unit="byte", bound=_BURST_BOUND)
    desired = (TokenBucket if shaper == "tbf" else HtbClass)(
        rate=float(rate * BITS_PER_BYTE), burst=size, limit=waiting
    )
    return TcQueue(
        lines=_lines(name, rate, size, waiting, shaper),
        desired=InterfaceQueue(interface=name, queue=desired, link=link),
        figures=(rate_figure, bucket, limit_figure),
    )


def _lines(name: str, rate: int, burst: int, limit: int, shaper: Shaper) -> tuple[tuple[str, ...], ...]:
    """tc commands for the queue that `netctrl.linux` makes of the record; `rate` in byte/s."""
    bits, size = f"{rate * BITS_PER_BYTE}bit", str(burst)
    root = ("qdisc", "add", "dev", name, "root", "handle", HANDLE)
    if shaper == "tbf":
        return ((*root, "tbf", "rate", bits, "burst", size, "limit", str(limit)),)
    one, rates = f"{HANDLE}1", ("rate", bits, "burst", size, "ceil", bits, "cburst", size)
    return (
        (*root, "htb", "default", "1"),
        ("class", "add", "dev", name, "parent", HANDLE, "classid", one, "htb", *rates, "quantum", str(HTB_QUANTUM)),
        ("qdisc", "add", "dev", name, "parent", one, "handle", _LEAF_HANDLE, "bfifo", "limit", str(limit)),
    )


def _bucket(what: str, size: int, rate: int) -> QuantizedValue:
    """Burst in whole ticks at `rate` byte/s, as the kernel keeps it: never more than requested."""
    tick = rate * _TICK_S
    figure = QuantizedValue(what, float(size), math.floor(size / tick + 1e-9) * tick, "byte", _BURST_BOUND)
    if abs(figure.difference) > _BURST_BOUND:
        raise InvalidValue(
            what, size, f"at least {tick / _BURST_BOUND:.6g} bytes: ticks of {tick:.6g} bytes at this rate"
        )
    return figure


def queue_below(queue: TcQueue, tokens: tuple[str, ...], figures: tuple[QuantizedValue, ...]) -> TcQueue:
    """The same with another queue in place of the TBF's FIFO, which only a batch file can express."""
    ((_, _, _, name, *_),) = queue.lines
    inside = ("qdisc", "add", "dev", name, "parent", f"{HANDLE}1", "handle", _LEAF_HANDLE, *tokens)
    return TcQueue((*queue.lines, inside), None, (*queue.figures, *figures))


def batch(lines: tuple[tuple[str, ...], ...], title: str) -> str:
    """File for `tc -batch`: one command per line, without a shell.

    `add` leaves an existing queue alone.

    Raises
    ------
    InvalidValue
        An argument that tc's parser of batch files would change.
    """
    for tokens in lines:
        for place, token in enumerate(tokens):
            known = place and tokens[place - 1] == "dev"
            if not (checked_interface(token) if known else _TOKEN.fullmatch(token)):
                raise InvalidValue("tokens", token, "letters, digits and . _ : % + / -")
    head = "".join(f"# {text}\n" for text in title.splitlines())
    return head + "".join(" ".join(tokens) + "\n" for tokens in lines)


def queue_files(name: str, queues: list[TcQueue], title: str) -> dict[str, str]:
    """Batch file, and the same as a plan."""
    desired = tuple(queue.desired for queue in queues if queue.desired is not None)
    plan = QueuePlan(name=name, interfaces=desired)
    lines = tuple(line for queue in queues for line in queue.lines)
    return {f"{name}.tc": batch(lines, title), f"{name}.plan.json": plan.to_json()}


def checked_interface(name: str) -> str:
    """Check a name by the kernel's rules (dev_valid_name: at most 15 bytes, no '/', ':', blanks) and tc's."""
    interface_name("interfaces", name)
    if set(name) & set("\"'#\\") or not name.isprintable():
        raise InvalidValue("interfaces", name, _NAME_TAKES)
    return name


class MarkingConfig(FileRecord, frozen=True, kw_only=True):
    """Marking law whose probability is set in the kernel each epoch, from its counters and one queue's backlog.

    Raises
    ------
    InvalidValue
        A value that can't be used; the message names it.
    """

    schema: Literal["netctrl.marking/1"] = "netctrl.marking/1"
    interface: str
    handle: str = HANDLE
    """Handle of the root queue whose backlog is read; another queue there is an error."""
    law: ArcLaw
    header_bytes: float = ETHERNET_HEADER
    """Bytes that the kernel counts for each packet beyond the law's packet size."""
    drop: bool = False
    """Whether packets without ECN that are drawn for marking are dropped; otherwise they pass unmarked."""
    valid_epochs: float = 10.0
    """Number of epochs for which a probability stays in force without a new one; then marking stops."""

    def __post_init__(self) -> None:
        checked_interface(self.interface)
        read_fields(self, header_bytes=number("0 to 65535 bytes", at_least=0.0, at_most=65535.0))
        read_fields(self, valid_epochs=number("a number of epochs of at least 2", at_least=2.0, at_most=1e6))
        law = self.law
        for name in ("alpha_per_packet", "epoch_s", "target_utilization", "capacity_bit_per_s", "packet_size_bytes"):
            number("a number above 0", above=0.0)(f"law.{name}", getattr(law, name))
        if law.target_queue_packets < 0.0:
            raise InvalidValue("law.target_queue_packets", law.target_queue_packets, "at least 0")


def read_marking_config(path: str | os.PathLike[str]) -> MarkingConfig:
    """Read such a file strictly; raises FileError as `netctrl.model.io.record_file.read_record`."""
    return read_record(path, MarkingConfig, schema="netctrl.marking/1", what="file for marking", max_bytes=_MAX_BYTES)
