"""Sweeps: grids of scenarios, each run many times. `cells` lists the scenarios of a sweep's file."""

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

from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.files import beside, sha256
from netctrl.model.io.fields import read_fields, records, whole
from netctrl.model.io.toml import check_place, check_units, read_toml
from netctrl.model.io.validation_errors import explained, shown
from netctrl.scenario.files import GRAPH, scenario_from, with_files, with_names, with_traces, without_schema
from netctrl.scenario.scenario import Scenario

FIGURES = ("loss_ratio", "backlog_bytes", "throughput_bit_per_s", "max_link_utilization", "cost")
"""Figures of each run under demands: lost share of the offered traffic, mean sum of all backlogs, traffic that
leaves the network, utilization of the busiest link, and the cost where links have weights (else NaN)."""

MAX_CELLS = 100_000
MAX_RUNS = 1_000_000

_COLUMNS = ("cell", "grid", "run", "runs", "sample", "samples", *FIGURES, *(f"{name}_half_width" for name in FIGURES))
_KEYS = "keys of the scenario"

Table = dict[str, Any]


class Grid(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A group of cells: all combinations of the values in `over`, after the settings in `set`."""

    label: str = ""
    """Name of the grid: column `grid` of the table."""
    set: Table = {}
    """Path in the scenario, as in "control.kind" -> value."""
    over: Table = {}
    """Path -> list of values."""

    def __post_init__(self) -> None:
        read_fields(self, set=_table, over=_values)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario of a sweep."""

    number: int
    label: str
    """Label of its grid."""
    values: Table
    """Path -> value, of what varies; graphs and files by name."""
    scenario: Scenario

    @property
    def title(self) -> str:
        """Grid and values as text."""
        return _title(self.label, self.values)


class SweepSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A parameter sweep: every cell of every grid, run several times.

    Run r of every cell has the same traffic (common random numbers), so that policies can be compared: run r of a
    scenario under demands, else the run with the scenario's seed plus r.

    Raises
    ------
    InvalidValue
        A cell that isn't a valid scenario, too many cells, or a path with the name of one of the table's columns.

    Examples
    --------
    >>> import netctrl
    >>> network = {"kind": "routed", "graph": netctrl.read("merge")}
    >>> policy = {"kind": "static", "factor": 1.1}
    >>> shared = {"network": network, "control": policy, "duration": "5s", "interval": "10ms"}
    >>> spec = netctrl.SweepSpec(name="factors", scenario=shared, over={"control.factor": [1.05, 1.1, 1.2]})
    >>> spec.n_cells, next(spec.cells()).scenario.control.factor
    (3, 1.05)
    """

    name: str
    """Display name of the sweep."""
    scenario: Table
    """Part that all cells share: the content of a scenario, as in its file."""
    runs: int = 20
    """Number of runs of each cell."""
    engine: str = "auto"
    """"fluid", "packet", "ns3", ..., or "auto": for each cell the first that supports it."""
    grid: tuple[Grid, ...] = ()
    """Grids of cells; without any, the scenario itself is the only cell."""
    over: Table = {}
    """Path in the scenario, such as "control.mu" -> list of values, for all grids."""

    def __post_init__(self) -> None:
        read_fields(self, runs=whole(1, MAX_RUNS), scenario=_table, grid=records(Grid), over=_values)
        if not isinstance(self.engine, str):
            raise InvalidValue("engine", self.engine, "the name of an engine, or auto")
        if not isinstance(self.name, str) or not 0 < len(self.name) <= 200 or not self.name.isprintable():
            raise InvalidValue("name", self.name, "printable text of 1 to 200 characters")
        for place in (place for over in (self.over, *(grid.over for grid in self.grid)) for place in over):
            if place in _COLUMNS:
                takes = f"places in the scenario; the table has columns {', '.join(_COLUMNS)} of its own"
                raise InvalidValue("over", place, takes)
        if self.n_cells > MAX_CELLS:
            raise InvalidValue("grid", f"{self.n_cells} cells", f"at most {MAX_CELLS}")

    def cells(self) -> Iterator[Cell]:
        """All cells, in order: grid by grid, with the last place varying fastest.

        Raises
        ------
        InvalidValue
            An unknown path, or a value that the scenario can't have; the message names cell and path.
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
        """Number of cells."""
        return sum(self._size(grid) for grid in self.grid or (Grid(),))

    def digest(self) -> str:
        """SHA-256 of everything that the results depend on, including the content of files, except netctrl itself.

        Raises
        ------
        FileError
            A file that the sweep names can't be read.
        """
        # Unlike that of other keys, the order of paths matters: it numbers the cells and orders the settings.
        order = [[*self.over], *([*grid.set, *grid.over] for grid in self.grid)]
        return hashlib.sha256(msgspec.json.encode([self.portable(), order], order="sorted")).hexdigest()

    def portable(self) -> Table:
        """The sweep as plain data, with each file's name and SHA-256 in place of its path.

        Raises
        ------
        FileError
            A file that the sweep names can't be read.
        """
        # The value with each file replaced by its name and SHA-256.
        return msgspec.to_builtins(
            _changed(
                self,
                lambda place, value: (
                    place,
                    with_names(place, value, lambda _, name: f"{Path(name).name} (SHA-256 {sha256(name)})"),
                ),
            )
        )

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
            scenario = _scenario(content)
        except InvalidValue as error:
            raise InvalidValue(f"{_title(where, named)}: {error.argument}", error.got, error.takes) from None
        return Cell(number=number, label=grid.label or where, values=named, scenario=scenario)


def read_sweep(
    path: str | os.PathLike[str],
    network_path: Callable[[str], Path] = Path,
    scenario_path: Callable[[str], Path] = Path,
) -> SweepSpec:
    """Read a sweep from a TOML file, strictly.

    Parameters
    ----------
    path : path
        File of the sweep; its `scenario` is a table, a scenario's file beside it, or a scenario's name.
    network_path : callable
        Function from a graph's name to its file; files are looked for beside the sweep's own.
    scenario_path : callable
        Function from a scenario's name to its file.

    Raises
    ------
    FileError
        As for `netctrl.read`.
    """
    content = read_toml(path)
    named = isinstance(content.get("scenario"), str)
    if named:
        content["scenario"] = _of_name(path, content["scenario"], network_path, scenario_path)
    try:
        spec = msgspec.convert(content, SweepSpec)
    except msgspec.ValidationError as error:
        raise FileError(path, explained(error, content, SweepSpec)) from None
    try:
        if not named:
            check_units(spec.scenario, Scenario, "scenario")
        _check_written(spec)
        spec = _changed(spec, lambda place, value: (place, with_files(value, path, network_path, place)))
        for _ in spec.cells():
            pass
    except InvalidValue as error:
        raise _of_file(path, error) from None
    return spec


def _of_name(
    path: str | os.PathLike[str], name: str, network_path: Callable[[str], Path], scenario_path: Callable[[str], Path]
) -> Table:
    """Content of a scenario's file, with graphs read and files beside it."""
    file = beside(path, name)
    try:
        file = file if file.is_file() else scenario_path(name)
        content = without_schema(file, read_toml(file))
        check_units(content, Scenario, "scenario")
    except InvalidValue as error:
        raise _of_file(path, error) from None
    return with_files(content, file, network_path)


def _scenario(content: Table) -> Scenario:
    """The scenario from plain dicts and lists; InvalidValue names the key."""
    try:
        return scenario_from(with_traces(content))
    except msgspec.ValidationError as error:
        said = explained(error, content, Scenario)
        if isinstance(error.__cause__, InvalidValue):
            cause = error.__cause__
            raise InvalidValue(said.partition(": got ")[0], cause.got, cause.takes) from None
        raise InvalidValue(_KEYS, said, "those of Scenario") from None


def _of_file(path: str | os.PathLike[str], error: InvalidValue) -> FileError:
    """The error of a cell, restated for the sweep's file."""
    before, found, _ = error.argument.partition(_KEYS)
    if found:  # a whole sentence about a key
        return FileError(path, f"{before}{error.got}")
    return FileError(path, f"{error.argument}: got {shown(error.got)}, takes {error.takes}")


def _check_written(spec: SweepSpec) -> None:
    """Check that values of the grid have units; done before graphs are read, whose JSON fixes the units."""
    for grid in (*spec.grid, Grid(over=spec.over)):
        for place, value in grid.set.items():
            check_place(place, value, Scenario)
        for place, values in grid.over.items():
            for value in values:
                check_place(place, value, Scenario)


def _table(field: str, value: Any) -> Table:
    """A copy as plain data: records and numbers from Python become what a file would contain."""
    try:
        plain = msgspec.to_builtins(value, builtin_types=(datetime, date, time), enc_hook=lambda each: each.tolist())
    except (TypeError, AttributeError, ValueError):
        raise InvalidValue(field, value, "a table of plain data: text, numbers, lists, tables") from None
    if not isinstance(plain, dict) or not all(isinstance(key, str) for key in plain):
        raise InvalidValue(field, value, "a table from paths to values")
    return plain


def _values(field: str, value: Any) -> dict[str, list[Any]]:
    plain = _table(field, value)
    for place, values in plain.items():
        if not isinstance(values, list | tuple) or not values:
            raise InvalidValue(f"{field}.{place}", values, "a list with at least one value")
    return {place: list(values) for place, values in plain.items()}


Change = Callable[[str, Any], tuple[str, Any]]
"""Function of a path and its value; "" is the path of the whole scenario."""


def _changed(spec: SweepSpec, change: Change) -> SweepSpec:
    """The sweep with `change` applied to each path and value."""
    return msgspec.structs.replace(spec, **_parts(spec, change))


def _parts(spec: SweepSpec, change: Change) -> dict[str, Any]:
    def places(table: Table) -> Table:
        return dict(change(place, value) for place, value in table.items())

    def values(over: dict[str, list[Any]]) -> dict[str, list[Any]]:
        found = [[change(place, value) for value in values] for place, values in over.items()]
        return {each[0][0]: [value for _, value in each] for each in found}

    grid = tuple(Grid(label=each.label, set=places(each.set), over=values(each.over)) for each in spec.grid)
    return {
        "scenario": _table("scenario", change("", spec.scenario)[1]),
        "grid": grid,
        "over": _values("over", values(spec.over)),
    }


def _named(place: str, value: Any) -> Any:
    """The value with graphs and files replaced by their names, so that tables are readable on any machine."""
    if place == GRAPH and isinstance(value, dict):
        return value.get("name") or value
    return with_names(place, value, lambda _, name: Path(name).name)


def _title(where: str, values: Table) -> str:
    which = ", ".join(f"{place} = {shown(value)}" for place, value in values.items())
    return f"{where} ({which})" if which else where


def _put(content: Table, place: str, value: Any) -> None:
    """Set the value at "control.mu", "links.e1.buffer", "links.e1,e2.buffer", "links.*.buffer".

    A missing table is created; records in a list are found by id, and groups of flows without an id by kind.
    """
    *parents, last = place.split(".")
    if "" in (*parents, last):
        raise InvalidValue(place, place, "names separated by dots, as in control.mu")
    targets: list[Any] = [content]
    for step, name in enumerate(parents):
        found: list[Any] = []
        for target in targets:
            found += _inside(target, name, ".".join(parents[: step + 1]))
        targets = found
    for target in targets:
        if not isinstance(target, dict):
            raise InvalidValue(place, shown(target), "a path inside a table")
        target[last] = value


def _inside(target: Any, name: str, where: str) -> list[Any]:
    if isinstance(target, dict):
        if target.get(name) is None:
            target[name] = {}
        return [target[name]]
    if isinstance(target, list | tuple):
        tables = [each for each in target if isinstance(each, dict)]
        ids = [each.get("id", each.get("demand", each.get("kind"))) for each in tables]
        known = {name: each for name, each in zip(ids, tables, strict=True) if name is not None}
        desired = list(known) if name == "*" else name.split(",")
        for each in desired:
            if each not in known:
                raise InvalidValue(
                    where, each, f"an id, several separated by commas, or *; there are {', '.join(known)}"
                )
        return [known[each] for each in desired]
    raise InvalidValue(where, shown(target), "a path inside a table or a list of records")
