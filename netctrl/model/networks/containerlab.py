"""Topologies of containerlab: nodes, and links between their interfaces.

Source: https://containerlab.dev/manual/topo-def-file (both the brief and the extended form of links).
"""

from __future__ import annotations

from typing import Any

from netctrl.model.io.validation_errors import shown
from netctrl.model.networks.draft import Draft, quantities
from netctrl.model.networks.graphs import graph_draft
from netctrl.model.networks.markup import elements, items

_OUTSIDE = ("host", "mgmt-net", "macvlan", "dummy", "vxlan", "vxlan-stitch")


def containerlab_draft(tree: Any) -> Draft:
    """The draft of a topology: capacities and delays from a link's `vars` or `labels`, coordinates from a node's.

    Links to the host or to outside the lab are left out with a note, and so are those with other than two ends.
    """
    listed = next(iter(elements(tree, "topology", "nodes")), {})
    nodes = [(name, {"label": name} | _labels(node)) for name, node in listed.items()]
    draft = graph_draft(nodes, [], name=str(tree.get("name") or ""))
    for row, link in enumerate(items(tree, "topology", "links")):
        ends = items(link, "endpoints")
        names = [_node(each) for each in ends]
        if len(names) != 2 or None in names or link.get("type") in _OUTSIDE or {*names} & {*_OUTSIDE}:
            draft.notes.append(f"links[{row}] is left out: no link between two nodes: {shown(ends)}")
            continue
        data = quantities(_labels(link) | link, "capacity", "delay", "length", "buffer")
        draft.links.append({"source": names[0], "target": names[1], **data})
    return draft


def _labels(record: Any) -> dict[str, Any]:
    """The labels and variables of a node or link."""
    parts = (*elements(record, "labels"), *elements(record, "vars"))
    return {str(key): value for part in parts for key, value in part.items()}


def _node(end: Any) -> str | None:
    """Node of an end: of "node:interface", or of {"node": ..., "interface": ...}."""
    name = end.get("node") if isinstance(end, dict) else end
    return name.partition(":")[0] if isinstance(name, str) else None
