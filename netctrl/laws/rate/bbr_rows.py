"""BBR on rows of numbers, as a rate sender's law."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.laws.rate.law import Allowed, RateLaw, Sample
from netctrl.laws.record import row_names, width
from netctrl.laws.tcp.bbr import BBR_CYCLE, BbrState, bbr_begin, bbr_step

__all__ = ["BBR_ROWS"]

_WINDOW = row_names(BbrState).index("window")


def _read(_: Any, random: np.random.Generator) -> tuple[np.ndarray, int]:
    """The cycle begins anywhere but in its drain."""
    place = int(random.integers(len(BBR_CYCLE) - 1))
    return np.array([float(place + (place > 0))]), width(BbrState)


def _begin(allowed: Allowed, state: np.ndarray, settings: np.ndarray, rtt: float, packet: float) -> None:
    state[:] = 0.0
    allowed.rate = bbr_begin(state, rtt, packet, settings[0])
    allowed.in_flight = state[_WINDOW]


def _step(allowed: Allowed, state: np.ndarray, settings: np.ndarray, sample: Sample) -> None:
    """What is in flight counts as before the acknowledgement, as in Linux (`prior_in_flight`)."""
    in_flight, sent, lost = sample.prior_in_flight, sample.sent, sample.lost
    allowed.rate = bbr_step(state, sample.time, sample.rtt, sample.delivered, in_flight, sent, lost, sample.packet)
    allowed.in_flight = state[_WINDOW]


BBR_ROWS = RateLaw(_read, _begin, _step)
