"""Engines that run a law, found by asking each engine about a small scenario that uses the law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from netctrl.cli.catalogue import LAWS, Entry
from netctrl.core.errors import NetctrlError
from netctrl.core.register import ENGINES
from netctrl.engines import kernel
from netctrl.engines.case import case_of
from netctrl.laws.rate.paced import PacedSender
from netctrl.scenario.bottleneck import Bottleneck
from netctrl.scenario.fabric.topology import Dumbbell
from netctrl.scenario.links import Link
from netctrl.scenario.network.policy import POLICIES
from netctrl.scenario.read import read_scenario_file
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow


def with_engines(law: Entry) -> Entry:
    """An entry of `list laws` with the engines that run the law, whatever the process's privileges."""
    found: set[str] = set()
    for make in _TRIALS[str(law.kind)]:
        try:
            scenario = make(law.name)
            case = case_of(scenario)
        except (NetctrlError, TypeError):  # the record has required fields, or the law does not fit this scenario
            continue
        found |= {name for name in ENGINES.usable() if _lacks(name, case) is None}
    return Entry(law.name, law.what, law.kind, tuple(name for name in ENGINES.usable() if name in found) or None)


def _lacks(name: str, case: Any) -> str | None:
    """Reason why an engine can't run a case, or None; of the kernel, whatever this machine has."""
    if name == "kernel" and case.scenario.kind in kernel.KERNEL.kinds:
        return kernel.case_lacks(case)
    return ENGINES[name].lacks(case)


def _on_a_link(sender: Any = "reno", **queue: Any) -> Scenario:
    line = Link(id="line", source="left", target="right", capacity="10Mbit", buffer="60kB", **queue)
    flows = Flow(rtt="50ms", count=2, sender=sender)
    return _with_law(Scenario(name="trial", duration="10s", links=(line,), flows=(flows,)))


def _at_a_bottleneck(name: str) -> Scenario:
    sender: Any = {"kind": "cap", "rate": "1Mbit", "window": "htcp"} if name == "cap" else name
    return _with_law(Scenario(duration="10s", network=Bottleneck(), flows=(Flow(sender=sender),)))


def _with_law(scenario: Scenario) -> Scenario:
    """With a law for paced flows, which wait for one."""
    if not isinstance(scenario.flows[0].sender, PacedSender):
        return scenario
    from netctrl.design.pacing.design import pacing
    from netctrl.scenario.design import with_pacer

    return with_pacer(scenario, pacing().law)


def _in_a_data_centre(name: str) -> Scenario:
    flows = Flow(source=0, target=4, offers="10kB", sender=LAWS["data-centre sender"][name].record())
    return Scenario(name="trial", duration="1ms", network=Dumbbell(), flows=(flows,))


def _in_a_network(name: str) -> Scenario:
    from netctrl.model.datasets import network_path, scenario_path

    policy: Any = next(kind for kind in POLICIES if kind.__struct_config__.tag == name)
    needed: dict[str, dict[str, Any]] = {"hftrac": {"architecture": "coordinated"}, "design": {"file": "any"}}
    scenario: Any = read_scenario_file(scenario_path("hftrac-testbed"), network_path)
    return scenario.replace(control=policy(**needed.get(name, {})))


_TRIALS: dict[str, tuple[Callable[[str], Any], ...]] = {
    "queue": (lambda name: _on_a_link() if name == "droptail" else _on_a_link(queue=LAWS["queue"][name].record()),),
    "TCP sender": (_on_a_link, _at_a_bottleneck),
    "rate sender": (_on_a_link, _at_a_bottleneck),
    "data-centre sender": (_in_a_data_centre,),
    "link rate": (_in_a_network,),
}
