"""Choice of a model by blocked validation: starts, orders, refinements and noise are compared on stretches left out.

Errors on the data that a model is from fall with every state; on stretches left out they rise again. Of models that are
as good there, the one with the fewest states is taken.

Source: Ljung 1999, section 16.4 (cross validation); Hastie, Tibshirani and Friedman 2009, section 7.10 (the smallest
of those as good as the best).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log
from typing import Literal

import numpy as np

from netctrl.core.names import Focus
from netctrl.ident.search.learner import DESCENDED, Candidate, Learner, Start
from netctrl.ident.subspace.lq_reduction import Segment, about, columns_of, first_samples
from netctrl.ident.validate import predicted, simulated
from netctrl.model.fit import Alternative

FOCUSES: tuple[Focus, ...] = ("both", "simulation", "prediction")

_STARTS: tuple[Start, ...] = ("n4sid", "cva", "pbsid")
_FOLDS = 3
_STRETCH = 2_000  # samples of each of them in a long trace
_ORDERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20)
_USUAL, _MOST_STATES, _LAGS = 8, 24, 6
_AS_GOOD = 0.5  # over √samples: part of the least error variance within which the smaller model is taken
_KEPT = 0.003, 0.25, 0.025  # how much worse a better predictor may simulate: see `_as_good`
_OverOrders = Callable[[Callable[[int], "Score"], Literal["simulation", "prediction"]], "list[Score]"]
_HEAD = 0.25  # share of a stretch left out from which the initial state is estimated
_EXACT = 1e-16  # relative to the outputs' variance: below it models don't differ
_LONG_ENOUGH = 4  # samples a state of a stretch that is simulated


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """Left-out error variances of a candidate, relative to those of the outputs."""

    candidate: Candidate
    simulated: np.ndarray
    """(p,) var(y − ŷ) / var(y), simulated."""
    predicted: np.ndarray
    """(p,) the same one sample ahead; infinite without a noise model."""

    @property
    def simulation(self) -> float:
        """Mean over the outputs."""
        return max(float(self.simulated.mean()), _EXACT)

    @property
    def prediction(self) -> float:
        """Geometric mean over the outputs, as the likelihood weighs them."""
        return float(np.exp(np.log(np.maximum(self.predicted, _EXACT)).mean()))

    @property
    def alternative(self) -> Alternative:
        """The candidate's name and shares of the variance."""
        alone, ahead = (100.0 * (1.0 - each) for each in (self.simulation, self.prediction))
        return Alternative(str(self.candidate), self.candidate.states, alone, ahead)


