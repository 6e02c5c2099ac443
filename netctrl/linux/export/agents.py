"""Link rates, CONNET and MPC on Linux: queues with rates set by agents, on the machines and interfaces of a map."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind, checked_number
from netctrl.core.units import BITS_PER_BYTE, format_quantity, unit_scale
from netctrl.linux.export import shaper
from netctrl.linux.export.agent import AgentConfig, ControlledLink, Peer, agent_configs
from netctrl.linux.export.agent_law import DecidedTable, LinkRateTable, TrackingTable, link_rate_table
from netctrl.linux.export.records import HtbClass, TokenBucket
from netctrl.linux.state_files import AGENT_FOLDER
from netctrl.model.design.design import ConnetDesign, HftracDesign, MpcDesign
from netctrl.model.io.toml import read_toml_record
from netctrl.model.network import Network
from netctrl.model.network_model import NetworkModel
from netctrl.scenario.design import design_link

INTERFACES_TAKES = (
    "LINK=INTERFACE,... as in a->b=eth1,b->c=eth2, or a .toml file with [[agents]] (docs/how-to/linux-export.md)"
)
_LOCAL = "127.0.0.1"


_MIN_SHARE = 1e-3  # of a link's capacity: at rate 0 its queue could never be measured
_REGULATOR_FRAMES = 20  # small queues make regulators smooth (docs/how-to/linux-export.md)
_MUCH = 0.01
_MBIT = 1e6


class AgentPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One machine: the address of its agent, and the interfaces of its links."""

    name: str
    links: dict[str, str]
    """Interface by link id."""
    address: str = _LOCAL
    port: int = 0

    def __post_init__(self) -> None:
        names = [shaper.checked_interface(name) for name in self.links.values()]
        for name in names:
            if names.count(name) > 1:
                raise InvalidValue("links", f"{name} more than once", "an interface for each link of a machine")

    @property
    def peer(self) -> Peer:
        """The machine as a peer; without other machines its port is not used."""
        return Peer(name=self.name, address=self.address, port=self.port or 1)


class InterfaceMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All machines of a Design.

    Raises
    ------
    InvalidValue
        No agent, or several agents of which one has no port.
    """

    agents: tuple[AgentPlace, ...]
    controller: Peer | None = None
    """Controller of a central law."""
    sensor: Peer | None = None
    """Machine that measures a tracking law's outputs and sends them."""
    key_file: str | None = None

    def __post_init__(self) -> None:
        if not self.agents:
            raise InvalidValue("agents", "none", "at least one machine")
        for each in self.agents:
            if not each.port and (len(self.agents) > 1 or self.controller or self.sensor):
                raise InvalidValue("port", each.port, f"a port from 1 to 65535 for agent {each.name}")


def read_interface_map(given: str | os.PathLike[str]) -> InterfaceMap:
    """Interface map from "a=eth1,b=eth2", one machine named router, or from a TOML file.

    Raises
    ------
    InvalidValue
        Text that is neither form.
    FileError
        The file can't be read, or has a key that is unknown, missing or unusable.
    """
    text = str(given)
    if text.endswith(".toml"):
        return read_toml_record(text, InterfaceMap)
    return InterfaceMap(agents=(AgentPlace(name="router", links=_pairs(text)),))


def _pairs(text: str) -> dict[str, str]:
    found: dict[str, Any] = {}
    for part in text.split(","):
        link, equals, interface = (piece.strip() for piece in part.rpartition("="))
        if not (link and equals and interface) or link in found:
            raise InvalidValue("interfaces", text, INTERFACES_TAKES)
        found[link] = interface
    return found


class Watch(NamedTuple):
    """Queue of the bottleneck, at which an agent measures a tracking law's outputs itself."""

    interface: str
    rate_bit_per_s: float
    """Of frames."""


def hftrac_on_linux(
    design: HftracDesign,
    model: NetworkModel,
    places: InterfaceMap,
    settings: shaper.TcSettings = shaper.AS_DESIGNED,
    *,
    reference: float = 1.0,
    backlog_setpoint: float = 0.0,
) -> shaper.TcExport:
    """Queues with a rate at each link, and each machine's agent file.

    A link starts at its capacity, and returns to it where its agent has no rate; it is a FIFO then.

    Parameters
    ----------
    design : HftracDesign
    model : NetworkModel
        Model of the Design's network and interval (`netctrl.network_model`).
    places : Places
    settings : TcSettings
    reference, backlog_setpoint : float
        Rates relative to the nominal ones, and backlog [byte] as the Design counts, around which links are controlled.

    Raises
    ------
    InvalidValue
        Places for another network, a rate above a link's capacity, an unlimited buffer, or a value that the kernel
        can't represent.
    """
    checked_kind("design", design, HftracDesign)
    checked_kind("model", model, NetworkModel)
    checked_kind("places", places, InterfaceMap)
    table = link_rate_table(design, model, reference=reference, backlog_setpoint=backlog_setpoint)
    return rates_on_linux(table, design.inputs.network, design.law.interval_s, places, settings, title="HFTraC")


