"""Messages between agents: their bytes, who may have sent them, and which were there before.

A datagram holds one message, of at most `MAX_BYTES`: no network splits it. All that is cheap is looked at before its
code is computed, so that a flood of forged ones costs little. Clocks play no part in what is new: a sender draws a
session when it starts and numbers its messages, and a session counts once it has answered the receiver's own.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import struct
from enum import IntEnum, StrEnum
from math import isfinite
from typing import NamedTuple

from netctrl.errors import FileError, InvalidValue

__all__ = [
    "MAX_BYTES",
    "MAX_ENTRIES",
    "MIN_BYTES",
    "VERSION",
    "Dropped",
    "Echo",
    "Entry",
    "Kind",
    "Message",
    "Route",
    "Window",
    "admit",
    "digest",
    "new_session",
    "pack",
    "read_key",
    "unpack",
]

VERSION = 1
VALUES = 4
"""Numbers of an entry."""
MAX_ENTRIES = 30

_MAGIC = b"nC"
_HEAD = struct.Struct(">2sBBHH")  # magic, version, kind, entries, 0
_BODY = struct.Struct(">8s8s8sQQQQQQQ")  # sender, receiver, network, session, sequence, step, sent, echo of three
_ENTRY = struct.Struct(f">H{VALUES}d")
_CODE = 16
MIN_BYTES = _HEAD.size + _BODY.size + _CODE
MAX_BYTES = MIN_BYTES + MAX_ENTRIES * _ENTRY.size
_MIN_KEY, _MAX_KEY = 32, 4096
_WINDOW = 64
_MAX_RETIRED = 1024
_MAX_WHOLE = 2**63

Entry = tuple[int, tuple[float, float, float, float]]
"""Number of a link, or of an output, and its values."""


class Kind(IntEnum):
    """What a message holds."""

    STATE = 1
    """Of links: rate that was sent, backlog over the interval, and by how much both differ from what was foreseen."""
    COMMAND = 2
    """Of links: the rate to send at, by a central controller; the other values are 0."""
    MEASURED = 3
    """Of a tracking law's outputs, in seconds and bit/s; the other values are 0."""


_KINDS = frozenset(Kind)


class Dropped(StrEnum):
    """Why a datagram is of no use; what it is counted under."""

    MALFORMED = "malformed"
    """Not of a message's length or form, or with numbers that none holds."""
    VERSION = "version"
    ADDRESSEE = "addressee"
    """From or for another one than it came from and to."""
    FORGED = "forged"
    """Its code isn't that of the key."""
    NETWORK = "network"
    """For another network's links, or another Design."""
    UNPROVEN = "unproven"
    """The first of a session that hasn't answered ours yet: it will be heard once it has."""
    REPLAYED = "replayed"
    STALE = "stale"
    """Older than those of which it is remembered whether they came."""


class Route(NamedTuple):
    """From whom to whom, each as `digest` of its name, and the network that they talk about."""

    sender: bytes
    receiver: bytes
    network: bytes

    def back(self) -> Route:
        """The other way."""
        return Route(self.receiver, self.sender, self.network)


class Echo(NamedTuple):
    """What a sender last heard of the receiver."""

    session: int = 0
    """0: nothing yet."""
    sent_us: int = 0
    """As it said."""
    held_us: int = 0
    """Since then."""


class Message(NamedTuple):
    """What one agent tells another."""

    kind: Kind
    session: int
    sequence: int
    """Rising from 1 in a session."""
    step: int
    """Number of the sender's interval."""
    sent_us: int
    """Since the sender's interval number 0 began, by its steady clock."""
    echo: Echo
    entries: tuple[Entry, ...]


class Window(NamedTuple):
    """What is known of one sender's messages."""

    session: int = 0
    """0: none is trusted yet."""
    newest: int = 0
    """Greatest sequence number."""
    seen: int = 0
    """Bit i: whether newest − i came."""
    candidate: int = 0
    """A session that was heard and has not answered ours."""
    retired: tuple[int, ...] = ()
    """Sessions that are over."""

    @property
    def answer(self) -> int:
        """The session that the next message to this sender is to answer."""
        return self.candidate or self.session


def digest(text: str) -> bytes:
    """8 bytes that stand for a name, or for what two agents must agree on."""
    return hashlib.sha256(text.encode()).digest()[:8]


def new_session() -> int:
    """A number above 0 that no earlier session had, by chance of the system."""
    return int.from_bytes(os.urandom(8), "big") or 1


