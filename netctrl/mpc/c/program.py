"""Condensed parametric quadratic programs as C."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import checked_whole
from netctrl.mpc.c.text import VECTORS, checked_name, files, number, tables, template, vectors
from netctrl.mpc.c.worst import WorstCase
from netctrl.mpc.formulate import condensed_program, parameter_box
from netctrl.mpc.parametric import ParametricProgram, whitened
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.program import QPStatus
from netctrl.mpc.qp.solve import open_solver

AGREEMENT = 1e-8
"""Largest difference of the inputs in C from those of netctrl's solver, in units of `input_scale`."""


class DualProgram(NamedTuple):
    """A program's dual: k bounded rows of [v; A v], in units in which each has a curvature of 1.

    Without bounds row i is base[i] + slope[i] θ. Multipliers y, above 0 at an upper bound, take gram y off the rows and
    pull y off the inputs.
    """

    gram: np.ndarray
    base: np.ndarray
    slope: np.ndarray
    low: np.ndarray
    high: np.ndarray
    inputs: np.ndarray
    """(m, q + 1) inputs without bounds, in [θ; 1]."""
    pull: np.ndarray
    """(m, k)"""


def dual_program(program: ParametricProgram) -> DualProgram:
    """Dual of a program with a unique minimum.

    Raises
    ------
    InvalidValue
        A direction without cost.
    """
    free, root, plain, rows = whitened(program)
    m, bounded = len(program.input_scale), np.isfinite(program.lower) | np.isfinite(program.upper)
    rows = rows[bounded]
    size = np.linalg.norm(rows, axis=1)
    size[size <= 1e-12 * size.max(initial=0.0)] = 1.0  # a bound of θ alone
    rows /= size[:, None]
    values = (plain[bounded] @ free - np.column_stack([program.E[bounded], np.zeros(len(rows))])) / size[:, None]
    inputs = free[:m] * program.input_scale[:, None]
    inputs[:, : program.gains.shape[2]] -= program.gains[0]  # references and disturbances follow in θ
    return DualProgram(
        rows @ rows.T,
        values[:, -1],
        values[:, :-1],
        program.lower[bounded] / size,
        program.upper[bounded] / size,
        inputs,
        root[:m] @ rows.T * program.input_scale[:, None],
    )


def worst_iterations(
    problem: MpcProblem | ParametricProgram, lower: Any, upper: Any, *, most_pieces: int = 20_000
) -> WorstCase:
    """Largest number of iterations that the C of `program_in_c` makes for any θ of a box.

    In exact arithmetic, and up to pieces of the box thinner than 1e-9 of its half width.

    Parameters
    ----------
    problem : MpcProblem or ParametricProgram
        A small problem: the sequences of iterations are several times the regions of its explicit law.
    lower, upper : array_like, shape (q,)
        The box of θ, finite.
    most_pieces : int
        Largest number of sequences to follow.

    Returns
    -------
    WorstCase

    Raises
    ------
    InvalidValue
        An empty or infinite box, or a cost without a unique minimum.
    NetctrlError
        More sequences than `most_pieces`.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.mpc.c.program import worst_iterations
    >>> plant = netctrl.StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0)
    >>> problem = netctrl.MpcProblem(plant=plant, horizon=5, state_weight=1.0, input_lower=-0.5, input_upper=0.5)
    >>> worst_iterations(problem, -4.0, 4.0).iterations
    6
    """
    from netctrl.mpc.c.worst import worst_case

    most = checked_whole("most_pieces", most_pieces, "a number of at least 1", at_least=1)
    program = condensed_program(problem)
    dual, (low, high) = dual_program(program), parameter_box(program, lower, upper)
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    free = np.column_stack([dual.slope * half, dual.base + dual.slope @ centre])
    iterations, t, pieces = worst_case(dual.gram, free, dual.low, dual.high, len(program.g), most)
    return WorstCase(iterations, centre + half * t, pieces)


