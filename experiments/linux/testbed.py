"""Test bench for agents and senders: a network as a namespace per node, a veth with tbf per link, and static routes.

All of it is in namespaces of its own, held by descriptors, so it is gone however its owner ends. It runs in this
machine's kernel in real time, as root, or in the kernel in virtual time (`linux.virtual`).
"""

import multiprocessing
import os
import re
import signal
import socket
import subprocess
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from heapq import heappop, heappush
from ipaddress import IPv4Address
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

from linux.delay_line import Line, open_tun, pump
from linux.traffic import FRAME

from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.core.units import BITS_PER_BYTE
from netctrl.linux import namespace
from netctrl.linux.kernel import messages
from netctrl.linux.kernel.messages import ROOT
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.kernel.qdisc import TbfOptions
from netctrl.linux.processes import end_program, forking, start_program
from netctrl.model.network import Link, Network

UNLIMITED = 2**30
"""Buffer for null [byte]: larger than any run's backlog."""
_BURST_S = 0.5e-3
_NAME_LENGTH = 15
_HANDLE = 0x10000  # 1:
_FIRST_INDEX = 10_000  # of interfaces, above those that the kernel numbers
_LOOPBACK = 1
_LONG_QUEUE = 10_000  # queue of a TUN device, in packets: the delay line reads at once, and loses none
_PATIENCE_S = 2.0  # from SIGTERM to SIGKILL
_FORK = multiprocessing.get_context("fork")
_SYSCTLS = {
    "ipv4/conf/*/forwarding": 1,
    "ipv4/conf/*/rp_filter": 0,  # a delay line's packets change device
    "ipv4/conf/*/send_redirects": 0,
    "ipv4/tcp_no_metrics_save": 1,  # flows don't use metrics of earlier ones
    "ipv6/conf/*/disable_ipv6": 1,  # no IPv6 control traffic on measured links
}


class Wire(NamedTuple):
    """One link in the testbed: a veth whose egress at `link.source` is shaped by tbf."""

    link: Link
    interface: str
    """Interface at `link.source`, whose root qdisc is the link's tbf."""
    peer: str
    """Interface at `link.target`, where the link's packets arrive."""
    index: int
    """Number of `interface` in its namespace."""
    address: str
    """Of `interface`."""
    next_hop: str
    """Of `peer`."""
    burst_bytes: int
    limit_bytes: int


class Job:
    """Function running in a child in the caller's namespace, a fork, which is killed when the calling thread ends.

    Arguments need not be picklable, but the result must be.
    """

    def __init__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self._answer, answer = _FORK.Pipe(duplex=False)
        work = (os.getpid(), answer, function, args, kwargs)
        self._process = _FORK.Process(target=_work, args=work, daemon=True)
        forking(self._process.start)
        answer.close()
        self.pid = self._process.pid or 0
        self._found: tuple[bool, Any] | None = None

    def result(self, timeout_s: float | None = None) -> Any:
        """Wait for the function's result; its exception is raised here, with the child's traceback as a note.

        A TimeoutError says that it isn't done within `timeout_s`, a NetctrlError that it ended without a result.
        """
        if self._found is None:
            if not self._answer.poll(timeout_s):
                raise TimeoutError(f"process {self.pid} isn't done after {timeout_s:g} s")
            try:
                self._found = self._answer.recv()
            except EOFError:
                self._process.join(_PATIENCE_S)
                why = f"process {self.pid} ended with status {self._process.exitcode} without a result"
                self._found = False, NetctrlError(why)
            self._process.join(_PATIENCE_S)
        good, value = self._found
        if not good:
            raise value
        return value

    def stop(self) -> None:
        """End it by SIGTERM, then by SIGKILL."""
        for end in (self._process.terminate, self._process.kill):
            if self._process.is_alive():
                end()
                self._process.join(_PATIENCE_S)


