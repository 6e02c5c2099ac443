"""One change of a TBF's rate in the kernel: a message of netlink, and a process of tc.

In a network namespace of its own, so as root; elsewhere the table has no such rows.
"""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

from rows import Row, against, alternate

from netctrl.linux.kernel.messages import ROOT, add_veth
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.kernel.qdisc import TbfOptions
from netctrl.linux.namespace import inside, make_namespace

HANDLE = 0x7C010000
BURST, LIMIT = 20_000, 100_000
WHAT = "one rate change of a tbf"


def rows() -> Iterator[Row]:
    if os.geteuid() != 0:
        sys.stderr.write("linux: left out, it takes root for a network namespace\n")
        return
    namespace = make_namespace()
    try:
        with inside(namespace):
            yield from changes()
    finally:
        os.close(namespace)


def changes() -> Iterator[Row]:
    index = 10
    with RouteSocket() as route:
        route.request("make a veth", add_veth(index, "v0", index + 1, "v1", None, bytes((2, 0, 0, 0, 0, 1))))
        route.add_qdisc(index, ROOT, HANDLE, "tbf", TbfOptions.desired(1e6, BURST, LIMIT).encode(BURST))
        rates = itertools.cycle(range(1_000_000, 9_000_000, 8_000))

        def ours() -> None:
            route.change_tbf(index, ROOT, HANDLE, next(rates), BURST, LIMIT)

        by_tc = tc_process(rates)
        turns = alternate(ours, by_tc, rounds=40)
        check(route, index, ours, by_tc)
        yield against(WHAT, "a tc process", turns, "<= 0.1 ms", "a change has no answer")


def tc_process(rates: Iterator[int]) -> Callable[[], None]:
    start = f"tc qdisc change dev v0 root handle {HANDLE >> 16:x}: tbf burst {BURST} limit {LIMIT} rate".split()
    return lambda: subprocess.run([*start, f"{next(rates)}bit"], check=True, timeout=10.0) and None


def check(route: RouteSocket, index: int, *calls: Callable[[], None]) -> None:
    """That each way does change the rate."""
    for call in calls:
        before = TbfOptions.decode(route.qdisc(index).options).rate
        call()
        after = TbfOptions.decode(route.qdisc(index).options).rate
        if after - before != 1000:
            raise RuntimeError(f"{call}: the rate went from {before} to {after} byte/s, not 1000 higher")
