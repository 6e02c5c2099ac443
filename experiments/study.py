"""A study: runs that are kept in data/results/, and made where they are missing.

`python experiments/full.py NAME [REPEAT ...]` makes what is missing; each run is kept as soon as it is done, so that
what a stop interrupts can go on later. Figures show what is kept.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from netctrl.core.files import write_atomically
from netctrl.model.io.provenance import provenance

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "data" / "results"

Case = tuple[Any, ...]
"""What tells a run from others: a value for each name of the study's key."""
Record = dict[str, Any]


class Made(NamedTuple):
    """What a run leaves."""

    rows: Sequence[Mapping[str, Any]]
    """Of the table; what tells the run from others is put before, unless they have it."""
    about: Any = None
    """For the record."""
    parts: Mapping[str, pd.DataFrame] = {}
    """Of further tables, by the ends of their names."""


Runs = Callable[[Sequence[Case]], Iterator[tuple[Case, Made]]]
"""Makes runs, and yields each as it is done; the next one may read what was kept of those before."""


def made_by(run: Callable[..., Made], at_once: int = 1) -> Runs:
    """Runs by a function of a case's values, so many at a time."""

    def made(cases: Sequence[Case]) -> Iterator[tuple[Case, Made]]:
        if at_once == 1:
            yield from ((case, run(*case)) for case in cases)
            return
        pool = ThreadPoolExecutor(at_once)
        try:
            runs = {pool.submit(run, *case): case for case in cases}
            for done in as_completed(runs):
                yield runs[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)  # a stop waits for those that run, and starts no other

    return made


@dataclass(frozen=True, slots=True)
class Study:
    """Runs of one kind: which there are, how they are made, and where they are kept."""

    name: str
    key: Sequence[str]
    """Columns that tell one run from another."""
    repeats: Sequence[int]
    """Seeds, or numbers of repeats."""
    cases: Callable[[int], Iterable[Case]]
    """Runs of a repeat, in the order in which they are made."""
    runs: Runs
    record: Callable[[Record, pd.DataFrame, Case, Any], Record] = lambda before, data, case, about: before
    """What is told of the runs: of what was told before, all runs, and the last one with what it says of itself."""
    sort: Sequence[str] = ()
    """Columns by which the table is sorted; of none, the newest run is the last."""
    order: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Of the values of columns that aren't sorted by themselves."""
    digits: int = 6
    text: Sequence[str] = ()
    """Columns of text that looks like numbers."""
    file: str = ""
    """Stem of the files' names; the study's name where there is none."""
    tries: int = 1
    """How often what is still missing is made."""

    def path(self, end: str) -> Path:
        return RESULTS / f"{self.file or self.name}{end}"

    def kept(self, part: str = "") -> pd.DataFrame | None:
        """The table of all kept runs, or a further one."""
        path = self.path(f"{part}.csv")
        return pd.read_csv(path, dtype=dict.fromkeys(self.text, str)) if path.exists() else None

    def read(self, part: str = "", *, complete: bool = False) -> pd.DataFrame:
        """What is kept; an error that says how to make it where nothing is, or where some runs are missing."""
        data = self.kept(part)
        lacking = len(self.missing(self.repeats)) if complete else 0
        if data is None or lacking:
            raise FileNotFoundError(f"{lacking or 'all'} runs are missing: python experiments/full.py {self.name}")
        return data

    def told(self) -> Record:
        """The record of what made the runs."""
        path = self.path(".json")
        return msgspec.json.decode(path.read_bytes()) if path.exists() else {"study": self.name}

    def missing(self, repeats: Sequence[int]) -> list[Case]:
        data = self.kept()
        done = set() if data is None else set(data[list(self.key)].itertuples(index=False, name=None))
        return [tuple(case) for repeat in repeats for case in self.cases(repeat) if tuple(case) not in done]

    def make(self, repeats: Sequence[int]) -> Iterator[Case]:
        """Make what is missing of some repeats; says what as it is kept."""
        for _ in range(self.tries):
            for case, made in self.runs(self.missing(repeats)):
                self.keep(case, made)
                yield case

    def keep(self, case: Case, made: Made) -> None:
        """Add a run to the tables, and what made it to the record."""
        rows = pd.DataFrame(made.rows)
        for place, (name, value) in enumerate(zip(self.key, case, strict=True)):
            if name not in rows:
                rows.insert(place, name, value)
        data = self._added("", rows)
        for part, more in made.parts.items():
            self._added(part, more)
        argv = ["experiments/full.py", *sys.argv[1:]]
        made_by = {"provenance": provenance(argv=argv, libraries=("numpy", "scipy", "numba", "pandas"))}
        record = self.told() | made_by
        write_record(self.path(".json"), self.record(record, data, case, made.about))

    def _added(self, part: str, rows: pd.DataFrame) -> pd.DataFrame:
        before = self.kept(part)
        data = rows if before is None else pd.concat([before, rows], ignore_index=True)
        if self.sort and not part:
            place = {name: {value: k for k, value in enumerate(values)} for name, values in self.order.items()}
            data = data.sort_values(
                list(self.sort), kind="stable", key=lambda column: column.map(place.get(str(column.name), lambda x: x))
            )
        self.path("").parent.mkdir(parents=True, exist_ok=True)
        text = data.to_csv(index=False, float_format=f"%.{self.digits}g")
        write_atomically(self.path(f"{part}.csv"), text.encode())
        return data


def write_record(path: Path, record: Any) -> None:
    """Write a record as indented JSON."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(record)) + b"\n")


def kernel_used(kernel: Any) -> Record:
    """What a record says of a kernel."""
    return {"version": kernel.version, "source": kernel.source, "sha256": kernel.sha256}
