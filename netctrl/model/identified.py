"""Identified models and their files: matrices, noise, operating point and how the model was identified."""

from __future__ import annotations

import os
from typing import Any, Literal

import msgspec
import numpy as np

from netctrl.core.errors import FileError, InvalidValue, checked_number
from netctrl.core.files import write_atomically
from netctrl.core.register import ANSWERS
from netctrl.model.io.arrays import array, array_json, json_schema
from netctrl.model.io.display import Plotted, Rows
from netctrl.model.io.fields import label, read_fields, texts
from netctrl.model.io.json_file import read_json
from netctrl.model.io.matrix import covariance, dense_matrix
from netctrl.model.io.provenance import Provenance
from netctrl.model.io.validation_errors import explained
from netctrl.model.statespace import StateSpace

_MAX_BYTES = 64 * 2**20


class Identification(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, eq=False):
    """How a model was identified, and how well it fits."""

    method: str
    """Name of the method, as in `netctrl.identify`."""
    order: int
    """Number of states."""
    delays: tuple[int, ...] = ()
    """(m,) samples by which the inputs are delayed, each a state; empty: none."""
    horizon: int
    """Block rows of the past and of the future [samples]."""
    samples: int
    """Number of samples used for identification."""
    segments: int
    """Number of segments of these samples."""
    singular_values: np.ndarray
    """Singular values of the weighted projection, in decreasing order; the order is chosen where they drop."""
    vaf: np.ndarray
    """(p,) variance of each output that the simulation accounts for, 100 (1 − var(y − ŷ)/var y) [%]."""
    held_out_vaf: np.ndarray | None = None
    """(p,) the same share on held-out data [%]."""
    left_out_vaf: np.ndarray | None = None
    """(p,) the same share on thirds of the trace, of models from the other two [%]; null: the trace is too short."""
    left_out_predicted_vaf: np.ndarray | None = None
    """(p,) share of the prediction one sample ahead on these thirds [%]; null: no Kalman gain."""
    stabilised: bool = False
    """Whether an unstable estimate was made stable."""
    refined: bool = False
    """Whether all parameters were refined to minimise the simulation error."""
    feedback: bool = False
    """Whether the inputs respond to the outputs in the trace."""
    biased: bool = False
    """Whether they do so and the method is not consistent under that, so that the model may be wrong even in sign."""
    steady_gain_draws: np.ndarray | None = None
    """(k, p, m) steady gains that the trace allows, drawn around the model's; null: the trace is too short to tell."""
    line_slopes: np.ndarray | None = None
    """(p, 2) lowest and highest slope of each output over the line's, as the errors tell; null: they can't tell."""
    warnings: tuple[str, ...] = ()
    """Cautions about the data or the fit."""

    def __post_init__(self) -> None:
        shares = "vaf", "held_out_vaf", "left_out_vaf", "left_out_predicted_vaf"
        _fix(self, "singular_values", *shares, "steady_gain_draws", "line_slopes")


