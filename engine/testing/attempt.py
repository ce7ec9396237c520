"""One attempt of a job in one thread: tasks, channels and a coordinator, moved step by step.

    every step is one thing that could happen next in a cluster: an element arrives, a source is
    polled, a message of the coordinator reaches a task, a snapshot is written, an ack arrives

Order    what cannot overtake in reality cannot here: elements of a channel, messages to a task.
         Everything else is interleaved as the scheduler likes.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from random import Random
from typing import TypeVar, assert_never, cast

import cloudpickle

from engine.checkpoint.config import CheckpointConfig
from engine.checkpoint.coordinator import Coordinator
from engine.checkpoint.effects import (
    DiscardFolder,
    Effect,
    FailJob,
    NotifyAborted,
    NotifyComplete,
    OperationEnded,
    SendBarrier,
    SnapshotRequest,
    WriteManifest,
)
from engine.checkpoint.failure import FailureReason
from engine.checkpoint.files import JsonObject
from engine.checkpoint.manifest import SubtaskSnapshot
from engine.checkpoint.restore import SubtaskRestore, read_restore
from engine.checkpoint.shared import shared_folder
from engine.checkpoint.snapshot import RestoredOperator, TaskSnapshot
from engine.checkpoint.stats import CheckpointLog
from engine.checkpoint.writer import Chains, write_manifest, write_snapshot
from engine.elements import MAX_TIME, Element, Micros
from engine.errors import StorageError
from engine.graph.jobgraph import JobGraph, TaskId
from engine.graph.plan import plan_of
from engine.runtime.task import Task
from engine.runtime.watermark_groups import Aligned, WatermarkGroups
from engine.runtime.wiring import wire
from engine.testing.answers import answered
from engine.testing.memory import MemoryStorage

CAPACITY = 3
"""Elements per channel: few, so that backpressure happens all the time."""

MAX_ROWS = 12
"""Rows of a poll: few, so that a short input still makes many batches."""

T = TypeVar("T")


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


NEVER = MAX_TIME


class JobFailed(Exception):
    """The coordinator asked for a restart, or a connection was lost."""


@dataclass(frozen=True, slots=True)
class Mishaps:
    """What happens to messages between the coordinator and the tasks: a part of them each."""

    lost: float = 0.0
    repeated: float = 0.0

    def copies(self, random: Random) -> int:
        """How often a message arrives."""
        luck = random.random()
        return 0 if luck < self.lost else 2 if luck < self.lost + self.repeated else 1


@dataclass(frozen=True, slots=True)
class Completed:
    """A snapshot that a restart would use."""

    checkpoint_id: int
    folder: str


class Attempt:
    """All parts of a running job. It ends when it is dropped: that is what a crash is."""

    def __init__(
        self,
        graph: JobGraph,
        attempt_id: str,
        restore: Mapping[TaskId, SubtaskRestore],
        storage: MemoryStorage,
        log: CheckpointLog,
        *,
        first_id: int,
        now: Micros,
        on_completed: Callable[[Completed], None],
        mishaps: Mishaps = Mishaps(),
        concurrent: int = 1,
    ) -> None:
        wiring = wire(graph, "0" * 32, attempt_id)
        self._routes = wiring.routes
        self._storage = storage
        self._on_completed = on_completed
        self._mishaps = mishaps
        self.now = now
        self.tasks: dict[TaskId, Task] = {}
        for id_, spec in wiring.specs.items():
            # Each task unpickles the graph for itself, as workers do: nothing is shared by chance.
            copied = cloudpickle.loads(cloudpickle.dumps(spec))  # type: ignore[no-untyped-call]
            self.tasks[id_] = Task(copied, _restored(restore.get(id_), storage), now=now)
        self.channels: dict[tuple[TaskId, int], deque[Element]] = {
            target: deque() for target in wiring.routes.values()
        }
        self._again_at = {id_: now for id_, task in self.tasks.items() if task.is_source}
        self._mail: dict[TaskId, deque[Effect | Aligned]] = {id_: deque() for id_ in self.tasks}
        self._groups = WatermarkGroups(graph.vertices)
        self._progress: dict[TaskId, deque[Micros]] = {id_: deque() for id_ in self._again_at}
        self._repeats: list[tuple[TaskId, Effect]] = []
        self._unwritten: list[TaskSnapshot] = []
        self._chains = {id_: Chains() for id_ in self.tasks}
        self._acks: list[SubtaskSnapshot] = []
        self._written: int | None = None
        self._ended: set[TaskId] = set()
        config = CheckpointConfig(
            "memory", interval_ms=300, timeout_ms=1_500, max_concurrent=concurrent
        )
        self.coordinator = Coordinator(
            "0" * 32, plan_of(graph), config, log, first_id=first_id, now_ms=self._now_ms
        )

    @property
    def done(self) -> bool:
        """Whether every task has ended by itself."""
        return all(task.done for task in self.tasks.values())

    @property
    def input_ended(self) -> bool:
        """Whether all input was read to its end."""
        return all(task.end_of_input for task in self.tasks.values())

    def settle(self) -> None:
        """The tasks are lost; the coordinator outlives them, and settles what is under way."""
        self.coordinator.close(FailureReason.TASK_LOST, self._now_ms)
        while self.coordinator.effects or self._written is not None:
            if self._written is not None:
                self._report_manifest()
            else:
                self._carry_out(None)

    def request(self, request: SnapshotRequest) -> None:
        """Ask for a snapshot."""
        self.coordinator.request(request, self._now_ms)

    def tick(self, passed: int) -> None:
        """Let time pass, µs."""
        self.now = Micros(self.now + passed)
        self.coordinator.tick(self._now_ms)

    def steps(self, random: Random) -> list[Step]:
        """Everything that could happen next, in a fixed order."""
        steps = [*self._element_steps(random), *self._storage_steps(random)]
        for id_, mail in self._mail.items():
            if mail:
                steps.append(Step(Pace.MAIL, partial(self._read_mail, id_)))
        for id_, reports in self._progress.items():
            if reports:
                steps.append(Step(Pace.MAIL, partial(self._report_progress, id_)))
        for id_, task in self.tasks.items():
            if task.end_of_input and id_ not in self._ended:
                steps.append(Step(Pace.MAIL, partial(self._report_end, id_)))
        if self.coordinator.effects:
            steps.append(Step(Pace.COORDINATOR, partial(self._carry_out, random)))
        return steps

    def _element_steps(self, random: Random) -> list[Step]:
        steps: list[Step] = []
        for id_, task in self.tasks.items():
            if task.requests:
                steps.append(Step(Pace.TASKS, partial(self._answer, id_, random)))
            if task.outbox:
                if len(self._channel_of(id_)) < CAPACITY:
                    steps.append(Step(Pace.TASKS, partial(self._send, id_)))
                continue
            if task.next_timer <= self.now:
                steps.append(Step(Pace.TASKS, partial(self._advance, id_)))
            if self._again_at.get(id_, NEVER) <= self.now:
                steps.append(Step(Pace.TASKS, partial(self._poll, id_, random)))
        for (id_, channel), queue in self.channels.items():
            task = self.tasks[id_]
            if queue and not task.outbox and not task.blocked(channel):
                steps.append(Step(Pace.TASKS, partial(self._deliver, id_, channel)))
        return steps

    def _storage_steps(self, random: Random) -> list[Step]:
        steps: list[Step] = []
        if self._unwritten:
            steps.append(Step(Pace.STORAGE, partial(self._write, random)))
        if self._acks:
            steps.append(Step(Pace.MAIL, partial(self._ack, random)))
        if self._repeats:
            steps.append(Step(Pace.MAIL, partial(self._repeat, random)))
        if self._written is not None:
            steps.append(Step(Pace.COORDINATOR, self._report_manifest))
        return steps

    def _channel_of(self, id_: TaskId) -> deque[Element]:
        """Where the next element of an outbox goes."""
        return self.channels[self._routes[id_, self.tasks[id_].outbox[0][0]]]

    def _send(self, id_: TaskId) -> None:
        queue = self._channel_of(id_)
        queue.append(self.tasks[id_].outbox.popleft()[1])

    def _poll(self, id_: TaskId, random: Random) -> None:
        polling = self.tasks[id_].poll(self.now, random.randint(1, MAX_ROWS))
        self._again_at[id_] = polling.again_at
        if polling.report is not None:
            self._progress[id_].append(polling.report)
        self._collect(id_)

    def _answer(self, id_: TaskId, random: Random) -> None:
        """Answer some requests of a task, in any order."""
        task = self.tasks[id_]
        asked = list(task.requests)
        task.requests.clear()
        random.shuffle(asked)
        some = random.randint(1, len(asked))
        task.requests.extend(asked[some:])
        task.answer(answered(asked[:some]), self.now)
        self._collect(id_)

    def _advance(self, id_: TaskId) -> None:
        self.tasks[id_].advance(self.now)
        self._collect(id_)

    def _deliver(self, id_: TaskId, channel: int) -> None:
        element = self.channels[id_, channel].popleft()
        self.tasks[id_].deliver(channel, element, self.now)
        self._collect(id_)

    def _read_mail(self, id_: TaskId) -> None:
        task = self.tasks[id_]
        match self._mail[id_].popleft():
            case SendBarrier(barrier):
                task.trigger(barrier, self.now)
            case NotifyComplete(checkpoint_id):
                task.notify_complete(checkpoint_id)
            case NotifyAborted(checkpoint_id):
                task.notify_aborted(checkpoint_id)
            case Aligned(_, lowest) if not task.align(lowest):
                return
        if task.is_source:
            self._again_at[id_] = self.now
        self._collect(id_)

    def _collect(self, id_: TaskId) -> None:
        snapshots = self.tasks[id_].snapshots
        self._unwritten.extend(snapshots)
        snapshots.clear()

    def _write(self, random: Random) -> None:
        # Of one subtask, first come, first served.
        task = random.choice(self._unwritten).task
        snapshot = next(each for each in self._unwritten if each.task == task)
        self._unwritten.remove(snapshot)
        try:
            folder = self._storage.open(snapshot.barrier.folder)
            ack = write_snapshot(snapshot, folder, chains=self._chains[snapshot.task])
        except StorageError as error:
            id_ = snapshot.barrier.checkpoint_id
            self.coordinator.decline(snapshot.task, id_, str(error), self._now_ms)
        else:
            for _ in range(self._mishaps.copies(random)):
                self._acks.append(SubtaskSnapshot.from_json(_over_the_wire(ack.to_json())))

    def _ack(self, random: Random) -> None:
        self.coordinator.ack(_take_any(self._acks, random), self._now_ms)

    def _report_manifest(self) -> None:
        checkpoint_id, self._written = self._written, None
        assert checkpoint_id is not None
        self.coordinator.manifest_written(checkpoint_id, self._now_ms)

    def _report_progress(self, id_: TaskId) -> None:
        aligned = self._groups.report(id_, self._progress[id_].popleft())
        if aligned is None:
            return
        for member, task in self.tasks.items():
            if task.spec.watermark_group == aligned.group:
                self._mail[member].append(aligned)

    def _report_end(self, id_: TaskId) -> None:
        self._ended.add(id_)
        self.coordinator.end_of_input(id_, self._now_ms)

    def _carry_out(self, random: Random | None) -> None:
        """Do the next thing that the coordinator wants; without luck, nothing is lost."""
        effect = self.coordinator.effects.popleft()
        match effect:
            case SendBarrier(sources=sources):
                self._post(sources, effect, random)
            case NotifyComplete() | NotifyAborted():
                self._post(self._mail, effect, random)
            case WriteManifest():
                self._write_manifest(effect)
            case DiscardFolder(folder):
                self._discard(folder)
            case FailJob(message=message):
                raise JobFailed(message)
            case OperationEnded():
                return
            case _:
                assert_never(effect)

    def _discard(self, folder: str) -> None:
        for each in (folder, shared_folder(folder)):
            if each is not None:
                self._storage.open(each).delete()

    def _post(self, tasks: Iterable[TaskId], effect: Effect, random: Random | None) -> None:
        for id_ in tasks:
            copies = 1 if random is None else self._mishaps.copies(random)
            if not copies and not self._may_be_lost(effect):
                msg = f"the connection to {id_} is lost, and {effect} with it"
                raise JobFailed(msg)
            if copies:
                self._mail[id_].append(effect)
            if copies == 2:
                self._repeats.append((id_, effect))

    def _repeat(self, random: Random) -> None:
        """Let a message arrive again, behind whatever came since."""
        id_, effect = _take_any(self._repeats, random)
        self._mail[id_].append(effect)

    def _may_be_lost(self, effect: Effect) -> bool:
        """Whether the job goes on without a message, so that its loss need not be noticed."""
        if isinstance(effect, NotifyComplete):
            return not self.coordinator.is_stopped
        return isinstance(effect, SendBarrier)

    def _write_manifest(self, effect: WriteManifest) -> None:
        try:
            write_manifest(effect.manifest, self._storage.open(effect.folder))
        except StorageError as error:
            self.coordinator.storage_failed(effect.checkpoint_id, str(error), self._now_ms)
            return
        # A crash from here on restores this snapshot, although nobody was told of it.
        if effect.is_recoverable:
            self._on_completed(Completed(effect.checkpoint_id, effect.folder))
        self._written = effect.checkpoint_id

    @property
    def _now_ms(self) -> int:
        return self.now // 1_000


def _restored(
    restore: SubtaskRestore | None, storage: MemoryStorage
) -> tuple[RestoredOperator, ...]:
    if restore is None:
        return ()
    return read_restore(SubtaskRestore.from_json(_over_the_wire(restore.to_json())), storage.open)


def _take_any(items: list[T], random: Random) -> T:
    return items.pop(random.randrange(len(items)))


def _over_the_wire(value: JsonObject) -> JsonObject:
    return cast("JsonObject", json.loads(json.dumps(value)))
