"""`export ns3` of an access link under a Design of connet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from netctrl.cli.app import invocation
from netctrl.cli.export.common import OPTIONS, Output, Program, check_table, export_program, of_file, table_of
from netctrl.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np

    from netctrl.model.design.design import ConnetDesign
    from netctrl.scenario.access.plan import Measured

__all__ = ["REFERENCE_TAKES", "AccessLinkJob", "connet_design", "export_access_link"]

REFERENCE_TAKES = "all outputs, as in delay=0.676,jitter=0.361; several with semicolons follow each other, as long each"


class AccessLinkJob(NamedTuple):
    """What a command line asks of a link."""

    loop: ConnetDesign
    design: str
    scenario: str | None
    seed: str | None
    reference: str | None
    measured: str | None
    governor: bool


def export_access_link(job: AccessLinkJob, to: Output) -> int:
    """Write program and table; with --run compile, run and report."""
    check_table(to, undrawn="with a Design of connet")
    return export_program(to, lambda: _program(job, to))


def _program(job: AccessLinkJob, to: Output) -> Program:
    from netctrl.cli.simulate import inputs_of, read_seed
    from netctrl.laws.tracking.reference_governor import reference_governor
    from netctrl.model.design.design import provenance
    from netctrl.ns3.access.read import run_access_link, table_name
    from netctrl.ns3.access.render import render
    from netctrl.scenario.access.plan import access_link_plan
    from netctrl.scenario.access.scenario import access_link
    from netctrl.sim.access.draws import run_table

    law = job.loop.law
    path = None if job.scenario is None else _scenario_file(job.scenario)
    scenario = access_link(path, law.interval_s, None if job.seed is None else read_seed(job.seed))
    measured = _measured(job)
    origin = provenance(argv=invocation(), seed=scenario.seed, inputs=inputs_of(job.scenario, job.design))
    with of_file(job.scenario or job.design, *OPTIONS, "reference", "governor"):
        desired = _references(job, scenario.periods)
        governor = reference_governor(law) if job.governor else None
        plan = access_link_plan(scenario, law, desired, measured=measured, governor=governor)
        files = render(scenario, plan, design=job.loop, provenance=origin)
        table = run_table(scenario, plan)
    kept = table_of(to)
    return Program(
        scenario.name,
        files,
        tables={table_name(scenario.seed): table},
        arguments=f" {scenario.seed}",
        run=lambda folder, ns3, progress: run_access_link(
            folder, scenario, plan, ns3=ns3, provenance=origin, progress=progress
        ),
        table=lambda run, _: run.table(law),
        content=lambda run, _: {
            "scenario": run.result.scenario,
            "simulator": run.result.simulator,
            "summary": run.result.summary(),
            "infeasible_s": run.infeasible(law),
            "provenance": run.result.provenance,
        },
        kept=lambda run: kept(run.result),
    )


def connet_design(path: str | None) -> ConnetDesign | None:
    """A Design file of connet; None for any other, or none."""
    from netctrl.model.design.design import ConnetDesign, read_design

    design = None if path is None else read_design(path)
    return design if isinstance(design, ConnetDesign) else None


def _measured(job: AccessLinkJob) -> Measured:
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


def _references(job: AccessLinkJob, periods: int) -> np.ndarray:
    """What is asked for in each period: of the option, or of the Design."""
    import numpy as np

    outputs, given = job.loop.law.outputs, job.loop.inputs.references
    if job.reference is not None:
        try:
            found = [dict(part.split("=") for part in each.split(",")) for each in job.reference.split(";")]
            named = [{name.strip(): float(value) for name, value in each.items()} for each in found]
            given = tuple(tuple(each.pop(name) for name in outputs) for each in named)
        except (KeyError, ValueError):
            raise InvalidValue("reference", job.reference, f"{REFERENCE_TAKES}; of {', '.join(outputs)}") from None
        if any(named):
            raise InvalidValue("reference", job.reference, f"outputs {', '.join(outputs)} and no others")
    if not 1 <= len(given) <= periods:
        raise InvalidValue("reference", job.reference, f"{REFERENCE_TAKES}; the Design names none, or too many")
    return np.asarray(given)[np.arange(periods) * len(given) // periods]
