"""The log of a loop that runs for months: events as in `netctrl.linux.queues.log`, of which no flood makes many."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from netctrl.linux.queues.log import event

__all__ = ["AgentLog"]

_MAX = 20
_PERIOD_S = 10.0
_WARNINGS = ("link-lost", "peer-lost", "peer-never-heard", "fallback", "messages-dropped")


class AgentLog:
    """Tells at most 20 events of each kind in 10 s; how many it left out is in the next one.

    Parameters
    ----------
    write : callable
        Takes an event's name, its level and, by name, its fields.
    clock : callable
        A steady clock [s].
    """

    def __init__(self, write: Callable[..., None] = event, clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._kinds: dict[str, tuple[float, int, int]] = {}  # since when, written, left out

    def event(self, name: str, **fields: object) -> None:
        """Tell what happened."""
        now = self._clock()
        since, written, left_out = self._kinds.get(name, (now, 0, 0))
        if now - since >= _PERIOD_S:
            since, written = now, 0
        if written >= _MAX:
            self._kinds[name] = (since, written, left_out + 1)
            return
        self._kinds[name] = (since, written + 1, 0)
        level = logging.WARNING if name in _WARNINGS else logging.INFO
        self._write(name, level, **fields, **({"left_out": left_out} if left_out else {}))
