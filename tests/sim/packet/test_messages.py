"""Data-centre senders of the packet engine: against topologies' hosts, ns-3, closed forms; books that balance."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.engines.engine import supports
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.aqm.threshold import ThresholdQueue
from netctrl.laws.window.records import Dcqcn, Dctcp, FixedWindow, Hpcc, Mpcc, Timely, law_of
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.fabric.topology import Dumbbell
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.files import scenario_from
from netctrl.scenario.links import Change, Link
from netctrl.scenario.read import read_scenario_file as read_scenario
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow, Host
from netctrl.scenario.tcp_aqm.offers import Stream, Web
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import run_packets, simulate_packets
from netctrl.sim.packet.state import FLOW, META

RATE, DELAY = 1e10, 1e-6
PAYLOAD, HEADER, ACK, TELEMETRY = 1000, 48, 46, 52


def line(id: str, source: str, target: str, capacity=RATE, **changed) -> Link:
    return Link(**{"id": id, "source": source, "target": target, "capacity": capacity, "delay": DELAY} | changed)


def dumbbell(scheme, senders=4, size=2e5, apart=0.0, *, mark=None, link_rate=RATE, duration=5e-3, **changed):
    """The same as a topology and as links: flows of slightly different sizes from as many hosts to one."""
    sizes, starts = [size + 1234 * i for i in range(senders)], [apart * i for i in range(senders)]
    measures = {"senders": senders, "receivers": 1, "host_rate": RATE, "link_rate": link_rate, "delay": DELAY}
    fabric = Scenario(
        name="dumbbell",
        network=Dumbbell(watch=Watch(ports=("s0>s1",)), **measures, **changed),
        flows=tuple(
            Flow(id=f"f{i}", source=i, target=senders, offers=n, sender=scheme, start=start)
            for i, (n, start) in enumerate(zip(sizes, starts, strict=True))
        ),
        duration=duration,
        interval=1e-5,
    )
    queue = DropTailQueue() if mark is None else ThresholdQueue(threshold=mark)
    buffer, pfc = fabric.network.buffer, fabric.network.pfc
    links = (
        line("up", "s0", "s1", link_rate, queue=queue, buffer=buffer, pfc=pfc),
        line("down", "s1", "h", queue=queue, buffer=buffer),
        line("h-up", "h", "s1", pfc=pfc),
        line("back", "s1", "s0", link_rate, buffer=buffer, pfc=pfc),
        *(line(f"back{i}", "s0", f"h{i}", buffer=buffer) for i in range(senders)),
    )
    flows = tuple(
        Flow(
            id=f"f{i}",
            path=("up", "down"),
            ack_path=("h-up", "back", f"back{i}"),
            rtt=6 * DELAY,
            count=1,
            offers=n,
            start=start,
            sender=scheme,
            host=Host(rate=RATE, delay=DELAY, pfc=pfc, flow_timeout=fabric.network.flow_timeout),
        )
        for i, (n, start) in enumerate(zip(sizes, starts, strict=True))
    )
    full = PAYLOAD + HEADER + (TELEMETRY if law_of(scheme).telemetry else 0)
    whole = Scenario(name="links", duration=duration, interval=1e-5, links=links, flows=flows, packet_size=full)
    return fabric, whole


def finished(result) -> np.ndarray:
    """Start and end of each flow that is over, in order [ns]."""
    start, end = result.transfers["start"], result.transfers["start"] + result.transfers["duration"]
    rows = np.rint(1e9 * np.column_stack([start, end])[np.isfinite(end)])
    return rows[np.lexsort(rows.T)].astype(np.int64)


MARKED = Dcqcn(mark_low=29_999.0, mark_high=3e4, mark_most=1.0, threshold_rate=RATE)  # a threshold of 30 kB
CASES = {
    "hpcc": dumbbell(Hpcc(), 8, apart=2e-5),
    "hpcc, a slow link": dumbbell(Hpcc(paced=False), link_rate=5e9),
    "hpcc, paused": dumbbell(Hpcc(), 8, pfc=Pfc(pause=5e3, resume=4e3)),
    "timely": dumbbell(Timely(), 6, apart=3e-5, duration=3e-2),
    "mpcc": dumbbell(Mpcc(), 6, apart=1e-5, flow_timeout=1e-4),
    "mpcc, delayed": dumbbell(Mpcc(variant="delayed", window=3e4), 6, flow_timeout=1e-4),
    "dctcp": dumbbell(Dctcp(threshold=3e4), 6, mark=3e4),
    "dcqcn": dumbbell(MARKED, 6, mark=3e4),
    "no control, paused": dumbbell(FixedWindow(), 8, pfc=Pfc(pause=5e4, resume=4e4)),
    "no control, losses": dumbbell(FixedWindow(), 8, buffer=5e4, duration=2e-2),
}


@pytest.mark.parametrize("case", CASES)
def test_flows_and_queue_are_those_of_hosts_whose_flows_take_turns(case):
    """To the nanosecond and to the byte: finish times, the queue each 10 us, packets sent again. A port of a flow's own
    and a host's with one flow are two paths through the engine."""
    fabric, links = CASES[case]
    theirs, state = simulate_packets(fabric), run_packets(packet_problem(links), 10.0)
    ours = simulate_packets(links)
    np.testing.assert_array_equal(finished(ours), finished(theirs))
    assert len(finished(ours)) == len(fabric.flows)
    queue = theirs.series["backlog", "s0>s1"]
    np.testing.assert_array_equal(ours.series["backlog"][0, : len(queue)], queue)
    assert queue.max() > 10e3
    assert state.flow[:, FLOW["again"]].sum() == theirs["packets sent again", "network"]
    assert ours.series["lost"].sum() == theirs.totals["lost"].sum()


