"""A dual active-set method that starts from a given set, compiled; nothing is checked here.

Names as in `netctrl.mpc.active.dual`: `products` are G H⁻¹G', `value` is G V₀, `square` and `linear` are 2ρ and w.
"""

from __future__ import annotations

import numpy as np

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.mpc.kernels import add_product, affine, errors_of_plan, roll_out

_ROUNDS = 10  # corrections of the last active set, after which it is left


@njit(fastmath={"reassoc"}, **INLINED)
def _product(a, b, count):
    """Sum of a b over the first entries, in any order, so that it is vectorised."""
    found = 0.0
    for k in range(count):
        found += a[k] * b[k]
    return found


@njit(**INSIDE)
def _factored(root, start, at, count, active, products, square):
    """Cholesky factor of the active rows' products with diag(1/2ρ), from a row on; whether they are independent."""
    for i in range(start, count):
        for j in range(i + 1):
            part = products[at[i], at[j]]
            if i == j and abs(active[at[i]]) == 2:
                part += 1.0 / square[at[i]]
            own = part
            part -= _product(root[i], root[j], j)
            if i == j:
                if not part > 1e-11 * own:
                    return False
                root[i, i] = np.sqrt(part)
            else:
                root[i, j] = part / root[j, j]
    return True


@njit(**INSIDE)
def _solved(root, count, y):
    """Replace y by the solution of root root' x = y."""
    for i in range(count):
        y[i] = (y[i] - _product(root[i], y, i)) / root[i, i]
    for i in range(count - 1, -1, -1):
        y[i] /= root[i, i]
        for k in range(i):
            y[k] -= root[i, k] * y[i]


@njit(**INLINED)
def _beyond_bound(r, active, square, linear, low, high, value):
    """What the multipliers have to take off an active row."""
    if active[r] > 0:
        return value[r] - high[r] + (linear[r] / square[r] if active[r] == 2 else 0.0)
    return value[r] - low[r] - (linear[r] / square[r] if active[r] == -2 else 0.0)


@njit(**INSIDE)
def _optimal_on(root, at, active, products, square, linear, low, high, value, y):
    """Number of rows of `active` that hold, with multipliers y of the right sign at the optimum on these; −1 for none.

    Rows of the wrong sign are dropped, or change between meeting their bound and exceeding it.
    """
    for _ in range(_ROUNDS):
        count = 0
        for r in range(len(active)):
            if active[r] != 0:
                at[count], y[count] = r, _beyond_bound(r, active, square, linear, low, high, value)
                count += 1
                if count > len(root):
                    return -1
        if not _factored(root, 0, at, count, active, products, square):
            return -1
        _solved(root, count, y)
        changed = False
        for i in range(count):
            r = at[i]
            side = 1 if active[r] > 0 else -1
            pull, wanted = side * y[i], active[r]
            if low[r] == high[r]:
                continue
            if abs(active[r]) == 2 and pull < linear[r]:
                wanted = side if linear[r] > 0.0 else 0
            elif abs(active[r]) == 1 and pull < 0.0:
                wanted = 0
            elif abs(active[r]) == 1 and np.isfinite(square[r]) and pull > linear[r]:
                wanted = 2 * side
            if wanted != active[r]:
                active[r], changed = wanted, True
        if not changed:
            return count
    return -1


@njit(**INSIDE)
def _dual_steps(root, at, active, products, square, linear, low, high, value, after, y, change):
    """Add the most violated row after the other, with steps of the multipliers y that keep their signs; their number.

    −1 where a row can't be met, or the steps don't end.
    """
    rows, most = len(active), len(root)
    steps, budget = 0, 3 * most + 100
    count = _optimal_on(root, at, active, products, square, linear, low, high, value, y)
    if count < 0:
        for r in range(rows):
            active[r] = 0
        count = 0
    valid = count  # rows of the factor that are still right
    while steps < budget:
        for r in range(rows):
            after[r] = value[r]
        for i in range(count):
            for r in range(rows):
                after[r] -= products[at[i], r] * y[i]
        new, worst = -1, 0.0
        for r in range(rows):
            if active[r] == 0:
                by = max(after[r] - high[r], low[r] - after[r])
                if by > 1e-11 * (1.0 + abs(after[r])) and by * by > worst * products[r, r]:
                    new, worst = r, by * by / products[r, r] if products[r, r] > 0.0 else np.inf
        if new < 0:  # once more from the rows themselves, without the steps' rounding
            if not _factored(root, valid, at, count, active, products, square):
                return -1
            for i in range(count):
                y[i] = _beyond_bound(at[i], active, square, linear, low, high, value)
            _solved(root, count, y)
            return count
        side = 1.0 if after[new] > high[new] else -1.0
        soft, own = np.isfinite(square[new]), 0.0
        beyond = soft and linear[new] == 0.0
        while steps < budget:
            steps += 1
            if not _factored(root, valid, at, count, active, products, square):
                return -1
            valid = count
            for i in range(count):
                change[i] = -products[at[i], new] * side
            _solved(root, count, change)
            # How fast the violation falls with the multiplier of the new row.
            fall, left = products[new, new], side * (after[new] - (high[new] if side > 0.0 else low[new]))
            for i in range(count):
                fall += products[new, at[i]] * side * change[i]
            if beyond:
                fall += 1.0 / square[new]
                left -= (own - linear[new]) / square[new]
            step = left / fall if fall > 1e-11 * products[new, new] else np.inf
            what = -1  # the row that ends the step; −1 the new one, when it is met
            if soft and not beyond and linear[new] - own < step:
                step, what = linear[new] - own, -2
            for i in range(count):
                r = at[i]
                if low[r] == high[r]:
                    continue
                mine = 1.0 if active[r] > 0 else -1.0
                rate, at_least = mine * change[i], linear[r] if abs(active[r]) == 2 else 0.0
                if rate < 0.0 and (at_least - mine * y[i]) / rate < step:
                    step, what = max((at_least - mine * y[i]) / rate, 0.0), i
                at_most = linear[r] if abs(active[r]) == 1 and np.isfinite(square[r]) else np.inf
                if rate > 0.0 and (at_most - mine * y[i]) / rate < step:
                    step, what = max((at_most - mine * y[i]) / rate, 0.0), i
            if not np.isfinite(step):
                return -1
            own += step
            for i in range(count):
                y[i] += step * change[i]
            moved = products[new, new] * side
            for i in range(count):
                moved += products[new, at[i]] * change[i]
            after[new] -= step * moved
            if what == -1:
                if count == most:
                    return -1
                at[count], y[count] = new, side * own
                active[new] = (2 if beyond else 1) * (1 if side > 0.0 else -1)
                count += 1
                break
            if what == -2:
                beyond = True
                continue
            r, valid = at[what], what
            mine = 1 if active[r] > 0 else -1
            if abs(active[r]) == 1 and mine * change[what] > 0.0:
                active[r] = 2 * mine
            elif abs(active[r]) == 2 and linear[r] > 0.0:
                active[r] = mine
            else:
                active[r] = 0
                count -= 1
                for i in range(what, count):
                    at[i], y[i] = at[i + 1], y[i + 1]
    return -1


