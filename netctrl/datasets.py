"""Readers of the data that travels with netctrl: claims, scenarios, networks, models, schema of Design files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from netctrl.errors import FileError, InvalidValue
from netctrl.model.claim import Claim, read_claims

__all__ = [
    "Claim",
    "bundled_path",
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


class _Bundled:
    """Files of one kind that come with netctrl."""

    def __init__(self, kind: str, suffix: str, takes: str, others: tuple[str, ...] = ()) -> None:
        self.kind, self.suffix, self.takes, self.others = kind, suffix, takes, others

    def names(self) -> tuple[str, ...]:
        """Names of those that come with netctrl."""
        folders = [root / f"{self.kind}s" for root in (_INSTALLED, _CHECKOUT) if (root / f"{self.kind}s").is_dir()]
        return tuple(sorted(path.stem for path in folders[0].glob(f"*{self.suffix}"))) if folders else ()

    def path(self, name: str) -> Path:
        """The path of one: a file if there is one of this name (no folder), else one that comes with netctrl.

        Raises
        ------
        InvalidValue
            Neither a file nor one of `names()`.
        """
        known = self.names()
        try:
            there = bool(name) and Path(name).exists() and not (name in known and Path(name).is_dir())
        except (OSError, ValueError):  # too long a name, or a folder that may not be looked into
            there = False
        if there or name.endswith((self.suffix, *self.others)):
            return Path(name)
        if name in known:
            return data_path(f"{self.kind}s/{name}{self.suffix}")
        raise InvalidValue(self.kind, name, f"{self.takes}, or one of {', '.join(known)}")


_SCENARIOS = _Bundled("scenario", ".toml", "a TOML file")
_NETWORKS = _Bundled("network", ".json", "a JSON file")
_MODELS = _Bundled("model", ".json", "a JSON file")
_SWEEPS = _Bundled("sweep", ".toml", "a TOML file")
_TRACES = _Bundled("trace", ".csv", "a .csv or .parquet file", (".parquet",))
scenarios, scenario_path = _SCENARIOS.names, _SCENARIOS.path
networks, network_path = _NETWORKS.names, _NETWORKS.path
models, model_path = _MODELS.names, _MODELS.path
sweeps, sweep_path = _SWEEPS.names, _SWEEPS.path
traces, trace_path = _TRACES.names, _TRACES.path


def bundled_path(name: str) -> Path:
    """The path of a scenario, network, model, sweep or trace that comes with netctrl; InvalidValue if there is none."""
    kinds = (_SCENARIOS, _NETWORKS, _MODELS, _SWEEPS, _TRACES)
    for kind in kinds:
        if name in kind.names():
            return kind.path(name)
    known = ", ".join(name for kind in kinds for name in kind.names())
    raise InvalidValue("path", name, f"a file, or one of {known}")


def design_schema() -> dict[str, Any]:
    """JSON Schema of Design files, as published."""
    return json.loads(data_path("schema/design-1.json").read_text(encoding="utf-8"))


def model_schema() -> dict[str, Any]:
    """JSON Schema of model files, as published."""
    return json.loads(data_path("schema/model-1.json").read_text(encoding="utf-8"))
