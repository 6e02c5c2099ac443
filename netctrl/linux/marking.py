"""Random marking in the kernel: an eBPF classifier in front of the queue, with a probability set by the agent.

It is for routers whose kernel has neither `pie` nor `dualpi2`, and for laws that these can't implement, such as ARC
with an empty queue. The program draws a random number for each packet and sets Congestion Experienced on packets with
ECN. Other drawn packets pass or, by an option, are dropped. It handles IPv4 and IPv6. It sees packets before they wait,
so it doesn't know sojourn times, and the law reads the queue once per epoch.

A packet is here what the kernel passes to the interface. With segmentation offload it may have up to 64 KiB and be cut
into segments afterwards: such a packet is marked as a whole, with the probability that one of its segments would be.

The daemon reads the counters of marker and queue each epoch and sets the marker's probability.
"""

from __future__ import annotations

import errno
import struct
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Literal, NamedTuple, Self

from netctrl.core.errors import InvalidValue, NetctrlError, checked_number
from netctrl.laws.aqm.arc import arc_probability
from netctrl.linux.export.shaper import MarkingConfig
from netctrl.linux.kernel import bpf
from netctrl.linux.kernel.messages import EGRESS, ROOT, classify_departures, handle_text, stop_classifying
from netctrl.linux.kernel.netlink import KernelRefusal, RouteSocket
from netctrl.model.io.fields import one_of

_HANDLE, _PRIORITY = 1, 0x7C01  # netctrl's own
AttachedBy = Literal["auto", "link", "clsact"]
_SETTINGS = struct.Struct("=QQQ")  # marks per 2^32 draws; end of validity [ns of CLOCK_MONOTONIC]; whether to drop
_THRESHOLD, _DEADLINE, _DROP = 0, 8, 16
_COUNTERS = struct.Struct("=7Q")
_PACKETS, _BYTES, _MARKED, _DROPPED, _SPARED, _AGGREGATES, _SEGMENTS = range(0, 56, 8)
_DRAWS = 1 << 32
_MAX_SEGMENTS = 64
_FOREVER = 2**64 - 1
_NANO = 1_000_000_000
_SKB_WIRE_LENGTH, _SKB_GSO_SEGMENTS = 160, 164  # struct __sk_buff; the length is of all segments with headers
_NEXT, _SHOT = -1, 2  # TC_ACT_UNSPEC, which is TCX_NEXT too: go on; TC_ACT_SHOT: drop


class EgressFilter:
    """Direct-action filter of clsact on an interface, until `close`, for kernels before 6.6.

    clsact is removed with it if created with it and otherwise unused. Unlike a link (`bpf.attach_egress`) it stays when
    its process dies. As a marker's probability is in force for a limited time only, a remaining filter marks nothing;
    the next one replaces it.

    Raises
    ------
    KernelRefusal
        No clsact or cls_bpf in this kernel, no privilege, or another queue in clsact's place.
    """

    def __init__(self, program: bpf.Program, interface: int) -> None:
        self._interface, self._made = interface, False
        make, put = classify_departures(interface, program.fd, _HANDLE, _PRIORITY)
        self._remove, self._unmake = stop_classifying(interface, _HANDLE, _PRIORITY)
        with RouteSocket() as route:
            if not any(each.kind == "clsact" for each in route.qdiscs(interface)):
                route.request(f"put clsact on interface {interface}", make)
                self._made = True
            try:
                route.request(f"put a bpf filter on what leaves interface {interface}", put)
            except KernelRefusal:
                self._remove_clsact(route)
                raise
        self._open = True

    def _remove_clsact(self, route: RouteSocket) -> None:
        if self._made and not any(route.filters(self._interface, way) for way in (EGRESS, EGRESS - 1)):
            route.request(f"remove clsact of interface {self._interface}", self._unmake)
            self._made = False

    def close(self) -> None:
        """Remove the filter; an interface that is gone has removed it already. Repeated calls do nothing."""
        if not self._open:
            return
        self._open = False
        with RouteSocket() as route:
            try:
                route.request(f"remove the bpf filter of interface {self._interface}", self._remove)
                self._remove_clsact(route)
            except KernelRefusal as refusal:
                if refusal.number not in (errno.ENODEV, errno.ENOENT, errno.EINVAL):
                    raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MarkCounts(NamedTuple):
    """Counts since the marker's creation."""

    packets: int
    bytes: int
    """Bytes with the link layer's header, as a queue behind counts them."""
    marked: int
    """Packets marked, or already marked on arrival."""
    dropped: int
    spared: int
    """Packets drawn for marking that passed without ECN."""
    aggregates: int
    """Packets to be cut into segments."""
    segments: int
    """Packets after segmentation."""


