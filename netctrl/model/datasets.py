"""Data files that come with netctrl: claims, scenarios, networks, models, problems, sweeps, traces and schemas."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netctrl.core.errors import FileError, InvalidValue, any_of, did_you_mean
from netctrl.model.claim import Claim, read_claims

if TYPE_CHECKING:
    import networkx
    import pandas as pd

    from netctrl.model.identified import IdentifiedModel
    from netctrl.model.network import Network

__all__ = [
    "Claim",
    "bundled_path",
    "claims",
    "data_path",
    "design_schema",
    "model_of",
    "model_path",
    "model_schema",
    "models",
    "network_of",
    "network_path",
    "networks",
    "problem_path",
    "problems",
    "scenario_path",
    "scenarios",
    "sweep_path",
    "sweeps",
    "trace_path",
    "traces",
]

_INSTALLED = Path(__file__).parents[1] / "data"  # the repository's data/ in an installed wheel
_CHECKOUT = Path(__file__).parents[2] / "data"

PAPERS = ("arc", "hftrac", "connet", "mpcc", "pacing", "linux")


def data_path(name: str) -> Path:
    """Path of a file in data/, such as data_path("claims/arc.csv"); FileError if there is none."""
    for folder in (_INSTALLED, _CHECKOUT):
        if (folder / name).is_file():
            return folder / name
    raise FileError(name, "not among netctrl's data files")


def claims(paper: str) -> tuple[Claim, ...]:
    """All claims of a paper that netctrl lists; `paper` is one of PAPERS."""
    if paper not in PAPERS:
        raise InvalidValue("paper", paper, any_of(PAPERS, paper))
    return read_claims(data_path(f"claims/{paper}.csv"))


class _Bundled:
    """Files of one kind that come with netctrl."""

    def __init__(self, kind: str, suffix: str, takes: str, others: tuple[str, ...] = ()) -> None:
        self.kind, self.suffix, self.takes, self.others = kind, suffix, takes, others

    def names(self) -> tuple[str, ...]:
        """Names of the files of this kind."""
        folders = [root / f"{self.kind}s" for root in (_INSTALLED, _CHECKOUT) if (root / f"{self.kind}s").is_dir()]
        return tuple(sorted(path.stem for path in folders[0].glob(f"*{self.suffix}"))) if folders else ()

    def path(self, name: str) -> Path:
        """Path of a file: `name` itself if it is a file, else the file of that name that comes with netctrl.

        Raises
        ------
        InvalidValue
            Neither a file nor one of `names()`.
        """
        known = self.names()
        try:
            there = bool(name) and Path(name).exists() and not (name in known and Path(name).is_dir())
        except (OSError, ValueError):  # the name is too long, or the folder can't be searched
            there = False
        if there or name.endswith((self.suffix, *self.others)):
            return Path(name)
        if name in known:
            return data_path(f"{self.kind}s/{name}{self.suffix}")
        raise InvalidValue(self.kind, name, f"{self.takes}, or one of {', '.join(known)}{did_you_mean(name, known)}")


_SCENARIOS = _Bundled("scenario", ".toml", "a TOML file")
_NETWORKS = _Bundled(
    "network", ".json", "a network's file", (".graphml", ".gml", ".xml", ".graph", ".yml", ".yaml", ".csv")
)
_MODELS = _Bundled("model", ".json", "a JSON file")
_SWEEPS = _Bundled("sweep", ".toml", "a TOML file")
_PROBLEMS = _Bundled("problem", ".toml", "a TOML file")
_TRACES = _Bundled("trace", ".csv", "a .csv or .parquet file", (".parquet",))
scenarios, scenario_path = _SCENARIOS.names, _SCENARIOS.path
networks, network_path = _NETWORKS.names, _NETWORKS.path
models, model_path = _MODELS.names, _MODELS.path
sweeps, sweep_path = _SWEEPS.names, _SWEEPS.path
problems, problem_path = _PROBLEMS.names, _PROBLEMS.path
traces, trace_path = _TRACES.names, _TRACES.path


def bundled_path(name: str) -> Path:
    """Path of a scenario, network, model, sweep or trace that comes with netctrl; InvalidValue if there is none."""
    kinds = (_SCENARIOS, _NETWORKS, _MODELS, _SWEEPS, _TRACES)
    for kind in kinds:
        if name in kind.names():
            return kind.path(name)
    raise InvalidValue("path", name, f"a file, or {any_of((each for kind in kinds for each in kind.names()), name)}")


def network_of(network: Network | networkx.Graph | pd.DataFrame | str | os.PathLike[str]) -> Network:
    """Network from a record, a networkx graph, a file or DataFrame, or the name of one of `networks()`.

    Raises
    ------
    InvalidValue, FileError
        It is none of these, or can't be read.
    """
    from netctrl.model.network import Network, read_network
    from netctrl.model.networks.content import is_frame

    if isinstance(network, Network):
        return network
    if isinstance(network, str | os.PathLike):
        return read_network(network_path(os.fspath(network)))
    given: Any = network
    if hasattr(given, "is_directed"):
        return Network.from_networkx(given)
    if is_frame(given):
        return read_network(given)
    takes = f"a netctrl.Network, a networkx graph, a DataFrame of links, a file's path, or {any_of(networks())}"
    raise InvalidValue("network", f"a value of type {type(network).__name__}", takes)


def model_of(model: IdentifiedModel | str | os.PathLike[str]) -> IdentifiedModel:
    """Identified model from a record, a file, or the name of one of `models()`.

    Raises
    ------
    InvalidValue, FileError
        It is none of these, or can't be read.
    """
    from netctrl.model.identified import IdentifiedModel, read_model

    if isinstance(model, str | os.PathLike):
        return read_model(model_path(os.fspath(model)))
    if isinstance(model, IdentifiedModel):
        return model
    takes = f"an IdentifiedModel, as netctrl.identify(...).model, a file's path, or {any_of(models())}"
    raise InvalidValue("model", f"a value of type {type(model).__name__}", takes)


def design_schema() -> dict[str, Any]:
    """JSON Schema of Design files, as published in data/."""
    return json.loads(data_path("schema/design-1.json").read_text(encoding="utf-8"))


def model_schema() -> dict[str, Any]:
    """JSON Schema of model files, as published in data/."""
    return json.loads(data_path("schema/model-1.json").read_text(encoding="utf-8"))