@njit(cache=True, error_model="numpy")
def certified(
    signals: np.ndarray, into: tuple, given: np.ndarray, active: np.ndarray, root: np.ndarray, data: tuple,
    kind: np.ndarray, A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray, N: np.ndarray, E: np.ndarray,
    F: np.ndarray, L: tuple, free: np.ndarray, hold: np.ndarray, rows: tuple, case: tuple, rho: np.ndarray,
    w: np.ndarray, state_of: np.ndarray, low: np.ndarray, high: np.ndarray, K: np.ndarray, price: np.ndarray,
    gains: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray]:  # fmt: skip
    """Largest error of the plan at the signals, infinite where the active set did not settle, its inputs, and θ.

    `given` are the references and disturbances of which `case` has the terms; both are changed.
    """
    start, column, entry = into
    theta = np.zeros(len(start) - 1)
    for i in range(len(theta)):
        for k in range(start[i], start[i + 1]):
            theta[i] += entry[k] * signals[column[k]]
    P, m, q = K.shape
    c, linear_z, linear_u, lower, upper = case
    if np.any(given != theta[q:]):
        given[:] = theta[q:]
        c[:], linear_z[:], linear_u[:], lower[:], upper[:] = affine(theta, L[0], kind, *L[1:], *rows)
    settles, inputs, z, nu, mu = settled(theta, active, root, *data, kind, A, B, c, gains, lower)
    if not settles:
        return np.inf, inputs, theta
    errors = errors_of_plan(
        kind, A, B, Q, R, N, E, F, c, linear_z, linear_u, lower, upper, rho, w, state_of, low, high, K, price, price[0],
        inputs, z, nu, mu,
    )  # fmt: skip
    worst = max(errors) if np.isfinite(errors[2]) else np.inf
    for k in range(P):
        if not free[k]:
            add_product(inputs[k], hold, z[k])
    for j in range(m):  # up to rounding it is within its bounds
        inputs[0, j] = min(max(inputs[0, j], low[0, j]), high[0, j])
    return worst, inputs, theta


@njit(cache=True, error_model="numpy")
def settled(
    theta: np.ndarray, active: np.ndarray, root: np.ndarray, free: np.ndarray, without: np.ndarray,
    products: np.ndarray, back: np.ndarray, low: np.ndarray, high: np.ndarray, square: np.ndarray, linear: np.ndarray,
    owner: np.ndarray, unit: np.ndarray, stages: np.ndarray, scale: np.ndarray, kind: np.ndarray, A: np.ndarray,
    B: np.ndarray, c: np.ndarray, gains: np.ndarray, bounds: np.ndarray,
) -> tuple[bool, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Plan with the multipliers (P, m) and (P + 1, R) of `netctrl.mpc.dual`, and whether the active set settled.

    `active` (rows,) and `root` are changed: ± 1 for a row that meets its bound, ± 2 for one beyond a soft bound.
    """
    P, m, rows = gains.shape[0], gains.shape[1], len(active)
    value = np.zeros(rows)
    add_product(value, without, theta)
    at, y = np.empty(rows, np.int64), np.empty(rows)
    nu, mu = np.zeros((P, m)), np.zeros(bounds.shape)
    V = np.zeros((P, m))
    after, change = np.empty(rows), np.empty(rows)
    count = _dual_steps(root, at, active, products, square, linear, low, high, value, after, y, change)
    settles = count >= 0
    if settles:
        flat = np.zeros(len(free))
        add_product(flat, free, theta)
        for i in range(count):
            for j in range(len(free)):
                flat[j] -= back[at[i], j] * y[i]
            to = owner[at[i]]
            if to < P * m:
                nu[to // m, to % m] = y[i] * unit[at[i]]
            else:
                mu[(to - P * m) // bounds.shape[1], (to - P * m) % bounds.shape[1]] = y[i] * unit[at[i]]
        for i in range(len(stages)):
            for j in range(m):
                V[stages[i], j] = flat[i * m + j] * scale[j]
    if not settles:
        active[:] = 0
    inputs, z = roll_out(kind, A, B, c, gains, theta, V)
    return settles, inputs, z, nu, mu
