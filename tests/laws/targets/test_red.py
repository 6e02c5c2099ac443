"""RED in the kernel's integers: the same bits as in C over all parameters, tc's weight, and the rate of marks."""

import numpy as np
import pytest
from c_support import replayed, spread

from netctrl.errors import InvalidValue
from netctrl.laws.targets.integers import U32
from netctrl.laws.targets.red import RedLaw, RedState, red_arrival, red_weight_log

# RED of Linux from its description; divisions by a reciprocal (Granlund, Montgomery, "Division by invariant integers
# using multiplication", 1994, Figure 4.1).
C = """
static struct { u32 low, high, m; int w; } law;
static struct { u64 mean; i64 count; u32 kept; } now;

static u32 quotient(u32 n, u32 d)
{
    int l = 0;
    while (l < 32 && (1ull << l) < d) l++;
    u32 magic = (u32)((((1ull << l) - d) << 32) / d + 1);
    u32 t = (u32)((u64)magic * n >> 32);
    return (u32)((t + (u64)((n - t) >> (l > 0))) >> (l > 1 ? l - 1 : 0));
}

static u64 arrives(u32 backlog, u32 draw)
{
    now.mean = now.mean - (now.mean >> law.w) + backlog;
    if (now.mean < law.low) { now.count = -1; return 0; }
    if (now.mean >= law.high) { now.count = -1; return 2; }
    if (++now.count == 0) { now.kept = quotient(draw, law.m); return 0; }
    if (((now.mean - law.low) >> law.w) * (u64)now.count < now.kept) return 0;
    now.count = 0; now.kept = quotient(draw, law.m);
    return 1;
}

static void replay(const u64 *in, u64 *out)
{
    const u64 *v = in + 1;
    if (in[0] == 0) {
        u32 width = v[1] > v[0] ? (u32)(v[1] - v[0]) : 1;
        law.w = (int)v[2]; law.low = (u32)v[0] << law.w; law.high = (u32)v[1] << law.w;
        law.m = (u32)v[3] / width ? (u32)v[3] / width : 1;
        now.mean = v[4]; now.count = (i64)v[5]; now.kept = (u32)v[6];
    } else out[3] = arrives((u32)v[0], (u32)v[1]);
    out[0] = now.mean; out[1] = (u64)now.count; out[2] = now.kept;
}
"""
FATES = {"pass": 0, "mark": 1, "force": 2}


@pytest.mark.slow
@pytest.mark.needs("compiler")
def test_the_same_bits_as_in_c(tmp_path):
    random = np.random.default_rng(1993)
    rows, expected = [], []
    for _ in range(1000):
        bits = int(random.integers(0, 32))
        most = 2 ** (31 - bits) - 1
        low, high = sorted(spread(random, most) for _ in range(2))
        law = RedLaw(
            min_bytes=low, max_bytes=high, weight_log=bits, max_probability=1 + spread(random, U32 - 1), limit_bytes=1
        )
        mean = int(random.integers(low, high + 1)) << bits if random.random() < 0.7 else spread(random, U32)
        state = RedState(mean, int(random.integers(-1, 1000)), spread(random, U32))
        rows.append((0, low, high, bits, law.max_probability, mean, state.count % 2**64, state.random))
        expected.append((mean, state.count % 2**64, state.random, 0))
        for _ in range(100):
            near = int(random.integers(low, high + 1))
            backlog, draw = near if random.random() < 0.7 else spread(random, U32), spread(random, U32)
            state, fate = red_arrival(law, state, backlog, draw)
            rows.append((1, backlog, draw))
            expected.append((state.average, state.count % 2**64, state.random, FATES[fate]))
    given = np.array([row + (0,) * (8 - len(row)) for row in rows], dtype=np.uint64)
    found = replayed(C, 8, 4, given, tmp_path)
    assert len(found) == 101_000
    assert np.array_equal(found, np.array(expected, dtype=np.uint64))
    assert set(found[:, 3]) == {0, 1, 2}


def test_the_average_is_a_moving_one():
    law = RedLaw(min_bytes=30_000, max_bytes=90_000, weight_log=9, max_probability=2**27, limit_bytes=400_000)
    state = RedState()
    for _ in range(1000):
        state, _ = red_arrival(law, state, 60_000, 0)
    assert state.average / 2**9 == pytest.approx(60_000 * (1.0 - (1.0 - law.weight) ** 1000), abs=1.0)


