"""The Riccati equation: closed forms, published data, SciPy, laws; one problem set for all methods."""

from __future__ import annotations

import pickle
from functools import cache
from math import sqrt
from typing import NamedTuple

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue, RiccatiStatus
from netctrl.synthesis.riccati.dare import DareSolution, solve_dare

EPS = float(np.finfo(float).eps)
STABILISING, MARGINAL, NOT_STABILISING, NO_SOLUTION = RiccatiStatus
METHODS = ("auto", "doubling", "scipy")

TOLERANCE = {
    "closed form": 1e-13,
    "printed": 1e-9,  # the note prints eight to ten digits
    "symmetry": 0.0,
    "semidefinite": 1e-13,
    "units": 1e-11,  # each entry, beside the diagonal's
    "scale": 1e-12,
    "cost": 1e-7,
    "same": 1e-9,
    "residual": 10.0 * EPS,  # below it a ratio of residuals is chance
}


class Problem(NamedTuple):
    """An equation, what `auto` says of it, and where known its solution."""

    A: np.ndarray
    B: np.ndarray
    Q: np.ndarray
    R: np.ndarray
    S: np.ndarray | None
    status: RiccatiStatus
    X: np.ndarray | None
    agreement: float
    """Of the methods' X with one another: rounding times the equation's condition number."""


def problem(A, B, Q, R, S=None, status=STABILISING, X=None, agreement=TOLERANCE["same"]) -> Problem:
    matrices = [None if M is None else np.atleast_2d(np.array(M, dtype=float)) for M in (A, B, Q, R, S, X)]
    return Problem(*matrices[:5], status, matrices[5], agreement)


def rotation(n: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]


def rotated(A, B, Q, R, seed: int = 2, **rest) -> Problem:
    """The problem in other, orthogonal coordinates, in which no zero is exact."""
    U = rotation(len(A), seed)
    Q = U @ Q @ U.T
    return problem(U @ A @ U.T, U @ B, 0.5 * (Q + Q.T), R, **rest)


