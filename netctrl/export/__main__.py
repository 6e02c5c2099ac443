"""`python -m netctrl.export ns3 DESIGN -o DIR`: a Design and a scenario as a program for ns-3, run if asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from netctrl.cli import (
    PLOT_SUFFIXES,
    check_places,
    checked_plot,
    invocation,
    new_app,
    option,
    positional,
    progress_bar,
    report,
    run,
    say,
    write_all,
)
from netctrl.errors import FileError, InvalidValue

if TYPE_CHECKING:
    from netctrl.export.ns3_run import Ns3
    from netctrl.model.artifact import ArcDesign
    from netctrl.model.scenario import Scenario
    from netctrl.model.simulation import SimulationResult

__all__ = ["main"]

OPTIONS = {"scenario": "--scenario", "design": "DESIGN", "output": "-o"}

app = new_app("python -m netctrl.export", "Writes a Design as a program that others run.")


@app.command(
    help="ns-3: a C++ program with a Makefile that runs a scenario on stock ns-3 (3.37 of Debian, or PyPI's wheel ns3)."
)
def ns3(
    design: Annotated[
        str | None, positional("DESIGN", "a Design file; its law goes to the links whose queue is arc or design")
    ] = None,
    /,
    *,
    output: Annotated[
        str, option("DIR", "write the program there: a new or empty folder, or an earlier export", "--output", "-o")
    ],
    scenario: Annotated[
        str | None,
        option("FILE", "a TOML file, or the name of a scenario that comes with netctrl; else the plant of DESIGN"),
    ] = None,
    run_it: Annotated[bool, option("", "compile and run it, print what came out", "--run")] = False,
    seed: Annotated[str | None, option("N", "instead of the scenario's: a whole number from 0 to 4294967295")] = None,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
    result: Annotated[str | None, option("FILE", "save what --run gives there (.json)")] = None,
    plot: Annotated[str | None, option("FILE", f"draw what --run gives there ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """Read, render, write; with --run compile, run and report."""
    import msgspec

    from netctrl.simulate.__main__ import inputs_of, picture_of, scenario_for

    picture = checked_plot(plot, result)
    for name, path in (("plot", plot), ("result", result)):
        if path is not None and not run_it:
            raise InvalidValue(name, path, "a file only with --run")
    chosen = scenario_for(scenario, design, seed)
    check_places({"plot": plot, "result": result})
    ns3, law = _machine(run_it), _design(design)
    try:
        files = _rendered(chosen, law, inputs_of(scenario, design))
    except InvalidValue as error:  # of a key of the scenario, not of an option
        raise FileError(design if scenario is None else scenario, str(error)) from None
    folder = _written(output, files)
    if ns3 is None:
        if json:
            return say(msgspec.json.encode({"folder": str(folder), "files": list(files)}).decode() + "\n")
        then = ("then", f"make -C {_quoted(folder)} && {_quoted(folder / 'scenario')} {_quoted(folder)}")
        return say(report(f"{chosen.name}: a program for ns-3 in {folder}", [("files", ", ".join(files)), then]))
    outcome = _run(folder, chosen, ns3, inputs_of(scenario, design))
    wanted: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if plot is not None and picture is not None:
        wanted["plot"] = plot, lambda: picture_of(outcome, picture)
    if result is not None:
        wanted["result"] = result, lambda: outcome.to_json().encode()
    write_all(wanted)
    return say(_json(outcome, law) if json else report(*_table(outcome, law)))


def _machine(run_it: bool) -> Ns3 | None:
    """What compiles the program; found before anything is written."""
    from netctrl.export.ns3_run import find_ns3

    return find_ns3() if run_it else None


def _design(path: str | None) -> ArcDesign | None:
    from netctrl.model.artifact import read_arc_design

    return None if path is None else read_arc_design(path)


def _rendered(scenario: Scenario, design: ArcDesign | None, inputs: list[Path]) -> dict[str, str]:
    from netctrl.export.ns3 import render
    from netctrl.model.artifact import provenance
    from netctrl.sim.traffic import draw_flows

    origin = provenance(argv=invocation(), seed=scenario.seed, inputs=inputs)
    return render(scenario, draw_flows(scenario, merged=False), design=design, provenance=origin)


def _written(output: str, files: dict[str, str]) -> Path:
    """The folder with the files in it, made if need be; only an empty one or an earlier export is written over."""
    from netctrl.export.ns3 import MARKER
    from netctrl.model.files import write_atomically

    folder = Path(output)
    mark = folder / "gains.h"
    try:
        if not folder.exists():
            folder.mkdir()
        elif any(folder.iterdir()) and not (mark.is_file() and mark.read_bytes().startswith(f"{MARKER}\n".encode())):
            raise InvalidValue("output", output, "a folder that is new, empty or an earlier export")
    except OSError as error:
        raise InvalidValue("output", output, f"a folder that can be written (here: {error.strerror})") from None
    for name, text in files.items():
        write_atomically(folder / name, text.encode())
    return folder


def _run(folder: Path, scenario: Scenario, ns3: Ns3, inputs: list[Path]) -> SimulationResult:
    from netctrl.export.ns3_run import compile_program, run_program
    from netctrl.model.artifact import provenance

    compile_program(folder, ns3)
    origin = provenance(argv=invocation(), seed=scenario.seed, inputs=inputs, libraries=("numpy",))
    with progress_bar(f"ns-{ns3.version}") as progress:
        return run_program(folder, scenario, ns3=ns3, provenance=origin, progress=progress)


def _table(result: SimulationResult, design: ArcDesign | None) -> tuple[str, list[tuple[str, str]]]:
    title, rows = result.table()
    return title, rows + [
        ("target", f"utilization {target:.4f} by the Design; {name} is {(reached - target) * 100.0:+.1f} points off")
        for name, target, reached in _targets(result, design)
    ]


def _targets(result: SimulationResult, design: ArcDesign | None) -> list[tuple[str, float, float]]:
    """Link, utilization that its ARC aims at and what it reached, where a Design's law stands."""
    from netctrl.model.queue import ArcQueue

    summary = result.summary()
    return [
        (link.id, link.queue.target_utilization, came.utilization)
        for link, came in zip(result.scenario.links, summary.links, strict=True)
        if design is not None and isinstance(link.queue, ArcQueue)
    ]


def _json(result: SimulationResult, design: ArcDesign | None) -> str:
    import msgspec

    targets = {name: target for name, target, _ in _targets(result, design)}
    content = {
        "scenario": result.scenario,
        "summary": result.summary(),
        "target_utilization": targets,
        "provenance": result.provenance,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
