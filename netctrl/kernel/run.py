"""Run a scenario of links and flows in the kernel in virtual time."""

from __future__ import annotations

from collections.abc import Sequence

from netctrl.kernel.boot import MEMORY_BYTES, WALL_LIMIT_S, run_plan, work_folder
from netctrl.kernel.build import Kernel, build_guest, chosen_kernel
from netctrl.kernel.result import simulation_result
from netctrl.kernel.scenario import plan_scenario
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import FlowDraw
from netctrl.scenario.tcp_aqm.result import SimulationResult

__all__ = ["run_scenario"]


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
    kernel, guest, plan = kernel or chosen_kernel(), build_guest(), plan_scenario(scenario, draws)
    with work_folder() as folder:
        results = run_plan(
            plan.writer,
            kernel,
            guest,
            folder,
            seed=scenario.time.seed,
            memory_bytes=memory_bytes,
            wall_limit_s=wall_limit_s,
        )
    return simulation_result(scenario, plan, results, kernel.version, provenance)
