"""Paced flows through a bottleneck: conservation, Cubic, the paper's law frozen and run away, the own-rate law."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_link import capped, jain, paced, plain, run, scenario_of

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.tcp.cubic import cubic_window
from netctrl.sim.fluid.paced import paced_problem
from netctrl.sim.fluid.paced_kernel import advance_paced

OWN = netctrl.pacing(mode="own-rate").law
PACKET_BITS = 12000.0
MIN_BUFFER = 30e3  # a buffer of less than some packets is none


def buffer(rate: float, rtt: float, bdps: float = 1.0) -> float:
    return max(bdps * rate * rtt / 8.0, MIN_BUFFER)


def test_cubic_s_window_goes_over_its_plateau():
    """RFC 9438, eq. 1: W(K) = W_max, and W(t) = C (t − K)³ + W_max around it, where acknowledgements come steadily."""
    highest, window, rtt = 1000.0, 700.0, 0.05
    K = (0.3 * highest / 0.4) ** (1.0 / 3.0)
    step, since = 1e-4, 0.0
    while since < 1.5 * K:
        window = cubic_window(window, highest, 700.0, since, rtt, window * step / rtt)
        since += step
        if since == pytest.approx(K, abs=0.6 * step):
            assert window == pytest.approx(highest, rel=1e-3)
    assert window == pytest.approx(highest + 0.4 * (since - K) ** 3, rel=5e-3)


@settings(max_examples=25)
@given(st.floats(1e6, 1e10), st.floats(1e-3, 0.1), st.floats(0.3, 3.0), st.floats(0.5, 4.0))
def test_nothing_is_lost_but_what_is_counted(rate, rtt, load, bdps):
    """What a fixed rate sends is delivered, lost or waiting; the link is full where it is overloaded."""
    size = bdps * rate * rtt / 8.0
    found = run([capped(load * rate, rtt)], rate, size, 40 * rtt)
    sent = found.rates.sum() * found.time_s[0] / 8.0
    out = found.throughput.sum() * found.time_s[0] / 8.0
    assert out + found.lost.sum() <= sent * (1.0 + 1e-9)
    assert sent - out - found.lost.sum() <= size * (1.0 + 1e-9)
    assert found.highest.max() <= size * (1.0 + 1e-9)
    assert found.throughput.max() <= rate * (1.0 + 1e-9)
    if load <= 1.0:
        assert found.delay_s.max() <= 1e-9
    elif load > 1.2:
        assert found.throughput[0, -1] == pytest.approx(rate)


def test_two_cubic_flows_share_alike():
    flows, shares = [plain("cubic", 0.02), plain("cubic", 0.02, 1.0)], np.zeros(2)
    for seed in range(4):
        found = run(flows, 1e8, buffer(1e8, 0.02), 60.0, interval=0.1, seed=seed)
        shares += found.throughput[:, found.time_s > 20.0].mean(axis=1) / 4.0
        assert found.lost.sum() > 0.0
    assert jain(shares) > 0.99
    assert shares.sum() > 0.97e8


def paper(rate: float, xi: float, noise: float = 1e-3, seed: int = 0):
    """Figs. 2 and 3's link: 10 Gbit/s, 4 ms, a buffer of one BDP, RTTs with noise; the last 10 of 20 s."""
    law = netctrl.pacing(max_rate_bit_per_s=rate, xi=xi).law
    found = run([paced(law, 4e-3)], 1e10, 5e6, 20.0, noise=noise, seed=seed, interval=0.1)
    late = found.time_s > 10.0
    return found.throughput[0, late], found.rates[0, late], 4e-3 + found.delay_s[late].mean(), found.lost.sum()


def test_the_paper_s_law_is_a_cap_where_r_is_the_bottleneck():
    """Note: 9.986 ± .003 Gbit/s at 4.02 ms in its fluid, with a window underneath; here nothing but the law."""
    means, deviations = [], []
    for seed in range(4):
        throughput, _, rtt, lost = paper(1e10, 100.0, seed=seed)
        means.append(throughput.mean())
        deviations.append(throughput.std())
        assert rtt < 4.02e-3
        assert lost == 0.0
    assert min(means) > 9.95e9
    assert np.mean(deviations) < 0.07e9
    cap = run([capped(9.98e9, 4e-3)], 1e10, 5e6, 20.0, interval=0.1)
    assert cap.throughput[0, -100:].mean() >= max(means) - 0.01e9  # the ablation: a fixed cap does as well


