"""Tables of links and of demands, as CSV and DataFrames: columns are found by the names that people give them."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

from netctrl.core.errors import FileError, InvalidValue
from netctrl.model.io.delimited import MISSING
from netctrl.model.io.validation_errors import shorten
from netctrl.model.networks.draft import Draft, Quantity, quantities

SOURCES = ("source", "src", "from", "origin", "a", "node1", "node_a", "a_end", "u", "tail")
TARGETS = ("target", "dst", "dest", "destination", "to", "b", "node2", "node_b", "z", "z_end", "v", "head")
TIMES = ("time_s", "time", "timestamp", "datetime", "date", "t", "epoch")
LINKS_TAKE = "columns `source` and `target`, and optionally `capacity`, `delay`, `length`, `buffer`, `id`"
DEMANDS_TAKE = (
    "columns `source`, `target`, `mean` (and `std`, `time`); or `time` and a column for each pair, as A->B; or a square"
    " matrix with the nodes' names in its first column and row"
)
_ARROW = re.compile(r"=>|->|→|>|,|;|\||:|/| to |_to_|-|_| ")
_DELIMITERS = (",", ";", "\t", "|")
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")


class Table(NamedTuple):
    """Columns' names and rows of cells; an empty cell is None."""

    columns: list[str]
    rows: list[list[Any]]

    def place(self, names: tuple[str, ...]) -> int | None:
        """Index of the first column with one of these names, in any case; None where there is none."""
        lower = [each.lower() for each in self.columns]
        return next((lower.index(name) for name in names if name in lower), None)