@dataclass(slots=True)
class Validation:
    """Candidates' scores on three stretches, each of which is left out once."""

    folds: list[tuple[Learner, list[Segment]]]
    table: dict[Candidate, Score] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        segments: Sequence[Segment],
        horizon: int,
        feedthrough: bool,
        stable: bool = True,
        filled: Sequence[Segment] | None = None,
    ) -> Validation:
        """Folds of a trace, of a long one with 2,000 samples each; `filled` has no missing outputs."""
        parts = _thirds(segments)
        rests = _rests(parts)
        known = [None] * _FOLDS if filled is None else _rests(_thirds(filled))
        learners = [
            Learner(rest, horizon, feedthrough, stable, 1e-4, filled=each)
            for rest, each in zip(rests, known, strict=True)
        ]
        return cls(list(zip(learners, parts, strict=True)))

    @property
    def possible(self) -> bool:
        """Whether each fold leaves more columns than the regressions have rows."""
        for learner, _ in self.folds:
            rows = 2 * learner.horizon * sum(signal.shape[1] for signal in learner.segments[0])
            if sum(columns_of(learner.segments, learner.horizon)) <= rows:
                return False
        return True

    def as_good(self, least: float) -> float:
        """Error that isn't told from the least."""
        return least * (1.0 + _AS_GOOD / self.samples**0.5)

    @property
    def samples(self) -> int:
        """Samples that are left out once."""
        return sum(len(u) for _, left_out in self.folds for u, _ in left_out)

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """All that were compared in full, the best prediction first."""
        scores = [each for each in self.table.values() if not each.candidate.rough]
        scores.sort(key=lambda each: (each.prediction, each.simulation))
        return tuple(each.alternative for each in scores)

    def best(self, scores: Iterable[Score], by: Literal["simulation", "prediction"]) -> list[Score]:
        """Scores by their errors, but with the smaller of those first that are as good as the least.

        Of equal size a simulation model is first, as its one state is the plant's and not the noise's.
        """
        ranked = sorted(scores, key=lambda each: getattr(each, by))
        limit = self.as_good(getattr(ranked[0], by))
        good = [each for each in ranked if getattr(each, by) <= limit]
        good.sort(key=lambda each: (each.candidate.states, each.candidate.refinement == "likelihood"))
        return good + ranked[len(good) :]

    def score(self, candidate: Candidate) -> Score:
        """The candidate's errors on what each fold leaves out; infinite where a fold gives no model."""
        if candidate not in self.table:
            self.table[candidate] = self._score(candidate)
        return self.table[candidate]

    def _score(self, candidate: Candidate) -> Score:
        p = self.folds[0][0].segments[0][1].shape[1]
        spread, alone, ahead = (np.zeros(p) for _ in range(3))
        for learner, left_out in self.folds:
            usable = [(u, y) for u, y in left_out if len(u) > _LONG_ENOUGH * candidate.states]
            if not usable:
                continue
            if (model := learner.model(candidate)) is None:
                return Score(candidate, np.full(p, inf), np.full(p, inf))
            left = about(usable, model.offset)
            y, rest = np.vstack([y for _, y in left]), np.concatenate([_after_head(len(u)) for u, _ in left])
            spread += _squares(y[rest])
            stable = np.abs(np.linalg.eigvals(model.A)).max() < 1.0
            alone += _squares((y - simulated(model.matrices, left, _HEAD))[rest]) if stable else inf
            known = np.isfinite(model.V).all()
            ahead += _squares((y - predicted(model.matrices, model.K, left, _HEAD))[rest]) if known else inf
        if not spread.all():
            return Score(candidate, np.full(p, inf), np.full(p, inf))
        alone, ahead = (np.where(np.isfinite(each), each / spread, inf) for each in (alone, ahead))
        return Score(candidate, alone, ahead)


def by_information(learner: Learner, most: int, order: int | None = None) -> Candidate | None:
    """The candidate by likelihood of least information criterion, Hannan and Quinn's; None without any.

    For records too short to leave stretches out, and for closed loops: there the likelihood has no bias, but where a
    model has too few states for the noise, though its prediction hardly suffers.

    Source: Hannan and Quinn, JRSS B 41 (1979) 190-195.
    """
    m, p = (each.shape[1] for each in learner.segments[0])
    samples = min(sum(len(u) for u, _ in learner.segments), DESCENDED)
    found: list[tuple[float, Candidate]] = []
    for n in range(1, min(most, _USUAL) + 1) if order is None else (order,):
        if found and n > min(found, key=lambda pair: pair[0])[1].order + 2:
            break
        for start in ("pbsid", "cva"):
            candidate = Candidate(start, n, "likelihood")
            model = learner.model(candidate)
            if model is not None:
                size = n * (m + 2 * p)
                found.append((samples * model.loss + 2.0 * log(log(samples)) * size, candidate))
    return min(found, key=lambda pair: pair[0], default=(inf, None))[1]


