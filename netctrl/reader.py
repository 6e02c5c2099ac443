"""One door for files: what a file is about is told by its name and its keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from netctrl.datasets import bundled_path, network_path
from netctrl.errors import FileError, InvalidValue
from netctrl.model.io.files import checked_path, opened, read_bounded

__all__ = ["read"]

_HEAD = 4096
_MAX_BYTES = 2**28
_TRACE_SUFFIXES = (".csv", ".parquet", ".pcap", ".pcapng", ".cap")


class _Head(msgspec.Struct):
    """What tells of a JSON file what it is."""

    schema: str | None = None
    A: msgspec.Raw = msgspec.Raw()
    C: msgspec.Raw = msgspec.Raw()


def read(
    path: str | os.PathLike[str],
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    interval_s: float | None = None,
) -> Any:
    """Read a file of netctrl's, strictly, or one that comes with it.

    Parameters
    ----------
    path : path
        A file, or the name of one that comes with netctrl, as on the command line. `.toml`: a scenario or a sweep.
        `.json`: a Design, a model, a network, a simulation's result. `.csv`, `.parquet`: rates of traffic; with
        `inputs` and `outputs`, signals; with columns `time_s` and `rtt_s`, round-trip times. `.pcap`: rates of a
        capture. `.trace`, `.up`, `.down`: delivery opportunities as mahimahi has them.
    inputs, outputs : sequence of str, optional
        Columns of a table that are a plant's inputs and outputs.
    interval_s : float, optional
        Of rates that are read [s].

    Returns
    -------
    Scenario, NetworkScenario, FabricScenario, BottleneckScenario, AccessLinkScenario, SweepSpec, Design, \
IdentifiedModel, Network, SimulationResult, RateTrace, SignalTrace, RttTrace or LinkTrace

    Raises
    ------
    FileError
        It can't be read, or is none of these; what is wrong with it, by key, row or column.
    InvalidValue
        A name of nothing that comes with netctrl; an argument that this kind of file doesn't take.

    Examples
    --------
    >>> import netctrl
    >>> netctrl.read("merge").demands[0].id
    'D1'
    >>> netctrl.read("arc-staircase").name
    'ARC Fig. 4: staircase of 10 to 400 FTP flows'
    """
    found = bundled_path(path) if isinstance(path, str) and not Path(path).suffix else checked_path(path)
    suffix = found.suffix.lower()
    if (inputs is None) != (outputs is None):
        raise InvalidValue("outputs" if outputs is None else "inputs", None, "names of columns, beside the other's")
    if inputs is not None and outputs is not None:
        from netctrl.model.signals import read_signals

        return read_signals(found, inputs, outputs)
    if suffix in _TRACE_SUFFIXES and not _has_rtts(found):
        from netctrl.model.trace import read_trace

        return read_trace(found, interval_s=interval_s)
    if interval_s is not None:
        raise InvalidValue("interval_s", interval_s, "no value but for rates of traffic")
    return _reader(found, suffix)(found)


def _has_rtts(path: Path) -> bool:
    if path.suffix.lower() != ".csv":
        return False
    with opened(path) as file:
        names = file.read(_HEAD).split(b"\n", 1)[0].decode(errors="replace").strip().split(",")
    return {"time_s", "rtt_s"} <= {name.strip() for name in names}


def _reader(path: Path, suffix: str) -> Callable[[Path], Any]:
    if suffix == ".toml":
        from netctrl.scenario.read import read_scenario_file

        return lambda path: read_scenario_file(path, network_path)
    if suffix == ".json":
        return _json_reader(path)
    if suffix == ".csv":
        from netctrl.laws.pacing.replay import read_replay

        return read_replay
    if suffix in (".trace", ".up", ".down"):
        from netctrl.model.link_trace import read_link_trace

        return read_link_trace
    raise FileError(path, "is nothing that netctrl reads, by its name: .toml, .json, .csv, .parquet, .pcap or .trace")


def _json_reader(path: Path) -> Callable[[Path], Any]:
    from netctrl.model.design.design import read_design
    from netctrl.model.identified import read_model
    from netctrl.model.network import read_network
    from netctrl.scenario.tcp_aqm.result import read_result

    readers = {"netctrl.design/1": read_design, "netctrl.model/1": read_model, "netctrl.simulation/1": read_result}
    schema = _schema(path)
    if schema is not None and schema not in readers:
        raise FileError(path, f"has the schema {schema!r}, takes one of {', '.join(readers)}")
    return read_network if schema is None else readers[schema]


def _schema(path: Path) -> str | None:
    """A file's schema; of a model without one, that of models; None: it may be a network."""
    text = read_bounded(path, _MAX_BYTES, f"is larger than what netctrl reads ({_MAX_BYTES // 2**20} MiB)")
    try:
        head = msgspec.json.decode(text, type=_Head)
    except (msgspec.DecodeError, RecursionError):  # whoever reads it says what is wrong
        return None
    return "netctrl.model/1" if head.schema is None and bytes(head.A) and bytes(head.C) else head.schema
