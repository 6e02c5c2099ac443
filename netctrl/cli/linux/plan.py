"""`netctrl linux plan`: the changes that `apply` would make."""

from __future__ import annotations

from typing import Annotated

from netctrl.cli.linux.common import PLAN, REPLACE, planned, show
from netctrl.cli.options import option

__all__ = ["plan"]


def plan(
    file: Annotated[str, PLAN],
    /,
    *,
    replace: Annotated[bool, REPLACE] = False,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
) -> int:
    """Compares the plan with this machine and shows the difference.

    Examples
    --------
    netctrl linux plan router/arc.plan.json
    netctrl linux plan router/arc.plan.json --json
    """
    return show(planned(file, replace), "what `apply` would change; nothing was changed", json)
