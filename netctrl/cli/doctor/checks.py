"""Checks of this machine: Python, libraries and data, programs, the running kernel and the one in virtual time.

Essential libraries are imported, others only looked up; of the running kernel only /proc is read.
"""

from __future__ import annotations

import ctypes
import errno
import gzip
import importlib
import platform
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from netctrl.core.errors import NetctrlError
from netctrl.linux.namespace import NET_ADMIN, SYS_ADMIN, has_capability

_CORE = ("numpy", "scipy", "numba", "msgspec", "cyclopts")
_OTHERS = {
    "matplotlib": ("figures, --plot", "matplotlib"),
    "pandas": ("tables, sweeps", "pandas"),
    "pyarrow": ("Parquet files", "'netctrl[parquet]'"),
    "networkx": ("networkx graphs, figures of networks", "networkx"),
    "joblib": ("several processes, --n-jobs", "joblib"),
    "threadpoolctl": ("the synthesis of HFTraC", "threadpoolctl"),
    "tqdm": ("progress bars", "tqdm"),
    "control": ("python-control's systems", "control"),
    "cvxpy": ("the solver clarabel", "cvxpy"),
    "osqp": ("the solver osqp", "osqp"),
    "daqp": ("the solver daqp", "daqp"),
    "sippy-unipi": ("identification methods sippy-*", "sippy-unipi"),
    "casadi": ("the solver qpoases", "'netctrl[mpc]'"),
    "distributed": ("runs on a Dask cluster, --dask", "'netctrl[dask]'"),
    "jupyter-core": ("notebooks", "'netctrl[notebooks]'"),
    "ipywidgets": ("explore() of queues in Jupyter", "'netctrl[notebooks]'"),
}
_MIN_PYTHON = (3, 11)
_QDISCS = {
    "htb": ("HTB", "rates of HFTraC and CONNET"),
    "tbf": ("TBF", "rates of HFTraC and CONNET"),
    "pie": ("PIE", "export tc --implementation pie"),
    "dualpi2": ("DUALPI2", "export tc --implementation dualpi2"),
    "clsact": ("INGRESS", "netctrl linux mark"),
}
_CAPABILITIES = {"CAP_NET_ADMIN": NET_ADMIN, "CAP_SYS_ADMIN": SYS_ADMIN}
_PIDFD_GETFD = 438  # the same on all architectures
_REMEDY = "a kernel with CONFIG_{}, or its module: apt-get install linux-modules-extra-$(uname -r)"
_TOOLS = {
    "g++": (("g++", "clang++"), "ns-3 programs, and marking laws in the kernel", "apt-get install g++"),
    "make": (("make",), "ns-3 programs", "apt-get install make"),
    "ip": (("ip",), "inspecting queues by hand", "apt-get install iproute2"),
    "systemd-analyze": (("systemd-analyze",), "checking units of netctrl linux --unit", "apt-get install systemd"),
}


class State(StrEnum):
    """Outcome of a check."""

    OK = "ok"
    MISSING = "missing"
    UNKNOWN = "unknown"
    """Unknown without trying, which a check doesn't do."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Check of one item that netctrl, or a part of it, needs."""

    area: str
    name: str
    state: State
    found: str
    """Version, path, or the reason why it doesn't work."""
    needed_for: str
    remedy: str | None = None
    """Command or step that installs it if it is missing."""
    essential: bool = False
    """Whether nothing works without it."""


def checked(
    area: str, name: str, state: bool | State, found: str, needed_for: str, remedy: str, *, essential: bool = False
) -> Check:
    """A check from its outcome, given as a state or as whether the item exists; the remedy is dropped if it does."""
    if isinstance(state, bool):
        state = State.OK if state else State.MISSING
    told = None if state is State.OK else remedy
    return Check(
        area=area, name=name, state=state, found=found, needed_for=needed_for, remedy=told, essential=essential
    )


def libraries() -> Iterator[Check]:
    """All of these checks."""
    yield _essential(
        "python", sys.version_info >= _MIN_PYTHON, platform.python_version(), "install Python 3.11 or later"
    )
    yield _netctrl()
    for name in _CORE:
        yield _imported(name)
    for name, (needed_for, package) in _OTHERS.items():
        found = _version(name)
        remedy = f"pip install {package}"
        yield checked("libraries", name, found is not None, found or "not installed", needed_for, remedy)


def _netctrl() -> Check:
    import netctrl
    from netctrl.model import datasets

    there = bool(datasets.scenarios())
    found = f"{netctrl.__version__}, {Path(netctrl.__file__).parent}" + ("" if there else ": its data is missing")
    return _essential("netctrl", there, found, "pip install --force-reinstall netctrl")


def _imported(name: str) -> Check:
    try:
        importlib.import_module(name)
        found, works = _version(name) or "", True
    except Exception as error:  # whatever a broken installation raises
        found, works = f"cannot be imported: {' '.join(str(error).split()) or type(error).__name__}", False
    return _essential(name, works, found, f"pip install --force-reinstall {name}")


