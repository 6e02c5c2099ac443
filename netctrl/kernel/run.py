"""Run a scenario of links and flows in the kernel in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.kernel.boot import MEMORY_BYTES, WALL_LIMIT_S, run_plan, work_folder
from netctrl.kernel.build import Kernel, build_guest, chosen_kernel
from netctrl.kernel.pacer import LAWS_FILE, laws_content
from netctrl.kernel.result import flow_totals, simulation_result
from netctrl.kernel.scenario import KernelPlan, payload_share, plan_scenario
from netctrl.model.io.provenance import Provenance
from netctrl.model.law import PacingLaw
from netctrl.scenario.bottleneck.network import bottleneck_network
from netctrl.scenario.bottleneck.packets import FlowCounts, bottleneck_result
from netctrl.scenario.bottleneck.result import BottleneckResult
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import FlowDraw
from netctrl.scenario.tcp_aqm.result import SimulationResult
from netctrl.sim.tcp_aqm.traffic import draw_flows

__all__ = ["run_bottleneck", "run_scenario"]


def run_scenario(
    scenario: Scenario,
    draws: Sequence[FlowDraw],
    provenance: Provenance,
    *,
    kernel: Kernel | None = None,
    memory_bytes: int = MEMORY_BYTES,
    wall_limit_s: float = WALL_LIMIT_S,
) -> SimulationResult:
    """Boot a kernel for a scenario, and read what it measured.

    Parameters
    ----------
    scenario : Scenario
        One that passes `netctrl.kernel.lacks.scenario_lacks`; its seed is that of the kernel's random numbers.
    draws : sequence of FlowDraw
        Flows of each group, unmerged.
    provenance : Provenance
    kernel : Kernel, optional
        By default the one that `chosen_kernel` finds.
    memory_bytes : int
    wall_limit_s : float

    Raises
    ------
    NetctrlError
        No kernel is built, or the run fails, as in `netctrl.kernel.boot.run_plan`.
    """
    ran = _ran(scenario, draws, kernel, memory_bytes, wall_limit_s)
    return simulation_result(scenario, ran.plan, ran.results, ran.version, provenance)


def run_bottleneck(scenario: Scenario, law: PacingLaw | None, provenance: Provenance) -> BottleneckResult:
    """The same for flows through one bottleneck.

    Parameters
    ----------
    scenario : Scenario
        One whose `bottleneck_network` passes `netctrl.kernel.lacks.scenario_lacks`.
    law : PacingLaw, optional
        Law of the flows of sender paced.
    provenance : Provenance

    Raises
    ------
    NetctrlError
        As in `run_scenario`.
    """
    network = bottleneck_network(scenario, law)
    draws = draw_flows(network, merged=False)
    ran = _ran(network, draws, None, MEMORY_BYTES, WALL_LIMIT_S)
    found = simulation_result(network, ran.plan, ran.results, ran.version, provenance)
    starts = np.concatenate([draw.start_s for draw in draws])
    counts = FlowCounts(starts, *flow_totals(ran.plan, ran.results))
    return bottleneck_result(scenario, found, counts, payload_share(network.traffic.packet_size))


class _Ran(NamedTuple):
    plan: KernelPlan
    results: Sequence[tuple[int, bytes]]
    version: str


def _ran(
    scenario: Scenario, draws: Sequence[FlowDraw], kernel: Kernel | None, memory_bytes: int, wall_limit_s: float
) -> _Ran:
    kernel, guest, plan = kernel or chosen_kernel(), build_guest(), plan_scenario(scenario, draws)
    with work_folder() as folder:
        if plan.laws:
            (folder / LAWS_FILE).write_bytes(laws_content(plan.laws))
        results = run_plan(
            plan.writer,
            kernel,
            guest,
            folder,
            seed=scenario.time.seed,
            memory_bytes=memory_bytes,
            wall_limit_s=wall_limit_s,
        )
    return _Ran(plan, results, kernel.version)
