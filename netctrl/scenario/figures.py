"""Figures of results: quantities and their units, figures from totals, means with intervals, and their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from netctrl.core.errors import optional_import
from netctrl.core.units import BITS_PER_BYTE, format_quantity
from netctrl.model.io.record_file import Record
from netctrl.scenario.labelled import Labelled
from netctrl.scenario.network.track import infeasible

if TYPE_CHECKING:
    import pandas as pd

NETWORK = "network"
"""Name of the whole network among the objects of figures."""
_VERDICT = {
    "utilization": "{} used",
    "throughput": "{} carried",
    "loss": "{} lost",
    "lost bytes": "{} lost",
    "backlog": "{} waiting on average",
    "queue 99 %": "queues of at most {} for 99 % of the time",
    "delay": "delay {}",
    "jitter": "jitter {}",
}
"""Quantity -> its wording in a verdict."""
_SHOWN = 20
"""Largest number of links, and of flows, in a table."""
FIGURES = {
    **dict.fromkeys(("throughput", "goodput"), "bit/s"),
    **dict.fromkeys(("backlog", "backlog std", "backlog median", "backlog 95 %", "backlog most"), "B"),
    **dict.fromkeys(("delay", "jitter", "rtt", "response", "response 95 %", "paused"), "s"),
    **dict.fromkeys(("utilization", "loss", "marks", "resent"), "%"),
    **dict.fromkeys(("queue median", "queue 95 %", "queue 99 %"), "B"),
    "cost": "(bit/s)²",
}
"""Quantity of a figure -> its unit; %: a share from 0 to 1, shown in percent. Others are pure numbers."""
_OF_LINKS = {
    "backlog": "backlog",
    "backlog_std": "backlog std",
    "backlog_median": "backlog median",
    "backlog_95": "backlog 95 %",
    "backlog_most": "backlog most",
    "delay": "delay",
}
"""Quantity of a link -> its figure."""


class Estimate(Record, frozen=True):
    """A mean over independent samples of the traffic, and the half width of its 95 % interval by Student's t.

    Each run is a sample where traffic is drawn; for a trace only its disjoint windows are. Null for a single sample.
    """

    mean: float
    """Mean of the samples."""
    half_width: float | None
    """Half width of the mean's 95 % interval; null for a single sample."""


class Figure(Record, frozen=True):
    """One figure of a result, after the warm-up."""

    of: str
    """Id of a link or flow, or what else was measured, such as network."""
    quantity: str
    """What was measured, such as throughput."""
    unit: str
    """Unit; %: shares from 0 to 1; empty: a pure number."""
    mean: float
    """Mean over the runs."""
    half_width: float | None
    """Half width of the mean's 95 % interval; null for one run."""


def link_figures(total: Labelled, seconds: float) -> dict[str, np.ndarray]:
    """Quantity -> (R, L)."""
    found = {}
    if "departed" in total:
        rate = BITS_PER_BYTE * total["departed"] / seconds
        found["throughput"] = rate
        # Engines count a packet when its last bit has left: up to one packet more than fits between two readings.
        found["utilization"] = np.minimum(rate / total["capacity"], 1.0)
    found |= {word: total[name] for name, word in _OF_LINKS.items() if name in total}
    for name, word in (("lost", "loss"), ("marked", "marks")):
        if "arrived" in total and name in total:
            found[word] = ratio(total[name], total["arrived"])
    return found | {name: total[name] for name in ("probability", "drops", "pauses", "paused") if name in total}


def flow_figures(totals: Labelled, seconds: float) -> dict[str, np.ndarray]:
    """Quantity -> (R, G)."""
    total, found = totals.over("run", "flow"), {}
    for name, word in (("delivered", "throughput"), ("payload", "goodput")):
        if name in total:
            found[word] = BITS_PER_BYTE * total[name] / seconds
    names = {"rtt": "rtt", "one_way": "delay", "jitter": "jitter"}
    found |= {word: total[name] for name, word in names.items() if name in total}
    if "flow_lost" in total:
        found["loss"] = ratio(total["flow_lost"], total["offered"])
    if "resent" in total:
        found["resent"] = ratio(total["resent"], total["sent"])
    return found


def network_figures(total: Labelled, seconds: float) -> dict[str, np.ndarray]:
    """Quantity -> (R,): sums over links, and more where it is known what the whole network was offered."""
    found = {name: total[name].sum(axis=1) for name in ("drops", "pauses", "paused") if name in total}
    if "entered" not in total:
        return found
    found |= {
        "throughput": BITS_PER_BYTE * total["left"] / seconds,
        "backlog": total["backlog"].sum(axis=1),
        "loss": ratio(total["lost"].sum(axis=1), total["entered"]),
    }
    if "weight" in total:  # Σ_l E f_l² + mu_l E b_l², HFTraC (13)
        found["cost"] = total["rate_square"].sum(axis=1) + total["backlog_square"] @ total["weight"]
    return found


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Part over whole, 0 where the whole is 0, NaN where it isn't known."""
    return np.divide(part, whole, out=np.where(np.isnan(whole), np.nan, 0.0), where=whole > 0.0)


