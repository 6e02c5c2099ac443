"""Queues of flows with several round-trip times on packets, below and above the limit of their certificates.

`PYTHONPATH=experiments python -m engines.round_trips` prints the margins of `rfc-reno` and of `reno` in each queue, and
what packets do there.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import tables

import netctrl
from netctrl.checks.engines import check_packets
from netctrl.checks.point import point_of

DUALPI2 = {"target_s": 0.021, "alpha": 38.0 / 256.0, "beta": 273.0 / 256.0}
PIE = {"implementation": "rfc", "dq_rate_estimator": True, "target_s": 0.011, "alpha": 0.5625, "beta": 2.0}
STEPS = 41.0, 819.0
"""Gains of dualpi2's defaults, of which 256 are 1/s."""
LIMIT = 1.126
"""Factor of these gains at which the last queue is at its limit."""


class Queue(NamedTuple):
    """A queue and its flows."""

    law: str
    parameters: dict[str, Any]
    stretches: tuple[float, ...]
    rtt_s: float
    """Shortest, without the queue [s]."""
    flows: float
    rate: float
    """[bit/s]"""

    def certificate(self, sender: str) -> Any:
        return netctrl.certify(
            self.law,
            rtt_s=self.rtt_s,
            flows=self.flows,
            capacity_bit_per_s=self.rate,
            senders=sender,
            stretches=self.stretches,
            parameters=self.parameters,
        )


def queues() -> Iterator[Queue]:
    """Four queues at the round-trip times where their gains are .7 and 1.3 of the limit; one at several gains."""
    for law, parameters, load, stretches, rtts in (
        ("dualpi2", DUALPI2, (367.0, 580.1e6), (1.0, 2.0), (0.0801, 0.0970)),
        ("dualpi2", DUALPI2, (367.0, 580.1e6), (1.0, 1.3), (0.0889, 0.1073)),
        ("pie", PIE, (480.0, 501.7e6), (1.0, 3.0), (0.0426, 0.0511)),
        ("pie", PIE, (480.0, 501.7e6), (1.0, 2.0), (0.0450, 0.0538)),
    ):
        for rtt in rtts:
            yield Queue(law, parameters, stretches, rtt, *load)
    for share in (0.7, 1.3, 1.6, 2.0, 2.5):
        alpha, beta = (round(step * LIMIT * share) / 256.0 for step in STEPS)
        yield Queue("dualpi2", {"alpha": alpha, "beta": beta}, (1.0, 10.0), 0.05, 400.0, 415.8e6)


def row(queue: Queue) -> dict[str, Any]:
    certificate = queue.certificate("rfc-reno")
    made = check_packets(point_of(certificate), "packet")
    return {
        "law": queue.law,
        "round_trips_ms": "+".join(f"{1e3 * queue.rtt_s * each:.0f}" for each in queue.stretches),
        "gain_margin_db": certificate.certificate.sampled.gain_margin_db,
        "reno_margin_db": queue.certificate("reno").certificate.sampled.gain_margin_db,
        "envelope_ratio": made.envelope_ratio,
        "swing_ms": 1e3 * float(np.mean([run.swing_s for run in made.runs])),
        "utilization": float(np.mean([run.utilization for run in made.runs])),
    }


if __name__ == "__main__":
    tables(round_trips=lambda: pd.DataFrame([row(queue) for queue in queues()]))
