"""Shared part of the command lines: strict options, one line for each error, exit statuses, help, progress.

`netctrl.cli` has the statuses. cyclopts splits the command line; its help and error panels are not used,
since they load rich and take several lines (docs/contributing/decisions.md).
"""

from __future__ import annotations

import io
import os
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from cyclopts import App, CycloptsError

from netctrl.cli import FAILURE, GOOD, INTERRUPTED, NO, WRONG_USE
from netctrl.cli.help import HELP, help_of, missing, name_of, names_of, wrong_use
from netctrl.cli.options import ENDINGS, option_name
from netctrl.core.errors import FileError, InvalidValue, NetctrlError, NoAdmissibleDesign, optional_import

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FAILURE",
    "GOOD",
    "NO",
    "WRONG_USE",
    "answer",
    "as_json",
    "check_files",
    "check_places",
    "colored",
    "invocation",
    "new_app",
    "picture",
    "progress_bar",
    "quiet",
    "report",
    "report_file",
    "run",
    "say",
    "waiting",
    "workers",
    "write_all",
]

_invocation: ContextVar[tuple[str, ...]] = ContextVar("invocation", default=())

_COLORS = {"green": 32, "yellow": 33, "red": 31}


def new_app(name: str, description: str, *examples: str) -> App:
    """An App whose help and errors `run` prints; a command's examples may be in its docstring instead."""
    return App(name=name, help=description, help_epilogue="\n".join(examples), help_flags=[], version_flags=[])


def run(
    app: App, argv: Sequence[str] | None = None, options: Mapping[str, str] | None = None, *, bare: bool = False
) -> int:
    """Run the command that `argv` names and return its exit status; each foreseen error prints one line on stderr.

    Parameters
    ----------
    app : App
        From `new_app`. Its commands declare their options by `netctrl.cli.options` and return an exit status.
    argv : sequence of str, optional
        Arguments without the program's name; `sys.argv[1:]` if None.
    options : mapping, optional
        How errors (`InvalidValue`) name arguments of the library that aren't the command's parameters, which are named
        by their options.
    bare : bool
        Whether the command runs without arguments; otherwise a call without arguments shows the help.
    """
    tokens = list(sys.argv[1:] if argv is None else argv)
    _invocation.set((*app.name[0].split(), *tokens))
    if any("\0" in token for token in tokens):
        return _complain("an argument has a NUL character, which no path or name can hold", WRONG_USE)
    try:
        ours = tokens[: tokens.index("--")] if "--" in tokens else tokens  # the rest may belong to another program
        if any(token in HELP for token in ours) or not (tokens or bare):
            return say(help_of(app, tokens))
        if tokens == ["--version"]:
            import netctrl

            return say(f"netctrl {netctrl.__version__}\n")
        command, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # ty: ignore[invalid-assignment]
            return command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        if isinstance(error.__cause__, InvalidValue) and error.argument is not None:  # from an option's reader
            return _refuse(name_of(error.argument), error.__cause__)
        return _complain(wrong_use(error, app.name[0]), WRONG_USE)
    except InvalidValue as error:
        known = names_of(app, tokens) | dict(options or {})
        return _refuse(known.get(error.argument, f"--{option_name(error.argument)}"), error)
    except NoAdmissibleDesign as error:
        return _complain(str(error), NO)
    except FileError as error:
        return _complain(str(error), WRONG_USE)
    except NetctrlError as error:
        sys.stderr.write(f"error: {error}\n")  # the text may have several lines, from another program
        return FAILURE
    except BrokenPipeError:  # the reader, such as `head`, has exited, which is no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD
    except OSError as error:
        return _complain(f"output can't be written: {error.strerror}", FAILURE)
    except KeyboardInterrupt:
        return _complain("stopped", INTERRUPTED)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    sys.stderr.write(f"warning: {' '.join(str(message).split())}\n")


def as_json(content: Any) -> str:
    """One JSON object that ends with a newline."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def say(text: str) -> int:
    """Write the whole result to stdout and return GOOD; a write error is raised here, not at exit."""
    quiet()
    sys.stdout.write(text)
    sys.stdout.flush()
    return GOOD


def answer(text: str, yes: bool, why: str) -> int:
    """Write a result with a verdict; its exit status is GOOD, or NO after an error that says why."""
    say(text)
    return GOOD if yes else _complain(why, NO)


def colored(text: str, color: str) -> str:
    """The text in a colour where stdout is a terminal with colours; NO_COLOR (no-color.org) turns it off."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\033[{_COLORS[color]}m{text}\033[0m"


def invocation() -> tuple[str, ...]:
    """The command line being run, for provenance."""
    return _invocation.get()


def report(title: str, rows: Sequence[tuple[str, str]], notes: Sequence[str] = ()) -> str:
    """A short table for people: a title, (name, text) rows and notes."""
    width = max(len(name) for name, _ in rows) + 2
    lines = [title, "", *(f"  {name:<{width}}{text}" for name, text in rows)]
    if notes:
        lines += ["", *(f"  {note}" for note in notes)]
    return "\n".join(lines) + "\n"


