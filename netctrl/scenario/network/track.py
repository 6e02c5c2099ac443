"""Track: a control that sets the rates of flows so that the delay and jitter of another flow follow references."""

from __future__ import annotations

from math import isclose
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.rate.regulated import RegulatedSender
from netctrl.model.io.fields import (
    Duration,
    Rate,
    flag,
    instant,
    label,
    number,
    one_of,
    optional,
    rate_or_0,
    read_fields,
    texts,
)
from netctrl.model.io.record_file import Record
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import DATAGRAMS, Bursts, Stream

_MAX_PERIODS = 1e7


class Track(Record, frozen=True, kw_only=True, tag_field="kind", tag="track"):
    """A CONNET law sets the rate of regulated flows, once in each of its intervals.

    These are flows whose offers are of kind bursts, or whose sender is of kind regulated.

    Its first input is the rate of all these flows together, a second one the packets of a burst. Each flow sends at its
    share of that rate, but never more than it offers. Its outputs are some of the delay and jitter of the flow that it
    `measures`, and the throughput of the flows that it controls.

    Raises
    ------
    InvalidValue
        A value out of bounds, or shares that don't add up to 1.

    Examples
    --------
    >>> import netctrl
    >>> netctrl.Track(file="connet.json", reference=[[2.5, 1.0]], start="100s").start
    100.0
    """

    file: str = ""
    """The file of a CONNET Design, in a scenario file beside it; empty: the Design is given beside the scenario."""
    measures: str = "premium"
    """Id of the flow whose delay and jitter are measured."""
    flows: tuple[str, ...] = ()
    """Ids of the flows whose rates are set; empty: all regulated ones over the same links as the measured flow."""
    shares: tuple[float, ...] = ()
    """Share of each of `flows` in the rate; empty: equal shares. The flows of a group have equal parts of its share."""
    reference: tuple[tuple[float, ...], ...] = ()
    """References of all outputs, in the law's units, each for an equal part of the run; empty: those of the Design."""
    measured: Literal["average", "period"] | None = None
    """What is measured: moving averages over packets at the end of an interval, or means over it, which have a third of
    the noise; null: what the Design's method does."""
    governor: bool = False
    """Whether infeasible references are limited to feasible ones."""
    start: Duration = 0.0
    """When the law is switched on; before, flows send what they offer [s]."""
    first_rate: Rate | None = None
    """Rate of all flows together when it is switched on [bit/s]; null: that of its model's operating point."""

    def __post_init__(self) -> None:
        if not isinstance(self.file, str) or "\0" in self.file:
            raise InvalidValue("file", self.file, "the name of a Design file")
        read_fields(self, measures=label, flows=texts, shares=_shares, reference=_reference, governor=flag)
        read_fields(self, measured=optional(one_of("average", "period")), start=instant, first_rate=optional(rate_or_0))
        if self.shares and len(self.shares) != len(self.flows):
            raise InvalidValue("shares", f"{len(self.shares)} shares", f"one for each of {len(self.flows)} flows")
        if self.shares and not isclose(sum(self.shares), 1.0, rel_tol=1e-6):
            raise InvalidValue("shares", f"shares of {sum(self.shares):g} together", "shares that add up to 1")


def regulator_of(flow: Flow) -> Bursts | RegulatedSender | None:
    """What lets a flow's packets through in bursts, at a rate that a control can set; None: nothing does."""
    for each in (flow.offers, flow.sender):
        if isinstance(each, Bursts | RegulatedSender):
            return each
    return None


class GateSettings(NamedTuple):
    """A flow's regulator: a burst, then a pause."""

    rate: float
    """Mean rate [bit/s]."""
    burst: int
    """Packets of a burst."""
    within_s: float
    """Between packets of a burst [s]."""
    variation: float
    """Standard deviation over mean of the pauses."""


def gate_of(group: Flow, packet_size: float) -> GateSettings:
    """Regulator of a group's flows; a stream is one with bursts of one packet."""
    gate = regulator_of(group) or group.offers
    if isinstance(gate, Stream):
        return GateSettings(float(gate.rate), 1, 0.0, float(gate.spacing == "poisson"))
    within = packet_size * BITS_PER_BYTE / gate.access_rate
    return GateSettings(float(gate.rate), gate.burst, within, float(gate.pause_variation))


