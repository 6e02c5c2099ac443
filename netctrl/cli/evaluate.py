"""`netctrl evaluate LAW`: an AQM by RFC 7928's scenarios, a congestion control by RFC 9743's, in one report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import check_files, invocation, new_app, progress_bar, report, report_file, run, say, write_all
from netctrl.cli.options import JOBS, SET, SET_TAKES, Kind, Report, option, positional, whole
from netctrl.core.names import EvaluatedName, EvaluationEngine

if TYPE_CHECKING:
    from netctrl.evaluation.case import Entry

_SEEDS_TAKES = "a number of independent runs of each case, from 1"


_SEEDS = whole("N", _SEEDS_TAKES, least=1)
_SECTIONS = Kind("SECTIONS", lambda text: [part.strip() for part in text.split(",")])

app = new_app("netctrl evaluate", "Evaluates an AQM by RFC 7928, or a congestion control by RFC 9743, with intervals.")


@app.default
def evaluate(
    law: Annotated[
        str | EvaluatedName, positional("LAW", "name of a queue or sender (pie, cubic, ...), or a Design file")
    ],
    /,
    *,
    seeds: Annotated[int | None, _SEEDS(f"{_SEEDS_TAKES} (10; 3 with --quick or another engine)")] = None,
    engine: Annotated[str | EvaluationEngine, option("NAME", "packet, ns3 or kernel")] = "packet",
    only: Annotated[Any, _SECTIONS("sections to run, as in 8.2,9.1 (all)")] = None,
    parameters: Annotated[Any, SET(f"parameters of the law: {SET_TAKES}", "--set")] = None,
    quick: Annotated[bool, option("", "shorten all times of the cases to 0.3")] = False,
    n_jobs: Annotated[
        int, JOBS("number of runs at a time, -1: one for each core", "--workers", "--n-jobs", default="-1")
    ] = -1,
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
    check_files({"output": output, "report": page})

    if list:
        from netctrl.evaluation.run import sections_of
        from netctrl.evaluation.subject import subject_of

        subject = subject_of(law, parameters or {})
        return say(_listed(subject.name, sections_of(subject, only)))

    from netctrl.evaluation.run import evaluate

    options: dict[str, Any] = {"engine": engine, "seeds": seeds, "only": only, "quick": quick, "n_jobs": n_jobs}
    files = [Path(law)] if law.endswith(".json") else []
    with progress_bar("evaluating") as progress:
        found = evaluate(
            law, parameters=parameters or {}, **options, progress=progress, argv=invocation(), inputs=files
        )
    write_all({"output": (output, lambda: found.to_json().encode()), "report": report_file(found, page)})
    return say(found.to_json() if json else report(*found.table()))


def _listed(law: str, entries: Sequence[Entry]) -> str:
    """Sections and cases of a law's list, as a table."""
    rows = []
    for entry in entries:
        reason = entry.reason_for(law)
        text = f"not run: {reason}" if reason else f"metrics: {', '.join(entry.metrics)}" if entry.metrics else ""
        rows.append((f"{entry.section} {entry.title}", text))
        cases = () if reason else entry.cases
        each = ["each parameter halved and doubled"] if entry.varied else []
        for case in cases:
            rows.append((f"  {case.name}", "; ".join([f"{case.duration:g} s", *each, *filter(None, [case.note])])))
    return report(f"{law}: sections and cases", rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv)
