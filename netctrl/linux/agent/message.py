"""Messages between agents: encoding, authentication, protection against replays, and alignment of intervals.

A datagram holds one message of at most `MAX_BYTES`, so networks don't fragment it. Cheap checks come before the
authentication code is computed, so a flood of forged messages costs little. Freshness doesn't depend on clocks: a
sender draws a session when it starts and numbers its messages, and is trusted once it has answered the receiver's.

Each agent counts intervals by its own monotonic clock from its own start; wall clocks, which jump, are not used. An
offset comes from the exchange with the shortest round trip, as in NTP; before the first exchange, from the message with
the least apparent delay. Both are bounded by causality: a value can't arrive before it was measured.

Source: RFC 5905, sections 8 (offset and round trip of an exchange) and 10 (the sample of least delay).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from enum import IntEnum, StrEnum
from math import ceil, isfinite
from typing import NamedTuple

from netctrl.core.errors import FileError, InvalidValue
from netctrl.linux.state_files import read_regular

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


_REMEMBERED = 64
_HYSTERESIS = 0.25
"""Share of an interval by which an offset must move before intervals are renumbered."""


class Kind(IntEnum):
    """Content of a message."""

    STATE = 1
    """Links' measurements: rate sent, backlog over the interval, and the deviations of both from their predictions."""
    COMMAND = 2
    """Links' commanded rates, from a central controller; the other values are 0."""
    MEASURED = 3
    """A tracking law's outputs, in seconds and bit/s; the other values are 0."""


_KINDS = frozenset(Kind)


class Dropped(StrEnum):
    """Reason for dropping a datagram, under which it is counted."""

    MALFORMED = "malformed"
    """Wrong length or form, or invalid numbers."""
    VERSION = "version"
    ADDRESSEE = "addressee"
    """Sender or receiver don't match the route."""
    FORGED = "forged"
    """Authentication code doesn't match the key."""
    NETWORK = "network"
    """For another network's links, or another Design."""
    UNPROVEN = "unproven"
    """First message of a session that hasn't answered ours yet; it is accepted once it has."""
    REPLAYED = "replayed"
    STALE = "stale"
    """Older than the replay window."""


class Route(NamedTuple):
    """Sender and receiver, each as `digest` of its name, and the network."""

    sender: bytes
    receiver: bytes
    network: bytes

    def back(self) -> Route:
        """Route in the opposite direction."""
        return Route(self.receiver, self.sender, self.network)


class Echo(NamedTuple):
    """Last message that a sender received from the receiver."""

    session: int = 0
    """0: none yet."""
    sent_us: int = 0
    """As stated in that message."""
    held_us: int = 0
    """Since then."""


class Message(NamedTuple):
    """Message from one agent to another."""

    kind: Kind
    session: int
    sequence: int
    """Counts from 1 in a session."""
    step: int
    """Number of the sender's interval."""
    sent_us: int
    """Time since the sender's interval number 0 began, by its monotonic clock."""
    echo: Echo
    entries: tuple[Entry, ...]


class Window(NamedTuple):
    """Replay window of one sender's messages."""

    session: int = 0
    """0: no session is trusted yet."""
    newest: int = 0
    """Greatest sequence number."""
    seen: int = 0
    """Bit i: whether newest − i has arrived."""
    candidate: int = 0
    """Session received that has not answered ours yet."""
    retired: tuple[int, ...] = ()
    """Ended sessions."""

    @property
    def answer(self) -> int:
        """Session that the next message to this sender answers."""
        return self.candidate or self.session


def digest(text: str) -> bytes:
    """8 bytes that represent a name, or data that two agents must agree on."""
    return hashlib.sha256(text.encode()).digest()[:8]


def new_session() -> int:
    """Random number above 0 for a new session."""
    return int.from_bytes(os.urandom(8), "big") or 1


def read_key(path: str | os.PathLike[str]) -> bytes:
    """Read the key that all agents share.

    Raises
    ------
    FileError
        The file can't be read, others may read it, it belongs to another user, or it doesn't have 32 to 4096 bytes.
    """
    key = read_regular(path, _MAX_KEY, "the key", 0o177)
    if key is None:
        raise FileError(path, "the key can't be read: No such file")
    if not _MIN_KEY <= len(key) <= _MAX_KEY:
        raise FileError(
            path, f"the key has {len(key)} bytes, takes {_MIN_KEY} to {_MAX_KEY}, such as 32 from /dev/urandom"
        )
    return key


