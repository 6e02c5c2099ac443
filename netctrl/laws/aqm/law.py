"""Interface of queue laws: a record in files, named parameters and state, and a pure step.

A step is `step(state, seen, parameters)` and returns the next state, whose first field is the probability with which a
packet is marked. It is written in the subset that `netctrl.laws.codegen` turns into C++: the fluid compiles it with
numba, ns-3 with its compiler. Units: packets of the scenario's size, seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NamedTuple

import msgspec

from netctrl.model.io.fields import number

_MAX = 1e9  # of gains and frequencies: beyond all use, and what is computed with it stays finite

GAIN = number("a gain above 0, as in 1.42e-5, to 1e9", above=0.0, at_most=_MAX)
GAIN_OR_0 = number("a gain from 0 to 1e9", at_least=0.0, at_most=_MAX)
FREQUENCY = number("a frequency from 1e-9 to 1e9", at_least=1.0 / _MAX, at_most=_MAX)
UTILIZATION = number("a number in (0, 1], as in 0.98", above=0.0, at_most=1.0)
PROBABILITY = number("a probability in (0, 1]", above=0.0, at_most=1.0)


class QueueRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """A queue with its parameters, as files have it; `kind` tells which."""


class Seen(NamedTuple):
    """What a law knows when it acts."""

    elapsed: float
    """Since it acted last [s]."""
    arrived: float
    """Enqueued in that time [packet]."""
    offered: float
    """On their way in now: one packet, or in a fluid what comes in the step [packet]."""
    backlog: float
    """Waiting now [packet]."""
    capacity: float
    """Of the link now [packet/s]."""


class Arriving(NamedTuple):
    """What a law that spreads its choices knows of a packet that comes."""

    size: float
    """[packet]"""
    backlog: float
    """Waiting before it [packet]."""
    draw: float
    """Random number, uniform from 0 to 1."""


CHOSEN = -1.0
"""`passed` in a law's state: the packet is marked, or dropped if it can't be marked."""


class HeadLaw(NamedTuple):
    """A law that chooses among packets at the head of a queue, as they are about to be sent."""

    state: Any
    """A class with fields of floats, zeros at first, which the law changes in place."""
    chooses: FunctionType
    """chooses(state, time [s], sojourn [s], alone, parameters): whether the packet is marked, or dropped if it can't be
    marked; the next one is asked about then. `alone`: at most one packet more waits behind it."""


@dataclass(frozen=True, slots=True)
class QueueLaw:
    """A law, from its record in files to its step."""

    record: Any
    parameters: Any
    """A NamedTuple of floats; a line of text behind each field says what it is, with its unit."""
    state: Any
    """A NamedTuple of floats that start as zeros; the first is `probability`."""
    read: Callable[[Any, float, float], Any]
    """(record, packet size [byte], buffer of the link [byte], inf: unlimited) -> parameters."""
    step: FunctionType
    epoch: Callable[[Any], float] | None = None
    """record -> how often it acts [s]; None: at each arrival."""
    fluid: FunctionType | None = None
    """The step's limit for packets without size, where that isn't the step itself: called at each step of a fluid."""
    spreads: FunctionType | None = None
    """spreads(state, packet: Arriving, parameters) -> the state after a packet that comes, with `passed` since the last
    choice, or CHOSEN, where the state's probability is the mean share; None: each packet is chosen by chance."""
    head: HeadLaw | None = None
    """Where packets are chosen at the head of the queue; the step is the fluid's then."""

    @property
    def name(self) -> str:
        """As in files."""
        return self.record.__struct_config__.tag


def clip(probability: float) -> float:
    """A probability, from 0 to 1."""
    return min(max(probability, 0.0), 1.0)
