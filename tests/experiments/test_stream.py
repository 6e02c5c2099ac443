"""Round trips of a stream's packets, from captures that are made here and in the kernel in virtual time."""

from __future__ import annotations

import importlib
import os
import struct
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from places import EXPERIMENTS, TESTS

PACKETS, SECONDS = 4, 4.0
"""Of a frame; of a run in the kernel."""
PORT, PEER, FIRST = 40_000, 9000, 2**32 - 2000
"""Ports, and the number of the packet that opens a connection: numbers wrap in the second packet of data."""


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("linux.stream")


def packet(outgoing: bool, number: int, length: int, *, syn: bool = False, port: int = PORT) -> bytes:
    """Headers with 12 bytes of options; an incoming one acknowledges a number."""
    ports = (port, PEER) if outgoing else (PEER, port)
    numbers = (number % 2**32, 0) if outgoing else (7, number % 2**32)
    tcp = struct.pack("!HHIIBBHHH", *ports, *numbers, 8 << 4, 2 if syn else 16, 1000, 0, 0) + bytes(12)
    return struct.pack("!BBHHHBBHII", 0x45, 0, 20 + 32 + length, 0, 0, 64, 6, 0, 1, 2) + tcp


def test_round_trips_begin_with_the_first_sending_and_end_where_all_is_acknowledged(stream: ModuleType) -> None:
    """The second packet is lost and sent again; an acknowledgement for the first comes three times."""
    data = FIRST + 1
    rows = [
        (1_000, "tap", True, packet(True, FIRST, 0, syn=True)),
        (2_000, "e1", False, packet(False, data, 0)),
        (3_000, "tap", True, packet(True, data, 1448)),
        (3_100, "e1", True, packet(True, data, 1448)),
        (4_000, "tap", True, packet(True, data + 1448, 1448)),
        (4_500, "tap", True, packet(True, 5, 1448, port=PORT + 1)),
        (5_000, "tap", True, packet(True, data + 2896, 1000)),
        *((at, "e1", False, packet(False, data + 1448, 0)) for at in (6_000, 6_100, 6_200)),
        (7_000, "tap", True, packet(True, data + 1448, 1448)),
        (9_000, "e1", False, packet(False, data + 3896, 0)),
        (9_100, "tap", True, packet(True, data + 3896, 1448)),
    ]
    seen = stream._seen(rows[::-1], PORT, 500)
    trips = stream.round_trips(seen, stream.TAP)
    np.testing.assert_allclose(trips.sent_s, [2.5e-6, 3.5e-6, 4.5e-6, 8.6e-6], rtol=1e-9)
    np.testing.assert_allclose(trips.round_trips_s, [3e-6, 5e-6, 4e-6, np.nan], rtol=1e-9)
    np.testing.assert_allclose(trips.again_s, [6.5e-6], rtol=1e-9)
    np.testing.assert_allclose(stream.round_trips(seen, "e1").round_trips_s, [2.9e-6], rtol=1e-9)
    assert len(stream.round_trips(seen, "e2").sent_s) == 0


@pytest.fixture
def made(stream: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stream in the kernel, and what its links are."""
    here = os.pathsep.join([str(TESTS / "support"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", here)
    called = importlib.import_module("linux.virtual").called
    support = importlib.import_module("kernel_calls")

    def run(lose: bool) -> tuple[ModuleType, dict[str, np.ndarray]]:
        found = called("kernel_calls:stream", PACKETS, SECONDS, lose, seed=1)
        return support, {name: np.array(values) for name, values in found.items()}

    return run


@pytest.mark.needs("lab")
def test_round_trips_are_those_of_the_link(made: Any) -> None:
    """Packets of a frame wait for each other; one acknowledgement is for each packet at first, then for two."""
    link, found = made(False)
    trips = found["tap_trips"].reshape(-1, PACKETS)
    turn = np.arange(1, PACKETS + 1)
    each = link.DELAY_S + turn * link.PER_PACKET_S
    pairs = link.DELAY_S + (turn + turn % 2) * link.PER_PACKET_S
    alone, together = (np.abs(trips - expected) < 2e-6 for expected in (each, pairs))
    assert (alone | together)[1:].all(), "but the first frame, which meets a link that has just carried a handshake"
    assert alone.all(axis=1).any()
    assert together.all(axis=1).any()
    sent = np.repeat(np.arange(len(trips)) / link.FRAMES_PER_S, PACKETS)
    assert np.abs(found["tap_sent"] - sent).max() < 1e-4
    assert len(found["tap_again"]) == found["again"] == 0
    behind = found["wire_sent"] - found["tap_sent"]
    np.testing.assert_allclose(behind.reshape(-1, PACKETS)[1:], np.tile(turn * link.PER_PACKET_S, (19, 1)), atol=2e-6)


@pytest.mark.needs("lab")
def test_a_packet_that_is_lost_counts_from_its_first_sending(made: Any) -> None:
    """A whole frame is lost, so that nothing but the packets that are sent again is acknowledged."""
    link, found = made(True)
    first, back = found["tap_sent"], found["tap_sent"] + found["tap_trips"]
    lost = np.abs(first - link.LOST_AT) < 0.01
    assert lost.sum() == PACKETS
    assert len(first) == round(SECONDS * link.FRAMES_PER_S) * PACKETS, "each packet once, however often it is sent"
    again = found["tap_again"]
    assert len(again) == found["again"] == PACKETS
    assert again.min() > link.LOST_AT + 2 * found["rtt"] - link.PER_PACKET_S, "a probe, after two round trips"
    # The probe is the last packet; by its acknowledgement the first one is sent again.
    earliest = np.sort(again)[1] + link.DELAY_S + link.PER_PACKET_S
    np.testing.assert_allclose(back[lost].min(), earliest, atol=2e-6)
    assert (found["tap_trips"][lost] > 0.09).all()
    assert (found["tap_trips"][~lost] < 0.025).all()
    # At the wire three of four first sendings are missing, as a capture there has it.
    assert len(found["wire_sent"]) == len(first) - (PACKETS - 1)
