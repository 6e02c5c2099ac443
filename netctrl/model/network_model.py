"""Linear sampled model of a network with controlled link rates, for which HFTraC's controllers are designed.

An information pattern says which link's data reaches which link's controller, and when.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from netctrl.core.errors import InvalidValue, checked_number

_FINITE = "finite numbers of at least 0"


def _vector(name: str, value: Any) -> np.ndarray:
    try:
        vector = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidValue(name, value, _FINITE) from None
    if vector.ndim != 1 or not np.isfinite(vector).all() or (vector < 0.0).any():
        raise InvalidValue(name, value, f"a list of {_FINITE}")
    return vector


def _matrix(name: str, value: Any, shape: tuple[int, int]) -> sp.csr_array:
    takes = f"a matrix of shape {shape} of {_FINITE}"
    try:
        matrix = sp.csr_array(value, dtype=float, copy=True)
    except (TypeError, ValueError):
        raise InvalidValue(name, value, takes) from None
    if matrix.shape != shape:
        raise InvalidValue(name, f"shape {matrix.shape}", takes)
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all() or (matrix.data < 0.0).any():
        raise InvalidValue(name, "an entry that is negative or not finite", takes)
    return matrix


@dataclass(frozen=True, slots=True, eq=False)
class NetworkModel:
    """Deviations from nominal rates: b_l(n+1) = b_l(n) + Σ_k c_lk f_k(n − n_k) + Σ_i inj_li w_i(n) − u_l(n).

    f_l(n+1) = u_l(n). All rates are in bit/s, and so are the backlogs: b is a backlog divided by the interval, which is
    the rate that clears it in one interval. There are N links and I demands.

    Raises
    ------
    InvalidValue
        Arrays whose shapes don't fit, negative delays or deviations, or numbers that aren't finite.

    Notes
    -----
    HFTraC paper, eqs. (5) to (7). Its b times the interval is the b here; its lambda·interval² is the weight mu.
    """

    interval_s: float
    """tau, sampling interval [s]."""
    delay: np.ndarray
    """(N,) n_l, propagation delay [samples]."""
    coupling: sp.csr_array
    """(N, N) coupling c_lk."""
    injection: sp.csr_array
    """(N, I) injection inj_li."""
    std: np.ndarray
    """(I,) standard deviation sigma_i of each demand [bit/s]."""
    links: tuple[str, ...] = ()
    """Ids of the links; "0", "1", ... by default."""

    def __post_init__(self) -> None:
        interval = checked_number("interval_s", self.interval_s, "a sampling interval above 0 in seconds", above=0.0)
        delay, std = np.array(self.delay), _vector("std", self.std)
        if delay.ndim != 1 or delay.dtype.kind not in "iu" or (delay < 0).any():
            raise InvalidValue("delay", self.delay, "whole numbers of samples of at least 0, one for each link")
        delay, N = delay.astype(np.int64), len(delay)
        coupling = _matrix("coupling", self.coupling, (N, N))
        injection = _matrix("injection", self.injection, (N, len(std)))
        links = tuple(self.links) or tuple(map(str, range(N)))
        if len(links) != N:
            raise InvalidValue("links", f"{len(links)} ids", f"{N} ids")
        matrices = (part for each in (coupling, injection) for part in (each.data, each.indices, each.indptr))
        for part in (delay, std, *matrices):
            part.setflags(write=False)
        values = (interval, delay, coupling, injection, std, links)
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return NetworkModel, tuple(getattr(self, name) for name in self.__slots__)  # rebuilt, so checked and read-only

    @property
    def n_links(self) -> int:
        """Number of links N."""
        return len(self.delay)

    @property
    def first_rate(self) -> np.ndarray:
        """(N + 1,) index in the state of each link's rates f_l(n), f_l(n − 1), ..., f_l(n − n_l), then of their end."""
        return np.concatenate([[0], np.cumsum(self.delay + 1)])

    @property
    def first_backlog(self) -> int:
        """Index of the first of the N backlogs in the state."""
        return int(np.sum(self.delay + 1))

    @property
    def n_states(self) -> int:
        """Number of states: the past rates of all links, then the backlogs."""
        return self.first_backlog + self.n_links


