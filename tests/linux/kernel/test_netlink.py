"""Options of queues as bytes, and queues of the kernel by raw messages, against `tc` and against the kernel itself."""

from __future__ import annotations

import errno
import pickle
import re
import socket
import struct
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linux_queues import ip, pairs, tc
from linux_support import kernel

from netctrl.core.errors import InvalidValue
from netctrl.linux.kernel.messages import INGRESS, ROOT, attribute, attributes, classid, handle_text, nested
from netctrl.linux.kernel.netlink import KernelRefusal, RouteSocket
from netctrl.linux.kernel.qdisc import (
    TICK_NS,
    FifoOptions,
    HtbClassOptions,
    HtbOptions,
    TbfOptions,
    burst_ticks,
    largest_burst,
    rate_bytes,
    transmission_ns,
)

OURS = 0x7C010000
RATES = st.integers(1, 2**40)
U16, U32 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)


# Lengths and rates, as the kernel computes with them


@given(st.integers(0, 2**32 - 1), RATES)
def test_a_transmission_takes_length_over_rate(length, rate) -> None:
    """Exact but for a reciprocal of 31 bits, and for whole nanoseconds."""
    exact = Fraction(length * 10**9, rate)
    took = transmission_ns(length, rate)
    assert exact * (1 - Fraction(1, 2**31)) - 1 < took <= exact


@given(st.integers(1, 10**9), st.integers(10**3, 2**40), st.integers(0, 100))
def test_the_largest_burst_is_shown_as_the_same_ticks_and_no_larger_one_is(burst, rate, overhead) -> None:
    ticks = burst_ticks(burst, rate, overhead)
    largest = largest_burst(ticks, rate, overhead)
    assert largest >= burst
    assert burst_ticks(largest, rate, overhead) == ticks
    assert burst_ticks(largest + 1, rate, overhead) > ticks


@given(st.floats(8.0, 1e15))
def test_a_rate_is_the_nearest_whole_number_of_bytes(rate) -> None:
    assert abs(rate_bytes(rate) - Fraction(rate) / 8) <= Fraction(1, 2)


@pytest.mark.parametrize("rate", [0.0, 3.9, -8.0, 1e21])
def test_a_rate_that_the_kernel_has_not_is_refused(rate) -> None:
    with pytest.raises(InvalidValue, match="rate_bit_per_s"):
        rate_bytes(rate)


@pytest.mark.parametrize("options", [TbfOptions.desired, lambda *a: HtbClassOptions.desired(*a[:2])])
def test_a_burst_that_ticks_do_not_hold_is_refused(options) -> None:
    """2³² ticks of 64 ns are 274.9 s."""
    assert options(8000.0, 274_877, 9000).buffer <= 2**32 - 1
    with pytest.raises(InvalidValue, match=r"burst: got 274880, takes at most 274877 bytes at 1000 byte/s"):
        options(8000.0, 274_880, 9000)


# Options to bytes and back

TBF = st.builds(
    TbfOptions,
    rate=RATES,
    buffer=st.integers(0, 2**26),
    limit=U32,
    overhead=U16,
    mpu=U16,
    link_layer=st.just(1),
    peak_rate=st.just(0) | RATES,
    mtu=st.integers(0, 2**20),
)
HTB_CLASS = st.builds(
    HtbClassOptions,
    rate=RATES,
    ceil=RATES,
    buffer=U32,
    ceil_buffer=U32,
    quantum=U32,
    priority=st.integers(0, 7),
    overhead=U16,
    mpu=U16,
    ceil_overhead=U16,
    ceil_mpu=U16,
)


@given(TBF | HTB_CLASS | st.builds(HtbOptions, U16, U32, st.none() | U32) | st.builds(FifoOptions, U32))
def test_options_come_back_from_bytes(options) -> None:
    assert type(options).decode(options.encode()) == options


