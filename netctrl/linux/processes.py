"""Child processes in a namespace, with a time limit, that end with their parent: programs and functions."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from netctrl.errors import NetctrlError
from netctrl.linux.namespace import bind_to_parent, enter

_PATIENCE_S = 2.0  # from SIGTERM to SIGKILL
_FORK = multiprocessing.get_context("fork")


class Job:
    """Function running in a child: `result` waits for its result, `stop` ends it."""

    def __init__(
        self, namespace: int | None, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
    ) -> None:
        self._answer, answer = _FORK.Pipe(duplex=False)
        self.pid = 0
        self._process = _FORK.Process(
            target=_work, args=(namespace, os.getpid(), answer, function, args, kwargs), daemon=True
        )
        _forking(self._process.start)
        answer.close()
        self.pid = self._process.pid or 0
        self._found: tuple[bool, Any] | None = None
        self._closed = False

    def running(self) -> bool:
        """Whether it is still running."""
        return not self._closed and self._process.is_alive()

    def result(self, timeout_s: float | None = None) -> Any:
        """Wait for the function's result; its exception is raised here, with the child's traceback as a note.

        Raises
        ------
        TimeoutError
            It isn't done within `timeout_s`; it keeps running.
        NetctrlError
            It ended without a result, as after `stop`.
        """
        if self._found is None:
            if not self._answer.poll(timeout_s):
                raise TimeoutError(f"process {self.pid} isn't done after {timeout_s:g} s")
            try:
                self._found = self._answer.recv()
            except EOFError:
                self._process.join(_PATIENCE_S)
                why = f"process {self.pid} ended with status {self._process.exitcode} without a result"
                self._found = False, NetctrlError(why)
            self._process.join(_PATIENCE_S)
        good, value = self._found
        if not good:
            raise value
        return value

    def stop(self) -> None:
        """End it by SIGTERM, then by SIGKILL."""
        if self.running():
            self._process.terminate()
            self._process.join(_PATIENCE_S)
        if self.running():
            self._process.kill()
            self._process.join(_PATIENCE_S)

    def close(self) -> None:
        """End it and close its resources."""
        self.stop()
        self._closed = True
        self._answer.close()
        with suppress(ValueError):  # a process that can't be killed is still running
            self._process.close()


def start_function(namespace: int | None, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Job:
    """Run a function in a child within a namespace (a descriptor; None: the caller's).

    The child is a fork: arguments need not be picklable, but the result must be. It is killed when the calling thread
    ends.
    """
    return Job(namespace, function, args, kwargs)


def start_program(namespace: int | None, argv: Sequence[str], **popen: Any) -> subprocess.Popen:
    """Run a program within a namespace (a descriptor; None: the caller's), without a shell; `popen` are Popen's
    options.

    It is killed when the calling thread ends.

    Raises
    ------
    NetctrlError
        It can't be started.
    """
    parent, words = os.getpid(), [str(word) for word in argv]

    def prepare() -> None:
        bind_to_parent(parent)
        if namespace is not None:
            enter(namespace)

    try:
        return _forking(lambda: subprocess.Popen(words, preexec_fn=prepare, **popen))  # noqa: PLW1509 (only system calls)
    except (OSError, subprocess.SubprocessError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise NetctrlError(f"{argv[0]} can't be started: {why}") from None


def end_child(child: Job | subprocess.Popen) -> None:
    """End a function or a program by SIGTERM, then by SIGKILL, and close its pipes."""
    if isinstance(child, Job):
        child.close()
        return
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


def _forking(act: Callable[[], Any]) -> Any:
    """Suppress the warning of Python 3.12 about forks with threads: these children use none of the threads' locks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
        return act()


def _work(namespace: int | None, parent: int, answer: Any, function: Callable, args: tuple, kwargs: dict) -> None:
    """Body of the child."""
    bind_to_parent(parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its children
    try:
        if namespace is not None:
            enter(namespace)
        found = True, function(*args, **kwargs)
    except Exception as error:
        error.add_note(traceback.format_exc())
        found = False, error
    try:
        answer.send(found)
    except (BrokenPipeError, ConnectionError):  # the parent is gone
        pass
    except Exception as error:  # a result, or an error, that can't be pickled
        answer.send((False, NetctrlError(f"the result can't be sent: {error}")))
