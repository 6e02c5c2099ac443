"""Mutants of the numerical packages that no test notices: `nox -s mutants -- [PACKAGE ...] [--sample N] [--seed N]`.

mutmut changes one operator, number, word or argument at a time; a mutant that some test fails on is killed. Functions
with a decorator, kernels among them, aren't mutated. Of each package N mutants are drawn at random; with --sample 0 all
run, for hours. Prints a row a module and every mutant that survived, as a change of its source.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
TESTS = {
    "frequency": ("frequency", "plants/test_tcp_response.py"),
    "synthesis": ("synthesis", "plants/test_information.py"),
    "mpc": ("mpc",),
    "ident": ("ident", "laws/tracking"),
    "plants": ("plants", "design/arc/test_settling.py"),
    "laws": ("laws",),
}
"""Tests of each package. Slower ones, of what is built on it, would kill a few more."""
MAX_LEFT_OUT = 10
SURVIVED, UNTESTED, TEXT = 0, 33, -1
"""Exit codes of pytest and mutmut; TEXT is ours, for survivors that differ in a text alone: a message's words, a name
that only messages show."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(TESTS)}; all without one")
    parser.add_argument("--sample", type=int, default=200, help="mutants of each package; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=PROJECT / ".nox" / "mutants" / "trees")
    requested = parser.parse_args(argv)
    if unknown := set(requested.packages) - set(TESTS):
        parser.error(f"no package {', '.join(sorted(unknown))}; there are {', '.join(TESTS)}")
    for package in requested.packages or TESTS:
        found = of_package(package, requested.folder.resolve() / package, requested.sample, requested.seed)
        for (_, code), each in list(found.items()):
            found["**all**", code] += each
        print("\n| module | mutants | killed | survived | a text, survived | no test reaches it |")
        print("|---|---|---|---|---|---|")
        for module in sorted({module for module, _ in found}):
            print(row(module, found), flush=True)
    return 0


def of_package(package: str, tree: Path, sample: int, seed: int) -> Counter[tuple[str, int]]:
    """How often each (module, outcome) came; a copy of the project is mutated, never the checkout."""
    prepare(package, tree)
    names = sorted(outcomes(tree))
    chosen = names if not sample or sample >= len(names) else random.Random(seed).sample(names, sample)
    print(f"{package}: {len(chosen)} of {len(names)} mutants", flush=True)
    mutmut(tree, "run", *chosen)
    after = outcomes(tree)
    for name in sorted(chosen):
        if after[name] == SURVIVED:
            change = mutmut(tree, "show", name)
            if only_text(change):
                after[name] = TEXT
            else:
                print(change, flush=True)
    return Counter((name.partition(".x")[0], after[name]) for name in chosen)


def only_text(change: str) -> bool:
    """Whether the two sides of a diff are alike but for what stands in quotes."""
    sides = [
        [line[1:] for line in change.splitlines() if line.startswith(sign) and not line.startswith(3 * sign)]
        for sign in "-+"
    ]
    before, after = (re.sub(r'"[^"]*"', '""', "\n".join(side)) for side in sides)
    return before == after


def prepare(package: str, tree: Path) -> None:
    """Makes the mutants and learns which test reaches which function.

    A test that fails already on a function that is wrapped, not changed, is left out, by name: one that reads the
    function's own source, say.
    """
    left_out: list[str] = []
    while len(left_out) <= MAX_LEFT_OUT:
        copy(package, tree, left_out)
        try:
            mutmut(tree, "run", "nothing", ends="nothing matches")
            return
        except RuntimeError as error:
            failed = re.findall(r"^FAILED (\S+)", str(error), re.MULTILINE)
            if not failed:
                raise
            print(f"{package}: without {', '.join(failed)}", flush=True)
            left_out += failed
    raise RuntimeError(f"{package}: its tests fail before anything is changed: {', '.join(left_out)}")


def copy(package: str, tree: Path, left_out: list[str]) -> None:
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "mutants").mkdir(parents=True)  # else Python remembers that the entry of its path is missing
    for folder in ("netctrl", "data", "docs", "tests"):
        shutil.copytree(PROJECT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    settings = {
        "source_paths": ["netctrl"],
        "only_mutate": [f"netctrl/{package}/*.py", f"netctrl/{package}/*/*.py"],
        "do_not_mutate": ["*/synthesis/threads.py"],  # its mutants wait for ever
        "also_copy": ["data", "docs"],
        "pytest_add_cli_args": ["-p", "no:cacheprovider", *(f"--deselect={name}" for name in left_out)],
        "pytest_add_cli_args_test_selection": [f"tests/{name}" for name in TESTS[package]],
        "timeout_multiplier": 5.0,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    project = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    (tree / "pyproject.toml").write_text(project + "\n[tool.mutmut]\n" + "\n".join(lines) + "\n", encoding="utf-8")


def mutmut(tree: Path, *words: str, ends: str | None = None) -> str:
    """What it prints; RuntimeError where it fails, but for a message that it was to end with."""
    run = [sys.executable, "-m", "mutmut", *words]
    env = os.environ | {"PYTHONPATH": str(tree / "mutants")}  # for the processes that tests start
    done = subprocess.run(
        run, cwd=tree, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode and not (ends and ends in done.stdout):
        raise RuntimeError(f"mutmut {words[0]} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def outcomes(tree: Path) -> dict[str, int]:
    """Exit codes of pytest by a mutant's name: 0 survived, 1 killed, 33 untested, None not run."""
    found: dict[str, int] = {}
    for meta in (tree / "mutants").rglob("*.meta"):
        found |= json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"]
    return found


def row(module: str, found: Counter[tuple[str, int]]) -> str:
    codes = {code: each for (name, code), each in found.items() if name == module}
    others = [codes.get(code, 0) for code in (SURVIVED, TEXT, UNTESTED)]
    total = sum(codes.values())
    return f"| {module} | {total} | {total - sum(others)} | {' | '.join(map(str, others))} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
