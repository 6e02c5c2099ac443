"""CONNET paper, Fig. 11 in ns-3: the same laws, references and draws as in the packet engine, beside it.

60 s at each reference, of which the last 40 count; two seeds. A minute of one core for each law.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pandas as pd
from common import Outcome
from connet.fig10 import CHANGING
from connet.links import LQI, PRINTED, Run, laws, link_of, of_signals, picture, stretch, table
from packets import run_link

from netctrl.model.law import LqgLaw
from netctrl.sim.packet.run import simulate_packets, simulate_rates

SECONDS, COUNTED, SEEDS = 60, 40, (1, 2)
FOLLOWED = (0, 2, 3, 4)
"""The second reference can't be had."""
EXACT_S = 1e-7


def main(*, full: bool = False) -> Outcome:
    reference = stretch(CHANGING, SECONDS)
    scenario = link_of(name="Fig. 11", duration=float(len(reference)))
    rows, shown, computed = [], {}, {}
    for name, law in laws().items():
        asked = {"measured": "average" if isinstance(law, LqgLaw) else "period", "reference": reference}
        plant = scenario.replace(control=msgspec.structs.replace(scenario.control, **asked))
        cases = [plant.replace(seed=seed) for seed in SEEDS]
        in_ns3, ours = run_link(cases, law), [simulate_packets(case, design=law) for case in cases]
        rates = [run.tables["signals"]["rate"] for run in in_ns3]
        driven = [simulate_rates(case, each) for case, each in zip(cases, rates, strict=True)]
        same = [
            alike(one.tables["signals"], other.tables["signals"]) for one, other in zip(in_ns3, driven, strict=True)
        ]
        computed[f"ns3-{'printed' if name == PRINTED else 'lqi'}-packets"] = float(np.mean(same))
        runs = {"packet engine": ours, in_ns3[0].simulator: in_ns3}
        of_runs = {which: [of_signals(law, each) for each in found] for which, found in runs.items()}
        shown |= {f"{name}, {which}": found[0] for which, found in of_runs.items()}
        packets, ns3 = (np.mean([means(run) for run in found], axis=0) for found in of_runs.values())
        rows += [(name, *requested, *packets[k], *ns3[k]) for k, requested in enumerate(CHANGING)]
        if name == LQI:
            apart = np.abs(ns3 / packets - 1.0)[FOLLOWED, :].max(axis=0)
            held = ns3[FOLLOWED, 0] / np.array(CHANGING)[FOLLOWED, 0] - 1.0
            computed |= dict(zip(("ns3-lqi-delay", "ns3-lqi-jitter", "ns3-lqi-rate"), apart.tolist(), strict=True))
            computed |= {"ns3-lqi-held": float(np.abs(held).max())}
    columns = ["law", "delay reference [ms]", "jitter reference [ms]"]
    for which in ("packet engine", "ns-3"):
        columns += [f"{what}, {which}" for what in ("delay [ms]", "jitter [ms]", "non-premium [Mbit/s]")]
    frame = pd.DataFrame(rows, columns=columns)
    frame[columns[3:]] = frame[columns[3:]].map(lambda value: f"{value:.4g}")
    lqi = {name: run for name, run in shown.items() if name.startswith(LQI)}
    said = "The loops part where another packet is lost; what they hold is the same."
    figure = picture("CONNET paper, Fig. 11, in two simulators", lqi, said, top=4.5)
    for axes in figure.axes:
        axes.lines[1].set(color="#b45f06", lw=0.8)
    figure.axes[0].legend(fontsize=8, ncols=3)
    return Outcome("ns3", "connet", table(shown), figure, computed, frame)


def means(run: Run) -> np.ndarray:
    """Delay, jitter [ms] and other traffic [Mbit/s] at each reference, once it is reached: (5, 3)."""
    columns = np.stack([run.mean_delay_ms, run.mean_jitter_ms, run.other_bit_per_s / 1e6])
    return columns.reshape(3, -1, SECONDS)[:, :, -COUNTED:].mean(axis=2).T


def alike(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> np.ndarray:
    """Periods in which two runs have the same throughput, and delays to 0.1 us."""
    return (np.abs(one["mean delay"] - other["mean delay"]) < EXACT_S) & (one["throughput"] == other["throughput"])
