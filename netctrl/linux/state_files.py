"""Files that root acts on: read, written and locked so that nobody else has a hand in them.

They lie in a folder that only its owner may write. What stands there in their place (a FIFO, a link, somebody's file)
is refused, and never waited for.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from netctrl.errors import FileError

__all__ = ["flush_folder", "make_folder", "open_lock", "read_regular", "safe_folder", "write_through"]


def open_lock(path: Path) -> int:
    """A descriptor of a file to lock, made where it isn't there; FileError where it is no file of one's own."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        handle = os.open(path, flags, 0o600)
    except OSError as error:
        raise FileError(path, f"can't be opened: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileError(path, "is no regular file, and a lock is one")
    return handle


def make_folder(folder: Path) -> None:
    """A folder that all may read and its owner write, whatever the umask; OSError where it can't be made."""
    try:
        folder.mkdir()
    except FileExistsError:
        return
    folder.chmod(0o755)


def read_regular(path: Path, most: int) -> bytes:
    """A file's content; FileError where it is something else, as a FIFO that nobody writes, or is too large.

    Of what was opened, not of what stands at the path a moment before.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise FileError(path, "is no regular file, and a record is one; look at it before you remove it")
        if found.st_uid not in (0, os.geteuid()):
            raise FileError(
                path, f"belongs to user {found.st_uid}, and root acts on it; look at it before you remove it"
            )
        content = file.read(most + 1)
    if len(content) > most:
        raise FileError(path, "is larger than a record may be")
    return content


def safe_folder(folder: Path) -> None:
    """Make the folder where it isn't there; FileError where others may write in it, or this process may not."""
    try:
        make_folder(folder)
        found = folder.stat()
    except OSError as error:
        raise FileError(folder, f"can't be used for the record: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022 or found.st_uid not in (0, os.geteuid()):
        raise FileError(folder, "others may write there, and root acts on the record; takes a folder of mode 0755")
    if not os.access(folder, os.W_OK):
        raise FileError(folder, "permission denied: a record is written before any change; run as root")


def write_through(path: Path, content: bytes, mode: int) -> None:
    """Put a file on the disk, whole or not at all: written beside, flushed, renamed, the folder flushed.

    Raises
    ------
    FileError
        No room, or no right.
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
    """What was renamed or removed in a folder, on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
