"""`python -m netctrl.export ns3 DESIGN -o DIR`: a Design and a scenario as a program for ns-3, run if asked.

TCP flows through queues (`netctrl.Scenario`), a network under fluctuating demands (`netctrl.NetworkScenario`), an
access link under a Design of connet (`netctrl.FifoScenario`), or a data centre under MPCC or DCTCP
(`netctrl.FabricScenario`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from netctrl.cli import (
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
from netctrl.errors import JOBS_TAKES, FileError, InvalidValue

if TYPE_CHECKING:
    import numpy as np

    from netctrl.export.ns3_run import Ns3
    from netctrl.model.artifact import ArcDesign, ConnetDesign, MpccDesign, Provenance
    from netctrl.model.fabric_result import FabricResult
    from netctrl.model.fabric_scenario import FabricScenario
    from netctrl.model.network_result import NetworkResult
    from netctrl.model.network_scenario import NetworkScenario
    from netctrl.model.scenario import Scenario
    from netctrl.model.simulation import SimulationResult
    from netctrl.runtime.fabric_plan import FabricPlan
    from netctrl.runtime.fifo_plan import FifoTracking, Measured

__all__ = ["main"]

OPTIONS = {"scenario": "--scenario", "design": "DESIGN", "output": "-o", "n_jobs": "--n-jobs", "law": "DESIGN"}
_RUNS = "4"
_REFERENCE_TAKES = (
    "all outputs, as in delay=0.676,jitter=0.361; several with semicolons follow each other, as long each"
)

app = new_app("python -m netctrl.export", "Writes a Design as a program that others run.")


@app.command(
    help="ns-3: a C++ program with a Makefile that runs a scenario on stock ns-3 (3.37 of Debian, or PyPI's wheel ns3)."
)
def ns3(
    design: Annotated[
        str | None,
        positional(
            "DESIGN",
            "a Design file; its law goes to the links whose queue is arc or design, or sets rates of a network, or of "
            "an access link's regulators (connet), or windows in a data centre (mpcc); a file that ends in .toml is "
            "taken for the scenario",
        ),
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
    runs: Annotated[str | None, option("N", f"of a network's scenario, with 95 % intervals ({_RUNS})")] = None,
    n_jobs: Annotated[str | None, option("N", f"for many runs: {JOBS_TAKES}")] = None,
    packet_size: Annotated[
        str | None, option("BYTES", "of a network's scenario: each packet, with IP and UDP headers (1500)")
    ] = None,
    sampled_delays: Annotated[
        bool, option("", "of a network's scenario: delay data by whole intervals, as the fluid does")
    ] = False,
    reference: Annotated[str | None, option("VALUES", f"with a Design of connet: {_REFERENCE_TAKES}")] = None,
    measured: Annotated[
        str | None, option("WHAT", "with a Design of connet: average (over packets) or period (means over it)")
    ] = None,
    governor: Annotated[bool, option("", "with a Design of connet: cut references to what can be had")] = False,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
    result: Annotated[
        str | None,
        option("FILE", "save what --run gives there (.json; of a network, a link or a data centre .csv or .parquet)"),
    ] = None,
    plot: Annotated[str | None, option("FILE", f"draw what --run gives there ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """Read, render, write; with --run compile, run and report."""
    from netctrl.simulate.__main__ import (
        fabric_scenario_for,
        inputs_of,
        network_scenario_for,
        read_runs,
        read_seed,
        scenario_for,
    )

    if design is not None and design.endswith(".toml") and scenario is None:
        design, scenario = None, design
    picture = checked_plot(plot, result)
    for name, path in (("plot", plot), ("result", result)):
        if path is not None and not run_it:
            raise InvalidValue(name, path, "a file only with --run")
    network = network_scenario_for(scenario, design, seed)
    fabric = fabric_scenario_for(scenario, design, seed)
    loop = None if network is not None else _connet_design(design)
    windows = None if network is not None else _mpcc_design(design)
    of_connet = {"reference": reference, "measured": measured, "governor": governor or None}
    of_network = {"runs": runs, "n_jobs": n_jobs, "packet_size": packet_size, "sampled_delays": sampled_delays or None}
    _refuse({} if loop is not None else of_connet, "no value but with a Design of connet")
    _refuse({} if network is not None else of_network, "no value but for a network's scenario")
    if fabric is not None or windows is not None:
        centre = _FabricJob(fabric, windows, scenario, design, None if seed is None else read_seed(seed), output)
        return _export_fabric(centre, run_it, json, result, plot)
    if loop is not None and design is not None:
        asked = _FifoJob(loop, design, scenario, seed, output, reference, measured, governor)
        return _export_fifo(asked, run_it, json, result, plot)
    if network is not None and scenario is not None:
        job = _NetworkJob(
            chosen=network,
            scenario=scenario,
            design=design,
            output=output,
            runs=range(read_runs(runs or _RUNS)),
            n_jobs=read_jobs(n_jobs or "1"),
            packet_size=_packet_size(packet_size or "1500"),
            sampled_delays=sampled_delays,
        )
        return _export_network(job, run_it, json, result, plot)
    chosen = scenario_for(scenario, design, seed)
    check_places({"plot": plot, "result": result})
    ns3, law = _machine(run_it), _design(design)
    try:
        files = _rendered(chosen, law, inputs_of(scenario, design))
    except InvalidValue as error:  # of a key of the scenario, not of an option
        raise FileError(design if scenario is None else scenario, str(error)) from None
    folder = _written(output, files)
    if ns3 is None:
        return _say_what_is_next(chosen.name, folder, list(files), json)
    outcome = _run(folder, chosen, ns3, inputs_of(scenario, design))
    wanted: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if plot is not None and picture is not None:
        wanted["plot"] = plot, lambda: picture_file(outcome.plot(), picture)
    if result is not None:
        wanted["result"] = result, lambda: outcome.to_json().encode()
    write_all(wanted)
    return say(_json(outcome, law) if json else report(*_table(outcome, law)))


# --- a network under fluctuating demands -----------------------------------------------------------------------------


class _NetworkJob(NamedTuple):
    """What a command line asks of a network."""

    chosen: NetworkScenario
    scenario: str
    design: str | None
    output: str
    runs: range
    n_jobs: int
    packet_size: int
    sampled_delays: bool


def _packet_size(text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{2,4}", text) or int(text) > 65000:
        raise InvalidValue("packet_size", text, "a whole number of bytes from 100 to 65000")
    return int(text)


def _export_network(job: _NetworkJob, run_it: bool, json: bool, result: str | None, plot: str | None) -> int:
    """Write program and tables; with --run compile, run and report."""
    from netctrl.simulate.__main__ import TABLE_SUFFIXES, refused, summary_json, table_file

    picture = checked_plot(plot, result)
    if result is not None and Path(result).suffix.lower() not in TABLE_SUFFIXES:
        raise InvalidValue("result", result, f"a file name that ends in {' or '.join(TABLE_SUFFIXES)}")
    check_places({"plot": plot, "result": result})
    ns3 = _machine(run_it)
    try:
        folder, names, run = _written_network(job)
    except InvalidValue as error:
        if error.argument in OPTIONS:
            raise
        raise refused(error, job.scenario, job.design) from None
    if ns3 is None:
        return _say_what_is_next(job.chosen.name, folder, names, json, " 0")
    outcome = run(ns3)
    wanted: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if plot is not None and picture is not None:
        wanted["plot"] = plot, lambda: picture_file(outcome.plot(), picture)
    if result is not None:
        wanted["result"] = result, lambda: table_file(outcome, Path(result).suffix.lower())
    write_all(wanted)
    return say(summary_json(outcome) if json else report(*outcome.table()))


def _written_network(job: _NetworkJob) -> tuple[Path, list[str], Callable[[Ns3], NetworkResult]]:
    """The folder, the names of the files in it, and what compiles and runs them."""
    from netctrl.design.hftrac import scenario_law
    from netctrl.export.ns3_links import render
    from netctrl.export.ns3_links_run import run_links, table_name
    from netctrl.export.ns3_run import compile_program
    from netctrl.model.artifact import provenance
    from netctrl.model.files import write_atomically
    from netctrl.sim.link_plan import link_plan, run_tables
    from netctrl.simulate.__main__ import inputs_of

    chosen = job.chosen
    plan = link_plan(chosen, scenario_law(chosen))
    inputs = inputs_of(job.scenario, job.design)
    origin = provenance(argv=invocation(), seed=chosen.seed, inputs=inputs, libraries=("numpy", "scipy"))
    options = {"packet_size": job.packet_size, "sampled_delays": job.sampled_delays}
    files = render(chosen, plan, provenance=origin, **options)
    tables = run_tables(chosen, plan, job.runs)
    folder = _written(job.output, files)
    for number, table in zip(job.runs, tables, strict=True):
        write_atomically(folder / table_name(number), table)

    def go(ns3: Ns3) -> NetworkResult:
        compile_program(folder, ns3)
        with progress_bar(f"ns-{ns3.version}") as progress:
            return run_links(
                folder, chosen, plan, job.runs, ns3=ns3, provenance=origin, n_jobs=job.n_jobs, progress=progress
            )

    return folder, [*files, *map(table_name, job.runs)], go


# --- an access link under a Design of connet -------------------------------------------------------------------------


class _FifoJob(NamedTuple):
    """What a command line asks of a link."""

    loop: ConnetDesign
    design: str
    scenario: str | None
    seed: str | None
    output: str
    reference: str | None
    measured: str | None
    governor: bool


def _connet_design(path: str | None) -> ConnetDesign | None:
    from netctrl.model.artifact import ConnetDesign, read_design

    design = None if path is None else read_design(path)
    return design if isinstance(design, ConnetDesign) else None


def _export_fifo(job: _FifoJob, run_it: bool, json: bool, result: str | None, plot: str | None) -> int:
    """Write program and table; with --run compile, run and report."""
    from netctrl.export.ns3_fifo import render
    from netctrl.export.ns3_fifo_run import run_fifo, table_name
    from netctrl.export.ns3_run import compile_program
    from netctrl.model.artifact import provenance
    from netctrl.model.fifo_scenario import access_link
    from netctrl.model.files import write_atomically
    from netctrl.runtime.fifo_plan import fifo_plan
    from netctrl.runtime.governor import reference_governor
    from netctrl.sim.fifo_draws import run_table
    from netctrl.simulate.__main__ import TABLE_SUFFIXES, inputs_of, read_seed, table_file

    if plot is not None:
        raise InvalidValue("plot", plot, "no value with a Design of connet; --result keeps what can be drawn")
    if result is not None and Path(result).suffix.lower() not in TABLE_SUFFIXES:
        raise InvalidValue("result", result, f"a file name that ends in {' or '.join(TABLE_SUFFIXES)}")
    check_places({"result": result})
    ns3, law = _machine(run_it), job.loop.law
    path = None if job.scenario is None else _scenario_file(job.scenario)
    scenario = access_link(path, law.interval_s, None if job.seed is None else read_seed(job.seed))
    measured = _measured(job)
    origin = provenance(argv=invocation(), seed=scenario.seed, inputs=inputs_of(job.scenario, job.design))
    try:
        wanted = _references(job, scenario.periods)
        governor = reference_governor(law) if job.governor else None
        plan = fifo_plan(scenario, law, wanted, measured=measured, governor=governor)
        files = render(scenario, plan, design=job.loop, provenance=origin)
        table = run_table(scenario, plan)
    except InvalidValue as error:
        if error.argument in OPTIONS or error.argument in ("reference", "governor"):
            raise
        raise FileError(job.scenario or job.design, str(error)) from None
    folder = _written(job.output, files)
    write_atomically(folder / table_name(scenario.seed), table)
    if ns3 is None:
        names = [*files, table_name(scenario.seed)]
        return _say_what_is_next(scenario.name, folder, names, json, f" {scenario.seed}")
    compile_program(folder, ns3)
    with progress_bar(f"ns-{ns3.version}") as progress:
        run = run_fifo(folder, scenario, plan, ns3=ns3, provenance=origin, progress=progress)
    if result is not None:
        write_all({"result": (result, lambda: table_file(run.result, Path(result).suffix.lower()))})
    return say(_fifo_json(job, run) if json else report(*run.table(job.loop.law)))


def _measured(job: _FifoJob) -> Measured:
    """Means over periods have less noise; the published law takes moving averages."""
    match job.measured:
        case "period" | "average":
            return job.measured
        case None:
            return "period" if job.loop.inputs.law == "lqi" else "average"
    raise InvalidValue("measured", job.measured, "average or period")


def _scenario_file(name: str) -> Path:
    from netctrl.datasets import scenario_path

    return scenario_path(name)


def _references(job: _FifoJob, periods: int) -> np.ndarray:
    """What is asked for in each period: of the option, or of the Design."""
    import numpy as np

    outputs, given = job.loop.law.outputs, job.loop.inputs.references
    if job.reference is not None:
        try:
            found = [dict(part.split("=") for part in each.split(",")) for each in job.reference.split(";")]
            named = [{name.strip(): float(value) for name, value in each.items()} for each in found]
            given = tuple(tuple(each.pop(name) for name in outputs) for each in named)
        except (KeyError, ValueError):
            raise InvalidValue("reference", job.reference, f"{_REFERENCE_TAKES}; of {', '.join(outputs)}") from None
        if any(named):
            raise InvalidValue("reference", job.reference, f"outputs {', '.join(outputs)} and no others")
    if not 1 <= len(given) <= periods:
        raise InvalidValue("reference", job.reference, f"{_REFERENCE_TAKES}; the Design names none, or too many")
    return np.asarray(given)[np.arange(periods) * len(given) // periods]


def _fifo_json(job: _FifoJob, run: FifoTracking) -> str:
    import msgspec

    content = {
        "scenario": run.result.scenario,
        "simulator": run.result.simulator,
        "summary": run.result.summary(),
        "infeasible_s": run.infeasible(job.loop.law),
        "provenance": run.result.provenance,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


# --- a data centre under MPCC ----------------------------------------------------------------------------------------


class _FabricJob(NamedTuple):
    """What a command line asks of a data centre; a scenario, a Design or both."""

    given: FabricScenario | None
    law: MpccDesign | None
    scenario: str | None
    design: str | None
    seed: int | None
    output: str


def _mpcc_design(path: str | None) -> MpccDesign | None:
    from netctrl.model.artifact import MpccDesign, read_design

    design = None if path is None else read_design(path)
    return design if isinstance(design, MpccDesign) else None


def _export_fabric(job: _FabricJob, run_it: bool, json: bool, result: str | None, plot: str | None) -> int:
    """Write program and flows; with --run compile, run and report."""
    from netctrl.export.ns3_fabric_run import run_fabric, table_name
    from netctrl.export.ns3_run import compile_program
    from netctrl.model.artifact import provenance
    from netctrl.model.files import write_atomically
    from netctrl.sim.fabric_plan import run_table
    from netctrl.simulate.__main__ import TABLE_SUFFIXES, inputs_of, table_file

    picture = checked_plot(plot, result)
    if result is not None and Path(result).suffix.lower() not in TABLE_SUFFIXES:
        raise InvalidValue("result", result, f"a file name that ends in {' or '.join(TABLE_SUFFIXES)}")
    check_places({"plot": plot, "result": result})
    ns3 = _machine(run_it)
    chosen = _fabric_chosen(job)
    origin = provenance(argv=invocation(), seed=chosen.seed, inputs=inputs_of(job.scenario, job.design))
    try:
        plan, files = _fabric_files(chosen, job.law, origin)
    except InvalidValue as error:
        raise FileError(job.scenario or job.design or "", str(error)) from None
    folder = _written(job.output, files)
    write_atomically(folder / table_name(chosen.seed), run_table(chosen, plan))
    if ns3 is None:
        return _say_what_is_next(chosen.name, folder, [*files, table_name(chosen.seed)], json, f" {chosen.seed}")
    compile_program(folder, ns3)
    with progress_bar(f"ns-{ns3.version}") as progress:
        found = run_fabric(folder, chosen, plan, provenance=origin, progress=progress)
    wanted: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if plot is not None and picture is not None:
        wanted["plot"] = plot, lambda: picture_file(found.plot(), picture)
    if result is not None:
        wanted["result"] = result, lambda: table_file(found, Path(result).suffix.lower())
    write_all(wanted)
    title, rows = found.table()
    return say(_fabric_json(found, ns3) if json else report(title, [("simulator", f"ns-{ns3.version}"), *rows]))


def _fabric_json(result: FabricResult, ns3: Ns3) -> str:
    import msgspec

    content = {
        "scenario": result.scenario,
        "simulator": f"ns-{ns3.version}",
        "summary": result.summary(),
        "provenance": result.provenance,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _fabric_chosen(job: _FabricJob) -> FabricScenario:
    """The scenario, which has the Design's law, or the Design's plant."""
    import msgspec

    from netctrl.model.fabric_design import design_dumbbell

    if job.given is not None:
        return job.given
    if job.law is None or job.scenario is not None:
        takes = "a data centre's scenario, with a topology, for a Design of mpcc"
        raise InvalidValue("scenario", job.scenario, takes)
    try:
        plant = design_dumbbell(job.law.law)
    except InvalidValue as error:
        raise FileError(job.design or "", str(error)) from None
    return plant if job.seed is None else msgspec.structs.replace(plant, seed=job.seed)


def _fabric_files(
    chosen: FabricScenario, law: MpccDesign | None, origin: Provenance
) -> tuple[FabricPlan, dict[str, str]]:
    from netctrl.export.ns3_fabric import render
    from netctrl.model.fabric_design import design_gains
    from netctrl.sim.fabric_plan import fabric_plan

    plan = fabric_plan(chosen, None if law is None else design_gains(law.law))
    return plan, render(chosen, plan, design=law, provenance=origin)


# --- TCP flows through queues ----------------------------------------------------------------------------------------


def _refuse(given: Mapping[str, object], takes: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise InvalidValue(name, value, takes)


def _say_what_is_next(name: str, folder: Path, files: list[str], json: bool, run: str = "") -> int:
    """Of a program that was only written; `run` is what follows the folder on its command line."""
    import msgspec

    if json:
        return say(msgspec.json.encode({"folder": str(folder), "files": files}).decode() + "\n")
    then = ("then", f"make -C {_quoted(folder)} && {_quoted(folder / 'scenario')} {_quoted(folder)}{run}")
    return say(report(f"{name}: a program for ns-3 in {folder}", [("files", ", ".join(files)), then]))


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
