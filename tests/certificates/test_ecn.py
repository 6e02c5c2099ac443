"""Certificates of ECN's thresholds: DCTCP's limit cycle in packets, DCQCN's margins, and what they refuse."""

from __future__ import annotations

from math import ceil, log10

import msgspec
import numpy as np
import pytest
from ecn_packets import SIZE, dcqcn_packets, dctcp_packets
from installed import sonic, wred_profile

import netctrl
from netctrl.certificates.box import Point, box_of, spread_points
from netctrl.certificates.certify import certify, subject_of
from netctrl.certificates.ecn.dcqcn import dcqcn, dcqcn_as_switch
from netctrl.certificates.ecn.dctcp import dctcp, dctcp_as_switch, smallest_threshold
from netctrl.certificates.inputs.read import read_queues
from netctrl.certificates.installed import certify_queues
from netctrl.certificates.record import QueueCertificate
from netctrl.core.errors import InvalidValue, Status
from netctrl.frequency.certified.disk import disk_margin
from netctrl.laws.aqm.threshold import ThresholdQueue
from netctrl.laws.targets.wred import WredLaw
from netctrl.laws.window.records import Dcqcn
from netctrl.plants.ecn.dctcp import StepFluid, busy_threshold, fluid_cycle

RATE, RTT = 1e9, 1e-3
PRODUCT = RATE * RTT / 8.0 / SIZE
LINK = {"rtt_s": 100e-6, "flows": (2.0, 40.0), "capacity_bit_per_s": 10e9}
ROOM = {"kmin_bytes": 5e3, "kmax_bytes": 20e6, "pmax": 0.5}
ROCE = {"capacity_bit_per_s": 40e9, "packet_size_bytes": 1000.0}


def packets(flows: int, threshold: int, rtt: float = RTT, duration: float = 3.0) -> tuple[np.ndarray, float]:
    return dctcp_packets(flows, ThresholdQueue(threshold=threshold * SIZE), RATE, rtt, duration, rtt / 20.0)


@pytest.mark.parametrize(("flows", "threshold"), [(1, 20), (2, 20), (4, 20), (8, 20), (8, 40)])
def test_the_longest_queue_on_packets_is_the_fluids_within_a_packet(flows: int, threshold: int) -> None:
    """The shortest one is within 4 packets: the fluid spreads a cut over a round trip, so it swings more for large
    windows; on packets single cuts are by whole packets."""
    queue, used = packets(flows, threshold)
    found = fluid_cycle(StepFluid(PRODUCT / flows, threshold / PRODUCT))
    assert queue.max() == pytest.approx(found.highest * PRODUCT, abs=1.0)
    assert queue.min() == pytest.approx(found.lowest * PRODUCT, abs=4.5)
    assert used == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("flows", [1, 2, 4])
def test_large_windows_fill_the_link_from_the_fluids_threshold_on(flows: int) -> None:
    threshold = ceil(PRODUCT * busy_threshold(PRODUCT / flows))
    assert packets(flows, threshold)[1] == pytest.approx(1.0, abs=2e-4)


@pytest.mark.parametrize(("flows", "lost"), [(12, 0.0051), (16, 0.0136), (24, 0.027)])
def test_small_windows_need_a_packet_of_each_flow_to_spare(flows: int, lost: float) -> None:
    """Flows in step whose windows move by whole packets lose what the fluid and the rule .17 C d don't show."""
    fluid, safe = (ceil(PRODUCT * busy_threshold(PRODUCT / flows, spare=spare)) for spare in (0.0, 1.0))
    assert 1.0 - packets(flows, fluid)[1] == pytest.approx(lost, rel=0.1)
    assert packets(flows, safe)[1] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_packets_fill_the_link_from_the_safe_threshold_on(seed: int) -> None:
    rng = np.random.default_rng(seed)
    window, flows = float(np.exp(rng.uniform(np.log(2.5), np.log(60.0)))), int(rng.integers(1, 40))
    rtt = round(window * flows * 8.0 * SIZE / RATE, 5)
    threshold = ceil(window * flows * busy_threshold(window, spare=1.0))
    assert packets(flows, threshold, rtt, ceil(200.0 + 1.0 / rtt) * rtt)[1] == pytest.approx(1.0, abs=3e-4)


