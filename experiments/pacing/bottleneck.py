"""Pacing in ns-3 beside H-TCP, Cubic, BBR and a fixed cap: one flow through a bottleneck, kept in data/results/.

`python experiments/full.py pacing-ns3 [SEED ...]` runs what isn't kept yet, and keeps each run as soon as it is done:
half an hour of two cores. ns-3.44 is wanted: in ns-3.37 BBR's rate collapses after a drain that ends in losses.
"""

import os
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from packets import run_ns3
from study import Case, Made, Record, Study, made_by

import netctrl
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.laws.rate.records import sender_name
from netctrl.model.law import PacingLaw
from netctrl.scenario.builders import bottleneck
from netctrl.scenario.design import with_pacer
from netctrl.scenario.figures import estimate
from netctrl.scenario.result import Result

COLUMNS = ("point", "scheme", "seed")

_HUNDRED: dict[str, Any] = {"capacity": 1e8, "rtt": 0.02, "buffer": 1e6, "cross": 1e6}
POINTS: dict[str, dict[str, Any]] = {
    name: given | {"name": name, "start_spread": 0.1}
    for name, given in {
        "100 Mbit/s, 20 ms, buffer 80 ms": _HUNDRED,
        "the same, buffer 20 ms": _HUNDRED | {"buffer": 250e3},
        "10 Mbit/s, 50 ms, buffer 100 ms": {"capacity": 1e7, "rtt": 0.05, "buffer": 125e3, "cross": 1e5},
        "the first, CoDel": _HUNDRED | {"queue": CodelQueue(), "duration": 30.0},
        "the first, no cross traffic": _HUNDRED | {"cross": 0.0, "duration": 30.0},
    }.items()
}
"""The first has the bottleneck that the controller was tried on in Linux; a full buffer makes an RTT of 100 ms there.
Cross traffic is 1 % of the bottleneck, in single packets at random times."""

CAP = 0.95
"""Of the bottleneck. Beside 1 % of cross traffic a cap of 0.99 is the bottleneck itself."""


class Scheme(NamedTuple):
    """What one flow runs; shares are of the bottleneck."""

    kind: str
    max_share: float = 0.0

    def law(self, capacity: float) -> PacingLaw | None:
        if self.kind != "paced":
            return None
        if self.max_share > 0.0:
            return netctrl.pacing(max_rate_bit_per_s=self.max_share * capacity).law
        return netctrl.pacing(mode="own-rate").law

    def under(self, point: str, seed: int = 1) -> netctrl.Scenario:
        given = POINTS[point]
        sender = CapSender(rate=self.max_share * given["capacity"], window="htcp") if self.kind == "cap" else self.kind
        made = bottleneck(**given, flows=(netctrl.Flow(sender=sender),), seed=seed)
        law = self.law(given["capacity"])
        return made if law is None else with_pacer(made, law)


SCHEMES = {
    "H-TCP": Scheme("htcp"),
    "Cubic": Scheme("cubic"),
    "BBR": Scheme("bbr"),
    "paper, R = 0.95 C": Scheme("paced", CAP),
    "paper, R = C": Scheme("paced", 1.0),
    "paper, R = 2 C": Scheme("paced", 2.0),
    "fixed cap, 0.95 C": Scheme("cap", CAP),
    "own rate": Scheme("paced"),
}

_SOME = ("H-TCP", "Cubic", "BBR", "paper, R = C", "fixed cap, 0.95 C", "own rate")
_FEWER = {"the first, CoDel": ("H-TCP", "Cubic", "BBR", "own rate"), "the first, no cross traffic": ("BBR", "own rate")}
CASES = [
    (point, name)
    for place, point in enumerate(POINTS)
    for name in (_FEWER.get(point, _SOME) if place else tuple(SCHEMES))
]
"""All schemes at the first point; elsewhere those that the point tells apart."""


def row_of(point: str, scheme: str, result: Result) -> dict[str, Any]:
    """What is kept of a run."""
    late = result.time_s - result.scenario.interval >= result.scenario.warmup * (1.0 - 1e-9)
    rate = BITS_PER_BYTE * result.series["delivered"][0, late] / result.scenario.interval
    rtts = result.rtts(result.flows[0])
    mean, median, p99 = (rtts.mean(), *np.percentile(rtts, (50.0, 99.0))) if len(rtts) else (None, None, None)
    sent = result.tables["connections"]
    return {
        **dict(zip(COLUMNS, (point, scheme, result.scenario.seed), strict=True)),
        "simulator": result.simulator,
        "kind": sender_name(result.scenario.flows[0].sender),
        "throughput_bit_per_s": float(rate.mean()),
        "throughput_std_bit_per_s": float(rate.std()),
        "rtt_mean_s": mean,
        "rtt_median_s": median,
        "rtt_99_s": p99,
        "sent_again": float(sent["resent"][0] / max(sent["sent"][0], 1.0)),
        "utilization": float(rate.mean() / result.scenario.links[0].capacity),
        "delay_mean_s": float(np.nan_to_num(result.series["delay"][0, late]).mean()),
        "queue_most_bytes": float(result.series["backlog_most"][0, late].max()),
        "dropped_bytes": float(result.series["lost"][0, late].sum()),
    }


