"""`netctrl certify red`, `wred` and `FILE` as a person and a script see them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command_lines import Run, the_error
from installed import DUALPI2, PIE, RED, entry, sonic, wred_profile

from netctrl.certificates.certify import certify
from netctrl.certificates.inputs.read import read_queues
from netctrl.certificates.installed import installed_subject
from netctrl.certificates.pi_laws import dualpi2, pie
from netctrl.cli.certify import main

RUNS = main
SHOWN = {**DUALPI2, "memory-limit": 15140000, "alpha": 0.152344}
OPTIONS = {"pie": PIE, "sfq": {}, "red": RED, "dualpi2": SHOWN}
TC = [entry(kind, options, number) for number, (kind, options) in enumerate(OPTIONS.items(), 1)]
FILES = {"tc.json": json.dumps(TC), "sonic.json": sonic(AZURE_LOSSLESS=wred_profile(), OFF={"ecn": "ecn_none"})}
BOX = "--rtt 40ms --N 14 --capacity 20Mbit"


def test_each_queue_of_tc_has_its_certificate_or_the_reason(run: Run) -> None:
    status, out, err = run(f"tc.json {BOX} --json -o saved.json")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert Path("saved.json").read_text() == out
    assert [each["name"] for each in found["queues"]] == [f"{q['kind']} {q['handle']} on eth0, root" for q in TC]
    assert [each["certificate"] is None for each in found["queues"]] == [False, True, False, False]
    assert found["queues"][1]["reason"].startswith("its optional RED")
    where = {"rtt_s": 0.04, "flows": 14.0, "capacity_bit_per_s": 20e6}
    laws = {0: pie(tupdate_s=0.016), 2: None, 3: dualpi2(alpha=0.16)}
    for number, law in laws.items():
        certificate = found["queues"][number]["certificate"]["certificate"]
        assert certificate["status"] == "admissible"
        if law is not None:
            alone = certify(law, **where).certificate.sampled
            assert alone is not None
            assert certificate["sampled"]["gain_margin_db"] == pytest.approx(alone.gain_margin_db, abs=0.02)
    line = "red --limit 400000 --min 30000 --max 90000 --burst 55 --ecn"
    alone = json.loads(run(f"{line} {BOX} --json")[1])
    assert found["queues"][2]["certificate"]["certificate"] == alone["certificate"]
    assert found["queues"][2]["certificate"]["law"] == alone["law"]


def test_it_is_for_people_and_status_3_where_one_does_not_hold(run: Run) -> None:
    status, out, err = run("tc.json --rtt 200ms --N 2 --capacity 20Mbit")
    assert status == 3
    assert err == f"error: {out.splitlines()[0]}\n"
    assert out.startswith("certified queues: 3 of 4, ")
    assert "\npie 1: on eth0, root: pie with 2 flows at 200 ms: doesn't hold;\n  " in out
    assert "% used (at least 98 % is asked), by packets; twice" in " ".join(out.split())
    assert "\nsfq 2: on eth0, root\n\n  no certificate: its optional RED" in out


def test_what_is_piped_in_is_read() -> None:
    line = [sys.executable, "-m", "netctrl", "certify", "-", *shlex.split(BOX), "--json"]
    done = subprocess.run(line, input=json.dumps(TC[:1]).encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert len(json.loads(done.stdout)["queues"]) == 1
    done = subprocess.run(line, input=b"qdisc", capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: standard input: not a file that netctrl knows")


def test_sonics_profile_holds_for_few_flows_and_marks_all_packets_for_many(run: Run) -> None:
    line = "--rtt 100us --capacity 100Gbit --sender dctcp"
    status, out, _ = run(f"sonic.json --N 8:32 {line}")
    assert status == 0
    assert "wred AZURE_LOSSLESS, green: wred with 8 to 32 flows at 100 µs: holds;\n  " in out
    assert "wred OFF\n\n  no certificate: WRED is off for all colours\n" in out
    status, out, _ = run(f"sonic.json --N 100 {line}")
    assert (status, "green: wred with 100 flows at 100 µs: holds;\n  " in out) == (0, True)
    status, out, _ = run(f"sonic.json --N 1200 {line} --json")
    assert status == 3
    assert [each["certificate"] is None for each in json.loads(out)["queues"]] == [False, True]
    same = run(f"wred --min 1MiB --max 2MiB --probability 5 --ecn --N 8:32 {line} --json")[1]
    first = json.loads(run(f"sonic.json --N 8:32 {line} --json")[1])["queues"][0]["certificate"]
    assert json.loads(same)["certificate"] == first["certificate"]


@pytest.mark.slow
def test_laws_in_bytes_are_named_where_the_box_is_of_windows(run: Run) -> None:
    status, out, _ = run("tc.json --rtt 20ms --window 5")
    assert status == 0
    assert "red 3: on eth0, root\n\n  no certificate: window: got (5.0, 5.0), takes flows and a capacity" in out
    assert "takes one rate: the thresholds" in run("tc.json --rtt 20ms --N 14 --capacity 20Mbit:21Mbit")[1]


def test_an_unreadable_queue_is_named_the_others_are_judged_and_the_status_says_so(run: Run) -> None:
    bad = entry("pie", {**PIE, "tupdate": 15001}, 9)
    Path("one.json").write_text(json.dumps([entry("pie", {**PIE, "tupdate": 15000}, 1), bad]))
    status, out, err = run(f"one.json {BOX}")
    assert (status, err) == (3, "error: certified queues: 1 of 2, 1 hold, 1 can't be read\n")
    assert "pie 1: on eth0, root: pie with 14 flows at 40 ms: holds;\n  15 ms ± " in out
    assert "warning: CONFIG_HZ is taken as 1000" in out
    assert "pie 9: on eth0, root\n\n  no certificate: tupdate: got 15001" in out
    assert json.loads(run(f"one.json {BOX} --json")[1])["queues"][1]["unreadable"] is True
    profile = {**wred_profile(), "green_min_threshold": " 1048576"}
    Path("blank.json").write_text(sonic(A=profile, B={**profile, "ecn": "blue"}))
    status, out, _ = run("blank.json --rtt 100us --N 8:32 --capacity 100Gbit --sender dctcp")
    assert (status, out.splitlines()[0]) == (3, "certified queues: 1 of 2, 1 hold, 1 can't be read")


def test_a_sender_that_one_law_lacks_hides_no_other_queue(run: Run) -> None:
    """dctcp alone has no loop under dualpi2; under pie it has one."""
    status, out, err = run(f"tc.json {BOX} --sender dctcp")
    assert (status, err) == (0, "")
    assert out.startswith("certified queues: 2 of 4, 2 hold\n")
    assert "no certificate: sender: got dctcp, takes at least one classic sender for dualpi2" in out
    assert run(f"tc.json {BOX} --sender nobody")[::2] == (2, run(f"pie {BOX} --sender nobody")[2])


def test_fq_pie_is_pie_for_each_flow(run: Run) -> None:
    status, out, err = run(f"fq_pie {BOX} --json")
    assert (status, err[:23]) == (3, "error: fq_pie with 14 flows"[:23])  # a single flow at 1.4 Mbit/s swings
    assert json.loads(out)["certificate"]["predicted"]["by"] == "packet"
    alone = json.loads(run(f"pie {BOX} --json")[1])
    assert json.loads(out)["certificate"]["sampled"] == alone["certificate"]["sampled"]
    assert json.loads(out)["law"]["implementation"] == "Linux sch_fq_pie"
    assert "--gains: got nothing, takes a law with gains of its own" in run(f"fq_pie {BOX} --gains")[2]


def test_nothing_to_certify_is_no_success_and_a_step_is_named(run: Run) -> None:
    step = entry("red", {**RED, "min": 90000}, 9)
    Path("none.json").write_text(json.dumps([TC[1], step]))
    status, out, err = run(f"none.json {BOX}")
    assert (status, err) == (3, "error: certified queues: 0 of 2, 0 hold\n")
    assert "no certificate: max: got 90000, takes more than min: with equal thresholds the law is a step" in out


def test_laws_of_tc_keep_the_kernels_numbers() -> None:
    shown = [entry("pie", {**PIE, "dq_rate_estimator": True, "bytemode": True}, 1), entry("dualpi2", SHOWN, 4)]
    first, second = (installed_subject(each) for each in read_queues(text=json.dumps(shown), hz=250))
    assert first.notes[-1].startswith("bytemode")
    again = pie(**dict(first.parameters))
    assert again.rungs == first.rungs
    assert again.reading is first.reading
    law = read_queues(text=json.dumps(shown))[1].law
    assert second.rungs == ((0.0, float("inf"), law.gains),)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"no.json {BOX}", "no.json: can't be read: No such file"),
        (f"file no {BOX}", "no: can't be read: No such file"),
        (f"tc.json {BOX} --hz 60", "--hz: got 60"),
        (f"tc.json {BOX} --gains", "unknown option '--gains'"),
        (f"red {BOX}", "--limit"),
        (f"red --limit 400kB {BOX} --gains", "--gains: got nothing, takes a law with gains"),
        (f"red --limit 400kB --probability 1.5 {BOX}", "--probability: got 1.5"),
        ("red --limit 400kB --rtt 20ms --window 5", "--window: got '5'"),
        (f"wred --min 2MiB --max 1MiB {BOX}", "--max: got 1048576"),
        (f"wred --min 1MiB --max 2MiB --probability 5% {BOX}", "--probability: got '5%'"),
    ],
)
def test_unusable_input_is_named_in_one_line(run: Run, line: str, said: str) -> None:
    assert said.split(": got")[0] in the_error(run(line))
