"""Laws of queues and classes of flows, of which the linear loop of a queue is made."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from netctrl.plants.queues.window_response import Sender

MOST_SPACED = 1.5
"""Of x where marks are spaced, which tends to 2 as p grows; 1 at p = 1."""


class WindowClass(NamedTuple):
    """Flows with one sender and one round-trip time."""

    sender: Sender
    share: float = 1.0
    """f, of all flows."""
    stretch: float = 1.0
    """Base round trip over the loop's tau."""
    factor: float = 1.0
    power: float = 1.0
    """p = factor · x^power."""
    queued: bool = True
    """Whether these flows wait in the queue whose delay the law reads."""
    other_delay_s: float = 0.0
    """Delay where they don't [s]."""

    def window(self, x: Any, trip: Any) -> Any:
        """Window at the law's output x and a round trip [s] [packet]."""
        return self.sender.window(self.factor * x**self.power, trip)

    def wait(self, standing: Any) -> Any:
        """Delay of the queue in which these flows wait [s]."""
        return standing if self.queued else self.other_delay_s


class SampledPi(NamedTuple):
    """PI law on the queue's delay, which acts and holds."""

    integral: float
    """Per update [1/s]."""
    proportional: float
    """Per update [1/s]."""
    update_s: float
    target_s: float
    spaced: float = 0.0
    """h of a law that spreads what it drops: at x it computes x/(1 + h x), so that L has the factor (1 + h x)²."""

    def computed(self, x: Any) -> Any:
        """What the law computes at x."""
        return x / (1.0 + self.spaced * x)

    def reached(self, computed: float) -> float:
        """x where the law computes this; inf: nowhere."""
        if not self.spaced:
            return computed
        return computed / (1.0 - self.spaced * computed) if self.spaced * computed < 1.0 else inf

    def steeper(self, x: Any) -> Any:
        """Slope of x over what the law computes; also as a function over cells."""
        root = x * self.spaced + 1.0
        return root * root

    def delay(self, x: Any) -> float:
        """D in equilibrium, the target at every x [s]."""
        return self.target_s

    def rise(self, x: Any) -> float:
        """1: a law that holds a target has no slope there."""
        return 1.0


class Averaged(NamedTuple):
    """Marks in proportion to an average of the delay above a least one: one line of RED, p = slope (D − start)."""

    slope: float
    """dp/dD [1/s]."""
    corner: float
    """Of the average; inf: no average [rad/s]."""
    start_s: float
    """Delay at which the line is 0, also below the line's range [s]."""
    spaced: bool = False
    """Whether a mark comes after 1 to 1/p packets, each number with the same chance: 2p/(1 + p) of packets are marked,
    and this share is x. Else x = p."""

    def computed(self, x: Any) -> Any:
        """What the law computes at x: x itself."""
        return x

    def reached(self, computed: float) -> float:
        """x where the law computes this."""
        return computed

    def delay(self, x: Any) -> Any:
        """D at x [s]."""
        return (x / (2.0 - x) if self.spaced else x) * (1.0 / self.slope) + self.start_s

    def rise(self, x: Any) -> Any:
        """dx/dD at x [1/s]."""
        return (2.0 - x) * (2.0 - x) * (0.5 * self.slope) if self.spaced else self.slope

    def elasticity(self, x: Any) -> Any:
        """∂ ln D/∂ ln x; over a range of x it is greatest at an end."""
        return x / self.rise(x) / self.delay(x)