def chain(links: int, delay: int, weight: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Links with delay lines in a row, each fed by shares of those before it: weights on the backlogs, R = I."""
    random = np.random.default_rng(0)
    history = delay + 1
    n = links * (history + 1)
    A, B, Q = np.zeros((n, n)), np.zeros((n, links)), np.zeros((n, n))
    for link in range(links):
        first, backlog = link * history, links * history + link
        B[first, link], B[backlog, link] = 1.0, -1.0
        A[first + 1 : first + history, first : first + history - 1] = np.eye(history - 1)
        A[backlog, backlog], Q[backlog, backlog] = 1.0, weight
        for before in range(max(0, link - 3), link):
            A[backlog, before * history + history - 1] = random.uniform(0.1, 0.5)
    return A, B, Q, np.eye(links)


def in_units(A, B, Q, R, decades: float, seed: int = 1) -> tuple[np.ndarray, ...]:
    """The same with each state in a unit of its own."""
    D = 10.0 ** np.random.default_rng(seed).uniform(-decades, decades, len(A))
    return D[:, None] * A / D, D[:, None] * B, Q / D[:, None] / D, R


def random_problem(n: int, m: int, seed: int, cross: bool = False) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(seed)
    A = 1.3 * random.normal(size=(n, n)) / np.sqrt(n)
    B, L = random.normal(size=(n, m)), random.normal(size=(n + m, n + m))
    M = 0.3 * np.eye(n + m) + (L @ L.T if cross else scipy.linalg.block_diag(L[:n, :n] @ L[:n, :n].T, np.eye(m)))
    return A, B, M[:n, :n], M[n:, n:], M[:n, n:]


def integrator(weight: float) -> tuple[float, float]:
    """X and K of x₊ = x − u with Q = weight, R = 1."""
    X = 0.5 * (weight + sqrt(weight * weight + 4.0 * weight))
    return X, X / (1.0 + X)


def darex() -> dict[str, Problem]:
    """P. Benner, A. J. Laub, V. Mehrmann, "A collection of benchmark examples for the numerical solution of algebraic
    Riccati equations II: discrete-time case", TU Chemnitz-Zwickau, SPC 95_23, 1995; default parameters, numbers as in
    SciPy's own tests of `solve_discrete_are`. X where the report has it in closed form."""
    golden = 0.5 * (1.0 + sqrt(5.0))
    V = np.eye(3) - 2.0 / 3.0
    A9 = [
        [0.954070, 0.0196430, 0.0035970, 0.0006730, 0.0001900],
        [0.408490, 0.4131700, 0.1608400, 0.0446790, 0.0119710],
        [0.122170, 0.2632600, 0.3614900, 0.1593000, 0.1238300],
        [0.041118, 0.1285800, 0.2720900, 0.2144200, 0.4097600],
        [0.001305, 0.0058080, 0.0187500, 0.0361620, 0.9428000],
    ]
    B9 = [[0.0434, -0.0122], [2.6606, -1.0453], [3.7530, -5.5100], [3.6076, -6.6000], [0.4617, -0.9148]]
    A11 = [
        [870.1, 135.0, 11.59, 0.5014, -37.22, 0.3484, 0, 4.242, 7.249],
        [76.55, 897.4, 12.72, 0.5504, -40.16, 0.3743, 0, 4.53, 7.499],
        [-127.2, 357.5, 817, 1.455, -102.8, 0.987, 0, 11.85, 18.72],
        [-363.5, 633.9, 74.91, 796.6, -273.5, 2.653, 0, 31.72, 48.82],
        [-960, 1645.9, -128.9, -5.597, 71.42, 7.108, 0, 84.52, 125.9],
        [-664.4, 112.96, -88.89, -3.854, 84.47, 13.6, 0, 144.3, 101.6],
        [-410.2, 693, -54.71, -2.371, 66.49, 12.49, 0.1063, 99.97, 69.67],
        [-179.9, 301.7, -23.93, -1.035, 60.59, 22.16, 0, 213.9, 35.54],
        [-345.1, 580.4, -45.96, -1.989, 105.6, 19.86, 0, 219.1, 215.2],
    ]
    B11 = [
        [4.7600, -0.5701, -83.6800],
        [0.8790, -4.7730, -2.7300],
        [1.4820, -13.1200, 8.8760],
        [3.8920, -35.1300, 24.8000],
        [10.3400, -92.7500, 66.8000],
        [7.2030, -61.5900, 38.3400],
        [4.4540, -36.8300, 20.2900],
        [1.9710, -15.5400, 6.9370],
        [3.7730, -30.2800, 14.6900],
    ]
    Q10 = np.zeros((6, 6))
    Q10[:2, :2], Q10[3:5, 3:5] = [[1, 1], [1, 1]], [[1, -1], [-1, 1]]
    A14 = np.eye(4, k=-1)
    A14[0, 0] = 1.0 - 1e-8
    a, g = 1.0 - 1e-8, 4.0 * 1e-16  # x = 1 + a²x/(1 + gx), its positive root
    half = 0.5 * (1.0 - a * a - g)
    x14 = (sqrt(half * half + g) - half) / g
    return {
        "darex1": problem(
            [[4, 3], [-4.5, -3.5]], [[1], [-1]], [[9, 6], [6, 4]], 1, X=golden * np.array([[9, 6], [6, 4]])
        ),
        "darex2": problem(
            np.diag([0.9512, 0.9048]), [[4.877, 4.877], [-1.1895, 3.569]], np.diag([0.005, 0.02]), np.diag([1 / 3, 3])
        ),
        "darex3": problem([[2, -1], [1, 0]], [[1], [0]], np.diag([0, 1]), 0, X=np.eye(2)),
        "darex4": problem([[0, 1], [0, -1]], [[1, 0], [2, 1]], np.array([[-4, -4], [-4, 7]]) / 11, [[9, 3], [3, 1]]),
        "darex4 with S": problem(
            [[0, 1], [0, -1]], [[1, 0], [2, 1]], np.array([[-4, -4], [-4, 7]]) / 11, [[9, 3], [3, 1]], [[3, 1], [-1, 7]]
        ),
        "darex5": problem([[0, 1], [0, 0]], [[0], [1]], [[1, 2], [2, 4]], 1, X=[[1, 2], [2, 2 + sqrt(5)]]),
        "darex6": problem(
            [[0.998, 0.067, 0, 0], [-0.067, 0.998, 0, 0], [0, 0, 0.998, 0.153], [0, 0, -0.153, 0.998]],
            [[0.0033, 0.02], [0.1, -0.0007], [0.04, 0.0073], [-0.0028, 0.1]],
            [[1.87, 0, 0, -0.244], [0, 0.744, 0.205, 0], [0, 0.205, 0.589, 0], [-0.244, 0, 0, 1.048]],
            np.eye(2),
        ),
        "darex7": problem(
            [
                [0.98475, -0.079903, 0.0009054, -0.0010765],
                [0.041588, 0.99899, -0.035855, 0.012684],
                [-0.54662, 0.044916, -0.32991, 0.19318],
                [2.6624, -0.10045, -0.92455, -0.26325],
            ],
            [[0.0037112, 0.0007361], [-0.087051, 9.3411e-6], [-1.19844, -4.1378e-4], [-3.1927, 9.2535e-4]],
            0.01 * np.eye(4),
            np.eye(2),
        ),
        "darex8": problem(
            [[-0.6, -2.2, -3.6, -5.400018], [1, 0.6, 0.8, 3.399982], [0, 1, 1.8, 3.799982], [0, 0, 0, -0.999982]],
            [[1, -1, -1, -1], [0, 1, -1, -1], [0, 0, 1, -1], [0, 0, 0, 1]],
            [[2, 1, 3, 6], [1, 2, 2, 5], [3, 2, 6, 11], [6, 5, 11, 22]],
            np.eye(4),
        ),
        "darex9": problem(A9, 0.01 * np.array(B9), np.eye(5), np.eye(2)),
        "darex10": problem(
            np.kron(np.eye(2), np.eye(3, k=1)), np.kron(np.eye(2), [[0], [0], [1]]), Q10, np.diag([3, 1])
        ),
        "darex11": problem(
            0.001 * np.array(A11), 0.001 * np.array(B11), np.diag([50, 0, 0, 0, 50, 0, 0, 0, 0]), np.eye(3)
        ),
        "darex12": problem([[0, 1e6], [0, 0]], [[0], [1]], np.eye(2), 1, X=np.diag([1, 1 + 1e12])),
        "darex13": problem(
            V @ np.diag([0, 1, 3]) @ V,
            np.eye(3),
            1e6 * np.eye(3),
            1e6 * np.eye(3),
            X=1e6 * V @ np.diag([1, golden, 0.5 * (9 + sqrt(85))]) @ V,
        ),
        "darex14": problem(
            A14, [[1e-8], [0], [0], [0]], np.diag([0, 0, 0, 1]), 0.25, X=np.diag([x14, 1, 1, 1]), agreement=1e-6
        ),
        "darex15": problem(np.eye(100, k=1), np.eye(100)[:, 99:], np.eye(100), 1, X=np.diag(np.arange(1.0, 101.0))),
    }


def hard() -> dict[str, Problem]:
    """Made for what may go wrong."""
    A, B = np.array([[1, 0.3], [0.2, 0.9]]), np.eye(2)
    U = rotation(2, 1)
    double = scipy.linalg.block_diag([[1, 1], [0, 1]], np.diag([0.5, 0.2]))
    triple = scipy.linalg.block_diag(np.eye(3) + np.eye(3, k=1), 0.5)
    turn = scipy.linalg.block_diag([[np.cos(0.7), np.sin(0.7)], [-np.sin(0.7), np.cos(0.7)]], 0.5 * np.eye(2))
    unseen = np.diag([0.0, 0.0, 1.0, 1.0])
    links, B_links, Q_links, R_links = chain(10, 2, 0.1)
    newest = np.diag(np.isin(np.arange(len(links)), 3 * np.arange(10)).astype(float))
    lost = RiccatiStatus.NO_SOLUTION
    found = {
        # weights
        "R = 0": problem([[1, 0.3], [0, 0.9]], B, np.eye(2), np.zeros((2, 2)), X=np.eye(2)),
        "R = 0, one input": problem([[1.2, 0.3], [0, 0.9]], [[1], [1]], np.diag([1, 0]), 0),
        "R = 0, inputs without effect": problem(A, np.ones((2, 2)), np.eye(2), np.zeros((2, 2)), status=lost),
        "R singular": problem(A, B, np.eye(2), np.diag([1, 0])),
        "R singular, S": problem(A, B, 2 * np.eye(2), np.diag([1, 0]), [[0.1, 0.2], [0, 0.3]]),
        "R nearly singular": problem(A, B, np.eye(2), U @ np.diag([1, 1e-14]) @ U.T),
        "links, R = 0": problem(links, B_links, Q_links + newest, 0 * R_links),
        "Q indefinite": problem([[0.9, 0.2], [0.1, 0.7]], B, np.diag([1, -0.1]), B),
        "Q too negative": problem([[0.5, 0.2], [0.1, 0.3]], B, -0.2 * np.eye(2), B, status=lost),
        "R indefinite": problem([[0.5, 0.2], [0.1, 0.3]], B, np.eye(2), np.diag([1, -5])),
        # modes that the cost doesn't see
        "unseen integrator": problem(np.diag([1, 0.5]), [[1], [1]], np.diag([0, 1]), 1, status=MARGINAL),
        "unseen integrator, rotated": rotated(
            np.diag([1, 0.5, 0.9, 1.2]), np.ones((4, 1)), np.diag([0, 1, 1, 1]), 1, status=MARGINAL
        ),
        "unseen double integrator": problem(double, np.eye(4), unseen, np.eye(4), status=MARGINAL),
        "unseen double integrator, rotated": rotated(double, np.eye(4), unseen, np.eye(4), status=MARGINAL),
        "unseen triple integrator, rotated": rotated(
            triple, np.eye(4), np.diag([0, 0, 0, 1]), np.eye(4), status=MARGINAL
        ),
        "unseen oscillation, rotated": rotated(turn, np.eye(4), unseen, np.eye(4), status=MARGINAL),
        "unseen unstable mode": problem(np.diag([1.5, 0.3]), [[1], [1]], np.diag([0, 1]), 1),
        "unseen unstable modes, rotated": rotated(
            np.diag([1.5, 0.3, 1.2, 0.8]), [[1], [1], [1], [0]], np.diag([0, 1, 0, 1]), 1, agreement=1e-7
        ),
        "lambda = 0": problem(1, -1, 0, 1, status=MARGINAL, X=0),
        "lambda = 0, links": problem(links, B_links, 0 * Q_links, R_links, status=MARGINAL, X=np.zeros(links.shape)),
        "lambda = 0, unstable": problem(1.5, 1, 0, 1, X=1.25),
        # modes that no input moves
        "stuck unstable": problem(np.diag([2, 0.5]), [[0], [1]], np.eye(2), 1, status=lost),
        "stuck unstable, rotated": rotated(
            np.diag([2, 0.5, 0.3, 0.1]), np.eye(4)[:, 1:3], np.eye(4), np.eye(2), status=lost
        ),
        "stuck unstable, unseen": problem(np.diag([2, 0.5]), [[0], [1]], np.diag([0, 1]), 1, status=NOT_STABILISING),
        "stuck integrator": problem(np.diag([1, 0.5]), [[0], [1]], np.eye(2), 1, status=lost),
        "stuck integrator, rotated": rotated(
            np.diag([1, 0.5, 0.3, 0.1]), np.eye(4)[:, 1:3], np.eye(4), np.eye(2), status=lost
        ),
        "stuck integrator, unseen": problem(np.diag([1, 0.5]), [[0], [1]], np.diag([0, 1]), 1, status=MARGINAL),
        # scales and delays
        "weak input": problem(np.diag([1.1, 0.5]), [[1e-9], [1]], np.eye(2), 1, agreement=1e-7),
        "nilpotent": problem(np.eye(20, k=-1), np.eye(20, 1), np.eye(20), 1),
        "A = 0": problem(np.zeros((3, 3)), np.eye(3), np.eye(3), np.eye(3), X=np.eye(3)),
        "links": problem(*chain(25, 2, 0.1)),
        "links in odd units": problem(*in_units(*chain(25, 2, 0.1), decades=5)),
        "links, mu = 1e-10": problem(*chain(10, 2, 1e-10), agreement=1e-5),
        "links, mu = 1e10": problem(*chain(10, 2, 1e10)),
    }
    for weight, status in ((1.0, STABILISING), (1e-5, STABILISING), (1e-10, STABILISING), (1e-20, STABILISING)):
        X, _ = integrator(weight)
        found[f"integrator, mu = {weight:g}"] = problem(1, -1, weight, 1, status=status, X=X, agreement=1e-6)
    found["integrator, mu = 1e-30"] = problem(1, -1, 1e-30, 1, status=MARGINAL)
    for n, m in ((3, 1), (10, 3), (40, 10)):
        found[f"random {n}"] = problem(*random_problem(n, m, n)[:4])
        found[f"random {n}, S"] = problem(*random_problem(n, m, n, cross=True))
        found[f"random {n} in odd units"] = problem(*in_units(*random_problem(n, m, n)[:4], decades=4))
    return found


PROBLEMS = darex() | hard()
# Where one method doesn't find the stabilising X. Doubling starts from X = 0 and stays at the least X ⪰ 0, which leaves
# alone what the cost doesn't see; it takes R + B'QB to be invertible.
LESS = {
    ("darex3", "doubling"),
    ("unseen unstable mode", "doubling"),
    ("unseen unstable modes, rotated", "doubling"),
    ("lambda = 0, unstable", "doubling"),
}
# Rounding decides whether doubling meets what the cost doesn't see: either answer is right, of which one is the best X.
BY_CHANCE = {("unseen unstable modes, rotated", "doubling")}
# An X that is known to eps^(1/6) may solve the equation to half of the digits, or not.
UNSETTLED = {"unseen triple integrator, rotated": {MARGINAL, NO_SOLUTION}}


@cache
def solved(name: str, method: str = "auto") -> DareSolution:
    return solve_dare(*PROBLEMS[name][:5], method=method)


def terms(problem: Problem, X: np.ndarray) -> tuple[np.ndarray, ...]:
    """X, A'XA, L'(R + B'XB)⁻¹L and Q."""
    A, B, Q, R, S = problem[:5]
    L = B.T @ X @ A + (0.0 if S is None else S.T)
    return X, A.T @ X @ A, L.T @ scipy.linalg.solve(R + B.T @ X @ B, L, assume_a="sym"), Q


def residual(problem: Problem, X: np.ndarray) -> float:
    found, carried, regained, Q = terms(problem, X)
    size = sum(np.linalg.norm(term) for term in (found, carried, regained, Q))
    return float(np.linalg.norm(carried - regained + Q - found) / size) if size > 0.0 else 0.0


def by_scipy(problem: Problem) -> np.ndarray | None:
    A, B, Q, R, S = problem[:5]
    try:
        return scipy.linalg.solve_discrete_are(A, B, Q, R, s=S)
    except ValueError:
        return None


def radius(problem: Problem, K: np.ndarray) -> float:
    return float(np.abs(np.linalg.eigvals(problem.A + problem.B @ K)).max())


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_status_is_right(name) -> None:
    assert solved(name).status in UNSETTLED.get(name, {PROBLEMS[name].status})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_method_claims_too_much(name, method) -> None:
    case = PROBLEMS[name]
    solution = solved(name, method)
    stabilises = case.status is STABILISING and (name, method) not in LESS
    if (name, method) in BY_CHANCE:
        stabilises = solution.status is STABILISING
    assert (solution.status is STABILISING) == stabilises
    assert method in (solution.method, "auto")
    assert solution.method == "doubling" or solution.iterations == 0
    assert (solution.remedy == "") == stabilises
    nothing = solution.status is NO_SOLUTION
    assert np.isnan(solution.X).all() == np.isnan(solution.K).all() == nothing
    assert np.isnan(solution.spectral_radius) == nothing
    assert nothing or solution.residual < 1e-8


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_residual_is_no_worse_than_scipys(name) -> None:
    case = PROBLEMS[name]
    solution = solved(name)
    if solution.status is NO_SOLUTION:
        return
    recomputed = residual(case, solution.X)
    assert abs(recomputed - solution.residual) <= max(TOLERANCE["residual"], 0.5 * solution.residual)
    theirs = by_scipy(case)
    if solution.status is STABILISING and theirs is not None:
        assert recomputed <= 10.0 * residual(case, theirs) + TOLERANCE["residual"]


@pytest.mark.parametrize("name", [name for name in PROBLEMS if PROBLEMS[name].status is STABILISING])
def test_the_gain_stabilises_and_is_the_one_of_x(name) -> None:
    case = PROBLEMS[name]
    A, B, _, R, S = case[:5]
    solution = solved(name)
    X, K = solution.X, solution.K
    assert np.abs(X - X.T).max() <= TOLERANCE["symmetry"]
    assert solution.spectral_radius < 1.0
    # Many poles at 0, of delay lines, are known to eps^(1/n) only.
    assert radius(case, K) == pytest.approx(
        solution.spectral_radius, abs=1e-6 if solution.spectral_radius > 0.3 else 0.3
    )
    L = B.T @ X @ A + (0.0 if S is None else S.T)
    size = np.abs(R + B.T @ X @ B) @ np.abs(K) + np.abs(B.T) @ np.abs(X) @ np.abs(A)
    assert (np.abs((R + B.T @ X @ B) @ K + L) <= 1e-12 * size.max()).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", [name for name in PROBLEMS if PROBLEMS[name].X is not None])
def test_the_solution_is_the_closed_form(name, method) -> None:
    case = PROBLEMS[name]
    solution = solved(name, method)
    if solution.status is not case.status:
        assert (name, method) in LESS or case.status is not STABILISING
        return
    sharp = method != "scipy" and case.agreement == TOLERANCE["same"]  # else poles near the circle
    tolerance = TOLERANCE["closed form"] if sharp else case.agreement
    np.testing.assert_allclose(solution.X, case.X, rtol=tolerance, atol=tolerance * np.abs(case.X).max())


@pytest.mark.parametrize("name", [name for name in PROBLEMS if PROBLEMS[name].status is STABILISING])
def test_methods_agree(name) -> None:
    case = PROBLEMS[name]
    X = solved(name).X
    for method in ("doubling", "scipy"):
        other = solved(name, method)
        if other.status is STABILISING:
            assert np.linalg.norm(other.X - X) <= case.agreement * np.linalg.norm(X)
        else:
            assert (name, method) in LESS


@pytest.mark.parametrize("delay", [0, 1, 4, 30])
@pytest.mark.parametrize("weight", [1e-6, 0.1, 1.0, 1e4])
def test_an_edge_link_is_an_integrator_whatever_its_delay(weight, delay) -> None:
    A, B, Q, R = chain(1, delay, weight)
    solution = solve_dare(A, B, Q, R)
    X, K = integrator(weight)
    assert solution.status is STABILISING
    assert solution.X[-1, -1] == pytest.approx(X, rel=TOLERANCE["closed form"])
    assert solution.K[0, -1] == pytest.approx(K, rel=TOLERANCE["closed form"])
    assert not solution.K[0, :-1].any()


# The theory note (shared/theory/hftrac.md), found apart from this code: two sources that share a third link.
MERGE_GAIN = [
    [0.57433716, -0.04369683, -0.018708053],
    [-0.04369683, 0.57433716, -0.018708053],
    [0.056942411, 0.056942411, 0.61513009],
]


@pytest.mark.parametrize(("weight", "cost"), [(0.1, 14.41503458), (1.0, 59.48957478)])
def test_costs_and_gains_of_the_hftrac_note(weight, cost) -> None:
    A, B, Q, R = chain(3, 1, weight)
    A[6:] = 0.0
    A[6:, 6:] = np.eye(3)
    A[8, [1, 3]] = 1.0  # one sample later, the rates of both go into the third link's backlog
    solution = solve_dare(sp.csr_array(A), sp.csr_array(B), Q, R)
    assert 4.0**2 * (solution.X[6, 6] + solution.X[7, 7]) == pytest.approx(cost, rel=TOLERANCE["printed"])
    if weight == 1.0:
        np.testing.assert_allclose(solution.K[:, 6:], MERGE_GAIN, rtol=1e-7)


SIZES = {"n": st.integers(1, 12), "m": st.integers(1, 5), "seed": st.integers(0, 2**32 - 1), "cross": st.booleans()}


@given(**SIZES)
@settings(max_examples=60)
def test_x_is_semidefinite_and_the_cost_of_its_gain(n, m, seed, cross) -> None:
    A, B, Q, R, S = random_problem(n, m, seed, cross)
    solution = solve_dare(A, B, Q, R, S)
    X, K = solution.X, solution.K
    assert solution.status is STABILISING
    assert np.linalg.eigvalsh(X).min() >= -TOLERANCE["semidefinite"] * np.linalg.norm(X)

    def cost(K) -> float:
        covariance = scipy.linalg.solve_discrete_lyapunov(A + B @ K, np.eye(n))
        return float(np.sum((Q + S @ K + (S @ K).T + K.T @ R @ K) * covariance))

    assert cost(K) == pytest.approx(np.trace(X), rel=TOLERANCE["cost"])
    other = K + 1e-3 * np.random.default_rng(seed).normal(size=K.shape)
    if np.abs(np.linalg.eigvals(A + B @ other)).max() < 1.0:
        assert cost(other) >= np.trace(X) * (1.0 - TOLERANCE["cost"])


@given(**SIZES, decades=st.floats(0.0, 8.0))
@settings(max_examples=60)
def test_units_do_not_matter(n, m, seed, cross, decades) -> None:
    A, B, Q, R, S = random_problem(n, m, seed, cross)
    D, E = (10.0 ** np.random.default_rng(seed + i).uniform(-decades, decades, size) for i, size in enumerate((n, m)))
    one = solve_dare(A, B, Q, R, S)
    other = solve_dare(
        D[:, None] * A / D, D[:, None] * B * E, Q / D[:, None] / D, R * E[:, None] * E, S / D[:, None] * E
    )
    assert other.status is one.status is STABILISING
    size = np.sqrt(np.outer(np.diag(one.X), np.diag(one.X)))
    assert (np.abs(other.X * D[:, None] * D - one.X) <= TOLERANCE["units"] * size * 1e2).all()
    assert other.spectral_radius == pytest.approx(one.spectral_radius, abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1), weight=st.sampled_from([1e-10, 1e-6, 1e-2, 1.0]))