def state_matrices(delay: np.ndarray, coupling: sp.csr_array) -> tuple[sp.csr_array, sp.csr_array]:
    """Sparse A (n, n) and B (n, N) of x(n+1) = A x(n) + B u(n), with the state in the order of `NetworkModel`.

    Source: HFTraC paper, eq. (13) and its blocks.
    """
    N, first = len(delay), np.concatenate([[0], np.cumsum(delay + 1)])
    n, links, newest = int(first[-1]) + N, np.arange(N), first[:-1]
    older, backlog = np.setdiff1d(np.arange(first[-1]), newest), int(first[-1]) + links
    c = coupling.tocoo()
    rows, columns = (
        np.concatenate([older, backlog, backlog[c.row]]),
        np.concatenate([older - 1, backlog, (newest + delay)[c.col]]),
    )
    A = sp.csr_array((np.concatenate([np.ones(len(older) + N), c.data]), (rows, columns)), shape=(n, n))
    rows, columns = np.concatenate([newest, backlog]), np.concatenate([links, links])
    return A, sp.csr_array((np.repeat([1.0, -1.0], N), (rows, columns)), shape=(n, N))


NEVER = -1
_MAX_SAMPLES = 2**31


@dataclass(frozen=True, slots=True, eq=False)
class InformationPattern:
    """Delays n_lk, in samples, after which the controller of link l knows the state of link k.

    Each controller is at the node that its link leaves. Messages take the fastest path over the given lines, or a
    matrix gives the delays.

    Notes
    -----
    HFTraC paper, eq. (9) and Appendix A.
    """

    node: np.ndarray
    """(N,) node of each link's controller; empty with a matrix."""
    offsets: np.ndarray
    """(V + 1,) index in `to` and `samples` of the first line for messages from each node."""
    to: np.ndarray
    """Nodes at the far end of these lines."""
    samples: np.ndarray
    """Delays of these lines [samples]."""
    matrix: np.ndarray
    """(N, N) n_lk, NEVER where link l never receives data of k; of shape (0, 0) where lines give the delays."""

    @classmethod
    def from_lines(cls, node: np.ndarray, lines: list[tuple[int, int, int]], nodes: int) -> InformationPattern:
        """Pattern of messages over `lines`, each (from node, to node, samples); `node` of each link's controller.

        Raises
        ------
        InvalidValue
            A node outside 0, ..., nodes − 1, or a delay that is not a whole number of samples of at least 0.
        """
        takes = f"whole numbers from 0 to {nodes - 1}, the node of each link's controller"
        node = _whole("node", node, (-1,), nodes, takes)
        takes = f"(from, to, samples) each, in whole numbers of at least 0, with nodes up to {nodes - 1}"
        table = _whole("lines", sorted(lines) if lines else np.zeros((0, 3)), (-1, 3), _MAX_SAMPLES, takes)
        if (table[:, :2] >= nodes).any():
            raise InvalidValue("lines", tuple(table[(table[:, :2] >= nodes).any(axis=1)][0].tolist()), takes)
        offsets = np.searchsorted(table[:, 0], np.arange(nodes + 1))
        arrays = (node, offsets.astype(np.int64), table[:, 1].copy(), table[:, 2].copy())
        return cls(*map(_fixed, arrays), _fixed(np.zeros((0, 0), np.int64)))

    @classmethod
    def from_matrix(cls, delays: object) -> InformationPattern:
        """Pattern with n_lk in row l, column k: whole numbers from 0; `inf`, NaN and negative numbers mean never.

        Raises
        ------
        InvalidValue
            Not a square matrix of such numbers, or a link that doesn't know its own state immediately.
        """
        takes = "a square matrix of whole numbers of samples (inf: never) with zeros on its diagonal"
        try:
            given = np.array(delays, dtype=float)
        except (TypeError, ValueError):
            raise InvalidValue("information", delays, takes) from None
        if given.ndim != 2 or given.shape[0] != given.shape[1] or not given.size:
            raise InvalidValue("information", f"shape {given.shape}", takes)
        known = np.isfinite(given) & (given >= 0.0)
        wrong = known & ((given != np.rint(given)) | (given > _MAX_SAMPLES)) | np.eye(len(given), dtype=bool) & (
            given != 0.0
        )
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise InvalidValue("information", f"{given[row, column]} in row {row} and column {column}", takes)
        empty = _fixed(np.zeros(0, np.int64))
        return cls(empty, empty, empty, empty, _fixed(np.where(known, given, NEVER).astype(np.int64)))


def _whole(name: str, value: object, shape: tuple[int, ...], below: int, takes: str) -> np.ndarray:
    try:
        given = np.array(value).reshape(shape)
    except (TypeError, ValueError):
        raise InvalidValue(name, value, takes) from None
    wrong = given[(given < 0) | (given >= below)] if given.dtype.kind in "iu" or not given.size else given
    if wrong.size:
        raise InvalidValue(name, wrong.ravel().tolist()[0], takes)
    return given.astype(np.int64)


def _fixed(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