class InputCurve(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, eq=False):
    """Curve v = f(u) of a model's one input, piecewise linear between k inputs; the model is linear in v.

    v is in the unit of u, and at both ends v = u. Beyond the ends nothing is known.

    Raises
    ------
    InvalidValue
        Inputs or their images that don't rise, other lengths, bands that don't hold the curve's own slope.

    Examples
    --------
    >>> from netctrl.model.identified import InputCurve
    >>> bent = {"inputs": [0, 5, 10], "linearised": [0, 2, 10], "slope_band": [[0.9, 1.1]] * 2, "deviation": [1, 1, 2]}
    >>> InputCurve(output="delay", shape="convex", **bent).slopes.tolist()
    [0.4, 1.6]
    """

    output: str
    """Output whose curve it is."""
    shape: str
    """convex, concave, or monotone."""
    inputs: np.ndarray
    """(k,) inputs, rising: the first and the last are the ends of what the trace visited."""
    linearised: np.ndarray
    """(k,) v at these inputs, rising."""
    slope_band: np.ndarray
    """(k − 1, 2) lowest and highest slope that the trace allows over the curve's own, in each piece."""
    deviation: np.ndarray
    """(k,) standard deviation of the output around the curve at these inputs [the output's unit]."""
    level_band: np.ndarray | None = None
    """(k, 2) lowest and highest v that the trace allows at these inputs; null: v is exact."""

    def __post_init__(self) -> None:
        k = np.size(self.inputs)
        if self.level_band is None:
            msgspec.structs.force_setattr(self, "level_band", np.column_stack([self.linearised] * 2))
        shapes = {"inputs": (1, k), "linearised": (1, k), "slope_band": (k - 1, 2), "deviation": (1, k)}
        for name, shape in (shapes | {"level_band": (k, 2)}).items():
            value = np.array(dense_matrix(name, getattr(self, name), shape))
            value = value if name.endswith("_band") else value[0]
            value.setflags(write=False)
            msgspec.structs.force_setattr(self, name, value)
        if k < 2 or not all((np.diff(each) > 0.0).all() for each in (self.inputs, self.linearised)):
            raise InvalidValue("curve", self.linearised.tolist(), "two or more inputs and their images, both rising")
        if not (self.slope_band[:, 0] > 0.0).all() or not (self.slope_band[:, 0] <= self.slope_band[:, 1]).all():
            raise InvalidValue("slope_band", self.slope_band.tolist(), "a lowest ratio above 0 and a highest")

    @property
    def slopes(self) -> np.ndarray:
        """(k − 1,) dv/du of each piece."""
        return np.diff(self.linearised) / np.diff(self.inputs)

    def linear(self, inputs: np.ndarray) -> np.ndarray:
        """V of inputs; beyond the ends that of the end."""
        return np.interp(inputs, self.inputs, self.linearised)

    def inverse(self, linearised: np.ndarray) -> np.ndarray:
        """Inputs of v; beyond the ends the end."""
        return np.interp(linearised, self.linearised, self.inputs)


