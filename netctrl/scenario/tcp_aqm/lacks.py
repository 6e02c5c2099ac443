"""Features of scenarios that only packets have."""

from __future__ import annotations

from typing import Any

from netctrl.core.errors import InvalidValue
from netctrl.laws.disciplines import DISCIPLINES, KernelQueue
from netctrl.scenario.links import MIN_RTO, impairments
from netctrl.scenario.network.track import Track
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Writes

NOISE = "noise of measured round trips"
"""What `Flow.rtt_noise` asks for."""
OF_KERNEL = "congestion controls of the Linux kernel, which its lab runs"
"""What `netctrl.laws.rate.records.KernelTcp` asks for."""
OTHER_RTO = "a least retransmission timeout of its own"
"""What another `Scenario.min_rto` asks for."""


def flow_only(group: Flow) -> tuple[str, str] | None:
    """The first feature of a flow, but for its sender, that neither the fluid nor ns-3 has, as of `packet_only`."""
    lacking = {
        "offers": "flows of finite size" if group.size is not None else "programs that write",
        "receive_window": "receivers with windows",
        "delayed_acks": "delayed acknowledgements",
        "offload": "segmentation offload",
        "slow_start": "a slow start of their own choice",
        "packet_size": "packets of several sizes",
        "split": "flows over several ways",
    }
    for name, what in lacking.items():
        there = getattr(group, name) not in (None, False)
        if there and (name != "offers" or group.size is not None or isinstance(group.offers, Writes)):
            return f"flows.{group.id}.{name}", what
    return None


def trace_alone(scenario: Any) -> bool:
    """Whether links with traces send at these alone: on packets also where a control sets their rates."""
    return scenario.control is None or isinstance(scenario.control, Track)


def packet_only(scenario: Any, *queues: type, line: bool = False, traces: bool = False) -> tuple[str, str] | None:
    """The first feature, other than senders, that neither the fluid nor ns-3 supports: its place and description.

    `queues` are kinds of several queues or of the kernel that the engine has; with `line` it has traces of links and
    noise of round trips, too, as the fluid of one link; with `traces` these alone.
    """
    if scenario.control is not None:
        return "control", "controlled rates"
    if any(change.flow for change in scenario.changes):
        return "changes", "flows whose rate changes"
    if scenario.min_rto != MIN_RTO:
        return "min_rto", OTHER_RTO
    for group in scenario.flows:
        if (found := flow_only(group)) is not None:
            return found
        if group.rtt_noise > 0.0 and not line:
            return f"flows.{group.id}.rtt_noise", NOISE
    for link in scenario.links:
        kind = link.queue.__struct_config__.tag
        found = {
            "trace": (link.trace is not None and not (line or traces), "traces of links"),
            **{name: (True, what) for name, what in impairments(link).items()},
            "pfc": (link.pfc is not None, "priority flow control"),
            "queue": (
                isinstance(link.queue, (*DISCIPLINES, KernelQueue)) and not isinstance(link.queue, queues),
                f"queues of kind {kind}",
            ),
        }
        for name, (there, what) in found.items():
            if there:
                return f"links.{link.id}.{name}", what
    return None


def refuse_packet_only(scenario: Any, *queues: type, line: bool = False, traces: bool = False) -> None:
    """InvalidValue for a feature of `packet_only`."""
    found = packet_only(scenario, *queues, line=line, traces=traces)
    if found is not None:
        raise InvalidValue(*found, 'a feature of this engine; "packet" supports it')
