"""Conversions of units, and the parser of "10Mbit", "500ms" and "200kB". Inside netctrl: seconds, bit/s, bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from netctrl.core.errors import checked_number

BITS_PER_BYTE = 8
METRES_PER_KM = 1000
MICROSECOND = 1e-6
NANOSECOND = 1e-9

_NUMBER = re.compile(r"\s*([0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([^\d\s].*?)?\s*")

# Lower case, as tc(8) ignores case. "bps" is left out because tc reads it as bytes per second.
_RATES = {
    name + tail: scale
    for tail in ("", "/s")
    for name, scale in {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}.items()
}
_MICRO = ("us", "\N{MICRO SIGN}s", "\N{GREEK SMALL LETTER MU}s")
_DURATIONS = {"s": 1.0, "ms": 1e-3, "ns": 1e-9, "min": 60.0} | dict.fromkeys(_MICRO, 1e-6)
_SIZES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30}

RATES, TIMES, SIZES = (1.0, 1e15), (1e-9, 1e9), (1.0, 1e15)
"""Least and greatest quantity [bit/s], [s], [byte]: wide enough for all networks, and products and quotients of a few
of these stay within the floats."""
_COUNTS = (5e-324, 1.7e308)
"""Anything above 0."""
_ROUNDING = 1e-12
_LONGEST_RTT_S = 10.0
"""Round-trip time of no path, not even by a satellite through a full buffer."""

RATE_TAKES = "a rate from 1bit to 1000Tbit with its unit (bit, kbit, Mbit, Gbit, Tbit), as in 10Mbit"
DURATION_TAKES = "a time above 0, from 1ns to 1e9s, with its unit (ns, us, ms, s, min), as in 500ms"
COUNT_TAKES = "a number above 0, as in 50"
SIZE_TAKES = "a size from 1B to 1e6GB in bytes or with its unit (B, kB, MB, GB, KiB, MiB, GiB), as in 1000 or 200kB"


def parse_rate(text: str, *, zero: bool = False) -> float:
    """A rate such as "10Mbit" or "10Mbit/s" in bit/s, with decimal prefixes; the unit is required.

    0 is accepted only with `zero`. Raises ValueError."""
    return _parse(text, _RATES, RATE_TAKES, RATES, zero=zero)


def parse_duration(text: str, *, zero: bool = False) -> float:
    """A time such as "500ms" in seconds; the unit is required, 0 is accepted only with `zero`. Raises ValueError."""
    return _parse(text, _DURATIONS, DURATION_TAKES, TIMES, zero=zero)


def parse_size(text: str, *, zero: bool = False, bare: bool = True) -> float:
    """A size such as "200kB" in bytes, or with `bare` a number of bytes; kB is 1000 bytes, KiB 1024.

    0 is accepted only with `zero`. Raises ValueError."""
    return _parse(text, _SIZES, SIZE_TAKES, SIZES, bare=1.0 if bare else None, zero=zero)


def parse_count(text: str) -> float:
    """A number above 0 without a unit. Raises ValueError."""
    return _parse(text, {}, COUNT_TAKES, _COUNTS, bare=1.0)


def parse_range(text: str, parse: Callable[[str], float]) -> tuple[float, float]:
    """Both ends of "60ms:500ms", each read by `parse`; a single value stands for both ends. Raises ValueError."""
    ends = [parse(part) for part in text.split(":")]
    if len(ends) > 2:
        raise ValueError(f"got {text!r}, takes one value or a range low:high")
    return ends[0], ends[-1]


def unit_scale(unit: str) -> float | None:
    """Size of a unit such as "Mbit/s" or "ms" in bit/s or s; None for any other text."""
    return _RATES.get(unit.lower(), _DURATIONS.get(unit.lower()))


def packets_per_second(rate_bit_per_s: Any, packet_size_bytes: Any) -> Any:
    """A rate in bit/s in packets of `packet_size_bytes` per second (arrays broadcast)."""
    return rate_bit_per_s / (BITS_PER_BYTE * packet_size_bytes)


def format_quantity(value: float, unit: str, digits: int | None = None) -> str:
    """A value as text with the SI prefix that keeps it between 1 and 1000: (1e7, "bit/s") gives "10 Mbit/s".

    With `digits` it is rounded to so many significant ones first, else 6 are shown.
    """
    if digits is not None:
        value = float(f"{value:.{digits}g}")
    prefixes = {"G": 1e9, "M": 1e6, "k": 1e3, "": 1.0, "m": 1e-3, "\N{MICRO SIGN}": 1e-6, "n": 1e-9}
    for prefix, scale in prefixes.items():
        if abs(value) >= scale * (1 - 1e-9) and not (unit == "s" and scale > 1.0):  # kiloseconds are unusual
            return f"{value / scale:.6g} {prefix}{unit}"
    return f"{value:.6g} {unit}"


def checked_quantity(argument: str, value: object, takes: str, limits: tuple[float, float]) -> float:
    """`value` as a float within `RATES`, `TIMES` or `SIZES`, else `InvalidValue` that names them and `argument`."""
    low, high = limits
    return checked_number(argument, value, f"{takes}, from {low:g} to {high:g}", at_least=low, at_most=high)


def long_rtt(rtt_s: float) -> tuple[str, ...]:
    """Warning of a round-trip time above 10 s; none for others."""
    if rtt_s <= _LONGEST_RTT_S:
        return ()
    return (f"no path has a round-trip time of {rtt_s:.6g} s: if it is in ms, give {rtt_s / 1e3:.6g} s",)


def _parse(
    text: str,
    units: dict[str, float],
    takes: str,
    limits: tuple[float, float],
    *,
    bare: float | None = None,
    zero: bool = False,
) -> float:
    match = _NUMBER.fullmatch(text)
    unit = match[2] if match else None
    scale = bare if unit is None else units.get(unit.lower())
    value = float(match[1]) * scale if match and scale is not None else math.nan
    low, high = limits[0] * (1.0 - _ROUNDING), limits[1] * (1.0 + _ROUNDING)
    if not (low <= value <= high or (zero and value == 0.0)):
        raise ValueError(f"got {text!r}, takes {takes}")
    return value
