"""Backlogs by demand: closed forms, a plain simulation by cumulative curves, the packet engine, laws."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.link_rate.routing import routing
from netctrl.model.network import Demand, Link, Network
from netctrl.scenario.builders import routed
from netctrl.scenario.network.graph import graph_of
from netctrl.scenario.network.policy import Backpressure, Fifo, HftracPolicy, Messages, Policy, StaticPacing
from netctrl.scenario.network.traffic import GaussianTraffic, Spread, TraceTraffic
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.demands import DemandSource
from netctrl.sim.network.plan import link_plan
from netctrl.sim.network.run import simulate_network
from netctrl.sim.packet.network import simulate_network_packets

TAU = 0.01
TOLERANCE = {
    "closed form": 1e-9,
    "plain": 1e-9,  # of the largest value
    "nominal": 1e-9,  # of the largest value: sums in another order
    "conservation": 1e-12,  # of what is offered
    "packets": {"loss": 1e-3, "throughput": 2e-3, "delay": 5e-3},  # of 150 bytes; shares, of the value, of the value
}
SERIES = ("backlog", "departed", "lost")
PER_LINK = ("arrived", "departed", "lost", "growth", "backlog")


def scenario(
    network: Network,
    steps: int,
    policy: Policy | None = None,
    traffic: Spread = GaussianTraffic(),  # noqa: B008
    messages: Messages = Messages(),  # noqa: B008
    **options: Any,
) -> Scenario:
    if isinstance(policy, HftracPolicy):
        policy = msgspec.structs.replace(policy, messages=messages)
    usual = {"name": "test", "interval": TAU, "duration": steps * TAU, "warmup": 0.0, "per_demand": True}
    return routed(network, spread=traffic, control=policy, **usual | options)


def traced(folder: Path, rates: np.ndarray, names: Sequence[str]) -> TraceTraffic:
    """A trace with these rates, (T, I), as they are."""
    lines = [
        ",".join(["time_s", *names]),
        *(f"{k * TAU!r}," + ",".join(map(repr, row)) for k, row in enumerate(rates.tolist())),
    ]
    file = folder / "trace.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return TraceTraffic(file=str(file), fit=False)


def constant(folder: Path, **rates: float) -> TraceTraffic:
    return traced(folder, np.array([list(rates.values())] * 2), tuple(rates))


def one_link(buffer: float | None, capacity: float = 15e6) -> Network:
    """Two demands of 6 Mbit/s."""
    link = Link(id="link", source="a", target="b", capacity=capacity, delay=0.02, buffer=buffer)
    return Network(links=(link,), demands=tuple(Demand(id=i, source="a", target="b", mean=6e6) for i in "xy"))


def fork(buffer: float | None = 50e3, low: float = 12e6, low_buffer: float | None = 50e3) -> Network:
    """Both demands over `in`, whose nominal shares are a half each; behind it x goes over `top`, y over `low`."""
    links = (
        Link(id="in", source="a", target="m", capacity=20e6, delay=0.01, buffer=buffer),
        Link(id="top", source="m", target="b", capacity=11e6, delay=0.02, buffer=50e3),
        Link(id="low", source="m", target="c", capacity=low, delay=0.03, buffer=low_buffer),
    )
    demands = tuple(Demand(id=i, source="a", target=end, mean=7e6) for i, end in zip("xy", "bc", strict=True))
    return Network(links=links, demands=demands)


# --- closed forms -----------------------------------------------------------------------------------------------------


def test_an_overloaded_link_loses_by_arrival_share(tmp_path: Path) -> None:
    """12 and 6 Mbit/s into 15: each loses a sixth, and what comes through waited behind a full buffer."""
    buffer = 30e3
    found = simulate_network(scenario(one_link(buffer), 300, traffic=constant(tmp_path, x=12e6, y=6e6), warmup=1.0))
    seconds = found.seconds
    rates = np.array([[12e6, 6e6]])
    rtol = TOLERANCE["closed form"]
    np.testing.assert_allclose(found.totals["offered"], rates * seconds / 8.0, rtol=rtol)
    np.testing.assert_allclose(found.totals["flow_lost"], rates / 6.0 * seconds / 8.0, rtol=rtol)
    np.testing.assert_allclose(found.totals["delivered"], rates * 5.0 / 6.0 * seconds / 8.0, rtol=rtol)
    np.testing.assert_allclose(found.totals["flow_growth"], 0.0, atol=1e-6)
    np.testing.assert_allclose(found.totals["one_way"], 0.02 + buffer * 8.0 / 15e6, rtol=rtol)


def test_what_leaves_a_link_is_split_by_what_it_is(tmp_path: Path) -> None:
    """12 and 5 Mbit/s where 7 and 7 are nominal: `top`, of 11, is overloaded by 1, of x alone; nominal shares see
    nothing of it."""
    requested = scenario(fork(), 400, traffic=constant(tmp_path, x=12e6, y=5e6), warmup=2.0)
    found = simulate_network(requested)
    rtol = TOLERANCE["closed form"]
    np.testing.assert_allclose(found.totals["lost"], [[0.0, 1e6 * found.seconds / 8.0, 0.0]], rtol=rtol)
    np.testing.assert_allclose(found.totals["departed"] * 8.0 / found.seconds, [[17e6, 11e6, 5e6]], rtol=rtol)
    np.testing.assert_allclose(found.totals["flow_lost"], [[1e6 * found.seconds / 8.0, 0.0]], rtol=rtol)
    np.testing.assert_allclose(found.totals["one_way"], [[0.03 + 50e3 * 8.0 / 11e6, 0.04]], rtol=rtol)
    np.testing.assert_allclose(found.totals["left"] * 8.0 / found.seconds, 16e6, rtol=rtol)
    nominal = simulate_network(requested.replace(per_demand=False))
    assert not nominal.totals.over("run", "flow")
    assert not nominal.totals["lost"].any()


def test_what_comes_first_leaves_first(tmp_path: Path) -> None:
    """`in`, of 20 Mbit/s, has 30 of x for 20 intervals, which it needs 30 intervals for; then 10 of y. y leaves it
    from interval 30 on, when all of x is gone, and not before."""
    steps, after = 80, 30
    rates = np.zeros((steps, 2))
    rates[:20, 0], rates[20:, 1] = 30e6, 10e6
    requested = scenario(fork(None), steps, traffic=traced(tmp_path, rates, "xy"), warmup=2 * TAU)
    low = simulate_network(requested).series["departed"][2] * 8.0 / TAU
    begin = after + 2  # one interval and the delay of `in`
    np.testing.assert_allclose(low[2:begin], 0.0, atol=1e-3)
    np.testing.assert_allclose(low[begin : begin + 9], 12e6, rtol=TOLERANCE["closed form"])  # of 20 that come


@pytest.mark.parametrize("name", ["no backlog", "standing backlog"])
def test_where_all_is_nominal_delay_is_that_from_the_very_beginning(name: str) -> None:
    """A demand that splits over two ways, a quarter of it over the longer one: propagation, and the standing backlog at
    its rate, here 3, 4, 12 and 6 intervals."""
    setpoint = 45e3 if name == "standing backlog" else 0.0
    links = (
        Link(id="1", source="a", target="b", capacity=20e6, delay=0.01),
        Link(id="2", source="b", target="d", capacity=20e6, delay=0.02),
        Link(id="3", source="b", target="c", capacity=20e6, delay=0.03),
        Link(id="4", source="c", target="d", capacity=20e6, delay=0.04),
    )
    demand = Demand(id="x", source="a", target="d", mean=12e6, split={"1": 1.0, "2": 0.75, "3": 0.25, "4": 1.0})
    other = Demand(id="y", source="c", target="d", mean=3e6)
    network = Network(links=links, demands=(demand, other))
    policy = HftracPolicy(architecture="god", mu=0.5, backlog_setpoint=setpoint)
    law = netctrl.hftrac(network, TAU, architecture="god", mu=0.5, std="10%").law
    found = simulate_network(scenario(network, 60, policy), law)
    wait = dict(zip(found.links, setpoint * 8.0 / np.array([12e6, 9e6, 3e6, 6e6]), strict=True))
    short, long = 0.03 + wait["1"] + wait["2"], 0.08 + wait["1"] + wait["3"] + wait["4"]
    expected = [[0.75 * short + 0.25 * long, 0.04 + wait["4"]]]
    np.testing.assert_allclose(found.totals["one_way"], expected, rtol=TOLERANCE["closed form"])


# --- a plain simulation -----------------------------------------------------------------------------------------------


class Plain(NamedTuple):
    """What a plain simulation gives [bit], over the interval; N links, D demands, T intervals."""

    arrived: np.ndarray
    """(T, N, D)"""
    accepted: np.ndarray
    """(T, N, D)"""
    departed: np.ndarray
    """(T, N, D)"""
    backlog: np.ndarray
    """(T, N)"""


def plain(requested: Scenario, number: int = 0, *, mixed: bool = False) -> Plain:
    """Link by link from cumulative curves: when D bits have left a link, those of demand i are A_i(A⁻¹(D)), linear
    in between, as what arrives in an interval is mixed. `mixed`: all that waits is mixed instead.

    Links are FIFO or paced at a rate that never changes; they begin at nominal rates, empty.
    """
    network, policy = graph_of(requested), requested.control
    routes, demands = routing(network), network.demands
    alpha, rate = routes.split.toarray(), routes.rate.toarray()
    links = network.links
    sent_by = DemandSource(requested, range(number, number + 1)).draw(requested.steps)[:, :, 0]
    T, N, D = requested.steps, len(links), len(demands)
    delay = [round(link.delay / TAU) for link in links]
    buffer = [inf if link.buffer is None else link.buffer * 8.0 / TAU for link in links]
    service = [link.capacity for link in links]
    if isinstance(policy, StaticPacing):
        service = np.minimum(service, policy.factor * rate.sum(axis=1)).tolist()
    arrived, accepted, departed = np.zeros((3, T, N, D))
    backlog = np.zeros((T, N))
    waiting = np.zeros((N, D))
    for n in range(T):
        for k, link in enumerate(links):
            coming = np.zeros(D)
            for j, before in enumerate(links):
                if before.target == link.source:
                    passed = departed[n - 1 - delay[j], j] if n > delay[j] else rate[j]
                    coming += alpha[k] * (alpha[j] > 0.0) * passed
            for i, demand in enumerate(demands):
                if demand.source == link.source:
                    coming[i] += alpha[k, i] * sent_by[n, i]
                elif demand.target == link.source:
                    coming[i] = 0.0
            arrived[n, k] = coming
            there = backlog[n - 1, k] + coming.sum() if n else coming.sum()
            goes = min(there, service[k])
            left = min(there - goes, buffer[k])
            lost = there - goes - left
            share = coming / coming.sum() if coming.any() else coming
            accepted[n, k] = coming - lost * share
            backlog[n, k] = left
            if mixed:
                within = waiting[k] + coming
                departed[n, k] = goes * within / max(within.sum(), 1e-300)
                waiting[k] = np.maximum(within - departed[n, k] - lost * share, 0.0)
                continue
            curves = np.concatenate([np.zeros((1, D)), np.cumsum(accepted[: n + 1, k], axis=0)])
            all_of_it = curves.sum(axis=1)
            gone_bits = all_of_it[-1] - left
            rising = np.concatenate([[True], np.diff(all_of_it) > 0.0])
            gone = [np.interp(gone_bits, all_of_it[rising], curves[rising, i]) for i in range(D)]
            departed[n, k] = np.array(gone) - departed[:n, k].sum(axis=0)
    return Plain(arrived, accepted, departed, backlog)


def check(requested: Scenario, number: int = 0, rtol: float = TOLERANCE["plain"]) -> Result:
    """One run both ways: links interval by interval, and demands in all."""
    found = simulate_network(requested, first_run=number)
    expected = plain(requested, number)
    used = [k for k, link in enumerate(graph_of(requested).links) if link.id in found.links]
    series = np.array([expected.backlog, expected.departed.sum(axis=2)])[:, :, used].transpose(0, 2, 1) * TAU / 8.0
    for ours, theirs in zip((found.series["backlog"], found.series["departed"]), series, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=rtol * np.abs(theirs).max())
    graph = graph_of(requested)
    ends = np.array([[link.target == each.target for each in graph.demands] for link in graph.links])
    lost = (expected.arrived - expected.accepted).sum(axis=(0, 1))
    delivered = (expected.departed * ends).sum(axis=(0, 1))
    atol = rtol * found.totals["offered"].max()
    np.testing.assert_allclose(found.totals["flow_lost"][0], lost * TAU / 8.0, rtol=0.0, atol=atol)
    np.testing.assert_allclose(found.totals["delivered"][0], delivered * TAU / 8.0, rtol=0.0, atol=atol)
    return found


def random_network(seed: int) -> Network:
    """Nodes 0, ..., 4, links from lower to higher ones, three demands that split at random and fluctuate much, little
    room and small buffers."""
    random = np.random.default_rng(seed)
    pairs = [(i, i + 1) for i in range(4)] + [(0, 2), (1, 3), (2, 4), (0, 3)][: random.integers(1, 5)]
    demands = []
    for i in range(3):
        source = int(random.integers(0, 2)) if i else 0
        target = int(random.integers(source + 2, 5)) if i else 4
        split = {}
        for node in range(source, target):
            out = [b for a, b in pairs if a == node and b <= target]
            for b, share in zip(out, random.dirichlet(np.ones(len(out))), strict=True):
                split[f"{node}->{b}"] = float(share)
        mean = float(random.uniform(2e6, 5e6))
        demands.append(
            Demand(id=f"d{i}", source=str(source), target=str(target), mean=mean, std=0.7 * mean, split=split)
        )
    free = [
        Link(source=str(a), target=str(b), capacity="1Gbit", delay=int(random.integers(0, 4)) * TAU) for a, b in pairs
    ]
    load = routing(Network(links=tuple(free), demands=tuple(demands))).load
    links = [
        msgspec.structs.replace(
            link,
            capacity=max(rate, 1e6) * float(random.uniform(1.01, 1.2)),
            buffer=float(random.uniform(0.3, 6.0)) * max(rate, 1e6) * TAU / 8.0 if random.integers(4) else None,
        )
        for link, rate in zip(free, load, strict=True)
    ]
    return Network(links=tuple(links), demands=tuple(demands))


@pytest.mark.parametrize("policy", [Fifo(), StaticPacing(factor=1.03)], ids=repr)
@pytest.mark.parametrize("seed", range(6))
def test_random_networks_are_those_of_cumulative_curves(seed: int, policy: Policy) -> None:
    found = check(scenario(random_network(seed), 250, policy, seed=seed), number=seed)
    assert found.totals["flow_lost"].any()


@pytest.mark.parametrize("seed", range(3))
def test_delay_is_that_of_littles_law(tmp_path: Path, seed: int) -> None:
    """All that is sent comes to its end, without loss, and nothing is left: the ages of all that was delivered are the
    integral of what waited and propagated."""
    network = random_network(seed)
    network = msgspec.structs.replace(
        network, links=tuple(msgspec.structs.replace(link, buffer=None) for link in network.links)
    )
    random, steps = np.random.default_rng(seed), 500
    rates = np.zeros((steps, 3))
    means = np.array([each.mean for each in network.demands])
    rates[20:120] = means * random.uniform(0.0, 3.0, (100, 3))
    names = [each.id for each in network.demands]
    requested = scenario(network, steps, traffic=traced(tmp_path, rates, names), warmup=20 * TAU)
    found, expected = simulate_network(requested), plain(requested)
    np.testing.assert_array_equal(found.totals["flow_growth"], 0.0)  # a link that empties keeps nothing by rounding
    waits = (np.cumsum(expected.accepted - expected.departed, axis=0)).sum(axis=(0, 1)) * TAU
    line = np.array([link.delay for link in network.links])
    flies = np.einsum("nki,k->i", expected.departed[20:], line)
    delivered = found.totals["delivered"][0] * 8.0 / TAU
    np.testing.assert_allclose(found.totals["one_way"][0], (waits + flies) / delivered, rtol=1e-6)


def test_a_long_queue_is_kept_in_order_all_but(tmp_path: Path) -> None:
    """Up to 450 intervals' worth of x and y, which came in turns, wait at `in`: more than there are batches. These
    leave in order, and hold some intervals' arrivals each."""
    steps, turn = 900, 10
    rates = np.zeros((steps, 2))
    rates[:300, 0] = np.where(np.arange(300) // turn % 2 == 0, 50e6, 0.0)
    rates[:300, 1] = 50e6 - rates[:300, 0]
    network = fork(None)
    wide = [msgspec.structs.replace(link, capacity=60e6) for link in network.links[1:]]
    network = msgspec.structs.replace(network, links=(network.links[0], *wide))
    requested = scenario(network, steps, traffic=traced(tmp_path, rates, "xy"))
    found, exact = simulate_network(requested), plain(requested)
    assert exact.backlog.max() > 400 * 20e6
    left, wanted = (found.series["departed"][2] * 8.0 / TAU).cumsum(), exact.departed[:, 2].sum(axis=1).cumsum()
    apart = np.abs(left - wanted)
    assert 1e3 < apart.max() < 8 * 50e6  # mixed altogether it would be 75 times 50 Mbit/s
    assert apart[:64].max() < 1e3  # before neighbours are joined
    np.testing.assert_allclose(left[-1], wanted[-1], rtol=TOLERANCE["plain"])


# --- where all is nominal ---------------------------------------------------------------------------------------------

LAWS: dict[str, dict[str, Any]] = {
    "god": {"architecture": "god"},
    "fir": {"architecture": "coordinated"},
    "exact": {"architecture": "coordinated", "horizon": "exact"},
    "myopic": {"architecture": "myopic"},
}
LATE = Messages(loss=0.1, jitter=(0.0, 0.02), asynchronous=True)


def same_links(requested: Scenario, law: Any, **options: Any) -> Result:
    """With demands kept apart and without: each link's figures and series."""
    kept = simulate_network(requested, law, **options)
    without = simulate_network(requested.replace(per_demand=False), law, **options)
    pairs = {name: (kept.totals[name], without.totals[name]) for name in (*PER_LINK, "left")}
    pairs |= {f"series of {name}": (kept.series[name], without.series[name]) for name in SERIES}
    for name, (ours, theirs) in pairs.items():
        # Growth is a difference of backlogs: where it is 0 but for rounding, that of the arrivals counts.
        rounding = np.finfo(float).eps * np.abs(without.totals["arrived"]).max()
        atol = max(TOLERANCE["nominal"] * np.abs(theirs).max(), rounding)
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=atol, err_msg=name)
    return kept


