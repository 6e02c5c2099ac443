"""MPCC in stock ns-3 beside the packet simulator: Fig. 5.2, the fat tree flow by flow, and ns-3's own DCTCP.

Half a minute of one core, most of it for the compiler.
"""

import numpy as np
import pandas as pd
from common import Outcome
from matplotlib.figure import Figure
from mpcc.fig05 import empty_again
from packets import run_centre

import netctrl
from netctrl.laws.window.records import Dctcp, Mpcc
from netctrl.scenario.fabric.topology import Dumbbell, FatTree
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Sizes
from netctrl.scenario.transfers import slow_down
from netctrl.sim.packet.run import simulate_packets


def main(*, full: bool = False) -> Outcome:
    computed: dict[str, float] = {}
    four = pair(netctrl.read("mpcc-dumbbell"))
    computed["ns3-converged"] = float(empty_again(four["ns-3"]))
    computed["ns3-packet-times"] = abs(computed["ns3-converged"] - empty_again(four["simulator"])) / 8799.0
    rows, shown = [], {}
    for sizes in ("WebSearch", "FB_Hadoop"):
        tree = pair(tree_of(sizes))
        found, expected = tree["ns-3"], tree["simulator"]
        took, expected_took = found.transfers["duration"], expected.transfers["duration"]
        apart = np.abs(took - expected_took) / expected_took
        both = np.isfinite(apart)
        apart = np.where(apart[both] > 1e-12, apart[both], 0.0)  # below, the same nanosecond
        means = [each["slow-down", "transfers"] for each in (found, expected)]
        key = "ns3-" + ("web" if sizes == "WebSearch" else "hadoop")
        computed |= {f"{key}-same": float((apart == 0.0).mean()), f"{key}-slow-down": means[0] / means[1] - 1.0}
        within = f"{100.0 * np.percentile(apart, 90):.2g} %"
        same = f"{100.0 * (apart == 0.0).mean():.0f} %"
        rows.append((sizes, int(both.sum()), same, within, f"{means[0]:.4f}", f"{means[1]:.4f}"))
        shown[sizes] = tree
    dctcp = pair(four_tcp())
    computed["ns3-dctcp-queue"] = float(np.median(dctcp["ns-3"].series["backlog"][0, 99:5999]))
    columns = ["flow sizes", "done", "to the nanosecond", "90 % within", "mean slow-down, ns-3", "simulator"]
    return Outcome(
        "ns3", "mpcc", flows_of(shown), picture(four, shown, dctcp), computed, pd.DataFrame(rows, columns=columns)
    )


def pair(scenario: Scenario) -> dict[str, Result]:
    return {"simulator": simulate_packets(scenario), "ns-3": run_centre(scenario)}


def tree_of(sizes: str) -> Scenario:
    flows = (Flow(id=sizes, offers=Sizes(distribution=sizes, load=0.3), sender=Mpcc(variant="delayed")),)
    return Scenario(name=sizes, network=FatTree(), flows=flows, duration=1e-3)


def four_tcp() -> Scenario:
    return Scenario(
        name="four flows of DCTCP",
        network=Dumbbell(host_rate=1e10, watch=Watch(ports=("s0>s1",))),
        flows=(Flow(id="senders", source=range(4), target=4, offers=2e6, sender=Dctcp()),),
        duration=8e-3,
    )


def flows_of(shown: dict[str, dict[str, Result]]) -> pd.DataFrame:
    frames = []
    for sizes, tree in shown.items():
        frame = tree["simulator"].to_pandas()[["size", "start", "duration"]]
        frames.append(frame.assign(sizes=sizes, duration_in_ns3=tree["ns-3"].transfers["duration"]))
    return pd.concat(frames, ignore_index=True)


def picture(four: dict[str, Result], shown: dict[str, dict[str, Result]], dctcp: dict[str, Result]) -> Figure:
    figure = Figure(figsize=(13.0, 4.4), layout="constrained")
    queue, slow, tcp = figure.subplots(1, 3)
    for style, (name, result) in zip(("-", "--"), four.items(), strict=True):
        queue.plot(result.series["backlog"][0, :250] / 1e3, style, lw=1.2, label=name)
    for style, (name, result) in zip(("-", "--"), dctcp.items(), strict=True):
        tcp.plot(1e3 * result.time_s[:2000], result.series["backlog"][0, :2000] / 1e3, style, lw=0.8, label=name)
    for sizes, tree in shown.items():
        slow.loglog(*(slow_down(tree[name].transfers) for name in ("simulator", "ns-3")), ".", ms=4, label=sizes)
    queue.set(title="Fig. 5.2: four senders under MPCC", xlabel="time [us]", ylabel="queue [kB]")
    slow.set(title="slow-down of each flow in the fat tree", xlabel="simulator", ylabel="ns-3")
    tcp.set(title="DCTCP, K = 30 kB", xlabel="time [ms]", ylabel="queue [kB]")
    for axes in (queue, slow, tcp):
        axes.grid(color="#dddddd", lw=0.6)
        axes.legend(fontsize=8)
    return figure
