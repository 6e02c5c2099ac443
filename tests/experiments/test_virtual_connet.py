"""CONNET in virtual time: bursts in one call, what is run from what is kept, and numbers by hand."""

from __future__ import annotations

import importlib
import os
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from linux.traffic import FRAME_OVERHEAD
from places import EXPERIMENTS, TESTS

from netctrl.kernel.build import Kernel
from netctrl.laws.tracking.tracking import start_tracking, step_tracking, tracking_gains

KERNEL = Kernel(version="6.1", sha256="0", source="linux", compiler="gcc", absent=(), build_s=1.0)


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The study's module, which keeps its runs in a temporary folder."""
    monkeypatch.syspath_prepend(EXPERIMENTS)
    found = importlib.import_module("linux.virtual_connet")
    monkeypatch.setattr(importlib.import_module("study"), "RESULTS", tmp_path)
    monkeypatch.setattr(found, "chosen_kernel", lambda: KERNEL)
    return found


@pytest.fixture
def values(study: Any) -> Any:
    return importlib.import_module("linux.connet_virtual_values")


@pytest.fixture
def tasks(study: Any) -> Any:
    return importlib.import_module("linux.connet_tasks")


def test_bursts_leave_whole_and_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXPERIMENTS)
    send_bursts = importlib.import_module("linux.connet_bursts").send_bursts
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", 0))
        begin, times = time.monotonic() + 0.05, [np.array([0.0, 0.2]), np.array([0.1])]
        sent = send_bursts("127.0.0.1", sink.getsockname()[1], times, 4, 1042, begin)
        assert time.monotonic() >= begin + 0.2
        sink.setblocking(False)
        arrived = [sink.recvfrom(2000) for _ in range(12)]
        with pytest.raises(BlockingIOError):
            sink.recv(2000)
    assert {len(content) for content, _ in arrived} == {1042 - FRAME_OVERHEAD}
    first, second = (arrived[k][1] for k in (0, 4))
    assert [peer for _, peer in arrived] == [first] * 4 + [second] * 4 + [first] * 4 and first != second
    assert [(each.offered, each.dropped, each.frame_bytes) for each in sent] == [(8, 0, 1042), (4, 0, 1042)]


class Straight:
    """In place of the kernel: delay and jitter are lines in R with some noise, and a law is always at its reference."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def __call__(self, function: str, task: list[Any], *, seed: int) -> list[Any]:
        plant, traffic, wanted, law, _dead, start, _first, warm = task
        self.asked.append((plant["capacity"], traffic, len(wanted), law if law is None else type(law), start))
        noise = np.random.default_rng(traffic).normal(1.0, 0.01, len(wanted))
        rows = []
        for k, ((one, other), factor) in enumerate(zip(wanted, noise.tolist(), strict=True)):
            rate = one if law is None else 50.0
            delay = (rate / plant["capacity"] * 4e6 if law is None else one) * factor
            reference = other if law is None else one
            row = {"time_s": k + 1.0, "reference_ms": reference, "failed": 0, "rate": rate, "delay_ms": delay}
            rows.append(row | {"jitter_ms": 0.5 * delay, "lost": 0, "other_mbit_s": rate, "late_ms": 0.01})
        return [rows[warm:], [9.0] * 6 if plant["cubic"] and law else []]


@pytest.mark.slow
def test_every_run_is_made_once_from_what_is_kept(study: Any, tasks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Straight()
    monkeypatch.setattr(study, "called", kernel)
    assert list(study.STUDY.make([2])) == [(*case, 2) for case in tasks.PLAN]
    assert len(kernel.asked) == len(tasks.PLAN) == len(study.STUDY.kept()[study.KEY].drop_duplicates())
    assert study.STUDY.missing([1, 2]) == [(*case, 1) for case in tasks.PLAN]
    assert {traffic // 100 for _, traffic, *_ in kernel.asked} == {2}
    assert [each["way"] for each in study.STUDY.told()["transfers"]] == [tasks.LQI, tasks.PRINTED]
    data = study.STUDY.kept()
    held = data[(data.kind == "tcp") & (data.way == tasks.LQI)]
    assert held.reference_ms.unique() == pytest.approx([2.2], rel=0.02), "what the curve of three nodes has at R = 55"


def test_traffic_is_that_of_its_repeat(study: Any, tasks: Any) -> None:
    """The seeds, and the number of periods that the draws depend on."""
    known = tasks.Known(3, pd.DataFrame(columns=study.KEY))
    curve = tasks.PLAN["curve", tasks.STATIC](known)
    assert (curve.seed, len(curve.wanted), curve.plant) == (321, len(tasks.CURVE) * tasks.CURVE_PERIODS, tasks.Plant())
    excited = tasks.PLAN["trace", tasks.STATIC](known)
    assert (excited.seed, len(excited.wanted), excited.warm) == (322, tasks.TRACE_PERIODS + 4, 4)


class Line:
    """A link whose delay is a line in the rate, in place of the kernel's."""

    def __init__(self, plants: Any, dead_band: float = 0.0) -> None:
        self.plants, self.plant, self.failed = plants, plants.Plant(dead_band=dead_band), frozenset()
        self.rate = plants.OPEN / 1e6

    def advance(self, rate: float) -> Any:
        if abs(rate - self.rate) > self.plant.dead_band * self.rate:
            self.rate = rate
        return self.plants.Sample(self.rate, max(0.02 * self.rate - 0.8, 0.01), 0.5, 250, 0, self.rate, 0.0)


