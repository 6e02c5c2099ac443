"""What links do to packets besides queueing: reordering, runs of losses, bunches, policers; by closed forms."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import norm

from netctrl.core.errors import InvalidValue
from netctrl.engines.engine import supports
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import run_packets, simulate_packets
from netctrl.sim.packet.state import FLOW, META

SIZE = 1250  # 10 kbit


def scenario(
    *, sender: str | None = None, rate: float = 1e6, spacing: str = "constant", seed: int = 1, **line
) -> Scenario:
    """A stream over one link of 1 Gbit/s, or a flow with a round trip of 50 ms, for 60 s."""
    link = Link(**{"id": "line", "source": "a", "target": "b", "capacity": 1e9, "delay": 0.01} | line)
    flow = Flow(id="flow", path=("line",), sender=sender, rtt=0.05 if sender else 0.0)
    if sender is None:
        flow = Flow(id="flow", path=("line",), offers=Stream(rate=rate, spacing=spacing))
    return Scenario(links=(link,), flows=(flow,), duration=60.0, packet_size=SIZE, interval=1e4 / rate, seed=seed)


@pytest.mark.parametrize("reorder", [True, False])
def test_packets_overtake_each_other_or_keep_their_order(reorder):
    """A packet each ms with up to 20 ms of jitter is 10 ms late on average; in order it waits for those before it."""
    found = simulate_packets(scenario(rate=1e7, jitter=0.02, reorder=reorder))
    late = found["delay", "flow"] - 0.01 - 1e-5
    assert late == pytest.approx(0.01, rel=0.02) if reorder else late > 0.012


@pytest.mark.parametrize("deviation", [0.001, 0.005, 0.02])
def test_jitter_is_normal_and_nothing_comes_before_it_is_sent(deviation):
    """Delays max(N(10 ms, s²), 0), independent: their mean, and where none is 0 two differ by 2 s/sqrt(pi)."""
    whole = scenario(jitter=deviation, reorder=True, spread="normal")
    found = simulate_packets(replace(whole, interval=60.0))
    most = 0.01 / deviation
    mean = 0.01 * norm.cdf(most) + deviation * norm.pdf(most)
    assert found["delay", "flow"] - 1e-5 == pytest.approx(mean, abs=4.0 * deviation / np.sqrt(6e3))
    if deviation == 0.001:
        assert found["jitter", "flow"] == pytest.approx(2.0 * deviation / np.sqrt(np.pi), rel=0.05)


@pytest.mark.parametrize(("loss", "run"), [(0.02, 5.0), (0.2, 2.0), (0.05, None)])
def test_losses_come_in_runs(loss, run):
    """Gilbert's model: shares and runs have these means; independent losses have runs of 1/(1 - p)."""
    found = simulate_packets(scenario(rate=1e7, loss=loss, loss_run=run))
    lost = found.series["lost"][0] > 0.0
    runs = [len(list(each)) for is_lost, each in groupby(lost) if is_lost]
    mean = 1.0 / (1.0 - loss) if run is None else run
    assert np.mean(runs) == pytest.approx(mean, abs=4.0 * mean / np.sqrt(len(runs)))
    assert lost.mean() == pytest.approx(loss, abs=4.0 * np.sqrt(2.0 * loss * mean / len(lost)))


def test_a_policer_passes_its_rate_and_its_burst():
    """Twice the rate for 60 s: the bucket, and what the rate fills into it; nothing waits."""
    found = simulate_packets(scenario(rate=2e6, policer={"rate": "1Mbit", "burst": "50kB"}))
    assert found.series["departed"].sum() == pytest.approx(50e3 + 60.0 * 1e6 / 8.0, abs=2 * SIZE)
    assert found.series["backlog"].max() == 0.0


@pytest.mark.parametrize("length", [0.004, 0.02])
def test_packets_arrive_in_bunches(length):
    """By chance each is half an interval late; all times of arrival are multiples of it."""
    found = simulate_packets(scenario(rate=1e7, spacing="poisson", aggregation=length))
    assert found["delay", "flow"] == pytest.approx(0.01 + 1e-5 + 0.5 * length, abs=0.03 * length)


@pytest.mark.parametrize("sender", ["reno", "cubic", "bbr"])
def test_reordering_within_its_window_costs_next_to_nothing(sender):
    """RFC 8985: a quarter of the round trip, here 12 ms, is waited for, and a cut that was wrong is undone."""
    shares = []
    for jitter in (0.0, 0.008):
        whole = scenario(sender=sender, rate=1e7, capacity=2e7, buffer=125e3, jitter=jitter, reorder=jitter > 0.0)
        state = run_packets(packet_problem(whole), 10.0)
        again, sent = state.flow[0, FLOW["again"]], state.flow[0, FLOW["sent"]]
        assert again - state.meta[META["dropped"]] <= 0.01 * sent
        shares.append(state.flow[0, FLOW["received"]] * 8.0 / 60.0 / 2e7)
    assert shares[1] > 0.9 * shares[0]


@pytest.mark.parametrize("sender", ["cubic", "bbr"])
@pytest.mark.parametrize("loss", [0.01, 0.05, 0.15])
def test_what_is_lost_is_sent_again_once(sender, loss):
    """Lost retransmissions too are found by what was sent after them: few timeouts, and next to no duplicates.

    At 15 % Cubic has three packets under way, so that often nothing comes after what is lost; Linux's has as much.
    """
    state = run_packets(packet_problem(scenario(sender=sender, rate=1e7, capacity=1e8, buffer=1e6, loss=loss)), 10.0)
    again, sent = int(state.flow[0, FLOW["again"]]), int(state.flow[0, FLOW["sent"]])
    assert abs(again - int(state.meta[META["dropped"]])) <= 0.01 * sent
    assert state.flow[0, FLOW["timeouts"]] <= (0.1 if (sender, loss) == ("cubic", 0.15) else 0.05) * again


def test_bbr_carries_what_linux_s_does_up_to_a_cliff():
    """Of 100 Mbit/s, in the kernel lab: 95.9 ± .03 at 1 % of losses, 89.1 ± .1 at 5 %, 80.7 ± .2 at 10 %, 4 ± 3 at 20.
    Cardwell et al. (CACM 2017, Fig. 8) have the cliff from 15 to 20 % too."""
    for loss, share in ((0.01, 0.959), (0.05, 0.891), (0.1, 0.807), (0.2, None)):
        found = simulate_packets(scenario(sender="bbr", rate=1e7, capacity=1e8, buffer=6e5, loss=loss))
        if share is None:
            assert found["throughput", "flow"] < 3e7
        else:
            assert found["throughput", "flow"] / 1e8 == pytest.approx(share, rel=0.03)


def test_values_that_do_not_fit():
    for fields, name in (
        ({"reorder": True}, "reorder"),
        ({"loss_run": 3.0}, "loss_run"),
        ({"loss": 0.9, "loss_run": 2.0}, "loss_run"),
        ({"aggregation": -1.0}, "aggregation"),
        ({"policer": {"rate": "1Mbit"}}, "policer"),
    ):
        with pytest.raises(InvalidValue) as refusal:
            scenario(**fields)
        assert name in refusal.value.argument


def test_engines_without_them_say_so():
    for fields in ({"aggregation": 0.001}, {"policer": {"rate": 1e6, "burst": 1e4}}, {"jitter": 0.01, "reorder": True}):
        whole = scenario(sender="cubic", **fields).replace(interval=0.1)
        for name in ("fluid", "ns3"):
            assert supports(whole)[name] is not None, name
