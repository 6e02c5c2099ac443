"""Exported bottlenecks are compiled and run: closed forms, the runtime's laws in the loop, the fluid, and peers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import one_link
import pytest

import netctrl
from netctrl.cli.design import main as design_main
from netctrl.cli.export import main
from netctrl.core.errors import NetctrlError
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.pacing.pacing import EVENTS, pace_trace
from netctrl.laws.rate.cap import CapSender
from netctrl.model.design.design import provenance
from netctrl.model.law import PacingLaw
from netctrl.ns3.program import compile_program, find_ns3
from netctrl.ns3.tcp_aqm.read import run_program
from netctrl.ns3.tcp_aqm.render import render
from netctrl.scenario.builders import bottleneck
from netctrl.scenario.design import with_pacer
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.fluid.traffic import draw_flows

pytestmark = pytest.mark.slow

PEERS_OF_A_LINK = ("paced", "cap", "htcp", "cubic", "bbr", "reno", "vegas", "dctcp", "prague")
LINK = {"capacity": 2e7, "rtt": 0.02, "buffer": 100e3, "duration": 6.0, "warmup": 2.0}
OWN = netctrl.pacing(mode="own-rate").law


def alone(kind: str, **fields) -> Scenario:
    """One flow; the buffer holds two bandwidth-delay products."""
    rate = fields.pop("rate", None)
    sender = kind if rate is None else CapSender(rate=rate, window="htcp")
    return bottleneck(**(LINK | {"flows": (Flow(sender=sender),)} | fields))


def runs_in(
    folder: Path, scenario: Scenario, law: PacingLaw | None = None, seeds: tuple[int, ...] = (1,), **options
) -> list[Result]:
    scenario, ns3 = scenario if law is None else with_pacer(scenario, law), find_ns3()
    found = []
    for seed in seeds:
        drawn = scenario.replace(seed=seed)
        for name, text in render(drawn, draw_flows(drawn, merged=False), provenance=provenance()).items():
            (folder / name).write_text(text, encoding="utf-8")
        compile_program(folder, ns3)
        found.append(run_program(folder, drawn, ns3=ns3, provenance=provenance(), **options))
    return found


def trips(result: Result):
    """RTTs of single packets and their times."""
    return result.tables["trips"]


def rtt_99(result: Result) -> float:
    return float(np.percentile(result.rtts(result.flows[0]), 99.0))


def events(result: Result) -> list[int]:
    """Counts of the first flow's events of its law."""
    return [int(result.tables["connections"][name][0]) for name in EVENTS]


def throughput(result: Result) -> np.ndarray:
    return 8.0 * result.series["delivered"] / result.scenario.interval


def settled(result: Result) -> dict[str, float]:
    """Figures of the first flow."""
    return result.of(result.flows[0])


@pytest.mark.needs("ns3")
def test_a_cap_on_an_idle_link_gives_its_rate_and_the_link_s_own_rtt(tmp_path):
    """Every RTT is propagation and the times on the wires of a packet and its acknowledgement, to the nanosecond."""
    seen: list[float] = []
    (found,) = runs_in(tmp_path, alone("cap", rate=1e7), progress=seen.append)
    access, packet, acknowledgement = 1e9, 1502.0, 42.0  # PPP adds 2 bytes
    wires = 8.0 * (packet + 2.0 * acknowledgement) / access + 8.0 * 1500.0 / 2e7
    assert np.abs(found.rtts(found.flows[0]) - (0.02 + wires)).max() < 5e-9
    flow = settled(found)
    assert flow["throughput"] == pytest.approx(1e7, rel=1e-3)
    assert (8.0 * found.series["delivered"][0, found.time_s > found.span[0] + 1e-9] / found.scenario.interval).std() < (
        12_000.0 / found.scenario.interval
    )  # a packet a bin
    assert (flow["rtt"], rtt_99(found)) == (pytest.approx(0.02 + wires), pytest.approx(0.02 + wires))
    assert flow["resent"] == 0.0
    assert found.series["lost"].sum() == 0.0
    assert found.series["backlog_most"][0, found.time_s > 2.0].max() <= 1500.0
    assert (found.series["pace"][0, 1:] == 1e7).all()
    assert seen[-1] >= 0.99


@pytest.mark.needs("ns3")
def test_the_paper_s_law_in_the_loop_is_the_runtime_s(tmp_path):
    """The rates in force at the bins' ends are those of the runtime for the RTTs that the program saw."""
    law = netctrl.pacing(max_rate_bit_per_s=3e7, period_s=0.005).law
    (found,) = runs_in(tmp_path, alone("paced", cross=1e6, buffer=1e6), law)
    assert found.totals["resent"][0, 0] == 0.0
    traced = pace_trace(law, trips(found)["time"], trips(found)["rtt"])
    last = np.searchsorted(trips(found)["time"], found.time_s + 1e-12, side="right") - 1
    np.testing.assert_allclose(found.series["pace"][0, 1:], traced.rates[last[1:]], rtol=1e-10)
    assert len(np.unique(traced.rates)) > 50
    np.testing.assert_array_equal(events(found), list(traced.events.values()))


