"""Identification: exact poles without noise, honest bars with it, SIPPY as a peer, what is refused."""

from __future__ import annotations

import html
import io
import json
import re
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netctrl.__main__
from netctrl import InvalidValue, NetctrlError, SignalTrace, gbn, identify, multisine
from netctrl.cli.identify import main
from netctrl.core.errors import MissingLibrary
from netctrl.ident.data.signals import excitation
from netctrl.ident.descent.kernels import simulate
from netctrl.ident.subspace.lq_reduction import lq_reduce
from netctrl.ident.subspace.methods import METHODS, noise_edge, shift, subspace
from netctrl.ident.validate import variance_accounted_for
from netctrl.model.fit import IdentificationResult
from netctrl.model.identified import read_model

TOLERANCE = {"noise-free": 1e-8, "blocks": 1e-10, "scale": 1e-6, "same": 1e-9}
SIPPYS = ("sippy-n4sid", "sippy-moesp", "sippy-cva", "sippy-parsim-k")
SEEDS = 20

# The CONNET paper's model, as printed: R in Mbit/s to delay and jitter in ms, every second.
CONNET = {
    "A": np.array([[0.7978, 0.6260], [0.0790, 0.2525]]),
    "B": np.array([[-0.0243], [0.0275]]),
    "C": np.array([[-0.5002, 0.3134], [-0.1988, -0.1957]]),
    "D": np.array([[0.0108], [0.0250]]),
}
CONNET_G = np.array([[-0.2041, -0.3298], [0.2015, -1.2981]])
CONNET_V = np.array([[2.8306, 0.0694], [0.0694, 0.0747]])


def connet(seed: int, noise: float, samples: int = 10_000) -> tuple[SignalTrace, np.ndarray]:
    """The printed model under GBN between 0 and 95 Mbit/s, and its outputs without noise."""
    random = np.random.default_rng(seed)
    u = gbn(samples, [0.0, 95.0], random)
    e = noise * random.standard_normal((samples, 2)) @ np.linalg.cholesky(CONNET_V).T
    A, B, C, D = CONNET.values()
    clean = simulate(A, B, C, D, np.zeros(2), u)
    stochastic = simulate(A, CONNET_G, C, np.eye(2), np.zeros(2), e)
    values = {"inputs": ("R",), "outputs": ("delay", "jitter")}
    return SignalTrace(interval_s=1.0, input_values=u, output_values=clean + stochastic, **values), clean


FOUR = (0.9, 0.6, 0.7 * np.exp(1j))


def plant(seed: int, poles=FOUR, m: int = 2, p: int = 2):
    """A, B, C, D with real or complex poles in general coordinates."""
    random = np.random.default_rng(seed)
    parts = [np.array([[z.real, z.imag], [-z.imag, z.real]]) if np.imag(z) else np.array([[np.real(z)]]) for z in poles]
    n = sum(len(part) for part in parts)
    A, at = np.zeros((n, n)), 0
    for part in parts:
        A[at : at + len(part), at : at + len(part)] = part
        at += len(part)
    T = np.linalg.qr(random.standard_normal((n, n)))[0]
    B, C, D = (random.standard_normal(shape) for shape in ((n, m), (p, n), (p, m)))
    return T @ A @ T.T, T @ B, C @ T.T, D


def traced(model, samples: int, noise: float, seed: int = 0, starts: tuple[int, ...] = (0,), initial: float = 0.0):
    """A trace of a model under GBN, each segment from an initial state of its own."""
    A, B, C, D = model
    random = np.random.default_rng(seed)
    u = gbn(samples, np.tile([-1.0, 1.0], (B.shape[1], 1)), random, hold=4.0)
    edges = [*starts, samples]
    parts = [simulate(A, B, C, D, initial * random.standard_normal(len(A)), u[a:b]) for a, b in pairwise(edges)]
    y = np.vstack(parts)
    y = y + noise * y.std(axis=0) * random.standard_normal(y.shape)
    return SignalTrace(interval_s=0.1, input_values=u + 3.0, output_values=y + 5.0, starts=starts)


def ordered(poles: np.ndarray) -> np.ndarray:
    return np.sort_complex(np.asarray(poles, dtype=complex))


