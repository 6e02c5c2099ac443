"""Gains scheduled along the curve: the same reference, the same speed everywhere."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracked_links import driven, tracked

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.tracking.schedule import GainSchedule, gain_schedule, scheduled
from netctrl.laws.tracking.tracking import start_tracking, step_tracking, tracking_gains
from netctrl.model.identified import IdentifiedModel
from netctrl.scenario.builders import access_link


def around(rate: float, gain: float, outputs: tuple[str, ...] = ("y",)) -> IdentifiedModel:
    """A gain, five sixths of it at once, around a rate."""
    return IdentifiedModel(
        A=[[0.4]],
        B=[[0.6]],
        C=[[gain / 6.0]] * len(outputs),
        D=[[gain * 5.0 / 6.0]] * len(outputs),
        dt=1.0,
        inputs=("u",),
        outputs=outputs,
        input_offset=[rate],
        K=np.full((1, len(outputs)), 0.1),
        innovation_covariance=np.eye(len(outputs)),
    )


LAW = netctrl.connet(around(5.0, 2.0), limits=[(0.0, 20.0)]).law


@given(st.floats(0.01, 50.0), st.floats(0.01, 50.0), st.floats(-10.0, 30.0), st.floats(-5.0, 5.0))
def test_where_the_reference_is_met_nothing_changes_and_slopes_become_the_law_s(low, high, applied, reference):
    schedule = gain_schedule(LAW, [around(10.0, high), around(1.0, low)])
    assert schedule.points.tolist() == [1.0, 10.0]
    at = np.array([applied])
    assert scheduled(schedule, np.array([reference]), np.array([reference]), at) == pytest.approx([reference])
    seen = scheduled(schedule, np.array([reference + 1.0]), np.array([reference]), np.array([1.0]))
    assert seen[0] - reference == pytest.approx(np.clip(2.0 / low, 0.01, 100.0))
    between = float(scheduled(schedule, np.array([1.0]), np.array([0.0]), at)[0])
    ends = sorted(schedule.factors[:, 0])
    assert ends[0] * (1.0 - 1e-12) <= between <= ends[1] * (1.0 + 1e-12)


def test_on_a_curve_each_step_takes_the_same_course():
    """y = u²/20, whose slope at 2 is a tenth of that at 20: with the schedule of its slopes steps look alike."""
    models = [around(rate, rate / 10.0) for rate in (2.0, 5.0, 10.0, 20.0)]
    schedule = gain_schedule(LAW, models)

    def share_after(first: float, with_schedule: bool) -> float:
        """Of a small step of the reference, after 6 samples."""
        gains = tracking_gains(LAW)
        state, before, after = start_tracking(gains, np.array([first])), first**2 / 20.0, (1.02 * first) ** 2 / 20.0
        for k in range(207):
            y = np.array([state.applied[0] ** 2 / 20.0])
            r = np.array([before if k < 200 else after])
            shown = scheduled(schedule, y, r, state.applied) if with_schedule else y
            state = step_tracking(gains, state, shown, r)
        return float((state.applied[0] ** 2 / 20.0 - before) / (after - before))

    alike = [share_after(first, True) for first in (2.5, 6.0, 14.0)]
    apart = [share_after(first, False) for first in (2.5, 6.0, 14.0)]
    assert np.ptp(alike) < 0.1
    assert np.ptp(apart) > 3.0 * np.ptp(alike)


@pytest.mark.slow
def test_on_packets_low_delays_settle_sooner_and_high_rates_are_calmer():
    models = []
    for seed, low in enumerate((5.0, 20.0, 35.0, 50.0, 65.0, 80.0)):
        rates = netctrl.gbn(2000, (low, low + 10.0), np.random.default_rng(seed))[:, 0]
        run = driven(rates * 1e6, duration="2000s", seed=seed)  # of half as many, one gain isn't determined
        models.append(netctrl.identify(netctrl.access_link_signals(run), order=1).model)
    law = netctrl.connet(models[3], track="delay", limits=[(0.0, 95.0)]).law
    schedule = gain_schedule(law, models)
    assert (np.diff(schedule.factors[:, 0]) < 0.0).all()  # the curve becomes steeper
    reference = np.repeat([[0.676, 0.36], [0.464, 0.045], [1.434, 0.918]], 150, axis=0)
    late, calm = {}, {}
    for name, used in (("fixed", None), ("scheduled", schedule)):
        errors, spread = [], []
        for seed in range(4):
            scenario = access_link(duration="450s", seed=20 + seed)
            run = tracked(scenario, law, reference, schedule=used, first_rate=50e6)
            errors.append(run.measured[180:240, 0].mean() / 0.464 - 1.0)
            spread.append(run.rate[375:].std())
            assert run.measured[375:, 0].mean() == pytest.approx(1.434, rel=0.03)
        late[name], calm[name] = abs(np.mean(errors)), np.mean(spread)
    assert late["scheduled"] < 0.5 * late["fixed"]
    assert calm["scheduled"] < 0.5 * calm["fixed"]


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ([around(1.0, 1.0)], "two models or more"),
        ([around(1.0, 1.0), around(1.0, 2.0)], "different inputs"),
        ([around(1.0, 1.0), around(2.0, -1.0)], "sign"),
        ([around(1.0, 1.0), around(2.0, 0.0)], "sign"),
        ([around(1.0, 1.0), around(2.0, 1.0, ("y", "z"))], "two models or more of u -> y"),
    ],
)
def test_what_makes_no_schedule_is_named(models, said):
    with pytest.raises(InvalidValue, match=said):
        gain_schedule(LAW, models)


def test_two_inputs_have_no_curve():
    law = msgspec.structs.replace(LAW, inputs=("u", "v"))
    with pytest.raises(InvalidValue, match="a curve has one input"):
        gain_schedule(law, [around(1.0, 1.0), around(2.0, 1.0)])
    assert isinstance(gain_schedule(LAW, [around(1.0, 1.0), around(2.0, 1.0)]), GainSchedule)
