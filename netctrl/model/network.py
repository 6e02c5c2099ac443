"""Networks: nodes, directed links and demands with their routes; read from networkx, node-link JSON and TopoHub."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import msgspec

from netctrl.core.errors import FileError, InvalidValue, optional_import
from netctrl.model.io.fields import read_fields, records
from netctrl.model.io.record_file import Record
from netctrl.model.io.validation_errors import explained, shorten, shown
from netctrl.model.networks.content import content_of, is_frame, read_matrices
from netctrl.model.networks.draft import Added, Draft, added_of, content, ids, limited, named
from netctrl.model.networks.nodelink import nodelink_draft, prepared
from netctrl.model.networks.records import Demand, Link, Node, text

if TYPE_CHECKING:
    import networkx
    import pandas as pd

__all__ = ["Demand", "Link", "Network", "Node", "noted_network", "read_network", "with_demands"]

MAX_UTILIZATION = 100.0
UTILIZATION_TAKES = f"a share above 0, to {MAX_UTILIZATION:g}; above 1 the busiest link is overloaded"
_MAX_LINKS = 1_000_000
_MEGABIT = 1e6


class Network(Record, frozen=True, kw_only=True):
    """A network: nodes, directed links, and traffic demands between nodes.

    Routes are checked where they are computed (`netctrl.laws.link_rate.routing`), not here.

    Raises
    ------
    InvalidValue
        No link, a repeated id, or an unknown id of a node or link.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.model.network import Demand, Link
    >>> link = Link(source="a", target="b", capacity="10Mbit", delay="5ms", buffer="60kB")
    >>> network = netctrl.Network(links=(link,), demands=(Demand(source="a", target="b", mean="8Mbit", std="1Mbit"),))
    >>> [node.id for node in network.nodes], network.links[0].id, network.demands[0].mean
    (['a', 'b'], 'a->b', 8000000.0)
    """

    links: tuple[Link, ...]
    """Directed links; at least one."""
    demands: tuple[Demand, ...] = ()
    """Traffic between nodes."""
    nodes: tuple[Node, ...] = ()
    """Nodes; by default those that the links name."""
    name: str = ""
    """Display name."""

    def __post_init__(self) -> None:
        read_fields(self, links=records(Link), demands=records(Demand), nodes=records(Node), name=text)
        if not 1 <= len(self.links) <= _MAX_LINKS:
            raise InvalidValue("links", f"{len(self.links)} links", f"1 to {_MAX_LINKS} links")
        for field in ("nodes", "links", "demands"):
            _unique(field, getattr(self, field))
        self._complete()
        nodes, links = {node.id for node in self.nodes}, {link.id for link in self.links}
        for demand in self.demands:
            for end in ("source", "target"):
                if getattr(demand, end) not in nodes:
                    raise InvalidValue(f"demands.{demand.id}.{end}", getattr(demand, end), _ids("nodes", nodes))
            for unknown in (name for name in demand.split or () if name not in links):
                raise InvalidValue(f"demands.{demand.id}.split", unknown, _ids("links", links))

    def _complete(self) -> None:
        """Add the nodes that only links name; where nodes are listed, links may name no others."""
        listed = {node.id for node in self.nodes}
        named = dict.fromkeys(end for link in self.links for end in (link.source, link.target))
        for link in self.links:
            for end in ("source", "target"):
                if listed and getattr(link, end) not in listed:
                    raise InvalidValue(f"links.{link.id}.{end}", getattr(link, end), _ids("nodes", listed))
        if not listed:
            msgspec.structs.force_setattr(self, "nodes", tuple(Node(id=name) for name in named))

    @classmethod
    def from_networkx(
        cls,
        graph: networkx.Graph,
        demands: Iterable[Demand | Mapping[str, Any]] | None = None,
        *,
        capacity: float | str | None = None,
        capacity_unit: float | str | None = None,
        delay: float | str | None = None,
        delay_unit: float | str | None = None,
        demand_unit: float | str | None = None,
    ) -> Network:
        """A network from a networkx graph.

        Parameters
        ----------
        graph : networkx.Graph
            Edges need `capacity` and may have `delay`, `buffer`, `weight` and `id`. An undirected edge becomes a link
            in each direction. With one of the four arguments below, attributes are found by any of their usual names,
            as in `read_network`, and others are ignored.
        demands : iterable of Demand or mapping, optional
            By default `graph.graph["demands"]`: a list, or a table of numbers as in TopoHub's files.
        capacity, capacity_unit, delay, delay_unit : float or str, optional
            What edges lack, and the units of bare numbers, as in `read_network`.
        demand_unit : float or str, optional
            Rate for which 1 stands in such a table, as in `read_network` [bit/s].

        Returns
        -------
        Network

        Raises
        ------
        InvalidValue
            As for `Network`, or an unknown or unusable attribute; or bare numbers that can't be bit/s: all
            capacities are below 1 Mbit/s, and `capacity_unit` isn't given.
        """
        if not hasattr(graph, "is_directed"):
            raise InvalidValue("graph", type(graph).__name__, "a networkx graph")
        added = added_of(capacity, capacity_unit, delay, delay_unit, demand_unit)
        own = added[:4] == (None,) * 4
        for u, v, data in graph.edges(data=True):
            if own and "capacity" not in data:
                has = f"with {', '.join(map(str, data))} alone" if data else "without attributes"
                takes = "edges with `capacity` [bit/s], and `delay` [s], `buffer` [bytes], `weight`, `id` if desired"
                remedy = 'networkx.set_edge_attributes(graph, 10e6, "capacity") sets it for all edges'
                remedy += ", or `capacity` and `capacity_unit` read other attributes"
                raise InvalidValue("graph", f"the edge {u!r} to {v!r} {has}", f"{takes}: {remedy}")
        rates = [data.get("capacity") for _, _, data in graph.edges(data=True)]
        if own and rates and graph.graph.get("units") != "SI" and all(_is_small(each) for each in rates):
            takes = 'the argument `capacity_unit` too: the rate of a capacity of 1, as "1Gbit", or "1bit" for bit/s'
            raise InvalidValue("graph", f"capacities without a unit, such as {shown(rates[0])}", takes)
        kept = {key: graph.graph[key] for key in ("name", "demands") if key in graph.graph}
        content: dict[str, Any] = {
            "directed": graph.is_directed(),
            "graph": kept,
            "nodes": [{"id": name, **data} for name, data in graph.nodes(data=True)],
            "edges": [{"source": u, "target": v, **data} for u, v, data in graph.edges(data=True)],
        }
        if demands is not None:
            content["demands"] = [msgspec.to_builtins(demand) for demand in demands]
        if not own:
            draft = nodelink_draft(content)
            network, _ = _of_draft(draft, added)
            records = {"edges": [_plain(each) for each in network.links], "nodes": [_plain(n) for n in network.nodes]}
            content |= records | {"directed": True}
            for note in draft.notes:
                warnings.warn(note, stacklevel=2)
        content = prepared(content, None, added.demand_unit)
        try:
            return _network(content)
        except msgspec.ValidationError as error:
            takes = "attributes of Node and Link, with a capacity for each edge"
            raise InvalidValue("graph", explained(error, content, _File), takes) from None

    def to_networkx(self) -> networkx.MultiDiGraph:
        """A networkx MultiDiGraph with links ordered by source and the demands as dicts in `graph["demands"]`."""
        with optional_import():
            import networkx

        graph = networkx.MultiDiGraph(name=self.name, units="SI", demands=[_plain(demand) for demand in self.demands])
        for node in self.nodes:
            data = _plain(node)
            graph.add_node(data.pop("id"), **data)
        for link in self.links:
            data = _plain(link)
            graph.add_edge(data.pop("source"), data.pop("target"), key=link.id, **data)
        return graph

    def to_json(self) -> bytes:
        """Node-link JSON for `read_network` and networkx's `node_link_graph(..., edges="edges")`."""
        ends = {(link.source, link.target) for link in self.links}
        content = {
            "directed": True,
            "multigraph": len(ends) < len(self.links),
            "graph": {"name": self.name},
            "nodes": [_plain(node) for node in self.nodes],
            "edges": [_plain(link) for link in self.links],
            "demands": [_plain(demand) for demand in self.demands],
        }
        return msgspec.json.format(msgspec.json.encode(content)) + b"\n"


