"""Links with several queues in the packet engine: against queueing theory, shares, and a plain second computation."""

from __future__ import annotations

import re

import numpy as np
import pytest
from link_queues import FairQueues, Queues, run

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.codel import CodelParameters, CodelQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.disciplines import (
    CakeQueue,
    CbqQueue,
    DrrQueue,
    FqCodelQueue,
    FqPieQueue,
    KernelQueue,
    PrioQueue,
    WfqQueue,
)
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.model.io.provenance import provenance
from netctrl.ns3.program import compile_program, find_ns3
from netctrl.ns3.tcp_aqm.read import run_program
from netctrl.ns3.tcp_aqm.render import render
from netctrl.scenario.links import Link
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream, Web
from netctrl.sim.fluid.traffic import draw_flows
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import run_packets, simulate_packets
from netctrl.sim.packet.state import FLOW, LINK, META

SIZE, RATE = 1000, 1e7
SERVICE = 8e-4
MS = 1_000_000


def link(queue, **changed) -> Link:
    return Link(**{"id": "link", "source": "m", "target": "b", "capacity": RATE, "queue": queue} | changed)


def udp(name: str, load: float, path=("link",), spacing="poisson", **changed) -> Flow:
    return Flow(id=name, path=path, ecn=False, offers=Stream(rate=load * RATE, spacing=spacing), **changed)


def scenario(links, *flows, duration=20.0, sample=1e-3, **changed) -> Scenario:
    links = links if isinstance(links, tuple) else (links,)
    return Scenario(
        name="queues", duration=duration, interval=sample, links=links, flows=flows, packet_size=float(SIZE), **changed
    )


# --- a plain second computation ---------------------------------------------------------------------------------------

WEIGHTS = (1.0, 2.5, 0.3, 1.0, 4.0)
CODEL = CodelParameters(5e-3, 2e-2)
MARKING = FqCodelQueue | CakeQueue | DualPi2Queue
KINDS = {
    "prio": (PrioQueue(bands=3), [0, 0, 0], None),
    "drr": (DrrQueue(), [round(SIZE * weight) for weight in WEIGHTS], None),
    "fq_codel": (FqCodelQueue(target=5e-3, interval=2e-2, quantum=1200, buckets=0), [1200] * 5, CODEL),
    "cake": (CakeQueue(target=5e-3, rtt=2e-2), [1514] * 5, CODEL._replace(cobalt=1.0)),
    "wfq": (WfqQueue(), list(WEIGHTS), None),
    "cbq": (CbqQueue(shares=(0.2, 0.5, 0.3)), [0.2, 0.5, 0.3], None),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "loads",
    [(0.1, 0.1, 0.2, 0.3, 0.2), (0.01, 0.3, 0.3, 0.2, 0.6), (0.5, 0.03, 0.02, 0.5, 0.2), (0.9, 0.05, 0.02, 0.02, 0.3),
     (0.4, 0.4, 0.4, 0.4, 0.4)],
)  # fmt: skip
@pytest.mark.parametrize("limit", [20, 500])
def test_datagrams_leave_as_in_a_plain_computation(kind, loads, limit):
    """Five flows of evenly spaced datagrams, in each of 3000 ms as many as there: the same ones, and the same lost."""
    queue, quanta, codel = KINDS[kind]
    flows = [
        udp(f"u{i}", load, spacing="constant", priority=i % 4, weight=weight)
        for i, (load, weight) in enumerate(zip(loads, WEIGHTS, strict=True))
    ]
    ready = packet_problem(scenario(link(queue, buffer=limit * SIZE), *flows, duration=3.0))
    came = []
    for start, flow in zip(ready.state.agenda[:, 0], ready.state.agenda[:, 2], strict=True):
        q = min(flow % 4, 2) if kind in ("prio", "cbq") else flow
        came += [(int(time), int(q), SIZE) for time in range(start, 3_000 * MS, ready.state.flow[flow, FLOW["gap"]])]
    fair = kind in ("wfq", "cbq")
    plain = FairQueues(quanta, limit * SIZE) if fair else Queues(kind, quanta, limit * SIZE, codel)
    left = run(plain, sorted(came), round(SERVICE * 1e9), SIZE, 3_000 * MS)
    state = run_packets(ready, 10.0)
    carried = np.diff(state.carried, prepend=0.0, axis=1) / (SIZE - 40)
    bands = [[0, 4], [1], [2, 3]] if kind in ("prio", "cbq") else [[0], [1], [2], [3], [4]]
    for q, members in enumerate(bands):
        times = np.array([time for time, which in left if which == q], dtype=int) // MS
        np.testing.assert_array_equal(carried[members].sum(axis=0), np.bincount(times, minlength=3000)[:3000])
    assert state.meta[META["dropped"]] == sum(plain.lost)
    assert state.link[0, LINK["waited_ns"]] == plain.waited  # the very same ones were dropped
    assert fair or (sum(plain.lost) > 0) == (sum(loads) > 1.0)


