"""A transfer of test data, and TCP_INFO by field."""

from __future__ import annotations

import socket
import struct
import time

import numpy as np
import pytest
from linux.testbed import Testbed
from linux_support import absorbing, chain, kernel

from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.linux.pacing.tcp import TcpInfo, decode_tcp_info, read_tcp_info, send_tcp


@kernel
def test_a_transfer_sees_itself_and_the_sink_counts_it() -> None:
    with Testbed(chain("a", "r", "b", capacity=20e6)) as bed:
        with absorbing(bed) as taking:
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
