"""What tests of ns-3 programs share: stored texts, parts that are compiled by themselves, C++ of windows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from places import STORED

from netctrl.model.design.design import Provenance
from netctrl.ns3.program import find_ns3

_NUMBER = re.compile(r"(-?\d+\.?\d*(?:e[-+]?\d+)?)")


def origin(*argv: str) -> Provenance:
    """A provenance that is the same on every machine."""
    return Provenance(
        netctrl="0.1.0", git_revision=None, argv=argv, seed=1, input_hashes={}, python="3.11", libraries={}
    )


def assert_stored(case: str, files: Mapping[str, str], names: Iterable[str]) -> None:
    """The texts are those stored but for the last digits of numbers, which follow the machine's floating point."""
    assert set(re.findall(r'#include "([^/"]+)"', "".join(files.values()))) <= set(files)
    for name in names:
        parts, stored = (_NUMBER.split(text) for text in (files[name], (STORED / case / name).read_text("utf-8")))
        assert parts[::2] == stored[::2], name
        np.testing.assert_allclose(*(np.array(each[1::2], float) for each in (parts, stored)), rtol=1e-9, atol=1e-12)


def store(cases: Mapping[str, Mapping[str, str]], generated: Mapping[str, Iterable[str]]) -> None:
    """Write the generated text where `assert_stored` looks for it."""
    for case, files in cases.items():
        (STORED / case).mkdir(parents=True, exist_ok=True)
        for name in generated[case]:
            (STORED / case / name).write_text(files[name], encoding="utf-8")


def assert_one_program(cases: Mapping[str, Mapping[str, str]]) -> None:
    """Only the scenario differs."""
    first, *others = cases.values()
    for other in others:
        assert {name for name in first if first[name] != other[name]} == {"scenario.txt"}


def compiled_parts(
    folder: Path, source: str, files: Mapping[str, str], headers: Iterable[str]
) -> Callable[..., list[list[float]]]:
    """Compile a program of some headers, without ns-3 and without a warning.

    It is then called with arguments and the numbers on its stdin, and gives the numbers that it prints, by lines.
    """
    for name in headers:
        (folder / f"netctrl-{name}.h").write_text(files[f"netctrl-{name}.h"])
    (folder / "parts.cc").write_text(source)
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    subprocess.run([find_ns3().compiler, *strict, "parts.cc", "-o", "parts"], cwd=folder, check=True, timeout=120)

    def ask(arguments: Iterable[str], numbers: Iterable[float]) -> list[list[float]]:
        text = "\n".join(map(repr, map(float, numbers)))
        ran = subprocess.run(
            ["./parts", *arguments], input=text, capture_output=True, text=True, check=True, timeout=60, cwd=folder
        )
        return [[float(word) for word in line.split()] for line in ran.stdout.splitlines()]

    return ask


# Stands in a program instead of the line "// LIMITED".
LIMITED = r"""/// Newer ns-3 lets a window grow only where it is what holds the sender back.
template <class State>
static auto Limited(State state, int) -> decltype(state->m_isCwndLimited, void())
{
    state->m_isCwndLimited = true;
}

template <class State>
static void Limited(State, long)
{
}"""
