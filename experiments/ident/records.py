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

_DAISY = "DaISy, KU Leuven: "
_BENCH = "nonlinearbenchmark.org: "
SOURCES = {
    "evaporator": _DAISY + "96-010",
    "exchanger": _DAISY + "97-002",
    "cd_player": _DAISY + "96-007",
    "cstr": _DAISY + "98-002",
    "robot_arm": _DAISY + "96-009",
    "hairdryer": _DAISY + "96-006; also SLICOT's example IB01AD and Ljung's dryer",
    "steamgen": _DAISY + "98-003",
    "powerplant": _DAISY + "96-003",
    "glassfurnace": _DAISY + "96-002",
    "ballbeam": _DAISY + "96-004",
    "flutter": _DAISY + "96-008",
    "winding": _DAISY + "97-003",
    "industrial_dryer": _DAISY + "96-016",
    "ph": _DAISY + "96-014",
    "heating": _DAISY + "99-001",
    "wall": _DAISY + "96-011",
    "flexible_structure": _DAISY + "96-013, the first 4 of 28 outputs",
    "ethane_ethylene": _DAISY + "96-001, the columns without added noise",
    "silverbox": _BENCH + "Silverbox, samples 40700 to 60699",
    "cascaded_tanks": _BENCH + "Cascaded tanks, estimation record, then validation record",
    "drives_1": _BENCH + "Coupled electric drives, PRBS, record 1",
    "drives_2": _BENCH + "Coupled electric drives, PRBS, record 2",
    "drives_3": _BENCH + "Coupled electric drives, PRBS, record 3",
    "gas_furnace": "Box and Jenkins, series J",
    "actuator": "hydraulic actuator of Sjöberg et al., Automatica 31 (1995) 1691",
    "damper": "magneto-rheological damper of Wang et al. 2009, MathWorks' example",
    "buck": "buck converter of Aguirre et al. 2000, identification record, then validation record",
    "two_tanks": "two tanks in series, MathWorks' twotankdata with both levels",
}
OURS: dict[str, dict[str, Any]] = {"default": {}, "cva": {"method": "cva"}}
ORDERS, HORIZONS = range(1, 11), (20, 10, 5, 3, 2)
STEP, SIM = 1.05, 0.5  # of the best peer's one-step variance; points below the better of the frozen fits

Fit = Callable[[np.ndarray, np.ndarray], "Model"]


class Model(NamedTuple):
    """Innovation form about the means of the signals; K is None where the method gives none."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    K: np.ndarray | None


class Score(NamedTuple):
    """Fit of each output, (p,): −inf and inf where it isn't finite."""

    sim: np.ndarray
    step: np.ndarray


def score(model: Model, u: np.ndarray, y: np.ndarray) -> Score:
    matrices = tuple(np.ascontiguousarray(each, dtype=float) for each in model[:4])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        sim, step = np.full(y.shape[1], -np.inf), np.full(y.shape[1], np.inf)
        with contextlib.suppress(ArithmeticError, ValueError, np.linalg.LinAlgError):
            sim = 100.0 * (1.0 - (y - simulated(matrices, [(u, y)])).var(axis=0) / y.var(axis=0))
        if model.K is not None:
            with contextlib.suppress(ArithmeticError, ValueError, np.linalg.LinAlgError):
                K = np.ascontiguousarray(model.K, dtype=float)
                step = (y - predicted(matrices, K, [(u, y)])).var(axis=0) / y.var(axis=0)
    return Score(np.where(np.isfinite(sim), sim, -np.inf), np.where(np.isfinite(step), step, np.inf))


