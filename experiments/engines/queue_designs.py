"""PI2's gains for random boxes: Linux's, RFC 9332's rule, 45 degrees of one point, and designs with a disk margin.

`PYTHONPATH=experiments python -m engines.queue_designs` prints a table; `--docs` writes docs/assets/queue-designs.csv.
Each box has a range of round-trip times of 1.3 to 8 and one of flows of 1.3 to 3. The design of one point has its zero
at the queue's corner, and 45 degrees at the fewest flows and the longest round-trip time in the loop as it is usually
given (RFC 9332's sources): windows undelayed on themselves, no queue, no hold.
"""

from collections.abc import Iterator
from math import pi, sqrt
from typing import Any

import numpy as np
import pandas as pd
from common import tables

from netctrl.certificates.box import box_of
from netctrl.certificates.pi_laws import pi2
from netctrl.core.units import packets_per_second
from netctrl.design.queue.design import queue_design
from netctrl.design.queue.samples import sampled_disk_margin

BOXES, SEED = 10, 2026
UPDATE_S, TARGET_S, PACKET = 0.016, 0.015, 1500.0
LEAST_WINDOW = 2.2
ASKED = (2.0 / 3.0, 1.0)


def boxes(random: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Boxes whose windows are above `LEAST_WINDOW`."""
    while True:
        shortest = 10.0 ** random.uniform(-2.3, -1.3)
        longest = shortest * 10.0 ** random.uniform(0.1, 0.9)
        rate, of_one = 10.0 ** random.uniform(7.0, 8.5), 10.0 ** random.uniform(5.7, 7.0)
        few = max(rate / of_one, 2.0)
        many = few * 10.0 ** random.uniform(0.1, 0.5)
        if packets_per_second(rate, PACKET) * (shortest + TARGET_S) / many >= LEAST_WINDOW:
            yield {"rtt_s": (shortest, longest), "flows": (few, many), "capacity_bit_per_s": rate}


def one_point(rtt: float, window: float) -> tuple[float, float]:
    """alpha and beta with 45 degrees in (beta + alpha/(T s)) sqrt2/R e^(-s R)/((s + 2/(R W))(s + 1/R))."""
    s = 1j * np.geomspace(1e-4, 20.0, 40_000) / rtt
    plant = sqrt(2.0) / rtt * np.exp(-s * rtt) / ((s + 2.0 / (rtt * window)) * (s + 1.0 / rtt))
    L = (1.0 + s * rtt) / s * plant
    at = int(np.argmax(np.unwrap(np.angle(L)) < -0.75 * pi))
    gain = 1.0 / float(np.abs(L[at]))
    return gain * UPDATE_S, gain * rtt


def laws(where: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Name -> alpha and beta."""
    longest = where["rtt_s"][1]
    window = packets_per_second(where["capacity_bit_per_s"], PACKET) * longest / where["flows"][0]
    found = {
        "Linux's gains": (0.16, 3.2),
        "RFC 9332's rule": (0.1 * UPDATE_S / longest**2, 0.3 / longest),
        "45° of one point": one_point(longest, window),
    }
    for least in ASKED:
        made = queue_design("pi2", disk_margin=least, **where).law.parameters
        found[f"disk margin {least:.3g}"] = made["alpha"], made["beta"]
    return found


def table() -> pd.DataFrame:
    """One row for each law: how many boxes it holds, its disk margins and its speed over the design's."""
    rows = []
    drawn = boxes(np.random.default_rng(SEED))
    for number in range(BOXES):
        where = next(drawn)
        found = laws(where)
        fastest = found[f"disk margin {ASKED[0]:.3g}"][0]
        for name, (alpha, beta) in found.items():
            margin = sampled_disk_margin(pi2(alpha=alpha, beta=beta), box_of(pi2(), **where))
            rows.append({"gains": name, "box": number, "disk margin": margin, "speed": alpha / fastest})
    each = pd.DataFrame(rows).groupby("gains", sort=False)
    margins = each["disk margin"]
    return pd.DataFrame(
        {
            "unstable in": margins.apply(lambda m: f"{int((m == 0.0).sum())} of {BOXES} boxes"),
            "disk margin of 2/3": margins.apply(lambda m: f"{int((m >= 2.0 / 3.0).sum())} of {BOXES}"),
            "least and median disk margin": margins.apply(lambda m: f"{m.min():.2f}, {m.median():.2f}"),
            "speed over the design's": each["speed"].apply(lambda v: f"{v.min():.2g} to {v.max():.2g}"),
        }
    ).reset_index()


if __name__ == "__main__":
    tables(queue_designs=table)
