"""Result of an identification: the model, its simulated outputs, the chosen order, the uncertainty of the poles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.register import ANSWERS
from netctrl.model.answers import Bode, FitComparison, Residuals, StepResponse, by_name
from netctrl.model.identified import Identification, IdentifiedModel
from netctrl.model.io.display import Plotted, Rows
from netctrl.model.signals import SignalTrace


def central(draws: np.ndarray) -> tuple[float, float]:
    """Lowest and highest of nine in ten draws of a gain, shape (k,)."""
    low, high = np.quantile(draws, (0.05, 0.95), method="weibull")
    return float(low), float(high)


def settled(draws: np.ndarray) -> bool:
    """Whether nine in ten draws of a gain, shape (k,), have one sign and differ by less than a factor of two."""
    low, high = sorted(map(abs, found := central(draws)))
    return found[0] * found[1] > 0.0 and high < 2.0 * low


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OrderChoice:
    """Order found in a trace, with the orders that two other rules give."""

    order: int
    """Number of canonical correlations above the noise."""
    noise_edge: float
    """Largest correlation that noise alone would give."""
    correlations: np.ndarray
    """Canonical correlations of past and future, in decreasing order."""
    by_gap: int
    """Order at the largest drop of their logarithms."""
    by_svc: int
    """Order by Bauer's singular value criterion."""
    confidence: float | None
    """Share of random halves of the trace that give the same order; None for a trace too short to halve."""


