"""Models of some segments by each way from data to a model, each computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

import numpy as np

from netctrl.ident.descent.innovations import noise_of
from netctrl.ident.descent.likelihood import Innovations, by_likelihood, joined
from netctrl.ident.descent.output_error import ENOUGH, MOST_STEPS, Fitted, fit, refine
from netctrl.ident.subspace.estimate import candidates, stable_versions
from netctrl.ident.subspace.lq_reduction import LqReduction, Segment, about, first_samples, lq_reduce
from netctrl.ident.subspace.methods import Predictor, Subspace, arx, predictor, subspace
from netctrl.ident.validate import Matrices, simulated

Start = Literal["n4sid", "moesp", "cva", "pbsid", "arx"]
Refinement = Literal["none", "simulation", "likelihood"]
Noise = int | Literal["gain"] | None

DESCENDED = 20_000
"""Samples for descents and for the comparison of stable versions."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way from data to a model."""

    start: Start
    """Subspace method that gives A and C, or the first model of a descent; for "arx" the order is p times the lags."""
    order: int
    refinement: Refinement = "none"
    noise: Noise = None
    """Number of noise states beside the model's own; "gain": a Kalman gain for the model's own; None: no noise."""
    polish: int = 0
    """Steps towards the greatest likelihood of all of it, from the model with noise states."""
    rough: bool = False
    """Whether a model by likelihood, or that of the noise, is the descent's start."""

    @property
    def states(self) -> int:
        """States of the whole model."""
        return self.order + (self.noise if isinstance(self.noise, int) else 0)

    def __str__(self) -> str:
        parts: list[str] = [self.start]
        if self.refinement != "none":
            parts.append("refined" if self.refinement == "simulation" else "likelihood")
        if isinstance(self.noise, int):
            parts.append(f"{self.noise} noise state{'s' * (self.noise > 1)}")
        if self.polish:
            parts.append(f"{self.polish} steps of the likelihood")
        return ", ".join(parts)


