"""Pure delays: inputs are shifted by them, and the model gets one state a sample of delay instead of learning these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_whole
from netctrl.ident.data.flaws import Flaw
from netctrl.model.signals import SignalTrace

_MOST = 1000


def delays_of(asked: Any, trace: SignalTrace, found: Sequence[Flaw]) -> tuple[int, ...]:
    """Samples (m,) by which the inputs are delayed: as asked, or what all outputs respond to too late.

    A response after k samples is a delay of k − 1, as a state comes between input and output anyway.
    """
    if isinstance(asked, str) and asked == "auto":
        after = [[flaw.lag for flaw in found if flaw.kind == "delay" and flaw.other == name] for name in trace.inputs]
        return tuple(min(lags) - 1 if len(lags) == len(trace.outputs) else 0 for lags in after)
    takes = f"a number of samples from 0 to {_MOST} for each of {', '.join(trace.inputs)}, or 'auto'"
    given = [asked] * len(trace.inputs) if np.ndim(asked) == 0 else list(asked)
    if len(given) != len(trace.inputs):
        raise InvalidValue("delay", asked, takes)
    return tuple(checked_whole("delay", each, takes, at_least=0, at_most=_MOST) for each in given)


def shifted(trace: SignalTrace, delays: tuple[int, ...]) -> SignalTrace:
    """The trace with u_j(t − d_j) for u_j(t); outputs are missing where that is not known."""
    if not any(delays):
        return trace
    u, y = trace.input_values.copy(), trace.output_values.copy()
    for first, last in zip(trace.starts, [*trace.starts[1:], len(trace)], strict=True):
        for j, d in enumerate(delays):
            u[first : first + d, j] = u[first, j]
            u[first + d : last, j] = trace.input_values[first : max(last - d, first), j]
        y[first : min(first + max(delays), last)] = np.nan
    return replace(trace, input_values=u, output_values=y)


def chained(
    A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, K: np.ndarray | None, delays: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """A, B, C, D, K of the model of shifted inputs with the shifts as states, the oldest sample of each input first."""
    n, many = len(A), sum(delays)
    chain, fed = np.zeros((many, many)), np.zeros((many, B.shape[1]))
    to_state, to_output = np.zeros((n, many)), np.zeros((len(C), many))
    direct_B, direct_D = B.copy(), D.copy()
    at = 0
    for j, d in enumerate(delays):
        if d:
            chain[at : at + d, at : at + d] = np.eye(d, k=1)
            fed[at + d - 1, j] = 1.0
            to_state[:, at], to_output[:, at] = B[:, j], D[:, j]
            direct_B[:, j] = direct_D[:, j] = 0.0
            at += d
    return (
        np.block([[A, to_state], [np.zeros((many, n)), chain]]),
        np.vstack([direct_B, fed]),
        np.hstack([C, to_output]),
        direct_D,
        None if K is None else np.vstack([K, np.zeros((many, K.shape[1]))]),
    )
