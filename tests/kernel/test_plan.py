"""Plans and results as bytes; what of scenarios the kernel lacks."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.kernel.plan import PlanWriter, read_results
from netctrl.kernel.scenarios.lacks import scenario_lacks
from netctrl.kernel.scenarios.planner import plan_scenario
from netctrl.kernel.scenarios.queues import discipline_of
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.disciplines import CakeQueue, FqCodelQueue, FqPieQueue, KernelQueue
from netctrl.laws.window.records import Dctcp
from netctrl.linux.kernel import messages
from netctrl.linux.kernel.messages import ROOT, attributes
from netctrl.linux.kernel.queue_options import queue_options
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Web
from netctrl.sim.fluid.traffic import draw_flows


def test_records_are_aligned_and_read_back() -> None:
    plan = PlanWriter()
    plan.namespace()
    plan.sysctl(0, "net/ipv4/ip_forward", "1")
    plan.request(0, b"12345", "say something")
    records = list(read_results(plan.content()))
    assert [kind for kind, _ in records] == [1, 2, 3]
    assert all(len(body) % 8 == 0 for _, body in records)
    assert records[1][1].rstrip(b"\0") == struct.pack("=I", 0) + b"/proc/sys/net/ipv4/ip_forward\x001"
    assert plan.note(2) == "say something"
    assert plan.note(1) == ""


@pytest.mark.parametrize("cut", [4, 8, 20])
def test_results_that_end_within_a_record_are_refused(cut: int) -> None:
    content = struct.pack("=II", 5, 16) + bytes(16)
    assert [kind for kind, _ in read_results(content)] == [5]
    with pytest.raises(NetctrlError, match="end within a record"):
        list(read_results(content[:cut]))


@pytest.mark.parametrize("kind", ["pie", "dualpi2"])
def test_disciplines_are_told_that_options_contain_attributes(kind: str) -> None:
    """Linux 7.2's dualpi2 refuses others: "NLA_F_NESTED is missing"."""
    options = queue_options(kind, {"limit": 500}, 1000.0)
    message = messages.set_queue(1, ROOT, 0x10000, kind, options)
    assert message.endswith(struct.pack("=HH", 4 + len(options), 2 | 0x8000) + options)


def test_flows_with_the_same_path_share_a_host(scenario_of) -> None:
    def namespaces(scenario) -> int:
        plan = plan_scenario(scenario, draw_flows(scenario, merged=False))
        return sum(kind == 1 for kind, _ in read_results(plan.writer.content()))

    assert namespaces(scenario_of(count=20)) == 2 + 1
    assert namespaces(scenario_of(count=20, rtt=("20ms", "40ms"))) == 2 + 20


def test_pages_are_drawn_for_the_whole_time(scenario_of) -> None:
    web = Flow(id="web", path=("line",), rtt="20ms", count=30, offers=Web(think_time="100ms", objects_per_page=3))
    scenario = scenario_of(None, web, duration="20s")
    plan = plan_scenario(scenario, draw_flows(scenario, merged=False))
    found = [body for kind, body in read_results(plan.writer.content()) if kind == 12]
    assert len(found) == 30
    sizes = []
    for body in found:
        pages, objects = struct.unpack_from("=II", body, 96)
        draws = np.frombuffer(body, "u8", pages * (objects + 1), 104).reshape(pages, objects + 1)
        assert draws[:, 0].sum() > 20e9
        sizes.append(draws[:, 1:])
    sizes = np.concatenate(sizes)
    # Pareto of shape 1.2: the median is scale 2^(1/1.2), with the scale 5 kB .2/1.2.
    assert np.median(sizes) == pytest.approx(5e3 * 0.2 / 1.2 * 2 ** (1 / 1.2), rel=0.05)


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        (RedQueue(), "got 'red'"),
        (PieQueue(alpha=0.1), "sixteenths"),
        (PieQueue(burst=0.1), "0.15 s"),
        (PieQueue(target=1.23456789e-2), "microseconds"),
        (FqCodelQueue(buckets=0), "hashes"),
        (KernelQueue(discipline="cak"), "did you mean 'cake'"),
        (KernelQueue(discipline="pie", parameters={"taget": 0.01}), "did you mean 'target'"),
        (KernelQueue(discipline="pie", parameters={"alpha": 33}), "0 to 32"),
        (KernelQueue(discipline="red", parameters={"min": 5e4}), "limit, min and max"),
    ],
)
def test_queues_that_the_kernel_lacks_are_named(scenario_of, queue, said: str) -> None:
    missing = scenario_lacks(scenario_of(queue))
    assert missing is not None
    assert "links.line.queue" in missing
    assert said in missing


def test_fq_pie_and_cake_are_sent_as_tc_sends_them(scenario_of) -> None:
    """CAKE's bandwidth in bytes a second, of 64 bits; its target a twentieth of rtt."""
    cake, pie = (
        attributes(discipline_of(scenario_of(queue).links[0], 1500.0).options)
        for queue in (CakeQueue(rtt="40ms", bandwidth="8Mbit"), FqPieQueue(buckets=16, beta=10.0))
    )
    assert struct.unpack("=Q", cake[2]) == (1_000_000,)
    assert [struct.unpack("=I", cake[k])[0] for k in (7, 8)] == [40_000, 2000]
    assert [struct.unpack("=I", pie[k])[0] for k in (2, 3, 4, 5, 6, 7, 10)] == [16, 15_000, 15_000, 2, 10, 1500, 1]


def test_limits_are_named(scenario_of) -> None:
    assert "loss" not in str(scenario_lacks(scenario_of(loss=0.01)))
    assert scenario_lacks(scenario_of()) is None
    assert "jitter" in str(scenario_lacks(scenario_of(jitter="1ms")))
    assert "5001 flows" in str(scenario_lacks(scenario_of(count=5001)))
    assert "hpcc" in str(scenario_lacks(scenario_of(sender="hpcc")))
    links = tuple(Link(id=f"{s}{t}", source=s, target=t, capacity="10Mbit") for s, t in ("ab", "ba"))
    flows = (Flow(id="loop", path=("ab", "ba"), rtt="40ms", count=1),)
    loop = Scenario(name="loop", links=links, flows=flows, duration="5s")
    assert "visit a node twice (flows.loop)" in str(scenario_lacks(loop))
    assert "dctcp" in str(scenario_lacks(scenario_of(sender=Dctcp(gain=0.5))))  # the word is taken


def test_the_record_of_a_discipline_is_checked() -> None:
    with pytest.raises(InvalidValue, match=r"parameters\.target"):
        KernelQueue(discipline="pie", parameters={"target": "soon"})
    with pytest.raises(InvalidValue, match="a table"):
        KernelQueue(discipline="pie", parameters=["target"])
