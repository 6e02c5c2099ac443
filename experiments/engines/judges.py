"""Packets and the own-rate law before public judges: `python experiments/full.py engines-judges [SEED ...]`.

With `TRACES=FOLDER` also over the delivery traces in a folder, mahimahi's `.up` and `.down` files.
`PYTHONPATH=experiments python -m engines.judges [--docs]` prints what is kept, and makes the tables of the docs.

What was published is in data/results/engines-judges-published.csv: means and standard deviations of runs (jittertrap,
rebbr), a table (RFC 9438), what was read from a picture to 1 Mbit/s (CACM), a model within 5 % (Ware et al., eqs. 9 to
11, whose median error that is), and two bandwidth-delay products (Hock et al.). `SOURCES` says where from.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import sampled, tables
from study import RESULTS, Case, Made, Record, Study, made_by

import netctrl
from netctrl.plants.queues.cubic_response import cubic_window
from netctrl.scenario.links import Link
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Writes

SOURCES = {
    "jittertrap": "github.com/acooks/jittertrap, commit 30f70758, pathological-porcupines/research/topics/"
    "tcp-flow-control/results: {loss-tolerance,jitter-cliff,starlink}/*.csv; set-up: scripts/run-sweep.sh",
    "RFC 9438": "section 5.1, tables 1 and 2, C = 0.4",
    "CACM": "Cardwell et al., BBR: congestion-based congestion control, CACM 60(2), 2017, Fig. 8",
    "rebbr": "github.com/jervisfm/rebbr, commit a3854d21: figure8.csv, figure8_experiment.csv of June 2017; Linux 4.11",
    "Ware et al.": "Modeling BBR's interactions with loss-based congestion control, IMC 2019",
    "Hock et al.": "Experimental evaluation of BBR congestion control, ICNP 2017",
    "traces": "github.com/ravinet/mahimahi, commit ae477d43, traces/",
}
PUBLISHED = RESULTS / "engines-judges-published.csv"
KEY = ("judge", "cell", "sender", "seed")
SEEDS = range(1, 6)
LINE = 1e10  # bit/s: where only delay, jitter and loss were set
MSS, FRAME = 1448.0, 1488.0
WINDOW = 313_344.0
"""The largest that was seen in jittertrap's runs [byte]."""
OFFERED = {5.0: 4945.0, 10.0: 9530.0}
"""What programs that aim at so many MB/s write, by their runs without delay: they sleep a little too long [KB/s]."""
TRACE_SENDERS = ("own-rate", "bbr", "cubic")
TRACE_BUFFERS = (50e3, 150e3, 1e6)
TRACE_RTT, TRACE_S, TRACE_WARMUP = 0.04, 120.0, 5.0
TRACE_LATER = 0.85
"""How much later than with the seed before the flow begins [s]; nothing else is random."""


def published() -> pd.DataFrame:
    return pd.read_csv(PUBLISHED).set_index(list(KEY[:3]), drop=False)


def traces() -> dict[str, Path]:
    """Delivery traces, by their files' names."""
    folder = os.environ.get("TRACES")
    found = sorted(Path(folder).iterdir()) if folder else []
    return {path.name: path for path in found if path.suffix in (".up", ".down")}


def cases(seed: int) -> list[Case]:
    known = [(*case, seed) for case in published().index]
    buffers = TRACE_BUFFERS if seed == SEEDS[0] else TRACE_BUFFERS[1:2]
    sizes = [f"{name}, {size / 1e3:g} kB" for name in traces() for size in buffers]
    return known + [("traces", cell, sender, seed) for cell in sizes for sender in TRACE_SENDERS]


def run_on(links: tuple[Link, ...], flows: tuple[Flow, ...], seconds: float, seed: int, **others: Any) -> Result:
    given = {"packet_size": FRAME, "interval": seconds / 100.0, "seed": seed} | others
    return netctrl.simulate(Scenario(name="judges", links=links, flows=flows, duration=seconds, **given), "packet")


