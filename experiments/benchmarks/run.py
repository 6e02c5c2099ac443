"""One table of ratios, each against a named peer in the same run: `python experiments/benchmarks/run.py`.

Ours and the peer take turns, so that a machine whose speed drifts slows both; each time is shown with its noise as
median (min to max). Nothing here is a test: a missed target is printed, not raised.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

# One core, for numpy's threads too: set before numpy is loaded, and inherited by the processes timed below.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import control
import fluid
import numpy as np
from scipy.optimize import brentq

import netctrl
from netctrl.datasets import scenario_path
from netctrl.design.arc import arc_gain_bands
from netctrl.fluid.linearize import arc_loop, arc_sampled_loop
from netctrl.frequency.loop import magnitude, phase_lag, to_control
from netctrl.frequency.margins import margins
from netctrl.frequency.sampled import gain_limit, spectral_radius
from netctrl.model.arc import ArcSetting
from netctrl.model.scenario import read_scenario
from netctrl.sim.problem import problem
from netctrl.sim.run import class_steps, simulate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import packets

SETTING = ArcSetting(capacity_packet_per_s=1250.0)
MILLION = 1000


class Row(NamedTuple):
    what: str
    peer: str
    ours: list[float]
    theirs: list[float]
    target: str
    met: Callable[[float, float], bool]  # (median of ours, median of peer/ours)


def alternate(ours: Callable[[], object], peer: Callable[[], object], rounds: int, repeats: int = 1) -> tuple:
    """Seconds for one call of each, in turns, after one call of each that isn't counted."""
    times: tuple[list[float], list[float]] = ([], [])
    ours(), peer()
    for _ in range(rounds):
        for call, kept in zip((ours, peer), times, strict=True):
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            kept.append((time.perf_counter() - start) / repeats)
    return times


def exact_margins() -> Row:
    loop = arc_loop(50.0, 0.5, SETTING, "paper").scaled(1.42e-5)
    pade = to_control(loop, 5)
    ours, theirs = alternate(lambda: margins(loop), lambda: control.margin(pade), rounds=15, repeats=40)
    return Row("exact margins, one loop", "python-control margin, Pade-5", ours, theirs, ">= 8x", lambda _, r: r >= 8)


def million_points() -> Row:
    flows, rtt = np.geomspace(5, 500, MILLION), np.geomspace(0.02, 3.0, MILLION)[:, None]
    sample = 300
    random = np.random.default_rng(0)
    some = list(zip(random.uniform(5, 500, sample), random.uniform(0.02, 3.0, sample), strict=True))

    def by_brentq() -> None:
        """The same three roots, one point at a time, with SciPy's solver on the same loop functions."""
        for n, tau in some:
            loop = arc_loop(n, tau, SETTING, "paper")
            for level in (np.pi, 5 * np.pi / 6, 2 * np.pi / 3):
                w = brentq(lambda x, loop=loop, level=level: phase_lag(loop, x) - level, 1e-9, 4.0 / tau, rtol=1e-14)
                magnitude(loop, w)

    ours, theirs = alternate(lambda: arc_gain_bands(flows, rtt, SETTING), by_brentq, rounds=5)
    scaled = [t * MILLION**2 / sample for t in theirs]
    what = f"map of {MILLION**2} (N, tau) points"
    return Row(what, f"SciPy brentq a point, from {sample}", ours, scaled, "<= 3 s", lambda t, _: t <= 3.0)


def sampled_limit() -> Row:
    loop = arc_sampled_loop(50.0, 0.5, ArcSetting(capacity_packet_per_s=1250.0, epoch_s=0.1), "noq")

    def by_eigenvalues() -> float:
        low, high = 0.0, 1e-3
        while high - low > 1e-12 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if spectral_radius(loop, middle) < 1.0 else (low, middle)
        return low

    ours, theirs = alternate(lambda: gain_limit(loop), by_eigenvalues, rounds=9, repeats=3)
    return Row("limit of the sampled loop", "bisection on numpy eigvals", ours, theirs, "none", lambda *_: True)