def test_the_paper_s_law_freezes():
    """Where deviations are below d*: with xi = 1 always, with xi = 100 without noise; at about where it starts, R/2."""
    for xi, noise, most in ((1.0, 2e-5, 5.5e9), (1.0, 1e-3, 5.5e9), (100.0, 0.0, 6.0e9)):
        runs = [paper(1e10, xi, noise, seed) for seed in range(4 if noise > 1e-4 else 1)]
        assert np.mean([throughput.mean() for throughput, *_ in runs]) < most
        assert [rtt for *_, rtt, _ in runs] == pytest.approx([4e-3] * len(runs))


def test_the_paper_s_law_runs_away():
    """R = 40 Gbit/s before 10: it sends at R, the buffer is full, and three quarters are lost."""
    throughput, sent, rtt, lost = paper(4e10, 100.0)
    assert throughput.mean() == pytest.approx(1e10)
    assert sent.mean() > 3.9e10
    assert rtt == pytest.approx(8e-3, rel=1e-3)
    assert lost > 0.0


@pytest.mark.parametrize("rate", [1e7, 1e8, 1e9, 1e10])
@pytest.mark.parametrize("rtt", [1e-3, 1e-2, 5e-2, 0.2])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_the_own_rate_law_needs_no_other_parameters(rate, rtt, noise):
    """Of one flow at any rate and round trip, soon after its start: the link's use but for drains, and the
    certificate's queue where a buffer of one BDP holds it."""
    duration = min(max(200.0 * rtt, 8.0), 20.0)
    proof = netctrl.pacing(mode="own-rate", rtt_s=rtt, bottleneck_bit_per_s=rate).certificate
    found = run([paced(OWN, rtt)], rate, buffer(rate, rtt), duration, noise=noise * rtt, interval=max(rtt, 0.01))
    late = found.time_s > duration / 2.0
    assert found.throughput[0, late].mean() >= 0.98 * rate
    assert found.lost[late].sum() <= 1e-3 * rate / 8.0 * duration
    if buffer(rate, rtt) > 1.5 * proof.least_buffer_bytes:
        # What a drain left out comes back at 1.02 W/RTT: of a pipe of 2 Gbit that is much beside a queue of .2 ms.
        above = 1.25 if rate * rtt > 1e9 else 1.2
        assert found.delay_s[late].mean() <= above * proof.equilibrium.queue_s + 0.5 * noise * rtt


@pytest.mark.parametrize("rate", [1e7, 1e8, 1e9, 1e10])
@pytest.mark.parametrize("rtt", [1e-3, 1e-2, 5e-2, 0.2])
def test_the_own_rate_law_follows_a_halving_and_a_doubling(rate, rtt):
    """Halved, 85 % stay in use, and no more than twice the certificate's queue is left after 30 round trips; of twice
    the capacity 90 % are used within 30. A drain may be among them."""
    at = max(5.0, 60.0 * rtt)
    half = netctrl.pacing(mode="own-rate", rtt_s=rtt, bottleneck_bit_per_s=0.5 * rate).certificate.equilibrium
    for factor in (0.5, 2.0):
        changes, end = [(at, factor * rate)], at + 40.0 * rtt
        found = run([paced(OWN, rtt)], rate, buffer(rate, rtt, 2.0), end, interval=rtt, changes=changes)
        after = found.time_s > at
        share = found.throughput[0, after] / (factor * rate)
        if factor < 1.0:
            assert share.min() > 0.85
            assert found.delay_s[after][30:].mean() < 2.0 * half.queue_s
        else:
            assert np.flatnonzero(share >= 0.9)[0] <= 30


