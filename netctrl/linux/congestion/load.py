"""A law's congestion control in this kernel by BPF: loaded with a record, listed, and taken out again.

A congestion control is the whole machine's, not a namespace's. Its record is on the disk before the kernel changes, so
that what a killed `load` left is taken out by `unload`; others' congestion controls are never touched.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from netctrl.core.errors import FileError, InvalidValue, NetctrlError
from netctrl.linux.congestion.text import NAME, congestion_text
from netctrl.linux.queues.record import Owner, this_process
from netctrl.linux.state_files import STATE_FOLDER, open_lock, read_regular, safe_folder, write_through
from netctrl.model.io.json_file import decoded
from netctrl.model.io.record_file import FileRecord
from netctrl.model.law import PacingLaw

_BTF = Path("/sys/kernel/btf/vmlinux")
_KNOWN = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_TOOLS = {"clang": "clang", "bpftool": "bpftool"}
_FEWER_ARGUMENTS = (6, 10)  # before this version cong_control has two arguments
_PATIENCE_S = 120.0
_MAX_BYTES = 2**16


class CongestionRecord(FileRecord, frozen=True):
    """A congestion control that netctrl loads or has loaded."""

    schema: Literal["netctrl.congestion/1"]
    name: str
    owner: Owner
    """Process that loaded it, for the machine's boot."""
    since: str
    """Time by the wall clock, for people."""


def lacks(name: str = NAME) -> list[str]:
    """What keeps this machine from loading a congestion control of this name, each with its remedy."""
    found = [f"no {tool} on PATH: `apt-get install {each}`" for tool, each in _TOOLS.items() if _path(tool) is None]
    if not _BTF.is_file():
        found.append(f"no {_BTF}: the kernel needs CONFIG_DEBUG_INFO_BTF and CONFIG_BPF_JIT")
    if os.geteuid() != 0:
        found.append("only root may load it")
    if name in known():
        found.append(f"the name {name} is taken: `netctrl linux cc unload --name {name}`, or another --name")
    return found


def known() -> list[str]:
    """Names of this kernel's congestion controls."""
    return _KNOWN.read_text(encoding="ascii").split() if _KNOWN.is_file() else []


def load(law: PacingLaw, name: str = NAME, folder: str = STATE_FOLDER) -> CongestionRecord:
    """Compile a law's congestion control, load it and record it; a failure leaves nothing behind.

    Raises
    ------
    NetctrlError
        The machine lacks something (`lacks`), or the kernel refuses the program.
    """
    text = congestion_text(law, name)
    with _locked(folder):
        if missing := lacks(name):
            raise NetctrlError("; ".join(missing))
        record = CongestionRecord(
            schema="netctrl.congestion/1", name=name, owner=this_process(), since=time.strftime("%Y-%m-%d %H:%M:%S")
        )
        file = place(folder, name)
        write_through(file, record.to_json().encode(), 0o644)
        try:
            _register(text)
            if name not in known():
                raise NetctrlError(f"bpftool has registered {name}, but the kernel doesn't list it")
        except BaseException:
            with suppress(NetctrlError):
                _unregister(name)
            file.unlink()
            raise
    return record


def unload(name: str = NAME, folder: str = STATE_FOLDER) -> bool:
    """Take out what `load` has loaded; connections that use it keep it. False where it was gone already.

    Raises
    ------
    NetctrlError
        It isn't netctrl's, or the kernel refuses.
    """
    with _locked(folder):
        if recorded(name, folder) is None:
            raise NetctrlError(f"{folder} has no record of a congestion control {name}: nothing was changed")
        was = loaded(name, folder)
        if was:
            _unregister(name)
            if name in known():
                raise NetctrlError(f"{name} is still there, as bpftool finds no struct_ops cc_{name}: another made it")
        place(folder, name).unlink()
    return was


def recorded(name: str = NAME, folder: str = STATE_FOLDER) -> CongestionRecord | None:
    """The record of a name; None without one. Raises FileError where it is no record."""
    file = place(folder, name)
    text = read_regular(file, _MAX_BYTES)
    try:
        return None if text is None else decoded(file, text, CongestionRecord)
    except msgspec.ValidationError as error:
        raise FileError(file, f"is not a record of netctrl: {error}") from None


def records(folder: str = STATE_FOLDER) -> list[CongestionRecord]:
    """All records in a folder."""
    names = sorted(path.stem.removeprefix("cc-") for path in Path(folder).glob("cc-*.json"))
    return [found for name in names if (found := recorded(name, folder)) is not None]


def loaded(name: str, folder: str = STATE_FOLDER) -> bool:
    """Whether a recorded congestion control is in the kernel still."""
    record = recorded(name, folder)
    return record is not None and record.owner.boot == this_process().boot and name in known()


def place(folder: str, name: str) -> Path:
    """The record's file."""
    if not name.replace("_", "a").isalnum():
        raise InvalidValue("name", name, "the name of a congestion control")
    return Path(folder) / f"cc-{name}.json"


@contextmanager
def _locked(folder: str) -> Generator[None]:
    safe_folder(Path(folder))
    handle = open_lock(Path(folder) / "cc.lock")
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise NetctrlError("another process loads or unloads a congestion control; try again") from None
    finally:
        os.close(handle)


def _register(text: str) -> None:
    ahead = round(time.clock_gettime(time.CLOCK_TAI) - time.time())
    version = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    settings = [f"-DTAI_AHEAD_S={ahead}", *(["-DRATE_SAMPLE=1"] if version < _FEWER_ARGUMENTS else [])]
    with tempfile.TemporaryDirectory(prefix="netctrl-cc-") as work:
        source, made = Path(work) / "law.c", Path(work) / "law.o"
        source.write_text(text, encoding="utf-8")
        _run(["clang", "-O2", "-g", "-target", "bpf", *settings, "-c", str(source), "-o", str(made)])
        _run(["bpftool", "struct_ops", "register", str(made)])


def _unregister(name: str) -> None:
    for each in _ids(name):
        _run(["bpftool", "struct_ops", "unregister", "id", str(each)])


def _ids(name: str) -> list[int]:
    """Of the struct_ops maps of a name."""
    found: list[Any] = msgspec.json.decode(_run(["bpftool", "-j", "struct_ops", "show"]) or "[]")
    return [each["id"] for each in found if each["name"] == f"cc_{name}"]


def _run(command: Sequence[str]) -> str:
    program = _path(command[0])
    if program is None:
        raise NetctrlError(f"no {command[0]} on PATH: `apt-get install {_TOOLS[command[0]]}`")
    try:
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, errors="replace", check=False, timeout=_PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetctrlError(f"{command[0]} can't be run: {error}") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
        raise NetctrlError(f"{command[0]} {command[1]} failed: {said[-1].strip()}")
    return done.stdout


def _path(tool: str) -> str | None:
    return shutil.which(tool) or shutil.which(tool, path="/usr/sbin:/sbin")
