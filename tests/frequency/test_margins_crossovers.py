"""Margins of loops with several gain crossovers: which of them decides is another one for phase and for delay."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.polynomial import polynomial

from netctrl.frequency.margins import margins
from netctrl.model.loop import DelayLoop

# Nearest to the negative real axis at its first crossover (81° at 0.046 rad/s), a thousand times faster at its last.
SEVERAL = DelayLoop(gain=0.05, delay=0.0, integrators=1, leads=(2.0, 2.0, 2.0), lags=(10.0, 0.02, 0.02))
# Below 1 at rest, above it between two frequencies.
HUMP = DelayLoop(gain=0.5, delay=0.0, integrators=0, leads=(1.0,), lags=(0.1, 0.1))


def crossovers(loop: DelayLoop) -> np.ndarray:
    """Real roots of |N(jw)|² = |D(jw)|², polynomials in w²."""

    def squared(times: tuple[float, ...]) -> np.ndarray:
        product = np.ones(1)
        for each in times:
            product = polynomial.polymul(product, [1.0, each**2])
        return product

    over = loop.gain**2 * squared(loop.leads)
    under = polynomial.polymul(squared(loop.lags), [0.0] * loop.integrators + [1.0])
    roots = polynomial.polyroots(polynomial.polysub(under, over))
    real = roots[(np.abs(roots.imag) < 1e-9 * np.abs(roots)) & (roots.real > 0.0)].real
    return np.sqrt(np.sort(real))


def lag(loop: DelayLoop, w: float) -> float:
    """Of L(jw), summed over its factors [rad]."""
    lags = loop.integrators * 0.5 * math.pi + sum(math.atan(w * T) for T in loop.lags)
    return lags - sum(math.atan(w * z) for z in loop.leads) + w * loop.delay


def longest_delays(loop: DelayLoop) -> list[float]:
    """At each crossover, the delay that brings the loop there to −1."""
    return [(math.pi - lag(loop, w)) % (2.0 * math.pi) / w for w in crossovers(loop)]


@pytest.mark.parametrize(("loop", "count"), [(SEVERAL, 3), (HUMP, 2)], ids=["three", "two"])
def test_the_delay_margin_is_the_shortest_of_all_crossovers(loop: DelayLoop, count: int) -> None:
    found = margins(loop)
    delays = longest_delays(loop)
    assert len(delays) == count
    assert found.stable
    np.testing.assert_allclose(found.crossovers_rad_s, crossovers(loop), rtol=1e-9)
    assert found.delay_margin_s == pytest.approx(min(delays), rel=1e-9)


def test_the_crossover_with_the_least_phase_need_not_be_the_one_with_the_least_delay() -> None:
    found = margins(SEVERAL)
    first, last = found.crossovers_rad_s[0], found.crossovers_rad_s[-1]
    assert found.crossover_rad_s == first
    assert math.radians(found.phase_margin_deg) / first > 10.0 * found.delay_margin_s
    assert found.delay_margin_s == pytest.approx((math.pi - lag(SEVERAL, last)) / last, rel=1e-9)


@settings(max_examples=50)
@given(
    st.floats(0.05, 20.0),
    st.integers(0, 1),
    st.lists(st.floats(0.01, 30.0), max_size=2),
    st.lists(st.floats(0.01, 30.0), min_size=2, max_size=3),
)
def test_that_much_delay_is_the_limit(gain: float, integrators: int, leads: list[float], lags: list[float]) -> None:
    """Stability by the count of encirclements, on both sides of the margin."""
    assume(len(leads) < len(lags) + integrators)
    loop = DelayLoop(gain=gain, delay=0.0, integrators=integrators, leads=tuple(leads), lags=tuple(lags))
    found = margins(loop)
    assume(found.stable and math.isfinite(found.delay_margin_s) and found.delay_margin_s > 1e-9)
    delays = longest_delays(loop)
    assume(len(delays) == len(found.crossovers_rad_s))  # near a double root the polynomial's are less exact
    assert found.delay_margin_s == pytest.approx(min(delays), rel=1e-5)
    with_delay = {"gain": gain, "integrators": integrators, "leads": loop.leads, "lags": loop.lags}
    assert margins(DelayLoop(delay=0.999 * found.delay_margin_s, **with_delay)).stable
    assert not margins(DelayLoop(delay=1.001 * found.delay_margin_s, **with_delay)).stable