@pytest.mark.parametrize("messages", [Messages(), LATE], ids=["in time", "late"])
@pytest.mark.parametrize("name", ["fifo", "static", "backpressure", *LAWS])
def test_of_one_demand_every_links_figures_are_those_without(name: str, messages: Messages) -> None:
    """It splits and is lost at small buffers, and yet all that any link carries is of it: shares are nominal."""
    network = random_network(5)
    network = msgspec.structs.replace(network, demands=network.demands[:1])
    load = routing(network).load
    links = tuple(
        msgspec.structs.replace(link, capacity=1.05 * max(rate, 1.0), buffer=0.4 * max(rate, 1.0) * TAU / 8.0)
        for link, rate in zip(network.links, load, strict=True)
    )
    network = msgspec.structs.replace(network, links=links)
    peers = {"fifo": Fifo(), "static": StaticPacing(factor=1.02), "backpressure": Backpressure()}
    law = None if name in peers else netctrl.hftrac(network, TAU, mu=0.5, **LAWS[name]).law
    policy = peers[name] if name in peers else HftracPolicy(mu=0.5, **LAWS[name])
    found = same_links(scenario(network, 200, policy, messages=messages, warmup=30 * TAU), law, runs=2)
    assert found.totals["lost"].any()


def test_constant_demands_are_in_nominal_shares() -> None:
    network = random_network(7)
    steady = tuple(msgspec.structs.replace(each, std=0.0) for each in network.demands)
    network = msgspec.structs.replace(network, demands=steady)
    policy = HftracPolicy(mu=0.5, **LAWS["exact"])
    law = netctrl.hftrac(network, TAU, mu=0.5, std="10%", **LAWS["exact"]).law
    same_links(scenario(network, 200, policy), law)


