"""Limits of a testbed: unsupported parts of a scenario, and missing features of this machine; builds nothing."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.rate.records import scheme_of, sender_name
from netctrl.linux.testbed.plan import FRAME
from netctrl.scenario.links import packet_only
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows, FlowGroup, UdpFlows
from netctrl.units import BITS_PER_BYTE

__all__ = ["MAX_DURATION_S", "MAX_FLOWS", "MAX_PACKETS_PER_S", "machine_lacks", "path_lacks", "scenario_lacks"]

MAX_DURATION_S = 600.0
"""Longest scenario, as it runs in real time."""
MAX_FLOWS = 48
"""Most TCP flows, as each is a host and a process that shares the machine's cores."""
MAX_PACKETS_PER_S = 10_000
"""Most packets/s of all links together, as a delay line is a process in user space. On two busy cores one passes
20 000 packets/s on time, and a UDP source sends as many; at 40 000 both are late."""
MAX_UDP_PACKETS = 1_000_000
"""Most UDP packets, as each is kept until the end."""
MIN_INTERVAL_S = 0.01
"""Shortest sampling interval, several times the kernel's answer time for a link on a busy machine."""
MIN_FRAME, INITIAL_WINDOW = 200, 10

_SENDERS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_STATUS = Path("/proc/self/status")
_TUN = Path("/dev/net/tun")
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}  # bits of linux/capability.h


def scenario_lacks(scenario: Scenario) -> str | None:
    """Part of a scenario that the testbed of this kernel doesn't support; None: it can be built."""
    for group in scenario.flows:
        if (missing := _group_lacks(scenario, group)) is not None:
            return missing
    if (found := packet_only(scenario)) is not None:
        return f"{found[1]} ({found[0]})"
    for link in scenario.links:
        if not isinstance(link.queue, DropTailQueue):
            kind = link.queue.__struct_config__.tag
            return f"queues other than droptail, tbf's own (links.{link.id}.queue is {kind})"
    for change in scenario.network.changes:
        if change.delay is not None:
            return f"changes of a delay (links.{change.link})"
    return _beyond(scenario)


def _group_lacks(scenario: Scenario, group: FlowGroup) -> str | None:
    if not isinstance(group, BulkFlows | UdpFlows):
        return f"{group.__struct_config__.tag} flows (flows.{group.id})"
    known = _known_senders()
    lacking = sender_name(group.sender) not in known or scheme_of(group.sender) is not None
    if isinstance(group, BulkFlows) and lacking:
        have = ", ".join(known) or "none"
        return f"senders other than this kernel's, {have} (flows.{group.id} are {sender_name(group.sender)})"
    return path_lacks(scenario, group)


def path_lacks(scenario: Scenario, group: FlowGroup) -> str | None:
    """A path that routes to one address can't follow, as it visits a node twice; None: they can."""
    ends = {link.id: (link.source, link.target) for link in scenario.links}
    for path in (group.path, group.ack_path):
        joins = [ends[name][0] for name in path[:1]] + [ends[name][1] for name in path]
        if len(set(joins)) < len(joins):
            return f"paths that visit a node twice (flows.{group.id})"
    return None


def _beyond(scenario: Scenario) -> str | None:
    """Values beyond the limits above."""
    size, duration, interval = scenario.traffic.packet_size, scenario.duration, scenario.interval
    flows = sum(group.count for group in scenario.flows if isinstance(group, BulkFlows))
    datagrams = sum(
        group.count * group.rate * duration / (BITS_PER_BYTE * size)
        for group in scenario.flows
        if isinstance(group, UdpFlows)
    )
    rate = _packets_per_s(scenario)
    limits = {
        f"time for {duration:g} s: it runs by the clock, at most {MAX_DURATION_S:g} s": (duration > MAX_DURATION_S),
        f"samples every {interval:g} s: at least {MIN_INTERVAL_S:g} s apart": interval < MIN_INTERVAL_S,
        f"packets of {size:g} bytes: a whole number from {MIN_FRAME} to {FRAME}": (
            not MIN_FRAME <= size <= FRAME or size != int(size)
        ),
        f"initial windows other than {INITIAL_WINDOW} packets, the kernel's": (
            flows > 0 and scenario.traffic.initial_window != INITIAL_WINDOW
        ),
        f"room for {flows} TCP flows: at most {MAX_FLOWS}, each of which is a host": flows > MAX_FLOWS,
        f"room for {datagrams:.0f} UDP packets: at most {MAX_UDP_PACKETS}, which are kept": datagrams > MAX_UDP_PACKETS,
        f"way to pass {rate:.0f} packets/s on time: at most {MAX_PACKETS_PER_S}, of all links together": (
            rate > MAX_PACKETS_PER_S
        ),
    }
    return next((said for said, beyond in limits.items() if beyond), None)


def _packets_per_s(scenario: Scenario) -> float:
    """Largest total rate of all links: each group sends at most the rate of its path's narrowest link."""
    capacity = {link.id: link.capacity for link in scenario.links}
    for change in scenario.network.changes:
        capacity[change.link] = max(capacity[change.link], change.capacity or 0.0)
    load = dict.fromkeys(capacity, 0.0)
    for group in scenario.flows:
        most = min(capacity[name] for name in group.path)
        if isinstance(group, UdpFlows):
            most = min(most, group.count * group.rate)
        for name in group.path:
            load[name] += most
    total = sum(min(load[name], capacity[name]) for name in capacity)
    return total / (BITS_PER_BYTE * scenario.traffic.packet_size)


def machine_lacks() -> str | None:
    """Missing feature of this machine or process, and the remedy; other problems appear when a testbed is built."""
    held = _capabilities()
    if held is None:
        return "Linux here"
    missing = [name for name, bit in _CAPABILITIES.items() if not held >> bit & 1]
    if missing:
        return f"{' and '.join(missing)} here, which network namespaces need: run as root"
    if not _TUN.exists():
        return f"{_TUN} here, which delay lines need: use a kernel with CONFIG_TUN, or pass it to the container"
    if find_spec("pyroute2") is None:
        return "pyroute2 here: pip install 'netctrl[linux]'"
    return None


def _known_senders() -> list[str]:
    try:
        return sorted(_SENDERS.read_text().split())
    except OSError:
        return []


def _capabilities() -> int | None:
    """Effective capabilities as bits; None without Linux's /proc."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), None)
