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

from netctrl.engines.case import case_of
from netctrl.engines.engine import Job, engine_for
from netctrl.errors import InvalidValue, checked_whole
from netctrl.model.io.display import html_table
from netctrl.model.io.provenance import Provenance, provenance
from netctrl.model.io.record_file import Record
from netctrl.units import format_quantity

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Compared", "Comparison", "compare"]

_LEVEL = 0.95
_MAX_SEEDS = 1000
_ROUNDING = 1e-9
_UNITS = {
    **{"throughput": "bit/s", "backlog": "B", "backlog deviation": "B", "response": "s", "delay": "s", "jitter": "s"},
    **{"rtt": "s", "queue mean": "B", "queue 99 %": "B", "lost bytes": "B"},
}
_SHARES = ("loss", "marks", "utilization")


class Compared(Record, frozen=True):
    """One quantity in one engine, over seeds."""

    quantity: str
    """As in `measures()` of the engines' results: throughput, backlog, loss, ..."""
    of: str
    """Id of a link or of a group of flows, or what else it is of."""
    engine: str
    mean: float
    """[bit/s], [byte], [s], or a share."""
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

    scenario: Any
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
    width = f" ± {_shown(row, row.half_width, 2)}" if row.half_width else ""
    difference = f" ({100.0 * row.difference:+.2g} %)" if row.difference else ""
    return f"{row.engine} {_shown(row, row.mean, 4)}{width}{difference}"


def _shown(row: Compared, value: float, digits: int) -> str:
    if row.quantity in _UNITS:
        return format_quantity(float(f"{value:.{digits}g}"), _UNITS[row.quantity])
    return f"{100.0 * value:.{digits}g} %" if row.quantity in _SHARES else f"{value:.{digits}g}"


def compare(
    scenario: Any,
    engines: Sequence[str] = ("fluid", "packet", "ns3"),
    *,
    design: Any = None,
    seeds: int = 5,
    progress: Callable[[float], None] | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Comparison:
    """Run a scenario, one under a Design's law, or a Design's plant in several engines.

    Parameters
    ----------
    scenario, design
        As in `netctrl.simulate`.
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
        An engine that isn't there, or that can't run it.
    NetctrlError
        ns-3 isn't there, or its program fails.
    """
    case = case_of(scenario, design)
    chosen = case.scenario
    if not isinstance(engines, list | tuple) or not 2 <= len(engines) == len({str(name) for name in engines}):
        raise InvalidValue("engines", engines, "names of two engines or more, each once")
    count = checked_whole("seeds", seeds, f"a whole number from 1 to {_MAX_SEEDS}", at_least=1, at_most=_MAX_SEEDS)
    numbers = [(chosen.seed + k) % 2**32 for k in range(count)]
    drawn = [case._replace(scenario=msgspec.structs.replace(chosen, seed=number)) for number in numbers]
    able = [engine_for(case, name) for name in engines]
    found: dict[str, list[dict[tuple[str, str], float]]] = {}
    for place, engine in enumerate(able):
        workers = (os.cpu_count() or 1) if engine.name == "ns3" else 1  # a process of its own each
        with ThreadPoolExecutor(workers) as pool:
            done = pool.map(lambda one, engine=engine: engine.run(one, Job()).measures(), drawn)
            found[engine.name] = []
            for each in done:
                found[engine.name].append(each)
                if progress is not None:
                    progress((place + len(found[engine.name]) / count) / len(able))
    return Comparison(
        scenario=chosen,
        engines=tuple(engines),
        seeds=tuple(numbers),
        rows=tuple(_rows(found, engines)),
        provenance=provenance(argv=argv, seed=chosen.seed, inputs=inputs, libraries=("numpy", "numba", "scipy")),
    )


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
