"""Every line of README's code blocks runs in an empty folder, in order, with the netctrl that is tested."""

from __future__ import annotations

import inspect
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from doc_blocks import checked, find_blocks, same, unit
from places import ROOT

README = ROOT / "README.md"

# Line -> why it is not run here.
NOT_RUN = {
    "pip install . && python -m netctrl.design arc --N 50": "installs the checkout, as nox does before tests",
    "pip install nox && nox -s tests": "the run that this test is part of",
    "netctrl kernel build": "takes minutes: nox -s kernel",
    "netctrl certify pie --hz 1000 --rtt 20ms --N 10 --capacity 20Mbit --check kernel": "needs a kernel: tests/kernel",
}
MOST_WORDS = 300


def blocks(kind: str) -> list[str]:
    """The text of README's code blocks of one kind."""
    return [block.text for block in find_blocks(README) if block.kind == kind]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command with this Python, away from the checkout, without a display."""
    environment = os.environ | {"MPLBACKEND": "agg"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


def test_it_is_read_in_two_minutes():
    assert len(README.read_text(encoding="utf-8").split()) <= MOST_WORDS


@pytest.mark.slow
def test_every_console_line_runs_in_an_empty_folder(tmp_path):
    lines = [line for text in blocks("console") for line in text.splitlines() if line and not line.startswith("# ")]
    assert len(lines) - len(NOT_RUN) >= 4
    failed = []
    for line in lines:
        if line in NOT_RUN:
            continue
        command, *arguments = shlex.split(line)
        assert command == "netctrl", f"how is this run? {line}"
        ran = run([sys.executable, "-m", "netctrl", *arguments], tmp_path)
        if ran.returncode:
            failed.append(f"{line}\n  exit status {ran.returncode}: {ran.stderr[-500:]}")
    assert failed == []


def test_exceptions_name_lines_that_are_there():
    text = "".join(blocks("console"))
    assert [line for line in NOT_RUN if line not in text] == []


@pytest.mark.slow
def test_python_runs_in_an_empty_folder_and_gives_the_numbers_beside_it(tmp_path):
    """A number in a comment behind an expression is what the expression gives, to the digits that are printed."""
    (code,) = blocks("python")
    code = checked(code)
    assert code.count("same(") >= 3
    functions = "from __future__ import annotations\n" + inspect.getsource(unit) + inspect.getsource(same)
    ran = run([sys.executable, "-W", "error", "-c", functions + code], tmp_path)
    assert ran.returncode == 0, ran.stderr[-1500:]


@pytest.mark.parametrize("kind", ["scenario", "network", "trace", "sweep", "model"])
def test_names_stand_where_files_do(kind):
    from netctrl import InvalidValue
    from netctrl.model import datasets

    names = getattr(datasets, f"{kind}s")()
    assert names
    find = getattr(datasets, f"{kind}_path")
    assert all(find(name).is_file() for name in names)
    with pytest.raises(InvalidValue, match=names[0]):
        find("no-such-name")
