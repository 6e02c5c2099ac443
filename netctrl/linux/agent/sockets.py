"""The system's clock and sockets of an agent and of its sensor: UDP to each peer, metrics on a Unix socket.

A connected socket receives only datagrams from its peer's address; the kernel drops all others, and a flood from one
peer's address takes no room from the other peers.
"""

from __future__ import annotations

import contextlib
import select
import socket
import stat
import time
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import Self

from netctrl.core.errors import FileError, InvalidValue
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
from netctrl.linux.export.agent import AgentConfig

_ROOM = 1 << 18  # bytes of a socket's buffer
_MAX_ASKING = 8


_US = 1_000_000
_MAX_DATAGRAMS = 64


class AgentSockets:
    """`netctrl.linux.agent.loop.Surroundings` on this machine, used as a context manager.

    Raises
    ------
    InvalidValue
        The address isn't this machine's, or the port is taken.
    FileError
        The metrics' socket can't be created, or belongs to another agent.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._peers: dict[socket.socket, int] = {}
        self._asking: list[socket.socket] = []
        self._metrics: socket.socket | None = None
        self._text: Callable[[], str] = str

    def __enter__(self) -> Self:
        here = (self._config.address, self._config.port)
        with contextlib.ExitStack() as held:
            held.push(self)
            for number, peer in enumerate(self._config.peers):
                self._peers[_connected("address", here, (peer.address, peer.port), shared=True)] = number
            if self._config.metrics_socket is not None:
                self._metrics = _listening(self._config.metrics_socket)
            held.pop_all()
        self._sending = {number: each for each, number in self._peers.items()}
        return self

    def __exit__(self, *_: object) -> None:
        for each in (*self._peers, *self._asking):
            each.close()
        if self._metrics is not None:
            self._metrics.close()
            with contextlib.suppress(OSError):
                Path(self._config.metrics_socket or "").unlink()

    def now(self) -> float:
        """Time of CLOCK_MONOTONIC [s]."""
        return time.monotonic()

    def sleep(self, until: float) -> None:
        """Sleep until a time."""
        time.sleep(max(until - time.monotonic(), 0.0))

    def publish(self, text: Callable[[], str]) -> None:
        """Set the text for requests of metrics."""
        self._text = text

    def send(self, peer: int, datagram: bytes) -> bool:
        """Send without waiting; a datagram that the kernel rejects now counts as lost."""
        try:
            return self._sending[peer].send(datagram) == len(datagram)
        except OSError:  # no listener, no route, no room
            return False

    def wait(self, until: float, most: int) -> Sequence[tuple[int, bytes]]:
        """Datagrams by peer; requests for metrics are answered meanwhile."""
        found: list[tuple[int, bytes]] = []
        listening = [*self._peers, *self._asking] + ([self._metrics] if self._metrics is not None else [])
        timeout = max(until - time.monotonic(), 0.0)
        if not listening:
            time.sleep(timeout)
            return found
        ready, _, _ = select.select(listening, (), (), timeout)
        for each in ready:
            if each in self._peers:
                found += [(self._peers[each], datagram) for datagram in _received(each, most)]
            elif each is self._metrics:
                with contextlib.suppress(OSError):
                    asking, _ = each.accept()
                    asking.setblocking(False)
                    self._asking.append(asking)
                if len(self._asking) > _MAX_ASKING:
                    self._asking.pop(0).close()
            else:
                self._answer(each)
        return found

    def _answer(self, asking: socket.socket) -> None:
        """Answer a request by HTTP if it was an HTTP request, else as plain text; never wait for the client."""
        self._asking.remove(asking)
        with contextlib.suppress(OSError), asking:
            request = asking.recv(4096)
            text = self._text().encode()
            if request.startswith(b"GET "):
                head = "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n"
                text = f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text
            asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * len(text))
            asking.send(text)


def _received(each: socket.socket, most: int) -> list[bytes]:
    found: list[bytes] = []
    for _ in range(most):
        try:
            found.append(each.recv(MAX_BYTES + 1))
        except BlockingIOError:
            break
        except OSError:  # an earlier datagram found no listener, which doesn't affect the next
            continue
    return found


def _connected(argument: str, here: tuple[str, int], there: tuple[str, int], *, shared: bool = False) -> socket.socket:
    """UDP socket from an address and port to another; a `shared` port may have sockets to others."""
    made = socket.socket(socket.AF_INET6 if ":" in there[0] else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(shared))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        made.bind(here)
        made.connect(there)
    except OSError as error:
        made.close()
        got = f"{here[0]} port {here[1]} to {there[0]} port {there[1]}"
        raise InvalidValue(argument, got, f"addresses that this machine can use: {error.strerror or error}") from None
    return made


def _listening(place: str) -> socket.socket:
    """A Unix socket that only this user may write to. One without a listener is replaced.

    Its folder is created if only the last part is missing.
    """
    path = Path(place)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(mode=0o755, exist_ok=True)
        if path.exists():
            _check_left_behind(path)
            path.unlink()
        made.setblocking(False)
        made.bind(place)
        path.chmod(0o600)
        made.listen(_MAX_ASKING)
    except OSError as error:
        made.close()
        if isinstance(error, FileError):
            raise
        raise FileError(place, f"the metrics' socket can't be created: {error.strerror or error}") from None
    return made


def _check_left_behind(path: Path) -> None:
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise FileError(path, "is not a socket: metrics need a path of their own")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return
    raise FileError(path, "another agent serves its metrics there: metrics need a path of their own")


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
        self._socket = _connected("here", self._here, self._there)
        return self

    def __exit__(self, *_: object) -> None:
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
        for datagram in _received(self._socket, _MAX_DATAGRAMS):
            found = unpack(datagram, self._in, self._key)
            if isinstance(found, Dropped):
                continue
            self._window, dropped = admit(self._window, found, self._session)
            if dropped in (None, Dropped.UNPROVEN):
                self._echo, self._heard_at = Echo(found.session, found.sent_us, 0), time.monotonic()
