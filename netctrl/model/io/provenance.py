"""Provenance of results."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from netctrl.core.files import sha256


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a result was made, so that it can be reproduced."""

    netctrl: str
    """Version of netctrl."""
    git_revision: str | None
    """Commit of the checkout, "-dirty" if it had changes; null for an installed package."""
    argv: tuple[str, ...]
    """Command line; empty when called as a library."""
    seed: int | None
    """Seed of everything random; null where nothing is."""
    input_hashes: dict[str, str]
    """SHA-256 of each input file."""
    python: str
    """Version of Python."""
    libraries: dict[str, str]
    """Versions of the libraries used."""


def provenance(
    *, argv: Iterable[str] = (), seed: int | None = None, inputs: Iterable[Path] = (), libraries: Iterable[str] = ()
) -> Provenance:
    """Provenance of a result of this process; `libraries` names the modules that computed it."""
    import netctrl

    return Provenance(
        netctrl=netctrl.__version__,
        git_revision=_git_revision(Path(netctrl.__file__).resolve().parent.parent),
        argv=tuple(argv),
        seed=seed,
        input_hashes={str(path): sha256(path) for path in inputs},
        python=".".join(map(str, sys.version_info[:3])),
        libraries={name: _version(name) for name in libraries},
    )


@cache
def _version(library: str) -> str:
    """Version of an installed library, whose file is read once."""
    return importlib.metadata.version(library)


@cache
def _git_revision(checkout: Path) -> str | None:
    if not (checkout / ".git").exists():
        return None
    import subprocess

    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None
