"""netctrl: design, simulation and deployment of congestion control by control theory."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

# name -> module that defines it. Importing netctrl loads none of them, and none of their libraries.
_PUBLIC = {
    "BbrFlow": "netctrl.sim.bottleneck.flows",
    "BottleneckLink": "netctrl.sim.bottleneck.run",
    "CubicFlow": "netctrl.sim.bottleneck.flows",
    "DelayLoop": "netctrl.model.loop",
    "HTcpFlow": "netctrl.sim.bottleneck.flows",
    "IdentifiedModel": "netctrl.model.identified",
    "InvalidValue": "netctrl.errors",
    "LinkTrace": "netctrl.model.link_trace",
    "MpcProblem": "netctrl.mpc.problem",
    "NetctrlError": "netctrl.errors",
    "Network": "netctrl.model.network",
    "NoAdmissibleDesign": "netctrl.errors",
    "OpenLoop": "netctrl.model.open_loop",
    "PacedFlow": "netctrl.sim.bottleneck.flows",
    "RateCap": "netctrl.sim.bottleneck.flows",
    "RateTrace": "netctrl.model.trace",
    "RenoFlow": "netctrl.sim.bottleneck.flows",
    "Scenario": "netctrl.scenario.scenario",
    "SignalTrace": "netctrl.model.signals",
    "StateSpace": "netctrl.model.statespace",
    "SweepSpec": "netctrl.scenario.network.sweep",
    "access_link_signals": "netctrl.sim.access.track",
    "arc": "netctrl.design.arc.design",
    "certify": "netctrl.certificates.certify",
    "check_certificate": "netctrl.checks.check",
    "certify_network": "netctrl.certificates.networks.certify",
    "capacity_step": "netctrl.sim.bottleneck.capacity",
    "compare": "netctrl.engines.compare",
    "connet": "netctrl.design.connet.design",
    "coordinated": "netctrl.synthesis.localized.coordinated",
    "delayed_regulator": "netctrl.synthesis.riccati.delayed",
    "disk_margin": "netctrl.frequency.certified.disk",
    "ecn_design": "netctrl.design.queue.ecn",
    "evaluate": "netctrl.evaluation.run",
    "from_control": "netctrl.frequency.certified.interchange",
    "gain_band": "netctrl.frequency.margins",
    "gbn": "netctrl.ident.excite",
    "hftrac": "netctrl.design.hftrac.design",
    "identify": "netctrl.ident.identify",
    "information_pattern": "netctrl.plants.information",
    "localized": "netctrl.synthesis.localized.localized",
    "margins": "netctrl.frequency.margins",
    "max_utilization": "netctrl.sim.network.tune",
    "mpcc": "netctrl.design.mpcc.design",
    "multisine": "netctrl.ident.excite",
    "network_model": "netctrl.plants.linearize",
    "pace": "netctrl.laws.pacing.pacing",
    "pace_many": "netctrl.laws.pacing.pacing",
    "pace_trace": "netctrl.laws.pacing.pacing",
    "pacing": "netctrl.design.pacing.design",
    "pareto_front": "netctrl.sim.network.tune",
    "queue_design": "netctrl.design.queue.design",
    "read": "netctrl.reader",
    "scenario_law": "netctrl.design.hftrac.scenario_law",
    "simulate": "netctrl.engines.engine",
    "solve_dare": "netctrl.synthesis.riccati.dare",
    "solve_mpc": "netctrl.mpc.plan",
    "solve_qp": "netctrl.mpc.qp.solve",
    "square_wave": "netctrl.sim.bottleneck.capacity",
    "start_pacing": "netctrl.laws.pacing.pacing",
    "sweep": "netctrl.engines.sweep",
    "tune": "netctrl.sim.network.tune",
}

# Names that only their own modules keep: here they still work, with a warning, until the next version.
_MOVED = {
    "AccessLink": "netctrl.sim.access.run",
    "AccessLinkResult": "netctrl.scenario.access.result",
    "AccessLinkSample": "netctrl.scenario.access.result",
    "AccessLinkScenario": "netctrl.scenario.old",
    "AgentConfig": "netctrl.linux.export.agent",
    "ArcDesign": "netctrl.model.design.design",
    "Backpressure": "netctrl.scenario.network.policy",
    "BottleneckFlow": "netctrl.scenario.old",
    "BottleneckResult": "netctrl.scenario.bottleneck.result",
    "BottleneckScenario": "netctrl.scenario.old",
    "CoDel": "netctrl.sim.bottleneck.run",
    "ConnetDesign": "netctrl.model.design.design",
    "DesignPolicy": "netctrl.scenario.network.policy",
    "FabricResult": "netctrl.scenario.fabric.result",
    "FabricScenario": "netctrl.scenario.old",
    "Fifo": "netctrl.scenario.network.policy",
    "HftracDesign": "netctrl.model.design.design",
    "HftracPolicy": "netctrl.scenario.network.policy",
    "HtbClass": "netctrl.linux.export.records",
    "IdentificationResult": "netctrl.model.fit",
    "InfeasibleProgram": "netctrl.errors",
    "InterfaceMap": "netctrl.linux.export.interfaces",
    "InterfaceQueue": "netctrl.linux.export.records",
    "MarkingConfig": "netctrl.linux.export.marking",
    "MpcPlan": "netctrl.mpc.plan",
    "NetworkResult": "netctrl.scenario.network.result",
    "NetworkScenario": "netctrl.scenario.old",
    "PacingDesign": "netctrl.model.design.design",
    "PiecewiseLaw": "netctrl.mpc.piecewise.law",
    "QPSolution": "netctrl.mpc.qp.program",
    "QuadraticProgram": "netctrl.mpc.qp.program",
    "QueuePlan": "netctrl.linux.export.records",
    "SimulationResult": "netctrl.scenario.tcp_aqm.result",
    "StaticPacing": "netctrl.scenario.network.policy",
    "TcFifo": "netctrl.linux.export.records",
    "TokenBucket": "netctrl.linux.export.records",
    "WindowTable": "netctrl.mpc.explicit",
    "agent_configs": "netctrl.linux.export.agent",
    "arc_on_linux": "netctrl.linux.export.tc",
    "connet_on_linux": "netctrl.linux.export.agents",
    "control_access_link": "netctrl.sim.access.run",
    "hftrac_on_linux": "netctrl.linux.export.agents",
    "link_rate_table": "netctrl.linux.export.agent_law",
    "piecewise_law": "netctrl.mpc.piecewise.law",
    "read_agent_config": "netctrl.linux.export.agent",
    "read_design": "netctrl.model.design.design",
    "read_interface_map": "netctrl.linux.export.interfaces",
    "read_link_trace": "netctrl.model.link_trace",
    "read_marking_config": "netctrl.linux.export.marking",
    "read_model": "netctrl.model.identified",
    "read_network": "netctrl.model.network",
    "read_queue_plan": "netctrl.linux.export.records",
    "read_result": "netctrl.scenario.tcp_aqm.result",
    "read_signals": "netctrl.model.signals",
    "read_sweep": "netctrl.scenario.network.sweep",
    "read_trace": "netctrl.model.trace",
    "receding_controller": "netctrl.mpc.receding",
    "simulate_access_link": "netctrl.sim.access.run",
    "simulate_bottleneck": "netctrl.sim.bottleneck.run",
    "simulate_fabric": "netctrl.sim.fabric.run",
    "simulate_many": "netctrl.sim.tcp_aqm.run",
    "simulate_network": "netctrl.sim.network.run",
    "start_receding": "netctrl.mpc.receding",
    "step_receding": "netctrl.mpc.receding",
    "sweep_to_file": "netctrl.engines.sweep",
    "track_access_link": "netctrl.sim.access.track",
    "window_table": "netctrl.mpc.explicit",
}

# Names of the first version; they work, with a warning, until the next one.
_RENAMED = {
    "FifoLink": "AccessLink",
    "FifoResult": "AccessLinkResult",
    "FifoSample": "AccessLinkSample",
    "FifoScenario": "AccessLinkScenario",
    "FixedRate": "RateCap",
    "PacedLink": "BottleneckLink",
    "Places": "InterfaceMap",
    "control_fifo": "control_access_link",
    "fifo_signals": "access_link_signals",
    "read_access_link_scenario": "read",
    "read_bottleneck_scenario": "read",
    "read_fabric_scenario": "read",
    "read_fifo_scenario": "read",
    "read_network_scenario": "read",
    "read_places": "read_interface_map",
    "read_scenario": "read",
    "simulate_fifo": "simulate_access_link",
    "simulate_pacing": "simulate_bottleneck",
    "track_fifo": "track_access_link",
}

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    if name in _MOVED or name in _RENAMED:
        import warnings

        today = _RENAMED.get(name, name)
        module = _PUBLIC.get(today) or _MOVED[today]
        place = "netctrl" if today in _PUBLIC else module
        warnings.warn(f"netctrl.{name} is {place}.{today} now", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(module), today)
    raise AttributeError(f"module 'netctrl' has no attribute {name!r}; it has {', '.join(sorted(_PUBLIC))}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Module class of the package: importing the verb's submodule `netctrl.simulate` must not replace the function."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _PUBLIC and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
