"""MPCC in stock ns-3 beside the packet simulator: Fig. 5.2, the fat tree flow by flow, and ns-3's own DCTCP.

Half a minute of one core, most of it for the compiler.
"""

import numpy as np
import pandas as pd
from common import Outcome
from matplotlib.figure import Figure
from packets import run_centre

import netctrl
from netctrl.laws.window.records import Dctcp, Mpcc
from netctrl.scenario.fabric.flows import MessageFlows, PoissonFlows
from netctrl.scenario.fabric.result import FabricResult
from netctrl.scenario.fabric.topology import Dumbbell, FatTree
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.scenario import Scenario
from netctrl.sim.fabric.run import simulate_fabric


def main(*, full: bool = False) -> Outcome:
    computed: dict[str, float] = {}
    four = pair(netctrl.read("mpcc-dumbbell"))
    computed["ns3-converged"] = float(empty_again(four["ns-3"]))
    computed["ns3-packet-times"] = abs(computed["ns3-converged"] - empty_again(four["simulator"])) / 8799.0
    rows, shown = [], {}
    for sizes in ("WebSearch", "FB_Hadoop"):
        tree = pair(tree_of(sizes))
        found, expected = tree["ns-3"], tree["simulator"]
        both = found.done & expected.done
        apart = np.abs(found.finish_ns - expected.finish_ns)[both] / (expected.finish_ns - expected.start_ns)[both]
        means = [float(np.nanmean(each.slow_down)) for each in (found, expected)]
        key = "ns3-" + ("web" if sizes == "WebSearch" else "hadoop")
        computed |= {f"{key}-same": float((apart == 0.0).mean()), f"{key}-slow-down": means[0] / means[1] - 1.0}
        within = f"{100.0 * np.percentile(apart, 90):.2g} %"
        same = f"{100.0 * (apart == 0.0).mean():.0f} %"
        rows.append((sizes, int(both.sum()), same, within, f"{means[0]:.4f}", f"{means[1]:.4f}"))
        shown[sizes] = tree
    dctcp = pair(four_tcp())
    computed["ns3-dctcp-queue"] = float(np.median(dctcp["ns-3"].queue_bytes[0, 100:6000]))
    columns = ["flow sizes", "done", "to the nanosecond", "90 % within", "mean slow-down, ns-3", "simulator"]
    return Outcome(
        "ns3", "mpcc", flows_of(shown), picture(four, shown, dctcp), computed, pd.DataFrame(rows, columns=columns)
    )


def pair(scenario: Scenario) -> dict[str, FabricResult]:
    return {"simulator": simulate_fabric(scenario), "ns-3": run_centre(scenario)}


def tree_of(sizes: str) -> Scenario:
    flows = (PoissonFlows(id=sizes, sizes=sizes, load=0.3),)
    return Scenario(name=sizes, network=FatTree(), sender=Mpcc(variant="delayed"), flows=flows, duration=1e-3)


def four_tcp() -> Scenario:
    return Scenario(
        name="four flows of DCTCP",
        network=Dumbbell(host_rate=1e10),
        sender=Dctcp(),
        flows=(MessageFlows(id="senders", source=range(4), target=4, size=2e6),),
        duration=8e-3,
        watch=Watch(ports=("s0>s1",)),
    )


def empty_again(result: FabricResult) -> int:
    """When the first acknowledgement after congestion tells of an empty queue [ns]."""
    log = result.acknowledged()
    congested = log.time_ns[log.queue_bytes > 0].iloc[0]
    return int(log.time_ns[(log.queue_bytes == 0) & (log.time_ns > congested)].iloc[0])


def flows_of(shown: dict[str, dict[str, FabricResult]]) -> pd.DataFrame:
    frames = []
    for sizes, tree in shown.items():
        frame = tree["simulator"].to_pandas()[["size_bytes", "start_ns", "finish_ns"]]
        frames.append(frame.assign(sizes=sizes, finish_in_ns3_ns=tree["ns-3"].finish_ns))
    return pd.concat(frames, ignore_index=True)


def picture(
    four: dict[str, FabricResult], shown: dict[str, dict[str, FabricResult]], dctcp: dict[str, FabricResult]
) -> Figure:
    figure = Figure(figsize=(13.0, 4.4), layout="constrained")
    queue, slow, tcp = figure.subplots(1, 3)
    for style, (name, result) in zip(("-", "--"), four.items(), strict=True):
        queue.plot(result.queue_bytes[0, :250] / 1e3, style, lw=1.2, label=name)
    for style, (name, result) in zip(("-", "--"), dctcp.items(), strict=True):
        tcp.plot(1e-3 * np.arange(2000), result.queue_bytes[0, :2000] / 1e3, style, lw=0.8, label=name)
    for sizes, tree in shown.items():
        slow.loglog(tree["simulator"].slow_down, tree["ns-3"].slow_down, ".", ms=4, label=sizes)
    queue.set(title="Fig. 5.2: four senders under MPCC", xlabel="time [us]", ylabel="queue [kB]")
    slow.set(title="slow-down of each flow in the fat tree", xlabel="simulator", ylabel="ns-3")
    tcp.set(title="DCTCP, K = 30 kB", xlabel="time [ms]", ylabel="queue [kB]")
    for axes in (queue, slow, tcp):
        axes.grid(color="#dddddd", lw=0.6)
        axes.legend(fontsize=8)
    return figure
