"""The worst network: the relations against the laws' own code, what is known of the laws, and replays on packets."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

import netctrl
from netctrl.checks.worst.laws import Seen, step_law
from netctrl.checks.worst.relations import Relations, affine
from netctrl.checks.worst.search import worst_network
from netctrl.laws.pacing.own_rate import own_rate_step
from netctrl.laws.pacing.own_rate_state import OwnRateState, own_rate_settings, own_rate_start
from netctrl.laws.pacing.target_rtt import target_step
from netctrl.laws.pacing.target_state import TargetState, target_settings, target_start
from netctrl.laws.record import as_record

C, RTT = 1e8, 0.02
PIPE = C * RTT / 8.0  # byte


def design(mode, **keys):
    return netctrl.pacing(mode=mode, rtt_s=RTT, bottleneck_bit_per_s=C, **keys)


def ends(relations, value):
    return relations.least(value).bound - 1e-4, -relations.least(-value).bound + 1e-4


def own_rate_window(law, window, rtt, delivered, before):
    """What the law's own code makes of a round trip."""
    row = own_rate_start(law)
    state = as_record(OwnRateState, row)
    state.phase, state.window = 1.0, window * PIPE / 1500.0
    state.samples = state.round_samples = 100.0
    state.min_rtt, state.rtt, state.lost_bytes = RTT, RTT, 0.0
    state.time_s, state.round_s, state.probe_s = 10.0, 10.0, inf
    state.delivered_rate = before * C
    span = rtt * RTT  # in which this much was delivered
    bytes_before = 1e8
    state.delivered_bytes = state.round_bytes = bytes_before
    state.round_end = bytes_before + 1.0
    got = delivered * PIPE * rtt
    own_rate_step(row, own_rate_settings(law), 10.0 + span, rtt * RTT, bytes_before + got, window * PIPE, 0.0)
    return state.window * 1500.0 / PIPE


def test_own_rate_s_windows_are_among_the_relations_solutions():
    rng = np.random.default_rng(3)
    asked = design("own-rate")
    law = step_law(asked, 0.2)
    for _ in range(25):
        window, rtt, delivered, before = rng.uniform((0.5, 1.0, 0.3, 0.3), (1.6, 1.6, 1.1, 1.1))
        relations = Relations()
        w, rtts = relations.settle(relations.variable(0.4, 1.7)), relations.variable(1.0, 1.7)
        relations.equal(w, float(window))
        relations.equal(rtts, float(rtt))
        state = affine(relations, {"rate": 1.0, "window": 0.0, "delivered": float(before)}) | {"window": w}
        seen = Seen(1, rtts, relations.constant(float(delivered)), w)
        found = law.decide(relations, state, seen)
        least, greatest = ends(relations, found["window"])
        exact = own_rate_window(asked.law, window, rtt, delivered, before)
        assert least <= exact <= greatest
        assert greatest - least < 0.08  # of which .03 are the spread of RTTs


def target_rate(law, delivered, before, queue, in_flight):
    """What the law's own code makes of an interval, over the capacity."""
    row = target_start(law)
    state = as_record(TargetState, row)
    state.phase, state.samples, state.min_rtt, state.probe_s = 1.0, 100.0, RTT, inf
    state.delivered_rate, state.highest_rate = before * C, C
    state.time_s = state.applied_s = state.free_since_s = 10.0
    state.target_rtt = RTT + delay_of(law, before) * RTT
    state.rate, state.lost_bytes, state.delivered_bytes = C, 0.0, 1e8
    now = 10.0 + 0.25 * RTT
    state.marks = 1.0
    state.ring_times[0], state.ring_bytes[0] = now - RTT * (1.0 + 1e-9), 1e8
    got = 1e8 + delivered * PIPE
    return target_step(row, target_settings(law), now, (1.0 + queue) * RTT, got, in_flight * PIPE, nan) / C


def delay_of(law, rate):
    share = law.queue_share - law.queue_share_slope * np.log(max(PIPE / 1500.0 * rate, 1.0))
    return max(min(max(share, law.least_queue_share), law.queue_share), 1500.0 / (PIPE * rate))


def test_target_rtt_s_rates_are_among_the_relations_solutions():
    rng = np.random.default_rng(4)
    asked = design("target-rtt")
    law = step_law(asked, 0.2)
    for _ in range(40):
        delivered, before, queue, in_flight = rng.uniform((0.4, 0.4, 0.0, 0.5), (1.1, 1.1, 0.2, 1.6))
        if abs(queue - 0.25 * delay_of(asked.law, before)) < 1e-3:
            continue
        relations = Relations()
        d, f = relations.variable(0.3, 1.2), relations.variable(0.4, 1.7)
        relations.equal(d, float(delivered))
        relations.equal(f, float(in_flight))
        rest = law.rest | {"delivered": float(before), "delay": float(delay_of(asked.law, before))}
        seen = Seen(1, relations.constant(1.0 + float(queue)), d, f)
        found = law.decide(relations, affine(relations, rest), seen)
        least, greatest = ends(relations, found["rate"])
        exact = target_rate(asked.law, delivered, before, queue, in_flight)
        assert least <= exact <= greatest
        assert greatest - least < 0.02


def test_the_paper_s_freeze_is_found_without_jitter():
    """At half of R, where it starts."""
    found = worst_network(design("paper", max_rate_bit_per_s=C), jitter_s=0.0)
    assert found.bounded is False
    assert found.utilization_found == pytest.approx(0.5, abs=0.01)
    assert found.utilization_replayed == pytest.approx(0.5, abs=0.02)
    assert found.utilization_bound is None


def test_a_fluid_flow_bounds_the_target_rtt_law_without_jitter():
    found = worst_network(design("target-rtt"), jitter_s=0.0, round_trips=2, limit_s=60.0)
    assert found.bounded
    assert found.utilization_bound == pytest.approx(1.0, abs=1e-3)
    assert not found.hold_s.any()
    assert "bounded" in found.table()


def test_a_bound_isn_t_above_what_packets_use():
    found = worst_network(design("own-rate"), jitter_s=0.05 * RTT, round_trips=2, limit_s=60.0)
    assert found.bounded
    assert found.utilization_bound <= found.utilization_found + 1e-3
    assert found.utilization_bound <= found.utilization_replayed + 0.01
    assert found.hold_s.max() <= 0.05 * RTT


@pytest.mark.slow
def test_the_target_rtt_law_s_starvation_under_jitter_is_found():
    found = worst_network(design("target-rtt"), jitter_s=0.1 * RTT, limit_s=300.0)
    assert found.bounded is False
    assert found.hold_s.max() == pytest.approx(0.1 * RTT)
    assert found.utilization_without > 0.97


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({"jitter_s": -1.0}, "jitter_s"),
        ({"jitter_s": RTT}, "jitter_s"),
        ({"jitter_s": 0.0, "round_trips": 0}, "round_trips"),
        ({"jitter_s": 0.0, "least_utilization": 1.5}, "least_utilization"),
        ({"jitter_s": 0.0, "limit_s": 0.0}, "limit_s"),
    ],
)
def test_arguments_out_of_bounds(keys, name):
    with pytest.raises(netctrl.InvalidValue, match=name):
        worst_network(design("own-rate"), **keys)


def test_designs_that_have_no_relations():
    for asked in (design("own-rate", flows=2), design("paper", max_rate_bit_per_s=C, period_s=0.1), "own-rate"):
        with pytest.raises(netctrl.InvalidValue):
            worst_network(asked, jitter_s=0.0)
