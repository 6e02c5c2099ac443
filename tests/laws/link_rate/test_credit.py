"""The credit law: what it promises, whatever comes, and what it loses beside FIFO and static rates that are tuned."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from distributed_support import random_network
from scipy.stats import uniform

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.link_rate.credit import fill
from netctrl.laws.link_rate.distributed_step import NEVER
from netctrl.laws.link_rate.routing import at_utilization, with_ways
from netctrl.model.datasets import network_path
from netctrl.model.network import Demand, Link, Network, read_network
from netctrl.scenario.builders import routed
from netctrl.scenario.network.policy import CreditPolicy, Fifo, Messages, Policy, StaticPacing
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.message_kernel import advance_messages
from netctrl.sim.network.messages import message_state, rates_by_messages
from netctrl.sim.network.problem import link_problem, lossless_fills

TAU = 0.01
MEGA = 1e6


def shared(buffer: float, delays: tuple[int, ...], mean: float = 10.0, speed: float = 20.0) -> Network:
    """Sources with endless buffers share a line of 24 Mbit/s; its buffer in bytes."""
    links = [
        Link(id=f"a{i}", source=f"a{i}", target="S", capacity=speed * MEGA, delay=n * TAU) for i, n in enumerate(delays)
    ]
    line = Link(id="line", source="S", target="D", capacity=24 * MEGA, buffer=buffer)
    demands = [Demand(id=f"d{i}", source=f"a{i}", target="D", mean=mean * MEGA) for i in range(len(delays))]
    return Network(links=(*links, line), demands=tuple(demands))


def under(network: Network, control: Policy, **fields: object) -> Scenario:
    return routed(network, control=control, interval=TAU, **({"duration": 110.0, "warmup": 10.0} | fields))


def played(scenario: Scenario, demand: np.ndarray, extra: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """What each link loses in all, over the interval, (N,); `extra`, (steps, messages): by how much each is late, and
    `phase`, (N,): tick at which each acts."""
    ready = link_problem(scenario)
    law, N = rates_by_messages(scenario, ready, None), ready.model.n_links
    state = message_state(ready, law, phase)
    sums, received = np.zeros((6, N)), np.ones((len(demand), N), dtype=bool)
    nothing = np.zeros(1), np.zeros((3, N, 0))
    advance_messages(ready.plant, law, ready.taps.mode, state, demand, extra, received, 0, 0, sums, *nothing)
    return sums[2]


def bursts(rng: np.random.Generator, steps: int, sources: int) -> np.ndarray:
    """Sources that are silent and then all send more than their links can, (steps, sources)."""
    on = rng.random((steps // 10, sources)) < rng.uniform(0.2, 0.8)
    on |= (rng.random(steps // 10) < 0.3)[:, None]
    return np.repeat(on, 10, axis=0) * 100.0 * MEGA


def test_the_mean_fill_is_that_of_a_uniform_error() -> None:
    share = uniform(-3.0, 6.0)
    for z in np.linspace(-4.0, 12.0, 33):
        expected = share.expect(lambda error, z=z: min(max(z + error, 0.0), 8.0) / 8.0, epsabs=1e-12)
        assert fill(z, 3.0, 8.0) == pytest.approx(expected, abs=1e-7)
        assert fill(z, 0.0, 8.0) == pytest.approx(min(max(z, 0.0), 8.0) / 8.0, abs=1e-15)


@pytest.mark.parametrize("late", [0, 3])
def test_the_room_that_is_enough_is_what_others_may_send_until_news_of_it_is_heard(late: int) -> None:
    """By hand: demands that don't vary, so a forecast has no spread, and the price of later is .6 of 1/(θB) = 0."""
    delays, excess = (1, 2), 2 * (20.0 - 10.0) - (20.0 - 10.0)
    needed = (2 * max(delays) + 2 + late) * excess * MEGA * TAU / 8.0
    for share in (0.25, 0.5, 0.9):
        found = lossless_fills(under(shared(needed / (1.0 - share), delays), CreditPolicy()), late=late)
        assert found["line"] == pytest.approx(share, abs=1e-6)
    assert lossless_fills(under(shared(0.99 * needed, delays), CreditPolicy()), late=late)["line"] < 0.0
    assert lossless_fills(under(shared(1e3, (1,), mean=10.0), CreditPolicy()))["line"] == np.inf  # 20 into 24 Mbit/s
    assert lossless_fills(under(shared(1e6, delays), CreditPolicy(links=("a0",))))["line"] < 0.0
    with pytest.raises(InvalidValue, match="control: got 'fifo', takes credit"):
        lossless_fills(under(shared(1e6, delays), Fifo()))


