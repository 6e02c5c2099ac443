"""Run a script in which netctrl's own modules see Python as it is on Windows: `python without_posix.py TEXT`.

Other libraries go on seeing the machine as it is: they have their own builds for other systems.
"""

from __future__ import annotations

import builtins
import importlib
import re
import sys
from types import ModuleType
from typing import Any

MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
"""Modules that Python has on POSIX only."""

_OS = """chown chroot confstr ctermid eventfd fchdir fchmod fchown fdatasync fork forkpty fpathconf fstatvfs fwalk
    get_blocking initgroups killpg lchown lockf memfd_create mkfifo mknod nice openpty pathconf pidfd_open pipe2
    pread preadv pwrite pwritev readv register_at_fork sendfile set_blocking setns statvfs sync sysconf ttyname
    uname unshare wait wait3 wait4 waitid writev (get|set)(e|re|res|)[ug]id getgroups setgroups
    (get|set)(pgid|pgrp|priority|sid) getloadavg (get|set|list|remove)xattr
    O_(CLOEXEC|DIRECTORY|DSYNC|NOATIME|NOCTTY|NOFOLLOW|NONBLOCK|PATH|SYNC|TMPFILE)
    (posix|sched|tc[gs]et|SCHED|PRIO|RTLD|W[A-Z]).*"""
_SIGNALS = "SIGABRT|SIGFPE|SIGILL|SIGINT|SIGSEGV|SIGTERM|SIG_DFL|SIG_IGN"
MISSING = {
    "os": "|".join(_OS.split()),
    "signal": f"(?!({_SIGNALS})$)SIG.*|alarm|pause|pthread_.*|[gs]etitimer|sig(pending|wait|timedwait).*",
    "socket": "AF_(?!INET6?$|UNSPEC$).*|CMSG_.*|SCM_.*|MSG_(DONTWAIT|NOSIGNAL)|(send|recv)_fds",
}
"""Names that these modules lack on Windows, as regular expressions."""

_import = builtins.__import__


def _without(module: ModuleType) -> ModuleType:
    """A copy of a module without what Windows lacks."""
    copy = ModuleType(module.__name__)
    lacking = re.compile(MISSING[module.__name__])
    copy.__dict__.update({name: value for name, value in vars(module).items() if not lacking.fullmatch(name)})
    return copy


_COPIES = {name: _without(importlib.import_module(name)) for name in MISSING}


def _windows_import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    importer = (globals or {}).get("__name__", "")
    if importer == "netctrl" or importer.startswith("netctrl."):
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r} on Windows, for {importer}", name=name)
        if name in _COPIES:
            return _COPIES[name]
    return _import(name, globals, locals, fromlist, level)


if __name__ == "__main__":
    builtins.__import__ = _windows_import
    exec(compile(sys.argv[1], "script", "exec"), {"__name__": "script"})
