"""Agents without a kernel: their law against the simulator's, faults, bad input. Time and peers are made up."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest
from distributed_support import Simulated, hftrac, scenario

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.laws.link_rate.distributed_step import NEVER
from netctrl.laws.tracking.tracking import start_tracking, step_tracking, tracking_gains
from netctrl.linux.agent.controller import applied, receive, step
from netctrl.linux.agent.loop import LinkTrouble, ReadingFailed, run_agent
from netctrl.linux.agent.message import Alignment, Echo, Kind, Message, aligned, index_of, pack
from netctrl.linux.agent.metrics import AgentMetrics, Histogram
from netctrl.linux.agent.sockets import AgentSockets, Sensor
from netctrl.linux.agent.state import AgentState, Decision, Event, Reading, Trouble, plan, start
from netctrl.linux.export.agent import AgentConfig, ControlledLink, Peer, agent_configs, read_agent_config
from netctrl.linux.export.agent_law import (
    DecidedTable,
    LinkRateTable,
    TapTable,
    TrackingTable,
    link_rate_table,
    scenario_table,
)
from netctrl.linux.log import AgentLog
from netctrl.model.datasets import network_path
from netctrl.model.identified import read_model
from netctrl.model.network import read_network
from netctrl.scenario.network.policy import CreditPolicy, Messages

TAU = 0.01
TAU_US = 10_000
KEY = bytes(range(32))


def controlled(name: str, **fields: object) -> ControlledLink:
    settings = {"least_rate": 1e5, "greatest_rate": 42e6, "fallback_rate": 19e6, "burst": 3000, "limit": 30000}
    return ControlledLink(id=name, interface=name, handle="1:", **settings | fields)


def table(**arguments: object) -> LinkRateTable:
    network = read_network(network_path("testbed"))
    design = netctrl.hftrac(network, TAU, mu=0.5, **arguments)
    return link_rate_table(design, netctrl.network_model(network, TAU))


def rules(simulated: Simulated) -> LinkRateTable:
    plant = simulated.ready.plant
    return scenario_table(simulated.rates, simulated.ready.model.links, plant.capacity, plant.capacity > 0.0)


COORDINATED = table(architecture="coordinated", horizon=24)
CENTRAL = table(architecture="centralized", information_delay=2)
MYOPIC = table(architecture="myopic")
CREDIT = rules(Simulated(scenario(Messages(), CreditPolicy())))
GROUPS = {"S1": ["e1", "s13"], "S2": ["e2", "s21", "s23"]}
CONTROLLER = Peer(name="C", address="127.0.0.1", port=9009)


def configs(law: LinkRateTable, **settings: object) -> dict[str, AgentConfig]:
    places = [
        (Peer(name=name, address="127.0.0.1", port=9000 + i), [controlled(link) for link in links])
        for i, (name, links) in enumerate(GROUPS.items())
    ]
    controller = CONTROLLER if law.central else None
    return agent_configs(law, TAU, places, controller=controller, key_file="key", **settings)


class World:
    """Agents whose datagrams are there at once, or lost. Each has a clock that began at a time of its own."""

    def __init__(self, made: dict[str, AgentConfig], began_us: dict[str, int] | None = None) -> None:
        self.names = list(made)
        self.plans = {name: plan(config, KEY) for name, config in made.items()}
        self.states = {name: start(each, 100 + i) for i, (name, each) in enumerate(self.plans.items())}
        self.began = dict.fromkeys(made, 0) | (began_us or {})
        self.sent = {name: np.zeros(len(each.numbers), dtype=np.int64) for name, each in self.plans.items()}
        self.events: list[tuple[str, Event]] = []
        self.recorded: list[tuple[str, str, bytes]] = []
        self.passes: Callable[[str, str], bool] = lambda _from, _to: True

    def step(self, name: str, number: int, now_us: int, rates: Sequence[float], backlogs: Sequence[float] = ()) -> None:
        """One interval of one agent, whose links sent at `rates` in the last one and have `backlogs`, in bit/s."""
        agent = self.plans[name]
        mine_us = now_us - self.began[name]
        elapsed = max(mine_us - self.states[name].at_us, 1)
        self.sent[name] = self.sent[name] + np.rint(np.array(rates) * elapsed / 8e6).astype(np.int64)
        waiting = np.rint(np.array(backlogs or [0.0] * len(rates)) * TAU / 8.0).astype(int)
        readings = [Reading(int(a), int(b)) for a, b in zip(self.sent[name], waiting, strict=True)]
        self.states[name], decision = step(agent, self.states[name], number, mine_us, readings)
        self.do(name, decision, now_us)

    def do(self, name: str, decision: Decision, now_us: int) -> None:
        self.events += [(name, event) for event in decision.events]
        for link, rate in decision.rates:
            self.states[name] = applied(self.states[name], link, rate)
        for peer, datagram in decision.datagrams:
            to = self.plans[name].config.peers[peer].name
            self.recorded.append((name, to, datagram))
            if to in self.plans and self.passes(name, to):
                self.deliver(name, to, datagram, now_us)

    def deliver(self, name: str, to: str, datagram: bytes, now_us: int) -> None:
        peer = [each.name for each in self.plans[to].config.peers].index(name)
        heard_us = now_us - self.began[to]
        self.states[to], decision = receive(self.plans[to], self.states[to], peer, datagram, heard_us)
        self.do(to, decision, now_us)

    def idle(self, steps: range) -> None:
        """All links send at their nominal rates, and nothing waits. Agents act one after the other."""
        for number in steps:
            for i, name in enumerate(self.names):
                self.act(name, number, number * TAU_US + 100 * i)

    def act(self, name: str, number: int, now_us: int) -> None:
        law = self.plans[name].law
        numbers = list(self.plans[name].numbers)
        self.step(name, number, now_us, law.nominal[numbers] if law is not None else [0.0] * len(numbers))

    def counts(self, name: str, what: str) -> int:
        return self.states[name].counts.get(what, 0)


# --- the law, against the simulator ----------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["coordinated", "god", "credit"])
@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_agents_command_what_the_simulator_does(law: str, loss: float) -> None:
    """An agent a link, each with a clock and a phase of its own, from what the simulator measured; with the messages
    that it loses lost here too. Counters hold whole bytes, so rates agree to a byte in an interval times the gains."""
    policies = {
        "coordinated": hftrac(architecture="coordinated", horizon=24),
        "god": hftrac(architecture="god"),
        "credit": CreditPolicy(),
    }
    simulated = Simulated(scenario(Messages(asynchronous=True, loss=loss, jitter=(0.0, 1e-12)), policies[law]))
    simulated.late[simulated.late > 0] = 0
    ids, N, plan = simulated.ready.model.links, simulated.N, simulated.ready.plant
    table = rules(simulated)
    places = [
        (Peer(name=name, address="127.0.0.1", port=9000 + i), [controlled(name, least_rate=1.0, greatest_rate=1e15)])
        for i, name in enumerate(ids)
    ]
    made = agent_configs(table, TAU, places, key_file="key", dead_band=0.0)
    simulated.phase[:] = [5, 1, 6, 2, 3]  # each its own: of what is simultaneous nobody can say which was first
    tick = TAU_US // simulated.ticks
    first = {name: int(simulated.phase[i]) * tick - 3 * TAU_US * i for i, name in enumerate(ids)}
    world = World(made, first)
    lost: set[tuple[int, int]] = set()
    world.passes = lambda name, to: (ids.index(to), ids.index(name)) not in lost
    order = np.argsort(simulated.phase).tolist()

    def turn(sample: int, rates: np.ndarray, backlogs: np.ndarray) -> None:
        for i in order:
            now = sample * TAU_US + int(simulated.phase[i]) * tick
            world.step(ids[i], sample + 3 * i, now, rates[i : i + 1], backlogs[i : i + 1].tolist())

    steady = 8
    for sample in range(steady):
        turn(sample, simulated.nominal, np.full(N, simulated.backlog_setpoint))
    found, expected = [], []
    state_of_simulator = simulated.samples()
    for sample, series, commands in state_of_simulator:
        late = simulated.late[sample]
        lost.clear()
        lost.update((at, of) for at, of in np.argwhere(simulated.line >= 0) if late[simulated.line[at, of]] < 0)
        if sample > 60:
            break
        turn(steady + sample, series[0], series[1])
        found.append([world.states[name].desired[0] for name in ids])
        expected.append(np.maximum(commands, 1.0))
    assert all(world.states[name].neighbours[0].alignment.moved <= 1 for name in ids)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(np.array(found) / scale, np.array(expected) / scale, atol=3e-4)
    assert law != "credit" or (np.array(expected) < plan.capacity).mean() > 0.05  # held back often enough
    assert (world.counts(ids[0], "messages_received") > 0) and not world.counts(ids[0], "dropped_useless")


def test_a_law_without_messages_is_the_static_gain() -> None:
    """Myopic, by hand: u = f* + k b + g (f − f*)."""
    config = msgspec.structs.replace(
        configs(MYOPIC)["S1"], links=(controlled("e1", greatest_rate=1e12),), peers=(), port=0
    )
    gains = {int(series): value for link, series, _, value in MYOPIC.control.taps if link == 0}
    world = World({"S1": config})
    world.act("S1", 0, 0)
    nominal = MYOPIC.nominal[0]
    world.step("S1", 1, TAU_US, [nominal + 4e6], [2.4e6])
    requested = nominal + gains[5] * 2.4e6 + gains[0] * 4e6
    assert world.states["S1"].desired[0] == pytest.approx(requested, rel=1e-4)


# --- faults ----------------------------------------------------------------------------------------------------------


def test_a_replayed_message_changes_nothing() -> None:
    one, other = World(configs(COORDINATED)), World(configs(COORDINATED))
    for world in (one, other):
        world.idle(range(5))
        if world is other:
            for name, to, datagram in list(world.recorded):
                world.deliver(name, to, datagram, 4 * TAU_US + 500)
        world.idle(range(5, 9))
    np.testing.assert_array_equal(one.states["S1"].desired, other.states["S1"].desired)
    np.testing.assert_array_equal(one.states["S1"].memory.links.measured, other.states["S1"].memory.links.measured)
    assert other.counts("S1", "dropped_replayed") == sum(to == "S1" for _, to, _ in one.recorded[:10])
    assert one.counts("S1", "dropped_replayed") == 0


def test_a_restarted_peer_is_heard_again_and_its_old_messages_never() -> None:
    world = World(configs(COORDINATED))
    world.idle(range(6))
    old = [each for each in world.recorded if each[0] == "S2"]
    world.states["S2"] = start(world.plans["S2"], 777)
    world.began["S2"] = 6 * TAU_US
    heard = world.counts("S1", "messages_received")
    for number in range(6, 12):
        world.act("S1", number, number * TAU_US)
        world.act("S2", number - 6, number * TAU_US + 100)
    assert world.counts("S1", "messages_received") >= heard + 4
    assert world.counts("S2", "dropped_unproven") == 1  # S1's first, which answers the session before
    before = world.counts("S1", "dropped_replayed")
    for name, to, datagram in old:
        world.deliver(name, to, datagram, 11 * TAU_US + 500)
    assert world.counts("S1", "dropped_replayed") == before + len(old)
    assert world.states["S1"].neighbours[0].window.session == 777


def test_forged_messages_are_counted_and_change_nothing() -> None:
    world = World(configs(COORDINATED))
    world.idle(range(5))
    before = world.states["S1"]
    random = np.random.default_rng(0)
    real = next(datagram for name, _, datagram in world.recorded if name == "S2")
    for i in range(3000):
        forged = bytearray(real if i % 2 else random.bytes(len(real)))
        forged[-1 - i % 16] ^= 1 + i % 255
        world.deliver("S2", "S1", bytes(forged), 4 * TAU_US + 500)
    after = world.states["S1"]
    assert after._replace(counts=before.counts) == before
    assert world.counts("S1", "dropped_forged") + world.counts("S1", "dropped_malformed") == 3000


def test_what_a_peer_may_not_say_is_dropped() -> None:
    """S2 has the key, and tells of S1's links, or numbers that none has."""
    world = World(configs(COORDINATED))
    world.idle(range(4))
    first = world.states["S2"].neighbours[0].sequence + 1
    own, theirs = world.plans["S1"].numbers[0], world.plans["S2"].numbers[0]

    def say(number: int, kind: Kind, link: int, value: float) -> None:
        entries = ((link, (value, 0.0, 0.0, 0.0)),)
        message = Message(kind, 101, first + number, 4, 4 * TAU_US, Echo(100, 0, 0), entries)
        world.deliver("S2", "S1", pack(message, world.plans["S1"].routes[0], KEY), 4 * TAU_US)

    say(0, Kind.STATE, own, 1.0)
    say(1, Kind.STATE, theirs, 1e300)
    say(2, Kind.STATE, theirs, -1e17)
    say(3, Kind.COMMAND, own, 1e6)
    say(4, Kind.MEASURED, 0, 1e6)
    assert world.counts("S1", "dropped_unasked") == 5
    assert [innovations[1] <= 4 for innovations in world.states["S1"].inbox] == [True] * 3  # of S2's own message before


