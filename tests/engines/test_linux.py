"""The linux engine among the others: asked for by its name, never by "auto"; what it lacks; one result as theirs."""

from __future__ import annotations

from typing import Any

import pytest
from linux_support import kernel
from msgspec.structs import replace

import netctrl
from netctrl.cli.simulate import main
from netctrl.engines import engine, linux
from netctrl.engines.engine import Kind, OwnEngine, engine_for, supports
from netctrl.errors import InvalidValue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.register import ENGINES
from netctrl.scenario.links import Link, Links
from netctrl.scenario.result import Result
from netctrl.scenario.result_file import read_result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows, UdpFlows

LINE = Link(id="line", source="a", target="b", capacity="2Mbit", buffer="20kB")
FLOWS = (
    BulkFlows(id="bulk", path=("line",), rtt="20ms", count=1),
    UdpFlows(id="udp", path=("line",), count=1, rate="100kbit"),
)


def scenario(line: Link = LINE) -> Scenario:
    return Scenario.of(name="s", links=(line,), flows=FLOWS, duration="2s", warmup="500ms")


@pytest.fixture
def able(monkeypatch) -> None:
    monkeypatch.setattr(linux, "machine_lacks", lambda: None)


class Table(dict[str, Any]):
    """Engines of a test, as the registry lists them."""

    def usable(self) -> tuple[str, ...]:
        return tuple(self)


def test_auto_passes_it_over(able, monkeypatch) -> None:
    assert tuple(ENGINES)[-1] == "linux" and not ENGINES["linux"].auto
    assert supports(scenario())["linux"] is None
    assert engine_for(scenario(), "linux") is ENGINES["linux"]
    assert engine_for(scenario()).name == "packet"
    alone = Table({"none": OwnEngine("none", {}), "linux": ENGINES["linux"]})
    monkeypatch.setattr(engine, "ENGINES", alone)
    with pytest.raises(InvalidValue, match="takes linux, requested by name: none has no kernel for links and flows"):
        engine_for(scenario())
    late = OwnEngine("late", {Links: Kind(lambda *_: "run")})
    monkeypatch.setattr(engine, "ENGINES", Table({**alone, "late": late}))
    assert engine_for(scenario()) is late


def test_what_it_lacks_is_said_with_the_engines_that_have_it(able, monkeypatch) -> None:
    codel = scenario(replace(LINE, queue=CodelQueue()))
    with pytest.raises(InvalidValue, match=r"linux, which has no queues other than droptail.*codel.*takes packet"):
        engine_for(codel, "linux")
    design = netctrl.hftrac(netctrl.read("merge"), interval_s=0.01, mu=1.0)
    assert "rates that a Design sets" in (supports(engine.case_of(scenario(), design))["linux"] or "")
    assert supports(design)["linux"] == "kernel for a network under demands"
    monkeypatch.setattr(linux, "machine_lacks", lambda: "right to: run as root")
    with pytest.raises(InvalidValue, match="linux, which has no right to: run as root"):
        engine_for(scenario(), "linux")


def test_its_plan_takes_no_privilege(able) -> None:
    text = linux.testbed_text(scenario())
    assert "line: a to b, tbf 2 Mbit/s" in text
    assert "host bulk 0: reno" in text
    assert "host udp: " in text


@kernel
def test_its_result_is_as_that_of_the_others(tmp_path, capsys) -> None:
    with pytest.raises(InvalidValue, match="runs"):
        netctrl.simulate(scenario(), "linux", runs=2)
    found = netctrl.simulate(scenario(), "linux")
    assert isinstance(found, Result)
    assert {("throughput", "line"), ("backlog", "line"), ("loss", "line"), ("rtt", "bulk")} <= found.measures().keys()
    assert found.provenance.seed == 1
    found.save(tmp_path / "found.json")
    assert (read_result(tmp_path / "found.json").series["backlog"] == found.series["backlog"]).all()
    assert main(["arc-round-trip", "--engine", "linux"]) == 2
    assert "linux, which has no web flows (flows.web)', takes fluid or packet or ns3" in capsys.readouterr().err
