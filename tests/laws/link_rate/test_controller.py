"""One controller at a time, by what it heard: the simulator's bits, closed forms, laws."""

from __future__ import annotations

import numpy as np
import pytest
from distributed_support import Simulated, scenario
from hypothesis import given
from hypothesis import strategies as st

from netctrl.laws.link_rate.controller import Innovations, command, distributed_controller, hear, measure, start_hearing
from netctrl.laws.link_rate.distributed import DistributedLaw
from netctrl.laws.link_rate.distributed_step import NEVER
from netctrl.laws.link_rate.fir import BACKLOG, RATE, packed
from netctrl.scenario.network.policy import Messages

LAWS: dict[str, dict[str, object]] = {
    "god": {"architecture": "god"},
    "coordinated": {"architecture": "coordinated", "horizon": 24},
    "in band": {"architecture": "coordinated", "horizon": 24, "communication": "in-band"},
    "exact": {"architecture": "coordinated", "horizon": "exact"},
    "myopic": {"architecture": "myopic"},
    "myopic filters": {"architecture": "myopic", "horizon": 20},
}
MESSAGES = {
    "all heard": Messages(jitter=(0.0, 1e-9)),
    "lost": Messages(loss=0.2),
    "late": Messages(jitter=(0.0, 0.03)),
    "out of step": Messages(asynchronous=True, loss=0.1, jitter=(0.0, 0.015)),
}


@pytest.mark.parametrize("messages", MESSAGES)
@pytest.mark.parametrize("name", LAWS)
def test_controllers_by_themselves_give_the_simulators_bits(name: str, messages: str) -> None:
    """A controller a link, each with a memory of its own, from the measurements and arrivals of the simulator."""
    simulated = Simulated(scenario(MESSAGES[messages], **LAWS[name]))
    N, nominal = simulated.N, simulated.nominal
    controllers = [
        distributed_controller(simulated.heard, nominal, simulated.backlog_setpoint, measured=[link], commanded=[link])
        for link in range(N)
    ]
    memories = [start_hearing(each) for each in controllers]
    under_way: list[tuple[int, int, Innovations]] = []  # tick, who hears, what
    order = np.argsort(simulated.phase, kind="stable").tolist()
    for sample, series, commands in simulated.samples():
        acting: dict[int, list[int]] = {}
        for link in order:
            acting.setdefault(int(simulated.phase[link]), []).append(link)
        for phase, links in acting.items():
            tick = sample * simulated.ticks + phase
            for link in links:
                innovations = [what for due, at, what in under_way if at == link and due <= tick and what[1] < sample]
                memories[link], _ = hear(controllers[link], memories[link], innovations)
                rate, backlog = series[RATE, link : link + 1], series[BACKLOG, link : link + 1]
                memories[link], _ = measure(controllers[link], memories[link], sample, rate, backlog)
                mine = tuple(memories[link].received[link::N, sample & controllers[link].slots - 1])
                assert mine == tuple(series[:, link])
            for of in links:
                for at in range(N):
                    if simulated.line[at, of] != NEVER:
                        behind = int(simulated.phase[of] > simulated.phase[at])
                        values = (
                            float(series[0, of]),
                            float(series[1, of]),
                            float(series[2, of]),
                            float(series[3, of]),
                        )
                        under_way.append((simulated.due(at, of, sample), at, (of, sample + behind, values)))
            for link in links:
                innovations = [what for due, at, what in under_way if at == link and due <= tick]
                memories[link], _ = hear(controllers[link], memories[link], innovations)
                memories[link], u = command(controllers[link], memories[link])
                assert u[0] == commands[link]
        under_way = [each for each in under_way if each[0] > sample * simulated.ticks]


def test_a_central_controller_gives_the_simulators_bits() -> None:
    """Of rates younger than the information delay it is handed what the simulator's knows, those that were sent."""
    simulated = Simulated(scenario(Messages(loss=0.2), architecture="centralized", information_delay=3))
    N = simulated.N
    controller = distributed_controller(
        simulated.heard, simulated.nominal, simulated.backlog_setpoint, measured=[], commanded=range(N), least=3
    )
    memory = start_hearing(controller)
    for sample, series, commands in simulated.samples():
        memory, _ = measure(controller, memory, sample, np.zeros(0), np.zeros(0))
        memory.estimated[:, sample & controller.slots - 1] = series[RATE]
        if sample >= 3:  # reports come when they are 3 samples old
            old = simulated.state.memory.measured[:, sample - 3 & simulated.rates.mask].reshape(4, N)
            innovations = [
                (link, sample - 3, (old[0, link], old[1, link], 0.0, 0.0))
                for link in range(N)
                if simulated.due(0, link, sample - 3) <= sample
            ]
            memory, useless = hear(controller, memory, innovations)
            assert useless == 0
        memory, u = command(controller, memory)
        np.testing.assert_array_equal(np.where(simulated.received[sample], u, simulated.nominal), commands)


