"""The worst network: the relations against the laws' own code, what is known of the laws, and replays on packets."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import netctrl
from netctrl.checks.worst.laws import Seen, step_law
from netctrl.checks.worst.relations import Relations, affine
from netctrl.checks.worst.search import _Flow as Flow
from netctrl.checks.worst.search import _left as queued
from netctrl.checks.worst.search import worst_network
from netctrl.laws.pacing.own_rate import own_rate_step
from netctrl.laws.pacing.own_rate_state import OwnRateState, own_rate_settings, own_rate_start
from netctrl.laws.record import as_record

C, RTT = 1e8, 0.02
PIPE = C * RTT / 8.0  # byte


def design(mode, **keys):
    return netctrl.pacing(mode=mode, rtt_s=RTT, bottleneck_bit_per_s=C, **keys)


def ends(relations, value):
    return relations.least(value).bound - 1e-4, -relations.least(-value).bound + 1e-4


def own_rate_window(law, window, rtt, delivered, before, share, lost):
    """Window, share and whether there is a limit, that the law's own code makes of a round trip."""
    row = own_rate_start(law)
    state = as_record(OwnRateState, row)
    state.phase, state.window = 1.0, window * PIPE / 1500.0
    state.samples = state.round_samples = 100.0
    state.min_rtt, state.rtt, state.lost_bytes = RTT, RTT, 0.0
    state.time_s, state.round_s, state.probe_s = 10.0, 10.0, inf
    state.delivered_rate, state.share = before * C, share
    span = rtt * RTT  # in which this much was delivered
    bytes_before = 1e8
    state.delivered_bytes = state.round_bytes = state.sent_base = bytes_before
    state.round_end = bytes_before + 1.0
    sent = delivered * PIPE * rtt
    came, gone, held = bytes_before + (1.0 - lost) * sent, lost * sent, window * PIPE
    own_rate_step(row, own_rate_settings(law), 10.0 + span, rtt * RTT, came, held, gone)
    return state.window * 1500.0 / PIPE, state.share, state.limit < inf


def own_rate_ends(law, window, rtt, delivered, before, share):
    """Ends of the windows that the relations make of it."""
    relations = Relations()
    w, rtts = relations.settle(relations.variable(0.4, 1.7)), relations.variable(1.0, 1.7)
    relations.equal(w, float(window))
    relations.equal(rtts, float(rtt))
    state = affine(relations, {"delivered": float(before), "share": float(share), "limit": 3.0, "cut": 0.0})
    seen = Seen(1, rtts, relations.constant(float(delivered)))
    found = law.decide(relations, state | {"window": w}, seen)
    return ends(relations, found["window"]), ends(relations, found["share"])


def test_own_rate_s_windows_are_among_the_relations_solutions():
    rng = np.random.default_rng(3)
    asked = design("own-rate")
    law = step_law(asked, 0.2)
    for _ in range(25):
        seen = rng.uniform((0.5, 1.0, 0.3, 0.3), (1.6, 1.6, 1.1, 1.1))
        (least, greatest), _ = own_rate_ends(law, *seen, 1.0)
        exact, *_ = own_rate_window(asked.law, *seen, 1.0, 0.0)
        assert least <= exact <= greatest
        assert greatest - least < 0.16  # of which .03 are the spread of RTTs


@pytest.mark.parametrize("loss", [0.02, 0.15])
def test_own_rate_s_answers_to_losses_are_among_them(loss):
    """Those beyond what is tolerated cut the window."""
    rng = np.random.default_rng(4)
    asked = design("own-rate")
    law, cuts = step_law(asked, 0.2, loss), 0
    for _ in range(15):
        window, rtt, delivered, before, share, lost = rng.uniform(
            (0.8, 1.0, 0.9, 0.9, 0.1, 0.0), (1.4, 1.4, 1.1, 1.1, 1.0, loss)
        )
        window_ends, share_ends = own_rate_ends(law, window, rtt, delivered, before, share)
        exact, left, cut = own_rate_window(asked.law, window, rtt, delivered, before, share, lost)
        assert window_ends[0] <= exact <= window_ends[1]
        assert share_ends[0] <= left <= share_ends[1]
        cuts += cut
    assert (cuts > 0) == (loss > asked.law.tolerated_loss)


def test_the_paper_s_freeze_is_found_without_jitter():
    """At half of R, where it starts."""
    found = worst_network(design("paper", max_rate_bit_per_s=C), jitter_s=0.0)
    assert found.bounded is False
    assert found.utilization_found == pytest.approx(0.5, abs=0.01)
    assert found.replayed.utilization == pytest.approx(0.5, abs=0.02)
    assert found.utilization_bound is None