@dataclass(slots=True)
class Learner:
    """Models of some scaled segments."""

    segments: Sequence[Segment]
    horizon: int
    feedthrough: bool
    stable: bool = True
    enough: float = ENOUGH
    """Relative decrease of an error below which descents stop."""
    data_: LqReduction | None = None
    filled: Sequence[Segment] | None = None
    """The segments with values in the place of missing outputs."""
    _spaces: dict[Start, Subspace | Predictor] = field(default_factory=dict)
    _fitted: dict[Candidate, tuple[str, Fitted] | None] = field(default_factory=dict)
    _made: dict[Candidate, Innovations | None] = field(default_factory=dict)
    _inner: dict[Candidate, Learner] = field(default_factory=dict)

    @property
    def direct(self) -> int:
        """Number of inputs with a direct term."""
        return self.segments[0][0].shape[1] if self.feedthrough else 0

    @property
    def data(self) -> LqReduction:
        """The segments, compressed."""
        if self.data_ is None:
            self.data_ = lq_reduce(self.segments if self.filled is None else self.filled, self.horizon)
        return self.data_

    def space(self, start: Start) -> Subspace | Predictor:
        """The subspace that a start's models of all orders are from."""
        if start not in self._spaces:
            found = predictor(self.data, self.feedthrough) if start == "pbsid" else subspace(self.data, start)
            self._spaces[start] = found
        return self._spaces[start]

    def model(self, wanted: Candidate) -> Innovations | None:
        """The candidate's model; None where the data give none. Without noise, V is NaN."""
        if wanted not in self._made:
            self._made[wanted] = self._model(wanted)
        return self._made[wanted]

    def fitted(self, wanted: Candidate) -> tuple[str, Fitted] | None:
        """Action of the stability guard, and A, C of least simulation error with their B, D, refined where wanted."""
        wanted = Candidate(wanted.start, wanted.order, wanted.refinement)
        if wanted not in self._fitted:
            self._fitted[wanted] = self._fit(wanted)
        return self._fitted[wanted]

    def _fit(self, wanted: Candidate) -> tuple[str, Fitted] | None:
        if wanted.refinement == "simulation":
            found = self.fitted(replace(wanted, refinement="none"))
            if found is None:
                return None
            some = first_samples(self.segments, DESCENDED)
            best = refine(fit(found[1].A, found[1].C, some, self.direct), some, self.direct, enough=self.enough)
            return found[0], self._on_all(best, some)
        space, n = self.space(wanted.start), wanted.order
        if space.most < n:
            return None
        if isinstance(space, Predictor):
            (A, _, C, _), _ = space.matrices(n)
            made = [(said, version, C) for said, version in stable_versions(A)]
        else:
            made = candidates(space, n, self.feedthrough)
        some = first_samples(self.segments, DESCENDED)
        fits = [(said, fit(A, C, some, self.direct)) for said, A, C in made]
        said, best = min(fits, key=lambda pair: pair[1].error)
        return said, self._on_all(best, some)

    def _on_all(self, found: Fitted, some: Sequence[Segment]) -> Fitted:
        whole = sum(len(u) for u, _ in some) == sum(len(u) for u, _ in self.segments)
        return found if whole else fit(found.A, found.C, self.segments, self.direct)

    def _model(self, wanted: Candidate) -> Innovations | None:
        if wanted.polish:
            start = self.model(replace(wanted, polish=0))
            return None if start is None else self._descended((start.matrices, start.K), wanted.polish)
        if wanted.refinement == "likelihood":
            return self._likelihood(wanted)
        found = self.fitted(wanted)
        if found is None:
            return None
        A, B, C, D, offset = (getattr(found[1], name) for name in ("A", "B", "C", "D", "offset"))
        K, V = np.zeros(C.T.shape), np.full((len(C), len(C)), np.nan)
        if wanted.noise == "gain":
            noise = noise_of((A, B, C, D), about(self.segments, offset), self.data)
            if noise is not None:
                K, V = noise.K, noise.V
        if not isinstance(wanted.noise, int):
            return Innovations(A, B, C, D, K, V, offset)
        noise = self._errors(wanted).model(Candidate("pbsid", wanted.noise, "likelihood", rough=wanted.rough))
        return None if noise is None else joined((A, B, C, D), offset, noise)

    def _errors(self, wanted: Candidate) -> Learner:
        """Learner of what the simulation of a candidate leaves."""
        alone = Candidate(wanted.start, wanted.order, wanted.refinement)
        if alone not in self._inner:
            found = cast(tuple[str, Fitted], self.fitted(alone))[1]
            model = found.A, found.B, found.C, found.D
            told = [found.offset + simulated(model, [each]) for each in about(self.segments, found.offset)]

            def left(given: Sequence[Segment]) -> list[Segment]:
                return [(u[:, :0], y - each) for (u, y), each in zip(given, told, strict=True)]

            filled = None if self.filled is None else left(self.filled)
            self._inner[alone] = Learner(left(self.segments), self.horizon, False, enough=self.enough, filled=filled)
        return self._inner[alone]

    def _likelihood(self, wanted: Candidate) -> Innovations | None:
        if wanted.start == "arx":
            lags, rest = divmod(wanted.order, self.data.n_outputs)
            return None if rest or lags > self.horizon else self._descended(arx(self.data, lags, self.feedthrough), 0)
        space = self.space(wanted.start)
        if space.most < wanted.order:
            return None
        if isinstance(space, Predictor):
            start = space.matrices(wanted.order)
        else:
            model = self.model(Candidate(wanted.start, wanted.order, noise="gain"))
            if model is None:
                return None
            start = model.matrices, model.K
        return self._descended(start, 0 if wanted.rough else MOST_STEPS)

    def _descended(self, start: tuple[Matrices, np.ndarray], steps: int) -> Innovations | None:
        some = first_samples(self.segments, DESCENDED)
        found = by_likelihood(
            start,
            some,
            feedthrough=self.feedthrough,
            stable=self.stable,
            steps=steps,
            enough=self.enough,
            filled=self.filled and first_samples(self.filled, DESCENDED),
        )
        if found is None or not self.stable or np.abs(np.linalg.eigvals(found.A)).max(initial=0.0) < 1.0:
            return found
        return self._moved_inside(found)

    def _moved_inside(self, found: Innovations) -> Innovations | None:
        """The model with stable poles, such as an integrator's at 1.0002, and the best K for these."""
        some = about(first_samples(self.segments, DESCENDED), found.offset)
        made = []
        for _, A in stable_versions(found.A):
            noise = noise_of((A, found.B, found.C, found.D), some, self.data, found.K)
            if noise is not None:
                made.append(replace(found, A=A, K=noise.K, V=noise.V))
        return min(made, key=lambda each: each.loss, default=None)