def test_dctcp_s_record_has_a_cycle_and_no_linear_loop() -> None:
    found = certify("dctcp", parameters={"k_packets": 65.0}, **LINK)
    verdict, step = found.certificate, found.certificate.step
    assert (verdict.status, verdict.linear, verdict.sampled) == (Status.ADMISSIBLE, None, None)
    product = 10e9 * 100e-6 / 8.0 / 1500.0
    assert (step.rule_2010_packets, step.rule_2011_packets) == pytest.approx((product / 7.0, 0.17 * product))
    assert step.smallest_threshold_packets == pytest.approx(0.1664 * product, rel=1e-3)
    assert step.safe_threshold_packets > step.smallest_threshold_packets
    assert step.flows == 40.0  # a packet of each flow is most of the queue there
    assert step.fluid.lowest_packets > 40.0
    assert step.window_packets == pytest.approx((product + 65.0) / 40.0)
    assert msgspec.json.decode(found.to_json(), type=QueueCertificate) == found
    assert "prediction" in found._repr_html_()


def test_units_of_a_threshold_are_the_same_threshold() -> None:
    each = {"k_packets": 50.0}, {"k_bytes": 75_000.0}, {"k_s": 60e-6}
    steps = [certify("dctcp", parameters=k, **LINK).certificate.step for k in each]
    assert all(step is not None for step in steps)
    assert steps[1] == steps[0]
    assert steps[2].fluid.lowest_packets == pytest.approx(steps[0].fluid.lowest_packets, rel=1e-6)


def test_a_threshold_between_both_smallest_ones_is_stable_and_below_loses() -> None:
    """By the fluid alone: of 40 flows' windows only packets tell delays."""
    between = certify("dctcp", parameters={"k_packets": 20.0}, **LINK)
    below = certify("dctcp", parameters={"k_packets": 10.0}, **LINK)
    assert between.certificate.status is below.certificate.status is Status.STABLE
    assert between.verdict.endswith("less than a packet of each flow in the queue")
    assert between.certificate.step.lost_share == 0.0 < below.certificate.step.lost_share
    assert "runs empty" in below.verdict


def test_smallest_thresholds_hold_over_a_box_and_not_below() -> None:
    box = {"rtt_s": (50e-6, 200e-6), "flows": (3.0, 20.0), "capacity_bit_per_s": (5e9, 10e9)}
    at = smallest_threshold((3.0, 20.0), (50e-6, 200e-6), (5e9 / 12e3, 10e9 / 12e3))
    step = certify("dctcp", parameters={"k_packets": 1.001 * at.packets}, **box).certificate.step
    assert step.lost_share == 0.0
    step = certify("dctcp", parameters={"k_packets": 0.98 * at.packets}, **box).certificate.step
    assert step.lost_share > 0.0
    in_time = smallest_threshold((3.0, 10.0), (50e-6, 200e-6), (5e9 / 12e3, 10e9 / 12e3))
    step = certify(
        "dctcp", parameters={"k_s": 1.001 * in_time.delay_s}, **(box | {"flows": (3.0, 10.0)})
    ).certificate.step
    assert step.lost_share == 0.0


def test_a_wider_range_of_round_trips_needs_what_its_longest_one_needs() -> None:
    for spare in (0.0, 1.0):
        narrow, wide = (
            smallest_threshold((2.0, 40.0), rtt, 833333.0, spare_packets=spare) for rtt in (1e-4, (2e-5, 1e-4))
        )
        assert wide.packets == pytest.approx(narrow.packets, rel=2e-5)
    assert narrow.packets == pytest.approx(49.68, abs=0.01)


def test_windows_below_2_packets_have_no_certificate() -> None:
    found = certify("dctcp", parameters={"k_packets": 5.0}, **(LINK | {"flows": 60.0})).certificate
    assert (found.status, found.step) == (Status.INFEASIBLE, None)
    assert found.warnings[0].startswith("windows of 1.47 packets with the queue at the threshold, for 60 flows at 100")


