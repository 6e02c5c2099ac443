"""Pacing laws as relations, one decision a step; time in RTTs without queue, data in bandwidth-delay products.

Each begins at rest on a link that it knows: so the least RTT is 1, and neither drains nor losses are decided on.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt
from typing import Any, NamedTuple

from netctrl.checks.worst.relations import Affine, Relations
from netctrl.core.units import packets_per_second
from netctrl.laws.pacing.own_rate import FREE, FREE_RAMP, FREE_ROUNDS, MAX_BDPS, MAX_PACKETS, RISE, RISE_PACKETS, SPEED
from netctrl.laws.pacing.target_rtt import BUSY, FREE_RTTS, KEPT
from netctrl.model.design.design import PacingDesign
from netctrl.model.law import ArxPacer, OwnRatePacer, TargetRttPacer

_FASTEST = 1.5  # own rate over the capacity, that spreads of RTTs are reckoned for


class Seen(NamedTuple):
    """What a law learns in a step."""

    step: int
    """From 1 on."""
    rtt: Affine
    delivered: Affine
    """In the last round trip."""
    in_flight: Affine


class StepLaw(NamedTuple):
    """A law in steps."""

    steps: int
    """In a round trip."""
    queue: float
    """At rest."""
    rest: dict[str, Any]
    """State at rest; "rate" is in force, "window", where there is one, bounds what is in flight."""
    decide: Callable[[Relations, dict[str, Any], Seen], dict[str, Any]]
    """The next state."""
    window: int
    """Round trips that are searched at once."""
    sound: bool
    """Whether all that the law does in cruise is among the relations' solutions."""
    exact: bool
    """Whether bounds are tightened by search, not only by linear relaxation."""


def step_law(design: PacingDesign, jitter: float) -> StepLaw:
    """The law of a design; jitter in round trips."""
    law, asked = design.law, design.inputs
    if isinstance(law, ArxPacer):
        return _paper(law, asked.bottleneck_bit_per_s)
    capacity = packets_per_second(asked.bottleneck_bit_per_s, law.packet_size_bytes)
    if isinstance(law, OwnRatePacer):
        return _own_rate(law, capacity, capacity * asked.rtt_s, jitter)
    return _target_rtt(law, capacity * asked.rtt_s)


def _paper(law: ArxPacer, capacity: float) -> StepLaw:
    """Eqs. (1), (4), (7), with the estimate that the law starts with: it learns where predictions err, so what is
    found here has to be seen on packets, and is no bound. The least deviation, 1e-4 of the RTT, is left out."""
    p, R = law.past_rtts, law.max_rate_bit_per_s / capacity
    start, least = law.start_rate_bit_per_s / law.max_rate_bit_per_s, law.least_rate_bit_per_s / law.max_rate_bit_per_s
    b1 = law.first_slope
    a, gamma = (1.0 - b1 * start) / p, law.smoothing
    pull = 1.0 / (2.0 * law.psi * b1)

    def decide(relations: Relations, state: dict[str, Any], seen: Seen) -> dict[str, Any]:
        past, rate = state["past"], state["rate"] * (1.0 / R)
        off = sum(past[1:], past[0]) * a + rate * b1 - state["mean"]
        mean = relations.settle(state["mean"] * gamma + seen.rtt * (1.0 - gamma))
        square = relations.curve(off, lambda u: u * u)
        variance = relations.settle(state["variance"] * gamma + square * (1.0 - gamma), low=0.0)
        past = [seen.rtt, *past[:-1]]
        weight = relations.curve(state["mean_rate"], lambda u: law.xi / max(u, 1e-6))
        weight = weight - relations.curve(mean, lambda u: b1 / u)
        free = (relations.product(weight, variance) * pull + mean - sum(past[1:], past[0]) * a) * (1.0 / b1)
        new = relations.minimum(relations.maximum(free, relations.constant(least)), relations.constant(1.0))
        new = relations.settle(new, least, 1.0)
        mean_rate = relations.settle(state["mean_rate"] * gamma + new * (1.0 - gamma))
        return {"rate": new * R, "past": past, "mean": mean, "variance": variance, "mean_rate": mean_rate}

    rest = {"rate": start * R, "past": [1.0] * p, "mean": 1.0, "variance": 0.0, "mean_rate": start}
    return StepLaw(1, 0.0, rest, decide, 10, False, False)


