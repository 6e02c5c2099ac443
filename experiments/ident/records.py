"""Held-out fit of identified models on public records, beside SIPPY, nfoursid and ARX(4).

    python experiments/ident/records.py FOLDER [--only NAME ...] [--also '{"method": "cva"}' ...] [--freeze]

The first half of a record is identified, the second half held out, unless the record has a split of its own. FOLDER has
NAME.npz with u (T, m), y (T, p) and, where the record has one, split: the first held-out sample. The peers' figures are
kept in FOLDER/peers.csv and made where they are missing; --freeze keeps netctrl's own there too, as the bar of later
runs. Simulation: variance accounted for [%]; one step: var(e) / var(y); both averaged over outputs. All models have
their initial states from the same least squares. A peer is given its best configuration: centred and scaled signals,
orders 1 to 10 by its own criterion ("aic"), and by validation on the last third of the first half ("best"), with two
horizons, with and without D, and for simulation and one step each by itself.
"""

import argparse
import contextlib
import io
import itertools
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.linalg import solve_discrete_are

import netctrl
from netctrl.ident.validate import predicted, simulated

_DAISY = """evaporator 96-010, exchanger 97-002, cd_player 96-007, cstr 98-002, robot_arm 96-009, hairdryer 96-006,
steamgen 98-003, powerplant 96-003, glassfurnace 96-002, ballbeam 96-004, flutter 96-008, winding 97-003,
industrial_dryer 96-016, ph 96-014, heating 99-001, wall 96-011, flexible_structure 96-013 (the first 4 of 28 outputs),
ethane_ethylene 96-001 (the columns without added noise)"""
_OTHERS = """silverbox nonlinearbenchmark.org: Silverbox samples 40700 to 60699, cascaded_tanks nonlinearbenchmark.org:
two records joined, drives_1 nonlinearbenchmark.org: Coupled electric drives PRBS, drives_2 likewise, drives_3
likewise, gas_furnace Box and Jenkins: series J, actuator Sjöberg et al. 1995: hydraulic actuator, damper MathWorks:
magneto-rheological damper of Wang et al. 2009, buck Aguirre et al. 2000: two records joined, two_tanks
MathWorks: twotankdata with both levels"""
SOURCES = {
    name: before + said
    for before, text in (("DaISy, KU Leuven: ", _DAISY), ("", _OTHERS))
    for name, said in (each.split(maxsplit=1) for each in " ".join(text.split()).split(", "))
}
OURS: dict[str, dict[str, Any]] = {"default": {}, "cva": {"method": "cva"}}
ORDERS, HORIZONS = range(1, 11), (20, 10, 5, 3, 2)
STEP, SIM = 1.05, 0.5  # of the best peer's one-step variance; points below the better of the frozen fits

Pair = tuple[np.ndarray, np.ndarray]
Model = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]
"""A, B, C, D, K of the innovation form about the signals' means; K is None where the method gives none."""
Fit = Callable[[np.ndarray, np.ndarray], Model]
_WRONG = (ArithmeticError, LookupError, TypeError, ValueError, np.linalg.LinAlgError)


class Score(NamedTuple):
    """Fit of each output, (p,): −inf and inf where it isn't finite."""

    sim: np.ndarray
    step: np.ndarray


