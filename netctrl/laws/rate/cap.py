"""Fixed rate, alone or as a cap on a window."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.rate.law import Allowed, RateLaw, RateSender, Sample, SenderRecord
from netctrl.model.io.fields import Rate, rate, read_fields


class CapSender(SenderRecord, frozen=True, kw_only=True, tag="cap"):
    """A fixed rate, whatever is lost, or a cap on what a window sends."""

    rate: Rate
    """Greatest rate, of whole packets [bit/s]."""
    window: str | None = None
    """A registered window law; null: nothing but the rate."""

    def __post_init__(self) -> None:
        read_fields(self, rate=rate)


def _read(record: Any, _: np.random.Generator) -> tuple[np.ndarray, int]:
    return np.array([record.rate / BITS_PER_BYTE]), 1


def _begin(allowed: Allowed, state: np.ndarray, settings: np.ndarray, rtt: float, packet: float) -> None:
    allowed.rate = settings[0]
    allowed.in_flight = inf


def _step(allowed: Allowed, state: np.ndarray, settings: np.ndarray, sample: Sample) -> None:
    """It is what it was."""


CAP = RateSender(CapSender, lambda: RateLaw(_read, _begin, _step))
