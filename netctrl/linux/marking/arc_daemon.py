"""ARC on a router: each epoch the counters of the marker and of the queue in, the marker's probability out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from netctrl.errors import InvalidValue, NetctrlError
from netctrl.laws.aqm.arc_router import arc_probability
from netctrl.linux.export.marking import MarkingConfig
from netctrl.linux.kernel.netlink import ROOT, RouteSocket, handle_text
from netctrl.linux.marking.program import MarkCounts, Marker

__all__ = ["MarkSample", "mark"]


class MarkSample(NamedTuple):
    """One epoch."""

    time_s: float
    """Since the start, at its end [s]."""
    elapsed_s: float
    """How long it was [s]."""
    arrived_bytes: int
    """In it, in front of the queue; frames."""
    backlog_bytes: int
    """At its end; frames."""
    probability: float
    """That its end has set."""
    counts: MarkCounts
    """Since the start."""
    late: int
    """Epochs since the start that ended more than a tenth of their length late."""


def mark(
    config: MarkingConfig,
    *,
    wait: Callable[[float], object] = time.sleep,
    duration_s: float | None = None,
    heard: Callable[[MarkSample], None] | None = None,
) -> MarkSample | None:
    """Run until `wait` gives True or the duration is over; then the marker is gone. Returns the last epoch.

    Epochs follow the monotonic clock and are never made up for: a late one is longer, which the law hears of.

    Parameters
    ----------
    config : MarkingConfig
    wait : callable
        Waits for so many seconds; True ends the run.
    duration_s : float, optional
        [s]; None: until `wait` ends it.
    heard : callable, optional
        Told of each epoch.

    Raises
    ------
    InvalidValue
        No such interface, or another queue at its root than the configured one.
    NetctrlError
        The kernel refuses.
    """
    law, sample = config.law, None
    with RouteSocket() as route:
        index = _index(route, config)
        with Marker(index, drop=config.drop, valid_s=config.valid_epochs * law.epoch_s) as marker:
            begin = before = time.monotonic()
            due, late, probability = begin, 0, 0.0
            arrived = marker.counts().bytes
            while duration_s is None or before - begin < duration_s:
                due = max(due + law.epoch_s, before)
                if wait(max(0.0, due - time.monotonic())) is True:
                    break
                backlog = _backlog(route, index, config)
                counts, now = marker.counts(), time.monotonic()
                late += now - due > 0.1 * law.epoch_s
                probability = arc_probability(
                    law, probability, counts.bytes - arrived, backlog, now - before, config.header_bytes
                )
                probability = marker.set_probability(probability)
                sample = MarkSample(
                    now - begin, now - before, counts.bytes - arrived, backlog, probability, counts, late
                )
                before, arrived = now, counts.bytes
                if heard is not None:
                    heard(sample)
    return sample


def _index(route: RouteSocket, config: MarkingConfig) -> int:
    links = {link.name: link.index for link in route.links()}
    if config.interface not in links:
        raise InvalidValue("interface", config.interface, f"an interface that is there: {', '.join(sorted(links))}")
    _backlog(route, links[config.interface], config)
    return links[config.interface]


def _backlog(route: RouteSocket, index: int, config: MarkingConfig) -> int:
    """Of the queue that was configured; another in its place isn't read for it."""
    found = next((each for each in route.qdiscs(index) if each.parent == ROOT), None)
    if found is None or handle_text(found.handle) != config.handle:
        there = "none" if found is None else f"{found.kind} {handle_text(found.handle)}"
        raise NetctrlError(
            f"interface {config.interface} has {there} at its root, and the queue {config.handle} is to be read: "
            "`python -m netctrl.linux apply` puts it there"
        )
    return found.counters.backlog_bytes
