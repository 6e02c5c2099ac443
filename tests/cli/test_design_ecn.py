"""`netctrl design ecn` and the exports of its Designs, as a person and a script see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_lines import Run, the_error

import netctrl
from netctrl.cli.certify import main as certify
from netctrl.cli.design import main
from netctrl.cli.export import main as export

RUNS = main
RACK = "--rtt 100us --N 2:40 --capacity 10Gbit"


def test_a_threshold_is_printed_saved_reported_exported_and_certified(run: Run) -> None:
    status, out, err = run(f"ecn {RACK} -o ecn.json --report ecn.html --plot ecn.png")
    assert (status, err) == (0, "")
    assert out.startswith("ecn for 2 to 40 flows at 100 µs: the link stays busy with a packet of each flow to spare")
    assert "threshold K          50 packets, 75 kB or 60 µs" in out
    assert "one step less        shortest queue 39.46 packets, 0.9866 of each flow, at 40 flows" in out
    found = netctrl.read("ecn.json")
    assert "netctrl.ecn_design(" in Path("ecn.html").read_text()
    assert Path("ecn.png").stat().st_size > 10_000
    status, text, _ = run("sonic ecn.json --name DCTCP", export)
    assert status == 0
    Path("config_db.json").write_text(text)
    status, out, _ = run(f"config_db.json {RACK} --sender dctcp", certify)
    assert (status, out.splitlines()[0]) == (0, "certified queues: 3 of 3, 3 hold")
    assert run("openconfig ecn.json -o oc.json", export)[0] == 0
    assert '"min-threshold": "75001"' in Path("oc.json").read_text()
    assert run("tc ecn.json --interfaces eth0 -o router", export)[0] == 0
    line = Path("router/queue.tc").read_text().splitlines()[1]
    assert line.startswith("qdisc replace dev eth0 root red limit 1200000 min 75001 max 75001 ")
    status, out, _ = run("ns3 ecn.json -o attributes --json", export)
    assert (status, json.loads(out)["attributes"]["MinTh"]) == (0, "75001.0")
    status, out, _ = run(f"dctcp --K 75000B {RACK} --json", certify)
    assert status == 0
    step = json.loads(out)["certificate"]["step"]
    assert step["fluid"]["lowest_packets"] == found.certificate.verdict.step.fluid.lowest_packets


def test_a_threshold_in_time_is_one_of_codel_or_dualpi2(run: Run) -> None:
    box = "--rtt 50us:200us --N 1:20 --capacity 10Gbit:40Gbit"
    status, out, _ = run(f"ecn {box} --unit time --g 0.0625 --json -o t.json")
    assert (status, json.loads(out)["law"]["parameters"]) == (0, {"k_s": 6.2e-5, "g": 0.0625})
    assert run("tc t.json --interfaces eth0 -o codel", export)[0] == 0
    assert Path("codel/queue.tc").read_text().endswith(" ce_threshold 63us\n")
    assert run("tc t.json --interfaces eth0 -o dualpi2 --implementation dualpi2", export)[0] == 0
    assert Path("dualpi2/queue.tc").read_text().endswith(" step_thresh 62us any_ect\n")
    for kind, said in (
        ("tc t.json --interfaces eth0 -o r --implementation red", "error: t.json: law: got 'a threshold in time'"),
        ("tc t.json --interfaces eth0 -o r --implementation ebpf", "error: --implementation: got 'ebpf', takes one of"),
        ("sonic t.json", "a threshold in bytes, as netctrl design ecn --unit bytes makes it"),
        ("tc t.json -o r", "error: --interfaces"),
    ):
        status, out, err = run(kind, export)
        assert (status, out) == (2, "")
        assert said in err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"ecn {RACK} --unit cells", "--unit: got 'cells', takes one of bytes, packets, time"),
        (f"ecn {RACK} --g 2", "--g: got 2.0, takes a gain above 0 and at most 1"),
        (f"ecn {RACK} --g 2/16", "--g: got '2/16'"),
        (f"ecn {RACK} --packet-size 1500.5", "--packet-size: got 1500.5, takes a whole number of bytes"),
        (f"ecn {RACK} --plot k.txt", "--plot: got 'k.txt'"),
        ("ecn --rtt 100us --N 40:2 --capacity 10Gbit", "--N: got '40:2'"),
        ("ecn --rtt 10s --N 2 --capacity 10Gbit", "--N: got"),
        ("ecn --rtt 100us --N 2", "--capacity"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(run: Run, line: str, said: str) -> None:
    assert said in the_error(run(line))
