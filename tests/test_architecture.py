"""The shape of the package: who imports whom, what an import loads, what is documented, and where it is."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from places import ROOT

import netctrl

PACKAGE = ROOT / "netctrl"

# Who may import whom, as a table of netctrl's folders and modules; each may import itself.
MODEL = ("core", "model")
LAWS = (*MODEL, "laws")
TECHNIQUES = ("plants", "ident", "synthesis", "mpc", "frequency")
ENGINES = ("sim", "ns3")
SHOWN = ("engines", "evaluation")
MAY_IMPORT = {
    "core": (),
    "model": ("core",),
    "laws": MODEL,
    **dict.fromkeys(TECHNIQUES, LAWS),
    "scenario": LAWS,
    "design": (*LAWS, *TECHNIQUES, "scenario", "certificates"),
    **dict.fromkeys(ENGINES, (*LAWS, "scenario", "plants")),
    "linux": (*LAWS, "scenario"),
    "kernel": (*LAWS, "scenario", "plants", "linux"),
    "certificates": (*LAWS, *TECHNIQUES, "scenario"),
    "checks": (*LAWS, *TECHNIQUES, "scenario", "certificates", "design", "sim", "engines"),
    "engines": (*LAWS, "scenario", "certificates", "design", "kernel", "linux", *ENGINES),
    "evaluation": (*LAWS, "scenario", "design", "engines"),
    "plotting": (*LAWS, "scenario", "plants", "frequency", "certificates", "checks", "design", "sim", *SHOWN),
}
# The command line: whatever it needs. Nothing imports it but the entry point `python -m netctrl`.
CLI = "cli"
DOOR = "__main__"


@dataclass(frozen=True)
class Arrow:
    """One import of ours: from a module to a module, both without the leading "netctrl."."""

    source: str
    target: str
    line: int
    inside_function: bool


def module_name(path: Path) -> str:
    """ "model.network" for netctrl/model/network.py, "model" for its __init__, "" for netctrl/__init__.py."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def arrows(source: str, code: str, is_package: bool) -> Iterator[Arrow]:
    """Every import of netctrl in `code`, at module level, in functions and under TYPE_CHECKING."""
    package = source.split(".") if is_package else source.split(".")[:-1]
    package = [part for part in package if part]

    def visit(node: ast.AST, inside: bool) -> Iterator[Arrow]:
        for name in imported(node, package):
            if name == "netctrl" or name.startswith("netctrl."):
                yield Arrow(source, name.removeprefix("netctrl").removeprefix("."), node.lineno, inside)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    yield from visit(ast.parse(code), inside=False)


