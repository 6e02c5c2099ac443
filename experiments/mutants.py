"""Mutants of the numerical packages that no test notices: `nox -s mutants -- [PACKAGE ...] [--sample N] [--seed N]`.

A mutant is one function with one operator, comparison, number or choice changed. Kernels are functions too: Numba is
off, so that what is tested is what it would compile. Which tests reach which function is learned first; a mutant meets
those alone, the shortest first, in a child process that has everything imported and only the function's code replaced.
Killed: a test fails, or no longer ends. Prints a row a module and every survivor. Left out are tests that fail or last
longer than --longest without Numba, and what runs on import, such as constants of modules.
"""

import argparse
import ast
import gc
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

PROJECT = Path(__file__).resolve().parents[1]
SOURCE = PROJECT / "netctrl"
TESTS = {
    "frequency": ("frequency", "plants/test_tcp_response.py"),
    "synthesis": ("synthesis", "plants/test_information.py"),
    "mpc": ("mpc",),
    "ident": ("ident", "laws/tracking"),
    "plants": ("plants", "design/arc/test_settling.py"),
    "laws": ("laws", "sim/packet"),
    "sim": ("sim",),
    "certificates": ("certificates",),
    "design": ("design",),
    "checks": ("checks",),
    "evaluation": ("evaluation",),
}
"""Tests of each package. Slower ones, of what is built on it, would kill a few more."""
ALONE = ("synthesis/threads.py",)
"""Files that aren't changed: their mutants wait for ever."""
KILLED, SURVIVED, UNREACHED = "killed", "survived", "no test reaches it"
SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Pow: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_PAIRS = (("min", "max"), ("minimum", "maximum"), ("floor", "ceil"), ("argmin", "argmax"), ("any", "all"))
CALLED = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
LARGER = 1.1
"""A float's mutant over the float."""
MOST_S = 30.0
"""Time of the tests that a mutant meets, the shortest of those that reach it [s]."""
SLACK_S = 10.0
"""What a mutant's tests may take longer than five times their time."""


class Site(NamedTuple):
    """A place that can be changed."""

    file: str
    """Below netctrl."""
    function: str
    line: int
    """Of the function, its first decorator counted, as its code has it."""
    node: int
    """Number in `ast.walk` of the file."""
    part: int
    """Which operator of a chain of comparisons."""


# --- mutants ---------------------------------------------------------------------------------------------------------


def sites(file: Path) -> Iterator[Site]:
    """The places of one file's functions."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    numbers = {node: i for i, node in enumerate(ast.walk(tree))}
    for name, function in functions_of(tree):
        line = min([function.lineno, *(each.lineno for each in function.decorator_list)])
        for statement in function.body:
            for node in computed(statement):
                for part in range(len(node.ops) if isinstance(node, ast.Compare) else 1):
                    if changed(node, part) is not None:
                        yield Site(str(file.relative_to(SOURCE)), name, line, numbers[node], part)


def functions_of(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions of a module and of its classes; those inside others belong to these."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield within + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions_of(node, f"{within}{node.name}.")
        elif isinstance(node, ast.If | ast.Try):
            yield from functions_of(node, within)


def computed(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what it has inside, without annotations and texts."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.arguments):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from computed(child)


def changed(node: ast.AST, part: int = 0) -> Callable[[], None] | None:
    """What changes a node in place; None: nothing to change."""
    match node:
        case ast.Compare(ops=ops) if type(ops[part]) in SWAPS:
            return lambda: ops.__setitem__(part, SWAPS[type(ops[part])]())
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in SWAPS:
            return lambda: setattr(node, "op", SWAPS[type(op)]())
        case ast.UnaryOp(op=ast.USub()):
            return lambda: setattr(node, "op", ast.UAdd())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return lambda: setattr(node, "operand", ast.UnaryOp(ast.Not(), operand))
        case ast.Constant(value=bool() as value):
            return lambda: setattr(node, "value", not value)
        case ast.Constant(value=int() as value):
            return lambda: setattr(node, "value", value + 1)
        case ast.Constant(value=float() as value):
            return lambda: setattr(node, "value", value * LARGER or 1.0)
        case ast.Call(func=ast.Name(id=name) as called) if name in CALLED:
            return lambda: setattr(called, "id", CALLED[name])
        case ast.Call(func=ast.Attribute(attr=name) as called) if name in CALLED:
            return lambda: setattr(called, "attr", CALLED[name])
    return None


def mutate(site: Site) -> tuple[CodeType, str]:
    """The function's code with the change, and the change in words."""
    file = SOURCE / site.file
    tree = ast.parse(file.read_text(encoding="utf-8"))
    node: Any = next(node for i, node in enumerate(ast.walk(tree)) if i == site.node)
    before, change = ast.unparse(node), changed(node, site.part)
    assert change is not None
    change()
    ast.fix_missing_locations(tree)
    said = f"{site.file}:{node.lineno} {site.function}: {before}  ->  {ast.unparse(node)}"
    codes = [compile(tree, str(file), "exec", dont_inherit=True)]
    for code in codes:
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    return next(code for code in codes if place(code) == site[:3]), said


def functions() -> dict[tuple[str, str, int], list[FunctionType]]:
    """Functions of netctrl by file, name and line."""
    found = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(f"{SOURCE}{os.sep}"):
            found[place(each.__code__)].append(each)
    return found


def place(code: CodeType) -> tuple[str, str, int]:
    """File below netctrl, name and line."""
    return code.co_filename[len(str(SOURCE)) + 1 :], code.co_qualname, code.co_firstlineno


# --- tests in children ------------------------------------------------------------------------------------------------


