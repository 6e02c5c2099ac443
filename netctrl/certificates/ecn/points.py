"""Points of a box that are looked at where no bound over a box is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from netctrl.certificates.box import Box, Ends
from netctrl.certificates.record import CertifyInputs
from netctrl.errors import InvalidValue
from netctrl.units import packets_per_second

__all__ = ["Point", "between", "capacities", "points_of", "spread_points"]

_RATIO = 1.22074408460575947536
"""Root of x^4 = x + 1, of the additive sequence in three dimensions (Roberts 2018)."""


class Point(NamedTuple):
    """Operating point."""

    flows: float
    rtt_s: float
    """[s]"""
    rate: float
    """C [packet/s]."""


def between(ends: Ends, count: int) -> list[float]:
    """A range's ends and values between in equal ratios; one value where the ends are equal."""
    low, high = ends
    return [low] if low == high else [low, *map(float, np.geomspace(low, high, count)[1:-1]), high]


def points_of(box: Box, name: str, counts: Sequence[int]) -> list[Point]:
    """Points of a box with these numbers of flows, round-trip times and rates.

    Raises
    ------
    InvalidValue
        A window in place of flows and a capacity, or groups of round-trip times.
    """
    inputs = box.inputs
    if inputs.stretches != (1.0,):
        raise InvalidValue("stretches", inputs.stretches, f"one round-trip time for {name}, whose flows are alike")
    flows, rates = _flows(inputs, name), capacities(box, name)
    axes = zip((flows, inputs.rtt_s, rates), counts, strict=True)
    return [Point(*each) for each in product(*(between(ends, count) for ends, count in axes))]


def spread_points(box: Box, name: str, count: int) -> list[Point]:
    """Points inside a box, spread evenly in the ratios of flows, round-trip times and rates; always the same.

    The k-th point is frac(1/2 + k phi^-j) in dimension j, where phi^4 = phi + 1: it falls on no grid (M. Roberts, "The
    unreasonable effectiveness of quasirandom sequences", 2018).
    """
    axes = _flows(box.inputs, name), box.inputs.rtt_s, capacities(box, name)
    found = []
    for k in range(1, count + 1):
        shares = ((0.5 + k * _RATIO**-j) % 1.0 for j in (1, 2, 3))
        flows, rtt, rate = (low * (high / low) ** u for (low, high), u in zip(axes, shares, strict=True))
        found.append(Point(flows, rtt, rate))
    return found


def capacities(box: Box, name: str) -> Ends:
    """Rates of a box's link [packet/s]."""
    given = box.inputs.capacity_bit_per_s
    if given is None:
        raise _window(box.inputs, name)
    low, high = (float(packets_per_second(end, box.inputs.packet_size_bytes)) for end in given)
    return low, high


def _flows(inputs: CertifyInputs, name: str) -> Ends:
    if inputs.flows is None:
        raise _window(inputs, name)
    return inputs.flows


def _window(inputs: CertifyInputs, name: str) -> InvalidValue:
    return InvalidValue("window", inputs.window_packets, f"flows and a capacity instead: {name} has a queue in packets")
