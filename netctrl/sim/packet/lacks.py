"""What of scenarios the packet engine doesn't have; nothing compiled is imported for it."""

from __future__ import annotations

from netctrl.core.register import TCP_SENDERS
from netctrl.laws.disciplines import KernelQueue
from netctrl.laws.rate.records import FastSender, KernelTcp, sender_name
from netctrl.laws.targets.pie_packets import pie_lacks
from netctrl.scenario.network.policy import Backpressure
from netctrl.scenario.network.runs import tcp_of
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.lacks import NOISE, OF_KERNEL


def flows_lack(scenario: Scenario) -> str | None:
    """What of links and flows it doesn't have; None: it runs them."""
    for group in scenario.flows:
        if isinstance(group.sender, FastSender):
            return f"FAST senders, which see a price (flows.{group.id})"
        if isinstance(group.sender, KernelTcp):
            return f"{OF_KERNEL} (flows.{group.id}.sender)"
        if group.rtt_noise > 0.0:
            return f"{NOISE} (flows.{group.id}.rtt_noise)"
    for link in scenario.links:
        if isinstance(link.queue, KernelQueue):
            pie = link.queue.discipline == "pie"
            lacking = pie_lacks(link.queue.parameters) if pie else link.queue.discipline
            if lacking is not None:
                return f"queueing disciplines of Linux but a plain pie, such as {lacking} (links.{link.id}.queue)"
    return None


def network_lacks(scenario: Scenario) -> str | None:
    """What of a network under demands it doesn't have; None: it runs it."""
    if isinstance(scenario.control, Backpressure):
        return "backpressure, which looks at each moment into the next queues"
    for each in tcp_of(scenario):
        if each.sender not in TCP_SENDERS:
            return f"{sender_name(each.sender)} in the place of demands (flows.{each.id})"
    return None
