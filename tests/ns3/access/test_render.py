"""The text of exported access links, and their parts in C++ by themselves. After a wanted change, store the text anew:

python tests/ns3/access/test_render.py
"""

from __future__ import annotations

import re
import subprocess

import msgspec
import numpy as np
import pytest
from access_links import crossing, link_of, sources
from hypothesis import given, settings
from hypothesis import strategies as st
from places import STORED

import netctrl
from netctrl.datasets import model_path
from netctrl.errors import InvalidValue
from netctrl.laws.tracking.online_map import start_online_map
from netctrl.laws.tracking.reference_governor import govern, reference_governor
from netctrl.laws.tracking.schedule import GainSchedule, scheduled
from netctrl.laws.tracking.tracking import step_tracking, tracking_gains
from netctrl.model.design.design import Provenance
from netctrl.model.identified import IdentifiedModel, read_model
from netctrl.model.law import LqgLaw, LqiLaw, TrackingLaw
from netctrl.ns3.access.render import render
from netctrl.ns3.program import find_ns3
from netctrl.plants.access import pause_mean
from netctrl.scenario.access.flows import PremiumFlow, RegulatorFailure, TcpSenders
from netctrl.scenario.access.plan import AccessLinkPlan, access_link_plan
from netctrl.scenario.access.scenario import access_link
from netctrl.scenario.scenario import Scenario
from netctrl.sim.access import draws as fifo_draws
from netctrl.sim.access.draws import flow_pauses, run_table
from netctrl.sim.access.problem import flow_streams
from netctrl.sim.access.run import AccessLink

GENERATED = ("gains.h", "netctrl-access-laws.h", "netctrl-tracking-law.h", "scenario.h")
PRINTED = read_model(model_path("connet-paper"))


def origin(*argv: str) -> Provenance:
    return Provenance(
        netctrl="0.1.0", git_revision=None, argv=argv, seed=1, input_hashes={}, python="3.11", libraries={}
    )


NUMBER = re.compile(r"(-?\d+\.?\d*(?:e[-+]?\d+)?)")


def same(text: str, other: str) -> bool:
    """Equal but for the last digits of numbers: those of a Riccati equation differ from machine to machine."""
    left, right = NUMBER.split(text), NUMBER.split(other)
    return left[::2] == right[::2] and bool(
        np.allclose(np.array(left[1::2], float), np.array(right[1::2], float), rtol=1e-6, atol=1e-9)
    )


def observer(**fields) -> dict:
    """A law for rate and burst, delay and throughput, of two states; by hand: the same numbers anywhere."""
    return {
        "interval_s": 1.0,
        "inputs": ("R", "burst"),
        "outputs": ("delay", "throughput"),
        "input_units": ("Mbit/s", ""),
        "output_units": ("ms", "Mbit/s"),
        "input_offset": np.array([55.0, 6.0]),
        "output_offset": np.array([0.6, 55.0]),
        "low": np.array([0.0, 1.0]),
        "high": np.array([95.0, 20.0]),
        "A": np.array([[0.5, 0.125], [0.0, 0.25]]),
        "B": np.array([[0.01, 0.02], [0.25, 0.0]]),
        "C": np.array([[1.0, 0.0], [0.0, 1.0]]),
        "D": np.array([[0.005, 0.03125], [0.75, 0.0]]),
        "L": np.array([[0.25, 0.0], [0.0, 0.125]]),
    } | fields


TWO = LqiLaw(
    **observer(),
    K=np.array([[0.5, 0.25], [2.0, -0.125]]),
    W=np.eye(2),
    integral_gain=np.array([[-0.0625, -0.25], [-4.0, 0.0625]]),
)
LQI = netctrl.connet(PRINTED, track="delay", limits=[(0.0, 95.0)])
PAPER = netctrl.connet(PRINTED, method="paper", limits=[(0.0, 95.0)])
FAILURES = (RegulatorFailure(start=5.3, stop=7.7, rate=50e6),)
SOURCES = sources(
    {"share": 0.5, "failures": FAILURES},
    {"count": 1, "burst": 3, "share": 0.2, "offered": 30e6},
    {"count": 3, "burst": 20, "share": 0.3},
)
CROSS = crossing({"hop": 1, "rate": 20e6}, {"hop": 0, "rate": 5e6, "burst": 4})
SMALL = PremiumFlow(size=200)
BUSY = link_of(name="busy", hops=2, limit=20, regulated=SOURCES, cross=CROSS, premium=SMALL, duration=9.0, seed=5)


