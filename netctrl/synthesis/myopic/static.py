"""Myopic control: each link's rate from its own backlog and its own last rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign, checked_kind
from netctrl.model.law import MyopicGain
from netctrl.model.network_model import NetworkModel
from netctrl.synthesis.check import spectral_radius, steady_covariance
from netctrl.synthesis.localized.region import checked_weight
from netctrl.synthesis.threads import blas_threads

_FLOOR = 1e-12
"""Share of the demands' variance added at every buffer: without it the cost is flat where no disturbance enters."""

_EDGE = 7.0
"""Bound of log(s/(1 − s)), s = k/(2 + 2g), and of 2 artanh |g|: keeps links within 0.999 of their own stability limit.
"""

_WALL = 1e3
"""Stands for the logarithm of an infinite cost."""


@dataclass(frozen=True, slots=True, eq=False)
class MyopicSynthesis:
    """Locally optimal static gains.

    The problem is NP-hard, so global optimality is unknown; the coordinated cost is a lower bound.
    """

    law: MyopicGain
    cost: float
    """Σ_l E f_l² + mu_l E b_l² under the demands' deviations [(bit/s)²]."""
    cost_rate: float
    cost_queue: float
    spectral_radius: float
    gradient: float
    """Greatest derivative of the logarithm of the cost by log(s/(1 − s)), s = k/(2 + 2g), or by artanh g: 0 at a local
    optimum. Gains held at the stability limit don't count."""


def myopic(
    model: NetworkModel, A: np.ndarray, B: np.ndarray, H: np.ndarray, weight: float | np.ndarray
) -> MyopicSynthesis:
    """Static gains of u_l = k_l b_l + g_l f_l, from a descent along the exact gradient.

    With the closed loop Φ = A + B F, the steady covariance Y = Φ Y Φ' + W and the cost to go X = Φ'XΦ + Q + F'F,

        cost = tr (Q + F'F) Y,    ∂cost/∂F = 2 (F + B'XΦ) Y,

    evaluated at the entries that may differ from 0.

    Parameters
    ----------
    model : NetworkModel
    A, B, H : ndarray
        The model's matrices, dense (`netctrl.plants.linearize.network_state_space`).
    weight : float or ndarray, shape (N,)
        mu > 0.

    Raises
    ------
    InvalidValue
        A weight that isn't above 0, or matrices that aren't the model's.
    NoAdmissibleDesign
        No stable gains to start from: traffic circulates in a cycle of links and never leaves.

    Notes
    -----
    HFTraC paper, Section IV-A. Rautert and Sachs, "Computational design of optimal output feedback controllers", SIAM
    J. Optimization 7 (1997), for the gradient.
    """
    checked_kind("model", model, NetworkModel)
    mu = checked_weight(weight, model.n_links)
    N, n = model.n_links, model.n_states
    for name, M, shape in (("A", A, (n, n)), ("B", B, (n, N)), ("H", H, (n, len(model.std)))):
        if not isinstance(M, np.ndarray) or M.shape != shape:
            got = f"{type(M).__name__} of shape {getattr(M, 'shape', None)}"
            raise InvalidValue(name, got, f"a dense array of shape {shape}, of the model's state space")
    rates, backlogs = model.first_rate[:-1], model.first_backlog + np.arange(N)
    scale = float(np.sum((H * model.std) ** 2)) or 1.0
    W = (H * model.std**2) @ H.T / scale
    W[backlogs, backlogs] += _FLOOR
    Q = np.zeros((n, n))
    Q[backlogs, backlogs] = mu

    def gain(k: np.ndarray, g: np.ndarray) -> np.ndarray:
        F = np.zeros((N, n))
        F[np.arange(N), backlogs], F[np.arange(N), rates] = k, g
        return F

    def slopes(k: np.ndarray, g: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        F = gain(k, g)
        closed = A + B @ F
        if not spectral_radius(closed) < 1.0 - 1e-9:  # occurs only with a cycle of links
            return _WALL, np.zeros(N), np.zeros(N)
        Y = steady_covariance(closed, W)
        X = steady_covariance(closed.T, Q + F.T @ F)
        slope = 2.0 * (F + B.T @ X @ closed) @ Y
        value = float(np.sum((Q + F.T @ F) * Y))
        return np.log(value), slope[np.arange(N), backlogs] / value, slope[np.arange(N), rates] / value

    def cost(z: np.ndarray) -> tuple[float, np.ndarray]:
        k, g = _stable(z)
        value, by_k, by_g = slopes(k, g)
        share = k / (2.0 + 2.0 * g)
        return value, np.concatenate([by_k * k * (1.0 - share), (by_g + 2.0 * share * by_k) * (1.0 - g * g)])

    p = 0.5 * (mu + np.sqrt(mu * mu + 4.0 * mu))
    share = 0.5 * p / (1.0 + p)  # optimum of a single link, where g is 0
    first = np.concatenate([np.log(share / (1.0 - share)), np.zeros(N)])
    if cost(first)[0] >= _WALL:
        why = "traffic circulates in a cycle of links and never leaves, or a weight is close to 0"
        raise NoAdmissibleDesign(f"the descent has no stable gains to start from: {why}")
    bounds = np.repeat([[-np.inf, _EDGE], [-0.5 * _EDGE, 0.5 * _EDGE]], N, axis=0)
    # A memory as long as the number of gains gives Newton-like steps in the narrow valleys of lightly damped links.
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": min(2 * N, 100)}
    with blas_threads(n):
        found = minimize(cost, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    k, g = _stable(found.x)
    free = (found.x > bounds[:, 0]) & (found.x < bounds[:, 1])
    F = gain(k, g)
    closed = A + B @ F
    Y = steady_covariance(closed, (H * model.std**2) @ H.T)
    rate, queue = float(np.sum((F.T @ F) * Y)), float(np.sum(Q * Y))
    return MyopicSynthesis(
        law=MyopicGain(interval_s=model.interval_s, links=model.links, delay=model.delay, backlog_gain=k, rate_gain=g),
        cost=rate + queue,
        cost_rate=rate,
        cost_queue=queue,
        spectral_radius=spectral_radius(closed),
        gradient=float(np.abs(found.jac[free]).max(initial=0.0)),
    )


def _stable(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gains k and g that make each link stable by itself, for any z: |g| < 1 and 0 < k < 2 + 2 g (Jury's test)."""
    low, g = np.split(z, 2)[0], np.tanh(np.split(z, 2)[1])
    return (2.0 + 2.0 * g) / (1.0 + np.exp(-low)), g
