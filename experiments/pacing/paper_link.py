"""What the pacing paper's figures share: its bottleneck as a fluid, its flows, and how they are measured.

10 Gbit/s behind a sender's 40 (Section IV-A). Base RTT and buffer are ours: a queue that H-TCP drives from empty to one
BDP has the RTTs of Fig. 2a. RTTs are up at random: by a packet's time where nothing else disturbs, or by 0.02 ms.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from msgspec.structs import replace

import netctrl
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.pacing.pacing import pace_many
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.scenario.result import Result

CAPACITY, RTT, BUFFER = 1e10, 4e-3, 5e6
"""[bit/s, s, byte]; the buffer is one BDP."""
SENDER = 4e10
"""The sender's own link: the R that one would set who doesn't know the bottleneck [bit/s]."""
QUIET, NOISE = 1.2e-6, 2e-5
"""Means of what RTTs are up by [s]."""
CAP = 9.986e9
"""The fixed cap of the ablation, everywhere: the rate that the paper's law comes to in an independent study of it."""
WARM_UP_S, DURATION_S = 10.0, 60.0
STEP_S = RTT / 40
"""Of the fluid: with bins so wide every RTT is kept."""
BLUE, ORANGE, RED, GREEN, GREY = "#1f4e9c", "#b45f06", "#c0504d", "#4f7a3a", "#777777"


def paper_flow(most: float, xi: float = 100.0, start: float | None = None, **changes: object) -> netctrl.Flow:
    """The paper's law over H-TCP, R = `most`; it begins at R, as a cap of the sender does, unless told otherwise."""
    design = netctrl.pacing(max_rate_bit_per_s=most, xi=xi, **changes)  # ty: ignore[invalid-argument-type]
    law = replace(design.law, start_rate_bit_per_s=most if start is None else start)
    return netctrl.Flow(sender=PacedSender(law=law, window="htcp"))


def capped(rate: float = CAP) -> netctrl.Flow:
    return netctrl.Flow(sender=CapSender(rate=rate, window="htcp"))


FREE, AT_CAP, OWN_RATE = "H-TCP alone", "fixed cap of 9.986 Gbit/s", "own rate"
KNOWN, UNKNOWN, FROZEN = "R = 10 Gbit/s", "R = 40 Gbit/s", "R = 40 Gbit/s, xi = 1"
CASES = {
    FREE: netctrl.Flow(sender="htcp"),
    KNOWN: paper_flow(CAPACITY),
    UNKNOWN: paper_flow(SENDER),
    FROZEN: paper_flow(SENDER, 1.0, start=4e9),
    AT_CAP: capped(),
    OWN_RATE: netctrl.Flow(sender="own-rate"),
}
"""One flow alone, in the order of Figs. 2 and 3; R = 40 is the sender's link, above the bottleneck."""


class Means(NamedTuple):
    """Of one flow after the warm-up."""

    rate: float
    """[Gbit/s]"""
    rate_std: float
    """From second to second."""
    rtt: float
    """[ms]"""
    rtt_std: float
    rtt_p99: float
    lost_mb: float
    """Of all flows."""


def run(flows: list[netctrl.Flow], noise: float = NOISE, seed: int = 0, **changes: object) -> Result:
    """Flows through the paper's bottleneck, a minute long."""
    requested = {
        "capacity": CAPACITY,
        "buffer": BUFFER,
        "rtt": RTT,
        "duration": DURATION_S,
        "warmup": 0.0,
        "queue": "codel",
        "interval": 0.01,
    }
    named = [replace(flow, id=f"flow{k}", rtt_noise=noise) for k, flow in enumerate(flows)]
    return netctrl.simulate(netctrl.bottleneck(flows=named, seed=seed, **(requested | changes)), "fluid")


def throughput(link: Result) -> np.ndarray:
    """Of each flow, shape (n, T) [bit/s]."""
    return BITS_PER_BYTE * link.series["delivered"] / link.scenario.interval


@cache
def alone(case: str, noise: float = NOISE, seed: int = 0) -> Result:
    """A case of `CASES`, with every RTT kept."""
    return run([CASES[case]], noise, seed, interval=STEP_S)


def by_second(link: Result, flow: int = 0, warmup: float = WARM_UP_S) -> np.ndarray:
    """Throughput after the warm-up, a mean for each second [Gbit/s]."""
    width = round(1.0 / link.time_s[0])
    late = throughput(link)[flow, link.time_s > warmup * (1.0 + 1e-9)] / 1e9
    return late[: len(late) // width * width].reshape(-1, width).mean(axis=1)


def means(link: Result, flow: int = 0, warmup: float = WARM_UP_S) -> Means:
    rates, late = by_second(link, flow, warmup), link.time_s > warmup * (1.0 + 1e-9)
    rtts = 1e3 * link.series["rtt"][flow, late]
    rtts = rtts[~np.isnan(rtts)]
    return Means(
        *(float(rates.mean()), float(rates.std()), float(rtts.mean()), float(rtts.std())),
        *(float(np.percentile(rtts, 99.0)), float(link.series["lost"][0, late].sum() / 1e6)),
    )


def law_rates(link: Result, law: netctrl.model.law.PacingLaw) -> tuple[np.ndarray, np.ndarray]:
    """Times [s] of a flow's RTTs and the rate of its law after each [bit/s], where every RTT was kept.

    A law's rate isn't what is sent where its window sends less; the same samples give the same rates.
    """
    seen = ~np.isnan(link.series["rtt"][0])
    times = link.time_s[seen] - link.time_s[0]
    start = netctrl.start_pacing(law).values[None, :]
    return times, pace_many(law, start, times, link.series["rtt"][:1, seen])[0][0]


def at_rest(link: Result) -> tuple[float, float]:
    """When the last queue of a quarter of the base RTT was seen [s], and the throughput since a second later [Gbit/s];
    NaN where there is none."""
    queued = np.flatnonzero(link.series["delay"][0] > 0.25 * RTT)
    last = float(link.time_s[queued[-1]]) if len(queued) else 0.0
    late = link.time_s > last + 1.0
    return last, float(throughput(link)[0, late].mean() / 1e9) if late.sum() * link.time_s[0] > 1.0 else np.nan


def grid(axes: Axes, title: str, **labels: object) -> None:
    axes.set_title(title, fontsize=10)
    axes.set(**labels)  # ty: ignore[invalid-argument-type]
    axes.grid(color="#dddddd", lw=0.6)
