"""`netctrl linux status`: netctrl's queues on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from netctrl.cli.app import answer, as_json, report, say
from netctrl.cli.linux.common import STATE_DIR
from netctrl.cli.options import option
from netctrl.linux.state_files import STATE_FOLDER

if TYPE_CHECKING:
    from netctrl.linux.kernel.netlink import RouteSocket
    from netctrl.linux.queues.record import Entry, OwnershipRecord

__all__ = ["status"]


def status(
    *,
    state_dir: Annotated[str, STATE_DIR] = STATE_FOLDER,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
) -> int:
    """Lists netctrl's queues here, the process that owns them, and their counters.

    Exit status 3: a queue is no longer as applied, or an interface is gone.

    Examples
    --------
    netctrl linux status
    netctrl linux status --json
    """
    from netctrl.linux.kernel.netlink import RouteSocket
    from netctrl.linux.queues.record import Store

    record = Store(state_dir).read()
    if record is None:
        said = f"netctrl owns no queues: no record in {state_dir} for this network namespace\n"
        return say(as_json({"plan": None, "interfaces": []}) if json else said)
    with RouteSocket() as socket, socket.one_look():
        found = [_state(socket, entry) for entry in record.entries]
    as_applied = not any(each["differs"] for each in found)
    why = "queues are not as they were applied"
    if json:
        alive = record.owner.alive()
        content = {"plan": record.plan, "phase": record.phase, "since": record.since, "owner_alive": alive}
        return answer(as_json({**content, "owner": record.owner.pid, "interfaces": found}), as_applied, why)
    rows = [(str(each["interface"]), _line(each)) for each in found]
    said = report(f"{record.plan}: {record.phase} since {record.since}, {_owner(record)}", rows)
    return answer(said, as_applied, why)


def _state(socket: RouteSocket, entry: Entry) -> dict[str, object]:
    from netctrl.linux.kernel.messages import ROOT
    from netctrl.linux.kernel.objects import as_desired

    if socket.link(entry.index) is None:
        return {"interface": entry.interface, "differs": ["the interface was deleted"], "counters": None}
    root = next((each for each in socket.qdiscs(entry.index) if each.parent == ROOT), None)
    counters = None if root is None else msgspec.to_builtins(root.counters)
    return {
        "interface": entry.interface,
        "differs": as_desired(socket, entry.index, entry.desired),
        "counters": counters,
    }


def _line(state: dict) -> str:
    said = "; ".join(state["differs"]) or "as applied"
    counters = state["counters"]
    if counters is None:
        return said
    return f"{said}; {counters['packets']} packets, {counters['drops']} dropped, {counters['backlog_bytes']} B waiting"


def _owner(record: OwnershipRecord) -> str:
    if record.phase == "kept":
        return "without a process"
    return f"process {record.owner.pid}" + (
        "" if record.owner.alive() else ", which has ended: `restore` undoes its changes"
    )
