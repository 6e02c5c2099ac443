"""Rate-limited log for a loop that runs for months: events as in `netctrl.linux.queues.log`."""

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
    """Log at most 20 events of each kind in 10 s; the next one tells how many were left out.

    Parameters
    ----------
    write : callable
        Called with an event's name, its level and its fields by name.
    clock : callable
        A monotonic clock [s].
    """

    def __init__(self, write: Callable[..., None] = event, clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._kinds: dict[str, tuple[float, int, int]] = {}  # start of the period, written, left out

    def event(self, name: str, **fields: object) -> None:
        """Log an event."""
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
