"""Run an access link packet by packet: one period at a time, in open loop, or with a controller."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from math import inf
from numbers import Real
from typing import Any

import numpy as np

from netctrl.errors import InvalidValue, checked_function, checked_whole
from netctrl.model.design.design import provenance
from netctrl.plants.access import DELAY_SUM, MEASURED, read_premium
from netctrl.plants.regulators import command
from netctrl.scenario.access.network import AccessLine
from netctrl.scenario.access.result import AccessLinkResult, AccessLinkSample, access_link_result, access_link_sample
from netctrl.scenario.access.scenario import access_parts, flow_rates, source_of
from netctrl.scenario.scenario import Scenario, checked_network
from netctrl.sim.access.kernel import advance_access_link
from netctrl.sim.access.problem import access_link_plant, access_link_traffic, draw_ahead, flow_streams, packet_bits
from netctrl.sim.access.state import NODE_COUNT, PREMIUM
from netctrl.sim.access.tcp import advance_tcp, tcp_backlog, tcp_plant, tcp_traffic

Controller = Callable[[AccessLinkSample], float | tuple[float, int]]
"""Function from a period's measurement to the next period's rate [bit/s], or (rate, burst)."""

_RATE_TAKES = "a rate of at least 0 in bit/s; inf opens the regulators"
_BURST_TAKES = "a number of packets from 1 to 10000, or 0 for each source's own"


class AccessLink:
    """Running simulation of a link: `advance` simulates a period at a given rate of the regulators.

    Parameters
    ----------
    scenario : Scenario
        Scenario of an access link. Its seed determines all draws. Results don't depend on how a run is divided into
        calls.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.period = 0
        self._parts = parts = access_parts(scenario)
        self._streams = flow_streams(scenario)
        self._source = source_of(parts)
        self._bits = packet_bits(parts)
        if parts.sender is None:
            self.plant: Any = access_link_plant(scenario)
            self.traffic: Any = access_link_traffic(parts, self.plant, self._streams)
            self._kernel: Callable[..., bool] = advance_access_link
        else:
            self.plant = tcp_plant(scenario, parts.sender)
            self.traffic = tcp_traffic(parts.line.hops, self.plant, self._streams)
            self._kernel = advance_tcp

    def copy(self) -> AccessLink:
        """Independent copy of the link with its packets and future draws."""
        return copy.deepcopy(self)

    def advance(self, rate_bit_per_s: float, burst: int = 0) -> AccessLinkSample:
        """Simulate one period Ts.

        Parameters
        ----------
        rate_bit_per_s : float
            Total rate R of all regulators; inf opens them, so that all offered traffic passes.
        burst : int
            Packets that each flow releases at once; 0: as in its source's record.

        Raises
        ------
        InvalidValue
            A rate below 0 or NaN, or a number of packets that isn't whole.
        """
        if not isinstance(rate_bit_per_s, Real) or not (0.0 <= rate_bit_per_s <= 1e18 or rate_bit_per_s == inf):
            raise InvalidValue("rate_bit_per_s", rate_bit_per_s, _RATE_TAKES)
        checked_whole("burst", burst, _BURST_TAKES, at_most=10_000)
        before = self._counters()
        start, self.period = self.period * self.scenario.interval, self.period + 1
        end = self.period * self.scenario.interval
        self.traffic.measured[DELAY_SUM : MEASURED + 1] = 0.0
        turns = {turn for turn in self._parts.turns if start < turn < end}
        for begin, until in zip((start, *sorted(turns)), (*sorted(turns), end), strict=True):
            self._advance(float(rate_bit_per_s), burst, begin, until)
        return self._sample(float(rate_bit_per_s), burst, before)

    def _advance(self, rate: float, burst: int, begin: float, until: float) -> None:
        parts = self._parts
        own = np.array([parts.regulated[place].burst for place in self._source])
        bursts = np.full(len(own), burst) if burst else own
        rates = flow_rates(parts, rate, begin)
        command(self.traffic.gates, begin, rates, bursts, parts.packet_size, self.plant.spacing)
        while not self._kernel(self.plant, self.traffic, until):
            draw_ahead(self.traffic.gates, self._streams)

    def _counters(self) -> tuple[np.ndarray, np.ndarray, int]:
        refused = 0 if self._parts.sender is None else int(self.traffic.refused.sum())
        return self.traffic.departed.copy(), self.traffic.dropped.copy(), refused

    def _backlog(self) -> tuple[int, ...]:
        traffic = self.traffic
        if self._parts.sender is not None:
            return tcp_backlog(traffic)
        queued = traffic.ring_count.sum(axis=1) + (traffic.serving >= 0)
        return tuple((traffic.counts[NODE_COUNT] + queued).tolist())

    def _sample(self, rate: float, burst: int, before: tuple[np.ndarray, np.ndarray, int]) -> AccessLinkSample:
        scenario, parts, F = self.scenario, self._parts, self._parts.flows
        departed, dropped, refused = self._counters()
        departed, dropped = departed - before[0], dropped - before[1]
        rates = departed * self._bits / scenario.interval
        out = rates[-1, : F + 1]
        empty = self.traffic.departed[-1, PREMIUM] == 0
        premium = read_premium(self.traffic.measured, parts.line.base_delay, bool(empty))
        return access_link_sample(
            premium,
            out,
            dropped[:, : F + 1].sum(axis=0),
            self._source,
            len(parts.regulated),
            time_s=self.period * scenario.interval,
            rate_bit_per_s=rate,
            burst=burst,
            regulator_lost=refused - before[2],
            utilization=float(rates.sum(axis=1).max() / parts.line.capacity),
            backlog=self._backlog(),
        )


def simulate_access_link(
    scenario: Scenario, rate_bit_per_s: Any = inf, burst: Any = 0, *, argv: Iterable[str] = ()
) -> AccessLinkResult:
    """Run a link without a controller, for a trace of inputs and outputs.

    Parameters
    ----------
    scenario : Scenario
        Of an access link.
    rate_bit_per_s : float or array_like, shape (T,)
        R in each of the scenario's T periods [bit/s]; inf opens the regulators.
    burst : int or array_like, shape (T,)
        Packets that a flow releases at once; 0: each source's own.
    argv : iterable of str
        Command line, for the provenance.

    Raises
    ------
    InvalidValue
        A number of values other than the scenario's periods, or a value out of bounds.
    """
    checked_network(scenario, AccessLine)
    T = scenario.steps
    rates, bursts = _each("rate_bit_per_s", rate_bit_per_s, T), _each("burst", burst, T)
    link = AccessLink(scenario)
    samples = [link.advance(rates[k], bursts[k]) for k in range(T)]
    return access_link_result(
        scenario, samples, provenance(argv=argv, seed=scenario.seed, libraries=("numpy", "numba"))
    )


def control_access_link(
    scenario: Scenario, controller: Controller, *, first_rate_bit_per_s: float = 0.0, argv: Iterable[str] = ()
) -> AccessLinkResult:
    """Run a link with a controller in the loop.

    Parameters
    ----------
    scenario : Scenario
        Of an access link.
    controller : callable
        From a period's `AccessLinkSample` to the next period's rate [bit/s], or (rate, burst).
    first_rate_bit_per_s : float
        Rate of the first period, before any measurement.
    argv : iterable of str
        Command line, for the provenance.

    Raises
    ------
    InvalidValue
        The controller's rate is below 0 or NaN.
    """
    checked_network(scenario, AccessLine)
    checked_function("controller", controller)
    link, samples = AccessLink(scenario), []
    action: float | tuple[float, int] = first_rate_bit_per_s
    for _ in range(scenario.steps):
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
