"""`netctrl linux plan`, `apply`, `confirm`, `restore` and `status`: netctrl's queues on this machine."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated

import msgspec

from netctrl.cli.app import GOOD, answer, as_json, report, say
from netctrl.cli.linux.common import (
    LOG,
    PLAN,
    REPLACE,
    STATE_DIR,
    UNIT,
    Stop,
    Stopped,
    logged,
    planned,
    show,
    stoppable,
)
from netctrl.cli.options import TIME, option
from netctrl.core.errors import NetctrlError
from netctrl.linux.log import event
from netctrl.linux.state_files import STATE_FOLDER

if TYPE_CHECKING:
    from netctrl.linux.kernel.netlink import RouteSocket
    from netctrl.linux.queues.apply import Applied
    from netctrl.linux.queues.record import Entry, OwnershipRecord


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


_CONFIRM_S = 5.0


def apply(
    file: Annotated[str, PLAN],
    /,
    *,
    replace: Annotated[bool, REPLACE] = False,
    dry_run: Annotated[bool, option("", "show the plan, change nothing; needs no privilege")] = False,
    hold: Annotated[bool, option("", "keep running, and restore the previous queues at a signal")] = False,
    confirm_within_s: Annotated[
        float | None, TIME("restore the previous queues unless `confirm` or the Enter key confirms in time")
    ] = None,
    unit: Annotated[bool, UNIT] = False,
    state_dir: Annotated[str, STATE_DIR] = STATE_FOLDER,
    log: Annotated[str | None, LOG] = None,
    json: Annotated[bool, option("", "print the plan as one JSON object and nothing else")] = False,
) -> int:
    """Plans and applies the changes, reads them back, and keeps, holds or rolls them back.

    Examples
    --------
    netctrl linux apply router/arc.plan.json --dry-run
    netctrl linux apply router/arc.plan.json --confirm-within 60s
    """
    if unit:
        from netctrl.cli.linux.common import program
        from netctrl.linux.export.records import read_queue_plan
        from netctrl.linux.systemd import apply_unit

        desired = read_queue_plan(file)
        return say(apply_unit(desired, program(file, "root"), replace=replace, state_dir=state_dir))
    if dry_run:
        return show(planned(file, replace), "what `apply` would change; nothing was changed", json)

    from netctrl.linux.queues.apply import applied
    from netctrl.linux.queues.restore import recover_stale

    with logged(log), stoppable() as stop:
        recover_stale(state_dir)
        found = planned(file, replace)
        with applied(found, folder=state_dir, replace=replace, phases=stop.between) as made:
            show(found, "applied", json)
            if confirm_within_s is not None:
                _wait_for_confirmation(made, stop, confirm_within_s)
            if hold:
                _hold(made, stop)
            else:
                made.keep()
                event("kept", plan=made.record.plan, remedy=f"python -m netctrl linux restore{_where(made)}")
    return GOOD


def confirm(*, state_dir: Annotated[str, STATE_DIR] = STATE_FOLDER) -> int:
    """Confirms the changes of `apply --confirm-within`, and waits until that process has noticed.

    Examples
    --------
    netctrl linux confirm
    netctrl linux confirm --state-dir /run/netctrl
    """
    from netctrl.linux.queues.record import Store

    store = Store(state_dir)
    record = store.read()
    if record is None or record.phase != "unconfirmed" or not record.owner.alive():
        raise NetctrlError(f"nothing waits for a confirmation in {store.folder}, for this network namespace")
    store.confirm(record.token)
    with stoppable() as stop:
        heard = stop.wait(lambda: _phase(store) not in ("unconfirmed",), _CONFIRM_S)
    if not heard or _phase(store) not in ("kept", "held"):
        raise NetctrlError(
            f"the confirmation came too late, or process {record.owner.pid} doesn't answer; see `status`"
        )
    return say(f"{record.plan}: confirmed\n")


def _phase(store) -> str | None:
    record = store.read()
    return None if record is None else record.phase


def _where(made: Applied) -> str:
    folder = str(made.store.folder)
    return "" if folder == STATE_FOLDER else f" --state-dir {folder}"


def _wait_for_confirmation(made: Applied, stop: Stop, seconds: float) -> None:
    """Wait until a user confirms that the machine can still be reached; RolledBack after `seconds`."""
    from netctrl.linux.queues.apply import RolledBack

    made.unconfirmed()
    event("waiting", seconds=f"{seconds:g}", remedy=f"python -m netctrl linux confirm{_where(made)}")
    if not stop.wait(made.confirmed, seconds, key=True):
        raise RolledBack(f"not confirmed within {seconds:g} s: the previous queues are restored")
    event("confirmed", plan=made.record.plan)


def _hold(made: Applied, stop: Stop) -> None:
    """Wait until a signal arrives."""
    made.hold()
    event("holding", plan=made.record.plan, ends="SIGINT, SIGTERM, SIGHUP")
    watched = True
    try:
        while True:
            stop.wait(lambda: False, 1.0)
            if watched and made.watchdog is not None and not made.watchdog.alive():
                watched = False
                why = "after a kill -9 from now on, call `restore`"
                event("watchdog-gone", logging.WARNING, why=why)
    except Stopped:
        event("stopping", plan=made.record.plan, signal=stop.number)


def restore(*, state_dir: Annotated[str, STATE_DIR] = STATE_FOLDER, log: Annotated[str | None, LOG] = None) -> int:
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
    from netctrl.linux.kernel.netlink import ROOT
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
