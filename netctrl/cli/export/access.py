"""`export ns3` of an access link under a Design of connet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from netctrl.cli.app import (
    check_places,
    invocation,
    progress_bar,
    report,
    say,
    write_all,
)
from netctrl.cli.export.common import OPTIONS, check_table, machine, say_what_is_next, written
from netctrl.errors import FileError, InvalidValue

if TYPE_CHECKING:
    import numpy as np

    from netctrl.model.design.design import ConnetDesign
    from netctrl.scenario.access.plan import AccessLinkTracking, Measured

__all__ = ["REFERENCE_TAKES", "AccessLinkJob", "connet_design", "export_access_link"]

REFERENCE_TAKES = "all outputs, as in delay=0.676,jitter=0.361; several with semicolons follow each other, as long each"


class AccessLinkJob(NamedTuple):
    """What a command line asks of a link."""

    loop: ConnetDesign
    design: str
    scenario: str | None
    seed: str | None
    output: str
    reference: str | None
    measured: str | None
    governor: bool


def export_access_link(job: AccessLinkJob, run_it: bool, json: bool, result: str | None, plot: str | None) -> int:
    """Write program and table; with --run compile, run and report."""
    from netctrl.cli.simulate import inputs_of, read_seed, table_file
    from netctrl.laws.tracking.reference_governor import reference_governor
    from netctrl.model.design.design import provenance
    from netctrl.model.io.files import write_atomically
    from netctrl.ns3.access.read import run_access_link, table_name
    from netctrl.ns3.access.render import render
    from netctrl.ns3.program import compile_program
    from netctrl.scenario.access.plan import access_link_plan
    from netctrl.scenario.access.scenario import access_link
    from netctrl.sim.access.draws import run_table

    if plot is not None:
        raise InvalidValue("plot", plot, "no value with a Design of connet; --result keeps what can be drawn")
    check_table(result)
    check_places({"result": result})
    ns3, law = machine(run_it), job.loop.law
    path = None if job.scenario is None else _scenario_file(job.scenario)
    scenario = access_link(path, law.interval_s, None if job.seed is None else read_seed(job.seed))
    measured = _measured(job)
    origin = provenance(argv=invocation(), seed=scenario.seed, inputs=inputs_of(job.scenario, job.design))
    try:
        desired = _references(job, scenario.periods)
        governor = reference_governor(law) if job.governor else None
        plan = access_link_plan(scenario, law, desired, measured=measured, governor=governor)
        files = render(scenario, plan, design=job.loop, provenance=origin)
        table = run_table(scenario, plan)
    except InvalidValue as error:
        if error.argument in OPTIONS or error.argument in ("reference", "governor"):
            raise
        raise FileError(job.scenario or job.design, str(error)) from None
    folder = written(job.output, files)
    write_atomically(folder / table_name(scenario.seed), table)
    if ns3 is None:
        names = [*files, table_name(scenario.seed)]
        return say_what_is_next(scenario.name, folder, names, json, f" {scenario.seed}")
    compile_program(folder, ns3)
    with progress_bar(f"ns-{ns3.version}") as progress:
        run = run_access_link(folder, scenario, plan, ns3=ns3, provenance=origin, progress=progress)
    if result is not None:
        write_all({"result": (result, lambda: table_file(run.result, Path(result).suffix.lower()))})
    return say(_access_link_json(job, run) if json else report(*run.table(job.loop.law)))


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


def _access_link_json(job: AccessLinkJob, run: AccessLinkTracking) -> str:
    import msgspec

    content = {
        "scenario": run.result.scenario,
        "simulator": run.result.simulator,
        "summary": run.result.summary(),
        "infeasible_s": run.infeasible(job.loop.law),
        "provenance": run.result.provenance,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"
