"""Certificates of queues as people run them: published margins, laws of scaling, boxes, refusals."""

from __future__ import annotations

import re

import numpy as np
import pytest
from network_fluid import growth

import netctrl
from netctrl.certificates.certify import certify
from netctrl.certificates.loops import classes_of, read_mixture
from netctrl.certificates.pi_laws import dualpi2, pi2, pie
from netctrl.certificates.subject import PiSubject
from netctrl.core.errors import InvalidValue, NetctrlError, Status
from netctrl.frequency.sampled_stability import stable_gains


@pytest.mark.parametrize(
    ("sender", "window", "gain_margin_db"),
    [
        ("reno", 4.0, 10.06),
        ("reno", 10.0, 6.40),
        ("reno", 50.0, 3.06),
        ("reno", 1000.0, 1.74),
        ("creno", 4.0, 12.34),
        ("creno", 10.0, 9.68),
        ("creno", 50.0, 7.44),
        ("creno", 1000.0, 6.68),
    ],
)
def test_dualpi2s_defaults_at_100_ms_as_usually_given(sender: str, window: float, gain_margin_db: float) -> None:
    """By hand: L = (beta + alpha/(T s)) sqrt2/R e^(-s R)/((s + 2/(R W))(s + 1/R)) for Reno, crossings by bisection."""
    law = dualpi2(alpha=0.16, beta=3.2)
    found = certify(law, rtt_s=0.1, window_packets=window, senders=sender).certificate.linear
    assert found.gain_margin_db == pytest.approx(gain_margin_db, abs=0.01)


@pytest.mark.parametrize("longest", [0.01, 0.1, 1.0])
def test_the_rule_of_rfc_9332_leaves_3_db_whatever_the_longest_round_trip(longest: float) -> None:
    law = pi2(alpha=0.1 * 0.016 / longest**2, beta=0.3 / longest, tupdate_s=0.016)
    found = certify(law, rtt_s=longest, window_packets=50.0).certificate.linear
    assert (found.gain_margin_db, found.phase_margin_deg) == pytest.approx((3.00, 7.5), abs=0.06)


@pytest.mark.parametrize(("window", "gain_margin_db"), [(10.0, -0.87), (30.0, -7.3), (100.0, -15.8)])
def test_pie_at_115_ms_as_usually_given(window: float, gain_margin_db: float) -> None:
    law = pie(implementation="rfc")
    found = certify(law, rtt_s=0.115, window_packets=window).certificate.linear
    assert found.gain_margin_db == pytest.approx(gain_margin_db, abs=0.06)


def test_dropping_as_packets_leave_makes_up_for_the_age_of_the_reading() -> None:
    early, late = (
        certify(
            dualpi2(alpha=0.16, drop_early=drop), rtt_s=0.1, window_packets=50.0, senders="reno"
        ).certificate.sampled
        for drop in (True, False)
    )
    assert late.gain_margin_db == pytest.approx(0.27, abs=0.01)
    assert early.gain_margin_db < -0.9


def test_linux_pie_has_less_gain_than_the_rfc() -> None:
    linux, rfc = (
        certify(
            pie(implementation=each, tupdate_s=0.016, hz=1000), rtt_s=0.05, window_packets=30.0, senders="reno"
        ).certificate.sampled
        for each in ("linux", "rfc")
    )
    # It drops p/1.85; its probability is so much greater that another range of gains may count.
    assert linux.probabilities == pytest.approx(rfc.probabilities)
    assert linux.gain_margin_db > rfc.gain_margin_db + 4.0


@pytest.mark.parametrize("law", ["pie", "dualpi2", "pi2"])
def test_only_the_rate_per_flow_counts(law: str) -> None:
    by_flows = certify(law, rtt_s=0.03, flows=20.0, capacity_bit_per_s=40e6).certificate
    more = certify(law, rtt_s=0.03, flows=60.0, capacity_bit_per_s=120e6).certificate
    window = 40e6 / 12000.0 * 0.045 / 20.0
    alone = certify(law, rtt_s=0.03, window_packets=window).certificate
    for other in (more, alone):
        assert other.sampled.gain_margin_db == pytest.approx(by_flows.sampled.gain_margin_db, abs=1e-6)
        assert other.status is by_flows.status


