"""Programs of this machine, as they are started inside a kernel, and the beginning of a run as they learn it."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from netctrl.core.errors import NetctrlError
from netctrl.core.units import NANOSECOND
from netctrl.kernel.plan import FIRST_NAMESPACE, Program

FOLDER = "/run/netctrl"
"""Folder of results, as it is named inside."""
_TEMPORARY = "/run/tmp"
_ROOT = Path(__file__).resolve().parents[2]


def host_program(words: Sequence[str], settings: Mapping[str, str]) -> Program:
    """A program of this machine, as a plan has it: its path, this process's working folder, environment variables.

    Raises
    ------
    NetctrlError
        There is no such program.
    """
    found = shutil.which(words[0])
    if found is None:
        raise NetctrlError(f"{words[0]}: there is no such program on PATH")
    # Links aren't followed: the path of a virtual environment's Python tells which environment it is.
    return Program((str(Path(found).absolute()), *words[1:]), str(Path.cwd()), {**settings, "TMPDIR": _TEMPORARY})


def own_program(module: str, *words: str) -> Program:
    """One of netctrl's own modules as a program, which finds the modules that this process finds.

    It sees few of this process's environment variables, so that no others change what it does.
    """
    found = os.pathsep.join(path for path in (str(_ROOT), *sys.path) if path)
    settings = {name: os.environ[name] for name in ("HOME", "NUMBA_CACHE_DIR") if name in os.environ}
    settings |= {"PYTHONPATH": found, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": _TEMPORARY}
    return Program((sys.executable, "-m", module, *words), "/", settings)


def begin_s(line: socket.socket) -> float:
    """Time 0 of the run by CLOCK_MONOTONIC [s], as a prepared program learns it: it says that it is ready, and waits.

    `line` is the socket of descriptor `netctrl.kernel.plan.LINE`.
    """
    line.sendall(b"\0")
    return int.from_bytes(line.recv(8, socket.MSG_WAITALL), sys.byteorder) * NANOSECOND


@contextmanager
def in_namespace(number: int) -> Generator[None]:
    """Context inside, in which this thread is in the plan's namespace with this number."""
    from netctrl.linux.namespace import inside

    namespace = os.open(f"/proc/1/fd/{FIRST_NAMESPACE + number}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        with inside(namespace):
            yield
    finally:
        os.close(namespace)
