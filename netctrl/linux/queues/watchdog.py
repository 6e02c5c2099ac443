"""Process that restores queues when the first one is killed: `python -m netctrl linux.queues.watchdog FOLDER TOKEN`.

It waits at a pipe that the kernel closes with the first process, however that ends. It has a session of its own, and
only SIGKILL ends it. `netctrl.linux.agent.dead_man`, which restores an agent's rates, waits in the same way.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from netctrl.core.errors import NetctrlError
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.log import event, log_to
from netctrl.linux.queues.record import Busy, Store
from netctrl.linux.queues.restore import recover

Ended = Literal["released", "gone", "hangs"]
"""End of a watched process: it released the watchdog, it was killed, or it hangs."""

WATCHDOG_LOG = "watchdog.log"
"""Log in the record's folder."""

_READY = b"ready\n"
_RELEASE = b"release\n"
_START_S = 30.0
_LOCK_S = 10.0
_LOOK_S = 1.0


class Watchdog:
    """The watchdog process and the pipe to it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def alive(self) -> bool:
        """Whether it is still waiting."""
        return self._process.poll() is None

    def end(self, release: bool) -> None:
        """Close the pipe and wait; `release` means that there is nothing to restore. Repeated calls do nothing."""
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
    """Start the watchdog, and wait until it watches; raises NetctrlError where it doesn't."""
    return start_watcher("netctrl.linux.queues.watchdog", str(folder.resolve()), token)


def start_watcher(module: str, *arguments: str, inherit: Sequence[int] = ()) -> Watchdog:
    """Start a module that calls `attend`, with open descriptors of this process; NetctrlError if it doesn't watch."""
    command = [sys.executable, "-P", "-m", module, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
            pass_fds=tuple(inherit),
        )
    except OSError as error:
        raise NetctrlError(f"no watchdog could be started, nothing was changed: {error.strerror}") from None
    pipe = process.stdout
    if pipe is not None and select.select([pipe], [], [], _START_S)[0]:
        with pipe:
            if pipe.readline() == _READY:
                return Watchdog(process)
    process.kill()
    process.communicate()
    raise NetctrlError(f"the watchdog did not start within {_START_S:g} s; nothing was changed")


def main(arguments: Sequence[str]) -> int:
    """Watch and restore; the exit status says whether nothing is left to restore."""
    folder, token = arguments
    store = Store(folder)
    log_to(None)  # stderr may be a closed terminal
    log_to(store.folder / WATCHDOG_LOG)
    if attend() == "released":
        return 0
    event("owner-gone", logging.WARNING, token=token)
    try:
        _put_back(store, token)
        return 0
    except NetctrlError as error:
        event("watchdog-failed", logging.ERROR, why=error)
        return 1


def attend(hangs: Callable[[], bool] = lambda: False) -> Ended:
    """In the watchdog: report that it watches and wait for the first process's end; calls `hangs` once a second."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    parent = os.getppid()
    sys.stdout.buffer.write(_READY)
    sys.stdout.buffer.flush()
    told, pipe = b"", sys.stdin.fileno()
    while _RELEASE not in told:
        if select.select([pipe], [], [], _LOOK_S)[0]:
            chunk = os.read(pipe, 64)
            if not chunk:
                return "gone"
            told += chunk
        elif os.getppid() != parent:  # a forked child still holds the pipe
            return "gone"
        elif hangs():
            return "hangs"
    return "released"


def _put_back(store: Store, token: str) -> None:
    end = time.monotonic() + _LOCK_S
    while True:
        try:
            with store.lock(), RouteSocket() as socket:
                recover(store, socket, token)
                return
        except Busy:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