@settings(max_examples=20)
def test_units_do_not_matter_to_links(seed, weight) -> None:
    equation = chain(6, 2, weight)
    one, other = solve_dare(*equation), solve_dare(*in_units(*equation, decades=5, seed=seed))
    D = 10.0 ** np.random.default_rng(seed).uniform(-5, 5, len(equation[0]))
    assert other.status is one.status is STABILISING
    assert other.method == one.method == "doubling"
    size = np.sqrt(np.outer(np.diag(one.X), np.diag(one.X)))
    assert (np.abs(other.X * D[:, None] * D - one.X) <= TOLERANCE["units"] * size).all()


@given(
    n=st.integers(1, 8),
    row=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
    seen=st.booleans(),
    turned=st.booleans(),
    method=st.sampled_from(METHODS),
)
@settings(max_examples=150)
def test_integrators_that_nothing_sees_or_moves_are_never_called_stabilised(n, row, seed, seen, turned, method) -> None:
    random = np.random.default_rng(seed)
    A = scipy.linalg.block_diag(np.eye(row) + np.eye(row, k=1), 1.1 * random.normal(size=(n, n)) / np.sqrt(n))
    m = int(random.integers(1, n + row + 1))
    B, C = random.normal(size=(n + row, m)), random.normal(size=(n + row, n + row))
    if seen:
        B[:row] = 0.0
    else:
        C[:, :row] = 0.0
    U = rotation(n + row, seed) if turned else np.eye(n + row)
    Q = U @ C.T @ C @ U.T
    solution = solve_dare(U @ A @ U.T, U @ B, 0.5 * (Q + Q.T), np.eye(m), method=method)
    assert solution.status is not STABILISING
    assert solution.remedy


