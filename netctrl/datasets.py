"""Readers of the data that travels with netctrl: claims, scenarios, networks, models, schema of Design files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from netctrl.errors import FileError, InvalidValue
from netctrl.model.claim import Claim, read_claims

__all__ = [
    "Claim",
    "claims",
    "data_path",
    "design_schema",
    "model_path",
    "model_schema",
    "models",
    "network_path",
    "networks",
    "scenario_path",
    "scenarios",
    "sweep_path",
    "sweeps",
    "trace_path",
    "traces",
]

_INSTALLED = Path(__file__).parent / "data"  # where the wheel carries the repository's data/
_CHECKOUT = Path(__file__).parent.parent / "data"

PAPERS = ("arc", "hftrac", "connet", "mpcc", "pacing", "linux")


def data_path(name: str) -> Path:
    """The path of a file of data/, as in data_path("claims/arc.csv"); FileError if there is none."""
    for folder in (_INSTALLED, _CHECKOUT):
        if (folder / name).is_file():
            return folder / name
    raise FileError(name, "is no file of netctrl's data")


def claims(paper: str) -> tuple[Claim, ...]:
    """All claims of a paper that netctrl knows of; `paper` is one of PAPERS."""
    if paper not in PAPERS:
        raise InvalidValue("paper", paper, ", ".join(PAPERS))
    return read_claims(data_path(f"claims/{paper}.csv"))


def scenarios() -> tuple[str, ...]:
    """Names of the scenarios that come with netctrl."""
    return _names("scenarios", ".toml")


def scenario_path(name: str) -> Path:
    """The path of a scenario: a file if there is one of this name (no folder), else one that comes with netctrl.

    Raises
    ------
    InvalidValue
        Neither a file nor one of `scenarios()`.
    """
    return _path("scenario", name, ".toml", "a TOML file")


def networks() -> tuple[str, ...]:
    """Names of the networks that come with netctrl."""
    return _names("networks", ".json")


def network_path(name: str) -> Path:
    """The path of a network: a file if there is one of this name (no folder), else one that comes with netctrl.

    Raises
    ------
    InvalidValue
        Neither a file nor one of `networks()`.
    """
    return _path("network", name, ".json", "a JSON file")


def models() -> tuple[str, ...]:
    """Names of the identified models that come with netctrl."""
    return _names("models", ".json")


def model_path(name: str) -> Path:
    """The path of a model: a file if there is one of this name (no folder), else one that comes with netctrl.

    Raises
    ------
    InvalidValue
        Neither a file nor one of `models()`.
    """
    return _path("model", name, ".json", "a JSON file")


def sweeps() -> tuple[str, ...]:
    """Names of the sweeps that come with netctrl."""
    return _names("sweeps", ".toml")


def sweep_path(name: str) -> Path:
    """The path of a sweep: a file if there is one of this name (no folder), else one that comes with netctrl.

    Raises
    ------
    InvalidValue
        Neither a file nor one of `sweeps()`.
    """
    return _path("sweep", name, ".toml", "a TOML file")


def traces() -> tuple[str, ...]:
    """Names of the traces of signals that come with netctrl."""
    return _names("traces", ".csv")


def trace_path(name: str) -> Path:
    """The path of a trace: a file if there is one of this name (no folder), else one that comes with netctrl.

    Raises
    ------
    InvalidValue
        Neither a file nor one of `traces()`.
    """
    return Path(name) if name.endswith(".parquet") else _path("trace", name, ".csv", "a .csv or .parquet file")


def design_schema() -> dict[str, Any]:
    """JSON Schema of Design files, as published."""
    return json.loads(data_path("schema/design-1.json").read_text(encoding="utf-8"))


def model_schema() -> dict[str, Any]:
    """JSON Schema of model files, as published."""
    return json.loads(data_path("schema/model-1.json").read_text(encoding="utf-8"))


def _names(folder: str, suffix: str) -> tuple[str, ...]:
    folders = [root / folder for root in (_INSTALLED, _CHECKOUT) if (root / folder).is_dir()]
    return tuple(sorted(path.stem for path in folders[0].glob(f"*{suffix}"))) if folders else ()


def _path(kind: str, name: str, suffix: str, file: str) -> Path:
    known = _names(f"{kind}s", suffix)
    try:
        there = bool(name) and Path(name).exists() and not (name in known and Path(name).is_dir())
    except (OSError, ValueError):  # too long a name, or a folder that may not be looked into
        there = False
    if there or name.endswith(suffix):
        return Path(name)
    if name in known:
        return data_path(f"{kind}s/{name}{suffix}")
    raise InvalidValue(kind, name, f"{file}, or one of {', '.join(known)}")
