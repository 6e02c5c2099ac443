"""Explicit MPC: a small problem solved for all states in advance, as a piecewise affine law on polyhedra.

Each feasible θ has an optimal set of active bounds whose rows are linearly independent, so all such sets are
enumerated. A set whose bounds can't be active together for any θ and v rules out all sets that contain it. The
enumeration is complete; it doesn't search among neighbours.

Sources: Bemporad, Morari, Dua, Pistikopoulos, Automatica 38 (2002) 3-20; Gupta, Bhartiya, Nataraj, Automatica 47 (2011)
2112-2117 (the pruning).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, NetctrlError, checked_whole
from netctrl.mpc.formulate import condensed
from netctrl.mpc.parametric import ParametricProgram
from netctrl.mpc.piecewise.regions import Polyhedra, chebyshev, feasible, irredundant
from netctrl.mpc.problem import MpcProblem, vector
from netctrl.mpc.qp.program import QPStatus
from netctrl.mpc.qp.solve import open_solver

_THIN = 1e-9  # relative to the box's half width: a region with a smaller ball is a face of others
_INDEPENDENT = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class PiecewiseLaw:
    """Law u = gain[r] t + offset[r] in the region r with rows t ≤ right, where t = (θ − centre)/half in [−1, 1].

    θ is as in `netctrl.mpc.parametric.parameters`: the state after the delay, then the last input with a rate weight.
    """

    centre: np.ndarray
    """(q,)"""
    half: np.ndarray
    """(q,)"""
    rows: np.ndarray
    """(T, q) rows of unit length, of all regions one after the other."""
    right: np.ndarray
    """(T,)"""
    first: np.ndarray
    """(R + 1,) index of each region's first row."""
    gain: np.ndarray
    """(R, m, q)"""
    offset: np.ndarray
    """(R, m) [the plant's units]."""
    active: tuple[tuple[str, ...], ...]
    """Names of the active bounds of the R regions."""
    candidates: int
    """Number of sets of bounds examined."""
    pruned: int
    """Number of sets that rule out all sets containing them."""

    def __post_init__(self) -> None:
        for part in (self.centre, self.half, self.rows, self.right, self.first, self.gain, self.offset):
            part.setflags(write=False)

    def decide(self, theta: Any) -> np.ndarray:
        """Inputs (m,) at θ (q,).

        Raises
        ------
        InvalidValue
            Numbers that aren't finite, or a θ outside all regions: out of the table's box, or infeasible.
        """
        inputs, region = self.decide_many(np.asarray(theta, dtype=float)[None])
        if region[0] < 0:
            low, high = (self.centre - self.half).tolist(), (self.centre + self.half).tolist()
            takes = f"a feasible point from {low} to {high}: the table has no others; solve the program instead"
            raise InvalidValue("theta", np.asarray(theta).tolist(), takes)
        return inputs[0]

    def decide_many(self, thetas: Any) -> tuple[np.ndarray, np.ndarray]:
        """Inputs (count, m) at thetas (count, q), and their regions (count,), −1 with inputs of 0 outside all."""
        from netctrl.mpc.piecewise.kernel import decide_points

        thetas = np.ascontiguousarray(thetas, dtype=float)
        if thetas.ndim != 2 or thetas.shape[1] != len(self.centre) or not np.isfinite(thetas).all():
            raise InvalidValue("thetas", f"shape {thetas.shape}", f"finite numbers of shape (any, {len(self.centre)})")
        t = (thetas - self.centre) / self.half
        return decide_points(t, self.rows, self.right, self.first, self.gain, self.offset)


class Coverage(NamedTuple):
    """Results of a table's check at random points."""

    samples: int
    feasible: int
    """Number of points at which the program has a solution."""
    missed: int
    """Number of feasible points outside all regions; 0 for a complete table."""
    invented: int
    """Number of infeasible points in a region."""
    largest_error: float
    """Largest difference from the program's inputs, in units of the inputs' bounds."""


