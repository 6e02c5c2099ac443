"""Exported data centres are compiled and run: flow by flow against the packet simulator, and closed forms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fabric_support import data_centre

import netctrl
from netctrl.cli.design import main as design_main
from netctrl.cli.export import main
from netctrl.errors import NetctrlError
from netctrl.laws.window.records import Dcqcn, Dctcp, FixedWindow, Hpcc, Mpcc, Timely
from netctrl.model.design.design import provenance
from netctrl.ns3.fabric.read import run_fabric
from netctrl.ns3.fabric.render import render
from netctrl.ns3.program import compile_program, find_ns3, table_name
from netctrl.scenario.fabric.flows import IncastFlows, MessageFlows, PoissonFlows
from netctrl.scenario.fabric.result import FabricResult
from netctrl.scenario.fabric.topology import Dumbbell, FatTree, Packets
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.scenario import Scenario
from netctrl.sim.fabric.plan import fabric_plan, run_table
from netctrl.sim.fabric.run import simulate_fabric

pytestmark = pytest.mark.slow

PACKET_NS = 8800
FLOWS = MessageFlows(id="flows", source=range(16), target=16, size=1e9)


def run_in(folder: Path, scenario: Scenario, **options) -> FabricResult:
    plan = fabric_plan(scenario)
    for name, text in render(scenario, plan, provenance=provenance()).items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / table_name(scenario.seed)).write_bytes(run_table(scenario, plan))
    compile_program(folder, find_ns3())
    return run_fabric(folder, scenario, plan, ns3=find_ns3(), provenance=provenance(), **options)


def empty_again(result: FabricResult) -> int:
    """When acknowledgements tell for the first time that the queue is over [ns]."""
    log = result.acknowledged()
    congested = log.time_ns[log.queue_bytes > 0].iloc[0]
    return int(log.time_ns[(log.queue_bytes == 0) & (log.time_ns > congested)].iloc[0])


@pytest.mark.needs("ns3")
def test_fig_5_2_converges_within_a_packet_time_of_the_simulator(tmp_path):
    """175,530 ns by the thesis's clock; ns-3.37 rounds times on the wire, and so the simulator may."""
    seen: list[float] = []
    scenario = netctrl.read("mpcc-dumbbell")
    found = run_in(tmp_path, scenario, progress=seen.append)
    assert empty_again(simulate_fabric(scenario)) == 175_530
    assert abs(empty_again(found) - 175_530) < PACKET_NS
    rounded = simulate_fabric(scenario.replace(packets=Packets(clock="nearest")))
    assert empty_again(found) == empty_again(rounded) == 175_552
    np.testing.assert_array_equal(found.sent_bytes, rounded.sent_bytes)
    np.testing.assert_allclose(found.queue_mean_bytes, rounded.queue_mean_bytes, rtol=1e-12)
    np.testing.assert_array_equal(found.acknowledgements, rounded.acknowledgements)
    np.testing.assert_array_equal(found.arrived_bytes, rounded.arrived_bytes)
    assert {name: n for name, n in found.counts.items() if name != "events"} == {
        name: n for name, n in rounded.counts.items() if name != "events"
    }
    assert seen[0] == 0.0
    assert seen[-1] >= 0.99


@pytest.mark.needs("ns3")
def test_flows_alone_take_their_ideal_times_to_the_nanosecond(tmp_path):
    sizes = (1, 999, 1000, 1001, 123_456)
    flows = [MessageFlows(id=f"flow{i}", source=0, target=15, size=n, start=i * 1e-4) for i, n in enumerate(sizes)]
    found = run_in(tmp_path, data_centre(FatTree(), FixedWindow(), *flows, duration=1e-3))
    np.testing.assert_array_equal(found.finish_ns - found.start_ns, found.ideal_ns)
    assert found.residual == (0, 0)


@pytest.mark.needs("ns3")
def test_a_fat_tree_s_flows_are_the_simulator_s(tmp_path):
    """What comes at the same nanosecond may go in another order; 39 flows of 1 ms, 9 in 10 within 1 %."""
    scenario = data_centre(FatTree(), Mpcc(variant="delayed"), PoissonFlows(id="poisson", load=0.3), duration=1e-3)
    found, expected = run_in(tmp_path, scenario), simulate_fabric(scenario)
    np.testing.assert_array_equal(found.done, expected.done)
    done = found.done
    apart = np.abs(found.finish_ns - expected.finish_ns)[done] / (expected.finish_ns - expected.start_ns)[done]
    assert done.sum() > 30
    assert (apart == 0.0).mean() > 0.4
    assert np.percentile(apart, 90) < 0.01
    assert apart.max() < 0.05
    assert np.nanmean(found.slow_down) == pytest.approx(np.nanmean(expected.slow_down), rel=0.005)
    assert found.utilization().max() == pytest.approx(expected.utilization().max(), abs=0.005)
    assert found.residual == (0, 0)


