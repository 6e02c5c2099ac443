"""Certificates of RED and WRED: a published example, closed forms, the fluid in time, and what has no loop."""

from __future__ import annotations

from cmath import exp
from math import pi, sqrt

import numpy as np
import pytest
from network_fluid import growth

from netctrl.certificates.box import box_of
from netctrl.certificates.certify import certify, subject_of
from netctrl.certificates.loops import classes_of, loops_of, read_mixture
from netctrl.certificates.red import RedLine, RedSubject, red, wred
from netctrl.certificates.search import margin_map
from netctrl.core.errors import InvalidValue, Status
from netctrl.frequency.sampled_stability import stable_gains

AREA = {"rtt_s": 0.05, "flows": (15.0, 20.0), "capacity_bit_per_s": 20e6}
LINUX = {"limit_bytes": 400_000, "min_bytes": 30_000, "max_bytes": 90_000, "burst": 55}


def averaged(slope_per_packet: float, corner: float, rate: float) -> RedSubject:
    """RED with independent marks, packets of 1000 bytes, and a slope and a corner [rad/s] of its average."""
    line = RedLine(slope_per_packet / 1000.0, 0.0, 0.0, 1.0)
    weight = 1.0 if corner == np.inf else -float(np.expm1(-corner / rate))
    return RedSubject(name="red", implementation="", parameters={}, lines=(line,), weight=weight)


def usual(subject: RedSubject, flows: float, rtt: float, rate: float):
    found = certify(
        subject, rtt_s=rtt, flows=flows, capacity_bit_per_s=8000.0 * rate, packet_size_bytes=1000.0
    ).certificate.linear
    assert found is not None
    return found


def test_hollots_example_is_stable_as_published_and_not_at_longer_round_trips() -> None:
    """Hollot, Misra, Towsley, Gong, "A control theoretic analysis of RED", INFOCOM 2001, Section IV: N = 60,
    R = .246 s, C = 3750 packet/s, L_red = 1.86e-4, K = .005. By hand: crossings by bisection of
    L = L_red (R C)³/(2N)² e^(−Rs)/((1 + s/K) (1 + s R²C/(2N)) (1 + s R))."""
    subject = averaged(1.86e-4, 0.005, 3750.0)

    def loop(w: float, R: float) -> complex:
        gain = 1.86e-4 * (R * 3750.0) ** 3 / 120.0**2
        s = 1j * w
        return gain * exp(-s * R) / ((1 + s / 0.005) * (1 + s * R * R * 3750.0 / 120.0) * (1 + s * R))

    def margins(R: float) -> tuple[float, float]:
        def bisected(f) -> float:
            low, high = 1e-4, 1.0 / R
            for _ in range(200):
                middle = sqrt(low * high)
                low, high = (middle, high) if f(middle) > 0.0 else (low, middle)
            return low

        phase = bisected(lambda w: abs(loop(w, R)) - 1.0)
        crossing = bisected(lambda w: unwrapped(w, R) + pi)
        return -20.0 * np.log10(abs(loop(crossing, R))), np.degrees(unwrapped(phase, R) + pi)

    def unwrapped(w: float, R: float) -> float:
        return -w * R - float(np.arctan(w / 0.005) + np.arctan(w * R * R * 3750.0 / 120.0) + np.arctan(w * R))

    for R, stable in ((0.246, True), (0.5, True), (0.8, False)):
        found = usual(subject, 60.0, R, 3750.0)
        assert found.stable is stable
        assert (found.gain_margin_db, found.phase_margin_deg) == pytest.approx(margins(R), abs=0.02)
    found = usual(subject, 60.0, 0.246, 3750.0)
    assert (found.gain_margin_db, found.phase_margin_deg) == pytest.approx((32.83, 88.84), abs=0.02)


def test_the_equilibrium_is_where_linux_marks_as_reno_needs() -> None:
    found = certify("red", parameters=LINUX, **{**AREA, "flows": 17.0}).certificate.sampled
    queue = found.queue_delay_s * 20e6 / 8.0
    window = 20e6 / 12000.0 * (0.05 + found.queue_delay_s) / 17.0
    assert found.windows_packets[0] == pytest.approx(window, rel=1e-9)
    step = 0.02 * 2**32 // 60_000  # a whole number in the kernel
    p = step / 2**32 * (queue - 30_000.0)
    assert 2.0 * p / (1.0 + p) == pytest.approx(2.0 / window**2, rel=1e-6)


