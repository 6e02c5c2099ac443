"""Runs of a network whose controllers act unsynchronised and receive messages late, or never."""

from __future__ import annotations

import numpy as np

from netctrl.laws.link_rate.credit import Prices
from netctrl.laws.link_rate.distributed import DistributedLaw, distributed_law
from netctrl.laws.link_rate.distributed_step import NEVER, LinkRates, law_by_messages, link_memory
from netctrl.laws.link_rate.fir import LINEAR, Feeds, FirLaw, no_feeds, packed
from netctrl.model.law import LinkRateLaw, StaticGain
from netctrl.scenario.network.policy import messages_of
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.demand_fluid import demand_contents, demand_fluid, demand_sums, demands_of_run
from netctrl.sim.network.demand_kernel import DemandRoutes
from netctrl.sim.network.demands import DemandSource
from netctrl.sim.network.kernel import LinkPlant
from netctrl.sim.network.message_kernel import MessageState, advance_messages
from netctrl.sim.network.problem import LinkProblem, LinkRuns, power_of_2

_TICKS = 8
"""An interval, where links act out of step."""
_CHUNK = 1000  # intervals
_LOSS, _JITTER, _RECEIVED, _PHASE = 1, 2, 3, 4  # streams of a run, beside that of its traffic


def run_with_messages(
    scenario: Scenario,
    ready: LinkProblem,
    law: LinkRateLaw | None,
    source: DemandSource,
    numbers: range,
    watch: bool,
    routes: DemandRoutes | None = None,
) -> LinkRuns:
    """Run the runs of these numbers, one after the other.

    Loss, lateness and moments have random streams of their own in each run: the traffic is the same as without. With
    `routes`, of ticks, demands are kept apart.
    """
    N, steps = ready.model.n_links, scenario.steps
    made = link_rates if len(ready.prices.link) else rates_by_messages  # the other kernel runs sums in time
    rates = made(scenario, ready, law)
    S, messages = rates.ticks, rates.messages
    streams = [_streams(scenario.seed, run) for run in numbers]
    phases = [stream[_PHASE].integers(0, S, N) for stream in streams]
    states = [message_state(ready, rates, phase) for phase in phases]
    fluid = None if routes is None else demand_fluid(ready, routes, len(numbers), S)
    sums, offered = np.zeros((len(numbers), 6, N)), np.zeros((len(numbers), 1))
    watched, unwatched = np.zeros((3, N, steps if watch else 0)), np.zeros((3, N, 0))
    before, held = np.zeros((N, len(numbers))), None
    step = 0
    while step < steps:
        end = scenario.warmup_steps if step < scenario.warmup_steps else steps
        demand = source.draw(min(_CHUNK, end - step))
        if step == scenario.warmup_steps:
            before = np.array([state.backlog for state in states]).T
            held = None if fluid is None else demand_contents(fluid, step, S)
        for r, (state, stream) in enumerate(zip(states, streams, strict=True)):
            extra, received = _draws(scenario, stream, S, len(demand), messages, N)
            advance_messages(
                ready.plant,
                rates,
                ready.taps.mode,
                state,
                np.ascontiguousarray(demand[:, :, r]),
                extra,
                received,
                step,
                scenario.warmup_steps,
                sums[r],
                offered[r],
                watched if r == 0 else unwatched,
                None if fluid is None else demands_of_run(fluid, r),
            )
        step += len(demand)
    growth = np.array([state.backlog for state in states]).T - before
    demands = None if fluid is None else demand_sums(fluid, held, steps, S)
    return LinkRuns(sums.transpose(1, 2, 0), growth, offered[:, 0], watched, demands)


def ticks(scenario: Scenario) -> int:
    """Ticks of an interval; each link acts at one of them."""
    return _TICKS if messages_of(scenario.control).asynchronous else 1


