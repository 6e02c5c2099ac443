"""The engines that come with netctrl: which kinds of scenario each runs, and how."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from netctrl.design.hftrac.scenario_law import scenario_law
from netctrl.engines.engine import Job
from netctrl.model.io.provenance import Provenance, provenance
from netctrl.scenario.fabric.result import FabricResult
from netctrl.scenario.fabric.scenario import FabricScenario
from netctrl.scenario.network.result import NetworkResult
from netctrl.scenario.network.scenario import NetworkScenario
from netctrl.scenario.tcp_aqm.flows import FastFlows, UdpFlows
from netctrl.scenario.tcp_aqm.result import SimulationResult
from netctrl.scenario.tcp_aqm.scenario import Scenario, packet_only

__all__ = ["FLUID", "NS3", "PACKET", "OwnEngine"]

NS3_SENDERS = ("reno", "cubic", "htcp")


class Kind(NamedTuple):
    """How an engine treats one kind of scenario."""

    lacks: Callable[[Any], str | None]
    run: Callable[[Any, Job], Any]


class OwnEngine(NamedTuple):
    """An engine with a kernel, or a program, for each kind of scenario."""

    name: str
    kinds: Mapping[type, Kind]

    def lacks(self, scenario: Any) -> str | None:
        """What of the scenario it doesn't have; None: it runs it."""
        kind = self.kinds.get(type(scenario))
        if kind is None:
            return f"{type(scenario).__name__}, only {', '.join(each.__name__ for each in self.kinds)}"
        return kind.lacks(scenario)

    def run(self, scenario: Any, job: Job) -> Any:
        """The result."""
        return self.kinds[type(scenario)].run(scenario, job)


def _nothing(_: Any) -> None:
    return None


# --- fluid ------------------------------------------------------------------------------------------------------------


def _fluid_lacks(scenario: Scenario) -> str | None:
    for group in scenario.flows:
        if isinstance(group, UdpFlows):
            return f"udp flows (flows.{group.id})"
        if group.sender != "reno":
            return f"senders but reno (flows.{group.id} are {group.sender})"
    return _packet_only(scenario)


def _packet_only(scenario: Scenario) -> str | None:
    found = packet_only(scenario)
    return None if found is None else f"{found[1]} ({found[0]})"


def _fluid(scenario: Scenario, job: Job) -> SimulationResult:
    from netctrl.sim.tcp_aqm.run import simulate

    return simulate(scenario, progress=job.progress, argv=job.argv, inputs=job.inputs)


def _network_lacks(scenario: NetworkScenario) -> str | None:
    if scenario.tcp:
        return "demands that are TCP"
    return None if scenario.queue.__struct_config__.tag == "droptail" else "queues but droptail in a network of demands"


def _network_fluid(scenario: NetworkScenario, job: Job) -> NetworkResult:
    from netctrl.sim.network.run import simulate_network

    law = scenario_law(scenario)
    return simulate_network(scenario, law, progress=job.progress, argv=job.argv, inputs=job.inputs)


FLUID = OwnEngine(
    "fluid", {Scenario: Kind(_fluid_lacks, _fluid), NetworkScenario: Kind(_network_lacks, _network_fluid)}
)
"""Rates instead of packets."""


# --- packets ----------------------------------------------------------------------------------------------------------


def _packet_lacks(scenario: Scenario) -> str | None:
    for group in scenario.flows:
        if isinstance(group, FastFlows):
            return f"FAST senders, which see a price (flows.{group.id})"
    return None


def _packet(scenario: Scenario, job: Job) -> SimulationResult:
    from netctrl.sim.packet.run import simulate_packets

    return simulate_packets(scenario, progress=job.progress, argv=job.argv, inputs=job.inputs)


def _fabric(scenario: FabricScenario, job: Job) -> FabricResult:
    from netctrl.sim.fabric.run import simulate_fabric

    return simulate_fabric(scenario, progress=job.progress, argv=job.argv, inputs=job.inputs)


PACKET = OwnEngine("packet", {Scenario: Kind(_packet_lacks, _packet), FabricScenario: Kind(_nothing, _fabric)})
"""Packet by packet, in compiled Python."""


# --- ns-3 -------------------------------------------------------------------------------------------------------------


def _ns3_lacks(scenario: Scenario) -> str | None:
    for group in scenario.flows:
        if isinstance(group, FastFlows | UdpFlows):
            return f"{group.__struct_config__.tag} flows (flows.{group.id})"
        if group.sender not in NS3_SENDERS:
            return f"senders but {', '.join(NS3_SENDERS)} (flows.{group.id} are {group.sender})"
    return _packet_only(scenario)


def _made(seed: int, job: Job) -> Provenance:
    return provenance(argv=job.argv, seed=seed, inputs=job.inputs, libraries=("numpy",))


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="netctrl-ns3-")


def _written(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def _ns3(scenario: Scenario, job: Job) -> SimulationResult:
    from netctrl.ns3.program import compile_program, find_ns3
    from netctrl.ns3.tcp_aqm.read import run_program
    from netctrl.ns3.tcp_aqm.render import render
    from netctrl.sim.tcp_aqm.traffic import draw_flows

    ns3, made = find_ns3(), _made(scenario.seed, job)
    with _folder() as name:
        _written(Path(name), render(scenario, draw_flows(scenario, merged=False), provenance=made))
        compile_program(Path(name), ns3)
        return run_program(Path(name), scenario, ns3=ns3, provenance=made, progress=job.progress)


def _network_ns3(scenario: NetworkScenario, job: Job) -> NetworkResult:
    from netctrl.ns3.network.read import run_links, table_name
    from netctrl.ns3.network.render import render
    from netctrl.ns3.program import compile_program, find_ns3
    from netctrl.sim.network.plan import link_plan, run_tables

    ns3, made, runs = find_ns3(), _made(scenario.seed, job), range(1)
    plan = link_plan(scenario, scenario_law(scenario))
    with _folder() as name:
        tables = {table_name(run): table for run, table in zip(runs, run_tables(scenario, plan, runs), strict=True)}
        _written(Path(name), {**render(scenario, plan, provenance=made), **tables})
        compile_program(Path(name), ns3)
        return run_links(Path(name), scenario, plan, runs, ns3=ns3, provenance=made, progress=job.progress)


def _fabric_ns3(scenario: FabricScenario, job: Job) -> FabricResult:
    from netctrl.ns3.fabric.read import run_fabric, table_name
    from netctrl.ns3.fabric.render import render
    from netctrl.ns3.program import compile_program, find_ns3
    from netctrl.sim.fabric.plan import fabric_plan, run_table

    ns3, made, plan = find_ns3(), _made(scenario.seed, job), fabric_plan(scenario)
    with _folder() as name:
        table = {table_name(scenario.seed): run_table(scenario, plan)}
        _written(Path(name), {**render(scenario, plan, provenance=made), **table})
        compile_program(Path(name), ns3)
        return run_fabric(Path(name), scenario, plan, provenance=made, progress=job.progress)


NS3 = OwnEngine(
    "ns3",
    {
        Scenario: Kind(_ns3_lacks, _ns3),
        NetworkScenario: Kind(_nothing, _network_ns3),
        FabricScenario: Kind(_nothing, _fabric_ns3),
    },
)
"""A program for stock ns-3, compiled and run in a folder that is removed after."""
