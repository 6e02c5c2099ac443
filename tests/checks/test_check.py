"""Nonlinear checks of certificates: what they say, where they refuse, and their scenarios."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

import netctrl
from netctrl.certificates.record import QueueCertificate
from netctrl.checks.check import check_certificate, with_checks
from netctrl.checks.engines import check_packets, check_scenario
from netctrl.checks.point import point_of
from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.disciplines import KernelQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.targets.docsis_pie import DocsisPieQueue
from netctrl.laws.targets.pie_packets import pie_on_packets

RFC = {"implementation": "rfc", "dq_rate_estimator": True}
LINE = {"limit_bytes": 400_000, "min_bytes": 30_000, "max_bytes": 90_000, "probability": 0.1}
SWITCH = {"min_bytes": 20_000, "max_bytes": 120_000, "max_percent": 10}


def certificate(law: str, **given) -> QueueCertificate:
    where = {"rtt_s": 0.1, "flows": 50.0, "capacity_bit_per_s": 20e6}
    return netctrl.certify(law, **(where | given), packets=False)


@pytest.mark.slow
def test_pie_with_9_db_cycles_from_afar_in_the_fluid_and_on_packets() -> None:
    found = certificate("pie", parameters=RFC)
    assert found.holds
    checked = check_certificate(found, ("fluid", "packet"))
    fluid, packet = checked.checks
    assert [run.settles for run in fluid.runs] == [True, False, False]
    assert not fluid.settles
    assert not packet.settles
    assert packet.envelope_ratio == pytest.approx(1.2, abs=0.15)
    figures = checked.certificate.predicted
    assert figures is not None and checked.holds is figures.as_asked  # it swings by less than three targets
    assert figures.delay_p99_s == pytest.approx(0.039, abs=0.003)
    assert "by packets" in checked.verdict
    assert msgspec.json.decode(checked.to_json(), type=QueueCertificate).checks == checked.checks
    assert any("from empty and full" in text for _, text in checked.rows)


@pytest.mark.slow
def test_dualpi2s_defaults_hold_at_20_ms_and_swing_at_150_ms() -> None:
    """Ten Reno flows at 20 Mbit/s; in the kernel 16 ± 5 ms and 0 to 36 ms."""
    for rtt, settles, swing in ((0.02, True, 0.0145), (0.15, False, 0.029)):
        found = certificate("dualpi2", rtt_s=rtt, flows=10.0)
        fluid, packet = check_certificate(found, ("fluid", "packet")).checks
        assert fluid.settles == packet.settles == settles
        assert packet.flows == 10.0
        assert [run.swing_s for run in packet.runs] == pytest.approx([swing] * 3, abs=0.003)
    assert max(run.swing_s for run in fluid.runs) == pytest.approx(0.028, abs=0.002)


def test_a_window_stands_for_twenty_flows_at_the_same_point() -> None:
    window = 20e6 / 12000.0 * 0.115 / 50.0
    alone = point_of(certificate("pi2", flows=None, capacity_bit_per_s=None, window_packets=window))
    given = point_of(certificate("pi2"))
    assert alone.flows == 20.0
    assert alone.loop.rate / alone.flows == pytest.approx(given.loop.rate / given.flows)
    assert (alone.output, alone.period_s) == pytest.approx((given.output, given.period_s), rel=1e-6)


@pytest.mark.slow
def test_scenarios_have_the_law_of_the_certificate() -> None:
    scenario = check_scenario(point_of(certificate("pie", parameters=RFC | {"alpha": 0.25})), "packet", 3)
    assert scenario.links[0].queue == PieQueue(alpha=0.25)
    assert (scenario.links[0].capacity, scenario.flows[0].count, scenario.seed) == (pytest.approx(20e6), 50, 3)
    scenario = check_scenario(point_of(certificate("pie", parameters={"hz": 1000, "alpha": 0.25})), "kernel", 1)
    assert isinstance(scenario.links[0].queue, KernelQueue)
    assert {name: scenario.links[0].queue.parameters[name] for name in ("alpha", "beta", "target")} == {
        "alpha": 4,
        "beta": 20,
        "target": 0.015,
    }
    assert not scenario.flows[0].ecn
    for sender, ecn, marks in (("linux-creno", False, False), ("linux-creno-noecn", True, False), ("reno", True, True)):
        found = certificate("pie", senders=sender, parameters={"hz": 1000, "ecn": ecn})
        scenario = check_scenario(point_of(found), "kernel", 1)
        assert scenario.flows[0].ecn is marks
        assert scenario.links[0].queue.parameters.get("ecn", 0.0) == ecn
    scenario = check_scenario(
        point_of(certificate("dualpi2", senders=".8reno+.2creno", stretches=(1.0, 2.0))), "packet", 1
    )
    assert isinstance(scenario.links[0].queue, DualPi2Queue)
    assert scenario.links[0].queue.alpha == pytest.approx(0.160071, abs=1e-6)  # as Linux keeps 41/256
    assert [(f.count, f.rtt[0], f.sender) for f in scenario.flows] == [
        (20, 0.1, "reno"),
        (20, 0.2, "reno"),
        (5, 0.1, "cubic"),
        (5, 0.2, "cubic"),
    ]


@pytest.mark.parametrize(
    ("law", "given", "engine", "text"),
    [
        ("pie", {"parameters": {"dq_rate_estimator": True}}, "packet", "without --dq-rate-estimator"),
        ("pie", {"parameters": {"implementation": "rfc"}}, "packet", "--dq-rate-estimator"),
        ("pie", {}, "kernel", "--hz 1000"),
        ("pie", {"parameters": RFC}, "kernel", "a law of Linux"),
        ("pi2", {}, "kernel", "a law of Linux"),
        ("dualpi2", {"senders": "reno+dctcp"}, "packet", "senders that this engine has"),
        ("dualpi2", {"parameters": {"drop_early": True}}, "packet", "drop_early"),
        ("dualpi2", {"flows": 5000.0, "capacity_bit_per_s": 10e9}, "packet", "fewer packets"),
        ("pi2", {}, "ns3", "one of fluid, packet, kernel"),
        ("pi2", {}, np.ones((3, 2)), "one of fluid, packet, kernel"),
        ("docsis-pie", {"rtt_s": 0.02, "flows": 10.0}, "kernel", "Linux has no DOCSIS-PIE"),
        ("wred", {"rtt_s": 0.02, "flows": 10.0, "parameters": SWITCH}, "kernel", "Linux has no WRED of switches"),
        ("red", {"flows": 10.0, "parameters": LINE | {"gentle": True}}, "kernel", "no gentle variant"),
        ("red", {"flows": 10.0, "parameters": LINE, "senders": "dctcp"}, "kernel", "--ecn"),
        ("pie", {"rtt_s": 0.01, "flows": 100.0}, "fluid", "an equilibrium"),
    ],
)
def test_what_an_engine_has_not_is_refused(law: str, given: dict, engine: Any, text: str) -> None:
    with pytest.raises(InvalidValue, match=text):
        check_certificate(certificate(law, **given), engine)


def test_runs_of_seeds_differ_and_repeat() -> None:
    point = point_of(certificate("pi2", rtt_s=0.02, flows=10.0, capacity_bit_per_s=10e6))
    once, again = (check_packets(point, "packet", (1, 2)) for _ in range(2))
    assert once == again
    assert once.runs[0].mean_delay_s != once.runs[1].mean_delay_s
    assert once.settles
    assert [run.seed for run in once.runs] == [1, 2]


def test_red_rests_at_20_ms_and_swings_at_100_ms() -> None:
    """Ten Reno flows at 20 Mbit/s, P = .1 from 30 to 90 kB: 2.2 dB, and -17.9 dB."""
    for rtt, settles in ((0.02, True), (0.1, False)):
        found = certificate("red", rtt_s=rtt, flows=10.0, parameters=LINE)
        standing = found.certificate.sampled.queue_delay_s
        (fluid,) = check_certificate(found, "fluid").checks
        assert [run.settles for run in fluid.runs] == [settles] * 3
        assert (fluid.runs[0].mean_delay_s == pytest.approx(standing, rel=1e-3)) == settles
    point = point_of(found)
    assert point.target_s == pytest.approx(standing)


def test_adaptive_red_rests_where_the_worst_of_its_probabilities_does_not() -> None:
    found = certificate("red", rtt_s=0.1, flows=10.0, parameters=LINE | {"adaptive": True})
    assert not found.holds
    assert check_certificate(found, "fluid").checks[0].settles


def test_wred_and_docsis_pie_rest_in_the_fluid_and_on_packets() -> None:
    for law, given in (("wred", {"parameters": SWITCH}), ("docsis-pie", {})):
        found = certificate(law, rtt_s=0.02, flows=10.0, **given)
        fluid, packet = check_certificate(found, ("fluid", "packet")).checks
        assert fluid.settles
        assert packet.settles
        standing = found.certificate.sampled.queue_delay_s
        assert fluid.runs[0].mean_delay_s == pytest.approx(standing, rel=0.02)
        assert packet.runs[0].mean_delay_s == pytest.approx(standing, rel=0.2)


def test_scenarios_have_red_and_docsis_pie_with_the_certificates_numbers() -> None:
    given = {"rtt_s": 0.02, "flows": 10.0}
    point = point_of(certificate("red", **given, parameters=LINE | {"weight_log": 6}))
    scenario = check_scenario(point, "packet", 1)
    queue = scenario.links[0].queue
    assert isinstance(queue, RedQueue)
    assert (queue.min_threshold, queue.max_threshold, queue.weight) == (30e3, 90e3, 2.0**-6)
    assert queue.max_probability == pytest.approx(0.1, rel=1e-4)
    assert (queue.gentle, queue.adaptive, queue.spaced) == (False, False, True)
    assert scenario.links[0].buffer == 400_000.0
    assert scenario.flows[0].ecn
    scenario = check_scenario(point, "kernel", 1)
    queue = scenario.links[0].queue
    assert isinstance(queue, KernelQueue)
    assert queue.parameters == pytest.approx(
        {
            **{"limit": 400_000, "min": 30_000, "max": 90_000, "weight_log": 6, "bandwidth": 20e6},
            **{"probability": 0.1, "ecn": 0.0, "adaptive": 0.0},
        }
    )
    assert not scenario.flows[0].ecn
    marked = point_of(certificate("red", **given, parameters=LINE | {"ecn": True, "adaptive": True}))
    scenario = check_scenario(marked, "kernel", 1)
    assert scenario.flows[0].ecn
    assert scenario.links[0].queue.parameters["adaptive"] == 1.0

    queue = check_scenario(point_of(certificate("wred", **given, parameters=SWITCH)), "packet", 1).links[0].queue
    wred = RedQueue(
        min_threshold=20e3, max_threshold=120e3, max_probability=0.1, weight=1.0, gentle=False, spaced=False
    )
    assert queue == wred
    own = {"target_s": 0.02, "tupdate_s": 0.008, "alpha": 0.1, "beta": 1.0}
    queue = check_scenario(point_of(certificate("docsis-pie", **given, parameters=own)), "packet", 1).links[0].queue
    assert queue == DocsisPieQueue(latency_target=0.02, interval=0.008, alpha=0.1, beta=1.0)


@pytest.mark.needs("lab")
def test_linuxs_red_has_the_queue_that_packets_have() -> None:
    """2.2 dB: near its limit; the kernel's integers are not ours."""
    point = point_of(certificate("red", rtt_s=0.02, flows=10.0, parameters=LINE | {"ecn": True}))
    packets, kernel = (check_packets(point, engine, (1,)) for engine in ("packet", "kernel"))
    ours, theirs = packets.runs[0], kernel.runs[0]
    assert ours.mean_delay_s == pytest.approx(theirs.mean_delay_s, rel=0.1)
    assert ours.swing_s == pytest.approx(theirs.swing_s, rel=0.2)
    assert packets.envelope_ratio == pytest.approx(kernel.envelope_ratio, abs=0.2)
    assert theirs.utilization > 0.999


