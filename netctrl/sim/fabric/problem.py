"""Tables of a data centre's scenario for its packet kernel."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from netctrl.errors import InvalidValue, checked_numbers
from netctrl.laws.window.law import Marking, Packet, Path, WindowLaw
from netctrl.laws.window.records import LAWS, Mpcc, Scheme, law_of
from netctrl.laws.window.rows import STATES, row_of
from netctrl.model.io.validation_errors import shorten
from netctrl.scenario.fabric.flows import IncastFlows, common_sender
from netctrl.scenario.fabric.topology import Dumbbell, Packets
from netctrl.scenario.scenario import Scenario
from netctrl.sim.fabric.hosts import Senders
from netctrl.sim.fabric.state import FLOW, PORT, FabricState, fabric_state
from netctrl.sim.fabric.topology import Fabric, fabric, fabric_paths, ideal_times, wire_times
from netctrl.sim.fabric.traffic import FlowTable, draw_fabric_flows

__all__ = ["HISTOGRAM_BINS", "FabricProblem", "fabric_problem"]

HISTOGRAM_BINS = 20_000
_NS = 1e9
_MAX_FLOWS = 1024  # length of the gain table; the last gain applies to all larger numbers
_UNLIMITED = 1 << 60
_NO_PATH = Path(1.0, 1.0, 1.0, 1.0, (1.0, 1.0, 1.0, 1.0, 1.0))
"""Where no flow was drawn."""


class FabricProblem(NamedTuple):
    """Arguments of `advance_fabric`, and further data for a result."""

    state: FabricState
    hosts: Senders
    rule: np.ndarray
    max_marking: float
    interval: int
    """Sampling interval [ns]."""
    end: int
    """[ns]"""
    fabric: Fabric
    flows: FlowTable
    ideal: np.ndarray
    """[ns], (F,)"""
    law: WindowLaw
    values: Any
    """Parameters of the law."""
    paths: tuple[Path, ...]
    """(C,) as the law takes them."""


def fabric_problem(scenario: Scenario, gains: np.ndarray | None = None) -> FabricProblem:
    """Draw the flows, compute their paths, fill the tables.

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
    packets, scheme, watch = scenario.network.packets, common_sender(scenario), scenario.watch
    law = law_of(scheme)
    extra = int(packets.telemetry) if law.telemetry else 0
    overhead, ack = int(packets.header) + extra, int(packets.ack) + extra
    full = int(packets.payload) + overhead
    # Links of a level are equal, so paths with the same number of links are of one kind; the shortest comes first.
    _, example, kind = np.unique((routes[:, 0] >= 0).sum(axis=1), return_index=True, return_inverse=True)
    kinds = [_path(net, *routes[flow], full, ack, packets) for flow in example] or [_NO_PATH]
    paths = tuple(kinds if law.path is None else [law.path(scheme, path) for path in kinds])
    longest = max(path.base_rtt for path in kinds)
    values = law.read(scheme, Packet(packets.payload, full, longest))
    marking = None if law.marking is None else law.marking(scheme)
    hosts = Senders(
        law=LAWS.index(law),
        parameters=row_of(values),
        paths=np.array([row_of(path) for path in paths]),
        tables=_tables(law, scheme, paths, full) if gains is None else _checked(gains, len(paths), scheme),
        lines=np.array([path.line_rate for path in kinds]),
        windows=np.array([law.start(scheme, path) for path in paths]),
        payload=int(packets.payload),
        overhead=overhead,
        ack=ack,
        notification=0 if law.notification is None else round(law.notification(scheme) * _NS),
        timeout=round(_retransmission_timeout(scenario, longest)),
        bin=round(watch.bin * _NS),
    )
    end, interval = round(scenario.duration * _NS), round(scenario.interval * _NS)
    port = _ports(net, scenario, marking, full, ack)
    timeout_ns = _flow_timeout(scenario, longest)
    pfc = scenario.network.pfc
    rule = [
        law.telemetry,
        timeout_ns,
        pfc.pause if pfc else 0,
        pfc.resume if pfc else 0,
        packets.clock == "ns-3",
        full,
        ack,
    ]
    state = fabric_state(
        port,
        _flows(flows, kind, scenario),
        routes,
        law_width=STATES,
        memory=1 if law.memory is None else max(law.memory(scheme, path, full) for path in paths),
        watched=(len(watch.ports), len(watch.flows)),
        samples=ceil(end / interval),
        bins=ceil(end / hosts.bin),
        log=watch.acknowledgements if watch.flows else 0,
        histogram=HISTOGRAM_BINS,
    )
    most = 0.0 if marking is None else marking.most
    ideal = np.empty_like(flows.size)
    for place, flow in enumerate(example):
        ideal[kind == place] = ideal_times(net, routes[flow, 0], flows.size[kind == place], overhead, packets)
    rule_row = np.array([round(each) for each in rule], dtype=np.int64)
    return FabricProblem(state, hosts, rule_row, most, interval, end, net, flows, ideal, law, values, paths)


