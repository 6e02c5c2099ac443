"""eBPF without a compiler: instructions as bytes, array maps, programs, and their attachment to an interface.

It covers the needs of `netctrl.linux.marking`. All calls use bpf(2), and all objects end with the process: a
map or program lives as long as a process holds it, a link made by `attach_egress` as long as its file is open.

Source: the kernel's Documentation/bpf/standardization/instruction-set.rst, include/uapi/linux/bpf.h, bpf(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Self

from netctrl.core.errors import InvalidValue, NetctrlError, checked_whole

_LDX, _ST, _STX, _JUMP, _ALU64 = 0x01, 0x02, 0x03, 0x05, 0x07
_MEM, _ATOMIC = 0x60, 0xC0
_REGISTER = 0x08  # the source is a register, not the immediate
_SIZES = {1: 0x10, 2: 0x08, 4: 0x00, 8: 0x18}
_JUMPS = {"always": 0x00, "==": 0x10, ">": 0x20, ">=": 0x30, "!=": 0x50, "<": 0xA0, "<=": 0xB0}  # unsigned
_LOAD_64, _CALL, _EXIT, _MAP_FD = 0x18, 0x85, 0x95, 1

_SYSTEM_CALLS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351, "i686": 357}
_MAP_CREATE, _MAP_LOOKUP, _MAP_UPDATE, _PROG_LOAD, _LINK_CREATE = 0, 1, 2, 5, 28
_ARRAY, _SCHED_CLS, _TCX_EGRESS = 2, 3, 47
_LOG_SIZE = 1 << 18
_MAX_INSTRUCTIONS = 4096  # limit for programs with CAP_NET_ADMIN and CAP_BPF only

_REMEDY = {
    errno.EPERM: "needs CAP_BPF and CAP_NET_ADMIN (root has both), and a limit on locked memory before Linux 5.11",
    errno.ENOSYS: "this kernel has no bpf(2)",
}


class BpfError(NetctrlError):
    """Error of a bpf(2) call: `code` is the errno, `log` the verifier's log."""

    def __init__(self, what: str, code: int, log: str = "") -> None:
        self.what, self.code, self.log = what, code, log
        why = _REMEDY.get(code, os.strerror(code))
        super().__init__(f"{what}: {why}" + (f"\n{log.strip()}" if log.strip() else ""))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.what, self.code, self.log)


class R(IntEnum):
    """Register: 0 is the result, 1 to 5 arguments and lost in calls, 6 to 9 preserved, 10 the end of the stack."""

    R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 = range(11)


class Helper(IntEnum):
    """Kernel functions that programs of any licence may call."""

    MAP_LOOKUP = 1
    KTIME_NS = 5
    RANDOM_U32 = 7
    ECN_SET_CE = 97


class Instruction(NamedTuple):
    """Instruction before encoding; a `code` of None is a label, and `target` is a jump's label."""

    code: int | None
    dst: int = 0
    src: int = 0
    offset: int = 0
    immediate: int = 0
    target: str = ""
    second: bool = False
    """Whether an empty instruction follows, for the upper half of 64 bits."""


def move(dst: R, value: R | int) -> Instruction:
    """Instruction dst = value; an immediate has 32 bits with sign."""
    return _alu(0xB0, dst, value)


def add_to(dst: R, value: R | int) -> Instruction:
    """Instruction dst += value."""
    return _alu(0x00, dst, value)


def load(dst: R, base: R, offset: int, size: int) -> Instruction:
    """Instruction dst = the `size` bytes at base + offset, unsigned."""
    return Instruction(_LDX | _MEM | _SIZES[size], dst, base, offset)


def store(base: R, offset: int, value: R | int, size: int) -> Instruction:
    """Instruction: the `size` bytes at base + offset = value."""
    if isinstance(value, R):
        return Instruction(_STX | _MEM | _SIZES[size], base, value, offset)
    return Instruction(_ST | _MEM | _SIZES[size], base, 0, offset, value)


def add_atomic(base: R, offset: int, value: R) -> Instruction:
    """Instruction: the 8 bytes at base + offset += value, atomically."""
    return Instruction(_STX | _ATOMIC | _SIZES[8], base, value, offset)