def stepped(*values: list[float], times: int) -> np.ndarray:
    return np.repeat(np.array(values), times, axis=0)


def cases() -> dict[str, dict[str, str]]:
    plain = access_link(duration=10.0)
    plan = access_link_plan(plain, PAPER.law, [0.676, 0.361])
    desired = stepped([0.6, 59.0], [0.7, 50.0], [0.6, 59.0], times=3)
    two = access_link_plan(BUSY, TWO, desired, measured="period", start=2, first_rate=40.0)
    return {
        "fifo": render(plain, plan, design=fixed(PAPER), provenance=origin()),
        "fifo-busy": render(BUSY, two, provenance=origin("netctrl", 'a "quote" */')),
    }


def fixed(design):
    """With a provenance that is the same anywhere."""
    return msgspec.structs.replace(design, provenance=origin())


@pytest.mark.parametrize("case", ["fifo", "fifo-busy"])
def test_generated_text_is_what_is_stored(case):
    files = cases()[case]
    assert set(GENERATED) < set(files)
    assert set(re.findall(r'#include "([^/"]+)"', "".join(files.values()))) <= set(files)
    for name in GENERATED:
        assert same(files[name], (STORED / case / name).read_text(encoding="utf-8")), name


def test_fixed_files_are_the_same_in_every_export():
    one, other = cases().values()
    assert [name for name in set(one) - set(GENERATED) if one[name] != other[name]] == []


# --- what can't be expressed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"discipline": "wfq"}, "discipline", "not in stock ns-3"),
        ({"every": {"sender": TcpSenders()}}, "flows.source0.sender", "only in netctrl's simulator"),
        ({"limit": 1}, "limit", "at least 2"),
        ({"packet_size": 999.5}, "packet_size", "whole number of bytes"),
        ({"premium": PremiumFlow(size=63.0)}, "flows.premium.size", "from 64"),
        ({"capacity": 1e12}, "capacity", "100 ns"),
        ({"capacity": 1e5 + 0.4, "premium": PremiumFlow(rate=1e4)}, "capacity", "whole number of bit/s"),
        ({"cross": crossing(*[{"hop": 0, "rate": 1e3}] * 56_000)}, "flows", "whose number is part of a port"),
    ],
)
def test_what_ns3_cannot_express_is_named(fields, field, says):
    scenario = link_of(**({"duration": 10.0} | fields))
    with pytest.raises(InvalidValue, match=says) as refused:
        render(scenario, access_link_plan(scenario, LQI.law, [0.676, 0.361]), provenance=origin())
    assert refused.value.argument == field


def test_names_in_a_design_cannot_leave_their_comment():
    named = LqiLaw(**{name: getattr(TWO, name) for name in TWO.__struct_fields__} | {"inputs": ("R\nint x;//", "b\\")})
    scenario = access_link(duration=10.0)
    gains = render(scenario, access_link_plan(scenario, named, [0.6, 55.0], measured="period"), provenance=origin())[
        "gains.h"
    ]
    assert r'/// From "R\012int x;// [Mbit/s]", "b\134"' in gains


def test_laws_that_do_not_fit_are_named():
    scenario = access_link(duration=10.0)
    wide = LqiLaw(**{name: getattr(TWO, name) for name in TWO.__struct_fields__} | {"high": np.array([95.0, 2e4])})
    with pytest.raises(InvalidValue, match="10000 packets"):
        render(scenario, access_link_plan(scenario, wide, [0.6, 55.0], measured="period"), provenance=origin())
    governor = reference_governor(LQI.law)
    long = governor._replace(by_state=np.zeros((60_000, 3)), by_reference=np.zeros((60_000, 2)))
    learning = plan_for(LQI.law, schedule=start_online_map(LQI.law, [0.01, 0.01]))
    with pytest.raises(InvalidValue, match="online_schedule"):
        render(scenario, learning, provenance=origin())
    with pytest.raises(InvalidValue, match="settles sooner"):
        render(scenario, access_link_plan(scenario, LQI.law, [0.676, 0.361], governor=long), provenance=origin())


# --- what a run draws ------------------------------------------------------------------------------------------------


class Counted:
    """A flow's stream that counts what is drawn ahead."""

    def __init__(self, stream: np.random.Generator) -> None:
        self.stream, self.count = stream, 0

    def standard_exponential(self, size: int) -> np.ndarray:
        self.count += size
        return self.stream.standard_exponential(size)


