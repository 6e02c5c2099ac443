"""What a file says of a network, before it is one: plain records, whose quantities may lack a unit or be missing.

Each reader of a format fills a `Draft`; `content` turns it into node-link content in SI units, with what the caller
adds, and notes what was derived, assumed or left out. An unusable record is left out with a note and hides no other.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from netctrl.core.errors import InvalidValue
from netctrl.core.units import METRES_PER_KM, format_quantity, parse_duration
from netctrl.model.io.fields import instant, optional, rate, rate_or_0
from netctrl.model.io.topohub import SIGNAL_SPEED, UNIT_TAKES
from netctrl.model.io.validation_errors import shorten, shown

EARTH_RADIUS = 6_371_008.8
"""Mean radius of the Earth [m], (2a + b)/3 of the WGS 84 ellipsoid."""

_SHOWN = 4
_RATE = re.compile(r"([0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([kKmMgGtT]?)(?:b|bps|b/s|bits?(?:/s|ps)?)?")
_BYTES = re.compile(r"[kKmMgGtT]?B(?:ps|/s)")
_RATES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_LENGTHS = {"km": METRES_PER_KM, "m": 1.0, "mi": 1609.344, "miles": 1609.344}
_SIZES = {"bytes": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "kib": 1024.0, "mib": 2.0**20}
_BITS = {
    f"{prefix}{tail}": scale
    for prefix, scale in _RATES.items()
    for tail in ("bps", "bit", "bits", "b/s", "bit/s", "bits/s", "bitpersec", "bitpers", "bit_per_s")
}
_KINDS: dict[str, tuple[tuple[str, ...], dict[str, float]]] = {
    "capacity": (("capacity", "bandwidth", "bw", "linkspeed", "speed", "linkcapacity", "rate"), _BITS | {"raw": 1.0}),
    "delay": (("delay", "latency", "propagationdelay", "propagation_delay"), _TIMES),
    "length": (("dist", "distance", "length", "len"), _LENGTHS),
    "buffer": (("buffer", "queue", "buffersize", "buffer_size"), _SIZES),
    "mean": (("mean", "demand", "demandvalue", "value", "traffic", "volume", "rate", "bw", "bandwidth"), _BITS),
    "std": (("std", "stddev", "deviation", "sd"), _BITS),
}
"""Quantity -> how people name it, and the units that may follow the name, as in `capacity_mbps` or `delay [ms]`."""


class Added(NamedTuple):
    """What the caller adds to a file: what it doesn't give, and the units of its bare numbers."""

    capacity: float | None = None
    """Of links for which the file gives none [bit/s]."""
    capacity_unit: float | None = None
    """Rate for which a capacity of 1 stands [bit/s]."""
    delay: float | None = None
    """Of links for which the file gives none [s]."""
    delay_unit: float | None = None
    """Time for which a delay of 1 stands [s]."""
    demand_unit: float | None = None
    """Rate for which a demand of 1 stands [bit/s]; 0 leaves demands out."""


def added_of(capacity: Any, capacity_unit: Any, delay: Any, delay_unit: Any, demand_unit: Any) -> Added:
    """What a caller adds, from numbers or text with units; InvalidValue names the argument."""
    return Added(
        optional(rate)("capacity", capacity),
        optional(rate)("capacity_unit", capacity_unit),
        optional(instant)("delay", delay),
        optional(instant)("delay_unit", delay_unit),
        optional(rate_or_0)("demand_unit", demand_unit),
    )


class Quantity(NamedTuple):
    """A number or a text as the file has it, and the size of its unit in SI where the file says it."""

    raw: Any
    unit: float | None = None


@dataclass(slots=True)
class Draft:
    """Records of a file. Links and demands name nodes by their `key`; quantities are of type `Quantity`."""

    name: str = ""
    directed: bool | None = True
    """Whether links have one direction; None: only if some have their reverse."""
    nodes: list[dict[str, Any]] = field(default_factory=list)
    """`key`, and optionally `id`, `name`, `pos` (longitude and latitude if `geographical`)."""
    links: list[dict[str, Any]] = field(default_factory=list)
    """`source`, `target`, and optionally `id`, `capacity`, `module` (a capacity that can be had), `delay`, `length`,
    `buffer`."""
    demands: list[dict[str, Any]] = field(default_factory=list)
    """`source`, `target`, `mean`, and optionally `id`, `std`."""
    mirrored: bool = False
    """Whether a demand that stands in one direction only counts in both."""
    indexed: bool = False
    """Whether demands name nodes by their place, from 0."""
    one_unit: bool = False
    """Whether capacities have the unit of demands."""
    geographical: bool = True
    notes: list[str] = field(default_factory=list)
    """What the file's author should know, one line each."""