def _path(net: Fabric, there: np.ndarray, back: np.ndarray, full: int, ack: int, packets: Packets) -> Path:
    """Path data for a law; the forward and the return path have the same number of links."""
    used, switched = there >= 0, there[1:]
    trip = sum(
        (wire_times(size, net.rate[ports], packets) + net.delay[ports]).sum()
        for ports, size in ((there[used], full), (back[used], ack))
    )
    line = float(net.rate[there[0]])
    rates = np.where(switched >= 0, net.rate[switched], 0).astype(float)
    return Path(float(trip), trip * line / (8.0 * _NS), line, float(used.sum() - 1), tuple(rates.tolist()))


def _tables(law: WindowLaw, scheme: Scheme, paths: tuple[Path, ...], full: int) -> np.ndarray:
    if law.table is None:
        return np.zeros((len(paths), 2))
    return np.array([law.table(scheme, path, full, _MAX_FLOWS) for path in paths])


def _flow_timeout(scenario: Scenario, longest: float) -> float:
    network = scenario.network
    if network.flow_timeout is not None:
        return network.flow_timeout * _NS
    many = [group.senders for group in scenario.flows if isinstance(group, IncastFlows)]
    return (max(4, *many, network.senders if isinstance(network, Dumbbell) else 0) + 2) * longest


def _retransmission_timeout(scenario: Scenario, longest: float) -> float:
    given = scenario.retransmission_timeout
    return max(10.0 * longest, 1e-3 * _NS) if given is None else given * _NS


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


def _ports(net: Fabric, scenario: Scenario, marking: Marking | None, full: int, ack: int) -> np.ndarray:
    port = np.zeros((len(net.rate), len(PORT)), dtype=np.int64)
    for name in ("head", "tail", "pipe_head", "pipe_tail", "ready_head", "ready_tail", "seen_head", "seen_tail"):
        port[:, PORT[name]] = -1
    port[:, PORT["watched"]] = -1
    port[:, PORT["rate"]], port[:, PORT["delay"]] = net.rate, net.delay
    port[:, PORT["switch"]] = net.source >= net.hosts
    port[:, PORT["to_host"]] = net.target < net.hosts
    port[:, PORT["buffer"]] = _UNLIMITED if scenario.network.buffer is None else round(scenario.network.buffer)
    port[:, PORT["mark_low"]] = port[:, PORT["mark_high"]] = _UNLIMITED
    if marking is not None:
        port[:, PORT["mark_low"]] = np.rint(marking.low * net.rate / marking.rate)
        port[:, PORT["mark_high"]] = np.rint(marking.high * net.rate / marking.rate)
    for name, size in (("tx_full", full), ("tx_ack", ack)):
        port[:, PORT[name]] = wire_times(size, net.rate, scenario.network.packets)
    switches = [name for name, node in zip(net.names, net.source, strict=True) if node >= net.hosts]
    for place, name in enumerate(scenario.watch.ports):
        if name not in switches:
            raise InvalidValue("watch.ports", name, f"ports of switches: {shorten(', '.join(switches), 300)}")
        port[net.names.index(name), PORT["watched"]] = place
    return port


def _flows(flows: FlowTable, kind: np.ndarray, scenario: Scenario) -> np.ndarray:
    flow = np.full((len(flows.size), len(FLOW)), -1, dtype=np.int64)
    flow[:, FLOW["start"]], flow[:, FLOW["size"]] = flows.start, flows.size
    flow[:, FLOW["nic"]], flow[:, FLOW["path"]] = flows.source, kind
    watched = scenario.watch.flows
    if watched and max(watched) >= len(flow):
        raise InvalidValue("watch.flows", max(watched), f"numbers of flows from 0 to {len(flow) - 1}")
    flow[list(watched), FLOW["watch"]] = np.arange(len(watched))
    return flow
