"""Every queue in the fluid beside itself in ns-3, in one table: ARC from its Design, and all of its peers."""

import numpy as np
import pandas as pd
from common import Outcome, used
from matplotlib.figure import Figure
from packets import available, run_all

import netctrl
from netctrl.laws.aqm.arc import arc_queue
from netctrl.laws.aqm.avq import AvqQueue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue, Queue
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.aqm.sfc import SfcQueue
from netctrl.sim.fluid.run import simulate

FLOWS, RTT = 50, 0.2


def queues() -> dict[str, Queue]:
    design = netctrl.arc(FLOWS, RTT, epoch_s=RTT)
    return {
        "arc": arc_queue(design.law, 1000.0),
        "pi": PiQueue(),
        "avq": AvqQueue(),
        "sfc": SfcQueue(),
        "red": RedQueue(),
        "pie": PieQueue(),
        "codel": CodelQueue(),
        "droptail": DropTailQueue(),
    }


def scenario(chosen: dict[str, Queue]) -> netctrl.Scenario:
    """A link for each queue, all with the same traffic and none with any other's."""
    links, flows = [], []
    for name, queue in chosen.items():
        links.append(
            netctrl.Link(
                id=name,
                source=f"{name}-a",
                target=f"{name}-b",
                capacity="10Mbit",
                delay="10ms",
                buffer="500kB",
                queue=queue,
            )
        )
        flows.append(netctrl.Flow(id=name, path=(name,), rtt="150ms:250ms", count=FLOWS, start="0s:5s"))
    return netctrl.Scenario(
        name="50 flows, 150 to 250 ms, under each queue",
        duration=100.0,
        warmup=40.0,
        links=tuple(links),
        flows=tuple(flows),
        initial_window=1,
    )


def main(*, full: bool = False) -> Outcome:
    kinds = list(queues().items())
    halves = [scenario(dict(kinds[:4])), scenario(dict(kinds[4:]))]  # a program for each core
    results = {"fluid": [simulate(half) for half in halves]}
    if available():
        results["ns-3"] = run_all(halves)
    rows = []
    for simulator, pair in results.items():
        for result, name in [(each, name) for each in pair for name in each.links]:
            link = result.of(name)
            rows.append(
                {
                    "queue": name,
                    "simulator": simulator,
                    "utilization": used(result, name),
                    "backlog_mean_kb": link["backlog"] / 1e3,
                    "backlog_std_kb": link["backlog std"] / 1e3,
                    "signal": link["marks"] + link["loss"],
                    "loss": link["loss"],
                }
            )
    data = pd.DataFrame(rows)
    fluid = data[data.simulator == "fluid"].set_index("queue")
    computed = {"peers-arc-fluid": float(fluid.utilization["arc"])}
    if "ns-3" in results:
        packets = data[data.simulator == "ns-3"].set_index("queue")
        computed |= {
            "peers-arc-ns3": float(packets.utilization["arc"]),
            "peers-utilization": float((packets.utilization - fluid.utilization).abs().max()),
            "peers-signal": float((packets.signal / fluid.signal).median()),
        }
    return Outcome("peers", "arc", data, draw(data), computed, beside(data))


def beside(data: pd.DataFrame) -> pd.DataFrame:
    """A row for each queue, the fluid beside ns-3, rounded for reading."""
    columns = {
        "utilization": ("utilization", "{:.3f}"),
        "backlog_mean_kb": ("mean backlog [kB]", "{:.0f}"),
        "signal": ("marked or lost", "{:.4f}"),
    }
    rows = pd.DataFrame({"queue": data.queue.unique()})
    for column, (label, form) in columns.items():
        for name, part in data.groupby("simulator", sort=False):
            rows[f"{label}: {name}"] = part[column].map(form.format).to_numpy()
    return rows


def draw(data: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(11.0, 3.8), layout="constrained")
    panels = figure.subplots(1, 3)
    columns = {"utilization": "utilization", "backlog_mean_kb": "mean backlog [kB]", "signal": "marked or lost"}
    names = list(dict.fromkeys(data.queue))
    place = np.arange(len(names))
    colours = {"fluid": "#1f4e9c", "ns-3": "#b45f06"}
    for axes, (column, label) in zip(panels, columns.items(), strict=True):
        for k, (simulator, part) in enumerate(data.groupby("simulator", sort=False)):
            values = part.set_index("queue")[column].reindex(names)
            axes.bar(place + 0.4 * k - 0.2, values, 0.38, color=colours[simulator], label=simulator)
        axes.set_xticks(place, names, rotation=45)
        axes.set_title(label, fontsize=10)
        axes.grid(axis="y", color="#dddddd", lw=0.6)
    panels[0].set_ylim(0.8, 1.02)
    panels[0].legend(fontsize=8, loc="lower right")
    figure.suptitle(
        "50 flows, round trips of 150 to 250 ms, 10 Mbit/s: each queue in the fluid and in ns-3", fontsize=11
    )
    return figure