def choose(validation: Validation, most: int, focus: Focus, order: int | None = None) -> Score:
    """The candidate of least left-out error by `focus`, with up to `most` states or with `order`.

    A simulation model G is chosen first, from subspaces and their refinement. "both" takes the predictor of least
    error among those whose simulation is as good as G's, of which G with noise states is one.
    """
    score, best = validation.score, validation.best

    def over_orders(made: Callable[[int], Score], by: Literal["simulation", "prediction"]) -> list[Score]:
        """Usual orders, and then higher ones as long as the highest is best."""
        if order is not None:
            return [made(order)]
        found = [made(n) for n in _ORDERS if n <= min(most, _USUAL)]
        for n in _ORDERS:
            if _USUAL < n <= most and best(found, by)[0] is found[-1]:
                found.append(made(n))
        return found

    if focus == "prediction":
        return best(_predictors(validation, over_orders, most, order), "prediction")[0]
    plain = over_orders(lambda n: score(Candidate("cva", n)), "simulation")
    orders = [each.candidate.order for each in plain]
    near = {n for each in best(plain, "simulation")[:2] for n in _around(orders, each.candidate.order)}
    plain += [score(Candidate(start, n)) for n in sorted(near) for start in _STARTS if start != "cva"]
    refined = [score(replace(each.candidate, refinement="simulation")) for each in best(plain, "simulation")[:2]]
    G = best([*plain, *refined], "simulation")[0]
    start: Start = "cva" if G.candidate.start == "pbsid" else G.candidate.start
    noises = [score(replace(G.candidate, noise="gain"))]
    likely: list[Score] = []
    if focus == "both":
        likely = _predictors(validation, over_orders, most, order)
        likely.append(score(Candidate(start, G.candidate.order, "likelihood")))
    if order is None:
        rough = over_orders(lambda n: score(replace(G.candidate, noise=n, rough=True)), "prediction")
        joint = replace(best(rough, "prediction")[0].candidate, rough=False)
        noises.append(score(joint))
        if focus == "both" and joint.states <= _MOST_STATES:
            likely += [score(replace(joint, polish=steps)) for steps in (1, 3)]
    likely = [each for each in likely if each.simulation <= _as_good(G.simulation)]
    found = best([*noises, *likely], "prediction")[0]
    return found if np.isfinite(found.prediction) else G


def _predictors(validation: Validation, over_orders: _OverOrders, most: int, order: int | None) -> list[Score]:
    """Scores of models by likelihood and ARX models, all of which are consistent under feedback."""
    score, best = validation.score, validation.best
    rough = over_orders(lambda n: score(Candidate("pbsid", n, "likelihood", rough=True)), "prediction")
    found = [score(replace(each.candidate, rough=False)) for each in best(rough, "prediction")[:2]]
    found.append(score(Candidate("cva", best(found, "prediction")[0].candidate.order, "likelihood")))
    p = len(found[0].simulated)
    lags = range(1, min(_LAGS, most - 1) + 1) if order is None else [order // p] if order % p == 0 else []
    return found + [score(Candidate("arx", k * p, "likelihood")) for k in lags]


def _as_good(error: float) -> float:
    """Simulation error that counts as no worse: by a quarter, between .3 and 2.5 points of variance accounted for."""
    least, share, most = _KEPT
    return error + min(max(share * error, least), most)


def _after_head(samples: int) -> np.ndarray:
    """Mask of the samples that count: those that the initial state is not from, as slow states would fit the noise."""
    return np.arange(samples) >= int(_HEAD * samples)


def _squares(errors: np.ndarray) -> np.ndarray:
    """(p,) sums of squares about the means, of what isn't missing."""
    return np.nanvar(errors, axis=0) * np.isfinite(errors).sum(axis=0)


def _around(orders: list[int], n: int) -> list[int]:
    k = orders.index(n)
    return orders[max(k - 1, 0) : k + 2]


def _thirds(segments: Sequence[Segment]) -> list[list[Segment]]:
    """The trace in three parts of equal length, or their first 2,000 samples; a part may cut a segment."""
    edges = np.linspace(0, sum(len(u) for u, _ in segments), _FOLDS + 1).astype(int)
    parts: list[list[Segment]] = [[] for _ in range(_FOLDS)]
    first = 0
    for u, y in segments:
        for k in range(_FOLDS):
            inside = slice(max(edges[k] - first, 0), max(edges[k + 1] - first, 0))
            if len(u[inside]):
                parts[k].append((u[inside], y[inside]))
        first += len(u)
    return [first_samples(part, _STRETCH) for part in parts]


def _rests(parts: list[list[Segment]]) -> list[list[Segment]]:
    """What each part leaves."""
    return [[each for j, part in enumerate(parts) if j != k for each in part] for k in range(_FOLDS)]
