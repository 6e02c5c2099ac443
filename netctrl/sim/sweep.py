"""Run a sweep in blocks, on all cores or a cluster; what is finished is kept, whenever it is stopped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from netctrl.errors import FileError, InvalidValue, NoAdmissibleDesign, checked_function, checked_jobs, checked_kind
from netctrl.model.io.files import check_writable, opened, write_atomically
from netctrl.model.io.json_file import read_json
from netctrl.scenario.network.result import NetworkResult, estimate
from netctrl.scenario.network.sweep import FIGURES, Cell, SweepSpec
from netctrl.sim.network.run import LANES, simulate_network
from netctrl.sim.network.tune import LawOf, Tuned, check_objective, tunable, tune
from netctrl.units import BITS_PER_BYTE

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["read_frame", "summarized", "sweep", "sweep_to_file", "tune_cells"]

Progress = Callable[[float], None]

_MAX_PART = 64 * 2**20
_SPEC = "sweep.json"


def sweep(spec: SweepSpec, law: LawOf, *, n_jobs: int = 1, progress: Progress | None = None) -> pd.DataFrame:
    """All cells of a sweep, one row a cell and run, in order.

    Parameters
    ----------
    spec : SweepSpec
    law : callable
        Of a scenario, where its policy needs one: `netctrl.scenario_law`.
    n_jobs : int
        Processes, −1: all cores. Results don't depend on it.
    progress : callable, optional
        Called now and then with the share that is done, from 0 to 1.

    Returns
    -------
    DataFrame
        `cell`, `grid`, a column for each place that varies, `run`, `sample` (the independent sample of the traffic that
        the run met: of a trace its window), and `netctrl.scenario.network.sweep.FIGURES`.

    Raises
    ------
    InvalidValue, NoAdmissibleDesign
        A cell that can't be made, designed or run; names the cell.
    """
    checked_kind("spec", spec, SweepSpec)
    checked_function("law", law)
    if progress is not None:
        checked_function("progress", progress)
    tasks = list(_tasks(spec))
    done: dict[int, _Rows] = {}
    for number, rows in _run(tasks, law, n_jobs):
        done[number] = rows
        if progress is not None:
            progress(len(done) / len(tasks))
    return _table(spec, tasks, [done[task.number] for task in tasks]).to_pandas()


def sweep_to_file(
    spec: SweepSpec,
    law: LawOf,
    path: str | os.PathLike[str],
    *,
    resume: bool = False,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> None:
    """The same into a Parquet file. Until it is whole, finished blocks wait in the folder `path`.parts beside it.

    Parameters
    ----------
    path : path
        The file is the same to the last byte however often the sweep was stopped, and on any number of workers.
    resume : bool
        Go on where a sweep into this file was stopped.

    Raises
    ------
    FileError
        The file can't be written, or the folder holds another sweep's blocks, or this one's without `resume`.
    InvalidValue, NoAdmissibleDesign
        As `sweep`.
    """
    checked_kind("spec", spec, SweepSpec)
    checked_function("law", law)
    if progress is not None:
        checked_function("progress", progress)
    check_writable(path)
    tasks = list(_tasks(spec))
    parts = Path(f"{os.fspath(path)}.parts")
    done = _open_parts(parts, spec, path, resume=resume, tasks=len(tasks))
    left = [task for task in tasks if task.number not in done]
    finished = len(done)
    for number, rows in _run(left, law, n_jobs):
        write_atomically(parts / f"{number}.json", msgspec.json.encode(rows))
        finished += 1
        if progress is not None:
            progress(finished / len(tasks))
    blocks = [_read_part(parts / f"{task.number}.json", task) for task in tasks]
    write_atomically(path, _parquet(_table(spec, tasks, blocks)))
    for part in parts.iterdir():  # the record last: what is stopped here can be resumed too
        if part.name != _SPEC:
            part.unlink()
    shutil.rmtree(parts)


class _Task(NamedTuple):
    """A block: some runs of a cell."""

    number: int
    cell: Cell
    first: int
    runs: int


class _Rows(msgspec.Struct, forbid_unknown_fields=True):
    """What a block gives, one entry a run."""

    cell: int
    first: int
    sample: list[int]
    figures: dict[str, list[float | None]]


def _tasks(spec: SweepSpec) -> Iterator[_Task]:
    number = 0
    for cell in spec.cells():
        for first in range(0, spec.runs, LANES):
            yield _Task(number, cell, first, min(LANES, spec.runs - first))
            number += 1


def _run(tasks: list[_Task], law: LawOf, n_jobs: int) -> Iterator[tuple[int, _Rows]]:
    from joblib import Parallel, delayed

    engine = Parallel(n_jobs=checked_jobs(n_jobs), return_as="generator_unordered")
    yield from engine(delayed(_block)(task, law) for task in tasks)


def _block(task: _Task, law: LawOf) -> tuple[int, _Rows]:
    cell = task.cell
    with _naming(cell):
        result = simulate_network(cell.scenario, law(cell.scenario), runs=task.runs, first_run=task.first, watch=False)
    return task.number, _Rows(cell.number, task.first, result.sample.tolist(), _figures(result))


@contextmanager
def _naming(cell: Cell) -> Generator[None]:
    """What goes wrong names the cell."""
    try:
        yield
    except InvalidValue as error:
        raise InvalidValue(f"{cell.title}: {error.argument}", error.got, error.takes) from None
    except NoAdmissibleDesign as error:
        raise NoAdmissibleDesign(f"{cell.title}: {error}", error.design) from None


def _figures(result: NetworkResult) -> dict[str, list[float | None]]:
    rate = BITS_PER_BYTE / result.seconds
    cost = result.cost
    columns = {
        "loss_ratio": result.loss_ratio,
        "backlog_bytes": result.backlog_bytes.sum(axis=1),
        "throughput_bit_per_s": result.delivered_bytes * rate,
        "max_link_utilization": (result.departed_bytes * rate / result.capacity_bit_per_s).max(axis=1),
    }
    figures: dict[str, list[float | None]] = {name: values.tolist() for name, values in columns.items()}
    return figures | {"cost": [None] * result.runs if cost is None else cost.tolist()}


def _table(spec: SweepSpec, tasks: list[_Task], blocks: list[_Rows]) -> pa.Table:
    import pyarrow as pa

    cells = [task.cell for task in tasks for _ in range(task.runs)]
    places = dict.fromkeys(place for task in tasks for place in task.cell.values)
    columns: dict[str, Any] = {"cell": [cell.number for cell in cells], "grid": [cell.label for cell in cells]}
    columns |= {place: _column([cell.values.get(place) for cell in cells]) for place in places}
    columns["run"] = [run for task in tasks for run in range(task.first, task.first + task.runs)]
    columns["sample"] = [number for rows in blocks for number in rows.sample]
    for name in FIGURES:
        columns[name] = pa.array([value for rows in blocks for value in rows.figures[name]], type=pa.float64())
    return pa.table(columns).replace_schema_metadata(_metadata(spec))


def _column(values: list[Any]) -> list[float | None] | list[str | None]:
    """Numbers where all are, else text."""
    if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
        return [None if value is None else float(value) for value in values]
    return [value if isinstance(value, str | None) else msgspec.json.encode(value).decode() for value in values]


def _metadata(spec: SweepSpec) -> dict[str, bytes]:
    """Where the table came from; nothing in it depends on when, where or in how many sittings it was made."""
    import netctrl

    return {
        "netctrl": netctrl.__version__.encode(),
        "sweep": msgspec.json.encode(spec.portable()),
        "digest": spec.digest().encode(),
    }


def _parquet(table: pa.Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def _open_parts(parts: Path, spec: SweepSpec, path: Any, *, resume: bool, tasks: int) -> set[int]:
    """Numbers of the blocks that are there already; makes the folder where there is none."""
    import netctrl

    what = {"netctrl": netctrl.__version__, "digest": spec.digest(), "blocks": tasks}
    record = parts / _SPEC
    if not record.is_file():
        if parts.exists() and any(not each.name.startswith(f".{_SPEC}.") for each in parts.iterdir()):
            raise FileError(parts, "is in the way: not empty, and no sweep's")
        parts.mkdir(exist_ok=True)
        write_atomically(record, msgspec.json.encode(what))
        return set()
    if not resume:
        raise FileError(path, f"a sweep into it was stopped: resume it, or delete {parts}")
    try:
        known = read_json(record, dict, what="record of a sweep", max_bytes=2**20)
    except (msgspec.ValidationError, FileError):
        raise FileError(record, "is no record of a sweep") from None
    if known != what:
        raise FileError(path, f"another sweep into it was stopped, or one of another netctrl: delete {parts}")
    return {int(file.stem) for file in parts.glob("*.json") if file.name != _SPEC and file.stem.isdigit()}


def _read_part(path: Path, task: _Task) -> _Rows:
    try:
        rows = read_json(path, _Rows, what="part of a sweep", max_bytes=_MAX_PART)
    except (msgspec.ValidationError, FileError) as error:
        why = error.why if isinstance(error, FileError) else error
        raise FileError(path, f"is no part of a sweep ({why}): delete it and resume") from None
    columns = [rows.sample, *rows.figures.values()]
    fits = set(rows.figures) == set(FIGURES) and all(len(column) == task.runs for column in columns)
    if (rows.cell, rows.first) != (task.cell.number, task.first) or not fits:
        raise FileError(path, "is another sweep's part: delete it and resume")
    return rows


def read_frame(path: str | os.PathLike[str]) -> pd.DataFrame:
    """The table that `sweep_to_file` wrote; FileError where it is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with opened(path) as file:
            table = pq.ParquetFile(file).read()
    except pa.ArrowException as error:
        raise FileError(path, f"is no Parquet file: {str(error).splitlines()[0]}") from None
    if not {"cell", "grid", "run", "sample", *FIGURES} <= set(table.column_names):
        raise FileError(path, "is no table of a sweep")
    return table.to_pandas()


