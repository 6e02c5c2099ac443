"""Exports to C: no warnings, clean under sanitizers, equal to Python, and iterations within a proved bound."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_exports import SANITIZED, checked, written
from mpc_problems import double_integrator, random_problem

import netctrl
from netctrl.cli.export import main
from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.laws.window.mpcc import predicted_queue
from netctrl.model.statespace import StateSpace
from netctrl.mpc.c.law import fixed_bound, law_in_c
from netctrl.mpc.c.program import AGREEMENT, WorstCase, program_in_c, worst_iterations
from netctrl.mpc.c.window import window_in_c
from netctrl.mpc.formulate import condensed
from netctrl.mpc.piecewise.law import PiecewiseLaw, piecewise_law
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.stages import Given

pytestmark = pytest.mark.needs("compiler")

MANY = 1_000_000
LOOP = """
#include <stddef.h>
#include <math.h>
void many(long count, const double *theta, double *u, int *status)
{
    for (long i = 0; i < count; i++)
        status[i] = call(theta + i * Q, u + i * M);
}
"""


@pytest.fixture(scope="module")
def planar() -> PiecewiseLaw:
    return piecewise_law(double_integrator(horizon=3), -6.0, 6.0)


class Compiled:
    """An export as a shared library: the `call` of its check.c, for many points."""

    def __init__(self, files: Mapping[str, str], folder: Path, inputs: int) -> None:
        sources, text = written(files, folder), files["check.c"]
        (folder / "many.c").write_text(text[: text.index("int main")] + LOOP)
        command = ["gcc", "-std=c99", "-O2", "-shared", "-fPIC", "-o", "many.so", "many.c", *sources, "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        self.library, self.inputs = ctypes.CDLL(str(folder / "many.so")), inputs

    def __call__(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        thetas = np.ascontiguousarray(thetas)
        u, status = np.empty((len(thetas), self.inputs)), np.empty(len(thetas), np.intc)
        pointers = [ctypes.c_void_p(each.ctypes.data) for each in (thetas, u, status)]
        self.library.many(ctypes.c_long(len(thetas)), *pointers)
        return u, status


@pytest.mark.parametrize("fixed", [False, True])
def test_explicit_laws_compile_and_pass_their_vectors(planar: PiecewiseLaw, tmp_path: Path, fixed: bool) -> None:
    files = law_in_c(planar, "planar_law", fixed=fixed)
    ran = checked(files, tmp_path, SANITIZED)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"At most {planar.most_tests} tests" in files["planar_law.h"]
    made = subprocess.run(["make", "-s", "test"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert " 0 wrong" in made.stdout, made.stderr


def test_a_wrong_vector_is_seen(planar: PiecewiseLaw, tmp_path: Path) -> None:
    files = law_in_c(planar)
    first, *rest = files["vectors.txt"].splitlines()
    *theta, status, u = first.split()
    for line in ([*theta, str(1 - int(status)), u], [*theta, status, (float.fromhex(u) + 1e-9).hex()]):
        ran = checked(files | {"vectors.txt": "\n".join([" ".join(line), *rest])}, tmp_path)
        assert (ran.returncode, " 1 wrong" in ran.stdout) == (1, True)
    assert checked(files | {"vectors.txt": ""}, tmp_path).returncode == 1


@pytest.mark.slow
def test_a_million_states_of_an_explicit_law(planar: PiecewiseLaw, tmp_path: Path) -> None:
    """In double precision to rounding; in integers to the bound stated, but near borders of regions."""
    thetas = np.random.default_rng(0).uniform(-6.2, 6.2, (MANY, 2))
    inputs, region = planar.decide_many(thetas)
    u, status = Compiled(law_in_c(planar), tmp_path, 1)(thetas)
    np.testing.assert_array_equal(status, region < 0)
    np.testing.assert_allclose(u, inputs, atol=1e-14)
    (tmp_path / "fixed").mkdir()
    u, status = Compiled(law_in_c(planar, fixed=True), tmp_path / "fixed", 1)(np.clip(thetas, -6.0, 6.0))
    inside = (np.abs(thetas) < 6.0).all(axis=1)
    far = inside & (np.abs(thetas / 6.0 @ planar.rows.T - planar.right).min(axis=1) > 1e-8)
    assert far.sum() > 0.9 * inside.sum()
    np.testing.assert_array_equal(status[far], region[far] < 0)
    assert np.abs(u - inputs)[far].max() <= fixed_bound(planar)[0]
    assert np.abs(u - inputs)[inside & (region >= 0) & (status == 0)].max() <= 1e-7


PROBLEMS: dict[str, MpcProblem] = {
    "one input": double_integrator(horizon=6),
    "no bounds": random_problem(
        2, 2, 1, 3, state_lower=-np.inf, state_upper=np.inf, input_lower=-np.inf, input_upper=np.inf
    ),
    "two inputs": random_problem(1, 3, 2, 5),
    "soft": random_problem(3, 3, 2, 8, soft_weight=10.0, soft_linear=0.3),
    "rate": random_problem(4, 2, 1, 12, rate_weight=0.3),
    "equality": random_problem(5, 2, 2, 4, input_lower=[-1.0, 0.25], input_upper=[1.0, 0.25]),
    "nearly dependent rows": random_problem(3, 4, 2, 10),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_programs_agree_with_the_solver(name: str, tmp_path: Path) -> None:
    """Inputs to 1e-8 of their scale, and infeasible where the solver has a proof; clean under sanitizers."""
    files = program_in_c(PROBLEMS[name], -3.0, 3.0)
    assert len(files["vectors.txt"].splitlines()) > 450
    ran = checked(files, tmp_path, SANITIZED)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
def test_programs_of_random_plants(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    for seed in range(25):
        n, m, horizon = (int(rng.integers(1, most)) for most in (9, 4, 25))
        soft: dict[str, Any] = {"soft_weight": 10.0, "soft_linear": 0.3} if seed % 3 == 0 else {}
        ran = checked(program_in_c(random_problem(seed, n, m, horizon, **soft), -3.0, 3.0, iterations=1000), tmp_path)
        assert ran.returncode == 0, (seed, ran.stdout)


@pytest.mark.slow
def test_a_million_states_of_a_program(planar: PiecewiseLaw, tmp_path: Path) -> None:
    """Two ways from the same problem: the method in C, and the explicit law in Python."""
    thetas = np.random.default_rng(1).uniform(-6.0, 6.0, (MANY, 2))
    inputs, region = planar.decide_many(thetas)
    u, status = Compiled(program_in_c(double_integrator(horizon=3), -6.0, 6.0), tmp_path, 1)(thetas)
    np.testing.assert_array_equal(status, region < 0)
    assert np.abs(u - inputs)[region >= 0].max() <= AGREEMENT


@pytest.mark.parametrize(("n", "m", "horizon"), [(1, 1, 5), (2, 1, 4), (2, 2, 3), (3, 1, 4)])
def test_worst_cases_are_attained_and_never_exceeded(n: int, m: int, horizon: int, tmp_path: Path) -> None:
    problem = random_problem(n, n, m, horizon)
    worst = worst_iterations(problem, -3.0, 3.0)
    thetas = np.random.default_rng(2).uniform(-3.0, 3.0, (100_000, n))
    for short in (0, 1):
        folder = tmp_path / str(short)
        folder.mkdir()
        enough = worst._replace(iterations=worst.iterations - short)
        _, status = Compiled(program_in_c(problem, -3.0, 3.0, iterations=enough), folder, m)(
            np.vstack([thetas, worst.theta])
        )
        assert (status[-1] == 2) == bool(short)
        assert short or (status < 2).all()


def test_worst_cases_by_hand() -> None:
    """Saturated inputs of an integrator are a prefix: none to all five of them, one after the other, and the end."""
    plant = StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0)
    problem = MpcProblem(plant=plant, horizon=5, state_weight=1.0, input_weight=1.0, input_lower=-0.5, input_upper=0.5)
    assert worst_iterations(problem, -4.0, 4.0).iterations == 6
    assert worst_iterations(problem, -0.5, 0.5).iterations == 1
    with pytest.raises(NetctrlError, match="more than 3 sequences"):
        worst_iterations(problem, -4.0, 4.0, most_pieces=3)
    said = program_in_c(problem, -4.0, 4.0, "rate_program", iterations=WorstCase(6, np.zeros(1), 1))["rate_program.h"]
    assert "enough for all theta from [-4.0] to [4.0], proved" in said


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("table", [None, (1, 64), (3, 7)])
def test_mpcc_windows(table: tuple[int, int] | None, fixed: bool, tmp_path: Path) -> None:
    design = netctrl.mpcc(flows=4, rate_bit_per_s=25e9, rtt_s=20e-6, table=table)
    files = window_in_c(design.law, fixed=fixed)
    assert "malloc" not in files["mpcc_window.c"]
    assert not fixed or "double" not in files["mpcc_window.c"]
    ran = checked(files, tmp_path, SANITIZED)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
def test_a_million_windows(tmp_path: Path) -> None:
    law = netctrl.mpcc(flows=4, rate_bit_per_s=100e9, rtt_s=8e-6, window_weight=1.0, table=(1, 100)).law
    rng = np.random.default_rng(3)
    flows = rng.integers(1, 101, MANY)
    queues = np.floor(rng.uniform(0.0, 1.0, MANY) ** 3 * 1.5 * flows * law.bdp_bytes)
    K, c, B = (np.asarray(each)[flows - 1] for each in (law.table.gain, law.table.fair_window, law.table.B))
    above = np.maximum(queues - (flows - 1) * law.bdp_bytes, 0.0)
    expected = np.clip(
        np.where(above > 0.0, np.minimum(c - K * queues, c - above / B), c - K * queues), 0.0, law.bdp_bytes
    )
    for fixed, bound in ((False, 1e-12 * law.bdp_bytes), (True, 3.0)):
        folder = tmp_path / str(fixed)
        folder.mkdir()
        u, _ = Compiled(window_in_c(law, fixed=fixed), folder, 1)(np.column_stack([queues, flows]))
        assert np.abs(u[:, 0] - expected).max() <= bound


def test_windows_under_way_count(tmp_path: Path) -> None:
    """(3.7), with a ring of past windows, as in the simulators."""
    law = netctrl.mpcc(flows=4, rate_bit_per_s=25e9, rtt_s=20e-6, table=(1, 8), delayed=True).law
    files = window_in_c(law)
    Compiled(files, tmp_path, 1)
    function = ctypes.CDLL(str(tmp_path / "many.so")).mpcc_window_delayed
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_double, ctypes.c_int32]
    state = ctypes.create_string_buffer(8 * law.delay_steps + 16)
    memory, rng = np.zeros(law.delay_steps), np.random.default_rng(4)
    for k in range(3 * law.delay_steps):
        queue, flows = rng.uniform(0.0, 3.0 * law.bdp_bytes), int(rng.integers(1, 9))
        K, c, B = (float(each[flows - 1]) for each in (law.table.gain, law.table.fair_window, law.table.B))
        ahead = predicted_queue(queue, B, c, memory, float(k), float(law.delay_steps))
        expected = c - K * ahead
        above = ahead - (flows - 1) * law.bdp_bytes
        expected = min(max(min(expected, c - above / B) if above > 0.0 else expected, 0.0), law.bdp_bytes)
        found = function(state, queue, flows)
        assert found == pytest.approx(expected, abs=1e-9 * law.bdp_bytes)
        memory[k % law.delay_steps] = found


def test_the_door(planar: PiecewiseLaw) -> None:
    for name in ("law", "Law_1", "leaf_first", "int32_t", "a_b; c", "_a", 3):
        with pytest.raises(InvalidValue, match="a name for C"):
            law_in_c(planar, name)  # ty: ignore[invalid-argument-type]
    with pytest.raises(InvalidValue, match="finite numbers"):
        program_in_c(double_integrator(horizon=2), -np.inf, 1.0)
    with pytest.raises(InvalidValue, match="at least 1"):
        program_in_c(double_integrator(horizon=2), -1.0, 1.0, iterations=0)
    delayed = netctrl.mpcc(flows=4, rate_bit_per_s=25e9, rtt_s=20e-6, delayed=True).law
    with pytest.raises(InvalidValue, match="without delayed"):
        window_in_c(delayed, fixed=True)


def test_a_parametric_program_will_do() -> None:
    problem = double_integrator(horizon=2)
    assert program_in_c(condensed(problem), -6.0, 6.0) == program_in_c(problem, -6.0, 6.0)


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    netctrl.mpcc(flows=4, rate_bit_per_s=25e9, rtt_s=20e-6).save("mpcc.json")
    netctrl.arc(50).save("arc.json", accept="stable")
    for more in ([], ["--fixed"]):  # the second over the first
        assert main(["c", "mpcc.json", "-o", "out", *more]) == 0
        assert "make -C out test" in capsys.readouterr().out
        subprocess.run(["make", "-s", "-C", "out", "test"], check=True)
    assert main(["c", "mpcc.json", "-o", "out", "--json"]) == 0
    assert capsys.readouterr().out.startswith('{"folder":"out","files":["mpcc_window.h"')
    assert main(["c", "arc.json", "-o", "other"]) == 2
    assert "only those of mpc and mpcc are written as C" in capsys.readouterr().err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    assert main(["c", "mpcc.json", "-o", "mine"]) == 2
    assert "new, empty or an earlier export" in capsys.readouterr().err


def test_a_program_with_a_reference(tmp_path: Path) -> None:
    """Of an unstable plant, whose variables are corrections of a law of the state alone."""
    plant = StateSpace([[3.0]], [[1.0]], [[1.0]], dt=1.0)
    problem = MpcProblem(plant=plant, horizon=5, output_weight=1.0, rate_weight=0.1, input_lower=-4.0, input_upper=4.0)
    program = condensed(problem, Given(reference="constant"))
    ran = checked(program_in_c(program, [-1.5, -1.0, -0.5], [1.5, 1.0, 0.5]), tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
