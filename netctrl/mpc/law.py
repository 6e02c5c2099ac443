"""MPC laws as data and at work: problems from files, the law that engines and agents step, and its loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, did_you_mean
from netctrl.model.design.mpc import MpcLaw
from netctrl.model.io.matrix import dense
from netctrl.model.statespace import StateSpace
from netctrl.mpc.estimate import Estimator, mpc_estimator
from netctrl.mpc.problem import GROUPS, MpcProblem
from netctrl.mpc.receding import receding_controller, start_receding, step_receding

_ARGUMENTS = tuple(each.name for each in fields(MpcProblem) if each.name != "plant")
_OPTIONS = ("disturbance", "kind", "periods", "process_noise", "disturbance_noise", "measurement_noise")


def problem_data(problem: MpcProblem) -> dict[str, Any]:
    """Arguments of a problem that aren't its defaults, without its plant, as plain data; None: infinite."""
    usual = MpcProblem(plant=problem.plant, horizon=problem.horizon, measured=problem.measured)
    found: dict[str, Any] = {"horizon": problem.horizon}
    for name in _ARGUMENTS:
        value = getattr(problem, name)
        default = getattr(usual, name) if name != "terminal_weight" or not problem.outputs_at_end else value
        if name == "measured" and value:
            found[name] = list(value)
        elif np.size(value) and not np.array_equal(value, default):  # also where one of both is None
            found[name] = _plain(value)
    return found


def problem_of(plant: StateSpace, data: dict[str, Any]) -> MpcProblem:
    """A problem from its plant and plain data, as `problem_data` returns it or people write it.

    Raises
    ------
    InvalidValue
        An unknown argument, or what `MpcProblem` refuses.
    """
    if not isinstance(data, dict):
        raise InvalidValue("problem", data, "a table of arguments of netctrl.MpcProblem")
    for name in data:
        if name not in _ARGUMENTS:
            takes = f"an argument of netctrl.MpcProblem{did_you_mean(name, _ARGUMENTS)}"
            raise InvalidValue(f"problem.{name}", data[name], takes)
    given = {name: _infinite(value, -np.inf if name.endswith("_lower") else np.inf) for name, value in data.items()}
    if "horizon" not in given:
        raise InvalidValue("problem.horizon", None, "a number of samples of at least 1")
    return MpcProblem(plant=plant, **given)


def estimator_of(problem: MpcProblem, options: dict[str, Any] | None) -> Estimator | None:
    """Estimator of a problem by plain options of `mpc_estimator`; None without any.

    Raises
    ------
    InvalidValue
        An unknown option, or what `mpc_estimator` refuses.
    """
    if options is None:
        return None
    if not isinstance(options, dict):
        takes = f"None, or a dict with some of {', '.join(_OPTIONS)}"
        raise InvalidValue("estimator", options, takes)
    for name in options:
        if name not in _OPTIONS:
            takes = f"an option of netctrl.mpc.estimate.mpc_estimator{did_you_mean(name, _OPTIONS)}"
            raise InvalidValue(f"estimator.{name}", options[name], takes)
    return mpc_estimator(problem, **options)


def law_problem(law: MpcLaw) -> MpcProblem:
    """The problem that a law solves, of deviations from its offsets."""
    return problem_of(StateSpace(law.A, law.B, law.C, law.D, law.interval_s), law.problem)


def ahead(problem: MpcProblem) -> int:
    """Samples of references and disturbances that a plan needs, from now on."""
    return int(problem.delays.min()) + problem.horizon + 1


