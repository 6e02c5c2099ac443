"""Regularised impulse responses: closed forms of the posterior and the likelihood, coverage, fewer errors than FIR."""

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.signal import lfilter
from scipy.stats import multivariate_normal

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.ident.families.impulse import identify_impulse


def trace_of(responses, noise: float, samples: int, seed: int) -> netctrl.SignalTrace:
    """White inputs through impulse responses (m, L), with white noise."""
    random = np.random.default_rng(seed)
    u = 3.0 + 2.0 * random.standard_normal((samples, len(responses)))
    y = sum(np.convolve(each, g)[:samples] for each, g in zip(u.T, responses, strict=True))
    return netctrl.SignalTrace(
        interval_s=0.5, input_values=u, output_values=7.0 + y + noise * random.normal(size=samples)
    )


def regression(trace, L):
    """Centred lagged inputs and the output, as in a regression with a constant."""
    u, y = trace.input_values, trace.output_values[:, 0]
    columns = [u[L - 1 - lag : len(u) - lag, j] for j in range(u.shape[1]) for lag in range(L)]
    X = np.column_stack(columns)
    return X - X.mean(axis=0), y[L - 1 :] - y[L - 1 :].mean()


def prior(sizes, decays, L):
    at = np.arange(1, L + 1)
    return block_diag(*[c * d ** np.maximum.outer(at, at) for c, d in zip(sizes, decays, strict=True)])


def test_the_posterior_and_the_likelihood_are_those_of_the_dense_formulas():
    L, responses = 12, np.array([0.7 ** np.arange(12), -0.3 * 0.5 ** np.arange(12)])
    trace = trace_of(responses, 0.5, 150, 1)
    fit = identify_impulse(trace, length=L)
    X, y = regression(trace, L)
    K, s2 = prior(fit.size[0], fit.decay[0], L), fit.noise[0] ** 2
    gain = K @ X.T @ np.linalg.inv(X @ K @ X.T + s2 * np.eye(len(y)))
    assert fit.response[:, 0].T.ravel() == pytest.approx(gain @ y, abs=1e-8)
    assert fit.deviation[:, 0].T.ravel() == pytest.approx(np.sqrt(np.diag(K - gain @ X @ K)), rel=1e-6)

    def likelihood(sizes, decays, variance):
        # centred outputs have one degree of freedom less: their covariance's null vector is left out
        basis = np.linalg.svd(np.ones((1, len(y))))[2][1:]
        covariance = basis @ (X @ prior(sizes, decays, L) @ X.T + variance * np.eye(len(y))) @ basis.T
        return multivariate_normal(cov=covariance).logpdf(basis @ y)

    best = likelihood(fit.size[0], fit.decay[0], s2)
    for k in range(2):
        for factor in (0.9, 1.1):
            moved = np.where(np.arange(2) == k, factor, 1.0)
            assert likelihood(fit.size[0] * moved, fit.decay[0], s2) < best
            assert likelihood(fit.size[0], fit.decay[0] ** moved, s2) < best
    assert likelihood(fit.size[0], fit.decay[0], 1.1 * s2) < best > likelihood(fit.size[0], fit.decay[0], 0.9 * s2)


def test_it_errs_less_than_least_squares_and_its_bands_hold_the_truth():
    ratios, inside = [], []
    for seed in range(30):
        random = np.random.default_rng(seed)
        poles = random.uniform(0.3, 0.9, 2)
        g = lfilter(random.normal(size=2), np.poly(poles), np.eye(1, 40)[0])
        trace = trace_of([g], 2.0 * np.linalg.norm(g), 200, seed)
        fit = identify_impulse(trace, length=40)
        X, y = regression(trace, 40)
        plain = np.linalg.lstsq(X, y, rcond=None)[0]
        error = fit.response[:, 0, 0] - g
        ratios.append(np.linalg.norm(error) / np.linalg.norm(plain - g))
        inside.append(np.abs(error) < 1.96 * fit.deviation[:, 0, 0])
    assert np.median(ratios) < 0.5
    assert 0.9 < np.mean(inside) <= 1.0


def test_rows_with_missing_outputs_and_across_segments_are_not_used():
    g = [0.8 ** np.arange(10)]
    one, other = trace_of(g, 0.1, 80, 1), trace_of(g, 0.1, 80, 2)
    u, y = (np.vstack([getattr(each, name) for each in (one, other)]) for name in ("input_values", "output_values"))
    y[85] = y[15] = np.nan
    both = netctrl.SignalTrace(interval_s=0.5, input_values=u, output_values=y, starts=(0, 80))
    fit = identify_impulse(both, length=10)
    assert fit.response[:, 0, 0] == pytest.approx(g[0], abs=0.03)
    assert fit.noise[0] == pytest.approx(0.1, rel=0.2)


@pytest.mark.parametrize("length", [0, 80, 3000])
def test_lengths_that_leave_nothing_are_named(length):
    with pytest.raises(InvalidValue, match="length"):
        identify_impulse(trace_of([np.ones(3)], 0.1, 80, 1), length=length)


def test_units_are_kept():
    trace = trace_of([0.6 ** np.arange(8)], 0.1, 100, 3)
    large = netctrl.SignalTrace(
        interval_s=0.5, input_values=1e6 * trace.input_values, output_values=1e-9 * trace.output_values
    )
    fit, other = (identify_impulse(each, length=8) for each in (trace, large))
    assert other.response == pytest.approx(1e-15 * fit.response, rel=1e-4, abs=1e-19)
    assert other.noise == pytest.approx(1e-9 * fit.noise, rel=1e-5)
