"""Loops found from a law's own step: those of implementations that somebody linearised, and closed forms."""

from __future__ import annotations

import importlib
import sys
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT

import netctrl
from netctrl.certificates.from_step import by_step
from netctrl.certificates.pi_laws import pi2, pie
from netctrl.certificates.red import RedSubject, red
from netctrl.certificates.subject import PiSubject
from netctrl.core.errors import InvalidValue
from netctrl.core.register import QUEUE_LAWS
from netctrl.frequency.sampled_stability import stable_gains
from netctrl.laws.aqm.law import QueueLaw, QueueRecord, Seen, clip
from netctrl.plants.queues.queue_laws import SampledPi, WindowClass
from netctrl.plants.queues.window_response import RENO

GAINS = st.floats(0.01, 2.0)


def pi_subject(name: str, **parameters: float) -> PiSubject:
    found = by_step(QUEUE_LAWS[name], **parameters)
    assert isinstance(found, PiSubject)
    return found


def same_rungs(found: PiSubject, known: PiSubject) -> None:
    assert len(found.rungs) == len(known.rungs)
    for (low, high, gains), (start, end, others) in zip(found.rungs, known.rungs, strict=True):
        assert (low, high) == pytest.approx((start, min(end, 1.0)), rel=1e-9)
        assert gains.integral == pytest.approx(others.integral, rel=1e-7)
        assert gains.proportional == pytest.approx(others.proportional, rel=1e-7)
        assert (gains.target_s, gains.update_s) == pytest.approx((others.target_s, others.update_s))


@settings(max_examples=5, deadline=None)
@given(alpha=GAINS, beta=GAINS, target=st.floats(0.005, 0.1))
def test_pie_has_the_ladder_of_rfc_8033_and_pi2_squares(alpha: float, beta: float, target: float) -> None:
    gains = {"alpha": alpha, "beta": beta}
    same_rungs(pi_subject("pie", **gains, target=target), pie(**gains, target_s=target, implementation="rfc"))
    found, known = pi_subject("pi2", **gains, target=target), pi2(**gains, target_s=target)
    same_rungs(found, known)
    assert (found.power, found.coupling) == (known.power, known.coupling) == (2.0, 2.0)


@settings(max_examples=5, deadline=None)
@given(
    low=st.integers(10_000, 100_000),
    width=st.integers(10_000, 200_000),
    most=st.floats(0.02, 0.6),
    log=st.integers(1, 9),
)
def test_red_has_its_lines_and_its_weight(low: int, width: int, most: float, log: int) -> None:
    high = low + width
    law = {"min_threshold": float(low), "max_threshold": float(high), "max_probability": most, "weight": 2.0**-log}
    found = by_step(QUEUE_LAWS["red"], **law)
    known = red(
        limit_bytes=10**9, min_bytes=low, max_bytes=high, probability=most, weight_log=log, gentle=True, ecn=True
    )
    assert isinstance(found, RedSubject)
    assert found.spaced and found.weight == pytest.approx(known.weight, rel=1e-6)
    for line, other in zip(found.lines, known.lines, strict=True):
        assert tuple(line) == pytest.approx(tuple(other), rel=1e-6)  # Linux's probability is a multiple of 2^-32
    switch = by_step(QUEUE_LAWS["red"], **law | {"gentle": False, "spaced": False, "weight": 1.0})
    assert isinstance(switch, RedSubject)
    assert (switch.weight, switch.spaced, len(switch.lines)) == (pytest.approx(1.0), False, 1)
    assert tuple(switch.lines[0]) == pytest.approx((most / width, low, 0.0, most), rel=1e-9)


def test_gains_of_a_queue_in_packets_depend_on_the_link() -> None:
    """Hollot's PI has alpha (q − q_ref) − beta (q_old − q_ref): (alpha − beta) C and beta C a second of delay."""
    found = pi_subject("pi", alpha=2e-4, beta=1.5e-4, reference_queue=45e3, frequency_hz=160.0)
    (loop,) = found.loops((WindowClass(RENO),), 2e3, 1500.0)
    assert isinstance(loop.law, SampledPi)
    assert found.in_bytes
    assert loop.law[:4] == pytest.approx((0.1, 0.3, 1 / 160.0, 0.015), rel=1e-7)
    with pytest.raises(InvalidValue, match="one rate"):
        netctrl.certify("pi", rtt_s=0.05, flows=10.0, capacity_bit_per_s=(1e6, 1e7))