def test_options_are_as_long_as_the_kernels_structures() -> None:
    """sizeof in linux/pkt_sched.h: tc_tbf_qopt 36, tc_htb_opt 44, tc_htb_glob 20, tc_fifo_qopt 4."""
    assert len(attributes(TbfOptions(1, 1, 1).encode(1))[1]) == 36
    assert len(attributes(HtbClassOptions(1, 1, 1, 1).encode())[1]) == 44
    assert len(attributes(HtbOptions(1).encode())[2]) == 20
    assert len(FifoOptions(1).encode()) == 4


@pytest.mark.parametrize("kind", [TbfOptions, HtbOptions, HtbClassOptions, FifoOptions])
@pytest.mark.parametrize("junk", [b"", b"abc", attribute(1, b"short"), attribute(2, b"short"), b"\xff\xff\0\0"])
def test_options_of_something_else_are_a_value_error(kind, junk) -> None:
    if not (kind is FifoOptions and len(junk) >= 4):
        with pytest.raises(ValueError):
            kind.decode(junk)


@given(st.dictionaries(st.integers(1, 0x3FFF), st.binary(max_size=40), max_size=8))
def test_attributes_come_back(content) -> None:
    packed = b"".join(attribute(kind, payload) for kind, payload in content.items())
    assert len(packed) % 4 == 0
    assert attributes(packed) == content
    assert attributes(attributes(nested(9, packed))[9]) == content


@pytest.mark.parametrize(
    ("handle", "text"), [(ROOT, "root"), (INGRESS, "ingress"), (0x10000, "1:"), (0x7C01000A, "7c01:a"), (0, "0:")]
)
def test_handles_as_tc_writes_them(handle, text) -> None:
    assert handle_text(handle) == text


def test_a_refusal_survives_a_pickle() -> None:
    refusal = KernelRefusal("do it", errno.EPERM, "No")
    again = pickle.loads(pickle.dumps(refusal))
    assert (str(again), again.number) == (str(refusal), errno.EPERM)
    assert "CAP_NET_ADMIN" in str(refusal)


# Answers that are late, cut short or wrong: a socket pair in the kernel's place


@pytest.fixture
def fake():
    """A RouteSocket whose kernel is the other end."""
    with RouteSocket(timeout_s=0.05) as ours:
        ours._socket.close()
        ours._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        ours._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, 50_000))
        with other:
            yield ours, other


def message(kind: int, flags: int, sequence: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, flags, sequence, 0) + body


DONE, ERROR, MULTI, INTERRUPTED, NEWQDISC = 3, 2, 0x2, 0x10, 36
QDISC = struct.pack("=BxxxiIII", 0, 7, 0x10000, ROOT, 2) + attribute(1, b"tbf\0")


def test_an_answer_to_an_earlier_question_is_passed_over(fake) -> None:
    ours, other = fake
    other.send(message(NEWQDISC, MULTI, 77, QDISC) + message(DONE, MULTI, 77, bytes(4)))
    other.send(message(NEWQDISC, MULTI, 1, QDISC))
    other.send(message(DONE, MULTI, 1, bytes(4)))
    assert [(each.index, each.kind, each.handle) for each in ours.qdiscs()] == [(7, "tbf", 0x10000)]


@pytest.mark.parametrize(
    ("answers", "number"),
    [
        ([], errno.ETIMEDOUT),
        ([message(NEWQDISC, MULTI, 1, QDISC)], errno.ETIMEDOUT),
        ([message(NEWQDISC, MULTI, 1, QDISC)[:-3]], errno.EPROTO),
        ([message(ERROR, 0, 1, struct.pack("=i", -errno.ENOBUFS) + bytes(16))], errno.ENOBUFS),
        ([message(DONE, MULTI, 1, struct.pack("=i", -errno.EINVAL))], errno.EINVAL),
        ([message(DONE, MULTI | INTERRUPTED, number, bytes(4)) for number in range(1, 6)], errno.EINTR),
    ],
    ids=["none", "no end", "cut short", "an error", "an error at the end", "changed all the time"],
)
def test_a_list_that_is_not_whole_is_never_empty(answers, number, fake) -> None:
    ours, other = fake
    for answer in answers:
        other.send(answer)
    with pytest.raises(KernelRefusal) as refusal:
        ours.qdiscs()
    assert refusal.value.number == number


