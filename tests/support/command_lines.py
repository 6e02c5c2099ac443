"""Command lines in tests, as a person and a script see them."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest


class Ran(NamedTuple):
    """What a line ended with."""

    status: int
    out: str
    err: str


Run = Callable[..., Ran]
"""A line, and another command to run it with, to what it ended with."""


class Terminal(io.StringIO):
    """A stream that people look at."""

    def isatty(self) -> bool:
        return True

    @property
    def left(self) -> str:
        """What the last line drawn leaves on the screen."""
        return self.getvalue().rstrip("\r").rpartition("\r")[2].strip()


def runner(main: Callable[[Sequence[str]], int], capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs lines, as in a shell, with a command's `main`, each with what it alone prints."""

    def run(line: str, command: Callable[[Sequence[str]], int] = main) -> Ran:
        capsys.readouterr()
        status = command(shlex.split(line))
        return Ran(status, *capsys.readouterr())

    return run


def good(ran: Ran) -> str:
    """What a line printed that had nothing to complain about."""
    assert (ran.status, ran.err) == (0, ""), ran
    return ran.out


def the_error(ran: Ran, status: int = 2) -> str:
    """The one line of stderr; wrong use prints nothing else."""
    assert ran.status == status, ran
    assert re.fullmatch(r"error: [^\n]+\n", ran.err), ran.err
    assert status != 2 or ran.out == "", ran.out
    return ran.err


def files(folder: Path) -> list[str]:
    """Names of what is in a folder."""
    return sorted(path.name for path in folder.iterdir())