# --- packets ----------------------------------------------------------------------------------------------------------


def fluctuating(means: Sequence[float], steps: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.maximum(np.array(means) * (1.0 + 0.25 * random.standard_normal((steps, len(means)))), 0.0)


def on_packets(requested: Scenario, size: int = 150) -> Result:
    law = netctrl.scenario_law(requested)
    return simulate_network_packets(requested.replace(packet_size=size), link_plan(requested, law), range(1))


def rows(found: Result) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loss, throughput [bit/s] and delay [s] of each demand in the first run."""
    total = {name: array[0] for name, array in found.totals.over("run", "flow").items()}
    return total["flow_lost"] / total["offered"], total["delivered"] * 8.0 / found.seconds, total["one_way"]


COORDINATED = HftracPolicy(architecture="coordinated", mu=0.1, horizon="exact")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "messages"),
    [(Fifo(), Messages()), (StaticPacing(factor=1.25), Messages()), (COORDINATED, Messages()), (COORDINATED, LATE)],
    ids=["fifo", "static", "hftrac", "hftrac late"],
)
def test_off_nominal_demands_are_those_of_packets(tmp_path: Path, policy: Policy, messages: Messages) -> None:
    """12 and 5 Mbit/s on average where 7 and 7 are nominal, and what is sent fluctuates by a quarter."""
    traffic = traced(tmp_path, fluctuating((12e6, 5e6), 3000), "xy")
    requested = scenario(fork(), 3000, policy, traffic=traffic, warmup=2.0, messages=messages)
    found = simulate_network(requested, netctrl.scenario_law(requested))
    (loss, throughput, delay), packets = rows(found), rows(on_packets(requested))
    bound = TOLERANCE["packets"]
    np.testing.assert_allclose(loss, packets[0], rtol=0.0, atol=bound["loss"])
    np.testing.assert_allclose(throughput, packets[1], rtol=bound["throughput"])
    np.testing.assert_allclose(delay, packets[2], rtol=bound["delay"])
    assert loss[0] > 0.05


def bursts(steps: int) -> np.ndarray:
    """x sends steadily, y in bursts of a fifth of each second."""
    rates = np.full((steps, 2), 9e6)
    rates[:, 1] = np.where(np.arange(steps) % 100 < 20, 30e6, 0.0)
    return rates


def test_packets_side_with_first_in_first_out_and_not_with_mixing(tmp_path: Path) -> None:
    """Bursts of y that queued at `in` with x still are bursts at `low`, whose small buffer loses of them: were all that
    waits mixed, they would come spread out."""
    steps = 2000
    network = fork(None, low=13e6, low_buffer=20e3)
    requested = scenario(network, steps, traffic=traced(tmp_path, bursts(steps), "xy"))
    loss = rows(check(requested))[0][1]
    mixed = plain(requested, mixed=True)
    of_mixing = (mixed.arrived - mixed.accepted).sum(axis=(0, 1))[1] / (6e6 * steps)
    packets = rows(on_packets(requested))[0][1]
    assert abs(loss - packets) < 0.005
    assert abs(of_mixing - packets) > 0.02


def test_packets_of_demands_are_those_of_links(tmp_path: Path) -> None:
    """All that entered, left and was lost; TCP's packets aren't told apart."""
    requested = scenario(fork(), 400, traffic=traced(tmp_path, fluctuating((12e6, 5e6), 400), "xy"), warmup=1.0)
    found = on_packets(requested, 1500)
    np.testing.assert_array_equal(found.totals["offered"].sum(axis=1), found.totals["entered"])
    np.testing.assert_array_equal(found.totals["delivered"].sum(axis=1), found.totals["left"])
    np.testing.assert_array_equal(found.totals["flow_lost"].sum(axis=1), found.totals["lost"].sum(axis=1))
    tcp = scenario(fork(), 200, flows=[{"id": "x"}])
    assert "offered" not in on_packets(tcp, 1500).totals


# --- laws -------------------------------------------------------------------------------------------------------------

KINDS = st.sampled_from([Fifo(), StaticPacing(factor=1.05), Backpressure(), HftracPolicy(mu=0.5, architecture="god")])


def of_god(network: Network, policy: Policy) -> Any:
    return netctrl.hftrac(network, TAU, mu=0.5, architecture="god").law if isinstance(policy, HftracPolicy) else None


@given(st.integers(0, 2**32 - 1), KINDS, st.integers(0, 30), st.sampled_from([Messages(), LATE]))
@settings(max_examples=20)
def test_nothing_of_a_demand_is_lost_without_trace(seed: int, policy: Policy, warmup: int, messages: Messages) -> None:
    """Each demand's balance, and the sums over demands."""
    network = random_network(seed)
    requested = scenario(network, 90, policy, warmup=warmup * TAU, seed=seed, messages=messages)
    found = simulate_network(requested, of_god(network, policy), runs=2, watch=False)
    total, atol = found.totals, TOLERANCE["conservation"] * found.totals["entered"].max()
    balance = total["delivered"] + total["flow_lost"] + total["flow_growth"]
    np.testing.assert_allclose(balance, total["offered"], rtol=0.0, atol=atol)
    np.testing.assert_allclose(total["offered"].sum(axis=1), total["entered"], rtol=0.0, atol=atol)
    np.testing.assert_allclose(total["flow_lost"].sum(axis=1), total["lost"].sum(axis=1), rtol=0.0, atol=atol)
    np.testing.assert_allclose(total["delivered"].sum(axis=1), total["left"], rtol=0.0, atol=atol)
    assert total["one_way"][total["delivered"] > 0.0].min() > 0.0


def scaled(network: Network, factor: float) -> Network:
    links = tuple(
        msgspec.structs.replace(
            link, capacity=factor * link.capacity, buffer=None if link.buffer is None else factor * link.buffer
        )
        for link in network.links
    )
    demands = tuple(
        msgspec.structs.replace(each, mean=factor * each.mean, std=factor * each.std) for each in network.demands
    )
    return msgspec.structs.replace(network, links=links, demands=demands)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100.0), KINDS)
