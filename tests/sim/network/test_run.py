"""Networks under fluctuating demands: against designs' costs, a plain simulation of each law, closed forms and laws."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from functools import cache
from math import inf, nan, sqrt
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.design.hftrac.design import hftrac
from netctrl.laws.link_rate.routing import at_utilization, routing
from netctrl.model.datasets import network_path
from netctrl.model.design.design import HftracDesign
from netctrl.model.law import AgedGain, FirGain, LinkRateLaw, MyopicGain, StaticGain
from netctrl.model.network import Demand, Link, Network, read_network
from netctrl.plants.linearize import network_model
from netctrl.scenario.builders import routed
from netctrl.scenario.network.graph import graph_of
from netctrl.scenario.network.policy import Backpressure, DesignPolicy, Fifo, HftracPolicy, Policy, StaticPacing
from netctrl.scenario.network.traffic import GaussianTraffic
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network.demands import DemandSource
from netctrl.sim.network.problem import link_problem
from netctrl.sim.network.run import LANES, simulate_network

TAU = 0.01
TOLERANCE = {
    "cost": 0.01,  # three standard errors are less
    "trajectory": 1e-9,  # of the largest value
    "conservation": 1e-9,  # of what arrives
    "closed form": 1e-9,
    "same": 1e-12,  # one sum, in another order
}
NETWORKS = ("tandem", "merge", "testbed")
LAWS: dict[str, dict[str, Any]] = {
    "god": {"architecture": "god"},
    "centralized": {"architecture": "centralized", "information_delay": 2},
    "fir": {"architecture": "coordinated"},
    "fir in band": {"architecture": "coordinated", "communication": "in-band"},
    "exact": {"architecture": "coordinated", "horizon": "exact"},
    "exact in band": {"architecture": "coordinated", "horizon": "exact", "communication": "in-band"},
    "myopic": {"architecture": "myopic"},
    "myopic fir": {"architecture": "myopic", "horizon": 30},
}


@cache
def published(name: str) -> Network:
    return read_network(network_path(name))


def hftrac_policy(law: str, mu: float = 1.0, **options: Any) -> HftracPolicy:
    return HftracPolicy(mu=mu, **LAWS[law], **options)


def designed(network: Network, law: str, mu: float = 1.0) -> HftracDesign:
    return hftrac(network, TAU, mu=mu, **LAWS[law])


def changed(network: Network, *, std: float = 1.0, **link: Any) -> Network:
    """With other links, and deviations times `std`; a value that can be called is told the link."""
    links = tuple(
        msgspec.structs.replace(each, **{key: value(each) if callable(value) else value for key, value in link.items()})
        for each in network.links
    )
    demands = tuple(msgspec.structs.replace(each, std=each.std * std) for each in network.demands)
    return msgspec.structs.replace(network, links=links, demands=demands)


def scenario(network: Network, steps: int, policy: Policy | None = None, **options: Any) -> Scenario:
    policy = Fifo() if policy is None else policy
    usual = {"name": "test", "interval": TAU, "duration": steps * TAU, "warmup": 0.0}
    return routed(network, control=policy, **usual | options)


def one_link(mean: float = 1e7, *, capacity: float = 2e7, delay: int = 0, std: float = 0.0, **link: Any) -> Network:
    return Network(
        links=(Link(source="A", target="B", id="AB", capacity=capacity, delay=delay * TAU, **link),),
        demands=(Demand(source="A", target="B", mean=mean, std=std),),
    )


# --- the linear regime: what a design costs ---------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "mu"), [("tandem", 1.0), ("merge", 0.3), ("testbed", 1.0)])
@pytest.mark.parametrize("law", LAWS)
def test_where_nothing_saturates_a_law_costs_what_its_design_says(law: str, name: str, mu: float) -> None:
    network = changed(published(name), std=0.01, buffer=None)
    design = designed(network, law, mu)
    runs, backlog_setpoint = 192, 1e6
    policy = hftrac_policy(law, mu, backlog_setpoint=backlog_setpoint)
    found = simulate_network(scenario(network, 4000, policy, warmup=1.0), design.law, runs=runs, watch=False)
    rate, queue = found.totals["rate_square"].sum(axis=1), mu * found.totals["backlog_square"].sum(axis=1)
    cost = rate + found.totals["backlog_square"] @ np.full(len(found.links), mu)
    np.testing.assert_array_equal(found.figures()["cost", "network"], cost)
    certificate = design.certificate
    expected = (certificate.cost_rate, certificate.cost_queue, certificate.cost)
    for sample, value in zip((rate, queue, rate + queue), expected, strict=True):
        assert sample.std(ddof=1) / sqrt(runs) < TOLERANCE["cost"] / 3.0 * value
        assert abs(sample.mean() - value) < TOLERANCE["cost"] * value
    assert not found.totals["lost"].any()
    assert np.abs(found.totals["backlog"].mean(axis=0) / backlog_setpoint - 1.0).max() < 0.01


# --- any regime: each law as it is described, one run, one number at a time -------------------------------------------


class Run(NamedTuple):
    """What a plain simulation gives [bit/s]; backlogs and losses over the interval. All (T, N)."""

    arrived: np.ndarray
    backlog: np.ndarray
    rate: np.ndarray
    lost: np.ndarray
    command: np.ndarray


Command = Callable[[np.ndarray], np.ndarray]
"""From the state's deviations to those of the rates."""


