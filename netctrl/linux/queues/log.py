"""Log of events, one line each: `event=applied interface=eth0 handle=7c01:`, for people and for grep."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

__all__ = ["LOG", "event", "log_to"]

LOG = logging.getLogger("netctrl.linux")


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
