"""Metrics of a case against closed forms."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, sqrt

import numpy as np
import pytest

import netctrl
from netctrl.evaluation.case import LAW, Case, Group, Line, Plan, Turn, plan_case
from netctrl.evaluation.metrics import METRICS, jain, measured
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.window.fixed import FixedWindow
from netctrl.scenario.result import Result
from netctrl.scenario.tcp_aqm.offers import Stream

PACKET = 1500 * 8.0
PAYLOAD = 1460.0 / 1500.0


def changed(result: Result, transfers: dict | None = None, **series: np.ndarray | None) -> Result:
    """The result with other series; None: not measured."""
    parts = {}
    for part, dim in (("links", "link"), ("flows", "flow")):
        held = result.series.over(dim, "time")
        parts[part] = held | {name: values for name, values in series.items() if name in held}
    tables = {"transfers": result.transfers if transfers is None else transfers}
    return Result.of_series(result.scenario, result.simulator, result.provenance, **parts, tables=tables)


def run(law: object = None, **fields: object) -> tuple[Plan, Result]:
    """A case without noise on 10 Mbit/s and 100 ms, and its result."""
    case = Case(name="case", **({"duration": 20.0, "warmup": 5.0, "queue": DropTailQueue()} | fields))
    plan = plan_case(case, law, noise=False)
    return plan, netctrl.simulate(plan.scenario, "packet")


def values(plan: Plan, result: Result) -> dict[tuple[str, str], float]:
    found = {(each.metric, each.of): each.value for each in measured(plan, result)}
    assert {name for name, _ in found} <= set(METRICS)
    return found


def udp(rate: float, **fields: object) -> Group:
    return Group(id="udp", offers=Stream(rate=rate, spacing="constant"), **fields)


def test_jains_index_is_1_for_equal_rates_and_1_over_n_for_a_single_one() -> None:
    assert jain(np.full(4, 3.0)) == pytest.approx(1.0)
    assert jain(np.array([5.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)
    assert jain(np.array([1.0, 2.0, 3.0])) == pytest.approx(36.0 / 42.0)
    assert isnan(jain(np.zeros(3)))


def test_half_of_the_rate_in_datagrams_is_delivered_without_a_queue() -> None:
    found = values(*run(groups=(udp(5e6, start=(0.0, 0.0)),)))
    assert found["utilization", "bottleneck"] == pytest.approx(0.5, abs=1e-3)
    assert found["goodput", "udp"] == pytest.approx(5e6 * PAYLOAD, rel=1e-3)
    assert found["delivered", "udp"] == pytest.approx(1.0, abs=1e-3)
    assert found["loss", "bottleneck"] == 0.0
    assert found["one-way delay", "udp"] == pytest.approx(0.2 * 0.1 + PACKET / 10e6, abs=1e-6)
    assert found["jitter", "udp"] == pytest.approx(0.0, abs=1e-9)


def test_too_many_datagrams_fill_the_buffer_and_lose_what_is_too_much() -> None:
    """12 Mbit/s on 10 Mbit/s: 2 of 12 are lost, and what is sent waited behind a buffer of 125 kB less a packet."""
    found = values(*run(groups=(udp(12e6, start=(0.0, 0.0)),)))
    assert found["utilization", "bottleneck"] == pytest.approx(1.0, abs=1e-3)
    assert found["loss", "bottleneck"] == pytest.approx(2.0 / 12.0, abs=1e-3)
    assert found["delivered", "udp"] == pytest.approx(10.0 / 12.0, abs=1e-3)
    assert 0.1 - 3.0 * PACKET / 10e6 < found["queueing delay", "bottleneck"] <= 0.1


def test_what_datagrams_deliver_counts_only_while_they_are_on() -> None:
    """On from 8 s to 12 s of a run with its warm-up until 5 s."""
    found = values(*run(groups=(udp(5e6, start=(8.0, 8.0), stop=12.0),)))
    assert found["delivered", "udp"] == pytest.approx(1.0, abs=2e-3)
    assert found["goodput", "udp"] == pytest.approx(5e6 * PAYLOAD * 4.0 / 15.0, rel=2e-3)
    early = values(*run(groups=(udp(5e6, start=(0.0, 0.0), stop=10.0),)))
    on_the_way = 0.02 + PACKET / 10e6  # what was sent in that time before the warm-up's end comes after it
    assert early["delivered", "udp"] == pytest.approx(1.0 + on_the_way / 5.0, abs=1e-3)


def test_a_constant_window_is_sent_once_in_a_round_trip() -> None:
    """Eight packets under way, no queue: eight packets a round trip. 100 of their bytes aren't data."""
    law = FixedWindow(window=8 * 1400.0)
    groups = (Group(id="law", sender=LAW),)
    plan, result = run(law, groups=groups, extra=("packets per round trip",), duration=40.0)
    found = values(plan, result)
    drawn = found["round trip", "law"]
    assert 0.098 < drawn < 0.104
    assert found["packets per round trip", "bottleneck"] == pytest.approx(8.0 * 0.1 / drawn, rel=0.01)


