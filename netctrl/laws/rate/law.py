"""Interface of rate senders: a record in files, and a law for the rate and the data in flight.

Units: bytes of whole packets, byte/s, s. A law's state and settings are rows of numbers; numba compiles its functions.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import msgspec
import numpy as np


class SenderRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """A rate sender with its parameters, as files have it; `kind` tells which. With a field `window`, the name of a
    registered window law, the rate is a cap on what the window sends."""


class Allowed:
    """What a law allows; it changes this in place."""

    rate: float
    """[byte/s]"""
    in_flight: float
    """inf: the law has no bound [byte]"""


class Sample(NamedTuple):
    """What a sender sees with an acknowledgement of a packet that was sent once."""

    time: float
    """[s]"""
    rtt: float
    """[s]"""
    delivered: float
    """So far, with what is acknowledged now [byte]"""
    in_flight: float
    """Sent and neither acknowledged nor lost [byte]"""
    prior_in_flight: float
    """The same before this acknowledgement: rate times RTT where nothing changes [byte]"""
    sent: float
    """So far [byte]"""
    lost: float
    """So far [byte]"""
    marked: float
    """Of what was delivered, what acknowledgements that told of marks acknowledged [byte]"""
    packet: float
    """[byte]"""
    recovering: float
    """0: no losses are repaired; 1: they are; 2: since a timeout"""
    limited: float
    """Rates of what was sent before so much was delivered tell of data that were short, not of the network [byte]"""


class RateLaw(NamedTuple):
    """A law at work."""

    read: Callable[[Any, np.random.Generator], tuple[np.ndarray, int]]
    """(record, what is drawn from) -> row of settings, length of the row of state."""
    begin: FunctionType
    """begin(allowed, state, settings, rtt, packet): a connection has measured its first round trip [s]."""
    step: FunctionType
    """step(allowed, state, settings, sample)"""


class RateSender(NamedTuple):
    """A kind of sender."""

    record: Any
    """A SenderRecord; one without fields may be written as the word that its kind is."""
    law: Callable[[], RateLaw]
    """Imports the law: records are read where nothing is compiled."""
