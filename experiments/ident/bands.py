"""Coverage of the 95 % bands of an identified model, by Monte Carlo.

    python experiments/ident/bands.py [--runs 200] [--samples 60 250 1000 4000] [--only PLANT ...] [--adapter NAME]
                                      [--also JSON ...]

An adapter gives the bands of one result by name, as (low, high): "poles", complex, with bounds of real and imaginary
parts, in any order; "steady_gain" (p, m); "gain" (f, p, m), |G| at FREQUENCIES; "step" (s, p, m), the response to a
unit step after STEPS samples. The truth is the plant's. Asked: .92 to .97 of a quantity's values inside. "given" is the
share of runs whose bands have the quantity, "width" the median half width over 1.96 deviations of the
bands' centres by their quartiles.
"""

import argparse
import itertools
import json
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

import netctrl
from netctrl.core.errors import NetctrlError
from netctrl.model.fit import IdentificationResult

FREQUENCIES = np.array([0.01, 0.05, 0.2, 0.5, 1.0, 2.0])  # radians a sample
STEPS = np.array([1, 2, 5, 10, 20, 50])
COVERED = 0.92, 0.97

Bands = dict[str, tuple[np.ndarray, np.ndarray]]


def drawn(result: IdentificationResult) -> Bands:
    """From the draws of models."""
    found = result.draws
    if found is None:
        return {}
    return {
        "poles": found.band(found.poles(result.poles)),
        "steady_gain": found.band(found.steady_gains()),
        "gain": found.band(np.abs(found.responses(FREQUENCIES))),
        "step": found.band(found.steps(STEPS[-1] + 1)[:, STEPS]),
    }


ADAPTERS: dict[str, Callable[[IdentificationResult], Bands]] = {"drawn": drawn}


class Plant(NamedTuple):
    """x₊ = A x + B u, y = C x + v, v of a standard deviation `noise` and white, or with a pole at `colour`."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    noise: float
    colour: float = 0.0

    def truth(self) -> dict[str, np.ndarray]:
        one, power = np.eye(len(self.A)), np.linalg.matrix_power
        steady, *at = (
            self.C @ np.linalg.solve(z * one - self.A, self.B) for z in np.exp(1j * np.array([0.0, *FREQUENCIES]))
        )
        rest = np.linalg.solve(one - self.A, self.B)  # the state at rest under a unit step
        steps = np.array([self.C @ (one - power(self.A, int(k))) @ rest for k in STEPS])
        poles = np.linalg.eigvals(self.A).astype(complex)
        return {"poles": poles, "steady_gain": steady.real, "gain": np.abs(at), "step": steps}

    def trace(self, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng([seed, samples])
        T = samples + 100  # the start is left out
        u = netctrl.gbn(T, [(-1.0, 1.0)] * self.B.shape[1], random, hold=5.0)
        v = lfilter([np.sqrt(1.0 - self.colour**2)], [1.0, -self.colour], random.standard_normal((T, len(self.C))), 0)
        x, y = np.zeros(len(self.A)), np.empty((T, len(self.C)))
        for t in range(T):
            y[t] = self.C @ x + self.noise * v[t]
            x = self.A @ x + self.B @ u[t]
        return u[100:], y[100:]


def plants() -> dict[str, Plant]:
    turn = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    made = {
        "first": Plant(np.array([[0.85]]), np.array([[1.0]]), np.array([[1.0]]), 1.0),
        "resonant": Plant(0.9 * turn, np.array([[1.0], [0.0]]), np.array([[0.5, 1.0]]), 0.5),
        "two inputs": Plant(np.diag([0.85, 0.5]), np.array([[1.0, 0.3], [0.2, 1.0]]), np.array([[1.0, 1.0]]), 1.0),
    }
    return made | {f"{name}, coloured": plant._replace(colour=0.8) for name, plant in made.items()}


def inside(name: str, truth: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Of each value whether it is inside, the band's centre and half width, (3, ...); a pole has the nearest band."""
    if name == "poles":
        nearest = np.abs(truth[:, None] - (low + high)[None] / 2.0).argmin(axis=1)
        parts = truth, low[nearest], high[nearest]
        truth, low, high = (np.concatenate([each.real, each.imag[truth.imag != 0.0]]) for each in parts)
    return np.array([(low <= truth) & (truth <= high), (low + high) / 2.0, (high - low) / 2.0])


def coverage(plant: Plant, samples: int, runs: int, adapter: Callable, options: dict) -> dict[str, list[np.ndarray]]:
    """What `inside` says in each run, by quantity; refusals by what they say."""
    truth, found = plant.truth(), defaultdict(list)
    for seed in range(runs):
        u, y = plant.trace(samples, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                for name, (low, high) in adapter(netctrl.identify(u, y, interval_s=1.0, **options)).items():
                    found[name].append(inside(name, truth[name], low, high))
            except NetctrlError as error:
                found[f"refused: {' '.join(str(error).split())[:60]}"].append(np.full((3, 1), np.nan))
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--samples", type=int, nargs="+", default=[60, 250, 1000, 4000])
    options.add_argument("--only", nargs="+", default=list(plants()), choices=list(plants()))
    options.add_argument("--adapter", default=list(ADAPTERS)[-1], choices=list(ADAPTERS))
    options.add_argument("--also", action="append", default=[], help="options of netctrl.identify as JSON")
    asked = options.parse_args()
    pooled: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for name, text, N in itertools.product(asked.only, asked.also or ["{}"], asked.samples):
        found = coverage(plants()[name], N, asked.runs, ADAPTERS[asked.adapter], json.loads(text))
        for quantity, runs in sorted(found.items()):
            held, centres, halves = np.moveaxis(np.array(runs), 1, 0)
            spread = np.subtract(*np.quantile(centres, (0.75, 0.25), axis=0)) / 1.349
            with np.errstate(divide="ignore", invalid="ignore"):
                width = np.median(np.median(halves, axis=0) / (1.96 * spread))
            pooled[text, quantity, N].append(held.mean())
            each, told = held.mean(axis=0), "ok" if COVERED[0] <= held.mean() <= COVERED[1] else "NOT"
            print(
                f"{name:20} {text:20} N {N:5} {quantity:12} given {len(runs) / asked.runs:5.3f} covered"
                f" {held.mean():5.3f} (least {each.min():5.3f}, most {each.max():5.3f}) width {width:6.2f} {told}",
                flush=True,
            )
    for (text, quantity, N), values in sorted(pooled.items()):
        good = sum(COVERED[0] <= value <= COVERED[1] for value in values)
        print(f"{text:20} {quantity:12} N {N:5}: mean {np.mean(values):5.3f}, {good} of {len(values)} plants as asked")


if __name__ == "__main__":
    main()