class _Bare(Exception):
    """A number without a unit."""


def quantities(record: Mapping[Any, Any], *wanted: str) -> dict[str, Quantity]:
    """The quantities among a record's keys, by the names and units that people give them; the first of a kind counts.

    Parameters
    ----------
    record : mapping
    *wanted : str
        "capacity", "delay", "length", "buffer", "mean" or "std".
    """
    found: dict[str, Quantity] = {}
    for kind in wanted:
        names, units = _KINDS[kind]
        for key, value in record.items():
            unit = _unit_after(str(key), names, units)
            missing = value is None or value == "" or (isinstance(value, float) and math.isnan(value))
            if unit is not None and not missing and (kind not in found or unit):
                found[kind] = Quantity(value, unit or None)  # one with a unit rather than one without
    return found


def _unit_after(key: str, names: tuple[str, ...], units: dict[str, float]) -> float | None:
    """Size of the unit after one of these names; 0 without one; None where the key is another.

    B is a byte beside small letters, as in "MBps" or "kB/s", and a bit in "MBPS".
    """
    for name in names:
        if key.lower().startswith(name):
            rest = key[len(name) :].strip(" _-.[]()")
            bits = 8.0 if _BYTES.fullmatch(rest) else 1.0
            if not rest or rest.lower() in units:
                return bits * units[rest.lower()] if rest else 0.0
    return None


def rate_of(text: str) -> float:
    """A rate as people write it: "10G", "2.5 Gbps", "155 Mbit/s" [bit/s]; ValueError for another text."""
    found = _RATE.fullmatch(text.strip())
    if not found:
        raise ValueError(text)
    return float(found[1]) * _RATES[found[2].lower()]


def content(draft: Draft, names: Mapping[str, str], added: Added) -> dict[str, list[dict[str, Any]]]:
    """The draft as nodes, directed edges and demands in SI units, with its nodes' `ids` as `names`.

    The draft's notes say what was derived or left out.

    Delays that the file doesn't give follow from its lengths, from `added.delay`, or from the nodes' coordinates: the
    great circle at the speed of light in fibre.

    Raises
    ------
    InvalidValue
        Numbers without a unit, or links without a capacity, that `added` doesn't give either.
    """
    known = {names.get(_key(node["key"])): node for node in reversed(draft.nodes)}  # of several, the first
    places = {name: known[name].get("pos") for name in names.values()} if draft.geographical else {}
    edges = []
    counts: Counter[str] = Counter()
    bare: dict[str, list[Any]] = {}
    lacking: list[str] = []
    pairs = {(_key(link.get("source")), _key(link.get("target"))) for link in draft.links}
    turned = any((b, a) in pairs for a, b in pairs if a != b)
    directed = turned if draft.directed is None else draft.directed
    if directed and not turned:
        draft.notes.append("no link has its reverse: each counts in one direction only, as the file is directed")
    for row, link in enumerate(draft.links):
        ends = [names.get(_key(link.get(end))) for end in ("source", "target")]
        if None in ends or ends[0] == ends[1]:
            shown_ends = ", ".join(shown(link.get(end)) for end in ("source", "target"))
            draft.notes.append(f"links[{row}] is left out: its ends aren't two of the nodes: {shown_ends}")
            continue
        edge = {"source": ends[0], "target": ends[1], "id": link.get("id", "")}
        of_rates = added.capacity_unit or (added.demand_unit if draft.one_unit else None)
        if "capacity" not in link and "module" in link and added.capacity is None:
            link |= {"capacity": link["module"]}
            counts["the capacity of the smallest module that can be installed"] += 1
        read = {
            "capacity": (rate_of, of_rates),
            "delay": (lambda text: parse_duration(text, zero=True), added.delay_unit),
            "length": (_length, METRES_PER_KM),
            "buffer": (str, 1.0),  # the record reads it
        }
        for kind, (parse, unit) in read.items():
            try:
                value = _si(link.get(kind), parse, unit)
            except _Bare:
                bare.setdefault(kind, []).append(link[kind].raw)
            except (ValueError, OverflowError, KeyError):
                draft.notes.append(f"links[{row}].{kind} isn't used: got {shown(link[kind].raw)}")
            else:
                edge |= {} if value is None else {kind: value}
        counts.update(_completed(edge, places, added, bare))
        if "capacity" not in edge and "capacity" not in bare:
            lacking.append(f"{ends[0]} to {ends[1]}")
        edge.pop("length", None)
        edges += [edge] if directed else [edge, _reversed(edge)]
    _ask(bare, lacking, len(draft.links))
    draft.notes += [f"{count} {'link has' if count == 1 else 'links have'} {what}" for what, count in counts.items()]
    nodes = [{"id": each, "name": known[each].get("name"), "pos": known[each].get("pos")} for each in names.values()]
    named(edges, "->")
    return {
        "nodes": nodes,
        "edges": edges,
        "demands": demand_records(draft, names, added.demand_unit, mirrored=draft.mirrored and not directed),
    }


