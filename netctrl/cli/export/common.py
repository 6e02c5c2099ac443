"""What all exports to ns-3 share on the command line: the folder, the machine, what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from netctrl.cli.app import report, say
from netctrl.errors import InvalidValue

__all__ = ["OPTIONS", "say_what_is_next", "written"]

OPTIONS = {"scenario": "--scenario", "design": "DESIGN", "output": "-o", "n_jobs": "--n-jobs", "law": "DESIGN"}


def say_what_is_next(name: str, folder: Path, files: list[str], json: bool, run: str = "") -> int:
    """Of a program that was only written; `run` is what follows the folder on its command line."""
    import msgspec

    if json:
        return say(msgspec.json.encode({"folder": str(folder), "files": files}).decode() + "\n")
    then = ("then", f"make -C {_quoted(folder)} && {_quoted(folder / 'scenario')} {_quoted(folder)} {run}".rstrip())
    return say(report(f"{name}: a program for ns-3 in {folder}", [("files", ", ".join(files)), then]))


def written(output: str, files: Mapping[str, str | bytes]) -> Path:
    """The folder with the files in it, made if need be; only an empty one or an earlier export is written over."""
    from netctrl.model.io.files import write_atomically
    from netctrl.ns3.tcp_aqm.render import MARKER

    folder = Path(output)
    mark = folder / "gains.h"
    try:
        if not folder.exists():
            folder.mkdir()
        elif any(folder.iterdir()) and not (mark.is_file() and mark.read_bytes().startswith(f"{MARKER}\n".encode())):
            raise InvalidValue("output", output, "a folder that is new, empty or an earlier export")
    except OSError as error:
        raise InvalidValue("output", output, f"a folder that can be written (here: {error.strerror})") from None
    for name, content in files.items():
        write_atomically(folder / name, content.encode() if isinstance(content, str) else content)
    return folder


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
