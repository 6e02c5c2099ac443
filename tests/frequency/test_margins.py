"""Margins with exact delay, against published numbers, a Nyquist count, the delay equation itself and its laws."""

from __future__ import annotations

import math

import control
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from quasi_roots import rightmost

from netctrl.core.errors import InvalidValue
from netctrl.frequency.certified.interchange import open_loop
from netctrl.frequency.loop import response, to_control
from netctrl.frequency.margins import gain_band, margins
from netctrl.frequency.records import factor
from netctrl.model.design.arc import ArcSetting
from netctrl.model.loop import DelayLoop
from netctrl.plants.linearize import arc_loop, linear_tcp

A = ArcSetting(capacity_packet_per_s=1250.0, utilization=0.98)
B = ArcSetting(capacity_packet_per_s=1000.0, utilization=0.95)
INPUT_A = arc_loop(50.0, 0.5, A, "paper")
INPUT_B = arc_loop(35.0, 0.1, B, "paper")
FRAGILE = arc_loop(10.0, 2.0, A, "paper")

CONDITIONAL = DelayLoop(gain=1.0, delay=0.01, integrators=1, leads=(1.0, 1.0), lags=(100.0, 100.0))


def nyquist_count(loop: DelayLoop) -> int:
    """Closed-loop poles in the right half plane, by the argument of 1 + L along an indented contour."""
    small, large = 1e-7, 1e7
    w = np.geomspace(small, large, 600_001)
    arc = small * np.exp(1j * np.linspace(0.0, np.pi / 2.0, 2_001))  # from +small to +i small, around the origin
    s = np.concatenate([arc, 1j * w[1:]])
    L = loop.gain * np.exp(-s * loop.delay) / s**loop.integrators
    for T in loop.lags:
        L = L / (1.0 + T * s)
    for z in loop.leads:
        L = L * (1.0 + z * s)
    turned = np.unwrap(np.angle(1.0 + L))
    return -round((turned[-1] - turned[0]) / np.pi)


class TestPublishedNumbers:
    """Reference numbers of inputs A and B and of the fragile point, found apart from this code by Nyquist counts,
    pseudospectral roots and simulation."""

    def test_tcp_of_input_a(self) -> None:
        found = linear_tcp(50.0, 0.5, 0.98 * 1250.0)
        assert found.time_constant == pytest.approx(3.0625, rel=1e-12)
        assert found.gain == pytest.approx(22978.320, rel=1e-7)

    @pytest.mark.parametrize(
        ("loop", "low", "high", "limit", "binding", "crossover"),
        [
            (INPUT_A, 3.4719719e-6, 1.0656343e-5, 3.2242897e-5, "phase margin", 0.6417222),
            (INPUT_B, 5.711562e-3, 1.341562e-2, 2.676768e-2, "gain margin", 6.220223),
            (FRAGILE, 3.6638354e-11, 1.7926518e-10, 4.6180084e-9, "phase margin", None),
        ],
        ids=["A", "B", "fragile"],
    )
    def test_bands(
        self, loop: DelayLoop, low: float, high: float, limit: float, binding: str, crossover: float | None
    ) -> None:
        band = gain_band(loop)
        assert (band.low, band.high, band.limit) == pytest.approx((low, high, limit), rel=1e-6)
        assert band.binding == binding
        if crossover is not None:
            assert margins(loop).phase_crossover_rad_s == pytest.approx(crossover, rel=1e-6)

    def test_input_a_at_45_degrees(self) -> None:
        assert gain_band(INPUT_A, 0.0, (45.0, 90.0)).high == pytest.approx(6.21712e-6, rel=1e-6)

    def test_the_papers_gain_at_input_a_misses_its_own_30_degrees(self) -> None:
        found = margins(INPUT_A.scaled(1.42e-5))
        assert found.gain_margin_db == pytest.approx(7.122914, abs=1e-6)
        assert found.phase_margin_deg == pytest.approx(22.04231, abs=1e-5)
        assert found.crossover_rad_s == pytest.approx(0.4016284, rel=1e-6)
        assert found.stable
        needs = [n for n in np.arange(50.0, 60.0, 0.01) if gain_band(arc_loop(n, 0.5, A, "paper")).high >= 1.42e-5]
        assert needs[0] == pytest.approx(56.07, abs=0.02)

    def test_validation_setting_read_as_per_cent(self) -> None:
        found = margins(INPUT_B.scaled(1.12e-3 / 0.2))
        assert found.gain_margin_db == pytest.approx(13.588, abs=1e-3)
        assert found.phase_margin_deg == pytest.approx(60.53, abs=1e-2)

    def test_fragile_point(self) -> None:
        found = margins(FRAGILE.scaled(1.42e-5))
        assert found.gain_margin_db == pytest.approx(-69.757, abs=1e-3)
        assert not found.stable


