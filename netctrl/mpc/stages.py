"""Stages of an MPC problem: the form that all its features compile to, the regulator without bounds, and predictions.

With z_k = [x_k; u_{k−1} where it matters; older inputs in transit] and s_k = [r_k; x_ref; u_ref; Δu_ref; w_k] from
outside,

    z_{k+1} = A z_k + B u_k + L_c s_k,  lower − ε ≤ E z_k + F u_k + L_e s_k ≤ upper + ε,
    cost z'Qz + 2 z'N u + u'R u + 2 (L_q s)'z + 2 (L_r s)'u,

each matrix by the kind of the stage. Where an input is held, u_k = hold z_k is put into the others and B, F, R are 0.
u_k = v_k − K_k z_k is a change of variables: with a K that stabilises the model, no powers of an unstable A appear.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.model.io.matrix import dense
from netctrl.mpc.problem import GROUPS, MpcProblem, history

_EPS = float(np.finfo(float).eps)
_TAME = 1e2  # growth of a mode over the horizon below which powers of the model lose few digits


class Stages(NamedTuple):
    """Model, weights and rows in z (q,), u (m,) and s, in the plant's units; S kinds of stages, R rows."""

    kind: np.ndarray
    """(P + 1,) kind of each stage; the last one is the end, with terminal weights and without inputs."""
    A: np.ndarray
    """(S, q, q)"""
    B: np.ndarray
    """(S, q, m)"""
    Q: np.ndarray
    R: np.ndarray
    N: np.ndarray
    E: np.ndarray
    """(S, R, q)"""
    F: np.ndarray
    """(S, R, m)"""
    Lc: np.ndarray
    Lq: np.ndarray
    Lr: np.ndarray
    Le: np.ndarray
    """(S, R, size of s)"""
    free: np.ndarray
    """(P,) whether the inputs of the stage are free, not held."""
    hold: np.ndarray
    """(m, q) picks u_{k−1} from z_k; zeros where z has none."""
    lower: np.ndarray
    """(P + 1, R) infinite where the row has no bound at this stage."""
    upper: np.ndarray
    rho: np.ndarray
    """(R,) cost of squared violations; infinite for hard rows."""
    w: np.ndarray
    """(R,)"""
    input_lower: np.ndarray
    """(P, m) hard bounds of inputs; 0 for those held, which are no variables."""
    input_upper: np.ndarray
    rows: tuple[str, ...]
    """(R,) names, such as "state 0"."""
    state_of: np.ndarray
    """(R,) index of the state that a row bounds; −1 for other rows."""

    @property
    def soft(self) -> np.ndarray:
        """Soft rows, shape (R,) of bool."""
        return np.isfinite(self.rho)


class Layout(NamedTuple):
    """Positions of the stages' signals s in θ = [z_0; disturbances; references]."""

    pick: np.ndarray
    """(P + 1, size of s) index within θ; −1 for a signal of 0."""
    size: int
    """Length of θ."""
    moving: int
    """Length of the part of θ that moves the state: z_0 and disturbances."""


class Given(NamedTuple):
    """What θ contains after z_0, each "none", "constant" (one row for all samples) or "series" (P + 1 rows)."""

    reference: str = "none"
    state_reference: str = "none"
    input_reference: str = "none"
    rate_reference: str = "none"
    """Change of the input from which the rate weight counts."""
    disturbances: str = "none"


class Prediction(NamedTuple):
    """Prediction z_k = Phi θ + Gamma V, u_k = Psi θ + L V by the moving part of θ and V, the v of free stages."""

    Phi: np.ndarray
    """(P + 1, q, moving)"""
    Gamma: np.ndarray
    """(P + 1, q, f m) for f free stages."""
    Psi: np.ndarray
    """(P, m, moving)"""
    L: np.ndarray
    """(P, m, f m)"""


