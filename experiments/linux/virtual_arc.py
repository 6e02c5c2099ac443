"""ARC's marking beside the kernel's own queues on ARC's staircase, kept in data/results/:
`python experiments/full.py virtual-arc [SEED ...]`.

Flows of Reno with ECN double from 10 to 800, as in Fig. 5 of the ARC paper, but for what costs wall time: steps last
half as long, and there are no Web sessions and no flows in the other direction, which take two thirds of a run. dualpi2
needs Linux 6.17, so two kernels have to be built; the oldest one that is built runs the others.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from arc.traffic import STAIRCASE, shortened, under
from common import used
from study import Case, Made, Record, Study, kernel_used, made_by

from netctrl.core.errors import NetctrlError
from netctrl.kernel.build import Kernel, kernels
from netctrl.kernel.scenarios.run import run_scenario
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.disciplines import KernelQueue, LinkQueue
from netctrl.model.io.provenance import provenance
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.sim.fluid.traffic import draw_flows

FLOWS = (10, 50, 100, 200, 400, 800)
STEP_S = 100.0
SETTLED_S = 50.0
"""From when on a step counts as settled: its flows start within the first 25 s."""
INTERVAL_S = 0.25
ARC, DROP_TAIL, DUALPI2 = "ARC", "drop-tail", "dualpi2"
_PACKETS = 500.0
"""Buffer of the disciplines that count packets, here of 1000 bytes: 500 kB, as the others'."""
QUEUES: Mapping[str, LinkQueue] = {
    ARC: ArcQueue(),
    "pie": KernelQueue(discipline="pie", parameters={"ecn": 1, "limit": _PACKETS}),
    "codel": KernelQueue(discipline="codel", parameters={"ecn": 1, "limit": _PACKETS}),
    "fq_codel": KernelQueue(discipline="fq_codel", parameters={"ecn": 1, "limit": _PACKETS}),
    "red": KernelQueue(
        discipline="red",
        parameters={"limit": 500e3, "min": 25e3, "max": 75e3, "probability": 0.1, "weight_log": 9, "ecn": 1},
    ),
    "cake": KernelQueue(discipline="cake"),
    DUALPI2: KernelQueue(discipline="dualpi2", parameters={"limit": _PACKETS}),
    DROP_TAIL: DropTailQueue(),
}
"""ARC as in its paper; the others with the kernel's defaults and ECN."""
BAND, LEAST_BAND_MS = 0.25, 10.0
"""Excess is a mean delay above the step's final one by this part of it, and by this time at least."""
AVERAGED_S = 10.0
SERIES_S = 2.0


def scenario(queue: LinkQueue, seed: int) -> Scenario:
    """The staircase of bulk flows, with a queue on its link."""
    short = shortened(STAIRCASE.scenario, 0.5)
    bulk = tuple(group for group in short.flows if group.id.startswith("ftp"))
    made = under(short.replace(flows=bulk, interval=INTERVAL_S), queue, seed)
    back = (msgspec.structs.replace(link, queue=DropTailQueue()) for link in made.links[1:])
    return made.replace(links=(made.links[0], *back))


def kernel_of(queue: str) -> Kernel:
    """The oldest kernel that is built; for dualpi2 the oldest that has it."""
    found = [each for each in kernels() if queue != DUALPI2 or "NET_SCH_DUALPI2" not in each.absent]
    if not found:
        raise NetctrlError(f"no kernel that has {queue}: `netctrl kernel build --source` with Linux 6.17 or later")
    return found[0]


def settling_s(delay_ms: np.ndarray, interval_s: float) -> float:
    """Time from a step's beginning after which the mean delay over 10 s has no more excess over the final one [s].

    The final one is that of the step's second half; NaN where there is excess late in that half too.
    """
    width = round(AVERAGED_S / interval_s)
    final = delay_ms[len(delay_ms) // 2 :].mean()
    mean = np.convolve(delay_ms, np.full(width, 1.0 / width), "valid")
    excess = np.flatnonzero(mean - final > max(BAND * final, LEAST_BAND_MS))
    if not len(excess):
        return 0.0
    time = (excess[-1] + width) * interval_s
    return float(time) if time <= 0.75 * len(delay_ms) * interval_s else float("nan")


def steps(result: Result, queue: str) -> list[dict[str, Any]]:
    """A row for each step: delay of the link's whole queue, utilization, shares that are marked and dropped."""
    capacity = result.scenario.links[0].capacity
    delay = 8e3 * result.series["backlog"][0] / capacity
    rows = []
    for number, flows in enumerate(FLOWS):
        begin, end = STEP_S * number, STEP_S * (number + 1)
        inside = (result.time_s > begin) & (result.time_s <= end * (1.0 + 1e-9))
        settled = inside & (result.time_s > begin + SETTLED_S)
        found = result.between(begin + SETTLED_S, end)
        link = found.of(found.links[0])
        rows.append(
            {
                "queue": queue,
                "seed": result.scenario.seed,
                "flows": flows,
                "kernel": result.simulator,
                "delay_ms": delay[settled].mean(),
                "delay_std_ms": delay[settled].std(),
                "delay_99_ms": np.quantile(delay[settled], 0.99),
                "utilization": used(found, found.links[0]),
                "marked": link["marks"],
                "dropped": link["loss"],
                "delay_most_ms": delay[inside].max(),
            }
        )
    return rows


def series(result: Result, queue: str) -> pd.DataFrame:
    """Mean delay over a few seconds each, of one run."""
    width = round(SERIES_S / result.scenario.interval)
    count = len(result.time_s) // width
    delay = 8e3 * result.series["backlog"][0, : count * width] / result.scenario.links[0].capacity
    return pd.DataFrame(
        {
            "queue": queue,
            "seed": result.scenario.seed,
            "time_s": SERIES_S * (np.arange(count) + 0.5),
            "delay_ms": delay.reshape(count, width).mean(axis=1),
        }
    )


def run(queue: str, seed: int) -> Made:
    case = scenario(QUEUES[queue], seed)
    made = provenance(argv=["experiments/full.py", STUDY.name], seed=seed)
    result = run_scenario(case, draw_flows(case, merged=False), made, kernel=kernel_of(queue))
    return Made(steps(result, queue), result.scenario, {"-series": series(result, queue)})


def record(before: Record, data: pd.DataFrame, case: Case, scenario: Scenario) -> Record:
    return before | {
        "scenario": scenario,
        "queues": QUEUES,
        "kernels": {name: kernel_used(kernel_of(name)) for name in QUEUES if name in set(data.queue)},
        "runs": len(data) // len(FLOWS),
    }


STUDY = Study(
    name="virtual-arc",
    key=("queue", "seed"),
    repeats=(1, 2, 3),
    cases=lambda seed: [(queue, seed) for queue in QUEUES],
    runs=made_by(run),
    record=record,
    digits=5,
)
"""A row for each step; "-series" has mean delays over 2 s."""
