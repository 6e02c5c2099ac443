"""Designs of ECN thresholds: the worst corner by dense search, one step less fails, and packets at the threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from design_files import comes_back
from ecn_packets import SIZE, dctcp_packets

import netctrl
from netctrl.certificates.box import Point
from netctrl.certificates.certify import certify
from netctrl.core.errors import InvalidValue, Status
from netctrl.design.queue.ecn import ecn_design
from netctrl.laws.aqm.threshold import ThresholdQueue
from netctrl.plants.ecn.dctcp import StepFluid, busy_threshold, fluid_cycle

RACK = {"rtt_s": 100e-6, "flows": (2.0, 40.0), "capacity_bit_per_s": 10e9}
WIDE = {"rtt_s": (50e-6, 200e-6), "flows": (1.0, 20.0), "capacity_bit_per_s": (10e9, 40e9)}
MANY = {"rtt_s": (50e-6, 200e-6), "flows": (1.0, 200.0), "capacity_bit_per_s": 10e9}
UNITS = {"bytes": "k_bytes", "packets": "k_packets", "time": "k_s"}


@pytest.mark.parametrize("gain", [1.0 / 256.0, 1.0 / 16.0, 1.0])
def test_the_need_falls_with_the_window_and_rises_a_flow(gain: float) -> None:
    """What the worst corner rests on; the corner itself is judged and not assumed."""
    windows = np.geomspace(1.0, 3000.0, 25)
    needs = np.array([busy_threshold(b, gain, 1.0) for b in windows])
    assert (np.diff(needs) < 0.0).all()
    assert (np.diff(windows * needs) > 0.0).all()


@pytest.mark.parametrize("gain", [1.0 / 256.0, 1.0 / 16.0, 1.0])
def test_a_larger_threshold_never_shortens_the_shortest_queue(gain: float) -> None:
    for b in np.geomspace(0.6, 1000.0, 11):
        fluids = [StepFluid(float(b), float(kappa), gain) for kappa in np.geomspace(0.02, 4.0, 30)]
        lowest = [fluid_cycle(fluid).lowest for fluid in fluids if fluid.window > 2.0]
        assert (np.diff(lowest) >= -1e-6).all()


def needed(at: Point, unit: str) -> float:
    """Threshold that one point needs, in the unit's steps, by bisection of the fluid itself."""
    share = busy_threshold(at.rate * at.rtt_s / at.flows, spare=1.0)
    return share * at.rtt_s * 1e6 if unit == "time" else share * at.rate * at.rtt_s


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("box", [RACK, WIDE])
def test_it_is_what_the_worst_of_many_points_needs(unit: Any, box: dict[str, Any]) -> None:
    design = ecn_design(**box, unit=unit)
    rng = np.random.default_rng(7)
    ends = [np.broadcast_to(np.log(box[name]), 2) for name in ("flows", "rtt_s", "capacity_bit_per_s")]
    drawn = np.exp([rng.uniform(*each, size=60) for each in ends]).T
    corners = np.exp(np.array(np.meshgrid(*ends)).reshape(3, -1).T)
    found = [needed(Point(N, d, C / 12e3), unit) for N, d, C in (*drawn, *corners)]
    worst = (*drawn, *corners)[int(np.argmax(found))]
    steps = design.law.parameters[UNITS[unit]] / {"bytes": 1500, "packets": 1, "time": 1e-6}[unit]
    assert steps - 1.0 < max(found) <= steps + 1e-6
    slow_or_fast = min if unit == "time" else max
    assert worst == pytest.approx(
        [max(box["flows"]), np.max(box["rtt_s"]), slow_or_fast(np.atleast_1d(box["capacity_bit_per_s"]))]
    )


@pytest.mark.parametrize("unit", UNITS)
def test_certify_says_that_it_holds_and_that_one_step_less_does_not(unit: Any) -> None:
    design = ecn_design(**WIDE, unit=unit, gain=1.0 / 8.0)
    proof = design.certificate
    found = certify(design.law.name, parameters=design.law.parameters, **WIDE).certificate
    assert found == proof.verdict
    assert found.status is proof.status is Status.ADMISSIBLE
    assert proof.smaller is not None
    less = certify("dctcp", parameters=proof.smaller.parameters, **WIDE).certificate
    assert less.status is Status.STABLE
    assert proof.smaller.shortest_queue_packets <= proof.smaller.flows < proof.shortest_queue_packets
    assert design.law.parameters["g"] == design.law.gains["g"] == 0.125


