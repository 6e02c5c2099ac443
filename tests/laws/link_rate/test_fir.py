"""Laws as taps, against what each law's docstring says, evaluated on histories drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.design.hftrac.design import hftrac
from netctrl.laws.link_rate import fir as module
from netctrl.laws.link_rate.fir import (
    ARRIVAL_INNOVATION,
    BACKLOG,
    BACKPRESSURE,
    LINEAR,
    RATE,
    SATURATION_ERROR,
    WORK_CONSERVING,
    FirLaw,
    backpressure_fir,
    fir_law,
    static_fir,
)
from netctrl.model.datasets import network_path
from netctrl.model.law import AgedColumns, AgedGain, FirColumns, FirGain, LinkRateLaw, MyopicGain, StaticGain
from netctrl.model.network import read_network
from netctrl.plants.linearize import network_model

TAU = 0.01
TOLERANCE = {
    "same": 1e-12,  # one sum, in another order
    "gone": 1e-10,  # responses of infinite length, cut where they have died out
    "rounding": 2.0**-53,
}
PAST = 2000
"""Samples of history."""

DELAY = np.array([0, 2, 1])
SHARE = np.array([[0.0, 0.0, 0.3], [0.7, 0.0, 0.0], [0.3, 1.0, 0.0]])  # c_lk: of what k sends, to l
NOMINAL = np.array([3e6, 5e6, 4e6])
EXPECTED = np.array([1e6, 2e6, 0.0])
ALL = np.ones(3, dtype=bool)
IDS = ("a", "b", "c")


def histories(seed: int, links: int = 3) -> np.ndarray:
    """(PAST, 4, links) rates and backlogs around 4 Mbit/s, surpluses and shortfalls around 0; the newest comes last."""
    drawn = np.random.default_rng(seed).normal(size=(PAST, 4, links)) * 1e6
    drawn[:, :2] += 4e6
    return drawn


def command(taps: FirLaw, past: np.ndarray) -> np.ndarray:
    """The sums that taps say, one by one."""
    u = taps.offset.copy()
    N = len(u)
    for link in range(N):
        for j in range(taps.start[link], taps.start[link + 1]):
            kind, of = divmod(int(taps.series[j]), N)
            u[link] += taps.coefficient[j] * past[-1 - taps.lag[j], kind, of]
    return u


def matrices(delay: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and where each link's rates start, by f_l(n + 1) = u_l(n) and
    b_l(n + 1) = b_l(n) + Σ_k c_lk f_k(n − n_k) − u_l(n)."""
    N, first = len(delay), np.concatenate([[0], np.cumsum(delay + 1)])
    n = first[-1] + N
    A, B = np.zeros((n, n)), np.zeros((n, N))
    for link in range(N):
        B[first[link], link], B[first[-1] + link, link] = 1.0, -1.0
        A[first[-1] + link, first[-1] + link] = 1.0
        for age in range(delay[link]):
            A[first[link] + age + 1, first[link] + age] = 1.0
        for k in range(N):
            A[first[-1] + link, first[k + 1] - 1] = share[link, k]
    return A, B, first


def state(past: np.ndarray, ago: int, delay: np.ndarray, nominal: np.ndarray, backlog_setpoint: float) -> np.ndarray:
    """x(n − ago): f_l(n − ago), ..., f_l(n − ago − n_l) of each link, then the backlogs, as deviations."""
    now = len(past) - 1 - ago
    rates = [
        past[now - age, RATE, link] - nominal[link] for link in range(len(delay)) for age in range(delay[link] + 1)
    ]
    return np.concatenate([rates, past[now, BACKLOG] - backlog_setpoint])


def static_law(gain: np.ndarray, d: int = 0) -> StaticGain:
    return StaticGain(interval_s=TAU, links=IDS, delay=DELAY, gain=gain, information_delay=d)


def made(law: LinkRateLaw, paced: np.ndarray = ALL, backlog_setpoint: float = 0.0) -> FirLaw:
    return fir_law(law, sp.csr_array(SHARE), NOMINAL, EXPECTED, paced, backlog_setpoint)


