"""Whatever is handed to pacing's public functions, they answer, or refuse it by its name."""

from math import inf, nan

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.laws.pacing.pacing import PacingSample, PacingState, pace_many, pace_trace, pacer, pacing_values

LAWS = [netctrl.pacing(mode=mode).law for mode in ("paper", "own-rate")]
ODD = [
    None,
    True,
    0,
    -1,
    1,
    3,
    1e-320,
    1e308,
    -0.5,
    nan,
    inf,
    -inf,
    10**400,
    1j,
    "",
    "x",
    "paper",
    b"x",
    [],
    [1.0],
    ["a"],
]
ODD += [
    [[1.0], [1.0, 2.0]],
    {},
    {"a": 1},
    (),
    object(),
    np.array([1.0, nan]),
    np.array(["a"]),
    np.zeros((2, 2)),
    lambda t: t,
]
ODD += [range(3), LAWS[0], PacingState(np.zeros(3)), netctrl.Flow(sender="cubic")]

SHORT = {
    netctrl.pacing: {"mode": "own-rate"},
    netctrl.start_pacing: {"law": LAWS[1]},
    pacer: {"law": LAWS[1]},
    netctrl.pace: {"ready": pacer(LAWS[1]), "state": netctrl.start_pacing(LAWS[1]), "sample": PacingSample(0.0, 0.02)},
    pace_trace: {"law": LAWS[1], **{name: [0.1, 0.2] for name in ("times", "rtts", "delivered", "in_flight", "lost")}},
    pace_many: {
        "law": LAWS[1],
        "states": [netctrl.start_pacing(LAWS[1]).values],
        "times": [0.1, 0.2],
        **{name: [[0.1, 0.2]] for name in ("rtts", "delivered", "in_flight", "lost")},
    },
}
ASKED = [
    "mode",
    "psi",
    "xi",
    "past_rtts",
    "past_rates",
    "period_s",
    "max_rate_bit_per_s",
    "step",
    "estimator",
    "smoothing",
]
ASKED += ["packet_size_bytes", "rtt_s", "bottleneck_bit_per_s", "buffer_bytes", "flows"]


def calls():
    for function, usual in SHORT.items():
        names = ASKED if function is netctrl.pacing else usual
        for name in names:
            yield pytest.param(function, usual, name, id=f"{function.__name__}-{name}")


@pytest.mark.parametrize(("function", "usual", "name"), list(calls()))
def test_odd_arguments_are_refused_by_their_names(function, usual, name):
    for odd in ODD:
        try:
            function(**usual | {name: odd})
        except NetctrlError as refusal:
            assert isinstance(refusal, InvalidValue), (odd, refusal)
            assert refusal.argument in (*usual, *ASKED), (odd, refusal)
        except (TypeError, ValueError) as refusal:
            assert name in str(refusal), (odd, refusal)


@pytest.mark.parametrize("law", LAWS)
def test_a_state_of_another_law_is_refused(law):
    """A kernel would write beyond its end."""
    other = netctrl.start_pacing(LAWS[law is LAWS[0]])
    with pytest.raises(InvalidValue, match="state"):
        netctrl.pace(pacer(law), other, PacingSample(0.0, 0.02))
    with pytest.raises(InvalidValue, match="states"):
        pace_many(law, [other.values], [0.1], [[0.02]])
    with pytest.raises(InvalidValue, match="rtts"):
        pace_many(law, [netctrl.start_pacing(law).values], [0.1], None)
    assert set(pacing_values(law, netctrl.start_pacing(law))) >= {"rate", "theta" if law is LAWS[0] else "min_rtt"}
