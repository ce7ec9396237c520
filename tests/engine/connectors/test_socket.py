"""Socket source: lines as they come, through hang-ups, without blocking; over a real socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from select import select

import pytest

from engine.connectors.contract import SplitReader
from engine.connectors.socket import MAX_LINE_BYTES, SocketSource
from engine.elements import Micros
from engine.errors import ConfigError, SourceError
from engine.testing.cluster import PATIENCE_S
from free_ports import free_ports

SECOND = 1_000_000


class Peer:
    """The server's end, which waits until the kernel has passed on what was sent."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.reader: SplitReader = SocketSource("127.0.0.1", self.port).open("socket", None)
        self.now = 0

    def accept(self) -> socket.socket:
        self.reader.poll(10, Micros(self.now))
        connection, _ = self.listener.accept()
        return connection

    def poll(self, max_rows: int = 10) -> list[str]:
        """Poll when there is something to read."""
        assert select([self.reader._socket], [], [], PATIENCE_S)[0]  # type: ignore[attr-defined]
        frame = self.reader.poll(max_rows, Micros(self.now)).frame
        return [] if frame is None else frame["line"].to_list()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.reader.close()
    peer.listener.close()


def test_each_line_is_a_row(peer: Peer) -> None:
    with peer.accept() as server:
        server.sendall(b"pressure 2.5\r\ndoor 1\n\ncut")
        assert peer.poll() == ["pressure 2.5", "door 1", ""]
        server.sendall(b" off\n")
        assert peer.poll() == ["cut off"]
    assert peer.reader.position == {"lines": 4}


def test_no_poll_gives_more_than_was_asked_for(peer: Peer) -> None:
    with peer.accept() as server:
        server.sendall(b"1\n2\n3\n")
        assert peer.poll(2) == ["1", "2"]
        frame = peer.reader.poll(2, Micros(0)).frame
        assert frame is not None
        assert frame["line"].to_list() == ["3"]


def test_a_quiet_socket_is_looked_at_again_soon(peer: Peer) -> None:
    with peer.accept():
        polled = peer.reader.poll(10, Micros(0))
        assert polled.frame is None
        assert polled.retry_at == 50_000


def test_it_connects_again_after_the_server_hung_up(peer: Peer) -> None:
    with peer.accept() as server:
        server.sendall(b"first\nunfinished")
        assert peer.poll() == ["first"]
    assert peer.poll() == ["unfinished"]
    assert peer.reader.poll(10, Micros(SECOND - 1)).frame is None
    peer.now = SECOND
    with peer.accept() as server:
        server.sendall(b"second\n")
        assert peer.poll() == ["second"]


def test_it_waits_for_a_server_that_is_not_there() -> None:
    (port,) = free_ports(1)
    reader = SocketSource("127.0.0.1", port).open("socket", None)
    for tenth in range(30):
        assert reader.poll(10, Micros(tenth * SECOND // 10)).frame is None
    with socket.create_server(("127.0.0.1", port)) as listener:
        reader.poll(10, Micros(10 * SECOND))
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"at last\n")
            assert select([reader._socket], [], [], PATIENCE_S)[0]  # type: ignore[attr-defined]
            frame = reader.poll(10, Micros(10 * SECOND)).frame
    assert frame is not None
    assert frame["line"].to_list() == ["at last"]
    reader.close()


def test_bytes_that_are_no_text_are_replaced(peer: Peer) -> None:
    with peer.accept() as server:
        server.sendall(b"\xff!\n")
        assert peer.poll() == ["�!"]


def test_a_line_without_end_is_refused(peer: Peer) -> None:
    with peer.accept() as server:
        for _ in range(MAX_LINE_BYTES // 1_024):
            server.sendall(b"x" * 1_024)
            peer.poll()
        server.sendall(b"x" * 1_024)
        with pytest.raises(SourceError, match="over 1048576 bytes"):
            peer.poll()


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_port_out_of_range_is_refused(port: int) -> None:
    with pytest.raises(ConfigError, match="port is out of range"):
        SocketSource("127.0.0.1", port)
