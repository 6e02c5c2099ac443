"""What all exports to ns-3 share on the command line: the folder, the machine, what to do next."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from netctrl.cli.app import check_places, checked_plot, picture_file, progress_bar, report, say, write_all
from netctrl.errors import FileError, InvalidValue

if TYPE_CHECKING:
    from netctrl.ns3.program import Ns3

__all__ = ["OPTIONS", "Output", "Program", "check_table", "export_program", "of_file", "refuse", "table_of"]

OPTIONS = {"scenario": "--scenario", "design": "DESIGN", "output": "-o", "n_jobs": "--n-jobs", "law": "DESIGN"}


class Output(NamedTuple):
    """What a command line wants of an export."""

    folder: str
    run_it: bool
    json: bool
    result: str | None
    plot: str | None


class Program(NamedTuple):
    """A program for ns-3, and what comes of it."""

    name: str
    files: dict[str, str]
    tables: dict[str, bytes]
    """That a run reads."""
    arguments: str
    """Behind the folder on its command line."""
    run: Callable[[Path, Ns3, Callable[[float], None] | None], Any]
    """Run it, compiled in a folder: its result."""
    table: Callable[[Any, Ns3], tuple[str, list[tuple[str, str]]]]
    """Title and rows of a result."""
    content: Callable[[Any, Ns3], dict[str, Any]]
    """A result as JSON has it."""
    kept: Callable[[Any], bytes]
    """A result as --result keeps it."""


def export_program(to: Output, made: Callable[[], Program]) -> int:
    """Write a program with its tables; with --run compile it, run it and report."""
    import msgspec

    from netctrl.model.io.files import write_atomically

    picture = checked_plot(to.plot, to.result)
    check_places({"plot": to.plot, "result": to.result})
    ns3 = _machine(to.run_it)
    program = made()
    folder = _written(to.folder, program.files)
    for name, table in program.tables.items():
        write_atomically(folder / name, table)
    if ns3 is None:
        return _say_what_is_next(program, folder, to.json)
    found = _ran(program, folder, ns3)
    desired: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if to.plot is not None and picture is not None:
        desired["plot"] = to.plot, lambda: picture_file(found.plot(), picture)
    if to.result is not None:
        desired["result"] = to.result, lambda: program.kept(found)
    write_all(desired)
    if not to.json:
        return say(report(*program.table(found, ns3)))
    return say(msgspec.json.format(msgspec.json.encode(program.content(found, ns3)), indent=2).decode() + "\n")


def _ran(program: Program, folder: Path, ns3: Ns3) -> Any:
    from netctrl.ns3.program import compile_program

    compile_program(folder, ns3)
    with progress_bar(f"ns-{ns3.version}") as progress:
        return program.run(folder, ns3, progress)


@contextmanager
def of_file(name: str | None, *options: str) -> Generator[None]:
    """What is wrong with a key is of the file that it stands in; but not where it is one of these options."""
    try:
        yield
    except InvalidValue as error:
        if error.argument in options:
            raise
        raise FileError(name or "", str(error)) from None


def table_of(to: Output) -> Callable[[Any], bytes]:
    """A result as the table that --result names."""
    from netctrl.cli.simulate import table_file

    return lambda found: table_file(found, Path(to.result or "").suffix.lower())


def refuse(given: Mapping[str, object], takes: str) -> None:
    """InvalidValue for the first of these options that has a value."""
    for name, value in given.items():
        if value is not None:
            raise InvalidValue(name, value, takes)


def _say_what_is_next(program: Program, folder: Path, json: bool) -> int:
    """Of a program that was only written."""
    import msgspec

    files = [*program.files, *program.tables]
    if json:
        return say(msgspec.json.encode({"folder": str(folder), "files": files}).decode() + "\n")
    run = f"{_quoted(folder / 'scenario')} {_quoted(folder)}{program.arguments}"
    rows = [("files", ", ".join(files)), ("then", f"make -C {_quoted(folder)} && {run}")]
    return say(report(f"{program.name}: a program for ns-3 in {folder}", rows))


def _machine(run_it: bool) -> Ns3 | None:
    """What compiles the program; found before anything is written."""
    from netctrl.ns3.program import find_ns3

    return find_ns3() if run_it else None


def _written(output: str, files: dict[str, str]) -> Path:
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


def check_table(to: Output, undrawn: str | None = None) -> None:
    """InvalidValue for a --result that no table can be written to, and for a --plot where nothing draws it."""
    from netctrl.cli.simulate import TABLE_SUFFIXES

    result = to.result
    if undrawn is not None and to.plot is not None:
        raise InvalidValue("plot", to.plot, f"no value {undrawn}; --result keeps what can be drawn")
    if result is not None and Path(result).suffix.lower() not in TABLE_SUFFIXES:
        raise InvalidValue("result", result, f"a file name that ends in {' or '.join(TABLE_SUFFIXES)}")
