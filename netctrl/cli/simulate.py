"""`python -m netctrl.simulate SCENARIO`: a scenario in an engine, as a table, JSON, a result's file and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import (
    PLOT_SUFFIXES,
    check_places,
    checked_plot,
    invocation,
    new_app,
    option,
    picture_file,
    positional,
    progress_bar,
    read_jobs,
    report,
    run,
    say,
    write_all,
)
from netctrl.cli.cases import REFERENCE_TAKES, inputs_of, read_case, read_runs, refused, with_references
from netctrl.errors import JOBS_TAKES, InvalidValue

if TYPE_CHECKING:
    from netctrl.engines.case import Case
    from netctrl.engines.engine import Engine

__all__ = ["checked_files", "json_text", "main", "result_file"]

OPTIONS = {"scenario": "SCENARIO", "output": "-o", "n_jobs": "--n-jobs"}
TABLE_SUFFIXES = (".csv", ".parquet")
_RUNS, _SEEDS = "20", "5"

app = new_app("python -m netctrl.simulate", "Runs a scenario, with the law of a Design file if given.")


@app.default
def simulate(
    scenario: Annotated[
        str | None,
        positional(
            "SCENARIO",
            "a TOML file, or the name of a scenario that comes with netctrl; without one, the plant of --design",
        ),
    ] = None,
    /,
    *,
    design: Annotated[str | None, option("FILE", "a Design of any method, whose law is in force")] = None,
    engine: Annotated[str | None, option("NAME", "fluid, packet or ns3; else the first that has what it takes")] = None,
    compare: Annotated[
        str | None,
        option("A,B", f"run in these engines, --runs seeds each ({_SEEDS}), print one table; as in fluid,packet,ns3"),
    ] = None,
    seed: Annotated[str | None, option("N", "a whole number from 0 to 4294967295, instead of the scenario's")] = None,
    runs: Annotated[str | None, option("N", f"of a network's scenario, with 95 % intervals ({_RUNS})")] = None,
    n_jobs: Annotated[str | None, option("N", f"for many runs: {JOBS_TAKES}")] = None,
    reference: Annotated[str | None, option("VALUES", f"with a Design of connet: {REFERENCE_TAKES}")] = None,
    measured: Annotated[
        str | None, option("WHAT", "with a Design of connet: average (over packets) or period (means over it)")
    ] = None,
    governor: Annotated[bool, option("", "with a Design of connet: cut references to what can be had")] = False,
    json: Annotated[bool, option("", "print scenario and summary as one JSON object and nothing else")] = False,
    output: Annotated[
        str | None,
        option(
            "FILE", "a file for the result's table (.csv, .parquet), of queues for all of it (.json)", "--output", "-o"
        ),
    ] = None,
    plot: Annotated[str | None, option("FILE", f"a file for a picture ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """Read the scenario, run it, write what was asked for."""
    if compare is not None and (plot is not None or engine is not None or output is not None):
        raise InvalidValue("compare", compare, "no --engine, --plot and -o: it prints a table")
    if output is not None and design is not None and Path(output).resolve() == Path(design).resolve():
        raise InvalidValue("output", output, "another file than --design")
    case = with_references(read_case(scenario, design, seed), reference, measured, governor)
    inputs, several = inputs_of(scenario, design), hasattr(case.scenario, "policy")
    if compare is not None:
        return _compare(case, inputs, compare.split(","), read_runs(runs or _SEEDS), json=json)
    for name, value in (("runs", runs), ("n_jobs", n_jobs)):
        if value is not None and not several:
            raise InvalidValue(name, value, "no value but for a network's scenario, or with --compare")
    picture = checked_files(case, plot, "output", output)
    check_places({"plot": plot, "output": output})
    chosen = _engine(case, engine)
    jobs = read_jobs(n_jobs or "1")
    count = read_runs(runs or (_RUNS if several and chosen.name == "fluid" else "1"))
    try:
        result = _run(case, chosen, inputs, count, jobs)
    except InvalidValue as error:
        raise refused(error, scenario, design) from None
    files: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if plot is not None and picture is not None:
        files["plot"] = plot, lambda: picture_file(result.plot(), picture)
    if output is not None:
        files["output"] = output, lambda: result_file(result, Path(output).suffix.lower())
    write_all(files)
    return say(json_text(result) if json else report(*result.table()))


def _engine(case: Case, name: str | None) -> Engine:
    from netctrl.engines.engine import engine_for

    return engine_for(case, name or "auto")


def _run(case: Case, engine: Engine, inputs: list[Path], runs: int, n_jobs: int) -> Any:
    from netctrl.engines.engine import simulate

    with progress_bar("simulating") as progress:
        return simulate(
            case, engine.name, runs=runs, n_jobs=n_jobs, progress=progress, argv=invocation(), inputs=inputs
        )


def _compare(case: Case, inputs: list[Path], engines: list[str], seeds: int, *, json: bool) -> int:
    from netctrl.engines.compare import compare

    names = [name.strip() for name in engines]
    with progress_bar("simulating") as progress:
        found = compare(case, names, seeds=seeds, progress=progress, argv=invocation(), inputs=inputs)
    if not json:
        return say(report(*found.table()))
    content = {"scenario": case.scenario, "seeds": found.seeds, "rows": found.rows, "provenance": found.provenance}
    return say(_indented(content))


def checked_files(case: Case, plot: str | None, name: str, output: str | None) -> str | None:
    """The kind of picture that --plot names; InvalidValue for a picture or, of the option `name`, a file that a result
    of the case can't give."""
    from netctrl.engines.case import kind_of
    from netctrl.register import FIGURES

    kind = type(case.scenario).__name__
    made = "SimulationResult" if kind == "Scenario" else kind.replace("Scenario", "Result")
    suffixes = (".json", *TABLE_SUFFIXES) if made == "SimulationResult" else TABLE_SUFFIXES
    if output is not None and Path(output).suffix.lower() not in suffixes:
        raise InvalidValue(name, output, f"a file name that ends in {' or '.join(suffixes)}")
    picture = checked_plot(plot, output)
    if plot is not None and made not in FIGURES:
        takes = f"no value with {kind_of(case.scenario)}, which has no picture; its table can be kept"
        raise InvalidValue("plot", plot, takes)
    return picture


def result_file(result: Any, suffix: str) -> bytes:
    """A result's table as .csv or .parquet, or all of it as .json."""
    if suffix == ".json":
        return result.to_json().encode()
    frame = result.to_pandas()
    return frame.to_csv(index=False).encode() if suffix == ".csv" else frame.to_parquet(index=False)


def json_text(result: Any, **more: Any) -> str:
    """Scenario, simulator, summary and provenance as one JSON object."""
    content = {"scenario": result.scenario, "simulator": result.simulator, "summary": result.summary()}
    return _indented(content | more | {"provenance": result.provenance})


def _indented(content: dict[str, Any]) -> str:
    import msgspec

    text = msgspec.json.encode(content, enc_hook=lambda array: array.tolist())  # of a link's trace
    return msgspec.json.format(text, indent=2).decode() + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)
