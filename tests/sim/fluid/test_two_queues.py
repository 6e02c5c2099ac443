"""DualPI2, Cubic, DCTCP and Prague in the fluid: an independent integrator, closed forms, conservation, and packets."""

from __future__ import annotations

from bisect import bisect_right
from math import sqrt

import numpy as np
import pytest
from scipy.optimize import brentq

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.fluid import column
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.l4s.pi2 import PI2, Pi2Queue
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.targets.dualpi2 import Dualpi2Law
from netctrl.plants.tcp import cubic_point, scalable_slope
from netctrl.scenario.links import Change, Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.fluid.kernel import advance
from netctrl.sim.fluid.problem import longer_history, problem
from netctrl.sim.fluid.run import simulate
from netctrl.sim.fluid.windows import first_memory

SIZE = 1500.0
VIRTUAL = 0.025


def flows(name, sender, rtt, count=1, **changed):
    return Flow(id=name, path=("line",), rtt=rtt, count=count, sender=sender, **changed)


def scenario(*groups, rate=4e7, queue=None, duration=40.0, interval=0.01, buffer=1e6, **changed):
    line = Link(id="line", source="a", target="b", capacity=rate, queue=queue or DualPi2Queue(), buffer=buffer)
    whole = {"name": "two", "duration": duration, "interval": interval, "packet_size": SIZE, "warmup": duration / 2}
    return Scenario(**whole, links=(line,), flows=groups, **changed)


def found(whole):
    """(rates [packet/s], round trips [s], p', backlog [packet]) in the second half."""
    result = simulate(whole)
    late = result.time_s > whole.warmup
    rates = result.series["delivered"][:, late].mean(axis=1) / SIZE / whole.interval
    return rates, result.series["rtt"][:, late].mean(axis=1), sqrt(result.series["probability"][0, late].mean()), result


# --- a second integrator ----------------------------------------------------------------------------------------------


def second_integrator(queue, capacity, rtt, counts, seconds, h=1e-4):
    """Reno in the C queue, Prague in the L queue, both of ten packets at first: Euler, dense histories, bisection for
    the heads. Yields C and L backlog and p' each step."""
    steps, (many, few) = round(seconds / h), counts
    rates, signals = np.zeros((2, steps)), np.zeros((2, steps))
    came, gone, backlog = [[0.0], [0.0]], [0.0, 0.0], [0.0, 0.0]
    W, average, known, base, old = [10.0, 10.0], 1.0, False, 0.0, 0.0
    every, shares, served = round(queue.update / h), (queue.protection, 1.0 - queue.protection), [capacity] * 2
    kept = np.empty((3, steps))

    def age(which, k):
        if backlog[which] <= 1e-9:
            return 0.0
        j = bisect_right(came[which], gone[which])
        return (k - (j - 1) - (gone[which] - came[which][j - 1]) / (came[which][j] - came[which][j - 1])) * h

    for k in range(steps):
        if k and k % every == 0:
            delay = max(age(0, k), age(1, k))
            base = min(max(base + queue.alpha * (delay - queue.target) + queue.beta * (delay - old), 0.0), 1.0)
            old = delay
        acts = sum(backlog) >= 2.0
        late = age(1, k) > queue.step and backlog[1] >= queue.step_packets
        signals[:, k] = acts * base**2, 1.0 if late else acts * queue.coupling * base
        for i in range(2):
            wait = backlog[i] / served[i]
            R = rtt + wait
            at, mark = k - R / h, k - rtt / h
            x = rates[i, int(at)] + (at - int(at)) * (rates[i, int(at) + 1] - rates[i, int(at)]) if at > 0 else 0.0
            p = signals[i, int(mark)] if mark > 0 else 0.0
            if i == 0:
                W[0] += h * (1.0 / R - 0.5 * W[0] * x * p)
            else:
                V = max(R, VIRTUAL)
                known = known or p > 0.0
                cuts = x * p / (1.0 + x * p * V)
                W[1] = max(W[1] + h * (x * (1.0 - p) / W[1] * (R / V) ** 2 - 0.5 * average * W[1] * cuts), 2.0)
                average += h * known * (p - average) / (16.0 * V)
            rates[i, k] = W[i] / R
        offered = [many * rates[0, k] * h, few * rates[1, k] * h]
        room = h * capacity
        fill = [backlog[i] + offered[i] for i in range(2)]
        low = min(fill[1], max(shares[1] * room, room - fill[0]))
        sent = [min(fill[0], room - low), low]
        served = [max(room - low, shares[0] * room) / h, max(shares[1] * room, room - fill[0]) / h]
        for i in range(2):
            backlog[i] = fill[i] - sent[i]
            came[i].append(came[i][-1] + offered[i])
            gone[i] += sent[i]
        kept[:, k] = backlog[0], backlog[1], base
    return kept