def test_a_range_of_rates_is_its_worst_rate() -> None:
    box = certify("pi2", rtt_s=0.05, flows=30.0, capacity_bit_per_s=(20e6, 100e6)).certificate.sampled
    ends = [
        certify("pi2", rtt_s=0.05, flows=30.0, capacity_bit_per_s=rate).certificate.sampled for rate in (20e6, 100e6)
    ]
    assert box.gain_margin_db == pytest.approx(min(e.gain_margin_db for e in ends if e is not None), abs=0.01)


def drawn(seed: int) -> tuple[PiSubject, str, tuple[float, float], tuple[float, float]]:
    """A law, a mixture and a box."""
    rng = np.random.default_rng(seed)
    target, update = 10.0 ** rng.uniform(-2.5, -1.5), rng.choice([0.008, 0.016, 0.032])
    alpha = 10.0 ** rng.uniform(-2.0, -0.5)
    law = [
        pi2(target_s=target, tupdate_s=update, alpha=alpha, beta=alpha * 10.0 ** rng.uniform(0.5, 1.5)),
        dualpi2(target_s=round(target, 6), tupdate_s=update, alpha=alpha, beta=alpha * 10.0 ** rng.uniform(0.5, 1.5)),
        pie(target_s=round(target, 6), alpha=rng.integers(1, 9) / 16.0, beta=rng.integers(8, 32) / 16.0, hz=1000),
    ][seed % 3]
    rtt = np.sort(10.0 ** rng.uniform(-2.0, -0.8, 2))
    flows = np.sort(rng.uniform(5.0, 40.0, 2))
    return law, ["reno", "creno", "reno+creno"][seed % 4 % 3], tuple(map(float, flows)), tuple(map(float, rtt))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_a_verdict_over_a_box_is_that_of_the_fluid_at_its_worst_point_and_of_points_inside(seed: int) -> None:
    law, sender, flows, rtt = drawn(seed)
    found = certify(law, rtt_s=rtt, flows=flows, capacity_bit_per_s=200e6, senders=sender).certificate
    if found.sampled is None:
        assert found.status is Status.INFEASIBLE
        return
    loops = law.loops(classes_of(law, read_mixture(sender), (1.0,)), 200e6 / 12000.0, 1500.0)
    at = found.sampled
    assert at.flows is not None
    x = float(loops[0].output(at.flows, at.rtt_s))
    near = [loop for loop in loops if loop.within[0] * 0.999999 <= x <= loop.within[1] * 1.000001]
    factor = 10.0 ** (at.gain_margin_db / 20.0)
    grows = []
    for loop in near:
        limits = stable_gains(loop, at.flows, at.rtt_s)
        angle = limits.upper_angle if limits.upper == pytest.approx(factor, rel=1e-3) else limits.lower_angle
        period = 2.0 * np.pi * loop.epoch / angle
        grows += [growth(loop, at.flows, at.rtt_s, factor * g, 60.0, period) for g in (0.96, 1.04)]
    assert any(below < 0.0 < above for below, above in zip(grows[::2], grows[1::2], strict=True))
    rng = np.random.default_rng(seed)
    for _ in range(3):
        inside = certify(
            law,
            rtt_s=float(np.exp(rng.uniform(*np.log(rtt)))),
            flows=float(np.exp(rng.uniform(*np.log(flows)))),
            capacity_bit_per_s=200e6,
            senders=sender,
        ).certificate
        if at.stable:
            assert inside.sampled.gain_margin_db >= at.gain_margin_db - 0.02
        if found.status is Status.ADMISSIBLE:
            assert inside.status is Status.ADMISSIBLE


