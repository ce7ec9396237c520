"""Bounded channels between subtasks, with the same credit rule inside a worker and between two.

    sender spends a credit ──element──▶ queue of the receiver's mailbox ──▶ receiver takes it
           ▲                                                                     │
           └───────────────────────────── credit ◀───────────────────────────────┘

A sender without credits feeds no more input to its task: that is backpressure. Remote channels
share one connection per pair of workers; because no more elements travel than the receiver's
queues have room for, its reading thread never waits, and so one slow channel holds up no other.

Errors   a lost connection is told once, to `on_lost`, on the thread that noticed it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from engine.elements import Element
from engine.errors import ConnectionLost
from engine.runtime import wire
from engine.runtime.mailbox import Mailbox

CAPACITY = 16
"""Elements per channel. Enough to hide a round trip; few, because a barrier queues behind them."""

CREDIT_LOT = CAPACITY // 4
"""Remote credits travel in lots: a quarter of the messages, and the sender still has the rest."""

Lost = Callable[[ConnectionLost], None]


class OutputChannel(Protocol):
    """Where a subtask sends elements, one credit each."""

    def send(self, element: Element) -> None:
        """Hand over an element. The sender's thread. Raises ConnectionLost."""


class InputChannel(Protocol):
    """Where a subtask says that it took an element."""

    def taken(self) -> None:
        """Give one credit back. The receiver's thread. Raises ConnectionLost."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a channel: a mailbox and the index of the channel in it."""

    mailbox: Mailbox
    index: int


@dataclass(frozen=True, slots=True)
class LocalChannel:
    """A channel inside one worker, both ends in one: no copy."""

    source: Endpoint
    target: Endpoint

    def send(self, element: Element) -> None:
        """Put the element into the receiver's queue."""
        self.target.mailbox.put(self.target.index, element)

    def taken(self) -> None:
        """Give the credit straight back."""
        self.source.mailbox.grant(self.source.index, 1)


class Connection:
    """One socket between two workers: frames are written under a lock and read by one thread."""

    def __init__(self, peer: socket.socket, on_lost: Lost) -> None:
        self._socket = peer
        self._writing = threading.Lock()
        self._on_lost = on_lost
        self._closed = False

    def send(self, frame: wire.Frame) -> None:
        """Write a frame whole. Any thread. Raises ConnectionLost."""
        with self._writing:
            wire.send(self._socket, frame)

    def start(self, on_frame: Callable[[wire.Frame], None], name: str) -> None:
        """Read frames on a thread of its own until the connection ends."""
        loop = threading.Thread(target=self._read, args=(on_frame,), name=name, daemon=True)
        loop.start()

    def _read(self, on_frame: Callable[[wire.Frame], None]) -> None:
        try:
            while True:
                on_frame(wire.receive(self._socket))
        except ConnectionLost as lost:
            if not self._closed:
                self._on_lost(lost)

    def close(self) -> None:
        """End the connection on purpose: not a loss."""
        self._closed = True
        with suppress(OSError):  # the other end may have been faster
            # Wakes the reading thread, which closing alone does not.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class OutgoingConnection:
    """Elements to one other worker; credits come back."""

    def __init__(self, connection: Connection, sources: Mapping[int, Endpoint]) -> None:
        self._connection = connection
        self._sources = sources

    def start(self, name: str) -> None:
        """Begin to take credits."""
        self._connection.start(self._on_frame, name)

    def _on_frame(self, frame: wire.Frame) -> None:
        source = self._sources[frame.channel]
        source.mailbox.grant(source.index, wire.credit_amount(frame))

    def send(self, channel: int, element: Element) -> None:
        """Write an element. The sender's thread. Raises ConnectionLost."""
        self._connection.send(wire.encode(channel, element))


class IncomingConnection:
    """Elements from one other worker; credits go back."""

    def __init__(self, connection: Connection, targets: Mapping[int, Endpoint]) -> None:
        self._connection = connection
        self._targets = targets

    def start(self, name: str) -> None:
        """Begin to take elements. They are decoded here, beside the thread that will use them."""
        self._connection.start(self._on_frame, name)

    def _on_frame(self, frame: wire.Frame) -> None:
        target = self._targets[frame.channel]
        target.mailbox.put(target.index, wire.decode(frame))

    def grant(self, channel: int, amount: int) -> None:
        """Write a credit. The receiver's thread. Raises ConnectionLost."""
        self._connection.send(wire.credit(channel, amount))


@dataclass(frozen=True, slots=True)
class RemoteOutput:
    """The sending end of a channel to another worker."""

    connection: OutgoingConnection
    channel: int

    def send(self, element: Element) -> None:
        """Write the element."""
        self.connection.send(self.channel, element)


@dataclass(slots=True)
class RemoteInput:
    """The receiving end of a channel from another worker."""

    connection: IncomingConnection
    channel: int
    owed: int = 0

    def taken(self) -> None:
        """Owe a credit; pay when there is a lot of them."""
        self.owed += 1
        if self.owed == CREDIT_LOT:
            self.connection.grant(self.channel, self.owed)
            self.owed = 0
