"""Socket source: lines of text from a TCP server, one row each.

    closed --connect--> connecting --accepted--> open --hung up--> closed, again after a second

Shapes     one column, `line`: String; bytes that are not UTF-8 become U+FFFD.
Guarantee  at most once: a socket cannot be read again, so lines that were read after the latest
           checkpoint are lost when the job restarts, and so are lines sent while nobody listened.
Order      as sent. One split, "socket", which never ends; the server may come and go.
Cost       never blocks: a poll takes what has arrived.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Mapping, Sequence
from select import select

import polars as pl

from engine.connectors.contract import Json, Polled, Source, SplitReader
from engine.elements import Micros
from engine.errors import ConfigError, SourceError

RECONNECT_WAIT = 1_000_000
"""µs between two tries to connect: one that restarts is found soon, a dead one costs nothing."""

IDLE_WAIT = 50_000
"""µs between two looks at a quiet socket: people type slower."""

CHUNK_BYTES = 65_536

MAX_LINE_BYTES = 1_048_576
"""A longer line is not text: better to say so than to fill the memory."""


class SocketSource(Source):
    """Reads lines from a server at `host` and `port`, as `nc -lk PORT` makes one."""

    def __init__(self, host: str, port: int) -> None:
        if not 0 < port < 65_536:
            msg = f"port is out of range: got {port}; pass one from 1 to 65535"
            raise ConfigError(msg)
        self.host = host
        self.port = port

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """One column of text."""
        return {"line": pl.String()}

    def splits(self) -> Sequence[str]:
        """One: a socket cannot be divided."""
        return ["socket"]

    def open(self, split: str, position: Json | None) -> SplitReader:
        """Start reading with the first poll; the position is only a count."""
        lines = position.get("lines") if isinstance(position, dict) else None
        return SocketReader(self.host, self.port, lines if isinstance(lines, int) else 0)


class SocketReader(SplitReader):
    """Holds the connection, and the beginning of a line that is not complete."""

    def __init__(self, host: str, port: int, lines: int) -> None:
        self._address = (host, port)
        self._lines = lines
        self._socket: socket.socket | None = None
        self._connecting = False
        self._retry_at = Micros(0)
        self._tail = b""
        self._ready: deque[str] = deque()

    def poll(self, max_rows: int, now: Micros) -> Polled:
        """Return the lines that have arrived."""
        if len(self._ready) < max_rows:
            self._receive(now)
        lines = [self._ready.popleft() for _ in range(min(max_rows, len(self._ready)))]
        if not lines:
            return Polled(retry_at=Micros(max(self._retry_at, now + IDLE_WAIT)))
        self._lines += len(lines)
        return Polled(pl.DataFrame({"line": lines}, schema={"line": pl.String}))

    @property
    def position(self) -> Json:
        """How many lines have been read, for people: a socket cannot go back."""
        return {"lines": self._lines}

    def close(self) -> None:
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _receive(self, now: Micros) -> None:
        if self._socket is None and now >= self._retry_at:
            self._connect(now)
        if self._socket is None:
            return
        try:
            if self._connecting and not self._connected(self._socket):
                return
            chunk = self._socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            self._split(chunk)
        else:
            self._hang_up(now)

    def _connect(self, now: Micros) -> None:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                *self._address, type=socket.SOCK_STREAM
            )[0]
            self._socket = socket.socket(family, kind, protocol)
            self._socket.setblocking(False)
            self._connecting = True
            self._socket.connect_ex(address)
        except OSError:
            self._hang_up(now)

    def _connected(self, connection: socket.socket) -> bool:
        """Whether the connection stands. Raises OSError when it was refused."""
        if not select([], [connection], [], 0)[1]:
            return False
        if code := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(code, "refused")
        self._connecting = False
        return True

    def _hang_up(self, now: Micros) -> None:
        """Forget the connection; an unfinished last line counts, as at the end of a file."""
        self.close()
        self._connecting = False
        self._retry_at = Micros(now + RECONNECT_WAIT)
        if self._tail:
            self._split(b"\n")

    def _split(self, chunk: bytes) -> None:
        *lines, self._tail = (self._tail + chunk).split(b"\n")
        if len(self._tail) > MAX_LINE_BYTES:
            host, port = self._address
            msg = f"line from {host}:{port} is over {MAX_LINE_BYTES} bytes; send shorter lines"
            raise SourceError(msg)
        self._ready.extend(line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines)