@pytest.mark.parametrize("average", [40_000, 60_000, 89_999])
def test_rate_of_marks_by_counting(average):
    law = RedLaw(min_bytes=30_000, max_bytes=90_000, weight_log=5, max_probability=2**29, limit_bytes=400_000)
    state, marks, count = RedState(average << 5), 0, 100_000
    for draw in np.random.default_rng(5).integers(0, 2**32, count).tolist():
        state, fate = red_arrival(law, state, average, draw)
        marks += fate == "mark"
    p = (average - 30_000) / 60_000 * 0.125
    assert law.mark_rate(average) == pytest.approx(2.0 * p / (1.0 + p), rel=5e-3)
    # Distances are uniform over 1 to 1/p: their standard deviation is below .58 of their mean.
    assert marks / count == pytest.approx(law.mark_rate(average), rel=4.0 * 0.58 / marks**0.5)


def test_rate_of_marks_in_the_kernel():
    """Linux 7.2.13 with arrivals at the line's rate, in bursts of five packets that found 61,000 to 62,000 bytes."""
    law = RedLaw(min_bytes=30_000, max_bytes=90_000, weight_log=10, max_probability=2**29, limit_bytes=400_000)
    marks, packets = 70_104, 570_006
    assert packets * law.mark_rate(61_500) == pytest.approx(marks, abs=3.0 * 0.58 * marks**0.5)


def test_rate_of_marks_in_closed_form():
    """p = 1/4: the packet that is marked is each of the first four with the same chance, the 2.5th on average."""
    law = RedLaw(min_bytes=0, max_bytes=100, weight_log=0, max_probability=2**31, limit_bytes=200)
    step = law.step * 50 / 2**32
    assert step == pytest.approx(0.25, rel=1e-7)
    assert law.mark_rate(50) == pytest.approx(1 / 2.5, rel=1e-6)
    assert (law.mark_rate(0), law.mark_rate(100)) == (0.0, 1.0)
    assert RedLaw(min_bytes=5, max_bytes=9, weight_log=0, max_probability=1, limit_bytes=9).mark_rate(4) == 0.0


def test_the_first_packet_above_the_threshold_draws_only():
    law = RedLaw(min_bytes=0, max_bytes=1000, weight_log=0, max_probability=U32, limit_bytes=2000)
    state, fate = red_arrival(law, RedState(), 999, 0)
    assert (state, fate) == (RedState(999, 0, 0), "pass")
    assert red_arrival(law, state, 999, 77) == (RedState(999, 0, 77 // law.step), "mark")
    assert red_arrival(law, state, 1000, 0) == (RedState(1000, -1, 0), "force")


def test_values_of_tc():
    """What tc 7.1.0 sent to Linux 7.2.13 for these, as `tc -d` showed it: weight 5, probability .02."""
    law = RedLaw.sent(
        limit_bytes=400_000, average_packet=1000, min_bytes=30_000, max_bytes=90_000, burst=55, ecn=True, adaptive=True
    )
    assert (law.weight_log, law.max_probability) == (5, int(0.02 * 2**32))
    default = RedLaw.sent(limit_bytes=400_000, average_packet=1000)
    assert (default.min_bytes, default.max_bytes) == (33_333, 100_000)
    assert default.weight_log == red_weight_log(33_333, 55, 1000)


@pytest.mark.parametrize("burst", [30, 31, 33, 39, 60, 200])
def test_weights_by_their_bound(burst):
    """The bound holds for the smallest number of bits, and not for one bit less."""
    bits = red_weight_log(30_000, burst, 1000)

    def holds(w):
        return burst + 1 - 30 <= (1 - (1 - 2.0**-w) ** burst) * 2**w

    assert holds(bits)
    assert bits == 1 or not holds(bits - 1)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"min_bytes": 2**27}, "min"),
        ({"max_bytes": 10}, "max"),
        ({"weight_log": 32}, "weight_log"),
        ({"max_probability": 0}, "probability"),
        ({"limit_bytes": -1}, "limit"),
        ({"nodrop": True}, "nodrop"),
        ({"ecn": 1}, "ecn"),
    ],
)
def test_what_isn_t_taken_is_named(change, argument):
    good = {"min_bytes": 30_000, "max_bytes": 90_000, "weight_log": 9, "max_probability": 2**27, "limit_bytes": 10**6}
    with pytest.raises(InvalidValue) as refused:
        RedLaw(**(good | change))
    assert refused.value.argument == argument


def test_tc_s_values_that_aren_t_taken():
    for wrong in (0.0, 1.0):
        with pytest.raises(InvalidValue, match="probability"):
            RedLaw.sent(limit_bytes=400_000, average_packet=1000, probability=wrong)
    with pytest.raises(InvalidValue, match="burst"):
        RedLaw.sent(limit_bytes=400_000, average_packet=1000, min_bytes=30_000, burst=10)
