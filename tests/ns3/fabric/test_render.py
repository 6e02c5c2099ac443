"""The text of exported data centres, and their laws in C++ by themselves. After a wanted change, store the text anew:

python tests/ns3/fabric/test_render.py
"""

from __future__ import annotations

import inspect
from functools import cache

import msgspec
import numpy as np
import pytest
from fabric_support import data_centre, nanoseconds, poisson
from hypothesis import given, settings
from hypothesis import strategies as st
from ns3_support import assert_one_program, assert_stored, compiled_parts, origin, store

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.window.law import SILENT, Acknowledged, Hop
from netctrl.laws.window.records import LAWS, Dctcp, FixedWindow, Hpcc, Mpcc, Scheme, mpcc_scheme
from netctrl.ns3.fabric import render as ns3_fabric
from netctrl.ns3.fabric.render import render, run_table
from netctrl.ns3.laws import window_laws_header
from netctrl.scenario.fabric.design import design_dumbbell, design_gains
from netctrl.scenario.fabric.flows import with_sender
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.fabric.plan import FabricPlan
from netctrl.scenario.fabric.topology import Dumbbell, FatTree, Packets, Topology
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.fabric import fabric_plan
from netctrl.sim.packet.run import simulate_packets

GENERATED = dict.fromkeys(("fabric", "fabric-tree", "fabric-dctcp", "fabric-hpcc"), ("scenario.txt",))
GENERATED["fabric"] += ("netctrl-window-laws.h",)
ONE = Flow(id="one", source=0, target=4, offers=1e4)


def thesis():
    """Section 5.2, with a provenance that is the same anywhere."""
    made = netctrl.mpcc(
        4, 1e9, 34.752e-6, bdp_bytes=3750.0, window_bytes=3750.0, window_weight=10.0, table=(1, 12), delayed=True
    )
    certificate = msgspec.structs.replace(made.certificate, qp_difference=0.0)  # rounding differs between machines
    return msgspec.structs.replace(made, certificate=certificate, provenance=origin())


TREE = FatTree(pods=1, racks=2, hosts_per_rack=2, aggregations=2, cores=1)
HOLD = Mpcc(variant="hold")


def fat_tree(sender: Scheme = HOLD, network: Topology = TREE, **fields) -> Scenario:
    """Small, and with all that a scenario may have."""
    given = {
        "name": 'tree */ "2"',
        "buffer": 5e5,
        "duration": 2e-4,
        "watch": Watch(flows=(1, 0), ports=("s1>s2",)),
        "seed": 3,
    }
    return data_centre(network, sender, poisson(load=0.3), **(given | fields))


def cases() -> dict[str, dict[str, str]]:
    design = thesis()
    plant = design_dumbbell(design.law)
    plan = fabric_plan(plant, design_gains(design.law))
    tree = fat_tree()
    loaded = fat_tree(Hpcc())
    peer = fat_tree(Dctcp(initial_window=1e4), network=Dumbbell(), watch=Watch(), buffer=None)
    return {
        "fabric-dctcp": render(peer, fabric_plan(peer), provenance=origin()),
        "fabric": render(plant, plan, design=design, provenance=origin()),
        "fabric-hpcc": render(loaded, fabric_plan(loaded), provenance=origin()),
        "fabric-tree": render(tree, fabric_plan(tree), provenance=origin("netctrl", 'a "quote" */')),
    }


@pytest.mark.parametrize("case", GENERATED)
def test_generated_text_is_what_is_stored(case):
    assert_stored(case, cases()[case], GENERATED[case])


def test_every_law_is_printed():
    text = window_laws_header(LAWS)
    for law in LAWS:
        name = f"{law.name.capitalize()}Law"
        about = "\n".join(f"/// {line}".rstrip() for line in (inspect.getdoc(law.step) or "").splitlines())
        assert f"{about}\nstruct {name}\n" in text
        assert f"        with({name}{{}});" in text


def test_one_program_runs_every_scenario():
    assert_one_program(cases())


# --- what can't be expressed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"pfc": Pfc()}, "pfc", "can't pause"),
        ({"packets": Packets(header=10, telemetry=0)}, "packets.payload", "at least 30 bytes"),
        ({"packets": Packets(ack=20, telemetry=0)}, "packets.ack", "at least 30 bytes"),
        ({"packets": Packets(payload=70e3)}, "packets.payload", "at most 65000"),
        ({"host_rate": 5e12}, "network", "counts in ns"),
        ({"buffer": 50}, "buffer", "an acknowledgement"),
        ({"buffer": 5e9}, "buffer", "an acknowledgement"),
    ],
    ids=str,
)
def test_what_ns3_cannot_express_is_named(fields, field, says):
    scenario = data_centre(Dumbbell(), Mpcc(), ONE, **fields)
    with pytest.raises(InvalidValue, match=says) as refused:
        render(scenario, fabric_plan(scenario), provenance=origin())
    assert refused.value.argument == field


