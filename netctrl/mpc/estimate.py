"""Estimator of state and disturbances from measured outputs: a steady Kalman filter with an internal model.

Source: Pannocchia, Rawlings, AIChE J. 49 (2003) 426-437, for the rank condition and the targets; Maeder, Borrelli,
Morari, Automatica 45 (2009) 2214-2222; Francis, Wonham, Automatica 12 (1976) 457-465, for ramps and periods.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, NetctrlError, checked_kind, checked_number, checked_word
from netctrl.model.io.matrix import covariance, dense, dense_matrix
from netctrl.model.statespace import StateSpace
from netctrl.mpc.problem import MpcProblem

_RANK = 1e-9  # relative singular value below which a mode counts as not observed
KINDS = ("step", "ramp")


@dataclass(frozen=True, slots=True, eq=False)
class Estimator:
    """Filter x̂ = x⁻ + M (y − C x⁻ − D u − D_w w), x⁻ = A x̂ + B u + B_w w, of x = [plant's state; disturbance]."""

    plant: StateSpace
    """Plant with the disturbance's states, in the order of the problem's plant."""
    gain: np.ndarray
    """(n + nd, p) M."""
    covariance: np.ndarray
    """(n + nd, n + nd) of the error of x⁻."""
    n_disturbances: int
    """Number of disturbance states, nd."""
    warning: str
    """Why outputs may keep an offset; empty where they can't."""

    def __post_init__(self) -> None:
        for part in (self.gain, self.covariance):
            part.setflags(write=False)

    @property
    def poles(self) -> np.ndarray:
        """Eigenvalues of the estimation error's recursion, (n + nd,)."""
        A, C = dense(self.plant.A), dense(self.plant.C)
        return np.linalg.eigvals(A - A @ self.gain @ C)


def mpc_estimator(
    problem: MpcProblem,
    *,
    disturbance: Any = "output",
    kind: str = "step",
    periods: Any = (),
    process_noise: Any = None,
    disturbance_noise: float = 1.0,
    measurement_noise: Any = 1.0,
) -> Estimator:
    """Estimator of a problem's state, with disturbances whose effect on the outputs the controller removes.

        x⁺ = A x + B u + B_d d,  y = C x + D u + C_d d,  d by its own model

    Parameters
    ----------
    problem : MpcProblem
        n states, p outputs, which are measured.
    disturbance : {"output", "input", "none"} or tuple (B_d, C_d) of array_like, shapes (n, nd), (p, nd)
        Where the nd disturbances act: on each output, on each manipulated input, or by these matrices.
    kind : {"step", "ramp"}
        Constant disturbances, or such that change at a constant rate.
    periods : sequence of float
        Periods [samples], above 2, of sinusoids that each disturbance contains as well.
    process_noise : array_like, shape (n, n), or number, optional
        Covariance of the noise on the states; by default B B', unit noise on the inputs.
    disturbance_noise : float
        Variance of the steps of the disturbance's states: the greater, the faster they are followed.
    measurement_noise : array_like, shape (p, p), or number
        Covariance of the noise on the outputs.

    Returns
    -------
    Estimator
        `warning` says where an offset may remain: fewer disturbances than outputs, or outputs that inputs can't hold.

    Raises
    ------
    InvalidValue
        A disturbance that the outputs don't distinguish from the plant's own states, where [A − λI, B_d; C, C_d] loses
        rank at λ = 1 or another mode; the message says which one, and the remedy.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.mpc.estimate import mpc_estimator
    >>> plant = netctrl.StateSpace([[0.8]], [[0.5]], [[1.0]], dt=1.0)
    >>> problem = netctrl.MpcProblem(plant=plant, horizon=10, output_weight=1.0, rate_weight=0.1)
    >>> mpc_estimator(problem).gain.round(2).tolist()
    [[0.07], [0.59]]

    In a loop whose input and output are disturbed by 0.2 and 0.3, the output reaches its reference:

    >>> from netctrl.mpc.receding import receding_controller, start_receding, step_receding
    >>> controller = receding_controller(problem, estimator=mpc_estimator(problem))
    >>> state, x = start_receding(controller), 0.0
    >>> for _ in range(100):
    ...     state = step_receding(controller, state, [x + 0.3], reference=1.0)
    ...     x = 0.8 * x + 0.5 * (state.applied[0] + 0.2)
    >>> round(float(x) + 0.3, 6)
    1.0
    """
    plant = checked_kind("problem", problem, MpcProblem).plant
    checked_word("kind", kind, KINDS)
    n, p = plant.n_states, plant.n_outputs
    A, C, B = dense(plant.A), dense(plant.C), dense(plant.B)
    Bd, Cd = _where(problem, disturbance)
    S, pick, modes = _model(kind, periods, Bd.shape[1])
    nd = len(S)
    Aa = np.block([[A, Bd @ pick], [np.zeros((nd, n)), S]])
    Ca = np.hstack([C, Cd @ pick])
    _check_observed(A, modes, Aa, Ca, disturbance)
    known = problem.delays + problem.measurement_delay > 0
    if (dense(plant.D)[:, problem.manipulated][:, ~known] != 0.0).any():
        takes = (
            "no direct effect of an input without delay on an output, which is measured before that input is decided"
        )
        raise InvalidValue("problem", "such an entry of D", f"{takes}; give the input a delay of 1")
    W = np.zeros((n + nd, n + nd))
    if process_noise is None:
        moved = B[:, problem.manipulated]
        # A little noise on each state, so that modes that no input moves are estimated too.
        W[:n, :n] = moved @ moved.T + 1e-6 * max(np.trace(moved @ moved.T) / n, np.finfo(float).tiny) * np.eye(n)
    else:
        W[:n, :n] = _noise("process_noise", process_noise, n)
    takes = "a variance above 0"
    W[n:, n:] = checked_number("disturbance_noise", disturbance_noise, takes, above=0.0) * np.eye(nd)
    V = _noise("measurement_noise", measurement_noise, p)
    from scipy.linalg import solve_discrete_are

    try:
        X = solve_discrete_are(Aa.T, Ca.T, W, V)
        M = np.linalg.solve(Ca @ X @ Ca.T + V, Ca @ X).T
    except (np.linalg.LinAlgError, ValueError):
        raise NetctrlError(
            "the filter's Riccati equation has no stabilising solution: give each output measurement noise, and each "
            "mode on the unit circle process noise"
        ) from None
    extra = np.zeros((nd, plant.n_inputs))
    return Estimator(
        StateSpace(Aa, np.vstack([B, extra]), Ca, plant.D, plant.dt), M, X, nd, _offset(problem, Bd.shape[1])
    )


def with_disturbances(problem: MpcProblem, estimator: Estimator) -> MpcProblem:
    """The problem whose plant has the disturbance's states, without weights and bounds."""
    nd, n = estimator.n_disturbances, problem.plant.n_states
    known = problem.plant.n_outputs + len(problem.measured)
    rows, drawn = problem.terminal_rows, problem.terminal_moved[:, known:]

    def wide(value: np.ndarray, fill: float) -> np.ndarray:
        return np.concatenate([value, np.full(nd, fill)])

    def among(value: np.ndarray) -> np.ndarray:
        return np.insert(value, [n] * nd, 0.0, axis=1)

    def square(value: np.ndarray) -> np.ndarray:
        return np.pad(value, [(0, 0)] * (value.ndim - 2) + [(0, nd)] * 2)

    return replace(
        problem,
        plant=estimator.plant,
        state_weight=square(problem.state_weight),
        terminal_weight=None if problem.outputs_at_end else among(among(problem.terminal_weight).T),
        terminal_rows=np.hstack([rows[:, :n], drawn if drawn.shape[1] else np.zeros((len(rows), nd)), rows[:, n:]]),
        terminal_moved=problem.terminal_moved[:, :known],
        state_lower=wide(problem.state_lower, -np.inf),
        state_upper=wide(problem.state_upper, np.inf),
        soft_weight=wide(problem.soft_weight, np.inf),
        soft_linear=wide(problem.soft_linear, 0.0),
        mixed_states=np.hstack([problem.mixed_states, np.zeros((len(problem.mixed_states), nd))]),
        state_scale=None if problem.state_scale is None else wide(problem.state_scale, 1.0),
    )


class Target(NamedTuple):
    """States and inputs with which outputs meet their reference, from the first input on; K = 1 or P + 1 samples."""

    constant: np.ndarray
    """(n + nd + m, p + m + nw) [x_s; 0; u_s] by [r; u_ref; w]."""
    states: np.ndarray
    """(K, n + nd, nd) by the estimate of d at the time of the measurement."""
    inputs: np.ndarray
    """(K, m, nd)"""
    changes: np.ndarray
    """(K, m, nd) of the inputs from one sample to the next."""


def steady_target(problem: MpcProblem, nd: int) -> Target:
    """Target of a problem of `with_disturbances`, for the outputs that it weighs; in least squares where there is none.

    [A − I, B; C, D] [x_s; u_s − u_ref] = [−B_w w − B u_ref; r − D_w w − D u_ref] for what is constant, and x = X d,
    u = U d with A X + B U + B_d = X S, C X + D U + C_d = 0 for disturbances d⁺ = S d (Francis, Wonham, 1976).
    """
    plant, n, P = problem.plant, problem.plant.n_states - nd, problem.horizon
    A, C, (B, D) = dense(plant.A), dense(plant.C), (dense(plant.B), dense(plant.D))
    moved, measured, S = problem.manipulated, list(problem.measured), A[n:, n:]
    m, p = len(moved), len(C)
    aimed = np.diag(problem.aimed.astype(float))
    C, D = aimed @ C, aimed @ D
    model = np.block([[A[:n, :n], B[:n, moved]], [C[:, :n], D[:, moved]]])
    unit = np.diag(np.repeat([1.0, 0.0], [n, p + m]))[: n + p, : n + m]
    effects = [np.vstack([B[:n, part], D[:, part]]) for part in (moved, measured)]
    right = np.hstack([np.vstack([np.zeros((n, p)), aimed]), *(-each for each in effects)])
    constant = np.linalg.pinv(model - unit, rcond=_RANK) @ right
    constant[n:, p : p + m] += np.eye(m)
    # vec of the equations of X and U, column after column.
    left = np.kron(np.eye(nd), model) - np.kron(S.T, unit)
    effect = -np.vstack([A[:n, n:], C[:, n:]]).ravel(order="F")
    found = (np.linalg.pinv(left, rcond=_RANK) @ effect).reshape(n + m, nd, order="F")
    X, U = np.vstack([found[:n], np.zeros((nd, nd))]), found[n:]
    constant = np.vstack([constant[:n], np.zeros((nd, constant.shape[1])), constant[n:]])
    if np.array_equal(S, np.eye(nd)):
        return Target(constant, X[None], U[None], 0.0 * U[None])
    ahead = [np.linalg.matrix_power(S, k) for k in range(P + 2 + int(problem.delays.max()) + problem.measurement_delay)]
    # An input acts after its own delay.
    first, late = problem.measurement_delay, problem.delays
    inputs = np.array([[U[j] @ ahead[first + late[j] + k] for j in range(m)] for k in range(P + 1)])
    before = np.array([U[j] @ np.linalg.inv(S) @ ahead[first + late[j]] for j in range(m)])
    states = np.array([X @ ahead[first + int(late.min()) + k] for k in range(P + 1)])
    return Target(constant, states, inputs, np.diff(inputs, axis=0, prepend=before[None]))


def _where(problem: MpcProblem, disturbance: Any) -> tuple[np.ndarray, np.ndarray]:
    """B_d and C_d."""
    n, p = problem.plant.n_states, problem.plant.n_outputs
    if isinstance(disturbance, (tuple, list)) and len(disturbance) == 2:
        Bd = dense_matrix("disturbance", disturbance[0], (n, None))
        return Bd, dense_matrix("disturbance", disturbance[1], (p, Bd.shape[1]))
    checked_word("disturbance", disturbance, ("output", "input", "none"))
    if disturbance == "output":
        return np.zeros((n, p)), np.eye(p)
    moved = problem.manipulated if disturbance == "input" else []
    return dense(problem.plant.B)[:, moved], dense(problem.plant.D)[:, moved]


def _model(kind: str, periods: Any, count: int) -> tuple[np.ndarray, np.ndarray, list[complex]]:
    """Model S of the states of `count` disturbances d = pick s, steps or ramps and sinusoids; and its modes."""
    takes = "numbers of samples above 2"
    if not isinstance(periods, (tuple, list)):
        raise InvalidValue("periods", periods, f"a sequence of {takes}")
    modes: list[complex] = [1.0 + 0.0j]
    blocks = [np.array([[1.0, 1.0], [0.0, 1.0]]) if kind == "ramp" else np.eye(1)]
    for each in periods:
        turn = 2.0 * np.pi / checked_number("periods", each, takes, above=2.0)
        modes.append(complex(np.cos(turn), np.sin(turn)))
        blocks.append(np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]))
    size = sum(map(len, blocks))
    one, first, at = np.zeros((size, size)), np.zeros((1, size)), 0
    for each in blocks:
        one[at : at + len(each), at : at + len(each)] = each
        first[0, at] = 1.0
        at += len(each)
    return np.kron(np.eye(count), one), np.kron(np.eye(count), first), modes if count else []