@pytest.mark.needs("ns3")
def test_finish_times_are_those_of_ns3():
    fabric, links = dumbbell(Hpcc(), 3, apart=2e-5, duration=1e-3)
    np.testing.assert_array_equal(finished(simulate_packets(links)), finished(netctrl.simulate(fabric, "ns3")))


# --- closed forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sender", ["fixed", "dcqcn"])
@pytest.mark.parametrize("size", [1, 1000, 1001, 987_654])
def test_a_flow_alone_at_line_rate_takes_its_time_on_the_wires(sender, size):
    """m packets, the last of which waits for the one before it on the slower second wire; DCQCN hears no marks."""
    slow, extra = 4e9, TELEMETRY if sender == "fixed" else 0
    links = (line("one", "a", "b"), line("two", "b", "c", slow))
    flow = Flow(id="f", path=("one", "two"), rtt=12e-6, start=3e-6, count=1, offers=size, sender=sender)
    full = PAYLOAD + HEADER + extra
    found = simulate_packets(
        Scenario(name="one", duration=0.01, interval=1e-3, links=links, flows=(flow,), packet_size=full)
    )
    count = -(-size // PAYLOAD)
    last = size - (count - 1) * PAYLOAD + HEADER + extra
    first = [8e9 * full / rate for rate in (RATE, RATE, slow)]  # its own port, and two links
    alone = sum(8e9 * last / rate for rate in (RATE, RATE, slow))
    behind = sum(first) + (count - 2) * first[-1] + 8e9 * last / slow
    path = 4e3 + 2e3  # half of what the links leave of the round trip, and the links
    assert found.transfers["duration"][0] * 1e9 == pytest.approx(
        path + (behind if count > 1 else alone), abs=2.0 * count
    )
    assert found.transfers["start"][0] == 3e-6
    assert found.transfers["size"][0] == size


def long(sender, count, links, duration, path=("one",), **changed) -> Scenario:
    flows = Flow(**{"id": "f", "path": path, "rtt": 2e-5, "count": count, "sender": sender} | changed)
    return Scenario(name="long", duration=duration, warmup=duration / 2, interval=1e-5, links=links, flows=(flows,))


@pytest.mark.parametrize("eta", [0.8, 0.95])
def test_hpcc_settles_at_its_target_utilization(eta):
    """eta of the link and an empty queue, also after the link has become another, which telemetry tells."""
    changes = (Change(at=1e-2, link="one", capacity=4e9),)
    scheme = Hpcc(target=eta, increase=1.0)
    whole = long(scheme, 4, (line("one", "a", "b"),), 2e-2, rtt=1e-4)
    found = simulate_packets(whole.replace(changes=changes))
    for first, last in ((5e-3, 1e-2), (1.5e-2, 2e-2)):
        link = found.between(first, last).of(found.links[0])
        assert link["utilization"] == pytest.approx(eta, rel=0.02)
        assert link["backlog"] < 2_000.0


def test_mpcc_counts_the_flows_of_others_too():
    """Feed-forward, its window is the path's bandwidth-delay product over N: 1 of MPCC and 4 of UDP are 5."""
    others = Flow(id="udp", path=("one",), count=4, offers=Stream(rate=1e9))
    alone = long(Mpcc(variant="feed-forward"), 1, (line("one", "a", "b"),), 2e-3, host=Host(flow_timeout=1e-4))
    shared = alone.replace(flows=(*alone.flows, others))
    for whole, flows in ((alone, 1), (shared, 5)):
        state = run_packets(packet_problem(whole), 10.0)
        bdp, window = state.hosts.path[0, 1], state.hosts.law[0, 0]
        assert window == pytest.approx(bdp / flows)


@pytest.mark.parametrize("sender", ["reno", "cubic", "bbr", "hpcc"])
def test_a_flow_of_a_few_packets_takes_a_round_trip_more_with_tcp(sender):
    """8 of 1000 B: TCP asks first; then all are on the wire at once, as the window is 10."""
    telemetry = sender == "hpcc"
    size = 8 * (1000 - (HEADER + TELEMETRY if telemetry else 40))
    flows = Flow(id="f", path=("one",), rtt=0.01, start=0.5, count=3, offers=size, sender=sender)
    links = (line("one", "a", "b", 1e9, delay=1e-3),)
    found = simulate_packets(Scenario(name="few", duration=1.0, links=links, flows=(flows,)))
    assert len(found.transfers["duration"]) == 3
    np.testing.assert_allclose(found.transfers["start"], 0.5, atol=1e-9)
    np.testing.assert_array_equal(found.transfers["size"], size)
    trips = 0.5 if telemetry else 1.5
    paced = 0.01 if sender == "bbr" else 0.0  # it spreads its first window
    at_least, at_most = trips * 0.01 + 8 * 8e-6, trips * 0.01 + paced + 3 * 9 * 8e-6 + 1e-6
    assert (found.transfers["duration"] >= at_least).all()
    assert (found.transfers["duration"] <= at_most).all()
    assert found.series["payload"].sum() == 3 * size


# --- beside others ----------------------------------------------------------------------------------------------------


def balanced(whole: Scenario) -> tuple:
    found = simulate_packets(whole)
    grown = np.diff(found.series["backlog"], prepend=0.0, axis=1)
    np.testing.assert_array_equal(found.series["arrived"], found.series["departed"] + found.series["lost"] + grown)
    state = run_packets(packet_problem(whole), float(whole.initial_window))
    assert state.meta[META["live"]] + state.meta[META["left"]] == len(state.packet)
    rows = state.flow[:, [FLOW["group"], FLOW["received"]]]
    for g in range(len(whole.flows)):
        assert found.series["payload"][g].sum() == rows[rows[:, 0] == g, 1].sum() > 0
    return found, state


@pytest.mark.parametrize("other", ["cubic", "bbr"])
def test_two_of_hpcc_and_two_of_tcp_over_two_links_with_pie(other):
    """No packet is lost from the books; HPCC yields to the queue that the others need."""
    queue = PieQueue(target=1e-3, update=1e-3)
    links = tuple(
        Link(id=id, source=source, target=target, capacity=1e9, delay=1e-4, buffer=5e5, queue=queue)
        for id, source, target in (("one", "a", "b"), ("two", "b", "c"))
    )
    groups = tuple(Flow(id=sender, path=("one", "two"), rtt=2e-3, count=2, sender=sender) for sender in ("hpcc", other))
    found, state = balanced(Scenario(name="mixed", duration=0.5, warmup=0.1, interval=1e-3, links=links, flows=groups))
    first, second = (found["goodput", name] for name in found.flows)
    assert found["utilization", found.links[0]] > 0.9
    assert first < second
    assert state.meta[META["dropped"]] > 0


@pytest.mark.parametrize("sender", ["hpcc", "dcqcn", Mpcc(window=3e4)])
def test_pages_are_loaded_by_data_centre_senders(sender):
    web = Flow(
        id="web", path=("one",), rtt=(1e-4, 2e-4), count=20, sender=sender, offers=Web(think_time=1e-3, mean_object=2e4)
    )
    links = (line("one", "a", "b", 1e9, buffer=3e4),)
    found, state = balanced(
        Scenario(name="web", duration=0.1, interval=1e-3, links=links, flows=(web,), packet_size=1100)
    )
    assert len(found.transfers["duration"]) > 100
    assert (found.transfers["duration"] >= 0.5e-4 + found.transfers["size"] * 8.0 / 1e9).all()
    assert state.flow[:, FLOW["again"]].sum() > 0


def test_a_pause_keeps_tcps_packets_where_there_is_room():
    """Priority flow control in front of a slow link with a small buffer: all losses are at the first link."""
    pfc = Pfc(pause=2e4, resume=1e4)
    links = (
        Link(id="one", source="a", target="b", capacity=1e9, delay=1e-5, buffer=2e5, pfc=pfc),
        Link(id="two", source="b", target="c", capacity=1e8, delay=1e-5, buffer=3e4),
    )
    flows = Flow(id="f", path=("one", "two"), rtt=1e-3, count=5, sender="cubic")
    whole = Scenario(name="paused", duration=0.5, interval=1e-3, links=links, flows=(flows,))
    found, _ = balanced(whole)
    open_ = whole.replace(links=(msgspec.structs.replace(links[0], pfc=None), links[1]))
    assert found.series["lost"][1].sum() == 0.0 < found.series["lost"][0].sum()
    assert found.series["backlog"][1].max() < 2e4 + 1e9 * 2e-5 / 8.0 + 3000.0
    assert balanced(open_)[0].series["lost"][1].sum() > 0.0
    assert found["utilization", found.links[1]] > 0.99


@pytest.mark.parametrize(
    "host", ["", 'host = { rate = "2Gbit", ack = "64B", pfc = { pause = "9kB", resume = "8kB" } }']
)
def test_a_file_says_it_all(host, tmp_path):
    path = tmp_path / "rack.toml"
    path.write_text(FILE.format(host=host), encoding="utf-8")
    whole = read_scenario(path)
    assert whole.links[0].pfc == Pfc(pause=1e5, resume=9e4)
    assert whole.flows[0].sender == Hpcc(target=0.9)
    assert whole.flows[0].size == 5e5
    assert whole.flows[0].host == (Host(rate=2e9, ack=64, pfc=Pfc(pause=9e3, resume=8e3)) if host else None)
    assert scenario_from(msgspec.json.decode(msgspec.json.encode(whole))) == whole
    found = netctrl.simulate(whole)
    assert found.simulator == "packet"
    assert len(found.transfers["duration"]) == 2


FILE = """schema = "netctrl.scenario/3"
name = "rack"
duration = "10ms"
interval = "10us"
packet_size = "1100B"

[[links]]
id = "one"
source = "a"
target = "b"
capacity = "10Gbit"
pfc = {{ pause = "100kB", resume = "90kB" }}

[[flows]]
id = "f"
path = ["one"]
rtt = "8us"
count = 2
offers = "500kB"
sender = {{ kind = "hpcc", target = 0.9 }}
{host}
"""


# --- what isn't there -------------------------------------------------------------------------------------------------


def one(**changed) -> Flow:
    return Flow(**{"id": "f", "path": ("one",), "rtt": 1e-3, "count": 1} | changed)


@pytest.mark.parametrize(
    ("flows", "links", "what"),
    [
        (one(sender="hpcc"), {}, "hpcc"),
        (one(sender=Dctcp()), {}, "dctcp"),
        (one(offers=1e4), {}, r"flows of finite size \(flows.f.offers\)"),
        (one(), {"pfc": Pfc()}, r"priority flow control \(links.one.pfc\)"),
    ],
    ids=["word", "table", "size", "pfc"],
)
def test_other_engines_say_what_they_lack(flows, links, what):
    whole = Scenario(name="one", duration=1.0, links=(line("one", "a", "b", 1e8, **links),), flows=(flows,))
    lacking = supports(whole)
    assert lacking["packet"] is None
    for engine in ("fluid", "ns3"):
        with pytest.raises(InvalidValue, match=what):
            netctrl.simulate(whole, engine)


@pytest.mark.parametrize(
    ("make", "field", "says"),
    [
        (lambda: one(host=Host()), "host", "flows of reno have no host port"),
        (lambda: one(sender="hpcc", offers=0), "offers", "a size from 1B"),
        (lambda: Host(ack=1.5), "ack", "whole number of bytes"),
        (lambda: packet(one(sender="hpcc"), packet_size=100), "packet_size", "more bytes than the 100"),
        (lambda: packet(one(sender="hpcc", host=Host(delay=1.0))), "flows.f.host.delay", "at most 0.001 s"),
        (lambda: packet(one(sender="hpcc", path=tuple("abcdef"))), "flows.f.path", "at most 5 links"),
    ],
    ids=["host", "size", "ack", "packet", "delay", "path"],
)
def test_what_cannot_be_is_named(make, field, says):
    with pytest.raises(InvalidValue, match=says) as refused:
        make()
    assert refused.value.argument == field


def packet(flows: Flow, **changed):
    nodes = ["n", *"abcdef"]
    links = tuple(Link(id=b, source=a, target=b, capacity=1e8) for a, b in pairwise(nodes))
    if flows.path == ("one",):
        links = (Link(id="one", source="a", target="b", capacity=1e8),)
    return simulate_packets(Scenario(name="one", duration=1.0, links=links, flows=(flows,), **changed))
