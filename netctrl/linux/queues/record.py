"""Who owns which queues: a record that is on disk before the kernel is changed, and a lock between appliers.

One record for each network namespace, in a folder that only its owner may write, since root acts on it. Everybody may
read it: it holds what `tc` shows to all, and an agent without root's rights takes its links' rates from it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec

from netctrl.errors import FileError, NetctrlError
from netctrl.linux.kernel.objects import QueueObject, shown
from netctrl.linux.kernel.qdisc import HtbClassOptions, TbfOptions
from netctrl.linux.state_files import flush_folder, open_lock, read_regular, safe_folder, write_through
from netctrl.linux.testbed.namespace import own_namespace, start_time
from netctrl.model.io.json_file import decoded
from netctrl.model.io.record_file import Record

__all__ = [
    "STATE_FOLDER",
    "Busy",
    "Entry",
    "Owner",
    "OwnershipRecord",
    "Phase",
    "Store",
    "applied_rates",
    "busy_text",
    "this_process",
]

STATE_FOLDER = "/run/netctrl"
_MAX_BYTES = 64 * 2**20


Phase = Literal["changing", "unconfirmed", "held", "kept", "restoring"]
"""Kept: the queues stay without a process. In all others they are to be put back when their owner is gone."""

_locked: set[Path] = set()
"""By this process: locks of POSIX exclude other processes only."""


class Busy(NetctrlError):
    """Another process is at this namespace's queues."""


class Owner(Record, frozen=True):
    """A process, told apart from later ones with its number."""

    pid: int
    start: int
    """Clock ticks since boot."""
    boot: str

    def alive(self) -> bool:
        """Whether that very process runs; one that only waits for its parent doesn't."""
        return self.boot == _boot() and start_time(self.pid) == self.start


class Entry(Record, frozen=True):
    """One interface: what was at its root, and what is put there."""

    interface: str
    index: int
    address: str
    before: tuple[QueueObject, ...]
    """Empty: the kernel's default."""
    before_kind: str
    """Of the root; "" where nothing was shown, as on an interface that is down."""
    desired: tuple[QueueObject, ...] = msgspec.field(name="wanted")


class OwnershipRecord(Record, frozen=True):
    """What netctrl is about to change, has changed or is putting back."""

    schema: Literal["netctrl.linux.record/1"]
    plan: str
    """Its name."""
    owner: Owner
    token: str
    phase: Phase
    since: str
    """Wall clock, for people."""
    entries: tuple[Entry, ...]

    def to(self, phase: Phase) -> OwnershipRecord:
        """The same in another phase."""
        return msgspec.structs.replace(self, phase=phase)

    @property
    def stale(self) -> bool:
        """Whether it was left behind by a process that could not put queues back; to be asked under the lock."""
        abandoned = self.phase == "restoring" or self.owner == this_process() or not self.owner.alive()
        return self.phase != "kept" and abandoned

    @property
    def rebooted(self) -> bool:
        """Whether the machine started anew since: no queue of then is there."""
        return self.owner.boot != _boot()


def this_process() -> Owner:
    """The owner that this process is."""
    started = start_time(os.getpid())
    if started is None:
        raise NetctrlError("/proc/self/stat can't be read: /proc has to be mounted")
    return Owner(pid=os.getpid(), start=started, boot=_boot())


class Store:
    """The record of the network namespace that this thread is in, in a folder.

    Parameters
    ----------
    folder : path
        Made with mode 0755 by `lock` where it isn't there; its parent has to be.
    """

    def __init__(self, folder: str | os.PathLike[str] = STATE_FOLDER) -> None:
        self.folder = Path(folder)
        name = f"queues-{own_namespace()}"
        self.path = self.folder / f"{name}.json"
        self.confirmation = self.folder / f"{name}.confirmed"
        self._lock = self.folder / f"{name}.lock"

    def read(self) -> OwnershipRecord | None:
        """The record; None where there is none.

        Raises
        ------
        FileError
            It is there and can't be read, or is no record: never taken for "nothing there".
        """
        try:
            text = read_regular(self.path, _MAX_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(self.path, f"can't be read: {error.strerror}") from None
        try:
            return decoded(self.path, text, OwnershipRecord)
        except (msgspec.ValidationError, FileError) as error:
            said = error.why if isinstance(error, FileError) else error
            why = f"is no record of netctrl: {said}; look at it, and at `tc qdisc`, before you remove it"
            raise FileError(self.path, why) from None

    def write(self, record: OwnershipRecord) -> None:
        """Put a record on the disk, whole or not at all: written beside, flushed, renamed, the folder flushed.

        Raises
        ------
        FileError
            No room, or no right.
        """
        write_through(self.path, msgspec.json.format(msgspec.json.encode(record), indent=1), 0o644)

    def remove(self) -> None:
        """Forget the record, and a confirmation of it."""
        self.confirmation.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)
        with suppress(OSError):
            flush_folder(self.folder)

    def confirm(self, token: str) -> None:
        """Say that the queues of this record may stay."""
        write_through(self.confirmation, token.encode(), 0o600)

    def confirmed(self, token: str) -> bool:
        """Whether somebody said so."""
        with suppress(OSError):
            return read_regular(self.confirmation, len(token)) == token.encode()
        return False

    @contextmanager
    def lock(self) -> Generator[None]:
        """Nobody else changes this namespace's queues meanwhile.

        Raises
        ------
        Busy
            Another process has the lock; names it where the record tells.
        FileError
            The folder can't be made or used, or others may write in it.
        """
        safe_folder(self.folder)
        if self._lock in _locked:
            raise Busy("this process has the queues of this namespace already")
        handle = open_lock(self._lock)
        try:
            # POSIX's: a forked child doesn't keep it when this process is killed.
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise Busy(self._busy()) from None
        _locked.add(self._lock)
        try:
            yield
        finally:
            _locked.discard(self._lock)
            os.close(handle)

    def _busy(self) -> str:
        with suppress(NetctrlError):
            record = self.read()
            if record is not None and record.owner.alive():
                return busy_text(record)
        return f"another process is at the queues of this namespace ({self._lock} is locked); try again"


def applied_rates(folder: str | os.PathLike[str] = STATE_FOLDER) -> dict[tuple[int, int], int]:
    """Rates that the plan in force gave queues of this namespace [byte/s], by interface and handle of the root queue.

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
                options = shown(each.what, each.kind, each.options)
            except ValueError as error:
                raise FileError(store.path, f"is no record of netctrl: {error}") from None
            if isinstance(options, TbfOptions | HtbClassOptions):
                rates[entry.index, entry.desired[0].handle] = options.rate
    return rates


def busy_text(record: OwnershipRecord) -> str:
    """Who has the queues, and how that ends."""
    pid = record.owner.pid
    return f"process {pid} has the queues (plan {record.plan!r}); `kill {pid}` ends it, and puts back what was there"


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