def both_ways(row: Any, seed: int) -> tuple[Result, float]:
    """netem on both ways, and a program that writes at a rate; what is read [KB/s]."""
    moves = {"jitter": row.jitter_ms / 1e3, "reorder": True, "spread": "normal"} if row.jitter_ms else {}
    delay, seconds = row.delay_ms / 1e3, 15.0 if row.judge.endswith("profiles") else 10.0
    there, back = (
        Link(id=name, source=name[0], target=name[1], capacity=LINE, delay=delay, loss=row.loss, **moves)
        for name in ("ab", "ba")
    )
    flow = Flow(
        path=("ab",),
        ack_path=("ba",),
        rtt=2.0 * delay,
        sender=row.sender,
        offers=Writes(size=6.0 * MSS, interval=6.0 * MSS / (1024.0 * OFFERED[row["size"]])),
        receive_window=WINDOW,
        delayed_acks=True,
        offload=row.sender == "bbr",  # off on their interfaces, so that TCP's pieces were cut before netem
    )
    found = run_on((there, back), (flow,), seconds, seed)
    return found, float(found.tables["connections"]["read"][0]) / seconds / 1024.0


def line(row: Any, rate: float, bdps: float | None, **others: Any) -> Link:
    size = None if bdps is None else bdps * rate * 2e-3 * row.delay_ms / 8.0
    return Link(id="ab", source="a", target="b", capacity=rate, delay=row.delay_ms / 1e3, buffer=size, **others)


def window(row: Any, seed: int) -> tuple[Result, float]:
    """Mean window over so many losses [packet]; a receiver that acknowledges each packet, as in the RFC's formula."""
    rtt, losses = 2e-3 * row.delay_ms, 300.0 if row.loss < 5e-5 else 2000.0
    seconds = round(1.5 * losses * rtt / (row.loss * row.published), 1)
    link, flow = line(row, LINE, None, loss=row.loss), Flow(rtt=rtt, sender=row.sender)
    found = run_on((link,), (flow,), seconds, seed, warmup=seconds / 3.0)
    return found, found["goodput", row.sender] * rtt / (8.0 * MSS)


def goodput(row: Any, seed: int) -> tuple[Result, float]:
    """Of 60 s over 100 Mbit/s [Mbit/s]. rebbr counts what leaves the link, before losses, with headers; its buffer is
    endless and its receivers take 6.25 MB."""
    rebbr = row.judge == "rebbr"
    flow = Flow(rtt=0.1, sender=row.sender, delayed_acks=True, receive_window=6.25e6 if rebbr else None)
    found = run_on((line(row, 1e8, None if rebbr else 1.0, loss=row.loss),), (flow,), 60.0, seed)
    sent = found.tables["connections"]["sent"].sum() * 8.0 * FRAME / (MSS * 60.0)
    return found, (sent if rebbr else found["goodput", row.sender]) / 1e6


def shared(row: Any, seed: int) -> tuple[Result, float]:
    """BBR's share beside Cubic flows on 10 Mbit/s; or of BBR flows alone on 100 Mbit/s the RTT over the least one."""
    rtt, alone = 2e-3 * row.delay_ms, row.judge == "Hock et al."
    rate, seconds = (1e8, 60.0) if alone else (1e7, 600.0)
    counts = {"bbr": row.others} if alone else {"bbr": 1, "cubic": row.others}
    flows = tuple(
        Flow(sender=name, count=int(count), rtt=rtt, start=(0.0, 1.0), delayed_acks=True)
        for name, count in counts.items()
    )
    link = line(row, rate, row["size"], jitter=8.0 * FRAME / rate)
    found = run_on((link,), flows, seconds, seed, warmup=seconds / 3.0)
    rates = [found["goodput", name] for name in counts]
    return found, found["rtt", "bbr"] / rtt if alone else rates[0] / sum(rates)


RUNS = {"jittertrap": both_ways, "RFC": window, "CACM": goodput, "rebbr": goodput, "Ware": shared, "Hock": shared}


def again(found: Result) -> float:
    """Share of the data that was sent again though nothing of it was lost: what was resent beyond what was lost."""
    sent, resent = (float(found.tables["connections"][name].sum()) for name in ("sent", "resent"))
    return (resent - float(found.series["lost", "ab"].sum()) * MSS / FRAME) / sent


def run(judge: str, cell: str, sender: str, seed: int) -> Made:
    if judge == "traces":
        return over_trace(cell, sender, seed)
    found, value = RUNS[judge.split()[0]](published().loc[judge, cell, sender], seed)
    return Made([{"found": value, "again": again(found)}])


