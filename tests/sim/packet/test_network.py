"""Networks of demands on packets: against ns-3, the fluid and a plain computation; conservation, messages, TCP."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.engines.engine import supports
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.model.datasets import network_path
from netctrl.model.io.provenance import provenance
from netctrl.model.network import Demand, Link, Network, read_network
from netctrl.ns3.network.read import run_links
from netctrl.ns3.network.render import render
from netctrl.ns3.program import compile_program, find_ns3, table_name
from netctrl.scenario.builders import routed
from netctrl.scenario.network.policy import (
    Backpressure,
    CreditPolicy,
    Fifo,
    HftracPolicy,
    Messages,
    Policy,
    StaticPacing,
)
from netctrl.scenario.network.traffic import LongRangeTraffic
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.network.plan import link_plan, run_draws, run_tables
from netctrl.sim.network.run import simulate_network
from netctrl.sim.packet.lacks import network_lacks
from netctrl.sim.packet.network import simulate_network_packets

SIZE = 1500
COORDINATED = HftracPolicy(architecture="coordinated", mu=0.1, horizon="exact")
LATE = Messages(loss=0.1, jitter=(0.0, 0.005), asynchronous=True)


def on_testbed(policy: Policy = COORDINATED, *, name: str = "testbed", **changed) -> Scenario:
    usual = {"utilization": 0.95, "control": policy, "duration": 20.0, "warmup": 4.0}
    return routed(read_network(network_path(name)), **usual | changed)


def ran(scenario: Scenario, runs: range = range(2), **options) -> Result:
    plan = link_plan(scenario, netctrl.scenario_law(scenario))
    return simulate_network_packets(scenario, plan, runs, **options)


def in_ns3(scenario: Scenario, folder: Path, runs: range = range(2)) -> Result:
    plan = link_plan(scenario, netctrl.scenario_law(scenario))
    for name, text in render(scenario, plan, provenance=provenance()).items():
        (folder / name).write_text(text, encoding="utf-8")
    for run, table in zip(runs, run_tables(scenario, plan, runs), strict=True):
        (folder / table_name(run)).write_bytes(table)
    compile_program(folder, find_ns3())
    return run_links(folder, scenario, plan, runs, ns3=find_ns3(), provenance=provenance())


# --- overload ---------------------------------------------------------------------------------------------------------


def test_an_overloaded_link_of_packets_loses_what_it_cannot_send():
    """1 - C/mean of what comes, within a few packets of the 33 MB in all; it stays busy."""
    links = (
        Link(source="A", target="B", id="L1", capacity=40e6, delay=0.01, buffer=25e3),
        Link(source="B", target="C", id="L2", capacity=20e6, delay=0.01, buffer=25e3),
    )
    network = Network(links=links, demands=(Demand(source="A", target="C", mean=30e6),))
    scenario = routed(network, duration=10.0, warmup=1.0)
    found = ran(scenario, range(1))
    assert found.totals["departed"][0, 1] * 8.0 / found.seconds == pytest.approx(20e6, rel=1e-3)
    assert found.totals["lost"][0, 1] / found.totals["arrived"][0, 1] == pytest.approx(1.0 - 20.0 / 30.0, rel=3e-3)
    assert found.totals["lost"][0, 0] == 0.0


# --- ns-3 -------------------------------------------------------------------------------------------------------------


@pytest.mark.needs("ns3")
def test_without_chance_packets_are_those_of_ns3(tmp_path):
    """Under a law that paces all links: each interval to the byte, but packets of one nanosecond may change places."""
    scenario = on_testbed()
    found, expected = ran(scenario), in_ns3(scenario, tmp_path)
    np.testing.assert_array_equal(found.totals["entered"], expected.totals["entered"])
    for name in ("backlog", "departed", "lost"):
        assert np.isclose(found.series[name], expected.series[name]).mean(axis=1).min() > 0.99
    for name in ("arrived", "departed", "lost"):
        assert np.abs(found.totals[name] - expected.totals[name]).max() <= 2 * SIZE, name
    np.testing.assert_allclose(found.totals["backlog"], expected.totals["backlog"], rtol=1e-3)
    np.testing.assert_allclose(*(each.figures()["cost", "network"] for each in (found, expected)), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.needs("ns3")
@pytest.mark.parametrize(
    ("policy", "messages"),
    [(COORDINATED, LATE), (CreditPolicy(), LATE), (HftracPolicy(architecture="centralized", mu=0.1), LATE)],
)
def test_late_messages_and_moments_are_those_of_ns3(tmp_path, policy, messages):
    """Ties between packets and ticks may go the other way: a packet, here and there, which then takes its course."""
    scenario = on_testbed(msgspec.structs.replace(policy, messages=messages))
    found, expected = ran(scenario), in_ns3(scenario, tmp_path)
    np.testing.assert_array_equal(found.totals["entered"], expected.totals["entered"])
    np.testing.assert_allclose(found.totals["departed"], expected.totals["departed"], rtol=1e-3)
    np.testing.assert_allclose(found.totals["backlog"], expected.totals["backlog"], rtol=0.01, atol=10.0)
    assert found.totals["lost"].sum() == pytest.approx(expected.totals["lost"].sum(), rel=0.02)
    assert found.totals["lost"].sum() > 0.0


@pytest.mark.slow
@pytest.mark.needs("ns3")
def test_tcp_under_a_law_is_near_that_of_ns3(tmp_path):
    """Starts are drawn apart, and timeouts are 1 s here and 200 ms there: not the same packets, but the same means."""
    tcp = Flow(id="p1", count=5, sender="reno", start=(0.0, 0.5))
    scenario = on_testbed(flows=(tcp,), duration=40.0)
    found, expected = ran(scenario), in_ns3(scenario, tmp_path)
    np.testing.assert_allclose(found.totals["departed"].sum(axis=0), expected.totals["departed"].sum(axis=0), rtol=0.02)
    goodput, wanted = (8.0 * each.totals["payload"].mean() / each.seconds for each in (found, expected))
    assert goodput == pytest.approx(wanted, rel=0.02)
    trip, wanted = (each.totals["rtt"].mean() for each in (found, expected))
    assert trip == pytest.approx(wanted, rel=0.03)
    backlog, wanted = (each.totals["backlog"].sum(axis=1).mean() for each in (found, expected))
    assert backlog == pytest.approx(wanted, rel=0.1)


# --- the fluid and plain computations ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("policy", [Fifo(), StaticPacing(factor=1.05), COORDINATED])
def test_small_packets_are_a_fluid(policy):
    """With delays as in the model. Where packets of 1500 bytes differ from it is in docs/figures/hftrac.md."""
    scenario = on_testbed(policy, duration=60.0)
    fluid = simulate_network(scenario, netctrl.scenario_law(scenario), runs=2)
    small = ran(scenario.replace(packet_size=150.0), sampled_delays=True)
    np.testing.assert_allclose(small.totals["entered"], fluid.totals["entered"], atol=4 * 150)
    np.testing.assert_allclose(small.totals["departed"], fluid.totals["departed"], rtol=2e-3)
    backlog, wanted = (each.totals["backlog"].sum(axis=1).mean() for each in (small, fluid))
    assert backlog == pytest.approx(wanted, rel=0.03)
    lost, wanted = (each.totals["lost"].sum(axis=1).mean() for each in (small, fluid))
    assert lost == pytest.approx(wanted, rel=0.03)


def one_link(policy: Policy, **changed) -> Scenario:
    """Three demands that fluctuate, over one link without bound; nothing is lost."""
    link = Link(id="link", source="a", target="b", capacity=20e6, delay=0.01)
    demands = tuple(Demand(id=f"d{i}", source="a", target="b", mean=6e6, std=4e6) for i in range(3))
    network = Network(name="one", links=(link,), demands=demands)
    return routed(network, **{"duration": 10.0, "warmup": 0.0, "control": policy} | changed)


def when_sent(rates: np.ndarray, interval: float) -> np.ndarray:
    """Packet k of a demand goes when what it was to send reaches k packets [s]: by the integral of its rates."""
    ends = interval * np.arange(len(rates) + 1)
    sent = np.concatenate([[0.0], np.cumsum(rates * interval / 8.0)])
    return np.interp(SIZE * np.arange(1, int(sent[-1] / SIZE) + 1), sent, ends)


@pytest.mark.parametrize(("policy", "rate"), [(Fifo(), 20e6), (StaticPacing(factor=1.05), 1.05 * 18e6)])
def test_one_link_serves_as_lindley_says(policy, rate):
    """All that demands send, merged, through a server: what waits at each interval's end, to a packet a demand."""
    scenario = one_link(policy)
    plan = link_plan(scenario)
    rates = next(run_draws(scenario, plan, range(1))).rates
    came = np.sort(np.concatenate([when_sent(column, 0.01) for column in rates.T]))
    begins, free = [], 0.0
    for time in came:
        begins.append(max(time, free))
        free = begins[-1] + 8.0 * SIZE / rate
    found = ran(scenario, range(1))
    ends = found.time_s
    waiting = SIZE * (np.searchsorted(came, ends, "right") - np.searchsorted(begins, ends, "right"))
    # A time that rounding puts on the other side of an end is a packet there and then.
    differs = np.abs(found.series["backlog"][0] - waiting)
    assert differs.max() <= SIZE
    assert (differs > 0.0).mean() < 0.01
    assert found.totals["arrived"][0, 0] == pytest.approx(SIZE * len(came), abs=SIZE)
    assert waiting.max() > 20 * SIZE


