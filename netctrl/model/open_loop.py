"""Open loops with several delays, in continuous or discrete time, as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from numbers import Real
from typing import Any

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.model.io.display import Rows, Shown

Term = tuple[float, tuple[float, ...]]
"""(delay, coefficients with the highest power first), which stands for p(s) e^(−s·delay)."""

GivenTerm = tuple[float, Sequence[float] | np.ndarray]
"""A term as given by a caller; the record stores tuples."""

MAX_TERMS = 32
MAX_DEGREE = 60
MAX_SAMPLES = 1000
"""Largest delay of a discrete-time loop in samples; each sample is a pole, so the work grows with it."""

_TERM_TAKES = "a list of (delay in seconds, coefficients with the highest power first)"


class OpenLoop(Shown, msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An open loop of polynomials and delays, closed by negative unit feedback.

        L(s) = Σ n_j(s) e^(−s a_j) / Σ d_k(s) e^(−s b_k)        (continuous)
        L(z) = Σ n_j(z) z^(−a_j/dt) / Σ d_k(z) z^(−b_k/dt)      (discrete)

    Parameters
    ----------
    numerator, denominator : sequence of (delay, coefficients)
        Delay [s], at least 0, and in discrete time a whole number of samples; coefficients of s or z, highest power
        first. A polynomial alone is `((0.0, coefficients),)`. Terms of the same delay are added.
    dt : float
        0 for continuous time, else the sampling interval [s].

    Raises
    ------
    InvalidValue
        A delay or coefficient that isn't a finite number, too many terms, a denominator that is 0, or a loop that isn't
        causal and proper: the highest power must be in the denominator's term of the least delay.

    Examples
    --------
    TCP with its window's delay on itself, w0 tau s + 1 + e^(−tau s) in the denominator (Misra, Gong, Towsley 2000):

    >>> from netctrl import OpenLoop
    >>> tau, w0 = 0.5, 12.0
    >>> tcp = OpenLoop(numerator=[(tau, [1.0])], denominator=[(0.0, [w0 * tau, 1.0]), (tau, [1.0])])
    >>> tcp.denominator
    ((0.0, (6.0, 1.0)), (0.5, (1.0,)))
    """

    numerator: Sequence[GivenTerm]
    denominator: Sequence[GivenTerm]
    dt: float = 0.0

    def __post_init__(self) -> None:
        checked_number("dt", self.dt, "0 (continuous time) or a sampling interval above 0 in seconds", at_least=0.0)
        for name in ("numerator", "denominator"):
            msgspec.structs.force_setattr(self, name, _terms(name, getattr(self, name), self.dt))
        if not self.denominator:
            raise InvalidValue("denominator", self.denominator, "a nonzero denominator")
        least = self.denominator[0][0]
        degree = _degree(self.denominator[0][1])
        if self.dt:
            self._check_discrete(degree - round(least / self.dt))
            return
        if any(delay < least for delay, _ in self.numerator):
            raise InvalidValue("numerator", self.numerator, "delays of at least the denominator's shortest (causality)")
        if any(_degree(p) > degree for _, p in (*self.numerator, *self.denominator)):
            takes = "a proper loop: no power above the highest of the denominator's least delayed term"
            raise InvalidValue("numerator", self.numerator, f"{takes}; add a pole, which every real controller has")

    def _check_discrete(self, order: int) -> None:
        orders = [_degree(p) - round(delay / self.dt) for delay, p in (*self.numerator, *self.denominator)]
        if any(other > order for other in orders):
            raise InvalidValue(
                "numerator", self.numerator, "a causal loop: no higher power of z than in the denominator"
            )

    def scaled(self, factor: float) -> OpenLoop:
        """The same loop with its gain multiplied.

        Parameters
        ----------
        factor : float
            Finite.

        Returns
        -------
        OpenLoop
        """
        k = checked_number("factor", factor, "a finite factor of the loop gain")
        return OpenLoop(
            numerator=[(delay, [k * c for c in p]) for delay, p in self.numerator],
            denominator=self.denominator,
            dt=self.dt,
        )

    def delayed(self, delay: float) -> OpenLoop:
        """The same loop with a longer delay at its output.

        Parameters
        ----------
        delay : float
            Additional delay, at least 0 [s].

        Returns
        -------
        OpenLoop
        """
        more = checked_number("delay", delay, "a delay of at least 0 seconds", at_least=0.0)
        return OpenLoop(
            numerator=[(own + more, p) for own, p in self.numerator], denominator=self.denominator, dt=self.dt
        )

    def in_series(self, other: OpenLoop) -> OpenLoop:
        """The product of two loops, such as a controller and a plant.

        Parameters
        ----------
        other : OpenLoop
            With the same `dt`.

        Returns
        -------
        OpenLoop
        """
        self._same_time(other)
        return OpenLoop(
            numerator=_product(self.numerator, other.numerator),
            denominator=_product(self.denominator, other.denominator),
            dt=self.dt,
        )

    def closed_by(self, other: OpenLoop) -> OpenLoop:
        """An inner loop: self/(1 + self·other), whose delays stay in the denominator.

        Parameters
        ----------
        other : OpenLoop
            In the feedback path, with the same `dt`.

        Returns
        -------
        OpenLoop

        Examples
        --------
        >>> from netctrl import OpenLoop
        >>> integrator = OpenLoop(numerator=[(0.0, [1.0])], denominator=[(0.0, [1.0, 0.0])])
        >>> integrator.closed_by(OpenLoop(numerator=[(0.2, [3.0])], denominator=[(0.0, [1.0])])).denominator
        ((0.0, (1.0, 0.0)), (0.2, (3.0,)))
        """
        self._same_time(other)
        back = _product(self.numerator, other.numerator)
        return OpenLoop(
            numerator=_product(self.numerator, other.denominator),
            denominator=[*_product(self.denominator, other.denominator), *back],
            dt=self.dt,
        )

    def _same_time(self, other: object) -> None:
        if not isinstance(other, OpenLoop) or other.dt != self.dt:
            raise InvalidValue("other", other, f"an OpenLoop with dt = {self.dt}")

    def _shown(self) -> Rows:
        return "OpenLoop", [(name, str(getattr(self, name))) for name in self.__struct_fields__]


