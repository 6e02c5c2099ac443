"""What an installation needs: the libraries of the core, and nothing that only POSIX has outside what drives Linux."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT, TESTS
from without_posix import MODULES as POSIX_ONLY

PACKAGE = ROOT / "netctrl"
SOURCES = sorted(PACKAGE.rglob("*.py"))
LINUX = (PACKAGE / "linux", PACKAGE / "kernel", PACKAGE / "cli" / "linux")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORTED_AS = {"sippy-unipi": "sippy_unipi"}


def bounds(requirements: list[str]) -> dict[str, str]:
    """Name -> lower bound."""
    return dict(re.match(r"([\w.-]+)>=([\w.]+)", each).groups() for each in requirements)


def core() -> dict[str, str]:
    """The lower bounds of requirements/core.txt."""
    lines = (ROOT / "requirements" / "core.txt").read_text(encoding="utf-8").splitlines()
    return bounds([line for line in lines if line and not line.startswith("#")])


def heavy() -> set[str]:
    """Modules of the dependencies that the core leaves out, and of the extras that netctrl imports."""
    extras = [each for name in ("dask", "mpc", "parquet") for each in PROJECT["optional-dependencies"][name]]
    names = bounds([*PROJECT["dependencies"], *extras]).keys() - core().keys()
    return {IMPORTED_AS.get(name, name) for name in names}


def test_the_core_has_bounds_of_the_project() -> None:
    assert core().items() <= bounds(PROJECT["dependencies"]).items()


def test_the_core_leaves_out_what_is_heavy() -> None:
    assert {"pandas", "pyarrow", "control", "cvxpy", "osqp", "sippy_unipi", "networkx", "casadi"} <= heavy()


def test_the_page_names_the_extras_for_users() -> None:
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    ours = {"test", "lint", "typing", "docs", "package", "dev"}
    assert set(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)) == PROJECT["optional-dependencies"].keys() - ours
    (asked,) = re.findall(r"'\.\[([\w,]+)\]'", page)
    assert set(asked.split(",")) <= PROJECT["optional-dependencies"].keys()


def imports(code: str) -> Iterator[tuple[str, int, bool, bool]]:
    """Each import: the library, its line, whether it is at module level, and within `optional_import()`."""

    def visit(node: ast.AST, top: bool, guarded: bool) -> Iterator[tuple[str, int, bool, bool]]:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return
            case ast.Import(names=names):
                yield from ((each.name.partition(".")[0], node.lineno, top, guarded) for each in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0], node.lineno, top, guarded
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(name))]):
                yield name.partition(".")[0], node.lineno, top, guarded
            case ast.With(items=[ast.withitem(context_expr=ast.Call(func=ast.Name(id="optional_import")))]):
                guarded = True
        top = top and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, top, guarded)

    yield from visit(ast.parse(code), True, False)


def unguarded(code: str, libraries: set[str]) -> list[int]:
    """Lines that import a heavy library at module level, or without `optional_import()`."""
    return [line for name, line, top, guarded in imports(code) if name in libraries and (top or not guarded)]


@pytest.mark.slow
def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    libraries = heavy()
    found = {path.name: unguarded(path.read_text(encoding="utf-8"), libraries) for path in SOURCES}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("import pandas as pd", [1]),
        ("from pandas.api import types", [1]),
        ("def f():\n    import pandas as pd", [2]),
        ("with optional_import():\n    import pandas as pd", [2]),
        ("def f():\n    with optional_import():\n        import pandas as pd", []),
        ("def f():\n    with optional_import():\n        import_module('pandas')", []),
        ("def f():\n    import_module('pandas')", [2]),
        ("if TYPE_CHECKING:\n    import pandas as pd", []),
        ("import numpy as np", []),
    ],
)
def test_a_careless_import_is_seen(code: str, wrong: list[int]) -> None:
    assert unguarded(code, {"pandas"}) == wrong


def needed(text: str) -> set[str]:
    """Names of what a source imports, but for what it does without: imports in a `try` with an `except ImportError`."""
    tried = [
        ast.Module(node.body, [])
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Try)
        and any(each.type is not None and "ImportError" in ast.unparse(each.type) for each in node.handlers)
    ]
    return {name for name, *_ in imports(text)} - {name for each in tried for name, *_ in imports(ast.unparse(each))}


@pytest.mark.slow
def test_no_module_needs_posix_outside_of_linux() -> None:
    portable = [path for path in SOURCES if not any(path.is_relative_to(folder) for folder in LINUX)]
    assert len(portable) < len(SOURCES)
    found = {path.relative_to(ROOT).as_posix(): needed(path.read_text(encoding="utf-8")) for path in portable}
    assert {path: names for path, names in found.items() if not POSIX_ONLY.isdisjoint(names)} == {}


WITHOUT_POSIX = TESTS / "support" / "without_posix.py"
PUBLIC_NAMES = """
import netctrl
for name in netctrl._PUBLIC:
    getattr(netctrl, name)
"""
DESIGN_AND_SIMULATE = """
import netctrl
from netctrl.__main__ import main
for _ in range(2):  # the second time over the first one's files
    assert main(["design", "arc", "--N", "50", "-o", "arc.json", "--plot", "arc.png"]) == 0
design = netctrl.read("arc.json")
assert netctrl.simulate(design, engine="fluid").between(100.0, 300.0)["utilization", "bottleneck"] > 0.97
assert main(["simulate", "--design", "arc.json", "--compare", "fluid,packet"]) == 0
assert main(["simulate", "hftrac-testbed", "--runs", "2"]) == 0
"""


def windows_like(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in an empty folder; netctrl's modules see Python as on Windows."""
    command = [sys.executable, str(WITHOUT_POSIX), script]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("script", [PUBLIC_NAMES, DESIGN_AND_SIMULATE], ids=["public names", "design and simulate"])
def test_it_runs_without_posix(script: str, tmp_path: Path) -> None:
    ran = windows_like(script, tmp_path)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    "script", ["import netctrl.linux.queues.record", "from netctrl.cli.linux import common; common.Stop().__enter__()"]
)
def test_what_drives_linux_does_not(script: str, tmp_path: Path) -> None:
    """So that the test above would see an import or a name of POSIX."""
    ran = windows_like(script, tmp_path)
    assert ran.returncode == 1
    assert re.search("No module named 'fcntl' on Windows|has no attribute", ran.stderr)
