"""eBPF by hand: bytes of instructions, and in the kernel what is marked, what is dropped, and a loop that is closed."""

import json
import pickle
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from math import sqrt
from pathlib import Path

import pytest
from linux.testbed import Testbed
from linux_support import absorbing, bare_namespace, eventually, kernel

from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.design.arc.design import arc
from netctrl.linux.export.shaper import MarkingConfig
from netctrl.linux.kernel import bpf
from netctrl.linux.kernel.bpf import (
    ArrayMap,
    BpfError,
    Helper,
    Program,
    R,
    add_atomic,
    add_to,
    assemble,
    call,
    jump,
    label,
    leave,
    load,
    load_map,
    move,
    store,
)
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.marking import Marker, mark
from netctrl.linux.namespace import inside
from netctrl.linux.pacing.tcp import send_tcp
from netctrl.model.network import Link, Network


class FakeMap:
    """A map that no kernel has seen."""

    fd = 7


# Bytes


@pytest.mark.parametrize(
    ("instruction", "hexadecimal"),
    [
        # The opcodes of the kernel's instruction-set.rst, little-endian: code, src<<4|dst, offset, immediate.
        (move(R.R0, -1), "b7 00 00 00 ff ff ff ff"),
        (move(R.R6, R.R1), "bf 16 00 00 00 00 00 00"),
        (add_to(R.R2, -4), "07 02 00 00 fc ff ff ff"),
        (add_to(R.R1, R.R9), "0f 91 00 00 00 00 00 00"),
        (load(R.R9, R.R6, 164, 4), "61 69 a4 00 00 00 00 00"),
        (load(R.R1, R.R7, 8, 8), "79 71 08 00 00 00 00 00"),
        (store(R.R10, -4, 0, 4), "62 0a fc ff 00 00 00 00"),
        (store(R.R10, -8, R.R3, 8), "7b 3a f8 ff 00 00 00 00"),
        (add_atomic(R.R8, 16, R.R1), "db 18 10 00 00 00 00 00"),
        (call(Helper.RANDOM_U32), "85 00 00 00 07 00 00 00"),
        (call(Helper.ECN_SET_CE), "85 00 00 00 61 00 00 00"),
        (leave(), "95 00 00 00 00 00 00 00"),
        (load_map(R.R1, FakeMap()), "18 11 00 00 07 00 00 00 00 00 00 00 00 00 00 00"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.skipif(sys.byteorder != "little", reason="the bytes are written for little-endian machines")
def test_bytes_of_instructions(instruction, hexadecimal):
    assert assemble([instruction]) == bytes.fromhex(hexadecimal)


@pytest.mark.skipif(sys.byteorder != "little", reason="the bytes are written for little-endian machines")
def test_jumps_go_to_labels():
    text = [label("top"), load_map(R.R1, FakeMap()), jump("end", R.R0, "==", 0), jump("top", R.R0, "<", R.R1)]
    made = assemble([*text, jump("end"), move(R.R0, 0), label("end"), leave()])
    assert made[16:24] == bytes.fromhex("15 00 03 00 00 00 00 00")  # over three
    assert made[24:32] == bytes.fromhex("ad 10 fc ff 00 00 00 00")  # back over four, of which a load is two
    assert made[32:40] == bytes.fromhex("05 00 01 00 00 00 00 00")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ([jump("nowhere"), leave()], "a jump to nowhere"),
        ([label("a"), label("a"), leave()], "label a more than once"),
        ([move(R.R0, 2**31)], "immediate"),
        ([load(R.R0, R.R1, 2**15, 4)], "offset"),
        ([leave()] * 4097, "at most 4096"),
    ],
)
def test_what_has_no_bytes(text, why):
    with pytest.raises(InvalidValue, match=why):
        assemble(text)


def test_errors_travel():
    again = pickle.loads(pickle.dumps(BpfError("load", 1, "line 1")))
    assert str(again) == str(BpfError("load", 1, "line 1"))
    assert "CAP_BPF" in str(again) and "line 1" in str(again)


@pytest.mark.parametrize(
    ("given", "named"), [({"value_size": 12}, "value_size"), ({"value_size": 8, "name": "a b"}, "name")]
)
def test_maps_that_cannot_be(given, named):
    with pytest.raises(InvalidValue, match=named):
        ArrayMap(**given)


def test_a_program_without_instructions():
    with pytest.raises(InvalidValue, match="instructions"):
        Program(b"")


def test_another_machine_has_no_number(monkeypatch):
    monkeypatch.setattr(bpf.platform, "machine", lambda: "pdp11")
    with pytest.raises(BpfError, match="pdp11"):
        ArrayMap(8)


# The kernel


@kernel
def test_a_map_keeps_what_it_is_given():
    with ArrayMap(16, "netctrl_test") as found:
        assert found.lookup() == bytes(16)
        found.update(bytes(range(16)))
        assert found.lookup() == bytes(range(16))
        with pytest.raises(InvalidValue, match="value"):
            found.update(b"x")
    assert found.fd == -1


@kernel
def test_the_verifier_says_why():
    with pytest.raises(BpfError, match="R0 !read_ok"):
        Program(assemble([leave()]))


class Wire:
    """A veth between two namespaces, with IPv4 and IPv6, and a socket at its end."""

    def __init__(self, here, there):
        self.here, self.there = here, there
        with inside(here):
            _ip(*f"link add name one type veth peer name two netns /proc/self/fd/{there}".split(), fd=there)
        for namespace, name, number in ((here, "one", 1), (there, "two", 2)):
            with inside(namespace):
                _ip("addr", "add", f"10.9.0.{number}/24", "dev", name)
                _ip("addr", "add", f"fd09::{number}/64", "dev", name, "nodad")
                _ip("link", "set", "dev", name, "up")
        with inside(here):
            self.index = socket.if_nametoindex("one")

    def send(self, count, *, ipv6=False, ect=True, losses=False):
        """UDP packets; returns (how many came, how many of them with CE)."""
        family, address = (socket.AF_INET6, "fd09::2") if ipv6 else (socket.AF_INET, "10.9.0.2")
        with inside(self.there):
            sink = socket.socket(family, socket.SOCK_DGRAM)
        with inside(self.here):
            source = socket.socket(family, socket.SOCK_DGRAM)
        with sink, source:
            sink.bind((address, 0))
            if ipv6:
                sink.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
                source.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 2 * ect)
            else:
                sink.setsockopt(socket.IPPROTO_IP, 13, 1)  # IP_RECVTOS
                source.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2 * ect)
            told = []
            for block in range(0, count, 50):  # so that no receive buffer overflows
                here = min(50, count - block)
                for _ in range(here):
                    with suppress(OSError):  # a packet that is dropped may be told of here
                        source.sendto(bytes(100), sink.getsockname())
                # That a lost packet won't come nobody can tell: each block is waited for a little, the last well.
                sink.settimeout(20.0 if not losses else 0.05 if block + here < count else 3.0)
                with suppress(TimeoutError):
                    while len(told) < (count if losses else block + here):
                        told.append(sink.recvmsg(200, 100)[1])
            came, marked = len(told), sum(each[0][2][0] & 3 == 3 for each in told)
            assert losses or came == count
            return came, marked


