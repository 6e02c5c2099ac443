"""A law of model predictive control on its own plant, simulated through a course."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.model.design.design import MpcDesign
from netctrl.model.design.mpc import MpcCourse, MpcExtreme, MpcLaw
from netctrl.mpc.estimate import steady_target
from netctrl.mpc.law import LatePlant, RunningMpc, ahead, law_problem


class Course(NamedTuple):
    """A simulated course over T samples: of the linear plant, whose first states never fall below 0 for a link."""

    time: np.ndarray
    """(T,) [s]"""
    outputs: np.ndarray
    """(T, p)"""
    inputs: np.ndarray
    """(T, m) as decided"""
    references: np.ndarray
    """(T, p)"""
    disturbances: np.ndarray
    """(T, nw)"""
    bounds: dict[str, np.ndarray]
    """Lowest and highest outputs, (2, p), and inputs, (2, m)."""
    outside: int
    """Samples outside the region that is proved."""
    failed: int
    """Samples without a plan."""

    def extremes(self, law: MpcLaw) -> tuple[MpcExtreme, ...]:
        """Lowest, highest and last value of each output, input, and change of an input."""
        other = law.problem.get("measured", ())
        moved = [name for place, name in enumerate(law.inputs) if place not in other]
        columns = [(name, self.outputs[:, i]) for i, name in enumerate(law.outputs)]
        columns += [(name, self.inputs[:, j]) for j, name in enumerate(moved)]
        changes = np.diff(self.inputs, axis=0, prepend=self.inputs[:1])
        columns += [(f"change of {name}", changes[:, j]) for j, name in enumerate(moved)]
        return tuple(
            MpcExtreme(name=name, lowest=float(each.min()), highest=float(each.max()), last=float(each[-1]))
            for name, each in columns
        )


def mpc_course(law: MpcLaw, course: MpcCourse, reference: np.ndarray, disturbances: np.ndarray) -> Course:
    """Simulate a law on its own plant through a course.

    Parameters
    ----------
    law : MpcLaw
    course : MpcCourse
    reference : ndarray, shape (p,)
        Before the first one of the course.
    disturbances : ndarray, shape (nw,)
        Likewise.
    """
    problem = law_problem(law)
    moved, other, T = problem.manipulated, list(problem.measured), course.samples
    lead = ahead(problem) if law.preview else 1
    n, m, old = len(law.A), len(moved), problem.measurement_delay
    r = _over("course.references", course.references, reference, T + lead, law.interval_s)
    w = _over("course.disturbances", course.disturbances, disturbances, T + lead, law.interval_s)
    untold = _over("course.unmeasured", course.unmeasured, np.zeros(m), T, law.interval_s)
    # It starts at rest, at the steady state of the first reference and disturbance.
    drawn = w - law.input_offset[other]
    rest = steady_target(problem, 0).constant @ np.concatenate([r[0] - law.output_offset, np.zeros(m), drawn[0]])
    acting = np.empty(problem.plant.n_inputs)
    acting[moved], acting[other] = rest[n:], drawn[0]
    before = law.output_offset + law.C @ rest[:n] + law.D @ acting if law.estimator is not None else rest[:n]
    plant, running = LatePlant(problem, rest[:n], rest[n:]), RunningMpc(law, rest[n:] + law.input_offset[moved])
    if law.estimator is not None:
        first = running.state.estimate.copy()
        first[:n] = plant.state
        running.state = running.state._replace(estimate=first)
    outputs, inputs, seen = np.empty((T, len(law.C))), np.empty((T, m)), [before] * old
    failed = 0
    for k in range(T):
        now = plant.state if law.estimator is None else plant.outputs(drawn[k], untold[k]) + law.output_offset
        inputs[k] = running.decide(seen[k] if old else now, r[k : k + lead], w[k : k + lead])
        failed += running.state.failing > 0
        outputs[k] = plant.advance(inputs[k] - law.input_offset[moved], drawn[k], untold[k]) + law.output_offset
        seen.append(now if law.estimator is None else outputs[k])
        if law.link is not None:
            plant.state = np.maximum(plant.state, 0.0)
    time = law.interval_s * np.arange(T)
    ends = problem.input_lower + law.input_offset[moved], problem.input_upper + law.input_offset[moved]
    bounds = {"inputs": np.array(ends)}
    bounds["outputs"] = np.array([problem.output_lower, problem.output_upper]) + law.output_offset
    return Course(time, outputs, inputs, r[:T], w[:T], bounds, running.outside, failed)


def _over(name: str, rows: Sequence[Sequence[float]], first: np.ndarray, count: int, interval: float) -> np.ndarray:
    """Values at each sample, (count, size), of rows that begin with the time from which they hold."""
    found = np.tile(first, (count, 1)).astype(float)
    for row in rows:
        if len(row) != 1 + len(first):
            raise InvalidValue(name, list(row), f"a time and {len(first)} values")
        found[int(np.ceil(row[0] / interval - 1e-9)) :] = row[1:]
    return found


def usual_course(design: MpcDesign) -> MpcCourse:
    """The course that a design was asked for, or steps from the lowest to the highest references and disturbances."""
    asked, horizon = design.inputs, int(design.law.problem["horizon"])
    if asked.course is not None:
        return asked.course
    steps: dict[str, tuple[tuple[float, ...], ...]] = {}
    moments = [k * horizon * design.law.interval_s for k in (1, 3)]
    for name, ranges, at in (("references", asked.reference, 0), ("disturbances", asked.disturbances, 1)):
        if any(high > low for low, high in ranges):
            low, high = zip(*ranges, strict=True)
            steps[name] = ((0.0, *low), (moments[at], *high))
    if not steps:
        steps["unmeasured"] = ((moments[0], *np.full(len(design.law.safe_input), 1.0)),)
    return MpcCourse(samples=5 * horizon, **steps)
