"""Node-link JSON as networkx and TopoHub write it."""

from __future__ import annotations

from typing import Any

from netctrl.model.io.topohub import demand_records, has_lengths, plain_edge, plain_node
from netctrl.model.networks.draft import Draft
from netctrl.model.networks.graphs import graph_draft


def prepared(content: dict[str, Any], capacity: float | None, unit: float | None) -> dict[str, Any]:
    """A file's content without keys that only networkx and TopoHub use, and with the missing capacities filled in."""
    content = dict(content)
    if "edges" not in content:  # networkx before 3.6 writes "links"
        content["edges"] = content.pop("links")
    graph = content.get("graph")
    listed = graph.get("demands") if isinstance(graph, dict) else None
    if isinstance(listed, list):
        content.setdefault("demands", listed)
    elif isinstance(listed, dict) and "demands" not in content:
        content["demands"] = demand_records(listed, unit, directed=content.get("directed") is True)
    of_topohub = has_lengths(content["edges"])
    edges = []
    for row, edge in enumerate(content["edges"]):
        if isinstance(edge, dict):
            edge = {"capacity": capacity} | edge if capacity is not None else dict(edge)
            if content.get("multigraph") is True:
                edge.pop("key", None)
            if of_topohub:
                edge = plain_edge(f"edges[{row}].dist", edge)
        edges.append(edge)
    content["edges"] = edges
    if of_topohub and isinstance(content.get("nodes"), list):
        content["nodes"] = [plain_node(node) for node in content["nodes"]]
    return content


def nodelink_draft(content: dict[str, Any]) -> Draft:
    """The draft of node-link content with attributes by any of their usual names, as other programs write it."""
    nodes = [each for each in content.get("nodes") or () if isinstance(each, dict)]
    edges = [each for each in content.get("edges", content.get("links")) or () if isinstance(each, dict)]
    graph = content.get("graph")
    return graph_draft(
        [(each.get("id"), {key: value for key, value in each.items() if key != "name"}) for each in nodes],
        [(each.get("source"), each.get("target"), each) for each in edges],
        name=str(graph.get("name", "")) if isinstance(graph, dict) else "",
        directed=content.get("directed") is True,
    )
