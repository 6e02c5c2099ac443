"""One agent a link: locks that go with the process, in a folder where only agents write.

They are ranges of one file for each network namespace, a byte for each queue, held by its open description (fcntl(2),
F_OFD_SETLK): a child that inherits the descriptor holds them too, and the kernel lets go of them with the last one.
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
from netctrl.linux.state_files import make_folder, open_lock
from netctrl.linux.testbed.namespace import own_namespace

__all__ = ["AGENT_FOLDER", "AgentLock"]

AGENT_FOLDER = "/run/netctrl-agents"

_FLOCK = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, length, pid
_PATIENCE_S = 3.0
"""An agent that was killed has its links until their rates are put back."""


class AgentLock:
    """Of this thread's network namespace, to be closed.

    Parameters
    ----------
    folder : path
        Made where it isn't there; its parent has to be.

    Raises
    ------
    FileError
        The folder can't be made or used, or others may write in it: then anybody could keep agents out.
    """

    def __init__(self, folder: str | os.PathLike[str] = AGENT_FOLDER) -> None:
        self._until = time.monotonic() + _PATIENCE_S
        owner = _checked(Path(folder))
        self.descriptor = open_lock(Path(folder) / f"links-{own_namespace()}.lock")
        if os.geteuid() == 0 and owner:  # root's agent may be followed by one of the folder's owner
            os.fchown(self.descriptor, owner, -1)

    def take(self, queues: Sequence[tuple[int, int]]) -> int | None:
        """Lock queues (interface, parent), all or none; the number of the first that another agent has, None if none.

        It waits a moment for an agent that was killed.
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
        """Let go of all, unless a child holds them."""
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
    """The folder's owner, where nobody else may write in it: root, this user, or whom root gave it."""
    try:
        make_folder(folder)
        found, above = folder.stat(), folder.resolve().parent.stat()
    except OSError as error:
        raise FileError(folder, f"can't be used for agents' locks: {error.strerror}") from None
    given = above.st_uid == 0 and not above.st_mode & 0o022
    own = found.st_uid in (0, os.geteuid()) or given
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022 or not own:
        raise FileError(folder, "others may write there, and could keep agents out; takes a folder of mode 0755")
    return found.st_uid