def marking_program(settings: bpf.BpfFile, counters: bpf.BpfFile) -> list[bpf.Instruction]:
    """Instructions of the classifier; R6 is the packet, R7 the settings, R8 the counters, R9 the remaining draws."""
    return [
        bpf.move(bpf.R.R6, bpf.R.R1),
        bpf.store(bpf.R.R10, -4, 0, 4),
        *_value_of(counters, bpf.R.R8),
        *_value_of(settings, bpf.R.R7),
        bpf.move(bpf.R.R1, 1),
        bpf.add_atomic(bpf.R.R8, _PACKETS, bpf.R.R1),
        bpf.load(bpf.R.R1, bpf.R.R6, _SKB_WIRE_LENGTH, 4),
        bpf.add_atomic(bpf.R.R8, _BYTES, bpf.R.R1),
        # One draw per segment, at least one.
        bpf.load(bpf.R.R9, bpf.R.R6, _SKB_GSO_SEGMENTS, 4),
        bpf.jump("counted", bpf.R.R9, ">", 1),
        bpf.move(bpf.R.R9, 1),
        bpf.label("counted"),
        bpf.add_atomic(bpf.R.R8, _SEGMENTS, bpf.R.R9),
        bpf.jump("single", bpf.R.R9, "==", 1),
        bpf.move(bpf.R.R1, 1),
        bpf.add_atomic(bpf.R.R8, _AGGREGATES, bpf.R.R1),
        bpf.label("single"),
        bpf.jump("bounded", bpf.R.R9, "<=", _MAX_SEGMENTS),
        bpf.move(bpf.R.R9, _MAX_SEGMENTS),
        bpf.label("bounded"),
        # Marks end some time after the law has stopped.
        bpf.call(bpf.Helper.KTIME_NS),
        bpf.load(bpf.R.R1, bpf.R.R7, _DEADLINE, 8),
        bpf.jump("pass", bpf.R.R0, ">", bpf.R.R1),
        bpf.label("draw"),
        bpf.call(bpf.Helper.RANDOM_U32),
        bpf.load(bpf.R.R1, bpf.R.R7, _THRESHOLD, 8),
        bpf.jump("chosen", bpf.R.R0, "<", bpf.R.R1),
        bpf.add_to(bpf.R.R9, -1),
        bpf.jump("draw", bpf.R.R9, ">", 0),  # before Linux 6.8 the verifier learns no bound from "!="
        bpf.jump("pass"),
        bpf.label("chosen"),
        bpf.move(bpf.R.R1, bpf.R.R6),
        bpf.call(bpf.Helper.ECN_SET_CE),
        bpf.jump("unmarkable", bpf.R.R0, "!=", 1),
        bpf.move(bpf.R.R1, 1),
        bpf.add_atomic(bpf.R.R8, _MARKED, bpf.R.R1),
        bpf.jump("pass"),
        bpf.label("unmarkable"),
        bpf.load(bpf.R.R1, bpf.R.R7, _DROP, 8),
        bpf.jump("drop", bpf.R.R1, "!=", 0),
        bpf.move(bpf.R.R1, 1),
        bpf.add_atomic(bpf.R.R8, _SPARED, bpf.R.R1),
        bpf.label("pass"),
        bpf.move(bpf.R.R0, _NEXT),
        bpf.leave(),
        bpf.label("drop"),
        bpf.move(bpf.R.R1, 1),
        bpf.add_atomic(bpf.R.R8, _DROPPED, bpf.R.R1),
        bpf.move(bpf.R.R0, _SHOT),
        bpf.leave(),
    ]


def _value_of(map_: bpf.BpfFile, register: bpf.R) -> list[bpf.Instruction]:
    """Entry 0 of a map; the verifier requires a check of the result."""
    return [
        bpf.load_map(bpf.R.R1, map_),
        bpf.move(bpf.R.R2, bpf.R.R10),
        bpf.add_to(bpf.R.R2, -4),
        bpf.call(bpf.Helper.MAP_LOOKUP),
        bpf.jump("pass", bpf.R.R0, "==", 0),
        bpf.move(register, bpf.R.R0),
    ]


def _attach(program: bpf.Program, interface: int, by: AttachedBy) -> bpf.BpfFile | EgressFilter:
    if by != "clsact":
        try:
            return bpf.attach_egress(program, interface)
        except bpf.BpfError as error:
            if by == "link" or error.code != errno.EINVAL:  # error of kernels before 6.6
                raise
    return EgressFilter(program, interface)


