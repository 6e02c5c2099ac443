"""Web sessions in the fluid: objects drawn outside the kernel, sent in slow start, response times computed afterwards.

Each object takes a round trip to connect and then as many as slow start needs, with a window of at most WINDOW. The
sessions don't react to marks. Losses add their expected time-outs to the response time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow, FlowDraw

WINDOW = 16
"""Greatest window of a web transfer [packet]: it stands for congestion avoidance, which is not modelled here."""

CONNECT_TIMEOUT, MIN_TIMEOUT = 3.0, 1.0
"""First time-out of a lost SYN (ns-3's default) and least of a lost segment (RFC 6298, Section 2.4) [s]."""

_MAX_LOST = 0.9  # the expected number of tries stays finite


@dataclass(frozen=True, slots=True, eq=False)
class WebLoad:
    """Objects and bursts of one web group.

    Parameters
    ----------
    start_s, size_bytes, rtt_s : ndarray, shape (R,)
        Objects: time of the request, size, propagation round trip.
    sent_s, sent_packets : ndarray, shape (M,)
        Bursts in order of time: one per round trip of each object.
    """

    start_s: np.ndarray
    size_bytes: np.ndarray
    rtt_s: np.ndarray
    sent_s: np.ndarray
    sent_packets: np.ndarray

    def injected(self, step: float, first: int, last: int) -> np.ndarray:
        """Packets sent in each of the steps `first` to `last` − 1."""
        low, high = np.searchsorted(self.sent_s, (first * step, last * step))
        slots = np.clip((self.sent_s[low:high] / step).astype(np.int64) - first, 0, last - first - 1)
        return np.bincount(slots, weights=self.sent_packets[low:high], minlength=last - first)


def web_load(group: Flow, draw: FlowDraw, scenario: Scenario, rng: np.random.Generator) -> WebLoad:
    """Draw the objects of a group's sessions until the scenario ends, and their sending times."""
    start, size, rtt = _objects(group, draw, scenario, rng)
    packets = size / scenario.packet_size
    times, amounts = [np.zeros(0)], [np.zeros(0)]
    for at, burst, alive in _rounds(start + rtt, rtt, packets, scenario.initial_window):
        times.append(at[alive])
        amounts.append(burst[alive])
    sent, amount = np.concatenate(times), np.concatenate(amounts)
    order = np.argsort(sent, kind="stable")
    return WebLoad(start, size, rtt, sent[order], amount[order])


class PathHistory(NamedTuple):
    """Delays and losses of a path; arrays of one length."""

    time_s: np.ndarray
    delay_s: np.ndarray
    """Delay added to the round trip by queues and longer lines [s]."""
    forward_s: np.ndarray
    """Its part on the forward path [s]."""
    loss: np.ndarray
    """Share that overflowed."""
    refused: np.ndarray
    """Probability that a packet that can't be marked, such as a SYN, was dropped by a law."""


def response_times(load: WebLoad, scenario: Scenario, path: PathHistory) -> np.ndarray:
    """Response times of a group's objects [s]: from the connection's first packet to the last byte at the receiver."""

    def at(values: np.ndarray, times: np.ndarray) -> np.ndarray:
        return np.interp(times, path.time_s, values)

    lost_syn = np.minimum(at(path.refused + path.loss, load.start_s), _MAX_LOST)
    time = load.start_s + load.rtt_s + at(path.delay_s, load.start_s) + CONNECT_TIMEOUT * lost_syn / (1.0 - lost_syn)
    done = np.empty_like(time)
    packets = load.size_bytes / scenario.packet_size
    sent, window = np.zeros_like(time), float(scenario.initial_window)
    alive = np.arange(len(time))
    while len(alive):
        now = time[alive]
        lost = np.minimum(at(path.loss, now), _MAX_LOST)
        burst = np.minimum(window, packets[alive] - sent[alive])
        sent[alive] += burst
        again = MIN_TIMEOUT * np.minimum(burst * lost, 1.0)
        over = sent[alive] >= packets[alive]
        done[alive] = now + again + 0.5 * load.rtt_s[alive] + at(path.forward_s, now)
        time[alive] = now + again + load.rtt_s[alive] + at(path.delay_s, now)
        alive = alive[~over]
        window = min(2.0 * window, max(WINDOW, scenario.initial_window))
    return done - load.start_s


def _objects(
    group: Flow, draw: FlowDraw, scenario: Scenario, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start, size and round-trip time of every object; a session's pages follow each other without queueing delay."""
    k, shape, least = group.offers.objects_per_page, group.offers.pareto_shape, group.offers.least_object
    now = draw.start_s + rng.exponential(group.offers.think_time, len(draw.start_s))
    until = np.minimum(draw.stop_s, scenario.duration)
    starts, sizes, rtts = [], [], []
    alive = np.flatnonzero(now < until)
    while len(alive):
        size = np.minimum(least * (1.0 + rng.pareto(shape, (len(alive), k))), group.offers.max_object)
        rtt = draw.rtt_s[alive]
        starts.append(np.repeat(now[alive], k))
        sizes.append(size.ravel())
        rtts.append(np.repeat(rtt, k))
        rounds = _round_count(size.max(axis=1) / scenario.packet_size, scenario.initial_window)
        now[alive] += (rounds + 0.5) * rtt + rng.exponential(group.offers.think_time, len(alive))
        alive = alive[now[alive] < until[alive]]
    empty = np.zeros(0)
    if not starts:
        return empty, empty, empty
    return np.concatenate(starts), np.concatenate(sizes), np.concatenate(rtts)


def _round_count(packets: np.ndarray, initial: int) -> np.ndarray:
    """Number of round trips of a transfer."""
    top = max(WINDOW, initial)
    growing = np.ceil(np.log2(top / initial))  # rounds before the window is full
    before = initial * (2.0**growing - 1.0)
    slow = np.ceil(np.log2(packets / initial + 1.0))
    full = growing + np.ceil((packets - before) / top)
    return np.maximum(np.where(packets <= before, slow, full), 1.0)


def _rounds(start: np.ndarray, rtt: np.ndarray, packets: np.ndarray, initial: int):
    """Each round of all transfers: time, amount, and the transfers that are not complete."""
    left, window, at = packets.copy(), float(initial), start.copy()
    alive = np.arange(len(start))
    while len(alive):
        burst = np.zeros_like(left)
        burst[alive] = np.minimum(left[alive], window)
        yield at, burst, alive
        left[alive] -= burst[alive]
        at[alive] += rtt[alive]
        alive = alive[left[alive] > 0.0]
        window = min(2.0 * window, max(WINDOW, initial))
