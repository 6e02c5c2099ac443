"""Queues put where a plan wants them, read back, and put back as they were.

The order is what makes it safe: lock, look again, watchdog, record on the disk, change, read back. From the record on
every way out puts the earlier queues back: an error here, the watchdog when this process is killed, the next start.
"""

from __future__ import annotations

import errno
import logging
import secrets
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from netctrl.errors import FileError, NetctrlError
from netctrl.linux.log import event
from netctrl.linux.netlink import ROOT, KernelRefusal, Qdisc, RouteSocket, handle_text
from netctrl.linux.objects import OWN_HANDLE, alike, as_wanted, make, same, saved
from netctrl.linux.plan import Plan, check_capability, plan_queues
from netctrl.linux.record import STATE_FOLDER, Busy, Entry, OwnershipRecord, Store, busy_text, this_process
from netctrl.linux.watchdog import Watchdog, start_watchdog

__all__ = ["Applied", "Restored", "RolledBack", "applied", "recover", "recover_stale", "restore"]

Phases = Callable[[str], None]


def _tell_nobody(phase: str) -> None:
    pass


class RolledBack(NetctrlError):
    """Applying failed, and what had been changed was put back; the text says why."""


class _LeftBehind(NetctrlError):
    """Some queues could not be put back; the record stays."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of each interface of a plan."""

    plan: str
    interfaces: tuple[tuple[str, str], ...]
    """Name, and what was done in words."""


@dataclass(slots=True)
class Applied:
    """Queues that are in place, of a plan."""

    plan: Plan
    record: OwnershipRecord
    store: Store
    socket: RouteSocket
    watchdog: Watchdog | None
    kept: bool = False

    def unconfirmed(self) -> None:
        """Put on the disk that somebody has to say yes."""
        self._to(self.record.to("unconfirmed"))

    def confirmed(self) -> bool:
        """Whether somebody did (`netctrl.linux.record.Store.confirm`)."""
        return self.store.confirmed(self.record.token)

    def hold(self) -> None:
        """The queues stay as long as this process does."""
        self._to(self.record.to("held"))

    def keep(self) -> None:
        """The queues stay when this process ends, until `restore`."""
        self._to(self.record.to("kept"))
        self.kept = True
        if self.watchdog is not None:
            self.watchdog.end(release=True)

    def _to(self, record: OwnershipRecord) -> None:
        self.store.write(record)
        self.record = record


@contextmanager
def applied(
    plan: Plan,
    *,
    folder: str | Path = STATE_FOLDER,
    replace: bool = False,
    watch: bool = True,
    phases: Phases = _tell_nobody,
) -> Generator[Applied]:
    """Queues as planned, for a block; after it, however it ends, what was there before, unless `keep` was called.

    Parameters
    ----------
    plan : Plan
        Of `plan_queues`; where something else is there now, nothing is changed.
    folder : path
        For the record.
    replace : bool
        As it was planned.
    watch : bool
        Another process puts queues back when this one is killed.
    phases : callable
        Is told each step that was taken.

    Raises
    ------
    RolledBack
        The kernel refused, or shows something else than was asked for; what was changed has been put back.
    Busy, FileError, NetctrlError
        Another process is at it; the record can't be written; a capability is missing. Nothing was changed.
    """
    check_capability()
    store = Store(folder)
    with ExitStack() as stack:
        ending = _Ending()
        stack.callback(ending.end)  # after the lock is free again, which a watchdog may wait for
        stack.enter_context(store.lock())
        socket = stack.enter_context(RouteSocket())
        recover(store, socket)
        _refuse_kept(store)
        _refuse_changed(plan, plan_queues(socket, plan.wanted, replace=replace))
        phases("checked")
        token = secrets.token_hex(8)
        ending.watchdog = start_watchdog(store.folder, token) if watch else None
        phases("watched")
        made = Applied(plan, _new_record(plan, token), store, socket, ending.watchdog)
        _write_first(store, made.record)
        ending.settled = False
        try:
            phases("recorded")
            _change(made, phases)
            yield made
        except BaseException as error:
            event("rolling-back", logging.WARNING, plan=plan.wanted.name, why=f"{type(error).__name__}: {error}")
            _put_back(store, socket, made.record, phases)
            ending.settled = True
            if isinstance(error, KernelRefusal):
                raise RolledBack(f"{_explained(error)}; what had been changed was put back") from None
            raise
        if not made.kept:
            _put_back(store, socket, made.record, phases)
        ending.settled = True


