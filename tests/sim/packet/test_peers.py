"""BBR 3, Copa and LEDBAT++ on packets: what their drafts and paper promise, beside closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.scenario.links import Link
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.run import simulate_packets

RATE, RTT = 5e7, 0.04
BDP = RATE * RTT / 8.0
COMPETITIVE = {"kind": "copa", "competitive": True}


def run(
    sender, *, rate=RATE, rtt=RTT, bdps=1.0, count=1, beside=None, duration=60.0, loss=0.0, seed=1, interval=0.1
) -> Result:
    buffer = bdps * rate * rtt / 8.0
    link = Link(id="line", source="a", target="b", capacity=rate, delay=rtt / 2, buffer=buffer, loss=loss)
    flows = [Flow(id="own", sender=sender, rtt=rtt, count=count, path=("line",), start=(0.0, 0.5), ecn=False)]
    if beside is not None:
        flows.append(Flow(id="other", sender=beside, rtt=RTT, path=("line",), start=0.3, ecn=False))
    scenario = Scenario(links=[link], flows=flows, duration=duration, warmup=duration / 4, seed=seed, interval=interval)
    return simulate_packets(scenario)


def share(found: Result) -> float:
    own, other = found["throughput", "own"], found["throughput", "other"]
    return own / (own + other)


@pytest.mark.parametrize("bdps", [0.05, 0.3, 1.0])
def test_bbr_3_loses_less_than_a_tenth_of_what_bbr_loses_in_a_short_buffer(bdps):
    """Its bound of what is in flight comes from losses; the draft's aim (section 2.2) is what Reno would lose."""
    third, first = run("bbr3", bdps=bdps, count=4), run("bbr", bdps=bdps, count=4)
    assert third["loss", "line"] < 0.1 * first["loss", "line"]
    assert third["utilization", "line"] > 0.95


def test_bbr_3_bears_losses_below_two_percent_and_not_above():
    """BBRLossThresh (section 2.4): a probe that loses 2 % has put too much in flight."""
    used = {
        loss: np.mean([run("bbr3", loss=loss, seed=s)["utilization", "line"] for s in (1, 2)]) for loss in (0.005, 0.04)
    }
    assert used[0.005] > 0.75
    assert used[0.04] < 0.15
    assert run("bbr", loss=0.04)["utilization", "line"] > 0.9


def test_bbr_3_leaves_reno_and_cubic_more_than_bbr_does():
    for other in ("reno", "cubic"):
        assert share(run("bbr3", beside=other, bdps=0.3)) < share(run("bbr", beside=other, bdps=0.3)) - 0.1


def test_bbr_3_holds_half_a_bdp_for_a_fifth_of_a_second_each_five():
    found = run("bbr3", bdps=4.0, interval=0.02)
    window = found.series["window", "own"]
    low = found.time_s[(window < 0.75 * BDP) & (found.time_s > 10.0)]
    starts = low[np.diff(low, prepend=0.0) > 1.0]
    assert np.diff(starts).mean() == pytest.approx(5.0 + 0.2 + 2.0 * RTT, abs=0.15)
    assert found["utilization", "line"] > 0.9


@pytest.mark.parametrize(("rate", "rtt", "count"), [(5e7, 0.04, 1), (2e7, 0.04, 2), (2e7, 0.04, 5), (1e8, 0.02, 10)])
def test_copa_keeps_two_packets_and_a_half_of_each_flow_in_the_queue(rate, rtt, count):
    """Section 3: with δ = 1/2 a flow's queue runs from nothing to five packets."""
    found = run("copa", rate=rate, rtt=rtt, bdps=4.0, count=count)
    assert found["utilization", "line"] > 0.99
    assert 0.5 < found["backlog", "line"] / 1000 / count < 4.0
    rates = found["throughput", "own"] / rate
    assert rates == pytest.approx(found["utilization", "line"], abs=0.01)


def test_copa_bears_losses_and_gives_way_to_those_who_fill_buffers():
    """It answers delay alone; without the mode of section 2.2 it has its few packets of a queue that Cubic keeps."""
    assert run("copa", loss=0.01)["utilization", "line"] > 0.95
    assert share(run("copa", beside="cubic", bdps=4.0)) < 0.1


def test_copa_takes_its_share_beside_those_who_fill_buffers_where_it_competes():
    """Section 2.2: 1/δ moves as Reno's window, which keeps as many packets in the queue; Cubic grows faster over 250
    packets a round trip, and its cuts are an empty queue for those who have forgotten one after 10 s."""

    def mean(other: str, bdps: float) -> float:
        shares = [share(run(COMPETITIVE, beside=other, bdps=bdps, duration=100.0, seed=s)) for s in (1, 2, 3)]
        return float(np.mean(shares))

    assert mean("reno", 1.0) == pytest.approx(0.45, abs=0.1)
    assert mean("reno", 4.0) == pytest.approx(0.45, abs=0.1)
    assert 0.2 < mean("cubic", 1.0) < 0.5
    assert mean("cubic", 4.0) < 0.2


def test_two_copas_see_that_nobody_fills_the_buffer_and_ten_do_not():
    """Their queue is nearly empty each 4.8 round trips where five are allowed: of ten one misses that sooner or later,
    and what it puts into the queue then hides from all that it would be empty."""
    for count, least, most in ((2, 0.8, 1.5), (10, 5.0, 50.0)):
        own, taken = (run(sender, bdps=4.0, count=count)["backlog", "line"] for sender in ("copa", COMPETITIVE))
        assert least * own < taken < most * own


def test_ledbat_adds_sixty_milliseconds_of_its_own_and_leaves_the_rest_to_others():
    alone = run("ledbat++", bdps=4.0)
    median = np.nanmedian(alone.series["rtt", "own"])
    assert median == pytest.approx(RTT + 0.06, abs=0.002)
    assert share(run("ledbat++", beside="cubic", bdps=4.0)) < 0.02


def test_ledbat_stops_for_a_tenth_of_its_time_to_see_the_path():
    """Two packets for two round trips, and slow start up to where it was: a ninth of the time between (section 4.4)."""
    found = run("ledbat++", bdps=4.0, duration=120.0, interval=0.02)
    window = found.series["window", "own"]
    highest = np.nanmax(window[found.time_s > 20.0])
    low = found.time_s[(window <= 2000.0) & (found.time_s > 5.0)]
    starts = low[np.diff(low, prepend=0.0) > 1.0]
    back = [found.time_s[(found.time_s > s + 0.3) & (window > 0.9 * highest)][0] - s for s in starts[1:-1]]
    gaps = np.diff(starts)[1:]
    np.testing.assert_allclose(gaps / np.array(back[: len(gaps)]), 10.0, rtol=0.15)