def load_map(dst: R, map_: BpfFile) -> Instruction:
    """Instruction dst = the map, for a helper's argument."""
    return Instruction(_LOAD_64, dst, _MAP_FD, 0, map_.fd, second=True)


def call(helper: Helper) -> Instruction:
    """Instruction R0 = helper(R1, ..., R5)."""
    return Instruction(_CALL, immediate=helper)


def jump(target: str, left: R | None = None, compare: str = "always", right: R | int = 0) -> Instruction:
    """Jump to label `target`, always or where `left compare right` holds, unsigned."""
    code = _JUMP | _JUMPS[compare]
    if left is None:
        return Instruction(code, target=target)
    if isinstance(right, R):
        return Instruction(code | _REGISTER, left, right, target=target)
    return Instruction(code, left, immediate=right, target=target)


def label(name: str) -> Instruction:
    """Target of jumps; not an instruction."""
    return Instruction(None, target=name)


def leave() -> Instruction:
    """End of the program, with its result in R0."""
    return Instruction(_EXIT)


def assemble(instructions: Sequence[Instruction]) -> bytes:
    """Bytes of a program, 8 per instruction.

    Raises
    ------
    InvalidValue
        A missing or duplicate label, an offset beyond 16 bits, an immediate beyond 32 bits, or a program longer than
        some kernels take.
    """
    places: dict[str, int] = {}
    numbered: list[tuple[int, Instruction]] = []
    at = 0
    for each in instructions:
        if each.code is not None:
            numbered.append((at, each))
            at += 2 if each.second else 1
        elif each.target in places:
            raise InvalidValue("instructions", f"label {each.target} more than once", "each label once")
        else:
            places[each.target] = at
    if at > _MAX_INSTRUCTIONS:
        raise InvalidValue("instructions", at, f"at most {_MAX_INSTRUCTIONS} instructions")
    return b"".join(_bytes(each, at, places) for at, each in numbered)


def _bytes(each: Instruction, at: int, places: dict[str, int]) -> bytes:
    offset = each.offset
    if each.target:
        if each.target not in places:
            raise InvalidValue("instructions", f"a jump to {each.target}", f"labels {', '.join(places) or '(none)'}")
        offset = places[each.target] - at - 1
    if not -(2**15) <= offset < 2**15:
        raise InvalidValue("offset", offset, "a signed 16-bit number")
    if not -(2**31) <= each.immediate < 2**31:
        raise InvalidValue("immediate", each.immediate, "a signed 32-bit number")
    words = struct.pack("=BBhi", each.code, each.src << 4 | each.dst, offset, each.immediate)
    return words + bytes(8) if each.second else words


def _alu(operation: int, dst: R, value: R | int) -> Instruction:
    if isinstance(value, R):
        return Instruction(_ALU64 | operation | _REGISTER, dst, value)
    return Instruction(_ALU64 | operation, dst, immediate=value)


class BpfFile:
    """File descriptor of a BPF object, closed at the end of a `with` block, or by `close`."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        """Close the descriptor; repeated calls do nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ArrayMap(BpfFile):
    """Array of one value of `value_size` bytes, shared by a program and this process.

    Parameters
    ----------
    value_size : int
        A multiple of 8 [byte], which aligns counters of 8 bytes.
    name : str
        At most 15 letters, digits or _, for `bpftool map`.

    Raises
    ------
    InvalidValue
        A size or name outside these bounds.
    BpfError
        The kernel refuses.
    """

    def __init__(self, value_size: int, name: str = "") -> None:
        checked_whole("value_size", value_size, "8 to 65536 bytes", at_least=8, at_most=65536)
        if value_size % 8:
            raise InvalidValue("value_size", value_size, "a multiple of 8 bytes")
        self.value_size = value_size
        attributes = struct.pack("=7I16s", _ARRAY, 4, value_size, 1, 0, 0, 0, _name(name))
        super().__init__(_bpf("make a map", _MAP_CREATE, attributes))

    def lookup(self) -> bytes:
        """The value."""
        value = ctypes.create_string_buffer(self.value_size)
        self._element("read a map", _MAP_LOOKUP, value)
        return value.raw

    def update(self, value: bytes) -> None:
        """Set the value. A program that runs meanwhile may see it partly changed."""
        if len(value) != self.value_size:
            raise InvalidValue("value", f"{len(value)} bytes", f"{self.value_size} bytes")
        self._element("change a map", _MAP_UPDATE, ctypes.create_string_buffer(value, self.value_size))

    def _element(self, what: str, command: int, value: ctypes.Array[ctypes.c_char]) -> None:
        index = ctypes.c_uint32(0)
        _bpf(what, command, struct.pack("=IIQQQ", self.fd, 0, ctypes.addressof(index), ctypes.addressof(value), 0))


