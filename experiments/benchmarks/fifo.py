"""An access link packet by packet, against Lindley's recursion in vectorised NumPy (no drops) and a heap of events;
processor time."""

import heapq
from collections import deque
from collections.abc import Iterator
from time import process_time

import numpy as np
from rows import Row, against, alternate, relative

from netctrl.scenario.access.scenario import access_link, access_parts
from netctrl.scenario.scenario import Scenario
from netctrl.sim.access.run import AccessLink

RATE, SPEED = 80e6, 2e7
LONG, SHORT = 100, 2  # s


def rows() -> Iterator[Row]:
    for burst in (10, 1):
        yield against_numpy(burst, SPEED if burst == 10 else None)
    for name in ("fifo", "wfq"):
        yield against_events(name)


def against_numpy(burst: int, speed: float | None) -> Row:
    """Seconds for a million packets of the same arrivals; without drops."""
    scenario = access_link(limit=1000, duration=LONG)
    turns = alternate(
        lambda: ours(scenario, burst, LONG), lambda: by_numpy(scenario, burst, LONG), 7, clock=process_time
    )
    (packets, delay), (count, other) = turns.answers
    same = relative([packets, delay / other], [count, 1.0], 1e-9, "packets, delay")
    scaled = turns._replace(ours=per_million(turns.ours, packets), theirs=per_million(turns.theirs, packets))
    target = "" if speed is None else f"<= {1e9 / speed:g} ms ({speed:g}/s)"
    peer = "Lindley in vectorised NumPy"
    return against(f"fifo, a million packets, bursts of {burst}", peer, scaled, target, same)


def against_events(discipline: str) -> Row:
    scenario = access_link(duration=SHORT, discipline=discipline)
    turns = alternate(lambda: ours(scenario, 10, SHORT), lambda: by_events(scenario, SHORT), 3, clock=process_time)
    counts = [answer[0] for answer in turns.answers]
    times = [per_million(each, count) for each, count in zip(turns[:2], counts, strict=True)]
    scaled = turns._replace(ours=times[0], theirs=times[1])
    target = ">= 20x" if discipline == "fifo" else ""
    what = f"fifo, a million packets, bursts of 10, 100 places, {discipline}"
    delays = [[answer[1]] for answer in turns.answers]
    same = relative(*delays, 1e-6, "delays") if discipline == "fifo" else "another discipline"
    return against(what, "a heap of events, FIFO", scaled, target, same)


def per_million(seconds: list[float], packets: int) -> list[float]:
    return [each / packets * 1e6 for each in seconds]


def ours(scenario: Scenario, burst: int, periods: int) -> tuple[int, float]:
    """Packets, and premium traffic's mean delay [s]."""
    link = AccessLink(scenario)
    samples = [link.advance(RATE, burst) for _ in range(periods)]
    received = sum(sample.premium_received for sample in samples)
    delay = sum(sample.mean_delay_ms * sample.premium_received for sample in samples) / received
    return int(link.traffic.released.sum()), 1e-3 * delay - scenario.network.base_delay


def arrivals(scenario: Scenario, burst: int, end: float) -> list[np.ndarray]:
    """Of premium traffic and each flow, with the draws that the scenario's seed gives."""
    parts = access_parts(scenario)
    bits, flows, premium = parts.packet_size * 8.0, parts.flows, parts.premium
    gap = bits / parts.line.access_rate
    pause = burst * bits / (RATE / flows) - (burst - 1) * gap
    period = premium.size * 8.0 / premium.rate
    phase = period * np.random.default_rng([scenario.seed, 0]).uniform()
    each = [phase + period * np.arange(int(end / period) + 1)]
    for flow in range(flows):
        stream = np.random.default_rng([scenario.seed, flow + 1])
        stream.uniform()
        draws = stream.standard_exponential(int(1.5 * end / (pause + (burst - 1) * gap)) + 100)
        starts = np.cumsum(draws * pause + (burst - 1) * gap) - (burst - 1) * gap
        each.append((starts[:, None] + gap * np.arange(burst)).ravel())
    return [times[times <= end] for times in each]


def service_s(scenario: Scenario) -> float:
    """Of a packet, on the wire."""
    return scenario.packet_size * 8.0 / scenario.network.capacity


def by_numpy(scenario: Scenario, burst: int, end: float) -> tuple[int, float]:
    """Merged by a sort; D_n = max over k <= n of (A_k - k S) + (n + 1) S."""
    each = arrivals(scenario, burst, end)
    times = np.concatenate(each)
    order = np.argsort(times, kind="stable")
    service = service_s(scenario)
    times, steps = times[order], service * np.arange(len(times))
    delay = np.maximum.accumulate(times - steps) + steps + service - times
    premium = order < len(each[0])
    return len(times), float(delay[premium & (delay + times <= end)].mean())


def by_events(scenario: Scenario, end: float) -> tuple[int, float]:
    """Arrivals and completions in one heap, packets in a deque, tail drop."""
    heap = [(time, kind) for kind, times in enumerate(arrivals(scenario, 10, end)) for time in times.tolist()]
    packets, service, done = len(heap), service_s(scenario), -1
    heapq.heapify(heap)
    queue: deque[tuple[float, int]] = deque()
    total = count = 0.0
    while heap:
        time, kind = heapq.heappop(heap)
        if kind == done:
            entered, what = queue.popleft()
            if what == 0:
                total, count = total + time - entered, count + 1.0
            if queue:
                heapq.heappush(heap, (time + service, done))
        elif len(queue) < scenario.network.limit:
            queue.append((time, kind))
            if len(queue) == 1:
                heapq.heappush(heap, (time + service, done))
    return packets, total / count
