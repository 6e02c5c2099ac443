"""A queue's response at many points, compiled: the terms of all aliases less what they tend to, and the sums of that.

The formulas of senders are those of `netctrl.plants.queues.window_response`, compiled from the source that also bounds
them over cells. With s_m = i (theta + 2 pi m)/d a phase e^(−s_m delay) is the one before times e^(−2 pi i delay/d).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from math import pi
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.jit import INLINED, INSIDE, njit
from netctrl.plants.aliases import SERIES, SMALL_ANGLE, all_aliases, weights_of
from netctrl.plants.queues.clocked_response import ClockedMode, clocked_missing, clocked_response
from netctrl.plants.queues.cubic_response import CubicMode, cubic_response
from netctrl.plants.queues.high_frequencies import Equilibrium, leading_of
from netctrl.plants.queues.queue_laws import Averaged
from netctrl.plants.queues.window_response import aimd_response, scalable_response

_FREE: dict[str, Any] = {"fastmath": {"reassoc", "contract", "arcp", "nsz"}}
"""Sums in any order and divisions by reciprocals, a third faster; inf and nan stay what they are."""
_clocked, _missing, _cubic, _aimd, _scalable, _all, _weights = (
    njit(each, **INLINED, **_FREE)
    for each in (
        clocked_response,
        clocked_missing,
        cubic_response,
        aimd_response,
        scalable_response,
        all_aliases,
        weights_of,
    )
)
_POWERS = np.stack([SERIES[power] for power in (2, 3, 4)])
_AIMD, _SCALABLE, _CURVE, _CLOCKED = range(4)
_KIND, _AVERAGING, _SPREAD, _NOTICE, _QUEUED = range(5)
"""Columns of a class."""
_TRIP, _DAMPING, _MOVES, _SHARE, _CLOCK, _CUT, _LATE, _MARK, _AROUND, _MODE = range(10)
"""Columns of a class at an equilibrium: R [s], a/w, share times the power of x, share; delays of phases: the sender's
round trip, its cut, its notice, from a mark to the law's reading, and R where several share the queue, else 0 [s]; then
its mode."""
_PHASES = 5
"""From _CLOCK on."""
_WIDTH = _MODE + 11
_SHARED, _MOST_THREADS = 4_000, 8
"""Angles from which on threads share them, some 3 ms of one, and threads at most."""


class _Clocking(NamedTuple):
    """What `clocked_response` takes of a law."""

    spread: float
    notice: float


class Placed(NamedTuple):
    """The response at equilibria (k,) that are known."""

    senders: np.ndarray
    """Of each class, (K, 5)."""
    classes: np.ndarray
    """Of each class at each equilibrium, (k, K, _WIDTH)."""
    of: np.ndarray
    """Class of each of J terms to which aliases tend, and last −1 of packets that are dropped, (J + 1,)."""
    leads: np.ndarray
    """Delay [s] and factors of 1/s², 1/s³ and 1/s⁴, (k, J + 1, 4)."""
    factor: np.ndarray
    """Of the sum, (k,); 0 where there is no response."""
    law: tuple[float, float, float, float]
    """Interval, integral and proportional of a law that acts at intervals, and 0; or the time that an angle of 1 rad
    stands for, 0, 0, and the corner of the average [s, 1/s, 1/s, rad/s]."""
    flags: tuple[bool, bool]
    """Whether acknowledgements clock all senders, and at several round-trip times."""
    most: tuple[int, int]
    """Aliases on each side, and at angles up to SMALL_ANGLE."""

    def at(self, theta: np.ndarray, row: np.ndarray, extra: np.ndarray | float = 0.0) -> np.ndarray:
        """L(e^(i theta)) at angles [rad], numbers of equilibria, and extra delays [s], (n,)."""
        late = np.zeros(theta.shape) + extra
        if len(theta) < _SHARED:
            return _aliased(theta, row, late, *self)
        ends = np.linspace(0, len(theta), 1 + min(_MOST_THREADS, os.cpu_count() or 1)).astype(int)
        with ThreadPoolExecutor(len(ends) - 1) as threads:
            parts = threads.map(lambda a, b: _aliased(theta[a:b], row[a:b], late[a:b], *self), ends[:-1], ends[1:])
            return np.concatenate(list(parts))


def placed(response: Any, x: np.ndarray, flows: np.ndarray, rtt: np.ndarray, most: tuple[int, int]) -> Placed:
    """The response at points with known outputs.

    Parameters
    ----------
    response : QueueResponse of `netctrl.plants.queues.queue_response`
    x, flows, rtt : ndarray, shape (k,)
        Output, N and tau [s].
    most : (int, int)
        Aliases on each side, and at angles up to SMALL_ANGLE.
    """
    point, law = response.point(x, flows, rtt), response.law
    delays, kinds = response.delays(point, 0.0), response.classes
    classes = np.zeros((len(x), len(kinds), _WIDTH))
    for i, (k, lags) in enumerate(zip(kinds, point.lags(kinds), strict=True)):
        found, sender = classes[:, i], k.sender
        share = point.shares[i]
        for column, value in (
            (_TRIP, point.trips[i]),
            (_DAMPING, point.dampings[i]),
            (_MOVES, share * k.power),
            (_SHARE, share),
            (_CLOCK, lags[0]),
            (_CUT, lags[1] if 0.0 < sender.spread < 1.0 else 0.0),
            (_LATE, lags[-1] if sender.notice else 0.0),
            (_MARK, delays[i]),
            (_AROUND, point.trips[i] if response.several_clocks else 0.0),
        ):
            found[:, column] = value
        if isinstance(mode := point.modes[i], ClockedMode):
            found[:, _MODE : _MODE + 4] = np.stack(np.broadcast_arrays(*mode, x)[:4], axis=1)
        elif isinstance(mode, CubicMode):
            found[:, _MODE:] = np.stack([mode.losses, mode.share, *mode.residues], axis=1)
    factor = 1.0 / x
    if isinstance(law, Averaged):  # no aliases
        of, leads = np.array([-1]), np.zeros((len(x), 1, 4))
        factor, numbers = factor * point.rise, (response.epoch, 0.0, 0.0, law.corner)
    else:
        of, leads = _leads(response, point, delays, len(x))
        factor, numbers = factor * law.steeper(x), (response.epoch, law.integral, law.proportional, 0.0)
    if response.drops:  # under either law the packet that is missing is read late
        leads[:, -1, 0] = delays[-1]
    senders = np.array([_numbers(k) for k in kinds])
    flags = response.clocked, response.several_clocks
    return Placed(senders, classes, of, leads, factor, numbers, flags, most)


def _numbers(k: Any) -> tuple[float, ...]:
    sender = k.sender
    kind = _CLOCKED if sender.spread else _CURVE if sender.curve else _SCALABLE if sender.scalable else _AIMD
    return kind, sender.averaging, sender.spread, sender.notice, k.queued


def _leads(response: Any, point: Equilibrium, delays: list, size: int) -> tuple[np.ndarray, np.ndarray]:
    lead = leading_of(response, point)
    found = np.zeros((size, len(lead.classes) + 1, 4))
    for j, i in enumerate(lead.classes):
        found[:, j] = np.stack(np.broadcast_arrays(delays[i] + lead.lags[j], 0.0, lead.thirds[j], lead.fourths[j]), -1)
    if lead.second is not None:
        found[:, -1, 1] = lead.second
    return np.array([*lead.classes, -1]), found


@njit(**INLINED, **_FREE)
def _turn(theta: Any, delay: float) -> complex:
    """e^(−i theta delay)."""
    angle = theta.real * delay
    turned = complex(np.cos(angle), -np.sin(angle))
    return turned if theta.imag == 0.0 else np.exp(theta.imag * delay) * turned


@njit(**INLINED, **_FREE)
def _counted(theta: Any, integral: float, proportional: float) -> complex:
    """proportional (1 − e^(−i theta)) + integral, exact at small angles."""
    half, grown = np.sin(0.5 * theta.real), np.expm1(theta.imag)
    real = grown * np.cos(theta.real) - 2.0 * half * half
    return integral - proportional * complex(real, -(grown + 1.0) * np.sin(theta.real))


@njit(**INLINED, **_FREE)
def _series(found: np.ndarray, share: float, factors: tuple[float, float, float]) -> None:
    """Coefficients of (−i theta)^j of a sum over all aliases but the main one."""
    for j in range(found.size):
        total, power = 0.0, 1.0
        for i in range(_POWERS.shape[2]):
            row = factors[0] * _POWERS[0, j, i] + factors[1] * _POWERS[1, j, i] + factors[2] * _POWERS[2, j, i]
            total, power = total + power * row, power * share
        found[j] = total


@njit(**INLINED, **_FREE)
def _small(theta: Any, series: np.ndarray) -> complex:
    total, by = complex(0.0, 0.0), complex(0.0, -1.0) * theta
    for j in range(series.size - 1, -1, -1):
        total = total * by + series[j]
    return total


@njit(**INLINED, **_FREE)
def _window(sender: np.ndarray, at: np.ndarray, s: complex, now: np.ndarray, dropped: complex) -> tuple:
    """What a class's windows do to the delay, over its share, and V."""
    sigma, kind, none = s * at[_TRIP], int(sender[_KIND]), complex(0.0, 0.0)
    if kind == _CLOCKED:
        mode = ClockedMode(at[_MODE], at[_MODE + 1], at[_MODE + 2], at[_MODE + 3])
        turned = now[0], now[1], now[2]
        found = _clocked(_Clocking(sender[_SPREAD], sender[_NOTICE]), sigma, turned, at[_DAMPING], mode, None) * now[3]
        if sender[_NOTICE] > 0.0:
            found += _missing(sigma, turned, mode, dropped, now[3], None)
        return found, none
    if kind == _CURVE:
        r = at[_MODE + 2 :]
        residues = r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8]
        Q, V = _cubic(sigma, now[0], CubicMode(at[_MODE], residues, at[_MODE + 1]))
        return Q * now[3], V
    if kind == _SCALABLE:
        return _scalable(sigma, at[_DAMPING], sender[_AVERAGING]) * now[3], none
    Q, V = _aimd(sigma, now[0], at[_DAMPING])
    return Q * now[3], V