def _noise(name: str, value: Any, size: int) -> np.ndarray:
    return covariance(name, float(value) * np.eye(size) if np.ndim(value) == 0 else value, size)


def _check_observed(A: np.ndarray, modes: list[complex], Aa: np.ndarray, Ca: np.ndarray, disturbance: Any) -> None:
    """Popov-Belevitch-Hautus test of all modes that don't decay, with rows in units of their own size."""
    size, n = len(Aa), len(A)
    own = np.linalg.eigvals(A).astype(complex)
    for mode in np.concatenate([modes, own[(np.abs(own) >= 1.0 - 1e-9) & (own.imag >= 0.0)]]):
        tested = np.vstack([Aa - mode * np.eye(size), Ca])
        rows = np.linalg.norm(tested, axis=1)
        values = np.linalg.svd(tested / np.where(rows > 0.0, rows, 1.0)[:, None], compute_uv=False)
        if len(values) == size and values[-1] > _RANK * values[0]:
            continue
        seen = np.linalg.matrix_rank(np.vstack([A - mode * np.eye(n), Ca[:, :n]]), tol=1e-9 * max(1.0, np.abs(A).max()))
        said = f"λ = {mode.real:.4g}" if abs(mode.imag) < 1e-9 else f"λ = {mode:.4g}"
        rank = int((values > _RANK * values[0]).sum())
        got = f"[A − λI, B_d; C, C_d] of rank {rank} instead of {size} at {said}"
        if seen < n:
            raise InvalidValue("problem", got, "outputs that observe each mode of the plant that doesn't decay")
        if size - n > len(Ca):
            remedy = (
                f"there are more of them than the {len(Ca)} outputs tell apart; pass (B_d, C_d) with as many columns"
            )
        elif isinstance(disturbance, str) and disturbance == "output":
            remedy = "the plant integrates, so a change of an output looks like its state; try disturbance='input'"
        elif isinstance(disturbance, str):
            remedy = "a zero of the plant hides one of them; try disturbance='output'"
        else:
            remedy = "at most as many disturbances as outputs, none in a direction that a state of the plant explains"
        raise InvalidValue("disturbance", got, f"disturbances that the outputs observe: {remedy}")


def _offset(problem: MpcProblem, count: int) -> str:
    """Why outputs may keep an offset; empty where they can't."""
    plant, n, aimed = problem.plant, problem.plant.n_states, problem.aimed
    p = np.count_nonzero(aimed)
    if count < p:
        return f"{count} disturbances for {p} outputs: errors of the others remain; use one for each output"
    moved = problem.manipulated
    C, D = dense(plant.C)[aimed], dense(plant.D)[np.ix_(aimed, moved)]
    rank = np.linalg.matrix_rank(np.block([[dense(plant.A) - np.eye(n), dense(plant.B)[:, moved]], [C, D]]))
    if rank < n + p:
        return f"[A − I, B; C, D] has rank {rank} instead of {n + p}: no inputs hold all outputs at any reference"
    return ""