@pytest.mark.parametrize(("late", "apart"), [(0, 0), (2, 0), (0, 1)], ids=["in time", "late", "out of step"])
@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_lost_inside_whatever_comes(seed: int, late: int, apart: int) -> None:
    """Sources that are silent and then all start at once, news that is as late, or as often lost, as may be,
    and links that act at moments of their own, which counts like news a sample late."""
    rng = np.random.default_rng(seed)
    delays = tuple(rng.integers(0, 4, int(rng.integers(2, 5))).tolist())
    mean = 22.0 / len(delays) * rng.uniform(0.6, 1.0)
    low, high = 1e3, 4e6
    for _ in range(40):  # the least buffer of which it is promised
        middle = 0.5 * (low + high)
        enough = lossless_fills(under(shared(middle, delays, mean), CreditPolicy()), late=late + apart)["line"] >= 0.0
        low, high = (low, middle) if enough else (middle, high)
    demand = bursts(rng, 3000, len(delays))
    size = 2 * len(delays)
    extra = rng.integers(0, late + 1, (len(demand), size))
    extra[1::2][rng.random((len(demand) // 2, size)) < 0.5 * (late > 0)] = NEVER  # the next one is at most 1 late
    extra[0::2] = np.minimum(extra[0::2], max(late - 1, 0))
    control, phase = CreditPolicy(messages=Messages(asynchronous=bool(apart))), rng.integers(0, 8, len(delays) + 1)
    for buffer, kept in ((high, True), (0.1 * high, False)):
        lost = played(under(shared(buffer, delays, mean), control), demand, extra[:, : len(delays)], apart * phase)
        assert (lost.sum() == 0.0) == kept


def named(name: str, load: float) -> Network:
    """A bundled network at a load; of Abilene buffers of 40 kB, and demands with a deviation like their means."""
    network = with_ways(at_utilization(read_network(network_path(name)), load))
    if name == "testbed":
        return network
    links = tuple(
        msgspec.structs.replace(link, buffer=40e3, delay=round(link.delay / TAU) * TAU) for link in network.links
    )
    demands = tuple(msgspec.structs.replace(demand, std=demand.mean) for demand in network.demands)
    return msgspec.structs.replace(network, links=links, demands=demands)


def loss(network: Network, control: Policy, runs: int, **fields: object) -> np.ndarray:
    """Of each run [%]."""
    return 100.0 * netctrl.simulate(under(network, control, **fields), runs=runs).figures()["loss", "network"]


@pytest.mark.parametrize(
    ("name", "factors"), [("testbed", (1.05, 1.1, 1.2, 1.4, 1.6, 2.0)), ("abilene", (1.6, 1.8, 2.2))]
)
@pytest.mark.parametrize("load", [0.5, 0.7, 0.9, 1.0, 1.05])
def test_it_loses_no_more_than_fifo_and_the_best_static_factor(
    name: str, factors: tuple[float, ...], load: float
) -> None:
    """The same traffic; runs' differences tell the laws apart, to 1e-3 points."""
    network, short = named(name, load), {"duration": 40.0, "warmup": 5.0}
    others = [loss(network, control, 3, **short) for control in (Fifo(), *(StaticPacing(factor=f) for f in factors))]
    least = min(others, key=np.mean)
    found = loss(network, CreditPolicy(), 3, **short)
    assert np.mean(found - least) <= 1e-3


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("hosts", [False, True])
def test_it_loses_no_more_on_random_networks(seed: int, hosts: bool) -> None:
    """Any tree with chords, of links, buffers, delays and demands in any proportion: within 2 % or .005 points."""
    network = random_network(seed, hosts)
    for load in (0.9, 1.0):
        loaded, short = at_utilization(network, load), {"duration": 40.0, "warmup": 5.0}
        others = (Fifo(), *(StaticPacing(factor=factor) for factor in (1.1, 1.2, 1.4, 1.8)))
        least = min(loss(loaded, control, 2, **short).mean() for control in others)
        assert loss(loaded, CreditPolicy(), 2, **short).mean() <= max(1.02 * least, least + 0.005)


@pytest.mark.parametrize("late", [0, 2])
def test_nothing_is_lost_inside_on_packets(late: int) -> None:
    """Sources that vary by thrice their means; a buffer has room for two packets of each besides."""
    control = CreditPolicy(messages=Messages(jitter=(0.0, late * TAU)))

    def scenario(buffer: float) -> Scenario:
        network = shared(buffer, (0, 1, 3), mean=7.0)
        demands = tuple(msgspec.structs.replace(demand, std=21.0 * MEGA) for demand in network.demands)
        return under(msgspec.structs.replace(network, demands=demands), control, duration=20.0, warmup=1.0)

    sizes = np.geomspace(1e4, 1e6, 60)
    enough = next(size for size in sizes if lossless_fills(scenario(size), late=late)["line"] >= 0.0)
    for buffer, kept in ((enough + 2 * 3 * 1500.0, True), (0.01 * enough, False)):
        found = netctrl.simulate(scenario(buffer), engine="packet")
        assert (found.totals["lost"].sum() == 0.0) == kept
        if kept:  # and the line is always busy
            assert found.totals["departed"][0, -1] * 8.0 / found.seconds >= 0.99 * 24.0 * MEGA


def test_late_and_lost_messages_cost_little() -> None:
    network = named("testbed", 0.95)
    ideal = loss(network, CreditPolicy(), 4)
    worse = loss(network, CreditPolicy(messages=Messages(loss=0.1, jitter=(0.0, 0.01), asynchronous=True)), 4)
    none = loss(network, CreditPolicy(messages=Messages(loss=1.0)), 4)
    fifo = loss(network, Fifo(), 4)
    assert worse.mean() < 1.02 * ideal.mean() < 0.3 * fifo.mean()
    assert none.mean() < 0.4 * fifo.mean()


def test_beside_tcp_it_loses_less_than_fifo_and_carries_more() -> None:
    """Two demands of UDP at .7, and 5 Cubic flows beside each, of which the law knows nothing."""
    network = named("testbed", 0.7)
    ways = {"t1": ("H1", {"e1": 1.0, "s13": 1.0}), "t2": ("H2", {"e2": 1.0, "s23": 1.0})}
    tcp = (Demand(id=name, source=at, target="S3", mean=1e4, split=split) for name, (at, split) in ways.items())
    network = msgspec.structs.replace(network, demands=(*network.demands, *tcp))
    flows = [{"id": name, "count": 5, "sender": "cubic", "start": (0.0, 0.5)} for name in ways]
    found = {}
    for control in (Fifo(), CreditPolicy()):
        scenario = under(network, control, duration=20.0, warmup=5.0, flows=flows)
        totals = netctrl.simulate(scenario, engine="packet", runs=3).totals
        found[type(control)] = {name: totals[name].reshape(3, -1).sum(axis=1) for name in ("lost", "left", "payload")}
    fifo, credit = found[Fifo], found[CreditPolicy]
    assert (credit["lost"] < 0.8 * fifo["lost"]).all()
    assert (credit["left"] > fifo["left"]).all() and credit["payload"].sum() > 0.9 * fifo["payload"].sum()
