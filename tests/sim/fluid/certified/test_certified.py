"""The nonlinear fluid of a queue: rates of growth of an independent integration, balances, kernel's rules of PIE."""

from __future__ import annotations

from dataclasses import replace
from math import inf, pi

import numpy as np
import pytest
from network_fluid import growth

from netctrl.certificates.loops import classes_of, read_mixture
from netctrl.certificates.pi_laws import docsis_pie, dualpi2, linux_dualpi2, linux_pie, pi2
from netctrl.certificates.subject import PiSubject
from netctrl.frequency.sampled_stability import stable_gains
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.red import RedParameters, log_forgetting
from netctrl.laws.targets.docsis_pie import DOCSIS_PIE, DocsisPieQueue
from netctrl.laws.targets.pie import pie_drop_rate
from netctrl.laws.targets.pie_law import PIE_ONE
from netctrl.laws.targets.reading import DelayReading
from netctrl.plants.queues.queue_laws import Averaged
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.sim.fluid.certified.laws import (
    FluidLaw,
    Sight,
    fluid_docsis_pie,
    fluid_linux_dualpi2,
    fluid_linux_pie,
    fluid_pi2,
    fluid_red,
    fluid_rfc_pie,
)
from netctrl.sim.fluid.certified.run import STARTS, FluidClass, FluidQueue, Start, swing_of

NEAR, EMPTY, FULL = STARTS
GAINS = {"target_s": 0.015, "tupdate_s": 0.016, "alpha": 0.16, "beta": 3.2}


def fluid(loop: QueueLoop, law: FluidLaw, flows: float, rtt: float, period: float) -> FluidQueue:
    x = float(loop.output(flows, rtt))
    classes = tuple(
        FluidClass(
            k.share * flows,
            float(k.window(x, loop.trip(k, rtt, loop.standing(x)))),
            rtt * k.stretch,
            None if k.queued else k.other_delay_s,
            k.sender.increase,
            k.sender.decrease,
            k.sender.averaging,
            k.sender.scalable,
        )
        for k in loop.classes
    )
    return FluidQueue(classes, loop.rate, 1500.0, law, x, period)


@pytest.mark.parametrize(
    ("senders", "stretches", "flows", "rtt", "coupled"),
    [
        ("reno", (1.0,), 50.0, 0.1, False),
        ("creno", (1.0, 3.0), 20.0, 0.05, False),
        ("reno+dctcp", (1.0,), 20.0, 0.03, False),
        (".6reno+.4dctcp", (1.0, 2.0), 20.0, 0.02, True),
    ],
)
def test_it_swings_just_above_the_gain_at_which_an_independent_integration_grows(
    senders: str, stretches: tuple[float, ...], flows: float, rtt: float, coupled: bool
) -> None:
    """Linux's dualpi2 has gains in integers; the loop has the same."""
    for share, settles in ((0.93, True), (1.07, False)):
        if coupled:
            at_1 = dualpi2(**GAINS)
            limit = limits_of(at_1, senders, stretches, flows, rtt)
            given = GAINS | {name: GAINS[name] * limit * share for name in ("alpha", "beta")}
            subject, law = (
                dualpi2(**given),
                fluid_linux_dualpi2(linux_dualpi2(**given, coupling=2, step_s=1e-3, drop_early=False)),
            )
        else:
            limit = limits_of(pi2(**GAINS), senders, stretches, flows, rtt)
            given = GAINS | {name: GAINS[name] * limit * share for name in ("alpha", "beta")}
            subject = pi2(**given)
            law = fluid_pi2(0.015, 0.016, given["alpha"], given["beta"], 2.0)
        loop = subject.loops(classes_of(subject, read_mixture(senders), stretches), 5000.0, 1500.0)[0]
        known = stable_gains(loop, flows, rtt)
        period = 2.0 * pi * loop.epoch / (known.upper_angle if settles else known.lower_angle)
        assert (growth(loop, flows, rtt, 1.0, 60.0, period) < 0.0) == settles
        assert swing_of(fluid(loop, law, flows, rtt, period), NEAR).settles == settles


