"""Traffic in the kernel: what sinks see, TCP_INFO by field."""

from __future__ import annotations

import socket
import struct
import time

import numpy as np
import pytest
from linux_support import chain, kernel, line

from netctrl.errors import InvalidValue, NetctrlError
from netctrl.kernel.scenarios.traffic import constant_times, poisson_times
from netctrl.linux.pacing.tcp_info import TcpInfo, decode_tcp_info, read_tcp_info
from netctrl.linux.testbed.bed import Testbed
from netctrl.linux.testbed.traffic import (
    MIN_FRAME,
    Received,
    UdpSource,
    absorb_tcp,
    open_tcp_sink,
    open_udp_sink,
    receive_udp,
    send_tcp,
    send_udp,
)


def test_a_frame_without_room_for_number_and_time_is_refused() -> None:
    with pytest.raises(InvalidValue, match="takes") as refusal:
        UdpSource("10.0.0.1", 1, np.zeros(1), frame_bytes=MIN_FRAME - 1)
    assert refusal.value.argument == "frame_bytes"


def test_what_a_sink_makes_of_its_packets() -> None:
    sent = np.arange(10) * 0.1
    kept = np.array([0, 1, 3, 4, 4, 6])
    delays = np.array([0.01, 0.02, 0.01, 0.01, 0.03, 0.01])
    found = Received(0, kept, sent[kept], sent[kept] + delays, np.full(6, 1250))
    np.testing.assert_allclose(found.delay_s, delays)
    assert found.lost(10) == 5
    np.testing.assert_allclose(found.throughput_bit_per_s(0.0, 0.8, 0.2), [1e5, 5e4, 1e5, 5e4], rtol=1e-12)
    jitter = 0.0
    for step in (0.01, 0.01, 0.0, 0.02, 0.02):  # RFC 3550, 6.4.1
        jitter += (step - jitter) / 16
    assert found.jitter_s == pytest.approx(jitter)


def send_and_watch(bed: Testbed, source: str, sink: str, sources: list[UdpSource], seconds: float):
    with bed.inside(sink):
        held = open_udp_sink(9)
    with held:
        begin = time.monotonic() + 0.1
        listening = bed.start(sink, receive_udp, [held], begin + seconds + 0.5)
        sent = bed.run(source, send_udp, sources, begin)
        return sent, listening.result(20.0), begin


@kernel
def test_udp_streams_arrive_whole_and_later_than_they_left() -> None:
    with Testbed(line(delay=0.0)) as bed:
        sources = [
            UdpSource(bed.address("b"), 9, constant_times(2e6, 1250, 0.5), 1250, stream=5),
            UdpSource(bed.address("b"), 9, poisson_times(1e6, 200, 0.5, np.random.default_rng(4)), 200, stream=7),
        ]
        sent, found, _ = send_and_watch(bed, "a", "b", sources, 0.5)
        with bed.route_socket("a") as at_a:
            (row,) = [row for row in at_a.qdiscs() if row.kind == "tbf"]
    assert found.keys() == {5, 7}
    for source, fate in zip(sources, sent, strict=True):
        got = found[source.stream]
        assert (fate.offered, fate.dropped) == (len(source.times_s), 0)
        np.testing.assert_array_equal(got.numbers, np.arange(fate.offered))
        assert got.lost(fate.offered) == 0
        assert np.all(got.delay_s > 0.0)
        assert np.all(got.frame_bytes == source.frame_bytes)
    # frames are counted as tbf counts them
    assert row.counters.bytes == sum(each.frame_bytes * fate.offered for each, fate in zip(sources, sent, strict=True))


