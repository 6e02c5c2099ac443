"""Myopic control of finite length: each link filters its own arrivals; block coordinate descent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.fft
from scipy.linalg import solve_toeplitz

from netctrl.core.errors import InvalidValue, checked_kind, checked_number, checked_whole
from netctrl.model.law import FirColumns, FirGain
from netctrl.model.network_model import NetworkModel
from netctrl.synthesis.localized.localized import settling_time
from netctrl.synthesis.localized.region import checked_weight
from netctrl.synthesis.localized.routes import Routes, routes_of

_WORTH = 1e-6
"""Relative cost: the default horizon is doubled until doubling gains less than this."""

_FLOOR = 1e-6
"""Share of a link's long-term arrival variance that is added as a disturbance at the link. Without it, where links
upstream suppress a frequency, the link's own response at that frequency would be unbounded."""

_MAX_SWEEPS = 1000
_MAX_ENTRIES = 2**27  # entries of all spectra


@dataclass(frozen=True, slots=True)
class MyopicFirSynthesis:
    """Locally optimal filters: no single filter can be improved with the others fixed.

    Global optimality is unknown; the coordinated cost is a lower bound.
    """

    law: FirGain
    cost: float
    """Σ_l E f_l² + mu_l E b_l² under the demands' deviations [(bit/s)²]."""
    cost_rate: float
    cost_queue: float
    horizon: int
    """Samples of each filter, T."""
    gradient: float
    """Largest derivative of the logarithm of the objective by a link's response at any age: 0 at a local optimum."""
    sweep_costs: tuple[float, ...]
    """Objective at the start and after each sweep over the links: the cost, plus that of a millionth of the variance at
    each link [(bit/s)²]. It never rises."""

    @property
    def sweeps(self) -> int:
        """Number of sweeps over all links."""
        return len(self.sweep_costs) - 1

    @property
    def decrease(self) -> float:
        """Relative decrease of the objective in the last sweep."""
        before, after = self.sweep_costs[-2:]
        return before / after - 1.0 if after > 0.0 else 0.0


def myopic_fir(
    model: NetworkModel, weight: float | np.ndarray, *, horizon: int | None = None, tolerance: float = 1e-7
) -> MyopicFirSynthesis:
    """Each link's filter on its arrivals, u_l(n) = Σ_s phi_l(s) v_l(n − s), s = 1, ..., T, at a local optimum.

    A link's own backlog and rates give its arrivals, v_l(n − 1) = b_l(n) − b_l(n − 1) + u_l(n − 1), so every linear
    controller of its own backlog and rates is a filter on them. The backlog's response theta has

        b_l(n) = Σ_s theta_l(s) v_l(n − s),    theta_l(1) = 1,    theta_l(T + 1) = 0,
        phi_l(s) = theta_l(s) − theta_l(s + 1).

    v_l doesn't depend on theta_l, and all downstream responses are affine in theta_l. With the other links fixed, the
    cost is an ordinary least-squares problem in theta_l with a Toeplitz matrix. The links' problems are solved in turn,
    the last links first, until a sweep changes the cost by less than `tolerance`. A disturbance of a millionth of the
    arriving variance is added at each link, so that it doesn't amplify what the links upstream filter out.

    Parameters
    ----------
    model : NetworkModel
        Model without cycles of links that feed one another.
    weight : float or ndarray, shape (N,)
        mu_l = lambda_l·interval² > 0: weight of a squared backlog relative to a squared rate.
    horizon : int, optional
        T. By default the settling time of a single link, doubled until doubling gains less than 1e-6 of the cost. Good
        filters are longer where routes pass more links.
    tolerance : float
        Relative change of the cost from one sweep to the next at which the descent stops.

    Returns
    -------
    MyopicFirSynthesis
        Each column of its law holds one link: no other link responds to that link's arrivals. The law responds to
        deviations from the commanded rate only through the backlog.

    Raises
    ------
    InvalidValue
        A weight that isn't above 0, arguments that don't fit, or a horizon too long for so large a network.
    NoAdmissibleDesign
        Links that feed one another in a cycle, so responses never end. The message names them.

    Notes
    -----
    HFTraC paper, Section IV-A (myopic) and eq. (14) (implementation); docs/explanation/hftrac.md.
    """
    checked_kind("model", model, NetworkModel)
    mu = checked_weight(weight, model.n_links)
    checked_number("tolerance", tolerance, "a number above 0 and below 1", above=0.0, at_most=1.0 - 1e-9)
    if horizon is None:
        T = settling_time(float(mu.min()), _WORTH)
    else:
        T = checked_whole("horizon", horizon, "a whole number of samples of at least 1", at_least=1)
    routes = routes_of(model)
    # From the responses of single links, sinh((T + 1 − t) a)/sinh(T a) with a = ln(1 + p), p = (mu + √(mu² + 4 mu))/2:
    # they solve theta(t − 1) − (2 + mu) theta(t) + theta(t + 1) = 0 between 1 and 0.
    a, past = np.log1p(0.5 * (mu + np.sqrt(mu * mu + 4.0 * mu)))[:, None], np.arange(T)
    theta = np.exp(-a * past) * np.expm1(-2.0 * a * (T - past)) / np.expm1(-2.0 * a * T)
    descent = _Descent(model, routes, mu, theta)
    costs = descent.sweep(tolerance)
    worth = 1.0 if horizon is None else 0.0
    while worth > _WORTH:
        before = costs[-1].sum()
        longer = np.pad(descent.theta, ((0, 0), (0, descent.theta.shape[1])))
        descent = _Descent(model, routes, mu, longer)
        costs += descent.sweep(tolerance)[1:]
        worth = before / costs[-1].sum() - 1.0 if before > 0.0 else 0.0
    rate, queue, _ = costs[-1]
    return MyopicFirSynthesis(
        law=_law(model, descent.theta),
        cost=float(rate + queue),
        cost_rate=float(rate),
        cost_queue=float(queue),
        horizon=descent.theta.shape[1],
        gradient=descent.gradient(),
        sweep_costs=tuple(float(cost.sum()) for cost in costs),
    )