def program_in_c(
    problem: MpcProblem | ParametricProgram,
    lower: Any,
    upper: Any,
    name: str = "mpc_program",
    *,
    iterations: int | WorstCase = 200,
) -> dict[str, str]:
    """A model predictive controller as C99: a dual active-set method with a fixed bound of iterations.

    The files compile with any C99 compiler; `make test` compares them with up to 500 test vectors. The function
    allocates nothing and keeps nothing between calls.

    Parameters
    ----------
    problem : MpcProblem or ParametricProgram
        The program whose first inputs are wanted at each θ (`netctrl.mpc.parametric.parameters`).
    lower, upper : array_like, shape (q,)
        Box of θ from which the test vectors are drawn, finite.
    name : str
        Name of the function and of its files.
    iterations : int or WorstCase
        Largest number of iterations, after which the function gives up; or `worst_iterations` of the same problem and
        box, with which it never does within the box.

    Returns
    -------
    dict
        Name of a file -> its text.

    Raises
    ------
    InvalidValue
        A name that C can't use, an empty box, or a cost without a unique minimum.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.mpc.c.program import program_in_c
    >>> plant = netctrl.StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0)
    >>> problem = netctrl.MpcProblem(plant=plant, horizon=5, state_weight=1.0, input_lower=-0.5, input_upper=0.5)
    >>> sorted(program_in_c(problem, -4.0, 4.0, "rate_program"))
    ['Makefile', 'check.c', 'rate_program.c', 'rate_program.h', 'vectors.txt']
    """
    name = checked_name(name)
    proved = isinstance(iterations, WorstCase)
    most = iterations.iterations if proved else iterations
    most = checked_whole("iterations", most, "a number of at least 1", at_least=1)
    program = condensed_program(problem)
    low, high = parameter_box(program, lower, upper)
    said = f"enough for all theta from {low.tolist()} to {high.tolist()}, proved" if proved else "chosen, not proved"
    call = f"static int call(const double *theta, double *u)\n{{\n    return {name}(theta, u, NULL);\n}}\n"
    allowed = ", ".join(number(x) for x in AGREEMENT * program.input_scale)
    sizes = {"parameters": program.n_parameters, "inputs": len(program.input_scale)}
    check = template("check.c", name=name, allowed=allowed, call=call, **sizes)
    return files(name, program_sources(program, name, most, said), check, _vectors(program, low, high))


def program_sources(
    program: ParametricProgram, name: str, most: int, said: str = "chosen, not proved", into: np.ndarray | None = None
) -> dict[str, str]:
    """Header and source of a program, by their endings; with a matrix `into`, θ = into times the function's own
    parameters. `said` is of the number of iterations, `most`."""
    dual, m = dual_program(program), len(program.input_scale)
    if into is not None:
        inputs = np.column_stack([dual.inputs[:, :-1] @ into, dual.inputs[:, -1]])
        dual = dual._replace(slope=dual.slope @ into, inputs=inputs)
    k, q = max(len(dual.base), 1), dual.inputs.shape[1] - 1
    parts = {"name": name, "guard": name.upper(), "parameters": q, "inputs": m, "rows": k, "iterations": most}
    made = tables(
        ("gram", dual.gram.reshape(k, -1)),
        ("base", dual.base),
        ("slope", dual.slope.reshape(-1, q)),
        ("low", dual.low),
        ("high", dual.high),
        ("equality", dual.low == dual.high, "i"),
        ("input", dual.inputs[:, -1]),
        ("input_slope", dual.inputs[:, :-1]),
        ("input_pull", dual.pull),
    )
    source = template("program.c", tables=made, active=max(min(k, len(program.g)), 2), **parts)
    return {"h": template("program.h", certified=said, **parts), "c": source}


def _vectors(program: ParametricProgram, low: np.ndarray, high: np.ndarray) -> str:
    """Random points of the box at which the solver has an answer, or a proof that there is none."""
    rng = np.random.default_rng(0)
    shares = rng.uniform(-1.0, 1.0, (VECTORS, len(low))) * rng.uniform(0.0, 1.0, (VECTORS, 1))
    thetas, status, inputs = 0.5 * (low + high) + 0.5 * (high - low) * shares, [], []
    solver = open_solver(program.program(thetas[0]))
    for theta in thetas:
        shift = program.E @ theta
        answer = solver.solve(program.g + program.F @ theta, program.lower + shift, program.upper + shift)
        status.append({QPStatus.SOLVED: 0, QPStatus.INFEASIBLE: 1}.get(answer.status, -1))
        inputs.append(program.first_input(answer.x, theta) if status[-1] == 0 else np.zeros(len(program.input_scale)))
    known = np.array(status) >= 0
    return vectors(thetas[known], np.array(status)[known], np.array(inputs)[known])
