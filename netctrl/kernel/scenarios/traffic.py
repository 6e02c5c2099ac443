"""What flows send: times of UDP packets, and the pages of Web sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from netctrl.core.units import BITS_PER_BYTE
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow, FlowDraw
from netctrl.scenario.tcp_aqm.offers import Demand

_WHOLE = 1e-9  # of a packet, by which sums of rates may fall short of whole packets


def constant_times(rate_bit_per_s: float, packet_bytes: float, duration_s: float, *, phase: float = 0.0) -> np.ndarray:
    """Times (n,) of packets at constant intervals, below `duration_s`; the first after a share `phase` of an interval
    [s]."""
    interval = BITS_PER_BYTE * packet_bytes / rate_bit_per_s
    times = (np.arange(int(np.ceil(duration_s / interval))) + phase) * interval
    return times[times < duration_s]


def poisson_times(
    rate_bit_per_s: float, packet_bytes: float, duration_s: float, generator: np.random.Generator
) -> np.ndarray:
    """Times (n,) of a Poisson process with a mean rate, below `duration_s` [s]."""
    interval = BITS_PER_BYTE * packet_bytes / rate_bit_per_s
    return np.sort(generator.uniform(0.0, duration_s, generator.poisson(duration_s / interval)))


def series_times(
    times_s: np.ndarray, rates_bit_per_s: np.ndarray, packet_bytes: float, duration_s: float
) -> np.ndarray:
    """Times (n,) of packets at the rate `rates_bit_per_s[k]` from `times_s[k]` on; the last rate holds until
    `duration_s` [s].

    A packet leaves when its bytes have accumulated, so no bytes are lost between two rates, and a rate may be 0. Times
    increase from 0 or later.
    """
    kept = times_s < duration_s
    knots = np.append(times_s[kept], duration_s)
    sent = np.append(0.0, np.cumsum(np.diff(knots) * rates_bit_per_s[kept])) / (BITS_PER_BYTE * packet_bytes)
    number = np.arange(1, int(np.floor(sent[-1] + _WHOLE)) + 1, dtype=float)
    piece = np.minimum(np.searchsorted(sent, number), len(sent) - 1)
    share = (number - sent[piece - 1]) / (sent[piece] - sent[piece - 1])
    return np.minimum(knots[piece - 1] + share * (knots[piece] - knots[piece - 1]), np.nextafter(duration_s, 0.0))


def udp_times(
    scenario: Scenario, group: Flow, draw: FlowDraw, first: int, demands: Mapping[str, np.ndarray]
) -> Sequence[np.ndarray]:
    """Sending times of a group's flows [s], each of which is (n,).

    Evenly spaced flows have the phases of the packet engine.

    Parameters
    ----------
    scenario : Scenario
    group : Flow
        That offers a stream or a demand.
    draw : FlowDraw
        Of its flows.
    first : int
        Number of its first flow among all flows.
    demands : mapping
        Rates of the flows of each group of demands, by its id, (intervals, count) [bit/s].
    """
    size, found = scenario.packet_size, []
    for row, (start, stop) in enumerate(zip(draw.start_s, draw.stop_s, strict=True)):
        length = min(float(stop), scenario.duration) - float(start)
        if length <= 0.0:
            continue
        random = np.random.default_rng(np.random.SeedSequence(scenario.seed, spawn_key=(1 << 20, first + row)))
        if isinstance(group.offers, Demand):
            rates = demands[group.id][:, row]
            times = series_times(group.offers.lasts(scenario.interval) * np.arange(len(rates)), rates, size, length)
        elif group.offers.spacing == "poisson":
            times = poisson_times(group.offers.rate, size, length, random)
        else:
            times = constant_times(group.offers.rate, size, length, phase=random.random())
        found.append(float(start) + times)
    return found


def page_draws(scenario: Scenario, group: Flow, number: int, session: int) -> tuple[np.ndarray, np.ndarray]:
    """Pauses [s] before a session's pages and sizes of their objects [byte], more than fit in the time.

    A session begins with a pause, as in the packet engine; sizes are Pareto, cut off.
    """
    random = np.random.default_rng(np.random.SeedSequence(scenario.seed, spawn_key=(1 << 21, number, session)))
    pauses, total = [], 0.0
    while total <= scenario.duration:
        pauses.append(random.exponential(group.offers.think_time))
        total += pauses[-1]
    web = group.offers
    shape = len(pauses), web.objects_per_page
    sizes = np.minimum(web.least_object * (1.0 - random.random(shape)) ** (-1.0 / web.pareto_shape), web.max_object)
    return np.array(pauses), np.ceil(sizes)