def test_another_design_is_not_listened_to() -> None:
    mixed = {"S1": configs(COORDINATED)["S1"], "S2": configs(table(architecture="coordinated", horizon=24))["S2"]}
    scaled = msgspec.structs.replace(mixed["S2"].law, nominal=1.01 * mixed["S2"].law.nominal)
    world = World(mixed | {"S2": msgspec.structs.replace(mixed["S2"], law=scaled)})
    world.idle(range(5))
    assert world.counts("S1", "messages_received") == 0
    assert world.counts("S1", "dropped_network") == 5


def test_a_silent_peer_is_said_to_be_gone_once_and_then_to_be_back() -> None:
    world = World(configs(COORDINATED, silence=5))
    world.idle(range(6))
    for number in range(6, 20):
        world.act("S1", number, number * TAU_US)
    world.idle(range(20, 24))
    said = [event.name for name, event in world.events if name == "S1"]
    assert said == ["peer-heard", "peer-lost", "peer-heard"]
    assert world.counts("S1", "peers_lost") == 1


def test_a_peer_that_was_never_heard_is_named_once() -> None:
    """10 s after the start; and whether its messages come, which then don't answer ours."""
    world = World(configs(COORDINATED))
    names = [peer.name for peer in world.plans["S1"].config.peers]
    world.passes = lambda _from, to: to == "S1"  # nobody hears S1
    for number in range(12_000_000 // TAU_US):
        if number == 50:
            world.act(names[0], 0, number * TAU_US)
        if number * TAU_US <= 10_000_000:
            assert not world.events
        world.act("S1", number, number * TAU_US)
    said = [dict(event.fields) for _, event in world.events if event.name == "peer-never-heard"]
    assert [fields["peer"] for fields in said] == names
    assert said[0]["why"].startswith("messages arrive but don't answer ours: ours don't reach")
    assert all(fields["why"].startswith("no message from") for fields in said[1:])
    assert {fields["seconds"] for fields in said} == {"10"}


def test_without_its_controller_a_link_sends_at_its_fallback_rate() -> None:
    world = World(configs(CENTRAL))
    world.idle(range(8))
    assert not world.states["S1"].falling_back
    np.testing.assert_allclose(world.states["S1"].desired, CENTRAL.nominal[list(world.plans["S1"].numbers)], rtol=1e-3)
    for number in range(8, 12):  # the controller is gone
        for i, name in enumerate(("S1", "S2")):
            world.act(name, number, number * TAU_US + 100 * i)
    assert world.states["S1"].falling_back
    np.testing.assert_array_equal(world.states["S1"].in_force, 19e6)
    said = [event for name, event in world.events if name == "S1"]
    assert [event.name for event in said] == ["fallback", "peer-heard", "commands-again", "fallback"]
    world.idle(range(12, 15))
    assert not world.states["S1"].falling_back
    assert [event.name for name, event in world.events if name == "S1"][-1] == "commands-again"


def test_a_lost_command_means_the_fallback_for_an_interval() -> None:
    world = World(configs(CENTRAL))
    world.idle(range(8))
    before = world.counts("S1", "fallback_steps")
    world.passes = lambda name, to: not (name == "C" and to == "S1")
    world.idle(range(8, 9))
    world.passes = lambda _from, _to: True
    world.idle(range(9, 12))
    assert world.counts("S1", "fallback_steps") == before + 1
    assert world.counts("S2", "fallback_steps") == before


def test_a_command_that_comes_after_a_later_one_is_no_use() -> None:
    world = World(configs(CENTRAL))
    world.idle(range(6))
    held: list[bytes] = []
    world.passes = lambda name, to: not (name == "C" and to == "S1")
    world.act("C", 6, 6 * TAU_US)
    held.append(world.recorded[-2][2])
    assert world.recorded[-2][:2] == ("C", "S1")
    world.passes = lambda _from, _to: True
    world.act("C", 7, 7 * TAU_US)
    world.deliver("C", "S1", held[0], 7 * TAU_US + 50)
    assert world.counts("S1", "dropped_late") == 1


def test_links_in_trouble_are_left_alone_and_the_others_go_on() -> None:
    world = World(configs(COORDINATED))
    world.idle(range(4))
    agent, state = world.plans["S2"], world.states["S2"]
    readings = [Reading(0, 0), Trouble("gone", "the interface is gone"), Reading(0, 0)]
    state, decision = step(agent, state, 4, 4 * TAU_US, readings)
    assert [event.name for event in decision.events] == ["link-lost"]
    assert dict(decision.events[0].fields)["interface"] == "s21"
    assert state.lost == (False, True, False)
    assert {link for link, _ in decision.rates} <= {0, 2}
    state, decision = step(agent, state, 5, 5 * TAU_US, readings)
    assert decision.events == ()
    assert state.counts["links_gone"] == 1
    world.states["S2"] = state
    world.do("S2", decision, 5 * TAU_US)
    row = agent.numbers[1]
    slot = 5 & world.plans["S1"].law.mask
    world.act("S1", 5, 5 * TAU_US + 50)
    arrival = world.states["S1"].memory.links.arrival[:, slot]
    assert arrival[agent.numbers[0]] != NEVER and arrival[row] == NEVER


def test_rates_that_are_no_number_or_out_of_bounds_are_held_and_counted() -> None:
    law = configs(MYOPIC)["S1"].law
    taps = law.control.taps.copy()
    taps[:, 3] = 1e308
    wild = msgspec.structs.replace(law, control=TapTable(offset=law.control.offset, taps=taps))
    config = msgspec.structs.replace(configs(MYOPIC)["S1"], law=wild)
    world = World({"S1": config})
    with np.errstate(over="ignore", invalid="ignore"):
        for number in range(6):
            world.step("S1", number, number * TAU_US, [30e6, 30e6], [1e6, 1e6])
    assert world.counts("S1", "rates_not_finite") > 0
    assert np.isfinite(world.states["S1"].memory.links.command).all()
    in_force = world.states["S1"].in_force
    assert ((in_force >= 1e5) & (in_force <= 42e6)).all()
    world = World({"S1": msgspec.structs.replace(config, law=law)})
    for number in range(3):
        world.step("S1", number, number * TAU_US, [30e6, 30e6], [1e9, 0.0])
    assert world.counts("S1", "rates_clipped") >= 2
    assert world.states["S1"].in_force[0] == 42e6


def test_a_rate_within_the_dead_band_is_not_set() -> None:
    config = msgspec.structs.replace(configs(MYOPIC)["S1"], dead_band=0.2)
    world = World({"S1": config})
    world.idle(range(1))
    changes = world.counts("S1", "rate_changes")
    nominal = MYOPIC.nominal[[0, 2]] if MYOPIC.links[2] == "s13" else MYOPIC.nominal[list(world.plans["S1"].numbers)]
    world.step("S1", 1, TAU_US, nominal, [1e5, 1e5])
    assert world.counts("S1", "rate_changes") == changes
    world.step("S1", 2, 2 * TAU_US, nominal, [1e8, 0.0])
    assert world.counts("S1", "rate_changes") == changes + 1
    assert world.states["S1"].in_force[0] == 42e6


# --- clocks ----------------------------------------------------------------------------------------------------------


def exchanged(ahead: int, there: list[int], back: list[int], steps: int = 100) -> list[tuple[int, int]]:
    """(index that was found, the true one) of messages of a peer whose clock is `ahead`; times under way cycle."""
    first = -(-(3000 + ahead) // TAU_US)  # of its intervals, 3 ms after our start or later
    arrivals = [(n * TAU_US + there[n % len(there)], n * TAU_US) for n in range(steps)]
    messages = []  # when it comes, when it was sent, number, what it answers
    for n in range(steps):
        sent = (first + n) * TAU_US - ahead
        heard = [each for each in arrivals if each[0] <= sent]
        messages.append((sent + back[n % len(back)], sent, first + n, heard[-1] if heard else None))
    mine, found = Alignment(), []
    for now, sent, number, answered in sorted(messages, key=lambda message: message[0]):
        echo_us, held_us = (0, None) if answered is None else (answered[1], sent - answered[0])
        mine = aligned(mine, TAU_US, now, sent + ahead, echo_us=echo_us, held_us=held_us)
        found.append((index_of(mine, number, now // TAU_US + 1), -(-sent // TAU_US)))
    return found


@pytest.mark.parametrize("ahead", [0, 1_234_567, -987_654_321, 10**12 + 4000])
@pytest.mark.parametrize("way", [100, 12_000, 35_000])
def test_intervals_of_a_peer_are_named_by_when_they_began(ahead: int, way: int) -> None:
    """Closed form: ceil of the true time over the interval, also where messages take longer than an interval."""
    found = exchanged(ahead, [way], [way])
    assert found[10:] == [(true, true) for _, true in found[10:]]


def test_messages_that_are_late_do_not_rename_intervals() -> None:
    found = exchanged(77_000, [200, 9000, 200, 3000], [200, 200, 14_000, 500])
    assert all(index == true for index, true in found[20:])


def test_a_clock_that_drifts_is_followed() -> None:
    """50 parts in a million: 5 ms, half of an interval, in 100 s."""
    alignment, errors = Alignment(), []
    for n in range(20_000):
        now = n * TAU_US + 400
        theirs = int(n * TAU_US * (1 + 5e-5)) + 5000
        alignment = aligned(alignment, TAU_US, now, theirs, echo_us=now - 1400, held_us=1000)
        errors.append(abs(alignment.offset_us - (theirs - now + 200)))
    assert max(errors[1:]) <= 64 * TAU_US * 5e-5 + 2


def test_nothing_is_heard_before_it_was_measured() -> None:
    assert index_of(Alignment(shift=5), 10, 12) == 12
    assert index_of(Alignment(), 10, 12) is None


class Made:
    """Time that goes when somebody waits, and links that are numbers."""

    def __init__(self, links: int, datagrams: Callable[[float], Sequence[tuple[int, bytes]]] = lambda _: ()) -> None:
        self.time, self.requested, self.slept = 0.0, 0, 0
        self.rates = [0.0] * links
        self.restored = False
        self.datagrams = datagrams
        self.fails: dict[int, Trouble] = {}
        self.text: Callable[[], str] = str
        self.jumps: dict[int, float] = {}
        self.reads = 0
        self.unread: set[int] = set()

    def now(self) -> float:
        return self.time

    def wait(self, until: float, most: int) -> Sequence[tuple[int, bytes]]:
        self.requested += 1
        found = list(self.datagrams(self.time))[:most]
        self.time = min(self.time + 1e-5, until) if found else until
        return found

    def sleep(self, until: float) -> None:
        self.slept += 1
        self.time = until

    def send(self, _peer: int, _datagram: bytes) -> bool:
        return True

    def publish(self, text: Callable[[], str]) -> None:
        self.text = text

    def read(self) -> tuple[Sequence[Reading | Trouble], Reading | None]:
        self.time += self.jumps.pop(self.reads, 1e-4)
        self.reads += 1
        if self.reads in self.unread:
            raise ReadingFailed("list queues: the kernel says No buffer space available (ENOBUFS)")
        return [Reading(0, 0) for _ in self.rates], None

    def set_rate(self, link: int, rate: float) -> float:
        if link in self.fails:
            raise LinkTrouble(self.fails[link])
        self.rates[link] = rate
        return rate

    def restore(self) -> None:
        self.restored = True


def ran(made: Made, config: AgentConfig, duration: float = 1.0) -> tuple[AgentState, AgentMetrics, list[dict]]:
    told: list[dict] = []
    log = AgentLog(lambda name, _level, **fields: told.append({"event": name, **fields}), made.now)
    outcome = run_agent(plan(config, KEY), made, made, log, duration_s=duration, session=5)
    return outcome.state, outcome.metrics, told


def alone(links: Sequence[str] = ("e1", "s13")) -> AgentConfig:
    return msgspec.structs.replace(configs(MYOPIC)["S1"], links=tuple(map(controlled, links)), peers=(), port=0)


def test_each_deadline_is_kept_and_none_shifts_the_next() -> None:
    made = Made(2)
    state, metrics, log = ran(made, alone(), 0.995)
    assert state.counts["steps"] == 100
    assert state.step == 99
    assert "missed_steps" not in state.counts
    assert metrics.lateness.quantile(1.0) <= 1e-5
    assert [line["event"] for line in log] == ["agent-started", "agent-ended"]
    assert made.restored


def test_a_clock_that_jumps_ahead_costs_the_intervals_in_between_and_no_more() -> None:
    """As after a suspension, or a step that took 10 s."""
    made = Made(2)
    made.jumps = {50: 10.0}
    state, _, _ = ran(made, alone(), 11.0)
    assert state.counts["missed_steps"] == pytest.approx(1000, abs=2)
    assert state.counts["steps"] + state.counts["missed_steps"] == state.step + 1
    assert state.step == pytest.approx(1099, abs=2)


@pytest.mark.slow
def test_a_flood_costs_a_bounded_number_of_looks_and_lines_in_the_log() -> None:
    """Forged datagrams without end under a peer's address."""
    config = configs(COORDINATED)["S1"]
    made = Made(2, lambda _: [(0, bytes(200))] * 64)
    state, metrics, log = ran(made, config, 29.995)
    steps = state.counts["steps"]
    assert steps == 3000
    assert metrics.flooded == pytest.approx(steps, abs=1)
    assert state.counts["dropped_malformed"] <= 64 * (steps + 1)
    assert made.slept == metrics.flooded
    assert [line["event"] for line in log].count("messages-dropped") <= 3


def test_a_link_whose_rate_can_no_longer_be_set_is_left_and_with_none_left_it_ends() -> None:
    made = Made(2)
    made.fails = {0: Trouble("gone", "no such device")}
    state, _, log = ran(made, alone())
    assert state.lost == (True, False)
    assert [line["event"] for line in log] == ["agent-started", "link-lost", "agent-ended"]
    assert log[1]["link"] == "e1"
    made.fails = {0: Trouble("gone", "no such device"), 1: Trouble("foreign", "htb 1: is there now")}
    made.restored = False
    state, _, log = ran(made, alone())
    assert log[-1]["why"] == "no link is left"
    assert made.restored


def test_an_interval_without_counters_is_left_out_and_many_are_the_end() -> None:
    made = Made(2)
    made.unread = {10, 11, 30}
    state, metrics, log = ran(made, alone(), 0.995)
    assert metrics.unread == 3
    assert state.counts["steps"] == 97
    assert state.counts["missed_steps"] == 3
    assert [line["event"] for line in log].count("counters-not-read") == 3
    made = Made(2)
    made.unread = set(range(10, 100))
    with pytest.raises(ReadingFailed):
        ran(made, alone(), 0.995)
    assert made.restored


def test_rates_are_put_back_whatever_ends_it() -> None:
    made = Made(1)

    def fails() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_agent(plan(alone(["e1"])), made, made, AgentLog(clock=made.now), stop=fails)
    assert made.restored


def test_a_flood_of_events_makes_few_lines_and_says_how_many_it_left_out() -> None:
    told, now = [], [0.0]
    log = AgentLog(lambda name, _level, **fields: told.append((name, fields)), lambda: now[0])
    for _ in range(1000):
        log.event("peer-lost", peer="S2")
    now[0] = 11.0
    log.event("peer-lost", peer="S2")
    log.event("peer-lost", peer="S2")
    assert len(told) == 22
    assert told[-2:] == [("peer-lost", {"peer": "S2", "left_out": 980}), ("peer-lost", {"peer": "S2"})]


# --- CONNET ----------------------------------------------------------------------------------------------------------


def tracking(**fields: object) -> AgentConfig:
    from netctrl.model.datasets import model_path

    design = netctrl.connet(read_model(model_path("connet-paper")), track="delay", limits=[(0.0, 95.0)])
    law = TrackingTable(law=design.law, reference=np.array([0.8, 0.4]), **fields)
    peers = (Peer(name="sink", address="127.0.0.1", port=9001),)
    links = (controlled("r1", share=0.5, greatest_rate=50e6), controlled("r2", share=0.5, greatest_rate=50e6))
    return AgentConfig(
        schema="netctrl.agent/1",
        name="gate",
        interval_s=design.law.interval_s,
        law=law,
        links=links,
        peers=peers,
        port=9000,
        key_file="key",
        dead_band=0.0,
    )


def test_a_tracking_law_is_the_runtimes_and_is_told_what_was_in_force() -> None:
    config = tracking(measured_by="sink")
    agent, state = plan(config, KEY), start(plan(config, KEY), 1)
    table = config.law
    gains = tracking_gains(table.law)
    mirror = start_tracking(gains)
    random, tau_us = np.random.default_rng(3), int(config.interval_s * 1e6)
    for number in range(30):
        measured = (float(random.uniform(4e-4, 2e-3)), float(random.uniform(1e-5, 1e-3)))
        held = number % 5 == 4
        state = state._replace(measured=None if held else measured)
        state, decision = step(agent, state, number, number * tau_us, [Reading(0, 0)] * 2)
        if not held:
            if number:
                mirror = mirror._replace(applied=np.array([state.in_force.sum() / 1e6]))
            mirror = step_tracking(gains, mirror, np.array(measured) * 1e3, np.array(table.reference))
        assert state.desired.sum() / 1e6 == pytest.approx(max(mirror.applied[0], 0.2), rel=1e-12)
        for link, rate in decision.rates:
            state = applied(state, link, rate)
    assert state.counts["held_steps"] == 6


# --- MPC -------------------------------------------------------------------------------------------------------------


def deciding(growth: float = 1.0) -> AgentConfig:
    """A link's rate within 1 to 100 Mbit/s, which holds .5 Mbit in its queue."""
    problem = netctrl.MpcProblem(
        plant=netctrl.link_rate_plant(TAU), measured=(1,), horizon=20, output_weight=1.0, rate_weight=1e-4,
        input_lower=0.0, input_upper=100.0,
    )  # fmt: skip
    design = netctrl.design_mpc(problem, reference=0.5, disturbances=[[1.0, 90.0]], link="up")
    line = controlled("up", least_rate=1e6 * growth, greatest_rate=1e8 * growth, fallback_rate=1e8 * growth)
    table = DecidedTable(law=design.law, growth=growth)
    return AgentConfig(schema="netctrl.agent/1", name="gate", interval_s=TAU, law=table, links=(line,), dead_band=0.0)


@pytest.mark.parametrize("growth", [1.0, 1.25])
def test_an_mpc_law_holds_a_queue_whose_frames_are_longer(growth: float) -> None:
    """The queue counts frames, the law what it carries: .5 Mbit are 62.5 kB of it."""
    config = deciding(growth)
    agent = plan(config)
    state, sent, backlog, rate = start(agent, 1), 0.0, 0.0, 1e8 * growth
    for number in range(200):
        reading = Reading(round(sent), round(backlog))
        state, decision = step(agent, state, number, number * TAU_US, [reading])
        for link, value in decision.rates:
            state, rate = applied(state, link, value), value
        arrives = (30e6 if number < 100 else 60e6) * growth * TAU / 8.0
        gone = min(backlog + arrives, rate * TAU / 8.0)
        backlog, sent = backlog + arrives - gone, sent + gone
        if number in (99, 199):
            assert backlog == pytest.approx(62.5e3 * growth, rel=1e-3)
    assert state.counts["held_steps"] == 1


def test_an_mpc_law_holds_its_rate_without_readings_and_is_read_as_it_was_written(tmp_path) -> None:
    config = deciding()
    config.save(tmp_path / "gate")
    assert read_agent_config(tmp_path / "gate").to_json() == config.to_json()
    agent = plan(config)
    state, _ = step(agent, start(agent, 1), 0, 0, [Reading(0, 0)])
    state, _ = step(agent, state, 1, TAU_US, [Reading(40_000, 60_000)])
    held = state.desired
    state, decision = step(agent, state, 2, 2 * TAU_US, [Trouble("gone", "no queue")])
    assert np.array_equal(state.desired, held)
    assert decision.rates == ()
    with pytest.raises(InvalidValue, match="the law's link, up, alone"):
        msgspec.structs.replace(config, links=(controlled("other"),))


# --- files and bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law", [COORDINATED, CENTRAL, MYOPIC, CREDIT], ids=["coordinated", "central", "myopic", "credit"]
)
def test_a_config_is_read_as_it_was_written(law: LinkRateTable, tmp_path) -> None:
    for name, config in configs(law).items():
        config.save(tmp_path / name)
        back = read_agent_config(tmp_path / name)
        assert back.to_json() == config.to_json()
        np.testing.assert_array_equal(back.law.control.taps, config.law.control.taps)


def test_a_tracking_config_is_read_as_it_was_written(tmp_path) -> None:
    config = tracking(measured_by="sink")
    config.save(tmp_path / "gate")
    assert read_agent_config(tmp_path / "gate").to_json() == config.to_json()


def test_a_design_for_another_network_is_refused_and_names_the_links() -> None:
    groups = [(Peer(name="S1", address="10.0.0.1", port=1), [controlled("e1"), controlled("x9")])]
    with pytest.raises(InvalidValue, match=r"doesn't have: x9; no agent for the Design's links e2, s13, s21, s23"):
        agent_configs(COORDINATED, TAU, groups)
    other = read_network(network_path("merge"))
    design = netctrl.hftrac(read_network(network_path("testbed")), TAU, mu=0.5)
    with pytest.raises(InvalidValue, match="model: got 'a network that lacks e1, e2, s13, s21, s23'"):
        link_rate_table(design, netctrl.network_model(other, TAU))


def test_a_link_at_two_agents_is_refused() -> None:
    groups = [(Peer(name=f"S{i}", address="10.0.0.1", port=1 + i), [controlled("e1")]) for i in range(2)]
    with pytest.raises(InvalidValue, match="places: got 'e1 more than once'"):
        agent_configs(COORDINATED, TAU, groups)


def test_a_central_law_takes_a_controller_and_others_none() -> None:
    places = [(Peer(name="S1", address="10.0.0.1", port=1), [controlled(name) for name in COORDINATED.links])]
    with pytest.raises(InvalidValue, match="controller: got None, takes a Peer"):
        agent_configs(CENTRAL, TAU, places)
    with pytest.raises(InvalidValue, match="controller: got 'C', takes no value"):
        agent_configs(COORDINATED, TAU, places, controller=CONTROLLER)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"port": 0}, "port: got 0, takes a port from 1 to 65535"),
        ({"key_file": None}, "key_file: got None"),
        ({"links": ()}, "links: got 0, takes at least one link"),
        ({"dead_band": 1.0}, "dead_band: got 1.0"),
        ({"interval_s": -1.0}, "interval_s: got -1.0"),
        ({"address": "localhost"}, "address: got 'localhost', takes an IPv4 or IPv6 address"),
        ({"links": (controlled("e1"), controlled("e1"))}, "links: got 'e1 twice'"),
        ({"links": (controlled("nowhere"),)}, "links that the Design doesn't have: nowhere"),
        ({"smoothing": 0.0}, "smoothing: got 0.0"),
    ],
)
def test_a_config_that_can_not_be_used_says_why(change: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        msgspec.structs.replace(configs(COORDINATED)["S1"], **change)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"interface": "a/b"}, "interface: got 'a/b'"),
        ({"interface": "sixteen-letters!"}, "interface: got"),
        ({"handle": "0:"}, "handle: got '0:'"),
        ({"handle": "1"}, "handle: got '1'"),
        ({"parent": "1:"}, "parent: got '1:'"),
        ({"fallback_rate": 1e9}, "fallback_rate: got 1000000000.0, takes a rate from least_rate"),
        ({"share": 0.0}, "share: got 0.0"),
    ],
)
def test_a_link_that_can_not_be_used_says_why(change: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        msgspec.structs.replace(controlled("e1"), **change)


def test_a_file_that_is_none_says_what_is_wrong(tmp_path) -> None:
    path = tmp_path / "agent.json"
    content = json.loads(configs(COORDINATED)["S1"].to_json())
    for change, said in (
        ({"schema": "netctrl.agent/9"}, "schema"),
        ({"surprise": 1}, "surprise"),
        ({"law": content["law"] | {"control": {"offset": [1.0], "taps": []}}}, "control.offset"),
        ({"law": content["law"] | {"control": content["law"]["control"] | {"taps": [[9, 0, 0, 1.0]]}}}, "taps"),
        ({"interval_s": "fast"}, "interval_s"),
    ):
        path.write_text(json.dumps(content | change))
        with pytest.raises(FileError, match=said):
            read_agent_config(path)
    path.write_text("{")
    with pytest.raises(FileError, match="not JSON"):
        read_agent_config(path)


# --- metrics ---------------------------------------------------------------------------------------------------------


def test_metrics_are_lines_that_prometheus_reads() -> None:
    """Its grammar, by hand: each sample's family is declared before, and no sample comes twice."""
    import re

    world = World(configs(COORDINATED))
    world.idle(range(5))
    world.deliver("S2", "S1", b"x" * 200, 5 * TAU_US)
    metrics = AgentMetrics()
    metrics.lateness.add(1e-4)
    metrics.duration.add(3.0)
    text = metrics.text(world.plans["S1"], world.states["S1"])
    assert text.endswith("\n")
    declared: set[str] = set()
    samples = []
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP \w+ .+|TYPE \w+ (counter|gauge|histogram))", line)
            declared.add(line.split()[2])
            continue
        found = re.fullmatch(r'(\w+)(\{\w+="[^"\\\n]*"(,\w+="[^"\\\n]*")*\})? (\S+)', line)
        assert found, line
        float(found[4])
        assert re.sub("_(bucket|sum|count)$", "", found[1]) in declared or found[1] in declared
        samples.append(line.rpartition(" ")[0])
    assert len(set(samples)) == len(samples)
    assert 'netctrl_agent_dropped_total{reason="malformed"} 1' in text
    assert 'netctrl_peer_heard{peer="S2"} 1' in text
    assert 'netctrl_agent_lateness_seconds_bucket{le="0.0001"} 1' in text
    assert 'netctrl_agent_step_seconds_bucket{le="+Inf"} 1' in text


