"""Equilibrium of a network of queues: which links queue, and the outputs of their laws.

Every link is either below its rate, without a queue and without marks, or at its rate: then its queue stands where the
law's output keeps it, at the target of a PI law, or on the line of RED. A flow with the base round trip tau and marks
at the probability P = 1 − Π (1 − p_l) along its path sends w(P)/(tau + Σ D_l). The rate of what comes to a link falls
as its own queue and output grow, so this complementarity problem is solved link by link, and then by Newton's method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.plants.queue_networks.network import PathFlows, QueueNetwork, checked_order

_SWEEPS, _HALVINGS, _NEWTON = 400, 60, 40
_SPARE = 1e-9
"""Relative distance from its rate within which a link counts as full."""
_CLOSE = 1e-12
_ALMOST_ALL = 1.0 - 1e-9
_STEP = 1e-6
_CUBE = 3.0
"""Power by which a link's coordinate above 1 becomes an output, so that small outputs have all their digits."""


@dataclass(frozen=True, slots=True, eq=False)
class NetworkEquilibrium:
    """Equilibrium of a `QueueNetwork`.

    Parameters
    ----------
    network : QueueNetwork
    outputs : ndarray, shape (L,)
        x of each link's law; 0 where it marks nothing.
    delays : ndarray, shape (L,)
        Standing delays [s].
    loads : ndarray, shape (L,)
        What comes to each link over its rate.
    windows : ndarray, shape (I,)
        [packet]
    marked : ndarray, shape (I,)
        P of each group, along its path.
    trips : ndarray, shape (I,)
        R with all queues [s].
    order : tuple of int
        Links that queue, each behind those from which packets come to it.
    """

    network: QueueNetwork
    outputs: np.ndarray
    delays: np.ndarray
    loads: np.ndarray
    windows: np.ndarray
    marked: np.ndarray
    trips: np.ndarray
    order: tuple[int, ...]

    @property
    def marking(self) -> tuple[int, ...]:
        """Links whose laws mark, in the same order."""
        return tuple(k for k in self.order if self.outputs[k] > 0.0)

    def probability(self, group: PathFlows, link: int) -> float:
        """Probability at which a link of its path marks a group's packets."""
        return _marks(group, link, self.outputs)


def network_equilibrium(network: QueueNetwork) -> NetworkEquilibrium:
    """Equilibrium of a network of queues.

    Raises
    ------
    InvalidValue
        A link without a law would be overloaded, or it isn't determined which of several links queues.
    NetctrlError
        No equilibrium was found.
    """
    for group in network.groups:
        if not any(network.links[k].ranges for k in group.path):
            takes = "at least one link with a law: nothing else limits these flows"
            raise InvalidValue(f"flows.{group.name}.path", _names(network, group.path), takes)
    at = np.zeros(len(network.links))
    for sweep in range(_SWEEPS):
        before = at.copy()
        for k in range(len(at)):
            at[k] = _balanced(network, at, k)
        if sweep % 8 == 7 or np.abs(at - before).max() < 1e-13:
            found = _polished(network, at)
            if found is not None:
                return _described(network, found)
    raise NetctrlError("no equilibrium of the links' queues was found: rates or numbers of flows differ too much")


def _names(network: QueueNetwork, links: tuple[int, ...]) -> str:
    return ", ".join(network.links[k].name for k in links)