class IdentifiedModel(Plotted, msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, eq=False):
    """A linear model with noise, around the operating point at which it was identified.

        x₊ = A x + B (u − u₀) + K e,  y − y₀ = C x + D (u − u₀) + e,  E ee' = V

    Parameters
    ----------
    schema : str
        Version of the file format.
    A, B, C, D : array_like, shapes (n, n), (n, m), (p, n), (p, m)
        Matrices of the model.
    dt : float
        Sampling interval [s].
    inputs, outputs : tuple of str
        Names of the m inputs and p outputs; by default u1, u2, ... and y1, y2, ...
    input_units, output_units : tuple of str
        Units of these signals, such as "Mbit/s" and "ms"; empty where unknown.
    input_offset, output_offset : array_like, shapes (m,), (p,)
        u₀ and y₀; zeros by default.
    input_range : array_like, shape (m, 2), optional
        Lowest and highest value of each input in the data.
    output_range : array_like, shape (p, 2), optional
        Lowest and highest value of each output that the model was seen at: those of its simulation of the data, within
        the measured ones.
    K : array_like, shape (n, p), optional
        Kalman gain of the innovation form. (In the CONNET paper: G; its K is a state feedback.)
    innovation_covariance : array_like, shape (p, p), optional
        V, symmetric and positive semidefinite.
    curve : InputCurve, optional
        Static curve of the one input: A, B, C, D and u₀ are then of v = f(u).
    identification : Identification, optional
        How the model was identified.
    provenance : Provenance, optional
        How the model was made.

    Raises
    ------
    InvalidValue
        A shape that doesn't fit, an entry that isn't finite, a repeated name, K without V.

    Examples
    --------
    >>> import netctrl
    >>> model = netctrl.read("connet-paper")
    >>> model.inputs, model.input_units, model.outputs
    (('R',), ('Mbit/s',), ('delay', 'jitter'))
    >>> model.state_space.n_states
    2

    References
    ----------
    CONNET paper, eq. (1); van Overschee and De Moor, Subspace Identification for Linear Systems, 1996.
    """

    schema: Literal["netctrl.model/1"] = "netctrl.model/1"
    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    dt: float
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    input_units: tuple[str, ...] = ()
    output_units: tuple[str, ...] = ()
    input_offset: np.ndarray | None = None
    output_offset: np.ndarray | None = None
    input_range: np.ndarray | None = None
    output_range: np.ndarray | None = None
    K: np.ndarray | None = None
    innovation_covariance: np.ndarray | None = None
    curve: InputCurve | None = None
    identification: Identification | None = None
    provenance: Provenance | None = None

    def __post_init__(self) -> None:
        dt = checked_number("dt", self.dt, "a sampling interval above 0 in seconds", above=0.0)
        plant = StateSpace(self.A, self.B, self.C, self.D, dt)
        n, m, p = plant.n_states, plant.n_inputs, plant.n_outputs
        put = msgspec.structs.force_setattr
        for name, value in zip("ABCD", (plant.A, plant.B, plant.C, plant.D), strict=True):
            put(self, name, dense_matrix(name, value))
        put(self, "dt", dt)
        read_fields(self, inputs=_names("u", m), outputs=_names("y", p))
        read_fields(self, input_units=_units(m), output_units=_units(p))
        put(self, "input_offset", _vector("input_offset", self.input_offset, m))
        put(self, "output_offset", _vector("output_offset", self.output_offset, p))
        if self.input_range is not None:
            put(self, "input_range", _range("input", dense_matrix("input_range", self.input_range, (m, 2))))
        if self.output_range is not None:
            put(self, "output_range", _range("output", dense_matrix("output_range", self.output_range, (p, 2))))
        if (self.K is None) != (self.innovation_covariance is None):
            raise InvalidValue("K and innovation_covariance", "one of them", "both or neither")
        if self.K is not None:
            put(self, "K", dense_matrix("K", self.K, (n, p)))
            put(self, "innovation_covariance", covariance("innovation_covariance", self.innovation_covariance, p))
        if self.curve is not None and (m != 1 or self.curve.output not in self.outputs):
            raise InvalidValue("curve", self.curve.output, f"a curve of one input and one of {', '.join(self.outputs)}")
        for name, kind in (("curve", InputCurve), ("identification", Identification), ("provenance", Provenance)):
            if not isinstance(value := getattr(self, name), kind | None):
                raise InvalidValue(name, value, f"{kind.__name__} or None")
        draws = None if self.identification is None else self.identification.steady_gain_draws
        if draws is not None and (draws.ndim != 3 or draws.shape[1:] != (p, m) or not len(draws)):
            raise InvalidValue("steady_gain_draws", f"shape {draws.shape}", f"gains of shape (k, {p}, {m})")
        offsets = ("input_offset", "output_offset", "input_range", "output_range")
        _fix(self, *"ABCD", *offsets, "K", "innovation_covariance")

    @property
    def state_space(self) -> StateSpace:
        """A, B, C, D and dt as a StateSpace, in deviations from u₀ and y₀."""
        return StateSpace(self.A, self.B, self.C, self.D, self.dt)

    def simulate(self, u: Any, x0: Any = None) -> np.ndarray:
        """Outputs from the inputs alone, in the trace's units.

        Parameters
        ----------
        u : array_like, shape (T, m)
            Inputs; (T,) for one.
        x0 : array_like, shape (n,), optional
            Initial state; by default 0, the operating point.

        Returns
        -------
        ndarray, shape (T, p)

        Raises
        ------
        InvalidValue
            Another shape, or a value that isn't finite.
        """
        return ANSWERS["simulate"](self, u, x0)

    def predict(self, u: Any, y: Any, horizon: float = 1, x0: Any = None) -> np.ndarray:
        """Outputs predicted from the inputs and from the outputs at least `horizon` samples before.

        The filter has the Kalman gain K; without one this is the simulation.

        Parameters
        ----------
        u, y : array_like, shapes (T, m), (T, p)
            Inputs and measured outputs; (T,) for one.
        horizon : int or math.inf
            Samples ahead; inf: the simulation.
        x0 : array_like, shape (n,), optional
            Initial state of the filter; by default 0, the operating point.

        Returns
        -------
        ndarray, shape (T, p)

        Raises
        ------
        InvalidValue
            Another shape, a value that isn't finite, or a horizon below 1.

        References
        ----------
        Ljung, System Identification, 1999, section 3.2.
        """
        return ANSWERS["predict"](self, u, y, horizon, x0)

    def to_json(self) -> str:
        """Text of a model file: strict JSON that ends with a newline."""
        return array_json(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file atomically, so that no reader sees a part of it.

        Parameters
        ----------
        path : path
            Where to write; an existing file is replaced.
        """
        write_atomically(path, self.to_json().encode())

    def _shown(self) -> Rows:
        rows = [
            ("states", str(len(self.A))),
            ("inputs", ", ".join(map(_with_unit, self.inputs, self.input_units))),
            ("outputs", ", ".join(map(_with_unit, self.outputs, self.output_units))),
            ("dt", f"{self.dt:g} s"),
            ("poles", ", ".join(f"{pole:.6g}" for pole in np.linalg.eigvals(self.A)[:8])),
        ]
        if (curve := self.curve) is not None:
            (low, *_, high), slopes = curve.inputs, curve.slopes
            rows.append(
                (
                    "curve",
                    f"{curve.shape}, {self.inputs[0]} {low:.4g} to {high:.4g}; the steepest slope is"
                    f" {slopes.max() / slopes.min():.3g} times the flattest",
                )
            )
        if self.identification is not None:
            found = self.identification
            rows.append(("found by", f"{found.method} from {found.samples} samples"))
            rows.append(("VAF", ", ".join(f"{vaf:.2f} %" for vaf in found.vaf)))
            rows += [("warning", warning) for warning in found.warnings]
        return "IdentifiedModel", rows


def read_model(path: str | os.PathLike[str]) -> IdentifiedModel:
    """Read a model file strictly; A, B, C, D and dt are enough.

    Raises
    ------
    FileError
        The file can't be read, isn't JSON, or has an unknown, missing or unusable key, which the message names.
    """
    content = read_json(path, what="model file", max_bytes=_MAX_BYTES)
    try:
        return msgspec.convert(content, IdentifiedModel, dec_hook=array)
    except msgspec.ValidationError as error:
        raise FileError(path, f"not a model: {explained(error, content, IdentifiedModel)}") from None


def model_json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of model files; published as data/schema/model-1.json."""
    return json_schema(IdentifiedModel, "netctrl.model/1")


def _fix(record: msgspec.Struct, *fields: str) -> None:
    """Make arrays read-only."""
    for field in fields:
        if (value := getattr(record, field)) is not None:
            value = np.array(value, dtype=float)
            value.setflags(write=False)
            msgspec.structs.force_setattr(record, field, value)


def _names(prefix: str, count: int):
    def read(field: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple):
            raise InvalidValue(field, value, f"{count} different names")
        found = tuple(label(field, name) for name in value) or tuple(f"{prefix}{i + 1}" for i in range(count))
        if len(found) != count or len(set(found)) < count:
            raise InvalidValue(field, value, f"{count} different names")
        return found

    return read


def _units(count: int):
    def read(field: str, value: Any) -> tuple[str, ...]:
        found = texts(field, value) or ("",) * count
        if len(found) != count or not all(len(unit) <= 32 and unit.isprintable() for unit in found):
            raise InvalidValue(field, value, f"{count} units of at most 32 printable characters")
        return found

    return read


def _vector(name: str, value: Any, count: int) -> np.ndarray:
    return np.zeros(count) if value is None else dense_matrix(name, value, (1, count))[0]


def _range(kind: str, found: np.ndarray) -> np.ndarray:
    if (found[:, 0] > found[:, 1]).any():
        takes = f"lowest and highest value of each {kind}, in this order"
        raise InvalidValue(f"{kind}_range", found.tolist(), takes)
    return found


def _with_unit(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name
