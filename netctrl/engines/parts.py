"""Folders of finished blocks, from which an interrupted computation goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from netctrl.core.errors import FileError
from netctrl.core.files import write_atomically
from netctrl.model.io.json_file import read_json


def open_parts(parts: Path, what: dict[str, Any], path: Any, *, resume: bool, kind: str = "sweep") -> set[int]:
    """Numbers of the blocks that exist already; creates the folder if there is none.

    Parameters
    ----------
    parts : Path
        The folder: a file `NUMBER.json` for each finished block, and a record of what is computed.
    what : dict
        Plain data by which two computations are the same.
    path : path
        File that is computed, for messages.
    resume : bool
        Whether to go on from a folder that is there.
    kind : str
        What is computed, in messages; one word.

    Raises
    ------
    FileError
        The folder is of another computation, or of this one without `resume`.
    """
    record = parts / f"{kind}.json"
    if not record.is_file():
        if parts.exists() and any(not each.name.startswith(f".{record.name}.") for each in parts.iterdir()):
            raise FileError(parts, f"the folder isn't empty and doesn't belong to a {kind}")
        try:
            parts.mkdir(exist_ok=True)
        except OSError as error:
            raise FileError(parts, f"can't be written: {error.strerror}") from None
        write_atomically(record, msgspec.json.encode(what))
        return set()
    if not resume:
        raise FileError(path, f"a {kind} into this file was interrupted: resume it, or delete {parts}")
    try:
        known = read_json(record, dict, what=f"record of a {kind}", max_bytes=2**20)
    except (msgspec.ValidationError, FileError):
        raise FileError(record, f"not a record of a {kind}") from None
    if known != what:
        raise FileError(path, f"another {kind}, or one of another netctrl version, was interrupted: delete {parts}")
    return {int(file.stem) for file in parts.glob("*.json") if file.name != record.name and file.stem.isdigit()}
