"""`netctrl sweep SPEC`: runs grids of scenarios many times in any engine; gives a table, also as a file."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import check_files, invocation, new_app, progress_bar, report, run, say, workers, write_all
from netctrl.cli.cases import SweepName
from netctrl.cli.options import ENDINGS, JOBS, Report, kind, option, positional
from netctrl.core.errors import JOBS_TAKES, FileError, InvalidValue
from netctrl.core.names import EngineName

if TYPE_CHECKING:
    import pandas as pd

    from netctrl.scenario.network.sweep import SweepSpec

OPTIONS = {"sweep": "SPEC", "objective": "--tune"}

_SHARE = kind("SHARE", float, "a share from 0 to 1, as in 0.001")

app = new_app("netctrl sweep", "Runs grids of scenarios many times, with 95 % intervals.")


@app.default
def sweep(
    spec: Annotated[SweepName, positional("SPEC", "a TOML file, or the name of a sweep that comes with netctrl")],
    /,
    *,
    engine: Annotated[
        str | EngineName | None, option("NAME", "engine in place of the sweep's: fluid, packet, ns3, ..., or auto")
    ] = None,
    n_jobs: Annotated[int, JOBS(JOBS_TAKES, default="-1")] = -1,
    dask: Annotated[
        str | None, option("ADDRESS", "Dask scheduler on whose workers to run, as in tcp://127.0.0.1:8786")
    ] = None,
    output: Annotated[str | None, option("FILE", "save all runs (.csv, .parquet)", "--output", "-o")] = None,
    resume: Annotated[bool, option("", "continue the interrupted sweep in -o")] = False,
    tune: Annotated[
        str | None, option("WHAT", "instead find mu or the static factor of each cell with the least loss or backlog")
    ] = None,
    max_loss: Annotated[
        float | None, _SHARE("largest loss that --tune backlog allows, as in 0.001", "--max-loss", "--most-loss")
    ] = None,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
    page: Report = None,
) -> int:
    """Reads the sweep, runs it and writes the requested files.

    Examples
    --------
    netctrl sweep hftrac-testbed
    netctrl sweep hftrac-testbed -o tradeoff.csv --resume
    """
    check_files({"output": output, "report": page}, endings=ENDINGS | {"output": (".csv", ".parquet")})
    if resume and output is None:
        raise InvalidValue("resume", "no -o", "the interrupted sweep's file in -o")
    if max_loss is not None and tune != "backlog":
        raise InvalidValue("max_loss", max_loss, "no value without --tune backlog")
    if tune is not None:  # before any file is read
        from netctrl.sim.network.tune import check_objective

        other = None if engine in ("auto", "fluid") else engine
        for name, value, takes in (
            ("output", output, "no file with --tune; --json prints the values found"),
            ("engine", other, "no value with --tune, which runs the fluid engine"),
            ("report", page, "no value with --tune"),
        ):
            if value is not None:
                raise InvalidValue(name, value, takes)
        max_loss = check_objective(tune, max_loss)

    from netctrl.design.hftrac.scenario_law import scenario_law
    from netctrl.model.datasets import network_path, scenario_path, sweep_path
    from netctrl.scenario.network.sweep import read_sweep

    requested = read_sweep(sweep_path(spec), network_path, scenario_path)
    if tune is not None:
        with workers(dask), _of_file(spec):
            return _tune(requested, tune, max_loss, n_jobs, json=json)

    from netctrl.engines.sweep import summarized, sweep, sweep_to_file
    from netctrl.engines.sweep_table import sweep_table

    with workers(dask), _of_file(spec), progress_bar("sweeping") as progress:
        options: dict[str, Any] = {"engine": engine, "n_jobs": n_jobs, "progress": progress}
        if output is None:
            frame = sweep(requested, scenario_law, **options)
        else:
            frame = sweep_to_file(requested, scenario_law, output, **options, resume=resume)
    summary = summarized(frame)
    if page is not None:
        from netctrl.plotting.pages.sweeps import sweep_page

        made = sweep_page(requested, frame, argv=invocation(), inputs=[sweep_path(spec)])
        write_all({"report": (page, made.content)})
    if json:
        return say(_as_json(requested, summary))
    title, rows = sweep_table(requested, summary)
    return say(_verdict(summary, rows) + report(title, rows))


@contextmanager
def _of_file(spec: str) -> Generator[None]:
    """Context in which errors of a cell name the sweep's file, not an option."""
    try:
        yield
    except InvalidValue as error:
        raise FileError(spec, str(error)) from None


def _tune(requested: SweepSpec, objective: str, max_loss: float | None, jobs: int, *, json: bool) -> int:
    import msgspec

    from netctrl.design.hftrac.scenario_law import scenario_law
    from netctrl.engines.sweep import tune_cells
    from netctrl.engines.sweep_table import cell_name, kilobytes, percent

    with progress_bar("tuning") as progress:
        found = tune_cells(
            requested, scenario_law, objective=objective, max_loss=max_loss, n_jobs=jobs, progress=progress
        )
    if json:
        content = [
            {"cell": cell.number, "grid": cell.label, "values": cell.values}
            | {"field": best.field, "value": best.value, "at_bound": best.at_bound, "allowed": best.allowed}
            | {"loss": best.loss, "backlog": best.backlog, "tried": best.tried}
            for cell, best in found
        ]
        return say(
            msgspec.json.format(msgspec.json.encode({"sweep": requested.name, "cells": content})).decode() + "\n"
        )
    rows = []
    for cell, best in found:
        loss, backlog = best.loss, best.backlog
        text = f"{best.field} = {best.value:.4g}{' (end of the range)' if best.at_bound else ''}: "
        text += f"loss {percent(loss.mean, loss.half_width)}, backlog {kilobytes(backlog.mean, backlog.half_width)}"
        text += "" if best.allowed else " (no value loses less)"
        rows.append((cell_name(cell.label, cell.values), text))
    return say(report(f"{requested.name}: least {objective}, {requested.runs} runs a cell, 95 % intervals", rows))


def _verdict(summary: pd.DataFrame, rows: list[tuple[str, str]]) -> str:
    """The cells with the least and the greatest loss, if cells have a loss."""
    losses = summary["loss_ratio"].tolist() if "loss_ratio" in summary else []
    known = [(loss, name) for loss, (name, _) in zip(losses, rows, strict=bool(losses)) if loss == loss]
    if not known:
        return f"{len(rows)} cells were run\n"
    (low, best), (high, worst) = min(known), max(known)
    return f"loss from {100 * low:.4g} % ({best}) to {100 * high:.4g} % ({worst})\n"


def _as_json(requested: SweepSpec, summary: pd.DataFrame) -> str:
    import json

    cells = [{key: _plain(value) for key, value in row.items()} for row in summary.to_dict("records")]
    return json.dumps({"sweep": requested.name, "digest": requested.digest(), "cells": cells}, indent=2) + "\n"


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and value != value else value


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)
