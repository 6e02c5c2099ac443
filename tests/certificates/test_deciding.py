"""Deciding points of a box: verdict and shown margins agree, and no point of the box has less than they say.

`NETCTRL_RANDOM_BOXES=128 python -m pytest -m "" tests/certificates/test_deciding.py` draws that many boxes.
"""

from __future__ import annotations

import os
from math import degrees, log10

import numpy as np
import pytest

from netctrl.certificates.box import box_of
from netctrl.certificates.certify import certify, subject_of
from netctrl.certificates.loops import box_loops
from netctrl.certificates.record import QueueCertificate
from netctrl.core.errors import Status
from netctrl.frequency.margin_grid import point_margins
from netctrl.frequency.sampled_gain import gain_crossovers
from netctrl.frequency.sampled_stability import stable_gains

RED = {"limit_bytes": 900_000, "min_bytes": 30_000, "max_bytes": 250_000, "probability": 0.1, "gentle": True}
BOXES = int(os.environ.get("NETCTRL_RANDOM_BOXES", "24"))
LAWS = [
    ("pie", {}, "reno"),
    ("pie", {"ecn": True}, "linux-reno"),
    ("pie", {"implementation": "rfc"}, "reno+creno"),
    ("docsis-pie", {}, "creno"),
    ("dualpi2", {}, "reno+dctcp"),
    ("pi2", {"alpha": 0.3, "beta": 2.0}, "cubic"),
    ("red", RED, "reno"),
    ("wred", {"min_bytes": 30_000, "max_bytes": 500_000, "max_percent": 30}, "reno"),
]


def random_box(rng: np.random.Generator, one_rate: bool) -> dict:
    def ends(low: float, high: float, wide: float) -> tuple[float, float]:
        first = float(np.exp(rng.uniform(np.log(low), np.log(high))))
        return first, first * float(np.exp(rng.uniform(0.0, np.log(wide))))

    capacity = ends(5e6, 40e6, 6.0)
    flows = ends(1.0, 12.0, 4.0)
    return {
        "rtt_s": ends(4e-3, 60e-3, 4.0),
        "flows": flows,
        "capacity_bit_per_s": capacity[0] if one_rate else capacity,
    }


def random_certificate(seed: int) -> tuple[str, dict, str, dict, QueueCertificate]:
    rng = np.random.default_rng([383, seed])
    law, parameters, sender = LAWS[seed % len(LAWS)]
    where = random_box(rng, law.endswith("red"))
    return law, parameters, sender, where, certify(law, parameters=parameters, senders=sender, **where)


