"""Regulated flows under a law in ns-3: packet by packet those of the packet engine, and laws in C++ by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest
from ns3_support import assert_stored, compiled_parts, origin, store

import netctrl
from netctrl.cli.design import main as design_main
from netctrl.cli.export import main
from netctrl.core.errors import InvalidValue
from netctrl.engines.case import case_of
from netctrl.engines.engine import supports
from netctrl.laws.tracking.online_map import start_online_map
from netctrl.laws.tracking.reference_governor import govern, reference_governor
from netctrl.laws.tracking.schedule import GainSchedule, scheduled
from netctrl.laws.tracking.tracking import step_tracking, tracking_gains
from netctrl.model.datasets import model_path
from netctrl.model.identified import IdentifiedModel, read_model
from netctrl.model.law import LqgLaw, LqiLaw, TrackingLaw
from netctrl.ns3.program import compile_program, find_ns3
from netctrl.ns3.tcp_aqm.read import run_program
from netctrl.ns3.tcp_aqm.render import render
from netctrl.ns3.tcp_aqm.track import track_records
from netctrl.scenario.builders import access_link
from netctrl.scenario.network.track import Track
from netctrl.scenario.network.tracking import TrackPlan, track_plan
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Bursts, Stream
from netctrl.sim.fluid.traffic import draw_flows
from netctrl.sim.packet.run import gate_draws, simulate_packets

PRINTED = read_model(model_path("connet-paper"))
LQI = netctrl.connet(PRINTED, track="delay", limits=[(0.0, 95.0)])
PAPER = netctrl.connet(PRINTED, method="paper", limits=[(0.0, 95.0)])
PREMIUM = Flow(id="premium", ecn=False, offers=Stream(rate=1e6, spacing="constant"))
GENERATED = "scenario.txt", "netctrl-tracking-law.h", "netctrl-delay-laws.h"


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


def busy(load: float = 1.0, **fields) -> Scenario:
    """Two hops, open regulators at first, rates that change, cross traffic, and flows that start and stop."""
    flows = (
        PREMIUM,
        Flow(id="half", count=2, ecn=False, offers=Bursts(rate=20e6 * load)),
        Flow(id="one", ecn=False, offers=Bursts(rate=15e6 * load, burst=3, pause_variation=0.25), start=1.25),
        Flow(id="long", count=3, ecn=False, offers=Bursts(rate=8e6 * load, burst=20)),
        Flow(id="far", path=("hop1",), ecn=False, offers=Bursts(rate=20e6), stop=6.5),
        Flow(id="near", path=("hop0",), ecn=False, offers=Bursts(rate=5e6, burst=4)),
    )
    changes = [{"at": 5.3, "flow": "half", "rate": "30Mbit"}, {"at": 7.7, "flow": "half"}]
    control = Track(
        flows=("half", "one", "long"), shares=(0.5, 0.2, 0.3), measured="period", start=2.0, first_rate="40Mbit",
        reference=[[0.6, 59.0], [0.7, 50.0], [0.6, 59.0]], governor=True,
    )  # fmt: skip
    whole = {"name": "busy", "hops": 2, "duration": 9.0, "seed": 5, "flows": flows}
    return access_link(**whole | {"changes": changes, "control": control} | fields)


def rendered(scenario: Scenario, law: TrackingLaw, **options) -> dict[str, str]:
    plan = track_plan(scenario, law)
    draws = draw_flows(scenario, merged=False)
    return render(scenario, draws, plan=plan, gates=gate_draws(scenario), **{"provenance": origin()} | options)


# --- the text --------------------------------------------------------------------------------------------------------


def test_generated_text_is_what_is_stored():
    assert_stored("track", rendered(busy(), TWO, provenance=origin("netctrl", 'a "quote" */')), GENERATED)


def test_a_certificate_is_in_comments():
    scenario = access_link(duration=4.0, control=Track())
    design = msgspec.structs.replace(LQI, provenance=origin())
    text = rendered(scenario, design, design=design)["scenario.txt"]
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert "#   status: admissible" in comments
    assert any(line.startswith("#   disk margin: ") for line in comments)


@pytest.mark.parametrize(
    ("fields", "says"),
    [({"limit": 2}, r"links.hop0.buffer: got 1000.*room for two packets"), ({"packet_size": 70_000.0}, "packet_size")],
)
def test_what_ns3_cannot_express_is_named(fields, says):
    with pytest.raises(InvalidValue, match=says):
        rendered(access_link(**{"duration": 3.0, "control": Track(reference=[[1.0, 0.0]])} | fields), LQI.law)


def test_features_that_ns3_lacks_are_named():
    fair = access_link(duration=3.0, queue="wfq", control=Track())
    assert supports(case_of(fair, LQI))["ns3"] == "queues of kind wfq (links.hop0.queue)"


def test_laws_that_do_not_fit_are_named():
    scenario = access_link(duration=3.0, control=Track(reference=[[1.0, 0.0]]))
    learning = track_plan(scenario, LQI.law, start_online_map(LQI.law, [0.1, 0.1]))
    draws, gates = draw_flows(scenario, merged=False), gate_draws(scenario)
    with pytest.raises(InvalidValue, match="OnlineStaticMap"):
        render(scenario, draws, plan=learning, gates=gates, provenance=origin())
    wide = msgspec.structs.replace(TWO, high=np.array([95.0, 20_000.0]))
    two = track_plan(access_link(duration=3.0, control=Track(reference=[[0.6, 55.0]])), wide)
    with pytest.raises(InvalidValue, match="bursts up to 20000"):
        render(scenario, draws, plan=two, gates=gates, provenance=origin())


# --- the program -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("track")


def run_in(folder: Path, scenario: Scenario, law: TrackingLaw, **running) -> Result:
    for name, text in rendered(scenario, law).items():
        (folder / name).write_text(text, encoding="utf-8")
    compile_program(folder, find_ns3())
    plan = track_plan(scenario, law)
    return run_program(folder, scenario, plan=plan, ns3=find_ns3(), provenance=origin(), **running)


@pytest.mark.needs("ns3")
def test_packets_are_those_of_the_packet_engine(folder):
    """In a closed loop of rate and burst with a governor, to the nanosecond, as long as none is lost."""
    seen: list[float] = []
    scenario = busy(limit=2000)
    found, expected = run_in(folder, scenario, TWO, progress=seen.append), simulate_packets(scenario, design=TWO)
    assert found.simulator == f"ns-{find_ns3().version}"
    ours, theirs = found.tables["signals"], expected.tables["signals"]
    assert list(ours) == list(theirs)
    for name in theirs:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, atol=1e-12, err_msg=name)
    np.testing.assert_array_equal(found.series["payload"], expected.series["payload"])
    assert np.isinf(ours["rate"][:2]).all()
    assert len(set(ours["burst"].tolist())) > 3
    assert not np.array_equal(ours["given delay"], ours["reference delay"])
    assert seen == sorted(seen)
    assert 0.97 < seen[-1] <= 1.0
    assert {"delay, second half", "throughput, second half"} <= {name for name, _ in found.table()[1]}


@pytest.mark.needs("ns3")
def test_losses_are_nearly_those_of_the_packet_engine(folder):
    """At rates that fill the first queue; which of two packets is lost that come and go at one time differs."""
    loaded = busy(2.5, limit=40, control=Track(flows=("half", "long"), start=8.0, reference=[[0.6, 59.0]]))
    scenario = loaded.replace(flows=tuple(each for each in loaded.flows if each.id != "far"))
    found, expected = run_in(folder, scenario, TWO), simulate_packets(scenario, design=TWO)
    lost, desired = (each.series["lost"][0].sum() / 1000.0 for each in (found, expected))
    assert desired > 5000
    assert lost == pytest.approx(desired, rel=2e-3)
    ours, theirs = found.tables["signals"], expected.tables["signals"]
    np.testing.assert_allclose(ours["throughput"], theirs["throughput"], rtol=5e-3)


@pytest.mark.needs("ns3")
def test_one_program_serves_all_seeds(folder):
    scenario, other = busy(), busy(seed=6)
    first, second = rendered(scenario, TWO), rendered(other, TWO)
    assert {name for name in first if first[name] != second[name]} == {"scenario.txt"}
    run_in(folder, scenario, TWO)
    before = (folder / "signals.csv").read_bytes()
    for case, same in ((other, False), (scenario, True)):
        (folder / "scenario.txt").write_text(rendered(case, TWO)["scenario.txt"])
        run_program(folder, case, plan=track_plan(case, TWO), ns3=find_ns3(), provenance=origin())
        assert ((folder / "signals.csv").read_bytes() == before) == same


# --- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def design(tmp_path) -> Path:
    path = tmp_path / "design.json"
    requested = ["--model", "connet-paper", "--track", "delay", "--limits", "0Mbit:95Mbit"]
    assert design_main(["connet", *requested, "--reference", "delay=0.676,jitter=0.361", "-o", str(path)]) == 0
    return path


@pytest.mark.needs("ns3")
def test_one_command_holds_the_delay(design, tmp_path, capsys):
    link, stored = tmp_path / "link.toml", tmp_path / "link.npz"
    link.write_text(
        'schema = "netctrl.scenario/3"\nname = "two hops"\nduration = "60s"\ninterval = "1s"\nseed = 3\n'
        'links = [\n  { id = "a", source = "x", target = "y", capacity = "100Mbit", buffer = "99kB" },\n'
        '  { id = "b", source = "y", target = "z", capacity = "100Mbit", buffer = "99kB", delay = "280us" },\n]\n'
        '[[flows]]\nid = "premium"\npath = ["a", "b"]\n'
        'offers = { kind = "stream", rate = "1Mbit", spacing = "constant" }\n'
        '[[flows]]\nid = "hosts"\ncount = 6\npath = ["a", "b"]\noffers = { kind = "bursts", rate = "50Mbit" }\n'
        '[[flows]]\nid = "far"\npath = ["b"]\noffers = { kind = "bursts", rate = "8Mbit", burst = 5 }\n'
        '[[flows]]\nid = "near"\npath = ["a"]\noffers = { kind = "bursts", rate = "2Mbit" }\n'
        '[control]\nkind = "track"\nflows = ["hosts"]\n'
    )
    capsys.readouterr()
    requested = [str(design), "--scenario", str(link), "-o", str(tmp_path / "p"), "--run", "--json"]
    assert main(["ns3", *requested, "--result", str(stored)]) == 0
    said, told = capsys.readouterr()
    assert told == ""
    answer, found = json.loads(said), netctrl.read(stored)
    assert answer["simulator"].startswith("ns-3.")
    assert answer["infeasible_s"] == []
    signals = found.tables["signals"]
    expected = netctrl.simulate(found.scenario, design=design).tables["signals"]
    for name in ("mean delay", "mean jitter", "throughput", "rate"):
        assert pd.Series(signals[name]).equals(pd.Series(expected[name])) or signals[name] == pytest.approx(
            expected[name], rel=1e-9
        ), name
    assert 1e3 * signals["mean delay"][20:].mean() == pytest.approx(0.676, rel=0.03)


def test_without_run_it_says_what_to_do_next(design, tmp_path, capsys):
    folder = tmp_path / "out"
    requested = ["ns3", str(design), "-o", str(folder), "--seed", "7"]
    assert main(requested) == 0
    said = capsys.readouterr().out
    assert f"make -C {folder} && {folder}/scenario {folder}" in said
    names = sorted(path.name for path in folder.iterdir())
    assert sorted(said.split("files", 1)[1].split("\n")[0].replace(",", "").split()) == names
    text = (folder / "scenario.txt").read_text()
    assert "\nreference from=0 values=0.676,0.361\n" in text
    assert "law governor" not in text
    reference = "delay=0.5,jitter=0.1;jitter=0.4,delay=1.0"
    assert main([*requested, "--json", "--governor", "--measured", "average", "--reference", reference]) == 0
    assert "scenario.txt" in json.loads(capsys.readouterr().out)["files"]
    text = (folder / "scenario.txt").read_text()
    assert "reference from=0 values=0.5,0.1\nreference from=50 values=1.0,0.4\n" in text
    assert "\noutput column=0 " in text
    assert "law governor" in text


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (["--reference", "delay=0.5"], "--reference: got 'delay=0.5', takes values of all outputs"),
        (["--reference", "delay=0.5,jitter=x"], "--reference: got"),
        (["--reference", "delay=0.5,jitter=1,loss=0"], "--reference: got"),
        (["--measured", "median"], "--measured: got 'median', takes average or period"),
        (["--runs", "3"], "--runs: got 3, takes a value only for a network's scenario"),
        (["--run", "--result", "x.json"], "--result: got 'x.json'"),
        (["--seed", "-1"], "--seed: got '-1'"),
    ],
)
def test_wrong_use_writes_nothing(design, tmp_path, capsys, extra, says):
    capsys.readouterr()
    assert main(["ns3", str(design), "-o", str(tmp_path / "p"), *extra]) == 2
    assert capsys.readouterr().err.startswith(f"error: {says}")
    assert not (tmp_path / "p").exists()


# --- laws in C++ -----------------------------------------------------------------------------------------------------


SCHEDULE = GainSchedule(np.array([20.0, 55.0, 80.0]), np.array([[3.0, 2.0], [1.0, 1.0], [0.25, 0.5]]))


def plan_for(law: TrackingLaw, *, governor=None, schedule=None, **control) -> TrackPlan:
    scenario = access_link(duration=10.0, control=Track(reference=[law.output_offset.tolist()], **control))
    return track_plan(scenario, law, schedule)._replace(governor=governor)


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


CURVED = msgspec.structs.replace(LQI.law, curve=np.array([[0.0, 40.0, 70.0, 95.0], [0.0, 12.0, 35.0, 95.0]]))

LAWS: dict[str, TrackPlan] = {
    "paper": plan_for(PAPER.law),
    "lqi": plan_for(LQI.law, first_rate=40e6),
    "rate and burst": plan_for(TWO),
    "without integral": plan_for(LqgLaw(**observer(), K=20.0 * TWO.K)),
    "random 1": plan_for(random_law(1)),
    "random 2": plan_for(random_law(2)),
    "curved": plan_for(CURVED),
    "curved and governed": plan_for(CURVED, governor=reference_governor(CURVED, margin=0.1)),
    "governed": plan_for(LQI.law, governor=reference_governor(LQI.law, margin=0.1)),
    "two governed": plan_for(random_law(3), governor=reference_governor(random_law(3))),
    "scheduled": plan_for(LQI.law, schedule=SCHEDULE),
    "one slope": plan_for(LQI.law, schedule=GainSchedule(SCHEDULE.points[:1], SCHEDULE.factors[:1])),
    "governed and scheduled": plan_for(LQI.law, governor=reference_governor(LQI.law), schedule=SCHEDULE),
}

PARTS = r"""
#include "netctrl-delay-laws.h"
#include "netctrl-law-records.h"

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace netctrl;

