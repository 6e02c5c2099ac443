"""An agent's configuration: its links, its law as numbers, its peers; the file `netctrl.agent/1`.

Rendering is pure. The numbers are those of `netctrl.laws.link_rate.distributed`, so an agent runs the simulated law.
The file contains no secret: the key that signs messages is in a file of its own.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from netctrl.core.errors import FileError, InvalidValue, checked_kind
from netctrl.core.files import write_atomically
from netctrl.linux.export.agent_law import DecidedTable, LinkRateTable, TrackingTable, restricted
from netctrl.linux.export.records import interface_name
from netctrl.model.io.arrays import array, array_json
from netctrl.model.io.fields import (
    Duration,
    Label,
    Rate,
    Size,
    duration,
    label,
    number,
    one_of,
    optional,
    rate,
    read_fields,
    records,
    size,
    texts,
    whole,
)
from netctrl.model.io.json_file import read_json
from netctrl.model.io.record_file import Record

MAX_LINKS = 30
"""Most links of one agent, as its measurements must fit in one unfragmented message."""

_MAX_BYTES = 64 * 2**20
_MAX_PEERS = 256

Role = Literal["agent", "controller"]


class ControlledLink(Record, frozen=True, kw_only=True):
    """Link whose rate an agent sets: a token bucket filter on an interface, or the only class of an HTB."""

    id: Label
    """Id as in the law's `links`; any name with a tracking law."""
    interface: str
    handle: str
    """Handle of the queue, such as "1:"; no other queue is touched."""
    kind: Literal["tbf", "htb"] = "tbf"
    """"htb": an HTB with one class, the number 1, and a bfifo in it. A change of rate keeps its tokens,
    whereas it refills a token bucket filter."""
    parent: str = "root"
    """"root", or the parent class, such as "1:10"."""
    least_rate: Rate
    """Lower limit of the law's rates [bit/s]."""
    greatest_rate: Rate
    """[bit/s]; the link's capacity."""
    fallback_rate: Rate
    """Rate without messages from the controller, and where the law gives no number [bit/s]."""
    burst: Size
    """[byte]; a change of rate refills the bucket of a token bucket filter."""
    limit: Size
    """Limit of the backlog [byte]."""
    share: float = 1.0
    """Share of a tracking law's rate."""

    def __post_init__(self) -> None:
        read_fields(self, id=label, interface=interface_name, handle=_handle, parent=_parent, least_rate=rate)
        read_fields(self, greatest_rate=rate, fallback_rate=rate, burst=size, limit=size)
        read_fields(self, kind=one_of("tbf", "htb"))
        read_fields(self, share=number("a share above 0, to 1", above=0.0, at_most=1.0))
        if not self.least_rate <= self.fallback_rate <= self.greatest_rate:
            takes = f"a rate from least_rate to greatest_rate, {self.least_rate:g} to {self.greatest_rate:g} bit/s"
            raise InvalidValue("fallback_rate", self.fallback_rate, takes)


class Peer(Record, frozen=True, kw_only=True):
    """Another agent, or the controller, that exchanges messages with this agent."""

    name: Label
    address: str
    """IPv4 or IPv6 address; host names are not resolved."""
    port: int
    links: tuple[str, ...] = ()
    """Links that it measures, or commands."""

    def __post_init__(self) -> None:
        read_fields(self, name=label, address=_address, port=whole(1, 65535), links=texts)


