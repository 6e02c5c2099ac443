"""Links of a data centre's topology and flows' paths, for engines of links and flows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.model.io.fields import Size
from netctrl.scenario.fabric.topology import Dumbbell, FatTree
from netctrl.scenario.links import Link
from netctrl.sim.fabric.topology import fabric, fabric_paths

_NS = 1e9


def topology_links(topology: Dumbbell | FatTree, host_buffer: Size | None = None) -> tuple[Link, ...]:
    """Links of a topology, one for each port, with the port's rate, delay and buffer.

    Parameters
    ----------
    topology : Dumbbell or FatTree
        Its `buffer` is the size of the switches' queues.
    host_buffer : size, optional
        Size of the hosts' queues; None: no limit, so a host's TCP flow fills its queue for its whole duration.

    Returns
    -------
    tuple of Link
        Their ids are such as "h0-s0", from host 0 to switch 0. A switch with priority flow control pauses the links
        that end at it.

    Examples
    --------
    >>> [link.id for link in topology_links(Dumbbell(senders=1))]
    ['h0-s0', 'h1-s1', 's0-h0', 's0-s1', 's1-h1', 's1-s0']
    """
    net = fabric(topology)
    ends = [name.split(">") for name in net.names]
    switches = (net.source >= net.hosts).tolist(), (net.target >= net.hosts).tolist()
    columns = zip(ends, net.rate.tolist(), (net.delay / _NS).tolist(), *switches, strict=True)
    return tuple(
        Link(
            id=f"{source}-{target}",
            source=source,
            target=target,
            capacity=rate,
            delay=delay,
            buffer=topology.buffer if of_switch else host_buffer,
            pfc=topology.pfc if to_switch else None,
        )
        for (source, target), rate, delay, of_switch, to_switch in columns
    )


def topology_paths(
    topology: Dumbbell | FatTree, ends: Sequence[tuple[int, int]], seed: int = 1
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Ids of the links of each flow's forward and return path.

    Paths are shortest; a hash of the flow's number, the switch and the seed selects one, as in `netctrl.simulate`.

    Parameters
    ----------
    topology : Dumbbell or FatTree
    ends : sequence of (source, target)
        Numbers of the hosts of each flow.
    seed : int
        Seed of the scenario.

    Returns
    -------
    list of (path, ack_path)

    Raises
    ------
    InvalidValue
        An unknown host, or a flow to its own source.

    Examples
    --------
    >>> topology_paths(Dumbbell(senders=1), [(0, 1)])
    [(('h0-s0', 's0-s1', 's1-h1'), ('h1-s1', 's1-s0', 's0-h0'))]
    """
    hosts = np.array(ends, dtype=np.int64).reshape(-1, 2)
    for source, target in hosts.tolist():
        if not (0 <= source < topology.hosts and 0 <= target < topology.hosts and source != target):
            raise InvalidValue("ends", (source, target), f"two different hosts from 0 to {topology.hosts - 1}")
    net = fabric(topology)
    ports = fabric_paths(net, hosts[:, 0], hosts[:, 1], seed)
    names = [name.replace(">", "-") for name in net.names]

    def ids(way: np.ndarray) -> tuple[str, ...]:
        return tuple(names[port] for port in way.tolist() if port >= 0)

    return [(ids(there), ids(back)) for there, back in ports]
