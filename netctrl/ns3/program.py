"""Find ns-3, compile a rendered program, run it, and read its tables."""

from __future__ import annotations

import errno
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np

from netctrl.core.errors import NetctrlError
from netctrl.core.files import user_cache

REMEDY = "`apt-get install g++ make libns3-dev`, or g++, make and `pip install 'netctrl[ns3]'`"
PROGRAM = "scenario"
SCENARIO = "scenario.txt"
"""File that a program reads, unless it was generated with its scenario."""
LINK_LAW = "link_rate"
"""Function and files of a law of a link's rate that is written as C."""
_PROBE_S = 20.0
_COMPILE_S = 600.0
_BUSY_S = 10.0
_COMPILER_LINES = 12
_KEPT = 8
"""Number of programs kept; those not used for longest go first."""


@dataclass(frozen=True, slots=True)
class Ns3:
    """An ns-3 installation: Debian's libns3-dev, or the wheel of the extra `ns3`."""

    version: str
    """Version, such as "3.37"."""
    compiler: str
    make: str
    prefix: Path | None
    """Folder `ns3` of the wheel; None: the system's headers and libraries."""


def find_ns3() -> Ns3:
    """Find ns-3 on this machine, preferably the wheel. Compiles nothing.

    Raises
    ------
    NetctrlError
        No compiler, no make or no ns-3; the message names the missing part and its installation.
    """
    compiler = shutil.which("g++") or shutil.which("clang++")
    make = shutil.which("make")
    if compiler is None or make is None:
        lacking = "C++ compiler (g++ or clang++)" if compiler is None else "make"
        raise NetctrlError(f"ns-3 programs can't be compiled: no {lacking} is on PATH; install {REMEDY}")
    found = _of_wheel(compiler, make) or _of_system(compiler, make)
    if found is None:
        raise NetctrlError(f"ns-3 was not found, neither as a library of the system nor as a wheel; install {REMEDY}")
    return found


def _of_wheel(compiler: str, make: str) -> Ns3 | None:
    try:
        prefix = Path(str(importlib.metadata.distribution("ns3").locate_file("ns3")))
    except importlib.metadata.PackageNotFoundError:
        return None
    libraries = [re.fullmatch(r"libns(3\.\d+)-core\.so", path.name) for path in prefix.glob("lib64/libns3.*-core.so")]
    versions = [match[1] for match in libraries if match]
    if len(versions) != 1 or not (prefix / "include" / "ns3" / "core-module.h").is_file():
        return None
    return Ns3(versions[0], compiler, make, prefix)


def _of_system(compiler: str, make: str) -> Ns3 | None:
    try:
        requested = subprocess.run(
            [compiler, "-print-file-name=libns3-core.so"], capture_output=True, text=True, timeout=_PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    library = Path(requested.stdout.strip())
    # The compiler prints a name without a folder if it finds no file.
    headers = [Path("/usr/include"), Path("/usr/local/include"), *Path("/usr/include").glob("ns3.*")]
    if not library.is_absolute() or not any((folder / "ns3" / "core-module.h").is_file() for folder in headers):
        return None
    release = library.resolve().suffix  # libns3-core.so.37
    return Ns3(f"3{release}" if release != ".so" else "3", compiler, make, None)


def compile_program(folder: Path, ns3: Ns3) -> None:
    """Compile the program in `folder` with its Makefile, from scratch.

    A program that reads its scenario is kept in the user's cache, by its sources and ns-3, and copied from there the
    next time; a law of a link's rate (`netctrl.ns3.network.control`) is compiled anew.

    Raises
    ------
    NetctrlError
        Compilation fails; the message has the compiler's first error lines. The folder is kept.
    """
    kept, copied = _kept(folder, ns3) if (folder / SCENARIO).exists() else None, False
    if kept is not None:
        with suppress(OSError):
            shutil.copy(kept, folder / PROGRAM)
            os.utime(kept)
            copied = True
    if copied and not (folder / f"{LINK_LAW}.c").exists():
        return
    targets = ["law.so"] if copied else []
    command = [ns3.make, "--always-make", f"CXX={ns3.compiler}", f"NS3_PREFIX={ns3.prefix or ''}", *targets]
    environment = os.environ | {"LC_ALL": "C", "MAKEFLAGS": ""}
    try:
        made = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_COMPILE_S, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        raise NetctrlError(f"{folder}: the compiler did not finish in {_COMPILE_S:g} s; the folder is kept") from None
    except OSError as error:
        raise NetctrlError(f"{folder}: {ns3.make} can't be run: {error.strerror}") from None
    if made.returncode != 0:
        shown = "\n".join(f"  {line}" for line in _error_lines(made.stderr))
        raise NetctrlError(f"the program in {folder} does not compile (the folder is kept):\n{shown}")
    if kept is not None and not copied:
        with suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            new = kept.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            shutil.copy(folder / PROGRAM, new)
            new.replace(kept)
            for old in sorted(kept.parent.iterdir(), key=lambda place: place.stat().st_mtime)[:-_KEPT]:
                old.unlink()


def _kept(folder: Path, ns3: Ns3) -> Path | None:
    """Where the program is kept that is made of these sources with this compiler and ns-3."""
    cache = user_cache()
    if cache is None:
        return None
    library = next(ns3.prefix.glob("lib64/libns3.*-core.so"), None) if ns3.prefix else None
    flags = [os.environ.get(name, "") for name in ("CXXFLAGS", "CPPFLAGS", "LDFLAGS")]
    key = hashlib.sha256(repr((ns3, flags, library and library.stat().st_mtime_ns)).encode())
    for source in sorted((folder / "Makefile", *folder.glob("*.cc"), *folder.glob("*.h"))):
        key.update(f"\n{source.name}\n".encode() + source.read_bytes())
    return cache / "ns3" / key.hexdigest()


def _error_lines(text: str) -> list[str]:
    """The compiler's first error and the lines below it; without one, the last lines."""
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if "error:" in line), None)
    return lines[-_COMPILER_LINES:] if first is None else lines[first : first + _COMPILER_LINES]


