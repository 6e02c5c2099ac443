"""Random MPC problems with every feature on and off, and the problem as written by cvxpy, in the plant's own time.

The judge shares nothing with the package: no augmented state, no stages, inputs at the sample at which they act.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from netctrl.model.statespace import StateSpace


class Instance(NamedTuple):
    """Arguments of `MpcProblem` and of `solve_mpc`."""

    problem: dict[str, Any]
    call: dict[str, Any]


def random_instance(seed: int, *, most_states: int = 30, longest: int = 200, latest: int = 20) -> Instance:
    """An instance whose features are drawn one by one."""
    rng = np.random.default_rng(seed)

    def chosen(chance: float = 0.4) -> bool:
        return bool(rng.random() < chance)

    n, p = int(rng.integers(1, most_states + 1)), int(rng.integers(1, 4))
    m, md = int(rng.integers(1, 4)), int(chosen())
    P = int(np.exp(rng.uniform(0.0, np.log(longest + 0.5))))
    kind = ("stable", "integrating", "unstable")[seed % 3]
    held = P > 1 and chosen(0.3)
    # Where inputs are held, Clarabel itself becomes inaccurate from a growth of 1e4 on.
    A = _dynamics(rng, n, kind, P, 2.0 if held else 6.0)
    B = rng.standard_normal((n, m + md)) / np.sqrt(n)
    C = rng.standard_normal((p, n)) / np.sqrt(n)
    D = rng.standard_normal((p, m + md)) * chosen(0.2)
    delay: Any = int(rng.integers(0, latest + 1)) if chosen(0.3) else 0
    if chosen(0.2):
        delay = tuple(int(each) for each in rng.integers(0, latest + 1, m))
    problem: dict[str, Any] = {
        "plant": StateSpace(A, B, C, D, 1.0),
        "horizon": P,
        "output_weight": _weight(rng, p, P if chosen(0.2) else 0),
        "input_weight": rng.uniform(0.05, 1.0),
        "delay": delay,
    }
    order = rng.permutation(m + md)
    if md:
        problem["measured"] = tuple(int(each) for each in order[:md])
    if chosen():
        problem["state_weight"] = _weight(rng, n, 0)
    if chosen():
        problem["rate_weight"] = _weight(rng, m, P if chosen(0.2) else 0)
    if chosen(0.2):
        problem["terminal_weight"] = _weight(rng, n, 0)
    if chosen(0.2):
        problem["measurement_delay"] = int(rng.integers(1, 4))
    if held:
        free = int(rng.integers(1, min(P, 10) + 1))
        if chosen(0.5):
            problem["control_horizon"] = free
        else:
            lengths = rng.integers(1, max(P // free, 1) + 1, free)
            problem["blocks"] = tuple(int(each) for each in lengths)
    _bounds(rng, problem, n, m, p, chosen)
    oldest = np.max(delay) + 4
    low, high = problem.get("input_lower", -1.0), problem.get("input_upper", 1.0)
    call: dict[str, Any] = {
        "state": rng.uniform(0.1, 1.0) * rng.standard_normal(n),
        "past_inputs": rng.uniform(0.3 * low, 0.3 * high, (oldest, m)),
    }
    if chosen(0.6):
        call["reference"] = _signal(rng, p, P, chosen)
    if chosen(0.3):
        call["input_reference"] = 0.3 * _signal(rng, m, P, chosen)
    if chosen(0.2) and ("state_weight" in problem or "terminal_weight" in problem):
        call["state_reference"] = 0.3 * _signal(rng, n, P, chosen)
    if md and chosen(0.8):
        call["disturbances"] = 0.2 * _signal(rng, md, P, chosen)
        call["past_disturbances"] = 0.2 * rng.standard_normal((4, md))
    return Instance(problem, call)


def _dynamics(rng: np.random.Generator, n: int, kind: str, P: int, decades: float) -> np.ndarray:
    """A with well-conditioned modes; unstable ones grow by some decades over the horizon, at most by 1.3 a sample."""
    radius = rng.uniform(0.2, 0.97, n)
    if kind == "integrating":
        radius[: 1 + n // 8] = 1.0
    if kind == "unstable":
        radius[: 1 + n // 10] = min(1.3, 10.0 ** (rng.uniform(0.5, decades) / P))
    A, i = np.zeros((n, n)), 0
    while i < n:
        if i + 1 < n and rng.random() < 0.5:
            turn = rng.uniform(0.0, np.pi)
            A[i : i + 2, i : i + 2] = radius[i] * np.array(
                [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]
            )
            i += 2
        else:
            A[i, i] = radius[i]
            i += 1
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return basis @ (A + 0.1 * np.triu(rng.standard_normal((n, n)), 2)) @ basis.T


def _weight(rng: np.random.Generator, size: int, samples: int) -> np.ndarray:
    root = rng.standard_normal((max(samples, 1), size, size)) / np.sqrt(size)
    found = root @ np.swapaxes(root, 1, 2) + 0.05 * np.eye(size)
    return found if samples else found[0]


def _signal(rng: np.random.Generator, size: int, P: int, chosen: Any) -> np.ndarray:
    if chosen(0.3):
        return rng.standard_normal(size)
    steps = rng.standard_normal((4, size))
    return steps[np.sort(rng.integers(0, 4, max(2, P)))]


def _bounds(rng: np.random.Generator, problem: dict[str, Any], n: int, m: int, p: int, chosen: Any) -> None:
    wide = rng.uniform(0.3, 3.0, m)
    if chosen(0.8):
        problem |= {"input_lower": -wide, "input_upper": rng.uniform(0.5, 1.0) * wide}
        if chosen(0.2):
            problem |= {"input_soft_weight": rng.uniform(10.0, 1e3, m), "input_soft_linear": rng.uniform(0.0, 2.0, m)}
    for name, size, chance in (("rate", m, 0.4), ("output", p, 0.4), ("mixed", 2, 0.3), ("state", n, 0.3)):
        if not chosen(chance):
            continue
        bound = np.where(rng.random(size) < 0.7, rng.uniform(0.3, 3.0, size), np.inf)
        problem |= {f"{name}_lower": -bound, f"{name}_upper": np.where(rng.random(size) < 0.8, bound, np.inf)}
        if name == "mixed":
            problem["mixed_states"] = rng.standard_normal((2, n)) / np.sqrt(n)
            if chosen(0.7):
                problem["mixed_inputs"] = rng.standard_normal((2, m))
        if chosen(0.7):
            of = "" if name == "state" else f"{name}_"
            problem[f"{of}soft_weight"] = rng.uniform(1.0, 100.0, size)
            problem[f"{of}soft_linear"] = rng.uniform(0.0, 3.0, size) * chosen(0.5)


class Written(NamedTuple):
    """The problem as it stands."""

    problem: cp.Problem
    inputs: cp.Variable
    states: cp.Variable
    roll: Any
    """Function of inputs that gives the states."""

    def solved(self, tolerance: float = 1e-11) -> tuple[str, np.ndarray | None]:
        """Status and inputs (P, m) by Clarabel."""
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
        with warnings.catch_warnings():  # at this tolerance Clarabel calls what is right to 1e-9 inaccurate
            warnings.simplefilter("ignore", UserWarning)
            self.problem.solve(solver=cp.CLARABEL, max_iter=500, **tight)
        return self.problem.status, self.inputs.value

    def at(self, inputs: np.ndarray) -> tuple[float, float]:
        """Cost of inputs, and their largest violation of a bound relative to the largest state or 1."""
        self.inputs.value = inputs
        self.states.value = states = self.roll()
        size = max(1.0, float(np.abs(states).max()))
        return float(self.problem.objective.value), max(
            float(np.max(each.violation())) for each in self.problem.constraints
        ) / size


def written(instance: Instance) -> Written:
    """The problem of an instance by cvxpy."""
    asked, call = instance
    plant, P = asked["plant"], asked["horizon"]
    measured = list(asked.get("measured", ()))
    moved = [j for j in range(plant.B.shape[1]) if j not in measured]
    n, p, m = plant.A.shape[0], plant.C.shape[0], len(moved)
    B, D, Bw, Dw = plant.B[:, moved], plant.D[:, moved], plant.B[:, measured], plant.D[:, measured]
    d = np.broadcast_to(asked["delay"], (m,))
    first, old = int(d.min()), asked.get("measurement_delay", 0)
    past = call["past_inputs"]
    u = cp.Variable((P, m))

    def row(name: str, size: int, at: int) -> np.ndarray:
        given = call.get(name)
        if given is None:
            return np.zeros(size)
        given = np.atleast_1d(given)
        if at < 0 and f"past_{name}" in call:
            return call[f"past_{name}"][at]
        return given if given.ndim == 1 else given[min(max(at, 0), len(given) - 1)]

    def issued(t: int, j: int) -> Any:
        return u[t, j] if t >= 0 else past[len(past) + t, j]

    def acting(t: int) -> Any:
        return cp.hstack([issued(t - d[j], j) for j in range(m)])

    # x[i] is at the sample first + i; the state before it is known.
    state = np.array(call["state"], dtype=float)
    for t in range(-old, first):
        late = np.array([past[len(past) + t - d[j], j] for j in range(m)])
        state = plant.A @ state + B @ late + Bw @ row("disturbances", len(measured), t)
    x, model, cost = cp.Variable((P + 1, n)), [], 0.0

    def square(vector: Any, weight: Any, k: int) -> Any:
        weight = np.asarray(weight, dtype=float)
        weight = weight[min(k, P - 1)] if weight.ndim == 3 else weight
        size = vector.shape[0]
        root = np.sqrt(weight) * np.eye(size) if weight.ndim == 0 else np.linalg.cholesky(weight).T
        return cp.sum_squares(root @ vector)

    model.append(x[0] == state)
    direct = D[:, d == first].any(axis=1)
    E, F = asked.get("mixed_states"), asked.get("mixed_inputs")
    groups: dict[str, list[tuple[Any, int]]] = {name: [] for name in ("state", "output", "input", "rate", "mixed")}
    for k in range(P + 1):
        t = first + k
        w, r = row("disturbances", len(measured), t), row("reference", p, t)
        away = x[k] - row("state_reference", n, t)
        if k < P:
            y = plant.C @ x[k] + D @ acting(t) + Dw @ w
            last = cp.hstack([issued(k - 1, j) for j in range(m)])
            cost += square(away, asked.get("state_weight", 0.0), k) + square(y - r, asked["output_weight"], k)
            cost += square(u[k] - row("input_reference", m, k), asked["input_weight"], k)
            cost += square(u[k] - last, asked.get("rate_weight", 0.0), k)
            model.append(x[k + 1] == plant.A @ x[k] + B @ acting(t) + Bw @ w)
            groups["input"] += [(u[k, j], j) for j in range(m)]
            groups["rate"] += [(u[k, j] - last[j], j) for j in range(m)]
            groups["output"] += [(y[i], i) for i in range(p) if direct[i] or k]
            if E is not None:
                rows = E @ x[k] + (F @ u[k] if F is not None else 0.0)
                groups["mixed"] += [(rows[i], i) for i in range(2) if F is not None or k]
        else:
            y = plant.C @ x[k] + Dw @ w
            if asked.get("terminal_weight") is None:
                cost += square(away, asked.get("state_weight", 0.0), k) + square(y - r, asked["output_weight"], k)
            else:
                cost += square(away, asked["terminal_weight"], k)
            late = [D[:, j] * issued(t - d[j], j) for j in range(m) if d[j] > first]
            groups["output"] += [(sum((each[i] for each in late), y[i]), i) for i in range(p) if not direct[i]]
            if E is not None and F is None:
                groups["mixed"] += [((E @ x[k])[i], i) for i in range(2)]
        if k:
            groups["state"] += [(x[k, i], i) for i in range(n)]
    held = asked.get("blocks", (1,) * asked.get("control_horizon", P))
    starts = set(np.cumsum([0, *held])[:-1].tolist())
    model += [u[k] == u[k - 1] for k in range(1, P) if k not in starts]
    for name, rows in groups.items():
        of = "" if name == "state" else f"{name}_"
        for side, sign in (("lower", -1.0), ("upper", 1.0)):
            bound = np.asarray(asked.get(f"{name}_{side}", sign * np.inf), dtype=float)
            there = [
                (value, i)
                for value, i in rows
                if np.isfinite(np.broadcast_to(bound, (i + 1,))[i] if bound.ndim == 0 else bound[i])
            ]
            if not there:
                continue
            rho = asked.get(f"{of}soft_weight")
            limit = np.array([bound if bound.ndim == 0 else bound[i] for _, i in there])
            out = sign * (cp.hstack([value for value, _ in there]) - limit)
            if rho is None:
                model.append(out <= 0.0)
            else:
                by = cp.pos(out)
                index = [i for _, i in there]
                cost += cp.sum(cp.multiply(rho[index], cp.square(by))) + cp.sum(
                    cp.multiply(np.broadcast_to(asked.get(f"{of}soft_linear", 0.0), rho.shape)[index], by)
                )

    def roll() -> np.ndarray:
        rows = [state]
        for k in range(P):
            w = row("disturbances", len(measured), first + k)
            rows.append(plant.A @ rows[-1] + B @ acting(first + k).value + Bw @ w)
        return np.array(rows)

    with warnings.catch_warnings():  # of so many terms
        warnings.simplefilter("ignore", UserWarning)
        return Written(cp.Problem(cp.Minimize(cost), model), u, x, roll)
