"""Rates of each demand in each sampling interval, run by run, drawn outside the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from netctrl.core.errors import InvalidValue, checked_whole
from netctrl.model.io.validation_errors import shorten
from netctrl.model.network import Demand
from netctrl.model.trace import RateTrace, read_trace
from netctrl.scenario.network.graph import graph_of
from netctrl.scenario.network.runs import spread_of, window_starts
from netctrl.scenario.network.traffic import LongRangeTraffic, Spread, TraceTraffic, TriangularTraffic
from netctrl.scenario.scenario import Scenario

_MAX_NOISE = 2**31  # bytes
_WORKSPACE = 6  # rows of normals, of their spectrum and of what irfft makes of it, beside the runs' own

Rates = Callable[[int, int], np.ndarray]
"""Function from the number of the first step and the number of steps to rates, (steps, I, R) [bit/s]."""


def run_seeds(seed: int, runs: Sequence[int]) -> list[np.random.SeedSequence]:
    """Seed of each run by its number, so that run r doesn't depend on the other runs or on the policy."""
    return [np.random.SeedSequence(seed, spawn_key=(run,)) for run in runs]


class DemandSource:
    """Rates of I demands in R runs, in chunks; a run's rates depend only on its number and the scenario.

    With m = `scale` · mean, for each demand:

    - gaussian: max(m + std N(0, 1), 0).
    - triangular: max(m + half_width (U₁ + U₂ − 1), 0), U uniform from 0 to 1; half_width is √6 std if none is given.
    - long-range: as gaussian, with fractional Gaussian noise, exact over the whole run.
    - trace: the rows of window r mod W of the trace for run r (`netctrl.scenario.network.runs`), around and
      around where it is shorter than the run; with `fit` each column times m over its mean, else times `scale`.
      The demand's std and the seed are not used.

    In the first three, a demand with std 0 sends m constantly.

    The cut at 0 makes the mean larger than m: with a = m/std by std (φ(a) − a Φ(−a)) for normal rates, 0.01 % of m at
    a = 3, 0.4 % at 2 and 8 % at 1; by (h − m)³/(6 h²) for triangular ones of half width h above m, else not at all.
    The deviation becomes smaller.

    Parameters
    ----------
    scenario : Scenario
        Under demands.
    runs : sequence of int
        Numbers of the runs, R of them.
    trace : RateTrace, optional
        Content of the trace's file, if already read.

    Raises
    ------
    InvalidValue
        No run; long-range noise that memory can't hold; a trace that isn't sampled at a divisor of the interval, has no
        column for a demand, or has one of mean 0 that can't be fitted.
    FileError
        The trace can't be read.
    """

    def __init__(self, scenario: Scenario, runs: Sequence[int], *, trace: RateTrace | None = None) -> None:
        if not len(runs):
            raise InvalidValue("runs", "none", "one or more")
        self._rates = demand_rates(
            spread_of(scenario),
            graph_of(scenario).demands,
            runs,
            interval=scenario.interval,
            steps=scenario.steps,
            seed=scenario.seed,
            trace=trace,
        )
        self._done, self._steps = 0, scenario.steps

    def draw(self, steps: int) -> np.ndarray:
        """Rates in the next `steps` intervals, shape (steps, I, R), C-contiguous [bit/s].

        Raises
        ------
        InvalidValue
            More than the scenario has left, or none.
        """
        left = self._steps - self._done
        checked_whole("steps", steps, f"1 to what the run of {self._steps} has left, {left}", at_least=1, at_most=left)
        rates = self._rates(self._done, steps)
        self._done += steps
        return rates