def gated_groups(scenario: Any) -> tuple[str, ...]:
    """Ids of the groups of datagrams whose rates may change, and of bursts: in all engines they have the same draws."""
    changed = {change.flow for change in scenario.changes}
    tracked = isinstance(scenario.control, Track)
    return tuple(
        group.id
        for group in scenario.flows
        if isinstance(group.offers, Bursts) or (isinstance(group.offers, Stream) and (tracked or group.id in changed))
    )


def tracked_groups(scenario: Any) -> tuple[Flow, ...]:
    """The groups of flows whose rates a scenario's `Track` sets."""
    control = scenario.control
    if control.flows:
        known = {group.id: group for group in scenario.flows}
        return tuple(known[name] for name in control.flows)
    path = next(group.path for group in scenario.flows if group.id == control.measures)
    return tuple(group for group in scenario.flows if regulator_of(group) and group.path == path)


def without_rates(scenario: Any) -> Any:
    """The scenario without rates of links and flows that a control or changes set: what else an engine must have."""
    changes = tuple(each for each in scenario.changes if not each.flow)
    if scenario.control is None and changes == scenario.changes:
        return scenario
    return scenario.replace(control=None, changes=changes)


def check_track(scenario: Any) -> None:
    """InvalidValue where the flows of a scenario's `Track` aren't there, or are of another kind."""
    control, known = scenario.control, {group.id: group for group in scenario.flows}
    measured = known.get(control.measures)
    if measured is None or not isinstance(measured.offers, DATAGRAMS) or measured.count != 1:
        takes = "the id of one flow of datagrams, such as of a stream"
        raise InvalidValue("control.measures", control.measures, takes)
    for place, name in enumerate(control.flows):
        if name not in known or regulator_of(known[name]) is None:
            takes = "the id of flows whose offers are of kind bursts, or whose sender is of kind regulated"
            raise InvalidValue(f"control.flows[{place}]", name, takes)
        if name in control.flows[:place]:
            raise InvalidValue(f"control.flows[{place}]", name, "each flow once")
    if not tracked_groups(scenario):
        takes = f"regulated flows, as of kind bursts, over the path of {control.measures}"
        raise InvalidValue("control.flows", control.flows, takes)
    if control.start >= scenario.duration:
        raise InvalidValue("control.start", control.start, f"a time before the end ({scenario.duration:g} s)")


def infeasible(at_limit: ArrayLike, interval_s: float, min_s: float = 20.0) -> list[tuple[float, float]]:
    """Intervals in which an input was at its limit throughout, so that the reference is infeasible.

    Parameters
    ----------
    at_limit : array_like, shape (T,)
        Whether an input was at its limit in each of the law's intervals, as in the table `signals` of a result.
    interval_s : float
        The law's interval [s].
    min_s : float
        Shortest interval that is listed [s].

    Returns
    -------
    list of (float, float)
        Beginning and end of each interval [s].
    """
    held = np.concatenate([[False], np.asarray(at_limit) > 0, [False]])
    edges = np.flatnonzero(np.diff(held.astype(int)))
    spans = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return [(interval_s * a, interval_s * b) for a, b in spans if interval_s * (b - a) >= min_s]


def _shares(field: str, value: Any) -> tuple[float, ...]:
    share = number("a share above 0, to 1", above=0.0, at_most=1.0)
    return tuple(share(f"{field}[{place}]", each) for place, each in enumerate(_rows(field, value, "a list of shares")))


def _reference(field: str, value: Any) -> tuple[tuple[float, ...], ...]:
    takes = "a list of references, each a list with a number for each output"
    finite, rows = number("a finite number"), []
    for place, row in enumerate(_rows(field, value, takes)):
        where = f"{field}[{place}]"
        rows.append(tuple(finite(f"{where}[{k}]", each) for k, each in enumerate(_rows(where, row, takes))))
    if len({len(row) for row in rows}) > 1 or len(rows) > _MAX_PERIODS or () in rows:
        raise InvalidValue(field, f"{len(rows)} references", takes)
    return tuple(rows)


def _rows(field: str, value: Any, takes: str) -> list[Any]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise InvalidValue(field, value, takes)
    return list(value)
