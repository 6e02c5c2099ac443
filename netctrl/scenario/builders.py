"""Short calls that build scenarios."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from netctrl.core.errors import InvalidValue, checked_whole
from netctrl.model.io.fields import records, size
from netctrl.model.network import Network
from netctrl.scenario.bottleneck import Bottleneck
from netctrl.scenario.fabric.topology import Dumbbell, FatTree, Topology
from netctrl.scenario.links import Link
from netctrl.scenario.network.routed import Routed
from netctrl.scenario.parking_lot import ParkingLot
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Bursts, Sizes, Stream


def bottleneck(**fields: Any) -> Scenario:
    """Build flows through one link, each from its own host.

    By default it has 100 Mbit/s, 20 ms, a buffer of 250 kB and one paced flow of packets of 1500 bytes, for 60 s.

    Parameters
    ----------
    **fields
        Fields of `Bottleneck` (capacity, buffer, queue, rtt, cross, start_spread) and of `Scenario`; `flows` are
        `Flow`, or dicts as in a file.

    Returns
    -------
    Scenario
        Links and flows, no longer the builder.

    Raises
    ------
    InvalidValue
        A value that a part refuses.

    Examples
    --------
    >>> from netctrl.scenario.builders import bottleneck
    >>> scenario = bottleneck(capacity="20Mbit", flows=[{"sender": "bbr"}])
    >>> scenario.links[0].capacity, scenario.flows[0].sender
    (20000000.0, 'bbr')
    """
    usual: dict[str, Any] = {"name": "bottleneck", "packet_size": 1500.0, "duration": 60.0, "warmup": 10.0}
    return _built(Bottleneck, usual | {"flows": (Flow(id="flow", sender="paced"),)} | fields)


def parking_lot(**fields: Any) -> Scenario:
    """Build equal links in a row: flows over all of them, and others over one each.

    By default three links of 20 Mbit/s, each of 5 ms and with a buffer of 100 kB, one Cubic flow over all of them and
    one over each, for 60 s.

    Parameters
    ----------
    **fields
        Fields of `ParkingLot` (hops, capacity, delay, buffer, queue, cross) and of `Scenario`; `flows` and `cross` are
        `Flow`, or dicts as in a file.

    Returns
    -------
    Scenario
        Links and flows, no longer the builder.

    Raises
    ------
    InvalidValue
        A value that a part refuses.

    Examples
    --------
    >>> from netctrl.scenario.builders import parking_lot
    >>> scenario = parking_lot(hops=2, queue="pie", cross=[{"sender": "bbr", "count": 4}])
    >>> [(flow.id, flow.path) for flow in scenario.flows]
    [('cubic', ('hop1', 'hop2')), ('bbr1', ('hop1',)), ('bbr2', ('hop2',))]
    """
    usual: dict[str, Any] = {"name": "parking lot", "packet_size": 1500.0, "duration": 60.0, "warmup": 10.0}
    cubic = (Flow(sender="cubic"),)
    return _built(ParkingLot, usual | {"flows": cubic, "cross": cubic} | fields)


def routed(graph: Network | dict[str, Any], **fields: Any) -> Scenario:
    """Build a graph with routed demands, whose links' rates a policy sets once an interval, as in HFTraC's paper.

    By default links send at their capacities, demands are Gaussian, and the run lasts 60 s, of which 10 s are warm-up.

    Parameters
    ----------
    graph : Network
        With demands, as of `netctrl.read("abilene")`.
    **fields
        Fields of `netctrl.scenario.network.routed.Routed` (queue, utilization, spread, per_demand) and of `Scenario`;
        `flows` are senders in the place of demands, by their ids.

    Returns
    -------
    Scenario
        Links and flows, no longer the builder.

    Raises
    ------
    InvalidValue
        A value that a part refuses, or a demand without a path.

    Examples
    --------
    >>> import netctrl
    >>> scenario = netctrl.routed(netctrl.read("testbed"), utilization=0.9, flows=[{"id": "p1", "sender": "cubic"}])
    >>> [(flow.id, flow.kind, flow.path) for flow in scenario.flows]
    [('p1', 'cubic', ('e1', 's13')), ('p2', 'demand', ('e2', 's23'))]
    """
    usual: dict[str, Any] = {"name": "network", "duration": 60.0, "warmup": 10.0, "graph": graph}
    return _built(Routed, usual | fields)


def access_link(
    *,
    hops: int = 1,
    capacity: Any = "100Mbit",
    limit: int = 100,
    queue: Any = "droptail",
    base_delay: Any = "360us",
    **fields: Any,
) -> Scenario:
    """Build an access link: equal nodes in tandem that premium traffic and regulated flows cross, as in CONNET's paper.

    By default premium packets of 1 Mbit/s share it with three groups of two flows of bursts, of which each offers half
    of the capacity, for 100 s. A `Track` as `control` sets their rates.

    Parameters
    ----------
    hops : int
        Number of links, `hop0`, `hop1` and so on.
    capacity : float or str
        Of each link [bit/s].
    limit : int
        Packets in a node, with the one that is being sent.
    queue : record, dict or str
        Law or scheduler of each link's queue.
    base_delay : float or str
        Propagation delay [s], of the last link; 0.36 ms fits the CONNET paper's figures.
    **fields
        Fields of `Scenario`; `flows` without a path cross all links, and cross traffic names its own, as `hop0`.

    Returns
    -------
    Scenario
        Links and flows.

    Raises
    ------
    InvalidValue
        A value that a part refuses.

    Examples
    --------
    >>> from netctrl.scenario.builders import access_link
    >>> scenario = access_link(hops=2, duration="20s")
    >>> [link.id for link in scenario.links], [flow.id for flow in scenario.flows]
    (['hop0', 'hop1'], ['premium', 'source0', 'source1', 'source2'])
    """
    checked_whole("hops", hops, "a number of links from 1 to 100", at_least=1, at_most=100)
    checked_whole("limit", limit, "a number of packets from 1 to 1000000", at_least=1, at_most=1_000_000)
    usual: dict[str, Any] = {"name": "access link", "duration": 100.0, "interval": 1.0}
    packet = size("packet_size", fields.get("packet_size", 1000.0))
    links = tuple(
        Link(
            id=f"hop{k}",
            source=f"node{k}",
            target=f"node{k + 1}",
            capacity=capacity,
            buffer=max((limit - 1) * packet, 1.0),
            delay=base_delay if k == hops - 1 else 0.0,
            queue=queue,
        )
        for k in range(hops)
    )
    bursts = Bursts(rate=links[0].capacity / 2.0, access_rate=links[0].capacity)
    sources = [Flow(id=f"source{k}", count=2, offers=bursts) for k in range(3)]
    premium = Flow(id="premium", offers=Stream(rate="1Mbit", spacing="constant"))
    path = tuple(link.id for link in links)
    given = records(Flow)("flows", fields.pop("flows", (premium, *sources)))
    flows = tuple(msgspec.structs.replace(flow, path=flow.path or path) for flow in given)
    return Scenario(**usual | fields, links=links, flows=flows)


def dumbbell(**fields: Any) -> Scenario:
    """Build a data centre of two switches: hosts at the first send through one link to hosts at the second.

    By default four hosts send 1 MB each by HPCC to a fifth one, over links of 1 Gbit/s and 1 us, within 50 ms.

    Parameters
    ----------
    **fields
        Fields of `netctrl.scenario.fabric.topology.Dumbbell` (senders, receivers, host_rate, link_rate, delay, buffer,
        pfc, flow_timeout, packets) and of `Scenario`; `flows` are `Flow` with `source` and `target`, hosts from 0 on.

    Returns
    -------
    Scenario
        With senders other than those of data centres links and flows, no longer the builder.

    Raises
    ------
    InvalidValue
        A value that a part refuses.

    Examples
    --------
    >>> from netctrl.scenario.builders import dumbbell
    >>> tcp = dumbbell(senders=2, flows=[{"source": [0, 1], "target": 2, "sender": "cubic"}])
    >>> [(flow.id, flow.path) for flow in tcp.flows]
    [('cubic0', ('h0-s0', 's0-s1', 's1-h2')), ('cubic1', ('h1-s0', 's0-s1', 's1-h2'))]
    """
    network = Dumbbell(**_words(Dumbbell.__struct_fields__, fields))
    flows = (Flow(source=range(network.senders), target=network.senders, offers="1MB", sender="hpcc"),)
    usual: dict[str, Any] = {"name": "dumbbell", "duration": 0.05, "flows": flows}
    return Scenario(**usual | fields, network=network)


def fat_tree(k: int | None = None, **fields: Any) -> Scenario:
    """Build a data centre of racks, pods and core switches.

    By default 16 hosts send by HPCC at 30 % load, over links of 100 and 400 Gbit/s and 1 us, for 10 ms.

    Parameters
    ----------
    k : int, optional
        Ports of each switch, an even number: k³/4 hosts, with as much capacity above each level as below it, all links
        of `rate` [bit/s].
    **fields
        Fields of `netctrl.scenario.fabric.topology.FatTree` (pods, racks, hosts_per_rack, aggregations, cores, wiring,
        host_rate, fabric_rate, delay, buffer, pfc, flow_timeout, packets) and of `Scenario`; `flows` are `Flow` with
        `source` and `target`, hosts from 0 on, or offers between all hosts.

    Returns
    -------
    Scenario
        With senders other than those of data centres links and flows, no longer the builder.

    Raises
    ------
    InvalidValue
        A value that a part refuses.

    Examples
    --------
    >>> from netctrl.scenario.builders import fat_tree
    >>> fat_tree(k=8, duration="1ms").network.hosts
    128
    """
    words = _words(FatTree.__struct_fields__, fields)
    if k is None:
        return _tree("fat tree", FatTree(**words), fields)
    for name in set(words) - set(Topology.__struct_fields__):
        raise InvalidValue(name, words[name], "no value beside k, from which it follows")
    rate = {"rate": fields.pop("rate")} if "rate" in fields else {}
    return _tree("fat tree", FatTree.k_ary(k, **rate, **words), fields)


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int, **fields: Any) -> Scenario:
    """Build a data centre of two levels: hosts below leaf switches, each linked to every spine.

    By default hosts send by HPCC at 30 % load, over links of 100 and 400 Gbit/s and 1 us, for 10 ms.

    Parameters
    ----------
    leaves, spines, hosts_per_leaf : int
        Numbers of switches, and of hosts below each leaf.
    **fields
        Fields of the links (host_rate, fabric_rate, delay, buffer, pfc, flow_timeout, packets) and of `Scenario`, as of
        `fat_tree`.

    Returns
    -------
    Scenario
        With senders other than those of data centres links and flows, no longer the builder.

    Raises
    ------
    InvalidValue
        A value that a part refuses.

    Examples
    --------
    >>> from netctrl.scenario.builders import leaf_spine
    >>> leaf_spine(leaves=32, spines=8, hosts_per_leaf=32, host_rate="25Gbit", fabric_rate="100Gbit").network.hosts
    1024
    """
    words = _words(("host_rate", "fabric_rate", *Topology.__struct_fields__), fields)
    network = FatTree.leaf_spine(leaves, spines, hosts_per_leaf, **words)
    return _tree("leaf-spine", network, fields)


def _tree(name: str, network: FatTree, fields: dict[str, Any]) -> Scenario:
    usual: dict[str, Any] = {"name": name, "duration": 0.01, "flows": (Flow(offers=Sizes(), sender="hpcc"),)}
    return Scenario(**usual | fields, network=network)


def _words(names: Iterable[str], fields: dict[str, Any]) -> dict[str, Any]:
    """Takes these fields out of others."""
    return {name: fields.pop(name) for name in names if name in fields}


def _built(kind: type[Any], fields: dict[str, Any]) -> Scenario:
    words = _words(kind.__struct_fields__, fields)
    return Scenario(**fields, network=kind(**words))