def noise_spectrum(length: int, hurst: float) -> np.ndarray:
    """Eigenvalues of the circulant that holds fractional Gaussian noise of variance 1, shape (n + 1,), n ≥ length.

    Its first row is ρ(0), ..., ρ(n), ρ(n − 1), ..., ρ(1) with
    ρ(k) = (|k + 1|^2H − 2 |k|^2H + |k − 1|^2H) / 2. For H from 0.5 on ρ is non-negative, decreasing and convex,
    so that none of them is negative.

    Source: R. B. Davies and D. S. Harte, "Tests for Hurst effect", Biometrika 74 (1987); C. R. Dietrich and
    G. N. Newsam, "Fast and exact simulation of stationary Gaussian processes through circulant embedding of the
    covariance matrix", SIAM J. Sci. Comput. 18 (1997).
    """
    from scipy.fft import dct, next_fast_len

    lag = np.arange(1.0, next_fast_len(length, real=True) + 1.0)
    with np.errstate(divide="ignore"):  # log 0 at lag 1 gives −1 in the end, as it should
        beside = np.expm1(2.0 * hurst * np.log1p(1.0 / lag)) + np.expm1(2.0 * hurst * np.log1p(-1.0 / lag))
    # The definition's difference of powers loses all digits at a lag of 1e8, this one half of them.
    correlation = np.concatenate([[1.0], 0.5 * lag ** (2.0 * hurst) * beside])
    return np.maximum(dct(correlation, type=1), 0.0)  # negative by rounding only


def fractional_noise(rng: np.random.Generator, spectrum: np.ndarray, rows: int, length: int) -> np.ndarray:
    """Independent rows of fractional Gaussian noise of variance 1, shape (rows, length).

    x = Σ_j √(λ_j / 2n) Z_j e^(iπjt/n), Z_−j the conjugate of Z_j and E|Z_j|² = 1: exact in distribution.

    Source: as `noise_spectrum`, which makes `spectrum`.
    """
    from scipy.fft import irfft

    n = len(spectrum) - 1
    waves = rng.standard_normal((rows, n + 1, 2)).view(np.complex128)[..., 0]
    waves[:, [0, n]] = np.sqrt(2.0) * waves[:, [0, n]].real
    waves *= np.sqrt(n * spectrum)
    return irfft(waves, 2 * n, axis=1, overwrite_x=True)[:, :length]


def demand_rates(
    traffic: Spread,
    demands: Sequence[Demand],
    runs: Sequence[int],
    *,
    interval: float,
    steps: int,
    seed: int,
    trace: RateTrace | None = None,
) -> Rates:
    """What I demands send in R runs, by the laws that `DemandSource` lists.

    Parameters
    ----------
    traffic : Spread
    demands : sequence of Demand
        Their means, deviations and ids count.
    runs : sequence of int
        Numbers of the runs.
    interval : float
        [s]
    steps : int
        Intervals of a run.
    seed : int
    trace : RateTrace, optional
        What `traffic.file` holds, where it has been read already.

    Raises
    ------
    InvalidValue, FileError
        As `DemandSource`.
    """
    if isinstance(traffic, TraceTraffic):
        read = read_trace(traffic.file, interval_s=interval) if trace is None else trace.resampled(interval)
        return _traced(traffic, demands, read, runs, steps)
    # SFC64: 8.7 ns a normal where PCG64 takes 10.9, and these draws are most of a simulation's time.
    rngs = [np.random.Generator(np.random.SFC64(each)) for each in run_seeds(seed, runs)]
    mean = traffic.scale * np.array([demand.mean for demand in demands])
    spread = _spread(traffic, demands)
    if not spread.any():
        return lambda first, steps: np.tile(mean[:, np.newaxis], (steps, 1, len(rngs)))
    if isinstance(traffic, LongRangeTraffic):
        noise = _remembering(rngs, len(demands), steps, traffic.hurst)
        return lambda first, steps: _around(mean, spread, noise[:, :, first : first + steps].transpose(2, 1, 0))
    fill = _triangular if isinstance(traffic, TriangularTraffic) else _normal

    def independent(first: int, steps: int) -> np.ndarray:
        noise = np.empty((len(rngs), steps, len(demands)))
        for rng, row in zip(rngs, noise, strict=True):
            fill(rng, row)
        return _around(mean, spread, noise.transpose(1, 2, 0))

    return independent


