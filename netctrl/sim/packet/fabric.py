"""A data centre's scenario as the packet engine's tables: ports are links, and hosts' flows take turns."""

from __future__ import annotations

from math import ceil

import numpy as np

from netctrl.core.errors import InvalidValue, checked_numbers
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.window.law import Marking, Path, Telemetry
from netctrl.laws.window.records import Mpcc, Scheme, law_of, law_row
from netctrl.model.io.validation_errors import shorten
from netctrl.scenario.fabric.flows import common_sender
from netctrl.scenario.fabric.plan import FabricPlan, Senders, Transfers
from netctrl.scenario.fabric.ports import MAX_HOPS, Fabric, fabric, fabric_paths, ideal_times, wire_times
from netctrl.scenario.fabric.result import HISTOGRAM_BINS, HISTOGRAM_BYTES
from netctrl.scenario.fabric.topology import Dumbbell, Packets
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.offers import Incast
from netctrl.sim.packet import problem
from netctrl.sim.packet.fabric_traffic import draw_fabric_flows
from netctrl.sim.packet.hosts import HOST, LOG_COLUMNS, PORT, TRANSFER, TransferState
from netctrl.sim.packet.kernel import TRANSFER_STARTS
from netctrl.sim.packet.links.port_tables import port_table
from netctrl.sim.packet.links.ports import BY_RAMP, RAMP_HIGH, RAMP_LOW, RAMP_MOST
from netctrl.sim.packet.links.tables import Line, Queues, link_tables, queue_tables
from netctrl.sim.packet.problem import ENDLESS, PacketProblem, Traffic, first_state
from netctrl.sim.packet.senders.host_tables import counted_for, host_row, host_state, path_of, resend_after
from netctrl.sim.packet.senders.tcp import MESSAGES
from netctrl.sim.packet.state import FLOW, LINK, META, SESSION, prepare_rows

ROWS = 256
"""For flows that go on, at first."""
_NS = 1e9
_NO_PATH = Path(1.0, 1.0, 1.0, 1.0, (1.0, 1.0, 1.0, 1.0, 1.0))
"""Where no flow was drawn."""


def fabric_plan(scenario: Scenario, gains: np.ndarray | None = None) -> FabricPlan:
    """The plan alone, for other engines; as of `fabric_problem`."""
    return fabric_problem(scenario, gains)[1]


def fabric_problem(scenario: Scenario, gains: np.ndarray | None = None) -> tuple[PacketProblem, FabricPlan]:
    """Draw the flows, compute their paths, fill the tables: what the packet engine runs, and the plan that it is of.

    Parameters
    ----------
    scenario : Scenario
    gains : ndarray, shape (N + 1,) or (C, N + 1), optional
        K[N] of MPCC with a `window`, for all or for each kind of path; without it, the Riccati gain of its weights.

    Raises
    ------
    InvalidValue
        Gains of another shape, below 0 or not finite; an unknown port or flow to watch.
    """
    net, flows = fabric(scenario.network), draw_fabric_flows(scenario)
    routes = fabric_paths(net, flows.source, flows.target, scenario.seed)
    # Links of a level are equal, so paths with the same number of links are of one kind; the shortest comes first.
    _, example, kind = np.unique((routes[:, 0] >= 0).sum(axis=1), return_index=True, return_inverse=True)
    senders = _senders(scenario, net, routes[example], gains)
    packets, ideal = scenario.network.packets, np.empty_like(flows.size)
    for place, flow in enumerate(example):
        chosen = kind == place
        ideal[chosen] = ideal_times(net, routes[flow, 0], flows.size[chosen], senders.overhead, packets)
    marks = _marks(net, senders.marking)
    queues, waiting, port = _ports(net, scenario, senders, marks)
    interval, end = round(scenario.interval * _NS), round(scenario.duration * _NS)
    bin = round(scenario.network.watch.bin * _NS)
    law, full = senders.law, senders.payload + senders.overhead
    host = np.zeros((ROWS, len(HOST)), dtype=np.int64)
    # The first row has what is the same for all.
    host[0] = host_row(
        law, common_sender(scenario.flows), senders.payload, senders.overhead, senders.ack, senders.timeout
    )
    hosts = host_state(
        host,
        port,
        senders.laws,
        counters=MAX_HOPS * ROWS if law.telemetry == Telemetry.FLOWS else ROWS,
        packets=problem.PACKETS if law.telemetry else 1,
        transfers=_transfers(scenario, flows, kind, routes, ceil(end / interval), ceil(end / bin)),
    )
    state = first_state((), queues, _traffic(scenario, flows, len(port)), full, hosts=hosts, waiting=waiting)
    meta = state.meta
    meta[META["sample"]] = meta[META["rows_left"]] = 0  # a queue is first sampled at the start
    meta[META["bin"]], meta[META["width"]] = bin, HISTOGRAM_BYTES
    prepare_rows(state, 0)
    # What would come at the very end doesn't.
    ready = PacketProblem(state, interval, full, end - 1)
    return ready, FabricPlan(net, marks, flows, kind, routes, ideal, senders, interval, bin, end)