def great_circle(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Distance of two places, each (longitude, latitude) in degrees, on a sphere [m]: the haversine formula."""
    (x0, y0), (x1, y1) = ([math.radians(each) for each in place] for place in (a, b))
    h = math.sin((y1 - y0) / 2) ** 2 + math.cos(y0) * math.cos(y1) * math.sin((x1 - x0) / 2) ** 2
    return 2.0 * EARTH_RADIUS * math.asin(min(1.0, math.sqrt(h)))


def _completed(edge: dict[str, Any], places: Mapping[str, Any], added: Added, bare: Mapping[str, Any]) -> list[str]:
    """Fill in a link's missing capacity and delay; what was filled in, in words."""
    told = []
    if "capacity" not in edge and added.capacity is not None:
        edge["capacity"] = added.capacity
        told.append(f"the capacity of the option, {format_quantity(added.capacity, 'bit/s')}")
    if "delay" in edge or "delay" in bare:
        return told
    a, b = places.get(edge["source"]), places.get(edge["target"])
    if "length" in edge:
        edge["delay"] = edge["length"] / SIGNAL_SPEED
        told.append(f"the delay of their length at {SIGNAL_SPEED / 1e3:g} km/s")
    elif added.delay is not None:
        edge["delay"] = added.delay
        told.append(f"the delay of the option, {format_quantity(added.delay, 's')}")
    elif a is not None and b is not None and all(abs(x) <= 360 and abs(y) <= 90 for x, y in (a, b)):
        edge["delay"] = great_circle(a, b) / SIGNAL_SPEED
        told.append(f"the delay of the great circle between their ends at {SIGNAL_SPEED / 1e3:g} km/s")
    else:
        told.append("no delay: there are neither coordinates nor the argument `delay` (--delay)")
    return told


def _ask(bare: Mapping[str, list[Any]], lacking: list[str], links: int) -> None:
    for kind, unit in (("capacity", "1Gbit"), ("delay", "1ms")):
        if bare.get(kind):
            got = f"{len(bare[kind])} numbers without a unit, such as {shown(bare[kind][0])}"
            of = "rate" if kind == "capacity" else "time"
            takes = f'the argument `{kind}_unit` (--{kind}-unit) too: the {of} for which 1 stands, as in "{unit}"'
            raise InvalidValue(kind, got, takes)
    if lacking:
        got = f"none for {len(lacking)} of {links} links, such as {lacking[0]}"
        raise InvalidValue("capacity", got, 'the argument `capacity` (--capacity) for these, as in "10Gbit"')


def _si(value: Quantity | None, parse: Any, unit: float | None) -> float | None:
    if value is None:
        return None
    raw, own = value
    if isinstance(raw, str):
        try:
            raw = float(raw)
        except ValueError:
            return parse(raw)
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw):
        raise ValueError(raw)
    if own is None and unit is None:
        raise _Bare
    return float(raw) * (own if own is not None else unit or 0.0)


