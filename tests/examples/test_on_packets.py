"""Laws of two other packages at once, examples/blue and examples/scalable, on packets: no line of netctrl is touched.

Their kernels are compiled once, with both laws, for all tests here.
"""

from __future__ import annotations

import json
from math import log
from pathlib import Path

import pytest
from packages import installed, run
from places import ROOT

pytestmark = pytest.mark.engines

BLUE = ROOT / "examples" / "blue"
PERIOD = log(8.0 / 7.0) / log(1.01)
"""Round trips from one cut of examples/scalable to the next (Kelly 2003, section 3)."""

SCALABLE = """
import json
import numpy as np
import netctrl
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
found = []
for rate in (2e7, 1e8, 5e8):
    line = Link(id="line", source="a", target="b", capacity=rate, buffer=max(rate * 0.002 / 8, 15e3))
    flow = Flow(id="flow", path=("line",), rtt=0.02, count=1, sender="scalable", ecn=False)
    scenario = Scenario(
        name="scalable", duration=30.0, warmup=15.0, links=(line,), flows=(flow,), packet_size=1500, interval=0.005
    )
    link = netctrl.simulate(scenario, "packet")
    late = link.time_s > 15.0
    drops = link.time_s[late & (link.series["lost"][0] > 0)]
    cuts = drops[np.diff(drops, prepend=0.0) > 0.1]
    rtt = 0.02 + 12000 / rate + link.series["backlog"][0, late].mean() * 8 / rate
    found.append(np.median(np.diff(cuts)) / rtt)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages") / "site"
    for name in ("blue", "scalable"):
        installed(ROOT / "examples" / name, folder)
    return folder


def test_the_fluid_and_packets_mark_alike(site: Path) -> None:
    found = compared(site, "fluid,packet", 5)
    assert found["fluid"] == pytest.approx(0.0097, rel=0.01)
    assert found["packet"] == pytest.approx(found["fluid"], rel=0.10)


@pytest.mark.needs("ns3")
def test_ns3_marks_like_both(site: Path) -> None:
    found = compared(site, "ns3,packet,fluid", 5)
    assert found["packet"] == pytest.approx(found["ns3"], rel=0.10)
    assert found["fluid"] == pytest.approx(found["ns3"], rel=0.10)


def compared(site: Path, engines: str, runs: int) -> dict[str, float]:
    """Share of packets that are marked in each engine, the mean of some seeds."""
    argv = ("--compare", engines, "--runs", str(runs), "--json")
    rows = json.loads(run(site, "-m", "netctrl", "simulate", str(BLUE / "blue.toml"), *argv))["rows"]
    return {row["engine"]: row["mean"] for row in rows if row["quantity"] == "marks"}


def test_a_senders_window_stands_for_its_recovery_more(site: Path) -> None:
    """A round trip where one segment is lost; two where a hundredth of the window is, in the round trip until the first
    loss is heard of: the last one is sent again a round trip after the first."""
    found = json.loads(run(site, "-c", SCALABLE))
    assert found[0] == pytest.approx(PERIOD + 1.0, rel=0.03)
    assert PERIOD + 1.0 < found[1] < PERIOD + 2.0
    assert found[2] == pytest.approx(PERIOD + 2.0, rel=0.03)
