"""MPCC thesis, Figs. 5.6 to 5.9, from the kept runs of `fat_tree.py`: queues and slow-downs of all schemes."""

from itertools import pairwise, product

import numpy as np
import pandas as pd
from common import Measured, Outcome, over_runs, verdicts
from matplotlib.figure import Figure
from mpcc.fat_tree import CLASSES, LOADS, QUANTILES, SCHEMES, SENDING, STUDY

from netctrl.scenario.figures import estimate
from netctrl.scenario.transfers import SIZE_BINS

CASES = tuple(product(SENDING, LOADS, (False, True)))
KEYS = ["sizes", "load", "with_incast"]


def of_case(frame: pd.DataFrame, case: tuple[str, float, bool], scheme: str) -> pd.DataFrame:
    sizes, load, incast = case
    return frame[
        (frame.sizes == sizes) & (frame.load == load) & (frame.with_incast == incast) & (frame.scheme == scheme)
    ]


def in_class(slow: pd.DataFrame, low: float, high: float) -> pd.DataFrame:
    return slow[(slow.low == low) & (slow.high == high) & ~slow.incast_flows]


def text(values: pd.Series) -> str:
    """Mean over seeds and the half width of its 95 % interval."""
    found = estimate(values.to_numpy(float))
    return f"{found.mean:.3g} ± {found.half_width or 0.0:.2g}"


def slow_down_table(slow: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for case, scheme in product(CASES, SCHEMES):
        row: dict[str, object] = {"flows": case[0], "load": f"{case[1]:.0%}", "incast": "yes" if case[2] else "no"}
        row["scheme"] = scheme
        for low, high in pairwise(CLASSES):
            chosen = in_class(of_case(slow, case, scheme), low, high)
            label = f"to {high / 1e3:g} kB" if high < CLASSES[-1] else f"above {low / 1e3:g} kB"
            for column, name in (("median", "median"), ("p95", "95 %"), ("p99", "99 %")):
                row[f"{label}, {name}"] = text(chosen[column])
        rows.append(row)
    return pd.DataFrame(rows)


def wins(slow: pd.DataFrame, ours: str, peer: str, classes: slice, column: str = "p95") -> float:
    """Share of cases and size classes in which the mean over seeds of `ours` is below the peer's."""
    below = []
    pairs = list(pairwise(CLASSES))[classes]
    for case, (low, high) in product(CASES, pairs):
        first, second = (in_class(of_case(slow, case, name), low, high)[column].mean() for name in (ours, peer))
        below.append(first < second)
    return float(np.mean(below))


def median_ratio(slow: pd.DataFrame, ours: str, peer: str, classes: slice) -> Measured:
    """Median over cases and size classes of our 95 % slow-down over the peer's; seed by seed."""

    def of_seed(one: pd.DataFrame) -> float:
        pairs = product(CASES, list(pairwise(CLASSES))[classes])
        both = [
            [in_class(of_case(one, case, name), *size)["p95"].mean() for name in (ours, peer)] for case, size in pairs
        ]
        first, second = np.array(both).T
        return float(np.median(first / second))

    return over_runs(slow, of_seed)


def main(*, full: bool = False) -> Outcome:
    slow, queues = STUDY.read(), STUDY.read("-queues")
    computed: dict[str, float | Measured] = {}
    for peer in ("TIMELY", "DCQCN"):
        computed[f"fig57-all-{peer.lower()}"] = wins(slow, "MPCC", peer, slice(None))
    for peer in ("HPCC", "DCTCP"):
        computed[f"fig57-small-{peer.lower()}"] = wins(slow, "MPCC", peer, slice(0, 1))
        computed[f"fig57-large-{peer.lower()}"] = median_ratio(slow, "MPCC", peer, slice(1, None))
    computed["ours-delayed"] = wins(slow, "MPCC, delayed", "MPCC", slice(None))
    computed["ours-feed-forward"] = wins(slow, "MPCC, feed-forward", "MPCC", slice(None))
    mean = queues.groupby([*KEYS, "scheme"])["queue_q99_bytes"].mean().unstack()
    peers = mean[["HPCC", "DCTCP", "TIMELY", "DCQCN"]].min(axis=1)
    computed["fig56-queue"] = float((mean["MPCC"] <= peers).mean())
    return Outcome("fig06", "mpcc", slow, picture(slow, queues), computed, slow_down_table(slow))


def picture(slow: pd.DataFrame, queues: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(17.0, 15.0), layout="constrained")
    panels = figure.subplots(4, 4)
    for place, case in enumerate(CASES):
        row, column = 2 * (place // 4), place % 4
        for number, scheme in enumerate(SCHEMES):
            of = of_case(slow, case, scheme)
            bins = of[~of.incast_flows & of.low.isin(SIZE_BINS) & of.high.isin(SIZE_BINS[1:])]
            edges = dict(pairwise(SIZE_BINS))
            mean = bins[bins.high == bins.low.map(edges)].groupby("high")["p95"].mean()
            size = np.minimum(mean.index.to_numpy(), 3e7) / 1e3
            panels[row, column].plot(size, mean, "o-", ms=3, lw=1.0, color=f"C{number}", label=scheme)
            held = of_case(queues, case, scheme)
            quantiles = [held[f"queue_q{100 * share:g}_bytes"].mean() / 1e3 for share in QUANTILES]
            panels[row + 1, column].plot(quantiles, 1.0 - np.array(QUANTILES), "o-", ms=3, lw=1.0, color=f"C{number}")
        name = f"{case[0]}, {case[1]:.0%}{', incast' if case[2] else ''}"
        panels[row, column].set(
            title=name, xscale="log", yscale="log", xlabel="flows up to [kB]", ylabel="95 % slow-down"
        )
        panels[row + 1, column].set(xlabel="switch queue [kB]", ylabel="share of samples above")
        panels[row + 1, column].set(xscale="symlog", yscale="log")
    for axes in panels.ravel():
        axes.grid(color="#dddddd", lw=0.6)
    panels[0, 0].legend(fontsize=8)
    figure.suptitle(
        "MPCC thesis, section 5.4 (Figs. 5.6 to 5.9): fat tree of 16 hosts, means over five seeds", fontsize=11
    )
    figure.supxlabel(verdicts("mpcc", "Fig. 5.6, Fig. 5.8", "Fig. 5.7, Fig. 5.9"), fontsize=9)
    return figure