@njit(**INSIDE, **_FREE)
def _terms(
    place: tuple[Any, int, float],
    senders: np.ndarray,
    classes: np.ndarray,
    leads: np.ndarray,
    law: tuple[float, float, float, float],
    flags: tuple[bool, bool],
    aliases: tuple[int, int],
    scratch: tuple,
    again: bool,
) -> complex:
    """Terms of the aliases on each side, less what they tend to; of an averaging law its whole loop.

    With the equilibrium `again` that of the call before, turns from alias to alias are known.
    """
    (theta, r, extra), (epoch, _, _, corner), (clocked, several) = place, law, flags
    main, turn, now, told, later, late, delays = scratch
    small = abs(theta) <= SMALL_ANGLE
    most = aliases[1] if small else aliases[0]
    for k in range(len(senders)):
        for f in range(_PHASES):
            delay = (classes[r, k, _CLOCK + f] + (extra if f == 3 else 0.0)) / epoch
            main[k, f] = _turn(theta, delay) if delay else complex(1.0, 0.0)
            if not again:
                turn[k, f] = _turn(2.0 * pi, delay) if delay else complex(1.0, 0.0)
    for j in range(len(delays)):
        delays[j] = (leads[r, j, 0] + extra) / epoch
        told[j] = _turn(theta, delays[j])
        if not again:
            later[j] = _turn(2.0 * pi, delays[j])
    total = complex(0.0, 0.0)
    for n in range(2 * most + 1):  # outwards from the main alias, whose phases are exact, to one side and the other
        m = n if n <= most else most - n
        for k in range(len(senders)):
            for f in range(_PHASES):
                if m in (0, -1):
                    now[k, f] = main[k, f]
                if m:
                    now[k, f] *= turn[k, f] if m > 0 else turn[k, f].conjugate()
        for j in range(len(delays)):
            if m in (0, -1):
                late[j] = told[j]
            if m:
                late[j] *= later[j] if m > 0 else later[j].conjugate()
        omega = (theta + 2.0 * pi * m) / epoch
        s, moved = 1j * omega, complex(0.0, 0.0)
        den = moved if clocked else s
        for k in range(len(senders)):
            own, V = _window(senders[k], classes[r, k], s, now[k], late[len(late) - 1])
            if several:  # `several_trips.shared_queue`
                left = 1.0 / (1.0 - now[k, 4])
                moved += own * (classes[r, k, _MOVES] * classes[r, k, _TRIP]) * left
                den += classes[r, k, _SHARE] * left
            else:
                moved += own * classes[r, k, _MOVES]
                if senders[k, _QUEUED] > 0.0:
                    den += (V + 1.0) * (classes[r, k, _SHARE] / classes[r, k, _TRIP])
        if corner != 0.0:
            return moved / (den * (s / corner + 1.0))
        total += moved / (den * s)
        if m or not small:
            inverse = 1.0 / omega  # 1/s = −i/omega
            square = inverse * inverse
            for j in range(len(late)):
                tends = (1j * leads[r, j, 2] + leads[r, j, 3] * inverse) * inverse - leads[r, j, 1]
                total -= tends * square * late[j]
    return total