class _Set(NamedTuple):
    """Set of active bounds and its optimal solution v = Kt + k, λ = Lt + l."""

    active: tuple[int, ...]
    K: np.ndarray
    k: np.ndarray
    L: np.ndarray
    l: np.ndarray  # noqa: E741


def piecewise_law(problem: MpcProblem, lower: Any, upper: Any, *, max_candidates: int = 20_000) -> PiecewiseLaw:
    """Explicit law for the first inputs of an MPC problem for all θ of a box.

    Parameters
    ----------
    problem : MpcProblem
        A small problem: the number of sets of active bounds grows fast with the horizon.
    lower, upper : array_like, shape (q,)
        The box of θ, finite.
    max_candidates : int
        Largest number of sets to examine.

    Raises
    ------
    InvalidValue
        An empty or infinite box.
    NetctrlError
        More sets than `max_candidates`, or no feasible point in the box.
    """
    most = checked_whole("max_candidates", max_candidates, "a number of at least 1", at_least=1)
    program = condensed(problem)
    q = program.n_parameters
    low, high = vector("lower", lower, q), vector("upper", upper, q)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InvalidValue("lower, upper", [low.tolist(), high.tolist()], "finite numbers, each lower below its upper")
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    bounds = _bounds(program, centre, half)
    found, candidates, pruned = _enumerated(program, bounds, q, most)
    if not found:
        raise NetctrlError("no point of the box is feasible: see the bounds, or netctrl.mpc.qp.certificate.conflict")
    found.sort(key=lambda each: -each[1])  # large regions are searched first
    m = len(program.input_scale)
    polyhedra = [irredundant(_region(bounds, each), middle) for each, _, middle in found]
    return PiecewiseLaw(
        centre,
        half,
        np.vstack([each.rows for each in polyhedra]),
        np.concatenate([each.right for each in polyhedra]),
        np.cumsum([0, *(len(each.right) for each in polyhedra)]),
        np.stack([each.K[:m] * program.input_scale[:, None] - program.gains[0] * half for each, _, _ in found]),
        np.stack([program.first_input(each.k, centre) for each, _, _ in found]),
        tuple(tuple(bounds.names[i] for i in each.active) for each, _, _ in found),
        candidates,
        pruned,
    )


def check_piecewise(
    law: PiecewiseLaw, problem: MpcProblem, rng: np.random.Generator, *, samples: int = 1000, solver: str = "daqp"
) -> Coverage:
    """Compare a table with the program at random points of its box."""
    program = condensed(problem)
    thetas = law.centre + law.half * rng.uniform(-1.0, 1.0, (samples, len(law.centre)))
    inputs, region = law.decide_many(thetas)
    workspace = open_solver(program.program(law.centre), solver)
    solved, worst = np.zeros(samples, dtype=bool), 0.0
    for i, theta in enumerate(thetas):
        shift = program.E @ theta
        answer = workspace.solve(program.g + program.F @ theta, program.lower + shift, program.upper + shift)
        solved[i] = answer.status is QPStatus.SOLVED
        if solved[i] and region[i] >= 0:
            error = np.abs(program.first_input(answer.x, theta) - inputs[i]) / program.input_scale
            worst = max(worst, float(error.max()))
    missed, invented = int((solved & (region < 0)).sum()), int((~solved & (region >= 0)).sum())
    return Coverage(samples, int(solved.sum()), missed, invented, worst)


class _Bounds(NamedTuple):
    """Bounds G v ≤ w + S t, all finite ones one-sided, and the cost's linear term f + F t."""

    G: np.ndarray
    w: np.ndarray
    S: np.ndarray
    f: np.ndarray
    F: np.ndarray
    names: tuple[str, ...]


