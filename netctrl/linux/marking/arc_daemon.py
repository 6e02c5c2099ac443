"""ARC on a router: each epoch it reads the counters of marker and queue and sets the marker's probability."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from netctrl.errors import InvalidValue, NetctrlError
from netctrl.laws.aqm.arc import arc_probability
from netctrl.linux.export.marking import MarkingConfig
from netctrl.linux.kernel.messages import ROOT, handle_text
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.marking.program import MarkCounts, Marker

__all__ = ["MarkSample", "mark"]


class MarkSample(NamedTuple):
    """Results of one epoch."""

    time_s: float
    """Time of its end since the start [s]."""
    elapsed_s: float
    """Length [s]."""
    arrived_bytes: int
    """Arrivals during the epoch, in front of the queue [byte of frames]."""
    backlog_bytes: int
    """Backlog at its end [byte of frames]."""
    probability: float
    """Probability set at its end."""
    counts: MarkCounts
    """Counts since the start."""
    late: int
    """Number of epochs since the start that ended more than a tenth of their length late."""


def mark(
    config: MarkingConfig,
    *,
    wait: Callable[[float], object] = time.sleep,
    duration_s: float | None = None,
    heard: Callable[[MarkSample], None] | None = None,
) -> MarkSample | None:
    """Run until `wait` returns True or the duration is over, then remove the marker. Returns the last epoch.

    Epochs follow the monotonic clock and are never made up for: the law is given the actual length of a late one.

    Parameters
    ----------
    config : MarkingConfig
    wait : callable
        Waits for a number of seconds; True ends the run.
    duration_s : float, optional
        Duration [s]; None: until `wait` ends the run.
    heard : callable, optional
        Called with each epoch.

    Raises
    ------
    InvalidValue
        No such interface, or a root queue other than the configured one.
    NetctrlError
        The kernel refuses.
    """
    law, sample = config.law, None
    with ExitStack() as held:
        route = held.enter_context(RouteSocket())
        index = _index(route, config)
        marker = held.enter_context(Marker(index, drop=config.drop, valid_s=config.valid_epochs * law.epoch_s))
        begin = before = due = time.monotonic()
        late, probability, seen = 0, 0.0, marker.counts().bytes
        while duration_s is None or before - begin < duration_s:
            due = max(due + law.epoch_s, before)
            if wait(max(0.0, due - time.monotonic())) is True:
                break
            waiting = _backlog(route, index, config)
            counts, now = marker.counts(), time.monotonic()
            late += now - due > 0.1 * law.epoch_s
            elapsed, arrived = now - before, counts.bytes - seen
            desired = arc_probability(law, probability, arrived, waiting, elapsed, config.header_bytes)
            probability = marker.set_probability(desired)
            sample = MarkSample(now - begin, elapsed, arrived, waiting, probability, counts, late)
            before, seen = now, counts.bytes
            if heard is not None:
                heard(sample)
    return sample


def _index(route: RouteSocket, config: MarkingConfig) -> int:
    links = {link.name: link.index for link in route.links()}
    if config.interface not in links:
        raise InvalidValue("interface", config.interface, f"one of the interfaces {', '.join(sorted(links))}")
    _backlog(route, links[config.interface], config)
    return links[config.interface]


def _backlog(route: RouteSocket, index: int, config: MarkingConfig) -> int:
    """Backlog of the configured queue; another queue in its place is not read."""
    found = next((each for each in route.qdiscs(index) if each.parent == ROOT), None)
    if found is None or handle_text(found.handle) != config.handle:
        there = "none" if found is None else f"{found.kind} {handle_text(found.handle)}"
        raise NetctrlError(
            f"interface {config.interface} has {there} at its root instead of the queue {config.handle}: "
            "`python -m netctrl.linux apply` creates it"
        )
    return found.counters.backlog_bytes
