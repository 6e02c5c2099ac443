"""DOCSIS-PIE by intervals against the rules of RFC 8034 packet by packet."""

from __future__ import annotations

import numpy as np
import pytest
from docsis_packets import INTERVAL, Modem

from netctrl.laws.aqm.law import CHOSEN, Arriving, Seen
from netctrl.laws.targets.docsis_pie import (
    ACTIVE,
    DOCSIS_PIE,
    DocsisPieQueue,
    DocsisPieState,
    docsis_scale,
    docsis_spreads,
    docsis_step,
    mean_spread_rate,
    spread_rate,
)

RATE = 1e6
"""[byte/s]"""
BUFFER = 300e3
START = DocsisPieState(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
PARAMETERS = DOCSIS_PIE.read(DocsisPieQueue(), 1500.0, BUFFER)


def seen(backlog_bytes: float, arrived: float = 10.0) -> Seen:
    return Seen(INTERVAL, arrived, 0.0, backlog_bytes / 1500.0, RATE / 1500.0)


class Draws:
    """Stands for a generator: the draw that both have."""

    now = 0.0

    def random(self) -> float:
        return self.now


def test_output_states_and_drops_are_those_of_the_rfc_over_ten_thousand_intervals() -> None:
    """A random walk of the queue from empty to a third of a second, so that all gains, caps, decays and states occur.

    Up to seven packets of all sizes come in an interval.
    """
    random, draws = np.random.default_rng(8), Draws()
    modem, ours, queue = Modem(RATE, BUFFER, draws), START, 10e3  # type: ignore[arg-type]
    outputs, drops, states = [], 0, []
    for k in range(10_000):
        step = random.normal(0.0, 3e3) if random.random() < 0.98 else random.uniform(-1e5, 3e5)
        queue = 1e3 if k // 500 % 4 == 3 else float(np.clip(queue + step - 0.02 * (queue - 12e3), 0.0, BUFFER))
        modem.tick(queue)
        ours = docsis_step(ours, seen(queue, arrived=0.0), PARAMETERS)
        for size in random.uniform(64.0, 1500.0, random.integers(0, 8)).tolist():
            draws.now = random.random()
            dropped = modem.drops(size, queue)
            ours = docsis_spreads(ours, Arriving(size / 1500.0, queue / 1500.0, draws.now), PARAMETERS)
            assert (ours.passed == CHOSEN) is dropped
            drops += dropped
        outputs.append(ours.drop_probability)
        states.append(("inactive", "quiescent", "active")[int(ours.activity)])
        assert ours.drop_probability == pytest.approx(modem.x, rel=1e-9, abs=1e-15)
        assert states[-1] == modem.state
    assert min(outputs) == 0.0
    assert max(outputs) > 1.0
    assert drops > 500
    assert min(states.count(each) for each in set(states)) > 100
    assert len(set(states)) == 3


def test_every_gain_of_the_table() -> None:
    outputs = (1e-7, 5e-6, 5e-5, 5e-4, 5e-3, 0.05, 0.5, 5.0, 11.0)
    divisors = (2048.0, 512.0, 128.0, 32.0, 8.0, 2.0, 0.5, 0.125, 0.03125)
    for x, divisor in zip(outputs, divisors, strict=True):
        assert docsis_scale(x) == 1.0 / divisor
        state = START._replace(drop_probability=x, old_delay=0.0101, activity=ACTIVE)
        found = docsis_step(state, seen(0.0101 * RATE), PARAMETERS)
        assert found.drop_probability - x == pytest.approx(0.25 * 1e-4 / divisor, rel=1e-6)


@pytest.mark.parametrize("x", [0.002, 0.02, 0.1, 0.3, 5.0])
@pytest.mark.parametrize("size", [1500.0, 500.0])
def test_the_rate_of_drops_is_that_of_packets(x: float, size: float) -> None:
    """200,000 packets at a constant output and a standing queue of 15 ms: means to 4 standard errors."""
    modem = Modem(RATE, BUFFER, np.random.default_rng(5))
    modem.state, modem.x, modem.old = "active", x, 0.015
    dropped = np.array([modem.drops(size, 15e3) for _ in range(200_000)])
    places = np.diff(np.flatnonzero(dropped))
    error = places.std() / np.sqrt(len(places)) / places.mean()
    assert spread_rate(min(x * size / 1024.0, 0.85)) == pytest.approx(1.0 / places.mean(), rel=4.0 * error + 1e-9)
    p = DOCSIS_PIE.read(DocsisPieQueue(alpha=1e-9, beta=0.0), size, BUFFER)
    state = START._replace(drop_probability=x, old_delay=0.015, activity=ACTIVE)
    at = Seen(INTERVAL, 0.0, 0.0, 15e3 / size, RATE / size)
    assert docsis_step(state, at, p).probability == pytest.approx(spread_rate(min(x * size / 1024.0, 0.85)), rel=1e-4)


@pytest.mark.parametrize("first", [3, 6, 40])
def test_the_mean_rate_is_that_over_whole_numbers_of_packets(first: int) -> None:
    """Packets from one drop to the next, over the range of p in which as many are spared each time."""
    p = 0.85 / np.linspace(first, first + 1.0, 2002)[1:-1]
    exact, mean = (np.mean([1.0 / rate(float(each)) for each in p]) for rate in (spread_rate, mean_spread_rate))
    assert mean == pytest.approx(exact, rel=2e-3)
    assert mean_spread_rate(0.85) == spread_rate(0.85)


def test_nothing_is_dropped_before_a_third_of_the_buffer_has_filled_and_for_142_ms_after_the_first_drop() -> None:
    modem = Modem(RATE, BUFFER, np.random.default_rng(2))
    state, first, again, theirs = START, None, None, []
    for k in range(60):
        queue = 90e3 if k < 10 else 120e3
        state = docsis_step(state, seen(queue), PARAMETERS)
        if state.probability > 0.0 and first is None:
            first = k
        if first is not None and state.probability == 0.0:
            again = k
        modem.tick(queue)
        theirs += [k for _ in range(10) if modem.drops(1500.0, queue)]
    assert first == 10  # the first interval that sees more than 100 kB
    assert again is not None
    assert again - first >= 8  # 142 ms are nine intervals of 16 ms, with the one of the drop
    assert min(theirs) >= 10
    assert theirs[1] - theirs[0] >= 9


def test_a_quiet_second_ends_the_activity() -> None:
    state = START._replace(activity=ACTIVE, old_delay=0.001)
    modem = Modem(RATE, BUFFER, np.random.default_rng(1))
    modem.state, modem.old = "active", 0.001
    found, theirs = [], []
    for _ in range(70):
        state = docsis_step(state, seen(0.001 * RATE, arrived=0.0), PARAMETERS)
        modem.tick(0.001 * RATE)
        found.append(state.activity)
        theirs.append(("inactive", "quiescent", "active").index(modem.state))
    assert found == theirs
    assert (found[0], found[-1]) == (1.0, 0.0)
    assert found.index(0.0) == 63  # 63 intervals of 16 ms after the first are the first more than a second


@pytest.mark.parametrize(
    ("queue", "state", "dropped"),
    [
        (4e3, {"drop_probability": 0.19, "old_delay": 0.004}, False),  # below half the target and .2
        (4e3, {"drop_probability": 0.25, "old_delay": 0.004}, True),
        (2048.0, {"drop_probability": 0.5, "old_delay": 0.02}, False),  # two packets of 1024 bytes
        (15e3, {"drop_probability": 0.1, "old_delay": 0.015, "allowance": 0.05}, False),
        (15e3, {"drop_probability": 0.1, "old_delay": 0.015, "activity": 0.0}, False),
    ],
)
def test_where_drops_are_suppressed(queue: float, state: dict, dropped: bool) -> None:
    given = {"activity": ACTIVE} | state
    assert (docsis_step(START._replace(**given), seen(queue), PARAMETERS).probability > 0.0) == dropped
