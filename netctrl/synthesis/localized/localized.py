"""Localized synthesis of coordinated link-rate control: finite-length columns of the closed loop, one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log, log1p, sqrt
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky_banded

from netctrl.core.errors import (
    InvalidValue,
    NoAdmissibleDesign,
    checked_jobs,
    checked_kind,
    checked_number,
    checked_whole,
)
from netctrl.model.io.display import Shown
from netctrl.model.law import FirColumns, FirGain
from netctrl.model.network_model import InformationPattern, NetworkModel
from netctrl.synthesis.localized import columns as _columns
from netctrl.synthesis.localized import region_kernels as kernels
from netctrl.synthesis.localized.region import (
    SMALLER,
    Region,
    Source,
    check_splits,
    checked_weight,
    explain,
    regions,
    sources,
    together,
    travel_times,
    used,
)
from netctrl.synthesis.localized.truncated import truncated
from netctrl.synthesis.threads import blas_threads

_BLOCK = 64  # links or problems per task of a worker
_WIDE = 48  # bandwidth above which LAPACK is faster
_SINGULAR = 1e-13  # relative to the diagonal
_NOTHING = np.zeros((0, 0, 0))
_MAX_ENTRIES = 2**28  # entries of one region's matrix


@dataclass(frozen=True, slots=True, repr=False)
class LocalizedSynthesis(Shown):
    """A coordinated controller with its cost and a bound of its distance from the optimum."""

    law: FirGain
    """The controller."""
    cost: float
    """Σ_l E f_l² + mu_l E b_l² under the demands' deviations [(bit/s)²]."""
    cost_rate: float
    """Part of the cost due to the rates."""
    cost_queue: float
    """Part of the cost due to the backlogs."""
    bound: float
    """Lower bound: no controller with the same information has a lower cost, whatever its length."""
    horizon: int
    """Samples of the longest column, T."""
    region: int
    """Links of the largest region."""
    distinct: int
    """Links whose columns were computed; the other links' columns equal one of them."""
    spectral_radius: float
    """Upper bound of the closed loop's spectral radius over one sample, below 1; 0 where responses end after T."""
    reach: np.ndarray
    """(N,) largest delay with which each controller uses data of a link [samples]."""
    messages: np.ndarray
    """(N,) number of other links whose data each controller uses at every sample."""

    @property
    def excess(self) -> float:
        """Upper bound of (cost − least cost)/least cost."""
        return self.cost / self.bound - 1.0 if self.bound > 0.0 else 0.0


def localized(
    model: NetworkModel,
    weight: float | np.ndarray,
    information: InformationPattern,
    *,
    horizon: int | None = None,
    tolerance: float = 1e-3,
    reach: int | None = None,
    n_jobs: int = 1,
) -> LocalizedSynthesis:
    """Finite impulse responses of near least cost for links that learn of disturbances with delays.

        min Σ_t ‖Q^½ R(t)‖² + ‖M(t)‖²
        s.t. R(1) = I, R(t + 1) = A R(t) + B M(t), R(T + 1) = 0, and M(t)_lk = 0 while t − 1 < n_lk

    R(t) and M(t) are the responses of states and rates to disturbances, Q = diag(0, mu), and n_lk is the delay after
    which link l learns of a disturbance at link k.

    Without a horizon, columns are truncated to the links and samples that matter for `tolerance`: R(t + 1) =
    A R(t) + B M(t) − Δ(t), and the leaks Δ are fresh disturbances where they are. The closed loop is then
    (R, M)(I − Δ)⁻¹, stable as ρ(L) < 1 for the ℓ1 norms L of Δ. `cost` is an upper bound of its cost, and `bound` the
    dual of the equations that were kept, so that both hold whatever was cut.

    Parameters
    ----------
    model : NetworkModel
        Model of N links.
    weight : float or ndarray, shape (N,)
        mu_l = lambda_l·interval² > 0: weight of a squared backlog relative to a squared rate.
    information : InformationPattern
        Delays after which each link learns of a disturbance (`netctrl.plants.information.information_pattern`).
    horizon : int, optional
        T, for columns that end in R(T + 1) = 0 on all links that they reach. By default they are truncated.
    tolerance : float
        Excess aimed at without a horizon; where refinements don't come that near, `excess` says how far they came.
    reach : int, optional
        Largest information delay [samples] of links that help although the disturbance's traffic doesn't reach them;
        by default all links that learn of it within the horizon help.
    n_jobs : int
        Number of threads, −1 for all cores; above 1 joblib's configured backend, such as Dask, is used.

    Returns
    -------
    LocalizedSynthesis

    Raises
    ------
    InvalidValue
        A weight that isn't above 0, or arguments that don't fit.
    NoAdmissibleDesign
        A link on the traffic's route never learns of it, or learns of it too late; a horizon that is too short; or no
        truncation is certified to be stable. The message names the link and the remedy.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.plants.information import information_pattern
    >>> from netctrl.synthesis.localized.localized import localized
    >>> from netctrl.synthesis.localized.coordinated import coordinated
    >>> network = netctrl.read("merge")
    >>> model = netctrl.network_model(network, interval_s=0.01)
    >>> information = information_pattern(network, 0.01, model.links, "out-of-band")
    >>> found = localized(model, 0.1, information)
    >>> least = coordinated(model, 0.1, information).cost
    >>> found.bound <= least <= found.cost <= 1.001 * found.bound
    True

    References
    ----------
    HFTraC paper, Appendix B, eq. (14); Wang, Matni, You, Doyle, "Localized distributed state feedback control with
    communication delays", ACC 2014. Only M is constrained: a link knows of traffic only
    from what it learns.
    """
    checked_kind("model", model, NetworkModel)
    checked_kind("information", information, InformationPattern)
    mu = checked_weight(weight, model.n_links)
    checked_number("tolerance", tolerance, "a number above 0 and below 1", above=0.0, at_most=1.0 - 1e-9)
    for name, value, least in (("horizon", horizon, 1), ("reach", reach, 0)):
        if value is not None:
            checked_whole(name, value, f"a whole number of at least {least}", at_least=least)
    checked_jobs(n_jobs)
    disturbances = sources(model)
    if horizon is not None:
        return _finite(model, mu, information, disturbances, horizon, reach, n_jobs)
    check_splits(information, model.links, disturbances)
    found = truncated(model, mu, information, disturbances, tolerance=tolerance, reach=reach, n_jobs=n_jobs)
    return _synthesis(
        model,
        information,
        found.columns,
        cost=found.cost,
        cost_rate=found.cost_rate,
        bound=found.bound,
        distinct=model.n_links,
        # With all leaks within so many samples, ρ of Σ_t |Δ(t)| r^−t is at most ratio r^−longest, 1 at this r.
        spectral_radius=found.ratio ** (1.0 / found.longest),
    )


