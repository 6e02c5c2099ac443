"""Conversion of the signals given to `netctrl.identify` (a record, table, file or arrays) to a trace, and whether its
inputs excite enough."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.ident.subspace.lq_reduction import LqReduction, Segment
from netctrl.model.datasets import trace_path
from netctrl.model.io.table import SAME, index_interval
from netctrl.model.signals import SignalTrace, read_signals

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Literal, TypedDict

    import pandas as pd

    from netctrl.core.names import Focus, IdentMethod

    Samples = np.ndarray | pd.Series | pd.DataFrame | Sequence[float] | Sequence[Sequence[float]]
    Table = pd.DataFrame | str | os.PathLike[str]
    Experiments = Sequence[SignalTrace] | Sequence[Table] | Sequence[tuple[Samples, Samples]]
    Signals = SignalTrace | Samples | Table | Experiments

    class Options(TypedDict, total=False):
        """Arguments of `identify` that don't depend on the form of the signals."""

        order: int | Literal["auto"]
        method: IdentMethod
        horizon: int | None
        delay: int | Sequence[int] | Literal["auto"]
        focus: Focus
        feedthrough: bool | Literal["auto"]
        stable: bool | Literal["auto"]
        held_out: float | SignalTrace | None
        refine: bool | Literal["auto"]
        seed: int
        argv: Iterable[str]
        files: Iterable[Path]

    class Reading(Options, total=False):
        """These, and what tells how tables are read."""

        segments: str | None
        time: str | None
        interval_s: float | None
        bin_s: float | None

    class Columns(Reading, total=False):
        """These, and which columns are read."""

        inputs: Sequence[str] | None
        outputs: Sequence[str] | None

else:
    Samples = Signals = Any

_TAKES = "a SignalTrace, a DataFrame or a file with `inputs` and `outputs`, or arrays u and y with `interval_s`"


def signals_of(
    trace: Signals,
    y: Samples | None = None,
    interval_s: float | None = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    segments: str | None = None,
    time: str | None = None,
    bin_s: float | None = None,
) -> SignalTrace:
    """Trace from signals in any accepted form; arguments as in `netctrl.identify`.

    Raises
    ------
    InvalidValue
        A value that holds no signals, a missing or superfluous argument, samples that `SignalTrace` rejects, or an
        index with uneven intervals.
    FileError
        A file can't be read.
    """
    names: dict[str, Any] = {"inputs": inputs, "outputs": outputs}
    table: dict[str, Any] = {"segments": segments, "time": time, "bin_s": bin_s}
    if y is not None:
        _no_use("beside arrays", **table)
        return _of_arrays(trace, y, interval_s, inputs, outputs)
    if isinstance(trace, SignalTrace):
        _no_use("with a SignalTrace", interval_s=interval_s, **names, **table)
        return trace
    if isinstance(trace, list | tuple) and trace and all(map(_is_experiment, trace)):
        each: list[Any] = [part if isinstance(part, tuple) else (part, None) for part in trace]
        return SignalTrace.joined([signals_of(u, v, interval_s=interval_s, **names, **table) for u, v in each])
    is_file = isinstance(trace, str | os.PathLike)
    if not is_file and not hasattr(trace, "columns"):
        if hasattr(trace, "__len__"):
            raise InvalidValue("y", None, "the outputs to the inputs u: netctrl.identify(u, y, interval_s=0.1)")
        raise InvalidValue("trace", f"a value of type {type(trace).__name__}", _TAKES)
    for name, columns in names.items():
        if columns is None:
            raise InvalidValue(name, None, "names of the table's columns, as in ['rate_bit_per_s']")
    options: Any = {**names, "interval_s": interval_s, **table}
    if is_file:
        return read_signals(trace_path(os.fspath(trace)), **options)
    frame: Any = trace
    return SignalTrace.from_pandas(frame, **options)


def _is_experiment(part: Any) -> bool:
    """Whether a list's element is a trace, a table, a file, or a pair (u, y) of arrays."""
    if isinstance(part, tuple):
        return len(part) == 2 and all(not isinstance(each, str) and np.ndim(each) > 0 for each in part)
    return isinstance(part, SignalTrace | str | os.PathLike) or hasattr(part, "columns")


