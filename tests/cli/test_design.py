"""`python -m netctrl.design arc` as a person, a script and CI see it: status, one line of error, JSON, files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command_lines import Ran, files, good, the_error

import netctrl
from netctrl.cli.design import main
from netctrl.model.datasets import design_schema
from netctrl.model.design.design import read_design

RUNS = main


def design(ran: Ran) -> dict[str, Any]:
    return json.loads(good(ran))


def python(arguments: list[str], folder: Path, stdout: Any = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=300)


# Each: arguments, and what the line has to hold beside "error: ": the option, the value got, a piece of what is taken.
WRONG_USE = {
    "no flows": ("arc --N 0", ["--N", "'0'", "above 0", "as in 50"]),
    "RTT without a unit": ("arc --N 50 --rtt 500", ["--rtt", "'500'", "unit", "500ms"]),
    "utilization above 1": ("arc --N 50 --utilization 1.2", ["--utilization", "1.2", "(0, 1]"]),
    "utilization in percent": ("arc --N 50 --utilization 98%", ["--utilization", "98%", "(0, 1]"]),
    "epoch too short": ("arc --N 50 --epoch 0.1ms", ["--epoch", "at least"]),
    "negative queue": ("arc --N 50 --target-queue -1", ["--target-queue", "'-1'", "at least 0"]),
    "queue in a strange unit": ("arc --N 50 --target-queue 5Q", ["--target-queue", "'5Q'", "kB"]),
    "unknown plant": ("arc --N 50 --plant real", ["--plant", "'real'", "paper", "noq", "phys"]),
    "no gain": ("arc --N 50 --alpha 0", ["--alpha", "0", "above 0"]),
    "unknown acceptance": ("arc --N 50 --accept any", ["--accept", "'any'", "admissible", "stable"]),
    "empty range of flows": ("arc --N 400:50", ["--N", "'400:50'", "empty", "low"]),
    "range of three": ("arc --N 50:60:70", ["--N", "'50:60:70'", "range"]),
    "picture of a strange kind": ("arc --N 50 --plot x.gif", ["--plot", "'x.gif'", ".png", ".svg"]),
    "flows not given": ("arc", ["--N is missing", "as in --N 50"]),
    "unknown command": ("ark --N 50", ["ark", "arc"]),
}


@pytest.mark.parametrize("name", WRONG_USE)
def test_wrong_use_is_one_line_that_names_option_value_and_remedy(name, run, tmp_path) -> None:
    line, pieces = WRONG_USE[name]
    error = the_error(run(line))
    assert [piece for piece in pieces if piece not in error] == [], error
    assert files(tmp_path) == []


EXTREMES = ["--N 1e-200", "--N 1e9", "--N 1e30", "--N 1e200", "--rtt 1e-300s", "--rtt 1ns", "--rtt 1e300s"]
EXTREMES += ["--capacity 1e-300bit", "--capacity 1e20bit", "--capacity 1e300bit", "--packet-size 1e-300"]
EXTREMES += ["--packet-size 1e300", "--utilization 1e-300", "--epoch 1e30s", "--epoch 1e300s", "--target-queue 1e300"]
EXTREMES += ["--alpha 1e-300", "--alpha 1e12", "--alpha 1e300", "--fragile-N 1e-300", "--fragile-N 1e300"]
EXTREMES += ["--fragile-rtt 1e-300s", "--fragile-rtt 1e9s", "--fragile-rtt 1e300s"]


@pytest.fixture
def no_endless_loop() -> Iterator[None]:
    """A second may become many on a busy machine; what never ends must fail and not hold up the rest."""

    def stop(*_: object) -> None:
        pytest.fail("still computing after half a minute", pytrace=False)

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("no_endless_loop")
@pytest.mark.parametrize("extreme", EXTREMES)
def test_numbers_beyond_all_networks_end_in_a_result_or_a_line_that_names_them(extreme, run) -> None:
    """Whatever overflows inside, the line names an option that the user typed: there is no --gain to be mended."""
    ran = run(f"arc {'' if '--N' in extreme else '--N 50 '}{extreme} --accept stable")
    assert ran.status in (0, 2, 3), ran
    if ran.status == 0:
        assert ran.err == ""
    else:
        assert extreme.split()[0] in the_error(ran, ran.status) or ran.status == 3


REQUIRED = {
    "law": "alpha_per_packet alpha_per_byte epoch_s target_utilization target_queue_packets",
    "certificate": "status stable sampled simulated reach paper box warnings",
    "sampled": "plant alpha_limit gain_margin_db phase_margin_deg delay_margin_s disk_margin spectral_radius "
    "crossover_rad_s phase_crossover_rad_s epoch_s",
    "simulated": "probability_cv utilization queue_packets duration_s settles",
    "paper": "alpha_over_epoch gain_margin_db phase_margin_deg delay_margin_s crossover_rad_s plant",
}


@pytest.mark.parametrize("line", ["--N 50", "--N 50:60 --rtt 450ms:500ms", "--N=50 --utilization=1 --plant=phys"])
def test_json_is_one_object_with_every_key_and_valid(line, run, tmp_path) -> None:
    found = design(run(f"arc {line} --json"))
    jsonschema.Draft202012Validator(design_schema()).validate(found)
    proof, law = found["certificate"], found["law"]
    for part, keys in REQUIRED.items():
        whole = law if part == "law" else proof if part == "certificate" else proof[part]
        assert [key for key in keys.split() if key not in whole or (part in proof and whole[key] is None)] == []
    assert {"low", "high", "limit", "binding"} <= proof["paper"]["alpha_over_epoch"].keys()
    assert proof["stable"] is True
    assert law["alpha_per_byte"] == pytest.approx(law["alpha_per_packet"] / 1000.0, rel=1e-15)
    assert files(tmp_path) == []


def test_the_simulation_can_be_left_out_and_that_is_said(run) -> None:
    found = design(run("arc --N 50 --no-simulation --json --plot x.PNG"))
    assert Path("x.PNG").read_bytes().startswith(b"\x89PNG")
    assert found["certificate"]["simulated"] is None
    assert any("--no-simulation" in warning for warning in found["certificate"]["warnings"])


def test_the_papers_curiosities_are_for_whoever_asks(run) -> None:
    plain, paper = run("arc --N 50").out, run("arc --N 50 --paper").out
    assert "fragile" not in plain
    assert "warning" not in plain
    assert "fragile system" in paper
    assert "eq. 9" in paper


def at(*keys: str) -> Callable[[dict[str, Any]], Any]:
    def value(found: Any) -> Any:
        for key in keys:
            found = found[key]
        return found

    return value


RATE = at("certificate", "operating_point", "rate_packet_per_s")
WINDOW = at("certificate", "operating_point", "window_packets")
SUSTAINED = at("certificate", "paper", "minimum_stability", "sustainable_error")

# What one option changes: the option, where to look, and the value there after and before it.
CHANGES = [
    ("--N 100", at("inputs", "flows"), [100.0, 100.0], [50.0, 50.0]),
    ("--N 100", WINDOW, 6.125, 12.25),
    ("--capacity 20Mbit", RATE, 2450.0, 1225.0),
    ("--capacity 20Mbit", at("law", "capacity_bit_per_s"), 20e6, 10e6),
    ("--packet-size 500", RATE, 2450.0, 1225.0),
    ("--packet-size 1.5kB", at("law", "packet_size_bytes"), 1500.0, 1000.0),
    ("--rtt 250ms", WINDOW, 6.125, 12.25),
    ("--utilization 0.49", RATE, 612.5, 1225.0),
    ("--utilization 0.49", at("law", "target_utilization"), 0.49, 0.98),
    ("--utilization 1", at("certificate", "sampled", "plant"), "phys", "noq"),
    ("--epoch 500ms", at("law", "epoch_s"), 0.5, 1.0),
    ("--target-queue 50", at("law", "target_queue_packets"), 50.0, 0.0),
    ("--target-queue 50kB", at("law", "target_queue_packets"), 50.0, 0.0),
    ("--target-queue 0kB", at("law", "target_queue_packets"), 0.0, 0.0),
    ("--target-queue 1e2", at("law", "target_queue_packets"), 100.0, 0.0),
    ("--target-queue 50", at("certificate", "sampled", "plant"), "phys", "noq"),
    ("--plant noq", at("certificate", "paper", "plant"), "noq", "paper"),
    ("--plant noq", at("certificate", "paper", "loop", "leads"), [], [0.5 / 1.98]),
    ("--alpha 7e-6", at("law", "alpha_per_packet"), 7e-6, 5.7351e-6),
    ("--alpha 7e-6", at("inputs", "alpha_per_packet"), 7e-6, None),
    ("--fragile-N 20", SUSTAINED, 4 * 6.663890e-5, 6.663890e-5),
    ("--fragile-rtt 1s", SUSTAINED, 4 * 6.663890e-5, 6.663890e-5),
]


@pytest.mark.parametrize(
    ("option", "look", "after", "before"), CHANGES, ids=[f"{c[0]} {i}" for i, c in enumerate(CHANGES)]
)
def test_each_option_changes_what_it_says(option, look, after, before, run) -> None:
    rest = "" if option.startswith("--N") else "--N 50"
    found = look(design(run(f"arc {rest} {option} --accept stable --json")))
    for value, expected in ((found, after), (look(design(run("arc --N 50 --json"))), before)):
        assert value == (
            expected if isinstance(expected, str) or expected is None else pytest.approx(expected, rel=1e-5)
        )


@pytest.mark.parametrize(
    "same",
    [
        "--N 5e1 --capacity 10000kbit --rtt 0.5s --epoch 1000ms --packet-size 1kB --target-queue 0.0",
        "--N 50.0 --capacity 0.01Gbit/s --rtt 500000us --epoch '1 s' --packet-size 1000B --plant auto",
        "--N 50:50 --rtt 500ms:0.5s --fragile-N 10 --fragile-rtt 2000ms --accept admissible",
    ],
)
def test_units_and_defaults_spelt_out_change_nothing(same, run) -> None:
    ours, theirs = design(run("arc --N 50 --json")), design(run(f"arc {same} --json"))
    assert theirs["law"] == ours["law"]
    assert theirs["certificate"] == ours["certificate"]


@pytest.mark.slow
def test_the_saved_file_is_what_json_prints_and_what_read_design_reads(run, tmp_path) -> None:
    ran = run("arc --N 50 --json -o saved.json")
    assert files(tmp_path) == ["saved.json"]
    assert (tmp_path / "saved.json").read_text(encoding="utf-8") == ran.out
    saved = read_design(tmp_path / "saved.json")
    assert saved.to_json() == ran.out
    assert (saved.inputs, saved.law) == (netctrl.arc(50).inputs, netctrl.arc(50).law)
    assert saved.certificate == netctrl.arc(50).certificate


def test_provenance_holds_the_command_line_in_whatever_way_it_is_called(run, tmp_path) -> None:
    arguments = ["arc", "--N", "50", "--json"]
    found = [design(run(" ".join(arguments)))]
    for program in (["netctrl.design"], ["netctrl", "design"]):
        ran = python(["-m", *program, *arguments], tmp_path)
        found.append(design(Ran(ran.returncode, ran.stdout, ran.stderr)))
    assert [each.pop("provenance")["argv"] for each in found] == [["netctrl", "design", *arguments]] * 3
    assert found[0] == found[1] == found[2]


def test_the_report_has_a_unit_for_each_number_and_nothing_on_stderr(run) -> None:
    ran = run("arc --N 50")
    assert (ran.status, ran.err) == (0, "")
    for piece in ("10 Mbit/s", "50 flows", "500 ms", "ADMISSIBLE", "per packet", "per byte", "rad/s", " dB", "45.00°"):
        assert piece in ran.out
    for name in ("gain margin", "phase margin", "delay margin", "disk margin", "spectral radius", "stable below"):
        assert name in ran.out
    assert "sampled loop" in ran.out
    assert "the paper says" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 160
    box = run("arc --N 50:60 --rtt 450ms:500ms")
    assert "over the box" in box.out
    assert "450 ms to 500 ms" in box.out


def test_a_failing_disk_is_named_and_leaves_nothing(run, tmp_path, monkeypatch) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "x.json").write_bytes(b"old")
    monkeypatch.setattr(os, "replace", full)
    error = the_error(run("arc --N 50 -o x.json"), 2)
    monkeypatch.undo()
    assert "-o" in error
    assert "No space left" in error
    assert files(tmp_path) == ["x.json"]
    assert (tmp_path / "x.json").read_bytes() == b"old"


@pytest.mark.parametrize("line", ["arc --N 50", "arc --help"])
def test_a_reader_that_has_gone_is_no_error(line, tmp_path) -> None:
    """As in `netctrl design arc --N 50 | head -1`."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as out:
        ran = python(["-m", "netctrl.design", *line.split()], tmp_path, stdout=out)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full, which Linux has")
@pytest.mark.parametrize("line", ["arc --N 50 --json", "arc --help"])
def test_a_full_disk_behind_stdout_is_one_line(line, tmp_path) -> None:
    with Path("/dev/full").open("wb") as out:
        ran = python(["-m", "netctrl.design", *line.split()], tmp_path, stdout=out)
    error = the_error(Ran(ran.returncode, "", ran.stderr), 1)
    assert "No space left" in error
