"""No control: a constant window, or none, and line rate."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from netctrl.laws.window.law import Acknowledged, Packet, Path, SchemeRecord, Telemetry, WindowLaw
from netctrl.model.io.fields import Size, optional, read_fields, size


class FixedWindow(SchemeRecord, frozen=True, kw_only=True, tag="fixed"):
    """No control: a window that stays, or none, and line rate."""

    window: Size | None = None
    """What may be under way [byte]; null: no limit."""

    def __post_init__(self) -> None:
        read_fields(self, window=optional(size))


class FixedParameters(NamedTuple):
    """It has none."""


class FixedState(NamedTuple):
    """State of a sender without control."""

    window: float
    """[byte]"""
    rate: float
    """[bit/s]"""


def fixed_step(state: FixedState, seen: Acknowledged, path: Path, p: FixedParameters) -> FixedState:
    """No control: all stays."""
    return state


def _start(scheme: FixedWindow, _: Path) -> float:
    return inf if scheme.window is None else scheme.window


def _read(_: FixedWindow, __: Packet) -> FixedParameters:
    return FixedParameters()


# Its packets carry telemetry as MPCC's do: in the thesis it is MPCC without its law.
FIXED = WindowLaw(FixedWindow, FixedParameters, FixedState, _read, fixed_step, start=_start, telemetry=Telemetry.FLOWS)