def _state(network: QueueNetwork, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and delays at coordinates from 0 (no queue) over 1 (the first mark) to 2 (the greatest output)."""
    x, delays = np.zeros(len(at)), np.zeros(len(at))
    for k, link in enumerate(network.links):
        if not link.ranges:
            continue
        if at[k] <= 1.0:
            delays[k] = at[k] * link.threshold_s
        else:
            x[k] = link.greatest * (at[k] - 1.0) ** _CUBE
            delays[k] = link.standing(x[k])
    return x, delays


def _marks(group: PathFlows, link: int, x: np.ndarray) -> float:
    seen = group.seen[group.path.index(link)]
    return min(seen.factor * float(x[link]) ** seen.power, _ALMOST_ALL) if x[link] > 0.0 else 0.0


def _flows(network: QueueNetwork, x: np.ndarray, delays: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P, windows and round trips of all groups; a window without marks is infinite."""
    marked, windows, trips = (np.empty(len(network.groups)) for _ in range(3))
    for i, group in enumerate(network.groups):
        kept = 1.0
        trip = group.rtt_s
        for k, seen in zip(group.path, group.seen, strict=True):
            kept *= 1.0 - _marks(group, k, x)
            trip += delays[k] if seen.queued else seen.other_delay_s
        single = [_marks(group, k, x) for k in group.path]
        marked[i] = 1.0 - kept if sum(p > 0.0 for p in single) > 1 else max(single)
        windows[i] = group.sender.window(marked[i], trip) if marked[i] > 0.0 else np.inf
        trips[i] = trip
    return marked, windows, trips


def _loads(network: QueueNetwork, windows: np.ndarray, trips: np.ndarray) -> np.ndarray:
    loads = np.zeros(len(network.links))
    for i, group in enumerate(network.groups):
        for k in group.path:
            loads[k] += group.flows * windows[i] / trips[i] / network.links[k].rate
    return loads


def _balanced(network: QueueNetwork, at: np.ndarray, link: int) -> float:
    """Coordinate of a link at which it is full, with all others as they are; 0: it has spare room."""
    if not network.links[link].ranges:
        return 0.0
    moved = at.copy()

    def load(place: float) -> float:
        moved[link] = place
        _, windows, trips = _flows(network, *_state(network, moved))
        return float(_loads(network, windows, trips)[link])

    if load(0.0) <= 1.0 + _CLOSE:
        return 0.0
    low, high = 0.0, 2.0
    if load(high) >= 1.0:
        return high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if load(middle) > 1.0 else (low, middle)
    return 0.5 * (low + high)


def _polished(network: QueueNetwork, at: np.ndarray) -> np.ndarray | None:
    """Coordinates at which all queueing links are full, by Newton's method; None: it isn't there yet."""
    at = at.copy()
    active = np.flatnonzero(at > 0.0)
    free = active[at[active] < 2.0]

    def off(place: np.ndarray) -> np.ndarray:
        moved = at.copy()
        moved[free] = place
        _, windows, trips = _flows(network, *_state(network, moved))
        with np.errstate(divide="ignore"):
            return np.log(_loads(network, windows, trips)[free])

    place = at[free]
    with np.errstate(all="ignore"):
        for _ in range(_NEWTON):
            value = off(place)
            if not np.isfinite(value).all():
                return None
            if np.abs(value).max(initial=0.0) < _CLOSE:
                break
            # Steps stay on one side of the first mark, where the slope has a jump.
            steps = np.minimum(_STEP, 0.25 * np.minimum(np.abs(place - 1.0), place))
            columns = []
            for j, step in enumerate(steps):
                near = np.zeros(len(free))
                near[j] = step
                columns.append((off(place + near) - off(place - near)) / (2.0 * step))
            try:
                move = np.linalg.solve(np.array(columns).T, value)
            except np.linalg.LinAlgError:
                return None
            scale = np.where(place > 1.0, place - 1.0, place)
            shrink = min(1.0, 0.5 / max(float(np.max(np.abs(move) / scale)), 1e-300))
            place = place - shrink * move
        else:
            return None
    at[free] = place
    _, windows, trips = _flows(network, *_state(network, at))
    idle = np.setdiff1d(np.arange(len(at)), active)
    loads = _loads(network, windows, trips)
    return None if any(network.links[k].ranges for k in idle[loads[idle] > 1.0 + _SPARE]) else at


def _described(network: QueueNetwork, at: np.ndarray) -> NetworkEquilibrium:
    x, delays = _state(network, at)
    marked, windows, trips = _flows(network, x, delays)
    loads = _loads(network, windows, trips)
    for k, link in enumerate(network.links):
        if not link.ranges and loads[k] > 1.0 + _SPARE:
            takes = f"a law for its queue, or a higher rate: what comes to it is {loads[k]:.3g} of its rate"
            raise InvalidValue(f"links.{link.name}.queue", "none", takes)
    queueing = tuple(np.flatnonzero(at > 0.0).tolist())
    full = tuple(np.flatnonzero((at > 0.0) | (loads > 1.0 - _SPARE)).tolist())
    paths = [group.path for group in network.groups]
    waits = [[k for k, seen in zip(each.path, each.seen, strict=True) if seen.queued] for each in network.groups]
    same = "links that differ in what crosses them: which of these has the queue isn't determined"
    apart = "links at each of which other flows wait in the law's queue: else only marks tell these queues apart"
    for links, met, takes in ((full, paths, same), (queueing, waits, apart)):
        if np.linalg.matrix_rank(np.array([[k in each for k in links] for each in met], dtype=float)) < len(links):
            raise InvalidValue("links", _names(network, links), takes)
    order = checked_order(network, queueing)
    return NetworkEquilibrium(network, x, delays, loads, windows, marked, trips, order)
