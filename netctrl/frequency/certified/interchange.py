"""Conversion of python-control systems, state-space models and `DelayLoop`s to loops of polynomials.

A loop on its stability boundary: polynomials on the imaginary axis in scaled frequency, or on the unit circle.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import dropwhile
from math import comb, copysign, inf, isfinite, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_number
from netctrl.frequency.certified.closed_loop import ClosedLoop
from netctrl.frequency.certified.exponential import quasi_polynomial
from netctrl.model.io.matrix import dense
from netctrl.model.loop import DelayLoop
from netctrl.model.open_loop import GivenTerm, OpenLoop
from netctrl.model.statespace import StateSpace

if TYPE_CHECKING:
    import control

    ControlSystem = control.lti.LTI | None  # None is rejected, but type checkers infer it from control.tf


MAX_STATES = 40
_APART = 1e-4  # relative discriminant above which two roots are distinct
_SAME = 1e-13  # relative: accuracy with which the roots must reproduce the coefficients

_TAKES = (
    "a DelayLoop, an OpenLoop, a python-control TransferFunction or StateSpace, or a netctrl StateSpace, with one "
    "input and one output"
)


def checked_delay(delay_s: float) -> float:
    """A delay [s]; InvalidValue for any other value."""
    return checked_number("delay_s", delay_s, "a delay of at least 0 seconds", at_least=0.0)


def from_control(
    system: ControlSystem | StateSpace, delay_s: float = 0.0, *, argument: str = "system"
) -> DelayLoop | OpenLoop:
    """Convert a system of python-control, times a delay, to a loop that netctrl analyses exactly.

    A transfer function keeps its coefficients. Those of a state-space system are computed exactly in integers and
    rounded once (Faddeev, Le Verrier). Unobservable modes stay in numerator and denominator and count as poles of the
    closed loop.

    Parameters
    ----------
    system : control.TransferFunction, control.StateSpace or netctrl.StateSpace
        Proper, one input and one output; dt is 0 (or None, for a constant), or a sampling interval in seconds.
    delay_s : float
        Delay at the output [s]; in discrete time a whole number of samples.
    argument : str
        Name of the system in messages.

    Returns
    -------
    DelayLoop or OpenLoop
        A DelayLoop where poles and zeros are real and reproduce the coefficients to 13 digits, with at most two
        integrators, all other poles in the left half plane, a gain above 0, and strictly proper. Otherwise an OpenLoop.

    Raises
    ------
    InvalidValue
        Another type, several inputs or outputs, no sampling interval, an improper system, more than 40 states.

    Examples
    --------
    >>> import control, netctrl
    >>> netctrl.from_control(control.tf([3], [2, 1, 0]), delay_s=0.1)
    DelayLoop
      gain: 3.0
      delay: 0.1
      integrators: 1
      leads: ()
      lags: (2.0,)
    >>> netctrl.from_control(control.tf([1], [1, 0.2, 1]), delay_s=0.1)
    OpenLoop
      numerator: ((0.1, (1.0,)),)
      denominator: ((0.0, (1.0, 0.2, 1.0)),)
      dt: 0.0
    """
    later = checked_delay(delay_s)
    numerator, denominator, dt = _polynomials(system, argument)
    if dt == 0.0 and (simple := _corners(numerator, denominator, later)) is not None:
        return simple
    return OpenLoop(numerator=[(later, numerator)], denominator=[(0.0, denominator)], dt=dt)


def any_loop(loop: Any, delay_s: float = 0.0) -> OpenLoop:
    """The `loop` and `delay_s` of `margins` as an OpenLoop."""
    if not isinstance(loop, DelayLoop | OpenLoop):
        loop = from_control(loop, delay_s, argument="loop")
        delay_s = 0.0
    loop = open_loop(loop) if isinstance(loop, DelayLoop) else loop
    return loop.delayed(delay_s) if delay_s else loop


def open_loop(loop: DelayLoop) -> OpenLoop:
    """`DelayLoop` as polynomials in s."""
    numerator = np.array([loop.gain])
    denominator = np.array([1.0] + [0.0] * loop.integrators)
    for z in loop.leads:
        numerator = np.polymul(numerator, [z, 1.0])
    for T in loop.lags:
        denominator = np.polymul(denominator, [T, 1.0])
    return OpenLoop(numerator=[(loop.delay, numerator)], denominator=[(0.0, denominator)])


def _polynomials(system: Any, argument: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Numerator, denominator (highest power first) and dt."""
    if isinstance(system, StateSpace):
        if (system.n_inputs, system.n_outputs) != (1, 1):
            raise InvalidValue(argument, f"{system.n_inputs} inputs and {system.n_outputs} outputs", _TAKES)
        return *transfer_polynomials(system, argument), system.dt
    kind = type(system)
    if kind.__module__.split(".")[0] != "control" or kind.__name__ not in ("TransferFunction", "StateSpace"):
        raise InvalidValue(argument, system, _TAKES)
    if not system.issiso():
        raise InvalidValue(argument, f"{system.ninputs} inputs and {system.noutputs} outputs", _TAKES)
    if system.dt is True:
        raise InvalidValue(f"{argument}.dt", True, "a sampling interval in seconds (1.0 counts in samples)")
    dt = float(system.dt or 0.0)
    if kind.__name__ == "TransferFunction":
        numerator, denominator = (np.asarray(p[0][0], float) for p in (system.num, system.den))
        return numerator, denominator, dt
    return *transfer_polynomials(StateSpace(system.A, system.B, system.C, system.D, dt), argument), dt


