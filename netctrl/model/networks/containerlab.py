"""Topologies of containerlab: nodes, and links between their interfaces.

Source: https://containerlab.dev/manual/topo-def-file (both the brief and the extended form of links).
"""

from __future__ import annotations

from typing import Any

from netctrl.model.io.validation_errors import shown
from netctrl.model.networks.draft import Draft, quantities
from netctrl.model.networks.graphs import graph_draft

_OUTSIDE = ("host", "mgmt-net", "macvlan", "dummy", "vxlan", "vxlan-stitch")


def containerlab_draft(tree: Any) -> Draft:
    """The draft of a topology: capacities and delays from a link's `vars` or `labels`, coordinates from a node's.

    Links to the host or to outside the lab are left out with a note, and so are those with other than two ends.
    """
    topology = tree.get("topology") if isinstance(tree, dict) else None
    topology = topology if isinstance(topology, dict) else {}
    nodes = topology.get("nodes")
    listed = [(name, _labels(node)) for name, node in nodes.items()] if isinstance(nodes, dict) else []
    draft = graph_draft([(name, {"label": name} | data) for name, data in listed], [], name=str(tree.get("name") or ""))
    links = topology.get("links")
    for row, link in enumerate(links if isinstance(links, list) else ()):
        ends = link.get("endpoints") if isinstance(link, dict) else None
        names = [_node(each) for each in ends] if isinstance(ends, list) else []
        if len(names) != 2 or None in names or link.get("type") in _OUTSIDE or {*names} & {*_OUTSIDE}:
            draft.notes.append(f"links[{row}] is left out: no link between two nodes: {shown(ends)}")
            continue
        data = quantities(_labels(link) | link, "capacity", "delay", "length", "buffer")
        draft.links.append({"source": names[0], "target": names[1], **data})
    return draft


def _labels(record: Any) -> dict[str, Any]:
    """The labels and variables of a node or link."""
    parts = [record.get(key) for key in ("labels", "vars")] if isinstance(record, dict) else []
    return {str(key): value for part in parts if isinstance(part, dict) for key, value in part.items()}


def _node(end: Any) -> str | None:
    """Node of an end: of "node:interface", or of {"node": ..., "interface": ...}."""
    if isinstance(end, dict):
        return end.get("node") if isinstance(end.get("node"), str) else None
    return end.partition(":")[0] if isinstance(end, str) else None
