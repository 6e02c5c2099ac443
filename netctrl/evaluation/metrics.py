"""Metrics of one simulated case: of the bottleneck, of each group of flows, and of its objects.

RFC 7928, Section 2 defines completion time, loss, goodput, delay and jitter; fairness is Jain's index (Jain, Chiu,
Hawe, DEC-TR-301, 1984).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from netctrl.core.units import BITS_PER_BYTE
from netctrl.evaluation.case import BOTTLENECK, Group, Plan
from netctrl.scenario.result import Result

_HEADERS = 40.0  # IP and TCP [byte]
_BREAKER = 1.0 / sqrt(2.0 / 3.0)


class Metric(NamedTuple):
    """A metric."""

    unit: str
    """As in `netctrl.core.units.format_quantity`; "": a number; "%": a share from 0 to 1."""
    what: str
    """What it says."""


METRICS = {
    "utilization": Metric("%", "bits that a link sent over those that it could send"),
    "queueing delay": Metric(
        "s",
        "time in a link's queue, mean over intervals with packets; backlog over capacity in engines without this time",
    ),
    "queueing delay 95 %": Metric("s", "95 % quantile over intervals of the mean time in the queue"),
    "delay variation": Metric("s", "standard deviation over intervals of the mean time in the queue"),
    "loss": Metric("%", "packets lost in a link's queue or on its wire over those that came"),
    "marks": Metric("%", "packets marked over those that came"),
    "goodput": Metric("bit/s", "payload of a group"),
    "round trip": Metric("s", "round-trip time that a group's flows measure, mean over intervals"),
    "fairness": Metric("", "Jain's index of the goodputs of a group's flows: 1 where they are equal"),
    "least share": Metric("", "goodput of a group's slowest flow over the mean of its flows"),
    "goodput ratio": Metric("", "goodput of a flow of one group over that of a flow of another"),
    "goodput share": Metric("%", "goodput of a flow of one group over its sum with that of a flow of another"),
    "delivered": Metric("%", "payload of a group of datagrams that arrived over what it sent"),
    "one-way delay": Metric("s", "time of datagrams from the first queue to the receiver"),
    "jitter": Metric("s", "mean difference of a datagram's delay from that of the one before"),
    "completion time": Metric("s", "from the request of an object to its last byte, mean"),
    "completion time 95 %": Metric("s", "the same, 95 % quantile"),
    "completed": Metric("", "objects that were requested after the warm-up and arrived before the end"),
    "packets per round trip": Metric("", "packets that a flow sends to the bottleneck in a round trip without queue"),
    "over TCP's rate": Metric(
        "", "rate of a flow over Reno's at this loss and round trip; circuit breakers open at 10"
    ),
}
"""Name -> metric."""


class Value(NamedTuple):
    """A metric's value in one run; NaN where nothing was measured."""

    metric: str
    of: str
    """Id of a link or a group; of a ratio, both groups."""
    value: float


def jain(rates: np.ndarray) -> float:
    """Jain's fairness index (Σx)²/(n Σx²) of n rates x: 1 where all are equal, 1/n where one has everything.

    Parameters
    ----------
    rates : ndarray, shape (n,)

    Returns
    -------
    float
        NaN where all are 0.
    """
    squares = float((rates**2).sum())
    return float(rates.sum()) ** 2 / (len(rates) * squares) if squares > 0.0 else nan


def measured(plan: Plan, result: Result) -> list[Value]:
    """All metrics of a run after its warm-up, in an order that only the case decides."""
    return list(_Run(plan, result).values())


