"""Window laws of a data centre as rows of numbers for the packet kernel: one compiled function for all.

A row of state has `window` and `rate` in front; a law's own fields stand behind them, in the order of its record.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, get_args, get_origin

import numpy as np
from numba.extending import register_jitable

from netctrl.core.jit import INLINED, by_number, njit
from netctrl.laws.codegen import helpers
from netctrl.laws.record import field_types, width
from netctrl.laws.window.law import MAX_HOPS, Acknowledged, Hop, Path, Telemetry, WindowLaw
from netctrl.laws.window.records import LAWS

WINDOW, RATE = range(2)
"""Columns of a row of state: bytes that may be under way, and bit/s."""


def _parts(kind: Any) -> dict[Any, Any]:
    """Fields of a record, or places of a tuple, with their types."""
    return dict(enumerate(get_args(kind))) if get_origin(kind) is tuple else field_types(kind)


def _places(kind: Any, name: str) -> Iterator[str]:
    """Where the numbers of a record stand, in the order of its row."""
    for part, inner in _parts(kind).items():
        place = f"{name}[{part}]" if isinstance(part, int) else f"{name}.{part}"
        if inner is float:
            yield place
        else:
            yield from _places(inner, place)


def _from(kind: Any, numbers: Iterator[str]) -> str:
    """The expression that builds a record from the numbers of its row."""
    texts = ", ".join(next(numbers) if inner is float else _from(inner, numbers) for inner in _parts(kind).values())
    return f"({texts},)" if get_origin(kind) is tuple else f"{kind.__name__}({texts})"


STATES = max(width(law.state) for law in LAWS)
"""Length of a row of state: what the law with the most needs."""
PARAMETERS = max(1, *(width(law.parameters) for law in LAWS))
"""Length of a row of parameters, likewise."""


def row_of(record: tuple[Any, ...]) -> np.ndarray:
    """Numbers of a record in a row, with those of its tuples in sequence."""
    parts = (row_of(each) if isinstance(each, tuple) else np.array([float(each)]) for each in record)
    return np.concatenate([np.zeros(0), *parts])


def _on_rows(law: WindowLaw, function: Any, *, heard: bool) -> Callable[..., None]:
    """The law's step, or what it does when a packet leaves, on rows: sets the state."""
    for each in helpers(function).values():
        register_jitable(**INLINED)(each)
    row, own, way = (_from(kind, (f"{name}[{k}]" for k in count())) for kind, name in (
        (law.state, "state"), (law.parameters, "parameters"), (Path, "path")
    ))  # fmt: skip
    more = list(inspect.signature(function).parameters)[4 if heard else 5 :]
    names = {each.__name__: each for each in (law.state, law.parameters, Path, Hop, Acknowledged)}
    names["step"] = njit(function, **INLINED)
    given = "table, memory, seen, hops" if heard else "now, count"
    lines = [f"def rows(parameters, path, state, {given}):"]
    if heard and law.telemetry != Telemetry.NONE:
        columns = range(len(Hop._fields))
        hops = ", ".join(f"Hop({', '.join(f'float(hops[{h}, {k}])' for k in columns)})" for h in range(MAX_HOPS))
        seen = ", ".join(f"seen.{name}" for name in Acknowledged._fields if name != "hops")
        lines += [f"    seen = Acknowledged({seen}, ({hops},))"]
    lines += [f"    after = step({', '.join([row, 'seen' if heard else 'now, count', way, own, *more])})"]
    lines += [f"    state[{k}] = {place}" for k, place in enumerate(_places(law.state, "after"))]
    exec("\n".join(lines), names)
    return njit(names["rows"], **INLINED)


def _all(way: str, given: str) -> Any:
    """f(number, parameters, path, state, ...): the law of this place in LAWS."""
    chosen = {
        number: _on_rows(law, getattr(law, way), heard=way == "step")
        for number, law in enumerate(LAWS)
        if getattr(law, way) is not None
    }
    return by_number(chosen, f"parameters, path, state, {given}", **INLINED)


act = _all("step", "table, memory, seen, hops")
"""One acknowledgement to the law of a number: `act(number, parameters, path, state, table, memory, seen, hops)`.

`seen` is an `Acknowledged` whose telemetry is left out: it stands in `hops`, (MAX_HOPS, 4) whole numbers.
"""

packet_sent = _all("sent", "now, count")
"""A packet of `count` bytes leaves: `packet_sent(number, parameters, path, state, now, count)`, for laws that look."""
