"""The worst network: the relations against the laws' own code, what is known of the laws, and replays on packets."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

import netctrl
from netctrl.checks.worst.course import _Flow as Flow
from netctrl.checks.worst.course import _left as queued
from netctrl.checks.worst.laws import Seen, step_law
from netctrl.checks.worst.packets import Figures
from netctrl.checks.worst.relations import Relations, affine
from netctrl.checks.worst.search import worst_network
from netctrl.laws.pacing.own_rate import SPEED, own_rate_step
from netctrl.laws.pacing.own_rate_state import OwnRateState, own_rate_settings, own_rate_start
from netctrl.laws.record import as_record

C, RTT = 1e8, 0.02
PIPE = C * RTT / 8.0  # byte


def design(mode, **keys):
    return netctrl.pacing(mode=mode, rtt_s=RTT, bottleneck_bit_per_s=C, **keys)


def ends(relations, value):
    return relations.least(value).bound - 1e-4, -relations.least(-value).bound + 1e-4


def own_rate_window(law, window, rtt, delivered, before, share, lost, free=0):
    """Window, share and whether there is a limit, that the law's own code makes of a round trip, after so many without
    a queue."""
    row = own_rate_start(law)
    state = as_record(OwnRateState, row)
    state.phase, state.window = 1.0, window * PIPE / 1500.0
    state.samples = state.round_samples = 100.0
    state.min_rtt, state.rtt, state.lost_bytes = RTT, RTT, 0.0
    state.time_s, state.round_s, state.probe_s = 10.0, 10.0, inf
    state.delivered_rate, state.share, state.free = before * C, share, free
    span = rtt * RTT  # in which this much was delivered
    bytes_before = 1e8
    state.delivered_bytes = state.round_bytes = state.sent_base = bytes_before
    state.round_end = bytes_before + 1.0
    sent = delivered * PIPE * rtt
    came, gone, held = bytes_before + (1.0 - lost) * sent, lost * sent, window * PIPE
    own_rate_step(row, own_rate_settings(law), 10.0 + span, rtt * RTT, came, held, gone, nan)
    return state.window * 1500.0 / PIPE, state.share, state.limit < inf


def own_rate_ends(law, window, rtt, delivered, before, share, step=1, free=0):
    """Ends of the windows that the relations make of it."""
    relations = Relations()
    w, rtts = relations.settle(relations.variable(0.4, 1.7)), relations.variable(1.0, 1.7)
    relations.equal(w, float(window))
    relations.equal(rtts, float(rtt))
    state = {"delivered": float(before), "share": float(share), "limit": 3.0, "cut": 0.0, "free": float(free)}
    state = affine(relations, state)
    seen = Seen(step, rtts, relations.constant(float(delivered)))
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


def test_own_rate_s_growth_is_among_them():
    """In the last round trip of up to twenty without a queue."""
    rng = np.random.default_rng(5)
    asked = design("own-rate")
    law, grew = step_law(asked, 0.2), 0
    for step in range(1, 21):
        seen = rng.uniform((1.0, 1.0, 0.9, 0.9), (1.6, 1.02, 1.1, 1.1))
        (least, greatest), _ = own_rate_ends(law, *seen, 1.0, step, step - 1)
        exact, *_ = own_rate_window(asked.law, *seen, 1.0, 0.0, step - 1)
        assert least <= exact <= greatest
        grew += exact > own_rate_window(asked.law, *seen, 1.0, 0.0)[0]
    assert grew > 5


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
    assert found.proved is None


def test_jitter_starves_the_paper_s_law():
    found = worst_network(design("paper", max_rate_bit_per_s=C), jitter_s=0.2 * RTT)
    assert found.bounded is False
    assert found.replayed.utilization < 0.15 < found.without.utilization


def test_flows_in_one_queue_share_without_jitter():
    """Two flows of one law rest at half the capacity each."""
    found = worst_network(design("own-rate", flows=2), jitter_s=0.0, round_trips=3)
    assert found.bounded
    assert found.proved[:2] == pytest.approx((1.0, 0.5), abs=1e-2)
    assert not found.hold_s.any()
    assert "for the worse of two flows" in found.table()


def test_what_is_queued_of_each_flow_is_as_what_it_sent():
    """In order: of .3 and .9 after a queue of .1, when 1 has been served, a sixth is left, .05 and .15. After one of
    1.2, of which .8 and .4 are theirs, up to .2 of it is left."""
    for before, queue, ends_of_each in ((0.1, 0.2, [(0.05, 0.05), (0.15, 0.15)]), (1.2, 1.4, [(0.3, 0.5), (0.9, 1.1)])):
        relations = Relations()
        none = relations.constant(0.0)
        waited = (0.8, 0.4) if before > 1.0 else (0.0, 0.1)
        flows = [
            Flow([relations.constant(w), relations.constant(w + sent)], [none] * 2, [none] * 2, {}, none)
            for w, sent in zip(waited, (0.3, 0.9), strict=True)
        ]
        left = queued(relations, flows, none, none, relations.constant(before), relations.constant(queue))
        assert [ends(relations, each) for each in left] == [pytest.approx(x, abs=1e-3) for x in (*ends_of_each, (0, 0))]


def test_a_bound_isn_t_above_what_packets_use():
    found = worst_network(design("own-rate"), jitter_s=0.05 * RTT, round_trips=2)
    assert found.bounded
    assert found.proved.utilization <= found.utilization_found + 1e-3
    assert found.proved.utilization <= found.replayed.utilization + 0.02  # the law's queue swings on packets
    assert found.hold_s.max() <= 0.05 * RTT


def test_a_queue_may_be_too_long():
    """The law keeps 2.4 ms waiting: a burst of 30 kB, which takes as long, comes on top, on packets too."""
    found = worst_network(design("own-rate"), jitter_s=0.0, burst_bytes=3e4, round_trips=2, most_queue_s=4e-3)
    assert found.bounded is False
    assert found.replayed.spent(found.asked, 1)[0] < 1.0
    assert found.replayed.queue_s > 4.8e-3
    assert found.proved.queue_s > 7.2e-3  # two at once, where a round trip begins
    assert "bursts kB" in found.table()


@pytest.mark.parametrize(
    ("figures", "spent"),
    [((0.95, 0.45, 5e-3), (0.5, 0.5, 0.5)), ((0.8, 0.3, 2e-2), (2.0, 2.0, 2.0)), ((1.0, 0.5, 0.0), (0.0, 0.0, 0.0))],
)
def test_what_is_spent_of_what_may_be(figures, spent):
    asked = Figures(0.9, 0.4, 0.01)
    assert Figures(*figures).spent(asked, 2) == pytest.approx(spent)
    assert Figures(*figures).spent(asked, 1) == pytest.approx((spent[0], 0.0, spent[2]))


def fluid(law, holds, bursts, at, seen, spread):
    """Shares of what bursts leave that flows are served, and the longest queue, step by step, without relations.

    Holds (N, T) and bursts (T,) [1], these at a share of their round trip; seen: shares of what waits of a burst, that
    the least RTT has; spread: of the RTTs of a round trip. Where there are bursts a flow is served as late as may be in
    one round trip of two.
    """
    pipe, C_packets, flows = PIPE / 1500.0, C / 12000.0, len(holds)

    def waits(rate):
        return (law.queue_packets + law.queue_packets_per_root_rate * np.sqrt(rate * C_packets)) / pipe

    each = np.full(flows, 1.0 / flows)
    W, rate = each + waits(each), each
    served, before, heard, sent = 0.0 * each, -each, -each, waits(each)
    queue = longest = sent.sum()
    idle, waiting = 0.0, 0.0
    for hold, burst, moment, part, wide in zip(holds.T, bursts, at, seen, spread, strict=True):
        rates = 1.0 if wide > 0.5 * spread.max() and bursts.any() else served - before
        heard = np.maximum(served - np.minimum(hold * rates, served - before), heard)
        more = np.minimum(rate, np.maximum(heard + W - sent, 0.0))
        sent, rtt = sent + more, 1.0 + queue - (1.0 - part) * waiting + hold
        late, coming = queue > 1.0, 0.0
        for come, span in ((0.0, moment), (burst, 1.0 - moment)):
            longest = max(longest, queue + come)
            queue, coming = queue + come + more.sum() * span, more.sum() * span
            idle += max(span - queue, 0.0)
            queue = max(queue - span, 0.0)
        assert not late or queue <= more.sum() + burst  # nothing is left from before this round trip
        waiting = min(max(queue - coming, 0.0), burst)
        longest = max(longest, queue)
        before, served = served, sent - (queue - waiting) * more / more.sum()
        new = W + law.gain * (W / rtt + waits(W / rtt) + wide - W)
        W = np.minimum(new, 1.25 * W + 0.5 / pipe)
        rate = SPEED * W / rtt
    left = len(bursts) - bursts.sum() + waiting
    assert served.sum() == pytest.approx(left - idle)
    return served / left, longest


@pytest.mark.parametrize(("flows", "burst"), [(1, 0.0), (2, 0.0), (1, 0.12), (2, 0.12)])
def test_no_network_of_the_fluid_is_worse_than_is_proved(flows, burst):
    """Of a thousand random ones, and all held; without bursts the bounds are close."""
    rng = np.random.default_rng(6)
    asked, jitter, T = design("own-rate", flows=flows), 0.2 if burst == 0.0 else 0.05, 4 if burst == 0.0 else 3
    found = worst_network(asked, jitter_s=jitter * RTT, burst_bytes=burst * PIPE, round_trips=T, limit_s=30.0)
    noise = asked.law.noise_share * (jitter + burst)
    draws = [(np.full((flows, T), jitter), *np.zeros((4, T)))]
    for k in range(1000):
        holds, (bursts, at, seen, spread) = rng.uniform(0, 1, (flows, T)), rng.uniform(0, 1, (4, T))
        if k % 2:
            holds, bursts, at, seen = (each.round() for each in (holds, bursts, at, seen))
        draws.append((jitter * holds, burst * bursts, at, seen, noise * spread))
    shares, queues = zip(*(fluid(asked.law, *draw) for draw in draws), strict=True)
    used, share = np.sum(shares, axis=1).min(), np.min(shares)
    assert found.proved.utilization <= used + 1e-4
    assert max(queues) * RTT <= found.proved.queue_s + 1e-6
    assert burst > 0.0 or used - 0.05 < found.proved.utilization
    if flows == 2:
        assert found.proved.share <= share + 1e-4
        assert burst > 0.0 or share - 0.08 < found.proved.share


@pytest.mark.slow
def test_losses_shorten_the_queue_that_rides_over_jitter():
    """A twentieth of the RTT, and losses that alone do no harm; bound and packets, whose random losses are more in some
    round trips, are close."""
    found = worst_network(design("own-rate"), jitter_s=0.05 * RTT, loss=0.02)
    assert found.bounded is False
    assert 0.85 < found.proved.utilization < 0.9
    assert found.replayed.utilization == pytest.approx(found.proved.utilization, abs=0.02)
    assert found.without.utilization > 0.99


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({"jitter_s": -1.0}, "jitter_s"),
        ({"jitter_s": RTT}, "jitter_s"),
        ({"jitter_s": 0.0, "burst_bytes": PIPE}, "burst_bytes"),
        ({"jitter_s": 0.0, "loss": 0.5}, "loss"),
        ({"jitter_s": 0.0, "round_trips": 0}, "round_trips"),
        ({"jitter_s": 0.0, "least_utilization": 1.5}, "least_utilization"),
        ({"jitter_s": 0.0, "most_queue_s": 1.0}, "most_queue_s"),
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
