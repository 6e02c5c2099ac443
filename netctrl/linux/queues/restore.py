"""Restore queues from the record: after a block, after a kill, or on request.

An interface is touched only where netctrl's queue is at its root, or where a process was killed while restoring.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from netctrl.core.errors import FileError, NetctrlError
from netctrl.linux.kernel.messages import ROOT
from netctrl.linux.kernel.netlink import KernelRefusal, RouteSocket
from netctrl.linux.kernel.objects import OWN_HANDLE, alike, make, same, saved
from netctrl.linux.log import event
from netctrl.linux.namespace import check_capability
from netctrl.linux.queues.record import Busy, Entry, OwnershipRecord, Store, busy_text
from netctrl.linux.state_files import STATE_FOLDER

Phases = Callable[[str], None]


def tell_nobody(phase: str) -> None:
    """Ignore a step."""


@dataclass(frozen=True, slots=True)
class Restored:
    """Result for each interface of a plan."""

    plan: str
    interfaces: tuple[tuple[str, str], ...]
    """Name and result in words of each interface."""


def recover(store: Store, socket: RouteSocket, token: str | None = None) -> bool:
    """Restore the queues of an ended process; whether there were any. Call it with the store's lock held.

    Parameters
    ----------
    token : str, optional
        Token that the record must have.

    Raises
    ------
    Busy
        The process is running, though it lost its lock.
    """
    record = store.read()
    if record is None or record.phase == "kept" or token not in (None, record.token):
        return False
    if not record.stale:
        raise Busy(busy_text(record))
    left = f"process {record.owner.pid}, since {record.since}"
    event("found-stale", logging.WARNING, plan=record.plan, phase=record.phase, left_by=left)
    put_back(store, socket, record, tell_nobody)
    return True


def recover_stale(folder: str | Path = STATE_FOLDER) -> bool:
    """Run `recover` before planning, as remaining or kept queues would be in the way."""
    check_capability()
    store = Store(folder)
    with store.lock(), RouteSocket() as socket:
        found = recover(store, socket)
        refuse_kept(store)
        return found


def restore(folder: str | Path = STATE_FOLDER, *, phases: Phases = tell_nobody) -> Restored | None:
    """Restore the queues from before the record; None where there is no record.

    Raises
    ------
    Busy
        A process holds the queues.
    NetctrlError
        A queue could not be restored; the record stays.
    """
    check_capability()
    store = Store(folder)
    with store.lock(), RouteSocket() as socket:
        record = store.read()
        if record is not None:
            if record.phase != "kept" and not record.stale:
                raise Busy(busy_text(record))
            return Restored(record.plan, put_back(store, socket, record, phases))
        return None


def refuse_kept(store: Store) -> None:
    """Raise NetctrlError where queues are applied and kept."""
    record = store.read()
    if record is not None:
        said = f"plan {record.plan!r} is applied since {record.since} ({store.path})"
        raise NetctrlError(f"{said}; run `python -m netctrl linux restore`, then apply again")


def put_back(store: Store, socket: RouteSocket, record: OwnershipRecord, phases: Phases) -> tuple[tuple[str, str], ...]:
    """Restore the earlier queues, interface by interface; deletes the record when nothing is left to do."""
    if record.rebooted:
        event("forgotten", plan=record.plan, why="the machine has rebooted since")
        store.remove()
        return tuple((entry.interface, "nothing to do: the machine has rebooted since") for entry in record.entries)
    resumed = record.phase == "restoring"
    try:
        store.write(record.to("restoring"))
    except FileError as error:  # restoring matters more than recording it
        event("record-not-updated", logging.WARNING, why=error)
    phases("restoring")
    left, done = [], []
    for entry in reversed(record.entries):
        try:
            done.append((entry.interface, _put_back_one(socket, entry, resumed)))
        except KernelRefusal as refusal:
            event("not-restored", logging.ERROR, interface=entry.interface, why=refusal)
            left.append(f"{entry.interface}: {refusal}")
        phases(f"restored {entry.interface}")
    if left:
        raise NetctrlError(f"some queues were not restored; {store.path} has the earlier ones: {'; '.join(left)}")
    store.remove()
    event("restored", plan=record.plan)
    phases("forgotten")
    return tuple(reversed(done))


def _put_back_one(socket: RouteSocket, entry: Entry, resumed: bool) -> str:
    """Restore one interface; the result in words."""
    if socket.link(entry.index) is None:
        return _leave(entry, "gone", "the interface was deleted with its queues")
    try:
        root = next((each for each in socket.qdiscs(entry.index) if each.parent == ROOT), None)
        if root is not None and root.handle == OWN_HANDLE and root.kind == entry.desired[0].kind:
            return _exchange(socket, entry)
        default = root is None or root.is_default
        if default if not entry.before else root is not None and same(entry.before[0], root):
            return _complete(socket, entry, resumed)
    except KernelRefusal:
        if socket.link(entry.index) is not None:
            raise
        return _leave(entry, "gone", "the interface was deleted meanwhile")
    there = "the default" if root is None or root.is_default else root.name
    return _leave(entry, "not-touched", f"another program has put {there} there since")


def _leave(entry: Entry, name: str, why: str) -> str:
    event(name, logging.WARNING, interface=entry.interface, why=why)
    return f"not touched: {why}"


def _exchange(socket: RouteSocket, entry: Entry) -> str:
    if entry.before:
        make(socket, entry.index, entry.before, replace=True)
    else:
        socket.delete_qdisc(entry.index, ROOT, OWN_HANDLE)
    _check_restored(socket, entry)
    event("put-back", interface=entry.interface, kind=entry.before_kind or "default")
    return f"{entry.before_kind or 'the default'} restored"


def _complete(socket: RouteSocket, entry: Entry, resumed: bool) -> str:
    """Finish the restoration that a process had begun when it was killed."""
    there = {("qdisc", each.handle) for each in socket.qdiscs(entry.index)}
    there |= {("class", each.handle) for each in socket.classes(entry.index)}
    missing = tuple(each for each in entry.before if (each.what, each.handle) not in there)
    if not missing:
        event("untouched", interface=entry.interface, why="the earlier queues are there")
        return f"{entry.before_kind or 'the default'} is there"
    if not resumed:
        return _leave(entry, "not-touched", "parts of the earlier queues are missing, and netctrl didn't remove them")
    make(socket, entry.index, missing, replace=False)
    _check_restored(socket, entry)
    event("completed", interface=entry.interface, made=len(missing))
    return f"{entry.before_kind} restored, {len(missing)} parts of it now"


def _check_restored(socket: RouteSocket, entry: Entry) -> None:
    found, kind = saved(socket, entry.index)
    if not alike(found, entry.before):
        raise KernelRefusal(f"read back {entry.interface}", errno.EIO, "queues other than the earlier ones")
    if kind != entry.before_kind:
        said = f"{kind or 'nothing'}, earlier {entry.before_kind or 'nothing'}"
        event("other-default", logging.WARNING, interface=entry.interface, default=said)
