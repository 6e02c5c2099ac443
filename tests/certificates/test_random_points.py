"""Certificates of random points over all that may be asked, against margins by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from queue_margins import Flows, Line, Loop, Pi

from netctrl.certificates.certify import certify
from netctrl.certificates.record import QueueReach, SampledLoop
from netctrl.core.errors import Status

SENDERS = {"reno": (1.0, 0.5, 0.0), "creno": (0.9 / 1.7, 0.3, 0.0), "dctcp": (1.0, 0.5, 1.0 / 16.0)}
MIXTURES = ("reno", "creno", "dctcp", "reno+creno", "reno+dctcp", ".2creno+.8dctcp")


def between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def mixture(rng: np.random.Generator, *, square: float, coupling: float) -> tuple[str, tuple[float, ...], list[Flows]]:
    text = str(rng.choice(MIXTURES))
    stretches = (1.0, round(between(rng, 0.3, 4.0), 2)) if rng.random() < 0.4 else (1.0,)
    parts = [part.lstrip(".0123456789") for part in text.split("+")]
    shares = [0.2, 0.8] if text.startswith(".") else [1.0 / len(parts)] * len(parts)
    classes = []
    for name, share in zip(parts, shares, strict=True):
        a, b, g = SENDERS[name]
        factor, power = (coupling if square > 1.0 else 1.0, 1.0) if g else (1.0, square)
        classes += [Flows(a, b, g, share / len(stretches), s, factor, power) for s in stretches]
    return text, stretches, classes


def compared(found: SampledLoop, status: Status, by_force: Loop) -> None:
    assert found.windows_packets == pytest.approx(by_force.w, rel=1e-6)
    assert found.queue_delay_s == pytest.approx(by_force.D, rel=1e-6)
    assert found.stable == (by_force.unstable_poles() == 0)
    assert found.gain_margin_db == pytest.approx(20.0 * np.log10(by_force.margin()), abs=2e-3, rel=2e-4)
    if not found.stable:
        assert status is Status.UNSTABLE
        return
    phase = by_force.phase_deg()
    assert found.phase_margin_deg == pytest.approx(180.0 if phase is None else phase, rel=1e-2)
    assert found.disk_margin == pytest.approx(by_force.disk(), rel=1e-2)
    assert found.gain_margin_db - 0.1 < max(found.gain_margin_db_proved, 79.95) or found.gain_margin_db > 80.0
    assert found.gain_margin_db_proved <= found.gain_margin_db
    if found.delay_margin_s is None:
        assert phase is None
    else:
        assert by_force.unstable_poles(extra=0.99 * found.delay_margin_s) == 0
        assert by_force.unstable_poles(extra=1.02 * found.delay_margin_s) > 0


@pytest.mark.parametrize("seed", range(16))
def test_pi_laws_have_the_margins_of_the_plain_sum_of_aliases(seed: int) -> None:
    rng = np.random.default_rng([24, seed])
    rtt = between(rng, 2e-5, 2.0)
    target = rtt * between(rng, 0.05, 2.0)
    trip, window = rtt + target, between(rng, 4.0, 1e4)
    update = trip * between(rng, 0.05, 10.0)
    pie = bool(seed % 2)
    alpha = update / trip**2 / window ** (2 if pie else 1) * between(rng, 1e-3, 10.0)
    beta = 0.0 if seed % 5 == 0 else alpha * trip / update * between(rng, 0.03, 30.0)
    text, stretches, classes = mixture(rng, square=1.0 if pie else 2.0, coupling=2.0)
    C = between(rng, 5.0, 3e7)
    law = {"target_s": target, "tupdate_s": update, "alpha": alpha, "beta": beta}
    found = certify(
        "pie" if pie else "pi2",
        rtt_s=rtt,
        flows=C * trip / window,
        capacity_bit_per_s=C * 12000.0,
        senders=text,
        stretches=stretches,
        parameters={**law, "implementation": "rfc"} if pie else law,
    ).certificate
    by_force = Loop(Pi(1.0, beta / alpha, update, target, age=float(pie)), tuple(classes), C, C * trip / window, rtt)
    scale = 1.0
    if pie:  # RFC 8033, Section 4.2
        x = by_force.x
        scale = next(
            s
            for most, s in ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (0.1, 2), (1, 1))
            if x < most
        )
    by_force = Loop(
        Pi(alpha / scale, beta / scale, update, target, float(pie)), tuple(classes), C, C * trip / window, rtt
    )
    assert found.sampled is not None
    compared(found.sampled, found.status, by_force)


@pytest.mark.parametrize("seed", range(6))
def test_wred_has_the_margins_of_its_loop_in_continuous_time(seed: int) -> None:
    rng = np.random.default_rng([25, seed])
    rtt, C, window = between(rng, 2e-5, 1.0), between(rng, 1e4, 1e7), between(rng, 6.0, 2e3)
    low = int(rtt * C * between(rng, 0.1, 1.0) * 1500.0) + 1
    high = low + 1 + int(low * between(rng, 0.3, 5.0))
    text, stretches, classes = mixture(rng, square=1.0, coupling=1.0)
    flows = C * (rtt + 0.5 * (low + high) / (1500.0 * C)) / window
    found = certify(
        "wred",
        rtt_s=rtt,
        flows=flows,
        capacity_bit_per_s=C * 12000.0,
        senders=text,
        stretches=stretches,
        parameters={"min_bytes": low, "max_bytes": high, "max_percent": 100},
    ).certificate
    bytes_per_s = 1500.0 * C
    line = Line(bytes_per_s / (high - low), np.inf, low / bytes_per_s, 0.5 / C)
    assert found.sampled is not None
    compared(found.sampled, found.status, Loop(line, tuple(classes), C, flows, rtt))


def test_where_dcqcn_s_rates_swing_by_themselves_no_threshold_keeps_6_db() -> None:
    given = {"kmin_bytes": 1e3, "pmax": 0.375, "rai_bit_per_s": 58e6, "counter_bytes": 1.37e6, "timer_s": 23e-6}
    given |= {"cnp_s": 76e-6, "alpha_s": 65e-6, "g": 0.42}
    for most in (1.7e3, 1e9):
        found = certify(
            "dcqcn",
            parameters={**given, "kmax_bytes": most},
            rtt_s=1.6e-3,
            flows=5.0,
            capacity_bit_per_s=1.45e9,
            packet_size_bytes=1000.0,
        ).certificate
        if most > 1e6:
            assert found.status is Status.UNSTABLE
        else:  # a rise of less than a packet, which is judged by the swing of the queue over all of it
            assert found.cycle.fluid.highest_packets > 10.0 > found.cycle.fluid.lowest_packets
        assert found.reach.smallest_max_bytes is None
        assert found.reach.longest_rtt_s is None or found.reach.longest_rtt_s < 1.6e-3


def test_dcqcn_s_reach_is_that_of_a_loop_which_smaller_gains_make_unstable() -> None:
    """It may lose 15.3 dB, gain 18.8, and is stable again below a ninetieth of its gain."""
    given = {"kmin_bytes": 438e3, "pmax": 0.0396, "rai_bit_per_s": 2.94e6, "counter_bytes": 74e3, "timer_s": 63e-6}
    given |= {"cnp_s": 23.6e-6, "alpha_s": 29.5e-6, "g": 0.0144, "f": 1}
    where = {"flows": 10.0, "capacity_bit_per_s": 60.5e9, "packet_size_bytes": 1500.0}

    def sampled(rtt: float, most: float) -> tuple[SampledLoop, QueueReach]:
        found = certify("dcqcn", parameters={**given, "kmax_bytes": most}, rtt_s=rtt, **where).certificate
        assert found.sampled is not None
        assert found.reach is not None
        return found.sampled, found.reach

    loop, reach = sampled(50e-6, 688e3)
    assert loop.gain_margin_db == pytest.approx(18.7, abs=0.3)
    assert loop.gain_reduction_db == pytest.approx(-15.3, abs=0.3)
    assert loop.phase_margin_deg == pytest.approx(8.7, abs=0.1)
    assert reach.longest_rtt_s is None  # 30 degrees are kept at none
    assert sampled(99e-6, 688e3)[0].gain_margin_db >= 6.0 > sampled(104e-6, 688e3)[0].gain_margin_db
    # Only where the loop is stable again, at a rise a thousand times as flat, are there 30 degrees.
    assert reach.smallest_max_bytes > 1e8
    flat = [sampled(50e-6, factor * reach.smallest_max_bytes)[0] for factor in (1.01, 0.99)]
    assert [each.keeps() for each in flat] == [True, False]
