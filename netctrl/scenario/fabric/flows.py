"""Flows between hosts of a data centre: their ends, the law that they share, and what they can't have there."""

from __future__ import annotations

from typing import Any

import msgspec

from netctrl.core.errors import InvalidValue
from netctrl.laws.rate.records import scheme_of, sender_name
from netctrl.laws.window.records import Scheme
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import BETWEEN_HOSTS, Incast

_OF_LINKS = ("count", "path", "ack_path", "rtt", "ecn", "host", "priority", "weight", "packet_size", "classes")
"""Fields of a flow without a meaning in a data centre."""
LAWS_TAKEN = 'a law of data centres: hpcc, timely, dcqcn, mpcc, fixed or a table, as in { kind = "dctcp" }'


def ends_of(flow: Flow) -> tuple[tuple[int, int], ...]:
    """(source, target) of each flow of a group whose hosts are given.

    Raises
    ------
    InvalidValue
        Numbers of sources and targets that differ, or a flow to its own source.

    Examples
    --------
    >>> ends_of(Flow(source=range(4), target=4, offers="1MB", sender="hpcc"))
    ((0, 4), (1, 4), (2, 4), (3, 4))
    """
    sources, targets = len(flow.source), len(flow.target)
    if sources != targets and 1 not in (sources, targets):
        raise InvalidValue(f"flows.{flow.id}.target", flow.target, f"one host, or {sources}, as many as sources")
    count = max(sources, targets)
    source, target = (each * count if len(each) == 1 else each for each in (flow.source, flow.target))
    if any(a == b for a, b in zip(source, target, strict=True)):
        raise InvalidValue(f"flows.{flow.id}.target", flow.target, "a host other than source")
    return tuple(zip(source, target, strict=True))


def check_ends(flow: Flow, hosts: int) -> None:
    """InvalidValue for a flow whose hosts aren't among so many, or don't fit each other."""
    for name in ("source", "target"):
        given = getattr(flow, name)
        if given is None or max(given) >= hosts:
            raise InvalidValue(f"flows.{flow.id}.{name}", given, f"a host from 0 to {hosts - 1}, or a list of them")
    ends_of(flow)


def check_host_flows(flows: tuple[Flow, ...], hosts: int) -> None:
    """InvalidValue for a flow that a data centre with so many hosts can't have."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(Flow)}
    for flow in flows:
        where, drawn = f"flows.{flow.id}", isinstance(flow.offers, BETWEEN_HOSTS)
        for name in _OF_LINKS:
            if getattr(flow, name) != defaults[name]:
                raise InvalidValue(f"{where}.{name}", getattr(flow, name), "no value in a data centre")
        if not drawn and flow.size is None:
            raise InvalidValue(f"{where}.offers", flow.kind, "a size, as in 1MB, or a table of kind sizes or incast")
        if flow.start[0] < flow.start[1]:
            raise InvalidValue(f"{where}.start", flow.start, "one time")
        if flow.stop is not None and (not drawn or flow.stop[0] < flow.stop[1]):
            raise InvalidValue(f"{where}.stop", flow.stop, "one time, for transfers that are drawn")
        if not drawn:
            check_ends(flow, hosts)
        for name in ("source", "target"):
            if drawn and getattr(flow, name) is not None:
                takes = "no value: all hosts send and receive what is drawn"
                raise InvalidValue(f"{where}.{name}", getattr(flow, name), takes)
        if isinstance(flow.offers, Incast) and flow.offers.senders >= hosts:
            raise InvalidValue(f"{where}.offers.senders", flow.offers.senders, f"fewer than the {hosts} hosts")
    common_sender(flows)


def common_sender(flows: tuple[Flow, ...]) -> Scheme:
    """The window law that all groups share.

    Raises
    ------
    InvalidValue
        A group with another sender, or groups with different laws.
    """
    laws = []
    for flow in flows:
        law = scheme_of(flow.sender)
        if law is None:
            raise InvalidValue(f"flows.{flow.id}.sender", sender_name(flow.sender), LAWS_TAKEN)
        laws.append(law)
        if law != laws[0]:
            raise InvalidValue(f"flows.{flow.id}.sender", law, f"the law of the other flows, {laws[0]}")
    return laws[0]


def of_links(flows: tuple[Flow, ...]) -> bool:
    """Whether some flows have senders other than a data centre's, which run over links."""
    return any(flow.sender is None or scheme_of(flow.sender) is None for flow in flows)


def with_sender(scenario: Any, sender: Scheme) -> Any:
    """The scenario with this law for all its flows."""
    return scenario.replace(flows=tuple(msgspec.structs.replace(flow, sender=sender) for flow in scenario.flows))
