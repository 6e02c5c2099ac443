"""Prague flows beside classic ones over DualPI2, on packets and in the fluid.

`PYTHONPATH=experiments python -m engines.coexistence [--docs] NAME ...` prints tables: l4s-coexistence of one flow of
each kind, paced or not; l4s-mixes of other numbers of flows; l4s-fluid of one to 16 of each, beside the fluid; l4s-ns3
of packets beside ns-3. `--docs` writes them to docs/assets.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import tables, used
from scipy import stats

import netctrl
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.rate.cap import CapSender
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.run import simulate_packets

RATES, RTTS = (4e6, 40e6, 120e6), (5e-3, 10e-3, 20e-3, 50e-3)
MIXES = ((1, 4), (4, 1), (4, 4), (10, 10))
SEEDS = (1, 2, 3, 4, 5)
SECONDS, WARM_UP, INTERVAL = 120.0, 30.0, 1e-3
PACKET = 1500.0
BUFFER_S = 0.25
PAIR_RATE = 20e6
PACED, UNPACED = CapSender(rate=1e9, window="prague"), "prague"
"""The cap's rate is above all links': what is left of it is that segments are spaced by window and round trip."""


class Found(NamedTuple):
    """Of one run."""

    ratio: float
    """Throughput of a Prague flow over that of a Cubic flow."""
    low_ms: float
    """99th percentile of the wait in the L queue, means over 1 ms [ms]."""
    classic_ms: float
    """Mean wait in the C queue [ms]."""
    utilization: float


def one_link(rate: float, rtt: float, senders: Mapping[str, tuple[str | CapSender, int]], **others: Any) -> Scenario:
    """Flows of some senders, so many of each, through one DualPI2."""
    line = Link(id="line", source="a", target="b", capacity=rate, queue=DualPi2Queue(), buffer=BUFFER_S * rate / 8.0)
    flows = tuple(
        Flow(id=name, path=("line",), rtt=rtt, count=count, sender=sender, start=("0s", "1s"))
        for name, (sender, count) in senders.items()
    )
    return Scenario(links=(line,), flows=flows, packet_size=PACKET, **others)


def scenario(rate: float, rtt: float, seed: int, prague: str | CapSender, counts: tuple[int, int] = (1, 1)) -> Scenario:
    senders = {"prague": (prague, counts[0]), "cubic": ("cubic", counts[1])}
    lengths = {"duration": SECONDS, "warmup": WARM_UP, "interval": INTERVAL}
    return one_link(rate, rtt, senders, name="coexistence", seed=seed, **lengths)


def found(rate: float, rtt: float, seed: int, prague: str | CapSender, counts: tuple[int, int] = (1, 1)) -> Found:
    result = simulate_packets(scenario(rate, rtt, seed, prague, counts))
    late = result.time_s > WARM_UP
    carried = result.series["payload"][:, late].sum(axis=1)
    trips = result.series["rtt"][:, late]
    low, classic = (1e3 * (each[each > 0.0] - rtt - 8.0 * PACKET / rate) for each in trips)
    utilization = used(result, result.links[0])
    ratio = carried[0] / carried[1] * counts[1] / counts[0]
    return Found(ratio, float(np.quantile(low, 0.99)), float(classic.mean()), utilization)


def table() -> pd.DataFrame:
    rows = []
    for rate, rtt in product(RATES, RTTS):
        paced, unpaced = ([found(rate, rtt, seed, sender) for seed in SEEDS] for sender in (PACED, UNPACED))
        rows.append(
            {
                "rate [Mbit/s]": f"{rate / 1e6:g}",
                "base RTT [ms]": f"{1e3 * rtt:g}",
                "Prague over Cubic": _ratio(paced),
                **_others(paced),
                "unpaced over Cubic": _ratio(unpaced),
                "L queue, unpaced [ms]": _mean([each.low_ms for each in unpaced]),
            }
        )
    return pd.DataFrame(rows)


def _others(runs: list[Found]) -> dict[str, str]:
    return {
        "L queue, 99 % [ms]": _mean([each.low_ms for each in runs]),
        "C queue, mean [ms]": _mean([each.classic_ms for each in runs]),
        "utilization": f"{np.mean([each.utilization for each in runs]):.3f}",
    }


def _ratio(runs: list[Found]) -> str:
    """Geometric mean with its 95 % interval."""
    logs = np.log([each.ratio for each in runs])
    middle, half = logs.mean(), _half_width(logs)
    return f"{np.exp(middle):.2f} ({np.exp(middle - half):.2f} to {np.exp(middle + half):.2f})"


def _mean(values: Sequence[float]) -> str:
    """Mean with its 95 % interval."""
    return f"{np.mean(values):.2f} ± {_half_width(values):.2f}"


def mixes_table() -> pd.DataFrame:
    """Of paced Prague flows beside Cubic flows."""
    rows = []
    for rate, rtt, counts in product(RATES[1:], (10e-3, 20e-3, 50e-3), MIXES):
        runs = [found(rate, rtt, seed, PACED, counts) for seed in SEEDS]
        start = {"rate [Mbit/s]": f"{rate / 1e6:g}", "base RTT [ms]": f"{1e3 * rtt:g}"}
        flows = {"Prague and Cubic flows": f"{counts[0]} and {counts[1]}", "ratio of a flow's rates": _ratio(runs)}
        rows.append(start | flows | _others(runs))
    return pd.DataFrame(rows)


class Point(NamedTuple):
    """Of one run with several flows."""

    ratio: float
    """Prague's throughput over the others'."""
    wait_ms: float
    """Mean wait in the C queue [ms]."""
    base: float
    """Mean p'."""


