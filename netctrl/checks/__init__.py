"""Nonlinear checks of certificates: in the fluid, on packets and in the kernel."""

from __future__ import annotations

from collections.abc import Iterable

from netctrl.certificates.box import several
from netctrl.core.errors import InvalidValue, any_of

CHECKS = ("fluid", "packet", "kernel")
"""Models in which a certificate can be checked."""


def checked_engines(engines: str | Iterable[str]) -> tuple[str, ...]:
    """Names of models, each once, else InvalidValue."""
    names = (engines,) if isinstance(engines, str) else several("check", engines)
    if not names:
        raise InvalidValue("check", names, any_of(CHECKS))
    for name in names:
        if not isinstance(name, str) or name not in CHECKS:
            raise InvalidValue("check", name, any_of(CHECKS, str(name)))
    return tuple(dict.fromkeys(names))
