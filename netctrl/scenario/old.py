"""Conversion of the contents of scenario files of earlier versions."""

from __future__ import annotations

from typing import Any

import msgspec

from netctrl.errors import InvalidValue
from netctrl.scenario.scenario import PLACES, Scenario

__all__ = [
    "ACCESS_LINK_KEYS",
    "OldDataCentre",
    "is_old",
    "nested",
    "place_of",
]

_LINE = ("capacity", "hops", "limit", "discipline", "premium_share", "access_rate", "base_delay")
_GROUPS = ("premium_rate", "premium_size", "sources", "senders", "pause_variation", "cross", "failures", "size")
ACCESS_LINK_KEYS = frozenset((*_LINE, *_GROUPS, "interval"))
"""Keys of which an access link's file had at least one."""


_OLD_NAMES = {"sample": "interval"}
_OLD_PLACES = {
    "network": "network.graph",
    "policy": "control",
    "messages": "control.messages",
    "traffic": "traffic.flows.demands.spread",
}
"""Keys of a network under demands."""


def is_old(content: dict[str, Any]) -> bool:
    """Whether a scenario's content is of an earlier version."""
    network = content.get("network")
    bare = isinstance(network, str) or (isinstance(network, dict) and "links" in network and "kind" not in network)
    return bare or not content.keys() <= {"schema", *Scenario.__struct_fields__}


def nested(content: dict[str, Any]) -> dict[str, Any]:
    """Content of an earlier version, arranged in today's parts; unknown keys stay, so that the reader names them.

    Raises
    ------
    InvalidValue
        As for `nested_access_link`.
    """
    if "bottleneck" in content and "links" not in content:
        return nested_bottleneck(content)
    if "topology" in content:
        return nested_data_centre(content)
    if "network" in content:
        return _routed(content)
    if content.keys() & ACCESS_LINK_KEYS and not content.keys() & {"links", "flows"}:
        return nested_access_link(content)
    return placed({_OLD_NAMES.get(name, name): value for name, value in content.items()}, {"kind": "links"})


def place_of(place: str) -> str:
    """Today's path of a field of a network under demands: "policy.mu" is "control.mu"."""
    first, dot, rest = place.partition(".")
    part = PLACES.get(first)
    return _OLD_PLACES.get(first, f"{part}.{first}" if part else first) + dot + rest


def _routed(content: dict[str, Any]) -> dict[str, Any]:
    """Content of a network under demands. Messages go to the policy if its controllers exchange any."""
    flows = [{"kind": "tcp"} | each if isinstance(each, dict) else each for each in content.get("tcp", ())]
    if "traffic" in content:
        flows.insert(0, {"kind": "demands", "spread": content["traffic"]})
    found: dict[str, Any] = {"network": {"kind": "routed"}, "traffic": {"flows": flows}, "time": {}}
    for name, value in content.items():
        if name not in ("tcp", "traffic", "messages"):
            part, _, key = place_of(name).partition(".")
            if key:
                found[part][key] = value
            else:
                found[part] = value
    match content, found:
        case {"messages": messages}, {"control": {"kind": "hftrac" | "design"} as control}:
            found["control"] = control | {"messages": messages}
    return found


def nested_bottleneck(content: dict[str, Any]) -> dict[str, Any]:
    """A bottleneck's flat content with its defaults, arranged in today's parts.

    Raises
    ------
    InvalidValue
        Flows that aren't a list of tables, or `warm_up`, the first version's name, together with `warmup`.
    """
    if "warm_up" in content and "warmup" in content:
        raise InvalidValue("warm_up", content["warm_up"], "no value beside `warmup`, its new name")
    renamed = {"bottleneck": "capacity", "bin": "interval", "warm_up": "warmup"}
    rest = {renamed.get(name, name): value for name, value in content.items()}
    flows = [
        {"kind": "single", "id": f"flow{place}", **_taken(flow, sender="kind"), **flow}
        for place, flow in enumerate(_tables("flows", rest.pop("flows", [{"kind": "paced"}])))
    ]
    usual = {"name": "bottleneck", "packet_size": "1500B", "duration": "60s", "warmup": "10s"}
    return placed(usual | rest | {"flows": flows}, {"kind": "bottleneck"})


