"""`export ns3` of TCP flows through queues."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from netctrl.cli.app import (
    check_places,
    checked_plot,
    invocation,
    progress_bar,
    report,
    say,
)
from netctrl.cli.export.common import keep, machine, say_what_is_next, written
from netctrl.errors import FileError, InvalidValue

if TYPE_CHECKING:
    from netctrl.model.design.design import ArcDesign
    from netctrl.ns3.program import Ns3
    from netctrl.scenario.tcp_aqm.result import SimulationResult
    from netctrl.scenario.tcp_aqm.scenario import Scenario

__all__ = ["QueuesJob", "export_queues"]


class QueuesJob(NamedTuple):
    """What a command line asks of queues."""

    chosen: Scenario
    scenario: str | None
    design: str | None
    output: str


def export_queues(job: QueuesJob, run_it: bool, json: bool, result: str | None, plot: str | None) -> int:
    """Write the program; with --run compile, run and report."""
    from netctrl.cli.simulate import inputs_of

    picture, chosen = checked_plot(plot, result), job.chosen
    check_places({"plot": plot, "result": result})
    ns3, law = machine(run_it), _design(job.design)
    try:
        files = _rendered(chosen, law, inputs_of(job.scenario, job.design))
    except InvalidValue as error:  # of a key of the scenario, not of an option
        raise FileError(job.scenario or job.design or "", str(error)) from None
    folder = written(job.output, files)
    if ns3 is None:
        return say_what_is_next(chosen.name, folder, list(files), json)
    outcome = _run(folder, chosen, ns3, inputs_of(job.scenario, job.design))
    keep(outcome, plot, picture, result, lambda: outcome.to_json().encode())
    return say(_json(outcome, law) if json else report(*_table(outcome, law)))


def _design(path: str | None) -> ArcDesign | None:
    from netctrl.model.design.design import read_arc_design

    return None if path is None else read_arc_design(path)


def _rendered(scenario: Scenario, design: ArcDesign | None, inputs: list[Path]) -> dict[str, str]:
    from netctrl.model.design.design import provenance
    from netctrl.ns3.tcp_aqm.render import render
    from netctrl.sim.tcp_aqm.traffic import draw_flows

    origin = provenance(argv=invocation(), seed=scenario.seed, inputs=inputs)
    return render(scenario, draw_flows(scenario, merged=False), design=design, provenance=origin)


def _run(folder: Path, scenario: Scenario, ns3: Ns3, inputs: list[Path]) -> SimulationResult:
    from netctrl.model.design.design import provenance
    from netctrl.ns3.program import compile_program
    from netctrl.ns3.tcp_aqm.read import run_program

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
    from netctrl.laws.aqm.arc import ArcQueue

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
