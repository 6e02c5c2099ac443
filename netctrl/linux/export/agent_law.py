"""Laws as numbers for agents: which sums of what was measured and heard a link's rate is."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
import numpy as np

from netctrl.errors import InvalidValue, checked_kind, checked_names, checked_number
from netctrl.laws.link_rate.distributed import DistributedLaw, distributed_law
from netctrl.laws.link_rate.fir import LINEAR, WORK_CONSERVING, FirLaw
from netctrl.model.design.design import HftracDesign
from netctrl.model.law import TrackingLaw
from netctrl.model.network_model import NetworkModel
from netctrl.units import BITS_PER_BYTE

__all__ = ["LinkRateTable", "TapTable", "TrackingTable", "link_rate_table", "restricted"]

_KINDS = 4
_MAX_TAPS = 500_000
_MAX_LAG = 1_000_000


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, eq=False):
    pass


class TapTable(_Table, frozen=True, kw_only=True, eq=False):
    """`netctrl.laws.link_rate.fir.FirLaw` of N links, row by row."""

    offset: np.ndarray
    """(N,) [bit/s]"""
    taps: np.ndarray
    """(P, 4) link, series, lag [sample], coefficient; sorted by link."""

    def as_fir(self, paced: np.ndarray) -> FirLaw:
        """For the links that are `paced`, (N,)."""
        link, series, lag = self.taps[:, :3].astype(np.int64).T
        return FirLaw(
            start=np.searchsorted(link, np.arange(len(self.offset) + 1)),
            series=series,
            lag=lag,
            coefficient=np.ascontiguousarray(self.taps[:, 3]),
            offset=self.offset,
            mode=np.where(paced, LINEAR, WORK_CONSERVING),
            expected=np.zeros(len(self.offset)),
            alone=False,
        )


class LinkRateTable(_Table, frozen=True, kw_only=True, tag_field="kind", tag="link-rates", eq=False):
    """HFTraC for N links, of which only some may have taps: those that one agent commands.

    Raises
    ------
    InvalidValue
        Arrays of other shapes, or taps of links, series or lags that aren't there.
    """

    links: tuple[str, ...]
    """(N,) ids, all of the Design's."""
    nominal: np.ndarray
    """(N,) rates around which it controls [bit/s]."""
    capacity: np.ndarray
    """(N,) [bit/s]"""
    backlog_setpoint: float = msgspec.field(name="standing")
    """Backlog around which it controls, over the interval [bit/s]."""
    paced: np.ndarray
    """(N,) 1: the link obeys; 0: it sends at its greatest rate."""
    central: bool
    """Whether one controller hears of all and tells all links what to send."""
    information_delay: int
    """Age from which a central controller knows what links measured; of younger rates it takes those it commanded."""
    control: TapTable
    predicted: TapTable
    """Each link's own backlog."""

    def __post_init__(self) -> None:
        N = len(self.links)
        if not N or len(set(self.links)) != N:
            raise InvalidValue("links", self.links, "ids of one link or more, each once")
        for name in ("nominal", "capacity", "paced"):
            _settle(self, name, _shaped(name, getattr(self, name), (N,)))
        if self.information_delay < 0:
            raise InvalidValue("information_delay", self.information_delay, "samples, 0 or more")
        for name in ("control", "predicted"):
            table = getattr(self, name)
            _settle(table, "offset", _shaped(f"{name}.offset", table.offset, (N,)))
            _settle(table, "taps", _checked_fir(f"{name}.taps", table.taps, N))

    def as_law(self) -> DistributedLaw:
        """As `netctrl.laws.link_rate.distributed` has it."""
        paced = self.paced > 0.0
        return DistributedLaw(self.control.as_fir(paced), self.predicted.as_fir(paced), self.central)

    def pairs(self) -> set[tuple[int, int]]:
        """(link, link that it must hear of)."""
        rows = np.concatenate([self.control.taps, self.predicted.taps])[:, :2].astype(np.int64)
        return {(at, series % len(self.links)) for at, series in set(map(tuple, rows.tolist()))}


