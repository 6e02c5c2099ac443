"""FIR form of link-rate laws: each link's rate is a sum over present and past measurements.

u_l(n) = offset_l + Σ coefficient · series(n − lag), whatever the architecture: gains on predicted states, finite
responses to disturbances, and the peers. The rate sent is u_l limited to 0 and the capacity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from netctrl.core.errors import InvalidValue
from netctrl.laws.link_rate.cascade import Table, cascade
from netctrl.laws.record import Numbers, WholeNumbers
from netctrl.model.law import AgedColumns, AgedGain, FirGain, LinkRateLaw, MyopicGain, StaticGain
from netctrl.model.network_model import state_matrices

RATE, BACKLOG, ARRIVAL_INNOVATION, SATURATION_ERROR = range(4)
"""Kinds of series, N each, number kind · N + link [bit/s]: the rate sent in the sample before, f_l(n); the backlog over
the interval; what came beyond what the law foresaw, less what was lost; and what was commanded and not sent."""

LINEAR, WORK_CONSERVING, BACKPRESSURE = range(3)
"""What a link does with the sum: sends at it; sends at its capacity; sends while more than it waits."""

_ROUNDING = 2.0**-53
_GONE = 1e-14
_MAX_TAPS = 20_000_000
_MAX_ROUNDS = 1000

Entry = tuple[int, int, int, float]
"""Link, series, lag, coefficient."""


class FirSums(NamedTuple):
    """Sums for N links over P taps, link by link."""

    start: WholeNumbers
    """(N + 1) where each link's taps start"""
    series: WholeNumbers
    """(P)"""
    lag: WholeNumbers
    """(P) [sample]"""
    coefficient: Numbers
    """(P)"""
    offset: Numbers
    """(N) [bit/s]"""


class Feeds(NamedTuple):
    """Coupling of N links, as rows of the links that feed each."""

    start: WholeNumbers
    """(N + 1)"""
    link: WholeNumbers
    """that feeds"""
    delay: WholeNumbers
    """of it [sample]"""
    share: Numbers
    """of what it sends that comes here"""


def no_feeds(N: int) -> Feeds:
    """Of links whose law takes none."""
    none = np.zeros(0, dtype=np.int64)
    return Feeds(np.zeros(N + 1, dtype=np.int64), none, none, np.zeros(0))


class FirLaw(NamedTuple):
    """Law for N links and P taps, link by link."""

    start: np.ndarray
    """(N + 1,) start of each link's taps."""
    series: np.ndarray
    """(P,)"""
    lag: np.ndarray
    """(P,) [sample]"""
    coefficient: np.ndarray
    """(P,)"""
    offset: np.ndarray
    """(N,) [bit/s]"""
    mode: np.ndarray
    """(N,)"""
    expected: np.ndarray
    """(N,) predicted arrivals at each link, besides those from other links [bit/s]."""
    alone: bool
    """Whether the law doesn't know the rates of other links, and predicts nominal ones."""

    @property
    def sums(self) -> FirSums:
        """The sums alone."""
        return FirSums(self.start, self.series, self.lag, self.coefficient, self.offset)

    @property
    def memory(self) -> int:
        """Longest lag [sample]."""
        return int(self.lag.max(initial=0))

    @property
    def innovations(self) -> bool:
        """Whether any tap takes an arrival innovation or a saturation error."""
        return bool((self.series >= ARRIVAL_INNOVATION * len(self.offset)).any())


def static_fir(rate: np.ndarray, paced: np.ndarray) -> FirLaw:
    """Constant rates of the `paced` links; the others send at their capacity. Both (N,)."""
    return packed([], rate, paced)


def backpressure_fir(delay: np.ndarray, coupling: sp.csr_array) -> FirLaw:
    """Backpressure: each link sends while its backlog exceeds Σ_k c_kl b_k, downstream one propagation ago."""
    N = len(delay)
    c = coupling.tocoo()
    entries = [
        (int(link), BACKLOG * N + int(after), int(delay[link]), float(share))
        for after, link, share in zip(c.row, c.col, c.data, strict=True)
    ]
    return packed(entries, np.zeros(N), np.ones(N, dtype=bool))._replace(mode=np.full(N, BACKPRESSURE))


