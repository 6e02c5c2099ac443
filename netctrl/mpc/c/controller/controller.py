"""Laws of model predictive control as C, from measurements to inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from netctrl.core.errors import checked_kind, checked_whole
from netctrl.model.design.mpc import MpcLaw
from netctrl.model.io.matrix import dense
from netctrl.mpc.c.program import AGREEMENT, program_sources
from netctrl.mpc.c.text import VECTORS, checked_name, files, number, tables, template, vectors
from netctrl.mpc.law import LatePlant, RunningMpc, law_problem
from netctrl.mpc.problem import MpcProblem

_MANY = 100.0  # times what a program alone may be off: differences stay in the estimate for a while


def controller_in_c(law: MpcLaw, name: str = "mpc_law", *, iterations: int | None = None) -> dict[str, str]:
    """A law of model predictive control as C99: estimator, steady states, program, fallback.

    The files compile with any C99 compiler; `make test` runs the law through a course of 500 samples beside netctrl's.
    Nothing is allocated, and all that is kept between samples is in a struct of the caller's.

    Parameters
    ----------
    law : MpcLaw
        Of a Design (`netctrl.design_mpc`).
    name : str
        Name of the function and of its files.
    iterations : int, optional
        Largest number of iterations of a program, after which the last inputs are held; by default four times its
        bounds, at least 200.

    Returns
    -------
    dict
        Name of a file -> its text.

    Raises
    ------
    InvalidValue
        A name that C can't use, or a cost without a unique minimum.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.design.mpc.file import mpc_from_file
    >>> from netctrl.model.datasets import problem_path
    >>> from netctrl.mpc.c.controller.controller import controller_in_c
    >>> sorted(controller_in_c(mpc_from_file(problem_path("uplink")).law, "uplink_rate"))[:4]
    ['Makefile', 'check.c', 'uplink_rate.c', 'uplink_rate.h']
    """
    checked_kind("law", law, MpcLaw)
    name = checked_name(name)
    running = RunningMpc(law)
    bounds = np.isfinite(running.controller.program.lower) | np.isfinite(running.controller.program.upper)
    usual = max(200, 4 * int(np.count_nonzero(bounds)))
    most = checked_whole(
        "iterations", usual if iterations is None else iterations, "a number of at least 1", at_least=1
    )
    controller, free = running.controller, running.free
    problem, program = controller.problem, controller.program
    moved, other = problem.manipulated, list(problem.measured)
    X, m, nw, old = problem.plant.n_states, len(moved), len(other), problem.measurement_delay
    kept = max(int(problem.delays.max()) + old, 1)
    estimates = controller.estimator is not None
    measured = problem.plant.n_outputs if estimates else X
    references = problem.plant.n_outputs if program.given.reference != "none" else 0
    ahead = running.lead if law.preview else 1
    signals = X + kept * m + old * nw + ahead * (nw + references)
    into = controller.into_theta[:, :signals].toarray()  # the inputs' own references are 0
    correct, advance = np.zeros((X, X + kept * m + nw + measured)), np.zeros((X, X + kept * m + m + nw))
    if estimates:
        correct, advance = _estimator(problem, controller.estimator.gain, kept)
    low, high = controller.lower, controller.upper
    hard = ~np.isfinite(problem.rate_soft_weight)
    one, p = np.ones(1), problem.plant.n_outputs
    made = tables(
        ("correct", correct),
        ("advance", advance),
        ("measured_offset", law.output_offset if estimates else np.zeros(X)),
        ("reference_offset", law.output_offset if references else 0.0 * one),
        ("reference", law.reference if references else 0.0 * one),
        ("disturbance_offset", law.input_offset[other] if nw else 0.0 * one),
        ("input_offset", law.input_offset[moved]),
        ("safe", law.safe_input),
        ("least_change", np.minimum(np.where(hard, problem.rate_lower, -np.inf), 0.0)),
        ("most_change", np.maximum(np.where(hard, problem.rate_upper, np.inf), 0.0)),
        ("lower", low),
        ("upper", high),
    )
    names = {
        "measures": ", ".join(law.outputs) if estimates else f"the plant's states: {X}",
        "follows": ", ".join(law.outputs[:references]) or "none",
        "disturbs": ", ".join(law.inputs[i] for i in other) or "none",
        "sets": ", ".join(law.inputs[i] for i in moved),
    }
    sizes = {"states": X, "inputs": m, "keptm": kept * m, "disturbances": nw, "old": old, "ahead": ahead}
    sizes |= {"measured": measured, "references": references, "hold": law.hold}
    sizes |= {"estimating": int(estimates), "estimates": X, "kept": kept * m, "drawn": max(old * nw, 1)}
    sets = f"{names['sets']} every {law.interval_s:g} s, {problem.horizon} samples ahead"
    parts: dict[str, Any] = {"name": name, "guard": name.upper(), "title": sets, "interval": number(law.interval_s)}
    parts |= sizes | names
    programs = {"program": program} | ({} if free is None else {"free": free.program})
    found = {
        f"{name}_{role}.{ending}": text
        for role, each in programs.items()
        for ending, text in program_sources(each, f"{name}_{role}", most, into=into).items()
    }
    again = f"        if (code == 2 && {name}_free(signals, u, NULL) == 0)\n            code = 1;\n"
    source = template(
        "controller/controller.c",
        tables=made,
        include="" if free is None else f'#include "{name}_free.h"\n',
        fallback="" if free is None else again,
        **parts,
    )
    first = law.safe_input
    scale = np.where(np.isfinite(high - low), high - low, program.input_scale)
    allowed = ", ".join(number(x) for x in _MANY * AGREEMENT * np.maximum(scale, program.input_scale))
    begun = ", ".join(number(x) for x in first)
    check = template("controller/check.c", allowed=allowed, first=begun, **parts)
    lines = _course(RunningMpc(law, first), measured, references, ahead, p)
    sources = {"h": template("controller/controller.h", **parts), "c": source}
    return found | files(name, sources, check, lines, [f"{name}_{role}" for role in programs])


def _estimator(problem: MpcProblem, gain: np.ndarray, kept: int) -> tuple[np.ndarray, np.ndarray]:
    """Matrices to the corrected estimate, of [estimate; past; first disturbance; measured], and to the next one, of
    [corrected; past; inputs; first disturbance]."""
    plant, moved, other = problem.plant, problem.manipulated, list(problem.measured)
    A, B, C, D = (dense(part) for part in (plant.A, plant.B, plant.C, plant.D))
    m, late = len(moved), problem.delays + problem.measurement_delay

    def acting(age: np.ndarray, count: int) -> np.ndarray:
        """The plant's manipulated inputs of these ages before the last of `count`."""
        found = np.zeros((plant.n_inputs, count * m))
        found[moved, (count - 1 - age) * m + np.arange(m)] = 1.0
        return found

    drawn = np.eye(plant.n_inputs)[:, other]
    correct = [np.eye(len(A)) - gain @ C, -gain @ D @ acting(np.maximum(late - 1, 0), kept), -gain @ D @ drawn, gain]
    return np.hstack(correct), np.hstack([A, B @ acting(late, kept + 1), B @ drawn])


