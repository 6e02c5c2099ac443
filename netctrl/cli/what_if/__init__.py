"""`netctrl what-if NETWORK`: loss, delay and utilization under failures, growth and other demands, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from netctrl.cli.app import (
    as_json,
    check_files,
    invocation,
    new_app,
    picture,
    progress_bar,
    report,
    report_file,
    run,
    say,
    workers,
    write_all,
)
from netctrl.cli.cases import NetworkAdded, NetworkName, read_added
from netctrl.cli.options import ENDINGS, JOBS, PLOT_SUFFIXES, Report, kind, option, positional, whole
from netctrl.core.errors import JOBS_TAKES, InvalidValue

if TYPE_CHECKING:
    from netctrl.engines.what_if.record import WhatIf

_SAVED = (".json", ".csv", ".parquet")
_SCALE_TAKES = "factors on all demands, as in 1.2 or 1,1.2,1.5"
_SCALES = kind("X", lambda text: tuple(float(each) for each in text.split(",")), _SCALE_TAKES)
_TOP = whole("N", "a whole number from 0 to 99999", most=99_999)

app = new_app(
    "netctrl what-if", "Loss, delay and utilization when links or nodes fail, and when demands grow or change."
)


@app.default
def what_if(
    network: Annotated[
        NetworkName, positional("NETWORK", "a network's file, or the name of one that comes with netctrl")
    ],
    /,
    added: NetworkAdded | None = None,
    *,
    fail: Annotated[
        str, option("WHAT", "each-link, each-node, none, or a file with a failure a line", default="each-link")
    ] = "each-link",
    scale: Annotated[tuple[float, ...], _SCALES("factors on all demands, as in 1.2 or 1,1.2,1.5", default="1")] = (
        1.0,
    ),
    over: Annotated[
        str | None, option("FILE", "traffic matrices over time, or a folder of them: each is a case")
    ] = None,
    reroute: Annotated[
        str, option("HOW", "shortest, ecmp, k-paths, min-max or max-min", default="shortest")
    ] = "shortest",
    metric: Annotated[
        str | None, option("WHAT", "what paths have least of: delay, hops or capacity (its inverse)")
    ] = None,
    top: Annotated[int, _TOP("number of cases to show", default="10")] = 10,
    n_jobs: Annotated[int, JOBS(JOBS_TAKES, default="-1")] = -1,
    dask: Annotated[
        str | None, option("ADDRESS", "Dask scheduler on whose workers to run, as in tcp://127.0.0.1:8786")
    ] = None,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
    output: Annotated[
        str | None,
        option(
            "FILE",
            "save all cases (.csv, .parquet), or these and the shown ones' links and demands (.json)",
            "--output",
            "-o",
        ),
    ] = None,
    resume: Annotated[bool, option("", "continue the interrupted work on -o")] = False,
    plot: Annotated[str | None, option("FILE", f"save a map of the worst case ({', '.join(PLOT_SUFFIXES)})")] = None,
    page: Report | None = None,
) -> int:
    """Reads the network, routes its demands in every case and shows the worst ones.

    Examples
    --------
    netctrl what-if abilene --scale 1.2
    netctrl what-if abilene --fail each-node --reroute min-max --report failures.html
    """
    files = {"output": output, "plot": plot, "report": page}
    check_files(files, endings=ENDINGS | {"output": _SAVED})
    if resume and output is None:
        raise InvalidValue("resume", "no -o", "the interrupted file in -o")
    from netctrl.engines.what_if.run import what_if

    found, notes, paths = read_added(network, added)
    with workers(dask), progress_bar("routing") as progress:
        answer = what_if(
            found,
            fail=None if fail == "none" else fail,
            scale=scale,
            over=over,
            demand_unit=None if added is None else added.demand_unit,
            reroute=reroute,
            metric=metric,
            top=top,
            keep=None if output is None else f"{output}.parts",
            resume=resume,
            n_jobs=n_jobs,
            progress=progress,
            notes=notes,
            argv=invocation(),
            inputs=paths,
        )
    saved = (output, lambda: _saved(answer, str(output)))
    write_all({"output": saved, "plot": picture(answer.plot, plot), "report": report_file(answer, page)})
    return say(as_json(answer) if json else _table(answer))


def _saved(answer: WhatIf, path: str) -> bytes:
    if path.lower().endswith(".json"):
        return answer.to_json().encode()
    table = answer.table()
    return table.to_csv(index=False).encode() if path.lower().endswith(".csv") else table.to_parquet(index=False)


def _table(answer: WhatIf) -> str:
    """The shown cases, one a row."""
    from netctrl.engines.what_if.record import CASE_COLUMNS, case_row

    rows = [CASE_COLUMNS, *(case_row(each.case) for each in answer.details)]
    widths = [max(len(row[at]) for row in rows) for at in range(1, len(rows[0]))]
    lines = [
        (row[0], "  ".join(text.ljust(w) for text, w in zip(row[1:], widths, strict=True)).rstrip()) for row in rows
    ]
    return report(answer.headline, lines, [f"note: {note}" for note in answer.notes])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, {"network": "NETWORK"})