def _spread(traffic: Spread, demands: Sequence[Demand]) -> np.ndarray:
    """What the noise is multiplied by, shape (I,) [bit/s]."""
    std = np.array([demand.std for demand in demands])
    if not isinstance(traffic, TriangularTraffic):
        return std
    if traffic.half_width is None:
        return np.sqrt(6.0) * std
    return np.where(std > 0.0, traffic.half_width, 0.0)


def _around(mean: np.ndarray, spread: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """max(mean + spread · noise, 0) in C order, whatever the order of `noise`, (steps, I, R)."""
    rates = np.empty(noise.shape)
    np.multiply(noise, spread[:, np.newaxis], out=rates)
    rates += mean[:, np.newaxis]
    return np.maximum(rates, 0.0, out=rates)


def _normal(rng: np.random.Generator, out: np.ndarray) -> None:
    rng.standard_normal(out=out)


def _triangular(rng: np.random.Generator, out: np.ndarray) -> None:
    """From −1 to 1: a quarter of the time of Generator.triangular, which takes a root."""
    pair = rng.random((*out.shape, 2))
    np.add(pair[..., 0], pair[..., 1], out=out)
    out -= 1.0


def _remembering(rngs: Sequence[np.random.Generator], rows: int, steps: int, hurst: float) -> np.ndarray:
    """Fractional Gaussian noise of all runs, shape (R, rows, steps)."""
    size = 8 * rows * steps * (len(rngs) + _WORKSPACE)
    if size > _MAX_NOISE:
        got = f"long-range noise of {steps} steps, {rows} demands and {len(rngs)} runs, {size / 2**30:.1f} GiB"
        takes = f"at most {_MAX_NOISE / 2**30:g} GiB at a time: a shorter duration, a longer interval or fewer runs"
        raise InvalidValue("traffic", got, takes)
    spectrum = noise_spectrum(steps, hurst)
    noise = np.empty((len(rngs), rows, steps))
    for rng, kept in zip(rngs, noise, strict=True):
        kept[:] = fractional_noise(rng, spectrum, rows, steps)
    return noise


def _traced(
    traffic: TraceTraffic, demands: Sequence[Demand], trace: RateTrace, runs: Sequence[int], steps: int
) -> Rates:
    chosen = _columns(traffic, demands, trace.names)
    means, factor = trace.mean_bit_per_s, np.full(len(demands), traffic.scale)
    columns = {k: np.ascontiguousarray(trace.rate_bit_per_s[:, k]) for k in set(chosen)}
    if traffic.fit:
        for demand, k in zip(demands, chosen, strict=True):
            if means[k] <= 0.0:
                takes = f"rates above 0, to be scaled to the mean of {demand.id!r}; or `fit` false"
                raise InvalidValue(f"column {trace.names[k]!r} of {traffic.file}", "0 all the time", takes)
        columns = {k: column / means[k] for k, column in columns.items()}
        factor *= [demand.mean for demand in demands]
    length = len(trace.rate_bit_per_s)
    windows = window_starts(length, steps)
    start = windows[np.asarray(runs) % len(windows)]

    def rates(first: int, steps: int) -> np.ndarray:
        rows = (np.arange(first, first + steps)[:, np.newaxis] + start) % length
        found = np.empty((steps, len(demands), len(start)))
        for i, k in enumerate(chosen):
            np.multiply(columns[k][rows], factor[i], out=found[:, i])
        return found

    return rates


def _columns(traffic: TraceTraffic, demands: Sequence[Demand], names: Sequence[str]) -> list[int]:
    """The place of each demand's column."""
    known = [demand.id for demand in demands]
    for name in traffic.columns:
        if name not in known:
            raise InvalidValue("spread.columns", name, f"ids of demands; there are {shorten(', '.join(known), 200)}")
    if len(known) == len(names) == 1 and not traffic.columns:
        return [0]
    places = {name: place for place, name in enumerate(names)}
    desired = {name: traffic.columns.get(name, name) for name in known}
    for name, column in desired.items():
        if column not in places:
            takes = f"a column of {traffic.file} for this demand; there are {shorten(', '.join(names), 200)}"
            raise InvalidValue(f"spread.columns.{name}", column, takes)
    return [places[column] for column in desired.values()]
