"""Networks of queues from scenarios: links with their laws, and groups of long flows with their paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from netctrl.certificates.networks.laws import law_of
from netctrl.certificates.subject import Subject
from netctrl.errors import InvalidValue
from netctrl.plants.queue_networks.network import LawRange, PathFlows, QueueLink, QueueNetwork
from netctrl.plants.queues.queue_laws import WindowClass
from netctrl.plants.queues.window_response import CUBIC, DCTCP, RENO, Sender
from netctrl.scenario.links import Link, Links
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows
from netctrl.units import packets_per_second

__all__ = ["CertifiedNetwork", "Changed", "check_links", "network_of"]

_SENDERS: dict[str, Sender] = {"reno": RENO, "cubic": CUBIC, "dctcp": DCTCP, "prague": DCTCP}
"""Senders of flows whose windows have a linear response."""
Changed = tuple[str, str]
"""("rtt", "flows" or "capacity", name of a group or a link)."""
_WITHOUT_LAW = WindowClass(RENO, queued=True)


class CertifiedNetwork(NamedTuple):
    """A scenario's network in the terms of a loop."""

    network: QueueNetwork
    capacities: tuple[float, ...]
    """Rates of the links [bit/s]."""
    laws: tuple[Subject | None, ...]
    """Of the links; None: a buffer alone."""


def check_links(scenario: Scenario) -> None:
    """InvalidValue for a network that isn't one of single links."""
    if not isinstance(scenario.network, Links):
        kind = scenario.network.__struct_config__.tag
        raise InvalidValue("network.kind", kind, 'a network of kind "links"')


def network_of(scenario: Scenario, changed: Mapping[Changed, float] | None = None) -> CertifiedNetwork:
    """Links and flows of a scenario.

    Parameters
    ----------
    scenario : Scenario
    changed : mapping, optional
        Values in place of the scenario's: of ("rtt", group) [s], ("flows", group) or ("capacity", link) [bit/s].

    Raises
    ------
    InvalidValue
        What the loop doesn't describe, named by its place in the file.
    """
    check_links(scenario)
    if scenario.network.changes:
        raise InvalidValue("network.changes", f"{len(scenario.network.changes)} changes", "none: one operating point")
    if scenario.control is not None:
        raise InvalidValue("control", scenario.control.__struct_config__.tag, "none: link rates that stay")
    if not scenario.flows:
        raise InvalidValue("traffic.flows", "none", "at least one group of flows")
    size, changed = scenario.traffic.packet_size, changed or {}
    given = [replace(link, capacity=changed.get(("capacity", link.id), link.capacity)) for link in scenario.links]
    laws = tuple(law_of(link, size) for link in given)
    links = tuple(_link(link, law, size) for link, law in zip(given, laws, strict=True))
    places = {link.id: k for k, link in enumerate(given)}
    groups = tuple(_group(group, places, laws, changed) for group in scenario.flows)
    return CertifiedNetwork(QueueNetwork(links, groups), tuple(link.capacity for link in given), laws)


def _link(link: Link, law: Subject | None, packet_bytes: float) -> QueueLink:
    for name in ("trace", "loss", "jitter", "pfc"):
        value = getattr(link, name)
        if value:
            raise InvalidValue(f"links.{link.id}.{name}", value, "nothing: a link with a steady rate and no losses")
    rate = packets_per_second(link.capacity, packet_bytes)
    if law is None:
        return QueueLink(name=link.id, rate=rate, delay_s=link.delay)
    loops = law.loops((law.seen_by(RENO),), rate, packet_bytes)
    return QueueLink(
        name=link.id,
        rate=rate,
        delay_s=link.delay,
        ranges=tuple(LawRange(*loop.within, loop.law) for loop in loops),
        greatest=loops[0].reached(law.greatest),
        beyond=law.beyond,
        age_s=loops[0].age_s,
        age_queues=loops[0].age_queues,
        marked_leaving=loops[0].marked_leaving,
    )


def _group(
    group: Any, places: dict[str, int], laws: tuple[Subject | None, ...], changed: Mapping[Changed, float]
) -> PathFlows:
    where = f"flows.{group.id}"
    if not isinstance(group, BulkFlows) or group.size is not None:
        kind = group.__struct_config__.tag if not isinstance(group, BulkFlows) else "flows of finite size"
        raise InvalidValue(where, kind, "bulk flows without an end")
    if group.packet_size is not None:
        raise InvalidValue(f"{where}.packet_size", group.packet_size, "nothing: packets of one size")
    if group.stop is not None:
        raise InvalidValue(f"{where}.stop", group.stop, "nothing: flows that stay")
    if group.ack_path:
        raise InvalidValue(f"{where}.ack_path", group.ack_path, "nothing: acknowledgements that don't queue")
    if not isinstance(group.sender, str) or group.sender not in _SENDERS:
        name = group.sender if isinstance(group.sender, str) else group.sender.__struct_config__.tag
        raise InvalidValue(f"{where}.sender", name, f"one of {', '.join(_SENDERS)}")
    rtt = changed.get(("rtt", group.id), group.rtt[0])
    if group.rtt[0] != group.rtt[1] and ("rtt", group.id) not in changed:
        raise InvalidValue(f"{where}.rtt", group.rtt, "one round-trip time; several groups for several of them")
    sender, path = _SENDERS[group.sender], tuple(places[name] for name in group.path)
    seen = tuple(_seen(laws[k], sender) for k in path)
    flows = float(changed.get(("flows", group.id), group.count))
    return PathFlows(name=group.id, flows=flows, rtt_s=rtt, path=path, seen=seen)


def _seen(law: Subject | None, sender: Sender) -> WindowClass:
    return _WITHOUT_LAW._replace(sender=sender) if law is None else law.seen_by(sender)
