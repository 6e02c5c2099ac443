"""netctrl: control theory turned into running network congestion management."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

# name -> module that defines it. Importing netctrl loads none of them, and none of their libraries.
_PUBLIC = {
    "AgentConfig": "netctrl.export.agent",
    "ArcDesign": "netctrl.model.artifact",
    "Backpressure": "netctrl.model.policy",
    "BbrFlow": "netctrl.sim.pacing_flows",
    "CoDel": "netctrl.sim.pacing_run",
    "ConnetDesign": "netctrl.model.artifact",
    "BottleneckFlow": "netctrl.model.bottleneck_scenario",
    "BottleneckResult": "netctrl.model.bottleneck_result",
    "BottleneckScenario": "netctrl.model.bottleneck_scenario",
    "CubicFlow": "netctrl.sim.pacing_flows",
    "DelayLoop": "netctrl.model.loop",
    "DesignPolicy": "netctrl.model.policy",
    "FabricResult": "netctrl.model.fabric_result",
    "FabricScenario": "netctrl.model.fabric_scenario",
    "Fifo": "netctrl.model.policy",
    "FifoLink": "netctrl.sim.fifo_run",
    "FifoResult": "netctrl.model.fifo_result",
    "FifoSample": "netctrl.model.fifo_result",
    "FifoScenario": "netctrl.model.fifo_scenario",
    "FixedRate": "netctrl.sim.pacing_flows",
    "HTcpFlow": "netctrl.sim.pacing_flows",
    "HftracDesign": "netctrl.model.artifact",
    "HftracPolicy": "netctrl.model.policy",
    "HtbClass": "netctrl.model.queueing",
    "IdentificationResult": "netctrl.model.fit",
    "IdentifiedModel": "netctrl.model.identified",
    "InfeasibleProgram": "netctrl.errors",
    "InterfaceQueue": "netctrl.model.queueing",
    "InvalidValue": "netctrl.errors",
    "LinkTrace": "netctrl.model.link_trace",
    "MarkingConfig": "netctrl.export.marking",
    "MpcPlan": "netctrl.mpc.plan",
    "MpcProblem": "netctrl.mpc.problem",
    "NetctrlError": "netctrl.errors",
    "Network": "netctrl.model.network",
    "NetworkResult": "netctrl.model.network_result",
    "NetworkScenario": "netctrl.model.network_scenario",
    "NoAdmissibleDesign": "netctrl.errors",
    "OpenLoop": "netctrl.model.open_loop",
    "PacedFlow": "netctrl.sim.pacing_flows",
    "PacedLink": "netctrl.sim.pacing_run",
    "PacingDesign": "netctrl.model.artifact",
    "PiecewiseLaw": "netctrl.mpc.piecewise",
    "Places": "netctrl.export.tc_places",
    "QPSolution": "netctrl.mpc.qp",
    "QuadraticProgram": "netctrl.mpc.qp",
    "QueuePlan": "netctrl.model.queueing",
    "RateTrace": "netctrl.model.trace",
    "RenoFlow": "netctrl.sim.pacing_flows",
    "Scenario": "netctrl.model.scenario",
    "SignalTrace": "netctrl.model.signals",
    "SimulationResult": "netctrl.model.simulation",
    "StateSpace": "netctrl.model.statespace",
    "StaticPacing": "netctrl.model.policy",
    "SweepSpec": "netctrl.model.sweep",
    "TcFifo": "netctrl.model.queueing",
    "TokenBucket": "netctrl.model.queueing",
    "WindowTable": "netctrl.mpc.explicit",
    "agent_configs": "netctrl.export.agent",
    "arc": "netctrl.design.arc",
    "capacity_step": "netctrl.sim.capacity",
    "arc_on_linux": "netctrl.export.tc",
    "connet": "netctrl.design.connet",
    "connet_on_linux": "netctrl.export.tc_agents",
    "control_fifo": "netctrl.sim.fifo_run",
    "coordinated": "netctrl.synthesis.coordinated",
    "delayed_regulator": "netctrl.synthesis.delayed",
    "fifo_signals": "netctrl.sim.fifo_track",
    "disk_margin": "netctrl.frequency.loop_disk",
    "from_control": "netctrl.frequency.interchange",
    "gain_band": "netctrl.frequency.margins",
    "gbn": "netctrl.ident.excite",
    "hftrac": "netctrl.design.hftrac",
    "hftrac_on_linux": "netctrl.export.tc_agents",
    "identify": "netctrl.ident.identify",
    "information_pattern": "netctrl.fluid.information",
    "link_rate_table": "netctrl.export.agent_law",
    "localized": "netctrl.synthesis.localized",
    "margins": "netctrl.frequency.margins",
    "mpcc": "netctrl.design.mpcc",
    "max_utilization": "netctrl.sim.tune",
    "multisine": "netctrl.ident.excite",
    "network_model": "netctrl.fluid.linearize",
    "pace": "netctrl.runtime.pacing",
    "pace_many": "netctrl.runtime.pacing",
    "pace_trace": "netctrl.runtime.pacing",
    "pacing": "netctrl.design.pacing",
    "pareto_front": "netctrl.sim.tune",
    "piecewise_law": "netctrl.mpc.piecewise",
    "read_agent_config": "netctrl.export.agent",
    "read_design": "netctrl.model.artifact",
    "read_bottleneck_scenario": "netctrl.model.bottleneck_scenario",
    "read_fifo_scenario": "netctrl.model.fifo_scenario",
    "read_fabric_scenario": "netctrl.model.fabric_scenario",
    "read_link_trace": "netctrl.model.link_trace",
    "read_marking_config": "netctrl.export.marking",
    "read_model": "netctrl.model.identified",
    "read_network": "netctrl.model.network",
    "read_network_scenario": "netctrl.model.network_scenario",
    "read_places": "netctrl.export.tc_places",
    "read_queue_plan": "netctrl.model.queueing",
    "read_result": "netctrl.model.simulation",
    "read_scenario": "netctrl.model.scenario",
    "read_signals": "netctrl.model.signals",
    "read_sweep": "netctrl.model.sweep",
    "read_trace": "netctrl.model.trace",
    "receding_controller": "netctrl.mpc.receding",
    "scenario_law": "netctrl.design.hftrac",
    "simulate": "netctrl.sim.run",
    "simulate_fabric": "netctrl.sim.fabric_run",
    "simulate_fifo": "netctrl.sim.fifo_run",
    "simulate_many": "netctrl.sim.run",
    "simulate_network": "netctrl.sim.link_run",
    "simulate_pacing": "netctrl.sim.pacing_run",
    "solve_dare": "netctrl.synthesis.dare",
    "solve_mpc": "netctrl.mpc.plan",
    "solve_qp": "netctrl.mpc.solve",
    "square_wave": "netctrl.sim.capacity",
    "start_pacing": "netctrl.runtime.pacing",
    "start_receding": "netctrl.mpc.receding",
    "step_receding": "netctrl.mpc.receding",
    "sweep": "netctrl.sim.sweep",
    "sweep_to_file": "netctrl.sim.sweep",
    "track_fifo": "netctrl.sim.fifo_track",
    "tune": "netctrl.sim.tune",
    "window_table": "netctrl.mpc.explicit",
}

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'netctrl' has no attribute {name!r}; it has {', '.join(sorted(_PUBLIC))}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Python hangs each imported submodule on its package; the verb's `netctrl.simulate` must not hide the function."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _PUBLIC and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
