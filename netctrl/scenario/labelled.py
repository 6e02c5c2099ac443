"""Arrays over named dimensions, such as runs, links and time, each with its unit."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, did_you_mean, optional_import
from netctrl.model.io.arrays import plain

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


class Quantity(NamedTuple):
    """A measured quantity."""

    unit: str
    """Unit; empty: a share or another pure number."""
    total: Literal["mean", "sum", "most"] = "mean"
    """What becomes one number of the values in several intervals: their mean, sum or maximum."""


QUANTITIES = {
    **dict.fromkeys(("backlog", "backlog_std", "backlog_median", "backlog_95"), Quantity("B")),
    **dict.fromkeys(("window", "in_flight"), Quantity("B")),
    "backlog_most": Quantity("B", "most"),
    **dict.fromkeys(("arrived", "departed", "lost", "marked", "growth"), Quantity("B", "sum")),
    **dict.fromkeys(("entered", "left", "offered", "delivered", "payload", "sent", "resent"), Quantity("B", "sum")),
    **dict.fromkeys(("flow_lost", "flow_growth"), Quantity("B", "sum")),
    **dict.fromkeys(("drops", "pauses", "received"), Quantity("", "sum")),
    "paused": Quantity("s", "sum"),
    **dict.fromkeys(("delay", "rtt", "one_way", "jitter"), Quantity("s")),
    **dict.fromkeys(("capacity", "pace"), Quantity("bit/s")),
    **dict.fromkeys(("rate_square", "backlog_square"), Quantity("(bit/s)²")),
    **dict.fromkeys(("probability", "weight", "sample"), Quantity("")),
}
"""Measured quantities by name.

