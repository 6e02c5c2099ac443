"""How much may happen untold, sample by sample, before a proved loop leaves the region in which its law is linear."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from netctrl.model.io.matrix import dense
from netctrl.model.statespace import StateSpace
from netctrl.mpc.estimate import Estimator
from netctrl.mpc.law import free_loop
from netctrl.mpc.problem import MpcProblem, history
from netctrl.mpc.proof import MpcProof
from netctrl.mpc.receding import RecedingState, corrected, receding_controller, start_receding

_MOST_SAMPLES = 2**15
_LEFT = 1e-6  # of what an impulse leaves of itself, where its sum ends


class Tube(NamedTuple):
    """What a loop stays within that has settled, for any sequence of what is added untold to one input."""

    most: float
    """Greatest amount in each sample, to either side, with which all bounds are met and the law is linear."""
    states: np.ndarray
    """(n,) how far states are off their steady values at most."""
    outputs: np.ndarray
    """(p,)"""
    inputs: np.ndarray
    """(m,)"""
    changes: np.ndarray
    """(m,) changes of inputs."""


def tubes(proof: MpcProof, estimator: Estimator | None = None, *, least: float = -np.inf) -> Iterator[Tube | None]:
    """The tube of each input, for all references and constant disturbances of a proof's ranges; None: the loop isn't
    stable, or too slow. Outputs stay above `least`, as queues do that can't be shorter than none.

    While no row of the terminal set is met with equality, plans are those of the linear regulator. What the loop does
    to w(t), |w(t)| <= W, is then at most W Σ|h(t)| for each row, output and input, with the impulse response h of the
    whole loop, its delays and its estimator (Kolmanovsky, Gilbert, 1998, for a linear loop's smallest invariant set).
    W is the greatest for which this leaves room to all rows and hard bounds, so that the law stays linear for ever.
    """
    problem = proof.problem
    loop, rows = _watched(problem, estimator)
    n, p, m = problem.plant.n_states, problem.plant.n_outputs, problem.n_inputs
    room = _room(proof, least)
    for j in range(m):
        sums = _sums(loop, j)
        if sums is None:
            yield None
            continue
        sums = sums[m:]  # the first m are of the margins
        with np.errstate(divide="ignore", invalid="ignore"):
            most = float(np.nanmin(np.where(sums > 0.0, room / sums, np.inf), initial=np.inf))
        parts = np.split(sums[rows:], np.cumsum([n, p, len(problem.mixed_lower), m]))
        found = [np.where(part > 0.0, most * part, 0.0) for part in parts]
        yield Tube(most, found[0], found[1], found[3], found[4])


def _watched(problem: MpcProblem, estimator: Estimator | None) -> tuple[StateSpace, int]:
    """The loop while no bound is active, with all that is bounded as outputs, and the terminal set's number of rows."""
    controller = receding_controller(problem, estimator=estimator)
    whole, start = controller.problem, start_receding(controller)
    into = controller.into_theta
    rows, size = whole.terminal_rows, len(start.estimate)
    q, none = rows.shape[1], np.zeros((1, len(problem.measured)))
    kept = start.past.shape

    def watch(known: np.ndarray, seen: np.ndarray, x: np.ndarray, y: np.ndarray, u: np.ndarray, acting: np.ndarray):
        past = known[size:].reshape(kept)
        state: RecedingState = start._replace(estimate=known[:size], past=past)
        at = seen if estimator is None else corrected(controller, state, seen, none)
        signals = np.zeros(into.shape[1])
        signals[: len(at) + past.size] = np.concatenate([at, past.ravel()])
        mixed = problem.mixed_states @ x + problem.mixed_inputs @ acting
        return np.concatenate([rows @ (into @ signals)[:q], x, y, mixed, u, u - past[-1]])

    return free_loop(problem, estimator, watch=watch), len(rows)


def _room(proof: MpcProof, least: float) -> np.ndarray:
    """Least distance of the steady state from each row and hard bound, over all of the ranges."""
    problem = proof.problem
    n, moved, other = problem.plant.n_states, problem.manipulated, list(problem.measured)
    ranges = np.concatenate([proof.reference, proof.disturbances, proof.unmeasured])
    middle, half = ranges.mean(axis=1), 0.5 * np.ptp(ranges, axis=1)
    x, u = proof.targets[:n], proof.targets[n:]
    p, nw = len(proof.reference), len(other)
    drawn = np.zeros((nw, len(middle)))
    drawn[:, p : p + nw] = np.eye(nw)
    C, D = dense(problem.plant.C), dense(problem.plant.D)
    y = C @ x + D[:, moved] @ u + D[:, other] @ drawn
    steady = np.vstack([x, u[[j for _, j in history(problem)]]])
    used = problem.terminal_rows @ steady + problem.terminal_moved
    found = [problem.terminal_upper - used @ middle - np.abs(used) @ half]
    mixed = problem.mixed_states @ x + problem.mixed_inputs @ u
    for name, values in (("state", x), ("output", y), ("mixed", mixed), ("input", u), ("rate", 0.0 * u)):
        soft = problem.soft_weight if name == "state" else getattr(problem, f"{name}_soft_weight")
        low = np.where(np.isfinite(soft), -np.inf, getattr(problem, f"{name}_lower"))
        low = np.maximum(low, least) if name == "output" else low
        high = np.where(np.isfinite(soft), np.inf, getattr(problem, f"{name}_upper"))
        at, swing = values @ middle, np.abs(values) @ half
        found.append(np.minimum(high - at - swing, at - swing - low))
    return np.concatenate(found)


def _sums(loop: StateSpace, j: int) -> np.ndarray | None:
    """Bounds of Σ|h(t)| of all outputs from input j; None where the response doesn't end."""
    A, C, state = dense(loop.A), dense(loop.C), dense(loop.B)[:, j]
    power, samples = A, 1
    while (q := float(np.abs(power).sum(axis=1).max(initial=0.0))) > _LEFT:
        power, samples = power @ power, 2 * samples
        if samples > _MOST_SAMPLES:
            return None
    sums, size = np.abs(dense(loop.D)[:, j]), 0.0
    for _ in range(samples):
        sums, size = sums + np.abs(C @ state), size + np.abs(state).max(initial=0.0)
        state = A @ state
    # With the norm q of A's power, what comes later is at most q / (1 − q) times the bound of what has come.
    return sums + np.abs(C).sum(axis=1) * size * q / (1.0 - q)
