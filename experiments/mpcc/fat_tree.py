"""MPCC thesis, section 5.4: six schemes in the fat tree of Fig. 5.5, kept in data/results/.

`python experiments/mpcc/fat_tree.py [SEED ...]`: runs the seeds (1 to 5) that aren't kept yet, and keeps each as soon
as it is done. What the thesis doesn't say is chosen here: how often an incast comes, PFC's thresholds, the flow
counter's timeout; peers' marking is that of section 5.1 of the HPCC paper, whose simulator the thesis used.
"""

from __future__ import annotations

import sys
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from netctrl.laws.window.records import Dcqcn, Dctcp, Hpcc, Mpcc, Scheme, Timely
from netctrl.model.io.files import write_atomically
from netctrl.model.io.provenance import provenance
from netctrl.scenario.fabric.flows import IncastFlows, PoissonFlows
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.fabric.result import SIZE_BINS, FabricResult
from netctrl.scenario.fabric.topology import FatTree
from netctrl.scenario.scenario import Scenario
from netctrl.sim.fabric.run import simulate_fabric

RESULTS = Path(__file__).resolve().parents[2] / "data" / "results"
NAME = "mpcc-fat-tree"
SEEDS = (1, 2, 3, 4, 5)
SCHEMES: dict[str, Scheme] = {
    "MPCC": Mpcc(),
    "MPCC, delayed": Mpcc(variant="delayed"),
    "MPCC, feed-forward": Mpcc(variant="feed-forward"),
    "HPCC": Hpcc(),
    "DCTCP": Dctcp(threshold=30e3, threshold_rate=1e10),
    "TIMELY": Timely(increase=1e8),
    "DCQCN": Dcqcn(
        mark_low=100e3, mark_high=400e3, mark_most=0.2, threshold_rate=25e9, increase=50e6, hyper_increase=100e6
    ),
}
"""Delay-free MPCC is the thesis's; feed-forward is our ablation, K = 0."""
SENDING = {"WebSearch": 0.04, "FB_Hadoop": 0.01}
"""Time with arrivals [s]; as long again is left for flows to end."""
LOADS = (0.3, 0.6)
CASE = ["sizes", "load", "with_incast", "scheme", "seed"]
CLASSES = (0.0, 1e4, 1e5, 1e6, SIZE_BINS[-1])
"""Sizes of the docs' table [byte]; the figures have `SIZE_BINS`."""
QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)


def scenario(sizes: str, load: float, with_incast: bool, scheme: Scheme, seed: int) -> Scenario:
    """One run. Flows depend on the seed and not on the scheme, so that schemes meet the same."""
    sending = SENDING[sizes]
    background = PoissonFlows(id="background", sizes=sizes, load=load, stop=sending)
    incast = IncastFlows(id="incast", senders=8, size=300e3, interval=1e-3)
    return Scenario(
        name=f"{sizes} at {load:.0%}{' with incast' if with_incast else ''}",
        network=FatTree(pfc=Pfc(pause=1e6, resume=9e5), flow_timeout=1e-4),
        sender=scheme,
        flows=(background, incast) if with_incast else (background,),
        duration=2.0 * sending,
        seed=seed,
    )


def rows_of(result: FabricResult) -> list[dict[str, Any]]:
    """Slow-down in bins of flow size: of background flows, and of incasts."""
    slow = result.slow_down
    chosen = {
        (low, high, False): ~result.incast & (result.size_bytes > low) & (result.size_bytes <= high)
        for low, high in [(SIZE_BINS[0], SIZE_BINS[-1]), *pairwise(CLASSES), *pairwise(SIZE_BINS)]
    }
    chosen[SIZE_BINS[0], SIZE_BINS[-1], True] = result.incast
    rows = []
    for (low, high, incast), flows in chosen.items():
        values = slow[flows & result.done]
        if len(values):
            median, p95, p99 = np.percentile(values, (50, 95, 99))
            row = {"low": low, "high": high, "incast_flows": incast, "flows": int(flows.sum()), "done": len(values)}
            rows.append(row | {"mean": values.mean(), "median": median, "p95": p95, "p99": p99})
    return rows


def one(case: tuple[str, float, bool, str, int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A run's rows by flow size, and its row of queues."""
    sizes, load, with_incast, name, seed = case
    result = simulate_fabric(scenario(sizes, load, with_incast, SCHEMES[name], seed))
    if result.residual != (0, 0):
        raise RuntimeError(f"{case}: packets or bytes are missing: {result.residual}")
    told = dict(zip(CASE, case, strict=True))
    summary = result.summary()
    queues = {f"queue_q{100 * share:g}_bytes": result.queue_quantile(share) for share in QUANTILES}
    queues |= {"queue_most_bytes": summary.queue_most_bytes, "pauses": summary.pauses}
    queues |= {"paused_s": summary.paused_seconds, "dropped": summary.dropped_packets}
    queues |= {"retransmitted": summary.retransmitted_packets, "flows": summary.flows, "done": summary.completed}
    queues |= {"hops": result.counts["hops"]}
    return pd.DataFrame([told | row for row in rows_of(result)]), pd.DataFrame([told | queues])


def kept() -> tuple[pd.DataFrame, pd.DataFrame] | None:
    files = [RESULTS / f"{NAME}.csv", RESULTS / f"{NAME}-queues.csv"]
    return (pd.read_csv(files[0]), pd.read_csv(files[1])) if all(map(Path.exists, files)) else None


def keep(slow: pd.DataFrame, queues: pd.DataFrame) -> None:
    for name, frame in ((NAME, slow), (f"{NAME}-queues", queues)):
        content = frame.to_csv(index=False, float_format="%.7g").encode()
        write_atomically(RESULTS / f"{name}.csv", content)
    seeds = sorted(int(seed) for seed in queues.seed.unique())
    record = {
        "study": NAME,
        "schemes": SCHEMES,
        "sending_s": SENDING,
        "example": scenario("WebSearch", 0.6, True, SCHEMES["MPCC"], 1),
        "seeds": seeds,
        "provenance": provenance(argv=["experiments/mpcc/fat_tree.py", *sys.argv[1:]], libraries=("numpy", "numba")),
    }
    write_atomically(RESULTS / f"{NAME}.json", msgspec.json.format(msgspec.json.encode(record)) + b"\n")


def main(argv: list[str]) -> int:
    if not all(each.isdecimal() for each in argv):
        print("usage: fat_tree.py [SEED ...]", file=sys.stderr)
        return 2
    for seed in map(int, argv or map(str, SEEDS)):
        before = kept()
        if before is not None and (before[1].seed == seed).any():
            print(f"seed {seed} is kept")
            continue
        cases = [(*case, seed) for case in product(SENDING, LOADS, (False, True), SCHEMES)]
        done = Parallel(n_jobs=1)(delayed(one)(case) for case in cases)
        parts = [pd.concat(frames, ignore_index=True) for frames in zip(*done, strict=True)]
        if before is not None:
            parts = [pd.concat([old, new], ignore_index=True) for old, new in zip(before, parts, strict=True)]
        keep(*parts)
        print(f"seed {seed}: {len(cases)} runs", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
