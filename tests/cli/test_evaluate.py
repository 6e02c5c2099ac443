"""`netctrl evaluate` as a person and a script see it: tables, JSON, files, the list, one line of error."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from command_lines import runner, the_error

from netctrl.__main__ import main
from netctrl.evaluation.record import read_evaluation
from netctrl.evaluation.run import evaluate

SHORT = ["--only", "8.2.2,11", "--quick", "--seeds", "2", "--workers", "1"]


def test_the_table_has_the_cases_and_the_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "pie", *SHORT]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("pie by RFC 7928: 1 section run in 1 case, 1 not run; 2 seeds, 95 % intervals")
    assert any(line.startswith("    6 flows") and " below droptail" in line for line in lines)
    assert any(line.startswith("  11 Implementation cost") and "not run: to be judged" in line for line in lines)


def test_files_and_json_are_the_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["-o", str(tmp_path / "pie.json"), "--report", str(tmp_path / "pie.html")]
    assert main(["evaluate", "pie", *SHORT, "--json", *files]) == 0
    printed = json.loads(capsys.readouterr().out)
    saved = read_evaluation(tmp_path / "pie.json")
    assert printed == json.loads(saved.to_json())
    assert saved.sections == evaluate("pie", only=["8.2.2", "11"], seeds=2, quick=True).sections
    page = (tmp_path / "pie.html").read_text()
    assert "Mild congestion" in page
    assert "netctrl evaluate pie" in page


def test_parameters_are_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "pie", *SHORT, "--set", "target=20ms, alpha=0.2", "--json"]) == 0
    law = json.loads(capsys.readouterr().out)["law"]
    assert (law["parameters"]["target"], law["parameters"]["alpha"]) == (0.02, 0.2)
    assert law["origin"] == "defaults; given: target, alpha"


def test_the_list_names_every_section_and_runs_nothing(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr("netctrl.evaluation.run._run", None)
    assert main(["evaluate", "bbr", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "bbr: sections and cases"
    assert any("5.1.4 Fairness within the algorithm" in line for line in lines)
    assert any("7.10 Multipath transport" in line and "not run: " in line for line in lines)
    assert main(["evaluate", "red", "--list", "--only", "4.6,8.3"]) == 0
    assert "4.6 Interaction with scheduling" in (out := capsys.readouterr().out)
    assert "not run: the engines have no scheduler around this law" in out
    assert "14 flows" in out
    assert "120 s; each parameter halved and doubled\n" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["piee"], "LAW: unknown 'piee'; did you mean 'pie'?"),
        (["pie", "--engine", "fluid"], "--engine: got 'fluid', takes one of packet, ns3, kernel"),
        (["pie", "--only", "99"], "--only: got '99', takes one of 2.1, 2.2"),
        (["pie", "--set", "target"], "--set: got 'target', takes NAME=VALUE"),
        (["pie", "--set", "gain=1"], "--set: got 'gain=1', takes a parameter of pie: target, update"),
        (["pie", "--report", "pie.txt"], "--report: got 'pie.txt'"),
        (["/nonexistent/design.json"], "/nonexistent/design.json"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    monkeypatch.setattr("netctrl.evaluation.run._run", None)
    assert said in the_error(runner(main, capsys)(shlex.join(["evaluate", *words])))