def markov(model, count: int = 10) -> np.ndarray:
    """D, CB, CAB, ...: what doesn't depend on coordinates."""
    A, B, C, D = model
    found, row = [D], C
    for _ in range(count):
        found.append(row @ B)
        row = row @ A
    return np.array(found)


def matrices(result: IdentificationResult):
    return result.model.A, result.model.B, result.model.C, result.model.D


# Closed forms


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "poles", [(0.9, 0.6, 0.7 * np.exp(1j)), (0.99 * np.exp(0.3j), 0.2), (0.5,)], ids=["4", "damped", "1"]
)
def test_without_noise_poles_and_responses_are_exact(method, poles) -> None:
    model = plant(1, poles)
    found = identify(traced(model, 600, 0.0, initial=1.0), order=len(model[0]), method=method, horizon=8)
    assert ordered(found.poles) == pytest.approx(ordered(np.linalg.eigvals(model[0])), abs=TOLERANCE["noise-free"])
    assert markov(matrices(found)) == pytest.approx(markov(model), abs=1e2 * TOLERANCE["noise-free"])
    assert found.how.vaf == pytest.approx([100.0, 100.0])
    assert (found.how.warnings, found.how.stabilised) == ((), False)


def test_without_noise_the_order_is_exact() -> None:
    model = plant(2, (0.9, 0.5, 0.7 * np.exp(1j)))
    assert identify(traced(model, 800, 0.0), horizon=8).how.order == 4
    found = identify(traced(model, 800, 0.0), horizon=8, method="cva")
    assert found.how.order == 4
    assert found.order is not None and found.order.by_gap == 4


def test_without_feedthrough_D_is_zero() -> None:
    A, B, C, D = plant(3)
    found = identify(traced((A, B, C, 0.0 * D), 600, 0.0), order=4, feedthrough=False, horizon=8)
    assert not found.model.D.any()
    assert markov(matrices(found)) == pytest.approx(markov((A, B, C, 0.0 * D)), abs=1e2 * TOLERANCE["noise-free"])


def test_offsets_are_those_of_the_plant() -> None:
    """The model around its offsets says what the plant does anywhere: y0 = G(1) (u0 - 3) + 5."""
    A, B, C, D = plant(4)
    model = identify(traced((A, B, C, D), 600, 0.0, initial=3.0), order=4, horizon=8).model
    gain = C @ np.linalg.solve(np.eye(4) - A, B) + D
    assert model.output_offset == pytest.approx(gain @ (model.input_offset - 3.0) + 5.0, abs=1e-6)


# Honest bars: of outputs without noise, as the noise of the paper is 70 % of the delay's variance


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("noise", "pole_error", "vaf"), [(0.1, 0.005, 99.9), (1.0, 0.03, 99.8)])
def test_connet_model_as_printed_is_found_again(method, noise, pole_error, vaf) -> None:
    errors, accounted = [], []
    for seed in range(SEEDS):
        trace, clean = connet(seed, noise)
        found = identify(trace, order=2, method=method, horizon=10, refine=False)
        errors.append(np.abs(ordered(found.poles) - ordered(np.linalg.eigvals(CONNET["A"]))).max())
        accounted.append(variance_accounted_for(clean[100:], found.simulated[100:]).min())
    assert np.median(errors) <= pole_error
    assert np.quantile(errors, 0.9) <= pole_error if noise < 1.0 else np.max(errors) < 3.0 * pole_error
    assert np.min(accounted) >= vaf


def test_noise_of_the_printed_model_is_found_again() -> None:
    model = identify(connet(1, 1.0, 40_000)[0], order=2, method="cva", horizon=10, refine=False).model
    assert model.K is not None and model.innovation_covariance is not None
    assert model.innovation_covariance == pytest.approx(CONNET_V, rel=0.05, abs=0.02)
    found = np.array([model.C @ np.linalg.matrix_power(model.A, k) @ model.K for k in range(4)])
    printed = np.array([CONNET["C"] @ np.linalg.matrix_power(CONNET["A"], k) @ CONNET_G for k in range(4)])
    size = np.sqrt(np.diag(CONNET_V))  # in parts of what they do to the outputs
    assert np.abs((found - printed) * size / size[:, None]).max() < 0.06


