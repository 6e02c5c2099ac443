"""Marking by chance in the kernel: an eBPF classifier in front of the queue, whose probability the agent sets.

For routers whose kernel has neither `pie` nor `dualpi2`, and for laws that these can't carry, as ARC's with an empty
queue. The program draws for each packet, sets Congestion Experienced on packets whose senders understand it, and lets
the others pass or, where asked, drops them; IPv4 and IPv6. What it can't do: it sees packets before they wait, so it
knows no sojourn time, and the law above it reads the queue once an epoch.

A packet here is what the kernel hands to the interface. With segmentation offload that may be up to 64 KiB, to be cut
into segments afterwards: such a packet is marked whole, with the chance that one of its segments would be.
"""

from __future__ import annotations

import errno
import struct
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Literal, NamedTuple, Self

from netctrl.errors import checked_number
from netctrl.linux.kernel.bpf import (
    ArrayMap,
    BpfError,
    BpfFile,
    Helper,
    Instruction,
    Program,
    R,
    add_atomic,
    add_to,
    assemble,
    attach_egress,
    call,
    jump,
    label,
    leave,
    load,
    load_map,
    move,
    store,
)
from netctrl.linux.kernel.clsact import EgressFilter
from netctrl.model.io.fields import one_of

__all__ = ["AttachedBy", "MarkCounts", "Marker", "marking_program"]

AttachedBy = Literal["auto", "link", "clsact"]

_SETTINGS = struct.Struct("=QQQ")  # of 2^32 draws how many mark; until when [ns of CLOCK_MONOTONIC]; whether to drop
_THRESHOLD, _DEADLINE, _DROP = 0, 8, 16
_COUNTERS = struct.Struct("=7Q")
_PACKETS, _BYTES, _MARKED, _DROPPED, _SPARED, _AGGREGATES, _SEGMENTS = range(0, 56, 8)
_DRAWS = 1 << 32
_MAX_SEGMENTS = 64
_FOREVER = 2**64 - 1
_NANO = 1_000_000_000

_SKB_WIRE_LENGTH, _SKB_GSO_SEGMENTS = 160, 164  # struct __sk_buff; the length is of all segments with headers
_NEXT, _SHOT = -1, 2  # TC_ACT_UNSPEC, which is TCX_NEXT too: go on; TC_ACT_SHOT: drop


class MarkCounts(NamedTuple):
    """Since the marker was made."""

    packets: int
    bytes: int
    """With the link layer's header, as a queue behind counts them."""
    marked: int
    """Or marked already when they came."""
    dropped: int
    spared: int
    """Drawn, but without ECN, and let pass."""
    aggregates: int
    """Packets that are to be cut into several."""
    segments: int
    """Packets after that."""


def marking_program(settings: ArrayMap, counters: ArrayMap) -> list[Instruction]:
    """The classifier's instructions; R6 is the packet, R7 the settings, R8 the counters, R9 draws that are left."""
    return [
        move(R.R6, R.R1),
        store(R.R10, -4, 0, 4),
        *_value_of(counters, R.R8),
        *_value_of(settings, R.R7),
        move(R.R1, 1),
        add_atomic(R.R8, _PACKETS, R.R1),
        load(R.R1, R.R6, _SKB_WIRE_LENGTH, 4),
        add_atomic(R.R8, _BYTES, R.R1),
        # One draw for each segment, of which there is at least one.
        load(R.R9, R.R6, _SKB_GSO_SEGMENTS, 4),
        jump("counted", R.R9, ">", 1),
        move(R.R9, 1),
        label("counted"),
        add_atomic(R.R8, _SEGMENTS, R.R9),
        jump("single", R.R9, "==", 1),
        move(R.R1, 1),
        add_atomic(R.R8, _AGGREGATES, R.R1),
        label("single"),
        jump("bounded", R.R9, "<=", _MAX_SEGMENTS),
        move(R.R9, _MAX_SEGMENTS),
        label("bounded"),
        # A law that has stopped must not mark for ever.
        call(Helper.KTIME_NS),
        load(R.R1, R.R7, _DEADLINE, 8),
        jump("pass", R.R0, ">", R.R1),
        label("draw"),
        call(Helper.RANDOM_U32),
        load(R.R1, R.R7, _THRESHOLD, 8),
        jump("chosen", R.R0, "<", R.R1),
        add_to(R.R9, -1),
        jump("draw", R.R9, "!=", 0),
        jump("pass"),
        label("chosen"),
        move(R.R1, R.R6),
        call(Helper.ECN_SET_CE),
        jump("unmarkable", R.R0, "!=", 1),
        move(R.R1, 1),
        add_atomic(R.R8, _MARKED, R.R1),
        jump("pass"),
        label("unmarkable"),
        load(R.R1, R.R7, _DROP, 8),
        jump("drop", R.R1, "!=", 0),
        move(R.R1, 1),
        add_atomic(R.R8, _SPARED, R.R1),
        label("pass"),
        move(R.R0, _NEXT),
        leave(),
        label("drop"),
        move(R.R1, 1),
        add_atomic(R.R8, _DROPPED, R.R1),
        move(R.R0, _SHOT),
        leave(),
    ]


