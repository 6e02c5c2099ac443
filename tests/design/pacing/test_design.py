"""Pacing's design: d*, stable steps, the map, files, and what the command line makes of a trace."""

import json

import jsonschema
import numpy as np
import pytest
from design_files import comes_back
from hypothesis import given, settings
from hypothesis import strategies as st

import netctrl
from netctrl.cli.design import main
from netctrl.core.errors import FileError, InvalidValue, Status
from netctrl.design.pacing.design import pacing_map
from netctrl.laws.pacing.pacing import pacing_values
from netctrl.laws.pacing.replay import read_replay, replay
from netctrl.model.design.design import design_json_schema, read_design
from netctrl.model.design.pacing import FREEZES, INACTIVE, PINNED
from netctrl.model.law import ArxPacer

LINK = {"max_rate_bit_per_s": 1e10, "bottleneck_bit_per_s": 1e10, "rtt_s": 4e-3}
"""Figs. 2 and 3."""


def test_the_thresholds_of_the_paper_s_link():
    """d* = 2 psi b_1 mu_r/xi with b_1 = T/C and mu_r = C: 0.2 ms for psi = 1, xi = 100, T = 10 ms, whatever C is."""
    proof = netctrl.pacing(**LINK).certificate
    assert proof.sampling_s == 0.01
    assert proof.freeze_below_s == pytest.approx(2.0 * 0.01 / 100.0, rel=0.03)
    assert proof.freeze_below_s == pytest.approx(2.0 * 0.01 / (100.0 - 2.5), rel=1e-12)  # with b_1/mu_l
    assert netctrl.pacing(**LINK | {"xi": 1.0}).certificate.freeze_below_s is None


@settings(max_examples=40)
@given(st.floats(1e6, 1e11), st.floats(1e-4, 1.0), st.floats(0.1, 10.0), st.floats(1.0, 1e3))
def test_capacity_does_not_matter_to_d_star(rate, rtt, psi, xi):
    requested = {"rtt_s": rtt, "psi": psi, "xi": xi}
    one, other = (netctrl.pacing(max_rate_bit_per_s=R, **requested).certificate for R in (rate, 1e9))
    assert (one.freeze_below_s is None) == (other.freeze_below_s is None)
    if one.freeze_below_s is not None:
        assert one.freeze_below_s == pytest.approx(other.freeze_below_s, rel=1e-3)


def test_steps_that_are_stable():
    """The note: alpha |phi|² < 2; by units, for p = 5 and q = 1 at 4 ms and 10 Gbit/s."""
    proof = netctrl.pacing(**LINK).certificate
    limits = {each.units: each.limit for each in proof.sgd_limits}
    assert limits["RTTs and R"] == pytest.approx(2.0 / 6.0)
    assert limits["s and Gbit/s"] == pytest.approx(2.0 / (100.0 + 5 * 16e-6))
    assert limits["ms and Gbit/s"] == pytest.approx(2.0 / (100.0 + 5 * 16.0))
    assert proof.step_limit == 2.0
    literal = netctrl.pacing(estimator="sgd", **LINK).certificate
    assert literal.status is Status.UNSTABLE
    assert literal.step_limit == limits["RTTs and R"]
    assert netctrl.pacing(estimator="sgd", step=0.3, **LINK).certificate.status is Status.STABLE


def test_the_map_says_what_the_certificate_says():
    design = netctrl.pacing(**LINK)
    found = pacing_map(design, psi=[1.0], xi=[1.0, 100.0], ratios=(1.0, 4.0))
    assert found.thresholds[0, 1, 0] * 4e-3 == pytest.approx(design.certificate.freeze_below_s)
    assert found.thresholds[0, 0, 0] == np.inf
    outcomes = found.outcomes(0.2)
    assert outcomes[:, 0, 0].tolist() == [FREEZES, FREEZES]
    assert outcomes[:, 1, 0].tolist() == [PINNED, INACTIVE]
    assert (pacing_map(design).outcomes(1e-9) == FREEZES).all()


@settings(max_examples=40)
@given(st.floats(1e6, 1e11), st.floats(1e-4, 1.0), st.floats(0.1, 10.0), st.floats(1.0, 1e3), st.floats(0.1, 4.0))
def test_the_paper_s_law_is_never_admissible(rate, rtt, psi, xi, ratio):
    """Each rate below the bottleneck is an equilibrium (docs/explanation/pacing.md), whatever its weights."""
    proof = netctrl.pacing(
        max_rate_bit_per_s=ratio * rate, bottleneck_bit_per_s=rate, rtt_s=rtt, psi=psi, xi=xi
    ).certificate
    assert proof.status is Status.STABLE
    assert "equilibrium" in proof.warnings[-1]


