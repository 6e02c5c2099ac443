"""What demands send: moments in closed form, the same bits however a run is cut and batched, long memory, traces."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import toeplitz

import netctrl.sim.network.demands as demands_module
from netctrl.core.errors import FileError, InvalidValue
from netctrl.model.network import Demand, Link, Network
from netctrl.model.trace import RateTrace
from netctrl.scenario.builders import routed
from netctrl.scenario.network.runs import scenario_trace, traffic_samples
from netctrl.scenario.network.traffic import GaussianTraffic, LongRangeTraffic, TraceTraffic, TriangularTraffic
from netctrl.sim.network.demands import DemandSource, fractional_noise, noise_spectrum, run_seeds

MBIT = 1e6
SIGMAS = 4.5  # of a mean's standard error: with these seeds all is within


def network(*demands):
    return Network(links=(Link(source="a", target="b", capacity="1Gbit"),), demands=demands)


def demand(name="d", mean=10 * MBIT, std=1 * MBIT):
    return Demand(source="a", target="b", id=name, mean=mean, std=std)


def scenario(traffic, *demands, steps=1000, interval=0.01, **more):
    times = {"interval": interval, "duration": steps * interval, "warmup": 0.0}
    return routed(network(*demands), spread=traffic, **times | more)


def drawn(chosen, runs=range(1), **more):
    """The whole run at once."""
    return DemandSource(chosen, runs, **more).draw(chosen.steps)


def assert_mean(samples, expected, deviation):
    assert abs(samples.mean() - expected) < SIGMAS * deviation / np.sqrt(samples.size)


# Moments


def test_gaussian_rates_have_each_demands_mean_and_deviation():
    traffic = GaussianTraffic(scale=1.5)
    found = drawn(scenario(traffic, demand("x"), demand("y", 40 * MBIT, 5 * MBIT), steps=2000), range(20))
    assert found.shape == (2000, 2, 20)
    assert found.dtype == np.float64
    assert found.flags.c_contiguous
    for i, (mean, std) in enumerate(((15e6, 1e6), (60e6, 5e6))):
        noise = (found[:, i] - mean) / std
        assert_mean(noise, 0.0, 1.0)
        assert_mean(noise**2, 1.0, np.sqrt(2.0))
        assert stats.kstest(noise.ravel(), "norm").pvalue > 0.01


def test_rates_of_other_steps_demands_and_runs_are_independent():
    found = drawn(scenario(GaussianTraffic(), demand("x"), demand("y"), steps=20_000), range(2))
    noise = (found - 10e6) / 1e6
    for one, other in (
        (noise[:-1, 0, 0], noise[1:, 0, 0]),
        (noise[:, 0, 0], noise[:, 1, 0]),
        (noise[:-1, 1, 0], noise[1:, 0, 0]),
        (noise[:, 0, 0], noise[:, 0, 1]),
    ):
        assert_mean(one * other, 0.0, 1.0)


@pytest.mark.parametrize("ratio", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("kind", [GaussianTraffic, LongRangeTraffic])
def test_what_the_cut_at_0_does_to_normal_rates(kind, ratio):
    memory = {"hurst": 0.5} if kind is LongRangeTraffic else {}  # a standard error is easy without
    chosen = scenario(kind(scale=ratio, **memory), demand(mean=2 * MBIT, std=2 * MBIT), steps=20_000)
    found = drawn(chosen, range(4)) / (2 * MBIT)
    density, below = stats.norm.pdf(ratio), stats.norm.cdf(-ratio)
    mean = ratio + density - ratio * below
    square = (1.0 + ratio**2) * (1.0 - below) + ratio * density
    assert found.min() == 0.0
    assert_mean(found, mean, np.sqrt(square - mean**2))
    assert_mean(found == 0.0, below, np.sqrt(below * (1.0 - below)))


@pytest.mark.parametrize(("half_width", "width"), [(None, np.sqrt(6.0) * MBIT), ("3Mbit", 3 * MBIT)])
def test_triangular_rates_keep_to_their_width(half_width, width):
    chosen = scenario(TriangularTraffic(half_width=half_width), demand(), demand("still", std=0.0), steps=40_000)
    found = drawn(chosen)
    assert (found[:, 1] == 10 * MBIT).all()
    noise = (found[:, 0, 0] - 10 * MBIT) / width
    assert -1.0 <= noise.min() < -0.98
    assert 0.98 < noise.max() <= 1.0
    assert_mean(noise, 0.0, np.sqrt(1 / 6))
    assert_mean(noise**2, 1 / 6, np.sqrt(1 / 15 - 1 / 36))  # E x⁴ = 1/15
    assert stats.kstest(noise, stats.triang(0.5, -1.0, 2.0).cdf).pvalue > 0.01
    if half_width is None:
        assert noise.std() * width == pytest.approx(1 * MBIT, rel=0.02)


def test_what_the_cut_at_0_does_to_triangular_rates():
    m, h = 1 * MBIT, 4 * MBIT
    found = drawn(scenario(TriangularTraffic(half_width=h), demand(mean=m), steps=40_000))
    assert found.min() == 0.0
    assert_mean(found, m + (h - m) ** 3 / (6 * h**2), h / np.sqrt(6.0))


@pytest.mark.parametrize("traffic", [GaussianTraffic(scale=0.5), TriangularTraffic(scale=0.5, half_width="1Mbit")])
def test_without_fluctuation_rates_are_constant(traffic):
    chosen = scenario(traffic, demand("x", std=0.0), demand("y", 4 * MBIT, 0.0))
    source = DemandSource(chosen, range(3))
    found = source.draw(7)
    assert found.shape == (7, 2, 3)
    assert found.flags.c_contiguous
    assert (found == np.array([5e6, 2e6])[:, np.newaxis]).all()
    found[:] = 0.0
    assert (source.draw(7)[:, 0] == 5e6).all()


@pytest.mark.parametrize("traffic", [GaussianTraffic(), TriangularTraffic(), LongRangeTraffic()])
def test_a_constant_demand_beside_others(traffic):
    found = drawn(scenario(traffic, demand("x"), demand("still", std=0.0)))
    assert (found[:, 1] == 10 * MBIT).all()
    assert found[:, 0].std() > 0.5 * MBIT


# The same bits

TRACE = RateTrace(0.01, ("x", "y"), np.random.default_rng(8).random((23, 2)) * 20 * MBIT)
KINDS = {
    "gaussian": GaussianTraffic(),
    "triangular": TriangularTraffic(scale=0.2),
    "long-range": LongRangeTraffic(),
    "trace": TraceTraffic(file="in memory"),
}


@pytest.mark.parametrize("kind", KINDS)
@given(
    cuts=st.sets(st.integers(1, 59), max_size=8),
    runs=st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_run_is_the_same_whatever_the_chunks_and_the_company(kind, cuts, runs, seed):
    chosen = scenario(KINDS[kind], demand("x"), demand("y", std=2 * MBIT), steps=60, seed=seed)
    trace = TRACE if kind == "trace" else None
    alone = drawn(chosen, range(runs[-1], runs[-1] + 1), trace=trace)
    source = DemandSource(chosen, runs, trace=trace)
    steps = np.diff([0, *sorted(cuts), 60])
    together = np.concatenate([source.draw(int(count)) for count in steps])
    assert (
        together.tobytes() == np.concatenate([drawn(chosen, range(r, r + 1), trace=trace) for r in runs], 2).tobytes()
    )
    assert together[..., -1:].tobytes() == alone.tobytes()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "trace"])
def test_other_seeds_and_other_runs_are_other_rates(kind):
    made = [drawn(scenario(KINDS[kind], demand("x"), demand("y"), seed=seed), range(2)) for seed in (1, 2, 1)]
    assert np.array_equal(made[0], made[2])
    assert not np.array_equal(made[0], made[1])
    assert not np.array_equal(made[0][..., 0], made[0][..., 1])


def test_seeds_are_those_that_spawning_gives():
    spawned = np.random.SeedSequence(7).spawn(5)
    for one, other in zip(run_seeds(7, range(2, 5)), spawned[2:], strict=True):
        assert (one.generate_state(8) == other.generate_state(8)).all()


# Long memory


def correlation(lag, hurst):
    """The definition, to 50 digits."""
    with localcontext() as context:
        context.prec = 50
        power = 2 * Decimal(str(hurst))
        beside = Decimal(lag + 1) ** power + (Decimal(abs(lag - 1)) ** power if lag != 1 else 0)
        return float((beside - 2 * (Decimal(lag) ** power if lag else 0)) / 2)


class Unit:
    """Each row has another one of the normals 1, all others 0: what comes out is the linear map."""

    def standard_normal(self, shape):
        return np.eye(shape[0]).reshape(shape)


def linear_map(length, hurst):
    spectrum = noise_spectrum(length, hurst)
    return fractional_noise(Unit(), spectrum, 2 * len(spectrum), length)


@pytest.mark.parametrize("hurst", [0.5, 0.7, 0.9, 0.999])
@pytest.mark.parametrize("length", [1, 2, 3, 64, 97])
def test_the_covariance_of_long_range_noise_is_exact(hurst, length):
    G = linear_map(length, hurst)
    covariance = G.T @ G
    assert covariance == pytest.approx(toeplitz([correlation(lag, hurst) for lag in range(length)]), abs=1e-12)


@pytest.mark.parametrize("hurst", [0.5, 0.6, 0.8, 0.95])
def test_means_of_long_range_noise_forget_slowly(hurst):
    G = linear_map(128, hurst)
    for count in (1, 2, 16, 128):
        weights = G[:, :count].mean(axis=1)
        assert weights @ weights == pytest.approx(count ** (2 * hurst - 2), rel=1e-10)


@given(length=st.integers(1, 5000), hurst=st.floats(0.5, 0.999))
def test_the_circulant_is_one_of_a_covariance(length, hurst):
    spectrum = noise_spectrum(length, hurst)
    n = len(spectrum) - 1
    row = np.fft.irfft(spectrum, 2 * n)
    assert n >= length
    assert spectrum.min() >= 0.0
    assert row[0] == pytest.approx(1.0, abs=1e-9)  # nothing was cut off at 0
    assert row[1] == pytest.approx(2 ** (2 * hurst - 1) - 1, abs=1e-9)
    if hurst > 0.5:
        assert (np.diff(row[: n + 1]) < 1e-9).all()


def test_correlations_keep_their_digits_at_long_lags():
    hurst, length = 0.9, 2**20
    row = np.fft.irfft(noise_spectrum(length, hurst), 2 * length)
    for lag in (1, 10, 1000, 10**5, 10**6):
        assert row[lag] == pytest.approx(correlation(lag, hurst), abs=1e-11)


def test_without_memory_noise_is_white():
    assert noise_spectrum(1000, 0.5) == pytest.approx(1.0, abs=1e-10)


def test_long_range_rates_correlate_as_they_should():
    hurst, T, R = 0.8, 1024, 400
    found = drawn(scenario(LongRangeTraffic(hurst=hurst), demand(), demand("y"), steps=T), range(R))
    noise = (found - 10 * MBIT) / MBIT
    for lag in (0, 1, 5, 50, 300):
        products = (noise[: T - lag] * noise[lag:]).mean(axis=0)  # one a demand and run: independent
        assert_mean(products, correlation(lag, hurst), products.std())
    across = (noise[:, 0] * noise[:, 1]).mean(axis=0)
    assert_mean(across, 0.0, across.std())
    means = [noise[:count].mean(axis=0).var() for count in (1, 8, 64, 512)]
    slope = np.polyfit(np.log([1, 8, 64, 512]), np.log(means), 1)[0]
    assert slope == pytest.approx(2 * hurst - 2, abs=0.05)


def test_long_range_rates_are_normal_and_cut_at_0():
    chosen = scenario(LongRangeTraffic(hurst=0.5), demand(), demand("low", mean=1 * MBIT), steps=20_000)
    found = drawn(chosen)
    assert stats.kstest((found[:, 0, 0] - 10 * MBIT) / MBIT, "norm").pvalue > 0.01
    share = stats.norm.cdf(-1.0)
    assert_mean(found[:, 1] == 0.0, share, np.sqrt(share))


def test_long_range_noise_that_memory_cannot_hold(monkeypatch):
    monkeypatch.setattr(demands_module, "_MAX_NOISE", 8 * 1000 * (3 + 6))
    chosen = scenario(LongRangeTraffic(), demand())
    assert drawn(chosen, range(3)).shape == (1000, 1, 3)
    with pytest.raises(InvalidValue, match=r"1000 steps, 1 demands and 4 runs.*a shorter duration, a longer interval"):
        drawn(chosen, range(4))


# Traces


@pytest.fixture
def trace_file(tmp_path):
    """Columns x and y, 7 rows of 10 ms: 1 to 7 Mbit/s, and 10 times the square; and one that is still."""

    def write(*names, rows=7, step=0.01):
        columns = {"x": lambda k: k, "y": lambda k: 10 * k * k, "idle": lambda k: 0}
        lines = [",".join(["time_s", *names])]
        for k in range(rows):
            lines.append(",".join([f"{k * step:.6g}", *(f"{columns[name](k + 1)}e6" for name in names)]))
        path = tmp_path / f"{'-'.join(names)}.csv"
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    return write


def rotated(cycle, found):
    """By how much `found` is `cycle` rotated, which it has to be."""
    (shift,) = (s for s in range(len(cycle)) if np.allclose(np.roll(cycle, -s), found[: len(cycle)], rtol=1e-14))
    assert np.allclose(np.resize(np.roll(cycle, -shift), len(found)), found, rtol=1e-14)
    return shift


@pytest.mark.parametrize("steps", [7, 30])
def test_a_run_of_a_trace_or_longer_goes_around_it_from_its_beginning(trace_file, steps):
    chosen = scenario(TraceTraffic(file=trace_file("x", "y"), fit=False), demand("y"), demand("x"), steps=steps)
    found = drawn(chosen, range(5))
    assert found.shape == (steps, 2, 5)
    assert found.flags.c_contiguous
    x = np.resize(np.arange(1, 8) * 1e6, steps)
    assert np.allclose(found[:, 1], x[:, np.newaxis], rtol=1e-14)
    assert np.allclose(found[:, 0], 10 * (found[:, 1] / 1e6) ** 2 * 1e6)  # both of the same row
    assert traffic_samples(chosen, range(5), scenario_trace(chosen)).tolist() == [0] * 5


@given(rows=st.integers(1, 400), steps=st.integers(1, 150), runs=st.integers(1, 40), first=st.integers(0, 1000))
def test_samples_of_a_trace_are_disjoint_windows_of_it(rows, steps, runs, first):
    trace = RateTrace(0.01, ("d",), np.arange(1.0, rows + 1)[:, np.newaxis])
    chosen = scenario(TraceTraffic(file="in memory", fit=False), demand(), steps=steps)
    numbers = range(first, first + runs)
    found = drawn(chosen, numbers, trace=trace)[:, 0]
    sample = traffic_samples(chosen, numbers, trace)
    for number in np.unique(sample):
        assert len(np.unique(found[:, sample == number], axis=1).T) == 1  # the same rates
    met = [set(found[:, sample == number].ravel()) for number in np.unique(sample)]
    assert sum(map(len, met)) == len(set.union(*met))  # no row of the trace is in two
    assert len(met) == min(runs, max(1, rows // steps))  # as many as there is room for
    assert np.array_equal(traffic_samples(scenario(GaussianTraffic(), demand()), numbers, None), list(numbers))


def test_columns_fit_their_demands_means(trace_file):
    traffic = TraceTraffic(file=trace_file("x", "y"), scale=0.5)
    found = drawn(scenario(traffic, demand("x", 30 * MBIT), demand("y", 1 * MBIT), steps=14), range(3))
    assert found.mean(axis=0) == pytest.approx(np.array([[15e6] * 3, [0.5e6] * 3]))
    rotated(np.arange(1, 8) / 4 * 15e6, found[:, 0, 1])


def test_unfitted_columns_are_only_scaled(trace_file):
    traffic = TraceTraffic(file=trace_file("x"), scale=3.0, fit=False)
    found = drawn(scenario(traffic, demand("x", 30 * MBIT)))
    rotated(np.arange(1, 8) * 3e6, found[:, 0, 0])


def test_columns_are_chosen_by_demand(trace_file):
    traffic = TraceTraffic(file=trace_file("x", "y"), columns={"a": "y", "b": "y"}, fit=False)
    found = drawn(scenario(traffic, demand("a"), demand("x"), demand("b"), steps=7))
    assert np.array_equal(found[:, 0], found[:, 2])
    assert found[:, 1, 0] == pytest.approx(np.arange(1, 8) * 1e6)
    assert found[:, 0, 0] == pytest.approx(np.arange(1, 8) ** 2 * 1e7)


def test_the_only_column_is_for_the_only_demand(trace_file):
    found = drawn(scenario(TraceTraffic(file=trace_file("x"), fit=False), demand("of another name")))
    rotated(np.arange(1, 8) * 1e6, found[:, 0, 0])


def test_a_trace_is_resampled_to_the_interval(trace_file):
    path = trace_file("x")
    found = drawn(scenario(TraceTraffic(file=path, fit=False), demand("x"), interval=0.02, steps=20))
    cycle = np.array([1.5, 3.5, 5.5]) * 1e6  # the seventh row fills no interval
    rotated(cycle, found[:, 0, 0])
    fitted = drawn(scenario(TraceTraffic(file=path), demand("x"), interval=0.02, steps=30))
    assert fitted.mean() == pytest.approx(10 * MBIT)
    read = RateTrace(0.01, ("x",), np.arange(1, 8)[:, np.newaxis] * 1e6)
    chosen = scenario(TraceTraffic(file="in memory", fit=False), demand("x"), interval=0.02, steps=20)
    assert np.array_equal(drawn(chosen, trace=read), found)


def test_an_interval_that_the_trace_cannot_have(trace_file):
    chosen = scenario(TraceTraffic(file=trace_file("x")), demand("x"), interval=0.015)
    with pytest.raises(InvalidValue, match=r"interval_s: got 0\.015"):
        drawn(chosen)


@pytest.mark.parametrize(
    ("columns", "names", "said"),
    [
        (
            {},
            ("x", "z"),
            r"^spread\.columns\.z: got 'z', takes a column of .*x-y\.csv for this demand; there are x, y$",
        ),
        ({"z": "w"}, ("x", "z"), r"^spread\.columns\.z: got 'w', takes a column of .* there are x, y$"),
        ({"z": "x"}, ("x",), r"^spread\.columns: got 'z', takes ids of demands; there are x$"),
        ({}, ("z",), r"^spread\.columns\.z: got 'z'"),
    ],
)
def test_a_demand_without_a_column(trace_file, columns, names, said):
    chosen = scenario(TraceTraffic(file=trace_file("x", "y"), columns=columns), *map(demand, names))
    with pytest.raises(InvalidValue, match=said):
        drawn(chosen)


def test_the_only_column_is_no_guess_where_columns_are_named(trace_file):
    chosen = scenario(TraceTraffic(file=trace_file("x"), columns={"d": "y"}), demand("d"))
    with pytest.raises(InvalidValue, match=r"^spread\.columns\.d: got 'y'"):
        drawn(chosen)


def test_a_column_of_nothing_fits_no_mean(trace_file):
    path = trace_file("x", "idle")
    with pytest.raises(InvalidValue, match=r"^column 'idle' of .*\.csv: got '0 all the time'.* mean of 'idle'.*`fit`"):
        drawn(scenario(TraceTraffic(file=path), demand("x"), demand("idle")))
    assert (drawn(scenario(TraceTraffic(file=path, fit=False), demand("x"), demand("idle")))[:, 1] == 0.0).all()
    assert drawn(scenario(TraceTraffic(file=path), demand("x"))).mean() > 0.0  # what nobody takes needs no mean


def test_a_trace_that_is_not_there(tmp_path):
    with pytest.raises(FileError):
        drawn(scenario(TraceTraffic(file=str(tmp_path / "none.csv")), demand()))


# Refusals


def test_no_runs():
    chosen = scenario(GaussianTraffic(), demand())
    with pytest.raises(InvalidValue, match=r"^runs: got 'none'"):
        DemandSource(chosen, [])


@pytest.mark.parametrize("kind", KINDS)
def test_no_more_than_the_run_has(kind):
    chosen = scenario(KINDS[kind], demand("x"), demand("y"), steps=10)
    source = DemandSource(chosen, range(1), trace=TRACE if kind == "trace" else None)
    for wrong in (0, 11, 2.0):
        with pytest.raises(InvalidValue, match=r"takes 1 to what the run of 10 has left, 10"):
            source.draw(wrong)
    assert len(source.draw(10)) == 10
    with pytest.raises(InvalidValue, match=r"^steps: got 1"):
        source.draw(1)
