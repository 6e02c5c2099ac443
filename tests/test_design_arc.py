"""ARC from operating point to certificate: the choice of alpha, the plants, boxes, warnings and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netctrl
from netctrl.design.arc import arc_gain_bands, arc_sampled_limits, arc_stability_map
from netctrl.errors import InvalidValue, NoAdmissibleDesign, Status
from netctrl.fluid.equilibrium import tcp_equilibrium
from netctrl.fluid.linearize import applicable_plant, arc_arrival_rate, arc_loop, arc_sampled_loop
from netctrl.frequency.margins import factor, margins
from netctrl.frequency.sampled import spectral_radius
from netctrl.model.arc import PLANTS, ArcSetting, Plant

A = ArcSetting(capacity_packet_per_s=1250.0)


class TestInputA:
    """Reference numbers of input A, the operating point that the paper designs for."""

    def test_design_at_45_degrees(self) -> None:
        proof = (design := netctrl.arc(50)).certificate
        assert design.law.alpha_per_packet == pytest.approx(6.21712e-6, rel=1e-6)
        assert design.law.alpha_per_byte == pytest.approx(6.21712e-9, rel=1e-6)
        assert proof.phase_margin_deg == pytest.approx(45.0, abs=1e-9)
        assert proof.status is Status.ADMISSIBLE
        assert proof.stable
        assert proof.alpha_over_epoch.low == pytest.approx(3.4719719e-6, rel=1e-6)
        assert proof.alpha_over_epoch.high == pytest.approx(1.0656343e-5, rel=1e-6)
        assert proof.alpha_over_epoch.limit == pytest.approx(3.2242897e-5, rel=1e-6)
        assert proof.alpha_over_epoch.binding == "phase margin"
        assert proof.operating_point.window_packets == pytest.approx(12.25)
        assert proof.operating_point.marking_probability == pytest.approx(0.0133278, rel=1e-5)

    def test_sampled_part(self) -> None:
        sampled = netctrl.arc(50).certificate.sampled
        assert sampled.plant == "noq"
        assert sampled.alpha_limit == pytest.approx(2.3128302e-5, rel=1e-6)
        assert sampled.alpha_limits.paper == pytest.approx(1.5707894e-5, rel=1e-6)
        assert sampled.alpha_limits.noq == pytest.approx(2.3128302e-5, rel=1e-6)
        assert sampled.alpha_limits.phys == pytest.approx(7.990529e-5, rel=1e-6)

    def test_the_papers_gain(self) -> None:
        proof = netctrl.arc(50, alpha_per_packet=1.42e-5).certificate
        assert proof.gain_margin_db == pytest.approx(7.122914, abs=1e-6)
        assert proof.phase_margin_deg == pytest.approx(22.04231, abs=1e-5)
        assert proof.status is Status.STABLE
        assert any("too little margin" in warning and "22.04" in warning for warning in proof.warnings)

    def test_the_papers_second_setting_is_unstable_once_sampled(self) -> None:
        proof = netctrl.arc(50, epoch_s=2.0, alpha_per_packet=2.84e-5).certificate
        assert proof.gain_margin_db == pytest.approx(7.122914, abs=1e-6)  # eq. (7) sees no difference
        assert proof.sampled.spectral_radius == pytest.approx(1.165111, abs=1e-6)
        assert not proof.stable
        assert proof.status is Status.UNSTABLE
        assert "unstable" in proof.warnings[0]

    def test_minimum_stability_at_the_papers_fragile_point(self) -> None:
        check = netctrl.arc(50, alpha_per_packet=1.42e-5).certificate.minimum_stability
        assert check.sustainable_error == pytest.approx(4 * 10**2 / (2 * 0.98 * 1250) ** 2)
        assert check.sustainable_error_as_printed == pytest.approx(4 * 10**2 / (2**3 * 0.98**2 * 1250**2))
        assert check.gain_margin_db == pytest.approx(-69.757, abs=1e-3)
        assert not check.stable
        assert not check.satisfied


def test_input_b_where_the_gain_margin_binds() -> None:
    proof = netctrl.arc(35, 0.1, 8e6, utilization=0.95, epoch_s=0.1).certificate
    assert proof.alpha_over_epoch.low == pytest.approx(5.711562e-3, rel=1e-6)
    assert proof.alpha_over_epoch.high == pytest.approx(1.341562e-2, rel=1e-6)
    assert proof.alpha_over_epoch.limit == pytest.approx(2.676768e-2, rel=1e-6)
    assert proof.alpha_over_epoch.binding == "gain margin"


OPERATING = {
    "flows": st.floats(10.0, 300.0),
    "rtt_s": st.floats(0.05, 1.5),
    "epoch_s": st.floats(0.1, 3.0),
    "utilization": st.sampled_from([0.5, 0.9, 0.98, 1.0]),
    "plant": st.sampled_from(PLANTS),
}


@given(**OPERATING)
@settings(max_examples=60)
def test_alpha_is_at_45_degrees_or_where_the_sampled_loop_keeps_6_db(**asked) -> None:
    design = netctrl.arc(**asked, accept="stable")
    proof, alpha = design.certificate, design.law.alpha_per_packet
    assert proof.stable
    assert proof.gain_margin_db >= 6.0 - 1e-9
    assert proof.phase_margin_deg >= 30.0 - 1e-9
    assert alpha <= proof.sampled.alpha_limit / factor(6.0) * (1 + 1e-12)
    setting = ArcSetting(capacity_packet_per_s=1250.0, utilization=asked["utilization"], epoch_s=asked["epoch_s"])
    applies = "noq" if asked["utilization"] < 1.0 else "phys"
    assert proof.sampled.plant == applies
    loop = arc_sampled_loop(asked["flows"], asked["rtt_s"], setting, applies)
    assert proof.sampled.spectral_radius == pytest.approx(spectral_radius(loop, alpha), rel=1e-12)
    at_45 = abs(proof.phase_margin_deg - 45.0) < 1e-6
    at_rule = abs(proof.gain_margin_db - 6.0) < 1e-6
    at_sampled = abs(proof.sampled.gain_margin_db - 6.0) < 1e-6
    assert at_45 or at_rule or at_sampled
    admissible = proof.phase_margin_deg <= 60.0 + 1e-9
    assert proof.status is (Status.ADMISSIBLE if admissible else Status.STABLE)
    if not admissible:
        with pytest.raises(NoAdmissibleDesign) as refused:
            netctrl.arc(**asked)
        assert refused.value.design.law == design.law


@given(
    st.floats(5.0, 300.0),
    st.floats(0.03, 1.5),
    st.floats(1.001, 3.0),
    st.sampled_from(["paper", "noq"]),
    st.floats(0.2, 1.0),
)
def test_bounds_rise_with_flows_and_fall_with_rtt(
    flows: float, rtt: float, by: float, plant: Plant, utilization: float
) -> None:
    setting = ArcSetting(capacity_packet_per_s=1250.0, utilization=utilization)
    bands = arc_gain_bands([flows, flows * by, flows], [rtt, rtt, rtt * by], setting, plant)
    for bound in (bands.low, bands.high, bands.limit):
        assert bound[1] > bound[0] > bound[2]


@given(**OPERATING, unit=st.floats(0.1, 10.0), packet=st.floats(0.1, 10.0))
@settings(max_examples=25)
def test_units_do_not_matter(unit: float, packet: float, **asked) -> None:
    one = netctrl.arc(**asked, accept="stable")
    scaled = asked | {"rtt_s": asked["rtt_s"] * unit, "epoch_s": asked["epoch_s"] * unit}
    other = netctrl.arc(
        **scaled, capacity_bit_per_s=10e6 / unit * packet, packet_size_bytes=1000.0 * packet, accept="stable"
    )
    assert other.law.alpha_per_packet == pytest.approx(one.law.alpha_per_packet, rel=1e-6)
    assert other.law.alpha_per_byte == pytest.approx(one.law.alpha_per_byte / packet, rel=1e-6)
    assert other.certificate.gain_margin_db == pytest.approx(one.certificate.gain_margin_db, abs=1e-5)
    assert other.certificate.delay_margin_s == pytest.approx(one.certificate.delay_margin_s * unit, rel=1e-6)


class TestBox:
    def test_the_example(self) -> None:
        with pytest.raises(NoAdmissibleDesign, match=r"50 flows at 0\.5 s") as refused:
            netctrl.arc((50, 400), (0.06, 0.5))
        box = refused.value.design.certificate.box
        assert box.admissible is None
        assert (box.worst_corner.flows, box.worst_corner.rtt_s) == (50.0, 0.5)
        assert (box.slow_corner.flows, box.slow_corner.rtt_s) == (400.0, 0.06)
        assert box.stable_below == pytest.approx(3.2242897e-5, rel=1e-6)
        assert box.margins_kept_below == pytest.approx(1.0656343e-5, rel=1e-6)
        assert netctrl.arc((50, 400), (0.06, 0.5), accept="stable").certificate.status is Status.STABLE

    @given(
        st.floats(20.0, 200.0),
        st.floats(1.0, 1.4),
        st.floats(0.1, 1.0),
        st.floats(1.0, 1.25),
        st.sampled_from(PLANTS),
    )
    @settings(max_examples=30)
    def test_what_it_says_holds_at_every_point(
        self, flows: float, by_flows: float, rtt: float, by_rtt: float, plant: Plant
    ) -> None:
        design = netctrl.arc((flows, flows * by_flows), (rtt, rtt * by_rtt), plant=plant, accept="stable")
        box = design.certificate.box
        if box is None:
            return
        random = np.random.default_rng(1)
        many = random.uniform(flows, flows * by_flows, 200)
        long = random.uniform(rtt, rtt * by_rtt, 200)
        bands = arc_gain_bands(many, long, A, plant)
        slack = 1e-9 if plant != "phys" else 0.02  # phys: a grid of the box, not its proof
        assert bands.limit.min() >= box.stable_below * (1 - slack)
        assert bands.high.min() >= box.margins_kept_below * (1 - slack)
        if box.admissible is not None:
            assert bands.low.max() <= box.admissible[0] * (1 + slack)
        limits = arc_sampled_limits(many, long, A, "noq")
        assert limits.min() >= design.certificate.sampled.alpha_limit * (1 - 0.02)
        assert design.law.alpha_per_packet < limits.min()

    def test_an_admissible_box_is_admissible_at_its_corners(self) -> None:
        design = netctrl.arc((50, 60), (0.45, 0.5))
        assert design.certificate.status is Status.ADMISSIBLE
        for flows in (50, 60):
            for rtt in (0.45, 0.5):
                found = margins(arc_loop(flows, rtt, A, "paper").scaled(design.law.alpha_per_packet))
                assert found.gain_margin_db >= 6.0
                assert 30.0 <= found.phase_margin_deg <= 60.0 + 1e-9

    def test_a_range_without_width_is_a_point(self) -> None:
        assert netctrl.arc((50.0, 50.0), (0.5, 0.5)).law == netctrl.arc(50).law
        assert netctrl.arc((50.0, 50.0)).certificate.box is None


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
    def test_none_where_the_model_fits(self) -> None:
        assert netctrl.arc(50, 0.5, epoch_s=0.5).certificate.warnings == ()

    @pytest.mark.parametrize(
        ("asked", "says"),
        [
            ({"flows": 800.0}, "p0 = "),
            ({"flows": 400.0}, "w0 = 1.53"),
            ({"flows": 50.0, "epoch_s": 0.6}, "longer than the RTT"),
            ({"flows": 50.0, "plant": "phys"}, "plant noq applies"),
            ({"flows": 50.0, "plant": "noq", "utilization": 1.0}, "plant phys applies"),
            ({"flows": 50.0, "alpha_per_packet": 1e-3}, "unstable"),
            ({"flows": 50.0, "alpha_per_packet": 1e-7}, "slow"),
            ({"flows": 50.0, "alpha_per_packet": 2e-5}, "sampled loop (plant noq) keeps 1.26 dB only"),
        ],
    )
    def test_each(self, asked: dict, says: str) -> None:
        warnings = netctrl.arc(**asked, accept="stable").certificate.warnings
        assert any(says in warning for warning in warnings), warnings

    def test_the_domain_edge_is_p0_equal_1(self) -> None:
        edge = 0.5 * 1225.0 / math.sqrt(2.0)
        assert edge == pytest.approx(433.0, abs=0.2)
        assert tcp_equilibrium(edge, 0.5, 1225.0).marking == pytest.approx(1.0)


def test_no_admissible_alpha_says_what_to_change_and_that_works() -> None:
    with pytest.raises(NoAdmissibleDesign, match="shorten the epoch") as refused:
        netctrl.arc(50, epoch_s=20.0)
    assert refused.value.design.certificate.status is Status.STABLE
    epoch = float(str(refused.value).split("at most ")[1].split(" s")[0])
    assert netctrl.arc(50, epoch_s=epoch).certificate.status is Status.ADMISSIBLE
    with pytest.raises(NoAdmissibleDesign):
        netctrl.arc(50, epoch_s=1.02 * epoch)


@pytest.mark.parametrize(
    ("asked", "argument"),
    [
        ({"flows": 0.0}, "flows"),
        ({"flows": -1.0}, "flows"),
        ({"flows": math.nan}, "flows"),
        ({"flows": "many"}, "flows"),
        ({"flows": (50.0, 60.0, 70.0)}, "flows"),
        ({"flows": 1e9}, "flows"),
        ({"fragile_flows": 1e7}, "fragile_flows"),
        ({"flows": 1e-9}, "flows"),
        ({"rtt_s": 1e-9}, "rtt"),
        ({"epoch_s": 6e3}, "epoch"),
        ({"flows": (60.0, 50.0)}, "flows"),
        ({"rtt_s": 0.0}, "rtt"),
        ({"rtt_s": (0.5, 0.1)}, "rtt"),
        ({"capacity_bit_per_s": -1.0}, "capacity"),
        ({"packet_size_bytes": 0.0}, "packet_size"),
        ({"utilization": 1.01}, "utilization"),
        ({"utilization": 0.0}, "utilization"),
        ({"epoch_s": math.inf}, "epoch"),
        ({"target_queue_packets": -1.0}, "target_queue"),
        ({"plant": "Paper"}, "plant"),
        ({"alpha_per_packet": 0.0}, "alpha"),
        ({"accept": "anything"}, "accept"),
        ({"epoch_s": 1e-5}, "epoch"),
    ],
)
def test_refused_at_the_door(asked: dict, argument: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        netctrl.arc(**({"flows": 50.0} | asked))
    assert refused.value.argument == argument


def test_stability_map_of_a_design() -> None:
    design = netctrl.arc(50)
    drawn = arc_stability_map(design, points=60)
    assert drawn.gain == design.law.alpha_per_packet / design.law.epoch_s
    assert drawn.flows[0] <= 50.0 <= drawn.flows[-1]
    assert set(np.unique(drawn.classes)) == {0, 1, 2, 3}