def over_trace(cell: str, sender: str, seed: int) -> Made:
    """Goodput [Mbit/s], and the delay in the queue: mean, and 95 % of the packets wait less [ms]."""
    name, size = cell.split(", ")
    trace, rtt = netctrl.read(traces()[name]), TRACE_RTT
    link = Link(
        id="ab",
        source="a",
        target="b",
        capacity=trace.mean_bit_per_s,
        delay=rtt / 2.0,
        buffer=1e3 * float(size.removesuffix(" kB")),
        trace=trace,
    )
    flow = Flow(rtt=rtt, sender=sender, delayed_acks=True, start=TRACE_LATER * (seed - 1))
    found = run_on((link,), (flow,), TRACE_S, seed, warmup=TRACE_WARMUP, interval=0.01)
    waits, carried = sampled(found, "delay", "ab"), sampled(found, "departed", "ab")
    waits, carried = waits[carried > 0.0], carried[carried > 0.0]
    order = np.argsort(waits)
    late = waits[order][np.searchsorted(np.cumsum(carried[order]), 0.95 * carried.sum())]
    row = {"found": found["goodput", sender] / 1e6, "again": again(found), "delay_ms": 1e3 * found["delay", "ab"]}
    return Made([row | {"late_ms": 1e3 * late}], {name: hashlib.sha256(traces()[name].read_bytes()).hexdigest()})


def record(before: Record, data: pd.DataFrame, case: Case, about: dict[str, str] | None) -> Record:
    return before | {"sources": SOURCES, "traces": before.get("traces", {}) | (about or {})}


STUDY = Study(
    name="engines-judges", key=KEY, repeats=SEEDS, cases=cases, runs=made_by(run), record=record, sort=KEY, digits=5
)


def judged() -> pd.DataFrame:
    """A row for each judge and sender: how many of its points are met, and by how much not."""
    known = STUDY.read()
    runs = known[known.judge != "traces"].groupby(list(KEY[:3]), sort=False)
    points = runs.found.agg(["mean", "std"]).join(runs.again.mean()).join(published().drop(columns=list(KEY[:3])))
    rows = []
    for (judge, sender), part in points.groupby(level=["judge", "sender"], sort=False):
        rows.append({"judge": judge, "sender": sender} | met(part))
        if judge == "RFC 9438":  # its losses come every 1/p packets
            theory = cubic_window(np.log(part.loss), np.log(2e-3 * part.delay_ms), 0.4, 9.0 / 17.0)
            rows.append(
                {"judge": "the same, losses by chance", "sender": sender} | met(part.assign(published=np.exp(theory)))
            )
    return pd.DataFrame(rows)


def met(part: pd.DataFrame) -> dict[str, Any]:
    """Of points with their means and deviations, found and published; ratios where there is more than a deviation."""
    told = part[part.published > part.spread.fillna(0.0)]
    ratio, far = told["mean"] / told.published, (part["mean"] - part.published).abs()
    near = 100.0 * (far <= 2.0 * np.hypot(part["std"], part.spread)).mean()
    shares = [f"{100.0 * ((ratio - 1.0).abs() <= bound).mean():.0f}" for bound in (0.05, 0.1)]
    return {
        "points": len(part),
        "within two deviations [%]": "" if part.spread.isna().all() else f"{near:.0f}",
        "within 5 % [%]": shares[0],
        "within 10 % [%]": shares[1],
        "found over published": f"{ratio.median():.2f} ({ratio.min():.2f} to {ratio.max():.2f})",
        "sent twice at most [%]": f"{100.0 * max(part.again.max(), 0.0):.2g}",
    }


def over_traces() -> pd.DataFrame:
    """Of each buffer: the own-rate law over BBR, medians and extremes, and on how many traces it is better."""
    known = STUDY.read()
    known = known[known.judge == "traces"].assign(buffer=lambda data: data.cell.str.split(", ").str[1])
    rows = []
    for size, part in known.groupby("buffer", sort=False):
        means = part.groupby(["sender", "cell"])[["found", "delay_ms", "late_ms"]].mean()
        by = {name: means.loc[name] for name in TRACE_SENDERS}
        own = by["own-rate"]
        for peer in ("bbr", "cubic"):
            ratios = {name: own[name] / by[peer][name] for name in ("found", "delay_ms", "late_ms")}
            good = (ratios["found"] >= 0.9) & (ratios["delay_ms"] < 1.0) & (ratios["late_ms"] < 1.0)
            middle = {
                title: f"{ratios[name].median():.2f} ({ratios[name].min():.2f} to {ratios[name].max():.2f})"
                for name, title in (("found", "throughput"), ("delay_ms", "mean delay"), ("late_ms", "95 % delay"))
            }
            rows.append({"buffer": size, "own-rate over": peer, **middle, "traces": f"{good.sum()} of {len(good)}"})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    tables(engines_judges=judged, engines_traces=over_traces)
