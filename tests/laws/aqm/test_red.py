"""RED's curve, its average and its adaptation: closed forms, and Linux's integers."""

from __future__ import annotations

from math import expm1, log
from pathlib import Path

import numpy as np
import pytest
from c_support import replayed

from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.law import CHOSEN, Arriving, Seen
from netctrl.laws.aqm.red import RED, RedQueue, RedState, log_forgetting, red_adapted, red_share, red_spreads, red_step
from netctrl.laws.targets.red import RedLaw
from netctrl.laws.targets.wred import WredLaw

ONE = 2**32


def parameters(**given):
    return RED.read(RedQueue(**({"min_threshold": 30e3, "max_threshold": 90e3} | given)), 1500.0, 400e3)


def share(average, most, p):
    return red_share(average, most, p.min_threshold, p.max_threshold, p.gentle, p.spaced)


@pytest.mark.parametrize(("gentle", "at_75", "at_150"), [(True, 2 * 0.325 / 1.325, 1.0), (False, 1.0, 1.0)])
def test_the_curve_beyond_the_upper_threshold(gentle: bool, at_75: float, at_150: float) -> None:
    """P = .1 at 60 packets: gentle .1 + .9/4 = .325 at 75, and 1 at 120; else 1 from 60 on."""
    p = parameters(gentle=gentle)
    assert share(59.9999, 0.1, p) == pytest.approx(0.2 / 1.1, rel=1e-4)
    assert share(75.0, 0.1, p) == pytest.approx(at_75)
    assert share(150.0, 0.1, p) == at_150
    assert share(19.0, 0.1, p) == 0.0


def test_without_spacing_and_average_it_is_wred_of_a_switch() -> None:
    """Each packet by chance p of the present queue, as `WredLaw` says."""
    switch = WredLaw(min_bytes=30_000, max_bytes=90_000, max_percent=10)
    p = parameters(weight=1.0, gentle=False, spaced=False)
    state = RedState(0.0, 7.0, 0.0, 0.0)
    for backlog in (0.0, 19.0, 21.0, 40.0, 59.0, 61.0):
        found = red_step(state, Seen(1e-9, 1.0, 1.0, backlog, 1000.0), p)
        assert found.probability == pytest.approx(switch.probability(1500.0 * backlog))
        assert found.average == backlog


@pytest.mark.parametrize("spaced", [True, False])
def test_spaced_marks_come_after_one_to_eight_packets_with_the_same_chance(spaced: bool) -> None:
    """At p = 1/8: 2 p/(1 + p) of the packets, each distance with 1/8; else by chance, (1 − p)^(c − 1) p."""
    p = parameters(spaced=spaced)
    state, distances = RedState(2.0 / 9.0 if spaced else 0.125, 0.0, 0.0, 0.0), [0]
    for draw in np.random.default_rng(4).random(200_000):
        state = red_spreads(state, Arriving(1.0, 0.0, draw), p)
        distances[-1] += 1
        if state.passed == CHOSEN:
            distances.append(0)
    counts = np.bincount(distances[:-1], minlength=9)[1:9] / len(distances)
    expected = np.full(8, 0.125) if spaced else 0.125 * 0.875 ** np.arange(8)
    np.testing.assert_allclose(counts, expected, atol=4.0 * (0.125 / len(distances)) ** 0.5)


def linux(law: RedLaw, average: int, arrivals: list[tuple[int, int]], folder: Path) -> np.ndarray:
    """Average [2^-w byte], count, kept number and fate (0 pass, 1 mark, 2 above) after arrivals at backlogs."""
    start = (0, law.min_bytes, law.max_bytes, law.weight_log, law.max_probability, average << law.weight_log, 2**64 - 1)
    return replayed("linux_red.c", 8, 4, [start, *((1, *each) for each in arrivals)], folder)[1:]


