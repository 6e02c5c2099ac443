"""Folders of the user that netctrl keeps things in."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["user_cache"]


def user_cache() -> Path | None:
    """netctrl's folder in the user's cache, after the XDG Base Directory Specification; None where there is none."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:  # no HOME, and the user has no entry in the password database
            return None
    return base / "netctrl"
