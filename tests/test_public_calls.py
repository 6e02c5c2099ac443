"""Whatever is handed to netctrl's public names, they answer or refuse: with a NetctrlError, or with a TypeError or
ValueError that names the argument.

`NETCTRL_RANDOM_CALLS=5000 python -m pytest tests/test_public_calls.py -k random` makes that many calls.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from math import inf, nan
from typing import Any

import control
import msgspec
import numpy as np
import pytest

import netctrl
from netctrl.core.errors import NetctrlError
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.laws.pacing.pacing import PacingSample, pacer
from netctrl.laws.window.records import Hpcc
from netctrl.linux.export.agent import ControlledLink, Peer
from netctrl.linux.export.agent_law import link_rate_table
from netctrl.linux.export.records import InterfaceQueue, TcFifo
from netctrl.model.network import Demand, Link, Network
from netctrl.mpc.piecewise.law import piecewise_law
from netctrl.mpc.qp.program import QuadraticProgram
from netctrl.mpc.receding import receding_controller, start_receding
from netctrl.plants.information import information_pattern
from netctrl.scenario.builders import access_link, routed
from netctrl.scenario.fabric.topology import Dumbbell
from netctrl.scenario.links import Link as ScenarioLink
from netctrl.scenario.network.policy import StaticPacing
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.run import simulate_rates

_PIE = "qdisc pie 1: dev eth0 root refcnt 2 limit 1000p target 15ms tupdate 16ms alpha 2 beta 20"
INNER = {
    "netctrl.engines.sweep": "sweep_to_file",
    "netctrl.core.errors": "InfeasibleProgram",
    "netctrl.linux.export.agent": "AgentConfig agent_configs read_agent_config",
    "netctrl.linux.export.agent_law": "link_rate_table",
    "netctrl.linux.export.agents": "InterfaceMap connet_on_linux hftrac_on_linux read_interface_map",
    "netctrl.linux.export.shaper": "MarkingConfig read_marking_config",
    "netctrl.linux.export.records": "HtbClass InterfaceQueue QueuePlan TcFifo TokenBucket read_queue_plan",
    "netctrl.linux.export.tc": "arc_on_linux",
    "netctrl.model.design.design": "ArcDesign ConnetDesign HftracDesign PacingDesign read_design",
    "netctrl.model.fit": "IdentificationResult",
    "netctrl.model.identified": "read_model",
    "netctrl.model.link_trace": "read_link_trace",
    "netctrl.model.signals": "read_signals",
    "netctrl.model.trace": "read_trace",
    "netctrl.mpc.explicit": "WindowTable window_table",
    "netctrl.mpc.piecewise.law": "PiecewiseLaw",
    "netctrl.mpc.plan": "MpcPlan",
    "netctrl.mpc.qp.program": "QPSolution QuadraticProgram",
    "netctrl.mpc.receding": "receding_controller start_receding step_receding",
    "netctrl.scenario.network.policy": "Backpressure CreditPolicy DesignPolicy Fifo HftracPolicy StaticPacing",
    "netctrl.scenario.figures": "Estimate Figure",
    "netctrl.scenario.result": "Result",
    "netctrl.scenario.labelled": "Labelled",
    "netctrl.scenario.network.sweep": "read_sweep",
    "netctrl.scenario.result_file": "read_result",
    "netctrl.sim.fluid.run": "simulate_many",
    "netctrl.sim.network.run": "simulate_network",
    "netctrl.sim.packet.run": "simulate_packets simulate_rates",
}
"""Module -> its documented names that the front door leaves out."""
PLACES = netctrl._INNER | {name: module for module, names in INNER.items() for name in names.split()}
EVERY = (*netctrl.__all__, *PLACES)
CALLS = int(os.environ.get("NETCTRL_RANDOM_CALLS", "400"))
PARTS = 8
PATIENCE_S = 60
"""For one call on a busy machine; all usual ones take less than a second."""

ODD: list[Any] = [None, True, False, 0, 1, -1, 2, 3, 7, -0.5, 0.5, 1.5, 1e-320, 1e-9, 1e9, 1e308, nan, inf, -inf]
ODD += [10**400, 1j, "", "x", "auto", "5 MB", b"x", "nan", [], (), {}, {"a": 1}, set(), [1.0], [None], ["a"], [nan]]
ODD += [[[1.0], [1.0, 2.0]], [[1.0]], object(), range(3), np.float64(2.0), np.int64(2), np.array(1.0)]
ODD += [np.zeros(0), np.array([1.0, nan]), np.array(["a"]), np.array([None]), np.zeros((2, 2)), np.eye(2), -np.eye(2)]
ODD += [np.ones((3, 2)), np.ones((2, 2, 2)), np.eye(1), np.array([1j, 2.0]), np.arange(4), "/nonexistent/file.json"]
ODD += [control.tf([1], [1, 1]), control.tf([0], [1]), Exception("x"), lambda *given: None, iter([1.0])]


LINE = {
    "links": [{"id": "ab", "source": "A", "target": "B", "capacity": "10Mbit"}],
    "demands": [{"source": "A", "target": "B", "mean": "8Mbit"}],
}


def public(name: str) -> Any:
    """What a public name is."""
    module = PLACES.get(name)
    return getattr(netctrl, name) if module is None else getattr(importlib.import_module(module), name)


@cache
def usual() -> dict[str, dict[str, Any]]:
    """A short call of each public name, by its arguments."""
    plant = netctrl.StateSpace([[0.9]], [[1.0]], [[1.0]], dt=1.0)
    problem = netctrl.MpcProblem(
        plant=plant, horizon=2, state_weight=1.0, output_weight=1.0, input_weight=1.0, input_lower=-1.0
    )
    program = QuadraticProgram(np.eye(1), [0.0], np.zeros((0, 1)), [-1.0], [1.0])
    law = netctrl.pacing(mode="own-rate").law
    network = Network(
        links=(Link(source="a", target="b", capacity=1e7, delay=0.01), Link(source="b", target="c", capacity=1e7)),
        demands=(Demand(source="a", target="c", mean=5e6, std=1e6),),
    )
    model = netctrl.network_model(network, 0.01)
    information = information_pattern(network, 0.01, model.links, "out-of-band")
    hops = netctrl.hftrac(network, 0.01, mu=1.0)
    scenario = routed(network, duration=0.1, warmup=0.0)
    line = ScenarioLink(id="l", source="a", target="b", capacity=1e6, buffer=1e5, queue=ArcQueue(alpha=1e-5, epoch=0.5))
    flows = Flow(id="tcp", path=("l",), rtt=(0.05, 0.05), count=2)
    bulk = netctrl.Scenario(name="s", duration=1.0, links=(line,), flows=(flows,))
    marked = msgspec.structs.replace(line, queue=Pi2Queue())
    lot = netctrl.Scenario(name="s", duration=1.0, links=(marked,), flows=(flows,))
    fifo = access_link(duration=2.0, control=netctrl.Track())
    random = np.random.default_rng(1)
    trace = netctrl.SignalTrace(
        interval_s=0.1, input_values=random.normal(size=(80, 1)), output_values=random.normal(size=(80, 1))
    )
    curve = random.normal(size=(400, 1))
    seen = np.zeros((400, 1))
    for k in range(399):
        seen[k + 1] = 0.8 * seen[k] + curve[k] + 0.1 * random.normal()
    found = netctrl.identify(
        netctrl.SignalTrace(
            interval_s=1.0, input_values=curve, output_values=seen, inputs=("rate",), outputs=("delay",)
        ),
        order=1,
    ).model
    controller = receding_controller(problem)
    flow = Flow(id="flow", source=0, target=4, offers=1e4, sender=Hpcc())
    fabric = netctrl.Scenario(name="f", network=Dumbbell(), flows=(flow,), duration=1e-3)
    arc = netctrl.arc(50.0, simulation=False)
    rates = link_rate_table(hops, model)
    here = Peer(name="x", address="127.0.0.1", port=5000)
    taken = tuple(
        ControlledLink(
            id=link,
            interface=f"eth{n}",
            handle=f"{n}:",
            least_rate=1e4,
            greatest_rate=1e7,
            fallback_rate=1e6,
            burst=2e3,
            limit=1e5,
        )
        for n, link in enumerate(rates.links, 1)
    )
    shared = {
        "network": {"kind": "routed", "graph": LINE},
        "duration": "100ms",
        "interval": "10ms",
        "control": {"kind": "static"},
    }
    spec = netctrl.SweepSpec(name="w", scenario=shared, runs=1)
    paced = routed(network, duration=0.1, warmup=0.0, control=StaticPacing(factor=1.1))
    path = "/nonexistent/file.json"
    readers = {name: {"path": path} for name in EVERY if name.startswith("read_") and name != "read_interface_map"}
    readers["read_network"] |= {"capacity": 1e7, "capacity_unit": 1.0, "delay": 0.0, "delay_unit": 1.0}
    readers["read_network"] |= {"demands": None, "demand_unit": 1e6}
    readers["read_signals"] |= {"inputs": ["u"], "outputs": ["y"], "segments": None, "time": None}
    readers["read_signals"] |= {"interval_s": None, "bin_s": None}
    readers["read_trace"] |= {"interval_s": 0.1}
    weights = {"state_weight": 1.0, "output_weight": 0.0, "rate_weight": 0.0, "terminal_weight": None}
    bounds = {"state_lower": -9.0, "state_upper": 9.0, "input_lower": -1.0, "input_upper": 1.0, "soft_weight": inf}
    return readers | {
        "DelayLoop": {"gain": 1.0, "delay": 0.1, "integrators": 1, "leads": (1.0,), "lags": (2.0,)},
        "InterfaceQueue": {"interface": "eth0", "queue": TcFifo(limit=1e5)},
        "LinkTrace": {"times_ms": np.arange(5.0), "packet_size_bytes": 1504},
        "MpcProblem": {"plant": plant, "horizon": 3, "input_weight": 1.0, "soft_linear": 0.0, "delay": 1}
        | weights
        | bounds
        | {"input_scale": None, "state_scale": None, "output_lower": -9.0, "output_upper": 9.0, "rate_lower": -1.0}
        | {"rate_upper": 1.0, "mixed_states": [[1.0]], "mixed_inputs": [[1.0]], "mixed_lower": -9.0, "mixed_upper": 9.0}
        | {f"{name}_soft_weight": inf for name in ("output", "input", "rate", "mixed")}
        | {f"{name}_soft_linear": 0.0 for name in ("output", "input", "rate", "mixed")}
        | {"measurement_delay": 0, "control_horizon": None, "blocks": (1, 2), "measured": ()},
        "Bursts": {"rate": 1e6, "burst": 10, "pause_variation": 1.0, "access_rate": 1e8},
        "Change": {"at": 1.0, "link": "l", "capacity": 1e6, "delay": None, "flow": "", "rate": None},
        "Demand": {"interval": 0.1, "mean": 1e6, "std": 1e5, "spread": "gaussian", "rates": None},
        "Flow": {"id": "f", "count": 2, "offers": None, "sender": "reno", "path": ("l",), "ack_path": (), "rtt": 0.1}
        | {"start": 0.0, "stop": None, "ecn": True, "host": None, "priority": 0, "weight": 1.0}
        | {"packet_size": None, "classes": None},
        "Link": {"id": "l", "source": "a", "target": "b", "capacity": 1e6, "delay": 0.0, "buffer": 1e5, "queue": "pie"},
        "Stream": {"rate": 1e6, "spacing": "poisson"},
        "Track": {"file": "", "measures": "premium", "flows": ("a", "b"), "shares": (0.5, 0.5)}
        | {"reference": ((1.0, 0.5),), "measured": None, "governor": False, "start": 0.0, "first_rate": None},
        "Incast": {"senders": 8, "size": 3e5, "interval": 1e-3},
        "Sizes": {"distribution": "WebSearch", "load": 0.3},
        "Web": {"objects_per_page": 2, "mean_object": 5e3, "pareto_shape": 1.2, "max_object": 1e7, "think_time": 7.0},
        "Writes": {"size": 12.5e3, "interval": 0.033},
        "Network": {"links": network.links, "demands": network.demands, "nodes": (), "name": "n"},
        "OpenLoop": {"numerator": [(0.0, [1.0])], "denominator": [(0.0, [1.0, 1.0])], "dt": 0.0},
        "QuadraticProgram": {
            "H": np.eye(1),
            "g": [0.0],
            "A": np.zeros((0, 1)),
            "lower": [-1.0],
            "upper": [1.0],
            "names": (),
        },
        "QueuePlan": {"interfaces": (InterfaceQueue(interface="eth0", queue=TcFifo(limit=1e5)),)},
        "RateTrace": {"interval_s": 0.1, "names": ("a",), "rate_bit_per_s": np.ones((3, 1))},
        "Scenario": {"name": "s", "links": (line,), "flows": (flows,), "duration": 1.0},
        "bottleneck": {"capacity": 1e7, "buffer": 1e5, "queue": "pie", "rtt": 0.02, "cross": 1e6},
        "access_link": {"hops": 2, "capacity": 1e8, "limit": 30, "queue": "droptail", "base_delay": 1e-3},
        "dumbbell": {"senders": 2, "receivers": 1, "host_rate": 1e9, "link_rate": 1e9, "delay": 1e-6, "duration": 1e-3},
        "fat_tree": {"k": 4, "rate": 1e10, "delay": 1e-6, "duration": 1e-3},
        "leaf_spine": {"leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": 1e10, "duration": 1e-3},
        "parking_lot": {"hops": 2, "capacity": 1e7, "delay": 0.01, "buffer": 1e5, "queue": "pie", "cross": (Flow(),)},
        "routed": {"graph": network, "utilization": 0.9, "queue": "pie", "spread": "gaussian", "per_demand": True},
        "SignalTrace": {"interval_s": 0.1, "input_values": np.ones((4, 1)), "output_values": np.ones((4, 1))}
        | {"inputs": ("u",), "outputs": ("y",), "starts": (0,), "notes": ()},
        "StateSpace": {"A": [[0.5]], "B": [[1.0]], "C": [[1.0]], "D": [[0.0]], "dt": 0.1},
        "SweepSpec": {"name": "w", "scenario": {}, "runs": 1, "grid": (), "over": {}},
        "agent_configs": {"law": rates, "interval_s": 0.01, "places": [(here, taken)], "controller": None},
        "arc": {"flows": 50.0, "rtt_s": 0.5, "capacity_bit_per_s": 1e7, "packet_size_bytes": 1e3, "utilization": 0.98}
        | {"epoch_s": 1.0, "target_queue_packets": 0.0, "plant": "auto", "alpha_per_packet": None, "simulation": True}
        | {"fragile_flows": 10.0, "fragile_rtt_s": 2.0, "accept": "admissible"},
        "arc_on_linux": {"design": arc, "interface": "eth0", "aqm": None, "drop": False},
        "connet": {"model": found, "method": "lqi", "track": None, "limits": [(-10.0, 10.0)], "input_weight": 1.0},
        "coordinated": {"model": model, "weight": 1.0, "information": information, "reach": None},
        "delayed_regulator": {"A": [[1.2]], "B": [[1.0]], "Q": [[1.0]], "R": [[1.0]], "W": [[1.0]], "delay": 2}
        | {"C": [[1.0]], "V": [[1.0]]},
        "disk_margin": {"loop": control.tf([1.0], [1.0, 1.0, 0.0]), "delay_s": 0.1},
        "access_link_signals": {"result": simulate_rates(fifo, 1e7), "outputs": ("delay",), "burst": False},
        "from_control": {"system": control.tf([1.0], [1.0, 1.0]), "delay_s": 0.1},
        "gain_band": {"loop": netctrl.DelayLoop(gain=1.0, delay=0.1, integrators=1, leads=(), lags=())}
        | {"gain_margin_db": 6.0, "phase_margin_deg": (30.0, 60.0)},
        "fit_demands": {"network": network, "matrices": path, "demand_unit": 1.0},
        "gravity": {"network": network, "total": 1e6, "masses": None, "std": 0.1},
        "gbn": {"samples": 50, "limits": [(0.0, 1.0)], "random": random, "hold": 10.0, "min_hold": 1},
        "hftrac": {"network": network, "interval_s": 0.01, "mu": 1.0, "architecture": "coordinated", "reach": None}
        | {"information_delay": None, "communication": "out-of-band", "horizon": "auto", "n_jobs": 1},
        "identify": {"trace": trace, "order": 1, "method": "n4sid", "horizon": None, "feedthrough": True, "seed": 0}
        | {"held_out": None, "refine": "auto", "delay": "auto"},
        "identify_impulse": {"trace": trace, "length": None},
        "identify_response": {
            "frequencies": (omega := np.linspace(0.1, 3.0, 9)),
            "response": 1.0 / (np.exp(1j * omega) - 0.5),
            "dt": 1.0,
            "order": 1,
        }
        | {"deviation": 1.0, "feedthrough": True, "refine": True},
        "information_pattern": {"network": network, "interval_s": 0.01, "links": model.links}
        | {"communication": "out-of-band"},
        "link_rate_table": {"design": hops, "model": model, "reference": 1.0, "backlog_setpoint": 0.0, "links": ()},
        "localized": {"model": model, "weight": 1.0, "information": information, "horizon": 8, "tolerance": 1e-6}
        | {"reach": None, "n_jobs": 1},
        "certify": {"law": "pi2", "rtt_s": 0.02, "window_packets": 10.0, "senders": "creno"},
        "check_certificate": {
            "certificate": netctrl.certify("pi2", rtt_s=0.02, window_packets=10.0),
            "engines": "fluid",
        },
        "certify_network": {"scenario": lot},
        "certify_queues": {"queues": netctrl.read_queues(text=_PIE), "buffer_bytes": 1e6, "rtt_s": 0.02, "flows": 4.0}
        | {"capacity_bit_per_s": 1e7, "senders": "reno"},
        "read_queues": {"path": None, "text": _PIE, "hz": 250},
        "margins": {"loop": control.tf([1.0], [1.0, 1.0, 0.0]), "delay_s": 0.1},
        "max_utilization": {
            "scenario": scenario,
            "law": lambda s: None,
            "loss": 1e-3,
            "low": 0.3,
            "high": 0.9,
            "runs": 1,
        }
        | {"tolerance": 0.1},
        "controller_in_c": {"law": netctrl.design_mpc(problem).law, "name": "my_law", "iterations": 50},
        "law_in_c": {"law": piecewise_law(problem, [-1.0], [1.0]), "name": "my_law", "fixed": True},
        "program_in_c": {"problem": problem, "lower": [-1.0], "upper": [1.0], "name": "my_program", "iterations": 9},
        "worst_iterations": {"problem": problem, "lower": [-1.0], "upper": [1.0], "most_pieces": 100},
        "window_in_c": {"law": netctrl.mpcc(2, 1e9, 1e-4).law, "name": "my_window", "fixed": True},
        "mpcc": {"flows": 4, "rate_bit_per_s": 1e9, "rtt_s": 1e-4, "bdp_bytes": None, "packet_size_bytes": 1080.0}
        | {"window_bytes": None, "bottleneck_bit_per_s": None, "horizon": 5, "queue_weight": 1.0, "window_weight": 10.0}
        | {"delayed": False, "table": None},
        "ecn_design": {"rtt_s": 1e-4, "flows": 4.0, "capacity_bit_per_s": 1e9, "packet_size_bytes": 1500.0}
        | {"gain": 0.0625, "unit": "bytes"},
        "evaluate": {"law": "pie", "parameters": None, "engine": "packet", "seeds": 1, "only": ["8.2.2"], "quick": True}
        | {"n_jobs": 1, "progress": None},
        "multisine": {"samples": 50, "limits": [(0.0, 1.0)], "random": random, "band": 0.5, "tries": 2},
        "network_model": {"network": network, "interval_s": 0.01, "routes": None},
        "pace": {"ready": pacer(law), "state": netctrl.start_pacing(law), "sample": PacingSample(0.0, 0.02)},
        "pace_trace": {"law": law} | {name: [0.1, 0.2] for name in ("times", "rtts", "delivered", "in_flight", "lost")},
        "pacing": {
            "mode": "own-rate",
            "psi": 1.0,
            "xi": 1.0,
            "past_rtts": 5,
            "period_s": 0.01,
            "flows": 1,
            "rtt_s": 0.01,
        }
        | {"max_rate_bit_per_s": None, "bottleneck_bit_per_s": None, "buffer_bytes": None},
        "pareto_front": {"loss": [1.0, 2.0], "backlog": [2.0, 1.0]},
        "piecewise_law": {"problem": problem, "lower": [-1.0], "upper": [1.0], "merge": True, "max_regions": 100},
        "queue_design": {"law": "pi2", "rtt_s": 0.02, "window_packets": 10.0, "parameters": {"target_s": 0.01}}
        | {"objective": "speed", "disk_margin": 1.0},
        "read": {"path": path, "inputs": None, "outputs": None, "interval_s": None},
        "read_interface_map": {"given": path},
        "receding_controller": {
            "problem": problem,
            "solver": "daqp",
            "form": "condensed",
            "hold": 3,
            "safe_input": None,
            "estimator": None,
            "preview": False,
        },
        "scenario_law": {"scenario": scenario},
        "simulate": {"scenario": bulk, "engine": "fluid", "design": None, "runs": 1, "n_jobs": 1, "progress": None},
        "compare": {"scenario": bulk, "engines": ["fluid", "packet"], "design": None, "seeds": 1, "progress": None},
        "simulate_packets": {"scenario": fabric, "design": None, "gains": None, "schedule": None, "progress": None},
        "simulate_rates": {"scenario": fifo, "rate_bit_per_s": 1e7, "burst": 0, "interval": None},
        "simulate_many": {"scenarios": [bulk], "n_jobs": 1, "batch_size": 1},
        "simulate_network": {"scenario": scenario, "law": None, "runs": 1, "first_run": 0, "n_jobs": 1, "watch": True},
        "solve_dare": {"A": [[0.5]], "B": [[1.0]], "Q": [[1.0]], "R": [[1.0]], "S": None, "method": "auto"},
        "mpc_estimator": {"problem": problem, "disturbance": "output", "kind": "step", "periods": ()}
        | {"process_noise": None, "disturbance_noise": 1.0, "measurement_noise": 1.0},
        "prove_mpc": {"problem": problem, "reference": 0.0, "disturbances": [], "estimator": None, "unmeasured": []},
        "design_mpc": {"problem": problem, "reference": 0.0, "disturbances": [], "estimator": None, "unmeasured": []}
        | {"preview": False, "course": None, "link": None, "inputs": ["u"], "outputs": ["y"], "input_units": [""]}
        | {"output_units": [""], "input_offset": 0.0, "output_offset": 0.0, "hold": 3, "safe_input": None},
        "link_rate_plant": {"interval_s": "10ms"},
        "mpc_from_file": {"path": path},
        "solve_mpc": {"problem": problem, "state": [0.5], "past_inputs": None, "solver": "daqp", "form": "condensed"}
        | {"reference": 1.0, "state_reference": None, "input_reference": [[0.0], [0.1]], "disturbances": None}
        | {"past_disturbances": None},
        "solve_qp": {"program": program, "solver": "daqp", "start": None, "strict": True},
        "start_pacing": {"law": law},
        "start_receding": {"controller": controller, "applied": None, "estimate": None},
        "step_receding": {"controller": controller, "state": start_receding(controller), "measured": [0.1]}
        | {"reference": None, "input_reference": [0.1], "disturbances": None},
        "what_if": {"network": network, "fail": "each-link", "scale": 1.0, "over": None, "demand_unit": None}
        | {"reroute": "shortest", "metric": None, "top": 1, "keep": None, "resume": False, "n_jobs": 1},
        "sweep": {"spec": spec, "law": lambda s: None, "n_jobs": 1},
        "to_continuous": {"plant": plant},
        "tune": {"scenario": paced, "law": lambda s: None, "objective": "loss", "low": 1.0, "high": 1.5, "runs": 1}
        | {"tolerance": 0.5},
        "window_table": {"bdp_bytes": 1e5, "rate_in_bit_per_s": 1e9, "rate_out_bit_per_s": 1e9, "interval_s": 1e-5}
        | {"horizon": 5, "queue_weight": 1.0, "window_weight": 10.0, "most_flows": 4},
    }


RESULTS = {
    *("ArcDesign", "ConnetDesign", "HftracDesign", "PacingDesign", "Result", "Figure", "Estimate"),
    *("IdentificationResult", "MpcPlan", "Labelled", "PiecewiseLaw"),
    *("QPSolution", "WindowTable", "NetctrlError", "InvalidValue", "InfeasibleProgram"),
    *("NoAdmissibleDesign", "IdentifiedModel"),
}
"""What netctrl makes and a user reads."""
ELSEWHERE = {
    *("AgentConfig", "Backpressure", "CreditPolicy", "DesignPolicy", "Fifo", "MpcCourse"),
    *("HftracPolicy", "HtbClass", "MarkingConfig", "InterfaceMap", "StaticPacing", "TcFifo"),
    *("TokenBucket", "connet_on_linux", "hftrac_on_linux", "pace_many", "sweep_to_file", "__version__"),
}
"""Records whose fields other tests go through, and those whose arguments are others' results."""


