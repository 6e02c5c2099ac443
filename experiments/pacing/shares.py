"""A target-RTT flow's share beside one Cubic flow and beside one BBR flow: `python experiments/pacing/shares.py`.

Prints the table of docs/explanation/pacing.md. A pair runs for thirty of Cubic's periods, at least 90 s; its second
half counts.
"""

from __future__ import annotations

import sys

import netctrl
from netctrl import BbrFlow, CubicFlow, PacedFlow
from netctrl.sim.bottleneck.run import simulate_bottleneck

LINKS = ((1e7, 0.01), (1e7, 0.2), (1e8, 0.01), (1e8, 0.05), (1e8, 0.2), (1e9, 0.001), (1e9, 0.01), (1e9, 0.05))
LINKS += ((1e10, 0.001), (1e10, 0.01), (1e10, 0.05))
BUFFERS = (1.0, 4.0)
MIN_BUFFER = 30e3


def duration(rate: float, rtt: float, bdps: float) -> float:
    """Thirty times K = (0.3 W/0.4)^(1/3), RFC 9438, eq. 2 [s]."""
    packets = (1.0 + bdps) * rate * rtt / 12000.0
    return max(90.0, 30.0 * (0.75 * packets) ** (1.0 / 3.0))


def share(peer: type, rate: float, rtt: float, bdps: float, *, competitive: bool) -> float:
    """In %."""
    law = netctrl.pacing(mode="target-rtt", competitive=competitive).law
    end = duration(rate, rtt, bdps)
    size = max(bdps * rate * rtt / 8.0, MIN_BUFFER)
    found = simulate_bottleneck([PacedFlow(law, rtt), peer(rtt, 1.0)], rate, size, end, bin_s=0.1)
    mean = found.throughput[:, found.time_s > 0.5 * end].mean(axis=1)
    return 100.0 * mean[0] / mean.sum()


def main() -> int:
    print("| Mbit/s | ms | Cubic | competitive | BBR | competitive |")
    print("|---|---|---|---|---|---|")
    for rate, rtt in LINKS:
        cells = []
        for peer in (CubicFlow, BbrFlow):
            for mode in (False, True):
                both = [share(peer, rate, rtt, bdps, competitive=mode) for bdps in BUFFERS]
                cells.append(" / ".join(f"{value:.2g}" for value in both))
        print(f"| {rate / 1e6:g} | {1e3 * rtt:g} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
