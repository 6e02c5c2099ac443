"""TopoHub's file format: lengths in km, loads of links, and a table of demands without a unit.

Source: TopoHub 1.5, `docs/repository.rst` and `topohub/graph.py` (https://www.topohub.org).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.core.units import METRES_PER_KM
from netctrl.model.io.validation_errors import shown

SIGNAL_SPEED = 2e8
"""Speed of light in fibre [m/s], for files that give a link's length."""

_EDGE = ("dist", "type", "ecmp_fwd", "ecmp_bwd")
_NODE = ("type",)
UNIT_TAKES = (
    'the argument `demand_unit` (--demand-unit) too: the rate of a demand of 1, as in "1Mbit"; '
    '"0bit" leaves the demands out'
)


def has_lengths(edges: Sequence[Any]) -> bool:
    """Whether these edges have TopoHub's lengths."""
    return any(isinstance(edge, dict) and "dist" in edge for edge in edges)


def plain_edge(field: str, edge: dict[str, Any]) -> dict[str, Any]:
    """An edge with the delay of its length instead of TopoHub's own keys; InvalidValue names the length."""
    taken = _without(edge, _EDGE)
    if "dist" in edge and "delay" not in taken:
        length = checked_number(field, edge["dist"], "a length from 0 to 1e9 in km", at_least=0.0, at_most=1e9)
        taken["delay"] = length * METRES_PER_KM / SIGNAL_SPEED
    return taken


def plain_node(node: Any) -> Any:
    """A node without TopoHub's own keys."""
    return _without(node, _NODE)


def demand_records(table: Mapping[Any, Any], unit: float | None, *, directed: bool) -> list[dict[str, Any]]:
    """Demands of `graph.demands`, a table source -> target -> number, in the order of the file.

    In an undirected graph, a pair listed in one direction only has the same demand in both directions, as an undirected
    edge is a link in each direction. TopoHub counts demands (`graph.stats.demands`) and loads of links in this way too.

    Parameters
    ----------
    table : mapping
    unit : float or None
        Rate of a demand of 1 [bit/s]; 0 leaves all demands out.
    directed : bool

    Raises
    ------
    InvalidValue
        Not a table of numbers, or numbers without `unit`.
    """
    pairs = _pairs(table)
    if not directed:
        pairs |= {(b, a): value for (a, b), value in pairs.items() if (b, a) not in pairs}
    pairs = {ends: value for ends, value in pairs.items() if value > 0.0}
    if pairs and unit is None:
        raise InvalidValue("graph.demands", f"{len(pairs)} demands without a unit", UNIT_TAKES)
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
