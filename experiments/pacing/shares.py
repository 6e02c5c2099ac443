"""An own-rate flow's share beside one Cubic flow and beside one BBR flow: `python experiments/pacing/shares.py`.

Prints the table of docs/figures/pacing.md, from packets. A pair runs for thirty of Cubic's periods, at least 90 s;
its second half counts. Packets are delayed behind the bottleneck by up to a packet's time, at random, and starts
differ, so that no flow meets a full buffer by its phase; shares are means of five seeds.
"""

import sys

import numpy as np

import netctrl
from netctrl.core.units import BITS_PER_BYTE
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import Flow

LINKS = ((1e7, 0.01), (1e7, 0.2), (1e8, 0.01), (1e8, 0.05), (1e8, 0.2), (1e9, 0.001), (1e9, 0.01))
BUFFERS = (1.0, 4.0)
MIN_BUFFER = 30e3
PACKET = 1500.0
SEEDS = 5


def duration(rate: float, rtt: float, bdps: float) -> float:
    """Thirty times K = (0.3 W/0.4)^(1/3), RFC 9438, eq. 2 [s]."""
    packets = (1.0 + bdps) * rate * rtt / (BITS_PER_BYTE * PACKET)
    return max(90.0, 30.0 * (0.75 * packets) ** (1.0 / 3.0))


def share(peer: str, rate: float, rtt: float, bdps: float, seed: int) -> float:
    """In %."""
    end = round(duration(rate, rtt, bdps), 1)
    packet_time = PACKET * BITS_PER_BYTE / rate
    size = max(bdps * rate * rtt / BITS_PER_BYTE, MIN_BUFFER)
    scenario = netctrl.Scenario(
        name="two flows",
        links=(
            Link(id="line", source="a", target="b", capacity=rate, delay=0.1 * rtt, buffer=size, jitter=packet_time),
        ),
        flows=(
            Flow(id="law", count=1, path=("line",), rtt=rtt, sender="own-rate"),
            Flow(id="peer", count=1, path=("line",), rtt=rtt, start=(1.0, 1.0 + rtt), sender=peer),
        ),
        packet_size=PACKET,
        duration=end,
        warmup=0.5 * end,
        interval=0.1,
        seed=seed,
    )
    found = netctrl.simulate(scenario, engine="packet").measures()
    ours, other = (found["goodput", name] for name in ("law", "peer"))
    return 100.0 * ours / (ours + other)


def main() -> int:
    print("| Mbit/s | ms | Cubic | BBR |")
    print("|---|---|---|---|")
    for rate, rtt in LINKS:
        cells = []
        for peer in ("cubic", "bbr"):
            both = [np.mean([share(peer, rate, rtt, bdps, seed) for seed in range(1, SEEDS + 1)]) for bdps in BUFFERS]
            cells.append(" / ".join(f"{value:.2g}" for value in both))
        print(f"| {rate / 1e6:g} | {1e3 * rtt:g} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
