"""Figures in ms of a certificate, against a normal variable that is drawn, and against packets."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import netctrl
from netctrl.certificates.box import box_of
from netctrl.certificates.certify import subject_of
from netctrl.certificates.loops import loop_at, read_mixture
from netctrl.certificates.predicted import PointFigures, clipped, clipped_to, point_figures
from netctrl.laws.disciplines import KernelQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.laws.targets.docsis_pie import DocsisPieQueue

PIE = {"target": 0.015, "tupdate": 0.015, "limit": 1e5, "alpha": 2.0, "beta": 20.0}
ESTIMATES = {"implementation": "rfc", "dq_rate_estimator": True}
QUEUES: dict[str, Any] = {
    "pie": KernelQueue(discipline="pie", parameters=PIE),
    "docsis-pie": DocsisPieQueue(),
    "pi2": Pi2Queue(target=0.015, update=0.016, alpha=0.16, beta=3.2),
    "dualpi2": DualPi2Queue(target=0.015, update=0.016, alpha=41.0 / 256.0, beta=819.0 / 256.0),
}
CERTIFIED = {"reno": "rfc-reno", "cubic": "rfc-creno"}


def figures(law: str, sender: str, rate: float, rtt: float, flows: float) -> PointFigures:
    subject = subject_of(law, {})
    box = box_of(subject, rtt_s=rtt, flows=flows, capacity_bit_per_s=rate, senders=sender)
    loop = loop_at(subject, read_mixture(sender), box, flows, rtt)
    found = point_figures(loop, np.array([flows]), np.array([rtt]), drops=subject.drops)
    return found._make([*(each.item() for each in found[:4]), found.beyond])


@given(mean=st.floats(-0.05, 0.1), deviation=st.floats(1e-4, 0.05))
def test_the_clipped_variable_is_that_of_many_draws(mean: float, deviation: float) -> None:
    """Draws at the quantiles of a normal variable, which have its moments to some 1e-3 of the deviation."""
    from scipy.stats import norm

    drawn = mean + deviation * norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    above, square, below = clipped(mean, deviation)
    assert above == pytest.approx(np.maximum(drawn, 0.0).mean(), abs=1e-3 * deviation)
    assert square == pytest.approx((np.maximum(drawn, 0.0) ** 2).mean(), abs=2e-3 * deviation * (deviation + abs(mean)))
    assert below == pytest.approx(np.maximum(-drawn, 0.0).mean(), abs=1e-3 * deviation)


@given(target=st.floats(1e-3, 0.1), share=st.floats(0.01, 5.0))
def test_a_law_with_a_target_holds_the_mean_of_the_clipped_variable(target: float, share: float) -> None:
    assert clipped(clipped_to(target, share * target), share * target)[0] == pytest.approx(target, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("law", QUEUES)
def test_packets_have_these_figures(law: str) -> None:
    """Twelve random links where figures are given, two seeds each: deviation and 99th percentile within 1.3 times at
    nine, and nowhere far off."""
    random, off = np.random.default_rng(5), []
    while len(off) < 12:
        rate, rtt = 10.0 ** random.uniform(6.3, 8.3), float(np.exp(random.uniform(np.log(0.003), np.log(0.15))))
        flows, sender = round(float(np.exp(random.uniform(0.0, np.log(200.0))))), str(random.choice(list(CERTIFIED)))
        trip, window = rtt + 0.015, rate / 12_000.0 * (rtt + 0.015) / flows
        if window < 6.0 or rate > 3e7 * (1.0 + 1.0 / (window * trip)):
            continue
        try:
            found = figures(law, CERTIFIED[sender], rate, rtt, float(flows))
        except netctrl.InvalidValue:
            continue
        stable = netctrl.certify(
            law, rtt_s=rtt, flows=float(flows), capacity_bit_per_s=rate, senders=CERTIFIED[sender]
        ).certificate.sampled
        if found.why_not(0, 1.0) or stable is None or not stable.stable:
            continue
        warm = max(20.0, 4.0 * window * trip)
        runs = [packets(law, sender, rate, rtt, flows, warm, max(60.0, 30.0 * window * trip), seed) for seed in (1, 2)]
        std, p99, used = np.mean(runs, axis=0)
        assert found.utilization == pytest.approx(used, abs=0.02)
        off.append((np.log(found.std_s / std), np.log(found.p99_s / p99)))
    ratios = np.exp(np.abs(off))
    assert (np.count_nonzero(ratios < 1.3, axis=0) >= 9).all()
    assert (ratios.max(axis=0) < [1.6, 1.4]).all()


def packets(
    law: str, sender: str, rate: float, rtt: float, flows: int, warm: float, duration: float, seed: int
) -> tuple[float, float, float]:
    """Deviation and 99th percentile of the delay [s], and utilization."""
    buffer = rate / (80.0 if law == "docsis-pie" else 8.0)
    line = netctrl.Link(
        id="line", source="a", target="b", capacity=rate, delay=rtt / 4.0, buffer=buffer, queue=QUEUES[law]
    )
    group = netctrl.Flow(
        id="tcp", path=("line",), rtt=rtt, count=flows, sender=sender, start=(0.0, 2.0), ecn="pie" not in law
    )
    scenario = netctrl.Scenario(
        name="judge",
        links=(line,),
        flows=(group,),
        duration=warm + duration,
        warmup=warm,
        interval=2e-3,
        seed=seed,
        packet_size=1500.0,
    )
    result = netctrl.simulate(scenario, "packet")
    delay = 8.0 * result.series["backlog"][0][result.time_s > warm] / rate
    return float(delay.std()), float(np.quantile(delay, 0.99)), float(result["utilization", "line"])


@pytest.mark.parametrize(
    ("law", "rate", "rtt", "flows", "why"),
    [
        ("pie", 1e8, 0.02, 2.0, "law's output"),
        ("pi2", 1e6, 0.05, 1.0, "queue by"),
        ("pi2", 200e6, 0.135, 150.0, "limit"),
        ("pie", 8e6, 0.01, 5.0, "windows of"),
    ],
)
def test_where_figures_do_not_hold_the_reason_is_told(
    law: str, rate: float, rtt: float, flows: float, why: str
) -> None:
    where = {"rtt_s": rtt, "flows": flows, "capacity_bit_per_s": rate}
    found = netctrl.certify(law, **where, senders="rfc-reno", packets=False).certificate
    (beyond,) = found.beyond
    assert found.predicted is None and why in beyond.why
    assert (beyond.rtt_s, beyond.flows, beyond.capacity_bit_per_s) == (rtt, flows, rate)


def test_a_box_has_the_longest_delays_of_its_points_with_the_fewest_flows(tmp_path: Path) -> None:
    box = {"rtt_s": (0.01, 0.03), "flows": (10.0, 20.0), "capacity_bit_per_s": (50e6, 100e6)}
    found = netctrl.certify("dualpi2", **box, senders="rfc-reno")
    worst = found.certificate.predicted
    assert worst is not None and f"99 % below {worst.delay_p99_s * 1e3:.3g} ms" in found.verdict
    assert ("these delays", worst.point) in found.rows
    points = [
        figures("dualpi2", "rfc-reno", rate, rtt, flows)
        for rtt in np.geomspace(0.01, 0.03, 4)
        for rate in np.geomspace(50e6, 100e6, 3)
        for flows in np.geomspace(10.0, 20.0, 3)
    ]
    assert worst.delay_p99_s >= (1.0 - 1e-9) * max(each.p99_s for each in points)
    assert worst.utilization <= (1.0 + 1e-9) * min(each.utilization for each in points)
    assert worst.flows == pytest.approx(10.0)
    at = figures("dualpi2", "rfc-reno", worst.capacity_bit_per_s, worst.rtt_s, worst.flows)
    assert (worst.delay_mean_s, worst.delay_std_s) == pytest.approx((at.mean_s, at.std_s), rel=1e-9)
    found.save(tmp_path / "certificate.json")
    stored = json.loads((tmp_path / "certificate.json").read_text(encoding="utf-8"))["certificate"]["predicted"]
    assert stored == json.loads(msgspec.json.encode(worst))


@pytest.mark.parametrize(
    ("rate", "rtt", "flows", "status", "by_packets"),
    [
        (66e6, 0.25, 130.0, "unstable", "unstable"),  # swings from an empty queue to 52 ms
        (200e6, 0.135, 150.0, "stable", "admissible"),  # |1 + L| = .1, and 99 % below 28 ms
        (1e6, 0.05, 1.0, "admissible", "stable"),  # 12 dB, and 99 % below 66 ms
    ],
)
def test_packets_decide_where_the_loop_says_nothing(
    rate: float, rtt: float, flows: float, status: str, by_packets: str
) -> None:
    where = {"rtt_s": rtt, "flows": flows, "capacity_bit_per_s": rate, "senders": "rfc-reno"}
    loop = netctrl.certify("pi2", **where, packets=False)
    found = netctrl.certify("pi2", **where)
    figures = found.certificate.predicted
    assert (loop.certificate.status, found.certificate.status) == (status, by_packets)
    assert figures is not None and figures.by == "packet"
    assert found.holds is figures.as_asked is (figures.delay_p99_s <= 0.045 and figures.utilization >= 0.98)
    assert loop.certificate.predicted is None and "by packets" in found.verdict
    run = packets("pi2", "reno", rate, rtt, round(flows), 40.0, 400.0, 9)
    assert (figures.delay_p99_s, figures.utilization) == (
        pytest.approx(run[1], rel=0.12),
        pytest.approx(run[2], abs=0.01),
    )


def test_a_window_alone_has_no_figures_and_its_verdict_is_that_of_margins() -> None:
    found = netctrl.certify("pi2", rtt_s=0.02, window_packets=10.0)
    assert found.certificate.predicted is None and not found.certificate.beyond
    assert found.verdict.endswith("margins hold")


def test_a_verdict_is_by_what_is_asked() -> None:
    where = {"rtt_s": 0.02, "flows": 20.0, "capacity_bit_per_s": 100e6, "senders": "rfc-reno"}
    usual, short, busy = (
        netctrl.certify("pi2", **where, **asked) for asked in ({}, {"p99_s": 0.016}, {"utilization": 1.0})
    )
    assert usual.certificate.predicted is not None
    assert (usual.holds, short.holds, busy.holds) == (True, False, usual.certificate.predicted.utilization == 1.0)
    assert "(at most 16 ms is asked)" in short.verdict and short.certificate.status == "stable"
    assert (usual.inputs.p99_s, short.inputs.p99_s, usual.inputs.utilization) == (None, 0.016, 0.98)
    assert usual.certificate.predicted.most_p99_s == pytest.approx(3.0 * 0.015)


def test_a_phase_margin_of_20_degrees_does_beside_figures_as_asked() -> None:
    """Cubic's flows have 27 degrees under PIE, and 15 ± 3 ms."""
    where = {"rtt_s": 0.04, "flows": 20.0, "capacity_bit_per_s": 50e6, "senders": "cubic", "parameters": ESTIMATES}
    found = netctrl.certify("pie", **where).certificate
    assert found.sampled is not None and 20.0 < found.sampled.phase_margin_deg < 30.0
    assert found.predicted is not None and found.predicted.by == "loop"
    assert found.status == "admissible" and found.senders[0].status == "admissible"
    assert netctrl.certify("pie", **where, p99_s=0.016).certificate.senders[0].status == "stable"


