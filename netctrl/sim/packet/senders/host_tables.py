"""Data-centre senders of a scenario as the packet engine's tables: laws, paths, own ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.laws.rate.records import scheme_of
from netctrl.laws.window.law import MAX_HOPS, Path, Telemetry, WindowLaw
from netctrl.laws.window.records import LAWS, LawRow, law_of, law_row
from netctrl.laws.window.rows import PARAMETERS, STATES, row_of
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.tcp_aqm.flows import Flow, Host
from netctrl.sim.packet.hosts import COUNTER, HOST, PORT, TELEMETRY_OF, HostState, TransferState, no_transfers
from netctrl.sim.packet.links.port_tables import port_table, write_telemetry
from netctrl.sim.packet.links.tables import wire_time
from netctrl.sim.packet.state import FLOW, LINK

_NS = 1e9
_TOGETHER = 4  # flows that links are thought to have at least


class Sent(NamedTuple):
    """How a group sends whose law is a data centre's."""

    scheme: Any
    law: WindowLaw
    host: Host
    payload: int
    header: int
    """With telemetry [byte]."""
    ack: int


class Crossed(NamedTuple):
    """Rows of the links that data and acknowledgements of a group cross."""

    there: list[int]
    back: list[int]


class _Kind(NamedTuple):
    """Flows of a group whose ports are as far from the path."""

    sent: Sent
    there: list[int]
    trip: float
    """Round trip without queues [ns]."""
    line: float
    """[bit/s]"""


def path_of(trip: float, line: float, rates: Sequence[float]) -> Path:
    """A round trip without queues [ns], a sender's line and the links behind it [bit/s], for a law."""
    seen: Any = (*rates, *[0.0] * MAX_HOPS)[:MAX_HOPS]
    return Path(trip, trip * line / (8.0 * _NS), line, float(len(rates)), seen)


def host_row(law: WindowLaw, scheme: Any, payload: int, header: int, ack: int, timeout: int) -> np.ndarray:
    """A row of `HOST`, before what changes."""
    row = np.zeros(len(HOST), dtype=np.int64)
    row[HOST["law"]], row[HOST["telemetry"]] = LAWS.index(law), int(law.telemetry)
    row[HOST["payload"]], row[HOST["header"]], row[HOST["ack"]] = payload, header, ack
    row[HOST["notification"]] = 0 if law.notification is None else round(law.notification(scheme) * _NS)
    row[HOST["timeout"]] = timeout
    return row


def resend_after(given: float | None, longest: float) -> int:
    """Time without progress after which all unacknowledged data is sent again [ns]."""
    return round(max(10.0 * longest, 1e-3 * _NS) if given is None else given * _NS)


def counted_for(given: float | None, together: int, longest: float) -> int:
    """Time after its last packet for which a link counts one of so many flows as active [ns].

    N + 2 times the longest round trip: below (N - 1) times N would be counted too low, as `Topology.flow_timeout` says.
    """
    return round((max(_TOGETHER, together) + 2) * longest if given is None else given * _NS)


def host_state(
    host: np.ndarray,
    port: np.ndarray,
    laws: Sequence[LawRow],
    *,
    counters: int,
    packets: int,
    crossed: np.ndarray | None = None,
    transfers: TransferState | None = None,
) -> HostState:
    """Tables of a run; `laws` of all kinds of path, `packets` in the pool where a law reads telemetry."""
    return HostState(
        host=host,
        port=port,
        law=np.zeros((len(host), STATES)),
        memory=np.zeros((len(host), max(each.memory for each in laws))),
        parameters=np.array([np.pad(row_of(each.parameters), (0, PARAMETERS))[:PARAMETERS] for each in laws]),
        path=np.array([row_of(each.path) for each in laws]),
        table=_padded([each.table for each in laws]),
        start=np.array([each.start for each in laws]),
        crossed=np.full((len(laws), MAX_HOPS), -1) if crossed is None else crossed,
        counter=np.zeros((counters, len(COUNTER)), dtype=np.int64),
        telemetry=np.zeros((packets, *TELEMETRY_OF), dtype=np.int64),
        transfers=no_transfers() if transfers is None else transfers,
    )


def sent_of(group: Flow, full: int) -> Sent | None:
    """How a group sends; None: it has another sender. `full`: a packet with its headers [byte].

    Raises
    ------
    InvalidValue
        Packets without room for data; more links than telemetry has room for.
    """
    scheme = scheme_of(group.sender)
    if scheme is None:
        return None
    law, host = law_of(scheme), group.host or Host()
    extra = int(host.telemetry) if law.telemetry else 0
    header = int(host.header) + extra
    if header >= full:
        raise InvalidValue("packet_size", full, f"more bytes than the {header} around the data of {group.id}")
    if law.telemetry and len(group.path) > MAX_HOPS:
        raise InvalidValue(f"flows.{group.id}.path", len(group.path), f"at most {MAX_HOPS} links, for telemetry")
    return Sent(scheme, law, host, full - header, header, int(host.ack) + extra)