def rates_on_linux(
    table: LinkRateTable,
    network: Network,
    interval_s: float,
    places: InterfaceMap,
    settings: shaper.TcSettings = shaper.AS_DESIGNED,
    *,
    title: str,
) -> shaper.TcExport:
    """Queues with a rate at each link of a network, and the files of agents that set these by a law.

    Parameters
    ----------
    table : LinkRateTable
        Rates and backlogs as the network counts them.
    network : Network
    interval_s : float
    places : InterfaceMap
    settings : TcSettings
    title : str
        What the batch files say the law is.

    Raises
    ------
    InvalidValue
        As `hftrac_on_linux`.
    """
    made = [(place, _links_at(network, table, place, settings)) for place in places.agents]
    idle = sorted({name for place in places.agents for name in place.links} - set(table.links))
    if idle:
        raise InvalidValue("interfaces", ", ".join(idle), "links with traffic: the law has no rate for these")
    configs = agent_configs(
        table.scaled(settings.framing.growth),
        interval_s,
        [(place.peer, [entry for _, entry in links]) for place, links in made],
        controller=places.controller,
        key_file=places.key_file,
        dead_band=settings.dead_band,
    )
    files = {f"{name}.agent.json": _with_metrics(config).to_json() for name, config in configs.items()}
    for place, links in made:
        said = f"{title}: links at their capacity, until an agent sets their rates"
        files |= shaper.queue_files(place.name, [queue for queue, _ in links], said)
    return _export(files, [each for _, links in made for each in links], interval_s)


def _links_at(
    network: Network, table: LinkRateTable, place: AgentPlace, settings: shaper.TcSettings
) -> list[tuple[shaper.TcQueue, ControlledLink]]:
    links, nominal = {link.id: link for link in network.links}, dict(zip(table.links, table.nominal, strict=True))
    unknown = sorted(set(place.links) - links.keys())
    if unknown:
        raise InvalidValue("interfaces", ", ".join(unknown), f"links of the Design's network: {', '.join(links)}")
    made = []
    for name, interface in place.links.items():
        link = links[name]
        limit = link.buffer if settings.limit is None else settings.limit
        if limit is None:
            raise InvalidValue(
                "limit", None, f"a size: the buffer of link {name} is unlimited, but a queue needs a limit"
            )
        if nominal.get(name, 0.0) > link.capacity:
            takes = f"at most the capacity of link {name}, {format_quantity(link.capacity, 'bit/s')}"
            raise InvalidValue("reference", f"a nominal rate of {format_quantity(nominal[name], 'bit/s')}", takes)
        made.append(_controlled(interface, name, link.capacity, limit, settings))
    return made


def connet_on_linux(
    design: ConnetDesign,
    places: InterfaceMap,
    settings: shaper.TcSettings = shaper.AS_DESIGNED,
    *,
    reference: tuple[float, ...] | None = None,
    watch: Watch | None = None,
    governor: bool = False,
) -> shaper.TcExport:
    """Queues with a rate at each regulator, which share the law's rate equally, and the agent's file.

    Regulators start at their greatest rate, and return to it where the agent has no rate; they are open then.

    Parameters
    ----------
    design : ConnetDesign
    places : Places
        One machine; its links are the regulators, with any names.
    settings : TcSettings
        Without a limit, a regulator's queue holds 20 frames.
    reference : tuple of float, optional
        References of the outputs [the law's units]; None: the Design's first.
    watch : Watch, optional
        Queue at which the agent measures; None: `places.sensor` sends measurements.
    governor : bool
        Whether unreachable references are cut.

    Raises
    ------
    InvalidValue
        Several machines, a law with other inputs, or a value that the kernel can't represent.
    """
    checked_kind("design", design, ConnetDesign)
    checked_kind("places", places, InterfaceMap)
    if len(places.agents) != 1:
        raise InvalidValue("agents", f"{len(places.agents)} machines", "one machine with all regulators")
    law, (place,) = design.law, places.agents
    desired = design.inputs.references[0] if reference is None and design.inputs.references else reference
    if desired is None:
        raise InvalidValue("reference", None, f"values for {', '.join(law.outputs)}, as the Design has none")
    unit = unit_scale(law.input_units[0]) or _MBIT
    share, framing = 1.0 / len(place.links), settings.framing
    frame = framing.packet + framing.header
    greatest = float(law.high[0]) * unit * share
    checked_number("greatest rate", greatest, "a rate above 0 at each regulator", above=0.0)
    limit = _REGULATOR_FRAMES * framing.packet if settings.limit is None else settings.limit
    least = max(float(law.low[0]) * unit * share, BITS_PER_BYTE * frame / law.interval_s / framing.growth)
    made = [
        _controlled(interface, name, greatest, limit, settings, least, share) for name, interface in place.links.items()
    ]
    sensor = places.sensor
    if (watch is None) == (sensor is None):
        raise InvalidValue(
            "measured_at", None if watch is None else watch.interface, "one of --measured-at and a sensor"
        )
    config = AgentConfig(
        schema="netctrl.agent/1",
        name=place.name,
        interval_s=law.interval_s,
        law=TrackingTable(
            law=law,
            reference=np.asarray(desired, dtype=float),
            measured_by=None if sensor is None else sensor.name,
            measured_at=None if watch is None else shaper.checked_interface(watch.interface),
            bottleneck=None if watch is None else watch.rate_bit_per_s,
            governor=governor,
        ),
        links=tuple(entry for _, entry in made),
        address=place.address,
        port=0 if sensor is None else place.port,
        peers=() if sensor is None else (sensor,),
        key_file=places.key_file,
        dead_band=settings.dead_band,
    )
    title = "CONNET: regulators open, until an agent sets their rates"
    files = shaper.queue_files(place.name, [queue for queue, _ in made], title)
    files[f"{place.name}.agent.json"] = _with_metrics(config).to_json()
    return _export(files, made, law.interval_s)


