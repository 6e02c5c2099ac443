"""The testbed: what a network becomes, built in the kernel, and gone however its owner ends."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from linux import testbed
from linux.delay_line import Line, pump
from linux.testbed import Job, Testbed
from linux.traffic import FRAME, Received, UdpSource, open_tcp_sink, open_udp_sink, receive_udp, send_udp
from linux_support import chain, eventually, kernel, line
from places import EXPERIMENTS

from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.kernel.scenarios.traffic import constant_times, poisson_times
from netctrl.linux import namespace
from netctrl.model.network import Link, Network


def echo(here: socket.socket, count: int) -> int:
    for _ in range(count):
        here.sendto(*here.recvfrom(100))
    return count


@contextmanager
def echoing(bed: Testbed, node: str, count: int) -> Iterator[Job]:
    """Something that answers at a node; the port is held before anybody asks."""
    with bed.inside(node), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind(("0.0.0.0", 7))
        here.settimeout(20.0)
        job = bed.start(node, echo, here, count)
    yield job


def ask(address: str, count: int) -> list[float]:
    """Round trips [s]."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.settimeout(20.0)
        for number in range(count):
            began = time.monotonic()
            here.sendto(b"%d" % number, (address, 7))
            here.recv(100)
            found.append(time.monotonic() - began)
    return found


def test_a_link_and_the_first_that_goes_back_share_a_veth() -> None:
    links = [("a", "b", "x"), ("a", "b", "y"), ("b", "a", "z"), ("b", "c", "w")]
    wires = Testbed(Network(links=[Link(source=s, target=t, id=i, capacity=1e6) for s, t, i in links])).wires
    x, z = wires["x"], wires["z"]
    assert (x.interface, x.peer, x.address, x.next_hop) == ("x", "z", "10.128.0.0", "10.128.0.1")
    assert (z.interface, z.peer, z.address, z.next_hop) == ("z", "x", "10.128.0.1", "10.128.0.0")
    assert (wires["y"].peer, wires["w"].peer) == ("y.b", "w.b")
    assert len({wire.address for wire in wires.values()}) == len({wire.index for wire in wires.values()}) == 4


def test_interfaces_are_named_after_links_where_the_kernel_takes_it() -> None:
    ids = ["s1->s2", "s1 s2", "s1/s2", "a link with a long id", "lo", "up"]
    links = [Link(source="a", target=f"n{k}", id=name, capacity=1e6) for k, name in enumerate(ids)]
    names = [wire.interface for wire in Testbed(Network(links=links)).wires.values()]
    assert names == ["link.0", "link.1", "link.2", "link.3", "link.4", "up"]


def test_routes_are_shortest_by_delay_then_by_links() -> None:
    edges = [("a", "b", 0.03), ("a", "c", 0.01), ("c", "b", 0.01), ("b", "d", 0.0), ("a", "e", 0.0), ("e", "c", 0.01)]
    network = Network(links=[Link(source=s, target=t, capacity=1e6, delay=d) for s, t, d in edges])
    routes = {(node, target): link for node, target, link in testbed._routes(network)}
    assert {routes["a", target] for target in ("b", "c", "d")} == {"a->c"}
    assert ("b", "a") not in routes


def test_burst_and_limit() -> None:
    wires = Testbed(line(capacity=80e6), burst_bytes={"b->a": 2000}).wires
    assert (wires["a->b"].burst_bytes, wires["a->b"].limit_bytes) == (2 * FRAME + 5000, testbed.UNLIMITED)
    assert wires["b->a"].burst_bytes == 2000


@kernel
def test_a_network_in_the_kernel_has_its_queues_and_reaches_all_nodes() -> None:
    with Testbed(chain("a", "b", "c", capacity=20e6, buffer=50e3)) as bed:
        with echoing(bed, "c", 3) as answering:
            assert len(bed.run("a", ask, bed.address("c"), 3)) == 3
            assert answering.result(20.0) == 3
        with bed.route_socket("b") as at_b:
            rows = {row.index: row for row in at_b.qdiscs() if row.kind == "tbf"}
        row = rows[bed.index("b->c")]
        assert row.handle == 0x10000
        assert row.counters.packets == 3
        assert {bed.index("b->a"), bed.index("b->c")} == rows.keys()
        assert bed.interface("b->c") == "b-c"


@kernel
def test_a_delay_line_delays_one_way_and_loses_nothing() -> None:
    with Testbed(line(delay=0.05)) as bed:
        with echoing(bed, "b", 20) as answering:
            took = bed.run("a", ask, bed.address("b"), 20)
            assert answering.result(20.0) == 20
        assert min(took) >= 0.05


