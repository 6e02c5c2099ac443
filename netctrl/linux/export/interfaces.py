"""Where a Design's links are on real machines: whose agents, which interfaces. Text for one machine, or TOML."""

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
    "LINK=INTERFACE,... as in a->b=eth1,b->c=eth2, or a .toml file with [[agents]] (docs/linux-export.md)"
)
_LOCAL = "127.0.0.1"


class AgentPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One machine: where its agent is heard, and which of its interfaces are which links."""

    name: str
    links: dict[str, str]
    """Link's id to interface."""
    address: str = _LOCAL
    port: int = 0

    def __post_init__(self) -> None:
        names = [checked_interface(name) for name in self.links.values()]
        for name in names:
            if names.count(name) > 1:
                raise InvalidValue("links", f"{name} more than once", "an interface for each link of a machine")

    @property
    def peer(self) -> Peer:
        """As others hear it; a machine alone, which nobody hears, has a port of no meaning."""
        return Peer(name=self.name, address=self.address, port=self.port or 1)


class Station(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A machine without links of its own: a central controller, or one that measures."""

    name: str
    address: str
    port: int

    @property
    def peer(self) -> Peer:
        """As others hear it."""
        return Peer(name=self.name, address=self.address, port=self.port)


class InterfaceMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All machines of a Design.

    Raises
    ------
    InvalidValue
        No agent, or several of which one has no port.
    """

    agents: tuple[AgentPlace, ...]
    controller: Station | None = None
    """Of a central law."""
    sensor: Station | None = None
    """That measures a tracking law's outputs and sends them."""
    key_file: str | None = None

    def __post_init__(self) -> None:
        if not self.agents:
            raise InvalidValue("agents", "none", "one machine or more")
        for each in self.agents:
            if not each.port and (len(self.agents) > 1 or self.controller or self.sensor):
                raise InvalidValue("port", each.port, f"a port from 1 to 65535 at which agent {each.name} is heard")


def read_interface_map(given: str | os.PathLike[str]) -> InterfaceMap:
    """From "a=eth1,b=eth2", one machine named router, or from a TOML file.

    Raises
    ------
    InvalidValue
        Text that is neither.
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
