"""A sweep: grids of network scenarios, each run many times. A file says it; `cells` lists what it asks for."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from netctrl.errors import FileError, InvalidValue
from netctrl.model.io.fields import read_fields, records, whole
from netctrl.model.io.files import sha256
from netctrl.model.io.old_names import renewed, renewed_at
from netctrl.model.io.toml import read_toml
from netctrl.model.io.validation_errors import explained, shown
from netctrl.model.io.written_units import check_place, check_units
from netctrl.scenario.network.scenario import NetworkScenario, content_error, scenario_content, scenario_from_content

__all__ = ["FIGURES", "Cell", "Grid", "SweepSpec", "read_sweep"]

FIGURES = ("loss_ratio", "backlog_bytes", "throughput_bit_per_s", "max_link_utilization", "cost")
"""Of each run: lost of offered, mean of all backlogs together, what leaves the network, share of its capacity that the
busiest link uses, and the cost where links have weights (NaN else)."""

MAX_CELLS = 100_000
MAX_RUNS = 1_000_000

_COLUMNS = ("cell", "grid", "run", "runs", "sample", "samples", *FIGURES, *(f"{name}_half_width" for name in FIGURES))
_WITH_FILES = ("policy", "traffic")
_FILES = tuple(f"{table}.file" for table in _WITH_FILES)

Table = dict[str, Any]


class Grid(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Some of the cells: all combinations of the values in `over`, with `set` before them."""

    label: str = ""
    set: Table = {}
    """Place in the scenario, as in "policy.kind" -> value."""
    over: Table = {}
    """Place -> list of values."""

    def __post_init__(self) -> None:
        read_fields(self, set=_table, over=_values)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario of a sweep."""

    number: int
    label: str
    """Of its grid."""
    values: Table
    """Place -> value, of what varies; of a network and a file the name."""
    scenario: NetworkScenario

    @property
    def title(self) -> str:
        """Its grid and values, for people."""
        return _title(self.label, self.values)


class SweepSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is asked for: every cell of every grid, `runs` times.

    Run r of every cell meets the same traffic (common random numbers), so that policies differ by what they do.

    Raises
    ------
    InvalidValue
        No scenario can be made of a cell, too many are asked for, or a place has the name of a column of the table.
    """

    name: str
    scenario: Table
    """What all cells share: a NetworkScenario's fields."""
    runs: int = 20
    grid: tuple[Grid, ...] = ()
    """None is one cell, the scenario itself."""
    over: Table = {}
    """Place -> list of values, for all grids."""

    def __post_init__(self) -> None:
        read_fields(self, runs=whole(1, MAX_RUNS), scenario=_table, grid=records(Grid), over=_values)
        if not isinstance(self.name, str) or not 0 < len(self.name) <= 200 or not self.name.isprintable():
            raise InvalidValue("name", self.name, "printable text of 1 to 200 characters")
        for place in (place for over in (self.over, *(grid.over for grid in self.grid)) for place in over):
            if place in _COLUMNS:
                takes = f"places in the scenario; the table has columns {', '.join(_COLUMNS)} of its own"
                raise InvalidValue("over", place, takes)
        if self.n_cells > MAX_CELLS:
            raise InvalidValue("grid", f"{self.n_cells} cells", f"at most {MAX_CELLS}")

    def cells(self) -> Iterator[Cell]:
        """All cells, in order: grid by grid, the last place fastest.

        Raises
        ------
        InvalidValue
            A place that isn't there, or a value that the scenario can't have; names cell and place.
        """
        number = 0
        for i, grid in enumerate(self.grid or (Grid(),)):
            over = self.over | grid.over
            for chosen in product(*over.values()):
                values = dict(zip(over, chosen, strict=True))
                yield self._cell(number, f"grid[{i}]", grid, values)
                number += 1

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return sum(self._size(grid) for grid in self.grid or (Grid(),))

    def digest(self) -> str:
        """SHA-256 of all that the results depend on, files with their content, but for netctrl itself.

        Raises
        ------
        FileError
            A file that the sweep names can't be read.
        """
        # Of places the order matters, unlike that of other keys: by it cells are numbered and values are set.
        order = [[*self.over], *([*grid.set, *grid.over] for grid in self.grid)]
        return hashlib.sha256(msgspec.json.encode([self.portable(), order], order="sorted")).hexdigest()

    def portable(self) -> Table:
        """The same as plain data, but of files the name and the SHA-256 instead of where they are on this machine.

        Raises
        ------
        FileError
            A file that the sweep names can't be read.
        """
        return msgspec.to_builtins(_changed(self, lambda table: {key: _hashed(key, table[key]) for key in table}))

    def _size(self, grid: Grid) -> int:
        size = 1
        for values in (self.over | grid.over).values():
            size *= len(values)
        return size

    def _cell(self, number: int, where: str, grid: Grid, values: Table) -> Cell:
        content = copy.deepcopy(self.scenario)
        content.setdefault("name", self.name)
        named = {place: _named(place, value) for place, value in values.items()}
        try:
            for place, value in (grid.set | values).items():
                _put(content, place, copy.deepcopy(value))
            scenario = scenario_from_content(content)
        except InvalidValue as error:
            raise InvalidValue(f"{_title(where, named)}: {error.argument}", error.got, error.takes) from None
        return Cell(number=number, label=grid.label or where, values=named, scenario=scenario)