def _essential(name: str, works: bool, found: str, remedy: str) -> Check:
    return checked("libraries", name, works, found, "everything", remedy, essential=True)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


_check = partial(checked, "kernel")


def kernel() -> Iterator[Check]:
    """Checks of what `netctrl linux` needs."""
    if sys.platform != "linux":
        why = f"this is {platform.system()}"
        yield _check("Linux", State.MISSING, why, "netctrl linux", "a Linux machine")
        return
    yield _check("Linux", State.OK, platform.release(), "netctrl linux", "")
    yield _rights()
    there = Path("/proc/self/ns/net").exists()
    said, needed_for = f"{'' if there else 'no '}network namespaces", "routers that are namespaces of one machine"
    yield _check("namespaces", there, said, needed_for, "a kernel with CONFIG_NET_NS")
    libc = ctypes.CDLL(None, use_errno=True)
    there = not (libc.syscall(_PIDFD_GETFD, -1, -1, 0) < 0 and ctypes.get_errno() == errno.ENOSYS)  # else EBADF
    said, needed_for = f"{'' if there else 'no '}pidfd_getfd", "netctrl linux pace -- PROGRAM"
    yield _check("pidfd_getfd", there, said, needed_for, "Linux 5.6 or later")
    for name, (option, needed_for) in _QDISCS.items():
        state, found = _configured(f"NET_SCH_{option}")
        yield _check(f"qdisc {name}", state, found, needed_for, _REMEDY.format(f"NET_SCH_{option}"))
    names: list[str] = []
    with suppress(OSError):
        names = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    remedy = "modprobe tcp_NAME, as root, for others of the kernel"
    yield _check("TCP senders", bool(names), ", ".join(names) or "none listed", "netctrl linux pace --to", remedy)


def _rights() -> Check:
    needed_for = "netctrl linux apply and agent"
    lacking = [name for name, number in _CAPABILITIES.items() if not has_capability(number)]
    if lacking:
        return _check("rights", State.MISSING, f"no {', '.join(lacking)}", needed_for, "run as root")
    return _check("rights", State.OK, ", ".join(_CAPABILITIES), needed_for, "")


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


def tools() -> Iterator[Check]:
    """Checks of programs on PATH, and of ns-3; nothing is compiled."""
    for name, (names, needed_for, remedy) in _TOOLS.items():
        place = next(filter(None, map(shutil.which, names)), None)
        yield checked("tools", name, place is not None, place or "not on PATH", needed_for, remedy)
    yield _ns3()


def _ns3() -> Check:
    needed_for = "the engine ns3, netctrl export ns3 --run"
    try:
        from netctrl.ns3.program import REMEDY, find_ns3

        ns3 = find_ns3()
    except Exception as error:  # a NetctrlError, or a broken library, which its own check reports
        remedy = "apt-get install g++ make libns3-dev, or pip install 'netctrl[ns3]'"
        return checked("tools", "ns-3", False, str(error).partition("; install ")[0], needed_for, remedy)
    place = str(ns3.prefix) if ns3.prefix else "the system's libraries"
    return checked("tools", "ns-3", True, f"{ns3.version}, {place}", needed_for, REMEDY)


def virtual_kernel() -> Iterator[Check]:
    """Checks of what builds the kernel in virtual time, and of built ones."""
    needed_for = "netctrl kernel build"
    if sys.platform != "linux":
        yield checked("virtual time", "Linux", False, sys.platform, needed_for, "a Linux machine")
        return
    try:
        from netctrl.kernel.build import kernels, missing_tools
        from netctrl.kernel.source import REMEDY, find_source

        missing, built = missing_tools(), kernels()
    except Exception as error:  # a broken library, which its own check reports
        yield checked("virtual time", "build", State.UNKNOWN, str(error), needed_for, "repair the libraries above")
        return
    install = (missing or "").partition("`")[2].rstrip("`")
    yield checked("virtual time", "build tools", missing is None, missing or "all there", needed_for, install)
    try:
        found, place = True, str(find_source().path)
    except NetctrlError as error:
        found, place = False, str(error).partition(":")[0]
    yield checked("virtual time", "kernel source", found, place, needed_for, REMEDY)
    said = ", ".join(each.version for each in built) or "none is built"
    yield checked(
        "virtual time", "kernels", bool(built), said, "the engine kernel, netctrl kernel run", "netctrl kernel build"
    )


def compiled() -> Iterator[Check]:
    """Check of the files whose kernels have compiled code of today's sources."""
    needed_for = "simulation without compiling first"
    try:
        from netctrl.core.jit import compiled_files, places

        files, place = compiled_files(), next((each for each in places() if each.is_dir()), places()[0])
    except Exception as error:  # numba is broken, which its own check reports
        yield checked("compiled code", "kernels", False, str(error), needed_for, "pip install --force-reinstall numba")
        return
    ready = sum(files.values())
    said = f"{ready} of {len(files)} files, in {place}"
    remedy = "netctrl simulate arc-staircase-bulk compiles its kernels once; other kernels are compiled on first use"
    yield checked("compiled code", "kernels", ready > 0, said, needed_for, remedy)
