"""Records whose fields a law changes in place: a class of floats and rows of floats, and its NumPy type.

A record's numbers stand in a row of floats in the order of its fields, so that a row can be looked at as the record:
numba and Python read and set its fields by name, in that memory. Array types of laws' arguments are NumPy's arrays in
Python, the types of netctrl-arrays.h in C++.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np

Vector = Annotated[np.ndarray, "vector"]
"""(k,)"""
Matrix = Annotated[np.ndarray, "matrix"]
"""(k, n)"""

Numbers = Annotated[np.ndarray, "floats"]
"""(k,) that are looked up one by one, and may be changed."""
WholeNumbers = Annotated[np.ndarray, "int64"]
"""(k,)"""
Grid = Annotated[np.ndarray, "floats", 2]
"""(k, n)"""
WholeGrid = Annotated[np.ndarray, "int64", 2]
"""(k, n)"""


def field_types(record: Any) -> dict[str, Any]:
    """Fields of a record with their types: float, bool, another record, a tuple of one of these, or a row of floats."""
    return get_type_hints(record, include_extras=True)


def is_record(kind: Any) -> bool:
    """Whether a type is a class with fields."""
    if not isinstance(kind, type) or kind.__module__ == "builtins":
        return False
    return hasattr(kind, "_fields") or bool(field_types(kind))


@cache
def fields_of(kind: Any) -> dict[str, int]:
    """Fields with their number of values each."""
    return {name: width(each) for name, each in field_types(kind).items()}


@cache
def record_type(kind: Any) -> np.dtype[Any]:
    """NumPy type of a record."""
    parts = [(name, "f8") if size == 1 else (name, "f8", (size,)) for name, size in fields_of(kind).items()]
    return np.dtype((np.record, parts))


def as_record(kind: Any, row: np.ndarray) -> Any:
    """View of a row of floats as a record that begins the row; changes of it change the row."""
    return row[: width(kind)].view(record_type(kind))[0]


@cache
def width(kind: Any) -> int:
    """Number of values of a record, or of one of its fields."""
    if get_origin(kind) is Annotated:
        return get_args(kind)[1]
    if get_origin(kind) is tuple:
        return sum(map(width, get_args(kind)))
    return sum(fields_of(kind).values()) if is_record(kind) else 1


def row_names(kind: Any) -> tuple[str, ...]:
    """Names of a record's single values, which begin its rows."""
    return tuple(name for name, size in fields_of(kind).items() if size == 1)


def compiled_view(kind: Any) -> Any:
    """`as_record` of one kind for compiled code, as a function of a contiguous row, without checks."""
    from numba import from_dtype
    from numba.extending import intrinsic

    record = from_dtype(record_type(kind))

    @intrinsic
    def view(typing_context: Any, row: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return builder.bitcast(data, context.get_value_type(record))

        return record(row), code

    return view