def test_the_first_links_follow_the_fluid_to_a_few_packets():
    """What a demand has sent is at most a packet behind its fluid, so that of three is at most three.

    A backlog is b = X + sup(-X), and so at most twice that off, and by the packet that is being sent.
    """
    scenario = one_link(Fifo())
    fluid = simulate_network(scenario, runs=1)
    found = ran(scenario, range(1))
    assert fluid.series["backlog"].max() > 30e3
    assert np.abs(found.series["backlog"] - fluid.series["backlog"]).max() <= (2 * 3 + 1) * SIZE


# --- what holds always ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["testbed", "merge"])
@pytest.mark.parametrize("policy", [Fifo(), StaticPacing(), msgspec.structs.replace(COORDINATED, messages=LATE)])
def test_nothing_is_lost_sight_of(name, policy):
    found = ran(on_testbed(policy, name=name, duration=10.0))
    gone = found.totals["departed"] + found.totals["lost"] + found.totals["growth"]
    np.testing.assert_array_equal(found.totals["arrived"], gone)
    flying = (
        found.totals["entered"]
        - found.totals["left"]
        - found.totals["lost"].sum(axis=1)
        - found.totals["growth"].sum(axis=1)
    )
    assert np.all(np.abs(flying) < 150e3)
    assert np.all(flying % SIZE == 0)
    backlog, departed, lost = (found.series[name][:, 400:] for name in ("backlog", "departed", "lost"))
    np.testing.assert_allclose(backlog.mean(axis=1), found.totals["backlog"][0])
    np.testing.assert_allclose(departed.sum(axis=1), found.totals["departed"][0])
    np.testing.assert_allclose(lost.sum(axis=1), found.totals["lost"][0])


