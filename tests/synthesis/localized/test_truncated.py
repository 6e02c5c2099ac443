"""Truncated columns: bounds against the exact law and against the closed loop that they make, by frequencies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from link_cases import DIAMOND, Case, case, god, line, published, random_network

from netctrl.core.errors import NoAdmissibleDesign
from netctrl.laws.link_rate.fir import completed
from netctrl.model.law import FirColumns, FirGain
from netctrl.model.network_model import InformationPattern, NetworkModel
from netctrl.plants.information import COMMUNICATIONS
from netctrl.synthesis.localized.coordinated import coordinated
from netctrl.synthesis.localized.localized import localized
from netctrl.synthesis.localized.region import used

TOLERANCE = {"bounds": 1e-10, "frequencies": 1e-9, "completed": 1e-10, "limit": 1e-9}
CHORDS = [(0, 2), (1, 3), (2, 4), (0, 3), (3, 6), (4, 7), (2, 7)]


def random_case(seed: int, communication: str = "out-of-band") -> Case:
    return case(random_network(seed, CHORDS, (1, len(CHORDS) + 1), 4), communication)


def transfer(law: FirGain, model: NetworkModel, points: int) -> np.ndarray:
    """(points, 2N, N) rates and backlogs after impulses in the buffers of the plant itself under eq. (14).

    With z⁻¹ = e^{−jω} the law is u = M δ, x̂ = (R − I) δ, δ = x − x̂, where R has the columns' backlogs and, in the rows
    of the lines, what was commanded before. Only backlogs are disturbed and leak, so δ of rates is 0.
    """
    N, delay = model.n_links, model.delay
    C = model.coupling.toarray()
    found = np.empty((points, 2 * N, N), dtype=complex)
    for row, q in enumerate(np.exp(-2j * np.pi * np.arange(points) / points)):
        M, R = np.zeros((N, N), dtype=complex), np.zeros((N, N), dtype=complex)
        for e, column in enumerate(law.columns):
            powers = q ** np.arange(column.u.shape[2])
            M[column.links, e], R[column.links, e] = column.u[0] @ powers, column.b[0] @ powers
        # x = q (x + C q^(n + 1) u − u) + w, whose backlogs are x = R δ and u = M δ: w = (R − q (R + C D M − M)) δ.
        delta = np.linalg.inv(R - q * (R + (C * q ** (delay + 1)) @ M - M))
        found[row] = np.vstack([M, R]) @ delta
    return found


def true_cost(one: Case, mu: np.ndarray, law: FirGain, points: int = 4096) -> float:
    """Σ E u² + mu E b² by Parseval's theorem; the error of the sum falls geometrically with the points."""
    H = one.model.injection.toarray() * one.model.std
    response = transfer(law, one.model, points) @ H
    N = one.model.n_links
    weight = np.concatenate([np.ones(N), mu])
    return float(np.sum(weight[:, None] * np.mean(np.abs(response) ** 2, axis=0)))


def check(one: Case, mu: np.ndarray, tolerance: float) -> None:
    found = localized(one.model, mu, one.pattern, tolerance=tolerance)
    exact, true = coordinated(one.model, mu, one.pattern).cost, true_cost(one, mu, found.law)
    assert found.bound <= exact * (1.0 + TOLERANCE["bounds"])
    assert exact <= true * (1.0 + TOLERANCE["bounds"])
    assert true <= found.cost * (1.0 + TOLERANCE["bounds"])
    assert found.excess <= tolerance
    assert 0.0 <= found.spectral_radius < 1.0


@pytest.mark.parametrize("seed", range(50))
def test_lower_exact_true_and_upper_are_in_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    one = random_case(seed, COMMUNICATIONS[seed % 2])
    mu = 10.0 ** random.uniform(-1.5, 1.5) * random.uniform(0.5, 2.0, one.model.n_links)
    check(one, mu, 10.0 ** random.uniform(-5.0, -1.0))


def test_a_demand_that_splits_at_its_source_has_bounds_too() -> None:
    for communication in COMMUNICATIONS:
        one = case(DIAMOND, communication)
        check(one, np.linspace(0.2, 2.0, one.model.n_links), 1e-3)


@given(st.integers(0, 2**32 - 1), st.floats(-1.0, 1.0))
@settings(max_examples=10)
def test_a_small_tolerance_gives_the_exact_cost(seed: int, decades: float) -> None:
    one, mu = random_case(seed), 10.0**decades
    found = localized(one.model, mu, one.pattern, tolerance=1e-11)
    exact = coordinated(one.model, mu, one.pattern).cost
    assert (found.cost, found.bound) == pytest.approx((exact, exact), rel=TOLERANCE["limit"])


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3])
def test_no_link_uses_data_before_they_arrive_and_reach_and_messages_are_those_of_the_columns(tolerance: float) -> None:
    one = random_case(3)
    found = localized(one.model, 0.5, one.pattern, tolerance=tolerance)
    N = one.model.n_links
    reach, messages = np.zeros(N), np.zeros(N)
    for e, column in enumerate(found.law.columns):
        for link, u in zip(column.links, column.u[0], strict=True):
            if u.any():
                assert np.flatnonzero(u)[0] >= one.heard[link, e]
                reach[link] = max(reach[link], one.heard[link, e])
                messages[link] += link != e
    np.testing.assert_array_equal(found.reach, reach)
    np.testing.assert_array_equal(found.messages, messages)


