"""Distributions of the rates of demands in each interval: independent, with a long memory, or a trace's."""

from __future__ import annotations

from typing import Any

import msgspec

from netctrl.core.errors import InvalidValue
from netctrl.model.io.fields import Rate, flag, label, number, optional, rate, read_fields
from netctrl.model.io.record_file import Record


class _Traffic(Record, frozen=True, kw_only=True, tag_field="kind"):
    """Fields of all kinds of traffic. Negative rates are replaced by 0."""

    scale: float = 1.0
    """Mean traffic over the demand's `mean`, which is what controllers assume."""

    def __post_init__(self) -> None:
        read_fields(self, scale=number("a factor from 0 to 100 on what is sent", at_least=0.0, at_most=100.0))


class GaussianTraffic(_Traffic, frozen=True, kw_only=True, tag="gaussian"):
    """Independent normal rates with each demand's mean and std.

    Source: HFTraC paper, eq. (2).
    """


class TriangularTraffic(_Traffic, frozen=True, kw_only=True, tag="triangular"):
    """Independent rates, symmetrically triangular around the mean.

    Source: HFTraC paper, Fig. 10b.
    """

    half_width: Rate | None = None
    """Distance of the ends from the mean [bit/s]; null: √6 std, so that the standard deviation is std."""

    def __post_init__(self) -> None:
        super().__post_init__()
        read_fields(self, half_width=optional(rate))


class LongRangeTraffic(_Traffic, frozen=True, kw_only=True, tag="long-range"):
    """Normal rates with each demand's mean and std and a long memory: fractional Gaussian noise.

    A substitute for the CAIDA traces of the HFTraC paper, which aren't public.
    """

    hurst: float = 0.8
    """0.5 means no memory; values from 0.7 to 0.9 are reported for backbone traffic."""

    def __post_init__(self) -> None:
        super().__post_init__()
        read_fields(self, hurst=number("a Hurst parameter from 0.5 to below 1", at_least=0.5, at_most=0.999))


class TraceTraffic(_Traffic, frozen=True, kw_only=True, tag="trace"):
    """Measured rates of a trace, from a place drawn in each run; the trace repeats."""

    file: str
    """Name of a CSV, Parquet or pcap file for `netctrl.read`."""
    columns: dict[str, str] = msgspec.field(default_factory=dict)
    """Id of a demand -> column of the trace; by default the column with the demand's id."""
    fit: bool = True
    """Whether to scale each column to the mean of its demand."""

    def __post_init__(self) -> None:
        super().__post_init__()
        read_fields(self, file=_file, columns=_columns, fit=flag)


SPREADS = (GaussianTraffic, TriangularTraffic, LongRangeTraffic, TraceTraffic)
Spread = GaussianTraffic | TriangularTraffic | LongRangeTraffic | TraceTraffic
"""Every kind of traffic; in a file, `kind` selects it."""


def _file(field: str, value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidValue(field, value, "the name of a file")
    return value


def _columns(field: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InvalidValue(field, value, "a table from demand id to column")
    return {label(field, name): label(f"{field}.{name}", column) for name, column in value.items()}
