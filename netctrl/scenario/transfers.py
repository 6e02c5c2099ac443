"""Figures of what hosts transfer, from a result's tables: response times, slow-down by size, rates, queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from netctrl.core.units import BITS_PER_BYTE

SHORT_OBJECT_BYTES = 12e3
"""Response times are summarised for objects below this size (ARC paper, Fig. 9)."""
SIZE_BINS = (0.0, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 1e13)
"""Edges of sizes for the slow-down [byte]."""
_PERCENTILES = (("median", 50.0), ("95 %", 95.0), ("99 %", 99.0))

Columns = Mapping[str, np.ndarray]
"""Name of a column -> its values."""


def transfer_figures(
    rows: Columns, span: tuple[float, float], flows: Sequence[str]
) -> dict[tuple[str, str], np.ndarray]:
    """(Quantity, object) -> (1,), of the transfers that begin in this time.

    Parameters
    ----------
    rows : dict
        Table `transfers` of a result; with `ideal` the slow-down, too.
    span : tuple of float
        Beginning and end [s].
    flows : sequence of str
        Ids of the groups that the column `flow` numbers.
    """
    begun = (rows["start"] >= span[0]) & (rows["start"] < span[1])
    done = {name: column[begun & np.isfinite(rows["duration"])] for name, column in rows.items()}
    found: dict[tuple[str, str], float] = {}
    short = done["duration"][done["size"] < SHORT_OBJECT_BYTES]
    if len(short):
        found["response", "short objects"] = float(short.mean())
    for number in [] if "ideal" in rows else np.unique(done["flow"]):
        took = done["duration"][done["flow"] == number]
        found["response", flows[number]] = float(took.mean())
        found["response 95 %", flows[number]] = float(np.percentile(took, 95.0))
    if "ideal" in rows:
        found["begun", "transfers"] = float(np.count_nonzero(begun))
        found["completed", "transfers"] = float(len(done["size"]))
        for edges in ((SIZE_BINS[0], SIZE_BINS[-1]), *pairwise(SIZE_BINS)):
            for name, value in slow_downs(done, *edges).items():
                found[name, _of_size(*edges)] = value
    return {key: np.array([value]) for key, value in found.items()}


def _of_size(low: float, high: float) -> str:
    if high < SIZE_BINS[-1]:
        return f"transfers to {high / 1e3:g} kB"
    return f"transfers above {low / 1e3:g} kB" if low > 0.0 else "transfers"


def slow_down(rows: Columns) -> np.ndarray:
    """Duration over that of the transfer alone, at least 1, shape (F,); NaN where it isn't complete."""
    return rows["duration"] / rows["ideal"]


def slow_downs(rows: Columns, low: float = SIZE_BINS[0], high: float = SIZE_BINS[-1]) -> dict[str, float]:
    """Mean and percentiles of the slow-down of complete transfers above `low` to `high` bytes; empty without any."""
    slow, size = slow_down(rows), rows["size"]
    chosen = slow[np.isfinite(slow) & (size > low) & (size <= high)]
    if not len(chosen):
        return {}
    values = np.percentile(chosen, [share for _, share in _PERCENTILES]).tolist()
    names = [f"slow-down {name}" for name, _ in _PERCENTILES]
    return {"slow-down": float(chosen.mean()), **dict(zip(names, values, strict=True))}


def received_rates(rows: Columns) -> np.ndarray:
    """Rate at which each of V watched transfers received in each of B bins, shape (V, B) [bit/s].

    Parameters
    ----------
    rows : dict
        Table `received` of a result.
    """
    bins = len(np.unique(rows["time"]))
    if not bins:
        return np.zeros((0, 0))
    return BITS_PER_BYTE * rows["bytes"].reshape(-1, bins) / rows["time"][0]


def received_fairness(rows: Columns) -> np.ndarray:
    """Jain's index in each bin over the watched transfers that received data, shape (B,); NaN where none did."""
    return np.array([jain_index(column[column > 0]) for column in received_rates(rows).T])


def jain_index(values: np.ndarray) -> float:
    """Jain's fairness index (Σ x)²/(n Σ x²): 1 if all are equal, 1/n if one has all; NaN without values."""
    total = float(np.sum(values))
    return total * total / (len(values) * float(np.sum(np.square(values)))) if total > 0.0 else float("nan")


def queue_shares(rows: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Backlogs [byte], and the share of samples of all switch queues up to each of them.

    Parameters
    ----------
    rows : dict
        Table `queues` of a result.
    """
    return rows["backlog"], np.cumsum(rows["samples"]) / max(int(rows["samples"].sum()), 1)


def queue_quantile(rows: Columns, share: float) -> float:
    """Backlog that this share of samples of all switch queues doesn't exceed, to the width of a bin [byte].

    Parameters
    ----------
    rows : dict
        Table `queues` of a result.
    share : float
        From 0 to 1.
    """
    backlog, below = queue_shares(rows)
    return float(backlog[min(int(np.searchsorted(below, share)), len(backlog) - 1)])


def residual(counts: Columns) -> tuple[int, int]:
    """Packets and bytes sent that are neither received, dropped nor in flight: always zeros.

    Parameters
    ----------
    counts : dict
        Table `counts` of a result.
    """
    n = {name: int(column[0]) for name, column in counts.items()}
    packets = n["sent"] - n["received"] - n["dropped"] - n["under_way"]
    return packets, n["sent_bytes"] - n["received_bytes"] - n["dropped_bytes"] - n["under_way_bytes"]


def watched_figures(tables: Mapping[str, Columns]) -> dict[tuple[str, str], np.ndarray]:
    """(Quantity, object) -> (1,): quantiles of all switch queues, packets sent again, fairness of watched transfers."""
    found: dict[tuple[str, str], float] = {}
    if "queues" in tables:
        for name, share in _PERCENTILES:
            found[f"queue {name}", "network"] = queue_quantile(tables["queues"], share / 100.0)
    if "counts" in tables:
        found["packets sent again", "network"] = float(tables["counts"]["again"][0])
    fair = received_fairness(tables.get("received", {"time": np.zeros(0)}))
    if np.isfinite(fair).any():
        found["Jain's index", "watched transfers"] = float(np.nanmean(fair))
    return {key: np.array([value]) for key, value in found.items()}
