"""What tests in the kernel share: networks as records, namespaces that go again, programs bounded in time.

A test that uses it carries `@kernel`: it is skipped, with the reason, where no namespaces can be made.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from linux.testbed import Job, Testbed
from linux.traffic import absorb_tcp, open_tcp_sink

from netctrl.linux import namespace
from netctrl.model.network import Link, Network

kernel = pytest.mark.needs("kernel")
PATIENCE_S = 60.0


def line(*, capacity: float = 100e6, buffer: float | None = None, delay: float = 0.0) -> Network:
    """a and b, one link each way; the delay is on the way back."""
    return Network(
        links=(
            Link(source="a", target="b", capacity=capacity, buffer=buffer),
            Link(source="b", target="a", capacity=1e9, delay=delay),
        )
    )


def chain(*nodes: str, capacity: float = 20e6, buffer: float | None = 100e3) -> Network:
    """Nodes in a row, a link each way between neighbours."""
    pairs = [(one, other) for one, other in pairwise(nodes)]
    return Network(
        links=tuple(
            Link(source=source, target=target, capacity=capacity, buffer=buffer)
            for one, other in pairs
            for source, target in ((one, other), (other, one))
        )
    )


@contextmanager
def bare_namespace() -> Iterator[int]:
    """One empty namespace, as a descriptor; it has `lo` only, which is down."""
    descriptor = namespace.make_namespace()
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def absorbing(bed: Testbed, port: int = 5001, connections: int = 1) -> Iterator[Job]:
    """A sink of TCP at node b, which listens before anybody sends; its job ends with the connections."""
    with bed.inside("b"):
        listener = open_tcp_sink(port)
    with listener:
        yield bed.start("b", absorb_tcp, listener, time.monotonic() + PATIENCE_S, connections)


def eventually(holds: Callable[[], object], patience_s: float = PATIENCE_S) -> object:
    """What `holds` returns once it is true; a failure after a long while. For what the kernel does in its own time."""
    end = time.monotonic() + patience_s
    while not (found := holds()):
        if time.monotonic() > end:
            pytest.fail(f"{holds} isn't true after {patience_s:g} s")
        time.sleep(0.01)
    return found
