"""Result of a simulation: labelled arrays, and figures after the warm-up in one vocabulary, whatever engine ran it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from netctrl.errors import InvalidValue, checked_number, did_you_mean, optional_import
from netctrl.model.io.display import Reported, html_table
from netctrl.model.io.files import write_atomically
from netctrl.model.io.provenance import Provenance
from netctrl.model.io.record_file import Record
from netctrl.model.link_trace import trace_bits
from netctrl.scenario.labelled import QUANTITIES, Labelled
from netctrl.scenario.links import Links
from netctrl.scenario.scenario import Scenario
from netctrl.units import BITS_PER_BYTE, format_quantity

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FIGURES",
    "HEADER_BYTES",
    "SHORT_OBJECT_BYTES",
    "Estimate",
    "Figure",
    "Result",
    "estimate",
    "estimate_text",
    "fluid_flows",
    "quantity_text",
]

SHORT_OBJECT_BYTES = 12e3
"""Response times are summarised for objects below this size (ARC paper, Fig. 9)."""
HEADER_BYTES = 40.0
"""IP's and TCP's headers."""
NETWORK = "network"
"""Name of the whole network among the objects of figures."""

FIGURES = {
    **dict.fromkeys(("throughput", "goodput"), "bit/s"),
    **dict.fromkeys(("backlog", "backlog std", "backlog most"), "B"),
    **dict.fromkeys(("delay", "jitter", "rtt", "response", "paused"), "s"),
    **dict.fromkeys(("utilization", "loss", "marks", "resent"), "%"),
    **dict.fromkeys(("queue mean", "queue 99 %"), "B"),
    "cost": "(bit/s)²",
}
"""Quantity of a figure -> its unit; %: a share from 0 to 1, shown in percent. Others are pure numbers."""
_VERDICT = {
    "utilization": "{} used",
    "throughput": "{} carried",
    "loss": "{} lost",
    "backlog": "{} waiting on average",
    "delay": "delay {}",
    "jitter": "jitter {}",
}
"""Quantity -> its wording in a verdict."""
_SHOWN = 20
"""Largest number of links, and of flows, in a table."""


class Estimate(Record, frozen=True):
    """A mean over independent samples of the traffic, and the half width of its 95 % interval by Student's t.

    Each run is a sample where traffic is drawn; for a trace only its disjoint windows are. Null for a single sample.
    """

    mean: float
    """Mean of the samples."""
    half_width: float | None
    """Half width of the mean's 95 % interval; null for a single sample."""


