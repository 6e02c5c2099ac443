"""Plan of a testbed: a network as namespaces, interfaces, addresses and routes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from ipaddress import IPv4Address

from netctrl.errors import InvalidValue, checked_number
from netctrl.model.network import Link, Network
from netctrl.units import BITS_PER_BYTE

FRAME = 1514
"""Frame of 1500 bytes with its Ethernet header, as tbf counts it [byte]."""

UNLIMITED = 2**30
"""Buffer for null [byte]: larger than any run's backlog."""

_BURST_S = 0.5e-3
_MAX_NODES, _MAX_LINKS = 250, 4000
_MAX_RATE = 34e9  # bit/s: tbf's table of 32-bit bytes a second
_NAME_LENGTH = 15


@dataclass(frozen=True, slots=True)
class Wire:
    """One link in the testbed: a veth whose egress at `link.source` is shaped by tbf."""

    link: Link
    interface: str
    """Interface at `link.source`, whose root qdisc is the link's tbf."""
    peer: str
    """Interface at `link.target`, where the link's packets arrive."""
    address: str
    """Of `interface`."""
    next_hop: str
    """Of `peer`."""
    burst_bytes: int
    limit_bytes: int
    delay_line: str | None
    """TUN device at `link.target` for the delay; None for a link without delay."""


@dataclass(frozen=True, slots=True)
class Route:
    """Route at a node: the link to another node."""

    node: str
    target: str
    link: str


@dataclass(frozen=True, slots=True)
class TestbedPlan:
    """All parts of a network's testbed."""

    __test__ = False  # not a test class

    network: Network
    addresses: Mapping[str, str]
    """Addresses of nodes, by id, on their loopback, independent of the links."""
    wires: Mapping[str, Wire]
    """Wires by link id."""
    pairs: tuple[tuple[str, str | None], ...]
    """Ids of the links that are the two directions of a veth; None: a direction without shaping and routes."""
    routes: tuple[Route, ...]
    """Shortest paths by delay, then by number of links."""

    @property
    def one_way(self) -> tuple[tuple[str, str], ...]:
        """Pairs of nodes with a route in one direction only, where TCP and `ping` get no answer."""
        there = {(route.node, route.target) for route in self.routes}
        return tuple(pair for pair in sorted(there) if pair[::-1] not in there)


def plan_testbed(network: Network, *, burst_bytes: Mapping[str, float] | float | None = None) -> TestbedPlan:
    """Plan the testbed of a network: one namespace per node, one veth per link and its reverse, tbf on each direction.

    Parameters
    ----------
    network : Network
    burst_bytes : float or mapping of link id to float, optional
        Burst of tbf, at least a frame of 1514 bytes; by default two frames and half a millisecond of the rate.

    Raises
    ------
    InvalidValue
        Too many nodes or links, a capacity beyond tbf's, a buffer below a frame, or a burst for an unknown link.
    """
    if len(network.nodes) > _MAX_NODES:
        raise InvalidValue("network", f"{len(network.nodes)} nodes", f"at most {_MAX_NODES} nodes for a testbed")
    if len(network.links) > _MAX_LINKS:
        raise InvalidValue("network", f"{len(network.links)} links", f"at most {_MAX_LINKS} links for a testbed")
    bursts = _bursts(network, burst_bytes)
    pairs = tuple(_pairs(network))
    names = _names([each.id for each in network.links])
    wires: dict[str, Wire] = {}
    links = {each.id: each for each in network.links}
    for number, (one, other) in enumerate(pairs):
        here, there = (str(IPv4Address("10.128.0.0") + 2 * number + end) for end in (0, 1))
        name = names[one]
        back = f"{name[: _NAME_LENGTH - 2]}.b" if other is None else names[other]
        wires[one] = _wire(links[one], name, back, here, there, bursts[one])
        if other is not None:
            wires[other] = _wire(links[other], back, name, there, here, bursts[other])
    return TestbedPlan(
        network=network,
        addresses={node.id: f"10.0.{number}.1" for number, node in enumerate(network.nodes, start=1)},
        wires={each.id: wires[each.id] for each in network.links},
        pairs=pairs,
        routes=tuple(_routes(network)),
    )


