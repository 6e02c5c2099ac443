"""The same scenario in several engines: one table of means over seeds, with intervals and differences."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from scipy.stats import t

from netctrl.engines.engine import Engine, Job, engine_for, scenario_of
from netctrl.errors import InvalidValue, checked_whole
from netctrl.model.io.display import html_table
from netctrl.model.io.provenance import Provenance, provenance
from netctrl.model.io.record_file import Record
from netctrl.scenario.tcp_aqm.result import SimulationResult
from netctrl.scenario.tcp_aqm.scenario import Scenario
from netctrl.units import BITS_PER_BYTE, format_quantity

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Compared", "Comparison", "compare"]

_LEVEL = 0.95
_MAX_SEEDS = 1000
_HEADERS = 40.0  # byte
_ROUNDING = 1e-9
_UNITS = {"throughput": "bit/s", "backlog": "B", "backlog deviation": "B", "response": "s"}


class Compared(Record, frozen=True):
    """One quantity in one engine, over seeds."""

    quantity: str
    """throughput, backlog and its deviation, loss, marks; of a group of flows its payload as throughput; response of
    short objects."""
    of: str
    """Id of a link or of a group of flows."""
    engine: str
    mean: float
    """[bit/s], [byte], a share of what arrives, [s]."""
    half_width: float | None
    """Of the 95 % interval of the mean, by Student's t; null for one seed."""
    difference: float | None
    """From the first engine, over its mean; null where that is 0."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Comparison:
    """What engines give for one scenario, after its warm-up.

    Parameters
    ----------
    scenario : Scenario
    engines : tuple of str
        In the order of the table; differences are from the first.
    seeds : tuple of int
    rows : tuple of Compared
    provenance : Provenance
    """

    scenario: Scenario
    engines: tuple[str, ...]
    seeds: tuple[int, ...]
    rows: tuple[Compared, ...]
    provenance: Provenance

    def to_pandas(self) -> pd.DataFrame:
        """One row a quantity and engine."""
        import pandas as pd

        return pd.DataFrame([msgspec.structs.asdict(row) for row in self.rows])

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """A title, and (name, text) rows for people."""
        rows: list[tuple[str, str]] = []
        for first in range(0, len(self.rows), len(self.engines)):
            found = self.rows[first : first + len(self.engines)]
            rows.append((f"{found[0].of} {found[0].quantity}", ", ".join(map(_text, found))))
        seeds = f"{len(self.seeds)} seeds, 95 % intervals" if len(self.seeds) > 1 else "one seed"
        return f"{self.scenario.name}: {seeds}", rows

    def _repr_html_(self) -> str:
        return html_table(*self.table())


def _text(row: Compared) -> str:
    unit = _UNITS.get(row.quantity)
    mean = format_quantity(float(f"{row.mean:.4g}"), unit) if unit else f"{100.0 * row.mean:.4g} %"
    width = ""
    if row.half_width:
        width = (
            f" ± {format_quantity(float(f'{row.half_width:.2g}'), unit) if unit else f'{100.0 * row.half_width:.2g} %'}"
        )
    difference = f" ({100.0 * row.difference:+.2g} %)" if row.difference else ""
    return f"{row.engine} {mean}{width}{difference}"


def compare(
    scenario: Any,
    engines: Sequence[str] = ("fluid", "packet", "ns3"),
    *,
    seeds: int = 5,
    progress: Callable[[float], None] | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Comparison:
    """Run a scenario of TCP flows through queues, or an ARC Design's, in several engines.

    Parameters
    ----------
    scenario : Scenario or ArcDesign
    engines : sequence of str
        At least two.
    seeds : int
        How many: the scenario's own and those after it.
    progress : callable, optional
        Called after each run with the share that is done.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.

    Raises
    ------
    InvalidValue
        Another kind of scenario; an engine that can't run it.
    NetctrlError
        ns-3 isn't there, or its program fails.
    """
    chosen = scenario_of(scenario)
    if not isinstance(chosen, Scenario):
        raise InvalidValue(
            "scenario", type(chosen).__name__, "a scenario of TCP flows through queues, or a Design of arc"
        )
    if not isinstance(engines, list | tuple) or not 2 <= len(engines) == len({str(name) for name in engines}):
        raise InvalidValue("engines", engines, "names of two engines or more, each once")
    count = checked_whole("seeds", seeds, f"a whole number from 1 to {_MAX_SEEDS}", at_least=1, at_most=_MAX_SEEDS)
    made = provenance(argv=argv, seed=chosen.seed, inputs=inputs, libraries=("numpy", "numba", "scipy"))
    drawn = [msgspec.structs.replace(chosen, seed=(chosen.seed + k) % 2**32) for k in range(count)]
    able = [engine_for(chosen, name) for name in engines]
    found: dict[str, list[dict[tuple[str, str], float]]] = {}
    for place, engine in enumerate(able):
        workers = (os.cpu_count() or 1) if engine.name == "ns3" else 1  # a process of its own each
        with ThreadPoolExecutor(workers) as pool:
            done = pool.map(lambda one, engine=engine: _measured(engine, one), drawn)
            found[engine.name] = []
            for each in done:
                found[engine.name].append(each)
                if progress is not None:
                    progress((place + len(found[engine.name]) / count) / len(able))
    return Comparison(
        scenario=chosen,
        engines=tuple(engines),
        seeds=tuple(one.seed for one in drawn),
        rows=tuple(_rows(found, engines)),
        provenance=made,
    )


def _measured(engine: Engine, scenario: Scenario) -> dict[tuple[str, str], float]:
    """(what, of what) -> value."""
    result: SimulationResult = engine.run(scenario, Job())
    summary = result.summary()
    found: dict[tuple[str, str], float] = {}
    for link in summary.links:
        found["throughput", link.id] = link.throughput_bit_per_s
        found["backlog", link.id] = link.backlog_mean_bytes
        found["backlog deviation", link.id] = link.backlog_std_bytes
        found["loss", link.id] = link.loss_ratio
        found["marks", link.id] = link.marking_ratio
    settled = result.time_s > scenario.warmup * (1.0 + 1e-9)
    seconds = settled.sum() * result.time_s[0]
    for group, carried in zip(scenario.flows, result.carried_bytes, strict=True):
        # The fluid has no headers apart: it counts whole packets.
        payload = 1.0 - _HEADERS / scenario.packet_size if result.simulator == "fluid" else 1.0
        found["throughput", group.id] = BITS_PER_BYTE * payload * float(carried[settled].sum()) / seconds
    if summary.responses is not None:
        found["response", "short objects"] = summary.responses.mean_s
    return found


def _rows(found: dict[str, list[dict[tuple[str, str], float]]], engines: Sequence[str]) -> list[Compared]:
    rows = []
    names = [name for name in found[engines[0]][0] if all(name in each for runs in found.values() for each in runs)]
    for what, of in names:
        values = [np.array([each[what, of] for each in found[engine]]) for engine in engines]
        largest = max(float(np.abs(each).max()) for each in values)
        means = [_number(float(each.mean()), largest) for each in values]
        for engine, mean, each in zip(engines, means, values, strict=True):
            n = len(each)
            spread = t.ppf(0.5 + _LEVEL / 2.0, n - 1) * each.std(ddof=1) / np.sqrt(n) if n > 1 else 0.0
            width = None if n == 1 else _number(float(spread), largest)
            apart = None if engine == engines[0] or means[0] == 0.0 else mean / means[0] - 1.0
            rows.append(Compared(what, of, engine, mean, width, apart))
    return rows


def _number(value: float, largest: float) -> float:
    """What is nothing but rounding beside the largest is 0."""
    return 0.0 if abs(value) <= _ROUNDING * largest else value
