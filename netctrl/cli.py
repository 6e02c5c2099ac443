"""What every command line shares: options read strictly, one line for each error, exit status, plain help.

Exit status: 0 good, 1 failure, 2 wrong use, 3 no admissible design. cyclopts splits the command
line; its help and error panels are not used, since they load rich and take several lines (docs/decisions.md).
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from contextvars import ContextVar

from cyclopts import App, CycloptsError, MissingArgumentError

from netctrl.errors import FileError, InvalidValue, NetctrlError, NoAdmissibleDesign

__all__ = ["FAILURE", "GOOD", "NO_ADMISSIBLE_DESIGN", "WRONG_USE", "invocation", "new_app", "run", "say"]

GOOD, FAILURE, WRONG_USE, NO_ADMISSIBLE_DESIGN = 0, 1, 2, 3
_INTERRUPTED = 130

_invocation: ContextVar[tuple[str, ...]] = ContextVar("invocation", default=())

_HELP = ("--help", "-h")


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
    try:
        if any(token in _HELP for token in tokens) or not tokens:
            return say(_help(app, tokens))
        if tokens == ["--version"]:
            import netctrl

            return say(f"netctrl {netctrl.__version__}\n")
        command, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
        return command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        return _complain(_wrong_use(error), WRONG_USE)
    except InvalidValue as error:
        option = (options or {}).get(error.argument, "--" + error.argument.replace("_", "-"))
        return _complain(f"{option}: got {error.got!r}, takes {error.takes}", WRONG_USE)
    except NoAdmissibleDesign as error:
        return _complain(str(error), NO_ADMISSIBLE_DESIGN)
    except FileError as error:
        return _complain(str(error), WRONG_USE)
    except NetctrlError as error:
        return _complain(str(error), FAILURE)
    except BrokenPipeError:  # the reader, such as `head`, has gone: nothing is wrong, and nobody listens
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD
    except OSError as error:
        return _complain(f"output can't be written: {error.strerror}", FAILURE)
    except KeyboardInterrupt:
        return _complain("stopped", _INTERRUPTED)


def say(text: str) -> int:
    """Write the result to stdout, all of it, and return GOOD; what stands in the way is raised here, not at exit."""
    sys.stdout.write(text)
    sys.stdout.flush()
    return GOOD


def invocation() -> tuple[str, ...]:
    """The command line that `run` is at, for provenance."""
    return _invocation.get()


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
    if chosen is None:
        rows = [(command, (app[command].help or "").split("\n")[0]) for command in commands]
        usage = f"usage: {name} COMMAND [OPTIONS]\n\n{app.help}\n\n"
        return usage + _table(rows, width) + f"\n{name} COMMAND --help lists a command's options.\n"
    command = app[chosen]
    arguments = list(command.assemble_argument_collection())
    required = " ".join(f"{a.names[0]} {_metavar(a)}" for a in arguments if a.required)
    rows = [(f"{', '.join(a.names)} {_metavar(a)}".rstrip(), _describe(a)) for a in arguments]
    description = textwrap.fill(" ".join((command.help or "").split()), width)
    return f"usage: {name} {chosen} {required} [OPTIONS]\n\n{description}\n\n{_table(rows, width)}"


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