def test_dcqcn_s_record_has_certified_margins_of_a_point() -> None:
    found = certify("dcqcn", rtt_s=50e-6, flows=10.0, **ROCE).certificate
    at, linear = found.sampled, found.linear
    assert found.status is Status.STABLE
    assert (at.gain_margin_db, at.phase_margin_deg) == pytest.approx((4.27, 1.9), abs=0.05)
    assert at.gain_margin_db_proved == at.gain_margin_db == linear.gain_margin_db
    assert at.probabilities[0] == pytest.approx(6.03e-3, rel=1e-3)
    assert at.queue_delay_s == pytest.approx((5e3 + at.probabilities[0] / 0.01 * 195e3) * 8.0 / 40e9)
    subject = dcqcn()
    loop = subject.loop(point_of(10.0, 50e-6), 1000.0)
    assert at.disk_margin == pytest.approx(disk_margin(loop).alpha)
    at_limit = netctrl.margins(loop.scaled(10.0 ** (at.gain_margin_db / 20.0) * 1.001))
    assert not at_limit.stable


def point_of(flows: float, rtt: float) -> Point:
    return Point(flows, rtt, 40e9 / 8e3)


@pytest.mark.slow
@pytest.mark.parametrize("flows", [(60.0, 60.0), (60.0, 80.0)])
def test_the_rule_is_kept_up_to_the_longest_round_trip(flows: tuple[float, float]) -> None:
    found = certify("dcqcn", parameters=ROOM, rtt_s=2e-6, flows=flows, **ROCE).certificate
    assert found.status is Status.ADMISSIBLE
    rtt = found.reach.longest_rtt_s
    for factor, kept in ((0.99, True), (1.01, False)):
        at = certify("dcqcn", parameters=ROOM, rtt_s=factor * rtt, flows=flows, **ROCE)
        assert at.certificate.sampled is not None
        assert (not at.certificate.lacking) is at.holds is kept
    # The paper's thresholds have 16 degrees at most.
    paper = certify("dcqcn", rtt_s=20e-6, flows=(2.0, 12.0), **ROCE).certificate
    assert paper.reach.longest_rtt_s is None
    assert (paper.least_phase or paper.sampled).phase_margin_deg < 30.0


@pytest.mark.parametrize(("rtt", "stable", "unused"), [(4e-6, True, (0.0, 0.01)), (85e-6, False, (0.03, 0.07))])
def test_packets_lose_more_where_dcqcn_s_loop_is_unstable(rtt: float, stable: bool, unused: tuple) -> None:
    """Six flows at 40 Gbit/s over three links; on packets the queue swings at 4 us, too, where the phase margin is 10
    degrees, since marks come by chance."""
    found = certify("dcqcn", rtt_s=rtt, flows=6.0, **ROCE).certificate.sampled
    assert found.stable is stable
    queue, lost = dcqcn_packets(rtt, Dcqcn(), 0.3)
    assert unused[0] < lost < unused[1]
    assert queue.std() > 30e3


@pytest.mark.slow
@pytest.mark.parametrize(("flows", "rtt"), [((10.0, 10.0), 50e-6), ((2.0, 12.0), 85e-6), ((8.0, 8.0), 5e-6)])
def test_the_rule_is_kept_from_the_smallest_upper_threshold_on(flows: tuple[float, float], rtt: float) -> None:
    given: dict = {"pmax": 0.05, "kmax_bytes": 1e6}
    found = certify("dcqcn", parameters=given, rtt_s=rtt, flows=flows, **ROCE).certificate
    smallest = found.reach.smallest_max_bytes
    for factor, kept in ((1.01, True), (0.99, False)):
        given["kmax_bytes"] = factor * smallest
        at = certify("dcqcn", parameters=given, rtt_s=rtt, flows=flows, **ROCE).certificate
        assert at.sampled is not None
        assert (not at.lacking) is kept
    coming = certify("dcqcn", parameters={"arriving": True}, rtt_s=rtt, flows=flows[0], **ROCE).certificate.reach
    assert coming.smallest_max_bytes is None


def test_marks_as_packets_come_add_the_queue_to_the_delay() -> None:
    leaving = certify("dcqcn", rtt_s=10e-6, flows=10.0, **ROCE).certificate
    wait = leaving.sampled.queue_delay_s
    coming = certify("dcqcn", parameters={"arriving": True}, rtt_s=10e-6, flows=10.0, **ROCE).certificate
    longer = certify("dcqcn", rtt_s=10e-6 + wait, flows=10.0, **ROCE).certificate
    assert coming.sampled.gain_margin_db == pytest.approx(longer.sampled.gain_margin_db, rel=1e-6)
    assert coming.sampled.gain_margin_db < leaving.sampled.gain_margin_db
    assert coming.linear == leaving.linear


