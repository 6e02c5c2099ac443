"""Access links in the kernel beside the packet engine, which has the same arrivals and the same law."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from access_links import crossing, link_of, sources

import netctrl
from netctrl.engines.case import Case, Tracking
from netctrl.engines.engine import supports
from netctrl.errors import NetctrlError
from netctrl.kernel.access.datagrams import Packets
from netctrl.kernel.access.program import _slices
from netctrl.kernel.access.run import access_run
from netctrl.kernel.access.sources import Sources
from netctrl.kernel.access.task import AccessDraws, periods_of, plan_of, read_task, write_periods, write_task
from netctrl.laws.tracking.reference_governor import reference_governor
from netctrl.model.design.design import ConnetDesign
from netctrl.scenario.access.flows import PremiumFlow, RegulatorFailure, TcpSenders
from netctrl.scenario.access.periods import run_periods
from netctrl.scenario.access.plan import access_link_plan
from netctrl.scenario.access.scenario import access_parts
from netctrl.scenario.scenario import Scenario
from netctrl.sim.access.draws import flow_pauses
from netctrl.sim.access.problem import access_link_plant
from netctrl.sim.access.run import AccessLink

FAILURE = {"failures": (RegulatorFailure(start=2.3, stop=3.6, rate=30e6),)}


@pytest.fixture(scope="module")
def design() -> ConnetDesign:
    return netctrl.connet(netctrl.read("connet-paper"), track="delay", limits=[(0.0, 95.0)])


def drawn(scenario: Scenario) -> AccessDraws:
    return AccessDraws(access_link_plant(scenario).premium_phase, flow_pauses(scenario, None))


def pipe(**fields) -> Scenario:
    """Three hops of 40 packets, with cross traffic at the second."""
    regulated = sources({"count": 4, "share": 0.5, "offered": 40e6}, {"share": 0.5, "offered": 40e6, "burst": 20})
    settings = {"hops": 3, "limit": 40, "duration": 5.0} | fields
    return link_of(regulated=regulated, cross=crossing({"hop": 1, "rate": 30e6}), **settings)


# --- what sources send -----------------------------------------------------------------------------------------------


def test_sources_release_what_the_packet_engines_do() -> None:
    """By period: other rates, bursts, a stop, open regulators, and failures that begin and end within periods."""
    scenario = link_of(
        regulated=sources({"share": 0.5} | FAILURE, {"share": 0.5, "pause_variation": 0.3, "offered": 60e6}),
        cross=crossing({"hop": 1, "rate": 20e6}),
        hops=2,
        duration=7.0,
        seed=5,
    )
    ours, theirs, before = Sources(access_parts(scenario), drawn(scenario)), AccessLink(scenario), 0
    periods = [(50e6, 0), (20e6, 3), (0.0, 0), (0.0, 0), (80e6, 25), (inf, 0), (70e6, 0)]
    for k, (rate, burst) in enumerate(periods):
        theirs.advance(rate, burst)
        released = theirs.traffic.released - before
        before = theirs.traffic.released.copy()
        found = ours.release(rate, burst, float(k), k + 1.0)
        np.testing.assert_array_equal(np.bincount(found.kind, minlength=len(released)), released)
        assert (np.diff(found.at_s) >= 0.0).all() and found.at_s[0] > k and found.at_s[-1] <= k + 1.0
    assert released.min() > 0


def test_packets_are_numbered_and_evenly_spaced_in_bursts() -> None:
    scenario = pipe()
    ours = Sources(access_parts(scenario), drawn(scenario))
    found = ours.release(30e6, 0, 0.0, 1.0), ours.release(30e6, 0, 1.0, 2.0)
    at, kind, number = (np.concatenate(each) for each in zip(*found, strict=True))
    for each in range(8):
        np.testing.assert_array_equal(number[kind == each], np.arange((kind == each).sum()))
    gaps = np.diff(at[kind == 0])
    np.testing.assert_allclose(gaps, 8e-3, rtol=1e-9)
    within = np.isclose(np.diff(at[kind == 5]), 8e-5, rtol=1e-6)  # a packet of 1000 bytes at 100 Mbit/s
    assert within.mean() == pytest.approx(0.95, abs=5e-3)  # bursts of 20


def test_draws_that_run_out_are_said() -> None:
    scenario = pipe()
    few = drawn(scenario)._replace(pauses=[pauses[:3] for pauses in flow_pauses(scenario, None)])
    with pytest.raises(NetctrlError, match="more than the 3 pauses"):
        Sources(access_parts(scenario), few).release(inf, 0, 0.0, 5.0)


def test_packets_are_handed_over_in_parts() -> None:
    """At most 1024 at a time, and none a second ahead."""
    at = np.concatenate([np.linspace(0.0, 0.5, 2500), [3.0, 3.9, 4.1, 9.0]])
    packets = Packets(at, np.zeros(len(at), dtype=int), np.arange(len(at)))
    parts = list(_slices(packets))
    np.testing.assert_array_equal(np.concatenate([part.number for part in parts]), packets.number)
    assert [len(part.number) for part in parts] == [1024, 1024, 452, 2, 1, 1]


def test_a_task_is_read_as_it_was_written(design, tmp_path) -> None:
    """Its law takes the same steps, and what came of them is the same."""
    scenario = link_of(duration=6.0, regulated=sources({"share": 1.0} | FAILURE))
    plan = access_link_plan(scenario, design.law, (1.2, 0.8), governor=reference_governor(design.law), start=2)
    run, draws = access_run(scenario, plan), drawn(scenario)
    write_task(run.task, draws, tmp_path)
    task, found = read_task(tmp_path)
    assert task.parts == access_parts(scenario)
    assert task.law is not None
    assert found.premium_phase == draws.premium_phase
    for ours, theirs in zip(found.pauses, draws.pauses, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    one, other = (run_periods(each, AccessLink(scenario).advance) for each in (plan, plan_of(task.law)))
    assert one.samples == other.samples
    write_periods(other.samples, other, tmp_path)
    left = periods_of(tmp_path)
    assert tuple(left.samples) == tuple(one.samples)
    np.testing.assert_array_equal(left.given, one.given)
    np.testing.assert_array_equal(left.commanded, one.commanded)
    assert np.isnan(left.commanded[:2]).all() and not np.isnan(left.commanded[2:]).any()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"discipline": "wfq"}, "fair queueing (network.discipline: wfq)"),
        ({"limit": 1}, "network.limit: 1"),
        ({"every": {"sender": TcpSenders()}}, "TCP senders with regulators that pause at random (flows.source0"),
        ({"premium": PremiumFlow(size=40)}, "packets of 40 bytes: a whole number from 50 to 1514 (flows.premium.size)"),
        ({"packet_size": 1515}, "(packet_size)"),
    ],
)
def test_what_it_lacks_of_an_access_link_is_named(fields, said: str) -> None:
    assert said in str(supports(link_of(**fields))["kernel"])


# --- beside the packet engine ----------------------------------------------------------------------------------------


def pair(case, **options):
    return tuple(netctrl.simulate(case, engine, **options) for engine in ("packet", "kernel"))


@pytest.mark.needs("lab")
def test_open_regulators_below_the_capacity() -> None:
    """80 % of the link in bursts of 10: the same packets are lost, and delays differ by less than a packet's time."""
    regulated = sources({"count": 4, "share": 1.0, "offered": 80e6})
    packet, kernel = pair(link_of(regulated=regulated, duration=5.0))
    np.testing.assert_array_equal(kernel.premium_lost, packet.premium_lost)
    np.testing.assert_allclose(kernel.other_lost, packet.other_lost, atol=1)
    np.testing.assert_allclose(kernel.other_bit_per_s, packet.other_bit_per_s, atol=2e4)
    np.testing.assert_allclose(kernel.mean_delay_ms, packet.mean_delay_ms, atol=8e-3)
    np.testing.assert_allclose(kernel.mean_jitter_ms, packet.mean_jitter_ms, atol=8e-3)
    np.testing.assert_allclose(kernel.delay_ms, packet.delay_ms, atol=0.04)
    np.testing.assert_allclose(kernel.utilization, packet.utilization, atol=3e-4)
    np.testing.assert_allclose(kernel.backlog, packet.backlog, atol=1)
    assert packet.backlog.max() > 30


