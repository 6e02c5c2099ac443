"""PIE in the kernel's integers: the same bits as in C over all parameters, gains, choices, and what tc shows."""

import numpy as np
import pytest
from c_support import replayed, spread

from netctrl.errors import InvalidValue
from netctrl.laws.aqm.pie import pie_scale
from netctrl.laws.targets.integers import U32, U64
from netctrl.laws.targets.jiffies import longest_us
from netctrl.laws.targets.pie import (
    PIE_SPREAD,
    PIE_START,
    PieState,
    pie_chosen,
    pie_departed,
    pie_drop_rate,
    pie_enqueue,
    pie_step,
    pie_update,
)
from netctrl.laws.targets.pie_law import PIE_ONE, PieLaw, pie_gain, pie_halvings
from netctrl.laws.targets.reading import DelayReading

# PIE of Linux from its description: a ladder of divisions, differences in 64 bits without sign, a sum of probabilities.
C = """
static const u64 ONE = UINT64_MAX / 256;
static struct { u64 target; u32 alpha, beta, limit; u64 ecn, bytemode, by_rate, percent; } law;
static struct { u64 p, delay, before, burst, sum, stamp, count; u32 rate, backlog; } now;

static u64 gain(u32 steps)
{
    u64 g = steps * (ONE / 15625000u) / 16;
    for (u32 part = 10; part <= 1000000; part *= 10)
        if (now.p < ONE / part) g /= part == 10 ? 2 : 4;
    return g;
}

static void forget(void)
{
    now.burst = 150000000 / 64; now.sum = 0; now.rate = 0;
    now.stamp = now.count = UINT64_MAX;
}

static void update(u32 backlog)
{
    u64 d = now.delay, before = now.before;
    if (law.by_rate) {
        before = now.before = now.delay;
        d = now.rate ? (u32)(backlog * 256u) / now.rate : 0;
    }
    int may_decay = d || !backlog;
    i64 step = (i64)(gain(law.alpha) * (d - law.target) + gain(law.beta) * (d - before));
    if (now.p >= ONE / 10 && step > (i64)(ONE / 50)) step = (i64)(ONE / 100 * 2);
    if (d > 250000000 / 64) step = (i64)((u64)step + ONE / 50);
    u64 p = now.p + (u64)step;
    if (step > 0 && p < now.p) { p = ONE; may_decay = 0; }
    if (step <= 0 && p > now.p) p = 0;
    if (may_decay && !d && !before) p -= p / 64;
    now.p = p; now.delay = d; now.backlog = backlog;
    u64 half = law.target / 2;
    if (!p && d < half && now.before < half && !(law.by_rate && !now.rate)) forget();
    if (!law.by_rate) now.before = d;
}

static void spend(u32 t) { now.burst = t < now.burst ? now.burst - t : 0; }

static void leaves(u64 t, u64 came, u32 size, u32 behind)
{
    if (!law.by_rate) {
        u32 passed = now.stamp == UINT64_MAX ? 0 : (u32)(t - now.stamp);
        now.delay = behind ? t - came : 0;
        now.stamp = t;
        spend(passed);
        return;
    }
    if (now.count == UINT64_MAX && behind >= 16384) { now.stamp = t; now.count = 0; }
    if (now.count == UINT64_MAX) return;
    now.count += size;
    u32 passed = (u32)(t - now.stamp);
    if (now.count < 16384 || !passed) return;
    u32 rate = (u32)(now.count * 256) / passed;
    now.rate = now.rate ? now.rate - now.rate / 8 + rate / 8 : rate;
    if (behind < 16384) now.count = UINT64_MAX;
    else { now.count = 0; now.stamp = t; }
    spend(passed);
}

static int chosen(u32 backlog, u32 size, u32 mtu, u64 draw)
{
    if (now.burst || (now.p < ONE / 5 && now.delay < law.target / 2) || backlog < 2 * mtu) return 0;
    u64 p = law.bytemode && size <= mtu ? size * (now.p / mtu) : now.p;
    now.sum = p ? now.sum + p : 0;
    if (now.sum < ONE / 100 * 85) return 0;
    if (now.sum >= ONE / 2 * 17) return 1;
    if (draw / 256 >= p) return 0;
    now.sum = 0;
    return 1;
}

static u64 comes(u32 packets, u32 backlog, u32 size, u32 mtu, u64 draw, u64 ect)
{
    if (packets < law.limit) {
        if (!chosen(backlog, size, mtu, draw)) return 0;
        if (law.ecn && ect && now.p <= ONE * law.percent / 100) return 1;
    }
    now.sum = 0;
    return 2;
}

static void replay(const u64 *in, u64 *out)
{
    const u64 *v = in + 1;
    if (in[0] == 0) {
        law.target = v[0]; law.alpha = (u32)v[1]; law.beta = (u32)v[2]; law.limit = (u32)v[3];
        law.ecn = v[4]; law.bytemode = v[5]; law.by_rate = v[6]; law.percent = v[7];
        now.p = v[8]; now.delay = v[9]; now.before = v[10]; now.burst = v[11]; now.sum = v[12];
        now.stamp = v[13]; now.count = v[14]; now.rate = (u32)v[15]; now.backlog = (u32)v[16];
    }
    if (in[0] == 1) update((u32)v[0]);
    if (in[0] == 2) leaves(v[0], v[1], (u32)v[2], (u32)v[3]);
    if (in[0] == 3) out[9] = comes((u32)v[0], (u32)v[1], (u32)v[2], (u32)v[3], v[4], v[5]);
    out[0] = now.p; out[1] = now.delay; out[2] = now.before; out[3] = now.burst; out[4] = now.sum;
    out[5] = now.stamp; out[6] = now.count; out[7] = now.rate; out[8] = now.backlog;
}
"""
FATES = {"pass": 0, "mark": 1, "drop": 2}
LAWS, STEPS = 1000, 100
CYCLE = 16384
"""Of measuring the rate of departures [byte], QUEUE_THRESHOLD."""