def rows(taps: FirLaw, link: int) -> list[tuple[int, int, float]]:
    """(series, lag, coefficient) of one link."""
    part = slice(taps.start[link], taps.start[link + 1])
    return list(zip(taps.series[part].tolist(), taps.lag[part].tolist(), taps.coefficient[part].tolist(), strict=True))


# --- StaticGain -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(0, 4), st.sampled_from([0.0, 7e6]))
@settings(max_examples=15)
def test_a_static_gain_predicts_from_the_rates_that_were_sent(seed: int, d: int, backlog_setpoint: float) -> None:
    """x̂ = A^d x(n − d) + Σ_{i<d} A^i B v(n − 1 − i), v(n − 1 − i) = f(n − i), step by step."""
    A, B, first = matrices(DELAY, SHARE)
    K = np.random.default_rng(seed).normal(size=(3, len(A)))
    past = histories(seed)
    x = state(past, d, DELAY, NOMINAL, backlog_setpoint)
    for i in reversed(range(d)):
        x = A @ x + B @ (past[-1 - i, RATE] - NOMINAL)
    taps = made(static_law(K, d), backlog_setpoint=backlog_setpoint)
    np.testing.assert_allclose(command(taps, past), NOMINAL + K @ x, rtol=0.0, atol=TOLERANCE["same"] * 1e9)
    assert taps.memory == d + DELAY.max()
    assert (taps.series < 2 * 3).all()
    assert first[-1] + 3 == len(A)


def test_without_delay_a_static_gain_has_a_tap_for_each_entry() -> None:
    K = np.arange(1.0, 28.0).reshape(3, 9)  # states: f_a, f_b(n), f_b(n − 1), f_b(n − 2), f_c(n), f_c(n − 1), b
    found = rows(made(static_law(K)), 1)
    rates = [(0, 0, 10.0), (1, 0, 11.0), (1, 1, 12.0), (1, 2, 13.0), (2, 0, 14.0), (2, 1, 15.0)]
    assert found == [*rates, (3, 0, 16.0), (4, 0, 17.0), (5, 0, 18.0)]


def test_a_sparse_gain_loses_its_zeros_and_rounding_alone() -> None:
    """What is left out of a row is less, all together, than rounding of its greatest entry."""
    random = np.random.default_rng(1)
    K = random.normal(size=(3, 9))
    K[:, ::2] = 0.0
    K[0, 1:6:2] = 1e-18, -1e-19, 1e-15
    K[1] *= 1e-30  # a row that is small altogether
    K[2] = 0.0
    taps = made(static_law(K))
    kept = np.zeros_like(K)
    states = [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (3, 0), (4, 0), (5, 0)]
    for link in range(3):
        for series, lag, value in rows(taps, link):
            kept[link, states.index((series, lag))] = value
    lost = np.abs(K - kept).sum(axis=1)
    assert (lost <= TOLERANCE["rounding"] * np.abs(K).max(axis=1)).all()
    assert np.diff(taps.start).tolist() == [2, 4, 0]
    np.testing.assert_array_equal(kept[kept != 0.0], K[kept != 0.0])
    assert taps.offset[2] == NOMINAL[2]  # it sends at its nominal rate whatever is


def test_predictions_of_a_sparse_gain_stay_sparse() -> None:
    """Of a link that knows only its own backlog, d samples late: its own rates since, and what came along the lines."""
    K = np.zeros((3, 9))
    K[0, 6] = 0.5
    series = {each[:2] for each in rows(made(static_law(K, 2)), 0)}
    assert series == {(RATE * 3 + 0, 0), (RATE * 3 + 0, 1), (RATE * 3 + 2, 2), (RATE * 3 + 2, 3), (BACKLOG * 3 + 0, 2)}


# --- MyopicGain, FirGain, AgedGain -----------------------------------------------------------------------------------