@pytest.mark.parametrize("n", [1, 5, 30])
@pytest.mark.parametrize("weight", [1e-6, 1e-10, 1e-14])
def test_slow_poles_that_the_cost_sees_are_called_stabilised(n, weight) -> None:
    random = np.random.default_rng(n)
    B, C = (np.eye(n) + random.normal(size=(n, n)) / np.sqrt(n) / 2.0 for _ in range(2))
    U = rotation(n, n)
    solution = solve_dare(U @ U.T, B, weight * C.T @ C, np.eye(n))
    assert solution.status is STABILISING
    assert 1.0 - 3.0 * sqrt(weight) < solution.spectral_radius < 1.0


def test_without_inputs_the_equation_is_steins() -> None:
    A = np.array([[0.5, 0.3], [0.0, -0.9]])
    for method in METHODS:
        solution = solve_dare(A, np.zeros((2, 0)), np.eye(2), np.zeros((0, 0)), method=method)
        assert solution.status is STABILISING
        assert solution.K.shape == (0, 2)
        np.testing.assert_allclose(solution.X, scipy.linalg.solve_discrete_lyapunov(A.T, np.eye(2)), rtol=1e-12)
    unstable = solve_dare(2.0, np.zeros((1, 0)), 1.0, np.zeros((0, 0)))
    assert unstable.status is NO_SOLUTION


