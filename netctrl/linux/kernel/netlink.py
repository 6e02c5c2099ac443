"""The kernel's queues by raw rtnetlink messages (RFC 3549; linux/rtnetlink.h): read, create, change, delete.

A failed query raises an exception, so an empty answer always means that there is nothing.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Self

from netctrl.core.errors import NetctrlError
from netctrl.linux.export.records import HTB_QUANTUM
from netctrl.linux.kernel import messages
from netctrl.linux.kernel.messages import HEAD, IFINFOMSG, ROOT, TCMSG, Link, Qdisc, handle_text
from netctrl.linux.kernel.qdisc import HtbClassOptions, TbfOptions, rate_bytes

_SOL_NETLINK, _CAP_ACK, _EXT_ACK = 270, 10, 11
_ECHO, _DUMP = 0x8, 0x300
_MULTI, _DUMP_INTERRUPTED, _CAPPED, _ACK_TLVS = 0x2, 0x10, 0x100, 0x200
_ERROR, _DONE = 2, 3
_GETLINK, _GETQDISC, _GETTCLASS, _GETTFILTER = 18, 38, 42, 46
_KIND, _DUMP_INVISIBLE = 1, 10  # TCA_*

_NUMBER = struct.Struct("=I")
_NUMBER_AT = 8
_RECEIVE = 1 << 18
_DUMP_TRIES = 5


class KernelRefusal(NetctrlError):
    """The kernel refused a request; `number` is its errno."""

    def __init__(self, what: str, number: int, said: str = "") -> None:
        self.what, self.number, self.said = what, number, said
        name = errno.errorcode.get(number, str(number))
        remedy = ""
        if number == errno.EPERM:
            remedy = "; this needs CAP_NET_ADMIN in the network's namespace: run as root"
        elif number == errno.ENOENT and "kind is unknown" in said:
            remedy = ": this kernel lacks that queueing discipline (CONFIG_NET_SCH_*)"
        super().__init__(f"{what}: the kernel says {said or os.strerror(number)} ({name}){remedy}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.what, self.number, self.said)


class RouteSocket:
    """rtnetlink socket of the network namespace in which it is created; one thread at a time.

    Parameters
    ----------
    timeout_s : float
        Time limit for an answer [s].

    Raises
    ------
    KernelRefusal
        Raised by all methods, with the kernel's message; EPERM names the capability.
    """

    def __init__(self, timeout_s: float = 5.0) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        try:
            self._socket.bind((0, 0))
            self._socket.connect((0, 0))
            seconds, rest = divmod(timeout_s, 1.0)
            self._socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", int(seconds), int(rest * 1e6))
            )
            self._socket.setsockopt(_SOL_NETLINK, _EXT_ACK, 1)
            self._socket.setsockopt(_SOL_NETLINK, _CAP_ACK, 1)
        except BaseException:
            self._socket.close()
            raise
        self._sequence = 0
        self._looked: dict[int, tuple[Qdisc, ...]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket; repeated calls do nothing."""
        self._socket.close()

    def fileno(self) -> int:
        """Descriptor of the socket."""
        return self._socket.fileno()

    def links(self) -> tuple[Link, ...]:
        """All interfaces of the namespace."""
        rows = self._dump(_GETLINK, messages.NEWLINK, IFINFOMSG.pack(0, 0, 0, 0, 0), "list the interfaces")
        return tuple(map(messages.read_link, rows))

    def link(self, index: int) -> Link | None:
        """One interface, by a query for it alone; None where there is none."""
        what = f"read interface {index}"
        self._send(messages.message(_GETLINK, 0, IFINFOMSG.pack(0, 0, index, 0, 0)))
        try:
            return next(messages.read_link(body) for kind, body in self._answer(what) if kind == messages.NEWLINK)
        except KernelRefusal as refusal:
            if refusal.number != errno.ENODEV:
                raise
            return None

    def qdiscs(self, index: int | None = None, hidden: bool = False) -> tuple[Qdisc, ...]:
        """All queues of the namespace, or of one interface; with `hidden` also those that come with their parents.

        The kernel lists those of all interfaces, whichever is asked for: see `one_look`.
        """
        if index is not None and self._looked is not None and not hidden:
            return self._looked.get(index, ())
        ask = TCMSG.pack(0, 0, 0, 0, 0)
        if hidden:
            ask += messages.attribute(_DUMP_INVISIBLE, b"")
        rows = self._dump(_GETQDISC, messages.NEWQDISC, ask, "list queues")
        # Others are left out before their attributes are read, which takes most of the time.
        return tuple(messages.read_qdisc(row) for row in rows if index is None or TCMSG.unpack_from(row)[1] == index)

    @contextmanager
    def one_look(self) -> Generator[None]:
        """Context in which `qdiscs` of an interface answers from one list, made now; nothing is changed within it.

        For many interfaces: a list for each would take time quadratic in their number.
        """
        looked: dict[int, list[Qdisc]] = {}
        for each in self.qdiscs():
            looked.setdefault(each.index, []).append(each)
        self._looked = {index: tuple(each) for index, each in looked.items()}
        try:
            yield
        finally:
            self._looked = None

    def qdisc(self, index: int, parent: int = ROOT, handle: int = 0) -> Qdisc:
        """Queue at a place, by a query for it alone, which is cheaper than a list; ENOENT where there is none.

        The kernel answers by a notification, which `tc monitor` also shows.
        """
        what = f"read the queue at {handle_text(parent)} of interface {index}"
        self._send(messages.message(_GETQDISC, _ECHO, TCMSG.pack(0, index, handle, parent, 0)))
        for kind, content in self._answer(what):
            if kind == messages.NEWQDISC:
                return messages.read_qdisc(content)
        raise KernelRefusal(what, errno.EPROTO, "an answer without the requested queue")

    def classes(self, index: int) -> tuple[Qdisc, ...]:
        """Classes of an interface's queues."""
        what = f"list classes of interface {index}"
        rows = self._dump(_GETTCLASS, messages.NEWTCLASS, TCMSG.pack(0, index, 0, 0, 0), what)
        return tuple(map(messages.read_qdisc, rows))

    def filters(self, index: int, parent: int) -> int:
        """Number of filters on a queue or class."""
        what = f"list filters of interface {index}"
        rows = self._dump(_GETTFILTER, messages.NEWTFILTER, TCMSG.pack(0, index, 0, parent, 0), what)
        return sum(_KIND in messages.attributes(row, TCMSG.size) for row in rows)

    def request(self, what: str, *changes: bytes) -> None:
        """Make changes (`netctrl.linux.kernel.messages`), one after another; `what` is for the refusal's message."""
        for each in changes:
            self._send(each)
            for _ in self._answer(what):
                pass

    def add_qdisc(
        self, index: int, parent: int, handle: int, kind: str, options: bytes = b"", replace: bool = False
    ) -> None:
        """Create a queue; over an existing one with a handle EEXIST, or with `replace` an atomic replacement."""
        what = f"put {kind} {handle_text(handle)} at {handle_text(parent)} of interface {index}"
        how = messages.REPLACE if replace else messages.CREATE
        self.request(what, messages.set_queue(index, parent, handle, kind, options, how))

    def delete_qdisc(self, index: int, parent: int, handle: int) -> None:
        """Remove the queue at a place if it has this handle; the kernel's default returns."""
        what = f"remove the queue {handle_text(handle)} at {handle_text(parent)} of interface {index}"
        self.request(what, messages.delete_queue(index, parent, handle))

    def add_class(self, index: int, parent: int, handle: int, kind: str, options: bytes) -> None:
        """Create a class; EEXIST where there is one."""
        what = f"make the class {handle_text(handle)} of interface {index}"
        self.request(what, messages.set_class(index, parent, handle, kind, options))

    def change_tbf(
        self, index: int, parent: int, handle: int, rate_bit_per_s: float, burst_bytes: int, limit_bytes: int
    ) -> None:
        """Change the rate of the TBF with this handle; its bucket is full afterwards (`tbf_change` in sch_tbf.c).

        So changes every T seconds pass up to 8 burst/T bit/s more than the rate, unlike those of an HTB class
        (`change_htb_class`). The burst stays the same number of bytes at all rates. ENOENT or EEXIST where the queue
        is gone.
        """
        options = TbfOptions(rate_bytes(rate_bit_per_s), 0, limit_bytes).encode(burst_bytes)
        what = f"change the rate of tbf {handle_text(handle)} of interface {index}"
        self.request(what, messages.set_queue(index, parent, handle, "tbf", options, messages.CHANGE))

    def change_htb_class(
        self, index: int, parent: int, handle: int, rate_bit_per_s: float, burst_bytes: int, quantum: int = HTB_QUANTUM
    ) -> None:
        """Change the rate and ceiling of the HTB class with this handle; its tokens are unchanged."""
        options = HtbClassOptions.desired(rate_bit_per_s, burst_bytes, quantum=quantum).encode()
        what = f"change the rate of htb class {handle_text(handle)} of interface {index}"
        self.request(what, messages.set_class(index, parent, handle, "htb", options, messages.CHANGE))

    def _send(self, message: bytes) -> None:
        self._sequence = self._sequence + 1 & 0xFFFFFFFF
        numbered = bytearray(message)
        _NUMBER.pack_into(numbered, _NUMBER_AT, self._sequence)
        self._socket.send(numbered)

    def _answer(self, what: str) -> Iterator[tuple[int, bytes]]:
        """Messages that answer the last one, to the end of a list or the acknowledgement; KernelRefusal for an error.

        Late answers to earlier requests are skipped.
        """
        while True:
            content, at = self._receive(what), 0
            while at + HEAD.size <= len(content):
                length, kind, flags, sequence, _ = HEAD.unpack_from(content, at)
                if length < HEAD.size or at + length > len(content):
                    raise KernelRefusal(what, errno.EPROTO, "a truncated message")
                body = content[at + HEAD.size : at + length]
                at += (length + 3) & ~3
                if sequence != self._sequence:
                    continue
                if flags & _DUMP_INTERRUPTED:
                    raise KernelRefusal(what, errno.EINTR, "the list changed while it was read")
                if kind in (_ERROR, _DONE):
                    _check(what, kind, flags, body)
                    return
                yield kind, body
                if not flags & _MULTI:  # a single answer, without an acknowledgement
                    return

    def _receive(self, what: str) -> bytes:
        try:
            content, _, flags, _ = self._socket.recvmsg(_RECEIVE)
        except BlockingIOError:
            raise KernelRefusal(what, errno.ETIMEDOUT) from None
        except OSError as error:
            raise KernelRefusal(what, error.errno or errno.EIO) from None
        if flags & socket.MSG_TRUNC:
            raise KernelRefusal(what, errno.EMSGSIZE, f"more than {_RECEIVE} bytes at once")
        return content

    def _dump(self, ask: int, takes: int, content: bytes, what: str) -> list[bytes]:
        """Complete list, requested again where it changed meanwhile."""
        for left in reversed(range(_DUMP_TRIES)):
            self._send(messages.message(ask, _DUMP, content))
            try:
                return [body for kind, body in self._answer(what) if kind == takes]
            except KernelRefusal as refusal:
                if refusal.number != errno.EINTR or not left:
                    raise
        raise KernelRefusal(what, errno.EINTR)


def _check(what: str, kind: int, flags: int, body: bytes) -> None:
    """Raise KernelRefusal for an error in an acknowledgement or at the end of a list."""
    number = -int.from_bytes(body[:4], sys.byteorder, signed=True) if len(body) >= 4 else 0
    if number == 0:
        return
    said = ""
    if kind == _ERROR and flags & _ACK_TLVS:
        at = 20 if flags & _CAPPED else 4 + (int.from_bytes(body[4:8], sys.byteorder) + 3 & ~3)
        said = messages.attributes(body, at).get(1, b"").split(b"\0")[0].decode(errors="replace")
    raise KernelRefusal(what, number, said.rstrip("."))
