"""What of a scenario the kernel in virtual time doesn't have, and what is missing here to run it; builds nothing."""

from __future__ import annotations

import sys

from netctrl.core.errors import NetctrlError
from netctrl.core.units import BITS_PER_BYTE
from netctrl.kernel.scenarios.queues import queue_lacks
from netctrl.kernel.scenarios.senders import CONGESTION_CONTROLS, kernel_sender
from netctrl.laws.rate.records import FastSender, KernelTcp, is_l4s, sender_name, window_of
from netctrl.laws.rate.regulated import RegulatedSender
from netctrl.scenario.links import MIN_RTO, impairments
from netctrl.scenario.network.graph import graph_of
from netctrl.scenario.network.policy import Backpressure
from netctrl.scenario.network.runs import tcp_of
from netctrl.scenario.network.track import gated_groups
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.lacks import NOISE, OTHER_RTO, trace_alone
from netctrl.scenario.tcp_aqm.offers import DATAGRAMS, Demand, Stream, Web

MAX_FLOWS = 5000
"""Most flows, each of which is a thread and a socket or more."""
MAX_DATAGRAMS = 5_000_000
"""Most UDP packets, as each is kept until the end."""
_MIN_FRAME, _MAX_FRAME = 200, 1514


def scenario_lacks(scenario: Scenario) -> str | None:
    """Part of a scenario that isn't supported; None: it can be run."""
    if scenario.min_rto != MIN_RTO:
        return f"{OTHER_RTO} (min_rto)"
    for group in scenario.flows:
        if (missing := _group_lacks(scenario, group)) is not None:
            return missing
    if len({group.slow_start == "standard" for group in scenario.flows if window_of(group.sender) == "cubic"}) > 1:
        return "cubic with HyStart beside cubic without it (flows.slow_start)"
    for link in scenario.links:
        kept = {**impairments(link), "pfc": "priority flow control"}
        kept |= {} if trace_alone(scenario) else {"trace": "traces where a control sets rates"}
        for name, what in kept.items():
            if name == "loss" or (name == "jitter" and link.reorder) or not getattr(link, name):
                continue
            return f"{what}{' that keeps the order' if name == 'jitter' else ''} (links.{link.id}.{name})"
        missing = queue_lacks(link, scenario.packet_size)
        if missing is not None:
            return missing
    return _beyond(scenario)


def _group_lacks(scenario: Scenario, group: Flow) -> str | None:
    if isinstance(group.sender, RegulatedSender):
        return f"TCP senders with regulators that pause at random (flows.{group.id}.sender)"
    if isinstance(group.sender, FastSender):
        return f"FAST senders, which see a price (flows.{group.id})"
    if group.packet_size is not None:
        return f"packets of several sizes (flows.{group.id}.packet_size)"
    if group.offload:
        return f"segmentation offload (flows.{group.id}.offload)"
    cubic = window_of(group.sender) == "cubic"
    if group.slow_start not in (None, "standard", "hystart" if cubic else None):
        return f"{group.slow_start} for {sender_name(group.sender)} (flows.{group.id}.slow_start)"
    if group.rtt_noise > 0.0:
        return f"{NOISE} (flows.{group.id}.rtt_noise)"
    if is_l4s(group.sender):
        return f"the echo of each mark that L4S takes (flows.{group.id}.sender)"
    if not isinstance(group.offers, DATAGRAMS):
        sender = kernel_sender(group.sender, 1.0)
        if sender is None:
            names = ", ".join(CONGESTION_CONTROLS)
            said = f"flows.{group.id} are {sender_name(group.sender)}"
            return f"senders but {names}, paced or cap over one of these, and kind kernel ({said})"
        if isinstance(group.offers, Web) and sender.law is not None:
            return f"Web sessions that a law paces (flows.{group.id})"
    ends = {link.id: (link.source, link.target) for link in scenario.links}
    for path in (group.path, group.ack_path):
        nodes = [ends[name][0] for name in path[:1]] + [ends[name][1] for name in path]
        if len(set(nodes)) < len(nodes):  # routes to one address can't follow it
            return f"paths that visit a node twice (flows.{group.id})"
    return None


def _beyond(scenario: Scenario) -> str | None:
    """Values beyond the limits above."""
    size = scenario.packet_size
    flows = sum(_flows(group) for group in scenario.flows)
    datagrams = sum(
        group.count * _mean_rate(group) * scenario.duration / (BITS_PER_BYTE * size)
        for group in scenario.flows
        if isinstance(group.offers, Stream | Demand) and group.id not in gated_groups(scenario)
    )
    limits = {
        f"packets of {size:g} bytes: a whole number from {_MIN_FRAME} to {_MAX_FRAME}": (
            not _MIN_FRAME <= size <= _MAX_FRAME or size != int(size)
        ),
        f"room for {flows} flows: at most {MAX_FLOWS}": flows > MAX_FLOWS,
        f"room for {datagrams:.0f} UDP packets: at most {MAX_DATAGRAMS}, which are kept": datagrams > MAX_DATAGRAMS,
    }
    return next((said for said, beyond in limits.items() if beyond), None)


def _mean_rate(group: Flow) -> float:
    """Mean rate of each flow [bit/s]."""
    if isinstance(group.offers, Stream):
        return group.offers.rate
    rates = group.offers.rates
    return (group.offers.mean or 0.0) if rates is None else float(rates.rate_bit_per_s.mean())


def _flows(group: Flow) -> int:
    return group.count * (1 + group.offers.objects_per_page) if isinstance(group.offers, Web) else group.count


def network_lacks(scenario: Scenario) -> str | None:
    """Part of a network under demands that isn't supported; None: it can be run."""
    if isinstance(scenario.control, Backpressure):
        return "backpressure, which looks at each moment into the next queues"
    for each in tcp_of(scenario):
        if each.slow_start is not None:
            return f"a choice of slow start in the place of demands (flows.{each.id}.slow_start)"
        if each.sender not in CONGESTION_CONTROLS and not isinstance(each.sender, KernelTcp):
            return f"{sender_name(each.sender)} in the place of demands (flows.{each.id})"
        if isinstance(each.offers, Web):
            return f"Web sessions in the place of demands (flows.{each.id}.offers)"
    for link in scenario.links:
        if (missing := queue_lacks(link, scenario.packet_size)) is not None:
            return missing
    packet_size = scenario.packet_size
    if not _MIN_FRAME <= packet_size <= _MAX_FRAME or packet_size != int(packet_size):
        return f"packets of {packet_size:g} bytes: a whole number from {_MIN_FRAME} to {_MAX_FRAME}"
    packets_s = sum(each.mean for each in graph_of(scenario).demands) / (BITS_PER_BYTE * packet_size)
    datagrams = packets_s * scenario.duration
    if datagrams > MAX_DATAGRAMS:
        return f"room for {datagrams:.0f} packets of demands: at most {MAX_DATAGRAMS}, which are kept"
    return None


def machine_lacks() -> str | None:
    """What is missing on this machine, and the remedy."""
    if sys.platform != "linux":
        return "Linux here"
    from netctrl.kernel.build import chosen_kernel

    try:
        chosen_kernel()
    except NetctrlError as error:
        return f"kernel to run here: {error}"
    return None
