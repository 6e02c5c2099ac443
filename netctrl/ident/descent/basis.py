"""Regressors of an output-error fit as combinations of few signals, the same for all outputs.

ŷ_k = C_k x + D_k u + c_k, x₊ = A x + B u, is linear in x_0, B, D and c: B_ij has the regressor
Σ_s C_k A^s e_i u_j(t−1−s), another for each output. But all sequences C_k A^s e_i obey one recursion, A's
characteristic polynomial. With any pair (F, b) of the same polynomial they are w'F^s b, so that the n filters
g_j(t) = Σ_s F^s b u_j(t−1−s) of each input give the regressors of all p outputs, and the free response is that after an
impulse at t = −1. The moments of n (1 + m) signals of T samples replace those of n (1 + m) + p (m + 1) columns of T p
rows.

(F, b) is a cascade of all-pass sections with F F' + b b' = I: white inputs give orthonormal filters, so that hardly a
digit is lost where the poles lie close together. Then w = X'C_k' with X = Σ_s A^s e_i (F^s b)'.

Source: Heuberger, Van den Hof and Wahlberg 2005, chapter 2 (orthonormal bases of given poles); Gray and Markel 1973
(the sections, as rotations).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from netctrl.ident.descent.kernels import filtered, simulate
from netctrl.ident.subspace.lq_reduction import Segment, triangular

_BLOCK = 4096  # samples at a time
_CALM = 1.0 - 1e-4


class Basis(NamedTuple):
    """Filters with the poles of A."""

    A: np.ndarray
    F: np.ndarray
    b: np.ndarray
    X: np.ndarray
    """(n, n, n) Σ_s A^s e_i (F^s b)', by i."""

    @classmethod
    def of(cls, A: np.ndarray) -> Basis:
        """For A, shape (n, n)."""
        n, at, through = len(A), 0, 1.0
        poles = np.linalg.eigvals(A)
        # X would lose digits near |pole| = 1. θA and θF have what it takes with the same w, as θ^s is on both sides.
        damping = _CALM / max(float(np.abs(poles).max(initial=0.0)), _CALM)
        damped = damping * A
        F, b, past = np.zeros((n, n)), np.zeros(n), np.zeros(n)
        moved = np.empty((n, n, n))  # X by its last index: moved[l] = F_l (X moved by A) + b_l I
        for pole in poles[poles.imag >= 0.0]:
            f, g, h, d = _section(damping * pole)
            here = slice(at, at + len(f))
            F[here, :at] = np.outer(g, past[:at])
            F[here, here] = f
            b[here] = g * through
            past[:at] *= d
            past[here], through = h, d * through
            # X_l − Σ_q f_lq A X_q = A Σ_before F_lq X_q + b_l I
            known = damped @ np.tensordot(F[here, :at], moved[:at], 1) + b[here, None, None] * np.eye(n)
            solved = np.linalg.solve(np.eye(n * len(f)) - np.kron(f, damped), known.reshape(-1, n))
            moved[here] = solved.reshape(len(f), n, n)
            at += len(f)
        return cls(A, F / damping, b, moved.transpose(2, 1, 0))

    def triangles(
        self, B: np.ndarray | None, initial: np.ndarray | None, segment: Segment, direct: int
    ) -> list[tuple[list[int], np.ndarray]]:
        """Triangular factors of the signals, the outputs last, each with the outputs that have no other samples
        missing."""
        y = segment[1]
        known = np.isfinite(y)
        groups: dict[bytes, list[int]] = {}
        for k, column in enumerate(known.T):
            groups.setdefault(column.tobytes(), []).append(k)
        factors: list[np.ndarray | None] = [None] * len(groups)
        for first, signals in self.signals(B, initial, segment[0], direct):
            part = slice(first, first + len(signals))
            for number, own in enumerate(groups.values()):
                there = known[part, own[0]]
                rows = np.hstack([signals, y[part, own]])
                rows = rows if there.all() else rows[there]
                before = factors[number]
                factors[number] = triangular(rows if before is None else np.vstack([before, rows]))
        return [(own, R) for own, R in zip(groups.values(), factors, strict=True) if R is not None]

    def signals(
        self, B: np.ndarray | None, initial: np.ndarray | None, u: np.ndarray, direct: int
    ) -> Iterator[tuple[int, np.ndarray]]:
        """First sample and signals, (T, n (1 + s) + direct + 1), of one block after the other.

        The filters of an impulse, of the inputs and, with B, of the states; the inputs with a direct term; 1.
        """
        n = len(self.A)
        s = u.shape[1] + (0 if B is None else n)
        state = np.zeros((n, 1 + s))
        state[:, 0] = self.b
        x = np.zeros(n) if initial is None else initial
        for first in range(0, len(u), _BLOCK):
            driven = u[first : first + _BLOCK]
            if B is not None:
                states = simulate(self.A, B, np.eye(n), np.zeros(B.shape), x, driven)
                x = self.A @ states[-1] + B @ driven[-1]
                driven = np.hstack([driven, states])
            rows = np.ones((len(driven), n * (1 + s) + direct + 1))
            filtered(self.F, self.b, state, driven, rows)
            rows[:, n * (1 + s) : -1] = driven[:, :direct]
            yield first, rows

    def maps(
        self,
        C: np.ndarray,
        B: np.ndarray | None,
        initial: np.ndarray | None,
        m: int,
        direct: int,
        ways: np.ndarray | None,
    ) -> np.ndarray:
        """(p, signals, parameters) regressors of each output from the signals: x_0, then A and C along `ways` (with B
        and x_0), B, D and c."""
        p, n = C.shape
        W = np.einsum("ka,ial->kil", C, self.X)
        s = m + (0 if B is None else n)
        kept = 0 if ways is None else ways.shape[1]
        found = np.zeros((p, n * (1 + s) + direct + 1, n + kept + n * m + p * direct + p))
        by = found[:, : n * (1 + s)].reshape(p, n, 1 + s, -1)  # a view: filter, channel, parameter
        by[:, :, 0, :n] = W.transpose(0, 2, 1)
        at = n + kept
        for j in range(m):
            by[:, :, 1 + j, at + j : at + n * m : m] = W.transpose(0, 2, 1)
        if ways is not None and B is not None and initial is not None:
            of_A = ways[: n * n].reshape(n, n, kept)  # A[i, q] has the filters of state q
            by[:, :, 1 + m :, n:at] = np.einsum("kil,iqw->klqw", W, of_A)
            of_C = ways[n * n :].reshape(p, n, kept)  # C[k, q] has x_q, which is the inputs' and the impulse's
            states = np.einsum("ij,iql->jql", np.column_stack([initial, B]), self.X)
            by[:, :, : 1 + m, n:at] += np.einsum("jql,kqw->kljw", states, of_C)
        at += n * m
        for k in range(p):
            found[k, n * (1 + s) : -1, at + k * direct : at + (k + 1) * direct] = np.eye(direct)
            found[k, -1, at + p * direct + k] = 1.0
        return found


def _section(pole: complex) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """All-pass section of a real pole or of a pair: x₊ = f x + g v, out = h x + d v with an orthogonal (f g; h d)."""
    if pole.imag == 0.0:
        a = float(pole.real)
        s = np.sqrt((1.0 - a) * (1.0 + a))
        return np.array([[a]]), np.array([s]), np.array([s]), -a
    square, real = abs(pole) ** 2, pole.real
    inner = 2.0 * real / (1.0 + square)
    # 1 − inner² without cancellation near ±1
    away = np.sqrt(((1.0 - real) ** 2 + pole.imag**2) * ((1.0 + real) ** 2 + pole.imag**2)) / (1.0 + square)
    outer, rest = -square, np.sqrt((1.0 - square) * (1.0 + square))
    f = np.array([[-inner * outer, away], [away * outer, inner]])
    return f, np.array([-inner * rest, away * rest]), np.array([rest, 0.0]), -outer
