"""Messages between agents: bytes both ways, what is dropped and why, replays, the key's file."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.core.errors import FileError, InvalidValue
from netctrl.linux.agent import message as wire
from netctrl.linux.agent.message import (
    Dropped,
    Echo,
    Kind,
    Message,
    Route,
    Window,
    admit,
    digest,
    pack,
    read_key,
    unpack,
)

KEY = bytes(range(32))
ROUTE = Route(digest("S1"), digest("S2"), digest("network"))
PLAIN = Message(Kind.STATE, 7, 1, 5, 50_000, Echo(9, 40_000, 120), ((3, (1e6, 2e5, -3.5, 0.0)),))

whole = st.integers(0, 2**63 - 1)
sessions = st.integers(0, 2**64 - 1)
numbers = st.floats(allow_nan=False, allow_infinity=False)
entries = st.lists(
    st.tuples(st.integers(0, 2**16 - 1), st.tuples(numbers, numbers, numbers, numbers)),
    max_size=wire.MAX_ENTRIES,
    unique_by=lambda entry: entry[0],
)
messages = st.builds(
    Message,
    kind=st.sampled_from(Kind),
    session=sessions,
    sequence=whole,
    step=whole,
    sent_us=whole,
    echo=st.builds(Echo, sessions, whole, whole),
    entries=entries.map(tuple),
)


@given(messages)
def test_what_is_packed_comes_out_the_same(message: Message) -> None:
    datagram = pack(message, ROUTE, KEY)
    assert wire.MIN_BYTES <= len(datagram) <= wire.MAX_BYTES
    assert unpack(datagram, ROUTE, KEY) == message


@given(messages, st.data())
def test_no_changed_bit_is_taken(message: Message, data: st.DataObject) -> None:
    datagram = bytearray(pack(message, ROUTE, KEY))
    bit = data.draw(st.integers(0, 8 * len(datagram) - 1))
    datagram[bit // 8] ^= 1 << bit % 8
    assert isinstance(unpack(bytes(datagram), ROUTE, KEY), Dropped)


def test_the_code_is_that_of_rfc_4231_case_2() -> None:
    code = wire._code(b"what do ya want for nothing?", b"Jefe")
    assert code.hex() == "5bdcc146bf60754e6a042426089575c7"


def recoded(datagram: bytearray) -> bytes:
    """With a code that fits: what another program that has the key may send."""
    return bytes(datagram[:-16]) + wire._code(bytes(datagram[:-16]), KEY)


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (0, 0, Dropped.MALFORMED),  # magic
        (2, 9, Dropped.VERSION),
        (3, 77, Dropped.MALFORMED),  # kind
        (5, 2, Dropped.MALFORMED),  # entries
        (7, 1, Dropped.MALFORMED),  # 0
        (8, 0xAA, Dropped.ADDRESSEE),
        (16, 0xAA, Dropped.ADDRESSEE),
        (24, 0xAA, Dropped.NETWORK),
        (40, 0xFF, Dropped.MALFORMED),  # sequence beyond 2^63
        (wire.MIN_BYTES - 16 + 2, 0x7F, Dropped.MALFORMED),  # with the next byte: no finite number
    ],
)
def test_authentic_datagrams_are_checked_all_the_same(place: int, value: int, reason: Dropped) -> None:
    datagram = bytearray(pack(PLAIN, ROUTE, KEY))
    datagram[place] = value
    datagram[wire.MIN_BYTES - 16 + 3] = 0xF0
    assert unpack(recoded(datagram), ROUTE, KEY) == reason


def test_a_link_that_comes_twice_is_malformed() -> None:
    twice = PLAIN._replace(entries=PLAIN.entries * 2)
    assert unpack(pack(twice, ROUTE, KEY), ROUTE, KEY) == Dropped.MALFORMED


def test_another_key_or_the_other_direction_is_no_use() -> None:
    datagram = pack(PLAIN, ROUTE, KEY)
    assert unpack(datagram, ROUTE, KEY[::-1]) == Dropped.FORGED
    assert unpack(datagram, ROUTE.back(), KEY) == Dropped.ADDRESSEE


def test_more_entries_than_a_datagram_holds_are_refused() -> None:
    many = PLAIN._replace(entries=tuple((i, (0.0,) * 4) for i in range(wire.MAX_ENTRIES + 1)))
    with pytest.raises(InvalidValue, match="entries: got 31, takes at most 30"):
        pack(many, ROUTE, KEY)


def test_what_is_cheap_is_looked_at_before_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    datagram = pack(PLAIN, ROUTE, KEY)

    def refuse(*_: object) -> bytes:
        raise AssertionError("the code was computed")

    monkeypatch.setattr(wire, "_code", refuse)
    for forged in (datagram[:-1], datagram + b"x", b"xx" + datagram[2:], datagram[:2] + b"\2" + datagram[3:], b""):
        assert isinstance(unpack(forged, ROUTE, KEY), Dropped)
    assert unpack(datagram, ROUTE._replace(sender=digest("S3")), KEY) == Dropped.ADDRESSEE


# --- what is new ---------------------------------------------------------------------------------------------------

OWN = 99


def numbered(sequence: int, session: int = 7, answered: int = OWN) -> Message:
    return PLAIN._replace(session=session, sequence=sequence, echo=Echo(answered))


@given(st.lists(st.integers(1, 300), max_size=120))
def test_a_message_is_taken_once_and_never_when_old(sequences: list[int]) -> None:
    """Against a set that remembers all."""
    window, taken = admit(Window(), numbered(1), OWN)[0], {1}
    for sequence in sequences:
        window, dropped = admit(window, numbered(sequence), OWN)
        if sequence in taken and max(taken) - sequence < 64:
            assert dropped == Dropped.REPLAYED
        elif taken and max(taken) - sequence >= 64:
            assert dropped == Dropped.STALE
        else:
            assert dropped is None
            taken.add(sequence)


@pytest.mark.parametrize("jump", [62, 63, 64, 65, 200])
def test_the_window_holds_exactly_64_numbers(jump: int) -> None:
    """The newest and 63 before it (RFC 4303, section 3.4.3: a window of 64); those are known one by one."""
    window, _ = admit(Window(), numbered(100), OWN)
    newest = 100 + jump
    window, dropped = admit(window, numbered(newest), OWN)
    assert dropped is None
    for sequence in (newest - 64, newest - 65):
        assert admit(window, numbered(sequence), OWN) == (window, Dropped.STALE)
    for sequence in (newest - 63, newest - 62, newest):
        came = sequence <= 100 or sequence == newest  # what was before the session was trusted is over
        window, dropped = admit(window, numbered(sequence), OWN)
        assert dropped == (Dropped.REPLAYED if came else None)
        assert admit(window, numbered(sequence), OWN)[1] == Dropped.REPLAYED


def test_a_session_is_trusted_once_it_answers_ours() -> None:
    window, dropped = admit(Window(), numbered(1, answered=0), OWN)
    assert (dropped, window.session, window.answer) == (Dropped.UNPROVEN, 0, 7)
    window, dropped = admit(window, numbered(2), OWN)
    assert (dropped, window.session, window.answer) == (None, 7, 7)


def test_after_a_restart_the_earlier_session_never_comes_back() -> None:
    window, _ = admit(Window(), numbered(5), OWN)
    window, dropped = admit(window, numbered(1, session=8, answered=0), OWN)
    assert (dropped, window.session, window.answer) == (Dropped.UNPROVEN, 7, 8)
    window, dropped = admit(window, numbered(2, session=8), OWN)
    assert (dropped, window.session) == (None, 8)
    for sequence in (1, 6, 1000):
        window, dropped = admit(window, numbered(sequence, session=7), OWN)
        assert (dropped, window.session) == (Dropped.REPLAYED, 8)


def test_what_was_recorded_before_we_started_is_never_trusted() -> None:
    window = Window()
    for sequence in range(1, 200):  # of a session that answered our earlier one
        window, dropped = admit(window, numbered(sequence, answered=OWN - 1), OWN)
        assert (dropped, window.session) == (Dropped.UNPROVEN, 0)


def test_who_goes_on_talking_has_not_been_replaced() -> None:
    window, _ = admit(Window(), numbered(5), OWN)
    window, _ = admit(window, numbered(1, session=3, answered=1), OWN)  # a recording
    assert window.answer == 3
    window, dropped = admit(window, numbered(6), OWN)
    assert (dropped, window.answer) == (None, 7)


# --- the key -------------------------------------------------------------------------------------------------------


def test_a_key_is_read(tmp_path) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    path.chmod(0o600)
    assert read_key(path) == KEY


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o700, 0o644])
def test_a_key_that_others_may_read_is_refused(tmp_path, mode: int) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    path.chmod(mode)
    with pytest.raises(FileError, match=f"the key has mode {mode:04o}, takes 0600"):
        read_key(path)


def test_what_is_no_key_is_refused(tmp_path) -> None:
    short, folder, pipe, link = (tmp_path / name for name in ("short", "folder", "pipe", "link"))
    short.write_bytes(KEY[:31])
    short.chmod(0o600)
    folder.mkdir(mode=0o700)
    os.mkfifo(pipe, 0o600)
    link.symlink_to(short)
    for path, why in (
        (short, "has 31 bytes, takes 32 to 4096"),
        (folder, "not a regular file"),
        (pipe, "not a regular file"),
        (link, "can't be read"),
        (tmp_path / "none", "No such file"),
    ):
        with pytest.raises(FileError, match=why):
            read_key(path)


def test_a_key_of_another_user_is_refused(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    path.chmod(0o600)
    owner = path.stat().st_uid
    if owner == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(FileError, match="belongs to user"):
        read_key(path)
