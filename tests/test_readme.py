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
    "netctrl linux apply router/arc.plan.json --dry-run": "needs an eth0: tests/linux/queues/test_plan.py",
}
# Words of a line -> what stands in their place, and why.
CHANGED = {("--run",): ((), "ns-3 is compiled and run by tests/ns3/test_program.py and test_export_ns3_fifo_run.py")}
STATUS = {"netctrl design arc --N 50 --epoch 2s --alpha 2.84e-5": 3}  # as README says


def blocks(kind: str) -> list[str]:
    """The text of README's code blocks of one kind."""
    return [block.text for block in find_blocks(README) if block.kind == kind]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command with this Python, away from the checkout, without a display."""
    environment = os.environ | {"MPLBACKEND": "agg"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


def arguments(line: str) -> list[str]:
    """A line as a command of the Python that runs the tests."""
    words = shlex.split(line)
    for there, (instead, _) in CHANGED.items():
        places = [i for i in range(len(words)) if tuple(words[i : i + len(there)]) == there]
        for at in reversed(places):
            words[at : at + len(there)] = instead
    assert words[0] == "netctrl", f"how is this run? {line}"
    return [sys.executable, "-m", *words]


@pytest.mark.slow
def test_every_console_line_runs_in_an_empty_folder(tmp_path):
    lines = [line for text in blocks("console") for line in text.splitlines() if line]
    assert len(lines) >= 15
    failed = []
    for line in lines:
        if line in NOT_RUN:
            continue
        ran = run(arguments(line), tmp_path)
        if ran.returncode != STATUS.get(line, 0):
            failed.append(f"{line}\n  exit status {ran.returncode}: {ran.stderr[-500:]}")
    assert failed == []


def test_exceptions_name_lines_that_are_there():
    text = "".join(blocks("console"))
    assert [line for line in [*NOT_RUN, *map(" ".join, CHANGED), *STATUS] if line not in text] == []


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