def test_a_list_that_changed_meanwhile_is_asked_for_again(fake) -> None:
    ours, other = fake
    other.send(message(DONE, MULTI | INTERRUPTED, 1, bytes(4)))
    other.send(message(NEWQDISC, MULTI, 2, QDISC) + message(DONE, MULTI, 2, bytes(4)))
    assert len(ours.qdiscs()) == 1


def test_a_change_waits_for_its_own_acknowledgement(fake) -> None:
    ours, other = fake
    late = message(ERROR, 0, 99, struct.pack("=i", -errno.EPERM) + bytes(16))
    other.send(late)
    other.send(message(ERROR, 0, 1, bytes(20)))
    ours.change_tbf(7, ROOT, OURS, 1e6, 3000, 9000)
    other.send(message(ERROR, 0, 2, struct.pack("=i", -errno.ENOENT) + bytes(16)))
    with pytest.raises(KernelRefusal, match=r"change the rate of tbf 7c01: of interface 7.*ENOENT"):
        ours.change_tbf(7, ROOT, OURS, 1e6, 3000, 9000)


# The kernel


@pytest.fixture
def device():
    """A socket in a namespace with v0, and v0's index."""
    with pairs(1), RouteSocket() as route:
        yield route, next(link.index for link in route.links() if link.name == "v0")


@kernel
def test_a_tick_is_64_ns() -> None:
    """/proc/net/psched: microseconds a second, ... of which the first two are ns in an us and in a tick."""
    first, tick = Path("/proc/net/psched").read_text().split()[:2]
    assert (int(first, 16), int(tick, 16)) == (1000, TICK_NS)


@kernel
@pytest.mark.parametrize("rate", [80.0, 8e3, 1e6, 12_345_678.0, 1e9, 34.359e9, 34.36e9, 123.4567e9])
@pytest.mark.parametrize("overhead", [0, 24])
def test_a_tbf_is_shown_as_predicted_at_every_rate(rate, overhead, device) -> None:
    """To both sides of 2³² byte/s, where the rate moves to another attribute."""
    route, index = device
    burst = 2000 if rate == 80.0 else 20_000  # ticks have 32 bits
    desired = TbfOptions.desired(rate, burst, 90_000, overhead)
    route.add_qdisc(index, ROOT, OURS, "tbf", desired.encode(burst))
    assert TbfOptions.decode(route.qdisc(index).options) == desired
    route.add_qdisc(index, ROOT, 0x10000, "tbf", desired.encode(), replace=True)
    assert TbfOptions.decode(route.qdisc(index).options) == desired
    if overhead == 0:
        for other in (rate, 2 * rate):
            route.change_tbf(index, ROOT, 0x10000, other, burst, 90_000)
            assert TbfOptions.decode(route.qdisc(index).options) == TbfOptions.desired(other, burst, 90_000)


@kernel
@pytest.mark.parametrize("rate", [8e3, 1e6, 12_345_678.0, 34.359e9, 34.36e9])
def test_an_htb_class_is_shown_as_predicted_at_every_rate(rate, device) -> None:
    route, index = device
    minor = classid(OURS, 1)
    route.add_qdisc(index, ROOT, OURS, "htb", HtbOptions(1).encode())
    route.add_class(index, OURS, minor, "htb", HtbClassOptions.desired(1e6, 3000).encode())
    for other in (rate, 2 * rate, rate):
        route.change_htb_class(index, OURS, minor, other, 20_000)
        (shown,) = route.classes(index)
        assert HtbClassOptions.decode(shown.options) == HtbClassOptions.desired(other, 20_000)
    assert HtbOptions.decode(route.qdisc(index).options).default_class == 1


