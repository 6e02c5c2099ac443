"""Reading of scenario files of every kind, which their keys identify."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from netctrl.core.errors import FileError
from netctrl.model.io.toml import read_toml
from netctrl.scenario.files import scenario_of
from netctrl.scenario.network.sweep import SweepSpec, read_sweep
from netctrl.scenario.scenario import Scenario


def read_scenario_file(
    path: str | os.PathLike[str],
    network_path: Callable[[str], Path] = Path,
    scenario_path: Callable[[str], Path] = Path,
) -> Scenario | SweepSpec:
    """Read a scenario, or a sweep of scenarios, from a TOML file, strictly.

    Parameters
    ----------
    path : path
        A file of a `Scenario`, or of a sweep (with a key `scenario`).
    network_path : callable
        Function from a graph's name to its file (`netctrl.model.datasets.network_path`).
    scenario_path : callable
        Function from the name of a sweep's scenario to its file (`netctrl.model.datasets.scenario_path`).

    Raises
    ------
    FileError
        The file can't be read, isn't TOML, or has an unknown, missing or unusable key, which the message names.
    """
    content = read_toml(path)
    if "scenario" in content:
        return read_sweep(path, network_path, scenario_path)
    if not content.keys() & {"schema", "network", "links", "flows"}:
        raise FileError(path, "not a scenario: it has neither links, flows nor a network")
    return scenario_of(path, content, network_path)
