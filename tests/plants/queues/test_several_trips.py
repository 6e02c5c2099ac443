"""Flows of several round-trip times that acknowledgements clock: against their balances, one round trip, and sums."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_fluid import loop_growth
from hypothesis import given
from hypothesis import strategies as st

from netctrl.frequency.margin_grid import gain_factors
from netctrl.frequency.sampled_stability import stable_gains
from netctrl.plants.queues import queue_response
from netctrl.plants.queues.queue_laws import SampledPi, WindowClass
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.several_trips import shared_queue, sharp_angles
from netctrl.plants.queues.window_response import (
    LINUX_CRENO,
    LINUX_CRENO_NOECN,
    LINUX_RENO,
    LINUX_RENO_NOECN,
    RFC_CRENO,
    RFC_RENO,
    Sender,
)

RATE = 1250.0
PI = SampledPi(0.01, 0.2, 0.016, 0.015)
ANGLES = np.array([0.02, 0.09, 0.11, 0.3, 1.0, 2.0, 3.1])
TRIPS = st.lists(st.floats(0.01, 0.3), min_size=2, max_size=4, unique=True)


@given(TRIPS, st.lists(st.integers(0, 3), min_size=5, max_size=5), st.floats(0.1, 300.0), st.integers(0, 1000))
def test_the_queue_solves_the_balances_of_all_classes(
    trips: list[float], which: list[int], omega: float, seed: int
) -> None:
    """Unknowns a_i and the delay of a link of one packet a second: a_i (1 − e_i) + y_i e_i δD = δW_i, δD = Σ a_i."""
    rng = np.random.default_rng(seed)
    R = np.array([trips[i % len(trips)] for i in which])  # some classes share a round trip
    y, relative = rng.dirichlet(np.ones(5)), rng.normal(size=5) + 1j * rng.normal(size=5)
    e = np.exp(-1j * omega * R)
    rows = np.zeros((6, 6), dtype=complex)
    rows[:5, :5], rows[:5, 5] = np.diag(1.0 - e), y * e
    rows[5, :5], rows[5, 5] = 1.0, -1.0
    if np.linalg.cond(rows) > 1e9:  # classes of one round trip at its multiples
        return
    solved = np.linalg.solve(rows, np.append(y * R * relative, 0.0))[5]
    found = shared_queue(np.array(1j * omega), list(R), list(y * relative), list(R), list(y))
    assert complex(found) == pytest.approx(solved, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("senders", [(RFC_RENO, LINUX_CRENO), (LINUX_RENO_NOECN, LINUX_CRENO_NOECN)])
def test_round_trips_that_hardly_differ_are_one(senders: tuple[Sender, Sender]) -> None:
    one, two = (
        QueueLoop(
            (WindowClass(senders[0], 0.3, power=2.0), WindowClass(senders[1], 0.7, stretch, power=2.0)),
            PI,
            RATE,
            age_queues=1.0,
            marked_leaving=True,
        )
        for stretch in (1.0, 1.0 + 1e-9)
    )
    assert two.several_clocks
    assert not one.several_clocks
    np.testing.assert_allclose(two.at(ANGLES, 20.0, 0.08), one.at(ANGLES, 20.0, 0.08), rtol=1e-6)


def several(seed: int) -> tuple[QueueLoop, float, float]:
    rng = np.random.default_rng(seed)
    update, target, rtt = (10.0 ** rng.uniform(*ends) for ends in ((-3.0, -1.0), (-3.0, -1.0), (-3.5, 0.0)))
    senders = (LINUX_RENO, RFC_CRENO) if seed < 16 else (LINUX_RENO_NOECN, LINUX_CRENO_NOECN)
    classes = (
        WindowClass(senders[0], 0.4, power=2.0),
        WindowClass(senders[1], 0.6, (1.05, 1.3, 2.0, 3.0)[seed % 4], power=2.0),
    )
    loop = QueueLoop(classes, SampledPi(0.01, 0.2, update, target), RATE, age_queues=1.0)
    return loop, RATE * (rtt + target) / rng.uniform(2.0, 500.0), rtt


@pytest.mark.parametrize("seed", range(24))
def test_the_aliases_that_are_taken_are_all_to_six_digits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, flows, rtt = several(seed)
    fine, coarse = loop.at(ANGLES, flows, rtt), loop.at(ANGLES, flows, rtt, coarse=True)
    monkeypatch.setattr(queue_response, "_MOST_APART", 6000)
    exact = loop.at(ANGLES, flows, rtt)
    np.testing.assert_allclose(fine, exact, rtol=1e-6)
    np.testing.assert_allclose(coarse, exact, rtol=2e-5)


def test_sharp_angles_are_where_classes_exchange_packets() -> None:
    """Where the sum of y cot(omega R/2) is 0 the queue's answer may be large; it is nowhere else."""
    trips, shares = [np.array([[0.05]]), np.array([[0.11]])], [np.array([[0.6]]), np.array([[0.4]])]
    found = np.unique(sharp_angles([1.0, 2.2], trips, shares, 1e-3))
    omega = np.linspace(1.0, 2.0 * np.pi * 8.0 / 0.05, 400_001)
    c = [1.0 / np.tan(0.5 * omega * float(R[0, 0])) for R in trips]
    answer = np.abs((1.0 - 1j * c[0]) / (1.0 - 1j * (0.6 * c[0] + 0.4 * c[1])))
    peaks = omega[1:-1][(answer[1:-1] > answer[:-2]) & (answer[1:-1] > answer[2:]) & (answer[1:-1] > 2.0)]
    assert len(peaks) >= 3
    for peak in peaks:
        assert np.abs(found * 1e3 / peak - 1.0).min() < 2e-3


