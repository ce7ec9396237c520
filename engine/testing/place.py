"""The place of one subtask in an attempt: its queues, and what could happen to it next.

    channels --deliver--> task --outbox, as far as there is room--> channels of other places
    mail -----read------>      --snapshots, reports--> the attempt

Order    elements of a channel and messages to a subtask do not overtake each other.
Cost     what could happen is listed anew only after something has happened here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from random import Random

from engine.checkpoint.coordination.effects import (
    Effect,
    NotifyAborted,
    NotifyComplete,
    SendBarrier,
)
from engine.checkpoint.format.frozen import TaskSnapshot
from engine.elements import MAX_TIME, Element, Micros
from engine.runtime.task import Task
from engine.runtime.watermark_groups import Aligned
from engine.testing.answers import answered

CAPACITY = 3
"""Elements per channel: few, so that backpressure happens all the time."""

MARK_EVERY = 4
"""Polls for each latency marker."""


class Pace(StrEnum):
    """Parts of a cluster that can be slow apart from each other."""

    TASKS = "tasks"
    MAIL = "mail"
    STORAGE = "storage"
    COORDINATOR = "coordinator"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that could happen next."""

    pace: Pace
    do: Callable[[], None]


@dataclass(slots=True)
class Channel:
    """Elements under way from one subtask to another."""

    number: int
    """Of the input, at the target."""
    target: Place
    source: Place
    queue: deque[Element]


class Place:
    """One subtask, and everything that is on its way to it."""

    def __init__(
        self, task: Task, unwritten: list[TaskSnapshot], random: Random, max_rows: int, now: Micros
    ) -> None:
        """`unwritten`: where the snapshots go; `max_rows`: of one poll."""
        self.id = task.spec.id
        self.task = task
        self.now = now
        self.mail: deque[Effect | Aligned] = deque()
        """From the coordinator."""
        self.progress: deque[Micros] = deque()
        """To the watermark group."""
        self.inputs: list[Channel] = []
        self.outputs: dict[int, Channel] = {}
        self._unwritten = unwritten
        self._random = random
        self._max_rows = max_rows
        self._polls = 0
        self._again_at = now if task.is_source else MAX_TIME
        self._steps: list[Step] | None = None

    def steps(self) -> list[Step]:
        """What could happen next inside the subtask, in a fixed order."""
        if self._steps is None:
            self._steps = [Step(Pace.TASKS, do) for do in self._possible()]
        return self._steps

    def touch(self) -> None:
        """Something has changed that decides what could happen."""
        self._steps = None

    def pass_to(self, now: Micros) -> None:
        """Time has come to `now`."""
        self.now = now
        self._steps = None

    def connect(self, output: int, number: int, target: Place) -> None:
        """Let an output lead to an input of another place. Inputs are connected in any order."""
        channel = Channel(number, target, self, deque())
        self.outputs[output] = channel
        target.inputs.append(channel)
        target.inputs.sort(key=lambda each: each.number)

    def read_mail(self) -> None:
        """Take the next message of the coordinator."""
        match self.mail.popleft():
            case SendBarrier(barrier):
                self.task.trigger(barrier, self.now)
            case NotifyComplete(checkpoint_id):
                self.task.notify_complete(checkpoint_id)
            case NotifyAborted(checkpoint_id):
                self.task.notify_aborted(checkpoint_id)
                self._forget(checkpoint_id)
            case Aligned(_, lowest) if not self.task.align(lowest):
                return
        if self.task.is_source:
            self._again_at = self.now
        self._settle()

    def limit(self, rate: float | None, reading: int, speed: float | None) -> None:
        """A source hears of another limit."""
        self.task.limit(rate, reading, self.now, speed)
        self._again_at = self.now
        self._settle()

    def _forget(self, checkpoint_id: int) -> None:
        """What is not written of an aborted checkpoint is left out."""
        self._unwritten[:] = [
            each
            for each in self._unwritten
            if each.task != self.id or each.barrier.checkpoint_id != checkpoint_id
        ]

    def _possible(self) -> list[Callable[[], None]]:
        task, found = self.task, list[Callable[[], None]]()
        if task.requests:
            found.append(self._answer)
        if task.outbox:
            return found
        if task.next_timer <= self.now:
            found.append(self._advance)
        if self._again_at <= self.now:
            found.append(self._poll)
        for channel in self.inputs:
            if channel.queue and not task.blocked(channel.number):
                found.append(partial(self._deliver, channel))
        return found

    def _poll(self) -> None:
        polling = self.task.poll(self.now, self._random.randint(1, self._max_rows))
        self._again_at = polling.again_at
        self._polls += 1
        if polling.rows and self._polls % MARK_EVERY == 0:
            self.task.mark(self.now, self._polls)
        if polling.report is not None:
            self.progress.append(polling.report)
        self._settle()

    def _answer(self) -> None:
        """Answer some requests, in any order."""
        asked = list(self.task.requests)
        self.task.requests.clear()
        self._random.shuffle(asked)
        some = self._random.randint(1, len(asked))
        self.task.requests.extend(asked[some:])
        self.task.answer(answered(asked[:some]), self.now)
        self._settle()

    def _advance(self) -> None:
        self.task.advance(self.now)
        self._settle()

    def _deliver(self, channel: Channel) -> None:
        self.task.deliver(channel.number, channel.queue.popleft(), self.now)
        self._settle()
        channel.source.send()

    def _settle(self) -> None:
        self._unwritten.extend(self.task.snapshots)
        self.task.snapshots.clear()
        self.touch()
        self.send()

    def send(self) -> None:
        """Move what the subtask sends into the channels, until one of them is full."""
        outbox = self.task.outbox
        while outbox:
            channel = self.outputs[outbox[0][0]]
            if len(channel.queue) == CAPACITY:
                return
            channel.queue.append(outbox.popleft()[1])
            channel.target.touch()
            self.touch()
