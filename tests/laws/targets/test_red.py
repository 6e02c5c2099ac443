"""RED's parameters as tc sends them and the kernel takes them."""

import pytest

from netctrl.core.errors import InvalidValue
from netctrl.laws.targets.red import RedLaw, red_weight_log


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