@pytest.mark.parametrize("loop", [INPUT_A, INPUT_B, FRAGILE], ids=["A", "B", "fragile"])
class TestTheLimitByIndependentMethods:
    def test_nyquist_count(self, loop: DelayLoop) -> None:
        limit = gain_band(loop).limit
        assert nyquist_count(loop.scaled(0.999 * limit)) == 0
        assert nyquist_count(loop.scaled(1.001 * limit)) == 2

    def test_rightmost_root_is_on_the_axis(self, loop: DelayLoop) -> None:
        w, plant, limit = margins(loop).phase_crossover_rad_s, open_loop(loop), gain_band(loop).limit
        assert abs(rightmost(plant, limit)) < 1e-8 * w


@pytest.mark.parametrize("gain", [1e-3, 1.0, 30.0, 3e3, 1e5, 3e6])
def test_unstable_poles_of_a_conditionally_stable_loop(gain: float) -> None:
    loop = CONDITIONAL.scaled(gain)
    found = margins(loop)
    assert found.unstable_poles == nyquist_count(loop)
    assert found.stable == (found.unstable_poles == 0)


def test_a_conditionally_stable_loop_has_a_margin_both_ways() -> None:
    stable = [k for k in np.geomspace(1e-3, 1e7, 60) if margins(CONDITIONAL.scaled(k)).stable]
    unstable = [k for k in np.geomspace(1e-3, 1e7, 60) if not margins(CONDITIONAL.scaled(k)).stable]
    island = [k for k in stable if any(u < k for u in unstable)]
    assert island, "the loop must be stable again at a higher gain"
    found = margins(CONDITIONAL.scaled(island[len(island) // 2]))
    assert found.gain_margin_db > 0.0 > found.gain_reduction_db > -math.inf
    for db, sign in ((found.gain_margin_db, 1.0), (found.gain_reduction_db, -1.0)):
        edge = CONDITIONAL.scaled(island[len(island) // 2] * factor(db))
        assert margins(edge.scaled(factor(-sign * 0.01))).stable
        assert not margins(edge.scaled(factor(sign * 0.01))).stable


def test_two_integrators_need_lead_against_delay() -> None:
    lagging = DelayLoop(gain=0.01, delay=1.0, integrators=2, leads=(0.9,), lags=(1e-3,))
    leading = DelayLoop(gain=0.01, delay=1.0, integrators=2, leads=(3.0,), lags=(1e-3,))
    assert margins(lagging).unstable_poles == nyquist_count(lagging) == 2
    assert margins(leading).unstable_poles == nyquist_count(leading) == 0


def test_no_gain_is_small_enough_for_two_integrators_with_delay() -> None:
    found = margins(DelayLoop(gain=1.0, delay=1.0, integrators=2, leads=(), lags=()))
    assert (found.stable, found.unstable_poles, found.gain_margin_db) == (False, 2, -math.inf)


def test_a_far_too_great_gain_is_counted_without_listing_every_crossing() -> None:
    found = margins(INPUT_A.scaled(1e12))
    assert len(found.phase_crossovers_rad_s) == 1
    assert found.gain_margin_db == pytest.approx(margins(INPUT_A).gain_margin_db - 240.0)
    assert found.unstable_poles > 1000


def test_without_crossings_margins_are_unlimited() -> None:
    found = margins(DelayLoop(gain=0.5, delay=0.0, integrators=0, leads=(), lags=(1.0,)))
    assert found.stable
    assert found.gain_margin_db == found.phase_margin_deg == found.delay_margin_s == math.inf
    assert math.isnan(found.crossover_rad_s)
    assert found.crossovers_rad_s == ()


LOOPS = st.builds(
    DelayLoop,
    gain=st.floats(-1.5, 1.0).map(lambda x: 10.0**x),
    delay=st.floats(0.05, 1.0),
    integrators=st.just(1),
    leads=st.one_of(st.just(()), st.tuples(st.floats(0.05, 3.0))),
    lags=st.tuples(st.floats(0.1, 5.0), st.floats(0.1, 5.0)),
)


@given(LOOPS)
@settings(max_examples=60)
def test_agrees_with_python_control_on_a_pade_5_model(loop: DelayLoop) -> None:
    found = margins(loop)
    gain_margin, phase_margin, phase_crossover, crossover = control.margin(to_control(loop, 5))
    if found.crossover_rad_s * loop.delay < 2.0:  # where Padé of order 5 is good
        assert found.crossover_rad_s == pytest.approx(crossover, rel=1e-6)
        wrapped = (found.phase_margin_deg + 180.0) % 360.0 - 180.0
        assert wrapped == pytest.approx(phase_margin, abs=1e-2)
    # Of an unstable loop python-control takes the crossing nearest to 0 dB, not the one that the gain must fall below.
    if found.stable and len(found.phase_crossovers_rad_s) == 1 and found.phase_crossover_rad_s * loop.delay < 2.0:
        assert found.phase_crossover_rad_s == pytest.approx(phase_crossover, rel=1e-4)
        assert factor(found.gain_margin_db) == pytest.approx(gain_margin, rel=1e-4)


@pytest.mark.slow
@given(LOOPS)
@settings(max_examples=40)
def test_stability_is_nyquists(loop: DelayLoop) -> None:
    found = margins(loop)
    if abs(found.gain_margin_db) > 0.01:
        assert found.unstable_poles == nyquist_count(loop)


@given(LOOPS)
def test_the_margins_are_what_reaches_the_limit(loop: DelayLoop) -> None:
    found = margins(loop)
    if not found.stable:
        return
    w = found.phase_crossover_rad_s
    at_limit = response(loop.scaled(factor(found.gain_margin_db)), w)
    assert at_limit == pytest.approx(-1.0, abs=1e-9)
    later = replace(loop, delay=loop.delay + found.delay_margin_s)
    assert response(later, found.crossover_rad_s) == pytest.approx(-1.0, abs=1e-9)


@given(LOOPS)
def test_every_gain_inside_the_band_meets_the_rule_and_none_just_outside(loop: DelayLoop) -> None:
    band = gain_band(loop)

    def meets(gain: float) -> bool:
        found = margins(loop.scaled(gain))
        return found.gain_margin_db >= 6.0 and 30.0 <= found.phase_margin_deg <= 60.0

    for low, high in band.intervals:
        assert low <= high < band.limit * 10.0
        for part in (1e-6, 0.3, 0.7, 1.0 - 1e-6):
            assert meets(low + part * (high - low))
        if low > 0.0:
            assert not meets(low * (1.0 - 1e-6))
        assert not meets(high * (1.0 + 1e-6))
    grid = np.geomspace(band.limit * 1e-4, band.limit * 2.0, 80)
    for gain in grid:
        inside = any(low <= gain <= high for low, high in band.intervals)
        near = any(abs(gain / edge - 1.0) < 1e-6 for interval in band.intervals for edge in interval if edge)
        assert near or meets(gain) == inside


def test_a_rising_magnitude_is_refused_by_the_rule() -> None:
    with pytest.raises(InvalidValue, match="falls"):
        gain_band(DelayLoop(gain=1.0, delay=0.1, integrators=0, leads=(1.0,), lags=(0.1, 0.01)))


def test_at_the_limit_itself_no_margin_is_left() -> None:
    found = margins(INPUT_A.scaled(gain_band(INPUT_A).limit))
    assert found.gain_margin_db == pytest.approx(0.0, abs=1e-9)
    assert found.phase_margin_deg == pytest.approx(0.0, abs=1e-9)
