"""Explicit laws as C."""

from __future__ import annotations

import numpy as np

from netctrl.core.errors import InvalidValue, checked_flag, checked_kind
from netctrl.mpc.c.text import VECTORS, checked_name, files, number, tables, template, vectors
from netctrl.mpc.piecewise.law import PiecewiseLaw

_TOLERANCE = 1e-9  # as in netctrl.mpc.piecewise.tree
_ONE = 2**30
_MOST = 15
_CALL = """static int call(const double *theta, double *u)
{{
{body}
}}
"""


def law_in_c(law: PiecewiseLaw, name: str = "mpc_law", *, fixed: bool = False) -> dict[str, str]:
    """An explicit law as C99: a search tree and the regions' gains, in double precision or in integers.

    The files compile with any C99 compiler; `make test` compares them with 500 test vectors. The function allocates
    nothing, and its header says how many tests and multiplications it makes at most.

    Parameters
    ----------
    law : PiecewiseLaw
        From `netctrl.mpc.piecewise.law.piecewise_law`.
    name : str
        Name of the function and of its files.
    fixed : bool
        Integers only: t = (θ − centre)/half in units of 2⁻³⁰, inputs in units of 2⁻³⁰ times a unit in the header.

    Returns
    -------
    dict
        Name of a file -> its text.

    Raises
    ------
    InvalidValue
        A name that C can't use.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.mpc.c.law import law_in_c
    >>> from netctrl.mpc.piecewise.law import piecewise_law
    >>> plant = netctrl.StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0)
    >>> problem = netctrl.MpcProblem(plant=plant, horizon=5, state_weight=1.0, input_lower=-0.5, input_upper=0.5)
    >>> sorted(law_in_c(piecewise_law(problem, -4.0, 4.0), "rate_law"))
    ['Makefile', 'check.c', 'rate_law.c', 'rate_law.h', 'vectors.txt']
    """
    checked_kind("law", law, PiecewiseLaw)
    name, fixed = checked_name(name), checked_flag("fixed", fixed)
    m, q = law.gain.shape[1:]
    unit = _units(law)
    parts = {"name": name, "guard": name.upper(), "parameters": q, "inputs": m}
    parts["root"] = 0 if len(law.tree.value) else -1
    if fixed:
        arguments = f"const int32_t t[{parts['guard']}_PARAMETERS], int32_t u[{parts['guard']}_INPUTS]"
        said = (
            f"/* t[i] = (theta[i] - centre[i])/half[i] in units of 2^-30; centre {_listed(law.centre)}, half "
            f"{_listed(law.half)}.\n * u[j] is in units of 2^-30 times {_listed(unit)}. Returns 0, or 1 where the "
            "table has no region (u = 0).\n * Farther than 1e-8 from all borders of regions, u is the law up to "
            f"{_listed(fixed_bound(law))}. */\n"
        )
        scale = [
            f"    const double centre[Q] = {{{_listed(law.centre)}}}, half[Q] = {{{_listed(law.half)}}};",
            f"    const double unit[M] = {{{_listed(unit)}}};",
            "    int32_t t[Q], v[M];",
            "    int status;",
            "    for (int i = 0; i < Q; i++)",
            "        t[i] = (int32_t)lround((theta[i] - centre[i]) / half[i] * 1073741824.0);",
            f"    status = {name}(t, v);",
            "    for (int j = 0; j < M; j++)",
            "        u[j] = v[j] / 1073741824.0 * unit[j];",
            "    return status;",
        ]
        source = template("law_fixed.c", tables=_fixed_tables(law, unit), tolerance=number(_slack(q), "l"), **parts)
    else:
        arguments = f"const double theta[{parts['guard']}_PARAMETERS], double u[{parts['guard']}_INPUTS]"
        said = "/* Inputs u at theta. Returns 0, or 1 where the table has no region (u = 0). */\n"
        scale = [f"    return {name}(theta, u);"]
        source = template("law.c", tables=_tables(law), tolerance=number(_TOLERANCE), **parts)
    header = template(
        "law.h",
        prototype=f"{said}int {name}({arguments});",
        tests=law.most_tests,
        flops=(law.most_tests + m) * q,
        **parts,
    )
    allowed = 2.0 * fixed_bound(law) if fixed else 1e-12 * np.abs(unit)
    check = template("check.c", allowed=_listed(allowed), call=_CALL.format(body="\n".join(scale)), **parts)
    return files(name, {"h": header, "c": source}, check, _vectors(law))


def fixed_bound(law: PiecewiseLaw) -> np.ndarray:
    """Largest difference (m,) of the inputs in integers from the law, at points farther than 1e-8 from all borders.

    Rounding of t, of the gains and of the result.
    """
    q = law.gain.shape[2]
    unit = _units(law)
    shift = _shifts(law, unit)
    steps = (np.abs(law.gain).sum(axis=2) / unit + q * 2.0**shift + 2.0).max(axis=0) / (2 * _ONE)
    return 1.01 * steps * unit