def test_swing_and_delay_are_those_of_the_fluid() -> None:
    design = ecn_design(**RACK)
    product = 10e9 * 100e-6 / 12e3
    cycles = {N: fluid_cycle(StepFluid(product / N, 50.0 / product)) for N in (2.0, 40.0)}
    proof = design.certificate
    assert design.law.parameters["k_bytes"] == 75_000
    assert (proof.flows, proof.points) == (40.0, 113)
    assert proof.shortest_queue_packets == pytest.approx(cycles[40.0].lowest * product)
    assert proof.longest_queue_packets == pytest.approx(cycles[40.0].highest * product)
    assert proof.longest_delay_s == pytest.approx(cycles[40.0].highest * 100e-6)
    step = proof.verdict.step
    assert step is not None
    assert step.longest_queue_packets == pytest.approx(proof.longest_queue_packets)


def test_windows_of_2_packets_set_the_threshold_of_many_flows() -> None:
    """2 N - C d is what the queue holds anyway: 400 packets less 41.7 on the way."""
    design = ecn_design(**MANY, unit="packets")
    assert design.law.parameters["k_packets"] == 359
    assert design.certificate.warnings[0].startswith("200 flows at 50 µs have 0.208 packets each")
    assert design.certificate.smaller is not None
    assert design.certificate.smaller.window_packets < 2.0
    assert "windows of 1.998 packets" in dict(design.summary()[1])["one step less"]


def test_a_single_step_has_nothing_below() -> None:
    design = ecn_design(rtt_s=100e-6, flows=0.1, capacity_bit_per_s=12e6, unit="packets")
    assert design.law.parameters["k_packets"] == 1
    assert design.certificate.smaller is None
    assert dict(design.summary()[1])["one step less"] == "there is no smaller threshold"


@pytest.mark.parametrize("flows", [12, 24])
def test_packets_fill_the_link_with_it_and_not_with_half_of_it(flows: int) -> None:
    where = {"rtt_s": 1e-3, "flows": float(flows), "capacity_bit_per_s": 1e9}
    threshold = int(ecn_design(**where, unit="packets").law.parameters["k_packets"])
    enough, half = (
        dctcp_packets(flows, ThresholdQueue(threshold=each * SIZE), 1e9, 1e-3, 3.0, 1e-3)[1]
        for each in (threshold, threshold // 2)
    )
    assert enough == pytest.approx(1.0, abs=3e-4)
    assert 1.0 - half > 4e-3


def test_a_design_is_the_same_after_it_is_saved_and_read(tmp_path) -> None:
    design = netctrl.ecn_design(**RACK, unit="time")
    again = comes_back(design, tmp_path)
    assert again == design
    assert (again.method, again.law.parameters) == ("ecn", {"k_s": 6e-5, "g": 0.0625})
    assert "stays busy" in again.verdict


def test_the_figure_has_the_swing_of_the_fluid() -> None:
    (axes,) = ecn_design(**RACK).plot().axes
    mean, threshold, packet = axes.lines
    product = 10e9 * 100e-6 / 12e3
    many = fluid_cycle(StepFluid(product / 40.0, 50.0 / product))
    assert (mean.get_xdata()[-1], mean.get_ydata()[-1]) == pytest.approx((40.0, many.mean * product))
    assert set(threshold.get_ydata()) == {50.0}
    assert packet.get_ydata()[-1] == pytest.approx(40.0)
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(many.highest * product)
    single = ecn_design(rtt_s=100e-6, flows=8.0, capacity_bit_per_s=10e9, unit="time").plot().axes[0]
    assert single.lines[0].get_xdata()[[0, -1]] == pytest.approx([2.0, 32.0])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"unit": "cells"}, "unit"),
        ({"gain": 0.0}, "gain"),
        ({"gain": 1.5}, "gain"),
        ({"flows": (5.0, 2.0)}, "flows"),
        ({"flows": None}, "flows"),
        ({"rtt_s": 0.0}, "rtt"),
        ({"rtt_s": 100.0}, "flows"),
        ({"capacity_bit_per_s": "10Gbit"}, "capacity"),
        ({"packet_size_bytes": 1500.5}, "packet_size"),
    ],
)
def test_unusable_input_is_named(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        ecn_design(**{**RACK, **arguments})
    assert refused.value.argument == named


def test_a_threshold_whose_delay_is_longer_than_asked_for_is_not_admissible() -> None:
    """The fluid's longest delay is 105 us; a smaller threshold would lose rate."""
    where = {"rtt_s": 100e-6, "flows": 40.0, "capacity_bit_per_s": 10e9}
    longest = ecn_design(**where).certificate.longest_delay_s
    assert ecn_design(**where, p99_s=1.001 * longest).certificate.status is Status.ADMISSIBLE
    found = ecn_design(**where, p99_s=longest - 10e-6)
    assert found.certificate.status is Status.STABLE
    assert "not met, 10 µs longer than asked for" in found.verdict
