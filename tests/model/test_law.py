"""Laws as data: their arrays can't be written, and a Design file keeps them row by row, if they aren't too many."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from netctrl.core.errors import InvalidValue
from netctrl.design.hftrac.design import hftrac
from netctrl.model.datasets import network_path
from netctrl.model.design.design import HftracDesign, read_design
from netctrl.model.law import AgedGain, FirColumns, FirGain, MyopicGain, StaticGain
from netctrl.model.network import read_network


def design(**options) -> HftracDesign:
    return hftrac(read_network(network_path("merge")), 0.01, mu=1.0, **options)


LAWS = {
    StaticGain: {"architecture": "god"},
    FirGain: {"architecture": "coordinated", "horizon": 24},
    AgedGain: {"architecture": "coordinated", "horizon": "exact"},
    MyopicGain: {"architecture": "myopic"},
}


def arrays(value: object) -> list[np.ndarray]:
    if isinstance(value, np.ndarray):
        return [value]
    parts = msgspec.structs.astuple(value) if isinstance(value, msgspec.Struct) else value
    return [array for part in parts for array in arrays(part)] if isinstance(parts, tuple) else []


@pytest.mark.parametrize("kind", LAWS)
def test_a_laws_arrays_are_read_only_however_it_was_made(kind, tmp_path: Path) -> None:
    made = design(**LAWS[kind])
    made.save(tmp_path / "design.json")
    for law in (made.law, read_design(tmp_path / "design.json").law):
        assert isinstance(law, kind)
        found = arrays(law)
        assert len(found) > 1
        assert not any(array.flags.writeable for array in found)


def test_who_makes_a_law_keeps_an_array_that_can_be_written() -> None:
    mine = np.zeros((2, 1, 3))
    FirColumns(links=np.array([0]), u=mine, b=mine)
    mine[0] = 1.0


@pytest.mark.parametrize("kind", LAWS)
def test_a_file_has_a_line_for_each_row_and_reads_back_as_it_was(kind, tmp_path: Path) -> None:
    made = design(**LAWS[kind])
    made.save(tmp_path / "design.json")
    again = read_design(tmp_path / "design.json")
    for one, other in zip(arrays(made.law), arrays(again.law), strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert again.to_json() == made.to_json()
    longest = max(arrays(made.law), key=np.size)
    assert longest.size > longest.shape[-1] or longest.ndim == 1
    row = msgspec.json.encode(longest.reshape(-1, longest.shape[-1])[0].tolist()).decode()
    assert any(row in line for line in made.to_json().splitlines())


def test_a_law_that_no_file_may_hold_is_refused_before_it_is_written(tmp_path: Path) -> None:
    made = design()
    many = np.broadcast_to(0.0, (3000, 1000, 1))
    column = FirColumns(links=np.array([0]), u=many, b=many)
    large = msgspec.structs.replace(made, law=msgspec.structs.replace(made.law, columns=(column,)))
    with pytest.raises(InvalidValue, match=r"^law: got '60\d{5} numbers', takes at most \d+ in a Design file"):
        large.save(tmp_path / "design.json")
    assert not list(tmp_path.iterdir())
