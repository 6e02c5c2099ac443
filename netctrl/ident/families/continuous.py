"""From discrete to continuous time, behind a zero-order hold."""

from __future__ import annotations

import warnings

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.model.io.matrix import dense
from netctrl.model.statespace import StateSpace

_SMALL = 1e-10  # against the largest of its kind: no response, no growth of a direction
_LEFT = 1e-6  # of the largest response to an input: rounding of what a delay's own states leave
_TAKES = (
    "a model whose real poles are above 0, but for delays that all outputs share: no continuous one gives others behind"
    " a hold; identify with a lower order, or sample faster"
)
_CLOSE = 1e-8  # largest relative error of the matrix whose logarithm was taken


def to_continuous(plant: StateSpace) -> tuple[StateSpace, np.ndarray]:
    """Continuous-time model that gives a discrete one's samples when its inputs are held between samples.

        exp([[Ac, Bc], [0, 0]] dt) = [[A, B], [0, I]],  C and D as they are

    Whole samples by which all outputs respond late to an input have no logarithm: they are taken off the states and
    told as a delay. Without them the states are those of the discrete model.

    Parameters
    ----------
    plant : StateSpace
        Discrete, as the `state_space` of an identified model. Its poles are taken for those of oscillations slower than
        half the sampling rate.

    Returns
    -------
    plant : StateSpace
        In continuous time, `dt` 0.
    delays_s : ndarray, shape (m,)
        Delays of the inputs [s].

    Raises
    ------
    InvalidValue
        A continuous model, a real pole at or left of 0, or a logarithm that rounding spoils.

    Examples
    --------
    A lag of 1 s, 0.2 s late, sampled every 0.1 s:

    >>> import netctrl, numpy as np
    >>> from netctrl.ident.families.continuous import to_continuous
    >>> a = np.exp(-0.1)
    >>> sampled = netctrl.StateSpace([[a, 1 - a, 0], [0, 0, 1], [0, 0, 0]], [[0], [0], [1]], [[1, 0, 0]], dt=0.1)
    >>> found, delays_s = to_continuous(sampled)
    >>> found.A.round(6).tolist(), delays_s.tolist()
    ([[-1.0]], [0.2])

    References
    ----------
    Franklin, Powell and Workman, Digital Control of Dynamic Systems, 3rd ed., section 4.3.
    """
    if not isinstance(plant, StateSpace) or plant.dt == 0.0:
        got = f"dt = {plant.dt:g}" if isinstance(plant, StateSpace) else type(plant).__name__
        raise InvalidValue("plant", got, "a discrete StateSpace, whose dt is above 0, as a model's state_space")
    A, B, C, D = map(dense, (plant.A, plant.B, plant.C, plant.D))
    late = np.zeros(plant.n_inputs, int)
    if _null(A).shape[1]:
        late, (A, B, C, D) = _without_delays(A, B, C, D)
    poles = np.linalg.eigvals(A)
    wrong = poles[(poles.real < 0.0) & (np.abs(poles.imag) <= _SMALL * np.abs(poles))]
    if len(wrong):
        raise InvalidValue("plant", f"a pole at {wrong[0].real:.4g}", _TAKES)
    return StateSpace(*_logarithm(A, B, plant.dt), C, D), late * plant.dt


def _null(A: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the states that A takes to 0."""
    _, sizes, right = np.linalg.svd(A)
    return right[sizes <= _SMALL * max(sizes.max(initial=0.0), 1.0)].T


def _without_delays(A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, tuple]:
    """Delays [samples] and the matrices of z^{d_j} G_j(z), without the states that A takes to 0 in some samples.

    The eigenvalues of d such states are known to the d-th root of rounding only: they are found by null spaces, one
    sample after the other (Kublanovskaya's staircase), and uncoupled from the others by a Sylvester equation.
    """
    from scipy.linalg import null_space, solve_sylvester

    responses = np.array([D, *(C @ np.linalg.matrix_power(A, k) @ B for k in range(len(A)))])
    units = _size(responses, (0, 1))
    outputs = _size(responses / units, (0, 2))
    A, B, C = _balanced(A, B / units, C / outputs[:, None])
    responses = responses / units / outputs[:, None]
    Q, rest = np.zeros((len(A), 0)), np.eye(len(A))
    while (lost := _null(rest.T @ A @ rest)).shape[1]:
        Q = np.hstack([Q, rest @ lost])
        rest = rest @ null_space(lost.T)
    kept, gone = rest.T @ A @ rest, Q.T @ A @ Q
    X = solve_sylvester(gone, -kept, -Q.T @ A @ rest)
    seen, chain = rest.T @ B, Q.T @ B - X @ rest.T @ B
    sizes = np.abs(responses).max(axis=1)
    first = (sizes > _SMALL * sizes.max(axis=0)).argmax(axis=0)
    # A held input moves a state first and the output one sample later: that sample is no delay, unless the output has
    # no state of its own.
    for late in (np.maximum(first - 1, 0), first):
        moved = np.stack([np.linalg.matrix_power(gone, d) @ chain[:, j] for j, d in enumerate(late)], axis=1)
        left = np.array([np.abs(C @ Q @ np.linalg.matrix_power(gone, k) @ moved).max(axis=0) for k in range(len(gone))])
        if (left <= _LEFT * sizes.max(axis=0)).all():
            ahead = [np.linalg.matrix_power(kept, d) @ seen[:, j] for j, d in enumerate(late)]
            direct = np.stack([responses[d][:, j] for j, d in enumerate(late)], axis=1)
            return late, (
                kept,
                np.stack(ahead, axis=1) * units,
                outputs[:, None] * (C @ (rest + Q @ X)),
                direct * units * outputs[:, None],
            )
    raise InvalidValue("plant", "a pole at 0", _TAKES)


def _size(responses: np.ndarray, axes: tuple[int, int]) -> np.ndarray:
    largest = np.abs(responses).max(axis=axes)
    return np.where(largest > 0.0, largest, 1.0)


def _balanced(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States of comparable size between inputs and outputs that are: those of a chain are in its input's unit."""
    from scipy.linalg import matrix_balance

    to, of = np.abs(B).max(axis=1), np.abs(C).max(axis=0)
    scale = matrix_balance(np.block([[A, to[:, None]], [of, np.zeros(1)]]), permute=False, separate=True)[1][0]
    scale = scale[:-1] / scale[-1]
    return A * scale / scale[:, None], B / scale[:, None], C * scale


def _logarithm(A: np.ndarray, B: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Ac and Bc."""
    from scipy.linalg import expm, logm

    n, m = B.shape
    unit = np.linalg.norm(B, axis=0)  # inputs in bit/s would drown the states in the logarithm's error
    unit[unit == 0.0] = 1.0
    held = np.block([[A, B / unit], [np.zeros((m, n)), np.eye(m)]])
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of inaccuracy, which is measured
        log = np.real(logm(held))
        back = expm(log)
    if not np.linalg.norm(back - held) <= _CLOSE * np.linalg.norm(held):
        raise InvalidValue("plant", "matrices whose logarithm rounding spoils", "a model of lower order")
    return log[:n, :n] / dt, log[:n, n:] * unit / dt
