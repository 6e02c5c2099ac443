"""Arrays of a scenario for the kernel: packets and seconds, classes sorted by group, events by step."""

from __future__ import annotations

from itertools import accumulate
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.units import packets_per_second
from netctrl.laws.aqm.fast_arc import FastArcQueue
from netctrl.laws.aqm.fluid import PARAMETERS, STATES, epoch_of, law_of
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.rate.records import FastSender, sender_name
from netctrl.laws.tcp.rows import SCALABLE
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow, FlowDraw
from netctrl.scenario.tcp_aqm.lacks import refuse_packet_only
from netctrl.scenario.tcp_aqm.offers import Web
from netctrl.sim.fluid.kernel import FLOWS, LINK_CAPACITY, LINK_DELAY, Plant, Record, State
from netctrl.sim.fluid.lacks import ACK_BYTES, FLUID_SENDERS, overflow_lack, sender_lack
from netctrl.sim.fluid.queues import longer_arrivals, pairs
from netctrl.sim.fluid.traffic import draw_flows
from netctrl.sim.fluid.windows import first_memory

_STEPS_PER_RTT = 10
_FINEST = 64  # largest refinement of the step to make epochs whole numbers of steps
_TRIES = 100_000
_MAX_STEPS = 1e9
_MAX_HISTORY = 2**32  # bytes


class Problem(NamedTuple):
    """Arguments of the kernel, and the number of steps."""

    plant: Plant
    state: State
    record: Record
    steps: int


def choose_step(scenario: Scenario) -> float:
    """The fluid's step [s]: at most a tenth of the shortest round trip, and a divisor of the sample and all epochs.

    Where no such step exists, laws act at the first step after their time.

    Raises
    ------
    InvalidValue
        scenario.step is too long, or doesn't divide scenario.interval.
    """
    shortest = _shortest_rtt(scenario)
    if scenario.step is not None:
        count = scenario.interval / scenario.step
        if scenario.step > 0.5 * shortest or abs(count - round(count)) > 1e-6 * count:
            takes = f"at most {0.5 * shortest:g} s (half the shortest RTT), and a divisor of sample"
            raise InvalidValue("step", scenario.step, f"{takes} ({scenario.interval:g} s)")
        return _affordable(scenario, round(count))
    epochs = [epoch for link in scenario.links if (epoch := _epoch(link)) is not None]
    least = ceil(scenario.interval / min(shortest / _STEPS_PER_RTT, *epochs, inf) - 1e-9)
    _affordable(scenario, least)
    for count in range(least, min(_FINEST * least, least + _TRIES)):
        per_epoch = [epoch * count / scenario.interval for epoch in epochs]
        if all(abs(steps - round(steps)) < 1e-9 * steps for steps in per_epoch):
            return _affordable(scenario, count)
    return scenario.interval / least


def _epoch(link: Link) -> float | None:
    return link.queue.update if isinstance(link.queue, DualPi2Queue) else epoch_of(link.queue)


def _shortest_rtt(scenario: Scenario) -> float:
    """The shortest round-trip propagation delay that any flow ever has [s]."""
    least = {link.id: link.delay for link in scenario.links}
    for change in scenario.changes:
        if change.delay is not None:
            least[change.link] = min(least[change.link], change.delay)
    saved = {link.id: link.delay - least[link.id] for link in scenario.links}
    return min(group.rtt[0] - sum(saved[name] for name in group.both_ways) for group in scenario.flows)


def _affordable(scenario: Scenario, steps_per_sample: int) -> float:
    """The step, if a run ends within about a day."""
    if scenario.duration / scenario.interval * steps_per_sample > _MAX_STEPS:
        takes = f"at most {_MAX_STEPS:.0e} steps in all: a shorter duration, or longer round trips and epochs"
        raise InvalidValue("step", scenario.interval / steps_per_sample, takes)
    return scenario.interval / steps_per_sample


