"""Folder of an export: new, empty or an earlier export, which is written over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.files import write_atomically


def write_folder(output: str, files: Mapping[str, str | bytes], earlier: Callable[[Path], bool]) -> Path:
    """Write files into a folder, created if needed; one with files must be an `earlier` export."""
    folder = Path(output)
    try:
        folder.mkdir(exist_ok=True)
        if any(folder.iterdir()) and not earlier(folder):
            raise InvalidValue("output", output, "a folder that is new, empty or an earlier export")
        for name, content in files.items():
            write_atomically(folder / name, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        why = error.why if isinstance(error, FileError) else error.strerror
        raise InvalidValue("output", output, f"a folder that can be written (here: {why})") from None
    return folder
