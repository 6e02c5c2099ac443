"""Exported data centres are compiled and run: flow by flow against the packet simulator, and closed forms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fabric_support import counted, data_centre, empty_again, finish_ns, longest_queue, poisson

import netctrl
from netctrl.cli.design import main as design_main
from netctrl.cli.export import main
from netctrl.core.errors import NetctrlError
from netctrl.laws.window.records import Dcqcn, Dctcp, FixedWindow, Hpcc, Mpcc, Timely
from netctrl.model.design.design import provenance
from netctrl.ns3.fabric.read import run_fabric
from netctrl.ns3.fabric.render import render, run_table
from netctrl.ns3.program import compile_program, find_ns3, table_name
from netctrl.scenario.fabric.topology import Dumbbell, FatTree, Packets
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Incast
from netctrl.scenario.transfers import received_fairness, received_rates, residual, slow_down
from netctrl.sim.packet.fabric import fabric_plan
from netctrl.sim.packet.run import simulate_packets

pytestmark = pytest.mark.slow

PACKET_NS = 8800
FLOWS = Flow(id="flows", source=range(16), target=16, offers=1e9)


def run_in(folder: Path, scenario: Scenario, **options) -> Result:
    plan = fabric_plan(scenario)
    for name, text in render(scenario, plan, provenance=provenance()).items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / table_name(scenario.seed)).write_bytes(run_table(scenario, plan))
    compile_program(folder, find_ns3())
    return run_fabric(folder, scenario, plan, ns3=find_ns3(), provenance=provenance(), **options)


@pytest.mark.needs("ns3")
def test_fig_5_2_converges_within_a_packet_time_of_the_simulator(tmp_path):
    """175,530 ns by the thesis's clock; ns-3.37 rounds times on the wire, and so the simulator may."""
    seen: list[float] = []
    scenario = netctrl.read("mpcc-dumbbell")
    found = run_in(tmp_path, scenario, progress=seen.append)
    assert empty_again(simulate_packets(scenario)) == 175_530
    assert abs(empty_again(found) - 175_530) < PACKET_NS
    rounded = simulate_packets(scenario.replace(packets=Packets(clock="nearest")))
    assert empty_again(found) == empty_again(rounded) == 175_552
    np.testing.assert_array_equal(found.totals["departed"], rounded.totals["departed"])
    np.testing.assert_allclose(found.totals["backlog"], rounded.totals["backlog"], rtol=1e-12)
    for table in ("acknowledgements", "received"):
        for name, column in found.tables[table].items():
            np.testing.assert_array_equal(column, rounded.tables[table][name])
    ours, theirs = counted(found), counted(rounded)
    assert {name: n for name, n in ours.items() if name != "events"} == {
        name: n for name, n in theirs.items() if name != "events"
    }
    assert seen[0] == 0.0
    assert seen[-1] >= 0.99


@pytest.mark.needs("ns3")
def test_flows_alone_take_their_ideal_times_to_the_nanosecond(tmp_path):
    sizes = (1, 999, 1000, 1001, 123_456)
    flows = [Flow(id=f"flow{i}", source=0, target=15, offers=n, start=i * 1e-4) for i, n in enumerate(sizes)]
    found = run_in(tmp_path, data_centre(FatTree(), FixedWindow(), *flows, duration=1e-3))
    np.testing.assert_array_equal(slow_down(found.transfers), 1.0)
    assert residual(found.tables["counts"]) == (0, 0)


@pytest.mark.needs("ns3")
def test_a_fat_tree_s_flows_are_the_simulator_s(tmp_path):
    """What comes at the same nanosecond may go in another order; 39 flows of 1 ms, 9 in 10 within 1 %."""
    scenario = data_centre(FatTree(), Mpcc(variant="delayed"), poisson(load=0.3), duration=1e-3)
    found, expected = run_in(tmp_path, scenario), simulate_packets(scenario)
    done = finish_ns(found) >= 0
    np.testing.assert_array_equal(done, finish_ns(expected) >= 0)
    took = 1e9 * expected.transfers["duration"][done]
    apart = np.abs(finish_ns(found) - finish_ns(expected))[done] / took
    assert done.sum() > 30
    assert (apart == 0.0).mean() > 0.4
    assert np.percentile(apart, 90) < 0.01
    assert apart.max() < 0.05
    assert found["slow-down", "transfers"] == pytest.approx(expected["slow-down", "transfers"], rel=0.005)
    sent, expected_sent = (each.totals["departed"] / each.totals["capacity"] for each in (found, expected))
    assert 8e3 * sent.max() == pytest.approx(8e3 * expected_sent.max(), abs=0.005)
    assert residual(found.tables["counts"]) == (0, 0)


