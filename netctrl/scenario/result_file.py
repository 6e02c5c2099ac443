"""Results' files: arrays in NumPy's .npz, with a head in JSON that has the scenario and the labels, are read; qlog, for
viewers of QUIC's and TCP's traces, is written."""

from __future__ import annotations

import io
import json
import lzma
import os
import zipfile
import zlib
from typing import Any, Literal

import msgspec
import numpy as np

from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.files import read_bounded
from netctrl.model.io.json_file import decoded
from netctrl.model.io.provenance import Provenance
from netctrl.model.io.validation_errors import explained, shown
from netctrl.scenario.labelled import Labelled
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario

_HEAD = "head"
_METRICS = {"window": "congestion_window", "in_flight": "bytes_in_flight", "rtt": "smoothed_rtt"}
_MS = 1e3
_MAX_BYTES = 2**31
_PARTS = ("totals", "series")
_DAMAGED = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, RuntimeError)
"""What a damaged file of arrays raises beside ValueError; its heads may name any compression."""


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    coords: dict[str, list[str | int]]
    dims: dict[str, tuple[str, ...]]


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    schema: Literal["netctrl.result/1"]
    scenario: Scenario
    simulator: str
    provenance: Provenance
    span: tuple[float, float]
    totals: _Part
    series: _Part


def read_result(path: str | os.PathLike[str]) -> Result:
    """Read a result file (.npz) strictly.

    Raises
    ------
    FileError
        The file can't be read or isn't a complete result.
    """
    content = read_bounded(path, _MAX_BYTES, f"larger than the {_MAX_BYTES // 2**30} GiB allowed for a result")
    try:
        arrays = _arrays(path, content)
        text = bytes(arrays.pop(_HEAD))
        head = decoded(path, text, _Head)
        time = arrays.pop("time")
        parts = {
            part: Labelled(
                {**getattr(head, part).coords, "time": time},
                {name: (dims, arrays.pop(f"{part}/{name}")) for name, dims in getattr(head, part).dims.items()},
            )
            for part in _PARTS
        }
        tables: dict[str, dict[str, np.ndarray]] = {}
        for name, array in arrays.items():
            _, table, column = name.split("/")
            tables.setdefault(table, {})[column] = array
        return Result(
            scenario=head.scenario,
            simulator=head.simulator,
            provenance=head.provenance,
            span=head.span,
            tables=tables,
            **parts,
        )
    except msgspec.ValidationError as error:
        raise FileError(path, f"not a simulation result: {_said(error, text)}") from None
    except KeyError as error:
        raise FileError(path, f"not a simulation result: {error.args[0]} is missing") from None
    except InvalidValue as error:
        why = f"{error.argument}: got {shown(error.got)}, takes {error.takes}"
        raise FileError(path, f"not a simulation result: {why}") from None
    except ValueError as error:
        raise FileError(path, f"not a simulation result: {' '.join(str(error).split())[:200]}") from None


def _said(error: msgspec.ValidationError, text: bytes) -> str:
    try:
        return explained(error, msgspec.json.decode(text), _Head)
    except msgspec.DecodeError:  # no JSON, or numbers beyond those of Python
        return " ".join(str(error).split())


def _arrays(path: str | os.PathLike[str], content: bytes) -> dict[str, np.ndarray]:
    """Arrays by name, of at most `_MAX_BYTES` together; only numbers and text, never pickled objects."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            if sum(each.file_size for each in packed.infolist()) > _MAX_BYTES:
                raise ValueError(f"its arrays take more than the {_MAX_BYTES // 2**30} GiB allowed for a result")
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except _DAMAGED as error:
        raise FileError(path, f"not a simulation result: {error}") from None


def qlog(result: Result) -> bytes:
    """The first run's windows and data in flight [byte] and round trips [ms] as events `recovery:metrics_updated`, at
    each interval; means over the open connections of a group. Source: draft-ietf-quic-qlog-main-schema-07.

    Raises
    ------
    InvalidValue
        The result has no windows: only packets and the kernel lab have them.
    """
    if "window" not in result.series.values:
        raise InvalidValue("output", f"a {result.simulator} run as .qlog", "a run of packets, or of the kernel lab")
    traces = []
    for flow in result.flows:
        events: list[dict[str, Any]] = []
        columns = {
            metric: (_MS if name == "rtt" else 1.0) * np.atleast_2d(result.series[name, flow])[0]
            for name, metric in _METRICS.items()
            if name in result.series.values
        }
        for time, *row in zip(result.time_s, *columns.values(), strict=True):
            data = {metric: round(float(value), 3) for metric, value in zip(columns, row, strict=True) if value > 0.0}
            if data:
                events.append({"time": round(_MS * float(time), 6), "name": "recovery:metrics_updated", "data": data})
        fields = {"time_format": "relative", "reference_time": 0}
        traces.append({"title": flow, "vantage_point": {"type": "client"}, "common_fields": fields, "events": events})
    head = {"qlog_version": "0.3", "qlog_format": "JSON", "title": result.scenario.name, "traces": traces}
    return json.dumps(head, allow_nan=False).encode() + b"\n"