class _File(Record, frozen=True, kw_only=True):
    """Node-link JSON as networkx writes it, with demands."""

    edges: list[Link]
    nodes: list[Node] = msgspec.field(default_factory=list)
    demands: list[Demand] = msgspec.field(default_factory=list)
    directed: bool = True
    multigraph: bool = False
    graph: dict[str, Any] = msgspec.field(default_factory=dict)


def read_network(
    path: str | os.PathLike[str] | pd.DataFrame,
    *,
    capacity: float | str | None = None,
    capacity_unit: float | str | None = None,
    delay: float | str | None = None,
    delay_unit: float | str | None = None,
    demands: str | os.PathLike[str] | pd.DataFrame | None = None,
    demand_unit: float | str | None = None,
) -> Network:
    """Read a network from a file in any of the formats in which operators and researchers keep them.

    The content tells the format: node-link JSON as netctrl and networkx write it, TopoHub, GraphML and GML as of the
    Internet Topology Zoo, SNDlib's XML and JSON, REPETITA's `.graph`, containerlab's topologies, or CSV with columns
    `source` and `target`. Netctrl's own node-link JSON is read strictly; of other files an unusable node, link or
    demand is left out with a warning. Delays that a file doesn't give follow from lengths or coordinates.

    Parameters
    ----------
    path : path or DataFrame
        A DataFrame has the columns of such a CSV file.
    capacity : float or str, optional
        Capacity of the links for which the file gives none [bit/s], or as "10Mbit".
    capacity_unit : float or str, optional
        Rate for which a capacity of 1 stands in a file without units [bit/s], or as "1Gbit".
    delay : float or str, optional
        Delay of the links for which the file gives neither delay nor length [s], or as "5ms".
    delay_unit : float or str, optional
        Time for which a delay of 1 stands in a file without units [s], or as "1ms".
    demands : path or DataFrame, optional
        Traffic matrices, whose demands replace those of the network's file: REPETITA's `.demands`, SNDlib, TopoHub,
        CSV, or a folder of such files. Of several matrices the demands get the mean and standard deviation.
    demand_unit : float or str, optional
        Rate for which a demand of 1 stands in a file without units, such as TopoHub's [bit/s], or as "1Mbit"; 0 leaves
        the demands out.

    Returns
    -------
    Network

    Raises
    ------
    FileError
        The file can't be read, is of none of the formats, or lacks a capacity or a unit; the message names the
        argument.
    InvalidValue
        An argument is not a rate or a time.

    Warns
    -----
    UserWarning
        What was derived, assumed or left out.

    Notes
    -----
    Demands that networkx wrote from `Network.to_networkx`'s graph are in `graph`; they are used where none stand beside
    nodes and edges. Of the rest of `graph` only the name is kept.

    Examples
    --------
    >>> import pandas as pd
    >>> from netctrl.model.network import read_network
    >>> links = pd.DataFrame({"from": ["a", "b"], "to": ["b", "a"], "capacity_gbps": [10, 10], "delay": "5ms"})
    >>> read_network(links).links[0].delay
    0.005
    """
    added = added_of(capacity, capacity_unit, delay, delay_unit, demand_unit)
    network, notes = noted_network(path, demands, added)
    for note in notes:
        warnings.warn(f"{_name(path)}: {note}", stacklevel=2)
    return network


