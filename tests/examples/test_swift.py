"""A law of senders in another package, examples/swift: on packets and in ns-3, without a line of netctrl touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from packages import installed, run
from places import ROOT

SWIFT = ROOT / "examples" / "swift"
SCENARIO = str(SWIFT / "swift.toml")

PROBE = """
import json
import numpy as np
from netctrl.engines.reader import read
from netctrl.scenario.transfers import received_fairness
from netctrl.sim.packet.run import simulate_packets
result = simulate_packets(read("SCENARIO"))
settled = result.series["backlog"][0, 4999:] * 8 / 25e9
packets = result.tables["acknowledgements"]["window"][-2000:].mean() / 1000.0
print(json.dumps([settled.mean(), packets, float(received_fairness(result.tables["received"])[1:].min())]))
""".replace("SCENARIO", SCENARIO)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return installed(SWIFT, tmp_path / "site")


def expected_delay(queueing: float, packets: float) -> float:
    alpha = 20e-6 / (0.1**-0.5 - 0.1)
    return queueing + alpha * (packets**-0.5 - 0.1)


def test_the_law_is_one_short_file() -> None:
    assert len((SWIFT / "netctrl_swift.py").read_text().splitlines()) <= 90


@pytest.mark.engines
def test_packets_wait_as_long_as_swift_wants_and_no_older_kernel_runs(site: Path) -> None:
    """5 us and alpha (1/sqrt(W) - 1/sqrt(fs_max)) for W packets, and at most what eight senders add in a round trip."""
    law = site / "netctrl_swift.py"
    for queueing in (5e-6, 0.0):
        delay, packets, fairness = json.loads(run(site, "-c", PROBE))
        least = expected_delay(queueing, packets)
        assert least < delay < least + 8 * 1000 * 8 / 25e9
        assert fairness > 0.999
        law.write_text(law.read_text().replace("target = path.base_rtt + p.queueing", "target = path.base_rtt"))


def figures(text: str) -> dict[tuple[str, str], float]:
    return {(each["quantity"], each["of"]): each["mean"] for each in json.loads(text)["summary"]}


@pytest.mark.needs("ns3")
def test_ns3_gives_what_the_simulator_gives(site: Path) -> None:
    ours = figures(run(site, "-m", "netctrl", "simulate", SCENARIO, "--json"))
    argv = ["ns3", "--scenario", SCENARIO, "-o", "program", "--run", "--json"]
    theirs = figures(run(site, "-m", "netctrl", "export", *argv))
    of_port = [(quantity, "s0>s1") for quantity in ("backlog", "backlog most", "utilization")]
    for name in (*of_port, ("queue 99 %", "network"), ("Jain's index", "watched transfers")):
        assert theirs[name] == pytest.approx(ours[name], rel=0.02), name
    assert "struct SwiftLaw" in (site.parent / "program" / "netctrl-window-laws.h").read_text()