@kernel
def test_what_tc_made_is_read_and_what_we_made_tc_reads(device) -> None:
    route, index = device
    tc("qdisc add dev v0 root handle 5: tbf rate 100mbit burst 20kb limit 30kb peakrate 200mbit mtu 3000")
    found = route.qdisc(index)
    options = TbfOptions.decode(found.options)
    assert (found.kind, found.handle, options.rate, options.peak_rate) == ("tbf", 0x50000, 12_500_000, 25_000_000)
    assert options.limit == 30 * 1024
    assert burst_ticks(20 * 1024, options.rate) == options.buffer
    said = tc("-d qdisc show dev v0")
    tc("qdisc del dev v0 root")
    route.add_qdisc(index, ROOT, 0x50000, "tbf", options.encode())  # the same again
    assert tc("-d qdisc show dev v0") == said
    tc("qdisc del dev v0 root")
    route.add_qdisc(index, ROOT, OURS, "tbf", TbfOptions.desired(10e6, 3000, 90_000).encode(3000))
    assert re.search(r"tbf 7c01: root .*rate 10Mbit burst 3000b.* lat 69.6ms", tc("-d qdisc show dev v0"))


@kernel
@pytest.mark.parametrize("ticks", [24_264, 24_265, 24_266])
def test_a_bucket_that_was_given_in_ticks_is_made_again_to_the_tick(ticks, device) -> None:
    """As old versions of tc give them: 5.4 ticks are a byte at this rate, so most are no whole bytes."""
    route, index = device
    given = TbfOptions(rate=2_875_000, buffer=ticks, limit=25_000)
    plain = attributes(given.encode(3000))
    route.add_qdisc(index, ROOT, 0x50000, "tbf", attribute(1, plain[1]) + attribute(4, plain[4]))
    found = route.qdisc(index).options
    assert TbfOptions.decode(found) == given
    route.delete_qdisc(index, ROOT, 0x50000)
    route.add_qdisc(index, ROOT, 0x50000, "tbf", TbfOptions.decode(found).encode())
    assert route.qdisc(index).options == found


@kernel
@pytest.mark.parametrize("hidden", [False, True])
def test_queues_that_came_with_their_parents_are_shown_if_asked_for(hidden, device) -> None:
    route, index = device
    route.add_qdisc(index, ROOT, OURS, "tbf", TbfOptions.desired(1e6, 3000, 9000).encode(3000))
    kinds = [each.kind for each in route.qdiscs(index, hidden=hidden)]
    assert kinds == (["tbf", "bfifo"] if hidden else ["tbf"])


@kernel
def test_counters_count(device) -> None:
    """Frames to an address of the kernel's own choice: as many as went through another pair of eyes."""
    route, index = device
    route.add_qdisc(index, ROOT, OURS, "pfifo", FifoOptions(100).encode())
    ip("address", "add", "192.0.2.1/30", "dev", "v0")
    ip("neighbour", "add", "192.0.2.2", "lladdr", "02:00:00:00:00:01", "dev", "v0")
    before = route.qdisc(index).counters
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(5):
            sender.sendto(bytes(100), ("192.0.2.2", 9))
    after = route.qdisc(index).counters
    assert after.packets - before.packets == 5
    assert after.bytes - before.bytes == 5 * (100 + 8 + 20 + 14)
    assert (after.drops, after.backlog_bytes, after.backlog_packets) == (0, 0, 0)
    assert [each.counters.packets for each in route.qdiscs(index)] == [after.packets]


SLOW, FULL, FRAME = 800.0, 15_000, 1514


