"""The rule over arrays is the rule of one loop, element by element, and the map reads it right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.design.arc.design import arc_gain_bands
from netctrl.frequency.batch import gain_bands
from netctrl.frequency.margins import gain_band
from netctrl.frequency.stability_map import ADMISSIBLE, INFEASIBLE, THIN, UNCHECKED, UNSTABLE, StabilityMap
from netctrl.model.design.arc import PLANTS, ArcSetting, Plant
from netctrl.model.loop import DelayLoop
from netctrl.plants.linearize import arc_loop


@given(st.integers(0, 2**32 - 1), st.sampled_from(PLANTS), st.floats(0.05, 3.0), st.floats(0.3, 1.0))
@settings(max_examples=40)
def test_arrays_are_their_members(seed: int, plant: Plant, epoch: float, utilization: float) -> None:
    random = np.random.default_rng(seed)
    flows, rtt = 10 ** random.uniform(0, 3, 12), 10 ** random.uniform(-2, 0.5, (3, 1))
    capacity = 10 ** random.uniform(2, 5, 12)
    bands = arc_gain_bands(
        flows, rtt, ArcSetting(capacity_packet_per_s=capacity, utilization=utilization, epoch_s=epoch), plant
    )
    assert bands.low.shape == bands.high.shape == bands.limit.shape == bands.gain_binds.shape == (3, 12)
    for i, j in np.ndindex(3, 12):
        one = ArcSetting(capacity_packet_per_s=capacity[j], utilization=utilization, epoch_s=epoch)
        band = gain_band(arc_loop(flows[j], rtt[i, 0], one, plant))
        assert bands.low[i, j] == pytest.approx(band.low, rel=1e-10)
        assert bands.high[i, j] == pytest.approx(band.high, rel=1e-10)
        assert bands.limit[i, j] == pytest.approx(band.limit, rel=1e-10)
        assert bands.gain_binds[i, j] == (band.binding == "gain margin")


def test_a_loop_whose_phase_is_not_monotone_takes_the_scalar_way() -> None:
    # Slow pole, slower zero, little delay: the lag rises past 150°, falls back and rises again.
    loop = DelayLoop(gain=1.0, delay=0.05, integrators=1, leads=(3.0,), lags=(40.0, 0.5))
    band = gain_band(loop)
    assert len(band.intervals) > 1
    bands = gain_bands(1.0, [0.05, 4.0], leads=(3.0,), lags=(40.0, 0.5))
    assert (bands.low[0], bands.high[0]) == (pytest.approx(band.low), pytest.approx(band.high))


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"gain": 1.0, "delay": 1.0, "leads": (1.0, 1.0), "lags": (1.0,)}, "leads"),
        ({"gain": 1.0, "delay": 1.0}, "lags"),
        ({"gain": [1.0, -1.0], "delay": 1.0, "lags": (1.0,)}, "positive"),
        ({"gain": 1.0, "delay": [np.nan], "lags": (1.0,)}, "finite"),
    ],
)
def test_refusals(arguments: dict, names: str) -> None:
    with pytest.raises(InvalidValue, match=names):
        gain_bands(**arguments)


def test_classes_are_what_the_bounds_say() -> None:
    limit, kept = np.array([[1.0, 2.0, 4.0, np.nan]]), np.array([[0.5, 1.0, 2.0, np.nan]])
    drawn = StabilityMap(np.arange(1.0, 5.0), np.array([0.1]), limit, kept, kept, 1.5)
    assert drawn.classes.tolist() == [[UNSTABLE, THIN, ADMISSIBLE, INFEASIBLE]]
    unknown = StabilityMap(np.arange(1.0, 5.0), np.array([0.1]), limit, kept, 0.0 * kept, 1.5)
    assert unknown.classes.tolist() == [[UNSTABLE, THIN, UNCHECKED, INFEASIBLE]]
    assert drawn.gain_margin_db[0, :3] == pytest.approx(20.0 * np.log10([1 / 1.5, 2 / 1.5, 4 / 1.5]))
    # On a border, to a part in a thousand, a point is on its worse side.
    border = StabilityMap(np.arange(1.0, 5.0), np.array([0.1]), limit, kept, kept, 1.9999)
    assert border.classes.tolist() == [[UNSTABLE, UNSTABLE, THIN, INFEASIBLE]]


def test_an_unknown_plant_is_refused() -> None:
    with pytest.raises(InvalidValue, match="paper, noq, phys"):
        arc_gain_bands(50.0, 0.5, ArcSetting(capacity_packet_per_s=1250.0), "pyhs")  # ty: ignore[invalid-argument-type]


def test_map_as_a_table() -> None:
    limit, kept = np.array([[4.0, 1.0]]), np.array([[2.0, 0.5]])
    table = StabilityMap(np.array([5.0, 6.0]), np.array([0.1]), limit, kept, kept, 1.5).to_pandas()
    assert list(table["flows"]) == [5.0, 6.0]
    assert list(table["class"]) == [ADMISSIBLE, UNSTABLE]


def test_a_phase_margin_that_the_lag_starts_beyond_is_refused() -> None:
    with pytest.raises(InvalidValue, match="phase_margin_deg"):
        gain_bands(1.0, 1.0, lags=(1.0,), phase_margin_deg=(30.0, 95.0))