def test_shares_are_met_to_a_packet():
    """Three quarters of what e2 lets through take s23, a quarter s21; all but what is on its way."""
    found = ran(on_testbed(Fifo()))
    e2, s23, s21 = (found.links.index(name) for name in ("e2", "s23", "s21"))
    through = found.totals["departed"][:, e2]
    np.testing.assert_allclose(found.totals["arrived"][:, s23], 0.75 * through, atol=3 * SIZE)
    np.testing.assert_allclose(found.totals["arrived"][:, s21], 0.25 * through, atol=3 * SIZE)


def test_a_central_controller_that_nobody_hears_leaves_nominal_rates():
    deaf = ran(on_testbed(HftracPolicy(architecture="centralized", mu=0.1, messages=Messages(loss=1.0))))
    static = ran(on_testbed(StaticPacing(factor=1.0)))
    for name in ("backlog", "departed", "lost"):
        np.testing.assert_array_equal(deaf.series[name], static.series[name])
    np.testing.assert_array_equal(deaf.totals["lost"], static.totals["lost"])


@pytest.mark.slow
def test_a_run_is_the_same_whichever_others_are_made_with_it():
    control = msgspec.structs.replace(COORDINATED, messages=LATE)
    scenario = on_testbed(control, spread=LongRangeTraffic(), duration=8.0)
    all_three = ran(scenario, range(3))
    for other in (ran(scenario, range(2, 3)), ran(scenario, range(2, 4), n_jobs=2)):
        np.testing.assert_array_equal(all_three.totals["backlog"][2], other.totals["backlog"][0])
        assert all_three.totals["entered"][2] == other.totals["entered"][0]
    assert all_three.totals["entered"][0] != all_three.totals["entered"][1]
    plan = link_plan(scenario, netctrl.scenario_law(scenario))
    rates = next(run_draws(scenario, plan, range(2, 3))).rates[400:]
    sent = rates.sum(axis=0) * 0.01 / 8.0
    assert all_three.totals["entered"][2] == pytest.approx(sent.sum(), abs=2 * SIZE)


