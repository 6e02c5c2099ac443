"""CONNET paper, Figs. 13 and 15a: regulators that fail, and uneven shares; three FIFO nodes."""

from __future__ import annotations

import numpy as np
from common import Outcome
from connet.links import LQI, PRINTED, SEEDS, laws, link_of, picture, table, tracked

from netctrl.scenario.links import Change
from netctrl.scenario.network.track import Track

REFERENCE = (0.86, 0.393)
"""On the curve of three nodes."""


def failing(source: str, stop: float) -> tuple[Change, Change]:
    """Each of its two flows sends 25 Mbit/s from 100 s on."""
    return Change(at=100.0, flow=source, rate=2.5e7), Change(at=stop, flow=source)


ONE = {"changes": failing("source0", 250.0)}
TWO = {"changes": (*failing("source0", 300.0), *failing("source1", 200.0))}
UNEVEN = {"control": Track(flows=("source0", "source1", "source2"), shares=(0.5, 0.35, 0.15))}


def main(*, full: bool = False) -> Outcome:
    shown, computed = {}, {}
    for name, law in laws().items():
        key = "printed" if name == PRINTED else "lqi"
        rows, reported = [], []
        for seed in SEEDS:
            base = {"duration": 400.0, "hops": 3, "seed": seed}
            one = tracked(law, link_of(**ONE, **base), REFERENCE)
            two = tracked(law, link_of(**TWO, **base), REFERENCE)
            uneven = tracked(law, link_of(**UNEVEN, **base), REFERENCE)
            delay = [run.mean_delay_ms for run in (one, two, uneven)]
            rows.append(
                (
                    delay[0][150:250].mean(),
                    delay[1][150:200].mean(),
                    delay[1][250:300].mean(),
                    delay[2][100:].mean(),
                    one.rate_bit_per_s[150:250].mean() / one.rate_bit_per_s[50:100].mean(),
                )
            )
            reported.append(len(two.infeasible) == 1 and not one.infeasible)
            if seed == SEEDS[0]:
                shown[f"{name}, two of three fail"] = two
        means = np.mean(rows, axis=0)
        computed |= {
            f"fig13-{key}-one": float(means[0]),
            f"fig13-{key}-two": float(means[1]),
            f"fig13-{key}-repaired": float(means[2]),
            f"fig15a-{key}": float(means[3]),
        }
        if name == LQI:
            computed |= {"fig13-lqi-rate": float(means[4]), "fig13-lqi-reported": float(np.mean(reported))}
    said = "Paper: with two of three regulators failed (100 to 200 s) it is helpless; with one (to 300 s) it holds."
    figure = picture("CONNET paper, Figs. 13c, d: two of three regulators fail", shown, said, top=6.0)
    return Outcome("fig13", "connet", table(shown), figure, computed)
