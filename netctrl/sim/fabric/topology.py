"""A data centre's ports and paths: nodes, links, equal-cost multipath, and what a flow takes alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from netctrl.scenario.fabric.scenario import Dumbbell, FatTree, Packets, Topology
from netctrl.sim.fabric.state import MAX_HOPS

__all__ = ["Fabric", "Paths", "fabric", "fabric_paths", "ideal_times", "wire_times"]

_NS = 1_000_000_000


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
    last : ndarray, shape (hosts,)
        Ports from switches to hosts.
    choices : ndarray, shape (switches, racks, E)
        Ports on shortest paths to a switch that has hosts; `choice_count` of them count. Those switches come first.
    choice_count : ndarray, shape (switches, racks)
    """

    hosts: int
    names: tuple[str, ...]
    source: np.ndarray
    target: np.ndarray
    rate: np.ndarray
    delay: np.ndarray
    last: np.ndarray
    choices: np.ndarray
    choice_count: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """Ports of F flows, −1 after the last.

    Parameters
    ----------
    there, back : ndarray, shape (F, MAX_HOPS)
    """

    there: np.ndarray
    back: np.ndarray


def fabric(topology: Topology) -> Fabric:
    """Ports and shortest paths of a topology."""
    hosts = topology.hosts
    links = _dumbbell(topology) if isinstance(topology, Dumbbell) else _fat_tree(topology)
    delay = round(topology.delay * _NS)
    ends = [(a, b, rate) for a, b, rate in links] + [(b, a, rate) for a, b, rate in links]
    ends.sort(key=lambda each: each[:2])
    source, target, rate = (np.array(column, dtype=np.int64) for column in zip(*ends, strict=True))
    choices, counts = _shortest(hosts, source, target)
    names = tuple(f"{_node(a, hosts)}>{_node(b, hosts)}" for a, b, _ in ends)
    last = np.flatnonzero(target < hosts)
    last = last[np.argsort(target[last])]
    return Fabric(hosts, names, source, target, rate, np.full(len(rate), delay), last, choices, counts)


def _node(number: int, hosts: int) -> str:
    return f"h{number}" if number < hosts else f"s{number - hosts}"


def _dumbbell(topology: Dumbbell) -> list[tuple[int, int, int]]:
    H, host = topology.hosts, round(topology.host_rate)
    middle = host if topology.link_rate is None else round(topology.link_rate)
    links = [(i, H if i < topology.senders else H + 1, host) for i in range(H)]
    return [*links, (H, H + 1, middle)]


