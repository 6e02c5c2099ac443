"""Windows that acknowledgements clock: against the equations they come from, sourced means, and packets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.plants.queues.clocked_response import (
    ClockedMode,
    clocked_leading,
    clocked_missing,
    clocked_most,
    clocked_response,
)
from netctrl.plants.queues.window_response import (
    LINUX_CRENO,
    LINUX_CRENO_NOECN,
    LINUX_RENO,
    LINUX_RENO_NOECN,
    RENO,
    RFC_CRENO,
    RFC_RENO,
    Sender,
)
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.run import simulate_packets

SOON = RFC_RENO._replace(name="soon", notice=2.0)
"""Both a cut of its own length and drops."""
CLOCKED = [LINUX_RENO, RFC_RENO, LINUX_CRENO, RFC_CRENO, LINUX_RENO_NOECN, LINUX_CRENO_NOECN, SOON]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(600)
AGES, WEIGHTS = 0.5 * (1.0 + NODES), 0.5 * WEIGHTS
"""Quadrature from 0 to 1."""
senders = st.sampled_from(CLOCKED)
probabilities = st.floats(1e-7, 0.5)


def Q(sender: Sender, p: float, sigma: complex) -> complex:
    ln_w, mode = sender.mode(np.log(p), 0.0)
    return clocked_response(sender, sigma, turned(sender, mode, sigma), sender.increase / np.exp(ln_w), mode)


def turned(sender: Sender, mode: ClockedMode, sigma: complex) -> list[complex]:
    return [np.exp(-f * mode.waits * sigma) for f in sender.turns(mode)]


def moved(sender: Sender, p: float, sigma: complex, mark: complex, early: complex = 1.0) -> complex:
    """The queue's answer to marks or drops, of which acknowledgements with this phase tell."""
    mode = sender.mode(np.log(p), 0.0)[1]
    missing = clocked_missing(sigma, turned(sender, mode, sigma), mode, early, mark) if sender.notice else 0.0
    return Q(sender, p, sigma) * mark + missing


@given(senders, probabilities, st.floats(1e-3, 300.0))
def test_the_response_solves_the_balances_of_hits_deaf_flows_and_cuts(sender: Sender, p: float, u: float) -> None:
    """Unknowns: the hits of an open flow h, the deaf share c, the share that is cutting, and the window."""
    ln_w, mode = sender.mode(np.log(p), 0.0)
    sigma, echo = 1j * u * mode.waits, np.exp(-1j * u * mode.waits)  # of the sender's own round trip
    flight = np.exp(ln_w) * mode.waits
    assert sender.notice or sender.held == 0.0 or flight == pytest.approx(np.exp(ln_w) + sender.held, rel=0.15)
    k, m, f, t = sender.increase / flight, mode.hits, sender.spread, mode.notice
    o = 1.0 / (1.0 + m * (1.0 + t))
    F, E = (1.0 - np.exp(-(1.0 + t) * sigma)) / sigma, np.exp(-f * sigma)
    G = (1.0 - E) / (f * sigma)
    rows = np.array(
        [
            # δh/h = e^(−sigma) δp/p − δc/o, at a constant rate of acknowledgements
            [1.0, 1.0 / o, 0.0, 0.0],
            # closed flows: hits of the last 1 + t round trips, and windows of flows that were hit as long ago
            [-m * o * F, 1.0, 0.0, -m * o * np.exp(-(1.0 + t) * sigma)],
            # cutting flows, as a share: hits of f of a round trip, t ago; growth is their cuts: o a/w = b H
            [-k * o * G * np.exp(-t * sigma), 0.0, 1.0, -k * o * E * np.exp(-t * sigma)],
            # sigma δw/w = growth of open flows − cuts
            [0.0, k, 1.0, sigma + k * o],
        ]
    )
    window = np.linalg.solve(rows, np.array([echo, 0.0, 0.0, 0.0]))[3]
    # Each drop is missing until it is known, and then made good evenly over the cut's round trip.
    made_good = np.exp(-sigma * AGES) @ (WEIGHTS * (1.0 - AGES))
    missing = (1.0 - np.exp(-sigma * (1.0 + t))) / sigma + np.exp(-sigma * (1.0 + t)) * made_good
    missing = missing * mode.dropped * mode.waits
    assert moved(sender, p, 1j * u, echo) == pytest.approx(missing - mode.waits * window, rel=1e-8, abs=1e-13)


@given(senders, probabilities)
def test_windows_and_probabilities_are_each_other_s_inverse_and_the_exponent_is_their_slope(
    sender: Sender, p: float
) -> None:
    window = sender.window(p, 0.1)
    assert sender.probability(window) == pytest.approx(p, rel=1e-9)
    step = 1e-5
    slope = np.log(sender.window(p * np.exp(-step), 0.1) / sender.window(p * np.exp(step), 0.1)) / (2.0 * step)
    assert sender.slopes(p, 0.1)[0] == pytest.approx(slope, rel=1e-6)
    low, high = sender.exponents
    assert window < 2.0 or low <= sender.slopes(p, 0.1)[0] <= high