def _target_rtt(law: TargetRttPacer, pipe: float) -> StepLaw:
    """Cruise above a twentieth of the capacity, without the term of ψ and ξ, 1e-5 of the rate; `pipe` in packets."""
    steps = round(1.0 / law.interval_share)
    horizon, free = law.horizon_rtts, round(FREE_RTTS * steps)

    def delay(rate: float) -> float:
        share = law.queue_share - law.queue_share_slope * log(max(pipe * rate, 1.0))
        return max(min(max(share, law.least_queue_share), law.queue_share), 1.0 / (pipe * rate))

    def decide(relations: Relations, state: dict[str, Any], seen: Seen) -> dict[str, Any]:
        queue, before, most = seen.rtt - 1.0, state["delivered"], law.growth
        busy = relations.variable(0, 1, 1)
        relations.when(busy, state["delay"] * BUSY - queue)
        relations.when(1.0 - busy, queue - state["delay"] * BUSY)
        known = relations.choice(busy, seen.delivered, relations.maximum(seen.delivered, before))
        C = relations.settle(known, low=0.05)
        aim, pending = relations.curve(C, lambda u: u * delay(u)), relations.settle(seen.in_flight)
        rate = C + (C + aim - pending) * (1.0 / horizon)
        rate = relations.minimum(relations.maximum(rate, C * law.decrease), C * most)
        recent = [busy, *state["busy"]]
        stood = sum(recent[1:], recent[0])
        if stood.low <= 0.0:
            grows = relations.variable(0, 1, 1)
            relations.at_most(stood, (1.0 - grows) * len(recent))
            relations.at_most(1.0 - grows, stood)
            rate = relations.choice(grows, C * most, rate)
        rate = relations.maximum(rate, relations.constant(KEPT))
        rate = relations.minimum(rate, relations.maximum(C + (C * MAX_BDPS - pending) * steps, C * KEPT))
        return {
            "rate": relations.settle(rate),
            "delivered": C,
            "delay": relations.curve(C, delay),
            "busy": recent[:free],
        }

    rest = {"rate": 1.0, "delivered": 1.0, "delay": delay(1.0), "busy": [1.0] * free}
    return StepLaw(steps, delay(1.0), rest, decide, 3, True, False)


def _own_rate(law: OwnRatePacer, capacity: float, pipe: float, jitter: float) -> StepLaw:
    """Cruise; the spread of RTTs in a round trip is anything up to the jitter. Capacity in packets/s."""

    def alpha(rate: float) -> float:
        return (law.queue_packets + law.queue_packets_per_root_rate * sqrt(max(rate, 0.0) * capacity)) / pipe

    def decide(relations: Relations, state: dict[str, Any], seen: Seen) -> dict[str, Any]:
        W, rtt = state["window"], relations.settle(seen.rtt)
        x = relations.settle(relations.quotient(W, rtt))
        kept = relations.curve(x, alpha)
        spread = relations.variable(0.0, law.noise_share * jitter * _FASTEST)
        new = W * (1.0 - law.gain) + (x + kept + spread) * law.gain
        ramp = min(max((seen.step - FREE_ROUNDS) / FREE_RAMP, 0.0), 1.0)
        if ramp > 0.0:  # how long there was no queue is left to the search
            free = relations.variable(0, 1, 1)
            grown = relations.variable(0.0, (law.growth - 1.0) * W.high * ramp)
            relations.at_most(grown, free * grown.high)
            relations.when(free, W - x - kept * FREE)
            new = new + grown
        new = relations.minimum(new, W * RISE + RISE_PACKETS / pipe)
        fast = relations.maximum(seen.delivered, state["delivered"])
        most = (fast + kept) * MAX_BDPS + MAX_PACKETS / pipe
        window = relations.settle(relations.minimum(new, most))
        rate = relations.settle(relations.quotient(window, rtt)) * SPEED
        return {"rate": rate, "window": window, "delivered": seen.delivered}

    rest = {"rate": SPEED, "window": 1.0 + alpha(1.0), "delivered": 1.0}
    return StepLaw(1, alpha(1.0), rest, decide, 10, True, True)