def stages(problem: MpcProblem) -> Stages:
    """Stages of the problem."""
    plant, P, n, m = problem.plant, problem.horizon, problem.plant.n_states, problem.n_inputs
    B, D = (dense(each)[:, problem.manipulated] for each in (plant.B, plant.D))
    Bw, Dw = (dense(each)[:, list(problem.measured)] for each in (plant.B, plant.D))
    C, past = dense(plant.C), history(problem)
    q, at = n + len(past), {each: n + i for i, each in enumerate(past)}
    late = problem.delays - problem.delays.min()
    hold, acting, now = np.zeros((m, q)), np.zeros((m, q)), np.diag((late == 0).astype(float))
    A, By = np.zeros((q, q)), np.zeros((q, m))
    for (age, j), place in at.items():
        if age == 1:
            hold[j, place] = By[place, j] = 1.0
        else:
            A[place, at[age - 1, j]] = 1.0
        acting[j, place] = float(age == late[j])
    A[:n] = np.hstack([dense(plant.A), np.zeros((n, q - n))]) + B @ acting
    By[:n] = B @ now
    Cz, Du = np.hstack([C, np.zeros((len(C), q - n))]) + D @ acting, D @ now
    parts = np.cumsum([0, len(C), n, m, m, Bw.shape[1]])
    r, x_ref, u_ref, du_ref, w = (slice(*parts[i : i + 2]) for i in range(5))
    Lc = np.zeros((q, parts[-1]))
    Lc[:n, w] = Bw
    effects = np.zeros((len(C), parts[-1])), np.zeros((len(problem.terminal_rows), parts[-1]))
    effects[0][:, w] = Dw
    effects[1][:, [*range(len(C)), *range(parts[4], parts[5])]] = problem.terminal_moved[:, : len(C) + Bw.shape[1]]
    made = _rows(problem, Cz, Du, hold, *effects)
    E, F, Le, bounds, rho, linear, names, state_of = made
    weights = [getattr(problem, f"{name}_weight") for name in GROUPS[:4]]
    free = np.zeros(P, dtype=bool)
    free[np.cumsum([0, *(problem.blocks or (1,) * P)])[:-1]] = True
    kinds: dict[tuple[int, bool], int] = {}
    found: list[tuple[np.ndarray, ...]] = []
    kind = np.empty(P + 1, dtype=np.int64)
    for k in range(P):
        key = (k if any(each.ndim == 3 for each in weights) else 0, bool(free[k]))
        kind[k] = kinds.setdefault(key, len(kinds))
        if kind[k] < len(found):
            continue
        Q, Qy, R, S = (each if each.ndim == 2 else each[k] for each in weights)
        Qz, Lq, Lr = Cz.T @ Qy @ Cz, np.zeros((q, parts[-1])), np.zeros((m, parts[-1]))
        Qz[:n, :n] += Q
        Lq[:, r], Lq[:n, x_ref], Lq[:, w] = -Cz.T @ Qy, -Q, Cz.T @ Qy @ Dw
        Lr[:, r], Lr[:, u_ref], Lr[:, w] = -Du.T @ Qy, -R, Du.T @ Qy @ Dw
        Nz, Ru = Cz.T @ Qy @ Du, R + Du.T @ Qy @ Du
        if free[k]:
            Lq[:, du_ref], Lr[:, du_ref] = hold.T @ S, -S
            one = (A, By, Qz + hold.T @ S @ hold, Ru + S, Nz - hold.T @ S, E, F, Lc, Lq, Lr, Le)
        else:
            Qz = Qz + Nz @ hold + hold.T @ Nz.T + hold.T @ Ru @ hold
            one = (A + By @ hold, 0 * By, Qz, 0 * Ru, 0 * Nz, E + F @ hold, 0 * F, Lc, Lq + hold.T @ Lr, 0 * Lr, Le)
        found.append(one)
    T, Lq = np.zeros((q, q)), np.zeros((q, parts[-1]))
    W = problem.terminal_weight
    T[: len(W), : len(W)] = W
    Q, Qy = (each if each.ndim == 2 else each[-1] for each in weights[:2])
    if problem.outputs_at_end:
        Lq[:n, r], Lq[:n, x_ref], Lq[:n, w] = -C.T @ Qy, -Q, C.T @ Qy @ Dw
    else:
        Lq[: len(W), x_ref] = -W[:, :n]
        for place, (_, j) in zip(range(n, len(W)), past, strict=False):
            Lq[: len(W), parts[2] + j] -= W[:, place]
    found.append((A, 0 * By, T, np.zeros((m, m)), np.zeros((q, m)), E, 0 * F, Lc, Lq, np.zeros((m, parts[-1])), Le))
    kind[P] = len(found) - 1
    last = int(np.isfinite(problem.terminal_upper).sum())
    lower, upper = (_when(F, bound, none, P, last) for bound, none in zip(bounds, (-np.inf, np.inf), strict=True))
    of_rate = np.array([name.startswith("change") for name in names], dtype=bool)
    still = np.flatnonzero(of_rate & (bounds[0] <= 0.0) & (bounds[1] >= 0.0))
    lower[np.ix_(np.flatnonzero(~free), still)], upper[np.ix_(np.flatnonzero(~free), still)] = -np.inf, np.inf
    inputs = (np.where(free[:, None], each, 0.0) for each in problem.input_limits)
    stacked = (np.ascontiguousarray(np.stack(each)) for each in zip(*found, strict=True))
    return Stages(kind, *stacked, free, hold, lower, upper, rho, linear, *inputs, names, state_of)


