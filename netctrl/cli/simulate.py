"""`netctrl simulate SCENARIO`: runs a scenario in an engine; gives a table, JSON, a result's file or a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import (
    check_files,
    invocation,
    new_app,
    picture,
    progress_bar,
    report,
    report_file,
    run,
    say,
    write_all,
)
from netctrl.cli.cases import RUNS, SEED, References, ScenarioName, inputs_of, read_case, refused, with_references
from netctrl.cli.options import ENDINGS, JOBS, PLOT_SUFFIXES, Report, option, positional
from netctrl.core.errors import JOBS_TAKES, InvalidValue
from netctrl.core.names import EngineName

if TYPE_CHECKING:
    from netctrl.engines.case import Case

RESULT_SUFFIXES = (".npz", ".csv", ".parquet", ".qlog")
_RUNS, _SEEDS = 20, 5

app = new_app("netctrl simulate", "Runs a scenario, with the law of a Design file if given.")


@app.default
def simulate(
    scenario: Annotated[
        ScenarioName | None,
        positional(
            "SCENARIO",
            "a TOML file, or the name of a scenario that comes with netctrl; by default the plant of --design",
        ),
    ] = None,
    /,
    *,
    design: Annotated[str | None, option("FILE", "a Design of any method, whose law controls the scenario")] = None,
    engine: Annotated[
        str | EngineName | None,
        option("NAME", "fluid, packet, ns3 or kernel; by default the first but kernel that can"),
    ] = None,
    compare: Annotated[
        str | EngineName | None,
        option("A,B", f"compare engines in one table, as in fluid,packet,ns3, with --runs seeds each ({_SEEDS})"),
    ] = None,
    seed: Annotated[
        int | None, SEED("a whole number from 0 to 4294967295, the seed in place of the scenario's")
    ] = None,
    runs: Annotated[int | None, RUNS(f"number of runs of a network's scenario, for 95 % intervals ({_RUNS})")] = None,
    n_jobs: Annotated[int | None, JOBS(f"for several runs: {JOBS_TAKES}")] = None,
    pcap: Annotated[
        str | None, option("FOLDER", "with --engine kernel: save what each link transmits, LINK.pcap")
    ] = None,
    tracking: References | None = None,
    json: Annotated[bool, option("", "print scenario and figures as one JSON object and nothing else")] = False,
    output: Annotated[
        str | None,
        option("FILE", "save the result's table (.csv, .parquet), windows (.qlog) or all (.npz)", "--output", "-o"),
    ] = None,
    plot: Annotated[str | None, option("FILE", f"save a picture ({', '.join(PLOT_SUFFIXES)})")] = None,
    page: Report = None,
) -> int:
    """Reads the scenario, runs it and writes the requested files.

    Examples
    --------
    netctrl simulate arc-staircase-bulk
    netctrl simulate arc-staircase-bulk --compare fluid,packet --runs 2
    """
    if compare is not None and any(each is not None for each in (plot, engine, output, pcap)):
        raise InvalidValue("compare", compare, "no --engine, --plot, --pcap or -o: it prints one table")
    files = {"output": output, "plot": plot, "report": page}
    check_files(files, design, endings=ENDINGS | {"output": RESULT_SUFFIXES})
    case = with_references(read_case(scenario, design, seed), tracking)
    from netctrl.engines.case import has_runs

    inputs, several = inputs_of(scenario, design), has_runs(case.scenario)
    if compare is not None:
        return _compare(case, inputs, compare.split(","), runs or _SEEDS, json=json, page=page)
    for name, value in (("runs", runs), ("n_jobs", n_jobs)):
        if value is not None and not several:
            raise InvalidValue(name, value, "a value only for a network's scenario or with --compare")
    from netctrl.engines.engine import engine_for, simulate

    chosen: Any = engine_for(case, engine or "auto").name
    options: dict[str, Any] = {"runs": runs or (_RUNS if several and chosen == "fluid" else 1), "n_jobs": n_jobs or 1}
    try:
        with progress_bar("simulating") as progress:
            result = simulate(case, chosen, **options, pcap=pcap, progress=progress, argv=invocation(), inputs=inputs)
    except InvalidValue as error:
        raise refused(error, scenario, design) from None
    write_all(
        {"plot": picture(result.plot, plot), "output": result_file(result, output), "report": report_file(result, page)}
    )
    return say(json_text(result) if json else shown(result))


def _compare(case: Case, inputs: list[Path], engines: list[str], seeds: int, *, json: bool, page: str | None) -> int:
    from netctrl.engines.compare import compare

    names: list[Any] = [name.strip() for name in engines]
    with progress_bar("simulating") as progress:
        found = compare(case, names, seeds=seeds, progress=progress, argv=invocation(), inputs=inputs)
    write_all({"report": report_file(found, page)})
    if not json:
        return say(shown(found))
    content = {"scenario": case.scenario, "seeds": found.seeds, "rows": found.rows, "provenance": found.provenance}
    return say(_indented(content))


def result_file(result: Any, path: str | None) -> tuple[str | None, Callable[[], bytes]]:
    """A file for `write_all` of a result's table as .csv or .parquet, all of it as .npz, or its windows as .qlog."""

    def content() -> bytes:
        from netctrl.scenario.result_file import qlog

        suffix = Path(str(path)).suffix.lower()
        if suffix == ".npz":
            return result.to_bytes()
        if suffix == ".qlog":
            return qlog(result)
        frame = result.to_pandas()
        return frame.to_csv(index=False).encode() if suffix == ".csv" else frame.to_parquet(index=False)

    return path, content


def json_text(result: Any, **more: Any) -> str:
    """Scenario, engine, figures and provenance as one JSON object."""
    content = {"scenario": result.scenario, "simulator": result.simulator, "summary": result.summary()}
    if isinstance(getattr(result, "span", None), tuple):
        content["span"] = result.span
    return _indented(content | more | {"provenance": result.provenance})


def shown(result: Any) -> str:
    """A result's verdict, if it has one, and its table."""
    verdict = getattr(result, "verdict", None)
    return ("" if verdict is None else f"{verdict}\n") + report(*result.table())


def _indented(content: dict[str, Any]) -> str:
    import msgspec

    text = msgspec.json.encode(content, enc_hook=lambda array: array.tolist())  # a link's trace
    return msgspec.json.format(text, indent=2).decode() + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv)