def ours(u: np.ndarray, y: np.ndarray, tried: tuple[np.ndarray, np.ndarray], options: dict[str, Any]) -> Score:
    """Score on `tried` of netctrl's model of u and y, all in the units of the record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = netctrl.identify(u, y, interval_s=1.0, **options).model
    return score(Model(m.A, m.B, m.C, m.D, m.K), tried[0] - m.input_offset, tried[1] - m.output_offset)


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
        return Model(m.A, m.B, m.C, m.D, np.array(m.K) if np.shape(m.K) == m.C.T.shape else None)

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
        return Model(m.a, m.b, m.c, m.d, K)

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
    return Model(shift + K @ C, Bp + K @ D, C, D, K)


def _horizons(T: int, channels: int) -> list[int]:
    """The two longest horizons that leave as many columns as rows."""
    return [f for f in HORIZONS if T - 2 * f + 1 >= 2 * f * channels][:2]


def best(fits: list[Fit], u: np.ndarray, y: np.ndarray, tried: tuple[np.ndarray, np.ndarray]) -> Score:
    """Score on `tried` of the fits of least validation error on the last third, for each criterion by itself."""
    cut = 2 * len(u) // 3
    found: list[tuple[float, float, Fit]] = []
    for fit in fits:
        with contextlib.suppress(ArithmeticError, LookupError, TypeError, ValueError, np.linalg.LinAlgError):
            on = score(fit(u[:cut], y[:cut]), u[cut:], y[cut:])
            found.append((-on.sim.mean(), on.step.mean(), fit))
    if not found:
        raise ValueError("no configuration gives a model")
    sim, step = (min(found, key=lambda each, k=k: each[k])[2] for k in (0, 1))
    return Score(score(sim(u, y), *tried).sim, score(step(u, y), *tried).step)


def peers(u: np.ndarray, y: np.ndarray, tried: tuple[np.ndarray, np.ndarray]) -> Iterator[tuple[str, Callable]]:
    """Names of the peers and what gives their scores on `tried`; all signals centred and scaled."""
    channels = u.shape[1] + y.shape[1]
    all_ = _horizons(len(u), channels)[:1]
    few = _horizons(2 * len(u) // 3, channels) or all_
    yield "ARX(4)", lambda: score(arx(u, y), *tried)
    for method in ("N4SID", "CVA", "PARSIM-K"):
        own = sippy(method, all_[0], False, None)
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
    except Exception as error:  # whatever a peer or a candidate does is told in its row
        note = f"{type(error).__name__}: {' '.join(str(error).split())[:70]}"
    each = [" ".join(f"{v:.4g}" for v in values) for values in on]
    spent = time.perf_counter() - began
    if not note:
        note = "; ".join(["unstable"] * bool(np.isinf(on.sim).any()) + ["no predictor"] * bool(np.isinf(on.step).any()))
    return {
        "record": record, "who": who, "sim": on.sim.mean(), "step": on.step.mean(),
        "sims": each[0], "steps": each[1], "seconds": spent, "note": note,
    }  # fmt: skip


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
    for who in mine:
        print(f"\n{who}: bar = one step at most {STEP:g} of the best peer, simulation at most {SIM:g} below the frozen")
        met = []
        for name, part in found.groupby("record", sort=False):
            mine_ = part[part.who == who].iloc[0]
            frozen = part[part.who.str.startswith("was ")]
            others = part[~part.who.isin(mine) & ~part.who.str.startswith("was ")]
            step, sim = others.loc[others.step.idxmin()], others.loc[others.sim.idxmax()]
            ratio, least = mine_.step / step.step, frozen.sim.max() - SIM if len(frozen) else -np.inf
            good = ratio <= STEP, mine_.sim >= least
            met.append(good)
            print(
                f"{name:20} step {mine_.step:9.3g} = {ratio:6.2f} of {step.who:20} {'ok ' if good[0] else 'NOT'}"
                f"  sim {mine_.sim:7.2f}, frozen {least + SIM:7.2f}, {sim.who:20} {sim.sim:7.2f}"
                f" {'ok ' if good[1] else 'NOT'} {mine_.seconds:6.2f} s {mine_.note}"
            )
        a, b = np.sum(met, axis=0)
        print(f"{who}: one step {a} of {len(met)}, simulation {b} of {len(met)}")


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
