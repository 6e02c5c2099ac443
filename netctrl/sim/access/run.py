"""Run an access link packet by packet: a period at a time, open loop, or with a controller."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from math import inf
from numbers import Real
from typing import Any

import numpy as np

from netctrl.errors import InvalidValue, checked_function, checked_kind, checked_whole
from netctrl.model.design.design import provenance
from netctrl.plants.access import DELAY_SUM, MEASURED, read_premium
from netctrl.scenario.access.result import AccessLinkResult, AccessLinkSample, access_link_result
from netctrl.scenario.access.scenario import AccessLinkScenario
from netctrl.sim.access.kernel import advance_access_link
from netctrl.sim.access.problem import (
    access_link_plant,
    access_link_traffic,
    command,
    draw_ahead,
    flow_rates,
    flow_streams,
    source_of,
)
from netctrl.sim.access.state import NODE_COUNT, PREMIUM
from netctrl.sim.access.tcp import advance_tcp, tcp_backlog, tcp_plant, tcp_traffic
from netctrl.units import BITS_PER_BYTE

__all__ = ["AccessLink", "Controller", "control_access_link", "simulate_access_link"]

Controller = Callable[[AccessLinkSample], float | tuple[float, int]]
"""From a period's measurement to the next period's rate [bit/s], or (rate, burst)."""

_RATE_TAKES = "a rate of at least 0 in bit/s; inf opens the regulators"
_BURST_TAKES = "packets from 1 to 10000, or 0: each source's own"


class AccessLink:
    """A link on its way: `advance` by a period, with the rate that regulators let through in it.

    Parameters
    ----------
    scenario : AccessLinkScenario
        Its seed decides all that is drawn. How a run is cut into calls changes no bit.
    """

    def __init__(self, scenario: AccessLinkScenario) -> None:
        self.scenario = scenario
        self.period = 0
        self._streams = flow_streams(scenario)
        self._source = source_of(scenario)
        self._bits = np.full(1 + scenario.flows + len(scenario.cross), scenario.size * BITS_PER_BYTE)
        self._bits[PREMIUM] = scenario.premium_size * BITS_PER_BYTE
        if scenario.senders is None:
            self.plant: Any = access_link_plant(scenario)
            self.traffic: Any = access_link_traffic(scenario, self.plant, self._streams)
            self._kernel: Callable[..., bool] = advance_access_link
        else:
            self.plant = tcp_plant(scenario, scenario.senders)
            self.traffic = tcp_traffic(scenario, self.plant, self._streams)
            self._kernel = advance_tcp

    def copy(self) -> AccessLink:
        """The same link, packets and draws to come included, which goes its own way from now on."""
        return copy.deepcopy(self)

    def advance(self, rate_bit_per_s: float, burst: int = 0) -> AccessLinkSample:
        """One period Ts.

        Parameters
        ----------
        rate_bit_per_s : float
            R of all regulators together; inf: they are open, and what is offered comes.
        burst : int
            Packets that each flow releases at once; 0: what its source's record says.

        Raises
        ------
        InvalidValue
            A rate below 0 or NaN, no whole number of packets.
        """
        if not isinstance(rate_bit_per_s, Real) or not (0.0 <= rate_bit_per_s <= 1e18 or rate_bit_per_s == inf):
            raise InvalidValue("rate_bit_per_s", rate_bit_per_s, _RATE_TAKES)
        checked_whole("burst", burst, _BURST_TAKES, at_most=10_000)
        before = self._counters()
        start, self.period = self.period * self.scenario.interval, self.period + 1
        end = self.period * self.scenario.interval
        self.traffic.measured[DELAY_SUM : MEASURED + 1] = 0.0
        turns = {turn for each in self.scenario.failures for turn in (each.start, each.stop) if start < turn < end}
        for begin, until in zip((start, *sorted(turns)), (*sorted(turns), end), strict=True):
            self._advance(float(rate_bit_per_s), burst, begin, until)
        return self._sample(float(rate_bit_per_s), burst, before)

    def _advance(self, rate: float, burst: int, begin: float, until: float) -> None:
        scenario = self.scenario
        own = np.array([scenario.sources[place].burst for place in self._source])
        bursts = np.full(len(own), burst) if burst else own
        rates = flow_rates(scenario, rate, begin)
        command(self.traffic.gates, begin, rates, bursts, scenario.size, self.plant.spacing)
        while not self._kernel(self.plant, self.traffic, until):
            draw_ahead(self.traffic.gates, self._streams)

    def _counters(self) -> tuple[np.ndarray, np.ndarray, int]:
        refused = 0 if self.scenario.senders is None else int(self.traffic.refused.sum())
        return self.traffic.departed.copy(), self.traffic.dropped.copy(), refused

    def _backlog(self) -> tuple[int, ...]:
        traffic = self.traffic
        if self.scenario.senders is not None:
            return tcp_backlog(traffic)
        queued = traffic.ring_count.sum(axis=1) + (traffic.serving >= 0)
        return tuple((traffic.counts[NODE_COUNT] + queued).tolist())

    def _sample(self, rate: float, burst: int, before: tuple[np.ndarray, np.ndarray, int]) -> AccessLinkSample:
        scenario, F = self.scenario, self.scenario.flows
        departed, dropped, refused = self._counters()
        departed, dropped = departed - before[0], dropped - before[1]
        rates = departed * self._bits / scenario.interval
        out = rates[-1, : F + 1]
        empty = self.traffic.departed[-1, PREMIUM] == 0
        premium = read_premium(self.traffic.measured, scenario.base_delay, bool(empty))
        return AccessLinkSample(
            time_s=self.period * scenario.interval,
            rate_bit_per_s=rate,
            burst=burst,
            delay_ms=1e3 * float(premium.delay),
            jitter_ms=1e3 * float(premium.jitter),
            mean_delay_ms=1e3 * float(premium.mean_delay),
            mean_jitter_ms=1e3 * float(premium.mean_jitter),
            premium_received=int(premium.received),
            premium_lost=int(dropped[:, PREMIUM].sum()),
            premium_bit_per_s=float(out[PREMIUM]),
            other_bit_per_s=float(out[1:].sum()),
            other_lost=int(dropped[:, 1 : F + 1].sum()),
            regulator_lost=refused - before[2],
            utilization=float(rates.sum(axis=1).max() / scenario.capacity),
            backlog=self._backlog(),
            source_bit_per_s=tuple(np.bincount(self._source, out[1:], len(scenario.sources)).tolist()),
        )


def simulate_access_link(
    scenario: AccessLinkScenario, rate_bit_per_s: Any = inf, burst: Any = 0, *, argv: Iterable[str] = ()
) -> AccessLinkResult:
    """Run a link without a controller: a trace of inputs and outputs.

    Parameters
    ----------
    scenario : AccessLinkScenario
    rate_bit_per_s : float or array_like, shape (T,)
        R of each of the scenario's T periods [bit/s]; inf: regulators are open.
    burst : int or array_like, shape (T,)
        Packets that a flow releases at once; 0: each source's own.
    argv : iterable of str
        Command line, for the provenance.

    Raises
    ------
    InvalidValue
        Another number of values than the scenario has periods, or a value out of bounds.
    """
    checked_kind("scenario", scenario, AccessLinkScenario)
    T = scenario.periods
    rates, bursts = _each("rate_bit_per_s", rate_bit_per_s, T), _each("burst", burst, T)
    link = AccessLink(scenario)
    samples = [link.advance(rates[k], bursts[k]) for k in range(T)]
    return access_link_result(
        scenario, samples, provenance(argv=argv, seed=scenario.seed, libraries=("numpy", "numba"))
    )


def control_access_link(
    scenario: AccessLinkScenario, controller: Controller, *, first_rate_bit_per_s: float = 0.0, argv: Iterable[str] = ()
) -> AccessLinkResult:
    """Run a link with a controller in the loop.

    Parameters
    ----------
    scenario : AccessLinkScenario
    controller : callable
        From a period's `AccessLinkSample` to the next period's rate [bit/s], or (rate, burst).
    first_rate_bit_per_s : float
        Of the first period, before anything was measured.
    argv : iterable of str
        Command line, for the provenance.

    Raises
    ------
    InvalidValue
        The controller's rate is below 0 or NaN.
    """
    checked_kind("scenario", scenario, AccessLinkScenario)
    checked_function("controller", controller)
    link, samples = AccessLink(scenario), []
    action: float | tuple[float, int] = first_rate_bit_per_s
    for _ in range(scenario.periods):
        samples.append(link.advance(*action) if isinstance(action, tuple) else link.advance(action))
        action = controller(samples[-1])
    return access_link_result(
        scenario, samples, provenance(argv=argv, seed=scenario.seed, libraries=("numpy", "numba"))
    )


def _each(name: str, values: Any, periods: int) -> list[Any]:
    takes = f"one value, or one for each of the scenario's {periods} periods"
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidValue(name, values, takes) from None
    if array.ndim == 0:
        return [array.item()] * periods
    if array.shape != (periods,):
        raise InvalidValue(name, array.shape, takes)
    return array.tolist()
