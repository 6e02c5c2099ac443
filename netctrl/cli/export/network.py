"""`export ns3` of a network under fluctuating demands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from netctrl.cli.app import invocation
from netctrl.cli.export.common import OPTIONS, Output, Program, check_table, export_program, table_of
from netctrl.errors import InvalidValue

if TYPE_CHECKING:
    from netctrl.scenario.network.scenario import NetworkScenario

__all__ = ["NetworkJob", "export_network", "read_packet_size"]


class NetworkJob(NamedTuple):
    """What a command line asks of a network."""

    chosen: NetworkScenario
    scenario: str
    design: str | None
    runs: range
    n_jobs: int
    packet_size: int
    sampled_delays: bool


def export_network(job: NetworkJob, to: Output) -> int:
    """Write program and tables; with --run compile, run and report."""
    from netctrl.cli.simulate import refused

    def made() -> Program:
        try:
            return _program(job, to)
        except InvalidValue as error:
            if error.argument in OPTIONS:
                raise
            raise refused(error, job.scenario, job.design) from None

    check_table(to)
    return export_program(to, made)


def read_packet_size(text: str) -> int:
    """As `--packet-size` has it [byte]."""
    if not re.fullmatch("[1-9][0-9]{2,4}", text) or int(text) > 65000:
        raise InvalidValue("packet_size", text, "a whole number of bytes from 100 to 65000")
    return int(text)


def _program(job: NetworkJob, to: Output) -> Program:
    from netctrl.cli.simulate import inputs_of
    from netctrl.design.hftrac.scenario_law import scenario_law
    from netctrl.model.design.design import provenance
    from netctrl.ns3.network.read import run_links, table_name
    from netctrl.ns3.network.render import render
    from netctrl.sim.network.plan import link_plan, run_tables

    chosen = job.chosen
    plan = link_plan(chosen, scenario_law(chosen))
    inputs = inputs_of(job.scenario, job.design)
    origin = provenance(argv=invocation(), seed=chosen.seed, inputs=inputs, libraries=("numpy", "scipy"))
    options = {"packet_size": job.packet_size, "sampled_delays": job.sampled_delays}
    return Program(
        chosen.name,
        files=render(chosen, plan, provenance=origin, **options),
        tables=dict(zip(map(table_name, job.runs), run_tables(chosen, plan, job.runs), strict=True)),
        arguments=" 0",
        run=lambda folder, ns3, progress: run_links(
            folder, chosen, plan, job.runs, ns3=ns3, provenance=origin, n_jobs=job.n_jobs, progress=progress
        ),
        table=lambda found, _: found.table(),
        content=lambda found, _: {
            "scenario": found.scenario,
            "summary": found.summary(),
            "provenance": found.provenance,
        },
        kept=table_of(to),
    )
