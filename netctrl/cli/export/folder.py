"""What an export writes: a folder, new, empty or an earlier export, which is written over; or one text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from netctrl.cli.app import report, say, write_all
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


def write_text(design: str, verdict: str, title: str, output: str | None, render: Callable[[], str]) -> int:
    """Write what a Design's law is rendered as to a file, `title` of which is said, or print it; what a law can't be
    rendered as is wrong with the Design's file."""
    try:
        text = render()
    except InvalidValue as error:
        if error.argument == "name":
            raise
        raise FileError(design, str(error)) from None
    if output is None:
        return say(text)
    write_all({"output": (output, text.encode)})
    return say(report(title, [("certified", verdict), ("file", output)]))
