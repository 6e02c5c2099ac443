"""Ports and paths of a data centre: nodes, links, equal-cost multipath, and the ideal times of single flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from netctrl.laws.window.law import MAX_HOPS as SWITCH_HOPS
from netctrl.scenario.fabric.topology import Dumbbell, FatTree, Packets

MAX_HOPS = 1 + SWITCH_HOPS
"""Ports on a path, the sender's own included."""
_NS = 1_000_000_000
_BLOCK = 1 << 16  # flows whose paths are computed at a time


class Nodes(NamedTuple):
    """Hosts below each of the nodes, which is all that shortest paths need: down where the target is below, else up.

    A node's ports are numbered one after the other, those down first, in order of the hosts that they lead to. So the
    equal-cost next hops to a host are neighbouring ports.
    """

    low: np.ndarray
    """First host below a node; a host is below itself."""
    high: np.ndarray
    """One after the last."""
    child: np.ndarray
    """Hosts below each node one level down."""
    ways: np.ndarray
    """Ports to each part of the hosts that has `child` of them."""
    first: np.ndarray
    """A node's first port."""
    up: np.ndarray
    """Its first port that leads up."""
    end: np.ndarray
    """One after its last port."""


@dataclass(frozen=True, slots=True, eq=False)
class Fabric:
    """P ports of a topology; hosts are nodes 0 to hosts − 1, and the first ports are theirs.

    Parameters
    ----------
    hosts : int
    names : tuple of str
        "h0>s0", of ports.
    source, target : ndarray, shape (P,)
        Nodes.
    rate : ndarray, shape (P,)
        [bit/s], whole.
    delay : ndarray, shape (P,)
        [ns], whole.
    nodes : Nodes
    """

    hosts: int
    names: tuple[str, ...]
    source: np.ndarray
    target: np.ndarray
    rate: np.ndarray
    delay: np.ndarray
    nodes: Nodes


class _Shape(NamedTuple):
    """Links and levels of a topology, from the hosts on."""

    links: tuple[tuple[np.ndarray, np.ndarray, float], ...]
    """(lower nodes, upper nodes, rate [bit/s])."""
    levels: tuple[tuple[np.ndarray, int | np.ndarray, int, int], ...]
    """(first host below each node, hosts below it, `Nodes.child`, `Nodes.ways`)."""


def fabric(topology: Dumbbell | FatTree) -> Fabric:
    """Ports of a topology, in order of their sources, then of their targets."""
    hosts = topology.hosts
    shape = _dumbbell(topology) if isinstance(topology, Dumbbell) else _fat_tree(topology)
    lower, upper = (np.concatenate([link[end] for link in shape.links]) for end in (0, 1))
    rate = np.concatenate([np.full(len(a), round(each)) for a, _, each in shape.links])
    source, target = np.concatenate([lower, upper]), np.concatenate([upper, lower])
    order = np.lexsort((target, source))
    source, target, rate = source[order], target[order], np.tile(rate, 2)[order]
    names = [*(f"h{i}" for i in range(hosts)), *(f"s{i}" for i in range(int(source[-1]) + 1 - hosts))]
    ports = tuple(f"{names[a]}>{names[b]}" for a, b in zip(source.tolist(), target.tolist(), strict=True))
    delay = np.full(len(rate), round(topology.delay * _NS))
    return Fabric(hosts, ports, source, target, rate, delay, _nodes(shape, source))