@pytest.mark.parametrize("method", METHODS)
def test_without_states_there_is_nothing_to_stabilise(method) -> None:
    solution = solve_dare(np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((0, 0)), np.eye(2), method=method)
    assert (solution.X.shape, solution.K.shape) == ((0, 0), (2, 0))
    assert (solution.status, solution.residual, solution.spectral_radius) == (STABILISING, 0.0, 0.0)


def test_what_overflows_is_no_solution() -> None:
    solution = solve_dare(np.diag([1e200, 0.5]), [[0.0], [1.0]], 1e200 * np.eye(2), 1.0)
    assert solution.status is NO_SOLUTION
    assert solution.residual == np.inf


def test_sparse_and_nested_lists_are_taken_and_nothing_is_changed() -> None:
    A, B, Q, R = chain(3, 1, 0.1)
    expected = solve_dare(A, B, Q, R)
    for array in (A, B, Q, R):
        array.setflags(write=False)
    for kind in (sp.csr_array, sp.coo_matrix, sp.csc_matrix, np.ndarray.tolist):
        np.testing.assert_array_equal(solve_dare(kind(A), kind(B), kind(Q), kind(R)).X, expected.X)


def test_a_solution_is_read_only_and_survives_a_worker() -> None:
    solution = solve_dare(1.0, -1.0, 1.0, 1.0)
    copy = pickle.loads(pickle.dumps(solution))
    assert isinstance(copy, DareSolution)
    for each in (solution, copy):
        for array in (each.X, each.K):
            with pytest.raises(ValueError, match="read-only"):
                array[0, 0] = 0.0
    assert (copy.X, copy.K, copy.status, copy.residual) == (solution.X, solution.K, solution.status, solution.residual)
    with pytest.raises(AttributeError):
        solution.residual = 0.0


