"""netctrl: design, simulation and deployment of congestion control by control theory."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as in typing, which `netctrl --help` does without
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

# name -> module that defines it. Importing netctrl loads none of them, and none of their libraries.
_PUBLIC = {
    "Change": "netctrl.scenario.links",
    "DelayLoop": "netctrl.model.loop",
    "IdentifiedModel": "netctrl.model.identified",
    "Flow": "netctrl.scenario.tcp_aqm.flows",
    "InvalidValue": "netctrl.core.errors",
    "Link": "netctrl.scenario.links",
    "LinkTrace": "netctrl.model.link_trace",
    "MpcProblem": "netctrl.mpc.problem",
    "NetctrlError": "netctrl.core.errors",
    "Network": "netctrl.model.network",
    "NoAdmissibleDesign": "netctrl.core.errors",
    "OpenLoop": "netctrl.model.open_loop",
    "RateTrace": "netctrl.model.trace",
    "Scenario": "netctrl.scenario.scenario",
    "SignalTrace": "netctrl.model.signals",
    "StateSpace": "netctrl.model.statespace",
    "Track": "netctrl.scenario.network.track",
    "SweepSpec": "netctrl.scenario.network.sweep",
    "access_link": "netctrl.scenario.builders",
    "access_link_signals": "netctrl.sim.packet.tracking",
    "arc": "netctrl.design.arc.design",
    "bottleneck": "netctrl.scenario.builders",
    "certify": "netctrl.checks.by_packets",
    "check_certificate": "netctrl.checks.check",
    "certify_network": "netctrl.certificates.networks.certify",
    "certify_queues": "netctrl.certificates.installed",
    "compare": "netctrl.engines.compare",
    "connet": "netctrl.design.connet.design",
    "design_mpc": "netctrl.design.mpc.design",
    "disk_margin": "netctrl.frequency.certified.disk",
    "dumbbell": "netctrl.scenario.builders",
    "ecn_design": "netctrl.design.queue.ecn",
    "evaluate": "netctrl.evaluation.run",
    "fat_tree": "netctrl.scenario.builders",
    "from_control": "netctrl.frequency.certified.interchange",
    "gbn": "netctrl.ident.excite",
    "hftrac": "netctrl.design.hftrac.design",
    "identify": "netctrl.ident.identify",
    "leaf_spine": "netctrl.scenario.builders",
    "link_rate_plant": "netctrl.design.mpc.design",
    "margins": "netctrl.frequency.margins",
    "max_utilization": "netctrl.sim.network.tune",
    "mpcc": "netctrl.design.mpcc.design",
    "multisine": "netctrl.ident.excite",
    "network_model": "netctrl.plants.linearize",
    "pace": "netctrl.laws.pacing.pacing",
    "pacing": "netctrl.design.pacing.design",
    "pareto_front": "netctrl.sim.network.tune",
    "parking_lot": "netctrl.scenario.builders",
    "queue_design": "netctrl.checks.designs",
    "read": "netctrl.engines.reader",
    "read_queues": "netctrl.certificates.inputs.read",
    "routed": "netctrl.scenario.builders",
    "scenario_law": "netctrl.design.hftrac.scenario_law",
    "simulate": "netctrl.engines.engine",
    "solve_mpc": "netctrl.mpc.plan",
    "start_pacing": "netctrl.laws.pacing.pacing",
    "sweep": "netctrl.engines.sweep",
    "tune": "netctrl.sim.network.tune",
}

# Documented beside them: names that their modules alone have.
_INNER = {
    "Bursts": "netctrl.scenario.tcp_aqm.offers",
    "Demand": "netctrl.scenario.tcp_aqm.offers",
    "Incast": "netctrl.scenario.tcp_aqm.offers",
    "MpcCourse": "netctrl.model.design.mpc",
    "Sizes": "netctrl.scenario.tcp_aqm.offers",
    "Stream": "netctrl.scenario.tcp_aqm.offers",
    "Web": "netctrl.scenario.tcp_aqm.offers",
    "Writes": "netctrl.scenario.tcp_aqm.offers",
    "controller_in_c": "netctrl.mpc.c.controller.controller",
    "coordinated": "netctrl.synthesis.localized.coordinated",
    "delayed_regulator": "netctrl.synthesis.riccati.delayed",
    "fit_demands": "netctrl.model.networks.demands",
    "gain_band": "netctrl.frequency.margins",
    "gravity": "netctrl.model.networks.demands",
    "identify_impulse": "netctrl.ident.families.impulse",
    "identify_response": "netctrl.ident.families.response",
    "information_pattern": "netctrl.plants.information",
    "law_in_c": "netctrl.mpc.c.law",
    "localized": "netctrl.synthesis.localized.localized",
    "mpc_estimator": "netctrl.mpc.estimate",
    "mpc_from_file": "netctrl.design.mpc.file",
    "pace_many": "netctrl.laws.pacing.pacing",
    "pace_trace": "netctrl.laws.pacing.pacing",
    "piecewise_law": "netctrl.mpc.piecewise.law",
    "program_in_c": "netctrl.mpc.c.program",
    "prove_mpc": "netctrl.mpc.proof",
    "read_network": "netctrl.model.network",
    "solve_dare": "netctrl.synthesis.riccati.dare",
    "solve_qp": "netctrl.mpc.qp.solve",
    "to_continuous": "netctrl.ident.families.continuous",
    "what_if": "netctrl.engines.what_if.run",
    "window_in_c": "netctrl.mpc.c.window",
    "worst_iterations": "netctrl.mpc.c.program",
}

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    where = f"from {_INNER[name]} import {name}" if name in _INNER else f"it has {', '.join(sorted(_PUBLIC))}"
    raise AttributeError(f"module 'netctrl' has no attribute {name!r}; {where}")


def __dir__() -> list[str]:
    return sorted(__all__)