class Program(BpfFile):
    """Classifier accepted by the kernel's verifier.

    Parameters
    ----------
    instructions : bytes
        From `assemble`.
    name : str
        At most 15 letters, digits or _.

    Raises
    ------
    InvalidValue
        No instructions, or a name outside these bounds.
    BpfError
        The kernel refuses; the end of the verifier's log gives the reason.
    """

    def __init__(self, instructions: bytes, name: str = "") -> None:
        if not instructions or len(instructions) % 8:
            raise InvalidValue("instructions", f"{len(instructions)} bytes", "8 bytes for each, at least one")
        try:
            super().__init__(_load(instructions, name, log=False))
        except BpfError as error:
            if error.code not in (errno.EACCES, errno.EINVAL, errno.E2BIG):
                raise
            super().__init__(_load(instructions, name, log=True))  # repeated for the verifier's log


def attach_egress(program: Program, interface: int) -> BpfFile:
    """Run a classifier on packets that leave an interface, before any queue, while the returned file is open.

    It is a tc eXpress link (Linux 6.6), which ends with the process, however it ends, and needs no qdisc. The program's
    TCX_NEXT (-1) passes packets to other programs there. For older kernels see `netctrl.linux.marking`.

    Parameters
    ----------
    program : Program
    interface : int
        Its index.

    Raises
    ------
    BpfError
        The kernel refuses; EINVAL before Linux 6.6.
    """
    attributes = struct.pack("=IIII", program.fd, interface, _TCX_EGRESS, 0)
    return BpfFile(_bpf(f"attach a program to interface {interface}", _LINK_CREATE, attributes))


def _load(instructions: bytes, name: str, *, log: bool) -> int:
    code = ctypes.create_string_buffer(instructions, len(instructions))
    terms = ctypes.create_string_buffer(b"BSD")  # `Helper` has only functions that don't require the GPL
    text = ctypes.create_string_buffer(_LOG_SIZE if log else 1)
    what = (_SCHED_CLS, len(instructions) // 8, ctypes.addressof(code), ctypes.addressof(terms))
    said = (1, _LOG_SIZE, ctypes.addressof(text)) if log else (0, 0, 0)
    attributes = struct.pack("=IIQQIIQ8x16s8x", *what, *said, _name(name))
    try:
        return _bpf("load a program", _PROG_LOAD, attributes)
    except BpfError as error:
        raise BpfError(error.what, error.code, text.value.decode(errors="replace")[-4000:]) from None


def _name(name: str) -> bytes:
    if len(name) > 15 or not re.fullmatch("[A-Za-z0-9_]*", name):
        raise InvalidValue("name", name, "at most 15 letters, digits or _")
    return name.encode()


def _bpf(what: str, command: int, attributes: bytes) -> int:
    machine = platform.machine()
    if machine not in _SYSTEM_CALLS or platform.system() != "Linux":
        raise BpfError(f"{what} ({platform.system()} on {machine})", errno.ENOSYS)
    given = ctypes.create_string_buffer(attributes, len(attributes))
    number, size = ctypes.c_long(_SYSTEM_CALLS[machine]), ctypes.c_ulong(len(attributes))
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    result = syscall(number, ctypes.c_long(command), ctypes.byref(given), size)
    if result < 0:
        raise BpfError(what, ctypes.get_errno())
    return int(result)
