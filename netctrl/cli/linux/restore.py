"""`netctrl linux restore`: the queues before `apply`."""

from __future__ import annotations

from typing import Annotated

from netctrl.cli.app import report, say
from netctrl.cli.linux.common import LOG, STATE_DIR, logged
from netctrl.linux.state_files import STATE_FOLDER

__all__ = ["restore"]


def restore(
    *,
    state_dir: Annotated[str, STATE_DIR] = STATE_FOLDER,
    log: Annotated[str | None, LOG] = None,
) -> int:
    """Restores the queues that the record lists.

    Examples
    --------
    netctrl linux restore
    netctrl linux restore --state-dir /run/netctrl
    """
    from netctrl.linux.queues.restore import restore as put_back

    with logged(log):
        done = put_back(state_dir)
    if done is None:
        return say(f"nothing to restore: no record in {state_dir} for this network namespace\n")
    return say(report(f"{done.plan}: restored", done.interfaces))