def test_a_ramp_is_called_too_poor_or_weak() -> None:
    ramp = np.repeat(np.linspace(0.0, 95.0, 20), 50)[:, None]
    A, B, C, D = CONNET.values()
    y = simulate(A, B, C, D, np.zeros(2), ramp)
    y = y + 0.01 * np.random.default_rng(0).standard_normal(y.shape)
    found = identify(SignalTrace(interval_s=1.0, input_values=ramp, output_values=y), order=2)
    assert any("excite" in warning and "gbn" in warning.lower() for warning in found.how.warnings)


# Peers


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "damped", "stiff", "coloured", "scales", "few states"])
def test_the_best_of_ours_is_as_good_as_the_best_of_sippys(kind) -> None:
    pytest.importorskip("sippy_unipi", reason="SIPPY is not installed; remedy: pip install sippy-unipi")
    poles = {"damped": (0.99 * np.exp(0.3j), 0.97 * np.exp(1.2j)), "stiff": (0.995, 0.9, 0.3, -0.2)}
    random = np.random.default_rng(5)
    trace = traced(plant(5, poles.get(kind, (0.95, 0.6, 0.7 * np.exp(1j)))), 1000, 0.2, seed=1)
    u, y, n = trace.input_values.copy(), trace.output_values.copy(), 2 if kind == "few states" else 4
    if kind == "coloured":
        y += np.cumsum(random.standard_normal(y.shape), axis=0) * 0.02 * y.std(axis=0)
    if kind == "scales":
        u, y = u * [1e6, 1e-3], y * [1e-6, 1e5]
    trace = SignalTrace(interval_s=1.0, input_values=u, output_values=y)
    ours = [identify(trace, order=n, method=method, horizon=10).how.vaf.mean() for method in METHODS]
    theirs = []
    for method in SIPPYS[:3]:
        for feedthrough in (True, False):
            found = identify(trace, order=n, method=method, horizon=10, feedthrough=feedthrough)
            theirs.append(found.how.vaf.mean() if np.abs(found.poles).max() < 1.0 else -np.inf)
    assert max(ours) >= max(theirs) - 1e-6


@pytest.mark.parametrize("method", SIPPYS)
def test_sippy_is_guarded(method, capfd) -> None:
    pytest.importorskip("sippy_unipi", reason="SIPPY is not installed; remedy: pip install sippy-unipi")
    model = plant(6, (0.8, 0.5))
    trace = traced(model, 1500, 0.05)
    found = identify(trace, order=np.int64(2), method=method, horizon=8)
    assert capfd.readouterr() == ("", "")
    assert found.how.vaf.min() > 99.0
    assert found.how.order == 2
    assert found.predicted_vaf is not None and (found.predicted_vaf >= found.how.vaf - 1e-6).all()
    assert ordered(found.poles) == pytest.approx([0.5, 0.8], abs=0.03)
    with pytest.raises(InvalidValue, match="segments: got 2, takes one segment for SIPPY's methods"):
        identify(traced(model, 1500, 0.05, starts=(0, 700)), order=2, method=method, horizon=8)


def test_an_end_of_the_process_within_sippy_is_an_error(monkeypatch, capfd) -> None:
    sippy = pytest.importorskip("sippy_unipi", reason="SIPPY is not installed; remedy: pip install sippy-unipi")

    def leaves(*_, **__):
        sys.stdout.write("noise")
        sys.exit("Error! No method")

    monkeypatch.setattr(sippy, "system_identification", leaves)
    with pytest.raises(NetctrlError, match="sippy-cva failed inside SIPPY: Error! No method noise; try n4sid"):
        identify(traced(plant(6), 500, 0.1), order=2, method="sippy-cva", horizon=5)
    assert capfd.readouterr() == ("", "")


def test_without_sippy_the_remedy_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "sippy_unipi", None)
    with pytest.raises(MissingLibrary, match="pip install sippy-unipi"):
        identify(traced(plant(6), 500, 0.1), order=2, method="sippy-cva", horizon=5)


# Laws


def test_segments_are_one_trace_where_nothing_crosses_the_boundary() -> None:
    """Columns of the Hankel matrix of two segments are those of the whole but for the ones across."""
    trace = traced(plant(7), 900, 0.1)
    u, y = trace.input_values - 3.0, trace.output_values - 5.0
    i, cut = 6, 400
    whole, parts = lq_reduce([(u, y)], i), lq_reduce([(u[:cut], y[:cut]), (u[cut:], y[cut:])], i)
    z = np.hstack([u, y])
    across = np.array([[1.0, *z[k : k + 2 * i].reshape(-1)] for k in range(cut - 2 * i + 1, cut)])
    gram, without = (sum(T.T @ T for T in each.triangles) for each in (whole, parts))
    assert parts.columns.sum() == whole.columns.sum() - (2 * i - 1)
    assert gram - across.T @ across == pytest.approx(without, rel=TOLERANCE["same"], abs=TOLERANCE["same"] * gram.max())


