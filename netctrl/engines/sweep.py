"""Running of sweeps in any engine, in blocks, on all cores or a cluster; an interrupted sweep keeps finished blocks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np

from netctrl.core.errors import (
    FileError,
    InvalidValue,
    NoAdmissibleDesign,
    checked_function,
    checked_jobs,
    checked_kind,
    from_workers,
    optional_import,
)
from netctrl.core.files import check_writable, checked_path, write_atomically
from netctrl.core.register import ENGINES
from netctrl.design.hftrac.scenario_law import scenario_law
from netctrl.engines.case import Case, has_runs, with_seed
from netctrl.engines.engine import Job, engine_for
from netctrl.engines.parts import open_parts
from netctrl.engines.sweep_table import routed_figures
from netctrl.model.datasets import network_path, scenario_path, sweep_path
from netctrl.model.io.json_file import read_json
from netctrl.model.io.table import TABLES
from netctrl.scenario.figures import estimate
from netctrl.scenario.network.sweep import FIGURES, Cell, SweepSpec, read_sweep
from netctrl.sim.network.run import LANES
from netctrl.sim.network.tune import LawOf, Tuned, check_objective, tunable, tune

if TYPE_CHECKING:
    import pandas as pd

    from netctrl.core.names import EngineName, Registered

Progress = Callable[[float], None]

_MAX_PART = 64 * 2**20
_SPEC = "sweep.json"


def sweep(
    spec: SweepSpec | str | os.PathLike[str],
    law: LawOf = scenario_law,
    *,
    engine: EngineName | Registered | Literal["auto"] | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Run all cells of a sweep: one row per cell and run, in order.

    Parameters
    ----------
    spec : SweepSpec, path or str
        What varies, and how often each cell is run; a name is that of a sweep that comes with netctrl.
    law : callable
        Function from a routed scenario to its law, if its control needs one.
    engine : str, optional
        Engine to use instead of the sweep's: "fluid", "packet", "ns3", one of another package, or "auto".
    n_jobs : int
        Number of processes, −1: all cores. Results don't depend on it.
    progress : callable, optional
        Called from time to time with the share done, from 0 to 1.

    Returns
    -------
    DataFrame
        `cell`, `grid`, a column for each path that varies, `run`, `sample` (index of the run's independent sample of
        the traffic: for a trace its window), and results: `netctrl.scenario.network.sweep.FIGURES` for a routed
        network, otherwise the entries of the result's `measures()`, such as "throughput of web".

    Raises
    ------
    InvalidValue, NoAdmissibleDesign
        A cell that isn't valid or can't be designed or run; the message names the cell.

    Examples
    --------
    >>> import netctrl
    >>> network = {"kind": "routed", "graph": netctrl.read("merge")}
    >>> policy = {"kind": "static", "factor": 1.1}
    >>> shared = {"network": network, "control": policy, "duration": "5s", "interval": "10ms"}
    >>> spec = netctrl.SweepSpec(name="factors", scenario=shared, runs=2, over={"control.factor": [1.05, 1.1]})
    >>> netctrl.sweep(spec)[["control.factor", "run"]].values.tolist()
    [[1.05, 0.0], [1.05, 1.0], [1.1, 0.0], [1.1, 1.0]]
    """
    spec = _checked(spec, law, engine, progress)
    tasks = list(_tasks(spec))
    done: dict[int, _Rows] = {}
    for number, rows in from_workers(_run(tasks, law, n_jobs)):
        done[number] = rows
        if progress is not None:
            progress(len(done) / len(tasks))
    return _table(tasks, [done[task.number] for task in tasks])


