"""Pacing laws as relations, one decision a round trip; time in RTTs without queue, data in bandwidth-delay products.

Each begins at rest on a link that it knows: so the least RTT is 1, and no drains are decided on.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

from netctrl.checks.worst.relations import Affine, Relations, affine
from netctrl.core.units import packets_per_second
from netctrl.laws.pacing.losses import LEAST_SHARE, SHARE_CUT, SHARE_RISE
from netctrl.laws.pacing.own_rate import (
    FREE,
    FREE_RAMP,
    FREE_ROUNDS,
    LEAST_QUEUE,
    MAX_BDPS,
    MAX_PACKETS,
    MAX_STEP,
    RISE,
    RISE_PACKETS,
    SPEED,
)
from netctrl.model.design.design import PacingDesign, PacingInputs
from netctrl.model.law import ArxPacer, OwnRatePacer

_FASTEST = 1.5  # own rate over the capacity, that spreads of RTTs are reckoned for
_NO_LIMIT = 3.0  # of a window [BDP]


class Seen(NamedTuple):
    """Observations of a law in a round trip."""

    step: int
    """Its number, from 1 on."""
    rtt: Affine
    delivered: Affine


class StepLaw(NamedTuple):
    """A law in round trips."""

    rest: Callable[[Relations], tuple[dict[str, Any], Affine]]
    """State at rest, and what is queued of a flow; "rate" is in force, "window", where there is one, bounds what is in
    flight."""
    decide: Callable[[Relations, dict[str, Any], Seen], dict[str, Any]]
    """The next state."""
    sound: bool
    """Whether all that the law does in cruise is among the relations' solutions."""


def step_law(design: PacingDesign, jitter: float, loss: float = 0.0) -> StepLaw:
    """The law of a design; jitter, by which RTTs of a round trip may differ, in round trips, loss as a share of each
    round trip's packets."""
    law, asked = design.law, design.inputs
    if isinstance(law, ArxPacer):
        return _paper(law, asked.bottleneck_bit_per_s)
    return _own_rate(law, packets_per_second(asked.bottleneck_bit_per_s, law.packet_size_bytes), asked, jitter, loss)


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

    def rest(relations: Relations) -> tuple[dict[str, Any], Affine]:
        state = {"rate": start * R, "past": [1.0] * p, "mean": 1.0, "variance": 0.0, "mean_rate": start}
        return affine(relations, state), relations.constant(0.0)

    return StepLaw(rest, decide, False)


def _own_rate(law: OwnRatePacer, capacity: float, asked: PacingInputs, jitter: float, loss: float) -> StepLaw:
    """Cruise; the spread of RTTs in a round trip is anything up to the jitter. Capacity in packets/s.

    Up to what is tolerated losses only shorten the queue that is kept: by a share that is anything at rest, then cut or
    raised. Beyond, they may cut the window, not in two round trips in a row.
    """
    pipe = capacity * asked.rtt_s

    def alpha(rate: float) -> float:
        return (law.queue_packets + law.queue_packets_per_root_rate * sqrt(max(rate, 0.0) * capacity)) / pipe

    def kept(relations: Relations, rate: Affine, share: Affine) -> Affine:
        full = relations.curve(rate, alpha)
        if loss == 0.0:
            return full
        return relations.maximum(relations.product(share, full), relations.constant(LEAST_QUEUE / pipe))

    def decide(relations: Relations, state: dict[str, Any], seen: Seen) -> dict[str, Any]:
        W, rtt, share = state["window"], relations.settle(seen.rtt), state["share"]
        x = relations.quotient(W, rtt)
        if loss > 0.0:
            share = relations.variable(LEAST_SHARE, 1.0)
            relations.at_most(share, state["share"] + (rtt + jitter) * (SHARE_RISE * asked.rtt_s))
            relations.at_most(state["share"] * SHARE_CUT, share)
        waits = kept(relations, x, share)
        spread = relations.variable(0.0, law.noise_share * jitter * _FASTEST)
        new = W * (1.0 - law.gain) + (x + waits + spread) * law.gain
        # Growth in round trips without a queue, over what the queue that is kept gives then.
        count = relations.constant(seen.step)  # of them, up to this one
        grown = (law.growth - 1.0) * W.high * min((seen.step - FREE_ROUNDS) / FREE_RAMP, 1.0)
        grown -= law.gain * (1.0 - FREE) * waits.low
        if grown > 0.0:
            free, most, count = relations.variable(0, 1, 1), state["free"] + 1.0, relations.variable(0.0, seen.step)
            relations.when(free, W - x - (waits + spread) * FREE)
            relations.at_most(count, most)
            relations.at_most(count, free * seen.step)
            more = relations.variable(0.0, grown)
            relations.at_most(more, count * (grown / seen.step))  # its chord, from none on
            new = new + more
        new = relations.minimum(new, W * RISE + RISE_PACKETS / pipe)
        limit, cut = state["limit"], state["cut"]
        if loss > law.tolerated_loss:
            limit, cut = relations.variable(0.0, _NO_LIMIT), relations.variable(0, 1, 1)
            relations.at_most(cut + state["cut"], 1.0)
            relations.when(1.0 - cut, state["limit"] - limit)
            relations.when(1.0 - cut, limit - state["limit"] * (1.0 + MAX_STEP))
            held = relations.minimum(new, W)
            relations.when(cut, held * (1.0 - max(loss, law.cut)) - limit)
            relations.when(cut, limit - held * (1.0 - law.cut))
            new = relations.minimum(new, limit)
        lost = relations.variable(0.0, loss * max(seen.delivered.high, 0.0))
        relations.at_most(lost, seen.delivered * loss)
        delivered = relations.settle(seen.delivered - lost)
        most = (relations.maximum(delivered, state["delivered"]) + waits) * MAX_BDPS + MAX_PACKETS / pipe
        window = relations.settle(relations.minimum(new, most))
        rate = relations.settle(relations.quotient(window, rtt)) * SPEED
        return {
            "rate": rate,
            "window": window,
            "delivered": delivered,
            "share": share,
            "limit": limit,
            "cut": cut,
            "free": count,
        }

    def rest(relations: Relations) -> tuple[dict[str, Any], Affine]:
        each, share = relations.constant(1.0 / asked.flows), relations.variable(LEAST_SHARE if loss else 1.0, 1.0)
        waits = kept(relations, each, share)
        state = affine(relations, {"limit": _NO_LIMIT, "cut": 0.0, "free": 0.0})
        return state | {"rate": each * SPEED, "window": each + waits, "delivered": each, "share": share}, waits

    return StepLaw(rest, decide, True)