def _nodes(shape: _Shape, source: np.ndarray) -> Nodes:
    low = np.concatenate([first for first, *_ in shape.levels])
    below, child, ways = (
        np.concatenate([np.broadcast_to(level[column], len(level[0])) for level in shape.levels])
        for column in (1, 2, 3)
    )
    ends = np.searchsorted(source, np.arange(len(low) + 1))
    return Nodes(low, low + below, child, ways, ends[:-1], ends[:-1] + below // child * ways, ends[1:])


def _dumbbell(topology: Dumbbell) -> _Shape:
    """Each of the two switches is above the other."""
    H, senders, host = topology.hosts, topology.senders, np.arange(topology.hosts)
    middle = topology.host_rate if topology.link_rate is None else topology.link_rate
    switch = np.array([H, H + 1])
    return _Shape(
        links=((host, np.where(host < senders, *switch), topology.host_rate), (switch[:1], switch[1:], middle)),
        levels=((host, 1, 1, 0), (np.array([0, senders]), np.array([senders, topology.receivers]), 1, 1)),
    )


def _fat_tree(topology: FatTree) -> _Shape:
    """Switches in order: of racks, of aggregation, cores."""
    H, A, uplinks = topology.hosts, topology.aggregations, topology.uplinks
    in_rack = topology.hosts_per_rack
    in_pod = in_rack * topology.racks
    host, rack, switch = np.arange(H), np.arange(H // in_rack), np.arange(topology.pods * A)
    to_rack, to_core = np.repeat(rack, A), np.repeat(switch, uplinks)
    full = topology.wiring == "full"
    core = np.tile(np.arange(uplinks), len(switch)) + (0 if full else to_core % A * uplinks)
    first = H + len(rack)
    return _Shape(
        links=(
            (host, H + host // in_rack, topology.host_rate),
            (
                H + to_rack,
                first + to_rack // topology.racks * A + np.tile(np.arange(A), len(rack)),
                topology.fabric_rate,
            ),
            (first + to_core, first + len(switch) + core, topology.fabric_rate),
        ),
        levels=(
            (host, 1, 1, 0),
            (rack * in_rack, in_rack, 1, 1),
            (switch // A * in_pod, in_pod, in_rack, 1),
            (np.zeros(topology.cores, dtype=np.int64), H, in_pod, A if full else 1),
        ),
    )


def next_hops(nodes: Nodes, node: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal-cost next hops from nodes to hosts: the first port of each node, and how many there are from it on."""
    low = nodes.low[node]
    down = (low <= target) & (target < nodes.high[node])
    ways, up = nodes.ways[node], nodes.up[node]
    first = np.where(down, nodes.first[node] + (target - low) // nodes.child[node] * ways, up)
    return first, np.where(down, ways, nodes.end[node] - up)


def fabric_paths(net: Fabric, source: np.ndarray, target: np.ndarray, seed: int) -> np.ndarray:
    """Ports of the forward and return paths of F flows, −1 after the last: shape (F, 2, MAX_HOPS).

    Among equal-cost next hops a hash of flow, switch and seed selects one.
    """
    ports = np.full((len(source), 2, MAX_HOPS), -1, dtype=np.int32)
    for at in range(0, len(source), _BLOCK):
        part = ports[at : at + _BLOCK]
        a, b, number = source[at : at + _BLOCK], target[at : at + _BLOCK], np.arange(at, at + len(part))
        _walk(net, a, b, number, seed, part[:, 0])
        _walk(net, b, a, number, seed + 1, part[:, 1])
    return ports


def _walk(
    net: Fabric, source: np.ndarray, target: np.ndarray, number: np.ndarray, seed: int, ports: np.ndarray
) -> None:
    node = source
    for hop in range(MAX_HOPS):
        first, ways = next_hops(net.nodes, node, target)
        chosen = _hash(number.astype(np.uint64), node, seed) % np.maximum(ways, 1).astype(np.uint64)
        port = first + chosen.astype(np.int64)
        going = node != target
        ports[going, hop] = port[going]
        node = np.where(going, net.target[port], node)


def _hash(number: np.ndarray, node: np.ndarray, seed: int) -> np.ndarray:
    """Evenly spread whole numbers (the finaliser of SplitMix64, Steele, Lea and Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        x = number * np.uint64(0x9E3779B97F4A7C15) + node.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03)
        x += np.uint64(seed % 2**32) * np.uint64(0x8CB92BA72F3D8DD7)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def wire_times(size: np.ndarray | int, rate: np.ndarray, packets: Packets) -> np.ndarray:
    """Transmission times of `size` bytes in whole nanoseconds, by the scenario's clock."""
    bits = np.asarray(size, dtype=np.int64) * (8 * _NS)
    whole = (bits - 1) // rate if packets.clock == "ns-3" else (bits + rate // 2) // rate
    return np.maximum(whole, 1)


def ideal_times(net: Fabric, ports: np.ndarray, size: np.ndarray, overhead: int, packets: Packets) -> np.ndarray:
    """Times from start to the last byte's arrival of flows that are alone on their path and always send [ns], as
    `size`.

    Packets but the last are full: the last but one leaves hop h at Σ_i≤h s_i + (m − 2) max_i≤h s_i plus delays, and the
    last, shorter one waits for it at each hop.
    """
    payload = int(packets.payload)
    count = (size + payload - 1) // payload
    last = size - (count - 1) * payload
    filled, slowest, gone = 0, 0, np.zeros_like(size)
    for port in ports[ports >= 0].tolist():
        full = int(wire_times(payload + overhead, net.rate[port], packets))
        slowest, filled = max(slowest, full), filled + full
        before = np.where(count > 1, filled + (count - 2) * slowest, 0)
        gone = np.maximum(gone, before) + wire_times(last + overhead, net.rate[port], packets) + net.delay[port]
        filled += int(net.delay[port])
    return gone
