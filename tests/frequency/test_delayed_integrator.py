"""A delayed integrator: closed forms against poles of the matrix, and against the general machinery."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.frequency.delayed_integrator import gain_limit, integrator_margins
from netctrl.frequency.hinf_norm import discrete_disk_margin
from netctrl.model.statespace import StateSpace

GAINS = st.floats(0.01, 0.99)
DELAYS = st.integers(0, 12)


def loop(k: float, tau: int, predicts: bool, plant_gain: float = 1.0, taken: int | None = None) -> StateSpace:
    """S − T of x⁺ = x + f (v + w)(k − τ), states x and the last v; the predictor takes the delay for `taken`."""
    known = tau if taken is None else taken
    size = max(tau, known)
    row = np.zeros(1 + size)
    row[0] = -k
    if predicts:
        row[1 : 1 + known] = -k
    A = np.zeros((1 + size, 1 + size))
    A[0, 0] = 1.0
    applied = row if tau == 0 else np.eye(1 + size)[tau]
    A[0] += plant_gain * applied
    if size:
        A[1] = row
        A[2:, 1:-1] += np.eye(size - 1)
    B = plant_gain * np.eye(1 + size)[:, [0]]
    return StateSpace(A, B, 2.0 * applied[None], np.eye(1), 1.0)


def radius(system: StateSpace) -> float:
    return float(np.abs(np.linalg.eigvals(system.A)).max())


@given(GAINS, DELAYS, st.booleans())
def test_poles_and_disc_margin_are_those_of_the_matrices(share, tau, predicts):
    k = share if predicts else share * gain_limit(tau)
    found, system = integrator_margins(k, tau, predicts=predicts), loop(k, tau, predicts)
    # Where tau poles are zero, eigvals moves these by eps^(1/tau), up to 0.05, and a pole z by some eps/|z|^tau, which
    # is 1e-8 at 0.25, but 1e-5 at 0.1.
    assert max(found.spectral_radius, 0.25) == pytest.approx(max(radius(system), 0.25), abs=1e-7)
    assert found.disc_alpha == pytest.approx(discrete_disk_margin(system).alpha, rel=1e-5)


@given(GAINS, DELAYS, st.booleans())
def test_the_gain_margin_is_where_a_pole_is_on_the_circle(share, tau, predicts):
    k = share if predicts else share * gain_limit(tau)
    margin = integrator_margins(k, tau, predicts=predicts).gain_margin
    assert radius(loop(k, tau, predicts, 0.999 * margin)) < 1.0 + 1e-12
    assert radius(loop(k, tau, predicts, 1.001 * margin)) > 1.0 - 1e-12


@given(GAINS, st.integers(0, 12))
def test_the_predictor_stands_twice_the_gain_at_any_delay(k, tau):
    found = integrator_margins(k, tau, predicts=True)
    assert found.gain_margin >= 2.0
    assert found.disc_alpha >= 2.0 / 3.0 - 1e-12
    assert found.spectral_radius < 1.0


@given(GAINS, st.integers(0, 8))
def test_delays_within_the_margin_leave_the_loop_stable(share, tau):
    more = integrator_margins(share, tau, predicts=True).delay_margin
    for delta in range(-min(more, tau), min(more, 12) + 1):
        assert radius(loop(share, tau + delta, True, taken=tau)) < 1.0 + 1e-9
    k = share * gain_limit(tau)
    longer = tau + integrator_margins(k, tau, predicts=False).delay_margin
    assert k < gain_limit(longer)
    assert k >= gain_limit(longer + 1)


def test_known_limits():
    """1 without delay would be deadbeat; k < 2, 1, 2 sin 18° = 0.618 for τ = 0, 1, 2; π/(2τ) for long delays."""
    assert [gain_limit(tau) for tau in (0, 1, 2)] == pytest.approx([2.0, 1.0, (5.0**0.5 - 1.0) / 2.0])
    assert gain_limit(10_000) == pytest.approx(np.pi / 20_000.0, rel=1e-4)
    deadbeat = integrator_margins(1.0, 0, predicts=False)
    assert (deadbeat.spectral_radius, deadbeat.gain_margin) == pytest.approx((0.0, 2.0))
    assert integrator_margins(1.0, 3, predicts=False).disc_alpha == 0.0


@pytest.mark.parametrize("share", [1e-3, 0.05, 0.3, 0.7, 0.99, 1.01, 3.0])
def test_long_delays_have_the_dominant_pole_of_the_short_ones_method(share):
    k = share * gain_limit(201)
    dense = np.abs(np.roots([1.0, -1.0, *[0.0] * 200, k])).max()
    assert integrator_margins(k, 201, predicts=False).spectral_radius == pytest.approx(dense, abs=1e-10)


@pytest.mark.parametrize(
    ("gain", "delay", "predicts"), [(0.0, 1, False), (1.5, 1, True), (0.5, -1, True), (0.5, 1.5, True)]
)
def test_what_is_no_loop_is_named(gain, delay, predicts):
    with pytest.raises(InvalidValue, match=r"gain|delay"):
        integrator_margins(gain, delay, predicts=predicts)
