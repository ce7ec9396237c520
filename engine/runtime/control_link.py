"""The control connection of a task manager or worker to the job manager: lines in, lines out.

Order    messages leave in the order of `send`, whichever threads call it, and arrive one at a time
         on the thread that calls `messages`.
Errors   a job manager that is gone raises ConnectionLost in both.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from engine.errors import ConnectionLost
from engine.runtime.control import SOCKET_NAME, Message, from_line, to_line


class ControlLink:
    """One connection to the job manager."""

    def __init__(self, runtime: Path) -> None:
        """Connect through the socket in the runtime folder. Raises ConnectionLost."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(runtime / SOCKET_NAME))
        except OSError as error:
            self._socket.close()
            msg = f"job manager does not answer at {runtime / SOCKET_NAME}: {error}"
            raise ConnectionLost(msg) from error
        self._sending = threading.Lock()

    def send(self, message: Message) -> None:
        """Write a message. Any thread. Raises ConnectionLost."""
        try:
            with self._sending:
                self._socket.sendall(to_line(message))
        except OSError as error:
            msg = f"job manager is gone: {error}"
            raise ConnectionLost(msg) from error

    def messages(self) -> Iterator[Message]:
        """Messages as they come. Raises ConnectionLost at the end of the connection."""
        with self._socket.makefile("rb") as lines:
            try:
                yield from map(from_line, lines)
            except OSError as error:
                msg = f"job manager is gone: {error}"
                raise ConnectionLost(msg) from error
        msg = "job manager is gone: it closed the connection"
        raise ConnectionLost(msg)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