def _senders(scenario: Scenario, net: Fabric, examples: np.ndarray, gains: np.ndarray | None) -> Senders:
    """`examples` are routes, one of each kind of path."""
    packets, scheme = scenario.network.packets, common_sender(scenario.flows)
    law = law_of(scheme)
    extra = int(packets.telemetry) if law.telemetry else 0
    overhead, ack, payload = int(packets.header) + extra, int(packets.ack) + extra, int(packets.payload)
    full = payload + overhead
    kinds = [_path(net, *route, full, ack, packets) for route in examples] or [_NO_PATH]
    longest = max(path.base_rtt for path in kinds)
    laws = [law_row(law, scheme, path, payload, full, longest) for path in kinds]
    network = scenario.network
    many = [flow.offers.senders for flow in scenario.flows if isinstance(flow.offers, Incast)]
    together = max(*many, network.senders if isinstance(network, Dumbbell) else 0, 0)
    if gains is not None:
        given = _checked(gains, len(laws), scheme)
        laws = [each._replace(table=table) for each, table in zip(laws, given, strict=True)]
    return Senders(
        law=law,
        laws=tuple(laws),
        lines=np.array([path.line_rate for path in kinds]),
        payload=payload,
        overhead=overhead,
        ack=ack,
        notification=0 if law.notification is None else round(law.notification(scheme) * _NS),
        timeout=resend_after(scenario.network.retransmission_timeout, longest),
        flow_timeout=counted_for(network.flow_timeout, together, longest),
        marking=None if law.marking is None else law.marking(scheme),
    )


def _traffic(scenario: Scenario, flows: Transfers, links: int) -> Traffic:
    """Rows for transfers, and when these start."""
    flow = np.zeros((ROWS, len(FLOW)), dtype=np.int64)
    flow[0, FLOW["kind"]], flow[0, FLOW["ecn"]], flow[0, FLOW["stop"]] = MESSAGES, 1, ENDLESS
    starts = np.zeros((len(flows.start), 4), dtype=np.int64)
    starts[:, 0], starts[:, 1], starts[:, 2] = flows.start, TRANSFER_STARTS, np.arange(len(starts))
    return Traffic(
        flow=flow,
        session=np.zeros((0, len(SESSION)), dtype=np.int64),
        route=np.zeros(ROWS * 2 * (MAX_HOPS + 1), dtype=np.int64),
        agenda=starts,
        web=np.zeros((1, 4)),
        random=np.random.SeedSequence(scenario.seed).spawn(3)[2].generate_state(links, np.uint64),
        weight=np.ones(ROWS),
        senders=(np.zeros((0, 2)), np.zeros((0, 0)), np.zeros((0, 0))),
    )


def _transfers(
    scenario: Scenario, flows: Transfers, kind: np.ndarray, routes: np.ndarray, samples: int, bins: int
) -> TransferState:
    watch = scenario.network.watch
    if watch.flows and max(watch.flows) >= len(flows.size):
        raise InvalidValue("watch.flows", max(watch.flows), f"numbers of flows from 0 to {len(flows.size) - 1}")
    transfer = np.full((len(flows.size), len(TRANSFER)), -1, dtype=np.int64)
    transfer[:, TRANSFER["size"]], transfer[:, TRANSFER["port"]] = flows.size, flows.source
    transfer[:, TRANSFER["kind"]] = kind
    transfer[list(watch.flows), TRANSFER["watch"]] = np.arange(len(watch.flows))
    return TransferState(
        transfer=transfer,
        way=routes,
        histogram=np.zeros(HISTOGRAM_BINS, dtype=np.int64),
        series=np.zeros((len(watch.ports), samples), dtype=np.int64),
        bins=np.zeros((len(watch.flows), bins), dtype=np.int64),
        log=np.zeros((watch.acknowledgements if watch.flows else 0, LOG_COLUMNS)),
    )