def test_a_flow_with_a_queue_of_its_own_moves_it_alone() -> None:
    """FQ-PIE with 8 flows at 80 Mbit/s is PIE with one flow at 10 Mbit/s."""
    each = netctrl.certify("fq_pie", rtt_s=0.02, flows=8.0, capacity_bit_per_s=80e6, senders="rfc-reno").certificate
    one = netctrl.certify("pie", rtt_s=0.02, flows=1.0, capacity_bit_per_s=10e6, senders="rfc-reno").certificate
    assert each.predicted is not None and one.predicted is not None
    at = msgspec.structs.replace(one.predicted, steps=each.predicted.steps)  # other flows take of its share alone
    assert each.predicted == at
    steps = {step.name: step for step in each.predicted.steps}
    assert steps["flows double"].peak_s == steps["capacity halves"].peak_s > steps["flows halve"].peak_s


def test_steps_of_flows_with_queues_of_their_own_are_those_of_one_at_its_share() -> None:
    """FQ-CoDel with 20 flows at 50 Mbit/s is CoDel with one flow at 2.5 Mbit/s, whose rate halves as flows double."""
    where = {"rtt_s": 0.01, "senders": "rfc-reno"}
    each = netctrl.certify("fq_codel", **where, flows=20.0, capacity_bit_per_s=50e6).certificate.predicted
    one = netctrl.certify("codel", **where, flows=1.0, capacity_bit_per_s=2.5e6).certificate.predicted
    assert each is not None and one is not None
    steps, alone = ({step.name: step for step in of.steps} for of in (each, one))
    assert steps["capacity halves"] == alone["capacity halves"]
    assert steps["flows double"].peak_s == alone["capacity halves"].peak_s > alone["capacity doubles"].peak_s


@pytest.mark.slow
def test_figures_by_packets_stand_where_steps_take_too_many_packets() -> None:
    """100 Gbit/s: five seconds after a step are 4e7 packets."""
    line = {"min_bytes": 2**20, "max_bytes": 1100 * 2**10, "max_percent": 100}
    found = netctrl.certify("wred", rtt_s=1e-4, flows=32.0, capacity_bit_per_s=100e9, parameters=line)
    figures = found.certificate.predicted
    assert figures is not None and (figures.by, figures.steps) == ("packet", ())
    assert not any("packets lack" in text for text in found.certificate.warnings)
