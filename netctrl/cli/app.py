"""What every command line shares: options read strictly, one line for each error, exit status, plain help.

Exit status: 0 good, 1 failure, 2 wrong use, 3 no admissible design. cyclopts splits the command
line; its help and error panels are not used, since they load rich and take several lines (docs/decisions.md).
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter

from netctrl.errors import JOBS_TAKES, FileError, InvalidValue, NetctrlError, NoAdmissibleDesign

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FAILURE",
    "GOOD",
    "NO_ADMISSIBLE_DESIGN",
    "PLOT_SUFFIXES",
    "WRONG_USE",
    "check_places",
    "checked_plot",
    "invocation",
    "new_app",
    "option",
    "picture_file",
    "positional",
    "progress_bar",
    "read_jobs",
    "report",
    "run",
    "say",
    "workers",
    "write_all",
]

GOOD, FAILURE, WRONG_USE, NO_ADMISSIBLE_DESIGN = 0, 1, 2, 3
_INTERRUPTED = 130

_invocation: ContextVar[tuple[str, ...]] = ContextVar("invocation", default=())

_HELP = ("--help", "-h")

PLOT_SUFFIXES = (".png", ".svg", ".pdf")


def new_app(name: str, description: str) -> App:
    """An App whose help and errors are printed by `run`."""
    return App(name=name, help=description, help_flags=[], version_flags=[])


def run(app: App, argv: Sequence[str] | None = None, options: Mapping[str, str] | None = None) -> int:
    """Run the command that `argv` names and return its exit status; every foreseen error is one line on stderr.

    Parameters
    ----------
    app : App
        From `new_app`. Its commands take all options as text and return an exit status. The help of an option is
        "METAVAR: what it is", of a flag ": what it does".
    argv : sequence of str, optional
        Without the program's name; `sys.argv[1:]` if None.
    options : mapping, optional
        Argument names of the library (as `InvalidValue` gives them) to the option that carries them, where it isn't
        "--" and the name with dashes.
    """
    tokens = list(sys.argv[1:] if argv is None else argv)
    _invocation.set((*app.name[0].split(), *tokens))
    if any("\0" in token for token in tokens):
        return _complain("an argument has a NUL character, which no path or name can hold", WRONG_USE)
    try:
        ours = tokens[: tokens.index("--")] if "--" in tokens else tokens  # what follows may be another program's
        if any(token in _HELP for token in ours) or not tokens:
            return say(_help(app, tokens))
        if tokens == ["--version"]:
            import netctrl

            return say(f"netctrl {netctrl.__version__}\n")
        command, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # ty: ignore[invalid-assignment]
            return command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        return _complain(_wrong_use(error), WRONG_USE)
    except InvalidValue as error:
        option = (options or {}).get(error.argument, "--" + error.argument.replace("_", "-"))
        got = "nothing" if error.got is None else repr(error.got)
        return _complain(f"{option}: got {got}, takes {error.takes}", WRONG_USE)
    except NoAdmissibleDesign as error:
        return _complain(str(error), NO_ADMISSIBLE_DESIGN)
    except FileError as error:
        return _complain(str(error), WRONG_USE)
    except NetctrlError as error:
        sys.stderr.write(f"error: {error}\n")  # may hold lines of another program
        return FAILURE
    except BrokenPipeError:  # the reader, such as `head`, has gone: nothing is wrong, and nobody listens
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD
    except OSError as error:
        return _complain(f"output can't be written: {error.strerror}", FAILURE)
    except KeyboardInterrupt:
        return _complain("stopped", _INTERRUPTED)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    sys.stderr.write(f"warning: {' '.join(str(message).split())}\n")


def say(text: str) -> int:
    """Write the result to stdout, all of it, and return GOOD; what stands in the way is raised here, not at exit."""
    sys.stdout.write(text)
    sys.stdout.flush()
    return GOOD


def invocation() -> tuple[str, ...]:
    """The command line that `run` is at, for provenance."""
    return _invocation.get()


def option(metavar: str, help: str, *names: str) -> Parameter:
    """An option that takes text; "" as metavar is a flag."""
    if not metavar:
        return Parameter(name=list(names) or None, help=f": {help}", negative="")
    return Parameter(name=list(names) or None, help=f"{metavar}: {help}", allow_leading_hyphen=True)


def positional(metavar: str, help: str) -> Parameter:
    """A positional argument that takes text; what begins with "-" is an option."""
    return Parameter(help=f"{metavar}: {help}")


def report(title: str, rows: Sequence[tuple[str, str]], notes: Sequence[str] = ()) -> str:
    """A short table for people: a title, (name, text) rows and notes."""
    width = max(len(name) for name, _ in rows) + 2
    lines = [title, "", *(f"  {name:<{width}}{text}" for name, text in rows)]
    if notes:
        lines += ["", *(f"  {note}" for note in notes)]
    return "\n".join(lines) + "\n"


def checked_plot(plot: str | None, output: str | None) -> str | None:
    """The kind of picture that `--plot` names, None without one; InvalidValue if it is none or the same file as -o."""
    if plot is None:
        return None
    if Path(plot).suffix.lower() not in PLOT_SUFFIXES:
        raise InvalidValue("plot", plot, f"a file name that ends in {', '.join(PLOT_SUFFIXES)}")
    if output is not None and Path(plot).resolve() == Path(output).resolve():
        raise InvalidValue("plot", plot, "another file than -o")
    return Path(plot).suffix[1:].lower()


def check_places(places: Mapping[str, str | None]) -> None:
    """InvalidValue for the first option whose path can't be written, as far as can be told before the work is done."""
    from netctrl.model.io.files import check_writable

    for name, path in places.items():
        if path is not None:
            _attempt(name, path, lambda path=path: check_writable(path))