def test_segments_with_states_of_their_own_are_exact_without_noise() -> None:
    model = plant(8)
    found = identify(traced(model, 900, 0.0, starts=(0, 250, 600), initial=5.0), order=4, horizon=8)
    assert ordered(found.poles) == pytest.approx(ordered(np.linalg.eigvals(model[0])), abs=TOLERANCE["noise-free"])
    assert found.how.segments == 3
    assert found.how.vaf == pytest.approx([100.0, 100.0])


@pytest.mark.parametrize("samples", [700, 6000], ids=["by QR", "by moments"])
def test_the_size_of_blocks_changes_nothing(samples) -> None:
    trace = traced(plant(9), samples, 0.1)
    scaled = [((u - 3.0), (y - 5.0) / y.std(axis=0)) for u, y in trace.segments()]
    by_block = [lq_reduce(scaled, 8, block=block) for block in (100, 257, 10**6)]
    poles = [ordered(np.linalg.eigvals(shift(subspace(data, "n4sid").gamma(4), 2))) for data in by_block]
    assert poles[1] == pytest.approx(poles[0], abs=TOLERANCE["blocks"])
    assert poles[2] == pytest.approx(poles[0], abs=TOLERANCE["blocks"])


def test_moments_and_qr_agree(monkeypatch) -> None:
    trace = traced(plant(9), 6000, 0.1)
    scaled = [((u - 3.0), (y - 5.0) / y.std(axis=0)) for u, y in trace.segments()]
    by_moments = lq_reduce(scaled, 8)
    monkeypatch.setattr("netctrl.ident.subspace.lq_reduction._APART", 2.0)
    by_qr = lq_reduce(scaled, 8)
    assert np.abs(by_moments.factor) == pytest.approx(np.abs(by_qr.factor), abs=TOLERANCE["blocks"])


EXPONENTS = st.floats(-9.0, 9.0)


