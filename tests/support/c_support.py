"""Oracles in C that replay rows of unsigned 64-bit numbers, for a comparison bit by bit."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from places import TESTS

FLAGS = ("-std=c11", "-O1", "-fwrapv", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wno-sign-conversion")


def replayed(name: str, takes: int, gives: int, rows: Sequence[Sequence[int]], folder: Path) -> np.ndarray:
    """What `replay` of an oracle in C returns for each row, in order; rows are filled with 0."""
    source = [TESTS / "oracles" / name, f"-DTAKES={takes}", f"-DGIVES={gives}", "-o", folder / "law"]
    subprocess.run(["gcc", *FLAGS, *source], check=True, timeout=120)
    given = np.array([(*row, *[0] * (takes - len(row))) for row in rows], dtype="<u8")
    done = subprocess.run([folder / "law"], input=given.tobytes(), capture_output=True, check=True, timeout=120)
    return np.frombuffer(done.stdout, dtype="<u8").reshape(-1, gives)


def spread(random: np.random.Generator, most: int) -> int:
    """A whole number from 0 to `most`, of any size: uniform in its number of bits; now and then a bound."""
    if random.random() < 0.05:
        return int(random.choice([0, 1])) * most
    bits = int(random.integers(0, most.bit_length() + 1))
    return min(int(random.integers(0, 2**bits, dtype=np.uint64, endpoint=False)) if bits else 0, most)
