"""MPCC's design: the note's numbers, its program, the round trip, and what the command line makes of it."""

import json

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpcc_model import predict_queue

import netctrl
from netctrl.cli.design import main
from netctrl.core.errors import InvalidValue, Status
from netctrl.frequency.delayed_integrator import gain_limit
from netctrl.laws.window.explicit import decide_window
from netctrl.model.design.design import design_json_schema, read_design

THESIS = {"bdp_bytes": 3750.0, "packet_size_bytes": 1080.0, "window_bytes": 3750.0}
"""Section 5.2: 4 flows, 1 Gbit/s, 34.752 µs."""
ASKED = ["mpcc", "--flows", "4", "--rate", "1Gbit", "--bdp", "3750", "--rtt", "34.752us", "--window", "3750"]


def thesis(**changes):
    return netctrl.mpcc(4, 1e9, 34.752e-6, **THESIS | changes)


def window(law, queue: float) -> float:
    return decide_window(queue, law.gain, law.fair_window, law.B, law.flows, law.bdp_bytes)


@pytest.mark.parametrize(
    ("weight", "windows"),
    [
        (1.0, (937.5, 884.007327, 670.036636, 349.080600, 0.0)),
        (100.0, (937.5, 931.901813, 909.509067, 875.919948, 657.590671)),
    ],
)
def test_numbers_of_the_thesis_example(weight, windows):
    """Theory note: dt = 1.0008576e-5, B = 1.3344768, c = 937.5; windows at queues of 0, 100, 500, 1100, 5000 bytes."""
    law = thesis(window_weight=weight).law
    assert (law.interval_s, law.B, law.fair_window) == pytest.approx((1.0008576e-5, 1.3344768, 937.5), rel=1e-9)
    assert [window(law, q) for q in (0.0, 100.0, 500.0, 1100.0, 5000.0)] == pytest.approx(windows, abs=5e-7)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(1, 200), st.floats(1e8, 4e11), st.floats(1e-6, 1e-3), st.floats(1e-2, 1e3), st.integers(1, 30))
def test_the_closed_form_is_the_program_s_solution_whatever_the_network(flows, rate, rtt, weight, horizon):
    bdp = max(rate * rtt / 8.0, 1080.0)
    proof = netctrl.mpcc(flows, rate, rtt, bdp_bytes=bdp, window_weight=weight, horizon=horizon).certificate
    assert proof.qp_states == 200
    assert proof.qp_difference < 1e-9
    assert proof.qp_residual < 1e-9


@pytest.mark.slow
@given(st.floats(0.1, 1e3), st.integers(1, 12), st.integers(2, 64))
@settings(max_examples=30)
def test_with_the_prediction_nothing_idles_and_margins_hold_at_any_round_trip(weight, packets, flows):
    size = 1080.0 * packets
    requested = {"bdp_bytes": size, "window_weight": weight}
    told, predicted = (
        netctrl.mpcc(flows, 1e10, size * 8e-10, delayed=delayed, **requested).certificate for delayed in (False, True)
    )
    assert predicted.idle_share == pytest.approx(0.0, abs=1e-9)
    assert predicted.status is Status.ADMISSIBLE
    assert told.delay_steps == packets
    k = 1.0 - told.closed_loop_pole
    assert (told.spectral_radius < 1.0) == (k < gain_limit(packets))
    assert (told.status is Status.ADMISSIBLE) == (told.disc_alpha >= 2.0 / 3.0)
    assert (np.diff(told.burst_queue_bytes) <= 1e-9 * size).all()  # no window above the fair one
    assert (np.diff(predicted.burst_queue_bytes) <= 1e-9 * size).all()


def test_what_the_round_trip_costs_the_published_weights():
    """1:1 would swing and idles after each burst, 1:10 is on the edge, 1:100 is careful; the advised weight holds."""
    found = {weight: thesis(window_weight=weight).certificate for weight in (1.0, 10.0, 100.0)}
    assert [found[weight].status for weight in found] == [Status.STABLE, Status.STABLE, Status.ADMISSIBLE]
    assert found[1.0].spectral_radius > 1.0 > found[10.0].spectral_radius
    assert "oscillates" in found[1.0].warnings[0]
    assert found[1.0].idle_share > found[10.0].idle_share > 0.5
    assert found[100.0].idle_share == 0.0
    least = found[1.0].least_window_weight
    assert thesis(window_weight=1.001 * least).certificate.status is Status.ADMISSIBLE
    assert thesis(window_weight=0.999 * least).certificate.status is Status.STABLE


def test_the_table_holds_what_each_number_of_flows_would_be_given():
    table = thesis(table=(2, 40)).law.table
    assert table.flows.tolist() == list(range(2, 41))
    for place in (0, 2, 38):
        alone = netctrl.mpcc(int(table.flows[place]), 1e9, 34.752e-6, **THESIS).law
        assert (table.gain[place], table.fair_window[place], table.B[place]) == pytest.approx(
            (alone.gain, alone.fair_window, alone.B), rel=1e-12
        )


