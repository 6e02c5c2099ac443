"""A data centre's ports as links, and its flows with paths over them, for senders other than its own."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.laws.rate.records import sender_name
from netctrl.scenario.fabric.flows import LAWS_TAKEN, check_ends, ends_of
from netctrl.scenario.fabric.ports import fabric, fabric_paths
from netctrl.scenario.fabric.topology import Dumbbell, FatTree
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import BETWEEN_HOSTS

_NS = 1e9


def topology_links(topology: Dumbbell | FatTree) -> tuple[Link, ...]:
    """Links of a topology, one for each port, with the port's rate, delay and buffer; hosts' queues have no limit.

    Parameters
    ----------
    topology : Dumbbell or FatTree
        Its `buffer` is the size of the switches' queues.

    Returns
    -------
    tuple of Link
        Their ids are such as "h0-s0", from host 0 to switch 0. A switch with priority flow control pauses the links
        that end at it.

    Raises
    ------
    InvalidValue
        What only the senders of a data centre have.

    Examples
    --------
    >>> [link.id for link in topology_links(Dumbbell(senders=1))]
    ['h0-s0', 'h1-s1', 's0-h0', 's0-s1', 's1-h1', 's1-s0']
    """
    usual = Dumbbell()
    for name in ("packets", "flow_timeout", "retransmission_timeout", "watch"):
        if getattr(topology, name) != getattr(usual, name):
            takes = "no value, unless all senders have laws of data centres"
            raise InvalidValue(f"network.{name}", getattr(topology, name), takes)
    net = fabric(topology)
    ends = [name.split(">") for name in net.names]
    switches = (net.source >= net.hosts).tolist(), (net.target >= net.hosts).tolist()
    columns = zip(ends, net.rate.tolist(), (net.delay / _NS).tolist(), *switches, strict=True)
    return tuple(
        Link(
            id=f"{source}-{target}",
            source=source,
            target=target,
            capacity=rate,
            delay=delay,
            buffer=topology.buffer if of_switch else None,
            pfc=topology.pfc if to_switch else None,
        )
        for (source, target), rate, delay, of_switch, to_switch in columns
    )


def topology_flows(topology: Dumbbell | FatTree, flows: Sequence[Flow], seed: int = 1) -> tuple[Flow, ...]:
    """The flows, one for each pair of hosts, with the links that they cross in both directions.

    Paths are shortest; a hash of the flow's number, the switch and the seed selects one, as for a data centre's own
    senders. A flow without hosts has a path already.

    Parameters
    ----------
    topology : Dumbbell or FatTree
    flows : sequence of Flow
    seed : int
        Seed of the scenario.

    Raises
    ------
    InvalidValue
        An unknown host, or a flow to its own source; transfers that only a data centre's senders carry.

    Examples
    --------
    >>> (flow,) = topology_flows(Dumbbell(senders=1), [Flow(source=0, target=1)])
    >>> flow.path, flow.ack_path
    (('h0-s0', 's0-s1', 's1-h1'), ('h1-s1', 's1-s0', 's0-h0'))
    """
    pairs: list[tuple[Flow, tuple[int, int]]] = []
    for flow in flows:
        if isinstance(flow.offers, BETWEEN_HOSTS):
            raise InvalidValue(f"flows.{flow.id}.sender", sender_name(flow.sender), LAWS_TAKEN)
        if flow.source is not None or flow.target is not None:
            check_ends(flow, topology.hosts)
            pairs += [(flow, ends) for ends in ends_of(flow)]
    net = fabric(topology)
    source, target = np.array([ends for _, ends in pairs], dtype=np.int64).reshape(-1, 2).T
    names = [name.replace(">", "-") for name in net.names]
    found: dict[str, list[Flow]] = {flow.id: [] for flow, _ in pairs}
    for (flow, _), ways in zip(pairs, fabric_paths(net, source, target, seed), strict=True):
        path, back = (tuple(names[port] for port in way.tolist() if port >= 0) for way in ways)
        number = str(len(found[flow.id])) if max(len(flow.source), len(flow.target)) > 1 else ""
        placed = {"path": path, "ack_path": back if flow.answered else (), "source": None, "target": None}
        found[flow.id].append(msgspec.structs.replace(flow, id=f"{flow.id}{number}", **placed))
    return tuple(each for flow in flows for each in found.get(flow.id, (flow,)))