STEEP = {
    "limit_bytes": 150_000,
    "min_bytes": 7500,
    "max_bytes": 22_500,
    "probability": 0.1,
    "weight_log": 9,
    "gentle": True,
}
"""RED with Floyd's recommendations of 1997."""


def near(subject: RedSubject, flows: float, rtt: float, sender: str = "reno"):
    box = box_of(subject, rtt, flows, 20e6, None, 1500.0, sender, (1.0,))
    loops = loops_of(subject, classes_of(subject, read_mixture(sender), (1.0,)), box)
    return [loop for loop in loops if loop.starts(box.flows, box.rtt)]


@pytest.mark.parametrize(
    ("subject", "flows", "rtt", "sender"),
    [
        (red(**LINUX), (8.0, 14.0), (0.03, 0.05), "reno"),
        (red(**{**LINUX, "probability": 0.1}), (10.0, 20.0), (0.03, 0.04), "reno,creno"),
        (red(**{**LINUX, "probability": 0.05}, gentle=True), (15.0, 50.0), (0.03, 0.05), "reno"),
        # Up to 50 dB beyond its limit, with many other crossings in between.
        (red(**STEEP), (10.0, 20.0), (0.05, 0.1), "reno"),
        (wred(min_bytes=30_000, max_bytes=90_000, max_percent=10), (10.0, 20.0), (0.03, 0.06), "reno"),
        (wred(min_bytes=10_000, max_bytes=200_000, max_percent=60), (10.0, 20.0), (0.01, 0.03), "reno+dctcp"),
    ],
)
def test_a_box_has_the_margin_at_which_the_fluid_begins_to_oscillate(subject, flows, rtt, sender) -> None:
    senders = tuple(sender.split(","))
    found = certify(subject, rtt_s=rtt, flows=flows, capacity_bit_per_s=20e6, senders=senders).certificate
    assert found.sampled is not None
    at = found.sampled
    assert at.flows is not None
    factor, grows = 10.0 ** (at.gain_margin_db / 20.0), []
    for loop in near(subject, at.flows, at.rtt_s, at.sender):
        limits = stable_gains(loop, at.flows, at.rtt_s)
        angle = limits.upper_angle if limits.unstable_poles == 0 else limits.lower_angle
        period = 2.0 * np.pi * loop.epoch / angle
        grows.append([growth(loop, at.flows, at.rtt_s, factor * g, 60.0, period) for g in (0.97, 1.03)])
    assert any(below < 0.0 < above for below, above in grows)
    rng = np.random.default_rng(1)
    for _ in range(4):
        inside = certify(
            subject,
            rtt_s=float(rng.uniform(*rtt)),
            flows=float(rng.uniform(*flows)),
            capacity_bit_per_s=20e6,
            senders=senders,
        ).certificate
        assert inside.sampled.gain_margin_db >= at.gain_margin_db - 0.02


@pytest.mark.parametrize("seed", range(6))
def test_angles_cover_the_frequencies_that_count(seed: int) -> None:
    """With ten times as many frequencies, margins at points stay."""
    rng = np.random.default_rng(seed)
    P, flows, rtt = rng.uniform(0.05, 0.9), rng.uniform(5.0, 30.0), 10.0 ** rng.uniform(-2.3, -0.7)
    for loop in near(wred(min_bytes=20_000, max_bytes=200_000, max_percent=int(100 * P)), flows, rtt):
        wide = type(loop)(
            loop.classes, loop.law, loop.rate, age_s=loop.age_s, within=loop.within, continuous_s=loop.epoch / 10.0
        )
        ours, other = (stable_gains(each, flows, rtt) for each in (loop, wide))
        assert ours.unstable_poles == other.unstable_poles
        assert ours.factor == pytest.approx(other.factor, rel=1e-6)


