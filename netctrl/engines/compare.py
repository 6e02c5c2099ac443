"""Comparison of engines on one scenario: a table of means over seeds, with intervals and differences."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from scipy.stats import t

from netctrl.core.errors import InvalidValue, checked_function, checked_whole, optional_import
from netctrl.engines.case import case_of, with_seed
from netctrl.engines.engine import Job, engine_for
from netctrl.model.io.display import Reported, Rows
from netctrl.model.io.provenance import Provenance, provenance
from netctrl.model.io.record_file import Record
from netctrl.scenario.figures import estimate_text, quantity_text

if TYPE_CHECKING:
    import pandas as pd

    from netctrl.core.names import EngineName, Registered
    from netctrl.engines.case import Case
    from netctrl.model.design.design import AnyDesign
    from netctrl.scenario.scenario import Scenario

_LEVEL = 0.95
_MAX_SEEDS = 1000
_ROUNDING = 1e-9


class Compared(Record, frozen=True):
    """Mean of one quantity in one engine over seeds."""

    quantity: str
    """Name of the quantity, as in `measures()` of the engines' results: throughput, backlog, loss, ..."""
    of: str
    """Id of the link, group of flows or other object that was measured."""
    engine: str
    """Name of the engine."""
    mean: float
    """Mean over seeds [bit/s], [byte], [s], or a share."""
    half_width: float | None
    """Half width of the 95 % interval of the mean, by Student's t; null for one seed."""
    difference: float | None
    """Relative difference from the first engine's mean; null for the first engine, and where its mean is less than a
    tenth of this one, so that a relative difference says nothing."""
    absolute_difference: float | None = None
    """Difference from the first engine's mean, in the unit of the mean; null for the first engine."""

    @property
    def estimate(self) -> str:
        """Mean and interval as text."""
        return estimate_text(self.quantity, self.mean, self.half_width)

    @property
    def apart(self) -> str:
        """Difference from the first engine as text, relative or else in the quantity's unit; empty if there is none."""
        if not self.absolute_difference:
            return ""
        if self.difference is not None:
            return f"{float(f'{100.0 * self.difference:.2g}'):+g} %"  # two digits, and 120 rather than 1.2e+02
        size = quantity_text(self.quantity, abs(self.absolute_difference), 2)
        return ("+" if self.absolute_difference > 0.0 else "-") + size.replace(" %", " percentage points")


_LEAST_SHARE = 0.1
"""Least share of a mean that the first engine's has for a relative difference."""
_NEAR = 0.05
"""Largest relative difference that a verdict counts as agreement."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Comparison(Reported):
    """One scenario in several engines: means over seeds after the warm-up, with intervals and differences.

    Parameters
    ----------
    scenario : Scenario
        The simulated scenario.
    engines : tuple of str
        Names of the engines in the order of the table; differences are from the first.
    seeds : tuple of int
        Seeds, the same for all engines.
    rows : tuple of Compared
        One row per quantity and engine.
    provenance : Provenance
        How it was made.
    """

    scenario: Any
    engines: tuple[str, ...]
    seeds: tuple[int, ...]
    rows: tuple[Compared, ...]
    provenance: Provenance

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame with one row per quantity and engine."""
        with optional_import():
            import pandas as pd

        return pd.DataFrame([msgspec.structs.asdict(row) for row in self.rows])

    @property
    def verdict(self) -> str:
        """Differences of the other engines from the first, in one sentence."""
        first, *others = self.engines
        said = []
        for engine in others:
            mine = [row for row in self.rows if row.engine == engine]
            apart = [row for row in mine if row.difference is not None or row.absolute_difference]
            if not apart:
                said.append(f"{engine} has nothing to compare with {first}")
                continue
            sizes = [inf if row.difference is None else abs(row.difference) for row in apart]
            most = apart[sizes.index(max(sizes))]
            near = sum(size <= _NEAR for size in sizes)
            largest = most.apart or "0 %"
            said.append(
                f"{engine} is within {100.0 * _NEAR:g} % of {first} in {near} of {len(apart)} quantities;"
                f" the largest difference is {largest}, of {most.of}'s {most.quantity}"
            )
        return ". ".join(said) + "."

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """Title, and rows of (name, text)."""
        rows: list[tuple[str, str]] = []
        for first in range(0, len(self.rows), len(self.engines)):
            found = self.rows[first : first + len(self.engines)]
            rows.append((f"{found[0].of} {found[0].quantity}", ", ".join(map(_text, found))))
        seeds = f"{len(self.seeds)} seeds, 95 % intervals" if len(self.seeds) > 1 else "one seed"
        return f"{self.scenario.name}: {seeds}", rows

    def _shown(self) -> Rows:
        return self.table()