def _ip(*words, fd=None):
    ran = subprocess.run(
        ["ip", *words], capture_output=True, text=True, timeout=20, check=False, pass_fds=() if fd is None else (fd,)
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@contextmanager
def wire():
    """Two namespaces and the wire between them."""
    with bare_namespace() as here, bare_namespace() as there:
        found = Wire(here, there)
        # A new interface sends nothing until the kernel has seen its carrier, at times a second later, and meanwhile
        # the queue of a neighbour without an address overflows: what a test counts starts on a wire that carries.
        with inside(here):
            eventually(lambda: " state UP " in _ip("link", "show", "dev", "one"))
        found.send(1)
        found.send(1, ipv6=True)
        yield found


def within(marked, count, p):
    """Six standard deviations: once in 500 million runs outside."""
    return abs(marked - count * p) <= 6.0 * sqrt(count * p * (1.0 - p))


@kernel
@pytest.mark.parametrize("by", ["link", "clsact"])
@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_the_share_that_is_marked(by, ipv6):
    count = 2000
    with wire() as found, inside(found.here), Marker(found.index, by=by) as marker:
        before = marker.counts()
        for p in (0.0, 0.1, 0.5, 1.0):
            assert marker.set_probability(p) == pytest.approx(p, abs=2**-32)
            came, marked = found.send(count, ipv6=ipv6)
            after = marker.counts()
            assert came == count
            assert within(marked, count, p)
            assert after.marked - before.marked == marked
            before = after
        assert after.dropped == after.aggregates == 0


@kernel
@pytest.mark.parametrize("drop", [False, True])
def test_packets_without_ecn(drop):
    with wire() as found, inside(found.here), Marker(found.index, drop=drop) as marker:
        marker.set_probability(0.5)
        came, marked = found.send(1000, ect=False, losses=drop)
        counts = marker.counts()
        assert marked == counts.marked == 0
        assert within(counts.dropped if drop else counts.spared, counts.packets, 0.5)
        assert within(came, 1000, 0.5) if drop else came == 1000
        assert (counts.spared if drop else counts.dropped) == 0


@kernel
def test_an_aggregate_is_marked_whole_with_the_chance_of_one_of_its_segments():
    p, segments, count = 0.05, 10, 1000
    with wire() as found, inside(found.here), Marker(found.index) as marker:
        marker.set_probability(p)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
            source.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2)
            source.setsockopt(socket.IPPROTO_UDP, 103, 100)  # UDP_SEGMENT
            for _ in range(count):
                source.sendto(bytes(100 * segments), ("10.9.0.2", 9))
        counts = marker.counts()
    others = counts.packets - count  # of the kernel itself, single
    assert (counts.aggregates, counts.segments) == (count, count * segments + others)
    assert within(counts.marked, count, 1.0 - (1.0 - p) ** segments)
    # Each segment with the headers of UDP, IP and Ethernet, as a queue counts it; what the kernel sends is short.
    assert 0 <= counts.bytes - count * segments * (100 + 8 + 20 + 14) <= others * 200


