"""A law of link rates of another package: a record and a function that returns the law, in the fluid and on packets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from packages import ran, run

LAW = '''"""Proportional pacing: each link sends at its nominal rate and a share of its backlog in an interval."""

import numpy as np
from netctrl.model.io.fields import number
from netctrl.model.law import MyopicGain
from netctrl.plants.linearize import network_model
from netctrl.scenario.network.policy import Controlled, LinkLaw


class Proportional(Controlled, frozen=True, kw_only=True, tag="proportional"):
    """A share of the backlog goes in each interval."""

    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        number("a share above 0, to 1", above=0.0, at_most=1.0)("share", self.share)


def law(policy, network, interval):
    model = network_model(network, interval)
    n = len(model.links)
    gain = np.full(n, policy.share)
    return MyopicGain(
        interval_s=interval, links=model.links, delay=model.delay, backlog_gain=gain, rate_gain=np.zeros(n)
    )


LAW = LinkLaw(Proportional, law)
'''
PROBE = """
import json, netctrl

def spread(**control):
    scenario = netctrl.read("hftrac-testbed").replace(duration="60s", warmup="5s", control=control)
    found = netctrl.simulate(scenario, engine="fluid", runs=2).totals
    return float(found["rate_square"].mean()), float(found["backlog"].mean())

print(json.dumps([spread(kind="fifo"), *(spread(kind="proportional", share=share) for share in (0.6, 0.1))]))
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    about = folder / "proportional-1.dist-info"
    about.mkdir(parents=True)
    (folder / "proportional.py").write_text(LAW)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: proportional\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[netctrl.link_laws]\nproportional = proportional:LAW\n")
    return folder


def test_it_paces_the_links_of_a_network(site: Path) -> None:
    """The smaller the share, the smoother the rates and the longer the queues; fifo is quickest."""
    rough, quick, slow = json.loads(run(site, "-c", PROBE))
    assert rough[0] > quick[0] > slow[0] > 0.0
    assert rough[1] < quick[1] < slow[1]


def test_its_record_has_the_fields_of_a_policy_and_its_own(site: Path) -> None:
    show = (
        "import netctrl; print(netctrl.read('hftrac-testbed').replace(control={'kind': 'proportional', SET}).control)"
    )
    told = run(site, "-c", show.replace("SET", "'share': 0.25, 'rate_scale': 1.01"))
    assert "share=0.25" in told and "rate_scale=1.01" in told
    for setting, says in {"'share': 2.0": "a share above 0, to 1", "'rate_scale': 0.0": "a factor above 0"}.items():
        refused = ran(site, "-c", show.replace("SET", setting))
        assert refused.returncode == 1 and says in refused.stderr.splitlines()[-1]


def test_agents_run_it(site: Path, tmp_path: Path) -> None:
    """Of a link's own backlog the share, which nobody else needs to hear."""
    text = 'schema = "netctrl.scenario/3"\nname = "p"\nduration = "1s"\ninterval = "10ms"\n'
    text += 'network = { kind = "routed", graph = "tandem" }\ncontrol = { kind = "proportional", share = 0.2 }\n'
    (tmp_path / "p.toml").write_text(text)
    where = ["--interfaces", "L1=eth0,L2=eth1", "-o", str(tmp_path / "o")]
    run(site, "-m", "netctrl", "export", "tc", str(tmp_path / "p.toml"), *where)
    law = json.loads((tmp_path / "o" / "router.agent.json").read_text())["law"]
    assert [row for row in law["control"]["taps"] if row[3]] == [[0.0, 2.0, 0.0, 0.2], [1.0, 3.0, 0.0, 0.2]]
    assert law["links"] == ["L1", "L2"] and law["control"]["offset"] == law["nominal"]