def small(
    entries: list[tuple[int, int, int, float]], predicted: list[tuple[int, int, int, float]] = ()
) -> DistributedLaw:
    """Two links with nominal rates 10 and 20."""
    nominal, paced = np.array([10.0, 20.0]), np.ones(2, dtype=bool)
    return DistributedLaw(
        packed(list(entries), nominal, paced), packed(list(predicted), np.zeros(2), paced), central=False
    )


def test_a_backlog_that_isnt_heard_is_what_it_was() -> None:
    """u_0 = 10 + b_1(n − 1), by hand."""
    law = small([(0, BACKLOG * 2 + 1, 1, 1.0)])
    controller = distributed_controller(law, np.array([10.0, 20.0]), 0.0, measured=[0], commanded=[0])
    memory, found = start_hearing(controller), []
    for sample in range(6):
        memory, _ = measure(controller, memory, sample, np.array([10.0]), np.array([0.0]))
        if sample in (1, 3):
            memory, _ = hear(controller, memory, [(1, sample, (20.0, 100.0 * sample, 0.0, 0.0))])
        memory, u = command(controller, memory)
        found.append(u[0])
    assert found == [10.0, 10.0, 110.0, 110.0, 310.0, 310.0]


def test_a_rate_that_isnt_heard_is_nominal_and_news_are_none() -> None:
    law = small([(0, RATE * 2 + 1, 0, 1.0), (0, 2 * 2 + 1, 0, 1.0)])
    controller = distributed_controller(law, np.array([10.0, 20.0]), 0.0, measured=[0], commanded=[0])
    memory, _ = measure(controller, start_hearing(controller), 0, np.array([10.0]), np.array([0.0]))
    assert command(controller, memory)[1][0] == 30.0
    memory, _ = hear(controller, memory, [(1, 0, (25.0, 0.0, 3.0, 0.0))])
    assert command(controller, memory)[1][0] == 38.0


@given(st.lists(st.integers(-50, 50), max_size=30), st.integers(0, 40))
def test_what_is_too_old_or_of_the_future_is_no_use(samples: list[int], now: int) -> None:
    law = small([(0, BACKLOG * 2 + 1, 3, 1.0)])
    controller = distributed_controller(law, np.array([10.0, 20.0]), 0.0, measured=[0], commanded=[0])
    memory, _ = measure(controller, start_hearing(controller), now, np.array([10.0]), np.array([0.0]))
    innovations = [(1, sample, (1.0, 2.0, 3.0, 4.0)) for sample in samples]
    _, useless = hear(controller, memory, innovations)
    assert useless == sum(not max(now - controller.slots + 1, 0) <= each <= now for each in samples)


@given(st.integers(1, 500))
def test_a_step_leaves_what_it_was_given(gap: int) -> None:
    law = small([(0, BACKLOG * 2 + 1, 3, 1.0), (1, RATE * 2, 5, -0.5)])
    controller = distributed_controller(law, np.array([10.0, 20.0]), 1.0, measured=[0, 1], commanded=[0, 1])
    memory = start_hearing(controller)
    copies = [np.array(part) for part in memory[1:]]
    after, _ = measure(controller, memory, gap, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    hear(controller, after, [(1, gap, (9.0, 9.0, 9.0, 9.0))])
    command(controller, after)
    for part, copy in zip(memory[1:], copies, strict=True):
        np.testing.assert_array_equal(part, copy)
    assert after.received[RATE * 2, gap & controller.slots - 1] == 1.0
    assert after.valid[:, gap & controller.slots - 1].all()


def test_a_link_that_is_lost_is_like_one_that_was_never_heard() -> None:
    law = small([(0, RATE * 2 + 1, 0, 1.0), (0, BACKLOG * 2 + 1, 0, 1.0)])
    controller = distributed_controller(law, np.array([10.0, 20.0]), 0.0, measured=[0, 1], commanded=[0])
    memory = start_hearing(controller)
    memory, _ = measure(controller, memory, 0, np.array([10.0, 26.0]), np.array([0.0, 7.0]))
    assert command(controller, memory)[1][0] == 43.0
    memory, _ = measure(controller, memory, 1, np.array([10.0, 99.0]), np.array([0.0, 99.0]), lost=[1])
    assert command(controller, memory)[1][0] == 37.0  # its nominal rate, and the backlog that was seen last


def test_news_may_come_with_the_sample_that_they_are_of() -> None:
    law = small([(0, BACKLOG * 2 + 1, 0, 1.0)])
    controller = distributed_controller(law, np.array([10.0, 20.0]), 0.0, measured=[0], commanded=[0])
    innovations = [(1, 9, (0.0, 5.0, 0.0, 0.0)), (1, 10, (0.0, 6.0, 0.0, 0.0))]
    now = measure(controller, start_hearing(controller), 9, np.array([10.0]), np.array([0.0]), innovations=innovations)
    assert now[1] == 1
    assert command(controller, now[0])[1][0] == 15.0
