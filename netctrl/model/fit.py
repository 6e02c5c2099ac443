"""What an identification gives beside its model: what was simulated, the order chosen, how sure the poles are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.model.identified import Identification, IdentifiedModel
from netctrl.model.io.display import html_table, plot
from netctrl.model.signals import SignalTrace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["IdentificationResult", "OrderChoice"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OrderChoice:
    """The order that a trace shows, and what two other rules say of it."""

    order: int
    """Canonical correlations above the noise."""
    noise_edge: float
    """The greatest correlation that noise alone would give."""
    correlations: np.ndarray
    """Canonical correlations of past and future, falling."""
    by_gap: int
    """Where their logarithms drop most."""
    by_svc: int
    """By Bauer's singular value criterion."""
    confidence: float | None
    """Share of random halves of the trace that show the same order; None for one too short to halve."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class IdentificationResult:
    """A model with the data it is of and what it makes of them."""

    model: IdentifiedModel
    trace: SignalTrace
    """What the model was made from."""
    simulated: np.ndarray
    """(T, p) outputs from the inputs alone and each segment's estimated initial state."""
    predicted_vaf: np.ndarray | None
    """(p,) of the prediction one sample ahead [%], from each segment's initial state of the predictor; None without a
    Kalman gain."""
    held_out: SignalTrace | None
    held_out_simulated: np.ndarray | None
    held_out_predicted_vaf: np.ndarray | None
    """(p,) of the prediction one sample ahead on the held-out data [%]."""
    order: OrderChoice | None
    """None where the order was given."""
    pole_draws: np.ndarray | None
    """(draws, n) poles of block-bootstrap draws; None where none were asked for."""

    def __post_init__(self) -> None:
        for name in ("simulated", "predicted_vaf", "held_out_simulated", "held_out_predicted_vaf", "pole_draws"):
            array = getattr(self, name)
            if array is not None:
                array.setflags(write=False)

    @property
    def poles(self) -> np.ndarray:
        """Eigenvalues of A, the slowest first."""
        found = np.linalg.eigvals(self.model.A)
        return found[np.lexsort((-found.imag, -np.abs(found)))]

    @property
    def how(self) -> Identification:
        """Method, order, fit and warnings."""
        found = self.model.identification
        if found is None:  # a model without it is of no identification
            raise ValueError("the model of an IdentificationResult has its identification")
        return found

    def table(self) -> tuple[str, list[tuple[str, str]], list[str]]:
        """A title, (name, text) rows and notes, for people."""
        model, how = self.model, self.how
        title = f"{how.method}, order {how.order}: {', '.join(model.inputs)} -> {', '.join(model.outputs)}"
        segments = f" in {how.segments} segments" if how.segments > 1 else ""
        rows = [
            ("samples", f"{how.samples}{segments}, every {model.dt:g} s; horizon {how.horizon}"),
            ("poles", ", ".join(_pole(pole) for pole in self.poles)),
            ("VAF, simulated", _by_name(model.outputs, how.vaf)),
        ]
        if how.held_out_vaf is not None:
            rows.append(("VAF, held out", _by_name(model.outputs, how.held_out_vaf)))
        if self.predicted_vaf is not None:
            rows.append(("VAF, one step ahead", _by_name(model.outputs, self.predicted_vaf)))
        if self.held_out_predicted_vaf is not None:
            rows.append(("VAF, held out, one step ahead", _by_name(model.outputs, self.held_out_predicted_vaf)))
        if self.pole_draws is not None:
            spread = ", ".join(f"{value:.2g}" for value in self.pole_spread())
            rows.append(("poles' std (bootstrap)", spread))
        if (choice := self.order) is not None:
            sure = "" if choice.confidence is None else f", in {choice.confidence:.0%} of the trace's halves"
            rows.append(("order", f"{choice.order} by noise{sure}; {choice.by_gap} by gap, {choice.by_svc} by SVC"))
        return title, rows, [f"warning: {warning}" for warning in how.warnings]

    def pole_spread(self) -> np.ndarray:
        """(n,) root mean square distance of the drawn poles from their mean, the slowest first; NaN without draws."""
        if self.pole_draws is None:
            return np.full(len(self.model.A), np.nan)
        return np.sqrt(np.mean(np.abs(self.pole_draws - self.pole_draws.mean(axis=0)) ** 2, axis=0))

    def plot(self, **options: Any) -> Figure:
        """Fit, singular values and poles, as a matplotlib Figure (`netctrl.register.FIGURES`)."""
        return plot(self, **options)

    def _repr_html_(self) -> str:
        title, rows, notes = self.table()
        return html_table(title, rows + [("", note) for note in notes])


def _pole(pole: complex) -> str:
    if pole.imag == 0.0:
        return f"{pole.real:.6g}"
    return f"{pole.real:.6g} {'+' if pole.imag > 0 else '-'} {abs(pole.imag):.6g}j"


def _by_name(names: tuple[str, ...], values: np.ndarray) -> str:
    return ", ".join(f"{name} {value:.2f} %" for name, value in zip(names, values, strict=True))