def mixture(classic: str, rtt: float, count: int, seed: int, prague: str | CapSender) -> Scenario:
    """`count` flows of each kind, 20 Mbit/s for each pair."""
    senders = {"prague": (prague, count), "classic": (classic, count)}
    lengths = {"duration": 60.0, "warmup": 20.0, "interval": 1e-2}
    return one_link(PAIR_RATE * count, rtt, senders, name="mixture", seed=seed, **lengths)


def point(whole: Scenario, engine: str) -> Point:
    result = netctrl.simulate(whole, engine)
    late = result.time_s > whole.warmup
    carried = result.series["payload"][:, late].sum(axis=1)
    trips = result.series["rtt"][1, late]
    sent = 8.0 * PACKET / whole.links[0].capacity if engine == "packet" else 0.0
    wait = trips[trips > 0.0].mean() - whole.flows[1].rtt[0] - sent
    return Point(carried[0] / carried[1], 1e3 * wait, float(np.sqrt(result.series["probability"][0, late]).mean()))


def fluid_table() -> pd.DataFrame:
    rows = []
    for classic, rtt, count in product(("reno", "cubic"), (10e-3, 20e-3, 50e-3), (1, 4, 16)):
        fluid = point(mixture(classic, rtt, count, 1, "prague"), "fluid")
        packets = [point(mixture(classic, rtt, count, seed, PACED), "packet") for seed in SEEDS[:3]]
        ratio, wait, base = zip(*packets, strict=True)
        rows.append(
            {
                "beside": classic.capitalize(),
                "base RTT [ms]": f"{1e3 * rtt:g}",
                "flows of each": count,
                "ratio, fluid": f"{fluid.ratio:.2f}",
                "ratio, packets": f"{np.mean(ratio):.2f} ± {_half_width(ratio):.2f}",
                "C queue, fluid [ms]": f"{fluid.wait_ms:.1f}",
                "C queue, packets [ms]": f"{np.mean(wait):.1f} ± {_half_width(wait):.1f}",
                "p', fluid": f"{fluid.base:.4f}",
                "p', packets": f"{np.mean(base):.4f} ± {_half_width(base):.4f}",
            }
        )
    return pd.DataFrame(rows)


NS3_POINTS = (("reno", 20e6, 20e-3, 2), ("cubic", 40e6, 10e-3, 2), ("reno", 40e6, 20e-3, 6))
"""Beside Prague, rate [bit/s], base RTT [s], flows of each kind."""
REPEATED = 3


def side_by_side() -> Scenario:
    """All points as links of one scenario, each several times, which differ in their starts and random numbers."""
    links, flows = [], []
    for (classic, rate, rtt, count), k in product(NS3_POINTS, range(REPEATED)):
        name = f"{classic}-{rate / 1e6:g}-{1e3 * rtt:g}-{k}"
        buffer = BUFFER_S * rate / 8.0
        links.append(
            Link(id=name, source=f"a{name}", target=f"b{name}", capacity=rate, queue=DualPi2Queue(), buffer=buffer)
        )
        flows += [
            Flow(id=f"{name}-{sender}", path=(name,), rtt=rtt, count=count, sender=sender, start=("0s", "1s"))
            for sender in ("prague", classic)
        ]
    return Scenario(
        name="side by side",
        links=tuple(links),
        flows=tuple(flows),
        duration=40.0,
        warmup=10.0,
        packet_size=PACKET,
        interval=1e-2,
    )


def ns3_table() -> pd.DataFrame:
    """ns-3 lets a packet wait in the device behind the queue disc, so that waits have one packet more there."""
    whole, rows = side_by_side(), []
    results = {engine: netctrl.simulate(whole, engine) for engine in ("packet", "ns3")}
    for number, (classic, rate, rtt, count) in enumerate(NS3_POINTS):
        row = {"beside": classic.capitalize(), "rate [Mbit/s]": f"{rate / 1e6:g}", "base RTT [ms]": f"{1e3 * rtt:g}"}
        row["flows of each"] = str(count)
        for engine, result in results.items():
            late = result.time_s > whole.warmup
            found = []
            for k in range(REPEATED * number, REPEATED * (number + 1)):
                low, high = result.series["rtt"][2 * k : 2 * k + 2, late]
                sent = 8.0 * PACKET / rate * (2.0 if engine == "ns3" else 1.0)
                waits = [1e3 * (each[each > 0.0].mean() - rtt - sent) for each in (low, high)]
                carried = result.series["payload"][2 * k : 2 * k + 2, late].sum(axis=1)
                found.append([carried[0] / carried[1], *waits, np.sqrt(result.series["probability"][k, late]).mean()])
            for what, values in zip(
                ("ratio", "L wait [ms]", "C wait [ms]", "p'"), zip(*found, strict=True), strict=True
            ):
                row[f"{what}, {engine}"] = f"{np.mean(values):.3g} ± {_half_width(values):.1g}"
        rows.append(row)
    return pd.DataFrame(rows)


def _half_width(values: Sequence[float] | np.ndarray) -> float:
    """Of the mean's 95 % interval."""
    return float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))


if __name__ == "__main__":
    tables(l4s_coexistence=table, l4s_mixes=mixes_table, l4s_fluid=fluid_table, l4s_ns3=ns3_table)
