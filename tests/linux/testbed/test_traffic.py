"""Traffic in the kernel: what sinks see."""

from __future__ import annotations

import socket
import time

import numpy as np
import pytest
from linux_support import chain, kernel, line

from netctrl.errors import InvalidValue, NetctrlError
from netctrl.kernel.scenarios.traffic import constant_times, poisson_times
from netctrl.linux.testbed.bed import Testbed
from netctrl.linux.testbed.traffic import (
    MIN_FRAME,
    Received,
    UdpSource,
    open_tcp_sink,
    open_udp_sink,
    receive_udp,
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