def _value_of(map_: ArrayMap, register: R) -> list[Instruction]:
    """Entry 0 of a map; the verifier wants to see the answer checked."""
    return [
        load_map(R.R1, map_),
        move(R.R2, R.R10),
        add_to(R.R2, -4),
        call(Helper.MAP_LOOKUP),
        jump("pass", R.R0, "==", 0),
        move(register, R.R0),
    ]


def _attached(program: Program, interface: int, by: AttachedBy) -> BpfFile | EgressFilter:
    one_of("auto", "link", "clsact")("by", by)
    if by != "clsact":
        try:
            return attach_egress(program, interface)
        except BpfError as error:
            if by == "link" or error.code != errno.EINVAL:  # what kernels before 6.6 say
                raise
    return EgressFilter(program, interface)


class Marker:
    """A classifier at work on what leaves an interface; it goes with the `with` block, or with the process.

    Parameters
    ----------
    interface : int
        Its index in this process's network namespace.
    drop : bool
        Whether drawn packets without ECN are dropped; else they pass.
    valid_s : float, optional
        How long a probability is in force after `set_probability` [s]: then nothing is marked, so that a law which
        hangs leaves a link that works. None: for as long as the marker lives.

    by : {"auto", "link", "clsact"}
        How it hangs there: a link goes with the process, whatever ends it, and takes Linux 6.6; clsact takes any.

    Raises
    ------
    BpfError, KernelRefusal
        The kernel refuses: too old, or without the capabilities that the message names.
    """

    def __init__(
        self, interface: int, *, drop: bool = False, valid_s: float | None = None, by: AttachedBy = "auto"
    ) -> None:
        if valid_s is not None:
            checked_number("valid_s", valid_s, "a time above 0 in seconds", above=0.0)
        self._drop, self._valid_s = drop, valid_s
        with ExitStack() as held:  # let go in reverse order, and all of it where something fails
            self._settings = held.enter_context(ArrayMap(_SETTINGS.size, name="netctrl_set"))
            self._counters = held.enter_context(ArrayMap(_COUNTERS.size, name="netctrl_count"))
            self.set_probability(0.0)
            text = assemble(marking_program(self._settings, self._counters))
            program = held.enter_context(Program(text, "netctrl_mark"))
            held.enter_context(_attached(program, interface, by))
            self._held = held.pop_all()

    def set_probability(self, probability: float) -> float:
        """Mark with this probability from the next packet on; returns it as it is carried, a multiple of 2⁻³²."""
        checked_number("probability", probability, "a probability from 0 to 1", at_least=0.0, at_most=1.0)
        threshold = round(probability * _DRAWS)
        until = _FOREVER if self._valid_s is None else time.monotonic_ns() + int(self._valid_s * _NANO)
        self._settings.update(_SETTINGS.pack(threshold, until, self._drop))
        return threshold / _DRAWS

    def counts(self) -> MarkCounts:
        """What has passed since the marker was made."""
        return MarkCounts(*_COUNTERS.unpack(self._counters.lookup()))

    def close(self) -> None:
        """Take the classifier away; more than once does no harm."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
