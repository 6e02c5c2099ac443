"""`export ns3` of a data centre under a law of its senders."""

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
from netctrl.cli.export.common import check_table, keep, machine, say_what_is_next, written
from netctrl.errors import FileError, InvalidValue

if TYPE_CHECKING:
    from netctrl.model.design.design import MpccDesign, Provenance
    from netctrl.ns3.program import Ns3
    from netctrl.scenario.fabric.plan import FabricPlan
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
    output: str


def export_fabric(job: FabricJob, run_it: bool, json: bool, result: str | None, plot: str | None) -> int:
    """Write program and flows; with --run compile, run and report."""
    from netctrl.cli.simulate import inputs_of, table_file
    from netctrl.model.design.design import provenance
    from netctrl.model.io.files import write_atomically
    from netctrl.ns3.fabric.read import run_fabric, table_name
    from netctrl.ns3.program import compile_program
    from netctrl.sim.fabric.plan import run_table

    picture = checked_plot(plot, result)
    check_table(result)
    check_places({"plot": plot, "result": result})
    ns3 = machine(run_it)
    chosen = _fabric_chosen(job)
    origin = provenance(argv=invocation(), seed=chosen.seed, inputs=inputs_of(job.scenario, job.design))
    try:
        plan, files = _fabric_files(chosen, job.law, origin)
    except InvalidValue as error:
        raise FileError(job.scenario or job.design or "", str(error)) from None
    folder = written(job.output, files)
    write_atomically(folder / table_name(chosen.seed), run_table(chosen, plan))
    if ns3 is None:
        return say_what_is_next(chosen.name, folder, [*files, table_name(chosen.seed)], json, f" {chosen.seed}")
    compile_program(folder, ns3)
    with progress_bar(f"ns-{ns3.version}") as progress:
        found = run_fabric(folder, chosen, plan, provenance=origin, progress=progress)
    keep(found, plot, picture, result, lambda: table_file(found, Path(result or "").suffix.lower()))
    title, rows = found.table()
    return say(_fabric_json(found, ns3) if json else report(title, [("simulator", f"ns-{ns3.version}"), *rows]))


def mpcc_design(path: str | None) -> MpccDesign | None:
    """A Design file of mpcc; None for any other, or none."""
    from netctrl.model.design.design import MpccDesign, read_design

    design = None if path is None else read_design(path)
    return design if isinstance(design, MpccDesign) else None


def _fabric_json(result: FabricResult, ns3: Ns3) -> str:
    import msgspec

    content = {
        "scenario": result.scenario,
        "simulator": f"ns-{ns3.version}",
        "summary": result.summary(),
        "provenance": result.provenance,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _fabric_chosen(job: FabricJob) -> FabricScenario:
    """The scenario, which has the Design's law, or the Design's plant."""
    import msgspec

    from netctrl.scenario.fabric.design import design_dumbbell

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
    from netctrl.ns3.fabric.render import render
    from netctrl.scenario.fabric.design import design_gains
    from netctrl.sim.fabric.plan import fabric_plan

    plan = fabric_plan(chosen, None if law is None else design_gains(law.law))
    return plan, render(chosen, plan, design=law, provenance=origin)
