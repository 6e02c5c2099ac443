"""Powers of 1/s to which the aliases of a queue's sampled loop tend."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from netctrl.plants.queues.clocked_response import ClockedMode
from netctrl.plants.queues.window_response import leading


class Sampled(Protocol):
    """What of a loop its high frequencies depend on."""

    @property
    def classes(self) -> tuple[Any, ...]:
        """Of `WindowClass`."""
        ...

    @property
    def clocked(self) -> bool: ...

    @property
    def several_clocks(self) -> bool: ...

    @property
    def epoch(self) -> float: ...


class Equilibrium(NamedTuple):
    """An equilibrium: numbers, arrays (k, 1) or functions over cells; a list has one entry a class."""

    standing: Any
    """Delay of the queue [s]."""
    late: Any
    """Age of the delay that the law reads [s]."""
    rise: Any
    """dx/dD of an averaging law [1/s]; else 1."""
    trips: list
    """R [s]."""
    dampings: list
    """a/w."""
    shares: list
    """y, of the link's rate."""
    modes: list
    """What the responses of some senders depend on; None for others."""

    def lags(self, classes: tuple[Any, ...]) -> list[list]:
        """Delays of each class of which its sender's response needs e^(−s delay) [s]."""
        return [
            [clock * f for f in k.sender.turns(mode)]
            for k, clock, mode in zip(classes, self.clocks, self.modes, strict=True)
        ]

    @property
    def clocks(self) -> list:
        """Round trips of senders, with what waits at their receivers [s]."""
        return [
            trip * mode.waits if isinstance(mode, ClockedMode) else trip
            for trip, mode in zip(self.trips, self.modes, strict=True)
        ]


class Leading(NamedTuple):
    """Sum over j of e^(−s (delay + lag_j)) (third_j/s³ + fourth_j/s⁴), to which the terms tend, with the delay of the
    class that j is of."""

    classes: tuple[int, ...]
    lags: tuple[Any, ...]
    """[s]"""
    thirds: tuple[Any, ...]
    fourths: tuple[Any, ...]
    second: Any = None
    """Factor of e^(−s delay)/s² of packets that are dropped; None: none is."""


def dropped_factor(response: Sampled, point: Equilibrium) -> Any:
    """Factor of e^(−s late)/s² of packets that are dropped; None where none is."""
    if not any(k.sender.notice for k in response.classes):
        return None
    each = [
        (point.shares[i] * k.power * point.modes[i].dropped, point.trips[i])
        for i, k in enumerate(response.classes)
        if k.sender.notice
    ]
    if response.several_clocks:  # where all classes have one probability
        return sum(dropped for dropped, _ in each)
    return sum(dropped / trip for dropped, trip in each) / _per_trip(response, point)


def _per_trip(response: Sampled, point: Equilibrium) -> Any:
    """Mean of 1/R of the classes that wait in the queue."""
    return sum(point.shares[i] / point.trips[i] for i, k in enumerate(response.classes) if k.queued)


def leading_of(response: Sampled, point: Equilibrium) -> Leading:
    """What the terms of all classes tend to at an equilibrium of numbers; of `several_clocks` drops alone are known."""
    if response.several_clocks:
        return Leading((), (), (), (), dropped_factor(response, point))
    per_trip, lags = _per_trip(response, point), point.lags(response.classes)
    rows = []
    for i, k in enumerate(response.classes):
        trip, weight = point.trips[i], point.shares[i] * k.power / point.trips[i]
        for counts, first, second in leading(k.sender, point.dampings[i], point.modes[i]):
            if response.clocked:  # the window's response falls as 1/s²; no lag follows
                third, fourth = first / trip / per_trip, second / (trip * trip) / per_trip
            else:
                third, fourth = first, second / trip - first * per_trip
            lag = sum((each * n for each, n in zip(lags[i], counts, strict=False) if n), 0.0)
            rows.append((i, lag, weight * third, weight * fourth))
    return Leading(*zip(*rows, strict=True), dropped_factor(response, point))
