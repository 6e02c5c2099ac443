"""`netctrl identify TRACE`: a model of a measured trace as a table, JSON, model file or picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from netctrl.cli.app import (
    PLOT_SUFFIXES,
    check_places,
    checked_plot,
    invocation,
    new_app,
    option,
    picture_file,
    positional,
    read_whole,
    report,
    run,
    say,
    write_all,
)
from netctrl.cli.names import TraceName
from netctrl.cli.waiting import waiting
from netctrl.errors import InvalidValue, checked_word

__all__ = ["main"]

OPTIONS = {"output": "-o", "trace": "TRACE", "held_out": "--held-out"}
DRAWS = 100
METHODS = "n4sid, moesp, cva, sippy-n4sid, sippy-moesp, sippy-cva or sippy-parsim-k"

app = new_app("netctrl identify", "Identifies a linear state-space model of measured inputs and outputs.")


@app.default
def identify(
    trace: Annotated[
        TraceName,
        positional(
            "TRACE",
            "a .csv or .parquet file with `time_s` and a column for each signal, or the name of a bundled trace",
        ),
    ],
    /,
    *,
    inputs: Annotated[str, option("COLUMNS", "columns of the inputs, as in R or R1,R2")],
    outputs: Annotated[str, option("COLUMNS", "columns of the outputs, as in delay,jitter")],
    order: Annotated[str, option("N", "number of states; auto: as many as stand out from the noise")] = "auto",
    method: Annotated[str, option("NAME", METHODS)] = "n4sid",
    horizon: Annotated[
        str | None, option("N", "past samples that predict the future, more than the order (20, or less)")
    ] = None,
    segments: Annotated[
        str | None, option("COLUMN", "column whose change begins a new segment; time may jump there")
    ] = None,
    held_out: Annotated[
        str | None, option("SHARE", "share of the trace, at its end, kept for validation, as in 0.3")
    ] = None,
    refine: Annotated[
        str, option("WHEN", "minimise the simulation error too: yes, no, or auto (if that helps on parts left out)")
    ] = "auto",
    no_feedthrough: Annotated[bool, option("", "D = 0", "--no-feedthrough")] = False,
    bootstrap: Annotated[
        str | None, option("N", f"bootstrap draws for the uncertainty of the poles ({DRAWS} with --plot, else 0)")
    ] = None,
    seed: Annotated[str, option("N", "seed of these draws")] = "0",
    json: Annotated[bool, option("", "print the model as one JSON object and nothing else")] = False,
    output: Annotated[str | None, option("FILE", "save the model as JSON", "-o", "--output")] = None,
    plot: Annotated[
        str | None, option("FILE", f"draw fit, singular values and poles: {', '.join(PLOT_SUFFIXES)}")
    ] = None,
) -> int:
    """The model is x+ = A x + B u + K e, y = C x + D u + e: stable, in deviations from the means, in the trace's units.

    Examples
    --------
    netctrl identify connet-link --inputs R --outputs delay,jitter
    netctrl identify connet-link --inputs R --outputs delay --held-out 0.3 -o model.json --plot fit.png
    """
    from netctrl.datasets import trace_path

    picture = checked_plot(plot, output)
    file = trace_path(trace)
    if output is not None and Path(output).resolve() == file.resolve():
        raise InvalidValue("output", output, "a file other than the trace")
    desired = "auto" if order == "auto" else read_whole("order", order, "a number of states, or auto", least=1)
    i = None if horizon is None else read_whole("horizon", horizon, "a number of samples", least=1)
    share = None if held_out is None else _share(held_out)
    checked_word("refine", refine, ("auto", "yes", "no"))
    draws = read_whole("bootstrap", bootstrap or str(0 if plot is None else DRAWS), "a number of draws")
    drawn_from = read_whole("seed", seed, "a whole number of at least 0")
    check_places({"plot": plot, "output": output})

    from netctrl.ident.identify import identify as from_signals
    from netctrl.model.signals import read_signals

    signals = read_signals(file, _names(inputs), _names(outputs), segments=segments)
    result = from_signals(
        signals,
        order=desired,
        method=method,
        horizon=i,
        feedthrough=not no_feedthrough,
        held_out=share,
        refine="auto" if refine == "auto" else refine == "yes",
        bootstrap=draws,
        seed=drawn_from,
        argv=invocation(),
        files=[file],
    )
    files: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if plot is not None and picture is not None:
        files["plot"] = plot, lambda: picture_file(result.plot(), picture)
    if output is not None:
        files["output"] = output, lambda: result.model.to_json().encode()
    write_all(files)
    return say(result.model.to_json() if json else f"{result.verdict}\n{report(*result.table())}")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _share(text: str) -> float:
    if not re.fullmatch(r"0?\.[0-9]*[1-9][0-9]*", text):
        raise InvalidValue("held_out", text, "a share of the trace above 0 and below 1, as in 0.3")
    return float(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    with waiting("identifying"):
        return run(app, argv, OPTIONS)