@settings(max_examples=10)
def test_all_rates_and_buffers_scaled_scale_amounts_and_leave_delays(seed: int, factor: float, policy: Policy) -> None:
    network = random_network(seed)
    larger = scaled(network, factor)
    one, other = (
        simulate_network(scenario(each, 80, policy, seed=seed), of_god(each, policy), watch=False).totals
        for each in (network, larger)
    )
    for name in ("offered", "delivered", "flow_lost"):
        ours, theirs = other[name], factor * one[name]
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-9 * factor * one["offered"].max())
    np.testing.assert_allclose(other["one_way"], one["one_way"], rtol=1e-9)


def test_a_run_is_the_same_in_any_company_and_on_any_number_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = scenario(random_network(3), 100, warmup=10 * TAU)
    found = simulate_network(requested, runs=5)
    alone = simulate_network(requested, runs=1, first_run=3)
    monkeypatch.setattr("netctrl.sim.network.demand_fluid._MAX_BLOCK", 1)  # one run a block
    blocks = simulate_network(requested, runs=5, n_jobs=2)
    for name in ("offered", "delivered", "flow_lost", "flow_growth", "one_way"):
        values = found.totals[name]
        np.testing.assert_array_equal(alone.totals[name], values[3:4])
        np.testing.assert_array_equal(blocks.totals[name], values)
    np.testing.assert_array_equal(blocks.totals["backlog"], found.totals["backlog"])