@given(EXPONENTS, EXPONENTS, EXPONENTS, st.sampled_from(METHODS))
@settings(max_examples=12)
def test_scales_of_signals_scale_the_model_alone(a, b, c, method) -> None:
    trace = traced(plant(10), 500, 0.1)
    su, sy = np.array([10.0**a, 1.0]), np.array([10.0**b, 10.0**c])
    scaled = SignalTrace(interval_s=0.1, input_values=trace.input_values * su, output_values=trace.output_values * sy)
    one, other = (identify(each, order=4, method=method, horizon=6, refine=False) for each in (trace, scaled))
    assert ordered(other.poles) == pytest.approx(ordered(one.poles), abs=TOLERANCE["scale"])
    assert markov(matrices(other)) / sy[:, None] * su == pytest.approx(markov(matrices(one)), abs=TOLERANCE["scale"])
    assert other.how.vaf == pytest.approx(one.how.vaf, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_model_is_stable_or_says_so(method) -> None:
    """A short trace with a trend: the shift of Γ alone is unstable on some of these."""
    acted = 0
    for seed in range(8):
        random = np.random.default_rng(seed)
        u = gbn(150, [-1.0, 1.0], random, hold=3.0)
        y = np.cumsum(0.2 * u + 0.3 * random.standard_normal((150, 1)), axis=0) + 0.05 * np.arange(150)[:, None]
        found = identify(
            SignalTrace(interval_s=1.0, input_values=u, output_values=y), order=3, method=method, horizon=6
        )
        assert np.abs(found.poles).max() < 1.0
        assert found.how.stabilised == any("stability guard acted" in each for each in found.how.warnings)
        acted += found.how.stabilised
    assert acted > 0


def test_refinement_never_fits_worse() -> None:
    trace = traced(plant(11, (0.98 * np.exp(0.2j), 0.9 * np.exp(0.8j), 0.95)), 1500, 0.3)
    rough, fine = (identify(trace, order=3, method="cva", refine=refine, horizon=10).how for refine in (False, True))
    assert fine.vaf.mean() >= rough.vaf.mean()
    assert (fine.refined, rough.refined) == (True, False)


def test_caller_keeps_its_arrays_and_nothing_is_printed(capfd) -> None:
    u = gbn(800, [0.0, 1.0], np.random.default_rng(0))
    y = simulate(*plant(12, (0.8,), m=1, p=1), np.zeros(1), u) + 1.0
    before = u.copy(), y.copy()
    trace = SignalTrace(interval_s=1.0, input_values=u, output_values=y)
    identify(trace, order=1, held_out=0.3, horizon=4)
    assert np.array_equal(u, before[0]) and np.array_equal(y, before[1])
    assert capfd.readouterr() == ("", "")


def test_a_seed_gives_the_same_again_and_draws_lie_around_the_poles() -> None:
    trace = traced(plant(13), 4000, 0.1)
    one, same, other = (identify(trace, order=4, seed=seed, horizon=8) for seed in (1, 1, 2))
    assert one.draws is not None and same.draws is not None and other.draws is not None
    assert np.array_equal(one.draws.A, same.draws.A)
    assert not np.array_equal(one.draws.A, other.draws.A)
    assert (one.pole_spread() < 0.05).all()
    assert np.abs(one.draws.poles(one.poles).mean(axis=0) - one.poles).max() < 0.05


@pytest.mark.slow
def test_the_spread_of_the_draws_is_that_of_many_traces() -> None:
    found = [identify(connet(seed, 1.0, 6000)[0], order=2, horizon=6, method="pbsid").poles for seed in range(25)]
    drawn = identify(connet(99, 1.0, 6000)[0], order=2, horizon=6, method="pbsid").pole_spread()
    ratio = drawn / np.std(np.real(found), axis=0)
    assert (ratio > 0.5).all() and (ratio < 2.0).all()


# Orders and excitation


@pytest.mark.parametrize(("n", "poles"), [(1, (0.8,)), (2, (0.9, 0.4)), (4, (0.9, 0.6, 0.7 * np.exp(1j)))])
def test_the_order_that_noise_lets_see(n, poles) -> None:
    assert identify(traced(plant(14, poles), 5000, 0.2)).how.order == n
    found = identify(traced(plant(14, poles), 5000, 0.2), method="cva")
    assert found.order is not None
    assert found.how.order == found.order.order == n
    assert found.order.confidence is not None and found.order.confidence > 0.5


def test_noise_alone_stays_below_the_edge() -> None:
    random = np.random.default_rng(0)
    u, y = random.standard_normal((4000, 1)), random.standard_normal((4000, 2))
    rho = subspace(lq_reduce([(u, y)], 10), "cva").singular_values
    assert rho[0] < 1.1 * noise_edge(30, 20, 4000 - 19)
    assert rho[0] > 0.6 * noise_edge(30, 20, 4000 - 19)
    assert noise_edge(60, 50, 100) == 1.0


def test_sines_excite_two_orders_each() -> None:
    t = np.arange(2000)
    y = np.random.default_rng(0).standard_normal((2000, 1))
    for count in (1, 2, 3):
        u = sum(np.sin((0.3 + 0.5 * k) * t) for k in range(count))[:, None]
        assert excitation(lq_reduce([(u, y)], 6)) == 2 * count


def test_test_signals_keep_their_limits_and_seeds() -> None:
    limits = np.array([[1e6, 95e6], [0.0, 10e6]])
    for make in (gbn, multisine):
        rates = make(3000, limits, np.random.default_rng(3))
        assert rates.shape == (3000, 2)
        assert rates.min(axis=0) == pytest.approx(limits[:, 0], abs=1e-6)
        assert rates.max(axis=0) == pytest.approx(limits[:, 1], rel=1e-12)
        assert np.array_equal(rates, make(3000, limits, np.random.default_rng(3)))
    sines = multisine(3000, limits, np.random.default_rng(3), band=1.0)
    assert abs(np.corrcoef(sines.T)[0, 1]) < 1e-9
    held = gbn(30_000, [0.0, 1.0], np.random.default_rng(4), hold=12.0, min_hold=5)[:, 0]
    stays = np.diff(np.flatnonzero(np.diff(held)))
    assert stays.min() == 5
    assert stays.mean() == pytest.approx(12.0, rel=0.1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda r: gbn(100, [1.0, 1.0], r), "limits: got [1.0, 1.0], takes lowest and highest"),
        (lambda r: gbn(100, [2.0, 1.0], r), "the first below the second"),
        (lambda r: gbn(3, [0.0, 1.0], r), "samples: got 3"),
        (lambda _: gbn(100, [0.0, 1.0], 1), "random: got 1, takes a numpy.random.Generator"),
        (lambda r: multisine(100, [0.0, 10**400], r), "takes lowest and highest"),
        (lambda r: gbn(100, [0.0, 1.0], r, hold=0.5), "hold: got 0.5"),
        (lambda r: multisine(100, [0.0, 1.0], r, band=1.5), "band: got 1.5"),
        (lambda r: multisine(100, [0.0, 1.0], r, band=0.01), "a longer signal or a wider band"),
    ],
)
def test_what_test_signals_refuse(call, said) -> None:
    with pytest.raises(InvalidValue, match=re.escape(said)):
        call(np.random.default_rng(0))