@pytest.mark.needs("ns3")
@pytest.mark.parametrize("scheme", [Hpcc(), Dcqcn(), Timely(), Timely(patched=True, decrease=0.008)], ids=str)
def test_windows_and_rates_of_all_laws_are_the_simulator_s(scheme, tmp_path):
    """Eight flows through one link, with telemetry, marks, notifications and pace; ns-3 draws its marks itself."""
    flows = Flow(id="flows", source=range(8), target=8, offers=4e6)
    watch = Watch(flows=tuple(range(8)), ports=("s0>s1",), bin=5e-4)
    scenario = data_centre(Dumbbell(senders=8, host_rate=1e10), scheme, flows, duration=2e-2, watch=watch)
    found, expected = run_in(tmp_path, scenario), simulate_packets(scenario)
    assert residual(found.tables["counts"]) == (0, 0)
    ours, theirs = counted(found), counted(expected)
    log, base = found.tables["acknowledgements"], expected.tables["acknowledgements"]
    for name, column in log.items():
        np.testing.assert_array_equal(column[:500], base[name][:500])
    assert ours["received_bytes"] == pytest.approx(theirs["received_bytes"], rel=0.01)
    assert ours["marked"] == pytest.approx(theirs["marked"], rel=0.1)
    assert (ours["marked"] > 1000) == (scheme.__class__ is Dcqcn)
    assert found.series["backlog"].mean() == pytest.approx(expected.series["backlog"].mean(), rel=0.01)
    assert found.totals["backlog_most"].max() == expected.totals["backlog_most"].max()
    rate = log["pace"]
    assert len(np.unique(rate)) > 100 or scheme == Timely()
    assert rate.mean() == pytest.approx(base["pace"].mean(), rel=0.02)


@pytest.mark.needs("ns3")
def test_what_is_lost_is_sent_again(tmp_path):
    """An incast into small buffers: as many drops, and the last flow ends within 2 %.

    All start at one time, so that the order of events decides who loses, and which flow is the last.
    """
    scenario = data_centre(
        FatTree(), Mpcc(), Flow(id="incast", offers=Incast(interval=1.0)), buffer=3e5, duration=5e-3, seed=2
    )
    found, expected = run_in(tmp_path, scenario), simulate_packets(scenario)
    assert counted(found)["dropped"] > 100
    assert counted(found)["dropped"] == pytest.approx(counted(expected)["dropped"], rel=0.1)
    assert counted(found)["again"] > 100
    assert residual(found.tables["counts"]) == (0, 0)
    assert (finish_ns(found) >= 0).all()
    assert (finish_ns(expected) >= 0).all()
    assert finish_ns(found).max() == pytest.approx(finish_ns(expected).max(), rel=0.02)


@pytest.mark.needs("ns3")
def test_sixteen_flows_use_the_link_where_the_delay_is_in_the_model(tmp_path):
    """100 Gbit/s, 71 packets of bandwidth-delay product: the delayed law fills it, the delay-free one doesn't."""
    shares = {}
    for variant in ("delay-free", "delayed"):
        folder = tmp_path / variant
        folder.mkdir()
        scenario = data_centre(
            Dumbbell(senders=16, host_rate=1e11),
            Mpcc(variant=variant),
            FLOWS,
            duration=3e-3,
            flow_timeout=2e-4,
            watch=Watch(flows=tuple(range(16)), bin=1e-3),
        )
        found, expected = run_in(folder, scenario), simulate_packets(scenario)
        shares[variant] = received_rates(found.tables["received"])[:, 1:].sum(axis=0).mean() / 1e11
        assert shares[variant] == pytest.approx(
            received_rates(expected.tables["received"])[:, 1:].sum(axis=0).mean() / 1e11, abs=0.01
        )
    assert shares["delayed"] > 0.999
    assert shares["delay-free"] < 0.97


@pytest.mark.needs("ns3")
def test_ns3_s_dctcp_holds_the_queue_where_the_simulator_s_does(tmp_path):
    """Four flows at 10 Gbit/s, K = 30 kB: TcpDctcp and RED's marks beside our DCTCP, both from their papers."""
    flows = Flow(id="flows", source=range(4), target=4, offers=2e6)
    watch = Watch(flows=(0, 1, 2, 3), ports=("s0>s1",), bin=2e-3)
    scenario = data_centre(Dumbbell(host_rate=1e10), Dctcp(), flows, duration=1e-2, watch=watch)
    found, expected = run_in(tmp_path, scenario), simulate_packets(scenario)
    assert (finish_ns(found) >= 0).all()
    assert residual(found.tables["counts"]) == (0, 0)
    assert counted(found)["dropped"] == counted(found)["again"] == 0
    assert counted(found)["marked"] == pytest.approx(counted(expected)["marked"], rel=0.2)
    busy = slice(99, 5999)
    middle, desired = (np.median(each.series["backlog"][0, busy]) for each in (found, expected))
    assert middle == pytest.approx(desired, rel=0.05)
    assert middle == pytest.approx(30e3, rel=0.1)
    assert finish_ns(found).max() == pytest.approx(finish_ns(expected).max(), rel=0.02)
    assert (received_fairness(found.tables["received"])[:3] > 0.99).all()