def limits_of(subject: PiSubject, senders: str, stretches: tuple[float, ...], flows: float, rtt: float) -> float:
    loop = subject.loops(classes_of(subject, read_mixture(senders), stretches), 5000.0, 1500.0)[0]
    return stable_gains(loop, flows, rtt).factor


def pie_fluid(law: FluidLaw, output: float) -> FluidQueue:
    """Fifty Reno flows, 20 Mbit/s, 100 ms: windows of 3.83 packets."""
    window = 20e6 / 12000.0 * 0.115 / 50.0
    one = FluidClass(50.0, window, 0.1, None, 1.0, 0.5, 0.0, False)
    return FluidQueue((one,), 20e6 / 12000.0, 1500.0, law, output, 0.6)


def test_pie_of_the_rfc_holds_near_its_equilibrium_and_cycles_from_afar() -> None:
    """As the fluid engine, which finds 46.9 ± 38.9 kB of 20 Mbit/s for it, and packets do (docs/how-to/certify.md)."""
    law = fluid_rfc_pie(PieQueue(), DelayReading.BACKLOG)
    queue = pie_fluid(law, 2.0 / (20e6 / 12000.0 * 0.115 / 50.0) ** 2)
    near, empty = swing_of(queue, NEAR), swing_of(queue, EMPTY)
    assert near.settles
    assert near.mean_delay_s == pytest.approx(0.015, rel=1e-6)
    assert not empty.settles
    assert empty.mean_delay_s == pytest.approx(46.9e3 * 8.0 / 20e6, rel=0.05)
    assert 0.97 < empty.utilization < 1.0


def test_linux_pie_is_at_rest_at_its_own_probability() -> None:
    """It drops p/1.85, so that p is 1.85 times what the windows need; a shifted start would swing at first."""
    window = 20e6 / 12000.0 * 0.035 / 50.0
    law = fluid_linux_pie(linux_pie(0.015, 0.015, 0.125, 1.25, 1000, False))
    one = FluidClass(10.0, 5.0 * window, 0.02, None, 1.0, 0.5, 0.0, False)
    dropped = 2.0 / (5.0 * window) ** 2
    p = next(q for q in np.linspace(dropped, 3.0 * dropped, 100_000) if pie_drop_rate(q) >= dropped)
    found = swing_of(FluidQueue((one,), 20e6 / 12000.0, 1500.0, law, p, 0.5), NEAR)
    assert found.settles
    assert found.mean_delay_s == pytest.approx(0.015, rel=0.02)
    assert pie_drop_rate(law.state.prob / PIE_ONE) == pytest.approx(dropped, rel=0.1)


def test_a_new_linux_pie_spares_packets_for_150_ms() -> None:
    law = fluid_linux_pie(linux_pie(0.015, 0.015, 0.125, 1.25, 1000, False))
    law.begin()
    sight = Sight(0.1, 100.0, 1000.0, 1500.0)
    marks = [law.act(sight).classic for _ in range(12)]
    assert marks[:9] == [0.0] * 9  # 16 ms each
    assert marks[9] > 0.0
    law.rest(0.01)
    assert law.act(sight).classic == pytest.approx(pie_drop_rate(law.state.prob / PIE_ONE))


def test_pie_marks_nothing_below_half_its_target_while_it_marks_little() -> None:
    law = fluid_linux_pie(linux_pie(0.02, 0.015, 0.125, 1.25, 1000, False))
    law.rest(0.05)
    few = law.act(Sight(0.02, 100.0, 1000.0, 1500.0))
    assert (few.spared_delay, few.spared_packets) == pytest.approx((0.01, 2.0), rel=1e-5)
    law.rest(0.5)
    assert law.act(Sight(0.02, 100.0, 1000.0, 1500.0)).spared_delay == 0.0