def test_adaptive_red_is_as_bad_as_its_worst_probability() -> None:
    where = {"rtt_s": 0.005, "flows": 20.0, "capacity_bit_per_s": 20e6}
    found = certify("red", parameters={**LINUX, "adaptive": True}, **where).certificate
    fixed = [
        certify("red", parameters={**LINUX, "probability": P}, **where).certificate for P in (0.02, 0.1, 0.3, 0.499999)
    ]
    margins = [each.sampled.gain_margin_db for each in fixed if each.sampled is not None]
    assert found.sampled.gain_margin_db == pytest.approx(min(margins), abs=0.01)
    assert sum("worst of 9 values" in each for each in found.warnings) == 1


def test_beyond_the_upper_threshold_only_a_gentle_line_has_an_equilibrium() -> None:
    where = {**AREA, "flows": 40.0}
    linux = certify("red", parameters=LINUX, **where).certificate
    assert linux.status is Status.INFEASIBLE
    assert "above 0.0392 the average is at the upper threshold, where every packet is dropped" in linux.warnings[0]
    marked = certify("red", parameters={**LINUX, "ecn": True}, **where).certificate
    assert "every packet is marked" in marked.warnings[0]
    gentle = certify("red", parameters={**LINUX, "gentle": True}, **where).certificate
    assert gentle.sampled.queue_delay_s * 20e6 / 8.0 > 90_000.0
    window, P = gentle.sampled.windows_packets[0], 0.02
    p = P + (1.0 - P) * (gentle.sampled.queue_delay_s * 20e6 / 8.0 / 90_000.0 - 1.0)
    assert 2.0 * p / (1.0 + p) == pytest.approx(2.0 / window**2, rel=1e-6)
    short = certify("red", parameters={**LINUX, "limit_bytes": 60_000, "gentle": True}, **where).certificate
    assert short.status is Status.INFEASIBLE


@pytest.mark.slow
def test_parameters_make_the_same_law_again_and_a_map_has_its_margins() -> None:
    for law, parameters in (
        ("red", {**LINUX, "adaptive": True}),
        ("red", {**LINUX, "gentle": True, "probability": 0.1}),
        ("wred", {"min_bytes": 30_000, "max_bytes": 90_000, "max_percent": 30}),
    ):
        made = subject_of(law, parameters)
        again = subject_of(law, made.parameters)
        assert again == made
    found = certify("red", parameters=LINUX, **AREA)
    over = margin_map(subject_of("red", found.law.parameters), found.inputs)
    rng, seen = np.random.default_rng(4), 0
    for i, k in zip(*rng.integers(len(over.rtt_s), size=(2, 24)), strict=True):
        flows = 20e6 / 12000.0 / over.rate_per_flow[k]
        point = certify("red", parameters=LINUX, rtt_s=over.rtt_s[i], flows=flows, capacity_bit_per_s=20e6).certificate
        if point.sampled is None:
            assert np.isnan(over.gain_margin_db[i, k])
            continue
        assert over.gain_margin_db[i, k] == pytest.approx(point.sampled.gain_margin_db, abs=0.05)
        seen += 1
    assert seen > 5


@pytest.mark.parametrize(
    ("law", "parameters", "where", "argument", "said"),
    [
        ("red", {**LINUX, "max_bytes": 30_000, "burst": 80}, AREA, "max", "a step"),
        ("red", {**LINUX, "limit_bytes": 20_000}, AREA, "limit", "never marked"),
        ("red", {"min_bytes": 30_000}, AREA, "parameters", "limit_bytes of red"),
        ("wred", {"min_bytes": 9, "max_bytes": 9, "max_percent": 5}, AREA, "max", "a step"),
        ("wred", {"min_bytes": 9, "max_bytes": 99, "max_percent": 0}, AREA, "probability", "above 0 in percent"),
        ("red", LINUX, {"rtt_s": 0.1, "window_packets": 9.0}, "window", "thresholds of red are in bytes"),
        ("red", LINUX, {**AREA, "capacity_bit_per_s": (1e7, 2e7)}, "capacity", "thresholds of red are in bytes"),
    ],
)
def test_what_has_no_loop_is_refused_by_name(law, parameters, where, argument, said) -> None:
    with pytest.raises(InvalidValue, match=said) as refused:
        certify(law, parameters=parameters, **where)
    assert refused.value.argument == argument
