"""`python -m netctrl.identify TRACE`: a model of a measured trace, as a table, JSON, a model file and a picture."""

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
    report,
    run,
    say,
    write_all,
)
from netctrl.errors import InvalidValue, checked_word

__all__ = ["main"]

OPTIONS = {"output": "-o", "held_out": "--held-out"}
DRAWS = 100
METHODS = "n4sid, moesp, cva, sippy-n4sid, sippy-moesp, sippy-cva or sippy-parsim-k"

app = new_app("python -m netctrl.identify", "Identifies a linear state-space model of measured inputs and outputs.")


@app.default
def identify(
    trace: Annotated[
        str,
        positional(
            "TRACE",
            "a .csv or .parquet file with `time_s` and a column for each signal, or the name of one of netctrl's",
        ),
    ],
    /,
    *,
    inputs: Annotated[str, option("COLUMNS", "of the inputs, as in R or R1,R2")],
    outputs: Annotated[str, option("COLUMNS", "of the outputs, as in delay,jitter")],
    order: Annotated[str, option("N", "states, or auto: as many as the noise lets see")] = "auto",
    method: Annotated[str, option("NAME", METHODS)] = "n4sid",
    horizon: Annotated[
        str | None, option("N", "samples of the past that tell the future, above the order (20, or less)")
    ] = None,
    segments: Annotated[
        str | None, option("COLUMN", "begins a segment where its value changes; time may jump there")
    ] = None,
    held_out: Annotated[
        str | None, option("SHARE", "of the trace, at its end, that the model is only tried on, as in 0.3")
    ] = None,
    refine: Annotated[
        str, option("WHEN", "go on to the least simulated error: auto (where it helps on parts left out), yes or no")
    ] = "auto",
    no_feedthrough: Annotated[bool, option("", "D = 0", "--no-feedthrough")] = False,
    bootstrap: Annotated[
        str | None, option("N", f"draws for the uncertainty of the poles ({DRAWS} with --plot, else 0)")
    ] = None,
    seed: Annotated[str, option("N", "of these draws")] = "0",
    json: Annotated[bool, option("", "print the model as one JSON object and nothing else")] = False,
    output: Annotated[str | None, option("FILE", "save the model as JSON", "-o", "--output")] = None,
    plot: Annotated[
        str | None, option("FILE", f"draw fit, singular values and poles: {', '.join(PLOT_SUFFIXES)}")
    ] = None,
) -> int:
    """A model x+ = A x + B u + K e, y = C x + D u + e, stable, around the means, in the units of the trace."""
    from netctrl.datasets import trace_path

    picture = checked_plot(plot, output)
    file = trace_path(trace)
    if output is not None and Path(output).resolve() == file.resolve():
        raise InvalidValue("output", output, "another file than the trace")
    desired = "auto" if order == "auto" else _whole("order", order, "a number of states, or auto", least=1)
    i = None if horizon is None else _whole("horizon", horizon, "a number of samples", least=1)
    share = None if held_out is None else _share(held_out)
    checked_word("refine", refine, ("auto", "yes", "no"))
    draws = _whole("bootstrap", bootstrap or str(0 if plot is None else DRAWS), "a number of draws")
    drawn_from = _whole("seed", seed, "a whole number from 0 on")
    check_places({"plot": plot, "output": output})

    from netctrl.ident.identify import identify as from_signals
    from netctrl.model.signals import read_signals

    signals = read_signals(file, _names(inputs), _names(outputs), segments=segments)
    result = from_signals(
        signals,
        desired,
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
    return say(result.model.to_json() if json else report(*result.table()))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _whole(argument: str, text: str, takes: str, least: int = 0) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < least:
        raise InvalidValue(argument, text, takes)
    return int(text)


def _share(text: str) -> float:
    if not re.fullmatch(r"0?\.[0-9]*[1-9][0-9]*", text):
        raise InvalidValue("held_out", text, "a share of the trace above 0 and below 1, as in 0.3")
    return float(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)
