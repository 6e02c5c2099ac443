"""Scenario files of every kind: which kind one is, by its keys."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from netctrl.errors import FileError
from netctrl.model.io.toml import read_toml, toml_record
from netctrl.scenario.access.scenario import AccessLinkScenario
from netctrl.scenario.bottleneck.scenario import BottleneckScenario
from netctrl.scenario.fabric.scenario import FabricScenario
from netctrl.scenario.network.scenario import NetworkScenario, network_scenario
from netctrl.scenario.network.sweep import SweepSpec, read_sweep
from netctrl.scenario.tcp_aqm.scenario import Scenario, scenario_record

__all__ = ["AnyScenario", "read_scenario_file"]

AnyScenario = Scenario | NetworkScenario | FabricScenario | BottleneckScenario | AccessLinkScenario
"""Every kind of scenario."""

_KINDS = {
    "topology": FabricScenario,
    "bottleneck": BottleneckScenario,
}
"""Key of a file -> what it describes; the first that is there counts."""
_OF_ACCESS_LINKS = frozenset(AccessLinkScenario.__struct_fields__) - {"name", "duration", "seed"}


def read_scenario_file(
    path: str | os.PathLike[str], network_path: Callable[[str], Path] = Path
) -> AnyScenario | SweepSpec:
    """Read a scenario, or a sweep of scenarios, from a TOML file, strictly.

    Parameters
    ----------
    path : path
        Links and flows (`Scenario`), a network under demands (with `network`), a data centre (`topology`), flows at one
        bottleneck (`bottleneck`), an access link with regulated traffic, or a sweep (`scenario`).
    network_path : callable
        Where the network of a name is (`netctrl.datasets.network_path`).

    Raises
    ------
    FileError
        It can't be read, isn't TOML, or has an unknown, missing or unusable key, which the message names.
    """
    content = read_toml(path)
    if "scenario" in content:
        return read_sweep(path, network_path)
    if "network" in content:
        return network_scenario(path, content, network_path)
    if "links" in content or ("flows" in content and not content.keys() & _KINDS.keys()):
        return scenario_record(path, content)
    kind = next((kind for key, kind in _KINDS.items() if key in content), None)
    if kind is None and not content.keys() & _OF_ACCESS_LINKS:
        raise FileError(path, "is no scenario: it has neither links and flows, nor network, topology or bottleneck")
    return toml_record(path, content, kind or AccessLinkScenario)