@kernel
@pytest.mark.parametrize(("kind", "at_once"), [("tbf", FULL // FRAME), ("htb", 0)])
def test_a_change_refills_the_bucket_of_a_tbf_and_not_that_of_an_htb(kind, at_once, device) -> None:
    """At 100 byte/s a frame takes 15 s, so what leaves at once leaves from the bucket (`tbf_change` fills it)."""
    route, index = device
    if kind == "tbf":
        route.add_qdisc(index, ROOT, OURS, "tbf", TbfOptions.desired(SLOW, FULL, 90_000).encode(FULL))
    else:
        route.add_qdisc(index, ROOT, OURS, "htb", HtbOptions(1).encode())
        route.add_class(index, OURS, OURS + 1, "htb", HtbClassOptions.desired(SLOW, FULL).encode())
    ip("address", "add", "192.0.2.1/30", "dev", "v0")
    ip("neighbour", "add", "192.0.2.2", "lladdr", "02:00:00:00:00:01", "dev", "v0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:

        def send(frames: int) -> int:
            for _ in range(frames):
                sender.sendto(bytes(FRAME - 42), ("192.0.2.2", 9))
            return route.qdisc(index).counters.packets

        before = send(30)
        assert FULL // FRAME <= before <= FULL // FRAME + 2  # HTB lets its tokens go below 0
        if kind == "tbf":
            route.change_tbf(index, ROOT, OURS, SLOW + 8, FULL, 90_000)
        else:
            route.change_htb_class(index, OURS, OURS + 1, SLOW + 8, FULL)
        assert at_once <= send(1) - before <= at_once + 1  # a new frame wakes it


@kernel
def test_links_are_as_ip_tells_them(device) -> None:
    route, _ = device
    ip("link", "set", "v0", "mtu", "1400", "address", "02:00:00:00:00:aa", "down")
    (found,) = [link for link in route.links() if link.name == "v0"]
    assert (found.mtu, found.address, found.up, found.kind) == (1400, "02:00:00:00:00:aa", False, 1)
    assert {link.name for link in route.links()} == {"lo", "v0", "p0"}


@kernel
@pytest.mark.parametrize(
    ("act", "number", "said"),
    [
        (lambda route, at: route.change_tbf(at, ROOT, 0x50000, 1e6, 3000, 9000), errno.EEXIST, "tbf 5:"),
        (lambda route, at: route.change_tbf(999, ROOT, OURS, 1e6, 3000, 9000), errno.ENODEV, "interface 999"),
        (lambda route, at: route.delete_qdisc(at, ROOT, 0x50000), errno.EINVAL, "remove the queue 5: at root"),
        (lambda route, at: route.add_qdisc(at, ROOT, 0x50000, "pfifo"), errno.EEXIST, "put pfifo 5: at root"),
        (lambda route, at: route.add_qdisc(at, ROOT, 0x50000, "no", replace=True), errno.ENOENT, "kind is unknown"),
        (lambda route, at: route.qdisc(at, 0x990001), errno.ENOENT, "at 99:1"),
        (lambda route, at: route.add_class(at, OURS, OURS + 1, "tbf", b""), errno.EEXIST, "class 7c01:1"),
    ],
)
def test_a_refusal_says_what_the_kernel_says(act, number, said, device) -> None:
    route, index = device
    route.add_qdisc(index, ROOT, OURS, "tbf", TbfOptions.desired(1e6, 3000, 9000).encode(3000))
    with pytest.raises(KernelRefusal) as refusal:
        act(route, index)
    assert refusal.value.number == number
    assert said in str(refusal.value)
    assert route.qdisc(index).handle == OURS


@kernel
def test_a_closed_socket_is_an_error(device) -> None:
    route, index = device
    route.close()
    route.close()
    with pytest.raises(OSError):
        route.qdiscs()
    with pytest.raises(OSError):
        route.change_tbf(index, ROOT, OURS, 1e6, 3000, 9000)


@kernel
def test_sockets_leave_no_descriptor(device) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with RouteSocket() as route:
            route.links()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
