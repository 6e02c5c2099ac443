"""Engines side by side, kept in data/results/: `python experiments/full.py engines-pairs [SEED ...]` of the packet
engine and ns-3, `engines-draws [DRAW ...]` of scenarios drawn at random, `engines-four [SEED ...]` with the fluid
and the kernel in virtual time. `PYTHONPATH=experiments python -m engines.validate` prints what is kept; `--docs` also
makes the picture and the table of the four.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import common
import msgspec
import numpy as np
import pandas as pd
from common import used
from matplotlib.figure import Figure
from packets import run_ns3
from study import ROOT, Made, Record, Study, made_by

import netctrl
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.avq import AvqQueue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue, Queue
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.aqm.sfc import SfcQueue
from netctrl.scenario.figures import estimate
from netctrl.scenario.links import Link
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.run import simulate_packets

PACKET = 1500
SENDERS = ("reno", "cubic", "htcp")
QUEUES: dict[str, Queue] = {
    "droptail": DropTailQueue(),
    "red": RedQueue(),
    "pie": PieQueue(),
    "codel": CodelQueue(),
    "pi": PiQueue(),
    "arc": ArcQueue(alpha=1e-4, epoch=0.1),
    "avq": AvqQueue(),
    "sfc": SfcQueue(epoch=0.1),
}
"""Of the laws' own settings, but for epochs that are made for a minute and not for an hour."""
FLUID, PACKETS, NS3, KERNEL = "fluid", "packet", "ns3", "kernel"
RUNNERS: dict[str, Callable[[Scenario], Result]] = {
    FLUID: lambda scenario: netctrl.simulate(scenario, FLUID),
    PACKETS: simulate_packets,
    NS3: run_ns3,
    KERNEL: lambda scenario: netctrl.simulate(scenario, KERNEL),
}


class Case(NamedTuple):
    """A sender through a queue that marks, or drops."""

    sender: str
    queue: str
    ecn: bool


DROPPING = ("droptail", "red", "pie", "codel")
PAIRS = [Case(s, q, False) for q in DROPPING for s in SENDERS]
PAIRS += [Case(s, q, True) for q in QUEUES if q != "droptail" for s in SENDERS]


def line(case: Case, rate: float, rtt: tuple[float, float], count: int, buffer: float, seed: int) -> Scenario:
    """`count` flows over one link; rate [bit/s], rtt [s], buffer [byte]."""
    link = Link(
        id="line", source="a", target="b", capacity=rate, delay=rtt[0] / 4, buffer=buffer, queue=QUEUES[case.queue]
    )
    flows = Flow(id="bulk", path=("line",), rtt=rtt, count=count, start=(0.0, 5.0), sender=case.sender, ecn=case.ecn)
    return Scenario(
        name=f"{case.sender} over {case.queue}",
        duration=45.0,
        warmup=15.0,
        links=(link,),
        flows=(flows,),
        packet_size=PACKET,
        interval=0.01,
        seed=seed,
    )


def pairs(seed: int) -> dict[Case, Scenario]:
    """A bandwidth-delay product of buffer. Cubic's flows are few and far, so that its own curve is in play."""
    short, long = (25e6, (0.02, 0.06), 8, 125e3), (40e6, (0.06, 0.1), 4, 400e3)
    return {case: line(case, *(long if case.sender == "cubic" else short), seed) for case in PAIRS}


def draw(number: int) -> dict[Case, Scenario]:
    """2 to 200 Mbit/s, 5 to 200 ms, 1 to 50 flows, 0.2 to 2 bandwidth-delay products: evenly in their logarithms."""
    rng = np.random.default_rng([2026, number])
    rate, rtt, count, pipes = np.exp(rng.uniform(np.log([2e6, 5e-3, 1, 0.2]), np.log([200e6, 200e-3, 51, 2.0])))
    case = Case(str(rng.choice(SENDERS)), str(rng.choice(list(QUEUES))), bool(rng.integers(2)))
    if case.queue == "droptail":
        case = case._replace(ecn=False)
    buffer = max(round(pipes * rate * rtt / 8.0), 4 * PACKET)
    return {case: line(case, round(rate), (0.8 * rtt, 1.2 * rtt), int(count), buffer, number)}


class Placed(NamedTuple):
    """Reno through a queue at one of `PLACES`."""

    place: str
    queue: str


