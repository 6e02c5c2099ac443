"""HFTraC: the Riccati equation and localized synthesis, on the networks of `pods`.

Peers of the synthesis take the regions and the horizon from us and find the same responses. They leave out the lower
bound of the cost, which `localized` computes too.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import cvxpy
import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from pods import MU, TAU, Plant, plant, pods, timed, way
from rows import Agreement, Row, against, alternate, relative
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import splu

from netctrl.model.network_model import NetworkModel
from netctrl.plants.linearize import network_model, network_state_space
from netctrl.synthesis.localized.localized import LocalizedSynthesis
from netctrl.synthesis.localized.region import Region, regions
from netctrl.synthesis.riccati.dare import solve_dare

HORIZON = 40  # costs 6e-6 above the least one at most
WAYS = (("in-band", 0), ("out-of-band", 4), ("out-of-band", 8))
"""Communication, and reach: regions of up to 8, 36 and 68 links. In band only those hear that the fluid comes to."""
SIZES = (6, 63, 625)  # pods, for about 100, 1000 and 10,000 links


def rows() -> Iterator[Row]:
    for count in (3, 6):
        yield riccati(count)
    for communication, reach in WAYS[:2]:
        yield monolithic(plant(pods(2), communication, reach))
    for count, ways in ((2, WAYS[:2]), (8, WAYS)):
        for communication, reach in ways:
            yield from sparse_columns(plant(pods(count), communication, reach))
    for communication, reach in WAYS[:2]:
        yield growth(communication, reach)
    for communication, reach in WAYS:
        yield large(communication, reach)


# The Riccati equation. Floor: 17 n³ flops a doubling, n the states without the newest rates.


def riccati(count: int) -> Row:
    model = network_model(pods(count), TAU)
    system, _ = network_state_space(model)
    A, B, R = system.A.toarray(), system.B.toarray(), np.eye(model.n_links)
    Q = np.diag(np.repeat([0.0, MU], [model.first_backlog, model.n_links]))
    turns = alternate(lambda: solve_dare(A, B, Q, R), lambda: sl.solve_discrete_are(A, B, Q, R), rounds=3)
    found, X = turns.answers
    what, same = f"Riccati equation, {model.n_states} states", relative(found.X, X, 1e-8, "solutions")
    return against(what, "SciPy solve_discrete_are", turns, ">= 10x", same)


# All columns as one problem in cvxpy.


def monolithic(ready: Plant) -> Row:
    turns = alternate(lambda: ready.synthesis(HORIZON), lambda: by_cvxpy(ready), rounds=3)
    found, theirs = turns.answers
    same = relative(filters(ready.model, found), theirs, 1e-4, "responses")  # an interior point's tolerance
    peer = "cvxpy, one problem, CLARABEL"
    return against(f"localized, {ready.name}", peer, turns, ">= 50x", same)


def by_cvxpy(ready: Plant) -> np.ndarray:
    """M(t) for t = 1..T, of shape (T, N, n). Variables are the entries of R and M that may differ from 0, a vector for
    each t, which cvxpy takes far faster than matrices with constraints on their zeros."""
    model, T = ready.model, HORIZON
    system, _ = network_state_space(model)
    A, B = (sp.kron(sp.eye_array(model.n_states), part, format="csr") for part in (system.A, system.B))
    moves = [part.toarray() != 0.0 for part in (system.A, system.B)]
    acts = action_times(ready)
    backlog = np.tile(np.arange(model.n_states) >= model.first_backlog, model.n_states)
    state = np.eye(model.n_states, dtype=bool)
    R, at, cost, constraints, M = np.ones(model.n_states), entries(state), 0.0, [], []
    for t in range(1, T + 1):
        may = acts <= t - 1
        state = moves[0] @ state | moves[1] @ may
        after, chosen = entries(state), entries(may)
        M.append(cvxpy.Variable(len(chosen)))
        comes = A[after][:, at] @ R + B[after][:, chosen] @ M[-1]
        R, at = (cvxpy.Variable(len(after)) if t < T else np.zeros(len(after))), after
        constraints.append(comes == R)
        cost += cvxpy.sum_squares(M[-1]) + MU * cvxpy.sum_squares(R[np.flatnonzero(backlog[after])])
    problem = cvxpy.Problem(cvxpy.Minimize(cost), constraints)
    problem.solve(solver=cvxpy.CLARABEL)
    found = np.zeros((T, model.n_states * model.n_links))
    for t, variable in enumerate(M):
        found[t, entries(acts <= t)] = variable.value
    return found.reshape(T, model.n_states, model.n_links).transpose(0, 2, 1)


def entries(support: np.ndarray) -> np.ndarray:
    """Where a matrix may differ from 0, counted column by column."""
    return np.flatnonzero(support.ravel(order="F"))


def action_times(ready: Plant) -> np.ndarray:
    """(N, n) samples after which each link may act on what disturbs each state; inf outside of the region."""
    model, told = ready.model, ready.information
    lines = sp.csr_array((told.samples.astype(float), told.to, told.offsets))
    heard = dijkstra(lines)[np.ix_(told.node, told.node)].T
    acts = np.full(heard.shape, np.inf)
    for link, region in enumerate(around(ready)):
        acts[region.links, link] = heard[region.links, link]
    return acts[:, np.concatenate([np.repeat(np.arange(model.n_links), model.delay + 1), np.arange(model.n_links)])]


def around(ready: Plant) -> list[Region]:
    N = ready.model.n_links
    return list(regions(ready.model, np.full(N, MU), ready.information, np.full(N, ready.reach)).values())


def filters(model: NetworkModel, found: LocalizedSynthesis) -> np.ndarray:
    """Our M(t), in the same shape."""
    M = np.zeros((found.horizon, model.n_links, model.n_states))
    for link, column in enumerate(found.law.columns):
        states = [model.first_backlog + link, *range(*model.first_rate[link : link + 2])]
        M[:, column.links[:, None], states] = column.u.transpose(2, 1, 0)
    return M


# Each column by sparse LU: the matrix of a region is factorised once for all of its columns, and like regions once.
# Floor of ours: with n rows, a band of w and q columns, n w² + 4 n w q flops a region, on 8 n w bytes.


def sparse_columns(ready: Plant) -> Iterator[Row]:
    for method, name in ((by_kkt, "KKT system"), (by_dual, "normal equations")):
        turns = alternate(lambda: ready.synthesis(HORIZON), lambda how=method: by_lu(ready, how), rounds=3)
        found, theirs = turns.answers
        pairs = (
            (ours, part)
            for column, both in zip(found.law.columns, theirs, strict=True)
            for ours, part in zip((column.u, column.b), both, strict=True)
        )
        difference = max(np.abs(ours - part).max() for ours, part in pairs)
        same = Agreement("responses", float(difference), 1e-8)
        peer = f"SuperLU of each region's {name}"
        yield against(f"localized, {ready.name}", peer, turns, ">= 5x", same)


def by_lu(ready: Plant, solve: Callable[..., np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rates and backlogs of each link's columns, as `FirColumns` has them."""
    solved: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
    regions = around(ready)
    for region in regions:
        if region.key() not in solved:
            solved[region.key()] = columns(region, solve)
    return [solved[region.key()] for region in regions]


