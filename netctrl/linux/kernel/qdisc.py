"""TBF, HTB and FIFO options as the kernel keeps them, to and from bytes (linux/pkt_sched.h, sch_tbf.c, sch_htb.c).

The kernel keeps rates as whole bytes per second, in 64 bits, and bursts as a time in ticks of 64 ns at that rate.
Lengths are those of frames, Ethernet header included (`netctrl.linux.export.records.ETHERNET_HEADER`).
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE
from netctrl.linux.export.records import HTB_QUANTUM
from netctrl.linux.kernel.messages import attribute, attributes

TICK_NS = 64
"""PSCHED_SHIFT is 6 (include/net/pkt_sched.h), also in /proc/net/psched."""

_NS = 10**9
_U32 = 2**32 - 1
_ETHERNET = 1  # TC_LINKLAYER_ETHERNET: lengths as they are, no table of rates

# struct tc_ratespec: cell_log, linklayer, overhead, cell_align, mpu, rate
_RATE = "BBHhHI"
_TBF = struct.Struct("=" + _RATE * 2 + "III")
_HTB = struct.Struct("=" + _RATE * 2 + "IIIII")
_GLOB = struct.Struct("=IIIII")
_TBF_PARMS, _TBF_RATE64, _TBF_PRATE64, _TBF_BURST, _TBF_PBURST = 1, 4, 5, 6, 7
_HTB_PARMS, _HTB_INIT, _HTB_DIRECT_QLEN, _HTB_RATE64, _HTB_CEIL64 = 1, 2, 5, 6, 7
_HTB_VERSION = 3


def rate_bytes(rate_bit_per_s: float) -> int:
    """The kernel's rate nearest to one in bit/s [byte/s]; raises InvalidValue where that is 0."""
    rate = round(rate_bit_per_s / BITS_PER_BYTE)
    if not 1 <= rate < 2**63:
        raise InvalidValue("rate_bit_per_s", rate_bit_per_s, "a rate of at least 8 bit/s: the kernel has whole byte/s")
    return rate


def transmission_ns(length: int, rate: int) -> int:
    """Time that the kernel computes for `length` bytes at `rate` byte/s [ns].

    It is a product with a 32-bit reciprocal (`psched_ratecfg_precompute`, `psched_l2t_ns`), so at most one part in 2³¹
    below length/rate.
    """
    factor, mult, shift = _NS, 1, 0
    while True:
        mult = factor // rate
        if mult & (1 << 31) or factor & (1 << 63):
            break
        factor <<= 1
        shift += 1
    return length * (mult & _U32) >> shift


def burst_ticks(burst_bytes: int, rate: int, overhead: int = 0) -> int:
    """Ticks that a TBF of `rate` byte/s reports for a burst given in bytes."""
    return transmission_ns(burst_bytes + overhead, rate) // TICK_NS


def largest_burst(ticks: int, rate: int, overhead: int = 0) -> int:
    """Largest burst in bytes that a TBF of `rate` byte/s reports as `ticks`: it keeps bytes but reports ticks."""
    low, high = 0, (ticks + 1) * TICK_NS * rate // _NS + overhead + 2
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if burst_ticks(middle, rate, overhead) <= ticks else (low, middle - 1)
    return low