def bent() -> tuple[QueueLoop, float, float]:
    """A loop whose limit is where its classes exchange packets, with a peak narrower than the steps of scans."""
    classes = (WindowClass(RFC_CRENO, 0.47, power=2.0), WindowClass(LINUX_CRENO, 0.53, 10.0, power=2.0))
    law = SampledPi(1e-12, 2.07e-11, 0.0059, 0.0039)
    return QueueLoop(classes, law, RATE, marked_leaving=True), 72.0, 0.068


def test_a_limit_where_classes_exchange_packets_is_found() -> None:
    loop, flows, rtt = bent()
    found = stable_gains(loop, flows, rtt)
    theta = np.linspace(0.052, 0.055, 500)
    L = loop.at(theta, flows, rtt)
    i = np.flatnonzero((np.diff(np.signbit(L.imag)) != 0) & (L.real[1:] < 0.0))
    assert found.upper == pytest.approx((-1.0 / L.real[i]).min(), rel=1e-2)
    even = loop.at(np.linspace(0.01, np.pi, 600), flows, rtt)
    across = (np.diff(np.signbit(even.imag)) != 0) & (np.maximum(even.real[1:], even.real[:-1]) < 0.0)
    assert (-1.0 / np.minimum(even.real[1:], even.real[:-1])[across]).min() > 2.0 * found.upper  # even steps miss it
    assert gain_factors(loop, np.full(2, flows), np.full(2, rtt))[0] == pytest.approx(found.factor, rel=1e-3)
    period = 2.0 * np.pi * loop.epoch / found.upper_angle
    assert loop_growth(loop, flows, rtt, 0.97 * found.upper, 120.0, period) < 0.0
    assert loop_growth(loop, flows, rtt, 1.03 * found.upper, 120.0, period) > 0.0


def test_flows_of_several_round_trips_have_no_discs() -> None:
    loop, flows, rtt = bent()
    with pytest.raises(TypeError, match="no bound"):
        loop.disc(np.array([[0.1, np.log(flows), np.log(rtt), 0.0]]), np.zeros((1, 4)))
