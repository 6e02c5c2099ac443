"""Networks: nodes, directed links and demands with their routes; read from networkx, node-link JSON and TopoHub."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from netctrl.core.errors import FileError, InvalidValue, checked_number, optional_import
from netctrl.model.io.fields import (
    Duration,
    Label,
    Rate,
    Size,
    instant,
    label,
    number,
    optional,
    rate,
    rate_or_0,
    read_fields,
    records,
    shares,
    size,
)
from netctrl.model.io.json_file import read_json
from netctrl.model.io.record_file import Record
from netctrl.model.io.topohub import demand_records, has_lengths, plain_edge, plain_node
from netctrl.model.io.validation_errors import explained, shorten, shown

if TYPE_CHECKING:
    import networkx

    Place = tuple[float, float]
    Number = float
    Split = dict[str, float]
else:  # files may hold any type, and networkx NumPy numbers: the readers below check them
    Place = Number = Split = Any

MAX_UTILIZATION = 100.0
UTILIZATION_TAKES = f"a share above 0, to {MAX_UTILIZATION:g}; above 1 the busiest link is overloaded"
_MAX_BYTES = 256 * 2**20
_MAX_LINKS = 1_000_000


class Node(Record, frozen=True, kw_only=True):
    """A switch, router or host."""

    id: Label
    """Unique among the nodes."""
    name: str | None = None
    """Display name."""
    pos: Place | None = None
    """Position in drawings: longitude and latitude, or any x and y."""

    def __post_init__(self) -> None:
        read_fields(self, id=label, name=optional(_text), pos=optional(_place))


class Link(Record, frozen=True, kw_only=True):
    """One direction of a line, with its buffer at `source`."""

    source: Label
    """Node that the link leaves (the HFTraC paper's tail)."""
    target: Label
    """Node that the link enters (the HFTraC paper's head)."""
    capacity: Rate
    """Rate of the link [bit/s]."""
    id: Label = ""
    """Unique among the links; "source->target" by default."""
    delay: Duration = 0.0
    """Propagation delay, one way [s]."""
    buffer: Size | None = None
    """Size of the buffer [byte]; null is unlimited."""
    weight: Number | None = None
    """lambda of HFTraC [1/s²]: cost of a squared backlog [bit²] relative to a squared rate [(bit/s)²]."""

    def __post_init__(self) -> None:
        read_fields(self, source=label, target=label, capacity=rate, delay=instant, buffer=optional(size))
        read_fields(self, weight=optional(number("a weight of at least 0, in 1/s²", at_least=0.0)))
        if self.id is None or self.id == "":  # 0 is a valid id
            msgspec.structs.force_setattr(self, "id", f"{self.source}->{self.target}")
        read_fields(self, id=label)
        if self.source == self.target:
            raise InvalidValue("target", self.target, "a node other than source")


class Demand(Record, frozen=True, kw_only=True):
    """Traffic from one node to another: its mean rate and standard deviation."""

    source: Label
    """Node at which the traffic enters the network."""
    target: Label
    """Node at which the traffic leaves the network."""
    mean: Rate
    """Mean rate [bit/s]."""
    std: Rate = 0.0
    """Standard deviation of the rate, averaged over a sampling interval [bit/s]."""
    id: Label = ""
    """Unique among the demands; "source=>target" by default."""
    split: Split | None = None
    """Link id -> share of the demand's traffic at the link's source that takes it; null: the path of least delay."""

    def __post_init__(self) -> None:
        read_fields(self, source=label, target=label, mean=rate, std=rate_or_0, split=optional(shares))
        if self.id is None or self.id == "":
            msgspec.structs.force_setattr(self, "id", f"{self.source}=>{self.target}")
        read_fields(self, id=label)
        if self.source == self.target:
            raise InvalidValue("target", self.target, "a node other than source")


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
        read_fields(self, links=records(Link), demands=records(Demand), nodes=records(Node), name=_text)
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
        demand_unit: float | str | None = None,
    ) -> Network:
        """A network from a networkx graph.

        Parameters
        ----------
        graph : networkx.Graph
            Edges need `capacity` and may have `delay`, `buffer`, `weight` and `id`. An undirected edge becomes a link
            in each direction.
        demands : iterable of Demand or mapping, optional
            By default `graph.graph["demands"]`: a list, or a table of numbers as in TopoHub's files.
        demand_unit : float or str, optional
            Rate for which 1 stands in such a table, as in `read_network` [bit/s].

        Returns
        -------
        Network

        Raises
        ------
        InvalidValue
            As for `Network`, or an unknown or unusable attribute.
        """
        if not hasattr(graph, "is_directed"):
            raise InvalidValue("graph", type(graph).__name__, "a networkx graph")
        for u, v, data in graph.edges(data=True):
            if "capacity" not in data:
                has = f"with {', '.join(map(str, data))} alone" if data else "without attributes"
                takes = "edges with `capacity` [bit/s], and `delay` [s], `buffer` [bytes], `weight`, `id` if desired"
                remedy = 'networkx.set_edge_attributes(graph, 10e6, "capacity") sets it for all edges'
                raise InvalidValue("graph", f"the edge {u!r} to {v!r} {has}", f"{takes}: {remedy}")
        kept = {key: graph.graph[key] for key in ("name", "demands") if key in graph.graph}
        content = {
            "directed": graph.is_directed(),
            "graph": kept,
            "nodes": [{"id": name, **data} for name, data in graph.nodes(data=True)],
            "edges": [{"source": u, "target": v, **data} for u, v, data in graph.edges(data=True)],
        }
        if demands is not None:
            content["demands"] = [msgspec.to_builtins(demand) for demand in demands]
        content = _prepared(content, None, _unit(demand_unit))
        try:
            return _network(content)
        except msgspec.ValidationError as error:
            takes = "attributes of Node and Link, with a capacity for each edge"
            raise InvalidValue("graph", explained(error, content, _File), takes) from None

    def to_networkx(self) -> networkx.MultiDiGraph:
        """A networkx MultiDiGraph with links ordered by source and the demands as dicts in `graph["demands"]`."""
        with optional_import():
            import networkx

        graph = networkx.MultiDiGraph(name=self.name, demands=[_plain(demand) for demand in self.demands])
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
    path: str | os.PathLike[str], *, capacity: float | str | None = None, demand_unit: float | str | None = None
) -> Network:
    """Read a network from node-link JSON, strictly; TopoHub's files, which give lengths in km, are read too.

    Parameters
    ----------
    path : path
    capacity : float or str, optional
        Capacity of the links for which the file gives none, such as TopoHub's [bit/s], or as "10Mbit".
    demand_unit : float or str, optional
        Rate of a demand of 1 in TopoHub's table of demands, which has no unit [bit/s], or as "1Mbit"; 0 leaves these
        demands out. Their standard deviation is 0.

    Raises
    ------
    FileError
        The file can't be read, isn't JSON, or has an unknown, missing or unusable key, which the message names; or it
        has a table of demands and `demand_unit` is missing.
    InvalidValue
        `capacity` or `demand_unit` is not a rate.

    Notes
    -----
    Demands that networkx wrote from `Network.to_networkx`'s graph are in `graph`; they are used where none stand beside
    nodes and edges. Of the rest of `graph` only the name is kept.
    """
    if capacity is not None:
        capacity = rate("capacity", capacity)
    unit = _unit(demand_unit)
    parsed = read_json(path, what="network of a million links", max_bytes=_MAX_BYTES)
    if not isinstance(parsed, dict) or not isinstance(parsed.get("edges", parsed.get("links")), list):
        raise FileError(path, 'not a network: node-link JSON has "nodes", "edges" and optionally "demands"')
    ready: dict[str, Any] = {}
    try:
        ready = _prepared(parsed, capacity, unit)
        return _network(ready)
    except msgspec.ValidationError as error:
        why = explained(error, ready, _File)
        remedy = (
            "; read_network's argument `capacity` is for files without" if "key `capacity` is missing" in why else ""
        )
        raise FileError(path, why + remedy) from None
    except InvalidValue as error:
        raise FileError(path, f"{error.argument}: got {shown(error.got)}, takes {error.takes}") from None