def _wire(link: Link, name: str, peer: str, address: str, next_hop: str, burst: int) -> Wire:
    limit = UNLIMITED if link.buffer is None else int(link.buffer)
    if limit < FRAME:
        raise InvalidValue(f"links.{link.id}.buffer", link.buffer, f"at least a frame of {FRAME} bytes, or null")
    if link.capacity > _MAX_RATE:
        raise InvalidValue(f"links.{link.id}.capacity", link.capacity, f"at most {_MAX_RATE:g} bit/s, for tbf")
    line = f"{peer[: _NAME_LENGTH - 2]}.d" if link.delay > 0.0 else None
    return Wire(link, name, peer, address, next_hop, burst, limit, line)


def _bursts(network: Network, requested: Mapping[str, float] | float | None) -> dict[str, int]:
    """Burst of each link [byte]. By default a late timer loses no capacity, and bursts stay short."""
    bursts = {each.id: int(2 * FRAME + _BURST_S * each.capacity / BITS_PER_BYTE) for each in network.links}
    takes = f"at least a frame of {FRAME} bytes"
    if isinstance(requested, Mapping):
        for name, size in requested.items():
            if name not in bursts:
                raise InvalidValue("burst_bytes", name, f"ids of links: {', '.join(bursts)}")
            bursts[name] = int(checked_number(f"burst_bytes.{name}", size, takes, at_least=FRAME, at_most=2**31))
    elif requested is not None:
        bursts = dict.fromkeys(
            bursts, int(checked_number("burst_bytes", requested, takes, at_least=FRAME, at_most=2**31))
        )
    return bursts


def _pairs(network: Network) -> Iterator[tuple[str, str | None]]:
    """Each link with its first reverse link that has no partner yet."""
    waiting: dict[tuple[str, str], list[str]] = {}
    for link in network.links:
        waiting.setdefault((link.source, link.target), []).append(link.id)
    taken: set[str] = set()
    for link in network.links:
        if link.id in taken:
            continue
        back = waiting.get((link.target, link.source), [])
        partner = next((name for name in back if name not in taken), None)
        taken |= {link.id, partner} - {None}  # ty: ignore[unsupported-operator]
        yield link.id, partner


def _names(ids: list[str]) -> dict[str, str]:
    """Interface names by link: its id if short and unique, otherwise its number."""
    plain = {each: re.sub(r"[^A-Za-z0-9_]+", "-", each).strip("-") for each in ids}
    counts: dict[str, int] = {}
    for name in plain.values():
        counts[name] = counts.get(name, 0) + 1
    reserved = {"lo", "all", "default", ""}
    return {
        each: name if counts[name] == 1 and len(name) <= _NAME_LENGTH - 2 and name not in reserved else f"link.{number}"
        for number, (each, name) in enumerate(plain.items())
    }


def _routes(network: Network) -> Iterator[Route]:
    """First link of the shortest path from each node to each reachable node."""
    leaving: dict[str, list[Link]] = {}
    for link in network.links:
        leaving.setdefault(link.source, []).append(link)
    for node in network.nodes:
        first: dict[str, str | None] = {}
        heap: list[tuple[float, int, int, str, str | None]] = [(0.0, 0, 0, node.id, None)]
        order = 0
        while heap:
            delay, hops, _, at, start = heappop(heap)
            if at in first:
                continue
            first[at] = start
            for link in leaving.get(at, ()):
                order += 1
                if link.target not in first:
                    heappush(heap, (delay + link.delay, hops + 1, order, link.target, start or link.id))
        yield from (Route(node.id, target, link) for target, link in first.items() if link is not None)
