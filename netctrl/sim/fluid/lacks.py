"""Which of its three ways the fluid takes for a scenario, and what it lacks.

Flows of which each hears of its own packets, at the rate of a pacing law or over CoDel, are stepped one by one
(`has_pacers`); windows over one drop-tail queue lose single packets, drawn at random (`is_one_line`); all else is the
mean field of windows that follow the probability of a mark.
"""

from __future__ import annotations

from collections.abc import Iterator

from netctrl.core.register import TCP_SENDERS
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.records import FastSender, has_pacer
from netctrl.scenario.bottleneck import single_line
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

FLUID_SENDERS = ("reno", "cubic", "dctcp", "prague")
"""Senders of the fluid's bulk flows, by their numbers in its arrays."""

ACK_BYTES = 40.0
"""An acknowledgement [byte]."""

FEWEST_PACKETS = 16
"""Smallest buffer of a drop-tail link at which the fluid of windows agrees with packets [packet]."""

_MANY = 50
"""Flows and sessions from which a mean field has the losses of Reno at drop-tail queues."""


def has_pacers(scenario: Scenario) -> bool:
    """Whether flows are stepped one by one: single ones over one drop-tail or CoDel queue, of which one is paced,
    capped or BBR, or cross traffic, or the queue is CoDel.

    Parameters
    ----------
    scenario : Scenario
    """
    if not single_line(scenario, varying=True) or not isinstance(scenario.links[0].queue, DropTailQueue | CodelQueue):
        return False
    return isinstance(scenario.links[0].queue, CodelQueue) or any(
        isinstance(each.sender, CapSender) or has_pacer(each.sender) or each.sender == "bbr" or not each.answered
        for each in scenario.flows
    )


def sender_lack(group: Flow) -> str | None:
    """What the fluid has instead of a group's sender; None: it has it."""
    if isinstance(group.sender, FastSender) or not group.answered:
        return None
    known = FLUID_SENDERS if group.bulk else FLUID_SENDERS[:1]
    if group.sender not in known:
        return ", ".join(known)
    if group.sender in ("dctcp", "prague") and not group.ecn:
        return "reno and cubic without ecn"
    return None


def is_one_line(scenario: Scenario) -> bool:
    """Whether all flows are endless windows over one bounded drop-tail queue, and nothing else is busy."""
    laws = tuple(TCP_SENDERS)
    if not all(g.bulk and len(g.path) == 1 and g.sender in laws for g in scenario.flows):
        return False
    if len({(group.path, group.ack_path) for group in scenario.flows}) > 1:
        return False
    links = {link.id: link for link in scenario.links}
    first = scenario.flows[0]
    line = links[first.path[0]]
    if first.ack_path and any(links[name].trace is not None for name in (line.id, *first.ack_path)):
        return False
    acks = ACK_BYTES / scenario.packet_size * max(_rates(scenario, line))
    return _drops(line) and all(acks <= min(_rates(scenario, links[name])) for name in first.ack_path)


def overflow_lack(scenario: Scenario) -> tuple[str, str] | None:
    """What the fluid lacks for losses at drop-tail queues: the place and a description; None: nothing."""
    for link in scenario.links:
        if not (_drops(link) and _may_fill(scenario, link)):
            continue
        if is_one_line(scenario):
            if (link.buffer or 0.0) / scenario.packet_size >= FEWEST_PACKETS:
                return None
            lack = f"windows over a drop-tail buffer below {FEWEST_PACKETS} packets, where the packet engine is as fast"
            return f"links.{link.id}.buffer", lack
        if not _is_mean(scenario, link):
            lack = f"drop-tail queues that overflow, unless all flows are windows over that one link or {_MANY} of Reno"
            return f"links.{link.id}.queue", lack
    return None


def _drops(link: Link) -> bool:
    return isinstance(link.queue, DropTailQueue) and link.buffer is not None


def _rates(scenario: Scenario, link: Link) -> Iterator[float]:
    """Capacities that a link ever has [bit/s]."""
    yield link.capacity
    yield from (each.capacity for each in scenario.changes if each.link == link.id and each.capacity)


def _may_fill(scenario: Scenario, link: Link) -> bool:
    """Whether bulk flows can send more than a link takes: not if slower links on their paths bound all of them."""
    links = {each.id: each for each in scenario.links}
    bounds: dict[str, float] = {}
    for group in scenario.flows:
        if group.bulk and link.id in group.path:
            others = {name: max(_rates(scenario, links[name])) for name in group.path if name != link.id}
            if not others:
                return True
            slowest = min(others, key=others.__getitem__)
            bounds[slowest] = others[slowest]
    return sum(bounds.values()) > min(_rates(scenario, link))


def _is_mean(scenario: Scenario, link: Link) -> bool:
    """Whether so many senders of Reno cross a link that their mean tells the losses."""
    crossing = [group for group in scenario.flows if link.id in group.path]
    count = sum(group.count for group in crossing)
    return count >= _MANY and all(group.sender == "reno" for group in crossing)