PLACES = {
    "near, few": (25e6, (0.02, 0.06), 8, 125e3),
    "far, few": (20e6, (0.1, 0.14), 6, 300e3),
    "near, many": (50e6, (0.03, 0.05), 50, 250e3),
}
"""Rate [bit/s], round trips [s], number of flows, buffer [byte] of one bandwidth-delay product."""


def four(seed: int) -> dict[Placed, Scenario]:
    """What all four engines have: Reno without ECN over three queues at three places."""
    cases = (Placed(place, queue) for place in PLACES for queue in ("droptail", "pie", "codel"))
    return {case: line(Case("reno", case.queue, False), *PLACES[case.place], seed) for case in cases}


def run(engines: Sequence[str], scenarios: Mapping[Any, netctrl.Scenario], *key: Any) -> Made:
    """One scenario in all engines: a row of each."""
    rows, made = [], []
    for engine in engines:
        result = RUNNERS[engine](scenarios[key[:-1]])
        rows.append({"engine": engine} | measured(result))
        source = msgspec.json.decode(msgspec.json.encode(result.provenance))
        made.append({"simulator": result.simulator} | {name: source[name] for name in source if name != "created"})
    return Made(rows, made)


def record(before: Record, data: pd.DataFrame, case: tuple[Any, ...], made: list[dict[str, object]]) -> Record:
    known = before.get("made", [])
    return before | {"made": known + [each for each in made if each not in known]}


def study(
    name: str,
    repeats: range,
    scenarios: Callable[[int], Mapping[Any, netctrl.Scenario]],
    engines: Sequence[str] = (PACKETS, NS3),
    key: tuple[str, ...] = Case._fields,
) -> Study:
    """Scenarios of each number, in each engine."""
    return Study(
        name=name,
        key=(*key, "number"),
        repeats=repeats,
        cases=lambda number: [(*case, number) for case in scenarios(number)],
        runs=made_by(lambda *case: run(engines, scenarios(case[-1]), *case), len(os.sched_getaffinity(0))),
        record=record,
        sort=(*sorted(key, key=("place", "queue", "sender", "ecn").index), "number", "engine"),
    )


def measured(result: Result) -> dict[str, float]:
    name = result.links[0]
    link = result.of(name)
    return {
        "throughput_mbit_s": link["throughput"] / 1e6,
        "utilization": used(result, name),
        "queue_packets": link["backlog"] / PACKET,
        "deviation_packets": link["backlog std"] / PACKET,
        "loss": link["loss"],
        "marks": link["marks"],
    }


STUDIES = (
    study("engines-pairs", range(1, 6), pairs),
    study("engines-draws", range(1, 31), draw),
    study("engines-four", range(1, 6), four, (FLUID, PACKETS, NS3, KERNEL), Placed._fields),
)


QUANTITIES = {
    "throughput_mbit_s": "throughput [Mbit/s]",
    "queue_packets": "queue [packet]",
    "chosen": "lost or marked [%]",
}


