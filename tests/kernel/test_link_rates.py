"""Link rates that a law or a fixed factor sets, in the kernel beside the packet engine, which has the same law."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.design.mpc.file import mpc_from_file
from netctrl.engines.case import case_of
from netctrl.engines.engine import supports
from netctrl.kernel.plan import read_results
from netctrl.kernel.programs import read_record
from netctrl.kernel.scenarios import run
from netctrl.kernel.scenarios.link_control import rater_task
from netctrl.kernel.scenarios.planner import plan_scenario
from netctrl.kernel.scenarios.rater import RaterTask, least_rates
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.link_rate.distributed_step import measure_links
from netctrl.model import network
from netctrl.model.datasets import problem_path
from netctrl.model.design.design import HftracDesign
from netctrl.model.network import Demand, Network
from netctrl.scenario.builders import routed
from netctrl.scenario.links import Change, Link
from netctrl.scenario.network.policy import HftracPolicy, StaticPacing, static_rates
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Demand as Offered
from netctrl.scenario.tcp_aqm.offers import Stream
from netctrl.sim.fluid.traffic import draw_flows
from netctrl.sim.network.demand_draws import draw_demands
from netctrl.sim.network.flow_links import flow_links

CAPACITY = 10e6
ENDS = {"aside": ("a", "c"), "second": ("b", "c"), "first": ("a", "b")}
SLOWER_AND_FASTER = (Change(at=4.0, link="second", capacity=5e6), Change(at=7.0, link="second", capacity=20e6))


@pytest.fixture(scope="module")
def design() -> HftracDesign:
    """Of two links in a row."""
    links = tuple(
        network.Link(id=name, source=ENDS[name][0], target=ENDS[name][1], capacity=CAPACITY, delay=5e-3, buffer=60e3)
        for name in ("first", "second")
    )
    demands = (
        Demand(id="long", source="a", target="c", mean=6e6, std=1e6),
        Demand(id="short", source="b", target="c", mean=1e6, std=1e6),
    )
    return netctrl.hftrac(Network(name="row", links=links, demands=demands), 5e-3, mu=0.1, horizon="exact")


def row(*flows, queue=None, **parts):
    """The Design's links in another order, beside one that it doesn't know."""
    options = {} if queue is None else {"queue": queue}
    links = tuple(
        Link(id=name, source=source, target=target, capacity=CAPACITY, delay=5e-3, buffer=60e3, **options)
        for name, (source, target) in ENDS.items()
    )
    settings = {"duration": 10.0, "warmup": 2.0, "interval": 0.01, "packet_size": 1000, "seed": 3} | parts
    return netctrl.Scenario(name="row", links=links, flows=flows, **settings)


def demands() -> tuple[Flow, ...]:
    return (
        Flow(id="long", path=("first", "second"), offers=Offered(mean="6Mbit", std="2Mbit", interval="5ms")),
        Flow(id="short", path=("second",), offers=Offered(mean="1Mbit", std="1Mbit", interval="5ms")),
    )


def transfers(sender: str) -> tuple[Flow, Flow]:
    """Poisson arrivals beside TCP: with constant ones, who finds a full buffer depends on the last nanosecond."""
    return (
        Flow(id="long", path=("first", "second"), rtt=(0.04, 0.06), count=4, sender=sender),
        Flow(id="short", path=("second",), count=1, offers=Stream(rate=1e6, spacing="poisson")),
    )


def both(scenario, **options):
    return tuple(netctrl.simulate(scenario, engine, **options) for engine in ("packet", "kernel"))


# --- what is planned -------------------------------------------------------------------------------------------------


def test_the_least_rate_is_below_the_nominal_one() -> None:
    """A tenth of the capacity, where that is at most half of the nominal rate."""
    capacity, nominal = np.full(3, 10e6), np.array([5e6, 2e6, 0.6e6])
    np.testing.assert_array_equal(least_rates(capacity, nominal), [1e6, 1e6, 0.3e6])


def test_a_law_sets_the_links_that_it_names(design) -> None:
    scenario = row(*demands(), changes=(*SLOWER_AND_FASTER, Change(at=1.0, link="aside", capacity=1e6)))
    control = flow_links(scenario, design)
    assert control is not None
    plan = control.plan
    drawn = {"draws": draw_flows(scenario, merged=False), "demands": draw_demands(scenario)}
    made = plan_scenario(scenario, control=control, **drawn)
    task = rater_task(control, scenario, made.places)
    by_name = dict(zip(plan.links, task.place.tolist(), strict=True))
    assert by_name == {"second": made.places[1].tolist(), "first": made.places[2].tolist()}
    second = plan.links.index("second")
    np.testing.assert_array_equal(task.changes, [[4.0, second, 5e6], [7.0, second, 20e6]])
    # the law's program changes its links' classes, and the first process the others' and all transmission times
    changes = sum(kind == 4 for kind, _ in read_results(made.writer.content()))
    free = plan_scenario(scenario, **drawn)
    assert sum(kind == 4 for kind, _ in read_results(free.writer.content())) == 6
    assert changes == 4


def test_a_factor_is_of_the_named_links() -> None:
    scenario = row(*demands(), control=StaticPacing(factor=0.5, links=("second",)))
    assert static_rates(scenario) == {"second": 5e6}
    assert set(static_rates(row(*demands(), control=StaticPacing(factor=0.5)))) == set(ENDS)
    assert static_rates(row(*demands())) == {}


@pytest.mark.needs("lab")
def test_a_law_is_compiled_before_the_run_as_the_program_inside_calls_it(design, monkeypatch) -> None:
    """What is compiled inside isn't kept: each run would compile it again."""
    scenario, counts = row(*demands()), []

    def inside(writer, kernel, guest, folder, **_):
        for _ in range(2):
            counts.append(len(measure_links.signatures))
            read_record(folder, RaterTask).warm_up()
        return []

    monkeypatch.setattr(run, "run_plan", inside)
    monkeypatch.setattr(run, "build_guest", lambda: None)
    control = flow_links(scenario, design)
    made = plan_scenario(scenario, draw_flows(scenario, merged=False), demands=draw_demands(scenario), control=control)
    run._results(made, None, 1, (rater_task(control, scenario, made.places),))
    assert counts[0] == counts[1] > 0


