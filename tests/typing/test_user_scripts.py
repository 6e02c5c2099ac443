"""Types as users' checkers see them, from the stub of `import netctrl` to the fields of a certificate.

Three users' scripts have no error; a line that ends in `# wrong: A -> B` has one with B in place of A.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from places import TESTS
from stub import STUB, stub_text

import netctrl
from netctrl.checks import CHECKS
from netctrl.core import names
from netctrl.core.register import CERTIFIED, ENGINES, QUEUE_LAWS, TCP_SENDERS
from netctrl.design.queue.search import CODELS, LINES, PI_LAWS
from netctrl.evaluation.run import ENGINES_OF_CASES
from netctrl.evaluation.subject import known_laws
from netctrl.ident.identify import ALL_METHODS
from netctrl.laws.rate.records import SENDER_WORDS
from netctrl.model import datasets
from netctrl.plants.queues.window_response import SENDERS

FOLDER = TESTS / "typing"
USERS = ("operator", "student", "engineer")
CHECKERS = {
    "pyright": ["pyright", "--pythonpath", sys.executable],
    "mypy": ["mypy", "--strict", "--ignore-missing-imports", "--python-executable", sys.executable],
}
PLANTED = "  # wrong: "


def errors(checker: str, scripts: dict[str, str], folder: Path) -> set[tuple[str, int]]:
    """Script and line of each error, as users in a folder of their own have them; libraries without types are none."""
    for name, code in scripts.items():
        (folder / f"{name}_script.py").write_text(code, encoding="utf-8")
    # pyright leaves out what is below a folder such as .nox, unless a project says otherwise.
    (folder / "pyrightconfig.json").write_text('{"include": ["."], "exclude": []}', encoding="utf-8")
    files = [f"{name}_script.py" for name in scripts] if checker == "mypy" else []
    command = [sys.executable, "-m", *CHECKERS[checker], *files]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    found = re.findall(r"(\w+)_script\.py:(\d+)(?::\d+)?(?: -|:) error: ", ran.stdout)
    assert bool(found) == bool(ran.returncode), ran.stdout + ran.stderr
    return {(name, int(line)) for name, line in found}


def lines_of(name: str) -> list[str]:
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()


def mistaken(line: str) -> str:
    code, planted, swap = line.partition(PLANTED)
    right, _, wrong = swap.partition(" -> ")
    assert not planted or code.count(right) == 1, line
    return code.replace(right, wrong) if planted else line


@pytest.mark.parametrize("checker", CHECKERS)
def test_users_sessions_have_no_error(checker, tmp_path) -> None:
    pytest.importorskip(checker)
    assert errors(checker, {name: "\n".join(lines_of(name)) for name in USERS}, tmp_path) == set()


@pytest.mark.parametrize("checker", CHECKERS)
def test_each_planted_mistake_is_found(checker, tmp_path) -> None:
    pytest.importorskip(checker)
    scripts = {name: "\n".join(map(mistaken, lines_of(name))) for name in USERS}
    planted = {(name, n) for name in USERS for n, line in enumerate(lines_of(name), 1) if PLANTED in line}
    assert len(planted) == 20
    more = lines_of("user_mistakes")
    planted |= {("user_mistakes", n) for n, line in enumerate(more, 1) if line.endswith("# wrong")}
    assert errors(checker, {**scripts, "user_mistakes": "\n".join(more)}, tmp_path) == planted


@pytest.mark.parametrize(
    ("literal", "known"),
    [
        (names.EngineName, ENGINES),
        (names.CheckName, CHECKS),
        (names.EvaluationEngine, ENGINES_OF_CASES),
        (names.SenderName, (*TCP_SENDERS, *SENDER_WORDS)),
        (names.LoopSender, SENDERS),
        (names.EvaluatedName, known_laws()),
        (names.CertifiedName, {*CERTIFIED, *QUEUE_LAWS}),
        (names.DesignedName, (*PI_LAWS, *LINES, *CODELS)),
        (names.IdentMethod, ALL_METHODS),
        (names.NetworkName, datasets.networks()),
        (names.ModelName, datasets.models()),
        (names.ScenarioName, datasets.scenarios()),
    ],
)
def test_names_for_checkers_are_those_that_are_known(literal, known) -> None:
    assert sorted(get_args(literal)) == sorted(known)


def test_the_stub_is_that_of_the_tables() -> None:
    assert STUB.read_text(encoding="utf-8") == stub_text(), "run `python tests/support/stub.py`"
    installed = Path(netctrl.__file__).parent
    assert (installed / "__init__.pyi").read_text(encoding="utf-8") == stub_text()
    assert (installed / "py.typed").is_file()
