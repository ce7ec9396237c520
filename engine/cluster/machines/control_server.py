"""The job manager's end of the control channel: one peer per connection, on the event loop.

    connection ──first line──▶ TaskManagerHello | WorkerHello ──▶ on_peer, on_message …, on_gone

Order    what one peer says stays in order; of all of them one has a turn at a time, so that whoever
         asks over REST never waits for all.
Errors   a peer that says something else first, or something that is no message, is cut off and
         logged; it never harms another one.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Protocol

from engine.cluster.turns import Turns
from engine.errors import HeadwaterError
from engine.runtime.control import (
    MAX_LINE_BYTES,
    SOCKET_NAME,
    Message,
    TaskManagerHello,
    WorkerHello,
    from_line,
    to_line,
)

log = logging.getLogger(__name__)

Hello = TaskManagerHello | WorkerHello


class Peer:
    """A connected task manager or worker."""

    def __init__(self, hello: Hello, writer: asyncio.StreamWriter) -> None:
        self.hello = hello
        self._writer = writer

    def __repr__(self) -> str:
        return f"Peer({self.hello})"

    def send(self, message: Message) -> None:
        """Queue a message. If the peer is gone, `on_gone` tells soon."""
        if not self._writer.is_closing():
            self._writer.write(to_line(message))

    def cut(self) -> None:
        """Close the connection."""
        self._writer.close()


class Listener(Protocol):
    """Who is told what peers do. Called on the event loop."""

    def on_peer(self, peer: Peer) -> None:
        """A peer said hello."""

    def on_message(self, peer: Peer, message: Message) -> None:
        """A peer said something."""

    def on_gone(self, peer: Peer) -> None:
        """The connection ended."""


async def serve_control(runtime: Path, listener: Listener) -> asyncio.Server:
    """Listen in the runtime folder; the socket of a job manager that died is replaced."""
    path = runtime / SOCKET_NAME
    path.unlink(missing_ok=True)
    turns = Turns()
    return await asyncio.start_unix_server(
        lambda reader, writer: _serve(reader, writer, listener, turns), path, limit=MAX_LINE_BYTES
    )


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, listener: Listener, turns: Turns
) -> None:
    peer: Peer | None = None
    try:
        async for line in reader:
            await turns.mine()
            message = from_line(line)
            if peer is not None:
                listener.on_message(peer, message)
            elif isinstance(message, TaskManagerHello | WorkerHello):
                peer = Peer(message, writer)
                listener.on_peer(peer)
            else:
                log.warning("control connection cut: it began with %s", type(message).__name__)
                return
    except (OSError, ValueError, HeadwaterError) as error:
        log.warning("control connection of %s cut: %s", peer, error)
    except asyncio.CancelledError:
        # The job manager ends. Python 3.11 would print the cancellation as an error of ours.
        log.debug("control connection of %s ends with the job manager", peer)
    finally:
        writer.close()
        if peer is not None:
            listener.on_gone(peer)