class Figure(Record, frozen=True):
    """One figure of a result, after the warm-up."""

    of: str
    """Id of a link or flow, or what else was measured, such as network."""
    quantity: str
    """What was measured, such as throughput."""
    unit: str
    """Unit; %: shares from 0 to 1; empty: a pure number."""
    mean: float
    """Mean over the runs."""
    half_width: float | None
    """Half width of the mean's 95 % interval; null for one run."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Result(Reported):
    """Result of R runs of a scenario with L links and G flows or groups of flows.

    `result["throughput", "web"]` is one figure, `measures()` has all of them.

    Parameters
    ----------
    scenario : Scenario
        The simulated scenario.
    simulator : str
        "fluid", "packet", or an engine with its version, such as "ns-3.37".
    provenance : Provenance
        How it was made.
    span : tuple of float
        Beginning and end of the time that `totals` cover [s]: by default from the end of the warm-up.
    totals : Labelled
        Sums and means over that time: (run, link), (run, flow), (run,).
    series : Labelled
        Time series of the first run from its very beginning: (link, time), (flow, time); a sample is of the interval
        that ends at its time, and backlogs are those at its end.
    tables : dict
        Name -> columns of equal length, of the first run. `transfers`: flows and objects that end: `start`, `size` and
        `duration` (NaN: not complete), from the request to the last byte. Others depend on the engine.

    Examples
    --------
    >>> import netctrl
    >>> result = netctrl.simulate(netctrl.arc(50, 0.5, 10e6), "fluid")
    >>> round(result["utilization", "bottleneck"], 2), result.series["backlog", "bottleneck"].shape
    (0.98, (3000,))
    """

    scenario: Scenario
    simulator: str
    provenance: Provenance
    span: tuple[float, float]
    totals: Labelled
    series: Labelled
    tables: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, columns in self.tables.items():
            if len({len(column) for column in columns.values()}) > 1:
                lengths = {title: len(column) for title, column in columns.items()}
                raise InvalidValue(f"tables.{name}", lengths, "columns of equal length")
            for column in columns.values():
                column.setflags(write=False)

    @classmethod
    def of_series(
        cls,
        scenario: Scenario,
        simulator: str,
        provenance: Provenance,
        *,
        links: Mapping[str, np.ndarray | None],
        flows: Mapping[str, np.ndarray | None],
        header: float = HEADER_BYTES,
        totals: Mapping[str, np.ndarray] = MappingProxyType({}),
        tables: Mapping[str, Mapping[str, np.ndarray]] = MappingProxyType({}),
    ) -> Result:
        """The result of one run with these time series, whose totals follow from them.

        Parameters
        ----------
        scenario, simulator, provenance
            As of the class.
        links, flows : dict
            Quantity -> array of shape (L, T) or (G, T), of all links and flows in the scenario's order, sampled at the
            ends of its intervals; None: not measured; NaN, or a round trip of 0: not in that interval.
        header : float
            Size of a TCP packet's headers [byte].
        totals : dict, optional
            Totals of flows that don't follow from series: quantity -> array of shape (G,).
        tables : dict, optional
            As of the class.

        Raises
        ------
        InvalidValue
            Arrays whose shapes don't fit the scenario or each other, or values that aren't finite.
        """
        values: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
        for dim, arrays in (("link", links), ("flow", flows)):
            for name, given in arrays.items():
                if given is not None:
                    array = np.array(given, dtype=float)
                    values[name] = (dim, "time"), np.where(array > 0.0, array, np.nan) if name == "rtt" else array
        time = scenario.interval * np.arange(1, next(iter(values.values()))[1].shape[-1] + 1)
        names = {"link": scenario.network.link_ids, "flow": tuple(flow.id for flow in scenario.flows)}
        values["capacity"] = ("link", "time"), _capacity(scenario, time)
        if "payload" in values and "delivered" not in values:
            values["delivered"] = ("flow", "time"), values["payload"][1] * _with_headers(scenario, header)
        series = Labelled({**names, "time": time}, values)
        settled, span = _settled(series, scenario.warmup, scenario.duration)
        more = {name: (("run", "flow"), np.array(given, dtype=float)[None]) for name, given in totals.items()}
        return cls(
            scenario=scenario,
            simulator=simulator,
            provenance=provenance,
            span=span,
            totals=Labelled(settled.coords, {**settled.values, **more}),
            series=series,
            tables=tables,
        )

    def between(self, start: float = 0.0, stop: float | None = None) -> Result:
        """The same result with totals and figures of another time, from its series.

        Parameters
        ----------
        start, stop : float
            Beginning and end [s], by default those of the whole run. Samples that end between them count.

        Raises
        ------
        InvalidValue
            No sample between start and stop, or no series.

        Examples
        --------
        >>> import netctrl
        >>> result = netctrl.simulate(netctrl.arc(50, 0.5, 10e6), "fluid")
        >>> result.between(100.0, 200.0)["utilization", "bottleneck"] > 0.9
        True
        """
        first = checked_number("start", start, "a time in s", at_least=0.0)
        time = self.series.coords.get("time", ())
        end = float(time[-1]) if len(time) else 0.0
        last = end if stop is None else min(end, checked_number("stop", stop, "a time after start in s", above=first))
        totals, span = _settled(self.series, first, last)
        if span[0] >= span[1]:
            raise InvalidValue("start", first, f"a time before the last sample ({end:g} s), and a sample before stop")
        return replace(self, totals=totals, span=span)

    @property
    def seconds(self) -> float:
        """Time that totals and figures cover, of each run [s]."""
        return self.span[1] - self.span[0]

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.totals.coords["run"])

    @property
    def time_s(self) -> np.ndarray:
        """Ends of the series' intervals, shape (T,) [s]."""
        return np.asarray(self.series.coords.get("time", ()), dtype=float)

    @property
    def links(self) -> tuple[str, ...]:
        """Ids of the links."""
        return tuple(self.totals.coords["link"])

    @property
    def flows(self) -> tuple[str, ...]:
        """Ids of the flows, or groups of flows."""
        return tuple(self.totals.coords["flow"])

    @property
    def transfers(self) -> Mapping[str, np.ndarray]:
        """The table of flows and objects that end; without rows where there are none."""
        return self.tables.get("transfers", dict.fromkeys(("start", "size", "duration"), np.zeros(0)))

    def __getitem__(self, key: tuple[str, str]) -> float:
        """One figure's mean over the runs, in SI units: `result["loss", "line"]`."""
        found = self.figures()
        if key not in found:
            if not isinstance(key, tuple) or len(key) != 2:
                raise InvalidValue("figure", key, "a quantity and an object, as in ('loss', 'line')")
            own = self.of(key[1])
            raise InvalidValue(key[1], key[0], f"one of {', '.join(own)}{did_you_mean(key[0], own)}")
        return self._estimate(found[key]).mean

    def of(self, name: str) -> dict[str, float]:
        """All figures of one link, flow or other object: quantity -> mean over the runs, in SI units.

        Parameters
        ----------
        name : str
            Id of a link or a flow, or "network".

        Raises
        ------
        InvalidValue
            Nothing of this name was measured.
        """
        found = {
            quantity: self._estimate(values).mean for (quantity, of), values in self.figures().items() if of == name
        }
        if not found:
            known = dict.fromkeys(of for _, of in self.figures())
            raise InvalidValue("of", name, f"one of {', '.join(list(known)[:_SHOWN])}{did_you_mean(name, known)}")
        return found

    def rtts(self, flow: str, start: float | None = None) -> np.ndarray:
        """Round-trip times of a flow, each as its engine recorded it: of packets, or means of intervals [s].

        Parameters
        ----------
        flow : str
            Id of the flow.
        start : float, optional
            Time of the first one [s]; by default the end of the warm-up.

        Returns
        -------
        ndarray
        """
        first, trips = self.span[0] if start is None else start, self.tables.get("trips")
        if trips is not None:
            return trips["rtt"][(trips["flow"] == self.flows.index(flow)) & (trips["time"] > first)]
        found = self.series["rtt", flow][self.time_s > first]
        return found[np.isfinite(found)]

    def figures(self) -> dict[tuple[str, str], np.ndarray]:
        """Figures after the warm-up: (quantity, object) -> value of each run, shape (R,), in SI units.

        Objects are the network as a whole, links, flows (a link where both have the same id), and transfers.
        Quantities of links: throughput, utilization (of the actual capacity), backlog with standard deviation and
        maximum, delay in the queue, loss and marks as shares of what arrives. Of flows: throughput with headers,
        goodput without, rtt, delay from source to target, jitter, loss, and the share of the payload that was resent.
        """
        found = {(quantity, NETWORK): values for quantity, values in self._of_network().items()}
        for ids, figures in ((self.links, self._of_links()), (self.flows, self._of_flows())):
            for place, of in enumerate(ids):
                for quantity, values in figures.items():
                    if np.isfinite(values[:, place]).any():
                        found.setdefault((quantity, of), values[:, place])
        shares = self._of_flows().get("throughput", np.zeros((self.runs, 0)))
        if len(self.flows) > 1 and np.isfinite(shares).all() and all(_is_single(flow) for flow in self.scenario.flows):
            squares = (shares**2).sum(axis=1)
            found["Jain's index", "flows"] = _ratio(shares.sum(axis=1) ** 2, len(self.flows) * squares)
        return found | self._of_transfers()

    def measures(self) -> dict[tuple[str, str], float]:
        """Figures after the warm-up: (quantity, object) -> mean over the runs, in SI units, shares from 0 to 1."""
        return {key: self._estimate(values).mean for key, values in self.figures().items()}

    def summary(self) -> tuple[Figure, ...]:
        """All figures as records, with the 95 % intervals of their means over independent runs."""
        found = []
        for (quantity, of), values in self.figures().items():
            each = self._estimate(values)
            found.append(Figure(of, quantity, FIGURES.get(quantity, ""), each.mean, each.half_width))
        return tuple(found)

    def interval(self, quantity: str, of: str) -> Estimate:
        """Mean of a figure over independent samples of the traffic, with its 95 % interval.

        Parameters
        ----------
        quantity, of : str
            As in `figures`.

        Returns
        -------
        Estimate
        """
        self[quantity, of]  # names what there is
        return self._estimate(self.figures()[quantity, of])

    def _estimate(self, values: np.ndarray) -> Estimate:
        known = np.isfinite(values)
        sample = self.totals["sample"][known] if "sample" in self.totals and len(values) == self.runs else None
        return estimate(values[known], sample)

    def _of_links(self) -> dict[str, np.ndarray]:
        """Quantity -> (R, L)."""
        total, found = self.totals, {}
        if "departed" in total:
            rate = BITS_PER_BYTE * total["departed"] / self.seconds
            found["throughput"] = rate
            # Engines count a packet when its last bit has left: up to one packet more than fits between two readings.
            found["utilization"] = np.minimum(rate / total["capacity"], 1.0)
        names = {"backlog": "backlog", "backlog_std": "backlog std", "backlog_most": "backlog most", "delay": "delay"}
        found |= {word: total[name] for name, word in names.items() if name in total}
        for name, word in (("lost", "loss"), ("marked", "marks")):
            if "arrived" in total and name in total:
                found[word] = _ratio(total[name], total["arrived"])
        return found | {name: total[name] for name in ("drops", "pauses", "paused") if name in total}

    def _of_flows(self) -> dict[str, np.ndarray]:
        """Quantity -> (R, G)."""
        total, found = self.totals.over("run", "flow"), {}
        for name, word in (("delivered", "throughput"), ("payload", "goodput")):
            if name in total:
                found[word] = BITS_PER_BYTE * total[name] / self.seconds
        names = {"rtt": "rtt", "one_way": "delay", "jitter": "jitter"}
        found |= {word: total[name] for name, word in names.items() if name in total}
        if "flow_lost" in total:
            found["loss"] = _ratio(total["flow_lost"], total["offered"])
        if "resent" in total:
            found["resent"] = _ratio(total["resent"], total["sent"])
        return found

    def _of_network(self) -> dict[str, np.ndarray]:
        """Quantity -> (R,), where it is known what the whole network was offered."""
        total = self.totals
        if "entered" not in total:
            return {}
        found = {
            "throughput": BITS_PER_BYTE * total["left"] / self.seconds,
            "backlog": total["backlog"].sum(axis=1),
            "loss": _ratio(total["lost"].sum(axis=1), total["entered"]),
        }
        if "weight" in total:  # Σ_l E f_l² + mu_l E b_l², HFTraC (13)
            found["cost"] = total["rate_square"].sum(axis=1) + total["backlog_square"] @ total["weight"]
        return found

    def _of_transfers(self) -> dict[tuple[str, str], np.ndarray]:
        rows = self.transfers
        begun = (rows["start"] >= self.span[0]) & (rows["start"] < self.span[1])
        short = rows["duration"][begun & (rows["size"] < SHORT_OBJECT_BYTES)]
        short = short[np.isfinite(short)]
        return {("response", "short objects"): np.array([short.mean()])} if len(short) else {}

    @property
    def verdict(self) -> str:
        """Main figures in one sentence: of the whole network, or of the link where each quantity is largest."""
        measures = self.measures()
        whole = {NETWORK} if any(of == NETWORK for _, of in measures) else set(self.links)
        parts = []
        for quantity, words in _VERDICT.items():
            found = {of: value for (name, of), value in measures.items() if name == quantity}
            values = {of: value for of, value in found.items() if of in whole} or found
            if not values or (quantity == "throughput" and parts):
                continue
            of = max(values, key=values.__getitem__)
            at = f" ({of})" if len(values) > 1 else ""
            parts.append(words.format(quantity_text(quantity, values[of], 4)) + at)
        return ", ".join(parts) or "nothing was measured"

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """Title, and rows of (name, text): one row per object; of many links or flows those with the most losses."""
        texts: dict[str, list[str]] = {}
        for each in self.summary():
            text = estimate_text(each.quantity, each.mean, each.half_width)
            texts.setdefault(each.of, []).append(f"{each.quantity} {text}")
        measures = self.measures()

        def most(ids: Sequence[str]) -> list[str]:
            worst = sorted(ids, key=lambda of: -measures.get(("loss", of), measures.get(("backlog", of), 0.0)))
            return [of for of in ids if of in set(worst[:_SHOWN])]

        left_out = (set(self.links) | set(self.flows)) - set(most(self.links)) - set(most(self.flows))
        rows = [(of, ", ".join(text)) for of, text in texts.items() if of not in left_out]
        for what, ids in (("links", self.links), ("flows", self.flows)):
            if len(ids) > _SHOWN:
                rows.append((what, f"{len(ids)}, of which those that lose the most are above"))
        what = f"{self.span[0]:g} to {self.span[1]:g} s"
        if self.runs > 1:
            what += f", {self.runs} runs, {self._samples()}"
        return f"{self.scenario.name} ({self.simulator}), {what}", rows

    def _samples(self) -> str:
        """Description of the samples behind the intervals."""
        samples = len(np.unique(self.totals["sample"])) if "sample" in self.totals else self.runs
        if samples == 1:
            return "all on the same window of the trace: no interval"
        return "95 % intervals" + (f" over {samples} disjoint windows of the trace" if samples < self.runs else "")

    def links_table(self) -> pd.DataFrame:
        """A DataFrame with one row per link (`link`) and one column per quantity in SI units; NaN where there is none.

        Examples
        --------
        >>> import netctrl
        >>> result = netctrl.simulate(netctrl.arc(50, 0.5, 10e6), "fluid")
        >>> list(result.links_table().columns)[:4]
        ['link', 'throughput', 'utilization', 'backlog']
        """
        return _by_object("link", self.links, self._of_links())

    def flows_table(self) -> pd.DataFrame:
        """A DataFrame with one row per flow or group of flows (`flow`) and one column per quantity in SI units."""
        return _by_object("flow", self.flows, self._of_flows())

    def to_pandas(self, part: str | None = None) -> pd.DataFrame:
        """One part of the result as a DataFrame.

        Parameters
        ----------
        part : str, optional
            "link" or "flow": time series, one row per link or flow and sample; "runs": totals of links, one row per run
            and link; or the name of one of `tables`. By default the series of links where there are any, else
            transfers or else "runs".

        Raises
        ------
        InvalidValue
            A part that the result doesn't have.
        """
        with optional_import():
            import pandas as pd

        parts = {f"{dim}": self.series for dim in ("link", "flow") if self.series.over(dim, "time")}
        known = [*parts, *self.tables, "runs"]
        chosen = known[0] if part is None else part
        if chosen not in known:
            raise InvalidValue("part", part, f"one of {', '.join(known)}")
        if chosen in parts:
            return self.series.to_pandas(chosen, "time")
        return self.totals.to_pandas("run", "link") if chosen == "runs" else pd.DataFrame(dict(self.tables[chosen]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole result to a file (.npz) atomically; `netctrl.read` reads it.

        Parameters
        ----------
        path : path
            Where to write; an existing file is replaced.
        """
        from netctrl.scenario.result_file import result_bytes

        write_atomically(path, result_bytes(self))

    def _repr_html_(self) -> str:
        return html_table(*self.table())


def _with_headers(scenario: Scenario, header: float) -> np.ndarray:
    """Bytes with headers for each byte of payload, shape (G, 1), of endless TCP flows, whose packets are all full; NaN
    of others."""
    full = scenario.traffic.packet_size
    endless = [getattr(flow, "answered", True) and getattr(flow, "size", 0.0) is None for flow in scenario.flows]
    sizes = [getattr(flow, "packet_size", None) or full for flow in scenario.flows]
    shares = [size / (size - header) if on else np.nan for size, on in zip(sizes, endless, strict=True)]
    return np.array(shares).reshape(-1, 1)


def _capacity(scenario: Scenario, ends: np.ndarray) -> np.ndarray:
    """Mean capacity of each link in each interval that ends at `ends`, shape (L, T) [bit/s]."""
    network = scenario.network
    if not isinstance(network, Links):
        return np.full((1, len(ends)), network.capacity)
    starts = np.concatenate(([0.0], ends[:-1]))
    latest = {link.id: link.capacity for link in network.links}
    capacity = np.array([np.full(len(ends), link.capacity) for link in network.links])
    index = {link.id: row for row, link in enumerate(network.links)}
    for row, link in enumerate(network.links):
        if link.trace is not None:
            capacity[row] = np.diff(trace_bits(link.trace, ends), prepend=0.0) / (ends - starts)
    for change in sorted(network.changes, key=lambda change: change.at):
        if change.capacity is not None:
            share = np.clip((ends - change.at) / (ends - starts), 0.0, 1.0)
            capacity[index[change.link]] += share * (change.capacity - latest[change.link])
            latest[change.link] = change.capacity
    return capacity


def _is_single(flow: object) -> bool:
    return getattr(flow, "count", 1) == 1 and getattr(flow, "sessions", 1) == 1


def _settled(series: Labelled, start: float, stop: float) -> tuple[Labelled, tuple[float, float]]:
    """Totals of the samples that end after `start` and until `stop`, as of one run, and the time that they cover."""
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
            value = _mean_of_known(part)
        found[name] = ("run", *dims[:-1]), value[None]
    if "backlog" in series and len(chosen):
        backlog = series["backlog"][..., chosen]
        found["backlog_std"] = ("run", "link"), backlog.std(axis=-1)[None]
        found.setdefault("backlog_most", (("run", "link"), backlog.max(axis=-1)[None]))
    span = (float(time[chosen[0]]) - step, float(time[chosen[-1]])) if len(chosen) else (start, start)
    return Labelled({"run": (0,), **{dim: ids for dim, ids in series.coords.items() if dim != "time"}}, found), span


def _mean_of_known(values: np.ndarray) -> np.ndarray:
    """Means over the last axis of the values that are known; NaN without any."""
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)


def _by_object(name: str, ids: Sequence[str], figures: Mapping[str, np.ndarray]) -> pd.DataFrame:
    with optional_import():
        import pandas as pd

    return pd.DataFrame({name: list(ids)} | {quantity: values.mean(axis=0) for quantity, values in figures.items()})


def fluid_flows(scenario: Scenario, sent: np.ndarray, rtt: np.ndarray) -> dict[str, np.ndarray]:
    """Series of flows in a fluid, which sends whole packets, (G, T): bytes with headers, payload, round trips [s]."""
    size = scenario.traffic.packet_size
    return {"delivered": size * sent, "payload": (size - HEADER_BYTES) * sent, "rtt": rtt}


def estimate(values: np.ndarray, sample: np.ndarray | None = None) -> Estimate:
    """Mean of independent values, and the half width of its 95 % interval by Student's t.

    Values with the same index in `sample` are not independent: their mean counts as one value.
    """
    if sample is not None:
        _, row, count = np.unique(sample, return_inverse=True, return_counts=True)
        values = np.bincount(row, values) / count
    if len(values) < 2:
        return Estimate(mean=float(values.mean()), half_width=None)
    from scipy.special import stdtrit

    spread = float(values.std(ddof=1)) / sqrt(len(values))
    return Estimate(mean=float(values.mean()), half_width=float(stdtrit(len(values) - 1, 0.975)) * spread)


def estimate_text(quantity: str, mean: float, half_width: float | None) -> str:
    """A measure's mean as text, with the half width of its interval if that is above 0."""
    width = f" ± {quantity_text(quantity, half_width, 2)}" if half_width and half_width > 0.0 else ""
    return quantity_text(quantity, mean, 4) + width


def quantity_text(quantity: str, value: float, digits: int) -> str:
    """A measure's value as text, with its unit."""
    unit, short = FIGURES.get(quantity, ""), f"{value:.{digits}g}"
    if unit == "%":
        return f"{100.0 * value:.{digits}g} %"
    return format_quantity(float(short), unit) if unit in ("bit/s", "B", "s") else f"{short} {unit}".rstrip()