def problem(scenario: Scenario, draws: tuple[FlowDraw, ...] | None = None) -> Problem:
    """The kernel's arrays for a scenario.

    Raises
    ------
    InvalidValue
        A scenario that the fluid doesn't support: a queue without a law, FAST flows over a queue without a price, link
        rates, few windows that overflow a drop-tail queue.
    """
    refuse_packet_only(scenario, DualPi2Queue)
    found = overflow_lack(scenario)
    if found is not None:
        raise InvalidValue(found[0], found[1], 'a feature of this engine; "packet" supports it')
    _check_senders(scenario)
    _check_fast(scenario)
    draws = draw_flows(scenario) if draws is None else draws
    step = choose_step(scenario)
    tcp = [_sorted(draw, group) for draw, group in zip(draws, scenario.flows, strict=True)]
    sizes = [len(draw.rtt_s) for draw in tcp]
    first_class = _offsets(sizes)
    laws = [_law(link, scenario.packet_size) for link in (*scenario.links, *_dual(scenario))]
    index = {link.id: row for row, link in enumerate(scenario.links)}
    second = _second_rows(scenario)
    scalable = [group.ecn and _sender(group) in SCALABLE for group in scenario.flows]
    hops, first_hop = _paths(
        [
            [second.get(name, index[name]) if low else index[name] for name in group.path]
            for group, low in zip(scenario.flows, scalable, strict=True)
        ]
    )
    ack_hops, first_ack_hop = _paths([[index[name] for name in group.ack_path] for group in scenario.flows])
    web = [isinstance(group.offers, Web) for group in scenario.flows]
    events = [*_flow_events(tcp, first_class, step), *_link_events(scenario, index, second, step)]
    events.sort(key=lambda event: event[0])  # stable: changes within one step keep their order
    columns = list(zip(*events, strict=True)) or [(), (), (), ()]
    plant = Plant(
        step=step,
        rtt=np.concatenate([draw.rtt_s for draw in tcp]),
        fast=np.array([_fast(group, scenario.packet_size) for group in scenario.flows]),
        first_class=first_class,
        first_hop=first_hop,
        hops=hops,
        first_ack_hop=first_ack_hop,
        ack_hops=ack_hops,
        ack_size=ACK_BYTES / scenario.packet_size,
        back=np.array([0.0 if group.ack_path else 1.0 for group in scenario.flows]),
        ecn=np.array([group.ecn for group in scenario.flows]),
        sender=np.array([FLUID_SENDERS.index(_sender(group)) for group in scenario.flows]),
        scalable=np.array(scalable),
        injection=np.where(web, np.cumsum(web) - 1, -1),
        law=np.array([kind for kind, _ in laws]),
        parameters=np.array([parameters for _, parameters in laws]),
        buffer=np.array([_packets(link.buffer, scenario.packet_size) for link in (*scenario.links, *_dual(scenario))]),
        event_step=np.array(columns[0], dtype=np.int64),
        event_kind=np.array(columns[1], dtype=np.int64),
        event_target=np.array(columns[2], dtype=np.int64),
        event_value=np.array(columns[3], dtype=float),
    )
    every = round(scenario.interval / step)
    samples = int(scenario.duration / scenario.interval * (1.0 + 1e-12))
    return Problem(plant, _start(scenario, plant), _record(scenario, plant, every, samples), every * samples)


def longer_history(state: State, step: int) -> State:
    """The same state with twice as many slots of history, before `step`.

    Raises
    ------
    InvalidValue
        The history would take more than 4 GiB, as an unbounded queue has grown for too long.
    """
    ring = state.signal.shape[1]
    if 2 * state.rate.nbytes > _MAX_HISTORY:
        raise InvalidValue(
            "buffer", "too much", "a bounded buffer: the queueing delay has grown beyond all round trips"
        )
    past = np.arange(max(step - ring, 0), step)
    old, new = past & (ring - 1), past & (2 * ring - 1)
    rate = np.zeros((2 * ring, state.rate.shape[1]))
    rate[new] = state.rate[old]
    signal, price = np.zeros((2, state.signal.shape[0], 2 * ring))
    signal[:, new], price[:, new] = state.signal[:, old], state.price[:, old]
    return state._replace(rate=rate, signal=signal, price=price, pairs=longer_arrivals(state.pairs, old, new))


def _check_senders(scenario: Scenario) -> None:
    for group in scenario.flows:
        lack = sender_lack(group)
        if lack is not None:
            raise InvalidValue(f"flows.{group.id}.sender", sender_name(group.sender), lack)


def _check_fast(scenario: Scenario) -> None:
    priced = {link.id for link in scenario.links if isinstance(link.queue, FastArcQueue)}
    for group in scenario.flows:
        if isinstance(group.sender, FastSender) and not set(group.path) <= priced:
            other = next(name for name in group.path if name not in priced)
            raise InvalidValue(f"flows.{group.id}.path", other, 'links whose queue is of kind "fast-arc"')


def _law(link: Link, packet_size: float) -> tuple[int, np.ndarray]:
    if isinstance(link.queue, DualPi2Queue):
        return 0, np.zeros(PARAMETERS)
    try:
        return law_of(link.queue, packet_size, link.buffer)
    except InvalidValue as error:
        raise InvalidValue(f"links.{link.id}.{error.argument}", error.got, error.takes) from None