def _path(net: Fabric, there: np.ndarray, back: np.ndarray, full: int, ack: int, packets: Packets) -> Path:
    """Path data for a law; the forward and the return path have the same number of links."""
    used, switched = there >= 0, there[1:]
    trip = sum(
        (wire_times(size, net.rate[ports], packets) + net.delay[ports]).sum()
        for ports, size in ((there[used], full), (back[used], ack))
    )
    return path_of(float(trip), float(net.rate[there[0]]), net.rate[switched[switched >= 0]].astype(float).tolist())


def _checked(given: np.ndarray, kinds: int, scheme: Scheme) -> np.ndarray:
    takes = f"gains of at least 0 for 0, 1, ... flows, shape (N + 1,) or ({kinds}, N + 1)"
    gains = checked_numbers("gains", given, takes)
    if not isinstance(scheme, Mpcc) or scheme.window is None:
        raise InvalidValue("gains", np.shape(gains), "a table only for a scheme of kind mpcc with a window, W of (A.1)")
    if gains.ndim not in (1, 2) or (gains.ndim == 2 and len(gains) != kinds):
        raise InvalidValue("gains", np.shape(gains), takes)
    table = np.array(np.broadcast_to(gains, (kinds, gains.shape[-1])))
    if table.ndim != 2 or table.shape[1] < 2 or not np.isfinite(table).all() or (table[:, 1:] < 0.0).any():
        raise InvalidValue("gains", np.shape(gains), takes)
    return table


def _marks(net: Fabric, marking: Marking | None) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds of all ports [byte]."""
    if marking is None:
        never = np.full(len(net.rate), ENDLESS)
        return never, never
    low, high = (np.rint(each * net.rate / marking.rate).astype(np.int64) for each in (marking.low, marking.high))
    return low, high


def _ports(
    net: Fabric, scenario: Scenario, senders: Senders, marks: tuple[np.ndarray, np.ndarray]
) -> tuple[Queues, tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Links, their queues, and rows of `netctrl.sim.packet.hosts.PORT`; all are served by events."""
    network, full = scenario.network, senders.payload + senders.overhead
    switch, to_switch = net.source >= net.hosts, net.target >= net.hosts
    # Ports of a rate are alike but for the buffers of switches.
    _, example, which = np.unique(
        np.column_stack([net.rate, net.delay, switch]), axis=0, return_index=True, return_inverse=True
    )
    alike = [
        Line(net.names[k], net.rate[k], net.delay[k] / _NS, network.buffer if switch[k] else None, DropTailQueue())
        for k in example.tolist()
    ]
    rows, states, parameters = link_tables(alike, full)
    rows[:, LINK["served"]], rows[:, LINK["ack"]] = 1, senders.ack
    waiting = queue_tables(alike, rows, np.ones(1), full, scenario.seed)
    which = which.ravel()
    link, parameters = rows[which], parameters[which]
    link[:, LINK["first"]] = np.arange(len(link))
    if network.packets.clock == "ns-3":
        link[:, LINK["round"]] = -1
    for name, size in (("tx_full", full), ("tx_ack", senders.ack)):
        link[:, LINK[name]] = wire_times(size, net.rate, network.packets)
    if senders.marking is not None:
        link[switch, LINK["decides"]] = BY_RAMP
        parameters[:, RAMP_LOW], parameters[:, RAMP_HIGH], parameters[:, RAMP_MOST] = *marks, senders.marking.most
    port = port_table(link)
    port[:, PORT["turns"]], port[:, PORT["sampled"]] = ~switch, switch
    port[switch, PORT["telemetry"]], port[:, PORT["timeout"]] = int(senders.law.telemetry), senders.flow_timeout
    if network.pfc is not None:
        port[switch, PORT["counts"]] = 1
        port[to_switch, PORT["pause"]] = round(network.pfc.pause)
        port[to_switch, PORT["resume"]] = round(network.pfc.resume)
    switches = [name for name, inside in zip(net.names, switch.tolist(), strict=True) if inside]
    for place, name in enumerate(scenario.network.watch.ports):
        if name not in switches:
            raise InvalidValue("watch.ports", name, f"ports of switches: {shorten(', '.join(switches), 300)}")
        port[net.names.index(name), PORT["watched"]] = place
    return (link, states[which], parameters), (waiting[0][which], waiting[1][which]), port
