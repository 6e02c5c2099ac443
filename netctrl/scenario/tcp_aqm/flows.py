"""Groups of flows: number, path, times and sender of each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from netctrl.errors import InvalidValue, checked_word
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    duration,
    number,
    optional,
    payload,
    rate,
    read_fields,
    size,
    whole,
)
from netctrl.scenario.tcp_aqm.demands import DemandFlows
from netctrl.scenario.tcp_aqm.group import MAX_FLOWS, Datagrams, Flows
from netctrl.units import format_quantity

__all__ = [
    "GROUPS",
    "MAX_FLOWS",
    "BulkFlows",
    "BurstFlows",
    "DemandFlows",
    "FastFlows",
    "FlowDraw",
    "FlowGroup",
    "UdpFlows",
    "WebFlows",
]


class BulkFlows(Flows, frozen=True, kw_only=True, tag="bulk"):
    """Flows with endless data, or with a given amount of data."""

    count: int
    """How many flows."""
    size: Size | None = None
    """Data of each flow [byte], after which it ends; null: endless. Packet engine only."""
    packet_size: Size | None = None
    """Size of full data packets, headers counted [byte]; null: the scenario's, its greatest. Packet engine only."""
    classes: int | None = None
    """Number of classes of equal size into which flows are merged, each with one RTT and one start; null: each flow is
    a class. ns-3 ignores classes and runs `count` flows."""

    def __post_init__(self) -> None:
        self.read("count")
        read_fields(self, size=optional(payload), packet_size=optional(size))
        read_fields(
            self, classes=optional(whole(1, self.count, "a whole number of classes, at most the number of flows,"))
        )


class WebFlows(Flows, frozen=True, kw_only=True, tag="web"):
    """Sessions that load a page of a few objects, think, and load the next.

    Source: ARC paper, Section IV (Pareto sizes of shape 1.2 and mean 5 kB, exponential think time of 7 s).
    """

    sessions: int
    """How many sessions."""
    objects_per_page: int = 2
    """Objects of a page, each with a size of its own."""
    mean_object: Size = 5e3
    """Mean size of an object [byte]."""
    pareto_shape: float = 1.2
    """Shape of the Pareto distribution of sizes, above 1."""
    max_object: Size = 10e6
    """Largest size of an object [byte]; sizes are truncated to it."""
    think_time: Duration = 7.0
    """Mean of an exponential distribution, from the end of a page to the next [s]."""

    def __post_init__(self) -> None:
        self.read("sessions")
        read_fields(self, mean_object=size, max_object=size, think_time=duration)
        shape = number("a shape above 1 (the mean must exist), to 100", above=1.0, at_most=100.0)
        read_fields(self, objects_per_page=whole(1, 1000), pareto_shape=shape)
        if self.max_object <= self.mean_object:
            raise InvalidValue("max_object", self.max_object, "a size above mean_object")


class FastFlows(Flows, frozen=True, kw_only=True, tag="fast"):
    """Senders whose rate is max_rate · exp(−gain · price/rtt), with the price marked by a `fast-arc` queue.

    Fluid only. Source: Paganini, Wang, Low, Doyle, INFOCOM 2003 (reference [14] of the ARC paper), static source law.
    """

    count: int
    """How many flows."""
    max_rate: Rate
    """x_max, the rate at price 0 [bit/s]."""
    gain: float
    """Gain a of the source law."""

    def __post_init__(self) -> None:
        self.read("count")
        read_fields(self, max_rate=rate, gain=number("a gain above 0, to 1e9", above=0.0, at_most=1e9))


class UdpFlows(Datagrams, frozen=True, kw_only=True, tag="udp"):
    """Senders of whole packets at a constant rate, each with its own phase."""

    count: int
    """How many senders."""
    rate: Rate
    """Rate of each flow, with headers."""
    spacing: Literal["constant", "poisson"] = "poisson"
    """Time between packets: constant, or exponential."""

    def __post_init__(self) -> None:
        self.read("count")
        read_fields(self, rate=rate)
        checked_word("spacing", self.spacing, ("constant", "poisson"))


class BurstFlows(Datagrams, frozen=True, kw_only=True, tag="bursts"):
    """Senders with regulators that release a burst of consecutive packets and then pause.

    Each begins at a random point of a pause. Packet engine only. An access link has such flows as `regulated` flows
    with controlled rates. Source: CONNET paper.
    """

    rate: Rate
    """Mean rate of each flow, with headers."""
    burst: int = 10
    """Packets of a burst."""
    pause_variation: float = 1.0
    """Standard deviation over mean of the pauses between bursts; 1: exponential pauses, 0: evenly spaced bursts."""
    access_rate: Rate = 1e8
    """Rate at which the packets of a burst follow each other."""

    def __post_init__(self) -> None:
        self.read("count")
        read_fields(self, rate=rate, access_rate=rate, burst=whole(1, 10_000, "a whole number of packets"))
        read_fields(self, pause_variation=number("a number from 0 to 1", at_least=0.0, at_most=1.0))
        if self.rate > self.access_rate:
            takes = f"at least rate, {format_quantity(self.rate, 'bit/s')}"
            raise InvalidValue("access_rate", format_quantity(self.access_rate, "bit/s"), takes)


GROUPS = (BulkFlows, WebFlows, FastFlows, UdpFlows, BurstFlows, DemandFlows)
FlowGroup = BulkFlows | WebFlows | FastFlows | UdpFlows | BurstFlows | DemandFlows
"""Every kind of flows; in a file, `kind` selects it."""


@dataclass(frozen=True, slots=True, eq=False)
class FlowDraw:
    """The flows of one group, one row each; all arrays have the same length.

    Parameters
    ----------
    rtt_s : ndarray
        Round-trip propagation delay [s].
    start_s, stop_s : ndarray
        Start and stop times [s]; stop is inf for endless flows.
    flows : ndarray
        Number of flows in a row; 1 except for merged classes.
    """

    rtt_s: np.ndarray
    start_s: np.ndarray
    stop_s: np.ndarray
    flows: np.ndarray
