"""The kernel of link networks against the same scheme in vectorised NumPy (a Python loop over steps, arrays over runs),
and how it scales.
"""

import os
import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
import scipy.sparse as sp
from rows import Row, against, alternate, relative, span

import netctrl
from netctrl.model.datasets import network_path, sweep_path
from netctrl.model.law import MyopicGain
from netctrl.model.network import Demand, Link, Network, read_network
from netctrl.scenario.builders import routed
from netctrl.scenario.network.graph import graph_of
from netctrl.scenario.network.policy import HftracPolicy
from netctrl.scenario.network.sweep import read_sweep
from netctrl.sim.network.kernel import DEPARTED, LOST, WAITING, advance_links
from netctrl.sim.network.problem import LinkProblem, link_problem, link_state

MEGA = 1e6
INTERVAL = 0.01
RUNS = 128


def rows() -> Iterator[Row]:
    testbed = read_network(network_path("testbed"))
    god = HftracPolicy(architecture="god", mu=0.1)
    ready, demand = prepared(testbed, god, 2000)
    yield kernel("testbed, GOD", ready, demand, 3.0, 1.5e8)
    wide, more = prepared(tree(200), HftracPolicy(architecture="myopic", mu=0.1), 100, single)
    yield kernel("200 links, static gains", wide, more, 8.0, None)
    base = seconds(ready, demand)
    for mu in (1.0, 0.1, 0.01):
        yield from responses(testbed, mu, base, demand)
    yield workers()


def single(scenario: netctrl.Scenario) -> MyopicGain:
    """Each link's gain as if it were alone: k = p/(1 + p), p = (mu + √(mu² + 4 mu))/2."""
    model = netctrl.network_model(graph_of(scenario), INTERVAL)
    mu = scenario.control.mu
    p = 0.5 * (mu + (mu**2 + 4.0 * mu) ** 0.5)
    k = np.full(model.n_links, p / (1.0 + p))
    zero = np.zeros(model.n_links)
    return MyopicGain(interval_s=INTERVAL, links=model.links, delay=model.delay, backlog_gain=k, rate_gain=zero)


def prepared(
    network: Network, policy: HftracPolicy, steps: int, law: Callable = netctrl.scenario_law
) -> tuple[LinkProblem, np.ndarray]:
    """The problem, and demands of shape (steps, I, RUNS)."""
    scenario = routed(network, interval=INTERVAL, duration=steps * INTERVAL, warmup=0.0, control=policy)
    ready = link_problem(scenario, law(scenario))
    noise = np.random.default_rng(1).standard_normal((steps, len(network.demands), RUNS))
    mean, std = (np.array([getattr(demand, name) for demand in network.demands]) for name in ("mean", "std"))
    return ready, np.maximum(mean[:, None] + std[:, None] * noise, 0.0)


def kernel(name: str, ready: LinkProblem, demand: np.ndarray, least: float, speed: float | None) -> Row:
    """Seconds for a million link-steps; the peer computes the same numbers."""
    millions = demand.shape[0] * RUNS * ready.model.n_links / 1e6
    turns = alternate(lambda: by_kernel(ready, demand), lambda: by_numpy(ready, demand), 7)
    ours, theirs = ([t / millions for t in times] for times in turns[:2])
    target = f">= {least:g}x" if speed is None else f"<= {1e6 / speed * 1e3:g} ms ({speed:g}/s) and >= {least:g}x"
    return against(
        f"links, a million link-steps: {name}",
        "vectorised NumPy",
        turns._replace(ours=ours, theirs=theirs),
        target,
        relative(*turns.answers, 1e-9, "sums"),
    )


def responses(network: Network, mu: float, base: list[float], demand: np.ndarray) -> Iterator[Row]:
    """Coordinated control, finite and exact, against GOD's static gain."""
    for horizon in ("auto", "exact"):
        policy = HftracPolicy(architecture="coordinated", mu=mu, horizon=horizon)
        ready, _ = prepared(network, policy, demand.shape[0])
        ours = seconds(ready, demand)
        factor = median(ours) / median(base)
        what = f"links, testbed, coordinated, {horizon}, mu = {mu:g} ({len(ready.taps.lag)} taps)"
        yield Row(
            what, span(ours), "GOD's static gain", span(base), f"1/{factor:.2f}", "<= 5 times slower", factor <= 5.0
        )