def taken(scenario: Scenario, actions: list[tuple[float, int]]) -> np.ndarray:
    """How many pauses each flow begins in the simulator."""
    link = AccessLink(scenario)
    link._streams = [Counted(stream) for stream in link._streams]
    for rate, burst in actions:
        link.advance(rate, burst)
    return np.array([stream.count for stream in link._streams]) + link.traffic.gates.used


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.0, 5e6, 50e6, 95e6]), st.integers(1, 20)), min_size=9, max_size=9))
def test_no_run_takes_more_pauses_than_a_table_has(actions):
    plan = access_link_plan(BUSY, TWO, [0.6, 59.0], measured="period")
    held = [len(pauses) for pauses in flow_pauses(BUSY, plan)]
    assert (1 + taken(BUSY, actions) < held).all()


def test_neither_does_one_with_open_regulators():
    """And with bursts as they are a table is no longer than it need be."""
    held = []
    for law in (TWO, LQI.law):
        plan = access_link_plan(BUSY, law, law.output_offset, measured="period", start=9)
        held.append(np.array([len(pauses) for pauses in flow_pauses(BUSY, plan)]))
    used = 1 + taken(BUSY, [(np.inf, 0)] * 9)
    assert (used < np.minimum(*held)).all()
    assert (held[1] <= used + 3 * 512).all()


@pytest.mark.parametrize("variation", [0.0, 0.5, 1.0])
def test_pauses_are_those_of_the_simulator_s_streams(variation):
    varied = {"pause_variation": variation}
    cross = [msgspec.structs.replace(each, **varied) for each in CROSS]
    scenario = link_of(regulated=SOURCES, every=varied, cross=cross, hops=2, duration=9.0, seed=5)
    plan = access_link_plan(scenario, TWO, [0.6, 59.0], measured="period")
    for pauses, stream in zip(flow_pauses(scenario, plan), flow_streams(scenario), strict=True):
        phase = (1.0 - variation) * stream.uniform() + variation * stream.standard_exponential()
        expected = 1.0 - variation + variation * stream.standard_exponential(len(pauses) - 1)
        np.testing.assert_array_equal(pauses, [phase, *expected])


def test_a_table_is_laid_out_as_the_program_reads_it():
    scenario = access_link(duration=5.0, seed=3)
    plan = access_link_plan(scenario, LQI.law, [0.676, 0.361], measured="period")
    table, pauses = run_table(scenario, plan), flow_pauses(scenario, plan)
    assert len(table) == 8 + sum(8 + 8 * len(each) for each in pauses)
    assert np.frombuffer(table, count=1)[0] == AccessLink(scenario).plant.premium_phase
    assert np.frombuffer(table, np.uint64, 1, 8)[0] == len(pauses[0])
    np.testing.assert_array_equal(np.frombuffer(table, float, len(pauses[0]), 16), pauses[0])


def test_a_run_of_too_many_draws_is_refused(monkeypatch):
    monkeypatch.setattr(fifo_draws, "_MAX_PAUSES", 10_000)
    scenario = access_link(duration=100.0)
    with pytest.raises(InvalidValue, match=r"duration: .*at most 10000 times"):
        run_table(scenario, access_link_plan(scenario, LQI.law, [0.676, 0.361]))


# --- the parts, compiled ---------------------------------------------------------------------------------------------

SCHEDULE = GainSchedule(np.array([20.0, 55.0, 80.0]), np.array([[4.0, 3.0], [1.0, 1.25], [0.25, 0.5]]))


def plan_for(law: TrackingLaw, **options) -> AccessLinkPlan:
    scenario = access_link(duration=10.0, interval=law.interval_s)
    return access_link_plan(scenario, law, law.output_offset, measured="period", **options)


def random_law(seed: int) -> TrackingLaw:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))
    model = IdentifiedModel(
        A=A * (0.8 / np.abs(np.linalg.eigvals(A)).max()),
        B=rng.normal(size=(3, 2)),
        C=rng.normal(size=(2, 3)),
        D=rng.normal(size=(2, 2)),
        dt=1.0,
        K=0.1 * rng.normal(size=(3, 2)),
        innovation_covariance=np.eye(2),
        inputs=("R", "burst"),
        outputs=("delay", "throughput"),
        input_offset=rng.normal(size=2),
        output_offset=rng.normal(size=2),
    )
    return netctrl.connet(model, track=["delay", "throughput"], limits=[(-2.0, 3.0), (-1.0, 2.0)]).law


