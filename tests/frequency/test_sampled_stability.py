"""Gains between which a sampled loop is stable, also where it is unstable at lower ones."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from netctrl.frequency.branch_bound import Cover, Minimum, Sector
from netctrl.frequency.loop import illinois
from netctrl.frequency.margin_grid import gain_factors
from netctrl.frequency.sampled_gain import greatest_gain
from netctrl.frequency.sampled_margins import box_disk_margin, point_proofs, sampled_margins
from netctrl.frequency.sampled_stability import box_keeps, box_upper_gain, nearest_crossings, stable_gains
from netctrl.plants.queues.queue_laws import Averaged, SampledPi, WindowClass
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.window_response import RENO

LOOP = QueueLoop((WindowClass(RENO, power=2.0),), SampledPi(0.16, 3.2, 0.016, 0.015), 8333.0)


class Made:
    """A loop in samples, the same at every point."""

    epoch, rate = 1.0, 1e7

    def __init__(self, gain: float, lowest: float, lags: float, delay: float) -> None:
        self.gain, self.lowest, self.lags, self.delay = gain, lowest, lags, delay

    def at(self, theta, flows, rtt, extra=0.0, *, coarse: bool = False) -> np.ndarray:
        return self.gain * self.of(np.exp(1j * np.asarray(theta) + 0.0 * np.asarray(flows)))

    def placed(self, flows, rtt, *, coarse: bool = False):
        return SimpleNamespace(at=lambda theta, row: self.at(theta, flows[row], rtt[row]))

    def min_angle(self, flows, rtt, extra: float = 0.0) -> float:
        return self.lowest

    def sharp_angles(self, flows, rtt) -> np.ndarray:
        return np.empty((flows.size, 0))

    def slowest(self, flows: np.ndarray, rtt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full_like(flows, self.lags), np.full_like(flows, self.delay)


class Rational(Made):
    """A loop k (z - .9)²/((z - 1)(z - p)²), which with p near 1 is stable at small and at large gains only."""

    def __init__(self, gain: float, pole: float) -> None:
        super().__init__(gain, 1e-4 * (1.0 - pole), 3.0 / (1.0 - pole), 1.0)
        self.pole = pole

    def of(self, z: np.ndarray) -> np.ndarray:
        return (z - 0.9) ** 2 / ((z - 1.0) * (z - self.pole) ** 2)

    def unstable_poles(self) -> int:
        slow = np.polymul([1.0, 0.0], np.poly([self.pole - 1.0] * 2))  # in w = z - 1, whose small roots are exact
        w = np.roots(np.polyadd(slow, self.gain * np.poly([-0.1, -0.1])))
        return int((2.0 * w.real + np.abs(w) ** 2 > 0.0).sum())


def test_a_loop_without_other_limits_has_the_greatest_gain_of_all() -> None:
    found = stable_gains(LOOP, 100.0, 0.03)
    assert found.unstable_poles == 0
    assert found.lower == 0.0
    assert found.upper == pytest.approx(greatest_gain(LOOP, (100.0, 100.0), (0.03, 0.03), Sector()).found, rel=1e-9)


@pytest.mark.parametrize("pole", [0.99, 0.999])
def test_poles_are_counted_where_only_small_and_large_gains_are_stable(pole: float) -> None:
    gains = np.geomspace((1.0 - pole) ** 3, 5.0, 80)
    loops = [Rational(gain, pole) for gain in gains]
    found = [stable_gains(loop, 1.0, 1.0) for loop in loops]
    counted = [loop.unstable_poles() for loop in loops]
    assert [each.unstable_poles for each in found] == counted
    assert counted[0] == 0
    assert {0, 1, 2} == set(counted)
    assert any(n == 0 and each.lower > 0.0 for n, each in zip(counted, found, strict=True))
    factors = [gain_factors(loop, np.ones(2), np.ones(2))[1] for loop in loops]
    np.testing.assert_allclose(factors, [each.factor for each in found], rtol=1e-4)


@pytest.mark.parametrize("phases", [False, True])
def test_a_root_of_a_phase_is_found_and_not_its_jumps(phases: bool) -> None:
    # The phase of each passes 0 at ln theta = .3, half a turn at .3, and a zero of the function at .3, 1 rad away.
    curves = [lambda u: np.exp(8j * (u - 0.3)), lambda u: -np.exp(8j * (u - 0.3)), lambda u: (u - 0.3) * np.exp(1j)]
    asked = np.zeros(3, dtype=int)

    def off(u: np.ndarray, i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        np.add.at(asked, i, 1)
        value = np.array([curves[k](x) for k, x in zip(i, u, strict=True)])
        return np.angle(value), value

    low, high, three = np.full(3, 0.1), np.full(3, 0.52), np.arange(3)
    ends, complex_ends = zip(*(off(u, three) for u in (low, high)), strict=True)
    asked[:] = 0
    found, values = illinois(off, low, high, *ends, 60, 1e-13, complex_ends if phases else None)
    assert found[0] == pytest.approx(0.3, abs=1e-14)
    assert asked[0] < 10
    assert values[1].real < 0.0
    assert abs(values[2]) < 1e-5
    assert (asked[1:] < [10, 30]).all() == phases
    assert (asked[1:] > 40).all() == (not phases)


class Delayed(Made):
    """An integrator and 40 samples of delay, k z^-40/(z - 1): beyond its limit more and more poles are unstable."""

    def __init__(self, gain: float) -> None:
        super().__init__(gain, 1e-3, 41.0, 40.0)

    def of(self, z: np.ndarray) -> np.ndarray:
        return z**-40 / (z - 1.0)

    def unstable_poles(self) -> int:
        return int((np.abs(np.roots([1.0, -1.0, *[0.0] * 39, self.gain])) > 1.0).sum())


@pytest.mark.parametrize("factor", [1.1, 4.0, 30.0])
def test_of_an_unstable_loop_the_factor_leads_back_to_stability_past_other_crossings(factor: float) -> None:
    """The limit is 2 sin(pi/162) (a delayed integrator, by hand); larger gains have other crossings in between."""
    limit = 2.0 * np.sin(np.pi / 162.0)
    loop = Delayed(factor * limit)
    found = stable_gains(loop, 1.0, 1.0)
    assert found.unstable_poles == loop.unstable_poles() > 0
    assert found.factor == pytest.approx(1.0 / factor, rel=1e-9)
    assert gain_factors(loop, np.ones(2), np.ones(2))[0] == pytest.approx(1.0 / factor, rel=1e-4)
    at = Minimum(0.0, found.factor, np.array([np.pi, 0.0, 0.0, 0.0]), 0)
    margin = sampled_margins(loop, 1.0, 1.0, 1.0, at, stable=False).phase_margin_deg
    # |k/(z - 1)| = 1 at 2 asin(k/2): there the phase is -90 + half of that angle less 40 of it.
    angle = np.degrees(2.0 * np.arcsin(0.5 * factor * limit))
    assert margin == pytest.approx(180.0 - (90.0 + 40.5 * angle) % 360.0, abs=0.01)


@pytest.mark.slow
def test_a_proof_over_a_box_holds_at_its_points() -> None:
    flows, rtt = (60.0, 400.0), (0.01, 0.05)
    found = box_upper_gain(LOOP, flows, rtt, LOOP.starts(flows, rtt))
    rng = np.random.default_rng(3)
    inside = gain_factors(LOOP, np.exp(rng.uniform(*np.log(flows), 300)), np.exp(rng.uniform(*np.log(rtt), 300)))
    assert found.proved <= found.found <= inside.min() * (1.0 + 1e-4)
    assert found.proved >= 0.98 * found.found > 1.0
    assert box_keeps(LOOP, flows, rtt, 0.97 * found.proved, np.radians(5.0))
    assert not box_keeps(LOOP, flows, rtt, 1.03 * found.found, np.radians(5.0))
    assert not box_keeps(LOOP, flows, rtt, 0.97 * found.proved, np.radians(80.0))


def test_proofs_of_a_box_are_those_of_each_question() -> None:
    flows, rtt = (300.0, 400.0), (0.03, 0.05)
    starts, leaves = LOOP.starts(flows, rtt), []
    alone = box_upper_gain(LOOP, flows, rtt, starts, leaves)
    for factor, degrees in ((0.9 * alone.proved, 5.0), (1.03 * alone.found, 5.0), (0.9 * alone.proved, 80.0)):
        rule = factor, np.radians(degrees)
        kept = box_keeps(LOOP, flows, rtt, *rule, starts, Cover.of(leaves))
        assert kept == box_keeps(LOOP, flows, rtt, *rule, starts)
    assert not box_keeps(LOOP, flows, rtt, 1.01 * alone.found, np.radians(1.0), starts, Cover.of(leaves))


def test_a_proof_up_to_a_factor_takes_fewer_cells_and_finds_what_is_below() -> None:
    """Below the box's least factor it proves that; above, it is the whole proof."""
    box = (100.0, 300.0), (0.01, 0.1)
    starts = LOOP.starts(*box)
    alone = box_upper_gain(LOOP, *box, starts)
    less = box_upper_gain(LOOP, *box, starts, below=0.5 * alone.found)
    assert less.found == 0.5 * alone.found
    assert 0.98 * less.found < less.proved <= 0.99 * less.found
    assert less.cells < alone.cells
    assert box_upper_gain(LOOP, *box, starts, below=2.0 * alone.found)[:2] == alone[:2]


