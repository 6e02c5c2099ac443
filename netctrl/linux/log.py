"""Log of events, one line each: `event=applied interface=eth0 handle=7c01:`, for people and for grep."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path

LOG = logging.getLogger("netctrl.linux")


_MAX = 20
_PERIOD_S = 10.0
_WARNINGS = ("link-lost", "peer-lost", "peer-never-heard", "fallback", "messages-dropped")


def event(name: str, level: int = logging.INFO, /, **fields: object) -> None:
    """Log an event with its fields; a field that is None is left out."""
    told = [f"{key}={_text(value)}" for key, value in fields.items() if value is not None]
    LOG.log(level, " ".join([f"event={name}", *told]))


def log_to(path: str | Path | None) -> logging.Handler:
    """Log lines with time, level and process to a file, or to stderr; returns the handler for `LOG.removeHandler`.

    The file is opened at the first line.
    """
    handler = logging.StreamHandler(sys.stderr) if path is None else logging.FileHandler(Path(path), delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s pid=%(process)d %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    return handler


def _text(value: object) -> str:
    text = str(value)
    plain = bool(text) and text.isprintable() and not any(each.isspace() or each in '"=' for each in text)
    return text if plain else json.dumps(text)


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
