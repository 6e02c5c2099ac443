"""Figures in ms of certificates against packets, or the Linux kernel in virtual time, at random links.

`PYTHONPATH=experiments python -m engines.delays [--engine kernel] [--points 300] [LAW ...]` draws a load of 1 to 500
flows, 1 Mbit/s to 1 Gbit/s and 2 to 300 ms for each point, and prints at how many of those whose figure comes from the
loop or the cycle it holds, and how often a certificate is wrong that says whether the queue is as asked: 99 % of
packets within three targets, 98 % of the link used. It is judged by three runs with other seeds, and so is the time
above two targets after steps of the load, at the first `--steps` links. On packets senders have the cuts of RFC 5681,
as the certified ones; in the kernel both are Linux's.

`fq_codel`, with one flow, and `codel`, with 1 to 500, are judged on packets at targets of 2 to 20 ms and intervals of
50 to 200 ms; `tube` tells how many packet runs leave the delay that is proved for boxes of rates and round trips.
"""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import netctrl
from netctrl.certificates.codel import codel
from netctrl.certificates.predicted import LEAST_WINDOW
from netctrl.checks.engines import check_packets, check_scenario, figures_of, measured
from netctrl.checks.point import point_at, point_of
from netctrl.checks.steps import load_steps

SENDERS = {
    "packet": {"reno": "rfc-reno", "cubic": "rfc-creno", "half of each": "rfc-reno+rfc-creno"},
    "kernel": {"reno": "linux-reno", "cubic": "linux-creno"},
}
CYCLES = {"fq_codel": 1.0, "codel": 500.0}
"""Law judged by its cycle -> flows at most."""
LAWS = {"packet": ("pi2", "dualpi2", "pie", "docsis-pie", "red", *CYCLES), "kernel": ("pie", "red")}
MOST_PACKETS, MOST_CODEL = 6e5, 4e6
SEEDS = (11, 12, 13)


class Compared(NamedTuple):
    """Figures of a certificate over those of an engine, utilization less the engine's, and whether each says that the
    queue is as asked."""

    formula: bool
    deviation: float
    p99: float
    utilization: float
    told: bool
    found: bool
    steps: tuple[bool, ...] = ()
    """Whether the time above two targets after each step of the load is within .3 s or 1.5 times that of the engine."""


def compared(law: str, engine: str, points: int, seed: int, steps: int) -> Iterator[Compared]:
    """One for each link that was drawn, the first so many with steps of the load."""
    random = np.random.default_rng(seed)
    while points:
        rate = 10.0 ** random.uniform(6.0, 9.0)
        rtt, flows = (float(np.exp(random.uniform(*np.log(ends)))) for ends in ((0.002, 0.3), (1.0, 500.0)))
        flows, sender = float(round(flows)), str(random.choice(list(SENDERS[engine].values())))
        given = parameters(law, engine, rate, random)
        if engine == "kernel" and rate / 12_000.0 * (rtt + 0.01) / flows < LEAST_WINDOW:
            continue  # the loop gives no figure
        try:
            found = netctrl.certify(
                law, rtt_s=rtt, flows=flows, capacity_bit_per_s=rate, senders=sender, parameters=given
            )
        except netctrl.InvalidValue:  # Linux's RED has no such thresholds
            continue
        told = found.certificate.predicted
        if told is None or (judge := judged(found, engine)) is None:
            continue
        points, steps = points - 1, steps - 1
        yield Compared(
            told.by == "loop",
            told.delay_std_s / judge.delay_std_s,
            told.delay_p99_s / judge.delay_p99_s,
            told.utilization - judge.utilization,
            found.holds,
            judge.as_asked,
            tuple(alike(found, engine)) if steps >= 0 else (),
        )