def _finite(
    model: NetworkModel,
    mu: np.ndarray,
    information: InformationPattern,
    disturbances: Mapping[Source, float],
    horizon: int,
    reach: int | None,
    n_jobs: int,
) -> LocalizedSynthesis:
    """Columns that end after the horizon, on all links that their traffic reaches."""
    # Who learns after T can't act in T, nor lower the bound.
    most = np.full(model.n_links, reach if reach is not None else horizon)
    columns = _Columns(model, mu, information, most, travel_times(model), horizon, n_jobs)
    columns.add(range(model.n_links))
    check_splits(information, model.links, disturbances)
    cost, bound = _costs(disturbances, columns)
    return _synthesis(
        model,
        information,
        columns.law(),
        cost=float(cost.sum()),
        cost_rate=float(cost[0]),
        bound=bound,
        distinct=len(columns.solved),
        spectral_radius=0.0,
    )


def _synthesis(
    model: NetworkModel,
    information: InformationPattern,
    columns: tuple[FirColumns, ...],
    *,
    cost: float,
    cost_rate: float,
    bound: float,
    distinct: int,
    spectral_radius: float,
) -> LocalizedSynthesis:
    reach, messages = used(information, columns)
    return LocalizedSynthesis(
        law=FirGain(interval_s=model.interval_s, delay=model.delay, links=model.links, columns=columns),
        cost=cost,
        cost_rate=cost_rate,
        cost_queue=cost - cost_rate,
        bound=bound,
        horizon=max(column.u.shape[2] for column in columns),
        region=max(len(column.links) for column in columns),
        distinct=distinct,
        spectral_radius=spectral_radius,
        reach=reach,
        messages=messages,
    )


def settling_time(weight: float, tolerance: float) -> int:
    """Samples until the remaining cost falls to `tolerance` of the total, times 1.5.

    For a single link, whose closed-loop pole is 1/(1 + p), p = (mu + √(mu² + 4 mu))/2.
    """
    weight = checked_number("weight", weight, "a weight above 0", above=0.0)
    tolerance = checked_number("tolerance", tolerance, "a number above 0 and below 1", above=0.0, at_most=1.0 - 1e-9)
    p = 0.5 * (weight + sqrt(weight * weight + 4.0 * weight))
    return ceil(-0.75 * log(tolerance) / log1p(p)) + 1


class _Problem(NamedTuple):
    region: Region
    horizon: int
    backlog: np.ndarray
    free: bool = False


class _Solution(NamedTuple):
    status: int
    where: int
    u: np.ndarray = _NOTHING
    b: np.ndarray = _NOTHING
    cost: np.ndarray = _NOTHING