def test_a_myopic_gain_is_of_a_links_own_backlog_and_rate() -> None:
    k, g = np.array([0.5, 0.25, 0.75]), np.array([0.1, 0.0, -0.3])
    law = MyopicGain(interval_s=TAU, links=IDS, delay=DELAY, backlog_gain=k, rate_gain=g)
    past = histories(3)
    taps = made(law, backlog_setpoint=2e6)
    expected = NOMINAL + k * (past[-1, BACKLOG] - 2e6) + g * (past[-1, RATE] - NOMINAL)
    np.testing.assert_allclose(command(taps, past), expected, rtol=TOLERANCE["same"])
    assert taps.memory == 0
    assert not taps.alone


def fir(seed: int, regions: tuple[tuple[int, ...], ...]) -> FirGain:
    """Columns drawn at random: as taps need no equation of them."""
    random = np.random.default_rng(seed)
    columns = []
    for e, links in enumerate(regions):
        shape = (DELAY[e] + 2, len(links), 3 + 2 * e)
        columns.append(FirColumns(links=np.array(links), u=random.normal(size=shape), b=random.normal(size=shape)))
    return FirGain(interval_s=TAU, links=IDS, delay=DELAY, columns=tuple(columns))


@pytest.mark.parametrize("seed", range(3))
def test_a_finite_response_answers_what_was_unforeseen(seed: int) -> None:
    """u(n) = Σ_t M(t + 1) δ(n − t), the matrices whole: δ has p + s in a link's backlog, −s in its newest rate."""
    law, past = fir(seed, ((0, 2), (1, 0, 2), (2,))), histories(seed)
    _, _, first = matrices(DELAY, SHARE)
    n, T = first[-1] + 3, max(column.u.shape[2] for column in law.columns)
    M = np.zeros((T, 3, n))
    for e, column in enumerate(law.columns):
        for j, where in enumerate([first[-1] + e, *range(first[e], first[e + 1])]):
            M[: column.u.shape[2], column.links, where] = column.u[j].T
    u = NOMINAL.copy()
    for t in range(T):
        delta = np.zeros(n)
        delta[first[-1] :] = past[-1 - t, ARRIVAL_INNOVATION] + past[-1 - t, SATURATION_ERROR]
        delta[first[:-1]] = -past[-1 - t, SATURATION_ERROR]
        u += M[t] @ delta
    taps = made(law)
    np.testing.assert_allclose(command(taps, past), u, rtol=TOLERANCE["same"])
    np.testing.assert_array_equal(taps.offset, NOMINAL)
    np.testing.assert_array_equal(taps.expected, EXPECTED)
    assert not taps.alone
    assert taps.memory == T - 1


def test_who_knows_nothing_of_the_others_foresees_the_nominal_rate() -> None:
    taps = made(fir(0, ((0,), (1,), (2,))))
    assert taps.alone
    np.testing.assert_array_equal(taps.expected, NOMINAL)
    for link in range(3):
        assert {series % 3 for series, _, _ in rows(taps, link)} == {link}


def test_responses_that_are_zero_have_no_taps() -> None:
    columns = tuple(
        FirColumns(links=np.array([e]), u=np.zeros((DELAY[e] + 2, 1, 4)), b=np.zeros((DELAY[e] + 2, 1, 4)))
        for e in range(3)
    )
    taps = made(FirGain(interval_s=TAU, links=IDS, delay=DELAY, columns=columns))
    assert len(taps.series) == taps.memory == 0
    assert taps.start.tolist() == [0, 0, 0, 0]


@cache
def exact(name: str, communication: str, mu: float = 1.0) -> tuple[AgedGain, sp.csr_array]:
    network = read_network(network_path(name))
    law = hftrac(network, TAU, mu=mu, communication=communication, horizon="exact").law
    assert isinstance(law, AgedGain)
    return law, network_model(network, TAU).coupling


