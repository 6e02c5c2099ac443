"""Reading of tables of text as programs write them: the delimiter, the decimal mark, headers and comments are found."""

from __future__ import annotations

import csv
import io
import os
import re
import warnings
from typing import TYPE_CHECKING

from netctrl.core.errors import FileError, optional_import
from netctrl.model.io.validation_errors import shorten

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("-", "--", "?")
"""Cells that stand for no value, beside those that pandas knows: an empty one, NA, N/A, nan, null, None."""

_HEAD = 2**16  # bytes from which the form is found
_COMMENTS = ("#", "%", "//")
_SPACES = r"\s+"
_DELIMITERS = (";", "\t", ",", "|", _SPACES)  # where several fit equally, the first: 1,5;2,5 has decimal commas
_VALUE = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eEdD][-+]?\d+)?|[-+]?inf(inity)?|nan|na|n/a|null|none|-|--|\?|", re.I)
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_DATE = re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?([ T].*)?|\d\d?:\d\d(:\d\d([.,]\d+)?)?")


def read_delimited(path: str | os.PathLike[str], content: bytes) -> pd.DataFrame:
    """Table of a text file, with columns as written; without a header they are c1, c2, ...

    Lines that begin with #, % or // are comments, and so are lines above the first row that have another number of
    fields. A line of text above the rows has the names; a second one, such as units, is not used.

    Raises
    ------
    FileError
        No such table; the message says why.
    """
    with optional_import():
        import pandas as pd

    encoding = _encoding(content)
    lines = content[:_HEAD].decode(encoding, errors="replace").splitlines()
    lines = lines[:-1] if len(content) > _HEAD else lines
    delimiter, first, names = _form(path, lines)
    rows = [_fields(line, delimiter) for line in lines[first : first + 1000]]
    cells = [cell for row in rows for cell in row]
    comma = delimiter != "," and any(_DECIMAL_COMMA.fullmatch(c) for c in cells) and not any("." in c for c in cells)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # first row longer than the header
            frame = pd.read_csv(
                io.BytesIO(content),
                sep=delimiter,
                header=None,
                names=range(len(names)),
                index_col=False,
                skiprows=first,
                decimal="," if comma else ".",
                comment=next((line.lstrip()[0] for line in lines if line.lstrip().startswith(("#", "%"))), None),
                na_values=MISSING,
                skipinitialspace=True,
                low_memory=False,
                encoding=encoding,
            )
    except (ValueError, pd.errors.ParserWarning) as error:
        raise FileError(path, f"not valid CSV: {shorten(' '.join(str(error).split()), 200)}") from None
    frame.columns = names  # as written, also repeated ones
    return frame


def _encoding(content: bytes) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "latin-1"  # of older programs: takes all bytes
    return "utf-8-sig"


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == _SPACES:
        return line.split()
    return [field.strip() for field in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]


def _is_value(field: str) -> bool:
    return bool(_VALUE.fullmatch(field) or _DECIMAL_COMMA.fullmatch(field) or _DATE.fullmatch(field))


def _form(path: str | os.PathLike[str], lines: list[str]) -> tuple[str, int, list[str]]:
    """Delimiter, line of the first row, and names of the columns."""
    seen = [n for n, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(_COMMENTS)]
    if not seen:
        raise FileError(path, "not valid CSV: No columns to parse from file")
    if odd := [n for n in seen if lines[n].count('"') % 2]:
        raise FileError(path, f"not valid CSV: a quotation mark without its pair in line {odd[0] + 1}")
    try:
        tried = {each: [(n, _fields(lines[n], each)) for n in seen] for each in _DELIMITERS}
    except csv.Error as error:
        raise FileError(path, f"not valid CSV: {error}") from None
    delimiter = max(_DELIMITERS, key=lambda each: _likelihood(tried[each]))
    if _likelihood(tried[delimiter]) == 0.0:
        delimiter = ","  # a single column
    rows = tried[delimiter]
    usual = _usual([row for _, row in rows])
    below = [row for _, row in rows[1:]] + [rows[-1][1]]
    first = next(
        (
            k
            for k, ((_, row), after) in enumerate(zip(rows, below, strict=True))
            if len(row) == usual and _is_row(row, after)
        ),
        None,
    )
    if first is None:  # names alone, or text
        return delimiter, len(lines), rows[0][1]
    n, row = rows[first]
    above = first
    while above > 0 and len(rows[above - 1][1]) == len(row):
        above -= 1
    if above < first:
        return delimiter, n, rows[above][1]
    if first and len(rows[first - 1][1]) > 1:
        why = f"{len(rows[first - 1][1])} names in line {rows[first - 1][0] + 1}, {len(row)} values in line {n + 1}"
        raise FileError(path, f"not valid CSV: {why}")
    said = _fields(lines[n - 1].lstrip().lstrip("#%/ ").strip(), delimiter) if n else []
    if len(said) == len(row) and not any(map(_is_value, said)):  # names in a comment
        return delimiter, n, said
    return delimiter, n, [f"c{k + 1}" for k in range(len(row))]


def _is_row(row: list[str], after: list[str]) -> bool:
    """Whether a line is one of values; where it has text above a value of the line after, it has names."""
    values = [_is_value(field) for field in row]
    named = len(row) == len(after) and any(not v and _is_value(a) for v, a in zip(values, after, strict=True))
    return any(row) and 2 * sum(values) >= len(row) and not named


def _usual(rows: list[list[str]]) -> int:
    counts = [len(row) for row in rows]
    return max(set(counts), key=lambda count: (counts.count(count), count))


def _likelihood(rows: list[tuple[int, list[str]]]) -> float:
    """Share of the fields that are values, in the lines with the usual number of fields, times the share of these."""
    usual = _usual([row for _, row in rows])
    if usual < 2:
        return 0.0
    taken = [row for _, row in rows if len(row) == usual]
    values = sum(_is_value(field) for row in taken for field in row)
    return (values + 0.1) / (usual * len(taken)) * len(taken) / len(rows)
