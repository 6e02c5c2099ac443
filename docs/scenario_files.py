"""The page "Scenario files": every key of a scenario and of a sweep, from the records that read them."""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import msgspec.inspect as types

from netctrl.cli.catalogue import LAWS, entries
from netctrl.core.units import format_quantity
from netctrl.laws.codegen import field_texts
from netctrl.laws.disciplines import LINK_QUEUES
from netctrl.laws.rate.records import RATE_LAWS, FastSender
from netctrl.laws.window.records import SCHEMES
from netctrl.model.io.toml import kinds
from netctrl.model.network import Network
from netctrl.scenario.network.policy import POLICIES
from netctrl.scenario.network.sweep import SweepSpec
from netctrl.scenario.network.traffic import SPREADS
from netctrl.scenario.scenario import NETWORKS, Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import OFFERS

START = """# Scenario files

A scenario is a TOML file: what `netctrl simulate` takes, `netctrl.read` reads and a [sweep](#sweepspec) varies. These
tables are made from the records that read it. [Simulation](../explanation/simulation.md#the-scenario-file) shows a long
one, and `netctrl list scenarios` those that come with netctrl; this one runs:

```toml
schema = "netctrl.scenario/3"
name = "fifty flows"
links = [{ id = "line", source = "a", target = "b", capacity = "10Mbit", queue = { kind = "pie" } }]
flows = [{ sender = "cubic", count = 50, rtt = "90ms:110ms" }]
duration = "60s"
warmup = "20s"
```

- A **rate** is text with `bit`, `kbit`, `Mbit`, `Gbit` or `Tbit`, a **time** with `ns`, `us`, `ms`, `s` or `min`, a
  **size** with `B`, `kB`, `MB`, `GB`, `KiB`, `MiB` or `GiB`. A **range** of times is `"60ms:1s"`, or one value for both
  ends.
- What a key means where it is "null" holds where it is left out.
- Where a table has a `kind`, this decides which other keys it has; each kind is a section below.
- A key that isn't listed is an error, which names the nearest one. What a law of [your own](../how-to/own-law.md) takes
  is found in the same way."""

GRAPHS = """A graph is named, or written with these tables. A
[network's file](../explanation/hftrac.md#a-network-file) has the same keys in node-link JSON."""
UNITS = {"rate": "bit", "time": "s", "size": "B"}
PLAIN = {
    types.StrType: "text",
    types.IntType: "whole number",
    types.FloatType: "number",
    types.BoolType: "true or false",
    types.DictType: "table",
}


def scenario_files() -> str:
    """Source of the page; ValueError where a key's meaning isn't told."""
    sections = {
        "Networks: `network`": ("In the place of links, one of these, by its `kind`.", NETWORKS),
        "Queues: `queue` of a link": ("Laws of queues, by their `kind`.", LINK_QUEUES),
        "Flows: `flows`": ("They have no `kind`.", (Flow,)),
        "What flows offer: `offers`": ("What each flow has to send, by its `kind`.", OFFERS),
        "Distributions of demands: `spread`": ("One of these, by its `kind`.", SPREADS),
        "Senders: `sender` of flows": (_senders(), (*(law.record for law in RATE_LAWS), *SCHEMES, FastSender)),
        "Graphs: `graph` of a routed network": (GRAPHS, tuple(_records(types.type_info(Network)))),
        "Controllers: `control`": ("What sets the rates of links, by its `kind`.", POLICIES),
    }
    everything = list(_records(types.type_info(Scenario)))
    grouped = {Scenario, *(record for _, records in sections.values() for record in records)}
    parts = [START, "## The file", _table(Scenario)]
    for title, (told, records) in sections.items():
        parts += [f"## {title}", told]
        parts += [text for record in records for text in _section(record, _tag(record))]
    parts.append("## Tables within these")
    parts += [text for record in everything if record not in grouped for text in _section(record, record.__name__)]
    parts.append("## Sweep files")
    for record in _records(types.type_info(SweepSpec)):
        parts += _section(record, record.__name__)
    return "\n\n".join(parts) + "\n"


def _senders() -> str:
    """The names that a sender may be, of each registry."""
    lines = ["A sender is the name of a law, or a table with its `kind` and parameters. Registered are:", ""]
    named = {law.name: law for law in entries("laws")}
    for kind, registry in list(LAWS.items())[1:]:
        lines += ["| " + kind + " | what it is |", "|---|---|"]
        lines += [f"| `{name}` | {_cell(named[name].what)} |" for name in registry]
        lines += [""]
    return "\n".join(lines).rstrip()


