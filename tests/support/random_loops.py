"""Random open loops of every kind that `netctrl.margins` takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netctrl.model.open_loop import OpenLoop


def polynomial(random: np.random.Generator, degree: int, right: float) -> np.ndarray:
    """Real roots, pairs and repeated roots, each in the right half plane with that probability; coefficients at 1."""
    p = np.ones(1)
    while len(p) <= degree:
        size = 10.0 ** random.uniform(-1.0, 1.0)
        sign = 1.0 if random.random() < right else -1.0
        if degree - len(p) >= 1 and random.random() < 0.5:
            damping = random.choice([0.02, 0.3, 0.7, 1.0])
            factor = np.array([1.0, -2.0 * sign * damping * size, size * size])
        else:
            factor = np.array([1.0, -sign * size])
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            if len(p) + len(factor) - 2 <= degree:
                p = np.polymul(p, factor)
    return p


def _normal(p: np.ndarray) -> np.ndarray:
    return p / np.abs(np.polyval(p, 1j))


def gain(random: np.random.Generator, decades: tuple[float, float] = (-1.5, 1.2)) -> float:
    sign = -1.0 if random.random() < 0.15 else 1.0
    return sign * 10.0 ** random.uniform(*decades)


def _delay(random: np.random.Generator) -> float:
    return float(10.0 ** random.uniform(-1.5, 0.5))


def undelayed(random: np.random.Generator) -> OpenLoop:
    return retarded(random, delay=0.0)


def retarded(random: np.random.Generator, delay: float | None = None) -> OpenLoop:
    """Up to three integrators, zeros at the origin, unstable poles, negative gain; fewer zeros than poles."""
    integrators = int(random.choice([0, 0, 0, 1, 1, 2, 3]))
    order = int(random.integers(1, 5))
    den = np.concatenate([_normal(polynomial(random, order, 0.12)), np.zeros(integrators)])
    num = _normal(polynomial(random, int(random.integers(0, len(den) - 1)), 0.2))
    if not integrators and len(num) < len(den) - 1 and random.random() < 0.1:
        num = np.append(num, 0.0)
    delay = _delay(random) if delay is None else delay
    return OpenLoop(numerator=[(delay, gain(random) * num)], denominator=[(0.0, den)])


def neutral(random: np.random.Generator) -> OpenLoop:
    """As many zeros as poles, with delay: pure delay (order 0) among them."""
    order = int(random.integers(0, 4))
    den = polynomial(random, order, 0.1)
    num = polynomial(random, order, 0.2)
    return OpenLoop(numerator=[(_delay(random), gain(random, (-1.5, 0.3)) * num)], denominator=[(0.0, den)])


def biproper(random: np.random.Generator) -> OpenLoop:
    """As many zeros as poles, at least one, without delay."""
    loop = neutral(random)
    while len(loop.denominator[0][1]) == 1:
        loop = neutral(random)
    return OpenLoop(numerator=[(0.0, loop.numerator[0][1])], denominator=loop.denominator)


def in_feedback(random: np.random.Generator) -> OpenLoop:
    """Delays in the denominator, as TCP's w0 tau s + 1 + e^(−tau s), of lower power than the undelayed term."""
    order = int(random.integers(1, 4))
    den = [(0.0, _normal(polynomial(random, order, 0.05)))]
    for _ in range(int(random.integers(1, 3))):
        p = _normal(polynomial(random, int(random.integers(0, order)), 0.2))
        den.append((_delay(random), float(random.uniform(-0.9, 0.9)) * p))
    if random.random() < 0.4:
        den = [(t, np.append(p, 0.0)) for t, p in den]
        order += 1
    num = _normal(polynomial(random, int(random.integers(0, order)), 0.2))
    delay = 0.0 if random.random() < 0.2 else _delay(random)
    return OpenLoop(numerator=[(delay, gain(random) * num)], denominator=den)


def neutral_in_feedback(random: np.random.Generator) -> OpenLoop:
    """The highest power delayed in the denominator."""
    order = int(random.integers(1, 4))
    p = polynomial(random, order, 0.05)
    late = float(random.uniform(-0.8, 0.8)) * polynomial(random, order, 0.1)
    num = _normal(polynomial(random, int(random.integers(0, order)), 0.2))
    k = gain(random, (-1.5, 0.8)) * abs(np.polyval(p, 1j))
    return OpenLoop(numerator=[(_delay(random), k * num)], denominator=[(0.0, p), (_delay(random), late)])


def tcp(random: np.random.Generator) -> OpenLoop:
    tau, w0 = _delay(random), float(10.0 ** random.uniform(0.1, 2.0))
    below = [(0.0, np.array([w0 * tau, 1.0])), (tau, np.array([1.0]))]
    if random.random() < 0.7:
        below = [(t, np.append(p, 0.0)) for t, p in below]
    return OpenLoop(numerator=[(tau, [gain(random, (-2.0, 1.5))])], denominator=below)


def discrete(random: np.random.Generator) -> OpenLoop:
    """Poles inside and outside the circle, at z = 1 and repeated, and whole samples of delay."""
    order = int(random.integers(1, 5))
    den, num = np.ones(1), np.ones(1)
    while len(den) <= order:
        size = float(random.choice([1.0, random.uniform(0.1, 0.99), random.uniform(1.01, 1.5)], p=[0.15, 0.75, 0.1]))
        if order - len(den) >= 1 and random.random() < 0.5 and size != 1.0:
            factor = [1.0, -2.0 * size * np.cos(random.uniform(0.1, 3.0)), size * size]
        else:
            factor = [1.0, -size if random.random() < 0.8 else size]
        den = np.polymul(den, factor)
    for _ in range(int(random.integers(0, len(den)))):
        num = np.polymul(num, [1.0, float(random.uniform(-1.5, 1.5))])
    k = gain(random) * np.abs(np.polyval(den, 1j)) / (np.abs(np.polyval(num, 1j)) + 0.1)
    samples = int(random.choice([0, 0, 1, 2, 5, 12, 40]))
    return OpenLoop(numerator=[(samples * 0.1, k * num)], denominator=[(0.0, den)], dt=0.1)


KINDS: dict[str, Callable[[np.random.Generator], OpenLoop]] = {
    "undelayed": undelayed,
    "retarded": retarded,
    "biproper": biproper,
    "neutral": neutral,
    "in feedback": in_feedback,
    "neutral in feedback": neutral_in_feedback,
    "tcp": tcp,
    "discrete": discrete,
}