@pytest.mark.parametrize(("flows", "rtt"), [(100.0, 0.03), (300.0, 0.01), (150.0, 0.08), (8e3, 0.1)])
def test_proofs_of_a_point_are_those_of_each_margin(flows: float, rtt: float) -> None:
    """The box of a point, the disk margin alone and the margins without proofs are other ways to the same values."""
    point, gains = ((flows, flows), (rtt, rtt)), stable_gains(LOOP, flows, rtt)
    assert gains.unstable_poles == 0
    found = point_proofs(LOOP, flows, rtt, 2.0, np.radians(30.0))
    assert found.upper.found == gains.upper
    assert found.upper.found > found.upper.proved >= 0.998 * found.upper.found
    assert found.keeps == box_keeps(LOOP, *point, 2.0, np.radians(30.0), [(flows, rtt)])
    phase, disk = found.margins
    assert disk.found == pytest.approx(box_disk_margin(LOOP, *point, [(flows, rtt)]).found, rel=1e-9)
    angles = np.geomspace(1e-4, np.pi, 200_000)
    values = LOOP.at(angles, flows, rtt)
    ratio = 2.0 * np.abs(1.0 + values) / np.abs(1.0 - values)
    assert disk.found == pytest.approx(ratio.min(), rel=1e-6)
    crossed = np.flatnonzero(np.diff(np.sign(np.abs(values) - 1.0)))
    assert phase.found == pytest.approx(np.abs(np.angle(-values[crossed])).min(), abs=1e-3)
    for each in (phase, disk):
        assert each.found > each.proved >= 0.998 * each.found
    with_proofs, without = (sampled_margins(LOOP, flows, rtt, 1.0, proofs=each) for each in (found, None))
    assert with_proofs == without


