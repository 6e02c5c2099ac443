"""Flaws of signals: found where they are put in, and not in clean records of slow, resonant or delayed plants."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from netctrl import SignalTrace, gbn, multisine
from netctrl.ident.data.flaws import flaws

PLANTS = {
    "lag": ([0.0, 0.2], [1.0, -0.8]),
    "slow": ([0.0, 0.025], [1.0, -0.975]),
    "resonance": ([0.0, 0.1], [1.0, -1.9 * np.cos(0.4), 0.9025]),
    "sharp resonance": ([0.0, 0.05], [1.0, -1.98 * np.cos(0.2), 0.9801]),
    "differences": ([0.0, 1.0, -0.5, 0.3], [1.0]),
}
NOISES = {"white": (0.1, 0.0), "much": (1.0, 0.0), "coloured": (0.3, 0.9), "none": (0.0, 0.0), "rounded": (0.0, 0.0)}


def signal(kind: str, T: int, random: np.random.Generator) -> np.ndarray:
    match kind:
        case "gbn":
            return gbn(T, (0.0, 1.0), random)[:, 0]
        case "long steps":
            return gbn(T, (0.0, 1.0), random, hold=50)[:, 0]
        case "levels":
            return np.repeat(random.integers(0, 6, T // 20 + 1), 20)[:T].astype(float)
        case "impulses":
            return np.isin(np.arange(T), random.choice(T, T // 60, replace=False)).astype(float)
        case _:
            return multisine(T, (0.0, 1.0), random)[:, 0]


def clean(plant: str, inputs: str, noise: str, T: int, seed: int) -> SignalTrace:
    random = np.random.default_rng([seed, T])
    u = signal(inputs, T, random)
    y = lfilter(*PLANTS[plant], u)
    size, pole = NOISES[noise]
    disturbance = lfilter([np.sqrt(1.0 - pole**2)], [1.0, -pole], random.standard_normal(T + 200))[200:]
    y = np.round(y / y.std(), 2) if noise == "rounded" else y + size * y.std() * disturbance
    return SignalTrace(interval_s=0.1, input_values=u, output_values=y)


def false_alarms(lengths: tuple[int, ...], seeds: int) -> tuple[int, int]:
    kinds = [(p, i, n, T, s) for p in PLANTS for i in ("gbn", "long steps", "levels", "impulses", "multisine")
             for n in NOISES for T in lengths for s in range(seeds)]  # fmt: skip
    return sum(bool(flaws(clean(*kind))) for kind in kinds), len(kinds)


def test_clean_records_have_no_flaw() -> None:
    wrong, of = false_alarms((300,), 1)
    assert (wrong <= 1, of) == (True, 125)


@pytest.mark.slow
def test_false_alarms_are_rarer_than_one_in_a_hundred() -> None:
    """Of any kind; a rate of 1 % would give at most 15 in 99 of 100 sweeps of 750."""
    wrong, of = false_alarms((150, 400, 1000), 2)
    assert wrong <= 0.01 * of, wrong


def flawed(kind: str, T: int, random: np.random.Generator) -> tuple[SignalTrace, np.ndarray]:
    """A trace with a flaw, and the samples that have it."""
    u, there = gbn(T, (0.0, 1.0), random)[:, 0], np.zeros(T, bool)
    delay = 7 if kind == "delay" else 0
    y = 5.0 + lfilter([0.0] * (1 + delay) + [0.2], [1.0, -0.8], u)
    y += 0.1 * y.std() * random.standard_normal(T)
    some = random.random(T) < 0.03
    match kind:
        case "outliers":
            there = some
            y[there] += random.choice([-1, 1], there.sum()) * random.uniform(2.0, 9.0, there.sum())
        case "zeros" | "minus one" | "999":
            there = some
            y[there] = {"zeros": 0.0, "minus one": -1.0, "999": 999.0}[kind]
        case "runs of zeros":
            there = np.isin(np.arange(T) // 12, random.choice(T // 12, 6, replace=False))
            y[there] = 0.0
        case "saturation":
            there = y >= np.quantile(y, 0.85)
            y = np.minimum(y, np.quantile(y, 0.85))
        case "empty":
            there = y <= np.quantile(y, 0.2)
            y = np.maximum(y, np.quantile(y, 0.2))
        case "stuck":
            there[T // 3 : T // 3 + 40] = True
            y[there] = y[T // 3]
        case "quantised":
            y = np.round(y / 0.45) * 0.45
        case "drift":
            y += 5.0 * np.arange(T) / T
    return SignalTrace(interval_s=0.1, input_values=u, output_values=y), there


@pytest.mark.parametrize(
    ("kind", "named", "said"),
    [
        ("outliers", "outliers", "outliers, "),
        ("zeros", "placeholder", "samples are 0, far from their neighbours"),
        ("minus one", "placeholder", "samples are -1, far"),
        ("999", "placeholder", "samples are 999, far"),
        ("runs of zeros", "placeholder", "samples are 0, far"),
        ("saturation", "saturation", "its greatest value: it is cut off there"),
        ("empty", "saturation", "its lowest value: it is cut off there"),
        ("stuck", "stuck", "for 40 samples from row 334"),
        ("quantised", "quantised", "its steps of 0.45 are coarse"),
        ("delay", "delay", "responds to u1 only after 8 samples (0.8 s)"),
    ],
)
def test_each_flaw_is_found_with_its_samples(kind, named, said) -> None:
    for seed in range(3):
        trace, there = flawed(kind, 1000, np.random.default_rng([seed, 1]))
        found = [flaw for flaw in flaws(trace) if flaw.kind == named]
        assert len(found) == 1
        assert said in found[0].sentence
        if there.any():
            assert found[0].missing is not None
            assert (found[0].missing & there).sum() >= 0.9 * there.sum()
            assert not (found[0].missing & ~there).any()


def test_drifts_and_random_walks_are_found_in_long_records() -> None:
    """A random walk in 3 to 8 of 10 records; a drift is told as one or the other."""
    walks = 0
    for seed in range(10):
        random = np.random.default_rng([seed, 2])
        trace, _ = flawed("drift", 2000, random)
        assert {flaw.kind for flaw in flaws(trace)} & {"drift", "random walk"}
        u, y = gbn(4000, (0.0, 1.0), random)[:, 0], np.cumsum(random.standard_normal(4000))
        y = lfilter([0.0, 0.2], [1.0, -0.8], u) + y / y.std()
        found = flaws(SignalTrace(interval_s=1.0, input_values=u, output_values=y))
        walks += any(flaw.kind == "random walk" for flaw in found)
    assert walks >= 4


def test_signals_that_are_one_another_are_named() -> None:
    random = np.random.default_rng(4)
    a, b = random.standard_normal((2, 300))
    y = lfilter([0.0, 1.0], [1.0, -0.5], a) + 0.1 * random.standard_normal(300)

    def kinds(u: list[np.ndarray], outputs: list[np.ndarray]) -> set[tuple[str, str]]:
        trace = SignalTrace(interval_s=1.0, input_values=np.column_stack(u), output_values=np.column_stack(outputs))
        return {(flaw.kind, flaw.channel) for flaw in flaws(trace)}

    assert kinds([a, b], [y]) == set()
    assert kinds([a, b, 3.0 - 2.0 * a], [y]) == {("duplicate", "u3")}
    assert kinds([a, b, a + b], [y]) == {("collinear", "u3")}
    assert kinds([a, b], [y, 1e9 * y]) == {("duplicate", "y2")}
    assert kinds([a, b], [y, 1.0 + 1e-9 * b]) == {("identity", "y2")}


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_of_any_size_give_the_same_flaws(scale) -> None:
    trace, there = flawed("outliers", 600, np.random.default_rng(1))
    other = SignalTrace(
        interval_s=1.0, input_values=trace.input_values / scale, output_values=trace.output_values * scale
    )
    found, same = flaws(other), flaws(trace)
    assert [flaw.kind for flaw in found] == [flaw.kind for flaw in same]
    assert found[0].missing is not None
    np.testing.assert_array_equal(found[0].missing[40:], there[40:])  # the inputs before are needed
