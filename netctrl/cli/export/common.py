"""Shared part of the exports to ns-3: the folder and the command to run next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from netctrl.cli.app import report, say
from netctrl.errors import InvalidValue

__all__ = ["OPTIONS", "say_what_is_next", "written"]

OPTIONS = {"scenario": "--scenario", "design": "DESIGN", "output": "-o", "n_jobs": "--n-jobs", "law": "DESIGN"}


def say_what_is_next(name: str, folder: Path, files: list[str], json: bool, run: str = "") -> int:
    """Report a program that was written but not run; `run` follows the folder on its command line."""
    import msgspec

    if json:
        return say(msgspec.json.encode({"folder": str(folder), "files": files}).decode() + "\n")
    then = ("then", f"make -C {_quoted(folder)} && {_quoted(folder / 'scenario')} {_quoted(folder)} {run}".rstrip())
    return say(report(f"{name}: a program for ns-3 in {folder}", [("files", ", ".join(files)), then]))


def written(output: str, files: Mapping[str, str | bytes]) -> Path:
    """Write the files into a folder, created if needed; it must be empty or hold an earlier export."""
    from netctrl.model.io.files import write_atomically
    from netctrl.ns3.tcp_aqm.render import MARKER

    folder = Path(output)
    try:
        if not folder.exists():
            folder.mkdir()
        elif any(folder.iterdir()) and not any(
            place.read_bytes().startswith(f"{MARKER}\n".encode()) for place in folder.glob("*.h") if place.is_file()
        ):
            raise InvalidValue("output", output, "a folder that is new, empty or an earlier export")
    except OSError as error:
        raise InvalidValue("output", output, f"a folder that can be written (here: {error.strerror})") from None
    for name, content in files.items():
        write_atomically(folder / name, content.encode() if isinstance(content, str) else content)
    return folder


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