@dataclass(frozen=True, slots=True)
class TbfOptions:
    """Options of a TBF as the kernel reports them."""

    rate: int
    """[byte/s]"""
    buffer: int
    """The bucket [tick]"""
    limit: int
    """[byte]"""
    overhead: int = 0
    mpu: int = 0
    link_layer: int = _ETHERNET
    peak_rate: int = 0
    """[byte/s]; 0: none"""
    mtu: int = 0
    """The bucket of the peak rate [tick]"""

    @classmethod
    def desired(cls, rate_bit_per_s: float, burst_bytes: int, limit_bytes: int, overhead: int = 0) -> TbfOptions:
        """Options that the kernel will report for a request; raises InvalidValue where its ticks overflow."""
        rate = rate_bytes(rate_bit_per_s)
        ticks = _held(burst_ticks(burst_bytes, rate, overhead), burst_bytes, rate)
        return cls(rate, ticks, limit_bytes, overhead)

    @classmethod
    def decode(cls, options: bytes) -> TbfOptions:
        """Options from the payload of TCA_OPTIONS; raises ValueError where that is not a TBF's."""
        found = attributes(options)
        fields = _fields(_TBF, found.get(_TBF_PARMS), "TBF")
        return cls(
            rate=max(fields[5], _u64(found.get(_TBF_RATE64))),
            buffer=fields[13],
            limit=fields[12],
            overhead=fields[2],
            mpu=fields[4],
            link_layer=fields[1],
            peak_rate=max(fields[11], _u64(found.get(_TBF_PRATE64))),
            mtu=fields[14],
        )

    def encode(self, burst_bytes: int | None = None) -> bytes:
        """Payload of TCA_OPTIONS; a burst without bytes becomes the most bytes that its ticks allow.

        Ticks without a matching whole number of bytes were set as ticks, and are set as ticks again.
        """
        burst = self._burst(self.buffer, self.rate) if burst_bytes is None else burst_bytes
        rate = _rate(self.link_layer, self.overhead, self.mpu, self.rate)
        peak = _rate(_ETHERNET, self.overhead, self.mpu, self.peak_rate) if self.peak_rate else (0,) * 6
        parts = [attribute(_TBF_PARMS, _TBF.pack(*rate, *peak, self.limit, min(self.buffer, _U32), self.mtu))]
        if burst is not None:
            parts.append(attribute(_TBF_BURST, struct.pack("=I", burst)))
        parts.append(attribute(_TBF_RATE64, struct.pack("=Q", self.rate)))
        if self.peak_rate:
            parts.append(attribute(_TBF_PRATE64, struct.pack("=Q", self.peak_rate)))
            peak_burst = self._burst(self.mtu, self.peak_rate)
            if peak_burst is not None:
                parts.append(attribute(_TBF_PBURST, struct.pack("=I", peak_burst)))
        return b"".join(parts)

    def _burst(self, ticks: int, rate: int) -> int | None:
        burst = largest_burst(ticks, rate, self.overhead)
        return burst if burst_ticks(burst, rate, self.overhead) == ticks else None


@dataclass(frozen=True, slots=True)
class HtbOptions:
    """Options of an HTB's root as the kernel reports them."""

    default_class: int
    """Minor number of the class for packets without a matching filter."""
    rate_to_quantum: int = 10
    direct_queue: int | None = None
    """Length of the queue beside all classes [packet]; None: the interface's own."""

    @classmethod
    def decode(cls, options: bytes) -> HtbOptions:
        """Options from the payload of TCA_OPTIONS; raises ValueError where that is not an HTB's."""
        found = attributes(options)
        fields = _fields(_GLOB, found.get(_HTB_INIT), "HTB")
        direct = found.get(_HTB_DIRECT_QLEN)
        return cls(fields[2], fields[1], None if direct is None else int.from_bytes(direct, sys.byteorder))

    def encode(self) -> bytes:
        """Payload of TCA_OPTIONS."""
        init = attribute(_HTB_INIT, _GLOB.pack(_HTB_VERSION, self.rate_to_quantum, self.default_class, 0, 0))
        if self.direct_queue is None:
            return init
        return init + attribute(_HTB_DIRECT_QLEN, struct.pack("=I", self.direct_queue))