def matrices(network: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and where each link's rates start, by f_l(n + 1) = u_l(n) and
    b_l(n + 1) = b_l(n) + Σ_k c_lk f_k(n − n_k) − u_l(n)."""
    model = network_model(network, TAU)
    N, delay, share = model.n_links, model.delay, model.coupling.toarray()
    first = np.concatenate([[0], np.cumsum(delay + 1)])
    n = first[-1] + N
    A, B = np.zeros((n, n)), np.zeros((n, N))
    for link in range(N):
        B[first[link], link], B[first[-1] + link, link] = 1.0, -1.0
        A[first[-1] + link, first[-1] + link] = 1.0
        for age in range(delay[link]):
            A[first[link] + age + 1, first[link] + age] = 1.0
        for k in range(N):
            A[first[-1] + link, first[k + 1] - 1] = share[link, k]
    return A, B, first


def predicting(law: StaticGain, network: Network, start: np.ndarray) -> Command:
    """u = K x̂, x̂(n) = A^d x(n − d) + Σ_{i<d} A^i B v(n − 1 − i), where v(n − 1) are the newest rates of x(n)."""
    A, B, first = matrices(network)
    d = law.information_delay
    past = [start] * (d + 1)

    def command(x: np.ndarray) -> np.ndarray:
        past.append(x)
        x_hat = past[-1 - d]
        for i in reversed(range(d)):
            x_hat = A @ x_hat + B @ past[-1 - i][first[:-1]]
        return law.gain @ x_hat

    return command


def own(law: MyopicGain, network: Network, start: np.ndarray) -> Command:
    """u_l = k_l b_l + g_l f_l."""
    _, _, first = matrices(network)
    return lambda x: law.backlog_gain * x[first[-1] :] + law.rate_gain * x[first[:-1]]


def finite(law: FirGain, network: Network, start: np.ndarray) -> Command:
    """Eq. (14): δ = x − x̂, u(n) = Σ_t M(t + 1) δ(n − t), x̂(n + 1) = Σ_t R(t + 2) δ(n − t).

    What the plant starts with is no disturbance: it goes on as it does when it is left alone.
    """
    A, _, first = matrices(network)
    N, n, T = len(law.links), len(A), max(column.u.shape[2] for column in law.columns)
    M, R = np.zeros((T, N, n)), np.zeros((T, n, n))
    for e, column in enumerate(law.columns):
        for j, state in enumerate([first[-1] + e, *range(first[e], first[e + 1])]):
            t = column.u.shape[2]
            M[:t, column.links, state] = column.u[j].T
            R[:t, first[-1] + column.links, state] = column.b[j].T
            for link in column.links:
                for age in range(law.delay[link] + 1):
                    R[age + 1 :, first[link] + age, state] = M[: T - age - 1, link, state]
            if j:  # what is in the line goes on
                for t in range(first[e + 1] - state):
                    R[t, state + t, state] = 1.0
    delta, free = np.zeros((T, n)), start

    def command(x: np.ndarray) -> np.ndarray:
        nonlocal delta, free
        x_hat = free + np.tensordot(R[1:], delta[:-1], ([0, 2], [0, 1]))
        delta, free = np.concatenate([[x - x_hat], delta[:-1]]), A @ free
        return np.tensordot(M, delta, ([0, 2], [0, 1]))

    return command


def filtering(law: FirGain, network: Network, start: np.ndarray) -> Command:
    """Eq. (14) of each link by itself, of its backlog alone: it knows nothing of the others."""
    _, _, first = matrices(network)
    phi, theta = (np.array([getattr(column, part)[0, 0] for column in law.columns]) for part in "ub")
    delta = np.zeros_like(phi)

    def command(x: np.ndarray) -> np.ndarray:
        nonlocal delta
        expected = np.sum(theta[:, 1:] * delta[:, :-1], axis=1)
        delta = np.concatenate([(x[first[-1] :] - expected)[:, None], delta[:, :-1]], axis=1)
        return np.sum(phi * delta, axis=1)

    return command


def following(law: AgedGain, network: Network, start: np.ndarray) -> Command:
    """Each disturbance x(n) − A x(n − 1) − B u(n − 1) followed by itself with the model, by its age and its link.

    `made[e, a]` is what those of age a + 1 at link e made of the state; the last age holds all that are older. What the
    plant starts with is an old one where all end with the same gain, else it is none.
    """
    A, B, first = matrices(network)
    N, ages = len(law.links), max(len(column.gains) for column in law.columns)
    F = np.zeros((N, ages, N, len(A)))
    for e, column in enumerate(law.columns):
        states = np.concatenate([*(np.arange(first[k], first[k + 1]) for k in column.links), first[-1] + column.links])
        for age in range(ages):
            F[e, age][np.ix_(column.links, states)] = column.gains[min(age, len(column.gains) - 1)]
    made = np.zeros((N, ages, len(A)))
    if all(len(column.links) == N for column in law.columns):
        made[0, -1] = start
    foreseen = start

    def command(x: np.ndarray) -> np.ndarray:
        nonlocal foreseen
        disturbance = x - foreseen
        for e in range(N):
            here = [first[e], first[-1] + e]
            made[e, 0, here] += disturbance[here]
        u = np.einsum("eaij,eaj->eai", F, made)
        total = u.sum(axis=(0, 1))
        foreseen = A @ x + B @ total
        moved = made @ A.T + u @ B.T
        made[:, 1:] = moved[:, :-1]
        made[:, -1] += moved[:, -1]
        made[:, 0] = moved[:, 0] if ages == 1 else 0.0
        return total

    return command


def literal(law: LinkRateLaw, network: Network, start: np.ndarray) -> Command:
    match law:
        case StaticGain():
            return predicting(law, network, start)
        case MyopicGain():
            return own(law, network, start)
        case AgedGain():
            return following(law, network, start)
        case FirGain() if all(len(column.links) == 1 for column in law.columns):
            return filtering(law, network, start)
        case FirGain():
            return finite(law, network, start)


def plain(requested: Scenario, law: LinkRateLaw | None, number: int = 0) -> Run:
    """The paper's fluid, step by step: what waits and comes is sent at the rate that is commanded, from 0 to the
    capacity; what is left beyond the buffer is lost."""
    network = graph_of(requested)
    model, policy = network_model(network, TAU), requested.control
    demand = DemandSource(requested, range(number, number + 1)).draw(requested.steps)[:, :, 0]
    c, injection, delay, N = model.coupling.toarray(), model.injection.toarray(), model.delay, model.n_links
    nominal = np.array([rate for rate in routing(network).load if rate > 0.0])
    by_name = {link.id: link for link in network.links}
    links = [by_name[name] for name in model.links]
    capacity = np.array([link.capacity for link in links])
    buffer = np.array([inf if link.buffer is None else link.buffer * 8.0 / TAU for link in links])
    backlog_setpoint = getattr(policy, "backlog_setpoint", 0.0) * 8.0 / TAU
    around = getattr(policy, "rate_scale", 1.0) * nominal
    paced = [not getattr(policy, "links", ()) or name in policy.links for name in model.links]
    past = int(delay.max())
    rates = [around] * (past + 1)  # f(n − past), ..., f(n)
    backlogs = [np.full(N, backlog_setpoint)] * (past + 1)

    def state() -> np.ndarray:
        lines = [rates[-1 - age][link] - around[link] for link in range(N) for age in range(delay[link] + 1)]
        return np.concatenate([lines, backlogs[-1] - backlog_setpoint])

    command = None if law is None else literal(law, network, state())
    kept = []
    for drawn in demand:
        arriving = injection @ drawn
        for link in range(N):
            arriving[link] += sum(c[link, k] * rates[-1 - delay[k]][k] for k in range(N))
        if command is not None:
            desired = around + command(state())
        elif isinstance(policy, StaticPacing):
            desired = policy.factor * nominal
        elif isinstance(policy, Backpressure):
            downstream = [sum(c[k, link] * backlogs[-1 - delay[link]][k] for k in range(N)) for link in range(N)]
            desired = backlogs[-1] + arriving - downstream
        else:
            desired = np.full(N, inf)
        service = np.where(paced, np.clip(desired, 0.0, capacity), capacity)
        sent = np.minimum(backlogs[-1] + arriving, service)
        left = backlogs[-1] + arriving - sent
        waiting = np.minimum(left, buffer)
        kept.append((arriving, waiting, sent, left - waiting, desired))
        rates.append(sent)
        backlogs.append(waiting)
    return Run(*np.array(kept).transpose(1, 0, 2))


def scaled(scale: float) -> GaussianTraffic:
    return GaussianTraffic(scale=scale)


def watched(found: Result) -> np.ndarray:
    """Backlogs, and what departs and is lost in each interval, all in bytes: (3, N, T)."""
    return np.array([found.series[name] for name in ("backlog", "departed", "lost")])


def check(requested: Scenario, law: LinkRateLaw | None = None, number: int = 0) -> Run:
    """One run both ways: every backlog, rate and loss, and the sums."""
    found = simulate_network(requested, law, runs=1, first_run=number)
    run = plain(requested, law, number)
    expected = np.array([run.backlog, run.rate, run.lost]).transpose(0, 2, 1) * TAU / 8.0
    for ours, theirs in zip(watched(found), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=TOLERANCE["trajectory"] * np.abs(theirs).max())
    np.testing.assert_allclose(found.time_s, TAU * np.arange(1, requested.steps + 1), rtol=TOLERANCE["same"])
    steps = requested.steps
    sums = (found.totals["arrived"], found.totals["departed"], found.totals["lost"], found.totals["backlog"])
    scales = (TAU / 8.0, TAU / 8.0, TAU / 8.0, TAU / 8.0 / steps)
    for ours, theirs, scale in zip(sums, (run.arrived, run.rate, run.lost, run.backlog), scales, strict=True):
        total = theirs.sum(axis=0) * scale
        np.testing.assert_allclose(ours[0], total, rtol=0.0, atol=TOLERANCE["trajectory"] * np.abs(total).max())
    return run


def tight(name: str) -> Network:
    """Buffers that hold what comes in a fifth of an interval, at a high load that fluctuates twice as much."""
    share = 0.2 * TAU / 8.0
    network = changed(published(name), std=1.5, buffer=lambda link: share * link.capacity)
    return at_utilization(network, 0.95)


def saturated(run: Run, network: Network) -> set[str]:
    """Which kinds of saturation came about."""
    model = network_model(network, TAU)
    by_name = {link.id: link for link in network.links}
    capacity = np.array([by_name[name].capacity for name in model.links])
    kinds = {
        "loss": run.lost > 0.0,
        "empty": (run.rate < np.clip(run.command, 0.0, capacity) - 1.0) & (run.backlog == 0.0),
        "above": run.command > capacity + 1.0,
        "below": run.command < -1.0,
    }
    return {kind for kind, where in kinds.items() if where.any()}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("law", LAWS)
def test_where_all_saturates_every_law_does_what_is_said_of_it(law: str, name: str) -> None:
    network = tight(name)
    design = designed(network, law, 0.5)
    run = check(scenario(network, 300, hftrac_policy(law, 0.5)), design.law, number=3)
    assert saturated(run, network) >= {"loss", "empty", "above"}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    "policy", [Fifo(), StaticPacing(factor=1.02), StaticPacing(factor=50.0), Backpressure()], ids=repr
)
def test_the_peers_do_what_is_said_of_them(policy: Policy, name: str) -> None:
    run = check(scenario(tight(name), 400, policy))
    assert run.lost.any()
    assert (run.rate < run.arrived).any()


def random_network(seed: int) -> Network:
    """Nodes 0, ..., 4, links from lower to higher ones with delays of 0 to 3 samples, a demand from 0 to 4 and others
    in between that split at random; capacities up to 1.3 times what goes through, and buffers with and without a bound.
    """
    random = np.random.default_rng(seed)
    pairs = [(i, i + 1) for i in range(4)] + [(0, 2), (1, 3), (2, 4), (0, 3)][: random.integers(0, 4)]
    demands = []
    for i in range(int(random.integers(1, 4))):
        source = int(random.integers(0, 4)) if i else 0
        target = int(random.integers(source + 1, 5)) if i else 4
        split = {}
        for node in range(source, target):
            out = [b for a, b in pairs if a == node and b <= target]
            for b, share in zip(out, random.dirichlet(np.ones(len(out))), strict=True):
                split[f"{node}->{b}"] = float(share)
        mean = float(random.uniform(1e6, 5e6))
        std = float(random.uniform(0.0, 0.6) * mean)
        demands.append(Demand(id=str(i), source=str(source), target=str(target), mean=mean, std=std, split=split))
    links = [
        Link(source=str(a), target=str(b), capacity="1Gbit", delay=int(random.integers(0, 4)) * TAU) for a, b in pairs
    ]
    free = Network(links=tuple(links), demands=tuple(demands))
    load = dict(zip((link.id for link in links), routing(free).load, strict=True))

    def buffer(link: Link) -> float | None:
        return float(random.uniform(0.1, 3.0)) * max(load[link.id], 1e6) * TAU / 8.0 if random.integers(4) else None

    return changed(
        free, capacity=lambda link: max(load[link.id], 1e6) * float(random.uniform(1.01, 1.3)), buffer=buffer
    )


@pytest.mark.parametrize("law", LAWS)
def test_links_that_are_not_paced_send_at_their_capacity_and_the_law_sees_it(law: str) -> None:
    network = tight("testbed")
    policy = hftrac_policy(law, 0.5, links=("e1", "s21", "s13"))
    run = check(scenario(network, 200, policy), designed(network, law, 0.5).law)
    free = [network_model(network, TAU).links.index(name) for name in ("e2", "s23")]
    assert (run.backlog[run.rate[:, free[0]] < 42e6 * (1.0 - 1e-12), free[0]] == 0.0).all()
    assert saturated(run, network) >= {"loss", "empty"}


def test_static_pacing_of_some_links_leaves_the_others_fifo() -> None:
    network = tight("merge")
    run = check(scenario(network, 200, StaticPacing(factor=0.9, links=("L3",))))
    alone = check(scenario(network, 200, Fifo()))
    np.testing.assert_array_equal(run.rate[:, :2], alone.rate[:, :2])
    assert run.rate[:, 2].max() == pytest.approx(0.9 * 0.95 * 36e6, rel=TOLERANCE["same"])


@pytest.mark.parametrize(("rate_scale", "backlog_setpoint"), [(1.04, 0.0), (0.97, 2500.0), (1.0, 2500.0)])
@pytest.mark.parametrize("law", LAWS)
def test_laws_around_other_rates_and_backlogs(law: str, rate_scale: float, backlog_setpoint: float) -> None:
    network = tight("merge")
    policy = hftrac_policy(law, 0.5, rate_scale=rate_scale, backlog_setpoint=backlog_setpoint)
    run = check(scenario(network, 300, policy, seed=11), designed(network, law, 0.5).law, number=1)
    assert saturated(run, network) >= {"loss", "empty"}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("law", LAWS)
def test_laws_of_random_networks(law: str, seed: int) -> None:
    """Demands that split, lines of several samples, links that nothing comes to but from others."""
    network = random_network(seed)
    check(scenario(network, 150, hftrac_policy(law, 0.3), seed=seed), designed(network, law, 0.3).law)


# --- conservation -----------------------------------------------------------------------------------------------------


POLICIES = st.sampled_from(["fifo", "static", "backpressure", *LAWS])


def with_policy(network: Network, name: str) -> tuple[Policy, LinkRateLaw | None]:
    peers = {"fifo": Fifo(), "static": StaticPacing(factor=1.05), "backpressure": Backpressure()}
    return (peers[name], None) if name in peers else (hftrac_policy(name), designed(network, name).law)


def in_flight(rates: np.ndarray, requested: Scenario, step: int) -> float:
    """What is in the lines between links after so many steps [byte]; before the first all send at their nominal rates.

    `rates` is (N, T). f_k(n) is on its way until it arrives in the step n_k samples later.
    """
    model, load = network_model(graph_of(requested), TAU), routing(graph_of(requested)).load
    onward = model.coupling.toarray().sum(axis=0)
    before = np.repeat(load[load > 0.0][:, None], model.delay.max() + 1, axis=1)
    f = np.concatenate([before, rates], axis=1)  # f[k, past + n] is f_k(n)
    past = before.shape[1] - 1
    parts = [onward[k] * f[k, past + step - n_k : past + step + 1].sum() for k, n_k in enumerate(model.delay)]
    return float(sum(parts)) * TAU / 8.0


@given(st.integers(0, 2**32 - 1), POLICIES, st.integers(0, 30))
@settings(max_examples=20)
def test_nothing_comes_from_nowhere_and_nothing_goes_there(seed: int, name: str, warmup: int) -> None:
    network = random_network(seed)
    policy, law = with_policy(network, name)
    requested = scenario(network, 90, policy, warmup=warmup * TAU, seed=seed)
    found = simulate_network(requested, law, runs=2)
    balance = found.totals["departed"] + found.totals["lost"] + found.totals["growth"]
    atol = TOLERANCE["conservation"] * found.totals["arrived"].max()
    np.testing.assert_allclose(balance, found.totals["arrived"], rtol=0.0, atol=atol)
    rates = found.series["departed"] * 8.0 / TAU
    lines = in_flight(rates, requested, 90) - in_flight(rates, requested, warmup)
    went = found.totals["left"][0] + found.totals["lost"][0].sum() + found.totals["growth"][0].sum() + lines
    assert went == pytest.approx(found.totals["entered"][0], rel=TOLERANCE["conservation"])
    after = found.series["backlog"]
    start = after[:, warmup - 1] if warmup else np.zeros(len(after))
    np.testing.assert_allclose(found.totals["growth"][0], after[:, -1] - start, rtol=0.0, atol=atol)
    backlogs = np.array([inf if link.buffer is None else link.buffer for link in network.links])
    assert (after.max(axis=1) <= backlogs * (1.0 + TOLERANCE["same"])).all()
    assert after.min() >= 0.0


# --- one seed, one answer ---------------------------------------------------------------------------------------------


ARRAYS = ("entered", "left", "arrived", "departed", "lost", "growth", "backlog", "rate_square", "backlog_square")


def same(found: Result, parts: Iterable[Result]) -> None:
    """Bit by bit."""
    parts = list(parts)
    for name in ARRAYS:
        np.testing.assert_array_equal(found.totals[name], np.concatenate([each.totals[name] for each in parts]))


@pytest.mark.parametrize("law", ["god", "centralized", "fir", "exact in band", "myopic fir"])
def test_a_run_is_the_same_in_whatever_company_it_is(law: str) -> None:
    """Blocks of 64 runs, and demands that are drawn in pieces of other lengths for other numbers of runs."""
    network = tight("testbed")
    requested, controller = (
        scenario(network, 2500, hftrac_policy(law, 0.5), warmup=0.5),
        designed(network, law, 0.5).law,
    )
    found = simulate_network(requested, controller, runs=70)
    sizes = (1, 7, 40, 22)
    first = np.cumsum((0, *sizes))
    parts = [
        simulate_network(requested, controller, runs=size, first_run=int(start))
        for size, start in zip(sizes, first, strict=False)
    ]
    same(found, parts)
    np.testing.assert_array_equal(watched(found), watched(parts[0]))
    assert not np.array_equal(watched(parts[1]), watched(parts[0]))
    assert len(np.unique(found.totals["entered"])) == 70
    across = simulate_network(requested, controller, runs=8, first_run=60)
    for name in ARRAYS:
        np.testing.assert_array_equal(across.totals[name], found.totals[name][60:68])


def test_neither_workers_nor_watching_change_a_bit() -> None:
    network = tight("merge")
    requested, controller = scenario(network, 300, hftrac_policy("fir")), designed(network, "fir").law
    alone = simulate_network(requested, controller, runs=2 * LANES + 2)
    shares: list[float] = []
    together = simulate_network(requested, controller, runs=2 * LANES + 2, n_jobs=2, progress=shares.append)
    blind = simulate_network(requested, controller, runs=2 * LANES + 2, watch=False)
    same(alone, [together])
    same(alone, [blind])
    np.testing.assert_array_equal(watched(together), watched(alone))
    assert watched(alone).shape == (3, 3, 300)
    assert alone.time_s[[0, -1]] == pytest.approx([TAU, 3.0])
    assert not blind.series.values
    assert blind.time_s.shape == (0,)
    assert shares == pytest.approx([1.0 / 3.0, 2.0 / 3.0, 1.0])


@pytest.mark.parametrize("name", NETWORKS)
def test_what_demands_send_does_not_depend_on_the_policy(name: str) -> None:
    """Common random numbers: policies are compared under the same traffic."""
    network = tight(name)
    offered = []
    for policy in ("fifo", "static", "backpressure", *LAWS):
        chosen, law = with_policy(network, policy)
        offered.append(simulate_network(scenario(network, 100, chosen, warmup=0.1), law, runs=5).totals["entered"])
    for each in offered[1:]:
        np.testing.assert_array_equal(each, offered[0])
    other = simulate_network(scenario(network, 100, warmup=0.1, seed=2), runs=5).totals["entered"]
    assert (other != offered[0]).all()


def test_results_can_not_be_changed_and_say_where_they_come_from() -> None:
    requested = scenario(published("tandem"), 20, seed=7)
    found = simulate_network(requested, runs=3, argv=("netctrl", "simulate"))
    assert set(ARRAYS) <= found.totals.values.keys()
    arrays = [array for part in (found.totals, found.series) for _, array in part.values.values()]
    assert not any(array.flags.writeable for array in (*arrays, found.time_s))
    assert (found.scenario, found.simulator, found.links, found.runs) == (requested, "fluid", ("L1", "L2"), 3)
    assert found.provenance.seed == 7
    assert ("cost", "network") not in found.measures()  # links without a weight
    assert "weight" not in found.totals


# --- closed forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capacity", [1.5e7, 1e7])
def test_a_link_that_can_take_all_sends_it_at_once(capacity: float) -> None:
    found = simulate_network(scenario(one_link(1e7, capacity=capacity, buffer=1e4), 200))
    np.testing.assert_array_equal(found.series["departed"], 1e7 * (TAU / 8.0))
    assert not found.series["backlog"].any()
    assert not found.series["lost"].any()
    assert found.totals["left"] == found.totals["entered"] == pytest.approx(1e7 * 2.0 / 8.0, rel=TOLERANCE["same"])
    assert found.figures()["loss", "network"].tolist() == [0.0]


@pytest.mark.parametrize("scale", [1.25, 3.0])
def test_of_a_full_link_what_comes_above_its_capacity_is_lost(scale: float) -> None:
    """(d − C)/d, once the buffer is full: which takes its size over d − C."""
    C, buffer = 1e7, 20_000.0
    d = scale * C
    traffic = GaussianTraffic(scale=scale)
    requested = scenario(one_link(C, capacity=C, buffer=buffer), 400, spread=traffic, warmup=1.0)
    found = simulate_network(requested)
    assert found.figures()["loss", "network"] == pytest.approx((d - C) / d, rel=TOLERANCE["closed form"])
    assert found.totals["backlog"][0, 0] == pytest.approx(buffer, rel=TOLERANCE["closed form"])
    assert found.totals["departed"][0, 0] == pytest.approx(C * found.seconds / 8.0, rel=TOLERANCE["closed form"])
    n = np.arange(1, 401)
    grown = np.minimum(n * (d - C) * TAU / 8.0, buffer)
    np.testing.assert_allclose(found.series["backlog"][0], grown, rtol=TOLERANCE["closed form"])
    np.testing.assert_allclose(np.cumsum(found.series["lost"][0]), n * (d - C) * TAU / 8.0 - grown, atol=1e-5)


def test_behind_a_rate_below_the_mean_the_backlog_grows_with_time() -> None:
    found = simulate_network(scenario(one_link(), 300, StaticPacing(factor=0.9)))
    expected = np.arange(1, 301) * 0.1e7 * TAU / 8.0
    np.testing.assert_allclose(found.series["backlog"][0], expected, rtol=TOLERANCE["closed form"])
    assert found.totals["growth"][0, 0] == pytest.approx(expected[-1], rel=TOLERANCE["closed form"])
    assert found.totals["backlog"][0, 0] == pytest.approx(expected.mean(), rel=TOLERANCE["closed form"])
    np.testing.assert_allclose(found.series["departed"][0] * 8.0 / TAU, 0.9e7, rtol=TOLERANCE["same"])
    assert found.totals["left"][0] == pytest.approx(0.9 * found.totals["entered"][0], rel=TOLERANCE["closed form"])


def test_no_factor_paces_above_the_capacity() -> None:
    found = simulate_network(scenario(one_link(1e7, capacity=1.1e7), 50, StaticPacing(factor=2.0), spread=scaled(2.0)))
    np.testing.assert_array_equal(found.series["departed"], 1.1e7 * (TAU / 8.0))


@pytest.mark.parametrize("n_k", [0, 1, 5])
def test_a_line_delivers_after_its_delay(n_k: int) -> None:
    """All demand ends at the beginning; what the first link has sent until then still comes, in n_k + 1 steps."""
    links = [
        Link(source="A", target="B", capacity="20Mbit", delay=n_k * TAU),
        Link(source="B", target="C", capacity="20Mbit", delay=9 * TAU),
    ]
    network = Network(links=tuple(links), demands=(Demand(source="A", target="C", mean="10Mbit"),))
    found = simulate_network(scenario(network, 20, spread=scaled(0.0)))
    first, second = found.series["departed"]
    assert not first.any()
    np.testing.assert_array_equal(second, np.where(np.arange(20) <= n_k, 1e7 * (TAU / 8.0), 0.0))
    assert found.totals["entered"][0] == 0.0
    assert found.totals["left"][0] == pytest.approx((n_k + 1) * 1e7 * TAU / 8.0, rel=TOLERANCE["same"])
    assert found.figures()["loss", "network"].tolist() == [0.0]  # and not 0/0


@pytest.mark.parametrize("law", [law for law in LAWS if law != "centralized"])
@pytest.mark.parametrize(("mu", "n_l"), [(0.1, 0), (1.0, 3)])
def test_a_single_link_answers_with_its_closed_form(law: str, mu: float, n_l: int) -> None:
    """k = p/(1 + p), p = (mu + √(mu² + 4 mu))/2: the backlog goes to where it makes up for a demand that isn't the
    nominal one, b(n) = b* + (d − f*)/k (1 − (1 − k)^n), and so does the rate."""
    d, mean, backlog_setpoint = 1.1e7, 1e7, 50_000.0
    k = (p := 0.5 * (mu + sqrt(mu * mu + 4.0 * mu))) / (1.0 + p)
    network = one_link(mean, std=1e6, delay=n_l)
    controller = designed(network, law, mu).law
    quiet = changed(network, std=0.0)
    policy = hftrac_policy(law, mu, backlog_setpoint=backlog_setpoint)
    found = simulate_network(scenario(quiet, 60, policy, spread=scaled(d / mean)), controller)
    n = np.arange(1, 61)
    rates = (d - mean) / k * (1.0 - (1.0 - k) ** n)
    rel = 1e-3 if law in ("fir", "fir in band", "myopic fir") else TOLERANCE["closed form"]  # of finite length
    np.testing.assert_allclose(found.series["backlog"][0], backlog_setpoint + rates * TAU / 8.0, rtol=rel)
    expected = mean + k * np.concatenate([[0.0], rates[:-1]])
    np.testing.assert_allclose(found.series["departed"][0] * 8.0 / TAU, expected, rtol=rel)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_a_central_controller_does_nothing_until_it_hears(d: int) -> None:
    network = one_link(std=1e6)
    policy = HftracPolicy(architecture="centralized", information_delay=d, mu=1.0, backlog_setpoint=1e5)
    law = hftrac(network, TAU, mu=1.0, architecture="centralized", information_delay=d).law
    requested = scenario(changed(network, std=0.0), 30, policy, spread=scaled(1.1))
    rate = simulate_network(requested, law).series["departed"][0] * 8.0 / TAU
    np.testing.assert_allclose(rate[: d + 1], 1e7, rtol=TOLERANCE["closed form"])
    assert rate[d + 1] == pytest.approx(1e7 + law.gain[0, -1] * 1e6, rel=TOLERANCE["closed form"])


# --- what counts, and how much is sent --------------------------------------------------------------------------------


@pytest.mark.parametrize("warmup", [0, 1, 77, 299])
def test_figures_are_of_the_last_part_alone(warmup: int) -> None:
    network, policy = tight("merge"), hftrac_policy("god", 0.5, backlog_setpoint=1000.0)
    requested = scenario(network, 300, policy, warmup=warmup * TAU)
    law = designed(network, "god", 0.5).law
    found = simulate_network(requested, law, runs=2)
    count = 300 - warmup
    assert found.seconds == pytest.approx(count * TAU)
    run = plain(requested, law)
    counted = Run(*(each[warmup:] for each in run))
    nominal = 0.95 * np.array([18e6, 18e6, 36e6])
    before = run.backlog[warmup - 1] if warmup else np.full(3, 1000.0 * 8.0 / TAU)
    expected = {
        "arrived": counted.arrived.sum(axis=0) * TAU / 8.0,
        "departed": counted.rate.sum(axis=0) * TAU / 8.0,
        "lost": counted.lost.sum(axis=0) * TAU / 8.0,
        "growth": (counted.backlog[-1] - before) * TAU / 8.0,
        "backlog": counted.backlog.mean(axis=0) * TAU / 8.0,
        "rate_square": np.mean((counted.rate - nominal) ** 2, axis=0),
        "backlog_square": np.mean((counted.backlog - 1000.0 * 8.0 / TAU) ** 2, axis=0),
        "entered": counted.arrived[:, :2].sum() * TAU / 8.0,
        "left": counted.rate[:, 2].sum() * TAU / 8.0,
    }
    for name, value in expected.items():
        scale = np.abs(value).max()
        np.testing.assert_allclose(found.totals[name][0], value, rtol=0.0, atol=TOLERANCE["trajectory"] * scale)
    assert watched(found).shape == (3, 3, 300)  # from the very beginning
    assert found.figures()["cost", "network"][0] == pytest.approx(
        np.sum(expected["rate_square"] + 0.5 * expected["backlog_square"])
    )


def test_weights_of_links_make_the_cost_where_the_policy_has_none() -> None:
    """lambda [1/s²] times the interval's square."""
    weight = {"L1": 1e4, "L2": 5e3}
    found = simulate_network(scenario(changed(published("tandem"), weight=lambda link: weight[link.id]), 50), runs=2)
    expected = found.totals["rate_square"].sum(axis=1) + found.totals["backlog_square"] @ [1.0, 0.5]
    np.testing.assert_allclose(found.figures()["cost", "network"], expected, rtol=TOLERANCE["same"])
    some = changed(published("tandem"), weight=lambda link: weight[link.id] if link.id == "L1" else None)
    assert ("cost", "network") not in simulate_network(scenario(some, 50)).measures()


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("utilization", [0.5, 0.9, 1.0])
def test_demands_are_scaled_until_the_busiest_link_is_used_so_much(name: str, utilization: float) -> None:
    network = published(name)
    scaled = at_utilization(network, utilization)
    use = routing(scaled).load / np.array([link.capacity for link in network.links])
    assert use.max() == pytest.approx(utilization, rel=TOLERANCE["same"])
    factors = [new.mean / old.mean for new, old in zip(scaled.demands, network.demands, strict=True)]
    assert factors == pytest.approx([factors[0]] * len(factors), rel=TOLERANCE["same"])
    assert [each.std for each in scaled.demands] == [each.std for each in network.demands]
    assert scaled.links == network.links
    far = msgspec.structs.replace(
        network, demands=tuple(msgspec.structs.replace(each, mean=50.0 * each.mean) for each in network.demands)
    )  # no link could carry it
    capacity = np.array([link.capacity for link in network.links])
    assert (routing(far).load <= capacity * (1.0 + 1e-9)).all()
    np.testing.assert_allclose(routing(far).offered, 50.0 * routing(network).load, rtol=TOLERANCE["same"])
    back = at_utilization(far, utilization)
    assert [each.mean for each in back.demands] == pytest.approx([each.mean for each in scaled.demands])


def test_a_scenario_asks_for_a_utilization() -> None:
    network = changed(published("merge"), std=0.1, buffer=None)
    found = simulate_network(scenario(network, 3000, utilization=0.9), runs=4)
    assert found.totals["departed"][:, 2] * 8.0 / found.seconds / 36e6 == pytest.approx([0.9] * 4, rel=2e-3)
    same(found, [simulate_network(scenario(at_utilization(network, 0.9), 3000), runs=4)])
    over = changed(network, capacity=lambda link: link.capacity / 3.0)
    again = simulate_network(scenario(over, 500, utilization=0.9), runs=2)
    assert again.totals["departed"][:, 2] * 8.0 / again.seconds / 12e6 == pytest.approx([0.9] * 2, rel=1e-2)
    full = simulate_network(scenario(over, 500, warmup=1.0))  # without a bound what can't be sent waits
    assert full.totals["departed"][:, 2] * 8.0 / full.seconds == pytest.approx([12e6], rel=1e-9)
    assert full.totals["growth"][:, 2].min() > 0.0


# --- overload ---------------------------------------------------------------------------------------------------------


OVERLOADED = Network(
    links=(
        Link(source="A", target="B", id="L1", capacity=40e6, delay=0.01, buffer=25e3),
        Link(source="B", target="C", id="L2", capacity=20e6, delay=0.01, buffer=25e3),
    ),
    demands=(
        Demand(source="A", target="C", id="far", mean=30e6, std=1e6),
        Demand(source="B", target="C", id="near", mean=5e6, std=1e6),
    ),
)


@pytest.mark.parametrize("utilization", [1.25, 2.0, 40.0])
def test_an_overloaded_link_loses_what_it_cannot_send(utilization: float) -> None:
    """1 - C/mean of what comes, in the long run."""
    found = simulate_network(scenario(one_link(buffer=1e4), 400, warmup=1.0, utilization=utilization))
    assert found.totals["lost"][0, 0] / found.totals["arrived"][0, 0] == pytest.approx(
        1.0 - 1.0 / utilization, rel=1e-12
    )
    assert found.totals["departed"][0, 0] * 8.0 / found.seconds == pytest.approx(2e7, rel=1e-12)


def test_demands_of_an_overloaded_link_lose_the_same_share() -> None:
    """First in, first out, as in `routing`; delays are those of the path and of the full buffer, 25 kB at 20 Mbit/s."""
    found = simulate_network(scenario(changed(OVERLOADED, std=0.0), 1000, warmup=2.0, per_demand=True))
    kept = routing(OVERLOADED).delivered / [30e6, 5e6]
    assert kept == pytest.approx([20.0 / 35.0] * 2, rel=1e-12)
    lost = found.totals["flow_lost"][0] / found.totals["offered"][0]
    assert lost == pytest.approx(1.0 - kept, rel=1e-9)
    assert found.totals["one_way"][0] == pytest.approx([0.03, 0.02], abs=TAU)


@pytest.mark.parametrize("law", LAWS)
def test_under_every_law_an_overloaded_link_stays_busy(law: str) -> None:
    """A law that takes the steady loss for traffic that didn't come slows the link down, in the end to a standstill."""
    design = designed(OVERLOADED, law)
    found = simulate_network(scenario(OVERLOADED, 2000, hftrac_policy(law), warmup=5.0), design.law)
    assert found.totals["departed"][0, 1] * 8.0 / found.seconds == pytest.approx(20e6, rel=1e-9)
    lost = found.totals["lost"][0].sum() / found.totals["entered"][0]
    assert lost == pytest.approx(15.0 / 35.0, rel=0.01)  # 12 standard errors of the mean load
    assert [each.demand for each in design.certificate.unmet] == ["far", "near"]


def test_a_law_of_the_nominal_network_is_for_all_utilizations() -> None:
    network = published("merge")
    law = designed(network, "god").law
    for utilization in (0.5, 1.0):
        check(scenario(network, 100, hftrac_policy("god"), utilization=utilization), law)


# --- refusals ---------------------------------------------------------------------------------------------------------


def refused(argument: str, got: object, takes: str, call: Callable[[], object]) -> None:
    with pytest.raises(InvalidValue) as error:
        call()
    assert error.value.argument == argument
    assert error.value.got == got or (got != got and error.value.got != error.value.got)
    assert takes in error.value.takes


@pytest.mark.parametrize(
    ("policy", "takes"),
    [
        (hftrac_policy("god"), "the law of a Design, such as that of netctrl.hftrac, for a control of kind hftrac"),
        (DesignPolicy(file="design.json"), "its law, for a control of kind design"),
    ],
)
def test_a_policy_that_needs_a_law_says_so(policy: Policy, takes: str) -> None:
    refused("law", None, takes, lambda: simulate_network(scenario(published("tandem"), 10, policy)))


def test_laws_for_other_networks_are_refused() -> None:
    network = published("tandem")
    law = designed(network, "god").law
    requested = scenario(network, 10, hftrac_policy("god"))
    other = scenario(published("merge"), 10, hftrac_policy("god"))
    refused("law.links", ("L1", "L2"), "('L1', 'L2', 'L3') of this", lambda: simulate_network(other, law))
    longer = changed(network, delay=lambda link: 3 * TAU if link.id == "L1" else link.delay)
    far = scenario(longer, 10, hftrac_policy("god"))
    refused("law.delay", (1, 1), "(3, 1) of this scenario's network", lambda: simulate_network(far, law))
    slow = routed(network, interval=0.005, duration=1.0, warmup=0.0, control=hftrac_policy("god"))
    same_delays = msgspec.structs.replace(law, delay=np.array([2, 2]))
    refused("law.interval_s", TAU, "0.005 of this", lambda: simulate_network(slow, same_delays))
    simulate_network(requested, law)


@pytest.mark.parametrize("runs", [0, -1, 2.0, 1_000_001, True, nan])
def test_runs_are_a_whole_number(runs: Any) -> None:
    refused("runs", runs, "whole number", lambda: simulate_network(scenario(published("tandem"), 10), runs=runs))


@pytest.mark.parametrize("first", [-1, 0.5, "1"])
def test_the_first_run_is_a_whole_number(first: Any) -> None:
    requested = scenario(published("tandem"), 10)
    refused("first_run", first, "whole number", lambda: simulate_network(requested, first_run=first))


@pytest.mark.parametrize("policy", [StaticPacing(links=("L1", "L9")), hftrac_policy("god", links=("L9",))])
def test_links_that_are_paced_must_be_there(policy: Policy) -> None:
    refused("control.links", "L9", "ids of links; there are L1, L2", lambda: scenario(published("tandem"), 10, policy))


BUILT = {"graph": one_link(), "interval": TAU, "duration": 1.0, "warmup": 0.0}


@pytest.mark.parametrize(
    ("field", "value", "takes"),
    [
        ("duration", 0.015, "a whole number of intervals of 0.01 s"),
        ("duration", 1e8, "from 1 to 1e+09"),
        ("utilization", 0.0, "a share above 0, to 100"),
        ("utilization", 101.0, "a share above 0, to 100; above 1 the busiest link is overloaded"),
        ("graph", "tandem", "Network"),
        ("queue", "fifo", "droptail"),
        ("spread", "normal", "gaussian"),
        ("control", "lifo", "one of fifo, static, backpressure, credit, hftrac, design, track, or a table"),
        ("flows", (None,), "Flow"),
    ],
)
def test_scenarios_that_are_none_are_refused(field: str, value: Any, takes: str) -> None:
    refused(field, value, takes, lambda: routed(**BUILT | {field: value}))


def test_a_network_without_demands_is_no_scenario() -> None:
    bare = Network(links=one_link().links)
    refused("graph", "no demands", "at least one demand", lambda: routed(bare))


@pytest.mark.parametrize(
    ("kind", "field", "value", "takes"),
    [
        (StaticPacing, "factor", 0.0, "a factor above 0"),
        (StaticPacing, "factor", -1.0, "a factor above 0"),
        (StaticPacing, "factor", nan, "a factor above 0"),
        (StaticPacing, "links", "L1", "a list of text"),
        (HftracPolicy, "architecture", "gods", "god, centralized, coordinated, myopic"),
        (HftracPolicy, "mu", 0.0, "a weight above 0"),
        (HftracPolicy, "mu", nan, "a weight above 0"),
        (HftracPolicy, "information_delay", -1, "a whole number of samples"),
        (HftracPolicy, "information_delay", 0.5, "a whole number of samples"),
        (HftracPolicy, "reach", -1, "a whole number of samples"),
        (HftracPolicy, "horizon", 0, "auto, exact, or a whole number of samples"),
        (HftracPolicy, "horizon", "long", "auto, exact, or a whole number of samples"),
        (HftracPolicy, "communication", "loud", "out-of-band or in-band"),
        (HftracPolicy, "rate_scale", 0.0, "a factor above 0"),
        (HftracPolicy, "rate_scale", nan, "a factor above 0"),
        (HftracPolicy, "backlog_setpoint", -1.0, "a size from 0"),
        (HftracPolicy, "backlog_setpoint", nan, "a size from 0"),
        (DesignPolicy, "rate_scale", -1.0, "a factor above 0"),
        (DesignPolicy, "file", "", "the name of a Design file"),
        (DesignPolicy, "file", "a\0b", "the name of a Design file"),
        (GaussianTraffic, "scale", -1.0, "a factor from 0 to 100"),
        (GaussianTraffic, "scale", nan, "a factor from 0 to 100"),
    ],
)
def test_policies_and_traffic_that_are_none_are_refused(kind: type, field: str, value: Any, takes: str) -> None:
    needed = {HftracPolicy: {"architecture": "god"}, DesignPolicy: {"file": "design.json"}}
    refused(field, value, takes, lambda: kind(**needed.get(kind, {}) | {field: value}))


def test_a_memory_too_long_for_so_many_runs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("netctrl.sim.network.problem"), "_MAX_HISTORY", 1000)
    requested = scenario(one_link(delay=30), 10)
    refused("runs", 5, "fewer at a time: their history would take", lambda: simulate_network(requested, runs=5))


def test_links_that_carry_nothing_take_no_part() -> None:
    network = published("tandem")
    more = msgspec.structs.replace(
        network, links=(Link(source="D", target="S1", id="back", capacity="1Mbit", weight=1.0), *network.links)
    )
    assert link_problem(scenario(more, 10)).model.links == ("L1", "L2")
    same(simulate_network(scenario(network, 100), runs=2), [simulate_network(scenario(more, 100), runs=2)])
