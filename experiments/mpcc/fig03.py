"""MPCC thesis, Figs. 3.2 to 3.5: the queue's slopes, its bound by windows, and its delays; packet by packet."""

import msgspec
import numpy as np
import pandas as pd
from common import Outcome, verdicts
from matplotlib.figure import Figure

from netctrl.laws.window.records import FixedWindow
from netctrl.scenario.fabric.topology import Dumbbell, Packets
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.run import simulate_packets

CLOCK = 8.799e-6
"""Time of a packet on the wire in ns-3; sampled so often, slopes have no ripple."""
FREQUENCIES = (100, 200, 500, 1000)


def run(flows: tuple[Flow, ...], duration: float, *, window: float | None = None, delay: float = 1e-6) -> Result:
    return simulate_packets(
        Scenario(
            name="four senders",
            network=Dumbbell(
                delay=delay, packets=Packets(clock="ns-3"), watch=Watch(flows=(0, 1, 2, 3), ports=("s0>s1",))
            ),
            flows=tuple(msgspec.structs.replace(flow, sender=FixedWindow(window=window)) for flow in flows),
            duration=duration,
            interval=CLOCK,
        )
    )


def together(size: float, starts: tuple[float, ...] = (0.0,)) -> tuple[Flow, ...]:
    return tuple(
        Flow(id=f"burst{n}", source=range(4), target=4, offers=size, start=start) for n, start in enumerate(starts)
    )


def square(frequency: int, duration: float) -> tuple[Flow, ...]:
    """Four senders on for a quarter of each period, so that the queue is empty again at its end."""
    period = 1.0 / frequency
    payload = round(0.25 * period * 1e9 / 8 / 1100) * 1000
    return together(payload, tuple(np.arange(0.0, duration, period).tolist()))


def rise(queue: np.ndarray) -> float:
    """Median of what samples show of a growing queue [Gbit/s]."""
    rates = np.diff(queue) * 8 / CLOCK / 1e9
    return float(np.median(rates[rates > 1.0]))


def fall(queue: np.ndarray) -> float:
    """Of a queue that shrinks and isn't empty."""
    rates = np.diff(queue) * 8 / CLOCK / 1e9
    return float(np.median(rates[(rates < -0.5) & (queue[1:] > 0)]))


def main(*, full: bool = False) -> Outcome:
    steady = run(together(1e7), 1e-3)
    waves = {f: run(square(f, 0.02), 0.02) for f in FREQUENCIES}
    bounded = run(together(1e7), 2e-3, window=3750.0)
    late = run(together(1e7), 8e-3, delay=1e-3)
    log = late.to_pandas("acknowledgements")
    first = log[log.queue > 0].iloc[0]
    rising = [rise(each.series["backlog"][0]) for each in waves.values()]
    falling = [fall(each.series["backlog"][0]) for each in waves.values()]
    computed = {
        "fig32-slope": rise(steady.series["backlog"][0]),
        "fig33-up": float(np.mean(rising)),
        "fig33-down": float(np.mean(falling)),
        "fig34-plateau": float(np.median(bounded.series["backlog"][0, 39:])),
        "fig35-input": float(first.left) * 1e3,
        "fig35-feedback": float(first.time) * 1e3,
    }
    figure = Figure(figsize=(11.0, 8.2), layout="constrained")
    panels = figure.subplots(2, 2).ravel()
    series = {"Fig. 3.2: no window": steady, "Fig. 3.4: windows of 3750 B": bounded, "Fig. 3.5: links of 1 ms": late}
    frames = []
    for axes, (name, result) in zip(panels, series.items(), strict=False):
        queue, time = result.series["backlog"][0], 1e3 * result.time_s
        axes.plot(time, queue / 1e3, lw=1.0, label="queue of switch 1")
        frames.append(pd.DataFrame({"series": name, "time_ms": time, "queue_bytes": queue}))
        axes.set_title(name, fontsize=10)
    panels[2].plot(log.time * 1e3, log.queue / 1e3, lw=1.0, label="as the senders hear")
    for f, result in waves.items():
        queue, time = result.series["backlog"][0], 1e3 * result.time_s
        panels[3].plot(time, queue / 1e3, lw=1.0, label=f"{f} Hz")
        frames.append(pd.DataFrame({"series": f"Fig. 3.3: {f} Hz", "time_ms": time, "queue_bytes": queue}))
    panels[3].set_title("Fig. 3.3: on for a quarter of each period", fontsize=10)
    for axes in panels:
        axes.set(xlabel="time [ms]", ylabel="queue [kB]")
        axes.grid(color="#dddddd", lw=0.6)
        axes.legend(fontsize=8)
    figure.suptitle("MPCC thesis, chapter 3: four senders of 1 Gbit/s, one receiver", fontsize=11)
    figure.supxlabel(verdicts("mpcc", "Fig. 3.2", "Fig. 3.3", "Fig. 3.4", "Fig. 3.5, links of 1 ms"), fontsize=8.5)
    return Outcome("fig03", "mpcc", pd.concat(frames, ignore_index=True), figure, computed)