@pytest.mark.needs("lab")
def test_cross_traffic_in_a_row_of_nodes() -> None:
    packet, kernel = ([netctrl.simulate(pipe(seed=seed), engine) for seed in (1, 2)] for engine in ("packet", "kernel"))
    for ours, theirs in zip(kernel, packet, strict=True):
        mine, other = ours.summary(), theirs.summary()
        assert mine.mean_delay_ms == pytest.approx(other.mean_delay_ms, rel=0.01)
        assert mine.mean_jitter_ms == pytest.approx(other.mean_jitter_ms, rel=0.02)
        assert mine.other_bit_per_s == pytest.approx(other.other_bit_per_s, rel=5e-3)
        assert mine.other_lost == pytest.approx(other.other_lost, rel=0.05)
        assert mine.premium_lost == pytest.approx(other.premium_lost, abs=5)
        assert mine.utilization == pytest.approx(other.utilization, rel=1e-3)
        np.testing.assert_allclose(ours.source_bit_per_s, theirs.source_bit_per_s, rtol=0.03)


@pytest.mark.needs("lab")
def test_a_law_holds_the_delay_as_on_packets(design) -> None:
    """CONNET's printed model and its link: from closed regulators to the reference, with a regulator that fails."""
    scenario = link_of(
        regulated=sources({}, {"failures": (RegulatorFailure(start=15.0, stop=22.5, rate=50e6),)}, {}), duration=40.0
    )
    packet, kernel = pair(Case(scenario, design, Tracking(governor=True)))
    assert kernel.simulator.startswith("kernel-")
    rates = packet.result.rate_bit_per_s, kernel.result.rate_bit_per_s
    assert np.corrcoef(*rates)[0, 1] > 0.98
    np.testing.assert_allclose(rates[1][:4], rates[0][:4], atol=0.4e6)
    mine, other = kernel.summary(), packet.summary()
    assert mine.mean_delay_ms == pytest.approx(other.mean_delay_ms, rel=0.02)
    assert mine.mean_jitter_ms == pytest.approx(other.mean_jitter_ms, rel=0.03)
    assert mine.other_bit_per_s == pytest.approx(other.other_bit_per_s, rel=0.02)
    settled = kernel.measured[28:, 0].mean()
    assert settled == pytest.approx(kernel.reference[-1, 0], abs=0.1)


@pytest.mark.needs("lab")
def test_the_same_seed_gives_the_same_periods(design) -> None:
    one, other, third = (
        netctrl.simulate(Case(link_of(duration=8.0, seed=seed), design), "kernel") for seed in (1, 1, 2)
    )
    for name in ("mean_delay_ms", "rate_bit_per_s", "other_bit_per_s", "backlog"):
        np.testing.assert_array_equal(getattr(one.result, name), getattr(other.result, name))
    assert not np.array_equal(one.result.mean_delay_ms, third.result.mean_delay_ms)
