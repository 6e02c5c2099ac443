"""`netctrl certify dctcp` and `dcqcn` as a person and a script see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_lines import Run, the_error
from installed import sonic, wred_profile

from netctrl.certificates.certify import certify
from netctrl.cli.certify import main

RUNS = main
LINK = "--rtt 100us --N 2:40 --capacity 10Gbit"
ROCE = "--rtt 50us --N 10 --capacity 40Gbit --packet-size 1000"


def test_a_threshold_that_fills_the_link_is_status_0_and_saved(run: Run) -> None:
    status, out, err = run(f"dctcp --K 65 {LINK} -o found.json --report found.html")
    assert (status, err) == (0, "")
    assert out.startswith("dctcp with 2 to 40 flows at 100 µs: holds;\n  ")
    assert "link 100 % used, by packets\n" in out  # windows of 40 flows are of 4 packets
    assert "describing function  queue" in out
    assert "(prediction)" in out
    assert json.loads(Path("found.json").read_text())["certificate"]["step"]["safe_threshold_packets"] < 65.0
    page = Path("found.html").read_text()
    assert "smallest threshold" in page
    assert "safe_<wbr>threshold_<wbr>packets" in page


def test_a_threshold_that_empties_the_queue_is_status_3(run: Run) -> None:
    status, out, err = run(f"dctcp --K 10 {LINK} --json")
    found = json.loads(out)["certificate"]
    assert status == 3
    assert (found["status"], found["linear"], found["sampled"]) == ("stable", None, None)
    assert found["step"]["lost_share"] > 0.0
    assert found["predicted"]["delay_p99_s"] > found["predicted"]["most_p99_s"] == pytest.approx(36e-6)
    assert err.startswith("error: dctcp with 2 to 40 flows at 100 µs: doesn't hold; ")


@pytest.mark.parametrize(("k", "g"), [("65", "1/16"), ("97.5kB", "0.0625"), ("78us", "1/16")])
def test_a_threshold_has_units(run: Run, k: str, g: str) -> None:
    step = json.loads(run(f"dctcp --step-thresh {k} --g {g} {LINK} --json")[1])["certificate"]["step"]
    assert step["threshold_packets"] == pytest.approx(65.0)


def test_dcqcn_s_options_are_its_parameters(run: Run) -> None:
    status, out, _ = run(
        "dcqcn --kmin 10kB --kmax 400kB --pmax 2% --rai 20Mbit --byte-counter 5MB --timer 100us --cnp 40us "
        f"--alpha-timer 60us --g 1/128 --F 3 --marked-arriving {ROCE} --json"
    )
    given = {
        "kmin_bytes": 10e3,
        "kmax_bytes": 400e3,
        "pmax": 0.02,
        "rai_bit_per_s": 20e6,
        "counter_bytes": 5e6,
        "timer_s": 100e-6,
        "cnp_s": 40e-6,
        "alpha_s": 60e-6,
        "g": 1.0 / 128.0,
        "f": 3,
        "arriving": True,
    }
    content = json.loads(out)
    assert content["law"]["parameters"] == pytest.approx(given)
    same = certify(
        "dcqcn", parameters=given, rtt_s=50e-6, flows=10.0, capacity_bit_per_s=40e9, packet_size_bytes=1000.0
    )
    assert same.certificate.sampled is not None
    assert content["certificate"]["sampled"]["gain_margin_db"] == pytest.approx(same.certificate.sampled.gain_margin_db)
    assert status == 0  # with 4 dB, of which users notice nothing


def test_dcqcn_has_a_report_without_a_map(run: Run) -> None:
    status, out, _ = run(f"dcqcn {ROCE} --report found.html")
    assert status == 3
    assert "gain margin 4.27 dB (proved 4.27 dB), phase margin 1.9 degrees" in out
    page = Path("found.html").read_text()
    assert "delay margin" in page
    assert "<h2>Map" not in page


@pytest.mark.slow
def test_a_profile_of_a_switch_takes_dcqcn(run: Run) -> None:
    profile = {"wred_green_enable": "true", "ecn": "ecn_all", "green_min_threshold": "1048576"}
    profile |= {"green_max_threshold": "2097152", "green_drop_probability": "5"}
    Path("config_db.json").write_text(json.dumps({"WRED_PROFILE": {"A": profile}}))
    status, out, _ = run("config_db.json --rtt 10us --N 8:32 --capacity 100Gbit --sender dcqcn")
    assert status == 3
    assert "wred A, green: dcqcn with 8 to 32 flows at 10 µs: doesn't hold;\n  " in out


def test_thresholds_that_dont_hold_become_some_that_do(run: Run) -> None:
    Path("config_db.json").write_text(sonic(A=wred_profile(15_000, 15_000)))
    line = "--rtt 80us --N 8:32 --capacity 100Gbit --sender dctcp"
    status, out, _ = run(f"config_db.json {line} --sonic patch.json --openconfig profile.json")
    assert status == 3
    assert "A, thresholds that hold: 202501 and 202501 bytes, 100 %\n" in out
    for name in ("patch.json", "profile.json"):
        status, out, _ = run(f"{name} {line}")
        assert (status, "0 hold" in out) == (0, False)
    status, out, _ = run(f"patch.json {line} --sonic other.json")
    assert "no profile is saved: there is none that doesn't hold" in out
    assert not Path("other.json").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"dctcp --K many {LINK}", "--K: got 'many', takes a threshold above 0: packets as in 65"),
        (f"dctcp {LINK}", "--K is missing"),
        ("dctcp --K 65 --rtt 100us --N 5", "--capacity is missing"),
        (f"dctcp --K 65 --g 2/16 {LINK}", "--g: got '2/16'"),
        (f"dctcp --K 65 --g 3 {LINK}", "--g: got 3.0"),
        (f"dcqcn --kmax 4kB {ROCE}", "--kmax: got 4000.0, takes at least kmin, 5000 bytes"),
        (f"dcqcn --pmax 200 {ROCE}", "--pmax: got '200', takes a probability above 0 and at most 100 in percent"),
        (f"wred --min 5kB --max 20kB --sender dcqcn {LINK}", "--ecn: got False, takes ECN for this colour"),
        (f"wred --min 5kB --max 20kB --ecn --sender hpcc,dcqcn {LINK}", "--sender: got ('hpcc', 'dcqcn')"),
    ],
)
def test_unusable_input_is_named_in_one_line(run: Run, line: str, said: str) -> None:
    assert the_error(run(line)).startswith(f"error: {said}")
