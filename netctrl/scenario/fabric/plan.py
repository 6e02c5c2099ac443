"""What runs a data centre outside of our simulator: its ports, flows with their paths, and its law as numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.laws.window.law import Path, WindowLaw

__all__ = ["FabricPlan", "PlannedFlows", "PlannedPorts"]


class PlannedPorts(NamedTuple):
    """P ports; hosts are nodes 0 to hosts − 1, and have one port each."""

    hosts: int
    nodes: int
    names: tuple[str, ...]
    source: np.ndarray
    """(P,) node."""
    target: np.ndarray
    """(P,) node."""
    rate: np.ndarray
    """(P,) [bit/s], whole."""
    delay: np.ndarray
    """(P,) [ns], whole."""
    mark_low: np.ndarray
    """(P,) packets that find more are marked by chance [byte]; no queue gets there where the scheme knows no marks."""
    mark_high: np.ndarray
    """(P,) those that find more are all marked [byte]."""


class PlannedFlows(NamedTuple):
    """F flows in order of their start; whole numbers."""

    source: np.ndarray
    """(F,) host."""
    target: np.ndarray
    """(F,) host."""
    size: np.ndarray
    """(F,) payload [byte]."""
    start: np.ndarray
    """(F,) [ns]"""
    incast: np.ndarray
    """(F,) whether it is part of an incast."""
    kind: np.ndarray
    """(F,) of path."""
    there: np.ndarray
    """(F, H) ports to the target, −1 after the last."""
    back: np.ndarray
    """(F, H) ports of its acknowledgements."""
    ideal: np.ndarray
    """(F,) what it takes alone [ns]."""


class FabricPlan(NamedTuple):
    """C kinds of path."""

    ports: PlannedPorts
    flows: PlannedFlows
    law: WindowLaw
    parameters: Any
    """Of the law's own type."""
    paths: tuple[Path, ...]
    """(C,) as the law takes them."""
    tables: np.ndarray
    """(C, ...) what the law looks up: of MPCC K by number of flows, where it steps by a given window."""
    lines: np.ndarray
    """(C,) line rates [bit/s]."""
    windows: np.ndarray
    """(C,) of a new flow [byte]; inf: no limit."""
    memory: int
    """Numbers that the law keeps besides its state."""
    max_marking: float
    """Greatest probability between a port's two thresholds."""
    notification: int
    """Least time between two notifications of marks [ns]; 0: there are none."""
    payload: int
    """Of a full packet [byte]."""
    overhead: int
    """Of a data packet [byte]."""
    ack: int
    """[byte]"""
    flow_timeout: int
    """A flow counts so long after its last packet [ns]."""
    retransmission_timeout: int
    """[ns]"""
    interval: int
    """Of samples [ns]."""
    bin: int
    """Of the throughput of watched flows [ns]."""
    end: int
    """[ns]"""
