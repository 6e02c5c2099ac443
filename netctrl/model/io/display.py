"""Display of records: an HTML table in Jupyter, `.plot()` and `.report()`."""

from __future__ import annotations

import html
import os
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from netctrl.core.files import write_atomically
from netctrl.core.register import EXPLORERS, FIGURES, REPORTS, Registry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEFT = "style='text-align:left'"


def plot(record: Any, **options: Any) -> Figure:
    """The matplotlib Figure of a record, from `netctrl.core.register.FIGURES`."""
    return _of(FIGURES, record)(record, **options)


def page(record: Any) -> bytes:
    """A record's report as one HTML file, from `netctrl.core.register.REPORTS`."""
    return _of(REPORTS, record)(record).content()


def has_figure(record: Any) -> bool:
    """Whether a drawing function is registered for a record."""
    return any(kind.__name__ in FIGURES for kind in type(record).__mro__)


def _of(registry: Registry, record: Any) -> Any:
    """A record's entry, by the name of its class or of a parent class."""
    kinds = [kind.__name__ for kind in type(record).__mro__]
    return registry[next((name for name in kinds if name in registry), kinds[0])]


def html_table(title: str, rows: Iterable[tuple[Any, str]]) -> str:
    """Title and (name, value) rows as one HTML table, all text escaped."""
    body = "".join(
        f"<tr><th {_LEFT}>{html.escape(str(name))}</th><td {_LEFT}>{html.escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table><caption>{html.escape(title)}</caption><tbody>{body}</tbody></table>"


Rows = tuple[str, Iterable[tuple[Any, str]]]
"""Title, and rows of (name, text)."""
_LINES, _COLUMNS = 15, 100
_FEW = 6


def brief(value: Any) -> str:
    """A value as text of one line: arrays of more than a few numbers by their shape."""
    if hasattr(value, "shape") and getattr(value, "size", 0) > _FEW:
        return f"{type(value).__name__} of shape {value.shape}"
    return textwrap.shorten(repr(value), _COLUMNS, placeholder=" ...")


class Shown:
    """Text and HTML of records, from the same title and rows."""

    __slots__ = ()

    def _shown(self) -> Rows:
        names = getattr(self, "__struct_fields__", None) or getattr(self, "__dataclass_fields__", ())
        return type(self).__name__, [(name, brief(getattr(self, name))) for name in names]

    def __repr__(self) -> str:
        title, rows = self._shown()
        kind = type(self).__name__
        lines = [title if title.startswith(kind) else f"{kind}: {title}"]
        lines += [f"  {name}: {text}" if name else f"  {text}" for name, text in rows]
        lines = [textwrap.shorten(line.strip(), _COLUMNS, placeholder=" ...") for line in lines]
        left = len(lines) - _LINES + 1
        shown = lines if left <= 1 else [*lines[: _LINES - 1], f"... and {left} more"]
        return "\n  ".join(shown)

    def _repr_html_(self) -> str:
        return html_table(*self._shown())


class Plotted(Shown):
    """Methods of records that have a figure."""

    __slots__ = ()

    def plot(self, **options: Any) -> Figure:
        """Draw the record as a matplotlib Figure.

        A loop gets a Bode plot with both margins; an identification its fit, singular values and poles; a result its
        time series; a comparison the difference of each engine from the first.

        Parameters
        ----------
        **options
            Options of the figure's function (`netctrl.core.register.FIGURES`).

        Returns
        -------
        matplotlib.figure.Figure
        """
        return plot(self, **options)


class Reported(Plotted):
    """Methods of records that have a figure and a report."""

    __slots__ = ()

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained HTML page: verdict, figures, tables and how to reproduce the record.

        Parameters
        ----------
        path : path
            Where to write; an existing file is replaced.

        Raises
        ------
        FileError
            The file can't be written.
        """
        write_atomically(path, page(self))


class Explored:
    """Methods of records of queues that Jupyter explores."""

    __slots__ = ()

    def explore(self) -> Any:
        """Sliders over flows, round-trip time, rate and target in Jupyter, with a map of the 99th percentile of the
        delay, the loop's figures and a run of packets, as they move.

        Returns
        -------
        ipywidgets.VBox

        Raises
        ------
        InvalidValue
            A law without a loop or packets, or a window in place of flows and a rate.
        NetctrlError
            Without ipywidgets: `pip install ipywidgets`.
        """
        return _of(EXPLORERS, self)(self)