class Alternative(NamedTuple):
    """A way to a model, and its fit on stretches of the trace that it was not made from."""

    name: str
    """Method, refinement and noise states."""
    states: int
    """Number of states."""
    simulated: float
    """Mean over the outputs of the VAF by simulation [%]; -inf where the way gives no stable model."""
    predicted: float
    """VAF of the prediction one sample ahead [%], geometric mean of what is left over the outputs; -inf without one."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Draws:
    """Models that a trace allows around the identified one, in the trace's units, each in coordinates of its own.

    Examples
    --------
    A gain of 2 or 2.2 from a trace that allows poles at .5 and .55:

    >>> import numpy as np
    >>> from netctrl.model.fit import Draws
    >>> some = Draws(A=np.array([[[0.5]], [[0.55]]]), B=np.ones((2, 1, 1)), C=np.ones((2, 1, 1)), D=np.zeros((2, 1, 1)))
    >>> [round(float(gain), 2) for gain in some.steady_gains().ravel()]
    [2.0, 2.22]
    >>> low, high = some.band(some.steps(10))
    >>> low.shape
    (10, 1, 1)
    """

    A: np.ndarray
    """(k, n, n)."""
    B: np.ndarray
    """(k, n, m)."""
    C: np.ndarray
    """(k, p, n)."""
    D: np.ndarray
    """(k, p, m)."""

    def __post_init__(self) -> None:
        for array in (self.A, self.B, self.C, self.D):
            array.setflags(write=False)

    def poles(self, near: np.ndarray) -> np.ndarray:
        """(k, n) poles, each column those nearest to one of n given poles, by the least sum of squared distances."""
        from scipy.optimize import linear_sum_assignment

        found = np.linalg.eigvals(self.A).astype(complex)
        cost = np.abs(near[:, None] - found[:, None, :]) ** 2
        return np.array([each[linear_sum_assignment(far)[1]] for each, far in zip(found, cost, strict=True)])

    def steady_gains(self) -> np.ndarray:
        """(k, p, m) [output units per input unit]."""
        return self.responses(np.zeros(1))[:, 0].real

    def responses(self, frequencies: np.ndarray) -> np.ndarray:
        """(k, f, p, m) G at frequencies (f,) [radians per sample], complex [output units per input unit]."""
        z = np.exp(1j * np.asarray(frequencies, float))[:, None, None] * np.eye(self.A.shape[1])
        return self.C[:, None] @ np.linalg.solve(z - self.A[:, None], self.B[:, None].astype(complex)) + self.D[:, None]

    def steps(self, samples: int) -> np.ndarray:
        """(k, samples, p, m) responses to a unit step of each input at sample 0 [output units per input unit]."""
        x, found = np.zeros_like(self.B), []
        for _ in range(samples):
            found.append(self.C @ x + self.D)
            x = self.A @ x + self.B
        return np.stack(found, axis=1)

    @staticmethod
    def band(values: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Low and high of real values (k, ...) or of complex ones' parts, which a share `level` of draws is between."""
        ends = (0.5 - level / 2.0, 0.5 + level / 2.0)
        low, high = np.quantile(values.real, ends, axis=0, method="weibull")
        if np.iscomplexobj(values):
            parts = np.quantile(values.imag, ends, axis=0, method="weibull")
            low, high = low + 1j * parts[0], high + 1j * parts[1]
        return low, high


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class IdentificationResult(Plotted):
    """An identified model, the data that it was identified from, and its fit."""

    model: IdentifiedModel
    """The identified model."""
    trace: SignalTrace
    """Data that the model was identified from."""
    simulated: np.ndarray
    """(T, p) outputs simulated from the inputs alone and each segment's estimated initial state."""
    predicted_vaf: np.ndarray | None
    """(p,) VAF of the prediction one sample ahead [%], from each segment's initial state of the predictor; None without
    a Kalman gain."""
    held_out: SignalTrace | None
    """Data kept for validation; None if there was none."""
    held_out_simulated: np.ndarray | None
    """Outputs simulated on the held-out data."""
    held_out_predicted_vaf: np.ndarray | None
    """(p,) VAF of the prediction one sample ahead on the held-out data [%]."""
    order: OrderChoice | None
    """How the order was chosen; None where it was given."""
    draws: Draws | None = None
    """200 models that the trace allows; None where it is too short for the number of parameters."""
    alternatives: tuple[Alternative, ...] = ()
    """Ways that were compared, the best prediction first; empty where the trace is too short to leave stretches out."""

    def __post_init__(self) -> None:
        for name in ("simulated", "predicted_vaf", "held_out_simulated", "held_out_predicted_vaf"):
            array = getattr(self, name)
            if array is not None:
                array.setflags(write=False)

    @property
    def poles(self) -> np.ndarray:
        """Eigenvalues of A, slowest first."""
        found = np.linalg.eigvals(self.model.A)
        return found[np.lexsort((-found.imag, -np.abs(found)))]

    @property
    def how(self) -> Identification:
        """Method, order, fit and warnings."""
        found = self.model.identification
        if found is None:  # only models that were not identified lack it
            raise ValueError("the model of an IdentificationResult has its identification")
        return found

    @property
    def verdict(self) -> str:
        """Share of the outputs' variance that the model explains, as one sentence: on held-out data where there are."""
        how = self.how
        shares = (
            (how.held_out_vaf, "of the held-out part"),
            (how.left_out_vaf, "of stretches left out"),
            (how.vaf, "of the trace that it is from"),
        )
        vaf, where = next((vaf, where) for vaf, where in shares if vaf is not None)
        return f"explains {by_name(self.model.outputs, vaf)} {where}"

    def compare(self, *others: Any, horizon: float = 10) -> FitComparison:
        """VAF of this and other models: simulated, predicted one sample ahead and `horizon` samples ahead.

        Parameters
        ----------
        *others : IdentificationResult, IdentifiedModel or SignalTrace
            Models with the same signals, and at most one trace: by default the held-out part, else the whole trace.
        horizon : int or math.inf
            Samples ahead of the longer prediction.

        Returns
        -------
        FitComparison

        Raises
        ------
        InvalidValue
            Other signals, another sampling interval, missing outputs, or two traces.
        """
        return ANSWERS["compare"](self, others, horizon)

    def residuals(self, trace: SignalTrace | None = None) -> Residuals:
        """Test whether what the model leaves is noise: white, and not explained by past inputs.

        Parameters
        ----------
        trace : SignalTrace, optional
            Data with the model's signals; by default those that it was identified from.

        Returns
        -------
        Residuals

        Raises
        ------
        InvalidValue
            Other signals, another sampling interval, or missing outputs.

        References
        ----------
        Ljung and Box 1978; Ljung, System Identification, 1999, section 16.6.
        """
        return ANSWERS["residuals"](self, trace)

    def bode(self, frequencies: Any = None) -> Bode:
        """Frequency response of each output to each input (of the curve's v, where the model has a curve).

        Parameters
        ----------
        frequencies : array_like, optional
            Frequencies above 0 and up to half the sampling rate [Hz].

        Returns
        -------
        Bode

        Raises
        ------
        InvalidValue
            Frequencies out of range.
        """
        return ANSWERS["bode"](self, frequencies)

    def step(self, samples: int | None = None) -> StepResponse:
        """Response of each output to a unit step of each input (of the curve's v, where the model has a curve).

        Parameters
        ----------
        samples : int, optional
            Length; by default until the slowest pole has decayed, at most 1000.

        Returns
        -------
        StepResponse

        Raises
        ------
        InvalidValue
            Not a number of samples.
        """
        return ANSWERS["step"](self, samples)

    def table(self) -> tuple[str, list[tuple[str, str]], list[str]]:
        """Title, rows of (name, text) and notes."""
        model, how = self.model, self.how
        title = f"{how.method}, order {how.order}: {', '.join(model.inputs)} -> {', '.join(model.outputs)}"
        segments = f" in {how.segments} segments" if how.segments > 1 else ""
        rows = [
            ("samples", f"{how.samples}{segments}, every {model.dt:g} s; horizon {how.horizon}"),
            ("poles", ", ".join(_pole(pole) for pole in self.poles[: how.order - sum(how.delays)])),
        ]
        late = zip(model.inputs, how.delays, strict=False)
        if told := [f"{name} by {d} samples ({d * model.dt:.4g} s)" for name, d in late if d]:
            rows.append(("delayed", ", ".join(told)))
        shares = (
            ("VAF, held out", how.held_out_vaf),
            ("VAF, held out, one step ahead", self.held_out_predicted_vaf),
            ("VAF, left out", how.left_out_vaf),
            ("VAF, left out, one step ahead", how.left_out_predicted_vaf),
            ("VAF, simulated", how.vaf),
            ("VAF, one step ahead", self.predicted_vaf),
        )
        rows += [(name, by_name(model.outputs, vaf)) for name, vaf in shares if vaf is not None]
        rows.append(("residuals", self.residuals().verdict))
        if len(self.alternatives) > 1:
            rows.append(("compared", f"{len(self.alternatives)} ways to a model, on stretches left out"))
        if self.draws is not None:
            spread = self.pole_spread()[: how.order - sum(how.delays)]
            rows.append(("poles' deviation", ", ".join(f"{value:.2g}" for value in spread)))
        if (choice := self.order) is not None:
            sure = "" if choice.confidence is None else f", in {choice.confidence:.0%} of the trace's halves"
            rows.append(("order", f"{choice.order} by noise{sure}; {choice.by_gap} by gap, {choice.by_svc} by SVC"))
        return title, rows, [f"warning: {warning}" for warning in how.warnings]

    def pole_spread(self) -> np.ndarray:
        """Root mean square distance of the drawn poles from their mean, slowest first, (n,); NaN without draws."""
        if self.draws is None:
            return np.full(len(self.model.A), np.nan)
        found = self.draws.poles(self.poles)
        return np.sqrt(np.mean(np.abs(found - found.mean(axis=0)) ** 2, axis=0))

    def _shown(self) -> Rows:
        title, rows, notes = self.table()
        return title, rows + [("", note) for note in notes]


def _pole(pole: complex) -> str:
    if pole.imag == 0.0:
        return f"{pole.real:.6g}"
    return f"{pole.real:.6g} {'+' if pole.imag > 0 else '-'} {abs(pole.imag):.6g}j"
