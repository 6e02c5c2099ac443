"""Hosts whose flows share a port: turns, acknowledgements first, one packet at a time on a wire, rows used again."""

from __future__ import annotations

import numpy as np
import pytest
from fabric_support import counted, data_centre, finish_ns, longest_queue

from netctrl.laws.window.records import Dcqcn, Dctcp, FixedWindow, Hpcc, Mpcc, Scheme, Timely
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.fabric.topology import Dumbbell, FatTree, Packets
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Incast, Sizes
from netctrl.scenario.transfers import residual
from netctrl.sim.packet.fabric import ROWS, fabric_problem
from netctrl.sim.packet.run import run_packets, simulate_packets
from netctrl.sim.packet.state import META

RATE, DELAY = 1e10, 1e-6


def both_ways(scheme: Scheme, senders: int = 4, duration: float = 2e-3, **network) -> Scenario:
    """Two flows from each sender to one receiver, and one back from there to each."""
    flows = [Flow(id=f"f{i}", source=i, target=senders, offers=2e5 + 1234 * i, start=1e-5 * i) for i in range(senders)]
    flows += [Flow(id=f"g{i}", source=i, target=senders, offers=1e5 + 77 * i, start=0.7e-5 * i) for i in range(senders)]
    flows += [Flow(id=f"b{i}", source=senders, target=i, offers=1e5 + 99 * i, start=0.3e-5 * i) for i in range(senders)]
    topology = Dumbbell(senders=senders, receivers=1, host_rate=RATE, delay=DELAY)
    return data_centre(topology, scheme, *flows, duration=duration, **network)


