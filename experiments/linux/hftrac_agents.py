"""Agents of HFTraC's testbed: their files by architecture, and how they run, each at its node."""

import gc
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from linux.hftrac_network import FRAME, TELLER, Case, scenario
from linux.testbed import Testbed

import netctrl
from netctrl.linux import namespace
from netctrl.linux.agent.links import KernelLinks
from netctrl.linux.agent.loop import Outcome, run_agent
from netctrl.linux.agent.message import read_key
from netctrl.linux.agent.sockets import AgentSockets
from netctrl.linux.agent.state import Reading, Trouble, plan
from netctrl.linux.export.agent import AgentConfig, ControlledLink, Peer, agent_configs
from netctrl.linux.export.agent_law import LinkRateTable, link_rate_table
from netctrl.linux.log import AgentLog
from netctrl.model.design.hftrac import Architecture
from netctrl.model.network import Network
from netctrl.scenario.network.graph import graph_of

AGENTS = ("god", "coordinated", "centralized", "myopic")
"""Ways with agents."""
BURST = 2 * FRAME
PORT = 7700
MIN = 0.1
"""Least rate over the capacity: at a lower one a packet that waits would delay what a later rate lets through.
A link whose nominal rate is lower still, as the host's of Fig. 14, may go down to half of that."""
DEAD_BAND = 0.002
URGENT = 2
"""Priority (SCHED_RR) of sources, agents, delay line and looks."""


@lru_cache(maxsize=64)
def law_table(figure: str, x: float, way: Architecture, mu: float) -> LinkRateTable:
    """A Design's law as numbers; made once."""
    case = Case(figure, x, way, mu)
    requested = scenario(case, 1.0, 0.0)
    network, policy = graph_of(requested), requested.control
    settings = {"information_delay": 1} if way == "centralized" else {}
    design = netctrl.hftrac(network, case.interval, mu=policy.mu, architecture=way, **settings)  # ty: ignore
    return link_rate_table(design, netctrl.network_model(network, case.interval))


def controlled(bed: Testbed, network: Network, nominal: Mapping[str, float]) -> dict[str, ControlledLink]:
    """The links as agents know them, by id."""
    return {
        link.id: ControlledLink(
            id=link.id,
            interface=bed.interface(link.id),
            handle="1:",
            kind="htb",
            least_rate=_least(link.capacity, nominal[link.id]),
            greatest_rate=link.capacity,
            fallback_rate=min(nominal[link.id], link.capacity),
            burst=BURST,
            limit=bed.wires[link.id].limit_bytes,
        )
        for link in network.links
    }


def _least(capacity: float, nominal: float) -> float:
    least = MIN * capacity
    return least if nominal >= least else 0.5 * nominal


def configs(
    case: Case,
    network: Network,
    links: Mapping[str, ControlledLink],
    table: LinkRateTable,
    addresses: Mapping[str, str],
    key: Path,
) -> dict[str, AgentConfig]:
    """Of every agent, by node. GOD's is one, of all links."""
    nodes = dict.fromkeys(link.source for link in network.links)
    settings: dict[str, Any] = {"key_file": str(key), "dead_band": DEAD_BAND}
    if case.way == "god":
        place = Peer(name="god", address="127.0.0.1", port=PORT)
        return agent_configs(table, case.interval, [(place, list(links.values()))], **settings)
    places = [
        (
            Peer(name=node, address=addresses[node], port=PORT),
            [links[link.id] for link in network.links if link.source == node],
        )
        for node in nodes
    ]
    controller = Peer(name=TELLER, address=addresses[TELLER], port=PORT) if table.central else None
    return agent_configs(table, case.interval, places, controller=controller, **settings)


def start_agents(
    bed: Testbed, desired: Mapping[str, AgentConfig], seconds: float, phases: Sequence[float] = ()
) -> Callable[[], list[dict[str, float]]]:
    """Start all, each at its node, and tell what waits for them and what they counted.

    They may begin their intervals later by `phases` [s].
    """
    later = dict(zip(desired, phases or [0.0] * len(desired), strict=True))
    jobs = [
        bed.start(TELLER, _all_seeing, bed, config, seconds, later[name])
        if name == "god"
        else bed.start(name, _agent, config, seconds, later[name])
        for name, config in desired.items()
    ]
    return lambda: [job.result(seconds + 60.0) for job in jobs]


def _agent(config: AgentConfig, seconds: float, later: float) -> dict[str, float]:
    made = plan(config, b"" if not config.peers else read_key(config.key_file or ""))
    gc.collect()
    gc.freeze()
    time.sleep(later)
    with KernelLinks(config) as links, AgentSockets(config) as sockets:
        return counted(run_agent(made, links, sockets, AgentLog(), duration_s=seconds))


class _Everywhere:
    """Links of several namespaces as one agent's: nobody who isn't a god can read them all at once."""

    def __init__(self, parts: Sequence[tuple[KernelLinks, int]]) -> None:
        self._parts = [part for part, _ in parts]
        self._places = [(part, number) for part, count in parts for number in range(count)]

    def read(self) -> tuple[list[Reading | Trouble], None]:
        return [each for part in self._parts for each in part.read()[0]], None

    def set_rate(self, link: int, rate: float) -> float:
        part, number = self._places[link]
        return part.set_rate(number, rate)

    def restore(self) -> None:
        for part in self._parts:
            part.restore()


def _all_seeing(bed: Testbed, config: AgentConfig, seconds: float, later: float) -> dict[str, float]:
    places = {link.interface: link for link in config.links}
    by_node: dict[str, list[ControlledLink]] = {}
    for wire in bed.wires.values():
        if wire.interface in places:
            by_node.setdefault(wire.link.source, []).append(places[wire.interface])
    ordered = [link for links in by_node.values() for link in links]
    made = plan(msgspec.structs.replace(config, links=tuple(ordered)))
    time.sleep(later)
    with ExitStack() as held:
        parts = []
        for node, links in by_node.items():
            with namespace.inside(bed.namespace(node)):
                own = msgspec.structs.replace(config, links=tuple(links))
                parts.append((held.enter_context(KernelLinks(own)), len(links)))
        sockets = held.enter_context(AgentSockets(config))
        return counted(run_agent(made, _Everywhere(parts), sockets, AgentLog(), duration_s=seconds))


def urgently(act: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call it with a real-time priority, so that the kernel's timers have no slack for it."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(URGENT))
    try:
        return act(*args, **options)
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def urge_children() -> None:
    """The same for all children of this thread."""
    for child in Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text(encoding="ascii").split():
        with suppress(ProcessLookupError):
            os.sched_setscheduler(int(child), os.SCHED_RR, os.sched_param(URGENT))


def counted(outcome: Outcome) -> dict[str, float]:
    counts = outcome.state.counts
    return {
        "steps": counts.get("steps", 0),
        "missed": counts.get("missed_steps", 0),
        "changes": counts.get("rate_changes", 0),
        "clipped": counts.get("rates_clipped", 0),
        "received": counts.get("messages_received", 0),
        "useless": counts.get("dropped_useless", 0) + counts.get("dropped_late", 0),
        "fallback": counts.get("fallback_steps", 0),
        "lost_links": sum(outcome.state.lost),
        "late_ms": 1e3 * outcome.metrics.lateness.quantile(0.99),
    }
