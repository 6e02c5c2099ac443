"""MPCC's window law as C."""

from __future__ import annotations

import numpy as np

from netctrl.core.errors import InvalidValue, checked_flag, checked_kind
from netctrl.model.law import MpccLaw
from netctrl.mpc.c.text import VECTORS, checked_name, files, number, tables, template, vectors
from netctrl.mpc.explicit import WindowTable

_MOST = 2**31  # bytes of P_BD, so that sums of products fit in 63 bits
_AGREEMENT = 1e-12  # of P_BD


def window_in_c(law: MpccLaw, name: str = "mpcc_window", *, fixed: bool = False) -> dict[str, str]:
    """MPCC's law as C99: W(Q, N) from a table of gains by number of flows, in double precision or in integers.

    A law with `delayed` gets a second function, which keeps the windows under way in a record of its caller's.

    Parameters
    ----------
    law : MpccLaw
        The law of a Design of `netctrl.mpcc`.
    name : str
        Name of the function and of its files.
    fixed : bool
        Integers only: whole bytes, the window within 3 bytes of the law for queues below 4 GiB.

    Returns
    -------
    dict
        Name of a file -> its text.

    Raises
    ------
    InvalidValue
        A name that C can't use; with `fixed` a law that needs its windows under way, or a P_BD of 2 GiB or more.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.mpc.c.window import window_in_c
    >>> design = netctrl.mpcc(flows=4, rate_bit_per_s=10e9, rtt_s=10e-6)
    >>> sorted(window_in_c(design.law))
    ['Makefile', 'check.c', 'mpcc_window.c', 'mpcc_window.h', 'vectors.txt']
    """
    checked_kind("law", law, MpccLaw)
    name, fixed = checked_name(name), checked_flag("fixed", fixed)
    if law.table is None:
        flows, gain, fair, B = (np.array([each]) for each in (law.flows, law.gain, law.fair_window, law.B))
    else:
        flows, gain, fair, B = (
            np.asarray(each) for each in (law.table.flows, law.table.gain, law.table.fair_window, law.table.B)
        )
    first, last, bdp = int(flows[0]), int(flows[-1]), float(law.bdp_bytes)
    parts = {"name": name, "guard": name.upper(), "first": first, "flows": last, "parameters": 2, "inputs": 1}
    parts["only"] = f"; fewer than {first} count as {first}, more as {last}"
    if fixed:
        source, prototype, call = _fixed(law, parts, gain, fair, B)
    else:
        made = tables(("gain", gain), ("fair", fair), ("input_gain", B))
        source = template("window.c", tables=made, bdp=number(bdp), **parts)
        said = "/* Window [byte] for a queue [byte] at the bottleneck of N = flows. */"
        prototype = f"{said}\ndouble {name}(double queue, int32_t flows);"
        call = f"    u[0] = {name}(theta[0], (int32_t)theta[1]);"
        if law.delayed:
            prototype += (
                f"\n\n#define {name.upper()}_DELAY {law.delay_steps}\n\n/* Windows under way; all 0 at first. */\n"
                f"struct {name}_state {{\n    double memory[{name.upper()}_DELAY];\n    uint32_t place, count;\n}};\n\n"
                "/* The same for the queue that the windows under way lead to; a call for each acknowledgement. */\n"
                f"double {name}_delayed(struct {name}_state *state, double queue, int32_t flows);"
            )
    header = template("window.h", prototype=prototype, bdp=number(bdp), **parts)
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(0.0, 1.2 * last * bdp, VECTORS), rng.integers(first, last + 1, VECTORS)])
    points[: VECTORS // 2, 0] *= rng.uniform(0.0, 1.0, VECTORS // 2) ** 4
    points[:, 0] = np.floor(points[:, 0])
    windows = _law(law, flows, gain, fair, B).windows(*points.T)
    allowed = 3.0 if fixed else _AGREEMENT * bdp
    body = f"static int call(const double *theta, double *u)\n{{\n{call}\n    return 0;\n}}\n"
    check = template("check.c", allowed=number(allowed), call=body, **parts)
    return files(name, {"h": header, "c": source}, check, vectors(points, np.zeros(VECTORS), windows[:, None]))


def _law(law: MpccLaw, flows: np.ndarray, gain: np.ndarray, fair: np.ndarray, B: np.ndarray) -> WindowTable:
    """The law as a table from 0 flows on, of which only those of `flows` are used."""
    full = [np.concatenate([np.full(int(flows[0]), each[0]), each]) for each in (gain, fair, B)]
    return WindowTable(law.bdp_bytes, *full, law.horizon, law.queue_weight, law.window_weight)


def _fixed(law: MpccLaw, parts: dict, gain: np.ndarray, fair: np.ndarray, B: np.ndarray) -> tuple[str, str, str]:
    """Source, prototype and call of the law in integers."""
    if law.delayed:
        raise InvalidValue("fixed", True, "a law without delayed: the prediction is for double precision")
    if not law.bdp_bytes < _MOST:
        raise InvalidValue("fixed", True, f"a P_BD below {_MOST} bytes: use double precision")
    # Products with a queue below 2^32 stay below 2^62.
    bits = int(np.clip(30 - np.ceil(np.log2(gain.max())), 0, 30))
    if gain.max() * 2.0**bits >= 2.0**30 + 1:
        raise InvalidValue("fixed", True, "a gain K below 2^30: use double precision")
    empty = np.ceil(fair * B)
    inverse_bits = int(np.clip(np.floor(61 - np.log2((1.0 / B * np.maximum(empty, 1.0)).max())), 0, 40))
    entries = [("gain", np.round(gain * 2.0**bits), "l"), ("fair", np.round(fair * 2.0**bits), "l")]
    entries += [("inverse", np.round(2.0**inverse_bits / B), "l"), ("empty", empty, "l")]
    made = {"gain_bits": bits, "inverse_bits": inverse_bits, "bdp": number(np.floor(law.bdp_bytes), "l")}
    source = template("window_fixed.c", tables=tables(*entries), **made, **parts)
    prototype = (
        "/* Window in whole bytes for a queue in bytes at the bottleneck of N = flows, within 3 bytes of the law. */\n"
        f"uint32_t {parts['name']}(uint32_t queue, int32_t flows);"
    )
    call = f"    u[0] = {parts['name']}((uint32_t)theta[0], (int32_t)theta[1]);"
    return source, prototype, call
