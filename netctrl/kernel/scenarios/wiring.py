"""Nodes and links in the kernel: namespaces, pairs of interfaces, queues, routes."""

from __future__ import annotations

import sys
from ipaddress import IPv4Address
from typing import NamedTuple

import numpy as np

from netctrl.core.units import BITS_PER_BYTE
from netctrl.kernel.plan import FIRST_NAMESPACE, PlanWriter
from netctrl.kernel.scenarios.queues import HTB_CLASS, HTB_HANDLE, Discipline, bucket_bytes, discipline_of
from netctrl.linux.kernel import messages
from netctrl.linux.kernel.messages import ROOT
from netctrl.linux.kernel.qdisc import HtbClassOptions, HtbOptions, TbfOptions
from netctrl.linux.kernel.queue_options import netem_options, queue_options
from netctrl.model.link_trace import LinkTrace, TraceOfLink, deliveries
from netctrl.scenario.links import Link

LONG = 10_000_000
"""Packets that a queue without a limit of its own holds."""
_LEAF = 0x00100000  # 10:
_FIRST_INDEX = 10
_MTU = 1514
_EARLY_NS = 777  # nothing else happens then
_FASTER = 1.0 + 2e-5  # netem's rate: HTB's rounding, of 1 ns a packet, must not make a second queue there
_SYSCTLS = (
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv4/tcp_no_metrics_save", "1"),
    ("net/ipv4/tcp_rmem", "4096 4194304 268435456"),
    ("net/ipv4/tcp_wmem", "4096 65536 268435456"),
)


class End(NamedTuple):
    """An interface, in a namespace."""

    namespace: int
    index: int


class Wiring:
    """A plan's nodes and links, as they are added to it: for packets of a size [byte], a run of a duration [s]."""

    def __init__(self, plan: PlanWriter, packet: float, duration: float) -> None:
        self.plan, self.packet, self.duration = plan, packet, duration
        self.nodes: dict[str, int] = {}
        self.out: dict[str, End] = {}
        """Interface at the source of each link."""
        self.arrivals: dict[str, End] = {}
        """Interface with the transmission and the delay of each link."""
        self.kinds: list[str] = []
        """Queueing discipline of each link."""
        self._index, self._address = _FIRST_INDEX, int(IPv4Address("10.0.0.0"))

    def link(self, link: Link, rate: float) -> None:
        """A link that sends at a rate up to its capacity [bit/s]."""
        here, there = self.veth(self.node(link.source), self.node(link.target), link.id)
        self.out[link.id] = here
        self._shape(here, link, rate)
        index = self._next_index()
        what = f"delay packets of {link.id}"
        self.plan.request(there.namespace, messages.add_dummy_queue(index, f"d{index}"), what)
        for message in messages.redirect_arrivals(there.index, index):
            self.plan.request(there.namespace, message, what)
        options = delay_options(link, link.capacity, link.delay, self.packet)
        self.plan.request(there.namespace, messages.set_queue(index, ROOT, HTB_HANDLE, "netem", options), what)
        self.arrivals[link.id] = End(there.namespace, index)

    def _shape(self, at: End, link: Link, rate: float) -> None:
        discipline, what = discipline_of(link, self.packet), f"limit the rate of {link.id}"
        self.kinds.append(discipline.kind)
        if link.trace is None:
            root, shaped = HtbOptions(default_class=1).encode(), rate_options(rate)
            self.plan.request(at.namespace, messages.set_queue(at.index, ROOT, HTB_HANDLE, "htb", root), what)
            self.plan.request(at.namespace, messages.set_class(at.index, HTB_HANDLE, HTB_CLASS, "htb", shaped), what)
        else:
            root = TbfOptions.desired(8e6, _MTU, 1).encode()
            self.plan.request(at.namespace, messages.set_queue(at.index, ROOT, HTB_HANDLE, "tbf", root), what)
            self._follow(at, link.trace, discipline)
        leaf = messages.set_queue(at.index, HTB_CLASS, _LEAF, discipline.kind, discipline.options)
        self.plan.request(at.namespace, leaf, f"put {discipline.kind} on {link.id}")

    def _follow(self, at: End, trace: TraceOfLink, discipline: Discipline) -> None:
        """Send at a trace's times; a packet that comes then is too late."""
        header = round(trace.header_bytes) if isinstance(trace, LinkTrace) else 0
        limit = int.from_bytes(discipline.options[:4], sys.byteorder) if discipline.kind.endswith("fifo") else 0
        rows = np.maximum(deliveries(trace, self.duration) - [_EARLY_NS, 0], 0)
        self.plan.gate(at, limit, header, int(self.packet), rows)

    def veth(self, source: int, target: int, name: str) -> tuple[End, End]:
        """A new pair of interfaces without a rate."""
        one, other = self._next_index(), self._next_index()
        address = bytes((2, 0, 0, 0, one >> 8 & 255, one & 255))
        descriptor = FIRST_NAMESPACE + target
        message = messages.add_veth(one, f"v{one}", other, f"v{other}", descriptor, address, segments=1)
        self.plan.request(source, message, f"make the interfaces of {name}")
        for at, index in ((source, one), (target, other)):
            self.plan.request(at, messages.set_up(index), f"switch on an interface of {name}")
        return End(source, one), End(target, other)

    def node(self, name: str) -> int:
        """Namespace of a node, made when it is first asked for."""
        if name not in self.nodes:
            self.nodes[name] = self.namespace()
        return self.nodes[name]

    def namespace(self, ecn: bool = True) -> int:
        """A new namespace; `ecn`: whether its TCP asks for it, also where the first packet was lost."""
        made = self.plan.namespace()
        for name, value in (*_SYSCTLS, ("net/ipv4/tcp_ecn", "1" if ecn else "0"), ("net/ipv4/tcp_ecn_fallback", "0")):
            self.plan.sysctl(made, name, value)
        self.plan.request(made, messages.set_up(1), "switch on a loopback")
        return made

    def _next_index(self) -> int:
        self._index += 1
        return self._index

    def next_address(self) -> IPv4Address:
        """An address that nobody has yet."""
        self._address += 1
        return IPv4Address(self._address)

    def keep_times(self, at: End) -> None:
        """UDP packets leave an interface at the times that their sender gives them."""
        options = queue_options("fq", {"limit": LONG, "flow_limit": LONG, "timer_slack": 0.0}, self.packet)
        message = messages.set_queue(at.index, ROOT, HTB_HANDLE, "fq", options)
        self.plan.request(at.namespace, message, "time UDP packets")

    def route(self, at: int, address: IPv4Address, index: int, window: int | None = None) -> None:
        """Packets to an address leave by an interface."""
        self.plan.request(at, messages.add_route(address, index, window), "add a route")


def rate_options(capacity: float) -> bytes:
    """Options of a link's HTB class."""
    return HtbClassOptions.desired(capacity, bucket_bytes(capacity)).encode()


def delay_options(link: Link, capacity: float, delay: float, packet: float) -> bytes:
    """Options of the netem at a link's end: transmission and propagation.

    Packets that overtake each other take a full packet's time, as netem's rate would keep them in order. The times of a
    trace are those at which packets are sent whole.
    """
    rate = None if link.trace is not None else capacity * _FASTER
    if link.reorder:
        there = delay + (0.0 if rate is None else packet * BITS_PER_BYTE / capacity)
        random = {"jitter_s": link.jitter, "normal": link.spread == "normal", "run": link.loss_run}
        return netem_options(there, None, link.loss, LONG, **random)
    return netem_options(delay, rate, link.loss, LONG, run=link.loss_run)
