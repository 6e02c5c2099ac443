"""Whether a plant behind a linear model is a line: what the model's errors tell of its slope."""

from __future__ import annotations

import numpy as np

_LEVEL = 13.8  # 99.9 % quantile of chi-squared with two degrees of freedom
_LEVELS = 3
_SHARE = 0.05  # of the samples at both ends, where a cubic is least sure


def line_slopes(u: np.ndarray, y: np.ndarray, simulated: np.ndarray) -> np.ndarray | None:
    """Lowest and highest slope of each output over the line's, from a model's simulation errors.

    Errors are regressed on a cubic in the simulated output; its slope counts if square and cube are together
    significant at .1 %, with covariances that hold for coloured noise of any variance along the curve.

    Parameters
    ----------
    u, y, simulated : ndarray, shapes (T, m), (T, p), (T, p)
        Inputs, outputs, and what the linear model simulates.

    Returns
    -------
    ndarray, shape (p, 2), or None
        Ones where no curve is seen. None: each input has two levels, between which every curve is a line.

    Examples
    --------
    >>> import numpy as np
    >>> from netctrl.ident.bend import line_slopes
    >>> u = np.random.default_rng(1).uniform(0.0, 1.0, (500, 1))
    >>> y = u**2 + 0.01 * np.random.default_rng(2).standard_normal((500, 1))
    >>> line_slopes(u, y, u - 1.0 / 6.0).round(1).tolist()
    [[0.1, 1.9]]

    References
    ----------
    Ramsey, J. Royal Statistical Society B 31 (1969) 350-371 (RESET); Newey, West, Econometrica 55 (1987) 703-708.
    """
    if max(len(np.unique(each)) for each in u.T) < _LEVELS:
        return None
    found = np.ones((y.shape[1], 2))
    for row, seen, line in zip(found, y.T, simulated.T, strict=True):
        known = np.isfinite(seen)
        size = np.ptp(line[known])
        if not size > 0.0:
            continue
        seen, line = seen / size, line / size  # squares of any unit's values are floats
        z = (line[known] - line[known].mean()) / line[known].std()
        columns = np.vander(z, 4, increasing=True)
        inverse = np.linalg.pinv(columns.T @ columns)
        weights = inverse @ columns.T @ (seen - line)[known]
        scores = columns * ((seen - line)[known] - columns @ weights)[:, None]
        lags = max(round(len(z) ** (1.0 / 3.0)), 1)
        spread = scores.T @ scores
        for lag in range(1, lags + 1):
            both = scores[lag:].T @ scores[:-lag]
            spread += (1.0 - lag / (lags + 1.0)) * (both + both.T)
        bent = weights[2:]
        covariance = (inverse @ spread @ inverse)[2:, 2:]
        if bent @ np.linalg.pinv(covariance) @ bent > _LEVEL:
            at = np.linspace(*np.quantile(z, [_SHARE, 1.0 - _SHARE]), 50)
            slopes = 1.0 + (weights[1] + 2.0 * weights[2] * at + 3.0 * weights[3] * at**2) / line[known].std()
            row[:] = slopes.min(), slopes.max()
    return found
