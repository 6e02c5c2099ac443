"""`export ns3` of TCP flows through queues."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from netctrl.cli.app import invocation
from netctrl.cli.export.common import Output, Program, export_program, of_file

if TYPE_CHECKING:
    from netctrl.model.design.design import ArcDesign
    from netctrl.scenario.tcp_aqm.result import SimulationResult
    from netctrl.scenario.tcp_aqm.scenario import Scenario

__all__ = ["QueuesJob", "export_queues"]


class QueuesJob(NamedTuple):
    """What a command line asks of queues."""

    chosen: Scenario
    scenario: str | None
    design: str | None


def export_queues(job: QueuesJob, to: Output) -> int:
    """Write the program; with --run compile, run and report."""
    return export_program(to, lambda: _program(job))


def _program(job: QueuesJob) -> Program:
    from netctrl.cli.simulate import inputs_of
    from netctrl.model.design.design import provenance, read_arc_design
    from netctrl.ns3.tcp_aqm.read import run_program
    from netctrl.ns3.tcp_aqm.render import render
    from netctrl.sim.tcp_aqm.traffic import draw_flows

    chosen, law = job.chosen, None if job.design is None else read_arc_design(job.design)
    inputs = inputs_of(job.scenario, job.design)
    made = partial(provenance, argv=invocation(), seed=chosen.seed, inputs=inputs)
    with of_file(job.scenario or job.design):  # of a key of the scenario, not of an option
        files = render(chosen, draw_flows(chosen, merged=False), design=law, provenance=made())
    origin = made(libraries=("numpy",))
    return Program(
        chosen.name,
        files,
        tables={},
        arguments="",
        run=lambda folder, ns3, progress: run_program(folder, chosen, ns3=ns3, provenance=origin, progress=progress),
        table=lambda found, _: _table(found, law),
        content=lambda found, _: {
            "scenario": found.scenario,
            "summary": found.summary(),
            "target_utilization": {name: target for name, target, _ in _targets(found, law)},
            "provenance": found.provenance,
        },
        kept=lambda found: found.to_json().encode(),
    )


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
