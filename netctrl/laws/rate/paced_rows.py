"""Pacing laws on rows of numbers, as a rate sender's law.

Settings are: whether the law is the own-rate one, how many its parameters are, these, and its first state.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from netctrl.laws.pacing.arx import ArxState, arx_step
from netctrl.laws.pacing.own_rate import own_rate_step
from netctrl.laws.pacing.own_rate_state import OwnRateState
from netctrl.laws.pacing.pacing import pacer, start_pacing
from netctrl.laws.rate.law import Allowed, RateLaw, Sample
from netctrl.laws.record import row_names
from netctrl.model.law import OwnRatePacer

_FIRST = 2
_RATE = row_names(ArxState).index("rate")  # the same place in all laws' states
_MAX_IN_FLIGHT = row_names(OwnRateState).index("most_in_flight")


def _read(record: Any, _: np.random.Generator) -> tuple[np.ndarray, int]:
    law = record.pacer()
    ready, start = pacer(law), start_pacing(law).values
    own = float(isinstance(law, OwnRatePacer))
    return np.concatenate([[own, len(ready.settings)], ready.settings, start]), len(start)


def _begin(allowed: Allowed, state: np.ndarray, settings: np.ndarray, rtt: float, packet: float) -> None:
    first = _FIRST + int(settings[1])
    for k in range(min(len(settings) - first, len(state))):
        state[k] = settings[first + k]
    allowed.rate = state[_RATE] / 8.0
    allowed.in_flight = inf


def _step(allowed: Allowed, state: np.ndarray, settings: np.ndarray, sample: Sample) -> None:
    parameters = settings[_FIRST:]
    if settings[0] == 0.0:
        allowed.rate = arx_step(state, parameters, sample.time, sample.rtt) / 8.0
    else:
        given = (sample.time, sample.rtt, sample.delivered, sample.in_flight, sample.lost, sample.marked)
        allowed.rate = own_rate_step(state, parameters, *given) / 8.0
        allowed.in_flight = state[_MAX_IN_FLIGHT]


PACED_ROWS = RateLaw(_read, _begin, _step)
