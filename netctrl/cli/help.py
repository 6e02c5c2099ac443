"""Help of command lines as plain text: usage, options, examples, exit statuses; and messages about wrong use."""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence

from cyclopts import App, CycloptsError, MissingArgumentError
from cyclopts.argument import Argument
from cyclopts.exceptions import UnknownCommandError, UnknownOptionError, UnusedCliTokensError

from netctrl.cli import STATUSES
from netctrl.core.errors import did_you_mean

HELP_ALL = "--help-all"
HELP = ("--help", "-h", HELP_ALL)
MOST_OPTIONS = 12
"""Options in a command's help; `--help-all` shows the others."""
_WIDTH, _LEFT = 80, 30
"""Columns of a text, and of the names before their texts; a longer name stands on a line of its own."""
_FIRST = (
    "--rtt", "--N", "--capacity", "--design", "--engine", "--inputs", "--outputs", "--order", "--alpha", "--beta",
    "--target", "--sender", "--p99", "--utilization", "--gains", "--check", "--compare", "--runs", "--network", "--mu",
    "--objective", "--output", "--plot", "--report", "--json",
)  # fmt: skip
"""Options that a help shows first, before others in the order of their declaration."""
_EXAMPLES = "\n\nExamples\n--------\n"


def help_of(app: App, tokens: Sequence[str]) -> str:
    """The help of an App, or of its command that `tokens` names."""
    name, known, chosen = app.name[0], commands_of(app), _chosen(app, tokens)
    whole = HELP_ALL in tokens
    if chosen is not None:
        return _command_help(f"{name} {chosen}", app[chosen], _described(app[chosen].help), whole)
    if app.default_command is not None:
        return _command_help(name, app, app.help, whole)
    rows = [(command, _described(app[command].help)) for command in known]
    usage = f"usage: {name} COMMAND [OPTIONS]\n\n{textwrap.fill(app.help, _width())}\n\n"
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


def missing(name: str, takes: str) -> str:
    """Message about an argument that isn't given: what it is, by the first words of its help, and an example."""
    example = re.search(r"as in ([^\s,;:)]+)", takes)
    if example is None or not name.startswith("-"):
        return f"{name} is missing: {takes}"
    return f"{name} is missing: {re.split(r'[,;:(]| as in ', takes)[0].strip()}, as in {name} {example[1]}"


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
        return f"{missing(name, takes)}{meant}"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"unexpected argument {error.unused_tokens[0]!r} ({called} --help shows the arguments)"
    return f"{str(error).rstrip('.')} ({called} --help shows the arguments)"


def columns(rows: Sequence[tuple[str, str]]) -> str:
    """(name, text) rows in two columns, texts wrapped to the terminal."""
    width = _width()
    left = min(max(len(name) for name, _ in rows) + 4, _LEFT)
    lines = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(width - left, 30), break_long_words=False, break_on_hyphens=False) or [""]
        if len(name) > left - 4:
            lines.append(f"  {name}")
        else:
            lines.append(f"  {name:<{left - 2}}{wrapped.pop(0)}")
        lines += [" " * left + line for line in wrapped]
    return "\n".join(lines) + "\n"


def _width() -> int:
    return min(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDTH)


def _described(help: str | None) -> str:
    """A docstring without its examples, as one line."""
    return " ".join((help or "").partition(_EXAMPLES)[0].split())


def _command_help(name: str, command: App, help: str, whole: bool) -> str:
    usage = [name]
    rows = []
    # A group of options has no text: they follow by themselves.
    known = [each for each in command.assemble_argument_collection() if each.parameter.help is not None]
    options = [each for each in known if each.names[0].startswith("-")]
    left_out = [] if whole else sorted(options, key=_rank)[MOST_OPTIONS:]
    for argument in known:
        if argument in left_out:
            continue
        positional = not argument.names[0].startswith("-")
        left = _metavar(argument) if positional else f"{', '.join(argument.names)} {_metavar(argument)}".rstrip()
        rows.append((left, _describe(argument)))
        if positional:
            usage.append(left if argument.required else f"[{left}]")
        elif argument.required:
            usage.append(f"{argument.names[0]} {_metavar(argument)}")
    count = f"{len(left_out)} more option{'s' * (len(left_out) > 1)}"
    more = f"{count}: {name} {HELP_ALL}\n\n" if left_out else ""
    shown = f"{columns(rows)}\n{more}" if rows else ""
    used = _wrapped(f"usage: {' '.join(usage)} [OPTIONS]", " " * 10)
    return f"{used}\n\n{textwrap.fill(help, _width())}\n\n{shown}{_listed(examples_of(command))}{STATUSES}\n"


def _rank(option: Argument) -> int:
    """Place of an option in the order of what most users need; those of equal places keep their order."""
    if option.required:
        return -1
    return next((_FIRST.index(name) for name in option.names if name in _FIRST), len(_FIRST))


def _wrapped(text: str, indent: str, end: str = "") -> str:
    """A command line over several lines, each but the last with an end."""
    width = _width() - len(end)
    lines = textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return f"{end}\n".join(lines)


def _listed(examples: Sequence[str]) -> str:
    lines = [_wrapped(f"  {line}", " " * 6, " \\") for line in examples]
    return "\n".join(["examples:", *lines, "", ""]) if examples else ""


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