def by_kkt(E: sp.csc_array, weight: np.ndarray, g: np.ndarray) -> np.ndarray:
    K = sp.block_array([[sp.diags_array(weight), E.T], [E, None]], format="csc")
    factor = splu(K, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.001, options={"SymmetricMode": True})
    return factor.solve(np.concatenate([np.zeros((len(weight), g.shape[1])), g]))[: len(weight)]


def by_dual(E: sp.csc_array, weight: np.ndarray, g: np.ndarray) -> np.ndarray:
    by_weight = E @ sp.diags_array(1.0 / weight)
    factor = splu(
        (by_weight @ E.T).tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    return by_weight.T @ factor.solve(g)


def columns(region: Region, solve: Callable[..., np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """All of E z = g, whatever is at rest, in order of time: rates z first, then backlogs from the second sample on."""
    m, T = len(region.links), HORIZON
    when, link = np.divmod(np.arange(T * m), m)
    rates = np.flatnonzero((when >= region.heard[link]) & (when <= T - 2 - region.delay[link]))
    later = np.arange(m, T * m)
    column = np.full(T * m, -1)
    column[rates] = np.arange(len(rates))
    own = len(rates) + np.arange(len(later))
    parts = [(rates, column[rates], 1.0), (later - m, own, 1.0), (later, own, -1.0)]
    g = np.zeros((T * m, region.delay[0] + 2))
    g[0, 0] = 1.0
    offsets, fed, share = region.fed
    for feeding, to, c in zip(np.repeat(np.arange(m), np.diff(offsets)), fed, share, strict=True):
        chosen = rates[link[rates] == feeding]
        parts.append((chosen + (1 + region.delay[feeding]) * m - feeding + to, column[chosen], -c))
        if feeding == 0:
            ages = np.arange(region.delay[0] + 1)
            g[(region.delay[0] - ages) * m + to, 1 + ages] = c
    where = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    values = np.concatenate([np.full(len(part[0]), part[2]) for part in parts])
    E = sp.csc_array((values, where), shape=(T * m, len(rates) + len(later)))
    z = solve(E, np.concatenate([np.ones(len(rates)), region.weight[link[later]]]), g)
    u, b = np.zeros((2, T * m, g.shape[1]))
    u[rates], b[later], b[0, 0] = z[: len(rates)], z[len(rates) :], 1.0
    return tuple(part.reshape(T, m, -1).transpose(2, 1, 0) for part in (u, b))


# How time grows, and a network that is large.


def growth(communication: str, reach: int) -> Row:
    """In one thread, in seconds of the processor. Sizes take turns; of each the least counts, since noise only adds."""
    networks = [pods(count) for count in SIZES]
    timed(networks[0], communication, reach, 1, time.process_time)  # compiles
    rounds = [[timed(each, communication, reach, 1, time.process_time) for each in networks] for _ in range(3)]
    links = [len(network.links) for network in networks]
    whole = [min(one.model_s + one.synthesis_s for one in took) for took in zip(*rounds, strict=True)]
    synthesis = [min(one.synthesis_s for one in took) for took in zip(*rounds, strict=True)]
    power, alone = (float(np.polyfit(np.log(links), np.log(each), 1)[0]) for each in (whole, synthesis))
    what = f"localized, {', '.join(map(str, links))} links, {way(communication, reach)}"
    ours = f"{', '.join(f'{each:.3g}' for each in whole)} s"
    return Row(what, ours, f"(synthesis alone: N^{alone:.2f})", "", f"N^{power:.2f}", "<= N^1.1", power <= 1.1)


def large(communication: str, reach: int) -> Row:
    """A process of its own, from its start to its end."""
    start = time.perf_counter()
    command = [sys.executable, str(Path(__file__).with_name("pods.py").resolve()), communication, str(reach)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=tempfile.gettempdir(), text=True)
    seconds, one = time.perf_counter() - start, json.loads(done.stdout)
    what = f"process, {one['states']} states, {way(communication, reach)}, 2 threads"
    ours = f"{seconds:.3g} s (synthesis {one['synthesis_s']:.3g} s), {one['peak_gb']:.2g} GB"
    note = f"(processor: {one['processor_s']:.3g} s; responses: {one['responses_gb']:.2g} GB)"
    return Row(what, ours, note, "", "", "<= 60 s, <= 4 GB", seconds <= 60.0 and one["peak_gb"] <= 4.0)
