"""Arguments of `netctrl evaluate`: parameters of the law, and the list of sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from netctrl.cli.app import report
from netctrl.errors import InvalidValue

if TYPE_CHECKING:
    from netctrl.evaluation.case import Entry

__all__ = ["SET_TAKES", "listed", "read_parameters"]

SET_TAKES = "NAME=VALUE, with commas between several, as in target=20ms,alpha=0.2"


def read_parameters(text: str | None) -> dict[str, Any]:
    """Names and values of --set: numbers where they are ones, else text with a unit."""
    if text is None:
        return {}
    found = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not (name and equals and value):
            raise InvalidValue("set", part, SET_TAKES)
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def listed(law: str, entries: Sequence[Entry]) -> str:
    """Sections and cases of a law's list, as a table."""
    rows = []
    for entry in entries:
        reason = entry.reason_for(law)
        text = f"not run: {reason}" if reason else f"metrics: {', '.join(entry.metrics)}" if entry.metrics else ""
        rows.append((f"{entry.section} {entry.title}", text))
        cases = () if reason else entry.cases
        each = ["each parameter halved and doubled"] if entry.varied else []
        for case in cases:
            rows.append((f"  {case.name}", "; ".join([f"{case.duration:g} s", *each, *filter(None, [case.note])])))
    return report(f"{law}: sections and cases", rows)
