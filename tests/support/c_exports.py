"""Exports to C, compiled with warnings as errors."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-Werror", "-O2"]
SANITIZED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def written(files: Mapping[str, str], folder: Path) -> list[str]:
    """Write an export; the names of its sources, without check.c."""
    for name, text in files.items():
        (folder / name).write_text(text)
    return [name for name in files if name.endswith(".c") and name != "check.c"]


def checked(files: Mapping[str, str], folder: Path, flags: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Compile an export's program and run it on its vectors."""
    command = ["gcc", *STRICT, *flags, "-o", "check", "check.c", *written(files, folder), "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return subprocess.run(["./check", "vectors.txt"], cwd=folder, capture_output=True, text=True, check=False)