@pytest.fixture
def loop(tasks: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A law, from the first repeat's trace as it is kept, and what runs it on a line."""
    monkeypatch.undo()
    monkeypatch.syspath_prepend(EXPERIMENTS)
    data = importlib.import_module("linux.virtual_connet").STUDY.read()
    law = tasks.Known(1, data[data["repeat"] == 1]).law()
    plants, loops = (importlib.import_module(f"linux.connet_{name}") for name in ("plant", "loop"))

    def track(reference: list[tuple[float, float]], dead_band: float = 0.0) -> pd.DataFrame:
        return loops.track(Line(plants, dead_band), law, reference, first=55.0)

    return law, track


def test_a_law_settles_on_a_line_also_behind_a_dead_band(loop: Any) -> None:
    _, track = loop
    for band, within in ((0.0, 0.005), (0.01, 0.05)):
        frame = track([(0.6, 0.9)] * 80, band)
        assert frame.delay_ms[40:].mean() == pytest.approx(0.6, rel=within)
        assert (frame.rate <= 95.0).all()


def test_the_loop_is_the_runtime_law_where_nothing_is_in_between(loop: Any) -> None:
    law, track = loop
    frame, gains = track([(0.6, 0.9)] * 20), tracking_gains(law)
    state = start_tracking(gains, np.array([55.0]))
    for k in range(20):
        assert frame.rate[k] == pytest.approx(state.applied[0], rel=1e-12)
        state = step_tracking(gains, state, np.array([frame.delay_ms[k], frame.jitter_ms[k]]), np.array([0.6, 0.9]))


def test_what_cannot_be_had_is_held_at_the_limit_and_left_again(loop: Any) -> None:
    _, track = loop
    frame = track([(50.0, 1.0)] * 40 + [(0.6, 0.9)] * 40)
    assert frame.rate[20:40].to_numpy() == pytest.approx(95.0)
    assert (frame.commanded[20:39] >= 95.0).all()
    assert frame.delay_ms[60:].mean() == pytest.approx(0.6, rel=0.01)


def test_the_network_has_a_regulator_for_each_source_and_one_bottleneck(study: Any) -> None:
    plants = importlib.import_module("linux.connet_plant")
    plant = plants.Plant()
    links = {link.id: link for link in plants.network(plant).links}
    assert {"s1r", "s2r", "s3r", "pr", "rh"} <= links.keys()
    assert links["rh"].capacity == plant.capacity and links["rh"].buffer == plant.buffer
    assert all(links[f"{name}r"].buffer == plant.waiting_bytes for name in plants.SOURCES)
    assert plant.offered * len(plants.SOURCES) > plant.capacity, "without control it overflows"
    assert plant.offered + plant.premium_rate < plant.capacity < 2 * plant.offered + plant.premium_rate


def test_numbers_by_hand(values: Any, tasks: Any) -> None:
    """Means of the last periods at a reference, and when a delay has recovered."""
    periods = sum(tasks.HELD)
    reference = np.repeat([0.1, 8.0, 0.3, 0.8, 0.1], tasks.HELD)
    begins = np.cumsum([0, *tasks.HELD])
    delay = reference.copy()
    delay[begins[2] : begins[2] + 10] = 1.0
    delay[begins[3] : begins[3] + 15] = 99.0
    table = {"kind": "references", "way": tasks.LQI, "reference_ms": reference, "delay_ms": delay}
    data = pd.concat(
        [
            pd.DataFrame(
                table | {"jitter_ms": 0.0, "rate": 50.0, "other_mbit_s": 49.0, "repeat": number}, range(periods)
            )
            for number in (1, 2)
        ]
    )
    data.loc[data["repeat"] == 2, "delay_ms"] *= 1.1
    late = values.changing(data, tasks.LQI, 3)
    assert late.delay_ms.tolist() == pytest.approx([0.8, 0.88])
    assert values.met(late, 0.0).value == pytest.approx(1.05)
    assert values.met(late, 0.4).value == pytest.approx(1.0 + 0.05 * 0.8 / (0.8 + 0.4))
    further = tasks.THREE_NODES - tasks.ONE_NODE
    assert further == pytest.approx(2 * 1042 * 8 / 100e6 / 1e-3)
    assert values.recovery(data, tasks.LQI).value == pytest.approx(10.0, abs=1.0)


@pytest.mark.needs("lab")
def test_disciplines_and_instants_in_the_kernel(study: Any, tasks: Any) -> None:
    def run(rate: float, seed: int = 1, **changes: Any) -> list[Any]:
        plant = tasks.replace(tasks.TCP_PIPE if changes.pop("tcp", False) else tasks.PIPE, **changes)
        asked = study.msgspec.to_builtins(tasks.Task(plant, 1, [(rate, None)] * 3))
        return study.called("linux.virtual_connet:inside", asked, seed=seed)[0]

    fifo = run(95.0)
    assert fifo == run(95.0)
    other = {name: run(95.0, discipline=name) for name in ("cbq", "wfq")}
    delay = {name: rows[-1]["delay_ms"] for name, rows in (other | {"fifo": fifo}).items()}
    if delay["wfq"] > 0.5 * delay["fifo"]:
        # SFQ hashes with a key drawn at boot: in one of some hundred draws the premium flow shares a bucket at a hop,
        # 0.94 ms where nine seeds have 0.25 to 0.29. Twice in a row means that it isn't served by turns.
        delay["wfq"] = run(95.0, seed=2, discipline="wfq")[-1]["delay_ms"]
    assert 0.5 * 8e-5 * tasks.SIZE < delay["cbq"] < delay["wfq"] < 0.5 * delay["fifo"]
    held, exact = (run(90.0, tcp=True, release=each)[-1] for each in (tasks.Plant().release, None))
    assert held["delay_ms"] > 5.0 * exact["delay_ms"]
    assert all(each["other_mbit_s"] == pytest.approx(90.0, rel=0.01) for each in (held, exact))
    assert max(each["late_ms"] for each in fifo) < 0.1


@pytest.mark.needs("lab")
def test_every_packet_is_counted_and_regulators_have_the_rate_asked_for(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS / "support"), os.environ.get("PYTHONPATH", "")]))
    found = study.called("kernel_calls:connet_books", seed=1)
    *regulators, (passed, dropped, _) = found["queues"]
    assert found["rates"] == [1_041_667, 1_041_667, 125_000_000]
    assert found["sampled"] == [50.0, 50.0, 25.0], "a change within the dead-band isn't made"
    assert [
        (sent - one - other, waiting) for sent, (one, other, waiting) in zip(found["sent"], regulators, strict=True)
    ] == [(0, 0)] * 3
    assert passed + dropped == sum(one for one, *_ in regulators) + found["premium_sent"]
    assert 0 < found["premium_received"] <= found["premium_sent"]
