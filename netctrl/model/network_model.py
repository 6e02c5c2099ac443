"""The linear sampled model of a network whose links' rates are controlled: what HFTraC's controllers are made for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from netctrl.errors import InvalidValue, checked_number

__all__ = ["NetworkModel", "state_matrices"]

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

    f_l(n+1) = u_l(n). All rates in bit/s, and so are the backlogs: b is a backlog divided by the interval, the rate
    that would clear it in one. N links, I demands.

    Raises
    ------
    InvalidValue
        Arrays that don't fit, negative delays or deviations, or numbers that aren't finite.

    Notes
    -----
    HFTraC paper, eqs. (5) to (7); its b is b·interval here, and its lambda·interval² the weight mu.
    """

    interval_s: float
    """tau."""
    delay: np.ndarray
    """(N,) n_l, propagation in samples."""
    coupling: sp.csr_array
    """(N, N) c_lk."""
    injection: sp.csr_array
    """(N, I) inj_li."""
    std: np.ndarray
    """(I,) sigma_i [bit/s]."""
    links: tuple[str, ...] = ()
    """Their ids; "0", "1", ... where none are given."""

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
        return NetworkModel, tuple(getattr(self, name) for name in self.__slots__)  # built, so read-only, again

    @property
    def n_links(self) -> int:
        """Number of links N."""
        return len(self.delay)

    @property
    def first_rate(self) -> np.ndarray:
        """(N + 1,) where each link's rates f_l(n), f_l(n − 1), ..., f_l(n − n_l) start in the state; then its end."""
        return np.concatenate([[0], np.cumsum(self.delay + 1)])

    @property
    def first_backlog(self) -> int:
        """Where the N backlogs start in the state."""
        return int(np.sum(self.delay + 1))

    @property
    def n_states(self) -> int:
        """Number of states: the histories of all rates, then the backlogs."""
        return self.first_backlog + self.n_links


def state_matrices(delay: np.ndarray, coupling: sp.csr_array) -> tuple[sp.csr_array, sp.csr_array]:
    """Sparse A, (n, n), and B, (n, N), of x(n+1) = A x(n) + B u(n), the state as `NetworkModel` lays it out.

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