def read_key(path: str | os.PathLike[str]) -> bytes:
    """The key that all agents share.

    Raises
    ------
    FileError
        It can't be read, others may read it, it isn't this user's, or isn't 32 to 4096 bytes.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise FileError(path, f"the key can't be read: {error.strerror}") from None
    try:
        _check_rights(path, os.fstat(handle))
        key = os.read(handle, _MAX_KEY + 1)
    finally:
        os.close(handle)
    if not _MIN_KEY <= len(key) <= _MAX_KEY:
        raise FileError(path, f"the key has {len(key)} bytes, takes {_MIN_KEY} to {_MAX_KEY}: 32 of /dev/urandom do")
    return key


def _check_rights(path: str | os.PathLike[str], found: os.stat_result) -> None:
    """Of what was opened, not of what stands at the path now."""
    if not stat.S_ISREG(found.st_mode):
        raise FileError(path, "the key is no regular file")
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o177:
        raise FileError(path, f"the key has mode {mode:04o}, takes 0600: make a new one if others may have read it")
    if found.st_uid not in (os.geteuid(), 0):
        raise FileError(path, f"the key belongs to user {found.st_uid}, takes one of user {os.geteuid()}")


def pack(message: Message, route: Route, key: bytes) -> bytes:
    """A datagram.

    Raises
    ------
    InvalidValue
        More entries than one holds.
    """
    if len(message.entries) > MAX_ENTRIES:
        raise InvalidValue("entries", len(message.entries), f"at most {MAX_ENTRIES}")
    head = _HEAD.pack(_MAGIC, VERSION, message.kind, len(message.entries), 0)
    body = _BODY.pack(*route, message.session, message.sequence, message.step, message.sent_us, *message.echo)
    content = b"".join([head, body, *(_ENTRY.pack(number, *values) for number, values in message.entries)])
    return content + _code(content, key)


def unpack(datagram: bytes, route: Route, key: bytes) -> Message | Dropped:
    """The message in a datagram that came on a route, or why there is none; the cheapest reasons first."""
    if not MIN_BYTES <= len(datagram) <= MAX_BYTES:
        return Dropped.MALFORMED
    magic, version, kind, count, zero = _HEAD.unpack_from(datagram)
    if magic != _MAGIC or zero or len(datagram) != MIN_BYTES + count * _ENTRY.size:
        return Dropped.MALFORMED
    if version != VERSION:
        return Dropped.VERSION
    sender, receiver, network, *numbers = _BODY.unpack_from(datagram, _HEAD.size)
    if (sender, receiver) != route[:2]:
        return Dropped.ADDRESSEE
    if not hmac.compare_digest(_code(datagram[:-_CODE], key), datagram[-_CODE:]):
        return Dropped.FORGED
    if network != route.network:
        return Dropped.NETWORK
    return _message(datagram, kind, numbers)


def admit(window: Window, message: Message, own_session: int) -> tuple[Window, Dropped | None]:
    """Whether a message is new, and what is known of its sender afterwards.

    A session other than the one that is trusted takes its place once it answers `own_session`, which only the key's
    holder could, and only since we started; then it is over with the earlier one for good.
    """
    if message.session == window.session:
        return _in_window(window, message.sequence)
    if message.session in window.retired or not message.session or not message.sequence:
        return window, Dropped.REPLAYED
    if message.echo.session != own_session:
        return window._replace(candidate=message.session), Dropped.UNPROVEN
    retired = window.retired if not window.session else (*window.retired, window.session)[-_MAX_RETIRED:]
    return Window(message.session, message.sequence, 2**_WINDOW - 1, 0, retired), None  # what came before is over


def _in_window(window: Window, sequence: int) -> tuple[Window, Dropped | None]:
    """Source: RFC 4303, appendix A2: the window of IPsec against replays."""
    ahead = sequence - window.newest
    if ahead > 0:
        seen = ((window.seen << ahead) | 1) & (2**_WINDOW - 1) if ahead < _WINDOW else 1
        return window._replace(newest=sequence, seen=seen, candidate=0), None
    if -ahead >= _WINDOW:
        return window, Dropped.STALE
    if window.seen >> -ahead & 1:
        return window, Dropped.REPLAYED
    return window._replace(seen=window.seen | 1 << -ahead), None


def _message(datagram: bytes, kind: int, numbers: list[int]) -> Message | Dropped:
    """What is in an authentic datagram. Even so it is checked: the key may be another program's too."""
    session, sequence, step, sent_us, *echo = numbers
    if kind not in _KINDS or max(sequence, step, sent_us, *echo[1:]) >= _MAX_WHOLE:
        return Dropped.MALFORMED
    rows = _ENTRY.iter_unpack(datagram[_HEAD.size + _BODY.size : -_CODE])
    entries = tuple((number, (a, b, c, d)) for number, a, b, c, d in rows)
    finite = all(isfinite(value) for _, values in entries for value in values)
    if not finite or len({number for number, _ in entries}) != len(entries):
        return Dropped.MALFORMED
    return Message(Kind(kind), session, sequence, step, sent_us, Echo(*echo), entries)


def _code(content: bytes, key: bytes) -> bytes:
    """HMAC-SHA256, cut to 16 bytes. Source: RFC 2104, section 5; RFC 4868."""
    return hmac.digest(key, content, "sha256")[:_CODE]
