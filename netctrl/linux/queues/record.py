"""Record of applied queues, which is on disk before any change in the kernel, and a lock between processes.

There is one record per network namespace, in a folder that only its owner may write, since root acts on it. It is
readable by all: it contains only data that `tc` shows to everybody, and an agent without root's rights reads its links'
rates from it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec

from netctrl.core.errors import FileError, NetctrlError
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.kernel.objects import QueueObject
from netctrl.linux.namespace import own_namespace, start_time
from netctrl.linux.state_files import STATE_FOLDER, flush_folder, open_lock, read_regular, safe_folder, write_through
from netctrl.model.io.json_file import decoded
from netctrl.model.io.record_file import Record

_MAX_BYTES = 64 * 2**20


Phase = Literal["changing", "unconfirmed", "held", "kept", "restoring"]
"""Only "kept" queues stay without a process. In all other phases they are restored when their owner is gone."""

_locked: set[Path] = set()
"""Locks of this process, as POSIX locks exclude other processes only."""


class Busy(NetctrlError):
    """Another process has the lock of this namespace's queues."""


class Owner(Record, frozen=True):
    """Process, distinguished from later ones with the same number."""

    pid: int
    start: int
    """Start in clock ticks since boot."""
    boot: str

    def alive(self) -> bool:
        """Whether this process runs; a zombie counts as ended."""
        return self.boot == _boot() and start_time(self.pid) == self.start


class Entry(Record, frozen=True):
    """One interface: the earlier and the applied queues at its root."""

    interface: str
    index: int
    address: str
    before: tuple[QueueObject, ...]
    """Earlier queues; empty for the kernel's default."""
    before_kind: str
    """Kind of the earlier root; "" where the kernel reported none, as on an interface that is down."""
    desired: tuple[QueueObject, ...] = msgspec.field(name="wanted")


class OwnershipRecord(Record, frozen=True):
    """Queues that netctrl is about to change, has changed or is restoring."""

    schema: Literal["netctrl.linux.record/1"]
    plan: str
    """Its name."""
    owner: Owner
    token: str
    phase: Phase
    since: str
    """Time by the wall clock, for people."""
    entries: tuple[Entry, ...]

    def to(self, phase: Phase) -> OwnershipRecord:
        """The same record in another phase."""
        return msgspec.structs.replace(self, phase=phase)

    @property
    def stale(self) -> bool:
        """Whether a process left it without restoring the queues; call it with the lock held."""
        abandoned = self.phase == "restoring" or self.owner == this_process() or not self.owner.alive()
        return self.phase != "kept" and abandoned

    @property
    def rebooted(self) -> bool:
        """Whether the machine has rebooted since, so that no recorded queue exists."""
        return self.owner.boot != _boot()


def this_process() -> Owner:
    """This process as an owner."""
    started = start_time(os.getpid())
    if started is None:
        raise NetctrlError("/proc/self/stat can't be read: mount /proc")
    return Owner(pid=os.getpid(), start=started, boot=_boot())


class Store:
    """Record of this thread's network namespace, in a folder.

    Parameters
    ----------
    folder : path
        `lock` creates it with mode 0755 if missing; its parent must exist.
    """

    def __init__(self, folder: str | os.PathLike[str] = STATE_FOLDER) -> None:
        self.folder = Path(folder)
        name = f"queues-{own_namespace()}"
        self._lock = self.folder / f"{name}.lock"
        self.path = self.folder / f"{name}.json"
        # Earlier versions named a record by the namespace's inode.
        earlier = self.folder / f"queues-{Path('/proc/thread-self/ns/net').stat().st_ino}.json"
        self._is_earlier = earlier.is_file() and not self.path.is_file()
        if self._is_earlier:
            self.path = earlier
        self.confirmation = self.path.with_suffix(".confirmed")

    def read(self) -> OwnershipRecord | None:
        """Read the record; None where there is none.

        Raises
        ------
        FileError
            It exists but can't be read, or isn't a record.
        """
        text = read_regular(self.path, _MAX_BYTES)
        if text is None:
            return None
        try:
            record = decoded(self.path, text, OwnershipRecord)
        except (msgspec.ValidationError, FileError) as error:
            said = error.why if isinstance(error, FileError) else error
            why = f"is not a record of netctrl: {said}; check it, and `tc qdisc`, before you remove it"
            raise FileError(self.path, why) from None
        if self._is_earlier:  # a later namespace may have the inode of an earlier one, whose interfaces aren't here
            with RouteSocket() as socket:
                here = {(link.index, link.address) for link in socket.links()}
            if all((entry.index, entry.address) not in here for entry in record.entries):
                return None
        return record

    def write(self, record: OwnershipRecord) -> None:
        """Write a record to the disk atomically: written to a temporary file, flushed, renamed, the folder flushed.

        Raises
        ------
        FileError
            No space, or no permission.
        """
        write_through(self.path, msgspec.json.format(msgspec.json.encode(record), indent=1), 0o644)

    def remove(self) -> None:
        """Delete the record and its confirmation."""
        self.confirmation.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)
        with suppress(OSError):
            flush_folder(self.folder)

    def confirm(self, token: str) -> None:
        """Confirm the queues of this record."""
        write_through(self.confirmation, token.encode(), 0o600)

    def confirmed(self, token: str) -> bool:
        """Whether the queues were confirmed."""
        with suppress(OSError):
            return read_regular(self.confirmation, len(token)) == token.encode()
        return False

    @contextmanager
    def lock(self) -> Generator[None]:
        """Lock this namespace's queues against changes by others.

        Raises
        ------
        Busy
            Another process has the lock; the message names it if the record does.
        FileError
            The folder can't be created or used, or others may write in it.
        """
        safe_folder(self.folder)
        if self._lock in _locked:
            raise Busy("this process has already locked the queues of this namespace")
        handle = open_lock(self._lock)
        try:
            # A POSIX lock: a forked child doesn't keep it when this process is killed.
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            said = f"another process has locked the queues of this namespace ({self._lock}); try again"
            with suppress(NetctrlError):
                record = self.read()
                if record is not None and record.owner.alive():
                    said = busy_text(record)
            raise Busy(said) from None
        _locked.add(self._lock)
        try:
            yield
        finally:
            _locked.discard(self._lock)
            os.close(handle)


def applied_rates(folder: str | os.PathLike[str] = STATE_FOLDER) -> dict[tuple[int, int], int]:
    """Rates of queues under the plan in force in this namespace [byte/s], by interface and handle of the root queue.

    Raises
    ------
    FileError
        The record can't be read.
    """
    store = Store(folder)
    record = store.read()
    if record is None or record.rebooted or record.phase == "restoring":
        return {}
    rates = {}
    for entry in record.entries:
        for each in entry.desired:
            try:
                rate = getattr(each.shown, "rate", None)
            except ValueError as error:
                raise FileError(store.path, f"is not a record of netctrl: {error}") from None
            if rate is not None:
                rates[entry.index, entry.desired[0].handle] = rate
    return rates


def busy_text(record: OwnershipRecord) -> str:
    """Message that names the process with the queues, and how to end it."""
    pid = record.owner.pid
    return f"process {pid} has the queues (plan {record.plan!r}); `kill {pid}` ends it and restores the earlier queues"


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
