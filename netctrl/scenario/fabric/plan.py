"""Plan of a data centre for engines: ports, flows with their paths, and the law's parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netctrl.laws.window.law import Path, WindowLaw


class PlannedPorts(NamedTuple):
    """P ports; hosts are nodes 0 to hosts − 1 and have one port each."""

    hosts: int
    nodes: int
    names: tuple[str, ...]
    source: np.ndarray
    """(P,) node."""
    target: np.ndarray
    """(P,) node."""
    rate: np.ndarray
    """(P,) rate [bit/s], a whole number."""
    delay: np.ndarray
    """(P,) delay [ns], a whole number."""
    mark_low: np.ndarray
    """(P,) queue above which packets are marked at random [byte]; never reached where the scheme uses no marks."""
    mark_high: np.ndarray
    """(P,) queue above which all packets are marked [byte]."""


class PlannedFlows(NamedTuple):
    """F flows in order of their start; all numbers are whole."""

    source: np.ndarray
    """(F,) host."""
    target: np.ndarray
    """(F,) host."""
    size: np.ndarray
    """(F,) payload [byte]."""
    start: np.ndarray
    """(F,) start [ns]"""
    flow: np.ndarray
    """(F,) index of its group in the scenario."""
    kind: np.ndarray
    """(F,) kind of path."""
    there: np.ndarray
    """(F, H) ports to the target, −1 after the last."""
    back: np.ndarray
    """(F, H) ports of its acknowledgements."""
    ideal: np.ndarray
    """(F,) completion time without other flows [ns]."""


class FabricPlan(NamedTuple):
    """Ports, flows and law of a run, with C kinds of path."""

    ports: PlannedPorts
    flows: PlannedFlows
    law: WindowLaw
    parameters: Any
    """Parameters, of the law's own type."""
    paths: tuple[Path, ...]
    """(C,) paths as given to the law."""
    tables: np.ndarray
    """(C, ...) the law's look-up tables: for MPCC K by number of flows, where the law steps by a given window."""
    lines: np.ndarray
    """(C,) line rates [bit/s]."""
    windows: np.ndarray
    """(C,) initial window [byte]; inf: unlimited."""
    memory: int
    """Number of values that the law stores besides its state."""
    max_marking: float
    """Largest marking probability between a port's two thresholds."""
    notification: int
    """Least time between two notifications of marks [ns]; 0: no notifications."""
    payload: int
    """Payload of a full packet [byte]."""
    overhead: int
    """Headers of a data packet [byte]."""
    ack: int
    """[byte]"""
    flow_timeout: int
    """Time after its last packet for which a flow counts as active [ns]."""
    retransmission_timeout: int
    """[ns]"""
    interval: int
    """Sampling interval [ns]."""
    bin: int
    """Bin of the throughput of watched flows [ns]."""
    end: int
    """[ns]"""
