"""Every sender of a TCP flow as files have it, a word or a table: window laws and rate senders, ours and others'."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from netctrl.errors import InvalidValue
from netctrl.laws.rate.law import RateSender, SenderRecord
from netctrl.laws.rate.paced import PacedSender
from netctrl.model.law import ArxPacer, TargetRttPacer
from netctrl.register import RATE_SENDERS, TCP_SENDERS

__all__ = ["RATE_LAWS", "Sender", "rate_record", "read_sender", "sender_name", "window_of"]

RATE_LAWS: tuple[RateSender, ...] = tuple(RATE_SENDERS[name] for name in RATE_SENDERS)
"""Ours first."""
_RECORDS = tuple(each.record for each in RATE_LAWS)
_WORDS = {str(kind.__struct_config__.tag): kind for kind in _RECORDS if not kind.__struct_fields__}

Sender: Any = reduce(or_, _RECORDS) | str
"""A word (a window law, or a rate sender without parameters), or a table whose `kind` tells which rate sender."""


def read_sender(field: str, value: Any) -> str | SenderRecord:
    """A sender as a scenario keeps it; a pacing law stands for a flow that is paced by it."""
    if isinstance(value, ArxPacer | TargetRttPacer):
        return PacedSender(law=value)
    if isinstance(value, _RECORDS):
        _check_window(f"{field}.window", getattr(value, "window", None))
    elif value not in (*TCP_SENDERS, *_WORDS):
        words, tables = ", ".join([*TCP_SENDERS, *_WORDS]), ", ".join(RATE_SENDERS)
        raise InvalidValue(field, value, f"one of {words}, or a table whose `kind` is one of {tables}")
    return value


def _check_window(field: str, name: Any) -> None:
    if name is not None and name not in tuple(TCP_SENDERS):
        raise InvalidValue(field, name, f"one of {', '.join(TCP_SENDERS)}, or nothing")


def rate_record(sender: str | SenderRecord) -> SenderRecord | None:
    """The record of a rate sender; None: nothing but a window."""
    if isinstance(sender, str):
        return _WORDS[sender]() if sender in _WORDS else None
    return sender


def window_of(sender: str | SenderRecord) -> str | None:
    """The window law of a sender; None: nothing but a rate."""
    if isinstance(sender, str):
        return None if sender in _WORDS else sender
    return getattr(sender, "window", None)


def sender_name(sender: str | SenderRecord) -> str:
    """As files have it: the word, or the table's `kind`."""
    return sender if isinstance(sender, str) else str(sender.__struct_config__.tag)
