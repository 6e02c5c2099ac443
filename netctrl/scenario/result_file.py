"""Reading of results' files: arrays in NumPy's .npz, with a head in JSON that has the scenario and the labels."""

from __future__ import annotations

import io
import lzma
import os
import zipfile
import zlib
from typing import Literal

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