def _sorted(draw: FlowDraw, group: Flow) -> FlowDraw:
    """The classes of a group by round-trip time; a web group has none."""
    order = np.argsort(draw.rtt_s, kind="stable")[: 0 if isinstance(group.offers, Web) else None]
    return FlowDraw(draw.rtt_s[order], draw.start_s[order], draw.stop_s[order], draw.flows[order])


def _offsets(sizes: list[int]) -> np.ndarray:
    return np.array([0, *accumulate(sizes)], dtype=np.int64)


def _second_rows(scenario: Scenario) -> dict[str, int]:
    """Rows of L queues, by the links' names."""
    return {link.id: len(scenario.links) + j for j, link in enumerate(_dual(scenario))}


def _dual(scenario: Scenario) -> list[Link]:
    return [link for link in scenario.links if isinstance(link.queue, DualPi2Queue)]


def _sender(group: Flow) -> str:
    name = sender_name(group.sender)
    return name if name in FLUID_SENDERS else "reno"


def _paths(paths: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    hops = np.array([row for path in paths for row in path], dtype=np.int64)
    return hops, _offsets([len(path) for path in paths])


def _packets(size: float | None, packet_size: float) -> float:
    return inf if size is None else size / packet_size


def _fast(group: Flow, packet_size: float) -> tuple[float, float, float]:
    if not isinstance(group.sender, FastSender):
        return 0.0, 0.0, 0.0
    return 1.0, packets_per_second(group.sender.max_rate, packet_size), group.sender.gain


def _flow_events(draws: list[FlowDraw], first_class: np.ndarray, step: float) -> list[tuple[int, int, int, float]]:
    """Starts and stops, as (step, kind, class, flows)."""
    events = []
    for draw, first in zip(draws, first_class, strict=False):
        for i, (start, stop, flows) in enumerate(zip(draw.start_s, draw.stop_s, draw.flows, strict=True)):
            events.append((round(start / step), FLOWS, int(first) + i, float(flows)))
            if stop < inf:
                events.append((round(stop / step), FLOWS, int(first) + i, 0.0))
    return events


def _link_events(
    scenario: Scenario, index: dict[str, int], second: dict[str, int], step: float
) -> list[tuple[int, int, int, float]]:
    events = []
    for change in sorted(scenario.changes, key=lambda change: change.at):
        row, at = index[change.link], round(change.at / step)
        if change.capacity is not None:
            events.append((at, LINK_CAPACITY, row, packets_per_second(change.capacity, scenario.packet_size)))
        if change.delay is not None:
            rows = [row, second[change.link]] if change.link in second else [row]
            events += [(at, LINK_DELAY, each, change.delay - scenario.links[row].delay) for each in rows]
    return events


def _start(scenario: Scenario, plant: Plant) -> State:
    n, G, L = len(plant.rtt), len(scenario.flows), len(plant.law)
    longest = max((float(rtt) for rtt in plant.rtt), default=0.0)
    ring = 2 ** ceil(np.log2(2.0 * longest / plant.step + 4.0))
    if ring * (n + 2 * G) * 8 > _MAX_HISTORY:
        takes = "round-trip times whose history fits into 4 GiB: shorter ones, fewer flows, or classes"
        raise InvalidValue("rtt", longest, takes)
    capacity = np.array(
        [packets_per_second(link.capacity, scenario.packet_size) for link in (*scenario.links, *_dual(scenario))]
    )
    window = float(scenario.initial_window)
    kinds = np.repeat(plant.sender, np.diff(plant.first_class))
    memory = [first_memory(FLUID_SENDERS[kind], window, float(rtt)) for kind, rtt in zip(kinds, plant.rtt, strict=True)]
    return State(
        window=np.full(n, window),
        memory=np.array(memory).reshape(n, 2).T.copy(),
        flows=np.zeros(n),
        rate=np.zeros((ring, n)),
        signal=np.zeros((G, ring)),
        price=np.zeros((G, ring)),
        backlog=np.zeros(L),
        rise=np.zeros(L),
        capacity=capacity,
        service=capacity.copy(),
        delay=np.zeros(L),
        law=np.zeros((L, STATES)),
        enqueued=np.zeros(L),
        event=np.zeros(1, dtype=np.int64),
        pairs=pairs([link.queue for link in scenario.links], ring),
    )


def _record(scenario: Scenario, plant: Plant, every: int, samples: int) -> Record:
    G, L = len(scenario.flows), len(plant.law)
    return Record(every, np.zeros((4, L)), np.zeros(G), np.zeros((6, L, samples)), np.zeros((3, G, samples)))
