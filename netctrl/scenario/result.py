"""Result of a simulation: labelled arrays, and figures after the warm-up in one vocabulary, whatever engine ran it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_number, did_you_mean, optional_import
from netctrl.core.files import write_atomically
from netctrl.model.io.display import Reported, Rows
from netctrl.model.io.provenance import Provenance
from netctrl.scenario.figures import (
    FIGURES,
    NETWORK,
    Estimate,
    Figure,
    by_object,
    estimate,
    fairness,
    flow_figures,
    link_figures,
    network_figures,
    samples_text,
    table_rows,
    verdict_text,
)
from netctrl.scenario.labelled import Labelled, packed, settled
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.transfers import transfer_figures, watched_figures

if TYPE_CHECKING:
    import pandas as pd

HEADER_BYTES = 40.0
"""IP's and TCP's headers."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
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
        Name -> columns of equal length, of the first run. `transfers`: what ends, by `start`, `size` and `duration`
        (NaN: not complete), from the request to the last byte. More of data centres: `netctrl.scenario.fabric.result`.

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
        names = {"link": scenario.link_ids, "flow": tuple(flow.id for flow in scenario.flows)}
        values["capacity"] = ("link", "time"), scenario.capacity_at(time)
        payload = values.get("payload", ((), np.zeros(0)))[1]
        if len(payload) == len(scenario.flows) and "delivered" not in values:
            values["delivered"] = ("flow", "time"), payload * _with_headers(scenario, header)
        series = Labelled({**names, "time": time}, values)
        whole, span = settled(series, scenario.warmup, scenario.duration)
        # What is sent without acknowledgements is counted by no engine, and nothing of it is resent.
        counted = np.array([getattr(flow, "answered", True) for flow in scenario.flows])
        more = {name: (("run", "flow"), np.where(counted, given, np.nan)[None]) for name, given in totals.items()}
        return cls(
            scenario=scenario,
            simulator=simulator,
            provenance=provenance,
            span=span,
            totals=Labelled(whole.coords, {**whole.values, **more}),
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
        totals, span = settled(self.series, first, last)
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
        return self.tables.get("transfers", dict.fromkeys(("flow", "start", "size", "duration"), np.zeros(0)))

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
        measures = self.measures()
        found = {quantity: value for (quantity, of), value in measures.items() if of == name}
        if not found:
            known = dict.fromkeys(of for _, of in measures)
            raise InvalidValue("of", name, f"one of {', '.join(list(known)[:20])}{did_you_mean(name, known)}")
        return found

    def rtts(self, flow: str, start: float | None = None) -> np.ndarray:
        """Round-trip times of a flow, each as its engine recorded it: of packets, or means of intervals [s].

        Parameters
        ----------
        flow : str
            Id of the flow.
        start : float, optional
            Time of the first one [s]; by default the end of the warm-up.
        """
        first, trips = self.span[0] if start is None else start, self.tables.get("trips")
        if trips is not None:
            return trips["rtt"][(trips["flow"] == self.flows.index(flow)) & (trips["time"] > first)]
        found = self.series["rtt", flow][self.time_s > first]
        return found[np.isfinite(found)]

    def figures(self) -> dict[tuple[str, str], np.ndarray]:
        """Figures after the warm-up: (quantity, object) -> value of each run, shape (R,), in SI units.

        Objects are the network as a whole, links, flows (a link where both have the same id), and transfers.
        Quantities of links: throughput, utilization (of the actual capacity), backlog with standard deviation,
        quantiles and maximum, delay in the queue, loss and marks as shares of what arrives, probability of the law.
        Of flows: throughput with headers, goodput without, rtt, delay from source to target, jitter, loss, the share of
        the payload that was resent, and mean and 95 % quantile of the response, the time to the last byte of what ends.
        """
        found = {(quantity, NETWORK): values for quantity, values in network_figures(self.totals, self.seconds).items()}
        for ids, figures in (
            (self.links, link_figures(self.totals, self.seconds)),
            (self.flows, flow_figures(self.totals, self.seconds)),
        ):
            known = {quantity: np.any(np.isfinite(values), axis=0) for quantity, values in figures.items()}
            for place, of in enumerate(ids):
                for quantity, values in figures.items():
                    if known[quantity][place]:
                        found.setdefault((quantity, of), values[:, place])
        found |= fairness(self.totals) if all(getattr(each, "count", 1) == 1 for each in self.scenario.flows) else {}
        return found | transfer_figures(self.transfers, self.span, self.flows) | watched_figures(self.tables)

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
        """
        self[quantity, of]  # names what there is
        return self._estimate(self.figures()[quantity, of])

    def _estimate(self, values: np.ndarray) -> Estimate:
        known = np.isfinite(values)
        sample = self.totals["sample"][known] if "sample" in self.totals and len(values) == self.runs else None
        return estimate(values[known], sample)

    @property
    def verdict(self) -> str:
        """Main figures in one sentence: of the whole network, or of the link where each quantity is largest."""
        return verdict_text(self.measures(), self.links)

    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """Title, and rows of (name, text): one row per object; of many links or flows those with the most losses."""
        rows = table_rows(self.summary(), self.links, self.flows, self.tables.get("signals", {}))
        what = f"{self.span[0]:g} to {self.span[1]:g} s"
        if self.runs > 1:
            _, sample = self.totals.values.get("sample", ((), np.arange(self.runs)))
            what += f", {self.runs} runs, {samples_text(sample)}"
        return f"{self.scenario.name} ({self.simulator}), {what}", rows

    def links_table(self) -> pd.DataFrame:
        """A DataFrame with one row per link (`link`) and one column per quantity in SI units; NaN where there is none.

        Examples
        --------
        >>> import netctrl
        >>> result = netctrl.simulate(netctrl.arc(50, 0.5, 10e6), "fluid")
        >>> list(result.links_table().columns)[:4]
        ['link', 'throughput', 'utilization', 'backlog']
        """
        return by_object("link", self.links, link_figures(self.totals, self.seconds))

    def flows_table(self) -> pd.DataFrame:
        """A DataFrame with one row per flow or group of flows (`flow`) and one column per quantity in SI units."""
        return by_object("flow", self.flows, flow_figures(self.totals, self.seconds))

    def to_pandas(self, part: str | None = None) -> pd.DataFrame:
        """One part of the result as a DataFrame.

        Parameters
        ----------
        part : str, optional
            "link" or "flow": time series, one row per link or flow and sample; "runs": totals of links, one row per run
            and link; or the name of one of `tables`. By default the series, else the transfers, else "runs".

        Raises
        ------
        InvalidValue
            A part that the result doesn't have.
        """
        with optional_import():
            import pandas as pd

        series = {dim: self.series.to_pandas(dim, "time") for dim in ("link", "flow") if self.series.over(dim, "time")}
        if part is None and series and self.runs == 1:
            return pd.concat(series.values(), ignore_index=True)
        known = [*series, *self.tables, "runs"]
        part = part or ("transfers" if "transfers" in self.tables and self.runs == 1 else "runs")
        if part not in known:
            raise InvalidValue("part", part, f"one of {', '.join(known)}")
        if part == "runs":
            return self.totals.to_pandas("run", "link")
        return series[part] if part in series else pd.DataFrame(dict(self.tables[part]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole result to a file (.npz) atomically; `netctrl.read` reads it.

        Parameters
        ----------
        path : path
            Where to write, a name that ends in .npz; an existing file is replaced.

        Raises
        ------
        InvalidValue
            Another suffix.
        """
        if not str(path).lower().endswith(".npz"):
            raise InvalidValue("path", str(path), "a file name that ends in .npz")
        write_atomically(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Content of the file that `save` writes."""
        head: dict[str, Any] = {"schema": "netctrl.result/1", "scenario": self.scenario, "simulator": self.simulator}
        head |= {"provenance": self.provenance, "span": self.span}
        return packed(head, {"totals": self.totals, "series": self.series}, self.tables)

    def _shown(self) -> Rows:
        return self.table()


def _with_headers(scenario: Scenario, header: float) -> np.ndarray:
    """Bytes with headers for each byte of payload, shape (G, 1), of endless TCP flows, whose packets are all full; NaN
    of others."""
    full = scenario.packet_size
    endless = [getattr(flow, "answered", False) and flow.offers is None for flow in scenario.flows]
    sizes = [getattr(flow, "packet_size", None) or full for flow in scenario.flows]
    shares = [size / (size - header) if on else np.nan for size, on in zip(sizes, endless, strict=True)]
    return np.array(shares).reshape(-1, 1)
