"""A plan, a marking config and an agent's config, as units run them."""

from __future__ import annotations

from agent_support import config, link

from netctrl.linux.export.agent import AgentConfig, Peer
from netctrl.linux.export.records import HtbClass, InterfaceQueue, QueuePlan
from netctrl.linux.export.shaper import MarkingConfig
from netctrl.model.law import ArcLaw

PLAN = QueuePlan(
    name="S1", interfaces=(InterfaceQueue(interface="a", queue=HtbClass(rate=1e7, burst=3028, limit=50_000)),)
)
LAW = ArcLaw(
    alpha_per_packet=1e-4,
    alpha_per_byte=1e-7,
    epoch_s=0.1,
    target_utilization=1.0,
    target_queue_packets=30.0,
    capacity_bit_per_s=20e6,
    packet_size_bytes=1500.0,
)
MARKING = MarkingConfig(interface="a", law=LAW)


def agent(**changes: object) -> AgentConfig:
    requested = {"links": (link("a"),), "metrics_socket": "/run/netctrl-agents/S1.sock"}
    peers = {"peers": (Peer(name="S2", address="127.0.0.1", port=9001),), "port": 9000, "key_file": "agents.key"}
    return config(**requested | peers | changes)
