"""SNDlib's networks and traffic matrices, in XML, in JSON with the same elements, and in the native format.

Source: Orlowski, Pióro, Tomaszewski, Wessäly, "SNDlib 1.0: Survivable Network Design Library" (http://sndlib.zib.de).
"""

from __future__ import annotations

import re
from typing import Any

from netctrl.model.networks.draft import Draft, Quantity
from netctrl.model.networks.graphs import place
from netctrl.model.networks.markup import Tree, item, items

_UNITS = {"BITPERSEC": 1.0, "KBITPERSEC": 1e3, "MBITPERSEC": 1e6, "GBITPERSEC": 1e9, "TBITPERSEC": 1e12}
_SECTION = re.compile(r"([A-Z_]+)\s*\(")
_ROW = re.compile(r"([^\s()]+)\s*\(([^()]*)\)([^()]*)(?:\(([^()]*)\))?")  # id ( ends ) numbers ( modules )
NATIVE = b"?SNDlib native format"


def native_draft(text: str) -> Draft:
    """The draft of a file in the native format, a record a line; one that isn't of its section is left out."""
    section, left_out, meta = "", [], {}
    rows: dict[str, list[Tree]] = {"NODES": [], "LINKS": [], "DEMANDS": []}
    for number, whole in enumerate(text.splitlines(), 1):
        line = whole.partition("#")[0].strip()
        row = _ROW.fullmatch(line)
        inside, numbers = (row[2].split(), row[3].split()) if row else ([], [])
        if title := _SECTION.fullmatch(line):
            section = title[1]
        elif section == "META":
            name, _, value = line.partition("=")
            meta[name.strip()] = value.strip()
        elif section not in rows or line in ("", ")"):
            continue
        elif row is None or len(inside) != 2 or len(numbers) < {"NODES": 0, "LINKS": 1, "DEMANDS": 2}[section]:
            left_out.append(f"line {number} is left out: not a record of the section {section}")
        elif section == "NODES":
            rows[section].append({"id": row[1], "coordinates": dict(zip("xy", inside, strict=True))})
        else:
            modules = [{"capacity": each} for each in (row[4] or "").split()[::2]]
            found: Tree = {"id": row[1], "source": inside[0], "target": inside[1]}
            found |= {"preInstalledModule": {"capacity": numbers[0]}, "additionalModules": {"addModule": modules}}
            rows[section].append(found if section == "LINKS" else found | {"demandValue": numbers[1]})
    structure = {"nodes": {"node": rows["NODES"]}, "links": {"link": rows["LINKS"]}}
    draft = sndlib_draft({"meta": meta, "networkStructure": structure, "demands": {"demand": rows["DEMANDS"]}})
    draft.notes += left_out
    return draft


def sndlib_draft(tree: Tree) -> Draft:
    """The draft of a network; capacities and demands have one unit, which only matrices over time name.

    A link can send what is installed, else the smallest module that can be. In a network without a unit in its meta
    data, a link or demand that stands in one direction only counts in both.
    """
    root = item(tree, "network") or tree
    structure = item(root, "networkStructure") or root
    unit = _UNITS.get(str(item(root, "meta", "unit")).upper())
    kind = items(structure, "nodes", "coordinatesType")
    draft = Draft(name=_text(item(root, "meta", "name") or item(root, "name")), directed=None, mirrored=unit is None)
    draft.one_unit = True
    draft.geographical = not kind or kind[0] == "geographical"
    for node in _records(structure, "nodes", "node"):
        x, y = (item(node, "coordinates", axis) for axis in "xy")
        draft.nodes.append({"key": item(node, "id"), "pos": place(x, y)})
    for link in _records(structure, "links", "link"):
        sizes = [_positive(each) for each in items(link, "preInstalledModule", "capacity")]
        modules = [_positive(item(each, "capacity")) for each in items(link, "additionalModules", "addModule")]
        installed, possible = [each for each in sizes if each], [each for each in modules if each]
        found = {"source": item(link, "source"), "target": item(link, "target"), "id": _text(item(link, "id"))}
        if installed:
            found["capacity"] = Quantity(sum(installed), unit)
        if possible:
            found["module"] = Quantity(min(possible), unit)
        draft.links.append(found)
    for demand in _records(root, "demands", "demand"):
        value = Quantity(item(demand, "demandValue"), unit)
        ends = {"source": item(demand, "source"), "target": item(demand, "target")}
        draft.demands.append(ends | {"id": _text(item(demand, "id")), "mean": value})
    return draft


def _records(tree: Any, outer: str, inner: str) -> list[Any]:
    """A list of records, whether or not each element is wrapped in one of its own name."""
    found = items(tree, outer)
    wrapped = items(found[0], inner) if len(found) == 1 else []
    return [each for each in wrapped or found if isinstance(each, dict) and item(each, "id") is not None]


def _positive(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0.0 < number < 1e18 else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
