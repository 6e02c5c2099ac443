"""Linux's PIE in real numbers: packet by packet what the kernel's integers do, on the same course of delays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from c_support import replayed

from netctrl.laws.record import as_record, width
from netctrl.laws.targets.pie import PIE_START, PieState, pie_drop_rate
from netctrl.laws.targets.pie_law import PIE_ONE, PieLaw
from netctrl.laws.targets.pie_packets import (
    DROP,
    PacketPie,
    pie_choice,
    pie_leaves,
    pie_on_packets,
    pie_row,
    tupdate_for,
    update_pie,
)

PACKET = 1500
TICK_S = 64e-9


@pytest.mark.needs("compiler")
@pytest.mark.parametrize("ecn", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_its_choices_are_the_kernels(ecn: bool, seed: int, tmp_path: Path) -> None:
    """Starts, long and short delays, empty queues, sure choices, packets with and without ECN."""
    rng = np.random.default_rng(seed)
    law = pie_on_packets({"target": 0.015, "tupdate": 0.015, "alpha": 16.0, "beta": 30.0, "ecn": float(ecn)})
    rows: list[tuple[int, ...]] = [(0, law.target_ticks, 16, 30, law.limit, ecn, 0, 0, law.ecn_percent, *PIE_START)]
    now, level = 1_000_000, 0.0
    for k in range(4000):
        if k % 40 == 0:  # another level of the delay [s]
            level = rng.choice([0.0, 0.004, 0.012, 0.018, 0.03, 0.3], p=[0.1, 0.1, 0.25, 0.25, 0.25, 0.05])
        now += int(rng.integers(2_000, 20_000))
        behind = 0 if level == 0.0 else PACKET * int(rng.integers(0, 40))
        rows.append((2, now, now - int(level * rng.uniform(0.8, 1.2) / TICK_S), PACKET, behind))
        if k % 6 == 0:
            rows.append((1, behind))
        draw = int(rng.integers(2**64, dtype=np.uint64))
        rows.append((3, behind // PACKET, behind, PACKET, PACKET, draw, int(rng.integers(2))))
    row = np.zeros(width(PacketPie))
    row[:] = pie_row(law, float(PACKET))
    ours, seen = as_record(PacketPie, row), [0, 0, 0]
    for (kind, *given), found in zip(rows, replayed("linux_pie.c", 18, 10, rows, tmp_path), strict=True):
        exact, fate = PieState(*map(int, found[:9])), int(found[9])
        if kind == 2:
            pie_leaves(ours, given[0] * TICK_S, (given[0] - given[1]) * TICK_S, float(given[3]))
        elif kind == 1:
            update_pie(ours, float(given[0]))
            assert abs(ours.probability - exact.prob / PIE_ONE) <= 3e-5 * ours.probability + 1e-9
            ours.probability = exact.prob / PIE_ONE  # gains are rounded by up to 1e-5, which would add up
        elif kind == 3:
            assert pie_choice(ours, float(given[1]), bool(given[5]), given[4] / 2.0**64) == fate
            seen[fate] += 1
        assert abs(ours.accumulated - exact.accu_prob / PIE_ONE) < 1e-9
        assert abs(ours.burst - exact.burst_time * TICK_S) < 1e-9
    assert seen[0] > 1000
    assert seen[2] > 80
    assert (seen[1] > 2) is ecn


@pytest.mark.parametrize("p", [0.9, 0.3, 0.02, 0.004])
def test_rate_of_drops_by_counting(p: float) -> None:
    row = np.zeros(width(PacketPie))
    row[:] = pie_row(PieLaw(), float(PACKET))
    state = as_record(PacketPie, row)
    state.probability, state.delay, state.burst = p, state.target, 0.0
    draws = np.random.default_rng(17).random(60_000)
    drops = sum(pie_choice(state, 20_000.0, False, draw) == DROP for draw in draws)
    spread_of_count = (p * (1.0 - p) / len(draws)) ** 0.5  # more than that of renewals as regular as these
    assert drops / len(draws) == pytest.approx(pie_drop_rate(p), abs=4.0 * spread_of_count)


def test_an_update_interval_is_the_nearest_that_the_timer_makes() -> None:
    for wanted in (0.004, 0.016, 0.02, 0.03):
        made = pie_on_packets({"tupdate": tupdate_for(wanted)}).update_s
        assert made == pytest.approx(wanted, abs=1e-3)
