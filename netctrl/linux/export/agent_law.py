"""Laws as numbers for agents: each link's rate as sums of measured and received values, or by prices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind, checked_names, checked_number
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.link_rate.controller import by_hearing
from netctrl.laws.link_rate.credit import Prices, no_prices
from netctrl.laws.link_rate.distributed import distributed_law
from netctrl.laws.link_rate.distributed_step import LinkRates, law_by_messages
from netctrl.laws.link_rate.fir import Feeds, FirLaw, FirSums, no_feeds
from netctrl.model.design.design import HftracDesign
from netctrl.model.design.mpc import MpcLaw
from netctrl.model.law import TrackingLaw
from netctrl.model.network_model import NetworkModel

_KINDS = 4
_MAX_ROWS = 500_000
_MAX_LAG = 1_000_000


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, eq=False):
    pass


class TapTable(_Table, frozen=True, kw_only=True, eq=False):
    """`netctrl.laws.link_rate.fir.FirSums` of N links, row by row."""

    offset: np.ndarray
    """(N,) [bit/s]"""
    taps: np.ndarray
    """(P, 4) rows of link, series, lag [sample] and coefficient, sorted by link."""

    def as_sums(self) -> FirSums:
        """The sums."""
        start, (series, lag), (coefficient,) = _columns(self.taps, len(self.offset), 2)
        return FirSums(start, series, lag, coefficient, self.offset.copy())


class PriceTable(_Table, frozen=True, kw_only=True, eq=False):
    """`netctrl.laws.link_rate.credit.Prices` of N links, and what feeds them, row by row; rates in bit/s."""

    pairs: np.ndarray
    """(E, 5) rows of link, the one that it feeds, share of what it sends that goes there, `other` and `spread`, sorted
    by link."""
    feeds: np.ndarray
    """(F, 4) rows of link, the one that feeds it, delay of that one [sample] and share, sorted by link."""
    links: np.ndarray
    """(N, 6) rows of `delay`, `lag`, `enters`, `varies`, `buffer` and `later`."""

    def as_prices(self) -> tuple[Prices, Feeds]:
        """Prices, and what feeds the links."""
        start, (link,), pairs = _columns(self.pairs, len(self.links), 1)
        begin, (feeder, delay), (share,) = _columns(self.feeds, len(self.links), 2)
        _, times, others = _columns(np.column_stack([np.arange(len(self.links)), self.links]), len(self.links), 2)
        return Prices(start, link, *pairs, *times, *others), Feeds(begin, feeder, delay, share)


class LinkRateTable(_Table, frozen=True, kw_only=True, tag_field="kind", tag="link-rates", eq=False):
    """Law for N links, of which only those commanded by one agent need taps and pairs.

    Raises
    ------
    InvalidValue
        Arrays of other shapes, or taps of unknown links, series or lags.
    """

    links: tuple[str, ...]
    """(N,) ids of all of the Design's links."""
    nominal: np.ndarray
    """(N,) rates around which the law controls [bit/s]."""
    capacity: np.ndarray
    """(N,) [bit/s]"""
    backlog_setpoint: float = msgspec.field(name="standing")
    """Backlog around which the law controls, over the interval [bit/s]."""
    paced: np.ndarray
    """(N,) 1: the link follows the law; 0: it sends at its greatest rate."""
    central: bool
    """Whether one controller receives all measurements and commands all links."""
    information_delay: int
    """Age from which a central controller has the links' measurements; for younger rates it uses its own commands."""
    control: TapTable
    predicted: TapTable
    """Setpoint of each link's own backlog."""
    prices: PriceTable | None = None
    """By which links send less than their sums where the next buffers are full."""

    def __post_init__(self) -> None:
        N = len(self.links)
        if not N or len(set(self.links)) != N:
            raise InvalidValue("links", self.links, "ids of one link or more, each once")
        for name in ("nominal", "capacity", "paced"):
            _settle(self, name, _shaped(name, getattr(self, name), (N,)))
        if self.information_delay < 0:
            raise InvalidValue("information_delay", self.information_delay, "a number of samples of at least 0")
        for name in ("control", "predicted"):
            table = getattr(self, name)
            _settle(table, "offset", _shaped(f"{name}.offset", table.offset, (N,)))
            _settle(table, "taps", _rows(f"{name}.taps", table.taps, 4, N, _KINDS * N, _MAX_LAG))
        if self.prices is not None:
            given = self.prices
            _settle(given, "pairs", _rows("prices.pairs", given.pairs, 5, N, N))
            _settle(given, "feeds", _rows("prices.feeds", given.feeds, 4, N, N, _MAX_LAG))
            links = _shaped("prices.links", given.links, (N, 6))
            _settle(given, "links", _rows("prices.links", links, 6, _MAX_LAG, _MAX_LAG, rising=False))

    def as_law(self, least: int = 0) -> LinkRates:
        """Law for a controller (`netctrl.laws.link_rate.controller`)."""
        N, nobody = len(self.links), np.zeros((0, 0), dtype=np.int64)
        prices, feeds = (no_prices(N), no_feeds(N)) if self.prices is None else self.prices.as_prices()
        sums = self.control.as_sums(), self.predicted.as_sums()
        around = self.nominal.copy(), self.backlog_setpoint
        return by_hearing(law_by_messages(*around, *sums, feeds, prices, nobody, nobody, messages=N), least)

    def scaled(self, growth: float) -> LinkRateTable:
        """The law for rates and backlogs that are so much larger, as with headers: it is homogeneous."""
        control, predicted = (
            TapTable(offset=growth * each.offset, taps=each.taps) for each in (self.control, self.predicted)
        )
        prices = self.prices
        if prices is not None:
            pairs, links = prices.pairs * [1, 1, 1, growth, growth], prices.links * [1, 1, growth, growth, growth, 1]
            prices = PriceTable(pairs=pairs, feeds=prices.feeds, links=links)
        return msgspec.structs.replace(
            self,
            nominal=growth * self.nominal,
            capacity=growth * self.capacity,
            backlog_setpoint=growth * self.backlog_setpoint,
            control=control,
            predicted=predicted,
            prices=prices,
        )

    def pairs(self) -> set[tuple[int, int]]:
        """Pairs (link, link whose measurements it needs)."""
        N = len(self.links)
        heard = [self.control.taps, self.predicted.taps] + ([] if self.prices is None else [self.prices.pairs])
        return {(at, of % N) for at, of in np.concatenate([rows[:, :2] for rows in heard]).astype(np.int64).tolist()}


