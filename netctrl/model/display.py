"""The two ways in which a record shows itself: an HTML table in Jupyter, and `.plot()`.

This is the only module below `plotting` that names it, and only at the time of the call: a person looks for
`.plot()` on the result, while no import of a record may load matplotlib (docs/decisions.md).
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["html_table", "plot"]

_LEFT = "style='text-align:left'"


def plot(record: Any, **options: Any) -> Figure:
    """The matplotlib Figure of a record, by `netctrl.plotting.draw`."""
    from netctrl import plotting

    return plotting.draw(record, **options)


def html_table(title: str, rows: Iterable[tuple[Any, str]]) -> str:
    """Title and (name, value) rows as one HTML table, all text escaped."""
    body = "".join(
        f"<tr><th {_LEFT}>{html.escape(str(name))}</th><td {_LEFT}>{html.escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table><caption>{html.escape(title)}</caption><tbody>{body}</tbody></table>"