# --- TCP and queues ---------------------------------------------------------------------------------------------------


def tcp_over_one(variant: str = "cubic", count: int = 1, **changed) -> Scenario:
    """TCP over a link that is paced at 4 of 10 Mbit/s."""
    link = Link(id="link", source="a", target="b", capacity=10e6, delay=0.01, buffer=30e3)
    demand = Demand(id="tcp", source="a", target="b", mean=4e6)
    tcp = Flow(id="tcp", count=count, sender=variant, start=(0.0, 0.2))
    network = Network(name="one", links=(link,), demands=(demand,))
    settings = {"duration": 40.0, "warmup": 10.0, "control": StaticPacing(), "flows": [tcp]}
    return routed(network, **settings | changed)


@pytest.mark.parametrize("variant", ["reno", "cubic"])
def test_tcp_fills_a_paced_link(variant):
    found = ran(tcp_over_one(variant), range(1))
    most = 4e6 * (SIZE - 40) / SIZE
    assert 0.98 * most < found["goodput", "tcp"] <= most * (1.0 + 1e-3)
    assert found.totals["departed"][0, 0] == pytest.approx(4e6 * 30.0 / 8.0, rel=0.02)
    # The round trip: the lines there and back, packets on the wire, and what waits at the pace.
    waits = 0.02 + 8.0 * SIZE / 10e6 + 8.0 * 40 / 10e6 + found.totals["backlog"][0, 0] * 8.0 / 4e6
    assert found.totals["rtt"][0, 0] == pytest.approx(waits, rel=0.1)
    assert 0.0 < found["resent", "tcp"] < 0.02


def test_an_aqm_shortens_the_queue_of_a_paced_link():
    long, pie, codel = (
        ran(tcp_over_one("reno", 10, queue=queue), range(1)).totals["backlog"][0, 0]
        for queue in (DropTailQueue(), PieQueue(), CodelQueue())
    )
    assert max(pie, codel) < 0.8 * long


def test_flows_of_tcp_take_ways_by_their_shares():
    scenario = on_testbed(Fifo(), flows=(Flow(id="p2", count=8, sender="cubic"),), duration=10.0)
    found = ran(scenario, range(1))
    s23, s21 = (found.links.index(name) for name in ("s23", "s21"))
    assert found.totals["arrived"][0, s23] > 1.5 * found.totals["arrived"][0, s21] > 0.0


def test_tcp_that_ends_or_pauses_is_refused_where_it_would_be_endless():
    """In the place of a demand; packets run it, and the kernel all but sessions of the Web."""
    writes = {"kind": "writes", "size": "20kB", "interval": "100ms"}
    for fields, kernel in (
        ({"offers": "1MB"}, True),
        ({"offers": writes}, True),
        ({"receive_window": "64kB"}, True),
        ({"offers": "web"}, False),
    ):
        lacks = supports(tcp_over_one(flows=[Flow(id="tcp", sender="reno", **fields)]))
        assert lacks["packet"] is None
        assert "flows.tcp." in lacks["ns3"]
        assert (lacks["kernel"] is None or "flows.tcp." not in lacks["kernel"]) is kernel
    ended = ran(tcp_over_one(flows=[Flow(id="tcp", sender="reno", offers=writes)]), range(1))
    assert ended["goodput", "tcp"] == pytest.approx(1.6e6, rel=0.01)


def test_what_the_engine_lacks_is_refused_by_name(monkeypatch):
    scenario = on_testbed(Backpressure())
    assert "backpressure" in str(network_lacks(scenario))
    assert all(network_lacks(tcp_over_one(variant)) is None for variant in ("cubic", "reno", "vegas"))
    plan = link_plan(on_testbed(Fifo()))
    for size, says in ((40.0, "packet_size"), (30_000.0, "buffer")):
        with pytest.raises(InvalidValue, match=says):
            simulate_network_packets(on_testbed(Fifo(), packet_size=size), plan, range(1))
    with pytest.raises(InvalidValue, match="n_jobs"):
        simulate_network_packets(on_testbed(Fifo()), plan, range(1), n_jobs=0)
    with pytest.raises(InvalidValue, match="runs"):
        simulate_network_packets(on_testbed(Fifo()), plan, range(0))
    assert network_lacks(scenario.replace(control=Fifo())) is None
