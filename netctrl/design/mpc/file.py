"""Model predictive controllers from TOML files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from netctrl.core.errors import FileError, InvalidValue, NetctrlError
from netctrl.design.mpc.design import design_mpc, link_rate_plant
from netctrl.model.datasets import model_path
from netctrl.model.design.design import MpcDesign
from netctrl.model.design.mpc import MpcCourse
from netctrl.model.identified import read_model
from netctrl.model.io.fields import Duration, duration, instant
from netctrl.model.io.record_file import Record
from netctrl.model.io.toml import read_toml_record
from netctrl.model.statespace import StateSpace
from netctrl.mpc.law import problem_of
from netctrl.mpc.problem import MpcProblem, vector


class _Plant(Record, frozen=True, tag_field="kind"):
    pass


class LinkPlant(_Plant, frozen=True, tag="link"):
    """A link's queue [Mbit] by its rate and the rate that arrives [Mbit/s]."""

    id: str
    interval: Duration


class MatrixPlant(_Plant, frozen=True, tag="matrices"):
    """A plant in state space."""

    interval: Duration
    A: Any
    B: Any
    C: Any
    D: Any = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    input_units: tuple[str, ...] = ()
    output_units: tuple[str, ...] = ()
    input_offset: Any = 0.0
    output_offset: Any = 0.0


class ModelPlant(_Plant, frozen=True, tag="model"):
    """An identified model: a file beside this one, or the name of one that comes with netctrl.

    The problem's `measurement_delay` is 1 unless it says otherwise: a model's outputs are those of an interval. An
    estimator takes the model's noise unless it is given one.
    """

    file: str


class _Course(Record, frozen=True):
    duration: Duration
    references: tuple[tuple[Any, ...], ...] = ()
    disturbances: tuple[tuple[Any, ...], ...] = ()
    unmeasured: tuple[tuple[Any, ...], ...] = ()


class MpcFile(Record, frozen=True):
    """What a file may have; all but the plant and the problem as in `netctrl.design_mpc`."""

    plant: LinkPlant | MatrixPlant | ModelPlant
    problem: dict[str, Any]
    reference: Any = 0.0
    disturbances: Any = 0.0
    estimator: dict[str, Any] | None = None
    unmeasured: Any = 0.0
    preview: bool = False
    course: _Course | None = None
    hold: int = 3
    safe_input: Any = None


def mpc_from_file(path: str | os.PathLike[str], argv: Iterable[str] = ()) -> MpcDesign:
    """Design the controller that a TOML file describes (docs/how-to/mpc.md).

    Bounds, references and disturbances are values of the signals themselves, with a plant's offsets included.

    Parameters
    ----------
    path : path
    argv : iterable of str
        Command line, for the provenance.

    Returns
    -------
    MpcDesign

    Raises
    ------
    FileError
        The file, or the model that it names, can't be read, or describes no problem; the message names the key.

    Examples
    --------
    >>> from pathlib import Path
    >>> from netctrl.design.mpc.file import mpc_from_file
    >>> _ = Path("uplink.toml").write_text('''
    ... disturbances = [[0, 90]]
    ... plant = { kind = "link", id = "uplink", interval = "10ms" }
    ... [problem]
    ... horizon = 20
    ... output_weight = 1
    ... rate_weight = 1e-4
    ... input_lower = -1
    ... input_upper = 100
    ... ''')
    >>> str(mpc_from_file("uplink.toml").certificate.status)
    'admissible'
    """
    found = read_toml_record(path, MpcFile)
    asked: dict[str, Any] = {
        name: getattr(found, name)
        for name in ("reference", "disturbances", "estimator", "unmeasured", "preview", "hold", "safe_input")
    }
    try:
        plant, signals, files, noise = _plant(Path(path), found.plant)
        given = dict(found.problem)
        if isinstance(found.plant, LinkPlant):
            given.setdefault("measured", [1])
        if isinstance(found.plant, ModelPlant):  # its outputs are those of the interval that ended
            given.setdefault("measurement_delay", 1)
            if found.estimator is not None and noise:
                asked["estimator"] = noise | found.estimator
        problem = problem_of(plant, given)
        problem = _around(problem, signals)
        if found.course is not None:
            asked["course"] = _course(found.course, plant.dt)
        return design_mpc(problem, **asked, **signals, argv=argv, files=(Path(path), *files))
    except FileError:
        raise
    except NetctrlError as error:
        raise FileError(path, str(error)) from None


def _plant(
    path: Path, plant: LinkPlant | MatrixPlant | ModelPlant
) -> tuple[StateSpace, dict[str, Any], list[Path], dict[str, Any]]:
    """Plant, names and offsets of its signals, the files that it is from, and its noise."""
    if isinstance(plant, LinkPlant):
        return link_rate_plant(duration("plant.interval", plant.interval)), {"link": plant.id}, [], {}
    names = ("inputs", "outputs", "input_units", "output_units", "input_offset", "output_offset")
    if isinstance(plant, MatrixPlant):
        made = StateSpace(plant.A, plant.B, plant.C, plant.D, duration("plant.interval", plant.interval))
        return made, {name: getattr(plant, name) for name in names}, [], {}
    beside = path.parent / plant.file
    source = beside if beside.is_file() else model_path(plant.file)
    model = read_model(source)
    if model.curve is not None:
        takes = "a linear one: `netctrl design connet` takes a curve"
        raise InvalidValue("plant.file", f"{plant.file}, a model with a curve", takes)
    noise, S, K = {}, model.innovation_covariance, model.K
    if S is not None and K is not None:
        noise = {"process_noise": (K @ S @ K.T).tolist(), "measurement_noise": S.tolist()}
    return model.state_space, {name: getattr(model, name) for name in names}, [source], noise


def _around(problem: MpcProblem, signals: dict[str, Any]) -> MpcProblem:
    """The problem of deviations from the offsets; bounds of states and mixed rows are of deviations already."""
    u0 = vector("input_offset", signals.get("input_offset", 0.0), problem.plant.n_inputs)[problem.manipulated]
    y0 = vector("output_offset", signals.get("output_offset", 0.0), problem.plant.n_outputs)
    if not u0.any() and not y0.any():
        return problem
    offsets = {"input": u0, "output": y0}
    moved = {
        f"{name}_{end}": getattr(problem, f"{name}_{end}") - offset
        for name, offset in offsets.items()
        for end in ("lower", "upper")
    }
    return replace(problem, **moved)


def _course(course: _Course, interval: float) -> MpcCourse:
    """The course with times in seconds and a length in samples."""

    def rows(name: str, given: Sequence[Sequence[Any]]) -> tuple[tuple[float, ...], ...]:
        takes = 'a list of a time with its unit and numbers, as in ["1s", 0.5]'
        for place, row in enumerate(given):
            if not row or not isinstance(row[0], str):
                raise InvalidValue(f"course.{name}[{place}]", list(row), takes)
        return tuple((instant(f"course.{name}[{place}]", row[0]), *row[1:]) for place, row in enumerate(given))

    parts = {name: rows(name, getattr(course, name)) for name in ("references", "disturbances", "unmeasured")}
    return MpcCourse(samples=round(duration("course.duration", course.duration) / interval), **parts)
