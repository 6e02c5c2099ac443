"""Discrete to continuous time: closed forms, SciPy's way back, delays, and what has no logarithm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag
from scipy.signal import cont2discrete

from netctrl import InvalidValue, StateSpace
from netctrl.ident.data.delays import chained
from netctrl.ident.families.continuous import to_continuous

NAMES = "ABCD"


def sampled(A, B, C, D, dt: float) -> StateSpace:
    return StateSpace(*cont2discrete((A, B, C, D), dt, method="zoh")[:4], dt)


@st.composite
def systems(draw) -> tuple[list[np.ndarray], float]:
    """Real and complex modes, stable or not, slower than half the sampling rate, in random coordinates."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    dt = draw(st.sampled_from([1e-3, 0.1, 2.0, 60.0]))
    modes = []
    for real in draw(st.lists(st.booleans(), min_size=1, max_size=3)):
        rate = draw(st.floats(-2.0, 0.2)) / dt
        turn = draw(st.floats(0.1, 2.8)) / dt
        modes.append(np.array([[rate]]) if real else np.array([[rate, turn], [-turn, rate]]))
    A = block_diag(*modes)
    n, m, p = len(A), *(int(k) for k in random.integers(1, 4, 2))
    Q = np.linalg.qr(random.standard_normal((n, n)))[0]
    unit = draw(st.sampled_from([1e-9, 1.0, 1e9]))
    shapes = ((n, m), (p, n), (p, m))
    B, C, D = (random.standard_normal(shape) for shape in shapes)
    return [Q @ A @ Q.T, unit * B / dt, C, unit * D], dt


@given(systems())
@settings(max_examples=25)
def test_there_and_back_gives_the_same_matrices(case) -> None:
    matrices, dt = case
    found, delays = to_continuous(sampled(*matrices, dt))
    assert found.dt == 0.0
    assert not delays.any()
    for name, wanted in zip(NAMES, matrices, strict=True):
        size = max(np.abs(wanted).max(), 1.0 / dt if name == "A" else 0.0)
        assert getattr(found, name) == pytest.approx(wanted, abs=1e-8 * size)


@given(systems(), st.lists(st.integers(0, 5), min_size=3, max_size=3), st.booleans())
@settings(max_examples=25)
def test_delays_of_inputs_are_told_and_taken_off_the_states(case, delays, direct) -> None:
    (A, B, C, D), dt = case
    D = D * direct
    late = tuple(delays[: B.shape[1]])
    plain = sampled(A, B, C, D, dt)
    random = np.random.default_rng(0)
    made = StateSpace(*chained(plain.A, plain.B, plain.C, plain.D, None, late)[:4], dt)
    # Rounding hides a chain of samples where the inputs' unit is far from the states', but for the chain's own zeros.
    turned = 1e-3 < np.linalg.norm(plain.B) < 1e3
    T = np.linalg.qr(random.standard_normal((made.n_states,) * 2))[0] if turned else np.eye(made.n_states)
    found, told = to_continuous(StateSpace(T @ made.A @ T.T, T @ made.B, made.C @ T.T, made.D, dt))
    assert told == pytest.approx(np.array(late) * dt)
    s = (1.0 + 1j * np.linspace(0.1, 3.0, 7)[:, None, None]) / dt
    wanted = response(StateSpace(A, B, C, D), s)
    assert found.n_states == len(A)
    assert np.abs(response(found, s) - wanted).max() <= 1e-6 * np.abs(wanted).max()


def response(plant: StateSpace, s: np.ndarray) -> np.ndarray:
    return plant.C @ np.linalg.solve(s * np.eye(plant.n_states) - plant.A, plant.B.astype(complex)) + plant.D


def test_an_integrator_and_a_double_one_keep_their_chain() -> None:
    found, _ = to_continuous(StateSpace([[1.0, 0.5], [0.0, 1.0]], [[0.125], [0.5]], [[1.0, 0.0]], dt=0.5))
    assert pytest.approx(np.array([[0.0, 1.0], [0.0, 0.0]]), abs=1e-12) == found.A
    assert pytest.approx(np.array([[0.0], [1.0]]), abs=1e-12) == found.B


def test_a_pure_delay_has_no_state_left() -> None:
    found, delays = to_continuous(StateSpace(np.eye(3, k=1), [[0], [0], [1]], [[2, 0, 0]], dt=0.1))
    assert (found.n_states, found.D.tolist(), delays.tolist()) == (0, [[2.0]], [pytest.approx(0.3)])


def test_an_input_without_effect_has_no_delay() -> None:
    found, delays = to_continuous(StateSpace([[0.5]], [[1.0, 0.0]], [[1.0]], dt=1.0))
    assert pytest.approx(np.array([[np.log(0.5)]])) == found.A
    assert pytest.approx(np.array([[2.0 * np.log(2.0), 0.0]])) == found.B
    assert delays.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (StateSpace([[-0.5]], [[1.0]], [[1.0]], dt=1.0), r"a pole at -0\.5.*lower order, or sample faster"),
        (StateSpace(np.eye(2, k=1), [[1.0], [1.0]], [[1.0, 0.5]], dt=1.0), "a pole at .*delays that all outputs share"),
        (StateSpace([[-0.5]], [[1.0]], [[1.0]]), "dt = 0', takes a discrete StateSpace"),
        ("plant", "got 'str'"),
    ],
)
def test_what_has_no_logarithm_is_refused(plant, said) -> None:
    with pytest.raises(InvalidValue, match=said):
        to_continuous(plant)
