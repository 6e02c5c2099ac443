"""Network namespaces: created, entered, identified, and gone with their owner; rights of this thread.

A namespace lives as long as it is held, here by a descriptor of its owner, so the kernel removes it and its interfaces
after a crash too.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from netctrl.core.errors import NetctrlError

NET_ADMIN, SYS_ADMIN = 12, 21
"""Capabilities by their numbers in linux/capability.h."""
_STATUS = Path("/proc/thread-self/status")

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_SO_NETNS_COOKIE = 71
_NEEDS = {
    errno.EPERM: "CAP_SYS_ADMIN is missing: run as root, or give this process that capability",
    errno.EINVAL: "this kernel has no network namespaces (CONFIG_NET_NS)",
}
_libc = ctypes.CDLL(None, use_errno=True)


def make_namespace() -> int:
    """New network namespace, as a descriptor that holds it; the caller's own is unchanged.

    Raises
    ------
    NetctrlError
        Missing privilege, or a kernel without namespaces.
    """
    made: list[int | NetctrlError] = []

    def make() -> None:  # in a thread that ends, so no namespace has to be entered again
        try:
            call_libc("unshare", _CLONE_NEWNET)
            made.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
        except NetctrlError as error:
            made.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(made[0], NetctrlError):
        raise made[0]
    return made[0]


def own_namespace() -> str:
    """Identifier of this thread's network namespace, unique since boot.

    It is the cookie (SO_NETNS_COOKIE, Linux 5.14), which is never reused. On older kernels it is the inode, which a
    later namespace may reuse.
    """
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as any_socket:
        return str(int.from_bytes(any_socket.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8), sys.byteorder))
    return f"inode-{Path('/proc/thread-self/ns/net').stat().st_ino}"


@contextmanager
def inside(namespace: int) -> Generator[None]:
    """Context in which the calling thread is in the namespace: sockets and children created there stay there."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter(namespace)
        try:
            yield
        finally:
            enter(home)
    finally:
        os.close(home)


def enter(namespace: int) -> None:
    """Move the calling thread into a namespace permanently."""
    call_libc("setns", namespace, _CLONE_NEWNET)


def bind_to_parent(parent: int) -> None:
    """In a child: request SIGKILL when the thread of `parent` (its pid) that started it ends."""
    call_libc("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # the parent has ended before
        os.kill(os.getpid(), signal.SIGKILL)


def start_time(pid: int) -> int | None:
    """Start of a process in ticks since boot, which with the pid identifies it. None: it doesn't run."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # a name may contain blanks and parentheses
    return None if fields[0] in "ZX" else int(fields[19])


def call_libc(name: str, *arguments: object) -> None:
    """Call a function of libc; its error becomes an exception."""
    if getattr(_libc, name)(*arguments) == 0:
        return
    number = ctypes.get_errno()
    raise NetctrlError(f"{name} failed: {os.strerror(number)}; {_NEEDS.get(number, 'nothing was changed')}")


def has_capability(number: int) -> bool:
    """Whether a capability (capabilities(7)) is in this thread's effective set.

    True where /proc doesn't tell, and the kernel decides.
    """
    lines = _STATUS.read_text(encoding="utf-8", errors="replace").splitlines()
    held = next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), -1)
    return bool(held >> number & 1)


class MissingCapability(NetctrlError):
    """The process lacks a capability."""


def check_capability() -> None:
    """Raise MissingCapability where this process may not change queues."""
    if not has_capability(NET_ADMIN):
        raise MissingCapability(
            "queues can't be changed: this process lacks CAP_NET_ADMIN; run it as root, or by systemd with "
            "AmbientCapabilities=CAP_NET_ADMIN; `apply --dry-run` needs no capability"
        )
