"""Programs of this machine as they are started inside a kernel: their tasks and answers, the beginning of a run."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from netctrl.core.errors import NetctrlError
from netctrl.core.units import NANOSECOND
from netctrl.kernel.plan import FIRST_NAMESPACE, Program

FOLDER = "/run/netctrl"
"""Folder of results, as it is named inside."""
_TEMPORARY = "/run/tmp"
_T = TypeVar("_T")
_ROOT = Path(__file__).resolve().parents[2]
_ARRAY = 1
"""Code of an array in a record's file, as `numpy.save` writes it: all bits and the type of its numbers."""


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


def write_record(folder: Path, record: Any) -> None:
    """Write a named tuple of numbers, texts, arrays and records to the folder of results, under its type's name."""
    (folder / type(record).__name__).write_bytes(msgspec.msgpack.encode(record, enc_hook=_written))


def read_record(folder: Path, kind: type[_T]) -> _T:
    """The record of this type in the folder of results."""
    content = (folder / kind.__name__).read_bytes()
    return msgspec.msgpack.decode(content, type=kind, ext_hook=_array, dec_hook=lambda _, value: value)


def _written(value: Any) -> Any:
    """What msgspec doesn't know: arrays, and numbers of NumPy."""
    if isinstance(value, np.generic):
        return value.item()
    content = BytesIO()
    np.save(content, value, allow_pickle=False)
    return msgspec.msgpack.Ext(_ARRAY, content.getvalue())


def _array(_: int, content: memoryview) -> np.ndarray:
    return np.load(BytesIO(content), allow_pickle=False)


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
