"""The ns3 engine: a program for stock ns-3 with its scenario, compiled and run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from netctrl.core.errors import InvalidValue
from netctrl.engines.case import Case, has_runs, kind_of, link_rate_law
from netctrl.engines.engine import Job, Kind, OwnEngine
from netctrl.laws.aqm.records import QUEUES
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.rate.records import sender_name
from netctrl.model.design.design import ArcDesign, ConnetDesign, LinkDesign, MpcDesign, PacingDesign
from netctrl.ns3.network.control import law_files
from netctrl.ns3.program import LINK_LAW, Ns3, compile_program, find_ns3, table_name
from netctrl.ns3.tcp_aqm.senders import sender_lack
from netctrl.scenario.fabric.design import design_gains
from netctrl.scenario.fabric.topology import TOPOLOGIES
from netctrl.scenario.links import Links
from netctrl.scenario.network.decided import DecidedRates
from netctrl.scenario.network.track import Track, gated_groups, without_rates
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.lacks import flow_only, packet_only, trace_alone
from netctrl.scenario.tcp_aqm.offers import Web


class Program(NamedTuple):
    """A program with its scenario."""

    files: Mapping[str, str | bytes]
    """Name -> content, including tables of runs."""
    argument: str
    """Argument after the folder on its command line; may be empty."""
    run: Callable[[Path, Ns3, Callable[[float], None] | None], Any]
    """Function of (folder, ns-3, progress) that returns the result of the compiled program."""


def _queues(case: Case, job: Job) -> Program:
    from netctrl.ns3.tcp_aqm.read import run_program
    from netctrl.ns3.tcp_aqm.render import render
    from netctrl.scenario.network.tracking import track_plan
    from netctrl.sim.fluid.traffic import draw_flows
    from netctrl.sim.network.flow_links import flow_links
    from netctrl.sim.packet.run import gate_draws

    if case.scenario.under_demands:
        return _network(case, job)
    scenario, made = case.scenario, job.provenance(case.scenario, "numpy")
    design = case.design if isinstance(case.design, ArcDesign | PacingDesign | ConnetDesign) else None
    plan = track_plan(scenario, case.design) if isinstance(scenario.control, Track) else None
    links = flow_links(scenario, case.design if isinstance(case.design, LinkDesign) else None)
    gates = gate_draws(scenario) if gated_groups(scenario) else {}
    draws = draw_flows(scenario, merged=False)
    files = render(scenario, draws, design=design, plan=plan, links=links, gates=gates, provenance=made)
    if links is not None and isinstance(links.plan.law, DecidedRates):
        from netctrl.design.mpc.design import law_in_c

        files |= law_files(law_in_c(links.plan.law.read(), LINK_LAW))
    return Program(
        files,
        "",
        lambda folder, ns3, progress: run_program(
            folder, scenario, plan=plan, ns3=ns3, provenance=made, progress=progress
        ),
    )


def _queues_lack(case: Case) -> str | None:
    if case.scenario.under_demands:
        return _network_lacks(case.scenario)
    for group in case.scenario.flows:
        lack = sender_lack(group)
        if lack is not None:
            return f"{lack} (flows.{group.id})"
    if isinstance(case.design, MpcDesign) and isinstance(case.scenario.control, Track):
        return "rates of flows that an MPC Design sets"
    found = packet_only(without_rates(case.scenario), DualPi2Queue, traces=trace_alone(case.scenario))
    return None if found is None else f"{found[1]} ({found[0]})"


def _network_lacks(scenario: Scenario) -> str | None:
    for link in scenario.links:
        if not isinstance(link.queue, QUEUES):
            return f"queues of kind {link.queue.__struct_config__.tag} under demands (links.{link.id}.queue)"
    for flow in scenario.flows:
        if flow.answered and flow.sender not in ("reno", "cubic", "vegas"):
            return f"{sender_name(flow.sender)} in the place of demands (flows.{flow.id})"
        if flow.answered and (found := flow_only(flow)) is not None:
            return f"{found[1]} ({found[0]})"
        if isinstance(flow.offers, Web):
            return f"Web sessions in the place of demands (flows.{flow.id}.offers)"
    return None


def _network(case: Case, job: Job) -> Program:
    from netctrl.ns3.network.read import run_links
    from netctrl.ns3.network.render import render
    from netctrl.sim.network.plan import link_plan, run_tables

    scenario, made, runs = case.scenario, job.provenance(case.scenario, "numpy", "scipy"), job.numbers
    plan = link_plan(scenario, link_rate_law(case), sampled_delays=bool(job.options.get("sampled_delays")))
    tables = {table_name(run): table for run, table in zip(runs, run_tables(scenario, plan, runs), strict=True)}
    return Program(
        {**render(scenario, plan, provenance=made, **job.options), **tables},
        str(job.first_run),
        lambda folder, ns3, progress: run_links(
            folder,
            scenario,
            plan,
            runs,
            ns3=ns3,
            provenance=made,
            n_jobs=job.n_jobs,
            watch=job.watch,
            progress=progress,
        ),
    )


def _fabric(case: Case, job: Job) -> Program:
    from netctrl.ns3.fabric.read import run_fabric
    from netctrl.ns3.fabric.render import render, run_table
    from netctrl.sim.packet.fabric import fabric_plan

    scenario, made = case.scenario, job.provenance(case.scenario)
    plan = fabric_plan(scenario, None if case.design is None else design_gains(case.design.law))
    files = render(scenario, plan, design=case.design, provenance=made)
    return Program(
        {**files, table_name(scenario.seed): run_table(scenario, plan)},
        str(scenario.seed),
        lambda folder, ns3, progress: run_fabric(folder, scenario, plan, ns3=ns3, provenance=made, progress=progress),
    )


_PROGRAMS: dict[type, Callable[[Case, Job], Program]] = {Links: _queues, **dict.fromkeys(TOPOLOGIES, _fabric)}


def program(case: Case, job: Job) -> Program:
    """The files of a program for a case, with the function that runs it.

    Raises
    ------
    InvalidValue
        A feature that ns-3's programs lack, or a value that they can't represent.
    """
    lack = NS3.lacks(case)
    if lack is not None:
        raise InvalidValue("scenario", f"{case.scenario.name}, of which ns-3 has no {lack}", "features of its programs")
    if not has_runs(case.scenario):
        job.once(case.scenario)
    return _PROGRAMS[kind_of(case.scenario)](case, job)


def _run(case: Case, job: Job) -> Any:
    ns3 = find_ns3()
    made = program(case, job)
    with tempfile.TemporaryDirectory(prefix="netctrl-ns3-") as name:
        folder = Path(name)
        for file, content in made.files.items():
            (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
        compile_program(folder, ns3)
        return made.run(folder, ns3, job.progress)


_LACKS = {Links: _queues_lack}
NS3 = OwnEngine("ns3", {kind: Kind(_run, _LACKS[kind]) if kind in _LACKS else Kind(_run) for kind in _PROGRAMS})
