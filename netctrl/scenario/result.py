"""Base class of all results: figures by quantity and object, also as tables, whatever engine made them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from netctrl.errors import optional_import
from netctrl.model.io.display import Reported, html_table
from netctrl.units import format_quantity

if TYPE_CHECKING:
    import pandas as pd

    from netctrl.model.io.provenance import Provenance

__all__ = ["UNITS", "Result", "estimate_text", "quantity_text"]

UNITS = {
    "throughput": "bit/s",
    **dict.fromkeys(("backlog", "backlog deviation", "queue mean", "queue 99 %", "lost bytes"), "B"),
    **dict.fromkeys(("delay", "one-way delay", "jitter", "rtt", "response"), "s"),
}
"""Quantity -> its unit; quantities that aren't listed have none."""
_VERDICT = {
    "utilization": "{} used",
    "throughput": "{} carried",
    "loss": "{} lost",
    "lost bytes": "{} lost",
    "backlog": "{} waiting on average",
    "queue 99 %": "queues of at most {} for 99 % of the time",
    "delay": "delay {}",
    "jitter": "jitter {}",
}
"""Quantity -> its wording in a verdict."""
_SHARES = ("loss", "marks", "utilization")


class Result(Reported, ABC):
    """Result of a simulation: scenario, engine, and figures after the warm-up.

    Each result has `scenario`, `simulator` and `provenance`, arrays of its own, `summary()` as a record, `table()` as
    text, `to_pandas()` with one row per sample, run or flow, and the methods below.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # each result defines its own

        @property
        def scenario(self) -> Any: ...
        @property
        def simulator(self) -> Any: ...
        @property
        def provenance(self) -> Provenance: ...
        def summary(self, *args: Any, **kwargs: Any) -> Any: ...
        def to_pandas(self, *args: Any, **kwargs: Any) -> pd.DataFrame: ...

    @abstractmethod
    def measures(self) -> dict[tuple[str, str], float]:
        """Results after the warm-up: (quantity, object) -> value, in SI units, with shares from 0 to 1."""

    @abstractmethod
    def table(self) -> tuple[str, list[tuple[str, str]]]:
        """Title, and rows of (name, text)."""

    @property
    def verdict(self) -> str:
        """Main figures in one sentence: of the whole network, or of the link where each quantity is largest."""
        measures = self.measures()
        whole = {"network"} if any(of == "network" for _, of in measures) else set(self.link_ids())
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

    @abstractmethod
    def link_ids(self) -> tuple[str, ...]:
        """Names of objects in `measures` that are links."""

    def links_table(self) -> pd.DataFrame:
        """A DataFrame with one row per link (`link`) and one column per quantity in SI units; NaN where there is none.

        Examples
        --------
        >>> import netctrl
        >>> result = netctrl.simulate(netctrl.read("hftrac-testbed").replace(duration="20s"), "fluid")
        >>> list(result.links_table().columns)
        ['link', 'throughput', 'backlog', 'loss']
        """
        return self._told("link", links=True)

    def flows_table(self) -> pd.DataFrame:
        """A DataFrame with one row per flow, group of flows or demand (`flow`) and one column per quantity, else NaN.

        Totals, such as those of a whole network, have a row too.
        """
        return self._told("flow", links=False)

    def _told(self, name: str, *, links: bool) -> pd.DataFrame:
        """The measures of links, or all others: one row per object."""
        with optional_import():
            import pandas as pd

        ids = set(self.link_ids())
        rows: dict[str, dict[str, Any]] = {}
        for (quantity, of), value in self.measures().items():
            if (of in ids) == links:
                rows.setdefault(of, {name: of})[quantity] = value
        return pd.DataFrame(list(rows.values()), columns=None if rows else [name])

    def _repr_html_(self) -> str:
        return html_table(*self.table())


def estimate_text(quantity: str, mean: float, half_width: float | None) -> str:
    """A measure's mean as text, with the half width of its interval if that is above 0."""
    width = f" ± {quantity_text(quantity, half_width, 2)}" if half_width and half_width > 0.0 else ""
    return quantity_text(quantity, mean, 4) + width


def quantity_text(quantity: str, value: float, digits: int) -> str:
    """A measure's value as text, with its unit."""
    if quantity in UNITS:
        return format_quantity(float(f"{value:.{digits}g}"), UNITS[quantity])
    return f"{100.0 * value:.{digits}g} %" if quantity in _SHARES else f"{value:.{digits}g}"
