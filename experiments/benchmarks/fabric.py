"""A data centre packet by packet: packet hops a second, against a heap of events in Python, and the fat tree at 60 %
load; setting up large fat trees; processor time.

`python fabric.py` runs 1 ms of 1,024 hosts, and says as JSON how long and how much memory it took.
"""

import heapq
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import networkx as nx
import numpy as np
from rows import Row, against, alternate, peak_gb

from netctrl.laws.window.records import FixedWindow, Hpcc, Mpcc
from netctrl.scenario.fabric.ports import fabric
from netctrl.scenario.fabric.topology import Dumbbell, FatTree
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Sizes
from netctrl.sim.packet.fabric import fabric_problem
from netctrl.sim.packet.run import simulate_packets

SPEED = 2e6
"""Packet hops a second."""


def rows() -> Iterator[Row]:
    yield against_events()
    for scheme in (Mpcc(variant="delayed"), Hpcc()):
        yield fat_tree(scheme)
    for k in (16, 36):
        yield set_up(k)
    yield memory()


def against_events() -> Row:
    """Sixteen flows through a dumbbell; seconds for a million packet hops."""
    scenario = Scenario(
        name="sixteen flows",
        network=Dumbbell(senders=16, host_rate=1e11),
        flows=(Flow(id="senders", source=range(16), target=16, offers=1e9, sender=FixedWindow(window=10e3)),),
        duration=5e-3,
    )
    turns = alternate(lambda: hops_of(simulate_packets(scenario)), lambda: by_events(20_000), 3, clock=process_time)
    times = [[each / hops * 1e6 for each in kept] for kept, hops in zip(turns[:2], turns.answers, strict=True)]
    return against(
        "fabric, a million packet hops of a dumbbell",
        "a heap of events in Python",
        turns._replace(ours=times[0], theirs=times[1]),
        f"<= {1e9 / SPEED:g} ms ({SPEED:g}/s)",
        "hops without a law",
    )


def hops_of(result: Result) -> int:
    """Packets that ports sent."""
    return int(result.tables["counts"]["hops"][0])


def by_events(packets: int) -> int:
    """Hops through three FIFO ports, two events each: a packet comes, and the wire is free. No law, no telemetry."""
    heap: list[tuple[int, int, int]] = [(int(t), 0, 0) for t in np.arange(packets) * 90]
    heapq.heapify(heap)
    queue, busy, hops = [0, 0, 0], [0, 0, 0], 0
    while heap:
        now, kind, port = heapq.heappop(heap)
        if kind == 0:
            queue[port] += 1
        else:
            busy[port] = 0
        if queue[port] and not busy[port]:
            queue[port] -= 1
            busy[port] = 1
            hops += 1
            heapq.heappush(heap, (now + 88, 1, port))
            if port < 2:
                heapq.heappush(heap, (now + 1088, 0, port + 1))
    return hops


def fat_tree(scheme: Mpcc | Hpcc) -> Row:
    """10 ms of Fig. 5.5 at 60 % load of WebSearch; the peer is the time that it may take."""
    flows = (Flow(id="search", offers=Sizes(load=0.6), sender=scheme),)
    scenario = Scenario(name="fat tree", network=FatTree(), flows=flows, duration=0.01)
    turns = alternate(lambda: simulate_packets(scenario), lambda: None, 3, clock=process_time)
    hops = hops_of(turns.answers[0])
    speed = hops / min(turns.ours) / 1e6
    return Row(
        f"fabric, 10 ms of the fat tree at 60 %, {type(scheme).__name__}",
        f"{min(turns.ours):.3g} to {max(turns.ours):.3g} s",
        f"{hops / 1e6:.3g}e6 packet hops",
        f"{speed:.3g}e6 hops/s",
        "",
        "< 60 s, >= 2e6 hops/s",
        max(turns.ours) < 60.0 and speed >= 2.0,
    )


def k_ary(k: int) -> Scenario:
    """1 ms of the fat tree of switches with k ports at 30 % load of WebSearch."""
    return Scenario(
        name=f"fat tree of {k}-port switches",
        network=FatTree.k_ary(k),
        flows=(Flow(id="search", offers=Sizes(load=0.3), sender=Mpcc(variant="delayed")),),
        duration=1e-3,
    )


def set_up(k: int) -> Row:
    """Ports, flows and their paths; the peer knows distances only."""
    scenario = k_ary(k)
    turns = alternate(lambda: fabric_problem(scenario), lambda: by_networkx(scenario), 3, clock=process_time)
    hosts, flows = scenario.network.hosts, len(turns.answers[0][1].flows.size)
    return against(
        f"fabric, set-up of {hosts} hosts, {flows} flows",
        "networkx, distances to each rack",
        turns,
        "<= 2 s",
        "distances alone",
    )


def by_networkx(scenario: Scenario) -> int:
    """Entries of a table of distances between switches."""
    net = fabric(scenario.network)
    links = nx.Graph(zip(net.source[net.hosts :].tolist(), net.target[net.hosts :].tolist(), strict=True))
    racks = np.unique(net.target[: net.hosts]).tolist()
    return sum(len(nx.single_source_shortest_path_length(links, rack)) for rack in racks)


def memory() -> Row:
    """A process of its own, with Python, NumPy and Numba."""
    command = [sys.executable, str(Path(__file__).resolve())]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=tempfile.gettempdir(), text=True)
    took = json.loads(done.stdout)
    return Row(
        "fabric, 1 ms of 1024 hosts at 30 %, in a process of its own",
        f"{took['processor_s']:.3g} s, {took['peak_gb']:.2f} GB",
        f"{took['hops'] / 1e6:.3g}e6 packet hops",
        f"{took['hops'] / took['processor_s'] / 1e6:.3g}e6 hops/s",
        "",
        "< 1 GB",
        took["peak_gb"] < 1.0,
    )


if __name__ == "__main__":
    start = process_time()
    hops = hops_of(simulate_packets(k_ary(16)))
    print(json.dumps({"hops": hops, "processor_s": process_time() - start, "peak_gb": peak_gb()}))