def test_every_start_of_a_stable_queue_ends_at_the_target_with_a_full_link() -> None:
    law = fluid_pi2(0.015, 0.016, 0.16, 3.2, 2.0)
    subject = pi2(**GAINS)
    loop = subject.loops(classes_of(subject, read_mixture("reno"), (1.0,)), 5000.0, 1500.0)[0]
    queue = fluid(loop, law, 20.0, 0.02, 0.3)
    for start in (*STARTS, Start("much", 5.0, 10.0, True)):
        found = swing_of(queue, start)
        assert found.settles
        assert found.swing_s < 0.05 * 0.015
        assert found.mean_delay_s == pytest.approx(0.015, rel=0.01)
        assert found.utilization == pytest.approx(1.0, abs=1e-6)


def test_a_queue_with_too_little_traffic_for_marks_stays_empty() -> None:
    """Two flows of 25 packets a round trip of 100 ms use a tenth of the link."""
    law = fluid_pi2(0.015, 0.016, 0.16, 3.2, 2.0)
    one = FluidClass(2.0, 50.0, 0.1, None, 1e-9, 0.5, 0.0, False)
    found = swing_of(FluidQueue((one,), 5000.0, 1500.0, law, 0.03, 0.3), EMPTY)
    assert found.mean_delay_s == 0.0
    assert found.utilization == pytest.approx(2.0 * 25.0 / 0.1 / 5000.0, rel=1e-3)


@pytest.mark.parametrize(
    ("senders", "stretches", "flows", "rtt", "weight", "spaced"),
    [
        ("reno", (1.0,), 50.0, 0.05, 2.0**-9, True),
        ("creno", (1.0, 2.0), 30.0, 0.03, 2.0**-6, True),
        ("reno+dctcp", (1.0,), 40.0, 0.02, 2.0**-7, False),
        ("reno", (1.0,), 50.0, 0.03, 1.0, False),
    ],
)
def test_red_swings_just_above_the_slope_at_which_an_independent_integration_grows(
    senders: str, stretches: tuple[float, ...], flows: float, rtt: float, weight: float, spaced: bool
) -> None:
    """A line through the equilibrium, turned around it; without an average and spacing it is WRED's."""
    rate = 5000.0
    corner = inf if weight == 1.0 else -np.log1p(-weight) * rate
    subject = pi2(**GAINS)
    classes = classes_of(replace(subject, power=1.0, coupling=1.0), read_mixture(senders), stretches)
    first = QueueLoop(classes, Averaged(1.0, corner, 0.01, spaced), rate, continuous_s=rtt / 4.0)
    x = float(first.output(flows, rtt))
    p, standing = (x / (2.0 - x) if spaced else x), first.standing(x)
    slope = stable_gains(first, flows, rtt).factor
    for share, settles in ((0.93, True), (1.07, False)):
        line = Averaged(share * slope, corner, standing - p / (share * slope), spaced)
        loop = replace(first, law=line)
        assert float(loop.output(flows, rtt)) == pytest.approx(x)
        known = stable_gains(loop, flows, rtt)
        period = 2.0 * pi * loop.epoch / (known.upper_angle if settles else known.lower_angle)
        assert (growth(loop, flows, rtt, 1.0, 60.0, period) < 0.0) == settles
        low = rate * line.start_s
        width = rate / line.slope  # to p = 1
        law = fluid_red(
            RedParameters(low, low + width, 1.0, log_forgetting(weight), 0.0, 0.0, float(spaced)), standing, period
        )
        found = swing_of(fluid(loop, law, flows, rtt, period), NEAR)
        assert found.settles == settles
        assert (found.mean_delay_s == pytest.approx(standing, rel=1e-3)) or not settles


