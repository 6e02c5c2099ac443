"""Reader of every file format that netctrl takes; a file's name and keys tell which one it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.files import checked_path, opened, read_bounded
from netctrl.model.datasets import bundled_path, network_path, scenario_path

if TYPE_CHECKING:
    from netctrl.core.names import ModelName, NetworkName, ScenarioName
    from netctrl.model.identified import IdentifiedModel
    from netctrl.model.network import Network
    from netctrl.model.signals import SignalTrace
    from netctrl.model.trace import RateTrace
    from netctrl.scenario.scenario import Scenario

_Kind = TypeVar("_Kind")
_Path = str | os.PathLike[str]

_HEAD = 4096
_MAX_BYTES = 2**28
_EVALUATIONS = "netctrl.evaluation.record.read_evaluation"
_NETWORK_SUFFIXES = (".graphml", ".gml", ".xml", ".graph", ".yml", ".yaml")
_TRACE_SUFFIXES = (".csv", ".parquet", ".pcap", ".pcapng", ".cap")


class _Head(msgspec.Struct):
    """Keys by which a JSON file's kind is recognised."""

    schema: str | None = None
    A: msgspec.Raw = msgspec.Raw()
    C: msgspec.Raw = msgspec.Raw()


@overload
def read(path: _Path, *, inputs: Sequence[str], outputs: Sequence[str]) -> SignalTrace: ...
@overload
def read(path: _Path, *, interval_s: float) -> RateTrace: ...
@overload
def read(path: _Path, *, kind: type[_Kind]) -> _Kind: ...
@overload
def read(path: NetworkName) -> Network: ...
@overload
def read(path: ScenarioName) -> Scenario: ...
@overload
def read(path: ModelName) -> IdentifiedModel: ...
@overload
def read(path: _Path) -> Any: ...
def read(
    path: _Path,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    interval_s: float | None = None,
    kind: type[Any] | None = None,
) -> Any:
    """Read a file in one of netctrl's formats, or one that comes with netctrl.

    Parameters
    ----------
    path : path
        A file, or the name of one that comes with netctrl. `.toml`: a scenario or a sweep.
        `.json`: a Design, a model, a network, a network's certificate. `.npz`: a simulation's result.
        `.graphml`, `.gml`, `.xml`, `.graph`, `.yml`, and `.csv` with columns `source` and `target`: a network
        (`netctrl.model.network.read_network` takes what such a file lacks). `.csv`, `.parquet`: rates of traffic; with
        `inputs` and `outputs`, signals; with columns `time_s` and `rtt_s`, round-trip times. `.pcap`: rates of a
        capture. `.trace`, `.up`, `.down`: delivery opportunities as mahimahi records them.
    inputs, outputs : sequence of str, optional
        Columns of a table that are a system's inputs and outputs.
    interval_s : float, optional
        Interval at which rates are read [s].
    kind : type, optional
        Class that the result must have, as `netctrl.Network`; type checkers infer the result's type from it.

    Returns
    -------
    Scenario, SweepSpec, Design, IdentifiedModel, Network, Result, NetworkCertificate or a trace
        A trace is a RateTrace, SignalTrace, RttTrace or LinkTrace.

    Raises
    ------
    FileError
        The file can't be read, has another format or is of another `kind`; the message names the key, or the row and
        column.
    InvalidValue
        Nothing that comes with netctrl has this name, or this kind of file doesn't take the argument.

    Examples
    --------
    >>> import netctrl
    >>> netctrl.read("merge").demands[0].id
    'p1'
    >>> netctrl.read("arc-staircase").name
    'ARC Fig. 5: 10 to 800 flows'
    """
    found = _read(path, inputs, outputs, interval_s)
    if kind is not None and not isinstance(found, kind):
        raise FileError(path, f"contains a {type(found).__name__}, expected a {kind.__name__}")
    return found


def _read(path: _Path, inputs: Any, outputs: Any, interval_s: float | None) -> Any:
    found = bundled_path(path) if isinstance(path, str) and not Path(path).suffix else checked_path(path)
    suffix = found.suffix.lower()
    if (inputs is None) != (outputs is None):
        raise InvalidValue("outputs" if outputs is None else "inputs", None, "columns, whenever the other is given")
    if inputs is not None and outputs is not None:
        from netctrl.model.signals import read_signals

        return read_signals(found, inputs, outputs, interval_s=interval_s)
    if suffix in _NETWORK_SUFFIXES or _has_columns(found, "source", "target"):
        from netctrl.model.network import read_network

        return read_network(found)
    if suffix in _TRACE_SUFFIXES and not _has_columns(found, "time_s", "rtt_s"):
        from netctrl.model.trace import read_trace

        return read_trace(found, interval_s=interval_s)
    if interval_s is not None:
        raise InvalidValue("interval_s", interval_s, "a value only where rates of traffic are read")
    return _reader(found, suffix)(found)


def _has_columns(path: Path, *wanted: str) -> bool:
    if path.suffix.lower() != ".csv":
        return False
    with opened(path) as file:
        names = file.read(_HEAD).split(b"\n", 1)[0].decode(errors="replace").strip().split(",")
    return {*wanted} <= {name.strip() for name in names}


def _reader(path: Path, suffix: str) -> Callable[[Path], Any]:
    if suffix == ".toml":
        from netctrl.scenario.read import read_scenario_file

        return lambda path: read_scenario_file(path, network_path, scenario_path)
    if suffix == ".json":
        return _json_reader(path)
    if suffix == ".csv":
        from netctrl.laws.pacing.replay import read_replay

        return read_replay
    if suffix == ".npz":
        from netctrl.scenario.result_file import read_result

        return read_result
    if suffix in (".trace", ".up", ".down"):
        from netctrl.model.link_trace import read_link_trace

        return read_link_trace
    raise FileError(path, "unknown suffix; netctrl reads .toml, .json, .csv, .parquet, .pcap, .trace, .npz, networks'")


def _json_reader(path: Path) -> Callable[[Path], Any]:
    from netctrl.certificates.networks.record import read_network_certificate
    from netctrl.model.design.design import read_design
    from netctrl.model.identified import read_model
    from netctrl.model.network import read_network

    readers = {"netctrl.design/1": read_design, "netctrl.model/1": read_model}
    readers["netctrl.network_certificate/1"] = read_network_certificate
    schema = _schema(path)
    if schema is not None and schema not in readers:
        other = f"; evaluations are read by {_EVALUATIONS}" if schema == "netctrl.evaluation/1" else ""
        raise FileError(path, f"unknown schema {schema!r}; netctrl.read takes {', '.join(readers)}{other}")
    return read_network if schema is None else readers[schema]


def _schema(path: Path) -> str | None:
    """A file's schema; the model schema for a model without one; None where the file may be a network."""
    text = read_bounded(path, _MAX_BYTES, f"larger than the {_MAX_BYTES // 2**20} MiB that netctrl reads")
    try:
        head = msgspec.json.decode(text, type=_Head)
    except (msgspec.DecodeError, RecursionError):  # the reader reports the error
        return None
    return "netctrl.model/1" if head.schema is None and bytes(head.A) and bytes(head.C) else head.schema
