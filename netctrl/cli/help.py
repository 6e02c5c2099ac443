"""Help of command lines as plain text: usage, options, examples, exit statuses; and messages about wrong use."""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Iterable, Sequence

from cyclopts import App, CycloptsError, MissingArgumentError
from cyclopts.argument import Argument
from cyclopts.exceptions import UnknownCommandError, UnknownOptionError, UnusedCliTokensError

from netctrl.cli import STATUSES
from netctrl.core.errors import did_you_mean

HELP = ("--help", "-h")
_EXAMPLES = "\n\nExamples\n--------\n"


def help_of(app: App, tokens: Sequence[str]) -> str:
    """The help of an App, or of its command that `tokens` names."""
    name, known, chosen = app.name[0], commands_of(app), _chosen(app, tokens)
    if chosen is not None:
        return _command_help(f"{name} {chosen}", app[chosen], _described(app[chosen].help))
    if app.default_command is not None:
        return _command_help(name, app, app.help)
    rows = [(command, _described(app[command].help)) for command in known]
    usage = f"usage: {name} COMMAND [OPTIONS]\n\n{app.help}\n\n"
    more = f"{name} COMMAND --help shows a command's options and examples."
    return f"{usage}{columns(rows)}\n{_listed(examples_of(app))}{more}\n{STATUSES}\n"


def _chosen(app: App, tokens: Sequence[str]) -> str | None:
    known = commands_of(app)
    return next((token for token in tokens if token in known), None)


def names_of(app: App, tokens: Sequence[str]) -> dict[str, str]:
    """Parameter of the command that `tokens` names -> what users call it."""
    chosen = _chosen(app, tokens)
    arguments = (app if chosen is None else app[chosen]).assemble_argument_collection()
    return {argument.field_info.name: name_of(argument) for argument in arguments}


def name_of(argument: Argument) -> str:
    """What users call an argument: a positional one's metavar, else its option, of one letter if there is one."""
    if not argument.names[0].startswith("-"):
        return _metavar(argument)
    return next((name for name in argument.names if len(name.strip("-")) == 1), argument.names[0])


def commands_of(app: App) -> list[str]:
    """Names of an App's commands, in order."""
    return [token for token in app if not token.startswith("-")]


def examples_of(app: App) -> list[str]:
    """An App's examples, or the lines of the section "Examples" in the docstring of its function."""
    text = inspect.getdoc(app.default_command) if app.default_command is not None else None
    return (app.help_epilogue or (text or "").partition(_EXAMPLES)[2]).splitlines()


def unknown(what: str, got: str, known: Iterable[str], name: str) -> str:
    """Message about an unknown word, with the closest known one."""
    return f"unknown {what} {got!r}{did_you_mean(got, known)} ({name} --help lists them)"


def wrong_use(error: CycloptsError, name: str) -> str:
    """Message for a command line that cyclopts refuses; `name` is the App's."""
    called = " ".join([name, *(error.command_chain or ())])
    stray = next((token for token in error.unused_tokens or () if token.startswith("--")), None)
    argument = error.argument
    if isinstance(error, UnknownCommandError) and error.app is not None and error.unused_tokens:
        return unknown("command", error.unused_tokens[0], commands_of(error.app), called)
    if isinstance(error, UnknownOptionError):
        known = [option for each in error.argument_collection for option in each.names if option.startswith("-")]
        return unknown("option", error.token.keyword or error.token.value, known, called)
    if isinstance(error, MissingArgumentError) and argument is not None:
        takes = (argument.parameter.help or "a value").partition(": ")[2]
        meant = f" (unknown option {stray!r}{did_you_mean(stray, argument.names)})" if stray else ""
        name = argument.names[0] if argument.names[0].startswith("-") else _metavar(argument)
        return f"{name}: got nothing, takes {takes}{meant}"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"unexpected argument {error.unused_tokens[0]!r} ({called} --help shows the arguments)"
    return f"{str(error).rstrip('.')} ({called} --help shows the arguments)"


def columns(rows: Sequence[tuple[str, str]]) -> str:
    """(name, text) rows in two columns, texts wrapped to the terminal."""
    width = _width()
    left = max(len(name) for name, _ in rows) + 4
    lines = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(width - left, 30), break_long_words=False, break_on_hyphens=False) or [""]
        lines.append(f"  {name:<{left - 2}}{wrapped[0]}")
        lines += [" " * left + line for line in wrapped[1:]]
    return "\n".join(lines) + "\n"


def _width() -> int:
    return min(shutil.get_terminal_size((100, 24)).columns, 110)


def _described(help: str | None) -> str:
    """A docstring without its examples, as one line."""
    return " ".join((help or "").partition(_EXAMPLES)[0].split())


def _command_help(name: str, command: App, help: str) -> str:
    usage = [name]
    rows = []
    for argument in command.assemble_argument_collection():
        if argument.parameter.help is None:  # a group of options, which follow by themselves
            continue
        positional = not argument.names[0].startswith("-")
        left = _metavar(argument) if positional else f"{', '.join(argument.names)} {_metavar(argument)}".rstrip()
        rows.append((left, _describe(argument)))
        if positional:
            usage.append(left if argument.required else f"[{left}]")
        elif argument.required:
            usage.append(f"{argument.names[0]} {_metavar(argument)}")
    options = f"{columns(rows)}\n" if rows else ""
    described = f"usage: {' '.join(usage)} [OPTIONS]\n\n{textwrap.fill(help, _width())}\n\n"
    return f"{described}{options}{_listed(examples_of(command))}{STATUSES}\n"


def _listed(examples: Sequence[str]) -> str:
    return "examples:\n" + "".join(f"  {line}\n" for line in examples) + "\n" if examples else ""


def _metavar(argument: Argument) -> str:
    return (argument.parameter.help or "").partition(": ")[0]


def default_of(argument: Argument) -> str:
    """The text of an argument's default, "" without one: of the signature, or of the public function."""
    shown, default = argument.parameter.show_default, argument.field_info.default
    if callable(shown):
        return str(shown(default))
    return default if isinstance(default, str) else ""


def _describe(argument: Argument) -> str:
    default = default_of(argument)
    shown = f" [{default}]" if default else " [required]" if argument.required else ""
    return (argument.parameter.help or "").partition(": ")[2] + shown