def test_more_flows_than_tcp_has_ports_are_refused(monkeypatch):
    monkeypatch.setattr(ns3_fabric, "_MAX_TCP", 1)
    scenario = data_centre(Dumbbell(), Dctcp(), ONE, msgspec.structs.replace(ONE, id="two"))
    with pytest.raises(InvalidValue, match="a TCP port"):
        render(scenario, fabric_plan(scenario), provenance=origin())


# --- a Design in a data centre ---------------------------------------------------------------------------------------


def test_the_plant_of_a_design_has_its_round_trip_and_its_gains():
    design = thesis()
    plant = design_dumbbell(design.law)
    plan = fabric_plan(plant, design_gains(design.law))
    own = fabric_plan(with_sender(plant, FixedWindow()))
    assert own.senders.laws[0].path.base_rtt == pytest.approx(34_752, abs=6)  # links are whole nanoseconds
    assert plan.senders.laws[0].path.base_rtt == pytest.approx(34_752)
    np.testing.assert_array_equal(plan.senders.laws[0].table[1:], design.law.table.gain)
    assert plan.senders.laws[0].table[4] == pytest.approx(design.law.gain, rel=1e-12)
    assert plan.senders.laws[0].parameters.variant == 1  # delayed


def test_the_simulator_s_own_gains_are_those_of_a_design():
    design = thesis()
    scenario = with_sender(netctrl.read("mpcc-dumbbell"), mpcc_scheme(design.law))
    made = fabric_plan(scenario).senders.laws[0].table[1:13]
    np.testing.assert_allclose(made, design.law.table.gain, rtol=1e-12)


def test_a_design_that_is_no_dumbbell_is_refused():
    short = netctrl.mpcc(4, 1e9, 20e-6)
    with pytest.raises(InvalidValue, match="transmission times in a dumbbell"):
        design_dumbbell(short.law)
    small = netctrl.mpcc(4, 1e9, 1e-4, packet_size_bytes=100.0)
    with pytest.raises(InvalidValue, match="the size of the headers"):
        design_dumbbell(small.law)
    late = netctrl.mpcc(4, 1e9, 1e-4, table=(2, 8))
    with pytest.raises(InvalidValue, match="from 1 flow on"):
        design_gains(late.law)


# --- the flows of a run ----------------------------------------------------------------------------------------------


def test_a_table_has_the_simulator_s_flows_and_paths():
    scenario = fat_tree()
    plan, result = fabric_plan(scenario), simulate_packets(scenario)
    table = np.frombuffer(run_table(scenario, plan), "<i8")
    rows = table[1:].reshape(table[0], -1)
    np.testing.assert_array_equal(
        rows[:, :4].T,
        [*(result.transfers[name] for name in ("source", "target", "size")), nanoseconds(result, "transfers", "start")],
    )
    assert rows[:3, 5].tolist() == [1, 0, -1]
    for source, target, ways in ((rows[:, 0], rows[:, 1], rows[:, 6:12]), (rows[:, 1], rows[:, 0], rows[:, 12:])):
        for start, end, way in zip(source, target, ways, strict=True):
            ports = way[way >= 0]
            assert plan.ports.source[ports[0]] == start
            assert plan.ports.target[ports[-1]] == end
            np.testing.assert_array_equal(plan.ports.target[ports[:-1]], plan.ports.source[ports[1:]])


# --- the law, compiled -----------------------------------------------------------------------------------------------

SCHEMES = {
    "delay-free": Mpcc(),
    "delay-free, table": Mpcc(window=20e3, window_weight=10.0),
    "delayed": Mpcc(variant="delayed", window_weight=0.01),
    "delayed, table": Mpcc(variant="delayed", window=20e3, horizon=10),
    "feed-forward": Mpcc(variant="feed-forward"),
    "hold": Mpcc(variant="hold", horizon=1),
    "its own packet and path": Mpcc(variant="delayed", bdp=9e3, rtt=7e-6, packet_size=1080, initial_window=5e3),
}
SCENARIOS = {name: fat_tree(scheme, duration=5e-3) for name, scheme in SCHEMES.items()} | {
    "thesis": netctrl.read("mpcc-dumbbell")
}