def run(point: str, scheme: str, seed: int) -> Made:
    """By a program that is kept."""
    return Made([row_of(point, scheme, run_ns3(SCHEMES[scheme].under(point, seed)))])


def record(before: Record, data: pd.DataFrame, case: Case, about: None) -> Record:
    return before | {
        "points": POINTS,
        "schemes": {name: scheme._asdict() for name, scheme in SCHEMES.items()},
        "laws": {name: scheme.law(1e8) for name, scheme in SCHEMES.items()},
        "seeds": sorted(int(seed) for seed in data.seed.unique()),
    }


STUDY = Study(
    name="pacing-ns3",
    key=COLUMNS,
    repeats=(1, 2, 3, 4, 5),
    cases=lambda seed: [(*case, seed) for case in CASES],
    runs=made_by(run, os.cpu_count() or 1),
    record=record,
    sort=COLUMNS,
    order={"point": list(POINTS), "scheme": list(SCHEMES)},
    digits=7,
)


def table(point: str) -> pd.DataFrame:
    """Means over seeds with half-widths of 95 % intervals, a row a scheme: Mbit/s, ms and %."""
    rows = []
    for scheme in [name for place, name in CASES if place == point]:
        chosen = _chosen(point, scheme)
        cells: dict[str, Any] = {"scheme": scheme, "seeds": len(chosen)}
        for column, unit in _SHOWN.items():
            middle = estimate(chosen[column].to_numpy() / unit)
            cells |= {column: middle.mean, f"{column}_half_width": middle.half_width}
        rows.append(cells)
    return pd.DataFrame(rows)


_SHOWN = {
    "throughput_bit_per_s": 1e6,
    "throughput_std_bit_per_s": 1e6,
    "rtt_mean_s": 1e-3,
    "rtt_99_s": 1e-3,
    "sent_again": 1e-2,
}


def _chosen(point: str, scheme: str) -> pd.DataFrame:
    found = STUDY.kept()
    if found is not None:
        found = found[(found.point == point) & (found.scheme == scheme)]
    if found is None or found.empty:
        raise FileNotFoundError(f"{scheme} at {point} isn't kept: python experiments/full.py {STUDY.name}")
    return found


def beside_fluid(point: str) -> dict[str, float]:
    """The own-rate law in ns-3 and in the fluid, whose capacity is what cross traffic leaves on average: utilization
    of it, and mean RTT above that of an idle link [s]."""
    scenario, given = SCHEMES["own rate"].under(point), POINTS[point]
    link, size = scenario.links[0], scenario.packet_size
    law = SCHEMES["own rate"].law(link.capacity)
    if law is None:
        raise TypeError("the own-rate scheme has a law")
    left = link.capacity - given["cross"]
    # A packet and its acknowledgement on the access line, ten times as fast as the bottleneck, and the packet there.
    access = max(10.0 * link.capacity, 1e9)
    wires = BITS_PER_BYTE * (size / link.capacity + (size + 86.0) / access)
    rtt = given["rtt"] + wires
    times = {"duration": scenario.duration, "warmup": scenario.warmup, "interval": scenario.interval}
    flow = netctrl.Flow(sender=PacedSender(law=law))
    fluid = netctrl.simulate(
        bottleneck(flows=(flow,), capacity=left, buffer=given["buffer"], rtt=rtt, **times), "fluid"
    )
    packets = _chosen(point, "own rate")
    return {
        "fluid utilization": fluid["utilization", "bottleneck"],
        "ns-3 utilization": float(packets.throughput_bit_per_s.mean() / left),
        "fluid delay": fluid["delay", "bottleneck"],
        "ns-3 delay": float(packets.rtt_mean_s.mean() - rtt),
        "packet time": BITS_PER_BYTE * size / link.capacity,
    }


def main() -> None:
    """Prints all tables as Markdown."""
    for point in POINTS:
        print(f"\n{point}\n\n| | Mbit/s | its deviation | RTT ms | 99 % ms | sent again % |\n|---|---|---|---|---|---|")
        for row in table(point).to_dict("records"):
            cells = [f"{row[name]:.4g} ± {row[f'{name}_half_width'] or 0.0:.2g}" for name in _SHOWN]
            print(f"| {row['scheme']} | {' | '.join(cells)} |")
        print({name: float(f"{value:.4g}") for name, value in beside_fluid(point).items()})


if __name__ == "__main__":
    main()
