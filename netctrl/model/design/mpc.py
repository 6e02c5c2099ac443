"""Law, inputs and certificate of model predictive control."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, Status
from netctrl.model.io.fields import number, read_fields, whole
from netctrl.model.io.record_file import Record
from netctrl.model.law import SignalLaw

_MOST_SAMPLES = 100_000


class MpcCourse(Record, frozen=True):
    """What the loop is to go through: references and measured disturbances over time, each until the next one.

    Raises
    ------
    InvalidValue
        Times that don't rise, or numbers that aren't finite.

    Examples
    --------
    >>> from netctrl.model.design.mpc import MpcCourse
    >>> MpcCourse(samples=300, disturbances=((0.0, 30.0), (1.0, 80.0))).samples
    300
    """

    samples: int
    """Its length."""
    references: tuple[tuple[float, ...], ...] = ()
    """Each a time [s] and the p references from then on; before, those of the design."""
    disturbances: tuple[tuple[float, ...], ...] = ()
    """Each a time [s] and the measured disturbances from then on; before, those of the design."""
    unmeasured: tuple[tuple[float, ...], ...] = ()
    """Each a time [s] and what is added to the manipulated inputs from then on, untold; before, nothing."""

    def __post_init__(self) -> None:
        read_fields(self, samples=whole(1, _MOST_SAMPLES, "a whole number of samples"))
        finite = number("a finite number")
        for name in ("references", "disturbances", "unmeasured"):
            last, rows = -1.0, []
            for place, row in enumerate(getattr(self, name)):
                takes = "a time of at least 0, after the one before, in s, and values"
                values = [finite(f"{name}[{place}]", each) for each in row]
                if not values or values[0] < 0.0 or values[0] <= last:
                    raise InvalidValue(f"{name}[{place}]", values, takes)
                last = values[0]
                rows.append(tuple(values))
            msgspec.structs.force_setattr(self, name, tuple(rows))


def check_queue(
    link: str, A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, interval_s: float, measured: Sequence[int]
) -> None:
    """InvalidValue where a link's plant is no queue: its backlog falls by the first input, the rate, and grows by the
    second one, which is measured."""
    shapes = A.shape == (1, 1) and C.shape == (1, 1) and B.shape == D.shape == (1, 2)
    integrates = shapes and A[0, 0] == 1.0 and C[0, 0] == 1.0 and not D.any()
    if not (integrates and np.allclose(B, [[-interval_s, interval_s]], rtol=1e-9) and list(measured) == [1]):
        takes = "a plant as link_rate_plant makes it: one state, the backlog; rate and measured arrivals as inputs"
        raise InvalidValue("link", link, f"None, or {takes}")


class MpcLaw(SignalLaw, frozen=True, kw_only=True, tag="mpc", eq=False):
    """Model predictive control: each sample applies the first input of the plan that `netctrl.MpcProblem` defines.

    `netctrl.mpc.law.RunningMpc` runs it. Matrices and the problem are of deviations from the offsets. Inputs are the
    plant's: those in the problem's `measured` are measured disturbances.
    """

    link: str | None
    """Id of the link whose rate it sets, if it is one for a link: its output is the backlog, its measured disturbance
    the rate that arrives."""
    A: np.ndarray
    """(n, n) state matrix"""
    B: np.ndarray
    """Input matrix, (n, m + nw)."""
    C: np.ndarray
    """(p, n) output matrix"""
    D: np.ndarray
    """Feedthrough, (p, m + nw)."""
    problem: dict[str, Any]
    """Arguments of `netctrl.MpcProblem` that aren't its defaults, without the plant; null: infinite."""
    estimator: dict[str, Any] | None
    """Arguments of `netctrl.mpc.estimate.mpc_estimator`; null: the state is measured."""
    preview: bool
    """Whether references and measured disturbances are known ahead."""
    reference: np.ndarray
    """(p,) outputs to follow, where nothing else is asked for."""
    safe_input: np.ndarray
    """(m,) applied where no plan was found for longer than `hold`."""
    hold: int
    """Samples for which the last input is held where no plan is found."""

    @property
    def low(self) -> np.ndarray:
        """(m,) lowest inputs."""
        return self._limits("input_lower", -np.inf)

    @property
    def high(self) -> np.ndarray:
        """(m,) greatest inputs."""
        return self._limits("input_upper", np.inf)

    def _limits(self, name: str, none: float) -> np.ndarray:
        other = self.problem.get("measured", ())
        offset = np.delete(self.input_offset, list(other))
        given = np.asarray(self.problem.get(name), dtype=float)  # NaN for null
        return offset + np.where(np.isnan(given), none, given)

    def __post_init__(self) -> None:
        super().__post_init__()
        n, (p, inputs) = len(self.A), self.D.shape if self.D.ndim == 2 else (0, 0)
        shapes = {"A": (n, n), "B": (n, inputs), "C": (p, n), "D": (p, inputs), "input_offset": (inputs,)}
        shapes |= {"output_offset": (p,), "reference": (p,)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidValue(name, getattr(self, name).shape, f"an array of shape {shape}")
        for name, size in {"inputs": inputs, "input_units": inputs, "outputs": p, "output_units": p}.items():
            if len(getattr(self, name)) != size:
                raise InvalidValue(name, getattr(self, name), f"{size} of them")
        if self.link is not None:
            measured = self.problem.get("measured", ())
            check_queue(self.link, self.A, self.B, self.C, self.D, self.interval_s, measured)


class MpcInputs(Record, frozen=True, eq=False):
    """Inputs of a model predictive controller; its plant stands with its law."""

    problem: dict[str, Any]
    """Arguments of `netctrl.MpcProblem` that aren't its defaults, without the plant; null: infinite."""
    estimator: dict[str, Any] | None
    """Arguments of `netctrl.mpc.estimate.mpc_estimator`; null: the state is measured."""
    reference: tuple[tuple[float, float], ...]
    """(p, 2) lowest and highest references to follow."""
    disturbances: tuple[tuple[float, float], ...]
    """(nw, 2) lowest and highest measured disturbances."""
    unmeasured: tuple[tuple[float, float], ...]
    """(nd, 2) lowest and highest disturbances that the estimator finds."""
    preview: bool
    """Whether references and measured disturbances are known ahead."""
    course: MpcCourse | None
    """What the loop was to go through; null: nothing."""


class MpcRegion(Record, frozen=True):
    """How far a start may be off the steady state along one axis, for all references and disturbances of the ranges."""

    name: str
    """Of the state or past input."""
    lowest: float | None
    """Null: without limit."""
    highest: float | None
    """Null: without limit."""


class MpcTube(Record, frozen=True):
    """What may be added untold to an input in each sample, and how far all signals are then off their steady values.

    For any sequence of it, once the loop has settled, for all references and constant disturbances of the ranges: all
    hard bounds are met, and no bound becomes active. Inputs one at a time.
    """

    input: str
    """Name of the input."""
    most: float
    """To either side [the input's unit]."""
    off: tuple[tuple[str, float], ...]
    """Outputs, inputs as decided, and changes of inputs."""


class MpcExtreme(Record, frozen=True):
    """Lowest and highest value of a signal over a course."""

    name: str
    """Of the output or input; "change of" an input: from one sample to the next."""
    lowest: float
    """[the signal's unit]"""
    highest: float
    """[the signal's unit]"""
    last: float
    """At the end."""


class MpcCertificate(Record, frozen=True):
    """Certificate of a model predictive controller.

    With `proved`, and model and state exact: for each constant reference and disturbance of the inputs, from each start
    in its region, all later plans are feasible, hard bounds are met, and states and inputs settle. Margins are those of
    the loop while no bound is active, with all its delays and the estimator.
    """

    status: Status
    """Verdict: admissible, stable, unstable or infeasible."""
    proved: bool
    """Whether the loop is proved for the region."""
    missing: tuple[str, ...]
    """Why it isn't."""
    region: tuple[MpcRegion, ...]
    """Empty without a proof."""
    tubes: tuple[MpcTube, ...]
    """Of inputs with which some bound becomes active at all; empty without a proof."""
    terminal_rows: int
    """Rows of the terminal set."""
    terminal_steps: int
    """Samples after which its rows are implied by the ones before."""
    steady_state: tuple[float, ...]
    """(n,) in the middle of the ranges."""
    steady_input: tuple[float, ...]
    """(m,) in the middle of the ranges."""
    variables: int
    """Of the quadratic program, with the states eliminated."""
    rows: int
    """Of the quadratic program, beside bounds of variables."""
    spectral_radius: float
    """Of the loop while no bound is active."""
    disc_alpha: float
    """Disk margin at the plant's inputs (`netctrl.frequency.hinf_norm.DiskMargin`); 0: the loop isn't stable."""
    lowest_gain: float
    """Factor to which the plant's gain may fall."""
    highest_gain: float | None
    """Factor to which the plant's gain may rise; null: unlimited."""
    phase_deg: float
    """Phase that may be lost or gained [degree]."""
    delay_margin_s: float | None
    """By how much later inputs may act than the plant says, in whole samples [s]; null: by more than 100 samples."""
    offset: str
    """Why outputs keep an offset under constant disturbances that aren't measured; empty where they keep none."""
    course: tuple[MpcExtreme, ...]
    """Extremes of all signals over the course asked for."""
    outside: int
    """Samples of the course at which the loop was outside the region that is proved."""
    failed: int
    """Samples of the course at which no plan was found."""
    warnings: tuple[str, ...]
    """Cautions before using the law."""
