"""Schemes of a data centre's senders in files, and their laws, including those of other packages."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from netctrl.core.register import WINDOW_LAWS
from netctrl.laws.window.dcqcn import Dcqcn
from netctrl.laws.window.dctcp import Dctcp
from netctrl.laws.window.fixed import FixedWindow
from netctrl.laws.window.hpcc import Hpcc
from netctrl.laws.window.law import SchemeRecord, WindowLaw
from netctrl.laws.window.mpcc import Mpcc, mpcc_scheme
from netctrl.laws.window.timely import Timely

__all__ = [
    "LAWS",
    "SCHEMES",
    "Dcqcn",
    "Dctcp",
    "FixedWindow",
    "Hpcc",
    "Mpcc",
    "Scheme",
    "Timely",
    "law_of",
    "mpcc_scheme",
]

LAWS: tuple[WindowLaw, ...] = tuple(WINDOW_LAWS[name] for name in WINDOW_LAWS.usable())
"""Ours first."""

SCHEMES = tuple(law.record for law in LAWS)

Scheme: Any = reduce(or_, SCHEMES)
"""Every kind; in a file, `kind` tells which."""


def law_of(scheme: SchemeRecord) -> WindowLaw:
    """The law of a scheme."""
    return next(law for law in LAWS if law.record is type(scheme))