@pytest.fixture(scope="module")
def wide():
    return certify("dcqcn", rtt_s=(5e-6, 60e-6), flows=(1.0, 14.0), **ROCE).certificate


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_point_of_a_box_is_worse_than_its_worst_point(wide, seed: int) -> None:
    rng, worst = np.random.default_rng(seed), wide
    assert worst.sampled.gain_margin_db_proved is None
    assert "nothing is proved" in worst.warnings[-1]
    for _ in range(4):
        point = {"rtt_s": float(rng.uniform(5e-6, 60e-6)), "flows": float(rng.uniform(1.0, 14.0))}
        inside = certify("dcqcn", **point, **ROCE).certificate.sampled
        assert inside.gain_margin_db >= worst.sampled.gain_margin_db - 0.1
        assert inside.phase_margin_deg >= (worst.least_phase or worst.sampled).phase_margin_deg - 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("box", "arriving"),
    [
        ({"rtt_s": (5e-6, 50e-6), "flows": 4.0}, False),
        ({"rtt_s": (10e-6, 15e-6), "flows": (5.0, 6.0)}, False),
        ({"rtt_s": 20e-6, "flows": (5.0, 6.0)}, True),
    ],
)
def test_what_is_proved_over_a_box_holds_at_its_points(box: dict, arriving: bool) -> None:
    found = certify("dcqcn", parameters={"arriving": arriving}, **box, **ROCE).certificate
    proved = found.sampled.gain_margin_db_proved
    assert 6.0 < proved <= found.sampled.gain_margin_db
    assert "the gain margin alone is proved" in found.warnings[-1]
    rng = np.random.default_rng(1)
    for _ in range(5):
        point = {key: float(rng.uniform(*each)) if isinstance(each, tuple) else each for key, each in box.items()}
        inside = certify("dcqcn", parameters={"arriving": arriving}, **point, **ROCE).certificate.sampled
        assert inside.gain_margin_db >= proved


def test_more_flows_than_pmax_serves_swing_around_the_upper_threshold() -> None:
    """20 flows need the probability .0144, and above .01 every packet is marked."""
    found = certify("dcqcn", rtt_s=10e-6, flows=20.0, **ROCE).certificate
    assert (found.status, found.sampled, found.linear) == (Status.ADMISSIBLE, None, None)
    assert found.cycle.fluid.lowest_packets < 200.0 < found.cycle.fluid.highest_packets
    assert certify("dcqcn", rtt_s=10e-6, flows=(2.0, 20.0), **ROCE).certificate.cycle is not None


def profile(least: int = 1048576, ecn: str = "ecn_all"):
    return read_queues(text=sonic(P=wred_profile(least, ecn=ecn)))


def test_a_switch_s_profile_is_certified_below_dcqcn() -> None:
    where = {"rtt_s": 10e-6, "flows": 16.0, "capacity_bit_per_s": 100e9}
    found = certify_queues(profile(), senders="dcqcn", **where).queues[0]
    assert found.certificate.law.name == "dcqcn"
    same = certify("dcqcn", parameters={"kmin_bytes": 1048576.0, "kmax_bytes": 2097152.0, "pmax": 0.05}, **where)
    assert found.certificate.certificate.sampled == same.certificate.sampled
    assert any("marked-arriving" in each for each in found.certificate.certificate.warnings)
    off = certify_queues(profile(ecn="ecn_none"), senders="dcqcn", **where).queues[0]
    assert (off.certificate, off.reason[:25]) == (None, "ecn: got False, takes ECN")
    window = {"rtt_s": 10e-6, "window_packets": 20.0}
    assert "flows and a capacity" in certify_queues(profile(), senders="dcqcn", **window).queues[0].reason


def test_equal_thresholds_of_a_switch_are_dctcp_s_step() -> None:
    where = {"rtt_s": 100e-6, "flows": 16.0, "capacity_bit_per_s": 100e9}
    found = certify_queues(profile(2097152), senders="dctcp", **where).queues[0]
    step = found.certificate.certificate.step
    assert step.threshold_packets == pytest.approx(2097152 / 1500.0)
    assert certify_queues(profile(2097152), senders="reno", **where).queues[0].certificate is None


