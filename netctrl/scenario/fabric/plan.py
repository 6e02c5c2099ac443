"""What runs a data centre outside of our simulator: its ports, flows with their paths, and its law as numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
    threshold: np.ndarray
    """(P,) queues above are marked [byte]; no queue gets there where the scheme knows no marks."""


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
    parameters: np.ndarray
    """Of the law, as `netctrl.laws.window` has them (`netctrl.laws.window.mpcc`)."""
    paths: np.ndarray
    """(C, ...) as `netctrl.laws.window.interface` has them."""
    gains: np.ndarray
    """(C, N + 1) K by number of flows, where the law steps by a given window."""
    windows: np.ndarray
    """(C,) of a new flow [byte]; inf: no limit."""
    history: int
    """Windows that a delayed law remembers."""
    telemetry: bool
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
