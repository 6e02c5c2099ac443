"""What links of data centres do besides, as the packet engine's table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from netctrl.laws.window.law import Telemetry
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.sim.packet.hosts import PORT
from netctrl.sim.packet.state import LINK


def port_table(link: np.ndarray, pfc: Sequence[Pfc | None] = (), paths: Iterable[Sequence[int]] = ()) -> np.ndarray:
    """Rows of `PORT`; links that pause, and those behind them, which count, are served by events.

    Parameters
    ----------
    link : ndarray
        Rows of links, which are changed.
    pfc : sequence of Pfc or None
        Of each row; none: there is no priority flow control.
    paths : iterable of sequences of int
        Rows of links one after the other, as packets cross them.
    """
    port = np.zeros((len(link), len(PORT)), dtype=np.int64)
    for name in ("seen_head", "seen_tail", "flow", "ready_head", "ready_tail", "watched"):
        port[:, PORT[name]] = -1
    for row, served, each in zip(port, link, pfc, strict=False):
        if each is not None:
            row[PORT["pause"]], row[PORT["resume"]] = round(each.pause), round(each.resume)
            served[LINK["served"]] = 1
    for path in paths if any(pfc) else ():
        for before, after in pairwise(path):
            if pfc[before] is not None:
                port[after, PORT["counts"]] = link[after, LINK["served"]] = 1
    return port


def write_telemetry(port: np.ndarray, link: np.ndarray, path: Sequence[int], what: Telemetry, timeout: int) -> None:
    """What links of a path write into packets; flows are counted until they have been away for `timeout` [ns].

    They are served by events: a packet that comes at the very time at which another begins still finds it there.
    """
    port[path, PORT["telemetry"]] = np.maximum(port[path, PORT["telemetry"]], int(what))
    port[path, PORT["timeout"]] = np.maximum(port[path, PORT["timeout"]], timeout)
    link[path, LINK["served"]] = 1
