"""CONNET designs: the printed numbers, what the certificate says, the command line."""

import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from design_files import comes_back
from scipy.signal import lfilter

import netctrl
from netctrl import connet
from netctrl.cli.design import main
from netctrl.core.errors import FileError, InvalidValue, NoAdmissibleDesign, Status
from netctrl.model.datasets import model_path
from netctrl.model.design.design import read_design
from netctrl.model.fit import Draws
from netctrl.model.identified import Identification, IdentifiedModel, read_model
from netctrl.synthesis.riccati.tracking import tracking_loop

PRINTED = read_model(model_path("connet-paper"))


def printed_law():
    """The gains as the paper prints them."""
    law = connet(PRINTED, method="paper").law
    gains = {"L": np.array([[-0.1020, -0.1649], [0.1008, -0.6491]]), "K": np.array([[-15.7017, -9.3098]])}
    return type(law)(**{name: getattr(law, name) for name in law.__struct_fields__} | gains)


def test_the_poles_and_the_steady_state_of_eq_4():
    loop = tracking_loop(PRINTED.state_space, printed_law()).response
    poles = sorted(np.linalg.eigvals(loop.A))
    assert poles == pytest.approx([0.008148, 0.093498, 0.714380, 0.916620], abs=1e-6)
    T = loop.C @ np.linalg.solve(np.eye(4) - loop.A, loop.B)
    assert np.abs(T - [[0.024448, 1.324845], [0.018182, 0.985284]]).max() < 1e-6
    assert np.linalg.matrix_rank(T, tol=1e-9) == 1


def test_the_published_design_comes_out_of_its_weights():
    design = connet(PRINTED, method="paper", track="jitter")
    assert np.abs(design.law.K / [-15.7017, -9.3098] - 1.0).max() < 3.6e-4
    assert np.abs(design.law.L - PRINTED.K / 2).max() < 1e-12
    proof = design.certificate
    assert [pole[0] for pole in proof.closed_loop_poles] == pytest.approx([0.9169, 0.7143, 0.0936, 0.0081], abs=3.1e-4)
    assert proof.bandwidth_hz == pytest.approx(0.0385, abs=5e-5)
    assert max(abs(complex(*pole)) for pole in proof.controller_poles) == pytest.approx(1.00187, abs=2e-5)
    assert proof.status is Status.STABLE
    assert any("by itself isn't stable" in warning for warning in proof.warnings)
    assert np.array(proof.plant_dc_gain).ravel() == pytest.approx([0.026690, 0.019849], abs=1e-6)


def test_the_published_design_tracks_what_comes_nearest_by_default():
    assert connet(PRINTED, method="paper").inputs.tracked == ((0.0, 1.0),)
    error = connet(PRINTED, method="paper", track="delay").certificate.dc_error
    assert error == pytest.approx(0.00966, abs=1e-4)  # both references on the curve


@pytest.mark.parametrize("track", ["delay", "jitter", [1.0, 1.0], [0.3, -2.0]])
def test_integral_action_has_no_steady_error(track):
    proof = connet(PRINTED, track=track).certificate
    assert proof.status is Status.ADMISSIBLE
    assert proof.dc_error < 1e-9
    assert proof.dc_error_gain < 1e-9
    T, W = np.array(proof.dc_tracking), np.array(connet(PRINTED, track=track).inputs.tracked)
    assert pytest.approx(W, abs=1e-9) == W @ T
    assert proof.residual_regulator < 1e-12
    assert proof.residual_estimator < 1e-12


def test_a_faster_loop_is_faster_and_less_robust():
    slow, fast = (connet(PRINTED, track="delay", input_weight=weight).certificate for weight in (1.0, 1e-4))
    assert fast.bandwidth_hz is None or fast.bandwidth_hz > slow.bandwidth_hz
    assert fast.disc_alpha < slow.disc_alpha


def test_what_of_a_reference_can_be_had():
    on, off, beyond = (0.5, 0.5 * 0.743697), (0.5, 0.1), (5.0, 5.0 * 0.743697)
    with pytest.raises(NoAdmissibleDesign, match="outside what the model was seen at"):
        connet(PRINTED, track="delay", limits=[(0.0, 95.0)], references=[on, off, beyond])
    design = connet(PRINTED, track="delay", limits=[(0.0, 95.0)], references=[on, off, beyond], accept="stable")
    assert design.certificate.status is Status.STABLE
    assert [check.seen for check in design.certificate.references] == [True, True, False]
    first, second, third = design.certificate.references
    assert first.within_limits
    assert first.off_curve < 1e-5
    assert first.needed[0] == pytest.approx(0.5 / 0.026690, rel=1e-4)
    assert second.attained == pytest.approx(first.attained)
    assert second.off_curve > 1.0
    assert not third.within_limits
    assert third.attained[0] == pytest.approx(95.0 * 0.026690, rel=1e-4)
    said = " ".join(design.certificate.warnings)
    assert "off the characteristic curve" in said
    assert "can't be reached within the input limits" in said
    assert "only 1 combination can follow" in said
    (blind,) = design.certificate.untracked
    assert np.dot(blind, np.ravel(design.certificate.plant_dc_gain)) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize(("unit", "scale"), [("bit/s", 1e6), ("Gbit/s", 1e-3)])