def _course(running: RunningMpc, measured: int, references: int, ahead: int, p: int) -> str:
    """Measurements, references and disturbances of a random course of the law's own plant, with its decisions."""
    law, random = running.law, np.random.default_rng(0)
    problem = law_problem(law)
    moved, other = problem.manipulated, list(problem.measured)
    low, high = (
        np.where(np.isfinite(end), end, usual) for end, usual in zip(problem.input_limits, (-1.0, 1.0), strict=True)
    )
    width, nw = high - low, len(other)
    # How far inputs move states within a horizon, and outputs with them.
    powers = [np.linalg.matrix_power(law.A, k) for k in range(min(problem.horizon, 50))]
    far = sum(np.abs(power @ law.B[:, moved]) for power in powers) @ width
    reach = np.abs(law.C) @ far + np.abs(law.D[:, moved]) @ width
    plant = LatePlant(problem, np.zeros(len(law.A)), law.safe_input - law.input_offset[moved])
    r, w = np.tile(law.reference - law.output_offset, (ahead, 1)), np.zeros((ahead, nw))
    rows, codes, decided = [], [], []
    for _ in range(VECTORS):
        # New values come in at the far end of what is known ahead.
        r, w = (np.vstack([each[1:], each[-1:]]) for each in (r, w))
        if random.random() < 0.05:
            r[-1] = law.reference - law.output_offset + reach * random.uniform(-0.5, 0.5, p)
            w[-1] = width.max() * random.uniform(0.0, 1.0, nw)
        y = plant.outputs(w[0]) + 1e-3 * reach * random.standard_normal(p)
        seen = y + law.output_offset if law.estimator is not None else plant.state
        before = running.outside
        given = {"reference": r + law.output_offset, "disturbances": w + law.input_offset[other]}
        applied = running.decide(seen, *(each if ahead > 1 else each[0] for each in given.values()))
        failing = running.state.failing
        codes.append((3 if failing > law.hold else 2) if failing else running.outside - before)
        drawn = given["disturbances"].ravel()
        rows.append(np.concatenate([seen[:measured], given["reference"].ravel() if references else [], drawn]))
        decided.append(applied)
        plant.advance(applied - law.input_offset[moved], w[0])
        plant.state = np.clip(plant.state, -far, far)  # an unstable plant may be lost
    return vectors(np.array(rows), codes, np.array(decided))