TEN = {"rtt_s": 0.1, "flows": 10.0, "capacity_bit_per_s": 20e6}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"law": "sfq", "rtt_s": 0.1, "window_packets": 5.0}, "law"),
        ({"law": "pie", "rtt_s": 0.1, "window_packets": 5.0, "parameters": {"alfa": 1.0}}, "parameters"),
        ({"law": "pie", "rtt_s": 0.1, "window_packets": 5.0, "parameters": {"alpha": 0.1}}, "alpha"),
        ({"law": "pie", "rtt_s": 0.1, "window_packets": 5.0, "parameters": {"alpha": 3.0}}, "alpha"),
        ({"law": "pi2", "rtt_s": (0.1, 0.2), "window_packets": 5.0}, "rtt"),
        ({"law": "pi2", "rtt_s": (0.2, 0.1), "flows": 5.0, "capacity_bit_per_s": 1e7}, "rtt"),
        ({"law": "pi2", "rtt_s": 0.1, "flows": 5.0}, "capacity"),
        ({"law": "pi2", "rtt_s": 0.1, "flows": 5.0, "window_packets": 5.0}, "window"),
        ({"law": "pi2", "rtt_s": 0.1, "window_packets": 5.0, "senders": "vegas"}, "sender"),
        ({"law": "pi2", "rtt_s": 0.1, "flows": 5.0, "capacity_bit_per_s": 1e7, "senders": ".5reno+.6dctcp"}, "sender"),
        ({"law": "dualpi2", "rtt_s": 0.1, "window_packets": 5.0, "senders": "dctcp"}, "sender"),
        ({"law": "pi2", "rtt_s": 0.1, "window_packets": 5.0, "parameters": {"tupdate_s": 100.0}}, "tupdate"),
        (
            {"law": "red", **TEN, "parameters": {"limit_bytes": 400_000, "min_bytes": 90_000, "max_bytes": 30_000}},
            "max",
        ),
        ({"law": "dualpi2", "rtt_s": 0.1, "window_packets": 5.0, "parameters": {"alpha": 1e-9}}, "gain"),
    ],
)
def test_unusable_input_is_named(arguments: dict, named: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        certify(**arguments)
    assert refused.value.argument == named


BUFFER = {"limit_bytes": 3_000_000, "min_bytes": 100_000, "max_bytes": 900_000, "burst": 120, "average_packet": 1500}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "given", "marks"),
    [
        ("pie", {}, {"ecn": True}),
        ("fq_pie", {}, {"ecn": True}),
        ("red", BUFFER, {"ecn": True}),
        ("wred", {"min_bytes": 100_000, "max_bytes": 900_000, "max_percent": 10}, {"ecn": True}),
        ("docsis-pie", {}, None),
        ("dualpi2", None, {}),
        ("pi2", None, {}),
    ],
)
def test_senders_of_linux_are_those_without_ecn_where_a_law_drops(law: str, given: dict | None, marks: dict) -> None:
    def margin(sender: str, parameters: dict) -> float:
        found = certify(
            law, rtt_s=0.06, flows=50.0, capacity_bit_per_s=5e7, senders=sender, parameters=parameters
        ).certificate.sampled
        return found.gain_margin_db

    for sender in ("linux-reno", "linux-creno"):
        without = margin(f"{sender}-noecn", given or {})
        if given is not None:
            assert margin(sender, given) == without
        if marks is not None:
            assert abs(margin(sender, (given or {}) | marks) - without) > 1e-3
    assert margin("rfc-reno", given or {}) == margin("rfc-reno", (given or {}) | (marks or {}))


@pytest.mark.parametrize("sender", ["linux-creno", "linux-creno+rfc-reno"])
def test_far_too_many_flows_have_small_windows_with_every_sender(sender: str) -> None:
    found = certify("pi2", rtt_s=0.02, flows=1e4, capacity_bit_per_s=1e7, senders=sender).certificate
    assert found.status is Status.INFEASIBLE
    assert "time-outs" in found.warnings[0]


