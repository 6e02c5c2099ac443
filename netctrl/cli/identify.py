"""`netctrl identify TRACE`: a model of a measured trace as a table, JSON, model file or picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from netctrl.cli.app import check_files, invocation, new_app, picture, report, run, say, waiting, write_all
from netctrl.cli.cases import TraceName
from netctrl.cli.options import PLOT_SUFFIXES, TIME, Kind, given, kind, option, positional, whole
from netctrl.core.errors import InvalidValue, checked_word
from netctrl.core.names import Focus, IdentMethod

METHODS = "auto, n4sid, moesp, cva, pbsid, sippy-n4sid, sippy-moesp, sippy-cva or sippy-parsim-k"
_WHOLE = whole("N", "a number of states, or auto", least=1)
_ORDER = Kind("N", lambda text: text if text == "auto" else _WHOLE.read(text))
_HORIZON = whole("N", "a number of samples", least=1)
_SEED = whole("N", "a whole number of at least 0")


def _share(text: str) -> float:
    if not re.fullmatch(r"0?\.[0-9]*[1-9][0-9]*", text):
        raise ValueError
    return float(text)


_SHARE = kind("SHARE", _share, "a share of the trace above 0 and below 1, as in 0.3")
_COLUMNS = Kind("COLUMNS", lambda text: [name.strip() for name in text.split(",")])

app = new_app("netctrl identify", "Identifies a linear state-space model of measured inputs and outputs.")


@app.default
def identify(
    trace: Annotated[
        TraceName,
        positional(
            "TRACE",
            "a table with times and a column for each signal, as text or .parquet, or the name of a bundled trace",
        ),
    ],
    /,
    *more: Annotated[str, positional("TRACE", "further experiments with the same signals")],
    inputs: Annotated[Any, _COLUMNS("columns of the inputs, as in R or R1,R2")],
    outputs: Annotated[Any, _COLUMNS("columns of the outputs, as in delay,jitter")],
    order: Annotated[
        Any, _ORDER("number of states; auto: those that explain parts left out best", default="auto")
    ] = None,
    method: Annotated[str | IdentMethod | None, option("NAME", METHODS, default="auto")] = None,
    focus: Annotated[
        str | Focus | None, option("WHAT", "what auto compares: simulation, prediction, or both", default="both")
    ] = None,
    horizon: Annotated[
        int | None, _HORIZON("past samples that predict the future, more than the order (20, or less)")
    ] = None,
    segments: Annotated[
        str | None, option("COLUMN", "column whose change begins a new segment; time may jump there")
    ] = None,
    time: Annotated[str | None, option("COLUMN", "column of the times (time_s, or a usual name such as t_ms)")] = None,
    interval_s: Annotated[float | None, TIME("sampling interval of a table without times")] = None,
    bin_s: Annotated[float | None, TIME("average over bins of this width, for times that aren't evenly spaced")] = None,
    held_out: Annotated[float | None, _SHARE("share of the trace, at its end, kept for validation, as in 0.3")] = None,
    refine: Annotated[
        str, option("WHEN", "minimise a named method's error too: yes, no, auto (if that helps on parts left out)")
    ] = "auto",
    curve: Annotated[
        bool,
        option("", "the curve of the one input too, which is to take 8 levels or more (netctrl excite makes them)"),
    ] = False,
    no_feedthrough: Annotated[bool, option("", "D = 0", "--no-feedthrough")] = False,
    seed: Annotated[int | None, _SEED("seed of the draws of models that the trace allows", default="0")] = None,
    json: Annotated[bool, option("", "print the model as one JSON object and nothing else")] = False,
    output: Annotated[str | None, option("FILE", "save the model as JSON", "-o", "--output")] = None,
    plot: Annotated[
        str | None, option("FILE", f"draw fit, singular values and poles: {', '.join(PLOT_SUFFIXES)}")
    ] = None,
) -> int:
    """The model is x+ = A x + B u + K e, y = C x + D u + e: stable, in deviations from the means, in the trace's units.

    Examples
    --------
    netctrl identify connet-link --inputs R --outputs delay --held-out 0.3 -o model.json --plot fit.png
    netctrl identify levels.csv --inputs R --outputs delay --curve -o model.json
    """
    asked = given(
        {"order": order, "method": method, "focus": focus, "horizon": horizon, "held_out": held_out, "seed": seed}
    )
    from netctrl.model.datasets import trace_path

    paths = [trace_path(name) for name in (trace, *more)]
    checked_word("refine", refine, ("auto", "yes", "no"))
    check_files({"output": output, "plot": plot}, *paths)

    from netctrl.ident.identify import identify as from_signals

    reading: dict[str, Any] = {"segments": segments, "time": time, "interval_s": interval_s, "bin_s": bin_s}
    if curve:
        from netctrl.ident.curve import identify_curve
        from netctrl.ident.data.signals import signals_of

        unused = {key: asked[key] for key in ("focus", "held_out") if key in asked}
        unused |= {"refine": refine} if refine != "auto" else {}
        unused |= {"no_feedthrough": "given"} if no_feedthrough else {}
        if unused:
            raise InvalidValue(*next(iter(unused.items())), "not given beside --curve")
        model = identify_curve(signals_of(paths, inputs=inputs, outputs=outputs, **reading), **asked)
        write_all({"plot": picture(model.plot, plot), "output": (output, lambda: model.to_json().encode())})
        return say(model.to_json() if json else f"{model}\n")
    result = from_signals(
        paths,
        inputs=inputs,
        outputs=outputs,
        **reading,
        **asked,
        feedthrough=False if no_feedthrough else "auto",
        refine="auto" if refine == "auto" else refine == "yes",
        argv=invocation(),
        files=paths,
    )
    write_all({"plot": picture(result.plot, plot), "output": (output, lambda: result.model.to_json().encode())})
    return say(result.model.to_json() if json else f"{result.verdict}\n{report(*result.table())}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    with waiting("identifying"):
        return run(app, argv)
