"""A pacing law as a congestion control of Linux in C: BPF's struct_ops, or a file of the kernel's own tree.

Neither has floating point: the law computes with doubles in integers (`netctrl.laws.integers`), so that its steps give
the bits of `netctrl.pace` and of the packet engine, and what is certified for these holds as it is.
"""

from __future__ import annotations

import re
from importlib.resources import files

from netctrl.core.errors import InvalidValue
from netctrl.core.units import MICROSECOND
from netctrl.laws.integers import bits, law_in_integers
from netctrl.laws.pacing.own_rate import own_rate_law_step
from netctrl.laws.pacing.own_rate_state import OwnRateParameters, OwnRateState, own_rate_settings, own_rate_start
from netctrl.model.law import OwnRatePacer, PacingLaw

NAME = "netctrl"
"""Of the congestion control, unless another is asked for."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,11}")  # cc_ before it, within the 15 characters of a map's name
_MARKER = "/* Written by netctrl: pacing to a queue of the own rate, from a Design. */\n"


def law_text(law: PacingLaw) -> str:
    """Doubles in integers, the law, and the units of what the kernel counts: C that takes types and F64 (float64.h).

    Raises
    ------
    InvalidValue
        No own-rate law: the others take logarithms, powers or dot products of the machine's library.
    """
    if not isinstance(law, OwnRatePacer):
        takes = "an own-rate law, as `netctrl design pacing --mode own-rate` makes; `linux pace` runs others"
        raise InvalidValue("law", type(law).__struct_config__.tag, takes)
    if law.l4s:
        raise InvalidValue("l4s", True, "false: Linux's receivers echo a mark until the window is cut, not each one")
    settings, start = own_rate_settings(law), own_rate_start(law)
    text = law_in_integers(own_rate_law_step, OwnRateParameters, settings, OwnRateState, start)
    size = float(law.packet_size_bytes)
    exact = f"f64_from((packets) * {size:.0f})" if size.is_integer() else "f64_mul(f64_from(packets), LAW_PACKET)"
    units = f"#define LAW_MICROSECOND {bits(MICROSECOND)}\n#define LAW_BYTES(packets) {exact}\n"
    return "\n".join((_file("float64.h"), text, units))


def congestion_text(law: PacingLaw, name: str = NAME, *, in_tree: bool = False) -> str:
    """The congestion control's whole text, one file.

    Parameters
    ----------
    law : PacingLaw
        An own-rate law.
    name : str
        Of the congestion control.
    in_tree : bool
        For a kernel's net/ipv4, or as a module; else for BPF.

    Raises
    ------
    InvalidValue
        Another law, or a name that can't be one.
    """
    if not _NAME.fullmatch(name):
        takes = "a name of 1 to 12 lower-case letters, digits and _, that begins with a letter"
        raise InvalidValue("name", name, takes)
    before, after = ("module.h", "module.c") if in_tree else ("bpf.h", "bpf.c")
    parts = (_MARKER + _file(before), law_text(law), _file("flow.h"), _file(after))
    return "\n".join(parts).replace("@NAME@", name)


def _file(name: str) -> str:
    return (files("netctrl.linux.congestion") / name).read_text(encoding="utf-8")