def test_what_is_not_for_a_design_is_refused(design) -> None:
    assert supports(case_of(row(*demands()), design))["kernel"] is None
    longer = tuple(msgspec.structs.replace(link, delay=6e-3) for link in row(*demands()).links)
    with pytest.raises(InvalidValue, match=r"links\.first\.delay is 0\.005"):
        netctrl.simulate(row(*demands()).replace(links=longer), "kernel", design=design)


# --- beside the packet engine ----------------------------------------------------------------------------------------


@pytest.mark.needs("lab")
def test_a_nominal_rate_below_a_tenth_of_the_capacity_is_kept() -> None:
    """A link of 100 Mbit/s that is to send 5: at a tenth of its capacity its backlog would be 16 bytes, not 3.6 kB."""
    links = tuple(
        network.Link(source=source, target=target, capacity=rate, delay=0.02, buffer=30e3)
        for source, target, rate in (("a", "b", 100e6), ("b", "c", 20e6))
    )
    graph = Network(name="low", links=links, demands=(Demand(id="d", source="a", target="c", mean=5e6, std=2e6),))
    control = HftracPolicy(architecture="coordinated", mu=0.3)
    scenario = routed(graph, control=control, duration="20s", warmup="1s", interval="20ms", seed=4)
    packet, kernel = both(scenario)
    np.testing.assert_allclose(kernel.totals["departed"], packet.totals["departed"], rtol=1e-3)
    np.testing.assert_allclose(kernel.totals["backlog"][0, 0], packet.totals["backlog"][0, 0], rtol=0.03)
    np.testing.assert_allclose(kernel.totals["rate_square"], packet.totals["rate_square"], rtol=0.03)


@pytest.mark.needs("lab")
@pytest.mark.parametrize("changes", [(), SLOWER_AND_FASTER])
def test_demands_under_a_design_are_those_of_the_packet_engine(design, changes) -> None:
    scenario = row(*demands(), changes=changes)
    (packet, kernel), free = both(scenario, design=design), netctrl.simulate(scenario, "packet")
    np.testing.assert_allclose(
        kernel.series["departed"].sum(axis=1), packet.series["departed"].sum(axis=1), atol=2000.0
    )
    np.testing.assert_allclose(kernel.series["lost"].sum(axis=1), packet.series["lost"].sum(axis=1), atol=3000.0)
    np.testing.assert_allclose(
        kernel.series["backlog"].mean(axis=1), packet.series["backlog"].mean(axis=1), rtol=0.03, atol=40
    )
    for link in (1, 2):
        assert np.corrcoef(kernel.series["departed"][link], packet.series["departed"][link])[0, 1] > 0.9
        assert np.corrcoef(kernel.series["departed"][link], free.series["departed"][link])[0, 1] < 0.9 or changes
    if changes:
        assert packet.series["lost"][1].sum() > 100e3


