"""Response of networks of queues: one link, closed forms, symmetries, bounds over cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from parking_lots import link_of, network_of, random_parking_lot

from netctrl.certificates.loops import classes_of, read_mixture
from netctrl.certificates.pi_laws import dualpi2, pi2, pie
from netctrl.certificates.red import red
from netctrl.certificates.subject import PiSubject
from netctrl.plants.queue_networks.bounded import NetworkLoop
from netctrl.plants.queue_networks.equilibrium import network_equilibrium
from netctrl.plants.queue_networks.network import PathFlows, QueueNetwork
from netctrl.plants.queue_networks.response import NetworkResponse
from netctrl.plants.queues.window_response import CRENO, RENO

ANGLES = np.array([1e-3, 0.01, 0.05, 0.099, 0.101, 0.3, 1.0, 2.0, 3.0, np.pi])


def response_of(network: QueueNetwork) -> NetworkLoop:
    return NetworkLoop(network_equilibrium(network))


@pytest.mark.parametrize("law", [pi2(), dualpi2(), pie(), pie(implementation="rfc", dq_rate_estimator=True)])
@pytest.mark.parametrize("senders", ["reno", "reno+creno", "reno+dctcp", "cubic", "cubic+reno"])
def test_one_link_is_the_loop_of_one_queue(law: PiSubject, senders: str) -> None:
    mixture = read_mixture(senders)
    link = link_of(law, "line", 50e6, 0.003)  # the delay of its line is in the round trip
    groups = tuple(
        PathFlows(name=str(i), flows=20.0 * share, rtt_s=0.05, path=(0,), seen=(law.seen_by(sender),))
        for i, (sender, share) in enumerate(mixture.parts)
    )
    found = response_of(QueueNetwork((link,), groups))
    x = found.outputs[0]
    loops = law.loops(classes_of(law, mixture, (1.0,)), link.rate, 1500.0)
    loop = next(each for each in loops if each.within[0] <= x <= each.within[1])
    assert x == pytest.approx(float(loop.output(20.0, 0.05)), rel=1e-12)
    expected = loop.at(ANGLES, 20.0, 0.05)
    # Both leave out aliases, which count where the response is small.
    assert np.abs(found.at(ANGLES)[:, 0, 0] - expected).max() < 1e-9 * np.abs(expected).max()
    assert found.at(ANGLES[:-2])[:, 0, 0] == pytest.approx(expected[:-2], rel=1e-9)
    assert found.at(ANGLES)[:, 0, 0] == pytest.approx(expected, rel=1e-8)


def test_one_link_with_red_is_the_loop_of_one_queue() -> None:
    law = red(limit_bytes=400_000, min_bytes=30_000, max_bytes=90_000, burst=55)
    found = response_of(network_of([law], [20e6], [(15, 0.05, [0], RENO), (3, 0.1, [0], CRENO)]))
    classes = tuple(
        law.seen_by(sender)._replace(share=count / 18.0, stretch=stretch)
        for count, stretch, sender in ((15, 1.0, RENO), (3, 2.0, CRENO))
    )
    (loop,) = law.loops(classes, 20e6 / 12000.0, 1500.0)
    loop = replace(loop, continuous_s=found.continuous_s)
    omega = np.geomspace(0.01, 200.0, 50)
    assert found.at(omega)[:, 0, 0] == pytest.approx(loop.at(omega, 18.0, 0.05), rel=1e-9)


def test_links_with_cross_flows_alone_are_loops_of_their_own() -> None:
    laws = [pi2(), pi2(alpha=0.05)]
    both = response_of(network_of(laws, [50e6, 80e6], [(20, 0.05, [0], RENO), (9, 0.02, [1], RENO)])).at(ANGLES)
    assert np.all(both[:, 0, 1] == 0.0)
    assert np.all(both[:, 1, 0] == 0.0)
    for k, (rate, group) in enumerate([(50e6, (20, 0.05, [0], RENO)), (80e6, (9, 0.02, [0], RENO))]):
        alone = response_of(network_of([laws[k]], [rate], [group])).at(ANGLES)
        assert both[:, k, k] == pytest.approx(alone[:, 0, 0], rel=1e-12)


def test_two_links_in_series_in_closed_form() -> None:
    """Reno over both links and over the second, by hand: at the first nothing else passes."""
    network = network_of([pi2(), pi2()], [50e6, 60e6], [(20, 0.05, [0, 1], RENO), (5, 0.1, [1], RENO)], 0.004)
    equilibrium = network_equilibrium(network)
    found = NetworkResponse(equilibrium)
    p = equilibrium.outputs**2
    R, r = 0.08, 0.115
    w, v = 50e6 / 12000.0 * R / 20.0, 10e6 / 12000.0 * r / 5.0
    marked = 1.0 - (1.0 - p[0]) * (1.0 - p[1])
    assert (w, v) == pytest.approx((np.sqrt(2.0 / marked), np.sqrt(2.0 / p[1])), rel=1e-9)
    y, c = 50.0 / 60.0, 10.0 / 60.0
    lag = 0.004 + 0.015
    s = 1j * np.geomspace(1e-4, 300.0, 40)

    def window(k: float, trip: float) -> tuple[np.ndarray, np.ndarray]:
        Q = k / (s * trip + k * (1.0 + np.exp(-s * trip)))
        return Q, (1.0 - np.exp(-s * trip)) * Q

    (Q, V), (q, u) = window(1.0 / w, R), window(1.0 / v, r)
    late = np.exp(-s * lag)
    first = 2.0 * p[0] * (1.0 - p[1]) / marked, 2.0 * p[1] * (1.0 - p[0]) / marked
    # s D1 = W/w − R'/R;  s D2 = y late (W/w − R'/R − s D1) + c (w'/w' − D2/r)
    A = np.array(
        [
            [s + (1.0 + V) / R, (1.0 + V) / R],
            [y * late * ((1.0 + V) / R + s), s + y * late * (1.0 + V) / R + c * (1.0 + u) / r],
        ]
    )
    echo = np.exp(-s * R)
    B = np.array(
        [
            [Q * first[0] * echo, Q * first[1] * echo / late],
            [y * Q * first[0] * echo * late, y * Q * first[1] * echo + 2.0 * c * q * np.exp(-s * r)],
        ]
    )
    expected = np.linalg.solve(A.transpose(2, 0, 1), B.transpose(2, 0, 1))
    G = found.plant(s, lambda delay: np.exp(-s * delay))
    for row in range(2):
        for column in range(2):
            assert G[row][column] == pytest.approx(expected[:, row, column], rel=1e-9)


@pytest.mark.parametrize("curved", [False, True])
def test_sums_of_aliases_are_those_of_many_more(curved: bool) -> None:
    found = response_of(random_parking_lot(4, curved=curved))
    assert len(found.laws) > 2
    s = 1j * (ANGLES[:, None] + 2.0 * np.pi * np.arange(-4000, 4001)) / found.epoch
    G = found.plant(s, lambda delay: np.exp(-s * delay))
    z = np.exp(1j * ANGLES)
    for row, law in enumerate(found.laws):
        held = [(entry * np.exp(-s * found.ages[row]) / s).sum(axis=1) for entry in G[row]]
        counted = (law.proportional * (1.0 - 1.0 / z) + law.integral) / found.epoch / found.outputs[row]
        expected = counted[:, None] * np.stack(held, axis=1)
        got = found.at(ANGLES)[:, row]
        assert np.abs(got - expected).max(axis=1) == pytest.approx(0.0, abs=1e-7 * np.abs(expected).max(axis=1).min())


def test_order_of_links_split_groups_and_idle_links_change_nothing() -> None:
    laws = [pi2(), dualpi2(), pi2(alpha=0.08)]
    groups = [(6, 0.06, [0, 1, 2], RENO), (10, 0.05, [0], RENO), (8, 0.03, [1], CRENO), (9, 0.04, [2], RENO)]
    rates = [50e6, 60e6, 70e6]
    base = response_of(network_of(laws, rates, groups, 0.002)).at(ANGLES)
    halves = [(3, 0.06, [0, 1, 2], RENO), (3, 0.06, [0, 1, 2], RENO), *groups[1:]]
    assert response_of(network_of(laws, rates, halves, 0.002)).at(ANGLES) == pytest.approx(base, rel=1e-9)
    turned = [(n, rtt, [2 - k for k in path], sender) for n, rtt, path, sender in groups]
    other = response_of(network_of(laws[::-1], rates[::-1], turned, 0.002))
    assert other.equilibrium.order == (2, 1, 0)
    assert other.at(ANGLES) == pytest.approx(base, rel=1e-9)
    # An idle link between is a delay alone.
    wider = [(n, rtt, [k + (k > 0) for k in path], sender) for n, rtt, path, sender in groups]
    wider[0] = (6, 0.06, [0, 1, 2, 3], RENO)
    spare = network_of([laws[0], pi2(), *laws[1:]], [50e6, 1e9, 60e6, 70e6], wider, 0.002)
    links = list(spare.links)
    links[0], links[1] = replace(links[0], delay_s=0.0015), replace(links[1], delay_s=0.0005)
    through = response_of(QueueNetwork(tuple(links), spare.groups))
    assert through.equilibrium.order == (0, 2, 3)
    assert through.at(ANGLES) == pytest.approx(base, rel=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize(("any_phase", "curved"), [(False, False), (True, False), (False, True)])
def test_discs_contain_the_determinant_between_their_centres(seed: int, any_phase: bool, curved: bool) -> None:
    loop = replace(response_of(random_parking_lot(seed, curved=curved)), any_phase=any_phase, continuous_s=0.02)
    size, rng = len(loop.laws), np.random.default_rng(seed)
    for width in (1e-3, 0.03, 0.5):
        n = 60
        centre = np.stack(
            [np.exp(rng.uniform(-5.0, 1.0, n)), rng.uniform(0.3, 3.0, n), rng.uniform(-0.5, 0.5, n)], axis=1
        )
        half = width * rng.uniform(0.0, 1.0, (n, 3)) * np.stack([centre[:, 0], np.ones(n), np.ones(n)], axis=1)
        values, parts = loop.disc(centre, half)
        points = centre + rng.uniform(-1.0, 1.0, half.shape) * half
        weights = np.stack(loop.weights(points[:, 0]), axis=1)
        turned = (points[:, 1] * np.exp(-1j * points[:, 2]))[:, None, None]
        exact = np.linalg.det(weights[:, :, None] * np.eye(size) + turned * loop.weighted(points[:, 0]))
        known = np.isfinite(parts).all(axis=1)
        assert known.mean() > (0.2 if curved and width == 0.5 else 0.5)
        assert np.all(np.abs(exact - values)[known] <= parts.sum(axis=1)[known])
