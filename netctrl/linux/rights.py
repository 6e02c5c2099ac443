"""Capabilities of this thread (capabilities(7)), by their numbers in linux/capability.h."""

from __future__ import annotations

from pathlib import Path

__all__ = ["NET_ADMIN", "SYS_ADMIN", "has_capability"]

NET_ADMIN, SYS_ADMIN = 12, 21
_STATUS = Path("/proc/thread-self/status")


def has_capability(number: int) -> bool:
    """Whether it is in the effective set; True where /proc doesn't tell, and the kernel decides."""
    lines = _STATUS.read_text(encoding="utf-8", errors="replace").splitlines()
    held = next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), -1)
    return bool(held >> number & 1)
