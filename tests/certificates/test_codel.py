"""Certificates of codel, fq_codel and cake: figures in ms over a box, and where they hold."""

from __future__ import annotations

import pytest

import netctrl
from netctrl.laws.aqm.codel import CodelParameters, raised

ONE = {"flows": 1.0, "capacity_bit_per_s": 20e6}


def certified(law, rtt_s, **more):
    return netctrl.certify(law, rtt_s=rtt_s, **{**ONE, **more}).certificate


def test_one_flow_of_cubic_keeps_a_short_path_busy_and_no_long_one():
    short, long = (certified("fq_codel", rtt) for rtt in (0.02, 0.1))
    assert (short.status.value, long.status.value) == ("admissible", "stable")
    assert short.predicted.utilization > 0.98 > long.predicted.utilization
    assert short.predicted.by == "cycle"
    assert short.predicted.delay_p99_s < 3.0 * 5e-3


def test_the_worst_point_of_a_box_has_its_own_figures():
    box = certified("fq_codel", (0.01, 0.1), capacity_bit_per_s=(5e6, 50e6))
    least, longest = box.codel, box.predicted
    alone = certified("fq_codel", least.rtt_s, capacity_bit_per_s=least.capacity_bit_per_s)
    assert alone.predicted.utilization == pytest.approx(box.predicted.utilization, abs=1e-12)
    alone = certified("fq_codel", longest.rtt_s, capacity_bit_per_s=longest.capacity_bit_per_s)
    assert alone.predicted.delay_p99_s == pytest.approx(longest.delay_p99_s, rel=1e-12)
    assert least.points == 20


def test_flows_have_their_share_of_the_rate():
    four = certified("fq_codel", 0.02, flows=4.0, capacity_bit_per_s=80e6)
    one = certified("fq_codel", 0.02)
    assert four.predicted.utilization == pytest.approx(one.predicted.utilization, abs=0.02)
    assert any("least" in each for each in four.warnings)


def test_cake_lets_four_packets_wait():
    """Of the link's, as `cake_set_rate` has it, with a target of at least 1.5 packets, an interval of two targets."""
    found = netctrl.certify("cake", rtt_s=0.02, flows=4.0, capacity_bit_per_s=2e6).certificate
    assert found.codel.least_rate_bit_per_s == pytest.approx(4.0 * 12e3 / 5e-3)
    assert found.predicted.delay_p99_s > 4.0 * 12e3 / 2e6
    assert raised(CodelParameters(5e-3, 0.1), 100.0) == pytest.approx((0.04, 0.11, 1.0))
    assert raised(CodelParameters(5e-3, 0.02), 100.0).interval == pytest.approx(0.03)
    assert raised(CodelParameters(5e-3, 0.1), 1000.0) == (5e-3, 0.1, 1.0)
    assert netctrl.certify("cake", rtt_s=0.02, **ONE, parameters={"rtt_s": 0.3}).law.parameters["target_s"] == 0.015


def test_a_longer_target_fills_a_longer_path():
    used = [certified("fq_codel", 0.2, parameters={"target_s": t}).predicted.utilization for t in (5e-3, 20e-3, 60e-3)]
    assert used == sorted(used)


def test_each_sender_has_its_row():
    found = certified("fq_codel", 0.02, senders=("linux-creno", "linux-reno"))
    assert [(each.sender, each.status.value) for each in found.senders] == [
        ("linux-creno", "admissible"),
        ("linux-reno", "stable"),
    ]
    assert found.status.value == "stable"
    assert found.codel.sender == "linux-reno"


@pytest.mark.parametrize(
    ("law", "more", "takes"),
    [
        ("fq_codel", {"senders": "dctcp"}, "a sender whose cycle is known: linux-creno"),
        ("fq_codel", {"parameters": {"target_s": 0.2}}, "at least the target"),
        ("cake", {"parameters": {"interval_s": 0.2}}, "parameters of cake: rtt_s"),
    ],
)
def test_what_is_refused(law, more, takes):
    with pytest.raises(netctrl.InvalidValue, match=takes):
        certified(law, 0.02, **more)


def test_what_people_read():
    found = netctrl.certify("fq_codel", rtt_s=0.1, **ONE)
    rows = dict(found.rows)
    assert "doesn't hold; " in found.verdict
    assert rows["least used link"].startswith("linux-creno, 1 flow at 20 Mbit/s, 100 ms: 1.")
    assert rows["rate for the target"].startswith("from 4.8 Mbit/s on")
    assert "proved of the fluid" in rows["longest delay"]
    assert dict(netctrl.certify("codel", rtt_s=0.1, flows=5.0, capacity_bit_per_s=2e7).rows)["longest delay"] == (
        "not proved"
    )


def test_a_box_whose_windows_are_tiny_has_no_figures():
    found = netctrl.certify("codel", rtt_s=0.01, flows=50.0, capacity_bit_per_s=2e7, packets=False).certificate
    assert (found.status.value, found.predicted) == ("infeasible", None)
    (beyond,) = found.beyond
    assert beyond.why == "windows are below 8 packets"
