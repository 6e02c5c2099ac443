"""Delay lines in user space, for kernels without netem: packets pass a TUN device and return a fixed time later."""

import ctypes
import fcntl
import os
import select
import struct
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from netctrl.core.errors import NetctrlError
from netctrl.core.units import NANOSECOND

_DEVICE = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_LARGEST = 65536
_AT_ONCE = 64  # packets read from one line before the other lines and due packets
_PR_SET_TIMERSLACK = 29


class Line(NamedTuple):
    """One delay line."""

    descriptor: int
    """Descriptor of its TUN device."""
    delay_s: float
    """Delay of packets [s]."""
    bunch_s: float = 0.0
    """Packets return together at multiples of this, as from a shared medium with turns [s]; 0: individually."""


def open_tun(name: str) -> int:
    """New TUN device in the calling thread's namespace, as a non-blocking descriptor; closing it removes the device.

    Raises
    ------
    NetctrlError
        No TUN in the kernel, no privilege (CAP_NET_ADMIN), or a name in use.
    """
    try:
        descriptor = os.open(_DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NetctrlError(f"{_DEVICE}: {error.strerror}; a delay line needs the kernel's TUN (CONFIG_TUN)") from None
    try:
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    except OSError as error:
        os.close(descriptor)
        raise NetctrlError(f"TUN device {name!r}: {error.strerror}; needs CAP_NET_ADMIN and an unused name") from None
    return descriptor


def pump(lines: Sequence[Line]) -> None:
    """Return the packets of each line after its delay, in order; runs until it is killed.

    A packet's delay counts from its reading, so lateness of this process adds to it. A packet that the device rejects
    (because it is down) is dropped.
    """
    # A priority above that of usual processes, and sleeps that end on time (the usual slack is 50 us).
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    with suppress(OSError):  # without CAP_SYS_NICE delays grow on a busy machine
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    waiting: dict[int, deque[tuple[int, bytes]]] = {line.descriptor: deque() for line in lines}
    times = {line.descriptor: tuple(round(each / NANOSECOND) for each in line[1:]) for line in lines}
    descriptors = list(times)
    now = time.monotonic_ns
    while True:
        due = min((queue[0][0] for queue in waiting.values() if queue), default=None)
        timeout = None if due is None else max(due - now(), 0) * NANOSECOND
        ready, _, _ = select.select(descriptors, (), (), timeout)
        for descriptor in ready:
            _take(descriptor, waiting[descriptor], *times[descriptor])
        for descriptor, queue in waiting.items():
            while queue and queue[0][0] <= now():
                with suppress(OSError):  # the device is down, or has no room: the packet is lost, as on a wire
                    os.write(descriptor, queue.popleft()[1])


def _take(descriptor: int, queue: deque[tuple[int, bytes]], delay: int, bunch: int) -> None:
    for _ in range(_AT_ONCE):
        try:
            packet = os.read(descriptor, _LARGEST)
        except BlockingIOError:
            return
        due = time.monotonic_ns() + delay
        queue.append((-(-due // bunch) * bunch if bunch else due, packet))
