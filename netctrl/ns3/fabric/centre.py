"""What hosts and ports of a data centre have in common: a record of scenario.txt, which the program reads by name."""

from __future__ import annotations

from typing import NamedTuple


class Centre(NamedTuple):
    """Times in ns, sizes on the wire in bytes; hosts are the first nodes."""

    hosts: int
    """the first nodes"""
    nodes: int
    """all of them"""
    payload: int
    """of a full packet [byte]"""
    overhead: int
    """of a data packet [byte]"""
    ack: int
    """[byte]"""
    telemetry: bool
    """whether switch ports write it"""
    counts_flows: bool
    """with how many flows pass them"""
    marks: bool
    """whether switch ports mark data that finds a long queue"""
    most_marking: float
    """probability between a port's two thresholds"""
    notification: int
    """least time between two notifications of marks [ns]; 0: none"""
    flow_timeout: int
    """a port counts a flow so long after its last packet [ns]"""
    retransmission: int
    """without progress so long, all is sent again [ns]"""
    buffer: int
    """of a switch port [byte]; 0: no limit"""
    tcp: bool
    """whether flows go over ns-3's TCP"""
    slow_start: bool
    """of it"""
    bin: int
    """of watched flows' throughput [ns]"""
    bins: int
    """of these in a run"""
    watched_flows: int
    """whose acknowledgements and throughput are kept"""
    watched_ports: int
    """whose queues are kept"""
    most_acknowledgements: int
    """that are kept"""
    histogram_bins: int
    """of queues"""
    histogram_bytes: int
    """of a bin"""
