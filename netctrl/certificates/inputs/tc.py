"""Queueing disciplines that run, from the output of `tc -j qdisc show`, with laws in the kernel's arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from netctrl.certificates.inputs.queue import InstalledQueue, checked_text
from netctrl.certificates.inputs.tc_options import OPTIONS
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


def read_tc(text: str | bytes, *, hz: int = HZ, source: str = "tc") -> tuple[InstalledQueue, ...]:
    """Queues from the output of `tc -j qdisc show`, `tc -j -s qdisc show` or, with red, `tc -j -d qdisc show`.

    Parameters
    ----------
    text : str or bytes
        The output, at most 16 MiB.
    hz : int
        CONFIG_HZ of that kernel, by which pie's update interval is rounded.
    source : str
        Name of the input in messages, as a file's.

    Returns
    -------
    tuple of InstalledQueue
        All that are in the output, in its order.

    Raises
    ------
    FileError
        Text that isn't tc's JSON, an unknown discipline, or options that are missing, unknown or out of range; the
        message names the queue and the option.
    InvalidValue
        An `hz` that no kernel has.

    Examples
    --------
    >>> shown = '''[{"kind": "pie", "handle": "2:", "dev": "eth0", "root": true, "options": {"limit": 1000,
    ...     "target": 15000, "tupdate": 16000, "alpha": 2, "beta": 20}}]'''
    >>> queue, = read_tc(shown, hz=250)
    >>> queue.name, queue.law.update_s
    ('pie 2: on eth0, root', 0.02)
    """
    checked_hz(hz)
    content = checked_text(source, text)
    _check_form(source, content)
    parsed = decoded(source, content)
    try:
        entries = msgspec.convert(parsed, list[_Entry])
    except msgspec.ValidationError as error:
        raise FileError(
            source, f"not the output of `tc -j qdisc show`: {explained(error, parsed, list[_Entry])}"
        ) from None
    if not entries:
        raise FileError(source, "no queueing discipline in it")
    return tuple(_queue(source, entry, hz) for entry in entries)


def _check_form(source: str, content: bytes) -> None:
    """Refuse what older versions of tc, or tc without -j, print."""
    if content.lstrip().startswith(b"qdisc "):
        raise FileError(source, "tc's output in words: add -j, as in `tc -j qdisc show`")
    if b"[Unknown qdisc" in content:
        raise FileError(source, "this tc doesn't know one of the disciplines: a newer iproute2 does (dualpi2: 6.18 on)")


def _queue(source: str, entry: _Entry, hz: int) -> InstalledQueue:
    parent = "root" if entry.root else entry.parent
    queue = InstalledQueue(kind=entry.kind, device=entry.dev, handle=entry.handle, parent=parent)
    if entry.kind in NO_LAW:
        return replace(queue, reason=NO_LAW[entry.kind])
    kind = OPTIONS.get(entry.kind)
    if kind is None:
        hint = did_you_mean(entry.kind, [*OPTIONS, *NO_LAW])
        raise FileError(source, f"{queue.name}: unknown discipline {shorten(entry.kind)!r}{hint}")
    try:
        law = msgspec.convert(entry.options, kind).law(hz)
    except msgspec.ValidationError as error:
        raise FileError(source, f"{queue.name}: {explained(error, entry.options, kind)}") from None
    except InvalidValue as error:
        argument = _ARGUMENTS.get(error.argument, error.argument)
        raise FileError(source, f"{queue.name}: {argument}: got {error.got!r}, takes {error.takes}") from None
    return replace(queue, law=law, probability=entry.prob)
