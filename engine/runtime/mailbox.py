"""The mailbox of a subtask: the only place where other threads meet the thread that owns it.

    control thread  ──post(command)──▶ ┐
    upstream        ──put(channel, e)─▶│ mailbox ──▶ owner: take_commands, take_input, spend, wait
    downstream      ──grant(output, n)▶ ┘

Each input channel is a queue that its sender fills only as far as it has credits, so that `put`
never blocks; each output channel has the credits that its receiver granted.

Order    elements of one channel leave in the order in which they came; channels take turns.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from engine.elements import Element

Command = Callable[[], None]


class Mailbox:
    """Commands, input elements and output credits of one subtask."""

    def __init__(self, inputs: int, outputs: int, capacity: int) -> None:
        self._changed = threading.Condition()
        self._news = False
        self._commands: deque[Command] = deque()
        self._inputs: list[deque[Element]] = [deque() for _ in range(inputs)]
        self._credits = [capacity] * outputs
        self._turn = 0

    def __repr__(self) -> str:
        queued = [len(queue) for queue in self._inputs]
        return f"Mailbox(queued={queued}, credits={self._credits}, commands={len(self._commands)})"

    def post(self, command: Command) -> None:
        """Have the owner run a command between two elements. Any thread."""
        with self._changed:
            self._commands.append(command)
            self._tell()

    def put(self, channel: int, element: Element) -> None:
        """Add an element to an input channel. The sender's thread; it has spent a credit for it."""
        with self._changed:
            self._inputs[channel].append(element)
            self._tell()

    def grant(self, output: int, amount: int) -> None:
        """Allow `amount` more elements on an output channel. The receiver's thread."""
        with self._changed:
            waited_for = self._credits[output] == 0
            self._credits[output] += amount
            # An owner that had credits left sleeps for another reason: until it is time to poll.
            if waited_for:
                self._tell()

    def _tell(self) -> None:
        self._news = True
        self._changed.notify()

    def queued(self) -> list[Element]:
        """Everything that waits in input channels. Any thread."""
        with self._changed:
            return [element for queue in self._inputs for element in queue]

    def take_commands(self) -> list[Command]:
        """Take every command that waits. Owner only."""
        with self._changed:
            commands = list(self._commands)
            self._commands.clear()
            self._news = False
            return commands

    def take_input(self, blocked: Callable[[int], bool]) -> tuple[int, Element] | None:
        """Take the next element of a channel that is not blocked, or None. Owner only."""
        with self._changed:
            count = len(self._inputs)
            for step in range(count):
                channel = (self._turn + step) % count
                if self._inputs[channel] and not blocked(channel):
                    self._turn = (channel + 1) % count
                    return channel, self._inputs[channel].popleft()
            return None

    def spend(self, output: int) -> bool:
        """Use one credit of an output channel; False when there is none. Owner only."""
        with self._changed:
            if self._credits[output] == 0:
                return False
            self._credits[output] -= 1
            return True

    def wait(self, timeout: float | None) -> bool:
        """Sleep until something changed since the last `take_commands`; say if so. Owner only."""
        with self._changed:
            return self._news or self._changed.wait(timeout)
