"""What a network's traffic does when links or nodes fail, and when demands grow or change over time."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, product
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from netctrl.core.errors import (
    FileError,
    InvalidValue,
    checked_flag,
    checked_function,
    checked_jobs,
    checked_number,
    checked_whole,
    checked_word,
    from_workers,
)
from netctrl.core.files import checked_path, write_atomically
from netctrl.engines.parts import open_parts
from netctrl.engines.what_if.failures import Failure, failures
from netctrl.engines.what_if.flows import OVER, Flows, flows
from netctrl.engines.what_if.record import DemandFigures, LinkFigures, WhatIf, WhatIfCase, WhatIfDetail
from netctrl.engines.what_if.routes import METRICS, SCHEMES, Graph, Routes, routes, tunnels
from netctrl.model.datasets import network_of
from netctrl.model.io.fields import optional, rate_or_0
from netctrl.model.io.json_file import read_json
from netctrl.model.io.provenance import provenance
from netctrl.model.network import Network, with_demands
from netctrl.model.networks.content import read_matrices

if TYPE_CHECKING:
    import networkx
    import pandas as pd

SCALE_TAKES = "a factor above 0 on all demands, to 1e6"
_BLOCK, _BLOCKS = 16, 1000  # cases in a block at least, and about how many blocks at most
_SHORT = 3.0
_HURT = 1e-3
_LEAST = 1e-9  # share of a demand below which a loss is rounding
_MAX_PART = 64 * 2**20
_KIND = "what-if"


class _Question(NamedTuple):
    """What all cases have in common."""

    network: Network
    graph: Graph
    scheme: str
    metric: str
    paths: list[list[np.ndarray]] | None
    times: tuple[str, ...]
    rates: np.ndarray
    """(T, D) matrices [bit/s]."""


_Asked = tuple[Failure, int, float]  # and the matrix's row and the scale


def what_if(
    network: Network | networkx.Graph | pd.DataFrame | str | os.PathLike[str],
    *,
    fail: str | os.PathLike[str] | None = "each-link",
    scale: float | Sequence[float] = 1.0,
    over: str | os.PathLike[str] | pd.DataFrame | None = None,
    demand_unit: float | str | None = None,
    reroute: str = "shortest",
    metric: str | None = None,
    top: int = 10,
    keep: str | os.PathLike[str] | None = None,
    resume: bool = False,
    n_jobs: int = 1,
    progress: Callable[[float], None] | None = None,
    notes: Iterable[str] = (),
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> WhatIf:
    """Loss, delay and utilization of a network's traffic under failures, growth and other demands.

    Each case routes the demands over what is left. A link to which more comes than it can send shares its capacity as
    its arrivals are and loses the rest, so that links behind it get less.

    Parameters
    ----------
    network : Network, networkx graph, DataFrame, path or str
        Network with demands; a name is that of a network that comes with netctrl.
    fail : str or path, optional
        "each-link": each line between two nodes, in both directions; "each-node"; a file with a failure a line, as in
        `cut: a->b, c`; None: none. The network without failures is always a case.
    scale : float or sequence of float
        Factors on all demands.
    over : path or DataFrame, optional
        Traffic matrices over time instead of the network's demands, as `read_network` takes `demands`.
    demand_unit : float or str, optional
        Rate for which 1 stands in matrices without a unit [bit/s].
    reroute : {"shortest", "ecmp", "k-paths", "min-max", "max-min"}
        How traffic is routed. "shortest": the shortest path. "ecmp": in equal shares over all next hops on shortest
        paths. "k-paths": in equal shares over those of 4 paths, chosen without failures, that are left, else as
        "shortest". "min-max": so that the greatest utilization is least, by linear programs for each case. "max-min":
        shortest paths, with sources limited to max-min fair rates. A demand's own `split` isn't used.
    metric : {"delay", "hops", "capacity"}, optional
        What paths have least of: delay, links, or the sum of inverse capacities; by default hops for "ecmp", else
        delay.
    top : int
        Number of cases that are given by link and by demand as well.
    keep : path, optional
        Folder that keeps finished blocks of cases until all are done.
    resume : bool
        Go on from the blocks in `keep`.
    n_jobs : int
        Number of processes, −1: all cores. Results don't depend on it.
    progress : callable, optional
        Called from time to time with the share done, from 0 to 1.
    notes, argv, inputs : iterable
        Notes on the network, command line and files, for the record.

    Returns
    -------
    WhatIf

    Raises
    ------
    InvalidValue, FileError
        A network without demands, an unknown link, node or word, or files that can't be read.

    Examples
    --------
    >>> from netctrl.engines.what_if.run import what_if
    >>> answer = what_if("abilene", fail="each-link", scale=2.0)
    >>> len(answer.cases), answer.cases[0].failed
    (15, ('ATLA->WASH', 'WASH->ATLA'))
    """
    found = network_of(network)
    checked_flag("resume", resume)
    if progress is not None:
        checked_function("progress", progress)
    scheme = checked_word("reroute", reroute, SCHEMES)
    best = checked_word("metric", metric if metric is not None else "hops" if scheme == "ecmp" else "delay", METRICS)
    given = scale if isinstance(scale, Sequence | np.ndarray) and not isinstance(scale, str) else [scale]
    scales = tuple(checked_number("scale", each, SCALE_TAKES, above=0.0, at_most=1e6) for each in given)
    checked_whole("top", top, "a whole number of cases of at least 0")
    listed = failures(found, fail)
    times, rates = ("",), np.array([[each.mean for each in found.demands]])
    notes = list(notes)
    if over is not None:
        matrices = read_matrices(over, found.nodes, optional(rate_or_0)("demand_unit", demand_unit))
        mean = np.maximum(matrices.mean, 1.0)  # of less than 1 bit/s there would be no demand
        found = with_demands(found, matrices.ends, mean, 0.0 * mean)
        times, rates = tuple(str(each) for each in matrices.times), matrices.rates
        notes += matrices.notes
    if not found.demands or not scales:
        ways = "`demands` (--demands), `over` (--over), or the gravity model (--gravity)"
        raise InvalidValue("network", "no demands", f"demands in the network's file, {ways}")
    graph = Graph.of(found)
    paths = tunnels(graph, best) if scheme == "k-paths" else None
    question = _Question(found, graph, scheme, best, paths, times, rates)
    asked = list(product(listed, range(len(times)), scales))
    cases = _cases(question, asked, keep, n_jobs, progress, resume=resume)
    ranked = sorted(range(len(cases)), key=lambda at: (-cases[at].unmet, -cases[at].utilization, at))
    return WhatIf(
        network=found,
        reroute=scheme,
        metric=best,
        cases=tuple(cases[at] for at in ranked),
        details=tuple(_detail(question, *asked[at]) for at in ranked[:top]),
        notes=tuple(notes),
        provenance=provenance(argv=argv, inputs=inputs, libraries=("numpy", "scipy")),
    )


def case_network(answer: WhatIf, place: int = 0) -> Network:
    """A case as a network, for engines that simulate its traffic: what is left, with the demands on their ways.

    Parameters
    ----------
    answer : WhatIf
        Of `what_if`.
    place : int
        Place of the case among `answer.details`, the worst one first.

    Returns
    -------
    Network
        Without the failed links, and demands that have no way. Others have `split`, the shares of the case's ways, the
        case's mean rates, under max-min fair routing those that their sources may send, and deviations as much greater
        or smaller as their means.

    Raises
    ------
    InvalidValue
        A place without a detail, or a demand whose ways, such as k paths, go round in a ring.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.engines.what_if.run import case_network, what_if
    >>> answer = what_if("abilene", top=1)
    >>> left = case_network(answer)
    >>> len(answer.network.links) - len(left.links)
    2
    >>> scenario = netctrl.routed(left, duration="20s", warmup="5s", interval="10ms")
    >>> {flow.kind for flow in scenario.flows}
    {'demand'}
    """
    takes = f"the place of a case with details, from 0 to {len(answer.details) - 1}"
    detail = answer.details[checked_whole("place", place, takes, at_least=0, at_most=len(answer.details) - 1)]
    network, graph = answer.network, Graph.of(answer.network)
    failed, offered = set(detail.case.failed), {each.demand: each.mean_bit_per_s for each in detail.demands}
    alive = np.array([link.id not in failed for link in network.links])
    mean = np.array([offered.get(each.id, 0.0) for each in network.demands])
    paths = tunnels(graph, answer.metric) if answer.reroute == "k-paths" else None
    ways, found = _routed(graph, alive, mean, answer.reroute, answer.metric, paths)
    demands = []
    for column, each in enumerate(network.demands):
        rate = float(found.admitted[column])
        if rate <= 0.0:
            continue
        taken = _taken(ways, column, len(graph.capacity))
        left = np.bincount(graph.source, taken, minlength=graph.nodes)
        links = np.flatnonzero(taken > _LEAST)
        split = {network.links[k].id: float(taken[k] / left[graph.source[k]]) for k in links.tolist()}
        demands.append(msgspec.structs.replace(each, mean=rate, std=each.std * rate / each.mean, split=split))
    kept = tuple(link for link, there in zip(network.links, alive.tolist(), strict=True) if there)
    return msgspec.structs.replace(network, links=kept, demands=tuple(demands))


def _taken(ways: Routes, column: int, links: int) -> np.ndarray:
    """(L,) share of a demand that takes each link, where none is lost."""
    state = ways.enter[:, [column]].toarray()[:, 0]
    taken = np.zeros(links)
    for _ in range(len(state) + 1):
        through = ways.share * state[ways.tail]
        taken += np.bincount(ways.link, through, minlength=links)
        state = np.bincount(ways.head, through, minlength=len(state))
        if not state.any():
            return taken
    raise InvalidValue("answer", "a demand whose ways go round in a ring", "one without")


def _cases(
    question: _Question, asked: list[_Asked], keep: Any, n_jobs: int, progress: Any, *, resume: bool
) -> list[WhatIfCase]:
    """All cases that are asked for, in blocks."""
    from joblib import Parallel, delayed

    size = max(_BLOCK, len(asked) // _BLOCKS)
    blocks = {at // size: asked[at : at + size] for at in range(0, len(asked), size)}
    done: dict[int, list[WhatIfCase]] = {}
    parts = None if keep is None else checked_path(keep)
    if parts is not None:
        done = {n: _kept(parts / f"{n}.json") for n in _opened(parts, question, asked, resume=resume) if n in blocks}
    left = [number for number in blocks if number not in done]
    remedy = f": the finished blocks are in {parts}, and resume (--resume) goes on from there" if parts else ""
    jobs, start = checked_jobs(n_jobs), perf_counter()
    first = [_block(question, number, blocks[number]) for number in left[:1]]
    if (perf_counter() - start) * (len(left) - 1) < _SHORT:  # less than processes take to start
        jobs = 1
    tasks = (delayed(_block)(question, number, blocks[number]) for number in left[1:])
    others = Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)
    for number, found in chain(first, from_workers(others, remedy)):
        done[number] = found
        if parts is not None:
            write_atomically(parts / f"{number}.json", msgspec.json.encode(found))
        if progress is not None:
            progress(len(done) / len(blocks))
    if parts is not None:
        shutil.rmtree(parts)
    return [case for number in blocks for case in done[number]]


def _opened(parts: Path, question: _Question, asked: list[_Asked], *, resume: bool) -> set[int]:
    import netctrl

    plain = [question.network.to_json().decode(), question.rates.tolist(), question.times, asked]
    text = msgspec.json.encode([plain, question.scheme, question.metric])
    what = {"netctrl": netctrl.__version__, "digest": hashlib.sha256(text).hexdigest(), "block": _BLOCK}
    return open_parts(parts, what, parts, resume=resume, kind=_KIND)


def _kept(path: Path) -> list[WhatIfCase]:
    try:
        return read_json(path, list[WhatIfCase], what="part of a what-if", max_bytes=_MAX_PART)
    except (msgspec.ValidationError, FileError):
        raise FileError(path, "not a valid part of a what-if: delete it and resume") from None


def _block(question: _Question, number: int, some: list[_Asked]) -> tuple[int, list[WhatIfCase]]:
    return number, [_case(question, *each, *_flows(question, *each)) for each in some]


def _flows(question: _Question, failure: Failure, time: int, scale: float) -> tuple[Flows, np.ndarray]:
    """Traffic of one case, and the demands that are offered [bit/s]."""
    graph = question.graph
    alive = np.ones(len(graph.capacity), dtype=bool)
    alive[list(failure.links)] = False
    nodes = [row for row, node in enumerate(question.network.nodes) if node.id in failure.nodes]
    demand = question.rates[time] * scale
    demand[np.isin(graph.ends, nodes).any(axis=1)] = 0.0
    return _routed(graph, alive, demand, question.scheme, question.metric, question.paths)[1], demand


def _routed(
    graph: Graph, alive: np.ndarray, demand: np.ndarray, scheme: str, metric: str, paths: list[list[np.ndarray]] | None
) -> tuple[Routes, Flows]:
    """Ways of these demands [bit/s] over what is alive, and their traffic."""
    ways = routes(replace(graph, mean=demand), alive, scheme, metric, paths)
    return ways, flows(graph, ways, demand, fair=scheme == "max-min")


def _case(
    question: _Question, failure: Failure, time: int, scale: float, found: Flows, demand: np.ndarray
) -> WhatIfCase:
    links, demands = question.network.links, question.network.demands
    used = found.arrives / question.graph.capacity
    busiest = int(used.argmax())
    loss = _loss(found, demand)
    worst = int(loss.argmax())
    arrived = float(found.delivered.sum())
    delays = np.where(found.delivered > 0.0, found.delay, 0.0)
    cut = float(demand[found.cut].sum())
    return WhatIfCase(
        name=failure.name,
        failed=tuple(links[row].id for row in failure.links),
        time=question.times[time],
        scale=scale,
        offered_bit_per_s=float(demand.sum()),
        lost_bit_per_s=float((loss * demand)[~found.cut].sum()),
        cut_bit_per_s=cut,
        utilization=float(used[busiest]),
        busiest=links[busiest].id,
        overloaded=int((used > 1.0 + OVER).sum()),
        hurt=int((loss > _HURT).sum()),
        worst=demands[worst].id if loss[worst] > 0.0 else "",
        worst_loss=float(loss[worst]),
        delay_s=float((delays * found.delivered).sum() / arrived) if arrived > 0.0 else None,
    )


def _loss(found: Flows, demand: np.ndarray) -> np.ndarray:
    """(D,) share of each demand that doesn't arrive; 0 where it is rounding, and where nothing is offered."""
    share = 1.0 - np.divide(found.delivered, demand, out=np.ones(len(demand)), where=demand > 0.0)
    return np.where(share > _LEAST, share, 0.0)


def _detail(question: _Question, failure: Failure, time: int, scale: float) -> WhatIfDetail:
    found, demand = _flows(question, failure, time, scale)
    network, used = question.network, found.arrives / question.graph.capacity
    lost = np.where(used > 1.0 + OVER, found.arrives - found.sent, 0.0)
    columns = zip(found.sent.tolist(), used.tolist(), lost.tolist(), strict=True)
    links = [LinkFigures(link.id, *row) for link, row in zip(network.links, columns, strict=True)]
    loss, delay = _loss(found, demand), np.where(found.delivered > 0.0, found.delay, np.inf)
    late = [each if isfinite(each) else None for each in delay.tolist()]
    figures = demand.tolist(), found.delivered.tolist(), loss.tolist(), late, found.utilization.tolist()
    demands = [
        DemandFigures(each.id, *row) for each, row in zip(network.demands, zip(*figures, strict=True), strict=True)
    ]
    return WhatIfDetail(
        case=_case(question, failure, time, scale, found, demand),
        links=tuple(links[row] for row in np.argsort(-used, kind="stable") if row not in failure.links),
        demands=tuple(demands[row] for row in np.lexsort((-delay, -loss)) if demand[row] > 0.0),
    )
