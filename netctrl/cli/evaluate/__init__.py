"""`netctrl evaluate LAW`: an AQM by RFC 7928's scenarios, a congestion control by RFC 9743's, in one report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from netctrl.cli.app import (
    Report,
    check_places,
    check_report,
    invocation,
    new_app,
    option,
    positional,
    progress_bar,
    read_jobs,
    read_whole,
    report,
    run,
    say,
    write_all,
)
from netctrl.cli.evaluate.arguments import SET_TAKES, listed, read_parameters

__all__ = ["main"]

OPTIONS = {"law": "LAW", "parameters": "--set", "n_jobs": "--workers", "output": "-o"}
_SEEDS_TAKES = "a number of independent runs of each case, from 1"

app = new_app("netctrl evaluate", "Evaluates an AQM by RFC 7928, or a congestion control by RFC 9743, with intervals.")


@app.default
def evaluate(
    law: Annotated[str, positional("LAW", "name of a queue or sender (pie, cubic, ...), target-rtt, or a Design file")],
    /,
    *,
    seeds: Annotated[str | None, option("N", f"{_SEEDS_TAKES} (10; 3 with --quick or another engine)")] = None,
    engine: Annotated[str, option("NAME", "packet, ns3 or kernel")] = "packet",
    only: Annotated[str | None, option("SECTIONS", "sections to run, as in 8.2,9.1 (all)")] = None,
    set: Annotated[str | None, option("VALUES", f"parameters of the law: {SET_TAKES}")] = None,
    quick: Annotated[bool, option("", "shorten all times of the cases to 0.3")] = False,
    workers: Annotated[
        str, option("N", "number of runs at a time, -1: one for each core", "--workers", "--n-jobs")
    ] = "-1",
    list: Annotated[bool, option("", "list the law's sections and cases, and run nothing")] = False,
    output: Annotated[str | None, option("FILE", "save the evaluation as JSON", "--output", "-o")] = None,
    json: Annotated[bool, option("", "print the evaluation as one JSON object and nothing else")] = False,
    page: Report = None,
) -> int:
    """Runs all cases with the law and with a reference (drop-tail, or Cubic), and writes the requested files.

    Examples
    --------
    netctrl evaluate pie --quick --report pie.html
    netctrl evaluate bbr --only 5.1 --quick
    """
    jobs = read_jobs(workers)
    count = None if seeds is None else read_whole("seeds", seeds, _SEEDS_TAKES, least=1)
    sections = None if only is None else [part.strip() for part in only.split(",")]
    given = read_parameters(set)
    check_report(page, output=output)
    check_places({"output": output, "report": page})

    if list:
        from netctrl.evaluation.run import sections_of
        from netctrl.evaluation.subject import subject_of

        subject = subject_of(law, given)
        return say(listed(subject.name, sections_of(subject, sections)))

    from netctrl.evaluation.run import evaluate

    options: dict[str, Any] = {"engine": engine, "seeds": count, "only": sections, "quick": quick, "n_jobs": jobs}
    files = [Path(law)] if law.endswith(".json") else []
    with progress_bar("evaluating") as progress:
        found = evaluate(law, parameters=given, **options, progress=progress, argv=invocation(), inputs=files)
    desired: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if output is not None:
        desired["output"] = output, lambda: found.to_json().encode()
    if page is not None:
        from netctrl.model.io.display import page as made

        desired["report"] = page, lambda: made(found)
    write_all(desired)
    return say(found.to_json() if json else report(*found.table()))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)
