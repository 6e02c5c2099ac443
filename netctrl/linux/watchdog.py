"""A second process that puts queues back when the first is killed: `python -m netctrl.linux.watchdog FOLDER TOKEN`.

It waits at a pipe that the kernel closes with the first process, whatever ended that, in a session of its own; no
signal but SIGKILL ends it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from netctrl.errors import NetctrlError
from netctrl.linux.log import event, log_to
from netctrl.linux.netlink import RouteSocket
from netctrl.linux.record import Busy, Store
from netctrl.linux.restore import recover

__all__ = ["WATCHDOG_LOG", "Watchdog", "main", "start_watchdog"]

WATCHDOG_LOG = "watchdog.log"
"""In the folder of the record."""

_READY = b"ready\n"
_RELEASE = b"release\n"
_START_S = 30.0
_LOCK_S = 10.0
_LOOK_S = 1.0


class Watchdog:
    """The process and the pipe to it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def alive(self) -> bool:
        """Whether it still waits."""
        return self._process.poll() is None

    def end(self, release: bool) -> None:
        """Close the pipe and wait; with `release` there is nothing to put back any more. Twice is fine."""
        pipe = self._process.stdin
        if pipe is None or pipe.closed:
            return
        with contextlib.suppress(OSError):
            pipe.write(_RELEASE if release else b"")
            pipe.flush()
        with contextlib.suppress(OSError):
            pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_START_S)


def start_watchdog(folder: Path, token: str) -> Watchdog:
    """Start it, and wait until it watches; NetctrlError where it doesn't."""
    command = [sys.executable, "-P", "-m", "netctrl.linux.watchdog", str(folder.resolve()), token]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
    except OSError as error:
        raise NetctrlError(f"no watchdog could be started, nothing was changed: {error.strerror}") from None
    if _is_ready(process):
        return Watchdog(process)
    process.kill()
    process.communicate()
    raise NetctrlError(f"the watchdog did not start within {_START_S:g} s; nothing was changed")


def _is_ready(process: subprocess.Popen[bytes]) -> bool:
    pipe = process.stdout
    if pipe is None or not select.select([pipe], [], [], _START_S)[0]:
        return False
    with pipe:
        return pipe.readline() == _READY


def main(arguments: Sequence[str]) -> int:
    """Watch, and put back; the exit status says whether there is nothing left to do."""
    folder, token = arguments
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    store = Store(folder)
    log_to(None)  # which may be a terminal that is gone
    log_to(store.folder / WATCHDOG_LOG)
    parent = os.getppid()
    sys.stdout.buffer.write(_READY)
    sys.stdout.buffer.flush()
    if _released(parent):
        return 0
    event("owner-gone", logging.WARNING, token=token)
    try:
        return _put_back(store, token)
    except NetctrlError as error:
        event("watchdog-failed", logging.ERROR, why=error)
        return 1


def _released(parent: int) -> bool:
    """Wait until the parent says that nothing is to be done (True), or is gone (False)."""
    told, pipe = b"", sys.stdin.fileno()
    while _RELEASE not in told:
        if select.select([pipe], [], [], _LOOK_S)[0]:
            chunk = os.read(pipe, 64)
            if not chunk:
                return False
            told += chunk
        elif os.getppid() != parent:  # a child that it forked still holds the pipe
            return False
    return True


def _put_back(store: Store, token: str) -> int:
    end = time.monotonic() + _LOCK_S
    while True:
        try:
            with store.lock(), RouteSocket() as socket:
                recover(store, socket, token)
                return 0
        except Busy:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