def noted_network(path: Any, demands: Any, added: Added) -> tuple[Network, tuple[str, ...]]:
    """The network of a file, and notes on it, as `read_network`."""
    found = content_of(path)
    ready: dict[str, Any] = {}
    try:
        if isinstance(found, Draft) or any(each is not None for each in added[1:4]):
            draft = found if isinstance(found, Draft) else nodelink_draft(found)
            if demands is not None:
                draft.demands = []
            network, keys = _of_draft(draft, added)
            notes = draft.notes
        else:
            if demands is not None:
                found = {key: value for key, value in found.items() if key not in ("demands", "graph")}
            ready = prepared(found, added.capacity, added.demand_unit)
            network, keys, notes = _network(ready), {}, []
        if demands is not None:
            matrices = read_matrices(demands, network.nodes, added.demand_unit, keys)
            network = with_demands(network, matrices.ends, matrices.mean, matrices.std)
            notes = [*notes, *matrices.notes]
        return network, tuple(notes)
    except msgspec.ValidationError as error:
        why = explained(error, ready, _File)
        if "key `capacity` is missing" in why:
            why += "; read_network's argument `capacity` is for files without"
        raise FileError(_name(path), why) from None
    except InvalidValue as error:
        raise FileError(_name(path), f"{error.argument}: got {shown(error.got)}, takes {error.takes}") from None


