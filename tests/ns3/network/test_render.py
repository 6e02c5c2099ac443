"""The text of exported network programs, and the laws in it. After a wanted change, store the text anew, read the diff:

python tests/ns3/network/test_render.py
"""

from __future__ import annotations

import re
import subprocess

import msgspec
import numpy as np
import pytest
from kernel_parts import called
from numba import njit
from places import STORED

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.link_rate.distributed_step import (
    LinkMemory,
    LinkRates,
    Measured,
    command_link,
    link_memory,
    measure_link,
)
from netctrl.laws.link_rate.fir import BACKLOG, RATE
from netctrl.model.datasets import network_path
from netctrl.model.design.design import Provenance
from netctrl.model.law import LinkRateLaw, MyopicGain
from netctrl.model.network import Demand, Link, Network, read_network
from netctrl.ns3.network import control as ns3_control
from netctrl.ns3.network import render as ns3_links
from netctrl.ns3.network.render import render
from netctrl.ns3.program import find_ns3
from netctrl.ns3.tcp_aqm.render import MARKER
from netctrl.scenario.builders import routed
from netctrl.scenario.network.graph import graph_of
from netctrl.scenario.network.policy import (
    Backpressure,
    CreditPolicy,
    Fifo,
    HftracPolicy,
    Messages,
    Policy,
    StaticPacing,
    messages_of,
)
from netctrl.scenario.scenario import Scenario
from netctrl.sim.network import plan as link_plan_module
from netctrl.sim.network.demands import DemandSource
from netctrl.sim.network.kernel import advance_links, command_links
from netctrl.sim.network.message_kernel import advance_messages
from netctrl.sim.network.messages import message_state, message_table
from netctrl.sim.network.plan import link_plan, run_tables
from netctrl.sim.network.problem import link_problem, link_state

GENERATED = {
    "links": ("netctrl-link-law.h", "scenario.txt"),
    "links-tcp": ("scenario.txt",),
    "links-late": ("scenario.txt",),
}
set_commands = called(command_links)
LATE = Messages(loss=0.1, jitter=(0.0, 0.02), asynchronous=True)


def origin(*argv: str) -> Provenance:
    return Provenance(
        netctrl="0.1.0", git_revision=None, argv=argv, seed=1, input_hashes={}, python="3.11", libraries={}
    )


def scenario(policy: Policy, messages: Messages | None = None, name: str = "testbed", **fields) -> Scenario:
    network = read_network(network_path(name))
    if messages is not None:
        policy = msgspec.structs.replace(policy, messages=messages)
    return routed(network, **{"name": name, "control": policy, "duration": 3.0, "warmup": 0.5} | fields)


def coordinated(horizon: int | str = 24, **fields) -> HftracPolicy:
    return HftracPolicy(**({"architecture": "coordinated", "mu": 0.5, "horizon": horizon} | fields))


def rendered(requested: Scenario, law: LinkRateLaw | None = None, **options) -> dict[str, str]:
    plan = link_plan(requested, netctrl.scenario_law(requested) if law is None else law)
    return render(requested, plan, **({"provenance": origin()} | options))


def rounded(requested: Scenario) -> MyopicGain:
    """Its law to three decimals: the cost is flat at its least, so last digits depend on the machine."""
    law = netctrl.scenario_law(requested)
    return msgspec.structs.replace(
        law, backlog_gain=np.round(law.backlog_gain, 3), rate_gain=np.round(law.rate_gain, 3)
    )


def cases() -> dict[str, dict[str, str]]:
    """Of laws without responses: how many numbers of these are rounding differs from machine to machine."""
    myopic = coordinated("auto", architecture="myopic", links=("e1", "s13"), backlog_setpoint=1e3)
    central = coordinated("auto", architecture="centralized", information_delay=1)
    carried = {"id": "p2", "count": 5, "sender": "vegas", "start": (0.0, 0.5), "ecn": True}
    managed = {"flows": [carried], "queue": PieQueue(target="5ms")}
    return {
        "links": rendered(scenario(myopic), rounded(scenario(myopic))),
        "links-tcp": rendered(scenario(StaticPacing(factor=1.1), **managed)),
        "links-late": rendered(scenario(central, LATE, "tandem", packet_size=300), sampled_delays=True),
    }


NUMBER = re.compile(r"(-?\d+\.?\d*(?:e[-+]?\d+)?)")


def same(text: str, other: str) -> bool:
    """Equal but for the last digits of numbers."""
    left, right = NUMBER.split(text), NUMBER.split(other)
    return left[::2] == right[::2] and bool(
        np.allclose(np.array(left[1::2], float), np.array(right[1::2], float), rtol=1e-9, atol=1e-12)
    )


