"""ARC from operating point to certificate: the loop that decides, boxes, the fluid, warnings and refusals."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netctrl
from netctrl.core.errors import InvalidValue, NoAdmissibleDesign, Status
from netctrl.design.arc.design import arc_stability_map
from netctrl.design.arc.loop import RULE
from netctrl.frequency.branch_bound import Sector
from netctrl.frequency.records import factor
from netctrl.frequency.sampled_gain import gains_at, greatest_gain
from netctrl.frequency.stability_map import ADMISSIBLE, INFEASIBLE, THIN, UNSTABLE
from netctrl.model.design.arc import ArcSetting, Plant
from netctrl.plants.linearize import applicable_plant, arc_arrival_rate
from netctrl.plants.tcp_response import arc_response


class TestInputA:
    """Input A, the operating point that the paper designs for: the loop that runs, and what the paper says of it."""

    def test_design_at_45_degrees_of_the_loop_that_runs(self) -> None:
        proof = (design := netctrl.arc(50)).certificate
        assert proof.status is Status.ADMISSIBLE
        assert proof.sampled.plant == "noq"
        assert proof.sampled.phase_margin_deg == pytest.approx(45.0, abs=1e-9)
        assert proof.sampled.alpha_limit == pytest.approx(2.27662337e-5, rel=1e-8)  # theory note certify, section 2
        expected = 20.0 * math.log10(proof.sampled.alpha_limit / design.law.alpha_per_packet)
        assert proof.sampled.gain_margin_db == pytest.approx(expected, abs=1e-9)
        assert design.law.alpha_per_byte == pytest.approx(design.law.alpha_per_packet / 1000.0)
        assert proof.operating_point.window_packets == pytest.approx(12.25)
        assert proof.operating_point.marking_probability == pytest.approx(0.0133278, rel=1e-5)
        assert proof.simulated.settles
        assert proof.simulated.utilization == pytest.approx(0.98, abs=1e-3)
        assert proof.warnings == ()

    def test_what_the_paper_says(self) -> None:
        paper = netctrl.arc(50, alpha_per_packet=1.42e-5).certificate.paper
        assert paper.plant == "paper"
        assert paper.gain_margin_db == pytest.approx(7.122914, abs=1e-6)
        assert paper.phase_margin_deg == pytest.approx(22.04231, abs=1e-5)
        assert paper.alpha_over_epoch.low == pytest.approx(3.4719719e-6, rel=1e-6)
        assert paper.alpha_over_epoch.high == pytest.approx(1.0656343e-5, rel=1e-6)
        assert paper.alpha_over_epoch.limit == pytest.approx(3.2242897e-5, rel=1e-6)
        assert paper.alpha_over_epoch.binding == "phase margin"
        assert paper.alpha_limits.paper == pytest.approx(1.5707894e-5, rel=1e-6)
        assert paper.alpha_limits.noq == pytest.approx(2.3128302e-5, rel=1e-6)
        assert paper.alpha_limits.phys == pytest.approx(7.990529e-5, rel=1e-6)

    def test_the_papers_second_setting_is_unstable_once_sampled(self) -> None:
        proof = netctrl.arc(50, epoch_s=2.0, alpha_per_packet=2.84e-5).certificate
        assert proof.paper.gain_margin_db == pytest.approx(7.122914, abs=1e-6)  # eq. (7) sees no difference
        assert proof.sampled.spectral_radius > 1.15
        assert not proof.stable
        assert proof.status is Status.UNSTABLE
        assert "unstable" in proof.warnings[0]
        assert not proof.simulated.settles

    def test_minimum_stability_at_the_papers_fragile_point(self) -> None:
        check = netctrl.arc(50, alpha_per_packet=1.42e-5).certificate.paper.minimum_stability
        assert check.sustainable_error == pytest.approx(4 * 10**2 / (2 * 0.98 * 1250) ** 2)
        assert check.sustainable_error_as_printed == pytest.approx(4 * 10**2 / (2**3 * 0.98**2 * 1250**2))
        assert check.gain_margin_db == pytest.approx(-69.757, abs=1e-3)
        assert not check.stable
        assert not check.satisfied


def test_input_b_where_the_papers_gain_margin_binds() -> None:
    paper = netctrl.arc(35, 0.1, 8e6, utilization=0.95, epoch_s=0.1).certificate.paper
    assert paper.alpha_over_epoch.low == pytest.approx(5.711562e-3, rel=1e-6)
    assert paper.alpha_over_epoch.high == pytest.approx(1.341562e-2, rel=1e-6)
    assert paper.alpha_over_epoch.limit == pytest.approx(2.676768e-2, rel=1e-6)
    assert paper.alpha_over_epoch.binding == "gain margin"


class TestWhatTheOldCertificateGotWrong:
    """Section 3 of the theory note certify: each of these was certified otherwise."""

    def test_the_delay_margin_is_the_sampled_loops(self) -> None:
        """At alpha 3.97e-6 per second of epoch it said 6.056 s; the loop stands 1.6 s (see test_sampled_margins)."""
        old = netctrl.arc(50, epoch_s=2.0, alpha_per_packet=2.0 * 3.4719719e-6, simulation=False)
        assert old.certificate.sampled.delay_margin_s < 0.6 * old.certificate.paper.delay_margin_s

    def test_a_certified_limit_cycle(self) -> None:
        """N = 300, d = .1 at .9 of the undelayed limit: was STABLE; simulated it has cv(p) of about a half."""
        proof = netctrl.arc(300, epoch_s=0.1, alpha_per_packet=0.9 * 1.62987674e-3).certificate
        assert proof.status is Status.UNSTABLE
        assert proof.simulated.probability_cv > 0.4
        assert proof.simulated.utilization < 0.9

    @pytest.mark.parametrize(
        ("requested", "alpha"),
        [
            ({"flows": 300, "epoch_s": 0.1}, 0.7 * 1.62987674e-3),
            ({"flows": 89, "epoch_s": 0.05, "utilization": 0.95}, 7.3e-5),
            ({"flows": 50, "epoch_s": 0.05}, 1.5e-5),
        ],
    )
    def test_a_stable_loop_that_cycles_is_not_admissible(self, requested: dict, alpha: float) -> None:
        limit = netctrl.arc(**requested, simulation=False).certificate.sampled.alpha_limit
        share = 0.5 if requested["flows"] == 89 else 0.4 if requested["flows"] == 50 else alpha / limit
        proof = netctrl.arc(**requested, alpha_per_packet=share * limit).certificate
        assert proof.stable
        assert proof.status is Status.STABLE
        assert proof.simulated.probability_cv > 0.3
        assert any("limit cycle" in warning for warning in proof.warnings)

    def test_no_equilibrium_is_infeasible_and_says_what_would_do(self) -> None:
        with pytest.raises(NoAdmissibleDesign, match=r"p0 = 3\.41") as refused:
            netctrl.arc(800)
        assert refused.value.design.certificate.status is Status.INFEASIBLE
        assert refused.value.design.certificate.sampled.alpha_limit is None
        most = float(re.search(r"at most ([\d.]+) flows", str(refused.value))[1])
        assert most == pytest.approx(433.1, abs=0.1)
        assert netctrl.arc(most * 0.999).certificate.status is Status.ADMISSIBLE

    @pytest.mark.parametrize("flows", [2e4, 1e7, 1e10])
    def test_so_do_windows_far_below_a_packet(self, flows: float) -> None:
        with pytest.raises(NoAdmissibleDesign, match=r"at most 433\.\d+ flows") as refused:
            netctrl.arc(flows)
        assert refused.value.design.certificate.status is Status.INFEASIBLE

    @pytest.mark.parametrize(("rtt", "epoch"), [(2e-4, 4e-3), (5e-3, 0.1), (0.05, 1.0), (0.5, 1.0), ((0.01, 0.5), 0.2)])
    def test_the_usual_epoch_is_a_second_or_twenty_round_trips(self, rtt, epoch: float) -> None:
        assert netctrl.arc(20, rtt, 1e10, simulation=False).inputs.epoch_s == pytest.approx(epoch, rel=1e-12)

    def test_a_standing_queue_longer_than_the_round_trip_has_no_equilibrium(self) -> None:
        with pytest.raises(NoAdmissibleDesign, match="lower the target queue"):
            netctrl.arc(20, 0.05, epoch_s=0.05, utilization=1.0, target_queue_packets=100.0)

    def test_without_the_simulation_it_says_so(self) -> None:
        proof = netctrl.arc(50, simulation=False).certificate
        assert proof.simulated is None
        assert any("not simulated" in warning for warning in proof.warnings)


OPERATING = {
    "window": st.floats(1.5, 200.0),
    "rtt_s": st.floats(0.002, 2.0),
    "epochs": st.floats(0.05, 5.0),
    "utilization": st.floats(0.5, 1.0),
    "standing": st.sampled_from([0.0, 0.05, 0.6]),
    "capacity": st.floats(1e2, 1e6),
}


def asked_for(window: float, rtt_s: float, epochs: float, utilization: float, standing: float, capacity: float) -> dict:
    """Arguments of `arc` with this window [packet]; epoch and standing queue are parts of a round trip."""
    gamma = utilization if standing == 0.0 else 1.0
    target = capacity * rtt_s * standing
    return {
        "flows": rtt_s * gamma * capacity / window,
        "rtt_s": rtt_s,
        "capacity_bit_per_s": 8e3 * capacity,
        "utilization": gamma,
        "epoch_s": epochs * rtt_s,
        "target_queue_packets": target,
    }


@pytest.mark.slow
@given(**OPERATING)
@settings(max_examples=8)
def test_a_design_is_admissible_and_at_its_aim(**drawn) -> None:
    requested = asked_for(**drawn)
    design = netctrl.arc(**requested)
    proof = design.certificate.sampled
    assert design.certificate.status is Status.ADMISSIBLE
    assert design.certificate.simulated.probability_cv < 0.05
    assert proof.gain_margin_db >= 6.0 - 1e-6
    assert proof.phase_margin_deg >= 45.0 - 1e-4
    assert min(abs(proof.gain_margin_db - 6.0), abs(proof.phase_margin_deg - 45.0)) < 1e-4
    assert 0.0 < proof.disk_margin < 2.0
    assert proof.spectral_radius < 1.0
    # 2 tan(PM/2) and the gain margin's share bound the disk margin from above.
    assert proof.disk_margin <= 2.0 * math.tan(math.radians(proof.phase_margin_deg) / 2.0) + 1e-6
    most = factor(proof.gain_margin_db)
    assert proof.disk_margin <= 2.0 * (most - 1.0) / (most + 1.0) + 1e-6


@given(**OPERATING, unit=st.floats(0.1, 10.0), packet=st.floats(0.1, 10.0))
@settings(max_examples=2)
def test_units_do_not_matter(unit: float, packet: float, **drawn) -> None:
    requested = asked_for(**drawn)
    one = netctrl.arc(**requested)
    scaled = requested | {"rtt_s": requested["rtt_s"] * unit, "epoch_s": requested["epoch_s"] * unit}
    scaled |= {"capacity_bit_per_s": requested["capacity_bit_per_s"] / unit * packet}
    other = netctrl.arc(**scaled, packet_size_bytes=1000.0 * packet)
    assert other.law.alpha_per_packet == pytest.approx(one.law.alpha_per_packet, rel=1e-6)
    assert other.law.alpha_per_byte == pytest.approx(one.law.alpha_per_byte / packet, rel=1e-6)
    assert other.certificate.sampled.gain_margin_db == pytest.approx(one.certificate.sampled.gain_margin_db, abs=1e-5)
    expected = one.certificate.sampled.delay_margin_s * unit
    assert other.certificate.sampled.delay_margin_s == pytest.approx(expected, rel=1e-5)


class TestBox:
    @pytest.mark.slow
    @given(
        st.floats(1.6, 100.0),
        st.floats(1.0, 8.0),
        st.floats(1.0, 8.0),
        st.floats(0.05, 5.0),
        st.sampled_from([0.0, 0.3]),
    )
    @settings(max_examples=6)
    def test_what_it_says_holds_at_every_point(
        self, window: float, by_flows: float, by_rtt: float, epochs: float, standing: float
    ) -> None:
        """The least window is at most flows and the shortest round trip, so that the whole box has an equilibrium."""
        requested = asked_for(window, 0.1, epochs, 0.95, standing, 1e4)
        many, short = requested["flows"], requested["rtt_s"]
        requested |= {"flows": (many / by_flows, many), "rtt_s": (short, short * by_rtt)}
        design = netctrl.arc(**requested, simulation=False)
        box, setting = design.certificate.box, design.inputs.setting
        if box is None:
            return
        random = np.random.default_rng(1)
        flows = np.exp(random.uniform(*np.log(requested["flows"]), 150))
        rtt = np.exp(random.uniform(*np.log(requested["rtt_s"]), 150))
        limit, kept = gains_at(arc_response(setting), flows, rtt, [Sector(), RULE])
        assert limit.min() >= box.stable_below
        assert kept.min() >= box.margins_kept_below
        assert design.law.alpha_per_packet <= kept.min()
        at = box.worst_corner
        there = gains_at(arc_response(setting), np.array([at.flows]), np.array([at.rtt_s]), [RULE])[0, 0]
        assert box.margins_kept_below <= there <= box.margins_kept_below / (1.0 - box.gap) * (1.0 + 1e-6)

    def test_a_wide_box_has_one_gain(self) -> None:
        design = netctrl.arc((50, 400), (0.47, 0.5), simulation=False)
        assert design.certificate.status is Status.ADMISSIBLE
        corner = design.certificate.box.worst_corner
        assert (corner.flows, corner.rtt_s) == pytest.approx((50.0, 0.5))

    def test_a_box_with_a_point_without_equilibrium_is_infeasible(self) -> None:
        with pytest.raises(NoAdmissibleDesign, match=r"at 0\.06 s would need"):
            netctrl.arc((50, 400), (0.06, 0.5))

    def test_a_range_without_width_is_a_point(self) -> None:
        assert netctrl.arc((50.0, 50.0), (0.5, 0.5)).law == netctrl.arc(50).law
        assert netctrl.arc((50.0, 50.0)).certificate.box is None


@pytest.mark.parametrize("target", [0.0, 60.0])
def test_reach_keeps_the_rule_to_its_ends_and_not_far_beyond(target: float) -> None:
    design = netctrl.arc(50, target_queue_packets=target)
    found, alpha, r = design.certificate.reach, design.law.alpha_per_packet, arc_response(design.inputs.setting)
    assert found.fewest_flows < 50.0 < found.most_flows
    assert found.longest_rtt_s > 0.5
    for flows, rtt in ((found.fewest_flows, 0.5), (50.0, found.longest_rtt_s)):
        kept = greatest_gain(r, (flows, flows), (rtt, rtt), RULE).found
        assert alpha <= kept <= 1.02 * alpha


class TestWhichPlantApplies:
    """ARC rests where b = gamma (d C − (q − q0)): a queue stands only if q0 > d C (1 − gamma)/gamma."""

    @staticmethod
    def rest(setting: ArcSetting, flows: float, rtt: float) -> tuple[float, float]:
        """Queue [packet] and arrival rate [packet/s] at which the nonlinear fluid rests: TCP, link and ARC stepped.

        Its own small simulation: one window, a queue that can't be negative, RTT = propagation + queue, gentle gain.
        """
        C, gamma, d = setting.capacity_packet_per_s, setting.utilization, setting.epoch_s
        h, w, q, b = 0.01, gamma * C * rtt / flows, 5.0, 0.0
        p = 2.0 / w**2
        gain = 2e-6
        rates = []
        for step in range(1, 120_001):
            seen = rtt + q / C
            rate = flows * w / seen
            w += h * (1.0 - 0.5 * w * w * p) / seen
            q = max(0.0, q + h * (rate - C))
            b += h * rate
            if step % round(d / h) == 0:
                p = min(1.0, max(0.0, p + gain * (b - gamma * (d * C - (q - setting.target_queue_packets)))))
                b = 0.0
            rates.append(rate)
        return q, float(np.mean(rates[-20_000:]))

    @pytest.mark.parametrize(
        ("utilization", "target", "plant"),
        [(0.98, 0.0, "noq"), (0.98, 10.0, "noq"), (0.98, 25.0, "noq"), (0.98, 60.0, "phys"), (1.0, 30.0, "phys")],
    )
    def test_rule_is_what_the_fluid_does(self, utilization: float, target: float, plant: Plant) -> None:
        setting = ArcSetting(capacity_packet_per_s=1250.0, utilization=utilization, target_queue_packets=target)
        assert applicable_plant(setting) == plant
        queue, rate = self.rest(setting, 50.0, 0.5)
        assert rate == pytest.approx(float(arc_arrival_rate(setting, plant)), rel=1e-3)
        standing = target - 1250.0 * (1.0 - utilization) / utilization
        assert queue == pytest.approx(max(0.0, standing), abs=0.5)


class TestWarnings:
    @pytest.mark.parametrize(
        ("requested", "says"),
        [
            ({"flows": 400.0}, "small windows: 1.53"),
            ({"flows": 50.0, "plant": "phys"}, "the verdict uses plant noq"),
            ({"flows": 50.0, "plant": "noq", "utilization": 1.0}, "the verdict uses plant phys"),
            ({"flows": 50.0, "alpha_per_packet": 1e-3}, "unstable"),
            ({"flows": 50.0, "alpha_per_packet": 1e-7}, "slow"),
            ({"flows": 50.0, "alpha_per_packet": 2e-5}, "too little margin: GM 1.13 dB"),
        ],
    )
    def test_each(self, requested: dict, says: str) -> None:
        warnings = netctrl.arc(**requested, simulation=False).certificate.warnings
        assert any(says in warning for warning in warnings), warnings


@pytest.mark.slow
@pytest.mark.parametrize(
    "requested",
    [
        {"flows": 5.0, "rtt_s": 0.1, "capacity_bit_per_s": 4e10, "epoch_s": 0.1, "target_queue_packets": 5e4},
        {"flows": 5.0, "rtt_s": 0.1, "capacity_bit_per_s": 4e12, "epoch_s": 1.0},
        {"flows": (2.0, 4.0), "rtt_s": (0.1, 0.5), "capacity_bit_per_s": 1e9},
        {"flows": (10.0, 80.0), "rtt_s": (0.03, 0.2), "capacity_bit_per_s": 1e10, "target_queue_packets": 1e4},
    ],
    ids=["point, 1e5", "point, 1e7", "box, 3e4", "box, 3e4, queue"],
)
def test_windows_of_many_packets_are_decided(requested: dict) -> None:
    """They were given up, or took 600,000 cells: the response lost its digits, and its size hid its phase."""
    queue = {"utilization": 1.0} if "target_queue_packets" in requested else {}
    found = netctrl.arc(**requested, **queue, simulation=False)
    assert found.certificate.status is Status.ADMISSIBLE
    box, inputs = found.certificate.box, found.inputs
    if box is not None:
        random = np.random.default_rng(4)
        flows, rtt = (np.exp(random.uniform(*np.log(pair), 50)) for pair in (inputs.flows, inputs.rtt_s))
        limit, kept = gains_at(arc_response(inputs.setting), flows, rtt, [Sector(), RULE])
        assert box.stable_below <= limit.min() and box.margins_kept_below <= kept.min()


@pytest.mark.parametrize(
    ("requested", "argument"),
    [
        ({"flows": 0.0}, "flows"),
        *[({"flows": wrong}, "flows") for wrong in (-1.0, math.nan, "50", True, None, 10**400, 1e12)],
        *[({"flows": wrong}, "flows") for wrong in ((50,), (50.0, 60.0, 70.0), (50, math.nan))],
        ({"fragile_flows": 1e12, "fragile_rtt_s": 0.1}, "fragile_flows"),
        ({"flows": 1e-9}, "flows"),
        ({"rtt_s": 1e-9}, "rtt"),
        ({"epoch_s": 6e3}, "epoch"),
        ({"flows": (60.0, 50.0)}, "flows"),
        *[({"rtt_s": wrong}, "rtt") for wrong in (0.0, math.inf, "500")],
        ({"rtt_s": (0.5, 0.1)}, "rtt"),
        *[({"capacity_bit_per_s": wrong}, "capacity") for wrong in (-1.0, 0, "10Mbit")],
        ({"packet_size_bytes": 0.0}, "packet_size"),
        ({"utilization": 1.01}, "utilization"),
        ({"utilization": 0.0}, "utilization"),
        ({"epoch_s": math.inf}, "epoch"),
        ({"target_queue_packets": -1.0}, "target_queue"),
        *[({"plant": wrong}, "plant") for wrong in ("Paper", None)],
        ({"simulation": "no"}, "simulation"),
        *[({"alpha_per_packet": wrong}, "alpha") for wrong in (0.0, math.nan)],
        ({"fragile_flows": 0}, "fragile_flows"),
        ({"fragile_rtt_s": -2.0}, "fragile_rtt"),
        ({"accept": "anything"}, "accept"),
        ({"epoch_s": 1e-5}, "epoch"),
    ],
)
def test_refused_at_the_door(requested: dict, argument: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        netctrl.arc(**({"flows": 50.0} | requested))
    assert refused.value.argument == argument
    assert refused.value.takes


@pytest.mark.slow
@pytest.mark.parametrize(
    "requested",
    [{}, {"epoch_s": 0.1}, {"utilization": 1.0, "target_queue_packets": 50.0}],
    ids=["default", "short epoch", "queue"],
)
def test_each_green_point_of_the_map_is_admissible_by_the_design_itself(requested: dict) -> None:
    design = netctrl.arc(50, **requested)
    drawn = arc_stability_map(design, points=16)
    assert drawn.gain == design.law.alpha_per_packet
    assert drawn.flows[0] <= 50.0 <= drawn.flows[-1]
    assert set(np.unique(drawn.classes)) >= {INFEASIBLE, UNSTABLE, THIN}
    green = np.argwhere(drawn.classes == ADMISSIBLE)
    refused = []
    for i, j in green[:: max(1, len(green) // 4)]:
        flows, rtt = float(drawn.flows[j]), float(drawn.rtt_s[i])
        found = netctrl.arc(flows, rtt, **requested, alpha_per_packet=design.law.alpha_per_packet).certificate
        if found.status is not Status.ADMISSIBLE:
            refused.append((flows, rtt, found.status, found.warnings))
    assert refused == []