class Tests:
    """A plugin of pytest that lets children run the tests."""

    def __init__(self, package: str, requested: argparse.Namespace) -> None:
        self.package, self.requested = package, requested
        self.failed = False
        self.found: Counter[tuple[str, str]] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = session.items
        gc.collect()
        ours = functions()
        gc.freeze()  # children share these pages
        seconds, reaching = self.learned()
        files = [file for file in sorted((SOURCE / self.package).rglob("*.py")) if not str(file).endswith(ALONE)]
        chosen = [site for file in files for site in sites(file)]
        if 0 < self.requested.sample < len(chosen):
            chosen = random.Random(self.requested.seed).sample(chosen, self.requested.sample)
        reached = [site for site in chosen if site[:2] in reaching]
        self.found.update((site.file, UNREACHED) for site in chosen if site[:2] not in reaching)
        left_out = len(self.items) - len(seconds)
        print(f"{self.package}: {len(chosen)} mutants, {len(seconds)} tests; {left_out} left out", flush=True)

        def killed(site: Site) -> bool:
            code, _ = mutate(site)
            for each in ours[site[:3]]:
                each.__code__ = code
            return not all(self.passes(i) for i in reaching[site[:2]])

        longest = [SLACK_S + 5.0 * sum(seconds[i] for i in reaching[site[:2]]) for site in reached]
        for site, outcome in zip(reached, in_children(killed, reached, longest), strict=True):
            self.found[site.file, SURVIVED if outcome is False else KILLED] += 1
            if outcome is False:
                print(mutate(site)[1], flush=True)
        return True

    def learned(self) -> tuple[dict[int, float], dict[tuple[str, str], list[int]]]:
        """How long each test takes, and which tests reach which function, the shortest first."""
        chosen = range(len(self.items))
        found = in_children(self.traced, chosen, [self.requested.longest] * len(chosen))
        seconds = {i: each["seconds"] for i, each in zip(chosen, found, strict=True) if each and each["passed"]}
        reaching: dict[tuple[str, str], list[int]] = defaultdict(list)
        spent: dict[tuple[str, str], float] = defaultdict(float)
        for i in sorted(seconds, key=lambda i: seconds[i]):
            for file, function in found[i]["reached"]:
                spent[file, function] += seconds[i]
                if spent[file, function] <= MOST_S or not reaching[file, function]:
                    reaching[file, function].append(i)
        return seconds, reaching

    def traced(self, i: int) -> dict[str, Any]:
        codes: set[CodeType] = set()

        def called(frame: Any, event: str, _: Any) -> None:
            if event == "call":
                codes.add(frame.f_code)

        threading.setprofile(called)
        began = time.perf_counter()
        sys.setprofile(called)
        passed = self.passes(i)
        sys.setprofile(None)
        seconds = time.perf_counter() - began
        ours = [place(code) for code in codes if code.co_filename.startswith(f"{SOURCE}{os.sep}")]
        names = {(file, function.partition(".<locals>")[0]) for file, function, _ in ours}
        return {"passed": passed, "seconds": seconds, "reached": sorted(names)}

    def passes(self, i: int) -> bool:
        self.failed = False
        item = self.items[i]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return not self.failed


def in_children(work: Callable[[Any], Any], jobs: Sequence[Any], longest: Sequence[float]) -> list[Any]:
    """`work` of each job, of which each has a process of its own; None where that ended, or lasted too long [s]."""
    many = min(os.cpu_count() or 1, len(jobs))
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(many)]
        workers = []
        for first, file in enumerate(files):
            if not (worker := os.fork()):
                for i in range(first, len(jobs), many):
                    if not (child := os.fork()):
                        signal.signal(signal.SIGALRM, signal.SIG_DFL)
                        signal.setitimer(signal.ITIMER_REAL, longest[i])
                        with suppress(BaseException):
                            file.write(json.dumps([i, work(jobs[i])]) + "\n")
                            file.flush()
                        os._exit(0)
                    os.waitpid(child, 0)
                os._exit(0)
            workers.append(worker)
        for worker in workers:
            os.waitpid(worker, 0)
        found: dict[int, Any] = {}
        for file in files:
            file.seek(0)
            found |= dict(map(json.loads, file))
    return [found.get(i) for i in range(len(jobs))]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(TESTS)}; all without one")
    parser.add_argument("--sample", type=int, default=200, help="mutants of each package; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=5.0, help="of a test without Numba [s]")
    requested = parser.parse_args(argv)
    if unknown := set(requested.packages) - set(TESTS):
        parser.error(f"no package {', '.join(sorted(unknown))}; there are {', '.join(TESTS)}")
    for package in requested.packages or TESTS:
        tests = Tests(package, requested)
        options = ["-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts="]
        options += ["--import-mode=importlib", "-m", "not (engines or lab or namespaces or site)"]
        if not (child := os.fork()):
            folders = [str(PROJECT / "tests" / name) for name in TESTS[package]]
            os._exit(pytest.main([*options, *folders], [tests]) or show(tests.found))
        if os.waitpid(child, 0)[1]:
            return 1
    return 0


def show(found: Counter[tuple[str, str]]) -> int:
    """A row a module and one of all."""
    kinds = (KILLED, SURVIVED, UNREACHED)
    for (_, kind), each in list(found.items()):
        found["all", kind] += each
    print(f"\n| module | mutants | {' | '.join(kinds)} |\n|---|---|---|---|---|")
    for module in [*sorted({module for module, _ in found} - {"all"}), "all"]:
        counts = [found[module, kind] for kind in kinds]
        print(f"| {module} | {sum(counts)} | {' | '.join(map(str, counts))} |", flush=True)
    return 0


if __name__ == "__main__":
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # before anything imports Numba
    sys.path.insert(0, str(PROJECT))
    sys.exit(main(sys.argv[1:]))