def pack(message: Message, route: Route, key: bytes) -> bytes:
    """Encode a message as a datagram.

    Raises
    ------
    InvalidValue
        More entries than a message holds.
    """
    if len(message.entries) > MAX_ENTRIES:
        raise InvalidValue("entries", len(message.entries), f"at most {MAX_ENTRIES}")
    head = _HEAD.pack(_MAGIC, VERSION, message.kind, len(message.entries), 0)
    body = _BODY.pack(*route, message.session, message.sequence, message.step, message.sent_us, *message.echo)
    content = b"".join([head, body, *(_ENTRY.pack(number, *values) for number, values in message.entries)])
    return content + _code(content, key)


def unpack(datagram: bytes, route: Route, key: bytes) -> Message | Dropped:
    """Message in a datagram from a route, or the reason for dropping it; the cheapest checks come first."""
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
    """Whether a message is new, and the sender's window afterwards.

    A new session replaces the trusted one once it answers `own_session`, which only a holder of the key can do, and
    only since this agent started. The earlier session then ends for good.
    """
    if message.session == window.session:
        return _in_window(window, message.sequence)
    if message.session in window.retired or not message.session or not message.sequence:
        return window, Dropped.REPLAYED
    if message.echo.session != own_session:
        return window._replace(candidate=message.session), Dropped.UNPROVEN
    retired = window.retired if not window.session else (*window.retired, window.session)[-_MAX_RETIRED:]
    return Window(message.session, message.sequence, 2**_WINDOW - 1, 0, retired), None  # ends the earlier session


def _in_window(window: Window, sequence: int) -> tuple[Window, Dropped | None]:
    """Replay check. Source: RFC 4303, appendix A2, the replay window of IPsec."""
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
    """Content of an authentic datagram; it is checked as well, since another program may use the same key."""
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
    """HMAC-SHA256, truncated to 16 bytes. Source: RFC 2104, section 5; RFC 4868."""
    return hmac.digest(key, content, "sha256")[:_CODE]


class Alignment(NamedTuple):
    """Estimate of another agent's clock. Times in microseconds."""

    exchanges: tuple[tuple[int, float], ...] = ()
    """Round trip and offset (its clock minus ours) of each exchange; the newest last."""
    one_way: tuple[int, ...] = ()
    """Its sending time minus our receiving time: the offset minus the message's delay."""
    shift: int | None = None
    """Number to add to its interval numbers to obtain ours; None before the first message."""
    moved: int = 0
    """Number of changes."""

    @property
    def offset_us(self) -> float | None:
        """Its clock minus ours; None before the first message."""
        if self.exchanges:
            return min(reversed(self.exchanges))[1]
        return max(self.one_way) if self.one_way else None

    @property
    def rtt_us(self) -> int | None:
        """Shortest round trip remembered."""
        return min(self.exchanges)[0] if self.exchanges else None


def aligned(
    alignment: Alignment, interval_us: float, now_us: int, sent_us: int, *, echo_us: int = 0, held_us: int | None = None
) -> Alignment:
    """Alignment after a message sent at `sent_us` by its sender's clock and received now by ours.

    Parameters
    ----------
    alignment : Alignment
    interval_us : float
        Interval of both agents.
    now_us, sent_us : int
        Times since interval number 0 of the respective agent began.
    echo_us, held_us : int
        Sending time of the last message that the sender received from us, and the time since; None without one.
    """
    one_way = (*alignment.one_way, sent_us - now_us)[-_REMEMBERED:]
    exchanges = alignment.exchanges
    if held_us is not None and now_us - echo_us - held_us >= 0:
        rtt = now_us - echo_us - held_us
        # offset = ((t2 − t1) + (t3 − t4))/2 with t2 = t3 − held
        exchanges = (*exchanges, (rtt, sent_us - now_us + rtt / 2.0))[-_REMEMBERED:]
    found = alignment._replace(exchanges=exchanges, one_way=one_way)
    offset = found.offset_us
    behind = 0.0 if offset is None else -offset / interval_us
    if found.shift is not None and found.shift - 1 < behind <= found.shift + _HYSTERESIS:
        return found
    return found._replace(shift=ceil(behind), moved=found.moved + (found.shift is not None))


def index_of(alignment: Alignment, step: int, newest: int) -> int | None:
    """Our number of another agent's interval: our first that began no earlier; None before the first message.

    It is at most `newest`, the first interval that begins after now.
    """
    return None if alignment.shift is None else min(step + alignment.shift, newest)