def test_a_gain_margin_beyond_what_is_proved_has_a_proved_part() -> None:
    """An integrator alone: |L| is 1 at omega = alpha (D/x)(power/2)/T, D/x the queue's change with slow windows."""
    law = {"alpha": 1e-5, "beta": 0.0, "target_s": 0.001, "tupdate_s": 0.016}
    found = certify("pi2", rtt_s=0.001, flows=20.0, capacity_bit_per_s=1e9, parameters=law)
    sampled = found.certificate.sampled
    assert sampled.gain_margin_db > 140.0
    assert sampled.gain_margin_db_proved == pytest.approx(80.0, abs=0.1)
    assert sampled.phase_margin_deg == pytest.approx(90.0, abs=1e-4)
    crossover = 1e-5 / 0.016 * 0.002 / sampled.probabilities[0] ** 0.5  # |δD/δx| = R/x at s = 0
    assert sampled.delay_margin_s == pytest.approx(0.5 * np.pi / crossover, rel=1e-4)


def test_coupled_flows_of_dualpi2_wait_in_their_own_queue_alone() -> None:
    """Their marks come as they leave it, a standing delay of the classic queue before the law reads the answer."""
    law = dualpi2(target_s=0.04, alpha=0.015, beta=0.05, tupdate_s=0.032)
    found = certify(law, rtt_s=0.008, flows=2.0, capacity_bit_per_s=60e6, senders=".5creno+.5dctcp").certificate.sampled
    loop = law.loops(classes_of(law, read_mixture(".5creno+.5dctcp"), (1.0,)), 5000.0, 1500.0)[0]
    limits = stable_gains(loop, 2.0, 0.008)
    period = 2.0 * np.pi * loop.epoch / limits.upper_angle
    below, above = (growth(loop, 2.0, 0.008, limits.upper * share, 60.0, period) for share in (0.97, 1.03))
    assert below < 0.0 < above
    assert found.gain_margin_db == pytest.approx(20.0 * np.log10(limits.upper), abs=0.01)


def test_where_the_delay_margin_is_not_proved_it_is_that_of_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    def undecided(*_: object, **__: object) -> None:
        raise NetctrlError("no decision on the margin")

    proved = certify("pi2", **TEN, senders="reno+dctcp").certificate
    monkeypatch.setattr("netctrl.frequency.sampled_margins.least", undecided)
    scanned = certify("pi2", **TEN, senders="reno+dctcp").certificate
    assert proved.sampled.stable
    assert scanned.status is proved.status
    assert scanned.sampled.delay_margin_s == pytest.approx(proved.sampled.delay_margin_s, rel=1e-3)
    assert scanned.sampled.phase_margin_deg == pytest.approx(proved.sampled.phase_margin_deg, rel=1e-3)
    assert scanned.sampled.disk_margin == pytest.approx(proved.sampled.disk_margin, rel=1e-2)


@pytest.mark.slow
def test_linuxs_laws_are_judged_by_linuxs_senders() -> None:
    """The verdict is that of the worst sender, and each has the margins that it has alone."""
    where = {"rtt_s": 0.1, "window_packets": 30.0}
    found = certify("pie", **where)
    assert found.inputs.senders == ("linux-creno", "linux-reno", "cubic")  # with its curve: 3.4 dB in place of 5.3
    alone = [certify("pie", **where, senders=each.sender).certificate for each in found.certificate.senders]
    assert [each.sampled for each in found.certificate.senders] == [each.sampled for each in alone]
    worst = min(alone, key=lambda each: 0.0 if each.sampled is None else each.sampled.gain_margin_db)
    assert found.certificate.sampled == worst.sampled
    assert found.certificate.status is worst.status
    said = [text for name, text in found.rows if any(text.startswith(f"{each}: ") for each in found.inputs.senders)]
    assert len(said) == 3