class TrackingTable(_Table, frozen=True, kw_only=True, tag_field="kind", tag="tracking", eq=False):
    """CONNET law: one rate, shared by an agent's links, so that delay, jitter or throughput follow references.

    Raises
    ------
    InvalidValue
        A law with other signals, or a wrong number of references.
    """

    law: TrackingLaw
    reference: np.ndarray
    """(p,) [the law's units]."""
    measured_by: str | None = None
    """Peer that measures the law's outputs. With null the agent measures: delay as the backlog of `measured_at` over
    its rate, throughput as the rate sent by its own links."""
    measured_at: str | None = None
    """Interface of the bottleneck's queue."""
    bottleneck: float | None = None
    """Rate of that interface [bit/s]."""
    governor: bool = False
    """Whether unreachable references are cut (`netctrl.laws.tracking.reference_governor`)."""

    def __post_init__(self) -> None:
        if len(self.law.inputs) != 1:
            raise InvalidValue("law", f"{len(self.law.inputs)} inputs", "one input, the total rate of all regulators")
        unknown = sorted(set(self.law.outputs) - {"delay", "jitter", "throughput"})
        if unknown:
            raise InvalidValue("law", f"output {unknown[0]}", "delay, jitter, throughput")
        _settle(self, "reference", _shaped("reference", self.reference, (len(self.law.outputs),)))
        if self.measured_by is None:
            if "jitter" in self.law.outputs:
                raise InvalidValue("measured_by", None, "a peer that measures jitter, which a backlog doesn't show")
            if self.measured_at is None or self.bottleneck is None or not self.bottleneck > 0.0:
                raise InvalidValue("measured_at", self.measured_at, "an interface with its bottleneck [bit/s]")


