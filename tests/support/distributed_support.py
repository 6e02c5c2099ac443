"""The simulator of messages, an interval at a time: what controllers by themselves are held against."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

import netctrl
from netctrl.datasets import network_path
from netctrl.scenario.network.policy import HftracPolicy
from netctrl.scenario.network.scenario import Messages, NetworkScenario
from netctrl.sim.network.demands import DemandSource
from netctrl.sim.network.message_kernel import NEVER, Messaging, advance_messages
from netctrl.sim.network.messages import _state, distributed_problem, message_lines, message_table, ticks
from netctrl.sim.network.problem import link_problem

__all__ = ["Simulated", "scenario"]

TAU = 0.01


def scenario(messages: Messages, **policy: object) -> NetworkScenario:
    network = netctrl.read_network(network_path("testbed"))
    tight = tuple(msgspec.structs.replace(link, buffer=2e4) for link in network.links)
    network = msgspec.structs.replace(network, links=tight)
    policy = HftracPolicy(mu=0.5, rate_scale=1.02, **policy)
    return NetworkScenario(
        name="t", network=network, interval=TAU, policy=policy, messages=messages, duration=1.2, warmup=0.0
    )


class Simulated:
    """The simulator, an interval at a time: what it measured and commanded, and when messages are there."""

    def __init__(self, requested: NetworkScenario) -> None:
        self.law = netctrl.scenario_law(requested)
        ready = link_problem(requested, self.law)
        self.heard = distributed_problem(ready, self.law)
        self.N, self.ticks = ready.model.n_links, ticks(requested)
        self.line, self.least, messages = message_lines(self.heard, self.law, self.N)
        self.phase, self.late, self.told = message_table(requested, 0, messages, self.N)
        self.nominal, self.backlog_setpoint = ready.initial_rate, ready.plant.backlog_setpoint
        self.ready, self.steps = ready, requested.steps
        self.state = _state(ready, self.heard, self.ticks, self.phase, messages)
        self.demand = DemandSource(requested, ready.network, range(1)).draw(requested.steps)[:, :, 0]

    def samples(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Number, series that were measured, (4, N), and commands before limits, (N,)."""
        messaging = Messaging(self.ticks, self.phase, self.line, self.least, self.heard.central)
        sums, watched = np.zeros((6, self.N)), np.zeros((3, self.N, 0))
        for k in range(self.steps):
            advance_messages(
                self.ready.plant,
                self.heard.control,
                self.heard.predicted,
                messaging,
                self.state,
                self.nominal,
                np.ascontiguousarray(self.demand[k : k + 1]),
                self.late[k : k + 1],
                self.told[k : k + 1],
                k,
                0,
                sums,
                np.zeros(1),
                watched,
            )
            slot = k & self.state.known.shape[1] - 1
            yield k, self.state.known[:, slot].reshape(4, self.N).copy(), self.state.command.copy()

    def due(self, at: int, of: int, sample: int) -> int:
        """Tick at which one link knows of another's sample."""
        message = self.line[at, of]
        late = NEVER if message == NEVER else self.late[sample, message]
        tick = sample * self.ticks + self.phase[of]
        return 10**9 if late == NEVER else int(tick + self.least[at, of] * self.ticks + late)
