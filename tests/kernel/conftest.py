"""Scenarios for the kernel in virtual time, and running them to the bytes that it writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import netctrl
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import Flow


@pytest.fixture
def scenario_of() -> Callable[..., Any]:
    """A scenario of one link, 10 Mbit/s and 10 ms, with TCP flows of 20 ms; options are of both."""

    def made(queue: Any = None, *others: Any, duration: str = "5s", seed: int = 1, **options: Any) -> Any:
        own = set(Flow.__struct_fields__) - set(Link.__struct_fields__)
        flows = {name: options.pop(name) for name in own & set(options)}
        line = {"capacity": "10Mbit", "delay": "10ms", "buffer": "100kB"} | options
        line |= {} if queue is None else {"queue": queue}
        group = Flow(id="flows", path=("line",), **{"rtt": "20ms", "count": 5, "sender": "cubic"} | flows)
        return netctrl.Scenario(
            name="lab",
            links=(Link(id="line", source="left", target="right", **line),),
            flows=(group, *others),
            duration=duration,
            packet_size=1514,
            seed=seed,
        )

    return made


@pytest.fixture
def results_of(tmp_path: Path) -> Callable[[Any], bytes]:
    """All that the kernel writes of a scenario, as bytes."""
    from netctrl.kernel.boot import run_plan
    from netctrl.kernel.build import build_guest, chosen_kernel
    from netctrl.kernel.scenarios.planner import plan_scenario
    from netctrl.sim.fluid.traffic import draw_flows

    count = 0

    def run(scenario: Any) -> bytes:
        nonlocal count
        count += 1
        folder = tmp_path / f"run{count}"
        folder.mkdir()
        plan = plan_scenario(scenario, draw_flows(scenario, merged=False))
        run_plan(plan.writer, chosen_kernel(), build_guest(), folder, seed=scenario.seed)
        return (folder / "results").read_bytes()

    return run
