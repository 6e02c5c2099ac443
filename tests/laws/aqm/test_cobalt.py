"""COBALT's schedule of drops, packet by packet."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from netctrl.laws.aqm.codel import CodelDrops, CodelParameters, codel_head
from netctrl.laws.record import as_record

TIMES = CodelParameters(5e-3, 0.1)
COBALT = TIMES._replace(cobalt=1.0)
PACKET = 1e-4


def dropped(delays, head, state):
    """Times of drops of packets that leave each PACKET seconds and have waited so."""
    return [k * PACKET for k, delay in enumerate(delays) if head(state, k * PACKET, delay)]


def cobalt():
    return as_record(CodelDrops, np.zeros(5))


def test_drops_come_an_interval_after_the_target_and_then_as_codels():
    found = dropped(np.full(6000, 6e-3), lambda *at: codel_head(*at, False, COBALT), cobalt())
    gaps = [TIMES.interval / sqrt(k) for k in range(2, 10)]
    assert found[0] == pytest.approx(TIMES.interval, abs=2 * PACKET)
    assert np.diff(found)[:8] == pytest.approx(gaps, abs=1.1 * PACKET)
    as_codel = dropped(np.full(6000, 6e-3), lambda *at: codel_head(*at, False, TIMES), cobalt())
    assert np.diff(as_codel)[1:6] == pytest.approx(np.diff(found)[:5], abs=3 * PACKET)


def test_the_count_falls_below_the_target_on_the_same_schedule():
    state = cobalt()
    dropped(np.full(6000, 6e-3), lambda *at: codel_head(*at, False, COBALT), state)
    most, since = state.count, state.next_drop
    k, fallen = 6000, []
    while state.count > 0.0:
        before = state.count
        assert not codel_head(state, k * PACKET, 1e-3, False, COBALT)
        fallen += [k * PACKET] * int(before - state.count)
        k += 1
    assert len(fallen) == most
    gaps = [TIMES.interval / sqrt(max(count, 1.0)) for count in np.arange(most - 1.0, 0.0, -1.0)]
    assert np.cumsum([since, *gaps]) == pytest.approx(fallen, abs=2 * PACKET)


def test_who_is_soon_above_the_target_again_goes_on_from_there():
    state = cobalt()
    dropped(np.full(6000, 6e-3), lambda *at: codel_head(*at, False, COBALT), state)
    count = state.count
    codel_head(state, 0.6, 1e-3, False, COBALT)
    codel_head(state, 0.6 + PACKET, 6e-3, False, COBALT)
    assert state.next_drop == pytest.approx(0.6 + PACKET + TIMES.interval / sqrt(count))
