"""The only conversions and the only parser of "10Mbit", "500ms", "200kB". Inside: seconds, bit/s, bytes."""

from __future__ import annotations

import re

from netctrl.errors import InvalidValue, checked_number

__all__ = [
    "BITS_PER_BYTE",
    "format_quantity",
    "packets_per_second",
    "parse_count",
    "parse_duration",
    "parse_range",
    "parse_rate",
    "parse_size",
]

BITS_PER_BYTE = 8

_NUMBER = re.compile(r"\s*([0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([^\d\s].*?)?\s*")

# Lower case, as tc(8) ignores case. "bps" is left out on purpose: tc takes it as bytes per second.
_RATES = {
    name + tail: scale
    for tail in ("", "/s")
    for name, scale in {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}.items()
}
_DURATIONS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0}
_SIZES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30}

RATE_TAKES = "a rate above 0 with its unit (bit, kbit, Mbit, Gbit, Tbit), as in 10Mbit"
DURATION_TAKES = "a time above 0 with its unit (ns, us, ms, s, min), as in 500ms"
SIZE_TAKES = "a size in bytes or with its unit (B, kB, MB, GB, KiB, MiB, GiB), as in 1000 or 200kB"


def parse_rate(text: str, argument: str = "rate") -> float:
    """A rate such as "10Mbit" (or "10Mbit/s") in bit/s; decimal prefixes, the unit is required."""
    return _parse(text, argument, _RATES, RATE_TAKES)


def parse_duration(text: str, argument: str = "duration") -> float:
    """A time such as "500ms" in seconds; the unit is required."""
    return _parse(text, argument, _DURATIONS, DURATION_TAKES)


def parse_size(text: str, argument: str = "size") -> float:
    """A size such as "200kB" (or a bare number of bytes) in bytes. kB is 1000 bytes, KiB 1024."""
    return _parse(text, argument, _SIZES, SIZE_TAKES, bare=1.0)


def parse_count(text: str, argument: str = "count", takes: str = "a number above 0, as in 50") -> float:
    """A plain positive number without a unit."""
    return _parse(text, argument, {}, takes, bare=1.0)


def parse_range(text: str, parse, argument: str, takes: str) -> tuple[float, float]:
    """ "60ms:500ms" as (0.06, 0.5), a single value as both ends; each end by `parse(text, argument)`."""
    parts = text.split(":")
    try:
        ends = [parse(part, argument) for part in parts]
    except InvalidValue:
        raise InvalidValue(argument, text, takes) from None
    if len(ends) > 2:
        raise InvalidValue(argument, text, takes)
    low, high = ends[0], ends[-1]
    if low > high:
        raise InvalidValue(argument, text, f"a range low:high with low <= high (this one is empty): {takes}")
    return low, high


def packets_per_second(rate_bit_per_s, packet_size_bytes):
    """A rate in bit/s as packets of `packet_size_bytes` per second (arrays broadcast)."""
    return rate_bit_per_s / (BITS_PER_BYTE * packet_size_bytes)


def format_quantity(value: float, unit: str) -> str:
    """A value for people, with the SI prefix that keeps it between 1 and 1000: (1e7, "bit/s") gives "10 Mbit/s"."""
    for scale, prefix in (
        (1e9, "G"),
        (1e6, "M"),
        (1e3, "k"),
        (1.0, ""),
        (1e-3, "m"),
        (1e-6, "µ"),
        (1e-9, "n"),
    ):
        if abs(value) >= scale * (1 - 1e-9):
            return f"{value / scale:.6g} {prefix}{unit}"
    return f"{value:.6g} {unit}"


def _parse(text: str, argument: str, units: dict[str, float], takes: str, bare: float | None = None) -> float:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InvalidValue(argument, text, takes)
    unit = match[2]
    scale = bare if unit is None else units.get(unit.lower())
    if scale is None:
        raise InvalidValue(argument, text, takes)
    checked_number(argument, float(match[1]) * scale, takes, above=0.0)
    return float(match[1]) * scale