def test_reach_is_known_where_a_node_has_a_short_column_before_a_long_one() -> None:
    pattern = InformationPattern.from_lines(np.array([0, 0, 1]), [(0, 1, 5)], 2)
    short = FirColumns(links=np.array([0]), u=np.ones((1, 1, 1)), b=np.ones((1, 1, 1)))
    long = FirColumns(links=np.array([1, 2]), u=np.ones((1, 2, 8)), b=np.ones((1, 2, 8)))
    reach, messages = used(pattern, [short, long, short])
    assert (reach.tolist(), messages.tolist()) == ([0, 0, 5], [1, 0, 1])


def test_a_looser_tolerance_takes_fewer_messages() -> None:
    one = line(30)
    loose, tight = (localized(one.model, 1.0, one.pattern, tolerance=each) for each in (0.1, 1e-4))
    assert loose.messages.sum() < tight.messages.sum()


def test_on_a_route_the_bounds_are_in_order_too() -> None:
    check(line(25), np.full(25, 1.0), 1e-3)


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_a_route_of_200_links_is_certified_and_its_cost_is_that_of_the_fluid(mu: float) -> None:
    """The fluid's own equation, step by step, ends with empty buffers and at the certified cost."""
    one = line(200)
    found = localized(one.model, mu, one.pattern, tolerance=1e-3)
    assert found.excess <= 1e-3
    column = found.law.columns[0]
    u, b = np.zeros((2, 200, column.u.shape[2]))
    u[column.links], now = column.u[0], np.eye(200)[0]
    for t in range(u.shape[1]):
        b[:, t] = now
        now = now - u[:, t]
        if t >= 2:  # what a link sends is in the next one's buffer after n + 2 samples
            now[1:] += u[:-1, t - 2]
    assert np.abs(now).max() < 1e-12
    cost = float(one.model.std[0] ** 2 * (np.sum(u**2) + mu * np.sum(b**2)))
    assert found.cost == pytest.approx(cost, rel=1e-9)


def test_completed_columns_are_the_closed_loops() -> None:
    """The same responses by frequencies and by the cascade of leaks."""
    one = random_case(1)
    law = localized(one.model, 0.5, one.pattern, tolerance=0.05).law
    assert all(len(column.u) == 1 for column in law.columns)
    N, points = one.model.n_links, 2048
    times = np.fft.ifft(transfer(law, one.model, points)[:, :N], axis=0).real
    for e, (links, u) in enumerate(completed(law, one.model.coupling)):
        whole = np.zeros((points, N))
        whole[: u.shape[1], links] = u.T
        np.testing.assert_allclose(whole, times[:, :, e], rtol=0.0, atol=TOLERANCE["completed"])


def test_the_spectral_radius_of_the_closed_loop_is_below_its_bound() -> None:
    """The law's responses to an impulse, by frequencies, die out at least as fast."""
    one = random_case(2)
    found = localized(one.model, 0.3, one.pattern, tolerance=0.1)
    times = np.abs(np.fft.ifft(transfer(found.law, one.model, 4096), axis=0))
    late = times[200:400].max() / max(times[100:200].max(), 1e-300)
    assert late <= found.spectral_radius**100 * 10.0 or times[100:].max() < 1e-14


def test_traffic_that_circulates_for_ever_is_not_certified() -> None:
    ring = np.roll(np.eye(3), 1, axis=0)
    model = NetworkModel(0.01, np.ones(3, int), ring, np.eye(3)[:, :1], [1e6])
    with pytest.raises(NoAdmissibleDesign, match="no truncation of the columns is certified to be stable"):
        localized(model, 1.0, god(model))


def test_information_by_lines_and_by_a_matrix_gives_the_same() -> None:
    one = random_case(4)
    found = localized(one.model, 0.5, one.pattern)
    again = localized(one.model, 0.5, InformationPattern.from_matrix(one.heard))
    assert (again.cost, again.bound) == pytest.approx((found.cost, found.bound), rel=1e-12)


def test_with_god_it_is_the_regulators() -> None:
    one = published("testbed")
    found = localized(one.model, 1.0, god(one.model), tolerance=1e-8)
    assert found.bound <= 234.883517e12 * (1.0 + 1e-8)
    assert found.cost == pytest.approx(234.883517e12, rel=1e-8)


def test_two_workers_find_the_same() -> None:
    pods = sp.block_diag([line(6).model.coupling] * 60, format="csr")
    N = pods.shape[0]
    model = NetworkModel(0.01, np.ones(N, int), pods, sp.eye_array(N, format="csr")[:, ::6], np.ones(N // 6))
    pattern = InformationPattern.from_lines(np.arange(N), [(i, i + 1, 1) for i in range(N - 1)], N)
    one, two = (localized(model, 1.0, pattern, n_jobs=jobs) for jobs in (1, 2))
    assert (two.cost, two.bound) == (one.cost, one.bound)
