"""Programs in C that replay rows of unsigned 64-bit numbers, for a comparison bit by bit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

HEAD = """
#include <stdint.h>
#include <stdio.h>
typedef uint32_t u32; typedef uint64_t u64; typedef int64_t i64;
"""
MAIN = """
int main(void)
{
    u64 in[TAKES], out[GIVES];
    while (fread(in, sizeof in, 1, stdin) == 1) {
        for (int k = 0; k < GIVES; k++) out[k] = 0;
        replay(in, out);
        fwrite(out, sizeof out, 1, stdout);
    }
    return 0;
}
"""
FLAGS = ("-std=c11", "-O1", "-fwrapv", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wno-sign-conversion")


def replayed(code: str, takes: int, gives: int, rows: np.ndarray, folder: Path) -> np.ndarray:
    """What a function `replay(const u64 *in, u64 *out)` of C returns for each row, in order; it may keep a state."""
    (folder / "law.c").write_text(f"{HEAD}\nenum {{ TAKES = {takes}, GIVES = {gives} }};\n{code}\n{MAIN}")
    subprocess.run(["gcc", *FLAGS, "law.c", "-o", "law"], cwd=folder, check=True, timeout=120)
    given = np.zeros((len(rows), takes), dtype="<u8")
    given[:, : rows.shape[1]] = rows
    done = subprocess.run([folder / "law"], input=given.tobytes(), capture_output=True, check=True, timeout=120)
    return np.frombuffer(done.stdout, dtype="<u8").reshape(-1, gives)


def spread(random: np.random.Generator, most: int) -> int:
    """A whole number from 0 to `most`, of any size: uniform in its number of bits; now and then a bound."""
    if random.random() < 0.05:
        return int(random.choice([0, 1])) * most
    bits = int(random.integers(0, most.bit_length() + 1))
    return min(int(random.integers(0, 2**bits, dtype=np.uint64, endpoint=False)) if bits else 0, most)
