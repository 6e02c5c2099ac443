"""Map from a Design's links to machines and interfaces, as text for one machine or as TOML."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from netctrl.errors import InvalidValue
from netctrl.linux.export.agent import Peer
from netctrl.linux.export.shaper import checked_interface
from netctrl.model.io.toml import read_toml_record

__all__ = ["INTERFACES_TAKES", "AgentPlace", "InterfaceMap", "read_interface_map"]

INTERFACES_TAKES = (
    "LINK=INTERFACE,... as in a->b=eth1,b->c=eth2, or a .toml file with [[agents]] (docs/how-to/linux-export.md)"
)
_LOCAL = "127.0.0.1"


class AgentPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One machine: the address of its agent, and the interfaces of its links."""

    name: str
    links: dict[str, str]
    """Interface by link id."""
    address: str = _LOCAL
    port: int = 0

    def __post_init__(self) -> None:
        names = [checked_interface(name) for name in self.links.values()]
        for name in names:
            if names.count(name) > 1:
                raise InvalidValue("links", f"{name} more than once", "an interface for each link of a machine")

    @property
    def peer(self) -> Peer:
        """The machine as a peer; without other machines its port is not used."""
        return Peer(name=self.name, address=self.address, port=self.port or 1)


class Station(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Machine without links of its own: a central controller, or a sensor."""

    name: str
    address: str
    port: int

    @property
    def peer(self) -> Peer:
        """The machine as a peer."""
        return Peer(name=self.name, address=self.address, port=self.port)


class InterfaceMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All machines of a Design.

    Raises
    ------
    InvalidValue
        No agent, or several agents of which one has no port.
    """

    agents: tuple[AgentPlace, ...]
    controller: Station | None = None
    """Controller of a central law."""
    sensor: Station | None = None
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
