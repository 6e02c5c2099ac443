"""Types as a user's checker sees them, from the stub of `import netctrl` to the fields of a certificate."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import TESTS
from stub import STUB, stub_text

import netctrl

FOLDER = TESTS / "typing"
CHECKERS = {
    "pyright": ["pyright", "--pythonpath", sys.executable],
    "mypy": ["mypy", "--strict", "--ignore-missing-imports", "--python-executable", sys.executable],
}


def errors(checker: str, script: str, folder: Path) -> dict[int, str]:
    """Line -> error, as a user in a folder of their own has them; libraries without types are none."""
    command = [sys.executable, "-m", *CHECKERS[checker], str(FOLDER / script)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    found = re.findall(rf"{script}:(\d+)(?::\d+)?(?: -|:) error: (.*)", ran.stdout)
    assert bool(found) == bool(ran.returncode), ran.stdout + ran.stderr
    return {int(line): said for line, said in found}


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_users_session_has_no_error(checker, tmp_path) -> None:
    pytest.importorskip(checker)
    assert errors(checker, "user_script.py", tmp_path) == {}


@pytest.mark.parametrize("checker", CHECKERS)
def test_each_planted_mistake_is_found(checker, tmp_path) -> None:
    pytest.importorskip(checker)
    lines = (FOLDER / "user_mistakes.py").read_text(encoding="utf-8").splitlines()
    planted = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert set(errors(checker, "user_mistakes.py", tmp_path)) == planted


def test_the_stub_is_that_of_the_tables() -> None:
    assert STUB.read_text(encoding="utf-8") == stub_text(), "run `python tests/support/stub.py`"
    installed = Path(netctrl.__file__).parent
    assert (installed / "__init__.pyi").read_text(encoding="utf-8") == stub_text()
    assert (installed / "py.typed").is_file()