def check_files(
    files: Mapping[str, str | None], *read: str | Path | None, endings: Mapping[str, Sequence[str]] = ENDINGS
) -> None:
    """InvalidValue for the first file to write, by option, that the command can't give or write.

    Parameters
    ----------
    files : mapping
        Option -> the file that it names, or None.
    read : str or path, optional
        Files that the command reads, and so can't write.
    endings : mapping
        Option -> how its file's name may end, where that says what is written.
    """
    taken = [Path(path).resolve() for path in read if path is not None]
    for name, path in files.items():
        if path is None:
            continue
        if name in endings and Path(path).suffix.lower() not in endings[name]:
            raise InvalidValue(name, path, f"a file name that ends in {' or '.join(endings[name])}")
        if Path(path).resolve() in taken:
            raise InvalidValue(name, path, "a file that no other option names")
        taken.append(Path(path).resolve())
    check_places(files)


def check_places(places: Mapping[str, str | None]) -> None:
    """InvalidValue for the first option whose path can't be written, checked before the work as far as possible."""
    from netctrl.core.files import check_writable

    for name, path in places.items():
        if path is not None:
            _attempt(name, path, lambda path=path: check_writable(path))


@contextmanager
def workers(address: str | None) -> Generator[None]:
    """Context in which joblib uses the workers of the Dask scheduler at `address`, or this machine without one."""
    if address is None:
        yield
        return
    with optional_import():
        from distributed import Client
    import joblib

    try:
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        takes = f"the address of a running Dask scheduler, as in tcp://127.0.0.1:8786 (here: {why})"
        raise InvalidValue("dask", address, takes) from None
    with client, joblib.parallel_config(backend="dask"):
        yield


def write_all(files: Mapping[str, tuple[str | None, Callable[[], bytes]]]) -> None:
    """Write all files (option -> path and function that makes the content), or none if one path can't be written.

    A path of None is a file that nobody wants."""
    from netctrl.core.files import write_atomically

    check_places({name: path for name, (path, _) in files.items()})
    made = {name: (path, make()) for name, (path, make) in files.items() if path is not None}
    for name, (path, content) in made.items():
        _attempt(name, path, lambda path=path, content=content: write_atomically(path, content))


def picture(figure: Callable[[], Figure], path: str | None) -> tuple[str | None, Callable[[], bytes]]:
    """A file for `write_all` of a matplotlib Figure, in the format that its path ends in."""

    def content() -> bytes:
        file = io.BytesIO()
        figure().savefig(file, format=Path(str(path)).suffix[1:].lower(), dpi=150)
        return file.getvalue()

    return path, content


def report_file(record: Any, path: str | None) -> tuple[str | None, Callable[[], bytes]]:
    """A file for `write_all` of a record's report."""

    def content() -> bytes:
        from netctrl.model.io.display import page

        return page(record)

    return path, content


@contextmanager
def progress_bar(what: str) -> Generator[Callable[[float], None] | None]:
    """A callback that takes the share done and draws a bar on stderr; None where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}, {remaining} left"
    with tqdm(total=1.0, desc=what, bar_format=form, leave=False, dynamic_ncols=True) as bar:
        yield lambda share: bar.update(share - bar.n) and None


def _attempt(option: str, path: str, act: Callable[[], None]) -> None:
    try:
        act()
    except FileError as error:
        raise InvalidValue(option, path, f"a file that can be written (here: {error.why})") from None


def _refuse(name: str, error: InvalidValue) -> int:
    if error.got is None and name not in {token.partition("=")[0] for token in _invocation.get()}:
        return _complain(missing(name, error.takes), WRONG_USE)
    got = "nothing" if error.got is None else repr(error.got)
    near = error.takes.rpartition("; did you mean ")[2]
    if near != error.takes and near.endswith("?"):  # that word instead of a list of all
        return _complain(f"{name}: unknown {got}; did you mean {near}", WRONG_USE)
    return _complain(f"{name}: got {got}, takes {error.takes}", WRONG_USE)


def _complain(message: str, status: int) -> int:
    quiet()
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return status


_running: list[Callable[[], None]] = []


@contextmanager
def waiting(what: str, after: float = 1.0) -> Generator[None]:
    """Show on stderr, if it is a terminal, for how many seconds `what` has been running, until the end or `quiet`."""
    if not sys.stderr.isatty():
        yield
        return
    ended, terminal = threading.Event(), sys.stderr

    def tick() -> None:
        shown = 0
        while not ended.wait(after):
            shown += 1
            terminal.write(f"\r{what}, {shown * after:.0f} s")
            terminal.flush()
        if shown:
            terminal.write("\r\033[K")
            terminal.flush()

    thread = threading.Thread(target=tick, daemon=True)

    def end() -> None:
        ended.set()
        thread.join()

    thread.start()
    _running.append(end)
    try:
        yield
    finally:
        quiet()


def quiet() -> None:
    """Stop and erase the display."""
    while _running:
        _running.pop()()
