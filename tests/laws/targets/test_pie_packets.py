"""Linux's PIE in real numbers: packet by packet what the kernel's integers do, on the same course of delays."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.laws.record import as_record, width
from netctrl.laws.targets.pie import PieState, pie_departed, pie_enqueue, pie_update
from netctrl.laws.targets.pie_law import PIE_ONE
from netctrl.laws.targets.pie_packets import (
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
FATES = ("pass", "mark", "drop")


@pytest.mark.parametrize("ecn", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_its_choices_are_the_kernels(ecn: bool, seed: int) -> None:
    """Starts, long and short delays, empty queues, sure choices, packets with and without ECN."""
    rng = np.random.default_rng(seed)
    law = pie_on_packets({"target": 0.015, "tupdate": 0.015, "alpha": 16.0, "beta": 30.0, "ecn": float(ecn)})
    exact, row = PieState(), np.zeros(width(PacketPie))
    row[:] = pie_row(law, float(PACKET))
    ours = as_record(PacketPie, row)
    now, level, seen = 1_000_000, 0.0, dict.fromkeys(FATES, 0)
    for k in range(4000):
        if k % 40 == 0:  # another level of the delay [s]
            level = rng.choice([0.0, 0.004, 0.012, 0.018, 0.03, 0.3], p=[0.1, 0.1, 0.25, 0.25, 0.25, 0.05])
        now += int(rng.integers(2_000, 20_000))
        waited = int(level * rng.uniform(0.8, 1.2) / TICK_S)
        behind = 0 if level == 0.0 else PACKET * int(rng.integers(0, 40))
        exact = pie_departed(law, exact, now, now - waited, PACKET, behind)
        pie_leaves(ours, now * TICK_S, waited * TICK_S, float(behind))
        if k % 6 == 0:
            exact = pie_update(law, exact, behind)
            update_pie(ours, float(behind))
            assert abs(ours.probability - exact.prob / PIE_ONE) <= 3e-5 * ours.probability + 1e-9
            ours.probability = exact.prob / PIE_ONE  # gains are rounded by up to 1e-5, which would add up
        capable, draw = bool(rng.integers(2)), int(rng.integers(2**64, dtype=np.uint64))
        exact, fate = pie_enqueue(
            law,
            exact,
            packets=behind // PACKET,
            backlog_bytes=behind,
            packet_bytes=PACKET,
            mtu=PACKET,
            random=draw,
            ecn=capable,
        )
        assert FATES[pie_choice(ours, float(behind), capable, draw / 2.0**64)] == fate
        assert abs(ours.accumulated - exact.accu_prob / PIE_ONE) < 1e-9
        assert abs(ours.burst - exact.burst_time * TICK_S) < 1e-9
        seen[fate] += 1
    assert seen["pass"] > 1000
    assert seen["drop"] > 90
    assert (seen["mark"] > 2) is ecn


def test_an_update_interval_is_the_nearest_that_the_timer_makes() -> None:
    for wanted in (0.004, 0.016, 0.02, 0.03):
        made = pie_on_packets({"tupdate": tupdate_for(wanted)}).update_s
        assert made == pytest.approx(wanted, abs=1e-3)