class _Run:
    """A result with what metrics share."""

    def __init__(self, plan: Plan, result: Result) -> None:
        self.plan, self.result = plan, result
        self.chosen = result.time_s > result.span[0] + 1e-6 * result.time_s[0]
        self.seconds, self.series = result.seconds, result.series
        self.goodput = np.array([result["goodput", of] for of in result.flows])

    def values(self) -> Iterator[Value]:
        """All metrics."""
        for link in self.result.links:
            yield from self._of_link(link)
        for group in self.plan.case.groups:
            if group.measured:
                yield from self._of_group(group)
        if self.plan.case.ratio is not None:
            first, second = self.plan.case.ratio
            ours, theirs = (float(self.goodput[list(self.plan.rows[name])].mean()) for name in (first, second))
            yield Value("goodput ratio", f"{first}/{second}", _over(ours, theirs))
            yield Value("goodput share", f"{first}/{second}", _over(ours, ours + theirs))
        for name in self.plan.case.extra:
            yield Value(name, BOTTLENECK, EXTRA[name](self))

    def _of_link(self, link: str) -> Iterator[Value]:
        waited = self._delays(link)
        yield Value("utilization", link, self.result["utilization", link])
        some = len(waited) > 0
        yield Value("queueing delay", link, float(waited.mean()) if some else nan)
        yield Value("queueing delay 95 %", link, float(np.quantile(waited, 0.95)) if some else nan)
        yield Value("delay variation", link, float(waited.std()) if some else nan)
        yield Value("loss", link, self.result["loss", link])
        if any(group.ecn for group in self.plan.case.groups):
            yield Value("marks", link, self.result["marks", link])

    def _delays(self, link: str) -> np.ndarray:
        """Time in a link's queue in each interval in which it sent something [s]."""
        sent = self.chosen & (self.series["departed", link] > 0.0)
        if "delay" in self.series:
            waited = self.series["delay", link][sent]
            return waited[np.isfinite(waited)]
        return BITS_PER_BYTE * self.series["backlog", link][sent] / self.series["capacity", link][sent]

    def _of_group(self, group: Group) -> Iterator[Value]:
        rows = list(self.plan.rows[group.id])
        rates = self.goodput[rows]
        yield Value("goodput", group.id, float(rates.sum()))
        if group.endless:
            yield Value("round trip", group.id, self._mean("rtt", rows))
            if len(rows) > 1:
                yield Value("fairness", group.id, jain(rates))
                yield Value("least share", group.id, _over(float(rates.min()), float(rates.mean())))
        elif group.completes:
            yield from self._completions(group)
        else:
            yield Value("delivered", group.id, self._delivered(group, rows[0]))
            yield Value("one-way delay", group.id, self._mean("one_way", rows))
            yield Value("jitter", group.id, self._mean("jitter", rows))

    def _completions(self, group: Group) -> Iterator[Value]:
        found = self.result.transfers
        times = found["duration"][found["start"] >= self.result.scenario.warmup]
        some = len(times) > 0
        yield Value("completion time", group.id, float(times.mean()) if some else nan)
        yield Value("completion time 95 %", group.id, float(np.quantile(times, 0.95)) if some else nan)
        yield Value("completed", group.id, float(len(times)))

    def _delivered(self, group: Group, row: int) -> float:
        """Received over sent; sent from the rate, while the group is on after the warm-up."""
        scenario = self.result.scenario
        stop = scenario.duration if group.stop is None else min(group.stop, scenario.duration)
        start = max(scenario.warmup, 0.5 * (group.start[0] + group.start[1]))
        payload = 1.0 - _HEADERS / self.plan.case.packet
        sent = group.count * scenario.flows[row].offers.rate * payload * max(stop - start, 0.0)
        return _over(float(self.goodput[row]) * self.seconds, sent)

    def _mean(self, quantity: str, rows: list[int]) -> float:
        """Mean of a group's series over its flows and the intervals in which it was measured."""
        if quantity not in self.series:
            return nan
        held = self.series[quantity][rows][:, self.chosen]
        held = held[np.isfinite(held)]
        return float(held.mean()) if held.size else nan

    @property
    def endless(self) -> list[int]:
        """Rows of all endless flows."""
        return [row for group in self.plan.case.groups if group.endless for row in self.plan.rows[group.id]]

    def packets_per_round_trip(self) -> float:
        """Packets that an endless flow offers in a round trip without queue, if no others send."""
        arrived = float(self.series["arrived"][0, self.chosen].sum()) / self.plan.case.packet
        return arrived / self.seconds * self.plan.case.rtt / len(self.endless)

    def over_tcp_rate(self) -> float:
        """Rate of an endless flow over MSS/(R √(2p/3)), RFC 8083, Section 4.3."""
        rate, lost = float(self.goodput[self.endless].mean()), self.result["loss", self.result.links[0]]
        rtt = self._mean("rtt", self.endless)
        payload = (self.plan.case.packet - _HEADERS) * BITS_PER_BYTE
        return rate * rtt * sqrt(lost) / (payload * _BREAKER) if lost > 0.0 else nan


EXTRA: dict[str, Callable[[_Run], float]] = {
    "packets per round trip": _Run.packets_per_round_trip,
    "over TCP's rate": _Run.over_tcp_rate,
}
"""Name of a further metric of a case -> its function of a run."""


def _over(value: float, whole: float) -> float:
    return value / whole if whole > 0.0 else nan