def test_units_do_not_matter_to_the_margins():
    """Sizes times 10 at a tenth of the rate's period: the same loop."""
    one, ten = thesis(), netctrl.mpcc(4, 1e10, 34.752e-6, **{name: 10.0 * value for name, value in THESIS.items()})
    assert one.certificate.disc_alpha == pytest.approx(ten.certificate.disc_alpha, rel=1e-9)
    assert one.law.gain == pytest.approx(ten.law.gain, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bdp_bytes": 30000.0, "window_bytes": 30000.0}, "is it in bits"),
        ({"bdp_bytes": 1500.0, "window_bytes": 1500.0}, "can't fill its link"),
        ({"bottleneck_bit_per_s": 1e10}, "can't fill the bottleneck"),
        ({}, "less than a packet"),
    ],
)
def test_implausible_numbers_are_warned_of(changes, said):
    assert any(said in warning for warning in thesis(delayed=True, **changes).certificate.warnings)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"horizon": 0}, "horizon"),
        ({"queue_weight": -1.0}, "queue_weight"),
        ({"queue_weight": 0.0}, "not controlled"),
        ({"window_weight": -1.0}, "window_weight"),
        ({"window_bytes": 0.0}, "window_bytes.*from a packet"),
        ({"bdp_bytes": 0.0}, "bdp_bytes"),
        ({"bdp_bytes": float("nan")}, "bdp_bytes"),
        ({"packet_size_bytes": 0.0}, "packet_size_bytes"),
        ({"bottleneck_bit_per_s": 0.0}, "bottleneck_bit_per_s"),
        ({"table": (0, 4)}, "table"),
        ({"table": (5, 4)}, "table"),
    ],
)
def test_wrong_numbers_are_named(changes, said):
    with pytest.raises(InvalidValue, match=said):
        thesis(**changes)


def test_no_flows_is_no_design():
    with pytest.raises(InvalidValue, match="flows"):
        netctrl.mpcc(0, 1e9, 1e-5)


@pytest.mark.slow
def test_command_line_writes_what_it_shows(tmp_path, capsys):
    file, picture = tmp_path / "law.json", tmp_path / "law.png"
    extra = ["--window-weight", "10", "--table", "1:64", "--accept", "stable", "-o", str(file), "--plot", str(picture)]
    assert main([*ASKED, *extra, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    jsonschema.validate(shown, design_json_schema())
    design = read_design(file)
    assert isinstance(design.law.table.gain, np.ndarray)
    assert json.loads(design.to_json()) == shown
    assert shown["law"]["gain"] == thesis(window_weight=10.0).law.gain
    assert shown["law"]["table"]["flows"][-1] == 64
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main([*ASKED, "--delayed"]) == 0
    assert "ADMISSIBLE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--horizon", "0"], "--horizon"),
        (["--packet-size", "4kB"], "--window"),
        (["--window-weight", "x"], "--window-weight"),
        (["--table", "9:3"], "--table"),
        (["--bottleneck", "-1Gbit"], "--bottleneck"),
    ],
)
def test_command_line_names_the_option(extra, said, capsys):
    assert main([*ASKED, *extra]) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")


def test_a_burst_under_the_prediction_is_the_loop_written_out():
    """Sample by sample, each prediction summed up anew; the certificate has it from the loop without delay."""
    for delayed in (True, False):
        design = netctrl.mpcc(4, 1e9, 34.752e-6, **THESIS, delayed=delayed)
        law, burst = design.law, np.array(design.certificate.burst_queue_bytes)
        queue, under_way, course = law.bdp_bytes, [law.fair_window] * law.delay_steps, [law.bdp_bytes]
        for _ in range(len(burst) - 1):
            seen = queue
            if delayed:
                seen = predict_queue(queue, np.array(under_way) - law.fair_window, law.B)
            under_way.append(decide_window(seen, law.gain, law.fair_window, law.B, law.flows, law.bdp_bytes))
            queue = max(queue + law.B * (under_way.pop(0) - law.fair_window), 0.0)
            course.append(queue)
        np.testing.assert_allclose(burst, course, atol=1e-9 * law.bdp_bytes)


@pytest.mark.parametrize("delayed", [True, False])
def test_a_long_round_trip_takes_no_longer(delayed):
    """578,703 acknowledgements: each prediction used to sum all of them up."""
    proof = netctrl.mpcc(4, 1e10, 0.5, delayed=delayed).certificate
    assert proof.delay_steps == 578_703
    assert any("is still" in each for each in proof.warnings)
    assert proof.idle_share == 0.0


def test_the_horizon_is_bounded_by_the_program_that_is_solved():
    with pytest.raises(InvalidValue, match="from 1 to 500") as refusal:
        netctrl.mpcc(4, 1e9, 1e-4, horizon=501)
    assert refusal.value.argument == "horizon"