def _no_use(place: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InvalidValue(name, value, f"no value {place}")


def _of_arrays(u: Any, y: Any, interval_s: float | None, inputs: Any, outputs: Any) -> SignalTrace:
    if isinstance(u, SignalTrace | str | os.PathLike):
        raise InvalidValue("y", f"a value of type {type(y).__name__}", "no value with a trace, which has its outputs")
    if hasattr(u, "index") and hasattr(y, "index") and hasattr(u, "iloc") and not u.index.equals(y.index):
        raise InvalidValue("y", "an index other than u's", "samples taken at the same times: u.align(y, join='inner')")
    told = next((found for each in (u, y) if (found := index_interval(each)) is not None), None)
    if interval_s is None and told is None:
        raise InvalidValue("interval_s", None, "the sampling interval in seconds, which these arrays don't have")
    if interval_s is not None and told is not None and abs(interval_s - told) > SAME * told:
        raise InvalidValue("interval_s", interval_s, f"no value: the index gives {told:g} s")
    return SignalTrace(
        interval_s=told if interval_s is None else interval_s,  # ty: ignore[invalid-argument-type]
        input_values=u,
        output_values=y,
        inputs=_names(u, inputs),
        outputs=_names(y, outputs),
    )


def _names(values: Any, given: Sequence[str] | None) -> tuple[str, ...]:
    """Given names, or a table's own; empty where there are none, so that the trace numbers them."""
    if given is not None:
        return tuple(given)
    if hasattr(values, "columns"):
        return tuple(map(str, values.columns))
    name = getattr(values, "name", None)
    return () if name is None else (str(name),)


_NOTHING = 1e-7  # relative to the greatest singular value: rounding of the measurements
_WEAK = 0.03
_REMEDY = "a GBN or a multisine (netctrl.ident.excite), with each input on its own"


def excitation(data: LqReduction, inputs: Sequence[int] | None = None, *, least: float = _NOTHING) -> int:
    """Order of persistent excitation of some inputs together (by default all), at most twice the horizon.

    It is the greatest k for which k successive samples have a covariance matrix of full rank: the least singular value
    of their block Hankel matrix exceeds `least` times the greatest.
    """
    m, q = data.n_inputs, data.n_inputs + data.n_outputs
    chosen = range(m) if inputs is None else inputs
    R = data.factor

    def full(k: int) -> bool:
        s = np.linalg.svd(R[:, [t * q + j for t in range(k) for j in chosen]], compute_uv=False)
        return bool(s[-1] > least * s[0])

    low, high = 0, 2 * data.horizon
    while low < high:  # an order of excitation implies all lower ones
        middle = -(-(low + high) // 2)
        low, high = (middle, high) if full(middle) else (low, middle - 1)
    return low


def check_excitation(data: LqReduction, names: Sequence[str], order: int) -> list[str]:
    """Warnings about inputs with too little excitation.

    Raises
    ------
    InvalidValue
        The order of excitation is below order + 1, so that any model would fit.
    """
    most, needed = 2 * data.horizon, order + 1
    found = excitation(data)
    if found >= most:
        if excitation(data, least=_WEAK) < needed:
            said = f"{_named(data, names, _WEAK, needed)} hardly"
            return [f"{said} above order {excitation(data, least=_WEAK)}: fast poles are uncertain; better {_REMEDY}"]
        return []
    said = f"{_named(data, names, _NOTHING, most)} only up to order {found}"
    if found < needed:
        raise InvalidValue("inputs", said, f"inputs that excite order {needed} at least: {_REMEDY}")
    return [f"{said}, below {most}, twice the horizon: better {_REMEDY}, or a shorter horizon"]


def _named(data: LqReduction, names: Sequence[str], least: float, needed: int) -> str:
    poor = [name for j, name in enumerate(names) if excitation(data, [j], least=least) < needed]
    return f"{', '.join(poor)}: excites" if poor else f"{', '.join(names)}: move together, excite"


_RIGID = 1e-12  # relative to a channel's size: a channel that moves less is constant


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """Means and standard deviations of the signals used for a model."""

    u_mean: np.ndarray
    u_size: np.ndarray
    y_mean: np.ndarray
    y_size: np.ndarray

    @classmethod
    def of(cls, trace: SignalTrace) -> Scale:
        parts: list[np.ndarray] = []
        for names, values in ((trace.inputs, trace.input_values), (trace.outputs, trace.output_values)):
            largest = np.nanmax(np.abs(values), axis=0)
            unit = np.where(largest > 0.0, largest, 1.0)  # squares of any float's share of it are floats
            mean, size = np.nanmean(values, axis=0), np.nanstd(values / unit, axis=0) * unit
            for k, name in enumerate(names):
                if size[k] <= _RIGID * largest[k]:
                    takes = "a signal that varies: leave this column out, or record while it varies"
                    raise InvalidValue(f"column {name!r}", f"{values[0, k]:.6g} in all samples", takes)
            parts += [mean, size]
        return cls(*parts)

    def scaled(self, trace: SignalTrace) -> list[Segment]:
        return [((u - self.u_mean) / self.u_size, (y - self.y_mean) / self.y_size) for u, y in trace.segments()]


def parted(trace: SignalTrace, held_out: object) -> tuple[SignalTrace, SignalTrace | None]:
    """Segments for estimation and for validation."""
    if held_out is None:
        return trace, None
    if not isinstance(held_out, SignalTrace):
        try:
            learned, tried = trace.split(cast(float, held_out))
        except InvalidValue as error:
            raise InvalidValue("held_out", held_out, error.takes) from None
    else:
        learned, tried = trace, held_out
        if (tried.inputs, tried.outputs) != (trace.inputs, trace.outputs) or tried.interval_s != trace.interval_s:
            raise InvalidValue("held_out", "other signals", "a trace of the same inputs, outputs and interval")
    values = tried.output_values
    spreads = np.fmax.reduce(values, axis=0) - np.fmin.reduce(values, axis=0)
    still = [name for name, spread in zip(tried.outputs, spreads, strict=True) if not spread > 0.0]
    if still:
        raise InvalidValue(
            "held_out", f"a constant {still[0]!r}", "samples in which all outputs vary: choose another share"
        )
    return learned, tried
