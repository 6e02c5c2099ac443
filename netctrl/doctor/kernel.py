"""Checks of the running kernel (rights, namespaces, queueing disciplines, senders), which only read /proc."""

from __future__ import annotations

import ctypes
import errno
import gzip
import platform
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from netctrl.doctor.check import Check, State, checked
from netctrl.linux.namespace import NET_ADMIN, SYS_ADMIN, has_capability

__all__ = ["kernel"]

_QDISCS = {
    "htb": ("HTB", "rates of HFTraC and CONNET"),
    "tbf": ("TBF", "testbeds, rates of HFTraC and CONNET"),
    "pie": ("PIE", "export tc --implementation pie"),
    "dualpi2": ("DUALPI2", "export tc --implementation dualpi2"),
    "clsact": ("INGRESS", "netctrl linux mark"),
}
_TUN = Path("/dev/net/tun")
_CAPABILITIES = {"CAP_NET_ADMIN": NET_ADMIN, "CAP_SYS_ADMIN": SYS_ADMIN}
_PIDFD_GETFD = 438  # the same on all architectures
_REMEDY = "a kernel with CONFIG_{}, or its module: apt-get install linux-modules-extra-$(uname -r)"
_check = partial(checked, "kernel")


def kernel() -> Iterator[Check]:
    """Checks of what `netctrl linux` needs."""
    if sys.platform != "linux":
        why = f"this is {platform.system()}"
        yield _check("Linux", State.MISSING, why, "netctrl linux", "a Linux machine")
        return
    yield _check("Linux", State.OK, platform.release(), "netctrl linux", "")
    yield _rights()
    yield _namespaces()
    yield _pidfd_getfd()
    for name, (option, needed_for) in _QDISCS.items():
        state, found = _configured(f"NET_SCH_{option}")
        yield _check(f"qdisc {name}", state, found, needed_for, _REMEDY.format(f"NET_SCH_{option}"))
    yield _senders()


def _rights() -> Check:
    needed_for = "netctrl linux testbed and apply"
    lacking = [name for name, number in _CAPABILITIES.items() if not has_capability(number)]
    if lacking:
        return _check("rights", State.MISSING, f"no {', '.join(lacking)}", needed_for, "run as root")
    if not _TUN.exists():
        remedy = "a kernel with CONFIG_TUN, or pass it to the container"
        return _check("rights", State.MISSING, f"no {_TUN}", "delays of netctrl linux testbed", remedy)
    return _check("rights", State.OK, f"{', '.join(_CAPABILITIES)}, {_TUN}", needed_for, "")


def _namespaces() -> Check:
    there = Path("/proc/self/ns/net").exists()
    needed_for = "netctrl linux testbed"
    said = "network namespaces" if there else "no network namespaces"
    return _check("namespaces", there, said, needed_for, "a kernel with CONFIG_NET_NS")


def _pidfd_getfd() -> Check:
    libc = ctypes.CDLL(None, use_errno=True)
    there = not (libc.syscall(_PIDFD_GETFD, -1, -1, 0) < 0 and ctypes.get_errno() == errno.ENOSYS)  # else EBADF
    said = "pidfd_getfd" if there else "no pidfd_getfd"
    return _check("pidfd_getfd", there, said, "netctrl linux pace -- PROGRAM", "Linux 5.6 or later")


def _senders() -> Check:
    try:
        names = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    except OSError:
        names = []
    remedy = "modprobe tcp_NAME, as root, for others of the kernel"
    return _check("TCP senders", bool(names), ", ".join(names) or "none listed", "netctrl linux pace --to", remedy)


def _configured(option: str) -> tuple[State, str]:
    """State and description of a kernel build option; UNKNOWN if no file gives it or modules can't be present."""
    built = _config()
    if built is None:
        return State.UNKNOWN, "no file gives this kernel's build options"
    value = built.get(option)
    if value == "m" and not Path(f"/lib/modules/{platform.release()}").is_dir():
        return State.UNKNOWN, "a module, but there is no folder of modules"
    if value is None:
        return State.MISSING, "not built"
    return State.OK, "a module" if value == "m" else "built in"


@cache
def _config() -> dict[str, str] | None:
    for place in (Path("/proc/config.gz"), Path(f"/boot/config-{platform.release()}")):
        with suppress(OSError, EOFError, zlib.error):
            content = place.read_bytes()
            text = gzip.decompress(content) if place.suffix == ".gz" else content
            lines = text.decode(errors="replace").splitlines()
            pairs = (line.removeprefix("CONFIG_").partition("=")[::2] for line in lines if line.startswith("CONFIG_"))
            return dict(pairs)
    return None