@kernel
def test_a_path_leads_over_its_links() -> None:
    links = [("a", "b", 0.0), ("a", "c", 0.0), ("c", "b", 0.0), ("b", "a", 0.0)]
    with Testbed(Network(links=[Link(source=s, target=t, capacity=1e8, delay=d) for s, t, d in links])) as bed:
        address = bed.path(["a->c", "c->b"])
        with echoing(bed, "b", 5) as answering:
            bed.run("a", ask, address, 5)
            assert answering.result(20.0) == 5
        with bed.route_socket("c") as at_c:
            (row,) = [row for row in at_c.qdiscs() if row.index == bed.index("c->b") and row.kind == "tbf"]
        assert row.counters.packets == 5
        with pytest.raises(InvalidValue, match="a chain"):
            bed.path(["a->c", "a->b"])


@kernel
def test_neighbours_over_a_link_without_a_way_back_talk_by_the_addresses_of_its_ends() -> None:
    network = Network(links=[Link(source="a", target="b", capacity=1e8)])
    with Testbed(network) as bed, echoing(bed, "b", 3) as answering:
        bed.run("a", ask, bed.wires["a->b"].next_hop, 3)
        assert answering.result(20.0) == 3


@kernel
def test_packets_pass_one_by_one_where_asked_for() -> None:
    with Testbed(line(), segment=True) as bed:
        assert "gso_max_segs 1 " in bed.run("a", ["ip", "-d", "link", "show", bed.interface("a->b")]).stdout


@kernel
def test_functions_and_programs_run_at_a_node_and_their_errors_come_back() -> None:
    with Testbed(line()) as bed:
        here = str(Path("/proc/self/ns/net").readlink())
        found = bed.run("a", os.readlink, "/proc/self/ns/net")
        assert found != here
        shown = bed.run("a", ["readlink", "/proc/self/ns/net"])
        assert (shown.returncode, shown.stdout.strip()) == (0, found)
        with pytest.raises(ZeroDivisionError):
            bed.run("a", divmod, 1, 0)
        with pytest.raises(NetctrlError, match="no-such-program can't be started"):
            bed.run("a", ["no-such-program"])
        with pytest.raises(TimeoutError, match="sleep wasn't done"):
            bed.run("a", ["sleep", "30"], timeout_s=0.1)
        with pytest.raises(TimeoutError):
            bed.run("a", time.sleep, 30.0, timeout_s=0.1)
        job = bed.start("b", time.sleep, 30.0)
        job.stop()
        with pytest.raises(NetctrlError, match="without a result"):
            job.result()
        assert str(Path("/proc/self/ns/net").readlink()) == here


OWNER = """
import os, sys, time
from linux.testbed import Testbed
from netctrl.model.network import Link, Network
links = [Link(source="a", target="b", capacity=1e6), Link(source="b", target="a", capacity=1e6, delay=0.01)]
with Testbed(Network(links=links)) as bed:
    job, program = bed.start("a", time.sleep, 60.0), bed.start("b", ["sleep", "60"])
    print(job.pid, program.pid, flush=True)
    sys.stdin.read()
"""


@kernel
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_nothing_is_left_behind_however_the_owner_ends(end) -> None:
    argv, path = [sys.executable, "-c", OWNER], os.pathsep.join([str(EXPERIMENTS), *sys.path])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": path}, **pipes) as owner:
        assert owner.stdout is not None and owner.stdin is not None
        children = [int(pid) for pid in owner.stdout.readline().split()]
        assert len(children) == 2
        if end is None:
            owner.stdin.close()
        else:
            owner.send_signal(end)
        owner.wait(60.0)
        for pid in children:
            eventually(lambda pid=pid: namespace.start_time(pid) is None)


@kernel
def test_a_testbed_that_cannot_be_built_leaves_nothing(monkeypatch) -> None:
    def held() -> set[str]:
        return {place.name for place in Path("/proc/self/fd").iterdir()}

    before = held()
    monkeypatch.setattr("linux.testbed.open_tun", lambda name: (_ for _ in ()).throw(NetctrlError("no TUN")))
    with pytest.raises(NetctrlError, match="no TUN"), Testbed(line(delay=0.01)):
        pass
    assert held() <= before


