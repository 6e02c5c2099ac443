"""Missing outputs: those that were not taken, and faulty ones, which are better left out than believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from netctrl.ident.data.flaws import Flaw, flaws
from netctrl.ident.search.learner import Candidate, Learner
from netctrl.ident.subspace.lq_reduction import Segment
from netctrl.ident.validate import predicted
from netctrl.model.signals import SignalTrace

_MOST = 0.5  # share of an output's samples that may be faulty; beyond, the "faults" are how the output is
_ORDER, _ROUNDS = 6, 3
_SETTLED = 1e-3  # of an output's deviation


def without_faults(trace: SignalTrace) -> tuple[SignalTrace, list[Flaw], list[str]]:
    """The trace with NaN where an output's flaws say so, the flaws, and what is said of them."""
    values, found = trace.output_values.copy(), flaws(trace)
    said = [flaw.sentence for flaw in found]
    for k, name in enumerate(trace.outputs):
        faults = [flaw.missing for flaw in found if flaw.channel == name and flaw.missing is not None]
        bad = np.logical_or.reduce([np.zeros(len(values), bool), *faults])
        if bad.any() and bad.mean() <= _MOST:
            values[bad, k] = np.nan
            said.append(f"{name}: {bad.sum()} faulty samples count as missing")
    return (replace(trace, output_values=values) if np.isnan(values).any() else trace), found, said


def completed(segments: Sequence[Segment], horizon: int) -> list[Segment]:
    """Segments with values in the place of missing outputs: interpolated, then predicted from the past.

    The predictor is that of a model of the values so far, and these follow the model: a few rounds settle them.

    Source: Dempster, Laird and Rubin 1977 (the rounds), with the mean of the missing values in the place of moments.
    """
    filled = [(u, np.column_stack([_interpolated(column) for column in y.T])) for u, y in segments]
    for _ in range(_ROUNDS):
        learner = Learner(segments, horizon, feedthrough=True, stable=False, filled=filled)
        order = min(_ORDER, learner.space("pbsid").most)
        model = learner.model(Candidate("pbsid", order, "likelihood", rough=True))
        if model is None:
            break
        moved = 0.0
        for k, (u, y) in enumerate(segments):
            told = predicted(model.matrices, model.K, [(u, y - model.offset)]) + model.offset
            after = np.where(np.isnan(y), np.where(np.isnan(told), filled[k][1], told), y)
            moved = max(moved, float(np.abs(after - filled[k][1]).max()))
            filled[k] = u, after
        if moved < _SETTLED:
            break
    return filled


def _interpolated(column: np.ndarray) -> np.ndarray:
    """Values between their neighbours; 0, the mean, where a segment has none."""
    there = np.isfinite(column)
    at = np.arange(len(column))
    return np.interp(at, at[there], column[there]) if there.any() else np.zeros(len(column))