# What is refused


def bad(**changes) -> SignalTrace:
    random = np.random.default_rng(0)
    u = gbn(changes.pop("samples", 400), [0.0, 1.0], random)
    y = np.hstack([simulate(*plant(15, (0.8, 0.5), m=1, p=1), np.zeros(2), u), u + random.standard_normal(u.shape)])
    return SignalTrace(interval_s=1.0, input_values=changes.get("u", u), output_values=changes.get("y", y))


def constant(y: np.ndarray) -> np.ndarray:
    return np.column_stack([y[:, 0], np.full(len(y), 7.0)])


@pytest.mark.parametrize(
    ("call", "argument", "said"),
    [
        (lambda: identify(bad(samples=20), order=2), "samples", "record longer"),
        (lambda: identify(bad(samples=30), order=2, horizon=8), "horizon", "or a longer trace"),
        (lambda: identify(bad(samples=12), order=2, horizon=8), "samples", "record longer"),
        (lambda: identify(bad(), order=5, horizon=5), "horizon", "at least 6, above the order; lower the order"),
        (lambda: identify(bad(), order=0), "order", "a number of states of at least 1"),
        (lambda: identify(bad(), order=2.0), "order", "or 'auto'"),
        (lambda: identify(bad(), order=np.array([1, 2])), "order", "or 'auto'"),
        (lambda: identify(bad(), order=2, method=np.array(["n4sid", "cva"])), "method", "one of auto, n4sid"),
        (lambda: identify(bad(), order=2, refine=np.eye(2)), "refine", "True, False or 'auto'"),
        (
            lambda: identify(bad(), order=2, method="N4SID"),
            "method",
            "one of auto, n4sid, moesp, cva, pbsid, sippy-n4sid",
        ),
        (lambda: identify(bad(), order=2, feedthrough=1), "feedthrough", "True, False or 'auto'"),
        (lambda: identify(bad(), order=2, refine="yes"), "refine", "True, False or 'auto'"),
        (lambda: identify(bad(), order=2, held_out=1.0), "held_out", "a share of the trace"),
        (lambda: identify(bad(y=constant(bad().output_values)), order=2), "column 'y2'", "a signal that varies"),
        (lambda: identify(bad(u=np.full((400, 1), 3.0)), order=2), "column 'u1'", "a signal that varies"),
        (
            lambda: identify(bad(u=np.sin(np.arange(400.0))[:, None]), order=3),
            "inputs",
            "excite order 4 at least: a GBN",
        ),
        (lambda: identify(np.zeros((9, 2)), order=2), "y", "the outputs to the inputs u"),
        (lambda: identify(None), "trace", "a SignalTrace"),
    ],
)
def test_what_is_refused_is_named_with_its_remedy(call, argument, said) -> None:
    with pytest.raises(InvalidValue) as refusal:
        call()
    assert refusal.value.argument == argument
    assert said in str(refusal.value)


def test_inputs_that_move_together_are_named() -> None:
    u = gbn(500, [0.0, 1.0], np.random.default_rng(0))
    y = u + np.random.default_rng(1).standard_normal(u.shape)
    with pytest.raises(InvalidValue, match="u1, u2: move together"):
        identify(SignalTrace(interval_s=1.0, input_values=np.hstack([u, 2.0 * u]), output_values=y), order=2)


