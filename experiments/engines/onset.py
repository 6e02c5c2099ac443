"""PIE and dualpi2 in the kernel at round trips below and above those that their certificates allow.

`PYTHONPATH=experiments python -m engines.onset` draws docs/assets/engines-onset.png; `dualpi2` needs Linux 6.17.
"""

import sys
from typing import NamedTuple

import numpy as np
import pandas as pd
from common import ASSETS
from matplotlib.figure import Figure

import netctrl
from netctrl.kernel.build import chosen_kernel
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.disciplines import KernelQueue
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

SECONDS, WARM_UP, SHOWN = 80.0, 20.0, 20.0
PACKET = 1514
COUNT = 10


class Point(NamedTuple):
    """Ten Reno flows at a base round trip."""

    kind: str
    rate: float
    """[bit/s]"""
    rtt: float
    """Without the queue [s]."""


POINTS = (
    Point("pie", 30e6, 0.05),
    Point("pie", 30e6, 0.1),
    Point("pie", 100e6, 0.05),
    Point("pie", 100e6, 0.1),
    Point("dualpi2", 20e6, 0.02),
    Point("dualpi2", 20e6, 0.15),
)
QUEUES = {"pie": PieQueue(), "dualpi2": KernelQueue(discipline="dualpi2")}


def scenario(point: Point, seed: int = 1) -> Scenario:
    line = Link(id="line", source="a", target="b", capacity=point.rate, delay=point.rtt / 4, queue=QUEUES[point.kind])
    flows = Flow(id="flows", path=("line",), rtt=point.rtt, count=COUNT, start=("0s", "2s"))
    return Scenario(
        name=f"{point.kind} at {1e3 * point.rtt:g} ms",
        links=(line,),
        flows=(flows,),
        duration=SECONDS,
        warmup=WARM_UP,
        interval=0.02,
        packet_size=PACKET,
        seed=seed,
    )


def main(argv: list[str]) -> int:
    points = [point for point in POINTS if point.kind != "dualpi2" or "NET_SCH_DUALPI2" not in chosen_kernel().absent]
    figure = Figure(figsize=(9.0, 1.5 * len(points)), layout="constrained")
    axes = figure.subplots(len(points), 1, sharex=True, squeeze=False)[:, 0]
    rows = []
    for axis, point in zip(axes, points, strict=True):
        result = netctrl.simulate(scenario(point), "kernel")
        delay = 1e3 * 8.0 * result.series["backlog"][0] / point.rate
        later = delay[result.time_s > WARM_UP]
        rows.append(
            {
                "queue": point.kind,
                "rate [Mbit/s]": f"{point.rate / 1e6:g}",
                "base RTT [ms]": f"{1e3 * point.rtt:g}",
                "window [packet]": f"{point.rate * (point.rtt + later.mean() / 1e3) / (8.0 * PACKET * COUNT):.2g}",
                "queueing delay [ms]": f"{later.mean():.3g} ± {later.std():.2g}",
                "5 to 95 %": f"{np.quantile(later, 0.05):.2g} to {np.quantile(later, 0.95):.3g}",
                "utilization": f"{result['utilization', result.links[0]]:.3f}",
            }
        )
        shown = (result.time_s > WARM_UP) & (result.time_s <= WARM_UP + SHOWN)
        axis.plot(result.time_s[shown], delay[shown], color="#1f4e9c", lw=0.8)
        axis.axhline(15.0, color="#888888", lw=0.8)
        axis.set(ylabel="delay [ms]", ylim=(0.0, 40.0))
        title = f"{point.kind}, {point.rate / 1e6:g} Mbit/s, base RTT {1e3 * point.rtt:g} ms"
        axis.set_title(title, fontsize=9, loc="left")
    axes[-1].set_xlabel("time [s]")
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    if "--docs" in argv:
        figure.savefig(ASSETS / "engines-onset.png", dpi=150)
        table.to_csv(ASSETS / "engines-onset.csv", index=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