def _text(row: Compared) -> str:
    return f"{row.engine} {row.estimate}" + (f" ({row.apart})" if row.apart else "")


def compare(
    scenario: Scenario | Case | AnyDesign | str | os.PathLike[str],
    engines: Sequence[EngineName | Registered] = ("fluid", "packet", "ns3"),
    *,
    design: AnyDesign | str | os.PathLike[str] | None = None,
    seeds: int = 5,
    progress: Callable[[float], None] | None = None,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> Comparison:
    """Run one scenario in several engines and compare the means over seeds.

    Parameters
    ----------
    scenario : Scenario, Case, or a Design
        As in `netctrl.simulate`.
    engines : sequence of str
        At least two; differences are from the first.
    design : Design, optional
        Design whose law controls the scenario.
    seeds : int
        Number of seeds: the scenario's own and those after it.
    progress : callable, optional
        Called after each run with the share done.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.

    Returns
    -------
    Comparison

    Raises
    ------
    InvalidValue
        An unknown engine, or one that doesn't support the scenario.
    NetctrlError
        ns-3 is missing, or its program fails.

    Examples
    --------
    The plant of a Design, as a fluid and packet by packet:

    >>> import netctrl
    >>> found = netctrl.compare(netctrl.arc(50, 0.1, 10e6), ["fluid", "packet"], seeds=2)
    >>> [(row.quantity, row.of, row.engine) for row in found.rows[:2]]
    [('throughput', 'bottleneck', 'fluid'), ('throughput', 'bottleneck', 'packet')]
    >>> abs(found.rows[1].difference) < 0.02
    True
    """
    if progress is not None:
        checked_function("progress", progress)
    case = case_of(scenario, design)
    chosen = case.scenario
    if not isinstance(engines, list | tuple) or not 2 <= len(engines) == len({str(name) for name in engines}):
        raise InvalidValue("engines", engines, "names of at least two engines, without repetition")
    count = checked_whole("seeds", seeds, f"a whole number from 1 to {_MAX_SEEDS}", at_least=1, at_most=_MAX_SEEDS)
    able = [engine_for(case, name) for name in engines]
    numbers = [(chosen.seed + k) % 2**32 for k in range(count)]
    drawn = [case._replace(scenario=with_seed(chosen, number)) for number in numbers]
    found: dict[str, list[dict[tuple[str, str], float]]] = {}
    for place, engine in enumerate(able):
        workers = (os.cpu_count() or 1) if engine.name == "ns3" else 1  # each run is a process
        with ThreadPoolExecutor(workers) as pool:
            mapped = pool.map if workers > 1 else map  # Ctrl-C only reaches a run in this thread
            done = mapped(lambda one, engine=engine: engine.run(one, Job()).measures(), drawn)
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
            apart = None if engine == engines[0] else mean - means[0]
            says = apart is not None and means[0] != 0.0 and abs(means[0]) >= _LEAST_SHARE * abs(mean)
            rows.append(Compared(what, of, engine, mean, width, mean / means[0] - 1.0 if says else None, apart))
    return rows


def _number(value: float, largest: float) -> float:
    """0 for a value that is only rounding error compared with the largest."""
    return 0.0 if abs(value) <= _ROUNDING * largest else value
