"""Laws as numbers for agents: each link's rate as sums of measured and received values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind, checked_names, checked_number
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.link_rate.distributed import DistributedLaw, distributed_law
from netctrl.laws.link_rate.fir import LINEAR, WORK_CONSERVING, FirLaw
from netctrl.model.design.design import HftracDesign
from netctrl.model.design.mpc import MpcLaw
from netctrl.model.law import TrackingLaw
from netctrl.model.network_model import NetworkModel

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
    """(P, 4) rows of link, series, lag [sample] and coefficient, sorted by link."""

    def as_fir(self, paced: np.ndarray) -> FirLaw:
        """FIR law for the `paced` links, (N,)."""
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
    """HFTraC law for N links, of which only those commanded by one agent need taps.

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
            _settle(table, "taps", _checked_fir(f"{name}.taps", table.taps, N))

    def as_law(self) -> DistributedLaw:
        """Law in the form of `netctrl.laws.link_rate.distributed`."""
        paced = self.paced > 0.0
        return DistributedLaw(self.control.as_fir(paced), self.predicted.as_fir(paced), self.central)

    def pairs(self) -> set[tuple[int, int]]:
        """Pairs (link, link whose measurements it needs)."""
        rows = np.concatenate([self.control.taps, self.predicted.taps])[:, :2].astype(np.int64)
        return {(at, series % len(self.links)) for at, series in set(map(tuple, rows.tolist()))}


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


def restricted(table: LinkRateTable, links: Collection[str]) -> LinkRateTable:
    """The table with the taps of some links only."""
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
        raise InvalidValue(argument, "numbers outside these ranges", takes)
    return found
