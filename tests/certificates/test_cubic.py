"""Certificates for Cubic with its own curve: against the Reno-friendly sender, renewal equations, and packets."""

from __future__ import annotations

import numpy as np
import pytest
from cubic_population import population, renewal_response

import netctrl
from netctrl.certificates.box import box_of
from netctrl.certificates.loops import box_loops
from netctrl.certificates.pi_laws import pi2
from netctrl.frequency.margin_grid import gain_factors
from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.plants.queues.window_response import CRENO, CUBIC
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.run import simulate_packets

WINDOW, RTT, TARGET = 100.0, 0.15, 0.05
"""Windows that follow the cubic curve."""
SLOW, QUICK = {"alpha": 0.0042, "beta": 0.084}, {"alpha": 0.0167, "beta": 0.5}


def _certified(sender: str, **parameters: float):
    return netctrl.certify(
        "pi2", rtt_s=RTT, window_packets=WINDOW, senders=sender, parameters={"target_s": TARGET, **parameters}
    ).certificate


@pytest.fixture(scope="module", params=[SLOW, QUICK], ids=["slow", "quick"])
def packets(request):
    flows = 150
    rate = flows * WINDOW / (RTT + TARGET) * 12000.0
    queue = Pi2Queue(target=TARGET, **request.param)
    link = Link(id="line", source="a", target="b", capacity=rate, buffer=rate / 8.0, queue=queue)
    bulk = Flow(id="tcp", path=("line",), rtt=(0.98 * RTT, 1.02 * RTT), start=(0.0, 5.0), count=flows, sender="cubic")
    found = simulate_packets(
        Scenario(name="cubic", duration=120.0, interval=0.05, packet_size=1500.0, links=(link,), flows=(bulk,))
    )
    late = found.time_s > 60.0
    return request.param, found.series["delay"][0][late], found.series["probability"][0][late]


@pytest.mark.slow
def test_packets_swing_and_rest_where_cubic_s_certificate_says_so_and_not_creno_s(packets) -> None:
    """Windows on the cubic curve answer late, so that a slow law swings that creno's certificate calls stable."""
    gains, delay, probability = packets
    found = _certified("cubic", **gains).sampled
    if gains == SLOW:
        assert not found.stable
        assert _certified("creno", **gains).sampled.gain_margin_db > 9.0
        assert delay.std() > TARGET
        return
    assert found.stable
    assert delay.std() < 0.25 * TARGET
    assert delay.mean() == pytest.approx(TARGET, rel=0.05)
    assert probability.mean() == pytest.approx(found.probabilities[0], rel=0.1)
    assert CRENO.probability(WINDOW) < 0.4 * probability.mean()


def test_creno_s_certificate_is_near_where_windows_are_small_and_too_good_where_they_are_large() -> None:
    small, large = (
        [
            netctrl.certify("pi2", rtt_s=rtt, window_packets=window, senders=name).certificate.sampled.gain_margin_db
            for name in ("cubic", "creno")
        ]
        for rtt, window in ((0.02, 20.0), (0.1, 300.0))
    )
    assert small[0] == pytest.approx(small[1], abs=0.3)
    assert large[1] > 2.0 > -3.0 > large[0]


@pytest.mark.slow
def test_the_loop_is_that_of_the_renewal_equations() -> None:
    """One point, in continuous time but for the hold; the response of the window from the equations themselves."""
    box = box_of(pi2(target_s=TARGET, **QUICK), RTT, window_packets=WINDOW, senders="cubic")
    ((_, loop),) = box_loops(pi2(target_s=TARGET, **QUICK), box)
    trip, x = RTT + TARGET, float(loop.output(1.0, RTT))
    flows = population(CUBIC.increase * float(np.sqrt(x * x / (CUBIC.curve * trip**3))), n=160, m=800)
    cuts = x * x * WINDOW / trip
    for theta in (0.01, 0.02, 0.04, 0.08):
        s = 1j * theta / 0.016
        Q, late, z = renewal_response(flows, abs(s) / cuts), np.exp(-s * trip), np.exp(1j * theta)
        moved = 2.0 * Q * late / x / (s + (1.0 - Q * late) / trip)
        plain = (QUICK["beta"] + QUICK["alpha"] / (1.0 - 1.0 / z)) * (1.0 - 1.0 / z) / (s * 0.016) * moved
        assert abs(complex(loop.at(theta, 1.0, RTT)) / plain - 1.0) < 0.02


@pytest.mark.slow
def test_a_box_is_proved_and_its_points_keep_what_is_proved() -> None:
    ends = {"rtt_s": (0.03, 0.04), "flows": (40.0, 60.0), "capacity_bit_per_s": 200e6, "senders": ("cubic", "creno")}
    found = netctrl.certify("pi2", **ends).certificate
    proved = found.sampled.gain_margin_db_proved
    assert found.status.value == "admissible"
    assert proved > 6.0
    alone = {name: netctrl.certify("pi2", **ends | {"senders": name}).certificate.linear for name in ends["senders"]}
    assert alone["cubic"] is None
    assert found.linear == alone["creno"]
    loops = box_loops(pi2(), box_of(pi2(), **ends))
    rng = np.random.default_rng(3)
    flows, rtt = rng.uniform(40.0, 60.0, 60), rng.uniform(0.03, 0.04, 60)
    least = min(20.0 * np.log10(gain_factors(loop, flows, rtt)).min() for _, loop in loops)
    assert proved - 0.01 <= least
    assert found.sampled.gain_margin_db <= least + 0.05


def test_cubic_shares_a_link_with_others_and_meets_red() -> None:
    mixed = netctrl.certify("pi2", rtt_s=0.05, flows=50.0, capacity_bit_per_s=2e8, senders="cubic+reno").certificate
    assert mixed.status.value == "admissible"
    cubic, reno = mixed.sampled.windows_packets
    assert cubic == pytest.approx(reno, rel=0.15)  # windows of 21 packets: Reno-friendly
    red = {"limit_bytes": 400000, "min_bytes": 30000, "max_bytes": 90000, "burst": 55}
    found = netctrl.certify(
        "red", rtt_s=0.05, flows=(15.0, 20.0), capacity_bit_per_s=20e6, senders="cubic", parameters=red
    ).certificate
    assert found.sampled.gain_margin_db == pytest.approx(10.62, abs=0.05)  # creno: 10.68 dB, at windows of 8 packets