double Number() {
    double found = 0.0;
    if (std::scanf("%lf", &found) != 1) std::exit(0);
    return found;
}

Vector Some(std::size_t count) {
    Vector found(count);
    for (double& each : found) each = Number();
    return found;
}

void Print(const Vector& values) {
    for (const double value : values) std::printf("%.17g ", value);
}

void Replay(const std::string& path) {
    LawParts law;
    for (Record& record : ReadRecords(path))
        if (record.kind == "law") law.Take(record);
    Tracker tracker(law);
    while (true) {
        const Vector measured = Some(tracker.given.size());
        tracker.Step(measured, Some(tracker.given.size()));
        Print(tracker.given);
        Print(tracker.state.commanded);
        Print(tracker.state.applied);
        std::printf("\n");
    }
}

void Measure() {
    std::vector<double> measured(kMeasured + 1);
    bool empty = true;
    while (true) {
        for (double count = Number(); count > 0.0; --count, empty = false) Observe(measured, Number(), empty);
        const auto r = ReadPremium(measured, 0.001, empty);
        std::fill(measured.begin() + kDelaySum, measured.end(), 0.0);
        std::printf("%.17g %.17g %.17g %.17g %.17g\n", r.delay, r.jitter, r.meanDelay, r.meanJitter, r.received);
    }
}

int main(int, char** argv) {
    if (std::string(argv[1]) == "meter") Measure();
    Replay(argv[1]);
}
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """What the parts, each law with the numbers of its own records, answer to numbers on stdin."""
    folder = tmp_path_factory.mktemp("parts")
    scenario = access_link(duration=10.0, control=Track())
    for number, plan in enumerate(LAWS.values()):
        records = "\n".join(line for lines in track_records(scenario, plan) for line in lines)
        (folder / str(number)).write_text(records + "\n")
    files = rendered(access_link(duration=10.0, control=Track(reference=[[0.6, 0.2]])), LQI.law)
    program = compiled_parts(folder, PARTS, files, ("delay-laws", "arrays", "tracking-law", "law-records", "records"))
    return lambda which, numbers: np.array(program([which], numbers))


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
    store({"track": rendered(busy(), TWO, provenance=origin("netctrl", 'a "quote" */'))}, {"track": GENERATED})
