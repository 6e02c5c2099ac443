"""What of a scenario the kernel in virtual time doesn't have, and what is missing here to run it; builds nothing."""

from __future__ import annotations

import sys

from netctrl.errors import NetctrlError
from netctrl.kernel.queues import queue_lacks
from netctrl.kernel.senders import CONGESTION_CONTROLS, kernel_sender
from netctrl.laws.rate.records import sender_name
from netctrl.linux.testbed.lacks import path_lacks
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows, FlowGroup, UdpFlows, WebFlows

__all__ = ["MAX_FLOWS", "machine_lacks", "scenario_lacks"]

MAX_FLOWS = 5000
"""Most flows, each of which is a thread and a socket or more."""
MAX_NAMESPACES = 2000
MAX_DATAGRAMS = 5_000_000
"""Most UDP packets, as each is kept until the end."""
_MIN_FRAME, _MAX_FRAME = 200, 1514
_BITS = 8.0


def scenario_lacks(scenario: Scenario) -> str | None:
    """Part of a scenario that isn't supported; None: it can be run."""
    if scenario.control is not None:
        return "controlled link rates (control)"
    for group in scenario.flows:
        if (missing := _group_lacks(scenario, group)) is not None:
            return missing
    for link in scenario.links:
        found = {"trace": link.trace is not None, "jitter": link.jitter > 0.0, "pfc": link.pfc is not None}
        for name, there in found.items():
            if there:
                return f"{name} of links (links.{link.id}.{name})"
        missing = queue_lacks(link, scenario.traffic.packet_size)
        if missing is not None:
            return missing
    return _beyond(scenario)


def _group_lacks(scenario: Scenario, group: FlowGroup) -> str | None:
    if not isinstance(group, BulkFlows | WebFlows | UdpFlows):
        return f"{group.__struct_config__.tag} flows (flows.{group.id})"
    if not isinstance(group, UdpFlows):
        sender = kernel_sender(group.sender, 1.0)
        if sender is None:
            names = ", ".join(CONGESTION_CONTROLS)
            said = f"flows.{group.id} are {sender_name(group.sender)}"
            return f"senders but {names}, and paced or cap over one of these ({said})"
        if isinstance(group, WebFlows) and sender.law is not None:
            return f"Web sessions that a law paces (flows.{group.id})"
    return path_lacks(scenario, group)


def _beyond(scenario: Scenario) -> str | None:
    """Values beyond the limits above."""
    size = scenario.traffic.packet_size
    flows = sum(_flows(group) for group in scenario.flows)
    datagrams = sum(
        group.count * group.rate * scenario.duration / (_BITS * size)
        for group in scenario.flows
        if isinstance(group, UdpFlows)
    )
    limits = {
        f"packets of {size:g} bytes: a whole number from {_MIN_FRAME} to {_MAX_FRAME}": (
            not _MIN_FRAME <= size <= _MAX_FRAME or size != int(size)
        ),
        f"room for {flows} flows: at most {MAX_FLOWS}": flows > MAX_FLOWS,
        f"room for {datagrams:.0f} UDP packets: at most {MAX_DATAGRAMS}, which are kept": datagrams > MAX_DATAGRAMS,
    }
    return next((said for said, beyond in limits.items() if beyond), None)


def _flows(group: FlowGroup) -> int:
    return group.sessions * (1 + group.objects_per_page) if isinstance(group, WebFlows) else group.count


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