@contextmanager
def workers(address: str | None) -> Generator[None]:
    """What joblib runs within goes to the workers of the Dask scheduler at `address`; it stays here without one."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise InvalidValue(
            "dask", address, "no value where Dask isn't installed: pip install 'netctrl[dask]'"
        ) from None
    import joblib

    try:
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        takes = f"the address of a Dask scheduler that answers, as in tcp://127.0.0.1:8786 (here: {why})"
        raise InvalidValue("dask", address, takes) from None
    with client, joblib.parallel_config(backend="dask"):
        yield


def read_jobs(text: str) -> int:
    """A number of processes, or -1, as `--n-jobs` has it."""
    if not re.fullmatch("-1|[1-9][0-9]{0,3}", text):
        raise InvalidValue("n_jobs", text, JOBS_TAKES)
    return int(text)


def write_all(files: Mapping[str, tuple[str, Callable[[], bytes]]]) -> None:
    """Write all files (option -> path and what makes the content) or, where one place can't be written, none."""
    from netctrl.model.io.files import write_atomically

    check_places({name: path for name, (path, _) in files.items()})
    made = {name: (path, make()) for name, (path, make) in files.items()}
    for name, (path, content) in made.items():
        _attempt(name, path, lambda path=path, content=content: write_atomically(path, content))


def picture_file(figure: Figure, kind: str) -> bytes:
    """A matplotlib Figure as the content of a file of the kind png, svg or pdf."""
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=150)
    return content.getvalue()


@contextmanager
def progress_bar(what: str) -> Generator[Callable[[float], None] | None]:
    """A callback that takes the share that is done and draws a bar on stderr; None where that is no terminal."""
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


def _complain(message: str, status: int) -> int:
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return status


def _wrong_use(error: CycloptsError) -> str:
    argument = getattr(error, "argument", None)
    if isinstance(error, MissingArgumentError) and argument is not None:
        takes = (argument.parameter.help or "a value").partition(": ")[2]
        return f"{argument.names[0]}: got nothing, takes {takes}"
    return f"{str(error).rstrip('.')}; --help lists what is taken"


def _help(app: App, tokens: Sequence[str]) -> str:
    width = min(shutil.get_terminal_size((100, 24)).columns, 110)
    name = app.name[0]
    commands = [token for token in app if not token.startswith("-")]
    chosen = next((token for token in tokens if token in commands), None)
    if chosen is not None:
        return _command_help(f"{name} {chosen}", app[chosen], app[chosen].help, width)
    if app.default_command is not None:
        return _command_help(name, app, app.help, width)
    rows = [(command, (app[command].help or "").split("\n")[0]) for command in commands]
    usage = f"usage: {name} COMMAND [OPTIONS]\n\n{app.help}\n\n"
    return usage + _table(rows, width) + f"\n{name} COMMAND --help lists a command's options.\n"


def _command_help(name: str, command: App, help: str | None, width: int) -> str:
    arguments = list(command.assemble_argument_collection())
    usage = [name]
    rows = []
    for argument in arguments:
        positional = not argument.names[0].startswith("-")
        left = _metavar(argument) if positional else f"{', '.join(argument.names)} {_metavar(argument)}".rstrip()
        rows.append((left, _describe(argument)))
        if positional:
            usage.append(left if argument.required else f"[{left}]")
        elif argument.required:
            usage.append(f"{argument.names[0]} {_metavar(argument)}")
    description = textwrap.fill(" ".join((help or "").split()), width)
    return f"usage: {' '.join(usage)} [OPTIONS]\n\n{description}\n\n{_table(rows, width)}"


def _metavar(argument) -> str:
    return (argument.parameter.help or "").partition(": ")[0]


def _describe(argument) -> str:
    default = argument.field_info.default
    shown = f" [{default}]" if isinstance(default, str) else " [required]" if argument.required else ""
    return (argument.parameter.help or "").partition(": ")[2] + shown


def _table(rows: Sequence[tuple[str, str]], width: int) -> str:
    left = max(len(name) for name, _ in rows) + 4
    lines = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(width - left, 30)) or [""]
        lines.append(f"  {name:<{left - 2}}{wrapped[0]}")
        lines += [" " * left + line for line in wrapped[1:]]
    return "\n".join(lines) + "\n"
