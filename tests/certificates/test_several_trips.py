"""Certificates of flows of several round-trip times that acknowledgements clock: points, boxes, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_fluid import loop_growth

from netctrl.certificates.box import box_of
from netctrl.certificates.certify import certify
from netctrl.certificates.loops import classes_of, read_mixture
from netctrl.certificates.pi_laws import dualpi2, pi2
from netctrl.certificates.search import box_points, least_near
from netctrl.checks.designs import queue_design
from netctrl.core.errors import InvalidValue, Status
from netctrl.frequency.sampled_stability import stable_gains

LINK = {"flows": 60.0, "capacity_bit_per_s": 100e6}


@pytest.mark.slow
def test_a_point_has_the_limit_of_the_fluid_and_proves_nothing() -> None:
    law, mixture, stretches = dualpi2(), read_mixture("linux-reno+linux-creno"), (1.0, 3.0)
    found = certify(law, rtt_s=0.05, **LINK, senders=mixture.text, stretches=stretches).certificate
    at = found.sampled
    assert found.status is (Status.ADMISSIBLE if at.gain_margin_db >= 6.0 else Status.STABLE)
    assert at.gain_margin_db_proved is None
    assert any("nothing is proved" in note for note in found.warnings)
    (loop,) = law.loops(classes_of(law, mixture, stretches), 100e6 / 12000.0, 1500.0)
    limits, factor = stable_gains(loop, 60.0, 0.05), 10.0 ** (at.gain_margin_db / 20.0)
    period = 2.0 * np.pi * loop.epoch / limits.upper_angle
    assert loop_growth(loop, 60.0, 0.05, 0.97 * factor, 60.0, period) < 0.0
    assert loop_growth(loop, 60.0, 0.05, 1.03 * factor, 60.0, period) > 0.0
    # the phase margin is at a gain crossover, the delay margin that or a later turn of it
    theta = np.linspace(1e-3, 1.0, 20_000)
    L = loop.at(theta, 60.0, 0.05)
    i = np.flatnonzero(np.diff(np.abs(L) > 1.0))
    phases = np.abs(np.angle(-L[i]))
    assert at.phase_margin_deg == pytest.approx(np.degrees(phases.min()), abs=0.1)
    assert at.delay_margin_s == pytest.approx((np.angle(-L[i]) % (2 * np.pi) / theta[i]).min() * 0.016, rel=0.02)
    assert at.disk_margin == pytest.approx((2.0 * np.abs(1.0 + L) / np.abs(1.0 - L)).min(), rel=1e-3)


@pytest.mark.slow
def test_a_box_has_no_worse_point_among_those_between_its_grid() -> None:
    box = {"rtt_s": 0.03, "flows": (40.0, 80.0), "capacity_bit_per_s": 100e6}
    kind = {"senders": "rfc-reno", "stretches": (1.0, 2.0)}
    found = certify(pi2(), **box, **kind).certificate
    at = found.sampled
    assert at.gain_margin_db_proved is None
    assert found.warnings[-1].endswith("at 5 points and at those near the worst of them")
    (loop,) = pi2().loops(classes_of(pi2(), read_mixture("rfc-reno"), (1.0, 2.0)), 100e6 / 12000.0, 1500.0)
    rng = np.random.default_rng(5)
    for _ in range(6):
        factor = stable_gains(loop, rng.uniform(40.0, 80.0), 0.03).factor
        assert 20.0 * np.log10(factor) >= at.gain_margin_db - 0.01


@pytest.mark.slow
def test_steps_around_a_point_lead_to_the_worst_corner() -> None:
    law, kind = pi2(), {"senders": "rfc-reno", "stretches": (1.0, 2.0)}
    box = box_of(law, (0.02, 0.04), (40.0, 80.0), 100e6, None, 1500.0, **kind)
    (loop,) = law.loops(classes_of(law, read_mixture("rfc-reno"), (1.0, 2.0)), box.rate, 1500.0)
    points = box_points(loop, box)
    assert len(points) == 25
    flows, rtt, factor = least_near(loop, box, 46.0, 0.037)
    assert (flows, rtt) == (40.0, 0.04)
    assert factor == stable_gains(loop, 40.0, 0.04).factor == min(stable_gains(loop, *each).factor for each in points)


@pytest.mark.parametrize(
    ("law", "arguments", "named"),
    [
        ("red", {"parameters": {"limit_bytes": 1_000_000, "ecn": True}}, "stretches"),
        ("pi2", {"senders": "linux-reno-noecn+linux-creno"}, "sender"),
        ("pi2", {"senders": "linux-reno+reno"}, "sender"),
    ],
)
def test_what_is_not_known_of_several_round_trips_is_refused(law: str, arguments: dict, named: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        certify(law, **{"rtt_s": 0.05, **LINK, "senders": "rfc-reno", "stretches": (1.0, 2.0), **arguments})
    assert refused.value.argument == named


def test_a_design_is_refused_since_it_is_proved() -> None:
    with pytest.raises(InvalidValue, match="proved over its box"):
        queue_design("pi2", rtt_s=0.05, **LINK, senders="rfc-reno", stretches=(1.0, 2.0))
