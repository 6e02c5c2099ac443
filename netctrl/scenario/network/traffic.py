"""What demands send, from one sampling interval to the next: distributions, long memory, a trace."""

from __future__ import annotations

from typing import Any

import msgspec

from netctrl.errors import InvalidValue
from netctrl.model.io.fields import Rate, flag, label, number, optional, rate, read_fields

__all__ = ["TRAFFIC", "DemandTraffic", "GaussianTraffic", "LongRangeTraffic", "TraceTraffic", "TriangularTraffic"]

_SCALE_TAKES = "a factor from 0 to 100 on what is sent"


class _Traffic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """What all kinds have. Rates below 0 are 0."""

    scale: float = 1.0
    """What is sent on average over the demand's `mean`, which is what a controller believes."""

    def _read(self) -> None:
        read_fields(self, scale=number(_SCALE_TAKES, at_least=0.0, at_most=100.0))


class GaussianTraffic(_Traffic, frozen=True, kw_only=True, tag="gaussian"):
    """Independent normal rates with each demand's mean and std.

    Source: HFTraC paper, eq. (2).
    """

    def __post_init__(self) -> None:
        self._read()


class TriangularTraffic(_Traffic, frozen=True, kw_only=True, tag="triangular"):
    """Independent rates, symmetrically triangular around the mean.

    Source: HFTraC paper, Fig. 10b.
    """

    half_width: Rate | None = None
    """From the mean to either end [bit/s]; null: √6 std, so that the deviation is std."""

    def __post_init__(self) -> None:
        self._read()
        read_fields(self, half_width=optional(rate))


class LongRangeTraffic(_Traffic, frozen=True, kw_only=True, tag="long-range"):
    """Normal rates with each demand's mean and std and a long memory: fractional Gaussian noise.

    A stand-in for the CAIDA traces of the HFTraC paper, which aren't public.
    """

    hurst: float = 0.8
    """0.5 is no memory; backbone traffic is reported between 0.7 and 0.9."""

    def __post_init__(self) -> None:
        self._read()
        read_fields(self, hurst=number("a Hurst parameter from 0.5 to below 1", at_least=0.5, at_most=0.999))


class TraceTraffic(_Traffic, frozen=True, kw_only=True, tag="trace"):
    """Measured rates, from a place of the trace that each run draws, around and around."""

    file: str
    """CSV, Parquet or pcap, as `netctrl.read_trace` takes it."""
    columns: dict[str, str] = {}
    """Id of a demand -> column of the trace; for one that isn't named, the column of its own id."""
    fit: bool = True
    """Scale each column to the mean of its demand."""

    def __post_init__(self) -> None:
        self._read()
        read_fields(self, file=_file, columns=_columns, fit=flag)


TRAFFIC = (GaussianTraffic, TriangularTraffic, LongRangeTraffic, TraceTraffic)
DemandTraffic = GaussianTraffic | TriangularTraffic | LongRangeTraffic | TraceTraffic
"""Every kind; in a file, `kind` tells which."""


def _file(field: str, value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidValue(field, value, "the name of a file")
    return value


def _columns(field: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InvalidValue(field, value, "a table of columns by id of demand")
    return {label(field, name): label(f"{field}.{name}", column) for name, column in value.items()}