@pytest.mark.parametrize(("law", "senders"), [("pie", 2), ("dualpi2", 2), ("fq_pie", 2), ("pi2", 1), ("docsis-pie", 1)])
def test_the_default_senders_are_those_of_the_laws_system(law: str, senders: int) -> None:
    found = certify(law, rtt_s=0.01, window_packets=8.0)
    assert found.inputs.senders == ("linux-creno", "linux-reno")[:senders] if senders > 1 else ("reno",)
    assert len(found.certificate.senders) == senders


@pytest.mark.parametrize(("law", "window"), [("pie", 10.0), ("pie", 50.0), ("dualpi2", 6.0), ("dualpi2", 60.0)])
def test_a_warning_has_the_number_of_its_box(law: str, window: float) -> None:
    where = {"rtt_s": 0.02, "window_packets": window}
    found = certify(law, **where, senders="reno").certificate
    linux = certify(law, **where, senders=("linux-creno", "linux-reno")).certificate.sampled
    less = found.sampled.gain_margin_db - linux.gain_margin_db
    number = f"have {less:.1f} dB less than reno in this box: {linux.sender} {linux.gain_margin_db:.2f} dB"
    said = [each for each in found.warnings if "Linux's senders" in each]
    assert [number in each for each in said] == [True] * (less > 0.5)
    theirs = certify(law, **where, senders="linux-reno").certificate
    assert not any("Linux's senders" in each for each in theirs.warnings)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "less_db"), [("pie", 14.0), ("dualpi2", 4.0)])
def test_linuxs_senders_have_no_less_than_the_page_of_certificates_says(law: str, less_db: float) -> None:
    for rtt in (0.002, 0.05, 0.2):
        for window in (2.2, 3.2, 6.0, 12.0, 26.0, 60.0):
            for classic, linux in (("reno", "linux-reno"), ("creno", "linux-creno")):
                with_, without = (
                    certify(law, rtt_s=rtt, window_packets=window, senders=sender).certificate.sampled
                    for sender in (classic, linux)
                )
                if with_ is None or without is None:  # dualpi2 has no equilibrium with the smallest
                    assert window == 2.2
                    continue
                assert with_.gain_margin_db - without.gain_margin_db <= (less_db if window < 25.0 else 1.5)


@pytest.mark.slow
def test_a_round_trip_of_more_than_10_s_warns_wherever_it_is_given() -> None:
    long = "no path has a round-trip time of 20 s: if it is in ms, give 0.02 s"
    near = {"flows": 5.0, "capacity_bit_per_s": 1e6}
    asked = [
        certify("pi2", rtt_s=20.0, **near).certificate,
        certify("pi2", rtt_s=10.0, stretches=(1.0, 2.0), **near).certificate,
        certify("dctcp", rtt_s=20.0, parameters={"k_packets": 65.0}, **near).certificate,
        netctrl.arc(50, rtt_s=20.0, alpha_per_packet=1e-9, simulation=False).certificate,
        netctrl.certify_network(netctrl.read("parking-lot"), rtt_s={"long": 20.0}).certificate,
    ]
    assert [long in each.warnings for each in asked] == [True] * len(asked)
    assert not any("no path" in each for each in certify("pi2", rtt_s=10.0, **near).certificate.warnings)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"packet_size_bytes": 1e-320}, "packet_size: got 1e-320, takes a size in bytes, from 1 to 1e+15"),
        ({"rtt_s": 1e-320}, "rtt: got 1e-320"),
        ({"capacity_bit_per_s": 1e300}, "capacity: got 1e"),
        ({"parameters": {"target_s": 5e-324}}, "target: got 5e-324"),
        ({"parameters": {"tupdate_s": 1e200}}, "tupdate: got 1e"),
    ],
)
def test_absurd_quantities_are_refused_with_what_is_taken(given: dict, said: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(said)):
        certify("pi2", **({"rtt_s": 0.02, "flows": 5.0, "capacity_bit_per_s": 1e7} | given))
