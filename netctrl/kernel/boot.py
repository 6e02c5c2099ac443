"""Running a plan in a kernel: a process of the host, without privilege, in virtual time.

The kernel's clock stands while a process of it computes, and jumps to the next event when all of them sleep. All of its
random numbers come from a seed, so that two runs of a plan give the same bytes, whatever the host's load is. Linux
mixes its command line into its random numbers, so that has no path of this machine.

The kernel sees the host's files read-only. It writes to one folder, and to its memory, a file that has no name. It ends
with the thread that started it, however that ends.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from netctrl.core.errors import NetctrlError
from netctrl.kernel.build import Guest, Kernel
from netctrl.kernel.plan import Answer, PlanWriter, read_results

MEMORY_BYTES = 1 << 30
"""Memory of the kernel; what it doesn't touch, the host doesn't spend."""
WALL_LIMIT_S = 900.0
"""Longest run by the host's clock."""
_BORN_NS = 1_600_000_000_000_000_000  # the kernel's date at its start
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_FIRST_PROCESS, _PRELOAD, _HOST = "guest", "preload", "host"  # in a kernel's folder
_LAST_LINES = 15
_LONGEST_CONSOLE = 1 << 20
_REMEDIES = {
    "Out of memory": "it ran out of memory: a larger memory_bytes, fewer flows, or smaller buffers",
    "Kernel panic": "it panicked: another version, by `netctrl kernel build --source`",
    "can't be made read-only": "nothing keeps what runs inside from this host's files, which allows neither a mount "
    "namespace nor Landlock: become root, or allow user namespaces",
    "Bus error": "the host has no room for its memory in /dev/shm: set TMPDIR to a folder with room",
}


def run_plan(
    plan: PlanWriter,
    kernel: Kernel,
    guest: Guest,
    folder: Path,
    *,
    seed: int,
    memory_bytes: int = MEMORY_BYTES,
    wall_limit_s: float = WALL_LIMIT_S,
    confined: bool = False,
) -> list[tuple[int, bytes]]:
    """Boot a kernel that carries out a plan; returns its results.

    Parameters
    ----------
    plan : PlanWriter
    kernel, guest : Kernel, Guest
    folder : Path
        Empty folder for the plan, the results and the console; the only one that is written to.
    seed : int
        Of all the kernel's random numbers.
    memory_bytes : int
    wall_limit_s : float
        When a run that doesn't end is ended, by the host's clock [s].
    confined : bool
        Whether a host that allows neither a mount namespace nor Landlock is refused. Without, only the kernel's own
        read-only mount keeps what runs inside from the host's files.

    Raises
    ------
    NetctrlError
        A request that the kernel refuses, a program that fails, or a kernel that stops: with its console's last lines.
    """
    with prepared(folder, plan, guest):
        said = _boot(kernel, guest, folder, seed, memory_bytes, wall_limit_s, confined)
    place = folder / "results"
    content = place.read_bytes() if place.is_file() else b""
    try:
        results = list(read_results(content))
    except NetctrlError:
        results = []
    for kind, body in results:
        if kind == Answer.FAILED:
            raise NetctrlError(_failure(plan, body.decode(errors="replace"), folder))
    if not results or results[-1][0] != Answer.ENDED:
        raise NetctrlError(_stopped(said))
    return results


def boot_command(
    program: Path, guest: Guest, memory: int, seed: int, *, confined: bool = False
) -> tuple[list[str], dict[str, str]]:
    """Command line and environment of a kernel, whose working folder is `prepared`."""
    command = [
        str(guest.launcher),
        str(os.getpid()),
        "must" if confined else "may",
        str(program),
        f"mem={memory // 2**20}M",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/proc/self/cwd",
        "ro",
        f"init=/{_FIRST_PROCESS}",
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
        "quiet",
        "panic=-1",
        "time-travel=inf-cpu",
        f"time-travel-start={_BORN_NS}",
        "uml_dir=./",
    ]
    return command, {"LD_PRELOAD": f"./{_PRELOAD}", "NETCTRL_SEED": str(seed), "PATH": _PATH}


@contextmanager
def prepared(folder: Path, plan: PlanWriter, guest: Guest) -> Generator[None]:
    """Context in which a kernel's working folder has what it needs; none of that has a name of this machine."""
    (folder / "plan").write_bytes(plan.content())
    shutil.copy(guest.first_process, folder / _FIRST_PROCESS)
    shutil.copy(guest.preload, folder / _PRELOAD)
    (folder / _HOST).mkdir()
    try:
        yield
    finally:
        for each in (_FIRST_PROCESS, _PRELOAD):
            (folder / each).unlink(missing_ok=True)
        (folder / _HOST).rmdir()


def _boot(kernel: Kernel, guest: Guest, folder: Path, seed: int, memory: int, limit_s: float, confined: bool) -> str:
    """Run the kernel to its end; returns the end of its console."""
    command, settings = boot_command(kernel.program, guest, memory, seed, confined=confined)
    settings["TMPDIR"] = str(_memory_folder(folder, memory))
    with (folder / "console").open("w+b") as console:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            env=settings,
            cwd=folder,
            start_new_session=True,
        )
        try:
            child.wait(limit_s)
        except subprocess.TimeoutExpired:
            said = _end_of(console)
            remedy = "a shorter scenario, a larger wall_limit_s, or a program that sleeps instead of polling"
            raise NetctrlError(f"the kernel was not done after {limit_s:g} s of wall time: {remedy}\n{said}") from None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        return _end_of(console)


def _end_of(console: IO[bytes]) -> str:
    """The console's last lines."""
    console.seek(0, os.SEEK_END)
    console.seek(max(console.tell() - _LONGEST_CONSOLE, 0))
    lines = console.read().decode(errors="replace").splitlines()
    return "\n".join(f"  {line.rstrip()}" for line in lines[-_LAST_LINES:] if line.strip())


def _memory_folder(folder: Path, memory: int) -> Path:
    """Where the file of the kernel's memory is: in memory where there is room for it."""
    shared = Path("/dev/shm")
    try:
        if os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > memory:
            return shared
    except OSError:
        pass
    return folder


def _failure(plan: PlanWriter, said: str, folder: Path) -> str:
    """Text of a failure, with what the request was for, or the last lines of what programs said of errors."""
    head, _, rest = said.partition(" ")
    number = rest.partition(":")[0]
    if head == "request" and number.isdigit():
        return f"the kernel refused to {plan.note(int(number))}:{rest.partition(':')[2]}"
    errors = folder / "stderr"
    lines = errors.read_text(errors="replace").splitlines()[-_LAST_LINES:] if errors.is_file() else []
    return "\n".join((f"in the kernel: {said}", *(f"  {line}" for line in lines)))


def _stopped(said: str) -> str:
    remedy = next((text for sign, text in _REMEDIES.items() if sign in said), "its console's last lines say why")
    return f"the kernel stopped before its end; {remedy}\n{said}"


@contextmanager
def work_folder() -> Generator[Path]:
    """A temporary folder for one run."""
    with tempfile.TemporaryDirectory(prefix="netctrl-kernel-") as name:
        yield Path(name)
