"""What all exports to ns-3 share on the command line: the folder, the machine, what to do next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from netctrl.cli.app import (
    picture_file,
    report,
    say,
    write_all,
)
from netctrl.errors import InvalidValue

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from netctrl.ns3.program import Ns3

__all__ = ["OPTIONS", "check_table", "keep", "machine", "refuse", "say_what_is_next", "written"]

OPTIONS = {"scenario": "--scenario", "design": "DESIGN", "output": "-o", "n_jobs": "--n-jobs", "law": "DESIGN"}


class Plotted(Protocol):
    """What draws itself."""

    def plot(self) -> Figure:
        """A picture."""
        ...


def refuse(given: Mapping[str, object], takes: str) -> None:
    """InvalidValue for the first of these options that has a value."""
    for name, value in given.items():
        if value is not None:
            raise InvalidValue(name, value, takes)


def say_what_is_next(name: str, folder: Path, files: list[str], json: bool, run: str = "") -> int:
    """Of a program that was only written; `run` is what follows the folder on its command line."""
    import msgspec

    if json:
        return say(msgspec.json.encode({"folder": str(folder), "files": files}).decode() + "\n")
    then = ("then", f"make -C {_quoted(folder)} && {_quoted(folder / 'scenario')} {_quoted(folder)}{run}")
    return say(report(f"{name}: a program for ns-3 in {folder}", [("files", ", ".join(files)), then]))


def machine(run_it: bool) -> Ns3 | None:
    """What compiles the program; found before anything is written."""
    from netctrl.ns3.program import find_ns3

    return find_ns3() if run_it else None


def written(output: str, files: dict[str, str]) -> Path:
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
    for name, text in files.items():
        write_atomically(folder / name, text.encode())
    return folder


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))


def check_table(result: str | None) -> None:
    """InvalidValue for a --result that no table can be written to."""
    from netctrl.cli.simulate import TABLE_SUFFIXES

    if result is not None and Path(result).suffix.lower() not in TABLE_SUFFIXES:
        raise InvalidValue("result", result, f"a file name that ends in {' or '.join(TABLE_SUFFIXES)}")


def keep(
    found: Plotted, plot: str | None, picture: str | None, result: str | None, content: Callable[[], bytes]
) -> None:
    """Write what --plot and --result ask for: both files, or neither."""
    desired: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if plot is not None and picture is not None:
        desired["plot"] = plot, lambda: picture_file(found.plot(), picture)
    if result is not None:
        desired["result"] = result, content
    write_all(desired)