@pytest.mark.parametrize("case", ["links", "links-tcp", "links-late"])
def test_generated_text_is_what_is_stored(case):
    files = cases()[case]
    assert set(re.findall(r'#include "([^/"]+)"', "".join(files.values()))) <= set(files)
    assert files["netctrl-link-law.h"].startswith(MARKER + "\n")
    for name in GENERATED[case]:
        assert same(files[name], (STORED / case / name).read_text(encoding="utf-8")), name


def test_one_program_runs_every_scenario():
    first, *others = cases().values()
    for other in others:
        assert {name for name in first if first[name] != other[name]} == {"scenario.txt"}


def test_names_of_any_kind_are_words():
    """A blank, a comma or = would part a record, # would end it."""
    network = Network(
        links=(Link(id="a=1, b # c", source="New York", target="Köln", capacity=1e6),),
        demands=(Demand(id="x y", source="New York", target="Köln", mean=1e5),),
    )
    text = rendered(routed(network, duration=1.0, warmup=0.0))["scenario.txt"]
    assert "link a%3D1%2C%20b%20%23%20c source=New%20York target=K%C3%B6ln capacity=1000000 " in text
    assert "\ndemand x%20y source=New%20York target=K%C3%B6ln\n" in text


# --- what can't be expressed -----------------------------------------------------------------------------------------


def changed(**link) -> Scenario:
    requested = scenario(Fifo())
    graph = graph_of(requested)
    links = (msgspec.structs.replace(graph.links[0], **link), *graph.links[1:])
    return routed(msgspec.structs.replace(graph, links=links), duration=3.0, warmup=0.5)


@pytest.mark.parametrize(
    ("requested", "options", "field", "says"),
    [
        (scenario(Backpressure()), {}, "control.kind", "fifo, static"),
        (changed(buffer=1000.0), {}, "links.e1.buffer", "a packet"),
        (changed(buffer=1e10), {}, "links.e1.buffer", "4294967294"),
        (changed(capacity=1e12), {}, "links.e1.capacity", "100 ns"),
        (changed(delay=1e-12), {}, "links.e1.delay", "ns"),
        (scenario(Fifo(), queue=CodelQueue(target=1e-7)), {}, "links.e1.queue.target", "1024 ns"),
        (scenario(Fifo(), packet_size=99), {}, "packet_size", "100 to 65000"),
        (scenario(Fifo(), packet_size=1500.5), {}, "packet_size", "whole"),
    ],
)
def test_what_ns3_cannot_express_is_named(requested, options, field, says):
    with pytest.raises(InvalidValue, match=says) as refused:
        rendered(requested, **options)
    assert refused.value.argument == field


def test_what_is_too_large_is_named(monkeypatch):
    monkeypatch.setattr(ns3_control, "_MAX_TAPS", 100)
    with pytest.raises(InvalidValue, match="larger mu"):
        rendered(scenario(coordinated()))
    monkeypatch.setattr(ns3_control, "_MAX_TAPS", 10_000)
    monkeypatch.setattr(ns3_links, "_MAX_PAIRS", 24)
    with pytest.raises(InvalidValue, match="at most 4 links"):
        rendered(scenario(coordinated(architecture="myopic"), LATE))
    monkeypatch.setattr(ns3_links, "_MAX_HOPS", 3)
    with pytest.raises(InvalidValue, match=r"flows\.p2\.split"):
        rendered(scenario(Fifo()))
    monkeypatch.setattr(link_plan_module, "_MAX_TABLE", 300 * 2 * 8 - 1)
    with pytest.raises(InvalidValue, match="shorter duration"):
        run_tables(scenario(Fifo()), link_plan(scenario(Fifo())), range(1))


def test_the_table_of_a_run_is_what_the_fluid_draws():
    requested = scenario(coordinated(), LATE)
    plan = link_plan(requested, netctrl.scenario_law(requested))
    first, third = run_tables(requested, plan, (0, 2))
    demand = DemandSource(requested, range(3)).draw(300)
    for run, table in ((0, first), (2, third)):
        assert np.array_equal(np.frombuffer(table, count=600).reshape(300, 2), demand[:, :, run])
    assert len(first) == 300 * (2 * 8 + 4 * plan.law.messages + 5) + 5 * 4
    assert plan.split == ((0, 0, 1.0), (1, 1, 1.0), (0, 2, 1.0), (1, 2, 1.0), (1, 3, 0.75), (1, 4, 0.25))


