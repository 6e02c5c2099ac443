"""Identification under feedback: bias of steady gain and pole, and the test's power and false alarms.

    python experiments/ident/feedback.py [--runs 200] [--samples 1000] [--only WORD] [--also JSON ...]

The plant x₊ = a x + u, y = x + v has one sample of lag and, with a = .85, the steady gain 6.67; u = r - .3 y in closed
loop, u = r in open loop. v is white, or has a pole at .8 ("coloured"); its deviation is the case's number. r is white
of deviation .5, or a GBN between -.5 and .5. Asked: bias below .3 deviations of the estimate, by means and by medians,
where the loop is identifiable; feedback announced, by the model or by a refusal that names it, in at least .95 of the
runs with it and .03 to .07 of those without.
"""

import argparse
import itertools
import json
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

import netctrl
from netctrl.core.errors import NetctrlError

BIAS, POWER, ALARMS, LAW, SIZE = 0.3, 0.95, (0.03, 0.07), 0.3, 0.5


class Case(NamedTuple):
    reference: str
    noise: float
    coloured: bool = False
    closed: bool = True
    pole: float = 0.85

    def __str__(self) -> str:
        parts = "closed" if self.closed else "open", self.reference, f"{self.noise:g}", "coloured" * self.coloured
        return " ".join([*filter(None, parts), *[f"pole {self.pole:g}"] * (self.pole != 0.85)])


CASES = [
    *(Case(*each) for each in (("white", 1.0), ("white", 3.0), ("gbn", 1.0), ("gbn", 3.0))),
    *(Case(*each, coloured=True) for each in (("white", 1.0), ("gbn", 3.0))),
    *(Case(*each, pole=1.05) for each in (("white", 1.0), ("gbn", 1.0))),
    *(Case("none", 1.0, coloured=each) for each in (False, True)),
    *(Case(*each, closed=False) for each in (("white", 1.0), ("white", 3.0), ("gbn", 1.0))),
    *(Case(*each, coloured=True, closed=False) for each in (("white", 1.0), ("gbn", 3.0))),
]


def trace(case: Case, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng([seed, samples])
    T, law = samples + 100, LAW if case.closed else 0.0  # the loop's transient is left out
    v = random.standard_normal(T)
    v = case.noise * (lfilter([0.6], [1.0, -0.8], v) if case.coloured else v)  # the filter keeps variance 1
    gbn = netctrl.gbn(T, (-SIZE, SIZE), random, hold=5.0)[:, 0]
    u = {"white": SIZE * random.standard_normal(T), "gbn": gbn, "none": np.zeros(T)}[case.reference]
    x, y = 0.0, np.empty(T)
    for t in range(T):
        y[t] = x + v[t]
        u[t] -= law * y[t]
        x = case.pole * x + u[t]
    return u[100:], y[100:]


def run(case: Case, samples: int, seed: int, options: dict[str, Any]) -> tuple[float, float, bool, bool, float]:
    """Steady gain, pole nearest to the plant's, whether feedback was announced, whether refused, and seconds."""
    u, y = trace(case, samples, seed)
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = netctrl.identify(u, y, interval_s=1.0, **options).model
    except NetctrlError as error:
        return np.nan, np.nan, "feedback" in str(error), True, time.perf_counter() - began
    spent, how, poles = time.perf_counter() - began, model.identification, np.linalg.eigvals(model.A)
    gain = model.C @ np.linalg.solve(np.eye(len(model.A)) - model.A, model.B) + model.D
    pole = poles[np.abs(poles - case.pole).argmin()].real
    return float(gain[0, 0]), float(pole), how is not None and bool(how.feedback), False, spent


def bias(found: np.ndarray, truth: float) -> tuple[float, float]:
    """Bias over deviation, by mean and standard deviation, and by median and quartiles; NaN where nothing was found."""
    found = found[np.isfinite(found)]
    if len(found) < 2:
        return np.nan, np.nan
    low, middle, high = np.quantile(found, (0.25, 0.5, 0.75))
    return (found.mean() - truth) / found.std(), (middle - truth) / ((high - low) / 1.349)


def told(case: Case, who: str, runs: list[tuple[float, float, bool, bool, float]]) -> bool:
    """Print a line, and whether the case meets what is asked."""
    gains, poles, *rest = np.array(runs, dtype=float).T
    truth, (announced, refused, seconds) = 1.0 / (1.0 - case.pole), np.mean(rest, axis=1)
    off = [*bias(gains, truth), *bias(poles, case.pole)]
    right = announced >= POWER if case.closed else ALARMS[0] <= announced <= ALARMS[1]
    right &= case.reference == "none" or bool(np.max(np.abs(off)) < BIAS)
    shown = "gain {:7.2f} {:7.2f}  pole {:7.2f} {:7.2f}".format(*off)
    print(
        f"{case!s:22} {who:18} gain {np.nanmedian(gains):8.3f} of {truth:6.2f}  bias/deviation: {shown}  announced"
        f" {announced:5.3f}  refused {refused:5.3f}  {seconds:6.3f} s  {'ok' if right else 'NOT'}",
        flush=True,
    )
    return bool(right)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--samples", type=int, default=1000)
    options.add_argument("--only", default="", help="cases whose name has these words, as in 'closed white'")
    options.add_argument("--also", action="append", default=[], help="options of netctrl.identify as JSON")
    asked = options.parse_args()
    tried = {each: json.loads(each) for each in ["{}", *asked.also]}
    cases = [case for case in CASES if asked.only in str(case)]
    met = dict.fromkeys(tried, 0)
    print(f"{asked.runs} runs of {asked.samples} samples; bias over deviation by means, then by medians")
    for case, (who, chosen) in itertools.product(cases, tried.items()):
        met[who] += told(case, who, [run(case, asked.samples, seed, chosen) for seed in range(asked.runs)])
    print("; ".join(f"{who}: {number} of {len(cases)} cases as asked" for who, number in met.items()))


if __name__ == "__main__":
    main()
