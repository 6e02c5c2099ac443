"""The kernel engine: the real Linux kernel in virtual time, without privilege."""

from __future__ import annotations

import msgspec

from netctrl.core.errors import InvalidValue
from netctrl.engines.case import Case, link_rate_law
from netctrl.engines.engine import Job, Kind, OwnEngine
from netctrl.kernel.scenarios.lacks import machine_lacks, network_lacks, scenario_lacks
from netctrl.model.design.design import LinkDesign
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.links import Links
from netctrl.scenario.network.track import Track, gated_groups
from netctrl.scenario.result import Result


def _provenance(case: Case, job: Job, *others: str) -> Provenance:
    """Provenance with the kernel, and with what compiled it, on which its random numbers depend."""
    from netctrl.kernel.build import chosen_kernel, toolchain

    made = job.provenance(case.scenario, "numpy", *others)
    return msgspec.structs.replace(made, libraries=made.libraries | toolchain(chosen_kernel()))


def _queues(case: Case, job: Job) -> Result:
    from netctrl.kernel.scenarios.run import run_scenario
    from netctrl.scenario.network.tracking import track_plan
    from netctrl.sim.fluid.traffic import draw_flows
    from netctrl.sim.network.demand_draws import draw_demands
    from netctrl.sim.network.flow_links import flow_links
    from netctrl.sim.packet.run import gate_draws

    if case.scenario.under_demands:
        return _network(case, job)
    job.once(case.scenario)
    made = _provenance(case, job)
    draws = draw_flows(case.scenario, merged=False)
    demands = draw_demands(case.scenario)
    scenario = case.scenario
    control = flow_links(scenario, case.design if isinstance(case.design, LinkDesign) else None)
    track = track_plan(scenario, case.design) if isinstance(scenario.control, Track) else None
    gates = gate_draws(scenario) if gated_groups(scenario) else {}
    pcap = job.options.get("pcap")
    result = run_scenario(scenario, draws, made, demands=demands, control=control, track=track, gates=gates, pcap=pcap)
    if job.progress is not None:
        job.progress(1.0)
    return result


def _network(case: Case, job: Job) -> Result:
    from netctrl.kernel.scenarios.run import run_network
    from netctrl.sim.fluid.traffic import draw_flows
    from netctrl.sim.network.plan import link_plan, run_draws

    if job.options.get("pcap") is not None:
        raise InvalidValue(
            "pcap", str(job.options["pcap"]), "nothing for a network under demands, which runs many times"
        )
    if job.options.get("sampled_delays"):
        raise InvalidValue("sampled_delays", True, "false: the kernel has the links' delays")
    scenario, runs, plan = case.scenario, job.numbers, link_plan(case.scenario, link_rate_law(case))
    return run_network(
        scenario,
        plan,
        runs,
        run_draws(scenario, plan, runs),
        lambda played: draw_flows(played, merged=False),
        _provenance(case, job),
        n_jobs=job.n_jobs,
        watch=job.watch,
        progress=job.progress,
    )


def case_lacks(case: Case) -> str | None:
    """Feature of a case that the kernel lacks, whatever this machine has; None: it has them all."""
    if case.scenario.under_demands:
        return network_lacks(case.scenario)
    return scenario_lacks(case.scenario)


def _lacks(case: Case) -> str | None:
    return case_lacks(case) or machine_lacks()


KERNEL = OwnEngine("kernel", {Links: Kind(_queues, _lacks)}, auto=False)
"""The Linux kernel in virtual time."""
