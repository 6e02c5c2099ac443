"""Rates of links over flows in ns-3, by laws and fixed: what the packet engine does, to a packet or two a link."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import netctrl
from netctrl.cli.export import main
from netctrl.core.errors import InvalidValue
from netctrl.design.mpc.file import mpc_from_file
from netctrl.model.datasets import problem_path
from netctrl.model.design.design import HftracDesign, MpcDesign
from netctrl.model.network import Demand, Network
from netctrl.model.network import Link as NetworkLink
from netctrl.ns3.program import find_ns3
from netctrl.scenario.links import Change, Link
from netctrl.scenario.network.policy import DesignPolicy, StaticPacing
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream

CAPACITY, SIZE = 10e6, 1000
LINKS = (("second", "b", "c"), ("first", "a", "b"), ("aside", "a", "c"))
"""In another order than the Design's, with one that it doesn't know."""


def in_a_row() -> HftracDesign:
    links = tuple(
        NetworkLink(id=name, source=source, target=target, capacity=CAPACITY, delay=5e-3, buffer=60e3)
        for name, source, target in (LINKS[1], LINKS[0])
    )
    demands = (
        Demand(id="long", source="a", target="c", mean=6e6, std=1e6),
        Demand(id="short", source="b", target="c", mean=1e6, std=1e6),
    )
    return netctrl.hftrac(Network(name="row", links=links, demands=demands), 5e-3, mu=0.1, horizon="exact")


def uplink(**changed: object) -> MpcDesign:
    problem = netctrl.MpcProblem(
        plant=netctrl.link_rate_plant("10ms"), measured=(1,), horizon=30, output_weight=1.0, rate_weight=1e-4,
        input_lower=0.0, input_upper=100.0, **changed,
    )  # fmt: skip
    return netctrl.design_mpc(problem, reference=0.4, disturbances=[[1.0, 90.0]], link="uplink")


def both(*given: object, **arguments: object) -> list[netctrl.Result]:
    return [netctrl.simulate(*given, engine, **arguments) for engine in ("packet", "ns3")]


@pytest.mark.parametrize("policy", [None, StaticPacing(factor=0.6, links=("first",))], ids=["Design", "static"])
def test_links_send_at_their_laws_rates(policy: StaticPacing | None) -> None:
    """An arrival that changes after 2 s, and a capacity that falls below what arrives after 3 s."""
    flows = (
        Flow(id="long", path=("first", "second"), offers=Stream(rate=6.5e6, spacing="constant")),
        Flow(id="short", path=("second",), offers=Stream(rate=1e6, spacing="constant")),
    )
    links = tuple(
        Link(id=name, source=source, target=target, capacity=CAPACITY, delay=5e-3, buffer=60e3)
        for name, source, target in LINKS
    )
    scenario = netctrl.Scenario(
        links=links, flows=flows, duration=4.0, interval=0.01, packet_size=SIZE, control=policy,
        changes=(Change(at=2.0, flow="long", rate=5e6), Change(at=3.0, link="second", capacity=5e6)),
    )  # fmt: skip
    packets, ns3 = both(scenario, design=in_a_row() if policy is None else None)
    assert np.abs(ns3.series["backlog"] - packets.series["backlog"]).max() <= 2 * SIZE
    assert packets.series["backlog"].max() > 50 * SIZE
    assert ns3.series["departed"].sum(axis=1) == pytest.approx(packets.series["departed"].sum(axis=1), abs=3 * SIZE)
    if policy is not None:
        paced = 0.6 * CAPACITY / 8.0 * 2.0
        assert ns3.series["departed"][1, :200].sum() == pytest.approx(paced, abs=5 * SIZE)


def test_an_mpc_design_goes_through_its_course() -> None:
    """With demand that is announced, an estimator, rates that act late, and cross traffic of which nobody tells."""
    packets, ns3 = both(mpc_from_file(problem_path("uplink")))
    assert np.abs(ns3.series["backlog"] - packets.series["backlog"]).max() <= 2 * SIZE
    assert packets.series["backlog"].max() > 150 * SIZE
    assert ns3.series["lost"].sum() == 0.0


@pytest.mark.parametrize("changed", [{}, {"delay": 3, "measurement_delay": 1}], ids=["at once", "late"])
def test_what_arrives_is_taken_for_what_will(changed: dict) -> None:
    """Without announcement and estimator."""
    line = Link(id="uplink", source="a", target="b", capacity=100e6, buffer=1e6)
    scenario = netctrl.Scenario(
        links=(line,), flows=(Flow(offers=Stream(rate=30e6, spacing="constant")),), duration=2.0, interval=0.01,
        changes=(Change(at="1s", flow="stream", rate="60Mbit"),), control=DesignPolicy(file="none"),
    )  # fmt: skip
    packets, ns3 = both(scenario, design=uplink(**changed))
    assert np.abs(ns3.series["backlog"] - packets.series["backlog"]).max() <= 2 * scenario.packet_size
    assert ns3.series["backlog"][0, 50:100].mean() == pytest.approx(50e3, abs=2 * scenario.packet_size)


def test_a_law_of_too_many_numbers_is_refused() -> None:
    design = mpc_from_file(problem_path("uplink"))
    line = Link(id="uplink", source="a", target="b", capacity=100e6, buffer=1e6)
    control = DesignPolicy(file="none", announced=("stream",))
    long = netctrl.Scenario(
        links=(line,), flows=(Flow(offers=Stream(rate=30e6)),), duration=3000.0, interval=1.0, control=control
    )
    with pytest.raises(InvalidValue, match="longer interval"):
        netctrl.simulate(long, "ns3", design=design)


def test_an_exported_folder_compiles_by_hand(tmp_path: Path) -> None:
    """Program and law, by `make` alone, with the wheel of ns-3 where that is the one that is there."""
    uplink().save(tmp_path / "mpc.json")
    folder = tmp_path / "program"
    assert main(["ns3", str(tmp_path / "mpc.json"), "-o", str(folder)]) == 0
    ns3 = find_ns3()
    subprocess.run(["make", "-C", str(folder), f"NS3_PREFIX={ns3.prefix or ''}"], check=True, capture_output=True)
    subprocess.run([folder / "scenario", str(folder)], check=True, capture_output=True)
    assert len((folder / "series.csv").read_text().splitlines()) > 100