def test_the_nearest_crossing_is_the_gain_margin_of_a_stable_loop() -> None:
    loop = QueueLoop((WindowClass(RENO),), Averaged(0.5, 8.0, 0.004), 1250.0, continuous_s=0.01)
    flows, rtt = np.array([20.0, 40.0, 60.0]), np.array([0.05, 0.08, 0.03])
    exact = [stable_gains(loop, *point) for point in zip(flows, rtt, strict=True)]
    assert all(each.unstable_poles == 0 and each.upper_angle < np.pi for each in exact)
    np.testing.assert_allclose(nearest_crossings(loop, flows, rtt), [1.0 / each.upper for each in exact], rtol=0.05)
    # Up to lower frequencies there is none; the response at the end of the range is no crossing.
    few = QueueLoop(loop.classes, loop.law, loop.rate, continuous_s=2.0)
    assert (nearest_crossings(few, flows, rtt) == 0.0).all()


@pytest.mark.slow
def test_a_crossing_inside_a_box_is_found() -> None:
    # stable at the corners that a proof begins with, unstable nowhere it may end
    flows, rtt = (30.0, 400.0), (0.01, 0.12)
    assert box_upper_gain(LOOP, flows, rtt, [(400.0, 0.01)]).proved <= 1.0


def test_crossings_far_below_the_base_round_trip_s_angles_are_found() -> None:
    """Where the queue's delay is most of the round trip, the loop is as slow as that."""
    loops = (
        QueueLoop((WindowClass(RENO),), SampledPi(1e-4, 0.05, 0.001, 1.0), 8333.0),
        QueueLoop((WindowClass(RENO),), Averaged(0.3, 0.5, 0.8), 8333.0, continuous_s=1e-4),
    )
    flows, rtt = np.array([30.0, 200.0]), np.array([1e-3, 1e-4])
    for loop in loops:
        exact = [stable_gains(loop, *point).factor for point in zip(flows, rtt, strict=True)]
        np.testing.assert_allclose(gain_factors(loop, flows, rtt), exact, rtol=1e-3)
