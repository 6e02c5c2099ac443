"""Step thresholds as lines of tc: the law that the kernel makes of them, real tc, and DCTCP's flows in the kernel."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import netctrl
from netctrl.certificates.ecn.dctcp import dctcp_as_linux
from netctrl.certificates.inputs.read import read_queues
from netctrl.certificates.installed import certify_queues
from netctrl.core.errors import InvalidValue, Status
from netctrl.laws.disciplines import KernelQueue
from netctrl.laws.targets.red import RedLaw
from netctrl.laws.targets.step import codel_threshold_us, step_law
from netctrl.linux.export.queue_law import StepQueue, step_arguments, step_on_linux
from netctrl.model.law import QueueLaw
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import Flow

LINK = StepQueue(1514.0, 100e6)


def law(**threshold: float) -> QueueLaw:
    return QueueLaw(name="dctcp", implementation="step", parameters={**threshold, "g": 0.0625}, gains={})


def sent(arguments: tuple[str, ...]) -> RedLaw:
    """The law that tc and the kernel make of red's arguments."""
    found = {name: int(value) for name, value in pairwise(arguments[1:]) if value.isdigit()}
    return RedLaw.sent(
        limit_bytes=found["limit"],
        min_bytes=found["min"],
        max_bytes=found["max"],
        average_packet=found["avpkt"],
        burst=found["burst"],
        ecn=arguments[-1] == "ecn",
    )


def test_red_has_the_fastest_average_that_tc_takes_for_any_threshold() -> None:
    rng = np.random.default_rng(1)
    for packet in (64, 576, 1500, 1514, 9014):
        for packets in (1, 2, 3, *map(int, rng.integers(4, 20_000, size=40))):
            red = sent(step_arguments(law(k_bytes=packets * packet), StepQueue(float(packet), 1e9)))
            assert red.weight_log == 1
            assert red.min_bytes == red.max_bytes == packets * packet + 1
            assert red.limit_bytes >= 10 * red.max_bytes
            assert red.ecn


def test_red_marks_what_finds_more_than_the_threshold_at_once_and_nothing_below() -> None:
    red = sent(step_arguments(law(k_bytes=32 * 1514), LINK))
    average = 0  # with a bit behind the point
    for packets, above in ((32, False),) * 50 + ((33, True), (31, False)):
        average += packets * 1514 - (average >> red.weight_log)
        assert (average >= red.max_bytes << red.weight_log) is above
        assert above or average < red.min_bytes << red.weight_log


def test_codel_marks_no_packet_that_waits_less_and_all_that_wait_two_units_more() -> None:
    for seconds in (1e-6, 1.024e-6, 2e-6, 60e-6, 999e-6, 8.438e-3, 0.25):
        units = codel_threshold_us(seconds) * 1000 // 1024
        assert seconds <= units * 1.024e-6 * (1.0 + 1e-12) < seconds + 1.024e-6
    assert codel_threshold_us(1.024e-6) == 2  # 1 us is no unit of the kernel, and 2 us are one


def test_lines_of_tc() -> None:
    def line(threshold: dict[str, Any], kind: str | None = None) -> str:
        return " ".join(step_arguments(law(**threshold), LINK._replace(kind=kind)))

    red = "red limit 775168 min 48449 max 48449 avpkt 1515 burst 32 bandwidth 100000000bit ecn"
    assert line({"k_bytes": 48_448}) == line({"k_bytes": 48_448}, "red") == red
    codel = "codel limit 1000 target 1000000us interval 1000000us ce_threshold 3807us"
    assert line({"k_s": 3.806e-3}) == line({"k_s": 3.806e-3}, "codel") == codel
    dualpi2 = "dualpi2 limit 10000 target 1278816us step_thresh 3806us any_ect"
    assert line({"k_s": 3.806e-3}, "dualpi2") == dualpi2
    assert line({"k_s": 1e-5}, "dualpi2").startswith("dualpi2 limit 10000 target 15000us ")
    assert line({"k_s": 0.2}).startswith(f"codel limit {ceil(16 * 0.2 * 100e6 / 8 / 1514)} target 3200000us ")


def test_a_threshold_in_another_unit_is_refused() -> None:
    for threshold, kind, said in (
        ({"k_s": 1e-3}, "red", "a threshold in bytes, as netctrl design ecn --unit bytes"),
        ({"k_bytes": 3e4}, "codel", "--unit time"),
        ({"k_packets": 20}, None, "--unit bytes"),
        ({"k_packets": 20}, "dualpi2", "--unit time"),
        ({"k_s": 1e-3}, "fq_codel", "red, codel, dualpi2"),
    ):
        with pytest.raises(InvalidValue, match=said):
            step_arguments(law(**threshold), LINK._replace(kind=kind))
    assert step_law({"k_packets": 20}, "packets").marked_from == 21


@pytest.mark.parametrize(
    ("threshold", "kind"), [({"k_bytes": 2**30 - 1}, "red"), ({"k_s": 139.0}, "codel"), ({"k_s": 6.0}, "dualpi2")]
)
def test_a_threshold_beyond_the_kernels_integers_is_refused(threshold: dict[str, float], kind: str) -> None:
    with pytest.raises(InvalidValue, match=r"takes (a )?threshold"):
        step_arguments(law(**threshold), LINK._replace(kind=kind))
    (name,) = threshold
    largest = {name: threshold[name] - 2.0}
    assert all(int(word) < 2**32 for word in step_arguments(law(**largest), LINK._replace(kind=kind)) if word.isdigit())