def test_rounding_of_a_symmetric_weight_is_taken_out() -> None:
    A, B, Q, R, _ = random_problem(5, 2, 1)
    skew = np.triu(np.ones((5, 5)), 1)
    rounded = solve_dare(A, B, Q + 1e-15 * np.abs(Q).max() * skew, R)
    np.testing.assert_allclose(rounded.X, solve_dare(A, B, Q, R).X, rtol=1e-12)


GOOD = {"A": np.diag([1.0, 0.5]), "B": np.ones((2, 1)), "Q": np.eye(2), "R": [[1.0]], "S": None, "method": "auto"}


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("A", np.ones((2, 3))),
        ("A", np.ones((2, 2, 2))),
        ("A", [[1.0, 2.0], [3.0]]),
        ("A", "one"),
        ("A", None),
        ("A", np.diag([1.0, np.nan])),
        ("A", sp.csr_array(np.diag([1.0, np.inf]))),
        ("A", 1j * np.eye(2)),
        ("A", sp.csr_array(1j * np.eye(2))),
        ("B", np.ones((3, 1))),
        ("B", [1.0, 1.0]),
        ("B", sp.csr_array(np.ones((3, 1)))),
        ("B", np.array([[np.inf], [1.0]])),
        ("Q", np.eye(3)),
        ("Q", [[1.0, 0.5], [0.4, 1.0]]),
        ("Q", [[1.0, 1j], [-1j, 1.0]]),
        ("Q", np.diag([1.0, np.inf])),
        ("R", np.eye(2)),
        ("R", [[np.nan]]),
        ("R", 1j),
        ("S", np.ones((1, 2))),
        ("S", [[1.0], [np.nan]]),
        ("S", [[1j], [1.0]]),
        ("method", "newton"),
        ("method", ""),
        ("method", "Auto"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_what_is_refused_is_named(argument, value) -> None:
    with pytest.raises(InvalidValue, match=f"^{argument}: got ") as refusal:
        solve_dare(**(GOOD | {argument: value}))
    assert refusal.value.argument == argument
    if argument == "method":
        assert all(f"'{name}'" in refusal.value.takes for name in METHODS)


def test_an_asymmetric_input_weight_is_named() -> None:
    with pytest.raises(InvalidValue, match=r"^R: .*\(R \+ R'\)/2"):
        solve_dare(np.eye(2), np.eye(2), np.eye(2), [[1.0, 0.1], [0.2, 1.0]])