class TrackingTable(_Table, frozen=True, kw_only=True, tag_field="kind", tag="tracking", eq=False):
    """CONNET: one rate, shared by an agent's links, so that delay, jitter or throughput follow their references.

    Raises
    ------
    InvalidValue
        A law of other signals, or references of another number.
    """

    law: TrackingLaw
    reference: np.ndarray
    """(p,) [the law's units]."""
    measured_by: str | None = None
    """Peer that measures the law's outputs; null: the agent itself, delay as the backlog of `measured_at` over its
    rate, throughput as what its own links sent."""
    measured_at: str | None = None
    """Interface whose queue is the bottleneck."""
    bottleneck: float | None = None
    """Rate of that interface [bit/s]."""
    governor: bool = False
    """Whether references that can't be had are cut (`netctrl.laws.tracking.reference_governor`)."""

    def __post_init__(self) -> None:
        if len(self.law.inputs) != 1:
            raise InvalidValue("law", f"{len(self.law.inputs)} inputs", "one: the rate of all regulators together")
        unknown = sorted(set(self.law.outputs) - {"delay", "jitter", "throughput"})
        if unknown:
            raise InvalidValue("law", f"output {unknown[0]}", "delay, jitter, throughput")
        _settle(self, "reference", _shaped("reference", self.reference, (len(self.law.outputs),)))
        if self.measured_by is None:
            if "jitter" in self.law.outputs:
                raise InvalidValue("measured_by", None, "a peer that measures jitter: a backlog doesn't show it")
            if self.measured_at is None or self.bottleneck is None or not self.bottleneck > 0.0:
                raise InvalidValue("measured_at", self.measured_at, "an interface with its bottleneck [bit/s]")


def link_rate_table(
    design: HftracDesign,
    model: NetworkModel,
    *,
    reference: float = 1.0,
    backlog_setpoint: float = 0.0,
    links: Collection[str] = (),
) -> LinkRateTable:
    """A Design of HFTraC as numbers for agents.

    Parameters
    ----------
    design : HftracDesign
    model : NetworkModel
        Of the same network and interval (`netctrl.network_model`).
    reference : float
        Rates around which it controls, over the nominal ones.
    backlog_setpoint : float
        Backlog around which it controls [byte].
    links : collection of str
        Links that obey; none: all. The others send at their greatest rate.

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
            raise InvalidValue("model", got, f"the network that the Design is for, with links {', '.join(law.links)}")
    if law.links != model.links or law.interval_s != model.interval_s or (law.delay != model.delay).any():
        raise InvalidValue("model", "other delays or another interval", "the network that the Design is for")
    reference = checked_number("reference", reference, "a utilization above 0", above=0.0)
    backlog_setpoint = checked_number("backlog_setpoint", backlog_setpoint, "bytes, at least 0", at_least=0.0)
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


def restricted(table: LinkRateTable, links: Collection[str]) -> LinkRateTable:
    """With the taps of these links only."""
    mine = np.array([name in links for name in table.links])

    def part(taps: TapTable) -> TapTable:
        return TapTable(offset=taps.offset, taps=taps.taps[mine[taps.taps[:, 0].astype(np.int64)]])

    return msgspec.structs.replace(table, control=part(table.control), predicted=part(table.predicted))


def _table(taps: FirLaw) -> TapTable:
    link = np.repeat(np.arange(len(taps.offset)), np.diff(taps.start))
    return TapTable(offset=taps.offset, taps=np.column_stack([link, taps.series, taps.lag, taps.coefficient]))


def _settle(record: msgspec.Struct, name: str, value: np.ndarray) -> None:
    value.setflags(write=False)
    msgspec.structs.force_setattr(record, name, value)


def _shaped(argument: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    found = np.array(value, dtype=float)
    if found.shape != shape or not np.isfinite(found).all():
        raise InvalidValue(argument, f"shape {found.shape}", f"finite numbers of shape {shape}")
    return found


def _checked_fir(argument: str, value: np.ndarray, N: int) -> np.ndarray:
    found = np.array(value, dtype=float).reshape(-1, 4) if np.size(value) % 4 == 0 else np.empty(0)
    if found.ndim != 2 or (np.size(value) and np.shape(value) != found.shape) or len(found) > _MAX_TAPS:
        raise InvalidValue(argument, f"shape {np.shape(value)}", f"at most {_MAX_TAPS} rows of 4 numbers")
    whole, most = found[:, :3], np.array([N, _KINDS * N, _MAX_LAG])
    if not ((whole == np.rint(whole)) & (whole >= 0) & (whole < most)).all() or (np.diff(found[:, 0]) < 0).any():
        takes = f"rows of link (0 to {N - 1}, rising), series (0 to {_KINDS * N - 1}), lag (0 or more), coefficient"
        raise InvalidValue(argument, "numbers that are none of these", takes)
    return found
