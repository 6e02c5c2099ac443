"""Priority flow control."""

from __future__ import annotations

from netctrl.core.errors import InvalidValue
from netctrl.model.io.fields import Size, read_fields, size
from netctrl.model.io.record_file import Record


class Pfc(Record, frozen=True, kw_only=True):
    """Priority flow control: a node pauses an incoming link when more than `pause` bytes from it wait in the node.

    Source: IEEE 802.1Qbb, with constant thresholds. A pause frame takes the link's delay and no capacity.
    """

    pause: Size = 200e3
    """Backlog from one link above which that link is paused [byte]."""
    resume: Size = 190e3
    """Backlog below which it goes on [byte]."""

    def __post_init__(self) -> None:
        read_fields(self, pause=size, resume=size)
        if self.resume > self.pause:
            raise InvalidValue("resume", self.resume, f"at most pause ({self.pause:g} bytes)")