def _fat_tree(topology: FatTree) -> list[tuple[int, int, int]]:
    """Switches in order: of racks, of aggregation, cores."""
    H, racks = topology.hosts, topology.pods * topology.racks
    host, up = round(topology.host_rate), round(topology.fabric_rate)
    first = H + racks
    core = first + topology.pods * topology.aggregations
    links = [(i, H + i // topology.hosts_per_rack, host) for i in range(H)]
    for pod, a in product(range(topology.pods), range(topology.aggregations)):
        switch = first + pod * topology.aggregations + a
        links += [(H + pod * topology.racks + r, switch, up) for r in range(topology.racks)]
        links += [(switch, core + c, up) for c in range(topology.cores)]
    return links


def _shortest(hosts: int, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`choices` and `choice_count`, from distances between switches; ports stand in order of their sources."""
    switches, racks = int(source.max()) + 1 - hosts, int(target[:hosts].max()) + 1 - hosts
    between = np.flatnonzero((source >= hosts) & (target >= hosts))
    a, b = source[between] - hosts, target[between] - hosts
    counts = np.zeros((switches, racks), dtype=np.int64)
    routes = []
    for rack in range(racks):
        distance = _distances(rack, a, b, switches)
        nearer = distance[b] < distance[a]
        node = a[nearer]
        routes.append((node, np.arange(len(node)) - np.searchsorted(node, node), between[nearer]))
        counts[:, rack] = np.bincount(node, minlength=switches)
    choices = np.zeros((switches, racks, max(int(counts.max()), 1)), dtype=np.int32)
    for rack, (node, place, port) in enumerate(routes):
        choices[node, rack, place] = port
    return choices, counts


def _distances(rack: int, a: np.ndarray, b: np.ndarray, switches: int) -> np.ndarray:
    """Links from each switch to one of them; the ports from a to b come both ways."""
    distance = np.full(switches, switches)
    distance[rack] = 0
    for links in range(switches):
        reached = b[(distance[a] == links) & (distance[b] > links + 1)]
        if len(reached) == 0:
            break
        distance[reached] = links + 1
    return distance


def fabric_paths(net: Fabric, source: np.ndarray, target: np.ndarray, seed: int) -> Paths:
    """The ports of each flow; where shortest paths part, a hash of flow, switch and seed chooses."""
    number = np.arange(len(source), dtype=np.uint64)
    return Paths(_walk(net, source, target, number, seed), _walk(net, target, source, number, seed + 1))


def _walk(net: Fabric, source: np.ndarray, target: np.ndarray, number: np.ndarray, seed: int) -> np.ndarray:
    ports = np.full((len(source), MAX_HOPS), -1, dtype=np.int64)
    node = source.copy()
    edge = net.target[target]  # a host's one port has its own number
    for hop in range(MAX_HOPS):
        going = node != target
        switch, rack = np.maximum(node - net.hosts, 0), edge - net.hosts
        count = np.maximum(net.choice_count[switch, rack], 1)
        chosen = _hash(number, node, seed) % count.astype(np.uint64)
        port = net.choices[switch, rack, chosen.astype(np.int64)]
        port = np.where(node < net.hosts, node, np.where(node == edge, net.last[target], port))
        ports[going, hop] = port[going]
        node = np.where(going, net.target[port], node)
    return ports


def _hash(number: np.ndarray, node: np.ndarray, seed: int) -> np.ndarray:
    """Evenly spread whole numbers (the finaliser of SplitMix64, Steele, Lea and Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        x = number * np.uint64(0x9E3779B97F4A7C15) + node.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03)
        x += np.uint64(seed % 2**32) * np.uint64(0x8CB92BA72F3D8DD7)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def wire_times(size: np.ndarray | int, rate: np.ndarray, packets: Packets) -> np.ndarray:
    """Whole nanoseconds that `size` bytes take on wires, by the scenario's clock."""
    bits = np.asarray(size, dtype=np.int64) * (8 * _NS)
    whole = (bits - 1) // rate if packets.clock == "ns-3" else (bits + rate // 2) // rate
    return np.maximum(whole, 1)


def ideal_times(net: Fabric, ports: np.ndarray, size: np.ndarray, overhead: int, packets: Packets) -> np.ndarray:
    """From start to the last byte's arrival of flows that are alone and always send [ns], shape (F,).

    Packets but the last are full: the last but one leaves hop h at Σ_i≤h s_i + (m − 2) max_i≤h s_i plus delays, and the
    last, shorter one waits for it at each hop.
    """
    payload = int(packets.payload)
    count = (size + payload - 1) // payload
    last = size - (count - 1) * payload
    filled, gone, slowest = (np.zeros(len(size), dtype=np.int64) for _ in range(3))
    for hop in range(ports.shape[1]):
        there = ports[:, hop] >= 0
        port = np.where(there, ports[:, hop], 0)
        full = wire_times(payload + overhead, net.rate[port], packets)
        slowest = np.where(there, np.maximum(slowest, full), slowest)
        filled = np.where(there, filled + full, filled)
        before = np.where(count > 1, filled + (count - 2) * slowest, 0)
        own = wire_times(last + overhead, net.rate[port], packets)
        gone = np.where(there, np.maximum(gone, before) + own + net.delay[port], gone)
        filled = np.where(there, filled + net.delay[port], filled)
    return gone
