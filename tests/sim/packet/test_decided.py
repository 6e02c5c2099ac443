"""A link's rate by an MPC Design, on packets: the Design's own course, what is announced, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.design.mpc.course import mpc_course
from netctrl.design.mpc.file import mpc_from_file
from netctrl.engines.case import case_of
from netctrl.engines.engine import supports
from netctrl.model.datasets import problem_path
from netctrl.model.design.design import MpcDesign
from netctrl.model.trace import RateTrace
from netctrl.scenario.design import design_link
from netctrl.scenario.links import Change, Link
from netctrl.scenario.network.decided import announced_rates
from netctrl.scenario.network.policy import DesignPolicy
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Demand, Stream

BITS_KB = 8e3


@pytest.fixture(scope="module")
def design() -> MpcDesign:
    return mpc_from_file(problem_path("uplink"))


def link(*flows: Flow, capacity: float = 100e6, **parts: object):
    """The Design's link."""
    line = Link(id="uplink", source="a", target="b", capacity=capacity, buffer=1e6)
    return netctrl.Scenario(links=(line,), flows=flows, interval=0.01, **{"duration": 3.0} | parts)


def test_packets_go_through_the_designs_course(design: MpcDesign) -> None:
    """From the first settling on to the last: by less than two packets a stream, of 1 kB each."""
    run = netctrl.simulate(design, "packet")
    course = mpc_course(design.law, design.inputs.course, np.array([0.8]), np.array([45.5]))
    seen, told = run.series["backlog"][0][50:399], 1e6 / 8.0 * course.outputs[51:400, 0]
    assert np.abs(seen - told).max() < 4e3
    assert np.ptp(told) > 100e3
    assert run.series["lost"].sum() == 0.0


def test_announcements_are_of_the_flows_that_are_named(design: MpcDesign) -> None:
    """Demand jumps from 30 to 80 Mbit/s after 2 s: announced, it shakes the queue less; of another flow, as much."""
    flows = (
        Flow(id="one", offers=Stream(rate=30e6, spacing="constant")),
        Flow(id="two", offers=Stream(rate=50e6, spacing="constant"), start="2s"),
    )
    highest = []
    for announced in (("one", "two"), (), ("one",)):
        control = DesignPolicy(file="none", announced=announced)
        run = netctrl.simulate(link(*flows, control=control), "packet", design=design)
        highest.append(float(run.series["backlog"][0][100:].max()))
    assert highest[0] == highest[1] < 200e3
    assert highest[2] > 3.0 * highest[0]


@pytest.mark.parametrize("late", [0, 3])
def test_rates_act_as_late_as_the_plant_says(late: int) -> None:
    """A queue is held whatever the delay is, since the law knows of it and the link has it."""
    problem = netctrl.MpcProblem(
        plant=netctrl.link_rate_plant("10ms"), measured=(1,), delay=late, measurement_delay=1, horizon=30,
        output_weight=1.0, rate_weight=1e-4, input_lower=0.0, input_upper=100.0,
    )  # fmt: skip
    made = netctrl.design_mpc(problem, reference=0.4, disturbances=[[1.0, 90.0]], link="uplink")
    flow = Flow(offers=Stream(rate=30e6, spacing="constant"))
    change = Change(at="1s", flow="stream", rate="60Mbit")
    run = netctrl.simulate(link(flow, changes=(change,), control=DesignPolicy(file="none")), "packet", design=made)
    backlog = run.series["backlog"][0]
    assert np.abs(backlog[50:100] - 50e3).max() < 2e3
    assert np.abs(backlog[200:] - 50e3).max() < 2e3
    # What arrives is measured an interval after the jump by 30 Mbit/s, and answered `late` intervals after that.
    grown = 30e6 * 0.01 / 8.0
    assert backlog[100 + late] - 50e3 == pytest.approx((late + 1) * grown, rel=0.05)


