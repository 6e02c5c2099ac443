"""What an access link gives: a measurement each period, and all of them as one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.model.design.design import Provenance
from netctrl.model.io.display import html_table
from netctrl.scenario.access.scenario import AccessLinkScenario

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AccessLinkResult", "AccessLinkSample", "AccessLinkSummary", "access_link_result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLinkSample:
    """One period Ts, as it was measured at its end."""

    time_s: float
    """The period's end."""
    rate_bit_per_s: float
    """R, commanded to all regulators together for this period; inf: they were open."""
    burst: int
    """Packets; 0: each source's own."""
    delay_ms: float
    """Moving average over received premium packets, d += (d_i - d)/8, as it stands at the end; 0 before the first.
    While all are lost it stays as it was: see `premium_received`."""
    jitter_ms: float
    """Moving average of |d_i - d_(i-1)|, in the same way."""
    mean_delay_ms: float
    """Mean over the premium packets that were received in the period; where there are none, the moving average."""
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
    """Packets that regulators dropped before the first node; TCP only: UDP's excess isn't counted."""
    utilization: float
    """Of the busiest hop."""
    backlog: tuple[int, ...]
    """Packets in each hop, the one being sent included."""
    source_bit_per_s: tuple[float, ...]
    """Throughput of each source."""


@dataclass(frozen=True, slots=True)
class AccessLinkSummary:
    """Means over a run; delays over the premium packets that were received."""

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
class AccessLinkResult:
    """T periods of a link with H hops and S sources; fields as in `AccessLinkSample`.

    Parameters
    ----------
    scenario : AccessLinkScenario
    simulator : str
        "netctrl", or as in "ns-3.37".
    time_s, rate_bit_per_s, burst, delay_ms, jitter_ms, mean_delay_ms, mean_jitter_ms, premium_received, premium_lost,
    premium_bit_per_s, other_bit_per_s, other_lost, regulator_lost, utilization : ndarray, shape (T,)
    backlog : ndarray, shape (T, H)
    source_bit_per_s : ndarray, shape (T, S)
    provenance : Provenance
    """

    scenario: AccessLinkScenario
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
        shapes |= {"backlog": (T, self.scenario.hops), "source_bit_per_s": (T, len(self.scenario.sources))}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidValue(name, getattr(self, name).shape, f"an array of shape {shape}")
            getattr(self, name).setflags(write=False)

    def to_pandas(self) -> pd.DataFrame:
        """One row a period; backlogs of hops and throughputs of sources in columns of their own, numbered from 0."""
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

    def measures(self) -> dict[tuple[str, str], float]:
        """(quantity, of what) -> mean over the run, in SI units."""
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
        """A title, and what a person wants to know first as (name, text) rows."""
        found = self.summary()
        rows = [
            ("premium delay", f"{found.mean_delay_ms:.4g} ms, jitter {found.mean_jitter_ms:.4g} ms"),
            ("premium packets", f"{found.premium_received} received, {found.premium_lost} lost"),
            ("premium throughput", f"{found.premium_bit_per_s / 1e6:.4g} Mbit/s"),
            ("non-premium throughput", f"{found.other_bit_per_s / 1e6:.4g} Mbit/s"),
            ("utilization", f"{found.utilization:.4f}"),
        ]
        end = self.time_s[-1] if len(self.time_s) else 0.0
        return f"{self.scenario.name} ({self.scenario.discipline}, {self.simulator}), {end:g} s", rows

    def _repr_html_(self) -> str:
        return html_table(*self.table())


def access_link_result(
    scenario: AccessLinkScenario,
    samples: Sequence[AccessLinkSample],
    provenance: Provenance,
    simulator: str = "netctrl",
) -> AccessLinkResult:
    """The samples of a run as arrays."""
    widths = {"backlog": scenario.hops, "source_bit_per_s": len(scenario.sources)}
    columns = {}
    for field in fields(AccessLinkSample):
        kind = np.int64 if field.name in (*_COUNTS, "backlog") else np.float64
        values = np.array([getattr(sample, field.name) for sample in samples], dtype=kind)
        width = widths.get(field.name)
        columns[field.name] = values if width is None else values.reshape(len(samples), width)
    return AccessLinkResult(scenario=scenario, provenance=provenance, simulator=simulator, **columns)
