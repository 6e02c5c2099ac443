"""Result of an access link: a measurement each period, and all of them as one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Protocol, TypedDict, Unpack

import numpy as np

from netctrl.errors import InvalidValue, optional_import
from netctrl.model.design.design import Provenance
from netctrl.scenario.access.kind_result import KindResult
from netctrl.scenario.access.scenario import access_parts
from netctrl.scenario.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLinkSample:
    """Measurements of one period Ts, taken at its end."""

    time_s: float
    """End of the period."""
    rate_bit_per_s: float
    """R, rate commanded to all regulators together for this period; inf: they were open."""
    burst: int
    """Packets in a burst; 0: each source's own number."""
    delay_ms: float
    """Moving average over received premium packets, d += (d_i - d)/8, at the end of the period; 0 before the first.
    It keeps its value while all are lost: see `premium_received`."""
    jitter_ms: float
    """Moving average of |d_i - d_(i-1)|, computed likewise."""
    mean_delay_ms: float
    """Mean over the premium packets received in the period; without any, the moving average."""
    mean_jitter_ms: float
    premium_received: int
    premium_lost: int
    premium_bit_per_s: float
    """Throughput."""
    other_bit_per_s: float
    """Throughput of all regulated flows."""
    other_lost: int
    """Packets of regulated flows that nodes dropped."""
    regulator_lost: int
    """Packets that regulators dropped before the first node; TCP only, since UDP's excess isn't counted."""
    utilization: float
    """Utilization of the busiest hop."""
    backlog: tuple[int, ...]
    """Packets in each hop, including the one being sent."""
    source_bit_per_s: tuple[float, ...]
    """Throughput of each source."""


class _Premium(Protocol):
    """Averages of a period's premium packets [s], and their number (`netctrl.plants.access.PremiumReading`)."""

    @property
    def delay(self) -> float: ...

    @property
    def jitter(self) -> float: ...

    @property
    def mean_delay(self) -> float: ...

    @property
    def mean_jitter(self) -> float: ...

    @property
    def received(self) -> float: ...


class _OfPeriod(TypedDict):
    """Fields of a sample that an engine has as they are."""

    time_s: float
    rate_bit_per_s: float
    burst: int
    regulator_lost: int
    utilization: float
    backlog: tuple[int, ...]


def access_link_sample(
    premium: _Premium,
    rates: np.ndarray,
    lost: np.ndarray,
    source: np.ndarray,
    sources: int,
    **period: Unpack[_OfPeriod],
) -> AccessLinkSample:
    """Sample of a period from an engine's figures.

    Parameters
    ----------
    premium : record
        Averages of the premium packets.
    rates, lost : ndarray, shape (F + 1,)
        Throughput [bit/s] and lost packets of the premium flow and of F regulated ones.
    source : ndarray, shape (F,)
        Source of each regulated flow.
    sources : int
        Number of sources.
    **period
        Other fields of the sample.
    """
    return AccessLinkSample(
        delay_ms=1e3 * float(premium.delay),
        jitter_ms=1e3 * float(premium.jitter),
        mean_delay_ms=1e3 * float(premium.mean_delay),
        mean_jitter_ms=1e3 * float(premium.mean_jitter),
        premium_received=int(premium.received),
        premium_lost=int(lost[0]),
        premium_bit_per_s=float(rates[0]),
        other_bit_per_s=float(rates[1:].sum()),
        other_lost=int(lost[1:].sum()),
        source_bit_per_s=tuple(np.bincount(source, rates[1:], sources).tolist()),
        **period,
    )


@dataclass(frozen=True, slots=True)
class AccessLinkSummary:
    """Means over a run; delays over the received premium packets."""

    mean_delay_ms: float
    mean_jitter_ms: float
    premium_received: int
    premium_lost: int
    premium_bit_per_s: float
    other_bit_per_s: float
    other_lost: int
    utilization: float


