"""DualPI2 in the kernel's integers: the same bits as in C over all parameters, gains in effect, and what tc shows."""

import json
from itertools import product

import numpy as np
import pytest
from c_support import replayed, spread
from hypothesis import given
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.laws.targets.dualpi2 import (
    DUALPI2_MAX,
    DUALPI2_ONE,
    Dualpi2Law,
    Dualpi2State,
    dualpi2_gain,
    dualpi2_kept,
    dualpi2_sent,
    dualpi2_shown,
    dualpi2_step,
    nearest_dualpi2_steps,
)
from netctrl.laws.targets.integers import U32
from netctrl.laws.targets.reading import DelayReading


@pytest.mark.slow
@pytest.mark.needs("compiler")
def test_the_same_bits_as_in_c(tmp_path):
    random = np.random.default_rng(9332)
    rows, expected = [], []
    for _ in range(1000):
        n_alpha, n_beta = (1 + spread(random, DUALPI2_MAX - 1) for _ in range(2))
        target_us, k, drops = spread(random, U32), int(random.integers(1, 256)), bool(random.integers(2))
        law = Dualpi2Law.sent(target_us=target_us, alpha=n_alpha, beta=n_beta, coupling=k, drop_overload=drops)
        state = Dualpi2State(spread(random, U32), spread(random, 2**40))
        shown = round(law.shown["alpha"] * 256)
        rows.append((0, target_us, n_alpha, n_beta, k, int(drops), *state))
        expected.append((*state, shown, law.beta))
        for _ in range(100):
            delay = spread(random, 2**63 - 1 if random.random() < 0.1 else 2**32)
            state = dualpi2_step(law, state, delay)
            rows.append((1, delay))
            expected.append((*state, shown, law.beta))
    found = replayed("linux_dualpi2.c", 8, 4, rows, tmp_path)
    assert np.array_equal(found, np.array(expected, dtype=np.uint64))


# n sent by tc, s kept by the kernel, n' that tc shows (of 256), and the probability's change over the sum of the
# delay's error and its change: dualpi2_scale_alpha_beta, dualpi2_unscale_alpha_beta and
# calculate_probability of Linux 7.2.13 (net/sched/sch_dualpi2.c), compiled as they stand and called with 10 ms.
LINUX_7_2_DUALPI2 = (
    (1, 1, 0, 0.003637979),
    (11, 11, 10, 0.040017767),
    (12, 12, 11, 0.043655746),
    (13, 13, 12, 0.047293725),
    (14, 15, 13, 0.054569682),
    (27, 28, 26, 0.101863407),
    (41, 44, 40, 0.160071068),
    (91, 97, 90, 0.352883944),
    (92, 98, 91, 0.356521923),
    (819, 879, 818, 3.197783372),
)


@pytest.mark.parametrize(("steps", "kept", "shown", "gain"), LINUX_7_2_DUALPI2)
def test_gains_are_the_kernel_s(steps, kept, shown, gain):
    assert dualpi2_gain(steps) == pytest.approx(gain, rel=1e-7)
    assert dualpi2_gain(steps) == pytest.approx(kept * 1e9 / 64 / (2**32 - 1), rel=1e-15)
    assert (dualpi2_kept(steps), dualpi2_shown(steps)) == (kept, shown)


def test_tc_shows_one_step_less():
    """n - 1 throughout; n itself only where n (2^32 - 1) is divisible by 4 10^9."""
    exact = (800_000_000, 1_600_000_000)
    around = range(DUALPI2_MAX - 50_000, DUALPI2_MAX + 1)
    assert all(dualpi2_shown(n) == n - 1 for n in (*range(1, 300_000), *around))
    assert [dualpi2_shown(n) - n for n in exact] == [0, 0]
    assert [dualpi2_shown(n + d) - n - d for n, d in product(exact, (-1, 1))] == [-1] * 4


@given(gain=st.floats(1e-4, 15.0))
def test_no_other_steps_come_nearer_to_a_gain(gain):
    off = np.abs(GAINS - gain)
    assert off[nearest_dualpi2_steps(gain)] == off.min()


GAINS = np.array([dualpi2_gain(steps) for steps in range(5000)])


# What tc 7.1.0 shows of dualpi2 in Linux 7.2.13: by default, and for `alpha 0.16 beta 3.2 target 20ms`.
SHOWN = (
    (Dualpi2Law(), '{"target":15000,"tupdate":16000,"alpha":0.15625,"beta":3.19531}'),
    (
        Dualpi2Law.sent(alpha=dualpi2_sent(0.16), beta=dualpi2_sent(3.2), target_us=20_000),
        '{"target":20000,"tupdate":16000,"alpha":0.152344,"beta":3.19531}',
    ),
)


@pytest.mark.parametrize(("law", "printed"), SHOWN)
def test_shown_as_by_tc(law, printed):
    assert json.loads(printed) == {name: float(f"{value:g}") for name, value in law.shown.items()}


def test_steps_add_the_gains_in_effect():
    law, state = Dualpi2Law(), Dualpi2State(DUALPI2_ONE // 3, 14_000_000)
    after = dualpi2_step(law, state, 20_000_000)
    rise = (after.prob - state.prob) / DUALPI2_ONE
    gains = law.gains
    assert rise == pytest.approx(gains.integral * 0.005 + gains.proportional * 0.006, rel=1e-6)
    assert after.last_delay == 20_000_000
    assert (gains.update_s, gains.target_s) == (0.016, 0.015)
    assert gains.integral == pytest.approx(0.160071068, abs=5e-10)
    assert law.reading is DelayReading.HEAD


def test_long_times_are_shortened():
    law = Dualpi2Law.sent(tupdate_us=5_000_000, step_us=5_000_000)
    assert (law.update_ns, law.step_threshold) == (U32, U32)
    assert Dualpi2Law.sent(step_packets=20).step_threshold == 20


@pytest.mark.parametrize(
    ("name", "given", "argument"),
    [
        ("alpha", 0, "alpha"),
        ("beta", 2**31, "beta"),
        ("tupdate_us", 0, "tupdate"),
        ("target_us", 2**32, "target"),
        ("coupling", 0, "coupling"),
        ("coupling", 256, "coupling"),
        ("ecn_mask", 0, "ecn_mask"),
        ("limit", 0, "limit"),
        ("step_us", -1, "step_thresh"),
        ("drop_overload", 1, "drop_overload"),
    ],
)
def test_what_isn_t_taken_is_named(name, given, argument):
    with pytest.raises(InvalidValue) as refused:
        Dualpi2Law.sent(**{name: given})
    assert refused.value.argument == argument


def test_one_threshold_of_the_step():
    with pytest.raises(InvalidValue, match="step_thresh"):
        Dualpi2Law.sent(step_us=1000, step_packets=20)


def test_gains_on_tc_s_command_line():
    assert [dualpi2_sent(gain) for gain in (1 / 256, 0.16, 3.2, 1.0)] == [1, 40, 819, 256]
    for wrong in (0.003, 1e8):
        with pytest.raises(InvalidValue, match="gain"):
            dualpi2_sent(wrong)