def test_what_tcp_carries_sends_no_udp():
    requested = scenario(Fifo())
    carried = scenario(Fifo(), flows=[{"id": "p1"}])
    plain, tcp = (
        np.frombuffer(next(run_tables(each, link_plan(each), (0,))), count=600).reshape(300, 2)
        for each in (requested, carried)
    )
    assert not tcp[:, 0].any()
    assert plain[:, 0].mean() > 15e6
    assert np.array_equal(tcp[:, 1], plain[:, 1])


# --- the laws, compiled ----------------------------------------------------------------------------------------------

LAWS: dict[str, Scenario] = {
    "fifo": scenario(Fifo()),
    "static": scenario(StaticPacing(factor=1.05, links=("e1",))),
    "god": scenario(coordinated(architecture="god", horizon="auto")),
    "centralized": scenario(coordinated(architecture="centralized", horizon="auto", information_delay=2)),
    "coordinated": scenario(coordinated()),
    "exact in band": scenario(coordinated("exact", communication="in-band", rate_scale=1.02)),
    "myopic": scenario(coordinated(architecture="myopic", horizon="auto", backlog_setpoint=5e3)),
    "myopic filters": scenario(coordinated(20, architecture="myopic")),
    "partly paced": scenario(coordinated(links=("e2", "s13"))),
    "late": scenario(coordinated(), LATE),
    "late exact": scenario(coordinated("exact"), LATE),
    "late credit": scenario(CreditPolicy(), LATE),
    "late centralized": scenario(
        coordinated(architecture="centralized", horizon="auto", information_delay=2), Messages(loss=0.2)
    ),
    "late god": scenario(coordinated(architecture="god", horizon="auto"), LATE),
}

REPLAY = r"""
#include "netctrl-link-controllers.h"
#include "netctrl-records.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

template <class Value> std::vector<Value> Numbers(std::size_t count) {
    std::vector<Value> found(count);
    for (Value& one : found) {
        double number = 0.0;
        if (std::scanf("%lf", &number) != 1) std::exit(1);
        one = static_cast<Value>(number);
    }
    return found;
}

void Print(const std::vector<double>& rates) {
    for (const double rate : rates) std::printf("%.17g ", rate);
    std::printf("\n");
}

void Replay(const netctrl::LinkRates& law, bool late) {
    const std::size_t links = law.nominal.size();
    const auto steps = Numbers<int>(1)[0];
    const auto measure = [&] {
        std::vector<netctrl::Measured> measured;
        for (std::size_t link = 0; link < links; ++link) {
            const auto m = Numbers<double>(4);
            measured.push_back({m[0], m[1], m[2], m[3]});
        }
        return measured;
    };
    netctrl::LinkControllers controllers(law, late ? Numbers<int64_t>(links) : std::vector<int64_t>(links));
    for (int step = 0; step < steps; ++step) {
        const auto ticks = Numbers<int64_t>(static_cast<std::size_t>(law.messages));
        const auto given = late ? Numbers<uint8_t>(links) : std::vector<uint8_t>(links, 1);
        const std::vector<bool> received(given.begin(), given.end());
        const auto measured = measure();
        for (int64_t tick = 0; tick < law.ticks; ++tick) {
            const auto& rates = controllers.Act(step * law.ticks + tick, measured, ticks, received);
            if (tick == law.ticks - 1) Print(rates);
        }
    }
}

int main(int, char** argv) {
    for (netctrl::Record& record : netctrl::ReadRecords(argv[1])) {
        if (record.kind == "control") {
            const bool late = record.Take<bool>("late");
            record.Take("interval");
            record.Take("links");
            Replay(netctrl::TakeLinkRates(record), late);
            record.End();
        }
    }
}
"""


@pytest.fixture(scope="module")
def replay(tmp_path_factory):
    """What the C++ laws, each with the numbers of its own export, answer to numbers on stdin."""
    folder = tmp_path_factory.mktemp("laws")
    for number, requested in enumerate(LAWS.values()):
        files = rendered(requested)
        (folder / f"scenario{number}.txt").write_text(files["scenario.txt"])
    for name in ("netctrl-arrays.h", "netctrl-link-law.h", "netctrl-link-controllers.h", "netctrl-records.h"):
        (folder / name).write_text(files[name])
    (folder / "laws.cc").write_text(REPLAY)
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    subprocess.run([find_ns3().compiler, *strict, "laws.cc", "-o", "laws"], cwd=folder, check=True, timeout=120)

    def ask(name: str, numbers: list[float]) -> np.ndarray:
        command = [folder / "laws", folder / f"scenario{list(LAWS).index(name)}.txt"]
        text = "\n".join(map(repr, map(float, numbers)))
        ran = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=60)
        return np.array([line.split() for line in ran.stdout.splitlines()], dtype=float)

    return ask


