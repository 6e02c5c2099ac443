"""The fluid kernel against the same scheme in vectorised NumPy, a Python loop over steps, arrays over classes; and the
fluid against packets.
"""

import time
from collections.abc import Iterator

import numpy as np
import packets
from rows import Agreement, Row, Turns, against, alternate, relative

from netctrl.laws.aqm.arc import ArcQueue
from netctrl.model.datasets import scenario_path
from netctrl.scenario.links import Link
from netctrl.scenario.read import read_scenario_file as read_scenario
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.fluid.kernel import advance
from netctrl.sim.fluid.problem import Problem, problem
from netctrl.sim.fluid.run import class_steps, simulate


def rows() -> Iterator[Row]:
    yield from kernel()
    if packets.available():
        yield staircase()


def kernel() -> Iterator[Row]:
    """Seconds for a million class-steps; the peer computes the same numbers (`agree`)."""
    same = agree()
    for classes, steps in ((100, 20_000), (1000, 4_000)):
        chosen = scenario(classes, steps)
        ready = [problem(chosen) for _ in range(40)]  # a run changes its arrays: each has its own
        queue = chosen.links[0].queue
        turns = alternate(lambda r=ready: by_kernel(r.pop()), lambda r=ready, q=queue: by_numpy(r.pop(), q), 7)
        millions = classes * steps / 1e6
        ours, theirs = ([t / millions for t in times] for times in turns[:2])
        what = f"fluid, a million class-steps of {classes} classes"
        peer = "vectorised NumPy"
        # The more classes, the better NumPy's overhead is shared.
        target = f"<= 12.5 ms (8e7/s){' and >= 20x' if classes < 1000 else ''}"
        yield against(what, peer, turns._replace(ours=ours, theirs=theirs), target, same)


def staircase() -> Row:
    """The staircase of 10 to 400 bulk flows: once in ns-3, compiled before, against the fluid."""
    chosen = read_scenario(scenario_path("arc-staircase-bulk"))
    simulate(chosen)
    ours = []
    for _ in range(5):
        start = time.perf_counter()
        simulate(chosen)
        ours.append(time.perf_counter() - start)
    ran = packets.timed_ns3(chosen)
    what = f"staircase of 900 s, fluid ({class_steps(chosen) / 1e6:.0f}e6 class-steps)"
    peer = f"{ran.simulator} ({ran.peak_mib:.0f} MiB)"
    turns = Turns(ours, [ran.wall_s] * len(ours), (None, None))
    return against(what, peer, turns, ">= 300x", "a fluid and packets")


def scenario(classes: int, steps: int, step: float = 0.005) -> Scenario:
    """Classes of 60 ms to 1 s on a link that is as wide as they are many, under ARC."""
    line = Link(
        id="line",
        source="a",
        target="b",
        capacity=2e5 * classes,
        buffer=2e4 * classes,
        queue=ArcQueue(alpha=1e-3 / classes),
    )
    flows = Flow(id="tcp", path=("line",), rtt="60ms:1s", count=classes)
    return Scenario(
        name="bench",
        duration=steps * step,
        interval=100 * step,
        step=step,
        links=(line,),
        flows=(flows,),
        initial_window=1,
    )


def by_kernel(ready: Problem) -> np.ndarray:
    """Backlogs at the samples, by the kernel [packet]."""
    advance(ready.plant, ready.state, ready.record, np.zeros((0, ready.steps)), 0, ready.steps)
    return ready.record.links[0, 0]


def by_numpy(ready: Problem, queue: ArcQueue) -> np.ndarray:
    """Backlogs at the samples, by NumPy [packet]; the queue has no target, so that it counts in no unit."""
    plant = ready.plant
    h, rtt, buffer = plant.step, plant.rtt, float(plant.buffer[0])
    C = float(ready.state.capacity[0])
    alpha, d, gamma, q0 = queue.alpha, queue.epoch, queue.target_utilization, queue.target_queue
    n, ring = len(rtt), ready.state.signal.shape[1]
    mask, columns = ring - 1, np.arange(n)
    W, rate, signal = np.array(ready.state.window), np.zeros((ring, n)), np.zeros(ring)
    q = rise = p = b = 0.0
    epochs = 0
    kept = []
    for step in range(ready.steps):
        R = rtt + max(q + 0.5 * rise, 0.0) / C
        lag = R * (1.0 / h)
        whole = lag.astype(np.int64)
        part = 1.0 - (lag - whole)
        older, newer = (step - whole - 1) & mask, (step - whole) & mask
        x = rate[older, columns]
        x += part * (rate[newer, columns] - x)
        s = signal[older]
        s += part * (signal[newer] - s)
        pace, cut = 1.0 / R, 0.5 * x * s
        middle = W + 0.5 * h * (pace - W * cut)
        W = np.maximum(W + h * (pace - middle * cut), 1.0)
        sent = middle * pace
        rate[step & mask] = sent
        arrivals = h * float(sent.sum())
        if step * h >= (epochs + 1) * d * (1.0 - 1e-12) - 1e-12:
            epochs += 1
            p, b = min(max(p + alpha * (b - gamma * (d * C - (q - q0))), 0.0), 1.0), 0.0
        offered = q + arrivals
        after = min(offered - min(offered, h * C), buffer)
        lost = offered - min(offered, h * C) - after
        rise, q = after - q, after
        b += arrivals - lost
        signal[step & mask] = 1.0 - (1.0 - p) * (1.0 - (lost / arrivals if lost > 0.0 else 0.0))
        if (step + 1) % ready.record.every == 0:
            kept.append(q)
    return np.array(kept)


def agree(classes: int = 100, steps: int = 20_000) -> Agreement:
    """Backlogs of the two: both compute the same, but for the order of sums."""
    chosen = scenario(classes, steps)
    theirs = by_numpy(problem(chosen), chosen.links[0].queue)
    return relative(by_kernel(problem(chosen)), theirs, 1e-9, "backlogs")
