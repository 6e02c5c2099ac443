"""DOCSIS-PIE against RFC 8034: its table of gains, and its draws, packet by packet."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from docsis_packets import STEPS, Modem

from netctrl.certificates.certify import certify
from netctrl.certificates.pi_laws import docsis_pie, pie
from netctrl.certificates.subject import PiSubject
from netctrl.laws.targets.docsis_pie import mean_spread_rate
from netctrl.laws.targets.pie import PIE_SPREAD
from netctrl.plants.queues.window_response import RENO


@pytest.mark.parametrize(("below", "divisor"), STEPS)
def test_gains_are_those_of_the_rfc_at_every_probability(below: float, divisor: float) -> None:
    gains = next(gains for low, high, gains in docsis_pie().rungs if low <= 0.9 * below < high)
    assert (gains.integral, gains.proportional) == pytest.approx((0.25 / divisor, 2.5 / divisor))
    assert (gains.target_s, gains.update_s) == (0.010, 0.016)


@pytest.mark.parametrize(("rtt", "flows", "size"), [(0.02, 4.0, 1500.0), (0.01, 8.0, 600.0)])
def test_packets_are_dropped_as_the_rfc_draws_them(rtt: float, flows: float, size: float) -> None:
    found = certify("docsis-pie", rtt_s=rtt, flows=flows, capacity_bit_per_s=20e6, packet_size_bytes=size)
    at = found.certificate.sampled
    loop = docsis_pie()
    classes = (loop.seen_by(RENO),)
    output = float(loop.loops(classes, 20e6 / (8.0 * size), size)[0].output(flows, rtt))
    assert at.probabilities[0] == pytest.approx(2.0 / at.windows_packets[0] ** 2)
    modem = Modem(1e6, 300e3, np.random.default_rng(3))
    modem.state, modem.x, modem.old = "active", output, 0.015
    drops = sum(modem.drops(size, 15e3) for _ in range(400_000))
    assert drops / 400_000 == pytest.approx(at.probabilities[0], rel=0.03)


def test_smaller_packets_need_a_larger_output_at_the_same_probability() -> None:
    """So they are at other gains: by the ratio of sizes within a range of the table."""
    large, small = (
        certify("docsis-pie", rtt_s=0.03, window_packets=10.0, packet_size_bytes=size).certificate.sampled
        for size in (1500.0, 1000.0)
    )
    assert large.probabilities == pytest.approx(small.probabilities)
    # The same table's range: the loop gain is in inverse proportion to the output.
    ratio = 10.0 ** ((small.gain_margin_db - large.gain_margin_db) / 20.0)
    assert ratio == pytest.approx(1.5, rel=1e-3)


@pytest.mark.parametrize("subject", [docsis_pie(), pie()], ids=["docsis-pie", "pie"])
@pytest.mark.parametrize("share", [0.002, 0.02, 0.06, 0.12, 0.2])
def test_the_loop_counts_the_slope_of_spread_drops(subject: PiSubject, share: float) -> None:
    """L over that of drops in proportion to p is 1.85 dr/dp, of the mean number of packets from drop to drop."""
    classes = (subject.seen_by(RENO),)
    size = 1500.0 if subject.per_bytes is None else subject.per_bytes
    loop = next(each for each in subject.loops(classes, 1000.0, size) if each.holds(share / each.classes[0].factor))
    plain = replace(loop, law=loop.law._replace(spaced=0.0), within=(0.0, inf))
    x = share / loop.classes[0].factor
    flows = loop.flows(x, 0.05)
    ratio = complex(loop.at(0.1, flows, 0.05) / plain.at(0.1, flows, 0.05))
    p = loop.law.computed(x) * loop.classes[0].factor * PIE_SPREAD  # of a packet
    slope = (mean_spread_rate(1.01 * p) - mean_spread_rate(0.99 * p)) / (0.02 * p)
    assert mean_spread_rate(p) == pytest.approx(share, rel=0.005)
    assert ratio == pytest.approx(PIE_SPREAD * slope, rel=0.01)
