"""The two ways in which a record shows itself: an HTML table in Jupyter, and `.plot()`."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from netctrl.register import figure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["html_table", "plot"]

_LEFT = "style='text-align:left'"


def plot(record: Any, **options: Any) -> Figure:
    """The matplotlib Figure of a record, from `netctrl.register.FIGURES`."""
    return figure_of(record)(record, **options)


def html_table(title: str, rows: Iterable[tuple[Any, str]]) -> str:
    """Title and (name, value) rows as one HTML table, all text escaped."""
    body = "".join(
        f"<tr><th {_LEFT}>{html.escape(str(name))}</th><td {_LEFT}>{html.escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table><caption>{html.escape(title)}</caption><tbody>{body}</tbody></table>"
