"""Packets of DCTCP and of DCQCN, that certificates and designs of thresholds are held against."""

from __future__ import annotations

import numpy as np
from fabric_support import data_centre

from netctrl.engines.engine import simulate
from netctrl.laws.window.dcqcn import Dcqcn
from netctrl.scenario.fabric.topology import Dumbbell
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.transfers import received_rates
from netctrl.sim.packet.run import simulate_packets

SIZE = 1500
DCQCN_RATE = 4e10


def dctcp_packets(
    flows: int, queue, capacity: float, rtt: float, duration: float, interval: float, start=0.0
) -> tuple[np.ndarray, float]:
    """Queue of DCTCP's flows in the second half [packet], and the share of the capacity that is used there."""
    link = Link(id="l", source="a", target="b", capacity=capacity, queue=queue)
    bulk = Flow(id="f", path=("l",), rtt=rtt, count=flows, sender="dctcp", ecn=True, start=start)
    times = {"duration": duration, "warmup": 0.5 * duration, "interval": interval}
    result = simulate(Scenario(name="dctcp", links=(link,), flows=(bulk,), packet_size=SIZE, **times), "packet")
    late = result.time_s > 0.5 * duration
    return result.series["backlog"][0][late] / SIZE, float(result["utilization", result.links[0]])


def dcqcn_packets(rtt: float, sender: Dcqcn, duration: float) -> tuple[np.ndarray, float]:
    """Queue [byte] in the second half of six flows at 40 Gbit/s over three links, and the share of it that is lost."""
    flows = [Flow(id=f"f{i}", source=i, target=6, offers=1e12, start=0.006 * i) for i in range(6)]
    watch = Watch(flows=tuple(range(6)), ports=("s0>s1",), bin=0.03)
    topology = Dumbbell(senders=6, host_rate=DCQCN_RATE, delay=round((rtt - 0.9e-6) / 6.0, 9))
    result = simulate_packets(data_centre(topology, sender, *flows, duration=duration, watch=watch))
    rate, queue = result.totals["capacity", "s0>s1", 0], result.series["backlog", "s0>s1"]
    lost = 1.0 - received_rates(result.tables["received"])[:, 5:].mean(axis=1).sum() / rate
    return queue[len(queue) // 2 :], lost