# --- priorities -------------------------------------------------------------------------------------------------------


def waits(result: Result, groups: dict[str, str]) -> list[float]:
    """Mean wait of each group's packets [service times], by Little's law; its own link before tells what came."""
    rows = {each.id: row for row, each in enumerate(result.scenario.links)}
    found = []
    for g, name in enumerate(groups.values()):
        came = result.series["departed"][rows[name]].cumsum() / SIZE
        there = came - result.series["payload"][g].cumsum() / (SIZE - 40)
        found.append(there.mean() / (came[-1] / result.time_s[-1]) / SERVICE - 1.0)
    return found


def two_classes(queue, loads, seed=1, duration=400.0) -> Result:
    ways = tuple(Link(id=f"in{i}", source=f"s{i}", target="m", capacity=1e12) for i in range(len(loads)))
    flows = [udp(f"u{i}", load, (f"in{i}", "link"), priority=i) for i, load in enumerate(loads)]
    return simulate_packets(scenario((*ways, link(queue)), *flows, duration=duration, seed=seed))


@pytest.mark.parametrize("loads", [(0.2, 0.6), (0.5, 0.3), (0.3, 0.3, 0.3)])
def test_priorities_wait_as_cobham_says(loads):
    """Poisson datagrams, priorities that don't interrupt: W_k = R/((1 - s_(k-1)) (1 - s_k)), s_k the load up to k.

    R, what is left of the packet on the wire, is load/2 service times. Source: Cobham, Operations Research 2(1), 1954.
    """
    names = {f"u{i}": f"in{i}" for i in range(len(loads))}
    found = np.array([waits(two_classes(PrioQueue(bands=3), loads, seed), names) for seed in (1, 2, 3, 4)])
    upto = np.cumsum([0.0, *loads])
    expected = upto[-1] / 2.0 / ((1.0 - upto[:-1]) * (1.0 - upto[1:]))
    half = 3.18 * found.std(axis=0, ddof=1) / 2.0
    np.testing.assert_array_less(abs(found.mean(axis=0) - expected), np.maximum(1.5 * half, 0.02 * expected))
    assert (half < 0.15 * expected).all()


def test_bulk_of_the_last_band_does_not_touch_the_first():
    """A TCP flow fills the buffer behind a sparse one, of which nothing is lost, and which waits for one packet."""
    ways = (Link(id="in", source="s", target="m", capacity=1e12),)
    bulk = Flow(id="bulk", path=("link",), rtt=0.02, count=4, priority=1)
    whole = scenario((*ways, link(PrioQueue(), buffer=2e4)), udp("sparse", 0.05, ("in", "link")), bulk)
    result = simulate_packets(whole)
    assert waits(result, {"sparse": "in"})[0] < 1.0
    assert result.series["payload"][0].sum() / 960 >= result.series["departed"][0].sum() / 1000 - 3
    assert result.between(2.0)["utilization", result.links[1]] > 0.99


# --- shares -----------------------------------------------------------------------------------------------------------