def summarized(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a cell: numbers of runs and of independent samples of the traffic, of each figure the mean and half the
    width of its 95 % interval."""
    import pandas as pd

    columns = list(frame.columns)
    places = columns[columns.index("grid") + 1 : columns.index("run")]
    rows = []
    for _, runs in frame.groupby("cell", sort=True):
        row = {name: runs[name].iloc[0] for name in ("cell", "grid", *places)} | {"runs": len(runs)}
        sample = runs["sample"].to_numpy()
        row["samples"] = len(np.unique(sample))
        for name in FIGURES:
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
    """`netctrl.tune` for every cell whose policy has something to tune, with the sweep's number of runs.

    Cells that differ in nothing but what is tuned are one.

    Raises
    ------
    InvalidValue, NoAdmissibleDesign
        As `tune`, or no cell has anything to tune; names the cell.
    """
    from joblib import Parallel, delayed

    max_loss = check_objective(objective, max_loss)
    cells = _tunable(spec)
    if not cells:
        raise InvalidValue("tune", objective, "a sweep with a policy of kind hftrac or static")
    requested = {"objective": objective, "max_loss": max_loss, "runs": spec.runs}
    found: list[Tuned] = []
    tasks = (delayed(_tuned)(cell, law, requested) for cell in cells)
    for best in Parallel(n_jobs=checked_jobs(n_jobs), return_as="generator")(tasks):
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
            values = {place: value for place, value in cell.values.items() if place != f"policy.{field}"}
            policy = msgspec.structs.replace(cell.scenario.policy, **{field: 1.0})
            same = msgspec.json.encode([cell.label, msgspec.structs.replace(cell.scenario, policy=policy)])
            found.setdefault(same, msgspec.structs.replace(cell, values=values))
    return list(found.values())