_TABLES = ("backlog", "source_bit_per_s")
_COUNTS = ("burst", "premium_received", "premium_lost", "other_lost", "regulator_lost")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AccessLinkResult(KindResult):
    """Measurements of an access link over T periods, with H hops and S sources.

    Parameters
    ----------
    scenario : Scenario
        Scenario of an access link.
    time_s, rate_bit_per_s, burst : ndarray, shape (T,)
        End of each period [s], and the rate and burst commanded for it; as in `AccessLinkSample`.
    delay_ms, jitter_ms, mean_delay_ms, mean_jitter_ms : ndarray, shape (T,)
        Moving averages at the end of each period, and means over it.
    premium_received, premium_lost, premium_bit_per_s : ndarray, shape (T,)
        Packets and throughput of premium traffic.
    other_bit_per_s, other_lost, regulator_lost : ndarray, shape (T,)
        Throughput of regulated flows, packets that nodes and regulators dropped.
    utilization : ndarray, shape (T,)
        Utilization of the busiest hop.
    backlog : ndarray, shape (T, H)
        Packets in each hop.
    source_bit_per_s : ndarray, shape (T, S)
        Throughput of each source.
    provenance : Provenance
        How it was made.
    simulator : str
        "netctrl", or such as "ns-3.37".
    """

    scenario: Scenario
    time_s: np.ndarray
    rate_bit_per_s: np.ndarray
    burst: np.ndarray
    delay_ms: np.ndarray
    jitter_ms: np.ndarray
    mean_delay_ms: np.ndarray
    mean_jitter_ms: np.ndarray
    premium_received: np.ndarray
    premium_lost: np.ndarray
    premium_bit_per_s: np.ndarray
    other_bit_per_s: np.ndarray
    other_lost: np.ndarray
    regulator_lost: np.ndarray
    utilization: np.ndarray
    backlog: np.ndarray
    source_bit_per_s: np.ndarray
    provenance: Provenance
    simulator: str = "netctrl"

    def __post_init__(self) -> None:
        T = len(self.time_s)
        shapes: dict[str, tuple[int, ...]] = {field.name: (T,) for field in fields(AccessLinkSample)}
        shapes |= {name: (T, width) for name, width in _widths(self.scenario).items()}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidValue(name, getattr(self, name).shape, f"an array of shape {shape}")
            getattr(self, name).setflags(write=False)

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame with one row per period; hops' backlogs and sources' throughputs in columns numbered from 0."""
        with optional_import():
            import pandas as pd

        columns = {
            field.name: getattr(self, field.name) for field in fields(AccessLinkSample) if field.name not in _TABLES
        }
        columns |= {f"backlog_{hop}": self.backlog[:, hop] for hop in range(self.backlog.shape[1])}
        rates = self.source_bit_per_s
        columns |= {f"source_{place}_bit_per_s": rates[:, place] for place in range(rates.shape[1])}
        return pd.DataFrame(columns)

    def summary(self) -> AccessLinkSummary:
        """Means over all periods."""
        weight = np.maximum(self.premium_received, 1e-12)
        return AccessLinkSummary(
            mean_delay_ms=float(np.average(self.mean_delay_ms, weights=weight)),
            mean_jitter_ms=float(np.average(self.mean_jitter_ms, weights=weight)),
            premium_received=int(self.premium_received.sum()),
            premium_lost=int(self.premium_lost.sum()),
            premium_bit_per_s=float(self.premium_bit_per_s.mean()),
            other_bit_per_s=float(self.other_bit_per_s.mean()),
            other_lost=int(self.other_lost.sum()),
            utilization=float(self.utilization.mean()),
        )

    @property
    def links(self) -> tuple[str, ...]:
        """Names of objects in `measures` that are links."""
        return ("link",)

    def measures(self) -> dict[tuple[str, str], float]:
        """(quantity, object) -> mean over the run, in SI units."""
        found = self.summary()
        received = max(found.premium_received + found.premium_lost, 1)
        return {
            ("delay", "premium"): 1e-3 * found.mean_delay_ms,
            ("jitter", "premium"): 1e-3 * found.mean_jitter_ms,
            ("loss", "premium"): found.premium_lost / received,
            ("throughput", "premium"): found.premium_bit_per_s,
            ("throughput", "regulated"): found.other_bit_per_s,
            ("utilization", "link"): found.utilization,
        }

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """Title, and rows of (name, text) with the main results."""
        found = self.summary()
        rows = [
            ("premium delay", f"{found.mean_delay_ms:.4g} ms, jitter {found.mean_jitter_ms:.4g} ms"),
            ("premium packets", f"{found.premium_received} received, {found.premium_lost} lost"),
            ("premium throughput", f"{found.premium_bit_per_s / 1e6:.4g} Mbit/s"),
            ("non-premium throughput", f"{found.other_bit_per_s / 1e6:.4g} Mbit/s"),
            ("utilization", f"{found.utilization:.4f}"),
        ]
        end = self.time_s[-1] if len(self.time_s) else 0.0
        discipline = access_parts(self.scenario).line.discipline
        return f"{self.scenario.name} ({discipline}, {self.simulator}), {end:g} s", rows


def access_link_result(
    scenario: Scenario, samples: Sequence[AccessLinkSample], provenance: Provenance, simulator: str = "netctrl"
) -> AccessLinkResult:
    """The samples of a run as arrays."""
    widths, columns = _widths(scenario), {}
    for field in fields(AccessLinkSample):
        kind = np.int64 if field.name in (*_COUNTS, "backlog") else np.float64
        values = np.array([getattr(sample, field.name) for sample in samples], dtype=kind)
        width = widths.get(field.name)
        columns[field.name] = values if width is None else values.reshape(len(samples), width)
    return AccessLinkResult(scenario=scenario, provenance=provenance, simulator=simulator, **columns)


def _widths(scenario: Scenario) -> dict[str, int]:
    """Number of columns of each field that is a table."""
    parts = access_parts(scenario)
    return {"backlog": parts.line.hops, "source_bit_per_s": len(parts.regulated)}
