"""Apply a plan of queues, verify it, and restore the earlier queues.

The order makes it safe: lock, check again, watchdog, record on the disk, change, read back. Once the record exists,
every exit restores the earlier queues: an error here, the watchdog when this process is killed, or the next start.
"""

from __future__ import annotations

import errno
import logging
import secrets
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from netctrl.core.errors import FileError, NetctrlError
from netctrl.linux.kernel.messages import handle_text
from netctrl.linux.kernel.netlink import KernelRefusal, RouteSocket
from netctrl.linux.kernel.objects import OWN_HANDLE, alike, as_desired, make
from netctrl.linux.log import event
from netctrl.linux.namespace import check_capability
from netctrl.linux.queues.plan import Plan, plan_queues
from netctrl.linux.queues.record import OwnershipRecord, Store, this_process
from netctrl.linux.queues.restore import Phases, put_back, recover, refuse_kept, tell_nobody
from netctrl.linux.queues.watchdog import Watchdog, start_watchdog
from netctrl.linux.state_files import STATE_FOLDER


class RolledBack(NetctrlError):
    """Applying failed, and the changes were reverted; the text gives the reason."""


@dataclass(slots=True)
class Applied:
    """Applied queues of a plan."""

    plan: Plan
    record: OwnershipRecord
    store: Store
    socket: RouteSocket
    watchdog: Watchdog | None
    kept: bool = False

    def unconfirmed(self) -> None:
        """Record on the disk that a confirmation is required."""
        self._to(self.record.to("unconfirmed"))

    def confirmed(self) -> bool:
        """Whether the queues were confirmed (`netctrl.linux.queues.record.Store.confirm`)."""
        return self.store.confirmed(self.record.token)

    def hold(self) -> None:
        """Keep the queues as long as this process runs."""
        self._to(self.record.to("held"))

    def keep(self) -> None:
        """Keep the queues when this process ends, until `restore`."""
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
    phases: Phases = tell_nobody,
) -> Generator[Applied]:
    """Queues as planned, for a `with` block; afterwards the earlier queues are restored, unless `keep` was called.

    Parameters
    ----------
    plan : Plan
        Result of `plan_queues`; nothing is changed if the queues have changed since.
    folder : path
        Folder of the record.
    replace : bool
        As in the plan.
    watch : bool
        Whether another process restores the queues when this one is killed.
    phases : callable
        Called with each step.

    Raises
    ------
    RolledBack
        The kernel refused, or reports other queues than requested; the changes were reverted.
    Busy, FileError, NetctrlError
        Another process has the lock, the record can't be written, or a capability is missing. Nothing was changed.
    """
    check_capability()
    store = Store(folder)
    with ExitStack() as stack:
        watchdog: Watchdog | None = None
        settled = True

        def end_watchdog() -> None:  # released when nothing is left to restore, otherwise it tries to restore
            if watchdog is not None:
                watchdog.end(release=settled)

        stack.callback(end_watchdog)  # after the release of the lock, for which a watchdog may wait
        stack.enter_context(store.lock())
        socket = stack.enter_context(RouteSocket())
        recover(store, socket)
        refuse_kept(store)
        for old, new in zip(plan.entries, plan_queues(socket, plan.desired, replace=replace).entries, strict=True):
            if (old.index, old.address) != (new.index, new.address) or not alike(old.before, new.before):
                event("refused", logging.ERROR, interface=old.interface, why="changed since it was planned")
                raise NetctrlError(f"{old.interface} was changed since it was planned; nothing was done, plan again")
        phases("checked")
        token = secrets.token_hex(8)
        watchdog = start_watchdog(store.folder, token) if watch else None
        phases("watched")
        record = OwnershipRecord(
            schema="netctrl.linux.record/1",
            plan=plan.desired.name,
            owner=this_process(),
            token=token,
            phase="changing",
            since=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            entries=plan.entries,
        )
        made = Applied(plan, record, store, socket, watchdog)
        _write_first(store, record)
        settled = False
        try:
            phases("recorded")
            _change(made, phases)
            yield made
        except BaseException as error:
            event("rolling-back", logging.WARNING, plan=plan.desired.name, why=f"{type(error).__name__}: {error}")
            put_back(store, socket, made.record, phases)
            settled = True
            if isinstance(error, KernelRefusal):
                raise RolledBack(f"{error}; the changes were reverted") from None
            raise
        if not made.kept:
            put_back(store, socket, made.record, phases)
        settled = True


def _write_first(store: Store, record: OwnershipRecord) -> None:
    try:
        store.confirmation.unlink(missing_ok=True)
        store.write(record)
    except FileError:
        event("refused", logging.ERROR, plan=record.plan, why="no record could be written, nothing was changed")
        store.path.unlink(missing_ok=True)  # it may exist without being safely on the disk
        raise
    event("recorded", plan=record.plan, record=store.path)


def _change(made: Applied, phases: Phases) -> None:
    for entry in made.plan.entries:
        make(made.socket, entry.index, entry.desired, replace=bool(entry.before))
        event("applied", interface=entry.interface, handle=handle_text(OWN_HANDLE), kind=entry.desired[0].kind)
        phases(f"changed {entry.interface}")
    phases("applied")
    with made.socket.one_look():
        for entry in made.plan.entries:
            wrong = as_desired(made.socket, entry.index, entry.desired)
            if wrong:
                raise KernelRefusal(f"read back {entry.interface}", errno.EIO, "; ".join(wrong))
    event("read-back", plan=made.record.plan, interfaces=len(made.plan.entries))
    phases("read back")