def fir_law(
    law: LinkRateLaw,
    coupling: sp.csr_array,
    nominal: np.ndarray,
    expected: np.ndarray,
    paced: np.ndarray,
    backlog_setpoint: float = 0.0,
) -> FirLaw:
    """FIR form of an HFTraC law.

    Parameters
    ----------
    law : StaticGain, FirGain, AgedGain or MyopicGain
        Law of N links.
    coupling : sparse array, shape (N, N)
        Coupling of the law's model.
    nominal : ndarray, shape (N,)
        Rates around which the law controls [bit/s].
    expected : ndarray, shape (N,)
        Nominal rates of demands entering at each link [bit/s].
    paced : ndarray of bool, shape (N,)
        Links that follow the law; the others send at their capacity, as the law observes.
    standing : float
        Backlog around which the law controls, over the interval [bit/s].

    Raises
    ------
    InvalidValue
        A law with too many taps to evaluate at each sample.

    Notes
    -----
    A StaticGain for information d samples old predicts, x̂(n) = A^d x(n − d) + Σ_{i<d} A^i B v(n − 1 − i), from the
    rates v sent, not from the commanded ones: the latter include traffic that was never sent, and control is lost where
    buffers run empty.

    A FirGain responds to deviations from its model, δ = x − x̂. Since R(t + 1) = A R(t) + B M(t) and R(1) = I, eq. (14)
    has x̂(n + 1) = A x(n) + B u(n): at a link δ is the unpredicted arrivals minus losses,
    `ARRIVAL_INNOVATION` p in its backlog, and the rate not sent: `SATURATION_ERROR` s more in its backlog and less in
    its newest rate. So u = Σ M_b p + (M_b − M_f) s. Truncated columns are completed first, by the responses to what
    they leave over (`netctrl.laws.link_rate.cascade`).
    """
    match law:
        case StaticGain():
            entries = _gain(law.delay, _predicting(law, coupling))
        case MyopicGain():
            N = len(law.links)
            entries = [(link, RATE * N + link, 0, float(g)) for link, g in enumerate(law.rate_gain)]
            entries += [(link, BACKLOG * N + link, 0, float(k)) for link, k in enumerate(law.backlog_gain)]
        case FirGain():
            entries = _responses(law, coupling)
        case AgedGain():
            entries = _aged(law, coupling)
    taps = packed(entries, np.zeros(len(nominal)), paced)
    N = len(nominal)
    around = np.concatenate([nominal, np.full(N, backlog_setpoint), np.zeros(2 * N)])
    rows = np.repeat(np.arange(N), np.diff(taps.start))
    offset = nominal - np.bincount(rows, weights=taps.coefficient * around[taps.series], minlength=N)
    alone = isinstance(law, FirGain) and all(
        column.u.shape[:2] == (n + 2, 1) for n, column in zip(law.delay, law.columns, strict=True)
    )
    return taps._replace(offset=offset, expected=np.array(nominal if alone else expected, dtype=float), alone=alone)


def _predicting(law: StaticGain, coupling: sp.csr_array) -> list[tuple[int, np.ndarray]]:
    """Pairs (lag, gain on the state at that lag), with gains on sent rates as gains on the newest rates."""
    A, B = (matrix.toarray() for matrix in state_matrices(law.delay, coupling))
    newest = np.concatenate([[0], np.cumsum(law.delay + 1)])[:-1]
    found, K = [], np.asarray(law.gain)
    for lag in range(law.information_delay):
        sent = np.zeros_like(K)
        sent[:, newest] = K @ B  # on v(n − 1 − lag), which is f(n − lag)
        found.append((lag, sent))
        K = K @ A
    return [*found, (law.information_delay, K)]


def _gain(delay: np.ndarray, gains: Iterable[tuple[int, np.ndarray]]) -> list[Entry]:
    N = len(delay)
    first = np.concatenate([[0], np.cumsum(delay + 1)])
    column = np.concatenate([[(link, age) for age in range(delay[link] + 1)] for link in range(N)])
    entries: list[Entry] = []
    for lag, K in gains:
        floor = _ROUNDING / K.shape[1] * np.abs(K).max(axis=1, initial=0.0)
        links, states = np.nonzero(np.abs(K) > floor[:, None])
        _check_size(len(entries) + len(links))
        for link, state in zip(links, states, strict=True):
            series, age = (BACKLOG * N + state - first[-1], 0) if state >= first[-1] else column[state]
            entries.append((int(link), int(series), lag + int(age), float(K[link, state])))
    return entries


def _responses(law: FirGain, coupling: sp.csr_array) -> list[Entry]:
    entries: list[Entry] = []

    def add(kind: int, e: int, links: np.ndarray, M: np.ndarray, shift: int = 0) -> None:
        rows, ages = np.nonzero(M)
        _check_size(len(entries) + len(rows))
        series = [kind * len(law.links) + e] * len(rows)
        entries.extend(zip(links[rows].tolist(), series, (ages + shift).tolist(), M[rows, ages].tolist(), strict=True))

    if all(len(column.u) > 1 for column in law.columns):
        for e, column in enumerate(law.columns):
            add(ARRIVAL_INNOVATION, e, column.links, column.u[0])
            add(SATURATION_ERROR, e, column.links, column.u[0] - column.u[1])
        return entries
    whole = completed(law, coupling)
    columns = coupling.tocsc()
    for e, (links, u) in enumerate(whole):
        for kind in (ARRIVAL_INNOVATION, SATURATION_ERROR):
            add(kind, e, links, u)
        for p in range(columns.indptr[e], columns.indptr[e + 1]):  # what wasn't sent is missed where it would arrive
            after, missed = whole[columns.indices[p]]
            add(SATURATION_ERROR, e, after, -columns.data[p] * missed, int(law.delay[e]) + 1)
    return entries


