"""`netctrl excite`: an input with which to record a trace for `netctrl identify`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from netctrl.cli.app import check_files, new_app, run, say, write_all
from netctrl.cli.options import TIME, kind, option, ranged, whole
from netctrl.core.errors import checked_word
from netctrl.core.units import parse_count, parse_rate

_RANGE_TAKES = "lowest and highest rate, as in 5Mbit:90Mbit"
_RANGE = ranged("RANGE", lambda text: parse_rate(text, zero=True), _RANGE_TAKES)
_SAMPLES, _SEED = whole("N", "a number of samples", least=4), whole("N", "a whole number of at least 0")
_HOLD = kind("N", parse_count, "a number of samples of at least 1")

app = new_app("netctrl excite", "Makes an input that excites a link, for a trace to identify.")


@app.default
def excite(
    *,
    limits: Annotated[Any, _RANGE(_RANGE_TAKES, "--range")],
    interval_s: Annotated[float, TIME("of a sample: long against the time of a queue's packets", default="1s")] = 1.0,
    samples: Annotated[int, _SAMPLES("number of samples", default="600")] = 600,
    hold: Annotated[float, _HOLD("mean samples at a level: about the settling time", default="3")] = 3.0,
    levels: Annotated[str, option("WHICH", "many, which show a curve, or two, for a line")] = "many",
    seed: Annotated[int, _SEED("seed of the levels", default="1")] = 1,
    output: Annotated[str | None, option("FILE", "write the table there", "-o", "--output")] = None,
) -> int:
    """Prints a table of times and rates R [Mbit/s]: send each rate from its time on, and record the outputs beside it.

    Examples
    --------
    netctrl excite --range 5Mbit:90Mbit -o levels.csv
    netctrl excite --range 5Mbit:90Mbit --levels two --hold 5 --samples 1000
    """
    checked_word("levels", levels, ("many", "two"))
    check_files({"output": output})
    import numpy as np

    from netctrl.ident.excite import gbn, random_levels

    make = random_levels if levels == "many" else gbn
    rates = make(samples, [end / 1e6 for end in limits], np.random.default_rng(seed), hold=hold)[:, 0]
    rows = [f"{k * interval_s:.9g},{rate:.6g}" for k, rate in enumerate(rates)]
    text = "\n".join(["time_s,R", *rows, ""])
    write_all({"output": (output, text.encode)})
    if output is None:
        return say(text)
    return say(
        f"written to {output}: send {samples} rates, one each {interval_s:g} s, and record the outputs beside them\n"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv)
