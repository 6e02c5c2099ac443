"""Agents' configs of three links, and the real queues that they act on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import numpy as np
from linux_support import bare_namespace

from netctrl.linux import namespace
from netctrl.linux.export.agent import AgentConfig, ControlledLink
from netctrl.linux.export.agent_law import LinkRateTable, TapTable
from netctrl.linux.kernel.messages import ROOT, classid
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.kernel.qdisc import FifoOptions, HtbClassOptions, HtbOptions, TbfOptions

RATE, BURST, LIMIT = 8e6, 5000, 60000
HANDLE = 1 << 16
NAMES = ("a", "b", "c")


def config(**changes: object) -> AgentConfig:
    """Three links that shall send at 6 Mbit/s and a tenth of what waits."""
    N = len(NAMES)
    offset = np.full(N, 6e6)
    rows = np.array([[link, N + link, 0, 0.1] for link in range(N)], dtype=float)
    law = LinkRateTable(
        links=NAMES,
        nominal=offset,
        capacity=np.full(N, 1e7),
        backlog_setpoint=0.0,
        paced=np.ones(N),
        central=False,
        information_delay=0,
        control=TapTable(offset=offset, taps=rows),
        predicted=TapTable(offset=np.zeros(N), taps=np.zeros((0, 4))),
    )
    links = tuple(link(name) for name in NAMES)
    made = AgentConfig(schema="netctrl.agent/1", name="S1", interval_s=0.01, law=law, links=links)
    return msgspec.structs.replace(made, **changes)


def link(name: str, **changes: object) -> ControlledLink:
    rates = {"least_rate": 1e5, "greatest_rate": 1e7, "fallback_rate": 6e6}
    settings = {"interface": name, "handle": "1:", "burst": BURST, "limit": LIMIT}
    return ControlledLink(id=name, **rates | settings | changes)


@contextmanager
def queues(kind: str = "tbf") -> Iterator[RouteSocket]:
    """This thread is in a namespace with three interfaces, each with a token bucket filter, or an HTB of one class."""
    with bare_namespace() as space, namespace.inside(space):
        for name in NAMES:
            veth(name)
        with RouteSocket() as route:
            for name in NAMES:
                shape(route, index_of(route, name), kind)
            yield route


def shape(route: RouteSocket, index: int, kind: str) -> None:
    if kind == "tbf":
        route.add_qdisc(index, ROOT, HANDLE, "tbf", TbfOptions.desired(RATE, BURST, LIMIT).encode(BURST))
        return
    one = classid(HANDLE, 1)
    route.add_qdisc(index, ROOT, HANDLE, "htb", HtbOptions(1).encode())
    route.add_class(index, HANDLE, one, "htb", HtbClassOptions.desired(RATE, BURST).encode())
    route.add_qdisc(index, one, 2 << 16, "bfifo", FifoOptions(LIMIT).encode())


def veth(name: str) -> None:
    program("ip", "link", "add", "name", name, "type", "veth", "peer", "name", f"{name}x")
    for each in (name, f"{name}x"):
        program("ip", "link", "set", "dev", each, "up")


def program(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=20, capture_output=True)


def index_of(route: RouteSocket, name: str) -> int:
    return {each.name: each.index for each in route.links()}[name]


def rate_of(route: RouteSocket, name: str) -> int:
    """[bit/s]"""
    found = route.qdisc(index := index_of(route, name))
    if found.kind == "tbf":
        return 8 * TbfOptions.decode(found.options).rate
    (one,) = route.classes(index)
    options = HtbClassOptions.decode(one.options)
    assert options.ceil == options.rate
    return 8 * options.rate


# --- what is refused: nothing is changed -----------------------------------------------------------------------------