def test_dualpi2s_target_keeps_its_own_law_off_up_to_16_thresholds() -> None:
    """alpha (target - D) >= beta D with tc's defaults of 41/256 and 819/256 at D = 16 K."""
    for seconds in (1e-3, 20e-3, 2.0):
        line = step_arguments(law(k_s=seconds), LINK._replace(kind="dualpi2"))
        target = int(line[line.index("target") + 1].removesuffix("us")) * 1e-6
        assert 41 * (target - 16 * seconds) >= 819 * 16 * seconds


def test_the_files_say_what_the_kernel_keeps() -> None:
    made = step_on_linux(law(k_s=60e-6), "eth0", LINK)
    assert made.files["queue.tc"].splitlines()[1].endswith("ce_threshold 61us")
    (figure,) = made.figures
    assert (figure.requested, figure.implemented) == (60e-6, pytest.approx(60.416e-6))
    assert "without ECN pass" in made.notes[0]
    with pytest.raises(InvalidValue):
        step_on_linux(law(k_s=60e-6), "eth0; reboot", LINK)


@pytest.mark.needs("lab")
@pytest.mark.skipif(shutil.which("tc") is None, reason="tc isn't on PATH; remedy: `apt-get install iproute2`")
def test_real_tc_makes_them_and_the_queue_is_certified(tmp_path: Path) -> None:
    from netctrl.kernel.command import run_command

    where = {"rtt_s": 10e-3, "flows": (2.0, 16.0), "capacity_bit_per_s": 100e6, "packet_size_bytes": 1514.0}
    batches = []
    for place, unit in (("d0", "bytes"), ("d1", "time")):
        design = netctrl.ecn_design(**where, unit=unit)
        batches.append(step_on_linux(design.law, place, LINK).files["queue.tc"])
    commands = "set -e\nfor d in d0 d1; do ip link add $d type dummy; ip link set $d up; done\n"
    for text in batches:
        commands += f"tc -batch - <<'END'\n{text}END\n"
    ended = run_command(["sh", "-c", f"{commands}tc -j -d qdisc show"], tmp_path)
    assert ended.status == 0, ended.stderr
    shown = {each["dev"]: each["options"] for each in json.loads(ended.stdout)}
    assert (shown["d0"]["min"], shown["d0"]["max"], shown["d0"]["ewma"], shown["d0"]["ecn"]) == (48449, 48449, 1, True)
    assert shown["d1"]["ce_threshold"] == 3807 * 1000 // 1024 * 1024 // 1000
    assert shown["d1"]["target"] > 990_000
    red = next(queue for queue in read_queues(text=ended.stdout) if queue.device == "d0")
    (found,) = certify_queues([red], senders="dctcp", **where).queues
    assert found.certificate is not None
    assert found.certificate.certificate.status is Status.ADMISSIBLE
    assert found.certificate.law.parameters["k_bytes"] == 48_448


def test_reds_that_are_no_step_of_dctcp_have_no_certificate() -> None:
    good = {"min_bytes": 30_001, "max_bytes": 30_001, "weight_log": 1, "max_probability": 1, "limit_bytes": 400_000}
    assert dctcp_as_linux(RedLaw(**good, ecn=True)).parameters["k_bytes"] == 30_000
    for changed, said in (
        ({}, "ecn: got False"),
        ({"ecn": True, "harddrop": True}, "ecn: got False"),
        ({"ecn": True, "weight_log": 5}, "ewma: got 5"),
    ):
        with pytest.raises(InvalidValue, match=said):
            dctcp_as_linux(RedLaw(**{**good, **changed}))


def used(discipline: str, parameters: dict[str, float]) -> float:
    """Share of 100 Mbit/s that 16 DCTCP flows of Linux fill in 10 ms, in the second half of 6 s."""
    queue = KernelQueue(discipline=discipline, parameters=parameters)
    link = Link(id="l", source="a", target="b", capacity=100e6, queue=queue)
    bulk = Flow(id="f", path=("l",), rtt=10e-3, count=16, sender="dctcp", ecn=True)
    scenario = netctrl.Scenario(
        name="step", duration=6.0, links=(link,), flows=(bulk,), packet_size=1514, interval=10e-3
    )
    found = netctrl.simulate(scenario, "kernel")
    assert found.series["lost"][0, len(found.time_s) // 2 :].sum() == 0.0
    return float(found.series["departed"][0, len(found.time_s) // 2 :].mean() * 8.0 / 10e-3 / 100e6)


@pytest.mark.needs("lab")
def test_linuxs_dctcp_fills_the_link_with_the_designed_thresholds() -> None:
    """Half of the threshold leaves 2.6 % unused."""
    where = {"rtt_s": 10e-3, "flows": 16.0, "capacity_bit_per_s": 100e6, "packet_size_bytes": 1514.0}
    found = sent(step_arguments(netctrl.ecn_design(**where).law, LINK))

    def red(least: int) -> dict[str, float]:
        return {"limit": found.limit_bytes, "min": least, "max": least, "weight_log": 1, "ecn": 1}

    assert used("red", red(found.min_bytes)) > 0.9995
    assert used("red", red(found.min_bytes // 2)) < 0.985
    seconds = netctrl.ecn_design(**where, unit="time").law.parameters["k_s"]
    assert used("codel", {"limit": 2000, "target": 1.0, "interval": 1.0, "ce_threshold": float(seconds)}) > 0.9995
