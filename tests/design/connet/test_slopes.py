"""CONNET with a curve: slopes that leave the loop stable, references that are proved, the law's table."""

import msgspec
import numpy as np
import pytest
from tracked_links import tracked

import netctrl
from netctrl.core.errors import InvalidValue, NoAdmissibleDesign
from netctrl.design.connet.slopes import in_sector, slope_loop, stable_slopes
from netctrl.laws.tracking.tracking import linearised, start_tracking, step_tracking, tracking_gains
from netctrl.model.identified import IdentifiedModel, InputCurve
from netctrl.scenario.builders import access_link

LEVELS = np.linspace(10.0, 36.0, 14)


def delay(u):
    """Of a link of 40 Mbit/s [ms]."""
    return 0.7 + 6.0 / (40.0 - u)


def curved_model(band=(0.8, 1.25), deviation: float = 0.02) -> IdentifiedModel:
    """The curve known exactly, behind it a lag with a pole at 0.3."""
    rise = delay(LEVELS[-1]) - delay(LEVELS[0])
    v = LEVELS[0] + (delay(LEVELS) - delay(LEVELS[0])) * np.ptp(LEVELS) / rise
    gain = rise / np.ptp(LEVELS)
    bands, deviations = np.tile(band, (len(v) - 1, 1)), np.full(len(v), deviation)
    table = {"inputs": LEVELS, "linearised": v, "slope_band": bands, "deviation": deviations}
    return IdentifiedModel(
        A=[[0.3]],
        B=[[0.7]],
        C=[[0.4 * gain]],
        D=[[0.6 * gain]],
        dt=1.0,
        inputs=("R",),
        outputs=("delay",),
        input_units=("Mbit/s",),
        output_units=("ms",),
        input_offset=[v.mean()],
        output_offset=[delay(LEVELS[0]) + gain * (v.mean() - v[0])],
        input_range=[[LEVELS[0], LEVELS[-1]]],
        K=[[0.1]],
        innovation_covariance=[[deviation**2]],
        curve=InputCurve(output="delay", shape="convex", **table),
    )


@pytest.mark.parametrize("weight", [1e-3, 0.1, 10.0])
def test_the_ends_of_stable_slopes_against_bisection(weight):
    model = curved_model()
    loop = slope_loop(model.state_space, netctrl.connet(model, input_weight=weight, accept="stable").law)
    _, most = stable_slopes(loop)
    low, high = 1.0, 1e4
    for _ in range(60):
        middle = 0.5 * (low + high)
        stable = np.abs(np.linalg.eigvals(loop.at(middle))).max() < 1.0
        low, high = (middle, high) if stable else (low, middle)
    assert most == pytest.approx(low, rel=1e-6)
    assert not in_sector(loop, 0.5, 1.001 * most)  # the sector's slopes are stable each


def test_a_disk_margin_is_kept_at_the_worst_slope():
    for alpha in (0.8, 1.4):
        proof = netctrl.connet(curved_model(), disk_margin=alpha).certificate
        assert alpha <= proof.slopes.held.alpha < 1.03 * alpha
    assert netctrl.connet(netctrl.read("connet-paper"), disk_margin=1.5).certificate.disc_alpha == pytest.approx(
        1.5, rel=0.03
    )
    with pytest.raises(InvalidValue, match="no disk margin beside an input weight"):
        netctrl.connet(curved_model(), disk_margin=1.0, input_weight=1.0)


def test_references_are_held_inside_and_refused_outside():
    model = curved_model()
    held = netctrl.connet(model).certificate.slopes.held
    low, high = held.references
    assert delay(LEVELS[0]) < low < high < delay(LEVELS[-1])
    assert held.inputs[0] == pytest.approx(40.0 - 6.0 / (low - 0.7), rel=0.01)
    for outside in (0.99 * low, 1.01 * high):
        with pytest.raises(NoAdmissibleDesign, match="for which it is proved"):
            netctrl.connet(model, input_weight=netctrl.connet(model).inputs.input_weight, references=[[outside]])
    (check,) = netctrl.connet(model, references=[[1.5]]).certificate.references
    assert check.held
    assert check.needed[0] == pytest.approx(40.0 - 6.0 / 0.8, rel=0.01)
    assert check.load > 0.0


def test_wider_bands_leave_fewer_references():
    weight = 0.005
    narrow, wide = (
        netctrl.connet(curved_model(band), input_weight=weight, accept="stable") for band in ((0.9, 1.1), (0.1, 9.0))
    )
    assert narrow.certificate.slopes.held is not None
    assert wide.certificate.slopes.held is None
    with pytest.raises(NoAdmissibleDesign, match="for no reference"):
        netctrl.connet(curved_model((0.1, 9.0)), input_weight=weight)


def test_the_law_has_one_speed_along_the_curve():
    """With the plant's curve the loop is linear: responses at both ends are alike, where the slope differs tenfold."""
    model = curved_model()
    law = netctrl.connet(model).law
    gains = tracking_gains(law)

    def response(start, stop):
        x, state, seen = np.zeros(1), start_tracking(gains), []
        for k in range(400):
            v = linearised(law, state.applied) - law.input_offset
            y = model.C @ x + model.D @ v + law.output_offset
            x = model.A @ x + model.B @ v
            seen.append((y[0] - start) / (stop - start))
            state = step_tracking(gains, state, y, np.array([start if k < 300 else stop]))
            assert (law.low <= state.applied).all()
            assert (state.applied <= law.high).all()
        return np.array(seen[300:])

    assert response(0.95, 1.0) == pytest.approx(response(2.0, 2.05), abs=1e-6)
    assert response(0.95, 1.0)[-1] == pytest.approx(1.0, abs=1e-3)


def test_what_takes_no_curve_says_so():
    model = curved_model()
    with pytest.raises(InvalidValue, match="takes no model with a curve"):
        netctrl.connet(model, method="paper")
    with pytest.raises(InvalidValue, match="visited"):
        netctrl.connet(model, limits=[(50.0, 90.0)])
    law = netctrl.connet(model).law
    with pytest.raises(InvalidValue, match="this law has a curve"):
        tracked(access_link(duration="10s"), law, [1.0], schedule=object())


def test_a_design_with_a_curve_comes_back(tmp_path):
    design = netctrl.connet(curved_model(), references=[[1.5]])
    design.save(tmp_path / "d.json")
    back = netctrl.read(tmp_path / "d.json")
    assert (back.law.curve == design.law.curve).all()
    assert msgspec.json.encode(back.certificate) == msgspec.json.encode(design.certificate)
    assert "holds" in dict(design.summary()[1])