class AgentConfig(Record, frozen=True, kw_only=True, eq=False):
    """Configuration of one agent, or of a central controller. Rates in bit/s, times in seconds, sizes in bytes.

    Raises
    ------
    InvalidValue
        A value out of bounds, names that occur twice, or links that the law doesn't know: the message names them.
    """

    schema: Literal["netctrl.agent/1"]
    name: Label
    """Name of this agent, by which peers know it."""
    role: Role = "agent"
    """A controller commands links that agents measure; it sets no rate itself."""
    interval_s: Duration
    """tau."""
    law: LinkRateTable | TrackingTable | DecidedTable
    links: tuple[ControlledLink, ...] = ()
    address: str = "127.0.0.1"
    """Address for incoming messages."""
    port: int = 0
    """Port for incoming messages; 0 without messages."""
    peers: tuple[Peer, ...] = ()
    key_file: str | None = None
    """File of a key of 32 bytes or more, shared by all agents and readable by nobody else (0600). Required with peers.
    """
    dead_band: float = 0.01
    """A rate is changed if it differs by more than this share of the one in force."""
    smoothing: float = 1.0
    """Weight of the newest backlog measurement in the moving average; 1: no filter."""
    silence: int = 10
    """Intervals without messages after which a peer counts as gone."""
    metrics_socket: str | None = None
    """Path of a Unix socket that serves metrics as text."""

    def __post_init__(self) -> None:
        read_fields(self, name=label, role=one_of("agent", "controller"), interval_s=duration, address=_address)
        read_fields(self, links=records(ControlledLink), peers=records(Peer), port=whole(0, 65535))
        read_fields(self, dead_band=number("a share from 0 to below 1", at_least=0.0, at_most=0.999999))
        read_fields(self, smoothing=number("a weight above 0, to 1", above=0.0, at_most=1.0))
        read_fields(self, silence=whole(1, 1_000_000))
        read_fields(self, key_file=optional(_path), metrics_socket=optional(_path))
        _check_names(self)
        _check_law(self)

    def to_json(self) -> str:
        """The file's text: strict JSON that ends with a newline."""
        return array_json(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file to a temporary name and rename it, so that it is always complete."""
        write_atomically(path, self.to_json().encode())


def read_agent_config(path: str | os.PathLike[str]) -> AgentConfig:
    """Read an agent's file, strictly.

    Raises
    ------
    FileError
        The file can't be read, isn't JSON, or has an unknown, missing or unusable key, which the message names.
    """
    try:
        return read_json(path, AgentConfig, what="file of an agent", max_bytes=_MAX_BYTES, dec_hook=array)
    except msgspec.ValidationError as error:
        raise FileError(path, f"is not a netctrl agent's file: {error}") from None


def agent_configs(
    law: LinkRateTable,
    interval_s: float,
    places: Sequence[tuple[Peer, Sequence[ControlledLink]]],
    *,
    controller: Peer | None = None,
    **settings: Any,
) -> dict[str, AgentConfig]:
    """Files of all agents of a network: name -> config.

    Parameters
    ----------
    law : LinkRateTable
        Law of the whole network (`netctrl.linux.export.agent_law.link_rate_table`).
    interval_s : float
        Interval of the Design [s].
    places : sequence of (Peer, sequence of ControlledLink)
        Each agent with the links at it.
    controller : Peer, optional
        Node that commands, for a central law.
    **settings
        `key_file`, `dead_band`, `smoothing`, `silence` of `AgentConfig`, the same for all.

    Raises
    ------
    InvalidValue
        Links of the law without an agent, or links unknown to the law, as in a Design for another network; a central
        law without a controller, or another law with one.
    """
    checked_kind("law", law, LinkRateTable)
    _check_places(law, places)
    if controller is not None:
        checked_kind("controller", controller, Peer)
    if law.central != (controller is not None):
        takes = "a Peer, as the law is a central one" if law.central else "no value, as the law is not a central one"
        raise InvalidValue("controller", None if controller is None else controller.name, takes)
    agents = [msgspec.structs.replace(peer, links=tuple(each.id for each in links)) for peer, links in places]
    common: dict[str, Any] = {"schema": "netctrl.agent/1", "interval_s": interval_s, **settings}
    configs: dict[str, AgentConfig] = {}
    for agent, (_, links) in zip(agents, places, strict=True):
        own = restricted(law, () if law.central else agent.links)
        peers = () if law.central else tuple(each for each in agents if each is not agent and _talk(law, agent, each))
        heard = (msgspec.structs.replace(controller, links=agent.links),) if controller is not None else peers
        port = agent.port if heard else 0
        configs[agent.name] = AgentConfig(
            name=agent.name, law=own, links=tuple(links), address=agent.address, port=port, peers=heard, **common
        )
    if controller is not None:
        name, address, port = controller.name, controller.address, controller.port
        configs[name] = AgentConfig(
            name=name, role="controller", law=law, address=address, port=port, peers=tuple(agents), **common
        )
    return configs


def _talk(law: LinkRateTable, one: Peer, other: Peer) -> bool:
    """Whether one agent needs the other's measurements."""
    row = {name: k for k, name in enumerate(law.links)}
    mine, theirs = ({row[name] for name in each.links} for each in (one, other))
    return any((at in mine and of in theirs) or (at in theirs and of in mine) for at, of in law.pairs())


def _check_places(law: LinkRateTable, places: Sequence[tuple[Peer, Sequence[ControlledLink]]]) -> None:
    takes = "pairs of a Peer and a sequence of ControlledLink"
    checked_kind("places", places, Sequence)
    try:
        pairs = [(peer, list(links)) for peer, links in places]
    except (TypeError, ValueError):
        raise InvalidValue("places", places, takes) from None
    if not all(isinstance(peer, Peer) and all(isinstance(x, ControlledLink) for x in links) for peer, links in pairs):
        raise InvalidValue("places", places, takes)
    found = [link.id for _, links in pairs for link in links]
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise InvalidValue("places", f"{', '.join(twice)} more than once", "each link at one agent")
    _check_links("places", found, law.links)


def _check_links(argument: str, found: Sequence[str], known: Sequence[str], *, all_of_them: bool = True) -> None:
    extra = sorted(set(found) - set(known))
    missing = sorted(set(known) - set(found)) if all_of_them else []
    if extra or missing:
        said = [f"links that the Design doesn't have: {', '.join(extra)}"] if extra else []
        said += [f"no agent for the Design's links {', '.join(missing)}"] if missing else []
        raise InvalidValue(argument, "; ".join(said), f"a Design for this network; its links are {', '.join(known)}")


def _check_names(config: AgentConfig) -> None:
    each: tuple[tuple[str, list[object]], ...] = (
        ("links", [link.id for link in config.links]),
        ("links", [(link.interface, link.parent) for link in config.links]),
        ("peers", [peer.name for peer in config.peers]),
        ("peers", [(peer.address, peer.port) for peer in config.peers]),
    )
    for field, names in each:
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InvalidValue(field, f"{twice[0]} twice", "each once")
    if config.name in [peer.name for peer in config.peers]:
        raise InvalidValue("peers", config.name, "agents other than this one")
    for field, count, most in (("links", len(config.links), MAX_LINKS), ("peers", len(config.peers), _MAX_PEERS)):
        if count > most:
            raise InvalidValue(field, count, f"at most {most} at one agent")
    for peer in config.peers:
        if len(peer.links) > MAX_LINKS:
            raise InvalidValue("peers", f"{len(peer.links)} links of {peer.name}", f"at most {MAX_LINKS}")
    if config.peers and not config.port:
        raise InvalidValue("port", config.port, "a port from 1 to 65535, as there are peers")
    if config.peers and config.key_file is None:
        raise InvalidValue("key_file", None, "the file of a key that all agents share, as there are peers")


def _check_law(config: AgentConfig) -> None:
    if config.role == "controller":
        if config.links:
            raise InvalidValue("links", len(config.links), "no links at a controller, as agents set rates")
        if not isinstance(config.law, LinkRateTable):
            raise InvalidValue("law", "tracking", "link-rates at a controller")
        told = [name for peer in config.peers for name in peer.links]
        _check_links("peers", told, config.law.links)
        return
    if not config.links:
        raise InvalidValue("links", 0, "at least one link to control")
    if isinstance(config.law, DecidedTable) and [link.id for link in config.links] != [config.law.law.link]:
        raise InvalidValue("links", [link.id for link in config.links], f"the law's link, {config.law.law.link}, alone")
    if isinstance(config.law, LinkRateTable):
        _check_links("links", [link.id for link in config.links], config.law.links, all_of_them=False)
        for peer in config.peers:
            _check_links("peers", peer.links, config.law.links, all_of_them=False)


def _matching(pattern: str, takes: str) -> Callable[[str, Any], str]:
    """Reader of text that a pattern matches as a whole."""

    def read(field: str, value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise InvalidValue(field, value, takes)
        return value

    return read


_HEX = "(?!0+(?![0-9a-f]))[0-9a-f]{1,4}"  # above 0
_handle = _matching(f"{_HEX}:", "a handle such as 1: or 8001:, in hexadecimal")
_parent = _matching(f"root|{_HEX}:{_HEX}", "root, or a class such as 1:10, in hexadecimal")
_path = _matching("[^\0]+", "a path")


def _address(field: str, value: Any) -> str:
    try:
        return str(ipaddress.ip_address(value if isinstance(value, str) else ""))
    except ValueError:
        raise InvalidValue(field, value, "an IPv4 or IPv6 address, as in 10.0.0.1") from None
