"""Bursts of UDP packets, one system call each (sendmmsg): in the kernel in virtual time a call costs 50 us of wall."""

import ctypes
import socket
import time
from collections.abc import Sequence

import numpy as np
from linux.traffic import FRAME_OVERHEAD, Sent

from netctrl.core.units import NANOSECOND
from netctrl.kernel.regulated.datagrams import MESSAGE, PART

_BUFFER = 4 * 2**20


def send_bursts(
    address: str, port: int, times_s: Sequence[np.ndarray], packets: int, frame_bytes: int, begin_s: float
) -> list[Sent]:
    """Send `packets` frames at once at each time of each flow after `begin_s` of CLOCK_MONOTONIC; a Sent a flow."""
    due = np.concatenate(times_s)
    flow = np.repeat(np.arange(len(times_s)), [len(each) for each in times_s])
    order = np.argsort(due, kind="stable")
    ticks = ((begin_s + due[order]) / NANOSECOND).astype(np.int64)
    content, part, messages = (
        np.zeros(frame_bytes - FRAME_OVERHEAD, "u1"),
        np.zeros(1, PART),
        np.zeros(packets, MESSAGE),
    )
    part["base"], part["size"] = content.ctypes.data, len(content)
    messages["parts"], messages["count"] = part.ctypes.data, 1
    burst = ctypes.c_void_p(messages.ctypes.data)
    send = ctypes.CDLL(None, use_errno=True).sendmmsg
    sockets = [_connected(address, port) for _ in times_s]
    descriptors = [each.fileno() for each in sockets]
    accepted, latest = [0] * len(sockets), [0] * len(sockets)
    try:
        for when, k in zip(ticks.tolist(), flow[order].tolist(), strict=True):
            left = when - time.monotonic_ns()
            if left > 0:
                time.sleep(left * NANOSECOND)
            else:
                latest[k] = max(latest[k], -left)
            accepted[k] += max(send(descriptors[k], burst, packets, socket.MSG_DONTWAIT), 0)
    finally:
        for each in sockets:
            each.close()
    offered = [packets * len(each) for each in times_s]
    return [
        Sent(offered[k], offered[k] - accepted[k], frame_bytes, latest[k] * NANOSECOND) for k in range(len(sockets))
    ]


def _connected(address: str, port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
    found.connect((address, port))
    return found