def alike(found: Any, engine: str) -> Iterator[bool]:
    """Of each step of the load whether its time above two targets is as in other runs."""
    beyond, told = found.certificate.beyond, found.certificate.predicted.steps
    point = point_at(found, beyond[0]) if beyond else point_of(found, engine)
    if told:
        runs = [load_steps(point, engine, seed) for seed in (SEEDS if engine == "packet" else (1,))]
        for each, *judges in zip(told, *runs, strict=True):
            mine, mean = each.above_two_targets_s, float(np.mean([run.above_two_targets_s for run in judges]))
            yield abs(mine - mean) <= 0.3 or max(mine, mean) <= 1.5 * min(mine, mean)


def parameters(law: str, engine: str, rate: float, random: np.random.Generator) -> dict[str, Any]:
    """Of a law: its defaults at the kernel's HZ; of RED thresholds from 10 to 90 ms of the link, and three slopes."""
    if law != "red":
        return {"hz": 1000} if law == "pie" and engine == "kernel" else {}
    least = round(rate / 8.0 * random.uniform(0.01, 0.03))
    burst, most = max(10, round(1.7e-3 * least)), 3 * least
    lines = {"min_bytes": least, "max_bytes": most, "limit_bytes": 4 * most, "burst": burst}
    return lines | {"probability": float(random.choice([0.02, 0.05, 0.1])), "ecn": True}


def judged(found: Any, engine: str) -> Any:
    """Figures of other runs; None where one in the kernel has too many packets."""
    beyond = found.certificate.beyond
    point = point_at(found, beyond[0]) if beyond else point_of(found, engine)
    if engine == "packet":
        return measured(point, found.inputs, SEEDS)
    if beyond or point.loop.rate * check_scenario(point, engine, 1).duration > MOST_PACKETS:
        return None
    (run,) = check_packets(point, engine, (1,)).runs
    means = run.mean_delay_s, run.deviation_s or 0.0, run.delay_99_s or 0.0, run.utilization
    return figures_of(point, found.inputs, means, "kernel")


def drawn(random: np.random.Generator, most_flows: float) -> tuple[dict[str, Any], dict[str, float]]:
    """Arguments of a certificate at a random link, and CoDel's times."""
    rate = 10.0 ** random.uniform(6.0, 9.0)
    ends = ((0.002, 0.3), (1.0, most_flows), (0.002, 0.02), (0.05, 0.2))
    rtt, flows, target, interval = (float(np.exp(random.uniform(*np.log(each)))) for each in ends)
    where = {"rtt_s": rtt, "flows": float(round(flows)), "capacity_bit_per_s": rate}
    where["senders"] = str(random.choice(["rfc-reno", "rfc-creno"]))
    return where, {"target_s": target, "interval_s": interval}


def cycles(law: str, points: int, seed: int) -> Iterator[Compared]:
    """As `compared`, of CoDel's cycles, which are followed for longer."""
    random = np.random.default_rng(seed)
    while points:
        where, times = drawn(random, CYCLES[law])
        found = netctrl.certify(law, **where, parameters=times)
        if (told := found.certificate.predicted) is None:
            continue
        swing, trip = found.certificate.codel, where["rtt_s"] + times["target_s"]
        window = where["capacity_bit_per_s"] / 12_000.0 * trip / where["flows"]
        cut = 5.0 * swing.period_s if swing is not None and where["flows"] == 1.0 else 2.0 * window * trip
        delay, used = on_packets(where, times, max(cut, 20.0))
        if len(delay):
            points -= 1
            p99 = float(np.quantile(delay, 0.99))
            near = told.delay_std_s / delay.std(), told.delay_p99_s / p99, told.utilization - used
            yield Compared(told.by == "cycle", *near, found.holds, p99 <= told.most_p99_s and used >= 0.98)


