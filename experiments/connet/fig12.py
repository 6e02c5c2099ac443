"""CONNET paper, Fig. 12: non-premium TCP behind the regulators; three FIFO nodes."""

from __future__ import annotations

import numpy as np
from common import Outcome
from connet.links import LQI, PRINTED, SEEDS, laws, link_of, picture, table, tracked

REFERENCE = (0.86, 0.393)
"""On the curve of three nodes at R = 55 Mbit/s: 9.167 for each of 6 flows."""


def main(*, full: bool = False) -> Outcome:
    shown, computed = {}, {}
    for name, law in laws().items():
        key = "printed" if name == PRINTED else "lqi"
        rows = []
        for seed in SEEDS[:2]:
            scenario = link_of(*[{"sender": {"kind": "regulated"}}] * 3, duration=300.0, hops=3, seed=seed)
            run = tracked(law, scenario, REFERENCE)
            each, commanded = run.other_bit_per_s[100:].mean() / 6e6, run.rate_bit_per_s[100:].mean() / 6e6
            rows.append((run.mean_delay_ms[100:].mean(), each / commanded, each))
            if seed == SEEDS[0]:
                shown[name] = run
        means = np.mean(rows, axis=0)
        computed |= {f"fig12-{key}-delay": float(means[0]), f"fig12-{key}-rate": float(means[1])}
        if name == LQI:
            computed["fig12-flow"] = float(means[2])
    said = "Paper: the delay is held, and each of 6 TCP flows reaches its target rate without collapse."
    return Outcome("fig12", "connet", table(shown), picture("CONNET paper, Fig. 12: TCP", shown, said), computed)