LAWS: dict[str, AccessLinkPlan] = {
    "paper": plan_for(PAPER.law),
    "lqi": plan_for(LQI.law, first_rate=40.0),
    "rate and burst": plan_for(TWO),
    "without integral": plan_for(LqgLaw(**observer(), K=20.0 * TWO.K)),
    "random 1": plan_for(random_law(1)),
    "random 2": plan_for(random_law(2)),
    "governed": plan_for(LQI.law, governor=reference_governor(LQI.law, margin=0.1)),
    "two governed": plan_for(random_law(3), governor=reference_governor(random_law(3))),
    "scheduled": plan_for(LQI.law, schedule=SCHEDULE),
    "one slope": plan_for(LQI.law, schedule=GainSchedule(SCHEDULE.points[:1], SCHEDULE.factors[:1])),
    "governed and scheduled": plan_for(LQI.law, governor=reference_governor(LQI.law), schedule=SCHEDULE),
}

PARTS = r"""
#include "netctrl-access-laws.h"
#include "netctrl-regulator.h"

#include <cstdio>
#include <cstdlib>
#include <string>

double Number() {
    double found = 0.0;
    if (std::scanf("%lf", &found) != 1) std::exit(0);
    return found;
}

netctrl::Vector Numbers(std::size_t count) {
    netctrl::Vector found(count);
    for (double& each : found) each = Number();
    return found;
}

void Print(const netctrl::Vector& values) {
    for (const double value : values) std::printf("%.17g ", value);
}

void Replay(const netctrl::TrackingGains& law, const netctrl::ReferenceGovernor& governor,
            const netctrl::GainSchedule& schedule, const netctrl::TrackingState& start) {
    netctrl::Tracker tracker(law, governor, schedule, start);
    while (true) {
        const netctrl::Vector measured = Numbers(law.outputOffset.size());
        tracker.Step(measured, Numbers(law.outputOffset.size()));
        Print(tracker.given);
        Print(tracker.state.commanded);
        Print(tracker.state.applied);
        std::printf("\n");
    }
}

void Regulate() {
    netctrl::Regulator regulator({1.0, 0.5, 2.0, 1.0, 1.0, 1.0}, 8000.0, 80e-6);
    while (true) {
        const double time = Number();
        const double rate = Number();
        regulator.Command(time, rate, static_cast<int>(Number()));
        for (double count = Number(); count > 0.0; --count) {
            std::printf("%.17g ", regulator.Next());
            regulator.Release();
        }
        std::printf("%.17g\n", regulator.Next());
    }
}

void Measure() {
    std::vector<double> measured(netctrl::kMeasured + 1);
    bool empty = true;
    while (true) {
        for (double count = Number(); count > 0.0; --count, empty = false) netctrl::Observe(measured, Number(), empty);
        const auto r = netctrl::ReadPremium(measured, 0.001, empty);
        std::fill(measured.begin() + netctrl::kDelaySum, measured.end(), 0.0);
        std::printf("%.17g %.17g %.17g %.17g %.17g\n", r.delay, r.jitter, r.meanDelay, r.meanJitter, r.received);
    }
}
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """What the parts, each law with the numbers of its own export, answer to numbers on stdin."""
    folder = tmp_path_factory.mktemp("parts")
    scenario, includes = access_link(duration=10.0), []
    calls = [
        '    if (std::string(argv[1]) == "regulator") Regulate();',
        '    if (std::string(argv[1]) == "meter") Measure();',
    ]
    for number, plan in enumerate(LAWS.values()):
        files = render(scenario, plan, provenance=origin())
        gains = files["gains.h"].replace("namespace netctrl\n", f"namespace netctrl::case{number}\n")
        (folder / f"gains{number}.h").write_text(gains.replace("NETCTRL_GAINS_H", f"NETCTRL_GAINS{number}_H"))
        includes.append(f'#include "gains{number}.h"')
        tables = ", ".join(f"netctrl::case{number}::{name}" for name in ("kLaw", "kGovernor", "kSchedule", "kStart"))
        calls.append(f'    if (std::string(argv[1]) == "{number}") Replay({tables});')
    for name in (
        "netctrl-access-laws.h",
        "netctrl-arrays.h",
        "netctrl-tracking-law.h",
        "netctrl-tracking.h",
        "netctrl-regulator.h",
    ):
        (folder / name).write_text(files[name])
    body = "\n".join(["int main(int, char** argv) {", *calls, "    return 2;", "}"])
    (folder / "parts.cc").write_text("\n".join([*includes, PARTS, body, ""]))
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    subprocess.run([find_ns3().compiler, *strict, "parts.cc", "-o", "parts"], cwd=folder, check=True, timeout=120)

    def ask(which: str, numbers: list[float]) -> np.ndarray:
        text = "\n".join(map(repr, map(float, numbers)))
        ran = subprocess.run(
            [folder / "parts", which], input=text, capture_output=True, text=True, check=True, timeout=60
        )
        return np.array([line.split() for line in ran.stdout.splitlines()], dtype=float)

    return ask


@pytest.mark.needs("ns3")
@pytest.mark.parametrize("name", LAWS)
def test_laws_in_cpp_are_those_of_the_runtime(parts, name):
    plan = LAWS[name]
    law, state, rng = plan.law, plan.state, np.random.default_rng(7)
    p, cut = len(law.outputs), law.output_offset.copy()
    measured = law.output_offset + rng.normal(size=(10_000, p))
    desired = law.output_offset + np.repeat(3.0 * rng.normal(size=(1000, p)), 10, axis=0)
    gains, expected = tracking_gains(law), []
    for y, r in zip(measured, desired, strict=True):
        if plan.governor is not None:
            cut = govern(plan.governor, state, cut, r)
            r = cut
        shown = y if plan.schedule is None else scheduled(plan.schedule, y, r, state.applied)
        state = step_tracking(gains, state, shown, r)
        expected.append(np.concatenate([r, state.commanded, state.applied]))
    found = parts(str(list(LAWS).index(name)), np.hstack([measured, desired]).ravel().tolist())
    expected = np.array(expected)
    assert (expected[:, -len(law.high) :] != expected[:, -2 * len(law.high) : -len(law.high)]).any()  # it saturates
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.needs("ns3")
def test_a_regulator_by_hand(parts):
    """Bursts of 2 at 10 Mbit/s take 1.6 ms: a packet 80 us after the other, and a pause of 1.52 ms in the mean."""
    mean, faster = pause_mean(10e6, 2, 8000.0, 80e-6), pause_mean(20e6, 2, 8000.0, 80e-6)
    assert (mean, faster) == pytest.approx((1.52e-3, 0.72e-3))
    second = mean + 80e-6 + 0.5 * mean
    third = 2e-3 + (second - 2e-3) * faster / mean  # the rest of the pause, stretched by the ratio of the means
    found = parts("regulator", [0.0, 10e6, 2, 2, 2e-3, 20e6, 2, 2])
    expected = [[mean, mean + 80e-6, second], [third, third + 80e-6, third + 80e-6 + 2.0 * faster]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.needs("ns3")
def test_a_regulator_that_is_shut_waits_for_its_rate(parts):
    tables = [0.0, 10e6, 2, 0, 0.5e-3, 0.0, 2, 0, 0.2, 20e6, 1, 0]
    mean, later = pause_mean(10e6, 2, 8000.0, 80e-6), pause_mean(20e6, 1, 8000.0, 80e-6)
    found = parts("regulator", tables)[:, 0]
    assert found.tolist() == pytest.approx([mean, np.inf, 0.2 + (mean - 0.5e-3) / mean * later])


@pytest.mark.needs("ns3")
def test_averages_of_delay_and_jitter(parts):
    """An independent recursion; a period without a packet keeps the averages."""
    delays = np.random.default_rng(2).exponential(1e-3, size=7)
    numbers = [0, 4, *delays[:4], 0, 3, *delays[4:]]
    found = parts("meter", numbers)
    changes = np.abs(np.diff(delays, prepend=delays[0]))
    delay, jitter = delays[0], 0.0
    averages = []
    for one, change in zip(delays, changes, strict=True):
        delay, jitter = 0.875 * delay + 0.125 * one, 0.875 * jitter + 0.125 * change
        averages.append((delay + 1e-3, jitter))
    expected = [
        (0.0, 0.0, 0.0, 0.0, 0),
        (*averages[3], delays[:4].mean() + 1e-3, changes[:4].mean(), 4),
        (*averages[3], *averages[3], 0),
        (*averages[6], delays[4:].mean() + 1e-3, changes[4:].mean(), 3),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


if __name__ == "__main__":
    for case, files in cases().items():
        (STORED / case).mkdir(parents=True, exist_ok=True)
        for each in GENERATED:
            (STORED / case / each).write_text(files[each], encoding="utf-8")
