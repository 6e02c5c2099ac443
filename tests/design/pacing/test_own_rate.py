"""The own-rate law's certificate: equilibrium, stability for any round trips, margins, each by another way."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq

import netctrl
from netctrl.core.errors import Status
from netctrl.design.pacing.own_rate import delay_margin
from netctrl.model.design.design import read_design
from netctrl.model.law import OwnRatePacer

LAW = OwnRatePacer()


def designed(**given):
    return netctrl.pacing(mode="own-rate", **given).certificate


@pytest.mark.parametrize("seed", range(20))
def test_rates_and_queue_solve_each_flow_s_equation(seed):
    """Each flow's x solves x q = a + c √x; the q at which N of them fill the link is the certificate's."""
    random = np.random.default_rng(seed)
    capacity, flows = 10.0 ** random.uniform(6.0, 10.0), int(random.integers(1, 101))
    rest = designed(bottleneck_bit_per_s=capacity, flows=flows, rtt_s=random.uniform(1e-3, 0.2)).equilibrium
    packets = capacity / 12e3

    def excess(queue: float) -> float:
        root = np.roots([np.exp(queue), -LAW.queue_packets_per_root_rate, -LAW.queue_packets]).max()
        return np.log(flows * root * root / packets)

    assert rest.queue_s == pytest.approx(np.exp(brentq(excess, np.log(1e-7), np.log(1e3))), rel=1e-9)
    assert rest.rate_bit_per_s == pytest.approx(capacity / flows)


def test_what_the_buffer_holds_by_hand():
    """Four flows of 2083.3 packets/s keep 4 (2 + .2 √2083.3) = 44.515 packets."""
    proof = designed(bottleneck_bit_per_s=1e8, flows=4, rtt_s=0.02, buffer_bytes=250e3)
    assert proof.least_buffer_bytes == pytest.approx(1500.0 * 44.5148, rel=1e-5)
    assert proof.equilibrium.queue_s == pytest.approx(44.5148 / (1e8 / 12e3), rel=1e-5)
    assert (proof.status, proof.warnings) == (Status.ADMISSIBLE, ())
    for flows, status in ((proof.most_flows, Status.ADMISSIBLE), (proof.most_flows + 1, Status.STABLE)):
        assert designed(bottleneck_bit_per_s=1e8, flows=flows, rtt_s=0.02, buffer_bytes=250e3).status is status
    small = designed(bottleneck_bit_per_s=1e6, flows=100, rtt_s=0.001, buffer_bytes=1e6)
    assert small.status is Status.ADMISSIBLE
    assert "buffer" in designed(bottleneck_bit_per_s=1e8, flows=100, rtt_s=0.02, buffer_bytes=250e3).warnings[0]


def mixture(gain: float, trips: np.ndarray, rates: np.ndarray, queue: float, elastic: float) -> float:
    """Spectral radius over a common period of flows that change their windows every `trips` ticks, the largest
    share of growth in a tick: an independent simulation of the linear recursion, one column for each unknown."""
    n, period = len(trips), int(np.lcm.reduce(trips))
    late = int(trips.max())
    rho = (trips - queue) / trips
    a = gain * (rho + (1.0 - rho) * elastic)
    state = np.eye(n + 2 * late)  # windows, then the delay of the newest ticks; columns are unknowns
    weights = rates / (rates / trips).sum()
    for tick in range(1, period + 1):
        windows, delays = state[:n], state[n:]
        new = windows.copy()
        for i in range(n):
            if tick % trips[i] == 0:  # RTTs of packets that were sent in the round trip before
                seen = delays[trips[i] - 1] / trips[i]
                new[i] = (1.0 - gain + a[i]) * windows[i] - a[i] * seen
        state = np.vstack([new, (weights @ new)[None], delays[:-1]])
    return float(abs(np.linalg.eigvals(state)).max())


@pytest.mark.parametrize("seed", range(12))
def test_any_mixture_of_round_trips_is_stable(seed):
    random = np.random.default_rng(seed)
    trips = random.choice([1, 2, 3, 4, 6, 12], size=int(random.integers(1, 7)))
    rates = random.uniform(0.1, 1.0, len(trips))
    queue, elastic = random.uniform(0.01, 0.9), random.uniform(0.0, 0.5)
    assert mixture(LAW.gain, trips, rates, queue, elastic) < 1.0
    assert mixture(0.66, trips, rates, queue, elastic) < 1.0


def test_real_parts_are_right_of_the_bound():
    """Re G ≥ −3a/2 on the unit circle, for all r."""
    random = np.random.default_rng(1)
    z = np.exp(1j * random.uniform(1e-6, np.pi, 100_000))
    r = random.uniform(0.0, 1.0, 100_000)
    assert (1.0 / (z * (z - r))).real.min() >= -1.5
    assert designed(bottleneck_bit_per_s=1e8).equilibrium.gain_margin == pytest.approx(1.0 / (1.5 * LAW.gain))


@pytest.mark.parametrize("b", [1e-6, 0.01, 0.05, 0.1, 0.2])
def test_roots_cross_the_circle_at_the_delay_margin(b):
    a = LAW.gain - b
    margin = delay_margin(a, b)

    def radius(later: int) -> float:  # z^(1 + later) (z − r) + a
        return float(abs(np.roots([1.0, b - 1.0, *[0.0] * later, a])).max())

    assert [radius(later) < 1.0 for later in range(12)] == [later < margin for later in range(12)]
    assert delay_margin(0.2, 0.3) == np.inf


def test_longer_round_trips_take_longer_to_share():
    times = [designed(bottleneck_bit_per_s=1e8, flows=4, rtt_s=rtt).equilibrium for rtt in (0.01, 0.05, 0.2)]
    assert all(one.time_constant_s < other.time_constant_s for one, other in pairwise(times))
    assert {one.queue_s for one in times} == {times[0].queue_s}


def test_a_file_of_it_is_read_again(tmp_path):
    design = netctrl.pacing(mode="own-rate", flows=3)
    (tmp_path / "law.json").write_text(design.to_json())
    assert read_design(tmp_path / "law.json") == design
    assert "rests at" in dict(design.summary()[1])
