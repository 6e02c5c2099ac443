"""Networks over cells of round-trip times, flows and rates: bounds against equilibria and determinants at points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from parking_lots import network_of

from netctrl.certificates.pi_laws import dualpi2, pi2
from netctrl.plants.queue_networks.bounded import NetworkLoop
from netctrl.plants.queue_networks.cells import Coordinate, NetworkCells
from netctrl.plants.queue_networks.equilibrium import NetworkEquilibrium, network_equilibrium
from netctrl.plants.queue_networks.network import QueueNetwork
from netctrl.plants.queue_networks.over_box import BoxLoop
from netctrl.plants.queues.window_response import CUBIC, DCTCP, RENO, Sender

COORDINATES = (Coordinate("rtt", 0), Coordinate("flows", 1), Coordinate("rate", 1))
MIDDLE = np.log([0.04, 12.0, 80e6 / 12000.0])


def network(sender: Sender) -> QueueNetwork:
    groups = [(12, 0.04, [0, 1, 2], sender), (12, 0.02, [0], RENO), (12, 0.03, [1], sender)]
    law = dualpi2() if sender is DCTCP else pi2()
    groups += [(3, 0.05, [0, 1], RENO), (4, 0.02, [1], RENO)] if sender is DCTCP else []
    return network_of([law, pi2(alpha=0.1), pi2()], [100e6, 80e6, 1e9], groups, 0.003)


def moved(some: QueueNetwork, u: np.ndarray) -> NetworkEquilibrium:
    groups, links = list(some.groups), list(some.links)
    groups[0] = replace(groups[0], rtt_s=float(np.exp(u[0])))
    groups[1] = replace(groups[1], flows=float(np.exp(u[1])))
    links[1] = replace(links[1], rate=float(np.exp(u[2])))
    return network_equilibrium(replace(some, groups=tuple(groups), links=tuple(links)))


def determinant(found: NetworkEquilibrium, theta: float, gain: float, phase: float) -> complex:
    loop, at = NetworkLoop(found), np.array([theta])
    weights = np.stack(loop.weights(at), axis=1)[:, :, None] * np.eye(2)
    return complex(np.linalg.det(weights + gain * np.exp(-1j * phase) * loop.weighted(at))[0])


@pytest.mark.parametrize("sender", [RENO, CUBIC, DCTCP], ids=lambda each: each.name)
@pytest.mark.parametrize("width", [0.0, 1e-3, 0.02, 0.05])
def test_cells_contain_equilibria_and_determinants_of_their_points(sender: Sender, width: float) -> None:
    some, rng = network(sender), np.random.default_rng(5)
    middle = network_equilibrium(some)
    cells = NetworkCells(middle, COORDINATES)
    loop = BoxLoop(NetworkLoop(middle), cells, 0.03)
    k = 12
    half = width * rng.uniform(0.2, 1.0, (k, 3))
    centre = MIDDLE + rng.uniform(-0.2, 0.2, (k, 3))
    found = cells.at(centre, half)
    assert found.known.mean() > 0.7
    nearest = []
    for i in np.flatnonzero(found.known):
        u = centre[i] + half[i] * rng.choice([-1.0, 1.0], 3)
        at = moved(some, u)
        assert at.order == (0, 1)
        off = np.abs(np.log(at.outputs[[0, 1]]) - found.ln_x[i])
        assert np.all(off <= (found.by[i] * half[i]).sum(axis=1) + 1e-9)
        by_window = (found.windows_by[i] * half[i]).sum(axis=1)
        assert np.all(np.abs(np.log(at.windows / found.windows[i])) <= by_window + 1e-9)
        theta, phase = rng.uniform(0.02, 3.0), rng.uniform(-0.3, 0.3)
        cell = np.array([[theta, 1.0, phase, *centre[i]]])
        wide = np.array([[width * theta, 0.0, 0.0, *half[i]]])
        values, parts = loop.disc(cell, wide)
        exact = determinant(at, theta * (1.0 + width), 1.0, phase)
        assert np.isfinite(parts).all()
        assert abs(exact - values[0]) <= parts.sum()
        nearest.append(abs(exact - values[0]) / parts.sum())
    assert width == 0.0 or max(nearest) > 0.3  # bounds are of use


def test_where_gains_or_phases_are_a_range_the_worst_part_is_bounded() -> None:
    some = network(RENO)
    middle = network_equilibrium(some)
    loop = BoxLoop(NetworkLoop(middle), NetworkCells(middle, COORDINATES), 0.03)
    for column, ends in ((1, (0.5, 2.0)), (2, (-0.5, 0.5))):
        for theta in (0.05, 0.3, 1.0):
            centre, half = np.array([[theta, 1.0, 0.0, *MIDDLE]]), np.zeros((1, 6))
            centre[0, column], half[0, column] = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
            values, parts = loop.disc(centre, half)
            least = abs(values[0]) - parts.sum()
            exact = [
                abs(determinant(middle, theta, *((each, 0.0) if column == 1 else (1.0, each))))
                for each in np.linspace(*ends, 101)
            ]
            assert least <= min(exact) + 1e-9
            assert least > 0.5 * min(exact)


def test_cells_with_an_idle_link_that_may_fill_or_small_windows_are_not_known() -> None:
    groups = [(12, 0.04, [0, 1], RENO), (12, 0.02, [0], RENO)]
    some = network_of([pi2(), pi2()], [100e6, 300e6], groups, 0.003)
    middle = network_equilibrium(some)
    assert middle.order == (0,)
    cells = NetworkCells(middle, (Coordinate("rate", 1),))
    load = float(middle.loads[1]) * 300e6
    for rate, known in ((1.05 * load, True), (0.95 * load, False)):
        assert bool(cells.at(np.log([[rate / 12000.0]]), np.zeros((1, 1))).known[0]) is known
    least = float(middle.windows.min())
    for window, known in ((0.99 * least, True), (1.01 * least, False)):
        small = NetworkCells(middle, (Coordinate("rate", 1),), window)
        assert bool(small.at(np.log([[300e6 / 12000.0]]), np.zeros((1, 1))).known[0]) is known
