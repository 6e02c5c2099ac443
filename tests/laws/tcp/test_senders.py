"""TCP beside and underneath pacing: Reno, H-TCP, BBR, CoDel, capacities that change, and the paper's Figs. 2 and 3."""

from itertools import product
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from one_link import capped, last_states, paced, plain, run

import netctrl
from netctrl.laws.aqm.codel import CodelDrops, CodelQueue
from netctrl.laws.record import row_names, width
from netctrl.laws.tcp.bbr import BBR_CYCLE, BbrState
from netctrl.laws.tcp.htcp import htcp_backoff, htcp_increase, htcp_window
from netctrl.laws.tcp.reno import reno_cut, reno_window
from netctrl.sim.fluid.paced_kernel import codel_drops

OWN = netctrl.pacing(mode="own-rate").law


@pytest.mark.parametrize("p", [1e-3, 1e-4, 1e-5])
def test_reno_s_mean_window_where_every_so_manyth_packet_is_lost(p):
    """W̄ = √(3/2p): Mathis and others, The macroscopic behavior of the TCP congestion avoidance algorithm (1997)."""
    window, left, sent, rounds = reno_cut(sqrt(8.0 / (3.0 * p))), 1.0 / p, 0.0, 0.0
    for _ in range(200_000):
        part = 0.01 * window
        window = reno_window(window, part, 0.0)
        sent, rounds, left = sent + part, rounds + 0.01, left - part
        if left <= 0.0:
            window, left = reno_cut(window), left + 1.0 / p
    assert sent / rounds == pytest.approx(sqrt(1.5 / p), rel=0.02)
    assert reno_window(10.0, 2.0, inf) == 12.0  # slow start
    assert reno_cut(3.0) == 2.0


def test_reno_s_sawtooth_over_a_buffer_of_one_bdp():
    """The window goes from one BDP to two with dW/dt = C/W, so it takes 3/2 BDP/C times the BDP in packets."""
    rate, rtt = 1e8, 0.02
    bdp = rate * rtt / 8.0
    found = run([plain("reno", rtt)], rate, bdp, 100.0, interval=0.1)
    times = found.time_s[found.lost > 0.0]
    apart = np.diff(times[times > 20.0])
    assert apart[apart > 1.0].mean() == pytest.approx(1.5 * (bdp / 1500.0) * rtt, rel=0.08)
    late = found.time_s > 20.0
    assert found.throughput[0, late].mean() > 0.998 * rate
    assert found.delay_s[late].mean() == pytest.approx(
        (14.0 / 9.0 - 1.0) * rtt, rel=0.05
    )  # mean RTT: 2(8 − 1)/(3(4 − 1))


def test_htcp_s_growth_and_cut():
    """draft-leith-tcp-htcp-06: α(Δ), and W after it where acknowledgements come steadily, W_0 + ∫α/RTT."""
    assert htcp_increase(0.3, 0.5) == htcp_increase(1.0, 0.5) == 1.0
    assert htcp_increase(3.0, 0.5) == pytest.approx(1.0 + 10.0 * 2.0 + 0.25 * 4.0)
    assert htcp_increase(3.0, 0.8) == pytest.approx(0.4 * 22.0)
    window, rtt, step, end = 1000.0, 0.05, 1e-3, 4.0
    for n in range(int(end / step)):
        window = htcp_window(window, (n + 0.5) * step, 0.5, window * step / rtt, 0.0)
    late = end - 1.0
    assert window == pytest.approx(1000.0 + (end + 5.0 * late**2 + late**3 / 12.0) / rtt, rel=1e-6)
    assert htcp_window(10.0, 5.0, 0.5, 3.0, inf) == 13.0  # slow start
    assert htcp_backoff(0.04, 0.06, 1.0, 1.0) == pytest.approx(2.0 / 3.0)
    assert htcp_backoff(0.04, 0.2, 1.0, 1.0) == 0.5
    assert htcp_backoff(0.04, 0.041, 1.0, 1.0) == 0.8
    assert htcp_backoff(0.04, 0.06, 1.3, 1.0) == 0.5  # the throughput changed by more than a fifth


