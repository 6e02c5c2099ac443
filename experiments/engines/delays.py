"""Figures in ms of certificates against packets, or the Linux kernel in virtual time, at random links.

`PYTHONPATH=experiments python -m engines.delays [--engine kernel] [--points 300] [LAW ...]` draws a load of 1 to 500
flows, 1 Mbit/s to 1 Gbit/s and 2 to 300 ms for each point, and prints at how many of those with a figure it holds. On
packets senders have the cuts of RFC 5681, as the certified ones; in the kernel both are Linux's. Not judged is
DOCSIS-PIE, which marks by chance on packets and spreads its drops in the certificate.
"""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import netctrl
from netctrl.certificates.predicted import LEAST_WINDOW
from netctrl.checks.engines import check_packets, check_scenario
from netctrl.checks.point import point_of

SENDERS = {
    "packet": {"reno": "rfc-reno", "cubic": "rfc-creno", "half of each": "rfc-reno+rfc-creno"},
    "kernel": {"reno": "linux-reno", "cubic": "linux-creno"},
}
LAWS = {"packet": ("pi2", "dualpi2", "pie"), "kernel": ("pie", "red")}
MOST_PACKETS = {"packet": 1e7, "kernel": 6e5}
SEEDS = {"packet": (1, 2, 3), "kernel": (1,)}


class Compared(NamedTuple):
    """Figures of a certificate over those of an engine, and utilization less the engine's."""

    deviation: float
    p99: float
    utilization: float


def compared(law: str, engine: str, points: int, seed: int) -> Iterator[Compared | None]:
    """One for each link that was drawn; None where the certificate gives no figure."""
    random = np.random.default_rng(seed)
    while points:
        rate = 10.0 ** random.uniform(6.0, 9.0)
        rtt, flows = (float(np.exp(random.uniform(*np.log(ends)))) for ends in ((0.002, 0.3), (1.0, 500.0)))
        flows, sender = float(round(flows)), str(random.choice(list(SENDERS[engine].values())))
        given = parameters(law, engine, rate, random)
        if rate / 12_000.0 * (rtt + 0.01) / flows < LEAST_WINDOW:
            continue  # windows of a few packets
        try:
            found = netctrl.certify(
                law, rtt_s=rtt, flows=flows, capacity_bit_per_s=rate, senders=sender, parameters=given
            )
        except netctrl.InvalidValue:  # Linux's RED has no such thresholds
            continue
        if (figures := found.certificate.predicted) is None:
            points -= 1
            yield None
        elif (each := runs(found, engine)) is not None:
            points -= 1
            mean = np.mean(each, axis=0)
            yield Compared(figures.delay_std_s / mean[0], figures.delay_p99_s / mean[1], figures.utilization - mean[2])


def parameters(law: str, engine: str, rate: float, random: np.random.Generator) -> dict[str, Any]:
    """Of a law: its defaults at the kernel's HZ; of RED thresholds from 10 to 90 ms of the link, and three slopes."""
    if law != "red":
        return {"hz": 1000} if law == "pie" and engine == "kernel" else {}
    least = round(rate / 8.0 * random.uniform(0.01, 0.03))
    burst, most = max(10, round(1.7e-3 * least)), 3 * least
    lines = {"min_bytes": least, "max_bytes": most, "limit_bytes": 4 * most, "burst": burst}
    return lines | {"probability": float(random.choice([0.02, 0.05, 0.1])), "ecn": True}


def runs(found: Any, engine: str) -> list[tuple[float, float, float]] | None:
    """Deviation and 99th percentile of the delay [s], and utilization, of each seed; None where a run has too many
    packets."""
    point, seeds = point_of(found, engine), SEEDS[engine]
    if point.loop.rate * check_scenario(point, engine, seeds[0]).duration > MOST_PACKETS[engine]:
        return None
    each: Any = check_packets(point, engine, seeds).runs
    return [(run.deviation_s, run.delay_99_s, run.utilization) for run in each]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("laws", nargs="*", metavar="LAW")
    parser.add_argument("--engine", choices=tuple(SENDERS), default="packet")
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(
        "| law | links | with a figure | deviation, 99 % within 1.3 times | utilization within .02 |\n"
        "|---|---|---|---|---|"
    )
    for law in asked.laws or LAWS[asked.engine]:
        each = list(compared(law, asked.engine, asked.points, asked.seed))
        ratios = np.array([found for found in each if found is not None])
        near = np.abs(np.log(ratios[:, :2])) < np.log(1.3)
        used = np.count_nonzero(np.abs(ratios[:, 2]) < 0.02)
        first, second = np.count_nonzero(near, axis=0)
        print(f"| {law} | {len(each)} | {len(ratios)} | {first}, {second} | {used} |", flush=True)


if __name__ == "__main__":
    main()
