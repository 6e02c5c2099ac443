"""CONNET in the kernel: the plant's packets are all accounted for, a law holds its delay, and what is kept stands."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from linux_support import kernel
from places import EXPERIMENTS

from netctrl.laws.tracking.tracking import start_tracking, step_tracking, tracking_gains
from netctrl.linux.kernel.qdisc import TbfOptions


@pytest.fixture
def plants(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("linux.connet_plant")


@pytest.fixture
def loops(plants):
    return importlib.import_module("linux.connet_loop")


def stored_law(loops):
    """From the first repeat's trace on the link of 20 Mbit/s, as it is kept."""
    data = importlib.import_module("linux.virtual_connet").STUDY.read()
    part = data[(data.link == "20 Mbit/s") & (data.kind == "trace") & (data["repeat"] == 1)]
    return loops.designed(loops.netctrl.identify(loops.trace(part, 0.5)).model).law


def test_the_network_has_a_regulator_for_each_source_and_one_bottleneck(plants) -> None:
    plant = plants.Plant()
    links = {link.id: link for link in plants.network(plant).links}
    assert {"s1r", "s2r", "s3r", "pr", "rh"} <= links.keys()
    assert links["rh"].capacity == plant.capacity and links["rh"].buffer == plant.buffer
    assert all(links[f"{name}r"].buffer == plant.waiting_bytes for name in plants.SOURCES)
    assert plant.offered * len(plants.SOURCES) > plant.capacity, "without control it overflows"
    assert plant.offered + plant.premium_rate < plant.capacity < 2 * plant.offered + plant.premium_rate


def test_the_papers_units_are_those_of_a_link_five_times_as_fast(loops) -> None:
    scale = loops.PAPERS_LINK
    assert scale.outputs(np.array([1.0, 0.5])) == pytest.approx([0.56, 0.1])
    assert loops.Scale().outputs(np.array([1.0, 0.5])) == pytest.approx([1.0, 0.5])
    assert loops.printed().law.high[0] * scale.rate == pytest.approx(19.0)


class Straight:
    """A link whose delay is a line in the rate, in place of the kernel's."""

    def __init__(self, plants, dead_band: float = 0.0) -> None:
        self.plants, self.plant, self.failed = plants, plants.Plant(dead_band=dead_band), frozenset()
        self.rate = plants.OPEN / 1e6

    def advance(self, rate: float):
        if abs(rate - self.rate) > self.plant.dead_band * self.rate:
            self.rate = rate
        return self.plants.Sample(self.rate, max(0.3 * self.rate - 3.0, 0.02), 0.5, 250, 0, self.rate, 0.0)


def test_a_law_settles_on_a_line_also_behind_a_dead_band(plants, loops) -> None:
    way = loops.Way(stored_law(loops))
    for band, within in ((0.0, 0.005), (0.01, 0.05)):
        frame = loops.track(Straight(plants, band), way, [(1.8, 0.9)] * 80, first=10.0)
        assert frame.delay_ms[40:].mean() == pytest.approx(1.8, rel=within)
        assert (frame.rate <= loops.LIMITS[1]).all()


def test_the_loop_is_the_runtime_law_where_nothing_is_in_between(plants, loops) -> None:
    law, link = stored_law(loops), Straight(plants)
    frame = loops.track(link, loops.Way(law), [(1.8, 0.9)] * 20, first=10.0)
    gains = tracking_gains(law)
    state = start_tracking(gains, np.array([10.0]))
    for k in range(20):
        assert frame.rate[k] == pytest.approx(state.applied[0], rel=1e-12)
        measured = np.array([frame.delay_ms[k], frame.jitter_ms[k]])
        state = step_tracking(gains, state, measured, np.array([1.8, 0.9]))


def test_what_cannot_be_had_is_held_at_the_limit_and_left_again(plants, loops) -> None:
    way = loops.Way(stored_law(loops))
    reference = [(50.0, 1.0)] * 40 + [(1.8, 0.9)] * 40
    frame = loops.track(Straight(plants), way, reference, first=10.0)
    assert frame.rate[20:40].to_numpy() == pytest.approx(loops.LIMITS[1])
    assert (frame.commanded[20:39] >= loops.LIMITS[1]).all()
    assert frame.delay_ms[60:].mean() == pytest.approx(1.8, rel=0.01)


@kernel
def test_every_packet_is_counted_and_regulators_have_the_rate_asked_for(plants) -> None:
    with plants.KernelLink(plants.Plant(), 1.5, 1) as link:
        link.failed = frozenset({2})
        samples = [link.advance(12.0), link.advance(12.0 * 1.005), link.advance(6.0)]
        rates = [TbfOptions.decode(each.qdisc(index).options).rate for each, index in link._regulators]
        books = link.close_books()
    assert rates == [250_000, 250_000, 125_000_000]
    assert [each.rate for each in samples] == [12.0, 12.0, 6.0], "a change within the dead-band isn't made"
    for sent, regulator in zip(books.sent, books.regulators, strict=True):
        assert regulator.packets + regulator.drops == sent
        assert regulator.backlog_packets == 0
    arrived = sum(each.packets for each in books.regulators) + books.premium_sent
    assert books.bottleneck.packets + books.bottleneck.drops == arrived
    assert books.premium_received <= books.premium_sent


@kernel
def test_a_law_in_the_kernel_is_far_nearer_its_reference_than_no_control(plants, loops) -> None:
    reference, start, periods = 1.5, 8, 24
    with plants.KernelLink(plants.Plant(), 0.5 * (periods + 1), 2) as link:
        way = loops.Way(stored_law(loops))
        frame = loops.track(link, way, [(reference, 0.9)] * periods, start=start, first=14.0)
    uncontrolled = abs(frame.delay_ms[3:start].mean() - reference)
    controlled = abs(frame.delay_ms[start + 8 :].mean() - reference)
    assert controlled < 0.5 * uncontrolled
    assert (frame.rate[start + 1 :] <= loops.LIMITS[1]).all()
