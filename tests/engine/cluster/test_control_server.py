"""The job manager's end of the control channel."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from pathlib import Path

import pytest

from engine.cluster.machines.control_server import Peer, serve_control
from engine.runtime.control import SOCKET_NAME, Message, TaskManagerHello, to_line


class Listening:
    """Hears hellos."""

    def __init__(self) -> None:
        self.heard = asyncio.Event()

    def on_peer(self, peer: Peer) -> None:
        self.heard.set()

    def on_message(self, peer: Peer, message: Message) -> None:
        pass

    def on_gone(self, peer: Peer) -> None:
        pass


def test_connections_that_are_open_at_the_end_are_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def live(runtime: Path, client: socket.socket) -> None:
        listener = Listening()
        server = await serve_control(runtime, listener)
        client.connect(str(runtime / SOCKET_NAME))
        client.sendall(to_line(TaskManagerHello("tm-1", 1, 1, "here")))
        await listener.heard.wait()
        server.close()

    with (
        tempfile.TemporaryDirectory(prefix="control-") as runtime,  # short: it holds a socket
        socket.socket(socket.AF_UNIX) as client,
    ):
        asyncio.run(live(Path(runtime), client))
    assert caplog.records == []