def _name(source: Any) -> str:
    return "the table of links" if is_frame(source) else os.fspath(source)


def with_demands(network: Network, ends: Iterable[tuple[str, str]], mean: Iterable[Any], std: Iterable[Any]) -> Network:
    """The network with demands between nodes [bit/s]; those below 1 bit/s are left out."""
    records: list[dict[str, Any]] = [
        {"source": a, "target": b, "mean": float(m), "std": float(s) if s >= 1.0 else 0.0, "id": ""}
        for (a, b), m, s in zip(ends, mean, std, strict=True)
        if m >= 1.0
    ]
    named(records, "=>")
    return msgspec.structs.replace(network, demands=tuple(Demand(**each) for each in records))


def _of_draft(draft: Draft, added: Added) -> tuple[Network, dict[str, str]]:
    """The network of a draft, without the records that can't be used, which its notes name; ids of nodes by key."""
    keys = ids(draft)
    ready = content(draft, keys, added)
    kept: dict[str, list[Any]] = {}
    for field, kind in (("nodes", Node), ("edges", Link), ("demands", Demand)):
        kept[field] = []
        for record in ready[field]:
            try:
                kept[field].append(kind(**record))
            except InvalidValue as error:
                draft.notes.append(f"{field} {record['id']} is left out: {error}")
    draft.notes[:] = limited(draft.notes, "notes on this file")
    if not kept["edges"]:
        raise InvalidValue("links", "none", f"one usable link or more: {'; '.join(draft.notes[:1])}")
    nodes, links, demands = (tuple(each) for each in kept.values())
    return Network(nodes=nodes, links=links, demands=demands, name=draft.name if draft.name.isprintable() else ""), keys


def _network(content: dict[str, Any]) -> Network:
    file = msgspec.convert(content, _File)
    links = file.edges
    if not file.directed:
        links = [each for link in links for each in (link, _reverse(link))]
    name = file.graph.get("name", "")
    return Network(
        links=tuple(links),
        demands=tuple(file.demands),
        nodes=tuple(file.nodes),
        name=name if isinstance(name, str) else "",
    )


def _reverse(link: Link) -> Link:
    default = link.id == f"{link.source}->{link.target}"
    name = "" if default else f"{link.id}:reverse"
    turned: dict[str, Any] = {"source": link.target, "target": link.source, "id": name}
    fields: dict[str, Any] = msgspec.structs.asdict(link)
    return Link(**(fields | turned))  # msgspec 0.20's `replace` would leave the id empty


def _is_small(capacity: Any) -> bool:
    return isinstance(capacity, Real) and not isinstance(capacity, bool) and 0.0 < capacity < _MEGABIT


def _plain(record: msgspec.Struct) -> dict[str, Any]:
    """A record as a dict without null values."""
    return {key: value for key, value in msgspec.to_builtins(record).items() if value is not None}


def _unique(field: str, records: Sequence[Any]) -> None:
    name, count = max(Counter(record.id for record in records).items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        raise InvalidValue(f"{field}.{name}", f"an id that occurs {count} times", "a unique id for each")


def _ids(what: str, known: Iterable[str]) -> str:
    return f"ids of {what}; there are {shorten(', '.join(sorted(map(str, known))), 200)}"