def test_every_public_name_is_called_here_or_said_not_to_be() -> None:
    assert set(usual()) | RESULTS | ELSEWHERE == set(EVERY)
    assert not set(usual()) & (RESULTS | ELSEWHERE)


@contextmanager
def bounded(what: object) -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError(f"not done after {PATIENCE_S} s: {what}")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def names(function: Any, given: dict[str, Any]) -> set[str]:
    """Of the arguments, and of what is in one of them."""
    return {*given, *inspect.signature(function).parameters}


def attempt(name: str, given: dict[str, Any]) -> str | None:
    """What is wrong with the answer; None where nothing is."""
    function = public(name)
    with bounded((name, given)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(**given)
        except NetctrlError:
            return None
        except (TypeError, ValueError) as error:
            said = set(re.findall(r"\w+", str(error)))
            if not said & names(function, given):
                return f"{type(error).__name__}: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("part", range(PARTS))
def test_random_calls_are_answered_or_refused_by_name(part: int) -> None:
    random = np.random.default_rng([11, part])
    calls = usual()
    wrong = {}
    for _ in range(-(-CALLS // PARTS)):
        name = str(random.choice(sorted(calls)))
        given = dict(calls[name])
        for argument in random.choice(sorted(given), min(len(given), int(random.integers(1, 3))), replace=False):
            odd = ODD[random.integers(len(ODD))]
            if not (argument == "law" and callable(odd)):  # what a user's own function raises is the user's
                given[str(argument)] = odd
        if said := attempt(name, given):
            wrong[name, said] = given
    assert not wrong, "\n".join(f"{name}(**{given!r}): {said}" for (name, said), given in wrong.items())


@pytest.mark.slow
def test_the_usual_calls_are_answered() -> None:
    """But for files that aren't there: otherwise odd arguments would never be reached."""
    refused = {}
    for name, given in usual().items():
        try:
            public(name)(**given)
        except NetctrlError as refusal:
            if "nonexistent" not in str(refusal):
                refused[name] = str(refusal)
    assert refused == {}