class RunningMpc:
    """An MPC law at work, in its own units, offsets included.

    `state` has the state of its loop, and `outside` counts samples whose plans end outside the terminal set, so that
    the proof doesn't hold there.

    Parameters
    ----------
    law : MpcLaw
    applied : array_like, shape (m,), optional
        Inputs applied before; by default the safe ones.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.mpc.law import RunningMpc
    >>> plant = netctrl.link_rate_plant("10ms")
    >>> problem = netctrl.MpcProblem(plant=plant, measured=(1,), horizon=30, output_weight=1.0, rate_weight=1e-4,
    ...                              input_lower=0.0, input_upper=100.0)
    >>> law = netctrl.design_mpc(problem, reference=0.2, disturbances=30.0, link="uplink").law
    >>> running = RunningMpc(law, [30.0])
    >>> running.decide([0.2], disturbances=[30.0]).round(6).tolist()
    [30.0]
    """

    def __init__(self, law: MpcLaw, applied: Any = None) -> None:
        problem = law_problem(law)
        self.law, self.lead = law, ahead(problem)
        self._moved, self._other = problem.manipulated, list(problem.measured)
        options: dict[str, Any] = {
            "hold": law.hold,
            "safe_input": law.safe_input - law.input_offset[self._moved],
            "estimator": estimator_of(problem, law.estimator),
            "preview": law.preview,
        }
        self.controller = receding_controller(problem, **options)
        # Outside the region that is proved, plans may end outside the terminal set.
        free = replace(problem, terminal_upper=np.inf)
        self.free = receding_controller(free, **options) if len(problem.terminal_rows) else None
        self.outside = 0
        self._follows = self.controller.program.given.reference != "none"
        before = None if applied is None else np.asarray(applied, dtype=float) - law.input_offset[self._moved]
        self.state = start_receding(self.controller, before)

    def decide(self, measured: Any, reference: Any = None, disturbances: Any = None) -> np.ndarray:
        """Inputs (m,) of this sample.

        Parameters
        ----------
        measured : array_like, shape (p,) or (n,)
            Outputs, or states where the law has no estimator.
        reference : array_like, shape (p,) or (any, p), optional
            From this sample on, the last one held; by default the law's.
        disturbances : array_like, shape (nw,) or (any, nw), optional
            Measured ones, likewise; by default those at the model's zero.
        """
        law = self.law
        at = np.asarray(measured, dtype=float)
        at = at if law.estimator is None else at - law.output_offset
        given: dict[str, Any] = {}
        if self._follows:
            wanted = law.reference if reference is None else np.asarray(reference, dtype=float)
            given["reference"] = wanted - law.output_offset
        if self._other:
            drawn = law.input_offset[self._other] if disturbances is None else np.asarray(disturbances, dtype=float)
            given["disturbances"] = drawn - law.input_offset[self._other]
        before, self.state = self.state, step_receding(self.controller, self.state, at, **given)
        if self.state.failing and self.free is not None:
            self.state = step_receding(self.free, before, at, **given)
            self.outside += not self.state.failing
        return self.state.applied + law.input_offset[self._moved]


class LatePlant:
    """A problem's plant with the delays of its inputs, in deviations; `state` (n,) is its state.

    Parameters
    ----------
    problem : MpcProblem
    state : ndarray, shape (n,)
    applied : ndarray, shape (m,)
        Inputs applied for long.
    """

    def __init__(self, problem: MpcProblem, state: np.ndarray, applied: np.ndarray) -> None:
        plant = problem.plant
        self._A, self._B, self._C, self._D = (dense(part) for part in (plant.A, plant.B, plant.C, plant.D))
        self._moved, self._other, self._late = problem.manipulated, list(problem.measured), problem.delays
        self.state, self._past = state, np.tile(applied, (int(self._late.max()) + 1, 1))

    def _acting(self, age: np.ndarray, disturbances: np.ndarray) -> np.ndarray:
        found = np.zeros(self._B.shape[1])
        found[self._moved] = self._past[len(self._past) - 1 - age, np.arange(len(age))]
        found[self._other] = disturbances
        return found

    def outputs(self, disturbances: np.ndarray, untold: np.ndarray | float = 0.0) -> np.ndarray:
        """Outputs (p,) before this sample's inputs are decided: those without delay have no direct effect on them."""
        acting = self._acting(np.maximum(self._late - 1, 0), disturbances)
        acting[self._moved] = np.where(self._late > 0, acting[self._moved] + untold, 0.0)
        return self._C @ self.state + self._D @ acting

    def advance(self, applied: np.ndarray, disturbances: np.ndarray, untold: np.ndarray | float = 0.0) -> np.ndarray:
        """A sample with these inputs, and with what is added untold where they act; its outputs (p,)."""
        self._past = np.vstack([self._past[1:], applied])
        acting = self._acting(self._late, disturbances)
        acting[self._moved] += untold
        outputs = self._C @ self.state + self._D @ acting
        self.state = self._A @ self.state + self._B @ acting
        return outputs