def in_time(requested: Scenario) -> tuple[list[float], np.ndarray]:
    """What links measure in the fluid, and what its kernel answers, (steps, N)."""
    ready = link_problem(requested, netctrl.scenario_law(requested))
    N, steps, state = ready.model.n_links, requested.steps, link_state(ready, 1)
    demand = DemandSource(requested, range(1)).draw(steps)
    watched, mask = np.zeros((3, N, steps)), state.history.shape[1] - 1
    numbers, commands = [float(steps)], np.zeros((steps, N))
    before = np.full(N, ready.plant.backlog_setpoint)
    for step in range(steps):
        sent, backlog = (state.history[kind * N : (kind + 1) * N, step & mask, 0] for kind in (RATE, BACKLOG))
        lost = watched[2, :, step - 1] if step else np.zeros(N)
        measured = np.column_stack([sent, backlog, sent + lost + backlog - before, lost])
        numbers += measured.ravel().tolist()
        before = backlog.copy()
        set_commands(ready.taps, *ready.tiles, state, step)
        commands[step] = state.command[:N, 0]
        advance_links(ready.plant, ready.taps, *ready.tiles, state, demand[step : step + 1], step, 0, watched, None)
    return numbers, commands


def late(requested: Scenario) -> tuple[list[float], np.ndarray]:
    """The same where messages may be late."""
    law = netctrl.scenario_law(requested)
    ready = link_problem(requested, law)
    N, rates = ready.model.n_links, link_plan(requested, law).law
    phase, extra, received = message_table(requested, 0, rates.messages, N)
    demand = DemandSource(requested, range(1)).draw(requested.steps)[:, :, 0]
    state = message_state(ready, rates, phase)
    numbers, commands = [float(requested.steps), *phase.tolist()], np.zeros((requested.steps, N))
    for step in range(requested.steps):
        this = slice(step, step + 1)
        fixed = ready.plant, rates, ready.taps.mode, state
        sums = np.zeros((6, N)), np.zeros(1), np.zeros((3, N, 0))
        advance_messages(*fixed, np.ascontiguousarray(demand[this]), extra[this], received[this], step, 0, *sums, None)
        known = state.memory.measured[: 2 * N, step & rates.mask].reshape(2, N)
        numbers += [*extra[step, : rates.messages].tolist(), *received[step].astype(float).tolist()]
        numbers += np.column_stack([*known, np.zeros((N, 2))]).ravel().tolist()
        commands[step] = state.memory.command
    return numbers, commands


@njit
def stepped(law: LinkRates, memory: LinkMemory, measured: np.ndarray, commands: np.ndarray) -> None:
    """What the law of `netctrl.laws.link_rate.distributed_step` answers to (steps, N, 4) where all is heard in time."""
    for tick in range(len(measured)):
        for link in range(measured.shape[1]):
            rate, backlog, arrived, lost = measured[tick, link]
            measure_link(law, memory, link, Measured(rate, backlog, arrived, lost), tick, memory.phase)
        for link in range(measured.shape[1]):
            command_link(law, memory, link, tick, True)
        commands[tick] = memory.command


@pytest.mark.needs("ns3")
@pytest.mark.parametrize("name", LAWS)
def test_laws_in_cpp_are_those_of_the_kernel(replay, name):
    """The same bits as the compiled law; the fluid's kernel adds the terms in another order."""
    requested = LAWS[name].replace(duration=5.0 * LAWS[name].duration)
    numbers, expected = (late if name.startswith("late") else in_time)(requested)
    found, same_law = replay(name, numbers), expected
    if isinstance(requested.control, HftracPolicy):
        assert expected.std(axis=0).min() > 1e5
    if messages_of(requested.control).ideal:
        law, N = link_plan(requested, netctrl.scenario_law(requested)).law, expected.shape[1]
        same_law = np.empty_like(expected)
        stepped(law, link_memory(law, np.zeros(N)), np.array(numbers[1:]).reshape(-1, N, 4), same_law)
    np.testing.assert_array_equal(found, same_law)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())


if __name__ == "__main__":
    for case, files in cases().items():
        (STORED / case).mkdir(parents=True, exist_ok=True)
        for each in GENERATED[case]:
            (STORED / case / each).write_text(files[each], encoding="utf-8")