@pytest.mark.slow
@pytest.mark.parametrize(("counts", "rate"), [((4, 4), 4e7), ((2, 6), 1.2e8)])
def test_a_second_integrator_agrees(counts, rate):
    """From a start with empty queues, through overshoot, to rest: the C queue within 2 % of its peak."""
    groups = flows("c", "reno", 0.02, counts[0], classes=1), flows("l", "prague", 0.02, counts[1], classes=1)
    result = simulate(scenario(*groups, rate=rate, duration=8.0, step=2e-4))
    capacity = rate / 8.0 / SIZE
    c, low, base = second_integrator(DualPi2Queue(), capacity, 0.02, counts, 8.0)
    at = np.round(result.time_s / 1e-4).astype(int) - 1
    expected = (c + low)[at]
    assert expected.max() > 0.0025 * capacity
    assert np.abs(result.series["backlog"][0] / SIZE - expected).max() < 0.02 * expected.max()
    assert np.abs(np.sqrt(result.series["probability"][0]) - base[at]).max() < 0.02 * base.max()


# --- at rest ----------------------------------------------------------------------------------------------------------


def prague_window(p, rtt):
    """(W + V/(R p)) (1 - p)(R/V)² = p W²/2: growth and cut of a cycle of W V/R + 1/p packets."""
    r = min(rtt / VIRTUAL, 1.0)
    return brentq(lambda W: (1.0 - p) * r * r * (W / r + 1.0 / p) - 0.5 * p * W * W, 1e-3, 1e4 / p)


CLASSIC = {
    "reno": lambda p, rtt: sqrt(2.0 / p),
    "dctcp": lambda p, rtt: sqrt(2.0) / p,
    "cubic": lambda p, rtt: max(sqrt(0.9 / 1.7 / (0.3 * p)), cubic_window(p, rtt)),
}


def cubic_window(p, rtt):
    """Of Cubic's own growth: cut each K - R seconds, K - R = R/(W p), with K = (0.3 W/0.4)^(1/3)."""
    return brentq(lambda W: (0.75 * W) ** (1.0 / 3.0) - rtt - rtt / (W * p), 1e-6, 1e9)


@pytest.mark.parametrize(
    ("classic", "rate", "rtt"), [("reno", 4e7, 0.01), ("reno", 4e7, 0.03), ("cubic", 4e7, 0.02), ("dctcp", 6e7, 0.02)]
)
def test_windows_rest_where_both_queues_probabilities_are_coupled(classic, rate, rtt):
    """Six flows of each kind: p' follows from the sum of the rates. The C queue waits for the target, the L one not."""
    queue = DualPi2Queue(alpha=0.08, beta=1.6)
    groups = flows("c", classic, rtt, 6, classes=1), flows("l", "prague", rtt, 6, classes=1)
    rates, trips, base, _ = found(scenario(*groups, rate=rate, queue=queue, buffer=1e8, duration=400.0, interval=0.1))
    capacity = rate / 8.0 / SIZE

    def excess(p):
        waited = rtt + queue.target
        return 6.0 * (CLASSIC[classic](p * p, waited) / waited + prague_window(2.0 * p, rtt) / rtt) - capacity

    expected = brentq(excess, 1e-5, 0.49)
    assert trips == pytest.approx([rtt + queue.target, rtt], rel=1e-3)
    assert base == pytest.approx(expected, rel=1e-2)
    assert rates[1] == pytest.approx(6.0 * prague_window(2.0 * expected, rtt) / rtt, rel=1e-2)
    assert rates.sum() == pytest.approx(capacity, rel=1e-3)


