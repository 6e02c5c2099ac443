"""Elapsed seconds shown on a terminal during work of unknown length, and erased before other output."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

__all__ = ["quiet", "waiting"]

_running: list[Callable[[], None]] = []


@contextmanager
def waiting(what: str, after: float = 1.0) -> Generator[None]:
    """Show on stderr, if it is a terminal, for how many seconds `what` has been running, until the end or `quiet`."""
    if not sys.stderr.isatty():
        yield
        return
    ended, terminal = threading.Event(), sys.stderr

    def tick() -> None:
        shown = 0
        while not ended.wait(after):
            shown += 1
            terminal.write(f"\r{what}, {shown * after:.0f} s")
            terminal.flush()
        if shown:
            terminal.write("\r\033[K")
            terminal.flush()

    thread = threading.Thread(target=tick, daemon=True)

    def end() -> None:
        ended.set()
        thread.join()

    thread.start()
    _running.append(end)
    try:
        yield
    finally:
        quiet()


def quiet() -> None:
    """Stop and erase the display."""
    while _running:
        _running.pop()()
