"""Each of the five Designs runs by one `simulate`, in two engines or more, and is compared in one table."""

from __future__ import annotations

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.design.hftrac.scenario_law import scenario_law
from netctrl.engines.case import Case, case_of
from netctrl.engines.engine import supports
from netctrl.model.design.design import ArcDesign
from netctrl.scenario.builders import access_link, bottleneck, routed
from netctrl.scenario.network.graph import graph_of
from netctrl.scenario.network.track import Track
from netctrl.scenario.network.tracking import track_plan
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.network.run import simulate_network
from netctrl.sim.packet.run import simulate_packets

METHODS = ("arc", "hftrac", "connet", "mpcc", "pacing")


@pytest.fixture(scope="module")
def designs() -> dict[str, ArcDesign]:
    return {
        "arc": netctrl.arc(50),
        "hftrac": netctrl.hftrac(netctrl.read("merge"), interval_s=0.01, mu=1.0),
        "connet": netctrl.connet(netctrl.read("connet-paper"), track="delay", limits=[(0.0, 95.0)]),
        "mpcc": netctrl.mpcc(4, 1e9, 34.752e-6, bdp_bytes=3750.0, delayed=True),
        "pacing": netctrl.pacing(mode="own-rate", rtt_s=0.02, bottleneck_bit_per_s=1e7),
    }


@pytest.mark.parametrize("method", METHODS)
def test_two_engines_or_more_run_it(designs, method) -> None:
    able = [name for name, lack in supports(designs[method]).items() if lack is None]
    assert len(able) >= 2, able
    assert "ns3" in able


@pytest.mark.parametrize("method", METHODS)
def test_a_design_for_another_kind_of_scenario_is_refused_by_name(designs, method) -> None:
    other = designs["mpcc" if method != "mpcc" else "arc"]
    with pytest.raises(InvalidValue, match=rf"design: got '{other.method}', takes one of .*{method}"):
        case_of(case_of(designs[method]).scenario, other)


def test_hftracs_law_is_the_designs(designs) -> None:
    """The same as the policy that asks for it, to the bit; and it keeps what it promises: rates stay near nominal."""
    design = designs["hftrac"]
    scenario = case_of(design).scenario
    assert scenario.under_demands
    found, other = netctrl.simulate(design, runs=2), simulate_network(scenario, scenario_law(scenario), runs=2)
    assert np.array_equal(found.totals["backlog"], other.totals["backlog"])
    assert found.measures()["loss", "network"] < 1e-3
    graph = graph_of(scenario)
    changed = netctrl.Network(links=graph.links, demands=graph.demands[:1])
    with pytest.raises(InvalidValue, match="a Design for this network"):
        case_of(routed(changed, duration=1.0, warmup=0.0), design)


def test_connets_reference_is_the_middle_of_what_can_be_had(designs) -> None:
    """G u for u in the middle of 0 and 95 Mbit/s; another reference is kept to as well."""
    design = designs["connet"]
    model = design.inputs.model
    gain = model.C @ np.linalg.solve(np.eye(2) - model.A, model.B) + model.D
    plan = track_plan(case_of(design).scenario, design)
    assert plan.reference[0] == pytest.approx((gain @ [47.5]).tolist(), rel=1e-9)
    link = access_link(duration="300s", seed=4, control=Track(reference=[[1.0, 0.7]]))
    found = netctrl.simulate(link, design=design).tables["signals"]
    assert found["measured delay"][150:].mean() == pytest.approx(1.0, rel=0.05)
    control = Track(reference=[[1.0, 0.7]], measured="period")
    again = simulate_packets(link.replace(control=control), design=design.law).tables["signals"]
    assert np.array_equal(found["measured delay"], again["measured delay"])


def test_a_bottleneck_as_a_fluid_is_at_its_target(designs) -> None:
    """The certificate's queue, of 8.1 packets, at full use but for drains."""
    found = netctrl.simulate(designs["pacing"], "fluid").measures()
    queue = designs["pacing"].certificate.equilibrium.queue_s
    assert found["utilization", "bottleneck"] > 0.98
    assert 0.7 * queue < found["delay", "bottleneck"] < 1.1 * queue


def test_cross_traffic_in_the_fluid_takes_its_mean() -> None:
    scenario = bottleneck(flows=(Flow(sender="cubic"),), cross="20Mbit", duration="40s")
    found = netctrl.simulate(scenario, "fluid")
    assert found["throughput", found.flows[0]] == pytest.approx(80e6, rel=0.02)
    with pytest.raises(InvalidValue, match="a Design of pacing"):
        netctrl.simulate(bottleneck(duration="20s"), "fluid")


def test_flows_on_packets_start_when_they_are_drawn_to() -> None:
    flows = tuple(Flow(id=f"flow{start:g}", sender="reno", start=start) for start in (0.5, 3.0))
    scenario = bottleneck(flows=flows, start_spread="1s", duration="8s", warmup="1s", interval="100ms")
    found = netctrl.simulate(scenario, "packet")
    first = [found.time_s[np.flatnonzero(arrived)[0]] for arrived in found.series["delivered"]]
    start = found.tables["connections"]["start"]
    assert ((start >= [0.5, 3.0]) & (start <= [1.5, 4.0])).all()
    assert ((first - start > 0.0) & (first - start < 0.2)).all()


def test_several_runs_are_a_networks() -> None:
    scenario = bottleneck(flows=(Flow(sender="reno"),), duration="20s")
    with pytest.raises(InvalidValue, match="runs: got 2, takes 1 for links and flows"):
        netctrl.simulate(Case(scenario), "fluid", runs=2)


@pytest.mark.slow
@pytest.mark.needs("ns3")
@pytest.mark.parametrize(
    ("method", "engine", "near"),
    [
        ("connet", "packet", {("backlog", "hop0"): 0.1, ("throughput", "hop0"): 0.001}),
        ("pacing", "fluid", {("throughput", "flow"): 0.02}),
    ],
)
def test_ns3_and_ours_agree_in_one_table(designs, method, engine, near) -> None:
    table = netctrl.compare(designs[method], (engine, "ns3"), seeds=1)
    rows = {(row.quantity, row.of): row for row in table.rows if row.engine == "ns3"}
    for name, bound in near.items():
        assert abs(rows[name].difference) < bound, rows[name]
    assert len(table.table()[1]) == len(table.rows) // 2