def _units(law: PiecewiseLaw) -> np.ndarray:
    """Powers of 2 (m,) that no input exceeds on the box."""
    largest = np.maximum((np.abs(law.gain).sum(axis=2) + np.abs(law.offset)).max(axis=0), 1e-300)
    used = np.maximum(_reached(law), 1e-9 * largest)
    return 2.0 ** np.ceil(np.log2(1.01 * used))


def _reached(law: PiecewiseLaw) -> np.ndarray:
    """Largest input (m,) at the regions' extreme points in the direction of their gains."""
    from netctrl.mpc.piecewise.geometry import extent, largest_ball

    q = law.gain.shape[2]
    box = np.vstack([np.eye(q), -np.eye(q)])
    most = np.zeros(law.gain.shape[1])
    for r in range(len(law.offset)):
        at = slice(law.first[r], law.first[r + 1])
        rows, right = np.vstack([law.rows[at], box]), np.concatenate([law.right[at], np.ones(2 * q)])
        middle = largest_ball(rows, right)[1]
        for j, gain in enumerate(law.gain[r]):
            ends = np.array(extent(rows, right, middle, np.ascontiguousarray(gain))) if gain.any() else np.zeros(2)
            most[j] = max(most[j], np.abs(ends + law.offset[r, j]).max())
    return most


def _shifts(law: PiecewiseLaw, unit: np.ndarray) -> np.ndarray:
    """Least shift of each region's gains (R, m) with which they and the sums fit."""
    largest = (np.abs(law.gain).sum(axis=2) + np.abs(law.offset)) / unit
    return np.clip(np.ceil(np.log2(np.maximum(largest, 1e-300))), 0, None)


def _slack(q: int) -> int:
    """Tolerance of the tests: what rounding of rows and points adds to that of the law."""
    return int((_TOLERANCE + (q + 1) * 2.0**-30) * _ONE * _ONE)


def _tables(law: PiecewiseLaw) -> str:
    tree, q = law.tree, len(law.half)
    floats = [("split", tree.split.reshape(-1, q)), ("value", tree.value), ("rows", law.rows), ("right", law.right)]
    return tables(
        ("centre", law.centre), ("half", law.half), *_shape(law), *floats, ("gain", law.gain), ("offset", law.offset)
    )


def _shape(law: PiecewiseLaw) -> list[tuple]:
    tree = law.tree
    leaves = [("leaf_first", tree.leaf_first, "i"), ("leaf", tree.leaf, "i")]
    return [("child", tree.child.reshape(-1, 2), "i"), *leaves, ("first", law.first, "i")]


def _fixed_tables(law: PiecewiseLaw, unit: np.ndarray) -> str:
    shift, q = _shifts(law, unit), len(law.half)
    if q > _MOST:
        takes = f"at most {_MOST} parameters, so that no sum exceeds 63 bits: use double precision"
        raise InvalidValue("fixed", True, takes)
    if (shift > 29).any():
        takes = "a law whose gains differ by less than a factor of 2^29: use double precision"
        raise InvalidValue("fixed", True, takes)
    gain, offset = law.gain / unit[:, None] / 2.0 ** shift[..., None], law.offset / unit / 2.0**shift
    return tables(
        *_shape(law),
        ("split", _rounded(law.tree.split.reshape(-1, q), 30), "i"),
        ("value", _rounded(law.tree.value, 60), "l"),
        ("rows", _rounded(law.rows, 30), "i"),
        ("right", _rounded(law.right, 60), "l"),
        ("gain", _rounded(gain, 30), "i"),
        ("offset", _rounded(offset, 60), "l"),
        ("shift", shift, "i"),
    )


def _rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """Whole numbers nearest to values · 2^bits, exact beyond 53 bits."""
    return np.array([round(x) for x in (values * 2.0**bits).ravel().tolist()], dtype=object).reshape(values.shape)


def _vectors(law: PiecewiseLaw) -> str:
    """Random points of the box that are inside a region or outside all of them by more than 1e-6."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-1.0, 1.0, (VECTORS, len(law.half))) * rng.uniform(0.0, 1.0, (VECTORS, 1))
    thetas = law.centre + law.half * t
    excess = t @ law.rows.T - law.right
    worst = np.maximum.reduceat(excess, law.first[:-1], axis=1) if len(law.rows) else np.full((len(t), 1), -1.0)
    sure = np.abs(worst).min(axis=1) > 1e-6
    inputs, region = law.decide_many(thetas)
    return vectors(thetas[sure], region[sure] < 0, inputs[sure])


def _listed(values: np.ndarray) -> str:
    return ", ".join(number(x) for x in np.atleast_1d(values))