def _law(model: NetworkModel, theta: np.ndarray) -> FirGain:
    """Law in the form of eq. (14). Columns of rates are 0, as links don't respond to them."""
    N, T = theta.shape
    columns = []
    for link in range(N):
        links = np.array([link])
        u, b = np.zeros((2, model.delay[link] + 2, 1, T))
        u[0, 0], b[0, 0] = _sent(theta[link]), theta[link]
        columns.append(FirColumns(links=links, u=u, b=b))
    return FirGain(interval_s=model.interval_s, delay=model.delay, links=model.links, columns=tuple(columns))


def _sent(theta: np.ndarray) -> np.ndarray:
    """Rate response phi(t) = theta(t) − theta(t + 1)."""
    return theta - np.concatenate([theta[..., 1:], np.zeros_like(theta[..., :1])], axis=-1)


class _Descent:
    """Links' responses during the descent, as spectra long enough to avoid wrap-around.

    All responses to an impulse at time 0 are zero after `samples`, as no link feeds itself.
    """

    def __init__(self, model: NetworkModel, routes: Routes, mu: np.ndarray, theta: np.ndarray) -> None:
        self.routes, self.mu, self.theta, self.delay = routes, mu, theta, model.delay
        N, T = theta.shape
        self.samples = scipy.fft.next_fast_len(_longest(self.routes, model.delay, T), real=True)
        bins = self.samples // 2 + 1
        entries = bins * sum(4 + len(sources) for sources in self.routes.passing)
        if entries > _MAX_ENTRIES:
            takes = f"a shorter horizon: the responses of {N} links take {self.samples} samples in total to die out"
            raise InvalidValue("horizon", T, takes)
        scale = np.sqrt(sum(float(size @ size) for _, size in self.routes.entering))
        self.unit = scale if scale > 0.0 else 1.0
        self.shift = np.exp(-2j * np.pi * np.arange(bins) / self.samples)
        self.backlog, self.rate, self.onward = np.empty((3, N, bins), complex)
        self.weight = np.empty((N, bins))
        self.take(theta)

    def sweep(self, tolerance: float) -> list[np.ndarray]:
        """Results of `cost` at the start and after each sweep over the links.

        After each sweep an extrapolation along the same step is tried, farther each time it helped: alternating between
        links makes slow progress where only a joint change of all of them helps.
        """
        costs, further = [self.cost()], 1.0
        while len(costs) <= _MAX_SWEEPS:
            before = self.theta.copy()
            for link in reversed(self.routes.order):
                self.improve(link)
            after = self.theta
            self.take(after)  # recomputed, so that rounding errors don't accumulate
            costs.append(self.cost())
            if costs[-2].sum() - costs[-1].sum() <= tolerance * costs[-1].sum():
                break
            self.take(after + further * (after - before))
            tried = self.cost()
            if tried.sum() < costs[-1].sum():
                costs[-1], further = tried, 1.5 * further
            else:
                self.take(after)
                further = max(0.5 * further, 0.5)
        return costs

    def take(self, theta: np.ndarray) -> None:
        """Replace the responses."""
        self.theta = theta
        self.settle(slice(None))
        self.arrive()

    def settle(self, links: int | slice) -> None:
        """Update the spectra of links' backlogs, rates and line outputs, and their cost."""
        self.backlog[links] = self._spectrum(self.theta[links])
        self.rate[links] = self._spectrum(_sent(self.theta[links]))
        self.onward[links] = self._line(links) * self.rate[links]
        self.weight[links] = _square(self.rate[links]) + self.mu[links, None] * _square(self.backlog[links])

    def arrive(self) -> None:
        """Update the spectra of each source's arrivals at each link."""
        routes = self.routes
        bins = len(self.shift)
        self.arrival = [np.zeros((len(sources), bins), complex) for sources in routes.passing]
        for link, (sources, size) in enumerate(routes.entering):
            self.arrival[link][np.searchsorted(routes.passing[link], sources)] += size[:, None] / self.unit
        for link in routes.order:
            sent = self.onward[link] * self.arrival[link]
            for fed, share in routes.feeds[link]:
                self.arrival[fed][np.searchsorted(routes.passing[fed], routes.passing[link])] += share * sent

    def cost(self) -> np.ndarray:
        """Cost of rates, of queues, and of the added disturbances [(bit/s)²]."""
        power = np.array([_square(arrival).sum(axis=0) for arrival in self.arrival])
        rate, queue = _square(self.rate), self.mu[:, None] * _square(self.backlog)
        parts = rate * power, queue * power, _FLOOR * self.weight * power[:, :1]
        return self.unit**2 * np.array([self._time(part.sum(axis=0))[0] for part in parts])

    def gradient(self) -> float:
        """Largest derivative of the logarithm of the total cost."""
        total = self.cost().sum() / self.unit**2
        slopes = (self._problem(link, self._responses(link))[1] for link in self.routes.order)
        return max(2.0 * float(np.abs(slope).max(initial=0.0)) / total for slope in slopes) if total > 0.0 else 0.0

    def improve(self, link: int) -> None:
        """Replace one link's response by the best one, and update the arrivals elsewhere."""
        responses = self._responses(link)
        row, slope = self._problem(link, responses)
        if not slope.any():
            return
        self.theta[link, 1:] -= solve_toeplitz(row, slope)
        before = self.rate[link].copy()
        self.settle(link)
        change = (self.rate[link] - before) * self.arrival[link]
        for other, rows, response in self._beyond(link, responses):
            self.arrival[other][rows] += response * change

    def _problem(self, link: int, responses: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """First row of the matrix by which half the cost is quadratic in theta(2), ..., theta(T), and its slope.

        Summed over sources, by correlations of the link's backlog and rate and of the effects of its rate downstream.
        """
        T, mu = self.theta.shape[1], self.mu[link]
        own = self.arrival[link].conj()
        power = _square(own).sum(axis=0)
        floor = _FLOOR * power[0]  # at frequency 0, where no response changes it
        doing, effect = np.ones(len(power)), self.rate[link] * power
        for other, rows, response in self._beyond(link, responses):
            doing += self.weight[other] * _square(response)
            together = np.einsum("if,if->f", self.arrival[other][rows], own)
            effect += self.weight[other] * response.conj() * together
        ahead = 1.0 - self.shift  # derivative of phi by theta: the conjugate of 1 − 1/shift
        row = power * (mu + _square(ahead) * doing) + floor * (mu + _square(ahead))
        slope = mu * self.backlog[link] * (power + floor) + ahead * (effect + floor * self.rate[link])
        return self._time(row)[: T - 1], self._time(slope)[2 : T + 1]

    def _responses(self, link: int) -> list[np.ndarray]:
        """Arrivals at each link downstream per unit of rate at `link`."""
        found: dict[int, np.ndarray] = {}

        def pass_on(link: int, spectrum: np.ndarray) -> None:
            for fed, share in self.routes.feeds[link]:
                found[fed] = found[fed] + share * spectrum if fed in found else share * spectrum

        pass_on(link, self._line(link))
        for other in self.routes.beyond[link]:
            pass_on(other, self.onward[other] * found[other])
        return [found[other] for other in self.routes.beyond[link]]

    def _beyond(self, link: int, responses: list[np.ndarray]) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        return zip(self.routes.beyond[link], self.routes.rows[link], responses, strict=True)

    def _line(self, links: int | slice) -> np.ndarray:
        """Transfer function from a rate to the line's output: f(n + 1) = u(n), and n_l samples of propagation."""
        return self.shift ** (self.delay[links, None] + 1)

    def _spectrum(self, responses: np.ndarray) -> np.ndarray:
        """Spectrum of responses that begin at age 1."""
        return self.shift * scipy.fft.rfft(responses, self.samples)

    def _time(self, spectrum: np.ndarray) -> np.ndarray:
        return scipy.fft.irfft(spectrum, self.samples)


def _square(spectrum: np.ndarray) -> np.ndarray:
    return spectrum.real**2 + spectrum.imag**2


def _longest(routes: Routes, delay: np.ndarray, T: int) -> int:
    """Samples after which all responses to an impulse at time 0 are zero, wherever it enters."""
    last = np.zeros(len(delay), np.int64)  # time of the last arrival
    for link in routes.order:
        for fed, _ in routes.feeds[link]:
            last[fed] = max(last[fed], last[link] + T + delay[link] + 1)
    return int(last.max()) + T + 2