def _prepared(content: dict[str, Any], capacity: float | None, unit: float | None) -> dict[str, Any]:
    """A file's content without keys that only networkx and TopoHub use, and with the missing capacities filled in."""
    content = dict(content)
    if "edges" not in content:  # networkx before 3.6 writes "links"
        content["edges"] = content.pop("links")
    graph = content.get("graph")
    listed = graph.get("demands") if isinstance(graph, dict) else None
    if isinstance(listed, list):
        content.setdefault("demands", listed)
    elif isinstance(listed, dict) and "demands" not in content:
        content["demands"] = demand_records(listed, unit, directed=content.get("directed") is True)
    of_topohub = has_lengths(content["edges"])
    edges = []
    for row, edge in enumerate(content["edges"]):
        if isinstance(edge, dict):
            edge = {"capacity": capacity} | edge if capacity is not None else dict(edge)
            if content.get("multigraph") is True:
                edge.pop("key", None)
            if of_topohub:
                edge = plain_edge(f"edges[{row}].dist", edge)
        edges.append(edge)
    content["edges"] = edges
    if of_topohub and isinstance(content.get("nodes"), list):
        content["nodes"] = [plain_node(node) for node in content["nodes"]]
    return content


def _unit(value: float | str | None) -> float | None:
    return None if value is None else rate_or_0("demand_unit", value)


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


def _plain(record: msgspec.Struct) -> dict[str, Any]:
    """A record as a dict without null values."""
    return {key: value for key, value in msgspec.to_builtins(record).items() if value is not None}


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidValue(field, value, "text")
    return value


def _place(field: str, value: Any) -> tuple[float, float]:
    takes = "two finite numbers, as longitude and latitude"
    try:
        x, y = (checked_number(field, each, takes) for each in value)
    except (TypeError, ValueError):  # InvalidValue, not iterable, or not two numbers
        raise InvalidValue(field, value, takes) from None
    return x, y


def _unique(field: str, records: Sequence[Any]) -> None:
    name, count = max(Counter(record.id for record in records).items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        raise InvalidValue(f"{field}.{name}", f"an id that occurs {count} times", "a unique id for each")


def _ids(what: str, known: Iterable[str]) -> str:
    return f"ids of {what}; there are {shorten(', '.join(sorted(map(str, known))), 200)}"
