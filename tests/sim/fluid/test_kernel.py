"""The kernel: an independent integrator, the theory, conservation, order, and what results must not depend on."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.avq import AvqQueue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.fast_arc import FastArcQueue
from netctrl.laws.aqm.fluid import PROBABILITY, column
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DesignQueue, DropTailQueue
from netctrl.laws.aqm.red import RED, RedQueue
from netctrl.laws.aqm.sfc import SfcQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.rate.records import FastSender
from netctrl.scenario.links import Change, Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Web
from netctrl.sim.fluid import run as run_module
from netctrl.sim.fluid.kernel import advance
from netctrl.sim.fluid.problem import choose_step, longer_history, problem
from netctrl.sim.fluid.run import class_steps, simulate, simulate_many

QUEUES = [
    ArcQueue(),
    FastArcQueue(),
    PiQueue(),
    AvqQueue(),
    SfcQueue(),
    RedQueue(),
    PieQueue(),
    CodelQueue(),
    DropTailQueue(),
]


def kind(queue):
    return queue.__struct_config__.tag


def dumbbell(queue, *, count=50, rtt="60ms:1s", duration=60.0, buffer="500kB", **more):
    line = Link(id="line", source="a", target="b", capacity="10Mbit", buffer=buffer, queue=queue)
    flows = Flow(id="tcp", path=("line",), rtt=rtt, count=count)
    return Scenario(name="dumbbell", **({"duration": duration, "links": (line,), "flows": (flows,)} | more))


def busy(queue, seed=1, buffer="100kB"):
    """Everything at once: two hops, reverse traffic with its acknowledgements, web, changes, flows that come and go.

    Each link has 50 flows or more, of which a mean field tells the losses at drop-tail queues."""
    links = (
        Link(id="one", source="a", target="b", capacity="10Mbit", delay="5ms", buffer=buffer, queue=queue),
        Link(id="two", source="b", target="c", capacity="8Mbit", delay="5ms", buffer=buffer, queue=queue),
        Link(id="back", source="c", target="b", capacity="10Mbit", delay="5ms", buffer=buffer),
    )
    flows = (
        Flow(id="long", path=("one", "two"), ack_path=("back",), rtt="60ms:400ms", start="0s:5s", count=30),
        Flow(id="cross", path=("two",), rtt="50ms:80ms", start="3s:4s", stop="15s:20s", count=20, ecn=False),
        Flow(id="reverse", path=("back",), ack_path=("two",), rtt="50ms:80ms", count=50),
        Flow(id="web", path=("one",), rtt="60ms:200ms", count=50, offers=Web()),
    )
    changes = (Change(at="8s", link="one", capacity="4Mbit"), Change(at="12s", link="two", delay="60ms"))
    return Scenario(name="busy", duration=30.0, links=links, flows=flows, changes=changes, seed=seed)


@pytest.mark.parametrize("queue", QUEUES, ids=kind)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), buffer=st.sampled_from(["10kB", "100kB", "2MB"]))
def test_arrivals_are_departures_losses_and_backlog(queue, seed, buffer):
    result = simulate(busy(queue, seed, buffer))
    growth = np.diff(result.series["backlog"], axis=1, prepend=0.0)
    imbalance = result.series["arrived"] - result.series["departed"] - result.series["lost"] - growth
    assert np.abs(imbalance).max() <= 1e-9 * result.series["arrived"].sum()
    assert abs(imbalance.sum()) <= 1e-9 * result.series["arrived"].sum()
    for series in (result.series["backlog"], result.series["departed"], result.series["lost"], result.series["marked"]):
        assert series.min() >= 0.0
    capacity = result.series["capacity"] * result.scenario.interval / 8.0
    assert (result.series["departed"] <= capacity * (1.0 + 1e-9)).all()


@pytest.mark.parametrize("queue", [*QUEUES[:-1], DualPi2Queue()], ids=kind)
@pytest.mark.parametrize("buffer", ["10kB", "1MB"])
def test_flows_deliver_what_their_link_does_not_lose(queue, buffer):
    """Marked and dropped, sent and paused: what arrives at the receivers is what came to the link less what it lost."""
    line = Link(id="line", source="a", target="b", capacity="10Mbit", buffer=buffer, queue=queue)
    flows = (
        Flow(id="marked", path=("line",), rtt="20ms:100ms", count=60),
        Flow(id="dropped", path=("line",), rtt="20ms:100ms", count=60, ecn=False, sender="cubic"),
        Flow(id="scalable", path=("line",), rtt="20ms", count=40, sender="dctcp", start="2s", stop="4s"),
        Flow(id="web", path=("line",), rtt="60ms:200ms", count=50, offers=Web()),
    )
    changes = (Change(at="6s", link="line", capacity="2Mbit"),)
    series = simulate(Scenario(duration="9s", links=(line,), flows=flows, changes=changes)).series
    assert series["lost"].sum() > 0.0
    whole = (series["arrived"] - series["lost"])[0]
    np.testing.assert_allclose(series["delivered"].sum(axis=0), whole, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("queue", ["droptail", "arc", "pie", "dualpi2"])
def test_one_flow_delivers_no_more_than_its_line_carries(queue):
    line = {"id": "line", "source": "a", "target": "b", "capacity": "5Mbit", "buffer": "20kB", "queue": {"kind": queue}}
    flow = {"id": "tcp", "path": ["line"], "rtt": "30ms", "count": 1, "sender": "cubic", "ecn": False}
    series = simulate(Scenario(duration="20s", links=[line], flows=[flow])).series
    assert series["lost"].sum() > 0.0
    entered = series["departed"].sum() + series["backlog"][0, -1]
    assert series["delivered"].sum() <= entered * (1.0 + 1e-9)
    assert series["delivered"].sum() == pytest.approx(series["departed"].sum(), rel=0.01)


def reference(rtts, flows, capacity, buffer, alpha, gamma, d, duration, h=2e-4):
    """Misra-Gong-Towsley with ARC by Euler steps and a dense history: no staggering, no midpoint, no ring."""
    steps = round(duration / h)
    n = len(rtts)
    W, q, p, b = np.full(n, 10.0), 0.0, 0.0, 0.0
    rate, mark = np.zeros((steps, n)), np.zeros(steps)
    backlogs = np.empty(steps)
    grid = np.arange(steps) * h
    for k in range(steps):
        if k and k % round(d / h) == 0:
            p, b = min(max(p + alpha * (b - gamma * (d * capacity - q)), 0.0), 1.0), 0.0
        R = rtts + q / capacity
        rate[k] = W / R
        back = k - R / h
        old = np.floor(back).astype(int)
        part = back - old
        x = np.zeros(n)
        s = np.zeros(n)
        for i in np.flatnonzero(old >= 0):
            x[i] = (1 - part[i]) * rate[old[i], i] + part[i] * rate[old[i] + 1, i]
            s[i] = mark[old[i]]
        arrivals = h * float(flows @ rate[k])
        W = np.maximum(W + h * (1.0 / R - 0.5 * W * x * s), 1.0)
        q = max(q + arrivals - h * capacity, 0.0)
        lost = max(q - buffer, 0.0)
        q -= lost
        b += arrivals - lost
        mark[k] = 1.0 - (1.0 - p) * (1.0 - lost / arrivals)
        backlogs[k] = q
    return grid + h, backlogs, mark


@pytest.mark.slow
def test_an_independent_integrator_agrees():
    rtts = np.array([0.1, 0.25, 0.4])
    lines = Link(
        id="line", source="a", target="b", capacity="10Mbit", buffer="2MB", queue=ArcQueue(alpha=1e-4, epoch=0.5)
    )
    flows = tuple(Flow(id=f"f{i}", path=("line",), rtt=rtt, count=20, classes=1) for i, rtt in enumerate(rtts))
    result = simulate(Scenario(name="three", duration=40.0, links=(lines,), flows=flows, step=0.001))
    t, q, p = reference(rtts, np.full(3, 20.0), 1250.0, 2000.0, 1e-4, 0.98, 0.5, 40.0)
    expected_q = np.interp(result.time_s, t, q)
    # Euler's own error at this step is a few parts in a thousand of the largest queue.
    assert expected_q.max() > 100.0
    assert np.abs(result.series["backlog"][0] / 1e3 - expected_q).max() < 4e-3 * expected_q.max()
    settled = result.time_s > 1.0
    middle = np.interp(result.time_s - 0.05, t, p)  # within an epoch p is held
    assert np.abs(result.series["probability"][0] - middle)[settled].max() < 6e-3 * p.max()


def near_rest(queue, step, epochs=False):
    """Equal flows at their equilibrium with a queue of 60 packets, and a link that loses a twentieth at t = 0."""
    C, tau, N, q = 1250.0, 0.25, 20, 60.0
    line = Link(id="line", source="a", target="b", capacity="10Mbit", queue=queue)
    flows = Flow(id="tcp", path=("line",), rtt=tau - q / C, count=1)
    change = Change(at=0.0, link="line", capacity="9.5Mbit")
    scenario = Scenario(
        name="rest", duration=4.0, interval=0.5, step=step, links=(line,), flows=(flows,), changes=(change,)
    )
    ready = problem(scenario)
    ready.plant.event_value[ready.plant.event_kind == 0] = N
    w0 = tau * C / N
    state = ready.state
    state.window[:], state.rate[:], state.signal[:], state.backlog[:] = w0, w0 / tau, 2.0 / w0**2, q
    state.law[:, PROBABILITY] = 2.0 / w0**2
    state.law[:, column(RED, "average")] = q
    advance(ready.plant, state, ready.record, np.zeros((0, ready.steps)), 0, ready.steps)
    return ready.record.links[0, 0]


# At rest p0 = 2/w0² = 2/15.6² must be what RED gives at 60 packets.
_P0 = 2.0 / 15.625**2
_BASE = _P0 / (2.0 - _P0)
SMOOTH = RedQueue(min_threshold=10e3, max_threshold=110e3, max_probability=2.0 * _BASE, weight=0.002)


@pytest.mark.parametrize(
    "queue", [SMOOTH, ArcQueue(alpha=1e-5, epoch=0.5, target_queue=60e3, target_utilization=1.0)], ids=kind
)
def test_halving_the_step_is_second_order(queue):
    runs = [near_rest(queue, 0.02 / 2**k) for k in range(5)]
    errors = [np.abs(coarse - fine).max() for coarse, fine in pairwise(runs)]
    assert np.ptp(runs[-1]) > 1.0  # something happens
    ratios = [a / b for a, b in pairwise(errors)]
    assert min(ratios) > 3.2, ratios
    assert max(ratios) < 5.0, ratios


def test_arc_settles_at_the_equilibrium():
    result = simulate(dumbbell(ArcQueue(alpha=6e-6), rtt=(0.5, 0.5), duration=400.0, warmup=300.0))
    link = result.of("line")
    w0 = 0.5 * 0.98 * 1250.0 / 50
    assert link["utilization"] == pytest.approx(0.98, abs=1e-4)
    assert result.totals["probability"][0, 0] == pytest.approx(2.0 / w0**2, rel=1e-3)
    assert link["backlog"] < 1.0


def test_marking_or_dropping_makes_no_difference_to_the_senders():
    marked, dropped = (
        simulate(dumbbell(ArcQueue(alpha=6e-6), flows=(Flow(id="tcp", path=("line",), rtt=0.5, count=50, ecn=ecn),)))
        for ecn in (True, False)
    )
    assert marked.series["lost"].sum() == 0.0
    assert dropped.series["marked"].sum() == 0.0
    assert dropped.series["lost"].sum() > 0.0


def test_drop_tail_fills_its_buffer():
    result = simulate(dumbbell(DropTailQueue(), count=300, duration=120.0, warmup=60.0))
    link = result.of("line")
    assert link["backlog"] > 400e3
    assert link["loss"] > 0.01


def test_fast_senders_meet_the_target():
    queue = FastArcQueue(alpha=1e-5, epoch="200ms")
    # Without a bound the queue would grow as fast as the news of it travels, at twice the capacity.
    line = Link(id="line", source="a", target="b", capacity="10Mbit", buffer="100kB", queue=queue)
    flows = Flow(id="fast", path=("line",), rtt="100ms", count=10, sender=FastSender(max_rate="2Mbit", gain=0.05))
    result = simulate(Scenario(name="fast", duration=200.0, warmup=150.0, links=(line,), flows=(flows,)))
    assert result["utilization", result.links[0]] == pytest.approx(0.98, abs=1e-3)
    wrong = Link(id="line", source="a", target="b", capacity="10Mbit")
    with pytest.raises(InvalidValue, match="fast-arc"):
        simulate(Scenario(name="fast", duration=2.0, links=(wrong,), flows=(flows,)))


def same(a, b):
    names = ("backlog", "arrived", "probability", "payload")
    same_series = all(np.array_equal(a.series[name], b.series[name]) for name in names)
    return same_series and np.array_equal(a.transfers["duration"], b.transfers["duration"])


def test_results_depend_neither_on_blocks_nor_on_workers(monkeypatch):
    scenarios = [busy(ArcQueue(), seed) for seed in range(5)]
    alone = [simulate(scenario) for scenario in scenarios]
    shares = []
    for options in ({"batch_size": 2}, {"batch_size": 5}, {"n_jobs": 2, "batch_size": 2, "progress": shares.append}):
        together = simulate_many(scenarios, **options)
        assert all(same(a, b) for a, b in zip(alone, together, strict=True))
    assert shares[-1] == 1.0
    monkeypatch.setattr(run_module, "_CHUNK", 1)  # the kernel is called for 1000 steps at a time
    assert same(simulate(scenarios[0]), alone[0])
    assert not same(alone[0], alone[1])
    with pytest.raises(InvalidValue):
        simulate_many(scenarios, batch_size=0)


def test_a_history_that_grows_is_the_same_as_a_long_one(monkeypatch):
    """Without a bound the queueing delay outgrows the first history; the run goes on with a longer one."""
    scenario = dumbbell(DropTailQueue(), count=200, rtt="100ms", buffer=None, duration=20.0)
    grown = simulate(scenario)
    assert grown.series["backlog"].max() * 8.0 / 10e6 > 1.0  # seconds, against the 0.2 of the first history
    ready = problem(scenario)
    state = ready.state
    for _ in range(6):
        state = longer_history(state, 0)
    advance(ready.plant, state, ready.record, np.zeros((0, ready.steps)), 0, ready.steps)
    assert np.array_equal(ready.record.links[0] * 1000.0, grown.series["backlog"])
    monkeypatch.setattr("netctrl.sim.fluid.problem._MAX_HISTORY", 2 * ready.state.rate.nbytes)
    with pytest.raises(InvalidValue, match="bounded buffer"):
        simulate(scenario)


@pytest.mark.parametrize(
    ("queue", "more", "named"),
    [
        (ArcQueue(epoch=1e-9), {}, "step"),
        (PieQueue(update=1.3e-9), {}, "step"),
        (ArcQueue(), {"step": 1e-8}, "step"),
        (ArcQueue(), {"rtt": 1e-9}, "step"),
        (ArcQueue(), {"rtt": "1ms:100000s", "count": 1000}, "rtt"),
        (AvqQueue(), {"buffer": None}, "links.line.virtual_buffer"),
    ],
)
def test_what_would_take_for_ever_or_all_memory_is_refused(queue, more, named):
    with pytest.raises(InvalidValue) as caught:
        simulate(dumbbell(queue, **more))
    assert caught.value.argument == named


def test_changes_in_one_step_keep_their_order():
    """Rates far below the step apart: the later one stands, be it the greater or the smaller."""
    for rates in (("5Mbit", "2Mbit"), ("2Mbit", "5Mbit")):
        changes = tuple(Change(at=10.0 + 1e-6 * k, link="line", capacity=rate) for k, rate in enumerate(rates))
        result = simulate(dumbbell(DropTailQueue(), count=100, duration=20.0, changes=changes[::-1]))
        served = result.series["departed"][0, -50:].sum() * 8.0 / 5.0
        assert served == pytest.approx(float(rates[-1][0]) * 1e6, rel=1e-6)


def test_a_delay_that_shrinks_shortens_the_step():
    line = Link(id="line", source="a", target="b", capacity="10Mbit", delay="100ms")
    flows = Flow(id="tcp", path=("line",), rtt="220ms", count=5)
    change = Change(at=5.0, link="line", delay="1ms")
    scenario = Scenario(name="shrinks", duration=10.0, links=(line,), flows=(flows,), changes=(change,))
    assert choose_step(scenario) <= 0.1 * (0.220 - 0.198) + 1e-12
    assert simulate(scenario).series["delivered"].sum() > 0.0


def test_a_class_stands_for_its_flows():
    """Flows of one round trip are one class or many, with the same sums."""
    many = simulate(dumbbell(ArcQueue(), rtt="400ms"))
    flows = Flow(id="tcp", path=("line",), rtt="400ms", count=50, classes=1)
    one = simulate(dumbbell(ArcQueue(), flows=(flows,)))
    assert one.series["backlog"] == pytest.approx(many.series["backlog"], rel=1e-6, abs=1e-3)
    assert class_steps(one.scenario) * 50 == class_steps(many.scenario)


def test_a_link_that_gets_longer_slows_the_senders():
    change = Change(at=30.0, link="line", delay="200ms")
    result = simulate(dumbbell(DropTailQueue(), rtt="100ms", count=2, buffer=None, changes=(change,)))
    sent = result.series["delivered"][0]
    drop = sent[300] / sent[299]
    # Round trips of 0.1 s and what queues become 0.5 s and what queues, with the same windows.
    queued = result.series["backlog"][0, 299] * 8.0 / 10e6
    assert drop == pytest.approx((0.1 + queued) / (0.5 + queued), rel=0.05)


def test_steps_divide_sample_and_epochs():
    for queue, epoch in ((PiQueue(), 1 / 170), (PieQueue(), 0.015), (ArcQueue(epoch=0.3), 0.3)):
        step = choose_step(dumbbell(queue))
        assert step <= 0.006 + 1e-12
        for length in (0.1, epoch):
            assert length / step == pytest.approx(round(length / step), abs=1e-6)
    odd = choose_step(dumbbell(ArcQueue(epoch=math.pi)))
    assert 0.1 / odd == pytest.approx(round(0.1 / odd))
    assert choose_step(dumbbell(ArcQueue(), step=0.005)) == pytest.approx(0.005)
    for step in (0.04, 0.003):
        with pytest.raises(InvalidValue, match="step"):
            choose_step(dumbbell(ArcQueue(), step=step))


@pytest.mark.parametrize(
    "queue", [AvqQueue(), CodelQueue(), PieQueue(), RedQueue(), SfcQueue()], ids=lambda q: type(q).__name__
)
def test_cubic_s_mean_field_stays_finite_where_every_packet_of_a_step_is_a_cut(queue):
    """One flow over 2.5 MB of line and a small buffer: an overflow has more cuts a second than there are steps, and the
    window before a cut must come to the window, not below."""
    flows = Flow(id="f", path=("line",), rtt="200ms", count=1, sender="cubic", ecn=False)
    links = (Link(id="line", source="a", target="b", capacity="100Mbit", delay="1ms", buffer="100kB", queue=queue),)
    found = simulate(Scenario(name="one", duration=60.0, links=links, flows=(flows,), packet_size=1500))
    assert np.isfinite(found.series["backlog"]).all() and found.series["lost"].sum() > 0.0
    assert found.series["delivered"].min() >= 0.0


def test_a_place_for_a_design_is_no_law():
    with pytest.raises(InvalidValue, match="--design"):
        simulate(dumbbell(DesignQueue()))


def test_progress_comes_to_its_end():
    shares = []
    simulate(dumbbell(ArcQueue()), progress=shares.append)
    assert shares[-1] == 1.0
    assert shares == sorted(shares)


def test_a_result_says_where_it_came_from():
    result = simulate(dumbbell(ArcQueue(), seed=7), argv=("x",))
    assert result.simulator == "fluid"
    assert (result.provenance.seed, result.provenance.argv) == (7, ("x",))
    assert set(result.provenance.libraries) == {"numpy", "numba"}