@pytest.mark.parametrize(("rate", "rtt"), [(1e7, 0.05), (1e8, 0.02), (1e9, 0.1), (1e10, 0.004)])
@pytest.mark.parametrize("queue", ["droptail", "codel"])
def test_bbr_finds_rate_and_rtt_and_bounds_what_is_in_flight(rate, rtt, queue):
    """draft-cardwell-iccrg-bbr-congestion-control-00: two BDPs in flight at most, and three times what leaves at once,
    a round trip's packet or two; a PROBE_RTT of 0.2 s in 10 s costs 2 % and what a round trip and a half adds to it."""
    duration = max(30.0, 100.0 * rtt)
    found = run([plain("bbr", rtt)], rate, max(rate * rtt / 8.0, 3e4), duration, interval=rtt, queue=queue)
    late = found.time_s > 0.5 * duration
    values = dict(zip(row_names(BbrState), last_states(found.scenario)[0], strict=False))
    assert values["bandwidth"] == pytest.approx(rate / 8.0, rel=1e-6)
    assert values["min_rtt"] == pytest.approx(rtt, rel=0.02)
    at_once = max(min(1.25 * rate / 8.0 / 1024.0, 65536.0) // 1500, 2.0)
    assert values["window"] / 1500 <= 2.0 * values["bandwidth"] * values["min_rtt"] / 1500 + 3.0 * at_once + 5.0
    pieces = (3.0 * at_once + 4.0) * 1.2e4 / rate
    assert found.delay_s[late].max() < 0.4 * rtt + pieces  # a probe's quarter, and what little stays
    assert found.throughput[0, late].mean() > 0.94 * rate
    assert np.mean(BBR_CYCLE) == 1.0


def test_bbr_s_cycle_is_seen():
    """Sends 1.25, 0.75 and then six times the rate, less 1 %, a least RTT each."""
    rate, rtt = 1e8, 0.02
    found = run([plain("bbr", rtt)], rate, 1e6, 9.0, interval=rtt / 4)
    late = found.time_s > 5.0
    sent = found.rates[0, late] / rate / 0.99
    assert sent.max() == pytest.approx(1.25, rel=1e-3)
    assert sent.min() == pytest.approx(0.75, rel=1e-3)
    assert 0.99 * np.mean(sent) == pytest.approx(1.0, abs=0.01)
    assert np.median(sent) == pytest.approx(1.0, rel=1e-3)
    quarters = np.mean(np.isclose(sent, 1.25, rtol=1e-3)), np.mean(np.isclose(sent, 0.75, rtol=1e-3))
    assert quarters == pytest.approx((1 / 8, 1 / 8), abs=0.05)


def test_bbr_takes_more_than_cubic_of_a_shallow_buffer_and_less_of_a_deep_one():
    """As measured by Hock, Bless and Zitterbart, Experimental evaluation of BBR congestion control (ICNP 2017)."""
    shares = []
    for bdps in (0.5, 4.0):
        found = run([plain("bbr", 0.02), plain("cubic", 0.02, 1.0)], 1e8, bdps * 2.5e5, 90.0, interval=0.1)
        late = found.throughput[:, found.time_s > 30.0].mean(axis=1)
        shares.append(late[0] / late.sum())
    assert shares[0] > 0.7
    assert shares[1] < 0.5


def drop_times(sojourn, end: float, step: float = 1e-4, target: float = 0.005, interval: float = 0.1) -> list[float]:
    state, times = np.zeros(width(CodelDrops)), []
    for n in range(int(end / step)):
        time = n * step
        times += [time] * codel_drops(state, time, sojourn(time), 1e-6, target, interval)
    return times


def test_codel_drops_at_its_control_law_s_times():
    """RFC 8289, section 5.3: the first after an interval above the target, then interval/√count after one another."""
    found = drop_times(lambda time: 0.02, 1.5)
    expected = [0.1]
    while expected[-1] < 1.5:
        expected.append(expected[-1] + 0.1 / sqrt(len(expected)))
    assert found == pytest.approx(expected[: len(found)], abs=2e-4)
    assert len(found) == len(expected) - 1


def test_codel_drops_where_it_was_when_it_comes_back_soon():
    """RFC 8289, section 5.4: within 16 intervals it goes on with what count had gained; later it starts anew."""
    for pause in (0.3, 3.0):
        found = drop_times(lambda time, pause=pause: 0.0 if 1.0 < time < 1.0 + pause else 0.02, 2.0 + pause)
        again = [time for time in found if time > 1.0 + pause]
        before = len(found) - len(again)
        assert again[0] == pytest.approx(1.0 + pause + 0.1, abs=3e-4)
        expected = 0.1 / sqrt(before - 1.0) if pause < 1.0 else 0.1
        assert np.diff(again)[0] == pytest.approx(expected, abs=2e-4)


@given(st.floats(0.0, 0.0049), st.floats(1e-3, 1.0))
def test_codel_leaves_a_queue_below_its_target_alone(sojourn, interval):
    assert drop_times(lambda time: sojourn, 0.2, 1e-3, interval=interval) == []


def test_codel_drops_of_each_flow_as_its_share_of_the_queue():
    flows = [capped(0.8e8, 0.02), capped(0.4e8, 0.02)]
    found = run(flows, 1e8, 1e9, 10.0, queue="codel")
    lost = found.result.totals["resent"][0]
    assert lost / 1500.0 == pytest.approx(np.round(lost / 1500.0))
    assert lost[0] / lost[1] == pytest.approx(2.0, rel=0.02)


def test_codel_keeps_cubic_s_queue_about_its_target():
    """Where the RTT is no more than its interval: below the target most of the time, and drop-tail's is far above."""
    delay = {}
    for queue in ("droptail", "codel"):
        found = run([plain("cubic", 0.05)], 1e8, 2.5e6, 60.0, queue=queue, interval=0.05)
        delay[queue] = found.delay_s[found.time_s > 20.0].mean()
        assert found.throughput[0, found.time_s > 20.0].mean() > 0.9e8
    assert delay["codel"] < 0.01
    assert delay["droptail"] > 0.1
    gentle = run([plain("cubic", 0.05)], 1e8, 2.5e6, 60.0, queue=CodelQueue(target=0.02, interval=0.2), interval=0.05)
    assert delay["codel"] < gentle.delay_s[gentle.time_s > 20.0].mean() < delay["droptail"]


def test_the_queueing_delay_is_the_age_of_what_leaves():
    """1.25 of a capacity comes in, which halves after 1 s: what leaves came when as much had come as has left."""
    rate = 1e8
    found = run([capped(1.25 * rate, 0.02)], rate, 1e9, 2.0, interval=0.0005, changes=[(1.0, 0.5 * rate)])
    ends = found.time_s
    left = np.minimum(ends, 1.0) + 0.5 * np.maximum(ends - 1.0, 0.0)
    assert found.delay_s == pytest.approx(ends - left / 1.25, abs=1e-3)
    assert found.delay_s[-1] == pytest.approx(0.8, abs=1e-3)


KINDS = st.sampled_from(["reno", "cubic", "htcp", "bbr", "fixed", "own rate", "capped"])


def any_flow(kind: str, rate: float, rtt: float):
    if kind in ("reno", "cubic", "htcp", "bbr"):
        return plain(kind, rtt)
    if kind == "own rate":
        return paced(OWN, rtt)
    return capped(0.6 * rate, rtt, window="htcp" if kind == "capped" else None)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.lists(KINDS, min_size=1, max_size=3),
    st.floats(1e7, 1e9),
    st.floats(2e-3, 0.05),
    st.floats(0.3, 4.0),
    st.sampled_from(["droptail", "codel"]),
)
def test_bytes_are_delivered_lost_or_waiting(kinds, rate, rtt, bdps, queue):
    size = max(bdps * rate * rtt / 8.0, 3e4)
    found = run([any_flow(kind, rate, rtt) for kind in kinds], rate, size, 60 * rtt, queue=queue)
    width = found.time_s[0] / 8.0
    sent, out, lost = found.rates.sum() * width, found.throughput.sum() * width, found.lost.sum()
    assert -1e-9 * sent <= sent - out - lost <= size + 1e-9 * sent
    assert found.highest.max() <= size * (1.0 + 1e-9)
    assert (found.throughput.sum(axis=0) <= rate * (1.0 + 1e-9)).all()
    assert (found.lost >= 0.0).all()