@pytest.mark.parametrize(
    ("sender", "rtt", "p"),
    [("reno", 0.1, 1e-3), ("cubic", 0.05, 1e-2), ("cubic", 0.3, 2e-4), ("dctcp", 0.05, 0.02), ("dctcp", 0.01, 0.02)],
)
def test_windows_rest_where_their_cycles_say_at_a_constant_probability(sender, rtt, p):
    """Over a link that is never full, whose law has stopped; Cubic at 300 ms grows by its own law, at 50 ms as Reno."""
    ready = problem(
        scenario(flows("c", sender, rtt), rate=1e9, queue=Pi2Queue(alpha=1e-9, beta=0.0), duration=4000.0, interval=1.0)
    )
    ready.state.law[0, column(PI2, "base_probability")] = sqrt(p)
    if rtt == 0.3:  # there M' = λ C (t + R − K)³, so that deviations go as slowly as 1/√t
        W = cubic_window(p, rtt)
        ready.state.memory[:, 0] = (0.75 * W) ** (1.0 / 3.0) - rtt, W
    advance(ready.plant, ready.state, ready.record, np.zeros((0, ready.steps)), 0, ready.steps)
    assert ready.state.window[0] == pytest.approx(CLASSIC[sender](p, rtt), rel=2e-3)
    assert (cubic_window(2e-4, 0.3) > 2.0 * sqrt(0.9 / 1.7 / (0.3 * 2e-4))) and cubic_window(1e-2, 0.05) < 5.0


def test_cubic_starts_with_the_window_that_it_is_given():
    for rtt in (0.005, 0.05, 0.5):
        since, highest = first_memory("cubic", 10.0, rtt)
        assert cubic_point(since, highest, rtt) == pytest.approx(10.0)
    assert cubic_point(0.0, 100.0, 1e-9) == pytest.approx(70.0)  # β M after a cut


@pytest.mark.parametrize(("paused", "expected"), [(True, sqrt(2.0)), (False, 1.0 + sqrt(3.0))])
def test_scalable_windows_are_those_of_their_cycles(paused, expected):
    p, R = 1e-4, 0.05
    slope = lambda W: scalable_slope(W, R, R, W / R, p, p, paused)  # noqa: E731
    assert brentq(slope, 0.1 / p, 10.0 / p) * p == pytest.approx(expected, rel=1e-3)


def test_pi2_marks_scalable_packets_with_the_coupled_probability():
    """One queue: both kinds have the same round trip."""
    groups = flows("c", "reno", 0.03, 6, classes=1), flows("l", "prague", 0.03, 6, classes=1)
    rates, trips, base, result = found(scenario(*groups, queue=Pi2Queue(alpha=0.08, beta=1.6), duration=200.0))
    assert trips == pytest.approx(0.045, rel=1e-3)
    assert rates[1] / rates[0] == pytest.approx(prague_window(2.0 * base, 0.045) / (sqrt(2.0) / base), rel=1e-2)
    marks = result.series["marked"][0, 10000:].sum() / SIZE / 100.0
    assert marks == pytest.approx(rates[0] * base**2 + rates[1] * 2.0 * base, rel=1e-2)


# --- the scheduler and the step ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_the_c_queue_has_its_share_of_a_link_that_prague_alone_would_fill(share):
    """Prague's least windows of two packets are more than the link: k p' is 1, and the L queue waits too."""
    queue = DualPi2Queue(protection=share)
    groups = flows("c", "reno", 0.02, 40, classes=1), flows("l", "prague", 0.005, 60, classes=1)
    rates, trips, base, _ = found(scenario(*groups, queue=queue, rate=4e7, buffer=5e5))
    assert rates[0] / rates.sum() == pytest.approx(share, rel=0.02)
    assert base >= 0.5
    assert trips[1] > 0.005 + 0.002