def free_law(problem: MpcProblem, estimator: Estimator | None = None) -> np.ndarray:
    """The law while no bound is active: matrix from [estimate; past inputs; measured] to [inputs; next estimate; next
    past inputs]."""
    # The steps themselves are the law: without bounds they are linear, so that units tell their matrix.
    free: dict[str, Any] = {
        f"{name}_{end}": sign * np.inf for name in GROUPS for end, sign in (("lower", -1.0), ("upper", 1.0))
    }
    free |= {"mixed_states": None, "mixed_inputs": None, "terminal_rows": None}
    free |= {"terminal_upper": np.inf, "terminal_moved": None}
    law = receding_controller(replace(problem, **free), estimator=estimator)
    start = start_receding(law, np.zeros(problem.n_inputs))
    ends = np.cumsum([len(start.estimate), start.past.size])
    columns = []
    for unit in np.eye(ends[-1] + (problem.plant.n_outputs if estimator else problem.plant.n_states)):
        estimate, past, measured = np.split(unit, ends)
        now = step_receding(law, start._replace(estimate=estimate, past=past.reshape(start.past.shape)), measured)
        columns.append(np.concatenate([now.applied, now.estimate, now.past.ravel()]))
    return np.array(columns).T


def free_loop(
    problem: MpcProblem,
    estimator: Estimator | None = None,
    later: int = 0,
    law: np.ndarray | None = None,
    watch: Callable[..., np.ndarray] | None = None,
) -> StateSpace:
    """S − T at the plant's input while no bound is active, of which `discrete_disk_margin` tells the loop's margin.

    Its A is that of the whole loop, with all delays and the estimator: the law predicts by the inputs that it sent, and
    the plant gets others.

    Parameters
    ----------
    problem : MpcProblem
    estimator : Estimator, optional
        Of `netctrl.mpc.estimate.mpc_estimator`; by default the state is measured.
    later : int
        Samples by which inputs act later than the problem says.
    law : ndarray, optional
        Its `free_law`, where several loops are wanted.
    watch : callable, optional
        Linear function of (estimate and past inputs, what is measured, state, outputs, inputs as decided, inputs as
        they act) that returns further outputs.
    """
    law = free_law(problem, estimator) if law is None else law
    moved, late = problem.manipulated, problem.delays + later
    A, B, C, D = (dense(part) for part in (problem.plant.A, problem.plant.B, problem.plant.C, problem.plant.D))
    n, B, D = len(A), B[:, moved], D[:, moved]
    m, age, line = len(moved), problem.measurement_delay, int(late.max())
    size = len(C) if estimator else n
    parts = np.cumsum([n, line * m, age * size, law.shape[1] - size])

    def step(state: np.ndarray, w: np.ndarray) -> np.ndarray:
        x, under_way, seen, known, _ = np.split(state, parts)
        sent, seen = under_way.reshape(line, m), seen.reshape(age, size)
        acting = np.array([sent[line - late[j], j] if late[j] else 0.0 for j in range(m)])
        measured = seen[0] if age else C @ x + D @ acting if estimator else x
        applied, kept = np.split(law @ np.concatenate([known, measured]), [m])
        sent = np.vstack([sent, applied + w])
        acting = np.array([sent[line - late[j], j] for j in range(m)])
        # What is measured later has the direct effect of this sample's inputs, too.
        y = C @ x + D @ acting
        seen = np.vstack([seen, y if estimator else x])
        more = [] if watch is None else watch(known, measured, x, y, applied, acting)
        after = A @ x + B @ acting, sent[1:].ravel(), seen[1:].ravel(), kept
        return np.concatenate([*after, 2.0 * applied + w, more])

    units = np.eye(parts[-1] + m)
    columns = np.array([step(each[: parts[-1]], each[parts[-1] :]) for each in units]).T
    q = parts[-1]
    return StateSpace(columns[:q, :q], columns[:q, q:], columns[q:, :q], columns[q:, q:], problem.plant.dt)


def _plain(value: Any) -> Any:
    """Numbers, lists and None, which JSON has; None for infinity."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _infinite(value: Any, bound: float) -> Any:
    """Bounds with infinity for None; lists otherwise."""
    if isinstance(value, list | tuple):
        return [bound if each is None else _infinite(each, bound) for each in value]
    return value
