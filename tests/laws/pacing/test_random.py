"""Whatever is handed to pacing's public functions, they answer, or refuse it by its name."""

from math import inf, nan

import numpy as np
import pytest

import netctrl
from netctrl.errors import InvalidValue, NetctrlError
from netctrl.laws.pacing.pacing import PacingSample, PacingState, pace_many, pacer, pacing_values
from netctrl.sim.bottleneck.run import simulate_bottleneck

LAWS = [netctrl.pacing().law, netctrl.pacing(mode="target-rtt").law]
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
ODD += [range(3), LAWS[0], PacingState(np.zeros(3)), netctrl.CubicFlow(0.02), netctrl.PacedFlow("law", 0.02)]
ODD += [[netctrl.CubicFlow(each)] for each in (nan, "x", None, 1e-300)]
ODD += [[netctrl.CubicFlow(0.02, start, stop)] for start, stop in ((nan, 1.0), ("x", inf), (0.0, None))]
ODD += [[netctrl.PacedFlow(LAWS[1], 0.02, window=each)] for each in (3, [], "westwood")]
ODD += [[netctrl.RateCap(each, 0.02)] for each in (nan, "x", -1.0)] + [[netctrl.BbrFlow(0.02, first_place=1.5)]]

SHORT = {
    netctrl.pacing: {"mode": "target-rtt"},
    simulate_bottleneck: {
        "flows": [netctrl.PacedFlow(LAWS[1], 0.02)],
        "capacity": 1e7,
        "buffer_bytes": 1e5,
        "duration_s": 0.1,
        "queue": "droptail",
        "bin_s": 0.02,
        "noise_s": 1e-4,
        "packet_size_bytes": 1500.0,
        "random": np.random.default_rng(1),
    },
    netctrl.start_pacing: {"law": LAWS[1]},
    pacer: {"law": LAWS[1]},
    netctrl.pace: {"ready": pacer(LAWS[1]), "state": netctrl.start_pacing(LAWS[1]), "sample": PacingSample(0.0, 0.02)},
    netctrl.pace_trace: {
        "law": LAWS[1],
        **{name: [0.1, 0.2] for name in ("times", "rtts", "delivered", "in_flight", "lost")},
    },
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
ASKED += ["competitive", "packet_size_bytes", "rtt_s", "bottleneck_bit_per_s", "buffer_bytes", "flows"]


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
    assert set(pacing_values(law, netctrl.start_pacing(law))) >= {"rate", "min_rtt" if law is LAWS[1] else "theta"}


def test_a_run_without_end_is_refused():
    with pytest.raises(InvalidValue, match="duration_s"):
        simulate_bottleneck([netctrl.CubicFlow(1e-3)], 1e9, 1e6, 1e9)
    with pytest.raises(InvalidValue, match="duration_s"):
        simulate_bottleneck([netctrl.CubicFlow(1e-9), netctrl.CubicFlow(10.0)], 1e9, 1e6, 1e-6)