Of a link: mean `capacity`; `backlog` and its standard deviation, median, 95 % quantile and maximum in time; bytes that
`arrived`, `departed`, were `lost` or `marked`, and the `growth` of the backlog (arrived = departed + lost + growth);
`drops` [packet]; `pauses` by
PFC and the time `paused`; `probability` of the queue's law; `delay`, the time in the queue; of controlled links the
mean squares of the rate's and the backlog's deviations, and the `weight` mu of the cost.
Of a flow, or a group of flows: bytes `offered`, `delivered` and lost (`flow_lost`), with headers, and the growth of
what is in the network (`flow_growth`); `payload` received; payload `sent` by senders that hear acknowledgements, and
the part of it that was `resent`; `rtt`; `one_way`, the time from source to target; `jitter`; `received` packets;
congestion `window`, what is `in_flight` under it, and `pace`, the pacing rate.
Of a run: bytes that `entered` the network and `left` it; `sample`, the index of the independent sample of the traffic
that it had.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Arrays over named dimensions.

    Parameters
    ----------
    coords : dict
        Name of a dimension, one of run, link, flow, time -> its labels; of time the ends of intervals [s].
    values : dict
        Name of a quantity, one of `QUANTITIES` -> (its dimensions, array). Arrays become read-only; unknown values are
        NaN.

    Raises
    ------
    InvalidValue
        An unknown quantity, a shape that doesn't fit the dimensions, or an infinite value.

    Examples
    --------
    >>> import numpy as np
    >>> from netctrl.scenario.labelled import Labelled
    >>> values = {"backlog": (("link", "time"), np.array([[0.0, 300.0], [10.0, 20.0]]))}
    >>> data = Labelled({"link": ("up", "down"), "time": np.array([1.0, 2.0])}, values)
    >>> data["backlog"].shape, data["backlog", "down"].tolist()
    ((2, 2), [10.0, 20.0])
    """

    coords: Mapping[str, Sequence[Any] | np.ndarray]
    values: Mapping[str, tuple[tuple[str, ...], np.ndarray]]

    def __post_init__(self) -> None:
        for name, (dims, array) in self.values.items():
            if name not in QUANTITIES:
                raise InvalidValue("values", name, f"one of {', '.join(QUANTITIES)}")
            shape = tuple(len(self.coords[dim]) for dim in dims)
            if array.shape != shape:
                raise InvalidValue(name, array.shape, f"an array of shape {shape} ({', '.join(dims)})")
            if array.dtype.kind not in "fiub" or np.isinf(array).any():
                raise InvalidValue(name, array.dtype.name, "finite numbers, or NaN where nothing was measured")
            array.setflags(write=False)
        for labels in self.coords.values():
            if isinstance(labels, np.ndarray):
                labels.setflags(write=False)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, key: str | tuple[Any, ...]) -> np.ndarray:
        """The array of a quantity: `data["backlog"]`; of one link, flow or run: `data["backlog", "line"]`."""
        name, *labels = (key,) if isinstance(key, str) else key
        if name not in self.values:
            meant = did_you_mean(name, tuple(self.values))
            raise InvalidValue("quantity", name, f"one of {', '.join(self.values) or 'none: nothing was kept'}{meant}")
        dims, array = self.values[name]
        for label in labels:
            axes = [axis for axis, dim in enumerate(dims) if dim != "time" and label in self.coords[dim]]
            if not axes:
                known = [str(each) for dim in dims if dim != "time" for each in self.coords[dim]]
                raise InvalidValue(name, label, f"one of {', '.join(known[:20])}")
            array = array.take(list(self.coords[dims[axes[0]]]).index(label), axes[0])
            dims = dims[: axes[0]] + dims[axes[0] + 1 :]
        return array

    def over(self, *dims: str) -> dict[str, np.ndarray]:
        """Arrays of the quantities that have exactly these dimensions.

        Parameters
        ----------
        *dims : str
            Names of dimensions, in the arrays' order.
        """
        return {name: array for name, (own, array) in self.values.items() if own == dims}

    def to_pandas(self, *dims: str) -> pd.DataFrame:
        """A DataFrame with one row per combination of labels, such as `to_pandas("link", "time")`.

        Parameters
        ----------
        *dims : str
            Dimensions; quantities with exactly these are the columns after them.
        """
        with optional_import():
            import pandas as pd

        index = pd.MultiIndex.from_product([self.coords.get(dim, ()) for dim in dims], names=dims)
        return pd.DataFrame({name: array.ravel() for name, array in self.over(*dims).items()}, index).reset_index()

    def to_xarray(self) -> xr.Dataset:
        """An xarray Dataset, with units as attributes."""
        with optional_import():
            import xarray as xr

        arrays = {name: (dims, array, {"units": QUANTITIES[name].unit}) for name, (dims, array) in self.values.items()}
        return xr.Dataset(arrays, {dim: (dim, np.asarray(labels)) for dim, labels in self.coords.items()})


def settled(series: Labelled, start: float, stop: float) -> tuple[Labelled, tuple[float, float]]:
    """Totals of the samples that end after `start` and until `stop` [s], as of one run, and the time they cover."""
    time = np.asarray(series.coords.get("time", ()), dtype=float)
    step = float(time[0]) if len(time) else 0.0
    chosen = np.flatnonzero((time > start + 1e-6 * step) & (time <= stop + 1e-6 * step))
    found: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    for name, (dims, array) in series.values.items():
        part, how = array[..., chosen], QUANTITIES[name].total
        if how == "sum":
            value = part.sum(axis=-1)
        elif how == "most":
            value = part.max(axis=-1, initial=0.0)
        else:
            # Means over the last axis of the values that are known; NaN without any.
            known = np.isfinite(part)
            count = known.sum(axis=-1)
            total = np.where(known, part, 0.0).sum(axis=-1)
            value = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
        found[name] = ("run", *dims[:-1]), value[None]
    if "backlog" in series and len(chosen):
        backlog = series["backlog"][..., chosen]
        found["backlog_std"] = ("run", "link"), backlog.std(axis=-1)[None]
        for name, share in (("backlog_median", 0.5), ("backlog_95", 0.95)):
            found[name] = ("run", "link"), np.quantile(backlog, share, axis=-1)[None]
        found.setdefault("backlog_most", (("run", "link"), backlog.max(axis=-1)[None]))
    span = (float(time[chosen[0]]) - step, float(time[chosen[-1]])) if len(chosen) else (start, start)
    return Labelled({"run": (0,), **{dim: ids for dim, ids in series.coords.items() if dim != "time"}}, found), span


def packed(
    head: Mapping[str, Any], parts: Mapping[str, Labelled], tables: Mapping[str, Mapping[str, np.ndarray]]
) -> bytes:
    """NumPy's .npz of labelled arrays and of tables; `head`, with the labels, is JSON.

    Parameters
    ----------
    head : dict
        What else stands in the head.
    parts : dict
        Name -> arrays. Those with time have the same.
    tables : dict
        Name -> columns.
    """
    whole, arrays = dict(head), dict[str, Any](time=np.zeros(0))
    for part, data in parts.items():
        labels = {dim: np.asarray(each) for dim, each in data.coords.items()}
        arrays["time"] = labels.pop("time", arrays["time"])
        coords = {dim: each.tolist() for dim, each in labels.items()}
        whole[part] = {"coords": coords, "dims": {name: dims for name, (dims, _) in data.values.items()}}
        arrays |= {f"{part}/{name}": array for name, (_, array) in data.values.items()}
    arrays |= {f"tables/{name}/{title}": each for name, columns in tables.items() for title, each in columns.items()}
    arrays["head"] = np.frombuffer(msgspec.json.encode(whole, enc_hook=plain), np.uint8)
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    return content.getvalue()
