"""Files that root acts on, read, written and locked safely against other users, and locks for one agent per link.

They are in a folder that only its owner may write. Another object in their place (a FIFO, a link, another user's file)
is rejected without waiting.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from netctrl.core.errors import FileError
from netctrl.linux.namespace import own_namespace

STATE_FOLDER = "/run/netctrl"
"""Folder of the record of applied queues."""
AGENT_FOLDER = "/run/netctrl-agents"
"""Folder of agents' locks, and of their sockets for metrics."""


_FLOCK = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, length, pid
_PATIENCE_S = 3.0
"""Time to wait for a killed agent, which keeps its links until their rates are restored."""


def open_lock(path: Path) -> int:
    """Descriptor of a lock file, created if missing; raises FileError where it isn't this user's regular file."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        handle = os.open(path, flags, 0o600)
    except OSError as error:
        raise FileError(path, f"can't be opened: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileError(path, "is not a regular file, as a lock must be")
    return handle


def make_folder(folder: Path) -> None:
    """Create a folder that all may read and its owner may write, whatever the umask; raises OSError."""
    try:
        folder.mkdir()
    except FileExistsError:
        return
    folder.chmod(0o755)


def read_regular(path: str | os.PathLike[str], most: int, what: str = "a record", forbidden: int = 0) -> bytes | None:
    """Content of a regular file of this user or root, at most one byte more than `most`; None where there is no file.

    Raises FileError for other objects, such as a FIFO, and for a mode with `forbidden` bits. The checks apply to the
    opened file, not to the path, which may change before.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(path, f"{what} can't be read: {error.strerror}") from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise FileError(path, f"is not a regular file, as {what} must be; check it before you remove it")
        if found.st_mode & forbidden:
            mode = f"{stat.S_IMODE(found.st_mode):04o}"
            raise FileError(path, f"{what} has mode {mode}, takes 0600: make a new one if others may have read it")
        if found.st_uid not in (0, os.geteuid()):
            why = f"{what} is this user's or root's; check it before you remove it"
            raise FileError(path, f"belongs to user {found.st_uid}, but {why}")
        with open(handle, "rb", closefd=False) as file:
            return file.read(most + 1)
    finally:
        os.close(handle)


def safe_folder(folder: Path) -> None:
    """Create the folder if missing; raises FileError where others may write in it, or this process may not."""
    try:
        make_folder(folder)
        found = folder.stat()
    except OSError as error:
        raise FileError(folder, f"can't be used for the record: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022 or found.st_uid not in (0, os.geteuid()):
        raise FileError(folder, "others may write there, but root acts on the record; takes a folder of mode 0755")
    if not os.access(folder, os.W_OK):
        raise FileError(folder, "permission denied, but a record is written before any change; run as root")


def write_through(path: Path, content: bytes, mode: int) -> None:
    """Write a file to the disk atomically: written to a temporary file, flushed, renamed, the folder flushed.

    Raises
    ------
    FileError
        No space, or no permission.
    """
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(handle, mode)
            os.fsync(file.fileno())
        Path(temporary).replace(path)
        flush_folder(path.parent)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise FileError(path, f"can't be written: {error.strerror}") from None


def flush_folder(folder: Path) -> None:
    """Write a folder's renamed and removed entries to the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class AgentLock:
    """Agents' lock of this thread's network namespace; close it after use.

    Parameters
    ----------
    folder : path
        Created if missing; its parent must exist.

    Raises
    ------
    FileError
        The folder can't be created or used, or others may write in it and so could block agents.
    """

    def __init__(self, folder: str | os.PathLike[str] = AGENT_FOLDER) -> None:
        self._until = time.monotonic() + _PATIENCE_S
        owner = _checked(Path(folder))
        self.descriptor = open_lock(Path(folder) / f"links-{own_namespace()}.lock")
        if os.geteuid() == 0 and owner:  # an agent of the folder's owner may follow root's agent
            os.fchown(self.descriptor, owner, -1)

    def take(self, queues: Sequence[tuple[int, int]]) -> int | None:
        """Lock queues (interface, parent), all or none; number of the first one that another agent holds, None if none.

        It waits a moment for a killed agent.
        """
        while (
            taken := next((n for n, each in enumerate(queues) if not self._set(fcntl.F_WRLCK, *each)), None)
        ) is not None:
            for each in queues[:taken]:
                self._set(fcntl.F_UNLCK, *each)
            if time.monotonic() > self._until:
                return taken
            time.sleep(0.05)
        return None

    def close(self) -> None:
        """Release all locks, unless a child holds them."""
        os.close(self.descriptor)

    def _set(self, kind: int, index: int, parent: int) -> bool:
        desired = _FLOCK.pack(kind, os.SEEK_SET, index << 32 | parent, 1, 0)
        try:
            fcntl.fcntl(self.descriptor, fcntl.F_OFD_SETLK, desired)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True


def _checked(folder: Path) -> int:
    """Owner of the folder, in which only root, this user, or root's delegate may write."""
    try:
        make_folder(folder)
        found, above = folder.stat(), folder.resolve().parent.stat()
    except OSError as error:
        raise FileError(folder, f"can't be used for agents' locks: {error.strerror}") from None
    given = above.st_uid == 0 and not above.st_mode & 0o022
    own = found.st_uid in (0, os.geteuid()) or given
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022 or not own:
        raise FileError(folder, "others may write there and could block agents; takes a folder of mode 0755")
    return found.st_uid
