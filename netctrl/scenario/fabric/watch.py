"""Selection of a data centre's series to record."""

from __future__ import annotations

from typing import Any

from netctrl.core.errors import InvalidValue
from netctrl.model.io.fields import Duration, duration, read_fields, records, whole
from netctrl.model.io.record_file import Record


def _flows(field: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidValue(field, value, "a list of numbers of flows, from 0")
    numbers = tuple(whole(0, 2**31 - 1, "numbers of flows,")(field, each) for each in value)
    if len(set(numbers)) < len(numbers) or len(numbers) > 10_000:
        raise InvalidValue(field, value, "at most 10000 flows, without repetition")
    return numbers


class Watch(Record, frozen=True, kw_only=True):
    """Flows and ports whose series are recorded; ports every `interval` of the scenario's time."""

    flows: tuple[int, ...] = ()
    """Numbers of flows, in order of their start, whose acknowledgements are logged."""
    acknowledgements: int = 100_000
    """Largest number of logged acknowledgements, of all these flows together."""
    ports: tuple[str, ...] = ()
    """Switch ports whose queue is sampled, as "s0>s1" or "s1>h4"."""
    bin: Duration = 2e-3
    """Bin of the throughput of watched flows [s]."""

    def __post_init__(self) -> None:
        read_fields(self, flows=_flows, acknowledgements=whole(0, 10_000_000), ports=records(str), bin=duration)
