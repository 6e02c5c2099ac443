"""Linux's PIE in real numbers, for the packet engine: `netctrl.laws.targets.pie` without its ticks and integers.

It reads the sojourn time of the packet that left last, and spreads what it chooses: none before the sum of the
probabilities since the last choice is .85, surely from 8.5 on. Sources are named there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netctrl.laws.aqm.pie import pie_scale
from netctrl.laws.targets.jiffies import timer_period
from netctrl.laws.targets.pie import spread_chooses
from netctrl.laws.targets.pie_law import PieLaw

PACKETS_HZ = 1000
"""CONFIG_HZ of the kernel whose timer it has."""
PASS, MARK, DROP = range(3)
_BURST_S, _PANIC_S = 0.15, 0.25
_SURE = 8.5
_MARKED_UP_TO = 0.1
_TIMES, _WHOLE, _OFF = ("target", "tupdate"), ("limit", "alpha", "beta"), ("dq_rate_estimator", "bytemode")


class PacketPie:
    """State and parameters of a PIE, changed in place."""

    probability: float
    """Of choosing a packet"""
    delay: float
    """Sojourn of the packet that left last [s]"""
    old_delay: float
    """Of the update before [s]"""
    burst: float
    """Allowance left [s]"""
    left: float
    """When a packet left last; below 0: none did [s]"""
    accumulated: float
    """Of probabilities since the last choice"""
    target: float
    """Delay [s]"""
    alpha: float
    """Gain on the delay [1/s]"""
    beta: float
    """Gain on its change [1/s]"""
    ecn: float
    """1: packets are marked up to a probability of .1"""
    packet: float
    """A full one [byte]"""


def pie_lacks(parameters: Mapping[str, float]) -> str | None:
    """What of tc's parameters it doesn't have; None: it has all of them."""
    for name, value in parameters.items():
        if name not in (*_TIMES, *_WHOLE, *_OFF, "ecn") or (name in _OFF and value):
            return f"pie's {name}"
    return None


def pie_on_packets(parameters: Mapping[str, float]) -> PieLaw:
    """The law of tc's parameters, times in seconds, in the kernel's numbers."""
    given: dict[str, Any] = {name: round(parameters[name]) for name in _WHOLE if name in parameters}
    given |= {f"{name}_us": round(1e6 * parameters[name]) for name in _TIMES if name in parameters}
    return PieLaw.sent(**given, ecn=bool(parameters.get("ecn", 0.0)), hz=PACKETS_HZ)


def pie_row(law: PieLaw, packet: float) -> tuple[float, ...]:
    """First values of `PacketPie`; `packet` is a full one [byte]."""
    gains = law.gains(1.0)
    first = (0.0, 0.0, 0.0, _BURST_S, -1.0, 0.0)
    return (*first, law.target_s, gains.integral, gains.proportional, float(law.ecn), packet)


def tupdate_for(update_s: float) -> float:
    """What tc has to send for the interval between updates that is nearest to one in effect [s]."""
    wanted = PACKETS_HZ * update_s
    jiffies = min(range(1, max(int(wanted), 1) + 2), key=lambda each: (abs(timer_period(each) - wanted), each))
    return jiffies / PACKETS_HZ


def update_pie(state: PacketPie, backlog: float) -> None:
    """The next probability; `backlog` is what waits [byte]."""
    p, delay, old = state.probability, state.delay, state.old_delay
    change = pie_scale(p) * (state.alpha * (delay - state.target) + state.beta * (delay - old))
    if p >= 0.1:
        change = min(change, 0.02)
    if delay > _PANIC_S:
        change += 0.02
    p = max(p + change, 0.0)
    if delay == 0.0 and old == 0.0 and backlog == 0.0:
        p -= p / 64.0
    state.probability = p
    if p == 0.0 and delay < 0.5 * state.target and old < 0.5 * state.target:
        state.burst = _BURST_S
        state.accumulated = 0.0
        state.left = -1.0
    state.old_delay = delay


def pie_leaves(state: PacketPie, now: float, waited: float, backlog: float) -> None:
    """A packet leaves after it has waited so long [s]; `backlog` is what waits behind it [byte]."""
    state.delay = waited if backlog > 0.0 else 0.0
    if state.left >= 0.0:
        state.burst = max(state.burst - (now - state.left), 0.0)
    state.left = now


def pie_choice(state: PacketPie, backlog: float, capable: bool, draw: float) -> int:
    """What becomes of a packet that comes: 0 it waits, 1 it is marked, 2 it is dropped; `backlog` waits before it
    [byte]."""
    p = state.probability
    if state.burst > 0.0 or (state.delay < 0.5 * state.target and p < 0.2) or backlog < 2.0 * state.packet:
        return PASS
    state.accumulated = state.accumulated + p if p > 0.0 else 0.0
    if not spread_chooses(state.accumulated, p, draw):
        return PASS
    marks = state.ecn > 0.0 and capable and p <= _MARKED_UP_TO
    if not (marks and state.accumulated >= _SURE):  # a sure choice that is marked goes on: the fault of Linux's pie
        state.accumulated = 0.0
    return MARK if marks else DROP