def nested_access_link(content: dict[str, Any]) -> dict[str, Any]:
    """An access link's flat content with its defaults, arranged in today's parts.

    Raises
    ------
    InvalidValue
        Sources, cross traffic or failures that aren't a list, or a failure of an unknown source.
    """
    rest = {"name": "access link", "duration": "100s", "interval": "1s"} | content
    line = _taken(rest, *_LINE)
    premium = {"kind": "premium"} | _taken(rest, rate="premium_rate", size="premium_size")
    varied = _taken(rest, "pause_variation")
    regulated = varied | _taken(rest, sender="senders")
    sources = [
        {"kind": "regulated", "id": f"source{place}", **regulated, **_taken(each, count="flows"), **each}
        for place, each in enumerate(_tables("sources", rest.pop("sources", [{}, {}, {}])))
    ]
    cross = [
        {"kind": "cross", "id": f"cross{place}", **varied, **each}
        for place, each in enumerate(_tables("cross", rest.pop("cross", [])))
    ]
    for place, failure in enumerate(_tables("failures", rest.pop("failures", []))):
        source = failure.pop("source", None)
        if type(source) is not int or not 0 <= source < len(sources):
            raise InvalidValue(f"failures[{place}].source", source, f"a source from 0 to {len(sources) - 1}")
        sources[source].setdefault("failures", []).append(failure)
    return {
        "network": {"kind": "access-link", **line},
        "traffic": {"flows": [premium, *sources, *cross], **_taken(rest, packet_size="size")},
        "time": _taken(rest, "duration", "interval", "seed"),
        **rest,
    }


class OldDataCentre(msgspec.Struct):
    """Tables of a former data centre's scenario that are elsewhere today."""

    topology: dict[str, Any]
    scheme: Any = msgspec.field(default_factory=lambda: {"kind": "mpcc"})
    flows: list[dict[str, Any]] = []
    poisson: dict[str, Any] | None = None
    incast: dict[str, Any] | None = None
    watch: dict[str, Any] = {}


def nested_data_centre(content: dict[str, Any]) -> dict[str, Any]:
    """A data centre's former content, arranged in today's parts; msgspec.ValidationError, of `OldDataCentre`."""
    old = msgspec.convert(content, OldDataCentre)
    rest = {name: value for name, value in content.items() if name not in OldDataCentre.__struct_fields__}
    interval = {name: old.watch.pop(name) for name in ("interval",) if name in old.watch}
    flows: list[dict[str, Any]] = [{"kind": "message", "id": f"flow{i}"} | flow for i, flow in enumerate(old.flows)]
    flows += [
        {"kind": kind, "id": kind} | table
        for kind, table in (("poisson", old.poisson), ("incast", old.incast))
        if table is not None
    ]
    today = {"sender": old.scheme, "flows": flows, "watch": old.watch, **interval}
    return placed({"name": "data centre", "duration": "10ms"} | rest | today, old.topology)


def placed(fields: dict[str, Any], network: dict[str, Any]) -> dict[str, Any]:
    """Flat fields, each put in its part; unknown fields stay, so that the reader names them."""
    found: dict[str, Any] = {"network": dict(network), "traffic": {}, "time": {}}
    for name, value in fields.items():
        part = found.get(PLACES.get(name, ""), found)
        part[name] = value
    return found


def _taken(content: dict[str, Any], *names: str, **renamed: str) -> dict[str, Any]:
    """Some entries of the content, removed from it: by their own names, or as new name = old name."""
    wanted = {name: name for name in names} | renamed
    return {new: content.pop(old) for new, old in wanted.items() if old in content}


def _tables(name: str, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, dict) for each in value):
        raise InvalidValue(name, value, "a list of tables")
    return [dict(each) for each in value]