def transfer_polynomials(system: StateSpace, argument: str = "system") -> tuple[np.ndarray, np.ndarray]:
    """Numerator C adj(sI − A) B + D det(sI − A) and denominator det(sI − A), highest power first: exact, rounded once.

    Entries are binary fractions; times a power of 2 they are integers, and all divisions of Faddeev's recursion
    are exact.
    """
    n = system.n_states
    if n > MAX_STATES:
        raise InvalidValue(argument, f"{n} states", f"at most {MAX_STATES} states; reduce the model first")
    (A, a), (B, b), (C, c), (D, d) = (_integers(dense(part)) for part in (system.A, system.B, system.C, system.D))
    identity = np.array([[int(i == j) for j in range(n)] for i in range(n)], object).reshape(n, n)
    M, last = identity, 1
    denominator, inner = [1], []
    for k in range(1, n + 1):
        inner.append(int((C @ M @ B)[0, 0]))
        AM = A @ M
        last = -int(sum(AM[i, i] for i in range(n))) // k
        denominator.append(last)
        M = AM + last * identity
    direct = int(D[0, 0])
    # In units of 2^−a for the state, 2^−(b + c) for the output, 2^−d for the direct path.
    numerator = [
        _sum((direct * denominator[k], d + a * k), (inner[k - 1] if k else 0, b + c + a * (k - 1)))
        for k in range(n + 1)
    ]
    return np.array(numerator), np.array([_sum((value, a * k)) for k, value in enumerate(denominator)])