def _work(parent: int, answer: Any, function: Callable, args: tuple, kwargs: dict) -> None:
    """Body of the child."""
    namespace.bind_to_parent(parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its children
    try:
        found = True, function(*args, **kwargs)
    except Exception as error:
        error.add_note(traceback.format_exc())
        found = False, error
    with suppress(BrokenPipeError, ConnectionError):  # the parent is gone
        answer.send(found)


class Testbed:
    """A network, created on entering the context and removed on leaving it.

    Parameters
    ----------
    network : Network
        Each node is a namespace, each link a veth direction with tbf (its capacity counts Ethernet frames, its buffer
        is tbf's limit). A link and its first reverse link share a veth. A delay is added at the link's end, by a delay
        line in user space: not each kernel has netem.
    burst_bytes : mapping of link id to int, optional
        Burst of tbf; by default two frames and half a millisecond of the rate: a late timer loses no capacity, and
        bursts stay short.
    bunch_s : mapping of link id to float, optional
        Packets of such a link, which needs a delay, arrive together at multiples of this [s], as from a medium with
        turns: they are late by up to this time beyond the delay.
    segment : bool
        Whether TCP passes packets one by one; otherwise the kernel passes up to 64 KiB at once.
    """

    __test__ = False  # not a test class

    def __init__(
        self,
        network: Network,
        *,
        burst_bytes: Mapping[str, int] | None = None,
        bunch_s: Mapping[str, float] | None = None,
        segment: bool = False,
    ) -> None:
        self.network, self._bursts, self._bunches = network, dict(burst_bytes or {}), dict(bunch_s or {})
        self._segments = 1 if segment else None
        self._addresses = {node.id: f"10.0.{number}.1" for number, node in enumerate(network.nodes, start=1)}
        self._pairs = tuple(_pairs(network))
        self.wires = self._wires()
        """By link id."""
        self._namespaces: dict[str, int] = {}
        self._children: list[Job | subprocess.Popen] = []
        self._held = ExitStack()
        self._extra = count(1)

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._children):
            _end(child)
        self._children.clear()
        self._namespaces.clear()
        self._held.close()

    def namespace(self, node: str) -> int:
        """Descriptor of a node's namespace."""
        return self._namespaces[node]

    def inside(self, node: str) -> AbstractContextManager[None]:
        """Context in which the calling thread is at the node: sockets opened there stay there."""
        return namespace.inside(self._namespaces[node])

    def address(self, node: str) -> str:
        """IPv4 address of a node."""
        return self._addresses[node]

    def interface(self, link: str) -> str:
        """Interface at a link's source, whose root qdisc is the link's tbf (1:)."""
        return self.wires[link].interface

    def index(self, link: str) -> int:
        """Number of that interface in the namespace of the link's source."""
        return self.wires[link].index

    def start(self, node: str, what: Callable[..., Any] | Sequence[str], *args: Any, **options: Any) -> Any:
        """Start a function or a program at a node; it ends with the testbed, or with the calling thread.

        A function returns a `Job`, and args and options are its arguments; an argv returns a Popen, and options are
        Popen's.
        """
        with self.inside(node):
            child = Job(what, *args, **options) if callable(what) else start_program([*what, *args], **options)
        self._children.append(child)
        return child

    def run(
        self, node: str, what: Callable[..., Any] | Sequence[str], *args: Any, timeout_s: float = 60.0, **options: Any
    ) -> Any:
        """Run a function or a program to its end: the function's result, or a CompletedProcess with its output as text.

        A TimeoutError says that it wasn't done in time and was ended.
        """
        if not callable(what):
            options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
        child = self.start(node, what, *args, **options)
        try:
            if isinstance(child, Job):
                return child.result(timeout_s)
            out, err = child.communicate(timeout=timeout_s)
            return subprocess.CompletedProcess(child.args, child.returncode, out, err)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{what[0]} wasn't done within {timeout_s:g} s") from None  # ty: ignore[not-subscriptable]
        finally:
            _end(child)
            self._children.remove(child)

    def program(self, node: str, argv: Sequence[str], text: str = "") -> None:
        """Run a program of iproute2 at a node, with a text as its input; it has to succeed."""
        with self.inside(node):
            subprocess.run(argv, input=text, text=True, check=True, capture_output=True, timeout=30.0)

    def route_socket(self, node: str) -> RouteSocket:
        """Raw netlink socket at a node for counters and rate changes; close it after use."""
        with self.inside(node):
            return RouteSocket()

    def path(self, links: Sequence[str]) -> str:
        """Another address of the last link's target, reached over exactly these links from the first link's source.

        For split traffic, send each part to the address of its path.
        """
        wires = [self.wires[link] for link in links]
        for before, after in pairwise(wires):
            if before.link.target != after.link.source:
                raise InvalidValue("links", list(links), "a chain of links")
        address = IPv4Address("10.64.0.0") + next(self._extra)
        self._request(wires[-1].link.target, "add the address of a path", messages.add_address(_LOOPBACK, address))
        for wire in wires:
            self._request(wire.link.source, "add the route of a path", self._route(wire, address))
        return str(address)

    def _wires(self) -> dict[str, Wire]:
        links = {each.id: each for each in self.network.links}
        names, wires = _names(list(links)), {}
        for number, (one, other) in enumerate(self._pairs):
            name = names[one]
            back = f"{name[: _NAME_LENGTH - 2]}.b" if other is None else names[other]
            ends = [
                (interface, peer, _FIRST_INDEX + 2 * number + end, str(IPv4Address("10.128.0.0") + 2 * number + end))
                for end, (interface, peer) in enumerate(((name, back), (back, name)))
            ]
            for link, own, far in ((one, *ends), (other, *ends[::-1])):
                if link is not None:
                    wires[link] = self._wire(links[link], own, far[3])
        return {name: wires[name] for name in links}

    def _wire(self, link: Link, own: tuple[str, str, int, str], next_hop: str) -> Wire:
        burst = self._bursts.get(link.id, int(2 * FRAME + _BURST_S * link.capacity / BITS_PER_BYTE))
        return Wire(link, *own, next_hop, burst, UNLIMITED if link.buffer is None else int(link.buffer))

    def _request(self, node: str, what: str, *changes: bytes) -> None:
        with self.route_socket(node) as route:
            route.request(f"{what} at {node}", *changes)

    def _build(self) -> None:
        for node in self.network.nodes:
            holder = namespace.make_namespace()
            self._held.callback(os.close, holder)
            self._namespaces[node.id] = holder
            with namespace.inside(holder):
                _set_sysctls()
        lines: list[Line] = []
        for number, pair in enumerate(self._pairs):
            self._connect(number, *pair, lines)
        changes = {
            node: [messages.set_up(_LOOPBACK), messages.add_address(_LOOPBACK, IPv4Address(address))]
            for node, address in self._addresses.items()
        }
        for node, target, link in _routes(self.network):
            changes[node].append(self._route(self.wires[link], IPv4Address(self._addresses[target])))
        for node, all_of_it in changes.items():
            self._request(node, "add addresses and routes", *all_of_it)
        if lines:
            self._children.append(Job(pump, lines))

    def _connect(self, number: int, one: str, other: str | None, lines: list[Line]) -> None:
        """Create a veth, with a tbf at either end, and the delay lines of what arrives.

        Its ends have addresses, by which neighbours talk where no route leads back, and no ARP, whose packets would
        wait in the measured queue.
        """
        wire = self.wires[one]
        source, target = wire.link.source, wire.link.target
        mac = bytes((2, 0, 0, 0, number >> 8, number & 255))
        far = wire.index + 1
        veth = messages.add_veth(
            wire.index, wire.interface, far, wire.peer, self._namespaces[target], mac, self._segments
        )
        self._request(source, f"make a veth for {one}", veth)
        for node, link, address, leaves, arrives in (
            (source, one, wire.address, wire.index, far),
            (target, other, wire.next_hop, far, wire.index),
        ):
            if link is not None:
                shaped = self.wires[link]
                options = TbfOptions.desired(shaped.link.capacity, shaped.burst_bytes, shaped.limit_bytes)
                tbf = messages.set_queue(leaves, ROOT, _HANDLE, "tbf", options.encode(shaped.burst_bytes))
                self._request(node, f"shape {link} (sch_tbf)", tbf)
                if shaped.link.delay > 0.0:
                    lines.append(self._delay(shaped, arrives))
            own = messages.add_address(leaves, IPv4Address(address), 31)
            self._request(node, f"switch on an interface of {one}", own, messages.set_up(leaves))

    def _delay(self, wire: Wire, arrives: int) -> Line:
        """Open a TUN device, and divert the arrivals of a link to it."""
        node, device = wire.link.target, f"{wire.peer[: _NAME_LENGTH - 2]}.d"
        with self.inside(node):
            descriptor = open_tun(device)
            self._held.callback(os.close, descriptor)
            index = socket.if_nametoindex(device)
        what = f"delay packets of {wire.link.id} (sch_ingress, cls_u32 and act_mirred)"
        self._request(
            node, what, messages.set_up(index, _LONG_QUEUE), *messages.redirect_arrivals(arrives, index, "u32")
        )
        return Line(descriptor, wire.link.delay, self._bunches.get(wire.link.id, 0.0))

    def _route(self, wire: Wire, address: IPv4Address) -> bytes:
        return messages.add_route(address, wire.index, source=IPv4Address(self._addresses[wire.link.source]))


