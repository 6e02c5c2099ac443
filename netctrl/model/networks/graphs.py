"""Graphs with attributes: GraphML and GML, as the Internet Topology Zoo, TopoHub, yEd and networkx write them.

Sources: http://graphml.graphdrawing.org (GraphML primer); Himsolt, "GML: A portable Graph File Format".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netctrl.model.networks.draft import Draft, Quantity, quantities, rate_of
from netctrl.model.networks.markup import Tree, elements, item

_LONGITUDE = ("longitude", "lon", "long", "lng")
_LATITUDE = ("latitude", "lat")
_LABEL = ("label", "name")
_KINDS = {"int": int, "long": int, "float": float, "double": float}


def graphml_draft(tree: Tree) -> Draft:
    """The draft of a GraphML document's first graph."""
    root = tree["graphml"]
    known = {
        str(key.get("id")): (str(key.get("attr.name", key.get("id"))), key.get("attr.type"), item(key, "default"))
        for key in elements(root, "key")
    }

    def attributes(element: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for data in elements(element, "data"):
            name, kind, _ = known.get(str(data.get("key")), (str(data.get("key")), None, None))
            found[name] = _typed(data.get("#text"), kind)
            label = item(next((each for each in data.values() if isinstance(each, dict)), None), "NodeLabel")
            found |= {"label": label} if label else {}  # of yEd
        return found

    graph = next(iter(elements(root, "graph")), {})
    standard = {name: _typed(value, kind) for name, kind, value in known.values() if value is not None}
    nodes = [(each.get("id"), attributes(each)) for each in elements(graph, "node")]
    edges = [(each.get("source"), each.get("target"), standard | attributes(each)) for each in elements(graph, "edge")]
    about = attributes(graph)
    name = about.get("Network", about.get("name", about.get("label", graph.get("id", ""))))
    return graph_draft(nodes, edges, name=str(name), directed=graph.get("edgedefault") == "directed")


def gml_draft(tree: Tree) -> Draft:
    """The draft of a GML document's graph."""
    graph = next(iter(elements(tree, "graph")), {})
    nodes = [(each.get("id"), each) for each in elements(graph, "node")]
    edges = [(each.get("source"), each.get("target"), each) for each in elements(graph, "edge")]
    name = graph.get("Network", graph.get("name", graph.get("label", "")))
    return graph_draft(nodes, edges, name=str(name), directed=graph.get("directed") == 1)


def graph_draft(
    nodes: Sequence[tuple[Any, Mapping[str, Any]]],
    edges: Sequence[tuple[Any, Any, Mapping[str, Any]]],
    *,
    name: str = "",
    directed: bool = False,
) -> Draft:
    """The draft of nodes and edges with attributes by any of their usual names.

    Parameters
    ----------
    nodes : list of (key, attributes)
    edges : list of (source's key, target's key, attributes)
    name : str
    directed : bool
    """
    draft = Draft(name=name, directed=directed)
    for key, data in nodes:
        lower = {str(each).lower(): value for each, value in data.items()}
        x, y = (next((lower[each] for each in some if each in lower), None) for some in (_LONGITUDE, _LATITUDE))
        if x is None and isinstance(lower.get("pos"), list | tuple) and len(lower["pos"]) == 2:
            x, y = lower["pos"]
        graphics = lower.get("graphics")
        if x is None and isinstance(graphics, dict):  # of a drawing program: not degrees
            x, y, draft.geographical = graphics.get("x"), graphics.get("y"), False
        label = next((lower[each] for each in _LABEL if isinstance(lower.get(each), str | int)), None)
        node = {"key": key, "name": None if label is None else str(label), "pos": place(x, y)}
        draft.nodes.append(node if label is None else node | {"id": label})
    for source, target, data in edges:
        link = {"source": source, "target": target, **quantities(data, "capacity", "delay", "length", "buffer")}
        label = str(next((data[each] for each in data if each.lower() == "linklabel"), ""))
        if "capacity" not in link and _is_rate(label):  # the Topology Zoo's links without LinkSpeedRaw
            link["capacity"] = Quantity(label)
        identity = data.get("id", data.get("key"))
        draft.links.append(link | ({"id": identity} if isinstance(identity, str) else {}))
    return draft


def place(x: Any, y: Any) -> tuple[float, float] | None:
    """Two coordinates, which may be text, as numbers; None where they are none."""
    try:
        pair = float(x), float(y)
    except (TypeError, ValueError, OverflowError):
        return None
    return pair if all(abs(each) < 1e9 for each in pair) else None


def _is_rate(text: str) -> bool:
    try:
        return rate_of(text) > 0.0 and not text.strip().replace(".", "").isdigit()
    except ValueError:
        return False


def _typed(text: Any, kind: Any) -> Any:
    if isinstance(text, str) and kind in _KINDS:
        try:
            return _KINDS[kind](text)
        except ValueError:
            return text
    return text
