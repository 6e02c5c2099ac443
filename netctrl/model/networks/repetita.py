"""REPETITA's text files: `.graph` with nodes and edges, `.demands` with a traffic matrix.

Source: Gay, Schaus, Vissicchio, "REPETITA: Repeatable Experiments for Performance Evaluation of Traffic-Engineering
Algorithms", arXiv:1710.08665, and its code: rates in kbit/s, delays in microseconds, nodes by their index.
"""

from __future__ import annotations

from netctrl.model.networks.draft import Draft, Quantity
from netctrl.model.networks.graphs import place

_KBIT, _MICROSECOND = 1e3, 1e-6
_COLUMNS = {"NODES": 3, "EDGES": 6, "DEMANDS": 4}


def repetita_draft(text: str) -> Draft:
    """The draft of a `.graph` or `.demands` file; a line that isn't one of its section is left out with a note."""
    draft, section = Draft(indexed=True), ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0] == "label":
            continue
        if words[0] in _COLUMNS and len(words) <= 2:
            section = words[0]
            continue
        more = _COLUMNS.get(section, len(words) + 1) - 1
        label, rest = " ".join(words[:-more]), words[-more:]
        if section == "NODES":  # each counts, as links and demands name nodes by their place
            name, pos = label or words[0], place(*rest) if label else None
            draft.nodes.append({"key": str(len(draft.nodes)), "id": name, "name": name, "pos": pos})
        elif not label:
            draft.notes.append(
                f"line {number} is left out: {len(words)} words in the section {section or 'at the top'}"
            )
        elif section == "EDGES":
            source, target, _, rate, delay = rest
            ends = {"id": label, "source": source, "target": target}
            draft.links.append(ends | {"capacity": Quantity(rate, _KBIT), "delay": Quantity(delay, _MICROSECOND)})
        else:
            draft.demands.append({"source": rest[0], "target": rest[1], "mean": Quantity(rest[2], _KBIT)})
    return draft