def test_held_out_data_that_dont_move_are_refused() -> None:
    trace = bad()
    y = trace.output_values.copy()
    y[300:, 1] = 1.0
    with pytest.raises(InvalidValue, match="held_out: got \"a constant 'y2'\""):
        identify(bad(y=y), order=2, held_out=0.2)
    with pytest.raises(InvalidValue, match="the same inputs, outputs and interval"):
        identify(
            trace, order=2, held_out=SignalTrace(interval_s=2.0, input_values=[1.0, 2.0], output_values=[1.0, 2.0])
        )


# The command line


@pytest.fixture
def table(tmp_path):
    trace, _ = connet(0, 0.1, 1500)
    frame = trace.to_pandas()
    frame["run"] = np.arange(1500) // 500
    frame.to_csv(tmp_path / "trace.csv", index=False)
    return tmp_path / "trace.csv"


def test_a_model_on_the_command_line(table, tmp_path, capsys) -> None:
    columns = ["--inputs", "R", "--outputs", "delay, jitter", "--horizon", "8"]
    status = main([str(table), *columns, "--order", "2", "--segments", "run", "-o", str(tmp_path / "model.json")])
    said = capsys.readouterr()
    assert (status, said.err) == (0, "")
    assert "refined, order 2: R -> delay, jitter" in said.out
    assert said.out.startswith("explains delay 98.") and "of stretches left out" in said.out.splitlines()[0]
    assert "1500 in 3 segments" in said.out
    model = read_model(tmp_path / "model.json")
    assert (model.inputs, model.outputs, model.dt) == (("R",), ("delay", "jitter"), 1.0)
    assert model.provenance is not None and list(model.provenance.input_hashes) == [str(table)]
    assert model.input_range is not None and model.input_range.tolist() == [[0.0, 95.0]]
    assert main([str(table), *columns, "--held-out", ".3", "--method", "cva", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["identification"]["order"] == 2
    assert min(found["identification"]["held_out_vaf"]) > 90.0


def test_a_picture_on_the_command_line(table, tmp_path, capsys) -> None:
    arguments = [str(table), "--inputs", "R", "--outputs", "delay,jitter", "--horizon", "6"]
    assert netctrl.__main__.main(["identify", *arguments, "--plot", str(tmp_path / "fit.svg")]) == 0
    assert "poles' deviation" in capsys.readouterr().out
    assert (tmp_path / "fit.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--order", "two"], "--order: got 'two', takes a number of states, or auto"),
        (["--order", "9", "--horizon", "9"], "--horizon: got 9, takes a number of samples of at least 10"),
        (["--method", "magic"], "--method: got 'magic', takes one of auto, n4sid"),
        (["--outputs", "delai"], "--outputs: unknown 'delai'; did you mean 'delay'?"),
        (["--outputs", "R"], "--outputs: got 'R', takes a column that isn't also an input"),
        (["--segments", "day"], "--segments: unknown 'day'; did you mean"),
        (["--held-out", "1"], "--held-out: got '1', takes a share"),
        (["--refine", "maybe"], "--refine: got 'maybe', takes one of auto, yes, no"),
        (["--plot", "fit.txt"], "--plot: got 'fit.txt'"),
    ],
)
def test_wrong_use_is_one_line(table, arguments, said, capsys) -> None:
    known = {"--inputs": "R", "--outputs": "delay"} | dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert main([str(table), *[part for pair in known.items() for part in pair]]) == 2
    found = capsys.readouterr()
    assert said in found.err and found.err.count("\n") == 1 and found.out == ""


# Records and figures


@pytest.mark.slow
def test_a_result_shows_itself() -> None:
    found = identify(traced(plant(16, (0.8, 0.5)), 1500, 0.1), held_out=0.3, horizon=6, method="cva")
    title, rows, _ = found.table()
    assert html.escape(title) in found._repr_html_()
    assert {"poles", "VAF, held out", "VAF, one step ahead", "order"} <= {name for name, _ in rows}
    for figure in (found.plot(), identify(found.trace, order=2, horizon=6).plot(), found.model.plot()):
        figure.savefig(content := io.BytesIO(), format="png")
        assert content.getvalue()[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match="read-only"):
        found.simulated[0] = 0.0
    assert isinstance(pd.Series(found.how.vaf), pd.Series)
