"""Proof that an MPC loop stays feasible and settles: terminal weight and terminal set from the law without bounds.

Near the steady state the bounds are idle and the optimal law is u = u_s − K (z − z_s), of the cost
(z − z_s)'X (z − z_s) by the Riccati equation of z = [x; the last input where it matters; older ones in transit]. The
terminal set holds all z from which this law meets every bound for ever: {G Φ^t (z − z_s) ≤ b for all t}, Φ = A − B K.
A plan that ends in it goes on by the law, so that the plan of the next sample exists and costs less by what this sample
costs.

Sources: Mayne, Rawlings, Rao, Scokaert, Automatica 36 (2000) 789-814, for the theorem; Gilbert, Tan, IEEE TAC 36 (1991)
1008-1020, for the set: it is found at the first t whose rows the ones before imply.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, NetctrlError, checked_kind
from netctrl.model.io.matrix import dense
from netctrl.model.statespace import StateSpace
from netctrl.mpc.estimate import steady_target
from netctrl.mpc.plan import formulated
from netctrl.mpc.problem import MpcProblem, history, vector
from netctrl.mpc.receding import from_past
from netctrl.mpc.stages import Given, Stages, stages

_MOST_STEPS, _MOST_ROWS = 400, 2000
_IMPLIED = 1e-9  # relative to a bound: rows that are met this closely are implied
_INSIDE = 1e-9  # least distance of the steady state from a bound, relative to both
_EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_SETTLED = 1e-9  # relative residual of a steady state


@dataclass(frozen=True, eq=False)
class MpcProof:
    """What is proved of a receding-horizon loop with exact model, state and constant reference, or what is missing."""

    problem: MpcProblem
    """With terminal weight and terminal set, where they exist: this one is proved, not the one given."""
    missing: tuple[str, ...]
    """Why there is no proof; empty with one."""
    steady_state: np.ndarray
    """(n,) x_s."""
    steady_input: np.ndarray
    """(m,) u_s."""
    reference: np.ndarray
    """(p,)"""
    disturbances: np.ndarray
    """(nw,) measured ones."""
    gain: np.ndarray
    """(m, q) K of the law without bounds, by z; empty without one."""
    steps: int
    """Samples after which the terminal set's rows are implied by the ones before."""

    @property
    def holds(self) -> bool:
        """Whether from each start in the region all plans are feasible, all bounds met and the loop settles."""
        return not self.missing

    @property
    def signals(self) -> dict[str, np.ndarray]:
        """Arguments of `solve_mpc` that make the steady state the target; `step_receding` needs the reference alone."""
        found = {"state_reference": self.steady_state, "input_reference": self.steady_input}
        return found | ({"reference": self.reference} if self.problem.output_weight.any() else {})

    def farthest(self, direction: Any) -> float:
        """Greatest multiple of a direction (q,) from the steady z_s on that the region contains; may be infinite.

        Directions are those of z: the state after the delay, then past inputs. The region is convex, so that each
        smaller multiple is inside.
        """
        from scipy.optimize import linprog

        rows, right, moved = self._region
        toward = moved @ vector("direction", direction, moved.shape[1])
        found = linprog(
            np.append(np.zeros(rows.shape[1]), -1.0),
            A_ub=np.column_stack([rows, toward]),
            b_ub=right,
            bounds=[(None, None)] * rows.shape[1] + [(0.0, None)],
            method="highs",
            options=_EXACT,
        )
        if found.status == 3:
            return np.inf
        if found.status != 0:
            raise NetctrlError(f"the region's edge wasn't found: {found.message}")
        return float(found.x[-1])

    @cached_property
    def extent(self) -> np.ndarray:
        """Lowest and greatest z of the region along each axis from z_s on, shape (q, 2)."""
        at = self._steady_z
        eye = np.eye(len(at))
        return np.array([[at[i] - self.farthest(-each), at[i] + self.farthest(each)] for i, each in enumerate(eye)])

    @property
    def _steady_z(self) -> np.ndarray:
        return np.concatenate([self.steady_state, _past(self.problem, self.steady_input)])

    @cached_property
    def _region(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, right sides and effect of θ: starts z_s + d with rows V + moved d ≤ right for some V are feasible."""
        if not self.holds:
            raise InvalidValue("problem", "one without a proof", f"a proved one: {self.missing[0]}")
        w = self.disturbances
        program = formulated(self.problem, "condensed", Given(disturbances="constant" if len(w) else "none"))
        both = np.vstack([np.eye(len(program.g)), dense(program.A)])
        at, E = np.concatenate([self._steady_z, w]), dense(program.E)
        rows, right, moved = [], [], []
        for sign, bound in ((1.0, program.upper), (-1.0, program.lower)):
            here = np.isfinite(bound)
            rows.append(sign * both[here])
            right.append(sign * (bound + E @ at)[here])
            moved.append(-sign * E[here, : len(at) - len(w)])
        return np.vstack(rows), np.concatenate(right), np.vstack(moved)

    @cached_property
    def difference(self) -> StateSpace:
        """S − T at the plant's input while no bound is active, of which `discrete_disk_margin` tells the loop's margin.

        The delays are in it: the law predicts over them by the inputs that it sent, and the plant gets others.

        Raises
        ------
        InvalidValue
            There is no law, or the measured state has an age.
        """
        problem, K = self.problem, self.gain
        if not K.size or problem.measurement_delay:
            takes = "a problem with a stabilising law, without a measurement delay"
            raise InvalidValue("problem", "another one", takes)
        A, B = dense(problem.plant.A), dense(problem.plant.B)[:, problem.manipulated]
        n, m = B.shape
        size = m * max(int(problem.delays.max()), 1)
        law = -K @ from_past(problem)[:, : n + size]  # of [x; past inputs, oldest first]
        # States: x; past inputs; past disturbances w of the plant's inputs.
        sent = np.hstack([law, np.zeros((m, size))])
        acting, direct = np.zeros((m, n + 2 * size)), np.zeros((m, m))
        for j, d in enumerate(problem.delays):
            if d:
                acting[j, [n + size - d * m + j, n + 2 * size - d * m + j]] = 1.0
            else:
                acting[j], direct[j, j] = sent[j], 1.0
        shift, last = np.eye(size, k=m), np.eye(size, m, k=m - size)
        moves = np.vstack(
            [
                np.hstack([A, np.zeros((n, 2 * size))]) + B @ acting,
                np.hstack([np.zeros((size, n)), shift, np.zeros((size, size))]) + last @ sent,
                np.hstack([np.zeros((size, n + size)), shift]),
            ]
        )
        drive = np.vstack([B @ direct, np.zeros((size, m)), last])
        return StateSpace(moves, drive, 2.0 * sent, np.eye(m), dt=problem.plant.dt)


def prove_mpc(problem: MpcProblem, reference: Any = 0.0, disturbances: Any = 0.0) -> MpcProof:
    """Add terminal weight and terminal set to a problem, and say what they prove of its loop.

    With a proof, and the model, the state and a constant reference as they are assumed: from each start in the region
    every later plan is feasible, hard bounds are met, and states and inputs settle at their steady values.

    Parameters
    ----------
    problem : MpcProblem
        Constant weights, no blocks; its terminal weight is replaced.
    reference : array_like, shape (p,)
        Constant reference of the outputs. Inputs and states count from the steady state that meets it.
    disturbances : array_like, shape (nw,)
        Constant measured disturbances.

    Returns
    -------
    MpcProof
        Where there is no proof, `missing` says why.

    Examples
    --------
    An integrating queue with a bounded rate that changes by at most .2 a sample:

    >>> import netctrl
    >>> from netctrl.mpc.proof import prove_mpc
    >>> plant = netctrl.StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0)
    >>> problem = netctrl.MpcProblem(plant=plant, horizon=10, output_weight=1.0, rate_weight=0.5,
    ...                              input_lower=-1.0, input_upper=1.0, rate_lower=-0.2, rate_upper=0.2)
    >>> proof = prove_mpc(problem)
    >>> proof.holds, proof.extent.round(2).tolist()
    (True, [[-7.39, 7.39], [-1.09, 1.09]])
    """
    n, p = checked_kind("problem", problem, MpcProblem).plant.n_states, problem.plant.n_outputs
    r = vector("reference", reference, p)
    w = vector("disturbances", disturbances, len(problem.measured))
    for name, value in (("reference", r), ("disturbances", w)):
        if not np.isfinite(value).all():
            raise InvalidValue(name, value.tolist(), f"{len(value)} finite numbers")
    made = stages(problem)
    missing, x, u = [], np.zeros(n), np.zeros(problem.n_inputs)
    if problem.blocks is not None:
        missing.append("inputs are held in blocks, so that a plan shifted by a sample is none: prove it without blocks")
    if len(np.unique(made.kind[:-1])) > 1 and problem.blocks is None:
        missing.append("weights differ by sample: take one for all")
    x, u, off = _steady(problem, r, w)
    if off:
        missing.append(off)
    law = None if missing else _law(made)
    if law is None and not missing:
        missing.append("the cost doesn't see each growing or lasting mode, or no input moves it: weigh all outputs")
    if missing or law is None:
        return MpcProof(problem, tuple(missing), x, u, r, w, np.zeros((0, 0)), 0)
    K, X = law
    z = np.concatenate([x, _past(problem, u)])
    G, b, outside = _rows(problem, made, K, z, u, w)
    if outside:
        return MpcProof(problem, (outside,), x, u, r, w, K, 0)
    found = invariant(made.A[0] - made.B[0] @ K, G / b[:, None])
    if found is None:
        said = f"the terminal set has over {_MOST_ROWS} rows, or needs over {_MOST_STEPS} samples: take greater weights"
        return MpcProof(problem, (f"{said} on what settles slowly, or longer samples",), x, u, r, w, K, 0)
    rows, steps = found
    proved = replace(problem, terminal_weight=X, terminal_rows=rows, terminal_upper=1.0 + rows @ z)
    return MpcProof(proved, (), x, u, r, w, K, steps)


def invariant(Phi: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, int] | None:
    """Rows H, (l, q), of the set {z: G Φ^t z ≤ 1 for all t} = {H z ≤ 1}, and the last t that adds to it.

    None where it has too many rows, or takes too long.
    """
    kept, now = np.zeros((0, len(Phi))), G
    for t in range(_MOST_STEPS):
        added = []
        for row in now:
            known = np.vstack([kept, *added]) if added else kept
            if _most(row, known) > 1.0 + _IMPLIED:
                added.append(row[None])
        if not added:
            return _irredundant(kept), max(t - 1, 0)
        kept, now = np.vstack([kept, *added]), now @ Phi
        if len(kept) > _MOST_ROWS:
            return None
    return None


def _most(row: np.ndarray, rows: np.ndarray) -> float:
    """Greatest row z where rows z ≤ 1; infinite without a bound."""
    from scipy.optimize import linprog

    size = np.linalg.norm(row)
    if not size > 0.0:
        return 0.0
    if not len(rows):
        return np.inf
    found = linprog(
        -row / size, A_ub=rows, b_ub=np.ones(len(rows)), bounds=(None, None), method="highs", options=_EXACT
    )
    return float(-found.fun * size) if found.status == 0 else np.inf


def _irredundant(rows: np.ndarray) -> np.ndarray:
    """Rows without those that the others imply; the later ones first, which more often are."""
    kept = list(range(len(rows)))
    for i in reversed(range(len(rows))):
        others = [j for j in kept if j != i]
        if _most(rows[i], rows[others]) <= 1.0 + _IMPLIED:
            kept = others
    return rows[kept]


def _steady(problem: MpcProblem, r: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    """x_s and u_s at which the outputs are r, those that the loop aims at; and why there are none."""
    plant, moved, other = problem.plant, problem.manipulated, list(problem.measured)
    A, B, C, D = (dense(part) for part in (plant.A, plant.B, plant.C, plant.D))
    found = steady_target(problem, 0).constant @ np.concatenate([r, np.zeros(len(moved)), w])
    x, u = found[: len(A)], found[len(A) :]
    right = np.concatenate([-B[:, other] @ w, r - D[:, other] @ w])
    off = np.concatenate([A @ x - x + B[:, moved] @ u, C @ x + D[:, moved] @ u]) - right
    missed = np.abs(off).max() > _SETTLED * np.abs(right).max()
    said = "no steady input holds the outputs at the reference: ask for one that the inputs can hold" if missed else ""
    return x, u, said


def _past(problem: MpcProblem, u: np.ndarray) -> np.ndarray:
    """Past inputs within z, all of them u."""
    return np.array([u[j] for _, j in history(problem)], dtype=float)


def _law(made: Stages) -> tuple[np.ndarray, np.ndarray] | None:
    """K and X of the regulator without bounds and end; None without a stabilising one."""
    from scipy.linalg import solve_discrete_are

    A, B, Q, R, N = (part[0] for part in made[1:6])
    try:
        X = solve_discrete_are(A, B, Q, R, s=N)
    except (np.linalg.LinAlgError, ValueError):
        return None
    M = R + B.T @ X @ B
    K = np.linalg.solve(M, B.T @ X @ A + N.T)
    stable = np.isfinite(K).all() and np.abs(np.linalg.eigvals(A - B @ K)).max() < 1.0 - 1e-9
    return (K, 0.5 * (X + X.T)) if stable else None


def _rows(
    problem: MpcProblem, made: Stages, K: np.ndarray, z: np.ndarray, u: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, str]:
    """G and b > 0 of all bounds under the law, G (z − z_s) ≤ b, and the bound that the steady state doesn't keep."""
    low, high = problem.input_limits
    parts = [(-K, u, low, high, tuple(f"input {j}" for j in range(len(u))))]
    bounds = made.lower.max(axis=0), made.upper.min(axis=0)  # infinite at stages where a row has none
    at = made.E[0] @ z + made.F[0] @ u + made.Le[0][:, made.Le.shape[2] - len(w) :] @ w
    parts.append((made.E[0] - made.F[0] @ K, at, *bounds, made.rows))
    G, b = [], []
    for rows, at, lower, upper, names in parts:
        for row, value, least, most, name in zip(rows, at, lower, upper, names, strict=True):
            for sign, bound in ((-1.0, least), (1.0, most)):
                if not np.isfinite(bound):
                    continue
                room = sign * (bound - value)
                if not room > _INSIDE * max(abs(bound), abs(value)):
                    said = f"{name} is {value:.4g} at the steady state and its bound {bound:.4g}"
                    return np.zeros((0, len(z))), np.zeros(0), f"{said}: ask for a reference that leaves it room"
                G.append(sign * row)
                b.append(room)
    return np.array(G).reshape(-1, len(z)), np.array(b), ""