def nanoseconds(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def tree(scheme: Scheme, load: float, incast: float) -> Scenario:
    flows = (
        Flow(id="p", offers=Sizes(distribution="FB_Hadoop", load=load)),
        Flow(id="i", offers=Incast(senders=8, size=incast, interval=5e-5)),
    )
    return data_centre(FatTree(), scheme, *flows, duration=1e-4)


THRESHOLD = Dcqcn(mark_low=29_999.0, mark_high=3e4, mark_most=1.0, threshold_rate=RATE)
KEPT = {
    "hpcc": (
        both_ways(Hpcc()),
        nanoseconds("1090960 754690 394790 408836 408756 878091 411753 1197529 658455 1202415 686678 1114698"),
        (0, 0, 68254, 0),
    ),
    "mpcc": (
        both_ways(Mpcc()),
        nanoseconds("1172807 778181 462878 484293 494600 741762 474052 1166840 790778 1180330 777301 1178996"),
        (0, 0, 50458, 0),
    ),
    "mpcc, delayed": (
        both_ways(Mpcc(variant="delayed", window=3e4)),
        nanoseconds("1148624 771244 543518 478278 489056 755127 469646 1114275 760610 1119129 718831 1125551"),
        (0, 0, 50458, 0),
    ),
    "dctcp": (
        both_ways(Dctcp(threshold=3e4, threshold_rate=RATE)),
        nanoseconds("1031939 598645 369184 383494 389020 668299 390775 1005548 673489 1031101 754998 980182"),
        (0, 443, 87684, 0),
    ),
    "dcqcn": (
        both_ways(THRESHOLD),
        nanoseconds("-1 915566 337398 349958 353734 1136055 355563 -1 1248368 -1 1488034 -1"),
        (0, 742, 472498, 0),
    ),
    "timely": (
        both_ways(Timely(), duration=3e-3),
        nanoseconds("-1 642646 337398 349958 353734 653788 355563 -1 668344 949944 682998 944133"),
        (0, 0, 827440, 0),
    ),
    "no control, paused": (
        both_ways(FixedWindow(), 6, pfc=Pfc(pause=5e4, resume=4e4)),
        nanoseconds(
            "1549541 1030855 543602 571056 575127 1022055 580315 1546901 581749 "
            "1015753 582382 1598395 1057520 1147114 1613117 1081668 1648266 1653762"
        ),
        (0, 0, 308555, 6844940),
    ),
    "no control, losses": (
        both_ways(FixedWindow(), 6, duration=8e-3, buffer=5e4),
        nanoseconds(
            "4428182 6053614 534398 559356 563193 4305862 567991 2680126 569347 "
            "2330090 569909 6027214 2146705 5041006 1253728 3268771 3052949 3419467"
        ),
        (4689, 0, 49985, 0),
    ),
}
"""Finish times in order of start [ns]; packets sent again and marked, the longest queue [byte], and all pauses [ns]: of
the kernel that data centres had for themselves, once no packet began there on a busy wire."""


@pytest.mark.parametrize("case", KEPT)
def test_flows_end_at_the_nanosecond_at_which_they_ended_in_a_kernel_of_their_own(case) -> None:
    scenario, finish, (again, marked, longest, paused) = KEPT[case]
    result = simulate_packets(scenario)
    counts = counted(result)
    assert tuple(finish_ns(result).tolist()) == finish
    assert (counts["again"], counts["marked"]) == (again, marked)
    assert longest_queue(result) == longest
    assert round(1e9 * result["paused", "network"]) == paused
    assert residual(result.tables["counts"]) == (0, 0)


@pytest.mark.parametrize(
    ("scheme", "load", "incast", "done", "total", "hops"),
    [
        (Mpcc(), 0.5, 3e4, 96, 5234055, 21204),
        (FixedWindow(), 0.6, 3e4, 114, 6107193, 34640),
        (Dctcp(threshold=3e4, threshold_rate=RATE), 0.6, 5e4, 114, 6325150, 38416),
    ],
    ids=["mpcc", "no control", "dctcp"],
)
def test_so_do_flows_of_a_fat_tree(scheme, load, incast, done, total, hops) -> None:
    result = simulate_packets(tree(scheme, load, incast))
    ended = finish_ns(result)
    ended = ended[ended >= 0]
    assert (len(ended), ended.sum(), counted(result)["hops"]) == (done, total, hops)


# --- wires ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flows", [1, 2, 3])
def test_what_one_host_sends_never_waits_at_switches_of_its_rate(flows) -> None:
    """Two hosts send to each other, and packets and acknowledgements are as long as a link's delay: all comes at the
    very time at which a wire is free. Two packets that begin then would wait for each other at the next port."""
    packets = Packets(payload=1000, header=48, ack=1048, telemetry=0)
    groups = [
        Flow(id=f"h{source}-{i}", source=source, target=1 - source, offers=40_000)
        for source in (0, 1)
        for i in range(flows)
    ]
    topology = Dumbbell(senders=1, receivers=1, host_rate=RATE, delay=0.8384e-6, packets=packets)
    result = simulate_packets(data_centre(topology, FixedWindow(), *groups, duration=2e-3))
    assert (finish_ns(result) >= 0).all()
    assert longest_queue(result) == 0
    assert result.totals["departed"][0, :2].tolist() == [2 * flows * 40 * 1048] * 2


def from_one_host(*sizes: float) -> Result:
    groups = [Flow(id=f"f{i}", source=0, target=1 + i, offers=size) for i, size in enumerate(sizes)]
    topology = Dumbbell(senders=1, receivers=len(sizes), host_rate=RATE, delay=DELAY)
    return simulate_packets(data_centre(topology, FixedWindow(), *groups, duration=5e-3))


@pytest.mark.parametrize("count", [2, 5])
def test_flows_of_a_host_take_turns(count) -> None:
    """Of n flows of m packets flow i sends its last one as packet n (m - 1) + i of all, from 0. The first one has begun
    a packet, and waits for its next turn, when the others start: it has sent two when they have their first turn."""
    packets, wire = 50, round((1000 + 48 + 52) * 8e9 / RATE)
    result = from_one_host(*[1000.0 * packets] * count)
    before = count * (packets - 1) + np.arange(count)
    before[0] = count * (packets - 2) + 1
    np.testing.assert_array_equal(finish_ns(result), (before + 3) * wire + 3 * round(DELAY * 1e9))


def test_a_short_flow_gets_its_turns_beside_a_long_one() -> None:
    """Ten packets, of which the first is the third of all, and every other one from there on."""
    wire = round((1000 + 48 + 52) * 8e9 / RATE)
    result = from_one_host(1e6, 1e4)
    assert finish_ns(result)[1] == (2 + 2 * 9 + 3) * wire + 3 * round(DELAY * 1e9)


def test_acknowledgements_go_before_data() -> None:
    """A host that sends all the time answers at once: after what is on its wire, an acknowledgement of its own has no
    other before it."""
    groups = (
        Flow(id="data", source=1, target=0, offers=1e6),
        Flow(id="probe", source=0, target=1, offers=1000, start=1e-4),
    )
    topology = Dumbbell(senders=1, receivers=1, host_rate=RATE, delay=DELAY)
    scenario = data_centre(topology, FixedWindow(), *groups, duration=5e-3, watch=Watch(flows=(1,)))
    trip = round(1e9 * simulate_packets(scenario).tables["acknowledgements"]["rtt"][0])
    full, ack = (round(size * 8e9 / RATE) for size in (1100, 98))
    alone = 3 * (full + ack) + 6 * round(DELAY * 1e9)
    # The switches' ports towards the prober have a packet on the wire and at most one before the acknowledgement.
    assert alone < trip <= alone + 3 * full


# --- rows -------------------------------------------------------------------------------------------------------------


def test_rows_of_flows_that_are_over_are_used_again() -> None:
    """Rows follow what goes on, not what has been: thousands of flows in the first ones."""
    scenario = data_centre(
        FatTree(hosts_per_rack=2),
        Mpcc(),
        Flow(id="p", offers=Sizes(distribution="FB_Hadoop", load=0.3)),
        duration=2e-2,
        retransmission_timeout=1e-4,
    )
    ready, plan = fabric_problem(scenario)
    state = run_packets(ready, 0.0)
    assert len(plan.flows.size) > 5 * ROWS
    assert len(state.flow) <= 2 * ROWS
    assert state.meta[META["rows_left"]] > 0
    assert (state.hosts.transfers.transfer[:, 3] >= 0).mean() > 0.95
