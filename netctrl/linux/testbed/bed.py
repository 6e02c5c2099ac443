"""A network in the kernel: a namespace per node, a veth with tbf per link, delay lines in user space, static routes.

Everything is in namespaces of its own and disappears with their owner, however it ends; the host is not changed.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netctrl.errors import InvalidValue, NetctrlError, checked_number, optional_import
from netctrl.linux import namespace
from netctrl.linux.processes import Job, end_program, start_function, start_program
from netctrl.linux.testbed import names
from netctrl.linux.testbed.delay_line import Line, open_tun, pump
from netctrl.linux.testbed.plan import TestbedPlan, Wire, plan_testbed
from netctrl.model.network import Network
from netctrl.units import BITS_PER_BYTE

if TYPE_CHECKING:
    from netctrl.linux.kernel.netlink import RouteSocket

__all__ = ["Testbed"]

_INGRESS = 0xFFFF0000
_HANDLE = 0x10000  # 1:
_ALL_PROTOCOLS = 0x0003
_LONG_QUEUE = 10_000  # queue of a TUN device, in packets: the delay line reads at once, and loses none
_PERMANENT = 0x80
_ROUNDING_S = 128e-9  # the kernel rounds a burst down to ticks of 64 ns: a burst of one frame would pass no frame
_SYSCTLS = (
    *(("ipv4/conf/all/forwarding", 1), ("ipv4/conf/default/forwarding", 1)),
    *(("ipv4/conf/all/rp_filter", 0), ("ipv4/conf/default/rp_filter", 0)),  # a delay line's packets change device
    *(("ipv4/conf/all/send_redirects", 0), ("ipv4/conf/default/send_redirects", 0)),
    ("ipv4/tcp_no_metrics_save", 1),  # flows don't use metrics of earlier ones
    *(
        ("ipv6/conf/all/disable_ipv6", 1),
        ("ipv6/conf/default/disable_ipv6", 1),
    ),  # no IPv6 control traffic on measured links
)


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
        Missing privilege, kernel feature or pyroute2; everything built is removed.

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
        self._set = {"gso_max_segs": 1} if segment else {}
        self._bunches = _checked_bunches(self.plan, bunch_s or {})
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
        names.clean_leftovers()
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
                child.close() if isinstance(child, Job) else end_program(child)
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
        return names.namespace_name(node)

    @contextmanager
    def inside(self, node: str) -> Generator[None]:
        """Context in which the calling thread is at the node: sockets opened there stay there."""
        with namespace.inside(self.namespace(node)):
            yield

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
            child.close() if isinstance(child, Job) else end_program(child)
            self._children.remove(child)

    def route_socket(self, node: str) -> RouteSocket:
        """Raw netlink socket at a node (`netctrl.linux.kernel.netlink`) for counters and rate changes; close it after
        use."""
        from netctrl.linux.kernel.netlink import RouteSocket

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
        address = f"10.64.{self._extra >> 8}.{self._extra & 255}"
        with self._router(wires[-1].link.target) as target:
            target.addr("add", index=1, address=address, prefixlen=32)
        for wire in wires:
            with self._router(wire.link.source) as router:
                self._add_route(router, wire.link.source, address, wire)
        return address

    @contextmanager
    def _router(self, node: str) -> Generator[Any]:
        """A pyroute2 socket at a node for a short time, as each holds six descriptors."""
        IPRoute = _iproute()
        with self.inside(node):
            router = IPRoute()
        with router:
            yield router

    def _build(self) -> None:
        _iproute()
        for node in self.network.nodes:
            holder = namespace.make_namespace()
            self._held.callback(os.close, holder)
            self._namespaces[node.id] = holder
            if self.named:
                name = self.name(node.id)
                names.name_namespace(holder, name)
                self._held.callback(names.unname_namespace, name)
            with namespace.inside(holder):
                _set_sysctls()
        lines = self._open_lines()
        with ExitStack() as opened:
            routers = {node.id: opened.enter_context(self._router(node.id)) for node in self.network.nodes}
            self._furnish(routers)
        if lines:
            self._children.append(start_function(None, pump, lines))

    def _furnish(self, routers: Mapping[str, Any]) -> None:
        """Add addresses, links, routes, and the diversion to the delay lines."""
        for node, router in routers.items():
            router.link("set", index=1, state="up")
            router.addr("add", index=1, address=self.plan.addresses[node], prefixlen=32)
        for number, (one, other) in enumerate(self.plan.pairs):
            self._connect(routers, number, one, other)
        for route in self.plan.routes:
            wire = self.plan.wires[route.link]
            self._add_route(routers[route.node], route.node, self.plan.addresses[route.target], wire)
        for wire in self.plan.wires.values():
            if wire.delay_line is not None:
                _divert(routers[wire.link.target], wire.peer, wire.delay_line)

    def _connect(self, routers: Mapping[str, Any], number: int, one: str, other: str | None) -> None:
        """Create a veth, with an address and tbf at either end."""
        wire = self.plan.wires[one]
        here, there = routers[wire.link.source], routers[wire.link.target]
        ends = [f"02:00:{number >> 8:02x}:{number & 255:02x}:00:0{end}" for end in (1, 2)]
        peer = {"ifname": wire.peer, "net_ns_fd": self._namespaces[wire.link.target], "address": ends[1]}
        here.link("add", ifname=wire.interface, kind="veth", address=ends[0], peer=peer)
        shaped = (wire, None if other is None else self.plan.wires[other])
        for router, name, address, next_hop, mac, direction in (
            (here, wire.interface, wire.address, wire.next_hop, ends[1], shaped[0]),
            (there, wire.peer, wire.next_hop, wire.address, ends[0], shaped[1]),
        ):
            index = router.link_lookup(ifname=name)[0]
            router.addr("add", index=index, address=address, prefixlen=31)
            if direction is not None:
                self._indices[direction.link.id] = index
                _shape(router, index, direction)
            router.link("set", index=index, state="up", **self._set)
            # no ARP, whose packets would wait in the measured queue
            router.neigh("replace", dst=next_hop, lladdr=mac, ifindex=index, state=_PERMANENT)

    def _add_route(self, router: Any, node: str, address: str, wire: Wire) -> None:
        index = self._indices[wire.link.id]
        router.route("add", dst=f"{address}/32", gateway=wire.next_hop, oif=index, prefsrc=self.plan.addresses[node])

    def _open_lines(self) -> list[Line]:
        """Open TUN devices early, as select(2) takes descriptors below 1024."""
        lines = []
        for wire in self.plan.wires.values():
            if wire.delay_line is None:
                continue
            node = wire.link.target
            with self.inside(node):
                descriptor = open_tun(wire.delay_line)
            self._held.callback(os.close, descriptor)
            lines.append(Line(descriptor, wire.link.delay, self._bunches.get(wire.link.id, 0.0)))
        return lines


def _divert(router: Any, arriving: str, line: str) -> None:
    """Divert the arrivals of a link with delay to the TUN device of its delay line."""
    index, tun = (router.link_lookup(ifname=name)[0] for name in (arriving, line))
    router.link("set", index=tun, state="up", txqlen=_LONG_QUEUE)
    action = {"kind": "mirred", "direction": "egress", "action": "redirect", "ifindex": tun}
    with _kernel_feature("delay lines", "sch_ingress, cls_u32 and act_mirred"):
        router.tc("add", "ingress", index)
        router.tc(
            "add-filter",
            "u32",
            index,
            parent=_INGRESS,
            prio=1,
            protocol=_ALL_PROTOCOLS,
            target=_HANDLE,
            keys=["0x0/0x0+0"],
            action=action,
        )


def _checked_bunches(plan: TestbedPlan, requested: Mapping[str, float]) -> dict[str, float]:
    delayed = [name for name, wire in plan.wires.items() if wire.delay_line is not None]
    for name, length in requested.items():
        if name not in delayed:
            raise InvalidValue("bunch_s", name, f"ids of links with a delay: {', '.join(delayed) or 'none'}")
        checked_number(f"bunch_s.{name}", length, "a time above 0 and up to 1 s", above=0.0, at_most=1.0)
    return dict(requested)


def _shape(router: Any, index: int, wire: Wire) -> None:
    """Set tbf as root qdisc 1:, at the link's capacity."""
    rate = max(round(wire.link.capacity / BITS_PER_BYTE), 1)
    with _kernel_feature("links", "sch_tbf"):
        router.tc(
            "add",
            "tbf",
            index,
            _HANDLE,
            rate=rate,
            burst=wire.burst_bytes + 1 + int(_ROUNDING_S * rate),
            limit=wire.limit_bytes,
        )


@contextmanager
def _kernel_feature(what: str, needs: str) -> Generator[None]:
    """Turn a kernel error into a message that names the missing feature."""
    with optional_import():
        from pyroute2.netlink.exceptions import NetlinkError

    try:
        yield
    except NetlinkError as error:
        lacking = error.code in (errno.ENOENT, errno.EOPNOTSUPP)
        why = f"this kernel lacks some of {needs}" if lacking else os.strerror(error.code)
        raise NetctrlError(f"the testbed's {what} can't be built: {why}") from None


def _iproute() -> Any:
    with optional_import():
        from pyroute2 import IPRoute
    return IPRoute


def _set_sysctls() -> None:
    """Set sysctls of the calling thread's namespace."""
    for name, value in _SYSCTLS:
        _write(Path("/proc/sys/net") / name, value)


def _write(path: Path, value: int) -> None:
    try:
        path.write_text(str(value))
    except FileNotFoundError:  # not needed on a kernel without it (IPv6)
        return
    except OSError as error:
        raise NetctrlError(f"{path} can't be set to {value}: {error.strerror}") from None