def test_the_command_line_refuses_what_is_not_admissible(tmp_path, capsys):
    """Exit status 3 and no file, but the report; `--accept stable` asks for it."""
    file = tmp_path / "law.json"
    assert main(["pacing", "-o", str(file)]) == 3
    said = capsys.readouterr()
    assert "STABLE" in said.out
    assert "--mode own-rate" in said.err
    assert not file.exists()
    assert main(["pacing", "-o", str(file), "--accept", "stable"]) == 0
    assert read_design(file).certificate.status is Status.STABLE
    assert main(["pacing", "--estimator", "sgd", "--accept", "stable"]) == 3
    short = ["pacing", "--mode", "own-rate", "--rtt", "20ms", "--bottleneck", "100Mbit", "--buffer", "5kB"]
    assert main(short) == 3
    assert "--buffer" in capsys.readouterr().err
    assert main([*short, "--accept", "stable"]) == 0


def test_files_of_before_are_read(tmp_path):
    """Designs that were written before buffers and flows were asked for."""
    content = json.loads(netctrl.pacing(mode="own-rate").to_json())
    for part, name in (("inputs", "buffer_bytes"), ("inputs", "flows"), ("certificate", "most_flows")):
        del content[part][name]
    del content["certificate"]["least_buffer_bytes"]
    (tmp_path / "law.json").write_text(json.dumps(content))
    design = read_design(tmp_path / "law.json")
    assert design.certificate.most_flows is None
    assert "holds for" not in dict(design.summary()[1])


def test_warnings_say_what_to_do():
    wide = netctrl.pacing(**LINK | {"max_rate_bit_per_s": 4e10}).certificate
    assert wide.status is Status.STABLE
    assert "fixed cap does as well" in wide.warnings[0]
    assert "freezes at any value" in netctrl.pacing(xi=1.0, **LINK).certificate.warnings[0]
    assert "of the RTT" in netctrl.pacing(xi=15.0, **LINK).certificate.warnings[0]
    assert "deadlock" in netctrl.pacing(guarded=False, **LINK).certificate.warnings[0]


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"mode": "bbr"}, "mode"),
        ({"estimator": "rls"}, "estimator"),
        ({"psi": 0.0}, "psi"),
        ({"xi": -1.0}, "xi"),
        ({"past_rtts": 0}, "past_rtts"),
        ({"past_rates": 1.0}, "past_rates"),
        ({"period_s": 0.0}, "period_s"),
        ({"max_rate_bit_per_s": 0.0}, "max_rate_bit_per_s"),
        ({"max_rate_bit_per_s": float("nan")}, "max_rate_bit_per_s"),
        ({"step": 2.0}, "step"),
        ({"smoothing": 1.0}, "smoothing"),
        ({"packet_size_bytes": 0.0}, "packet_size_bytes"),
        ({"rtt_s": 0.0}, "rtt_s"),
        ({"bottleneck_bit_per_s": -1.0}, "bottleneck_bit_per_s"),
        ({"buffer_bytes": 0.0}, "buffer_bytes"),
        ({"flows": 0}, "flows"),
        ({"flows": 1.5}, "flows"),
    ],
)
def test_wrong_numbers_are_named(changes, argument):
    with pytest.raises(InvalidValue) as refusal:
        netctrl.pacing(**changes)
    assert refusal.value.argument == argument


@pytest.mark.parametrize("mode", ["paper", "own-rate"])
def test_files_are_read_back_as_they_were(mode, tmp_path):
    design = netctrl.pacing(mode=mode)
    assert comes_back(design, tmp_path, accept="stable") == design
    assert design.plot().axes
    assert design.summary()[1]


def measured(path, count=400, wrong=None):
    """A file of RTTs that a sawtooth makes, every 10 ms; `wrong` replaces a line's text."""
    random = np.random.default_rng(0)
    times = 0.01 * np.arange(count)
    rtts = 4e-3 + 1e-3 * (times % 0.5) + 2e-5 * random.random(count)
    lines = [f"{t:.6f},{rtt:.9f},{1.25e7 * t:.0f}" for t, rtt in zip(times, rtts, strict=True)]
    for number, text in (wrong or {}).items():
        lines[number - 2] = text
    path.write_text("time_s,rtt_s,delivered_bytes\n" + "\n".join(lines) + "\n")
    return path