@kernel
def test_a_law_that_stops_marks_no_more():
    with wire() as found, inside(found.here), Marker(found.index, valid_s=1e-3) as marker:
        marker.set_probability(1.0)
        time.sleep(0.01)
        assert found.send(200) == (200, 0)


@kernel
def test_clsact_goes_again_and_others_stay():
    def queues():
        with RouteSocket() as route:
            return [each.kind for each in route.qdiscs(found.index)]

    with wire() as found, inside(found.here):
        before = queues()
        with Marker(found.index, by="clsact"):
            assert "clsact" in queues()
        assert queues() == before
        for command in ("qdisc add dev one clsact", "filter add dev one egress prio 5 u32 match u32 0 0"):
            subprocess.run(["tc", *command.split()], check=True, timeout=20, capture_output=True)
        with Marker(found.index, by="clsact"):
            pass
        with RouteSocket() as route:
            assert "clsact" in queues() and route.filters(found.index, 0xFFFFFFF3) > 0


@kernel
def test_a_filter_that_was_left_behind_is_taken_over():
    with wire() as found, inside(found.here):
        left = Marker(found.index, by="clsact")
        with Marker(found.index, by="clsact") as marker:
            marker.set_probability(1.0)
            assert found.send(20) == (20, 20)
        assert found.send(20) == (20, 0)
        left.close()  # it is gone already, which is no error


CHILD = """
import sys, time
from netctrl.linux.marking import Marker
marker = Marker(int(sys.argv[1]))
marker.set_probability(1.0)
print("ready", flush=True)
time.sleep(60)
"""


