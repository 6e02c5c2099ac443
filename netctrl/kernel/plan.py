"""Plan of a run inside a kernel, as the bytes that `guest/guest.c` reads, and the results that it writes.

Both are sequences of records: kind, length of the payload (a multiple of eight for a plan), payload; native byte order,
since the kernel runs on the machine that wrote the plan. Times are from the beginning of the run.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from ipaddress import IPv4Address
from typing import NamedTuple

import numpy as np

from netctrl.core.errors import NetctrlError

FIRST_NAMESPACE = 1000
"""Descriptor of namespace 0 in the guest, as in guest.c; the others follow."""

LINE = 3
"""Descriptor of a prepared program's line to the first process, as in guest.c."""

_HEAD = struct.Struct("=II")
_NS = 1e9
_CONGESTION = 16

ARRIVAL = np.dtype([("stream", "u4"), ("number", "u4"), ("bytes", "u4"), ("spare", "u4"), ("at_ns", "u8")])
"""UDP packet at its sink, with the payload's size; `at_ns` from the kernel's stamp."""
TRANSFER = np.dtype(
    [
        ("at_ns", "u8"),
        ("flow", "u4"),
        ("rtt_us", "u4"),
        ("min_rtt_us", "u4"),
        ("window", "u4"),
        ("acked", "u8"),
        ("sent", "u8"),
        ("resent", "u8"),
    ]
)
"""Reading of a TCP flow: smoothed and least round-trip time, window [packet], bytes acknowledged, sent in all, and sent
again."""

OBJECT = np.dtype([("asked_ns", "u8"), ("at_ns", "u8"), ("bytes", "u8"), ("group", "u4"), ("spare", "u4")])
"""Object whose last byte came at this time."""


class _Kind(IntEnum):
    NAMESPACE = 1
    SYSCTL = 2
    NETLINK = 3
    CHANGE = 4
    WATCH = 5
    TCP_SINK = 6
    TCP_FLOW = 7
    UDP_SINK = 8
    UDP_FLOW = 9
    PROGRAM = 10
    RUN = 11
    WEB = 12
    CAPTURE = 13
    GATE = 14


class Answer(IntEnum):
    """Kinds of results."""

    READING = 1
    TRANSFER = 2
    ARRIVALS = 3
    OBJECT = 4
    ENDED = 5
    FAILED = 6
    STATUS = 7
    SAID = 8


class _Way(IntEnum):
    """Way in which a program runs."""

    BESIDE = 0
    ALONE = 1
    PREPARED = 2


class Query(NamedTuple):
    """A queue whose counters are read at each sample."""

    namespace: int
    index: int
    parent: int


class TcpFlow(NamedTuple):
    """Where connections go, and when."""

    namespace: int
    group: int
    source: IPv4Address
    target: IPv4Address
    port: int
    segment: int
    """Largest segment [byte]."""
    congestion: str
    start_s: float
    stop_s: float
    asked_s: float
    """When what it sends was asked for: before the start, by the delay of the sender's access line [s]."""
    pace: int = 0
    """Greatest rate of its payload [byte/s]; 0: any."""
    every_s: float = 0.0
    """Time from one write to the next [s]; 0: all is written at once."""
    mark: int = 0
    """Mark of its socket (SO_MARK), by which a program finds it; 0: none."""


class Program(NamedTuple):
    """A program of the host, as it is started inside."""

    words: tuple[str, ...]
    """The program's path, and its arguments."""
    folder: str
    """Its working folder."""
    settings: Mapping[str, str]
    """Its environment variables."""


