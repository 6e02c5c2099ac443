"""`linux restore`."""

from __future__ import annotations

from typing import Annotated

from netctrl.cli import report, say
from netctrl.linux._verb import DEFAULT_FOLDER, LOG, STATE_DIR, logged

__all__ = ["restore"]


def restore(
    *,
    state_dir: Annotated[str, STATE_DIR] = DEFAULT_FOLDER,
    log: Annotated[str | None, LOG] = None,
) -> int:
    """Put back what the record says."""
    from netctrl.linux.restore import restore as put_back

    with logged(log):
        done = put_back(state_dir)
    if done is None:
        return say(f"nothing to restore: no record in {state_dir} for this network namespace\n")
    return say(report(f"{done.plan}: restored", done.interfaces))