def table(data: pd.DataFrame, by: Sequence[str] = ("queue", "ecn", "sender")) -> pd.DataFrame:
    """Means over numbers in both engines with half widths of 95 % intervals, and differences from ns-3's [%].

    ns-3's queue is that of its queue disc, and the packet that its device holds while it sends another.
    """
    device = np.where(data.engine == NS3, data.utilization, 0.0)
    data = data.assign(queue_packets=data.queue_packets + device, chosen=100.0 * (data.loss + data.marks))
    rows = []
    for case, part in data.groupby(list(by), sort=False):
        row = dict(zip(by, case, strict=True)) | {"runs": len(part) // 2}
        for what in QUANTITIES:
            values = {name: part[part.engine == name][what].to_numpy() for name in (PACKETS, NS3)}
            for name, each in values.items():
                row[f"{what}:{name}"] = each.mean()
                row[f"{what}:{name}:half"] = estimate(each).half_width if len(each) > 1 else np.nan
            row[f"{what}:difference"] = 100.0 * (values[PACKETS].mean() / values[NS3].mean() - 1.0)
        rows.append(row)
    return pd.DataFrame(rows)


def markdown(found: pd.DataFrame) -> str:
    """The table of `docs/figures/engines.md`."""
    lines = ["| sender, queue | runs | " + " | ".join(f"{text} | " for text in QUANTITIES.values()) + "|"]
    lines.append("|---" * (2 + 2 * len(QUANTITIES)) + "|")
    for row in found.to_dict("records"):
        cells = [f"{row['sender']}, {row['queue']}{', ECN' if row['ecn'] else ''}", str(row["runs"])]
        for what in QUANTITIES:
            both = (f"{row[f'{what}:{name}']:.3g} ± {row[f'{what}:{name}:half']:.1g}" for name in (PACKETS, NS3))
            cells += [", ".join(both), f"{row[f'{what}:difference']:+.1f} %"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def means(data: pd.DataFrame) -> pd.DataFrame:
    """Of the study of four: means over seeds and half widths of 95 % intervals, a row for each case and engine."""
    device = np.where(data.engine == NS3, data.utilization, 0.0)
    held = np.where(data.engine == KERNEL, data.utilization, 0.0)
    data = data.assign(queue_packets=data.queue_packets + device + held, chosen=100.0 * (data.loss + data.marks))
    return common.means(data, (*Placed._fields, "engine"), QUANTITIES)


NAMES = {FLUID: "fluid", PACKETS: "packets", NS3: "ns-3", KERNEL: "Linux"}
COLOURS = {FLUID: "#888888", PACKETS: "#1f4e9c", NS3: "#b45f06", KERNEL: "#38761d"}
TITLES = {"throughput_mbit_s": "throughput [Mbit/s]", "queue_packets": "mean queue [packet]", "chosen": "lost [%]"}


def picture(found: pd.DataFrame) -> Figure:
    """Each case's means in the four engines, with intervals."""
    cases = list(dict.fromkeys(zip(found.place, found.queue, strict=True)))
    figure = Figure(figsize=(9.0, 4.8), layout="constrained")
    axes = figure.subplots(1, len(TITLES), sharey=True)
    for axis, (what, title) in zip(axes, TITLES.items(), strict=True):
        for shift, engine in enumerate(NAMES):
            part = found[found.engine == engine].set_index(["place", "queue"]).loc[cases]
            rows = np.arange(len(cases)) + 0.18 * (shift - 1.5)
            half = part[f"{what}_half"].fillna(0.0)
            axis.errorbar(part[what], rows, xerr=half, fmt="o", ms=4, color=COLOURS[engine], label=NAMES[engine])
        axis.set_xlabel(title)
        if what == "chosen":
            axis.set_xscale("log")
        else:
            axis.set_xlim(left=0.0)
        axis.grid(axis="x", color="#dddddd")
    axes[0].set_yticks(np.arange(len(cases)), [f"{place}: {queue}" for place, queue in cases])
    axes[0].invert_yaxis()
    axes[0].legend(loc="lower left", frameon=False)
    return figure


def shown(found: pd.DataFrame) -> pd.DataFrame:
    """The table of `docs/figures/engines.md`: a row for each case and quantity, a column for each engine."""
    rows = []
    for (place, queue), part in found.groupby(["place", "queue"], sort=False):
        for what, title in TITLES.items():
            row = {"place": place, "queue": queue, "quantity": title}
            for each in part.to_dict("records"):
                half = each[f"{what}_half"]
                interval = "" if np.isnan(half) else f" ± {float(f'{half:.1g}'):g}"
                row[NAMES[each["engine"]]] = f"{each[what]:.3g}{interval}"
            rows.append(row)
    return pd.DataFrame(rows)[["place", "queue", "quantity", *NAMES.values()]]


def draw_four(found: pd.DataFrame) -> None:
    """Picture and table of the docs."""
    assets = ROOT / "docs" / "assets"
    picture(found).savefig(assets / "engines-four.png", dpi=150)
    shown(found).to_csv(assets / "engines-four.csv", index=False)


if __name__ == "__main__":  # PYTHONPATH=experiments python -m engines.validate [--docs]
    pairs_found, draws_found, four_found = (each.read() for each in STUDIES)
    print(shown(means(four_found)).to_string())
    if "--docs" in sys.argv:
        draw_four(means(four_found))
    counted = pairs_found.groupby(["sender", "queue", "ecn"]).number.transform("nunique")
    print(markdown(table(pairs_found[counted > 1])))
    drawn = table(draws_found, ("number", "queue", "ecn", "sender"))
    print(drawn[["number", "queue", "ecn", "sender", *(f"{what}:difference" for what in QUANTITIES)]].to_string())
    print(drawn[[f"{what}:difference" for what in QUANTITIES]].abs().quantile([0.5, 0.75, 0.9, 1.0]))
