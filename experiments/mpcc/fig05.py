"""MPCC thesis, Figs. 5.2 to 5.4, and the test that tells its variants apart; packet by packet."""

import msgspec
import numpy as np
import pandas as pd
from common import Outcome, verdicts
from matplotlib.figure import Figure

import netctrl
from netctrl.laws.window.records import Hpcc, Mpcc, Scheme
from netctrl.scenario.fabric.flows import with_sender
from netctrl.scenario.fabric.topology import Dumbbell, Packets
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.transfers import received_rates
from netctrl.sim.packet.run import simulate_packets

STAGGERED = ((4.9e6, 0.0), (2.4e6, 0.01), (1.4e6, 0.02), (0.3e6, 0.03))
"""Sizes in MB, where the thesis says GB, and starts [s]."""
P_BD = 4344.0
VARIANTS = ("delay-free", "delayed", "feed-forward", "hold")


def empty_again(result: Result) -> int:
    """When the first acknowledgement after congestion tells of an empty queue [ns]."""
    log = result.to_pandas("acknowledgements")
    congested = log.time[log.queue > 0].iloc[0]
    return round(1e9 * log.time[(log.queue == 0) & (log.time > congested)].iloc[0])


def converged(weight: float, bdp: float) -> Result:
    base = netctrl.read("mpcc-dumbbell")
    sender = msgspec.structs.replace(base.flows[0].sender, window_weight=weight, bdp=bdp)
    return simulate_packets(with_sender(base, sender).replace(duration=20e-3))


def staggered(scheme: Scheme) -> Result:
    flows = tuple(
        Flow(id=f"flow{i}", source=i, target=4, offers=size, sender=scheme, start=start)
        for i, (size, start) in enumerate(STAGGERED)
    )
    return simulate_packets(
        Scenario(
            name="staggered flows",
            network=Dumbbell(packets=Packets(clock="ns-3"), watch=Watch(flows=(0, 1, 2, 3), ports=("s0>s1",))),
            flows=flows,
            duration=90e-3,
            interval=1e-5,
        )
    )


def ended_ms(result: Result) -> np.ndarray:
    """When each transfer was complete [ms]."""
    return 1e3 * (result.transfers["start"] + result.transfers["duration"])


def sixteen(variant: str, weight: float = 1.0, horizon: int = 5) -> tuple[float, float]:
    """(utilization, queue that acknowledgements tell over P_BD) from 1 to 5 ms: 16 flows, 100 Gbit/s, 71 packets."""
    sender = Mpcc(variant=variant, window_weight=weight, horizon=horizon)  # ty: ignore[invalid-argument-type]
    result = simulate_packets(
        Scenario(
            name="sixteen flows",
            network=Dumbbell(
                senders=16,
                host_rate=1e11,
                packets=Packets(clock="ns-3"),
                flow_timeout=2e-4,
                watch=Watch(flows=tuple(range(16)), bin=1e-3),
            ),
            flows=(Flow(source=range(16), target=16, offers=1e9, sender=sender),),
            duration=5e-3,
        )
    )
    log = result.to_pandas("acknowledgements")
    rates, late = received_rates(result.tables["received"]), log.queue[log.time > 1e-3].mean()
    return float(rates[:, 1:].sum(axis=0).mean() / 1e11), float(late / (6282 * 1e11 / 8e9))


def main(*, full: bool = False) -> Outcome:
    computed: dict[str, float] = {}
    for weight in (1, 10, 100):
        computed[f"fig52-{weight}"] = float(empty_again(converged(float(weight), 3750.0)))
    four = received_rates(converged(1.0, 3750.0).tables["received"])
    computed["fig52-three"] = float(empty_again(converged(1.0, 3000.0)))
    computed["fig52-throughput"] = float(four[:, 1:].mean() / 1e9)
    shown = {"MPCC, feed-forward": staggered(Mpcc(bdp=P_BD, variant="feed-forward"))}
    shown |= {"MPCC 1:1": staggered(Mpcc(bdp=P_BD)), "HPCC": staggered(Hpcc())}
    for place, end in enumerate(ended_ms(shown["MPCC, feed-forward"])):
        computed[f"fig53-flow-{place + 1}"] = float(end)
    busy = slice(99, 2999)  # 1 to 30 ms, of one to three flows
    for key, name in (("mpcc", "MPCC 1:1"), ("hpcc", "HPCC")):
        computed[f"fig54-{key}-queue"] = float(shown[name].series["backlog"][0, busy].mean())
    for variant in VARIANTS:
        utilization, queue = sixteen(variant)
        computed |= {f"sixteen-{variant}": utilization, f"sixteen-{variant}-queue": queue}
    figure = Figure(figsize=(12.0, 7.4), layout="constrained")
    frames = []
    for column, (name, result) in zip(figure.subplots(2, len(shown)).T, shown.items(), strict=True):
        rates = received_rates(result.tables["received"]) / 1e9
        for place, each in enumerate(rates):
            column[0].plot(2.0 * np.arange(len(each)), each, lw=1.0, label=f"flow {place + 1}")
        column[1].plot(1e3 * result.time_s, result.series["backlog"][0] / 1e3, lw=0.6)
        column[0].set(title=f"Fig. 5.3: {name}", ylabel="throughput [Gbit/s]")
        column[1].set(title="Fig. 5.4: queue of switch 1", xlabel="time [ms]", ylabel="queue [kB]")
        for axes in column:
            axes.grid(color="#dddddd", lw=0.6)
        column[0].legend(fontsize=8)
        bins = {"series": name, "time_ms": 2.0 * np.arange(rates.shape[1])}
        frames.append(pd.DataFrame(bins | {f"flow_{place + 1}_gbit_per_s": each for place, each in enumerate(rates)}))
    figure.supxlabel(verdicts("mpcc", "Fig. 5.3", "Fig. 5.4"), fontsize=8.5)
    table = pd.DataFrame(
        [(name, *np.round(ended_ms(result), 1)) for name, result in shown.items()],
        columns=["scheme", *(f"flow {place} done [ms]" for place in range(1, 5))],
    )
    return Outcome("fig05", "mpcc", pd.concat(frames, ignore_index=True), figure, computed, table)
