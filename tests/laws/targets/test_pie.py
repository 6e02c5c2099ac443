"""PIE in the kernel's integers: the same bits as in C over all parameters, gains, choices, and what tc shows."""

import numpy as np
import pytest
from c_support import replayed, spread

from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.pie import pie_scale
from netctrl.laws.targets.integers import U32, U64
from netctrl.laws.targets.jiffies import longest_us
from netctrl.laws.targets.pie import PIE_SPREAD, PIE_START, PieState, pie_drop_rate, pie_step, pie_update
from netctrl.laws.targets.pie_law import PIE_ONE, PieLaw, pie_gain, pie_halvings
from netctrl.laws.targets.reading import DelayReading

LAWS, STEPS = 1000, 100


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
        for _ in range(STEPS):
            backlog = spread(random, U32 if random.random() < 0.1 else 2**20)
            if not law.dq_rate_estimator:
                state = state._replace(qdelay=spread(random, 2**26))
            rows.append((4, state.qdelay))
            expected.append((*state, 0))
            state = pie_update(law, state, backlog)
            rows.append((1, backlog))
            expected.append((*state, 0))
    found = replayed("linux_pie.c", 18, 10, rows, tmp_path)
    assert np.array_equal(found, np.array(expected, dtype=np.uint64))


def test_gains_in_effect_are_rfc_8033_s_to_one_part_in_100_000():
    low = [1.0 - pie_gain(n, halvings) * 16.0 * 2.0**halvings / n for n in range(1, 33) for halvings in range(12)]
    assert 0.0 < max(low) < 1e-5
    assert min(low) >= 0.0
    for p in (1.0, 0.1, 0.0999, 0.01, 0.00999, 5e-4, 5e-5, 5e-6, 5e-7, 0.0):
        assert 0.5 ** pie_halvings(p) == pie_scale(p)


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
