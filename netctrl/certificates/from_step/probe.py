"""A queue's law called as a router calls it, with a backlog that is held or moved: what its step answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.law import QueueLaw, Seen

LONG = 1e3
"""Delay of a queue that every law finds long [s]."""
_AGES = 100.0
"""Time after which no law waits any longer [s]."""
_SETTLES = 100_000
"""Steps within which a state has to settle."""
HALVINGS = 200
NO_LOOP = "a law that sums up errors of the queue, or answers it along lines: no other has a linear loop here"


@dataclass(frozen=True, slots=True)
class Probe:
    """A law's step at a link, as often as it acts."""

    law: QueueLaw
    parameters: Any
    rate: float
    every: float
    """[s]"""
    field: str = "probability"
    """Of the state: what the law computes."""

    def act(self, state: Any, backlog: float, **seen: float) -> Any:
        """The state after one step that sees a backlog, with arrivals that fill the link unless `seen` says else."""
        usual = Seen(self.every, self.rate * self.every, 1.0, backlog, self.rate)
        return self.law.step(state, usual._replace(**seen), self.parameters)

    def held(self, x: float, backlog: float) -> Any:
        """The state that a held backlog leads to while the output is held at x."""
        return self._at_rest(x, backlog, lambda state: self.act(state, backlog)._replace(**{self.field: x}))

    def rise(self, x: float, backlog: float, before: float | None = None) -> float:
        """r: what a step adds to the output x at a backlog, after another one was held."""
        return getattr(self.act(self.held(x, backlog if before is None else before), backlog), self.field) - x

    def marks(self, x: float, backlog: float, name: str = "probability") -> float:
        """Probability at an output, once the law has seen a backlog for long."""
        return getattr(self.act(self.held(x, backlog), backlog), name)

    def settled(self, backlog: float) -> Any:
        """The state that a held backlog leads to."""
        return self._at_rest(0.0, backlog, lambda state: self.act(state, backlog, elapsed=_AGES))

    def _at_rest(self, x: float, backlog: float, step: Callable[[Any], Any]) -> Any:
        """The state in which all fields stay, or count by the same with each step; long after the start, when what a
        law allows at first, such as a burst, is over."""
        state = self.law.state(*[0.0] * len(self.law.state._fields))._replace(**{self.field: x})
        state = self.act(state, backlog, elapsed=_AGES)._replace(**{self.field: x})
        moves: tuple[float, ...] = ()
        for _ in range(_SETTLES):
            after = step(state)
            before, moves = moves, tuple(b - a for a, b in zip(state, after, strict=True))
            scale = tuple(1e-13 * abs(value) for value in after)
            if before and all(abs(a - b) <= most for a, b, most in zip(before, moves, scale, strict=True)):
                return after
            state = after
        raise InvalidValue("law", self.law.name, f"{NO_LOOP}; its state doesn't settle at a queue that stays")


def summing(acting: Probe) -> Probe | None:
    """The law with the field that it sums up and with how often it does so; None: it has no such field.

    That is a field which a long queue raises and an empty one doesn't, by about the same at two values of it: what only
    follows the queue, such as an old delay, moves the less the higher it is.
    """
    for field in acting.law.state._fields:
        of = Probe(acting.law, acting.parameters, acting.rate, acting.every, field)
        if of.law.epoch is None:
            every = _between_moves(of)
            if every is None:
                continue
            of = Probe(acting.law, acting.parameters, acting.rate, every, field)
        if of.rise(0.3, 0.0) > 0.0 or not of.marks(0.3, of.rate * LONG) > 0.0:
            continue
        for long in of.rate * np.geomspace(LONG, 1e-3, 31):  # at the longest, one step may lead to a limit
            low, high = of.rise(0.3, float(long)), of.rise(0.31, float(long))
            if 0.0 < low < 0.5 and abs(high - low) < 0.005:
                return of
    return None


def _between_moves(of: Probe) -> float | None:
    """Time between two moves of a field at a long queue of a law that packets call [s]; None: it doesn't move."""
    long, shortest = of.rate * LONG, of.every

    def moves(elapsed: float) -> bool:
        state = of.act(of.held(0.3, long), long, elapsed=_AGES)  # it has just moved
        return getattr(of.act(state, long, elapsed=elapsed), of.field) != getattr(state, of.field)

    if moves(shortest):
        return shortest
    if not moves(_AGES):
        return None
    low, high = shortest, _AGES
    for _ in range(HALVINGS):
        middle = sqrt(low * high)
        low, high = (low, middle) if moves(middle) else (middle, high)
    return high


def refuse_arrivals(of: Probe) -> None:
    """InvalidValue for a law whose step answers arrivals, which a loop of the queue's delay leaves out."""
    backlog = 0.1 * of.rate
    state = of.held(0.3, backlog)
    usual = of.act(state, backlog)
    for name, value in {"arrived": 1.01 * of.rate * of.every, "offered": 1.01}.items():
        if getattr(of.act(state, backlog, **{name: value}), of.field) != getattr(usual, of.field):
            raise InvalidValue("law", of.law.name, f"{NO_LOOP}; it answers the rate of arrivals, too")
