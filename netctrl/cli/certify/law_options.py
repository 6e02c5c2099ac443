"""Kinds of options of queues' laws, for `netctrl certify` and `netctrl design`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from netctrl.cli.options import SIZE, TIME, Kind, kind, option, whole
from netctrl.core.errors import InvalidValue
from netctrl.core.units import DURATION_TAKES, parse_count

HZ_TAKES = "CONFIG_HZ of the kernel: 100, 250, 300 or 1000"
TARGET_TAKES = f"target of the queueing delay: {DURATION_TAKES}"
TUPDATE_TAKES = f"between two updates: {DURATION_TAKES}"
_COUPLING_TAKES = "a whole factor above 0, as in 2"
_GAIN_TAKES = "a gain above 0 in 1/s, as in 0.16"
_TC_TAKES = "a gain in sixteenths of 1/s as tc takes it, as in 2, or in 1/s with its unit, as in 0.125Hz"
_ZERO = re.compile(r"0+(\.0*)?(hz)?", re.IGNORECASE)


def _sixteenths(text: str) -> float:
    return parse_count(text[:-2]) if text.lower().endswith("hz") else parse_count(text) / 16.0


def _whole_bytes(text: str) -> int:
    size = SIZE.read(text)
    if size != int(size):
        raise InvalidValue("", text, "a whole number of bytes")
    return int(size)


def _or_0(gain: Kind) -> Kind:
    return Kind(gain.metavar, lambda text: 0.0 if _ZERO.fullmatch(text.strip()) else gain.read(text))


HZ = whole("NUMBER", HZ_TAKES)
BURST = whole("NUMBER", "a whole number of packets, as in 55")
BYTES = Kind("SIZE", _whole_bytes)
GAIN = kind("GAIN", lambda text: parse_count(text.lower().removesuffix("hz")), _GAIN_TAKES)
TC_GAIN = kind("GAIN", _sixteenths, _TC_TAKES)
BETA, TC_BETA = _or_0(GAIN), _or_0(TC_GAIN)
_COUPLING = whole("NUMBER", _COUPLING_TAKES)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TwoQueues:
    """Parameters of DualPI2 beside its PI law."""

    coupling: Annotated[
        int,
        _COUPLING(f"from p' to the scalable queue's probability: {_COUPLING_TAKES}", "--coupling-factor", default="2"),
    ] = 2
    step_s: Annotated[float, TIME(f"step of the scalable queue: {DURATION_TAKES}", "--step-thresh", default="1ms")] = (
        0.001
    )
    drop_early: Annotated[bool, option("", "packets are chosen as they come, not as they leave")] = False
