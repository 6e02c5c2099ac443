"""An access link in the packet engine, against Lindley's recursion in vectorised NumPy (no drops) and a heap of events;
processor time."""

import heapq
from collections import deque
from collections.abc import Iterator
from time import process_time

import numpy as np
from rows import Row, against, alternate, relative

from netctrl.kernel.regulated.sources import Source
from netctrl.scenario.builders import access_link
from netctrl.scenario.network.track import Track, gate_of
from netctrl.scenario.network.tracking import tracked_flows
from netctrl.scenario.scenario import Scenario
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import gate_draws
from netctrl.sim.packet.state import FLOW
from netctrl.sim.packet.tracking import RegulatedRun

RATE = 80e6
LONG, SHORT = 100, 2  # s
_NS = 1e9


def rows() -> Iterator[Row]:
    for burst in (10, 1):
        yield against_numpy(burst)
    for name in ("droptail", "wfq"):
        yield against_events(name)


def against_numpy(burst: int) -> Row:
    """Seconds for a million packets of the same arrivals; without drops."""
    scenario = access_link(limit=1000, duration=float(LONG), control=Track())
    turns = alternate(
        lambda: ours(scenario, burst, LONG), lambda: by_numpy(scenario, burst, LONG), 7, clock=process_time
    )
    (packets, delay), (count, other) = turns.answers
    same = relative([packets, delay / other], [count, 1.0], 1e-9, "packets, delay")
    scaled = turns._replace(ours=per_million(turns.ours, packets), theirs=per_million(turns.theirs, packets))
    peer = "Lindley in vectorised NumPy"
    return against(f"fifo, a million packets, bursts of {burst}", peer, scaled, "", same)


def against_events(queue: str) -> Row:
    scenario = access_link(duration=float(SHORT), queue=queue, control=Track())
    turns = alternate(lambda: ours(scenario, 10, SHORT), lambda: by_events(scenario, SHORT), 3, clock=process_time)
    counts = [answer[0] for answer in turns.answers]
    times = [per_million(each, count) for each, count in zip(turns[:2], counts, strict=True)]
    scaled = turns._replace(ours=times[0], theirs=times[1])
    target = ">= 20x" if queue == "droptail" else ""
    what = f"fifo, a million packets, bursts of 10, 100 places, {queue}"
    delays = [[answer[1]] for answer in turns.answers]
    same = relative(*delays, 1e-6, "delays") if queue == "droptail" else "another discipline"
    return against(what, "a heap of events, FIFO", scaled, target, same)


def per_million(seconds: list[float], packets: int) -> list[float]:
    return [each / packets * 1e6 for each in seconds]


def ours(scenario: Scenario, burst: int, periods: int) -> tuple[int, float]:
    """Packets, and premium traffic's mean delay [s]."""
    run = RegulatedRun(scenario, packet_problem(scenario), 1.0)
    for _ in range(periods):
        run.advance(RATE, burst)
    total, count = run.state.trip[:2, 0]
    return int(run.state.flow[:, FLOW["sent"]].sum()), total / count / _NS - scenario.links[-1].delay


def arrivals(scenario: Scenario, burst: int, end: float) -> list[np.ndarray]:
    """Of premium traffic and each flow, with the draws that the scenario's seed gives [s]."""
    rates, found, draws = tracked_flows(scenario).rates(RATE), [], gate_draws(scenario)
    for group in scenario.flows:
        for opens, random in zip(draws[group.id].opens.tolist(), draws[group.id].random, strict=True):
            gate = Source(gate_of(group, scenario.packet_size), int(scenario.packet_size), opens, random, (0, 1 << 62))
            if found:
                gate.set(0, float(rates[len(found) - 1]), burst)
            found.append(gate.release(0, round(end * _NS)) / _NS)
    return found


def service_s(scenario: Scenario) -> float:
    """Of a packet, on the wire."""
    return scenario.packet_size * 8.0 / scenario.links[0].capacity


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
        elif len(queue) * scenario.packet_size < scenario.links[0].buffer + scenario.packet_size:
            queue.append((time, kind))
            if len(queue) == 1:
                heapq.heappush(heap, (time + service, done))
    return packets, total / count
