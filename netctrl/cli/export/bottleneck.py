"""`export ns3` of flows through a bottleneck, paced by a Design of pacing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from netctrl.cli.app import invocation
from netctrl.cli.export.common import OPTIONS, Output, Program, check_table, export_program, of_file, table_of
from netctrl.errors import FileError, InvalidValue

if TYPE_CHECKING:
    from netctrl.model.design.design import PacingDesign
    from netctrl.scenario.bottleneck.scenario import BottleneckScenario

__all__ = ["PacingJob", "export_pacing", "is_bottleneck", "pacing_design"]


class PacingJob(NamedTuple):
    """What a command line asks of a bottleneck; a scenario, a Design or both."""

    law: PacingDesign | None
    scenario: str | None
    design: str | None
    seed: int | None


def export_pacing(job: PacingJob, to: Output) -> int:
    """Write the program; with --run compile, run and report."""
    check_table(to, undrawn="for a bottleneck")
    return export_program(to, lambda: _program(job, to))


def _program(job: PacingJob, to: Output) -> Program:
    from netctrl.cli.simulate import inputs_of
    from netctrl.model.design.design import provenance
    from netctrl.ns3.bottleneck.read import run_bottleneck
    from netctrl.ns3.bottleneck.render import render

    scenario = _chosen(job)
    origin = provenance(argv=invocation(), seed=scenario.seed, inputs=inputs_of(job.scenario, job.design))
    with of_file(job.scenario or job.design, *OPTIONS):
        files = render(scenario, None if job.law is None else job.law.law, design=job.law, provenance=origin)
    return Program(
        scenario.name,
        files,
        tables={},
        arguments=f" {scenario.seed}",
        run=lambda folder, ns3, progress: run_bottleneck(
            folder, scenario, ns3=ns3, provenance=origin, progress=progress
        ),
        table=lambda found, _: found.table(),
        content=lambda found, _: {
            "scenario": found.scenario,
            "simulator": found.simulator,
            "summary": found.summary(),
            "provenance": found.provenance,
        },
        kept=table_of(to),
    )


def pacing_design(path: str | None) -> PacingDesign | None:
    """A Design file of pacing; None for any other, or none."""
    from netctrl.model.design.design import PacingDesign, read_design

    design = None if path is None else read_design(path)
    return design if isinstance(design, PacingDesign) else None


def is_bottleneck(scenario: str | None) -> bool:
    """Whether a scenario's file is one of flows through a bottleneck."""
    from netctrl.datasets import scenario_path
    from netctrl.model.io.toml import read_toml

    return scenario is not None and "bottleneck" in read_toml(scenario_path(scenario))


def _chosen(job: PacingJob) -> BottleneckScenario:
    """The scenario's file, or the bottleneck of the Design's certificate; with another seed."""
    import msgspec

    from netctrl.datasets import scenario_path
    from netctrl.scenario.bottleneck.scenario import design_bottleneck, read_bottleneck_scenario

    if job.law is None and job.design is not None:
        raise FileError(job.design, "isn't a Design of pacing, which a scenario with a bottleneck takes")
    if job.scenario is not None:
        if not is_bottleneck(job.scenario):
            raise InvalidValue("scenario", job.scenario, "one with a bottleneck, for a Design of pacing")
        found = read_bottleneck_scenario(scenario_path(job.scenario))
    elif job.law is not None:
        requested = job.law.inputs
        found = design_bottleneck(requested.bottleneck_bit_per_s, requested.rtt_s, requested.packet_size_bytes)
    else:
        raise InvalidValue("scenario", None, "a TOML file with a bottleneck, or give a Design of pacing")
    return found if job.seed is None else msgspec.structs.replace(found, seed=job.seed)
