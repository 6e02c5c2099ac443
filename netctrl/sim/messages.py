"""Runs of a network whose controllers act out of step and hear of each other late, or never."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.model.gain import LinkRateLaw, StaticGain
from netctrl.model.network_scenario import NetworkScenario
from netctrl.runtime.heard import HeardLaw, heard_law
from netctrl.runtime.taps import BACKLOG, RATE
from netctrl.sim.demands import DemandSource
from netctrl.sim.link_problem import LinkProblem
from netctrl.sim.message_kernel import NEVER, MessageState, Messaging, advance_messages

__all__ = ["MessageRuns", "run_with_messages"]

_TICKS = 8
"""An interval, where links act out of step."""
_CHUNK = 1000  # intervals
_LOSS, _JITTER, _TOLD, _PHASE = 1, 2, 3, 4  # streams of a run, beside that of its traffic


class MessageRuns(NamedTuple):
    """As the sums of `netctrl.sim.link_kernel`, (6, N, R), (N, R), (R,) and (3, N, T)."""

    sums: np.ndarray
    growth: np.ndarray
    offered: np.ndarray
    watched: np.ndarray


def run_with_messages(
    scenario: NetworkScenario,
    ready: LinkProblem,
    law: LinkRateLaw | None,
    source: DemandSource,
    numbers: range,
    watch: bool,
) -> MessageRuns:
    """Run the runs of these numbers, one after the other.

    Loss, lateness and moments have random streams of their own in each run: the traffic is the same as without.
    """
    N, steps, S = ready.model.n_links, scenario.steps, _TICKS if scenario.messages.asynchronous else 1
    heard = _heard(scenario, ready, law)
    line, least, messages = _lines(heard, law, N)
    streams = [_streams(scenario.seed, run) for run in numbers]
    phases = [stream[_PHASE].integers(0, S, N) for stream in streams]
    states = [_state(ready, heard, S, phase, messages) for phase in phases]
    result = MessageRuns(
        np.zeros((len(numbers), 6, N)),
        np.zeros((N, len(numbers))),
        np.zeros((len(numbers), 1)),
        np.zeros((3, N, steps if watch else 0)),
    )
    unwatched = np.zeros((3, N, 0))
    before = np.zeros((N, len(numbers)))
    step = 0
    while step < steps:
        end = scenario.warmup_steps if step < scenario.warmup_steps else steps
        demand = source.draw(min(_CHUNK, end - step))
        if step == scenario.warmup_steps:
            before = np.array([state.backlog for state in states]).T
        for r, (state, stream) in enumerate(zip(states, streams, strict=True)):
            extra, told = _draws(scenario, stream, S, len(demand), messages, N)
            advance_messages(
                ready.plant,
                heard.control,
                heard.predicted,
                Messaging(S, phases[r], line, least, heard.central),
                state,
                ready.initial_rate,
                np.ascontiguousarray(demand[:, :, r]),
                extra,
                told,
                step,
                scenario.warmup_steps,
                result.sums[r],
                result.offered[r],
                result.watched if r == 0 else unwatched,
            )
        step += len(demand)
    growth = np.array([state.backlog for state in states]).T - before
    return MessageRuns(result.sums.transpose(1, 2, 0), growth, result.offered[:, 0], result.watched)


def _heard(scenario: NetworkScenario, ready: LinkProblem, law: LinkRateLaw | None) -> HeardLaw:
    nothing = ready.taps._replace(
        start=np.zeros_like(ready.taps.start),
        series=np.zeros(0, np.int64),
        lag=np.zeros(0, np.int64),
        coefficient=np.zeros(0),
    )
    if law is None:
        return HeardLaw(ready.taps, nothing, central=False)
    paced = ready.taps.mode == 0
    return heard_law(law, ready.model.coupling, ready.initial_rate, paced, ready.plant.standing)


def _lines(heard: HeardLaw, law: LinkRateLaw | None, N: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Numbers of the messages from k to l, the age from which on each is used, and how many messages there are."""
    line, least = np.full((N, N), NEVER), np.zeros((N, N), dtype=np.int64)
    if heard.central and isinstance(law, StaticGain):  # one message tells the controller, for all links
        line[:] = np.arange(N)
        least[:] = law.information_delay
        return line, least, N
    for taps in (heard.control, heard.predicted):
        rows, of = np.repeat(np.arange(N), np.diff(taps.start)), taps.series % N
        youngest = np.full((N, N), np.iinfo(np.int64).max)
        np.minimum.at(youngest, (rows, of), taps.lag)
        used = youngest < np.iinfo(np.int64).max
        least = np.where(used & (line != NEVER), np.minimum(least, youngest), np.where(used, youngest, least))
        line[used] = 0
    np.fill_diagonal(line, NEVER)
    pairs = line != NEVER
    line[pairs] = np.arange(pairs.sum())
    return line, least, int(pairs.sum())


def _state(ready: LinkProblem, heard: HeardLaw, ticks: int, phase: np.ndarray, messages: int) -> MessageState:
    N, nominal, standing = ready.model.n_links, ready.initial_rate, ready.plant.standing
    slots = _power_of_2(max(heard.control.memory, heard.predicted.memory) + 4)
    tick_slots = _power_of_2((int(ready.model.delay.max(initial=0)) + 1) * ticks + 2)
    known = np.zeros((4 * N, slots))
    known[RATE * N : (RATE + 1) * N] = nominal[:, None]
    known[BACKLOG * N : (BACKLOG + 1) * N] = standing
    return MessageState(
        known=known,
        arrival=np.full((max(messages, 1), slots), NEVER),
        pipe=np.repeat(nominal[:, None], tick_slots, axis=1),
        backlog=np.full(N, standing),
        command=np.array(nominal),
        sent=nominal * (ticks - phase),  # an interval's worth when each link first acts
    )


def _power_of_2(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _streams(seed: int, run: int) -> dict[int, np.random.Generator]:
    keys = (_LOSS, _JITTER, _TOLD, _PHASE)
    return {
        key: np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(run, key)))) for key in keys
    }


def _draws(
    scenario: NetworkScenario, stream: dict[int, np.random.Generator], ticks: int, steps: int, messages: int, N: int
) -> tuple[np.ndarray, np.ndarray]:
    """By how many ticks each message is late, or NEVER, (steps, messages); whether commands arrive, (steps, N)."""
    asked = scenario.messages
    low, high = asked.jitter
    shape = steps, max(messages, 1)
    extra = np.zeros(shape, dtype=np.int64)
    if high > 0.0:
        late = low + (high - low) * stream[_JITTER].random(shape)
        extra = np.ceil(late * (ticks / scenario.interval) - 1e-9).astype(np.int64)
    if asked.loss > 0.0:
        extra[stream[_LOSS].random(shape) < asked.loss] = NEVER
    told = np.ones((steps, N), dtype=bool)
    if asked.loss > 0.0:
        told = stream[_TOLD].random((steps, N)) >= asked.loss
    return extra, told
