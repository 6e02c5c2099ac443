"""MPCC thesis, section 5.4: six schemes in the fat tree of Fig. 5.5, kept in data/results/.

`python experiments/full.py mpcc-fat-tree [SEED ...]` runs what isn't kept yet of seeds 1 to 5. What the thesis
doesn't say is chosen here: how often an incast comes, PFC's thresholds, the flow counter's timeout; peers' marking is
that of section 5.1 of the HPCC paper, whose simulator the thesis used.
"""

from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd
from study import Case, Made, Record, Study, made_by

from netctrl.laws.window.records import Dcqcn, Dctcp, Hpcc, Mpcc, Scheme, Timely
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.fabric.topology import FatTree
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Incast, Sizes
from netctrl.scenario.transfers import SIZE_BINS, queue_quantile, residual, slow_down
from netctrl.sim.packet.run import simulate_packets

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
    background = Flow(id="background", offers=Sizes(distribution=sizes, load=load), sender=scheme, stop=sending)
    incast = Flow(id="incast", offers=Incast(senders=8, size=300e3, interval=1e-3), sender=scheme)
    return Scenario(
        name=f"{sizes} at {load:.0%}{' with incast' if with_incast else ''}",
        network=FatTree(pfc=Pfc(pause=1e6, resume=9e5), flow_timeout=1e-4),
        flows=(background, incast) if with_incast else (background,),
        duration=2.0 * sending,
        seed=seed,
    )


def rows_of(result: Result) -> list[dict[str, Any]]:
    """Slow-down in bins of flow size: of background flows, and of incasts."""
    table = result.transfers
    slow, size, of_incast = slow_down(table), table["size"], table["flow"] == 1
    chosen = {
        (low, high, False): ~of_incast & (size > low) & (size <= high)
        for low, high in [(SIZE_BINS[0], SIZE_BINS[-1]), *pairwise(CLASSES), *pairwise(SIZE_BINS)]
    }
    chosen[SIZE_BINS[0], SIZE_BINS[-1], True] = of_incast
    rows = []
    for (low, high, incast), flows in chosen.items():
        values = slow[flows & np.isfinite(slow)]
        if len(values):
            median, p95, p99 = np.percentile(values, (50, 95, 99))
            row = {"low": low, "high": high, "incast_flows": incast, "flows": int(flows.sum()), "done": len(values)}
            rows.append(row | {"mean": values.mean(), "median": median, "p95": p95, "p99": p99})
    return rows


def one(*case: Any) -> Made:
    """A run's rows by flow size, and its row of queues."""
    sizes, load, with_incast, name, seed = case
    result = simulate_packets(scenario(sizes, load, with_incast, SCHEMES[name], seed))
    counts = result.tables["counts"]
    if residual(counts) != (0, 0):
        raise RuntimeError(f"{case}: packets or bytes are missing: {residual(counts)}")
    told = dict(zip(CASE, case, strict=True))
    of_switch = [name.startswith("s") for name in result.links]
    whole, flows = result.of("network"), result.of("transfers")
    queues = {f"queue_q{100 * share:g}_bytes": queue_quantile(result.tables["queues"], share) for share in QUANTILES}
    queues |= {"queue_most_bytes": result.totals["backlog_most"][0, of_switch].max(), "pauses": int(whole["pauses"])}
    queues |= {"paused_s": whole["paused"], "dropped": int(whole["drops"])}
    queues |= {"retransmitted": int(whole["packets sent again"]), "flows": int(flows["begun"])}
    queues |= {"done": int(flows["completed"]), "hops": int(counts["hops"][0])}
    return Made(rows_of(result), parts={"-queues": pd.DataFrame([told | queues])})


def record(before: Record, data: pd.DataFrame, case: Case, about: None) -> Record:
    return before | {
        "schemes": SCHEMES,
        "sending_s": SENDING,
        "example": scenario("WebSearch", 0.6, True, SCHEMES["MPCC"], 1),
        "seeds": sorted(int(seed) for seed in data.seed.unique()),
    }


STUDY = Study(
    name="mpcc-fat-tree",
    key=CASE,
    repeats=(1, 2, 3, 4, 5),
    cases=lambda seed: [(*case, seed) for case in product(SENDING, LOADS, (False, True), SCHEMES)],
    runs=made_by(one),
    record=record,
    digits=7,
)