def score(model: Model, u: np.ndarray, y: np.ndarray) -> Score:
    matrices = tuple(np.ascontiguousarray(each, dtype=float) for each in model if each is not None)
    left = [np.full(y.shape[1], np.inf), np.full(y.shape[1], np.inf)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for k, K in enumerate([None, *matrices[4:]]):
            with contextlib.suppress(*_WRONG):
                run = simulated(matrices[:4], [(u, y)]) if K is None else predicted(matrices[:4], K, [(u, y)])
                left[k] = np.nan_to_num((y - run).var(axis=0) / y.var(axis=0), nan=np.inf)
        return Score(100.0 * (1.0 - left[0]), left[1])


def ours(u: np.ndarray, y: np.ndarray, tried: Pair, options: dict[str, Any]) -> Score:
    """Score on `tried` of netctrl's model of u and y, all in the units of the record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = netctrl.identify(u, y, interval_s=1.0, **options).model
    return score((m.A, m.B, m.C, m.D, m.K), tried[0] - m.input_offset, tried[1] - m.output_offset)


def sippy(method: str, horizon: int, feedthrough: bool, order: int | None) -> Fit:
    """A method of SIPPY at an order, or with the order of its own AIC (None)."""
    from sippy_unipi import system_identification

    options: dict[str, Any] = {"SS_f": horizon, "SS_p": horizon, "SS_D_required": feedthrough}
    chosen = {"SS_fixed_order": order} if order else {"IC": "AIC", "SS_orders": [1, min(ORDERS[-1], horizon)]}

    def fit(u: np.ndarray, y: np.ndarray) -> Model:
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                m = system_identification(y.T.copy(), u.T.copy(), method, tsample=1.0, **options, **chosen)
        except SystemExit as error:
            raise ValueError(str(error)) from None
        if order and len(m.A) != order:
            raise ValueError("another order than asked")
        return m.A, m.B, m.C, m.D, (np.array(m.K) if np.shape(m.K) == m.C.T.shape else None)

    return fit


def nfoursid(horizon: int, order: int) -> Fit:
    def fit(u: np.ndarray, y: np.ndarray) -> Model:
        from nfoursid.nfoursid import NFourSID

        names = [f"u{j}" for j in range(u.shape[1])], [f"y{j}" for j in range(y.shape[1])]
        table = pd.DataFrame(np.hstack([u, y]), columns=names[0] + names[1])
        found = NFourSID(table, output_columns=names[1], input_columns=names[0], num_block_rows=horizon)
        found.subspace_identification()
        m, covariance = found.system_identification(rank=order)
        p = y.shape[1]
        R, S, Q = covariance[:p, :p], covariance[p:, :p], covariance[p:, p:]
        try:
            P = solve_discrete_are(m.a.T, m.c.T, Q, R, s=S)
            K = np.linalg.solve(m.c @ P @ m.c.T + R, (m.a @ P @ m.c.T + S).T).T
        except (ValueError, np.linalg.LinAlgError):
            K = None
        return m.a, m.b, m.c, m.d, K

    return fit


def arx(u: np.ndarray, y: np.ndarray, lags: int = 4) -> Model:
    """ARX by least squares; its predictor, y(t) on the last samples of all signals, as an observer form."""
    p = y.shape[1]
    z, T = np.hstack([u, y]), len(u)
    past = [z[lags - k : T - k] for k in range(1, lags + 1)]
    found = np.linalg.lstsq(np.hstack([*past, u[lags:], np.ones((T - lags, 1))]), y[lags:], rcond=None)[0].T
    gains = np.vstack(np.split(found[:, : lags * z.shape[1]], lags, axis=1))
    Bp, K, D = gains[:, : u.shape[1]], gains[:, u.shape[1] :], found[:, lags * z.shape[1] : -1]
    shift, C = np.eye(lags * p, k=p), np.eye(p, lags * p)
    return shift + K @ C, Bp + K @ D, C, D, K


def _horizons(T: int, channels: int) -> list[int]:
    """The two longest horizons that leave as many columns as rows."""
    return [f for f in HORIZONS if T - 2 * f + 1 >= 2 * f * channels][:2]


def best(fits: list[Fit], u: np.ndarray, y: np.ndarray, tried: Pair) -> Score:
    """Score on `tried` of the fits of least validation error on the last third, for each criterion by itself."""
    cut, found = 2 * len(u) // 3, []
    for fit in fits:
        with contextlib.suppress(*_WRONG):
            on = score(fit(u[:cut], y[:cut]), u[cut:], y[cut:])
            found.append((-on.sim.mean(), on.step.mean(), fit))
    if not found:
        raise ValueError("no configuration gives a model")
    sim, step = (min(found, key=lambda each, k=k: each[k])[2] for k in (0, 1))
    return Score(score(sim(u, y), *tried).sim, score(step(u, y), *tried).step)


def peers(u: np.ndarray, y: np.ndarray, tried: Pair) -> Iterator[tuple[str, Callable]]:
    """Names of the peers and what gives their scores on `tried`; all signals centred and scaled."""
    channels = u.shape[1] + y.shape[1]
    long = _horizons(len(u), channels)[:1]
    few = _horizons(2 * len(u) // 3, channels) or long
    yield "ARX(4)", lambda: score(arx(u, y), *tried)
    for method in ("N4SID", "CVA", "PARSIM-K"):
        own = sippy(method, long[0], False, None)
        yield f"SIPPY {method} aic", lambda own=own: score(own(u, y), *tried)
        used = few[:1] if method == "PARSIM-K" else few  # seconds a fit
        fits = [sippy(method, f, d, n) for f, d, n in itertools.product(used, (False, True), ORDERS) if n <= f]
        yield f"SIPPY {method} best", lambda fits=fits: best(fits, u, y, tried)
    fits = [nfoursid(f, n) for f, n in itertools.product(few, ORDERS) if n <= f * y.shape[1]]
    yield "nfoursid best", lambda: best(fits, u, y, tried)


def row(record: str, who: str, run: Callable[[], Score]) -> dict[str, Any]:
    began, note, on = time.perf_counter(), "", Score(np.array([-np.inf]), np.array([np.inf]))
    try:
        on = run()
        note = "diverges " * bool((on.sim < -1e3).any()) + "no predictor" * bool(np.isinf(on.step).any())
    except Exception as error:  # whatever a peer or a candidate does is told in its row
        note = f"{type(error).__name__}: {' '.join(str(error).split())[:70]}"
    told = {"record": record, "who": who, "sim": on.sim.mean(), "step": on.step.mean()}
    told |= {f"{k}s": " ".join(f"{v:.4g}" for v in each) for k, each in on._asdict().items()}
    return told | {"seconds": time.perf_counter() - began, "note": note}


def table(folder: Path, names: list[str], mine: dict[str, dict[str, Any]], freeze: bool) -> pd.DataFrame:
    kept = folder / "peers.csv"
    rows = pd.read_csv(kept, keep_default_na=False).to_dict("records") if kept.exists() else []
    made = []
    for name in names:
        with np.load(folder / f"{name}.npz") as data:
            u, y, cut = data["u"], data["y"], int(data["split"]) if "split" in data else len(data["u"]) // 2
        raw, centre, size = np.hstack([u, y]), *(f(np.hstack([u, y])[:cut], axis=0) for f in (np.mean, np.std))
        scaled = (raw - centre) / np.where(size > 0.0, size, 1.0)
        us, ys = scaled[:, : u.shape[1]], scaled[:, u.shape[1] :]
        have = {each["who"] for each in rows if each["record"] == name}
        for who, run in peers(us[:cut], ys[:cut], (us[cut:], ys[cut:])):
            if who not in have:
                rows.append(row(name, who, run))
                pd.DataFrame(rows).to_csv(kept, index=False)  # a large record's peers take minutes
        for who, options in mine.items():
            got = row(name, who, partial(ours, u[:cut], y[:cut], (u[cut:], y[cut:]), options))
            made.append(got)
            if freeze:
                rows = [each for each in rows if (each["record"], each["who"]) != (name, f"was {who}")]
                rows.append(got | {"who": f"was {who}"})
        pd.DataFrame(rows).to_csv(kept, index=False)
        found = pd.DataFrame([each for each in [*rows, *made] if each["record"] == name])
        print(found.to_string(index=False, float_format=lambda v: f"{v:.4g}"), flush=True)
    return pd.DataFrame([each for each in [*rows, *made] if each["record"] in names])


def verdict(found: pd.DataFrame, mine: dict[str, dict[str, Any]]) -> None:
    """Each candidate against the bar, record by record, and how often it meets it."""
    frozen = found.who.str.startswith("was ")
    others, least = found[~found.who.isin(mine) & ~frozen], found[frozen].groupby("record").sim.max()
    for who in mine:
        print(f"\n{who}: one step at most {STEP:g} of the best peer, simulation at most {SIM:g} below the frozen")
        met = []
        for own in found[found.who == who].itertuples():
            part, was = others[others.record == own.record], float(least.get(own.record, -np.inf))
            step, sim = part.loc[part.step.idxmin()], part.loc[part.sim.idxmax()]
            good = own.step <= STEP * step.step, own.sim >= was - SIM
            met.append(good)
            a, b = ("ok " if each else "NOT" for each in good)
            print(
                f"{own.record:20} step {own.step:9.3g} = {own.step / step.step:7.2f} of {step.who:20} {a} sim"
                f" {own.sim:8.2f}, frozen {was:8.2f}, {sim.who:20} {sim.sim:8.2f} {b} {own.seconds:6.2f} s {own.note}"
            )
        print("{}: one step {} of {n}, simulation {} of {n}".format(who, *np.sum(met, axis=0), n=len(met)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--only", nargs="+", default=list(SOURCES), choices=list(SOURCES))
    options.add_argument("--also", action="append", default=[], help="options of netctrl.identify as JSON")
    options.add_argument("--freeze", action="store_true")
    asked = options.parse_args()
    missing = [name for name in asked.only if not (asked.folder / f"{name}.npz").exists()]
    if missing:
        told = "; ".join(f"{name}.npz ({SOURCES[name]})" for name in missing)
        sys.exit(f"{asked.folder} lacks {told}: get them there, convert them to u and y, or name others by --only")
    ours(*np.random.default_rng(1).standard_normal((2, 200, 1)), tried=(np.eye(9, 1),) * 2, options={})  # compiled
    mine = OURS | {each: json.loads(each) for each in asked.also}
    verdict(table(asked.folder, asked.only, mine, asked.freeze), mine)


if __name__ == "__main__":
    main()
