"""Laws printed as C++: the same bits as numba, for every law; what is outside the subset is refused with its line."""

from __future__ import annotations

import subprocess
from inspect import signature
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from cpp_support import STRICT
from numba import njit
from numba.extending import register_jitable

from netctrl.laws.aqm import fluid  # registers what laws call
from netctrl.laws.aqm.law import QueueLaw, Seen
from netctrl.laws.aqm.records import LAWS
from netctrl.laws.codegen import Refused, cpp_function, cpp_law, cpp_record, field_texts, helpers
from netctrl.laws.record import Vector
from netctrl.laws.tcp.htcp import htcp_backoff, htcp_increase
from netctrl.laws.tcp.reno import reno_cut, reno_window
from netctrl.ns3.laws import attribute, functions_header

SAMPLES = 100_000
MAIN = r"""
template <class Law>
int Replay()
{
    constexpr std::size_t kLaw = sizeof(Law) / sizeof(double), kState = sizeof(typename Law::State) / sizeof(double);
    constexpr std::size_t kSeen = sizeof(Seen) / sizeof(double);
    double row[kLaw + kState + kSeen];
    while (std::fread(row, sizeof row, 1, stdin) == 1)
    {
        Law law;
        typename Law::State state;
        Seen seen;
        std::memcpy(static_cast<void*>(&law), row, sizeof law);
        std::memcpy(static_cast<void*>(&state), row + kLaw, sizeof state);
        std::memcpy(static_cast<void*>(&seen), row + kLaw + kState, sizeof seen);
        const typename Law::State next = law.Next(state, seen);
        std::fwrite(&next, sizeof next, 1, stdout);
    }
    return 0;
}
"""
WAYS = [(law, way) for law in LAWS for way in ("step", "fluid") if getattr(law, way) is not None]


def name_of(law: QueueLaw, way: str) -> str:
    return f"{law.name.replace('-', '_')}_{way}"


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """A program with all laws: replays rows of (parameters, state, seen) from stdin."""
    functions = {name: each for law, way in WAYS for name, each in helpers(getattr(law, way)).items()}
    names = {name: name for name in functions}
    parts = ["#include <algorithm>\n#include <cmath>\n#include <cstdio>\n#include <cstring>\n#include <string>"]
    parts += [cpp_record("Seen", Seen), *(cpp_function(each, names) for each in functions.values())]
    for law, way in WAYS:
        step = getattr(law, way)
        state, seen, *_ = signature(step).parameters
        takes = {state: "const State&", seen: "const Seen&"}
        parts.append(cpp_law(name_of(law, way), {"Next": (step, takes)}, law.parameters, law.state, names))
    calls = [f'    if (std::string(argv[1]) == "{name_of(*way)}") return Replay<{name_of(*way)}>();' for way in WAYS]
    parts += [MAIN, "\n".join(["int main(int, char** argv)", "{", *calls, "    return 1;", "}"])]
    folder = tmp_path_factory.mktemp("laws")
    (folder / "laws.cc").write_text("\n\n".join(parts) + "\n")
    subprocess.run(["g++", *STRICT, "laws.cc", "-o", "laws"], cwd=folder, check=True, timeout=300)
    return folder / "laws"


def drawn(law: QueueLaw, random: np.random.Generator) -> np.ndarray:
    """Rows of parameters, state and what is seen, over all decades that files may ask for, and zeros."""
    usual = np.array(law.read(law.record(), 1000.0, 500e3))
    count = len(usual)
    parameters = usual * 10.0 ** random.uniform(-2.0, 2.0, (SAMPLES, count)) * (random.random((SAMPLES, count)) < 0.98)
    if "utilization" in law.parameters._fields:
        parameters[:, law.parameters._fields.index("utilization")] = random.uniform(0.01, 1.0, SAMPLES)
    if law.name == "fast-arc":
        parameters[:, 3] = 1.0 + 10.0 ** random.uniform(-3.0, 3.0, SAMPLES)
        parameters[:, 0] = np.maximum(parameters[:, 0], 1e-12)
    if law.name == "red":
        parameters[:, 1] = parameters[:, 0] * random.uniform(1.1, 5.0, SAMPLES) + 1.0
        parameters[:, 2] = random.uniform(1e-3, 1.0, SAMPLES)
    if law.name == "codel":
        parameters = np.maximum(parameters, 1e-6)
    state = 10.0 ** random.uniform(-8.0, 4.0, (SAMPLES, len(law.state._fields)))
    state[random.random(state.shape) < 0.2] = 0.0
    for name in ("probability", "fast_probability", "drop_probability", "begun"):
        if name in law.state._fields:
            column = law.state._fields.index(name)
            state[:, column] = np.minimum(state[:, column], 1.0)
    seen = 10.0 ** random.uniform([-5.0, -1.0, -1.0, -1.0, 0.0], [1.0, 6.0, 4.0, 5.0, 7.0], (SAMPLES, 5))
    seen[:, 1:4][random.random((SAMPLES, 3)) < 0.1] = 0.0
    seen[:, 2] = np.where(seen[:, 2] == 0.0, 1.0, seen[:, 2])
    return np.hstack([parameters, state, seen])


