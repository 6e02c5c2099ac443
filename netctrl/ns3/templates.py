"""C++ files of the package that are the same in every export."""

from __future__ import annotations

from importlib.resources import files

_PROGRAM = ("Makefile", *(f"netctrl-{name}.h" for name in ("files", "lines", "program", "routing", "sockets")))
TCP = ("netctrl-tcp-defaults.h",)
"""Files of programs with TCP."""
QUEUES = ("netctrl-law-queue-disc.h", "netctrl-queues.h")
"""Files of programs with queues from scenario files."""
DUAL = ("netctrl-dual-queue-disc.h",)
"""Files of those with DualPI2."""
SCALABLE = ("netctrl-scalable-window.h",)
"""Files of programs with scalable senders."""

RECORDS = ("netctrl-records.h",)
"""Files of programs that read their scenario."""


def fixed_files(area: str, *shared: str) -> dict[str, str]:
    """All files of `netctrl/ns3/AREA/cpp`, those of every program, and these of `common/cpp`: file name -> text."""
    programs = files("netctrl.ns3")
    own = (programs / area / "cpp").iterdir()
    common = (programs / "common" / "cpp" / name for name in (*_PROGRAM, *shared))
    return {place.name: place.read_text(encoding="utf-8") for place in (*own, *common)}
