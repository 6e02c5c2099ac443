"""Pacing in the kernel: samples from TCP_INFO, rates at sockets of ours and of a program, the command line."""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linux.testbed import Testbed
from linux_support import absorbing, chain, kernel

import netctrl
from netctrl.cli.linux import main
from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.linux.pacing import program
from netctrl.linux.pacing.program import pace_program
from netctrl.linux.pacing.socket import (
    SO_MAX_PACING_RATE,
    RttSamples,
    SocketPacer,
    paced_transfer,
    pacing_law,
    set_pacing_rate,
)
from netctrl.linux.pacing.tcp import TcpInfo, read_tcp_info

OWN = netctrl.pacing(mode="own-rate", rtt_s=0.02)


def seen(**fields: int) -> TcpInfo:
    """What a kernel might say."""
    usual = dict.fromkeys(TcpInfo._fields, 0)
    return TcpInfo(**(usual | {"state": 1, "snd_mss": 1448, "notsent_bytes": 10**6} | fields))


@given(st.lists(st.tuples(st.integers(1, 1_000_000), st.integers(1, 5)), min_size=2, max_size=20))
def test_samples_come_back_from_the_smoothed_rtt(rows) -> None:
    """The kernel's filter, as RFC 6298 has it with gain 1/8, run forwards; a look after some acknowledgements."""
    samples, smoothed, segments = RttSamples(), 0.0, 0
    for number, (rtt, count) in enumerate(rows):
        before = smoothed
        for _ in range(count):
            smoothed = rtt if segments == 0 else smoothed + (rtt - smoothed) / 8.0
            segments += 1
        info = seen(rtt=round(smoothed), segs_in=segments)
        found = samples.take(info)
        assert samples.take(info) is None  # nothing new
        if number > 0 and rtt >= 0.5 * before + 8:
            error = 1e-6 / (1.0 - (7.0 / 8.0) ** count)  # the kernel's is rounded to a microsecond, twice
            assert found == pytest.approx(max(1e-6 * rtt, 0.5e-6 * smoothed), abs=error + 1e-12)


def test_before_the_first_sample_there_is_none_and_old_kernels_give_the_smoothed() -> None:
    samples = RttSamples()
    assert samples.take(seen()) is None
    assert samples.take(seen(rtt=500)._replace(segs_in=None)) == pytest.approx(500e-6)
    assert samples.take(seen(rtt=600)._replace(segs_in=None)) == pytest.approx(600e-6)


class Recorder:
    """In place of a socket: what was set."""

    def __init__(self) -> None:
        self.rates: list[int] = []

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        assert (level, option, len(value)) == (socket.SOL_SOCKET, SO_MAX_PACING_RATE, 8)
        self.rates += struct.unpack("=Q", value)


