"""`python -m netctrl.sweep SPEC`: grids of network scenarios, run many times, as a table and a Parquet file."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import (
    check_places,
    new_app,
    option,
    positional,
    progress_bar,
    read_jobs,
    report,
    run,
    say,
    workers,
)
from netctrl.errors import JOBS_TAKES, FileError, InvalidValue

if TYPE_CHECKING:
    import pandas as pd

    from netctrl.scenario.network.sweep import SweepSpec

__all__ = ["main"]

OPTIONS = {"output": "-o", "n_jobs": "--n-jobs", "sweep": "SPEC", "objective": "--tune"}

app = new_app("python -m netctrl.sweep", "Runs grids of network scenarios many times, with 95 % intervals.")


@app.default
def sweep(
    spec: Annotated[str, positional("SPEC", "a TOML file, or the name of a sweep that comes with netctrl")],
    /,
    *,
    n_jobs: Annotated[str, option("N", JOBS_TAKES)] = "-1",
    dask: Annotated[str | None, option("ADDRESS", "its workers, by their scheduler: tcp://127.0.0.1:8786")] = None,
    output: Annotated[str | None, option("FILE", "all runs, as Parquet (.parquet)", "--output", "-o")] = None,
    resume: Annotated[bool, option("", "go on where a sweep into -o was stopped")] = False,
    tune: Annotated[
        str | None,
        option("WHAT", "instead, find mu or the static factor of each cell: for the least loss, or the least backlog"),
    ] = None,
    max_loss: Annotated[
        str | None, option("SHARE", "that --tune backlog allows, as in 0.001", "--max-loss", "--most-loss")
    ] = None,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
) -> int:
    """Read the sweep, run it, write what was asked for."""
    jobs = read_jobs(n_jobs)
    if output is not None and Path(output).suffix.lower() != ".parquet":
        raise InvalidValue("output", output, "a file name that ends in .parquet")
    if resume and output is None:
        raise InvalidValue("resume", "no -o", "the file of the sweep that was stopped, with -o")
    if tune is not None and output is not None:
        raise InvalidValue("output", output, "no file with --tune; --json prints what it finds")
    if max_loss is not None and tune != "backlog":
        raise InvalidValue("max_loss", max_loss, "no value without --tune backlog")
    share = _share(tune, max_loss)
    check_places({"output": output})

    from netctrl.datasets import network_path, sweep_path
    from netctrl.design.hftrac.scenario_law import scenario_law
    from netctrl.scenario.network.sweep import read_sweep

    requested = read_sweep(sweep_path(spec), network_path)
    if tune is not None:
        with workers(dask), _of_file(spec):
            return _tune(requested, tune, share, jobs, json=json)

    from netctrl.sim.sweep import read_frame, summarized, sweep, sweep_to_file

    with workers(dask), _of_file(spec), progress_bar("sweeping") as progress:
        if output is None:
            frame = sweep(requested, scenario_law, n_jobs=jobs, progress=progress)
        else:
            sweep_to_file(requested, scenario_law, output, resume=resume, n_jobs=jobs, progress=progress)
            frame = read_frame(output)
    summary = summarized(frame)
    return say(_as_json(requested, summary) if json else _as_table(requested, summary))


@contextmanager
def _of_file(spec: str) -> Generator[None]:
    """What is wrong with a cell is of the file, not of an option."""
    try:
        yield
    except InvalidValue as error:
        raise FileError(spec, str(error)) from None


def _tune(requested: SweepSpec, objective: str, max_loss: float | None, jobs: int, *, json: bool) -> int:
    import msgspec

    from netctrl.design.hftrac.scenario_law import scenario_law
    from netctrl.sim.sweep import tune_cells

    with progress_bar("tuning") as progress:
        found = tune_cells(
            requested, scenario_law, objective=objective, max_loss=max_loss, n_jobs=jobs, progress=progress
        )
    if json:
        content = [
            {"cell": cell.number, "grid": cell.label, "values": cell.values}
            | {"field": best.field, "value": best.value, "at_bound": best.at_bound, "allowed": best.allowed}
            | {"summary": best.summary, "tried": best.tried}
            for cell, best in found
        ]
        return say(
            msgspec.json.format(msgspec.json.encode({"sweep": requested.name, "cells": content})).decode() + "\n"
        )
    rows = []
    for cell, best in found:
        loss, backlog = best.summary.loss_ratio, best.summary.backlog_bytes
        text = f"{best.field} = {best.value:.4g}{' (end of the range)' if best.at_bound else ''}: "
        text += f"loss {_percent(loss.mean, loss.half_width)}, backlog {_kilobytes(backlog.mean, backlog.half_width)}"
        text += "" if best.allowed else " (no value loses less)"
        rows.append((_name(cell.label, cell.values), text))
    return say(report(f"{requested.name}: least {objective}, {requested.runs} runs a cell, 95 % intervals", rows))


def _as_table(requested: SweepSpec, summary: pd.DataFrame) -> str:
    rows = []
    for _, row in summary.iterrows():
        values = {
            place: row[place] for place in _places(summary) if row[place] == row[place] and row[place] is not None
        }
        loss = _percent(row["loss_ratio"], row["loss_ratio_half_width"])
        backlog = _kilobytes(row["backlog_bytes"], row["backlog_bytes_half_width"])
        rows.append((_name(row["grid"], values), f"loss {loss}, backlog {backlog}"))
    return report(f"{requested.name}: {requested.runs} runs a cell, 95 % intervals", rows)


def _as_json(requested: SweepSpec, summary: pd.DataFrame) -> str:
    import json

    cells = [{key: _plain(value) for key, value in row.items()} for row in summary.to_dict("records")]
    return json.dumps({"sweep": requested.name, "digest": requested.digest(), "cells": cells}, indent=2) + "\n"


def _places(summary: pd.DataFrame) -> list[str]:
    columns = list(summary.columns)
    return columns[columns.index("grid") + 1 : columns.index("runs")]


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and value != value else value


def _name(label: str, values: dict[str, Any]) -> str:
    parts = [
        f"{place.rpartition('.')[2]} {value:g}" if isinstance(value, float) else f"{place.rpartition('.')[2]} {value}"
        for place, value in values.items()
    ]
    return ", ".join([label, *parts])


def _percent(mean: float, half: float | None) -> str:
    return f"{100 * mean:.4g}" + (f" ± {100 * half:.2g}" if half == half and half is not None else "") + " %"


def _kilobytes(mean: float, half: float | None) -> str:
    return f"{mean / 1e3:.4g}" + (f" ± {half / 1e3:.2g}" if half == half and half is not None else "") + " kB"


def _share(tune: str | None, max_loss: str | None) -> float | None:
    """The loss that --tune backlog allows, checked before anything is read; it needs one."""
    if tune is None:
        return None
    from netctrl.sim.network.tune import check_objective

    try:
        share = None if max_loss is None else float(max_loss)
    except ValueError:
        raise InvalidValue("max_loss", max_loss, "a share from 0 to 1, as in 0.001") from None
    return check_objective(tune, share)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)
