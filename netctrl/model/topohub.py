"""What TopoHub's files say in their own way: lengths in km, loads of links, and demands as a table without a unit.

Source: TopoHub 1.5, `docs/repository.rst` and `topohub/graph.py` (https://www.topohub.org).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netctrl.errors import InvalidValue, checked_number
from netctrl.model.io.validation_errors import shown
from netctrl.units import METRES_PER_KM

__all__ = ["SIGNAL_SPEED", "demand_records", "has_lengths", "plain_edge", "plain_node"]

SIGNAL_SPEED = 2e8
"""Of light in fibre [m/s], for files that give a link's length."""

_EDGE = ("dist", "type", "ecmp_fwd", "ecmp_bwd")
_NODE = ("type",)
_UNIT_TAKES = (
    'the argument `demand_unit` (--demand-unit) beside it: the rate that 1 stands for, as in "1Mbit"; '
    '"0bit" leaves the demands out'
)


def has_lengths(edges: Sequence[Any]) -> bool:
    """Whether these edges are TopoHub's."""
    return any(isinstance(edge, dict) and "dist" in edge for edge in edges)


def plain_edge(field: str, edge: dict[str, Any]) -> dict[str, Any]:
    """An edge with the delay of its length in place of what only TopoHub has; InvalidValue names the length."""
    taken = _without(edge, _EDGE)
    if "dist" in edge and "delay" not in taken:
        length = checked_number(field, edge["dist"], "a length from 0 to 1e9 in km", at_least=0.0, at_most=1e9)
        taken["delay"] = length * METRES_PER_KM / SIGNAL_SPEED
    return taken


def plain_node(node: Any) -> Any:
    """A node without what only TopoHub has."""
    return _without(node, _NODE)


def demand_records(table: Mapping[Any, Any], unit: float | None, *, directed: bool) -> list[dict[str, Any]]:
    """Demands of `graph.demands`, a table source -> target -> number, in the order of the file.

    A pair that stands there one way only has the same demand both ways, as an edge of an undirected graph is a link
    each way: so TopoHub itself counts demands (`graph.stats.demands`) and loads links. Not so in a directed graph.

    Parameters
    ----------
    table : mapping
    unit : float or None
        What a demand of 1 is [bit/s]; 0 leaves all demands out.
    directed : bool

    Raises
    ------
    InvalidValue
        No table of numbers; or numbers and no `unit`.
    """
    pairs = _pairs(table)
    if not directed:
        pairs |= {(b, a): value for (a, b), value in pairs.items() if (b, a) not in pairs}
    pairs = {ends: value for ends, value in pairs.items() if value > 0.0}
    if pairs and unit is None:
        raise InvalidValue("graph.demands", f"{len(pairs)} demands without a unit", _UNIT_TAKES)
    return [{"source": a, "target": b, "mean": value * unit} for (a, b), value in pairs.items()] if unit else []


def _pairs(table: Mapping[Any, Any]) -> dict[tuple[str, str], float]:
    pairs: dict[tuple[str, str], float] = {}
    for source, row in table.items():
        if not isinstance(row, Mapping):
            raise InvalidValue(f"graph.demands.{source}", shown(row), "a table of numbers by target")
        for target, value in row.items():
            takes = "a number from 0 to 1e15"
            number = checked_number(f"graph.demands.{source}.{target}", value, takes, at_least=0.0, at_most=1e15)
            pairs[str(source), str(target)] = number
    return pairs


def _without(record: Any, names: Sequence[str]) -> Any:
    return {key: value for key, value in record.items() if key not in names} if isinstance(record, dict) else record