def _degree(polynomial: Sequence[float] | np.ndarray) -> int:
    return len(polynomial) - 1


def _product(one: Iterable[GivenTerm], other: Iterable[GivenTerm]) -> list[Term]:
    return [(a + b, tuple(map(float, np.polymul(p, q)))) for (a, p), (b, q) in product(one, other)]


def _terms(name: str, value: Any, dt: float) -> tuple[Term, ...]:
    """Checked terms in order of delay: terms of the same delay are added and leading zeros dropped."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) > MAX_TERMS**2:
        raise InvalidValue(name, value, _TERM_TAKES)
    total: dict[float, np.ndarray] = {}
    for term in value:
        delay, polynomial = _term(name, term, dt)
        total[delay] = np.polyadd(total.get(delay, np.zeros(1)), polynomial)
    kept = [(delay, tuple(map(float, np.trim_zeros(p, "f")))) for delay, p in sorted(total.items())]
    kept = [(delay, p) for delay, p in kept if p]
    if len(kept) > MAX_TERMS:
        raise InvalidValue(name, f"{len(kept)} terms", f"at most {MAX_TERMS} terms of different delays")
    return tuple(kept)


def _term(name: str, term: Any, dt: float) -> tuple[float, np.ndarray]:
    if isinstance(term, str) or not isinstance(term, Sequence) or len(term) != 2:
        raise InvalidValue(name, term, _TERM_TAKES)
    delay = checked_number(f"{name}: delay", term[0], "a delay of at least 0 seconds", at_least=0.0)
    polynomial = list(term[1]) if isinstance(term[1], Sequence | np.ndarray) and not isinstance(term[1], str) else []
    if not 1 <= len(polynomial) <= MAX_DEGREE + 1 or not all(isinstance(c, Real) for c in polynomial):
        raise InvalidValue(name, term[1], f"a list of 1 to {MAX_DEGREE + 1} real coefficients, highest power first")
    numbers = np.array([checked_number(name, c, "finite coefficients") for c in polynomial])
    if dt and (abs(delay / dt - round(delay / dt)) > 1e-9 or delay / dt > MAX_SAMPLES):
        takes = f"a whole number of samples of {dt:g} s, at most {MAX_SAMPLES}"
        raise InvalidValue(f"{name}: delay", delay, takes)
    return (round(delay / dt) * dt if dt else delay), numbers
