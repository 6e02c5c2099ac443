"""`python -m netctrl.design arc` as a person, a script and CI see it: status, one line of error, JSON, files."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netctrl.__main__
from netctrl.cli.design import main
from netctrl.datasets import design_schema
from netctrl.model.design.design import read_design


class Ran(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys, tmp_path, monkeypatch) -> Run:
    """Run `arc` in this process, in an empty folder; the command line is one string, as in a shell."""
    monkeypatch.chdir(tmp_path)

    def run_arc(line: str, command: Callable[[list[str]], int] = main) -> Ran:
        capsys.readouterr()
        status = command(shlex.split(line))
        return Ran(status, *capsys.readouterr())

    return run_arc


def python(arguments: list[str], folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False, **options)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def design(ran: Ran) -> dict[str, Any]:
    assert (ran.status, ran.err) == (0, ""), ran
    return json.loads(ran.out)


def the_error(ran: Ran, status: int) -> str:
    """The one line of stderr."""
    assert ran.status == status, ran
    assert re.fullmatch(r"error: [^\n]+\n", ran.err), ran.err
    assert "Traceback" not in ran.err + ran.out
    return ran.err


# Each: arguments, and what the line has to hold beside "error: ": the option, the value got, a piece of what is taken.
WRONG_USE = {
    "no flows": ("arc --N 0", ["--N", "'0'", "above 0", "as in 50"]),
    "negative flows": ("arc --N -5", ["--N", "'-5'", "above 0"]),
    "negative flows with =": ("arc --N=-5", ["--N", "'-5'", "above 0"]),
    "flows in words": ("arc --N many", ["--N", "'many'", "above 0"]),
    "flows are nan": ("arc --N nan", ["--N", "'nan'", "above 0"]),
    "flows are empty": ("arc --N ''", ["--N", "''", "above 0"]),
    "RTT without a unit": ("arc --N 50 --rtt 500", ["--rtt", "'500'", "unit", "500ms"]),
    "half an RTT range without a unit": ("arc --N 50 --rtt 60:500ms", ["--rtt", "'60:500ms'", "unit"]),
    "misspelt rate": ("arc --N 50 --capacity '10 Mbitt'", ["--capacity", "'10 Mbitt'", "Mbit"]),
    "ambiguous rate": ("arc --N 50 --capacity 10Mbps", ["--capacity", "'10Mbps'", "Mbit"]),
    "utilization above 1": ("arc --N 50 --utilization 1.2", ["--utilization", "1.2", "(0, 1]"]),
    "utilization in percent": ("arc --N 50 --utilization 98%", ["--utilization", "98%", "(0, 1]"]),
    "no packet size": ("arc --N 50 --packet-size 0", ["--packet-size", "0", "bytes"]),
    "no epoch": ("arc --N 50 --epoch 0s", ["--epoch", "0s", "ms"]),
    "epoch too short": ("arc --N 50 --epoch 0.1ms", ["--epoch", "at least"]),
    "negative queue": ("arc --N 50 --target-queue -1", ["--target-queue", "'-1'", "at least 0"]),
    "queue in a strange unit": ("arc --N 50 --target-queue 5Q", ["--target-queue", "'5Q'", "kB"]),
    "queue in superscript": ("arc --N 50 --target-queue ²", ["--target-queue", "'²'", "at least 0"]),
    "unknown plant": ("arc --N 50 --plant real", ["--plant", "'real'", "paper", "noq", "phys"]),
    "no gain": ("arc --N 50 --alpha 0", ["--alpha", "0", "above 0"]),
    "gain in words": ("arc --N 50 --alpha high", ["--alpha", "'high'", "above 0"]),
    "unknown acceptance": ("arc --N 50 --accept any", ["--accept", "'any'", "admissible", "stable"]),
    "no fragile flows": ("arc --N 50 --fragile-N 0", ["--fragile-N", "0", "above 0"]),
    "fragile RTT without a unit": ("arc --N 50 --fragile-rtt 2", ["--fragile-rtt", "'2'", "unit"]),
    "empty range of flows": ("arc --N 400:50", ["--N", "'400:50'", "empty", "low"]),
    "empty range of RTT": ("arc --N 50 --rtt 500ms:60ms", ["--rtt", "'500ms:60ms'", "empty", "unit"]),
    "range of three": ("arc --N 50:60:70", ["--N", "'50:60:70'", "range"]),
    "range without an end": ("arc --N 50:", ["--N", "'50:'", "range"]),
    "picture of a strange kind": ("arc --N 50 --plot x.gif", ["--plot", "'x.gif'", ".png", ".svg"]),
    "picture of no kind": ("arc --N 50 --plot png", ["--plot", "'png'", ".png", ".svg"]),
    "unwritable output": ("arc --N 50 -o missing/x.json", ["-o", "'missing/x.json'", "no folder"]),
    "output is a folder": ("arc --N 50 --output .", ["-o", "'.'", "folder"]),
    "unwritable picture": ("arc --N 50 --plot missing/x.png", ["--plot", "'missing/x.png'", "no folder"]),
    "flows not given": ("arc", ["--N", "nothing", "as in 50"]),
    "flows without a value": ("arc --N", ["--N", "nothing", "as in 50"]),
    "epoch without a value": ("arc --N 50 --epoch", ["--epoch", "nothing", "ms"]),
    "unknown option": ("arc --N 50 --bandwidth 3", ["--bandwidth", "--help"]),
    "unknown flag": ("arc --N 50 --no-json", ["--no-json", "--help"]),
    "value for a flag": ("arc --N 50 --json=yes?", ["--json", "yes?"]),
    "a word too many": ("arc --N 50 surplus", ["surplus", "--help"]),
    "option twice": ("arc --N 50 --N 60", ["--N"]),
    "unknown command": ("ark --N 50", ["ark", "arc"]),
    "options before the command": ("--N 50 arc", ["--N"]),
}


@pytest.mark.parametrize("name", WRONG_USE)
def test_wrong_use_is_one_line_that_names_option_value_and_remedy(name, run, tmp_path) -> None:
    line, pieces = WRONG_USE[name]
    ran = run(line)
    error = the_error(ran, 2)
    assert [piece for piece in pieces if piece not in error] == [], error
    assert ran.out == ""
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
    elif ran.status == 2:
        assert extreme.split()[0] in the_error(ran, 2)
    else:
        the_error(ran, 3)


NUMBERS = ["N", "capacity", "packet-size", "rtt", "epoch", "target-queue", "utilization", "alpha", "fragile-N"]
ANY_TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=6)
ALMOST_NUMBERS = st.from_regex(r"[-+]?[0-9.]{1,4}(s|ms|bit|Mbit|kB)?(:[0-9.]{1,3}(s|ms)?)?", fullmatch=True)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.sampled_from(NUMBERS), ANY_TEXT | ALMOST_NUMBERS)
def test_no_text_at_all_gives_a_traceback(option, text) -> None:
    arguments = ["arc", f"--{option}={text}", *([] if option == "N" else ["--N=50"]), "--accept=stable"]
    assert main(arguments) in (0, 2, 3)


LAW = ["alpha_per_packet", "alpha_per_byte", "epoch_s", "target_utilization", "target_queue_packets"]
CERTIFICATE = ["status", "stable", "sampled", "simulated", "reach", "paper", "box", "warnings"]
SAMPLED = ["plant", "alpha_limit", "gain_margin_db", "phase_margin_deg", "delay_margin_s", "disk_margin"]
SAMPLED += ["spectral_radius", "crossover_rad_s", "phase_crossover_rad_s", "epoch_s"]
SIMULATED = ["probability_cv", "utilization", "queue_packets", "duration_s", "settles"]
PAPER = ["alpha_over_epoch", "gain_margin_db", "phase_margin_deg", "delay_margin_s", "crossover_rad_s", "plant"]


@pytest.mark.parametrize(
    "line",
    [
        "arc --N 50 --json",
        "arc --json --N 50 --plant noq",
        "arc --N 50:60 --rtt 450ms:500ms --json",
        "arc --N=50 --utilization=1 --target-queue=20kB --plant=phys --json",
    ],
)
def test_json_is_one_object_with_every_key_and_valid(line, run, tmp_path) -> None:
    found = design(run(line))
    jsonschema.Draft202012Validator(design_schema()).validate(found)
    proof, law = found["certificate"], found["law"]
    assert [key for key in LAW if key not in law] == []
    assert [key for key in CERTIFICATE if key not in proof] == []
    for part, keys in (("sampled", SAMPLED), ("simulated", SIMULATED), ("paper", PAPER)):
        assert [key for key in keys if proof[part].get(key) is None] == []
    assert {"low", "high", "limit", "binding"} <= proof["paper"]["alpha_over_epoch"].keys()
    assert proof["stable"] is True
    assert law["alpha_per_byte"] == pytest.approx(law["alpha_per_packet"] / 1000.0, rel=1e-15)
    assert files(tmp_path) == []


def test_the_default_network_has_the_numbers_of_the_theory_note(run) -> None:
    proof = design(run("arc --N 50 --json"))["certificate"]
    band = proof["paper"]["alpha_over_epoch"]
    assert band["limit"] == pytest.approx(3.2242897e-5, rel=1e-6)
    assert band["low"] == pytest.approx(3.4719719e-6, rel=1e-6)
    assert band["high"] == pytest.approx(1.0656343e-5, rel=1e-6)
    assert band["binding"] == "phase margin"
    assert proof["sampled"]["alpha_limit"] == pytest.approx(2.27662337e-5, rel=1e-8)
    assert proof["sampled"]["phase_margin_deg"] == pytest.approx(45.0, abs=1e-6)
    assert proof["status"] == "admissible"


def test_the_papers_gain_is_analysed_stable_and_warned_of(run) -> None:
    found = design(run("arc --N 50 --alpha 1.42e-5 --accept stable --json"))
    proof = found["certificate"]
    assert found["law"]["alpha_per_packet"] == 1.42e-5
    assert proof["paper"]["gain_margin_db"] == pytest.approx(7.122914, rel=1e-6)
    assert proof["paper"]["phase_margin_deg"] == pytest.approx(22.04231, rel=1e-6)
    assert proof["sampled"]["gain_margin_db"] == pytest.approx(20.0 * math.log10(2.27662337e-5 / 1.42e-5), abs=1e-6)
    assert (proof["status"], proof["stable"]) == ("stable", True)
    assert any("too little margin" in warning and "30°" in warning for warning in proof["warnings"])
    report = run("arc --N 50 --alpha 1.42e-5")
    assert report.status == 3
    assert report.out.startswith("Safe for 50 flows at 500 ms: no")
    assert "7.12 dB" in report.out
    assert "22.04°" in report.out
    assert report.out.count("warning: ") == len(proof["warnings"])


def test_the_papers_second_setting_is_unstable(run) -> None:
    """It keeps alpha/d and so doubles the rate gain: the continuous loop sees nothing of it, the sampled one does."""
    ran = run("arc --N 50 --epoch 2s --alpha 2.84e-5 --json")
    error = the_error(ran, 3)
    proof = json.loads(ran.out)["certificate"]
    assert proof["sampled"]["spectral_radius"] > 1.165111  # with the window undelayed
    assert proof["sampled"]["plant"] == "noq"
    assert (proof["status"], proof["stable"]) == ("unstable", False)
    assert "unstable" in error
    assert f"{proof['sampled']['alpha_limit']:.6g}" in error


def test_without_an_equilibrium_it_is_infeasible_and_says_what_would_do(run, tmp_path) -> None:
    ran = run("arc --N 800 --json -o x.json")
    error = the_error(ran, 3)
    assert json.loads(ran.out)["certificate"]["status"] == "infeasible"
    assert json.loads(ran.out)["certificate"]["sampled"]["alpha_limit"] is None
    assert files(tmp_path) == []
    most = re.search(r"at most ([\d.]+) flows", error)
    assert most, error
    assert run(f"arc --N {0.999 * float(most[1])}").status == 0
    assert run("arc --N 800").out.startswith("Safe for 800 flows at 500 ms: no, TCP has no equilibrium")


@pytest.mark.parametrize("alpha", ["1e-12", "1e-20", "1e-50"])
def test_a_tiny_gain_is_slow_and_not_unstable(alpha, run) -> None:
    """Far below every limit: round-off in the spectral radius must not make it a verdict."""
    found = design(run(f"arc --N 50 --alpha {alpha} --no-simulation --json"))
    assert found["certificate"]["status"] == "admissible"
    assert any("slow" in warning for warning in found["certificate"]["warnings"])


def test_the_simulation_can_be_left_out_and_that_is_said(run) -> None:
    found = design(run("arc --N 50 --no-simulation --json"))
    assert found["certificate"]["simulated"] is None
    assert any("--no-simulation" in warning for warning in found["certificate"]["warnings"])


def test_the_papers_curiosities_are_for_whoever_asks(run) -> None:
    plain, paper = run("arc --N 50").out, run("arc --N 50 --paper").out
    assert "fragile" not in plain
    assert "warning" not in plain
    assert "fragile system" in paper
    assert "eq. 9" in paper


@pytest.mark.slow
def test_a_wide_box_has_one_gain_that_is_proved(run) -> None:
    found = design(run("arc --N 50:400 --rtt 470ms:500ms --json"))
    box = found["certificate"]["box"]
    assert found["certificate"]["status"] == "admissible"
    assert box["worst_corner"] == pytest.approx({"flows": 50.0, "rtt_s": 0.5})
    assert found["law"]["alpha_per_packet"] <= box["margins_kept_below"] < box["stable_below"]
    assert run("arc --N 50:400 --rtt 470ms:500ms").out.startswith("Safe for 50 to 400 flows at 470 ms to 500 ms: yes")


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


@pytest.mark.parametrize("way", ["in process", "python -m"])
def test_provenance_holds_the_command_line(way, run, tmp_path) -> None:
    arguments = ["arc", "--N", "50", "--json"]
    if way == "in process":
        found = design(run(" ".join(arguments)))
    else:
        found = json.loads(python(["-m", "netctrl.design", *arguments], tmp_path).stdout)
    argv = found["provenance"]["argv"]
    assert argv == ["netctrl", "design", *arguments]


def test_the_report_has_a_unit_for_each_number_and_nothing_on_stderr(run) -> None:
    ran = run("arc --N 50")
    assert (ran.status, ran.err) == (0, "")
    for piece in ("10 Mbit/s", "50 flows", "500 ms", "ADMISSIBLE", "per packet", "per byte", "rad/s", " dB", "45.00°"):
        assert piece in ran.out
    for piece in (
        "gain margin",
        "phase margin",
        "delay margin",
        "disk margin",
        "sampled loop",
        "spectral radius",
        "stable below",
        "the paper says",
    ):
        assert piece in ran.out
    assert max(map(len, ran.out.splitlines())) <= 160
    box = run("arc --N 50:60 --rtt 450ms:500ms")
    assert "over the box" in box.out
    assert "450 ms to 500 ms" in box.out


@pytest.mark.parametrize("option", ["-o", "--output", "--plot"])
def test_a_run_that_fails_leaves_old_files_alone(option, run, tmp_path) -> None:
    name = "old.png" if option == "--plot" else "old.json"
    (tmp_path / name).write_bytes(b"old")
    for line in ("--N 0", "--N 50 --utilization 2", "--N 50 --plot missing/x.png -o old.json"):
        the_error(run(f"arc {line}{'' if '-o' in line else f' {option} {name}'}"), 2)
        assert files(tmp_path) == [name]
        assert (tmp_path / name).read_bytes() == b"old"


def test_no_picture_is_left_where_the_design_could_not_be_saved(run, tmp_path) -> None:
    (tmp_path / "old.png").write_bytes(b"old")
    for picture in ("old.png", "new.png"):
        the_error(run(f"arc --N 50 --plot {picture} -o missing/x.json"), 2)
    assert files(tmp_path) == ["old.png"]
    assert (tmp_path / "old.png").read_bytes() == b"old"


def test_a_refused_design_is_not_saved_over_an_old_one(run, tmp_path) -> None:
    (tmp_path / "old.json").write_bytes(b"old")
    the_error(run("arc --N 800 -o old.json"), 3)
    the_error(run("arc --N 50 --epoch 2s --alpha 2.84e-5 -o old.json"), 3)
    assert (tmp_path / "old.json").read_bytes() == b"old"
    assert files(tmp_path) == ["old.json"]


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


def test_saving_through_a_link_keeps_it_and_into_a_fifo_keeps_that(run, tmp_path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link.json").symlink_to("there/real.json")
    design(run("arc --N 50 --json -o link.json"))
    assert (tmp_path / "link.json").is_symlink()
    assert read_design(tmp_path / "there" / "real.json").law.epoch_s == 1.0
    os.mkfifo(tmp_path / "fifo")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "fifo").read_bytes()), daemon=True)
    reader.start()
    ran = run("arc --N 50 --json -o fifo")
    reader.join(timeout=60)
    assert got == [ran.out.encode()]
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "name", "begins", "holds"),
    [
        ("arc --N 50", "x.png", b"\x89PNG\r\n\x1a\n", b"IEND"),
        ("hftrac --network merge --mu 1", "x.PNG", b"\x89PNG\r\n\x1a\n", b"IEND"),
        ("hftrac --network merge --mu 1", "x.svg", b"<?xml", b"</svg>"),
        ("hftrac --network merge --mu 1", "x.pdf", b"%PDF", b"%%EOF"),
    ],
)
def test_plot_writes_the_kind_that_the_name_says(line, name, begins, holds, run, tmp_path) -> None:
    ran = run(f"{line} --json --plot {name}")
    assert design(ran)["method"] == line.split()[0]
    content = (tmp_path / name).read_bytes()
    assert content.startswith(begins)
    assert holds in content
    assert files(tmp_path) == [name]


OPTIONS = ["--N", "--capacity", "--packet-size", "--rtt", "--utilization", "--epoch", "--target-queue", "--plant"]
OPTIONS += ["--alpha", "--accept", "--fragile-N", "--fragile-rtt", "--json", "-o", "--output", "--plot"]
OPTIONS += ["--no-simulation", "--paper"]


@pytest.mark.parametrize("line", ["arc --help", "arc -h", "arc --N 0 --help", "--help arc"])
def test_help_lists_every_option_with_its_default(line, run) -> None:
    ran = run(line)
    assert (ran.status, ran.err) == (0, "")
    assert [option for option in OPTIONS if not re.search(rf"{option}\b", ran.out)] == []
    for default in ("10Mbit", "1000", "500ms", "0.98", "auto", "required"):
        assert f"[{default}]" in ran.out


def test_help_and_version_of_the_verbs(run) -> None:
    for ran in (run(""), run("--help"), run("-h")):
        assert (ran.status, ran.err) == (0, "")
        assert re.search(r"^ +arc +\S", ran.out, re.MULTILINE)
    for ran in (run("", netctrl.__main__.main), run("--help", netctrl.__main__.main)):
        assert (ran.status, ran.err) == (0, "")
        assert re.search(r"^ +design +\S", ran.out, re.MULTILINE)
    for command in (main, netctrl.__main__.main):
        assert run("--version", command) == Ran(0, f"netctrl {netctrl.__version__}\n", "")


def test_the_netctrl_command_hands_over_to_the_verb(run) -> None:
    ours, theirs = run("arc --N 50"), run("design arc --N 50", netctrl.__main__.main)
    assert theirs == ours
    assert run("design arc --N 0", netctrl.__main__.main) == run("arc --N 0")
    error = the_error(run("desing arc --N 50", netctrl.__main__.main), 2)
    assert "'desing'" in error
    assert "design" in error


def test_ctrl_c_is_one_line_and_status_130(run, tmp_path, monkeypatch) -> None:
    def interrupted(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("netctrl.design.arc.design"), "arc", interrupted)
    assert len(the_error(run("arc --N 50 -o x.json"), 130).splitlines()) == 1
    assert files(tmp_path) == []


@pytest.mark.slow
def test_both_ways_to_call_it_agree_as_processes(tmp_path) -> None:
    found = []
    for arguments in (["-m", "netctrl.design"], ["-m", "netctrl", "design"]):
        ran = python([*arguments, "arc", "--N", "50", "--json"], tmp_path)
        assert (ran.returncode, ran.stderr) == (0, "")
        found.append({**json.loads(ran.stdout), "provenance": None})
    assert found[0] == found[1]
    assert math.isclose(found[0]["law"]["alpha_per_packet"], 5.735099e-6, rel_tol=1e-6)


@pytest.mark.parametrize(("line", "status"), [("--N 50 --rtt 500", 2), ("--N 800", 3), ("--N 50 -o missing/x.json", 2)])
def test_a_process_ends_with_the_status_and_one_line(line, status, tmp_path) -> None:
    ran = python(["-m", "netctrl.design", "arc", *line.split()], tmp_path)
    the_error(Ran(ran.returncode, ran.stdout, ran.stderr), status)
    assert files(tmp_path) == []


@pytest.mark.parametrize("line", ["arc --N 50", "arc --help"])
def test_a_reader_that_has_gone_is_no_error(line, tmp_path) -> None:
    """As in `netctrl design arc --N 50 | head -1`."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "netctrl.design", *line.split()]
    with os.fdopen(write_end, "wb") as out:
        ran = subprocess.run(command, cwd=tmp_path, stdout=out, stderr=subprocess.PIPE, text=True, timeout=300)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full, which Linux has")
@pytest.mark.parametrize("line", ["arc --N 50 --json", "arc --help"])
def test_a_full_disk_behind_stdout_is_one_line(line, tmp_path) -> None:
    command = [sys.executable, "-m", "netctrl.design", *line.split()]
    with Path("/dev/full").open("wb") as out:
        ran = subprocess.run(command, cwd=tmp_path, stdout=out, stderr=subprocess.PIPE, text=True, timeout=300)
    error = the_error(Ran(ran.returncode, "", ran.stderr), 1)
    assert "No space left" in error