def fluid_kernel() -> list[Row]:
    """Seconds for a million class-steps; the peer computes the same numbers (`fluid.agree`)."""
    difference = fluid.agree()
    rows = []
    for classes, steps in ((100, 20_000), (1000, 4_000)):
        chosen = fluid.scenario(classes, steps)
        ready = [problem(chosen) for _ in range(40)]  # a run changes its arrays: each has its own
        ours, theirs = alternate(lambda r=ready: fluid.by_kernel(r.pop()), lambda r=ready: fluid.by_numpy(r.pop()), 7)
        millions = classes * steps / 1e6
        what = f"fluid, a million class-steps of {classes} classes"
        peer = f"vectorised NumPy (differs by {difference:.0e})"
        target = ("<= 12.5 ms (8e7/s) and >= 20x", lambda t, r: t <= 0.0125 and r >= 20.0)
        if classes == 1000:  # the more classes, the better NumPy's overhead is shared
            target = ("<= 12.5 ms (8e7/s)", lambda t, _: t <= 0.0125)
        rows.append(Row(what, peer, [t / millions for t in ours], [t / millions for t in theirs], *target))
    return rows


def fluid_and_packets() -> list[Row]:
    """The staircase of 10 to 400 bulk flows: once in ns-3, compiled before, against the fluid."""
    if not packets.available():
        return []
    scenario = read_scenario(scenario_path("arc-staircase-bulk"))
    simulate(scenario)
    ours = []
    for _ in range(5):
        start = time.perf_counter()
        simulate(scenario)
        ours.append(time.perf_counter() - start)
    ran = packets.timed_ns3(scenario)
    what = f"staircase of 900 s, fluid ({class_steps(scenario) / 1e6:.0f}e6 class-steps)"
    peer = f"{ran.simulator} ({ran.peak_mib:.0f} MiB)"
    return [Row(what, peer, ours, [ran.wall_s] * len(ours), ">= 300x", lambda _, r: r >= 300.0)]


def process(*arguments: str) -> Callable[[], object]:
    # In an empty folder: what is installed is measured, not the checkout.
    return lambda: subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=tempfile.gettempdir()
    )


def whole_process() -> list[Row]:
    cases = [
        (("-m", "netctrl.design", "arc", "--N", "50"), "import numpy, scipy.optimize", 2.0),
        (("-m", "netctrl.design", "--help"), "import numpy", 1.3),
        (("-m", "netctrl.design", "arc", "--help"), "import numpy", 1.3),
    ]
    rows = []
    for command, imports, most in cases:
        ours, theirs = alternate(process(*command), process("-c", imports), rounds=15)
        name = f"python {' '.join(command)}"
        target = f"<= {most:g}x the time"
        rows.append(Row(name, f"python -c '{imports}'", ours, theirs, target, lambda _, r, m=most: 1 / r <= m))
    return rows


def span(times: Sequence[float]) -> str:
    units = ((1.0, "s"), (1e3, "ms"), (1e6, "us"))
    scale, unit = next((s, u) for s, u in units if median(times) * s >= 1.0 or u == "us")
    return f"{median(times) * scale:.3g} ({min(times) * scale:.3g} to {max(times) * scale:.3g}) {unit}"


def main() -> int:
    versions = f"netctrl {netctrl.__version__}, numpy {np.__version__}, python-control {control.__version__}"
    print(f"{versions}; one core; median (min to max)\n")
    rows = [exact_margins(), million_points(), sampled_limit(), *fluid_kernel(), *fluid_and_packets(), *whole_process()]
    table = [("what", "ours", "peer", "peer's time", "peer/ours", "target", "")]
    for row in rows:
        ratio = median(b / a for a, b in zip(row.ours, row.theirs, strict=True))
        mark = "" if row.target == "none" else "met" if row.met(median(row.ours), ratio) else "MISSED"
        table.append((row.what, span(row.ours), row.peer, span(row.theirs), f"{ratio:.3g}", row.target, mark))
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
