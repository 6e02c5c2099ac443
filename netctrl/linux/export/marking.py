"""Configuration of packet marking in front of a router's queue: file `netctrl.marking/1` for `netctrl.linux mark`."""

from __future__ import annotations

import os
from typing import Literal

from netctrl.errors import InvalidValue
from netctrl.linux.export.records import ETHERNET_HEADER
from netctrl.linux.export.shaper import HANDLE, checked_interface
from netctrl.model.io.fields import number, read_fields
from netctrl.model.io.record_file import FileRecord, read_record
from netctrl.model.law import ArcLaw

__all__ = ["MarkingConfig", "read_marking_config"]

_MAX_BYTES = 2**20


class MarkingConfig(FileRecord, frozen=True, kw_only=True):
    """Marking law whose probability is set in the kernel each epoch, from its counters and one queue's backlog.

    Raises
    ------
    InvalidValue
        A value that can't be used; the message names it.
    """

    schema: Literal["netctrl.marking/1"] = "netctrl.marking/1"
    interface: str
    handle: str = HANDLE
    """Handle of the root queue whose backlog is read; another queue there is an error."""
    law: ArcLaw
    header_bytes: float = ETHERNET_HEADER
    """Bytes that the kernel counts for each packet beyond the law's packet size."""
    drop: bool = False
    """Whether packets without ECN that are drawn for marking are dropped; otherwise they pass unmarked."""
    valid_epochs: float = 10.0
    """Number of epochs for which a probability stays in force without a new one; then marking stops."""

    def __post_init__(self) -> None:
        checked_interface(self.interface)
        read_fields(self, header_bytes=number("0 to 65535 bytes", at_least=0.0, at_most=65535.0))
        read_fields(self, valid_epochs=number("a number of epochs of at least 2", at_least=2.0, at_most=1e6))
        law = self.law
        for name in ("alpha_per_packet", "epoch_s", "target_utilization", "capacity_bit_per_s", "packet_size_bytes"):
            number("a number above 0", above=0.0)(f"law.{name}", getattr(law, name))
        if law.target_queue_packets < 0.0:
            raise InvalidValue("law.target_queue_packets", law.target_queue_packets, "at least 0")


def read_marking_config(path: str | os.PathLike[str]) -> MarkingConfig:
    """Read such a file strictly; raises FileError as `netctrl.model.io.record_file.read_record`."""
    return read_record(path, MarkingConfig, schema="netctrl.marking/1", what="file for marking", max_bytes=_MAX_BYTES)