@kernel
def test_a_link_goes_with_its_process():
    with wire() as found, inside(found.here):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(found.index)], stdout=subprocess.PIPE)
        try:
            assert child.stdout.readline() == b"ready\n"
            assert found.send(20) == (20, 20)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait(20)
            child.stdout.close()
        # The kernel takes programs away in its own time.
        eventually(lambda: found.send(20) == (20, 0))


@kernel
def test_what_the_kernel_refuses():
    with pytest.raises(BpfError, match="interface 999999"):
        Marker(999999)
    with pytest.raises(InvalidValue, match="by"):
        Marker(1, by="tape")


BOTTLENECK, PACKETS = 20e6, 400


@kernel
def test_arc_keeps_tcp_s_queue_near_its_reference():
    """Eight flows of Reno with ECN over 20 Mbit/s and 15 ms: unmanaged they fill what there is of the buffer."""
    flows, delay, target = 8, 0.015, 30.0
    law = arc(
        flows,
        0.035,
        BOTTLENECK * 1500 / 1514,
        packet_size_bytes=1500,
        epoch_s=0.02,
        target_queue_packets=target,
        utilization=1.0,
        plant="phys",
    ).law
    network = Network(
        links=(
            Link(source="s", target="r", capacity=1e9),
            Link(source="r", target="s", capacity=1e9, delay=delay),
            Link(source="r", target="b", capacity=BOTTLENECK, buffer=PACKETS * 1514),
            Link(source="b", target="r", capacity=1e9),
        )
    )
    with Testbed(network) as bed:
        for node in ("s", "b"):
            with bed.inside(node):
                Path("/proc/sys/net/ipv4/tcp_ecn").write_text("1", encoding="ascii")
        config = MarkingConfig(interface=bed.interface("r->b"), handle="1:", law=law)
        heard = []
        with absorbing(bed, connections=flows):
            for _ in range(flows):
                bed.start("s", send_tcp, bed.address("b"), 5001, 8.0, congestion="reno")
            with bed.inside("r"):
                last = mark(config, duration_s=8.0, heard=heard.append)
    late = [each for each in heard if each.time_s > 3.0]  # slow start is over
    queue = sum(each.backlog_bytes * each.elapsed_s for each in late) / sum(each.elapsed_s for each in late) / 1514
    sent = 8.0 * sum(each.arrived_bytes for each in late) / sum(each.elapsed_s for each in late)
    assert last is not None and last.counts.marked > 50
    assert 0.3 * target < queue < 2.5 * target  # of 400 that the buffer has
    assert 0.85 < sent / BOTTLENECK < 1.1


@kernel
def test_another_queue_is_not_read_for_it():
    law = arc(accept="stable", flows=50).law
    with wire() as found, inside(found.here):
        with pytest.raises(NetctrlError, match=r"noqueue|none|7c01:"):
            mark(MarkingConfig(interface="one", law=law), duration_s=0.1)
        with pytest.raises(InvalidValue, match="interface"):
            mark(MarkingConfig(interface="three", law=law), duration_s=0.1)


@kernel
def test_a_signal_ends_marking_and_is_told_what_came_of_it(tmp_path):
    config = tmp_path / "m.json"
    MarkingConfig(interface="one", handle="1:", law=arc(accept="stable", flows=50, epoch_s=0.05).law).save(config)
    with wire() as found, inside(found.here):
        queue = "qdisc add dev one root handle 1: tbf rate 10mbit burst 3028 limit 100000"
        assert subprocess.run(["tc", *queue.split()], timeout=20, check=False).returncode == 0
        command = [sys.executable, "-m", "netctrl", "linux", "mark", str(config), "--json"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            assert b"event=marking" in child.stderr.readline()
            time.sleep(0.5)
            child.send_signal(signal.SIGTERM)
            out, _ = child.communicate(timeout=20)
        finally:
            child.kill()
        assert child.returncode == 0
        told = json.loads(out)
        assert told["interface"] == "one" and told["marked"] == 0
