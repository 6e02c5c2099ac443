"""The kernel engine among the others: what it supports, what it lacks, sweeps and comparisons."""

from __future__ import annotations

from typing import Any

import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.engines import engine
from netctrl.engines.engine import Kind, OwnEngine, engine_for, supports
from netctrl.laws.disciplines import KernelQueue
from netctrl.scenario.links import Link, Links
from netctrl.scenario.tcp_aqm.flows import Flow


def scenario_with(sender="cubic", **line):
    link = Link(id="line", source="left", target="right", capacity="10Mbit", delay="10ms", **line)
    flows = Flow(id="flows", path=("line",), rtt="20ms", count=2, sender=sender)
    return netctrl.Scenario(name="small", links=(link,), flows=(flows,), duration="5s", packet_size=1000)


def test_a_discipline_of_linux_is_for_the_kernel_alone() -> None:
    scenario = scenario_with(queue=KernelQueue(discipline="cake"))
    lacking = supports(scenario)
    assert all(lacking[name] is not None for name in ("fluid", "packet", "ns3"))
    assert "cake" in lacking["packet"]
    with pytest.raises(InvalidValue, match="cake"):
        netctrl.simulate(scenario, "packet")


def test_without_a_kernel_the_remedy_is_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "netctrl kernel build" in str(supports(scenario_with())["kernel"])


def test_auto_never_chooses_it() -> None:
    with pytest.raises(InvalidValue, match=r"requested by name|packet has no"):
        netctrl.simulate(scenario_with(queue=KernelQueue(discipline="cake")))


class Table(dict[str, Any]):
    """Engines of a test, as the registry lists them."""

    def usable(self) -> tuple[str, ...]:
        return tuple(self)


def test_auto_passes_over_engines_that_are_to_be_requested_by_name(monkeypatch) -> None:
    scenario, runs = scenario_with(), {Links: Kind(lambda *_: "run")}
    asked, late = OwnEngine("asked", runs, auto=False), OwnEngine("late", runs)
    alone = Table({"none": OwnEngine("none", {}), "asked": asked})
    monkeypatch.setattr(engine, "ENGINES", alone)
    assert engine_for(scenario, "asked") is asked
    with pytest.raises(InvalidValue, match="takes asked, requested by name: none has no kernel for links and flows"):
        engine_for(scenario)
    monkeypatch.setattr(engine, "ENGINES", Table({**alone, "late": late}))
    assert engine_for(scenario) is late


def test_a_sender_that_it_lacks_is_named() -> None:
    assert "senders but reno, cubic" in str(supports(scenario_with(sender="hpcc"))["kernel"])


def test_a_sender_that_only_the_kernel_has_is_for_its_lab() -> None:
    lacks = supports(scenario_with(sender={"kind": "kernel", "name": "bbr_mine"}))
    assert "Linux kernel" in str(lacks["packet"])
    assert "Linux kernel" in str(lacks["ns3"])
    assert "no senders but reno" in f"no {lacks['fluid']}"
    assert lacks["kernel"] is None or "kernel to run here" in lacks["kernel"]
    with pytest.raises(InvalidValue, match="at most 15 characters"):
        scenario_with(sender={"kind": "kernel", "name": "a_name_too_long_"})


@pytest.mark.needs("lab")
def test_it_is_compared_and_swept_as_the_others() -> None:
    scenario = scenario_with(buffer="60kB")
    rows = netctrl.compare(scenario, ["packet", "kernel"], seeds=2).rows
    found = {row.engine: row.mean for row in rows if (row.quantity, row.of) == ("throughput", "line")}
    assert found["kernel"] == pytest.approx(found["packet"], rel=0.02)
