"""Parking lots under PI2 on packets, with gains below and above the limit of their certificate.

`PYTHONPATH=experiments python -m engines.bottlenecks` prints the delay of each queue and its strongest frequency.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from common import tables

import netctrl
from netctrl.laws.l4s.pi2 import Pi2Queue

SECONDS, WARM_UP, INTERVAL = 120.0, 40.0, 0.02
SHARES = (0.7, 1.3, 2.0)
"""Gains over those of the limit."""
SMOOTHED = 9
"""Frequencies over which a spectrum is averaged."""


class Lot(NamedTuple):
    """Flows over all links, and as many as `cross` over each."""

    rates: tuple[float, ...]
    """[bit/s]"""
    long: int
    cross: int
    rtt: float
    """Without queues [s]; that of cross flows is .8 of it."""
    beta: float
    """Gain on the delay's change over alpha."""


LOTS = (
    Lot((1000e6, 800e6), 100, 100, 0.1, 2.0),
    Lot((1000e6, 700e6, 800e6), 60, 100, 0.06, 2.0),
    Lot((2000e6, 1600e6), 200, 200, 0.1, 20.0),
    Lot((2000e6,), 200, 200, 0.1, 20.0),
)


def scenario(lot: Lot, alpha: float) -> netctrl.Scenario:
    links = tuple(
        netctrl.Link(
            id=f"l{k}",
            source=f"n{k}",
            target=f"n{k + 1}",
            capacity=rate,
            delay="2ms",
            buffer="40MB",
            queue=Pi2Queue(alpha=alpha, beta=lot.beta * alpha),
        )
        for k, rate in enumerate(lot.rates)
    )
    path, start = tuple(link.id for link in links), (0.0, 1.0)
    groups = [netctrl.Flow(id="long", path=path, rtt=lot.rtt, count=lot.long, start=start)]
    groups += [netctrl.Flow(id=f"c{k}", path=(k,), rtt=0.8 * lot.rtt, count=lot.cross, start=start) for k in path]
    return netctrl.Scenario(
        name="parking lot",
        links=links,
        flows=tuple(groups),
        duration=SECONDS,
        warmup=WARM_UP,
        packet_size=1500.0,
        interval=INTERVAL,
    )


def strongest(delay: np.ndarray) -> float:
    """Frequency of the greatest part of a delay's variation [rad/s]."""
    power = np.abs(np.fft.rfft((delay - delay.mean()) * np.hanning(len(delay)))) ** 2
    smooth = np.convolve(power, np.ones(SMOOTHED) / SMOOTHED, "same")[5:]
    return float(2.0 * np.pi * np.fft.rfftfreq(len(delay), INTERVAL)[5 + np.argmax(smooth)])


def table() -> pd.DataFrame:
    rows = []
    for lot in LOTS:
        margins = netctrl.certify_network(scenario(lot, 0.16)).certificate.margins
        if margins is None or margins.gain_margin_db is None:
            raise SystemExit("no limit")
        limit = 0.16 * 10.0 ** (margins.gain_margin_db / 20.0)
        for share in SHARES:
            result = netctrl.simulate(scenario(lot, share * limit), engine="packet")
            delays = 1e3 * result.series["delay"][:, result.time_s > WARM_UP]
            for link, delay in zip(result.scenario.links, delays, strict=True):
                rows.append(
                    {
                        "Mbit/s": ", ".join(f"{rate / 1e6:g}" for rate in lot.rates),
                        "beta/alpha": lot.beta,
                        "limit at [rad/s]": f"{margins.crossing_rad_s:.2g}",
                        "gains over the limit's": share,
                        "link": link.id,
                        "delay [ms]": f"{delay.mean():.3g} ± {delay.std():.2g}",
                        "2 to 98 %": f"{np.quantile(delay, 0.02):.2g} to {np.quantile(delay, 0.98):.3g}",
                        "strongest at [rad/s]": f"{strongest(delay):.2g}",
                    }
                )
    return pd.DataFrame(rows)


if __name__ == "__main__":
    tables(bottlenecks=table)
