"""Thresholds that nearly touch: one verdict from a step to a wide rise, judged by packets and by other integrations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from ecn_packets import SIZE, dcqcn_packets, dctcp_packets
from installed import sonic, wred_profile

from netctrl.certificates.certify import certify
from netctrl.certificates.inputs.read import read_queues
from netctrl.certificates.installed import certify_queues
from netctrl.certificates.record import QueueVerdict
from netctrl.core.errors import InvalidValue, Status
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.window.dcqcn import Dcqcn
from netctrl.plants.ecn.dctcp import StepFluid, dctcp_ramp_cycle, fluid_cycle

RACK = {"rtt_s": 20e-6, "flows": (8.0, 32.0), "capacity_bit_per_s": 100e9}


def wred(low: int, high: int, percent: int = 100, **where) -> QueueVerdict:
    law = {"min_bytes": low, "max_bytes": high, "max_percent": percent, "ecn": True}
    return certify("wred", parameters=law, senders="dctcp", **(RACK | where)).certificate


@pytest.mark.parametrize("sender", ["dctcp", "dcqcn"])
def test_a_byte_between_thresholds_changes_no_verdict(sender: str) -> None:
    """Packets of the first: 167 kB, fully used."""
    equal, byte = (
        certify_queues(read_queues(text=sonic(P=wred_profile(184_320, high, 100))), senders=sender, **RACK)
        .queues[0]
        .certificate
        for high in (184_320, 184_321)
    )
    assert equal.verdict.partition(": ")[2] == byte.verdict.partition(": ")[2]
    assert equal.holds == byte.holds == (sender == "dctcp")
    first, second = (each.certificate.step or each.certificate.cycle for each in (equal, byte))
    assert second.fluid.highest_packets == pytest.approx(first.fluid.highest_packets, rel=0.005)
    assert second.fluid.mean_packets == pytest.approx(first.fluid.mean_packets, rel=0.005)
    assert second.fluid.period_s == pytest.approx(first.fluid.period_s, rel=0.005)


@pytest.mark.parametrize("flows", [2.0, 8.0, 32.0])
def test_figures_move_continuously_from_a_step_to_a_wide_rise(flows: float) -> None:
    widths = [0, 1, *map(int, np.geomspace(300.0, 600e3, 40))]
    found = [wred(184_320, 184_320 + width, flows=flows) for width in widths]
    assert {each.status for each in found} == {Status.ADMISSIBLE}
    cycles = [each.cycle.fluid for each in found if each.cycle is not None]
    assert len(cycles) > 12  # then the linear loop holds
    for before, after in pairwise(cycles):
        assert after.mean_packets == pytest.approx(before.mean_packets, rel=0.1)
        # From 32 flows on, the fluid has a swing beside a rest over some widths: the ends jump where the swing ends.
        assert after.highest_packets == pytest.approx(before.highest_packets, rel=0.15)
        assert after.lowest_packets == pytest.approx(before.lowest_packets, rel=0.35)


@pytest.mark.parametrize(("flows", "threshold"), [(2, 40.0), (8, 122.88), (32, 122.88), (16, 20.0)])
def test_a_rise_without_width_is_the_step_that_is_integrated_from_change_to_change(
    flows: int, threshold: float
) -> None:
    rate, rtt = 100e9 / 12e3, 20e-6
    found = dctcp_ramp_cycle(flows, rate, rtt, [(threshold, 0.0), (threshold, 1.0)])
    exact = fluid_cycle(StepFluid(rate * rtt / flows, threshold / (rate * rtt)))
    for ours, other in zip(found[:5], exact[:5], strict=True):
        assert ours == pytest.approx(other, rel=0.02, abs=0.003)
    assert found.lost == pytest.approx(exact.lost, abs=1e-3)


@pytest.mark.slow
def test_a_queue_above_both_thresholds_is_judged_by_its_cycle() -> None:
    """The rise ends at 5 % where the flows need 8 %; packets use the whole capacity."""
    found = wred(50_000, 51_000, 5, flows=8.0)
    assert (found.status, found.sampled, found.linear) == (Status.ADMISSIBLE, None, None)
    queue, used = packets(8, 100e9, 20e-6, 50_000, 51_000, 0.05)
    assert used == pytest.approx(1.0, abs=2e-3)
    assert found.cycle.fluid.highest_packets == pytest.approx(queue.max(), abs=3.0)
    assert found.cycle.fluid.mean_packets == pytest.approx(queue.mean(), rel=0.1)


def test_linux_red_with_a_rise_of_a_byte_is_judged_as_packets_show_it() -> None:
    law = {"limit_bytes": 100_000, "min_bytes": 30_000, "average_packet": 1500, "burst": 21, "probability": 0.99}
    where = {"rtt_s": 1e-3, "flows": 4.0, "capacity_bit_per_s": 1e9, "senders": "dctcp"}
    narrow, equal = (
        certify("red", parameters={**law, "max_bytes": high, "ecn": True}, **where) for high in (30_001, 30_000)
    )
    for found in (narrow, equal):
        assert found.verdict.startswith("red with 4 flows at 1 ms: holds; 184 µs ± 74 µs of queue, 99 % below 296 µs, ")
    queue, used = packets(4, 1e9, 1e-3, 30_000, 30_001, 0.99, weight=0.25, spaced=True)
    assert used == pytest.approx(1.0, abs=2e-3)
    assert (12e-6 * queue.mean(), 12e-6 * np.quantile(queue, 0.99)) == pytest.approx((184e-6, 296e-6), rel=0.15)
    for found in (narrow.certificate.cycle, equal.certificate.cycle):
        assert found.fluid.lowest_packets == pytest.approx(queue.min(), abs=3.0)
        assert found.fluid.highest_packets == pytest.approx(queue.max(), abs=3.0)
    short = certify("red", parameters={**law, "max_bytes": 30_001, "ecn": True, "limit_bytes": 36_000}, **where)
    assert short.verdict.endswith("the queue reaches its limit, where packets are lost")


@pytest.mark.slow
@pytest.mark.parametrize(("kilobytes", "rtt", "busy"), [(50, 4e-6, True), (100, 4e-6, True), (100, 20e-6, False)])
def test_dcqcn_at_a_step_keeps_the_link_busy_where_packets_do(kilobytes: int, rtt: float, busy: bool) -> None:
    """Six flows at 40 Gbit/s over three links; packets have hyper increase, too, and lose more where they lose."""
    low = 1000.0 * kilobytes
    where = {"rtt_s": rtt, "flows": 6.0, "capacity_bit_per_s": 40e9, "packet_size_bytes": 1000.0}
    equal, byte = (
        certify("dcqcn", parameters={"kmin_bytes": low, "kmax_bytes": high, "pmax": 1.0}, **where).certificate
        for high in (low, low + 1.0)
    )
    assert equal.status is byte.status is (Status.ADMISSIBLE if busy else Status.STABLE)
    assert byte.cycle.fluid.mean_packets == pytest.approx(equal.cycle.fluid.mean_packets, rel=0.05)
    queue = dcqcn_packets(rtt, Dcqcn(mark_low=low, mark_high=low + 1.0, mark_most=1.0), 0.2)[0] / 1048.0
    assert bool(queue.min() > 6.0) is busy
    if busy:
        assert queue.max() == pytest.approx(equal.cycle.fluid.highest_packets, rel=0.1)


def test_senders_that_are_none_are_named() -> None:
    queues = read_queues(text=sonic(P=wred_profile(184_320, 184_320, 100)))
    for wrong in (1e-320, [3], object()):
        with pytest.raises(InvalidValue, match=r"^sender: got"):
            certify_queues(queues, senders=wrong, **RACK)


def test_a_step_without_marks_or_with_other_senders_is_refused() -> None:
    for more in ({"senders": "reno"}, {"senders": ("dctcp", "reno")}, {"stretches": (1.0, 2.0)}):
        with pytest.raises(InvalidValue, match="a step"):
            certify("wred", parameters={"min_bytes": 9, "max_bytes": 9, "max_percent": 5, "ecn": True}, **RACK | more)
    with pytest.raises(InvalidValue, match="a step"):
        certify("wred", parameters={"min_bytes": 9, "max_bytes": 9, "max_percent": 5}, senders="dctcp", **RACK)


@pytest.mark.parametrize("window", [20.0, 200.0, 5e3])
def test_phase_margins_of_unstable_loops_are_within_half_a_turn(window: float) -> None:
    """Of laws with a delay of many turns at the crossover, as one that was said to be -20896 degrees."""
    steep = {"alpha": 100.0, "beta": 1000.0}
    for law, parameters in (("pie", {**steep, "implementation": "rfc"}), ("pi2", steep)):
        found = certify(law, parameters=parameters, rtt_s=0.2, window_packets=window).certificate
        assert found.status is Status.UNSTABLE
        assert -180.0 < found.sampled.phase_margin_deg <= 180.0


def test_flows_whose_windows_are_too_small_have_no_cycle() -> None:
    found = wred(15_000, 15_001, flows=200.0)
    assert (found.status, found.cycle) == (Status.INFEASIBLE, None)
    assert found.warnings[0].startswith("windows of 0.883 packets with the queue at the upper threshold, for 200 flows")


def packets(
    flows: int, capacity: float, rtt: float, low: float, high: float, most: float, **more
) -> tuple[np.ndarray, float]:
    """Over 800 round trips, as `dctcp_packets`."""
    trip = rtt + 8.0 * low / capacity
    marks = {"min_threshold": low, "max_threshold": max(high, low + 1e-3), "max_probability": most, "gentle": False}
    queue = RedQueue(**{"weight": 1.0, **marks, **more})
    return dctcp_packets(flows, queue, capacity, rtt, 800.0 * trip, 0.1 * trip, (0.0, trip))


BETTER = "packets do better: "


def contradicts(seed: int) -> str:
    """What a verdict of random thresholds says and packets deny; empty: nothing.

    It begins with BETTER where the fluid runs empty and packets don't, which errs on the safe side.
    """
    rng = np.random.default_rng([3802, seed])
    rate, window = 10.0 ** rng.uniform(8.5, 11.0) / 8.0 / SIZE, float(np.exp(rng.uniform(np.log(2.2), np.log(150.0))))
    flows = round(float(np.exp(rng.uniform(0.0, np.log(48.0)))))
    product = window * flows
    low = max(product * float(np.exp(rng.uniform(np.log(0.03), np.log(2.0)))), 1.0)
    widths = (
        0.0,
        1.0 / SIZE,
        10.0 ** rng.uniform(-3.0, 0.0),
        low * 10.0 ** rng.uniform(-2, 0),
        low * 10 ** rng.uniform(-1, 1),
    )
    width = round(widths[rng.integers(5)] * SIZE)
    low, percent = round(low * SIZE), int(rng.integers(1, 101))
    where = {"rtt_s": product / rate, "flows": float(flows), "capacity_bit_per_s": rate * 8.0 * SIZE}
    found = wred(low, low + width, percent, **where)
    queue, used = packets(flows, where["capacity_bit_per_s"], where["rtt_s"], low, low + width, percent / 100.0)
    said = f"{found.status}, {found.cycle}; packets use {used:.4f}, queue {queue.min():.0f} to {queue.max():.0f}"
    if found.status is Status.INFEASIBLE:
        return "" if queue.mean() >= (low + width) / SIZE - 1.0 else said
    if found.status is Status.ADMISSIBLE:
        if found.predicted is None:  # the queue keeps a packet of each flow
            return "" if used >= 0.995 else said
        late = float(np.quantile(queue, 0.99)) * SIZE * 8.0 / where["capacity_bit_per_s"]
        return "" if used >= 0.97 and late <= 1.15 * found.predicted.most_p99_s else said
    if found.cycle.lost_share == 0.0:
        return "" if used >= 0.97 else said
    if abs(used - (1.0 - found.cycle.lost_share)) > 0.05:
        return said
    return "" if queue.min() <= 1.0 else BETTER + said


@pytest.mark.parametrize("seed", range(6))
def test_packets_deny_no_verdict_of_random_thresholds(seed: int) -> None:
    assert contradicts(seed) == ""


@pytest.mark.slow
def test_packets_deny_none_of_two_hundred_verdicts() -> None:
    denied = [said for said in map(contradicts, range(200)) if said]
    assert [said for said in denied if not said.startswith(BETTER)] == []
    assert len(denied) <= 3  # the fluid's queue touches 0 where that of packets keeps 7 to 25