@pytest.mark.needs("ns3")
def test_dctcp_comes_through_losses(tmp_path):
    scenario = data_centre(
        FatTree(), Dctcp(), Flow(id="incast", offers=Incast(interval=1.0)), buffer=2e5, duration=2e-2, seed=2
    )
    found = run_in(tmp_path, scenario)
    assert counted(found)["dropped"] > 100
    assert counted(found)["again"] > 100
    assert (finish_ns(found) >= 0).all()
    assert residual(found.tables["counts"]) == (0, 0)
    # RED counts IP packets, 2 bytes less each; one more packet is in the device.
    assert longest_queue(found) <= 1.01 * 2e5 + 1042


@pytest.mark.needs("ns3")
def test_a_table_of_another_scenario_is_refused(tmp_path):
    scenario = netctrl.read("mpcc-dumbbell")
    run_in(tmp_path, scenario.replace(duration=1e-4))
    (tmp_path / table_name(scenario.seed)).write_bytes(b"\0" * 9)
    with pytest.raises(NetctrlError, match="not the flows of a run"):
        run_fabric(tmp_path, scenario, fabric_plan(scenario), ns3=find_ns3(), provenance=provenance())
    (tmp_path / table_name(scenario.seed)).unlink()
    with pytest.raises(NetctrlError, match="No such file"):
        run_fabric(tmp_path, scenario, fabric_plan(scenario), ns3=find_ns3(), provenance=provenance())


# --- the command line ------------------------------------------------------------------------------------------------

PLANT = ["--flows", "4", "--rate", "1Gbit", "--bdp", "3750", "--rtt", "34.752us", "--window", "3750"]


@pytest.fixture(scope="module")
def design(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("design") / "mpcc.json"
    assert (
        design_main(["mpcc", *PLANT, "--window-weight", "10", "--table", "1:64", "--accept", "stable", "-o", str(path)])
        == 0
    )
    return str(path)


@pytest.mark.needs("ns3")
def test_a_design_is_run_in_its_own_plant(design, tmp_path, capsys):
    assert main(["ns3", design, "-o", str(tmp_path / "a"), "--run", "--result", str(tmp_path / "flows.csv")]) == 0
    said = capsys.readouterr().out
    assert "4 flows through the bottleneck of the design (ns-3" in said
    assert "ns-3" in said
    series = (tmp_path / "flows.csv").read_text().splitlines()
    assert series[0] == "link,time,backlog"
    assert len(series) > 1000
    assert "#   closed-loop pole: " in (tmp_path / "a" / "scenario.txt").read_text()


@pytest.mark.needs("ns3")
def test_a_design_goes_into_a_scenario(design, tmp_path, capsys):
    assert main(["ns3", design, "-o", str(tmp_path / "a"), "--scenario", "mpcc-dumbbell", "--run", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["scenario"]["flows"][0]["sender"]["window_weight"] == 10.0
    assert said["simulator"].startswith("ns-3")
    fair = [each["mean"] for each in said["summary"] if each["quantity"] == "Jain's index"]
    assert fair[0] > 0.999


def test_a_program_is_written_without_a_run(tmp_path, capsys):
    folder = tmp_path / "a"
    assert main(["ns3", "--scenario", "mpcc-dumbbell", "-o", str(folder), "--seed", "7", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert sorted(said["files"]) == sorted(path.name for path in folder.iterdir())
    assert "run-7.bin" in said["files"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--scenario", "mpcc-fat-tree"], "pfc: got 'Pfc'"),
        (
            ["DESIGN", "--scenario", "arc-staircase"],
            "expected one of arc or hftrac or mpc or connet or pacing, for links and flows",
        ),
        (["--scenario", "mpcc-dumbbell", "--runs", "3"], "--runs"),
        (["DESIGN", "--governor"], "--governor"),
    ],
    ids=str,
)
def test_wrong_use_is_named(design, tmp_path, capsys, arguments, says):
    given = [design if each == "DESIGN" else each for each in arguments]
    assert main(["ns3", *given, "-o", str(tmp_path / "a")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
