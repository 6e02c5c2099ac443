"""`export ns3` of a network under fluctuating demands."""

from __future__ import annotations

import re
from collections.abc import Callable
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
from netctrl.cli.export.common import OPTIONS, check_table, keep, machine, say_what_is_next, written
from netctrl.errors import InvalidValue

if TYPE_CHECKING:
    from netctrl.ns3.program import Ns3
    from netctrl.scenario.network.result import NetworkResult
    from netctrl.scenario.network.scenario import NetworkScenario

__all__ = ["NetworkJob", "export_network", "read_packet_size"]


class NetworkJob(NamedTuple):
    """What a command line asks of a network."""

    chosen: NetworkScenario
    scenario: str
    design: str | None
    output: str
    runs: range
    n_jobs: int
    packet_size: int
    sampled_delays: bool


def export_network(job: NetworkJob, run_it: bool, json: bool, result: str | None, plot: str | None) -> int:
    """Write program and tables; with --run compile, run and report."""
    from netctrl.cli.simulate import refused, summary_json, table_file

    picture = checked_plot(plot, result)
    check_table(result)
    check_places({"plot": plot, "result": result})
    ns3 = machine(run_it)
    try:
        folder, names, run = _written_network(job)
    except InvalidValue as error:
        if error.argument in OPTIONS:
            raise
        raise refused(error, job.scenario, job.design) from None
    if ns3 is None:
        return say_what_is_next(job.chosen.name, folder, names, json, " 0")
    outcome = run(ns3)
    keep(outcome, plot, picture, result, lambda: table_file(outcome, Path(result or "").suffix.lower()))
    return say(summary_json(outcome) if json else report(*outcome.table()))


def read_packet_size(text: str) -> int:
    """As `--packet-size` has it [byte]."""
    if not re.fullmatch("[1-9][0-9]{2,4}", text) or int(text) > 65000:
        raise InvalidValue("packet_size", text, "a whole number of bytes from 100 to 65000")
    return int(text)


def _written_network(job: NetworkJob) -> tuple[Path, list[str], Callable[[Ns3], NetworkResult]]:
    """The folder, the names of the files in it, and what compiles and runs them."""
    from netctrl.cli.simulate import inputs_of
    from netctrl.design.hftrac.scenario_law import scenario_law
    from netctrl.model.design.design import provenance
    from netctrl.model.io.files import write_atomically
    from netctrl.ns3.network.read import run_links, table_name
    from netctrl.ns3.network.render import render
    from netctrl.ns3.program import compile_program
    from netctrl.sim.network.plan import link_plan, run_tables

    chosen = job.chosen
    plan = link_plan(chosen, scenario_law(chosen))
    inputs = inputs_of(job.scenario, job.design)
    origin = provenance(argv=invocation(), seed=chosen.seed, inputs=inputs, libraries=("numpy", "scipy"))
    options = {"packet_size": job.packet_size, "sampled_delays": job.sampled_delays}
    files = render(chosen, plan, provenance=origin, **options)
    tables = run_tables(chosen, plan, job.runs)
    folder = written(job.output, files)
    for number, table in zip(job.runs, tables, strict=True):
        write_atomically(folder / table_name(number), table)

    def go(ns3: Ns3) -> NetworkResult:
        compile_program(folder, ns3)
        with progress_bar(f"ns-{ns3.version}") as progress:
            return run_links(
                folder, chosen, plan, job.runs, ns3=ns3, provenance=origin, n_jobs=job.n_jobs, progress=progress
            )

    return folder, [*files, *map(table_name, job.runs)], go