def test_a_replay_predicts_and_sets_rates(tmp_path):
    trace = read_replay(measured(tmp_path / "rtt.csv"))
    design = netctrl.pacing(**LINK)
    found = replay(design.law, trace)
    assert isinstance(design.law, ArxPacer)
    assert found.run.used.all()
    assert found.fit > 50.0
    assert found.fit == pytest.approx(
        100.0 * (1.0 - np.var((trace.rtt_s - found.run.predictions)[1:]) / np.var(trace.rtt_s[1:]))
    )
    assert found.run.rates.max() <= 1e10
    assert pacing_values(design.law, found.run.state)["samples"] == 400.0


@pytest.mark.slow
def test_command_line_writes_what_it_shows(tmp_path, capsys):
    file, picture = tmp_path / "law.json", tmp_path / "law.png"
    requested = "pacing --psi 1 --xi 100 --p 5 --q 1 --period 10ms --max-rate 10Gbit --rtt 4ms --json --accept stable"
    assert main([*requested.split(), "-o", str(file), "--plot", str(picture)]) == 0
    shown = json.loads(capsys.readouterr().out)
    jsonschema.validate(shown, design_json_schema())
    assert json.loads(read_design(file).to_json()) == shown
    assert shown["law"] == json.loads(netctrl.pacing(**LINK).to_json())["law"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["pacing", "--mode", "own-rate", "--plot", str(picture)]) == 0
    assert "ADMISSIBLE" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["paper", "own-rate"])
def test_command_line_replays_a_trace(mode, tmp_path, capsys):
    path = measured(tmp_path / "rtt.csv")
    asked = ["pacing", "--mode", mode, "--replay", str(path)]
    assert main(asked) == (3 if mode == "paper" else 0)
    out = capsys.readouterr().out
    assert "fit" in out
    assert "predicted ms" in out
    assert main([*asked, "--accept", "stable", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert len(shown["rate_bit_per_s"]) == len(shown["predicted_rtt_s"]) == shown["used"] > 100
    assert shown["samples"] == 400
    assert sum(shown["events"].values()) <= (0 if mode == "paper" else 5)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({7: "0.05,0,1"}, "line 7, rtt_s: got 0, takes a time above 0"),
        ({7: "0.05,-0.1,1"}, "line 7, rtt_s: got -0.1"),
        ({7: "0.05,nan,1"}, "line 7, rtt_s: got nan"),
        ({7: "0.05,,1"}, "line 7, rtt_s: got nothing"),
        ({7: "0.05"}, "line 7, rtt_s: got nothing"),
        ({9: "0.001,0.004,1"}, "line 9, time_s: got 0.001, takes at least 0.06"),
        ({9: "x,0.004,1"}, "line 9, time_s: got x"),
        ({9: "0.07,0.004,-5"}, "line 9, delivered_bytes: got -5"),
    ],
)
def test_a_wrong_line_is_named(wrong, said, tmp_path, capsys):
    path = measured(tmp_path / "rtt.csv", 20, wrong)
    assert main(["pacing", "--replay", str(path)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1"),
        ("time_s,rtt_s\n", "no samples"),
        ("time_s,rtt\n0,1\n", "rtt_s"),
        ("time_s,rtt_s,rtt_s\n0,1,1\n", "once"),
        ('time_s,rtt_s\n0,"1\n', "not a CSV file"),
    ],
)
def test_files_that_are_no_traces(text, said, tmp_path):
    path = tmp_path / "rtt.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=said):
        read_replay(path)
    with pytest.raises(FileError):
        read_replay(tmp_path / "none.csv")


def test_the_own_rate_law_asks_for_deliveries(tmp_path, capsys):
    path = tmp_path / "rtt.csv"
    path.write_text("time_s,rtt_s\n0,0.004\n")
    assert main(["pacing", "--mode", "own-rate", "--replay", str(path)]) == 2
    assert "delivered_bytes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("extra", "said"), [(["--p", "0"], "--p"), (["--q", "a"], "--q"), (["--max-rate", "1bit"], "--max-rate")]
)
def test_command_line_names_the_option(extra, said, capsys):
    assert main(["pacing", *extra]) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")
