"""Access link's scenario: a short call that builds it, and its parts for engines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.scenario.access.flows import CrossFlow, PremiumFlow, RegulatedFlows, TcpSenders
from netctrl.scenario.access.network import AccessLine
from netctrl.scenario.scenario import Scenario, checked_network

_DEFAULT = Scenario(
    name="access link",
    network=AccessLine(),
    flows=(PremiumFlow(), *(RegulatedFlows(id=f"source{place}") for place in range(3))),
    duration=100.0,
    interval=1.0,
)


def access_link(**fields: Any) -> Scenario:
    """Build an access link's scenario, with other values for some fields of it or of its parts.

    The default is 100 Mbit/s, premium traffic of 1 Mbit/s, and three regulated sources, each with two flows and a third
    of the rate, for 100 periods of 1 s.

    Raises
    ------
    InvalidValue
        An unknown name, or a value that a part refuses.

    Examples
    --------
    >>> from netctrl.scenario.access.scenario import access_link
    >>> access_link(hops=3, duration="20s").steps
    20
    """
    return _DEFAULT.replace(**fields)


class AccessLinkParts(NamedTuple):
    """Parts of an access link's scenario."""

    line: AccessLine
    premium: PremiumFlow
    regulated: tuple[RegulatedFlows, ...]
    cross: tuple[CrossFlow, ...]
    """Cross flows in the order of their hops."""
    packet_size: float
    """Size of all packets that aren't premium [byte]."""

    @property
    def flows(self) -> int:
        """Number of regulated flows of all groups."""
        return sum(group.count for group in self.regulated)

    @property
    def turns(self) -> tuple[float, ...]:
        """Times at which failures of regulators begin and end [s]."""
        failures = (each for group in self.regulated for each in group.failures)
        return tuple(turn for each in failures for turn in (each.start, each.stop))

    @property
    def sender(self) -> TcpSenders | None:
        """Senders of all regulated flows."""
        return self.regulated[0].sender


def access_parts(scenario: Scenario) -> AccessLinkParts:
    """The parts of an access link's scenario.

    Raises
    ------
    InvalidValue
        A scenario of another kind.
    """
    line, flows = checked_network(scenario, AccessLine), scenario.flows
    return AccessLinkParts(
        line=line,
        premium=next(each for each in flows if isinstance(each, PremiumFlow)),
        regulated=tuple(each for each in flows if isinstance(each, RegulatedFlows)),
        cross=tuple(sorted((each for each in flows if isinstance(each, CrossFlow)), key=lambda flow: flow.hop)),
        packet_size=scenario.packet_size,
    )


def source_of(parts: AccessLinkParts) -> np.ndarray:
    """Group of each regulated flow."""
    return np.repeat(np.arange(len(parts.regulated)), [group.count for group in parts.regulated])


def flow_rates(parts: AccessLinkParts, rate: float, time: float) -> np.ndarray:
    """Rate of each regulated flow [bit/s]: its share of the rate or of the offered rate; of a failed regulator, the
    latter."""
    found = []
    for group in parts.regulated:
        failed = [each.rate for each in group.failures if each.start <= time < each.stop]
        total = failed[0] if failed else min(rate * group.share, group.offered)
        found += [total / group.count] * group.count
    return np.array(found)