@pytest.mark.parametrize("window", ["reno", "cubic", "htcp"])
def test_a_cap_below_the_bottleneck_is_what_a_window_sends(window):
    """And the window doesn't grow beyond it, so that nothing bursts when the cap goes."""
    found = run([capped(8e7, 0.02, window=window)], 1e8, 2.5e5, 30.0, interval=0.1)
    late = found.time_s > 10.0
    assert found.throughput[0, late] == pytest.approx(np.full(late.sum(), 8e7))
    assert found.delay_s[late].max() < 1e-9
    assert found.lost.sum() == 0.0


@pytest.mark.parametrize("window", ["cubic", "htcp"])
def test_the_own_rate_law_works_over_a_window(window):
    """As at an agent, whose socket's window is the kernel's; where nothing is beneath it the queue is 2.1 ms."""
    found = run([paced(OWN, 0.02, window=window)], 1e8, 2.5e5, 20.0, interval=0.1)
    late = found.time_s > 10.0
    assert found.throughput[0, late].mean() >= 0.95e8
    assert found.delay_s[late].mean() <= 6e-3
    assert found.lost[late].sum() == 0.0


PACKET_S = 12000.0 / 1e10
"""A packet's time: by so much, on average, RTTs of Figs. 2 and 3 are up here."""


