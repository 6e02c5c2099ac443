"""`netctrl design pie|pi2|dualpi2|red|wred` and the exports of their Designs, as a person and a script see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_lines import Run, the_error

import netctrl
from netctrl.certificates.inputs.read import read_queues
from netctrl.cli.certify import main as certify
from netctrl.cli.design import main
from netctrl.cli.export import main as export
from netctrl.laws.targets.wred import WredLaw

RUNS = main
HOME = "--rtt 10ms:30ms --N 3:5 --capacity 20Mbit --sender reno"


@pytest.mark.slow
def test_a_design_is_printed_saved_reported_exported_and_certified(run: Run) -> None:
    status, out, err = run(f"pie {HOME} -o pie.json --report pie.html --plot pie.png")
    assert (status, err) == (0, "")
    assert out.startswith("pie for 3 to 5 flows at 10 ms to 30 ms: holds, with a disk margin of at least 0.7")
    found = netctrl.read("pie.json")
    assert "netctrl.queue_design(law=" in Path("pie.html").read_text()
    assert Path("pie.png").stat().st_size > 10_000
    status, out, _ = run("tc pie.json --interfaces eth0 -o router", export)
    assert status == 0
    assert "tc -batch router/queue.tc" in out
    line = Path("router/queue.tc").read_text().splitlines()[1]
    assert line == "qdisc replace dev eth0 root pie target 15ms tupdate 15ms alpha 2 beta 26 noecn"
    status, out, _ = run(f"pie --alpha 2 --beta 26 {HOME} --json", certify)
    assert status == 0
    sampled = json.loads(out)["certificate"]["sampled"]
    assert sampled["gain_margin_db"] == found.certificate.verdict.sampled.gain_margin_db


@pytest.mark.slow
def test_a_design_of_pie_is_beside_the_shipped_gains(run: Run) -> None:
    """Figures of both at the largest and the smallest windows, and which are better; kept in the Design."""
    status, out, _ = run("pie --rtt 20ms --N 10 --capacity 20Mbit --check fluid,packet -o pie.json")
    assert status == 0
    assert out.count("these gains: ") == out.count("shipped alpha 0.125, beta 1.25: ") == 2  # of each engine
    found = netctrl.read("pie.json").certificate
    assert [each.engine for each in found.figures] == [each.engine for each in found.shipped] == ["fluid", "packet"]
    assert {each.parameters.get("alpha", 0.125) for each in found.shipped} == {0.125}
    for fluid, packet in (found.figures, found.shipped):
        assert fluid.deviation_s is None
        assert fluid.mean_delay_s == pytest.approx(0.015, rel=0.03)
        assert packet.mean_delay_s == pytest.approx(0.015, rel=0.1)
        assert packet.mean_delay_s < packet.mean_delay_s + packet.deviation_s < packet.delay_99_s < 0.045
        assert packet.utilization > 0.99
    status, out, err = run("pi2 --rtt 20ms --N 10 --capacity 20Mbit --check kernel")
    assert status == 2  # the design is printed first
    assert out.startswith("pi2 for 10 flows at 20 ms: holds")
    assert err.startswith("error: --check: got 'kernel with pi2")


@pytest.mark.slow
def test_figures_are_asked_for_and_met_or_not(run: Run) -> None:
    status, out, _ = run("pie --rtt 20ms --N 20 --capacity 20Mbit --p99 30ms --utilization 98%")
    assert status == 0
    assert out.startswith("pie for 20 flows at 20 ms: change, with a disk margin of at least 0.8")
    asked = "--p99 60ms --utilization 90% --accept stable"
    status, out, _ = run(f"pie --rtt 100ms --N 10 --capacity 20Mbit {asked} -o kept.json")
    assert status == 0
    assert out.startswith(
        "pie for 10 flows at 100 ms: keep the shipped gains, stable, without the disk margin: 99 % below"
    )
    assert out.count("packet, worst") == out.count("shipped gains: 99 % below") == 1
    kept = netctrl.read("kept.json")
    assert (kept.inputs.p99_s, kept.inputs.utilization, kept.inputs.step_s) == (0.06, 0.9, None)
    assert {name: kept.law.parameters[name] for name in ("alpha", "beta")} == {"alpha": 0.125, "beta": 1.25}
    status, out, err = run("pie --rtt 20ms --N 10 --capacity 20Mbit --p99 15ms -o missed.json")
    assert status == 3
    assert ": not met, the 99th percentile of the delay is " in err
    assert "a target of 10 ms or so may meet" in err
    assert not Path("missed.json").exists()


@pytest.mark.slow
def test_cakes_keyword_is_asked_for_and_becomes_a_line_of_tc(run: Run) -> None:
    """One flow at 100 ms needs a longer rtt for 95 %; the Design file has the same line, and a report but no map."""
    status, out, _ = run("cake --rtt 100ms --N 1 --capacity 10Mbit --utilization 95% -o cake.json --report cake.html")
    assert status == 0
    assert out.startswith("cake for 1 flow at 100 ms: change, by packets: 99 % below ")
    line = next(each for each in out.splitlines() if each.startswith("  tc "))
    assert "tc qdisc replace dev DEV root cake bandwidth 10000000bit rtt " in line
    assert run("tc cake.json --interfaces eth0 -o cake", export)[0] == 0
    assert Path("cake/queue.tc").read_text().splitlines()[1].split("root ")[1] == line.split("root ")[1]
    assert "times" in Path("cake.html").read_text()
    status, _, err = run("cake --rtt 100ms --N 1 --capacity 10Mbit --utilization 95% --plot cake.svg")
    assert (status, "a law with a map of its gain margin" in err) == (2, True)


def test_wred_becomes_profiles_of_switches(run: Run) -> None:
    status, out, _ = run(
        "wred --min 100kB --rtt 100us --N 8:32 --capacity 100Gbit --sender dctcp --ecn --json -o w.json"
    )
    assert status == 0
    made = json.loads(out)["law"]["parameters"]
    status, text, _ = run("sonic w.json --name AZURE", export)
    assert status == 0
    assert {queue.law for queue in read_queues(text=text)} == {WredLaw(**made)}
    status, out, _ = run("openconfig w.json -o oc.json", export)
    assert status == 0
    assert "holds" in out
    assert f'"max-threshold": "{made["max_bytes"]}"' in Path("oc.json").read_text()
    for kind, said in (("tc w.json --interfaces e -o r", "a law of Linux"), ("ns3 w.json -o n", "pie --rfc")):
        status, _, err = run(kind, export)
        assert status == 2
        assert said in err
    status, _, err = run("sonic w.json --name _", export)
    assert (status, err[:20]) == (2, "error: --name: got '")


def test_red_becomes_a_line_of_tc(run: Run) -> None:
    assert run("red --min 30kB --rtt 50ms --N 15:20 --capacity 20Mbit --ecn -o red.json")[0] == 0
    assert run("tc red.json --interfaces eth0 -o router", export)[0] == 0
    line = Path("router/queue.tc").read_text().splitlines()[1]
    assert line.startswith("qdisc replace dev eth0 root red limit ")
    assert line.endswith("min 30000 " + line.partition("min 30000 ")[2])
    assert " bandwidth 20000000bit ecn" in line


def test_pie_in_real_numbers_becomes_attributes_of_ns3(run: Run) -> None:
    assert run("pie --rfc --rtt 20ms --window 10 -o rfc.json")[0] == 0
    status, out, _ = run("ns3 rfc.json -o attributes --json", export)
    assert status == 0
    attributes = json.loads(out)["attributes"]
    assert attributes["TypeId"] == "ns3::PieQueueDisc"
    assert f'default ns3::PieQueueDisc::A "{attributes["A"]}"' in Path("attributes/attributes.txt").read_text()
    status, _, err = run("ns3 rfc.json -o attributes --run", export)
    assert status == 2
    assert "--run" in err


def test_a_design_outside_the_rule_is_status_3_and_not_saved(run: Run) -> None:
    status, out, err = run("pi2 --rtt 100ms --window 50 --disk-margin 0.4 -o pi2.json")
    assert status == 3
    assert "STABLE" in out
    assert "outside the design rule" in err
    assert not Path("pi2.json").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pie --rtt 10ms --N 3", "--capacity is missing"),
        ("pie --rtt 10ms --window 10 --alpha 2", "--alpha: got 0.125, takes a value only with --objective margin"),
        ("pie --rtt 10ms --window 10 --objective fast", "--objective: got 'fast'"),
        ("pie --rtt 10ms --window 10 --p99 20ms", "--window: got (10.0, 10.0), takes flows and a capacity"),
        ("pie --rtt 10ms --N 3 --capacity 9Mbit --utilization 101%", "--utilization: got '101%'"),
        ("pie --rtt 10ms --window 10 --disk-margin 2", "--disk-margin: got 2.0"),
        ("pie --rtt 10ms --window 10 --disk-margin x", "--disk-margin: got 'x'"),
        ("dualpi2 --rtt 10ms --window 10 --coupling-factor x", "--coupling-factor: got 'x'"),
        ("red --min 30kB --burst 2 --rtt 50ms --N 15 --capacity 20Mbit", "--burst: got 2"),
        ("wred --min 1.5B --rtt 50us --N 8 --capacity 10Gbit", "--min: got '1.5B', takes a whole number of bytes"),
        ("wred --min 1kB --rtt 50us --window 8", "--window: got"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(run: Run, line: str, said: str) -> None:
    assert said in the_error(run(line))
