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
from itertools import product
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, NetctrlError, checked_kind, checked_numbers
from netctrl.model.io.matrix import dense
from netctrl.model.statespace import StateSpace
from netctrl.mpc.estimate import Estimator, steady_target, with_disturbances
from netctrl.mpc.law import free_loop
from netctrl.mpc.plan import formulated
from netctrl.mpc.problem import MpcProblem, history, vector
from netctrl.mpc.qp.invariant import EXACT, MOST_ROWS, MOST_STEPS, invariant
from netctrl.mpc.stages import Given, Stages, stages

_MOST_RANGES = 8
_INSIDE = 1e-9  # least distance of the steady state from a bound, relative to both
_SETTLED = 1e-9  # relative residual of a steady state


@dataclass(frozen=True, eq=False)
class MpcProof:
    """What is proved of a receding-horizon loop with exact model, state and constant reference, or what is missing."""

    problem: MpcProblem
    """With terminal weight and terminal set, where they exist: this one is proved, not the one given."""
    missing: tuple[str, ...]
    """Why there is no proof; empty with one."""
    reference: np.ndarray
    """(p, 2) range of constant references."""
    disturbances: np.ndarray
    """(nw, 2) range of constant measured disturbances."""
    unmeasured: np.ndarray
    """(nd, 2) range of constant disturbances that the estimator finds."""
    targets: np.ndarray
    """(n + m, p + nw + nd) x_s and u_s by [r; w; d]."""
    gain: np.ndarray
    """(m, q) K of the law without bounds, by z; empty without one."""
    steps: int
    """Samples after which the terminal set's rows are implied by the ones before."""

    @property
    def holds(self) -> bool:
        """Whether from each start in the region all plans are feasible, all bounds met and the loop settles."""
        return not self.missing

    @property
    def steady_state(self) -> np.ndarray:
        """(n,) x_s in the middle of the ranges."""
        return (self.targets @ self._middle)[: self.problem.plant.n_states]

    @property
    def steady_input(self) -> np.ndarray:
        """(m,) u_s in the middle of the ranges."""
        return (self.targets @ self._middle)[self.problem.plant.n_states :]

    @property
    def signals(self) -> dict[str, np.ndarray]:
        """Arguments of `solve_mpc` that make the steady state in the middle of the ranges the target; `step_receding`
        needs the reference alone."""
        found = {"state_reference": self.steady_state, "input_reference": self.steady_input}
        weighed = self.problem.output_weight.any() or self.problem.terminal_moved.any()
        return found | ({"reference": self.reference.mean(axis=1)} if weighed else {})

    def farthest(self, direction: Any, reference: Any = None, disturbances: Any = None) -> float:
        """Greatest multiple of a direction (q,) from the steady z_s on that the region contains; may be infinite.

        Directions are those of z: the state after the delay, then past inputs. The region is convex, so that each
        smaller multiple is inside. References (p,) and disturbances (nw,) are those in the middle of their ranges
        unless others are given.
        """
        from scipy.optimize import linprog

        p, q = len(self.reference), self.problem.terminal_rows.shape[1]
        v = self._middle
        v[:p] = v[:p] if reference is None else vector("reference", reference, p)
        w = slice(p, p + len(self.disturbances))
        v[w] = v[w] if disturbances is None else vector("disturbances", disturbances, len(self.disturbances))
        rows, bound, E = self._region
        steady = self.targets @ v
        n = self.problem.plant.n_states
        z = np.concatenate([steady[:n], _past(self.problem, steady[n:])])
        # θ = [z; w; r], as far as the program has them.
        theta = np.concatenate([z, v[w], v[:p] if E.shape[1] > q + len(self.disturbances) else []])
        asked = {
            "c": np.append(np.zeros(rows.shape[1]), -1.0),
            "A_ub": np.column_stack([rows, -E[:, :q] @ vector("direction", direction, q)]),
            "b_ub": bound + E @ theta,
            "bounds": [(None, None)] * rows.shape[1] + [(0.0, None)],
            "options": EXACT,
        }
        found = linprog(**asked, method="highs")
        if found.status not in (0, 3):
            found = linprog(**asked, method="highs-ipm")
        if found.status == 3:
            return np.inf
        if found.status != 0:
            raise NetctrlError(f"the region's edge wasn't found: {found.message}")
        return float(found.x[-1])

    def reach(self, direction: Any) -> float:
        """Least of `farthest` over all references and disturbances of the ranges: those of the corners tell, since the
        region is convex in them too.

        Raises
        ------
        InvalidValue
            More than eight ranges.
        """
        ranges = np.concatenate([self.reference, self.disturbances])
        varied, p = np.flatnonzero(np.ptp(ranges, axis=1)), len(self.reference)
        if len(varied) > _MOST_RANGES:
            raise InvalidValue("problem", f"{len(varied)} ranges", f"at most {_MOST_RANGES}")
        least, v = np.inf, ranges.mean(axis=1)
        for ends in product(*ranges[varied]):
            v[varied] = ends
            least = min(least, self.farthest(direction, v[:p], v[p:]))
        return least

    @cached_property
    def extent(self) -> np.ndarray:
        """Lowest and greatest z of the region along each axis from z_s on, shape (q, 2)."""
        at = np.concatenate([self.steady_state, _past(self.problem, self.steady_input)])
        eye = np.eye(len(at))
        return np.array([[at[i] - self.farthest(-each), at[i] + self.farthest(each)] for i, each in enumerate(eye)])

    @property
    def _middle(self) -> np.ndarray:
        return np.concatenate([self.reference, self.disturbances, self.unmeasured]).mean(axis=1)

    @cached_property
    def _region(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, bounds and effect of θ: starts with rows V ≤ bound + effect θ for some V are feasible."""
        if not self.holds:
            raise InvalidValue("problem", "one without a proof", f"a proved one: {self.missing[0]}")
        forms = {"disturbances": "constant" if len(self.disturbances) else "none"}
        forms["reference"] = "constant" if self.problem.terminal_moved.any() else "none"
        program = formulated(self.problem, "condensed", Given(**forms))
        both, E = np.vstack([np.eye(len(program.g)), dense(program.A)]), dense(program.E)
        found = []
        for sign, bound in ((1.0, program.upper), (-1.0, program.lower)):
            here = np.isfinite(bound)
            found.append((sign * both[here], sign * bound[here], sign * E[here]))
        rows, bounds, effects = zip(*found, strict=True)
        return np.vstack(rows), np.concatenate(bounds), np.vstack(effects)

    @cached_property
    def difference(self) -> StateSpace:
        """`free_loop` of this problem with its state measured."""
        return free_loop(self.problem)


def prove_mpc(
    problem: MpcProblem,
    reference: Any = 0.0,
    disturbances: Any = 0.0,
    *,
    estimator: Estimator | None = None,
    unmeasured: Any = 0.0,
) -> MpcProof:
    """Add terminal weight and terminal set to a problem, and say what they prove of its loop.

    With a proof, and the model and state as they are assumed: for each constant reference and disturbance of the ranges
    and from each start in the region, every later plan is feasible, hard bounds are met, and states and inputs settle
    at their steady values.

    Parameters
    ----------
    problem : MpcProblem
        Constant weights, no blocks; its terminal weight is replaced.
    reference : array_like, shape (p,) or (p, 2)
        Constant references of the outputs, or ranges of them. Inputs and states count from the steady state.
    disturbances : array_like, shape (nw,) or (nw, 2)
        Constant measured disturbances, or ranges of them.
    estimator : Estimator, optional
        Of the loop, with nd constant disturbances.
    unmeasured : array_like, shape (nd,) or (nd, 2)
        Their values or ranges. The proof is of exact estimates.

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

    For all references from −50 to 50, from where they are told:

    >>> proof = prove_mpc(problem, reference=[[-50.0, 50.0]])
    >>> proof.holds, round(proof.farthest([1.0, 0.0], reference=40.0), 2)
    (True, 7.39)
    """
    p, nw = checked_kind("problem", problem, MpcProblem).plant.n_outputs, len(problem.measured)
    nd = 0 if estimator is None else estimator.n_disturbances
    sizes = {"reference": (reference, p), "disturbances": (disturbances, nw), "unmeasured": (unmeasured, nd)}
    ranges = {name: _range(name, value, size) for name, (value, size) in sizes.items()}
    whole = problem if estimator is None else with_disturbances(problem, estimator)
    made, known = stages(problem), stages(whole)
    target = steady_target(whole, nd)
    n, m = problem.plant.n_states, problem.n_inputs
    picked = [*range(p), *range(p + m, p + m + nw)]
    every = np.hstack([target.constant[:, picked], np.vstack([target.states[0], target.inputs[0]])])
    targets = np.vstack([every[:n], every[n + nd :]])

    def failed(*missing: str, gain: np.ndarray | None = None) -> MpcProof:
        gain = np.zeros((0, 0)) if gain is None else gain
        return MpcProof(problem, missing, **ranges, targets=targets, gain=gain, steps=0)

    missing = []
    if problem.blocks is not None:
        missing.append("inputs are held in blocks, so that a plan shifted by a sample is none: prove it without blocks")
    elif len(np.unique(made.kind[:-1])) > 1:
        missing.append("weights differ by sample: take one for all")
    if len(target.states) > 1:
        missing.append("the estimator's disturbances aren't constant: prove the loop without them")
    v = np.concatenate(list(ranges.values()))
    if _off(whole, every, v, nd):
        missing.append(
            "no steady input holds the outputs that are weighed at the reference: ask for one that the inputs can hold"
        )
    law = None if missing else _law(made)
    if law is None and not missing:
        missing.append("the cost doesn't see each growing or lasting mode, or no input moves it: weigh all outputs")
    if missing or law is None:
        return failed(*missing)
    K, X = law
    middle, half = v.mean(axis=1), 0.5 * np.ptp(v, axis=1)
    own = np.vstack([every[:n], np.zeros((nd, len(v))), every[[n + nd + j for _, j in history(problem)]]])
    own[n : n + nd, p + nw :] = np.eye(nd)
    G, S, b, outside = _rows(problem, made, known, K, own, every[n + nd :], middle, half)
    if outside:
        return failed(outside, gain=K)
    # States: z − z_s, and where v is in its range, which stays there.
    varied = np.flatnonzero(half)
    q, count = len(made.A[0]), len(varied)
    moves = np.eye(q + count)
    moves[:q, :q] = made.A[0] - made.B[0] @ K
    box = np.eye(2 * count, q + count, k=q)
    box[count:, q:] = -np.eye(count)
    found = invariant(moves, np.vstack([box, np.hstack([G, S[:, varied] * half[varied]]) / b[:, None]]))
    if found is None:
        said = f"the terminal set has over {MOST_ROWS} rows, or needs over {MOST_STEPS} samples: take greater weights"
        return failed(f"{said} on what settles slowly, longer samples, or narrower ranges", gain=K)
    kept, steps = found
    kept = kept[kept[:, :q].any(axis=1)]
    rows, ranging = kept[:, :q], np.zeros((len(kept), len(v)))
    ranging[:, varied] = kept[:, q:] / half[varied]
    proved = replace(
        problem,
        terminal_weight=X,
        terminal_rows=rows,
        terminal_upper=1.0 + ranging @ middle,
        terminal_moved=ranging - rows @ np.delete(own, np.arange(n, n + nd), axis=0),
    )
    return MpcProof(proved, (), **ranges, targets=targets, gain=K, steps=steps)


def _range(name: str, value: Any, size: int) -> np.ndarray:
    """Lowest and highest values, (size, 2), of values or ranges."""
    found = checked_numbers(name, value, f"{size} finite numbers, or their lowest and highest values, ({size}, 2)")
    if not size and found.any():
        raise InvalidValue(name, found.tolist(), "none: there are no such disturbances")
    if found.shape == (size, 2) or (size == 1 and found.shape == (2,)):
        found = found.reshape(size, 2)
        if np.isfinite(found).all() and (found[:, 0] <= found[:, 1]).all():
            return found
        raise InvalidValue(name, found.tolist(), "finite lowest values, and highest ones that aren't below them")
    found = vector(name, value, size)
    if not np.isfinite(found).all():
        raise InvalidValue(name, found.tolist(), f"{size} finite numbers")
    return np.column_stack([found, found])


def _off(problem: MpcProblem, every: np.ndarray, v: np.ndarray, nd: int) -> bool:
    """Whether the targets, [x_s; 0; u_s] by [r; w; d], miss a reference of the ranges."""
    plant, moved, other = problem.plant, problem.manipulated, list(problem.measured)
    A, B, C, D = (dense(part) for part in (plant.A, plant.B, plant.C, plant.D))
    n, p, nw = len(A) - nd, len(C), len(other)
    x, u = every[: n + nd].copy(), every[n + nd :]
    x[n:, p + nw :] = np.eye(nd)
    reached, right = np.vstack([A[:n] @ x + B[:n, moved] @ u, C @ x + D[:, moved] @ u]), np.zeros((n + p, len(v)))
    right[:n], right[n:, :p] = x[:n], np.eye(p)
    right[:, p : p + nw] -= np.vstack([B[:n, other], D[:, other]])
    for each in (reached, right):
        each[n:][~problem.aimed] = 0.0
    middle, half = v.mean(axis=1), 0.5 * np.ptp(v, axis=1)
    off, at = reached - right, np.abs(right @ middle) + np.abs(right) @ half
    return bool((np.abs(off @ middle) + np.abs(off) @ half).max() > _SETTLED * at.max())


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
    problem: MpcProblem,
    made: Stages,
    known: Stages,
    K: np.ndarray,
    z: np.ndarray,
    u: np.ndarray,
    middle: np.ndarray,
    half: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """G, S and b > 0 of all bounds under the law, G (z − z_s) + S (v − middle) ≤ b, and the bound that a steady state
    doesn't keep; `z` and `u` are the steady states, of the stages with disturbances, and inputs by v."""
    low, high = problem.input_limits
    parts = [(-K, u, low, high, tuple(f"input {j}" for j in range(len(u))))]
    bounds = made.lower.max(axis=0), made.upper.min(axis=0)  # infinite at stages where a row has none
    p, nw = problem.plant.n_outputs, len(problem.measured)
    at = known.E[0] @ z + known.F[0] @ u
    at[:, p : p + nw] += known.Le[0][:, known.Le.shape[2] - nw :]
    parts.append((made.E[0] - made.F[0] @ K, at, *bounds, made.rows))
    G, S, b = [], [], []
    for rows, at, lower, upper, names in parts:
        for row, by, least, most, name in zip(rows, at, lower, upper, names, strict=True):
            value, wide = by @ middle, np.abs(by) @ half
            for sign, bound in ((-1.0, least), (1.0, most)):
                if not np.isfinite(bound):
                    continue
                room = sign * (bound - value)
                if not room - wide > _INSIDE * max(abs(bound), abs(value)):
                    said = f"{name} is {value + sign * wide:.4g} at the steady state and its bound {bound:.4g}"
                    none = np.zeros(0)
                    return none, none, none, f"{said}: ask for references and disturbances that leave it room"
                G.append(sign * row)
                S.append(sign * by)
                b.append(room)
    return np.array(G).reshape(-1, len(K[0])), np.array(S).reshape(-1, len(middle)), np.array(b), ""
