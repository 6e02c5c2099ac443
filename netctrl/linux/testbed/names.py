"""Names of a testbed's namespaces, for `ip netns`, and the removal of those that a killed testbed left.

A name is a mount, which outlives its owner; it contains the owner's pid and start time, so leftovers can be recognised.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from netctrl.errors import NetctrlError
from netctrl.linux.namespace import call_libc, start_time

__all__ = [
    "NAMES",
    "PREFIX",
    "clean_leftovers",
    "leftovers",
    "name_namespace",
    "namespace_name",
    "unname_namespace",
]

PREFIX = "netctrl-"
NAMES = Path("/run/netns")
"""Folder of the names of `ip netns`."""

_MS_BIND = 0x1000
_MNT_DETACH = 2
_NAME = re.compile(re.escape(PREFIX) + r"(\d+)-(\d+)-.+")


def namespace_name(node: str) -> str:
    """Name of this process's namespace for a node."""
    return f"{PREFIX}{os.getpid()}-{start_time(os.getpid())}-{re.sub(r'[^A-Za-z0-9_.-]', '_', node)}"


def name_namespace(namespace: int, name: str) -> None:
    """Give a namespace a name for `ip netns`."""
    NAMES.mkdir(mode=0o755, parents=True, exist_ok=True)
    place = NAMES / name
    try:
        place.touch(mode=0o444, exist_ok=False)
    except FileExistsError:
        raise NetctrlError(
            f"{place} exists already; `python -m netctrl.linux testbed --clean` removes leftovers"
        ) from None
    source = f"/proc/self/fd/{namespace}".encode()
    try:
        call_libc("mount", source, os.fsencode(place), b"none", _MS_BIND, None)
    except NetctrlError:
        place.unlink()
        raise


def unname_namespace(name: str) -> None:
    """Remove a name, if it exists."""
    place = NAMES / name
    with suppress(NetctrlError):  # the mount may not exist
        call_libc("umount2", os.fsencode(place), _MNT_DETACH)
    place.unlink(missing_ok=True)


def leftovers() -> list[str]:
    """Names whose owner has ended."""
    if not NAMES.is_dir():
        return []
    found = []
    for name in sorted(place.name for place in NAMES.iterdir()):
        match = _NAME.fullmatch(name)
        if match and start_time(int(match[1])) != int(match[2]):
            found.append(name)
    return found


def clean_leftovers() -> Sequence[str]:
    """Remove the leftovers and return them; names of running owners, and of other programs, are kept."""
    found = leftovers()
    for name in found:
        unname_namespace(name)
    return found