class Marker:
    """Active classifier on an interface's egress; it ends with the `with` block, or with the process.

    Parameters
    ----------
    interface : int
        The interface's index in this process's network namespace.
    drop : bool
        Whether drawn packets without ECN are dropped; otherwise they pass.
    valid_s : float, optional
        Time for which a probability is in force after `set_probability` [s]; then marking stops, so that a hanging law
        leaves a working link. None: no limit.

    by : {"auto", "link", "clsact"}
        Kind of attachment: a link ends with the process in any case and needs Linux 6.6; clsact works on any kernel.

    Raises
    ------
    BpfError, KernelRefusal
        The kernel refuses: it is too old, or the process lacks the capabilities that the message names.
    """

    def __init__(
        self, interface: int, *, drop: bool = False, valid_s: float | None = None, by: AttachedBy = "auto"
    ) -> None:
        if valid_s is not None:
            checked_number("valid_s", valid_s, "a time above 0 in seconds", above=0.0)
        one_of("auto", "link", "clsact")("by", by)
        self._drop, self._valid_s = drop, valid_s
        with ExitStack() as held:  # closed in reverse order, also after a failure
            self._settings = held.enter_context(bpf.ArrayMap(_SETTINGS.size, name="netctrl_set"))
            self._counters = held.enter_context(bpf.ArrayMap(_COUNTERS.size, name="netctrl_count"))
            self.set_probability(0.0)
            text = bpf.assemble(marking_program(self._settings, self._counters))
            program = held.enter_context(bpf.Program(text, "netctrl_mark"))
            held.enter_context(_attach(program, interface, by))
            self._held = held.pop_all()

    def set_probability(self, probability: float) -> float:
        """Mark with this probability from the next packet on; returns the probability in effect, a multiple of 2⁻³²."""
        checked_number("probability", probability, "a probability from 0 to 1", at_least=0.0, at_most=1.0)
        threshold = round(probability * _DRAWS)
        until = _FOREVER if self._valid_s is None else time.monotonic_ns() + int(self._valid_s * _NANO)
        self._settings.update(_SETTINGS.pack(threshold, until, self._drop))
        return threshold / _DRAWS

    def counts(self) -> MarkCounts:
        """Counts since the marker's creation."""
        return MarkCounts(*_COUNTERS.unpack(self._counters.lookup()))

    def close(self) -> None:
        """Remove the classifier; repeated calls do nothing."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MarkSample(NamedTuple):
    """Results of one epoch."""

    time_s: float
    """Time of its end since the start [s]."""
    elapsed_s: float
    """Length [s]."""
    arrived_bytes: int
    """Arrivals during the epoch, in front of the queue [byte of frames]."""
    backlog_bytes: int
    """Backlog at its end [byte of frames]."""
    probability: float
    """Probability set at its end."""
    counts: MarkCounts
    """Counts since the start."""
    late: int
    """Number of epochs since the start that ended more than a tenth of their length late."""


def mark(
    config: MarkingConfig,
    *,
    wait: Callable[[float], object] = time.sleep,
    duration_s: float | None = None,
    heard: Callable[[MarkSample], None] | None = None,
) -> MarkSample | None:
    """Run until `wait` returns True or the duration is over, then remove the marker. Returns the last epoch.

    Epochs follow the monotonic clock and are never made up for: the law is given the actual length of a late one.

    Parameters
    ----------
    config : MarkingConfig
    wait : callable
        Waits for a number of seconds; True ends the run.
    duration_s : float, optional
        Duration [s]; None: until `wait` ends the run.
    heard : callable, optional
        Called with each epoch.

    Raises
    ------
    InvalidValue
        No such interface, or a root queue other than the configured one.
    NetctrlError
        The kernel refuses.
    """
    law, sample = config.law, None
    with ExitStack() as held:
        route = held.enter_context(RouteSocket())
        links = {link.name: link.index for link in route.links()}
        if config.interface not in links:
            raise InvalidValue("interface", config.interface, f"one of the interfaces {', '.join(sorted(links))}")
        index = links[config.interface]
        _backlog(route, index, config)
        marker = held.enter_context(Marker(index, drop=config.drop, valid_s=config.valid_epochs * law.epoch_s))
        begin = before = due = time.monotonic()
        late, probability, seen = 0, 0.0, marker.counts().bytes
        while duration_s is None or before - begin < duration_s:
            due = max(due + law.epoch_s, before)
            if wait(max(0.0, due - time.monotonic())) is True:
                break
            waiting = _backlog(route, index, config)
            counts, now = marker.counts(), time.monotonic()
            late += now - due > 0.1 * law.epoch_s
            elapsed, arrived = now - before, counts.bytes - seen
            desired = arc_probability(law, probability, arrived, waiting, elapsed, config.header_bytes)
            probability = marker.set_probability(desired)
            sample = MarkSample(now - begin, elapsed, arrived, waiting, probability, counts, late)
            before, seen = now, counts.bytes
            if heard is not None:
                heard(sample)
    return sample


def _backlog(route: RouteSocket, index: int, config: MarkingConfig) -> int:
    """Backlog of the configured queue; another queue in its place is not read."""
    found = next((each for each in route.qdiscs(index) if each.parent == ROOT), None)
    if found is None or handle_text(found.handle) != config.handle:
        there = "none" if found is None else found.name
        raise NetctrlError(
            f"interface {config.interface} has {there} at its root instead of the queue {config.handle}: "
            "`python -m netctrl linux apply` creates it"
        )
    return found.counters.backlog_bytes
