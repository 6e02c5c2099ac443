"""DOCSIS-PIE packet by packet: a judge of netctrl's law, which acts by intervals.

Written from the rules of RFC 8034, Appendix A, as an object with a queue's length and a clock of intervals. Its rules
are also those of CableLabs' ns-3 model (github.com/cablelabs/docsis-ns3, dual-queue-coupled-aqm.cc), read, not copied.
"""

from __future__ import annotations

import numpy as np

TARGET, INTERVAL, A, B = 0.010, 0.016, 0.25, 2.5
STEPS = ((1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0), (1.0, 0.5), (10.0, 0.125))
"""What the step is divided by, for the probability up to which it is."""


class Modem:
    """A service flow of a cable modem without token credit, with a rate [byte/s] and a buffer [byte]."""

    def __init__(self, rate: float, buffer: float, random: np.random.Generator) -> None:
        self.rate, self.buffer, self.random = rate, buffer, random
        self.x = self.total = self.old = self.protected = self.calm = 0.0
        self.state = "inactive"

    def tick(self, queue: float) -> None:
        """The end of an interval at a queue's length [byte]."""
        delay = queue / self.rate
        if self.protected > 0.0:
            self.x, self.protected = 0.0, max(0.0, self.protected - INTERVAL)
        else:
            divisor = next((d for bound, d in STEPS if self.x < bound), 0.03125)
            change = (A * (delay - TARGET) + B * (delay - self.old)) / divisor
            self.x += min(change, 0.02) if self.x >= 0.1 else change
            if max(delay, self.old) < 0.005:
                self.x *= 0.98
            elif delay > 0.2:
                self.x += 0.02
            self.x = float(np.clip(self.x, 0.0, 0.85 * 1024.0 / 64.0))
        calm = max(delay, self.old) < 0.5 * TARGET and self.x == 0.0 and self.protected == 0.0
        if self.state == "active" and calm:
            self.state, self.calm = "quiescent", 0.0
        elif self.state == "quiescent":
            self.calm = self.calm + INTERVAL if calm else 0.0
            if self.calm > 1.0:
                self.state, self.calm = "inactive", 0.0
        self.old = delay

    def drops(self, size: float, queue: float) -> bool:
        """Whether a packet that comes to a queue is dropped [byte]."""
        if self.protected > 0.0:
            return False
        if self.x == 0.0:
            self.total = 0.0
        if self.state == "inactive":
            if queue < self.buffer / 3.0:
                return False
            self.state = "quiescent"
        chance = min(self.x * size / 1024.0, 0.85)
        self.total += chance
        if (self.old < 0.5 * TARGET and self.x < 0.2) or queue <= 2048.0 or self.total < 0.85:
            return False
        if self.total < 8.5 and self.random.random() > chance:
            return False
        self.total = 0.0
        if self.state == "quiescent":
            self.state, self.protected = "active", 0.142
        return True
