"""Gains for random boxes: PI2's by several rules, and designs for what users feel, of four laws, on packets.

`PYTHONPATH=experiments python -m engines.queue_designs queue-designs` prints the table of PI2's: Linux's gains, RFC
9332's rule, 45 degrees of one point, and designs with a disk margin; `--docs` writes docs/assets/queue-designs.csv.
`queue-figures` compares designs for figures with the shipped gains, with seeds that the design hasn't seen, in 40 boxes
of 1 to 100 flows, 5 to 200 Mbit/s and 5 to 100 ms; it takes half an hour. `codel-figures` does so for CoDel's laws in
slow, long and ordinary boxes, half of them with a utilization or a percentile asked for.

Each box of the first table has a range of round-trip times of 1.3 to 8 and one of flows of 1.3 to 3. The design of one
point has its zero at the queue's corner, and 45 degrees at the fewest flows and the longest round-trip time in the loop
as it is usually given (RFC 9332's sources): windows undelayed on themselves, no queue, no hold.
"""

from collections.abc import Iterator
from math import pi, sqrt
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from common import tables

from netctrl.certificates.box import box_of
from netctrl.certificates.pi_laws import pi2
from netctrl.checks.designs import queue_design
from netctrl.checks.gains import gains_figures
from netctrl.core.register import CERTIFIED
from netctrl.core.units import packets_per_second
from netctrl.design.queue.samples import sampled_disk_margin
from netctrl.design.queue.search import CODELS
from netctrl.model.design.queue_checks import Felt

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


FELT_BOXES, FELT_SEED = 10, 40
LAWS = ("pie", "pi2", "dualpi2", "docsis-pie")
UNSEEN = tuple(range(101, 117))


def felt_boxes(random: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Boxes whose flows and round-trip times range over factors of 2 to 4, with windows above `LEAST_WINDOW`."""
    while True:
        rate, (more, longer) = 10.0 ** random.uniform(np.log10(5e6), np.log10(200e6)), random.uniform(2.0, 4.0, 2)
        few = float(round(np.exp(random.uniform(0.0, np.log(100.0 / more)))))
        rtt = float(np.exp(random.uniform(np.log(0.005), np.log(0.1 / longer))))
        many = float(round(few * more))
        if packets_per_second(rate, PACKET) * (rtt + 0.01) / many >= LEAST_WINDOW:
            yield {"rtt_s": (rtt, float(longer) * rtt), "flows": (few, many), "capacity_bit_per_s": float(rate)}


def codel_boxes(random: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Boxes of 1 to 16 flows with windows above `LEAST_WINDOW`: slow, long and ordinary ones in turn, each two times
    with nothing asked for, then with a utilization, and a percentile."""
    kinds = [((0.5e6, 5e6), (0.01, 0.1)), ((5e6, 50e6), (0.1, 0.3)), ((5e6, 50e6), (0.01, 0.1))]
    asked: list[dict[str, float]] = [{}, {}, {"utilization": 0.97}, {"p99_s": 0.03}]
    made = 0
    while True:
        rates, rtts = kinds[made % len(kinds)]
        rate, rtt = (float(np.exp(random.uniform(*np.log(ends)))) for ends in (rates, rtts))
        few = float(round(np.exp(random.uniform(0.0, np.log(8.0)))))
        more, longer = (float(each) for each in random.uniform(1.0, 2.0, 2))
        many = float(round(few * more))
        if packets_per_second(rate, PACKET) * (rtt + 0.01) / many >= LEAST_WINDOW:
            where = {"rtt_s": (rtt, longer * rtt), "flows": (few, many), "capacity_bit_per_s": rate}
            yield where | asked[made // len(kinds) % len(asked)]
            made += 1


def felt_row(number: int, where: dict[str, Any], laws: tuple[str, ...] = LAWS) -> dict[str, Any]:
    """What the design of a box says, and its worst figures and the shipped gains' with unseen seeds. `worse` and
    `better` are the greatest loss and gain of a figure: a tenth, .1 s if that is more, or .005 of utilization."""
    law, began = laws[number % len(laws)], perf_counter()
    design = queue_design(law, objective="figures", **where)
    proof = design.certificate
    row = {"law": law, "box": number, "seconds": perf_counter() - began, "keep": proof.keep}
    row |= {"status": str(proof.status), "disk margin": proof.disk_margin}
    row["gains"] = tuple(float(value) for value in design.law.parameters.values() if isinstance(value, float))
    if not proof.keep:
        ours, theirs = (
            Felt.worst(gains_figures(CERTIFIED[law](**each), design.inputs.box, "packet", UNSEEN))
            for each in (design.law.parameters, proof.shipped[0].parameters)
        )
        over = ours.worse_than(theirs)
        row |= {"worse": max(over), "better": -min(over), "99 %": (ours.delay_99_s, theirs.delay_99_s)}
        row |= {"used": (ours.utilization, theirs.utilization), "above": (ours.above_s, theirs.above_s)}
    return row


def felt() -> pd.DataFrame:
    """A row for each box."""
    drawn = felt_boxes(np.random.default_rng(FELT_SEED))
    return pd.DataFrame([felt_row(number, next(drawn)) for number in range(FELT_BOXES * len(LAWS))])


def felt_by_codel() -> pd.DataFrame:
    """The same for CoDel's laws."""
    drawn = codel_boxes(np.random.default_rng(FELT_SEED))
    rows = []
    for number in range(8 * len(CODELS)):
        where = next(drawn)
        rows.append(where | felt_row(number // len(CODELS) + number, where, CODELS))
    return pd.DataFrame(rows)


if __name__ == "__main__":
    tables(queue_designs=table, queue_figures=felt, codel_figures=felt_by_codel)
