"""Schemes of a data centre's senders in files, and their laws, including those of other packages."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.register import WINDOW_LAWS
from netctrl.laws.window.dcqcn import Dcqcn
from netctrl.laws.window.dctcp import Dctcp
from netctrl.laws.window.fixed import FixedWindow
from netctrl.laws.window.hpcc import Hpcc
from netctrl.laws.window.law import Packet, Path, SchemeRecord, WindowLaw
from netctrl.laws.window.mpcc import Mpcc, mpcc_scheme
from netctrl.laws.window.timely import Timely

__all__ = [
    "LAWS",
    "SCHEMES",
    "Dcqcn",
    "Dctcp",
    "FixedWindow",
    "Hpcc",
    "LawRow",
    "Mpcc",
    "Scheme",
    "Timely",
    "law_of",
    "law_row",
    "mpcc_scheme",
]

_MAX_FLOWS = 1024  # that laws look up; the last number stands for all above

LAWS: tuple[WindowLaw, ...] = tuple(WINDOW_LAWS[name] for name in WINDOW_LAWS.usable())
"""Ours first."""

SCHEMES = tuple(law.record for law in LAWS)

Scheme: Any = reduce(or_, SCHEMES)
"""Every kind; in a file, `kind` tells which."""


def law_of(scheme: SchemeRecord) -> WindowLaw:
    """The law of a scheme."""
    return next(law for law in LAWS if law.record is type(scheme))


class LawRow(NamedTuple):
    """What a law is given on a kind of path."""

    parameters: Any
    """Of the law's own type."""
    path: Path
    table: np.ndarray
    """What it looks up."""
    start: float
    """First window [byte]; inf: unlimited."""
    memory: int
    """Number of values that it keeps of a flow besides its state."""


def law_row(law: WindowLaw, scheme: Any, path: Path, payload: int, full: int, longest: float) -> LawRow:
    """On a path without queues of this kind, where the longest round trip of all is `longest` [ns]."""
    if law.path is not None:
        path = law.path(scheme, path)
    return LawRow(
        law.read(scheme, Packet(float(payload), float(full), longest)),
        path,
        np.zeros(2) if law.table is None else law.table(scheme, path, full, _MAX_FLOWS),
        law.start(scheme, path),
        1 if law.memory is None else law.memory(scheme, path, full),
    )
