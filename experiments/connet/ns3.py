"""CONNET paper, Fig. 11 in ns-3: the same laws, references and draws as in the FIFO simulator, beside it.

60 s at each reference, of which the last 40 count; two seeds. A minute of one core for each law.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from common import Outcome
from connet.fig10 import CHANGING
from connet.links import LQI, PRINTED, Run, laws, picture, stretch, table
from packets import run_link

from netctrl.model.law import LqgLaw
from netctrl.scenario.access.plan import AccessLinkTracking, access_link_plan
from netctrl.scenario.access.result import AccessLinkResult
from netctrl.scenario.access.scenario import access_link
from netctrl.sim.access.run import simulate_access_link
from netctrl.sim.access.track import track_access_link

SECONDS, COUNTED, SEEDS = 60, 40, (1, 2)
FOLLOWED = (0, 2, 3, 4)
"""The second reference can't be had."""
EXACT_MS = 1e-4


def main(*, full: bool = False) -> Outcome:
    reference = stretch(CHANGING, SECONDS)
    scenario = access_link(name="Fig. 11", duration=float(len(reference)))
    rows, shown, computed = [], {}, {}
    for name, law in laws().items():
        measured = "average" if isinstance(law, LqgLaw) else "period"
        in_ns3 = run_link(scenario, access_link_plan(scenario, law, reference, measured=measured), SEEDS)
        packets = [track_access_link(run.result.scenario, law, reference, measured=measured) for run in in_ns3]
        driven = [simulate_access_link(run.result.scenario, run.result.rate_bit_per_s) for run in in_ns3]
        same = [alike(run.result, other) for run, other in zip(in_ns3, driven, strict=True)]
        computed[f"ns3-{'printed' if name == PRINTED else 'lqi'}-packets"] = float(np.mean(same))
        shown |= {f"{name}, FIFO simulator": drawn(packets[0])}
        shown |= {f"{name}, {in_ns3[0].result.simulator}": drawn(in_ns3[0])}
        fifo, ns3 = (np.mean([means(run.result) for run in runs], axis=0) for runs in (packets, in_ns3))
        rows += [(name, *requested, *fifo[k], *ns3[k]) for k, requested in enumerate(CHANGING)]
        if name == LQI:
            apart = np.abs(ns3 / fifo - 1.0)[FOLLOWED, :].max(axis=0)
            held = ns3[FOLLOWED, 0] / np.array(CHANGING)[FOLLOWED, 0] - 1.0
            computed |= dict(zip(("ns3-lqi-delay", "ns3-lqi-jitter", "ns3-lqi-rate"), apart.tolist(), strict=True))
            computed |= {"ns3-lqi-held": float(np.abs(held).max())}
    columns = ["law", "delay reference [ms]", "jitter reference [ms]"]
    for which in ("FIFO simulator", "ns-3"):
        columns += [f"{what}, {which}" for what in ("delay [ms]", "jitter [ms]", "non-premium [Mbit/s]")]
    frame = pd.DataFrame(rows, columns=columns)
    frame[columns[3:]] = frame[columns[3:]].map(lambda value: f"{value:.4g}")
    lqi = {name: run for name, run in shown.items() if name.startswith(LQI)}
    said = "The loops part where it is of consequence which of two packets comes first; what they hold is the same."
    figure = picture("CONNET paper, Fig. 11, in two simulators", lqi, said, top=4.5)
    for axes in figure.axes:
        axes.lines[1].set(color="#b45f06", lw=0.8)
    figure.axes[0].legend(fontsize=8, ncols=3)
    return Outcome("ns3", "connet", table(shown), figure, computed, frame)


def drawn(tracking: AccessLinkTracking) -> Run:
    """A run as the pictures take it."""
    found, columns = tracking.result, ("time_s", "mean_delay_ms", "mean_jitter_ms", "rate_bit_per_s", "other_bit_per_s")
    series = (getattr(found, column) for column in columns)
    return Run(*series, tracking.reference, tracking.infeasible())


def means(result: AccessLinkResult) -> np.ndarray:
    """Delay, jitter [ms] and other traffic [Mbit/s] at each reference, once it is reached: (5, 3)."""
    columns = np.stack([result.mean_delay_ms, result.mean_jitter_ms, result.other_bit_per_s / 1e6])
    return columns.reshape(3, -1, SECONDS)[:, :, -COUNTED:].mean(axis=2).T


def alike(one: AccessLinkResult, other: AccessLinkResult) -> np.ndarray:
    """Periods in which two runs have the same packets, to the nanosecond."""
    counts = ("premium_received", "premium_lost", "other_lost", "other_bit_per_s")
    found = np.abs(one.mean_delay_ms - other.mean_delay_ms) < EXACT_MS
    for name in counts:
        found &= getattr(one, name) == getattr(other, name)
    return found