@dataclass(slots=True)
class _Columns:
    """Columns of the links requested so far; equal ones are solved once."""

    model: NetworkModel
    mu: np.ndarray
    information: InformationPattern
    reach: np.ndarray
    travel: np.ndarray
    horizon: int
    n_jobs: int
    regions: dict[int, Region] = field(default_factory=dict)
    solved: dict[bytes, tuple[_Problem, _Solution]] = field(default_factory=dict)
    _key: dict[int, bytes] = field(default_factory=dict)

    def of(self, link: int) -> tuple[_Problem, _Solution]:
        return self.solved[self._key[link]]

    def add(self, links: Iterable[int]) -> None:
        found = regions(self.model, self.mu, self.information, self.reach, links=links, travel=self.travel)
        new: dict[bytes, _Problem] = {}
        for link, region in found.items():
            key = self._key[link] = region.key()
            if key not in self.solved and key not in new:
                new[key] = _Problem(region, self.horizon, np.zeros((0, len(region.links))))
        self.regions |= found
        solved = _each(list(new.values()), self.n_jobs)
        self.solved |= dict(zip(new, zip(new.values(), solved, strict=True), strict=True))
        for link, region in found.items():
            one = self.of(link)[1]
            if one.status != kernels.SOLVED:
                where = int(region.links[one.where])
                every = regions(self.model, self.mu, self.information, self.reach, travel=self.travel)
                takes = max(region.min_horizon for region in every.values())
                raise NoAdmissibleDesign(explain(self.model.links, one.status, link, where, self.horizon, takes))

    def law(self) -> tuple[FirColumns, ...]:
        """Columns of all links."""
        solved = [self.of(link)[1] for link in range(self.model.n_links)]
        return tuple(FirColumns(links=self.regions[link].links, u=one.u, b=one.b) for link, one in enumerate(solved))


def _costs(disturbances: Mapping[Source, float], columns: _Columns) -> tuple[np.ndarray, float]:
    """Cost of rates and of queues, and its lower bound, over all sources; equal ones are solved once."""
    cost = np.zeros(2)
    requested: dict[bytes, _Problem] = {}
    variances: dict[bytes, float] = {}
    for (links, shares), variance in disturbances.items():
        if len(links) == 1:
            variance, shares = variance * shares[0] ** 2, (1.0,)
        around = [columns.regions[link] for link in links]
        solved = [columns.of(link) for link in links]
        cost += variance * _response_cost(
            [(region, one) for region, (_, one) in zip(around, solved, strict=True)], shares
        )
        region = together(around)
        backlog = np.zeros((1, len(region.links)))
        backlog[0, [int(np.flatnonzero(region.links == link)[0]) for link in links]] = shares
        key = region.key() + backlog.tobytes()
        requested.setdefault(key, _Problem(region, max(problem.horizon for problem, _ in solved), backlog, True))
        variances[key] = variances.get(key, 0.0) + variance
    free = _each(list(requested.values()), columns.n_jobs)
    return cost, sum(variances[key] * float(one.cost.sum()) for key, one in zip(requested, free, strict=True))


def _response_cost(columns: Sequence[tuple[Region, _Solution]], shares: Sequence[float]) -> np.ndarray:
    """Cost of rates and of queues of the sum of several links' responses."""
    if len(columns) == 1:
        return columns[0][1].cost[0]
    links = np.unique(np.concatenate([region.links for region, _ in columns]))
    u, b = np.zeros((2, len(links), max(one.u.shape[2] for _, one in columns)))
    weight = np.zeros(len(links))
    for share, (region, one) in zip(shares, columns, strict=True):
        rows = np.searchsorted(links, region.links)
        u[rows, : one.u.shape[2]] += share * one.u[0]
        b[rows, : one.b.shape[2]] += share * one.b[0]
        weight[rows] = region.weight
    return np.array([np.sum(u**2), np.sum(weight[:, None] * b**2)])


def _solve(problem: _Problem) -> _Solution:
    region, T = problem.region, problem.horizon
    shape = (region.delay, region.heard, region.travel, region.weight, region.fed)
    where, ready, band = _columns.equations(*shape, T, problem.free)
    if where >= 0:
        return _Solution(kernels.LATE, where)
    factor = _factor(band)
    if factor is None:
        return _Solution(kernels.SINGULAR, 0)
    answer = _columns.respond(region.delay, region.fed, region.weight, T, problem.backlog, ready, factor)
    return _Solution(kernels.SOLVED, 0, *answer)


def _factor(band: np.ndarray) -> np.ndarray | None:
    """Cholesky factor of a band, in place; None where the band is singular to rounding."""
    diagonal = band[:, 0].copy()
    if band.shape[1] > _WIDE:
        try:
            band = cholesky_banded(band.T, overwrite_ab=True, lower=True, check_finite=False).T
        except LinAlgError:
            return None
    elif not _columns.factorise(band):
        return None
    return None if (band[:, 0] ** 2 < _SINGULAR * diagonal).any() else band


def _block(problems: Sequence[_Problem]) -> list[_Solution]:
    return [_solve(problem) for problem in problems]


def _each(problems: Sequence[_Problem], n_jobs: int) -> list[_Solution]:
    """Solutions of all problems, in blocks; the kernels release the GIL."""
    for problem in problems:
        links, T = len(problem.region.links), problem.horizon
        if links * T * 2 * links > _MAX_ENTRIES:
            takes = f"smaller regions: a column has {links} links over {T} samples. {SMALLER}"
            raise InvalidValue("reach", "regions too large", takes)
    with blas_threads(_WIDE):
        if n_jobs == 1 or len(problems) <= _BLOCK:
            return _block(problems)
        from joblib import Parallel, delayed

        blocks = [problems[i : i + _BLOCK] for i in range(0, len(problems), _BLOCK)]
        done = Parallel(n_jobs, prefer="threads")(delayed(_block)(block) for block in blocks)
        return [one for block in done for one in block]
