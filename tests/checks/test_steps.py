"""Steps of a load on packets, against what windows and a queue do by arithmetic."""

import pytest

import netctrl
from netctrl.certificates.point_records import LoadStep
from netctrl.checks.check import check_certificate
from netctrl.checks.point import point_of
from netctrl.checks.steps import load_steps

SLOW = {"alpha": 0.02, "beta": 0.4}


def steps(rtt: float, flows: float, rate: float = 50e6, law: str = "pi2") -> dict[str, LoadStep]:
    given = {"parameters": SLOW} if law == "pi2" else {}
    found = netctrl.certify(law, rtt_s=rtt, flows=flows, capacity_bit_per_s=rate, senders="rfc-reno", **given)
    return {step.name: step for step in load_steps(point_of(found, "packet"), "packet")}


@pytest.mark.slow
def test_windows_fill_a_link_that_doubles_at_a_packet_a_round_trip() -> None:
    """Ten flows have 4,167 x .115 packets together and need .95 x 8,333 x .1, 31 round trips of a packet each, of some
    .1 s, while marks stop and the queue is empty."""
    found = steps(0.1, 10.0)
    lacking = 0.95 * 8333.0 * 0.1 - 4167.0 * 0.115
    assert found["capacity doubles"].underused_s == pytest.approx(lacking / 10.0 * 0.1, rel=0.3)
    assert found["capacity doubles"].above_two_targets_s < 0.3


@pytest.mark.slow
def test_what_waits_takes_twice_as_long_on_half_a_link() -> None:
    """4,167 x .115 packets are on the way, 2,083 x .1 fit the path of half the rate: the others wait .13 s."""
    found = steps(0.1, 10.0)["capacity halves"]
    assert found.peak_s == pytest.approx((4167.0 * 0.115 - 2083.0 * 0.1) / 2083.0, rel=0.2)
    assert 0.1 < found.above_two_targets_s < 5.0


@pytest.mark.slow
def test_a_single_flow_cannot_halve_and_more_flows_fill_the_queue() -> None:
    found = steps(0.02, 1.0, 10e6, "pie")
    assert list(found) == ["all flows begin", "flows double", "capacity halves", "capacity doubles"]
    assert found["flows double"].peak_s > 2.0 * 0.015  # slow start of another
    many = steps(0.02, 20.0)
    assert many["flows halve"].underused_s > 0.0
    assert many["flows halve"].peak_s < many["flows double"].peak_s < many["all flows begin"].peak_s


@pytest.mark.slow
def test_a_check_with_packets_has_the_steps_in_its_rows() -> None:
    found = netctrl.certify("pi2", rtt_s=0.02, flows=10.0, capacity_bit_per_s=20e6, packets=False)
    checked = check_certificate(found, "packet")
    figures = checked.certificate.predicted
    assert figures is not None and figures.by == "loop"
    assert [step.name for step in figures.steps][1:3] == ["flows double", "flows halve"]
    rows = dict(checked.rows)
    assert all(rows[f"if {step.name}"] == step.text for step in figures.steps)
    assert figures.steps == load_steps(point_of(found, "packet"), "packet")
    assert found.certificate.predicted is not None and found.certificate.predicted.steps == ()
