"""Result of a data centre's run: totals of its ports, tables of its transfers and of what hosts and ports saw.

Tables: `transfers`, one row each in order of their start, with the index of the group (`flow`), the hosts `source` and
`target`, and `ideal`, the duration without others; `acknowledgements` of watched transfers; the `bytes` on the wire
that these `received` in each bin until `time`; `queues`, the number of `samples` of all switch queues up to each
`backlog` and above that of the row before; `counts` of packets and bytes, in one row.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from netctrl.model.io.provenance import Provenance
from netctrl.scenario.fabric.plan import Transfers
from netctrl.scenario.labelled import Labelled
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario

HISTOGRAM_BINS, HISTOGRAM_BYTES = 20_000, 1000
"""Samples of queues: how many bins, and how wide they are [byte]."""
ACKNOWLEDGEMENTS = ("time", "transfer", "queue", "flows", "hop", "left", "window", "pace", "rtt")
"""Columns of a log: queue of the fullest hop, its flows and place, when the packet left it, window and rate after."""
_NS = 1e9


def fabric_result(
    scenario: Scenario,
    simulator: str,
    provenance: Provenance,
    *,
    ports: tuple[str, ...],
    links: Mapping[str, np.ndarray],
    transfers: Transfers,
    ideal: np.ndarray,
    finish: np.ndarray,
    backlog: np.ndarray,
    histogram: np.ndarray,
    log: np.ndarray,
    received: np.ndarray,
    counts: Mapping[str, int],
    flows: Mapping[str, np.ndarray] | None = None,
) -> Result:
    """The result of F transfers through P ports, of which V transfers and W ports are watched.

    Parameters
    ----------
    scenario, simulator, provenance
        As of `Result`.
    ports : tuple of str
        Names of the P ports.
    links, flows : dict
        Totals of ports, (P,), and of the scenario's groups of flows, by quantity.
    transfers : Transfers
        Of all groups.
    ideal, finish : ndarray, shape (F,)
        Duration without others, and arrival of the last byte, or −1 [ns].
    backlog : ndarray, shape (W, T)
        Samples of the watched ports, every `scenario.interval` from time 0, when all are empty [byte].
    histogram : ndarray, shape (HISTOGRAM_BINS,)
        Samples of all switch queues: entry 0 counts empty queues, entry i those above (i − 1) to i times
        `HISTOGRAM_BYTES`.
    log : ndarray, shape (L, 9)
        `ACKNOWLEDGEMENTS` of watched transfers, with times in ns; `transfer` is an index in `watch.flows`.
    received : ndarray, shape (V, B)
        Bytes of watched transfers on the wire, in each `watch.bin`.
    counts : dict
        Packets and bytes: sent, received, dropped, in flight at the end; packet hops, events, most packets at a time.
    """
    watch = scenario.network.watch
    queue = dict(zip(ACKNOWLEDGEMENTS, log.T.copy(), strict=True))
    queue |= {name: queue[name] / _NS for name in ("time", "left", "rtt")}
    queue["transfer"] = np.array(watch.flows, dtype=np.int64)[queue["transfer"].astype(np.int64)]
    seen, bins = int(np.flatnonzero(histogram)[-1]) + 1 if histogram.any() else 1, received.shape[1]
    totals = {name: (("run", "link"), np.array(each, dtype=float)[None]) for name, each in links.items()}
    totals |= {name: (("run", "flow"), np.array(each, dtype=float)[None]) for name, each in (flows or {}).items()}
    time = scenario.interval * np.arange(1, backlog.shape[1])
    sampled = {"backlog": (("link", "time"), backlog[:, 1:].astype(float))} if watch.ports else {}
    return Result(
        scenario=scenario,
        simulator=simulator,
        provenance=provenance,
        span=(0.0, scenario.duration),
        totals=Labelled({"run": (0,), "link": ports, "flow": tuple(group.id for group in scenario.flows)}, totals),
        series=Labelled({"link": watch.ports, "time": time} if watch.ports else {}, sampled),
        tables={
            "transfers": {
                "flow": transfers.flow,
                "source": transfers.source,
                "target": transfers.target,
                "size": transfers.size.astype(float),
                "start": transfers.start / _NS,
                "duration": np.where(finish >= 0, finish - transfers.start, np.nan) / _NS,
                "ideal": ideal / _NS,
            },
            "acknowledgements": queue,
            "received": {
                "transfer": np.repeat(np.array(watch.flows, dtype=np.int64), bins),
                "time": np.tile(watch.bin * np.arange(1, bins + 1), len(watch.flows)),
                "bytes": received.ravel(),
            },
            "queues": {"backlog": np.arange(seen) * float(HISTOGRAM_BYTES), "samples": histogram[:seen]},
            "counts": {name: np.array([count]) for name, count in counts.items()},
        },
    )
