"""Links of the packet engine whose rates are set: the pacer against a plain computation, and Designs in scenarios."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import numpy as np
import pytest
from kernel_parts import called

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.model.datasets import data_path
from netctrl.model.design.design import HftracDesign
from netctrl.model.network import Demand, Network
from netctrl.model.network import Link as NetworkLink
from netctrl.scenario.builders import routed
from netctrl.scenario.links import Change, Link
from netctrl.scenario.network.policy import DesignPolicy, StaticPacing
from netctrl.scenario.read import read_scenario_file as read_scenario
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Demand as Offered
from netctrl.scenario.tcp_aqm.offers import Stream
from netctrl.sim.network.plan import link_plan, run_draws
from netctrl.sim.packet.kernel import advance_packets
from netctrl.sim.packet.links.links import pace_link
from netctrl.sim.packet.network import simulate_network_packets
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import simulate_packets
from netctrl.sim.packet.state import FLOW, LINK

SIZE, CAPACITY = 1000, 10e6
DROPTAIL = DropTailQueue()
EXAMPLE = data_path("scenarios/three-links.toml")


def line(name="line", source="a", target="b", **changed) -> Link:
    settings = {"capacity": CAPACITY, "delay": 5e-3, "buffer": 60e3} | changed
    return Link(id=name, source=source, target=target, **settings)


def udp(rate=4e6, **changed) -> Flow:
    return Flow(**{"id": "udp", "path": ("line",), "offers": Stream(rate=rate, spacing="constant")} | changed)


def scenario(links, *flows, duration=4.0, **changed) -> Scenario:
    settings = {"interval": 0.01, "warmup": duration / 4, "packet_size": float(SIZE)} | changed
    return Scenario(name="rates", duration=duration, links=links, flows=flows, **settings)


# --- the pacer --------------------------------------------------------------------------------------------------------


def paid_off(came: list[int], rates: list[int], step: int, bits: Fraction) -> list[int]:
    """When packets leave [ns]: each when those before it are paid off at the rates of steps, and it is there."""
    left, free = [], Fraction(0)
    for time in came:
        begins = max(Fraction(time), free)
        left.append(int(begins))
        owed, now = bits * 10**9, begins
        while owed > 0:
            k = int(now // step)
            rate = min(max(rates[k], 1), int(CAPACITY)) if k < len(rates) else int(CAPACITY)
            until = Fraction((k + 1) * step)
            if owed > rate * (until - now):
                owed, now = owed - rate * (until - now), until
            else:
                now, owed = now + owed / rate, Fraction(0)
        free = now
    return left


set_rate = called(pace_link)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_packets_leave_when_those_before_them_are_paid_off(seed):
    """Rates that change every 3 ms, from 0 (1 bit/s) and less than a packet a step to more than the capacity.

    A change rounds to half a nanosecond at 10 Mbit/s, 0.005 bits; a tenth of a bit a packet is more than they meet.
    """
    step, steps = 3_000_000, 600
    rng = np.random.default_rng(seed)
    rates = rng.choice([0, 1, 700, 30_000, 1_000_000, 4_000_000, 9_999_999, 20_000_000], steps).tolist()
    paced = {"duration": step * steps / 1e9, "seed": seed, "control": StaticPacing()}
    ready = packet_problem(scenario((line(buffer=None),), udp(3e6), **paced))
    ready.state.link[0, LINK["pace"]] = max(rates[0], 1)
    gap, first = int(ready.state.flow[0, FLOW["gap"]]), int(ready.state.agenda[0, 0])
    came = list(range(first, step * steps, gap))
    early, late = (np.array(paid_off(came, rates, step, 8 * SIZE + Fraction(each, 10))) for each in (-1, 1))
    for k in range(steps):
        now = k * step
        assert advance_packets(ready.state, ready.interval, ready.full, 10.0, now)
        gone = int(ready.state.link[0, LINK["departed"]]) // SIZE
        assert np.sum(late <= now) <= gone <= np.sum(early <= now)
        set_rate(ready.state, 0, now, float(rates[k]))
    assert 100 < gone < len(came)


def test_a_static_rate_is_met_to_a_packet_from_the_start():
    found = simulate_packets(scenario((line(),), udp(), control=StaticPacing(factor=0.3)))
    sent = found.series["departed"][0].cumsum()
    full = found.series["backlog"][0] >= SIZE
    expected = 0.3 * CAPACITY / 8.0 * found.time_s
    assert full[10:].all()
    assert np.abs(sent - expected).max() <= 2 * SIZE
    assert np.ptp((sent - expected)[10:]) <= 1.01 * SIZE
    assert found.series["lost"].sum() > 0.0


def test_a_paced_link_sends_a_packet_at_its_capacity():
    """At a tenth of 10 Mbit/s a packet of 1000 bytes is on the wire for 0.8 ms, and the next follows after 8 ms."""
    flow = udp(rate=8e7, stop=1.5e-4)
    paced = scenario(
        (line(delay=0.0),), flow, duration=0.02, interval=1e-4, warmup=0.0, control=StaticPacing(factor=0.1)
    )
    arrived = np.flatnonzero(simulate_packets(paced).series["payload"][0]) * 1e-4
    np.testing.assert_allclose(np.diff(arrived), 8e-3, atol=1e-9)
    assert 0.7e-3 < arrived[0] < 0.95e-3


def test_a_pace_above_the_capacity_is_the_capacity():
    paced, free = (
        simulate_packets(
            scenario((line(),), udp(12e6), control=control, changes=(Change(at=2.0, link="line", capacity=5e6),))
        )
        for control in (StaticPacing(factor=2.0), None)
    )
    assert np.abs(paced.series["departed"].cumsum() - free.series["departed"].cumsum()).max() <= 2 * SIZE


def test_pie_sees_the_rate_of_a_paced_link():
    """PIE holds a delay: at half the rate half the backlog."""
    flows = Flow(id="tcp", path=("line",), rtt=(0.04, 0.06), count=10, sender="reno")
    whole, half = (
        simulate_packets(
            scenario((line(queue=PieQueue(), buffer=None),), flows, duration=60.0, control=StaticPacing(factor=factor))
        ).of("line")
        for factor in (1.0, 0.5)
    )
    assert whole["backlog"] == pytest.approx(0.015 * CAPACITY / 8.0, rel=0.15)
    assert half["backlog"] == pytest.approx(0.5 * whole["backlog"], rel=0.1)
    assert half["throughput"] == pytest.approx(0.5 * CAPACITY, rel=0.01)


# --- Designs ----------------------------------------------------------------------------------------------------------


def row(*, names=("first", "second"), queue=DROPTAIL, control=None, more=(), **changed) -> Scenario:
    """Two links in a row, in any order, beside others that no Design knows."""
    known = {
        "first": line("first", "a", "b", queue=queue),
        "second": line("second", "b", "c", queue=queue),
        "aside": line("aside", "a", "c", queue=queue),
    }
    flows = (
        Flow(id="long", path=("first", "second"), rtt=(0.04, 0.06), count=4, sender="cubic"),
        udp(1e6, id="short", path=("second",)),
        *more,
    )
    return scenario(tuple(known[name] for name in names), *flows, control=control, **changed)


@pytest.fixture(scope="module")
def design() -> HftracDesign:
    links = tuple(
        NetworkLink(id=name, source=source, target=target, capacity=CAPACITY, delay=5e-3, buffer=60e3)
        for name, source, target in (("first", "a", "b"), ("second", "b", "c"))
    )
    demands = (
        Demand(id="long", source="a", target="c", mean=6e6, std=1e6),
        Demand(id="short", source="b", target="c", mean=1e6, std=1e6),
    )
    return netctrl.hftrac(Network(name="row", links=links, demands=demands), 5e-3, mu=0.1, horizon="exact")


@pytest.mark.parametrize("queue", [DROPTAIL, PieQueue(), CodelQueue()])
def test_nothing_is_lost_from_the_books_under_a_design(design, queue):
    found = simulate_packets(row(queue=queue, seed=3), design=design)
    grown = np.diff(found.series["backlog"], prepend=0.0, axis=1)
    np.testing.assert_array_equal(found.series["arrived"], found.series["departed"] + found.series["lost"] + grown)
    again = simulate_packets(row(queue=queue, seed=3), design=design)
    np.testing.assert_array_equal(found.series["backlog"], again.series["backlog"])
    free = simulate_packets(row(queue=queue, seed=3))
    assert not np.array_equal(found.series["backlog"], free.series["backlog"])


def test_a_design_finds_its_links_by_their_ids(design):
    aside = (udp(2e6, id="aside", path=("aside",)),)
    one = simulate_packets(row(), design=design)
    other = simulate_packets(row(names=("aside", "second", "first"), more=aside), design=design)
    np.testing.assert_array_equal(one.series["backlog"][:, :50], other.series["backlog"][[2, 1], :50])
    assert other.series["departed"][0].sum() == pytest.approx(2e6 * 4.0 / 8.0, abs=2 * SIZE)


def test_steady_arrivals_at_the_nominal_rates_pass(design):
    """With nothing to make up for the law keeps its nominal rates, which are the arrivals': only packets wait."""
    flows = udp(6e6, path=("first", "second")), udp(1e6, id="short", path=("second",))
    quiet = scenario(row().links, *flows, duration=4.0)
    found = simulate_packets(quiet, design=design)
    assert found.series["lost"].sum() == 0.0
    rates = found.series["departed"][:, 200:].mean(axis=1) * 8.0 / quiet.interval
    np.testing.assert_allclose(rates, [6e6, 7e6], rtol=5e-3)
    assert (found.series["backlog"][:, 200:].mean(axis=1) < 3 * SIZE).all()