def test_prague_alone_waits_for_the_step_and_fills_the_link():
    """Packets' marks are 13.9 % at 20 ms, and 99.9 % of the link is used; the fluid's windows swing by their cut of
    alpha/2, 7 %, around what the path holds."""
    (rate,), (trip,), base, result = found(scenario(flows("l", "prague", 0.02), interval=1e-3))
    assert base == pytest.approx(0.0, abs=1e-9)
    assert rate == pytest.approx(4e7 / 8.0 / SIZE, rel=0.015)
    wait = result.series["rtt"][0, 20000:] - 0.02
    assert np.quantile(wait, 0.99) < 1.5e-3
    assert wait.max() > 1e-3
    marked = result.series["marked"][0, 20000:].sum() / result.series["departed"][0, 20000:].sum()
    assert marked == pytest.approx(0.139, rel=0.1)
    assert trip < 0.021


def test_the_step_needs_packets_that_wait():
    """At 4 Mbit/s a packet takes 3 ms: with `step_packets` 1 marks begin at 3 ms, not at 1 ms."""
    waits = []
    for packets in (0, 1):
        groups = (flows("l", "prague", 0.05),)
        result = simulate(scenario(*groups, rate=4e6, queue=DualPi2Queue(step_packets=packets), interval=1e-3))
        waits.append(result.series["rtt"][0, 20000:].max() - 0.05)
    assert waits[1] - waits[0] == pytest.approx(3e-3 - 1e-3, abs=5e-4)


# --- what must not depend on anything ---------------------------------------------------------------------------------


@pytest.mark.parametrize("buffer", [2e4, 1e5, 1e6])
def test_arrivals_are_departures_losses_and_backlog(buffer):
    """With flows that can't be marked, overload, overflow, a rate that changes, and acknowledgements among the data."""
    line = Link(id="line", source="a", target="b", capacity=4e7, queue=DualPi2Queue(), buffer=buffer, delay=0.001)
    back = Link(id="back", source="b", target="a", capacity=4e7, queue=DualPi2Queue(), buffer=buffer)
    groups = (
        flows("c", "cubic", "10ms:50ms", 10, ecn=False, start="0s:1s"),
        flows("l", "prague", "10ms:20ms", 40, start="1s:2s", stop="8s:9s"),
        Flow(id="r", path=("back",), ack_path=("line",), rtt="10ms:50ms", count=5, sender="dctcp"),
    )
    changes = (Change(at=4.0, link="line", capacity=8e6), Change(at=6.0, link="line", delay=0.004))
    whole = Scenario(
        name="all", links=(line, back), flows=groups, changes=changes, duration=12.0, interval=0.01, packet_size=SIZE
    )
    result = simulate(whole)
    growth = np.diff(result.series["backlog"], axis=1, prepend=0.0)
    imbalance = result.series["arrived"] - result.series["departed"] - result.series["lost"] - growth
    assert np.abs(imbalance).max() <= 1e-9 * result.series["arrived"].sum()
    for series in (result.series["backlog"], result.series["departed"], result.series["lost"], result.series["marked"]):
        assert series.min() >= 0.0
    assert (result.series["backlog"] <= buffer * (1.0 + 1e-9)).all()
    capacity = result.series["capacity"] * whole.interval / 8.0
    assert (result.series["departed"] <= capacity * (1.0 + 1e-9)).all()
    assert result.series["lost"][0].sum() > 0.0


def test_a_longer_history_changes_nothing():
    groups = flows("c", "cubic", 0.02, 4, classes=1), flows("l", "prague", 0.02, 4, classes=1)
    runs = []
    for times in (0, 3):
        ready, first = problem(scenario(*groups, duration=4.0)), 0
        state = ready.state
        for _ in range(times):
            state = longer_history(state, 0)
        while first < ready.steps:
            first = advance(ready.plant, state, ready.record, np.zeros((0, ready.steps - first)), first, ready.steps)
            if first < ready.steps:
                assert times == 0
                state = longer_history(state, first)
        runs.append(ready.record.links.copy())
    np.testing.assert_array_equal(runs[0], runs[1])


