"""Policers: token buckets without a queue."""

from __future__ import annotations

from netctrl.model.io.fields import Rate, Size, rate, read_fields, size
from netctrl.model.io.record_file import Record


class Policer(Record, frozen=True, kw_only=True):
    """Token bucket in front of a link's queue: packets that find too few tokens are dropped.

    Raises
    ------
    InvalidValue
        A value out of bounds.

    Examples
    --------
    >>> import netctrl
    >>> police = {"rate": "10Mbit", "burst": "60kB"}
    >>> netctrl.Link(id="line", source="a", target="b", capacity="100Mbit", policer=police).policer.rate
    10000000.0
    """

    rate: Rate
    """Rate of the tokens [bit/s]."""
    burst: Size
    """Size of the bucket [byte], which is full at first."""

    def __post_init__(self) -> None:
        read_fields(self, rate=rate, burst=size)