class DecidedTable(_Table, frozen=True, kw_only=True, tag_field="kind", tag="mpc", eq=False):
    """A link's law of model predictive control.

    Raises
    ------
    InvalidValue
        A law for no link.
    """

    law: MpcLaw
    growth: float = 1.0
    """Bytes of frames over those that the law counts."""

    def __post_init__(self) -> None:
        if self.law.link is None:
            raise InvalidValue("law", "a law for no link", "one for a link")
        checked_number("growth", self.growth, "a ratio of at least 1", at_least=1.0)


def link_rate_table(
    design: HftracDesign,
    model: NetworkModel,
    *,
    reference: float = 1.0,
    backlog_setpoint: float = 0.0,
    links: Collection[str] = (),
) -> LinkRateTable:
    """HFTraC Design as numbers for agents.

    Parameters
    ----------
    design : HftracDesign
    model : NetworkModel
        Model of the same network and interval (`netctrl.network_model`).
    reference : float
        Rates around which the law controls, relative to the nominal ones.
    backlog_setpoint : float
        Backlog around which the law controls [byte].
    links : collection of str
        Links that follow the law, all by default. The others send at their greatest rate.

    Raises
    ------
    InvalidValue
        A model of another network, whose links the message names, or of another interval.
    """
    checked_kind("design", design, HftracDesign)
    checked_kind("model", model, NetworkModel)
    law = design.law
    for said, names in (("lacks", set(law.links) - set(model.links)), ("has", set(model.links) - set(law.links))):
        if names:
            got = f"a network that {said} {', '.join(sorted(names))}"
            raise InvalidValue("model", got, f"the Design's network, with links {', '.join(law.links)}")
    if law.links != model.links or law.interval_s != model.interval_s or (law.delay != model.delay).any():
        raise InvalidValue("model", "other delays or another interval", "the Design's network")
    reference = checked_number("reference", reference, "a utilization above 0", above=0.0)
    backlog_setpoint = checked_number(
        "backlog_setpoint", backlog_setpoint, "a number of bytes of at least 0", at_least=0.0
    )
    links = checked_names("links", links, "ids of the Design's links")
    unknown = sorted(set(links) - set(law.links))
    if unknown:
        raise InvalidValue("links", ", ".join(unknown), f"ids of the Design's links, {', '.join(law.links)}")
    nominal = reference * np.array([design.certificate.nominal_rate[name] for name in law.links])
    backlog_setpoint = backlog_setpoint * BITS_PER_BYTE / law.interval_s
    paced = np.array([not links or name in links for name in law.links])
    capacity = {link.id: link.capacity for link in design.inputs.network.links}
    heard = distributed_law(law, model.coupling, nominal, paced, backlog_setpoint)
    return LinkRateTable(
        links=law.links,
        nominal=nominal,
        capacity=np.array([capacity[name] for name in law.links]),
        backlog_setpoint=backlog_setpoint,
        paced=paced.astype(float),
        central=heard.central,
        information_delay=getattr(law, "information_delay", 0),
        control=_table(heard.control),
        predicted=_table(heard.predicted),
    )