@pytest.mark.parametrize("sender", ["dctcp", "prague"])
def test_a_finer_step_changes_little(sender):
    groups = flows("c", "cubic", 0.02, 4, classes=1), flows("l", sender, 0.02, 4, classes=1)
    coarse, fine = (simulate(scenario(*groups, duration=10.0, step=step)) for step in (1e-3, 1e-4))
    assert coarse.series["backlog"][0] == pytest.approx(
        fine.series["backlog"][0], abs=0.02 * fine.series["backlog"].max()
    )


# --- stability --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "rtt", "rate"), [(20, 0.05, 2e8), (10, 0.1, 2e8)])
def test_deviations_grow_from_the_certificate_s_gain_on(count, rtt, rate):
    """Reno flows: 3 % below the gain at which `netctrl certify` has no margin left a deviation decays, 3 % above it the
    queue swings."""
    where = {"rtt_s": rtt, "flows": float(count), "capacity_bit_per_s": rate, "packet_size_bytes": SIZE}
    found = netctrl.certify("dualpi2", **where, senders="reno")
    gains = Dualpi2Law.sent().gains
    margin = 10.0 ** (found.certificate.sampled.gain_margin_db / 20.0)
    swings = []
    for factor in (0.97 * margin, 1.03 * margin):
        queue = DualPi2Queue(alpha=gains.integral * factor, beta=gains.proportional * factor)
        whole = scenario(
            flows("r", "reno", rtt, count, classes=1),
            rate=rate,
            queue=queue,
            buffer=1e9,
            duration=200.0,
            interval=0.016,
            step=5e-4,
            changes=(Change(at=60.0, link="line", capacity=0.999 * rate),),
        )
        backlog = simulate(whole).series["backlog"][0]
        swings.append(backlog[len(backlog) * 9 // 10 :].std() / backlog.mean())
    assert swings[0] < 0.005 < 0.05 < swings[1]


# --- packets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("classic", "rtt"), [("reno", 0.01), ("reno", 0.02), ("cubic", 0.02)])
def test_many_paced_flows_on_packets_rest_where_the_fluid_does(classic, rtt):
    """16 paced Prague flows beside 16 others at 320 Mbit/s: the ratio of rates within 8 %, the classic wait within 2 %.
    The fluid's p' is above the packets' by Reno's 1.41/1.31, and by what Cubic's mean field leaves out."""
    paced = CapSender(rate=1e9, window="prague")
    made = {}
    for engine, prague in (("fluid", "prague"), ("packet", paced)):
        groups = flows("c", classic, rtt, 16, start=("0s", "1s")), flows("l", prague, rtt, 16, start=("0s", "1s"))
        whole = scenario(*groups, rate=3.2e8, buffer=1e7)
        result = netctrl.simulate(whole, engine)
        late = result.time_s > whole.warmup
        carried = result.series["delivered"][:, late].sum(axis=1)
        base = np.sqrt(result.series["probability"][0, late]).mean()
        made[engine] = carried[1] / carried[0], result.series["rtt"][0, late].mean() - rtt, base
    fluid, packet = made["fluid"], made["packet"]
    assert fluid[0] == pytest.approx(packet[0], rel=0.08)
    assert fluid[1] == pytest.approx(packet[1], rel=0.02)
    assert 1.02 < fluid[2] / packet[2] < 1.15


def test_senders_that_the_fluid_lacks_are_named():
    with pytest.raises(InvalidValue, match="reno, cubic, dctcp, prague"):
        netctrl.simulate(scenario(flows("v", "vegas", 0.02)), "fluid")
    with pytest.raises(InvalidValue, match="without ecn"):
        netctrl.simulate(scenario(flows("l", "prague", 0.02, ecn=False)), "fluid")
