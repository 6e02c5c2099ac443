"""The system's clock and sockets: monotonic clock, a connected UDP socket per peer, metrics on a Unix socket.

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
from pathlib import Path
from types import TracebackType
from typing import Self

from netctrl.errors import FileError, InvalidValue
from netctrl.linux.agent.message import MAX_BYTES
from netctrl.linux.export.agent import AgentConfig

__all__ = ["AgentSockets"]

_ROOM = 1 << 18  # bytes of a socket's buffer
_MAX_ASKING = 8


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
        try:
            for number, peer in enumerate(self._config.peers):
                self._peers[_connected(self._config, peer.address, peer.port)] = number
            if self._config.metrics_socket is not None:
                self._metrics = _listening(self._config.metrics_socket)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self._sending = {number: each for each, number in self._peers.items()}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
                self._accept(each)
            else:
                self._answer(each)
        return found

    def _accept(self, metrics: socket.socket) -> None:
        with contextlib.suppress(OSError):
            asking, _ = metrics.accept()
            asking.setblocking(False)
            self._asking.append(asking)
        if len(self._asking) > _MAX_ASKING:
            self._asking.pop(0).close()

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


def _connected(config: AgentConfig, address: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        made.bind((config.address, config.port))
        made.connect((address, port))
    except OSError as error:
        made.close()
        got = f"{config.address} port {config.port} to {address} port {port}"
        raise InvalidValue("address", got, f"addresses that this machine can use: {error.strerror or error}") from None
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