@pytest.fixture(scope="module")
def aimed(tmp_path_factory) -> list[Result]:
    """The own-rate law beside 1 % of cross traffic, four seeds, and the first again."""
    folder = tmp_path_factory.mktemp("aimed")
    return runs_in(folder, alone("paced", cross=2e5, start_spread=0.1), OWN, seeds=(1, 2, 3, 4, 1))


@pytest.mark.needs("ns3")
def test_the_certificate_s_queue_is_held_with_the_link_full(aimed):
    """10.2 packets, 6.1 ms; noise adds up to a half. Cross traffic takes 1 %."""
    queue = netctrl.pacing(mode="own-rate", rtt_s=0.02, bottleneck_bit_per_s=2e7).certificate.equilibrium.queue_s
    for found in aimed:
        flow = settled(found)
        assert flow["throughput"] > 0.965 * 2e7
        assert 0.8 * queue < flow["rtt"] - trips(found)["rtt"].min() < 1.5 * queue
        assert found.totals["lost"][0, 0] == 0.0
        assert events(found)[:2] == [0, 0]
    assert np.mean([rtt_99(found) / trips(found)["rtt"].min() for found in aimed[:4]]) < 1.7


@pytest.mark.needs("ns3")
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(aimed):
    first, other, *_, again = aimed
    np.testing.assert_array_equal(first.series["delivered"], again.series["delivered"])
    np.testing.assert_array_equal(trips(first)["rtt"], trips(again)["rtt"])
    assert first.tables["connections"]["start"][0] != other.tables["connections"]["start"][0]
    assert trips(first)["rtt"][:1000].tolist() != trips(other)["rtt"][:1000].tolist()


@pytest.mark.needs("ns3")
def test_the_fluid_has_the_same_throughput_and_delay(aimed):
    """Within 1 % of the capacity and a packet's time: ns-3 has packets and cross traffic, the fluid neither."""
    base = float(trips(aimed[0])["rtt"].min())
    fluid = one_link.run([one_link.paced(OWN, base)], 2e7 - 2e5, 100e3, 6.0, interval=0.1)
    late = fluid.time_s > 2.0
    for found in aimed[:2]:
        flow_found = settled(found)
        assert flow_found["throughput"] == pytest.approx(fluid.throughput[0, late].mean(), abs=0.01 * 2e7)
        assert flow_found["rtt"] - base == pytest.approx(fluid.delay_s[late].mean(), abs=8.0 * 1500.0 / 2e7)
        # A packet waits in the device too, for the one before it: a fifth of the delay here.
        assert found.series["delay"][0, found.time_s > 2.0].mean() == pytest.approx(flow_found["rtt"] - base, rel=0.05)


@pytest.mark.needs("ns3")
def test_the_own_rate_law_has_a_lower_rtt_than_bbr_at_97_percent_of_its_throughput(aimed, tmp_path):
    (bbr,) = runs_in(tmp_path, alone("bbr", cross=2e5, start_spread=0.1))
    (ours, theirs), (most, their_most) = map(settled, (aimed[0], bbr)), map(rtt_99, (aimed[0], bbr))
    assert ours["rtt"] < theirs["rtt"]
    assert most < their_most
    assert ours["throughput"] >= 0.97 * theirs["throughput"]


@pytest.mark.needs("ns3")
def test_a_window_fills_the_buffer_and_loses(tmp_path):
    """Cubic: RTTs up to a full buffer, drop-tail, and what was dropped is sent again."""
    (found,) = runs_in(tmp_path, alone("cubic", duration=10.0))
    full = 8.0 * 100e3 / 2e7
    assert found.series["lost"].sum() > 0.0
    assert found.totals["resent"][0, 0] >= 1460.0 / 1500.0 * found.series["lost"].sum()
    base = trips(found)["rtt"].min()
    assert base + 0.9 * full < trips(found)["rtt"].max() <= base + full + 1e-3
    assert settled(found)["throughput"] > 0.99 * 2e7
    assert found.series["backlog_most"].max() <= 100e3
    assert found.tables["connections"]["read"][0] <= found.totals["sent"][0, 0] - found.totals["resent"][0, 0]


@pytest.mark.needs("ns3")
def test_all_peers_run_in_one_scenario_with_codel(tmp_path):
    flows = tuple(
        Flow(sender=CapSender(rate=2e6, window="htcp") if kind == "cap" else kind, start=0.1 * i)
        for i, kind in enumerate(PEERS_OF_A_LINK)
    )
    scenario = bottleneck(**(LINK | {"flows": flows, "queue": CodelQueue(), "duration": 8.0}))
    (found,) = runs_in(tmp_path, scenario, OWN)
    assert found["utilization", "bottleneck"] > 0.9
    assert all(found["throughput", flow] > 0.0 for flow in found.flows)
    assert found["throughput", "cap"] < 1.02 * 2e6
    assert found["delay", "bottleneck"] < 0.02
    assert 1.0 / len(flows) < found["Jain's index", "flows"] < 1.0
    assert found.series["lost"].sum() > 0.0
    assert {"window", "pace", "rtt", "delivered"} <= set(found.to_pandas("flow").columns)


