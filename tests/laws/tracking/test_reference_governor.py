"""The reference governor: inputs stay off their limits, references are reached where they can be."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.design.connet.design import connet
from netctrl.laws.tracking.reference_governor import attainable, govern, reference_governor
from netctrl.laws.tracking.tracking import start_tracking, step_tracking, tracking_gains
from netctrl.model.datasets import model_path
from netctrl.model.identified import read_model

PRINTED = read_model(model_path("connet-paper"))
GAIN = np.array([0.026690, 0.019849])


def run(law, desired, steps, governor=None):
    """Outputs, inputs before the limits, and references of the model under its law."""
    gains = tracking_gains(law)
    x, state = np.zeros(2), start_tracking(gains)
    reference = law.output_offset.copy()
    rows = []
    for _ in range(steps):
        v = state.applied - law.input_offset
        y = law.C @ x + law.D @ v
        x = law.A @ x + law.B @ v
        if governor is not None:
            reference = govern(governor, state, reference, desired)
        state = step_tracking(gains, state, y, desired if governor is None else reference)
        rows.append((y, state.commanded, reference))
    return [np.array(part) for part in zip(*rows, strict=True)]


@pytest.mark.parametrize("weight", [1e-6, 1e-2])
@pytest.mark.parametrize("rate", [20.0, 70.0, 90.0])
def test_inputs_stay_within_limits_and_the_reference_is_reached(rate, weight):
    law = connet(PRINTED, track="delay", limits=[(0.0, 95.0)], input_weight=weight).law
    desired = rate * GAIN
    outputs, commanded, _ = run(law, desired, 600, reference_governor(law))
    assert commanded.min() >= -1e-9
    assert commanded.max() <= 95.0 + 1e-9
    assert outputs[-1, 0] == pytest.approx(desired[0], rel=1e-3)
    hasty = connet(PRINTED, track="delay", limits=[(0.0, 95.0)], input_weight=1e-6).law
    if weight == 1e-6 and rate == 90.0:
        assert run(hasty, desired, 600)[1].max() > 95.0  # without it the limits are reached


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(st.floats(-3.0, 8.0), st.floats(0.0, 0.2))
def test_what_cannot_be_had_becomes_the_nearest_that_can(delay, margin):
    law = connet(PRINTED, track="delay", limits=[(0.0, 95.0)]).law
    governor = reference_governor(law, margin=margin)
    outputs, commanded, _ = run(law, np.array([delay, 0.0]), 800, governor)
    low, high = margin * 95.0, (1.0 - margin) * 95.0
    nearest = np.clip(delay / PRINTED_GAIN, low, high) * PRINTED_GAIN
    assert outputs[-1, 0] == pytest.approx(nearest, abs=3e-3)
    assert commanded.max() <= max(high, 0.0) + 1e-6
    possible = attainable(governor, np.array([delay, 0.0]))
    inside = min(delay / PRINTED_GAIN - low, high - delay / PRINTED_GAIN)
    assert possible == (inside >= 0.0) or abs(inside) < 1e-6


PRINTED_GAIN = float((PRINTED.C @ np.linalg.solve(np.eye(2) - PRINTED.A, PRINTED.B) + PRINTED.D)[0, 0])


def test_other_laws_and_margins_are_refused():
    law = connet(PRINTED).law
    with pytest.raises(InvalidValue, match="margin"):
        reference_governor(law, margin=0.5)
    with pytest.raises(InvalidValue, match="LqiLaw"):
        reference_governor(connet(PRINTED, method="paper").law)


def test_without_limits_every_reference_can_be_had():
    limits = {"low": np.array([-np.inf]), "high": np.array([np.inf])}
    law = msgspec.structs.replace(connet(PRINTED, track="delay").law, **limits)
    governor = reference_governor(law)
    desired = np.array([40.0, 0.0])
    assert attainable(governor, desired)
    outputs, _, references = run(law, desired, 600, governor)
    assert references[0, 0] == pytest.approx(40.0)
    assert outputs[-1, 0] == pytest.approx(40.0, rel=1e-6)
