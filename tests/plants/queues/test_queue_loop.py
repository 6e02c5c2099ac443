"""Loops of senders in classes and a law on their queue: against another implementation, sums, and time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from network_fluid import growth

from netctrl.frequency.sampled_stability import stable_gains
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.model.design.arc import ArcSetting
from netctrl.plants.queues import queue_response
from netctrl.plants.queues.queue_laws import Averaged, SampledPi, WindowClass
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import (
    CRENO,
    CUBIC,
    DCTCP,
    LINUX_CRENO,
    LINUX_CRENO_NOECN,
    LINUX_RENO,
    LINUX_RENO_NOECN,
    RENO,
    RFC_CRENO,
    RFC_RENO,
)
from netctrl.plants.tcp_response import delay_pi_response

RATE = 1250.0
PI = SampledPi(0.01, 0.2, 0.016, 0.015)
MIXED = (
    WindowClass(RENO, 0.5, power=2.0),
    WindowClass(CRENO, 0.25, 3.0, power=2.0),
    WindowClass(DCTCP, 0.25, factor=2.0, queued=False, other_delay_s=0.001),
)
LOOPS = {
    "cubic": QueueLoop((WindowClass(CUBIC, power=2.0),), PI, RATE, age_queues=1.0),
    "cubic mixed": QueueLoop(
        (WindowClass(CUBIC, 0.5, 2.0), WindowClass(CUBIC, 0.25, 0.1), WindowClass(RENO, 0.25)), PI, RATE
    ),
    "cubic averaged": QueueLoop(
        (WindowClass(CUBIC, 0.5), WindowClass(RENO, 0.5, 0.3)), Averaged(3.0, 8.0, 0.004), RATE, continuous_s=0.01
    ),
    "linux": QueueLoop((WindowClass(LINUX_RENO, power=2.0),), PI, RATE, age_queues=1.0, marked_leaving=True),
    "clocked": QueueLoop(
        (WindowClass(RFC_RENO, 0.5), WindowClass(LINUX_CRENO, 0.25), WindowClass(RFC_CRENO, 0.25)), PI, RATE
    ),
    "clocked averaged": QueueLoop(
        (WindowClass(RFC_RENO, 0.5), WindowClass(LINUX_RENO, 0.5)), Averaged(3.0, 8.0, 0.004), RATE, continuous_s=0.01
    ),
    "dropped": QueueLoop((WindowClass(LINUX_RENO_NOECN),), PI, RATE, age_queues=1.0),
    "dropped and marked": QueueLoop(
        (WindowClass(LINUX_CRENO_NOECN, 0.6, power=2.0), WindowClass(LINUX_RENO, 0.4, power=2.0)),
        PI,
        RATE,
        marked_leaving=True,
    ),
    "dropped averaged": QueueLoop(
        (WindowClass(LINUX_RENO_NOECN, 0.5), WindowClass(LINUX_CRENO_NOECN, 0.5)),
        Averaged(3.0, 8.0, 0.004),
        RATE,
        age_s=0.0004,
        continuous_s=0.01,
    ),
    "reno": QueueLoop((WindowClass(RENO),), PI, RATE),
    "dctcp": QueueLoop((WindowClass(DCTCP, factor=2.0),), PI, RATE, age_queues=1.0),
    "mixed": QueueLoop(MIXED, PI, RATE, age_queues=1.0, marked_leaving=True),
    "averaged": QueueLoop(
        (WindowClass(RENO, 0.5), WindowClass(CRENO, 0.5, 0.3)),
        Averaged(3.0, 8.0, 0.004),
        RATE,
        age_s=0.0004,
        continuous_s=0.01,
    ),
    "spaced": QueueLoop(
        (WindowClass(RENO, 0.5), WindowClass(DCTCP, 0.5, 2.0)),
        Averaged(5.0, 8.0, -0.004, spaced=True),
        RATE,
        within=(0.05, 1.0),
        continuous_s=0.02,
    ),
}


@pytest.mark.parametrize(("flows", "rtt"), [(10.0, 0.1), (50.0, 0.5), (3.0, 0.02), (30.0, 0.1)])
def test_one_class_of_reno_is_the_response_of_tcp_with_a_queue(flows: float, rtt: float) -> None:
    angles = np.array([0.001, 0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 3.0, np.pi])
    law = DelayPi(integral=PI.integral, proportional=PI.proportional, update_s=PI.update_s, target_s=PI.target_s)
    other = delay_pi_response(ArcSetting(capacity_packet_per_s=RATE, utilization=1.0), law)
    ours = LOOPS["reno"].at(angles, flows, rtt)
    np.testing.assert_allclose(ours, other.at(angles, flows, rtt + PI.target_s), rtol=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_few_aliases_and_their_tails_are_all_aliases(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    update, target, rtt = (10.0 ** rng.uniform(*ends) for ends in ((-3.0, -1.0), (-3.0, -1.0), (-3.5, 0.0)))
    classes = (*MIXED[:2], MIXED[2]._replace(queued=True))
    if seed >= 40:
        sender = LINUX_RENO_NOECN if seed % 2 else LINUX_RENO
        classes = (WindowClass(sender, 0.4, power=2.0), WindowClass(RFC_CRENO, 0.6, power=2.0))
    loop = QueueLoop(classes, SampledPi(0.01, 0.2, update, target), RATE, age_queues=1.0)
    flows, angles = RATE * (rtt + target) / rng.uniform(2.0, 500.0), np.array([0.02, 0.09, 0.11, 0.3, 1.0, 2.0, 3.1])
    fine, coarse = loop.at(angles, flows, rtt), loop.at(angles, flows, rtt, coarse=True)
    monkeypatch.setattr(queue_response, "_ALIASES", 4000)
    exact = loop.at(angles, flows, rtt)
    np.testing.assert_allclose(fine, exact, rtol=5e-8)
    np.testing.assert_allclose(coarse, exact, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in LOOPS if name != "spaced"])
def test_equilibrium_fills_the_link(name: str) -> None:
    loop = LOOPS[name]
    flows = np.array([2.0, 20.0, 90.0])
    x = loop.output(flows, 0.08)
    sent = sum(
        k.share * window / (0.08 * k.stretch + (loop.standing(x) if k.queued else k.other_delay_s))
        for k, window in zip(loop.classes, loop.windows_of(x, 0.08), strict=True)
    )
    np.testing.assert_allclose(flows * sent, RATE, rtol=1e-9)
    assert loop.flows(float(x[1]), 0.08) == pytest.approx(20.0, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_discs_contain_the_response_in_the_whole_cell(name: str) -> None:
    loop, rng = LOOPS[name], np.random.default_rng(1)
    shares = []
    for _ in range(400):
        centre = np.array(
            [
                np.exp(rng.uniform(np.log(1e-3), np.log(3.1))),
                np.log(rng.uniform(2.0, 100.0)),
                rng.uniform(np.log(1e-3), np.log(0.5)),
                rng.choice([0.0, 0.02]),
            ]
        )
        delay = 0.0 if rng.random() < 0.5 else min(centre[3], 10.0 ** rng.uniform(-5.0, -2.0))
        half = np.array([centre[0] * 10.0 ** rng.uniform(-4.0, -0.7), *10.0 ** rng.uniform(-4.0, -0.5, 2), delay])
        value, parts, stretch = loop.disc(centre[None], half[None])
        if not np.isfinite(parts.sum()) or parts.sum() == 0.0:
            continue
        at = centre + half * np.where(rng.random((30, 4)) < 0.5, rng.choice([-1.0, 1.0], (30, 4)), rng.uniform(-1, 1))
        found = loop.at(np.minimum(at[:, 0], np.pi), np.exp(at[:, 1]), np.exp(at[:, 2]), at[:, 3])
        found = found[found != 0.0]  # of the loop's range
        if not found.size:
            continue
        factors = np.exp(np.linspace(-1.0, 1.0, 401) * stretch.sum())
        shares.append(np.abs(found[:, None] / factors - value[0]).min(axis=1).max() / parts.sum())
    assert len(shares) > (80 if name == "spaced" else 150)
    assert max(shares) <= 1.0
    # How tight bounds are: the delay of "spaced" falls to 0 within its line.
    assert np.median(shares) > {"spaced": 0.01, "dropped averaged": 0.015}.get(name, 0.02)


def drawn(seed: int) -> tuple[QueueLoop, float, float]:
    """A loop with small gains, its flows and its round-trip time."""
    rng = np.random.default_rng(seed)
    classes = [
        (WindowClass(RENO),),
        (WindowClass(CRENO, power=2.0),),
        (WindowClass(RENO, 0.6, power=2.0), WindowClass(DCTCP, 0.4, 2.0, factor=2.0)),
        (WindowClass(RENO, 0.5), WindowClass(CRENO, 0.5, rng.uniform(1.0, 4.0))),
    ][seed % 4]
    update, target, rtt, window = (
        10.0 ** rng.uniform(*ends) for ends in ((-2.3, -1.3), (-2.3, -1.5), (-2.0, -0.5), (0.7, 2.3))
    )
    law = SampledPi(1e-12, 1e-12 * 10.0 ** rng.uniform(0.5, 2.0), update, target)
    loop = QueueLoop(classes, law, RATE, age_queues=float(rng.integers(2)), marked_leaving=bool(rng.integers(2)))
    return loop, RATE * (rtt + target) / window, rtt


def drawn_averaged(seed: int) -> tuple[QueueLoop, float, float]:
    """A loop with an averaging law, its flows and its round-trip time."""
    rng = np.random.default_rng(seed)
    classes = [
        (WindowClass(RENO),),
        (WindowClass(DCTCP),),
        (WindowClass(RENO, 0.6), WindowClass(DCTCP, 0.4, 2.0)),
        (WindowClass(RENO, 0.5), WindowClass(CRENO, 0.5, rng.uniform(1.0, 4.0))),
    ][seed % 4]
    rtt, standing, window = (10.0 ** rng.uniform(*ends) for ends in ((-2.0, -0.5), (-2.5, -1.0), (0.5, 1.5)))
    corner = np.inf if seed % 3 == 0 else 10.0 ** rng.uniform(-1.0, 1.5)
    flows = RATE * (rtt + standing) / window
    law = Averaged(10.0 ** rng.uniform(-1.0, 1.5), corner, 0.5 * standing, spaced=bool(seed // 4 % 2))
    made = QueueLoop(classes, law, RATE, age_s=0.5 / RATE)
    longest = max(float(made.trip(k, rtt, made.standing(made.output(flows, rtt)))) for k in classes)
    return QueueLoop(classes, law, RATE, age_s=0.5 / RATE, continuous_s=longest / 20.0), flows, rtt


@pytest.mark.parametrize("draw", [drawn, drawn_averaged])
@pytest.mark.parametrize("seed", range(24))
def test_the_nonlinear_fluid_begins_to_oscillate_at_the_limit(seed: int, draw: Callable) -> None:
    loop, flows, rtt = draw(seed)
    found = stable_gains(loop, flows, rtt)
    # From a stable loop on to the first gain that isn't: L is proportional to the slope of the line at its equilibrium.
    stable = found.unstable_poles == 0
    assert stable or draw is drawn_averaged
    limit, angle = (found.upper, found.upper_angle) if stable else (found.lower, found.lower_angle)
    period = 2.0 * np.pi * loop.epoch / angle
    assert growth(loop, flows, rtt, 0.97 * limit, 80.0, period) < 0.0
    assert growth(loop, flows, rtt, 1.03 * limit, 80.0, period) > 0.0


@pytest.mark.parametrize("name", ["mixed", "cubic mixed", "averaged", "spaced"])
def test_discs_of_one_point_are_those_of_its_cells_alone(name: str) -> None:
    """Cells of one point share an equilibrium, cells of several have one each; extra delays differ in either."""
    loop, rng = LOOPS[name], np.random.default_rng(5)
    centre = np.array([[0.4, np.log(20.0), np.log(0.08), 0.0]] * 12)
    centre[:, 0] *= np.exp(rng.uniform(-3.0, 1.0, 12))
    centre[:, 3] = rng.uniform(0.0, 0.1, 12)
    half = np.zeros_like(centre)
    half[:, 0], half[:, 3] = 0.05 * centre[:, 0] * np.arange(12) / 12.0, 0.01
    together = loop.disc(centre, half)
    for i in range(12):
        for all_of_them, alone in zip(together, loop.disc(centre[i : i + 1], half[i : i + 1]), strict=True):
            np.testing.assert_allclose(all_of_them[i], alone[0], rtol=1e-10, atol=1e-300)
    # Beside a cell of another point nothing is shared.
    moved = np.concatenate([centre, centre[:1] + np.array([0.0, 0.1, 0.0, 0.0])]), np.concatenate([half, half[:1]])
    for shared, own in zip(together, loop.disc(*moved), strict=True):
        np.testing.assert_allclose(own[:-1], shared, rtol=1e-10, atol=1e-300)


def test_an_output_of_many_points_is_that_of_each() -> None:
    for loop in LOOPS.values():
        flows, rtt = np.array([3.0, 20.0, 90.0]), np.array([0.02, 0.08, 0.3])
        many = loop.output(flows, rtt)
        each = [float(loop.output(n, tau)) for n, tau in zip(flows, rtt, strict=True)]
        np.testing.assert_allclose(many, each, rtol=1e-12)
        assert loop.output(np.array([[3.0]]), 0.02).shape == (1, 1)


@pytest.mark.parametrize("name", LOOPS)
def test_the_response_at_a_point_is_the_same_whatever_was_asked_before(name: str) -> None:
    """Turns from alias to alias, and series at small angles, are kept from one angle of a point to the next."""
    loop, rng = LOOPS[name], np.random.default_rng(1)
    flows, rtt = np.array([3.0, 20.0, 60.0]), np.array([0.02, 0.1, 0.3])
    angles, rows = rng.choice([0.01, 0.05, 0.3, 3.0], 60), rng.integers(0, 3, 60)
    extra = rng.choice([0.0, 0.01], 60)
    together = loop.placed(flows, rtt).at(angles, rows, extra)
    alone = [loop.at(t, flows[r], rtt[r], e) for t, r, e in zip(angles, rows, extra, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-7)  # alone some take fewer aliases


@pytest.mark.parametrize("name", LOOPS)
def test_a_compiled_response_is_the_sum_of_its_terms(name: str) -> None:
    """Phases, shares and lags are laid out in arrays for it; here they are taken from the formulas as they stand."""
    loop, theta, extra = LOOPS[name], 0.4, 0.003
    x, flows, rtt = float(loop.output(20.0, 0.08)), 20.0, 0.08
    point = loop.point(x, flows, rtt)
    sampled = isinstance(loop.law, SampledPi)
    s = 1j * (theta + 2.0 * np.pi * (np.arange(-100_000, 100_001) if sampled else np.zeros(1))) / loop.epoch
    echoes = [[np.exp(-s * lag) for lag in lags] for lags in point.lags(loop.classes)]
    term = loop.term(s, point, echoes, [np.exp(-s * delay) for delay in loop.delays(point, extra)])
    expected = term.sum() / x
    if sampled:
        law = loop.law
        counted = law.integral + law.proportional * (1.0 - np.exp(-1j * theta))
        expected *= counted / loop.epoch * law.steeper(x)
    np.testing.assert_allclose(loop.at(theta, flows, rtt, extra), expected, rtol=1e-4 if sampled else 1e-10)


def test_points_to_start_from_are_plain_numbers() -> None:
    """As they stand in a certificate's file."""
    loop = QueueLoop((WindowClass(CUBIC),), PI, RATE, within=(1e-3, 1e-2))
    starts = loop.starts((1.0, 100.0), (0.05, 0.1))
    assert len(starts) >= 4
    assert all(type(each) is float for point in starts for each in point)
