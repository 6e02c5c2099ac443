"""A network in the kernel: a namespace per node, a veth with tbf per link, delay lines in user space, static routes.

Everything is in namespaces of its own and disappears with their owner, however it ends; the host is not changed.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path
from typing import Any

from netctrl.errors import InvalidValue, NetctrlError, checked_number
from netctrl.linux import namespace
from netctrl.linux.kernel import messages
from netctrl.linux.kernel.messages import ROOT
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.kernel.qdisc import TbfOptions
from netctrl.linux.processes import Job, end_child, start_function, start_program
from netctrl.linux.testbed.delay_line import Line, open_tun, pump
from netctrl.linux.testbed.plan import TestbedPlan, Wire, plan_testbed
from netctrl.model.network import Network

_HANDLE = 0x10000  # 1:
_FIRST_INDEX = 10_000  # of interfaces, above those that the kernel numbers
_LOOPBACK = 1
_LONG_QUEUE = 10_000  # queue of a TUN device, in packets: the delay line reads at once, and loses none
_SYSCTLS = {
    "ipv4/conf/*/forwarding": 1,
    "ipv4/conf/*/rp_filter": 0,  # a delay line's packets change device
    "ipv4/conf/*/send_redirects": 0,
    "ipv4/tcp_no_metrics_save": 1,  # flows don't use metrics of earlier ones
    "ipv6/conf/*/disable_ipv6": 1,  # no IPv6 control traffic on measured links
}


class Testbed:
    """A network, created on entering the context and removed on leaving it.

    Parameters
    ----------
    network : Network
        Each node is a namespace, each link a veth direction with tbf (its capacity counts Ethernet frames, its buffer
        is tbf's limit). A link and its first reverse link share a veth. A delay is added at the link's end.
    burst_bytes : float or mapping of link id to float, optional
        Burst of tbf; by default two frames and half a millisecond of the rate.
    bunch_s : mapping of link id to float, optional
        Packets of such a link, which needs a delay, arrive together at multiples of this [s], as from a medium with
        turns: they are late by up to this time beyond the delay.
    segment : bool
        Whether TCP passes packets one by one; otherwise the kernel passes up to 64 KiB at once.
    named : bool
        Whether `ip netns` shows the namespaces, as netctrl-PID-START-NODE. The next testbed removes names left
        by a crash.

    Raises
    ------
    InvalidValue
        As in `plan_testbed`.
    NetctrlError
        Missing privilege or kernel feature; everything built is removed.

    Examples
    --------
    >>> with Testbed(network) as bed:  # doctest: +SKIP
    ...     bed.run("a", ["ping", "-c1", bed.address("b")])
    """

    __test__ = False  # not a test class

    def __init__(
        self,
        network: Network,
        *,
        burst_bytes: Mapping[str, float] | float | None = None,
        bunch_s: Mapping[str, float] | None = None,
        segment: bool = False,
        named: bool = False,
    ) -> None:
        self.plan: TestbedPlan = plan_testbed(network, burst_bytes=burst_bytes)
        self._segments = 1 if segment else None
        self._bunches = dict(bunch_s or {})
        delayed = [name for name, wire in self.plan.wires.items() if wire.delay_line is not None]
        for name, length in self._bunches.items():
            if name not in delayed:
                raise InvalidValue("bunch_s", name, f"ids of links with a delay: {', '.join(delayed) or 'none'}")
            checked_number(f"bunch_s.{name}", length, "a time above 0 and up to 1 s", above=0.0, at_most=1.0)
        self.named = named
        self._namespaces: dict[str, int] = {}
        self._children: list[Job | subprocess.Popen] = []
        self._held = ExitStack()
        self._extra = 0
        self._indices: dict[str, int] = {}

    @property
    def network(self) -> Network:
        """The network as given."""
        return self.plan.network

    def __enter__(self) -> Testbed:
        namespace.clean_leftovers()
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all children, and close all namespaces; repeated calls do nothing."""
        for child in reversed(self._children):
            with suppress(OSError):
                end_child(child)
        self._children.clear()
        self._namespaces.clear()
        self._held.close()

    def namespace(self, node: str) -> int:
        """Descriptor of a node's namespace."""
        if node not in self._namespaces:
            known = ", ".join(self._namespaces) or "none outside of the context"
            raise InvalidValue("node", node, f"a node of the testbed: {known}")
        return self._namespaces[node]

    def name(self, node: str) -> str:
        """Name of a node's namespace, for `ip netns exec`, if they are named."""
        return namespace.namespace_name(node)

    def inside(self, node: str) -> AbstractContextManager[None]:
        """Context in which the calling thread is at the node: sockets opened there stay there."""
        return namespace.inside(self.namespace(node))

    def address(self, node: str) -> str:
        """IPv4 address of a node."""
        self.namespace(node)
        return self.plan.addresses[node]

    def wire(self, link: str) -> Wire:
        """Data of a link: interfaces, addresses, burst and limit."""
        if link not in self.plan.wires:
            raise InvalidValue("link", link, f"a link of the testbed: {', '.join(self.plan.wires)}")
        return self.plan.wires[link]

    def interface(self, link: str) -> str:
        """Interface at a link's source, whose root qdisc is the link's tbf (1:)."""
        return self.wire(link).interface

    def index(self, link: str) -> int:
        """Number of that interface in the namespace of the link's source."""
        wire = self.wire(link)
        self.namespace(wire.link.source)
        return self._indices[link]

    def start(self, node: str, what: Callable[..., Any] | Sequence[str], *args: Any, **options: Any) -> Any:
        """Start a function or a program at a node; it ends with the testbed, or with the calling thread.

        A function returns a `Job`, and args and options are its arguments; an argv returns a Popen, and options are
        Popen's.
        """
        where = self.namespace(node)
        if callable(what):
            child: Any = start_function(where, what, *args, **options)
        else:
            child = start_program(where, [*what, *args], **options)
        self._children.append(child)
        return child

    def run(
        self, node: str, what: Callable[..., Any] | Sequence[str], *args: Any, timeout_s: float = 60.0, **options: Any
    ) -> Any:
        """Run a function or a program to its end: the function's result, or a CompletedProcess with its output as text.

        Raises
        ------
        TimeoutError
            It wasn't done in time and was ended.
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
            end_child(child)
            self._children.remove(child)

    def route_socket(self, node: str) -> RouteSocket:
        """Raw netlink socket at a node (`netctrl.linux.kernel.netlink`) for counters and rate changes; close it after
        use."""
        with self.inside(node):
            return RouteSocket()

    def path(self, links: Sequence[str]) -> str:
        """Another address of the last link's target, reached over exactly these links from the first link's source.

        For split traffic, send each part to the address of its path.
        """
        wires = [self.wire(link) for link in links]
        if not wires:
            raise InvalidValue("links", "none", "at least one link")
        for before, after in pairwise(wires):
            if before.link.target != after.link.source:
                raise InvalidValue(
                    "links", list(links), f"a chain of links: {after.link.id} doesn't start where the previous one ends"
                )
        self._extra += 1
        address = IPv4Address("10.64.0.0") + self._extra
        self._request(wires[-1].link.target, "add the address of a path", messages.add_address(_LOOPBACK, address))
        for wire in wires:
            self._request(wire.link.source, "add the route of a path", self._route(wire, address))
        return str(address)

    def _request(self, node: str, what: str, *changes: bytes) -> None:
        with self.route_socket(node) as route:
            route.request(f"{what} at {node}", *changes)

    def _build(self) -> None:
        for node in self.network.nodes:
            holder = namespace.make_namespace()
            self._held.callback(os.close, holder)
            self._namespaces[node.id] = holder
            if self.named:
                name = self.name(node.id)
                namespace.name_namespace(holder, name)
                self._held.callback(namespace.unname_namespace, name)
            with namespace.inside(holder):
                _set_sysctls()
        lines: list[Line] = []
        for number, (one, other) in enumerate(self.plan.pairs):
            self._connect(number, one, other, lines)
        changes = {
            node: [messages.set_up(_LOOPBACK), messages.add_address(_LOOPBACK, IPv4Address(address))]
            for node, address in self.plan.addresses.items()
        }
        for route in self.plan.routes:
            wire, address = self.plan.wires[route.link], IPv4Address(self.plan.addresses[route.target])
            changes[route.node].append(self._route(wire, address))
        for node, all_of_it in changes.items():
            self._request(node, "add addresses and routes", *all_of_it)
        if lines:
            self._children.append(start_function(None, pump, lines))

    def _connect(self, number: int, one: str, other: str | None, lines: list[Line]) -> None:
        """Create a veth, with a tbf at either end, and the delay lines of what arrives.

        Its ends have addresses, by which neighbours talk where no route leads back, and no ARP, whose packets would
        wait in the measured queue.
        """
        wire, index = self.plan.wires[one], _FIRST_INDEX + 2 * number
        source, target = wire.link.source, wire.link.target
        mac = bytes((2, 0, 0, 0, number >> 8, number & 255))
        veth = messages.add_veth(
            index, wire.interface, index + 1, wire.peer, self._namespaces[target], mac, self._segments
        )
        self._request(source, f"make a veth for {one}", veth)
        for node, link, address, leaves, arrives in (
            (source, one, wire.address, index, index + 1),
            (target, other, wire.next_hop, index + 1, index),
        ):
            if link is not None:
                self._indices[link], shaped = leaves, self.plan.wires[link]
                options = TbfOptions.desired(shaped.link.capacity, shaped.burst_bytes, shaped.limit_bytes)
                tbf = messages.set_queue(leaves, ROOT, _HANDLE, "tbf", options.encode(shaped.burst_bytes))
                self._request(node, f"shape {link} (sch_tbf)", tbf)
                if shaped.delay_line is not None:
                    lines.append(self._delay(shaped, shaped.delay_line, arrives))
            own = messages.add_address(leaves, IPv4Address(address), 31)
            self._request(node, f"switch on an interface of {one}", own, messages.set_up(leaves))

    def _delay(self, wire: Wire, device: str, arrives: int) -> Line:
        """Open a TUN device, and divert the arrivals of a link to it."""
        node = wire.link.target
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
        own = IPv4Address(self.plan.addresses[wire.link.source])
        return messages.add_route(address, self._indices[wire.link.id], source=own)


def _set_sysctls() -> None:
    """Set sysctls of the calling thread's namespace."""
    for name, value in _SYSCTLS.items():
        for which in ("all", "default") if "*" in name else ("",):
            path = Path("/proc/sys/net") / name.replace("*", which)
            try:
                path.write_text(str(value))
            except FileNotFoundError:  # not needed on a kernel without it (IPv6)
                continue
            except OSError as error:
                raise NetctrlError(f"{path} can't be set to {value}: {error.strerror}") from None