def text_table(path: object, text: str) -> Table:
    """The table of a text with a line of names; lines that begin with # are comments.

    Raises
    ------
    FileError
        No such table.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) < 2:
        raise FileError(path, "no table: it takes a line with the columns' names and one line or more below")
    comma = max(_DELIMITERS, key=lambda each: min(line.count(each) for line in lines[:20]))
    try:
        rows = list(csv.reader(lines, delimiter=comma, skipinitialspace=True)) if comma in lines[0] else []
    except csv.Error as error:
        raise FileError(path, f"not valid CSV: {error}") from None
    rows = rows or [line.split() for line in lines]
    columns = [each.strip() for each in rows[0]]
    cells = [[_cell(each, comma) for each in row[: len(columns)]] for row in rows[1:]]
    return Table(columns, [row + [None] * (len(columns) - len(row)) for row in cells])


def frame_table(frame: Any) -> Table:
    """The table of a pandas DataFrame; an index with a name is a column too."""
    frame = frame if list(frame.index.names) == [None] else frame.reset_index()
    rows = [[None if each is None or each != each else each for each in row] for row in frame.to_numpy(object).tolist()]
    return Table([str(each) for each in frame.columns], rows)


def links_draft(table: Table) -> Draft:
    """The draft of a table of links; where no line has its reverse, each counts in both directions.

    Raises
    ------
    InvalidValue
        No columns of sources and targets.
    """
    source, target, identity = table.place(SOURCES), table.place(TARGETS), table.place(("id", "link", "name"))
    if source is None or target is None:
        raise InvalidValue("columns", shorten(", ".join(table.columns), 120), LINKS_TAKE)
    draft = Draft(directed=None)
    for row in table.rows:
        link: dict[str, Any] = {"source": _name(row[source]), "target": _name(row[target])}
        if identity is not None and isinstance(row[identity], str | int):
            link["id"] = str(row[identity])
        draft.links.append(link | _quantities(table, row, (source, target), "capacity", "delay", "length", "buffer"))
    pairs = {(link["source"], link["target"]) for link in draft.links}
    if not any((b, a) in pairs for a, b in pairs):
        draft.notes.append("each of the table's links counts in both directions, as none has its reverse")
    return draft


def is_demands(table: Table) -> bool:
    """Whether a table is one of demands: it has a column of their rates, but none of capacities."""
    rates = quantities(dict.fromkeys(table.columns, 1.0), "mean", "capacity")
    return "mean" in rates and "capacity" not in rates


def matrices_drafts(table: Table, names: Mapping[str, str]) -> list[tuple[Any, Draft]]:
    """The traffic matrices of a table, each with its time (None where it has none).

    Parameters
    ----------
    table : Table
        In one of the forms of `DEMANDS_TAKE`.
    names : mapping
        Names of nodes -> ids, by which columns such as A->B are parted.

    Raises
    ------
    InvalidValue
        A table of another form.
    """
    heads, square = table.columns[1:], [_name(row[0]) for row in table.rows]
    if len(square) > 1 and set(heads) == set(square):
        cells = ((_name(a), b, each) for a, *rest in table.rows for b, each in zip(heads, rest, strict=True))
        return [(None, Draft(demands=[_demand(*each) for each in cells if each[2] is not None]))]
    source, target, time = (table.place(each) for each in (SOURCES, TARGETS, TIMES))
    if source is not None and target is not None:
        if time is None:
            return [(None, _long(table, table.rows, source, target, None))]
        rows = sorted((row for row in table.rows if row[time] is not None), key=lambda row: _moment(row[time]))
        groups = groupby(rows, key=lambda row: row[time])
        return [(when, _long(table, list(some), source, target, time)) for when, some in groups]
    pairs = {place: parted(name, names) for place, name in enumerate(table.columns) if place != time}
    if time is None or not any(pairs.values()):
        raise InvalidValue("columns", shorten(", ".join(table.columns), 120), DEMANDS_TAKE)
    unused = [table.columns[at] for at, pair in pairs.items() if not pair]
    drafts, lost = [], [f"column {each!r} is left out: it names no two nodes" for each in unused]
    for row in table.rows:
        kept = [_demand(*pair, row[at]) for at, pair in pairs.items() if pair and row[at] is not None]
        drafts.append((row[time], Draft(demands=kept, notes=[] if drafts else lost)))
    return drafts


def parted(text: str, names: Mapping[str, str]) -> tuple[str, str] | None:
    """The two nodes that a text names, as "A->B", "A,B" or "(A, B)"; None where it doesn't."""
    text = text.strip(" ()[]\"'")
    for found in _ARROW.finditer(text):
        ends = text[: found.start()].strip(" \"'"), text[found.end() :].strip(" \"'")
        if ends[0] in names and ends[1] in names:
            return ends
    return None


def _long(table: Table, rows: list[list[Any]], source: int, target: int, time: int | None) -> Draft:
    draft = Draft()
    for row in rows:
        ends = {"source": _name(row[source]), "target": _name(row[target])}
        draft.demands.append(ends | _quantities(table, row, (source, target, time), "mean", "std"))
    return draft


def _quantities(table: Table, row: list[Any], others: tuple[int | None, ...], *wanted: str) -> dict[str, Quantity]:
    cells = zip(table.columns, row, strict=True)
    return quantities({name: cell for at, (name, cell) in enumerate(cells) if at not in others}, *wanted)


def _demand(source: str, target: str, value: Any) -> dict[str, Any]:
    return {"source": source, "target": target, "mean": Quantity(value)}


def _cell(text: str, delimiter: str) -> Any:
    text = text.strip()
    if not text or text in MISSING or text.lower() in ("nan", "na", "null", "none"):
        return None
    return text.replace(",", ".") if delimiter == ";" and _DECIMAL_COMMA.fullmatch(text) else text


def _moment(value: Any) -> tuple[int, Any]:
    """A key by which times sort: numbers first, then other values by their text."""
    try:
        return 0, float(value)
    except (TypeError, ValueError):
        return 1, str(value)


def _name(value: Any) -> str:
    """A cell as a node's name; 3.0, which pandas makes of 3 in a column with gaps, is 3."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value).strip()