def imported(node: ast.AST, package: list[str]) -> list[str]:
    """Absolute names of what a node imports; `package` (within netctrl) is what a leading dot means."""
    match node:
        case ast.Import(names=names):
            # A bare `import netctrl` is judged by what is read from it.
            return [alias.name for alias in names if alias.name != "netctrl" or alias.asname]
        case ast.Attribute(value=ast.Name(id="netctrl"), attr=name):
            return [f"netctrl.{name}"]
        case ast.ImportFrom(module=module, names=names, level=level):
            above = ["netctrl", *package[: len(package) - level + 1]] if level else []
            origin = ".".join([*above, *([module] if module else [])])
            return [f"{origin}.{alias.name}" for alias in names]
        case ast.Call(
            func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return [name]
    return []


def complaint(arrow: Arrow) -> str | None:
    """Why an arrow is wrong, or None."""
    source, target = arrow.source.split("."), arrow.target.split(".")
    area, aim = source[0], target[0]
    said = f"netctrl/{'/'.join(source)}, line {arrow.line}, imports netctrl.{arrow.target}"
    if arrow.target in ("__version__", "__file__"):
        return None
    if area == "":
        return None if arrow.inside_function else f"{said}: netctrl/__init__.py imports lazily"
    if area in (CLI, DOOR):
        return None
    if area not in MAY_IMPORT or aim not in MAY_IMPORT:
        return f"{said}: import a name from the module that defines it, and list new areas in MAY_IMPORT"
    if area == aim == "design" and source[1:2] != target[1:2] and len(source) > 1:
        return f"{said}: a design does not import another design"
    if target[-1].startswith("_") and source[:-1] != target[: len(source) - 1]:
        return f"{said}: a private name of another package"
    allowed = (area, *MAY_IMPORT[area])
    if aim in allowed:
        return None
    return f"{said}: {area} may import only {', '.join(allowed[1:]) or 'nothing of ours'}"


def complaints(source: str, code: str, is_package: bool) -> list[str]:
    """What is wrong with a module's imports."""
    return [said for arrow in arrows(source, code, is_package) if (said := complaint(arrow)) is not None]


MODULES = sorted(PACKAGE.rglob("*.py"))
NAMES = {module_name(path) for path in MODULES}


def named(path: Path) -> str:
    """A module's file, for a message."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.slow
def test_imports_follow_the_architecture():
    wrong = []
    for path in MODULES:
        code = path.read_text(encoding="utf-8")
        wrong += complaints(module_name(path), code, is_package=path.name == "__init__.py")
    assert wrong == []


def test_the_table_of_arrows_has_no_circle():
    """Areas in some order such that each imports only earlier ones."""
    left, done = dict(MAY_IMPORT), set()
    while ready := [area for area, imports in left.items() if set(imports) - {area} <= done]:
        done |= set(ready)
        left = {area: imports for area, imports in left.items() if area not in done}
    assert left == {}


@pytest.mark.slow
def test_no_module_reaches_itself():
    """Modules import each other in a tree, at module level, in functions and for types alike."""
    graph = {}
    for path in MODULES:
        source, package = module_name(path), path.name == "__init__.py"
        found = {owner(arrow.target) for arrow in arrows(source, path.read_text(encoding="utf-8"), package)}
        graph[source] = sorted(found - {source, ""}) if source else []
    assert circle(graph) == []


def owner(target: str) -> str:
    """The module that an imported name stands in."""
    while target and target not in NAMES:
        target = target.rpartition(".")[0]
    return target


def circle(graph: dict[str, list[str]]) -> list[str]:
    """Modules of a circle, in order; empty where there is none."""
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node not in done:
            for follower in graph.get(node, ()):
                if found := visit(follower, [*path, node]):
                    return found
            done.add(node)
        return []

    return next((found for node in graph if (found := visit(node, []))), [])


def test_a_circle_is_seen():
    assert circle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    assert circle({"a": ["b", "c"], "b": ["c"], "c": []}) == []


def test_every_module_belongs_to_an_area():
    known = {"", CLI, DOOR, *MAY_IMPORT}
    assert [named(path) for path in MODULES if module_name(path).split(".")[0] not in known] == []


MAX_FILES = 15
MAX_LINES = 400


def test_folders_and_files_can_be_overlooked():
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and path.name not in ("__init__.pyi", "py.typed"))
    folders = Counter(path.parent for path in files if "__pycache__" not in path.parts)
    large = {folder.relative_to(PACKAGE).as_posix(): n for folder, n in folders.items() if n > MAX_FILES}
    assert {name: n for name, n in large.items() if not name.startswith("data")} == {}
    lines = {named(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: n for name, n in lines.items() if n > MAX_LINES} == {}


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("core.units", "import netctrl.model.network"),
        ("core.units", "from netctrl.model import network"),
        ("model.network", "from netctrl.plants.tcp import backlog"),
        ("model.network", "from ..plants import tcp"),
        ("model.network", "from .. import plants"),
        ("model.network", "import importlib\nimportlib.import_module('netctrl.plants.tcp')"),
        ("model.network", "from netctrl import Network"),
        ("model.network", "import netctrl\nnetctrl.Network"),
        ("model.network", "import netctrl as everything"),
        ("model.io.display", "def plot():\n    from netctrl import plotting"),
        ("model.io.display", "if TYPE_CHECKING:\n    from netctrl.plotting import bode"),
        ("laws.aqm.arc", "from netctrl.plants.tcp import window_slope"),
        ("plants.tcp", "def f():\n    from netctrl.frequency import loop"),
        ("synthesis.lqr", "from netctrl.ident.order import order"),
        ("scenario.network.routed", "from netctrl.plants.linearize import network_model"),
        ("design.arc.design", "from netctrl.sim.fluid.run import run"),
        ("design.arc.design", "from netctrl.design.hftrac.design import weights"),
        ("design.arc.design", "from ..hftrac.design import weights"),
        ("design.arc.design", "from netctrl.cli.app import table"),
        ("sim.fluid.run", "from netctrl.design.arc.design import arc"),
        ("sim.fluid.run", "from netctrl.plants.tcp import _slope"),
        ("ns3.program", "from netctrl.sim.fluid.run import run"),
        ("plotting", "from netctrl.linux.export.tc import arc_on_linux"),
        ("linux.agent.loop", "from netctrl.sim.network.run import run"),
        ("design.__main__", "from netctrl.cli.design import main"),
        ("simulate", "from netctrl.sim.fluid.run import run"),
        ("", "from netctrl.model.network import Network"),
    ],
)
def test_a_wrong_arrow_is_seen(source, code):
    assert complaints(source, code, is_package=source == "") != []


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("model.network", "import networkx\nfrom netctrl.core.units import rate\nfrom .io.display import html_table"),
        ("model.io.display", "from netctrl.core.register import FIGURES"),
        ("model.io.provenance", "from netctrl import __version__"),
        ("model.io.provenance", "def version():\n    import netctrl\n    return netctrl.__version__"),
        ("laws.aqm.arc", "from netctrl.core.jit import njit\nfrom netctrl.laws.link import backlog_step"),
        ("design.arc.design", "from netctrl.frequency.margins import margins\nfrom netctrl.plants import tcp"),
        ("design.arc.design", "from .loop import decide"),
        ("plotting", "from netctrl.scenario.result import Result\nfrom netctrl.frequency import loop"),
        ("linux.agent.loop", "from netctrl.laws.aqm import arc"),
        ("cli.simulate", "from netctrl import sim, design"),
        ("design.__main__", "from netctrl.core.register import VERBS"),
        ("__main__", "from netctrl.cli import STATUSES"),
        ("", "def __getattr__(name):\n    from netctrl.model.network import Network"),
    ],
)
def test_a_right_arrow_is_allowed(source, code):
    assert complaints(source, code, is_package=source == "") == []


FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def public_definitions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """The functions and classes of a module whose names don't begin with an underscore. Read from the source: a
    dataclass without a docstring gets one made up when it is imported."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    found = [node for node in body if isinstance(node, FUNCTION | ast.ClassDef) and not node.name.startswith("_")]
    overload = ast.dump(ast.Name("overload", ast.Load()))  # a type's; the definition behind it has the docstring
    return [node for node in found if overload not in map(ast.dump, node.decorator_list)]


@cache
def defined() -> list[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Those of all modules; read when a test asks, not while tests are collected."""
    return [(path, node) for path in MODULES for node in public_definitions(path)]


def test_public_functions_and_methods_are_annotated():
    bare = []
    for path, node in defined():
        methods = [part for part in ast.iter_child_nodes(node) if isinstance(part, FUNCTION)]
        for function in [node] if isinstance(node, FUNCTION) else methods:
            if not function.name.startswith("_"):
                bare += [f"{named(path)}: {node.name}: {what} of {function.name}" for what in unannotated(function)]
    assert bare == []


def unannotated(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """What of a function's signature has no type."""
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    arguments += [argument for argument in (given.vararg, given.kwarg) if argument is not None]
    bare = [each.arg for each in arguments if each.annotation is None and each.arg not in ("self", "cls")]
    return bare if function.returns is not None else [*bare, "the result"]


def test_public_names_exist_and_are_named_once():
    wrong = []
    for path in MODULES:
        if path.name == "__main__.py":
            continue
        module = importlib.import_module(".".join(filter(None, ["netctrl", module_name(path)])))
        public = list(getattr(module, "__all__", []))
        wrong += [f"{named(path)}: no {name}" for name in public if not hasattr(module, name)]
        wrong += [f"{named(path)}: {name} twice" for name in set(public) if public.count(name) > 1]
    assert wrong == []


HEAVY = ("control", "cvxpy", "pandas", "numba", "matplotlib")
DESIGN = ["arc", "--N", "50", "--json"]
LOADED = "import sys; from netctrl.cli.design import main; status = main({}); print(status, *sys.modules)"


def test_designing_arc_is_light(tmp_path):
    """In a fresh interpreter, run where the checkout is not on sys.path."""
    command = [sys.executable, "-c", LOADED.format(DESIGN)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    made, _, last = ran.stdout.rstrip().rpartition("\n")
    assert json.loads(made)["method"] == "arc"
    assert last.split()[0] == "0"
    assert set(last.split()) & set(HEAVY) == set()


WHERE = ROOT / "docs" / "contributing" / "house.md"
PUBLIC_WHERE = ROOT / "docs" / "reference" / "where.md"


def ticked(text: str) -> list[str]:
    """What stands in backticks, outside blocks of code."""
    return re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def test_where_says_something():
    assert sum("/" in token for token in ticked(WHERE.read_text(encoding="utf-8"))) >= 5


def test_users_find_every_public_name():
    tokens = set(ticked(PUBLIC_WHERE.read_text(encoding="utf-8")))
    assert {f"netctrl.{name}" for name in netctrl._PUBLIC} - tokens == set()


def test_paths_in_where_exist():
    paths = [token for token in ticked(WHERE.read_text(encoding="utf-8")) if "/" in token]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_names_beside_paths_in_where_are_defined_there():
    missing = []
    for line in WHERE.read_text(encoding="utf-8").splitlines():
        names: set[str] = set()
        path = None
        # Only the last cell: others may hold symbols in backticks.
        for token in ticked(line.rpartition("|")[0].rpartition("|")[2]):
            if token.endswith(".py") and (ROOT / token).is_file():
                path, names = token, defined_names(ROOT / token)
            elif path is not None and token.isidentifier() and token not in names:
                missing.append(f"{token} in {path}")
    assert missing == []


def defined_names(path: Path) -> set[str]:
    """The functions, classes, methods and constants of a file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


def test_dotted_names_in_where_can_be_imported():
    tokens = ticked(WHERE.read_text(encoding="utf-8"))
    dotted = [token for token in tokens if re.fullmatch(r"netctrl(\.\w+)+", token)]
    assert [name for name in dotted if not importable(name)] == []


def importable(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    module, _, rest = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        try:
            return hasattr(importlib.import_module(module), rest)
        except ModuleNotFoundError:
            return False
    return True


def test_no_tracked_file_names_a_path_of_one_machine():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout; remedy: run the tests in a clone")
    # CI may run as another user than the one that cloned.
    listing = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    # Put together here, so that this file is not its own finding.
    machine = [f"/{folder}/" for folder in ("work", "root")]
    found = []
    for name in filter(None, listed.stdout.split("\0")):
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):  # a picture, or a file that is about to be removed
            continue
        lines = enumerate(text.splitlines(), start=1)
        found += [f"{name}:{number}" for number, line in lines if any(path in line for path in machine)]
    assert found == []


def test_the_readme_and_ci_run_the_same_test_command():
    command = "pip install nox && nox -s tests"
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
