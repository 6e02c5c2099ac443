"""Queueing disciplines that run, from the output of `tc -j qdisc show`, with laws in the kernel's arithmetic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from netctrl.certificates.inputs.queue import InstalledQueue, checked_text
from netctrl.certificates.inputs.tc_options import OPTIONS, PieOptions, inferred_hz
from netctrl.errors import FileError, InvalidValue, did_you_mean
from netctrl.laws.targets.jiffies import HZ, checked_hz
from netctrl.model.io.json_file import decoded
from netctrl.model.io.validation_errors import explained, shorten

__all__ = ["NO_LAW", "read_tc"]

_FIFO = "it has no queue management of its own"
_CODEL = "CoDel spaces its drops by a schedule that depends on the time since the delay is above the target: not linear"
NO_LAW: dict[str, str] = {
    **dict.fromkeys(("noqueue", "pfifo", "bfifo", "pfifo_fast", "fq", "etf", "cbs", "skbprio"), _FIFO),
    **dict.fromkeys(("mq", "mqprio", "multiq", "prio", "htb", "hfsc", "drr", "ets", "qfq", "tbf"), _FIFO),
    **dict.fromkeys(("ingress", "clsact", "netem", "taprio", "plug"), _FIFO),
    **dict.fromkeys(("codel", "fq_codel"), _CODEL),
    "cake": f"its COBALT is a CoDel. {_CODEL}",
    "choke": "besides RED it drops packets of the flow of one that it draws from the queue: not linear",
    "sfq": "its optional RED for each flow isn't read",
    "gred": "its REDs for each kind of traffic aren't read",
    "sfb": "its probabilities for each bin of flows aren't read",
    "hhf": "it separates large flows and doesn't control a delay",
}
"""Disciplines of Linux without a law that can be certified by a linear loop, and why."""

_UNKNOWN = "[Unknown qdisc]"
"""Key in place of what tc prints, not JSON, for the options of a discipline that is newer than itself."""
_ARGUMENTS = {"target_ticks": "target", "update_jiffies": "tupdate", "ecn_percent": "ecn_prob"}


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A discipline; counters beside these keys aren't looked at."""

    kind: str
    handle: str
    dev: str = ""
    root: bool = False
    parent: str = ""
    options: dict[str, Any] = {}
    prob: float | None = None


def read_tc(text: str | bytes, *, hz: int | None = None, source: str = "tc") -> tuple[InstalledQueue, ...]:
    """Queues from the output of `tc -j qdisc show`, `tc -j -s qdisc show` or, with red, `tc -j -d qdisc show`.

    A discipline that can't be read doesn't hide the others: it is an unreadable queue, whose `reason` names the option.

    Parameters
    ----------
    text : str or bytes
        The output, at most 16 MiB.
    hz : int, optional
        CONFIG_HZ of that kernel, by which pie's update interval is rounded; by default the one that the intervals of
        all its pie and fq_pie tell, which a note of these queues names.
    source : str
        Name of the input in messages, as a file's.

    Returns
    -------
    tuple of InstalledQueue
        All that are in the output, in its order.

    Raises
    ------
    FileError
        Text that isn't tc's JSON, or has no discipline.
    InvalidValue
        An `hz` that no kernel has.

    Examples
    --------
    >>> shown = '''[{"kind": "pie", "handle": "2:", "dev": "eth0", "root": true, "options": {"limit": 1000,
    ...     "target": 15000, "tupdate": 16000, "alpha": 2, "beta": 20}}]'''
    >>> queue, = read_tc(shown)
    >>> queue.name, queue.law.hz, queue.law.update_s
    ('pie 2: on eth0, root', 250, 0.02)
    """
    given = None if hz is None else checked_hz(hz)
    content = checked_text(source, text)
    if content.lstrip().startswith(b"qdisc "):
        raise FileError(source, "tc's output in words: add -j, as in `tc -j qdisc show`")
    parsed = decoded(source, re.sub(rb"\[Unknown qdisc[^]]*\]", f'"{_UNKNOWN}": true'.encode(), content))
    if parsed == []:
        raise FileError(source, "no queueing discipline in it")
    entries = [_entry(each, number) for number, each in enumerate(parsed)] if isinstance(parsed, list) else []
    read = [each for each in entries if isinstance(each, _Entry)]
    if not read:
        try:
            msgspec.convert(parsed, list[_Entry])
        except msgspec.ValidationError as error:
            what = explained(error, parsed, list[_Entry])
            raise FileError(source, f"not the output of `tc -j qdisc show`: {what}") from None
    clock = inferred_hz(each.options.get("tupdate") for each in read if each.kind in ("pie", "fq_pie"))
    return tuple(_queue(each, given, clock) if isinstance(each, _Entry) else each for each in entries)


def _entry(given: Any, number: int) -> _Entry | InstalledQueue:
    """One member of tc's list, or a queue that says why it isn't a discipline."""
    try:
        return msgspec.convert(given, _Entry)
    except msgspec.ValidationError as error:
        kind = given.get("kind") if isinstance(given, dict) else None
        return InstalledQueue(
            kind=shorten(kind) if isinstance(kind, str) else "queue",
            handle=f"number {number + 1} of the list",
            reason=explained(error, given, _Entry),
            unreadable=True,
        )


def _queue(entry: _Entry, hz: int | None, clock: Mapping[int, int]) -> InstalledQueue:
    parent = "root" if entry.root else entry.parent
    queue = InstalledQueue(kind=entry.kind, device=entry.dev, handle=entry.handle, parent=parent)
    if entry.kind in NO_LAW:
        return replace(queue, reason=NO_LAW[entry.kind])
    kind = OPTIONS.get(entry.kind)
    if kind is None:
        hint = did_you_mean(entry.kind, [*OPTIONS, *NO_LAW])
        return replace(queue, reason=f"unknown discipline {shorten(entry.kind)!r}{hint}", unreadable=True)
    if _UNKNOWN in entry.options:
        why = "this tc doesn't know the discipline: a newer iproute2 does (dualpi2: 6.18 on)"
        return replace(queue, reason=why, unreadable=True)
    try:
        options = msgspec.convert(entry.options, kind)
        inferred = clock.get(options.tupdate) if isinstance(options, PieOptions) and hz is None else None
        law = options.law(hz or inferred or HZ)
    except msgspec.ValidationError as error:
        return replace(queue, reason=explained(error, entry.options, kind), unreadable=True)
    except InvalidValue as error:
        argument = _ARGUMENTS.get(error.argument, error.argument)
        return replace(queue, reason=f"{argument}: got {error.got!r}, takes {error.takes}", unreadable=True)
    notes = () if inferred is None else (f"CONFIG_HZ is taken as {inferred}, which tupdate tells; else give --hz",)
    return replace(queue, law=law, probability=entry.prob, notes=notes)