@pytest.mark.slow
def test_linuxs_pie_runs_on_packets() -> None:
    """Drops of a saw-tooth: at the target's delay, with the share of packets that Reno's window asks for."""
    found = certificate("pie", rtt_s=0.04, flows=20.0, senders="linux-reno")
    (packet,) = check_certificate(found, "packet").checks
    assert packet.senders == "rfc-reno for linux-reno"
    assert packet.settles
    for run in packet.runs:
        assert run.mean_delay_s == pytest.approx(0.015, rel=0.1)
        assert run.utilization > 0.99


@pytest.mark.slow
def test_packets_have_the_update_interval_of_a_kernel_with_another_clock() -> None:
    for hz, update in ((250, 0.020), (1000, 0.016), (100, 0.030)):
        point = point_of(certificate("pie", parameters={"hz": hz}), "packet")
        queue = check_scenario(point, "packet", 1).links[0].queue
        assert pie_on_packets(queue.parameters).update_s == pytest.approx(update)
        assert not check_scenario(point, "packet", 1).flows[0].ecn


def test_a_fast_loop_runs_for_a_short_time() -> None:
    """A data centre's loop: a hundred periods of it, not forty seconds with 3e8 packets."""
    given = {"rtt_s": 100e-6, "flows": 10.0, "capacity_bit_per_s": 100e9, "senders": "dctcp"}
    thresholds = {"min_bytes": 1048576, "max_bytes": 2097152, "max_percent": 5, "ecn": True}
    point = point_of(certificate("wred", **given, parameters=thresholds), "packet")
    scenario = check_scenario(point, "packet", 1)
    assert scenario.duration - scenario.warmup == pytest.approx(100.0 * point.period_s)
    assert 20.0 * point.period_s <= scenario.warmup < 1.0
    assert point.loop.rate * scenario.duration < 3e7
    assert scenario.interval < 0.1 * point.period_s


