"""Locks for one agent per link, released with the process, in a folder where only agents write.

They are ranges of one file per network namespace, a byte per queue, held by the open file description (fcntl(2),
F_OFD_SETLK). A child that inherits the descriptor holds them too, and the kernel releases them with the last one.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import time
from collections.abc import Sequence
from pathlib import Path

from netctrl.errors import FileError
from netctrl.linux.namespace import own_namespace
from netctrl.linux.state_files import AGENT_FOLDER, make_folder, open_lock

__all__ = ["AgentLock"]

_FLOCK = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, length, pid
_PATIENCE_S = 3.0
"""Time to wait for a killed agent, which keeps its links until their rates are restored."""


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
