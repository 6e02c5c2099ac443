"""ARC on a router: each epoch it reads the counters of marker and queue and sets the marker's probability."""

from __future__ import annotations

import time
from collections.abc import Callable

from netctrl.errors import InvalidValue, NetctrlError
from netctrl.laws.aqm.arc_router import arc_probability
from netctrl.linux.export.marking import MarkingConfig
from netctrl.linux.kernel.netlink import ROOT, RouteSocket, handle_text
from netctrl.linux.marking.epochs import Epoch, MarkSample, run_epochs
from netctrl.linux.marking.program import Marker

__all__ = ["MarkSample", "mark"]


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
    law = config.law

    def decide(probability: float, epoch: Epoch) -> float:
        return arc_probability(
            law, probability, epoch.arrived_bytes, epoch.backlog_bytes, epoch.elapsed_s, config.header_bytes
        )

    with RouteSocket() as route:
        index = _index(route, config)
        with Marker(index, drop=config.drop, valid_s=config.valid_epochs * law.epoch_s) as marker:
            return run_epochs(
                marker,
                lambda: _backlog(route, index, config),
                law.epoch_s,
                decide,
                wait=wait,
                duration_s=duration_s,
                heard=heard,
            )


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
