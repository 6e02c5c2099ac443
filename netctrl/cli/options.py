"""Options of commands: how an option is declared, and what becomes of its text before the command runs.

A command's signature declares its options, once. A parameter has the name that the public function gives the argument
(`rtt_s`), and its option is that without the unit (`--rtt`). A `Kind` reads the option's text as the argument's value,
so that a command passes on `given(locals())`. An option that isn't given isn't passed on: the public function's default
holds, and `default` only shows it in the help (tests/cli/test_options.py compares the two).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter, Token
from cyclopts.exceptions import RepeatArgumentError

from netctrl.core.errors import JOBS_TAKES, InvalidValue
from netctrl.core.units import (
    DURATION_TAKES,
    RATE_TAKES,
    SIZE_TAKES,
    parse_duration,
    parse_range,
    parse_rate,
    parse_size,
)

SET_TAKES = "NAME=VALUE, with commas between several, as in target=20ms,alpha=0.2"
PLOT_SUFFIXES = (".png", ".svg", ".pdf")
REPORT_SUFFIXES = (".html", ".htm")
ENDINGS = {"plot": PLOT_SUFFIXES, "report": REPORT_SUFFIXES}
"""Option -> how the name of its file may end."""
_UNITS = re.compile(r"_(bit_per_s|per_packet|packets|bytes|s)$")


class Kind(NamedTuple):
    """What stands for an option's value in the help, and how its text is read; called, an option of this kind."""

    metavar: str
    read: Callable[[str], Any]
    """InvalidValue for a text that it doesn't take; the message names the option by itself."""

    def __call__(self, help: str, *names: str, default: str = "") -> Parameter:
        """An option with its help, its names where they aren't the parameter's, and a default to show."""

        def converted(_: Any, tokens: Sequence[Token]) -> Any:
            if len(tokens) > 1:  # which cyclopts allows where the value is a tuple
                raise RepeatArgumentError(token=tokens[1])
            return self.read(tokens[0].value)

        text = option(self.metavar, help, *names, default=default)
        return Parameter.combine(text, Parameter(converter=converted, n_tokens=1))


def option(metavar: str, help: str, *names: str, default: str = "") -> Parameter:
    """An option whose value is its text; with "" as metavar, a flag."""
    return Parameter(
        name=names or None,
        name_transform=option_name,
        help=f"{metavar}: {help}",
        show_default=(lambda _: default) if default else None,
        allow_leading_hyphen=bool(metavar),
        negative="",
    )


def positional(metavar: str, help: str) -> Parameter:
    """A positional argument that takes text; an argument that begins with "-" is an option."""
    return Parameter(help=f"{metavar}: {help}")


def option_name(parameter: str) -> str:
    """Name of a parameter's option without its dashes: without a unit at its end, with - for _."""
    return _UNITS.sub("", parameter).replace("_", "-")


def given(parameters: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """Those of a command's parameters that were given, without `others`, which the public function doesn't take."""
    return {name: value for name, value in parameters.items() if value is not None and name not in others}


def kind(metavar: str, parse: Callable[[str], Any], takes: str) -> Kind:
    """Kind of options read by a function that raises ValueError for a text that it doesn't take."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError:
            raise InvalidValue("", text, takes) from None

    return Kind(metavar, read)


def whole(metavar: str, takes: str, least: int = 0, most: int = 10**9 - 1) -> Kind:
    """Kind of options that take a whole number in decimal digits."""

    def parse(text: str) -> int:
        if not re.fullmatch("[0-9]{1,20}", text) or not least <= int(text) <= most:
            raise ValueError
        return int(text)

    return kind(metavar, parse, takes)


def ranged(metavar: str, parse: Callable[[str], float], takes: str) -> Kind:
    """Kind of options that take a range low:high, as both ends; a single value stands for both."""
    ends = kind(metavar, lambda text: parse_range(text, parse), takes)

    def read(text: str) -> tuple[float, float]:
        low, high = ends.read(text)
        if low > high:
            raise InvalidValue("", text, f"{takes}; this range is empty")
        return low, high

    return Kind(metavar, read)


def _jobs(text: str) -> int:
    if not re.fullmatch("-1|[1-9][0-9]{0,3}", text):
        raise ValueError
    return int(text)


RATE = kind("RATE", parse_rate, RATE_TAKES)
TIME = kind("TIME", parse_duration, DURATION_TAKES)
SIZE = kind("SIZE", parse_size, SIZE_TAKES)
JOBS = kind("N", _jobs, JOBS_TAKES)

Report = Annotated[str | None, option("FILE", f"write a one-page report ({', '.join(REPORT_SUFFIXES)})", "--report")]


def _parameters(text: str) -> dict[str, Any]:
    """Names and values of --set: numbers where they are ones, else text with a unit."""
    found = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not (name and equals and value):
            raise InvalidValue("", part, SET_TAKES)
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


SET = Kind("VALUES", _parameters)
