"""What can go wrong, in a short family: each message says what was got, what is taken, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum
from math import inf, isfinite
from numbers import Integral, Real
from types import UnionType
from typing import Any, get_args

__all__ = [
    "JOBS_TAKES",
    "FileError",
    "InfeasibleProgram",
    "InvalidValue",
    "NetctrlError",
    "NoAdmissibleDesign",
    "RiccatiStatus",
    "Status",
    "checked_flag",
    "checked_function",
    "checked_jobs",
    "checked_kind",
    "checked_names",
    "checked_number",
    "checked_numbers",
    "checked_whole",
    "checked_word",
]


JOBS_TAKES = "a number of processes of at least 1, or -1: one for each core"


class Status(StrEnum):
    """How a design came out. A numerical outcome is a value, never a silent NaN."""

    ADMISSIBLE = "admissible"
    """Meets the whole design rule in the loop that runs."""

    STABLE = "stable"
    """Stable, yet outside the design rule: see the certificate's warnings."""

    UNSTABLE = "unstable"
    """At least one closed-loop pole outside the stable region."""

    INFEASIBLE = "infeasible"
    """There is no equilibrium to be stable around."""


class RiccatiStatus(StrEnum):
    """What the solution of a Riccati equation is worth."""

    STABILISING = "stabilising"
    """Solves the equation, and no rounding of the data takes a closed-loop pole out of the unit circle."""

    MARGINAL = "marginal"
    """Solves it, with a closed-loop pole on the unit circle to rounding: no proof of stability."""

    NOT_STABILISING = "not stabilising"
    """Solves it, with a closed-loop pole outside the unit circle."""

    NO_SOLUTION = "no solution"
    """Nothing was found that solves it."""


class NetctrlError(Exception):
    """Base of all errors that netctrl raises on purpose."""


class InvalidValue(NetctrlError, ValueError):
    """An argument that can't be used: names it, what it got and what it takes."""

    def __init__(self, argument: str, got: object, takes: str) -> None:
        self.argument = argument
        self.got = got
        self.takes = takes
        super().__init__(f"{argument}: got {got!r}, takes {takes}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.argument, self.got, self.takes)  # whole again when it comes back from a worker


class FileError(NetctrlError, OSError):
    """A file that can't be read or written."""

    def __init__(self, path: object, why: str) -> None:
        self.path = str(path)
        self.why = why
        super().__init__(f"{self.path}: {why}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.path, self.why)


class NoAdmissibleDesign(NetctrlError):
    """No gain meets the design rule. `design` holds the best that is stable, or None; the text says what to change."""

    def __init__(self, message: str, design: Any = None) -> None:
        self.design = design
        super().__init__(message)


class InfeasibleProgram(NetctrlError):
    """Bounds of a quadratic program that exclude each other. `conflict` holds which; the text says what to change."""

    def __init__(self, message: str, conflict: Any = None) -> None:
        self.conflict = conflict
        super().__init__(message)


def checked_number(
    argument: str,
    value: object,
    takes: str,
    *,
    above: float = -inf,
    at_least: float = -inf,
    at_most: float = inf,
) -> float:
    """`value` as a finite float within the bounds, else `InvalidValue` that names `argument`. Text is no number."""
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = inf
        if isfinite(number) and number > above and at_least <= number <= at_most:
            return number
    raise InvalidValue(argument, value, takes)


def checked_whole(argument: str, value: object, takes: str, *, at_least: int = 0, at_most: float = 2**53) -> int:
    """`value` as an int within the bounds, else `InvalidValue` that names `argument`. 5.0 and True are none."""
    if isinstance(value, Integral) and not isinstance(value, bool) and at_least <= int(value) <= at_most:
        return int(value)
    raise InvalidValue(argument, value, takes)


def any_of(words: Iterable[str]) -> str:
    """What a message takes: `a or b`, or `one of a, b, c`."""
    known = list(words)
    return " or ".join(known) if len(known) < 3 else f"one of {', '.join(known)}"


def checked_kind(argument: str, value: object, kind: type | UnionType) -> Any:
    """`value` where it is one of `kind`, else `InvalidValue` that names both."""
    if not isinstance(value, kind):
        names = [each.__name__ for each in (get_args(kind) if isinstance(kind, UnionType) else (kind,))]
        takes = any_of(f"{'an' if name[0] in 'AEIOU' else 'a'} {name}" for name in names)
        raise InvalidValue(argument, f"a value of type {type(value).__name__}", takes)
    return value


def checked_function(argument: str, value: object) -> None:
    """Nothing where `value` can be called, else `InvalidValue`."""
    if not callable(value):
        raise InvalidValue(argument, f"a value of type {type(value).__name__}", "a function")


def checked_word(argument: str, value: object, known: Collection[str]) -> Any:
    """`value` where it is one of the words, else `InvalidValue` that lists them."""
    if not isinstance(value, str) or value not in known:
        raise InvalidValue(argument, value, any_of(known))
    return value


def checked_flag(argument: str, value: object) -> bool:
    """True or False, NumPy's too, else `InvalidValue`."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise InvalidValue(argument, value, "True or False")
    return bool(value)


def checked_names(argument: str, value: object, takes: str) -> tuple[str, ...]:
    """A sequence of texts as a tuple, else `InvalidValue`; one text is none."""
    if isinstance(value, (tuple, list)) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise InvalidValue(argument, value, takes)


def checked_numbers(argument: str, value: Any, takes: str) -> Any:
    """`value` as an array of float, whatever its shape; else `InvalidValue`."""
    import numpy as np

    try:
        if np.asarray(value).dtype.kind in "cOmMS":
            raise TypeError(argument)
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(argument, value, takes) from None


def checked_jobs(n_jobs: object) -> int:
    """A number of processes, or −1 for one on each core; else `InvalidValue`."""
    if isinstance(n_jobs, Integral) and n_jobs == -1:
        return -1
    return checked_whole("n_jobs", n_jobs, JOBS_TAKES, at_least=1)