@pytest.fixture
def blue(monkeypatch) -> QueueLaw:
    monkeypatch.syspath_prepend(ROOT / "examples" / "blue")
    monkeypatch.delitem(sys.modules, "netctrl_blue", raising=False)
    return importlib.import_module("netctrl_blue").BLUE


@pytest.mark.parametrize("increase", [0.002, 0.02, 0.08])
def test_blue_can_jump_by_the_slope_of_its_band(blue: QueueLaw, increase: float) -> None:
    """Updates that are seldom see a queue at rest: q = N w(p) − C tau, so −1 is met where increase k |dq/dp| = 2."""
    flows, tau, rate, long = 20.0, 0.04, 20e6 / 12e3, 60e3 / 1500.0
    subject = by_step(blue, increase=increase, decrease=increase / 10.0, freeze_time=8.0, long_queue=60e3)
    assert subject.gains["integral"] == pytest.approx(increase / (long / 2.0) * 1e3, rel=1e-6)  # of 1000 packets/s
    (loop,) = subject.loops((WindowClass(RENO),), rate, 1500.0)
    window = (rate * tau + long / 2.0) / flows
    slope = flows * window**3 / 4.0  # p = 2/w²
    assert loop.standing(0.1) == pytest.approx(long / 2.0 / rate)
    assert stable_gains(loop, flows, tau).factor == pytest.approx(2.0 / (increase / (long / 2.0) * slope), rel=1e-3)
    assert "0 and 40 packets" in " ".join(subject.notes)


class OwnQueue(QueueRecord, frozen=True, kw_only=True, tag="own"):
    gain: float = 0.1


class OwnParameters(NamedTuple):
    gain: float


class OwnState(NamedTuple):
    probability: float
    old: float
    older: float


def remembers(state: OwnState, seen: Seen, p: OwnParameters) -> OwnState:
    delay = seen.backlog / seen.capacity
    return OwnState(clip(state.probability + p.gain * (delay - 0.02) + 0.1 * (delay - state.older)), delay, state.old)


def bends(state: OwnState, seen: Seen, p: OwnParameters) -> OwnState:
    delay = seen.backlog / seen.capacity
    return OwnState(clip(state.probability * (1.0 + p.gain * (delay - 0.02))), delay, 0.0)


def relay(state: OwnState, seen: Seen, p: OwnParameters) -> OwnState:
    return OwnState(clip(state.probability + (p.gain if seen.backlog > 30.0 else -p.gain)), 0.0, 0.0)


def grows(state: OwnState, seen: Seen, p: OwnParameters) -> OwnState:
    factor = 1.0 + p.gain if seen.backlog > 30.0 else 1.0 - p.gain if seen.backlog == 0.0 else 1.0
    return OwnState(clip(state.probability * factor), 0.0, 0.0)


def by_delay(state: OwnState, seen: Seen, p: OwnParameters) -> OwnState:
    return OwnState(clip(p.gain * (seen.backlog / seen.capacity - 0.02)), 0.0, 0.0)


def curve(state: OwnState, seen: Seen, p: OwnParameters) -> OwnState:
    return OwnState(clip(p.gain * (seen.backlog / seen.capacity) ** 2), 0.0, 0.0)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (remembers, "remembers more than the queue at its last update"),
        (bends, "its gains change with its output without steps"),
        (relay, "its output jumps at 30 packets, where it has no slope"),
        (grows, "by more or less with its output"),
        (by_delay, "its lines over bytes depend on the link"),
        (curve, "isn't a line from"),
    ],
)
def test_a_law_without_a_linear_loop_is_refused(step, says: str) -> None:
    law = QueueLaw(
        OwnQueue, OwnParameters, OwnState, lambda record, *_: OwnParameters(record.gain), step, lambda _: 0.02
    )
    with pytest.raises(InvalidValue, match=says):
        by_step(law)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("arc", "answers the rate of arrivals"),
        ("avq", "doesn't settle"),
        ("sfc", "answers the rate of arrivals"),
        ("threshold", "isn't a line"),
    ],
)
def test_so_are_laws_of_netctrl(name: str, says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        netctrl.certify(name, rtt_s=0.05, flows=10.0, capacity_bit_per_s=1e7)
