"""A network under fluctuating demands as a program for stock ns-3: fixed files and two generated ones.

Rendering is pure; `netctrl.ns3.network.read` compiles and runs the program.
"""

from __future__ import annotations

import numpy as np

from netctrl.errors import InvalidValue, checked_whole
from netctrl.laws.link_rate.distributed_step import LinkRates, command_link, link_acts, measure_link, start_links
from netctrl.model.design.design import Provenance
from netctrl.model.network import Link
from netctrl.ns3.cpp import constant, gains_header, nanoseconds, row, scenario_header, string
from netctrl.ns3.laws import functions_header, laws_header
from netctrl.ns3.links import MAX_RECORDS, SENDERS, buffer_size, check_links, socket_buffer
from netctrl.ns3.queues import own_laws, settings_initializer
from netctrl.ns3.templates import QUEUES, TCP, fixed_files
from netctrl.scenario.network.plan import LinkPlan
from netctrl.scenario.network.policy import messages_of
from netctrl.scenario.network.routed import tcp_of
from netctrl.scenario.scenario import Scenario

PACKET_SIZE = 1500
"""[byte], with IP and UDP headers."""

_LAW = "Rates of links by what each has heard: printed from the Python that netctrl simulates."
_MAX_TAPS = 200_000
_MAX_PAIRS = 250_000
_MAX_HOPS = 254
_UINT32 = 2**32 - 1


def render(
    scenario: Scenario,
    plan: LinkPlan,
    *,
    packet_size: int = PACKET_SIZE,
    sampled_delays: bool = False,
    provenance: Provenance,
) -> dict[str, str]:
    """Files of an ns-3 program that runs a network scenario: file name -> text.

    Parameters
    ----------
    scenario : Scenario
    plan : LinkPlan
        The scenario's routes and law (`netctrl.sim.network.plan`).
    packet_size : int
        [byte], with IP and UDP headers.
    sampled_delays : bool
        Whether links delay by n_l + 1 intervals, as in the sampled model, instead of by their propagation delay.
    provenance
        As in `netctrl.ns3.tcp_aqm.render.render`, with the same exceptions.

    Notes
    -----
    Besides the program a run needs the table of its draws, `run-RUN.bin` (`netctrl.sim.network.plan.run_tables`).
    """
    size = checked_whole(
        "packet_size", packet_size, "a whole number of bytes from 100 to 65000", at_least=100, at_most=65000
    )
    _check(plan, size)
    return {
        "gains.h": _gains(plan, provenance),
        "netctrl-link-law.h": functions_header(
            "link-law", _LAW, (start_links, link_acts, measure_link, command_link), "netctrl-arrays.h"
        ),
        "netctrl-laws.h": laws_header(own_laws([scenario.network.queue])),
        "scenario.h": _scenario(scenario, plan, size, sampled_delays),
        **fixed_files("network", "netctrl-arrays.h", *QUEUES, *TCP),
    }


def _links(plan: LinkPlan) -> list[Link]:
    by_name = {link.id: link for link in plan.network.links}
    return [by_name[name] for name in plan.links]


def _check(plan: LinkPlan, size: int) -> None:
    for what, count in (("links", len(plan.links)), ("demands", len(plan.network.demands))):
        if count > MAX_RECORDS:
            raise InvalidValue(
                f"network.graph.{what}", count, f"at most {MAX_RECORDS}, as the number is part of an address"
            )
    check_links("network.graph.links", _links(plan), size)
    hops = np.bincount([i for i, _, _ in plan.split])
    if hops.max() > _MAX_HOPS:
        demand = plan.network.demands[int(hops.argmax())].id
        takes = f"at most {_MAX_HOPS} links, the largest number of hops of a packet"
        raise InvalidValue(f"network.graph.demands.{demand}.split", f"{hops.max()} links", takes)
    taps = len(plan.law.control.lag) + len(plan.law.predicted.lag)
    if taps > _MAX_TAPS:
        takes = f'a law of at most {_MAX_TAPS} numbers in a program; horizon = "exact" or a larger mu has fewer'
        raise InvalidValue("control", f"{taps} numbers", takes)
    if plan.law.line.size > _MAX_PAIRS:
        most = int(_MAX_PAIRS**0.5)
        raise InvalidValue(
            "control.messages", f"{len(plan.links)} links", f"at most {most} links where messages may be late"
        )


# --- gains.h ---------------------------------------------------------------------------------------------------------


