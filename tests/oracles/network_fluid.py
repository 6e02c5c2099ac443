"""Nonlinear fluid of windows and of links in a row, queues first in, first out and a law each, integrated in time: a
judge of the matrix response of `netctrl.plants.queue_networks`.

Written from the differential equations alone: windows as in Misra, Gong, Towsley (SIGCOMM 2000) and Alizadeh,
Javanmard, Prabhakar (2011), and queues that let out what came, in its order, by following when each arrival leaves. It
takes the equilibrium from the product and nothing of its linear response. The unit of time is one step.

Groups with Cubic's own curve are populations of flows: densities over the window at the last cut and the time since
then, which are cut with the intensity of their marks (`cubic_flows`).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from cubic_flows import CubicFlows, cubic_flows, follow
from histories import grown, past

from netctrl.plants.queue_networks.equilibrium import NetworkEquilibrium, network_equilibrium
from netctrl.plants.queue_networks.network import LawRange, PathFlows, QueueLink, QueueNetwork
from netctrl.plants.queues.queue_laws import Averaged, SampledPi
from netctrl.plants.queues.queue_loop import QueueLoop

_STEPS = 160  # in the shortest round trip


def network_growth(
    found: NetworkEquilibrium, gains: np.ndarray, periods: float, period_s: float, offsets: np.ndarray | None = None
) -> float:
    """Rate at which small deviations of the queues grow, in natural logarithms a period.

    `gains` are factors of the links' laws, and `offsets` shares of their intervals by which they act later.
    """
    network, L = found.network, len(found.network.links)
    laws = [link.at(float(x)) if link.ranges else None for link, x in zip(network.links, found.outputs, strict=True)]
    updates = [law.update_s for law in laws if isinstance(law, SampledPi)]
    shortest = float(found.trips.min()) / _STEPS
    # All intervals are whole numbers of steps.
    whole = int(np.gcd.reduce([round(1e6 * update) for update in updates])) if updates else 0
    several = len(set(updates)) > 1
    base = 1e-6 * whole if several else updates[0] if updates else float(found.trips.min()) / 4.0
    h = base / max(int(np.ceil(base / shortest)), 8)
    links, numbers = np.zeros((L, 13)), np.zeros((L, 2), dtype=np.int64)
    for k, (link, law) in enumerate(zip(network.links, laws, strict=True)):
        D, x = float(found.delays[k]), float(found.outputs[k])
        links[k, :4] = link.rate * h, link.delay_s / h, D / h, x
        links[k, 4] = (link.age_s + link.age_queues * D) / h
        numbers[k] = 1, 0
        if isinstance(law, SampledPi):
            links[k, 5:7] = gains[k] * law.integral * h, gains[k] * law.proportional * h
            links[k, 12] = law.spaced
            steps = round(law.update_s / h)
            assert abs(steps * h - law.update_s) < 1e-9 * h
            numbers[k] = steps, 0 if offsets is None else round(offsets[k] * steps)
        elif isinstance(law, Averaged) and x > 0.0:
            p = x / (2.0 - x) if law.spaced else x
            links[k, 7:12] = 1.0, gains[k] * law.slope * h, law.corner * h, law.spaced, p
    K, most = len(network.groups), max(len(group.path) for group in network.groups)
    curved: list[CubicFlows] = []
    groups, paths, seen = np.zeros((K, 9)), np.full((K, most), -1, dtype=np.int64), np.zeros((K, most, 5))
    for i, group in enumerate(network.groups):
        s, trip = group.sender, float(found.trips[i])
        fixed = group.rtt_s + sum(0.0 if k.queued else k.other_delay_s for k in group.seen)
        groups[i, :6] = group.flows, fixed / h, s.increase, s.decrease, s.averaging, s.scalable
        groups[i, 6:] = found.windows[i], trip / h, -1.0
        if s.curve:
            groups[i, 8] = len(curved)
            curved.append(
                cubic_flows(float(found.marked[i]), trip / h, s.curve * h**3, s.increase, float(found.windows[i]))
            )
        ahead = 0.0
        for j, (k, kind) in enumerate(zip(group.path, group.seen, strict=True)):
            paths[i, j] = k
            own = float(found.delays[k]) if kind.queued else kind.other_delay_s
            leaving = own if network.links[k].marked_leaving else 0.0
            seen[i, j] = kind.factor, kind.power, kind.queued, kind.other_delay_s / h, (trip - ahead - leaving) / h
            ahead += network.links[k].delay_s + own
    every = max(int(period_s / h / 64.0), 1)
    every_flow = numba.typed.List(curved) if curved else numba.typed.List([_no_flows()])
    delays = _run(groups, paths, seen, links, numbers, int(periods * period_s / h), every, every_flow)
    full = list(found.order)
    deviation = np.abs(delays[:, full] / links[full, 2] - 1.0).sum(axis=1)
    size = max(int(np.ceil(2.0 * period_s / (every * h))), 4)
    return grown(deviation, size) * period_s / (every * h)


def growth(loop: QueueLoop, flows: float, rtt: float, gain: float, periods: float, period_s: float) -> float:
    """The same for classes of flows in one queue."""
    whole = (LawRange(0.0, 1.0, loop.law),)
    given = {"age_s": loop.age_s, "age_queues": loop.age_queues, "marked_leaving": loop.marked_leaving}
    link = QueueLink(name="queue", rate=loop.rate, ranges=whole, **given)
    groups = [
        PathFlows(name=str(i), flows=k.share * flows, rtt_s=rtt * k.stretch, path=(0,), seen=(k,))
        for i, k in enumerate(loop.classes)
    ]
    found = network_equilibrium(QueueNetwork((link,), tuple(groups)))
    return network_growth(found, np.array([gain]), periods, period_s)


def _no_flows() -> CubicFlows:
    return cubic_flows(0.01, 100.0, 0.4 / 100.0**3, 0.5, 10.0, n=4)


@numba.njit(cache=True)
def _held(history: np.ndarray, now: int, steps: float) -> float:
    return history[(now - int(np.ceil(steps - 1e-9))) % len(history)]


@numba.njit(cache=True)
def _run(groups, paths, seen, links, numbers, steps, every, flows):
    K, most, L = len(groups), paths.shape[1], len(links)
    n = int(2.0 * groups[:, 7].max() + links[:, 4].max() + links[:, 1].max()) + 64
    W, R = np.empty((K, n)), np.empty((K, n))
    Y = np.zeros((K, most, n))  # what comes to each link of a path, per step
    D, X, came, slope = np.empty((L, n)), np.empty((L, n)), np.empty((L, n)), np.zeros((L, n))
    m, D_old, average = np.empty(K), links[:, 2].copy(), links[:, 2].copy()
    for i in range(K):
        W[i], R[i] = groups[i, 6], groups[i, 7]
        W[i, 0] *= 1.0 + 1e-6 * (1.0 + i) if groups[i, 8] < 0.0 else 1.0
        kept = 1.0
        for j in range(most):
            if paths[i, j] >= 0:
                x = links[paths[i, j], 3]
                kept *= 1.0 - (seen[i, j, 0] * x ** seen[i, j, 1] if x > 0.0 else 0.0)
                Y[i, j] = groups[i, 0] * groups[i, 6] / groups[i, 7]
        m[i] = 1.0 - kept
    for k in range(L):
        D[k], X[k] = links[k, 2], links[k, 3]
        came[k] = -links[k, 2]  # age of what leaves, with a minus: it came at now + came
    found = np.empty((steps // every, L))
    W_slope, m_slope, D_slope, curve_slope = np.empty((2, K)), np.zeros((2, K)), np.empty((2, L)), np.zeros(K)
    for now in range(steps):
        for k in range(L):
            if links[k, 5] > 0.0 and now % numbers[k, 0] == numbers[k, 1]:
                read = past(D[k], now, links[k, 4])
                computed = X[k, now % n] / (1.0 + links[k, 12] * X[k, now % n])  # by a law that spreads drops
                computed += links[k, 5] * (read - links[k, 2]) + links[k, 6] * (read - D_old[k])
                X[k, now % n] = computed / (1.0 - links[k, 12] * computed)
                D_old[k] = read
        for i in range(K):
            if groups[i, 8] >= 0.0 and now % flows[int(groups[i, 8])].every == 0:
                own = flows[int(groups[i, 8])]
                late, kept = 0.5 * own.every, 1.0
                for j in range(most):
                    if paths[i, j] >= 0:
                        x = _held(X[paths[i, j]], now, seen[i, j, 4] - late)
                        kept *= 1.0 - (seen[i, j, 0] * x ** seen[i, j, 1] if x > 0.0 else 0.0)
                here = R[i, now % n] if now > 0 else groups[i, 7]
                mean = follow(own, (1.0 - kept) / past(R[i], now, here - late), here)
                curve_slope[i] = (mean - W[i, now % n]) / own.every
        if now % every == 0 and now // every < len(found):
            for k in range(L):
                found[now // every, k] = D[k, now % n]
        for stage in range(2):
            t = now + stage
            if stage == 1:
                for k in range(L):
                    _leave(D[k], came[k], t)
            D_slope[stage] = 0.0
            for i in range(K):
                trip = groups[i, 1]
                for j in range(most):
                    if paths[i, j] >= 0 and seen[i, j, 2] > 0.0:
                        trip += D[paths[i, j], t % n]
                R[i, t % n] = trip
                kept = 1.0
                for j in range(most):
                    k = paths[i, j]
                    if k < 0:
                        break
                    if j == 0:
                        Y[i, j, t % n] = groups[i, 0] * W[i, t % n] / trip
                    else:
                        Y[i, j, t % n] = _passed(Y[i, j - 1], came, slope, paths[i, j - 1], links, seen[i, j - 1], t)
                    D_slope[stage, k] += Y[i, j, t % n] / links[k, 0]
                    x = _held(X[k], t, seen[i, j, 4]) if links[k, 7] == 0.0 else past(X[k], t, seen[i, j, 4])
                    if x > 0.0:
                        kept *= 1.0 - seen[i, j, 0] * x ** seen[i, j, 1]
                a, b, g, marked = groups[i, 2], groups[i, 3], groups[i, 4], 1.0 - kept
                if groups[i, 8] >= 0.0:
                    W_slope[stage, i] = curve_slope[i]
                elif groups[i, 5] > 0.0:
                    mark = m[i] + (m_slope[0, i] if stage else 0.0)
                    m_slope[stage, i] = g / trip * (marked - mark) if g > 0.0 else 0.0
                    W_slope[stage, i] = a / trip - b * W[i, t % n] * (mark if g > 0.0 else marked) / trip
                else:
                    rate = past(W[i], t, trip) / past(R[i], t, trip)
                    W_slope[stage, i] = a / trip - b * W[i, t % n] * rate * marked
            for k in range(L):
                D_slope[stage, k] -= 1.0
                if D[k, t % n] <= 0.0 and D_slope[stage, k] < 0.0:
                    D_slope[stage, k] = 0.0
                slope[k, t % n] = D_slope[stage, k]
            if stage == 0:
                for i in range(K):
                    W[i, (now + 1) % n] = W[i, now % n] + W_slope[0, i]
                for k in range(L):
                    D[k, (now + 1) % n] = max(D[k, now % n] + D_slope[0, k], 0.0)
                    X[k, (now + 1) % n] = X[k, now % n]
        for i in range(K):
            W[i, (now + 1) % n] = W[i, now % n] + 0.5 * (W_slope[0, i] + W_slope[1, i])
            m[i] += 0.5 * (m_slope[0, i] + m_slope[1, i])
        for k in range(L):
            D[k, (now + 1) % n] = max(D[k, now % n] + 0.5 * (D_slope[0, k] + D_slope[1, k]), 0.0)
            if links[k, 7] > 0.0:
                first, then = past(D[k], now, links[k, 4]), past(D[k], now + 1, links[k, 4])
                if np.isfinite(links[k, 9]):
                    rise = links[k, 9] * (first - average[k])
                    average[k] += 0.5 * (rise + links[k, 9] * (then - average[k] - rise))
                else:
                    average[k] = then
                p = links[k, 11] + links[k, 8] * (average[k] - links[k, 2])
                X[k, (now + 1) % n] = 2.0 * p / (1.0 + p) if links[k, 10] > 0.0 else p
    return found


@numba.njit(cache=True)
def _leave(D: np.ndarray, came: np.ndarray, t: int) -> None:
    """Find when what leaves at t came: u = t + came with u + D(u) = t, from where it was a step before."""
    n = len(D)
    u = t - 1 + came[(t - 1) % n]
    for _ in range(50):
        step = int(np.floor(u))
        share = u - step
        a, b = D[step % n], D[(step + 1) % n]
        if step + 1 > t:  # not yet known: the queue is shorter than a step
            a, b, share = D[t % n], D[t % n], 0.0
        off = u + a + share * (b - a) - t
        if abs(off) < 1e-11:
            break
        u -= off / (1.0 + (b - a))
        u = min(u, float(t))
    came[t % n] = u - t


@numba.njit(cache=True)
def _passed(Y: Any, came: Any, slope: Any, k: int, links: Any, seen: Any, t: int) -> float:
    """What comes out of link k, and then over its line, at t: what came to it, thinned as its queue grew."""
    if seen[2] == 0.0:
        return past(Y, t, links[k, 1] + seen[3])
    age = links[k, 1] - past(came[k], t, links[k, 1])
    return past(Y, t, age) / (1.0 + past(slope[k], t, age))