def test_a_transfer_takes_its_rounds_of_slow_start() -> None:
    """A handshake, then 100 packets in rounds of 10, 20, 40 and 30; the last of them takes half a round trip."""
    size = 100 * 1460.0
    groups = (Group(id="transfer", start=(6.0, 6.0), offers=size),)
    plan, result = run(groups=groups, capacity=1e9, duration=10.0)
    found = values(plan, result)
    times = [found[name, "transfer"] for name in ("completion time", "completion time 95 %")]
    assert times[0] == times[1]
    assert 4.5 * 0.098 < times[0] < 4.5 * 0.102 + 0.005
    assert found["completed", "transfer"] == 1.0
    took = np.linspace(0.1, 2.1, 201)
    flow = np.zeros(len(took), dtype=np.int64)
    many = changed(result, {"flow": flow, "duration": took, "start": 0.0 * took + 6.0, "size": 0.0 * took + size})
    assert values(plan, many)["completion time 95 %", "transfer"] == pytest.approx(2.0)
    early = values(*run(groups=(replace(groups[0], start=(1.0, 1.0)),), capacity=1e9, duration=10.0))
    assert early["completed", "transfer"] == 0.0
    assert isnan(early["completion time", "transfer"])


def test_delays_quantiles_and_spread_are_those_of_the_series_after_the_warm_up() -> None:
    plan, result = run(groups=(udp(5e6),))
    ramp = np.arange(1, len(result.time_s) + 1) * 1e-4
    found = values(plan, changed(result, delay=ramp[None, :]))
    late = ramp[result.time_s > 5.0 + 1e-6]
    assert len(late) == 750
    assert found["queueing delay", "bottleneck"] == pytest.approx((late[0] + late[-1]) / 2.0)
    assert found["queueing delay 95 %", "bottleneck"] == pytest.approx(late[0] + 0.95 * (late[-1] - late[0]))
    assert found["delay variation", "bottleneck"] == pytest.approx(1e-4 * sqrt((750**2 - 1) / 12.0))


def test_intervals_count_in_which_packets_were_sent() -> None:
    """An empty queue has no delay; a link that sends nothing says nothing of it."""
    plan, result = run(groups=(udp(5e6),))
    late = result.time_s > 19.0
    delay = np.where(late, 0.02, 0.0)[None, :]
    found = values(plan, changed(result, delay=delay))
    assert found["queueing delay", "bottleneck"] == pytest.approx(0.02 * 50.0 / 750.0)
    silent = changed(result, delay=delay, departed=np.where(late, result.series["departed"], 0.0))
    assert values(plan, silent)["queueing delay", "bottleneck"] == pytest.approx(0.02)
    nothing = changed(result, delay=delay, departed=np.zeros_like(delay))
    assert isnan(values(plan, nothing)["queueing delay", "bottleneck"])


def test_an_engine_without_delays_has_that_of_its_backlog() -> None:
    """50 kB at 10 Mbit/s are 40 ms, and from 12.5 s on at 5 Mbit/s they are 80 ms."""
    plan, result = run(groups=(udp(4e6),), turns=(Turn(12.5, capacity=5e6),))
    found = values(plan, changed(result, delay=None, backlog=np.full_like(result.series["backlog"], 50e3)))
    assert found["queueing delay", "bottleneck"] == pytest.approx(0.06, rel=1e-3)


def carried(plan: Plan, result: Result, rates: list[float]) -> Result:
    """The result with other goodputs [bit/s]."""
    each = np.array(rates)[:, None] * result.time_s[0] / 8.0
    return changed(result, payload=np.repeat(each, len(result.time_s), axis=1))


def test_groups_are_compared_flow_by_flow() -> None:
    groups = (Group(id="one", count=2), Group(id="other", count=1))
    plan, result = run(groups=groups, ratio=("one", "other"))
    found = values(plan, carried(plan, result, [1e6, 3e6, 4e6]))
    assert found["goodput", "one"] == pytest.approx(4e6)
    assert found["goodput ratio", "one/other"] == pytest.approx(0.5)
    assert found["goodput share", "one/other"] == pytest.approx(2.0 / 6.0)
    assert found["fairness", "one"] == pytest.approx(16.0 / 20.0)
    assert found["least share", "one"] == pytest.approx(0.5)
    assert ("fairness", "other") not in found


def test_the_rate_is_held_against_that_of_tcp() -> None:
    """X = s/(R sqrt(2p/3)) of RFC 8083: payloads of 1460 bytes, the measured round trip and loss."""
    plan, result = run("reno", groups=(Group(id="law", sender=LAW),), loss=0.02, extra=("over TCP's rate",))
    told = result.measures()
    tcp = 1460 * 8.0 / (told["rtt", "law-1"] * sqrt(2.0 * told["loss", "bottleneck"] / 3.0))
    expected = told["goodput", "law-1"] / tcp
    assert values(plan, result)["over TCP's rate", "bottleneck"] == pytest.approx(expected, rel=1e-9)
    lossless = values(*run("vegas", groups=(Group(id="law", sender=LAW),), extra=("over TCP's rate",)))
    assert isnan(lossless["over TCP's rate", "bottleneck"])


def test_every_link_is_measured_and_changes_of_capacity_count() -> None:
    """Datagrams of 4 Mbit/s fill half of 8 Mbit/s; the bottleneck, of 10 and then 5 Mbit/s, has 7.5 on average."""
    line = Line("second", "b", "c", 8e6)
    group = udp(4e6, path=("bottleneck", "second"))
    found = values(*run(groups=(group,), others=(line,), turns=(Turn(12.5, capacity=5e6),)))
    assert found["utilization", "second"] == pytest.approx(0.5, abs=2e-3)
    assert found["utilization", "bottleneck"] == pytest.approx(4.0 / 7.5, abs=2e-3)
