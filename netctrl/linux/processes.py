"""Programs as children that end with their parent."""

from __future__ import annotations

import os
import subprocess
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from netctrl.core.errors import NetctrlError
from netctrl.linux.namespace import bind_to_parent

_PATIENCE_S = 2.0  # from SIGTERM to SIGKILL


def start_program(argv: Sequence[str], **popen: Any) -> subprocess.Popen:
    """Run a program without a shell; `popen` are Popen's options.

    It is killed when the calling thread ends.

    Raises
    ------
    NetctrlError
        It can't be started.
    """
    prepare = partial(bind_to_parent, os.getpid())
    try:
        return forking(lambda: subprocess.Popen([*map(str, argv)], preexec_fn=prepare, **popen))  # noqa: PLW1509 (only system calls)
    except (OSError, subprocess.SubprocessError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise NetctrlError(f"{argv[0]} can't be started: {why}") from None


def end_program(child: subprocess.Popen) -> None:
    """End it by SIGTERM, then by SIGKILL, and close its pipes."""
    if child.poll() is None:
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(_PATIENCE_S)
    if child.poll() is None:
        child.kill()
        child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def forking(act: Callable[[], Any]) -> Any:
    """Suppress the warning of Python 3.12 about forks with threads: these children use none of the threads' locks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
        return act()
