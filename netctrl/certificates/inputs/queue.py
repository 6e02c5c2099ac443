"""Queues that are installed, each with its law in the target's arithmetic or the reason why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.targets.dualpi2 import Dualpi2Law
from netctrl.laws.targets.pie_law import PieLaw
from netctrl.laws.targets.red import RedLaw
from netctrl.laws.targets.wred import WredLaw
from netctrl.model.io.validation_errors import shown

MAX_BYTES = 16 * 2**20
"""Largest input that is read."""
NO_WEIGHT = "the average's weight isn't in the file: the present queue is taken, weight 0"
UNITS = {
    **dict.fromkeys(("packets", "packet"), ("packets", 1.0)),
    **dict.fromkeys(("bytes", "byte"), ("bytes", 1.0)),
    **dict.fromkeys(("kbytes", "kilobytes"), ("bytes", 1e3)),
    **dict.fromkeys(("mbytes", "megabytes"), ("bytes", 1e6)),
    **dict.fromkeys(("us", "microseconds"), ("s", 1e-6)),
    **dict.fromkeys(("ms", "milliseconds"), ("s", 1e-3)),
    "percent": ("percent", 1.0),
}
"""Name of a unit as routers have them -> its name here, and how many of these it is."""


class Input(NamedTuple):
    """A file's content, for a reader."""

    source: str
    """Its name in messages."""
    content: Any
    """Text, or parsed JSON."""
    hz: int | None = None
    """CONFIG_HZ of the machine's kernel; None: as the content tells."""


class Length(NamedTuple):
    """Length of a queue in the unit in which a configuration has it."""

    value: float
    """Number of units."""
    unit: str
    """`bytes`, `packets`, `s` at the link's rate, or `percent` of the buffer."""

    @classmethod
    def read(cls, value: str, unit: str) -> Length:
        """A whole number with a unit as routers have them; InvalidValue for others."""
        name, scale = UNITS[unit]
        return cls(whole("threshold", value) * scale, name)

    def bytes(self, packet_bytes: float, bit_per_s: float | None, buffer: Length | None) -> float:
        """The length in bytes; InvalidValue names what has to be known for that."""
        if self.unit == "packets":
            return self.value * packet_bytes
        if self.unit == "s":
            if bit_per_s is None:
                raise InvalidValue("capacity", None, "one rate: the configuration has its lengths in time")
            return self.value * bit_per_s / BITS_PER_BYTE
        if self.unit == "percent":
            if buffer is None:
                raise InvalidValue("buffer", None, "the queue's buffer, of which the thresholds are percent: --buffer")
            return self.value / 100.0 * buffer.bytes(packet_bytes, bit_per_s, None)
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """WRED with its thresholds as a configuration has them."""

    low: Length
    """Lower threshold."""
    high: Length
    """Upper threshold."""
    percent: float
    """Probability at the upper one [%]."""
    ecn: bool = False
    """Whether packets are marked instead of dropped."""
    weight_log: int = 0
    """n of the weight 2^-n of an arrival in the average; 0: the present queue."""
    buffer: Length | None = None
    """Of which percent are; None: the configuration doesn't say it."""

    def law(self, packet_bytes: float, bit_per_s: float | None, buffer_bytes: float | None) -> WredLaw:
        """The law in bytes; InvalidValue names what has to be known for that."""
        buffer = self.buffer if buffer_bytes is None else Length(buffer_bytes, "bytes")
        low, high = (round(end.bytes(packet_bytes, bit_per_s, buffer)) for end in (self.low, self.high))
        return WredLaw(
            min_bytes=low, max_bytes=high, max_percent=self.percent, ecn=self.ecn, weight_log=self.weight_log
        )


class NamedLaw(NamedTuple):
    """Law by its name and parameters for `netctrl.certify`."""

    name: str
    """Of the law."""
    parameters: Mapping[str, Any]
    """In SI units."""


TargetLaw = PieLaw | Dualpi2Law | RedLaw | WredLaw | Thresholds | NamedLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledQueue:
    """A queue of a machine, router or switch."""

    kind: str
    """Name in tc(8), `wred` or `docsis-pie`."""
    device: str = ""
    """Network interface; empty where the input doesn't say."""
    handle: str = ""
    """Handle of the discipline, or name of the profile or class."""
    parent: str = ""
    """`root`, the class above, the colour or priority, or the direction."""
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
    capacity_bit_per_s: float | None = None
    """Rate of the queue, where the input says it [bit/s]."""

    @property
    def name(self) -> str:
        """Kind, handle and place, for messages.

        Examples
        --------
        >>> InstalledQueue(kind="pie", device="eth0", handle="2:", parent="1:10").name
        'pie 2: on eth0, parent 1:10'
        """
        what = " ".join(filter(None, (self.kind, self.handle, self.device and f"on {self.device}")))
        return ", ".join(filter(None, (what, f"parent {self.parent}" if ":" in self.parent else self.parent)))

    def unread(self, error: InvalidValue) -> InstalledQueue:
        """The queue with the value that can't be read."""
        reason = f"{error.argument}: got {shown(error.got)}, takes {error.takes}"
        return replace(self, reason=reason, unreadable=True)


def whole(argument: str, value: object, most: int = 2**53) -> int:
    """A whole number as such or as text, else InvalidValue."""
    digits = value if isinstance(value, str) else str(value) if type(value) is int else ""
    if digits.isascii() and digits.isdecimal() and len(digits) < 20 and int(digits) <= most:
        return int(digits)
    raise InvalidValue(argument, value, f"a whole number from 0 to {most}")


def checked_content(source: str, text: str | bytes) -> bytes:
    """The input as UTF-8; FileError where it is too large or isn't text."""
    if not isinstance(text, str | bytes):
        raise FileError(source, f"got a value of type {type(text).__name__}, takes text")
    try:
        content = text.encode() if isinstance(text, str) else text
        content.decode()
    except UnicodeError:
        remedy = "; `docsis -d` makes text of a cable modem's configuration"
        raise FileError(source, f"not UTF-8 text{remedy}") from None
    if len(content) > MAX_BYTES:
        raise FileError(source, f"larger than the {MAX_BYTES // 2**20} MiB that netctrl reads")
    return content.removeprefix(b"\xef\xbb\xbf")