@pytest.mark.parametrize(
    ("rate", "rtt", "noise"),
    [(1e7, 0.01, 0.0), (1e8, 0.01, 0.01), (1e8, 0.05, 0.0), (1e9, 0.01, 0.0), (1e9, 0.01, 0.01), (1e10, 0.02, 0.0)],
)
def test_four_flows_share_alike(rate, rtt, noise):
    """Started 2 s after one another; from 60 to 120 s."""
    flows = [paced(OWN, rtt, 2.0 * i) for i in range(4)]
    size = buffer(rate, rtt, 2.0)
    found = run(flows, rate, size, 120.0, noise=noise * rtt, interval=0.1)
    late = found.time_s > 60.0
    assert jain(found.throughput[:, late].mean(axis=1)) >= 0.9
    assert found.throughput[:, late].sum(axis=0).mean() >= 0.95 * rate


@pytest.mark.parametrize("rate", [1e7, 1e8, 1e9])
@pytest.mark.parametrize("rtt", [0.01, 0.05])
@pytest.mark.parametrize("bdps", [1.0, 4.0])
def test_against_one_cubic_flow(rate, rtt, bdps):
    flows = [paced(OWN, rtt), plain("cubic", rtt, 1.0)]
    found = run(flows, rate, buffer(rate, rtt, bdps), 90.0, interval=0.1)
    late = found.throughput[:, found.time_s > 30.0].mean(axis=1)
    assert 0.25 <= late[0] / late.sum() <= 0.6
    assert late.sum() > 0.93 * rate


def test_round_trips_of_one_to_eight_share():
    flows = [paced(OWN, rtt) for rtt in (0.01, 0.02, 0.04, 0.08)]
    found = run(flows, 1e9, 5e6, 120.0, interval=0.1)
    shares = found.throughput[:, found.time_s > 60.0].mean(axis=1) / 1e9
    assert jain(shares) > 0.99
    assert shares.sum() > 0.95


@pytest.mark.parametrize(
    ("sender", "rate", "rtt", "count", "size", "used"),
    [("cubic", 33.010e6, 0.14336, 17, 120728, 0.9973), ("reno", 13.729e6, 0.18161, 5, 234389, 0.9980)],
)
def test_windows_beside_a_paced_flow_are_not_cut_together(sender, rate, rtt, count, size, used):
    """Utilization of packets, two cases of test_losses.py; with losses shared among all it was 0.978 and 0.985. The
    paced flow takes next to nothing."""
    trips = np.linspace(0.8, 1.2, 2 * count + 1)[1::2] * rtt + 3.3 * PACKET_BITS / rate
    starts = np.random.default_rng(1).uniform(0.0, 5.0, count)
    flows = [plain(sender, trip, start) for trip, start in zip(trips.tolist(), starts.tolist(), strict=True)]
    found = run([*flows, capped(1e3, rtt)], rate, size, 120.0, interval=0.05)
    late = found.time_s > 30.0
    assert found.throughput[:, late].sum(axis=0).mean() / rate == pytest.approx(used, abs=5e-3)


def test_a_flow_without_a_law_is_refused():
    with pytest.raises(InvalidValue, match="a Design of pacing"):
        run([paced(None, 0.01)], 1e8, 1e5, 1.0)


def test_a_run_without_end_is_refused():
    long = scenario_of([capped(1e7, 1e-3)], 1e8, 1e5, 1e6, interval=1.0)
    with pytest.raises(InvalidValue, match="duration"):
        netctrl.simulate(long, "fluid")
    unlike = scenario_of([capped(1e7, 1e-9), capped(1e7, 10.0)], 1e8, 1e5, 1e-6, interval=1e-6)
    with pytest.raises(InvalidValue, match="duration"):
        netctrl.simulate(unlike, "fluid")


@given(st.floats(0.01, 0.99))
@settings(max_examples=10, deadline=None)
def test_a_round_trip_needn_t_be_whole_steps(part):
    """What two fixed rates send comes back a round trip after it left, whatever the shorter one's steps are: the first
    that the longer one hears is a base round trip old, and what is in flight is rate times round trip."""
    short, long = 0.02, 0.02 * (1.0 + part)
    ready = paced_problem(scenario_of([capped(2e7, short), paced(OWN, long)], 1e8, 1e9, 2.0, interval=0.02))
    advance_paced(*ready)
    heard = np.isfinite(ready.record.trip[1])
    assert np.flatnonzero(heard)[0] == int(long / 0.02 + 1e-9)
    assert np.nanmin(ready.record.trip[1]) == pytest.approx(long)