def _length(text: str) -> float:
    number, _, unit = text.strip().partition(" ")
    return float(number) * _LENGTHS[unit.lower()]


def ids(draft: Draft) -> dict[str, str]:
    """Key of each node -> its id in the network, which is usable and unique: the label where these are unique.

    Nodes that only links name are added to the draft.
    """
    if not draft.nodes:
        ends = (link.get(end) for link in draft.links for end in ("source", "target"))
        draft.nodes += [{"key": key} for key in dict.fromkeys(map(_key, ends)) if key]
    wanted: dict[str, str] = {}
    for row, node in enumerate(draft.nodes):
        key, name = _key(node["key"]), _usable(node.get("id", node["key"]))
        if not name or not key or key in wanted:
            draft.notes.append(f"nodes[{row}] is left out: its id {shown(node['key'])} is unusable or occurs twice")
        else:
            wanted[key] = name
    times = Counter(wanted.values())
    records = [{"id": name if times[name] == 1 else f"{name[:40]} {key}"} for key, name in wanted.items()]
    named(records, "")
    return dict(zip(wanted, (each["id"] for each in records), strict=True))


def _key(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _usable(name: Any) -> str:
    text = " ".join(str(name).split()) if isinstance(name, str | int) and not isinstance(name, bool) else ""
    return "".join(letter for letter in text[:64] if letter.isprintable())


def _reversed(edge: dict[str, Any]) -> dict[str, Any]:
    name = f"{edge['id']}:reverse" if edge["id"] else ""
    return edge | {"source": edge["target"], "target": edge["source"], "id": name}


def named(records: list[dict[str, Any]], arrow: str) -> None:
    """Give each record an `id` that is usable and unique: its own, else of its ends: a->b, a->b #2."""
    times: Counter[str] = Counter()
    for each in records:
        name = _usable(each["id"]) or f"{each['source']}{arrow}{each['target']}"[:64]
        while times[name]:
            times[name] += 1
            name = f"{name[:56]} #{times[name]}"
        times[name] = 1
        each["id"] = name


def demand_records(
    draft: Draft, names: Mapping[str, str], unit: float | None, *, mirrored: bool = False
) -> list[dict[str, Any]]:
    """The draft's demands in SI units, between nodes of a network: `names` has the id for each name of one.

    Raises
    ------
    InvalidValue
        Rates without a unit; 0 as `unit` leaves all demands out.
    """
    if unit == 0.0 or not draft.demands:
        return []
    found: list[dict[str, Any]] = []
    bare = []
    for row, demand in enumerate(draft.demands):
        ends = [names.get(_key(demand.get(end))) for end in ("source", "target")]
        try:
            mean = _si(demand.get("mean"), rate_of, unit)
            if mean == 0.0:
                continue
            if mean is None or mean < 0.0 or None in ends or ends[0] == ends[1]:
                raise ValueError
            std = demand.get("std")
            share = isinstance(std, Quantity) and isinstance(std.raw, str) and std.raw.strip().endswith("%")
            deviation = float(std.raw.strip()[:-1]) / 100.0 * mean if share else _si(std, rate_of, unit)
        except _Bare:
            bare.append(demand)
        except (ValueError, OverflowError):
            what = ", ".join(
                shorten(str(value.raw if isinstance(value, Quantity) else value)) for value in demand.values()
            )
            draft.notes.append(
                f"demands[{row}] is left out: not two nodes of the network, or no rate: {shorten(what, 120)}"
            )
        else:
            found.append({"source": ends[0], "target": ends[1], "mean": mean, "std": deviation or 0.0, "id": ""})
    if bare:
        raise InvalidValue("demands", f"{len(bare)} demands without a unit", UNIT_TAKES)
    if mirrored:
        there = {(each["source"], each["target"]) for each in found}
        back = [each for each in found if (each["target"], each["source"]) not in there]
        found += [each | {"source": each["target"], "target": each["source"]} for each in back]
    named(found, "=>")
    return found


def limited(notes: list[str], what: str) -> list[str]:
    """The first notes of a kind, and how many more there are."""
    few = notes[:_SHOWN]
    return few + [f"{len(notes) - _SHOWN} more {what}"] * (len(notes) > _SHOWN)