def _records(kind: Any, seen: set[type] | None = None) -> Iterator[type]:
    """Every record that may stand in a file of this kind, in the order of its keys."""
    seen = set() if seen is None else seen
    for each in kinds([kind]):
        if isinstance(each, types.StructType) and each.cls not in seen:
            seen.add(each.cls)
            yield each.cls
            for field in each.fields:
                yield from _records(field.type, seen)
        for name in ("item_type", "value_type"):
            if hasattr(each, name):
                yield from _records(getattr(each, name), seen)
        for item in getattr(each, "item_types", ()):
            yield from _records(item, seen)


def _tag(record: type) -> str:
    return str(record.__struct_config__.tag)


def _id(record: type) -> str:
    """Its place on the page; a graph has links and demands too."""
    return f"{'graph-' if record.__module__.startswith(Network.__module__) else ''}{record.__name__.lower()}"


def _section(record: type, title: str) -> list[str]:
    """A record's heading, what it is, and its keys."""
    text = re.split(r"\n\n\w+\n-{3,}\n", inspect.cleandoc(record.__doc__ or ""))[0]  # without Raises, Examples
    return [f'### {title} {{ id="{_id(record)}" }}', html.escape(text, quote=False), _table(record)]


def _table(record: type) -> str:
    lines = ["| key | takes | default | meaning |", "|---|---|---|---|"]
    meanings = _meanings(record)
    if record is Scenario:
        lines.append('| `schema` | text | `"netctrl.scenario/3"` | Format of the file. |')
    elif record.__struct_config__.tag is not None:
        lines.append(f'| `kind` | text | required | `"{_tag(record)}"` |')
    for field in types.type_info(record).fields:
        if field.name not in meanings:
            raise ValueError(f"{record.__module__}.{record.__name__}.{field.name} has no docstring")
        default = "required" if field.required else _default(record, field)
        takes = _takes(field.type, _annotation(record, field.name))
        lines.append(
            f"| `{field.encode_name}` | {_cell(takes)} | {default} | {_cell(meanings[field.name], escape=True)} |"
        )
    return "\n".join(lines) if len(lines) > 2 else ""


@cache
def _meanings(record: type) -> dict[str, str]:
    """The text under each field, where it or a class that it comes from has it."""
    kinds_of_it = reversed(record.__mro__[: record.__mro__.index(msgspec.Struct)])
    return {name: text for kind in kinds_of_it for name, text in field_texts(kind).items() if text}


def _annotation(record: type, name: str) -> str:
    return next(found[name] for kind in record.__mro__ if name in (found := inspect.get_annotations(kind)))


def _takes(kind: Any, annotation: str = "") -> str:
    """What a type admits, in words; records are links to their sections."""
    words = [_word(each, annotation) for each in kinds([kind]) if not isinstance(each, types.NoneType)]
    return ", ".join(dict.fromkeys(filter(None, words)))


def _word(kind: Any, annotation: str) -> str:
    quantity = (getattr(kind, "extra", None) or {}).get("quantity")
    if quantity is not None:
        return "time or range" if "Span" in annotation else str(quantity)
    if isinstance(kind, types.StructType):
        title = kind.cls.__struct_config__.tag or kind.cls.__name__
        return f"[{title}](#{_id(kind.cls)})"
    if isinstance(kind, types.LiteralType):
        return ", ".join(f'`"{each}"`' for each in kind.values)
    if hasattr(kind, "item_type"):
        return f"list of {_takes(kind.item_type) or 'values'}"
    if isinstance(kind, types.AnyType):
        return "text" if "Label" in annotation else ""
    return PLAIN.get(type(kind), "")


def _default(record: type, field: Any) -> str:
    """As a file would have it; empty where nothing is what stands there."""
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    quantity = next((each.extra["quantity"] for each in kinds([field.type]) if getattr(each, "extra", None)), None)
    if not value and not isinstance(value, int | float | str):
        return "none"
    if quantity is not None and isinstance(value, tuple):
        value = value[0]
    if quantity is not None:
        return f"`{format_quantity(value, UNITS[quantity]).replace(' ', '').replace(chr(181), 'u')}`"
    if hasattr(value, "__struct_fields__"):
        tag = type(value).__struct_config__.tag
        return f"`{tag}`" if tag else "its defaults"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value:.6g}`"


def _cell(text: str, *, escape: bool = False) -> str:
    text = " ".join(text.split()).replace("|", "\\|")
    return html.escape(text, quote=False) if escape else text