def test_adaptive_red_brings_the_average_to_the_middle_of_its_thresholds() -> None:
    """60 Reno flows, which P = .03 holds more than .6 of the way from min to max."""
    low, high, rate = 40.0, 240.0, 5000.0
    p = RedParameters(low, high, 0.03, log_forgetting(2.0**-9), 0.0, 1.0, 1.0)
    window = rate * (0.04 + 120.0 / rate) / 60.0
    one = FluidClass(60.0, window, 0.04, None, 1.0, 0.5, 0.0, False)
    for adaptive in (0.0, 1.0):
        law = fluid_red(p._replace(adaptive=adaptive), 120.0 / rate, 0.5)
        found = swing_of(FluidQueue((one,), rate, 1500.0, law, 0.05, 0.3), EMPTY)
        share = (found.mean_delay_s * rate - low) / (high - low)
        assert found.settles
        assert (0.39 < share < 0.61) == (adaptive == 1.0)
        assert (law.state > 0.03) == (adaptive == 1.0)


def test_a_buffer_of_its_own_bounds_the_delay() -> None:
    p = RedParameters(1000.0, 2000.0, 0.1, log_forgetting(2.0**-9), 1.0, 0.0, 1.0)
    one = FluidClass(20.0, 15.0, 0.04, None, 1.0, 0.5, 0.0, False)
    found = swing_of(FluidQueue((one,), 5000.0, 1500.0, fluid_red(p, 0.02, 0.3), 0.01, 0.3, 0.03), EMPTY)
    assert found.mean_delay_s <= 0.03
    assert found.mean_delay_s + found.swing_s >= 0.02


def test_docsis_pie_rests_at_its_target_with_the_output_of_spread_drops() -> None:
    """Ten Reno flows at 20 Mbit/s and 30 ms: x such that 1/1.85 of x 1500/1024 is what the windows need."""
    rate, window = 20e6 / 12000.0, 20e6 / 12000.0 * 0.04 / 10.0
    x = 2.0 / window**2 * 1.85 * 1024.0 / 1500.0
    law = fluid_docsis_pie(DOCSIS_PIE.read(DocsisPieQueue(), 1500.0, rate * 1500.0), 0.016)
    one = FluidClass(10.0, window, 0.03, None, 1.0, 0.5, 0.0, False)
    near = swing_of(FluidQueue((one,), rate, 1500.0, law, x, 0.3), NEAR)
    assert near.settles
    assert near.mean_delay_s == pytest.approx(0.01, rel=0.02)
    assert law.state.drop_probability == pytest.approx(x, rel=0.05)
    law.begin()
    assert law.act(Sight(0.2, 300.0, rate, 1500.0)).classic == 0.0  # less than a third of a second
    law.act(Sight(0.34, 570.0, rate, 1500.0))
    assert law.state.activity == 1.0


@pytest.mark.parametrize(
    ("senders", "flows", "rtt", "rate"),
    [("reno", 5.0, 0.038, 6234.0), ("creno", 34.0, 0.065, 4374.0), ("creno", 76.0, 0.081, 3000.0)],
)
def test_docsis_pie_swings_above_the_certified_gain_also_where_much_is_dropped(
    senders: str, flows: float, rtt: float, rate: float
) -> None:
    """A share r of drops is p/(1.85 - p/2), whose slope is (1 + r/2)^2 times that of p/1.85."""
    classes = classes_of(docsis_pie(), read_mixture(senders), (1.0,))
    loops = docsis_pie().loops(classes, rate, 1500.0)
    x = float(loops[0].output(flows, rtt))
    rung = next(k for k, loop in enumerate(loops) if loop.within[0] <= x < loop.within[1])
    limit = stable_gains(loops[rung], flows, rtt).factor
    for share, settles in ((0.95, True), (1.05, False)):
        queue = DocsisPieQueue(alpha=0.25 * limit * share, beta=2.5 * limit * share)
        loop = docsis_pie(alpha=queue.alpha, beta=queue.beta).loops(classes, rate, 1500.0)[rung]
        known = stable_gains(loop, flows, rtt)
        period = 2.0 * pi * loop.epoch / min(known.upper_angle, known.lower_angle)
        law = fluid_docsis_pie(DOCSIS_PIE.read(queue, 1500.0, rate * 1500.0), 0.016)
        assert swing_of(fluid(loop, law, flows, rtt, period), NEAR).settles == settles