def workers() -> Row:
    """A sweep by one process and by two, for as long as half a minute each."""
    spec = read_sweep(sweep_path("hftrac-testbed"), network_path)
    scenario = spec.scenario | {"duration": 1000.0}
    spec = netctrl.SweepSpec(name=spec.name, scenario=scenario, runs=64, grid=spec.grid)
    times = []
    for jobs in (2, 1):
        netctrl.sweep(
            netctrl.SweepSpec(
                name="warm",
                scenario=scenario | {"duration": 10.0, "warmup": 0.0, "interval": 0.01},
                runs=4,
                grid=spec.grid,
            ),
            netctrl.scenario_law,
            n_jobs=jobs,
        )
        start = time.perf_counter()
        netctrl.sweep(spec, netctrl.scenario_law, n_jobs=jobs)
        times.append(time.perf_counter() - start)
    ratio = times[1] / times[0]
    met = ratio >= 1.7 if (os.cpu_count() or 1) > 1 else None
    return Row(
        "links, a sweep, 2 workers", span(times[:1]), "1 worker", span(times[1:]), f"{ratio:.3g}", ">= 1.7x", met
    )


def seconds(ready: LinkProblem, demand: np.ndarray, rounds: int = 7) -> list[float]:
    return alternate(lambda: by_kernel(ready, demand), lambda: None, rounds).ours


def by_kernel(ready: LinkProblem, demand: np.ndarray) -> np.ndarray:
    """Sums of rates, losses and backlogs, (3, N, RUNS)."""
    state = link_state(ready, RUNS)
    watched = np.zeros((3, ready.model.n_links, 0))
    advance_links(ready.plant, ready.taps, *ready.tiles, state, demand, 0, 0, watched, None)
    return state.sums.transpose(1, 0, 2)[[DEPARTED, LOST, WAITING], :, :RUNS]


def by_numpy(ready: LinkProblem, demand: np.ndarray) -> np.ndarray:
    """The same, with a sparse matrix where that is faster than a dense one."""
    plant, taps, model = ready.plant, ready.taps, ready.model
    N, delay = model.n_links, model.delay
    slots = int(max(delay.max(initial=0), taps.memory)) + 2
    rates = np.tile(plant.nominal[:, None], (slots, 1, RUNS))
    backlogs = np.full((slots, N, RUNS), plant.backlog_setpoint)
    kinds, lags = taps.series, taps.lag
    gains = []
    for lag in np.unique(lags):
        rows = np.repeat(np.arange(N), np.diff(taps.start))
        chosen = lags == lag
        for first in (0, N):
            of = chosen & (kinds >= first) & (kinds < first + N)
            if of.any():
                K = sp.csr_array((taps.coefficient[of], (rows[of], kinds[of] - first)), shape=(N, N))
                gains.append((int(lag), first, K if N > 20 else K.toarray()))
    C = model.coupling if N > 20 else model.coupling.toarray()
    inj = model.injection if N > 20 else model.injection.toarray()
    links, sums = np.arange(N), np.zeros((3, N, RUNS))
    capacity, buffer = plant.capacity[:, None], plant.buffer[:, None]
    for n in range(demand.shape[0]):
        u = np.repeat(taps.offset[:, None], RUNS, axis=1)
        for lag, first, K in gains:
            u += K @ (backlogs if first else rates)[(n - lag) % slots]
        x = C @ rates[(n - delay) % slots, links] + inj @ demand[n]
        offered = backlogs[n % slots] + x
        sent = np.minimum(offered, np.clip(u, 0.0, capacity))
        waiting = offered - sent
        after = np.minimum(waiting, buffer)
        rates[(n + 1) % slots], backlogs[(n + 1) % slots] = sent, after
        sums[0] += sent
        sums[1] += waiting - after
        sums[2] += after
    return sums


def tree(links: int) -> Network:
    """A binary tree whose leaves all send to its root: links toward it, each as wide as what it carries."""
    nodes = links + 1
    leaves = [node for node in range(nodes) if 2 * node + 1 >= nodes]
    load = dict.fromkeys(range(nodes), 0)
    for leaf in leaves:
        node = leaf
        while node:
            load[node] += 1
            node = (node - 1) // 2
    lines = tuple(
        Link(
            source=f"n{node}",
            target=f"n{(node - 1) // 2}",
            capacity=12.0 * MEGA * load[node],
            delay=INTERVAL,
            buffer=2e4 * load[node],
        )
        for node in range(1, nodes)
    )
    demands = tuple(Demand(source=f"n{leaf}", target="n0", mean=10.0 * MEGA, std=3.0 * MEGA) for leaf in leaves)
    return Network(links=lines, demands=demands, name="tree")
