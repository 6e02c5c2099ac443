"""Laws that mark in front of a link's queue in the kernel: beside the packet engine, by their own counts, repeated."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import NetctrlError
from netctrl.engines.engine import supports
from netctrl.kernel.plan import Answer, PlanWriter, Program
from netctrl.kernel.scenarios.queues import is_marked
from netctrl.laws.aqm.arc import ArcQueue, RateError
from netctrl.laws.aqm.avq import AvqQueue
from netctrl.laws.aqm.fast_arc import FastArcQueue
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.aqm.sfc import SfcQueue
from netctrl.laws.aqm.threshold import ThresholdQueue
from netctrl.scenario.links import Change, Link
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream

ARC = ArcQueue(alpha=1e-4, epoch=0.2, target_queue=20e3)
LOADED = {"buffer": "500kB", "rtt": "100ms", "count": 20, "sender": "reno"}


@pytest.mark.parametrize("queue", [ARC, FastArcQueue(), PiQueue(), SfcQueue()])
def test_laws_with_epochs_are_supported(scenario_of, queue) -> None:
    scenario = scenario_of(queue)
    assert is_marked(scenario.links[0])
    assert supports(scenario)["kernel"] is None or "kernel to run" in str(supports(scenario)["kernel"])


@pytest.mark.parametrize("queue", [RedQueue(), AvqQueue(), ThresholdQueue()])
def test_laws_that_act_at_each_arrival_are_refused(scenario_of, queue) -> None:
    assert "a law that acts by epochs such as arc" in str(supports(scenario_of(queue))["kernel"])


def test_pie_is_the_kernels_own(scenario_of) -> None:
    assert not is_marked(scenario_of(PieQueue()).links[0])


def test_an_error_of_the_measured_rate_is_refused(scenario_of) -> None:
    queue = ArcQueue(rate_error=RateError(amplitude=1e5, frequency_rad_s=1.0))
    assert "rate_error" in str(supports(scenario_of(queue))["kernel"])


@pytest.mark.needs("lab")
@pytest.mark.parametrize(
    ("queue", "duration"), [(ARC, "120s"), (PiQueue(), "60s"), (SfcQueue(epoch=0.2), "60s")], ids=["arc", "pi", "sfc"]
)
def test_queue_marks_and_goodput_are_the_packet_engines(scenario_of, queue, duration) -> None:
    """Means of three seeds within a tenth. All flows start at once, so that no SYN is dropped, which ends ECN."""
    means = []
    for engine in ("kernel", "packet"):
        scenarios = [scenario_of(queue, seed=seed, duration=duration, **LOADED) for seed in (1, 2, 3)]
        links = [netctrl.simulate(each, engine).between(20.0).of("line") for each in scenarios]
        means.append(np.mean([(one["backlog"], one["marks"], one["utilization"]) for one in links], axis=0))
    kernel, packet = means
    assert kernel == pytest.approx(packet, rel=0.1)
    assert kernel[2] == pytest.approx(packet[2], rel=0.01)


@pytest.mark.needs("lab")
def test_packets_are_marked_with_the_probability_in_force(scenario_of) -> None:
    """Samples and epochs end together, so each sample has one probability: the one that was told before.

    The buffer never fills, as what it refuses isn't chosen by the marker.
    """
    scenario = scenario_of(ArcQueue(alpha=1e-4, epoch=0.1), duration="60s", **LOADED | {"buffer": "5MB"})
    result = netctrl.simulate(scenario, "kernel")
    before = np.concatenate(([0.0], result.series["probability"][0, :-1]))
    packets = result.series["arrived"][0] / 1514
    chosen = (result.series["marked"][0] + result.series["lost"][0]) / 1514
    spread = np.sqrt((packets * before * (1.0 - before)).sum())
    assert chosen.sum() == pytest.approx((packets * before).sum(), abs=4.0 * spread)
    assert chosen.sum() > 500


@pytest.mark.needs("lab")
def test_packets_without_ecn_are_dropped_with_a_fixed_probability(scenario_of) -> None:
    """SFC without its queue's part sees 1.25 times the capacity: p = k2 (1.25 - 1) = 0.3, and 8.75 Mbit/s pass."""
    udp = Flow(id="udp", path=("line",), count=1, offers=Stream(rate="12.5Mbit", spacing="constant"))
    line = Link(
        id="line",
        source="a",
        target="b",
        capacity="10Mbit",
        delay="10ms",
        buffer="1MB",
        queue=SfcQueue(k1=1e-9, k2=1.2),
    )
    scenario = netctrl.Scenario(
        name="fixed", links=(line,), flows=(udp,), duration="60s", warmup="2s", packet_size=1000
    )
    link = netctrl.simulate(scenario, "kernel").of("line")
    spread = (0.3 * 0.7 / (12.5e6 / 8e3 * 58)) ** 0.5
    assert link["probability"] == pytest.approx(0.3, abs=1e-3)
    assert link["loss"] == pytest.approx(0.3, abs=4.0 * spread)
    assert link["marks"] == 0.0


@pytest.mark.needs("lab")
def test_a_law_follows_the_links_capacity(scenario_of) -> None:
    """ARC holds 0.9 of the new capacity less what drains its queue in an epoch; with the old one it wouldn't mark.

    Without clipping its mean step a (b - 0.9 (d C - q)) is 0 where arrivals b/d are 0.9 (C - q/d).
    """
    flows = LOADED | {"count": 6}
    scenario = scenario_of(ArcQueue(alpha=1e-4, epoch=0.2, target_utilization=0.9), duration="90s", **flows)
    changed = scenario.replace(changes=(Change(at=30.0, link="line", capacity="5Mbit"),))
    after, packet = (netctrl.simulate(changed, engine).between(50.0).of("line") for engine in ("kernel", "packet"))
    assert after["throughput"] == pytest.approx(packet["throughput"], rel=0.03)
    settled = 0.9 * (5e6 - 8.0 * after["backlog"] / 0.2)
    assert after["throughput"] == pytest.approx(settled, rel=0.02)
    assert after["backlog"] < 50e3


def _prepared(code: str, folder) -> list[tuple[int, bytes]]:
    from netctrl.kernel.boot import run_plan
    from netctrl.kernel.build import build_guest, chosen_kernel

    plan = PlanWriter()
    assert plan.prepared(plan.namespace(), Program((sys.executable, "-c", code), "/", {})) == 0
    plan.run(1.0, 0.0)
    return run_plan(plan, chosen_kernel(), build_guest(), folder, seed=1)


@pytest.mark.needs("lab")
def test_a_prepared_program_is_told_time_0_before_it_comes(tmp_path) -> None:
    code = (
        "import os, sys, time; time.sleep(5); os.write(3, b'.')\n"
        "due = int.from_bytes(os.read(3, 8), sys.byteorder); ahead = due - time.monotonic_ns()\n"
        "os.write(3, str(ahead > 0).encode())"
    )
    said = [body for kind, body in _prepared(code, tmp_path) if kind == Answer.SAID]
    assert said == [b"\0\0\0\0True"]


@pytest.mark.needs("lab")
def test_a_program_that_fails_before_time_0_ends_the_run_with_its_words(tmp_path) -> None:
    with pytest.raises(NetctrlError, match=r"ended with status 1 before the start\n  no such thing"):
        _prepared("raise SystemExit('no such thing')", tmp_path)
