"""Slow start on packets: what it loses by what ends it, and who has no choice."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.core.errors import InvalidValue
from netctrl.engines.engine import supports
from netctrl.kernel.scenarios.lacks import scenario_lacks
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream
from netctrl.sim.packet.problem import packet_problem
from netctrl.sim.packet.run import simulate_packets

RTT, RATE = 0.03, 1e8
BDP = RATE * RTT / 8.0


def scenario(*starts, sender="reno", bdps=1.0, seed=1, **link) -> Scenario:
    """Flows of 10 MB over one link."""
    line = Link(id="line", source="a", target="b", capacity=RATE, delay=RTT / 2, buffer=bdps * BDP, **link)
    flows = [
        Flow(id=f"f{k}", sender=sender, rtt=RTT, slow_start=start, offers=1e7, ecn=False)
        for k, start in enumerate(starts)
    ]
    return Scenario(links=[line], flows=flows, duration=20.0, packet_size=1500, seed=seed)


def lost(start: str | None, **options) -> float:
    """Of the flow [packet]."""
    return float(simulate_packets(scenario(start, **options)).series["lost", "line"].sum()) / 1500.0


def took(start: str, **options) -> float:
    """Mean time to 10 MB [s]."""
    found = [simulate_packets(scenario(start, seed=seed, **options)) for seed in range(1, 4)]
    return float(np.mean([each.transfers["duration"][0] for each in found]))


@pytest.mark.parametrize("bdps", [1.0, 2.0])
def test_slow_start_loses_what_pipe_and_buffer_hold_unless_it_ends_before(bdps):
    """W doubles once more after a packet was lost at W = BDP + buffer. HyStart++ needs a whole round trip that is late,
    in which the queue is half of that, and then grows by a quarter; acknowledgements tell HyStart at half the BDP."""
    full = (1.0 + bdps) * BDP / 1500.0
    assert lost("standard", bdps=bdps) == pytest.approx(full, rel=0.02)
    assert lost(None, bdps=bdps) == lost("standard", bdps=bdps)
    assert lost("hystart++", bdps=bdps) < 0.6 * full
    assert lost("hystart", bdps=bdps) == 0.0
    assert lost(None, sender="cubic", bdps=bdps) == lost("hystart", sender="cubic", bdps=bdps)
    assert lost("standard", sender="cubic", bdps=bdps) > full > lost("hystart", sender="cubic", bdps=bdps)


@pytest.mark.parametrize("sender", ["reno", "cubic"])
def test_jitter_ends_hystart_for_good_and_hystart_plus_for_a_while(sender):
    """10 ms of it: HyStart leaves at a part of the pipe, from where Reno and Cubic need a second and more."""
    times = {start: took(start, sender=sender, jitter=0.01) for start in ("standard", "hystart", "hystart++")}
    assert times["hystart++"] < 1.1 * times["standard"]
    assert times["hystart"] > 1.2 * times["hystart++"]


def test_who_has_no_choice():
    for changed in ({"sender": "bbr"}, {"sender": "hpcc"}, {"offers": Stream(rate=1e6)}):
        with pytest.raises(InvalidValue, match="slow_start"):
            Flow(slow_start="standard", **changed)
    with pytest.raises(InvalidValue, match="slow_start"):
        Flow(slow_start="fast")
    for sender in ("vegas", "ledbat++"):
        with pytest.raises(InvalidValue, match=r"flows.f0.slow_start.*has its own"):
            packet_problem(scenario("standard", sender=sender))


def test_other_engines_say_what_they_lack():
    said = supports(scenario("standard").replace(flows=[Flow(rtt=RTT, slow_start="standard")]))
    assert said["packet"] is None
    assert all("slow_start" in str(said[engine]) for engine in ("fluid", "ns3"))
    assert scenario_lacks(scenario("standard", None)) is None
    assert scenario_lacks(scenario("hystart", None, sender="cubic")) is None
    assert scenario_lacks(scenario("standard", "standard", sender="cubic")) is None
    assert "beside" in (scenario_lacks(scenario("standard", None, sender="cubic")) or "")
    for start, sender in (("hystart", "reno"), ("hystart++", "cubic")):
        assert "slow_start" in (scenario_lacks(scenario(start, sender=sender)) or "")
