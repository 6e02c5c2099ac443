"""A log for programs: one JSON object a line, of which no flood makes many."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TextIO

import msgspec

__all__ = ["AgentLog"]

_MOST = 20
_PERIOD_S = 10.0


class AgentLog:
    """Writes at most 20 lines of each kind in 10 s; how many it left out is in the next one.

    Parameters
    ----------
    stream : TextIO
        Where a line that can't be written is dropped: a full disk stops no control loop.
    clock : callable
        A steady clock [s].
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._kinds: dict[str, tuple[float, int, int]] = {}  # since when, written, left out

    def event(self, name: str, **fields: Any) -> None:
        """Write what happened; fields are numbers, text or null."""
        now = self._clock()
        since, written, left_out = self._kinds.get(name, (now, 0, 0))
        if now - since >= _PERIOD_S:
            since, written = now, 0
        if written >= _MOST:
            self._kinds[name] = (since, written, left_out + 1)
            return
        self._kinds[name] = (since, written + 1, 0)
        wall = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line: dict[str, Any] = {"time": wall, "steady_s": round(now, 6), "event": name, **fields}
        if left_out:
            line["left_out"] = left_out
        try:
            self._stream.write(msgspec.json.encode(line).decode() + "\n")
            self._stream.flush()
        except OSError:
            pass