# --- what is told -----------------------------------------------------------------------------------------------------


def test_a_summary_names_each_demand_and_a_table_twenty() -> None:
    network = random_network(3)
    many = tuple(
        msgspec.structs.replace(each, id=f"{each.id}.{k}", mean=each.mean / 8, std=each.std / 8)
        for each in network.demands
        for k in range(8)
    )
    found = simulate_network(scenario(msgspec.structs.replace(network, demands=many), 200), runs=3)
    ids = [each.id for each in many]
    assert found.flows == tuple(ids)
    told = {(each.quantity, each.of): each for each in found.summary()}
    assert set(ids) <= {of for _, of in told}
    throughput, loss, delay = (told[quantity, ids[5]] for quantity in ("throughput", "loss", "delay"))
    assert throughput.mean == pytest.approx(found.totals["delivered"][:, 5].mean() * 8.0 / 2.0)
    ratio = found.totals["flow_lost"][:, 5] / found.totals["offered"][:, 5]
    assert loss.mean == pytest.approx(ratio.mean())
    assert loss.half_width == pytest.approx(4.30265 * ratio.std(ddof=1) / np.sqrt(3.0), rel=1e-5)
    assert delay.mean == pytest.approx(found.totals["one_way"][:, 5].mean())
    for each in (throughput, loss, delay):
        assert found.measures()[each.quantity, ids[5]] == each.mean
    table = dict(found.table()[1])
    losses = {name: told["loss", name].mean for name in ids}
    worst = sorted(losses, key=losses.__getitem__, reverse=True)[:20]
    assert [name for name in table if name in losses] == [name for name in ids if name in worst]
    assert table["flows"].startswith("24,")


def test_what_is_never_delivered_has_no_delay(tmp_path: Path) -> None:
    traffic = constant(tmp_path, x=5e6, y=0.0)
    found = simulate_network(scenario(fork(), 50, traffic=traffic, warmup=30 * TAU))
    assert found["delay", "x"] == pytest.approx(0.03)
    assert "delay" not in found.of("y")
    assert ("delay", "y") not in found.measures()
    assert "delay" not in dict(found.table()[1])["y"]


def test_more_than_memory_holds_is_refused() -> None:
    demand = Demand(id="x", source="a", target="c", mean=1e6)
    network = Network(
        links=(
            Link(id="far", source="a", target="b", capacity=2e6, delay=1e6),
            Link(id="near", source="b", target="c", capacity=2e6),
        ),
        demands=(demand,),
    )
    with pytest.raises(InvalidValue, match="per_demand"):
        simulate_network(scenario(network, 1))
