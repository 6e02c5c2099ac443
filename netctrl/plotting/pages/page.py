"""A report as one self-contained HTML file: style and script are inside, and no other script may run."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import netctrl
from netctrl.core.errors import Status
from netctrl.core.files import write_atomically
from netctrl.plotting.pages.html import Html, paragraph

Mood = Literal["good", "doubt", "bad", ""]
"""Colour of a verdict, in addition to its words."""

MOODS: dict[Status, Mood] = {
    Status.ADMISSIBLE: "good",
    Status.STABLE: "doubt",
    Status.UNSTABLE: "bad",
    Status.INFEASIBLE: "bad",
}
"""Verdict -> its colour."""

_HERE = Path(__file__).parent


class Page(NamedTuple):
    """Content of a report."""

    kind: str
    """Kind of its subject, as in "ARC design"."""
    title: str
    verdict: str
    mood: Mood
    sections: Sequence[Html]

    def content(self) -> bytes:
        """Content of the file; equal pages give equal bytes."""
        style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
        policy = (
            f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)};"
            " base-uri 'none'; form-action 'none'"
        )
        title = html.escape(f"{self.kind}: {self.title}")
        text = (
            "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
            f"<meta name='generator' content='netctrl {netctrl.__version__}'>\n"
            f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
            f"<header>{paragraph(self.kind, 'kind')}<h1>{html.escape(self.title)}</h1>"
            f"{paragraph(self.verdict, f'verdict {self.mood}')}</header>\n"
            + "\n".join(filter(None, self.sections))
            + f"\n</main>\n<script>{script}</script>\n</body>\n</html>\n"
        )
        return text.encode("utf-8", "replace")  # command lines may contain invalid Unicode

    def save(self, path: str | Path) -> None:
        """Write the file atomically."""
        write_atomically(path, self.content())


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