def completed(law: FirGain, coupling: sp.csr_array) -> list[tuple[np.ndarray, np.ndarray]]:
    """Links and rates (m, T) of the whole responses to a unit in each link's buffer, leaks included."""
    c, N = coupling.tocsc(), len(law.links)
    sizes = [column.u[0].size for column in law.columns]
    table = Table(
        np.cumsum([0, *(len(column.links) for column in law.columns)]),
        np.concatenate([column.links for column in law.columns]),
        np.array([column.u.shape[2] for column in law.columns]),
        np.cumsum([0, *sizes]),
        np.concatenate([column.u[0].ravel() for column in law.columns]),
        np.concatenate([column.b[0].ravel() for column in law.columns]),
        law.delay,
        (c.indptr.astype(np.int64), c.indices.astype(np.int64), c.data),
    )
    place, found, taps = np.full(N, -1, np.int64), [], 0
    for e in range(N):
        links, u, _, _ = cascade(np.array([e]), np.ones(1), table, _GONE, N, _MAX_ROUNDS, place)
        end = int(np.flatnonzero(u.any(axis=0)).max(initial=-1)) + 1
        taps += int(np.count_nonzero(u))
        _check_size(taps)
        found.append((links, u[:, :end]))
    return found


def _aged(law: AgedGain, coupling: sp.csr_array) -> list[Entry]:
    """Law u = K x + Σ over young disturbances of their gains' difference from K, where all end with the same K.

    That is exact, as the disturbances' shares add up to the state. With different final gains, responses are used.
    """
    N = len(law.links)
    alike = all(len(column.links) == N for column in law.columns)
    K = _full(law.columns[0], law.delay) if alike else None
    entries = [] if K is None else _gain(law.delay, [(0, K)])
    for e, column in enumerate(law.columns):
        for kind in (ARRIVAL_INNOVATION, SATURATION_ERROR):
            starts = (1.0, -1.0 if kind == SATURATION_ERROR else 0.0)
            for age, (u, x) in enumerate(response(column, e, law.delay, coupling, starts, young=alike)):
                more = u if K is None else u - K[column.links] @ _spread(column, law.delay, x)
                entries += [
                    (int(link), kind * N + e, age, float(value))
                    for link, value in zip(column.links, more, strict=True)
                    if value != 0.0
                ]
        _check_size(len(entries))
    return entries


def response(
    column: AgedColumns,
    e: int,
    delay: np.ndarray,
    coupling: sp.csr_array,
    starts: tuple[float, float],
    *,
    young: bool = False,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Commanded rates and states of a column's links, by age, after an impulse in link e's backlog or newest rate.

    It ends when the response is zero, or with `young` at the last gain, which then stays.
    """
    links = column.links
    A, B = state_matrices(delay[links], coupling[links][:, links])
    first = np.concatenate([[0], np.cumsum(delay[links] + 1)])
    x = np.zeros(A.shape[0])
    own = int(np.flatnonzero(links == e)[0])
    x[first[-1] + own], x[first[own]] = starts
    most, age = 0.0, 0
    while age < len(column.gains) - 1 or not young:
        u = column.gains[min(age, len(column.gains) - 1)] @ x
        size = float(np.abs(x).max())
        most = max(most, size)
        if age >= len(column.gains) and size <= _GONE * most:
            return
        yield u, x
        x, age = A @ x + B @ u, age + 1
        if age * len(links) > _MAX_TAPS:
            _check_size(age * len(links))


def _states(column: AgedColumns, delay: np.ndarray) -> np.ndarray:
    """Indices of a column's states in the whole network."""
    first = np.concatenate([[0], np.cumsum(delay + 1)])
    rates = [np.arange(first[link], first[link + 1]) for link in column.links]
    return np.concatenate([*rates, first[-1] + column.links])


def _full(column: AgedColumns, delay: np.ndarray) -> np.ndarray:
    K = np.zeros((len(delay), int(np.sum(delay + 2))))
    K[np.ix_(column.links, _states(column, delay))] = column.gains[-1]
    return K


def _spread(column: AgedColumns, delay: np.ndarray, x: np.ndarray) -> np.ndarray:
    whole = np.zeros(int(np.sum(delay + 2)))
    whole[_states(column, delay)] = x
    return whole


def packed(entries: list[Entry], offset: np.ndarray, paced: np.ndarray) -> FirLaw:
    """Entries in any order, packed as taps."""
    _check_size(len(entries))
    table = np.array(entries, dtype=float).reshape(-1, 4)
    link, series, lag = table[:, :3].astype(np.int64).T
    order = np.lexsort((lag, series, link))
    N = len(offset)
    return FirLaw(
        start=np.searchsorted(link[order], np.arange(N + 1)),
        series=series[order],
        lag=lag[order],
        coefficient=np.ascontiguousarray(table[order, 3]),
        offset=np.asarray(offset, dtype=float),
        mode=np.where(paced, LINEAR, WORK_CONSERVING),
        expected=np.zeros(N),
        alone=False,
    )


def _check_size(taps: int) -> None:
    if taps > _MAX_TAPS:
        takes = f"a law of at most {_MAX_TAPS} numbers per sample; a larger mu or a shorter horizon"
        raise InvalidValue("law", f"{taps} or more", f"{takes} makes it smaller")
