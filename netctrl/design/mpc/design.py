"""Model predictive control: a problem with the proof of its loop, its margins, and a course that it takes.

docs/how-to/mpc.md shows its use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import (
    InvalidValue,
    NetctrlError,
    Status,
    checked_flag,
    checked_kind,
    checked_numbers,
    checked_whole,
)
from netctrl.design.mpc.course import mpc_course
from netctrl.design.mpc.tube import tubes
from netctrl.frequency.hinf_norm import CAREFUL_ALPHA, DiskMargin, diagonal_disk_margin
from netctrl.model.design.design import MpcDesign
from netctrl.model.design.mpc import MpcCertificate, MpcCourse, MpcInputs, MpcLaw, MpcRegion, MpcTube, check_queue
from netctrl.model.io.fields import duration, label, texts
from netctrl.model.io.matrix import dense
from netctrl.model.statespace import StateSpace
from netctrl.mpc.estimate import Estimator
from netctrl.mpc.law import estimator_of, free_law, free_loop, problem_data
from netctrl.mpc.plan import formulated
from netctrl.mpc.problem import MpcProblem, history, vector
from netctrl.mpc.proof import MpcProof, prove_mpc

_MOST_LATER = 100
_LINK = {"inputs": ("rate", "arrivals"), "outputs": ("backlog",)}
_LINK |= {"input_units": ("Mbit/s", "Mbit/s"), "output_units": ("Mbit",)}


def link_rate_plant(interval_s: Any) -> StateSpace:
    """A link's queue in discrete time: backlog [Mbit] by the rate at which it sends and the rate that arrives [Mbit/s].

    Parameters
    ----------
    interval_s : float or str
        Sampling interval [s], or text with its unit, as in "10ms".

    Returns
    -------
    StateSpace

    Raises
    ------
    InvalidValue
        No time above 0.

    Examples
    --------
    >>> import netctrl
    >>> plant = netctrl.link_rate_plant("10ms")
    >>> plant.B.tolist(), plant.dt
    ([[-0.01, 0.01]], 0.01)
    """
    dt = duration("interval_s", interval_s)
    return StateSpace([[1.0]], [[-dt, dt]], [[1.0]], dt=dt)


def design_mpc(
    problem: MpcProblem,
    *,
    reference: Any = 0.0,
    disturbances: Any = 0.0,
    estimator: dict[str, Any] | None = None,
    unmeasured: Any = 0.0,
    preview: bool = False,
    course: MpcCourse | None = None,
    link: str | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    input_units: Sequence[str] = (),
    output_units: Sequence[str] = (),
    input_offset: Any = 0.0,
    output_offset: Any = 0.0,
    hold: int = 3,
    safe_input: Any = None,
    argv: Iterable[str] = (),
    files: Iterable[Path] = (),
) -> MpcDesign:
    """Design a model predictive controller, prove its loop, and say its margins.

    A terminal weight and a terminal set are added where they prove the loop; where they don't, the certificate says
    what is missing.

    Parameters
    ----------
    problem : MpcProblem
        n states, m manipulated inputs, p outputs, nw measured disturbances; of deviations from the offsets.
    reference : array_like, shape (p,) or (p, 2)
        Constant references of the outputs, or ranges of them, of which the loop is to be proved.
    disturbances : array_like, shape (nw,) or (nw, 2)
        Measured disturbances, likewise.
    estimator : dict, optional
        Arguments of `netctrl.mpc.estimate.mpc_estimator`; by default the state is measured.
    unmeasured : array_like, shape (nd,) or (nd, 2)
        Disturbances that the estimator finds, likewise.
    preview : bool
        Whether references and measured disturbances are known ahead.
    course : MpcCourse, optional
        What the loop of the plant is simulated through.
    link : str, optional
        Id of the link whose rate it sets, for a plant such as `link_rate_plant`: engines then run it at that link.
    inputs, outputs, input_units, output_units : sequence of str
        Names and units of the plant's inputs, measured disturbances included, and outputs; by default u1, y1, ...
    input_offset, output_offset : array_like
        Inputs and outputs at the model's zero; references, disturbances, the course and `safe_input` include them.
    hold : int
        Samples for which the last input is held where no plan is found.
    safe_input : array_like, shape (m,), optional
        Applied after that; by default the admissible input nearest to the steady one.
    argv : iterable of str
        Command line, for the provenance.
    files : iterable of Path
        Files that the problem rests on.

    Returns
    -------
    MpcDesign

    Raises
    ------
    InvalidValue
        What `MpcProblem`, `mpc_estimator` and `prove_mpc` refuse, and names that don't fit.

    Examples
    --------
    A link's rate for any demand up to 90 Mbit/s, known ahead, which acts two samples late:

    >>> import netctrl
    >>> problem = netctrl.MpcProblem(
    ...     plant=netctrl.link_rate_plant("10ms"), measured=(1,), delay=2, horizon=40, output_weight=1.0,
    ...     rate_weight=1e-5, input_lower=0.0, input_upper=100.0, rate_lower=-2.0, rate_upper=2.0,
    ... )
    >>> design = netctrl.design_mpc(problem, reference=0.5, disturbances=[[1.0, 90.0]], preview=True, link="uplink")
    >>> proof = design.certificate
    >>> str(proof.status), proof.proved, round(proof.disc_alpha, 2), proof.delay_margin_s
    ('admissible', True, 0.68, 0.0)
    """
    plant = checked_kind("problem", problem, MpcProblem).plant
    p, every, moved, other = plant.n_outputs, plant.n_inputs, problem.manipulated, list(problem.measured)
    names = {"inputs": inputs, "outputs": outputs, "input_units": input_units, "output_units": output_units}
    if link is not None:
        link = label("link", link)
        check_queue(link, *(dense(part) for part in (plant.A, plant.B, plant.C, plant.D)), plant.dt, other)
        names |= {name: value for name, value in _LINK.items() if not names[name]}
        if not np.min(checked_numbers("reference", reference, "backlogs of at least 0")) >= 0.0:
            raise InvalidValue("reference", reference, "backlogs of at least 0")
    named = _named(names, every, p)
    if course is not None:
        checked_kind("course", course, MpcCourse)
    u0, y0 = vector("input_offset", input_offset, every), vector("output_offset", output_offset, p)
    kalman = estimator_of(problem, estimator)
    around = _less("reference", reference, y0), _less("disturbances", disturbances, u0[other])
    proof = prove_mpc(problem, *around, estimator=kalman, unmeasured=unmeasured)
    solved = proof.problem
    low, high = problem.input_limits
    nearest = np.clip(proof.steady_input, low, high)
    safe = nearest if safe_input is None else vector("safe_input", safe_input, len(moved)) - u0[moved]
    if not ((safe >= low) & (safe <= high)).all():
        raise InvalidValue(
            "safe_input", safe_input, f"numbers from {(low + u0[moved]).tolist()} to {(high + u0[moved]).tolist()}"
        )
    middle = [proof.reference.mean(axis=1) + y0, proof.disturbances.mean(axis=1) + u0[other]]
    law = MpcLaw(
        interval_s=plant.dt,
        **named,
        input_offset=u0,
        output_offset=y0,
        link=link,
        A=dense(plant.A),
        B=dense(plant.B),
        C=dense(plant.C),
        D=dense(plant.D),
        problem=problem_data(solved),
        estimator=estimator,
        preview=checked_flag("preview", preview),
        reference=middle[0],
        safe_input=safe + u0[moved],
        hold=checked_whole("hold", hold, "a number of samples of at least 0"),
    )
    requested = MpcInputs(
        problem=problem_data(problem),
        estimator=estimator,
        reference=_pairs(proof.reference + y0[:, None]),
        disturbances=_pairs(proof.disturbances + u0[other, None]),
        unmeasured=_pairs(proof.unmeasured),
        preview=preview,
        course=course,
    )
    certificate = _certificate(law, proof, kalman, course, *middle)
    return MpcDesign.of(requested, law, certificate, argv=argv, files=files, libraries=("numpy", "scipy", "daqp"))


def law_in_c(law: MpcLaw, name: str) -> dict[str, str]:
    """A law as C, for engines: file name -> text (`netctrl.mpc.c.controller.controller.controller_in_c`)."""
    from netctrl.mpc.c.controller.controller import controller_in_c

    return controller_in_c(law, name)


def _named(given: dict[str, Sequence[str]], inputs: int, outputs: int) -> dict[str, tuple[str, ...]]:
    """Names and units of all signals."""
    sizes = {
        "inputs": (inputs, "u"),
        "outputs": (outputs, "y"),
        "input_units": (inputs, ""),
        "output_units": (outputs, ""),
    }
    found = {}
    for name, (size, letter) in sizes.items():
        usual = tuple(f"{letter}{i + 1}" if letter else "" for i in range(size))
        found[name] = texts(name, given[name]) or usual
        if len(found[name]) != size or (letter and len(set(found[name])) < size):
            raise InvalidValue(name, list(given[name]), f"{size} names, each once" if letter else f"{size} units")
    return found


def _less(name: str, value: Any, offset: np.ndarray) -> np.ndarray:
    """Values or ranges less an offset."""
    found = checked_numbers(name, value, f"{len(offset)} numbers, or their lowest and highest values")
    return found - (offset[:, None] if found.ndim == 2 else offset) if offset.any() else found


def _pairs(ranges: np.ndarray) -> tuple[tuple[float, float], ...]:
    return tuple((float(low), float(high)) for low, high in ranges)


class _Margins(NamedTuple):
    radius: float
    disk: DiskMargin | None
    later: int | None


def _margins(problem: MpcProblem, kalman: Estimator | None) -> _Margins:
    """Of the loop while no bound is active."""
    law = free_law(problem, kalman)
    loop = free_loop(problem, kalman, law=law)
    radius = _radius(loop)
    if not radius < 1.0:
        return _Margins(radius, None, 0)
    later = 0
    while later < _MOST_LATER and _radius(free_loop(problem, kalman, later + 1, law)) < 1.0:
        later += 1
    return _Margins(radius, diagonal_disk_margin(loop), later if later < _MOST_LATER else None)


def _radius(loop: StateSpace) -> float:
    return float(np.abs(np.linalg.eigvals(dense(loop.A))).max())


def _certificate(
    law: MpcLaw,
    proof: MpcProof,
    kalman: Estimator | None,
    course: MpcCourse | None,
    reference: np.ndarray,
    disturbances: np.ndarray,
) -> MpcCertificate:
    problem, u0 = proof.problem, law.input_offset
    radius, disk, later = _margins(problem, kalman)
    careful = disk is not None and disk.alpha >= CAREFUL_ALPHA * (1.0 - 1e-9)
    program = formulated(problem)
    signals, outside, failed = (), 0, 0
    if course is not None and radius < 1.0:
        taken = mpc_course(law, course, reference, disturbances)
        signals, outside, failed = taken.extremes(law), taken.outside, taken.failed
    region = _region(law, proof) if proof.holds else ()
    status = Status.UNSTABLE if radius >= 1.0 else Status.ADMISSIBLE if careful and proof.holds else Status.STABLE
    made: dict[str, Any] = {
        "proved": proof.holds,
        "missing": tuple(_told(each, law, problem) for each in proof.missing),
        "region": region,
        "tubes": tuple(_tubes(law, proof, kalman)) if proof.holds else (),
        "terminal_rows": len(problem.terminal_rows),
        "terminal_steps": proof.steps,
        "steady_state": tuple(proof.steady_state.tolist()),
        "steady_input": tuple((proof.steady_input + u0[problem.manipulated]).tolist()),
        "variables": len(program.g),
        "rows": len(program.lower) - len(program.g),
        "spectral_radius": radius,
        "disc_alpha": disk.alpha if disk else 0.0,
        "lowest_gain": disk.lowest_gain if disk else 1.0,
        "highest_gain": disk.highest_gain if disk else 1.0,
        "phase_deg": disk.phase_deg if disk else 0.0,
        "delay_margin_s": None if later is None else later * law.interval_s,
        "offset": kalman.warning if kalman else "the state is measured, and disturbances that aren't are unknown to it",
        "course": signals,
        "outside": outside,
        "failed": failed,
    }
    return MpcCertificate(status=status, warnings=tuple(_warnings(law, made, kalman)), **made)


def _told(said: str, law: MpcLaw, problem: MpcProblem) -> str:
    """A reason with names of inputs and outputs in place of their numbers."""
    moved = [law.inputs[place] for place in problem.manipulated]
    for word, names in (("input", moved), ("output", law.outputs)):
        for place, name in enumerate(names):
            said = re.sub(rf"\b{word} {place}\b", name, said)
    return said


def _region(law: MpcLaw, proof: MpcProof) -> tuple[MpcRegion, ...]:
    """How far along each axis of z a start may be off its steady state, for all references and disturbances."""
    problem = proof.problem
    n, C = problem.plant.n_states, dense(problem.plant.C)
    alone = np.array_equal(C, np.eye(n)) and not dense(problem.plant.D).any()
    later = " after the delay" if problem.delays.min() else ""
    names = [f"{name}{later}" for name in (law.outputs if alone else [f"state {i}" for i in range(n)])]
    moved = problem.manipulated
    names += [f"{law.inputs[moved[j]]} {age} sample{'s' * (age > 1)} before" for age, j in history(problem)]
    found = []
    for name, axis in zip(names, np.eye(len(names)), strict=True):
        with suppress(NetctrlError):  # too many ranges, or a linear program without an answer
            ends = -proof.reach(-axis), proof.reach(axis)
            low, high = (float(end) if np.isfinite(end) else None for end in ends)
            found.append(MpcRegion(name=name, lowest=low, highest=high))
    return tuple(found)


def _tubes(law: MpcLaw, proof: MpcProof, kalman: Estimator | None) -> Iterator[MpcTube]:
    moved = [law.inputs[place] for place in proof.problem.manipulated]
    names = [*law.outputs, *moved, *(f"change of {name}" for name in moved)]
    each_one = tubes(proof, kalman, least=-np.inf if law.link is None else 0.0)
    for name, found in zip(moved, each_one, strict=True):
        if found is not None and np.isfinite(found.most):
            far = np.concatenate([found.outputs, found.inputs, found.changes]).tolist()
            yield MpcTube(input=name, most=found.most, off=tuple(zip(names, far, strict=True)))


def _warnings(law: MpcLaw, made: dict[str, Any], kalman: Estimator | None) -> Iterator[str]:
    if made["spectral_radius"] >= 1.0:
        yield "the loop isn't stable while no bound is active: take a longer horizon, or weights on all outputs"
    elif made["disc_alpha"] < CAREFUL_ALPHA * (1.0 - 1e-9):
        remedy = "a greater rate_weight or input_weight"
        remedy += ", or less disturbance_noise" if kalman is not None and kalman.n_disturbances else ""
        yield f"disk margin {made['disc_alpha']:.3g} is below {CAREFUL_ALPHA:.3g} (a gain twice as high): take {remedy}"
    for reason in made["missing"]:
        yield f"not proved: {reason}"
    if made["proved"] and kalman is not None:
        yield "proved for exact estimates: until these have settled, bounds of outputs and states may be exceeded"
    if made["failed"]:
        yield f"at {made['failed']} samples of the course no plan was found, and inputs were held or the safe taken"
    elif made["outside"]:
        yield f"at {made['outside']} samples of the course the loop was outside the region that is proved"
