"""Queues that are installed, each with its law in the target's arithmetic or the reason why it has none."""

from __future__ import annotations

from dataclasses import dataclass

from netctrl.core.errors import FileError
from netctrl.laws.targets.dualpi2 import Dualpi2Law
from netctrl.laws.targets.pie_law import PieLaw
from netctrl.laws.targets.red import RedLaw
from netctrl.laws.targets.wred import WredLaw

TargetLaw = PieLaw | Dualpi2Law | RedLaw | WredLaw

MAX_BYTES = 16 * 2**20
"""Largest input that is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledQueue:
    """A queue of a machine or switch."""

    kind: str
    """Name in tc(8), or `wred`."""
    device: str = ""
    """Network interface; empty where the input doesn't say."""
    handle: str = ""
    """Handle of the discipline, or name of the profile."""
    parent: str = ""
    """`root`, the class above, or the colour of a profile."""
    law: TargetLaw | None = None
    """None: the queue has no law that can be certified by a linear loop."""
    reason: str = ""
    """Why there is no law."""
    unreadable: bool = False
    """Whether the input doesn't say which law runs: `reason` names the value that can't be read."""
    notes: tuple[str, ...] = ()
    """What was inferred because the input doesn't say it."""
    probability: float | None = None
    """Present probability, from `tc -s`; of PIE, and p' of DualPI2."""

    @property
    def name(self) -> str:
        """Kind, handle and place, for messages.

        Examples
        --------
        >>> InstalledQueue(kind="pie", device="eth0", handle="2:", parent="1:10").name
        'pie 2: on eth0, parent 1:10'
        """
        place = f" on {self.device}" if self.device else ""
        above = f", {'' if self.parent == 'root' or self.kind == 'wred' else 'parent '}{self.parent}"
        return f"{self.kind} {self.handle}{place}{above if self.parent else ''}"


def checked_text(source: str, text: str | bytes) -> bytes:
    """The input as bytes; FileError where it is too large or isn't text."""
    if not isinstance(text, str | bytes):
        raise FileError(source, f"got a value of type {type(text).__name__}, takes JSON text")
    try:
        content = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError:
        raise FileError(source, "not JSON: not UTF-8 text") from None
    if len(content) > MAX_BYTES:
        raise FileError(source, f"larger than the {MAX_BYTES // 2**20} MiB that netctrl reads")
    return content
