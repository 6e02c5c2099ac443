"""Checks of programs (compilers, ns-3, iproute2) and of compiled kernels."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

from netctrl.doctor.check import Check, State, checked
from netctrl.errors import NetctrlError

__all__ = ["compiled", "tools", "virtual_kernel"]

_TOOLS = {
    "g++": (("g++", "clang++"), "ns-3 programs, and marking laws in the kernel", "apt-get install g++"),
    "make": (("make",), "ns-3 programs", "apt-get install make"),
    "ip": (("ip",), "inspecting testbeds and queues by hand", "apt-get install iproute2"),
    "systemd-analyze": (("systemd-analyze",), "checking units of netctrl linux --unit", "apt-get install systemd"),
}


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
        from netctrl.jit import compiled_files, places

        files, place = compiled_files(), next((each for each in places() if each.is_dir()), places()[0])
    except Exception as error:  # numba is broken, which its own check reports
        yield checked("compiled code", "kernels", False, str(error), needed_for, "pip install --force-reinstall numba")
        return
    ready = sum(files.values())
    said = f"{ready} of {len(files)} files, in {place}"
    remedy = "netctrl simulate arc-staircase-bulk compiles its kernels once; other kernels are compiled on first use"
    yield checked("compiled code", "kernels", ready > 0, said, needed_for, remedy)