def _rows(
    problem: MpcProblem, Cz: np.ndarray, Du: np.ndarray, hold: np.ndarray, Dw: np.ndarray, moved: np.ndarray
) -> tuple:
    """Rows with a bound: E, F, L_e, bounds, ρ, w, names, states. Hard bounds of inputs are none."""
    n, (m, q), eye = problem.plant.n_states, hold.shape, np.eye
    mixed = np.hstack([problem.mixed_states, np.zeros((len(problem.mixed_states), q - n))])
    groups = {
        "state": (eye(n, q), np.zeros((n, m)), "state"),
        "output": (Cz, Du, "output"),
        "input": (np.zeros((m, q)), eye(m), "input"),
        "rate": (-hold, eye(m), "change of input"),
        "mixed": (mixed, problem.mixed_inputs, "mixed row"),
    }
    found = []
    for name, (E, F, said) in groups.items():
        of = "" if name == "state" else f"{name}_"
        low, high = getattr(problem, f"{name}_lower"), getattr(problem, f"{name}_upper")
        rho, w = getattr(problem, f"{of}soft_weight"), getattr(problem, f"{of}soft_linear")
        for i in np.flatnonzero(np.isfinite(low) | np.isfinite(high)):
            if name == "input" and not np.isfinite(rho[i]):
                continue
            e = Dw[i] if name == "output" else np.zeros(Dw.shape[1])
            state = i if name == "state" else -1
            found.append((E[i], F[i], e, low[i], high[i], rho[i], w[i], f"{said} {i}", state))
    for i, (row, high, e) in enumerate(zip(problem.terminal_rows, problem.terminal_upper, moved, strict=True)):
        if not np.isfinite(high):
            continue
        found.append((row, np.zeros(m), e, -np.inf, high, np.inf, 0.0, f"terminal row {i}", -1))
    sizes = (q, m, Dw.shape[1])
    columns = list(zip(*found, strict=True)) if found else [()] * 9
    E, F, Le = (np.array(part, dtype=float).reshape(-1, size) for part, size in zip(columns[:3], sizes, strict=True))
    low, high, rho, w = (np.array(part, dtype=float) for part in columns[3:7])
    return E, F, Le, (low, high), rho, w, tuple(columns[7]), np.array(columns[8], dtype=int)


def _when(F: np.ndarray, bound: np.ndarray, none: float, P: int, terminal: int) -> np.ndarray:
    """Bounds at each stage, shape (P + 1, R): rows with inputs at 0 .. P − 1, others at 1 .. P, the last ones at P."""
    tiled, direct = np.tile(bound, (P + 1, 1)), F.any(axis=1)
    tiled[0, ~direct] = tiled[P, direct] = none
    tiled[:P, len(bound) - terminal :] = none
    return tiled