@pytest.mark.parametrize(
    ("law", "parameters", "where", "said"),
    [
        ("dctcp", {}, {}, "K: got None"),
        ("dctcp", {"k_packets": 5.0, "k_bytes": 7e3}, {}, "K: got"),
        ("dctcp", {"k_packets": 0.0}, {}, "K: got 0.0"),
        ("dctcp", {"k_packets": 5.0, "g": 2.0}, {}, "g: got 2.0"),
        ("dctcp", {"k_packets": 5.0}, {"senders": "reno"}, "sender: got"),
        ("dctcp", {"k_packets": 5.0}, {"stretches": (1.0, 3.0)}, "stretches: got"),
        ("dctcp", {"k_pakets": 5.0}, {}, "parameters: got 'k_pakets'"),
        ("dctcp", {"k_packets": 5.0}, {"rtt_s": 10.0, "flows": 5.0}, "flows: got"),
        ("dcqcn", {"kmax_bytes": 4e3}, {}, "kmax: got 4000.0"),
        ("dcqcn", {"pmax": 1.5}, {}, "pmax: got 1.5"),
        ("dcqcn", {"f": 0}, {}, "F: got 0"),
        ("dcqcn", {"timer_s": 0.0}, {}, "timer: got 0.0"),
        ("dcqcn", {}, {"senders": ("dcqcn", "reno")}, "sender: got"),
        ("red", {"limit_bytes": 400_000, "burst": 55}, {"senders": "dcqcn"}, "sender: got 'dcqcn'"),
    ],
)
def test_what_isnt_taken_is_named(law: str, parameters: dict, where: dict, said: str) -> None:
    with pytest.raises(InvalidValue, match=f"^{said}"):
        certify(law, parameters=parameters, **(LINK | where))


@pytest.mark.parametrize("law", ["dctcp", "dcqcn"])
def test_a_window_is_refused_in_favour_of_flows(law: str) -> None:
    with pytest.raises(InvalidValue, match="window: got"):
        certify(law, parameters={"k_packets": 5.0} if law == "dctcp" else {}, rtt_s=1e-3, window_packets=5.0)


def test_spread_points_fill_a_box_and_are_always_the_same() -> None:
    ends: dict = {"rtt_s": (1e-4, 1e-2), "flows": (2.0, 200.0), "capacity_bit_per_s": (1e8, 1e10)}
    box = box_of(dctcp(k_packets=5.0), **ends, senders="dctcp")
    points = np.array(spread_points(box, "dctcp", 64))
    low = np.array([2.0, 1e-4, 1e8 / 12e3])
    shares = np.log(points / low) / np.log(100.0)
    assert ((shares > 0.0) & (shares < 1.0)).all()
    # Each of 27 equal cells has a point.
    assert len({tuple(cell) for cell in (3.0 * shares).astype(int)}) == 27
    assert spread_points(box, "dctcp", 64)[:3] == spread_points(box, "dctcp", 3)


def test_a_range_of_smallest_threshold_is_checked() -> None:
    with pytest.raises(InvalidValue, match="flows: got"):
        smallest_threshold((5.0, 2.0), 1e-4, 1e6)
    with pytest.raises(InvalidValue, match="windows of at most 100000 packets"):
        smallest_threshold(1.0, 1.0, 1e6)
    with pytest.raises(InvalidValue, match="capacity: got"):
        smallest_threshold(5.0, 1e-4, (1e6, 2e6, 3e6))


def test_a_switch_without_ecn_has_neither() -> None:
    for make in (dcqcn_as_switch, dctcp_as_switch):
        with pytest.raises(InvalidValue, match="ecn: got False"):
            make(WredLaw(min_bytes=1000, max_bytes=2000, ecn=False))


def test_parameters_of_a_certificate_make_its_law_again() -> None:
    for law, given in (("dctcp", {"k_s": 2e-5}), ("dcqcn", {"kmax_bytes": 400e3, "arriving": True})):
        subject = subject_of(law, given)
        assert subject_of(law, subject.parameters) == subject
    assert dctcp(k_s=2e-5).threshold(1e6, 1500.0) == pytest.approx(20.0)
    assert log10(dcqcn().slope) == pytest.approx(log10(0.01 / 195e3))