@pytest.mark.needs("compiler")
@pytest.mark.parametrize("average", [40_000, 60_000, 89_999])
def test_the_share_is_that_of_linuxs_spaced_marks(average: int, tmp_path: Path) -> None:
    """A mark comes after 1 to 1/p packets, each number with the same chance; Linux marks too early by rounding."""
    law = RedLaw(min_bytes=30_000, max_bytes=90_000, weight_log=5, max_probability=2**29, limit_bytes=400_000)
    draws = np.random.default_rng(5).integers(0, 2**32, 100_000).tolist()
    marks = (linux(law, average, [(average, draw) for draw in draws], tmp_path)[:, 3] == 1).sum()
    ours = share(average / 1500.0, 0.125, parameters(max_probability=0.125))
    # Distances are uniform over 1 to 1/p: their standard deviation is below .58 of their mean.
    assert marks / len(draws) == pytest.approx(ours, rel=4.0 * 0.58 / marks**0.5 + 5e-3)


def test_the_share_is_that_of_the_kernel() -> None:
    """Linux 7.2.13 with arrivals at the line's rate, in bursts of five packets that found 61,000 to 62,000 bytes."""
    marks, packets = 70_104, 570_006
    ours = share(61_500 / 1500.0, 0.125, parameters(max_probability=0.125))
    assert packets * ours == pytest.approx(marks, abs=3.0 * 0.58 * marks**0.5)


@pytest.mark.needs("compiler")
def test_the_average_is_linuxs_at_a_busy_link(tmp_path: Path) -> None:
    """Arrivals at the link's rate to a standing queue: 2000 of Linux's integer steps, one byte apart at most."""
    law = RedLaw(
        min_bytes=300_000, max_bytes=900_000, weight_log=9, max_probability=1, limit_bytes=10**6
    )  # too far to mark
    average = int(linux(law, 0, [(60_000, 0)] * 2000, tmp_path)[-1, 0])
    p = parameters(weight=law.weight)
    ours = red_step(RedState(0.0, 0.0, 0.0, 0.0), Seen(2.0, 0.0, 0.0, 40.0, 1000.0), p)
    assert 1500.0 * ours.average == pytest.approx(average / 2**9, abs=1.0)
    assert ours.average == pytest.approx(40.0 * -expm1(2000.0 * log(1.0 - 2.0**-9)))


def linux_adapts(most: int, average: int, low: int, high: int) -> int:
    """Linux's red_adaptative_algo in its integers (include/net/red.h): targets in bytes, P in 2^-32."""
    fifth, percent = (high - low) // 5, round(ONE / 100)
    if average > low + 3 * fifth and most <= 50 * percent:
        return most + min(percent, most // 4)
    if average < low + 2 * fifth and most >= percent:
        return most // 10 * 9
    return most


def test_adaptation_is_linuxs_over_a_thousand_half_seconds() -> None:
    random = np.random.default_rng(3)
    p = parameters(max_probability=0.02, adaptive=True)
    most, ours = int(0.02 * ONE), 0.02
    seen = set()
    for _ in range(1000):
        average = int(random.integers(20_000, 100_000))
        before = most
        most = linux_adapts(most, average, 30_000, 90_000)
        ours = red_adapted(average / 1500.0, ours, p.min_threshold, p.max_threshold)
        seen.add((most > before) - (most < before))
        assert ours == pytest.approx(most / ONE, rel=1e-6)
    assert seen == {-1, 0, 1}


def test_the_step_adapts_each_half_second_and_only_where_asked() -> None:
    for adaptive, most in ((True, (0.09, 0.081)), (False, (0.1, 0.1))):
        p = parameters(adaptive=adaptive)
        state, found = RedState(0.0, 0.0, 0.0, 0.0), []
        for _ in range(11):
            state = red_step(state, Seen(0.1, 0.0, 0.0, 0.0, 1000.0), p)
            found.append(state.adapted)
        assert found[3] == 0.1
        assert (found[4], found[9]) == pytest.approx(most)


def test_flags_are_checked_and_a_weight_of_1_is_finite() -> None:
    with pytest.raises(InvalidValue, match="gentle"):
        RedQueue(gentle="yes")  # type: ignore[arg-type]
    assert log_forgetting(1.0) < -1e8
    assert log_forgetting(0.5) == pytest.approx(log(0.5))