def by_numba(law: QueueLaw, way: str, rows: np.ndarray) -> np.ndarray:
    """The same rows through numba."""
    p, s = len(law.parameters._fields), len(law.state._fields)
    takes = [f"row[{k}]" for k in range(p + s + 5)]
    state, seen, own = takes[p : p + s], takes[p + s :], takes[:p]
    call = f"step(State({', '.join(state)}), Seen({', '.join(seen)}), Parameters({', '.join(own)}))"
    text = f"def replay(rows, out):\n    for k in range(len(rows)):\n        row = rows[k]\n        after = {call}\n"
    text += "".join(f"        out[k, {i}] = after.{name}\n" for i, name in enumerate(law.state._fields))
    names = {"State": law.state, "Parameters": law.parameters, "Seen": Seen, "step": njit(getattr(law, way))}
    exec(text, names)
    out = np.empty((len(rows), s))
    njit(names["replay"])(rows, out)
    return out


@pytest.mark.needs("ns3")
@pytest.mark.parametrize(("law", "way"), WAYS, ids=[name_of(*way) for way in WAYS])
def test_cpp_gives_the_bits_that_numba_gives(law: QueueLaw, way: str, program: Path) -> None:
    """1e5 samples each; both call the C library for exp, log and powers, where a law has them."""
    rows = drawn(law, np.random.default_rng(5))
    ran = subprocess.run(
        [program, name_of(law, way)], input=rows.tobytes(), capture_output=True, check=True, timeout=120
    )
    found = np.frombuffer(ran.stdout).reshape(SAMPLES, -1)
    expected = by_numba(law, way, rows)
    assert len(np.unique(found[:, 0])) > 1
    np.testing.assert_array_equal(found, expected)


FUNCTIONS = (htcp_increase, htcp_backoff, reno_window, reno_cut)


@pytest.mark.needs("ns3")
@pytest.mark.parametrize("function", FUNCTIONS, ids=[each.__name__ for each in FUNCTIONS])
def test_functions_of_numbers_give_the_same_bits_too(function, tmp_path: Path) -> None:
    (tmp_path / "netctrl-x.h").write_text(functions_header("x", "Of a test.", [function]))
    count = function.py_func.__code__.co_argcount
    call = f"netctrl::{attribute(function.__name__)}({', '.join(f'row[{k}]' for k in range(count))})"
    (tmp_path / "x.cc").write_text(
        '#include "netctrl-x.h"\n#include <cstdio>\nint main() {\n'
        f"    double row[{count}];\n    while (std::fread(row, sizeof row, 1, stdin) == 1) {{\n"
        f"        const double found = {call};\n        std::fwrite(&found, sizeof found, 1, stdout);\n    }}\n}}\n"
    )
    subprocess.run(["g++", *STRICT, "x.cc", "-o", "x"], cwd=tmp_path, check=True, timeout=120)
    rows = 10.0 ** np.random.default_rng(7).uniform(-4.0, 4.0, (SAMPLES, count))
    ran = subprocess.run([tmp_path / "x"], input=rows.tobytes(), capture_output=True, check=True, timeout=120)
    np.testing.assert_array_equal(np.frombuffer(ran.stdout), [function(*row) for row in rows])


def test_the_laws_of_the_fluid_are_these() -> None:
    """What the fluid runs is `fluid` or `step`: none is left out of the comparison above."""
    assert {(law.name, "fluid" if law.fluid else "step") for law in LAWS} <= {(law.name, way) for law, way in WAYS}
    assert len(fluid.LAWS) == len({law.name for law in LAWS})


def test_rows_of_the_fluid_hold_what_any_law_needs() -> None:
    """Kernels don't look at bounds."""
    places = [fluid.column(law, field) for law in LAWS for field in law.state._fields]
    assert max(places) == fluid.STATES - 1
    for law in LAWS:
        _, row = fluid.law_of(law.record(), 1000.0, 500e3)
        values = law.read(law.record(), 1000.0, 500e3)
        assert len(row) == fluid.PARAMETERS
        assert list(row[4 : 4 + len(values)]) == list(values)