def followed(law: AgedGain, share: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """u of disturbances that are each followed by themselves, by age; `kinds` is (T, 2, N), p and s of each time."""
    A, B, first = matrices(law.delay, share)
    N = len(law.links)
    u = np.zeros(N)
    for e, column in enumerate(law.columns):
        states = np.concatenate([*(np.arange(first[k], first[k + 1]) for k in column.links), first[-1] + column.links])
        made = np.zeros((2, len(A)))  # of a surplus and of a shortfall of 1
        made[:, first[-1] + e] = 1.0
        made[1, first[e]] = -1.0
        for age in range(len(kinds)):
            F = np.zeros((N, len(A)))
            F[np.ix_(column.links, states)] = column.gains[min(age, len(column.gains) - 1)]
            moves = made @ F.T
            u += kinds[-1 - age, :, e] @ moves
            made = made @ A.T + moves @ B.T
    return u


@pytest.mark.parametrize(
    ("name", "communication"), [("merge", "in-band"), ("testbed", "in-band"), ("tandem", "in-band")]
)
def test_disturbances_that_do_not_end_alike_are_answered_by_responses(name: str, communication: str) -> None:
    law, coupling = exact(name, communication)
    N = len(law.links)
    nominal = np.full(N, 1e6)
    past = histories(5, N)
    taps = fir_law(law, coupling, nominal, nominal, np.ones(N, dtype=bool), 3e6)
    expected = nominal + followed(law, coupling.toarray(), past[-400:, ARRIVAL_INNOVATION:])
    np.testing.assert_allclose(command(taps, past), expected, rtol=0.0, atol=TOLERANCE["gone"] * 1e6)
    assert (taps.series >= 2 * N).all()
    np.testing.assert_array_equal(taps.offset, nominal)


@pytest.mark.parametrize("name", ["tandem", "merge", "testbed"])
def test_disturbances_that_end_alike_are_answered_by_the_state_that_they_make(name: str) -> None:
    """In a past that the plant could have had: rates and backlogs come of surpluses and shortfalls and of the law."""
    law, coupling = exact(name, "out-of-band")
    A, B, first = matrices(law.delay, coupling.toarray())
    N, backlog_setpoint = len(law.links), 3e6
    nominal = np.linspace(1e6, 2e6, N)
    taps = fir_law(law, coupling, nominal, nominal, np.ones(N, dtype=bool), backlog_setpoint)
    assert {len(column.links) for column in law.columns} == {N}
    random = np.random.default_rng(9)
    steps = 60
    kinds, x, u = random.normal(size=(steps, 2, N)) * 1e6, np.zeros(len(A)), np.zeros(N)
    past = np.zeros((PAST, 4, N))
    past[:, RATE], past[:, BACKLOG] = nominal, backlog_setpoint
    for p, s in kinds:
        x = A @ x + B @ u
        x[first[-1] :] += p + s
        x[first[:-1]] -= s
        u = followed(law, coupling.toarray(), kinds[: len(past) - PAST + 1])
        now = np.array([nominal + x[first[:-1]], backlog_setpoint + x[first[-1] :], p, s])
        past = np.concatenate([past, now[None]])
    np.testing.assert_allclose(command(taps, past), nominal + u, rtol=0.0, atol=TOLERANCE["gone"] * 1e6)
    young = max(len(column.gains) for column in law.columns) - 1
    assert taps.lag[taps.series >= 2 * N].max(initial=-1) < young


def test_an_exact_law_of_one_age_is_its_last_gain() -> None:
    """Where all know all at once there is nothing to follow."""
    K = np.random.default_rng(2).normal(size=(3, 9))
    columns = tuple(AgedColumns(links=np.arange(3), gains=(K,)) for _ in range(3))
    law = AgedGain(interval_s=TAU, links=IDS, delay=DELAY, columns=columns)
    for aged, static in zip(
        made(law, backlog_setpoint=1e6)[:6], made(static_law(K), backlog_setpoint=1e6)[:6], strict=True
    ):
        np.testing.assert_array_equal(aged, static)


# --- what all laws have ----------------------------------------------------------------------------------------------


LAWS: dict[str, Callable[[], LinkRateLaw]] = {
    "static": lambda: static_law(np.random.default_rng(0).normal(size=(3, 9)), 2),
    "fir": lambda: fir(0, ((0, 2), (1,), (2,))),
    "myopic": lambda: MyopicGain(
        interval_s=TAU, links=IDS, delay=DELAY, backlog_gain=np.full(3, 0.5), rate_gain=np.full(3, 0.25)
    ),
}


@pytest.mark.parametrize("kind", LAWS)
def test_at_rest_every_law_sends_the_rates_that_it_controls_around(kind: str) -> None:
    past = np.zeros((PAST, 4, 3))
    past[:, RATE], past[:, BACKLOG] = NOMINAL, 5e6
    taps = made(LAWS[kind](), backlog_setpoint=5e6)
    np.testing.assert_allclose(command(taps, past), NOMINAL, rtol=TOLERANCE["same"])


@pytest.mark.parametrize("kind", LAWS)
def test_links_stand_one_after_the_other_and_say_whether_they_are_paced(kind: str) -> None:
    taps = made(LAWS[kind](), paced=np.array([True, False, True]))
    assert taps.mode.tolist() == [LINEAR, WORK_CONSERVING, LINEAR]
    assert taps.start[0] == 0
    assert taps.start[-1] == len(taps.series) == len(taps.lag) == len(taps.coefficient)
    for link in range(3):
        places = [each[:2] for each in rows(taps, link)]
        assert places == sorted(set(places))
    assert taps.memory == taps.lag.max()
    other = made(LAWS[kind]())  # what others obey doesn't change what is commanded
    np.testing.assert_array_equal(other.coefficient, taps.coefficient)


@pytest.mark.parametrize("kind", [*LAWS, "aged"])
def test_laws_of_too_many_numbers_are_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_TAPS", 5)
    with pytest.raises(InvalidValue, match=r"^law: got '\d+ or more', takes .* at most 5 numbers .* larger mu"):
        if kind == "aged":
            law, coupling = exact("testbed", "in-band")
            fir_law(law, coupling, np.full(5, 1e6), np.full(5, 1e6), np.ones(5, dtype=bool))
        else:
            made(LAWS[kind]())


def test_responses_that_never_die_out_are_refused_before_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gains of 0: a disturbance stays for ever."""
    monkeypatch.setattr(module, "_MAX_TAPS", 3000)
    columns = tuple(AgedColumns(links=np.array([e]), gains=(np.zeros((1, DELAY[e] + 2)),)) for e in range(3))
    law = AgedGain(interval_s=TAU, links=IDS, delay=DELAY, columns=columns)
    with pytest.raises(InvalidValue, match=r"^law: got '3001 or more'"):
        made(law)


# --- the peers --------------------------------------------------------------------------------------------------------


def test_rates_that_never_change_have_no_taps() -> None:
    taps = static_fir(1.1 * NOMINAL, np.array([True, False, True]))
    np.testing.assert_array_equal(command(taps, histories(0)), 1.1 * NOMINAL)
    assert taps.mode.tolist() == [LINEAR, WORK_CONSERVING, LINEAR]
    assert len(taps.series) == taps.memory == 0
    fifo = static_fir(NOMINAL, ~ALL)
    assert fifo.mode.tolist() == [WORK_CONSERVING] * 3


def test_backpressure_looks_at_what_waits_downstream_a_propagation_ago() -> None:
    past = histories(4)
    taps = backpressure_fir(DELAY, sp.csr_array(SHARE))
    expected = [sum(SHARE[k, link] * past[-1 - DELAY[link], BACKLOG, k] for k in range(3)) for link in range(3)]
    np.testing.assert_allclose(command(taps, past), expected, rtol=TOLERANCE["same"])
    assert taps.mode.tolist() == [BACKPRESSURE] * 3
    assert taps.memory == 2
    last = backpressure_fir(DELAY[:1], sp.csr_array((1, 1)))  # nothing is downstream
    assert command(last, histories(4, 1)).tolist() == [0.0]