@pytest.mark.needs("ns3")
@pytest.mark.parametrize("scheme", [Hpcc(), Dcqcn(), Timely(), Timely(patched=True, decrease=0.008)], ids=str)
def test_windows_and_rates_of_all_laws_are_the_simulator_s(scheme, tmp_path):
    """Eight flows through one link, with telemetry, marks, notifications and pace; ns-3 draws its marks itself."""
    flows = MessageFlows(id="flows", source=range(8), target=8, size=4e6)
    watch = Watch(flows=tuple(range(8)), ports=("s0>s1",), bin=5e-4)
    scenario = data_centre(Dumbbell(senders=8, host_rate=1e10), scheme, flows, duration=2e-2, watch=watch)
    found, expected = run_in(tmp_path, scenario), simulate_fabric(scenario)
    assert found.residual == (0, 0)
    np.testing.assert_array_equal(found.acknowledgements[:500], expected.acknowledgements[:500])
    assert found.counts["received_bytes"] == pytest.approx(expected.counts["received_bytes"], rel=0.01)
    assert found.counts["marked"] == pytest.approx(expected.counts["marked"], rel=0.1)
    assert (found.counts["marked"] > 1000) == (scheme.__class__ is Dcqcn)
    assert found.queue_bytes.mean() == pytest.approx(expected.queue_bytes.mean(), rel=0.01)
    assert found.queue_most_bytes.max() == expected.queue_most_bytes.max()
    rate, base = found.acknowledgements[:, 7], expected.acknowledgements[:, 7]
    assert len(np.unique(rate)) > 100 or scheme == Timely()
    assert rate.mean() == pytest.approx(base.mean(), rel=0.02)


@pytest.mark.needs("ns3")
def test_what_is_lost_is_sent_again(tmp_path):
    """An incast into small buffers: as many drops, and the last flow ends within 2 %.

    All start at one time, so that the order of events decides who loses, and which flow is the last.
    """
    scenario = data_centre(FatTree(), Mpcc(), IncastFlows(id="incast", interval=1.0), buffer=3e5, duration=5e-3, seed=2)
    found, expected = run_in(tmp_path, scenario), simulate_fabric(scenario)
    assert found.counts["dropped"] > 100
    assert found.counts["dropped"] == pytest.approx(expected.counts["dropped"], rel=0.1)
    assert found.counts["again"] > 100
    assert found.residual == (0, 0)
    assert found.done.all()
    assert expected.done.all()
    assert found.finish_ns.max() == pytest.approx(expected.finish_ns.max(), rel=0.02)


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
        found, expected = run_in(folder, scenario), simulate_fabric(scenario)
        shares[variant] = found.throughput()[:, 1:].sum(axis=0).mean() / 1e11
        assert shares[variant] == pytest.approx(expected.throughput()[:, 1:].sum(axis=0).mean() / 1e11, abs=0.01)
    assert shares["delayed"] > 0.999
    assert shares["delay-free"] < 0.97


@pytest.mark.needs("ns3")
def test_ns3_s_dctcp_holds_the_queue_where_the_simulator_s_does(tmp_path):
    """Four flows at 10 Gbit/s, K = 30 kB: TcpDctcp and RED's marks beside our DCTCP, both from their papers."""
    flows = MessageFlows(id="flows", source=range(4), target=4, size=2e6)
    watch = Watch(flows=(0, 1, 2, 3), ports=("s0>s1",), bin=2e-3)
    scenario = data_centre(Dumbbell(host_rate=1e10), Dctcp(), flows, duration=1e-2, watch=watch)
    found, expected = run_in(tmp_path, scenario), simulate_fabric(scenario)
    assert found.done.all()
    assert found.residual == (0, 0)
    assert found.counts["dropped"] == found.counts["again"] == 0
    assert found.counts["marked"] == pytest.approx(expected.counts["marked"], rel=0.2)
    busy = slice(100, 6000)
    middle, desired = (np.median(each.queue_bytes[0, busy]) for each in (found, expected))
    assert middle == pytest.approx(desired, rel=0.05)
    assert middle == pytest.approx(30e3, rel=0.1)
    assert found.finish_ns.max() == pytest.approx(expected.finish_ns.max(), rel=0.02)
    assert (found.fairness()[:3] > 0.99).all()


@pytest.mark.needs("ns3")
def test_dctcp_comes_through_losses(tmp_path):
    scenario = data_centre(
        FatTree(), Dctcp(), IncastFlows(id="incast", interval=1.0), buffer=2e5, duration=2e-2, seed=2
    )
    found = run_in(tmp_path, scenario)
    assert found.counts["dropped"] > 100
    assert found.counts["again"] > 100
    assert found.done.all()
    assert found.residual == (0, 0)
    # RED counts IP packets, 2 bytes less each; one more packet is in the device.
    assert found.queue_most_bytes[found.switch_port].max() <= 1.01 * 2e5 + 1042


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
    assert "4 flows through the bottleneck of the design (mpcc)" in said
    assert "ns-3" in said
    assert len((tmp_path / "flows.csv").read_text().splitlines()) == 5
    assert "#   closed-loop pole: " in (tmp_path / "a" / "scenario.txt").read_text()


@pytest.mark.needs("ns3")
def test_a_design_goes_into_a_scenario(design, tmp_path, capsys):
    assert main(["ns3", design, "-o", str(tmp_path / "a"), "--scenario", "mpcc-dumbbell", "--run", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["scenario"]["sender"]["window_weight"] == 10.0
    assert said["simulator"].startswith("ns-3")
    assert said["summary"]["jain_index"] > 0.999


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
            "expected one of arc or hftrac or connet or pacing, for links and flows",
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