@dataclass(frozen=True, slots=True)
class HtbClassOptions:
    """Options of an HTB class as the kernel reports them."""

    rate: int
    """[byte/s]"""
    ceil: int
    """[byte/s]"""
    buffer: int
    """[tick]"""
    ceil_buffer: int
    """[tick]"""
    quantum: int = 0
    """[byte]; in a request 0 means the kernel's choice"""
    priority: int = 0
    overhead: int = 0
    mpu: int = 0
    ceil_overhead: int = 0
    ceil_mpu: int = 0
    link_layer: int = _ETHERNET
    ceil_link_layer: int = _ETHERNET

    @classmethod
    def desired(
        cls, rate_bit_per_s: float, burst_bytes: int, overhead: int = 0, quantum: int = HTB_QUANTUM
    ) -> HtbClassOptions:
        """A class that never borrows: its ceiling is its rate."""
        rate = rate_bytes(rate_bit_per_s)
        ticks = _held(max(1, -(-burst_bytes * _NS // (rate * TICK_NS))), burst_bytes, rate)
        return cls(rate, rate, ticks, ticks, quantum, overhead=overhead, ceil_overhead=overhead)

    @classmethod
    def decode(cls, options: bytes) -> HtbClassOptions:
        """Options from the payload of TCA_OPTIONS; raises ValueError where that is not an HTB class's."""
        found = attributes(options)
        fields = _fields(_HTB, found.get(_HTB_PARMS), "HTB class")
        return cls(
            rate=max(fields[5], _u64(found.get(_HTB_RATE64))),
            ceil=max(fields[11], _u64(found.get(_HTB_CEIL64))),
            buffer=fields[12],
            ceil_buffer=fields[13],
            quantum=fields[14],
            priority=fields[16],
            overhead=fields[2],
            mpu=fields[4],
            ceil_overhead=fields[8],
            ceil_mpu=fields[10],
            link_layer=fields[1],
            ceil_link_layer=fields[7],
        )

    def encode(self) -> bytes:
        """Payload of TCA_OPTIONS."""
        rate = _rate(self.link_layer, self.overhead, self.mpu, self.rate)
        ceil = _rate(self.ceil_link_layer, self.ceil_overhead, self.ceil_mpu, self.ceil)
        tail = (self.buffer, self.ceil_buffer, self.quantum, 0, self.priority)
        return (
            attribute(_HTB_PARMS, _HTB.pack(*rate, *ceil, *tail))
            + attribute(_HTB_RATE64, struct.pack("=Q", self.rate))
            + attribute(_HTB_CEIL64, struct.pack("=Q", self.ceil))
        )


@dataclass(frozen=True, slots=True)
class FifoOptions:
    """Limit of a bfifo or pfifo [byte] or [packet]."""

    limit: int

    @classmethod
    def decode(cls, options: bytes) -> FifoOptions:
        """Options from the payload of TCA_OPTIONS; raises ValueError where that is not a FIFO's."""
        return cls(*_fields(struct.Struct("=I"), options, "FIFO"))

    def encode(self) -> bytes:
        """Payload of TCA_OPTIONS."""
        return struct.pack("=I", self.limit)


def _rate(link_layer: int, overhead: int, mpu: int, rate: int) -> tuple[int, ...]:
    """Encoded tc_ratespec; a rate beyond 32 bits is in an attribute of its own."""
    return 0, link_layer or _ETHERNET, overhead, 0, mpu, min(rate, _U32)


def _fields(form: struct.Struct, payload: bytes | None, what: str) -> tuple[int, ...]:
    if payload is None or len(payload) < form.size:
        size = "none" if payload is None else f"{len(payload)} bytes"
        raise ValueError(f"options of a {what}: got {size}, takes {form.size} bytes")
    return form.unpack_from(payload)


def _held(ticks: int, burst: int, rate: int) -> int:
    if ticks > _U32:
        most = _U32 * TICK_NS * rate // _NS
        raise InvalidValue("burst", burst, f"at most {most} bytes at {rate} byte/s, the 275 s that ticks can hold")
    return ticks


def _u64(payload: bytes | None) -> int:
    return 0 if payload is None else int.from_bytes(payload, sys.byteorder)
