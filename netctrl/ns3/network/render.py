"""A network under fluctuating demands as data for the program for stock ns-3: scenario.txt beside its sources.

Rendering is pure; `netctrl.ns3.network.read` runs the program.
"""

from __future__ import annotations

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.laws.rate.records import sender_name
from netctrl.model.design.design import Provenance
from netctrl.model.network import Link
from netctrl.ns3.cpp import nanoseconds
from netctrl.ns3.links import LINUX_TCP, MAX_RECORDS, SEEDS, SENDERS, check_links, packet_bytes, socket_buffer
from netctrl.ns3.network.control import check_law, control_record
from netctrl.ns3.program import SCENARIO
from netctrl.ns3.queues import Attribute, link_queue
from netctrl.ns3.records import record_line, scenario_text, word
from netctrl.ns3.sources import program_files
from netctrl.scenario.network.plan import LinkPlan
from netctrl.scenario.network.policy import messages_of
from netctrl.scenario.network.runs import tcp_of
from netctrl.scenario.scenario import Scenario

_TCP = [
    *LINUX_TCP,
    ("ns3::TcpSocket::ConnTimeout", "1s", ""),
    ("ns3::TcpSocket::ConnCount", "20", "attempts to connect"),
]
_MAX_PAIRS = 250_000
_MAX_HOPS = 254


def render(
    scenario: Scenario, plan: LinkPlan, *, sampled_delays: bool = False, provenance: Provenance
) -> dict[str, str]:
    """Files of an ns-3 program and of the network scenario that it reads: file name -> text.

    Parameters
    ----------
    scenario : Scenario
    plan : LinkPlan
        The scenario's routes and law (`netctrl.sim.network.plan`).
    sampled_delays : bool
        Whether links delay by n_l + 1 intervals, as in the sampled model, instead of by their propagation delay.
    provenance
        As in `netctrl.ns3.tcp_aqm.render.render`, with the same exceptions.

    Notes
    -----
    Besides the program a run needs the table of its draws, `run-RUN.bin` (`netctrl.sim.network.plan.run_tables`).
    """
    size = packet_bytes(scenario)
    _check(plan, size)
    return {
        SCENARIO: _scenario(scenario, plan, size, sampled_delays, provenance),
        **program_files([link.queue for link in scenario.links]),
    }


def _links(plan: LinkPlan) -> list[Link]:
    by_name = {link.id: link for link in plan.network.links}
    return [by_name[name] for name in plan.links]


def _check(plan: LinkPlan, size: int) -> None:
    for what, count in (("links", len(plan.links)), ("demands", len(plan.network.demands))):
        if count > MAX_RECORDS:
            raise InvalidValue(what, count, f"at most {MAX_RECORDS}, as the number is part of an address")
    check_links("links", _links(plan), size)
    hops = np.bincount([i for i, _, _ in plan.split])
    if hops.max() > _MAX_HOPS:
        demand = plan.network.demands[int(hops.argmax())].id
        takes = f"at most {_MAX_HOPS} links, the largest number of hops of a packet"
        raise InvalidValue(f"flows.{demand}.split", f"{hops.max()} links", takes)
    check_law(plan)
    if plan.law.line.size > _MAX_PAIRS:
        most = int(_MAX_PAIRS**0.5)
        raise InvalidValue(
            "control.messages", f"{len(plan.links)} links", f"at most {most} links where messages may be late"
        )


def _scenario(scenario: Scenario, plan: LinkPlan, size: int, sampled_delays: bool, provenance: Provenance) -> str:
    links = _links(plan)
    interval = nanoseconds("interval", scenario.interval)
    nanoseconds("duration", scenario.duration)
    settings = record_line(
        "set",
        "",
        *_TCP,
        duration=interval * scenario.steps,
        sample=interval,
        warmup=interval * scenario.warmup_steps,
        packet_size=size,
        initial_window=10,
        seed=1 + scenario.seed % SEEDS,
        run=0,
        socket_buffer=_socket_buffer(links),
    )
    delays = [(n + 1) * scenario.interval for n in plan.delay.tolist()] if sampled_delays else [k.delay for k in links]
    queues = {link.id: link_queue(link, size) for link in scenario.links}
    return scenario_text(
        scenario.name,
        provenance,
        [settings],
        [
            _link(link, delay, plan, number, queues[link.id])
            for number, (link, delay) in enumerate(zip(links, delays, strict=True))
        ],
        [
            record_line("demand", word(each.id), source=word(each.source), target=word(each.target))
            for each in plan.network.demands
        ],
        [
            record_line("way", demand=word(plan.network.demands[i].id), link=word(plan.links[link]), share=float(share))
            for i, link, share in plan.split
        ],
        _tcp(scenario),
        [control_record(plan, interval, late=not messages_of(scenario.control).ideal)],
    )


def _tcp(scenario: Scenario) -> list[str]:
    """A group, its host and its flows for each demand of TCP."""
    lines = []
    for tcp in tcp_of(scenario):
        name = word(tcp.id)
        first, last = (nanoseconds(f"flows.{tcp.id}.start", end) for end in tcp.start)
        lines += [
            record_line("group", name, sender=SENDERS[sender_name(tcp.sender)], ecn=tcp.ecn, demand=name),
            record_line("host", f"{name}/1", group=name),
            *[record_line("flow", host=f"{name}/1", start=first, spread=last - first)] * tcp.count,
        ]
    return lines


def _socket_buffer(links: list[Link]) -> int:
    """Buffer for the path over all links and back, with all their queues."""
    waiting = sum(link.buffer or 0.0 for link in links)
    return socket_buffer(max(link.capacity for link in links), 2.0 * sum(link.delay for link in links), waiting)


def _link(link: Link, delay: float, plan: LinkPlan, number: int, queue: tuple[str, list[Attribute]]) -> str:
    kind, attributes = queue
    return record_line(
        "link",
        word(link.id),
        *attributes,
        source=word(link.source),
        target=word(link.target),
        capacity=round(link.capacity),
        delay=nanoseconds(f"links.{link.id}.delay", delay),
        buffer=None if link.buffer is None else int(link.buffer),
        nominal=float(plan.nominal[number]),
        paced=bool(plan.paced[number]),
        queue=kind,
    )
