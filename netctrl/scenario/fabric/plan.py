"""Plan of a data centre for engines: ports, transfers with their paths, and the law of all senders."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.laws.window.law import Marking, WindowLaw
from netctrl.laws.window.records import LawRow
from netctrl.scenario.fabric.ports import Fabric


class Transfers(NamedTuple):
    """F transfers in order of their start; whole numbers."""

    source: np.ndarray
    """(F,) host."""
    target: np.ndarray
    """(F,) host."""
    size: np.ndarray
    """(F,) payload [byte]."""
    start: np.ndarray
    """(F,) start [ns]."""
    flow: np.ndarray
    """(F,) index of its group in the scenario."""


class Senders(NamedTuple):
    """What all hosts do, with C kinds of path."""

    law: WindowLaw
    laws: tuple[LawRow, ...]
    """What it is given on each kind; the parameters are the same on all."""
    lines: np.ndarray
    """(C,) line rates [bit/s]."""
    payload: int
    """Payload of a full packet [byte]."""
    overhead: int
    """Headers of a data packet [byte]."""
    ack: int
    """[byte]"""
    notification: int
    """Least time between two notifications of marks [ns]; 0: no notifications."""
    timeout: int
    """Without progress, after which all unacknowledged data is sent again [ns]."""
    flow_timeout: int
    """Time after its last packet for which a port counts a flow as active [ns]."""
    marking: Marking | None


class FabricPlan(NamedTuple):
    """Ports, transfers and law of a run: P ports, of which hosts, nodes 0 to hosts − 1, have the first."""

    ports: Fabric
    marks: tuple[np.ndarray, np.ndarray]
    """(P,) queue above which packets are marked at random, and above which all are [byte]; never reached where the law
    uses no marks."""
    flows: Transfers
    kind: np.ndarray
    """(F,) kinds of path."""
    routes: np.ndarray
    """(F, 2, H) ports there and back, −1 after the last."""
    ideal: np.ndarray
    """(F,) completion time without other flows [ns]."""
    senders: Senders
    interval: int
    """Sampling interval [ns]."""
    bin: int
    """Bin of the throughput of watched flows [ns]."""
    end: int
    """[ns]"""