def pumped(packets: list[bytes], delay_s: float, bunch_s: float) -> list[tuple[float, bytes]]:
    """What comes back from a line, and after how long; a pair of sockets stands for the TUN device."""
    device, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    job = Job(pump, [Line(device.fileno(), delay_s, bunch_s)])
    with device, far:
        device.setblocking(False)
        far.settimeout(20.0)
        found = []
        try:
            begin = time.monotonic()
            for packet in packets:
                far.send(packet)
            for _ in packets:
                content = far.recv(100)
                found.append((time.monotonic() - begin, content))
        finally:
            job.stop()
    return found


@pytest.mark.parametrize("bunch", [0.0, 0.02])
def test_a_line_keeps_the_order_and_loses_nothing(bunch) -> None:
    packets = [b"%d" % k for k in range(200)]
    found = pumped(packets, 0.03, bunch)
    assert [content for _, content in found] == packets
    assert found[0][0] >= 0.03


def test_without_privilege_it_says_what_is_missing(monkeypatch) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(errno.EPERM)
        return -1

    monkeypatch.setattr(namespace, "_libc", SimpleNamespace(unshare=refuse))
    with pytest.raises(NetctrlError, match="CAP_SYS_ADMIN is missing: run as root"), Testbed(line()):
        pass


def test_what_a_sink_makes_of_its_packets() -> None:
    sent = np.arange(10) * 0.1
    kept = np.array([0, 1, 3, 4, 4, 6])
    delays = np.array([0.01, 0.02, 0.01, 0.01, 0.03, 0.01])
    found = Received(kept, sent[kept], sent[kept] + delays, np.full(6, 1250))
    np.testing.assert_allclose(found.delay_s, delays)
    assert found.lost(10) == 5


def send_and_watch(bed: Testbed, sources: list[UdpSource], seconds: float):
    with bed.inside("b"):
        held = open_udp_sink(9)
    with held:
        begin = time.monotonic() + 0.1
        listening = bed.start("b", receive_udp, [held], begin + seconds + 0.5)
        sent = bed.run("a", send_udp, sources, begin)
        found = listening.result(20.0)
    with bed.route_socket("a") as at_a:
        (row,) = [row for row in at_a.qdiscs() if row.kind == "tbf"]
    return sent, found, row.counters


@kernel
def test_udp_streams_arrive_whole_and_later_than_they_left() -> None:
    with Testbed(line(delay=0.0)) as bed:
        sources = [
            UdpSource(bed.address("b"), 9, constant_times(2e6, 1250, 0.5), 1250, stream=5),
            UdpSource(bed.address("b"), 9, poisson_times(1e6, 200, 0.5, np.random.default_rng(4)), 200, stream=7),
        ]
        sent, found, counters = send_and_watch(bed, sources, 0.5)
    assert found.keys() == {5, 7}
    for source, fate in zip(sources, sent, strict=True):
        got = found[source.stream]
        assert (fate.offered, fate.dropped) == (len(source.times_s), 0)
        np.testing.assert_array_equal(got.numbers, np.arange(fate.offered))
        assert got.lost(fate.offered) == 0
        assert np.all(got.delay_s > 0.0)
        assert np.all(got.frame_bytes == source.frame_bytes)
    # frames are counted as tbf counts them
    assert counters.bytes == sum(each.frame_bytes * fate.offered for each, fate in zip(sources, sent, strict=True))


@kernel
def test_what_a_full_buffer_drops_is_lost_and_the_rest_waits() -> None:
    capacity, buffer = 4e6, 15140
    with Testbed(line(capacity=capacity, buffer=buffer), burst_bytes={"a->b": 1514}) as bed:
        (sent,), found, counters = send_and_watch(
            bed, [UdpSource(bed.address("b"), 9, constant_times(8e6, 1514, 1.0))], 1.0
        )
    got = found[0]
    assert got.lost(sent.offered) == sent.dropped + counters.drops
    assert counters.drops > 0
    rate = 8 * got.frame_bytes.sum() / (got.received_s[-1] - got.received_s[0])
    assert rate < 1.05 * capacity  # no faster than the link, whatever the machine does
    assert got.delay_s.max() > 0.5 * 8 * buffer / capacity


@kernel
def test_ports_are_held_and_what_is_not_ours_is_left_out() -> None:
    with Testbed(chain("a", "b")) as bed:
        with bed.inside("b"):
            held = open_udp_sink(9)
            with pytest.raises(NetctrlError, match=r"can't listen on port 9 of 0\.0\.0\.0"):
                open_udp_sink(9)
        with held, bed.inside("a"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"hello", (bed.address("b"), 9))
            assert receive_udp([held], time.monotonic() + 0.1) == {}
        with bed.inside("b"):
            listener = open_tcp_sink(9)
            with listener, pytest.raises(NetctrlError, match="can't listen"):
                open_tcp_sink(9)
