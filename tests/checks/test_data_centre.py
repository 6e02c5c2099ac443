"""Figures of queues in data centres: the fluid's cycle against packets, packets where it says nothing, and profiles."""

from __future__ import annotations

import numpy as np
import pytest
from ecn_packets import dctcp_packets

import netctrl
from netctrl.certificates.box import Point
from netctrl.certificates.ecn.in_time import standing_queue
from netctrl.checks.profiles import profile_that_holds
from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.threshold import ThresholdQueue

WHERE = {"rtt_s": 80e-6, "flows": (8.0, 32.0), "capacity_bit_per_s": 100e9}


def drawn(seed: int) -> dict[str, float]:
    """A link of 10 to 400 Gbit/s whose flows have windows of 12 to 60 packets, and a threshold of .05 to 1 of it."""
    random = np.random.default_rng(seed)
    rate, rtt = 10e9 * 40.0 ** random.random(), 20e-6 * 10.0 ** random.random()
    product = rate * rtt / 12e3
    flows = max(round(product / (12.0 * 5.0 ** random.random())), 1)
    return {
        "capacity": rate,
        "rtt": rtt,
        "flows": flows,
        "threshold": 1500.0 * product * 0.05 * 20.0 ** random.random(),
    }


@pytest.mark.parametrize("seed", range(8))
def test_packets_wait_and_use_the_link_as_the_cycle_says(seed: int) -> None:
    at = drawn(seed)
    found = netctrl.certify(
        "dctcp",
        parameters={"k_bytes": at["threshold"]},
        rtt_s=at["rtt"],
        flows=at["flows"],
        capacity_bit_per_s=at["capacity"],
    ).certificate.predicted
    assert found.by == "cycle"
    queue, used = dctcp_packets(
        int(at["flows"]),
        ThresholdQueue(threshold=at["threshold"]),
        at["capacity"],
        at["rtt"],
        1200.0 * at["rtt"],
        at["rtt"] / 8.0,
        start=(0.0, 50.0 * at["rtt"]),
    )
    delay = 12e3 * queue / at["capacity"]
    assert np.quantile(delay, 0.99) == pytest.approx(found.delay_p99_s, rel=0.15)
    assert delay.std() == pytest.approx(found.delay_std_s, rel=0.35, abs=0.03 * found.delay_p99_s)
    assert used == pytest.approx(found.utilization, abs=0.02)


def test_windows_of_a_few_packets_are_told_by_packets() -> None:
    """Windows of 2 packets, the smallest, stand in the queue where they don't fit on the path: 2 N − C d."""
    found = netctrl.certify("dctcp", parameters={"k_bytes": 20e3}, **WHERE | {"flows": 500.0}).certificate
    assert found.predicted.by == "packet"
    product = 100e9 * 80e-6 / 12e3
    assert found.predicted.delay_mean_s == pytest.approx((1000.0 - product) * 120e-9, rel=0.05)
    assert found.predicted.delay_std_s == 0.0 or found.predicted.delay_std_s > 1e-12  # no rounding
    assert found.status.value == "infeasible"


def test_a_ramp_waits_as_its_equilibrium_says() -> None:
    """It moves around the queue at which windows rest."""
    law = {"min_bytes": 100_000, "max_bytes": 400_000, "max_percent": 100, "ecn": True}
    found = netctrl.certify("wred", parameters=law, senders="dctcp", **WHERE).certificate
    assert found.status.value == "admissible"
    at = found.predicted
    standing = standing_queue(Point(at.flows, at.rtt_s, 100e9 / 12e3), [(100e3 / 1500, 0.0), (400e3 / 1500, 1.0)])
    window = (100e9 * 80e-6 / 12e3 + standing) / at.flows
    p = (standing - 100e3 / 1500) / 200.0
    assert p * (1.0 - (1.0 - p) ** window) == pytest.approx(2.0 / window, rel=1e-6)
    assert at.delay_mean_s == pytest.approx(standing * 120e-9, rel=0.05)
    assert 0.0 < at.delay_std_s < 0.2 * at.delay_mean_s


def test_hpcc_uses_eta_of_the_link_with_hardly_a_queue() -> None:
    found = netctrl.certify("hpcc", parameters={"eta": 0.9}, **WHERE | {"flows": 8.0}).certificate.predicted
    assert found.utilization == pytest.approx(0.9, abs=0.02)
    assert found.delay_p99_s < 5e-6
    assert found.least_utilization == pytest.approx(0.9 * 0.98)
    alone = netctrl.certify("hpcc", packets=False, **WHERE)
    assert (alone.holds, alone.verdict.endswith("not judged, as no loop of it is certified")) == (False, True)
    with pytest.raises(InvalidValue, match="hpcc alone"):
        netctrl.certify("hpcc", senders="dctcp", **WHERE)


@pytest.mark.slow
def test_dcqcn_s_ramp_moves_until_packets_use_the_link() -> None:
    found = netctrl.certify("dcqcn", **WHERE)
    assert not found.holds
    law, better = profile_that_holds(found)
    assert found.certificate.predicted.utilization < 0.98 <= better.certificate.predicted.utilization
    assert law.parameters["min_bytes"] == better.law.parameters["kmin_bytes"]
    assert (
        profile_that_holds(netctrl.certify("red", parameters=LINUX, rtt_s=0.02, flows=9.0, capacity_bit_per_s=1e7))
        is None
    )


LINUX = {"limit_bytes": 400_000}