def test_a_design_does_not_depend_on_units(unit, scale):
    """The same plant with its input in another unit and its outputs in s: the same loop."""
    other = IdentifiedModel(
        A=PRINTED.A,
        B=PRINTED.B / scale,
        C=PRINTED.C * 1e-3,
        D=PRINTED.D * 1e-3 / scale,
        dt=1.0,
        inputs=("R",),
        outputs=("delay", "jitter"),
        input_units=(unit,),
        output_units=("s", "s"),
        input_range=PRINTED.input_range * scale,
        K=PRINTED.K * 1e3,
        innovation_covariance=PRINTED.innovation_covariance * 1e-6,
    )
    for method in ("lqi", "paper"):
        one, two = (connet(model, method=method, track="jitter").certificate for model in (PRINTED, other))
        assert np.array(two.closed_loop_poles) == pytest.approx(np.array(one.closed_loop_poles), abs=1e-8)
        assert two.bandwidth_hz == pytest.approx(one.bandwidth_hz, rel=1e-6)
        assert two.disc_alpha == pytest.approx(one.disc_alpha, rel=1e-6)


@pytest.mark.parametrize("method", ["lqi", "paper"])
def test_a_design_file_comes_back(method, tmp_path):
    comes_back(connet(PRINTED, method=method, references=[(0.5, 0.4)]), tmp_path, accept="stable")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"method": "pid"}, "lqi or paper"),
        ({"track": "loss"}, "delay, jitter"),
        ({"track": ["delay", "jitter"]}, "at most 1 combinations"),
        ({"track": [0.0, 0.0]}, "2 weights"),
        ({"track": [1.0, 2.0, 3.0]}, "2 weights"),
        ({"limits": [(5.0, 5.0)]}, "a lowest and a highest"),
        ({"limits": [(0.0, float("nan"))]}, "a lowest and a highest"),
        ({"input_weight": 0.0}, "above 0"),
        ({"references": [{"delay": 1.0}]}, "finite values of delay, jitter"),
    ],
)
def test_what_is_wrong_is_named(arguments, said):
    with pytest.raises(InvalidValue) as caught:
        connet(PRINTED, **arguments)
    assert said in str(caught.value)


def test_a_model_needs_its_noise_a_range_and_to_be_one():
    bare = {"A": [[0.5]], "B": [[1.0]], "C": [[1.0]], "D": [[0.0]], "dt": 1.0}
    with pytest.raises(InvalidValue, match="noise"):
        connet(IdentifiedModel(**bare), limits=[(0.0, 1.0)])
    noisy = bare | {"K": [[0.1]], "innovation_covariance": [[1.0]]}
    with pytest.raises(InvalidValue, match="has no input_range"):
        connet(IdentifiedModel(**noisy))
    with pytest.raises(InvalidValue, match="IdentifiedModel"):
        connet(5)
    with pytest.raises(FileError, match=r"no-model\.json"):
        connet("no-model.json")
    unmoved = noisy | {"A": [[2.0, 0.0], [0.0, 0.5]], "B": [[0.0], [1.0]], "C": [[1.0, 1.0]], "K": [[2.0], [0.0]]}
    with pytest.raises(NoAdmissibleDesign, match="regulator"):
        connet(IdentifiedModel(**unmoved), limits=[(0.0, 1.0)])