def test_a_histogram_counts_all_and_bounds_its_quantiles() -> None:
    histogram, values = Histogram(), np.random.default_rng(0).exponential(1e-3, 5000)
    for value in values:
        histogram.add(float(value))
    for share in (0.1, 0.5, 0.99):
        true, bound = np.quantile(values, share), histogram.quantile(share)
        assert true <= bound <= 5.1 * true
    assert sum(histogram.counts) == 5000


# --- a sensor --------------------------------------------------------------------------------------------------------


def test_a_sensor_is_heard_once_it_has_answered() -> None:
    """Over sockets of this machine, in steps that the test makes."""
    ports = []
    for _ in range(2):
        with socket.socket(type=socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            ports.append(probe.getsockname()[1])
    peers = (Peer(name="sink", address="127.0.0.1", port=ports[1]),)
    config = msgspec.structs.replace(tracking(measured_by="sink"), port=ports[0], peers=peers)
    agent, state = plan(config, KEY), start(plan(config, KEY), 7)
    here, there = (("127.0.0.1", port) for port in reversed(ports))
    with AgentSockets(config) as sockets, Sensor("sink", "gate", here, there, KEY) as sensor:
        for number in range(4):
            assert sensor.report([0.001 * (number + 1), 0.0004])
            for peer, datagram in sockets.wait(sockets.now() + 20.0, 64):
                state, _ = receive(agent, state, peer, datagram, number * 10**6 + 5)
            measured = state.measured
            assert measured == (None if number == 0 else (0.001 * (number + 1), 0.0004))
            state, decision = step(agent, state, number, number * 10**6 + 10, [Reading(0, 0)] * 2)
            assert all(sockets.send(peer, datagram) for peer, datagram in decision.datagrams)
        with pytest.raises(InvalidValue, match="send no report without a measurement"):
            sensor.report([float("nan"), 0.0])
    assert state.counts["held_steps"] == 1
    assert state.counts["messages_received"] == 3


def test_measurements_of_another_number_of_outputs_are_dropped() -> None:
    config = tracking(measured_by="sink")
    agent, state = plan(config, KEY), start(plan(config, KEY), 7)
    entries = ((0, (1e-3, 0.0, 0.0, 0.0)),)
    message = Message(Kind.MEASURED, 3, 1, 1, 10, Echo(7, 0, 0), entries)
    state, _ = receive(agent, state, 0, pack(message, agent.routes[0], KEY), 10)
    assert state.measured is None
    assert state.counts["dropped_malformed"] == 1