def looks(paced: SocketPacer, socket_: Recorder, begin: float, seconds: float, arrived: int, mbit: float, **fields):
    """Looks every ms at a flow whose bytes arrive at a rate, with an RTT of 20 ms: bytes arrived at the end."""
    for k in range(round(seconds * 1000)):
        arrived += round(mbit * 125)
        told = {"rtt": 20_000, "segs_in": 1 + arrived // 2896, "bytes_acked": arrived, "unacked": 160} | fields
        paced.step(socket_, begin + k / 1000, seen(**told))
    return arrived


def test_a_program_without_data_does_not_lower_the_rate() -> None:
    paced, to = SocketPacer(OWN.law), Recorder()
    paced.start(to)
    assert to.rates == [round(OWN.law.start_rate_bit_per_s / 8)]
    arrived = looks(paced, to, 0.0, 0.6, 0, 95.0)
    before = paced.rate_bit_per_s
    assert before > 60e6
    arrived = looks(paced, to, 0.6, 1.0, arrived, 0.5, notsent_bytes=0, unacked=1)
    assert paced.rate_bit_per_s == before
    looks(paced, to, 1.6, 0.05, arrived + 2 * 1448, 95.0)
    assert paced.rate_bit_per_s > 0.7 * before


def test_what_is_delivered_late_for_want_of_the_network_does_lower_it() -> None:
    paced, to = SocketPacer(OWN.law), Recorder()
    arrived = looks(paced, to, 0.0, 0.6, 0, 95.0)
    before = paced.rate_bit_per_s
    looks(paced, to, 0.6, 0.3, arrived, 20.0, rtt=60_000)
    assert paced.rate_bit_per_s < 0.5 * before


def test_a_rate_is_set_whole_and_taken_away() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        for rate, told in ((8e6, 10**6), (800e9, 10**11), (float("inf"), 2**64 - 1), (0.1, 1)):
            set_pacing_rate(one, rate)
            assert read_tcp_info(one).max_pacing_rate == told


def test_only_a_design_of_pacing_gives_a_law() -> None:
    assert pacing_law(OWN) is OWN.law
    assert pacing_law(netctrl.pacing()).max_rate_bit_per_s == 1e10
    with pytest.raises(InvalidValue, match="a Design of pacing"):
        pacing_law(object())


def transfer(bed: Testbed, law, seconds: float, port: int = 5001):
    """On a port of its own: the process that took the last transfer may still have its listener as it ends."""
    with absorbing(bed, port) as taking:
        found = bed.run("a", paced_transfer, law, bed.address("b"), port, seconds)
        assert taking.result(20.0)
        return found


@kernel
def test_laws_caps_and_nothing_at_a_transfer_of_our_own() -> None:
    with Testbed(chain("a", "r", "b", capacity=50e6)) as bed:
        run, rates = transfer(bed, OWN.law, 1.0)
        assert len(rates) == len(run.infos)
        told = run.column("max_pacing_rate")
        assert told[0] * 8 == pytest.approx(OWN.law.start_rate_bit_per_s, rel=1e-3)
        assert 8 * told[-1] == pytest.approx(rates[-2], rel=1e-3)  # as it was before the last look
        assert max(rates) > OWN.law.start_rate_bit_per_s
        run, rates = transfer(bed, 4e6, 0.5, 5002)
        assert set(run.column("max_pacing_rate")) == {5e5}
        assert set(rates) == {4e6}
        arrived = run.column("arrived_bytes")
        assert 8 * (arrived[-1] - arrived[0]) / (run.times_s[-1] - run.times_s[0]) < 6e6
        run, rates = transfer(bed, None, 0.2, 5003)
        assert set(run.column("max_pacing_rate")) == {2.0**64}
        with pytest.raises(InvalidValue, match="a cap above 0"):
            bed.run("a", paced_transfer, -1.0, bed.address("b"), 5001, 0.2)


CLIENT = """
import socket, sys, time
address, port, wanted, fixed = sys.argv[1], *map(int, sys.argv[2:])
kept = open("/dev/null")
for part in range(2):
    with socket.create_connection((address, port), timeout=30) as out:
        caps, end = [], time.monotonic() + 20.0
        while len(caps) < wanted and time.monotonic() < end:
            cap = int.from_bytes(out.getsockopt(socket.SOL_SOCKET, 47, 8), sys.byteorder)
            if cap < 2**63 and cap not in caps:
                caps.append(cap)
            out.send(b"x" * 4096)
    if len(caps) < wanted or fixed and caps != [fixed]:
        sys.exit(f"caps seen, in B/s: {caps}")
sys.exit(7)
"""  # a connection lasts until it has seen so many caps set at it: no test of how fast the machine is


@kernel
@pytest.mark.parametrize("wrapped", [False, True])
def test_connections_of_a_program_are_paced_and_closed_when_it_closes_them(wrapped) -> None:
    with Testbed(chain("a", "r", "b", capacity=50e6)) as bed, absorbing(bed, connections=2) as taking:
        argv = [sys.executable, "-c", CLIENT, bed.address("b"), "5001", "2", "0"]
        argv = ["sh", "-c", 'x=1; "$@"; exit $?', "sh", *argv] if wrapped else argv
        done = bed.run("a", pace_program, OWN.law, argv, timeout_s=60.0)
        counts = taking.result(20.0)
    assert done.status == 7
    assert done.sockets == len(counts) == 2
    assert done.changes >= 4


@kernel
def test_a_fixed_cap_holds_for_a_program() -> None:
    with Testbed(chain("a", "r", "b", capacity=50e6)) as bed, absorbing(bed, connections=2) as taking:
        argv = [sys.executable, "-c", CLIENT, bed.address("b"), "5001", "1", "1000000"]
        done = bed.run("a", pace_program, 8e6, argv)
        counts = taking.result(20.0)
    assert (done.status, done.sockets, done.changes, len(counts)) == (7, 2, 2, 2)


PEER = """
import socket, sys
way, port, size = sys.argv[1], *map(int, sys.argv[2:])
with socket.create_connection(("127.0.0.1", port), timeout=30) as peer:
    if way == "up":
        peer.sendall(b"x" * size)
    while peer.recv(65536):
        pass
"""


@kernel
@pytest.mark.parametrize("way", ["up", "down"])
def test_a_program_that_mostly_receives_is_told_that_the_other_end_paces(way, monkeypatch, capfd) -> None:
    """The server closes only when a look has seen all bytes, so that no look is missed however slow the machine is."""
    size, looked = 200_000, threading.Event()

    def look(connection: socket.socket) -> TcpInfo:
        info = read_tcp_info(connection)
        if max(info.bytes_acked or 0, info.bytes_received or 0) >= size:
            looked.set()
        return info

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.settimeout(30.0)
            if way == "down":
                peer.sendall(b"x" * size)
            left = size if way == "up" else 0
            while left:
                left -= len(peer.recv(left))
            looked.wait(30.0)

    monkeypatch.setattr(program, "read_tcp_info", look)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        argv = [sys.executable, "-c", PEER, way, str(listener.getsockname()[1]), str(size)]
        assert main(["pace", "--cap", "1Gbit", "--", *argv]) == 0
        server.join(30.0)
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "netctrl: 1 TCP connections paced, 1 rates set, 0 samples held"
    assert [line[:75] for line in said[1:]] == (
        ["warning: 1 of 1 TCP connections mostly received (200 kB), which the other e"] if way == "down" else []
    )


def test_a_program_that_is_not_there_and_one_without_connections() -> None:
    with pytest.raises(NetctrlError, match="no-such-program can't be started"):
        pace_program(1e6, ["no-such-program"])
    assert pace_program(1e6, ["sh", "-c", "exit 3"]) == (3, 0, 0, 0, 0, 0)
    with pytest.raises(InvalidValue, match="interval_s"):
        pace_program(1e6, ["true"], interval_s=5.0)


@pytest.fixture
def design(tmp_path):
    place = tmp_path / "pacing.json"
    place.write_text(OWN.to_json())
    return str(place)


def test_dry_run_says_what_would_be_set_and_starts_nothing(design, tmp_path, capsys) -> None:
    touched = tmp_path / "touched"
    assert main(["pace", "--design", design, "--dry-run", "--", "touch", str(touched)]) == 0
    said = capsys.readouterr().out
    assert not touched.exists()
    assert f"would run touch {touched}" in said
    assert "SO_MAX_PACING_RATE" in said and "125000 B/s" in said and "nothing was started" in said
    assert main(["pace", "--cap", "8Mbit", "--dry-run", "--to", "10.0.0.2:5001", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["law"], told["first_bytes_per_s"], told["most_rate_bit_per_s"]) == ("fixed", 1_000_000, 8e6)


def test_the_command_line_runs_a_program_with_its_own_options_and_status(design, capfd) -> None:
    assert main(["pace", "--design", design, "--", "sh", "-c", "echo $0 $1; exit 5", "--help", "-h"]) == 5
    out, err = capfd.readouterr()
    assert out == "--help -h\n"
    assert err == "netctrl: 0 TCP connections paced, 0 rates set, 0 samples held\n"
    assert main(["pace", "--cap", "1Mbit", "--", "sh", "-c", "kill -9 $$"]) == 128 + 9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--", "true"], "--design is missing"),
        (["--cap", "5", "--", "true"], "--cap: got '5'"),
        (["--cap", "1Mbit", "--design", "x", "--", "true"], "--design: got 'both'"),
        (["--cap", "1Mbit"], "PROGRAM is missing: either a program after -- or --to"),
        (["--cap", "1Mbit", "--to", "a:1", "--", "true"], "PROGRAM: got 'both'"),
        (["--cap", "1Mbit", "--to", "somewhere"], "--to: got 'somewhere', takes HOST:PORT"),
        (["--cap", "1Mbit", "--to", "a:99999"], "--to: got 'a:99999'"),
        (["--cap", "1Mbit", "--interval", "1us", "--", "true"], "--interval: got '1us', takes 0.1ms to 1s"),
        (["--design", "/no/such/file", "--", "true"], "/no/such/file"),
    ],
)
def test_wrong_use_is_one_line(arguments, said, capsys) -> None:
    assert main(["pace", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_design_for_another_network_is_refused(tmp_path, capsys) -> None:
    place = tmp_path / "arc.json"
    place.write_text(netctrl.arc(flows=50, rtt_s=0.5, capacity_bit_per_s=1e7, accept="stable").to_json())
    assert main(["pace", "--design", str(place), "--", "true"]) == 2
    assert "a Design of pacing" in capsys.readouterr().err


@kernel
def test_the_command_line_sends_by_itself(design) -> None:
    with Testbed(chain("a", "r", "b", capacity=50e6)) as bed, absorbing(bed) as taking:
        place = f"{bed.address('b')}:5001"
        argv = [sys.executable, "-m", "netctrl", "linux", "pace", "--design", design, "--to", place, "--for", "500ms"]
        done = bed.run("a", [*argv, "--json"], timeout_s=60.0)
        assert sum(taking.result(20.0).values()) > 0
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["throughput_bit_per_s"] > 0.0


class Kernel:
    """A sender's kernel and its path, in steps of 0.1 ms: a bottleneck, a way back in bunches, and the RTT estimator of
    net/ipv4/tcp_input.c (tcp_rtt_estimator) as RFC 6298 and the Eifel remark in it have it."""

    STEP, BASE, SEGMENT, MIN_ACK = 1e-4, 0.02, 1448, 2

    def __init__(self, capacity: float, bunch: float) -> None:
        self.capacity, self.bunch = capacity, bunch
        self.rate = 0.0
        self.now = self.sent = self.queue = 0.0
        self.on_way: list[tuple[float, float, float]] = []  # acknowledged at, bytes by then, RTT of it
        self.acked, self.segments, self.srtt, self.mdev, self.least = 0.0, 1, 0.0, 0.0, float("inf")
        self.queues: list[float] = []

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        self.rate = 8.0 * struct.unpack("=Q", value)[0]

    def step(self) -> None:
        self.now += self.STEP
        self.sent += self.rate * self.STEP / 8
        self.queue += (self.rate - self.capacity) * self.STEP / 8
        self.queue = max(self.queue, 0.0)
        arrived = self.sent - self.queue
        last = self.on_way[-1][1] if self.on_way else self.acked
        if arrived - last >= self.MIN_ACK * self.SEGMENT:
            wait = 8 * self.queue / self.capacity
            due = self.now + self.BASE
            due = -(-due // self.bunch) * self.bunch if self.bunch else due
            self.on_way.append((due, arrived, due - self.now + wait))
        while self.on_way and self.on_way[0][0] <= self.now:
            _, self.acked, rtt = self.on_way.pop(0)
            self.segments += 1
            self.estimate(rtt)
        self.queues.append(8 * self.queue / self.capacity)

    def estimate(self, rtt: float) -> None:
        self.least = min(self.least, rtt)
        if self.srtt == 0.0:
            self.srtt, self.mdev = rtt, rtt / 2
            return
        off = rtt - self.srtt
        self.srtt += off / 8
        more = abs(off) - self.mdev
        self.mdev += (more / 8 if off < 0 < more else more) / 4

    def info(self) -> TcpInfo:
        flight = round((self.sent - self.acked) / self.SEGMENT)
        micro = {"rtt": self.srtt, "rttvar": self.mdev, "min_rtt": self.least if self.srtt else 0.0}
        told = {name: round(1e6 * value) for name, value in micro.items()}
        return seen(segs_in=self.segments, bytes_acked=int(self.acked), unacked=flight, **told)


@pytest.mark.parametrize("bunch", [0.0, 1e-3, 2e-3, 4e-3])
@pytest.mark.parametrize("capacity", [20e6, 95e6, 400e6])
def test_a_short_queue_is_kept_however_acknowledgements_come(bunch, capacity) -> None:
    kernel_, paced = Kernel(capacity, bunch), SocketPacer(OWN.law)
    paced.start(kernel_)
    begin = 0.0
    for k in range(1, 60_001):
        kernel_.step()
        if k % 10 == 0:
            paced.step(kernel_, kernel_.now, kernel_.info())
        if k == 20_000:
            begin = kernel_.acked
            kernel_.queues.clear()
    used = 8 * (kernel_.acked - begin) / 4.0 / capacity
    queue = sum(kernel_.queues) / len(kernel_.queues)
    proof = netctrl.pacing(mode="own-rate", rtt_s=Kernel.BASE, bottleneck_bit_per_s=capacity).certificate
    assert used > 0.95
    assert queue < 2.0 * proof.equilibrium.queue_s
