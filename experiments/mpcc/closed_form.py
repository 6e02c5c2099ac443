"""MPCC's closed form against DAQP and qpOASES on random feasible programs: `python experiments/mpcc/closed_form.py
[COUNT]`, by default 10,000 for each horizon.

Flows from 1 to 64, windows of 1 kB to 1 MB, B from 0.01 to 30, weights 1 : 0.001 to 1 : 1000, fair windows that flows
can't fill as well, queues anywhere in the feasible region, above their bound too.
"""

import sys

import numpy as np

from netctrl.laws.window.explicit import decide_window
from netctrl.mpc.explicit import feasible_queue, queue_gain, window_problem
from netctrl.mpc.formulate import condensed
from netctrl.mpc.qp.program import QPStatus
from netctrl.mpc.qp.solve import open_solver

HORIZONS = (3, 5, 10, 20)
SOLVERS = ("daqp", "qpoases")
COUNT, SEED = 10_000, 0


def disagreement(horizon: int, count: int, seed: int = SEED) -> dict[str, float]:
    """Greatest |ΔW|/P_BD of each solver; infinite where one finds no solution."""
    rng = np.random.default_rng([seed, horizon])
    worst = dict.fromkeys(SOLVERS, 0.0)
    for _ in range(count):
        flows, bdp, B = int(rng.integers(1, 65)), 10.0 ** rng.uniform(3.0, 6.0), 10.0 ** rng.uniform(-2.0, 1.5)
        c = min(bdp / flows * 10.0 ** rng.uniform(-0.5, 0.1), bdp)
        weights = 1.0, 10.0 ** rng.uniform(-3.0, 3.0)
        queue = rng.uniform(0.0, feasible_queue(B, c, bdp, flows)[1])
        requested = window_problem(
            input_gain=B,
            fair_window_bytes=c,
            bdp_bytes=bdp,
            flows=flows,
            horizon=horizon,
            queue_weight=weights[0],
            window_weight=weights[1],
        )
        program = condensed(requested).program(np.array([queue]))
        window = decide_window(queue, queue_gain(B, horizon, *weights), c, B, flows, bdp)
        for solver in SOLVERS:
            data = program.g.copy(), program.lower.copy(), program.upper.copy()
            answer = open_solver(program, solver).solve(*data)
            off = abs(bdp * answer.x[0] + c - window) / bdp if answer.status is QPStatus.SOLVED else np.inf
            worst[solver] = max(worst[solver], float(off))
    return worst


if __name__ == "__main__":
    requested = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    for steps in HORIZONS:
        found = disagreement(steps, requested)
        listed = ", ".join(f"{name} {value:.2g}" for name, value in found.items())
        print(f"P = {steps}, {requested} programs: greatest |ΔW|/P_BD: {listed}", flush=True)
