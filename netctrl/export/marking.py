"""What marks packets on a router in front of a queue: the file `netctrl.marking/1` that `netctrl.linux mark` reads."""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from netctrl.errors import FileError, InvalidValue
from netctrl.export.tc_queue import ETHERNET_HEADER, HANDLE, checked_interface
from netctrl.model.explain import explained
from netctrl.model.files import read_bounded, write_atomically
from netctrl.model.gain import ArcLaw
from netctrl.model.quantity import number, settle

__all__ = ["MarkingConfig", "read_marking_config"]

_MOST_BYTES = 2**20


class MarkingConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A law whose probability is set in the kernel each epoch, by what its counters and one queue say.

    Raises
    ------
    InvalidValue
        A value that can't be used; the message names it.
    """

    schema: Literal["netctrl.marking/1"] = "netctrl.marking/1"
    interface: str
    handle: str = HANDLE
    """Of the root queue whose backlog is read: another one there is an error, not a queue to read."""
    law: ArcLaw
    header_bytes: float = ETHERNET_HEADER
    """That the kernel counts for each packet beside the law's packet size."""
    drop: bool = False
    """Whether drawn packets without ECN are dropped; else they pass unmarked."""
    valid_epochs: float = 10.0
    """For how many epochs a probability is in force without a new one; then nothing is marked."""

    def __post_init__(self) -> None:
        checked_interface(self.interface)
        settle(self, header_bytes=number("0 to 65535 bytes", at_least=0.0, at_most=65535.0))
        settle(self, valid_epochs=number("a number of epochs from 2 on", at_least=2.0, at_most=1e6))
        law = self.law
        for name in ("alpha_per_packet", "epoch_s", "target_utilization", "capacity_bit_per_s", "packet_size_bytes"):
            number("a number above 0", above=0.0)(f"law.{name}", getattr(law, name))
        if law.target_queue_packets < 0.0:
            raise InvalidValue("law.target_queue_packets", law.target_queue_packets, "at least 0")

    def to_json(self) -> str:
        """The file's text: strict JSON, ends with a newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all."""
        write_atomically(path, self.to_json().encode())


def read_marking_config(path: str | os.PathLike[str]) -> MarkingConfig:
    """Read such a file, strictly.

    Raises
    ------
    FileError
        It can't be read, isn't JSON, or has an unknown, missing or unusable key, which the message names.
    """
    text = read_bounded(path, _MOST_BYTES, "is larger than such a file may be (1 MiB)")
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FileError(path, f"is no JSON: {error}") from None
    if not isinstance(content, dict) or content.get("schema") != "netctrl.marking/1":
        raise FileError(path, 'is no file for marking: takes "schema": "netctrl.marking/1"')
    try:
        return msgspec.convert(content, MarkingConfig, strict=True)
    except msgspec.ValidationError as error:
        raise FileError(path, f"is no file for marking: {explained(error, content, MarkingConfig)}") from None