def message_table(scenario: Scenario, run: int, messages: int, N: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws of a run for its messages: phases, (N,), and the run's delays and arriving commands.

    The draws of `run_with_messages`: by how many ticks each message is late, −1 if lost, (steps, messages or 1);
    whether each link's command arrives, (steps, N).
    """
    stream, S = _streams(scenario.seed, run), ticks(scenario)
    phase = stream[_PHASE].integers(0, S, N)
    return phase, *_draws(scenario, stream, S, scenario.steps, messages, N)


def message_lines(
    heard: DistributedLaw,
    law: LinkRateLaw | None,
    N: int,
    more: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Numbers of the messages from k to l, the age from which on each is used, and how many messages there are.

    `more` are links, others of which they hear too, and from which age on.
    """
    line, least = np.full((N, N), NEVER), np.zeros((N, N), dtype=np.int64)
    if heard.central and isinstance(law, StaticGain):  # one message informs the controller, for all links
        line[:] = np.arange(N)
        least[:] = law.information_delay
        return line, least, N
    laws = (heard.control, heard.predicted)
    at = np.concatenate([np.repeat(np.arange(N), np.diff(taps.start)) for taps in laws])
    of = np.concatenate([taps.series % N for taps in laws])
    unused = np.iinfo(np.int64).max
    least[:] = unused
    np.minimum.at(least, (at, of), np.concatenate([taps.lag for taps in laws]))
    if more is not None:
        np.minimum.at(least, more[:2], more[2])
    line[least != unused] = 0
    np.fill_diagonal(line, NEVER)
    pairs = line != NEVER
    line[pairs] = np.arange(pairs.sum())
    return line, least, int(pairs.sum())


def link_rates(scenario: Scenario, ready: LinkProblem, law: LinkRateLaw | None) -> LinkRates:
    """Law of a network with a scenario's messages."""
    if messages_of(scenario.control).ideal:
        return rates_in_time(ready)
    return rates_by_messages(scenario, ready, law)


def rates_in_time(ready: LinkProblem) -> LinkRates:
    """Law of a network whose links act simultaneously and receive all messages in time."""
    N, plant, control = ready.model.n_links, ready.plant, ready.taps
    alone = control.alone or not control.innovations
    feeds = no_feeds(N) if alone and not len(ready.prices.link) else _feeds(plant)
    nobody = np.zeros((0, 0), dtype=np.int64)
    return LinkRates(
        nominal=ready.initial_rate,
        setpoint=plant.backlog_setpoint,
        control=control.sums,
        predicted=_nothing(N).sums,
        foresees=control.innovations,
        expected=control.expected,
        feeds=feeds,
        central=False,
        ticks=1,
        messages=0,
        line=nobody,
        least=nobody,
        mask=power_of_2(
            max(control.memory, int(feeds.delay.max(initial=0)), 2 * int(ready.prices.delay.max(initial=0))) + 2
        )
        - 1,
        prices=ready.prices,
    )


def rates_by_messages(scenario: Scenario, ready: LinkProblem, law: LinkRateLaw | None) -> LinkRates:
    """Law of a network whose links may act unsynchronised and communicate by messages."""
    N, heard = ready.model.n_links, distributed_problem(ready, law)
    priced, feeds = len(ready.prices.link) > 0, _feeds(ready.plant)
    line, least, messages = message_lines(heard, law, N, _priced_lines(ready.prices, feeds) if priced else None)
    return law_by_messages(
        ready.initial_rate,
        ready.plant.backlog_setpoint,
        heard.control.sums,
        heard.predicted.sums,
        feeds if priced else no_feeds(N),
        ready.prices,
        line,
        least,
        messages=messages,
        central=heard.central,
        ticks=ticks(scenario),
    )


def distributed_problem(ready: LinkProblem, law: LinkRateLaw | None) -> DistributedLaw:
    """Distributed law of the policy; only HFTraC's laws use messages."""
    if law is None:
        return DistributedLaw(ready.taps, _nothing(ready.model.n_links), central=False)
    paced = ready.taps.mode == LINEAR
    return distributed_law(law, ready.model.coupling, ready.initial_rate, paced, ready.plant.backlog_setpoint)


def _nothing(N: int) -> FirLaw:
    return packed([], np.zeros(N), np.ones(N, dtype=bool))


def _feeds(plant: LinkPlant) -> Feeds:
    return Feeds(plant.coupled_start, plant.coupled_link, plant.coupled_delay, plant.coupled_share)


def _priced_lines(prices: Prices, feeds: Feeds) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Links that hear, those of which they do, and from which age on: the next ones, and those that feed them."""
    N = len(prices.delay)
    ahead, behind = np.repeat(np.arange(N), np.diff(prices.start)), np.repeat(np.arange(N), np.diff(feeds.start))
    at, of = np.concatenate([ahead, behind]), np.concatenate([prices.link, feeds.link])
    return at, of, np.concatenate([prices.delay[ahead], feeds.delay])


def message_state(ready: LinkProblem, law: LinkRates, phase: np.ndarray) -> MessageState:
    """All links at the rates around which they are controlled, with the backlog setpoint."""
    tick_slots = power_of_2((int(ready.model.delay.max(initial=0)) + 1) * law.ticks + 2)
    return MessageState(
        memory=link_memory(law, phase),
        pipe=np.repeat(law.nominal[:, None], tick_slots, axis=1),
        backlog=np.full(len(law.nominal), law.setpoint),
        sent=law.nominal * (law.ticks - phase),  # an interval's worth when each link first acts
    )


def _streams(seed: int, run: int) -> dict[int, np.random.Generator]:
    keys = (_LOSS, _JITTER, _RECEIVED, _PHASE)
    return {
        key: np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(run, key)))) for key in keys
    }


def _draws(
    scenario: Scenario, stream: dict[int, np.random.Generator], ticks: int, steps: int, messages: int, N: int
) -> tuple[np.ndarray, np.ndarray]:
    """By how many ticks each message is late, or NEVER, (steps, messages); whether commands arrive, (steps, N)."""
    requested = messages_of(scenario.control)
    low, high = requested.jitter
    shape = steps, max(messages, 1)
    extra = np.zeros(shape, dtype=np.int64)
    if high > 0.0:
        late = low + (high - low) * stream[_JITTER].random(shape)
        extra = np.ceil(late * (ticks / scenario.interval) - 1e-9).astype(np.int64)
    if requested.loss > 0.0:
        extra[stream[_LOSS].random(shape) < requested.loss] = NEVER
    received = np.ones((steps, N), dtype=bool)
    if requested.loss > 0.0:
        received = stream[_RECEIVED].random((steps, N)) >= requested.loss
    return extra, received