PARTS = r"""
#include "netctrl-fabric-tables.h"

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace netctrl::fabric;

double Number() {
    double found = 0.0;
    if (std::scanf("%lf", &found) != 1) std::exit(0);
    return found;
}

void Replay(const FlowLaw& law, const PathRow& kind) {
    const auto flow = law.Begin(kind);
    while (true) {
        netctrl::Acknowledged seen{};
        for (std::size_t h = 0; h < static_cast<std::size_t>(kind.path.hops); ++h) {
            seen.hops[h].queue = Number();
            seen.hops[h].flows = Number();
        }
        flow->Acknowledge(seen, kind);
        std::printf("%.17g\n", flow->Window());
    }
}

void Count() {
    FlowCounter counter(static_cast<int64_t>(Number()));
    while (true) {
        const auto flow = static_cast<int64_t>(Number());
        const auto now = static_cast<int64_t>(Number());
        if (flow >= 0) counter.See(static_cast<uint32_t>(flow), now);
        else std::printf("%lld\n", static_cast<long long>(counter.Count(now)));
    }
}

/// count, or FILE KIND: the law of a scenario on a kind of path.
int main(int argc, char** argv) {
    if (argc == 2) Count();
    std::unique_ptr<FlowLaw> law;
    std::vector<PathRow> paths;
    for (netctrl::Record& record : netctrl::ReadRecords(argv[1])) {
        if (record.kind == "senders") law = TakeFlowLaw(record);
        else if (record.kind == "path") paths.push_back(netctrl::Made<PathRow>(record));
        else record.TakeRest();
        record.End();
    }
    Replay(*law, paths[std::stoul(argv[2])]);
}
"""


@cache
def plan_for(name: str) -> FabricPlan:
    return fabric_plan(SCENARIOS[name])


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """What the law of each export, and the flow counter, answer to numbers on stdin."""
    folder = tmp_path_factory.mktemp("parts")
    for number, (law, scenario) in enumerate(SCENARIOS.items()):
        files = render(scenario, plan_for(law), provenance=origin())
        (folder / str(number)).write_text(files["scenario.txt"])
    program = compiled_parts(folder, PARTS, files, ("centre", "files", "records", "window-laws", "fabric-tables"))
    return lambda which, numbers: np.ravel(program(which.split("/"), numbers))


def told(plan: FabricPlan, kind: int, rng: np.random.Generator, steps: int) -> np.ndarray:
    """(steps, hops, 2) queues that come and go, often all empty; 0 to more flows than the table has."""
    hops = int(plan.senders.laws[kind].path.hops)
    queues = rng.integers(0, 40_000, (steps, hops)) * (rng.random((steps, hops)) < 0.4)
    return np.stack([queues, rng.choice([0, 1, 2, 3, 5, 8, 13, 21], (steps, hops))], axis=-1).astype(float)


@pytest.mark.needs("ns3")
@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("name", SCHEMES)
def test_mpcc_in_cpp_is_that_of_python_acknowledgement_by_acknowledgement(parts, name, kind):
    """With its gains, paths, tables and memory as they are exported."""
    plan = plan_for(name)
    seen = told(plan, kind, np.random.default_rng(11), 500)
    state, memory = (
        plan.senders.law.state(plan.senders.laws[kind].start, 0.0, 0.0),
        np.zeros(max(each.memory for each in plan.senders.laws)),
    )
    quiet = Acknowledged(0.0, 0.0, 0.0, 0.0, 0.0, False, False, False, SILENT)
    expected = []
    for row in seen.tolist():
        hops = (*(Hop(queue, flows, 0.0, 0.0) for queue, flows in row), *SILENT)[:5]
        ack, path = quiet._replace(hops=hops), plan.senders.laws[kind].path
        state = plan.senders.law.step(
            state, ack, path, plan.senders.laws[0].parameters, plan.senders.laws[kind].table, memory
        )
        expected.append(state.window)
    found = parts(f"{list(SCENARIOS).index(name)}/{kind}", seen.ravel().tolist())
    assert len(plan.flows.size) >= seen[..., 1].max()  # no port counts more; the program's table ends there
    assert len(set(expected)) >= 7
    np.testing.assert_array_equal(found, expected)


@pytest.mark.needs("ns3")
def test_the_thesis_s_windows(parts):
    """Section 5.2, by the theory note: W at Q = 0, 100, 500, 1100, 5000 for weights 1:1; the least window is a byte."""
    numbers = [number for queue in (0, 100, 500, 1100, 5000) for number in (queue, 4, 0, 0)]
    found = parts(f"{list(SCENARIOS).index('thesis')}/0", numbers)
    np.testing.assert_allclose(found, [937.5, 884.007327, 670.036636, 349.080600, 1.0], atol=5e-7)


@pytest.mark.needs("ns3")
@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 6), st.integers(0, 40)), min_size=1, max_size=60))
def test_flows_are_counted_until_their_time_is_over(parts, happened):
    """Against a count of all last sights."""
    last, now, expected, numbers = {}, 0, [], [25.0]
    for flow, later in happened:
        now += later
        numbers += [flow, now]
        if flow >= 0:
            last[flow] = now
        else:
            expected.append(sum(time >= now - 25 for time in last.values()))
    assert parts("count", numbers).tolist() == expected


if __name__ == "__main__":
    store(cases(), GENERATED)
