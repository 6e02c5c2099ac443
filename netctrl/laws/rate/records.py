"""Senders of flows in files, as a word or a table: window laws of TCP and of data centres, and rate senders."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from netctrl.core.errors import InvalidValue
from netctrl.core.register import RATE_SENDERS, TCP_SENDERS, WINDOW_LAWS, refuse_unusable
from netctrl.laws.rate.law import RateSender, SenderRecord
from netctrl.laws.rate.own_rate import OwnRateSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.laws.rate.regulated import RegulatedSender
from netctrl.laws.window.law import SchemeRecord
from netctrl.laws.window.records import SCHEMES
from netctrl.model.io.fields import Rate, identifier, number, rate, read_fields, record
from netctrl.model.law import OwnRatePacer, PacingLaw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from netctrl.core.names import Registered, SenderName

_LONGEST_NAME = 15  # TCP_CA_NAME_MAX, less the end


class FastSender(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="fast"):
    """Senders whose rate is max_rate · exp(−gain · price/rtt), with the price marked by a `fast-arc` queue.

    Fluid only. Source: Paganini, Wang, Low, Doyle, INFOCOM 2003 (reference [14] of the ARC paper), static source law.
    """

    max_rate: Rate
    """x_max, the rate at price 0 [bit/s]."""
    gain: float
    """Gain a of the source law."""

    def __post_init__(self) -> None:
        read_fields(self, max_rate=rate, gain=number("a gain above 0, to 1e9", above=0.0, at_most=1e9))


class KernelTcp(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="kernel"):
    """TCP with any congestion control that a Linux kernel has, as westwood or your own. Kernel engine only."""

    name: str
    """The control's name in the kernel."""

    def __post_init__(self) -> None:
        read_fields(self, name=identifier)
        if len(self.name) > _LONGEST_NAME:
            raise InvalidValue("name", self.name, f"at most {_LONGEST_NAME} characters, as in the kernel")


RATE_LAWS: tuple[RateSender, ...] = tuple(RATE_SENDERS[name] for name in RATE_SENDERS.usable())
"""Ours first."""
_RECORDS = (*(each.record for each in RATE_LAWS), *SCHEMES, FastSender, KernelTcp, RegulatedSender)


def _is_a_word(kind: Any) -> bool:
    """Whether a law needs no parameters; a name of TCP's law means the latter."""
    return kind.__struct_config__.tag not in TCP_SENDERS and not any(each.required for each in fields(kind))


SENDER_WORDS: dict[str, Any] = {str(kind.__struct_config__.tag): kind for kind in filter(_is_a_word, _RECORDS)}
"""Words for senders with their defaults -> their records."""

_TABLES = [name for name, kind in SENDER_WORDS.items() if issubclass(kind, SenderRecord) and fields(kind)]
"""Words of rate senders that have parameters: short for a table with the defaults."""

if TYPE_CHECKING:
    Table = SenderRecord | SchemeRecord | FastSender | KernelTcp | RegulatedSender | PacingLaw | Mapping[str, Any]
    Sender = SenderName | Registered | Table | None
else:
    Sender = reduce(or_, _RECORDS) | str | None
"""None; a word (a window law, or another sender with its defaults), or a table whose `kind` tells which rate sender or
data centre's law."""


def read_sender(field: str, value: Any) -> str | SenderRecord | SchemeRecord:
    """A scenario's sender, which may be a dict, as in a file; a pacing law becomes a flow paced by it."""
    if isinstance(value, PacingLaw):
        return PacedSender(law=value)
    if isinstance(value, dict) or (isinstance(value, str) and value in _TABLES):
        value = record(*_RECORDS)(field, value)
    if isinstance(value, SenderRecord | RegulatedSender) and isinstance(value, _RECORDS):
        _check_window(f"{field}.window", getattr(value, "window", None))
    elif not isinstance(value, _RECORDS) and value not in (*TCP_SENDERS.usable(), *SENDER_WORDS):
        refuse_unusable(value.__struct_config__.tag if isinstance(value, Struct) else value)
        words, tables = (
            ", ".join([*TCP_SENDERS.usable(), *SENDER_WORDS]),
            ", ".join([*RATE_SENDERS.usable(), *WINDOW_LAWS.usable(), "fast", "kernel", "regulated"]),
        )
        raise InvalidValue(field, value, f"one of {words}, or a table whose `kind` is one of {tables}")
    return value


def _check_window(field: str, name: Any) -> None:
    if name is not None and name not in (known := TCP_SENDERS.usable()):
        refuse_unusable(name)
        raise InvalidValue(field, name, f"one of {', '.join(known)}, or nothing")


def _record(sender: Sender) -> Any:
    """Record for a word; None for a TCP window's law."""
    return (SENDER_WORDS[sender]() if sender in SENDER_WORDS else None) if isinstance(sender, str) else sender


def rate_record(sender: Sender) -> SenderRecord | None:
    """Record of a rate sender; None for other senders."""
    found = _record(sender)
    return found if isinstance(found, SenderRecord) else None


def has_pacer(sender: Sender) -> bool:
    """Whether a pacing law sets the sender's rate."""
    return isinstance(_record(sender), PacedSender | OwnRateSender)


def pacer_of(sender: Sender) -> PacingLaw | None:
    """Pacing law of a sender; None for other senders. Raises as `PacedSender.pacer`."""
    return _record(sender).pacer() if has_pacer(sender) else None


def reads_marks(sender: Sender) -> bool:
    """Whether a pacing law hears of marks: own-rate."""
    return has_pacer(sender) and isinstance(pacer_of(sender), OwnRatePacer)


def is_l4s(sender: Sender) -> bool:
    """Whether a pacing law, alone, hears each mark of L4S."""
    return window_of(sender) is None and getattr(pacer_of(sender), "l4s", False)


def scheme_of(sender: Sender) -> SchemeRecord | None:
    """Record of a data centre's law; None for other senders."""
    found = _record(sender)
    return found if isinstance(found, SchemeRecord) else None


def window_of(sender: Sender) -> str | None:
    """TCP window law of a sender; None if it has none."""
    if isinstance(sender, str):
        return None if sender in SENDER_WORDS else sender
    return getattr(sender, "window", None) if isinstance(sender, SenderRecord | RegulatedSender) else None


def sender_name(sender: Sender) -> str:
    """Name as in files: the word, or the table's `kind`."""
    record: Any = sender
    return sender if isinstance(sender, str) else str(record.__struct_config__.tag)