def _integers(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """A matrix of integers and the least e >= 0 with matrix · 2^−e the given one."""
    ratios = [float(x).as_integer_ratio() for x in matrix.ravel()]
    power = max((below.bit_length() - 1 for _, below in ratios), default=0)
    whole = np.empty(len(ratios), object)
    whole[:] = [above * 2**power // below for above, below in ratios]
    return whole.reshape(matrix.shape), power


def _sum(*parts: tuple[int, int]) -> float:
    """Σ value · 2^−power, rounded once."""
    most = max(power for _, power in parts)
    return sum(value * 2 ** (most - power) for value, power in parts) / 2**most


def _corners(numerator: np.ndarray, denominator: np.ndarray, delay: float) -> DelayLoop | None:
    """`DelayLoop` with these polynomials, if it certainly is one."""
    # Plain floats: calls of NumPy would take most of the time of such a loop's margins.
    num, den = (list(dropwhile(lambda c: not c, p.tolist())) for p in (numerator, denominator))
    if not num or not num[-1] or not den or len(num) >= len(den):
        return None
    integrators = 0
    while den[-1] == 0.0:
        den.pop()
        integrators += 1
    gain = num[-1] / den[-1]
    if integrators > 2 or not 0.0 < gain < inf or any((c > 0.0) != (den[-1] > 0.0) or not c for c in den):
        return None
    zeros, poles = _real_roots(num), _real_roots(den)
    if zeros is None or poles is None:
        return None
    if not all(r and isfinite(1.0 / r) and isfinite(r) for r in (*zeros, *poles)):
        return None
    leads, lags = (tuple(-1.0 / r for r in found) for found in (zeros, poles))
    return DelayLoop(gain=gain, delay=delay, integrators=integrators, leads=leads, lags=lags)


def _real_roots(p: list[float]) -> list[float] | None:
    """Roots, if they are real and reproduce the polynomial."""
    if len(p) == 1:
        return []
    if len(p) == 2:
        return [-p[1] / p[0]]
    if len(p) == 3:  # closed form: computing eigenvalues would take most of the time
        a, b, c = p
        apart = b * b - 4.0 * a * c
        if not _APART * b * b < apart < inf:
            return None
        q = -0.5 * (b + copysign(sqrt(apart), b))
        return [q / a, c / q]
    with np.errstate(all="ignore"):
        try:
            roots = np.roots(p)
        except np.linalg.LinAlgError:  # ratios of coefficients overflow
            return None
        if not np.isfinite(roots).all() or np.iscomplexobj(roots):
            return None
        back = p[0] * np.poly(roots)
    return roots.tolist() if (np.abs(back - p) <= _SAME * np.abs(p)).all() else None


_MAX_TANGENT = 24
"""Order up to which a discrete loop is mapped to the imaginary axis."""

_EPS = float(np.finfo(float).eps)


def closed_loop(loop: OpenLoop) -> ClosedLoop:
    """Closed loop of a record on its stability boundary, with frequencies scaled to the loop's own corner.

    In discrete time z = (1 + v)/(1 − v) maps the unit circle to the axis. At high order the powers of v would cancel
    too much: then the angle itself is the variable, and a loop of low order behind many samples of delay has a second
    form without them, in which terms that almost cancel near z = 1 are exact.
    """
    if not loop.dt:
        least = loop.denominator[0][0]
        late = min((delay for delay, _ in loop.numerator), default=least)
        numerator = [(t - late, np.array(p[::-1])) for t, p in loop.numerator]
        denominator = [(t - least, np.array(p[::-1])) for t, p in loop.denominator]
        return _on_axis(numerator, denominator, late - least, 0.0)
    num, den = _powers(loop.numerator, loop.dt), _powers(loop.denominator, loop.dt)
    least = min([*num, *den])
    order = max(den) - least
    if order <= _MAX_TANGENT:
        return _in_tangent(num, den, least, order, loop.dt)
    size = max(abs(c) for c in den.values())
    N, D = (
        quasi_polynomial((float(least - at), np.array([c / size])) for at, c in part.items()) for part in (num, den)
    )
    undelayed, lag = None, 0
    if num:  # without the lowest powers of numerator and denominator, and the samples between those powers
        lag = min(den) - min(num)
        low_num, low_den = ({at - min(part): c for at, c in part.items()} for part in (num, den))
        low_order = max([*low_num, *low_den])
        if low_order <= _MAX_TANGENT:
            undelayed = _in_tangent(low_num, low_den, 0, low_order, loop.dt)
    return ClosedLoop(N, D, 0.0, order, 1.0, loop.dt, circle=True, undelayed=undelayed, lag=lag)


Rising = list[tuple[float, np.ndarray]]
"""(delay, coefficients of 1, s, s², ...)."""


def _on_axis(numerator: Rising, denominator: Rising, delay: float, dt: float) -> ClosedLoop:
    """The loop over ω/unit. The unit is the geometric mean of the loop's poles, else that of numerator over
    denominator, else the inverse of the longest delay."""
    den = denominator[0][1]
    low, high = (int(i) for i in np.flatnonzero(den)[[0, -1]])
    lowest, power = den[low], high - low
    if low == high and numerator and high:
        first = int(np.flatnonzero(numerator[0][1])[0])
        lowest, power = numerator[0][1][first], high - first
    if power > 0:
        unit = float(np.exp((np.log(abs(lowest)) - np.log(abs(den[high]))) / power))
    else:
        longest = max([delay, *(t for t, _ in (*numerator, *denominator))])
        unit = 1.0 / longest if longest > 0.0 else 1.0
    size = max(float(np.abs(p * unit ** np.arange(len(p))).max()) for _, p in denominator)
    N, D = (
        quasi_polynomial((t * unit, p * unit ** np.arange(len(p)) / size) for t, p in part)
        for part in (numerator, denominator)
    )
    return ClosedLoop(N, D, delay * unit, len(den) - 1, unit, dt)


def _in_tangent(num: dict[int, float], den: dict[int, float], least: int, order: int, dt: float) -> ClosedLoop:
    above, below = (_tangent({at - least: c for at, c in part.items()}, order) for part in (num, den))
    return _on_axis([(0.0, above)] if above.any() else [], [(0.0, below)], 0.0, dt)


def _powers(terms: Iterable[GivenTerm], dt: float) -> dict[int, float]:
    """Coefficient of each power of z; a delay is a negative power."""
    total: dict[int, float] = {}
    for delay, p in terms:
        for i, c in enumerate(p[::-1]):
            at = i - round(delay / dt)
            total[at] = total.get(at, 0.0) + c
    return {at: c for at, c in total.items() if c}


def _tangent(coefficients: dict[int, float], order: int) -> np.ndarray:
    """Σ c_j (1 + v)^j (1 − v)^(order − j) in powers of v: in integers, as each c_j is one times a power of 2.

    Roots within rounding of z = 1 and z = −1 are set exactly there, so an integrator stays an integrator.
    """
    ratios = {j: c.as_integer_ratio() for j, c in coefficients.items()}
    common = max((below for _, below in ratios.values()), default=1)
    total = [0] * (order + 1)
    for j, (above, below) in ratios.items():
        whole = above * (common // below)
        for a in range(j + 1):
            for b in range(order - j + 1):
                total[a + b] += whole * comb(j, a) * comb(order - j, b) * (-1) ** b
    found = np.array([value / common for value in total])
    nought = 4.0 * _EPS * sum(map(abs, coefficients.values()))
    for ends in (found, found[::-1]):
        power = 0
        while power < order and abs(ends[power]) <= nought * comb(order, power):
            ends[power] = 0.0
            power += 1
    return found
