"""A TCP sender of another package, examples/scalable: in the fluid of a bottleneck and in ns-3; on packets in
test_on_packets.py.
"""

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
found = []
for rate in (2e7, 1e8, 5e8):
    flow = {"sender": {"kind": "cap", "rate": 1e12, "window": "scalable"}}
    scenario = netctrl.bottleneck(flows=[flow], capacity=rate, buffer=rate * 0.002 / 8, duration=30.0, interval=0.005)
    link = netctrl.simulate(scenario, "fluid")
    late = link.time_s > 15.0
    cuts = link.time_s[1:][late[1:] & (np.diff((link.series["lost"][0] > 0).astype(int)) > 0)]
    found.append(np.median(np.diff(cuts)) / np.nanmean(link.series["rtt"][0, late]))
print(json.dumps(found))
"""

SCENARIO = """schema = "netctrl.scenario/3"
name = "scalable"
network = { kind = "bottleneck", capacity = "50Mbit", buffer = "25kB", rtt = "20ms" }
packet_size = "1500B"
flows = [{ id = "flow", sender = "scalable" }]
duration = "20s"
warmup = "5s"
interval = "5ms"
"""
PERIOD = log(8.0 / 7.0) / log(1.01)


@pytest.mark.needs("ns3")
def test_in_ns3_the_window_stands_for_a_recovery_more(tmp_path: Path) -> None:
    (tmp_path / "link.toml").write_text(SCENARIO)
    site = installed(ROOT / "examples" / "scalable", tmp_path / "site")
    run(site, "-m", "netctrl", "export", "ns3", "link.toml", "-o", "program", "--run", "--result", "link.csv")
    table = pd.read_csv(tmp_path / "link.csv").query("time > 5")
    link, flow = table[table["link"] == "bottleneck"], table[table["flow"] == "flow"]
    drops = link.time[link.lost > 0.0].to_numpy()
    cuts = drops[np.diff(drops, prepend=0.0) > 0.1]
    rtt = 0.02 + 8.0 * 1500.0 / 50e6 + link.delay.mean()
    assert np.median(np.diff(cuts)) / rtt == pytest.approx(PERIOD + 1.0, rel=0.06)
    assert flow.window.min() / flow.window.max() == pytest.approx(0.875, rel=0.01)


def test_a_kind_that_nobody_brings_is_named(tmp_path: Path) -> None:
    (tmp_path / "link.toml").write_text(SCENARIO.replace("scalable", "scalabel"))
    site = installed(ROOT / "examples" / "scalable", tmp_path / "site")
    said = ran(site, "-m", "netctrl", "export", "ns3", "link.toml", "-o", "program")
    assert said.returncode != 0
    assert "scalabel" in said.stderr and "scalable" in said.stderr


@pytest.mark.slow
def test_its_cuts_are_as_many_round_trips_apart_at_any_rate(tmp_path: Path) -> None:
    """ln(8/7)/ln(1.01) = 13.4 (Kelly 2003, section 3), and half a round trip or so until a loss is heard of."""
    found = json.loads(run(installed(ROOT / "examples" / "scalable", tmp_path / "site"), "-c", PROBE))
    assert found == pytest.approx(3 * [PERIOD], rel=0.12)