def agrees(seed: int) -> Status:
    """Compare a random box's certificate with what points of the box have by other functions."""
    law, parameters, sender, where, certified = random_certificate(seed)
    found, rng = certified.certificate, np.random.default_rng(seed)
    if found.sampled is None:
        assert found.status is Status.INFEASIBLE
        return found.status
    shown = [each for each in (found.sampled, found.least_phase, found.least_reduction) if each is not None]
    for each in shown:
        assert each.point in str(certified.rows)
        for value, ends in (
            (each.flows, where["flows"]),
            (each.capacity_bit_per_s, where["capacity_bit_per_s"]),
            (each.rtt_s, where["rtt_s"]),
        ):
            low, high = ends if isinstance(ends, tuple) else (ends, ends)
            assert low * (1.0 - 1e-9) <= value <= high * (1.0 + 1e-9)
        assert -180.0 < each.phase_margin_deg <= 180.0
    # The verdict is what the shown numbers say.
    assert (found.status is Status.UNSTABLE) == (not found.sampled.stable)
    felt = found.predicted is not None and found.predicted.as_asked
    keeps = all(each.keeps(*(3.0, 20.0) if felt else (6.0, 30.0)) for each in shown)
    assert found.status is not Status.ADMISSIBLE or keeps
    if found.predicted is None:
        lacking = found.status is Status.STABLE and not keeps
        assert ("less than 6 dB or 30 degrees" in certified.verdict) == lacking
    assert certified.holds == certified.verdict.partition(";")[0].endswith((": holds", ": margins hold"))
    reached = found.reach.longest_rtt_s or 0.0
    six = found.sampled.stable and all(each.keeps() for each in shown)  # of which the reach is
    if six and found.status is Status.ADMISSIBLE:
        assert reached >= where["rtt_s"][1] * (1.0 - 1e-6)
    elif not six and "not proved" not in certified.verdict:
        assert reached <= where["rtt_s"][1]
    # No point has less.
    subject = subject_of(law, parameters)
    box = box_of(subject, senders=sender, **where)
    for _ in range(12):
        flows, rtt = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in (box.flows, box.rtt))
        for _, loop in box_loops(subject, box):
            if not loop.holds(loop.output(flows, rtt)):
                continue
            gains = stable_gains(loop, flows, rtt)
            if gains.unstable_poles:
                assert found.status is Status.UNSTABLE
                continue
            phase = min((abs(degrees(off)) for _, off in gain_crossovers(loop, flows, rtt, 1.0)), default=180.0)
            at = point_margins(loop, np.array([flows]), np.array([rtt]))
            assert degrees(at.phase[0]) == pytest.approx(phase, abs=0.05)
            assert at.factor[0] == pytest.approx(gains.factor, rel=1e-3)
            assert 1.0 / at.reduction[0] == pytest.approx(gains.lower, rel=1e-3, abs=1e-6)
            if found.sampled.stable:
                assert phase >= (found.least_phase or found.sampled).phase_margin_deg - 0.3
                assert 20.0 * log10(gains.factor) >= found.sampled.gain_margin_db - 0.1
    return found.status


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(len(LAWS)))
def test_verdict_numbers_and_points_of_a_random_box_agree(seed: int) -> None:
    agrees(seed)


@pytest.mark.slow
def test_they_agree_in_many_boxes() -> None:
    statuses = [agrees(seed) for seed in range(8, 8 + BOXES)]
    assert min(statuses.count(each) for each in (Status.ADMISSIBLE, Status.STABLE, Status.UNSTABLE)) > BOXES / 24


@pytest.mark.slow
def test_the_point_that_decides_is_named_with_its_rate_inside_the_box() -> None:
    """The gain margin's point is 9.76 flows at 50 Mbit/s in the loop's own terms, which nobody asked for."""
    found = certify("pie", rtt_s=(0.01, 0.03), flows=(1.0, 5.0), capacity_bit_per_s=(5e6, 50e6), senders="reno")
    rows = dict(found.rows)
    assert found.certificate.status is Status.STABLE
    assert rows["worst point"].startswith("reno, 5 flows at 25.61 Mbit/s, 30 ms")
    assert rows["least phase margin"].startswith("17.3 degrees: reno, 1 flow at 50 Mbit/s, 30 ms")
    longest = found.certificate.reach.longest_rtt_s
    for factor, kept in ((0.999, True), (1.001, False)):
        at = certify(
            "pie", rtt_s=factor * longest, flows=(1.0, 5.0), capacity_bit_per_s=50e6, senders="reno"
        ).certificate
        assert (not at.lacking) is kept


def test_a_check_runs_the_point_inside_the_box() -> None:
    from netctrl.checks.point import point_of

    found = certify("pi2", rtt_s=(0.01, 0.03), flows=(1.0, 5.0), capacity_bit_per_s=(5e6, 50e6))
    at = found.certificate.sampled
    point = point_of(found)
    assert point.flows == at.flows
    assert point.loop.rate * 12e3 == pytest.approx(at.capacity_bit_per_s)
    windows = [float(k.window(point.output, point.loop.trip(k, at.rtt_s, point.target_s))) for k in point.loop.classes]
    assert windows == pytest.approx(at.windows_packets, rel=1e-6)