@contextmanager
def whole(folder: Path) -> Generator[None]:
    """Context for reading a program's output in `folder`: raises NetctrlError where it is incomplete."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise NetctrlError(f"the program in {folder} left an incomplete result: {error}; the folder is kept") from None


def execute(
    folder: Path,
    arguments: Sequence[str],
    log_name: str,
    *,
    progress: Callable[[float], None] | None = None,
    timeout: float | None = None,
    started: Callable[[subprocess.Popen], None] | None = None,
) -> None:
    """Run the compiled program in `folder`; its output, except for progress, goes to a file of this name.

    Parameters
    ----------
    started : callable, optional
        Called with the process, so that the caller can end it early.

    Raises
    ------
    NetctrlError
        It failed, or took longer than `timeout` [s].
    """
    log = folder / log_name
    command = [str((folder / PROGRAM).resolve()), *arguments]
    with log.open("w", encoding="utf-8") as errors:
        status, late = _follow(command, folder, errors, progress, timeout, started)
    if late:
        raise NetctrlError(f"the program in {folder} was ended after {timeout:g} s; the folder is kept")
    if status != 0:
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_COMPILER_LINES:]
        shown = "\n".join(f"  {line}" for line in said)
        raise NetctrlError(f"the program in {folder} failed with status {status} (the folder is kept):\n{shown}")


def _begun(command: list[str], folder: Path, log) -> subprocess.Popen:
    """The process. While a program is copied, a process that another thread forks has the file open for writing until
    it becomes its own program, and until then nobody may run the copy."""
    end = time.monotonic() + _BUSY_S
    while True:
        try:
            return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)
        except OSError as error:
            if error.errno != errno.ETXTBSY or time.monotonic() > end:
                raise NetctrlError(f"{command[0]} can't be run: {error.strerror}; compile it first") from None
        time.sleep(0.01)


def _follow(
    command: list[str],
    folder: Path,
    log,
    progress: Callable[[float], None] | None,
    timeout: float | None,
    started: Callable[[subprocess.Popen], None] | None,
) -> tuple[int, bool]:
    """Exit status, and whether it was ended after the time limit. The process is ended after any error."""
    process = _begun(command, folder, log)
    if started is not None:
        started(process)
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(timeout, end) if timeout is not None else None
    try:
        if timer is not None:
            timer.start()
        with process:
            for line in process.stdout or ():
                word, _, rest = line.partition(" ")
                if word == "progress" and progress is not None:
                    progress(int(rest) / 100.0)
                elif word != "progress":
                    log.write(line)
    except BaseException:  # Ctrl-C among them
        process.kill()
        process.wait()
        raise
    finally:
        if timer is not None:
            timer.cancel()
    return process.returncode, late.is_set()


def read_table(path: Path, columns: int, rows: int | None = None, *, skip: int = 0) -> np.ndarray:
    """Numbers of a CSV file, shape (rows, columns); raises ValueError for another shape."""
    with path.open(encoding="ascii") as file:
        lines = file.readlines()[skip:]
    table = np.loadtxt(lines, delimiter=",", ndmin=2) if lines else np.empty((0, columns))
    if table.shape[1] != columns:
        raise ValueError(f"{path.name} has {table.shape[1]} columns, not {columns}")
    if rows is not None and len(table) != rows:
        raise ValueError(f"{path.name} has {len(table)} rows, not {rows}")
    return table


def table_name(run: int) -> str:
    """Name of the file with a run's draws in a program's folder."""
    return f"run-{run}.bin"


class Running(TypedDict, total=False):
    """Options of a run."""

    progress: Callable[[float], None] | None
    """Called with the elapsed share of the simulated time, 0 to 1."""
    timeout: float | None
    """Time limit [s]."""


def run_seed(folder: Path, seed: int, **running: Unpack[Running]) -> None:
    """Run the compiled program in `folder` for a seed; raises as `execute`."""
    execute(folder, [".", str(seed)], f"run-{seed}.log", **running)