def _end(child: Job | subprocess.Popen) -> None:
    with suppress(OSError):
        child.stop() if isinstance(child, Job) else end_program(child)


def _set_sysctls() -> None:
    """Set sysctls of the calling thread's namespace."""
    for name, value in _SYSCTLS.items():
        for which in ("all", "default") if "*" in name else ("",):
            with suppress(FileNotFoundError):  # not needed on a kernel without it (IPv6)
                (Path("/proc/sys/net") / name.replace("*", which)).write_text(str(value))


def _pairs(network: Network) -> Iterator[tuple[str, str | None]]:
    """Each link with its first reverse link that has no partner yet: the two directions of a veth."""
    taken: set[str | None] = set()
    for link in network.links:
        if link.id not in taken:
            back = (each.id for each in network.links if (each.target, each.source) == (link.source, link.target))
            partner = next((name for name in back if name not in taken), None)
            taken |= {link.id, partner}
            yield link.id, partner


def _names(ids: list[str]) -> dict[str, str]:
    """Interface names by link: its id if short and unique, otherwise its number."""
    plain = [re.sub(r"[^A-Za-z0-9_]+", "-", each).strip("-") for each in ids]
    reserved = {"lo", "all", "default", ""}
    return {
        each: name
        if plain.count(name) == 1 and len(name) <= _NAME_LENGTH - 2 and name not in reserved
        else f"link.{number}"
        for number, (each, name) in enumerate(zip(ids, plain, strict=True))
    }


def _routes(network: Network) -> Iterator[tuple[str, str, str]]:
    """(Node, target, link): first link of the shortest path by delay, then by number of links, to each other node."""
    leaving: dict[str, list[Link]] = {}
    for link in network.links:
        leaving.setdefault(link.source, []).append(link)
    for node in network.nodes:
        first: dict[str, str | None] = {}
        order = count()
        heap: list[tuple[float, int, int, str, str | None]] = [(0.0, 0, next(order), node.id, None)]
        while heap:
            delay, hops, _, at, start = heappop(heap)
            if at in first:
                continue
            first[at] = start
            for link in leaving.get(at, ()):
                if link.target not in first:
                    heappush(heap, (delay + link.delay, hops + 1, next(order), link.target, start or link.id))
        yield from ((node.id, target, link) for target, link in first.items() if link is not None)
