"""Equilibria of networks of queues: complementarity, which links queue, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from parking_lots import link_of, network_of, random_parking_lot

from netctrl.certificates.pi_laws import dualpi2, pi2
from netctrl.certificates.red import red, wred
from netctrl.core.errors import InvalidValue
from netctrl.plants.queue_networks.equilibrium import network_equilibrium
from netctrl.plants.queue_networks.network import PathFlows, QueueNetwork
from netctrl.plants.queues.window_response import DCTCP, RENO


@pytest.mark.parametrize("seed", range(40, 52))
def test_every_link_is_full_or_unmarked(seed: int) -> None:
    network = random_parking_lot(seed)
    found = network_equilibrium(network)
    loads, windows = np.zeros(len(network.links)), []
    for i, group in enumerate(network.groups):
        marks = [
            kind.factor * found.outputs[k] ** kind.power if found.outputs[k] > 0.0 else 0.0
            for k, kind in zip(group.path, group.seen, strict=True)
        ]
        windows.append(group.sender.window(1.0 - np.prod(1.0 - np.array(marks)), found.trips[i]))
        waits = [
            found.delays[k] if kind.queued else kind.other_delay_s
            for k, kind in zip(group.path, group.seen, strict=True)
        ]
        assert found.trips[i] == pytest.approx(group.rtt_s + sum(waits), rel=1e-12)
        for k in group.path:
            loads[k] += group.flows * windows[i] / found.trips[i] / network.links[k].rate
    assert found.windows == pytest.approx(np.array(windows), rel=1e-9)
    queueing = np.isin(np.arange(len(loads)), found.order)
    assert loads[queueing] == pytest.approx(1.0, abs=1e-9)
    assert np.all(loads[~queueing] < 1.0)
    assert np.all(found.outputs[~queueing] == 0.0)
    assert np.all(found.delays[~queueing] == 0.0)
    for k in found.order:
        assert found.delays[k] > 0.0
        if found.outputs[k] > 0.0:
            assert found.delays[k] == pytest.approx(network.links[k].standing(found.outputs[k]), rel=1e-12)


def test_the_slower_of_two_links_in_series_queues() -> None:
    groups = [(10, 0.05, [0, 1], RENO)]
    assert network_equilibrium(network_of([pi2(), pi2()], [50e6, 51e6], groups)).order == (0,)
    assert network_equilibrium(network_of([pi2(), pi2()], [52e6, 51e6], groups)).order == (1,)


def test_a_queue_below_its_threshold_is_full_without_marks() -> None:
    """The second link lengthens round trips until it is just full, since its threshold is far."""
    near, far = (
        red(limit_bytes=900_000, min_bytes=30_000, max_bytes=90_000, burst=55, gentle=True),
        wred(min_bytes=100_000, max_bytes=900_000, max_percent=10),
    )
    groups = [(10, 0.05, [0, 1], RENO), (4, 0.03, [0], RENO), (4, 0.2, [1], RENO)]
    for rate in np.linspace(13e6, 20e6, 4):
        # Flows over the second link alone are never marked below its threshold, so they always reach it.
        found = network_equilibrium(network_of([near, far], [20e6, rate], groups))
        assert found.outputs[1] > 0.0
    groups = groups[:2]
    states = set()
    for rate in np.linspace(3e6, 16e6, 14):
        found = network_equilibrium(network_of([near, far], [20e6, rate], groups))
        state = "marks" if found.outputs[1] > 0.0 else "full" if 1 in found.order else "idle"
        states.add(state)
        if state == "full":
            assert 0.0 < found.delays[1] < 100_000 * 8 / rate
            assert found.loads[1] == pytest.approx(1.0, abs=1e-9)
    assert states == {"marks", "full", "idle"}


@pytest.mark.parametrize(
    ("laws", "rates", "groups", "named"),
    [
        ([pi2(), pi2()], [50e6, 50e6], [(10, 0.05, [0, 1], RENO)], "links"),
        (
            [pi2(), pi2(), pi2()],
            [50e6] * 3,
            [(9, 0.05, [0, 1], RENO), (9, 0.05, [1, 2], RENO), (9, 0.05, [2, 0], RENO)],
            "links",
        ),
        (
            [dualpi2(), dualpi2()],
            [50e6, 60e6],
            [(9, 0.05, [0, 1], RENO), (3, 0.05, [0], DCTCP), (3, 0.05, [1], DCTCP)],
            "links",
        ),
        ([pi2(), pi2()], [50e6, 60e6], [(9, 0.05, [0, 1, 0], RENO)], "flows.g0.path"),
    ],
)
def test_what_has_no_equilibrium_of_its_own_is_named(laws: list, rates: list, groups: list, named: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        network_equilibrium(network_of(laws, rates, groups))
    assert refused.value.argument == named


def test_paths_are_checked() -> None:
    link, law = link_of(pi2(), "l", 50e6, 0.03), pi2()
    for path, rtt, named in (((0, 1), 0.05, "path"), ((), 0.05, "path"), ((0,), 0.02, "rtt")):
        group = PathFlows(name="g", flows=1.0, rtt_s=rtt, path=path, seen=(law.seen_by(RENO),) * len(path))
        with pytest.raises(InvalidValue) as refused:
            QueueNetwork((link,), (group,))
        assert refused.value.argument == f"flows.g.{named}"
