"""`netctrl certify` as a person and a script see it: status, one line of error, JSON, files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_lines import Run, the_error

from netctrl.cli.certify import main

RUNS = main
LINE = "dualpi2 --alpha .16 --beta 3.2 --tupdate 16ms --target 15ms --rtt 100ms --window 50 --sender reno"


def test_json_has_both_loops_and_a_status(run: Run) -> None:
    status, out, err = run(f"{LINE} --json")
    content = json.loads(out)
    found = content["certificate"]
    assert status == 3
    assert found["status"] == "stable"
    assert found["linear"]["gain_margin_db"] == pytest.approx(3.06, abs=0.01)
    assert found["sampled"]["gain_margin_db"] == pytest.approx(0.27, abs=0.01)
    assert content["law"]["gains"]["integral"] == pytest.approx(0.1528, abs=1e-4)
    assert err.startswith("error: dualpi2 with windows of 50 packets at 100 ms: stable, but")


def test_a_law_that_holds_is_status_0_and_saved(run: Run) -> None:
    status, out, err = run("pie --rtt 20ms --N 4 --capacity 20Mbit --sender reno -o found.json --report found.html")
    assert (status, err) == (0, "")
    assert out.startswith("pie with 4 flows at 20 ms: holds;\n  15 ms ± ")
    assert json.loads(Path("found.json").read_text())["certificate"]["status"] == "admissible"
    assert "proved" in Path("found.html").read_text()


def test_gains_that_hold_are_tcs(run: Run) -> None:
    status, out, _ = run("dualpi2 --rtt 100ms --window 50 --gains --json")
    held = json.loads(out)["gains_that_hold"]
    assert status == 3
    assert held["tc"].startswith("dualpi2 target 15ms tupdate 16ms alpha 0.0")
    assert held["gain_margin_db_proved"] >= 6.0
    assert held["disk_margin_proved"] >= 2.0 / 3.0
    sent = held["tc"].removesuffix(" drop_dequeue").split()
    options = " ".join(
        f"--{name.replace('_', '-')} {value}" for name, value in zip(sent[1::2], sent[2::2], strict=True)
    )
    status, out, _ = run(f"dualpi2 {options} --rtt 100ms --window 50")
    assert status == 0


@pytest.mark.parametrize("law", ["pi2 --alpha 0.01 --beta 0", "pie --beta 0", "pie --beta 0Hz", "docsis-pie --B 0.0"])
def test_a_law_may_have_no_gain_on_the_change(run: Run, law: str) -> None:
    found = json.loads(run(f"{law} --rtt 20ms --window 8 --json")[1])
    assert found["law"]["parameters"]["beta"] == 0.0
    assert found["certificate"]["sampled"] is not None


def test_dualpi2_of_linux_needs_both_gains(run: Run) -> None:
    status, _, err = run("dualpi2 --beta 0 --rtt 20ms --window 8")
    assert status == 2
    assert err.startswith("error: --beta: got 0.0, takes a gain above 0")


def test_gains_of_pie_are_sixteenths_or_have_their_unit(run: Run) -> None:
    tc = run("pie --alpha 2 --beta 20 --rtt 20ms --window 10 --json")[1]
    rfc = run("pie --alpha 0.125Hz --beta 1.25Hz --rtt 20ms --window 10 --json")[1]
    assert json.loads(tc)["certificate"] == json.loads(rfc)["certificate"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pie --rtt 100 --window 5", "--rtt: got '100', takes a round-trip time without queueing, with its unit"),
        ("pie --rtt 100ms", "--N is missing: flows and a capacity, or a window"),
        ("pie --rtt 100ms --N 5", "--capacity is missing"),
        ("pie --rtt 100ms --window 5 --sender vegas", "--sender: got 'vegas'"),
        ("pie --rtt 100ms --window 5 --alpha 40", "--alpha: got 40"),
        ("pie --rtt 100ms --window 5 --hz 60", "--hz: got 60"),
        ("dualpi2 --rtt 100ms --window 5 --sender dctcp", "--sender: got 'dctcp', takes at least one classic sender"),
        ("dualpi2 --rtt 100ms --window 5 --coupling-factor 1.5", "--coupling-factor: got '1.5'"),
        ("sfq --rtt 100ms", "LAW: got 'sfq', takes one of pie"),
        ("choke --rtt 100ms --window 5", "LAW: got 'choke'"),
        ("codel --rtt 100ms --window 5", "--window: got (5.0, 5.0), takes flows and a capacity instead"),
    ],
)
def test_unusable_input_is_named_in_one_line(run: Run, line: str, said: str) -> None:
    assert the_error(run(line)).startswith(f"error: {said}")


PIE = "pie --rtt 100ms --N 50 --capacity 20Mbit --rfc --dq-rate-estimator"


@pytest.mark.slow
def test_a_queue_that_oscillates_holds_where_its_users_feel_no_more_than_is_asked(run: Run) -> None:
    status, out, _ = run(f"{PIE} --check fluid,packet")
    assert status == 0 and "used, by packets" in out.partition("\n\n")[0]
    assert "fluid at the worst point   oscillates from empty and full" in out
    assert "packet at the worst point  oscillates (envelope ratio 1." in out
    assert run(f"{PIE} --p99 35ms")[0] == 3
    status, out, _ = run(f"{PIE.replace('100ms', '50ms')} --check fluid --json")
    content = json.loads(out)
    assert status == 0
    assert [(each["engine"], each["settles"]) for each in content["checks"]] == [("fluid", True)]


def test_each_part_of_a_long_verdict_has_a_line_of_its_own(run: Run) -> None:
    _, out, _ = run("dualpi2 --rtt 5ms:40ms --N 10:20 --capacity 100Mbit --sender reno --packet-size 1500B")
    answer, figures, doubled, blank, *_ = out.splitlines()
    assert (answer, blank) == ("dualpi2 with 10 to 20 flows at 5 ms to 40 ms: holds;", "")
    assert re.fullmatch(r"  [\d.]+ ms ± [\d.]+ ms of queue, 99 % below [\d.]+ ms, link 100 % used;", figures)
    assert re.fullmatch(r"  twice the flows cost \d+ ms above two targets", doubled)
    _, out, _ = run("pi2 --rtt 20ms --N 10 --capacity 100Mbit")
    assert out.startswith("pi2 with 10 flows at 20 ms: holds;\n")
    assert all(len(line) <= 100 for line in out.split("\n\n")[0].splitlines())


def test_checks_are_refused_by_name_or_left_out_without_an_equilibrium(run: Run) -> None:
    status, out, err = run(f"{PIE} --check flud")
    assert (status, out) == (2, "")
    assert err == "error: --check: unknown 'flud'; did you mean 'fluid'?\n"
    red = "red --limit 400kB --min 30kB --max 90kB --burst 55 --rtt 50ms --N 20 --capacity 20Mbit"
    status, _, err = run(f"{red} --gentle --check kernel")
    assert status == 2
    assert err.startswith("error: --check: got 'kernel with --gentle', takes red without --gentle")
    status, _, err = run("docsis-pie --rtt 20ms --N 10 --capacity 20Mbit --check kernel")
    assert status == 2
    assert err.startswith(
        "error: --check: got 'kernel with docsis-pie of RFC 8034', takes fluid or packet: Linux has no"
    )
    status, out, _ = run(f"{red} --check fluid")
    assert status == 0  # 8.4 dB, and the average stands .25 kB below the threshold from which on all is dropped
    assert "% used, by packets;\n  twice" in out and "fluid at the worst point  oscillates" in out
    status, out, _ = run("pie --rtt 10ms --N 100 --capacity 20Mbit --check fluid")
    assert "no check: the worst point has no equilibrium" in out


def test_a_check_that_cannot_run_does_not_hide_the_certificate(run: Run) -> None:
    """It is printed, the failure is named, and the status is 2; 3 where the law doesn't hold."""
    status, out, err = run("docsis-pie --rtt 20ms --N 10 --capacity 20Mbit --check kernel")
    assert status == 2
    assert out.startswith("docsis-pie with 10 flows at 20 ms: holds;\n  10 ms ± ")
    assert "kernel at the worst point  not run: it takes fluid or packet: Linux has no DOCSIS-PIE" in out
    assert err.startswith("error: --check: got 'kernel with docsis-pie of RFC 8034', takes fluid or packet")
    status, out, err = run("pi2 --rtt 100ms --window 50 --sender reno --check kernel --json")
    assert status == 3
    assert [each["engine"] for each in json.loads(out)["failed_checks"]] == ["kernel"]
    assert err.startswith("error: pi2 with windows of 50 packets at 100 ms: ")