@given(senders, st.floats(1e-9, 3.0))
def test_every_small_window_has_what_would_mark_it(sender: Sender, window: float) -> None:
    """Also where that is no probability: a link with too many flows is seen by their windows."""
    assert sender.window(sender.probability(window), 0.1) == pytest.approx(window, rel=1e-9)
    more = sender.window(sender.probability(window) * np.array([1.0, 1.5]), 0.1)
    assert more[1] < more[0]


@pytest.mark.parametrize(("window", "marks"), [(6.0, 1.231), (10.0, 1.356), (20.0, 1.506)])
def test_linux_marks_as_often_as_the_equilibrium_says(window: float, marks: float) -> None:
    """p w² of 100 Reno flows under dualpi2 of Linux 7.2 at a round trip of 130 ms, with no packet lost."""
    assert float(LINUX_RENO.probability(window)) * window**2 == pytest.approx(marks, rel=0.04)


@pytest.mark.parametrize(
    ("sender", "window", "drops"),
    [
        (LINUX_RENO_NOECN, 6.0, 1.096),
        (LINUX_RENO_NOECN, 8.0, 1.201),
        (LINUX_RENO_NOECN, 10.0, 1.279),
        (LINUX_RENO_NOECN, 14.0, 1.385),
        (LINUX_RENO_NOECN, 20.0, 1.478),
        (LINUX_CRENO_NOECN, 6.0, 0.911),
        (LINUX_CRENO_NOECN, 10.0, 1.138),
        (LINUX_CRENO_NOECN, 20.0, 1.398),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_linux_loses_as_often_as_the_equilibrium_says(sender: Sender, window: float, drops: float) -> None:
    """p w² of 100 flows under pie of Linux 7.2 without ECN at a round trip of 60 ms and a target of 20 ms."""
    assert float(sender.probability(window)) * window**2 == pytest.approx(drops, rel=0.04)


def test_the_mean_of_large_windows_is_the_published_one() -> None:
    """E[W] √p = 1.3098 for Reno, √(2/π) Π (1 − 4^−n)/(1 − 2 · 4^−n) (Ott, Kemperman, Mathis 1996, section 4)."""
    for sender in (LINUX_RENO, RFC_RENO):
        assert sender.window(1e-10, 0.1) * 1e-5 == pytest.approx(1.3098, abs=1e-4)


@pytest.mark.parametrize("sender", CLOCKED, ids=lambda each: each.name)
def test_leading_powers_and_the_bound_at_high_frequencies(sender: Sender) -> None:
    for p in (1e-4, 0.02, 0.15):
        ln_w, mode = sender.mode(np.log(p), 0.0)
        terms = clocked_leading(sender, sender.increase / np.exp(ln_w), mode)
        errors = []
        for u in (300.0, 3000.0):
            sigma = 1j * (u + np.linspace(0.0, 70.0, 3000))
            lead = sum(
                np.exp(-np.dot(counts, sender.turns(mode)) * mode.waits * sigma)
                * (first / sigma**2 + second / sigma**3)
                for counts, first, second in terms
            )
            errors.append(np.abs(moved(sender, p, sigma, 1.0, early=0.0) - lead).max() * u**3)
            beyond = 1j * u * 10.0 ** np.linspace(0.0, 1.0, 500)
            assert np.abs(moved(sender, p, beyond, np.exp(-beyond))).max() <= clocked_most(sender, p, u)
        assert errors[1] < 0.15 * errors[0]  # falls as 1/sigma⁴


@pytest.mark.parametrize("window", [5.0, 8.0, 15.0, 30.0])
def test_packets_are_marked_as_often_as_the_equilibrium_says(window: float) -> None:
    flows, rtt, target = 400, 0.1, 0.02
    rate = flows * window / (rtt + target) * 12000.0
    queue = Pi2Queue(target=target, alpha=0.05, beta=0.5)
    link = Link(id="line", source="a", target="b", capacity=rate, buffer=rate / 8.0, queue=queue)
    bulk = Flow(id="tcp", path=("line",), rtt=rtt, start=(0.0, 2.0), count=flows, sender="reno")
    found = simulate_packets(
        Scenario(
            name="marks", duration=60.0, warmup=20.0, interval=0.1, packet_size=1500.0, links=(link,), flows=(bulk,)
        )
    )
    line = found.of("line")
    assert line["utilization"] > 0.999
    expected = float(RFC_RENO.probability(window))
    assert line["marks"] == pytest.approx(expected, rel=0.08)
    assert float(RENO.probability(window)) > 1.15 * line["marks"]  # the fluid with rates is further off