def test_groups_of_demands_under_a_design_are_its_network(design):
    """What a run of the network draws, as rates of two groups: each link has the same bytes and the same losses."""
    settings = {"interval": 5e-3, "duration": 4.0, "warmup": 0.0, "seed": 2, "packet_size": SIZE}
    around = routed(design.inputs.network, control=DesignPolicy(file="design"), **settings)
    plan = link_plan(around, design.law)
    draws = next(run_draws(around, plan, range(1)))
    paths = {"long": ("first", "second"), "short": ("second",)}
    flows = [
        Flow(id=name, path=path, ecn=False, offers=Offered(rates=draws.rates[:, k], interval=5e-3))
        for k, (name, path) in enumerate(paths.items())
    ]
    theirs = simulate_network_packets(around, plan, range(1))
    beside = scenario(row().links[:2], *flows, duration=4.0).replace(interval=5e-3, warmup=0.0)
    ours = simulate_packets(beside, design=design)
    for name in ("arrived", "departed", "lost"):
        np.testing.assert_allclose(ours.totals[name], theirs.totals[name])
    np.testing.assert_allclose(ours.series["backlog"], theirs.series["backlog"])
    assert theirs.totals["backlog"].min() > 0.0


def test_a_file_beside_the_scenario_is_the_design():
    """three-links: three links in a row under PIE and a Design, with BBR, Cubic and paced flows, which BBR starves."""
    read = read_scenario(EXAMPLE).replace(duration=10.0, warmup=5.0)
    assert read.control == DesignPolicy(file=str(EXAMPLE.with_name("three-links-hftrac.json")))
    made = netctrl.hftrac(netctrl.read("three-in-a-row"), 5e-3, mu=0.1, horizon="exact")
    found = simulate_packets(read)
    given = simulate_packets(read.replace(control=None), design=made)
    np.testing.assert_allclose(found.series["departed"].sum(axis=1), given.series["departed"].sum(axis=1), rtol=0.01)
    for link in found.links:
        assert found["utilization", link] > 0.95
        assert found["marks", link] > 0.0
    assert {name for name in found.flows if found["goodput", name] > 5e4} == {
        *("bbr", "paced", "cubic", "cross1", "cross2", "cross3")
    }
    with pytest.raises(FileError, match="nowhere"):
        simulate_packets(read.replace(control=DesignPolicy(file="nowhere")))


