"""Elements of a page. Text arguments are plain text and are escaped here; `Html` arguments are inserted as they are."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import NewType

from matplotlib.figure import Figure

from netctrl.plotting.pages.svg import Drawing, Hover, drawings

Html = NewType("Html", str)

_BETWEEN = re.compile(r"[._](?=\w)")  # where a field's name may be split over lines


def section(title: str, *parts: Html) -> Html:
    """A heading and its content; empty without content."""
    body = "".join(parts)
    return Html(f"<section><h2>{html.escape(title)}</h2>{body}</section>" if body else "")


def paragraph(text: str, kind: str = "") -> Html:
    """One paragraph."""
    return Html(f"<p{_class(kind)}>{html.escape(text)}</p>")


def notes(texts: Iterable[str]) -> Html:
    """A list of warnings; empty without warnings."""
    items = "".join(f"<li>{html.escape(text)}</li>" for text in texts)
    return Html(f"<ul>{items}</ul>" if items else "")


def code(text: str, language: str) -> Html:
    """Lines of code to copy."""
    return Html(f"<pre tabindex='0' aria-label='{html.escape(language)}'><code>{html.escape(text)}</code></pre>")


def folded(summary: str, *parts: Html) -> Html:
    """Content that is shown on request."""
    return Html(f"<details><summary>{html.escape(summary)}</summary>{''.join(parts)}</details>")


def rows_table(caption: str, rows: Iterable[tuple[str, str]], head: tuple[str, str] = ("What", "Value")) -> Html:
    """A table of (name, text) rows."""
    return grid(caption, head, rows, kind="rows")


def grid(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "grid") -> Html:
    """A table whose first column names the rows; empty without rows."""
    names = "".join(f"<th scope='col'>{html.escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    if not body:
        return Html("")
    label = html.escape(caption)
    table = (
        f"<table class='{kind}'><caption>{label}</caption><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"
    )
    return Html(f"<div class='wide' tabindex='0' role='region' aria-label='{label}'>{table}</div>")


def _row(cells: Sequence[str]) -> str:
    first, *others = map(html.escape, cells)
    name = _BETWEEN.sub(r"\g<0><wbr>", first)
    return f"<th scope='row'>{name}</th>" + "".join(f"<td>{cell}</td>" for cell in others)


def figure(drawn: Figure, name: str, caption: str = "", hover: Hover | None = None) -> Html:
    """A matplotlib Figure, with its columns side by side where there is room.

    Parameters
    ----------
    name : str
        Prefix of the ids in the figure, unique in the page.
    hover : Hover, optional
        Values shown at points of one of its panels.
    """
    body = "".join(_part(part, hover) for part in drawings(drawn, name))
    below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return Html(f"<figure><div class='parts'>{body}</div>{below}</figure>")


def _part(part: Drawing, hover: Hover | None) -> str:
    if hover is None or hover.axes not in part.axes:
        return f"<div class='part'>{part.svg}</div>"
    label = html.escape(f"{part.label}. The arrow keys go from value to value.")
    return (
        f"<div class='part hover' tabindex='0' role='application' aria-label='{label}'>{part.svg}"
        f"<output aria-live='polite'></output><script type='application/json'>{hover.json(part)}</script></div>"
    )


def _class(kind: str) -> str:
    return f" class='{html.escape(kind)}'" if kind else ""
