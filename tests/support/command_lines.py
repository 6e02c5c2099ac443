"""Command lines in tests, as a person and a script see them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

import pytest

Run = Callable[..., tuple[int, str, str]]
"""A line, and another command to run it with, to (exit status, stdout, stderr)."""


def runner(main: Callable[[Sequence[str]], int], capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs lines with a command's `main`, each with what it alone prints."""

    def run(line: str, command: Callable[[Sequence[str]], int] = main) -> tuple[int, str, str]:
        capsys.readouterr()
        status = command(shlex.split(line))
        return status, *capsys.readouterr()

    return run