@kernel
def test_what_a_full_buffer_drops_is_lost_and_the_rest_waits() -> None:
    capacity, buffer = 4e6, 15140
    with Testbed(line(capacity=capacity, buffer=buffer), burst_bytes=1514) as bed:
        source = UdpSource(bed.address("b"), 9, constant_times(8e6, 1514, 1.0), 1514)
        (sent,), found, _ = send_and_watch(bed, "a", "b", [source], 1.0)
        with bed.route_socket("a") as at_a:
            (row,) = [row for row in at_a.qdiscs() if row.kind == "tbf"]
    got = found[0]
    assert got.lost(sent.offered) == sent.dropped + row.counters.drops
    assert row.counters.drops > 0
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


@kernel
def test_a_transfer_sees_itself_and_the_sink_counts_it() -> None:
    with Testbed(chain("a", "r", "b", capacity=20e6)) as bed:
        with bed.inside("b"):
            listener = open_tcp_sink(5001)
        with listener:
            taking = bed.start("b", absorb_tcp, listener, time.monotonic() + 20.0, 1)
            run = bed.run("a", send_tcp, bed.address("b"), 5001, 1.0, congestion="reno", every_s=0.01)
            (count,) = taking.result(20.0).values()
        arrived = run.column("arrived_bytes")
        assert np.all(np.diff(arrived) >= 0.0)
        assert 0.0 < arrived[-1] <= run.sent_bytes + 1
        assert 0 < count <= run.sent_bytes
        assert len(run.times_s) == len(run.infos) >= 2
        assert run.column("min_rtt")[-1] > 0
        with pytest.raises(InvalidValue, match=r"no-such.*one of this kernel's: .*cubic"):
            bed.run("a", send_tcp, bed.address("b"), 5001, 1.0, congestion="no-such")
        with pytest.raises(NetctrlError, match="Connection refused"):
            bed.run("a", send_tcp, bed.address("b"), 5002, 1.0)


def info_bytes(length: int) -> bytes:
    """struct tcp_info of linux/tcp.h whose fields count up from 1, cut or filled up to a length."""
    layout = "=8B24I4Q4IQQQQIIQQ8I".replace("4IQQQQ", "2I4IQ3Q")  # 6 words, rate, three times
    layout = "=8B24I4Q2I4IQ3Q2I2Q2I2I2I2HI"
    count = 8 + 24 + 4 + 2 + 4 + 1 + 3 + 2 + 2 + 2 + 2 + 2 + 2 + 1
    content = struct.pack(layout, *range(1, count + 1))
    return content[:length].ljust(length, b"\xff")


def test_tcp_info_is_read_by_field_however_long_it_is() -> None:
    assert TcpInfo._fields.index("rtt") == 23
    whole = decode_tcp_info(info_bytes(248))
    assert whole == tuple(range(1, 60))
    assert decode_tcp_info(info_bytes(280)) == whole  # a later kernel's
    for length, last in (
        (104, "total_retrans"),
        (136, "bytes_received"),
        (168, "delivery_rate"),
        (216, "bytes_retrans"),
    ):
        found = decode_tcp_info(info_bytes(length))
        known = TcpInfo._fields.index(last) + 1
        assert found[:known] == whole[:known]
        assert set(found[known:]) <= {None}
    assert decode_tcp_info(info_bytes(140)).segs_out == whole.segs_out
    assert decode_tcp_info(info_bytes(104)).arrived_bytes is None
    assert decode_tcp_info(info_bytes(104)).delivery_bit_per_s is None
    with pytest.raises(InvalidValue, match="at least 104 bytes"):
        decode_tcp_info(b"\0" * 103)


def test_tcp_info_of_a_connection_of_this_machine() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as here,
        server.accept()[0] as there,
    ):
        here.sendall(b"x" * 5000)
        got = 0
        while got < 5000:
            got += len(there.recv(5000))
        while (found := read_tcp_info(here)).unacked:
            time.sleep(0.001)
        assert (found.state, found.bytes_acked, found.in_flight_bytes) == (1, 5001, 0.0)  # and the SYN
        assert found.arrived_bytes == 5001.0
        assert found.rtt_s > 0.0
        assert found.pmtu > found.snd_mss > 500
