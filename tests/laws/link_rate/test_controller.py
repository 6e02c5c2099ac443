"""One controller at a time, by what it heard: the simulator's bits, closed forms, laws."""

from __future__ import annotations

import numpy as np
import pytest
from distributed_support import Simulated, hftrac, random_network, scenario
from hypothesis import given
from hypothesis import strategies as st

from netctrl.laws.link_rate.controller import Heard, Innovations, by_hearing, command, measure, start_hearing
from netctrl.laws.link_rate.credit import no_prices
from netctrl.laws.link_rate.distributed_step import NEVER, LinkRates, law_by_messages
from netctrl.laws.link_rate.fir import BACKLOG, RATE, no_feeds, packed
from netctrl.laws.link_rate.routing import at_utilization, with_ways
from netctrl.scenario.network.policy import CreditPolicy, HftracPolicy, Messages

LAWS: dict[str, CreditPolicy | HftracPolicy] = {
    "credit": CreditPolicy(),
    "god": hftrac(architecture="god"),
    "coordinated": hftrac(architecture="coordinated", horizon=24),
    "in band": hftrac(architecture="coordinated", horizon=24, communication="in-band"),
    "exact": hftrac(architecture="coordinated", horizon="exact"),
    "myopic": hftrac(architecture="myopic"),
    "myopic filters": hftrac(architecture="myopic", horizon=20),
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
    follow(Simulated(scenario(MESSAGES[messages], LAWS[name])))


@pytest.mark.parametrize("seed", range(8))
def test_the_credit_law_at_controllers_gives_the_simulators_bits_on_any_network(seed: int) -> None:
    """Overloaded too, by messages that are late, lost or out of step in any proportion."""
    rng = np.random.default_rng(seed)
    network = with_ways(at_utilization(random_network(seed, bool(seed % 2)), rng.uniform(0.5, 1.3)))
    messages = Messages(loss=rng.uniform(0.0, 0.6), jitter=(0.0, rng.uniform(0.0, 0.08)), asynchronous=seed % 4 < 2)
    held = follow(Simulated(scenario(messages, CreditPolicy(), network)))
    assert held > 0


def follow(simulated: Simulated) -> int:
    """A controller a link, each with a memory of its own, from the measurements and arrivals of the simulator; how
    often a link sends less than it may."""
    held = 0
    N, law = simulated.N, by_hearing(simulated.rates)
    memories = [start_hearing(law, [link]) for link in range(N)]
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
                rate, backlog = series[RATE, link : link + 1], series[BACKLOG, link : link + 1]
                memories[link], _ = measure(
                    law, memories[link], sample, np.array([link]), rate, backlog, innovations=innovations
                )
                assert tuple(memories[link].links.measured[link::N, sample & law.mask]) == tuple(series[:, link])
            for of in links:
                for at in range(N):
                    if simulated.line[at, of] != NEVER:
                        behind = int(simulated.phase[of] > simulated.phase[at])
                        a, b, c, d = series[:, of].tolist()
                        under_way.append((simulated.due(at, of, sample), at, (of, sample + behind, (a, b, c, d))))
            for link in links:
                hear(law, memories[link], [what for due, at, what in under_way if at == link and due <= tick])
                memories[link], u = command(law, memories[link])
                assert u[link] == commands[link]
                held += u[link] < simulated.ready.plant.capacity[link]
        under_way = [each for each in under_way if each[0] > sample * simulated.ticks]
    return held


def hear(law: LinkRates, heard: Heard, innovations: list[Innovations]) -> None:
    """What comes between a measurement and the command."""
    for link, sample, values in innovations:
        if heard.sample - law.mask <= sample <= heard.sample:
            heard.links.measured[link :: len(law.nominal), sample & law.mask] = values
            heard.links.arrival[link, sample & law.mask] = 0


def test_a_central_controller_gives_the_simulators_bits() -> None:
    """Of rates younger than the information delay it is handed what the simulator's knows, those that were sent."""
    central = hftrac(architecture="centralized", information_delay=3)
    simulated = Simulated(scenario(Messages(loss=0.2), central))
    N, law = simulated.N, by_hearing(simulated.rates, least=3)
    none, heard = np.zeros(0), start_hearing(law, range(N))
    for sample, series, commands in simulated.samples():
        innovations = []
        if sample >= 3:  # reports come when they are 3 samples old
            old = simulated.state.memory.measured[:, sample - 3 & simulated.rates.mask].reshape(4, N)
            innovations = [
                (link, sample - 3, (old[0, link], old[1, link], 0.0, 0.0))
                for link in range(N)
                if simulated.due(0, link, sample - 3) <= sample
            ]
        heard, useless = measure(law, heard, sample, none.astype(int), none, none, innovations=innovations)
        assert useless == 0
        heard.links.measured[:N, sample & law.mask] = series[RATE]
        heard, u = command(law, heard)
        np.testing.assert_array_equal(np.where(simulated.received[sample], u, simulated.nominal), commands)


def small(entries: list[tuple[int, int, int, float]]) -> LinkRates:
    """Two links with nominal rates 10 and 20."""
    nominal, none, nobody = np.array([10.0, 20.0]), packed([], np.zeros(2), np.ones(2)), np.zeros((0, 0), dtype=int)
    sums = packed(list(entries), nominal, np.ones(2)).sums, none.sums
    return by_hearing(law_by_messages(nominal, 0.0, *sums, no_feeds(2), no_prices(2), nobody, nobody, messages=2))


def seen(law: LinkRates, heard: Heard, sample: int, rate: float = 10.0, backlog: float = 0.0, **more: object) -> Heard:
    """Link 0 after a measurement of its own."""
    return measure(law, heard, sample, np.array([0]), np.array([rate]), np.array([backlog]), **more)[0]


def test_a_backlog_that_isnt_heard_is_what_it_was() -> None:
    """u_0 = 10 + b_1(n − 1), by hand."""
    law = small([(0, BACKLOG * 2 + 1, 1, 1.0)])
    heard, found = start_hearing(law, [0]), []
    for sample in range(6):
        news = [(1, sample, (20.0, 100.0 * sample, 0.0, 0.0))] if sample in (1, 3) else []
        heard, u = command(law, seen(law, heard, sample, innovations=news))
        found.append(u[0])
    assert found == [10.0, 10.0, 110.0, 110.0, 310.0, 310.0]


def test_a_rate_that_isnt_heard_is_nominal_and_news_are_none() -> None:
    law = small([(0, RATE * 2 + 1, 0, 1.0), (0, 2 * 2 + 1, 0, 1.0)])
    heard = start_hearing(law, [0])
    assert command(law, seen(law, heard, 0))[1][0] == 30.0
    assert command(law, seen(law, heard, 0, innovations=[(1, 0, (25.0, 0.0, 3.0, 0.0))]))[1][0] == 38.0


@given(st.lists(st.integers(-50, 50), max_size=30), st.integers(0, 40))
def test_what_is_too_old_or_of_the_future_is_no_use(samples: list[int], now: int) -> None:
    law = small([(0, BACKLOG * 2 + 1, 3, 1.0)])
    innovations = [(1, sample, (1.0, 2.0, 3.0, 4.0)) for sample in samples]
    own = np.array([0]), np.array([10.0]), np.array([0.0])
    _, useless = measure(law, start_hearing(law, [0]), now, *own, innovations=innovations)
    assert useless == sum(not max(now - law.mask, 0) <= each <= now for each in samples)


@given(st.integers(1, 500))
def test_a_step_leaves_what_it_was_given(gap: int) -> None:
    law = small([(0, BACKLOG * 2 + 1, 3, 1.0), (1, RATE * 2, 5, -0.5)])
    before = start_hearing(law, [0, 1])
    copies = [np.array(part) for part in before.links]
    both = np.array([0, 1]), np.array([1.0, 2.0]), np.array([3.0, 4.0])
    after, _ = measure(law, before, gap, *both, innovations=[(1, gap, (9.0, 9.0, 9.0, 9.0))])
    command(law, after)
    for part, copy in zip(before.links, copies, strict=True):
        np.testing.assert_array_equal(part, copy)
    slots = np.arange(max(gap - law.mask, 0), gap + 1) & law.mask
    assert (after.links.measured[RATE * 2, slots] == 1.0).all()
    assert (after.links.arrival[:, slots] != NEVER).all()


def test_a_link_that_is_lost_is_like_one_that_was_never_heard() -> None:
    law = small([(0, RATE * 2 + 1, 0, 1.0), (0, BACKLOG * 2 + 1, 0, 1.0)])
    both, heard = np.array([0, 1]), start_hearing(law, [0, 1])
    heard, _ = measure(law, heard, 0, both, np.array([10.0, 26.0]), np.array([0.0, 7.0]))
    assert command(law, heard)[1][0] == 43.0
    heard, _ = measure(law, heard, 1, both, np.array([10.0, 99.0]), np.array([0.0, 99.0]), lost=[1])
    assert command(law, heard)[1][0] == 37.0  # its nominal rate, and the backlog that was seen last


def test_news_may_come_with_the_sample_that_they_are_of() -> None:
    law = small([(0, BACKLOG * 2 + 1, 0, 1.0)])
    news = [(1, 9, (0.0, 5.0, 0.0, 0.0)), (1, 10, (0.0, 6.0, 0.0, 0.0))]
    own = np.array([0]), np.array([10.0]), np.array([0.0])
    heard, useless = measure(law, start_hearing(law, [0]), 9, *own, innovations=news)
    assert useless == 1
    assert command(law, heard)[1][0] == 15.0