def test_flows_in_one_queue_share_without_jitter():
    """Two flows of one law rest at half the capacity each."""
    found = worst_network(design("own-rate", flows=2), jitter_s=0.0, round_trips=3)
    assert found.bounded
    assert found.utilization_bound == pytest.approx(1.0, abs=1e-3)
    assert found.share_bound == pytest.approx(0.5, abs=1e-2)
    assert not found.hold_s.any()
    assert "for the worse of two flows" in found.table()


def test_what_is_queued_of_each_flow_is_as_what_it_sent():
    """In order: of .3 and .9 after a queue of .1, when 1 has been served, a sixth is left, .05 and .15."""
    relations = Relations()
    none = relations.constant(0.0)
    flows = [Flow([none, relations.constant(sent)], [none] * 2, [none] * 2, {}, none) for sent in (0.3, 0.9)]
    left = queued(relations, flows, relations.constant(0.1), relations.constant(0.2))
    assert [ends(relations, each) for each in left] == [pytest.approx((x, x), abs=1e-3) for x in (0.05, 0.15)]


def test_a_bound_isn_t_above_what_packets_use():
    found = worst_network(design("own-rate"), jitter_s=0.05 * RTT, round_trips=2)
    assert found.bounded
    assert found.utilization_bound <= found.utilization_found + 1e-3
    assert found.utilization_bound <= found.replayed.utilization + 0.02  # the law's queue swings on packets
    assert found.hold_s.max() <= 0.05 * RTT


def fluid(law, flows, holds):
    """Shares of the capacity that flows are served under holds of the first one, step by step, without relations."""
    pipe, C_packets = PIPE / 1500.0, C / 12000.0

    def waits(rate):
        return (law.queue_packets + law.queue_packets_per_root_rate * np.sqrt(rate * C_packets)) / pipe

    each = np.full(flows, 1.0 / flows)
    W, rate = each + waits(each), 1.01 * each
    served, before, heard, sent = 0.0 * each, -each, -each, waits(each)
    queue, ended = flows * waits(each[0]), 0.0
    for held in holds:
        hold = np.where(np.arange(flows) == 0, held, 0.0)
        heard = np.maximum(served - hold * (served - before), heard)
        more = np.minimum(rate, np.maximum(heard + W - sent, 0.0))
        sent, rtt = sent + more, 1.0 + queue + hold
        ended = min(ended + 1.0, sent.sum())
        queue = sent.sum() - ended
        before, served = served, sent - queue * more / more.sum()
        new = W + law.gain * (W / rtt + waits(W / rtt) - W)
        W = np.minimum(new, 1.25 * W + 0.5 / pipe)
        rate = 1.01 * W / rtt
    return served / len(holds)


@pytest.mark.parametrize("flows", [1, 2])
def test_no_holds_of_the_fluid_use_less_than_is_proved(flows):
    """Of a thousand random ones, and all held; the bounds are close."""
    rng = np.random.default_rng(6)
    asked = design("own-rate", flows=flows)
    found = worst_network(asked, jitter_s=0.2 * RTT, round_trips=4, least_utilization=0.5)
    draws = [0.2 * rng.integers(0, 2, 4) if k % 2 else rng.uniform(0.0, 0.2, 4) for k in range(1000)]
    served = np.array([fluid(asked.law, flows, holds) for holds in (*draws, np.full(4, 0.2))])
    used, share = served.sum(axis=1).min(), served.min()
    assert used - 0.05 < found.utilization_bound <= used + 1e-4
    if flows == 2:
        assert share - 0.05 < found.share_bound <= share + 1e-4


@pytest.mark.slow
def test_losses_shorten_the_queue_that_rides_over_jitter():
    """A twentieth of the RTT, and losses that alone do no harm; bound and packets are close."""
    found = worst_network(design("own-rate"), jitter_s=0.05 * RTT, loss=0.02)
    assert found.bounded is False
    assert 0.85 < found.utilization_bound < found.replayed.utilization < 0.9
    assert found.without.utilization > 0.99


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({"jitter_s": -1.0}, "jitter_s"),
        ({"jitter_s": RTT}, "jitter_s"),
        ({"jitter_s": 0.0, "loss": 0.5}, "loss"),
        ({"jitter_s": 0.0, "round_trips": 0}, "round_trips"),
        ({"jitter_s": 0.0, "least_utilization": 1.5}, "least_utilization"),
        ({"jitter_s": 0.0, "limit_s": 0.0}, "limit_s"),
    ],
)
def test_arguments_out_of_bounds(keys, name):
    with pytest.raises(netctrl.InvalidValue, match=name):
        worst_network(design("own-rate"), **keys)


def test_designs_that_have_no_relations():
    for asked in (design("own-rate", flows=3), design("paper", max_rate_bit_per_s=C, period_s=0.1), "own-rate"):
        with pytest.raises(netctrl.InvalidValue):
            worst_network(asked, jitter_s=0.0)