def read_sweep(path: str | os.PathLike[str], network_path: Callable[[str], Path] = Path) -> SweepSpec:
    """Read a sweep from a TOML file, strictly.

    Parameters
    ----------
    path : path
    network_path : callable
        Where the network of a name is; files are looked for beside the sweep's own.

    Raises
    ------
    FileError
        As from `netctrl.read_network_scenario`.
    """
    content = read_toml(path)
    try:
        spec = msgspec.convert(content, SweepSpec)
    except msgspec.ValidationError as error:
        raise FileError(path, explained(error, content, SweepSpec)) from None
    try:
        spec = _today(spec)
        _check_written(spec)
        spec = _resolved(spec, path, network_path)
        for _ in spec.cells():
            pass
    except InvalidValue as error:
        raise content_error(path, error) from None
    return spec


def _today(spec: SweepSpec) -> SweepSpec:
    """With today's keys."""

    def places(table: Table) -> Table:
        return dict(renewed_at(place, value, NetworkScenario) for place, value in table.items())

    def lists(table: Table) -> Table:
        one = {
            place: [renewed_at(place, value, NetworkScenario) for value in values] for place, values in table.items()
        }
        return {found[0][0]: [value for _, value in found] for found in one.values()}

    grid = tuple(msgspec.structs.replace(each, set=places(each.set), over=lists(each.over)) for each in spec.grid)
    scenario = renewed(spec.scenario, NetworkScenario)
    return msgspec.structs.replace(spec, scenario=scenario, grid=grid, over=lists(spec.over))


def _check_written(spec: SweepSpec) -> None:
    """Units stand in the file; before networks are read, since JSON fixes theirs."""
    check_units(spec.scenario, NetworkScenario, "scenario")
    for grid in (*spec.grid, Grid(over=spec.over)):
        for place, value in grid.set.items():
            check_place(place, value, NetworkScenario)
        for place, values in grid.over.items():
            for value in values:
                check_place(place, value, NetworkScenario)


def _table(field: str, value: Any) -> Table:
    """A copy, of plain data: records and numbers that were made in Python become what a file would have said."""
    try:
        plain = msgspec.to_builtins(value, builtin_types=(datetime, date, time), enc_hook=lambda each: each.tolist())
    except (TypeError, AttributeError, ValueError):
        raise InvalidValue(field, value, "a table of plain data: text, numbers, lists, tables") from None
    if not isinstance(plain, dict) or not all(isinstance(key, str) for key in plain):
        raise InvalidValue(field, value, "a table, from places to what stands there")
    return plain


def _values(field: str, value: Any) -> dict[str, list[Any]]:
    plain = _table(field, value)
    for place, values in plain.items():
        if not isinstance(values, list | tuple) or not values:
            raise InvalidValue(f"{field}.{place}", values, "a list with a value or more")
    return {place: list(values) for place, values in plain.items()}


def _resolved(spec: SweepSpec, path: str | os.PathLike[str], network_path: Callable[[str], Path]) -> SweepSpec:
    """With networks read and files found, wherever they are named."""
    return _changed(spec, lambda table: scenario_content(table, path, network_path))


def _changed(spec: SweepSpec, change: Callable[[Table], Table]) -> SweepSpec:
    """With each table of place -> value changed, those of `over` value by value."""

    def values(over: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {place: [change({place: value})[place] for value in values] for place, values in over.items()}

    grid = tuple(msgspec.structs.replace(each, set=change(each.set), over=values(each.over)) for each in spec.grid)
    return msgspec.structs.replace(spec, scenario=change(spec.scenario), grid=grid, over=values(spec.over))


def _hashed(place: str, value: Any) -> Any:
    """The value, or of a file its name and SHA-256, wherever a place leads to one."""
    if place in _FILES and isinstance(value, str) and value:
        return f"{Path(value).name} (SHA-256 {sha256(value)})"
    if place in _WITH_FILES and isinstance(value, dict):
        return {key: _hashed(f"{place}.{key}", each) for key, each in value.items()}
    return value


def _named(place: str, value: Any) -> Any:
    """The value, or of a network and a file the name: a table is read by people, on any machine."""
    if place == "network" and isinstance(value, dict):
        return value.get("name") or value
    if place in _FILES and isinstance(value, str):
        return Path(value).name
    if place in _WITH_FILES and isinstance(value, dict):
        return {key: _named(f"{place}.{key}", each) for key, each in value.items()}
    return value


def _title(where: str, values: Table) -> str:
    which = ", ".join(f"{place} = {shown(value)}" for place, value in values.items())
    return f"{where} ({which})" if which else where


def _put(content: Table, place: str, value: Any) -> None:
    """Set the value at "policy.mu", "network.links.e1.buffer", "network.links.e1,e2.buffer", "network.links.*.buffer".

    A table that isn't there is made; records in a list go by their ids.
    """
    *parents, last = place.split(".")
    if "" in (*parents, last):
        raise InvalidValue(place, place, "names with a dot between, as in policy.mu")
    targets: list[Any] = [content]
    for step, name in enumerate(parents):
        found: list[Any] = []
        for target in targets:
            found += _inside(target, name, ".".join(parents[: step + 1]))
        targets = found
    for target in targets:
        if not isinstance(target, dict):
            raise InvalidValue(place, shown(target), "a place inside a table")
        target[last] = value


def _inside(target: Any, name: str, where: str) -> list[Any]:
    if isinstance(target, dict):
        return [target.setdefault(name, {})]
    if isinstance(target, list | tuple):
        known = {each["id"]: each for each in target if isinstance(each, dict) and "id" in each}
        desired = list(known) if name == "*" else name.split(",")
        for each in desired:
            if each not in known:
                raise InvalidValue(
                    where, each, f"an id, several with commas between, or *; there are {', '.join(known)}"
                )
        return [known[each] for each in desired]
    raise InvalidValue(where, shown(target), "a place inside a table or a list of records")