def no_hosts(port: np.ndarray) -> HostState:
    """Tables where no law is a data centre's; `port` has the links' rows."""
    return HostState(
        host=np.zeros((0, len(HOST)), dtype=np.int64),
        port=port,
        law=np.zeros((0, STATES)),
        memory=np.zeros((0, 1)),
        parameters=np.zeros((0, PARAMETERS)),
        path=np.zeros((0, len(Path._fields) - 1 + MAX_HOPS)),
        table=np.zeros((0, 2)),
        start=np.zeros(0),
        crossed=np.zeros((0, MAX_HOPS), dtype=np.int64),
        counter=np.zeros((1, len(COUNTER)), dtype=np.int64),
        telemetry=np.zeros((1, *TELEMETRY_OF), dtype=np.int64),
        transfers=no_transfers(),
    )


def host_tables(
    sent: Mapping[int, Sent],
    crossed: Sequence[Crossed],
    pfc: Sequence[Pfc | None],
    link: np.ndarray,
    flow: np.ndarray,
    packets: int,
) -> HostState:
    """Tables of the groups' data-centre senders, and of priority flow control.

    Parameters
    ----------
    sent : mapping
        Number of a group -> how it sends, of those whose law is a data centre's.
    crossed : sequence of Crossed
        Of each group of flows.
    pfc : sequence of Pfc or None
        Of each row of links.
    link : ndarray
        Rows of links, the flows' own ports behind the scenario's; those that have to be served by events are told.
    flow : ndarray
        Rows of flows, which are told their places.
    packets : int
        In the pool.
    """
    group = flow[:, FLOW["group"]]
    rows = np.flatnonzero(np.isin(group, list(sent)))
    ports = np.arange(len(link) - len(rows), len(link))
    paths = [[k, *crossed[g].there] for k, g in zip(ports, group[rows], strict=True)]
    port = port_table(link, pfc, [*paths, *(path for each in crossed for path in each)])
    link[ports, LINK["served"]] = 0  # it is the sender that waits
    if not len(rows):
        return no_hosts(port)
    port[ports, PORT["flow"]], flow[rows, FLOW["paced"]] = rows, np.arange(len(rows))
    # The ports' delays are all that differs within a group.
    alike = np.column_stack([group[rows], link[ports, LINK["delay"]]])
    _, example, number = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    kinds = [_kind(link, ports[k], flow[rows[k]], sent, crossed) for k in example]
    longest = max(kind.trip for kind in kinds)
    host = np.array([_host_row(each, longest) for each in kinds])[number.ravel()]
    host[:, HOST["port"]], host[:, HOST["kind"]], host[:, HOST["flow"]] = ports, number.ravel(), rows
    counts = _write_telemetry(port, link, kinds, longest, [crossed[g].there for g in group])
    reads = any(kind.sent.law.telemetry for kind in kinds)
    found = [_law_row(kind, link, longest) for kind in kinds]
    return host_state(
        host,
        port,
        found,
        counters=len(flow) * counts,
        packets=packets if reads else 1,
        crossed=np.array([(*kind.there, *[-1] * MAX_HOPS)[:MAX_HOPS] for kind in kinds]),
    )


def _kind(link: np.ndarray, port: int, flow: np.ndarray, sent: Mapping[int, Sent], crossed: Sequence[Crossed]) -> _Kind:
    """What a flow's row and that of its port say."""
    how, way = sent[int(flow[FLOW["group"]])], crossed[flow[FLOW["group"]]]
    trip = flow[FLOW["line_delay"]] + sum(
        wire_time(size, link[k, LINK["rate"]]) + link[k, LINK["delay"]]
        for size, links in ((how.payload + how.header, [port, *way.there]), (how.ack, way.back))
        for k in links
    )
    return _Kind(how, way.there, float(trip), float(link[port, LINK["rate"]]))


def _host_row(kind: _Kind, longest: float) -> np.ndarray:
    how = kind.sent
    timeout = resend_after(how.host.retransmission_timeout, longest)
    row = host_row(how.law, how.scheme, how.payload, how.header, how.ack, timeout)
    row[HOST["line"]] = kind.line
    row[HOST["transfer"]] = row[HOST["watch"]] = -1
    return row


def _write_telemetry(
    port: np.ndarray, link: np.ndarray, kinds: Sequence[_Kind], longest: float, ways: Sequence[Sequence[int]]
) -> int:
    """Links on the way of laws with telemetry are told; `ways` of all flows. Returns how many counters a flow has."""
    crossing = np.bincount(np.concatenate(ways), minlength=len(link))
    counts = 0
    for kind in kinds:
        what = kind.sent.law.telemetry
        timeout = counted_for(kind.sent.host.flow_timeout, int(crossing[kind.there].max()), longest)
        write_telemetry(port, link, kind.there, what, timeout)
        if what == Telemetry.FLOWS:
            counts = 1 + max(map(len, ways))
    return counts


def _law_row(kind: _Kind, link: np.ndarray, longest: float) -> LawRow:
    path = path_of(kind.trip, kind.line, link[kind.there, LINK["rate"]].astype(float).tolist())
    payload = kind.sent.payload
    return law_row(kind.sent.law, kind.sent.scheme, path, payload, payload + kind.sent.header, longest)


def _padded(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Tables of one length; the last number of each stands for all behind it."""
    longest = max(map(len, tables))
    return np.array([np.pad(each, (0, longest - len(each)), "edge") for each in tables])
