"""The channels of one worker: local ones inside it, remote ones over a socket per peer.

    slot 0 ──connects, says hello──▶ slot 1      for every pair with at least one channel
           ◀──────── credits ───────

A subtask with index i runs in slot i, so a channel stays inside the worker exactly when both
subtasks have the same index. Channels are numbered by the wiring, the same in every worker.

Order    every worker listens before any worker is told to run, so that connecting cannot fail
         for want of a listener; the backlog holds all peers, so that nobody waits in a circle.
"""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import ConnectionLost, InternalError
from engine.graph.jobgraph import TaskId
from engine.runtime import wire
from engine.runtime.channels import (
    Connection,
    Endpoint,
    IncomingConnection,
    InputChannel,
    LocalChannel,
    Lost,
    OutgoingConnection,
    OutputChannel,
    RemoteInput,
    RemoteOutput,
)
from engine.runtime.mailbox import Mailbox
from engine.runtime.wiring import Wiring

PEER_TIMEOUT_S = 20.0
"""All peers are up when this starts, so only a dying or a very busy one takes this long."""

DATA_SOCKETS = "[0-9a-f]" * 8 + "-[0-9]*.sock"
"""What `data_socket` calls files, as a pattern."""


@dataclass(frozen=True, slots=True)
class Route:
    """One channel of the job, with its number."""

    number: int
    source: TaskId
    output: int
    target: TaskId
    input: int


@dataclass(slots=True)
class Ports:
    """The channels of one subtask, by index."""

    inputs: dict[int, InputChannel] = field(default_factory=dict)
    outputs: dict[int, OutputChannel] = field(default_factory=dict)


def data_socket(runtime: Path, attempt_id: str, slot: int) -> Path:
    """Where the worker of a slot listens. Short: macOS allows 104 bytes for the whole path."""
    return runtime / f"{attempt_id[:8]}-{slot}.sock"


def routes_of(wiring: Wiring) -> Iterator[Route]:
    """Every channel of the job, numbered alike in every worker."""
    for number, ((source, output), (target, input_)) in enumerate(sorted(wiring.routes.items())):
        yield Route(number, source, output, target, input_)


@dataclass(frozen=True, slots=True)
class Plugs:
    """What the channels of one worker are plugged into."""

    mailboxes: Mapping[TaskId, Mailbox]
    ports: Mapping[TaskId, Ports]

    def source(self, route: Route) -> Endpoint:
        """The sending end of a channel."""
        return Endpoint(self.mailboxes[route.source], route.output)

    def target(self, route: Route) -> Endpoint:
        """The receiving end of a channel."""
        return Endpoint(self.mailboxes[route.target], route.input)

    def plug_output(self, route: Route, channel: OutputChannel) -> None:
        """Give a subtask the channel that it sends to."""
        self.ports[route.source].outputs[route.output] = channel

    def plug_input(self, route: Route, channel: InputChannel) -> None:
        """Give a subtask the channel that it takes from."""
        self.ports[route.target].inputs[route.input] = channel


class Exchange:
    """Listens from the start; connects when every peer listens."""

    def __init__(self, runtime: Path, attempt_id: str, slot: int, slots: int) -> None:
        self._runtime = runtime
        self._attempt_id = attempt_id
        self._slot = slot
        self._path = data_socket(runtime, attempt_id, slot)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.settimeout(PEER_TIMEOUT_S)
        self._listener.bind(str(self._path))
        self._listener.listen(slots)
        self._connections: list[Connection] = []

    def connect(
        self, wiring: Wiring, mailboxes: Mapping[TaskId, Mailbox], on_lost: Lost
    ) -> Mapping[TaskId, Ports]:
        """Connect with every peer and return the channels of each subtask. Raises ConnectionLost.

        `on_lost` is called on a reading thread when a peer's connection ends later.
        """
        plugs = Plugs(mailboxes, {task: Ports() for task in mailboxes})
        outgoing: dict[int, list[Route]] = defaultdict(list)
        incoming: dict[int, list[Route]] = defaultdict(list)
        for route in routes_of(wiring):
            match route.source in mailboxes, route.target in mailboxes:
                case True, True:
                    channel = LocalChannel(plugs.source(route), plugs.target(route))
                    plugs.plug_output(route, channel)
                    plugs.plug_input(route, channel)
                case True, False:
                    outgoing[route.target.subtask].append(route)
                case False, True:
                    incoming[route.source.subtask].append(route)
        for slot, routes in sorted(outgoing.items()):
            self._dial(slot, routes, plugs, on_lost)
        while incoming:
            slot, connection = self._accept(incoming.keys(), on_lost)
            _welcome(slot, connection, incoming.pop(slot), plugs)
        self._stop_listening()
        return plugs.ports

    def _dial(self, slot: int, routes: list[Route], plugs: Plugs, on_lost: Lost) -> None:
        """Connect to a worker that this one sends to."""
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            peer.connect(str(data_socket(self._runtime, self._attempt_id, slot)))
        except OSError as error:
            peer.close()
            msg = f"worker of slot {slot} does not answer: {error}"
            raise ConnectionLost(msg) from error
        connection = self._adopt(peer, on_lost)
        connection.send(wire.hello(self._attempt_id, self._slot))
        sources = {route.number: plugs.source(route) for route in routes}
        outgoing = OutgoingConnection(connection, sources)
        for route in routes:
            plugs.plug_output(route, RemoteOutput(outgoing, route.number))
        outgoing.start(f"credits from slot {slot}")

    def _accept(self, expected: Collection[int], on_lost: Lost) -> tuple[int, Connection]:
        """Wait for one of the workers that send to this one."""
        try:
            peer, _ = self._listener.accept()
        except TimeoutError as error:
            msg = f"workers of slots {sorted(expected)} did not connect in {PEER_TIMEOUT_S:g} s"
            raise ConnectionLost(msg) from error
        peer.settimeout(None)
        attempt_id, slot = wire.hello_from(wire.receive(peer))
        if attempt_id != self._attempt_id or slot not in expected:
            msg = f"unexpected peer: attempt {attempt_id}, slot {slot}"
            raise InternalError(msg)
        return slot, self._adopt(peer, on_lost)

    def _adopt(self, peer: socket.socket, on_lost: Lost) -> Connection:
        connection = Connection(wire.tune(peer), on_lost)
        self._connections.append(connection)
        return connection

    def _stop_listening(self) -> None:
        self._listener.close()
        with suppress(FileNotFoundError):
            self._path.unlink()

    def close(self) -> None:
        """End every connection on purpose."""
        self._stop_listening()
        for connection in self._connections:
            connection.close()


def _welcome(slot: int, connection: Connection, routes: list[Route], plugs: Plugs) -> None:
    """Take the channels of a worker that has connected."""
    targets = {route.number: plugs.target(route) for route in routes}
    incoming = IncomingConnection(connection, targets)
    for route in routes:
        plugs.plug_input(route, RemoteInput(incoming, route.number))
    incoming.start(f"elements from slot {slot}")
