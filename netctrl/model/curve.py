"""Static curve in front of a linear model: the table of a Hammerstein model, with bands of its slope."""

from __future__ import annotations

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.model.io.matrix import dense_matrix


class InputCurve(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, eq=False):
    """Curve v = f(u) of a model's one input, piecewise linear between k inputs; the model is linear in v.

    v is in the unit of u, and at both ends v = u. Beyond the ends nothing is known.

    Raises
    ------
    InvalidValue
        Inputs or their images that don't rise, other lengths, bands that don't hold the curve's own slope.

    Examples
    --------
    >>> from netctrl.model.curve import InputCurve
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

    def __post_init__(self) -> None:
        k = np.size(self.inputs)
        shapes = {"inputs": (1, k), "linearised": (1, k), "slope_band": (k - 1, 2), "deviation": (1, k)}
        for name, shape in shapes.items():
            value = np.array(dense_matrix(name, getattr(self, name), shape))
            value = value if name == "slope_band" else value[0]
            value.setflags(write=False)
            msgspec.structs.force_setattr(self, name, value)
        if k < 2 or not all((np.diff(each) > 0.0).all() for each in (self.inputs, self.linearised)):
            raise InvalidValue("curve", self.linearised.tolist(), "two or more inputs and their images, both rising")
        if not (0.0 < self.slope_band[:, 0]).all() or not (self.slope_band[:, 0] <= self.slope_band[:, 1]).all():
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