def _gains(plan: LinkPlan, provenance: Provenance) -> str:
    N, law = len(plan.links), plan.law
    innovations = (
        ("arrival innovations", "saturation errors")
        if law.foresees
        else ("innovations of backlogs", "innovations of rates")
    )
    kinds = ("rates", "backlogs", *innovations)
    lines = [
        "/// In the order of kLinks (scenario.h); rates and backlogs, over the interval, in bit/s.",
        f"/// Series are {'; '.join(f'from {kind * N}: {name}' for kind, name in enumerate(kinds))}.",
        *constant("kLaw", LinkRates, law),
    ]
    about = "The law of the links' rates with its gains; what they mean is in netctrl-link-law.h."
    return gains_header("netctrl-link-law.h", about, provenance, lines)


# --- scenario.h ------------------------------------------------------------------------------------------------------


def _scenario(scenario: Scenario, plan: LinkPlan, size: int, sampled_delays: bool) -> str:
    links = _links(plan)
    demands = plan.network.demands
    ends = [end for each in (*links, *demands) for end in (each.source, each.target)]
    nodes = {name: number for number, name in enumerate(dict.fromkeys(ends))}
    interval = nanoseconds("interval", scenario.interval)
    nanoseconds("duration", scenario.duration)
    constants = {
        "int64_t kInterval": (interval, "tau [ns]"),
        "int64_t kSteps": (scenario.steps, "intervals"),
        "int64_t kWarmupSteps": (scenario.warmup_steps, "intervals that don't count"),
        "int64_t kDuration": (interval * scenario.steps, "[ns]"),
        "uint32_t kPacketSize": (size, "[byte], with IP and UDP headers"),
        "double kStanding": (plan.law.setpoint, "backlog around which squares are taken, over the interval [bit/s]"),
        "bool kMayBeLate": (not messages_of(scenario.control).ideal, "messages"),
        "int kNodes": (len(nodes), ""),
        "uint32_t kSeed": (scenario.seed, ""),
        "uint32_t kSocketBuffer": (_socket_buffer(links), "[byte], of TCP at both ends"),
    }
    delays = [(n + 1) * scenario.interval for n in plan.delay.tolist()] if sampled_delays else [k.delay for k in links]
    tables = {
        "LinkRow kLinks": (
            "id, source, target, capacity, delay, buffer, paced, nominal",
            [
                _link(link, nodes, delay, plan, number)
                for number, (link, delay) in enumerate(zip(links, delays, strict=True))
            ],
        ),
        "DemandRow kDemands": (
            "id, source, target",
            [row([string(each.id), nodes[each.source], nodes[each.target]]) for each in demands],
        ),
        "SplitRow kSplits": ("demand, link, share", [row([i, link, float(share)]) for i, link, share in plan.split]),
        "TcpRow kTcp": ("demand, flows, sender, first, last, ecn", _tcp(scenario)),
    }
    queue = settings_initializer(scenario.network.queue, "network.queue", size).strip().removesuffix(",")
    last = ["", "/// Of each link, inside of its pacer.", f"inline const QueueSettings kQueue = {queue};"]
    return scenario_header("netctrl-link-tables.h", scenario.name, constants, tables, last=last)


def _tcp(scenario: Scenario) -> list[str]:
    number = {demand.id: i for i, demand in enumerate(scenario.network.graph.demands)}
    return [
        row(
            [
                number[tcp.demand],
                tcp.flows,
                string(SENDERS[tcp.variant]),
                *(nanoseconds(f"flows.{tcp.demand}.start", end) for end in tcp.start),
                tcp.ecn,
            ]
        )
        for tcp in tcp_of(scenario)
    ]


def _socket_buffer(links: list[Link]) -> int:
    """Buffer for the path over all links and back, with all their queues."""
    waiting = sum(link.buffer or 0.0 for link in links)
    return socket_buffer(max(link.capacity for link in links), 2.0 * sum(link.delay for link in links), waiting)


def _link(link: Link, nodes: dict[str, int], delay: float, plan: LinkPlan, number: int) -> str:
    ends = nodes[link.source], nodes[link.target]
    time = nanoseconds(f"network.graph.links.{link.id}.delay", delay)
    paced, nominal = bool(plan.paced[number]), float(plan.nominal[number])
    return row([string(link.id), *ends, f"{round(link.capacity)}U", time, buffer_size(link.buffer), paced, nominal])
