"""Identification: speed and memory on long traces, beside SIPPY's N4SID.

Each run is a process of its own, which loads its libraries and the data first. Its seconds are CPU time of the call
alone, and its memory is what the call adds at its peak to what the process held before. The peak is the kernel's VmHWM,
set back before the call: getrusage's ru_maxrss outlives exec, so that it shows what the starting process once held.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
from rows import Row, span
from scipy.signal import lfilter

ORDER, HORIZON = 4, 20
SHORT, LONG = 10**5, 10**6
WIDE, CHANNELS = 50_000, 10  # order, inputs and outputs
ROUNDS = 3

OURS = """
from netctrl import SignalTrace, identify
def call(u, y):
    trace = SignalTrace(interval_s=1.0, input_values=u, output_values=y)
    return identify(trace, order={order}, method="n4sid", horizon={horizon})
call(u[:4000], y[:4000])  # loads the compiled kernels
"""
SIPPY = """
from sippy_unipi import system_identification
def call(u, y):
    return system_identification(y.T, u.T, "N4SID", SS_fixed_order={order}, SS_f={horizon}, SS_D_required=True)
"""
RUN = """
import json, time
from pathlib import Path
import numpy as np
def kib(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
data = np.load({path!r})
u, y = (part.copy() for part in np.hsplit(data, 2))
del data
{call}
Path("/proc/self/clear_refs").write_text("5")  # the peak is what is held now (proc(5))
before = kib("VmRSS:")
start = time.process_time()
call(u, y)
seconds = time.process_time() - start
print(json.dumps([seconds, (kib("VmHWM:") - before) / 1024]))
"""


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        short, long = (saved(count, Path(folder)) for count in (SHORT, LONG))
        wide = saved_wide(Path(folder))
        measured(OURS, short)  # a process that compiles would show that memory
        turns = [(measured(OURS, short), measured(SIPPY, short)) for _ in range(ROUNDS)]
        what, peer = f"N4SID, 2x2, horizon {HORIZON}, {SHORT} samples", "SIPPY N4SID"
        ours, theirs = ([pair[k][0] for pair in turns] for k in (0, 1))
        ratio = median(b / a for a, b in zip(ours, theirs, strict=True))
        yield Row(what, span(ours), peer, span(theirs), f"{ratio:.3g}", ">= 4x", ratio >= 4.0)
        ours, theirs = ([pair[k][1] for pair in turns] for k in (0, 1))
        ratio = median(b / a for a, b in zip(ours, theirs, strict=True))
        yield Row(f"{what}, memory", megabytes(ours), peer, megabytes(theirs), f"{ratio:.3g}", ">= 10x", ratio >= 10.0)
        turns = [(measured(OURS, wide, CHANNELS), measured(SIPPY, wide, CHANNELS)) for _ in range(ROUNDS)]
        ours, theirs = ([pair[k][0] for pair in turns] for k in (0, 1))
        ratio = median(b / a for a, b in zip(ours, theirs, strict=True))
        what = f"N4SID, {CHANNELS}x{CHANNELS}, horizon {HORIZON}, {WIDE} samples"
        yield Row(what, span(ours), peer, span(theirs), f"{ratio:.3g}", ">= 1x", ratio >= 1.0)
        alone = [measured(OURS, long) for _ in range(ROUNDS)]
        seconds, memory = ([each[k] for each in alone] for k in (0, 1))
        what = f"N4SID, 2x2, horizon {HORIZON}, {LONG} samples"
        yield Row(what, span(seconds), "none", "", "", "<= 1.5 s", median(seconds) <= 1.5)
        yield Row(f"{what}, memory", megabytes(memory), "none", "", "", "<= 150 MB", median(memory) <= 150.0)


def saved(count: int, folder: Path) -> Path:
    """A file with two inputs (GBN) and two outputs of four states with 10 % of noise."""
    random = np.random.default_rng(0)
    u = np.where(np.cumsum(random.random((count, 2)) < 0.2, axis=0) % 2, 1.0, -1.0)
    slow, fast = ([0.0, 0.3], [1.0, -0.8]), ([0.0, 1.0, 0.5], [1.0, -1.5, 0.7])
    y = np.stack([lfilter(*fast, u[:, 0]) + lfilter(*slow, u[:, 1]), lfilter(*slow, u[:, 0]) + u[:, 1]], axis=1)
    y += 0.1 * y.std(axis=0) * random.standard_normal((count, 2))
    path = folder / f"{count}.npy"
    np.save(path, np.hstack([u, y]))
    return path


def saved_wide(folder: Path) -> Path:
    """A file with inputs (GBN) and outputs of a plant of random states, with 10 % of noise."""
    random, n = np.random.default_rng(0), CHANNELS
    A, B, C, D = random.standard_normal((4, n, n))
    A *= 0.9 / np.abs(np.linalg.eigvals(A)).max()
    u = np.where(np.cumsum(random.random((WIDE, n)) < 0.2, axis=0) % 2, 1.0, -1.0)
    x, y = np.zeros(n), np.empty((WIDE, n))
    for t in range(WIDE):
        y[t] = C @ x + D @ u[t]
        x = A @ x + B @ u[t]
    path = folder / "wide.npy"
    np.save(path, np.hstack([u, y + 0.1 * y.std(axis=0) * random.standard_normal(y.shape)]))
    return path


def measured(call: str, path: Path, order: int = ORDER) -> tuple[float, float]:
    """CPU seconds and MB of one call in a fresh process."""
    code = RUN.format(path=str(path), call=call.format(order=order, horizon=HORIZON))
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seconds, grown = json.loads(ran.stdout.splitlines()[-1])
    return seconds, grown


def megabytes(values: list[float]) -> str:
    return f"{median(values):.3g} ({min(values):.3g} to {max(values):.3g}) MB"
