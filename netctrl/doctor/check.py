"""Result of one check of this machine."""

from __future__ import annotations

from enum import StrEnum

import msgspec

__all__ = ["Check", "State", "checked"]


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