def on_packets(where: dict[str, Any], times: dict[str, float], warm: float) -> tuple[np.ndarray, float]:
    """Delays of CoDel's queue [s] and utilization, after `warm` for twice as long; none where these are too many
    packets."""
    rate, rtt = where["capacity_bit_per_s"], where["rtt_s"]
    if rate / 12_000.0 * 3.0 * warm > MOST_CODEL:
        return np.array([]), 0.0
    queue = {"kind": "codel", "target": times["target_s"], "interval": times["interval_s"]}
    line = {"id": "line", "source": "a", "target": "b", "capacity": rate, "delay": rtt / 4.0, "queue": queue}
    line["buffer"] = max(2.0 * rate / 8.0, 6e4)
    flow = {"id": "flow", "path": ["line"], "rtt": rtt, "count": int(where["flows"])}
    flow |= {"sender": {"rfc-reno": "reno", "rfc-creno": "cubic"}[where["senders"]], "start": [0.0, 0.5]}
    interval = max(2.0 * warm / 2e5, min(rtt, times["target_s"]) / 7.3)
    scenario = {"links": [line], "flows": [flow], "duration": 3.0 * warm, "warmup": warm, "interval": interval}
    run = netctrl.simulate(netctrl.Scenario(name="codel", packet_size=1500.0, **scenario), "packet")
    return 8.0 * run.series["backlog"][0][run.time_s > warm] / rate, run["utilization", "line"]


def outside(boxes: int, points: int, seed: int) -> tuple[int, int]:
    """Packet runs at random points of random boxes for which a longest delay is proved, and how many of them exceed it
    by more than a packet."""
    random, runs, found = np.random.default_rng(seed), 0, 0
    while boxes:
        where, times = drawn(random, 1.0)
        ends = {name: (where[name], where[name] * random.uniform(1.0, 1.5)) for name in ("rtt_s", "capacity_bit_per_s")}
        verdict = netctrl.certify(codel(**times), **(where | ends)).certificate
        if verdict.codel is None or (longest := verdict.codel.longest_s_proved) is None:
            continue
        warm = max(5.0 * verdict.codel.period_s, 5.0)
        if ends["capacity_bit_per_s"][1] / 12_000.0 * 3.0 * warm > MOST_CODEL / 4.0:
            continue
        boxes -= 1
        for _ in range(points):
            at = where | {name: float(random.uniform(*each)) for name, each in ends.items()}
            delay, _ = on_packets(at, times, warm)
            runs += 1
            found += bool(delay.max() > longest + 12_000.0 / at["capacity_bit_per_s"])
    return runs, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("laws", nargs="*", metavar="LAW")
    parser.add_argument("--engine", choices=tuple(SENDERS), default="packet")
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(
        "| law | links | by loop, cycle | deviation, 99 % within 1.3 times | utilization within .02 | harmful: safe "
        "| harmless, refused | time above two targets within .3 s or 1.5 times |\n|---|---|---|---|---|---|---|---|"
    )
    for law in asked.laws or LAWS[asked.engine]:
        if law == "tube":
            print("{} runs in 50 boxes, {} outside".format(*outside(50, max(asked.points // 50, 1), asked.seed)))
            continue
        own = law in CYCLES
        asks = law, asked.points, asked.seed
        each = list(cycles(*asks) if own else compared(law, asked.engine, *asks[1:], asked.steps))
        ratios = np.array([found[1:4] for found in each if found.formula]).reshape(-1, 3)
        first, second = np.count_nonzero(np.abs(np.log(ratios[:, :2])) < np.log(1.3), axis=0)
        used = np.count_nonzero(np.abs(ratios[:, 2]) < 0.02)
        harmful, harmless = ([found.told for found in each if found.found is kind] for kind in (False, True))
        wrong = f"{sum(harmful)} of {len(harmful)} | {harmless.count(False)} of {len(harmless)}"
        steps = [step for found in each for step in found.steps]
        row = law, len(each), len(ratios), f"{first}, {second}", used, wrong, f"{sum(steps)} of {len(steps)}"
        print("|", " | ".join(map(str, row)), "|", flush=True)


if __name__ == "__main__":
    main()