def test_a_check_that_cannot_run_is_beside_the_certificate() -> None:
    found = certificate("pi2", rtt_s=0.02, flows=10.0)
    checked = with_checks(found, ("fluid", "kernel"))
    assert [each.engine for each in checked.checks] == ["fluid"]
    assert [each.engine for each in checked.failed_checks] == ["kernel"]
    assert checked.certificate == found.certificate
    assert ("kernel at the worst point", "not run: it takes a law of Linux: pie, dualpi2 or red") in checked.rows


@pytest.mark.slow
def test_the_fluid_runs_the_worst_sender_that_it_has() -> None:
    found = certificate("pie", flows=12.0)
    assert "cubic" in found.inputs.senders
    (fluid,) = check_certificate(found, "fluid").checks
    assert fluid.senders in ("reno for linux-reno", "creno for linux-creno")


@pytest.mark.slow
def test_packets_give_the_figures_that_the_loop_alone_cannot() -> None:
    """A queue beyond its limit has no figures by its loop; those of packets are the means of the check's runs."""
    found = netctrl.certify("pi2", rtt_s=0.12, flows=20.0, capacity_bit_per_s=20e6, packets=False)
    assert found.certificate.predicted is None
    checked = check_certificate(found, ("fluid", "packet"))
    (_, check), figures = checked.checks, checked.certificate.predicted
    assert figures is not None and figures.by == "packet"
    assert (figures.flows, figures.rtt_s) == (20.0, 0.12)
    assert figures.capacity_bit_per_s == pytest.approx(20e6)
    assert figures.delay_mean_s == pytest.approx(np.mean([run.mean_delay_s for run in check.runs]))
    assert figures.delay_mean_s < figures.delay_p99_s < 0.2
    assert figures.text in checked.verdict
    assert check_certificate(found, "fluid").certificate.predicted is None
