"""netctrl's exceptions and the checks of arguments; messages name the argument, the value and what is accepted."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from math import inf, isfinite
from numbers import Integral, Real
from types import UnionType
from typing import Any, TypeVar, get_args

_T = TypeVar("_T")
JOBS_TAKES = "a number of processes of at least 1, or -1: one for each core"


class Status(StrEnum):
    """Outcome of a design. A numerical outcome is a value of this class, never a silent NaN."""

    ADMISSIBLE = "admissible"
    """Meets the whole design rule in the implemented loop."""

    STABLE = "stable"
    """Stable, but outside the design rule: see the certificate's warnings."""

    UNSTABLE = "unstable"
    """At least one closed-loop pole outside the stable region."""

    INFEASIBLE = "infeasible"
    """No equilibrium exists."""


class RiccatiStatus(StrEnum):
    """Quality of a solution of a Riccati equation."""

    STABILISING = "stabilising"
    """Solves the equation; every closed-loop pole stays inside the unit circle under rounding of the data."""

    MARGINAL = "marginal"
    """Solves it, with a closed-loop pole on the unit circle within rounding: stability is not proved."""

    NOT_STABILISING = "not stabilising"
    """Solves it, with a closed-loop pole outside the unit circle."""

    NO_SOLUTION = "no solution"
    """No solution was found."""


class NetctrlError(Exception):
    """Base class of the errors that netctrl raises deliberately.

    Examples
    --------
    >>> import netctrl
    >>> try:
    ...     netctrl.read("no-such-scenario.toml")
    ... except netctrl.NetctrlError as error:
    ...     print(type(error).__name__)
    FileError
    """


