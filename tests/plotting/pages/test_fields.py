"""A record's fields as rows: names, units by their names, long lists in short."""

from __future__ import annotations

import msgspec
import pytest

from netctrl.model.io.record_file import Record
from netctrl.plotting.pages.fields import field_rows


class Inner(Record, frozen=True):
    gain_margin_db: float | None
    rate_bit_per_s: float = 12.5e6
    marking_per_packet: float = 1.5e-5


class Outer(Record, frozen=True):
    inner: Inner
    stable: bool = True
    delay_s: float = 0.0125
    queue_bytes: tuple[float, ...] = tuple(float(k) for k in range(0, 5000, 100))
    pole: tuple[tuple[float, float], ...] = ((0.5, 0.25), (0.5, -0.25))
    parts: tuple[Inner, ...] = (Inner(gain_margin_db=6.0),)
    loads: dict[str, float] = msgspec.field(default_factory=dict)
    warnings: tuple[str, ...] = ("not shown",)


def test_rows_have_the_names_and_units_of_the_file() -> None:
    outer = Outer(inner=Inner(gain_margin_db=None), loads={f"l{k}": float(k) for k in range(20)})
    rows = dict(field_rows(outer, without=("warnings",)))
    assert rows == {
        "inner.gain_margin_db": "none",
        "inner.rate_bit_per_s": "12.5 Mbit/s",
        "inner.marking_per_packet": "1.5e-05 per packet",
        "stable": "yes",
        "delay_s": "12.5 ms",
        "queue_bytes": "50 values from 0 B to 4.9 kB",
        "pole": "(0.5, 0.25), (0.5, -0.25)",
        "parts.0.gain_margin_db": "6 dB",
        "parts.0.rate_bit_per_s": "12.5 Mbit/s",
        "parts.0.marking_per_packet": "1.5e-05 per packet",
        "loads": "20 values from 0 to 19",
    }


@pytest.mark.parametrize(("loads", "expected"), [({}, {}), ({"e1": 2.0}, {"loads.e1": "2"})], ids=["none", "few"])
def test_few_named_values_have_a_row_each(loads: dict[str, float], expected: dict[str, str]) -> None:
    rows = dict(field_rows(Outer(inner=Inner(gain_margin_db=1.0), loads=loads)))
    assert {name: text for name, text in rows.items() if name.startswith("loads")} == expected
