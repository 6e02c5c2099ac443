"""The simulator of messages, an interval at a time: what controllers by themselves are held against."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

import netctrl
from netctrl.laws.link_rate.distributed_step import NEVER
from netctrl.model.datasets import network_path
from netctrl.model.network import Demand, Link, Network, read_network
from netctrl.scenario.builders import routed
from netctrl.scenario.network.policy import CreditPolicy, HftracPolicy, Messages
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.demands import DemandSource
from netctrl.sim.network.message_kernel import advance_messages
from netctrl.sim.network.messages import message_state, message_table, rates_by_messages
from netctrl.sim.network.problem import link_problem

TAU = 0.01


def hftrac(**policy: object) -> HftracPolicy:
    return HftracPolicy(mu=0.5, rate_scale=1.02, **policy)


def random_network(seed: int, hosts: bool) -> Network:
    """Any tree with chords, of links, buffers, delays and demands in any proportion; with the demands' own links."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 8))
    ends = {tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(n // 2)}
    ends |= {tuple(sorted((i, int(rng.integers(0, i))))) for i in range(1, n)}
    links = []
    for a, b in sorted(ends):
        same = {
            "capacity": rng.choice([20e6, 50e6, 100e6]),
            "buffer": rng.uniform(10e3, 200e3),
            "delay": rng.integers(4) * TAU,
        }
        links += [Link(id=f"{x}{y}", source=f"n{x}", target=f"n{y}", **same) for x, y in ((a, b), (b, a))]
    demands = []
    for i in range(int(rng.integers(3, 3 * n))):
        (a, b), mean = rng.choice(n, 2, replace=False), rng.uniform(1e6, 10e6)
        source = f"{'h' * hosts}n{a}"
        demands.append(Demand(id=f"d{i}", source=source, target=f"n{b}", mean=mean, std=mean * rng.uniform(0.1, 1.2)))
    for name in sorted({demand.source for demand in demands if hosts}):
        links.append(Link(id=name, source=name, target=name[1:], capacity=200e6, buffer=rng.uniform(20e3, 400e3)))
    return Network(links=tuple(links), demands=tuple(demands))


def tight() -> Network:
    """The testbed with small buffers."""
    network = read_network(network_path("testbed"))
    links = tuple(msgspec.structs.replace(link, buffer=2e4) for link in network.links)
    return msgspec.structs.replace(network, links=links)


def scenario(messages: Messages, policy: CreditPolicy | HftracPolicy, network: Network | None = None) -> Scenario:
    policy = msgspec.structs.replace(policy, messages=messages)
    return routed(network or tight(), interval=TAU, control=policy, duration=1.2, warmup=0.0)


class Simulated:
    """The simulator, an interval at a time: what it measured and commanded, and when messages are there."""

    def __init__(self, requested: Scenario) -> None:
        self.law = netctrl.scenario_law(requested)
        ready = link_problem(requested, self.law)
        self.rates = rates = rates_by_messages(requested, ready, self.law)
        self.N, self.ticks, self.line, self.least = ready.model.n_links, rates.ticks, rates.line, rates.least
        self.phase, self.late, self.received = message_table(requested, 0, rates.messages, self.N)
        self.nominal, self.backlog_setpoint = ready.initial_rate, ready.plant.backlog_setpoint
        self.ready, self.steps = ready, requested.steps
        self.state = message_state(ready, rates, self.phase)
        self.demand = DemandSource(requested, range(1)).draw(requested.steps)[:, :, 0]

    def samples(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Number, series that were measured, (4, N), and commands before limits, (N,)."""
        sums, watched = np.zeros((6, self.N)), np.zeros((3, self.N, 0))
        for k in range(self.steps):
            advance_messages(
                self.ready.plant,
                self.rates,
                self.ready.taps.mode,
                self.state,
                np.ascontiguousarray(self.demand[k : k + 1]),
                self.late[k : k + 1],
                self.received[k : k + 1],
                k,
                0,
                sums,
                np.zeros(1),
                watched,
                None,
            )
            heard = self.state.memory
            yield k, heard.measured[:, k & self.rates.mask].reshape(4, self.N).copy(), heard.command.copy()

    def due(self, at: int, of: int, sample: int) -> int:
        """Tick at which one link knows of another's sample."""
        message = self.line[at, of]
        late = NEVER if message == NEVER else self.late[sample, message]
        tick = sample * self.ticks + self.phase[of]
        return 10**9 if late == NEVER else int(tick + self.least[at, of] * self.ticks + late)