def test_what_is_not_for_a_design_is_refused(design, tmp_path):
    flows = (udp(path=("first",)),)
    with pytest.raises(InvalidValue, match="a Design with a link second"):
        simulate_packets(scenario(row().links[:1], *flows), design=design)
    longer = tuple(msgspec.structs.replace(link, delay=6e-3) for link in row().links)
    with pytest.raises(InvalidValue, match=r"links\.first\.delay is 0\.005"):
        simulate_packets(scenario(longer, *flows), design=design)
    with pytest.raises(InvalidValue, match="none for a control"):
        simulate_packets(row(control=StaticPacing()), design=design)
    with pytest.raises(InvalidValue, match=r"control\.links"):
        row(control=StaticPacing(links=("third",)))
    with pytest.raises(InvalidValue, match="HftracDesign"):
        simulate_packets(row(), design=design.law)
    netctrl.arc(50).save(tmp_path / "arc.json")
    with pytest.raises(InvalidValue, match="of method arc"):
        simulate_packets(row(control=DesignPolicy(file=str(tmp_path / "arc.json"))))


def test_a_fluid_has_no_rates_that_are_set():
    paced = scenario((line(),), Flow(id="tcp", path=("line",), rtt=(0.05, 0.05), count=1), control=StaticPacing())
    with pytest.raises(InvalidValue, match="control"):
        netctrl.simulate(paced, "fluid")