@pytest.mark.needs("ns3")
def test_a_flow_that_stops_leaves_the_link_to_the_other(tmp_path):
    flows = (Flow(sender="paced"), Flow(id="other", sender="reno", rtt=0.04, start=1.0, stop=2.0))
    (found,) = runs_in(tmp_path, alone("paced", flows=flows), OWN)
    assert throughput(found)[1, 12:20].mean() > 1e6
    assert throughput(found)[1, -10:].sum() == 0.0
    assert throughput(found)[0, -10:].mean() > 0.95 * 2e7


@pytest.mark.needs("ns3")
def test_what_is_not_whole_is_refused(tmp_path):
    scenario = alone("cap", rate=1e6, duration=0.5, warmup=0.1, interval=1.0 / 6.0)  # rounded to 166,666,667 ns
    (found,) = runs_in(tmp_path, scenario)
    assert len(found.time_s) == 2
    other = scenario.replace(interval=0.05)
    with pytest.raises(NetctrlError, match="2 rows, not 10"):
        run_program(tmp_path, other, ns3=find_ns3(), provenance=provenance())


# --- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def design(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("design") / "pacing.json"
    plant = ["--rtt", "5ms", "--bottleneck", "20Mbit"]
    assert design_main(["pacing", "--mode", "own-rate", *plant, "-o", str(path)]) == 0
    return str(path)


PEERS = """schema = "netctrl.scenario/3"
name = "peers"
network = { kind = "bottleneck", capacity = "20Mbit" }
duration = "2s"
warmup = "500ms"
packet_size = "1500B"

[[flows]]
id = "one"
sender = "paced"

[[flows]]
id = "other"
sender = "bbr"
"""


@pytest.mark.needs("ns3")
def test_a_design_is_run_at_its_own_bottleneck(design, tmp_path, capsys):
    folder = tmp_path / "a"
    assert main(["ns3", design, "-o", str(folder), "--run", "--result", str(tmp_path / "bins.csv")]) == 0
    said = capsys.readouterr().out
    assert "bottleneck of the design" in said
    assert "1.5 to 6 s" in said
    assert "(ns-3." in said
    assert "  flow " in said
    assert len((tmp_path / "bins.csv").read_text().splitlines()) == 1 + 2 * 1200  # of the link, and of the flow
    assert "#   pole: " in (folder / "scenario.txt").read_text()


@pytest.mark.needs("ns3")
def test_a_design_goes_into_a_scenario_with_peers(design, tmp_path, capsys):
    path = tmp_path / "peers.toml"
    path.write_text(PEERS)
    requested = ["ns3", design, "--scenario", str(path), "-o", str(tmp_path / "a"), "--run", "--json", "--seed", "5"]
    assert main(requested) == 0
    said = json.loads(capsys.readouterr().out)
    assert {"one", "other"} <= {each["of"] for each in said["summary"]}
    assert said["scenario"]["seed"] == 5
    assert said["simulator"].startswith("ns-3")


def test_a_program_is_written_without_a_run(tmp_path, capsys):
    path, folder = tmp_path / "peers.toml", tmp_path / "a"
    path.write_text(PEERS.replace("paced", "htcp"))
    assert main(["ns3", str(path), "-o", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert sorted(said["files"]) == sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["PEERS"], "takes a Design of pacing with the scenario, a file, or a law"),
        (["DESIGN", "--scenario", "arc-staircase"], "takes one with a flow of sender paced, whose rate the law sets"),
        (["DESIGN", "--governor"], "--governor"),
        (["DESIGN", "--run", "--result", "a.json"], ".csv or .parquet"),
        (
            ["MPCC", "--scenario", "PEERS"],
            "this is a Design of mpcc; expected one of arc or hftrac or mpc or connet or pacing",
        ),
    ],
    ids=str,
)
def test_wrong_use_is_named(design, tmp_path, capsys, arguments, says):
    peers, mpcc = tmp_path / "peers.toml", tmp_path / "mpcc.json"
    peers.write_text(PEERS)
    plant = ["--flows", "4", "--rate", "1Gbit", "--bdp", "3750", "--rtt", "34.752us"]
    assert design_main(["mpcc", *plant, "--accept", "stable", "-o", str(mpcc)]) == 0
    named = {"DESIGN": design, "PEERS": str(peers), "MPCC": str(mpcc)}
    assert main(["ns3", *(named.get(each, each) for each in arguments), "-o", str(tmp_path / "a")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