def scenario_table(law: LinkRates, links: Sequence[str], capacity: np.ndarray, paced: np.ndarray) -> LinkRateTable:
    """Link-rate law of a scenario as numbers for agents.

    Parameters
    ----------
    law : LinkRates
        As it is with messages (`netctrl.sim.network.plan.link_plan(..., messages=True)`).
    links : sequence of str, length N
        Ids.
    capacity : ndarray, shape (N,)
        [bit/s]
    paced : ndarray of bool, shape (N,)
        Links that follow the law.
    """
    prices, feeds = law.prices, law.feeds
    fed, link = (np.repeat(np.arange(len(links)), np.diff(each.start)) for each in (feeds, prices))
    of_links = prices.delay, prices.lag, prices.enters, prices.varies, prices.buffer, prices.later
    table = PriceTable(
        pairs=np.column_stack([link, prices.link, prices.share, prices.other, prices.spread]),
        feeds=np.column_stack([fed, feeds.link, feeds.delay, feeds.share]),
        links=np.column_stack(of_links) if len(link) else np.zeros((0, 6)),
    )
    return LinkRateTable(
        links=tuple(links),
        nominal=law.nominal,
        capacity=capacity,
        backlog_setpoint=law.setpoint,
        paced=paced.astype(float),
        central=law.central,
        information_delay=int(law.least.max()) if law.central else 0,
        control=_table(law.control),
        predicted=_table(law.predicted),
        prices=table if len(link) else None,
    )


def restricted(table: LinkRateTable, links: Collection[str]) -> LinkRateTable:
    """The table with the taps and pairs of some links only."""
    mine = np.array([name in links for name in table.links])

    def part(rows: np.ndarray) -> np.ndarray:
        return rows[mine[rows[:, 0].astype(np.int64)]]

    control, predicted = (
        TapTable(offset=each.offset, taps=part(each.taps)) for each in (table.control, table.predicted)
    )
    prices = table.prices
    if prices is not None:
        prices = PriceTable(pairs=part(prices.pairs), feeds=part(prices.feeds), links=prices.links)
    return msgspec.structs.replace(table, control=control, predicted=predicted, prices=prices)


def _table(taps: FirLaw | FirSums) -> TapTable:
    link = np.repeat(np.arange(len(taps.offset)), np.diff(taps.start))
    return TapTable(offset=taps.offset, taps=np.column_stack([link, taps.series, taps.lag, taps.coefficient]))


def _columns(rows: np.ndarray, N: int, whole: int) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Where each link's rows start, (N + 1,), and the other columns: the first ones of whole numbers."""
    first, *others = (np.ascontiguousarray(column) for column in rows.T)
    start = np.searchsorted(first, np.arange(N + 1))
    return start, [each.astype(np.int64) for each in others[:whole]], others[whole:]


def _settle(record: msgspec.Struct, name: str, value: np.ndarray) -> None:
    value.setflags(write=False)
    msgspec.structs.force_setattr(record, name, value)


def _shaped(argument: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    found = np.array(value, dtype=float)
    if found.shape != shape or not np.isfinite(found).all():
        raise InvalidValue(argument, f"shape {found.shape}", f"finite numbers of shape {shape}")
    return found


def _rows(argument: str, value: Any, columns: int, *below: int, rising: bool = True) -> np.ndarray:
    """Rows that begin with whole numbers from 0 to below these, the first one rising."""
    size = np.size(value)
    found = np.array(value, dtype=float).reshape(-1, columns) if size % columns == 0 else np.empty(0)
    if found.ndim != 2 or (size and np.shape(value) != found.shape) or len(found) > _MAX_ROWS:
        raise InvalidValue(argument, f"shape {np.shape(value)}", f"at most {_MAX_ROWS} rows of {columns} numbers")
    whole = found[:, : len(below)]
    fits = (whole == np.rint(whole)) & (whole >= 0) & (whole < below)
    if not fits.all() or (rising and (np.diff(found[:, 0]) < 0).any()):
        takes = f"rows that begin with whole numbers, from 0 to {', '.join(str(each - 1) for each in below)}"
        raise InvalidValue(argument, "numbers outside these ranges", takes + ", the first one rising" * rising)
    return found