def drawn_law(random):
    """A law over the whole range; its state afterwards."""
    whole = random.random() < 0.5
    law = PieLaw(
        target_ticks=spread(random, U32 * 1000 // 64),
        update_jiffies=1,
        alpha=spread(random, U32 if whole else 32),
        beta=spread(random, U32 if whole else 32),
        limit=spread(random, U32),
        ecn=bool(random.integers(2)),
        bytemode=bool(random.integers(2)),
        dq_rate_estimator=bool(random.integers(2)),
        ecn_percent=int(random.integers(101)),
    )
    most = PieState(U64, 2**40, 2**40, 150_000_000 >> 6, U64, U64, 2**20, U32, U32)
    state = PieState(*(spread(random, bound) for bound in most))
    if random.random() < 0.5:
        state = PIE_START._replace(prob=spread(random, PIE_ONE))
    if random.random() < 0.5:
        state = state._replace(dq_count=U64)
    return law, state


def drawn_step(random, law, state, now):
    """Numbers of a step, the state after it and its fate."""
    backlog = spread(random, U32 if random.random() < 0.1 else 2**20)
    backlog = int(random.choice([backlog, CYCLE - 1, CYCLE, CYCLE + 1], p=[0.85, 0.05, 0.05, 0.05]))
    kind = int(random.integers(1, 4))
    if kind == 1:
        return (1, backlog), pie_update(law, state, backlog), 0
    size = int(random.integers(0, 2**16))
    if random.random() < 0.2 and state.dq_count < CYCLE:
        size = CYCLE - state.dq_count  # ends the cycle exactly
    if kind == 2:
        came = now - spread(random, min(now, 2**26))
        return (2, now, came, size, backlog), pie_departed(law, state, now, came, size, backlog), 0
    mtu, draw, packets = (
        int(random.integers(1, 9001)),
        int(random.integers(0, U64, dtype=np.uint64)),
        spread(random, U32),
    )
    ect = bool(random.integers(2))
    if random.random() < 0.9:
        packets = packets % max(law.limit, 1)
    state, fate = pie_enqueue(
        law, state, packets=packets, backlog_bytes=backlog, packet_bytes=size, mtu=mtu, random=draw, ecn=ect
    )
    return (3, packets, backlog, size, mtu, draw, int(ect)), state, FATES[fate]


@pytest.mark.slow
@pytest.mark.needs("compiler")
def test_the_same_bits_as_in_c(tmp_path):
    random = np.random.default_rng(8033)
    rows, expected = [], []
    for _ in range(LAWS):
        law, state = drawn_law(random)
        flags = (int(law.ecn), int(law.bytemode), int(law.dq_rate_estimator), law.ecn_percent)
        rows.append((0, law.target_ticks, law.alpha, law.beta, law.limit, *flags, *state))
        expected.append((*state, 0))
        now = spread(random, 2**50)
        for _ in range(STEPS):
            now += spread(random, 2**24)
            row, state, fate = drawn_step(random, law, state, now)
            rows.append(row)
            expected.append((*state, fate))
    given = np.array([row + (0,) * (18 - len(row)) for row in rows], dtype=np.uint64)
    found = replayed(C, 18, 10, given, tmp_path)
    assert len(found) == LAWS * (STEPS + 1)
    assert np.array_equal(found, np.array(expected, dtype=np.uint64))
    assert set(found[:, 9]) == {0, 1, 2}


def test_gains_in_effect_are_rfc_8033_s_to_one_part_in_100_000():
    low = [1.0 - pie_gain(n, halvings) * 16.0 * 2.0**halvings / n for n in range(1, 33) for halvings in range(12)]
    assert 0.0 < max(low) < 1e-5
    assert min(low) >= 0.0
    for p in (1.0, 0.1, 0.0999, 0.01, 0.00999, 5e-4, 5e-5, 5e-6, 5e-7, 0.0):
        assert 0.5 ** pie_halvings(p) == pie_scale(p)


@pytest.mark.parametrize("p", [0.2, 0.05, 5e-3, 5e-4, 5e-5, 5e-6, 5e-7])
def test_a_step_adds_the_gains_in_effect(p):
    law = PieLaw.sent(target_us=20_000, alpha=3, beta=17)
    state = PieState(prob=round(p * PIE_ONE), qdelay_old=330_000)
    gains, delay = law.gains(p), 345_000
    rise = (pie_step(law, state, delay * 64).prob - state.prob) / PIE_ONE
    errors = (delay - law.target_ticks) * 64e-9, (delay - state.qdelay_old) * 64e-9
    assert rise == pytest.approx(gains.integral * errors[0] + gains.proportional * errors[1], rel=1e-4)
    assert gains.target_s == 0.02


def test_large_steps_are_bounded_and_long_delays_add_2_percent():
    law = PieLaw.sent(alpha=32, beta=32)
    at_tenth = PieState(prob=PIE_ONE // 10)
    assert pie_step(law, at_tenth, 200_000_000).prob == PIE_ONE // 10 + PIE_ONE // 100 * 2
    longer = pie_step(law, at_tenth, 250_000_064).prob
    assert longer == PIE_ONE // 10 + PIE_ONE // 100 * 2 + PIE_ONE // 50
    assert pie_step(law, at_tenth, 250_000_000).prob == PIE_ONE // 10 + PIE_ONE // 100 * 2


def test_the_probability_winds_up_beyond_1():
    law, state = PieLaw(), PieState(prob=PIE_ONE)
    for _ in range(100):
        state = pie_step(law, state, 100_000_000)
    assert state.prob > 1.5 * PIE_ONE


def test_it_decays_by_a_64th_and_forgets_where_it_reaches_0():
    law = PieLaw()
    idle = PieState(prob=10**9, qdelay_old=0, accu_prob=5, burst_time=0)
    small = PieLaw(alpha=0, beta=0)
    assert pie_update(small, idle, 0).prob == 10**9 - 10**9 // 64
    assert pie_update(small, idle, 1).prob == 10**9  # a small backlog with a delay of 0
    assert pie_update(law, idle, 0) == PIE_START  # the target pulls it to 0


def test_packets_are_spared_by_burst_allowance_low_delay_and_short_queues():
    law = PieLaw(ecn=True)
    ready = PieState(prob=PIE_ONE // 20, qdelay=law.target_ticks, burst_time=0, accu_prob=PIE_ONE)
    for state, backlog in (
        (ready._replace(burst_time=1), 10_000),
        (ready._replace(qdelay=law.target_ticks // 2 - 1), 10_000),
        (ready, 2 * 1514 - 1),
    ):
        assert pie_chosen(law, state, backlog, 1514, 1514, 0) == (state, False)
    assert pie_chosen(law, ready, 10_000, 1514, 1514, 0)[1]
    full: dict[str, int] = {"backlog_bytes": 10_000, "packet_bytes": 1514, "mtu": 1514, "random": 0}
    assert pie_enqueue(law, ready, packets=5, ecn=True, **full)[1] == "mark"
    assert pie_enqueue(law, ready, packets=5, ecn=False, **full)[1] == "drop"
    assert pie_enqueue(law, ready._replace(prob=PIE_ONE // 10 + 1), packets=5, ecn=True, **full)[1] == "drop"
    assert pie_enqueue(law, ready, packets=1000, ecn=True, **full)[1] == "drop"


def test_marks_stay_on_until_the_sum_overflows():
    law, p = PieLaw(ecn=True), PIE_ONE // 12
    state, count = PieState(prob=p, qdelay=law.target_ticks, burst_time=0, accu_prob=PIE_ONE // 2 * 17), 0
    fate = "mark"
    while fate == "mark":
        state, fate = pie_enqueue(
            law, state, packets=9, backlog_bytes=20_000, packet_bytes=1500, mtu=1514, random=U64, ecn=True
        )
        count += fate == "mark"
    assert count == (U64 - PIE_ONE // 2 * 17) // p == pytest.approx(247.5 * 12, abs=2)


def test_marks_stay_on_once_the_sum_has_reached_8_5():
    law = PieLaw(ecn=True)
    state = PieState(prob=PIE_ONE // 100, qdelay=law.target_ticks, burst_time=0, accu_prob=PIE_ONE // 2 * 17)
    never = U64  # a random number with which nothing is chosen by chance
    fates = []
    for ect in (True,) * 20 + (False, True):
        state, fate = pie_enqueue(
            law, state, packets=9, backlog_bytes=20_000, packet_bytes=1500, mtu=1514, random=never, ecn=ect
        )
        fates.append(fate)
    assert fates == ["mark"] * 20 + ["drop", "pass"]


@pytest.mark.parametrize("p", [0.9, 0.3, 0.02, 0.004])
def test_rate_of_drops_by_counting(p):
    law, random = PieLaw(), np.random.default_rng(17)
    state = PieState(prob=round(p * PIE_ONE), qdelay=law.target_ticks, burst_time=0)
    count, drops = 60_000, 0
    for draw in random.integers(0, U64, count, dtype=np.uint64).tolist():
        state, fate = pie_enqueue(
            law, state, packets=9, backlog_bytes=20_000, packet_bytes=1500, mtu=1514, random=draw, ecn=False
        )
        drops += fate == "drop"
    spread_of_count = (p * (1.0 - p) / count) ** 0.5  # more than that of renewals as regular as these
    assert drops / count == pytest.approx(pie_drop_rate(p), abs=4.0 * spread_of_count)


def test_rate_of_marks_in_the_kernel():
    """Linux 7.2.13 with a standing queue, p constant: 29,354 marks of 2.65 million packets outside of runs of marks."""
    p, marks, packets = 0.020294, 29_354, 2_650_000
    deviation = 0.54 * marks**0.5  # of the count: distances deviate by .54 of their mean
    assert packets * pie_drop_rate(p) == pytest.approx(marks, abs=3.0 * deviation)


def test_rate_of_drops_in_closed_form():
    """p = 1/2: the sum reaches .85 at the second packet, 8.5 at the 17th; nothing is dropped for sure before."""
    share = [0.5 ** (k - 1) for k in range(2, 17)] + [0.5**15]
    mean = sum(n * chance for n, chance in zip(range(2, 18), share, strict=True))
    assert pie_drop_rate(0.5) == pytest.approx(1.0 / mean, rel=1e-12)
    assert pie_drop_rate(1e-4) * PIE_SPREAD == pytest.approx(1e-4, rel=1e-4)
    assert (pie_drop_rate(0.0), pie_drop_rate(1.0)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("hz", "shown", "runs"), [(100, 20_000, 0.03), (250, 16_000, 0.02), (300, 16_666, 0.02), (1000, 15_000, 0.016)]
)
def test_the_default_s_interval_in_effect_and_as_shown(hz, shown, runs):
    law = PieLaw.sent(hz=hz)
    assert law.update_s == pytest.approx(runs)
    assert law.shown == {"target": 15_000, "tupdate": shown, "alpha": 2, "beta": 20}


def test_fq_pie_s_rounds_of_2048_flows():
    times = {flows: round(PieLaw.sent(flows=flows, hz=1000).update_s * 1000) for flows in (1, 2048, 2049, 65536)}
    assert times == {1: 16, 2048: 16, 2049: 17, 65536: 16 + 31}


def test_targets_as_shown():
    """Linux 7.2 shows 9 us for 10 us; what is above 2^32 ns is lost from what it shows, not from the law."""
    assert PieLaw.sent(target_us=10).shown["target"] == 9
    assert PieLaw.sent(target_us=20_000).shown["target"] == 20_000
    law = PieLaw.sent(target_us=5_000_000)
    assert law.shown["target"] == (5_000_000_000 - 2**32) // 1000
    assert law.target_s == 5.0


def test_the_delay_that_it_reads():
    assert PieLaw().reading is DelayReading.SOJOURN
    assert PieLaw(dq_rate_estimator=True).reading is DelayReading.BACKLOG
    assert (PieLaw().reading.age_s(0.02), DelayReading.BACKLOG.age_s(0.02)) == (0.02, 0.0)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("alpha", 33),
        ("beta", -1),
        ("tupdate", 0),
        ("tupdate", longest_us(250) + 1),
        ("target", 2**32),
        ("limit", 2**32),
        ("hz", 500),
        ("flows", 0),
        ("ecn", 1),
    ],
)
def test_what_isn_t_taken_is_named(name, wrong):
    arguments = {"target": "target_us", "tupdate": "tupdate_us"}
    with pytest.raises(InvalidValue) as refused:
        PieLaw.sent(**{arguments.get(name, name): wrong})
    assert refused.value.argument == name


def test_the_kernel_takes_gains_that_tc_doesn_t():
    assert PieLaw(alpha=U32).alpha == U32
    with pytest.raises(InvalidValue, match="update_jiffies"):
        PieLaw(update_jiffies=0)
