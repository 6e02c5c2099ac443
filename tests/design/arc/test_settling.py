"""The nonlinear check of ARC designs: where it rests, where it cycles, and that the simulator's fluid agrees."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.design.arc.settling import settle
from netctrl.frequency.branch_bound import Sector
from netctrl.frequency.sampled_gain import greatest_gain
from netctrl.laws.aqm.fluid import PROBABILITY
from netctrl.model.design.arc import ArcSetting
from netctrl.plants.linearize import standing_queue
from netctrl.plants.tcp_response import arc_response
from netctrl.sim.fluid.kernel import advance
from netctrl.sim.fluid.onset import _near_rest


@pytest.mark.parametrize(
    ("setting", "crossover"),
    [
        (ArcSetting(capacity_packet_per_s=1250.0), 0.22),
        (ArcSetting(capacity_packet_per_s=1250.0, utilization=1.0, target_queue_packets=100.0), 0.3),
        (ArcSetting(capacity_packet_per_s=1250.0, epoch_s=0.02), 0.3),  # some epochs to a step
        (ArcSetting(capacity_packet_per_s=1250.0, epoch_s=2.4), 0.2),
    ],
    ids=["no queue", "queue", "short epochs", "long epochs"],
)
def test_a_gentle_gain_rests_in_the_equilibrium(setting: ArcSetting, crossover: float) -> None:
    limit = greatest_gain(arc_response(setting), (50.0, 50.0), (0.5, 0.5), Sector()).found
    found = settle(50.0, 0.5, setting, 0.15 * limit, crossover)
    assert not found.oscillates
    assert found.utilization == pytest.approx(min(1.0, setting.utilization), abs=2e-3)
    assert found.queue_packets == pytest.approx(standing_queue(setting), abs=1.0)


@pytest.mark.parametrize(("share", "cv", "utilization"), [(0.9, 0.49, 0.874), (0.7, 0.39, None)])
def test_the_limit_cycles_of_the_theory_note(share: float, cv: float, utilization: float | None) -> None:
    """N = 300, d = .1 at parts of the undelayed limit: theory note certify, section 2, by another integration."""
    setting = ArcSetting(capacity_packet_per_s=1250.0, epoch_s=0.1)
    found = settle(300.0, 0.5, setting, share * 1.62987674e-3, 1.8)
    assert found.oscillates
    assert found.probability_cv == pytest.approx(cv, rel=0.15)
    if utilization is not None:
        assert found.utilization == pytest.approx(utilization, abs=0.03)


def test_at_very_short_epochs_a_loop_of_45_degrees_swings() -> None:
    """The law reads the queue at each epoch: overshoot is answered d/tau times too strongly, and it never settles."""
    setting = ArcSetting(capacity_packet_per_s=1250.0, epoch_s=0.002)
    alpha = greatest_gain(arc_response(setting), (50.0, 50.0), (0.5, 0.5), Sector(10.0**-0.3, np.pi / 4.0)).found
    assert settle(50.0, 0.5, setting, alpha, 0.27).oscillates


@pytest.mark.parametrize("share", [0.3, 1.3])
def test_the_simulators_fluid_says_the_same(share: float) -> None:
    """Its own kernel, fifty steps a round trip, from one packet and no marks."""
    setting = ArcSetting(capacity_packet_per_s=1250.0, epoch_s=0.5)
    response = arc_response(setting)
    alpha = share * greatest_gain(response, (100.0, 100.0), (0.5, 0.5), Sector()).found
    ours = settle(100.0, 0.5, setting, alpha, 0.5)
    ready = _near_rest(alpha, 100.0, 0.5, setting)
    ready.state.window[:], ready.state.rate[:] = 1.0, 2.0
    ready.state.signal[:] = ready.state.law[:, PROBABILITY] = 0.0
    advance(ready.plant, ready.state, ready.record, np.zeros((0, ready.steps)), 0, ready.steps)
    p = ready.record.links[5, 0]
    p = p[len(p) // 2 :]
    cv = float(p.std() / p.mean())
    assert ours.oscillates == (cv > 0.05)
    assert max(ours.probability_cv, 0.02) == pytest.approx(max(cv, 0.02), rel=0.15)