def figures_2_and_3(flow, noise: float = PACKET_S, seed: int = 0):
    """10 Gbit/s, 4 ms, a buffer of one BDP, CoDel; from 10 to 60 s: Gbit/s each second, RTTs in ms."""
    found = run([flow], 1e10, 5e6, 60.0, queue="codel", noise=noise, seed=seed, interval=0.01)
    rates = found.throughput[0, 1000:].reshape(-1, 100).mean(axis=1) / 1e9
    return rates, 1e3 * found.rtt_s[0, 1000:], found.lost[1000:].sum()


def paper_flow(R: float, xi: float = 100.0, start: float | None = None):
    law = netctrl.pacing(max_rate_bit_per_s=R, xi=xi).law
    return paced(replace(law, start_rate_bit_per_s=R if start is None else start), 4e-3, window="htcp")


def test_figs_2a_and_3a_htcp_uncontrolled_theory_note():
    """Note: 5.18 ± 1.17 ms. Its mean and deviation are those of a queue from 0 to a BDP, which fixes RTT and buffer."""
    rates, rtts, lost = figures_2_and_3(plain("htcp", 4e-3))
    assert rtts.mean() == pytest.approx(5.18, abs=0.05)
    assert rtts.std() == pytest.approx(1.17, abs=0.05)
    assert rates.mean() > 9.98
    assert lost > 0.0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_figs_2b_and_3b_the_paper_s_law_over_htcp_at_r_of_the_bottleneck_theory_note(seed):
    """Note: 9.986 ± .003 Gbit/s, 4.02 ± .02 ms. A fixed cap does as well."""
    rates, rtts, lost = figures_2_and_3(paper_flow(1e10), seed=seed)
    assert rates.mean() == pytest.approx(9.986, abs=0.003)
    assert rates.std() < 0.003
    assert rtts.mean() == pytest.approx(4.02, abs=0.02)
    assert rtts.std() < 0.02
    assert lost == 0.0
    cap, cap_rtts, _ = figures_2_and_3(capped(9.986e9, 4e-3, window="htcp"), seed=seed)
    assert cap.mean() == pytest.approx(9.986, abs=1e-6)
    assert cap.std() < 1e-6
    assert cap_rtts.mean() <= rtts.mean() + 1e-4


def test_it_is_a_cap_only_where_it_starts_as_one():
    """From R/2 it freezes on the way; with noise of 0.02 ms, which makes the note's 4.02 ± .02 ms, it stays lower."""
    assert figures_2_and_3(paper_flow(1e10, start=5e9))[0].mean() < 7.0
    rates, rtts, _ = figures_2_and_3(paper_flow(1e10), noise=2e-5)
    assert rtts.mean() == pytest.approx(4.02, abs=0.002)
    assert rtts.std() == pytest.approx(0.02, abs=0.002)
    assert 9.5 < rates.mean() < 9.9