def test_untold_traffic_leaves_no_offset(design: MpcDesign) -> None:
    flows = tuple(Flow(id=name, offers=Stream(rate=rate)) for name, rate in (("told", 30e6), ("untold", 20e6)))
    control = DesignPolicy(file="none", announced=("told",))
    run = netctrl.simulate(link(*flows, duration=20.0, control=control), "packet", design=design)
    assert run.series["departed"][0][500:].mean() * 8.0 / 0.01 == pytest.approx(50e6, rel=0.01)
    assert run.series["backlog"][0][500:].mean() == pytest.approx(100e3, rel=0.02)


@settings(max_examples=60)
@given(some.data())
def test_what_is_announced_is_what_is_offered(draw: some.DataObject) -> None:
    """By adding up each millisecond."""
    count, ends = draw.draw(some.integers(1, 3)), draw.draw(some.integers(5, 40))
    start = draw.draw(some.integers(0, 10)) / 1e2
    stop = draw.draw(some.one_of(some.none(), some.integers(11, 40).map(lambda t: t / 1e2)))
    if draw.draw(some.booleans()):
        series = np.array(draw.draw(some.lists(some.integers(1, 9), min_size=1, max_size=6))) * 1e6
        offers = Demand(rates=RateTrace(interval_s=0.05, names=("f",), rate_bit_per_s=series[:, None]), interval=0.05)
        changes, times, rates = (), start + 0.05 * np.arange(30), np.tile(series, 30)[:30]
    else:
        offers = Stream(rate=4e6)
        moments = sorted(draw.draw(some.sets(some.integers(1, 39), max_size=4)))
        rates = np.array([4e6, *(1e6 * draw.draw(some.integers(0, 9)) for _ in moments)])
        times = np.array([0.0, *(t / 1e2 for t in moments)])
        changes = tuple(Change(at=at, flow="f", rate=rate) for at, rate in zip(times[1:], rates[1:], strict=True))
    flow = Flow(id="f", offers=offers, count=count, start=(start, start), stop=None if stop is None else (stop, stop))
    found = announced_rates(link(flow, changes=changes, duration=0.4), "uplink", (), 0.02, ends)
    middle = (np.arange(20 * ends) + 0.5) / 1e3
    sent = rates[np.searchsorted(times, middle, side="right") - 1] * (middle > start)
    sent[middle > (np.inf if stop is None else stop)] = 0.0
    assert found == pytest.approx(count * sent.reshape(ends, 20).mean(axis=1), abs=1e-3)


def test_what_can_t_be_run_is_said(design: MpcDesign, tmp_path: Path) -> None:
    stream = Flow(id="s", offers=Stream(rate=1e6))
    tcp = Flow(id="t", rtt="20ms")
    named = DesignPolicy(file="none", announced=("t",))
    other = netctrl.Scenario(
        links=({"id": "x", "source": "a", "target": "b", "capacity": "1Mbit"},), flows=(stream,), duration=1.0
    )
    free = netctrl.design_mpc(
        netctrl.MpcProblem(plant=netctrl.StateSpace([[0.5]], [[1.0]], [[1.0]], dt=1.0), horizon=3, output_weight=1.0)
    )
    for scenario, law, said in (
        (link(stream, tcp, control=named), design, "streams, bursts or demands"),
        (other, design, "for link uplink"),
        (link(stream), free, "a plant that is no link"),
    ):
        with pytest.raises(InvalidValue, match=said):
            netctrl.simulate(scenario, "packet", design=law)
    with pytest.raises(InvalidValue, match="no link"):
        design_link(free)
    lacks = supports(case_of(link(tcp), design))
    assert lacks["packet"] is None
    assert lacks["ns3"] is None
    assert lacks["fluid"] == "link rates that a Design sets over flows"


def test_a_scenario_names_the_designs_file(design: MpcDesign, tmp_path: Path) -> None:
    design.save(tmp_path / "mpc.json")
    control = DesignPolicy(file=str(tmp_path / "mpc.json"))
    stream = Flow(offers=Stream(rate=30e6))
    given = netctrl.simulate(link(stream), "packet", design=design)
    named = netctrl.simulate(link(stream, control=control), "packet")
    assert np.array_equal(given.series["backlog"], named.series["backlog"])