@pytest.mark.needs("lab")
def test_an_mpc_law_holds_the_queue_that_the_packet_engine_has() -> None:
    """Announced demand and cross traffic that isn't: the queue goes from 100 kB to 0, 190 and 150 kB and back."""
    packet, kernel = both(mpc_from_file(problem_path("uplink")))
    np.testing.assert_allclose(kernel.series["backlog"], packet.series["backlog"], atol=4e3)
    assert np.ptp(packet.series["backlog"][0][50:]) > 150e3


@pytest.mark.needs("lab")
@pytest.mark.parametrize(("sender", "queue"), [("reno", None), ("cubic", PieQueue())])
def test_tcp_under_a_design_has_the_packet_engines_throughput_and_backlog(design, sender, queue) -> None:
    """Without the Design the first link's backlog is 2.9 kB, under it 11.5 to 16 kB."""
    scenario = row(*transfers(sender), queue=queue, duration=20.0, warmup=5.0)
    runs = [both(scenario.replace(seed=seed), design=design) for seed in (1, 2)]
    found = np.array(
        [[[(one["throughput", link], one["backlog", link]) for link in one.links] for one in pair] for pair in runs]
    ).mean(axis=0)
    packet, kernel = found[:, 1:]
    np.testing.assert_allclose(kernel[:, 0], packet[:, 0], rtol=5e-3)
    np.testing.assert_allclose(kernel[:, 1], packet[:, 1], rtol=0.08)
    assert packet[1, 1] > 10e3


@pytest.mark.needs("lab")
@pytest.mark.parametrize("changes", [(), SLOWER_AND_FASTER])
def test_a_fixed_rate_is_kept_to_a_packet(changes) -> None:
    """8 Mbit/s of a capacity of 10, then of 5, then 8 of 20."""
    control = StaticPacing(factor=0.8, links=("second",))
    steady = Flow(id="steady", path=("second",), count=1, offers=Stream(rate=9e6, spacing="constant"))
    packet, kernel = both(row(steady, control=control, changes=changes))
    rate = np.full(1000, 8e6)
    if changes:
        rate[400:700] = 5e6
    since = slice(100, None)
    sent = kernel.series["departed"][1][since].cumsum()
    expected = (0.01 * rate / 8.0)[since].cumsum()
    assert np.abs(sent - expected).max() <= 3000.0
    np.testing.assert_allclose(kernel.series["backlog"][1], packet.series["backlog"][1], atol=3000.0)


def _of_second(result) -> tuple[float, float]:
    """Throughput [bit/s] and mean backlog [byte] of the second link."""
    second = result.links[1]
    return result["throughput", second], result["backlog", second]


@pytest.mark.needs("lab")
@pytest.mark.parametrize("control", [StaticPacing(factor=0.5), None])
def test_arc_sees_the_rate_that_is_set(design, control) -> None:
    """At half of the capacity, and under the Design: with the capacity in its place ARC would let the buffer fill."""
    long, short = transfers("reno")
    flows = msgspec.structs.replace(long, count=8, ecn=True), short
    queue = ArcQueue(alpha=2e-4, epoch=0.1, target_queue=15e3)
    scenario = row(*flows, queue=queue, duration=40.0, warmup=10.0, control=control)
    options = {} if control else {"design": design}
    # Of one seed throughput differs from another's by .9 %, and the kernel's from one environment's to another's (the
    # Design's law runs in an interpreter there): means of 20 and 5 have it to .2 and .4 %.
    packet, kernel = (
        np.mean(
            [_of_second(netctrl.simulate(scenario.replace(seed=k), engine, **options)) for k in range(1, n)], axis=0
        )
        for engine, n in (("packet", 21), ("kernel", 6))
    )
    assert kernel[0] == pytest.approx(packet[0], rel=0.02)
    assert kernel[1] == pytest.approx(packet[1], rel=0.1)
    assert kernel[1] < 20e3


@pytest.mark.needs("lab")
def test_the_same_seed_gives_the_same_result(design) -> None:
    scenario = row(*transfers("cubic"), duration=3.0, warmup=0.0)
    one, other = (netctrl.simulate(scenario, "kernel", design=design) for _ in range(2))
    np.testing.assert_array_equal(one.series["backlog"], other.series["backlog"])
    np.testing.assert_array_equal(one.series["payload"], other.series["payload"])
