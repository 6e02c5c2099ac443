"""Base of the results of access links: figures by quantity and object, also as tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from netctrl.errors import optional_import
from netctrl.model.io.display import Reported, html_table
from netctrl.scenario.figures import verdict_text

if TYPE_CHECKING:
    import pandas as pd

    from netctrl.model.io.provenance import Provenance


class KindResult(Reported, ABC):
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
        return verdict_text(self.measures(), self.links)

    @property
    @abstractmethod
    def links(self) -> tuple[str, ...]:
        """Names of objects in `measures` that are links."""

    def links_table(self) -> pd.DataFrame:
        """A DataFrame with one row per link (`link`), and one column per quantity in SI units, else NaN."""
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

        ids = set(self.links)
        rows: dict[str, dict[str, Any]] = {}
        for (quantity, of), value in self.measures().items():
            if (of in ids) == links:
                rows.setdefault(of, {name: of})[quantity] = value
        return pd.DataFrame(list(rows.values()), columns=None if rows else [name])

    def _repr_html_(self) -> str:
        return html_table(*self.table())