class PlanWriter:
    """Records of a plan, in the order in which the guest carries them out."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._notes: dict[int, str] = {}
        self._namespaces = self._prepared = 0

    def content(self) -> bytes:
        """The plan."""
        return b"".join(self._parts)

    def note(self, number: int) -> str:
        """What the request with this number does; "" for an unknown one."""
        return self._notes.get(number, "")

    def namespace(self) -> int:
        """Make a network namespace; returns its number."""
        self._add(_Kind.NAMESPACE, b"")
        self._namespaces += 1
        return self._namespaces - 1

    def sysctl(self, namespace: int, name: str, value: str, folder: str = "/proc/sys") -> None:
        """Write a file of /proc/sys, or of another folder."""
        self._add(_Kind.SYSCTL, struct.pack("=I", namespace) + f"{folder}/{name}\0{value}\0".encode())

    def request(self, namespace: int, message: bytes, note: str) -> None:
        """Send a message of `netctrl.linux.kernel.messages`; a refusal ends the run, with the note."""
        self._notes[len(self._parts)] = note
        self._add(_Kind.NETLINK, struct.pack("=I", namespace) + message)

    def change(self, at_s: float, namespace: int, message: bytes, note: str) -> None:
        """Send a message at a given time."""
        self._notes[len(self._parts)] = note
        self._add(_Kind.CHANGE, struct.pack("=QI", _ns(at_s), namespace) + message)

    def watch(self, interval_s: float, samples: int, queries: Sequence[Query]) -> None:
        """Read these queues' counters, and those of all TCP flows, at each end of an interval."""
        body = struct.pack("=QII", _ns(interval_s), samples, len(queries))
        self._add(_Kind.WATCH, body + b"".join(struct.pack("=III", *each) for each in queries))

    def gate(self, at: tuple[int, int], limit: int, header: int, most: int, rows: np.ndarray) -> None:
        """Let an interface, whose queue is in a `tbf`, send so many bytes at given times; one that waits keeps them.

        Parameters
        ----------
        at : tuple of int
            Namespace, and index of the interface.
        limit : int
            Of a FIFO in the `tbf`, each change of which sets it.
        header, most : int
            What is added to each packet, and the size of the longest one [byte].
        rows : array, (N, 2)
            Times [ns], and what may be sent then [byte].
        """
        head = struct.pack("=IIIIII", *at, limit, header, most, len(rows))
        self._add(_Kind.GATE, head + rows.astype("=u8").tobytes())

    def tcp_sink(self, namespace: int, port: int, congestion: str, window: int = 0) -> None:
        """Take TCP connections, and discard their data; a congestion control such as dctcp is one of both ends.

        `window` is what receivers take beyond what came in order [byte]; 0: any.
        """
        self._add(_Kind.TCP_SINK, struct.pack("=IIII", namespace, port, window, 0) + _name(congestion))

    def tcp_flow(self, flow: TcpFlow, size_bytes: int = 0) -> None:
        """Send these bytes over one connection, at each write if it has several; 0: until its end."""
        self._add(_Kind.TCP_FLOW, _flow(flow, size_bytes))

    def web(self, flow: TcpFlow, pause_s: np.ndarray, size_bytes: np.ndarray) -> None:
        """Load pages, of which each has a pause before it, (n,), and objects, (n, k), each by a connection."""
        pages, objects = size_bytes.shape
        draws = np.column_stack([np.rint(pause_s * _NS), size_bytes]).astype("=u8")
        self._add(_Kind.WEB, _flow(flow, 0) + struct.pack("=II", pages, objects) + draws.tobytes())

    def udp_sink(self, namespace: int, port: int) -> None:
        """Take UDP packets, and keep when each came."""
        self._add(_Kind.UDP_SINK, struct.pack("=II", namespace, port))

    def udp_flow(
        self, namespace: int, stream: int, to: IPv4Address, port: int, payload: int, times_s: np.ndarray
    ) -> None:
        """Send a packet at each of the times, in ascending order; the interface's queue must be `fq`."""
        there = int.from_bytes(to.packed, "little")
        head = struct.pack("=IIIIII", namespace, stream, there, port, payload, len(times_s))
        self._add(_Kind.UDP_FLOW, head + np.rint(np.asarray(times_s) * _NS).astype("=u8").tobytes())

    def program(self, at_s: float, namespace: int, program: Program, *, alone: bool = False) -> None:
        """Start a program of the host's files; `alone`: the run ends with it, else one that fails ends the run."""
        self._program(at_s, namespace, program, _Way.ALONE if alone else _Way.BESIDE)

    def prepared(self, namespace: int, program: Program) -> int:
        """Have a program ready before time 0; returns its number, by which `Answer.SAID` names it.

        It has a line to the first process, descriptor `LINE`. It writes a byte there when it is ready, and reads when
        time 0 is [ns of CLOCK_MONOTONIC, 8 bytes]; all that it writes from then on is a result. It must end by itself,
        before the run does.
        """
        self._program(0.0, namespace, program, _Way.PREPARED)
        self._prepared += 1
        return self._prepared - 1

    def _program(self, at_s: float, namespace: int, program: Program, way: _Way) -> None:
        settings = [f"{name}={value}" for name, value in program.settings.items()]
        texts = [program.folder, *program.words, *settings]
        head = struct.pack("=QIIII", _ns(at_s), namespace, way, len(program.words), len(settings))
        self._add(_Kind.PROGRAM, head + b"".join(os.fsencode(text) + b"\0" for text in texts))

    def capture(self, namespace: int, index: int, file: str, most_bytes: int) -> None:
        """Write what an interface transmits to a pcap file in the folder of results: the beginnings of packets, and
        when each begins, to at most so many bytes."""
        body = struct.pack("=QII", most_bytes, namespace, index)
        self._add(_Kind.CAPTURE, body + f"{file}\0".encode())

    def run(self, duration_s: float, grace_s: float) -> None:
        """End the machine after this time; transfers and arrivals may go on for the grace."""
        self._add(_Kind.RUN, struct.pack("=QQ", _ns(duration_s), _ns(grace_s)))

    def _add(self, kind: _Kind, body: bytes) -> None:
        body += bytes(-len(body) % 8)
        self._parts.append(_HEAD.pack(kind, len(body)) + body)


def _flow(flow: TcpFlow, size_bytes: int) -> bytes:
    begin, end, asked, every = map(_ns, (flow.start_s, flow.stop_s, flow.asked_s, flow.every_s))
    head = struct.pack("=QQQQQQ", begin, end, size_bytes, asked, every, flow.pace)
    here, there = (int.from_bytes(each.packed, "little") for each in (flow.source, flow.target))
    body = struct.pack("=IIIIIIII", flow.namespace, flow.group, there, here, flow.port, flow.segment, flow.mark, 0)
    return head + body + _name(flow.congestion)


def _name(congestion: str) -> bytes:
    return congestion.encode().ljust(_CONGESTION, b"\0")


def _ns(seconds: float) -> int:
    return min(round(seconds * _NS), 2**63 - 1)


def read_results(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and payload of each complete record.

    Raises
    ------
    NetctrlError
        The last record is incomplete: the kernel ended while it wrote.
    """
    at = 0
    while at < len(content):
        if at + _HEAD.size > len(content):
            raise NetctrlError("the kernel's results end within a record")
        kind, length = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        if at + length > len(content):
            raise NetctrlError("the kernel's results end within a record")
        yield kind, content[at : at + length]
        at += length