def sweep_to_file(
    spec: SweepSpec | str | os.PathLike[str],
    law: LawOf,
    path: str | os.PathLike[str],
    *,
    engine: str | None = None,
    resume: bool = False,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Run a sweep, as `sweep`, into a file. Finished blocks are kept in the folder `path`.parts until it is complete.

    Parameters
    ----------
    path : path
        A `.parquet` file, for which pyarrow is needed and whose metadata hold the sweep, or a `.csv` file. It has the
        same bytes whatever the interruptions and the number of workers.
    resume : bool
        Continue an interrupted sweep into this file.

    Raises
    ------
    FileError
        The file can't be written, or the folder holds blocks of another sweep, or of this one without `resume`.
    InvalidValue, NoAdmissibleDesign
        As for `sweep`, or a file of another kind; NetctrlError where a worker process is killed: finished blocks are
        kept, and `resume` goes on.
    """
    spec = _checked(spec, law, engine, progress)
    check_writable(path)
    parquet = _is_parquet(path)
    tasks = list(_tasks(spec))
    parts = Path(f"{os.fspath(path)}.parts")
    done = _open_parts(parts, spec, path, resume=resume, tasks=len(tasks))
    left = [task for task in tasks if task.number not in done]
    finished = len(done)
    kept = f": the finished blocks are in {parts}, and the same sweep with resume (--resume) goes on from there"
    for number, rows in from_workers(_run(left, law, n_jobs), kept):
        write_atomically(parts / f"{number}.json", msgspec.json.encode(rows))
        finished += 1
        if progress is not None:
            progress(finished / len(tasks))
    blocks = [_read_part(parts / f"{task.number}.json", task) for task in tasks]
    table = _table(tasks, blocks)
    write_atomically(path, _parquet(table, spec) if parquet else table.to_csv(index=False).encode())
    for part in parts.iterdir():  # the record last, so that an interruption here can be resumed too
        if part.name != _SPEC:
            part.unlink()
    shutil.rmtree(parts)
    return table


def _checked(spec: Any, law: LawOf, engine: str | None, progress: Progress | None) -> SweepSpec:
    """The sweep in this engine; MissingLibrary before the work if its table can't be made."""
    if isinstance(spec, str | os.PathLike):
        spec = read_sweep(sweep_path(os.fspath(spec)), network_path, scenario_path)
    checked_kind("spec", spec, SweepSpec)
    checked_function("law", law)
    if progress is not None:
        checked_function("progress", progress)
    with optional_import():
        import_module("pandas")
    return spec if engine is None else msgspec.structs.replace(spec, engine=engine)


class _Task(NamedTuple):
    """A block: some runs of a cell."""

    number: int
    cell: Cell
    engine: str
    first: int
    runs: int


class _Given(NamedTuple):
    """Stand-in for a Design: only the law, as engines read it."""

    law: Any


class _Rows(msgspec.Struct, forbid_unknown_fields=True):
    """Results of a block, one entry per run."""

    cell: int
    first: int
    sample: list[int]
    figures: dict[str, list[float | None]]


def _tasks(spec: SweepSpec) -> Iterator[_Task]:
    number = 0
    for cell in spec.cells():
        with _naming(cell):
            engine = engine_for(cell.scenario, spec.engine).name
        lanes = LANES if has_runs(cell.scenario) else 1
        for first in range(0, spec.runs, lanes):
            yield _Task(number, cell, engine, first, min(lanes, spec.runs - first))
            number += 1


def _run(tasks: list[_Task], law: LawOf, n_jobs: int) -> Iterator[tuple[int, _Rows]]:
    from joblib import Parallel, delayed

    engine = Parallel(n_jobs=checked_jobs(n_jobs), return_as="generator_unordered")
    yield from engine(delayed(_block)(task, law) for task in tasks)


def _block(task: _Task, law: LawOf) -> tuple[int, _Rows]:
    cell, scenario = task.cell, task.cell.scenario
    with _naming(cell):
        if has_runs(scenario):
            case = Case(scenario, _Given(law(scenario)))
            result = ENGINES[task.engine].run(case, Job(runs=task.runs, first_run=task.first, watch=False))
            return task.number, _Rows(cell.number, task.first, result.totals["sample"].tolist(), routed_figures(result))
        drawn = Case(with_seed(scenario, (scenario.seed + task.first) % 2**32))
        measures = ENGINES[task.engine].run(drawn, Job()).measures()
    figures: dict[str, list[float | None]] = {f"{what} of {of}": [value] for (what, of), value in measures.items()}
    return task.number, _Rows(cell.number, task.first, [task.first], figures)


@contextmanager
def _naming(cell: Cell) -> Generator[None]:
    """Context in which errors name the cell."""
    try:
        yield
    except InvalidValue as error:
        raise InvalidValue(f"{cell.title}: {error.argument}", error.got, error.takes) from None
    except NoAdmissibleDesign as error:
        raise NoAdmissibleDesign(f"{cell.title}: {error}", error.design) from None


def _is_parquet(path: Any) -> bool:
    """Kind of a sweep's file: Parquet, or CSV; MissingLibrary before the work if Parquet can't be written."""
    suffix = checked_path(path).suffix.lower()
    if suffix not in TABLES:
        raise InvalidValue("path", os.fspath(path), f"a file that ends with {' or '.join(TABLES)}")
    if parquet := suffix == ".parquet":
        with optional_import():
            import_module("pyarrow")
    return parquet


def _table(tasks: list[_Task], blocks: list[_Rows]) -> pd.DataFrame:
    """One row per cell and run."""
    import pandas as pd

    cells = [task.cell for task in tasks for _ in range(task.runs)]
    places = dict.fromkeys(place for task in tasks for place in task.cell.values)
    columns: dict[str, Any] = {"cell": [cell.number for cell in cells], "grid": [cell.label for cell in cells]}
    columns |= {place: _column([cell.values.get(place) for cell in cells]) for place in places}
    columns["run"] = [run for task in tasks for run in range(task.first, task.first + task.runs)]
    columns["sample"] = [number for rows in blocks for number in rows.sample]
    nothing = {task.number: [None] * task.runs for task in tasks}
    for name in dict.fromkeys(name for rows in blocks for name in rows.figures):
        found = (rows.figures.get(name, nothing[task.number]) for task, rows in zip(tasks, blocks, strict=True))
        columns[name] = np.array([value for values in found for value in values], dtype=float)
    return pd.DataFrame(columns)


def _column(values: list[Any]) -> list[float | None] | list[str | None]:
    """The values as numbers if all are numbers, else as text."""
    if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
        return [None if value is None else float(value) for value in values]
    return [value if isinstance(value, str | None) else msgspec.json.encode(value).decode() for value in values]


def _parquet(table: pd.DataFrame, spec: SweepSpec) -> bytes:
    """The file, with provenance in its metadata that is independent of when, where and in how many sessions it was
    made."""
    import netctrl

    written = table.copy(deep=False)
    written.attrs = {"netctrl": netctrl.__version__, "sweep": spec.portable(), "digest": spec.digest()}
    return written.to_parquet(compression="zstd", index=False)


def _open_parts(parts: Path, spec: SweepSpec, path: Any, *, resume: bool, tasks: int) -> set[int]:
    """Numbers of the blocks that exist already; creates the folder if there is none."""
    import netctrl

    what = {"netctrl": netctrl.__version__, "digest": spec.digest(), "blocks": tasks}
    return open_parts(parts, what, path, resume=resume)


def _read_part(path: Path, task: _Task) -> _Rows:
    try:
        rows = read_json(path, _Rows, what="part of a sweep", max_bytes=_MAX_PART)
    except (msgspec.ValidationError, FileError) as error:
        why = error.why if isinstance(error, FileError) else error
        raise FileError(path, f"not a valid part of a sweep ({why}): delete it and resume") from None
    columns = [rows.sample, *rows.figures.values()]
    whole = set(rows.figures) == set(FIGURES) if has_runs(task.cell.scenario) else bool(rows.figures)
    fits = whole and all(len(column) == task.runs for column in columns)
    if (rows.cell, rows.first) != (task.cell.number, task.first) or not fits:
        raise FileError(path, "belongs to another sweep: delete it and resume")
    return rows


def summarized(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per cell: numbers of runs and independent samples, and each figure's mean and half 95 % interval."""
    with optional_import():
        import pandas as pd

    columns = list(frame.columns)
    places = columns[columns.index("grid") + 1 : columns.index("run")]
    figures = columns[columns.index("sample") + 1 :]
    rows = []
    for _, runs in frame.groupby("cell", sort=True):
        row = {name: runs[name].iloc[0] for name in ("cell", "grid", *places)} | {"runs": len(runs)}
        sample = runs["sample"].to_numpy()
        row["samples"] = len(np.unique(sample))
        for name in figures:
            found = estimate(runs[name].to_numpy(), sample)
            row |= {name: found.mean, f"{name}_half_width": found.half_width}
        rows.append(row)
    return pd.DataFrame(rows)


def tune_cells(
    spec: SweepSpec,
    law: LawOf,
    *,
    objective: str,
    max_loss: float | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> list[tuple[Cell, Tuned]]:
    """`netctrl.tune` for every cell whose control has a parameter to tune, with the sweep's number of runs.

    Cells that differ only in the tuned parameter count as one.

    Raises
    ------
    InvalidValue, NoAdmissibleDesign
        As for `tune`, or no cell has a parameter to tune; the message names the cell.
    """
    from joblib import Parallel, delayed

    max_loss = check_objective(objective, max_loss)
    cells = _tunable(spec)
    if not cells:
        raise InvalidValue("tune", objective, "a sweep with a control of kind hftrac or static")
    requested = {"objective": objective, "max_loss": max_loss, "runs": spec.runs}
    found: list[Tuned] = []
    tasks = (delayed(_tuned)(cell, law, requested) for cell in cells)
    for best in from_workers(Parallel(n_jobs=checked_jobs(n_jobs), return_as="generator")(tasks)):
        found.append(best)
        if progress is not None:
            progress(len(found) / len(cells))
    return list(zip(cells, found, strict=True))


def _tuned(cell: Cell, law: LawOf, requested: dict[str, Any]) -> Tuned:
    with _naming(cell):
        return tune(cell.scenario, law, **requested)


def _tunable(spec: SweepSpec) -> list[Cell]:
    found: dict[bytes, Cell] = {}
    for cell in spec.cells():
        field = tunable(cell.scenario)
        if field is not None:
            values = {place: value for place, value in cell.values.items() if place != f"control.{field}"}
            control = msgspec.structs.replace(cell.scenario.control, **{field: 1.0})
            same = msgspec.json.encode([cell.label, cell.scenario.replace(control=control)])
            found.setdefault(same, msgspec.structs.replace(cell, values=values))
    return list(found.values())
