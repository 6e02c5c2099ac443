"""Queues put back as the record says they were: after a block, after a kill, or when somebody asks for it.

An interface is touched only where netctrl's queue is at its root, or where a process was killed while it put back.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from netctrl.errors import FileError, NetctrlError
from netctrl.linux.kernel.netlink import ROOT, KernelRefusal, Qdisc, RouteSocket, handle_text
from netctrl.linux.kernel.objects import OWN_HANDLE, alike, make, same, saved
from netctrl.linux.queues.log import event
from netctrl.linux.queues.plan import check_capability
from netctrl.linux.queues.record import STATE_FOLDER, Busy, Entry, OwnershipRecord, Store, busy_text

__all__ = ["Phases", "Restored", "put_back", "recover", "recover_stale", "refuse_kept", "restore", "tell_nobody"]

Phases = Callable[[str], None]


def tell_nobody(phase: str) -> None:
    """Of no step."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of each interface of a plan."""

    plan: str
    interfaces: tuple[tuple[str, str], ...]
    """Name, and what was done in words."""


class _LeftBehind(NetctrlError):
    """Some queues could not be put back; the record stays."""


def recover(store: Store, socket: RouteSocket, token: str | None = None) -> bool:
    """Put back what a process left behind that is gone; whether there was anything. Under the store's lock.

    Parameters
    ----------
    token : str, optional
        Only where the record is this one.

    Raises
    ------
    Busy
        The process is there, though it lost its lock.
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
    """What `recover` does, before a plan is made: queues left behind, or kept, would stand in its way."""
    check_capability()
    store = Store(folder)
    with store.lock(), RouteSocket() as socket:
        found = recover(store, socket)
        refuse_kept(store)
        return found


def restore(folder: str | Path = STATE_FOLDER, *, phases: Phases = tell_nobody) -> Restored | None:
    """Put back what was there before the queues that the record names; None where there is no record.

    Raises
    ------
    Busy
        A process holds the queues.
    NetctrlError
        Something could not be put back; the record stays.
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
    """NetctrlError where queues are applied and to stay."""
    record = store.read()
    if record is not None:
        said = f"plan {record.plan!r} is applied since {record.since} ({store.path})"
        raise NetctrlError(f"{said}; `python -m netctrl.linux restore` puts back what was there, then apply again")


def put_back(store: Store, socket: RouteSocket, record: OwnershipRecord, phases: Phases) -> tuple[tuple[str, str], ...]:
    """What was there before, interface by interface; the record goes when nothing is left to do."""
    if record.rebooted:
        event("forgotten", plan=record.plan, why="the machine started anew since")
        store.remove()
        return tuple((entry.interface, "nothing to do: the machine started anew since") for entry in record.entries)
    resumed = record.phase == "restoring"
    try:
        store.write(record.to("restoring"))
    except FileError as error:  # putting back matters more than the note of it
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
        raise _LeftBehind(f"not all was put back, and {store.path} says what was there: {'; '.join(left)}")
    store.remove()
    event("restored", plan=record.plan)
    phases("forgotten")
    return tuple(reversed(done))


def _put_back_one(socket: RouteSocket, entry: Entry, resumed: bool) -> str:
    """What was done, in words."""
    if not _is_there(socket, entry):
        return _leave(entry, "gone", "the interface was deleted, its queues with it")
    try:
        root = next((each for each in socket.qdiscs(entry.index) if each.parent == ROOT), None)
        if root is not None and root.handle == OWN_HANDLE and root.kind == entry.desired[0].kind:
            return _exchange(socket, entry)
        if _as_before(entry, root):
            return _complete(socket, entry, resumed)
    except KernelRefusal:
        if _is_there(socket, entry):
            raise
        return _leave(entry, "gone", "the interface was deleted meanwhile")
    there = "the default" if root is None or root.is_default else f"{root.kind} {handle_text(root.handle)}"
    return _leave(entry, "not-touched", f"somebody put {there} there since")


def _is_there(socket: RouteSocket, entry: Entry) -> bool:
    return entry.index in {link.index for link in socket.links()}


def _leave(entry: Entry, name: str, why: str) -> str:
    event(name, logging.WARNING, interface=entry.interface, why=why)
    return f"not touched: {why}"


def _as_before(entry: Entry, root: Qdisc | None) -> bool:
    if not entry.before:
        return root is None or root.is_default
    return root is not None and same(entry.before[0], root)


def _exchange(socket: RouteSocket, entry: Entry) -> str:
    if entry.before:
        make(socket, entry.index, entry.before, replace=True)
    else:
        socket.delete_qdisc(entry.index, ROOT, OWN_HANDLE)
    _check_restored(socket, entry)
    event("put-back", interface=entry.interface, kind=entry.before_kind or "default")
    return f"{entry.before_kind or 'the default'} put back"


def _complete(socket: RouteSocket, entry: Entry, resumed: bool) -> str:
    """The rest of what a process had begun to put back when it was killed."""
    there = {("qdisc", each.handle) for each in socket.qdiscs(entry.index)}
    there |= {("class", each.handle) for each in socket.classes(entry.index)}
    missing = tuple(each for each in entry.before if (each.what, each.handle) not in there)
    if not missing:
        event("untouched", interface=entry.interface, why="what was there before is there")
        return f"{entry.before_kind or 'the default'} is there"
    if not resumed:
        return _leave(entry, "not-touched", "parts of what was there are missing, and netctrl didn't remove them")
    make(socket, entry.index, missing, replace=False)
    _check_restored(socket, entry)
    event("completed", interface=entry.interface, made=len(missing))
    return f"{entry.before_kind} put back, {len(missing)} parts of it now"


def _check_restored(socket: RouteSocket, entry: Entry) -> None:
    found, kind = saved(socket, entry.index)
    if not alike(found, entry.before):
        raise KernelRefusal(f"read back {entry.interface}", errno.EIO, "other queues than were there before")
    if kind != entry.before_kind:
        said = f"{kind or 'nothing'}, earlier {entry.before_kind or 'nothing'}"
        event("other-default", logging.WARNING, interface=entry.interface, default=said)
