"""PI2, DualPI2 and Prague as laws: closed forms of p', of rates under a probability, and of who is next."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.law import Seen
from netctrl.laws.l4s.dualpi2 import (
    DROP,
    MARK,
    SEND,
    DualPi2Queue,
    DualPi2State,
    classic_is_next,
    dualpi2_state,
    fresh_credit,
    judge_packet,
    spend_credit,
    update_dualpi2,
)
from netctrl.laws.l4s.pi2 import PI2, Pi2Queue, Pi2State, pi2_step
from netctrl.laws.record import as_record
from netctrl.laws.tcp.prague import virtual_trips

P = PI2.read(Pi2Queue(), 1500.0, np.inf)
FULL = 1500.0


def state(**changed) -> DualPi2State:
    found = as_record(DualPi2State, np.array(dualpi2_state(DualPi2Queue(), FULL)))
    for name, value in changed.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize("delay", [0.005, 0.02, 0.04])
def test_a_constant_delay_is_a_ramp_of_p(delay):
    """From the second update on p' grows by alpha (D - target); beta acts on the first one alone."""
    after, capacity = Pi2State(0.0, 0.0, 0.5, 0.0), 2000.0
    for n in range(1, 6):
        after = pi2_step(after, Seen(0.016, 0.0, 0.0, delay * capacity, capacity), P)
        base = 0.5 + 3.2 * delay + 0.16 * n * (delay - 0.015)
        assert after.base_probability == pytest.approx(base, rel=1e-12)
        assert after.probability == pytest.approx(base**2, rel=1e-12)
        assert after.scalable_probability == pytest.approx(min(2.0 * base, 1.0), rel=1e-12)


def test_p_stays_between_0_and_1():
    high = pi2_step(Pi2State(1.0, 1.0, 1.0, 0.0), Seen(0.016, 0.0, 0.0, 2000.0, 2000.0), P)
    low = pi2_step(Pi2State(0.0, 0.0, 0.0, 0.1), Seen(0.016, 0.0, 0.0, 0.0, 2000.0), P)
    assert (high.base_probability, high.probability, high.scalable_probability) == (1.0, 1.0, 1.0)
    assert (low.base_probability, low.probability, low.scalable_probability) == (0.0, 0.0, 0.0)


def test_the_discipline_and_the_single_queue_have_one_pi_law():
    both, after = state(), Pi2State(0.0, 0.0, 0.0, 0.0)
    for delay in (0.01, 0.05, 0.2, 0.03, 0.0, 0.015):
        update_dualpi2(both, delay)
        after = pi2_step(after, Seen(0.016, 0.0, 0.0, delay * 1000.0, 1000.0), P)
        assert both.base_probability == pytest.approx(after.base_probability, rel=1e-12)
    assert both.old_delay == 0.015


@pytest.mark.parametrize(
    ("base", "low", "capable", "late", "draw", "fate"),
    [
        (0.3, False, True, False, 0.0899, MARK),  # p'² = .09
        (0.3, False, True, False, 0.0901, SEND),
        (0.3, False, False, False, 0.0899, DROP),
        (0.3, True, True, False, 0.599, MARK),  # 2 p' = .6
        (0.3, True, True, False, 0.601, SEND),
        (0.3, True, True, True, 0.999, MARK),  # the step
        (0.3, False, True, True, 0.999, SEND),
        (0.5, False, True, False, 0.2499, DROP),  # p'² = 1/k²: both queues drop
        (0.5, False, True, False, 0.2501, SEND),
        (0.5, True, True, False, 0.2499, DROP),
        (0.5, True, True, False, 0.2501, MARK),
        (0.4999, False, True, False, 0.2, MARK),
    ],
)
def test_what_becomes_of_a_packet(base, low, capable, late, draw, fate):
    assert judge_packet(state(base_probability=base), low, capable, late, 2.0 * FULL, draw) == fate


def test_the_pi_law_spares_what_leaves_less_than_two_packets_but_the_step_does_not():
    almost = 2.0 * FULL - 1.0
    assert judge_packet(state(base_probability=1.0), False, True, False, almost, 0.0) == SEND
    assert judge_packet(state(base_probability=1.0), True, True, False, almost, 0.0) == SEND
    assert judge_packet(state(base_probability=1.0), True, True, True, almost, 0.0) == MARK


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_the_classic_queue_has_its_share_of_a_link_that_both_keep_busy(share):
    weight = round(100.0 * share, 9)
    credit, sent = fresh_credit(weight, FULL), [0, 0]
    assert classic_is_next(credit, True, True) == (share > 0.5)
    for _ in range(1000):
        classic = classic_is_next(credit, True, True)
        credit = spend_credit(credit, weight, classic, FULL)
        sent[classic] += 1
    assert sent[1] / 1000 == pytest.approx(share, abs=2e-3)
    assert classic_is_next(credit, False, True)
    assert not classic_is_next(1e9, True, False)


def test_virtual_round_trips():
    assert virtual_trips(0.005) == 5.0
    assert virtual_trips(0.025) == virtual_trips(0.2) == 1.0


def test_records():
    assert DualPi2Queue(target="15ms", update="16ms", step="1ms") == DualPi2Queue()
    for name in ("target", "update", "alpha", "coupling", "step"):
        with pytest.raises(InvalidValue, match=name):
            DualPi2Queue(**{name: 0})
    for wrong in ({"coupling": 0.5}, {"protection": 1.1}, {"protection": -0.1}, {"step_packets": 1.5}, {"beta": -1.0}):
        with pytest.raises(InvalidValue, match=next(iter(wrong))):
            DualPi2Queue(**wrong)