def estimate(values: np.ndarray, sample: np.ndarray | None = None) -> Estimate:
    """Mean of independent values, and the half width of its 95 % interval by Student's t.

    Values with the same index in `sample` are not independent: their mean counts as one value.
    """
    if sample is not None:
        _, row, count = np.unique(sample, return_inverse=True, return_counts=True)
        values = np.bincount(row, values) / count
    if len(values) < 2:
        return Estimate(mean=float(values.mean()), half_width=None)
    from scipy.special import stdtrit

    spread = float(values.std(ddof=1)) / sqrt(len(values))
    return Estimate(mean=float(values.mean()), half_width=float(stdtrit(len(values) - 1, 0.975)) * spread)


def estimate_text(quantity: str, mean: float, half_width: float | None) -> str:
    """A measure's mean as text, with the half width of its interval if that is above 0."""
    width = f" ± {quantity_text(quantity, half_width, 2)}" if half_width and half_width > 0.0 else ""
    return quantity_text(quantity, mean, 4) + width


def quantity_text(quantity: str, value: float, digits: int) -> str:
    """A measure's value as text, with its unit."""
    unit, short = FIGURES.get(quantity, ""), f"{value:.{digits}g}"
    if unit == "%":
        return f"{100.0 * value:.{digits}g} %"
    return format_quantity(float(short), unit) if unit in ("bit/s", "B", "s") else f"{short} {unit}".rstrip()


def verdict_text(measures: Mapping[tuple[str, str], float], links: Sequence[str]) -> str:
    """Main figures in one sentence: of the whole network, or of the link where each quantity is largest."""
    whole = {NETWORK} if any(of == NETWORK for _, of in measures) else set(links)
    parts = []
    for quantity, words in _VERDICT.items():
        found = {of: value for (name, of), value in measures.items() if name == quantity}
        values = {of: value for of, value in found.items() if of in whole} or found
        if not values or (quantity == "throughput" and parts):
            continue
        of = max(values, key=values.__getitem__)
        at = f" ({of})" if len(values) > 1 else ""
        parts.append(words.format(quantity_text(quantity, values[of], 4)) + at)
    return ", ".join(parts) or "nothing was measured"


def table_rows(
    figures: Sequence[Figure],
    links: Sequence[str],
    flows: Sequence[str],
    signals: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> list[tuple[str, str]]:
    """Rows of (name, text), one per object; of many links or flows those with the most losses; at last what a tracking
    law measured in the second half of the run, in its own units, and when its references were infeasible."""
    texts: dict[tuple[str, str], list[str]] = {}
    for each in figures:
        text = estimate_text(each.quantity, each.mean, each.half_width)
        row = "  of backlog" if each.quantity.startswith("backlog ") else ""
        texts.setdefault((each.of, row), []).append(f"{each.quantity.removeprefix('backlog ')} {text}")
    measures = {(each.quantity, each.of): each.mean for each in figures}

    def most(ids: Sequence[str]) -> list[str]:
        worst = sorted(ids, key=lambda of: [-measures.get((name, of), 0.0) for name in ("loss", "backlog")])
        return [of for of in ids if of in set(worst[:_SHOWN])]

    left_out = (set(links) | set(flows)) - set(most(links)) - set(most(flows))
    rows = [(row or of, ", ".join(text)) for (of, row), text in texts.items() if of not in left_out]
    for what, ids in (("links", links), ("flows", flows)):
        if len(ids) > _SHOWN:
            rows.append((what, f"{len(ids)}, of which those that lose the most are above"))
    for name in (column.removeprefix("measured ") for column in signals if column.startswith("measured ")):
        half = len(signals[f"measured {name}"]) // 2
        found, desired = (signals[f"{which} {name}"][half:].mean() for which in ("measured", "reference"))
        rows.append((f"{name}, second half", f"{found:.4g}, requested {desired:.4g}"))
    if "at limit" in signals:
        spans = infeasible(signals["at limit"], float(signals["time"][0]))
        rows += [("infeasible", f"{first:g} to {last:g} s") for first, last in spans]
    return rows


def samples_text(sample: np.ndarray) -> str:
    """Description of the samples behind the intervals, given each run's."""
    samples = len(np.unique(sample))
    if samples == 1:
        return "all on the same window of the trace: no interval"
    return "95 % intervals" + (f" over {samples} disjoint windows of the trace" if samples < len(sample) else "")


def by_object(name: str, ids: Sequence[str], figures: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """A DataFrame with one row per object (`name`) and one column per quantity: the mean over the runs."""
    with optional_import():
        import pandas as pd

    return pd.DataFrame({name: list(ids)} | {quantity: values.mean(axis=0) for quantity, values in figures.items()})


def fairness(total: Labelled) -> dict[tuple[str, str], np.ndarray]:
    """Jain's index (Σ x)²/(n Σ x²) of the throughputs of two or more flows, shape (R,), where all are known."""
    shares = total.over("run", "flow").get("delivered", np.zeros((0, 0)))
    if shares.shape[1] < 2 or not np.isfinite(shares).all():
        return {}
    return {("Jain's index", "flows"): ratio(shares.sum(axis=1) ** 2, shares.shape[1] * (shares**2).sum(axis=1))}