@pytest.mark.parametrize("start", [1e9, 2e9, 4e9])
def test_over_a_window_too_it_freezes_with_xi_1_at_r_of_40_gbit_s_theory_note(start):
    """Note: at 2 to 6 Gbit/s."""
    rates, rtts, lost = figures_2_and_3(paper_flow(4e10, 1.0, start), noise=2e-5)
    assert 2.0 < rates.mean() < 6.0
    assert rtts.min() >= 4.0
    assert rtts.mean() == pytest.approx(4.02, abs=2e-3)  # the noise: there is no queue
    assert lost == 0.0


@pytest.mark.parametrize("seed", [0, 1])
def test_over_a_window_it_does_nothing_with_xi_100_at_r_of_40_gbit_s_theory_note(seed):
    """Where RTTs are up by 1 ms on average they are as without it; with less, sawtooth and losses are still there."""
    free_rates, free, _ = figures_2_and_3(plain("htcp", 4e-3), noise=1e-3)
    rates, rtts, lost = figures_2_and_3(paper_flow(4e10), noise=1e-3, seed=seed)
    assert rtts.mean() == pytest.approx(free.mean(), rel=0.02)
    assert rtts.std() == pytest.approx(free.std(), rel=0.03)
    assert 0.98 * free_rates.mean() < rates.mean() <= free_rates.mean()
    assert lost > 0.0
    rates, rtts, lost = figures_2_and_3(paper_flow(4e10), seed=seed)
    assert rtts.mean() > 4.4
    assert rtts.std() > 0.8
    assert lost > 0.0


def test_fig_4_the_paper_s_law_stays_below_the_lower_of_two_capacities():
    """Paper, section IV-C: between 10 and 5 Gbit/s it stabilises just under 5; H-TCP alone follows, with large swings.
    An own-rate law follows within a second; a second of four has a drain."""
    steady = {}
    own = paced(OWN, 4e-3)
    for name, flow in (("htcp", plain("htcp", 4e-3)), ("paper", paper_flow(1e10)), ("own rate", own)):
        found = run(
            [flow],
            1e10,
            5e6,
            60.0,
            queue="codel",
            noise=PACKET_S,
            interval=0.1,
            changes=[(5.0 * k, 5e9 if k % 2 else 1e10) for k in range(1, 12)],
        )
        late = found.time_s > 20.0
        rates = found.throughput[0, late] / 1e9
        wide = found.capacity[late] > 9e9
        steady[name] = rates[wide].mean(), rates[wide].std(), rates[~wide].mean(), found.lost[late].sum()
    assert steady["paper"][0] == pytest.approx(5.0, abs=0.05)
    assert steady["paper"][2] == pytest.approx(4.97, abs=0.03)
    assert steady["paper"][1] < 0.05 < 1.0 < steady["htcp"][1]
    assert steady["paper"][3] == 0.0 < steady["htcp"][3]
    assert steady["own rate"][0] > 9.6
    assert steady["own rate"][2] > 4.95
    assert steady["own rate"][3] == 0.0


def test_fig_5_the_paper_s_law_beside_one_htcp_flow():
    """Paper, section IV-D: about 4 of 10 Gbit/s; so it is where R is the sender's link, 40 Gbit/s. Where it is the
    bottleneck it has less. Means of three seeds."""
    shares = np.zeros((3, 2))
    for seed, (place, R) in product(range(3), enumerate((4e10, 1e10))):
        found = run(
            [paper_flow(R), plain("htcp", 4e-3, 10.0)],
            1e10,
            5e6,
            100.0,
            queue="codel",
            noise=PACKET_S,
            seed=seed,
            interval=0.1,
        )
        shares[seed, place] = found.throughput[0, found.time_s > 30.0].mean() / 1e9
    assert shares.mean(axis=0) == pytest.approx([4.2, 2.4], abs=0.3)
    assert (shares[:, 0] > shares[:, 1] + 1.0).all()