class Regulator(NamedTuple):
    """Gains of u = v − K z, and the cost of v: without bounds Σ v_k'M_k v_k + θ'X_0 θ, M_k = R + B'X_{k+1} B."""

    K: np.ndarray
    """(P, m, q); 0 where inputs are held."""
    price: np.ndarray
    """(P, m) diagonals of 2 M_k; 1 where inputs are held."""


def regulator(problem: MpcProblem, made: Stages) -> Regulator:
    """Solution of the problem without bounds.

    Where a growing mode has no weight but affects a bounded row, the gains use a weight on these rows.

    Raises
    ------
    InvalidValue
        A direction of the inputs without cost: the minimum would not be unique.
    """
    K, price = _riccati(made, check=True)
    if len(made.rows) and _closed_growth(made, K) > _TAME:
        bounds = made.E * _of_bounds(problem, made)[:, None]
        seen, _ = _riccati(made._replace(Q=made.Q + np.swapaxes(made.E, 1, 2) @ bounds), check=False)
        if _closed_growth(made, seen) <= _TAME:
            K = seen
    return Regulator(K, price)


def grows(made: Stages) -> bool:
    """Whether powers of the model over the horizon lose digits."""
    return growth(made.A[made.kind[0]], len(made.free)) > _TAME


def growth(A: np.ndarray, P: int) -> float:
    """Growth of the fastest mode over the horizon, independent of the states' units."""
    radius = float(np.abs(np.linalg.eigvals(A)).max(initial=0.0))
    return float(np.exp(min(P * np.log(max(radius, 1.0)), 700.0)))


def _closed_growth(made: Stages, K: np.ndarray) -> float:
    A, B = made.A[made.kind], made.B[made.kind]
    if made.free.all():
        return growth(A[0] - B[0] @ K[0], len(K))
    # The gains of a free stage and the held ones after it only count together.
    product = np.eye(A.shape[1])
    for k, gain in enumerate(K):
        product = (A[k] - B[k] @ gain) @ product
        product /= max(1e100, float(np.abs(product).max())) / 1e100
    return growth(product, 1)


def layout(problem: MpcProblem, made: Stages, given: Given) -> Layout:
    """Positions of what is given from outside."""
    n, p, P = problem.plant.n_states, problem.plant.n_outputs, problem.horizon
    m = problem.n_inputs
    sizes = {"reference": p, "state_reference": n, "input_reference": m, "rate_reference": m}
    sizes["disturbances"] = len(problem.measured)
    places, end = {}, made.A.shape[1]
    for name in ("disturbances", "reference", "state_reference", "input_reference", "rate_reference"):
        count = {"none": 0, "constant": 1, "series": P + 1}[getattr(given, name)]
        index = end + np.arange(count * sizes[name]).reshape(count, sizes[name])
        end += index.size
        places[name] = np.broadcast_to(index, (P + 1, sizes[name])) if count else np.full((P + 1, sizes[name]), -1)
    moving = made.A.shape[1] + len(np.unique(places["disturbances"][places["disturbances"] >= 0]))
    return Layout(np.ascontiguousarray(np.hstack([places[name] for name in sizes])), end, moving)


def predicted(made: Stages, gains: np.ndarray, order: Layout) -> Prediction:
    """States and inputs under u = v − K z."""
    P, m, q = gains.shape
    size = int(made.free.sum()) * m
    # A last column takes the signals that are 0.
    Phi, Gamma = np.zeros((P + 1, q, order.moving + 1)), np.zeros((P + 1, q, size))
    Psi, L = np.zeros((P, m, order.moving + 1)), np.zeros((P, m, size))
    Phi[0, :, :q] = np.eye(q)
    driven, first = order.pick[:, made.Lc.any(axis=(0, 1))], 0
    into = made.Lc[:, :, made.Lc.any(axis=(0, 1))]
    for k in range(P):
        at = made.kind[k]
        one = slice(first, first + m)
        Psi[k], L[k] = -gains[k] @ Phi[k], -gains[k] @ Gamma[k]
        closed = made.A[at] - made.B[at] @ gains[k]
        Phi[k + 1], Gamma[k + 1] = closed @ Phi[k], closed @ Gamma[k]
        Phi[k + 1][:, driven[k]] += into[at]
        if made.free[k]:
            L[k, :, one] += np.eye(m)
            Gamma[k + 1, :, one] = made.B[at]
            first += m
    return Prediction(Phi[:, :, :-1], Gamma, Psi[:, :, :-1], L)


