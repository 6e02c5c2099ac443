"""`export ns3` of a data centre under a law of its senders."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from netctrl.cli.app import invocation
from netctrl.cli.export.common import Output, Program, check_table, export_program, of_file, table_of
from netctrl.errors import InvalidValue

if TYPE_CHECKING:
    from netctrl.model.design.design import MpccDesign
    from netctrl.ns3.program import Ns3
    from netctrl.scenario.fabric.result import FabricResult
    from netctrl.scenario.fabric.scenario import FabricScenario

__all__ = ["FabricJob", "export_fabric", "mpcc_design"]


class FabricJob(NamedTuple):
    """What a command line asks of a data centre; a scenario, a Design or both."""

    given: FabricScenario | None
    law: MpccDesign | None
    scenario: str | None
    design: str | None
    seed: int | None


def export_fabric(job: FabricJob, to: Output) -> int:
    """Write program and flows; with --run compile, run and report."""
    check_table(to)
    return export_program(to, lambda: _program(job, to))


def _program(job: FabricJob, to: Output) -> Program:
    from netctrl.cli.simulate import inputs_of
    from netctrl.model.design.design import provenance
    from netctrl.ns3.fabric.read import run_fabric, table_name
    from netctrl.ns3.fabric.render import render
    from netctrl.scenario.fabric.design import design_gains
    from netctrl.sim.fabric.plan import fabric_plan, run_table

    chosen = _fabric_chosen(job)
    origin = provenance(argv=invocation(), seed=chosen.seed, inputs=inputs_of(job.scenario, job.design))
    with of_file(job.scenario or job.design):
        plan = fabric_plan(chosen, None if job.law is None else design_gains(job.law.law))
        files = render(chosen, plan, design=job.law, provenance=origin)
    return Program(
        chosen.name,
        files,
        tables={table_name(chosen.seed): run_table(chosen, plan)},
        arguments=f" {chosen.seed}",
        run=lambda folder, _, progress: run_fabric(folder, chosen, plan, provenance=origin, progress=progress),
        table=_table,
        content=lambda found, ns3: {
            "scenario": found.scenario,
            "simulator": f"ns-{ns3.version}",
            "summary": found.summary(),
            "provenance": found.provenance,
        },
        kept=table_of(to),
    )


def _table(result: FabricResult, ns3: Ns3) -> tuple[str, list[tuple[str, str]]]:
    title, rows = result.table()
    return title, [("simulator", f"ns-{ns3.version}"), *rows]


def mpcc_design(path: str | None) -> MpccDesign | None:
    """A Design file of mpcc; None for any other, or none."""
    from netctrl.model.design.design import MpccDesign, read_design

    design = None if path is None else read_design(path)
    return design if isinstance(design, MpccDesign) else None


def _fabric_chosen(job: FabricJob) -> FabricScenario:
    """The scenario, which has the Design's law, or the Design's plant."""
    import msgspec

    from netctrl.scenario.fabric.design import design_dumbbell

    if job.given is not None:
        return job.given
    if job.law is None or job.scenario is not None:
        takes = "a data centre's scenario, with a topology, for a Design of mpcc"
        raise InvalidValue("scenario", job.scenario, takes)
    with of_file(job.design):
        plant = design_dumbbell(job.law.law)
    return plant if job.seed is None else msgspec.structs.replace(plant, seed=job.seed)