def _bounds(program: ParametricProgram, centre: np.ndarray, half: np.ndarray) -> _Bounds:
    rows = np.vstack([np.eye(len(program.g)), program.A])
    low, high = np.isfinite(program.lower), np.isfinite(program.upper)
    shift, E = program.E @ centre, program.E * half
    G = np.vstack([rows[high], -rows[low]])
    w = np.concatenate([(program.upper + shift)[high], -(program.lower + shift)[low]])
    names = [f"{name}, upper" for name, there in zip(program.names, high, strict=True) if there]
    names += [f"{name}, lower" for name, there in zip(program.names, low, strict=True) if there]
    f, F = program.g + program.F @ centre, program.F * half
    return _Bounds(G, w, np.vstack([E[high], -E[low]]), f, F, tuple(names))


def _enumerated(
    program: ParametricProgram, bounds: _Bounds, q: int, most: int
) -> tuple[list[tuple[_Set, float, np.ndarray]], int, int]:
    """All regions with an interior: set, radius and centre of the largest ball; sets examined, and ruled out."""
    count = len(bounds.w)
    box = Polyhedra(np.vstack([np.eye(q), -np.eye(q)]), np.ones(2 * q))
    inverse = np.linalg.inv(program.H)
    found: list[tuple[_Set, float, np.ndarray]] = []
    level: list[tuple[int, ...]] = [()]
    out: set[tuple[int, ...]] = set()
    looked = pruned = 0
    while level:
        alive = []
        for active in level:
            looked += 1
            if looked > most:
                raise NetctrlError(
                    f"more than {most} sets of active bounds: tables are for small problems; shorten the horizon or "
                    "raise max_candidates"
                )
            optimal = _optimal(bounds, inverse, active)
            ball = None if optimal is None else chebyshev(_with(_region(bounds, optimal), box))
            if optimal is not None and ball is not None and ball[0] > _THIN:
                found.append((optimal, *ball))
            # A nonempty region proves that its bounds can be active together; otherwise a program over θ and v decides.
            if optimal is not None and (ball is not None or feasible(bounds.G, bounds.w, bounds.S, active)):
                alive.append(active)
            else:
                out.add(active)
                pruned += 1
        kept = set(alive)
        level = [
            (*active, extra)
            for active in alive
            if len(active) < len(program.g)
            for extra in range(active[-1] + 1 if active else 0, count)
            if all((*active[:i], *active[i + 1 :], extra) in kept for i in range(len(active)))
        ]
    return found, looked, pruned


def _optimal(bounds: _Bounds, inverse: np.ndarray, active: tuple[int, ...]) -> _Set | None:
    """Optimal solution with a set of active bounds; None where the rows are linearly dependent."""
    at = list(active)
    G, w, S = bounds.G[at], bounds.w[at], bounds.S[at]
    free_K, free_k = -inverse @ bounds.F, -inverse @ bounds.f
    if not at:
        return _Set(active, free_K, free_k, np.zeros((0, S.shape[1])), np.zeros(0))
    M = G @ inverse @ G.T
    size = np.sqrt(np.diag(M))
    if np.linalg.eigvalsh(M / size[:, None] / size)[0] < _INDEPENDENT:
        return None
    L, l = np.linalg.solve(M, G @ free_K - S), np.linalg.solve(M, G @ free_k - w)  # noqa: E741
    return _Set(active, free_K - inverse @ G.T @ L, free_k - inverse @ G.T @ l, L, l)


def _region(bounds: _Bounds, optimal: _Set) -> Polyhedra:
    """Region where v meets the other bounds and no multiplier is below 0; rows of length 1."""
    others = np.setdiff1d(np.arange(len(bounds.w)), optimal.active)
    rows = np.vstack([bounds.G[others] @ optimal.K - bounds.S[others], -optimal.L])
    right = np.concatenate([bounds.w[others] - bounds.G[others] @ optimal.k, optimal.l])
    return Polyhedra(rows, right).normalised()


def _with(one: Polyhedra, other: Polyhedra) -> Polyhedra:
    return Polyhedra(np.vstack([one.rows, other.rows]), np.concatenate([one.right, other.right]))