class InvalidValue(NetctrlError, ValueError):
    """An argument that cannot be used; the message gives the value and what is accepted.

    It is also a ValueError.

    Parameters
    ----------
    argument : str
        Name of the argument.
    got : object
        The value that was given.
    takes : str
        Values that are accepted, in words.

    Attributes
    ----------
    argument, got, takes
        As given.

    Examples
    --------
    >>> import netctrl
    >>> netctrl.arc(flows=-1)
    Traceback (most recent call last):
    netctrl.core.errors.InvalidValue: flows: got -1, takes a number of flows above 0, or a range low:high of them
    """

    def __init__(self, argument: str, got: object, takes: str) -> None:
        self.argument = argument
        self.got = got
        self.takes = takes
        try:
            shown = repr(got)
        except RecursionError:
            shown = f"a {type(got).__name__} nested too deeply to show"
        super().__init__(f"{argument}: got {shown}, takes {takes}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.argument, self.got, self.takes)  # pickled when a worker raises it


class FileError(NetctrlError, OSError):
    """A file that can't be read or written."""

    def __init__(self, path: object, why: str) -> None:
        self.path = str(path)
        self.why = why
        super().__init__(f"{self.path}: {why}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.path, self.why)


class MissingLibrary(NetctrlError, ImportError):
    """A library that netctrl imports only when needed is not installed; the text has the pip command."""

    def __init__(self, library: str) -> None:
        self.library = library
        super().__init__(f"{library} is not installed: pip install {library.replace('_', '-')}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.library,)


@contextmanager
def optional_import() -> Generator[None]:
    """Context for importing a library that the core install leaves out; raises `MissingLibrary` where it is missing.

    Examples
    --------
    >>> with optional_import():
    ...     import no_such_library
    Traceback (most recent call last):
    netctrl.core.errors.MissingLibrary: no_such_library is not installed: pip install no-such-library
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingLibrary(str(error.name).partition(".")[0]) from None


class Unusable(NetctrlError, ValueError):
    """An entry of another package that can't be loaded, or that isn't what the registry takes."""


class NoAdmissibleDesign(NetctrlError):
    """The design rule cannot be met; the message says what would have to change.

    Parameters
    ----------
    message : str
        What is wrong and what would help.
    design : Design, optional
        The best stable design that was found.

    Attributes
    ----------
    design : Design or None
        As given.

    Examples
    --------
    >>> import netctrl
    >>> try:
    ...     netctrl.arc(flows=1000, rtt_s=0.05, capacity_bit_per_s=1e6)
    ... except netctrl.NoAdmissibleDesign as error:
    ...     print(error.design.certificate.status)
    infeasible
    """

    def __init__(self, message: str, design: Any = None) -> None:
        self.design = design
        super().__init__(message)


class InfeasibleProgram(NetctrlError):
    """The bounds of a quadratic program exclude each other; `conflict` says which, the text what to change."""

    def __init__(self, message: str, conflict: Any = None) -> None:
        self.conflict = conflict
        super().__init__(message)


def checked_number(
    argument: str, value: object, takes: str, *, above: float = -inf, at_least: float = -inf, at_most: float = inf
) -> float:
    """`value` as a finite float within the bounds, else `InvalidValue` that names `argument`. Text is refused."""
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = inf
        if isfinite(number) and number > above and at_least <= number <= at_most:
            return number
    raise InvalidValue(argument, value, takes)


def checked_whole(argument: str, value: object, takes: str, *, at_least: int = 0, at_most: float = 2**53) -> int:
    """`value` as an int within the bounds, else `InvalidValue` that names `argument`. 5.0 and True are refused."""
    if isinstance(value, Integral) and not isinstance(value, bool) and at_least <= int(value) <= at_most:
        return int(value)
    raise InvalidValue(argument, value, takes)


def any_of(words: Iterable[str], got: object = None) -> str:
    """The accepted words as text: `a or b`, or `one of a, b, c`, then the closest to `got`."""
    known = list(words)
    return (" or ".join(known) if len(known) < 3 else f"one of {', '.join(known)}") + did_you_mean(got, known)


def did_you_mean(got: object, known: Iterable[str]) -> str:
    """End of a message: `; did you mean 'abilene'?`, or empty where no known word is close."""
    from difflib import get_close_matches

    words = {word.lower(): word for word in known}
    close = get_close_matches(got.lower(), words, n=1) if isinstance(got, str) else []
    return f"; did you mean {words[close[0]]!r}?" if close else ""


def checked_kind(argument: str, value: object, kind: type | UnionType) -> Any:
    """`value` if it is an instance of `kind`, else `InvalidValue` that names both types."""
    if not isinstance(value, kind):
        names = [each.__name__ for each in (get_args(kind) if isinstance(kind, UnionType) else (kind,))]
        takes = any_of(f"{'an' if name[0] in 'AEIOU' else 'a'} {name}" for name in names)
        raise InvalidValue(argument, f"a value of type {type(value).__name__}", takes)
    return value


def checked_function(argument: str, value: object) -> None:
    """Return nothing if `value` can be called, else raise `InvalidValue`."""
    if not callable(value):
        raise InvalidValue(argument, f"a value of type {type(value).__name__}", "a function")


def checked_word(argument: str, value: object, known: Collection[str]) -> Any:
    """`value` if it is one of the known words, else `InvalidValue` that lists them."""
    if not isinstance(value, str) or value not in known:
        raise InvalidValue(argument, value, any_of(known, value))
    return value


def checked_flag(argument: str, value: object) -> bool:
    """`value` as a bool, from Python's or NumPy's True or False, else `InvalidValue`."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise InvalidValue(argument, value, "True or False")
    return bool(value)


def checked_names(argument: str, value: object, takes: str) -> tuple[str, ...]:
    """A sequence of strings as a tuple, else `InvalidValue`; a single string is refused."""
    if isinstance(value, (tuple, list)) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise InvalidValue(argument, value, takes)


def checked_numbers(argument: str, value: Any, takes: str) -> Any:
    """`value` as an array of floats of any shape, else `InvalidValue`."""
    import numpy as np

    try:
        if np.asarray(value).dtype.kind in "cOmMS":
            raise TypeError(argument)
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(argument, value, takes) from None


def checked_jobs(n_jobs: object) -> int:
    """A number of processes, or −1 for one on each core, else `InvalidValue`."""
    if isinstance(n_jobs, Integral) and n_jobs == -1:
        return -1
    return checked_whole("n_jobs", n_jobs, JOBS_TAKES, at_least=1)


def raised_in(module: str, error: BaseException) -> str:
    """File and line of a syntax error, or of the last line of a module's package that ran before an error; or empty."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    found, trace = "", error.__traceback__
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__"))
        if name.partition(".")[0] == module.partition(".")[0]:
            found = f"{trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return found


def from_workers(results: Iterable[_T], remedy: str = "") -> Iterator[_T]:
    """Results of worker processes; NetctrlError, which ends with the remedy, where one is killed."""
    from concurrent.futures.process import BrokenProcessPool

    try:
        yield from results
    except BrokenProcessPool:
        why = "a worker process was ended, by a signal or by the system for lack of memory"
        raise NetctrlError(f"{why}{remedy}; fewer processes (n_jobs) need less memory") from None