def test_a_slip_of_units_is_refused_or_warned_of(run: Run) -> None:
    for what, value in (("packet-size", "1e-320"), ("packet-size", "1e-5"), ("rtt", "1e-12s"), ("capacity", "1e17bit")):
        given = {"rtt": "20ms", "N": "5", "capacity": "10Mbit"} | {what: value}
        status, out, err = run("pi2 " + " ".join(f"--{name} {each}" for name, each in given.items()))
        assert (status, out) == (2, "")
        assert err.startswith(f"error: --{what}: got '{value}', takes a ")
        assert err.count("\n") == 1
    out = run("pi2 --rtt 20s --N 5 --capacity 1Mbit")[1]
    assert "warning: no path has a round-trip time of 20 s: if it is in ms, give 0.02 s" in out


@pytest.mark.slow
def test_a_networks_certificate_is_printed_and_saved(run: Run) -> None:
    status, out, err = run("network parking-lot -o found.json")
    assert (status, err) == (0, "")
    assert out.startswith("parking lot with bottlenecks first, second: holds\n")
    saved = json.loads(Path("found.json").read_text())
    assert saved["certificate"]["margins"]["gain_margin_db_proved"] > 6.0
    status, out, _ = run("network parking-lot --json")
    assert status == 0
    assert json.loads(out)["certificate"] == saved["certificate"]


def test_what_a_network_has_that_no_loop_describes_is_named(run: Run) -> None:
    status, _, err = run("network arc-staircase-bulk")
    assert status == 2
    assert "links.forward.queue: got 'arc'" in err
    assert run("network nowhere.toml")[0] == 2