@njit(**INSIDE, **_FREE)
def _sums(
    place: tuple[Any, int, float],
    leads: np.ndarray,
    epoch: float,
    delays: np.ndarray,
    told: np.ndarray,
    series: np.ndarray,
    again: bool,
) -> complex:
    """Sum over all aliases of what they tend to, without the main one at small angles; phases of delays are
    `told`, and `again` the series are known."""
    theta, r, _ = place
    total, small = complex(0.0, 0.0), abs(theta) <= SMALL_ANGLE
    square = epoch * epoch
    for j in range(len(delays)):
        second, third = leads[r, j, 1] * square, leads[r, j, 2] * square * epoch
        fourth, whole = leads[r, j, 3] * square * square, np.floor(delays[j]) + 1.0
        if small:
            if not again:
                _series(series[j], whole - delays[j], (second, third, fourth))
            total += _small(theta, series[j]) * told[j]
        else:
            total += _all(theta, _weights(whole - delays[j], third, fourth, second)) * _turn(theta, whole)
    return total


@njit(cache=True, error_model="numpy", nogil=True)
def _aliased(
    theta: np.ndarray,
    row: np.ndarray,
    extra: np.ndarray,
    senders: np.ndarray,
    classes: np.ndarray,
    of: np.ndarray,
    leads: np.ndarray,
    factor: np.ndarray,
    law: tuple[float, float, float, float],
    flags: tuple[bool, bool],
    aliases: tuple[int, int],
) -> np.ndarray:
    """As `Placed.at`."""
    found, known = np.empty(len(theta), dtype=np.complex128), False
    phases = np.empty((3, len(senders), _PHASES), dtype=np.complex128)
    tends = np.empty((3, len(of)), dtype=np.complex128)
    delays, series = np.empty(len(of)), np.empty((len(of), _POWERS.shape[1]))
    scratch = phases[0], phases[1], phases[2], tends[0], tends[1], tends[2], delays
    for i in range(len(theta)):
        r = row[i]
        if factor[r] == 0.0:
            found[i] = 0.0
            continue
        place = theta[i], r, extra[i]
        again = i > 0 and r == row[i - 1] and extra[i] == extra[i - 1]
        total = _terms(place, senders, classes, leads, law, flags, aliases, scratch, again)
        if law[3] == 0.0:
            total += _sums(place, leads, law[0], delays, tends[0], series, again and known)
            known = abs(theta[i]) <= SMALL_ANGLE
            total *= _counted(theta[i], law[1], law[2]) / law[0]
        found[i] = total * factor[r]
    return found