def _riccati(made: Stages, *, check: bool) -> tuple[np.ndarray, np.ndarray]:
    """Gains K_0 .. K_{P−1} and the diagonals of 2 M_k; X in Joseph's form, which stays positive semidefinite."""
    P, m, q = len(made.free), made.B.shape[2], made.A.shape[1]
    gains, price, X = np.zeros((P, m, q)), np.ones((P, m)), made.Q[made.kind[P]]
    for k in reversed(range(P)):
        A, B, Q, R, N = (part[made.kind[k]] for part in made[1:6])
        if made.free[k]:
            M = R + B.T @ X @ B
            if check:
                # Check M relative to the size of its summands: singular to rounding counts as singular.
                size = np.diag(np.abs(R) + np.abs(B).T @ np.abs(X) @ np.abs(B))
                unit = np.sqrt(np.where(size > 0.0, size, 1.0))
                least = float(np.linalg.eigvalsh(M / unit[:, None] / unit).min())
                if not least > 16.0 * len(M) * _EPS:
                    takes = "weights that give each sequence of inputs a cost, such as an input_weight above 0"
                    raise InvalidValue("input_weight", f"a Hessian with an eigenvalue of {least:.3g}", takes)
            price[k] = 2.0 * np.diag(M)
            gains[k] = np.linalg.solve(M, B.T @ X @ A + N.T)
        K = gains[k]
        closed = A - B @ K
        X = closed.T @ X @ closed + K.T @ R @ K + Q - K.T @ N.T - N @ K
        X = 0.5 * (X + X.T)
    return gains, price


def cost(made: Stages, by: Prediction, order: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Terms H (f m, f m) and F (f m, size of θ) of the cost ½ V'HV + (Fθ)'V, in the plant's units."""
    P, m, size = by.L.shape
    q, kind = made.A.shape[1], made.kind[:-1]
    S = np.concatenate([by.Gamma[:-1], by.L], axis=1)
    at = np.concatenate([by.Phi[:-1], by.Psi], axis=1)
    W = np.concatenate(
        [np.concatenate([made.Q, made.N], axis=2), np.concatenate([np.swapaxes(made.N, 1, 2), made.R], axis=2)], axis=1
    )
    weighed = np.matmul(W[kind] if len(W) > 2 else W[0], S).reshape(P * (q + m), size)
    end = made.Q[made.kind[P]] @ by.Gamma[-1]
    H = S.reshape(P * (q + m), size).T @ weighed + by.Gamma[-1].T @ end
    F = np.zeros((size, order.size + 1))
    F[:, : order.moving] = weighed.T @ at.reshape(P * (q + m), order.moving) + end.T @ by.Phi[-1]
    for k in range(P + 1) if (order.pick >= 0).any() else ():
        pull = by.Gamma[k].T @ made.Lq[made.kind[k]]
        if k < P:
            pull += by.L[k].T @ made.Lr[made.kind[k]]
        F[:, order.pick[k]] += pull  # each signal has its own column but for the last one, which is dropped
    return H + H.T, 2.0 * F[:, :-1]


def _of_bounds(problem: MpcProblem, made: Stages) -> np.ndarray:
    """Weights on bounded rows: at its bound a row costs as much as the widest inputs; 1 if those cost nothing."""
    wide = widest(made.lower, made.upper).max(axis=0)
    reach = widest(problem.input_lower, problem.input_upper)
    price = float(np.diag(made.R[made.kind[0]]) @ reach**2) or 1.0
    return np.where(wide > 0.0, price / np.where(wide > 0.0, wide, 1.0) ** 2, 0.0)


def widest(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Larger modulus of both bounds, 0 without bounds."""
    return np.maximum(*(np.where(np.isfinite(bound), np.abs(bound), 0.0) for bound in (lower, upper)))