def test_the_command_line(tmp_path, capsys):
    out, picture = tmp_path / "d.json", tmp_path / "d.png"
    requested = ["connet", "--model", "connet-paper", "--track", "delay", "--limits", "0Mbit:95Mbit"]
    assert main([*requested, "--reference", "delay=1,jitter=0.7437", "-o", str(out), "--plot", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "CONNET, LQI: delay by R, every 1 s: ADMISSIBLE" in said
    assert "R 37.47" in said
    design = read_design(out)
    assert design.law.high.tolist() == [95.0]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main([*requested, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    proof = printed["certificate"]
    assert {"closed_loop_poles", "dc_tracking", "bandwidth_hz", "disc_alpha", "status", "untracked"} <= set(proof)
    assert msgspec.json.encode(printed["law"]["K"]) == msgspec.json.encode(design.law.K.tolist())


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--model", "none"], "--model"),
        (["--track", "loss"], "--track: got 'loss'"),
        (["--track", "delay=1,loss=1"], "there are delay, jitter"),
        (["--limits", "0:1,0:1"], "for each of R"),
        (["--limits", "fast"], "--limits"),
        (["--reference", "delay"], "--reference"),
        (["--input-weight", "-1"], "--input-weight"),
    ],
)
def test_wrong_use_is_one_line_and_exit_status_2(extra, said, capsys):
    requested = ["connet", *([] if "--model" in extra else ["--model", "connet-paper"]), *extra]
    assert main(requested) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def identified_model(**changes) -> IdentifiedModel:
    """A lag of 0.1 ms per Mbit/s, as identified between 8 and 32 Mbit/s, where the delay was 0.9 to 4.5 ms."""
    how = {"method": "n4sid", "order": 1, "horizon": 10, "samples": 1000, "segments": 1}
    how |= {"singular_values": [1.0], "vaf": [65.0], "steady_gain_draws": np.full((3, 1, 1), 0.15)}
    return IdentifiedModel(
        A=[[0.3]],
        B=[[0.7]],
        C=[[0.15]],
        D=[[0.0]],
        dt=0.5,
        inputs=("R",),
        outputs=("delay",),
        input_offset=[20.0],
        output_offset=[2.7],
        input_range=[[8.0, 32.0]],
        output_range=[[0.9, 4.5]],
        K=[[0.1]],
        innovation_covariance=[[1.0]],
        identification=Identification(**how | changes),
    )


def test_attainable_is_what_the_trace_visited_and_no_delay_is_negative():
    model, unseen = identified_model(), msgspec.structs.replace(identified_model(), input_range=None, output_range=None)
    assert connet(model, limits=[(0.0, 40.0)]).certificate.attainable == pytest.approx(np.array([[0.9, 4.5]]))
    assert connet(model, limits=[(15.0, 40.0)]).certificate.attainable == pytest.approx(np.array([[1.95, 4.5]]))
    assert connet(unseen, limits=[(0.0, 40.0)]).certificate.attainable == pytest.approx(np.array([[0.0, 5.7]]))


@pytest.mark.parametrize("reference", [5.0, 0.4])
def test_references_that_the_trace_did_not_visit_are_refused(reference):
    asked = {"limits": [(0.0, 40.0)], "references": [[reference]]}
    with pytest.raises(NoAdmissibleDesign, match=r"outside what the model was seen at \(R 8 to 32\)") as refused:
        connet(identified_model(), **asked)
    assert refused.value.design.certificate.status is Status.STABLE
    assert not connet(identified_model(), **asked, accept="stable").certificate.references[0].seen
    assert connet(identified_model(), limits=[(0.0, 40.0)], references=[[3.0]]).certificate.references[0].seen


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steady_gain_draws": np.array([[[-0.1]], [[0.15]], [[0.4]]])}, "doesn't determine the steady gain: 3 draws"),
        ({"steady_gain_draws": np.array([[[0.1]], [[0.15]], [[0.21]]])}, "0.667 to 1.4 times the model's"),
        ({"biased": True}, "from a trace with feedback"),
    ],
)
def test_a_model_that_is_none_for_a_controller_is_refused(changes, said):
    with pytest.raises(NoAdmissibleDesign, match=said) as refused:
        connet(identified_model(**changes))
    assert "identify from a trace in open loop" in str(refused.value)
    design = connet(identified_model(**changes), accept="stable")
    assert design.certificate.status is Status.STABLE
    assert any(said in warning for warning in design.certificate.warnings)


def test_the_loop_is_certified_around_each_model_that_the_trace_allows():
    """Copies of the model have its margin; with integral action a plant of the other sign is unstable."""
    random = np.random.default_rng(1)
    u = netctrl.gbn(400, (20.0, 80.0), random)
    y = lfilter([0.0, 0.02], [1.0, -0.8], u[:, 0]) + 0.1 * random.standard_normal(400)
    found = netctrl.identify(
        netctrl.SignalTrace(interval_s=1.0, input_values=u, output_values=y, inputs=("R",), outputs=("delay",)), order=1
    )
    own = netctrl.connet(found).certificate
    assert own.drawn.models == 200
    assert own.drawn.stable == 1.0
    assert own.drawn.least_alpha <= own.drawn.alpha < own.disc_alpha
    parts = {name: np.stack([getattr(found.model, name)] * 40) for name in "ABCD"}
    copies = netctrl.connet(replace(found, draws=Draws(**parts))).certificate
    assert (copies.drawn.alpha, copies.drawn.least_alpha) == pytest.approx((copies.disc_alpha, copies.disc_alpha))
    signs = np.where(np.arange(40) < 4, -1.0, 1.0)[:, None, None]
    wrong = replace(found, draws=Draws(**parts | {"B": signs * parts["B"], "D": signs * parts["D"]}))
    with pytest.raises(NoAdmissibleDesign, match="of 40 models that the trace allows, 90% make a stable loop"):
        netctrl.connet(wrong)
    taken = netctrl.connet(wrong, accept="stable")
    assert taken.certificate.status == "stable"
    assert taken.certificate.drawn.least_alpha == 0.0
    assert "stable with 90.0% of 40 that the trace allows" in str(taken)
    assert netctrl.connet(found.model).certificate.drawn is None
