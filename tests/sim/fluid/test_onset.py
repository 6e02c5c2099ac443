"""Where the nonlinear fluid begins to oscillate, against the exact sampled loop; and the traps on the way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from netctrl.core.errors import InvalidValue
from netctrl.frequency.branch_bound import Sector
from netctrl.frequency.margins import margins
from netctrl.frequency.sampled import spectral_radius
from netctrl.frequency.sampled_gain import greatest_gain
from netctrl.laws.aqm.fast_arc import FAST_ARC, FastArcQueue
from netctrl.laws.aqm.fluid import column
from netctrl.laws.rate.records import FastSender
from netctrl.model.design.arc import ArcSetting
from netctrl.model.loop import DelayLoop, SampledLoop
from netctrl.plants.linearize import applicable_plant
from netctrl.plants.tcp_response import arc_response
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.fluid.kernel import advance
from netctrl.sim.fluid.onset import arc_onset, oscillates
from netctrl.sim.fluid.problem import problem


def ratio(setting, flows=50.0, rtt=0.5):
    limit = greatest_gain(arc_response(setting), (flows, flows), (rtt, rtt), Sector()).found
    return arc_onset(flows, rtt, setting, between=(0.6 * limit, 1.6 * limit)) / limit


@pytest.mark.parametrize("epoch", [0.5, 1.0, 2.0])
def test_without_a_queue_the_onset_is_the_limit_of_noq(epoch):
    setting = ArcSetting(capacity_packet_per_s=1250.0, epoch_s=epoch)
    assert applicable_plant(setting) == "noq"
    assert ratio(setting) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("epoch", [0.5, 1.0, 2.0])
def test_with_a_standing_queue_it_is_the_limit_of_phys(epoch):
    setting = ArcSetting(capacity_packet_per_s=1250.0, epoch_s=epoch, utilization=1.0, target_queue_packets=100.0)
    assert applicable_plant(setting) == "phys"
    assert ratio(setting) == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize(("flows", "rtt", "capacity"), [(20, 0.2, 1000.0), (120, 0.8, 5000.0), (10, 1.5, 300.0)])
def test_elsewhere_too(flows, rtt, capacity):
    setting = ArcSetting(capacity_packet_per_s=capacity, epoch_s=rtt, utilization=0.95)
    assert ratio(setting, float(flows), rtt) == pytest.approx(1.0, abs=0.04)


T = np.arange(0.0, 300.0)


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (1.0 + 1e-3 * np.exp(-0.01 * T) * np.sin(T), False),
        (1.0 + 1e-3 * np.exp(0.01 * T) * np.sin(T), True),
        (1.0 + 0.5 * np.sin(T) * (1.0 + 1e-3 * np.exp(-T)), True),  # a limit cycle: large, no longer growing
        (1.0 + 1e-15 * np.random.default_rng(1).standard_normal(300) * (1.0 + T), False),  # round-off that grows
    ],
    ids=["decays", "grows", "saturated", "round-off"],
)
def test_an_oscillation_is_told_from_round_off_and_saturation(series, expected):
    assert oscillates(series, 1.0) is expected


def test_what_does_not_hold_the_onset_is_refused():
    setting = ArcSetting(capacity_packet_per_s=1250.0)
    for between in ((1e-6, 2e-6), (1e-4, 2e-4), (-1.0, 1e-4), (1e-6, math.nan)):
        with pytest.raises(InvalidValue, match="between"):
            arc_onset(50.0, 0.5, setting, between=between)
    deep = ArcSetting(capacity_packet_per_s=100.0, utilization=1.0, target_queue_packets=100.0)
    with pytest.raises(InvalidValue, match="rtt_s"):
        arc_onset(50.0, 0.5, deep, between=(1e-6, 1e-3))


def fast_loop(tau: float, setting: ArcSetting) -> DelayLoop:
    """FAST senders under FAST-extended ARC with a standing queue, at a = 1, for short epochs.

    A rate source responds to the price q_v/(gamma C) of one round trip ago, δx = −(a/tau) x0 δprice. The sources
    together fill the link, so δy = −(a/tau) δq_v(t − tau). Arrivals and backlog both integrate that under q_v' = y +
    (gamma/d) q: L = a (s + gamma/d) e^(−s tau)/(tau s²), a double integrator, stable for small a only if d > gamma·tau.
    """
    gamma, d = setting.utilization, setting.epoch_s
    return DelayLoop(gain=gamma / (tau * d), delay=tau, integrators=2, leads=(d / gamma,), lags=())


def fast_sampled(tau: float, setting: ArcSetting) -> SampledLoop:
    """The same with the exact epoch, q_v ← q_v + b + gamma q."""
    return SampledLoop(
        A=np.zeros((2, 2)),
        B=np.array([-1.0 / tau, -1.0 / tau]),
        read=np.array([setting.utilization, 1.0]),
        keep=np.array([True, False]),
        delay=tau,
        epoch=setting.epoch_s,
    )


# From the theory: a sqrt(x² + (gamma tau/d)²) = x² at atan(x d/(gamma tau)) = x, with x = w tau.
@pytest.mark.parametrize(("epochs", "limit"), [(1.0, 0.05917), (2.0, 1.08555)])
def test_fast_in_continuous_time(epochs, limit):
    found = margins(fast_loop(0.3, ArcSetting(capacity_packet_per_s=1250.0, epoch_s=0.3 * epochs)))
    assert 10.0 ** (found.gain_margin_db / 20.0) == pytest.approx(limit, rel=1e-4)
    low, high = 0.1, math.pi / 2.0
    for _ in range(60):
        x = 0.5 * (low + high)
        low, high = (x, high) if math.atan(x * epochs / 0.98) > x else (low, x)
    assert x * x / math.hypot(x, 0.98 / epochs) == pytest.approx(limit, rel=1e-4)


def fast_limit(loop):
    low, high = 1e-3, 10.0
    while high / low > 1.0 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spectral_radius(loop, middle) < 1.0 else (low, middle)
    return low


def test_the_epoch_makes_fast_far_less_stable():
    """The exact sampled limit is a third of the continuous one: the epoch has to be longer than the delay."""
    for epochs, limit in ((1.0, 1.0 - 0.98), (2.0, 0.342282)):
        loop = fast_sampled(0.3, ArcSetting(capacity_packet_per_s=1250.0, epoch_s=0.3 * epochs))
        assert fast_limit(loop) == pytest.approx(limit, rel=1e-3)
    short = fast_sampled(0.3, ArcSetting(capacity_packet_per_s=1250.0, epoch_s=0.97 * 0.3 * 0.98))
    assert min(spectral_radius(short, a) for a in np.geomspace(1e-4, 10.0, 60)) >= 1.0


@pytest.mark.parametrize(("share", "lasts"), [(0.93, False), (1.07, True)])
def test_the_simulated_fast_sources_agree_with_the_sampled_loop(share, lasts):
    tau, q = 0.3, 100.0
    setting = ArcSetting(capacity_packet_per_s=1e5, epoch_s=2.0 * tau, utilization=1.0, target_queue_packets=q)
    gain = share * fast_limit(fast_sampled(tau, setting))
    packets = 1e5 / 10 * math.e  # so that a price of tau/a is what holds the senders at C
    queue = FastArcQueue(alpha=1e-9, epoch=2.0 * tau, target_utilization=1.0, target_queue=q * 1000.0)
    line = Link(id="line", source="a", target="b", capacity=1e5 * 8000.0, queue=queue)
    flows = Flow(id="fast", path=("line",), rtt=tau, count=10, sender=FastSender(max_rate=packets * 8000.0, gain=gain))
    scenario = Scenario(
        name="fast", duration=600.0, interval=2.0 * tau, step=2.0 * tau / 120, links=(line,), flows=(flows,)
    )
    ready = problem(scenario)
    rest = tau / gain
    ready.state.backlog[:], ready.state.price[:] = q, rest
    ready.state.law[:, column(FAST_ARC, "virtual_queue")] = rest * 1e5
    ready.state.law[:, column(FAST_ARC, "price")] = rest
    ready.state.price[:, ::2] *= 1.0 + 1e-6  # a small ripple to start from
    ready.state.law[:, column(FAST_ARC, "virtual_queue")] *= 1.0 + 1e-6
    advance(ready.plant, ready.state, ready.record, np.zeros((0, ready.steps)), 0, ready.steps)
    backlog = ready.record.links[0, 0]
    early, late = np.ptp(backlog[100:400]), np.ptp(backlog[-300:])
    assert bool(late > early) is lasts
