"""A TCP sender of another package, examples/scalable: in the fluid of a bottleneck, on packets and in ns-3."""

from __future__ import annotations

import json
from math import log
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from packages import installed, ran, run
from places import ROOT

PROBE = """
import json
import numpy as np
import netctrl
from netctrl import RateCap
from netctrl.sim.bottleneck.run import simulate_bottleneck
found = []
for rate in (2e7, 1e8, 5e8):
    link = simulate_bottleneck([RateCap(1e12, 0.02, window="scalable")], rate, rate * 0.002 / 8, 30.0, bin_s=0.005)
    late = link.time_s > 15.0
    cuts = link.time_s[1:][late[1:] & (np.diff((link.lost_bytes[0] > 0).astype(int)) > 0)]
    found.append(np.median(np.diff(cuts)) / np.nanmean(link.rtt_s[0, late]))
print(json.dumps(found))
"""

ON_PACKETS = """
import json
import numpy as np
import netctrl
from netctrl.scenario.tcp_aqm.flows import BulkFlows
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
found = []
for rate in (2e7, 1e8, 5e8):
    line = Link(id="line", source="a", target="b", capacity=rate, buffer=max(rate * 0.002 / 8, 15e3))
    flow = BulkFlows(id="flow", path=("line",), rtt=0.02, count=1, sender="scalable", ecn=False)
    scenario = Scenario.of(
        name="scalable", duration=30.0, warmup=15.0, links=(line,), flows=(flow,), packet_size=1500, interval=0.005
    )
    link = netctrl.simulate(scenario, "packet")
    late = link.time_s > 15.0
    drops = link.time_s[late & (link.lost_bytes[0] > 0)]
    cuts = drops[np.diff(drops, prepend=0.0) > 0.1]
    rtt = 0.02 + 12000 / rate + link.backlog_bytes[0, late].mean() * 8 / rate
    found.append(np.median(np.diff(cuts)) / rtt)
print(json.dumps(found))
"""


SCENARIO = """
schema = "netctrl.scenario/2"
name = "scalable"
network = { kind = "bottleneck", capacity = "50Mbit", buffer = "25kB", rtt = "20ms" }
traffic = { packet_size = "1500B", flows = [{ kind = "single", id = "flow", sender = "scalable" }] }
time = { duration = "20s", warmup = "5s", interval = "5ms" }
"""
PERIOD = log(8.0 / 7.0) / log(1.01)


@pytest.mark.needs("ns3")
def test_in_ns3_the_window_stands_for_a_recovery_more(tmp_path: Path) -> None:
    (tmp_path / "link.toml").write_text(SCENARIO)
    site = installed(ROOT / "examples" / "scalable", tmp_path / "site")
    run(site, "-m", "netctrl", "export", "ns3", "link.toml", "-o", "program", "--run", "--result", "link.csv")
    link = pd.read_csv(tmp_path / "link.csv").query("time_s > 5")
    drops = link.time_s[link.dropped_bytes > 0.0].to_numpy()
    cuts = drops[np.diff(drops, prepend=0.0) > 0.1]
    rtt = 0.02 + 8.0 * 1500.0 / 50e6 + link.delay_s.mean()
    assert np.median(np.diff(cuts)) / rtt == pytest.approx(PERIOD + 1.0, rel=0.06)
    assert link.window_bytes_0.min() / link.window_bytes_0.max() == pytest.approx(0.875, rel=0.01)


def test_a_kind_that_nobody_brings_is_named(tmp_path: Path) -> None:
    (tmp_path / "link.toml").write_text(SCENARIO.replace("scalable", "scalabel"))
    site = installed(ROOT / "examples" / "scalable", tmp_path / "site")
    said = ran(site, "-m", "netctrl", "export", "ns3", "link.toml", "-o", "program")
    assert said.returncode != 0
    assert "scalabel" in said.stderr and "scalable" in said.stderr


def test_its_cuts_are_as_many_round_trips_apart_at_any_rate(tmp_path: Path) -> None:
    """ln(8/7)/ln(1.01) = 13.4 (Kelly 2003, section 3), and half a round trip or so until a loss is heard of."""
    found = json.loads(run(installed(ROOT / "examples" / "scalable", tmp_path / "site"), "-c", PROBE))
    assert found == pytest.approx(3 * [PERIOD], rel=0.12)


@pytest.mark.slow
def test_on_packets_the_window_stands_for_its_recovery_more(tmp_path: Path) -> None:
    """A round trip where one segment is lost; two where a hundredth of the window is, in the round trip until the first
    loss is heard of: the last one is sent again a round trip after the first."""
    found = json.loads(run(installed(ROOT / "examples" / "scalable", tmp_path / "site"), "-c", ON_PACKETS))
    assert found[0] == pytest.approx(PERIOD + 1.0, rel=0.03)
    assert PERIOD + 1.0 < found[1] < PERIOD + 2.0
    assert found[2] == pytest.approx(PERIOD + 2.0, rel=0.03)