@dataclass(slots=True)
class _Ending:
    """What becomes of the watchdog: released when nothing is left to do, else it tries in its turn."""

    watchdog: Watchdog | None = None
    settled: bool = True

    def end(self) -> None:
        if self.watchdog is not None:
            self.watchdog.end(release=self.settled)


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
    _put_back(store, socket, record, _tell_nobody)
    return True


def recover_stale(folder: str | Path = STATE_FOLDER) -> bool:
    """What `recover` does, before a plan is made: queues left behind, or kept, would stand in its way."""
    check_capability()
    store = Store(folder)
    with store.lock(), RouteSocket() as socket:
        found = recover(store, socket)
        _refuse_kept(store)
        return found


def restore(folder: str | Path = STATE_FOLDER, *, phases: Phases = _tell_nobody) -> Restored | None:
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
            return Restored(record.plan, _put_back(store, socket, record, phases))
        return None


def _new_record(plan: Plan, token: str) -> OwnershipRecord:
    return OwnershipRecord(
        schema="netctrl.linux.record/1",
        plan=plan.wanted.name,
        owner=this_process(),
        token=token,
        phase="changing",
        since=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        entries=plan.entries,
    )


def _write_first(store: Store, record: OwnershipRecord) -> None:
    try:
        store.confirmation.unlink(missing_ok=True)
        store.write(record)
    except FileError:
        event("refused", logging.ERROR, plan=record.plan, why="no record could be written, nothing was changed")
        store.path.unlink(missing_ok=True)  # it may be there, but not surely on the disk
        raise
    event("recorded", plan=record.plan, record=store.path)


def _refuse_kept(store: Store) -> None:
    record = store.read()
    if record is not None:
        said = f"plan {record.plan!r} is applied since {record.since} ({store.path})"
        raise NetctrlError(f"{said}; `python -m netctrl.linux restore` puts back what was there, then apply again")


def _refuse_changed(shown: Plan, now: Plan) -> None:
    for old, new in zip(shown.entries, now.entries, strict=True):
        if (old.index, old.address) != (new.index, new.address) or not alike(old.before, new.before):
            event("refused", logging.ERROR, interface=old.interface, why="changed since it was planned")
            raise NetctrlError(f"{old.interface} was changed since it was planned; nothing was done, plan again")


def _change(made: Applied, phases: Phases) -> None:
    for entry in made.plan.entries:
        make(made.socket, entry.index, entry.wanted, replace=bool(entry.before))
        event("applied", interface=entry.interface, handle=handle_text(OWN_HANDLE), kind=entry.wanted[0].kind)
        phases(f"changed {entry.interface}")
    phases("applied")
    for entry in made.plan.entries:
        wrong = as_wanted(made.socket, entry.index, entry.wanted)
        if wrong:
            raise KernelRefusal(f"read back {entry.interface}", errno.EIO, "; ".join(wrong))
    event("read-back", plan=made.record.plan, interfaces=len(made.plan.entries))
    phases("read back")


def _put_back(
    store: Store, socket: RouteSocket, record: OwnershipRecord, phases: Phases
) -> tuple[tuple[str, str], ...]:
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
        if root is not None and root.handle == OWN_HANDLE and root.kind == entry.wanted[0].kind:
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


def _explained(error: KernelRefusal) -> str:
    if error.number == errno.ENOENT and "kind is unknown" in error.said:
        return f"{error}: this kernel lacks that queueing discipline (CONFIG_NET_SCH_*)"
    return str(error)
