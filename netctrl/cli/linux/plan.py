"""`linux plan`."""

from __future__ import annotations

from typing import Annotated

from netctrl.cli.app import option, say
from netctrl.cli.linux.common import PLAN, REPLACE, as_json, planned, table

__all__ = ["plan"]


def plan(
    file: Annotated[str, PLAN],
    /,
    *,
    replace: Annotated[bool, REPLACE] = False,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
) -> int:
    """Read, hold against the machine, show."""
    found = planned(file, replace)
    if json:
        return say(as_json({"plan": found.desired, "entries": found.entries}))
    return say(table(found, "what `apply` would change; nothing was changed"))
