"""Checks of programs (compilers, ns-3, iproute2) and of compiled kernels."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from netctrl.doctor.check import Check, checked

__all__ = ["compiled", "tools"]

_TOOLS = {
    "g++": (("g++", "clang++"), "ns-3 programs", "apt-get install g++"),
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