def mpc_on_linux(
    design: MpcDesign, places: InterfaceMap, settings: shaper.TcSettings = shaper.AS_DESIGNED
) -> shaper.TcExport:
    """A queue with a rate at the Design's link, and its agent's file.

    The link starts at its greatest rate, and returns to it where the agent has none. What arrives is measured; an agent
    hears of nothing ahead.

    Parameters
    ----------
    design : MpcDesign
    places : InterfaceMap
        One machine with the link.
    settings : TcSettings
        Without a limit, the queue holds what the Design's own link does (`netctrl.scenario.design.design_link`).

    Raises
    ------
    InvalidValue
        A Design for no link, another link, several machines, or a value that the kernel can't represent.
    """
    checked_kind("design", design, MpcDesign)
    checked_kind("places", places, InterfaceMap)
    (line,) = design_link(design).links
    links = [dict(each.links) for each in places.agents]
    if len(links) != 1 or list(links[0]) != [line.id]:
        got = ", ".join(name for each in links for name in each)
        raise InvalidValue("interfaces", got, f"the Design's link on one machine, as in {line.id}=eth0")
    (place,) = places.agents
    limit = line.buffer if settings.limit is None else settings.limit
    queue, entry = _controlled(place.links[line.id], line.id, line.capacity, limit or 0.0, settings)
    config = AgentConfig(
        schema="netctrl.agent/1",
        name=place.name,
        interval_s=design.law.interval_s,
        law=DecidedTable(law=design.law, growth=settings.framing.growth),
        links=(entry,),
        address=place.address,
        dead_band=settings.dead_band,
    )
    files = shaper.queue_files(place.name, [queue], "MPC: the link at its greatest rate, until an agent sets it")
    files[f"{place.name}.agent.json"] = _with_metrics(config).to_json()
    return _export(files, [(queue, entry)], design.law.interval_s)


def _controlled(
    interface: str,
    name: str,
    capacity: float,
    limit: float,
    settings: shaper.TcSettings,
    least: float | None = None,
    share: float = 1.0,
) -> tuple[shaper.TcQueue, ControlledLink]:
    """A queue at its greatest rate, and the agent's data of it; rates as the Design counts."""
    framing = settings.framing
    burst = shaper.default_burst(capacity * framing.growth, framing) if settings.burst is None else settings.burst
    queue = shaper.token_bucket(interface, capacity, burst, limit, framing=framing, link=name, shaper=settings.shaper)
    bucket = queue.desired.queue if queue.desired is not None else None
    if not isinstance(bucket, TokenBucket | HtbClass):
        raise InvalidValue("interface", interface, "a token bucket")
    return queue, ControlledLink(
        id=name,
        interface=interface,
        handle=shaper.HANDLE,
        kind=settings.shaper,
        least_rate=min((_MIN_SHARE * capacity if least is None else least) * framing.growth, bucket.rate),
        greatest_rate=bucket.rate,
        fallback_rate=bucket.rate,
        burst=bucket.burst,
        limit=bucket.limit,
        share=share,
    )


def _with_metrics(config: AgentConfig) -> AgentConfig:
    """Configuration with a path for metrics beside those of other agents, for `curl --unix-socket`."""
    return msgspec.structs.replace(config, metrics_socket=f"{AGENT_FOLDER}/{config.name}.sock")


def _export(
    files: dict[str, str], made: Sequence[tuple[shaper.TcQueue, ControlledLink]], interval_s: float
) -> shaper.TcExport:
    figures = tuple(figure for queue, _ in made for figure in queue.figures)
    notes = dict.fromkeys(filter(None, (_refill(entry, interval_s) for _, entry in made)))
    return shaper.TcExport(files, figures, tuple(notes))


def _refill(link: ControlledLink, interval_s: float) -> str:
    """Warning about TBF buckets, which each change refills, adding to the requested rate."""
    if link.kind == "htb":
        return ""
    extra = link.burst * BITS_PER_BYTE / interval_s
    if extra <= _MUCH * link.greatest_rate:
        return ""
    return (
        f"each change refills a TBF's bucket: in every interval this adds up to {format_quantity(extra, 'bit/s')} to a "
        f"link's rate ({100.0 * extra / link.greatest_rate:.2g} % of the greatest); an HTB keeps its tokens"
    )