def shares(queue, *flows, **changed) -> np.ndarray:
    result = simulate_packets(scenario(link(queue, buffer=1e5), *flows, **changed))
    carried = result.series["payload"][:, len(result.time_s) // 4 :].sum(axis=1)
    return carried / carried.sum()


def jain(x: np.ndarray) -> float:
    return float(x.sum() ** 2 / (len(x) * (x**2).sum()))


@pytest.mark.parametrize("queue", [DrrQueue(), WfqQueue()])
def test_weights_are_shares_under_overload(queue):
    """1 : 2.5 : 4, where each alone would fill the link; one that asks for less than its share gets that."""
    flows = [udp(f"u{i}", 1.2, weight=weight) for i, weight in enumerate((1.0, 2.5, 4.0))]
    np.testing.assert_allclose(shares(queue, *flows), np.array([1.0, 2.5, 4.0]) / 7.5, rtol=5e-3)
    found = shares(queue, *flows, udp("modest", 0.1, spacing="constant"))
    np.testing.assert_allclose(found, [*(0.9 * np.array([1.0, 2.5, 4.0]) / 7.5), 0.1], rtol=5e-3)


@pytest.mark.parametrize("queue", [DrrQueue(), WfqQueue(), FqCodelQueue(), FqCodelQueue(buckets=0), CakeQueue()])
def test_flows_of_any_round_trip_and_sender_have_one_share(queue):
    """Jain's index near 1, where one FIFO leaves it far below."""
    flows = [
        Flow(id=f"f{i}", path=("link",), rtt=rtt, count=1, sender=sender)
        for i, (rtt, sender) in enumerate([(0.01, "reno"), (0.02, "cubic"), (0.05, "reno"), (0.1, "cubic")])
    ]
    fair = jain(shares(queue, *flows, duration=60.0, sample=0.1))
    assert fair > 0.98
    assert jain(shares(DropTailQueue(), *flows, duration=60.0, sample=0.1)) < 0.8 < fair


def test_classes_are_sure_of_their_shares():
    """Each class under overload gets its share, however many flows it has; what one leaves goes to the others so."""
    flows = [udp(f"u{i}", 1.2 / (1 + i), count=1 + i, priority=i) for i in range(3)]
    np.testing.assert_allclose(shares(CbqQueue(shares=(2, 5, 3)), *flows), [0.2, 0.5, 0.3], rtol=5e-3)
    modest = udp("u0", 0.05, spacing="constant", priority=0)
    found = shares(CbqQueue(shares=(2, 5, 3)), modest, *flows[1:])
    np.testing.assert_allclose(found, [0.05, 0.95 * 0.625, 0.95 * 0.375], rtol=5e-3)


@pytest.mark.parametrize("shares", [(1.0, 2.0), (1,), 3.0, (1.0, 0.0), (1.0, "x"), (1.0,) * 65])
def test_shares_that_are_none(shares):
    if shares == (1.0, 2.0):
        assert CbqQueue(shares=shares).shares == shares
        return
    with pytest.raises(InvalidValue, match=r"shares.*2 to 64 shares"):
        CbqQueue(shares=shares)


# --- FQ-CoDel ---------------------------------------------------------------------------------------------------------


def beside_bulk(queue, **changed) -> tuple[Result, float]:
    """A datagram each 20 ms beside eight TCP flows, and its wait [service times]."""
    ways = (Link(id="in", source="s", target="m", capacity=1e12),)
    bulk = Flow(id="bulk", path=("link",), rtt=(0.02, 0.08), count=8, ecn=False)
    sparse = udp("sparse", 0.04, ("in", "link"), spacing="constant")
    result = simulate_packets(scenario((*ways, link(queue, buffer=2e5, **changed)), sparse, bulk, duration=60.0))
    return result, waits(result, {"sparse": "in"})[0]


@pytest.mark.parametrize("buckets", [0, 1024])
def test_a_sparse_flow_waits_for_a_packet_under_fq_codel(buckets):
    """New queues come first: it waits for what is left of a packet on the wire; under CoDel and drop-tail for more."""
    result, wait = beside_bulk(FqCodelQueue(buckets=buckets))
    assert 0.4 < wait < 1.0
    assert result.between(10.0)["utilization", result.links[1]] > 0.97
    assert beside_bulk(CodelQueue())[1] > 5.0
    assert beside_bulk(DropTailQueue())[1] > 50.0


def test_a_flood_loses_its_own_packets():
    """Overflow takes from the longest queue: of the others nothing is lost, whatever comes when."""
    flood, modest = udp("flood", 3.0), udp("modest", 0.2, count=2)
    ready = packet_problem(scenario(link(FqCodelQueue(target=10.0, interval=10.0), buffer=3e4), flood, modest))
    state = run_packets(ready, 10.0)
    received, sent = state.flow[:, FLOW["received"]], state.flow[:, FLOW["sent"]]
    assert (sent[1:] - received[1:] <= 2).all()
    assert sent[0] - received[0] > 2 * received[0]


def test_a_flow_alone_in_fq_pie_has_linuxs_pie():
    """Packet by packet; with another flow each has a PIE of its own, whose state the other one doesn't move."""
    sent = {"target": 5e-3, "tupdate": 15e-3, "alpha": 4.0, "beta": 24.0, "ecn": 1.0}
    fair = FqPieQueue(target=5e-3, alpha=4.0, beta=24.0, buckets=0)
    flow = Flow(id="b", path=("link",), rtt=0.05, count=1)

    def left(queue, *flows):
        return simulate_packets(scenario(link(queue, buffer=1e6), flow, *flows, sample=0.01))

    one, other = (left(queue) for queue in (fair, KernelQueue(discipline="pie", parameters=sent)))
    np.testing.assert_array_equal(one.series["backlog"], other.series["backlog"])
    assert other.series["lost"].sum() > 0
    beside = left(fair, udp("u", 0.4))
    assert beside.series["payload"][1].sum() == pytest.approx(0.4 * RATE / 8.0 * 20.0 * (SIZE - 40) / SIZE, rel=0.03)


def test_flows_are_hashed_anew_by_each_seed():
    """Of 40 flows in 8 buckets some share one; which ones, the seed says. One bucket is one CoDel."""

    def carried(seed: int, buckets: int) -> np.ndarray:
        flows = udp("u", 2.0, count=40)
        ready = packet_problem(
            scenario(link(FqCodelQueue(buckets=buckets), buffer=1e5), flows, duration=5.0, seed=seed)
        )
        return run_packets(ready, 10.0).flow[:, FLOW["received"]]

    first, other = carried(1, 8), carried(2, 8)
    assert jain(first) < 0.95 < 0.99 < jain(carried(1, 0))
    assert np.corrcoef(first, other)[0, 1] < 0.5


@pytest.mark.parametrize(
    "queue",
    [
        PrioQueue(),
        WfqQueue(),
        CbqQueue(shares=(1.0, 3.0)),
        DrrQueue(),
        FqCodelQueue(buckets=4),
        FqCodelQueue(),
        FqPieQueue(target=2e-3, buckets=4),
        CakeQueue(bandwidth=RATE),
        DualPi2Queue(),
    ],
)
@pytest.mark.parametrize("ecn", [True, False])
@pytest.mark.parametrize("wild", [False, True])
def test_nothing_is_lost_from_the_books(queue, ecn, wild):
    """On each link arrivals are departures, losses and growth of the backlog; packets are in one place each."""
    web = Flow(id="web", path=("link",), rtt=(0.03, 0.1), count=10, ecn=ecn, priority=0, offers=Web(think_time=1.0))
    flows = Flow(id="b", path=("link",), rtt=0.05, count=5, stop=9.0, ecn=ecn, ack_path=("back",), priority=1)
    back = Link(id="back", source="b", target="m", capacity=2e5, buffer=3e3, queue=queue)
    more = {"loss": 0.02, "jitter": 5e-3, "delay": 0.01} if wild else {}
    whole = scenario((link(queue, buffer=4e4, **more), back), flows, web, duration=10.0, sample=0.1)
    found = simulate_packets(whole)
    grown = np.diff(found.series["backlog"], prepend=0.0, axis=1)
    np.testing.assert_array_equal(found.series["arrived"], found.series["departed"] + found.series["lost"] + grown)
    queues = {WfqQueue: 50, CbqQueue: 2}.get(type(queue), 1)  # each has a buffer of its own
    assert (found.series["backlog"][0] <= 4e4 * queues).all()
    state = run_packets(packet_problem(whole), 10.0)
    assert state.meta[META["live"]] + state.meta[META["left"]] == len(state.packet)
    np.testing.assert_array_equal(state.subqueue[:, 2].sum(), state.link[:, LINK["bytes"]].sum())
    assert len(found.transfers["duration"]) > 10
    # With losses of its own there is no queue that stays; PIE drops from a probability of .1 on.
    if not wild and not isinstance(queue, FqPieQueue):
        assert (found.series["marked"][0].sum() > 0) == (ecn and isinstance(queue, MARKING))


@pytest.mark.parametrize("engine", ["fluid", "ns3"])
@pytest.mark.parametrize("queue", [PrioQueue(), DrrQueue(), FqCodelQueue()])
def test_other_engines_say_who_has_them(engine, queue):
    whole = scenario(link(queue), Flow(id="bulk", path=("link",), rtt=0.05, count=2))
    said = f"queues of kind {queue.__struct_config__.tag}.*packet( or kernel)?, which has it"
    with pytest.raises(InvalidValue, match=said):
        netctrl.simulate(whole, engine)


@pytest.mark.needs("ns3")
def test_ns3_s_fq_codel_shares_alike(tmp_path):
    """Four flows and Web sessions, in a program for CoDel in whose place stands ns-3's FqCoDelQueueDisc."""
    line = {"id": "link", "source": "m", "target": "b", "capacity": RATE, "delay": 0.01, "buffer": 1.5e6}
    flows = [
        Flow(id=f"b{i}", path=("link",), rtt=rtt, count=1, ecn=False, start=(0.0, 1.0))
        for i, rtt in enumerate((0.03, 0.05, 0.1, 0.2))
    ]
    web = Flow(
        id="web",
        path=("link",),
        rtt=0.05,
        count=5,
        ecn=False,
        offers=Web(think_time=1.0, mean_object=3e3, max_object=1e4),
    )
    ours, theirs = (
        Scenario(
            name="fq",
            duration=60.0,
            warmup=10.0,
            links=(Link(**line, queue=queue),),
            flows=(*flows, web),
            packet_size=1500,
        )
        for queue in (FqCodelQueue(), CodelQueue())
    )
    made = provenance(argv=(), seed=1, inputs=(), libraries=("numpy",))
    files = render(theirs, draw_flows(theirs, merged=False), provenance=made)
    codel = re.compile(r"queue=ns3::CoDelQueueDisc\n(?:  .*\n)+")
    files["scenario.txt"], swapped = codel.subn("queue=ns3::FqCoDelQueueDisc\n  UseEcn=false\n", files["scenario.txt"])
    assert swapped == 1
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ns3 = find_ns3()
    compile_program(tmp_path, ns3)
    found, other = simulate_packets(ours), run_program(tmp_path, theirs, ns3=ns3, provenance=made)
    carried = [each.series["payload"][:4, each.time_s > 10.0].sum(axis=1) for each in (found, other)]
    np.testing.assert_allclose(*carried, rtol=0.06)
    (queue, mean), (their_queue, their_mean) = (
        (each["backlog", each.links[0]], each["response", "short objects"]) for each in (found, other)
    )
    assert mean == pytest.approx(their_mean, rel=0.06)
    assert queue - 1500.0 == pytest.approx(their_queue, rel=0.15)  # ns-3's device holds a packet besides
