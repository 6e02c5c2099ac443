"""Node-link JSON as networkx and TopoHub write it."""

from __future__ import annotations

from typing import Any

from netctrl.model.io.topohub import demand_records, has_lengths, plain_edge, plain_node
from netctrl.model.networks.draft import Draft, Quantity
from netctrl.model.networks.graphs import graph_draft
from netctrl.model.networks.markup import elements


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
    nodes, edges = elements(content, "nodes"), elements(content, "edges" if "edges" in content else "links")
    graph = content.get("graph")
    draft = graph_draft(
        [(each.get("id"), {key: value for key, value in each.items() if key != "name"}) for each in nodes],
        [(each.get("source"), each.get("target"), each) for each in edges],
        name=str(graph.get("name", "")) if isinstance(graph, dict) else "",
        directed=content.get("directed") is True,
    )
    for node, each in zip(draft.nodes, nodes, strict=True):
        node["name"] = each["name"] if isinstance(each.get("name"), str) else node["name"]
    listed = content.get("demands", graph.get("demands") if isinstance(graph, dict) else None)
    if isinstance(listed, list):  # in bit/s, as netctrl writes them
        for each in (each for each in listed if isinstance(each, dict)):
            rates = {key: Quantity(each[key], 1.0) for key in ("mean", "std") if each.get(key) is not None}
            draft.demands.append({"source": each.get("source"), "target": each.get("target"), **rates})
    elif isinstance(listed, dict):  # TopoHub's table
        rows = ((a, row) for a, row in listed.items() if isinstance(row, dict))
        draft.demands = [{"source": a, "target": b, "mean": Quantity(x)} for a, row in rows for b, x in row.items()]
        draft.mirrored = not draft.directed
    return draft
