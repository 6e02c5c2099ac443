"""Run a program of the host inside a kernel in virtual time, as root there."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from netctrl.core.errors import InvalidValue
from netctrl.kernel.boot import MEMORY_BYTES, WALL_LIMIT_S, run_plan
from netctrl.kernel.build import Kernel, build_guest, chosen_kernel
from netctrl.kernel.plan import Answer, PlanWriter
from netctrl.kernel.programs import host_program
from netctrl.linux.kernel import messages

_LONGEST_S = 1e9


class Ended(NamedTuple):
    """A program that ended."""

    status: int
    """Its exit status; 128 and more: the signal that ended it."""
    virtual_s: float
    """How long it ran by the kernel's clock [s]."""
    stdout: str
    stderr: str


def run_command(
    words: Sequence[str],
    folder: Path,
    *,
    seed: int = 1,
    settings: Mapping[str, str] | None = None,
    kernel: Kernel | None = None,
    memory_bytes: int = MEMORY_BYTES,
    wall_limit_s: float = WALL_LIMIT_S,
) -> Ended:
    """Run a program inside a kernel, in a network namespace of its own, and wait for its end.

    It sees the host's files read-only, is root, and may make namespaces, interfaces and queues. What it computes takes
    no time; what it waits for takes no time outside. The host's files are read-only for the kernel itself, so that
    nothing that root does inside changes that: in a mount namespace, or by Landlock, which leaves it the times and
    permissions of the user's files. Where the host allows neither, nothing is run.

    Parameters
    ----------
    words : sequence of str
        A program's name or path, and its arguments.
    folder : Path
        Empty folder that it may write to, inside /run/netctrl.
    seed : int
        Of all of the kernel's random numbers.
    settings : mapping, optional
        Environment variables; by default this process's.
    kernel : Kernel, optional
    memory_bytes : int
    wall_limit_s : float

    Raises
    ------
    NetctrlError
        There is no such program, no kernel is built, the host's files can't be made read-only, or the kernel stops; a
        program that fails is no error.
    """
    if not words:
        raise InvalidValue("words", words, "a program and its arguments")
    program = host_program(words, os.environ if settings is None else settings)
    plan = PlanWriter()
    place = plan.namespace()
    plan.request(place, messages.set_up(1), "switch on a loopback")
    plan.program(0.0, place, program, alone=True)
    plan.run(_LONGEST_S, 0.0)
    kernel = kernel or chosen_kernel()
    results = run_plan(
        plan,
        kernel,
        build_guest(),
        folder,
        seed=seed,
        memory_bytes=memory_bytes,
        wall_limit_s=wall_limit_s,
        confined=True,
    )
    (body,) = [body for kind, body in results if kind == Answer.STATUS]
    status, nanoseconds = struct.unpack("=QQ", body)
    return Ended(status, nanoseconds * 1e-9, _text(folder / "stdout"), _text(folder / "stderr"))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
