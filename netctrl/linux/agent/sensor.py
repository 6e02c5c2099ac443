"""Sensor of an agent: reports delay, jitter or throughput at a sink in signed messages."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from math import isfinite
from types import TracebackType
from typing import Self

from netctrl.errors import InvalidValue
from netctrl.linux.agent.message import (
    MAX_BYTES,
    Dropped,
    Echo,
    Kind,
    Message,
    Route,
    Window,
    admit,
    digest,
    new_session,
    pack,
    unpack,
)

__all__ = ["Sensor"]

_US = 1_000_000
_MAX_DATAGRAMS = 64


class Sensor:
    """Sends a tracking law's measured outputs to its agent; used as a context manager.

    The agent trusts it once it has answered the agent's session, so the first one or two reports are dropped.

    Parameters
    ----------
    name : str
        `measured_by` of the agent's law.
    agent : str
        The agent's name.
    here, there : (str, int)
        Address and port of the sensor, as in the agent's file, and of the agent.
    key : bytes
        Shared key (`netctrl.linux.agent.message.read_key`).

    Raises
    ------
    InvalidValue
        The address isn't this machine's, or the port is taken.
    """

    def __init__(self, name: str, agent: str, here: tuple[str, int], there: tuple[str, int], key: bytes) -> None:
        self._in = Route(digest(agent), digest(name), digest(f"tracking {name}"))
        self._key, self._here, self._there = key, here, there
        self._session, self._sequence = new_session(), 0
        self._window, self._echo, self._heard_at = Window(), Echo(), 0.0
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        family = socket.AF_INET6 if ":" in self._there[0] else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.bind(self._here)
            self._socket.connect(self._there)
        except OSError as error:
            self._socket.close()
            takes = f"an address and a port of this machine: {error.strerror or error}"
            raise InvalidValue("here", self._here, takes) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def report(self, values: Sequence[float]) -> bool:
        """Report the law's outputs, in their order, in seconds and bit/s; whether the message left.

        Raises
        ------
        InvalidValue
            A value that isn't a finite number.
        """
        if not all(isfinite(value) for value in values):
            raise InvalidValue("values", list(values), "finite numbers; send no report without a measurement")
        self._listen()
        self._sequence += 1
        now = time.monotonic()
        echo = self._echo._replace(held_us=int((now - self._heard_at) * _US)) if self._echo.session else self._echo
        sent_us = int((now - self._began) * _US)
        entries = tuple((i, (float(value), 0.0, 0.0, 0.0)) for i, value in enumerate(values))
        message = Message(Kind.MEASURED, self._session, self._sequence, self._sequence, sent_us, echo, entries)
        try:
            self._socket.send(pack(message, self._in.back(), self._key))
        except OSError:  # the agent isn't there, or there is no room: counts as lost on the way
            return False
        return True

    def _listen(self) -> None:
        """Receive the agent's messages, whose session the next report answers."""
        for _ in range(_MAX_DATAGRAMS):
            try:
                datagram = self._socket.recv(MAX_BYTES + 1)
            except BlockingIOError:
                return
            except OSError:
                continue
            found = unpack(datagram, self._in, self._key)
            if isinstance(found, Dropped):
                continue
            self._window, dropped = admit(self._window, found, self._session)
            if dropped in (None, Dropped.UNPROVEN):
                self._echo, self._heard_at = Echo(found.session, found.sent_us, 0), time.monotonic()
