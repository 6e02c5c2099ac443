"""Noise of a queue's delay by chance, against closed forms of windows and simulations of what is drawn."""

from dataclasses import replace
from math import pi

import numpy as np
import pytest

from netctrl.certificates.box import box_of
from netctrl.certificates.certify import subject_of
from netctrl.certificates.loops import loop_at, read_mixture
from netctrl.plants.queues.queue_loop import QueueLoop
from netctrl.plants.queues.shot_noise import cut_variation, delay_density, marks_density
from netctrl.plants.queues.window_response import SENDERS

RATE, RTT = 5000.0, 0.05  # packet/s, s


def loop_of(law: str, sender: str, flows: float, **parameters: float) -> QueueLoop:
    subject = subject_of(law, parameters)
    box = box_of(subject, rtt_s=RTT, flows=flows, capacity_bit_per_s=RATE * 12_000.0, senders=sender)
    return loop_at(subject, read_mixture(sender), box, flows, RTT)


def deviation(loop: QueueLoop, flows: float, **of: bool) -> float:
    """Of the delay without the law's answer, up to frequencies at which nothing is left [s]."""
    omega = np.geomspace(1e-4, 1e4, 4000)
    return float(np.sqrt(np.trapezoid(delay_density(loop, omega, flows, RTT, **of), omega) / pi))


@pytest.mark.parametrize(("sender", "increase", "decrease"), [("reno", 1.0, 0.5), ("creno", 9.0 / 17.0, 0.3)])
def test_windows_under_independent_marks_have_the_variance_of_their_law(
    sender: str, increase: float, decrease: float
) -> None:
    """E[w²] = a/(b p) and E[w] = kappa/√p of windows that are hit in proportion to their size (Dumas et al. 2002). N
    flows move R independently: a deviation of R √(E[w²]/E[w]² − 1)/√N, without a law that answers."""
    flows = 20.0
    loop = loop_of("pi2", f"rfc-{sender}", 0.1 * flows)
    loop = replace(loop, rate=10.0 * RATE)  # windows of hundreds of packets, which hardly miss a mark
    kept = 1.0 - decrease
    product = np.prod([(1.0 - kept ** (2 * n)) / (1.0 - kept ** (2 * n - 1)) for n in range(1, 200)])
    kappa = np.sqrt(2.0 * increase / pi) * product
    spread = np.sqrt(increase / decrease / kappa**2 - 1.0)
    expected = (RTT + 0.015) * spread / np.sqrt(flows)
    assert deviation(loop, flows) == pytest.approx(expected, rel=0.05)


def test_the_density_falls_as_the_number_of_flows_at_the_same_rate_for_each() -> None:
    omega = np.geomspace(1e-2, 100.0, 50)
    loop = loop_of("pi2", "reno", 10.0)
    twice = delay_density(replace(loop, rate=2.0 * RATE), omega, 20.0, RTT)
    assert twice == pytest.approx(0.5 * delay_density(loop, omega, 10.0, RTT), rel=1e-9)


@pytest.mark.parametrize(("law", "limit"), [("pie", 1.0 / 1.8495**2), ("red", 1.0 / 3.0)])
def test_spaced_marks_are_as_regular_as_their_intervals(law: str, limit: float) -> None:
    """At low frequencies c² is the intervals' variance over their mean's square: .85/P and an exponential time of PIE,
    an even one of RED; at frequencies far above the marks' own it is 1."""
    of = {"limit_bytes": 400_000, "min_bytes": 30_000, "max_bytes": 90_000, "burst": 55} if law == "red" else {}
    loop = loop_of(law, "reno", 20.0, **of)
    x = float(loop.output(20.0, RTT))
    p = loop.classes[0].factor * x

    slow, fast = marks_density(loop, np.array([1e-4, 1e3]) * RATE * p, RATE * p, RATE)
    assert slow == pytest.approx(limit, rel=1e-3)
    assert fast == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("name", ["reno", "creno"])
def test_what_cuts_take_varies_as_in_a_simulation_of_windows(name: str) -> None:
    """400,000 cuts of windows that grow by a in a round trip and are hit at the rate p w."""
    sender, p = SENDERS[name], 1e-4
    random, window, cuts = np.random.default_rng(1).exponential(size=400_000), 100.0, []
    for each in random.tolist():
        start = window
        window = (start * start + 2.0 * sender.increase * each / p) ** 0.5  # ∫ p w dt is exponential
        cuts.append(window)
        window *= 1.0 - sender.decrease
    cuts = np.array(cuts[1000:])
    assert cut_variation(sender, p, RTT) == pytest.approx(cuts.var() / cuts.mean() ** 2, rel=0.02)


def test_a_scalable_senders_marks_are_all_alike() -> None:
    """Of DCTCP each mark counts and takes the same: at low frequencies the density is (R/N w)² of Poisson marks."""
    loop = loop_of("pi2", "dctcp", 20.0)
    x = float(loop.output(20.0, RTT))
    p = loop.classes[0].factor * x ** loop.classes[0].power
    trip = RTT + 0.015
    still = float(delay_density(loop, np.array([1e-4]), 20.0, RTT)[0])
    assert still == pytest.approx(trip**2 / (RATE * p), rel=0.02)  # w ~ 1/p: elasticity 1


def test_a_dropped_packet_is_missing_until_it_is_sent_again() -> None:
    """At high frequencies and small windows a drop empties the queue by its own packet, before any window falls."""
    loop = loop_of("pie", "rfc-reno", 60.0)
    assert deviation(loop, 60.0, drops=True) > 1.02 * deviation(loop, 60.0)
    omega = np.array([3e3])
    x = float(loop.output(60.0, RTT))
    marks = RATE * loop.classes[0].factor * x
    own = marks / (omega[0] * RATE) ** 2  # each is a step of 1/C, drawn at chance: marks/(C s)²
    away = (RTT + 0.015) * (1.0 + 3.0 / float(loop.windows(60.0, RTT)[0]))
    turned = abs(1.0 - np.exp(-1j * omega[0] * away))
    missing = delay_density(loop, omega, 60.0, RTT, drops=True) - delay_density(loop, omega, 60.0, RTT)
    assert missing[0] == pytest.approx(own * turned**2, rel=0.3)