class Pair(NamedTuple):
    """Of a test."""

    first: float
    """[packet]"""
    second_one: float


def test_texts_behind_fields_become_comments() -> None:
    assert field_texts(Pair) == {"first": "[packet]", "second_one": ""}
    assert cpp_record("Pair", Pair) == "struct Pair\n{\n    double first;     ///< [packet]\n    double secondOne;\n};"


def grouped(a: float, b: float) -> float:
    """a - (b - a), and more that depends on parentheses."""
    left = a - (b - a) - b
    right = a / (b / a) * (a + b) ** 2.0
    if not (left < right and (a > 0.0 or b > 0.0)):
        return -(left + right)
    elif a == b:
        left = 1.0
    return left if left > right else sqrt(right)


def test_parentheses_and_branches_are_kept() -> None:
    text = cpp_function(grouped, {"grouped": "Grouped"})
    assert "inline double\nGrouped(double a, double b)\n{" in text
    assert "double left = a - (b - a) - b;" in text
    assert "const double right = a / (b / a) * std::pow(a + b, 2.0);" in text
    assert "if (!(left < right && (a > 0.0 || b > 0.0)))" in text
    assert "return -(left + right);" in text
    assert "else if (a == b)" in text
    assert text.endswith("    return left > right ? left : std::sqrt(right);\n}")


def counted(values: np.ndarray, n: int, pair: Pair) -> Pair:
    """Loops, whole numbers, arrays and records."""
    total = 0.0
    for i in range(n - 1):
        total += values[(i + n) % len(values)] * float(i)
    while total > pair.second_one:
        total *= 0.5
    values[0] = total
    if n > 3:
        total = 8e9 * total
        found = Pair(total, 8e9)
    else:
        found = pair
    return found


def test_loops_whole_numbers_arrays_and_records() -> None:
    text = cpp_function(counted, {"counted": "Counted", "Pair": "Pair"})
    for line in (
        "Counted(std::vector<double>& values, int64_t n, const Pair& pair)",
        "    for (int64_t i = 0; i < n - 1; ++i)",
        "        total += values[(i + n) % static_cast<int64_t>(values.size())] * static_cast<double>(i);",
        "    while (total > pair.secondOne)",
        "    values[0] = total;",
        "    if (n > 3)",
        "    Pair found;",
        "        found = Pair{total, 8e9};",
    ):
        assert line in text.split("\n")


def with_a_loop_over_values(a: float) -> float:
    for each in (1.0, 2.0):
        a += each
    return a


def with_a_changed_record(pair: Pair) -> Pair:
    pair = Pair(1.0, 2.0)
    return pair


def with_a_place_that_is_a_float(values: np.ndarray, a: float) -> float:
    return values[a]


def with_a_foreign_call(a: float) -> float:
    return float(str(a))


def with_a_word_of_cpp(a: float) -> float:
    new = a + 1.0
    return new


def with_a_whole_power(a: float) -> float:
    return a**3


def with_a_product_of_vectors(x: Vector, y: Vector) -> Vector:
    return x @ y


def with_an_unknown_name(a: float) -> float:
    return a + STRICT


@pytest.mark.parametrize(
    ("function", "line", "why"),
    [
        (with_a_loop_over_values, 1, "For isn't in the subset"),
        (with_a_changed_record, 1, "pair is an argument and stays as it is"),
        (with_a_place_that_is_a_float, 1, "a isn't a whole number"),
        (with_a_foreign_call, 1, "str isn't in the subset"),
        (with_a_word_of_cpp, 1, "new is a word of C"),
        (with_a_whole_power, 1, "a whole power: write products"),
        (with_a_product_of_vectors, 1, "@ is a Matrix times a Vector"),
        (with_an_unknown_name, 1, "STRICT isn't in the subset"),
    ],
)
def test_what_is_outside_the_subset_is_refused_with_its_line(function, line: int, why: str) -> None:
    with pytest.raises(Refused, match=why) as refusal:
        cpp_function(function, {"Pair": "Pair", function.__name__: "F"})
    assert f"test_codegen.py, line {function.__code__.co_firstlineno + line}:" in str(refusal.value)


def twice(a: float) -> float:
    """2 a."""
    return 2.0 * a


def four_times(a: float) -> float:
    """4 a."""
    return twice(twice(a))


def test_what_a_law_calls_comes_before_it() -> None:
    register_jitable(twice)
    assert list(helpers(four_times)) == ["twice"]
    assert "return Twice(Twice(a));" in cpp_function(four_times, {"twice": "Twice", "four_times": "F"})
